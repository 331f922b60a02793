/* What is read compared with the checksums that were written with it. */
#include "core/store/internal.h"
#include "core/store/plan.h"

#include "core/base/hash.h"

#include <stdlib.h>
#include <string.h>

/* Where damage is told, or kept as the error of the first. */
typedef struct damage {
  store *s;
  void (*found)(void *self, const char *key, const char *text); /* NULL: the first is an error */
  void *self;
  gl_error *err;
} damage;

static gl_status verify_report(const damage *d, const char *key, const char *text) {
  if (d->found != NULL) {
    d->found(d->self, key, text);
    return GL_OK;
  }
  return gl_fail(
      d->err, GL_EIO,
      "%s is damaged: %s; restore a copy, or see `gepolab study check`, which can remove "
      "damaged runs so that a sweep makes them again",
      d->s->path, text);
}

/* Frees sql, whose records are a run's key or NULL, and the text of a damage. */
static gl_status tell_records(const damage *d, char *sql) {
  sqlite3_stmt *q = NULL;
  int code = SQLITE_DONE;
  if (sql == NULL) return gl_fail_memory(d->err, "a comparison");
  gl_status status = store_prepare(d->s, &q, sql, d->err);
  sqlite3_free(sql);
  while (status == GL_OK && (code = sqlite3_step(q)) == SQLITE_ROW) {
    const char *text = (const char *)sqlite3_column_text(q, 1);
    status =
        verify_report(d, (const char *)sqlite3_column_text(q, 0), text != NULL ? text : "a record");
  }
  if (status == GL_OK && code != SQLITE_DONE) {
    /* Pages that cannot be read end the walk; a list of all damage goes on elsewhere. */
    if (d->found != NULL && (code & 0xff) == SQLITE_CORRUPT)
      d->found(d->self, NULL, "its structure: some of its pages cannot be read");
    else
      status = store_fail(d->s, code, "reading", d->err);
  }
  sqlite3_finalize(q);
  return status;
}

/* --- sums --- */

#define RUN_TEXT "'run ' || r.key || ' (' || r.algorithm || ', seed ' || r.seed || '): '"

/* Of the strict kind, which names a value that its column may not hold, where the first damage is
 * an error; else of the kind that goes on. */
static char *sum_for(const damage *d, const store_table *t, const char *alias) {
  return d->found == NULL ? store_sum_of(d->s, "main", t, alias) : store_try_sum_of(d->s, t, alias);
}

static gl_status verify_runs(const damage *d) {
  char *sum = sum_for(d, schema_at(0), "r");
  char *sql = sum != NULL ? sqlite3_mprintf("SELECT r.key, " RUN_TEXT " || 'its record is not what "
                                            "was written' FROM runs r WHERE r.sum IS NOT %s"
                                            " OR r.sum IS NULL ORDER BY r.id",
                                            sum)
                          : NULL;
  free(sum);
  return tell_records(d, sql);
}

static gl_status verify_of_runs(const damage *d, const store_table *t) {
  char *sum = sum_for(d, t, "t"), written[STORE_SUM_SIZE];
  store_written_sum(written, t);
  char *sql =
      sum != NULL
          ? sqlite3_mprintf("SELECT r.key, " RUN_TEXT " || 'its records in the table %s are "
                            "not what was written' FROM runs r WHERE %s IS NOT"
                            " (SELECT %s FROM %s t WHERE t.run = r.id) ORDER BY r.id",
                            t->name, written, sum, t->name)
          : NULL;
  free(sum);
  return tell_records(d, sql);
}

static gl_status verify_alone(const damage *d, const store_table *t) {
  char *sum = sum_for(d, t, "t");
  char *sql = sum != NULL ? sqlite3_mprintf("SELECT NULL, 'a record of the table %s is not what was"
                                            " written' FROM %s t WHERE t.sum IS NOT %s OR t.sum IS"
                                            " NULL",
                                            t->name, t->name, sum)
                          : NULL;
  free(sum);
  return tell_records(d, sql);
}

