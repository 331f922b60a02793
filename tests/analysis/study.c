/* Analysis of study files: what is pooled, what is told apart, tables and correlations. */
#include "analysis/analyze.h"
#include "analysis/import/tell.h"
#include "analysis/summary.h"
#include "tests/support/suite.h"
#include "tests/support/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of one file, as `gepolab analyze FILE` does. */
static gl_status analyze_file(table *to, const char *file, gl_error *err) {
  const gather_request one = {.files = &file, .n_files = 1};
  return tell_files(to, &one, NULL, err);
}

static const char path[] = "build/analysis_study_test.db";

/* Two algorithms x delays {none, 600} x five seeds. Evaluations peak at 0.5 + seed / 100 and end
 * 0.1 * (1 + algorithm) lower; the first update is on policy, where the log variance is -inf. */
static void put_run_of(store *s, metric kl, size_t algorithm, size_t delay, uint64_t seed,
                       const char *swept) {
  static const char *const names[] = {"grpo", "gepo"};
  double peak = 0.5 + (double)seed / 100.0;
  eval_record evals[] = {{0, 0, 0.1}, {2, 2, peak}, {3, 3, peak - 0.1 * (double)(1 + algorithm)}};
  step_record steps[3];
  for (int i = 0; i < 3; i++) {
    steps[i] = (step_record){.step = i + 1, .time_s = i};
    metrics_clear(steps[i].metric);
    steps[i].metric[kl] = (double)delay + 0.1 * (double)algorithm;
    steps[i].metric[METRIC_LOG_IW_VARIANCE_PQ] =
        i == 0 ? -INFINITY : (double)delay - 0.1 * (double)algorithm;
  }
  char key[33], recipe[64];
  size_t ordinal = (delay * 2 + algorithm) * 5 + (size_t)seed;
  snprintf(key, sizeof key, "%032zx", ordinal);
  snprintf(recipe, sizeof recipe, "{\"name\":\"run %zu\",\"seed\":%llu}", ordinal,
           (unsigned long long)seed);
  const uint64_t staleness[] = {1, 2};
  run_record run = {.key = key,
                    .ordinal = (int64_t)ordinal,
                    .study = "made",
                    .algorithm = names[algorithm],
                    .swept = swept,
                    .recipe = recipe,
                    .code_version = "0",
                    .machine = "",
                    .seed = seed,
                    .lr = 0.01,
                    .status = algorithm == 1 && seed == 0 ? RUN_DIVERGED : RUN_DONE,
                    .reason = "",
                    .clock = {.samples_per_s = 8},
                    .steps = steps,
                    .n_steps = 3,
                    .evals = evals,
                    .n_evals = 3,
                    .staleness = staleness,
                    .n_staleness = 2};
  gl_error err = {0};
  CU_ASSERT_EQUAL(store_put_run(s, &run, &err), GL_OK);
}

static void put_run(store *s, metric kl, size_t algorithm, size_t delay, uint64_t seed) {
  static const char *const swept[] = {"{\"cluster.max_delay\":\"none\"}",
                                      "{\"cluster.max_delay\":600}"};
  put_run_of(s, kl, algorithm, delay, seed, swept[delay]);
}

static store *made_study(metric kl) {
  store *s = NULL;
  gl_error err = {0};
  unlink(path);
  CU_ASSERT_EQUAL_FATAL(store_open(&s, path, STORE_WRITE, &err), GL_OK);
  for (size_t delay = 0; delay < 2; delay++)
    for (size_t algorithm = 0; algorithm < 2; algorithm++)
      for (uint64_t seed = 0; seed < 5; seed++) put_run(s, kl, algorithm, delay, seed);
  return s;
}

