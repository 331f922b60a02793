/* Runs a sweep: tuning runs, then cells, through worker processes into the study file; or reports
 * what it would do. */
#include "experiments/sweep/sweep.h"

#include "core/config/fields.h"
#include "core/store/store.h"
#include "experiments/base/memory.h"
#include "experiments/base/program.h"
#include "experiments/base/provenance.h"
#include "experiments/recipe/recipe.h"
#include "experiments/sweep/forecast.h"
#include "experiments/sweep/tune.h"
#include "experiments/sweep/worker_processes.h"
#include "experiments/train/checkpoint.h"
#include "experiments/train/train.h"

#include <gen/version.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* State of a sweep that is run or surveyed. */
typedef struct sweep {
  const sweep_options *options;
  const cfg_doc *doc;
  recipe base;
  sweep_grid grid;
  tune_plan plan; /* plan.grid.n_axes 0: no tuning */
  sweep_cells tuning, cells;
  double *score;    /* [tuning.n_cells] -INFINITY: not known yet */
  int machine_fits; /* 1: all cells were already checked against this machine */
  store *store;
  sweep_report *report;
  sweep_progress progress;
  gl_error *err;
} sweep;

/* A list of cells to be run by the workers. */
typedef struct phase {
  sweep *sweep;
  const sweep_cells *cells;
  size_t *jobs; /* [n_jobs] indices into cells */
  size_t n_jobs;
} phase;

/* Returns 1 if cell i of the grid belongs to this rank. */
static int sweep_is_mine(const sweep *s, size_t i) {
  return i % s->options->ranks.count == s->options->ranks.index;
}

/* --- one cell --- */

static const char beside[] = ".checkpoints"; /* appended to the study file's name */

gl_status sweep_checkpoints(char *path, const char *root, const char *file, const sweep_cell *cell,
                            gl_error *err) {
  int n = snprintf(path, PATH_MAX, "%s%s/%s", root != NULL ? root : file,
                   root != NULL ? "" : beside, cell->key);
  if (n > 0 && n < PATH_MAX) return GL_OK;
  return gl_fail(err, GL_EINPUT, "the path '%.100s…' is too long", root != NULL ? root : file);
}

void sweep_clear_checkpoints(const char *path) {
  char root[PATH_MAX];
  checkpoint_folder_clear(path);
  snprintf(root, sizeof root, "%s", path);
  char *slash = strrchr(root, '/');
  if (slash == NULL) return;
  *slash = '\0';
  size_t length = strlen(root), end = sizeof beside - 1;
  if (length > end && strcmp(root + length - end, beside) == 0) rmdir(root);
}

static int keeps_checkpoints(const sweep *s) {
  return s->options->checkpoints != NULL || s->base.wants_checkpoints;
}

/* Removes the checkpoints of a cell that is stored in the study. Also called for cells found in the
 * file: a process may have been killed between storing a cell and removing them. */
static void clear_checkpoints(const sweep *s, const sweep_cell *cell) {
  char path[PATH_MAX];
  if (keeps_checkpoints(s) &&
      sweep_checkpoints(path, s->options->checkpoints, s->options->file, cell, NULL) == GL_OK)
    sweep_clear_checkpoints(path);
}

static int is_stopping(void *self, size_t step, double last_eval) {
  (void)self, (void)step, (void)last_eval;
  return signals_caught();
}

static int is_stopping_early(void *self, uint64_t step, uint64_t steps, double loss) {
  (void)self, (void)step, (void)steps, (void)loss;
  return signals_caught();
}

static void sweep_note(void *self, const char *text) {
  (void)self;
  fprintf(stderr, "gepolab: note: %s\n", text);
}

static int gives_up(void *self) {
  (void)self;
  return signals_caught();
}

/* Writes wait while another process reads the file, for example while copying it. */
static const store_waiting waiting = {.notify = sweep_note, .stops = gives_up};

static gl_status sweep_run_cell(void *self, size_t job, run_result *out, gl_error *err) {
  const phase *p = self;
  const sweep *s = p->sweep;
  const sweep_cell *cell = &p->cells->cells[p->jobs[job]];
  cfg_doc *doc = NULL;
  recipe r = {0};
  char path[PATH_MAX];
  train_options how = {.after_step = is_stopping,
                       .preparing = is_stopping_early,
                       .note = sweep_note,
                       .canonical = cell->identity,
                       .pace = s->base.checkpoint};
  if (s->options->checkpoint_every > 0) how.pace.every = s->options->checkpoint_every;
  gl_status status = sweep_cell_recipe(&doc, cell, err);
  if (status == GL_OK) status = recipe_read(&r, doc, err);
  r.threads = 1; /* parallelism comes from the workers */
  if (status == GL_OK && keeps_checkpoints(s)) {
    status = sweep_checkpoints(path, s->options->checkpoints, s->options->file, cell, err);
    how.checkpoints = path;
  }
  if (status == GL_OK) status = train_run(out, &r, &how, err);
  cfg_free(doc);
  return status;
}