/* Every algorithm whose runs have a chosen rate has that choice in the table. */
static gl_status verify_rates(const damage *d) {
  return tell_records(
      d,
      sqlite3_mprintf("SELECT NULL, 'the learning rate that was chosen for ' || r.algorithm ||"
                      " ' of ' || r.study || ' is gone from the table tuned' FROM runs r WHERE"
                      " r.chosen IS NOT NULL AND NOT EXISTS(SELECT 1 FROM tuned t WHERE t.study ="
                      " r.study AND t.algorithm = r.algorithm) GROUP BY r.study, r.algorithm"));
}

/* The laboratory numbers the records of a study from 0. */
static gl_status verify_measurements(const damage *d) {
  return tell_records(
      d, sqlite3_mprintf("SELECT NULL, 'measurements of the laboratory''s study ' || study || ' are"
                         " gone' FROM bias GROUP BY study HAVING count(*) != max(ordinal) + 1"));
}

/* A run that takes a place supersedes all others there. Only runs that came from studies of older
 * formats may share one, and they do not say how they came about. */
static gl_status verify_places(const damage *d) {
  return tell_records(
      d, sqlite3_mprintf("SELECT NULL, 'several runs of ' || study || ' stand in the place of ' ||"
                         " max(algorithm) || ', seed ' || max(seed) || ': what says which of them"
                         " counts is gone from the table superseded' FROM runs WHERE status !="
                         " 'failed' AND key NOT IN (SELECT key FROM superseded) GROUP BY study,"
                         " place HAVING count(*) > 1 AND count(provenance) > 0"));
}

static gl_status verify_provenance(const damage *d) {
  gl_status status = tell_records(
      d, sqlite3_mprintf("SELECT NULL, 'how the measurements of ' || study || ' came about is"
                         " gone from the table provenance' FROM laboratory WHERE provenance IS"
                         " NOT NULL AND provenance NOT IN (SELECT hash FROM provenance)"));
  if (status != GL_OK) return status;
  return tell_records(
      d, sqlite3_mprintf("SELECT NULL, 'how run ' || min(key) || ' came about is gone from the"
                         " table provenance' FROM runs WHERE provenance IS NOT NULL AND provenance"
                         " NOT IN (SELECT hash FROM provenance) GROUP BY provenance"));
}

/* Each of these tables has as many records as when it was last written, and the same ones. */
static gl_status verify_seal(const damage *d, const store_table *t) {
  if (!t->sealed) return GL_OK;
  char *sql = sqlite3_mprintf(
      "SELECT NULL, 'records of the table %s are gone, or are not those that were written last' "
      "FROM"
      " (SELECT count(*) AS n, gepolab_%srows(%Q, 'sum', sum) AS content FROM %s) t LEFT JOIN seals"
      " s ON s.name = %Q WHERE t.n != coalesce(s.records, 0) OR t.content IS NOT"
      " coalesce(s.content, 0)",
      t->name, d->found != NULL ? "try_" : "", t->name, t->name, t->name);
  return tell_records(d, sql);
}

/* What no record's checksum can show: records that are gone. */
static gl_status verify_whole(const damage *d, const store_table *t) {
  static const struct {
    const char *table;
    gl_status (*verify)(const damage *d);
  } others[] = {{"tuned", verify_rates},
                {"bias", verify_measurements},
                {"superseded", verify_places},
                {"provenance", verify_provenance}};
  gl_status status = GL_OK;
  for (size_t i = 0; i < sizeof others / sizeof *others && status == GL_OK; ++i)
    if (strcmp(others[i].table, t->name) == 0) status = others[i].verify(d);
  return status == GL_OK ? verify_seal(d, t) : status;
}

static gl_status verify_table(const damage *d, const store_table *t) {
  switch (t->kind) {
  case TABLE_OF_RUNS:
    return verify_runs(d);
  case TABLE_OF_A_RUN:
    return verify_of_runs(d, t);
  case TABLE_ALONE: {
    gl_status status = verify_alone(d, t);
    return status == GL_OK ? verify_whole(d, t) : status;
  }
  }
  return GL_OK;
}

