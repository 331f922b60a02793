/* Scores by evaluation set: stored, exported, merged, checked, repaired and salvaged; and runs that
 * have none are the records they were before. */
#include "core/store/repair.h"
#include "tests/support/core.h"
#include "tests/support/suite.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 2, EVALS = 2 };

typedef struct fixture {
  scratch at;
  char path[SCRATCH_PATH_SIZE];
} fixture;

/* A run with the scores of two sets, of which the second has halves. */
static void put(store *s, int ordinal, double score) {
  static sample_run sample;
  set_eval_record sets[EVALS * 4];
  size_t n = 0;
  gl_error err = {0};
  sample_run_init(&sample, ordinal, 4);
  for (int64_t e = 0; e < EVALS; ++e) {
    sets[n++] = (set_eval_record){10 * e, 5, score + 0.125 * (double)e, 0, 0, "own"};
    for (int32_t half = 0; half < 3; ++half)
      sets[n++] = (set_eval_record){10 * e, 5, half == 2 ? NAN : 0.5, 1, half, "a, \"b\""};
  }
  sample.run.set_evals = sets;
  sample.run.n_set_evals = n;
  if (store_put_run(s, &sample.run, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(err.status, GL_OK);
}

/* Runs 1 and 3 have sets, run 2 has none. */
static void fixture_make(fixture *f) {
  scratch_make(&f->at);
  store *s = store_opened(scratch_path(&f->at, "study.db", f->path), STORE_WRITE);
  put(s, 1, 0.25);
  store_put_samples(s, 2, 2, 4);
  put(s, 3, 0.5);
  store_close(s);
}

static void change(const char *path, const char *sql) {
  sqlite3 *db = NULL;
  CU_ASSERT_EQUAL_FATAL(sqlite3_open(path, &db), SQLITE_OK);
  CU_ASSERT_EQUAL_FATAL(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
  CU_ASSERT(sqlite3_changes(db) > 0);
  sqlite3_close(db);
}

static gl_status verified(const char *path, gl_error *err) {
  static const char *const tables[] = {"set_evals", NULL};
  store *s = store_opened(path, STORE_READ);
  CU_ASSERT_EQUAL_FATAL(store_begin_reading(s, NULL), GL_OK);
  gl_status status = store_verify(s, tables, err);
  store_end_reading(s);
  store_close(s);
  return status;
}

static void scores_by_set_are_exported_in_order(void) {
  fixture f;
  char *text = NULL;
  size_t size;
  fixture_make(&f);
  store *s = store_opened(f.path, STORE_READ);
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_EQUAL(store_export(s, "set_evals", "csv", to, NULL), GL_OK);
  fclose(to);
  const char *head = strstr(text, ",step,eval_set,half,time_s,eval_score\n");
  CU_ASSERT_PTR_NOT_NULL_FATAL(head);
  const char *first = strstr(text, ",0,own,0,5,0.25\n"),
             *whole = strstr(text, ",0,\"a, \"\"b\"\"\",0,5,0.5\n"),
             *half = strstr(text, ",0,\"a, \"\"b\"\"\",2,5,\n"),
             *later = strstr(text, ",10,own,0,5,0.375\n"),
             *other = strstr(text, ",10,own,0,5,0.625\n");
  CU_ASSERT(first && whole && half && later && other);
  CU_ASSERT(first < whole && whole < half && half < later && later < other);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM set_evals"), 2 * EVALS * 4);
  free(text);
  store_close(s);
  scratch_remove(&f.at);
}

static void runs_without_sets_have_no_sum_of_them(void) {
  fixture f;
  fixture_make(&f);
  store *s = store_opened(f.path, STORE_READ);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM runs WHERE sum_set_evals IS NULL"), 1);
  CU_ASSERT_EQUAL(store_number(s, "SELECT ordinal FROM runs WHERE sum_set_evals IS NULL"), 2);
  store_close(s);
  scratch_remove(&f.at);
}

static void count(void *self, const char *key, const char *text) {
  (void)key, (void)text;
  ++*(int *)self;
}

static void damage_is_found_by_those_who_read_and_by_check(void) {
  static const char *const damages[] = {
      "UPDATE set_evals SET eval_score = 0.75 WHERE step = 10 AND place = 0",
      "UPDATE set_evals SET eval_set = 'other' WHERE place = 0",
      "UPDATE set_evals SET half = 2 WHERE place = 0",
      "DELETE FROM set_evals WHERE place = 1 AND half = 2 AND step = 0",
      "DELETE FROM set_evals",
      "UPDATE set_evals SET eval_set = printf('%.70c', 'x')",
      "INSERT INTO set_evals SELECT id, 0, 0, 7, 'new', 0, 0 FROM runs WHERE ordinal = 2"};
  for (size_t i = 0; i < sizeof damages / sizeof *damages; ++i) {
    fixture f;
    gl_error err = {0};
    int n = 0;
    fixture_make(&f);
    CU_ASSERT_EQUAL(verified(f.path, &err), GL_OK);
    change(f.path, damages[i]);
    CU_ASSERT_EQUAL(verified(f.path, &err), GL_EIO);
    store *s = store_opened(f.path, STORE_READ);
    CU_ASSERT_EQUAL(store_check(s, count, &n, NULL), GL_OK);
    CU_ASSERT(n >= 1);
    store_close(s);
    s = store_opened(f.path, STORE_WRITE);
    store_removed removed;
    CU_ASSERT_EQUAL(store_repair(s, &removed, NULL), GL_OK);
    CU_ASSERT(removed.runs >= 1 && removed.runs <= 2);
    store_close(s);
    CU_ASSERT_EQUAL(verified(f.path, &err), GL_OK);
    scratch_remove(&f.at);
  }
}

static void studies_are_merged_with_their_sets_and_disagreement_is_refused(void) {
  fixture f;
  char other[SCRATCH_PATH_SIZE];
  gl_error err = {0};
  fixture_make(&f);
  store *into = store_opened(scratch_path(&f.at, "other.db", other), STORE_WRITE);
  put(into, 3, 0.5);
  put(into, 4, 0.5);
  CU_ASSERT_EQUAL(store_merge(into, f.path, &err), GL_OK);
  CU_ASSERT_EQUAL(store_number(into, "SELECT count(*) FROM set_evals"), 3 * EVALS * 4);
  put(into, 3, 0.75);
  CU_ASSERT_EQUAL(store_merge(into, f.path, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "its evaluation sets differs"));
  store_close(into);
  CU_ASSERT_EQUAL(verified(other, &err), GL_OK);
  scratch_remove(&f.at);
}

static void a_salvaged_study_has_its_sets(void) {
  fixture f;
  char saved[SCRATCH_PATH_SIZE];
  gl_error err = {0};
  store_salvaged found;
  fixture_make(&f);
  CU_ASSERT_EQUAL(store_salvage(f.path, scratch_path(&f.at, "saved.db", saved), &found, &err),
                  GL_OK);
  CU_ASSERT(found.runs == 3 && found.lost_runs == 0);
  CU_ASSERT_EQUAL(verified(saved, &err), GL_OK);
  store *s = store_opened(saved, STORE_READ);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM set_evals"), 2 * EVALS * 4);
  store_close(s);
  scratch_remove(&f.at);
}

/* A study of before format 5 has no such table, and is salvaged, too. */
static void a_study_without_the_table_is_salvaged(void) {
  scratch at;
  char saved[SCRATCH_PATH_SIZE];
  store_salvaged found;
  gl_error err = {0};
  scratch_make(&at);
  CU_ASSERT_EQUAL(store_salvage("tests/golden/study_format4.db",
                                scratch_path(&at, "saved.db", saved), &found, &err),
                  GL_OK);
  if (err.text[0] != '\0') fprintf(stderr, "%s\n", err.text);
  CU_ASSERT(found.runs == 8 && found.lost_runs == 0 && found.lost == 0);
  CU_ASSERT_EQUAL(verified(saved, &err), GL_OK);
  scratch_remove(&at);
}

SUITE(core_set_evals, "core: scores by evaluation set", TEST(scores_by_set_are_exported_in_order),
      TEST(runs_without_sets_have_no_sum_of_them),
      TEST(damage_is_found_by_those_who_read_and_by_check),
      TEST(studies_are_merged_with_their_sets_and_disagreement_is_refused),
      TEST(a_salvaged_study_has_its_sets), TEST(a_study_without_the_table_is_salvaged));