/* System, architecture and number of processors, without host or user names. */
static void sweep_describe_machine(char *text, size_t size) {
  struct utsname u;
  if (uname(&u) != 0) {
    snprintf(text, size, "unknown");
    return;
  }
  snprintf(text, size, "%s %s, %ld processors", u.sysname, u.machine,
           sysconf(_SC_NPROCESSORS_ONLN));
}

gl_status sweep_store_cell(store *to, const char *study_name, const sweep_cell *cell,
                           const run_result *o, gl_error *err) {
  char machine[256], finished[PROVENANCE_DATE_SIZE];
  provenance how;
  sweep_describe_machine(machine, sizeof machine);
  gl_status status = provenance_init(&how, err);
  run_record record = {.key = cell->key,
                       .place = cell->place,
                       .ordinal = (int64_t)cell->ordinal,
                       .study = study_name,
                       .algorithm = cell->algorithm,
                       .swept = cell->swept,
                       .chosen = cell->chosen,
                       .meaning = RECIPE_MEANING,
                       .recipe = cell->recipe,
                       .in_effect = o->n_in_effect > 0 ? o->in_effect : NULL,
                       .code_version = GEPOLAB_VERSION,
                       .machine = machine,
                       .seed = cell->seed,
                       .lr = cell->lr,
                       .status = o->status,
                       .reason = o->reason,
                       .wall_s = o->wall_s,
                       .provenance = &how.record,
                       .finished = provenance_now(finished),
                       .peak_bytes = o->peak_bytes > 0 ? o->peak_bytes : -1,
                       .clock = o->clock,
                       .steps = o->steps,
                       .n_steps = o->n_steps,
                       .evals = o->evals,
                       .n_evals = o->n_evals,
                       .set_evals = o->set_evals,
                       .n_set_evals = o->n_set_evals,
                       .staleness = o->staleness,
                       .n_staleness = o->n_staleness,
                       .fates = o->fates,
                       .n_fates = o->n_fates};
  if (status == GL_OK) status = store_put_run(to, &record, err);
  provenance_fini(&how);
  return status;
}

/* --- results of finished jobs --- */

static void note_failure(sweep_report *report, const sweep_cell *cell, const run_result *o) {
  char *all = NULL;
  size_t size = 0;
  if (report->failed + report->tuning_failed > SWEEP_FAILURES_TOLD) return;
  FILE *to = must_have(open_memstream(&all, &size), "the list of failed runs");
  fprintf(to, "%s%s, seed %llu, %s: %s\n", report->failures != NULL ? report->failures : "",
          cell->algorithm, (unsigned long long)cell->seed, cell->swept, o->reason);
  must_succeed(fclose(to) == 0, "the list of failed runs");
  free(report->failures);
  report->failures = all;
}

/* Stores the score of a tuning run; a failed run is only counted. */
static gl_status keep_score(void *self, size_t job, const run_result *o, gl_error *err) {
  phase *p = self;
  sweep *s = p->sweep;
  const sweep_cell *cell = &p->cells->cells[p->jobs[job]];
  sweep_progress_ended(&s->progress, cell, o);
  ++s->report->tuning_runs;
  if (o->status == RUN_FAILED) {
    ++s->report->tuning_failed;
    note_failure(s->report, cell, o);
    return GL_OK;
  }
  double score = tune_score(o, cell->steps);
  s->score[p->jobs[job]] = score;
  char finished[PROVENANCE_DATE_SIZE];
  const score_record record = {cell->key, cell->recipe, score, o->wall_s, provenance_now(finished)};
  gl_status status = store_put_score(s->store, &record, err);
  if (status == GL_OK) clear_checkpoints(s, cell);
  return status;
}

static gl_status keep_run(void *self, size_t job, const run_result *o, gl_error *err) {
  phase *p = self;
  sweep_report *report = p->sweep->report;
  const sweep_cell *cell = &p->cells->cells[p->jobs[job]];
  sweep_progress_ended(&p->sweep->progress, cell, o);
  switch (o->status) {
  case RUN_DONE:
    ++report->done;
    break;
  case RUN_DIVERGED:
    ++report->diverged;
    break;
  case RUN_FAILED:
    ++report->failed;
    note_failure(report, cell, o);
    break;
  }
  const gl_status status = sweep_store_cell(p->sweep->store, p->sweep->base.name, cell, o, err);
  if (status == GL_OK && o->status != RUN_FAILED) clear_checkpoints(p->sweep, cell);
  return status;
}

