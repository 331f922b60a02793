/* Keeps what a study is to hold, and counts what it holds of it. */
#include "core/store/plan.h"

#include "core/base/hash.h"
#include "core/base/json_tree.h"
#include "core/config/config.h"
#include "core/store/internal.h"

#include <stdlib.h>
#include <string.h>

/* --- writing --- */

static gl_status plan_forget(store *s, const char *study, gl_error *err) {
  static const char *const sql[] = {"DELETE FROM plan WHERE study = ?1",
                                    "DELETE FROM sweeps WHERE study = ?1"};
  gl_status status = GL_OK;
  for (int i = 0; i < 2 && status == GL_OK; ++i) {
    sqlite3_stmt *q = NULL;
    status = store_prepare(s, &q, sql[i], err);
    if (status != GL_OK) return status;
    store_bind_text(q, 1, study);
    status = store_step_done(s, q, "writing a plan to", err);
    sqlite3_finalize(q);
  }
  return status;
}

static gl_status put_sweep(store *s, const study_plan *p, gl_error *err) {
  char hash[HASH_HEX_SIZE];
  sqlite3_stmt *q = NULL;
  hash_hex(p->recipe, strlen(p->recipe), hash);
  gl_status status =
      store_prepare(s, &q,
                    "INSERT OR IGNORE INTO sweeps(study, recipe_hash, shard, shards, recipe)"
                    " VALUES(?,?,?,?,?)",
                    err);
  if (status != GL_OK) return status;
  store_bind_text(q, 1, p->study);
  store_bind_text(q, 2, hash);
  sqlite3_bind_int64(q, 3, (int64_t)p->shard);
  sqlite3_bind_int64(q, 4, (int64_t)p->shards);
  store_bind_text(q, 5, p->recipe);
  status = store_step_done(s, q, "writing a plan to", err);
  sqlite3_finalize(q);
  return status == GL_OK ? store_seal(s, "sweeps", err) : status;
}

static gl_status plan_put_cells(store *s, const study_plan *p, gl_error *err) {
  sqlite3_stmt *q = NULL;
  gl_status status = store_prepare(s, &q,
                                   "INSERT OR IGNORE INTO plan(study, tuning, place, ordinal,"
                                   " algorithm, seed, swept) VALUES(?,?,?,?,?,?,?)",
                                   err);
  for (size_t i = 0; i < p->n && status == GL_OK; ++i) {
    const planned_cell *c = &p->cells[i];
    store_bind_text(q, 1, p->study);
    sqlite3_bind_int(q, 2, c->tuning);
    store_bind_text(q, 3, c->place);
    sqlite3_bind_int64(q, 4, c->ordinal);
    store_bind_text(q, 5, c->algorithm);
    sqlite3_bind_int64(q, 6, (int64_t)c->seed);
    store_bind_text(q, 7, c->swept);
    status = store_step_done(s, q, "writing a plan to", err);
  }
  sqlite3_finalize(q);
  return status == GL_OK ? store_seal(s, "plan", err) : status;
}

gl_status store_put_plan(store *s, const study_plan *p, gl_error *err) {
  gl_status status = store_begin(s, err);
  if (status != GL_OK) return status;
  if (p->replaces) status = plan_forget(s, p->study, err);
  if (status == GL_OK) status = put_sweep(s, p, err);
  if (status == GL_OK) status = plan_put_cells(s, p, err);
  return store_end(s, status, err);
}

gl_status store_take_place(store *s, const char *key, gl_error *err) {
  static const char *const sql[] = {
      "DELETE FROM superseded WHERE key = ?1",
      "INSERT OR REPLACE INTO superseded(key, by) SELECT o.key, ?1 FROM runs r JOIN runs o ON"
      " o.place = r.place AND o.study = r.study AND o.key != r.key WHERE r.key = ?1"};
  gl_status status = GL_OK;
  for (int i = 0; i < 2 && status == GL_OK; ++i) {
    sqlite3_stmt *q = NULL;
    status = store_prepare(s, &q, sql[i], err);
    if (status != GL_OK) return status;
    store_bind_text(q, 1, key);
    status = store_step_done(s, q, "replacing a run in", err);
    sqlite3_finalize(q);
  }
  return status == GL_OK ? store_seal(s, "superseded", err) : status;
}

