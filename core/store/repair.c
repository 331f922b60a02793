/* Takes damaged runs and records out of a study. */
#include "core/store/repair.h"

#include "core/base/file.h"
#include "core/store/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    status =
        gl_fail(err, GL_EIO,
                "the structure of %s itself is damaged, which cannot be repaired in place: "
                "`gepolab study check %s --salvage NEW.db` copies what is whole into a new study",
                s->path, s->path);
  if (status == GL_OK) status = remove_all(s, out, err);
  status = store_end(s, status, err);
  if (status != GL_OK) *out = (store_removed){0};
  return status;
}

/* --- salvage --- */
/* Copies what is whole of a study whose structure is damaged into a new one. Every record goes with
 * the checksum that was written with it, and stays only if it still has it there. */

typedef struct salvage {
  store *from, *to;
  store_salvaged *out;
  int places_lost; /* 1: not all of the table superseded came through */
  gl_error *err;
} salvage;

/* --- one table --- */

/* The columns of the table in the new study: on the heap, quoted, with commas. *n of them. */
static char *columns_of(store *s, const store_table *t, int *n) {
  sqlite3_stmt *q = NULL;
  char *text = NULL;
  size_t size = 0;
  char *sql = sqlite3_mprintf("SELECT name FROM pragma_table_info(%Q)", t->name);
  FILE *to = open_memstream(&text, &size);
  int ok = sql != NULL && to != NULL && sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK;
  for (*n = 0; ok && sqlite3_step(q) == SQLITE_ROW; ++*n)
    fprintf(to, "%s\"%s\"", *n > 0 ? ", " : "", (const char *)sqlite3_column_text(q, 0));
  sqlite3_finalize(q);
  sqlite3_free(sql);
  if (to != NULL) ok = fclose(to) == 0 && ok;
  if (ok) return text;
  free(text);
  return NULL;
}

/* A query for those columns of the damaged study's table, whose metrics may be fewer, and an
 * insertion into the new one. */
static gl_status prepare_copy(salvage *v, sqlite3_stmt **read, sqlite3_stmt **write,
                              const store_table *t, const char *rest) {
  int n = 0;
  *read = *write = NULL;
  char *there = columns_of(v->from, t, &n);
  char *query =
      there != NULL ? sqlite3_mprintf("SELECT %s FROM %s %s", there, t->name, rest) : NULL;
  char *places = sqlite3_mprintf("?");
  for (int i = 1; i < n && places != NULL; ++i) places = sqlite3_mprintf("%z, ?", places);
  char *insert =
      there != NULL && places != NULL
          ? sqlite3_mprintf("INSERT OR IGNORE INTO %s(%s) VALUES(%s)", t->name, there, places)
          : NULL;
  gl_status status = query != NULL && insert != NULL ? GL_OK : gl_fail_memory(v->err, "a copy");
  if (status == GL_OK) status = store_prepare(v->from, read, query, v->err);
  if (status == GL_OK) status = store_prepare(v->to, write, insert, v->err);
  sqlite3_free(query), sqlite3_free(places), sqlite3_free(insert);
  free(there);
  return status;
}

/* Copies the rows of a prepared query; *whole is 0 where they cannot be read to their end, or not
 * be written. */
static gl_status copy_rows(salvage *v, sqlite3_stmt *read, sqlite3_stmt *write, size_t *n,
                           int *whole) {
  int code;
  while ((code = sqlite3_step(read)) == SQLITE_ROW) {
    for (int i = 0; i < sqlite3_column_count(read); ++i)
      sqlite3_bind_value(write, i + 1, sqlite3_column_value(read, i));
    const int put = sqlite3_step(write);
    sqlite3_reset(write);
    if (put == SQLITE_DONE)
      *n += (size_t)sqlite3_changes(v->to->db);
    else if ((put & 0xff) == SQLITE_CONSTRAINT || (put & 0xff) == SQLITE_MISMATCH)
      *whole = 0;
    else
      return store_fail(v->to, put, "writing", v->err);
  }
  if (code == SQLITE_DONE) return GL_OK;
  *whole = 0;
  return (code & 0xff) == SQLITE_NOMEM ? store_fail(v->from, code, "reading", v->err) : GL_OK;
}

