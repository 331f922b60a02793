/* The packed copy of the weights: after every way in which the values in use can change, a pass
 * computes with the new ones. */
#include "tests/support/llm_model.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: packed weights");

enum { V = 11, TOKENS = 9 };

/* The logits after a prompt, from a cache made for it. */
static void logits_of(model *m, double logits[V]) {
  static const int32_t token[TOKENS] = {1, 5, 3, 0, 10, 7, 7, 2, 4};
  const size_t start[2] = {0, TOKENS}, slot = 0;
  const packed_tokens rows = {TOKENS, 1, 0, start, token, NULL, NULL};
  model_cache *cache;
  ASSERT_OK(model_cache_new(&cache, m, 1, TOKENS + 1, &err));
  ASSERT_OK(model_prefill(cache, &rows, &slot, &err));
  ASSERT_OK(model_logits_get(cache, 1, logits, &err));
  model_cache_free(cache);
}

/* Whether the model in use gives the bits of a model that was made with its values. */
static int computes_with(model *m, const double *values) {
  small_model fresh;
  double want[V], got[V];
  small_model_make(&fresh, NUMBER_F32, 0, 99);
  ASSERT_OK(model_set(fresh.m, values, &err));
  logits_of(fresh.m, want);
  logits_of(m, got);
  return memcmp(want, got, sizeof want) == 0;
}

static int is_current(model *m) {
  double *values = malloc(model_parameters(m) * sizeof *values);
  ASSERT_OK(model_get(m, values, &err));
  const int same = computes_with(m, values);
  free(values);
  return same;
}

TEST(new_values_are_packed_anew) {
  small_model s, other;
  small_model_make(&s, NUMBER_F32, 0, 1);
  small_model_make(&other, NUMBER_F32, 0, 2);
  const size_t n = model_parameters(s.m);
  double *values = malloc(n * sizeof *values), before[V], after[V];
  CU_ASSERT(is_current(s.m));
  logits_of(s.m, before);
  ASSERT_OK(model_get(other.m, values, &err));
  ASSERT_OK(model_set(s.m, values, &err));
  CU_ASSERT(is_current(s.m));
  logits_of(s.m, after);
  CU_ASSERT(memcmp(before, after, sizeof before) != 0);
  ASSERT_OK(model_initialise(s.m, 7, &err));
  CU_ASSERT(is_current(s.m));
  free(values);
}

TEST(a_step_is_packed_anew) {
  static const optimizer_spec specs[] = {
      {.kind = OPTIMIZER_SGD},
      {.kind = OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}};
  for (size_t k = 0; k < 2; ++k) {
    small_model s;
    model_optimizer *o;
    double norm, before[V], after[V];
    small_model_make(&s, NUMBER_F32, 0, 3);
    double *gradient = malloc(model_parameters(s.m) * sizeof *gradient);
    for (size_t i = 0; i < model_parameters(s.m); ++i) gradient[i] = i % 3 == 0 ? 0.1 : -0.2;
    ASSERT_OK(model_optimizer_new(&o, s.m, &specs[k], &err));
    ASSERT_OK(model_gradient_set(s.m, gradient, &err));
    logits_of(s.m, before);
    ASSERT_OK(model_optimizer_step(o, 0.05, &norm, &err));
    CU_ASSERT(is_current(s.m));
    logits_of(s.m, after);
    CU_ASSERT(memcmp(before, after, sizeof before) != 0);
    free(gradient);
    model_optimizer_free(o);
  }
}

/* Copies of earlier values, in memory of their own or put aside, are used and left again. */
TEST(a_version_is_packed_when_it_is_used) {
  for (int aside = 0; aside < 2; ++aside) {
    small_model s, other;
    model_values *old;
    small_model_make(&s, NUMBER_F32, 0, 4);
    small_model_make(&other, NUMBER_F32, 0, 5);
    const size_t bytes = model_parameters(s.m) * sizeof(double);
    double *first = malloc(bytes), *second = malloc(bytes);
    ASSERT_OK(model_get(s.m, first, &err));
    ASSERT_OK(model_get(other.m, second, &err));
    ASSERT_OK(aside ? model_values_put_aside(&old, s.m, &err) : model_values_copy(&old, s.m, &err));
    ASSERT_OK(model_set(s.m, second, &err));
    CU_ASSERT(computes_with(s.m, second));
    model_use(s.m, old);
    CU_ASSERT(computes_with(s.m, first));
    model_use(s.m, NULL);
    CU_ASSERT(computes_with(s.m, second));
    model_use(s.m, old);
    CU_ASSERT(computes_with(s.m, first));
    model_values_free(old, s.m); /* the model goes back to its own values */
    CU_ASSERT(computes_with(s.m, second));
    free(first);
    free(second);
  }
}