/* The whole check of SQLite: the quick one accepts an index that lists other rows than its table
 * has, and rows that are not in the order of their key. SQLite chooses for each query whether it
 * walks a table or an index of it, so what the checksums saw would not be what is read. */
static gl_status verify_structure(const damage *d) {
  return tell_records(d, sqlite3_mprintf("SELECT NULL, 'its structure: ' || integrity_check FROM"
                                         " pragma_integrity_check(%d) WHERE integrity_check !="
                                         " 'ok'",
                                         d->found != NULL ? 20 : 1));
}

gl_status store_verify_structure(store *s, gl_error *err) {
  const damage d = {.s = s, .err = err};
  return verify_structure(&d);
}

gl_status store_verify(store *s, const char *const *names, gl_error *err) {
  const damage d = {.s = s, .err = err};
  gl_status status = verify_structure(&d);
  int runs_too = names == NULL;
  for (size_t i = 0; names != NULL && names[i] != NULL; ++i) {
    const store_table *t = schema_named(names[i]);
    if (t == NULL) return gl_fail(err, GL_EINTERNAL, "a study has no table '%s'", names[i]);
    runs_too |= t->kind != TABLE_ALONE;
  }
  static const char *const with_runs[] = {"superseded", NULL};
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i) {
    const store_table *t = schema_at(i);
    int wanted = names == NULL ||
                 (runs_too && (t->kind == TABLE_OF_RUNS || strcmp(t->name, with_runs[0]) == 0));
    for (size_t k = 0; names != NULL && names[k] != NULL; ++k)
      wanted |= strcmp(names[k], t->name) == 0;
    if (wanted) status = verify_table(&d, t);
  }
  return status;
}

/* --- everything --- */

/* Keys of runs whose recipes have meaning 1 are hashes of the recipe alone. */
int store_is_key_of(const char *key, const char *recipe, int64_t meaning) {
  char hash[HASH_HEX_SIZE];
  char *identity = store_identity(recipe, meaning);
  if (identity == NULL) return 1;
  hash_hex(identity, strlen(identity), hash);
  free(identity);
  if (strcmp(hash, key) == 0) return 1;
  hash_hex(recipe, strlen(recipe), hash);
  return meaning == 1 && strcmp(hash, key) == 0;
}

static gl_status verify_check_keys(const damage *d) {
  sqlite3_stmt *q = NULL;
  int code = SQLITE_DONE;
  gl_status status =
      store_prepare(d->s, &q, "SELECT key, recipe, meaning FROM runs ORDER BY id", d->err);
  while (status == GL_OK && (code = sqlite3_step(q)) == SQLITE_ROW) {
    const char *key = (const char *)sqlite3_column_text(q, 0);
    const char *recipe = (const char *)sqlite3_column_text(q, 1);
    if (key != NULL && recipe != NULL &&
        !store_is_key_of(key, recipe, sqlite3_column_int64(q, 2))) {
      char text[160];
      snprintf(text, sizeof text, "run %.40s: its key is not the hash of its recipe", key);
      status = verify_report(d, key, text);
    }
  }
  if (status == GL_OK && code != SQLITE_DONE) status = store_fail(d->s, code, "reading", d->err);
  sqlite3_finalize(q);
  return status;
}

static gl_status check_orphans(const damage *d) {
  gl_status status = GL_OK;
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i) {
    const store_table *t = schema_at(i);
    if (t->kind != TABLE_OF_A_RUN) continue;
    status = tell_records(d, sqlite3_mprintf("SELECT NULL, count(*) || ' records of the table %s "
                                             "belong to no run' FROM %s WHERE run NOT IN (SELECT id"
                                             " FROM runs) HAVING count(*) > 0",
                                             t->name, t->name));
  }
  return status;
}

gl_status store_check(store *s, void (*found)(void *self, const char *key, const char *text),
                      void *self, gl_error *err) {
  const damage d = {s, found, self, err};
  gl_status status = verify_structure(&d);
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i)
    status = verify_table(&d, schema_at(i));
  if (status == GL_OK) status = verify_check_keys(&d);
  return status == GL_OK ? check_orphans(&d) : status;
}
