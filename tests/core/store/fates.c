/* Fates of responses: stored, exported, merged, checked, repaired and salvaged; and runs that have
 * none are the records they were before. */
#include "core/store/repair.h"
#include "tests/support/core.h"
#include "tests/support/suite.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 4 };

typedef struct fixture {
  scratch at;
  char path[SCRATCH_PATH_SIZE];
} fixture;

/* A run of which four kinds of responses were drawn. */
static void put(store *s, int ordinal, double reward) {
  static sample_run sample;
  const fate_record fates[RECORDS] = {{"trained", 1, 1, 10, 10, reward},
                                      {"trained", 4, 64, 3, 300, 2},
                                      {"stale", 4, 64, 7, 700, 1.5},
                                      {"pending", 2, 2, 1, 3, 0}};
  gl_error err = {0};
  sample_run_init(&sample, ordinal, 4);
  sample.run.fates = fates;
  sample.run.n_fates = RECORDS;
  if (store_put_run(s, &sample.run, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(err.status, GL_OK);
}

/* Runs 1 and 3 have fates, run 2 has none. */
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
  static const char *const tables[] = {"fates", NULL};
  store *s = store_opened(path, STORE_READ);
  CU_ASSERT_EQUAL_FATAL(store_begin_reading(s, NULL), GL_OK);
  gl_status status = store_verify(s, tables, err);
  store_end_reading(s);
  store_close(s);
  return status;
}

static void fates_are_exported_in_order(void) {
  fixture f;
  char *text = NULL;
  size_t size;
  fixture_make(&f);
  store *s = store_opened(f.path, STORE_READ);
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_EQUAL(store_export(s, "fates", "csv", to, NULL), GL_OK);
  fclose(to);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, ",fate,quarter,tokens_from,responses,tokens,reward\n"));
  const char *pending = strstr(text, ",pending,2,2,1,3,0\n"),
             *stale = strstr(text, ",stale,4,64,7,700,1.5\n"),
             *first = strstr(text, ",trained,1,1,10,10,0.25\n"),
             *second = strstr(text, ",trained,4,64,3,300,2\n"),
             *other = strstr(text, ",trained,1,1,10,10,0.5\n");
  CU_ASSERT(pending && stale && first && second && other);
  CU_ASSERT(pending < stale && stale < first && first < second && second < other);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM fates"), 2 * RECORDS);
  free(text);
  store_close(s);
  scratch_remove(&f.at);
}

static void runs_without_fates_have_no_sum_of_them(void) {
  fixture f;
  fixture_make(&f);
  store *s = store_opened(f.path, STORE_READ);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM runs WHERE sum_fates IS NULL"), 1);
  CU_ASSERT_EQUAL(store_number(s, "SELECT ordinal FROM runs WHERE sum_fates IS NULL"), 2);
  store_close(s);
  scratch_remove(&f.at);
}

static void count(void *self, const char *key, const char *text) {
  (void)key, (void)text;
  ++*(int *)self;
}

static void damage_is_found_by_those_who_read_and_by_check(void) {
  static const char *const damages[] = {
      "UPDATE fates SET reward = 0.75 WHERE quarter = 1",
      "UPDATE fates SET fate = 'evicted' WHERE fate = 'stale'",
      "UPDATE fates SET quarter = 5 WHERE quarter = 1",
      "DELETE FROM fates WHERE fate = 'pending'",
      "DELETE FROM fates",
      "UPDATE fates SET fate = 'a fate that is too long' WHERE quarter = 1",
      "INSERT INTO fates SELECT id, 'lost', 1, 1, 1, 1, 0 FROM runs WHERE ordinal = 2"};
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

static void studies_are_merged_with_their_fates_and_disagreement_is_refused(void) {
  fixture f;
  char other[SCRATCH_PATH_SIZE];
  gl_error err = {0};
  fixture_make(&f);
  store *into = store_opened(scratch_path(&f.at, "other.db", other), STORE_WRITE);
  put(into, 3, 0.5);
  put(into, 4, 0.5);
  CU_ASSERT_EQUAL(store_merge(into, f.path, &err), GL_OK);
  CU_ASSERT_EQUAL(store_number(into, "SELECT count(*) FROM fates"), 3 * RECORDS);
  put(into, 3, 0.75);
  CU_ASSERT_EQUAL(store_merge(into, f.path, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "its fates of responses differs"));
  store_close(into);
  CU_ASSERT_EQUAL(verified(other, &err), GL_OK);
  scratch_remove(&f.at);
}

/* A run that an older format keeps without its fates is the same run. */
static void a_run_of_before_has_no_fates_to_disagree_with(void) {
  fixture f;
  char other[SCRATCH_PATH_SIZE];
  gl_error err = {0};
  fixture_make(&f);
  store *into = store_opened(scratch_path(&f.at, "other.db", other), STORE_WRITE);
  store_put_samples(into, 3, 3, 4);
  CU_ASSERT_EQUAL(store_merge(into, f.path, &err), GL_OK);
  if (err.text[0] != '\0') fprintf(stderr, "%s\n", err.text);
  store_close(into);
  CU_ASSERT_EQUAL(verified(other, &err), GL_OK);
  scratch_remove(&f.at);
}

static void a_salvaged_study_has_its_fates(void) {
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
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM fates"), 2 * RECORDS);
  store_close(s);
  scratch_remove(&f.at);
}

/* A study of before format 6 has no such table, and is salvaged, too. */
static void a_study_without_the_table_is_salvaged(void) {
  scratch at;
  char saved[SCRATCH_PATH_SIZE];
  store_salvaged found;
  gl_error err = {0};
  scratch_make(&at);
  CU_ASSERT_EQUAL(store_salvage("tests/golden/study_format5.db",
                                scratch_path(&at, "saved.db", saved), &found, &err),
                  GL_OK);
  if (err.text[0] != '\0') fprintf(stderr, "%s\n", err.text);
  CU_ASSERT(found.runs == 8 && found.lost_runs == 0 && found.lost == 0);
  CU_ASSERT_EQUAL(verified(saved, &err), GL_OK);
  scratch_remove(&at);
}

SUITE(core_fates, "core: fates of responses", TEST(fates_are_exported_in_order),
      TEST(runs_without_fates_have_no_sum_of_them),
      TEST(damage_is_found_by_those_who_read_and_by_check),
      TEST(studies_are_merged_with_their_fates_and_disagreement_is_refused),
      TEST(a_run_of_before_has_no_fates_to_disagree_with), TEST(a_salvaged_study_has_its_fates),
      TEST(a_study_without_the_table_is_salvaged));
