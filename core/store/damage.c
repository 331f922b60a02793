/* Damage of a study: verifies checksums, removes damaged records, and copies the undamaged part of
 * a damaged file to a new study. */
#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/store/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where damage is reported: every damage to found(), or only the first one as an error. */
typedef struct damage {
  store *s;
  void (*found)(void *self, const char *key,
                const char *text); /* NULL: return the first damage as an error */
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

/* Reports all records of the query, which are a run's key or NULL and a description of damage, and
 * ends the query. */
static gl_status report_records(const damage *d, query *q) {
  if (q->status != GL_OK) return query_end(q);
  q->err = NULL; /* pages that cannot be read are damage too, not errors */
  while (query_next(q)) {
    const char *text = query_get_text(q, 1);
    q->status = verify_report(d, query_get_text(q, 0), text != NULL ? text : "a record");
  }
  if (q->code == SQLITE_ROW || q->code == SQLITE_DONE) return query_end(q);
  query_end(q);
  if (d->found == NULL || (q->code & 0xff) != SQLITE_CORRUPT)
    return store_fail(d->s, q->code, q->doing, d->err);
  d->found(d->self, NULL, "its structure: some of its pages cannot be read");
  return GL_OK;
}

/* --- checksums --- */

#define RUN_TEXT "'run ' || r.key || ' (' || r.algorithm || ', seed ' || r.seed || '): '"

/* SQL for the checksum. If the first damage is to be returned as an error, this is the strict
 * function, which ends the query at an invalid value; otherwise the one that returns NULL. */
static char *sum_for(const damage *d, const store_table *t, const char *alias) {
  return d->found == NULL ? store_sum_of(d->s, "main", t, alias) : store_try_sum_of(d->s, t, alias);
}

static gl_status verify_sums(const damage *d, const store_table *t) {
  char *sum = sum_for(d, t, t->kind == TABLE_OF_RUNS ? "r" : "t"), written[STORE_SUM_SIZE];
  query q;
  if (sum == NULL) return gl_fail_memory(d->err, "a comparison");
  switch (t->kind) {
  case TABLE_OF_RUNS:
    query_beginf(&q, d->s, d->err,
                 "SELECT r.key, " RUN_TEXT " || 'its record is not what was written' FROM runs r"
                 " WHERE r.sum IS NOT %s OR r.sum IS NULL ORDER BY r.id",
                 sum);
    break;
  case TABLE_OF_A_RUN:
    store_written_sum(written, t);
    query_beginf(&q, d->s, d->err,
                 "SELECT r.key, " RUN_TEXT " || 'its records in the table %s are not what was"
                 " written' FROM runs r WHERE %s IS NOT (SELECT %s FROM %s t WHERE t.run = r.id)"
                 " ORDER BY r.id",
                 t->name, written, sum, t->name);
    break;
  case TABLE_ALONE:
    query_beginf(&q, d->s, d->err,
                 "SELECT NULL, 'a record of the table %s is not what was written' FROM %s t WHERE"
                 " t.sum IS NOT %s OR t.sum IS NULL",
                 t->name, t->name, sum);
    break;
  }
  free(sum);
  return report_records(d, &q);
}

/* Checks the number of records and their checksums in each sealed table against the seal. */
static gl_status verify_seal(const damage *d, const store_table *t) {
  query q;
  if (!t->sealed) return GL_OK;
  query_beginf(
      &q, d->s, d->err,
      "SELECT NULL, 'records of the table %s are gone, or are not those that were written last'"
      " FROM (SELECT count(*) AS n, gepolab_%srows(%Q, 'sum', sum) AS content FROM %s) t LEFT JOIN"
      " seals s ON s.name = %Q WHERE t.n != coalesce(s.records, 0) OR t.content IS NOT"
      " coalesce(s.content, 0)",
      t->name, d->found != NULL ? "try_" : "", t->name, t->name, t->name);
  return report_records(d, &q);
}

/* Queries for missing records in these tables, which checksums of records cannot detect. */
static const struct {
  const char *table, *sql;
} gone[] = {
    /* Every algorithm whose runs have a tuned rate must have that rate in the table. */
    {"tuned",
     "SELECT NULL, 'the learning rate that was chosen for ' || r.algorithm || ' of ' || r.study ||"
     " ' is gone from the table tuned' FROM runs r WHERE r.chosen IS NOT NULL AND NOT EXISTS(SELECT"
     " 1 FROM tuned t WHERE t.study = r.study AND t.algorithm = r.algorithm) GROUP BY r.study,"
     " r.algorithm"},
    /* The laboratory numbers the records of a study from 0. */
    {"bias",
     "SELECT NULL, 'measurements of the laboratory''s study ' || study || ' are gone' FROM bias"
     " GROUP BY study HAVING count(*) != max(ordinal) + 1"},
    /* A run that takes a place supersedes all others there. */
    {"superseded",
     "SELECT NULL, 'several runs of ' || study || ' stand in the place of ' || max(algorithm) ||"
     " ', seed ' || max(seed) || ': what says which of them counts is gone from the table"
     " superseded' FROM runs WHERE status != 'failed' AND key NOT IN (SELECT key FROM superseded)"
     " GROUP BY study, place HAVING count(*) > 1"},
    {"provenance",
     "SELECT NULL, 'how the measurements of ' || study || ' came about is gone from the table"
     " provenance' FROM laboratory WHERE provenance IS NOT NULL AND provenance NOT IN (SELECT hash"
     " FROM provenance)"},
    {"provenance",
     "SELECT NULL, 'how run ' || min(key) || ' came about is gone from the table provenance' FROM"
     " runs WHERE provenance IS NOT NULL AND provenance NOT IN (SELECT hash FROM provenance) GROUP"
     " BY provenance"},
};

static gl_status verify_table(const damage *d, const store_table *t) {
  gl_status status = verify_sums(d, t);
  for (size_t i = 0; i < sizeof gone / sizeof *gone && status == GL_OK; ++i) {
    query q;
    if (strcmp(gone[i].table, t->name) != 0) continue;
    query_begin(&q, d->s, gone[i].sql, d->err);
    status = report_records(d, &q);
  }
  return status == GL_OK ? verify_seal(d, t) : status;
}

/* Runs SQLite's complete integrity check. The quick check accepts an index that disagrees with its
 * table and rows out of key order. SQLite may read the table or its index, query by query, so
 * checksums could verify other data than is read later. */
static gl_status verify_structure(const damage *d) {
  query q;
  query_beginf(&q, d->s, d->err,
               "SELECT NULL, 'its structure: ' || integrity_check FROM pragma_integrity_check(%d)"
               " WHERE integrity_check != 'ok'",
               d->found != NULL ? 20 : 1);
  return report_records(d, &q);
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

/* --- all checks --- */

/* Whether the key is the hash of store_identity(), or of the recipe alone, as older programs made
 * it for meaning 1; also true if out of memory. */
static int is_key_of(const char *key, const char *recipe, int64_t meaning) {
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
  query q;
  query_begin(&q, d->s, "SELECT key, recipe, meaning FROM runs ORDER BY id", d->err);
  while (query_next(&q)) {
    const char *key = query_get_text(&q, 0), *recipe = query_get_text(&q, 1);
    if (key != NULL && recipe != NULL && !is_key_of(key, recipe, query_get_integer(&q, 2))) {
      char text[160];
      snprintf(text, sizeof text, "run %.40s: its key is not the hash of its recipe", key);
      q.status = verify_report(d, key, text);
    }
  }
  return query_end(&q);
}

static gl_status check_orphans(const damage *d) {
  gl_status status = GL_OK;
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i) {
    const store_table *t = schema_at(i);
    query q;
    if (t->kind != TABLE_OF_A_RUN) continue;
    query_beginf(&q, d->s, d->err,
                 "SELECT NULL, count(*) || ' records of the table %s belong to no run' FROM %s"
                 " WHERE run NOT IN (SELECT id FROM runs) HAVING count(*) > 0",
                 t->name, t->name);
    status = report_records(d, &q);
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

/* --- repair: runs --- */

static const char looking[] = "looking for damage in", removing[] = "removing damage from";

/* Records the numbers of runs whose records in the table do not match their checksum. */
static gl_status note_damaged(store *s, const store_table *t, gl_error *err) {
  const bool own = t->kind == TABLE_OF_RUNS;
  char *sum = store_try_sum_of(s, t, own ? "r" : "t"), written[STORE_SUM_SIZE];
  if (sum == NULL) return gl_fail_memory(err, "a comparison");
  store_written_sum(written, t);
  gl_status status =
      own ? store_execf(s, looking, err,
                        "INSERT INTO damaged SELECT r.id FROM runs r WHERE r.sum IS NOT %s OR r.sum"
                        " IS NULL",
                        sum)
          : store_execf(s, looking, err,
                        "INSERT INTO damaged SELECT r.id FROM runs r WHERE %s IS NOT (SELECT %s"
                        " FROM %s t WHERE t.run = r.id)",
                        written, sum, t->name);
  free(sum);
  return status;
}

/* Records the runs whose key is not the hash of their recipe. */
static gl_status note_false_keys(store *s, gl_error *err) {
  query q, note;
  query_begin(&q, s, "SELECT id, key, recipe, meaning FROM runs ORDER BY id", err);
  query_begin(&note, s, "INSERT INTO damaged VALUES(?1)", err);
  note.doing = looking;
  while (note.status == GL_OK && query_next(&q)) {
    const char *key = query_get_text(&q, 1), *recipe = query_get_text(&q, 2);
    if (key != NULL && recipe != NULL && is_key_of(key, recipe, query_get_integer(&q, 3))) continue;
    query_bind_integer(&note, 1, query_get_integer(&q, 0));
    query_run(&note);
  }
  gl_status status = query_end(&q);
  return query_end(&note) != GL_OK ? note.status : status;
}

/* Adds the number of records that the last statement removed to *n, if it succeeded. */
static gl_status count_removed(store *s, gl_status status, size_t *n) {
  if (status == GL_OK) *n += (size_t)sqlite3_changes(s->db);
  return status;
}

/* Removes damaged runs; their records in other tables are removed with them (ON DELETE CASCADE). */
static gl_status remove_runs(store *s, store_removed *out, gl_error *err) {
  gl_status status = store_exec(s, "CREATE TEMP TABLE damaged(id)", looking, err);
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i)
    if (schema_at(i)->kind != TABLE_ALONE) status = note_damaged(s, schema_at(i), err);
  if (status == GL_OK) status = note_false_keys(s, err);
  if (status == GL_OK)
    status = count_removed(
        s, store_exec(s, "DELETE FROM runs WHERE id IN (SELECT id FROM damaged)", removing, err),
        &out->runs);
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i)
    if (schema_at(i)->kind == TABLE_OF_A_RUN)
      status = count_removed(s,
                             store_execf(s, removing, err,
                                         "DELETE FROM %s WHERE run NOT IN (SELECT id FROM runs)",
                                         schema_at(i)->name),
                             &out->orphans);
  return status == GL_OK ? store_exec(s, "DROP TABLE damaged", removing, err) : status;
}

/* --- repair: tables that belong to no run --- */

/* Removes records of the table with a wrong checksum; adds their number to *n. */
static gl_status remove_alone(store *s, const char *table, size_t *n, gl_error *err) {
  char *sum = store_try_sum_of(s, schema_named(table), table);
  if (sum == NULL) return gl_fail_memory(err, "a removal");
  gl_status status = store_execf(s, removing, err,
                                 "DELETE FROM %s WHERE sum IS NOT %s OR sum IS NULL", table, sum);
  free(sum);
  return count_removed(s, status, n);
}

/* Resolves places with several runs: the last run of each place supersedes the others. */
static gl_status set_places(store *s, gl_error *err) {
  static const char sql[] =
      "SELECT r.key FROM runs r JOIN (SELECT max(id) AS id FROM runs WHERE status != 'failed' AND"
      " key NOT IN (SELECT key FROM superseded) GROUP BY study, place HAVING count(*) > 1) l ON"
      " l.id = r.id LIMIT 1";
  for (;;) {
    query q;
    query_begin(&q, s, sql, err);
    const bool found = query_next(&q);
    char *key = found ? sqlite3_mprintf("%s", query_get_text(&q, 0)) : NULL;
    gl_status status = query_end(&q);
    if (found) status = key != NULL ? store_take_place(s, key, err) : gl_fail_memory(err, "a key");
    sqlite3_free(key);
    if (status != GL_OK || !found) return status;
  }
}

/* Clears references of runs and measurements to provenance records that no longer exist. */
static gl_status drop_provenance(store *s, gl_error *err) {
  gl_status status =
      store_exec(s,
                 "UPDATE runs SET provenance = NULL, sum = NULL WHERE provenance IS NOT NULL AND"
                 " provenance NOT IN (SELECT hash FROM provenance);"
                 "UPDATE laboratory SET provenance = NULL, sum = NULL WHERE provenance IS NOT NULL"
                 " AND provenance NOT IN (SELECT hash FROM provenance);"
                 "DELETE FROM laboratory WHERE study NOT IN (SELECT study FROM bias)",
                 removing, err);
  return status == GL_OK ? store_seal_runs(s, "sum IS NULL", err) : status;
}

/* Restores consistency after records were removed. The caller must have begun a transaction. If a
 * place has several runs, the last one supersedes the others. References to missing provenance
 * become NULL. Laboratory measurements of a study are removed if some are missing. Missing tuned
 * rates are restored, without scores, from the runs that used them. */
static gl_status restore_consistency(store *s, gl_error *err) {
  gl_status status = set_places(s, err);
  if (status == GL_OK)
    status = store_exec(
        s,
        "DELETE FROM bias WHERE study IN (SELECT study FROM bias GROUP BY study HAVING count(*) !="
        " max(ordinal) + 1)",
        removing, err);
  if (status == GL_OK)
    status = store_exec(
        s,
        "INSERT OR IGNORE INTO tuned(study, algorithm, lr) SELECT study, algorithm, lr FROM (SELECT"
        " study, algorithm, lr, max(id) FROM runs WHERE chosen IS NOT NULL AND key NOT IN (SELECT "
        "key"
        " FROM superseded) GROUP BY study, algorithm)",
        "restoring rates of", err);
  if (status == GL_OK) status = drop_provenance(s, err);
  if (status == GL_OK) status = store_exec(s, "DELETE FROM seals", removing, err);
  return status == GL_OK ? store_seal_all(s, err) : status;
}

/* Removes all damaged records, then restores the consistency of the rest. */
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
    status = count_removed(s, store_exec(s, "DELETE FROM bias", removing, err), &out->bias);
  return status == GL_OK ? restore_consistency(s, err) : status;
}