gl_status store_take_place_again(store *s, const char *key, gl_error *err) {
  sqlite3_stmt *q = NULL;
  gl_status status = store_prepare(s, &q, "SELECT 1 FROM superseded WHERE key = ?1", err);
  if (status != GL_OK) return status;
  store_bind_text(q, 1, key);
  const int code = sqlite3_step(q);
  sqlite3_finalize(q);
  if (code == SQLITE_DONE) return GL_OK;
  if (code != SQLITE_ROW) return store_fail(s, code, "reading", err);
  status = store_begin(s, err);
  return status == GL_OK ? store_end(s, store_take_place(s, key, err), err) : status;
}

/* --- counting --- */

/* Runs of the study ?1 that stand in their places. */
#define STANDING " FROM runs r WHERE r.study = ?1 AND r.key NOT IN (SELECT key FROM superseded)"
#define FINISHED " r.status IN ('done', 'diverged')"
/* Cells of the study's plan without a finished run. */
#define MISSING                                                                                    \
  " FROM plan p WHERE p.study = ?1 AND p.tuning = 0 AND p.place NOT IN (SELECT r.place" STANDING   \
  " AND" FINISHED ")"

static gl_status plan_count(store *s, const char *sql, const char *study, size_t *n,
                            gl_error *err) {
  sqlite3_stmt *q = NULL;
  gl_status status = store_prepare(s, &q, sql, err);
  if (status != GL_OK) return status;
  store_bind_text(q, 1, study);
  const int code = sqlite3_step(q);
  if (code == SQLITE_ROW)
    *n = (size_t)sqlite3_column_int64(q, 0);
  else
    status = store_fail(s, code, "reading", err);
  sqlite3_finalize(q);
  return status;
}

/* Which of the parts of a grid have never been in this file. A file that did the whole grid once
 * misses none. */
static gl_status find_missing_shard(store *s, const char *study, study_progress *out,
                                    gl_error *err) {
  size_t whole = 0, known = 0;
  gl_status status = plan_count(s, "SELECT coalesce(max(shards), 1) FROM sweeps WHERE study = ?1",
                                study, &out->shards, err);
  if (status == GL_OK)
    status = plan_count(s, "SELECT count(*) FROM sweeps WHERE study = ?1 AND shards = 1", study,
                        &whole, err);
  if (status == GL_OK)
    status =
        plan_count(s,
                   "SELECT count(DISTINCT shard) FROM sweeps WHERE study = ?1 AND shards = (SELECT"
                   " max(shards) FROM sweeps WHERE study = ?1)",
                   study, &known, err);
  if (out->shards == 1) out->shards = 0;
  if (status != GL_OK || out->shards == 0 || whole > 0 || known >= out->shards) return status;
  out->shards_missing = out->shards - known;
  return plan_count(
      s,
      "WITH known(i) AS (SELECT DISTINCT shard FROM sweeps WHERE study = ?1 AND shards ="
      " (SELECT max(shards) FROM sweeps WHERE study = ?1)) SELECT CASE WHEN 0 NOT IN"
      " (SELECT i FROM known) THEN 0 ELSE (SELECT min(i) + 1 FROM known WHERE i + 1 NOT IN"
      " (SELECT i FROM known)) END",
      study, &out->first_missing_shard, err);
}

gl_status store_progress(store *s, const char *study, study_progress *out, gl_error *err) {
  *out = (study_progress){0};
  const struct {
    const char *sql;
    size_t *n;
  } counts[] = {
      {"SELECT count(*) FROM plan WHERE study = ?1 AND tuning = 0", &out->planned},
      {"SELECT count(*) FROM plan WHERE study = ?1 AND tuning = 1", &out->tuning_planned},
      {"SELECT count(*) FROM plan p JOIN tuning_scores t ON t.key = p.place WHERE p.study = ?1 AND"
       " p.tuning = 1",
       &out->tuning_known},
      {"SELECT count(*)" STANDING " AND r.status = 'done'", &out->done},
      {"SELECT count(*)" STANDING " AND r.status = 'diverged'", &out->diverged},
      {"SELECT count(*)" STANDING " AND r.status = 'failed'", &out->failed},
      {"SELECT count(*) FROM superseded x JOIN runs r ON r.key = x.key WHERE r.study = ?1",
       &out->superseded},
      {"SELECT count(*)" MISSING, &out->missing},
  };
  gl_status status = GL_OK;
  for (size_t i = 0; i < sizeof counts / sizeof *counts && status == GL_OK; ++i)
    status = plan_count(s, counts[i].sql, study, counts[i].n, err);
  return status == GL_OK ? find_missing_shard(s, study, out, err) : status;
}

