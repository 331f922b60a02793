/* Draws of the CPU backend: one by one against core/rl/sampling, and in frequencies. */
#include "core/rl/sampling_distribution.h"
#include "llm/backend/cpu/cpu.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: backend sampling");

enum { VOCABULARY = 50, DRAWS = 20000 };

/* What core/rl/sampling says must be drawn for logits z [n] at u, with plain loops. */
static size_t expected(const float *z, size_t n, const sampling_spec *spec, double u, double *logq,
                       double *truncated) {
  double logp[1000], dist[1000], sum = 0, below = 0;
  sampling_rank rank[1000];
  for (size_t i = 0; i < n; ++i) sum += exp((double)z[i] / spec->temperature);
  for (size_t i = 0; i < n; ++i) logp[i] = (double)z[i] / spec->temperature - log(sum);
  sampling_truncate(spec, logp, n, dist, rank);
  size_t token = 0;
  while (token + 1 < n && (below += exp(dist[token])) <= u) ++token;
  *logq = logp[token];
  *truncated = dist[token];
  return token;
}

static float *drawn_logits(size_t n, uint64_t entity, double scale) {
  float *z = calloc(n, sizeof *z);
  CU_ASSERT_PTR_NOT_NULL_FATAL(z);
  for (size_t i = 0; i < n; ++i) {
    const rng_words w = rng_block(rng_stream_at(2, RNG_TEST, entity), i);
    z[i] = (float)(scale * (2 * rng_u01(w.v[0]) - 1));
  }
  return z;
}

static backend *float_backend(void) {
  backend *b = NULL;
  ASSERT_OK(backend_cpu_new(&b, NUMBER_F32, 2, &err));
  return b;
}

static void check_draws(backend *b, size_t n, const sampling_spec *spec) {
  enum { ROWS = 300 };
  float *z = drawn_logits(ROWS * n, 1, 5), logq[ROWS], truncated[ROWS];
  int32_t token[ROWS];
  uint64_t index[ROWS];
  const rng_stream stream = rng_stream_at(9, RNG_ROLLOUT, 4);
  for (size_t i = 0; i < ROWS; ++i) index[i] = rng_token_index(i, 3);
  b->ops->sample(b, token, logq, truncated, z, index, ROWS, n, spec, stream, 0);
  for (size_t i = 0; i < ROWS; ++i) {
    const rng_words w = rng_block(stream, index[i]);
    double p, q;
    const size_t t = expected(z + i * n, n, spec, rng_u01_53(w.v[0], w.v[1]), &p, &q);
    CU_ASSERT_EQUAL(token[i], (int32_t)t);
    ASSERT_CLOSE((double)logq[i], p, 1e-6);
    ASSERT_CLOSE((double)truncated[i], q, 1e-6);
  }
  free(z);
}

TEST(draws_are_those_of_core_sampling) {
  static const sampling_spec specs[] = {
      {.temperature = 1, .top_k = 0, .top_p = 1},    {.temperature = 0.6, .top_k = 0, .top_p = 1},
      {.temperature = 1, .top_k = 5, .top_p = 1},    {.temperature = 1.5, .top_k = 0, .top_p = 0.8},
      {.temperature = 1, .top_k = 20, .top_p = 0.9}, {.temperature = 1, .top_k = 1, .top_p = 1}};
  backend *b = float_backend();
  for (size_t i = 0; i < sizeof specs / sizeof *specs; ++i) {
    check_draws(b, 20, &specs[i]);
    check_draws(b, 613, &specs[i]);
    check_draws(b, 1, &specs[i]);
  }
  backend_free(b);
}

/* Pearson's statistic of DRAWS draws from one distribution. With 49 degrees of freedom it
 * exceeds 85.4 in one of a thousand seeds; this seed is fixed. Tokens expected less than five times
 * are lumped. */
