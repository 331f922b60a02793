/* Prefill, decode and draws: the same numbers as a forward over whole sequences, and the same bits
 * whatever else is in the batch. */
#include "llm/model/model.h"
#include "tests/support/llm_model.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: model cache");

enum { V = 11, SLOTS = 5, CAPACITY = 20 };
static const size_t lengths[] = {12, 7, 15, 9};

/* One sequence of r alone as a prompt in slot `slot`; its first `n` tokens. */
static void prefill_one(model_cache *cache, const random_rows *r, size_t s, size_t n, size_t slot) {
  const size_t start[2] = {0, n};
  const packed_tokens rows = {n, 1, 0, start, r->token + r->start[s], NULL, NULL};
  ASSERT_OK(model_prefill(cache, &rows, &slot, &err));
}

/* Logits after every token of sequence s: the first `prompt` tokens as a prompt in `slot`, the rest
 * decoded one at a time. logits[length - prompt + 1, V]. */
static void logits_alone(model_cache *cache, const random_rows *r, size_t s, size_t prompt,
                         size_t slot, double *logits) {
  gl_error err = {0};
  prefill_one(cache, r, s, prompt, slot);
  must(model_logits_get(cache, 1, logits, &err), &err);
  for (size_t i = prompt; i < lengths[s]; ++i) {
    const int32_t where = (int32_t)slot, position = (int32_t)i;
    must(model_decode(cache, r->token + r->start[s] + i, &where, &position, 1, &err), &err);
    must(model_logits_get(cache, 1, logits + (i - prompt + 1) * V, &err), &err);
  }
}

static double logp_of(const double *logits, int32_t token, double temperature) {
  double sum = 0;
  for (size_t a = 0; a < V; ++a) sum += exp(logits[a] / temperature);
  return logits[token] / temperature - log(sum);
}

TEST(decoding_gives_the_log_probabilities_of_a_forward) {
  const number_type types[] = {NUMBER_F32, NUMBER_F64};
  const double temperature = 0.8;
  for (int k = 0; k < 2 * MODEL_TYPES; ++k) {
    small_model m;
    random_rows r;
    model_cache *cache;
    double logp[128], logits[16 * V];
    small_model_make_as(&m, (model_type)(k / 2), types[k % 2], 0, 11);
    random_rows_init(&r, lengths, 4, V, 6);
    ASSERT_OK(model_forward(m.m, &r.rows, temperature, 0, logp, NULL, &err));
    ASSERT_OK(model_cache_new(&cache, m.m, SLOTS, CAPACITY, &err));
    for (size_t s = 0, j = 0; s < 4; ++s) {
      const size_t prompt = 1 + s;
      logits_alone(cache, &r, s, prompt, SLOTS - 1 - s, logits);
      j += prompt - 1;
      for (size_t i = prompt; i < lengths[s]; ++i, ++j)
        ASSERT_CLOSE(logp[j],
                     logp_of(logits + (i - prompt) * V, r.token[r.start[s] + i], temperature),
                     types[k % 2] == NUMBER_F32 ? 1e-5 : 1e-13);
    }
    model_cache_free(cache);
  }
}

