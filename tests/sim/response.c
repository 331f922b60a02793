/* Batches whose cost follows from their responses' lengths. */
#include "sim/clock.h"
#include "sim/schedule.h"
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("sim: response lengths");

TEST(equal_lengths_take_a_whole_number_of_waves) {
  delay_dist seven = {.kind = DELAY_CONSTANT, .constant = {7}, .clamp_hi = INFINITY};
  event_queue slots;
  eq_init(&slots);
  for (size_t n = 1; n <= 12; ++n)
    for (size_t concurrency = 1; concurrency <= 5; ++concurrency)
      for (int padded = 0; padded < 2; ++padded) {
        response_spec spec = {.lengths = &seven,
                              .max_tokens = 100,
                              .tokens_per_s = 2,
                              .concurrency = concurrency,
                              .batching = (response_batching)padded};
        response_cost cost;
        CU_ASSERT_FATAL(response_draw(&cost, &spec, &slots, 1, 5, n));
        CU_ASSERT_EQUAL(cost.tokens, 7.0 * (double)n);
        CU_ASSERT_EQUAL(cost.seconds, 3.5 * (double)((n + concurrency - 1) / concurrency));
      }
  eq_fini(&slots);
}

/* A token at a time: every busy slot decodes one, a slot without work takes the next response (or,
 * padded, only when all are without work). */
static double token_by_token(const double *lengths, size_t n, size_t concurrency, int padded) {
  double left[8] = {0}, steps = 0;
  for (size_t next = 0;;) {
    size_t busy = 0;
    for (size_t k = 0; k < concurrency; ++k) busy += left[k] > 0;
    for (size_t k = 0; k < concurrency && next < n && (!padded || busy == 0); ++k)
      if (left[k] <= 0) left[k] = lengths[next++];
    busy = 0;
    for (size_t k = 0; k < concurrency; ++k) busy += left[k] > 0;
    if (busy == 0) return steps;
    for (size_t k = 0; k < concurrency; ++k) left[k] -= left[k] > 0;
    ++steps;
  }
}

TEST(unequal_lengths_agree_with_decoding_token_by_token) {
  delay_dist dist = {.kind = DELAY_LOGNORMAL, .lognormal = {3, 1.5}, .clamp_hi = INFINITY};
  event_queue slots;
  eq_init(&slots);
  for (uint64_t batch = 0; batch < 40; ++batch) {
    enum { N = 23, MAX_TOKENS = 90 };
    double lengths[N], tokens = 0;
    delay_source source = {rng_stream_at(9, RNG_LENGTH, batch), 0, 0};
    for (size_t k = 0; k < N; ++k) {
      lengths[k] = fmin(fmax(round(delay_draw(&dist, &source)), 1), MAX_TOKENS);
      tokens += lengths[k];
    }
    for (int padded = 0; padded < 2; ++padded) {
      size_t concurrency = 1 + batch % 8;
      response_spec spec = {.lengths = &dist,
                            .max_tokens = MAX_TOKENS,
                            .tokens_per_s = 4,
                            .concurrency = concurrency,
                            .batching = (response_batching)padded};
      response_cost cost;
      CU_ASSERT_FATAL(response_draw(&cost, &spec, &slots, 9, batch, N));
      CU_ASSERT_EQUAL(cost.tokens, tokens);
      CU_ASSERT_EQUAL(cost.seconds * 4, token_by_token(lengths, N, concurrency, padded));
    }
  }
  eq_fini(&slots);
}

TEST(lengths_set_the_time_and_the_bytes_of_batches) {
  schedule s = sim_must_build(
      "{preset: fifo, samplers: [{speed: 2}], lengths: 120, tokens_per_s: 10, concurrency: 4, "
      "samples_per_batch: 6, generation: 1, rollout_bytes: 100, bytes_per_token: 8, up: "
      "{bandwidth: 5860}, learner: {step: 1}}",
      1, 20);
  for (size_t i = 0; i < s.n_batches; ++i) {
    const schedule_batch *b = &s.batches[i];
    CU_ASSERT_EQUAL(b->tokens, 720);
    CU_ASSERT_EQUAL(b->bytes, 100 + 8 * 720);
    CU_ASSERT_EQUAL(b->generated_s - b->start_s, (24 + 1) / 2.0);
    CU_ASSERT_EQUAL(b->arrived_s - b->generated_s, 1);
  }
}

