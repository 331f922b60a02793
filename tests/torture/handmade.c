/* Studies that somebody changed with SQL: values of any type in any column, and other schemas. */
#include "tests/torture/families.h"
#include "tests/torture/files.h"
#include "tests/torture/hostile.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { MOST_COLUMNS = 64 };

static const char *const tables[] = {"runs",  "steps", "evals", "staleness",
                                     "clock", "tuned", "bias"};
static const char *const values[] = {"NULL",
                                     "'zzz'",
                                     "''",
                                     "-1",
                                     "0",
                                     "4702111234474983745",
                                     "-9223372036854775808",
                                     "9223372036854775807",
                                     "9007199254740993",
                                     "1e999",
                                     "-1e999",
                                     "1e308",
                                     "-0.0",
                                     "1e-320",
                                     "x'00'",
                                     "x'ff00fe'",
                                     "zeroblob(100000)",
                                     "'a' || char(10) || char(27) || '[2J' || char(0) || 'b'",
                                     "'NaN'",
                                     "'inf'",
                                     "'1e5'",
                                     "'{'",
                                     "'{\"a\":1}'",
                                     "'[]'",
                                     "'null'",
                                     "'../../../tmp/x'",
                                     "'done'",
                                     "'a,b\"c'",
                                     "char(55296)",
                                     "x'c328'",
                                     "hex(zeroblob(300000))",
                                     "'%s%n%d'",
                                     "0.1",
                                     "'0x10'",
                                     "1234567890123456789",
                                     "random()",
                                     "'tuned'",
                                     "'diverged'",
                                     "'failed'"};

