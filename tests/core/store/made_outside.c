/* Studies that nobody should trust: made by hand, damaged, of other formats, or no files at all. */
#include "core/store/store.h"

#include "tests/support/core.h"
#include "tests/support/sql.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("core: studies made outside gepolab");

typedef struct ground {
  scratch at;
  char study[SCRATCH_PATH_SIZE];
} ground;

static void ground_make(ground *g) {
  scratch_make(&g->at);
  store *s = store_opened(scratch_path(&g->at, "study.db", g->study), STORE_WRITE);
  store_put_samples(s, 1, 3, 20);
  static sample_run chosen;
  const bias_record measured[2] = {{.algorithm = "gepo", .method = "exact", .bias = 0.5},
                                   {.algorithm = "grpo", .method = "exact", .bias = 0.25}};
  sample_run_init(&chosen, 4, 2);
  chosen.run.chosen = "{\"optimizer.lr\":0.1}";
  CU_ASSERT_EQUAL(store_put_run(s, &chosen.run, NULL), GL_OK);
  CU_ASSERT_EQUAL(store_put_tuned(s, "s", "gepo", 0.1, 0.5, NULL), GL_OK);
  CU_ASSERT_EQUAL(store_put_bias(s, "lab", measured, 2, &(bias_making){.wall_s = 1}, NULL), GL_OK);
  store_close(s);
}

static void ground_remove(const ground *g) {
  scratch_remove(&g->at);
}

/* All tables of the study as text, or NULL where it is refused with `err`. */
static char *all_exports(const char *path, gl_error *err) {
  static const char *const tables[] = {"runs",  "steps", "evals", "staleness",
                                       "clock", "tuned", "bias"};
  return store_text(path, tables, sizeof tables / sizeof *tables, err);
}

/* SQLite refuses to drop a column that a view reads. */
#define NO_VIEWS                                                                                   \
  "DROP VIEW staleness_v1; DROP VIEW set_evals_v1; DROP VIEW evals_v1; DROP VIEW steps_v1; DROP "  \
  "VIEW runs_v1; "

/* A number that SQL gives about the study, as other programs read it. */
static double number_of(const char *path, const char *sql) {
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  double x = -1;
  CU_ASSERT_EQUAL(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
    x = sqlite3_column_double(q, 0);
  else
    fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
  sqlite3_finalize(q);
  sqlite3_close(db);
  return x;
}

/* Each pair counts the same: by the view, and by the tables. */
TEST(views_show_what_counts) {
  static const char *const pairs[][2] = {
      {"SELECT count(*) FROM runs_v1", "SELECT count(*) - 1 FROM runs"},
      {"SELECT count(DISTINCT \"key\") FROM steps_v1", "SELECT count(*) - 1 FROM runs"},
      {"SELECT sum(loss + step * seed) FROM steps_v1",
       "SELECT sum(loss + step * seed) FROM steps JOIN runs ON run = id WHERE id != 2"},
      {"SELECT sum(score * learning_rate) FROM evals_v1 JOIN runs_v1 USING(run)",
       "SELECT sum(eval_score * lr) FROM evals JOIN runs ON run = id WHERE id != 2"},
      {"SELECT count(*) FROM set_evals_v1", "SELECT count(*) FROM set_evals WHERE run != 2"},
      {"SELECT sum(batches * staleness) FROM staleness_v1",
       "SELECT sum(\"count\" * staleness) FROM staleness WHERE run != 2"}};
  ground g;
  ground_make(&g);
  run_sql(g.study, "INSERT INTO superseded(\"key\", by, sum) SELECT \"key\", 'x', 0 FROM runs WHERE"
                   " id = 2");
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i)
    CU_ASSERT_DOUBLE_EQUAL(number_of(g.study, pairs[i][0]), number_of(g.study, pairs[i][1]), 1e-9);
  ground_remove(&g);
}