static void tick(void *self) {
  sweep_progress_tick(&((phase *)self)->sweep->progress);
}

/* Checks the machine, unless that was done, and runs the jobs of the phase in worker processes. */
static gl_status run_phase(phase *p,
                           gl_status (*done)(void *, size_t, const run_result *, gl_error *)) {
  if (p->n_jobs == 0) return GL_OK;
  gl_status status =
      p->sweep->machine_fits ? GL_OK : preflight_check(p->cells, p->jobs, p->n_jobs, p->sweep->err);
  if (status != GL_OK) return status;
  executor_plan plan = {.n_jobs = p->n_jobs,
                        .workers = p->sweep->options->workers,
                        .work = sweep_run_cell,
                        .done = done,
                        .tick = tick,
                        .lets_finish_step = keeps_checkpoints(p->sweep),
                        .self = p};
  return executor_run(&plan, p->sweep->err);
}

/* --- cells --- */

/* The progress display of expanding a large grid, which can be stopped with Ctrl-C like the
 * runs. */
typedef struct listing {
  progress_mode mode;
  progress *bar;
} listing;

static int show_listing(void *self, size_t done, size_t total) {
  listing *l = self;
  if (l->bar == NULL) l->bar = progress_new("listing", "cells", total, l->mode);
  progress_at(l->bar, done, NULL);
  return signals_caught();
}

/* Expands a grid, with a progress bar if it takes long; Ctrl-C stops it (GL_EINTERRUPTED). */
static gl_status sweep_list(const sweep *s, sweep_cells *out, const sweep_grid *grid,
                            sweep_expansion how) {
  listing l = {.mode = s->options->progress};
  how.tick = show_listing;
  how.self = &l;
  gl_status status = sweep_expand(out, s->doc, grid, &how, s->err);
  if (status == GL_OK) progress_at(l.bar, out->n_cells, NULL);
  progress_free(l.bar);
  return status;
}

/* --- the two phases --- */

/* Fails if a tuning run failed: the choice could change when that run is repeated and succeeds. */
static gl_status refuse_failed_tuning(const sweep *s) {
  if (s->report->tuning_failed == 0) return GL_OK;
  return gl_fail(
      s->err, GL_EIO,
      "%zu of %zu tuning runs failed, so nothing is chosen and no run of the grid is "
      "begun; the other tuning runs are kept, and the same command tries the failed ones "
      "again",
      s->report->tuning_failed, tune_runs(&s->plan, s->tuning.n_cells));
}

/* Called between look-ups of cells, which are slow in a large file. */
static gl_status stop_if_requested(const sweep *s) {
  const int caught = signals_caught();
  if (caught == 0) return GL_OK;
  return gl_fail(s->err, GL_EINTERRUPTED,
                 "stopped by %s; finished work is kept, and the same command goes on from there",
                 strsignal(caught));
}

/* Returns 1 if the store (may be NULL) has a finished run of the cell. After a signal returns 0,
 * and *status is GL_EINTERRUPTED. */
static int sweep_has(const sweep *s, const sweep_cell *cell, gl_status *status) {
  *status = stop_if_requested(s);
  return *status == GL_OK && s->store != NULL &&
         store_has_finished(s->store, cell->key, cell->recipe);
}

/* Allocates s->score and fills it from the store; -INFINITY for runs that are not there. */
static gl_status sweep_known_scores(sweep *s) {
  s->score = MUST_ARRAY(double, s->tuning.n_cells, "the tuning runs");
  gl_status status = GL_OK;
  for (size_t i = 0; i < s->tuning.n_cells && status == GL_OK; ++i) {
    const sweep_cell *cell = &s->tuning.cells[i];
    s->score[i] = -INFINITY;
    if (s->store != NULL) (void)store_get_score(s->store, cell->key, cell->recipe, &s->score[i]);
    status = stop_if_requested(s);
  }
  return status;
}

/* Adds the cells of this rank to the runs that the progress bar expects: after tuning, each is run
 * or found in the file. */
static void expect_grid(sweep *s) {
  for (size_t i = 0; i < s->cells.n_cells; ++i)
    if (sweep_is_mine(s, i)) sweep_progress_expect(&s->progress, &s->cells, &i, 1);
}

/* Returns 1 if this rank makes tuning run i. MPI ranks share the tuning runs; other shards do not
 * communicate, so each makes all of them. */
static int tunes(const sweep *s, size_t i) {
  return !s->options->ranks.mpi || sweep_is_mine(s, i);
}

/* Adds the runs of later rungs to those that the progress bar expects. */
static void expect_rungs_after(sweep *s, size_t rung) {
  while (++rung < s->plan.rungs)
    for (size_t i = 0; i < s->tuning.n_cells; ++i)
      if (tunes(s, i) && tune_stands_for(&s->plan, rung, i))
        sweep_progress_expect(&s->progress, &s->tuning, &i, 1);
}