gl_status store_repair(store *s, store_removed *out, gl_error *err) {
  gl_error why = {0};
  const damage structure = {.s = s, .err = &why};
  *out = (store_removed){0};
  gl_status status = store_begin(s, err);
  if (status != GL_OK) return status;
  if (verify_structure(&structure) != GL_OK)
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
/* Copies the undamaged records of a study with a damaged structure into a new study. Each record is
 * copied with its stored checksum and kept only if the checksum still matches. */

typedef struct salvage {
  store *from, *to;
  store_salvaged *out;
  gl_error *err;
} salvage;

/* --- salvage: one table --- */

/* Prepares a query for the records of the damaged study's table and an insertion into the new
 * study. The damaged study may have fewer metrics. */
static void begin_copy(salvage *v, query *read, query *write, const store_table *t,
                       const char *rest) {
  char *columns = NULL, *places = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&columns, &size), *also = open_memstream(&places, &size);
  const bool opened = to != NULL && also != NULL;
  *read = *write = (query){.status = GL_ENOMEM};
  for (size_t i = 0; opened && i < schema_columns(t); ++i) {
    fprintf(to, "%s\"%s\"", i > 0 ? ", " : "", schema_column_at(t, i).name);
    fputs(i > 0 ? ", ?" : "?", also);
  }
  bool whole = opened;
  if (to != NULL) whole = fclose(to) == 0 && whole;
  if (also != NULL) whole = fclose(also) == 0 && whole;
  if (whole) {
    query_beginf(read, v->from, v->err, "SELECT %s FROM %s %s", columns, t->name, rest);
    query_beginf(write, v->to, v->err, "INSERT OR IGNORE INTO %s(%s) VALUES(%s)", t->name, columns,
                 places);
  } else {
    gl_fail_memory(v->err, "a copy");
  }
  free(columns), free(places);
}

