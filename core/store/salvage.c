/* Copies what is whole of a study whose structure is damaged into a new one. Every record goes with
 * the checksum that was written with it, and stays only if it still has it there. */
#include "core/store/repair.h"

#include "core/base/file.h"
#include "core/store/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
