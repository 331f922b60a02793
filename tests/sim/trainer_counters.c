/* The staleness counters of trainers: against an independent count from the schedule's events
 * (tests/golden/definitions.py), and by hand where only one cause of staleness is there. */
#include "sim/trainer_counters.h"

#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

SUITE("sim: definitions of staleness");

static const staleness_definition *definition_named(const char *name, size_t *at) {
  for (*at = 0; staleness_definition_at(*at) != NULL; ++*at)
    if (strcmp(staleness_definition_at(*at)->name, name) == 0) return staleness_definition_at(*at);
  return NULL;
}

static void read_cluster(staleness_reading out[STALENESS_DEFINITIONS], const char *text,
                         uint64_t seed, size_t updates, size_t optimiser) {
  schedule s;
  cluster_spec *spec;
  ASSERT_OK(sim_build(&s, &spec, text, seed, updates, &err));
  ASSERT_OK(staleness_read(out, &s, spec, seed, optimiser, &err));
}

TEST(counters_agree_with_a_count_from_the_events) {
  static const struct {
    const char *cluster;
    uint64_t seed;
    size_t updates, optimiser;
  } cases[] = {
      {"{preset: sync, samplers: 2}", 1, 20, 1},
      {"{preset: fifo, samplers: 3, generation: {distribution: lognormal, mu: 3, sigma: 1}, delay: "
       "30, "
       "learner: {step: 9}}",
       2, 60, 4},
      {"{preset: areal, samplers: 3, generation: {distribution: lognormal, mu: 3, sigma: 1}, "
       "lengths: {distribution: "
       "lognormal, mu: 4, sigma: 1}, prompt_lengths: {distribution: lognormal, mu: 0, sigma: 0.5}, "
       "tokens_per_s: 20, delay: 3, learner: {step: 9}}",
       3, 60, 1},
      {"{preset: areal, samplers: 3, unit: group, concurrency: 24, lengths: {distribution: "
       "lognormal, mu: "
       "6, sigma: 0.8}, tokens_per_s: 40, delay: 2, kv_cache: keep, learner: {batches: 1, step: "
       "5}}",
       4, 80, 2},
      {"{preset: verl_async, samplers: [{count: 2}, {count: 1, speed: 0.4}], concurrency: 16, "
       "lengths: {distribution: lognormal, mu: 6, sigma: 0.8}, tokens_per_s: 40, kv_cache: "
       "recompute, "
       "learner: {batches: 1, step: 4}}",
       5, 80, 1},
      {"{preset: pipelinerl, samplers: 2, unit: response, concurrency: 32, lengths: {distribution: "
       "lognormal, mu: 6, sigma: 0.8}, tokens_per_s: 40, kv_cache: recompute, learner: {batches: "
       "1, step: 6}}",
       6, 40, 3},
      {"{preset: fifo, samplers: 2, unit: group, partial: wait, concurrency: 32, lengths: 300, "
       "tokens_per_s: 40, learner: {batches: 1, step: 3}}",
       7, 50, 1}};
  FILE *golden = fopen("tests/golden/definitions.txt", "r");
  staleness_reading found[STALENESS_DEFINITIONS];
  double mean, max;
  CU_ASSERT_PTR_NOT_NULL_FATAL(golden);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    read_cluster(found, cases[i].cluster, cases[i].seed, cases[i].updates, cases[i].optimiser);
    for (size_t d = 0; d < STALENESS_DEFINITIONS; ++d) {
      CU_ASSERT_FATAL(fscanf(golden, "%lf %lf", &mean, &max) == 2);
      if (fabs(found[d].mean - mean) > 1e-12 * fmax(1, fabs(mean)) || found[d].max != max)
        fprintf(stderr, "case %zu, %s: %.17g %.17g, not %.17g %.17g\n", i + 1,
                staleness_definition_at(d)->name, found[d].mean, found[d].max, mean, max);
      ASSERT_CLOSE(found[d].mean, mean, 1e-12 * fmax(1, fabs(mean)));
      CU_ASSERT_EQUAL(found[d].max, max);
    }
  }
  CU_ASSERT(fscanf(golden, "%lf", &mean) != 1);
  fclose(golden);
}

/* Sums of the tokens of runs, by unit, against those that the clock sent. */
typedef struct token_sums {
  const schedule_batch *unit;
  double tokens, longest, of_response;
  size_t response, units;
} token_sums;

