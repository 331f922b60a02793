/* Environments between turns: by hand, against a second simulation (tests/golden/environment.py), a
 * closed network of queues, and the books. */
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

SUITE("sim: environment");

/* Two responses of 60 s in three turns, one place, calls of 7 s: both end a turn at 20 s, the
 * second waits until 27 s. Then turns end at 47 and 54 s, and nobody waits: 47 + 7 + 20 and 54 + 7
 * + 20. */
TEST(calls_wait_for_the_place) {
  schedule s = sim_must_build(
      "{preset: sync, unit: response, samples_per_batch: 2, samplers: 1, concurrency: 2, lengths: "
      "60, tokens_per_s: 1, environment: {turns: 3, time: 7, places: 1}, learner: {step: 5}}",
      1, 2);
  ASSERT_CLOSE(s.batches[0].generated_s, 74, 1e-12);
  ASSERT_CLOSE(s.batches[1].generated_s, 81, 1e-12);
  ASSERT_CLOSE(s.updates[1].start_s, 81 + 5 + 81, 1e-12);
  CU_ASSERT_EQUAL(s.environment.calls, 8);
  ASSERT_CLOSE(s.environment.wait_s, 7. / 4, 1e-12);
  ASSERT_CLOSE(s.environment.busy, 8 * 7. / 172, 1e-12);
  ASSERT_CLOSE(s.slot_utilisation, 2 * (74 + 81) / (2 * 172.), 1e-12);
}

/* With slots that are freed one slot decodes two responses of 20 s in two turns, whose calls take
 * 15 s: turns of the first at 0 to 10 and 25 to 35 s, as it comes back at 25 s while others decode
 * from 10 to 20 and from 20 to 30 s; it then has the slot at 30 s. */
TEST(a_response_that_is_back_comes_before_new_ones) {
  schedule s = sim_must_build(
      "{preset: fifo, unit: response, samples_per_batch: 1, samplers: 1, concurrency: 1, lengths: "
      "20, tokens_per_s: 1, environment: {turns: 2, time: 15, slot: freed}, learner: {batches: 1, "
      "step: 1e-9, publish_every: 1000000}}",
      1, 3);
  CU_ASSERT_EQUAL(s.batches[0].generated_s, 40);
  CU_ASSERT_EQUAL(s.batches[1].generated_s, 50);
  CU_ASSERT_EQUAL(s.batches[2].generated_s, 60);
  ASSERT_CLOSE(s.slot_utilisation, 1, 1e-9);
}

static void check_case(const char *text, FILE *golden) {
  size_t calls, n, same = 0;
  double wait;
  CU_ASSERT_FATAL(fscanf(golden, "%zu %lf %zu", &calls, &wait, &n) == 3);
  schedule s = sim_must_build(text, 11, n);
  CU_ASSERT_EQUAL_FATAL(s.n_batches, n);
  for (size_t i = 0; i < n; ++i) {
    double at;
    uint64_t sampler, ordinal;
    CU_ASSERT_FATAL(fscanf(golden, "%lf %" SCNu64 " %" SCNu64, &at, &sampler, &ordinal) == 3);
    same += fabs(s.batches[i].generated_s - at) < 1e-10 * at &&
            s.batches[i].id == (sampler << 32 | ordinal);
  }
  CU_ASSERT_EQUAL(same, n);
  CU_ASSERT_EQUAL(s.environment.calls, (double)calls);
  ASSERT_CLOSE(s.environment.wait_s, wait, 1e-9);
}

TEST(a_second_simulation_agrees) {
  FILE *golden = fopen("tests/golden/environment.txt", "r");
  size_t cases = 0;
  char text[1000];
  CU_ASSERT_PTR_NOT_NULL_FATAL(golden);
  for (; fscanf(golden, " %999[^\n]", text) == 1; ++cases) check_case(text, golden);
  CU_ASSERT_EQUAL(cases, 6);
  fclose(golden);
}

/* The machine-repair model M/M/c//N: n responses keep their slots, turns of mean z separate calls
 * of exponential times of mean 10 at c places. p(k) of k calls waiting or going on is proportional
 * to n! / (n - k)! (10 / z)^k / (k! or c! c^(k - c)). Only the mean of the turns counts, for they
 * are a station with infinitely many servers (Baskett, Chandy, Muntz and Palacios, JACM 22, 1975).
 */
static void machine_repair(int n, int c, double z, double *wait, double *busy) {
  double p = 1, sum = 0, queue = 0;
  *busy = 0;
  for (int k = 0; k <= n; ++k) {
    sum += p;
    *busy += p * fmin(k, c);
    queue += p * fmax(k - c, 0);
    p *= (n - k) * 10 / z / fmin(k + 1, c);
  }
  *busy /= sum;
  *wait = queue / sum / (*busy / 10);
}

/* Both means over 20 runs of 4,000 responses lie within 3.88 standard errors of the closed form
 * (the 99.9 % interval of Student's t with 19 degrees of freedom): six comparisons, of which one
 * fails falsely with probability 0.6 %. */
