/* Run-time estimates of a sweep: mean durations by kind of run, the throughput of a study that is
 * being written, and a sweep's progress bar. */
#include "experiments/sweep/forecast.h"

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/config/config.h"
#include "core/store/store.h"
#include "experiments/base/memory.h"
#include "experiments/base/program.h"
#include "experiments/sweep/tune.h"
#include "experiments/sweep/worker_processes.h"

#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- mean times by kind of run --- */

typedef struct pace {
  double seconds, updates;
  size_t runs;
} pace;

struct costs_kind {
  char *name; /* key: algorithm, newline, settings; the algorithm alone for the mean over all its
                 runs */
  costs *of;
  costs_kind *algorithm; /* entry of the algorithm; NULL in its own */
  costs_kind *next;
  pace took;
  size_t left, ended, updates; /* runs still to be made, and made of those; updates of each */
};

struct costs {
  hash_table names;  /* addresses of all kinds, including those of algorithms */
  costs_kind *first; /* list of them */
  pace took;
  int64_t peak_bytes;
};

/* --- kinds --- */

static bool costs_is_named(const void *owner, uint64_t kind, const void *name) {
  (void)owner;
  return strcmp(((const costs_kind *)(uintptr_t)kind)->name, name) == 0;
}

costs *costs_new(void) {
  return MUST_ARRAY(costs, 1, "the times of runs");
}

void costs_free(costs *c) {
  if (c == NULL) return;
  for (costs_kind *k = c->first, *next; k != NULL; k = next) {
    next = k->next;
    free(k->name);
    free(k);
  }
  hash_table_fini(&c->names);
  free(c);
}

/* Returns the kind with that name, which is made if needed. Takes ownership of the name. */
static costs_kind *kind_named(costs *c, char *name) {
  const uint64_t hash = hash_64_text(HASH_64_START, name);
  const uint64_t *known = hash_table_find(&c->names, hash, costs_is_named, NULL, name);
  if (known != NULL) {
    free(name);
    return (costs_kind *)(uintptr_t)*known;
  }
  costs_kind *k = MUST_ARRAY(costs_kind, 1, "the times of runs");
  *k = (costs_kind){.name = name, .of = c, .next = c->first};
  must_succeed(hash_table_add(&c->names, hash, (uintptr_t)k), "the times of runs");
  return c->first = k;
}

/* Settings without the learning rate. In canonical JSON a quoted name before a colon is a key, and
 * the rate is a number that ends at a comma or the closing brace. */
static char *kind_name(const char *algorithm, const char *swept) {
  static const char rate[] = "\"optimizer.lr\":";
  const char *at = strstr(swept, rate);
  if (at == NULL) return must_textf("the times of runs", "%s\n%s", algorithm, swept);
  const char *after = at + strlen(rate);
  after += strcspn(after, ",}");
  char *name = must_textf("the times of runs", "%s\n%.*s%s", algorithm, (int)(at - swept), swept,
                          *after == ',' ? after + 1 : after);
  const size_t length = strlen(name); /* removing the last member leaves {"a":1,} */
  if (length > 2 && strcmp(name + length - 2, ",}") == 0) memcpy(name + length - 2, "}", 2);
  return name;
}

costs_kind *costs_of(costs *c, const char *algorithm, const char *swept) {
  costs_kind *k = kind_named(c, kind_name(algorithm, swept));
  if (k->algorithm == NULL) k->algorithm = kind_named(c, must_copy(algorithm, "the times of runs"));
  return k;
}

/* --- learning --- */

static void costs_add(pace *p, double wall_s, size_t updates) {
  p->seconds += wall_s;
  p->updates += (double)updates;
  ++p->runs;
}

void costs_learn(costs_kind *k, double wall_s, size_t updates) {
  if (!isfinite(wall_s) || wall_s < 0 || updates == 0) return;
  costs_add(&k->took, wall_s, updates);
  costs_add(&k->algorithm->took, wall_s, updates);
  costs_add(&k->of->took, wall_s, updates);
}

void costs_expect(costs_kind *k, size_t updates) {
  ++k->left;
  k->updates = updates;
}

void costs_expect_nothing(costs *c) {
  for (costs_kind *k = c->first; k != NULL; k = k->next) k->left = 0;
}

void costs_ended(costs_kind *k, double wall_s, int failed) {
  if (k->left > 0) --k->left;
  if (failed) return;
  ++k->ended;
  costs_learn(k, wall_s, k->updates);
}