/* Makes the missing runs of a rung. The progress bar includes these, later rungs and the whole
 * grid. */
static gl_status make_tuning_runs(sweep *s, size_t rung, const unsigned char *in) {
  phase p = {.sweep = s, .cells = &s->tuning};
  size_t known = 0;
  p.jobs = MUST_ARRAY(size_t, s->tuning.n_cells, "the tuning runs");
  for (size_t i = 0; i < s->tuning.n_cells; ++i) {
    if (!in[i]) continue;
    s->report->tuning_known += s->score[i] != -INFINITY;
    known += s->score[i] != -INFINITY && tunes(s, i);
    if (s->score[i] != -INFINITY)
      clear_checkpoints(s, &s->tuning.cells[i]);
    else if (tunes(s, i))
      p.jobs[p.n_jobs++] = i;
  }
  sweep_progress_phase(&s->progress, "tuning", known);
  sweep_progress_expect(&s->progress, &s->tuning, p.jobs, p.n_jobs);
  expect_rungs_after(s, rung);
  expect_grid(s);
  const gl_status status = run_phase(&p, keep_score);
  free(p.jobs);
  return status;
}

static gl_status put_plan(const sweep *s, const unsigned char *in, int with_grid);

/* Runs a rung. Its runs follow from the scores of earlier rungs, which all ranks share. status:
 * result of the previous steps, which may differ between ranks. */
static gl_status make_rung(sweep *s, size_t rung, unsigned char *in, gl_status status) {
  if (status == GL_OK) status = tune_rung(in, &s->plan, &s->tuning, s->score, rung, s->err);
  if (status == GL_OK && rung > 0) status = put_plan(s, in, 0);
  if (status == GL_OK) status = make_tuning_runs(s, rung, in);
  if (status == GL_OK) status = refuse_failed_tuning(s);
  return ranks_share(&s->options->ranks, s->score, s->tuning.n_cells, status);
}

/* Makes the tuning runs rung by rung, chooses the fields of each algorithm, and stores the
 * choices. */
static gl_status tune(sweep *s) {
  if (s->plan.grid.n_axes == 0) return GL_OK;
  double begun = seconds_now();
  sweep_report *r = s->report;
  unsigned char *in = MUST_ARRAY(unsigned char, s->tuning.n_cells, "the tuning runs");
  gl_status status = sweep_known_scores(s);
  status = make_rung(s, 0, in, status);
  for (size_t rung = 1; rung < s->plan.rungs && status == GL_OK; ++rung)
    status = make_rung(s, rung, in, status);
  free(in);
  if (status == GL_OK)
    status = tune_choose(&r->choices, &r->n_choices, &s->plan, &s->tuning, s->score, s->err);
  r->tuned = s->plan.fields;
  for (size_t i = 0; i < r->n_choices && status == GL_OK; ++i) {
    const sweep_choice *c = &r->choices[i];
    status = store_put_tuned(s->store, s->base.name, c->algorithm, c->lr, c->score, s->err);
  }
  r->tuning_s = seconds_now() - begun;
  return status;
}

/* Checks at the end that the file has all finished cells: another program may have overwritten it
 * while the sweep ran. */
static gl_status sweep_check_kept(const sweep *s) {
  const sweep_report *r = s->report;
  const size_t finished = r->known + r->done + r->diverged;
  size_t found = 0;
  for (size_t i = 0; i < s->cells.n_cells; ++i) {
    const sweep_cell *cell = &s->cells.cells[i];
    found += sweep_is_mine(s, i) && store_has_finished(s->store, cell->key, cell->recipe);
  }
  if (found >= finished) return GL_OK;
  return gl_fail(s->err, GL_EIO,
                 "%s holds %zu of the %zu finished cells: another program has overwritten the "
                 "file while the sweep ran; put it back, or give the same command another file",
                 s->options->file, found, finished);
}

static gl_status run_grid(sweep *s) {
  double begun = seconds_now();
  sweep_cells_fini(&s->cells);
  const sweep_expansion how = {.choices = s->report->choices, .n_choices = s->report->n_choices};
  gl_status status = sweep_list(s, &s->cells, &s->grid, how);
  if (status != GL_OK) return status;
  phase p = {.sweep = s, .cells = &s->cells};
  p.jobs = MUST_ARRAY(size_t, s->cells.n_cells, "the cells of the sweep");
  for (size_t i = 0; i < s->cells.n_cells && status == GL_OK; ++i) {
    if (!sweep_is_mine(s, i)) continue;
    ++s->report->cells;
    const sweep_cell *cell = &s->cells.cells[i];
    const int has = sweep_has(s, cell, &status);
    if (status == GL_OK && !has) p.jobs[p.n_jobs++] = i;
    if (!has) continue;
    ++s->report->known;
    clear_checkpoints(s, cell);
    status = store_take_place_again(s->store, cell->key, s->err);
  }
  sweep_progress_phase(&s->progress, s->base.name, s->report->known);
  sweep_progress_expect(&s->progress, &s->cells, p.jobs, p.n_jobs);
  if (status == GL_OK) status = run_phase(&p, keep_run);
  if (status == GL_OK) status = sweep_check_kept(s);
  free(p.jobs);
  s->report->grid_s = seconds_now() - begun;
  return status;
}