/* --- runs --- */

/* All records of the run of that number, into the new study. */
static gl_status copy_run(salvage *v, int64_t id, int *whole) {
  gl_status status = GL_OK;
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i) {
    const store_table *t = schema_at(i);
    sqlite3_stmt *read = NULL, *write = NULL;
    size_t n = 0;
    if (t->kind == TABLE_ALONE) continue;
    status = prepare_copy(v, &read, &write, t,
                          t->kind == TABLE_OF_RUNS ? "WHERE id = ?1" : "WHERE run = ?1");
    if (status == GL_OK) sqlite3_bind_int64(read, 1, id);
    if (status == GL_OK) status = copy_rows(v, read, write, &n, whole);
    if (t->kind == TABLE_OF_RUNS && n != 1) *whole = 0;
    sqlite3_finalize(read), sqlite3_finalize(write);
  }
  return status;
}

/* 1 if the run of that number in the new study has the sums that were written with it. */
static int has_its_sums(store *s, int64_t id) {
  int good = 1;
  for (size_t i = 0; schema_at(i) != NULL && good; ++i) {
    const store_table *t = schema_at(i);
    const int own = t->kind == TABLE_OF_RUNS;
    sqlite3_stmt *q = NULL;
    if (t->kind == TABLE_ALONE) continue;
    char *sum = store_try_sum_of(s, t, own ? "r" : "t"), *sql = NULL, written[STORE_SUM_SIZE];
    store_written_sum(written, t);
    if (sum != NULL && own)
      sql = sqlite3_mprintf("SELECT r.sum = %s, r.key, r.recipe, r.meaning FROM runs r WHERE r.id ="
                            " ?1",
                            sum);
    else if (sum != NULL)
      sql = sqlite3_mprintf("SELECT %s = (SELECT %s FROM %s t WHERE t.run = r.id) FROM runs r"
                            " WHERE r.id = ?1",
                            written, sum, t->name);
    free(sum);
    good = sql != NULL && store_prepare(s, &q, sql, NULL) == GL_OK;
    if (good) sqlite3_bind_int64(q, 1, id);
    good = good && sqlite3_step(q) == SQLITE_ROW && sqlite3_column_int(q, 0) == 1;
    if (good && own)
      good = store_is_key_of((const char *)sqlite3_column_text(q, 1),
                             (const char *)sqlite3_column_text(q, 2), sqlite3_column_int64(q, 3));
    sqlite3_finalize(q);
    sqlite3_free(sql);
  }
  return good;
}

static gl_status salvage_run(salvage *v, int64_t id) {
  int whole = 1;
  gl_status status = store_exec(v->to, "SAVEPOINT run", "writing", v->err);
  if (status == GL_OK) status = copy_run(v, id, &whole);
  if (status != GL_OK) return status;
  whole = whole && has_its_sums(v->to, id);
  ++*(whole ? &v->out->runs : &v->out->lost_runs);
  return store_exec(v->to, whole ? "RELEASE run" : "ROLLBACK TO run; RELEASE run", "writing",
                    v->err);
}

/* The next run's number after (or, going down, before) that one; 0 where there is none, or where it
 * cannot be read. */
static int64_t next_run(salvage *v, const char *sql, int64_t than) {
  sqlite3_stmt *q = NULL;
  int64_t id = 0;
  if (store_prepare(v->from, &q, sql, NULL) != GL_OK) return 0;
  sqlite3_bind_int64(q, 1, than);
  if (sqlite3_step(q) == SQLITE_ROW) id = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  return id;
}

/* From both ends: what lies between pages that cannot be read is not seen. */
static gl_status salvage_runs(salvage *v) {
  static const char up[] = "SELECT id FROM runs WHERE id > ?1 ORDER BY id LIMIT 1";
  static const char down[] = "SELECT id FROM runs WHERE id < ?1 ORDER BY id DESC LIMIT 1";
  gl_status status = GL_OK;
  int64_t last = 0, id;
  while (status == GL_OK && (id = next_run(v, up, last)) > last) {
    status = salvage_run(v, id);
    last = id;
  }
  for (int64_t than = INT64_MAX; status == GL_OK && (id = next_run(v, down, than)) > last;
       than = id)
    status = salvage_run(v, id);
  return status;
}

