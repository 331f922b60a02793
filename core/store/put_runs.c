/* Writes to a study: runs (atomically), the plan, tuned rates and measurements. */
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/config/config.h"
#include "core/store/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const status_names[] = {
    [RUN_DONE] = "done", [RUN_DIVERGED] = "diverged", [RUN_FAILED] = "failed"};
enum { N_STATUS = sizeof status_names / sizeof *status_names };

const char *run_status_name(run_status status) {
  assert((size_t)status < N_STATUS);
  return status_names[status];
}

int run_status_named(const char *name, run_status *status) {
  for (int i = 0; i < N_STATUS; ++i)
    if (strcmp(status_names[i], name) == 0) {
      *status = (run_status)i;
      return 1;
    }
  return 0;
}

/* Runs a statement with the text as its parameter ?1. */
static gl_status run_with_text(store *s, const char *sql, const char *text, const char *doing,
                               gl_error *err) {
  query q;
  query_begin(&q, s, sql, err);
  q.doing = doing;
  query_bind_text(&q, 1, text);
  query_run(&q);
  return query_end(&q);
}

/* Stores provenance unless an equal record exists, and writes its key to hash. The caller must have
 * begun a transaction. */
static gl_status put_provenance(store *s, const run_provenance *from, char hash[HASH_HEX_SIZE],
                                gl_error *err) {
  run_provenance p = *from;
  const char **const text[] = {&p.version, &p.source,   &p.command,  &p.processor,
                               &p.system,  &p.compiler, &p.libraries};
  char *joined = sqlite3_mprintf("%d", p.dirty);
  for (size_t i = 0; i < sizeof text / sizeof *text && joined != NULL; ++i) {
    joined = sqlite3_mprintf("%z\n%Q", joined, *text[i]);
    if (*text[i] == NULL) *text[i] = "";
  }
  if (joined == NULL) return gl_fail_memory(err, "how a run came about");
  hash_hex(joined, strlen(joined), hash);
  sqlite3_free(joined);
  p.hash = hash;
  gl_status status = store_put_record(s, "provenance", "OR IGNORE", &p, err);
  return status == GL_OK ? store_seal(s, "provenance", err) : status;
}

/* --- places and keys of cells --- */

char *store_identity(const char *recipe, int64_t meaning) {
  const size_t size = strlen(recipe) + 48;
  char *identity = malloc(size);
  if (identity != NULL) snprintf(identity, size, "meaning %lld: %s", (long long)meaning, recipe);
  return identity;
}

static gl_status hash_identity(char place[STORE_PLACE_SIZE], const char *recipe, int64_t meaning,
                               gl_error *err) {
  char *identity = recipe != NULL ? store_identity(recipe, meaning) : NULL;
  if (identity == NULL) return gl_fail_memory(err, "the place of a run");
  hash_hex(identity, strlen(identity), place);
  free(identity);
  return GL_OK;
}

/* Sets *text to the recipe with all tuned fields set to null. */
static gl_status open_fields(char **text, const char *recipe, const cJSON *fields, gl_error *err) {
  cfg_doc *doc = NULL;
  const cJSON *one;
  gl_status status = cfg_load_text(&doc, recipe, strlen(recipe), "the recipe of a run", err);
  cJSON_ArrayForEach(one, fields) {
    char assignment[512];
    const int n = snprintf(assignment, sizeof assignment, "%s=null", one->string);
    if (status == GL_OK && (n < 0 || (size_t)n >= sizeof assignment))
      status = gl_fail(err, GL_EIO, "the name of a chosen field is too long");
    if (status == GL_OK) status = cfg_override(doc, assignment, err);
  }
  *text = status == GL_OK ? cfg_canonical(cfg_root(doc)) : NULL;
  cfg_free(doc);
  return status;
}

