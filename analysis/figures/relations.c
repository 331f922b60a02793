/* Figures `relations` and `correlations` (the paper's Fig. 7): relations between divergence, weight
 * variance and estimation error over runs. They show points with a least-squares line, and
 * Pearson's and Spearman's correlations for each algorithm and over all. All quantities enter as
 * logarithms; a run with a value that is not positive and finite is left out of that pair. */
#include "analysis/evaluation_sets.h"
#include "analysis/figures/list.h"
#include "core/base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Says what marks, correlations and lines are of. */
static gl_status remark_relations(figure_page *p, run_table *t, gl_error *err) {
  size_t n[PAIRS];
  for (size_t pair = 0; pair < PAIRS; pair++) n[pair] = logarithms(t, pair, t->r->n_algorithms);
  return page_remark(p, err,
                     "A mark is a run, of %zu those with positive values: %zu, %zu and %zu in the "
                     "panels; r is Pearson's, ρ Spearman's, of logarithms over these runs, with "
                     "95 %% intervals; the line is least squares",
                     t->r->n_runs, n[0], n[1], n[2]);
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
  return status == GL_OK ? remark_relations(p, &t, err) : status;
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

/* A row of panels with Pearson's correlations and one with Spearman's, a panel for each of the
 * pairs. */
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

/* --- sensitivity --- */

/* Figure `sensitivity` (the paper's Fig. 8): best and last score against each swept field, a
 * panel each. Numbers have a numeric axis; distributions and names are categories. A point
 * pools the runs of all other settings, each a stratum of its interval. In a one-at-a-time design
 * it only has the runs with the base's other fields. */

enum { ENDS = 2, FEW_AXES = 3, MOST_BESIDE = 2 * ENDS };

/* The distinct values of one axis: numbers in ascending order, others in order of appearance. */
typedef struct values {
  const axis_value **at; /* [n], borrowed */
  size_t n, which;
  int numbers;
} values;

static bool same(const axis_value *a, const axis_value *b) {
  if (isfinite(a->number) && isfinite(b->number)) return a->number == b->number;
  return strcmp(a->text ? a->text : "", b->text ? b->text : "") == 0;
}

static int by_axis_number(const void *a, const void *b) {
  const double x = (*(const axis_value *const *)a)->number,
               y = (*(const axis_value *const *)b)->number;
  return (x > y) - (x < y);
}

/* The values of an axis, stored in at[n_groups]. */
static values values_of_axis(const results *r, size_t which, const axis_value **at) {
  values v = {at, 0, which, 1};
  for (size_t g = 0; g < r->n_groups; g++) {
    const axis_value *here = &r->groups[g].value[which];
    size_t i = 0;
    if (!group_evaluated(r, g)) continue;
    while (i < v.n && !same(v.at[i], here)) i++;
    if (i == v.n) v.at[v.n++] = here;
    v.numbers &= isfinite(here->number) != 0;
  }
  if (v.numbers) qsort(v.at, v.n, sizeof *v.at, by_axis_number);
  return v;
}

bool sweeps_something(const results *r) {
  for (size_t which = 0; which < r->axes.n; which++)
    for (size_t g = 1; g < r->n_groups; g++)
      if (!same(&r->groups[g].value[which], &r->groups[0].value[which])) return true;
  return false;
}

/* Returns true if two settings are equal in all axes except `free_axis`. */
static bool same_but(const results *r, size_t g, size_t h, size_t free_axis) {
  for (size_t which = 0; which < r->axes.n; which++)
    if (which != free_axis && !same(&r->groups[g].value[which], &r->groups[h].value[which]))
      return false;
  return true;
}

static size_t axes_between(const results *r, size_t g, size_t h) {
  size_t n = 0;
  for (size_t which = 0; which < r->axes.n; which++)
    n += !same(&r->groups[g].value[which], &r->groups[h].value[which]);
  return n;
}

/* The base of a one-at-a-time design: every other setting differs from it in one axis. n_groups if
 * the study has another design. */
static size_t base_setting(const results *r) {
  for (size_t base = 0; base < r->n_groups; base++) {
    size_t g = 0;
    while (g < r->n_groups && axes_between(r, base, g) <= 1) g++;
    if (g == r->n_groups) return base;
  }
  return r->n_groups;
}

/* The page, and scratch for the values of a point. */
typedef struct sensitivity_page {
  figure_page *p;
  const results *r;
  double *values; /* [n_runs] */
  size_t *strata; /* [n_groups] */
  size_t base;    /* the result of base_setting() */
} sensitivity_page;

/* Writes the point of an algorithm at value i. */
static gl_status write_sensitivity_point(const sensitivity_page *s, size_t panel, size_t a,
                                         const values *v, size_t i, gl_error *err) {
  const results *r = s->r;
  size_t n = 0, strata = 0;
  for (size_t g = 0; g < r->n_groups; g++) {
    if (!same(&r->groups[g].value[v->which], v->at[i])) continue;
    if (s->base < r->n_groups && !same_but(r, s->base, g, v->which)) continue;
    const results_cell *c = results_cell_at(r, g, a);
    const size_t before = n;
    for (size_t k = 0; k < c->n; k++) {
      const results_run *run = &r->runs[c->first + k];
      const series_ends e = sets_score_ends(run, r->lower_is_better);
      if (run->status != RUN_FAILED) s->values[n++] = panel % ENDS == 0 ? e.best : e.last;
    }
    if (n > before) s->strata[strata++] = n - before;
  }
  if (n == 0) return GL_OK;
  interval at;
  const uint64_t entity = UINT64_C(7) << 60 | (uint64_t)(panel * r->n_algorithms + a) << 32 | i;
  gl_status status = iqm_bootstrap(s->values, s->strata, strata,
                                   rng_stream_at(1, RNG_BOOTSTRAP, entity), &at, err);
  const double x = v->numbers ? v->at[i]->number : (double)i;
  page_point(s->p, panel, r->algorithms[a], x, at.value, at.low, at.high);
  return status;
}

/* Label of a value. "cluster.delay: uniform(1, 9)" would be too long, so distributions get their
 * name, followed by their parameters from the recipe. */
static void mark_text(const axis_value *v, char text[64]) {
  cJSON *value = json_tree_of(v->text);
  const char *dist = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(value, "distribution"));
  if (dist)
    snprintf(text, 64, "%.60s", dist);
  else
    snprintf(text, 64, "%.63s", v->text ? v->text : "default");
  cJSON_Delete(value);
}

