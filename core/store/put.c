/* Writing: a run whole or not at all, chosen rates. */
#include "core/base/hash.h"
#include "core/store/internal.h"
#include "core/store/plan.h"

#include <assert.h>
#include <math.h>
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

/* INSERT INTO table(run, names…) VALUES(?, ?, …). */
static gl_status prepare_insert(store *s, sqlite3_stmt **out, const char *table,
                                const char *const *names, int n, gl_error *err) {
  char *columns = sqlite3_mprintf("run"), *places = sqlite3_mprintf("?");
  for (int i = 0; i < n && columns != NULL && places != NULL; ++i) {
    char *longer = sqlite3_mprintf("%s, \"%w\"", columns, names[i]);
    char *more = sqlite3_mprintf("%s, ?", places);
    sqlite3_free(columns), sqlite3_free(places);
    columns = longer;
    places = more;
  }
  char *sql = columns == NULL || places == NULL
                  ? NULL
                  : sqlite3_mprintf("INSERT INTO %s(%s) VALUES(%s)", table, columns, places);
  sqlite3_free(columns), sqlite3_free(places);
  if (sql == NULL) return gl_fail_memory(err, "an insertion");
  gl_status status = store_prepare(s, out, sql, err);
  sqlite3_free(sql);
  return status;
}

/* Keeps how a run came about, once for all runs that came about so; its key into hash. */
gl_status store_put_provenance(store *s, const run_provenance *p, char hash[HASH_HEX_SIZE],
                               gl_error *err) {
  const char *const text[] = {p->version, p->source,   p->command,  p->processor,
                              p->system,  p->compiler, p->libraries};
  char *joined = sqlite3_mprintf("%d", p->dirty);
  for (size_t i = 0; i < sizeof text / sizeof *text && joined != NULL; ++i) {
    char *longer = sqlite3_mprintf("%s\n%Q", joined, text[i]);
    sqlite3_free(joined);
    joined = longer;
  }
  if (joined == NULL) return gl_fail_memory(err, "how a run came about");
  hash_hex(joined, strlen(joined), hash);
  sqlite3_free(joined);
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_prepare(s, &stmt,
                                   "INSERT OR IGNORE INTO provenance(hash, version, source,"
                                   " command, processor, system, compiler, libraries, dirty)"
                                   " VALUES(?,?,?,?,?,?,?,?,?)",
                                   err);
  if (status != GL_OK) return status;
  store_bind_text(stmt, 1, hash);
  for (int i = 0; i < (int)(sizeof text / sizeof *text); ++i)
    store_bind_text(stmt, 2 + i, text[i] != NULL ? text[i] : "");
  if (p->dirty >= 0) sqlite3_bind_int(stmt, 9, p->dirty);
  status = store_step_done(s, stmt, "writing a run to", err);
  sqlite3_finalize(stmt);
  return status == GL_OK ? store_seal(s, "provenance", err) : status;
}

