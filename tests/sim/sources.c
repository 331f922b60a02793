/* Prompts from several sources, and quotas: against a second simulation (tests/golden/sources.py),
 * by hand, closed forms of what an update costs and of what is drawn, and the books. */
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

SUITE("sim: sources");

static uint64_t dropped_of(const source_report *of) {
  return of->fate[FATE_STALE] + of->fate[FATE_ABORTED] + of->fate[FATE_EVICTED] +
         of->fate[FATE_LOST];
}

static void check_case(const char *text, FILE *golden) {
  size_t updates, sources, same = 0;
  CU_ASSERT_FATAL(fscanf(golden, "%zu %zu", &updates, &sources) == 2);
  schedule s = sim_must_build(text, 11, updates);
  CU_ASSERT_EQUAL_FATAL(s.n_updates, updates);
  CU_ASSERT_EQUAL_FATAL(s.n_sources, sources);
  for (size_t u = 0; u < updates; ++u) {
    double at;
    uint64_t which, sum = 0;
    CU_ASSERT_FATAL(fscanf(golden, "%lf %" SCNu64, &at, &which) == 2);
    for (size_t k = 0; k < s.updates[u].n_batches; ++k)
      sum += (s.batches[s.updates[u].first_batch + k].number + 1) *
             (s.batches[s.updates[u].first_batch + k].number + 1);
    same += sum == which && fabs(s.updates[u].start_s - at) < 1e-9 * at;
  }
  CU_ASSERT_EQUAL(same, updates);
  for (size_t k = 0; k < sources; ++k) {
    const source_report *of = &s.sources[k];
    uint64_t begun, trained, dropped, rejected;
    int64_t staleness;
    CU_ASSERT_FATAL(fscanf(golden, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64,
                           &begun, &trained, &dropped, &rejected, &staleness) == 5);
    CU_ASSERT_EQUAL(of->begun, begun);
    CU_ASSERT_EQUAL(of->fate[FATE_TRAINED], trained);
    CU_ASSERT_EQUAL(dropped_of(of), dropped);
    CU_ASSERT_EQUAL(of->fate[FATE_REJECTED], rejected);
    CU_ASSERT_EQUAL(of->staleness, staleness);
  }
}

TEST(a_second_simulation_agrees) {
  FILE *golden = fopen("tests/golden/sources.txt", "r");
  size_t cases = 0;
  char text[1200];
  CU_ASSERT_PTR_NOT_NULL_FATAL(golden);
  for (; fscanf(golden, " %1199[^\n]", text) == 1; ++cases) check_case(text, golden);
  CU_ASSERT_EQUAL(cases, 18);
  fclose(golden);
}

/* One sampler, one group at a time, of 10 s (a) and 100 s (b), 5 s an update; an update takes three
 * of a and one of b. They are begun in the order a b a a, so that the fourth ends after 130 s; when
 * the learner has trained, all begins anew. */
static const char by_hand[] =
    "{preset: sync, unit: group, samples_per_batch: 32, samplers: 1, concurrency: 8, lengths: 9, "
    "tokens_per_s: 1, sources: [{name: a, weight: 3, lengths: 10}, {name: b, lengths: 100}], "
    "learner: {batches: 1, step: 5, quotas: true}}";

TEST(every_update_takes_its_quotas) {
  static const uint8_t order[] = {0, 1, 0, 0};
  schedule s = sim_must_build(by_hand, 1, 6);
  for (size_t i = 0; i < 6; ++i) CU_ASSERT_EQUAL(s.updates[i].end_s, 135 * (double)(i + 1));
  for (size_t i = 0; i < s.n_batches; ++i) {
    CU_ASSERT_EQUAL(s.source_of[i], order[i % 4]);
    CU_ASSERT_EQUAL(s.batches[i].tokens, s.source_of[i] == 0 ? 80 : 800);
  }
  /* the first of a waits 120 s, b 20 s, the others 10 and 0 s */
  CU_ASSERT_EQUAL(s.sources[0].waited_s, 6 * 130);
  CU_ASSERT_EQUAL(s.sources[1].waited_s, 6 * 20);
}

/* Slots that are never idle: an update takes q groups of 8 responses of each source, and of these a
 * fraction r is rejected, so that it takes sum 8 q m / (1 - r) seconds of slots, m the mean seconds
 * of a response. 1,000 updates of 16 groups; the number of groups rejected has standard deviation
 * sqrt(n r) / (1 - r) for n trained ones. Without quotas the fractions trained are those drawn that
 * are not rejected. Each comparison fails falsely with probability 6e-5. */