/* --- entry point --- */

/* Reads the recipe and all cells of both grids, without chosen rates. All errors of the recipe are
 * found here, before any file is changed. */
static gl_status sweep_check(sweep *s) {
  /* The grid is read first: if an axis would undo an override, the document may not be a valid
   * recipe, and the grid's error explains what to write instead. */
  gl_status status = sweep_grid_read(&s->grid, s->doc, s->err);
  if (status == GL_OK) status = recipe_read(&s->base, s->doc, s->err);
  if (status == GL_OK) status = tune_plan_read(&s->plan, s->doc, &s->grid, s->base.steps, s->err);
  if (status == GL_OK) status = sweep_list(s, &s->cells, &s->grid, (sweep_expansion){.check = 1});
  if (status == GL_OK) status = declared_contrasts_check(s->doc, &s->cells, s->err);
  if (status == GL_OK && s->plan.grid.n_axes > 0)
    status = sweep_list(s, &s->tuning, &s->plan.grid, (sweep_expansion){.check = 1});
  if (status == GL_OK && s->options->checkpoint_every > 0 && !keeps_checkpoints(s))
    status = gl_fail(s->err, GL_EINPUT, "--checkpoint-every needs --checkpoint DIR");
  return status;
}

/* --- shards of another number --- */

/* The number of shards of the recipe's study in the file; 0 if it has none of it. */
static size_t shards_in(const sweep *s, const char *path) {
  store *file = NULL;
  study_progress p = {0};
  if (access(path, F_OK) == 0 && store_open(&file, path, STORE_READ, NULL) == GL_OK)
    (void)store_progress(file, s->base.name, &p, NULL);
  store_close(file);
  return p.planned > 0 && p.shards == 0 ? 1 : p.shards;
}

/* Keeps the first shard whose runs this sweep does not find. */
typedef struct other_shard {
  const sweep *sweep;
  char path[PATH_MAX];
  size_t shards;
} other_shard;

static void find_other_shard(void *self, const char *path) {
  other_shard *o = self;
  if (o->shards > 0) return;
  const size_t shards = shards_in(o->sweep, path);
  if (shards == 0 || shards == o->sweep->options->ranks.count) return;
  o->shards = shards;
  snprintf(o->path, sizeof o->path, "%s", path);
}

/* Notes shards beside the file that are of another number than this sweep's, unless they were
 * merged into the file that it writes. */
static void note_other_shards(const sweep *s) {
  const char *file = s->options->file;
  const ranks *r = &s->options->ranks;
  char text[2 * PATH_MAX + 400];
  other_shard o = {.sweep = s};
  if (file == NULL || (r->mpi && r->index > 0)) return;
  ranks_shard_files(file, find_other_shard, &o);
  if (o.shards == 0 || (r->count == 1 && shards_in(s, file) == o.shards)) return;
  snprintf(text, sizeof text,
           "%s is of a sweep in %zu shards. This sweep does not use its runs and makes them again; "
           "to keep them, stop, join the shards with `gepolab study merge %s %s.shard*`, and sweep "
           "into %s without shards",
           o.path, o.shards, file, file, file);
  sweep_note(NULL, text);
}

/* Frees the results of sweep_check() and the scores. */
static void sweep_fini(sweep *s) {
  sweep_cells_fini(&s->cells);
  sweep_cells_fini(&s->tuning);
  tune_plan_fini(&s->plan);
  free(s->score);
  s->score = NULL;
}

/* For a new study, checks the machine before its file is created. An existing study may have no
 * cells left that need this machine, so its phases check the remaining cells. */
static gl_status check_machine(sweep *s, const char *path) {
  if (access(path, F_OK) == 0) return GL_OK;
  gl_status status = preflight_check(&s->cells, NULL, s->cells.n_cells, s->err);
  if (status == GL_OK) status = preflight_check(&s->tuning, NULL, s->tuning.n_cells, s->err);
  s->machine_fits = status == GL_OK;
  return status;
}

/* --- the plan --- */

/* Appends the cells to the plan `to`; if `in` is not NULL, only those with in[i] != 0. Returns
 * their number. */