/* Copies the records and ends both queries. Sets *whole to 0 if not all could be read or written.
 * Adds the number of records written to *n. */
static gl_status copy_records(salvage *v, query *read, query *write, size_t *n, int *whole) {
  gl_status status = read->status != GL_OK ? read->status : write->status;
  int code = SQLITE_DONE;
  while (status == GL_OK && (code = sqlite3_step(read->stmt)) == SQLITE_ROW) {
    for (int i = 0; i < sqlite3_column_count(read->stmt); ++i)
      sqlite3_bind_value(write->stmt, i + 1, sqlite3_column_value(read->stmt, i));
    const int put = sqlite3_step(write->stmt);
    sqlite3_reset(write->stmt);
    if (put == SQLITE_DONE)
      *n += (size_t)sqlite3_changes(v->to->db);
    else if ((put & 0xff) == SQLITE_CONSTRAINT || (put & 0xff) == SQLITE_MISMATCH)
      *whole = 0;
    else
      status = store_fail(v->to, put, "writing", v->err);
  }
  if (status == GL_OK && code != SQLITE_DONE) {
    *whole = 0;
    if ((code & 0xff) == SQLITE_NOMEM) status = store_fail(v->from, code, "reading", v->err);
  }
  query_end(read), query_end(write);
  return status;
}

