/* Quantities against updates, for the figures `eval_score`, `training` and `window`. */
#include "analysis/figures/data.h"

#include <math.h>
#include <stdlib.h>

/* A run's updates are gathered into this many points at most: a figure's width shows no more, and
 * an interval of a mean over some updates says more than one of a single noisy update. */
enum { MOST_POINTS = 40 };

typedef struct scratch {
  double *values, *steps; /* [n_runs], [updates of the longest run] */
  int64_t last_step;
  size_t place; /* of the evaluation that is drawn */
} scratch;

int has_curve(const results *r, const curve *c) {
  for (size_t i = 0; i < r->n_runs; i++) {
    const results_run *run = &r->runs[i];
    if (c->m == METRIC_COUNT && run->n_evals > 0) return 1;
    for (size_t k = 0; c->m < METRIC_COUNT && k < run->n_steps; k++)
      if (isfinite(run->steps[k].metric[c->m])) return 1;
  }
  return 0;
}

int has_course(const results *r, const curve *c) {
  if (c->m == METRIC_COUNT) return has_curve(r, c);
  for (size_t i = 0; i < r->n_runs; i++) {
    size_t updates = 0;
    for (size_t k = 0; k < r->runs[i].n_steps; k++)
      updates += (size_t)!isnan(r->runs[i].steps[k].metric[c->m]); /* a logarithm of 0 is a value */
    if (updates > 1) return 1;
  }
  return 0;
}

/* Looks at `place` first, where runs of one recipe have the same update. */
static double eval_at(const results_run *run, int64_t step, size_t place) {
  if (place < run->n_evals && run->evals[place].step == step) return run->evals[place].eval_score;
  for (size_t i = 0; i < run->n_evals; i++)
    if (run->evals[i].step == step) return run->evals[i].eval_score;
  return NAN;
}

/* The mean of the updates from < step <= to at which runs of the cell have the metric, so that a
 * value of a sparse log stands where it was logged; NaN: at none. */
static double mean_step(const results *r, const results_cell *c, metric m, int64_t from,
                        int64_t to) {
  double sum = 0, n = 0;
  for (size_t k = 0; k < c->n; k++) {
    const results_run *run = &r->runs[c->first + k];
    for (size_t i = 0; i < run->n_steps && run->status != RUN_FAILED; i++)
      if (run->steps[i].step > from && run->steps[i].step <= to && !isnan(run->steps[i].metric[m]))
        sum += (double)run->steps[i].step, n++;
  }
  return sum / n;
}

/* One point: the IQM over the cell's runs of their value at an evaluation (from == to), or over the
 * updates from < step <= to. */
static gl_status write_point(figure_page *p, size_t panel, const results *r, const results_cell *c,
                             const curve *q, int64_t from, int64_t to, scratch *s, gl_error *err) {
  size_t n = 0;
  double x = q->m == METRIC_COUNT ? (double)to : mean_step(r, c, q->m, from, to);
  if (!isfinite(x)) x = 0.5 * (double)(from + 1 + to);
  for (size_t k = 0; k < c->n; k++) {
    const results_run *run = &r->runs[c->first + k];
    if (run->status == RUN_FAILED) continue;
    s->values[n++] = q->m == METRIC_COUNT ? eval_at(run, to, s->place)
                                          : summary_run_metric(run, q->m, from, to, s->steps);
  }
  uint64_t entity = UINT64_C(1) << 63 | (uint64_t)(c - r->cells) << 32 | (uint64_t)to;
  interval v;
  gl_status status =
      iqm_bootstrap(s->values, &n, 1, rng_stream_at(1, RNG_BOOTSTRAP, entity), &v, err);
  if (status != GL_OK) return status;
  v = drawn_interval(q->m, v);
  page_line(p, panel, r->algorithms[c->algorithm]);
  page_number(p, x);
  page_interval(p, panel, v.value, v.low, v.high);
  fputc('\n', p->data.stream);
  page_x(p, x);
  return GL_OK;
}

/* Of more evaluations than a figure's width shows, every so many-th and the last. */
static gl_status write_evaluations(figure_page *p, size_t panel, const results *r,
                                   const results_cell *c, const curve *q,
                                   const results_run *longest, scratch *s, gl_error *err) {
  const size_t n = longest ? longest->n_evals : 0, every = evaluations_apart(n);
  gl_status status = GL_OK;
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    if (i % every != 0 && i + 1 < n) continue;
    s->place = i;
    status = write_point(p, panel, r, c, q, longest->evals[i].step, longest->evals[i].step, s, err);
  }
  if (status == GL_OK && every > 1) status = remark_every(p, every, err);
  return status;
}

static gl_status write_curve(figure_page *p, size_t panel, const results *r, const results_cell *c,
                             const curve *q, scratch *s, gl_error *err) {
  gl_status status = GL_OK;
  const results_run *longest = NULL;
  for (size_t k = 0; k < c->n; k++)
    if (!longest || r->runs[c->first + k].n_evals > longest->n_evals)
      longest = &r->runs[c->first + k];
  if (q->m == METRIC_COUNT) {
    status = write_evaluations(p, panel, r, c, q, longest, s, err);
  } else if (longest) {
    const int64_t n = s->last_step < MOST_POINTS ? s->last_step : MOST_POINTS;
    if (isfinite(mean_step(r, c, q->m, -1, 0))) /* other programs log before their first update */
      status = write_point(p, panel, r, c, q, -1, 0, s, err);
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
  s->steps = calloc(longest, sizeof *s->steps);
  return s->values && s->steps ? GL_OK : gl_fail_memory(err, "a figure");
}

/* The panel of curve i in column k; only the uppermost of a column is headed. */
static gl_status write_panel(figure_page *p, size_t panel, const results *r, const curve *c,
                             size_t group, int headed, scratch *s, gl_error *err) {
  gl_status status = GL_OK;
  figure_panel *to = &p->panels[panel];
  if (headed) snprintf(to->title, sizeof to->title, "%s", r->groups[group].title);
  axis_of(c->m, to->axis);
  to->logarithmic = c->logarithmic || is_logarithm(c->m);
  for (size_t a = 0; a < r->n_algorithms && status == GL_OK; a++)
    status = write_curve(p, panel, r, results_cell_at(r, group, a), c, s, err);
  return status;
}

gl_status write_curves(figure_page *p, const results *r, const curve *curves, size_t n_curves,
                       const size_t *columns, size_t n_columns, size_t wide, gl_error *err) {
  size_t n = 0, panel = 0;
  for (size_t i = 0; i < n_curves; i++) n += (size_t)has_course(r, &curves[i]);
  gl_status status = page_open(p, n * n_columns, "panel\talgorithm\tupdate\tiqm\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = wide;
  p->share = n_columns;
  scratch s = {0};
  status = scratch_init(&s, r, err);
  for (size_t i = 0; i < n_curves && status == GL_OK; i++) {
    if (!has_course(r, &curves[i])) continue;
    for (size_t k = 0; k < n_columns && status == GL_OK; k++, panel++)
      status = write_panel(p, panel, r, &curves[i], columns[k], panel < n_columns, &s, err);
  }
  free(s.values), free(s.steps);
  if (status == GL_OK)
    status = page_set_lines(p, (const char *const *)r->algorithms, r->n_algorithms, err);
  return status == GL_OK ? leave_out_settings(p, r, columns, n_columns, err) : status;
}
