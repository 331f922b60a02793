/* Takes damaged runs and records out of a study. */
#include "core/store/repair.h"

#include "core/store/internal.h"

#include <stdlib.h>
#include <string.h>

/* --- runs --- */

/* Notes the numbers of the runs that the query gives. Frees sql. */
static gl_status note_runs(store *s, char *query, gl_error *err) {
  char *sql = query != NULL ? sqlite3_mprintf("INSERT INTO damaged %s", query) : NULL;
  sqlite3_free(query);
  if (sql == NULL) return gl_fail_memory(err, "a comparison");
  gl_status status = store_exec(s, sql, "looking for damage in", err);
  sqlite3_free(sql);
  return status;
}

static gl_status note_damaged(store *s, const store_table *t, gl_error *err) {
  const int own = t->kind == TABLE_OF_RUNS;
  char *sum = store_try_sum_of(s, t, own ? "r" : "t"), *sql = NULL, written[STORE_SUM_SIZE];
  store_written_sum(written, t);
  if (sum != NULL && own)
    sql = sqlite3_mprintf("SELECT r.id FROM runs r WHERE r.sum IS NOT %s OR r.sum IS NULL", sum);
  else if (sum != NULL)
    sql = sqlite3_mprintf("SELECT r.id FROM runs r WHERE %s IS NOT (SELECT %s FROM %s t WHERE"
                          " t.run = r.id)",
                          written, sum, t->name);
  free(sum);
  return note_runs(s, sql, err);
}

/* Runs whose keys are not the hashes of their recipes. */
static gl_status note_false_keys(store *s, gl_error *err) {
  sqlite3_stmt *q = NULL, *note = NULL;
  int code = SQLITE_DONE;
  gl_status status =
      store_prepare(s, &q, "SELECT id, key, recipe, meaning FROM runs ORDER BY id", err);
  if (status == GL_OK) status = store_prepare(s, &note, "INSERT INTO damaged VALUES(?1)", err);
  while (status == GL_OK && (code = sqlite3_step(q)) == SQLITE_ROW) {
    const char *key = (const char *)sqlite3_column_text(q, 1);
    const char *recipe = (const char *)sqlite3_column_text(q, 2);
    if (key != NULL && recipe != NULL && store_is_key_of(key, recipe, sqlite3_column_int64(q, 3)))
      continue;
    sqlite3_bind_int64(note, 1, sqlite3_column_int64(q, 0));
    status = store_step_done(s, note, "looking for damage in", err);
  }
  if (status == GL_OK && code != SQLITE_DONE) status = store_fail(s, code, "reading", err);
  sqlite3_finalize(q), sqlite3_finalize(note);
  return status;
}

static gl_status remove_records(store *s, const char *sql, size_t *n, gl_error *err) {
  gl_status status = store_exec(s, sql, "removing damage from", err);
  if (status == GL_OK) *n += (size_t)sqlite3_changes(s->db);
  return status;
}

/* Records of a run that is removed go with it (ON DELETE CASCADE). */
static gl_status remove_runs(store *s, store_removed *out, gl_error *err) {
  gl_status status = store_exec(s, "CREATE TEMP TABLE damaged(id)", "looking for damage in", err);
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i)
    if (schema_at(i)->kind != TABLE_ALONE) status = note_damaged(s, schema_at(i), err);
  if (status == GL_OK) status = note_false_keys(s, err);
  if (status == GL_OK)
    status =
        remove_records(s, "DELETE FROM runs WHERE id IN (SELECT id FROM damaged)", &out->runs, err);
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i) {
    if (schema_at(i)->kind != TABLE_OF_A_RUN) continue;
    char *sql = sqlite3_mprintf("DELETE FROM %s WHERE run NOT IN (SELECT id FROM runs)",
                                schema_at(i)->name);
    status =
        sql != NULL ? remove_records(s, sql, &out->orphans, err) : gl_fail_memory(err, "a removal");
    sqlite3_free(sql);
  }
  return status == GL_OK ? store_exec(s, "DROP TABLE damaged", "removing damage from", err)
                         : status;
}

/* --- tables that stand alone --- */

static gl_status remove_alone(store *s, const char *name, size_t *n, gl_error *err) {
  const store_table *t = schema_named(name);
  char *sum = store_try_sum_of(s, t, t->name);
  char *sql = sum != NULL
                  ? sqlite3_mprintf("DELETE FROM %s WHERE sum IS NOT %s OR sum IS NULL", name, sum)
                  : NULL;
  free(sum);
  gl_status status =
      sql != NULL ? remove_records(s, sql, n, err) : gl_fail_memory(err, "a removal");
  sqlite3_free(sql);
  return status;
}

/* Runs of places in which several stand: the last of each place takes it. all: also of places that
 * may have been so since the file was of an older format. */