gl_status store_place(char place[STORE_PLACE_SIZE], const char *recipe, const char *chosen,
                      int64_t meaning, gl_error *err) {
  cJSON *fields = NULL;
  char *text = NULL;
  if (chosen == NULL) return hash_identity(place, recipe, meaning, err);
  gl_status status =
      json_tree_read(&fields, chosen, strlen(chosen), 0, "what was chosen for a run", err);
  if (status == GL_OK && !cJSON_IsObject(fields))
    status = gl_fail(err, GL_EIO, "what was chosen for a run is no JSON object");
  if (status == GL_OK) status = open_fields(&text, recipe, fields, err);
  if (status == GL_OK) status = hash_identity(place, text, meaning, err);
  free(text);
  cJSON_Delete(fields);
  return status;
}

gl_status store_take_place(store *s, const char *key, gl_error *err) {
  static const char *const sql[] = {
      "DELETE FROM superseded WHERE key = ?1",
      "INSERT OR REPLACE INTO superseded(key, by) SELECT o.key, ?1 FROM runs r JOIN runs o ON"
      " o.place = r.place AND o.study = r.study AND o.key != r.key WHERE r.key = ?1"};
  gl_status status = GL_OK;
  for (int i = 0; i < 2 && status == GL_OK; ++i)
    status = run_with_text(s, sql[i], key, "replacing a run in", err);
  return status == GL_OK ? store_seal(s, "superseded", err) : status;
}

gl_status store_take_place_again(store *s, const char *key, gl_error *err) {
  int64_t superseded = 0;
  gl_status status = store_query_integer(
      s, &superseded, "SELECT count(*) FROM superseded WHERE key = ?1", key, err);
  if (status != GL_OK || superseded == 0) return status;
  status = store_begin(s, err);
  return status == GL_OK ? store_end(s, store_take_place(s, key, err), err) : status;
}

/* --- runs --- */

/* Inserts the run's record in the table runs, and its provenance; sets *id to its number. */
static gl_status put_head(store *s, const run_record *r, int64_t *id, gl_error *err) {
  char place[STORE_PLACE_SIZE], provenance[HASH_HEX_SIZE];
  gl_status status = GL_OK;
  if (r->place == NULL) status = store_place(place, r->recipe, r->chosen, r->meaning, err);
  if (status == GL_OK && r->provenance != NULL)
    status = put_provenance(s, r->provenance, provenance, err);
  const store_run row = {.key = r->key,
                         .place = r->place != NULL ? r->place : place,
                         .study = r->study,
                         .algorithm = r->algorithm,
                         .swept = r->swept,
                         .recipe = r->recipe,
                         .chosen = r->chosen,
                         .in_effect = r->in_effect,
                         .ordinal = r->ordinal,
                         .meaning = r->meaning,
                         .seed = r->seed,
                         .lr = r->lr,
                         .wall_s = r->wall_s,
                         .status = status_names[r->status],
                         .reason = r->reason != NULL ? r->reason : "",
                         .code_version = r->code_version,
                         .machine = r->machine,
                         .finished = r->finished,
                         .provenance = r->provenance != NULL ? provenance : NULL,
                         .peak_bytes = r->peak_bytes};
  if (status == GL_OK) status = store_put_record(s, "runs", "", &row, err);
  *id = sqlite3_last_insert_rowid(s->db);
  return status;
}

/* Inserts the run's records of one table. */
static gl_status put_records_of_run(store *s, const store_table *t, const run_record *r, int64_t id,
                                    gl_error *err) {
  const void *member = (const char *)r + t->records; /* the record, or a pointer to records */
  const char *record = member;
  size_t n = 1;
  record_writer w;
  if (t->count != ONE_RECORD) {
    memcpy(&n, (const char *)r + t->count, sizeof n);
    memcpy(&record, member, sizeof record);
  }
  record_writer_begin(&w, s, t->name, "", err);
  for (size_t i = 0; i < n; ++i)
    if (record_writer_put(&w, id, i, record + i * t->size) != GL_OK) break;
  return record_writer_end(&w);
}

