/* Figures `relations` and `correlations` (the paper's Fig. 7): relations between divergence, weight
 * variance and estimation error over runs. They show points with a least-squares line, and
 * Pearson's and Spearman's correlations for each algorithm and over all. Variances, and divergences
 * and errors that are all positive, enter as logarithms. */
#include "analysis/figures/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAIRS = 3, QUANTITIES = 3 };
static const size_t pairs[PAIRS][2] = {{0, 2}, {0, 1}, {2, 1}};

/* One number per run and quantity, as plotted. */
typedef struct run_table {
  const results *r;
  metric of[QUANTITIES];
  double *value[QUANTITIES]; /* [n_runs] */
  double *x, *y; /* [n_runs] scratch: logarithms of a pair of quantities for one algorithm */
} run_table;

/* Memory comes from the page's arena. */
static gl_status run_table_init(run_table *t, figure_page *p, const summary *s, gl_error *err) {
  const results *r = s->from;
  size_t longest = 0;
  *t = (run_table){.r = r, .of = {s->kl, METRIC_ESTIMATION_ERROR, METRIC_LOG_IW_VARIANCE_PQ}};
  for (size_t i = 0; i < r->n_runs; i++)
    if (r->runs[i].n_steps > longest) longest = r->runs[i].n_steps;
  double *scratch = ARENA_ARRAY(&p->memory, double, longest);
  t->x = ARENA_ARRAY(&p->memory, double, r->n_runs);
  t->y = ARENA_ARRAY(&p->memory, double, r->n_runs);
  for (size_t q = 0; q < QUANTITIES; q++) t->value[q] = ARENA_ARRAY(&p->memory, double, r->n_runs);
  gl_status status = arena_check(&p->memory, "a figure", err);
  for (size_t q = 0; q < QUANTITIES && status == GL_OK; q++)
    for (size_t i = 0; i < r->n_runs; i++) {
      const results_run *run = &r->runs[i];
      const double stored = summary_run_metric(run, t->of[q], INT64_MIN, INT64_MAX, scratch);
      const double v = run->status == RUN_FAILED ? NAN : drawn_value(t->of[q], stored);
      t->value[q][i] = v > 0 && isfinite(v) ? v : NAN;
    }
  return status;
}

/* Writes the logarithms of a pair for the runs of an algorithm (r->n_algorithms: all). Returns how
 * many. */
static size_t logarithms(run_table *t, size_t pair, size_t algorithm) {
  size_t n = 0;
  for (size_t i = 0; i < t->r->n_runs; i++) {
    if (algorithm < t->r->n_algorithms && t->r->runs[i].algorithm != algorithm) continue;
    const double x = log(t->value[pairs[pair][0]][i]), y = log(t->value[pairs[pair][1]][i]);
    if (isfinite(x) && isfinite(y)) t->x[n] = x, t->y[n++] = y;
  }
  return n;
}

static gl_status correlate_pair(run_table *t, size_t pair, size_t algorithm, int ranks,
                                correlation *out, gl_error *err) {
  const size_t n = logarithms(t, pair, algorithm);
  const uint64_t entity = UINT64_C(6) << 60 | algorithm << 8 | pair << 1 | (uint64_t)ranks;
  const rng_stream stream = rng_stream_at(1, RNG_BOOTSTRAP, entity);
  return ranks ? spearman(t->x, t->y, n, stream, out, err)
               : pearson(t->x, t->y, n, stream, out, err);
}

/* --- points --- */

static void write_points(figure_page *p, const run_table *t, size_t pair, size_t a) {
  for (size_t i = 0; i < t->r->n_runs; i++) {
    const double x = t->value[pairs[pair][0]][i], y = t->value[pairs[pair][1]][i];
    if (t->r->runs[i].algorithm != a || !isfinite(x) || !isfinite(y)) continue;
    page_point(p, pair, t->r->algorithms[a], x, y, NAN, NAN);
  }
  page_block_end(p);
}

/* Writes the least-squares line of the logarithms as two points. */
static void write_fit(figure_page *p, run_table *t, size_t pair) {
  const size_t n = logarithms(t, pair, t->r->n_algorithms);
  double mx = 0, my = 0, xx = 0, xy = 0, low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < n; i++) mx += t->x[i] / (double)n, my += t->y[i] / (double)n;
  for (size_t i = 0; i < n; i++) {
    xx += (t->x[i] - mx) * (t->x[i] - mx), xy += (t->x[i] - mx) * (t->y[i] - my);
    low = fmin(low, t->x[i]), high = fmax(high, t->x[i]);
  }
  for (int end = 0; end < 2; end++) {
    const double x = end ? high : low;
    page_line(p, pair, "fit");
    page_number(p, xx > 0 ? exp(x) : NAN),
        page_number(p, xx > 0 ? exp(my + xy / xx * (x - mx)) : NAN);
    fputc('\n', p->data.stream);
  }
  page_block_end(p);
}

