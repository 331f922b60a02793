/* Steps that feed themselves on the device against decodes and draws that the host feeds: the same
 * bits, whether rows stay, leave or move, whether a step runs plainly or from its record, and
 * whether the kernels of the record overlap. */
#include "llm/backend/open/open.h"
#include "tests/support/llm_model.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: cuda steps");

enum { V = 11, SLOTS = 5, CAPACITY = 20, STEPS = 9, PROMPT = 3 };

/* A model on CUDA with a cache whose slots 0 .. SLOTS - 1 hold a prompt each; 0 where there is no
 * device. */
static int begin(small_model *s, model_cache **cache, number_type type) {
  gl_error err = {0};
  const model_config c = {.vocabulary = V,
                          .hidden = 16,
                          .intermediate = 24,
                          .layers = 2,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_dim = 8,
                          .max_positions = CAPACITY,
                          .rms_eps = 1e-6,
                          .rope_theta = 1000,
                          .initializer_range = 0.4,
                          .begin = -1,
                          .end = -1,
                          .pad = -1};
  if (backend_new(&s->b, BACKEND_CUDA, type, 1, &err) != GL_OK) {
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no CUDA device"));
    return 0;
  }
  must(model_new(&s->m, &c, s->b, 0, &err), &err);
  small_model_at_end(s);
  must(model_initialise(s->m, 5, &err), &err);
  must(model_cache_new(cache, s->m, SLOTS, CAPACITY, &err), &err);
  return 1;
}

static void prefill(model_cache *cache) {
  size_t start[SLOTS + 1], slot[SLOTS];
  int32_t token[SLOTS * PROMPT];
  for (size_t s = 0; s <= SLOTS; ++s) start[s] = s * PROMPT;
  for (size_t s = 0; s < SLOTS; ++s) slot[s] = s;
  for (size_t i = 0; i < SLOTS * PROMPT; ++i) token[i] = (int32_t)((i * i + 2) % V);
  const packed_tokens rows = {SLOTS * PROMPT, SLOTS, 0, start, token, NULL, NULL};
  ASSERT_OK(model_prefill(cache, &rows, slot, &err));
}

/* What each slot drew in each step, and the bit set of the tokens that were kept. */
typedef struct drawn {
  int32_t token[STEPS][SLOTS];
  double logq[STEPS][SLOTS], truncated[STEPS][SLOTS];
  uint32_t kept[STEPS][SLOTS];
} drawn;

/* One step's samples. */
typedef struct step_drawn {
  int32_t token[SLOTS];
  double logq[SLOTS], truncated[SLOTS];
  uint32_t kept[SLOTS];
} step_drawn;

static model_drawn into(step_drawn *s) {
  return (model_drawn){s->token, s->logq, s->truncated, s->kept};
}

/* The slots that take part in step i, in the order of their rows: a row leaves, rows move, rows
 * come back. */
static size_t rows_of(size_t i, int32_t *slot) {
  static const int32_t parts[STEPS][SLOTS] = {{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4},
                                              {0, 1, 2, 3, 4}, {0, 2, 3, 4},    {4, 3, 0},
                                              {4, 3, 0},       {4, 3, 0},       {0}};
  static const size_t n[STEPS] = {5, 5, 5, 5, 4, 3, 3, 3, 1};
  memcpy(slot, parts[i], n[i] * sizeof *slot);
  return n[i];
}

static void keep(drawn *d, size_t i, const step_drawn *step) {
  int32_t slot[SLOTS];
  const size_t n = rows_of(i, slot);
  for (size_t r = 0; r < n; ++r) {
    d->token[i][slot[r]] = step->token[r];
    d->logq[i][slot[r]] = step->logq[r];
    d->truncated[i][slot[r]] = step->truncated[r];
    d->kept[i][slot[r]] = step->kept[r];
  }
}

static int32_t first_token(int32_t slot) {
  return (slot * 3 + 1) % V;
}

/* The host gives every step its tokens. */
static void fed_by_the_host(model_cache *cache, const model_draws *draws, drawn *d) {
  prefill(cache);
  for (size_t i = 0; i < STEPS; ++i) {
    int32_t slot[SLOTS], token[SLOTS], position[SLOTS];
    uint64_t index[SLOTS];
    step_drawn step = {.kept = {0}};
    const model_drawn out = into(&step);
    const size_t n = rows_of(i, slot);
    for (size_t r = 0; r < n; ++r) {
      token[r] = i == 0 ? first_token(slot[r]) : d->token[i - 1][slot[r]];
      position[r] = (int32_t)(PROMPT + i);
      index[r] = rng_token_index((uint64_t)slot[r], i);
    }
    ASSERT_OK(model_decode(cache, token, slot, position, n, &err));
    ASSERT_OK(model_sample(cache, &(model_draw_rows){n, NULL, index, NULL}, draws, &out, &err));
    keep(d, i, &step);
  }
}

/* Each step is started before the draws of the one before it are read. */
static void fed_by_itself(model_cache *cache, const model_draws *draws, drawn *d) {
  int32_t before[SLOTS], slot[SLOTS], token[SLOTS], position[SLOTS];
  uint64_t index[SLOTS];
  step_drawn step = {.kept = {0}};
  const model_drawn out = into(&step);
  size_t n_before = 0;
  prefill(cache);
  for (size_t i = 0; i < STEPS; ++i) {
    const model_step_rows rows = {rows_of(i, slot), token, slot, position, index};
    for (size_t r = 0; r < rows.n; ++r) {
      token[r] = first_token(slot[r]);
      for (size_t p = 0; p < n_before; ++p)
        if (before[p] == slot[r]) token[r] = -1 - (int32_t)p;
      position[r] = (int32_t)(PROMPT + i);
      index[r] = rng_token_index((uint64_t)slot[r], i);
    }
    ASSERT_OK(model_step(cache, &rows, draws, &err));
    n_before = rows.n;
    memcpy(before, slot, sizeof before);
    if (i == 0) continue;
    ASSERT_OK(model_step_take(cache, &out, &err));
    keep(d, i - 1, &step);
  }
  ASSERT_OK(model_step_take(cache, &out, &err));
  keep(d, STEPS - 1, &step);
}