static gl_status set_places(store *s, int all, gl_error *err) {
  static const char sql[] =
      "SELECT r.key FROM runs r JOIN (SELECT max(id) AS id FROM runs WHERE status != 'failed' AND"
      " key NOT IN (SELECT key FROM superseded) GROUP BY study, place HAVING count(*) > 1 AND (?1"
      " OR count(provenance) > 0)) l ON l.id = r.id LIMIT 1";
  gl_status status = GL_OK;
  for (int code = SQLITE_ROW; code == SQLITE_ROW && status == GL_OK;) {
    sqlite3_stmt *q = NULL;
    char *key = NULL;
    status = store_prepare(s, &q, sql, err);
    if (status != GL_OK) return status;
    sqlite3_bind_int(q, 1, all);
    code = sqlite3_step(q);
    const char *found = code == SQLITE_ROW ? (const char *)sqlite3_column_text(q, 0) : NULL;
    if (code == SQLITE_ROW && (found == NULL || (key = strdup(found)) == NULL))
      status = gl_fail_memory(err, "a key");
    else if (code != SQLITE_ROW && code != SQLITE_DONE)
      status = store_fail(s, code, "reading", err);
    sqlite3_finalize(q);
    if (key != NULL) status = store_take_place(s, key, err);
    free(key);
  }
  return status;
}

/* Runs and measurements forget what the file no longer says of how they came about. */
static gl_status forget_provenance(store *s, gl_error *err) {
  gl_status status =
      store_exec(s,
                 "UPDATE runs SET provenance = NULL, sum = NULL WHERE provenance IS NOT NULL AND"
                 " provenance NOT IN (SELECT hash FROM provenance);"
                 "UPDATE laboratory SET provenance = NULL, sum = NULL WHERE provenance IS NOT NULL"
                 " AND provenance NOT IN (SELECT hash FROM provenance);"
                 "DELETE FROM laboratory WHERE study NOT IN (SELECT study FROM bias)",
                 "removing damage from", err);
  return status == GL_OK ? store_seal_runs(s, "sum IS NULL", err) : status;
}

gl_status store_complete(store *s, int places_lost, gl_error *err) {
  gl_status status = set_places(s, places_lost, err);
  if (status == GL_OK)
    status = store_exec(
        s,
        "DELETE FROM bias WHERE study IN (SELECT study FROM bias GROUP BY study HAVING count(*) !="
        " max(ordinal) + 1)",
        "removing damage from", err);
  if (status == GL_OK)
    status = store_exec(
        s,
        "INSERT OR IGNORE INTO tuned(study, algorithm, lr) SELECT study, algorithm, lr FROM (SELECT"
        " study, algorithm, lr, max(id) FROM runs WHERE chosen IS NOT NULL AND key NOT IN (SELECT "
        "key"
        " FROM superseded) GROUP BY study, algorithm)",
        "restoring rates of", err);
  if (status == GL_OK) status = forget_provenance(s, err);
  if (status == GL_OK) status = store_exec(s, "DELETE FROM seals", "removing damage from", err);
  return status == GL_OK ? store_seal_all(s, err) : status;
}

static gl_status remove_all(store *s, store_removed *out, gl_error *err) {
  const struct {
    const char *name;
    size_t *n;
  } alone[] = {{"tuned", &out->tuned},
               {"tuning_scores", &out->tuning_scores},
               {"bias", &out->bias},
               {"sweeps", &out->sweeps},
               {"plan", &out->plan},
               {"superseded", &out->superseded},
               {"provenance", &out->provenance},
               {"laboratory", &out->provenance}};
  gl_status status = remove_runs(s, out, err);
  for (size_t i = 0; i < sizeof alone / sizeof *alone && status == GL_OK; ++i)
    status = remove_alone(s, alone[i].name, alone[i].n, err);
  if (status == GL_OK && out->bias > 0)
    status = remove_records(s, "DELETE FROM bias", &out->bias, err);
  return status == GL_OK ? store_complete(s, out->superseded > 0, err) : status;
}

gl_status store_repair(store *s, store_removed *out, gl_error *err) {
  gl_error why = {0};
  *out = (store_removed){0};
  gl_status status = store_begin(s, err);
  if (status != GL_OK) return status;
  if (store_verify_structure(s, &why) != GL_OK)
    status = gl_fail(err, GL_EIO,
                     "the structure of %s itself is damaged, which cannot be repaired in place: "
                     "`gepolab check %s --salvage NEW.db` copies what is whole into a new study",
                     s->path, s->path);
  if (status == GL_OK) status = remove_all(s, out, err);
  status = store_end(s, status, err);
  if (status != GL_OK) *out = (store_removed){0};
  return status;
}
