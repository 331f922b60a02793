/* Files of older formats brought up to the present one.
 *
 * Format 1 (gepolab 0.1.0) called `swept` axes, kept one learning rate for each algorithm and
 * setting, and had neither `chosen` nor `meaning`. Format 2 had both. Neither knew places, plans,
 * provenance or checksums: the checksums that are written now vouch for what was found now. Format
 * 3 had these, but nothing that said how many records its tables have, and format 4 had no
 * evaluation sets, and format 5 not what became of drawn responses. */
#include "core/store/internal.h"
#include "core/store/plan.h"

#include <stdlib.h>

/* --- tables --- */

static gl_status add_column(store *s, const store_table *t, const store_column *c, gl_error *err) {
  static const char *const types[] = {
      [COLUMN_INTEGER] = "INTEGER", [COLUMN_REAL] = "REAL", [COLUMN_TEXT] = "TEXT"};
  char *sql =
      sqlite3_mprintf("ALTER TABLE %s ADD COLUMN \"%w\" %s", t->name, c->name, types[c->type]);
  if (sql == NULL) return gl_fail_memory(err, "a column");
  gl_status status = store_exec(s, sql, "bringing up to date", err);
  sqlite3_free(sql);
  return status;
}

static gl_status add_table(store *s, const store_table *t, gl_error *err) {
  char *sql = schema_table_sql(t);
  if (sql == NULL) return gl_fail_memory(err, "a table");
  gl_status status = store_exec(s, sql, "bringing up to date", err);
  free(sql);
  return status;
}

/* Tables and columns that are not there yet. */
static gl_status add_what_is_new(store *s, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i) {
    const store_table *t = schema_at(i);
    if (!store_has_table(s, t->name)) {
      status = add_table(s, t, err);
      continue;
    }
    for (const store_column *c = t->columns; c->name != NULL && status == GL_OK; ++c)
      if (!store_has_column(s, "main", t->name, c->name)) status = add_column(s, t, c, err);
  }
  return status;
}

/* The rates of format 1 are by setting too; where all settings of an algorithm have one rate, it is
 * the algorithm's, else there is none. */
static const char from_1[] =
    "ALTER TABLE runs RENAME COLUMN axes TO swept;"
    "CREATE TABLE tuned_before(study TEXT, algorithm TEXT, lr REAL, score REAL);"
    "INSERT INTO tuned_before SELECT study, algorithm, min(lr), max(score) FROM tuned GROUP BY"
    " study, algorithm HAVING min(lr) = max(lr);"
    "DROP TABLE tuned;"
    "CREATE TABLE tuned(study TEXT, algorithm TEXT, lr REAL, score REAL, PRIMARY KEY(study,"
    " algorithm)) WITHOUT ROWID;"
    "INSERT INTO tuned SELECT * FROM tuned_before; DROP TABLE tuned_before;"
    "ALTER TABLE runs ADD COLUMN chosen TEXT;"
    "ALTER TABLE runs ADD COLUMN meaning INTEGER; UPDATE runs SET meaning = 1;";

/* --- places --- */

static gl_status set_place(store *s, sqlite3_stmt *update, sqlite3_stmt *run, gl_error *err) {
  char place[STORE_PLACE_SIZE];
  const char *recipe = (const char *)sqlite3_column_text(run, 1);
  if (recipe == NULL)
    return gl_fail(err, GL_EIO, "a run of %s has no recipe; is the file damaged?", s->path);
  gl_status status = store_place(place, recipe, (const char *)sqlite3_column_text(run, 2),
                                 sqlite3_column_int64(run, 3), err);
  if (status != GL_OK) return status;
  sqlite3_bind_text(update, 1, place, -1, SQLITE_TRANSIENT);
  sqlite3_bind_int64(update, 2, sqlite3_column_int64(run, 0));
  return store_step_done(s, update, "bringing up to date", err);
}

static gl_status set_places(store *s, gl_error *err) {
  sqlite3_stmt *run = NULL, *update = NULL;
  int code = SQLITE_DONE;
  /* In the order of the numbers, which the update leaves alone: it does not disturb the walk. */
  gl_status status =
      store_prepare(s, &run, "SELECT id, recipe, chosen, meaning FROM runs ORDER BY id", err);
  if (status == GL_OK)
    status = store_prepare(s, &update, "UPDATE runs SET place = ?1 WHERE id = ?2", err);
  while (status == GL_OK && (code = sqlite3_step(run)) == SQLITE_ROW)
    status = set_place(s, update, run, err);
  if (status == GL_OK && code != SQLITE_DONE) status = store_fail(s, code, "reading", err);
  sqlite3_finalize(run), sqlite3_finalize(update);
  return status;
}

static gl_status set_format(store *s, gl_error *err) {
  char sql[48];
  snprintf(sql, sizeof sql, "PRAGMA user_version = %d", STORE_FORMAT);
  return store_exec(s, sql, "bringing up to date", err);
}

gl_status store_migrate(store *s, int from, gl_error *err) {
  gl_status status = GL_OK;
  if (from == 1) status = store_exec(s, from_1, "bringing up to date", err);
  if (status == GL_OK) status = add_what_is_new(s, err);
  if (from < STORE_FIRST_WHOLE) {
    if (status == GL_OK) status = store_exec(s, SCHEMA_INDEX, "bringing up to date", err);
    if (status == GL_OK) status = set_places(s, err);
    if (status == GL_OK) status = store_seal_runs(s, "1", err);
  }
  if (status == GL_OK) status = store_seal_all(s, err);
  if (status == GL_OK) status = store_check_schema(s, STORE_FORMAT, err);
  return status == GL_OK ? set_format(s, err) : status;
}
