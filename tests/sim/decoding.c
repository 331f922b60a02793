/* Decoding speed from load: against a second simulation (tests/golden/decoding.py), closed forms of
 * responses that are begun together and of slots that are never idle, and the books. */
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("sim: decoding");

/* Times agree to 1e-7, relative: both sum thousands of pieces. */
static void check_case(const char *text, FILE *golden) {
  size_t preemptions, n, updates, cached, same = 0;
  uint64_t ids = 0;
  CU_ASSERT_FATAL(fscanf(golden, "%zu %zu %zu %zu", &preemptions, &n, &updates, &cached) == 4);
  schedule s = sim_must_build(text, 11, updates);
  CU_ASSERT_EQUAL_FATAL(s.n_batches, n);
  for (size_t i = 0; i < n; ++i) {
    double at;
    uint64_t ordinal;
    CU_ASSERT_FATAL(fscanf(golden, "%lf %" SCNu64, &at, &ordinal) == 2);
    same += fabs(s.batches[i].generated_s - at) < 1e-7 * at;
    ids += s.batches[i].id - ordinal;
  }
  CU_ASSERT_EQUAL(ids, 0); /* which ones; those that end together have no order */
  CU_ASSERT_EQUAL(same, n);
  CU_ASSERT_EQUAL(s.decoding.preemptions, (double)preemptions);
  CU_ASSERT_EQUAL(s.decoding.cached, (double)cached);
}