/* A study of an older gepolab has no views: readers leave it as it is, a writer adds them. */
TEST(a_study_without_views_gets_them_from_a_writer_alone) {
  static const char views[] = "SELECT count(*) FROM sqlite_schema WHERE type = 'view'";
  ground g;
  ground_make(&g);
  CU_ASSERT_EQUAL(number_of(g.study, views), 5);
  run_sql(g.study, NO_VIEWS);
  const double counter = number_of(g.study, "SELECT schema_version FROM pragma_schema_version");
  store_close(store_opened(g.study, STORE_READ));
  CU_ASSERT_EQUAL(number_of(g.study, views), 0);
  CU_ASSERT_EQUAL(number_of(g.study, "SELECT schema_version FROM pragma_schema_version"), counter);
  store_close(store_opened(g.study, STORE_WRITE));
  CU_ASSERT_EQUAL(number_of(g.study, views), 5);
  CU_ASSERT(number_of(g.study, "SELECT count(*) FROM evals_v1") > 0);
  ground_remove(&g);
}

TEST(what_is_no_study_s_schema_is_refused_by_name) {
  static const char *const hand_made[][2] = {
      {"CREATE VIEW v AS SELECT 1", "no view such as 'v'"},
      {NO_VIEWS "CREATE VIEW runs_v1 AS SELECT 1", "no view such as 'runs_v1'"},
      {"DROP TABLE evals; CREATE VIEW evals AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i"
       " + 1 FROM n) SELECT 1 AS run, i AS step, 0.0 AS time_s, 0.0 AS eval_score FROM n",
       "no view such as 'evals'"},
      {"CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM steps; END",
       "no trigger such as 't'"},
      {"CREATE INDEX i ON runs(study)", "no index such as 'i'"},
      {"DROP TABLE clock", "lacks the table 'clock'"},
      {"DROP TABLE clock; CREATE VIRTUAL TABLE clock USING fts5(run)",
       "virtual table stands in the place of its table 'clock'"},
      {NO_VIEWS "ALTER TABLE runs DROP COLUMN reason", "lacks the column 'reason'"},
      {"ALTER TABLE steps ADD COLUMN surprise REAL", "not known here 'surprise'"},
      {NO_VIEWS
       "ALTER TABLE evals DROP COLUMN eval_score; ALTER TABLE evals ADD COLUMN eval_score REAL AS"
       " (step * 2)",
       "computed, is its column 'eval_score'"},
      {NO_VIEWS
       "ALTER TABLE evals DROP COLUMN eval_score; ALTER TABLE evals ADD COLUMN eval_score TEXT",
       "of another type"},
  };
  for (size_t i = 0; i < sizeof hand_made / sizeof *hand_made; ++i)
    for (int mode = STORE_READ; mode <= STORE_WRITE; ++mode) {
      ground g;
      store *s = NULL;
      gl_error err = {0};
      ground_make(&g);
      run_sql(g.study, hand_made[i][0]);
      CU_ASSERT_EQUAL(store_open(&s, g.study, (store_mode)mode, &err), GL_EIO);
      int ok = strstr(err.text, hand_made[i][1]) != NULL && strstr(err.text, g.study) != NULL;
      if (!ok) fprintf(stderr, "%s\n  gave: %s\n", hand_made[i][0], err.text);
      CU_ASSERT(ok);
      store_close(s);
      ground_remove(&g);
    }
}

/* The values of one row changed by hand: with the right types they fail the checksum, with others
 * they are named. */
