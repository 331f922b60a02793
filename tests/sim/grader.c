/* A grader with a limited number of places: by hand, against Erlang's C formula, and the books. */
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>

SUITE("sim: grader");

/* Three batches come at 10 s, and the one place takes 4 s for each; an update takes all three. */
TEST(batches_wait_for_the_place) {
  schedule s = sim_must_build("{preset: sync, samplers: 3, generation: 10, learner: {step: 5}, "
                              "grader: {places: 1, time: 4}}",
                              1, 2);
  for (size_t k = 0; k < 3; ++k) {
    CU_ASSERT_EQUAL(s.batches[k].generated_s, 10);
    CU_ASSERT_EQUAL(s.batches[k].arrived_s, 14 + 4 * (double)k);
  }
  CU_ASSERT_EQUAL(s.updates[0].start_s, 22);
  CU_ASSERT_EQUAL(s.updates[1].start_s, 49);
  CU_ASSERT_EQUAL(s.grader.wait_s, 4); /* 0, 4 and 8 s */
  ASSERT_CLOSE(s.grader.busy, 24. / 54, 1e-12);
}

/* Of five batches at 10 s the place grades the first, to 510 s, and the second until the run ends
 * at 515 s. */
TEST(a_grading_under_way_at_the_end_counts_up_to_it) {
  schedule s = sim_must_build("{preset: fifo, samplers: 5, generation: 10, learner: {step: 5}, "
                              "grader: {places: 1, time: 500}}",
                              1, 1);
  CU_ASSERT_EQUAL(s.clock.simulated_s, 515);
  ASSERT_CLOSE(s.grader.busy, 505. / 515, 1e-12);
}

/* n samplers of exponential generation without a gate send a Poisson process. With exponential
 * times of grading of mean 1/mu at c places the mean wait is C(c, a) / (c mu - lambda), a = lambda
 * / mu (Erlang; Kleinrock, Queueing Systems I, 3.5). 30,000 batches; waits are correlated over
 * about 1 / (1 - rho)^2 services, so that 12 % are about four standard errors in each of the
 * three cases, which then fail falsely with probability 6e-5. */
TEST(waits_are_those_of_erlangs_formula) {
  static const struct {
    int places;
    double rho;
  } cases[] = {{1, 0.5}, {4, 0.7}, {16, 0.8}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    enum { N = 40, UPDATES = 30000 };
    const int c = cases[i].places;
    const double lambda = N / 100.0, a = c * cases[i].rho, mu = lambda / a;
    double term = 1, sum = 0; /* a^k / k! */
    for (int k = 0; k < c; ++k) sum += term, term *= a / (k + 1);
    const double waits = term / (1 - cases[i].rho) / (sum + term / (1 - cases[i].rho));
    char text[400];
    snprintf(
        text, sizeof text,
        "{preset: fifo, samplers: %d, generation: {distribution: exponential, mean: 100}, grader: "
        "{places: %d, time: {distribution: exponential, mean: %.17g}}, learner: {batches: 1, step: "
        "1e-6}}",
        N, c, 1 / mu);
    schedule s = sim_must_build(text, 3, UPDATES);
    ASSERT_CLOSE(s.grader.wait_s / (waits / (c * mu - lambda)), 1, 0.12);
    ASSERT_CLOSE(s.grader.busy, a, 0.04);
  }
}

/* Exponential times of mean m that end at a time-out T are rejected with probability exp(-T / m),
 * and take m (1 - exp(-T / m)) on average. 20,000 units that are not rejected; four standard
 * errors. */
TEST(what_takes_too_long_is_rejected) {
  schedule s = sim_must_build(
      "{preset: fifo, samplers: 8, generation: 50, grader: {places: 100, "
      "time: {distribution: exponential, mean: 10}, timeout: 12}, learner: {batches: "
      "1, step: 0.001}}",
      3, 20000);
  const double p = exp(-1.2), n = (double)s.fate[FATE_REJECTED].units + 20000;
  CU_ASSERT_EQUAL(s.grader.timed_out, (double)s.fate[FATE_REJECTED].units);
  ASSERT_CLOSE(s.grader.timed_out / n, p, 4 * sqrt(p * (1 - p) / n));
  ASSERT_CLOSE(s.grader.busy * s.clock.simulated_s / n / (10 * (1 - p)), 1, 0.02);
  CU_ASSERT_EQUAL(s.grader.wait_s, 0);
}

TEST(books_balance_with_a_grader) {
  static const char *const rules[] = {
      "preset: areal, unit: group, samplers: 3, data_delay: 9",
      "preset: verl_async, samplers: 3, mtbf: {distribution: exponential, mean: 500}, mttr: 50",
      "preset: nemo_rl, samplers: 3, oversample: 1.4, surplus: abort",
      "preset: prime_rl_08, samplers: 3, window: 2"};
  for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i) {
    char text[600];
    snprintf(text, sizeof text,
             "{%s, concurrency: 32, lengths: {distribution: lognormal, mu: 5.5, sigma: 1}, "
             "tokens_per_s: 20, "
             "grader: {places: 12, time: {distribution: lognormal, mu: 2, sigma: 1}, timeout: 40}, "
             "learner: "
             "{batches: 1, step: 4}}",
             rules[i]);
    schedule s = sim_must_build(text, 5, 100);
    uint64_t units = 0;
    for (int f = 0; f < FATES; ++f) units += s.fate[f].units;
    CU_ASSERT_EQUAL(units, s.begun);
    CU_ASSERT_EQUAL(s.fate[FATE_PENDING].units, s.pending);
    CU_ASSERT(s.grader.busy > 0 && s.grader.busy <= 12 + 1e-9 && s.grader.wait_s >= 0);
    ASSERT_CLOSE(s.waited_s, s.waiting_integral_s, 1e-9);
  }
}

TEST(a_grader_needs_its_time) {
  sim_must_refuse("{preset: sync, grader: {places: 3}}");
  sim_must_refuse("{preset: sync, grader: {places: 0, time: 3}}");
  sim_must_refuse("{preset: sync, grader: {time: 3, timeout: 0}}");
}