TEST(an_update_takes_the_slots_of_its_quotas) {
  static const double quota[] = {10, 5, 1}, mean[] = {200, 500, 2000}, reject[] = {0.1, 0.5, 0.8};
  for (int quotas = 0; quotas < 2; ++quotas) {
    char text[800];
    snprintf(
        text, sizeof text,
        "{preset: fifo, unit: group, partial: continue, kv_cache: keep, sync: push, "
        "samples_per_batch: 128, samplers: 1, concurrency: 32, lengths: 9, tokens_per_s: 20, "
        "sources: [{name: a, weight: 10, reject: 0.1, lengths: {distribution: uniform, min: 100, "
        "max: "
        "300}}, {name: b, weight: 5, reject: 0.5, lengths: {distribution: uniform, min: 250, max: "
        "750}}, {name: c, reject: 0.8, lengths: {distribution: uniform, min: 1000, max: 3000}}], "
        "learner: {batches: 1, step: 0.01, quotas: %s}}",
        quotas ? "true" : "false");
    const size_t updates = 1000;
    schedule s = sim_must_build(text, 3, updates);
    double slots = 0, variance = 0, accepted = 0;
    for (size_t k = 0; k < 3; ++k) {
      const double n = quota[k] * (double)updates, seconds = 8 * mean[k] / 20;
      slots += n * seconds / (1 - reject[k]);
      variance += n * reject[k] / (1 - reject[k]) / (1 - reject[k]) * seconds * seconds;
      accepted += quota[k] / 16 * (1 - reject[k]);
    }
    for (size_t k = 0; k < 3; ++k) {
      const double n = 16 * (double)updates, trained = (double)s.sources[k].fate[FATE_TRAINED];
      const double p = quota[k] / 16 * (1 - reject[k]) / accepted;
      if (quotas)
        CU_ASSERT_EQUAL(trained, quota[k] * (double)updates)
      else
        ASSERT_CLOSE(trained, n * p, 4 * sqrt(n * p * (1 - p)) / (n * p) + 0.003);
    }
    if (quotas) /* 0.5 %: groups in progress at the end, and lengths */
      ASSERT_CLOSE(s.clock.simulated_s * 32, slots, 4 * sqrt(variance) / slots + 0.005);
  }
}

TEST(books_balance_by_source) {
  static const char *const rules[] = {
      "preset: areal_2, delay: 3, oversample: 1.4, surplus: abort, learner: {quotas: true, ",
      "preset: prime_rl_08, window: 2, mtbf: {distribution: exponential, mean: 700}, mttr: 50, "
      "learner: {",
      "preset: verl_v1, restarts: {every: 413.7, down: 20, checkpoint_every: 3}, learner: {quotas: "
      "true, ",
      "preset: verl_v1_colocate, learner: {quotas: true, ",
      "preset: fifo, unit: group, grader: {places: 3, time: {distribution: uniform, min: 1, max: "
      "9}, "
      "timeout: 8}, learner: {quotas: "
      "true, queue: lifo, ",
      "preset: areal_2, decoding: {running: [1, 16], tokens_per_s: [30, 12]}, learner: {quotas: "
      "true, "};
  for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i) {
    char text[800];
    snprintf(
        text, sizeof text,
        "{samplers: 3, concurrency: 16, lengths: {distribution: lognormal, mu: 5, sigma: 1}, "
        "sources: "
        "[{name: a, weight: 5, reject: 0.3}, {name: b, weight: 3, lengths: {distribution: uniform, "
        "min: 200, max: 900}}], %sbatches: 1, step: 7}}",
        rules[i]);
    schedule s = sim_must_build(text, 5, 100);
    uint64_t begun = 0, fate[FATES] = {0}, trained[2] = {0};
    int64_t staleness = 0, sum = 0;
    for (size_t k = 0; k < 2; ++k) {
      begun += s.sources[k].begun;
      staleness += s.sources[k].staleness;
      for (int f = 0; f < FATES; ++f) fate[f] += s.sources[k].fate[f];
    }
    CU_ASSERT_EQUAL(begun, s.begun);
    for (int f = 0; f < FATE_PENDING; ++f) CU_ASSERT_EQUAL(fate[f], s.fate[f].units);
    for (size_t u = 0; u < s.n_updates; ++u)
      for (size_t k = 0; k < s.updates[u].n_batches; ++k) {
        const size_t at = s.updates[u].first_batch + k;
        ++trained[s.source_of[at]];
        sum += schedule_staleness(&s, &s.updates[u], &s.batches[at]);
      }
    CU_ASSERT_EQUAL(staleness, sum);
    CU_ASSERT_EQUAL(trained[0], s.sources[0].fate[FATE_TRAINED]);
    CU_ASSERT_EQUAL(trained[1], s.sources[1].fate[FATE_TRAINED]);
    CU_ASSERT_EQUAL(s.sources[1].fate[FATE_REJECTED] > 0, i == 4); /* by the time-out alone */
    if (i != 1) CU_ASSERT_EQUAL(trained[0], 500);
  }
}

TEST(what_sources_do_not_know_is_refused) {
#define TWO "sources: [{name: a}, {name: b}], "
#define GROUPS "{preset: fifo, unit: group, lengths: 9, "
  sim_must_refuse("{preset: fifo, sources: [{name: a}]}");
  sim_must_refuse(GROUPS "sources: []}");
  sim_must_refuse(GROUPS "sources: 3}");
  sim_must_refuse(GROUPS "sources: [{weight: 1}]}");
  sim_must_refuse(GROUPS "sources: [{name: a}, {name: a}]}");
  sim_must_refuse(GROUPS "sources: [{name: a, weight: 0}]}");
  sim_must_refuse(GROUPS "sources: [{name: a, reject: 1}]}");
  sim_must_refuse(GROUPS "sources: [{name: a, task: 1}]}");
  sim_must_refuse(GROUPS "learner: {quotas: true}}");
  sim_must_refuse(GROUPS "sources: [{name: a}, {name: b, weight: 2}], learner: {quotas: true}}");
  sim_must_refuse(GROUPS TWO "learner: {quotas: true, queue: oldest_version}}");
  sim_must_refuse(GROUPS TWO "learner: {quotas: true, tokens: 900}}");
  sim_must_refuse(GROUPS TWO "learner: {quotas: true, capacity: 900}}");
  sim_must_refuse("{preset: fifo, unit: group, coupled: true, " TWO "}");
#undef GROUPS
#undef TWO
}