static size_t plan_cells(planned_cell *to, const sweep_cells *from, const unsigned char *in) {
  size_t n = 0;
  for (size_t i = 0; i < from->n_cells; ++i) {
    const sweep_cell *cell = &from->cells[i];
    if (in != NULL && !in[i]) continue;
    to[n++] = (planned_cell){.tuning = in != NULL,
                             .place = cell->place,
                             .ordinal = (int64_t)cell->ordinal,
                             .algorithm = cell->algorithm,
                             .seed = cell->seed,
                             .swept = cell->swept};
  }
  return n;
}

/* Stores the planned runs, so that an unfinished study can be distinguished from a complete one:
 * the tuning runs with in[i] != 0, and the grid. Tuning runs of later rungs are added after the
 * previous rung. */
static gl_status put_plan(const sweep *s, const unsigned char *in, int with_grid) {
  cfg_doc *kept = NULL;
  gl_status status = cfg_copy(&kept, s->doc, s->err);
  if (status == GL_OK)
    status = declared_contrasts_forget_later(kept, s->store, s->base.name, s->err);
  if (status != GL_OK) {
    cfg_free(kept);
    return status;
  }
  planned_cell *cells =
      MUST_ARRAY(planned_cell, s->tuning.n_cells + s->cells.n_cells, "the plan of the study");
  char *recipe_text = must_have(cfg_canonical(cfg_root(kept)), "the plan of the study");
  study_plan plan = {.study = s->base.name,
                     .recipe = recipe_text,
                     .shard = s->options->ranks.index,
                     .shards = s->options->ranks.count,
                     .cells = cells,
                     .replaces = with_grid && s->options->replaces_plan};
  plan.n = plan_cells(cells, &s->tuning, in);
  if (with_grid) plan.n += plan_cells(cells + plan.n, &s->cells, NULL);
  status = store_put_plan(s->store, &plan, s->err);
  free(recipe_text);
  free(cells);
  cfg_free(kept);
  return status;
}

static gl_status put_first_plan(const sweep *s) {
  unsigned char *in = MUST_ARRAY(unsigned char, s->tuning.n_cells, "the plan of the study");
  gl_status status = GL_OK;
  if (s->plan.grid.n_axes > 0) status = tune_rung(in, &s->plan, &s->tuning, NULL, 0, s->err);
  if (status == GL_OK) status = put_plan(s, in, 1);
  free(in);
  return status;
}

static gl_status count_superseded(const sweep *s) {
  study_progress p;
  gl_status status = store_progress(s->store, s->base.name, &p, s->err);
  s->report->superseded = p.superseded;
  return status;
}

/* Number of tuning runs and cells of this rank. */
static size_t runs_in_all(const sweep *s) {
  const size_t tuning = tune_runs(&s->plan, s->tuning.n_cells);
  size_t n = s->options->ranks.mpi ? tuning / s->options->ranks.count : tuning;
  for (size_t i = 0; i < s->cells.n_cells; ++i) n += sweep_is_mine(s, i) != 0;
  return n;
}

/* Verifies the checksums of the file's contents: a damaged score or run would be taken for a
 * finished one. */
static gl_status sweep_verify(const sweep *s) {
  /* Rates are recomputed from the scores, so the rates in the file are not verified. */
  static const char *const used[] = {"runs",      "steps",      "evals",         "set_evals",
                                     "staleness", "clock",      "tuning_scores", "plan",
                                     "sweeps",    "provenance", "fates",         NULL};
  gl_status status = store_begin_reading(s->store, s->err);
  if (status != GL_OK) return status;
  status = store_verify(s->store, used, s->err);
  store_end_reading(s->store);
  return status;
}

gl_status sweep_run(sweep_report *out, const cfg_doc *doc, const sweep_options *options,
                    gl_error *err) {
  *out = (sweep_report){0};
  sweep s = {.options = options, .doc = doc, .report = out, .err = err};
  char path[PATH_MAX];
  gl_status status = sweep_check(&s);
  if (status == GL_OK) note_other_shards(&s);
  if (status == GL_OK)
    status =
        ranks_path(path, sizeof path, options->file, &options->ranks, options->ranks.index, err);
  if (status == GL_OK) status = check_machine(&s, path);
  status = ranks_share(&options->ranks, NULL, 0, status);
  if (status == GL_OK) status = store_open(&s.store, path, STORE_WRITE, err);
  if (status == GL_OK) store_set_waiting(s.store, waiting);
  if (status == GL_OK) status = sweep_verify(&s);
  if (status == GL_OK) status = put_first_plan(&s);
  /* From here on all ranks of an MPI job continue together or stop together. */
  status = ranks_share(&options->ranks, NULL, 0, status);
  if (status == GL_OK)
    status = sweep_progress_init(&s.progress, runs_in_all(&s), options->workers, options->progress,
                                 s.store, s.base.name, err);
  if (status == GL_OK) status = tune(&s);
  if (status == GL_OK) status = run_grid(&s);
  if (status == GL_OK) status = count_superseded(&s);
  sweep_progress_fini(&s.progress);
  store_close(s.store);
  sweep_fini(&s);
  return status;
}

