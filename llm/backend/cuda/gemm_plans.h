/* A bounded table of prepared plans, found by a key. Prefix: plan_table_.
 *
 * A key belongs to one of the table's sets, by its hash; a set has room for PLAN_TABLE_WAYS plans,
 * and one more takes the place of the set's oldest. What is found is what was added with that key
 * or nothing: a maker whose plan follows from the key alone gives the same plan whatever was thrown
 * out between. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_GEMM_PLANS_H
#define GEPOLAB_LLM_BACKEND_CUDA_GEMM_PLANS_H

#include "core/base/error.h"

#include <stddef.h>

enum { PLAN_TABLE_WAYS = 8 };

typedef struct plan_table plan_table;

/* For sets * PLAN_TABLE_WAYS plans (sets at least 1) of plan_bytes with keys of key_bytes, whose
 * bytes are all compared, padding included. drop(owner, plan) ends a plan that is thrown out. */
gl_status plan_table_new(plan_table **out, size_t sets, size_t key_bytes, size_t plan_bytes,
                         void (*drop)(void *owner, void *plan), void *owner, gl_error *err);
/* Drops every plan. NULL is fine. */
void plan_table_free(plan_table *t);

/* The plan of a key, or NULL. It lies where it is until the next plan_table_add(). */
void *plan_table_find(const plan_table *t, const void *key);
/* Copies a plan into the table, whose key must not be there yet; the copy belongs to the table. */
void *plan_table_add(plan_table *t, const void *key, const void *plan);
/* Plans in the table. */
size_t plan_table_size(const plan_table *t);

#endif
