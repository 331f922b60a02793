/* Steps where operations are over when they return: a decode and a draw. What steps do beside a
 * device is in tests/llm/backend/cuda/steps.c. */
#include "llm/model/model.h"
#include "tests/support/llm_model.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("llm: model steps");

enum { V = 11, SLOTS = 3, CAPACITY = 20, STEPS = 4 };

TEST(a_step_is_a_decode_and_a_draw) {
  gl_error err = {0};
  small_model m;
  model_cache *cache;
  small_model_make(&m, NUMBER_F32, 0, 11);
  must(model_cache_new(&cache, m.m, SLOTS, CAPACITY, &err), &err);
  CU_ASSERT_EQUAL(model_steps_ahead(cache), 0);
  const model_draws draws = {
      {.temperature = 0.9, .top_k = 4, .top_p = 1}, rng_stream_at(5, RNG_ROLLOUT, 7), 0, {0}};
  int32_t token[2][STEPS + 1][SLOTS], slot[SLOTS], position[SLOTS];
  double logq[2][STEPS][SLOTS], cut[2][STEPS][SLOTS];
  for (int form = 0; form < 2; ++form)
    for (size_t i = 0; i < STEPS; ++i) {
      uint64_t index[SLOTS];
      for (size_t r = 0; r < SLOTS; ++r) {
        if (i == 0) token[form][0][r] = (int32_t)(r + 2);
        slot[r] = (int32_t)r;
        position[r] = (int32_t)i;
        index[r] = rng_token_index(r, i);
      }
      if (form == 0) {
        must(model_decode(cache, token[0][i], slot, position, SLOTS, &err), &err);
        must(model_sample(cache, &(model_draw_rows){SLOTS, NULL, index, NULL}, &draws,
                          &(model_drawn){token[0][i + 1], logq[0][i], cut[0][i], NULL}, &err),
             &err);
        continue;
      }
      const int32_t fed[SLOTS] = {-1, -2, -3};
      const model_step_rows rows = {SLOTS, i == 0 ? token[1][0] : fed, slot, position, index};
      must(model_step(cache, &rows, &draws, &err), &err);
      CU_ASSERT_EQUAL(model_step(cache, &rows, &draws, &err), GL_EINTERNAL);
      must(model_step_take(cache, &(model_drawn){token[1][i + 1], logq[1][i], cut[1][i], NULL},
                           &err),
           &err);
    }
  CU_ASSERT_EQUAL(memcmp(token[0], token[1], sizeof token[0]), 0);
  CU_ASSERT_EQUAL(memcmp(logq[0], logq[1], sizeof logq[0]), 0);
  CU_ASSERT_EQUAL(memcmp(cut[0], cut[1], sizeof cut[0]), 0);
  model_cache_free(cache);
}

TEST(steps_that_cannot_be_are_refused) {
  gl_error err = {0};
  small_model m;
  model_cache *cache;
  small_model_make(&m, NUMBER_F32, 0, 11);
  must(model_cache_new(&cache, m.m, SLOTS, CAPACITY, &err), &err);
  const model_draws draws = {
      {.temperature = 1, .top_k = 0, .top_p = 1}, rng_stream_at(5, RNG_ROLLOUT, 7), 0, {0}};
  static const struct {
    size_t n;
    int32_t token, slot, position;
  } wrong[] = {{0, 1, 0, 0},     {4, 1, 0, 0},  {1, -1, 0, 0},       {1, V, 0, 0},
               {1, 1, SLOTS, 0}, {1, 1, -1, 0}, {1, 1, 0, CAPACITY}, {1, 1, 0, -1}};
  int32_t token;
  double logq, cut;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    const uint64_t index = 0;
    const model_step_rows rows = {wrong[i].n, &wrong[i].token, &wrong[i].slot, &wrong[i].position,
                                  &index};
    CU_ASSERT_EQUAL(model_step(cache, &rows, &draws, &err), GL_EINTERNAL);
    gl_error_clear(&err);
  }
  const int32_t given = 1, first = 0;
  const uint64_t index = 0;
  const model_step_rows rows = {1, &given, &first, &first, &index};
  model_draws records = draws; /* a step at once records no sets */
  records.kept = (kept_shape){V, 1, 0};
  CU_ASSERT_EQUAL(model_step(cache, &rows, &records, &err), GL_EINTERNAL);
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(model_step_take(cache, &(model_drawn){&token, &logq, &cut, NULL}, &err),
                  GL_EINTERNAL);
  model_cache_free(cache);
}
