/* Studies: what is put comes back, whole and in order, to one writer and any number of readers. */
#include "tests/support/core.h"
#include "tests/support/suite.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

SUITE("core: store");

/* A study of its own for each test. */
typedef struct fixture {
  scratch at;
  char path[SCRATCH_PATH_SIZE];
  store *s;
} fixture;

static void fixture_make(fixture *f) {
  scratch_make(&f->at);
  f->s = store_opened(scratch_path(&f->at, "study.db", f->path), STORE_WRITE);
}

static void fixture_remove(fixture *f) {
  store_close(f->s);
  scratch_remove(&f->at);
}

/* The exported table; the caller frees. */
static char *exported(store *s, const char *table, const char *format) {
  char *text = NULL;
  size_t size;
  gl_error err = {0};
  FILE *to = open_memstream(&text, &size);
  if (store_export(s, table, format, to, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(err.status, GL_OK);
  fclose(to);
  return text;
}

static void check_export(store *s, const char *table, const char *format, const char *wanted) {
  char *text = exported(s, table, format);
  if (strcmp(text, wanted) != 0) fprintf(stderr, "%s as %s:\n%s", table, format, text);
  CU_ASSERT_STRING_EQUAL(text, wanted);
  free(text);
}

/* The study's tables agree with their checksums, or what is said of the first that does not. */
static void check_verified(store *s, const char *says) {
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(store_begin_reading(s, NULL), GL_OK);
  gl_status status = store_verify(s, NULL, &err);
  store_end_reading(s);
  if (says == NULL && status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL(status, says == NULL ? GL_OK : GL_EIO);
  if (says != NULL) CU_ASSERT_PTR_NOT_NULL(strstr(err.text, says));
}

TEST(a_run_reads_back_as_it_was_put) {
  fixture f;
  fixture_make(&f);
  store_put_samples(f.s, 1, 2, 10);
  store_close(f.s);
  f.s = store_opened(f.path, STORE_READ);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM runs"), 2);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM steps"), 20);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM steps WHERE ess IS NULL"), 20);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT loss FROM steps t JOIN runs r ON r.id = t.run WHERE "
                                    "r.ordinal = 2 AND t.step = 3"),
                  2 + 1 / 3.0);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT learner_utilisation FROM clock"), 1 / 3.0);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT max(count) FROM staleness"), 0x1p40);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT wall_s FROM runs WHERE machine = 'test'"), 1);
  fixture_remove(&f);
}

TEST(putting_a_run_again_replaces_all_of_it) {
  fixture f;
  fixture_make(&f);
  store_put_samples(f.s, 1, 3, 20);
  store_put_samples(f.s, 2, 2, 5);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM runs"), 3);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM steps"), 45);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM evals"), 6);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM clock"), 3);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM steps WHERE run NOT IN "
                                    "(SELECT id FROM runs)"),
                  0);
  fixture_remove(&f);
}

/* Two steps of the same number break the table's key half way through the run. */
TEST(a_run_that_cannot_be_put_whole_leaves_the_old_one) {
  static sample_run bad;
  fixture f;
  gl_error err = {0};
  fixture_make(&f);
  store_put_samples(f.s, 1, 1, 20);
  sample_run_init(&bad, 1, 9);
  bad.steps[8].step = 3;
  CU_ASSERT_EQUAL(store_put_run(f.s, &bad.run, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, f.path));
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM steps"), 20);
  store_put_samples(f.s, 2, 2, 9); /* and the study still takes runs */
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM steps"), 29);
  fixture_remove(&f);
}

TEST(done_and_diverged_runs_are_finished_and_failed_ones_are_not) {
  static const run_status statuses[] = {RUN_FAILED, RUN_DIVERGED, RUN_DONE};
  static sample_run sample;
  fixture f;
  fixture_make(&f);
  sample_run_init(&sample, 1, 2);
  CU_ASSERT_FALSE(store_has_finished(f.s, sample.key, sample.recipe));
  for (int i = 0; i < 3; ++i) {
    sample.run.status = statuses[i];
    sample.run.reason = i == 0 ? "out of memory" : NULL; /* NULL counts as "" */
    CU_ASSERT_EQUAL(store_put_run(f.s, &sample.run, NULL), GL_OK);
    CU_ASSERT_EQUAL(store_has_finished(f.s, sample.key, sample.recipe), i != 0);
  }
  CU_ASSERT_FALSE(store_has_finished(f.s, sample.key, "{\"seed\":7}"));
  sample.run.recipe = "{\"seed\":7}"; /* the hash of two recipes collides: never silently */
  gl_error err = {0};
  CU_ASSERT_EQUAL(store_put_run(f.s, &sample.run, &err), GL_EINTERNAL);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, sample.key));
  fixture_remove(&f);
}