void sweep_report_fini(sweep_report *r) {
  free(r->choices);
  free(r->failures);
  *r = (sweep_report){0};
}

/* --- surveying a sweep without running it --- */

/* A subset of a list of cells. */
typedef struct selection {
  const sweep_cells *cells;
  size_t *job; /* [n] indices into cells; owned */
  size_t n;
} selection;

static void survey_selection_init(selection *x, const sweep_cells *cells) {
  *x = (selection){.cells = cells,
                   .job = MUST_ARRAY(size_t, cells->n_cells, "the cells of the sweep")};
}

/* For the survey of what is left to run: opens the study to read, and checks it. s->store stays
 * NULL if there is no file, or no study in it yet. */
static gl_status open_existing(sweep *s) {
  char path[PATH_MAX];
  const sweep_options *o = s->options;
  if (o->file == NULL) return GL_OK;
  gl_status status = ranks_path(path, sizeof path, o->file, &o->ranks, o->ranks.index, s->err);
  if (status != GL_OK || access(path, F_OK) != 0) return status;
  status = store_open(&s->store, path, STORE_READ_ANY, s->err);
  if (s->store == NULL) return status;
  return sweep_verify(s);
}

/* Lists the missing tuning runs: for each rung up to the first incomplete one, those that it makes.
 * Later rungs depend on its scores; only their number of settings is known, so their time is
 * estimated with the first settings. */
static gl_status left_to_tune(sweep *s, sweep_survey *out, selection *left) {
  const tune_plan *p = &s->plan;
  unsigned char *in = MUST_ARRAY(unsigned char, s->tuning.n_cells, "the tuning runs");
  gl_status status = sweep_known_scores(s);
  out->tuning_runs = tune_runs(p, s->tuning.n_cells);
  for (size_t rung = 0; rung < p->rungs && s->tuning.n_cells > 0 && status == GL_OK; ++rung) {
    const int open = left->n > 0;
    if (!open) status = tune_rung(in, p, &s->tuning, s->score, rung, s->err);
    for (size_t i = 0; i < s->tuning.n_cells && status == GL_OK; ++i) {
      const int tried = open ? tune_stands_for(p, rung, i) : in[i];
      if (tried && (open || s->score[i] == -INFINITY))
        left->job[left->n++] = i;
      else if (tried)
        ++out->tuning_known;
    }
  }
  free(in);
  return status;
}

/* Lists the cells as they will be run, with the choices if tuning is complete. */
static gl_status set_choices(sweep *s, sweep_survey *out) {
  sweep_choice *choices = NULL;
  size_t n = 0;
  const int chosen = out->tuning_known == out->tuning_runs;
  out->rates_open = !chosen && s->store != NULL;
  if (!chosen || s->plan.grid.n_axes == 0) return GL_OK;
  gl_status status = tune_choose(&choices, &n, &s->plan, &s->tuning, s->score, s->err);
  sweep_cells_fini(&s->cells);
  if (status == GL_OK) {
    const sweep_expansion how = {.choices = choices, .n_choices = n};
    status = sweep_list(s, &s->cells, &s->grid, how);
  }
  free(choices);
  return status;
}

/* Lists the cells of this rank that have no finished run. Before all tuning runs are made, no cell
 * counts as finished, because the choices are unknown. */
static gl_status left_of_grid(sweep *s, sweep_survey *out, selection *left) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < s->cells.n_cells && status == GL_OK; ++i) {
    if (!sweep_is_mine(s, i)) continue;
    ++out->cells;
    if (!out->rates_open && sweep_has(s, &s->cells.cells[i], &status))
      ++out->known;
    else
      left->job[left->n++] = i;
  }
  return status;
}

static void survey_expect(costs *c, const selection *left) {
  for (size_t i = 0; i < left->n; ++i) {
    const sweep_cell *cell = &left->cells->cells[left->job[i]];
    costs_expect(costs_of(c, cell->algorithm, cell->swept), cell->steps);
  }
}

/* --- the time of one cell --- */

/* A run of a cell for at most TRIAL_S seconds. It measures the time of updates, and its result is
 * discarded. */
enum { TRIAL_S = 10 };
typedef struct trial {
  double begun_s, first_s, last_s; /* times: start, after the first update, now */
  size_t updates;
} trial;

