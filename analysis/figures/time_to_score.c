/* The figure `time_to_score`: simulated hours and updates until an evaluation reaches a score that
 * all settings are measured by. */
#include "analysis/figures/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_COLUMNS = 4, UNITS = 2 };
/* Of the way from the first score to the best of all cells. */
static const double SHARE = 0.75;

/* Of two numbers the better one, or that which is known. */
static double better(const results *r, double a, double b) {
  return r->lower_is_better ? fmin(a, b) : fmax(a, b);
}

static double target_of(const summary *s) {
  const results *r = s->from;
  double best = NAN, first = NAN;
  for (size_t i = 0; i < s->n_cells; i++) best = better(r, best, s->cells[i].best.value);
  for (size_t i = 0; i < r->n_runs; i++)
    if (r->runs[i].n_evals > 0) first = -better(r, -first, -r->runs[i].evals[0].eval_score);
  return first + SHARE * (best - first);
}

/* When the run first reaches the score; infinite if it never does. */
static double reached(const results *r, const results_run *run, double target, int in_hours) {
  for (size_t i = 0; i < run->n_evals; i++)
    if (better(r, run->evals[i].eval_score, target) == run->evals[i].eval_score)
      return in_hours ? run->evals[i].time_s / 3600 : (double)run->evals[i].step;
  return INFINITY;
}

/* The IQM over the *n runs with evaluations; how many never reach the score. */
static gl_status cell_time(const results *r, const results_cell *c, double target, int in_hours,
                           double *times, interval *v, size_t *never, size_t *n, gl_error *err) {
  *never = *n = 0;
  for (size_t k = 0; k < c->n; k++) {
    const results_run *run = &r->runs[c->first + k];
    if (run->status == RUN_FAILED || run->n_evals == 0) continue;
    times[*n] = reached(r, run, target, in_hours);
    *never += isinf(times[(*n)++]) != 0;
  }
  const uint64_t entity = UINT64_C(9) << 60 | (uint64_t)(c - r->cells) << 1 | (uint64_t)in_hours;
  return iqm_bootstrap(times, n, 1, rng_stream_at(1, RNG_BOOTSTRAP, entity), v, err);
}

static gl_status write_panel(figure_page *p, size_t panel, const results *r, size_t group,
                             double target, int in_hours, double *times, size_t *short_of_it,
                             size_t *all, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t a = 0; a < r->n_algorithms && status == GL_OK; a++, page_block_end(p)) {
    const results_cell *c = results_cell_at(r, group, a);
    interval v;
    size_t never, of;
    status = cell_time(r, c, target, in_hours, times, &v, &never, &of, err);
    if (of == 0) continue;
    page_line(p, panel, r->algorithms[a]);
    page_keep_line(p, r->algorithms[a]);
    fprintf(p->data.stream, "\t%zu", a + 1);
    page_interval(p, panel, v.value, v.low, v.high);
    fprintf(p->data.stream, "\t%zu\t%zu\n", never, of);
    if (in_hours) *all += of, *short_of_it += never;
  }
  return status;
}

gl_status figure_time_to_score(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  const results *r = s->from;
  const double target = target_of(s);
  size_t columns[MOST_COLUMNS], n = page_pick(r->n_groups, page_columns(p, MOST_COLUMNS), columns);
  size_t never = 0, runs = 0;
  gl_status status =
      page_open(p, UNITS * n, "panel\talgorithm\tplace\tiqm\tlow\thigh\tnever\truns", err);
  double *times = calloc(r->n_runs + 1, sizeof *times);
  if (status == GL_OK && !times) status = gl_fail_memory(err, "a figure");
  p->wide = p->share = n;
  p->named_rows = 1;
  for (size_t panel = 0; panel < UNITS * n && status == GL_OK; panel++) {
    figure_panel *to = &p->panels[panel];
    snprintf(to->axis, sizeof to->axis, panel < n ? "simulated hours" : "updates");
    if (panel < n) snprintf(to->title, sizeof to->title, "%s", r->groups[columns[panel]].title);
    status =
        write_panel(p, panel, r, columns[panel % n], target, panel < n, times, &never, &runs, err);
  }
  free(times);
  if (status == GL_OK)
    status = page_set_lines(p, (const char *const *)r->algorithms, r->n_algorithms, err);
  if (status == GL_OK)
    status =
        page_remark(p, err,
                    "Until the evaluation score is %.3g: %.0f %% of the way from the first to "
                    "the best of the study. %zu of %zu runs never get there; a mean that meets "
                    "one is not shown. Interquartile means, 95 %% intervals",
                    target, 100 * SHARE, never, runs);
  return status == GL_OK ? leave_out_settings(p, r, columns, n, err) : status;
}
