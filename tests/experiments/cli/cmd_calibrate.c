/* gepolab calibrate on logs whose truth is planted: constants, one distribution that changes, and
 * the clock itself. */
#include "experiments/recipe/recipe.h"
#include "sim/schedule.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("cli: calibrate");

enum { STEPS = 120 };

/* What changes after the first half. */
typedef struct planted {
  double generation, sync, trainer; /* factors */
  bool is_constant;
} planted;

/* The i-th of a sequence that fills (0, 1) evenly, so that both halves have one distribution. */
static double even(int i, double offset) {
  return fmod(0.5 + offset + 0.6180339887498949 * i, 1);
}

/* Seconds of a log-logistic distribution with this median. */
static double seconds_of(double u, double median, double shape) {
  return median * pow(u / (1 - u), 1 / shape);
}

/* verl's file logger: parts of a step in turn. */
static void write_planted(const char *path, const planted *p) {
  FILE *to = fopen(path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (int i = 0; i < STEPS; ++i) {
    const bool after = i >= STEPS / 2 && p != NULL;
    const bool constant = p != NULL && p->is_constant;
    const double g = constant ? 30 : seconds_of(even(i, 0), 30, 8) * (after ? p->generation : 1);
    const double s = constant ? 2 : seconds_of(even(i, 0.3), 2, 6) * (after ? p->sync : 1);
    const double t = constant ? 18 : seconds_of(even(i, 0.7), 18, 12) * (after ? p->trainer : 1);
    fprintf(to,
            "{\"step\":%d,\"data\":{\"timing_s/step\":%.9g,\"timing_s/gen\":%.9g,"
            "\"timing_s/update_weights\":%.9g,\"timing_s/update_actor\":%.9g,"
            "\"training/off_policy/trajectory_staleness/mean\":0}}\n",
            i + 1, g + s + t, g, s, t);
  }
  CU_ASSERT_EQUAL(fclose(to), 0);
}

#define SYNC                                                                                       \
  "quickstart", "cluster={preset: sync, samplers: 1}", "train.groups=4", "train.group_size=4"

static const cJSON *calibrate_row(const cJSON *page, const char *table, const char *key,
                                  const char *name) {
  const cJSON *row = NULL;
  cJSON_ArrayForEach(row, cJSON_GetObjectItem(page, table)) {
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItem(row, key));
    if (found != NULL && strcmp(found, name) == 0) return row;
  }
  fprintf(stderr, "no row %s in %s\n", name, table);
  CU_FAIL_FATAL("a row is missing");
  return NULL;
}

static double prediction(const cJSON *page, const char *quantity, const char *member) {
  const cJSON *row = calibrate_row(page, "predictions", "quantity", quantity);
  const cJSON *value = cJSON_GetObjectItem(row, member);
  return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

/* 30 + 2 + 18 s: the clock of parts in turn takes their sum, and 16 responses in 50 s are 0.32/s.
 */
TEST(constants_are_predicted_exactly) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  write_planted(cli_path(path, folder, "log.jsonl"), &(planted){.is_constant = true});
  cJSON *j = CLI_JSON("calibrate", path, SYNC, "--json", "--seeds", "2");
  CU_ASSERT(fabs(prediction(j, "seconds of a step", "predicted") - 50) < 1e-6);
  CU_ASSERT(fabs(prediction(j, "throughput", "predicted") - 0.32) < 1e-9);
  CU_ASSERT(prediction(j, "seconds of a step", "mape") < 1e-9);
  CU_ASSERT_EQUAL(prediction(j, "staleness", "predicted"), 0);
  CU_ASSERT(isnan(prediction(j, "seconds of a step", "correlation"))); /* a constant has none */
  CU_ASSERT_PTR_NULL(cJSON_GetStringValue(cJSON_GetObjectItem(j, "wrong_first")));
}

/* Where the recipe does not state the batches of an update, they are the preset's: one a sampler.
 */
TEST(batches_of_an_update_are_those_of_the_cluster) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  write_planted(cli_path(path, folder, "log.jsonl"), &(planted){.is_constant = true});
  cJSON *j = CLI_JSON("calibrate", path, "quickstart", "cluster={preset: sync, samplers: 4}",
                      "--json", "--seeds", "2");
  CU_ASSERT(fabs(prediction(j, "seconds of a step", "predicted") - 50) < 1e-6);
}

/* One distribution of the second half is another one: it is named, and no other. */
TEST(the_distribution_that_changes_is_named) {
  static const struct {
    planted p;
    const char *wrong;
  } cases[] = {{{1, 1, 1, false}, NULL},
               {{1.3, 1, 1, false}, "cluster.generation"},
               {{1, 2, 1, false}, "cluster.delay"},
               {{1, 1, 0.8, false}, "cluster.learner.step"},
               {{1.3, 2, 0.8, false}, "cluster.generation"}};
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "log.jsonl");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    write_planted(path, &cases[i].p);
    cJSON *j = CLI_JSON("calibrate", path, SYNC, "--json", "--seeds", "8");
    const char *wrong = cJSON_GetStringValue(cJSON_GetObjectItem(j, "wrong_first"));
    CU_ASSERT_EQUAL(wrong != NULL, cases[i].wrong != NULL);
    if (wrong != NULL && cases[i].wrong != NULL) CU_ASSERT_STRING_EQUAL(wrong, cases[i].wrong);
    const double error = prediction(j, "seconds of a step", "error");
    if (cases[i].wrong == NULL) CU_ASSERT(fabs(error) < 0.03);
  }
  cli_result r = CLI("calibrate", path, SYNC, "--seeds", "2");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(
      strstr(r.out, "Wrong first: cluster.generation. Its values after step 60"));
  CU_ASSERT(cli_fits(r.out, strlen(r.out)));
}