TEST(steps_that_feed_themselves_draw_what_the_host_would) {
  small_model s;
  model_cache *cache;
  if (!begin(&s, &cache, NUMBER_F32)) SKIP("no CUDA device");
  CU_ASSERT_EQUAL(model_steps_ahead(cache), 1);
  for (int dist = 0; dist < 6;
       ++dist) { /* the records of one distribution are not taken for another's */
    const int third = dist % 3, records = dist >= 4;
    const model_draws draws = {
        {.temperature = 0.9, .top_k = third == 1 ? 4u : 0u, .top_p = third == 2 ? 0.7 : 1},
        rng_stream_at(5, RNG_ROLLOUT, 7),
        dist == 3,
        {V, records ? 1 : 0, 0}};
    drawn host, self;
    memset(&host, 0, sizeof host);
    memset(&self, 0, sizeof self);
    fed_by_the_host(cache, &draws, &host);
    fed_by_itself(cache, &draws, &self);
    CU_ASSERT_EQUAL(memcmp(&host, &self, sizeof host), 0);
    for (size_t k = 0; k < SLOTS; ++k) { /* every drawn token was kept */
      CU_ASSERT_EQUAL(!records, self.kept[1][k] == 0);
      CU_ASSERT(!records || self.kept[1][k] >> self.token[1][k] & 1);
    }
    drawn other;
    memset(&other, 0, sizeof other);
    model_draws more = draws;
    ++more.stream.entity;
    fed_by_itself(cache, &more, &other);
    CU_ASSERT((memcmp(&host, &other, sizeof host) != 0) == (dist != 3));
  }
  model_cache_free(cache);
}

/* Recorded kernels start while the previous one runs (all other tests), or do not. */
TEST(steps_whose_kernels_do_not_overlap_draw_the_same) {
  static const number_type types[] = {NUMBER_F32, NUMBER_BF16};
  const model_draws draws = {
      {.temperature = 0.9, .top_k = 0, .top_p = 1}, rng_stream_at(5, RNG_ROLLOUT, 7), 0, {0}};
  for (size_t k = 0; k < 2; ++k) {
    small_model s;
    model_cache *cache;
    drawn host, self, overlapping;
    memset(&host, 0, sizeof host);
    memset(&self, 0, sizeof self);
    memset(&overlapping, 0, sizeof overlapping);
    if (!begin(&s, &cache, types[k])) SKIP("no CUDA device");
    fed_by_itself(cache, &draws, &overlapping);
    model_cache_free(cache);
    setenv("GEPOLAB_CUDA_PDL", "0", 1);
    const int there = begin(&s, &cache, types[k]);
    unsetenv("GEPOLAB_CUDA_PDL");
    CU_ASSERT_FATAL(there);
    fed_by_the_host(cache, &draws, &host);
    fed_by_itself(cache, &draws, &self);
    CU_ASSERT_EQUAL(memcmp(&host, &self, sizeof host), 0);
    CU_ASSERT_EQUAL(memcmp(&overlapping, &self, sizeof host), 0);
    model_cache_free(cache);
  }
}

/* After prompts and draws of another kind there are no tokens of a step to go on from. */
TEST(only_tokens_of_the_last_step_are_taken) {
  gl_error err = {0};
  small_model s;
  model_cache *cache;
  if (!begin(&s, &cache, NUMBER_F32)) SKIP("no CUDA device");
  const model_draws draws = {
      {.temperature = 1, .top_k = 0, .top_p = 1}, rng_stream_at(5, RNG_ROLLOUT, 7), 0, {0}};
  const int32_t given = 1, fed = -1, beyond = -2, slot = 0, position = PROMPT;
  const uint64_t index = 0;
  step_drawn step;
  const model_drawn out = into(&step);
  prefill(cache);
  model_step_rows rows = {1, &fed, &slot, &position, &index};
  CU_ASSERT_EQUAL(model_step(cache, &rows, &draws, &err), GL_EINTERNAL);
  rows.token = &given;
  must(model_step(cache, &rows, &draws, &err), &err);
  rows.token = &beyond;
  CU_ASSERT_EQUAL(model_step(cache, &rows, &draws, &err), GL_EINTERNAL);
  rows.token = &fed;
  must(model_step(cache, &rows, &draws, &err), &err);
  CU_ASSERT_EQUAL(model_step(cache, &rows, &draws, &err), GL_EINTERNAL); /* two are under way */
  must(model_step_take(cache, &out, &err), &err);
  must(model_sample(cache, &(model_draw_rows){1, NULL, &index, NULL}, &draws, &out, &err), &err);
  CU_ASSERT_EQUAL(model_step(cache, &rows, &draws, &err), GL_EINTERNAL);
  must(model_step_take(cache, &out, &err), &err);
  CU_ASSERT_EQUAL(model_step_take(cache, &out, &err), GL_EINTERNAL);
  model_cache_free(cache);
}