TEST(a_second_simulation_agrees) {
  FILE *golden = fopen("tests/golden/decoding.txt", "r");
  size_t cases = 0;
  char text[1000];
  CU_ASSERT_PTR_NOT_NULL_FATAL(golden);
  for (; fscanf(golden, " %999[^\n]", text) == 1; ++cases) check_case(text, golden);
  CU_ASSERT_EQUAL(cases, 27);
  fclose(golden);
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* All 12 responses begin at once. Between the ends of the k-th and the next shortest, m steps pass
 * with n = 12 - k running, which take m (a(n) + c h) + c n m^2 / 2 seconds from h tokens held. */
TEST(responses_begun_together_end_at_their_closed_form) {
  enum { N = 12 };
  schedule s = sim_must_build(
      "{preset: sync, unit: response, samples_per_batch: 12, samplers: 1, concurrency: 12, "
      "lengths: "
      "{distribution: uniform, min: 10, max: 400}, prompt_tokens: 25, decoding: {running: [1, 12], "
      "tokens_per_s: [100, 50], cached_token_s: 1e-5}, learner: {batches: 1, step: 3}}",
      5, 20);
  for (size_t u = 0; u < s.n_updates; ++u) {
    double length[N], end[N], now = u > 0 ? s.updates[u - 1].end_s : 0, held = 25 * N, before = 0;
    for (size_t k = 0; k < N; ++k) length[k] = s.batches[N * u + k].tokens;
    for (size_t k = 0; k < N; ++k) end[k] = s.batches[N * u + k].generated_s;
    qsort(length, N, sizeof *length, ascending);
    qsort(end, N, sizeof *end, ascending);
    for (size_t k = 0; k < N; ++k) {
      const double n = (double)(N - k), m = length[k] - before;
      now += m * (0.01 + 0.01 * (n - 1) / 11 + 1e-5 * held) + 1e-5 * n * m * m / 2;
      held += n * m - 25 - length[k];
      before = length[k];
      ASSERT_CLOSE(end[k], now, 1e-12);
    }
  }
}

/* Slots that are never idle decode n v(n) tokens a second; the responses under way at both ends of
 * the run are less than 0.1 % of 40,000. */
TEST(full_slots_decode_at_the_measured_speed) {
  static const struct {
    int slots;
    double tokens_per_s;
  } cases[] = {
      {1, 80}, {4, 4 * 60}, {8, 8 * 40}, {16, 16 / (1 / 40.0 + 8 * (1 / 40.0 - 1 / 60.0) / 4)}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[400];
    snprintf(
        text, sizeof text,
        "{preset: pipelinerl, unit: response, samples_per_batch: 20, samplers: 1, concurrency: "
        "%d, lengths: {distribution: exponential, mean: 200}, max_tokens: 8000, decoding: "
        "{running: [1, "
        "4, 8], tokens_per_s: [80, 60, 40]}, learner: {batches: 1, step: 0.001}}",
        cases[i].slots);
    schedule s = sim_must_build(text, 3, 2000);
    double tokens = 0;
    for (size_t k = 0; k < s.n_batches; ++k) tokens += s.batches[k].tokens;
    ASSERT_CLOSE(tokens / s.clock.simulated_s, cases[i].tokens_per_s, 0.001);
    ASSERT_CLOSE(s.decoding.tokens_per_s, cases[i].tokens_per_s, 1e-12);
  }
}

/* One speed at all loads is `tokens_per_s`, whatever the rules. */
TEST(a_constant_speed_is_the_one_without_load) {
  static const char *const rules[] = {
      "preset: areal, unit: group, samplers: 3",
      "preset: areal, unit: group, samplers: 3, interrupt: 2.03, delay: 3.1, prefill_tokens_per_s: "
      "503.3, "
      "prompt_tokens: 40",
      "preset: fifo, unit: group, samplers: 3, partial: drop, delay: 3.1",
      "preset: prime_rl, samplers: 3, mtbf: {distribution: exponential, mean: 500}, mttr: 50, "
      "cancel_stale: "
      "true, window: 2",
      "preset: pipelinerl, samplers: 2, interrupt: 1.01, restarts: {at: [300, 700], down: 50, "
      "keeps: "
      "responses}",
      "preset: verl_async, samplers: 2, restarts: {every: 413.7, down: 20, keeps: queue}"};
  /* with turns of random lengths, because the order of what ends together is not the same */
  static const char *const turns[] = {
      "", "jitter: {distribution: uniform, min: 0.8, max: 1.2}, ",
      "jitter: {distribution: uniform, min: 0.8, max: 1.2}, environment: {turns: {distribution: "
      "uniform, min: 1, "
      "max: "
      "5}, time: {distribution: uniform, min: 1, max: 9}, places: 20}, ",
      "jitter: {distribution: uniform, min: 0.8, max: 1.2}, environment: {turns: {distribution: "
      "uniform, min: 1, "
      "max: "
      "5}, time: {distribution: uniform, min: 1, max: 9}, places: 20, slot: freed}, "};
  enum { RULES = sizeof rules / sizeof *rules };
  for (size_t i = 0; i < 4 * RULES; ++i) {
    schedule s[2];
    if (i / RULES == 3 && strstr(rules[i % RULES], "prefill") != NULL)
      continue; /* with a load, keys and values are computed again after a call, too */
    for (int load = 0; load < 2; ++load) {
      char text[900];
      snprintf(text, sizeof text,
               "{%s, concurrency: 16, lengths: {distribution: lognormal, mu: 5.5, sigma: 1}, %s%s, "
               "learner: "
               "{batches: 1, step: 4.07}}",
               rules[i % RULES], turns[i / RULES],
               load ? "decoding: {running: [1], tokens_per_s: [19.37]}" : "tokens_per_s: 19.37");
      s[load] = sim_must_build(text, 5, 100);
    }
    CU_ASSERT_EQUAL_FATAL(s[0].n_batches, s[1].n_batches);
    CU_ASSERT_EQUAL(s[0].begun, s[1].begun);
    ASSERT_CLOSE(s[0].slot_utilisation, s[1].slot_utilisation, 1e-6);
    ASSERT_CLOSE(s[0].recomputed_tokens, s[1].recomputed_tokens, 1e-6);
    uint64_t ids = 0;
    for (size_t k = 0; k < s[0].n_batches; ++k) {
      ids += s[0].batches[k].id - s[1].batches[k].id;
      ASSERT_CLOSE(s[0].batches[k].generated_s, s[1].batches[k].generated_s, 1e-6);
    }
    CU_ASSERT_EQUAL(ids, 0);
  }
}

/* 32 responses of four groups begin at once, each of 100 tokens after a prompt of 500: all prompts
 * that are computed take 500/2000 s each, and then 100 steps of a + c read seconds, of which read
 * grows by 32 a step. A group's responses share a prompt, which a step reads once for each of them;
 * without a cache each computes and holds its own. */
TEST(a_shared_prompt_is_computed_and_held_once) {
  static const char *const rules[] = {"free", "none", "version", "all"};
  for (size_t i = 0; i < 4; ++i) {
    char text[500];
    snprintf(
        text, sizeof text,
        "{preset: sync, unit: group, samples_per_batch: 32, samplers: 1, concurrency: 32, "
        "lengths: 100, prompt_tokens: 500, prefill_tokens_per_s: 2000, decoding: {running: "
        "[32], tokens_per_s: [25], cached_token_s: 1e-6, prefix_cache: %s}, learner: {batches: "
        "1, step: 3}}",
        rules[i]);
    schedule s = sim_must_build(text, 5, 4);
    const double computed = i == 0 ? 0 : i == 1 ? 32 : 4;
    const double round =
        computed * 500 / 2000 + 100 * (0.04 + 1e-6 * 500 * 32) + 1e-6 * 32 * 100 * 100 / 2 + 3;
    ASSERT_CLOSE(s.clock.simulated_s, 4 * round, 1e-9);
    CU_ASSERT_EQUAL(s.decoding.prefills, i > 0);
    CU_ASSERT_EQUAL(s.decoding.cached, i < 2 ? 0 : 4 * 28 * 500);
    CU_ASSERT_EQUAL(s.decoding.prompts, i == 0 ? 0 : 4 * 32 * 500);
  }
}

/* One response at a time, new weights after each: a group's prompt is computed for every response
 * where versions do not share it, and once where they do. */
TEST(new_weights_empty_the_cache_unless_versions_share_it) {
  static const char *const rules[] = {"version", "all"};
  for (size_t i = 0; i < 2; ++i) {
    char text[500];
    snprintf(text, sizeof text,
             "{preset: sync, unit: response, samples_per_batch: 1, samplers: 1, concurrency: 1, "
             "lengths: 100, prompt_tokens: 500, prefill_tokens_per_s: 2000, decoding: {running: "
             "[1], tokens_per_s: [25], prefix_cache: %s}, learner: {batches: 1, step: 3}}",
             rules[i]);
    schedule s = sim_must_build(text, 5, 24);
    ASSERT_CLOSE(s.clock.simulated_s, 24 * (100 / 25.0 + 3) + (i == 0 ? 24 : 3) * 0.25, 1e-9);
  }
}

typedef struct waits {
  size_t n, open;
  double seconds, prefill_s;
} waits;

static void note_wait(void *self, const schedule_span *s) {
  waits *w = self;
  if (s->kind == SPAN_PREFILL) w->prefill_s += s->to_s - s->from_s;
  if (s->kind != SPAN_PREEMPTED) return;
  ++w->n;
  w->open += s->end == SPAN_OPEN;
  w->seconds += s->to_s - s->from_s;
}

/* Whatever the rules, everything begun has a fate, preempted responses are seen in a trace, and
 * less memory takes longer. */
TEST(books_balance_where_responses_are_preempted) {
  static const char *const rules[] = {
      "preset: areal, samplers: 2, unit: group, interrupt: 2, delay: 3",
      "preset: fifo, samplers: 2, unit: group, partial: drop, delay: 30",
      "preset: fifo, samplers: 2, unit: group, sync: pull, delay: 30",
      ("preset: prime_rl_08, samplers: 2, window: 2, mtbf: {distribution: exponential, mean: 500}, "
       "mttr: 50"),
      "preset: pipelinerl, samplers: 2, restarts: {at: [300, 700], down: 50, keeps: responses}"};
  for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i) {
    double seconds[2];
    for (int tight = 0; tight < 2; ++tight) {
      char text[700];
      cluster_spec *spec;
      schedule s, traced;
      waits w = {0};
      const schedule_trace trace = {&w, note_wait};
      snprintf(text, sizeof text,
               "{%s, concurrency: 24, lengths: {distribution: lognormal, mu: 5.5, sigma: 0.8}, "
               "max_tokens: "
               "2000, prompt_tokens: 50, prefill_tokens_per_s: 5000, decoding: {running: [1, 24], "
               "tokens_per_s: [40, 20], kv_tokens: %s}, learner: {batches: 1, step: 4}}",
               rules[i], tight ? "2500" : "1e9");
      ASSERT_OK(sim_build(&s, &spec, text, 5, 60, &err));
      uint64_t units = 0;
      for (int f = 0; f < FATES; ++f) units += s.fate[f].units;
      CU_ASSERT_EQUAL(units, s.begun);
      CU_ASSERT_EQUAL(s.fate[FATE_PENDING].units, s.pending);
      CU_ASSERT(s.slot_utilisation > 0 && s.slot_utilisation <= 1);
      CU_ASSERT_EQUAL(s.decoding.preemptions > 0, tight == 1);
      CU_ASSERT_EQUAL(s.decoding.preempted_tokens > 0, tight == 1);
      ASSERT_OK(schedule_build_traced(&traced, spec, 5, 60, &trace, &err));
      CU_ASSERT_EQUAL(traced.clock.simulated_s, s.clock.simulated_s);
      CU_ASSERT_EQUAL(w.n > w.open && w.seconds > 0, tight == 1);
      seconds[tight] = s.clock.simulated_s;
      schedule_fini(&traced);
    }
    CU_ASSERT(seconds[1] > 1.05 * seconds[0]);
  }
}