/* Batch k of a sampler has the same lengths whatever the network does; new weights still split it.
 */
TEST(lengths_depend_on_the_batch_alone) {
  const char *form =
      "{preset: areal, samplers: 3, lengths: {distribution: lognormal, interval: [50, 900]}, "
      "samples_per_batch: 16, delay: %d, learner: {step: 4}}";
  schedule s[2];
  double tokens[2][3][40] = {{{0}}};
  size_t split = 0, both = 0;
  for (int run = 0; run < 2; ++run) {
    char text[200];
    snprintf(text, sizeof text, form, 1 + 6 * run);
    s[run] = sim_must_build(text, 3, 30);
    for (size_t i = 0; i < s[run].n_batches; ++i) {
      const schedule_batch *b = &s[run].batches[i];
      split += b->n_segments > 1;
      CU_ASSERT(b->tokens >= 16);
      if ((uint32_t)b->id < 40) tokens[run][b->sampler][(uint32_t)b->id] = b->tokens;
    }
  }
  for (size_t i = 0; i < 3; ++i)
    for (size_t k = 0; k < 40; ++k) {
      if (tokens[0][i][k] <= 0 || tokens[1][i][k] <= 0) continue;
      CU_ASSERT_EQUAL(tokens[0][i][k], tokens[1][i][k]);
      ++both;
    }
  CU_ASSERT(both > 60 && split > 10);
}

TEST(wrong_lengths_are_refused_at_their_place) {
  const char *wrong[] = {
      "{preset: fifo, lengths: -5}",
      "{preset: fifo, lengths: {distribution: empirical, file: /no/such.csv}}",
      "{preset: fifo, lengths: 100, tokens_per_s: 0}",
      "{preset: fifo, lengths: 100, concurrency: 0}",
      "{preset: fifo, lengths: 100, batching: paded}",
      "{preset: fifo, lengths: 100, max_tokens: 0}",
      "{preset: fifo, lengths: 100, bytes_per_token: 1e9, up: {packet_bytes: 1}}",
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) sim_must_refuse(wrong[i]);
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The recipe `lengths`: where to_bad + to_good = 1 lengths are independent and of the mixture of
 * both distributions, by Kolmogorov and Smirnov's test (1.95 / sqrt(n): 0.1 % false alarms;
 * rounding to whole tokens adds less than 0.001) and the correlation of neighbours (3.3 standard
 * errors: 0.1 %).
 */
TEST(lengths_of_two_kinds_are_their_mixture) {
  enum { N = 40000 };
  static double length[N];
  delay_dist good = {.kind = DELAY_LOGNORMAL, .lognormal = {6.437, 0.704}, .clamp_hi = INFINITY};
  delay_dist bad = {.kind = DELAY_LOGNORMAL, .lognormal = {7.854, 0.915}, .clamp_hi = INFINITY};
  delay_dist mixture = {.kind = DELAY_GILBERT_ELLIOTT,
                        .gilbert_elliott = {0.238, 0.762, &good, &bad},
                        .clamp_hi = INFINITY};
  const response_spec spec = {
      .lengths = &mixture, .max_tokens = 1e9, .tokens_per_s = 1, .concurrency = 1};
  double sum = 0, squares = 0, products = 0, distance = 0;
  response_batch_lengths(length, &spec, 5, 77, N);
  for (size_t k = 0; k < N; ++k) sum += log(length[k]);
  for (size_t k = 0; k < N; ++k) {
    const double x = log(length[k]) - sum / N, y = log(length[(k + 1) % N]) - sum / N;
    squares += x * x;
    products += x * y;
  }
  CU_ASSERT(fabs(products / squares) < 3.3 / sqrt(N));
  qsort(length, N, sizeof *length, by_value);
  for (size_t k = 0; k < N; ++k) {
    const double l = log(length[k] + 0.5);
    const double cdf = 0.762 * erfc((6.437 - l) / 0.704 / sqrt(2)) / 2 +
                       0.238 * erfc((7.854 - l) / 0.915 / sqrt(2)) / 2;
    if (k + 1 == N || length[k + 1] > length[k])
      distance = fmax(distance, fabs(cdf - (double)(k + 1) / N));
  }
  CU_ASSERT(distance < 1.95 / sqrt(N) + 0.001);
}