TEST(waits_are_those_of_a_closed_network) {
  static const struct {
    int n, c;
    double z;
    const char *lengths;
  } cases[] = {{12, 1, 90, "{distribution: exponential, mean: 9000}"},
               {12, 4, 20, "{distribution: lognormal, mu: 7.1009, sigma: 1}"}, /* mean 2,000 */
               {6, 1, 100, "{distribution: uniform, min: 5000, max: 15000}"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    enum { RUNS = 20 };
    double wait, busy, sum[2] = {0}, squares[2] = {0};
    char text[400];
    machine_repair(cases[i].n, cases[i].c, cases[i].z, &wait, &busy);
    snprintf(text, sizeof text,
             "{preset: fifo, unit: response, samples_per_batch: 1, samplers: 1, concurrency: %d, "
             "lengths: %s, max_tokens: 1e9, tokens_per_s: 100, environment: {turns: 2, time: "
             "{distribution: "
             "exponential, mean: 10}, places: %d}, learner: {batches: 1, step: 1e-9, "
             "publish_every: 1000000}}",
             cases[i].n, cases[i].lengths, cases[i].c);
    for (uint64_t run = 0; run < RUNS; ++run) {
      schedule s = sim_must_build(text, 100 + run, 4000);
      const double x[2] = {s.environment.wait_s, s.environment.busy};
      for (size_t k = 0; k < 2; ++k) sum[k] += x[k], squares[k] += x[k] * x[k];
    }
    for (size_t k = 0; k < 2; ++k) {
      const double mean = sum[k] / RUNS;
      const double error = sqrt((squares[k] / RUNS - mean * mean) / (RUNS - 1));
      CU_ASSERT(fabs(mean - (k == 0 ? wait : busy)) < 3.88 * error);
      CU_ASSERT(error < 0.02 * mean); /* the comparison is a strict one */
    }
  }
}

TEST(books_balance_with_environments) {
  static const char *const rules[] = {
      "preset: areal, unit: group, samplers: 3, data_delay: 9, interrupt: 2",
      "preset: verl_async, samplers: 3, mtbf: {distribution: exponential, mean: 500}, mttr: 50",
      "preset: nemo_rl, samplers: 3, oversample: 1.4, surplus: abort",
      "preset: prime_rl_08, samplers: 3, window: 2, prefill_tokens_per_s: 900",
      "preset: streamrl, samplers: 3, partial: drop",
      "preset: laminar, samplers: 3"};
  static const char *const speeds[] = {
      "tokens_per_s: 20",
      "prompt_tokens: 30, decoding: {running: [1, 32], tokens_per_s: [30, 15], kv_tokens: 5000}"};
  enum { RULES = sizeof rules / sizeof *rules };
  for (size_t i = 0; i < 4 * RULES; ++i) {
    char text[800];
    snprintf(text, sizeof text,
             "{%s, concurrency: 32, lengths: {distribution: lognormal, mu: 5.5, sigma: 1}, "
             "max_tokens: 4000, %s, "
             "environment: {turns: {distribution: uniform, min: 1, max: 6}, time: {distribution: "
             "lognormal, mu: -0.5, "
             "sigma: 1}, places: 20, slot: %s}, learner: {batches: 1, step: 4}}",
             rules[i / 2 % RULES], speeds[i / (2 * RULES)], i % 2 ? "freed" : "held");
    schedule s = sim_must_build(text, 5, 100);
    uint64_t units = 0, wrong = 0;
    for (int f = 0; f < FATES; ++f) units += s.fate[f].units;
    CU_ASSERT_EQUAL(units, s.begun);
    CU_ASSERT_EQUAL(s.fate[FATE_PENDING].units, s.pending);
    CU_ASSERT(s.environment.busy > 0 && s.environment.busy <= 20 && s.environment.wait_s >= 0);
    CU_ASSERT(s.slot_utilisation > 0 && s.slot_utilisation <= 1 + 1e-9);
    for (size_t k = 0; k < s.n_segments; ++k)
      wrong += !(s.segments[k].from >= 0 && s.segments[k].from <= s.segments[k].to &&
                 s.segments[k].to <= 1);
    CU_ASSERT_EQUAL(wrong, 0);
    ASSERT_CLOSE(s.waited_s, s.waiting_integral_s, 1e-9);
  }
}

/* Calls that take no time to speak of leave a response of one turn. */
TEST(short_calls_change_nothing) {
  static const char cluster[] =
      "{preset: verl_v1, samplers: 3, concurrency: 20, lengths: {distribution: "
      "uniform, min: 9, max: 900}, learner: {batches: 1, step: 4}";
  char with[400];
  snprintf(with, sizeof with, "%s, environment: {turns: 1, time: 50, places: 1}}", cluster);
  char without[400];
  snprintf(without, sizeof without, "%s}", cluster);
  schedule a = sim_must_build(with, 2, 40), b = sim_must_build(without, 2, 40);
  CU_ASSERT_EQUAL_FATAL(a.n_batches, b.n_batches);
  CU_ASSERT_EQUAL(a.environment.calls, 0);
  for (size_t i = 0; i < a.n_batches; ++i)
    CU_ASSERT(a.batches[i].id == b.batches[i].id &&
              fabs(a.batches[i].generated_s - b.batches[i].generated_s) < 1e-9);
}

TEST(what_environments_do_not_go_with_is_refused) {
  sim_must_refuse("{preset: verl_v1, environment: {turns: 3}}");
  sim_must_refuse("{preset: verl_v1, environment: {time: 3}}");
  sim_must_refuse("{preset: verl_v1, environment: {turns: 3, time: 3, places: 0}}");
  sim_must_refuse("{preset: verl_v1, environment: {turns: 3, time: 3, slot: shared}}");
  sim_must_refuse("{preset: sync, environment: {turns: 3, time: 3}}");
}
