/* Joining studies: the runs of another file, where both files agree on what they share. */
#include "core/store/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The tables that belong to a run, by a column `run`. */
static const char *const run_tables[] = {"steps", "evals", "staleness", "clock"};
enum { N_RUN_TABLES = sizeof run_tables / sizeof *run_tables };

/* A table's columns but for the run's number, which is each file's own matter: as names, and as SQL
 * that selects them here ("t.step, …") and in the other file, where some may be missing. */
typedef struct columns {
  char *names, *here, *there;
} columns;

static void columns_fini(columns *c) {
  free(c->names), free(c->here), free(c->there);
}

static gl_status columns_init(columns *c, store *s, const char *table, gl_error *err) {
  enum { MOST = STORE_STEP_COLUMNS + 16 };
  const char *name[MOST];
  sqlite3_stmt *stmt = NULL;
  int n = 0;
  *c = (columns){0};
  char *sql = sqlite3_mprintf("SELECT * FROM main.%s", table);
  if (sql == NULL) return gl_fail_memory(err, "a table's columns");
  gl_status status = store_prepare(s, &stmt, sql, err);
  sqlite3_free(sql);
  if (status != GL_OK) return status;
  for (int k = 0; k < sqlite3_column_count(stmt) && status == GL_OK; ++k) {
    const char *of = sqlite3_column_name(stmt, k);
    if (of == NULL)
      status = gl_fail_memory(err, "a table's columns");
    else if (n == MOST)
      status = gl_fail(err, GL_EIO, "%s: the table %s has too many columns", s->path, table);
    else if (strcmp(of, "run") != 0)
      name[n++] = of;
  }
  size_t size = 0;
  FILE *to = status == GL_OK ? open_memstream(&c->names, &size) : NULL;
  for (int k = 0; k < n && to != NULL; ++k) fprintf(to, "%s\"%s\"", k > 0 ? ", " : "", name[k]);
  int whole = to != NULL && fclose(to) == 0;
  c->here = store_columns(s, "main", table, "t", name, (size_t)n);
  c->there = store_columns(s, "other", table, "t", name, (size_t)n);
  sqlite3_finalize(stmt);
  if (status == GL_OK && (!whole || c->here == NULL || c->there == NULL))
    status = gl_fail_memory(err, "a table's columns");
  return status;
}

/* --- agreement -----------------------------------------------------------------------------------
 */

/* Frees sql, a query that gives a record for each disagreement; `what` with that record's text in
 * it is the complaint. */
static gl_status refuse_records(store *s, const char *path, char *sql, const char *what,
                                gl_error *err) {
  if (sql == NULL) return gl_fail_memory(err, "a comparison");
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_prepare(s, &stmt, sql, err);
  sqlite3_free(sql);
  if (status != GL_OK) return status;
  int code = sqlite3_step(stmt);
  if (code == SQLITE_ROW)
    status = gl_fail(err, GL_EINPUT,
                     "%s and %s disagree about %s %s; they come from different versions or settings"
                     " of gepolab, so keep them apart",
                     s->path, path, what, (const char *)sqlite3_column_text(stmt, 0));
  else if (code != SQLITE_DONE)
    status = store_fail(s, code, "comparing", err);
  sqlite3_finalize(stmt);
  return status;
}

/* A run that both files have finished must be the same run, down to the last metric. */
static gl_status check_runs(store *s, const char *path, gl_error *err) {
  gl_status status = refuse_records(
      s, path,
      sqlite3_mprintf("SELECT a.key FROM main.runs a JOIN other.runs b ON a.key = b.key WHERE "
                      "a.recipe != b.recipe OR (a.status != b.status AND a.status != 'failed' AND "
                      "b.status != 'failed')"),
      "run", err);
  for (int t = 0; t < N_RUN_TABLES && status == GL_OK; ++t) {
    const char *table = run_tables[t];
    columns c;
    status = columns_init(&c, s, table, err);
    if (status == GL_OK)
      status = refuse_records(
          s, path,
          sqlite3_mprintf("SELECT a.key FROM main.runs a JOIN other.runs b ON a.key = b.key WHERE "
                          "a.status != 'failed' AND b.status != 'failed' AND ("
                          "EXISTS(SELECT %s FROM main.%s t WHERE run = a.id EXCEPT "
                          "SELECT %s FROM other.%s t WHERE run = b.id) OR "
                          "EXISTS(SELECT %s FROM other.%s t WHERE run = b.id EXCEPT "
                          "SELECT %s FROM main.%s t WHERE run = a.id))",
                          c.here, table, c.there, table, c.there, table, c.here, table),
          "run", err);
    columns_fini(&c);
  }
  return status;
}