static int trial_is_over(void *self, size_t step, double last_eval) {
  trial *t = self;
  (void)last_eval;
  t->last_s = seconds_now();
  if (step == 0) return signals_caught(); /* the evaluation before the first update */
  if (t->updates++ == 0) t->first_s = t->last_s;
  return signals_caught() || t->last_s - t->begun_s > TRIAL_S;
}

static int trial_is_over_early(void *self, uint64_t step, uint64_t steps, double loss) {
  const trial *t = self;
  (void)step, (void)steps, (void)loss;
  return signals_caught() || seconds_now() - t->begun_s > TRIAL_S;
}

/* If no run of the study has finished: runs the first missing cell for a few seconds and measures
 * the time of its updates. A cell that fails, or makes no update in that time, gives no estimate.
 */
static gl_status time_one_cell(const sweep *s, sweep_survey *out, costs *c, const selection *left) {
  const sweep_cell *cell = &left->cells->cells[left->job[0]];
  trial t = {.begun_s = seconds_now()};
  const train_options how = {
      .after_step = trial_is_over, .preparing = trial_is_over_early, .self = &t};
  cfg_doc *doc = NULL;
  recipe r = {0};
  run_result o = {0};
  gl_error why = {0};
  gl_status status = sweep_cell_recipe(&doc, cell, &why);
  if (status == GL_OK) status = recipe_read(&r, doc, &why);
  r.threads = 1; /* as in a worker */
  if (status == GL_OK) (void)train_run(&o, &r, &how, &why);
  if (t.updates > 0) {
    const double update = t.updates > 1 ? (t.last_s - t.first_s) / (double)(t.updates - 1) : 0;
    costs_learn(costs_of(c, cell->algorithm, cell->swept),
                t.first_s - t.begun_s + update * (double)(cell->steps - 1), cell->steps);
    out->timed_updates = t.updates;
    out->peak_bytes = o.peak_bytes;
  }
  run_result_fini(&o);
  cfg_free(doc);
  return signals_caught() ? gl_fail(s->err, GL_EINTERRUPTED, "stopped") : GL_OK;
}

/* Estimates work and time of the runs that are left. The grid begins after the last tuning run, so
 * the two waiting times add up. */
static gl_status survey_estimate(const sweep *s, sweep_survey *out, const selection *tuning_left,
                                 const selection *grid_left) {
  const selection *const phases[] = {tuning_left, grid_left};
  costs *c = costs_new();
  gl_status status = s->store != NULL ? costs_read(c, s->store, s->base.name, s->err) : GL_OK;
  out->learned_from = costs_runs(c);
  out->peak_bytes = costs_peak_bytes(c);
  for (size_t i = 0; i < 2 && status == GL_OK && costs_runs(c) == 0; ++i) {
    if (phases[i]->n == 0) continue;
    status = time_one_cell(s, out, c, phases[i]);
    break;
  }
  for (size_t i = 0; i < 2 && status == GL_OK; ++i) {
    survey_expect(c, phases[i]);
    if (phases[i]->n == 0) continue;
    out->work_s += costs_left_s(c);
    out->wait_s += costs_wait_s(c, s->options->workers);
    costs_expect_nothing(c);
  }
  costs_free(c);
  return status;
}

static gl_status survey_look(sweep *s, sweep_survey *out, selection *tuning, selection *grid) {
  gl_status status = open_existing(s);
  survey_selection_init(tuning, &s->tuning);
  if (status == GL_OK) status = left_to_tune(s, out, tuning);
  if (status == GL_OK) status = set_choices(s, out);
  survey_selection_init(grid, &s->cells);
  if (status == GL_OK) status = left_of_grid(s, out, grid);
  if (status == GL_OK) status = preflight_check(&s->tuning, tuning->job, tuning->n, s->err);
  if (status == GL_OK) status = preflight_check(&s->cells, grid->job, grid->n, s->err);
  if (status == GL_OK) status = survey_estimate(s, out, tuning, grid);
  return status;
}

gl_status sweep_look_ahead(sweep_survey *out, const cfg_doc *doc, const sweep_options *options,
                           gl_error *err) {
  sweep s = {.options = options, .doc = doc, .err = err};
  selection tuning = {0}, grid = {0};
  *out = (sweep_survey){0};
  gl_status status = sweep_check(&s);
  if (status == GL_OK) note_other_shards(&s);
  if (status == GL_OK) {
    out->study = s.base.name;
    out->grid = s.grid;
    out->tuning = s.plan.grid;
    out->steps = s.plan.steps;
    status = survey_look(&s, out, &tuning, &grid);
    s.plan.steps = NULL; /* now owned by the survey */
  }
  free(tuning.job);
  free(grid.job);
  store_close(s.store);
  sweep_fini(&s);
  return status;
}

void sweep_survey_fini(sweep_survey *v) {
  cfg_free(v->steps);
  *v = (sweep_survey){0};
}
