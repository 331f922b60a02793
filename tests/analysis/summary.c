/* Analysis of study files: which runs are pooled, which are separate cells, tables and
 * correlations. */
#include "analysis/summary.h"
#include "analysis/import/report.h"
#include "tests/support/files.h"
#include "tests/support/json.h"
#include "tests/support/suite.h"
#include "tests/support/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("analysis: studies");

/* Of one file, as `gepolab analyze FILE` does. */
static gl_status analyze_file(table *to, const char *file, gl_error *err) {
  const gather_request one = {.files = &file, .n_files = 1};
  return report_analysis(to, &one, NULL, err);
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
    steps[i].metric[METRIC_LOSS] = steps[i].metric[METRIC_GRAD_NORM] = 1;
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
  unlink(path);
  ASSERT_OK(store_open(&s, path, STORE_WRITE, &err));
  for (size_t delay = 0; delay < 2; delay++)
    for (size_t algorithm = 0; algorithm < 2; algorithm++)
      for (uint64_t seed = 0; seed < 5; seed++) put_run(s, kl, algorithm, delay, seed);
  return s;
}

TEST(a_study_is_summarised_cell_by_cell) {
  store *s = made_study(METRIC_KL_EXACT);
  results *r = NULL;
  summary sum;
  ASSERT_OK(results_load(&r, s, NULL, &err));
  ASSERT_OK(summary_init(&sum, r, &err));
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
  /* Four cells have no interval. */
  CU_ASSERT(sum.relations[1].spearman.n == 4 && isnan(sum.relations[1].spearman.fisher.low) &&
            isnan(sum.relations[1].spearman.bootstrap.high));
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
TEST(without_exact_kl_its_estimate_takes_the_place) {
  store *s = made_study(METRIC_KL_K3_SEQ);
  results *r = NULL;
  summary sum;
  ASSERT_OK(results_load(&r, s, NULL, &err));
  ASSERT_OK(summary_init(&sum, r, &err));
  CU_ASSERT_EQUAL(sum.kl, METRIC_KL_K3_SEQ);
  CU_ASSERT_STRING_EQUAL(sum.relations[0].y, "kl_k3_seq");
  ASSERT_CLOSE(sum.relations[0].spearman.fisher.value, 2.0 / sqrt(5.0), 1e-12);
  ASSERT_CLOSE(sum.cells[3].metric[CELL_KL].value, 1.1, 1e-12);
  summary_fini(&sum);
  results_free(r);
  store_close(s);
  unlink(path);
}

TEST(a_study_without_delays_has_no_correlation_with_them) {
  store *s = NULL;
  results *r = NULL;
  summary sum;
  unlink(path);
  ASSERT_OK(store_open(&s, path, STORE_WRITE, &err));
  for (uint64_t seed = 0; seed < 5; seed++) put_run_of(s, METRIC_KL_EXACT, 0, 0, seed, "{}");
  ASSERT_OK(results_load(&r, s, NULL, &err));
  ASSERT_OK(summary_init(&sum, r, &err));
  CU_ASSERT(isnan(sum.relations[0].spearman.fisher.value));
  CU_ASSERT_STRING_EQUAL(sum.relations[0].spearman.why,
                         "the study sweeps neither cluster.max_delay nor cluster.delay");
  summary_fini(&sum);
  results_free(r);
  store_close(s);
  unlink(path);
}

TEST(a_study_is_told_by_its_content_and_printed_in_every_format) {
  store_close(made_study(METRIC_KL_EXACT));
  const char *signs[] = {"──", "|:---|", "\\toprule"};
  for (table_format f = TABLE_AS_TEXT; f < TABLE_COMMAND_FORMATS; f++) {
    table *t = table_document();
    ASSERT_OK(analyze_file(t, path, &err));
    char *text = written_table(t, f);
    cJSON *json = read_table(t);
    table_free(t);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, signs[f]));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "0.520 ["));
    CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(json, "cells")), 4);
    CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(json, "correlations")), 2);
    CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(json, "correlations_within")), 4);
    const cJSON *within = cJSON_GetArrayItem(member_at(json, "correlations_within"), 0);
    CU_ASSERT(cJSON_IsNull(member_at(within, "spearman")));
    CU_ASSERT_STRING_EQUAL(text_at(within, "why"), "fewer than 4 distinct pairs");
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "– (fewer than 4 distinct pairs)"));
    cJSON_Delete(json);
    free(text);
  }
  unlink(path);
}

