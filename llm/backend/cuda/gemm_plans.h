/* A bounded table of prepared plans, found by a key. Prefix: gemm_plans_.
 *
 * A key belongs to one of the table's sets, by its hash; a set has room for GEMM_PLANS_WAYS plans,
 * and one more takes the place of the set's oldest. What is found is what was added with that key
 * or nothing: a maker whose plan follows from the key alone gives the same plan whatever was thrown
 * out between. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_GEMM_PLANS_H
#define GEPOLAB_LLM_BACKEND_CUDA_GEMM_PLANS_H

#include "core/base/error.h"

#include <stddef.h>

enum { GEMM_PLANS_WAYS = 8 };

typedef struct gemm_plans gemm_plans;

/* For sets * GEMM_PLANS_WAYS plans (sets at least 1) of plan_bytes with keys of key_bytes, whose
 * bytes are all compared, padding included. drop(owner, plan) ends a plan that is thrown out. */
gl_status gemm_plans_new(gemm_plans **out, size_t sets, size_t key_bytes, size_t plan_bytes,
                         void (*drop)(void *owner, void *plan), void *owner, gl_error *err);
/* Drops every plan. NULL is fine. */
void gemm_plans_free(gemm_plans *t);

/* The plan of a key, or NULL. It lies where it is until the next gemm_plans_add(). */
void *gemm_plans_find(const gemm_plans *t, const void *key);
/* Copies a plan into the table, whose key must not be there yet; the copy belongs to the table. */
void *gemm_plans_add(gemm_plans *t, const void *key, const void *plan);
/* Plans in the table. */
size_t gemm_plans_size(const gemm_plans *t);

#endif