static void end_unit_sums(token_sums *t) {
  if (t->unit == NULL) return;
  ASSERT_CLOSE(t->tokens, t->unit->tokens, 1e-9 * t->unit->tokens);
  ++t->units;
}

static void add_tokens(void *self, const token_run *run) {
  token_sums *t = self;
  if (run->unit != t->unit) {
    end_unit_sums(t);
    *t = (token_sums){.unit = run->unit, .units = t->units};
  }
  t->tokens += run->tokens;
}

TEST(runs_have_the_tokens_that_the_clock_sent) {
  static const char *const cases[] = {
      ("{preset: areal, samplers: 3, lengths: {distribution: lognormal, mu: 4, sigma: 1}, "
       "prompt_lengths: {distribution: lognormal, mu: 0, sigma: 0.5}, tokens_per_s: 20, delay: 3, "
       "learner: {step: 9}}"),
      ("{preset: pipelinerl, samplers: [{count: 1, lengths: 20}, {count: 1, lengths: "
       "{distribution: lognormal, mu: 4, sigma: 1}}], unit: group, prompt_lengths: {distribution: "
       "lognormal, mu: 0, sigma: 0.5}, concurrency: 32, learner: {batches: 1, step: 6}}"),
      ("{preset: pipelinerl, samplers: 2, unit: response, concurrency: 32, lengths: {distribution: "
       "lognormal, mu: 4, sigma: 1}, learner: {batches: 1, step: 6}}")};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    schedule s;
    cluster_spec *spec;
    token_sums sums = {0};
    ASSERT_OK(sim_build(&s, &spec, cases[i], 5, 40, &err));
    ASSERT_OK(schedule_token_runs(&s, spec, 5, add_tokens, &sums, &err));
    end_unit_sums(&sums);
    CU_ASSERT_EQUAL(sums.units, s.n_batches);
  }
}

static double mean_of(const staleness_reading *r, const char *name) {
  size_t at;
  CU_ASSERT_PTR_NOT_NULL_FATAL(definition_named(name, &at));
  return r[at].mean;
}

/* Generation takes 1 s, an update 10 s, weights no time: all units of four updates are generated at
 * once and wait, so that from the fourth update on each is three versions old. */
TEST(a_queue_moves_all_but_versions_within_a_response) {
  staleness_reading r[STALENESS_DEFINITIONS];
  read_cluster(
      r,
      "{preset: sync, unit: group, partial: continue, ahead: 3, concurrency: 1024, lengths: "
      "100, tokens_per_s: 100, learner: {batches: 1, step: 10}}",
      1, 400, 1);
  const double expected = (0 + 1 + 2 + 397 * 3) / 400.0;
  ASSERT_CLOSE(mean_of(r, "gepolab/staleness"), expected, 1e-12);
  ASSERT_CLOSE(mean_of(r, "verl_v1/trajectory_staleness"), expected, 1e-12);
  ASSERT_CLOSE(mean_of(r, "miles/rollout/fully_async/staleness"), expected, 1e-12);
  ASSERT_CLOSE(mean_of(r, "prime_rl/off_policy/in_queue"), expected, 1e-12);
  ASSERT_CLOSE(mean_of(r, "prime_rl/off_policy/in_flight"), 0, 0);
  ASSERT_CLOSE(mean_of(r, "verl_v1/trajectory_spans"), 1, 0);
  ASSERT_CLOSE(mean_of(r, "pipelinerl/stats/lag"), 64 * expected, 1e-9);
}

/* On-policy, with four optimiser updates an update: only what counts these moves. */
TEST(optimiser_updates_move_what_counts_them) {
  staleness_reading r[STALENESS_DEFINITIONS];
  read_cluster(r, "{preset: sync, samplers: 2}", 1, 20, 4);
  for (size_t i = 0; i < STALENESS_DEFINITIONS; ++i) {
    const char *name = staleness_definition_at(i)->name;
    const double expected = strcmp(name, "gepolab/staleness_updates") == 0         ? 1.5
                            : strcmp(name, "areal/sample_staleness_proximal") == 0 ? -1
                            : strcmp(name, "verl_v1/trajectory_spans") == 0        ? 1
                                                                                   : 0;
    ASSERT_CLOSE(r[i].mean, expected, 0);
  }
}