/* Whole statements. */
static const struct {
  const char *name, *sql;
  tolerance may_differ;
} statements[] = {
    {"no table", "DROP TABLE %s", NOT_AT_ALL},
    {"renamed table", "ALTER TABLE %s RENAME TO other", NOT_AT_ALL},
    {"empty table", "DELETE FROM %s", IF_SAID},
    {"empty steps", "DELETE FROM steps", NOT_AT_ALL},
    {"a run less", "DELETE FROM runs WHERE id = (SELECT id FROM runs ORDER BY random() LIMIT 1)",
     IF_SAID},
    {"a step less", "DELETE FROM steps WHERE run = 3 AND step = 5", NOT_AT_ALL},
    {"a run's number", "UPDATE runs SET id = id + 100", NOT_AT_ALL},
    {"numbers swapped",
     "UPDATE runs SET id = 1000 WHERE id = 1; UPDATE runs SET id = 1 WHERE id = 2;"
     "UPDATE runs SET id = 2 WHERE id = 1000",
     NOT_AT_ALL},
    {"keys swapped",
     "UPDATE runs SET key = 'k' WHERE id = 1; UPDATE runs SET key = (SELECT key FROM "
     "runs WHERE id = 2) || 'x' WHERE id = 1",
     NOT_AT_ALL},
    {"another recipe",
     "UPDATE runs SET recipe = (SELECT recipe FROM runs WHERE id = 2) WHERE id = 1", NOT_AT_ALL},
    {"an orphan", "INSERT INTO evals(run, step, time_s, eval_score) VALUES(4711, 0, 0, 0.5)",
     IF_WHOLE},
    {"a twin",
     "CREATE TABLE x AS SELECT * FROM runs; UPDATE x SET id = id + 50, key = key || 'z';"
     "INSERT INTO runs SELECT * FROM x; DROP TABLE x",
     NOT_AT_ALL},
    {"extra column", "ALTER TABLE %s ADD COLUMN extra TEXT DEFAULT 'x'", IF_WHOLE},
    {"extra table", "CREATE TABLE extra(a, b); INSERT INTO extra VALUES(1, 2)", NOT_AT_ALL},
    {"extra index", "CREATE INDEX extra ON runs(status, seed)", NOT_AT_ALL},
    {"renamed column", "ALTER TABLE runs RENAME COLUMN recipe TO rezept", NOT_AT_ALL},
    {"dropped column", "ALTER TABLE steps DROP COLUMN time_s", NOT_AT_ALL},
    {"dropped key column", "ALTER TABLE evals DROP COLUMN eval_score", NOT_AT_ALL},
    {"view", "ALTER TABLE %s RENAME TO hidden; CREATE VIEW %s AS SELECT * FROM hidden", NOT_AT_ALL},
    {"circular view", "DROP TABLE %s; CREATE VIEW %s AS SELECT * FROM %s", NOT_AT_ALL},
    {"endless view",
     "DROP TABLE evals; CREATE VIEW evals AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + "
     "1 "
     "FROM c) SELECT 1 AS run, x AS step, 0.0 AS time_s, 0.5 AS eval_score FROM c",
     NOT_AT_ALL},
    {"endless steps",
     "CREATE TABLE one AS SELECT * FROM steps LIMIT 1; DROP TABLE steps; CREATE VIEW steps AS WITH "
     "RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT one.* FROM one, c",
     NOT_AT_ALL},
    {"huge view",
     "DROP TABLE staleness; CREATE VIEW staleness AS SELECT 1 AS run, a.step AS "
     "staleness, 4702111234474983745 AS count FROM steps a, steps b, steps c",
     NOT_AT_ALL},
    {"trigger", "CREATE TRIGGER x AFTER INSERT ON steps BEGIN UPDATE steps SET time_s = 0; END",
     NOT_AT_ALL},
    {"trigger on runs",
     "CREATE TRIGGER x BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'no'); END", NOT_AT_ALL},
    {"trigger ignores", "CREATE TRIGGER x BEFORE INSERT ON evals BEGIN SELECT RAISE(IGNORE); END",
     NOT_AT_ALL},
    {"generated column",
     "ALTER TABLE evals RENAME TO h; CREATE TABLE evals(run INTEGER, step INTEGER, "
     "time_s REAL, eval_score REAL AS (step / 0.0)); INSERT INTO evals(run, step, "
     "time_s) SELECT run, step, time_s FROM h; DROP TABLE h",
     NOT_AT_ALL},
    {"no types", "CREATE TABLE h AS SELECT * FROM %s; DROP TABLE %s; ALTER TABLE h RENAME TO %s",
     NOT_AT_ALL},
    {"texts for numbers",
     "CREATE TABLE h(run, step, time_s TEXT, eval_score TEXT); INSERT INTO h "
     "SELECT * FROM evals; DROP TABLE evals; ALTER TABLE h RENAME TO evals",
     NOT_AT_ALL},
    {"another format", "PRAGMA user_version = 2147483647", NOT_AT_ALL},
    {"negative format", "PRAGMA user_version = -3", NOT_AT_ALL},
    {"format 0", "PRAGMA user_version = 0", NOT_AT_ALL},
    {"format 1", "PRAGMA user_version = 1", NOT_AT_ALL},
    {"another program's", "PRAGMA application_id = 7", NOT_AT_ALL},
    {"wal", "PRAGMA journal_mode = WAL", NOT_AT_ALL},
    {"broken schema",
     "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE runs' "
     "WHERE name = 'runs'",
     NOT_AT_ALL},
    {"root pages swapped",
     "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = (SELECT "
     "rootpage FROM sqlite_master WHERE name = 'evals') WHERE name = 'staleness'",
     NOT_AT_ALL},
    {"other types in the schema",
     "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = "
     "replace(sql, 'REAL', 'TEXT') WHERE name = '%s'",
     NOT_AT_ALL},
    {"checks in the schema",
     "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, "
     "'wall_s REAL', 'wall_s REAL CHECK(1/0)') WHERE name = 'runs'",
     NOT_AT_ALL},
    {"vacuumed", "VACUUM", NOT_AT_ALL},
    {"large pages", "PRAGMA page_size = 65536; VACUUM", NOT_AT_ALL},
    {"small pages", "PRAGMA page_size = 512; VACUUM", NOT_AT_ALL},
    {"utf-16 study", "PRAGMA encoding = 'UTF-16'; CREATE TABLE runs(id, key, study)", NOT_AT_ALL},
    {"many runs",
     "INSERT INTO staleness SELECT 1, x + 1000, 1 FROM (WITH RECURSIVE c(x) AS (SELECT 1 "
     "UNION ALL SELECT x + 1 FROM c LIMIT 200000) SELECT x FROM c)",
     NOT_AT_ALL},
    {"large recipe", "UPDATE runs SET recipe = hex(zeroblob(20000000)) WHERE id = 2", NOT_AT_ALL},
    {"deep recipe",
     "UPDATE runs SET recipe = replace(hex(zeroblob(100000)), '00', '[') WHERE id = 2", NOT_AT_ALL},
    {"virtual table",
     "DROP TABLE evals; CREATE VIRTUAL TABLE evals USING fts5(run, step, time_s, "
     "eval_score)",
     NOT_AT_ALL},
};
enum { N_STATEMENTS = sizeof statements / sizeof *statements };