static gl_status put_head(store *s, const run_record *r, int64_t *id, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  char place[STORE_PLACE_SIZE], provenance[HASH_HEX_SIZE];
  gl_status status = GL_OK;
  if (r->place == NULL) status = store_place(place, r->recipe, r->chosen, r->meaning, err);
  if (status == GL_OK && r->provenance != NULL)
    status = store_put_provenance(s, r->provenance, provenance, err);
  if (status == GL_OK)
    status = store_prepare(
        s, &stmt,
        "INSERT INTO runs(key, ordinal, study, algorithm, swept, seed, lr, status,"
        " reason, recipe, code_version, machine, wall_s, chosen, meaning, place,"
        " provenance, finished, peak_bytes, in_effect) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,"
        "?,?,?,?,?,?,?)",
        err);
  if (status != GL_OK) return status;
  store_bind_text(stmt, 1, r->key);
  sqlite3_bind_int64(stmt, 2, r->ordinal);
  store_bind_text(stmt, 3, r->study);
  store_bind_text(stmt, 4, r->algorithm);
  store_bind_text(stmt, 5, r->swept);
  sqlite3_bind_int64(stmt, 6, (int64_t)r->seed);
  sqlite3_bind_double(stmt, 7, r->lr);
  store_bind_text(stmt, 8, status_names[r->status]);
  store_bind_text(stmt, 9, r->reason != NULL ? r->reason : "");
  store_bind_text(stmt, 10, r->recipe);
  store_bind_text(stmt, 11, r->code_version);
  store_bind_text(stmt, 12, r->machine);
  sqlite3_bind_double(stmt, 13, r->wall_s);
  store_bind_text(stmt, 14, r->chosen); /* NULL stays NULL */
  sqlite3_bind_int64(stmt, 15, r->meaning);
  store_bind_text(stmt, 16, r->place != NULL ? r->place : place);
  store_bind_text(stmt, 17, r->provenance != NULL ? provenance : NULL);
  store_bind_text(stmt, 18, r->finished);
  if (r->peak_bytes >= 0) sqlite3_bind_int64(stmt, 19, r->peak_bytes);
  store_bind_text(stmt, 20, r->in_effect);
  status = store_step_done(s, stmt, "writing a run to", err);
  sqlite3_finalize(stmt);
  *id = sqlite3_last_insert_rowid(s->db);
  return status;
}

/* NaN binds as NULL, which is how SQLite and every reader here spell "does not apply". */
static gl_status put_steps(store *s, const run_record *r, int64_t id, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  const char *names[STORE_STEP_COLUMNS];
  store_step_columns(names);
  gl_status status = prepare_insert(s, &stmt, "steps", names, STORE_STEP_COLUMNS, err);
  for (size_t i = 0; i < r->n_steps && status == GL_OK; ++i) {
    const step_record *of = &r->steps[i];
    sqlite3_bind_int64(stmt, 1, id);
    sqlite3_bind_int64(stmt, 2, of->step);
    sqlite3_bind_int(stmt, 3, of->sampler);
    sqlite3_bind_double(stmt, 4, of->time_s);
    sqlite3_bind_double(stmt, 5, of->wait_s);
    for (int m = 0; m < METRIC_COUNT; ++m) sqlite3_bind_double(stmt, 6 + m, of->metric[m]);
    status = store_step_done(s, stmt, "writing steps to", err);
  }
  sqlite3_finalize(stmt);
  return status;
}

static gl_status put_evals(store *s, const run_record *r, int64_t id, gl_error *err) {
  static const char *const names[] = {"step", "time_s", "eval_score"};
  sqlite3_stmt *stmt = NULL;
  gl_status status = prepare_insert(s, &stmt, "evals", names, 3, err);
  for (size_t i = 0; i < r->n_evals && status == GL_OK; ++i) {
    sqlite3_bind_int64(stmt, 1, id);
    sqlite3_bind_int64(stmt, 2, r->evals[i].step);
    sqlite3_bind_double(stmt, 3, r->evals[i].time_s);
    sqlite3_bind_double(stmt, 4, r->evals[i].eval_score);
    status = store_step_done(s, stmt, "writing evaluations to", err);
  }
  sqlite3_finalize(stmt);
  return status;
}

static gl_status put_set_evals(store *s, const run_record *r, int64_t id, gl_error *err) {
  static const char *const names[] = {"place", "half", "step", "eval_set", "time_s", "eval_score"};
  sqlite3_stmt *stmt = NULL;
  gl_status status = prepare_insert(s, &stmt, "set_evals", names, 6, err);
  for (size_t i = 0; i < r->n_set_evals && status == GL_OK; ++i) {
    const set_eval_record *of = &r->set_evals[i];
    sqlite3_bind_int64(stmt, 1, id);
    sqlite3_bind_int(stmt, 2, of->place);
    sqlite3_bind_int(stmt, 3, of->half);
    sqlite3_bind_int64(stmt, 4, of->step);
    store_bind_text(stmt, 5, of->set);
    sqlite3_bind_double(stmt, 6, of->time_s);
    sqlite3_bind_double(stmt, 7, of->score);
    status = store_step_done(s, stmt, "writing evaluation sets to", err);
  }
  sqlite3_finalize(stmt);
  return status;
}