/* The same with prompts and a cache, also where turns free their slots: the prefills in a trace are
 * those of prompts not in the cache and of what preempted and returned responses compute again. */
TEST(books_balance_where_prompts_are_cached) {
  static const char *const rules[] = {
      "preset: areal, samplers: 2, unit: group, interrupt: 2, delay: 3",
      "preset: fifo, samplers: 2, unit: group, partial: drop, delay: 30",
      "preset: fifo, samplers: 2, unit: response, sync: pull, delay: 30",
      "preset: prime_rl_08, samplers: 2, window: 2, mtbf: {distribution: exponential, mean: 500}, "
      "mttr: 50",
      "preset: fifo, unit: group, samplers: 2, partial: wait, environment: {turns: {distribution: "
      "uniform, "
      "min: 1, max: 5}, time: 9, places: 20, slot: freed}",
      "preset: fifo, unit: group, samplers: 2, restarts: {every: 413.7, down: 20, keeps: queue}"};
  for (size_t i = 0; i < 3 * (sizeof rules / sizeof *rules); ++i) {
    char text[700];
    cluster_spec *spec;
    schedule s, traced;
    waits w = {0};
    const schedule_trace trace = {&w, note_wait};
    const char *cache = i % 3 == 0 ? "none" : i % 3 == 1 || i < 3 ? "version" : "all";
    snprintf(text, sizeof text,
             "{%s, concurrency: 24, lengths: {distribution: lognormal, mu: 5.5, sigma: 0.8}, "
             "max_tokens: "
             "2000, prompt_tokens: 350, prefill_tokens_per_s: 5000, kv_cache: %s, decoding: "
             "{running: [1, 24], tokens_per_s: [40, 20], kv_tokens: 4500, prefix_cache: %s}, "
             "learner: {batches: 1, step: 4}}",
             rules[i / 3], i / 3 == 3 ? "keep" : "recompute", i / 3 == 0 ? "version" : cache);
    ASSERT_OK(sim_build(&s, &spec, text, 5, 60, &err));
    uint64_t units = 0;
    for (int f = 0; f < FATES; ++f) units += s.fate[f].units;
    CU_ASSERT_EQUAL(units, s.begun);
    CU_ASSERT(s.slot_utilisation > 0 && s.slot_utilisation <= 1);
    CU_ASSERT(s.decoding.preemptions > 0);
    CU_ASSERT_EQUAL(s.decoding.cached > 0, i / 3 == 0 || i % 3 > 0);
    CU_ASSERT(s.decoding.cached < s.decoding.prompts);
    ASSERT_OK(schedule_build_traced(&traced, spec, 5, 60, &trace, &err));
    CU_ASSERT_EQUAL(traced.clock.simulated_s, s.clock.simulated_s);
    const double computed = s.decoding.prompts - s.decoding.cached + s.decoding.preempted_tokens;
    ASSERT_CLOSE(w.prefill_s, computed / 5000, 1e-9);
    schedule_fini(&traced);
  }
}

