/* Figures over updates: evaluation score, training (the paper's Fig. 4), windows (Fig. 6). */
#include "analysis/figure_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A run's updates are gathered into this many points at most: a figure's width shows no more, and
 * an interval of a mean over some updates says more than one of a single noisy update. */
enum { MOST_POINTS = 40, MOST_COLUMNS = 4, MOST_SCORE_PANELS = 12 };

/* A quantity over updates. */
typedef struct curve {
  metric m; /* METRIC_COUNT: the evaluation score */
  const char *axis;
  double scale;    /* of the stored value */
  int logarithmic; /* axis */
} curve;

static const curve score = {METRIC_COUNT, "eval_score", 1, 0};
static const curve training[] = {
    {METRIC_LOG_IW_VARIANCE, "log₁₀ iw_variance", M_LOG10E, 0},
    {METRIC_LOG_IW_VARIANCE_GEPO, "log₁₀ iw_variance_gepo", M_LOG10E, 0},
    {METRIC_GRAD_NORM, "grad_norm", 1, 1},
    {METRIC_REWARD_MEAN, "reward_mean", 1, 0}};
static const curve window[] = {{METRIC_STALENESS, "staleness [updates]", 1, 0},
                               {METRIC_KL_EXACT, "kl_exact [nat]", 1, 0},
                               {METRIC_COUNT, "eval_score", 1, 0}};

/* A figure of n_curves rows of panels over the groups in columns. */
typedef struct curve_figure {
  const char *name;
  const curve *curves[4];
  size_t n_curves, wide;
  const size_t *columns;
  size_t n_columns;
} curve_figure;

typedef struct scratch {
  double *values, *row; /* [n_runs], [longest run] */
  int64_t last_step;
} scratch;

static int has_curve(const results *r, const curve *c) {
  for (size_t i = 0; i < r->n_runs; i++) {
    const results_run *run = &r->runs[i];
    if (c->m == METRIC_COUNT && run->n_evals > 0) return 1;
    for (size_t k = 0; c->m < METRIC_COUNT && k < run->n_steps; k++)
      if (isfinite(run->steps[k].metric[c->m])) return 1;
  }
  return 0;
}

static double eval_at(const results_run *run, int64_t step) {
  for (size_t i = 0; i < run->n_evals; i++)
    if (run->evals[i].step == step) return run->evals[i].eval_score;
  return NAN;
}

/* One point: the IQM over the cell's runs of their value at an evaluation (from == to), or over the
 * updates from < step <= to. */
static gl_status write_point(figure_page *p, size_t panel, const results *r, const results_cell *c,
                             const curve *q, int64_t from, int64_t to, scratch *s, gl_error *err) {
  size_t n = 0;
  double x = q->m == METRIC_COUNT ? (double)to : 0.5 * (double)(from + 1 + to);
  for (size_t k = 0; k < c->n; k++) {
    const results_run *run = &r->runs[c->first + k];
    if (run->status == RUN_FAILED) continue;
    s->values[n++] =
        q->scale *
        (q->m == METRIC_COUNT ? eval_at(run, to) : summary_run_metric(run, q->m, from, to, s->row));
  }
  uint64_t entity = UINT64_C(1) << 63 | (uint64_t)(c - r->cells) << 32 | (uint64_t)to;
  interval v;
  gl_status status =
      iqm_bootstrap(s->values, &n, 1, rng_stream_at(1, RNG_BOOTSTRAP, entity), &v, err);
  if (status != GL_OK) return status;
  page_line(p, panel, r->algorithms[c->algorithm]);
  page_number(p, x);
  page_interval(p, panel, v);
  fputc('\n', p->data.stream);
  page_x(p, x);
  return GL_OK;
}

static gl_status write_curve(figure_page *p, size_t panel, const results *r, const results_cell *c,
                             const curve *q, scratch *s, gl_error *err) {
  gl_status status = GL_OK;
  const results_run *longest = NULL;
  for (size_t k = 0; k < c->n; k++)
    if (!longest || r->runs[c->first + k].n_evals > longest->n_evals)
      longest = &r->runs[c->first + k];
  if (q->m == METRIC_COUNT) {
    for (size_t i = 0; longest && i < longest->n_evals && status == GL_OK; i++)
      status =
          write_point(p, panel, r, c, q, longest->evals[i].step, longest->evals[i].step, s, err);
  } else if (longest) {
    int64_t n = s->last_step < MOST_POINTS ? s->last_step : MOST_POINTS;
    for (int64_t i = 0; i < n && status == GL_OK; i++)
      status =
          write_point(p, panel, r, c, q, i * s->last_step / n, (i + 1) * s->last_step / n, s, err);
  }
  page_block_end(p);
  return status;
}

