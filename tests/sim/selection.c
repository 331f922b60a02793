/* What became of what was drawn: counts that must add up, and what rules about stale data promise.
 */
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

SUITE("sim: selection");

static const char slow[] =
    "lengths: {distribution: lognormal, mu: 5, sigma: 1}, prompt_lengths: {distribution: "
    "lognormal, mu: 0, sigma: "
    "0.7}, "
    "tokens_per_s: 5, concurrency: 24, delay: {distribution: exponential, mean: 9}, samplers: 3";

static uint64_t sum_of(const uint64_t *count, size_t n) {
  uint64_t sum = 0;
  for (size_t k = 0; k < n; ++k) sum += count[k];
  return sum;
}

static uint64_t drawn_of(const schedule *s) {
  uint64_t drawn = 0;
  for (int f = 0; f < FATES; ++f) drawn += s->fate[f].units;
  return drawn;
}

TEST(every_unit_has_one_fate) {
  static const char *const rules[] = {
      "unit: group, window: 2", "unit: response, partial: drop, window: 3",
      "unit: group, learner: {capacity: 80, step: 600}",
      "window: 2, learner: {capacity: 2, step: 600}",
      ("unit: group, mtbf: {distribution: exponential, mean: 800}, mttr: 30, "
       "up: {loss: 0.1, max_retries: 0}")};
  for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i) {
    char text[700];
    snprintf(text, sizeof text, "{preset: fifo, %s, %s}", slow, rules[i]);
    schedule s = sim_must_build(text, 4, 120);
    CU_ASSERT_EQUAL(drawn_of(&s), s.begun);
    CU_ASSERT_EQUAL(s.fate[FATE_PENDING].units, s.pending);
    CU_ASSERT_EQUAL((double)s.fate[FATE_TRAINED].units, s.clock.batches_trained);
    CU_ASSERT_EQUAL((double)s.fate[FATE_LOST].units, s.clock.batches_lost);
    CU_ASSERT_EQUAL(s.fate[FATE_ABORTED].units, s.aborted);
    CU_ASSERT_EQUAL((double)(s.fate[FATE_STALE].units + s.fate[FATE_EVICTED].units + s.aborted),
                    s.clock.batches_dropped);
    CU_ASSERT((s.fate[FATE_EVICTED].units > 0) == (strstr(rules[i], "capacity") != NULL));
    CU_ASSERT_EQUAL(s.weight_sum, s.clock.batches_trained);
    double tokens = 0;
    for (size_t k = 0; k < s.n_batches; ++k) tokens += s.batches[k].tokens;
    CU_ASSERT_EQUAL(s.fate[FATE_TRAINED].tokens, tokens);
    for (int f = 0; f < FATES; ++f) {
      CU_ASSERT_EQUAL(sum_of(s.fate[f].by_length, LENGTH_CLASSES), s.fate[f].units);
      CU_ASSERT_EQUAL(sum_of(s.fate[f].by_prompt, PROMPT_CLASSES), i == 3 ? 0 : s.fate[f].units);
    }
  }
}

TEST(classes_are_those_of_the_longest_response) {
  schedule s = sim_must_build(
      "{preset: sync, unit: group, lengths: {distribution: uniform, min: 30, max: 70}}", 4, 50);
  uint64_t expected[LENGTH_CLASSES] = {0};
  for (size_t i = 0; i < s.n_batches; ++i) ++expected[s.batches[i].longest < 64 ? 5 : 6];
  CU_ASSERT(expected[5] > 10 && expected[6] > 10);
  for (size_t k = 0; k < LENGTH_CLASSES; ++k)
    CU_ASSERT_EQUAL(s.fate[FATE_TRAINED].by_length[k], expected[k]);
}

/* The quarters of the distribution of prompts hold a quarter of what is drawn each, within four
 * standard deviations of a binomial; of what a window lets through the slow ones hold less. */
TEST(a_window_starves_slow_prompts) {
  char text[700];
  snprintf(text, sizeof text, "{preset: fifo, unit: group, partial: continue, %s, window: 2}",
           slow);
  schedule s = sim_must_build(text, 4, 300);
  const double n = (double)s.begun;
  double before = 2;
  for (size_t k = 0; k < PROMPT_CLASSES; ++k) {
    uint64_t drawn = 0;
    for (int f = 0; f < FATES; ++f) drawn += s.fate[f].by_prompt[k];
    CU_ASSERT(fabs((double)drawn - n / 4) < 4 * sqrt(n * 3 / 16));
    const double share = (double)s.fate[FATE_TRAINED].by_prompt[k] / (double)drawn;
    CU_ASSERT(share < before);
    before = share;
  }
  CU_ASSERT(before < 0.5);
  CU_ASSERT(s.fate[FATE_TRAINED].longest / (double)s.fate[FATE_TRAINED].units <
            0.7 * s.fate[FATE_STALE].longest / (double)s.fate[FATE_STALE].units);
}