/* --- predictions --- */

static double run_s(const pace *p, size_t updates) {
  return updates > 0 ? p->seconds / p->updates * (double)updates : p->seconds / (double)p->runs;
}

double costs_run_s(const costs_kind *k) {
  const pace *const known[] = {&k->took, &k->algorithm->took, &k->of->took};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i)
    if (known[i]->runs > 0) return run_s(known[i], k->updates);
  return NAN;
}

double costs_spent_s(const costs *c) {
  double sum = 0;
  for (const costs_kind *k = c->first; k != NULL; k = k->next)
    if (k->ended > 0) sum += (double)k->ended * costs_run_s(k);
  return sum;
}

int64_t costs_peak_bytes(const costs *c) {
  return c->peak_bytes;
}

size_t costs_runs(const costs *c) {
  return c->took.runs;
}

double costs_left_s(const costs *c) {
  double sum = 0;
  for (const costs_kind *k = c->first; k != NULL; k = k->next)
    if (k->left > 0) sum += (double)k->left * costs_run_s(k);
  return sum;
}

double costs_wait_s(const costs *c, size_t workers) {
  double longest = 0;
  for (const costs_kind *k = c->first; k != NULL; k = k->next)
    if (k->left > 0) longest = fmax(longest, costs_run_s(k));
  const double left = costs_left_s(c);
  if (isnan(left)) return NAN;
  return fmax(left / (double)(workers > 0 ? workers : 1), longest);
}

/* --- from a study --- */

/* "steps" of a recipe or of swept fields (JSON); 0 if not there, or json is NULL. */
static size_t stated_steps(const char *json) {
  if (json == NULL || strstr(json, "\"steps\":") == NULL) return 0;
  cJSON *fields = json_tree_of(json);
  const double steps = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(fields, "steps"));
  cJSON_Delete(fields);
  return steps >= 1 && steps < 1e15 ? (size_t)steps : 0;
}

/* Planned number of updates of a run: its last update, or for a diverged run the number in its
 * recipe. */
static size_t planned_updates(sqlite3_stmt *q) {
  const size_t stated = stated_steps((const char *)sqlite3_column_text(q, 4));
  if (stated > 0) return stated;
  const sqlite3_int64 made = sqlite3_column_int64(q, 3);
  return made > 0 ? (size_t)made : 0;
}

static gl_status outlook_fail(store *s, gl_error *err) {
  return gl_fail(err, GL_EIO, "the times of the finished runs in %s cannot be read: %s",
                 sqlite3_db_filename(store_handle(s), "main"), sqlite3_errmsg(store_handle(s)));
}