TEST(values_that_no_run_has_are_refused) {
  static const char *const changes[][2] = {
      {"DELETE FROM staleness; INSERT INTO staleness VALUES (1, 40, 4702111234474983745)", "run "},
      {"UPDATE staleness SET staleness = 4702111234474983745 WHERE run = 1 AND staleness = 2",
       "the table staleness has a number out of range in its column staleness"},
      {"UPDATE staleness SET staleness = -1 WHERE run = 1 AND staleness = 2", "out of range"},
      {"UPDATE staleness SET staleness = 'zzz' WHERE run = 1 AND staleness = 2",
       "something that is no whole number"},
      {"UPDATE steps SET loss = 'much' WHERE step = 3", "something that is no number"},
      {"UPDATE steps SET loss = loss + 1e-9 WHERE step = 3 AND run = 2",
       "records in the table steps"},
      {"UPDATE runs SET algorithm = x'ff' WHERE id = 1", "something that is no text"},
      {"UPDATE runs SET algorithm = CAST(x'ff41' AS TEXT) WHERE id = 1", "not UTF-8"},
      {"UPDATE runs SET algorithm = 'a' || char(0) || 'b' WHERE id = 1", "not UTF-8"},
      {"UPDATE runs SET study = '' WHERE id = 1", "too long or too short"},
      {"UPDATE runs SET status = NULL WHERE id = 1", "nothing in its column status"},
      {"UPDATE runs SET swept = NULL WHERE id = 1", "nothing in its column swept"},
      {"UPDATE runs SET algorithm = 'other' WHERE id = 1", "its record is not what was written"},
      {"UPDATE runs SET seed = 9 WHERE id = 1", "its record is not what was written"},
      {"UPDATE tuned SET lr = 0.2", "a record of the table tuned"},
      {"UPDATE tuned SET sum = NULL", "a record of the table tuned"},
      {"UPDATE runs SET sum = NULL WHERE id = 1", "its record is not what was written"},
      {"DELETE FROM evals WHERE run = 2 AND step = 0", "records in the table evals"},
      {"UPDATE steps SET run = 77 WHERE run = 3", "records in the table steps"},
      {"DELETE FROM tuned", "the learning rate that was chosen for gepo of s is gone"},
      {"DELETE FROM bias WHERE ordinal = 0", "measurements of the laboratory's study lab are gone"},
  };
  for (size_t i = 0; i < sizeof changes / sizeof *changes; ++i) {
    ground g;
    gl_error err = {0};
    ground_make(&g);
    run_sql(g.study, changes[i][0]);
    char *text = all_exports(g.study, &err);
    CU_ASSERT_PTR_NULL(text);
    int ok = strstr(err.text, changes[i][1]) != NULL;
    if (!ok) fprintf(stderr, "%s\n  gave: %s\n", changes[i][0], err.text);
    CU_ASSERT(ok);
    free(text);
    ground_remove(&g);
  }
}

/* Fixed seed; every damage either changes no export or is told. */
TEST(no_flipped_bit_changes_an_export_silently) {
  enum { TRIALS = 300 };
  ground g;
  gl_error none = {0};
  uint64_t state = 20261122;
  int told = 0;
  char damaged[SCRATCH_PATH_SIZE];
  ground_make(&g);
  scratch_path(&g.at, "damaged.db", damaged);
  char *whole = all_exports(g.study, &none);
  CU_ASSERT_PTR_NOT_NULL_FATAL(whole);
  struct stat about;
  CU_ASSERT_EQUAL_FATAL(stat(g.study, &about), 0);
  for (int i = 0; i < TRIALS; ++i) {
    gl_error err = {0};
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const uint64_t bit = (state >> 20) % (8 * (uint64_t)about.st_size);
    scratch_copy(g.study, damaged);
    int file = open(damaged, O_RDWR);
    unsigned char byte = 0;
    CU_ASSERT_EQUAL(pread(file, &byte, 1, (off_t)(bit / 8)), 1);
    byte ^= (unsigned char)(1 << bit % 8);
    CU_ASSERT_EQUAL(pwrite(file, &byte, 1, (off_t)(bit / 8)), 1);
    close(file);
    char *text = all_exports(damaged, &err);
    if (text == NULL)
      ++told;
    else if (strcmp(text, whole) != 0) {
      fprintf(stderr, "bit %llu changes an export\n", (unsigned long long)bit);
      CU_FAIL("a silent change");
    }
    free(text);
  }
  CU_ASSERT(told > TRIALS / 10);
  free(whole);
  ground_remove(&g);
}