/* --- salvage: runs --- */

/* Copies all records of run `id` into the new study. */
static gl_status copy_run(salvage *v, int64_t id, int *whole) {
  gl_status status = GL_OK;
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i) {
    const store_table *t = schema_at(i);
    query read, write;
    size_t n = 0;
    if (t->kind == TABLE_ALONE) continue;
    begin_copy(v, &read, &write, t, t->kind == TABLE_OF_RUNS ? "WHERE id = ?1" : "WHERE run = ?1");
    query_bind_integer(&read, 1, id);
    status = copy_records(v, &read, &write, &n, whole);
    if (t->kind == TABLE_OF_RUNS && n != 1) *whole = 0;
  }
  return status;
}

/* Returns 1 if the records of run `id` in the new study match their checksums. */
static int has_its_sums(store *s, int64_t id) {
  int good = 1;
  for (size_t i = 0; schema_at(i) != NULL && good; ++i) {
    const store_table *t = schema_at(i);
    const bool own = t->kind == TABLE_OF_RUNS;
    char written[STORE_SUM_SIZE];
    query q;
    if (t->kind == TABLE_ALONE) continue;
    char *sum = store_try_sum_of(s, t, own ? "r" : "t");
    if (sum == NULL) return 0;
    store_written_sum(written, t);
    if (own)
      query_beginf(&q, s, NULL,
                   "SELECT r.sum = %s, r.key, r.recipe, r.meaning FROM runs r WHERE r.id = ?1",
                   sum);
    else
      query_beginf(&q, s, NULL,
                   "SELECT %s = (SELECT %s FROM %s t WHERE t.run = r.id) FROM runs r WHERE r.id ="
                   " ?1",
                   written, sum, t->name);
    free(sum);
    query_bind_integer(&q, 1, id);
    good = query_next(&q) && query_get_integer(&q, 0) == 1;
    if (good && own)
      good = is_key_of(query_get_text(&q, 1), query_get_text(&q, 2), query_get_integer(&q, 3));
    query_end(&q);
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

/* The number of the run after `than` (or before it, in descending order); 0 if there is none or it
 * cannot be read, which sets *whole to 0. */
static int64_t next_run(salvage *v, const char *sql, int64_t than, int *whole) {
  query q;
  query_begin(&q, v->from, sql, NULL);
  query_bind_integer(&q, 1, than);
  const int64_t id = query_next(&q) ? query_get_integer(&q, 0) : 0;
  if (query_end(&q) != GL_OK) *whole = 0;
  return id;
}

/* Copies runs from both ends of the table. Runs between two unreadable pages are not found. */
static gl_status salvage_runs(salvage *v) {
  static const char up[] = "SELECT id FROM runs WHERE id > ?1 ORDER BY id LIMIT 1";
  static const char down[] = "SELECT id FROM runs WHERE id < ?1 ORDER BY id DESC LIMIT 1";
  gl_status status = GL_OK;
  int64_t last = 0, id;
  int whole = 1;
  while (status == GL_OK && (id = next_run(v, up, last, &whole)) > last) {
    status = salvage_run(v, id);
    last = id;
  }
  for (int64_t than = INT64_MAX; status == GL_OK && (id = next_run(v, down, than, &whole)) > last;
       than = id)
    status = salvage_run(v, id);
  v->out->lost += whole ? 0 : 1;
  return status;
}

/* --- salvage: tables that belong to no run --- */

/* Copies a table that does not belong to runs. Laboratory measurements are dropped unless all of
 * them are intact. */
static gl_status salvage_alone(salvage *v, const store_table *t) {
  const char *columns = t->key;
  gl_status status = GL_OK;
  size_t n = 0, damaged = 0;
  int whole = 1;
  for (int down = 0; down < 2 && status == GL_OK; ++down) {
    query read, write;
    char first[64];
    snprintf(first, sizeof first, "ORDER BY %.*s%s", (int)strcspn(columns, ","), columns,
             down ? " DESC" : "");
    if (down && whole) break;
    begin_copy(v, &read, &write, t, first);
    status = copy_records(v, &read, &write, &n, &whole);
  }
  if (status == GL_OK) status = remove_alone(v->to, t->name, &damaged, v->err);
  v->out->lost += damaged + (whole ? 0 : 1);
  if (status == GL_OK && strcmp(t->name, "bias") == 0 && (!whole || damaged > 0))
    status = store_exec(v->to, "DELETE FROM bias", "writing", v->err);
  return status;
}

/* --- salvage: whole file --- */

static gl_status salvage_all(salvage *v) {
  gl_status status = store_begin(v->to, v->err);
  if (status != GL_OK) return status;
  status = salvage_runs(v);
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i)
    if (schema_at(i)->kind == TABLE_ALONE && strcmp(schema_at(i)->name, "seals") != 0)
      status = salvage_alone(v, schema_at(i));
  if (status == GL_OK) status = restore_consistency(v->to, v->err);
  return store_end(v->to, status, v->err);
}

/* Returns NAME.PID.tmp, the name of a temporary file; NULL if out of memory. */
static char *name_aside(const char *to) {
  const size_t size = strlen(to) + 32;
  char *name = malloc(size);
  if (name != NULL) snprintf(name, size, "%s.%ld.tmp", to, (long)getpid());
  return name;
}

static gl_status salvage_into(salvage *v, const char *path) {
  unlink(path); /* a killed process with the same PID may have left one */
  gl_status status = store_open(&v->to, path, STORE_WRITE, v->err);
  /* Nobody else uses the file, and it is removed after a failure, so it needs no journal on disk.
   */
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
  gl_status status = store_open(&v.from, from, STORE_READ_CUT, err);
  if (status == GL_OK) {
    status = salvage_into(&v, aside);
    if (status == GL_OK && (status = file_name_new(aside, to, err)) != GL_OK) unlink(aside);
  }
  store_close(v.from);
  free(aside);
  return status;
}