TEST(what_else_is_in_the_batch_changes_no_bit) {
  small_model m;
  random_rows r;
  model_cache *cache;
  double alone[4][16 * V], together[4 * V];
  small_model_make(&m, NUMBER_F32, 0, 12);
  random_rows_init(&r, lengths, 4, V, 7);
  ASSERT_OK(model_cache_new(&cache, m.m, SLOTS, CAPACITY, &err));
  for (size_t s = 0; s < 4; ++s) logits_alone(cache, &r, s, 3, 0, alone[s]);
  /* All prompts at once, in another order and other slots. */
  const size_t order[] = {2, 0, 3, 1}, slots[] = {4, 1, 0, 3}, start[] = {0, 3, 6, 9, 12};
  int32_t token[12], slot[4], position[4];
  for (size_t k = 0; k < 4; ++k)
    memcpy(token + 3 * k, r.token + r.start[order[k]], 3 * sizeof *token);
  const packed_tokens rows = {12, 4, 0, start, token, NULL, NULL};
  ASSERT_OK(model_prefill(cache, &rows, slots, &err));
  ASSERT_OK(model_logits_get(cache, 4, together, &err));
  for (size_t k = 0; k < 4; ++k)
    CU_ASSERT_EQUAL(memcmp(together + k * V, alone[order[k]], V * sizeof *together), 0);
  for (size_t i = 3; i < 15; ++i) {
    size_t n = 0, which[4];
    for (size_t k = 4; k-- > 0;) { /* fewer and fewer rows, in yet another order */
      if (i >= lengths[order[k]]) continue;
      which[n] = order[k];
      token[n] = r.token[r.start[order[k]] + i];
      slot[n] = (int32_t)slots[k];
      position[n++] = (int32_t)i;
    }
    ASSERT_OK(model_decode(cache, token, slot, position, n, &err));
    ASSERT_OK(model_logits_get(cache, n, together, &err));
    for (size_t k = 0; k < n; ++k)
      CU_ASSERT_EQUAL(memcmp(together + k * V, alone[which[k]] + (i - 2) * V, V * sizeof *together),
                      0);
  }
  model_cache_free(cache);
}

TEST(a_copied_slot_goes_on_as_the_first_would) {
  gl_error err = {0};
  small_model m;
  random_rows r;
  model_cache *cache;
  double a[V], b[V];
  small_model_make(&m, NUMBER_F32, 0, 13);
  random_rows_init(&r, lengths, 4, V, 8);
  must(model_cache_new(&cache, m.m, SLOTS, CAPACITY, &err), &err);
  prefill_one(cache, &r, 0, 6, 1);
  prefill_one(cache, &r, 1, 7, 3); /* to be overwritten */
  must(model_cache_copy(cache, 1, 3, 6, &err), &err);
  const int32_t token = 4, one = 1, three = 3, position = 6;
  must(model_decode(cache, &token, &one, &position, 1, &err), &err);
  must(model_logits_get(cache, 1, a, &err), &err);
  must(model_decode(cache, &token, &three, &position, 1, &err), &err);
  must(model_logits_get(cache, 1, b, &err), &err);
  CU_ASSERT_EQUAL(memcmp(a, b, sizeof a), 0);
  CU_ASSERT_EQUAL(model_cache_copy(cache, 1, SLOTS, 6, &err), GL_EINTERNAL);
  model_cache_free(cache);
}

TEST(draws_come_from_the_rows_asked_for) {
  gl_error err = {0};
  small_model m;
  random_rows r;
  model_cache *cache;
  const size_t slots[] = {0, 1, 2, 3}, row_of[] = {2, 2, 0, 3, 1};
  const uint64_t index[] = {7, 8, 9, 10, 7};
  model_draws draws = {
      {.temperature = 0.9, .top_k = 4, .top_p = 1}, rng_stream_at(5, RNG_ROLLOUT, 1), 0, {0}};
  int32_t token[5], again;
  double logits[4 * V], logq[5], cut[5], q, c;
  const model_drawn drawn = {token, logq, cut, NULL}, one = {&again, &q, &c, NULL};
  small_model_make(&m, NUMBER_F32, 0, 14);
  random_rows_init(&r, lengths, 4, V, 9);
  must(model_cache_new(&cache, m.m, SLOTS, CAPACITY, &err), &err);
  must(model_prefill(cache, &r.rows, slots, &err), &err);
  must(model_logits_get(cache, 4, logits, &err), &err);
  must(model_sample(cache, &(model_draw_rows){5, row_of, index, NULL}, &draws, &drawn, &err), &err);
  for (size_t k = 0; k < 5; ++k) {
    ASSERT_CLOSE(logq[k], logp_of(logits + row_of[k] * V, token[k], 0.9), 1e-5);
    CU_ASSERT(cut[k] >= logq[k] && cut[k] <= 0);
    must(
        model_sample(cache, &(model_draw_rows){1, row_of + k, index + k, NULL}, &draws, &one, &err),
        &err);
    CU_ASSERT(again == token[k] && q == logq[k] && c == cut[k]);
  }
  draws.greedy = 1;
  must(model_sample(cache, &(model_draw_rows){4, NULL, index, NULL}, &draws, &drawn, &err), &err);
  for (size_t k = 0; k < 4; ++k)
    for (size_t a = 0; a < V; ++a) CU_ASSERT(logits[k * V + a] <= logits[k * V + (size_t)token[k]]);
  const size_t beyond = 4;
  CU_ASSERT_EQUAL(
      model_sample(cache, &(model_draw_rows){1, &beyond, index, NULL}, &draws, &drawn, &err),
      GL_EINTERNAL);
  model_cache_free(cache);
}