/* --- What `analyze` prints: W&B exports, several studies of a file, numbers of every size --- */

SUITE("analysis: analyze");

static const char csv[] = "build/analysis_analyze_test.csv";

/* What it prints; json may be NULL. */
static char *analysed(table_format form, cJSON **json) {
  gl_error err = {0};
  table *t = table_document();
  if (analyze_file(t, csv, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL(err.status, GL_OK);
  char *text = written_table(t, form);
  if (json != NULL) *json = read_table(t);
  table_free(t);
  return text;
}

/* W&B exports --- */

static const char export_text[] = "Step,[x]a - eval/score,b - eval/score\n"
                                  "1,0.25,\n2,0.75,3\n3,0.5,1\n";

TEST(every_run_of_an_export_has_its_ends_and_mean) {
  files_put(csv, export_text);
  cJSON *json = NULL;
  char *text = analysed(TABLE_AS_TEXT, &json);
  CU_ASSERT_STRING_EQUAL(text, "run      metric  better  n  best  at  last  at   gap  run mean\n"
                               "──────────────────────────────────────────────────────────────\n"
                               "a    eval/score  higher  3  0.75   2   0.5   3  0.25       0.5\n"
                               "b    eval/score  higher  2     3   2     1   3     2         2\n");
  CU_ASSERT_STRING_EQUAL(text_at(json, "file"), csv);
  const cJSON *runs = member_at(json, "runs"), *a = cJSON_GetArrayItem(runs, 0),
              *b = cJSON_GetArrayItem(runs, 1);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(runs), 2);
  CU_ASSERT_STRING_EQUAL(text_at(a, "run"), "a");
  CU_ASSERT_STRING_EQUAL(text_at(a, "tag"), "x");
  CU_ASSERT_STRING_EQUAL(text_at(a, "metric"), "eval/score");
  CU_ASSERT(number_at(a, "n") == 3 && number_at(a, "first") == 0.25 &&
            number_at(a, "best") == 0.75);
  CU_ASSERT(number_at(a, "last") == 0.5 && number_at(a, "best_to_last") == 0.25);
  CU_ASSERT(number_at(a, "mean") == 0.5);
  CU_ASSERT(number_at(b, "n") == 2 && number_at(b, "first") == 3 && number_at(b, "mean") == 2);
  cJSON_Delete(json);
  free(text);
  text = analysed(TABLE_AS_MARKDOWN, NULL);
  CU_ASSERT_PTR_NOT_NULL(strstr(
      text, "| b   | eval/score | higher | 2 |    3 |  2 |    1 |  3 |    2 |        2 |\n"));
  free(text);
  unlink(csv);
}

TEST(what_is_not_finite_is_counted_and_never_best) {
  files_put(csv, "step,gepo,grpo,gspo\n0,0.1,0.1,0.1\n1,0.5,0.6,0.3\n2,nan,inf,inf\n3,NaN,0.4,\n");
  cJSON *json = NULL;
  char *text = analysed(TABLE_AS_TEXT, &json);
  const cJSON *runs = member_at(json, "runs"), *gepo = cJSON_GetArrayItem(runs, 0),
              *grpo = cJSON_GetArrayItem(runs, 1), *gspo = cJSON_GetArrayItem(runs, 2);
  CU_ASSERT(number_at(gepo, "best") == 0.5 && number_at(gepo, "not_finite") == 2);
  CU_ASSERT(cJSON_IsNull(member_at(gepo, "last")) && cJSON_IsNull(member_at(gepo, "best_to_last")));
  CU_ASSERT(cJSON_IsTrue(member_at(gepo, "ends_not_finite")));
  CU_ASSERT(number_at(grpo, "best") == 0.6 && number_at(grpo, "last") == 0.4);
  CU_ASSERT(number_at(grpo, "not_finite") == 1 &&
            cJSON_IsFalse(member_at(grpo, "ends_not_finite")));
  CU_ASSERT(number_at(gspo, "best") == 0.3 && cJSON_IsTrue(member_at(gspo, "ends_not_finite")));
  ASSERT_CLOSE(number_at(grpo, "mean"), 1.1 / 3, 1e-12);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "not finite: values that are NaN or infinite"));
  cJSON_Delete(json);
  free(text);
  unlink(csv);
}