/* Writes the ENDS panels of an axis, the place-th of the page: best and last scores against its
 * values. */
static gl_status write_axis(const sensitivity_page *s, size_t place, const values *v,
                            gl_error *err) {
  const results *r = s->r;
  figure_page *p = s->p;
  static const char *const names[ENDS] = {"best", "last"};
  const axis *swept = &r->axes.axis[v->which];
  gl_status status = GL_OK;
  for (size_t end = 0; end < ENDS && status == GL_OK; end++) {
    const size_t panel = place * ENDS + end;
    figure_panel *to = &p->panels[panel];
    axis_of(METRIC_COUNT, to->axis);
    /* The field's name is in the title: below the panel it would be too close to the next row,
     * because rows have different depths. */
    snprintf(to->x_axis, sizeof to->x_axis, " ");
    if (*swept->unit && v->numbers)
      snprintf(to->title, sizeof to->title, "%s: %.100s [%.40s]", names[end], swept->label,
               swept->unit);
    else
      snprintf(to->title, sizeof to->title, "%s: %.100s", names[end], swept->label);
    to->x_logarithmic =
        v->numbers && v->at[0]->number > 0 && v->at[v->n - 1]->number > 30 * v->at[0]->number;
    for (size_t a = 0; a < r->n_algorithms && status == GL_OK; a++, page_block_end(p))
      for (size_t i = 0; i < v->n && status == GL_OK; i++)
        status = write_sensitivity_point(s, panel, a, v, i, err);
    for (size_t i = 0; i < v->n && !v->numbers && status == GL_OK; i++) {
      char text[64];
      mark_text(v->at[i], text);
      status = page_mark(p, panel, (double)i, text, err);
    }
  }
  return status;
}

/* Writes ENDS panels (best, last) for each of the n axes in v; with more than FEW_AXES, two axes
 * may share a row. */
static gl_status write_sensitivity_page(const sensitivity_page *s, const values *v, size_t n,
                                        gl_error *err) {
  figure_page *p = s->p;
  gl_status status = page_open(p, ENDS * n, "panel\talgorithm\tvalue\tiqm\tlow\thigh", err);
  if (status == GL_OK) {
    p->wide = n > FEW_AXES ? page_columns(p, MOST_BESIDE) / ENDS * ENDS : ENDS;
    if (p->wide == 0) p->wide = ENDS;
    p->share = p->wide;
    p->all_marks = 1;
    p->tall = 3.4;
  }
  for (size_t i = 0; i < n && status == GL_OK; i++) status = write_axis(s, i, &v[i], err);
  if (status == GL_OK && n > 1 && s->base < s->r->n_groups)
    status = page_remark(p, err, "One field at a time: the others are those of the base setting");
  if (status == GL_OK) status = remark_not_finite(p, s->r, err);
  return status == GL_OK ? page_set_lines(p, s->r->algorithms, s->r->n_algorithms, err) : status;
}

gl_status figure_sensitivity(const void *data, figure_page *p, gl_error *err) {
  const results *r = ((const figure_data *)data)->s->from;
  arena *m = &p->memory;
  size_t n = 0;
  values *v = ARENA_ARRAY(m, values, r->axes.n);
  const sensitivity_page s = {.p = p,
                              .r = r,
                              .values = ARENA_ARRAY(m, double, r->n_runs),
                              .strata = ARENA_ARRAY(m, size_t, r->n_groups),
                              .base = base_setting(r)};
  for (size_t which = 0; which < r->axes.n; which++) {
    const axis_value **at = ARENA_ARRAY(m, const axis_value *, r->n_groups);
    if (m->failed) break;
    v[n] = values_of_axis(r, which, at);
    n += v[n].n > 1;
  }
  gl_status status = arena_check(m, "a figure", err);
  return status == GL_OK ? write_sensitivity_page(&s, v, n, err) : status;
}