TEST(a_chosen_learning_rate_is_kept_and_replaced) {
  fixture f;
  fixture_make(&f);
  CU_ASSERT_EQUAL(store_put_tuned(f.s, "s", "gepo", 0.1, 0.5, NULL), GL_OK);
  CU_ASSERT_EQUAL(store_put_tuned(f.s, "s", "grpo", 1e-5, NAN, NULL), GL_OK);
  CU_ASSERT_EQUAL(store_put_tuned(f.s, "s", "gepo", 0.3, 0.75, NULL), GL_OK);
  check_export(f.s, "tuned", "tsv",
               "study\talgorithm\tlr\tscore\n"
               "s\tgepo\t0.3\t0.75\n"
               "s\tgrpo\t1e-05\t\n");
  fixture_remove(&f);
}

/* --- export --- */

/* A run with everything that needs quoting, and every kind of number. */
static void put_awkward(store *s) {
  static sample_run sample;
  sample_run_init(&sample, 4, 2);
  sample.run.key = "k4";
  sample.run.algorithm = "a,b";
  sample.run.status = RUN_FAILED;
  sample.run.reason = "line 1\nsaid \"no\"\there";
  sample.run.lr = 1e-300;
  sample.evals[0].time_s = INFINITY;
  sample.evals[1].eval_score = -INFINITY;
  ASSERT_OK(store_put_run(s, &sample.run, &err));
}

#define RUN_HEADER "study,ordinal,key,algorithm,seed,optimizer.lr"

TEST(exported_runs_are_quoted_as_rfc_4180_says) {
  fixture f;
  fixture_make(&f);
  put_awkward(f.s);
  check_export(f.s, "runs", "csv",
               RUN_HEADER
               ",status,reason,code_version,meaning\n"
               "s,4,k4,\"a,b\",4,1e-300,failed,\"line 1\nsaid \"\"no\"\"\there\",1.0,1\n");
  check_export(f.s, "recipes", "csv", "key,recipe\nk4,\"{\"\"seed\"\":4}\"\n");
  check_export(f.s, "runs", "tsv",
               "study\tordinal\tkey\talgorithm\tseed\toptimizer.lr\tstatus\treason\t"
               "code_version\tmeaning\n"
               "s\t4\tk4\ta,b\t4\t1e-300\tfailed\t\"line 1\nsaid \"\"no\"\"\there\"\t1.0\t1\n");
  check_export(
      f.s, "runs", "jsonl",
      "{\"study\":\"s\",\"ordinal\":4,\"key\":\"k4\",\"algorithm\":\"a,b\","
      "\"seed\":4,\"optimizer.lr\":1e-300,\"status\":\"failed\","
      "\"reason\":\"line 1\\nsaid \\\"no\\\"\\there\",\"code_version\":\"1.0\",\"meaning\":1}\n");
  check_export(f.s, "recipes", "jsonl", "{\"key\":\"k4\",\"recipe\":\"{\\\"seed\\\":4}\"}\n");
  fixture_remove(&f);
}