gl_status costs_read(costs *c, store *s, const char *study, gl_error *err) {
  static const char sql[] =
      "SELECT algorithm, swept, wall_s, (SELECT max(step) FROM steps WHERE run = r.id), CASE status"
      " WHEN 'diverged' THEN recipe END, peak_bytes FROM runs r WHERE study = ?1 AND status != "
      "'failed' AND"
      " wall_s IS NOT NULL";
  sqlite3_stmt *q = NULL;
  gl_status status = GL_OK;
  int code = sqlite3_prepare_v2(store_handle(s), sql, -1, &q, NULL);
  if (code == SQLITE_OK) code = sqlite3_bind_text(q, 1, study, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_step(q);
  for (; code == SQLITE_ROW; code = sqlite3_step(q)) {
    const char *algorithm = (const char *)sqlite3_column_text(q, 0),
               *swept = (const char *)sqlite3_column_text(q, 1);
    must_succeed(algorithm != NULL && swept != NULL, "the times of runs");
    const int64_t peak = sqlite3_column_int64(q, 5); /* NULL reads as 0 */
    if (peak > c->peak_bytes) c->peak_bytes = peak;
    costs_learn(costs_of(c, algorithm, swept), sqlite3_column_double(q, 2), planned_updates(q));
  }
  if (code != SQLITE_DONE) status = outlook_fail(s, err);
  sqlite3_finalize(q);
  return status;
}

/* --- recent throughput --- */

/* Throughput is measured over the most recent LATELY runs. A gap of more than PAUSE_S seconds means
 * that the sweep was stopped; earlier runs are ignored. */
enum { LATELY = 20, PAUSE_S = 60 };

typedef struct recent {
  double begun_s, ended_s; /* range of these runs, seconds since 1970 */
  double work_s;           /* as costs_left_s() counts them: as long as the mean of their kind */
  double took_s;           /* sum of their durations */
  size_t n;
} recent;

/* Query for the finished runs of study ?1, both of the grid and of tuning: algorithm, swept, end
 * time and duration. Allocated. */
static char *finished_runs(store *s, const char *then) {
  static const char *const names[] = {"finished", "wall_s"};
  char *columns =
      must_have(store_columns(s, "main", "tuning_scores", "t", names, 2), "the times of runs");
  char *sql = sqlite3_mprintf(
      "WITH took AS (SELECT t.key, %s FROM tuning_scores t), ended AS (SELECT algorithm, swept,"
      " finished, wall_s, 0 AS tuning FROM runs WHERE study = ?1 AND status != 'failed' UNION ALL"
      " SELECT p.algorithm, p.swept, x.finished, x.wall_s, 1 FROM plan p JOIN took x ON x.key ="
      " p.place WHERE p.study = ?1 AND p.tuning = 1) %s",
      columns, then);
  free(columns);
  return must_have(sql, "the times of runs");
}

/* Prepares the query `sql` for a study, and frees its text. */
static gl_status query(sqlite3_stmt **q, store *s, char *sql, const char *study, gl_error *err) {
  *q = NULL;
  int code = sqlite3_prepare_v2(store_handle(s), sql, -1, q, NULL);
  if (code == SQLITE_OK) code = sqlite3_bind_text(*q, 1, study, -1, SQLITE_STATIC);
  sqlite3_free(sql);
  return code == SQLITE_OK ? GL_OK : outlook_fail(s, err);
}

static gl_status query_end(sqlite3_stmt *q, store *s, int code, gl_status status, gl_error *err) {
  if (status == GL_OK && code != SQLITE_DONE) status = outlook_fail(s, err);
  sqlite3_finalize(q);
  return status;
}

static gl_status read_recent(recent *out, costs *c, store *s, const char *study, gl_error *err) {
  static const char newest[] =
      "SELECT CAST(strftime('%s', finished) AS REAL), wall_s, algorithm, swept FROM ended WHERE"
      " finished IS NOT NULL AND wall_s IS NOT NULL ORDER BY finished DESC LIMIT ?2";
  sqlite3_stmt *q = NULL;
  *out = (recent){.begun_s = INFINITY, .ended_s = -INFINITY};
  gl_status status = query(&q, s, finished_runs(s, newest), study, err);
  int code = status == GL_OK ? sqlite3_bind_int(q, 2, LATELY) : SQLITE_DONE;
  if (code == SQLITE_OK) code = sqlite3_step(q);
  for (; code == SQLITE_ROW; code = sqlite3_step(q)) {
    const double ended = sqlite3_column_double(q, 0), took = sqlite3_column_double(q, 1);
    if (ended + PAUSE_S < out->begun_s && out->n > 0) {
      code = SQLITE_DONE;
      break;
    }
    out->begun_s = fmin(out->begun_s, ended - took);
    out->ended_s = fmax(out->ended_s, ended);
    out->work_s += costs_run_s(costs_of(c, (const char *)sqlite3_column_text(q, 2),
                                        (const char *)sqlite3_column_text(q, 3)));
    out->took_s += took;
    ++out->n;
  }
  return query_end(q, s, code, status, err);
}

/* --- numbers of updates --- */

/* The recipe of a study that was swept with one recipe alone; else all is 0. */
typedef struct study_recipe {
  cfg_doc *doc;
  size_t n, steps; /* n: recipes of the study; steps: updates of a run that its cell does not set */
  sweep_grid grid;
  tune_plan plan;
} study_recipe;

static int study_recipe_read(void *self, const char *json) {
  study_recipe *r = self;
  if (r->n++ > 0) return 0;
  r->steps = stated_steps(json);
  if (cfg_load_text(&r->doc, json, strlen(json), "the study's recipe", NULL) != GL_OK ||
      sweep_grid_read(&r->grid, r->doc, NULL) != GL_OK ||
      tune_plan_read(&r->plan, r->doc, &r->grid, r->steps, NULL) != GL_OK)
    r->plan = (tune_plan){.rungs = 1};
  return 1;
}

static void study_recipe_fini(study_recipe *r) {
  tune_plan_fini(&r->plan);
  cfg_free(r->doc);
  *r = (study_recipe){.plan.rungs = 1};
}

static gl_status study_recipe_init(study_recipe *r, store *s, const char *study, gl_error *err) {
  *r = (study_recipe){.plan.rungs = 1};
  const gl_status status = store_recipes(s, study, study_recipe_read, r, err);
  if (r->n > 1) study_recipe_fini(r);
  return status;
}

/* 0: unknown. */
static size_t updates_of(const study_recipe *r, const char *swept) {
  const size_t steps = stated_steps(swept);
  return steps > 0 ? steps : r->steps;
}

/* --- tuning --- */

/* Reads the durations of tuning runs, and which tuning runs are still to be made. */
static gl_status read_tuning(costs *c, const study_recipe *r, store *s, const char *study,
                             gl_error *err) {
  char *const sql[] = {
      finished_runs(s, "SELECT algorithm, swept, wall_s FROM ended WHERE tuning AND wall_s IS NOT"
                       " NULL"),
      must_have(sqlite3_mprintf("SELECT algorithm, swept FROM plan WHERE study = ?1 AND tuning = 1"
                                " AND place NOT IN (SELECT key FROM tuning_scores)"),
                "the times of runs")};
  gl_status status = GL_OK;
  for (int missing = 0; missing < 2; ++missing) {
    sqlite3_stmt *q = NULL;
    if (status != GL_OK) {
      sqlite3_free(sql[missing]);
      continue;
    }
    status = query(&q, s, sql[missing], study, err);
    int code = status == GL_OK ? sqlite3_step(q) : SQLITE_DONE;
    for (; code == SQLITE_ROW && status == GL_OK; code = sqlite3_step(q)) {
      const char *algorithm = (const char *)sqlite3_column_text(q, 0),
                 *swept = (const char *)sqlite3_column_text(q, 1);
      must_succeed(algorithm != NULL && swept != NULL, "the times of runs");
      const size_t updates = updates_of(r, swept);
      if (missing)
        costs_expect(costs_of(c, algorithm, swept), updates);
      else
        costs_learn(costs_of(c, algorithm, swept), sqlite3_column_double(q, 2),
                    updates > 0 ? updates : 1);
    }
    status = query_end(q, s, code, status, err);
  }
  return status;
}

/* Number of updates of a run of that rung. */
static size_t rung_updates(const tune_plan *p, size_t rung) {
  double updates = 0;
  (void)cfg_number(cfg_at(cfg_find(cfg_root(p->steps), "steps"), rung), &updates);
  return (size_t)updates;
}

/* Expects one algorithm's runs of rungs that are not planned yet: runs[k] are planned of rung k. */
static void expect_rungs_of(costs *c, const char *algorithm, const tune_plan *p,
                            const size_t *runs) {
  for (size_t k = 1; k < p->rungs; ++k) {
    char swept[48];
    const size_t updates = rung_updates(p, k);
    if (runs[k] > 0) continue;
    snprintf(swept, sizeof swept, "{\"steps\":%zu}", updates);
    for (size_t n = runs[0] / p->settings * tune_settings(p, k); n > 0; --n)
      costs_expect(costs_of(c, algorithm, swept), updates);
  }
}

/* Expects the runs of rungs that are not planned yet. */
static gl_status expect_rungs(costs *c, const tune_plan *p, store *s, const char *study,
                              gl_error *err) {
  sqlite3_stmt *q = NULL;
  char *algorithm = NULL;
  if (p->rungs < 2) return GL_OK;
  size_t *runs = MUST_ARRAY(size_t, p->rungs, "the times of runs");
  gl_status status = query(&q, s,
                           must_have(sqlite3_mprintf("SELECT algorithm, swept FROM plan WHERE study"
                                                     " = ?1 AND tuning = 1 ORDER BY algorithm"),
                                     "the times of runs"),
                           study, err);
  int code = status == GL_OK ? sqlite3_step(q) : SQLITE_DONE;
  for (; code == SQLITE_ROW; code = sqlite3_step(q)) {
    const char *name = (const char *)sqlite3_column_text(q, 0),
               *swept = (const char *)sqlite3_column_text(q, 1);
    must_succeed(name != NULL && swept != NULL, "the times of runs");
    if (algorithm == NULL || strcmp(algorithm, name) != 0) {
      if (algorithm != NULL) expect_rungs_of(c, algorithm, p, runs);
      free(algorithm);
      algorithm = must_copy(name, "the times of runs");
      memset(runs, 0, p->rungs * sizeof *runs);
    }
    const size_t updates = stated_steps(swept);
    for (size_t k = 0; k < p->rungs; ++k) runs[k] += rung_updates(p, k) == updates;
  }
  if (algorithm != NULL) expect_rungs_of(c, algorithm, p, runs);
  free(algorithm);
  free(runs);
  return query_end(q, s, code, status, err);
}

/* --- time estimates --- */

/* What expect_cell() needs. */
typedef struct expecting {
  costs *costs;
  const study_recipe *recipe;
} expecting;

static int expect_cell(void *self, const planned_cell *cell) {
  const expecting *e = self;
  costs_expect(costs_of(e->costs, cell->algorithm, cell->swept),
               updates_of(e->recipe, cell->swept));
  return 1;
}

gl_status sweep_outlook_read(sweep_outlook *out, store *s, const char *study, gl_error *err) {
  recent lately;
  study_recipe r;
  *out = (sweep_outlook){.per_s = NAN, .left_s = NAN, .ended_s = NAN, .run_s = NAN};
  costs *c = costs_new();
  gl_status status = study_recipe_init(&r, s, study, err);
  if (status == GL_OK) status = costs_read(c, s, study, err);
  if (status == GL_OK) status = read_tuning(c, &r, s, study, err);
  if (status == GL_OK) status = read_recent(&lately, c, s, study, err);
  expecting e = {c, &r};
  if (status == GL_OK) status = store_missing(s, study, expect_cell, &e, err);
  if (status == GL_OK) status = expect_rungs(c, &r.plan, s, study, err);
  if (status == GL_OK && lately.n > 0) {
    /* end times are whole seconds */
    const double span = fmax(lately.ended_s - lately.begun_s, 1);
    out->per_s = (double)lately.n / span;
    out->left_s = costs_left_s(c) * span / lately.work_s;
    out->ended_s = lately.ended_s;
    out->run_s = lately.took_s / (double)lately.n;
    out->at_most = lately.n == 1;
  }
  study_recipe_fini(&r);
  costs_free(c);
  return status;
}

double sweep_outlook_left_s(const sweep_outlook *o, double now_s) {
  if (isnan(o->left_s)) return NAN;
  return fmax(o->left_s - fmax(fmin(now_s - o->ended_s, o->run_s), 0), 0);
}

/* --- watching a sweep --- */

/* Minimum interval between recomputations of the estimate: there may be many kinds of runs, and
 * runs may be very short. */
static const double estimate_every_s = 0.2;

gl_status sweep_progress_init(sweep_progress *w, uint64_t total, size_t workers, progress_mode mode,
                              store *s, const char *study, gl_error *err) {
  *w = (sweep_progress){.costs = costs_new(), .estimated_s = -INFINITY};
  gl_status status = costs_read(w->costs, s, study, err);
  w->bar = progress_new(study, "runs", total, mode);
  progress_workers(w->bar, workers);
  return status;
}

void sweep_progress_fini(sweep_progress *w) {
  progress_free(w->bar);
  costs_free(w->costs);
  *w = (sweep_progress){0};
}

void sweep_progress_phase(sweep_progress *w, const char *what, size_t n) {
  w->found += n;
  w->finished += n;
  progress_phase(w->bar, what);
  progress_resume(w->bar, w->found);
  costs_expect_nothing(w->costs);
}

/* Updates the progress bar's estimate of the remaining time, unless that was done within
 * estimate_every_s. */
static void sweep_progress_estimate(sweep_progress *w) {
  const double now = seconds_now();
  if (now - w->estimated_s < estimate_every_s) return;
  w->estimated_s = now;
  const double left = costs_left_s(w->costs);
  if (!isnan(left)) progress_cost(w->bar, costs_spent_s(w->costs), left);
}

void sweep_progress_expect(sweep_progress *w, const sweep_cells *cells, const size_t *job,
                           size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const sweep_cell *cell = &cells->cells[job != NULL ? job[i] : i];
    costs_expect(costs_of(w->costs, cell->algorithm, cell->swept), cell->steps);
  }
  w->estimated_s = -INFINITY;
}

void sweep_progress_ended(sweep_progress *w, const sweep_cell *cell, const run_result *o) {
  costs_ended(costs_of(w->costs, cell->algorithm, cell->swept), o->wall_s, o->status == RUN_FAILED);
  sweep_progress_estimate(w);
  progress_at(w->bar, ++w->finished, cell->algorithm);
}

void sweep_progress_tick(sweep_progress *w) {
  sweep_progress_estimate(w);
  progress_tick(w->bar);
}