gl_status store_missing(store *s, const char *study,
                        int (*each)(void *self, const planned_cell *cell), void *self,
                        gl_error *err) {
  sqlite3_stmt *q = NULL;
  int code = SQLITE_DONE, goes_on = 1;
  gl_status status = store_prepare(
      s, &q,
      "SELECT p.place, p.ordinal, p.algorithm, p.seed, p.swept" MISSING " ORDER BY p.ordinal", err);
  if (status != GL_OK) return status;
  store_bind_text(q, 1, study);
  while (goes_on && (code = sqlite3_step(q)) == SQLITE_ROW) {
    const planned_cell cell = {.place = (const char *)sqlite3_column_text(q, 0),
                               .ordinal = sqlite3_column_int64(q, 1),
                               .algorithm = (const char *)sqlite3_column_text(q, 2),
                               .seed = (uint64_t)sqlite3_column_int64(q, 3),
                               .swept = (const char *)sqlite3_column_text(q, 4)};
    goes_on = each(self, &cell);
  }
  if (goes_on && code != SQLITE_DONE) status = store_fail(s, code, "reading", err);
  sqlite3_finalize(q);
  return status;
}

gl_status store_choices(store *s, const char *study,
                        int (*each)(void *self, const char *algorithm, const char *chosen),
                        void *self, gl_error *err) {
  sqlite3_stmt *q = NULL;
  int code = SQLITE_DONE, goes_on = 1;
  gl_status status = store_prepare(
      s, &q,
      "SELECT DISTINCT algorithm, chosen FROM runs WHERE study = ?1 AND chosen IS NOT NULL AND key"
      " NOT IN (SELECT key FROM superseded) ORDER BY algorithm, chosen",
      err);
  if (status != GL_OK) return status;
  store_bind_text(q, 1, study);
  while (goes_on && (code = sqlite3_step(q)) == SQLITE_ROW)
    goes_on = each(self, (const char *)sqlite3_column_text(q, 0),
                   (const char *)sqlite3_column_text(q, 1));
  if (goes_on && code != SQLITE_DONE) status = store_fail(s, code, "reading", err);
  sqlite3_finalize(q);
  return status;
}

gl_status store_studies(store *s, char ***names, size_t *n, gl_error *err) {
  sqlite3_stmt *q = NULL;
  size_t size = 0, used = 0;
  int code;
  *names = NULL;
  *n = 0;
  gl_status status = store_prepare(
      s, &q,
      "WITH all_studies AS (SELECT study FROM runs UNION SELECT study FROM plan) SELECT study,"
      " (SELECT count(*) FROM all_studies), (SELECT sum(length(CAST(study AS BLOB)) + 1) FROM"
      " all_studies) FROM all_studies ORDER BY study",
      err);
  if (status != GL_OK) return status;
  while (status == GL_OK && (code = sqlite3_step(q)) != SQLITE_DONE) {
    if (code != SQLITE_ROW) {
      status = store_fail(s, code, "reading", err);
      break;
    }
    const size_t many = (size_t)sqlite3_column_int64(q, 1);
    const char *name = (const char *)sqlite3_column_text(q, 0);
    const size_t length = (size_t)sqlite3_column_bytes(q, 0);
    if (*names == NULL) {
      size = (size_t)sqlite3_column_int64(q, 2);
      *names = malloc(many * sizeof **names + size);
    }
    if (*names == NULL || name == NULL || *n == many || used + length + 1 > size) {
      status = *names == NULL ? gl_fail_memory(err, "the names of studies")
                              : gl_fail(err, GL_EIO,
                                        "a study of %s has no name; is the file damaged?", s->path);
      break;
    }
    char *to = (char *)(*names + many) + used;
    memcpy(to, name, length);
    to[length] = '\0';
    used += length + 1;
    (*names)[(*n)++] = to;
  }
  sqlite3_finalize(q);
  if (status == GL_OK) return GL_OK;
  free(*names);
  *names = NULL;
  *n = 0;
  return status;
}

/* --- the place of a cell in its study, and what its key is the hash of --- */

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

/* The recipe with the fields that were chosen left open. */
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