TEST(exported_numbers_are_shortest_and_nan_is_empty_or_null) {
  fixture f;
  fixture_make(&f);
  put_awkward(f.s);
  check_export(f.s, "evals", "csv",
               RUN_HEADER ",step,time_s,eval_score\n"
                          "s,4,k4,\"a,b\",4,1e-300,0,inf,0.5\n"
                          "s,4,k4,\"a,b\",4,1e-300,2,3,-inf\n");
  check_export(f.s, "staleness", "csv",
               RUN_HEADER ",staleness,count\n"
                          "s,4,k4,\"a,b\",4,1e-300,0,3\n"
                          "s,4,k4,\"a,b\",4,1e-300,1,0\n"
                          "s,4,k4,\"a,b\",4,1e-300,2,1099511627776\n");
  store_put_samples(f.s, 1, 1, 1);
  check_export(f.s, "evals", "jsonl",
               "{\"study\":\"s\",\"ordinal\":1,\"key\":\"cf699e59dcd11da05f38cf8c74c91a3b\","
               "\"algorithm\":\"gepo\",\"seed\":1,\"optimizer.lr\":0.1,\"step\":0,"
               "\"time_s\":0,\"eval_score\":0.5}\n"
               "{\"study\":\"s\",\"ordinal\":1,\"key\":\"cf699e59dcd11da05f38cf8c74c91a3b\","
               "\"algorithm\":\"gepo\",\"seed\":1,\"optimizer.lr\":0.1,\"step\":1,"
               "\"time_s\":1.5,\"eval_score\":null}\n"
               "{\"study\":\"s\",\"ordinal\":4,\"key\":\"k4\",\"algorithm\":\"a,b\","
               "\"seed\":4,\"optimizer.lr\":1e-300,\"step\":0,\"time_s\":null,"
               "\"eval_score\":0.5}\n"
               "{\"study\":\"s\",\"ordinal\":4,\"key\":\"k4\",\"algorithm\":\"a,b\","
               "\"seed\":4,\"optimizer.lr\":1e-300,\"step\":2,\"time_s\":3,"
               "\"eval_score\":null}\n");
  fixture_remove(&f);
}

/* Columns of steps are those of core/base/metrics.h, so the expected text is built from its table.
 */
TEST(exported_steps_have_a_column_for_every_metric) {
  char wanted[4096];
  size_t at = (size_t)snprintf(wanted, sizeof wanted, RUN_HEADER ",step,sampler,time_s,wait_s");
  for (int m = 0; m < METRIC_COUNT; ++m)
    at += (size_t)snprintf(wanted + at, sizeof wanted - at, ",%s", metric_about((metric)m)->name);
  for (int step = 1; step <= 2; ++step) {
    at += (size_t)snprintf(wanted + at, sizeof wanted - at, "\ns,4,k4,\"a,b\",4,1e-300,%s",
                           step == 1 ? "1,0,1.5,0.1" : "2,1,3,0.1");
    for (int m = 0; m < METRIC_COUNT; ++m)
      at += (size_t)snprintf(wanted + at, sizeof wanted - at, ",%s",
                             m == METRIC_GRAD_NORM              ? "0.25"
                             : m == METRIC_LOSS && step == 1    ? "5"
                             : m == METRIC_LOSS /* 4 + 1 / 2 */ ? "4.5"
                                                                : "");
  }
  snprintf(wanted + at, sizeof wanted - at, "\n");
  fixture f;
  fixture_make(&f);
  put_awkward(f.s);
  check_export(f.s, "steps", "csv", wanted);
  fixture_remove(&f);
}

/* A file from before a metric existed: NULL when read, and a column of its own when written. */
TEST(a_metric_that_is_younger_than_the_file_is_null_and_then_added) {
  fixture f;
  fixture_make(&f);
  store_put_samples(f.s, 1, 1, 2);
  CU_ASSERT_EQUAL_FATAL(
      sqlite3_exec(store_handle(f.s), "ALTER TABLE steps DROP COLUMN ess", NULL, NULL, NULL), 0);
  store_close(f.s);
  f.s = store_opened(f.path, STORE_READ);
  char *text = exported(f.s, "steps", "jsonl");
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"ess\":null"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"grad_norm\":0.25"));
  free(text);
  store_close(f.s);
  f.s = store_opened(f.path, STORE_WRITE);
  static sample_run later;
  sample_run_init(&later, 2, 1);
  later.steps[0].metric[METRIC_ESS] = 3;
  CU_ASSERT_EQUAL(store_put_run(f.s, &later.run, NULL), GL_OK);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT ess FROM steps t JOIN runs r ON r.id = t.run WHERE "
                                    "r.ordinal = 2"),
                  3);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM steps WHERE ess IS NULL"), 2);
  check_verified(f.s, NULL);
  fixture_remove(&f);
}

static const char *const all_tables[] = {"runs",  "recipes", "steps",       "evals", "staleness",
                                         "clock", "axes",    "axis_values", "tuned"};
enum { N_TABLES = 9 };