TEST(frequencies_are_the_probabilities) {
  const sampling_spec spec = {.temperature = 1, .top_k = 0, .top_p = 1};
  backend *b = float_backend();
  float *one = drawn_logits(VOCABULARY, 7, 2), *z = calloc(DRAWS * VOCABULARY, sizeof *z);
  float *logq = calloc(2 * DRAWS, sizeof *logq);
  int32_t *token = calloc(DRAWS, sizeof *token);
  uint64_t *index = calloc(DRAWS, sizeof *index);
  double count[VOCABULARY] = {0}, sum = 0, statistic = 0, rest = 0, rest_count = 0;
  for (size_t i = 0; i < DRAWS; ++i) {
    memcpy(z + i * VOCABULARY, one, VOCABULARY * sizeof *z);
    index[i] = rng_token_index(i, 0);
  }
  b->ops->sample(b, token, logq, logq + DRAWS, z, index, DRAWS, VOCABULARY, &spec,
                 rng_stream_at(1, RNG_ROLLOUT, 1), 0);
  for (size_t i = 0; i < DRAWS; ++i) count[token[i]] += 1;
  for (size_t a = 0; a < VOCABULARY; ++a) sum += exp((double)one[a]);
  for (size_t a = 0; a < VOCABULARY; ++a) {
    const double mean = DRAWS * exp((double)one[a]) / sum;
    if (mean >= 5) {
      statistic += (count[a] - mean) * (count[a] - mean) / mean;
    } else {
      rest += mean;
      rest_count += count[a];
    }
  }
  if (rest > 0) statistic += (rest_count - rest) * (rest_count - rest) / rest;
  CU_ASSERT(statistic < 85.4);
  CU_ASSERT(statistic > 20);
  free(one);
  free(z);
  free(logq);
  free(token);
  free(index);
  backend_free(b);
}

TEST(greedy_takes_the_most_probable_and_of_equals_the_first) {
  const sampling_spec spec = {.temperature = 0.5, .top_k = 2, .top_p = 1};
  backend *b = float_backend();
  const float z[] = {1, 3, 2, 3, -1, /**/ 0, 0, 0, 0, 0};
  const uint64_t index[] = {0, 1};
  int32_t token[2];
  float logq[2], truncated[2];
  b->ops->sample(b, token, logq, truncated, z, index, 2, 5, &spec, rng_stream_at(1, RNG_EVAL, 1),
                 1);
  CU_ASSERT_EQUAL(token[0], 1);
  CU_ASSERT_EQUAL(token[1], 0);
  ASSERT_CLOSE((double)logq[0], -log(2 + exp(-4) + exp(-2) + exp(-8)), 1e-6);
  ASSERT_CLOSE((double)truncated[0], -log(2), 1e-6);
  ASSERT_CLOSE((double)truncated[1], -log(5), 1e-6); /* ties stay */
  backend_free(b);
}

/* A token of probability zero is never drawn, not even at the ends of [0, 1). */
TEST(impossible_tokens_are_never_drawn) {
  const sampling_spec spec = {.temperature = 1, .top_k = 0, .top_p = 1};
  backend *b = float_backend();
  enum { ROWS = 2000 };
  static float z[ROWS][4], logq[ROWS], truncated[ROWS];
  static uint64_t index[ROWS];
  static int32_t token[ROWS];
  for (size_t i = 0; i < ROWS; ++i) {
    z[i][0] = z[i][3] = -INFINITY;
    index[i] = i;
  }
  b->ops->sample(b, token, logq, truncated, z, index, ROWS, 4, &spec,
                 rng_stream_at(1, RNG_ROLLOUT, 2), 0);
  size_t first = 0;
  for (size_t i = 0; i < ROWS; ++i) {
    CU_ASSERT(token[i] == 1 || token[i] == 2);
    first += token[i] == 1;
  }
  CU_ASSERT(first > ROWS / 2 - 200 && first < ROWS / 2 + 200);
  backend_free(b);
}