/* --- tables that stand alone --- */

static gl_status remove_damaged(salvage *v, const store_table *t, size_t *n) {
  char *sum = store_try_sum_of(v->to, t, t->name);
  char *sql = sum != NULL ? sqlite3_mprintf("DELETE FROM %s WHERE sum IS NOT %s OR sum IS NULL",
                                            t->name, sum)
                          : NULL;
  free(sum);
  gl_status status =
      sql != NULL ? store_exec(v->to, sql, "writing", v->err) : gl_fail_memory(v->err, "a removal");
  *n = status == GL_OK ? (size_t)sqlite3_changes(v->to->db) : 0;
  sqlite3_free(sql);
  return status;
}

/* The measurements of the laboratory that are not all there are none. */
static gl_status salvage_alone(salvage *v, const store_table *t) {
  const char *columns = t->key;
  gl_status status = GL_OK;
  size_t n = 0, damaged = 0;
  int whole = 1;
  for (int down = 0; down < 2 && status == GL_OK; ++down) {
    sqlite3_stmt *read = NULL, *write = NULL;
    char first[64];
    snprintf(first, sizeof first, "ORDER BY %.*s%s", (int)strcspn(columns, ","), columns,
             down ? " DESC" : "");
    if (down && whole) break;
    status = prepare_copy(v, &read, &write, t, first);
    if (status == GL_OK) status = copy_rows(v, read, write, &n, &whole);
    sqlite3_finalize(read), sqlite3_finalize(write);
  }
  if (status == GL_OK) status = remove_damaged(v, t, &damaged);
  v->out->lost += damaged + (whole ? 0 : 1);
  if (strcmp(t->name, "superseded") == 0) v->places_lost = !whole || damaged > 0;
  if (status == GL_OK && strcmp(t->name, "bias") == 0 && (!whole || damaged > 0))
    status = store_exec(v->to, "DELETE FROM bias", "writing", v->err);
  return status;
}

/* --- all of it --- */

static gl_status salvage_all(salvage *v) {
  gl_status status = store_begin(v->to, v->err);
  if (status != GL_OK) return status;
  status = salvage_runs(v);
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i)
    if (schema_at(i)->kind == TABLE_ALONE && strcmp(schema_at(i)->name, "seals") != 0)
      status = salvage_alone(v, schema_at(i));
  if (status == GL_OK) status = store_complete(v->to, v->places_lost, v->err);
  return store_end(v->to, status, v->err);
}

/* NAME.PID.tmp, as files in the making are called; NULL if memory is short. */
static char *name_aside(const char *to) {
  const size_t size = strlen(to) + 32;
  char *name = malloc(size);
  if (name != NULL) snprintf(name, size, "%s.%ld.tmp", to, (long)getpid());
  return name;
}

static gl_status salvage_into(salvage *v, const char *path) {
  unlink(path); /* a killed process of the same number may have left one */
  gl_status status = store_open(&v->to, path, STORE_WRITE, v->err);
  /* Nobody else knows the file, and it is removed where it fails: it needs no journal beside it. */
  if (status == GL_OK)
    status = store_exec(v->to, "PRAGMA journal_mode = MEMORY", "writing", v->err);
  if (status == GL_OK) status = salvage_all(v);
  const int made = v->to != NULL;
  store_close(v->to);
  if (status != GL_OK && made) unlink(path);
  return status;
}

gl_status store_salvage(const char *from, const char *to, store_salvaged *out, gl_error *err) {
  salvage v = {.out = out, .err = err};
  *out = (store_salvaged){0};
  if (access(to, F_OK) == 0 || errno != ENOENT)
    return gl_fail(err, GL_EINPUT, "%s is there already; name a file that is not", to);
  char *aside = name_aside(to);
  if (aside == NULL) return gl_fail_memory(err, "a file's name");
  gl_status status = store_open(&v.from, from, STORE_READ, err);
  if (status == GL_OK) {
    status = salvage_into(&v, aside);
    if (status == GL_OK && (status = file_name_new(aside, to, err)) != GL_OK) unlink(aside);
  }
  store_close(v.from);
  free(aside);
  return status;
}