static gl_status check_tuned(store *s, const char *path, gl_error *err) {
  return refuse_records(s, path,
                        sqlite3_mprintf("SELECT a.algorithm FROM main.tuned a JOIN other.tuned b "
                                        "USING(study, algorithm) WHERE a.lr IS NOT b.lr"),
                        "the learning rate of", err);
}

/* --- copying -------------------------------------------------------------------------------------
 */

static gl_status copy_table(store *s, const char *table, gl_error *err) {
  columns c;
  char *sql = NULL;
  gl_status status = columns_init(&c, s, table, err);
  if (status == GL_OK &&
      (sql = sqlite3_mprintf("INSERT INTO main.%s(run, %s) SELECT r.id, %s FROM other.%s t JOIN"
                             " wanted w ON w.old = t.run JOIN (SELECT id, key FROM main.runs) r"
                             " ON r.key = w.key",
                             table, c.names, c.there, table)) == NULL)
    status = gl_fail_memory(err, "a merge");
  if (status == GL_OK) status = store_exec(s, sql, "merging into", err);
  sqlite3_free(sql);
  columns_fini(&c);
  return status;
}

/* Inside a transaction, so that the temporary table too is gone if it fails. */
static gl_status copy_attached(store *s, const char *path, gl_error *err) {
  static const char runs[] =
      "CREATE TEMP TABLE wanted AS SELECT b.id AS old, b.key AS key FROM other.runs b LEFT JOIN "
      "main.runs a ON a.key = b.key WHERE a.key IS NULL OR (a.status = 'failed' AND b.status != "
      "'failed');"
      "DELETE FROM main.runs WHERE key IN (SELECT key FROM wanted);"
      "INSERT INTO main.runs(key, ordinal, study, algorithm, swept, chosen, meaning, seed, lr, "
      "status, reason, recipe, code_version, machine, wall_s) SELECT key, ordinal, study, "
      "algorithm, swept, chosen, meaning, seed, lr, status, reason, recipe, code_version, machine, "
      "wall_s FROM other.runs WHERE id IN (SELECT old FROM wanted) ORDER BY id;"
      "INSERT OR IGNORE INTO main.tuned(study, algorithm, lr, score) SELECT study, algorithm, lr, "
      "score FROM other.tuned;";
  gl_status status = check_runs(s, path, err);
  if (status == GL_OK) status = check_tuned(s, path, err);
  if (status == GL_OK) status = store_exec(s, runs, "merging into", err);
  for (int t = 0; t < N_RUN_TABLES && status == GL_OK; ++t)
    status = copy_table(s, run_tables[t], err);
  if (status == GL_OK) status = store_exec(s, "DROP TABLE wanted", "merging into", err);
  return status;
}

static int is_same_file(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

gl_status store_merge(store *into, const char *path, gl_error *err) {
  if (is_same_file(into->path, path))
    return gl_fail(err, GL_EINPUT, "%s cannot be merged into itself; give another study", path);
  store *other = NULL; /* opened once by itself, so that a wrong file is named as such */
  gl_status status = store_open(&other, path, STORE_READ, err);
  store_close(other);
  if (status != GL_OK) return status;
  char *attach = sqlite3_mprintf("ATTACH %Q AS other", path);
  if (attach == NULL) return gl_fail_memory(err, "a path");
  status = store_exec(into, attach, "merging into", err);
  sqlite3_free(attach);
  if (status != GL_OK) return status;
  status = store_begin(into, err);
  if (status == GL_OK) status = store_end(into, copy_attached(into, path, err), err);
  sqlite3_exec(into->db, "DETACH other", NULL, NULL, NULL);
  return status;
}