/* The log's own steps are printed, a line that is cut off is told, and so is where a value that the
 * recipe refuses is from. */
TEST(the_log_is_named_as_it_is) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "log.jsonl");
  write_planted(path, &(planted){.is_constant = true});
  FILE *to = fopen(path, "a");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (int i = 0; i < 2; ++i)
    fprintf(to, "{\"step\":%d,\"data\":{\"timing_s/step\":50%s", i + 500, i == 0 ? "}}\n" : "");
  CU_ASSERT_EQUAL(fclose(to), 0);
  cli_result r = CLI("calibrate", path, SYNC, "--seeds", "2");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "Steps 61 to 500."));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "the last line is cut off and was left out"));
  r = CLI("diagnose", path);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "the last line is cut off and was left out"));
  r = CLI("calibrate", path, "quickstart", "--seeds", "2");
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "the recipe refuses a value that was fitted to the log"));
}

/* --- the clock as the truth: three samplers that the learner does not wait for in turn --- */

#define FIFO                                                                                       \
  "{preset: fifo, samplers: 3, generation: {distribution: gamma, shape: 4, scale: 10}, delay: 3, " \
  "learner: {step: {distribution: gamma, shape: 25, scale: 0.6}}}"

/* A log of the simulated run, as prime-rl's file monitor would write it. */
static void write_clock(const char *path, const char *cluster, size_t steps) {
  const char *overrides[3] = {cluster, "train.groups=4", "seed=77"};
  cfg_doc *doc = NULL;
  recipe r;
  cluster_spec *spec = NULL;
  schedule s = {0};
  ASSERT_OK(recipe_load(&doc, "quickstart", overrides, 3, &err));
  ASSERT_OK(recipe_read(&r, doc, &err));
  ASSERT_OK(cluster_parse(&spec, r.cluster, r.groups, r.group_size, &err));
  ASSERT_OK(schedule_build(&s, spec, r.seed, steps, &err));
  FILE *to = fopen(path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  double before = 0;
  for (size_t i = 0; i < s.n_updates; ++i) {
    const schedule_update *u = &s.updates[i];
    const schedule_batch *b = &s.batches[u->first_batch];
    fprintf(to,
            "{\"step\": %zu, \"time\": %.3f, \"time/step\": %.9g, \"timing_s/gen\": %.9g, "
            "\"time/broadcast_weights\": 3.0, \"time/forward_backward\": %.9g, "
            "\"off_policy/mean\": %lld}\n",
            i + 1, 1.79e9 + u->end_s, u->end_s - before, (b->generated_s - b->start_s) / 3,
            u->end_s - u->start_s, (long long)schedule_staleness(&s, u, b));
    before = u->end_s;
  }
  CU_ASSERT_EQUAL(fclose(to), 0);
  schedule_fini(&s);
  cluster_free(spec);
  cfg_free(doc);
}

/* With the structure of the recipe right, seconds and staleness of the rest are predicted; with a
 * wrong number of samplers no distribution is blamed. 400 steps of one seed: the standard error of
 * the mean step is about 2 %, and 8 % is four of them. */
TEST(a_run_of_the_clock_is_predicted) {
  char folder[64], path[128], fitted[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "metrics.jsonl"), cli_path(fitted, folder, "fitted.yaml");
  write_clock(path, "cluster=" FIFO, 400);
  cJSON *j = CLI_JSON("calibrate", path, "quickstart", "cluster={preset: fifo, samplers: 3}",
                      "train.groups=4", "--json", "-o", fitted);
  CU_ASSERT(fabs(prediction(j, "seconds of a step", "error")) < 0.08);
  CU_ASSERT(fabs(prediction(j, "staleness", "error")) < 0.15);
  CU_ASSERT_PTR_NULL(cJSON_GetStringValue(cJSON_GetObjectItem(j, "wrong_first")));
  CU_ASSERT(CLI_GIVES(0, "sim", fitted, "steps=8"));
  j = CLI_JSON("calibrate", path, "quickstart", "cluster={preset: sync, samplers: 1}",
               "train.groups=4", "--json");
  CU_ASSERT_PTR_NULL(cJSON_GetStringValue(cJSON_GetObjectItem(j, "wrong_first")));
  CU_ASSERT(fabs(prediction(j, "seconds of a step", "error")) > 0.1);
}

TEST(what_cannot_be_calibrated_is_refused) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "log.jsonl");
  REFUSED(2, "40 are needed", "calibrate", "tests/golden/second_logs/verl.jsonl", SYNC);
  REFUSED(2, "series of the seconds of a step", "calibrate",
          "tests/golden/trainer_logs/prime_rl/run-a/metrics.jsonl", SYNC);
  write_planted(path, NULL);
  REFUSED(2, "--first 2", "calibrate", path, SYNC, "--first", "2");
  REFUSED(2, "no cluster", "calibrate", path, "quickstart", "cluster=null");
}