static gl_status put_staleness(store *s, const run_record *r, int64_t id, gl_error *err) {
  static const char *const names[] = {"staleness", "count"};
  sqlite3_stmt *stmt = NULL;
  gl_status status = prepare_insert(s, &stmt, "staleness", names, 2, err);
  for (size_t i = 0; i < r->n_staleness && status == GL_OK; ++i) {
    sqlite3_bind_int64(stmt, 1, id);
    sqlite3_bind_int64(stmt, 2, (int64_t)i);
    sqlite3_bind_int64(stmt, 3, (int64_t)r->staleness[i]);
    status = store_step_done(s, stmt, "writing the staleness histogram to", err);
  }
  sqlite3_finalize(stmt);
  return status;
}

static gl_status put_fates(store *s, const run_record *r, int64_t id, gl_error *err) {
  static const char *const names[] = {"fate",      "quarter", "tokens_from",
                                      "responses", "tokens",  "reward"};
  sqlite3_stmt *stmt = NULL;
  gl_status status = prepare_insert(s, &stmt, "fates", names, 6, err);
  for (size_t i = 0; i < r->n_fates && status == GL_OK; ++i) {
    const fate_record *of = &r->fates[i];
    sqlite3_bind_int64(stmt, 1, id);
    store_bind_text(stmt, 2, of->fate);
    sqlite3_bind_int(stmt, 3, of->quarter);
    sqlite3_bind_int64(stmt, 4, of->tokens_from);
    sqlite3_bind_int64(stmt, 5, of->responses);
    sqlite3_bind_double(stmt, 6, of->tokens);
    sqlite3_bind_double(stmt, 7, of->reward);
    status = store_step_done(s, stmt, "writing what became of responses to", err);
  }
  sqlite3_finalize(stmt);
  return status;
}

static gl_status put_clock_record(store *s, const clock_record *c, int64_t id, gl_error *err) {
  clock_record values = *c;
  sqlite3_stmt *stmt = NULL;
  gl_status status =
      prepare_insert(s, &stmt, "clock", clock_record_names, CLOCK_RECORD_COLUMNS, err);
  if (status != GL_OK) return status;
  sqlite3_bind_int64(stmt, 1, id);
  for (int i = 0; i < CLOCK_RECORD_COLUMNS; ++i)
    sqlite3_bind_double(stmt, 2 + i, *clock_record_at(&values, (size_t)i));
  status = store_step_done(s, stmt, "writing the clock to", err);
  sqlite3_finalize(stmt);
  return status;
}

/* What the study already has under a key. */
typedef struct earlier_run {
  int exists, same_recipe, failed;
} earlier_run;

static gl_status find_run(store *s, const char *key, const char *recipe, earlier_run *found,
                          gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  *found = (earlier_run){0};
  gl_status status =
      store_prepare(s, &stmt, "SELECT recipe = ?2, status = ?3 FROM runs WHERE key = ?1", err);
  if (status != GL_OK) return status;
  store_bind_text(stmt, 1, key);
  store_bind_text(stmt, 2, recipe);
  store_bind_text(stmt, 3, status_names[RUN_FAILED]);
  int code = sqlite3_step(stmt);
  if (code == SQLITE_ROW)
    *found = (earlier_run){1, sqlite3_column_int(stmt, 0), sqlite3_column_int(stmt, 1)};
  else if (code != SQLITE_DONE)
    status = store_fail(s, code, "looking for a run in", err);
  sqlite3_finalize(stmt);
  return status;
}

