/* Over-sampling: more is begun than an update takes, and the surplus is dropped or carried over. By
 * hand, against order statistics of exponential lengths, and the books. */
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>

SUITE("sim: over-sampling");

/* Two of three groups of one response, of 10, 20 and 30 s by their samplers; an update takes 5 s.
 */
static const char by_hand[] =
    "{preset: sync, unit: response, samples_per_batch: 2, samplers: [{lengths: 10}, {lengths: 20}, "
    "{lengths: 30}], concurrency: 1, tokens_per_s: 1, learner: {batches: 1, step: 5}, oversample: "
    "1.5%s}";

/* Aborted: the third response never ends, and every cycle takes 20 + 5 s. Carried over: the third
 * ends at 30 s and is trained with the next update, one version late, while the fastest is begun.
 */
TEST(what_is_left_is_dropped_or_waits) {
  char text[400];
  snprintf(text, sizeof text, by_hand, ", surplus: abort");
  schedule s = sim_must_build(text, 1, 8);
  for (size_t i = 0; i < 8; ++i) CU_ASSERT_EQUAL(s.updates[i].end_s, 25 * (double)(i + 1));
  CU_ASSERT_EQUAL(s.aborted, 8);
  CU_ASSERT_EQUAL(s.clock.staleness_max, 0);
  snprintf(text, sizeof text, by_hand, "");
  s = sim_must_build(text, 1, 2);
  CU_ASSERT_EQUAL(s.aborted, 0);
  CU_ASSERT_EQUAL(s.updates[0].start_s, 20);
  CU_ASSERT_EQUAL(s.updates[1].start_s, 35); /* at 30 the slow one, at 25 + 10 the fast one */
  CU_ASSERT_EQUAL(s.batches[2].sampler, 2);
  CU_ASSERT_EQUAL(schedule_staleness(&s, &s.updates[1], &s.batches[2]), 1);
  CU_ASSERT_EQUAL(schedule_staleness(&s, &s.updates[1], &s.batches[3]), 0);
}

/* The N-th of M exponential times of mean m comes after m (H_M - H_{M-N}) on average, with variance
 * m^2 (1/M^2 + ... + 1/(M-N+1)^2). Memory of what was begun is lost, so both rules have this cycle
 * where an update takes no time. 2,000 updates; at four standard errors each of the eight
 * comparisons fails falsely with probability 6e-5. */
TEST(exponential_lengths_have_their_order_statistics) {
  enum { N = 32, UPDATES = 2000 };
  const double m = 1000;
  static const double factors[] = {1, 1.25, 1.5, 3};
  for (size_t i = 0; i < sizeof factors / sizeof *factors; ++i)
    for (int aborts = 0; aborts < 2; ++aborts) {
      char text[500];
      const int begun = (int)ceil(N * factors[i]);
      double mean = 0, variance = 0;
      for (int k = begun - N + 1; k <= begun; ++k) mean += m / k, variance += m * m / k / k;
      snprintf(
          text, sizeof text,
          "{preset: sync, unit: response, partial: continue, samples_per_batch: %d, samplers: "
          "1, concurrency: %d, "
          "lengths: {distribution: exponential, mean: 100000}, max_tokens: 1e8, tokens_per_s: 100, "
          "oversample: %g, surplus: %s, learner: {batches: 1, step: 1e-6}}",
          N, 10 * N, factors[i], aborts ? "abort" : "carry");
      schedule s = sim_must_build(text, 3, UPDATES);
      ASSERT_CLOSE(s.clock.simulated_s / UPDATES, mean, 4 * sqrt(variance / UPDATES) / mean);
      CU_ASSERT_EQUAL(
          s.begun, (uint64_t)(aborts ? (UPDATES - 1) * begun + begun : (UPDATES - 1) * N + begun));
      CU_ASSERT_EQUAL(s.aborted, (uint64_t)(aborts ? UPDATES * (begun - N) : 0));
    }
}

TEST(books_balance_with_a_surplus) {
  static const char *const rules[] = {
      "preset: areal_2, samplers: 3, delay: 3",
      "preset: areal, unit: group, samplers: 3, data_delay: 9",
      "preset: verl_async, samplers: 3, mtbf: {distribution: exponential, mean: 500}, mttr: 50",
      "preset: nemo_rl, samplers: 3, network: {ingress: {bandwidth: 1000}}, bytes_per_token: 4",
      "preset: skyrl, samplers: 3, restarts: {every: 400, down: 20, keeps: queue}"};
  for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i)
    for (int aborts = 0; aborts < 2; ++aborts) {
      char text[600];
      snprintf(text, sizeof text,
               "{%s, concurrency: 32, lengths: {distribution: lognormal, mu: 5.5, sigma: 1}, "
               "tokens_per_s: 20, "
               "oversample: 1.4, surplus: %s, learner: {batches: 1, step: 4}}",
               rules[i], aborts ? "abort" : "carry");
      schedule s = sim_must_build(text, 5, 100);
      uint64_t units = 0;
      double tokens = 0;
      for (int f = 0; f < FATES; ++f) units += s.fate[f].units;
      for (size_t k = 0; k < s.n_batches; ++k) tokens += s.batches[k].tokens;
      CU_ASSERT_EQUAL(units, s.begun);
      CU_ASSERT_EQUAL(s.fate[FATE_PENDING].units, s.pending);
      ASSERT_CLOSE(s.fate[FATE_TRAINED].tokens, tokens, 1e-6);
      ASSERT_CLOSE(s.waited_s, s.waiting_integral_s, 1e-9);
      CU_ASSERT_EQUAL(s.fate[FATE_ABORTED].units > 0, aborts == 1);
      for (size_t u = 1; u < s.n_updates && aborts; ++u)
        for (size_t k = 0; k < s.updates[u].n_batches; ++k)
          CU_ASSERT(s.batches[s.updates[u].first_batch + k].start_s >= s.updates[u - 1].start_s);
    }
}

TEST(a_surplus_needs_a_gate_and_what_streams) {
  sim_must_refuse("{preset: fifo, oversample: 2}");
  sim_must_refuse("{preset: sync, oversample: 0.5}");
  sim_must_refuse("{preset: sync, surplus: abort}");
  sim_must_refuse("{preset: sync, surplus: keep}");
  sim_must_refuse("{preset: areal, unit: group, lengths: 9, stale: wait, oversample: 2}");
  sim_must_refuse("{preset: areal, unit: group, lengths: 9, stale: wait, surplus: abort}");
}