TEST(a_prefill_of_many_rows_runs_in_parts) {
  small_model m;
  model_cache *cache;
  enum { N = 150, LONG = 38 }; /* 5700 rows */
  small_model_make(&m, NUMBER_F32, 0, 15);
  ASSERT_OK(model_cache_new(&cache, m.m, N, 40, &err));
  size_t *start = calloc(2 * N + 1, sizeof *start), *slot = start + N + 1;
  int32_t *token = calloc(N * LONG, sizeof *token);
  double *logits = calloc(N * V, sizeof *logits);
  for (size_t s = 0; s < N; ++s) {
    start[s + 1] = start[s] + LONG;
    slot[s] = N - 1 - s;
    for (size_t i = 0; i < LONG; ++i) token[s * LONG + i] = (int32_t)((s % 7 + 3 * i) % V);
  }
  const packed_tokens rows = {(size_t)N * LONG, N, 0, start, token, NULL, NULL};
  ASSERT_OK(model_prefill(cache, &rows, slot, &err));
  ASSERT_OK(model_logits_get(cache, N, logits, &err));
  for (size_t s = 7; s < N; ++s)
    CU_ASSERT_EQUAL(memcmp(logits + s * V, logits + s % 7 * V, V * sizeof *logits), 0);
  CU_ASSERT_NOT_EQUAL(memcmp(logits, logits + V, V * sizeof *logits), 0);
  free(start);
  free(token);
  free(logits);
  model_cache_free(cache);
}

/* --- memory --- */

TEST(a_plan_knows_what_is_needed) {
  gl_error err = {0};
  small_model m;
  memory_plan plan, less;
  small_model_make(&m, NUMBER_F32, 0, 1);
  const model_config *c = model_configuration(m.m);
  const size_t n = model_parameters(m.m);
  must(model_memory(&plan, c, m.b, &(memory_use){0, 1000, 500, 64, 40, 1}, &err), &err);
  CU_ASSERT_EQUAL(plan.gradients, 4 * n);
  CU_ASSERT_EQUAL(plan.moments, 8 * n);
  CU_ASSERT(plan.parameters >= 8 * n && plan.parameters < 8 * n + 4 * 40 * 6 + 64);
  /* Keys and values: 65 slots, 40 positions, 2 layers, 2 heads of 6, twice. */
  CU_ASSERT(plan.cache >= (size_t)65 * 40 * 2 * 2 * 6 * 2 * 4);
  CU_ASSERT_EQUAL(plan.logits, (size_t)2 * 64 * V * 4);
  CU_ASSERT_EQUAL(plan.total, plan.parameters + plan.gradients + plan.moments + plan.activations +
                                  plan.cache + plan.logits + plan.packed);
  /* Embedding, two layers, rows filled up to a multiple of at most 16. */
  CU_ASSERT(plan.packed >= 4 * (n - 200) && plan.packed % 4 == 0);
  must(model_memory(&less, c, m.b, &(memory_use){1, 1000, 500, 0, 0, 0}, &err), &err);
  CU_ASSERT(less.activations < plan.activations && less.cache == 0);
  CU_ASSERT_EQUAL(model_memory(&less, c, m.b, &(memory_use){0, SIZE_MAX / 16, 1, 0, 0, 0}, &err),
                  GL_ENOMEM);
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(model_memory(&less, c, m.b, &(memory_use){0, 1, 1, SIZE_MAX / 16, 1000, 0}, &err),
                  GL_ENOMEM);
  gl_error_clear(&err);
  model_cache *cache;
  CU_ASSERT_EQUAL(model_cache_new(&cache, m.m, 4, 41, &err), GL_EINPUT);
}