gl_status store_remove_run(store *s, const char *key, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_prepare(s, &stmt, "DELETE FROM runs WHERE key = ?", err);
  if (status != GL_OK) return status;
  store_bind_text(stmt, 1, key);
  status = store_step_done(s, stmt, "removing a run from", err);
  sqlite3_finalize(stmt);
  return status;
}

/* Checksums of what was just written, and the run's place, which only a finished run takes. */
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
  status = store_remove_run(s, r->key, err);
  if (status == GL_OK) status = put_head(s, r, &id, err);
  if (status == GL_OK) status = put_steps(s, r, id, err);
  if (status == GL_OK) status = put_evals(s, r, id, err);
  if (status == GL_OK) status = put_set_evals(s, r, id, err);
  if (status == GL_OK) status = put_staleness(s, r, id, err);
  if (status == GL_OK) status = put_fates(s, r, id, err);
  if (status == GL_OK) status = put_clock_record(s, &r->clock, id, err);
  if (status == GL_OK) status = seal_run(s, r, id, err);
  return store_end(s, status, err);
}

int store_has_finished(store *s, const char *key, const char *recipe) {
  earlier_run earlier;
  return find_run(s, key, recipe, &earlier, NULL) == GL_OK && earlier.same_recipe &&
         !earlier.failed;
}

gl_status store_put_tuned(store *s, const char *study, const char *algorithm, double lr,
                          double score, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_begin(s, err);
  if (status != GL_OK) return status;
  status = store_prepare(
      s, &stmt, "INSERT OR REPLACE INTO tuned(study, algorithm, lr, score) VALUES(?,?,?,?)", err);
  if (status == GL_OK) {
    store_bind_text(stmt, 1, study);
    store_bind_text(stmt, 2, algorithm);
    sqlite3_bind_double(stmt, 3, lr);
    sqlite3_bind_double(stmt, 4, score);
    status = store_step_done(s, stmt, "writing a learning rate to", err);
    sqlite3_finalize(stmt);
  }
  if (status == GL_OK) status = store_seal(s, "tuned", err);
  return store_end(s, status, err);
}

/* --- scores of tuning runs --- */

static gl_status put_tuning_score(store *s, const score_record *r, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_prepare(s, &stmt,
                                   "INSERT OR REPLACE INTO tuning_scores(key, recipe, score, "
                                   "wall_s, finished) VALUES(?,?,?,?,?)",
                                   err);
  if (status != GL_OK) return status;
  store_bind_text(stmt, 1, r->key);
  store_bind_text(stmt, 2, r->recipe);
  sqlite3_bind_double(stmt, 3, r->score);
  sqlite3_bind_double(stmt, 4, r->wall_s); /* NaN is NULL */
  store_bind_text(stmt, 5, r->finished);
  status = store_step_done(s, stmt, "keeping a tuning score", err);
  sqlite3_finalize(stmt);
  return status;
}

/* There may be thousands of scores, each with a recipe, so that only the new one is read again. */
gl_status store_put_score(store *s, const score_record *r, gl_error *err) {
  static const char table[] = "tuning_scores";
  seal_part before;
  char *which = sqlite3_mprintf("key = %Q", r->key);
  if (which == NULL) return gl_fail_memory(err, "a tuning score");
  gl_status status = store_begin(s, err);
  if (status == GL_OK) {
    status = store_part_of(s, &before, table, which, err);
    if (status == GL_OK) status = put_tuning_score(s, r, err);
    if (status == GL_OK) status = store_seal_part(s, table, which, before, err);
    status = store_end(s, status, err);
  }
  sqlite3_free(which);
  return status;
}

