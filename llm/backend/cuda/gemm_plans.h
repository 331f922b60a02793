/* A bounded table of prepared matrix products (GEMM plans), found by a key that says the shape.
 * Prefix: gemm_plans_.
 *
 * The table is divided into sets; a key's hash says which set is its own. A set has room for
 * GEMM_PLANS_WAYS plans, and one more replaces the set's oldest. A plan that is found is the one
 * that was added with this key; so where a plan follows from its key alone, it does not matter
 * which were thrown out and made again. Nothing here is specific to CUDA, and nothing synchronises:
 * a table belongs to one backend. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_GEMM_PLANS_H
#define GEPOLAB_LLM_BACKEND_CUDA_GEMM_PLANS_H

#include "core/base/error.h"

#include <stddef.h>

enum { GEMM_PLANS_WAYS = 8 };

typedef struct gemm_plans gemm_plans;

/* A table for sets * GEMM_PLANS_WAYS plans (sets >= 1) of plan_bytes each, with keys of key_bytes,
 * which are compared byte by byte: callers zero the padding. drop(owner, plan) releases what a plan
 * holds when the plan is thrown out. GL_ENOMEM. */
gl_status gemm_plans_new(gemm_plans **out, size_t sets, size_t key_bytes, size_t plan_bytes,
                         void (*drop)(void *owner, void *plan), void *owner, gl_error *err);
/* Drops every plan, then the table. NULL is fine. */
void gemm_plans_free(gemm_plans *t);

/* The plan of a key, or NULL. The pointer is valid until the next gemm_plans_add. */
void *gemm_plans_find(const gemm_plans *t, const void *key);
/* Copies plan and key into the table, which owns the copy and returns it. The key must not be in
 * the table yet. */
void *gemm_plans_add(gemm_plans *t, const void *key, const void *plan);
/* Plans in the table. */
size_t gemm_plans_size(const gemm_plans *t);

#endif
