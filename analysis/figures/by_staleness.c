/* The figure `by_staleness` (the paper's Fig. 5): divergence, weight variances and estimation error
 * against the staleness of the batches themselves, in updates, over the updates of all settings;
 * and how many updates each point stands for. A run becomes one number in each bin, a point the
 * interquartile mean over runs. */
#include "analysis/figures/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BINS = 12, QUANTITIES = 4 };

double staleness_of(const step_record *s) {
  const double updates = s->metric[METRIC_STALENESS_UPDATES];
  return isfinite(updates) ? updates : s->metric[METRIC_STALENESS];
}

static double largest_staleness(const results *r) {
  double most = 0;
  for (size_t i = 0; i < r->n_runs; i++)
    for (size_t k = 0; k < r->runs[i].n_steps; k++)
      most = fmax(most, staleness_of(&r->runs[i].steps[k]));
  return most;
}

typedef struct bin {
  double from, to; /* from <= staleness < to */
} bin;

static bin bin_at(double most, size_t i) {
  const double wide = fmax(1, ceil((most + 1) / BINS));
  return (bin){wide * (double)i, wide * (double)(i + 1)};
}

/* The value of a run in a bin: median for logarithms, mean otherwise; and how many updates. */
static double run_value(const results_run *run, metric m, bin b, double *scratch, size_t *n) {
  *n = 0;
  for (size_t i = 0; i < run->n_steps; i++) {
    const double x = staleness_of(&run->steps[i]);
    if (x >= b.from && x < b.to) scratch[(*n)++] = run->steps[i].metric[m];
  }
  if (!is_logarithm(m)) return sample_mean(scratch, *n);
  return sample_quantile(scratch, sample_sort(scratch, *n), 0.5);
}

typedef struct scratch {
  double *values, *steps; /* [n_runs], [updates of the longest run] */
  double most;
} scratch;

/* One point: the IQM over the runs of an algorithm, or (m == METRIC_COUNT) the count. */
static gl_status write_point(figure_page *p, size_t panel, const results *r, size_t a, metric m,
                             size_t i, scratch *s, gl_error *err) {
  const bin b = bin_at(s->most, i);
  size_t n = 0, updates = 0, in_run = 0;
  for (size_t k = 0; k < r->n_runs; k++) {
    const results_run *run = &r->runs[k];
    if (run->algorithm != a || run->status == RUN_FAILED) continue;
    const double v = run_value(run, m < METRIC_COUNT ? m : METRIC_STALENESS, b, s->steps, &in_run);
    if (in_run > 0) s->values[n++] = v;
    updates += in_run;
  }
  if (updates == 0) return GL_OK;
  interval v = {(double)updates, NAN, NAN};
  const uint64_t entity = UINT64_C(5) << 60 | (uint64_t)(panel * r->n_algorithms + a) << 32 | i;
  gl_status status = GL_OK;
  if (m < METRIC_COUNT) {
    status = iqm_bootstrap(s->values, &n, 1, rng_stream_at(1, RNG_BOOTSTRAP, entity), &v, err);
    v = drawn_interval(m, v);
  }
  const double x = 0.5 * (b.from + b.to - 1);
  page_line(p, panel, r->algorithms[a]);
  page_number(p, x);
  page_interval(p, panel, v.value, v.low, v.high);
  fprintf(p->data.stream, "\t%zu\n", updates);
  page_x(p, x);
  return status;
}

static gl_status write_panels(figure_page *p, const results *r, const metric *of, size_t n,
                              scratch *s, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t panel = 0; panel < n; panel++) {
    figure_panel *to = &p->panels[panel];
    if (of[panel] == METRIC_COUNT)
      snprintf(to->axis, sizeof to->axis, "updates in the bin");
    else
      axis_of(of[panel], to->axis);
    to->logarithmic = of[panel] == METRIC_COUNT || is_logarithm(of[panel]);
    for (size_t a = 0; a < r->n_algorithms && status == GL_OK; a++, page_block_end(p))
      for (size_t i = 0; i < BINS && status == GL_OK; i++)
        status = write_point(p, panel, r, a, of[panel], i, s, err);
  }
  return status;
}

gl_status figure_by_staleness(const void *data, figure_page *p, gl_error *err) {
  const summary *sum = ((const figure_data *)data)->s;
  const results *r = sum->from;
  const metric wanted[QUANTITIES] = {sum->kl, METRIC_ESTIMATION_ERROR, METRIC_LOG_IW_VARIANCE_PQ,
                                     METRIC_LOG_IW_VARIANCE_GEPO};
  metric of[QUANTITIES + 1];
  size_t n = 0;
  for (size_t i = 0; i < QUANTITIES; i++)
    if (has_curve(r, &(curve){.m = wanted[i]})) of[n++] = wanted[i];
  of[n++] = METRIC_COUNT;
  gl_status status = page_open(p, n, "panel\talgorithm\tstaleness\tiqm\tlow\thigh\tupdates", err);
  if (status != GL_OK) return status;
  size_t longest = 1;
  for (size_t i = 0; i < r->n_runs; i++)
    if (r->runs[i].n_steps > longest) longest = r->runs[i].n_steps;
  scratch s = {calloc(r->n_runs + 1, sizeof *s.values), calloc(longest, sizeof *s.steps),
               largest_staleness(r)};
  p->wide = page_columns(p, 3);
  p->all_marks = 1;
  snprintf(p->x_axis, sizeof p->x_axis, "staleness [updates]");
  status = s.values && s.steps ? GL_OK : gl_fail_memory(err, "a figure");
  if (status == GL_OK) status = write_panels(p, r, of, n, &s, err);
  free(s.values), free(s.steps);
  return status == GL_OK
             ? page_set_lines(p, (const char *const *)r->algorithms, r->n_algorithms, err)
             : status;
}