/* The columns of the table; their number. */
static size_t columns_of(sqlite3 *db, const char *table, char names[MOST_COLUMNS][64]) {
  sqlite3_stmt *q = NULL;
  size_t n = 0;
  if (sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?)", -1, &q, NULL) != SQLITE_OK)
    return 0;
  sqlite3_bind_text(q, 1, table, -1, SQLITE_STATIC);
  while (n < MOST_COLUMNS && sqlite3_step(q) == SQLITE_ROW)
    snprintf(names[n++], 64, "%.63s", (const char *)sqlite3_column_text(q, 0));
  sqlite3_finalize(q);
  return n;
}

/* A value in one cell of a table, or in all of a column. Whether anything but wall-clock facts was
 * to change is for the exports to tell: they must be what they were, or an error. */
static void change_values(trial *t, sqlite3 *db, char *how, size_t size) {
  char column[MOST_COLUMNS][64], *why = NULL;
  const char *table = tables[draw_below(t, 7)];
  const size_t n = columns_of(db, table, column);
  if (n == 0) {
    snprintf(how, size, "nothing: no table %s", table);
    return;
  }
  const char *name = column[draw_below(t, n)],
             *value = values[draw_below(t, sizeof values / sizeof *values)];
  const size_t skip = draw_below(t, 8);
  if (draw_below(t, 4) == 0)
    snprintf(how, size, "UPDATE OR REPLACE %s SET \"%s\" = %s", table, name, value);
  else
    snprintf(how, size,
             "UPDATE OR REPLACE %s SET \"%s\" = %s WHERE (\"%s\", \"%s\") IN (SELECT \"%s\", "
             "\"%s\" FROM "
             "%s LIMIT 1 OFFSET %zu)",
             table, name, value, column[0], column[1], column[0], column[1], table, skip);
  sqlite3_exec(db, how, NULL, NULL, &why);
  sqlite3_free(why);
}

static void change_schema(trial *t, sqlite3 *db, size_t which, char *how, size_t size) {
  const char *table = tables[draw_below(t, 6)], *at = statements[which].sql, *next;
  size_t used = 0;
  how[0] = '\0';
  for (; (next = strstr(at, "%s")) != NULL; at = next + 2)
    used += (size_t)snprintf(how + used, size - used, "%.*s%s", (int)(next - at), at, table);
  snprintf(how + used, size - used, "%s", at);
  char *why = NULL;
  if (draw_below(t, 2) == 0) /* views keep SQLite from changing what they read */
    sqlite3_exec(db,
                 "DROP VIEW staleness_v1; DROP VIEW set_evals_v1; DROP VIEW evals_v1; DROP VIEW "
                 "steps_v1; DROP VIEW runs_v1",
                 NULL, NULL, NULL);
  sqlite3_exec(db, how, NULL, NULL, &why);
  sqlite3_free(why);
}

void family_handmade(trial *t) {
  const char *names[N_STATEMENTS + 1] = {"values"};
  char path[TORTURE_PATH], how[900];
  sqlite3 *db = NULL;
  for (size_t i = 0; i < N_STATEMENTS; ++i) names[i + 1] = statements[i].name;
  size_t c = draw_case(t, names, sizeof *names, N_STATEMENTS + 1);
  if (c == SIZE_MAX) return;
  /* Half of all trials change values, of which there are many more. */
  if (t->session->only == NULL && draw_below(t, 2) == 0) c = 0;
  snprintf(t->chosen, sizeof t->chosen, "%s", names[c]);
  hostile_copy(t);
  if (sqlite3_open(join(path, t->work, "study.db"), &db) != SQLITE_OK)
    trial_fail(t, "the study cannot be opened");
  sqlite3_exec(db, "PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON", NULL, NULL, NULL);
  if (c == 0)
    change_values(t, db, how, sizeof how);
  else
    change_schema(t, db, c - 1, how, sizeof how);
  sqlite3_close(db);
  if (trial_good(t)) hostile_read(t, how, c > 0 ? statements[c - 1].may_differ : NOT_AT_ALL);
}