TEST(what_the_section_does_not_know_is_refused) {
#define IN_GROUPS "{preset: areal, unit: group, max_tokens: 1000, prompt_tokens: 100, "
  sim_must_refuse("{preset: areal, lengths: 9, decoding: {running: [1], tokens_per_s: [9]}}");
  sim_must_refuse(IN_GROUPS "tokens_per_s: 9, decoding: {running: [1], tokens_per_s: [9]}}");
  sim_must_refuse(IN_GROUPS "decoding: {running: [1, 2], tokens_per_s: [9]}}");
  sim_must_refuse(IN_GROUPS "decoding: {running: [2, 1], tokens_per_s: [9, 8]}}");
  sim_must_refuse(IN_GROUPS "decoding: {running: [1, 2], tokens_per_s: [9, 0]}}");
  sim_must_refuse(IN_GROUPS "decoding: {running: [], tokens_per_s: []}}");
  sim_must_refuse(IN_GROUPS "decoding: {running: [1]}}");
  sim_must_refuse(IN_GROUPS "decoding: {}}");
  sim_must_refuse(IN_GROUPS "decoding: {file: none.csv}}");
  sim_must_refuse(IN_GROUPS "decoding: {running: [1], tokens_per_s: [9], kv_tokens: 1099}}");
  sim_must_refuse(IN_GROUPS "decoding: {running: [1], tokens_per_s: [9], flops: 1e12}}");
  sim_must_refuse(IN_GROUPS "decoding: {kind: roofline, parameters: 1e9, flops: 1e12}}");
  sim_must_refuse(IN_GROUPS "decoding: {kind: roofline, parameters: 1e9, flops: 1e12, "
                            "memory_bandwidth: 1e12, running: [1]}}");
  sim_must_refuse(IN_GROUPS "decoding: {kind: roofline, parameters: 1e9, flops: 1e12, "
                            "memory_bandwidth: 1e12, memory: 1e9}}");
  sim_must_refuse(IN_GROUPS "decoding: {running: [1], tokens_per_s: [9], prefix_cache: on}}");
  sim_must_refuse(IN_GROUPS "decoding: {running: [1], tokens_per_s: [9], prefix_cache: none}}");
  sim_must_refuse(IN_GROUPS "prefill_tokens_per_s: 900, partial: continue, kv_cache: recompute, "
                            "decoding: {running: [1], tokens_per_s: [9], prefix_cache: all}}");
#undef IN_GROUPS
}