static gl_status scratch_init(scratch *s, const results *r, gl_error *err) {
  size_t longest = 1;
  s->last_step = 0;
  for (size_t i = 0; i < r->n_runs; i++) {
    const results_run *run = &r->runs[i];
    if (run->n_steps > longest) longest = run->n_steps;
    if (run->n_steps && run->steps[run->n_steps - 1].step > s->last_step)
      s->last_step = run->steps[run->n_steps - 1].step;
  }
  s->values = calloc(r->n_runs + 1, sizeof *s->values);
  s->row = calloc(longest, sizeof *s->row);
  return s->values && s->row ? GL_OK : gl_fail_memory(err, "a figure");
}

static gl_status write_figure(const curve_figure *f, const results *r, const figure_request *q,
                              gl_error *err) {
  figure_page p;
  scratch s = {0};
  gl_status status = page_begin(&p, q, f->name, "curves", f->n_curves * f->n_columns,
                                "panel\talgorithm\tstep\tiqm\tlow\thigh", err);
  if (status != GL_OK) return status;
  p.wide = f->wide;
  p.share = f->n_columns;
  p.lines = (const char *const *)r->algorithms;
  p.n_lines = r->n_algorithms;
  status = scratch_init(&s, r, err);
  for (size_t panel = 0; panel < p.n_panels && status == GL_OK; panel++) {
    const curve *c = f->curves[panel / f->n_columns];
    size_t group = f->columns[panel % f->n_columns];
    figure_panel *to = &p.panels[panel];
    if (panel < f->n_columns) snprintf(to->title, sizeof to->title, "%s", r->groups[group].heading);
    snprintf(to->axis, sizeof to->axis, "%s", c->axis);
    to->logarithmic = c->logarithmic;
    for (size_t a = 0; a < r->n_algorithms && status == GL_OK; a++)
      status = write_curve(&p, panel, r, results_cell_at(r, group, a), c, &s, err);
  }
  free(s.values), free(s.row);
  return page_end(&p, status, err);
}

/* The curves the study has data for, into f. */
static void keep_curves(curve_figure *f, const results *r, const curve *curves, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (has_curve(r, &curves[i])) f->curves[f->n_curves++] = &curves[i];
}

gl_status write_eval_score(const summary *s, const figure_request *q, const char **why,
                           gl_error *err) {
  size_t columns[MOST_SCORE_PANELS];
  curve_figure f = {.name = "eval_score", .columns = columns};
  f.n_columns = page_pick(s->from->n_groups, MOST_SCORE_PANELS, columns);
  f.wide = f.n_columns == 4 || f.n_columns > 6 ? 4 : 3;
  keep_curves(&f, s->from, &score, 1);
  if (f.n_curves == 0) *why = "the study has no evaluation";
  return *why ? GL_OK : write_figure(&f, s->from, q, err);
}

gl_status write_training(const summary *s, const figure_request *q, const char **why,
                         gl_error *err) {
  size_t columns[MOST_COLUMNS];
  curve_figure f = {.name = "training", .columns = columns};
  f.n_columns = f.wide = page_pick(s->from->n_groups, MOST_COLUMNS, columns);
  keep_curves(&f, s->from, training, sizeof training / sizeof *training);
  if (f.n_curves == 0) *why = "the study has no importance weights, gradient norms or rewards";
  return *why ? GL_OK : write_figure(&f, s->from, q, err);
}

/* One group per distinct window, smallest window first: of those at the largest swept delay (any,
 * if none is swept) the last in the grid's order. Returns how many; groups has n_groups places. */
static size_t window_groups(const results *r, size_t *groups) {
  size_t n = 0;
  double delay = -INFINITY;
  for (size_t g = 0; g < r->n_groups; g++) delay = fmax(delay, r->groups[g].delay);
  for (size_t g = 0; g < r->n_groups; g++) {
    const results_group *here = &r->groups[g];
    if (!isfinite(here->window) || here->delay < delay) continue;
    size_t at = 0;
    while (at < n && r->groups[groups[at]].window < here->window) at++;
    if (at == n || r->groups[groups[at]].window > here->window) {
      memmove(groups + at + 1, groups + at, (n - at) * sizeof *groups);
      n++;
    }
    groups[at] = g;
  }
  return n;
}

gl_status write_window(const summary *s, const figure_request *q, const char **why, gl_error *err) {
  const results *r = s->from;
  size_t *groups = calloc(r->n_groups + 1, sizeof *groups), columns[MOST_COLUMNS];
  if (!groups) return gl_fail_memory(err, "a figure");
  size_t n = window_groups(r, groups);
  curve_figure f = {.name = "window", .columns = columns};
  f.n_columns = f.wide = page_pick(n, MOST_COLUMNS, columns);
  for (size_t i = 0; i < f.n_columns; i++) columns[i] = groups[columns[i]];
  free(groups);
  keep_curves(&f, r, window, sizeof window / sizeof *window);
  if (n < 2)
    *why = "the study does not sweep cluster.window";
  else if (f.n_curves == 0)
    *why = "the study has no staleness, KL or evaluation";
  return *why ? GL_OK : write_figure(&f, r, q, err);
}