/* The run that the study already has under a key, if any. */
typedef struct earlier_run {
  bool exists, same_recipe, failed;
} earlier_run;

static gl_status find_run(store *s, const char *key, const char *recipe, earlier_run *found,
                          gl_error *err) {
  query q;
  *found = (earlier_run){0};
  query_begin(&q, s, "SELECT recipe = ?2, status = ?3 FROM runs WHERE key = ?1", err);
  q.doing = "looking for a run in";
  query_bind_text(&q, 1, key);
  query_bind_text(&q, 2, recipe);
  query_bind_text(&q, 3, status_names[RUN_FAILED]);
  if (query_next(&q))
    *found = (earlier_run){true, query_get_integer(&q, 0), query_get_integer(&q, 1)};
  return query_end(&q);
}

/* Removes the run with that key and all its records. The caller must have begun a transaction. */
static gl_status remove_run(store *s, const char *key, gl_error *err) {
  return run_with_text(s, "DELETE FROM runs WHERE key = ?1", key, "removing a run from", err);
}

/* Writes checksums of the inserted records and, unless the run failed, makes it take its place. */
static gl_status seal_run(store *s, const run_record *r, int64_t id, gl_error *err) {
  char which[48];
  snprintf(which, sizeof which, "id = %lld", (long long)id);
  gl_status status = store_seal_runs(s, which, err);
  return status == GL_OK && r->status != RUN_FAILED ? store_take_place(s, r->key, err) : status;
}

gl_status store_put_run(store *s, const run_record *r, gl_error *err) {
  earlier_run earlier;
  gl_status status = find_run(s, r->key, r->recipe, &earlier, err);
  if (status != GL_OK) return status;
  if (r->n_staleness > STORE_MAX_STALENESS + (size_t)1)
    return gl_fail(err, GL_EINPUT, "a run reaches a staleness of %zu versions, a study keeps %d",
                   r->n_staleness - 1, STORE_MAX_STALENESS);
  if (earlier.exists && !earlier.same_recipe)
    return gl_fail(err, GL_EINTERNAL, "two recipes share the key %s in %s", r->key, s->path);
  int64_t id = 0;
  status = store_begin(s, err);
  if (status != GL_OK) return status;
  status = remove_run(s, r->key, err);
  if (status == GL_OK) status = put_head(s, r, &id, err);
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i)
    if (schema_at(i)->kind == TABLE_OF_A_RUN)
      status = put_records_of_run(s, schema_at(i), r, id, err);
  if (status == GL_OK) status = seal_run(s, r, id, err);
  return store_end(s, status, err);
}

int store_has_finished(store *s, const char *key, const char *recipe) {
  earlier_run earlier;
  return find_run(s, key, recipe, &earlier, NULL) == GL_OK && earlier.same_recipe &&
         !earlier.failed;
}

/* --- plans --- */

static gl_status put_sweep(store *s, const study_plan *p, gl_error *err) {
  char hash[HASH_HEX_SIZE];
  hash_hex(p->recipe, strlen(p->recipe), hash);
  const sweep_record row = {p->study, hash, p->recipe, p->shard, p->shards};
  gl_status status = store_put_record(s, "sweeps", "OR IGNORE", &row, err);
  return status == GL_OK ? store_seal(s, "sweeps", err) : status;
}

static gl_status put_planned_cells(store *s, const study_plan *p, gl_error *err) {
  record_writer w;
  record_writer_begin(&w, s, "plan", "OR IGNORE", err);
  for (size_t i = 0; i < p->n; ++i) {
    planned_cell cell = p->cells[i];
    cell.study = p->study;
    record_writer_put(&w, 0, 0, &cell);
  }
  gl_status status = record_writer_end(&w);
  return status == GL_OK ? store_seal(s, "plan", err) : status;
}

