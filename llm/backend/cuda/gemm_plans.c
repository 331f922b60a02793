/* The table of GEMM plans: a set-associative cache with first-in-first-out replacement. */
#include "llm/backend/cuda/gemm_plans.h"

#include "core/base/hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A set has plans in its ways [0, filled); in a full set, `next` is the oldest. */
typedef struct plan_set {
  unsigned filled, next;
} plan_set;

struct gemm_plans {
  size_t n_sets, key_bytes, plan_bytes, n;
  void (*drop)(void *owner, void *plan);
  void *owner;
  plan_set *sets;
  char *keys, *plans; /* [n_sets * GEMM_PLANS_WAYS], of key_bytes and plan_bytes each; owned */
};

gl_status gemm_plans_new(gemm_plans **out, size_t sets, size_t key_bytes, size_t plan_bytes,
                         void (*drop)(void *owner, void *plan), void *owner, gl_error *err) {
  assert(sets > 0 && key_bytes > 0 && drop != NULL);
  *out = NULL;
  size_t plans, bytes;
  if (__builtin_mul_overflow(sets, (size_t)GEMM_PLANS_WAYS, &plans) ||
      __builtin_mul_overflow(plans, key_bytes + plan_bytes, &bytes))
    return gl_fail_memory(err, "a table of plans");
  gemm_plans *t = calloc(1, sizeof *t);
  if (t == NULL) return gl_fail_memory(err, "a table of plans");
  *t = (gemm_plans){.n_sets = sets,
                    .key_bytes = key_bytes,
                    .plan_bytes = plan_bytes,
                    .drop = drop,
                    .owner = owner,
                    .sets = calloc(sets, sizeof *t->sets),
                    .keys = calloc(plans, key_bytes),
                    .plans = calloc(plans, plan_bytes)};
  if (t->sets == NULL || t->keys == NULL || t->plans == NULL) {
    gemm_plans_free(t);
    return gl_fail_memory(err, "a table of plans");
  }
  *out = t;
  return GL_OK;
}

void gemm_plans_free(gemm_plans *t) {
  if (t == NULL) return;
  for (size_t s = 0; t->sets != NULL && s < t->n_sets; ++s)
    for (size_t w = 0; w < t->sets[s].filled; ++w)
      t->drop(t->owner, t->plans + (s * GEMM_PLANS_WAYS + w) * t->plan_bytes);
  free(t->sets);
  free(t->keys);
  free(t->plans);
  free(t);
}

static size_t set_of(const gemm_plans *t, const void *key) {
  const uint64_t hash = hash_64(HASH_64_START, key, t->key_bytes);
  return (size_t)((hash ^ hash >> 32) % t->n_sets);
}

void *gemm_plans_find(const gemm_plans *t, const void *key) {
  const size_t s = set_of(t, key), first = s * GEMM_PLANS_WAYS;
  for (size_t i = first; i < first + t->sets[s].filled; ++i)
    if (memcmp(t->keys + i * t->key_bytes, key, t->key_bytes) == 0)
      return t->plans + i * t->plan_bytes;
  return NULL;
}

void *gemm_plans_add(gemm_plans *t, const void *key, const void *plan) {
  assert(gemm_plans_find(t, key) == NULL);
  const size_t s = set_of(t, key);
  plan_set *set = &t->sets[s];
  size_t way = set->filled;
  if (set->filled < GEMM_PLANS_WAYS) {
    ++set->filled;
    ++t->n;
  } else {
    way = set->next;
    set->next = (set->next + 1) % GEMM_PLANS_WAYS;
    t->drop(t->owner, t->plans + (s * GEMM_PLANS_WAYS + way) * t->plan_bytes);
  }
  const size_t at = s * GEMM_PLANS_WAYS + way;
  memcpy(t->keys + at * t->key_bytes, key, t->key_bytes);
  return memcpy(t->plans + at * t->plan_bytes, plan, t->plan_bytes);
}

size_t gemm_plans_size(const gemm_plans *t) {
  return t->n;
}