TEST(files_that_are_neither_a_study_nor_an_export_are_refused) {
  gl_error err = {0};
  table *t = table_document();
  unlink(csv);
  CU_ASSERT_EQUAL(analyze_file(t, csv, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot be opened"));
  gl_error_clear(&err);
  files_put(csv, "Step,a - m\n1,one\n");
  CU_ASSERT_EQUAL(analyze_file(t, csv, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, ":2:3: "));
  gl_error_clear(&err);
  files_put(csv, "SQLite format 3");
  CU_ASSERT_NOT_EQUAL(analyze_file(t, csv, &err), GL_OK);
  gl_error_clear(&err);
  FILE *f = fopen(csv, "wb");
  fwrite("SQLite format 3\0 and no more", 1, 28, f);
  fclose(f);
  CU_ASSERT_EQUAL(analyze_file(t, csv, &err), GL_EIO);
  table_free(t);
  unlink(csv);
}

TEST(a_stream_that_fails_is_told) {
  gl_error err = {0};
  FILE *full = fopen("/dev/full", "w");
  if (full == NULL) SKIP("no /dev/full");
  setvbuf(full, NULL, _IONBF, 0);
  files_put(csv, export_text);
  table *t = table_document();
  CU_ASSERT_EQUAL(analyze_file(t, csv, &err), GL_OK);
  CU_ASSERT_EQUAL(table_write(t, TABLE_AS_TEXT, full, &err), GL_EIO);
  table_free(t);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is the disk full?"));
  fclose(full);
  unlink(csv);
}

/* --- studies --- */

/* Runs whose best evaluation is `peak` plus the seed and whose last is half of it. */
static void put_runs(store *s, const char *study, uint64_t first, uint64_t n, double peak,
                     const char *lr) {
  for (uint64_t seed = first; seed < first + n; ++seed) {
    eval_record evals[] = {{0, 0, peak + (double)seed}, {1, 1, (peak + (double)seed) / 2}};
    char key[40], recipe[96];
    snprintf(key, sizeof key, "%.1s%031llu", study, (unsigned long long)seed);
    snprintf(recipe, sizeof recipe, "{\"optimizer\":{\"lr\":%s},\"seed\":%llu}", lr,
             (unsigned long long)seed);
    run_record run = {.key = key,
                      .ordinal = (int64_t)seed,
                      .study = study,
                      .algorithm = "gepo",
                      .swept = "{}",
                      .recipe = recipe,
                      .code_version = "0",
                      .machine = "",
                      .seed = seed,
                      .lr = strtod(lr, NULL),
                      .status = RUN_DONE,
                      .reason = "",
                      .evals = evals,
                      .n_evals = 2};
    gl_error err = {0};
    CU_ASSERT_EQUAL(store_put_run(s, &run, &err), GL_OK);
    if (err.text[0] != '\0') fprintf(stderr, "%s\n", err.text);
  }
}

static store *new_study(void) {
  store *s = NULL;
  unlink(csv);
  CU_ASSERT_EQUAL_FATAL(store_open(&s, csv, STORE_WRITE, NULL), GL_OK);
  return s;
}

/* Two values have an interval from the one to the other; a single one has none. */
TEST(numbers_have_the_digits_that_they_need) {
  store *s = new_study();
  put_runs(s, "made", 1, 2, 1000, "0.5");
  store_close(s);
  char *text = analysed(TABLE_AS_TEXT, NULL);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "1002 [1001, 1002]"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "500.8 [500.5, 501]"));
  free(text);
  s = new_study();
  put_runs(s, "made", 1, 1, 0.25, "0.5");
  store_close(s);
  text = analysed(TABLE_AS_TEXT, NULL);
  CU_ASSERT_PTR_NOT_NULL(
      strstr(text, "gepo             –  0.5     1          0  1.25  0.625  0.625\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "made: evaluation score"));
  CU_ASSERT(table_says(text, "Runs: 1, of which 0 collapsed (--table outcomes); with fewer than 5 "
                             "evaluations, in which no fall can be found: 1; 0 failed."));
  free(text);
  unlink(csv);
}

TEST(studies_of_one_file_are_told_apart) {
  store *s = new_study();
  cJSON *json = NULL;
  put_runs(s, "first", 1, 3, 0, "0.5");
  put_runs(s, "second", 1, 4, 10, "0.25");
  store_close(s);
  char *text = analysed(TABLE_AS_TEXT, &json);
  const char *first = strstr(text, "first: evaluation score"),
             *second = strstr(text, "second: evaluation score");
  CU_ASSERT_FATAL(first != NULL && second != NULL && first < second);
  const cJSON *studies = member_at(json, "studies");
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(studies), 2);
  const cJSON *of = cJSON_GetArrayItem(studies, 1),
              *cell = cJSON_GetArrayItem(member_at(of, "cells"), 0);
  CU_ASSERT_STRING_EQUAL(text_at(of, "study"), "second");
  CU_ASSERT(number_at(cell, "done") == 4 && number_at(cell, "lr") == 0.25);
  /* Of 11, 12, 13, 14 one leaves at each end. */
  ASSERT_CLOSE(number_at(cell, "best.iqm"), 12.5, 1e-12);
  ASSERT_CLOSE(number_at(cell, "last.iqm"), 6.25, 1e-12);
  CU_ASSERT_EQUAL(number_at(of, "repeats_left_out"), 0);
  cJSON_Delete(json);
  free(text);
  unlink(csv);
}

/* Its first evaluation is its best and its last, which would be a gap of nothing. */
TEST(a_run_that_ended_as_nan_has_no_gap_and_is_counted) {
  store *s = new_study();
  eval_record evals[] = {{0, 0, 0.9}};
  step_record steps[2];
  for (int i = 0; i < 2; i++) {
    steps[i] = (step_record){.step = i + 1};
    metrics_clear(steps[i].metric);
    steps[i].metric[METRIC_LOSS] = NAN;
  }
  run_record run = {.key = "n0000000000000000000000000000009",
                    .ordinal = 9,
                    .study = "made",
                    .algorithm = "gepo",
                    .swept = "{}",
                    .recipe = "{\"optimizer\":{\"lr\":0.5},\"seed\":9}",
                    .code_version = "0",
                    .machine = "",
                    .seed = 9,
                    .lr = 0.5,
                    .status = RUN_DIVERGED,
                    .reason = "loss not finite",
                    .steps = steps,
                    .n_steps = 2,
                    .evals = evals,
                    .n_evals = 1};
  put_runs(s, "made", 1, 2, 0, "0.5");
  ASSERT_OK(store_put_run(s, &run, NULL));
  store_close(s);
  cJSON *json = NULL;
  char *text = analysed(TABLE_AS_TEXT, &json);
  const cJSON *cell = cJSON_GetArrayItem(member_at(json, "cells"), 0);
  CU_ASSERT(number_at(cell, "not_finite") == 1 && number_at(cell, "diverged") == 1);
  /* Of 1 and 2: gaps of a half and of one. */
  ASSERT_CLOSE(number_at(cell, "best_to_last.iqm"), 0.75, 1e-12);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "not finite at their end: 1, which have no last score"));
  cJSON_Delete(json);
  free(text);
  unlink(csv);
}