static void a_study_is_summarised_cell_by_cell(void) {
  store *s = made_study(METRIC_KL_EXACT);
  results *r = NULL;
  summary sum;
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(results_load(&r, s, NULL, &err), GL_OK);
  CU_ASSERT_EQUAL_FATAL(summary_init(&sum, r, &err), GL_OK);
  CU_ASSERT(r->n_algorithms == 2 && r->n_groups == 2 && r->n_runs == 20 && sum.n_cells == 4);
  CU_ASSERT_STRING_EQUAL(r->axis_label, "max delay [s]");
  CU_ASSERT(r->groups[0].delay == 0.0 && r->groups[1].delay == 600.0);
  CU_ASSERT(r->runs[0].n_staleness == 2 && r->runs[0].staleness[1] == 2);
  const cell_summary *gepo = &sum.cells[3];
  CU_ASSERT(gepo->done == 4 && gepo->diverged == 1 && gepo->failed == 0 && gepo->lr_low == 0.01);
  /* Peaks 0.50 .. 0.54: one value leaves at each end and the middle three average 0.52. */
  ASSERT_CLOSE(gepo->best.value, 0.52, 1e-12);
  ASSERT_CLOSE(gepo->last.value, 0.32, 1e-12);
  ASSERT_CLOSE(gepo->best_to_last.value, 0.2, 1e-12);
  CU_ASSERT(gepo->best.low < 0.52 && gepo->best.high > 0.52);
  ASSERT_CLOSE(gepo->metric[CELL_LOG_IW_VARIANCE_PQ].value, 0.9, 1e-12);
  CU_ASSERT(isnan(gepo->metric[CELL_ESTIMATION_ERROR].value));
  /* Delays 0 0 600 600 against KL 0 0.1 1 1.1: rank correlation 2 / sqrt 5. KL against log
   * variance 0 -0.1 1 0.9: squared rank differences 1 1 1 1, so 1 - 6 * 4 / 60. */
  ASSERT_CLOSE(sum.relations[0].spearman.fisher.value, 2.0 / sqrt(5.0), 1e-12);
  ASSERT_CLOSE(sum.relations[1].spearman.fisher.value, 0.6, 1e-12);
  /* Within an algorithm five runs at each of two delays, all alike: two distinct pairs, which would
   * have rho 1 whatever they are. */
  CU_ASSERT_EQUAL(sum.within[0].spearman.n, 10);
  CU_ASSERT(isnan(sum.within[0].spearman.fisher.value));
  CU_ASSERT_STRING_EQUAL(sum.within[0].spearman.why, "fewer than 4 distinct pairs");
  summary_fini(&sum);
  results_free(r);
  store_close(s);
  unlink(path);
}

/* A transformer's study: KL is known from samples only. */
static void without_exact_kl_its_estimate_takes_the_place(void) {
  store *s = made_study(METRIC_KL_K3_SEQ);
  results *r = NULL;
  summary sum;
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(results_load(&r, s, NULL, &err), GL_OK);
  CU_ASSERT_EQUAL_FATAL(summary_init(&sum, r, &err), GL_OK);
  CU_ASSERT_EQUAL(sum.kl, METRIC_KL_K3_SEQ);
  CU_ASSERT_STRING_EQUAL(sum.relations[0].y, "kl_k3_seq");
  ASSERT_CLOSE(sum.relations[0].spearman.fisher.value, 2.0 / sqrt(5.0), 1e-12);
  ASSERT_CLOSE(sum.cells[3].metric[CELL_KL].value, 1.1, 1e-12);
  summary_fini(&sum);
  results_free(r);
  store_close(s);
  unlink(path);
}

static void a_study_without_delays_has_no_correlation_with_them(void) {
  store *s = NULL;
  results *r = NULL;
  summary sum;
  gl_error err = {0};
  unlink(path);
  CU_ASSERT_EQUAL_FATAL(store_open(&s, path, STORE_WRITE, &err), GL_OK);
  for (uint64_t seed = 0; seed < 5; seed++) put_run_of(s, METRIC_KL_EXACT, 0, 0, seed, "{}");
  CU_ASSERT_EQUAL_FATAL(results_load(&r, s, NULL, &err), GL_OK);
  CU_ASSERT_EQUAL_FATAL(summary_init(&sum, r, &err), GL_OK);
  CU_ASSERT(isnan(sum.relations[0].spearman.fisher.value));
  CU_ASSERT_STRING_EQUAL(sum.relations[0].spearman.why,
                         "the study sweeps neither cluster.max_delay nor cluster.delay");
  summary_fini(&sum);
  results_free(r);
  store_close(s);
  unlink(path);
}

static void a_study_is_told_by_its_content_and_printed_in_every_format(void) {
  store_close(made_study(METRIC_KL_EXACT));
  const char *signs[] = {"──", "|:---|", "\\toprule"};
  for (table_form f = TABLE_AS_TEXT; f < TABLE_FOR_PEOPLE; f++) {
    gl_error err = {0};
    table *t = table_document();
    CU_ASSERT_EQUAL(analyze_file(t, path, &err), GL_OK);
    char *text = written_table(t, f);
    cJSON *json = read_table(t);
    table_free(t);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, signs[f]));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "0.520 ["));
    CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(json, "cells")), 4);
    CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(json, "correlations")), 2);
    CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(json, "correlations_within")), 4);
    const cJSON *within = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "correlations_within"), 0);
    CU_ASSERT(cJSON_IsNull(cJSON_GetObjectItem(within, "spearman")));
    CU_ASSERT_STRING_EQUAL(cJSON_GetStringValue(cJSON_GetObjectItem(within, "why")),
                           "fewer than 4 distinct pairs");
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "– (fewer than 4 distinct pairs)"));
    cJSON_Delete(json);
    free(text);
  }
  unlink(path);
}

SUITE(study, "analysis: studies", TEST(a_study_is_summarised_cell_by_cell),
      TEST(without_exact_kl_its_estimate_takes_the_place),
      TEST(a_study_without_delays_has_no_correlation_with_them),
      TEST(a_study_is_told_by_its_content_and_printed_in_every_format));
