/* Looks ahead at a sweep: reads its recipe and its file, counts, and estimates. */
#include "experiments/sweep/survey.h"

#include "experiments/sweep/costs.h"
#include "experiments/sweep/internal.h"
#include "experiments/sweep/preflight.h"
#include "experiments/sweep/tune.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* Some of a list of cells. */
typedef struct selection {
  const sweep_cells *cells;
  size_t *job; /* [n] indices into cells; owned */
  size_t n;
} selection;

static gl_status survey_selection_init(selection *x, const sweep_cells *cells, gl_error *err) {
  *x = (selection){.cells = cells, .job = calloc(cells->n_cells + 1, sizeof *x->job)};
  return x->job != NULL ? GL_OK : gl_fail_memory(err, "the cells of the sweep");
}

/* The study as it is, or NULL where there is no file yet. */
static gl_status open_if_there(sweep *s) {
  char path[PATH_MAX];
  const sweep_options *o = s->options;
  if (o->file == NULL) return GL_OK;
  gl_status status = ranks_path(path, sizeof path, o->file, &o->ranks, o->ranks.index, s->err);
  if (status != GL_OK || access(path, F_OK) != 0) return status;
  status = store_open(&s->store, path, STORE_READ, s->err);
  return status == GL_OK ? sweep_verify(s) : status;
}

/* What is known of the rungs, up to one that is not all there. Which settings later rungs try is
 * not known then, but how many: time is told as if it were the first. */
static gl_status left_to_tune(sweep *s, sweep_survey *out, selection *left) {
  const tune_plan *p = &s->plan;
  unsigned char *in = calloc(s->tuning.n_cells + 1, 1);
  gl_status status = in != NULL ? sweep_known_scores(s) : gl_fail_memory(s->err, "the tuning runs");
  out->tuning_runs = tune_runs(p, s->tuning.n_cells);
  for (size_t rung = 0; rung < p->rungs && s->tuning.n_cells > 0 && status == GL_OK; ++rung) {
    const int open = left->n > 0;
    if (!open) status = tune_rung(in, p, &s->tuning, s->score, rung, s->err);
    for (size_t i = 0; i < s->tuning.n_cells && status == GL_OK; ++i) {
      const size_t of = i / p->settings % p->rungs, setting = i % p->settings;
      const int tried = open ? of == rung && setting < tune_settings(p, rung) : in[i];
      if (tried && (open || s->score[i] == -INFINITY))
        left->job[left->n++] = i;
      else if (tried)
        ++out->tuning_known;
    }
  }
  free(in);
  return status;
}

/* The cells as they will be run: with what is chosen, if that is done. */
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

static gl_status expect(costs *c, const selection *left, gl_error *err) {
  for (size_t i = 0; i < left->n; ++i) {
    const sweep_cell *cell = &left->cells->cells[left->job[i]];
    costs_kind *k = costs_of(c, cell->algorithm, cell->swept);
    if (k == NULL) return gl_fail_memory(err, "the times of runs");
    costs_expect(k, cell->steps);
  }
  return GL_OK;
}

/* The grid begins when the last tuning run has ended: the two waits add up. */
static gl_status survey_estimate(const sweep *s, sweep_survey *out, const selection *tuning,
                                 const selection *grid) {
  const selection *const phases[] = {tuning, grid};
  costs *c = costs_new();
  if (c == NULL) return gl_fail_memory(s->err, "the times of runs");
  gl_status status = s->store != NULL ? costs_read(c, s->store, s->base.name, s->err) : GL_OK;
  out->learned_from = costs_runs(c);
  out->peak_bytes = costs_peak_bytes(c);
  for (size_t i = 0; i < 2 && status == GL_OK; ++i) {
    status = expect(c, phases[i], s->err);
    if (phases[i]->n == 0) continue;
    out->work_s += costs_left_s(c);
    out->wait_s += costs_wait_s(c, s->options->workers);
    costs_expect_nothing(c);
  }
  costs_free(c);
  return status;
}

static gl_status survey_look(sweep *s, sweep_survey *out, selection *tuning, selection *grid) {
  gl_status status = open_if_there(s);
  if (status == GL_OK) status = survey_selection_init(tuning, &s->tuning, s->err);
  if (status == GL_OK) status = left_to_tune(s, out, tuning);
  if (status == GL_OK) status = set_choices(s, out);
  if (status == GL_OK) status = survey_selection_init(grid, &s->cells, s->err);
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
  if (status == GL_OK) {
    out->study = s.base.name;
    out->grid = s.grid;
    out->tuning = s.plan.grid;
    out->steps = s.plan.steps;
    status = survey_look(&s, out, &tuning, &grid);
    s.plan.steps = NULL; /* it is the survey's */
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