gl_status store_put_plan(store *s, const study_plan *p, gl_error *err) {
  static const char *const forget[] = {"DELETE FROM plan WHERE study = ?1",
                                       "DELETE FROM sweeps WHERE study = ?1"};
  gl_status status = store_begin(s, err);
  if (status != GL_OK) return status;
  for (int i = 0; i < 2 && p->replaces && status == GL_OK; ++i)
    status = run_with_text(s, forget[i], p->study, "writing a plan to", err);
  if (status == GL_OK) status = put_sweep(s, p, err);
  if (status == GL_OK) status = put_planned_cells(s, p, err);
  return store_end(s, status, err);
}

/* --- tuned rates and tuning scores --- */

gl_status store_put_tuned(store *s, const char *study, const char *algorithm, double lr,
                          double score, gl_error *err) {
  const tuned_record row = {study, algorithm, lr, score};
  gl_status status = store_begin(s, err);
  if (status != GL_OK) return status;
  status = store_put_record(s, "tuned", "OR REPLACE", &row, err);
  if (status == GL_OK) status = store_seal(s, "tuned", err);
  return store_end(s, status, err);
}

/* Seals only the new score: there may be thousands, each with a recipe. */
gl_status store_put_score(store *s, const score_record *r, gl_error *err) {
  static const char table[] = "tuning_scores";
  seal_record before;
  char *which = sqlite3_mprintf("key = %Q", r->key);
  if (which == NULL) return gl_fail_memory(err, "a tuning score");
  gl_status status = store_begin(s, err);
  if (status == GL_OK) {
    status = store_part_of(s, &before, table, which, err);
    if (status == GL_OK) status = store_put_record(s, table, "OR REPLACE", r, err);
    if (status == GL_OK) status = store_seal_part(s, table, which, before, err);
    status = store_end(s, status, err);
  }
  sqlite3_free(which);
  return status;
}

int store_get_score(store *s, const char *key, const char *recipe, double *score) {
  query q;
  query_begin(&q, s, "SELECT score FROM tuning_scores WHERE key = ?1 AND recipe = ?2", NULL);
  query_bind_text(&q, 1, key);
  query_bind_text(&q, 2, recipe);
  const int found = query_next(&q) && sqlite3_column_type(q.stmt, 0) != SQLITE_NULL;
  if (found) *score = query_get_real(&q, 0);
  query_end(&q);
  return found;
}

/* --- the tables `bias` and `laboratory` --- */

static gl_status put_making(store *s, const char *study, const bias_making *making, gl_error *err) {
  char hash[HASH_HEX_SIZE];
  const laboratory_record row = {study, making->provenance != NULL ? hash : NULL, making->finished,
                                 making->wall_s};
  gl_status status =
      row.provenance != NULL ? put_provenance(s, making->provenance, hash, err) : GL_OK;
  if (status == GL_OK) status = store_put_record(s, "laboratory", "OR REPLACE", &row, err);
  return status == GL_OK ? store_seal(s, "laboratory", err) : status;
}

gl_status store_put_bias(store *s, const char *study, const bias_record *records, size_t n,
                         const bias_making *making, gl_error *err) {
  record_writer w;
  gl_status status = store_begin(s, err);
  if (status != GL_OK) return status;
  status = run_with_text(s, "DELETE FROM bias WHERE study = ?1", study,
                         "writing measurements of the laboratory to", err);
  if (status == GL_OK) {
    record_writer_begin(&w, s, "bias", "", err);
    for (size_t i = 0; i < n; ++i) {
      bias_record r = records[i];
      r.study = study;
      r.ordinal = (int64_t)i;
      record_writer_put(&w, 0, 0, &r);
    }
    status = record_writer_end(&w);
  }
  if (status == GL_OK) status = store_seal(s, "bias", err);
  if (status == GL_OK) status = put_making(s, study, making, err);
  return store_end(s, status, err);
}
