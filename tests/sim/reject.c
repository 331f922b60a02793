/* Units that are rejected when they reach the learner: closed forms and the books. */
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

SUITE("sim: rejecting");

/* In turns, an update of n batches of one sampler waits for n accepted ones, which takes n / (1 -
 * p) generations on average, with standard deviation sqrt(n p) / (1 - p). 10,000 updates; at four
 * standard errors each of the three tests fails falsely with probability 6e-5. */
TEST(an_update_takes_generations_until_enough_are_accepted) {
  static const struct {
    double p;
    int batches;
  } cases[] = {{0.3, 1}, {0.353, 4}, {0.9, 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[256];
    const double p = cases[i].p, n = cases[i].batches, updates = 10000;
    snprintf(text, sizeof text,
             "{preset: sync, generation: 10, learner: {step: 5, batches: %d, reject: %g}}",
             cases[i].batches, p);
    schedule s = sim_must_build(text, 3, (size_t)updates);
    const double expected = 10 * n / (1 - p) + 5,
                 error = 10 * sqrt(n * p) / (1 - p) / sqrt(updates);
    ASSERT_CLOSE(s.clock.simulated_s / updates, expected, 4 * error / expected);
    CU_ASSERT_EQUAL(s.clock.staleness_max, 0);
  }
}

/* The fraction rejected, and books, under every rule that a rejected unit may meet. */
TEST(rejected_units_have_their_fate_and_give_their_places_back) {
  static const char *const clusters[] = {
      "preset: heterorl, samplers: 3, learner: {step: 20, ",
      "preset: areal, samplers: 3, generation: {distribution: lognormal, mu: 3, sigma: 1}, "
      "learner: {step: "
      "20, ",
      "preset: fifo, samplers: 3, ahead: 3, window: 3, stale: wait, learner: {step: 20, queue: "
      "oldest_version, ",
      "preset: prime_rl_08, samplers: 3, concurrency: 16, window: 2, learner: {step: 9, ",
      "preset: areal_2, samplers: 3, concurrency: 16, prompt_lengths: {distribution: lognormal, "
      "mu: 0, "
      "sigma: "
      "0.5}, restarts: {every: 3000, down: 60}, learner: {batches: 1, step: 9, "};
  for (size_t i = 0; i < sizeof clusters / sizeof *clusters; ++i) {
    char text[512];
    snprintf(text, sizeof text, "{%sreject: 0.4}}", clusters[i]);
    schedule s = sim_must_build(text, 5, 400);
    const unit_counts *f = s.fate;
    uint64_t units = 0;
    double tokens = 0;
    for (int k = 0; k < FATES; ++k) units += f[k].units;
    for (size_t k = 0; k < s.n_batches; ++k) tokens += s.batches[k].tokens;
    CU_ASSERT_EQUAL(units, s.begun);
    CU_ASSERT_EQUAL(f[FATE_PENDING].units, s.pending);
    ASSERT_CLOSE(f[FATE_TRAINED].tokens, tokens, 1e-6);
    ASSERT_CLOSE(s.waited_s, s.waiting_integral_s, 1e-9);
    const double arrived =
        (double)(f[FATE_REJECTED].units + f[FATE_TRAINED].units + f[FATE_STALE].units);
    ASSERT_CLOSE((double)f[FATE_REJECTED].units / arrived, 0.4, 4 * sqrt(0.24 / arrived) + 0.02);
    CU_ASSERT_EQUAL(s.clock.batches_dropped,
                    (double)(f[FATE_STALE].units + f[FATE_ABORTED].units + f[FATE_REJECTED].units));
  }
}

TEST(the_rate_is_a_probability_below_one) {
  sim_must_refuse("{preset: sync, learner: {reject: 1}}");
  sim_must_refuse("{preset: sync, learner: {reject: -0.1}}");
  sim_must_refuse("{preset: sync, coupled: true, learner: {reject: 0.1}}");
}
