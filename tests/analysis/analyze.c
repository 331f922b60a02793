/* What `analyze` prints: W&B exports, several studies of a file, numbers of every size. */
#include "analysis/analyze.h"
#include "analysis/import/tell.h"

#include "tests/support/suite.h"
#include "tests/support/tables.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of one file, as `gepolab analyze FILE` does. */
static gl_status analyze_file(table *to, const char *file, gl_error *err) {
  const gather_request one = {.files = &file, .n_files = 1};
  return tell_files(to, &one, NULL, err);
}

static const char path[] = "build/analysis_analyze_test.csv";

static void write_file(const char *text) {
  FILE *f = fopen(path, "wb");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  fputs(text, f);
  CU_ASSERT_EQUAL(fclose(f), 0);
}

/* What it prints; json may be NULL. */
static char *analysed(table_form form, cJSON **json) {
  gl_error err = {0};
  table *t = table_document();
  if (analyze_file(t, path, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL(err.status, GL_OK);
  char *text = written_table(t, form);
  if (json != NULL) *json = read_table(t);
  table_free(t);
  return text;
}

static double number(const cJSON *o, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(o, key);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static const char *word(const cJSON *o, const char *key) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(o, key));
  return text != NULL ? text : "";
}

/* W&B exports --- */

static const char export_text[] = "Step,[x]a - eval/score,b - eval/score\n"
                                  "1,0.25,\n2,0.75,3\n3,0.5,1\n";

static void every_run_of_an_export_has_its_ends_and_mean(void) {
  write_file(export_text);
  cJSON *json = NULL;
  char *text = analysed(TABLE_AS_TEXT, &json);
  CU_ASSERT_STRING_EQUAL(text, "run      metric  better  n  best  at  last  at   gap  mean\n"
                               "──────────────────────────────────────────────────────────\n"
                               "a    eval/score  higher  3  0.75   2   0.5   3  0.25   0.5\n"
                               "b    eval/score  higher  2     3   2     1   3     2     2\n");
  CU_ASSERT_STRING_EQUAL(word(json, "file"), path);
  const cJSON *runs = cJSON_GetObjectItem(json, "runs"), *a = cJSON_GetArrayItem(runs, 0),
              *b = cJSON_GetArrayItem(runs, 1);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(runs), 2);
  CU_ASSERT_STRING_EQUAL(word(a, "run"), "a");
  CU_ASSERT_STRING_EQUAL(word(a, "tag"), "x");
  CU_ASSERT_STRING_EQUAL(word(a, "metric"), "eval/score");
  CU_ASSERT(number(a, "n") == 3 && number(a, "first") == 0.25 && number(a, "best") == 0.75);
  CU_ASSERT(number(a, "last") == 0.5 && number(a, "best_to_last") == 0.25);
  CU_ASSERT(number(a, "mean") == 0.5);
  CU_ASSERT(number(b, "n") == 2 && number(b, "first") == 3 && number(b, "mean") == 2);
  cJSON_Delete(json);
  free(text);
  text = analysed(TABLE_AS_MARKDOWN, NULL);
  CU_ASSERT_PTR_NOT_NULL(
      strstr(text, "| b   | eval/score | higher | 2 |    3 |  2 |    1 |  3 |    2 |    2 |\n"));
  free(text);
  unlink(path);
}

static void files_that_are_neither_a_study_nor_an_export_are_refused(void) {
  gl_error err = {0};
  table *t = table_document();
  unlink(path);
  CU_ASSERT_EQUAL(analyze_file(t, path, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot be opened"));
  gl_error_clear(&err);
  write_file("Step,a - m\n1,one\n");
  CU_ASSERT_EQUAL(analyze_file(t, path, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, ":2:3: "));
  gl_error_clear(&err);
  write_file("SQLite format 3");
  CU_ASSERT_NOT_EQUAL(analyze_file(t, path, &err), GL_OK);
  gl_error_clear(&err);
  FILE *f = fopen(path, "wb");
  fwrite("SQLite format 3\0 and no more", 1, 28, f);
  fclose(f);
  CU_ASSERT_EQUAL(analyze_file(t, path, &err), GL_EIO);
  table_free(t);
  unlink(path);
}

static void a_stream_that_fails_is_told(void) {
  gl_error err = {0};
  FILE *full = fopen("/dev/full", "w");
  if (full == NULL) SKIP("no /dev/full");
  setvbuf(full, NULL, _IONBF, 0);
  write_file(export_text);
  table *t = table_document();
  CU_ASSERT_EQUAL(analyze_file(t, path, &err), GL_OK);
  CU_ASSERT_EQUAL(table_write(t, TABLE_AS_TEXT, full, &err), GL_EIO);
  table_free(t);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is the disk full?"));
  fclose(full);
  unlink(path);
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
  unlink(path);
  CU_ASSERT_EQUAL_FATAL(store_open(&s, path, STORE_WRITE, NULL), GL_OK);
  return s;
}

/* Two values have an interval from the one to the other; a single one has none. */
static void numbers_have_the_digits_that_they_need(void) {
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
      strstr(text, "gepo                0.5     1         0  1.25  0.625  0.625\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "made: evaluation score"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "Runs: 1 done, 0 diverged, 0 failed."));
  free(text);
  unlink(path);
}

static void studies_of_one_file_are_told_apart(void) {
  store *s = new_study();
  cJSON *json = NULL;
  put_runs(s, "first", 1, 3, 0, "0.5");
  put_runs(s, "second", 1, 4, 10, "0.25");
  store_close(s);
  char *text = analysed(TABLE_AS_TEXT, &json);
  const char *first = strstr(text, "first: evaluation score"),
             *second = strstr(text, "second: evaluation score");
  CU_ASSERT_FATAL(first != NULL && second != NULL && first < second);
  const cJSON *studies = cJSON_GetObjectItem(json, "studies");
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(studies), 2);
  const cJSON *of = cJSON_GetArrayItem(studies, 1),
              *cell = cJSON_GetArrayItem(cJSON_GetObjectItem(of, "cells"), 0);
  CU_ASSERT_STRING_EQUAL(word(of, "study"), "second");
  CU_ASSERT(number(cell, "done") == 4 && number(cell, "lr") == 0.25);
  /* Of 11, 12, 13, 14 one leaves at each end. */
  ASSERT_CLOSE(number(cJSON_GetObjectItem(cell, "best"), "iqm"), 12.5, 1e-12);
  ASSERT_CLOSE(number(cJSON_GetObjectItem(cell, "last"), "iqm"), 6.25, 1e-12);
  CU_ASSERT_EQUAL(number(of, "repeats_left_out"), 0);
  cJSON_Delete(json);
  free(text);
  unlink(path);
}

SUITE(analyze, "analysis: analyze", TEST(every_run_of_an_export_has_its_ends_and_mean),
      TEST(files_that_are_neither_a_study_nor_an_export_are_refused),
      TEST(a_stream_that_fails_is_told), TEST(numbers_have_the_digits_that_they_need),
      TEST(studies_of_one_file_are_told_apart));