static gl_status note_correlations(figure_panel *to, run_table *t, size_t pair, gl_error *err) {
  correlation r, rho;
  gl_status status = correlate_pair(t, pair, t->r->n_algorithms, 0, &r, err);
  if (status == GL_OK) status = correlate_pair(t, pair, t->r->n_algorithms, 1, &rho, err);
  if (status != GL_OK) return status;
  if (r.why || rho.why)
    snprintf(to->title, sizeof to->title, "%s", r.why ? r.why : rho.why);
  else
    snprintf(to->title, sizeof to->title, "r %.2f (%.2f to %.2f), ρ %.2f (%.2f to %.2f)",
             r.fisher.value, r.fisher.low, r.fisher.high, rho.fisher.value, rho.fisher.low,
             rho.fisher.high);
  return GL_OK;
}

static gl_status write_relations(figure_page *p, run_table *t, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t pair = 0; pair < PAIRS && status == GL_OK; pair++) {
    figure_panel *to = &p->panels[pair];
    axis_of(t->of[pairs[pair][0]], to->x_axis);
    axis_of(t->of[pairs[pair][1]], to->axis);
    to->logarithmic = to->x_logarithmic = 1;
    status = note_correlations(to, t, pair, err);
    for (size_t a = 0; a < t->r->n_algorithms; a++) write_points(p, t, pair, a);
  }
  for (size_t pair = 0; pair < PAIRS && status == GL_OK; pair++) write_fit(p, t, pair);
  if (status == GL_OK) status = page_set_lines(p, t->r->algorithms, t->r->n_algorithms, err);
  for (size_t a = 0; a < p->n_lines; a++) p->lines[a].sample = SAMPLE_MARK;
  return status;
}

gl_status figure_relations(const void *data, figure_page *p, gl_error *err) {
  run_table t;
  gl_status status = run_table_init(&t, p, ((const figure_data *)data)->s, err);
  if (status != GL_OK) return status;
  status =
      page_open(p, PAIRS, "panel\talgorithm\tx\ty\t\t(a line for each run; then the fits)", err);
  if (status == GL_OK) {
    p->wide = page_columns(p, 3);
    p->tall = 3.6;
    status = write_relations(p, &t, err);
  }
  if (status == GL_OK)
    status = page_remark(p, err,
                         "A mark is a run; r is Pearson's, ρ Spearman's, of logarithms over "
                         "all runs, with 95 %% intervals; the line is least squares");
  return status;
}

/* --- correlations of each algorithm --- */

static const char *const pooled = "all together";

static gl_status write_correlations(figure_page *p, run_table *t, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t panel = 0; panel < 2 * PAIRS && status == GL_OK; panel++) {
    figure_panel *to = &p->panels[panel];
    char x[METRIC_AXIS_SIZE], y[METRIC_AXIS_SIZE];
    axis_of(t->of[pairs[panel % PAIRS][0]], x), axis_of(t->of[pairs[panel % PAIRS][1]], y);
    if (panel < PAIRS) snprintf(to->title, sizeof to->title, "%s, %s", x, y);
    snprintf(to->axis, sizeof to->axis, panel < PAIRS ? "Pearson's r" : "Spearman's ρ");
    for (size_t a = 0; a <= t->r->n_algorithms && status == GL_OK; a++) {
      correlation c;
      status = correlate_pair(t, panel % PAIRS, a, panel >= PAIRS, &c, err);
      page_line(p, panel, a < t->r->n_algorithms ? t->r->algorithms[a] : pooled);
      fprintf(p->data.stream, "\t%zu", a + 1);
      page_interval(p, panel, c.fisher.value, c.fisher.low, c.fisher.high);
      fprintf(p->data.stream, "\t%zu\n", c.n);
      page_block_end(p);
    }
    if (panel_has_values(to)) to->low = fmin(to->low, -0.05), to->high = 1, to->kept = 1;
  }
  return status;
}

gl_status figure_correlations(const void *data, figure_page *p, gl_error *err) {
  run_table t;
  gl_status status = run_table_init(&t, p, ((const figure_data *)data)->s, err);
  if (status != GL_OK) return status;
  const results *r = t.r;
  const char **names = ARENA_ARRAY(&p->memory, const char *, r->n_algorithms + 1);
  status = names ? page_open(p, 2 * PAIRS, "panel\talgorithm\tplace\tvalue\tlow\thigh\truns", err)
                 : gl_fail_memory(err, "a figure");
  if (status == GL_OK) {
    for (size_t a = 0; a < r->n_algorithms; a++) names[a] = r->algorithms[a];
    names[r->n_algorithms] = pooled;
    p->wide = p->share = PAIRS;
    p->named_rows = 1;
    status = write_correlations(p, &t, err);
  }
  if (status == GL_OK) status = page_set_lines(p, names, r->n_algorithms + 1, err);
  if (status == GL_OK)
    status =
        page_remark(p, err, "Of logarithms, one number per run; 95 %% intervals by Fisher's z");
  return status;
}