/* Every table of both studies as text is the same text. */
static void check_same_exports(store *a, store *b) {
  for (int t = 0; t < N_TABLES; ++t) {
    char *x = exported(a, all_tables[t], "csv"), *y = exported(b, all_tables[t], "csv");
    CU_ASSERT_STRING_EQUAL(x, y);
    CU_ASSERT(t >= 6 || strchr(x, '\n')[1] != '\0'); /* more than a header */
    free(x);
    free(y);
  }
}

TEST(exports_do_not_depend_on_the_order_of_insertion) {
  fixture a, b;
  fixture_make(&a);
  fixture_make(&b);
  store_put_samples(a.s, 1, 12, 7);
  for (int i = 0; i < 12; ++i) store_put_samples(b.s, 1 + i * 5 % 12, 1 + i * 5 % 12, 7);
  store_put_samples(b.s, 4, 4, 7); /* one of them twice */
  check_same_exports(a.s, b.s);
  fixture_remove(&a);
  fixture_remove(&b);
}

TEST(unknown_tables_and_formats_are_refused_with_the_known_ones) {
  fixture f;
  gl_error err = {0};
  fixture_make(&f);
  CU_ASSERT_EQUAL(store_export(f.s, "stepz", "csv", stdout, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "runs, recipes, axes, axis_values, steps, evals"));
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(store_export(f.s, "steps", "xml", stdout, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "csv, tsv, jsonl"));
  fixture_remove(&f);
}

TEST(an_export_that_cannot_be_written_says_so) {
  fixture f;
  gl_error err = {0};
  FILE *full = fopen("/dev/full", "w");
  if (full == NULL) SKIP("no /dev/full");
  fixture_make(&f);
  store_put_samples(f.s, 1, 2, 5);
  CU_ASSERT_EQUAL(store_export(f.s, "steps", "csv", full, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "No space left"));
  fclose(full);
  fixture_remove(&f);
}

/* --- joining studies --- */

/* A second study beside f's with the samples first .. last. */
static void put_other(const fixture *f, char path[SCRATCH_PATH_SIZE], int first, int last) {
  store *other = store_opened(scratch_path(&f->at, "other.db", path), STORE_WRITE);
  store_put_samples(other, first, last, 6);
  store_close(other);
}

TEST(merging_joins_the_runs_once_however_often) {
  fixture whole, part;
  char other[SCRATCH_PATH_SIZE];
  fixture_make(&whole);
  fixture_make(&part);
  store_put_samples(whole.s, 1, 6, 6);
  store_put_samples(part.s, 4, 6, 6);
  put_other(&part, other, 1, 4); /* run 4 stands in both */
  for (int twice = 0; twice < 2; ++twice) {
    ASSERT_OK(store_merge(part.s, other, &err));
    check_same_exports(whole.s, part.s);
  }
  CU_ASSERT_EQUAL(store_number(part.s, "SELECT count(*) FROM runs"), 6);
  fixture_remove(&whole);
  fixture_remove(&part);
}

TEST(merging_takes_a_finished_run_for_a_failed_one) {
  static sample_run sample;
  fixture f;
  char other[SCRATCH_PATH_SIZE];
  fixture_make(&f);
  sample_run_init(&sample, 1, 2);
  sample.run.status = RUN_FAILED;
  CU_ASSERT_EQUAL(store_put_run(f.s, &sample.run, NULL), GL_OK);
  put_other(&f, other, 1, 1);
  CU_ASSERT_EQUAL(store_merge(f.s, other, NULL), GL_OK);
  CU_ASSERT_TRUE(store_has_finished(f.s, sample.key, sample.recipe));
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM steps"), 6);
  fixture_remove(&f);
}

/* How run 1 of the other study differs, and whether that is a disagreement. */
static void put_different(store *s, int how) {
  static sample_run sample;
  sample_run_init(&sample, 1, how == 0 ? 5 : how == 1 ? 7 : 6);
  if (how == 2) sample.run.status = RUN_DIVERGED;
  if (how == 3) sample.steps[2].metric[METRIC_ESS] = 1;
  if (how == 4) sample.evals[0].eval_score = 0.25;
  if (how == 5) sample.run.recipe = "{\"seed\":8}";
  CU_ASSERT_EQUAL_FATAL(store_put_run(s, &sample.run, NULL), GL_OK);
}

