/* The figure `gap` (the paper's Fig. 1): the evaluation score at the smallest and at the largest
 * delay, against updates and against simulated hours, with best and last marked and the gap between
 * them drawn. */
#include "analysis/figures/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 2, MOST_COLUMNS = 2 };

/* Where a curve is best and where it ends. */
typedef struct ends {
  double x_best, best, x_last, last;
} ends;

/* The run's evaluation at that update, which in runs of one recipe has the same place; NULL: none.
 */
static const eval_record *evaluation_at(const results_run *run, int64_t step, size_t place) {
  if (place < run->n_evals && run->evals[place].step == step) return &run->evals[place];
  for (size_t i = 0; i < run->n_evals; i++)
    if (run->evals[i].step == step) return &run->evals[i];
  return NULL;
}

/* The IQM of a cell's evaluations at one update, and their mean time in hours. */
static gl_status evaluate(const results *r, const results_cell *c, int64_t step, size_t place,
                          double *values, interval *v, double *hours, gl_error *err) {
  size_t n = 0;
  *hours = 0;
  for (size_t k = 0; k < c->n; k++) {
    const results_run *run = &r->runs[c->first + k];
    const eval_record *at = run->status == RUN_FAILED ? NULL : evaluation_at(run, step, place);
    if (!at) continue;
    values[n++] = at->eval_score;
    *hours += at->time_s / 3600;
  }
  *hours = n ? *hours / (double)n : NAN;
  const uint64_t entity = UINT64_C(3) << 62 | (uint64_t)(c - r->cells) << 32 | (uint64_t)step;
  return iqm_bootstrap(values, &n, 1, rng_stream_at(1, RNG_BOOTSTRAP, entity), v, err);
}

static void write_point(figure_page *p, size_t panel, const results *r, const results_cell *c,
                        double x, interval v) {
  page_line(p, panel, r->algorithms[c->algorithm]);
  page_number(p, x);
  page_interval(p, panel, v.value, v.low, v.high);
  fputc('\n', p->data.stream);
  page_panel_x(p, panel, x);
}

static gl_status write_line(figure_page *p, size_t panel, const results *r, const results_cell *c,
                            int in_hours, ends *e, double *values, gl_error *err) {
  const results_run *longest = longest_evaluated(r, c);
  const size_t every = evaluations_apart(longest ? longest->n_evals : 0);
  gl_status status = every > 1 ? remark_every(p, every, err) : GL_OK;
  *e = (ends){NAN, NAN, NAN, NAN};
  for (size_t i = 0; longest && i < longest->n_evals && status == GL_OK; i++) {
    interval v;
    double x;
    status = evaluate(r, c, longest->evals[i].step, i, values, &v, &x, err);
    if (!in_hours) x = (double)longest->evals[i].step;
    if (!isfinite(x)) continue; /* the time is not known */
    if (i % every == 0 || i + 1 == longest->n_evals) write_point(p, panel, r, c, x, v);
    if (!isfinite(v.value)) continue;
    const int better = r->lower_is_better ? v.value < e->best : v.value > e->best;
    if (isnan(e->best) || better) e->x_best = x, e->best = v.value;
    e->x_last = x, e->last = v.value;
  }
  page_block_end(p);
  return status;
}

/* Behind the curves: a block for each, in the same order, of one line. */
static void write_ends(figure_page *p, const results *r, const ends *e) {
  for (size_t i = 0; i < p->n_panels * r->n_algorithms; i++) {
    page_line(p, i / r->n_algorithms, r->algorithms[i % r->n_algorithms]);
    page_number(p, e[i].x_best), page_number(p, e[i].best);
    page_number(p, e[i].x_last), page_number(p, e[i].last);
    fputc('\n', p->data.stream);
    page_block_end(p);
  }
}

static gl_status write_page(figure_page *p, const results *r, const size_t *columns, size_t n,
                            gl_error *err) {
  static const char *const x_axes[ROWS] = {"updates", "simulated hours"};
  double *values = calloc(r->n_runs + 1, sizeof *values);
  ends *e = calloc(ROWS * n * r->n_algorithms + 1, sizeof *e);
  gl_status status = values && e ? GL_OK : gl_fail_memory(err, "a figure");
  for (size_t panel = 0; panel < ROWS * n && status == GL_OK; panel++) {
    figure_panel *to = &p->panels[panel];
    snprintf(to->title, sizeof to->title, "%s", r->groups[columns[panel % n]].title);
    snprintf(to->x_axis, sizeof to->x_axis, "%s", x_axes[panel / n]);
    axis_of(METRIC_COUNT, to->axis);
    for (size_t a = 0; a < r->n_algorithms && status == GL_OK; a++)
      status = write_line(p, panel, r, results_cell_at(r, columns[panel % n], a), panel >= n,
                          &e[panel * r->n_algorithms + a], values, err);
  }
  if (status == GL_OK) write_ends(p, r, e);
  free(values), free(e);
  return status;
}

gl_status figure_gap(const void *data, figure_page *p, gl_error *err) {
  const results *r = ((const figure_data *)data)->s->from;
  size_t columns[MOST_COLUMNS], n = 0;
  gl_status status = extreme_groups(r, columns, &n, err);
  if (status == GL_OK) status = page_open(p, ROWS * n, "panel\talgorithm\tx\tiqm\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = p->share = n;
  p->tall = 3.6;
  status = write_page(p, r, columns, n, err);
  if (status == GL_OK)
    status = page_set_lines(p, (const char *const *)r->algorithms, r->n_algorithms, err);
  if (status == GL_OK)
    status =
        page_remark(p, err, "Filled marks: best; rings: last; the bar is the gap between them");
  return status == GL_OK ? leave_out_settings(p, r, columns, n, err) : status;
}