static void note_damage(void *self, const char *key, const char *text) {
  int *n = self;
  (void)text;
  ++n[0];
  n[1] += key != NULL;
}

TEST(a_check_names_all_damage_and_damaged_runs_can_be_removed) {
  ground g;
  int n[2] = {0};
  ground_make(&g);
  run_sql(g.study, "UPDATE steps SET loss = 7 WHERE run = 1 AND step = 2; UPDATE evals SET time_s ="
                   " 7 WHERE run = 3; INSERT INTO steps(run, step) VALUES(9, 1)");
  store *s = store_opened(g.study, STORE_WRITE);
  ASSERT_OK(store_check(s, note_damage, n, &err));
  /* two runs, whose keys are hashes of recipes by an older rule, and a record of no run */
  CU_ASSERT_EQUAL(n[1], 2);
  CU_ASSERT_EQUAL(n[0], 3);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM runs"), 4);
  store_close(s);
  ground_remove(&g);
}

TEST(what_is_no_file_is_refused) {
  static const char *const names[] = {"",          ":memory:",  "file:x?mode=memory",
                                      "file:x.db", "/dev/null", "/tmp"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    for (int mode = STORE_READ; mode <= STORE_WRITE; ++mode) {
      store *s = NULL;
      gl_error err = {0};
      CU_ASSERT_NOT_EQUAL(store_open(&s, names[i], (store_mode)mode, &err), GL_OK);
      CU_ASSERT_PTR_NOT_NULL(strstr(err.text, names[i]));
      CU_ASSERT_PTR_NOT_NULL(strstr(err.text, ";")); /* a remedy */
      store_close(s);
    }
}

/* --- waiting --- */

static void note_wait(void *self, const char *text) {
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "waiting for another process"));
  sqlite3 *reader = *(sqlite3 **)self;
  CU_ASSERT_EQUAL(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
  *(sqlite3 **)self = NULL;
}

static int always(void *self) {
  (void)self;
  return 1;
}

/* The reader lets go when it hears that the writer waits, or the writer is told to give up. */
TEST(a_writer_waits_for_a_reader_and_says_so) {
  for (int stops = 0; stops < 2; ++stops) {
    ground g;
    static sample_run sample;
    sqlite3 *reader = NULL, *held = NULL;
    gl_error err = {0};
    ground_make(&g);
    store *s = store_opened(g.study, STORE_WRITE);
    CU_ASSERT_EQUAL_FATAL(sqlite3_open(g.study, &reader), SQLITE_OK);
    held = reader;
    CU_ASSERT_EQUAL(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM runs", NULL, NULL, NULL), 0);
    store_set_waiting(
        s, (store_waiting){.notify = note_wait, .stops = stops ? always : NULL, .self = &held});
    sample_run_init(&sample, 8, 2);
    CU_ASSERT_EQUAL(store_put_run(s, &sample.run, &err), stops ? GL_EIO : GL_OK);
    CU_ASSERT_EQUAL(held == NULL, !stops);
    sqlite3_close(reader);
    CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM runs"), stops ? 4 : 5);
    CU_ASSERT_TRUE(store_is_being_written(g.study));
    store_close(s);
    CU_ASSERT_FALSE(store_is_being_written(g.study));
    ground_remove(&g);
  }
}

TEST(a_study_deleted_under_its_writer_is_called_so) {
  ground g;
  static sample_run sample;
  gl_error err = {0};
  ground_make(&g);
  store *s = store_opened(g.study, STORE_WRITE);
  unlink(g.study);
  sample_run_init(&sample, 8, 2);
  CU_ASSERT_EQUAL(store_put_run(s, &sample.run, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "deleted, moved or replaced"));
  store_close(s);
  ground_remove(&g);
}