int store_get_score(store *s, const char *key, const char *recipe, double *score) {
  sqlite3_stmt *stmt = NULL;
  const char *sql = "SELECT score FROM tuning_scores WHERE key = ?1 AND recipe = ?2";
  if (store_prepare(s, &stmt, sql, NULL) != GL_OK) return 0;
  sqlite3_bind_text(stmt, 1, key, -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(stmt, 2, recipe, -1, SQLITE_TRANSIENT);
  int found = sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_type(stmt, 0) != SQLITE_NULL;
  if (found) *score = sqlite3_column_double(stmt, 0);
  sqlite3_finalize(stmt);
  return found;
}

/* --- the tables `bias` and `laboratory` --- */

static const char insert_sql[] =
    "INSERT INTO bias(study, ordinal, algorithm, method, group_size, kl_exact, kl_exact_qp,"
    " staleness, groups, bias, cosine, scaled_bias, variance, mse, scaled_mse, snr, iw_mean,"
    " iw_variance, aw_variance, ess) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"
    " ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)";
static const char doing[] = "keeping measurements of the laboratory";

static gl_status remove_study(store *s, const char *study, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_prepare(s, &stmt, "DELETE FROM bias WHERE study = ?1", err);
  if (status != GL_OK) return status;
  sqlite3_bind_text(stmt, 1, study, -1, SQLITE_TRANSIENT);
  status = store_step_done(s, stmt, doing, err);
  sqlite3_finalize(stmt);
  return status;
}

static gl_status insert_record(store *s, sqlite3_stmt *stmt, const char *study, size_t ordinal,
                               const bias_record *r, gl_error *err) {
  const double value[] = {r->group_size, r->kl_exact,    r->kl_exact_qp, r->staleness,
                          r->groups,     r->bias,        r->cosine,      r->scaled_bias,
                          r->variance,   r->mse,         r->scaled_mse,  r->snr,
                          r->iw_mean,    r->iw_variance, r->aw_variance, r->ess};
  sqlite3_reset(stmt);
  sqlite3_clear_bindings(stmt); /* what is not bound is NULL */
  sqlite3_bind_text(stmt, 1, study, -1, SQLITE_TRANSIENT);
  sqlite3_bind_int64(stmt, 2, (sqlite3_int64)ordinal);
  sqlite3_bind_text(stmt, 3, r->algorithm, -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(stmt, 4, r->method, -1, SQLITE_TRANSIENT);
  for (int i = 0; i < (int)(sizeof value / sizeof value[0]); ++i)
    if (!isnan(value[i])) sqlite3_bind_double(stmt, 5 + i, value[i]);
  return store_step_done(s, stmt, doing, err);
}

static gl_status put_making(store *s, const char *study, const bias_making *making, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  char hash[HASH_HEX_SIZE];
  const char *provenance = making->provenance != NULL ? hash : NULL;
  gl_status status =
      provenance != NULL ? store_put_provenance(s, making->provenance, hash, err) : GL_OK;
  if (status == GL_OK)
    status = store_prepare(s, &stmt,
                           "INSERT OR REPLACE INTO laboratory(study, provenance, finished, wall_s)"
                           " VALUES(?1, ?2, ?3, ?4)",
                           err);
  if (status != GL_OK) return status;
  store_bind_text(stmt, 1, study);
  store_bind_text(stmt, 2, provenance);
  store_bind_text(stmt, 3, making->finished);
  sqlite3_bind_double(stmt, 4, making->wall_s); /* NaN is NULL */
  status = store_step_done(s, stmt, doing, err);
  sqlite3_finalize(stmt);
  return status == GL_OK ? store_seal(s, "laboratory", err) : status;
}

gl_status store_put_bias(store *s, const char *study, const bias_record *records, size_t n,
                         const bias_making *making, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_begin(s, err);
  if (status != GL_OK) return status;
  status = remove_study(s, study, err);
  if (status == GL_OK) status = store_prepare(s, &stmt, insert_sql, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    status = insert_record(s, stmt, study, i, &records[i], err);
  sqlite3_finalize(stmt);
  if (status == GL_OK) status = store_seal(s, "bias", err);
  if (status == GL_OK) status = put_making(s, study, making, err);
  return store_end(s, status, err);
}