TEST(studies_that_disagree_about_a_run_are_not_merged) {
  for (int how = 0; how < 6; ++how) {
    fixture f;
    gl_error err = {0};
    char path[SCRATCH_PATH_SIZE];
    fixture_make(&f);
    store_put_samples(f.s, 1, 1, 6);
    store *other = store_opened(scratch_path(&f.at, "other.db", path), STORE_WRITE);
    put_different(other, how);
    store_put_samples(other, 2, 2, 6);
    store_close(other);
    CU_ASSERT_EQUAL(store_merge(f.s, path, &err), GL_EINPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "disagree about run"));
    CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM runs"), 1);
    store_put_samples(f.s, 3, 3, 6);
    fixture_remove(&f);
  }
}

TEST(studies_that_chose_different_rates_are_not_merged) {
  fixture f;
  char path[SCRATCH_PATH_SIZE];
  gl_error err = {0};
  fixture_make(&f);
  put_other(&f, path, 1, 1);
  store *other = store_opened(path, STORE_WRITE);
  CU_ASSERT_EQUAL(store_put_tuned(other, "s", "gepo", 0.1, 0.5, NULL), GL_OK);
  CU_ASSERT_EQUAL(store_merge(f.s, path, NULL), GL_OK);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT lr FROM tuned"), 0.1);
  CU_ASSERT_EQUAL(store_put_tuned(other, "s", "gepo", 0.2, 0.5, NULL), GL_OK);
  CU_ASSERT_EQUAL(store_merge(f.s, path, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "learning rate"));
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT lr FROM tuned"), 0.1);
  store_close(other);
  fixture_remove(&f);
}

TEST(merging_a_study_into_itself_is_refused) {
  fixture f;
  gl_error err = {0};
  fixture_make(&f);
  store_put_samples(f.s, 1, 2, 6);
  CU_ASSERT_EQUAL(store_merge(f.s, f.path, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "itself"));
  fixture_remove(&f);
}

/* --- one writer, many readers --- */

TEST(a_second_writer_is_refused_by_name) {
  fixture f;
  store *second = NULL;
  gl_error err = {0};
  fixture_make(&f);
  CU_ASSERT_EQUAL(store_open(&second, f.path, STORE_WRITE, &err), GL_EIO);
  CU_ASSERT_PTR_NULL(second);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, f.path));
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "another gepolab process"));
  store_put_samples(f.s, 1, 1, 3); /* the first writes on undisturbed */
  store_close(f.s);
  f.s = store_opened(f.path, STORE_WRITE); /* and leaves the place free */
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM runs"), 1);
  fixture_remove(&f);
}

TEST(a_reader_sees_whole_runs_while_a_writer_is_open) {
  fixture f;
  fixture_make(&f);
  store_put_samples(f.s, 1, 2, 10);
  store *reader = store_opened(f.path, STORE_READ);
  CU_ASSERT_EQUAL(store_number(reader, "SELECT count(*) FROM runs"), 2);
  store_put_samples(f.s, 3, 3, 10);
  CU_ASSERT_EQUAL(store_number(reader, "SELECT count(*) FROM runs"), 3);
  CU_ASSERT_EQUAL(
      sqlite3_exec(store_handle(f.s), "BEGIN IMMEDIATE; DELETE FROM runs", NULL, NULL, NULL),
      SQLITE_OK);
  CU_ASSERT_EQUAL(store_number(reader, "SELECT count(*) FROM steps"), 30);
  CU_ASSERT_EQUAL(sqlite3_exec(store_handle(f.s), "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
  store_close(reader);
  fixture_remove(&f);
}

TEST(a_reader_cannot_write) {
  static sample_run sample;
  fixture f;
  gl_error err = {0};
  fixture_make(&f);
  store *reader = store_opened(f.path, STORE_READ);
  sample_run_init(&sample, 1, 3);
  CU_ASSERT_EQUAL(store_put_run(reader, &sample.run, &err), GL_EIO);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM runs"), 0);
  store_close(reader);
  fixture_remove(&f);
}

TEST(five_hundred_runs_of_three_hundred_steps_are_stored) {
  fixture f;
  struct timespec t0, t1;
  fixture_make(&f);
  clock_gettime(CLOCK_MONOTONIC, &t0);
  store_put_samples(f.s, 1, 500, 300);
  clock_gettime(CLOCK_MONOTONIC, &t1);
  printf(" (%.2f s) ", (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec));
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT count(*) FROM steps"), 150000);
  fixture_remove(&f);
}