/* Nothing is thrown away for its age, and nothing is older than the window, whatever the network
 * and the samplers do. */
TEST(waiting_keeps_every_unit_within_the_window) {
  static const char *const units[] = {"batch", "group", "response"};
  for (size_t i = 0; i < 12; ++i) {
    const int ahead = (int)(i % 4);
    char text[900];
    snprintf(text, sizeof text,
             "{preset: fifo, %s, unit: %s, ahead: %d, window: %d, stale: wait, data_delay: "
             "{distribution: "
             "exponential, mean: 40}, mtbf: {distribution: exponential, mean: 1500}, mttr: 60, up: "
             "{loss: 0.05, "
             "max_retries: 0}, learner: {queue: oldest_version, step: 6, batches: %zu}}",
             slow, units[i % 3], ahead, ahead + (int)(i % 2), 1 + i % 2);
    schedule s = sim_must_build(text, 4, 150);
    CU_ASSERT_EQUAL(s.n_updates, 150);
    CU_ASSERT(s.clock.staleness_max <= ahead + (double)(i % 2));
    CU_ASSERT_EQUAL(s.fate[FATE_STALE].units, 0);
    CU_ASSERT(s.clock.batches_lost > 0);
  }
}

/* The same cluster that discards throws much away, so waiting is what keeps it. */
TEST(without_waiting_the_window_throws_away) {
  char text[700];
  snprintf(text, sizeof text,
           "{preset: fifo, %s, unit: group, ahead: 2, data_delay: {distribution: exponential, "
           "mean: 40}, "
           "learner: "
           "{queue: oldest_version, step: 6}}",
           slow);
  schedule s = sim_must_build(text, 4, 150);
  CU_ASSERT(s.fate[FATE_STALE].units > 20);
}

TEST(stale_units_can_be_trained_with_less_weight) {
  char text[700];
  snprintf(text, sizeof text,
           "{preset: fifo, %s, unit: group, window: 2, stale: downweight, stale_decay: 0.25}",
           slow);
  schedule s = sim_must_build(text, 4, 150);
  double weights = 0;
  for (size_t i = 0; i < s.n_staleness; ++i)
    weights += (double)s.staleness[i] * pow(0.25, fmax(0, (double)i - 2));
  CU_ASSERT(s.n_staleness > 4);
  CU_ASSERT_EQUAL(s.fate[FATE_STALE].units, 0);
  ASSERT_CLOSE(s.weight_sum, weights, 1e-9);
}

/* An update takes 1000 s, a batch 100: of those that wait, a full queue keeps the newest, or the
 * first that came. All are of the learner's version or one less, and the older ones go first. */
TEST(a_full_queue_evicts_as_it_is_told) {
  static const struct {
    const char *evict;
    double second; /* arrival of the second update's batch */
  } cases[] = {{"oldest", 900}, {"newest", 200}, {"stalest", 900}};
  for (size_t i = 0; i < 3; ++i) {
    char text[300];
    snprintf(
        text, sizeof text,
        "{preset: fifo, samplers: 1, generation: 100, learner: {step: 1000, capacity: 3, evict: "
        "%s}}",
        cases[i].evict);
    schedule s = sim_must_build(text, 1, 3);
    CU_ASSERT_EQUAL(s.batches[0].arrived_s, 100);
    CU_ASSERT_EQUAL(s.batches[1].arrived_s, cases[i].second);
  }
}

TEST(rules_about_stale_data_that_contradict_others_are_refused) {
  sim_must_refuse("{preset: fifo, stale: wait, window: 3}");
  sim_must_refuse(
      "{preset: fifo, stale: wait, ahead: 4, window: 3, learner: {queue: oldest_version}}");
  sim_must_refuse("{preset: fifo, stale: wait, ahead: 4, window: 4}");
  sim_must_refuse("{preset: fifo, stale: downweight}");
  sim_must_refuse("{preset: heterorl, stale: downweight}");
  sim_must_refuse("{preset: fifo, window: 3, stale_decay: 0.5}");
  sim_must_refuse("{preset: fifo, learner: {evict: newest}}");
}
