/* The figures `staleness`: its distribution in schedules and in measurements; `by_staleness`:
 * metrics against staleness; and `heat`: best and last scores against delay. */
#include "analysis/figures/list.h"
#include "analysis/import/read.h"
#include "analysis/plot/draw.h"
#include "analysis/plot/page.h"
#include "core/base/json.h"
#include "core/base/ks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PANELS = 4, MOST_STALENESS = 1 << 20 };

static double total(const uint64_t *count, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (double)count[i];
  return sum;
}

/* Largest value of the series, or -1 if a value is invalid; *wrong receives the first invalid one.
 */
static int64_t largest_drawn_staleness(const series *s, double *wrong) {
  int64_t largest = 0;
  for (size_t i = 0; i < s->n; i++) {
    if (!(s->value[i] >= 0 && s->value[i] < MOST_STALENESS)) {
      *wrong = s->value[i];
      return -1;
    }
    int64_t here = llround(s->value[i]);
    if (here > largest) largest = here;
  }
  return largest;
}

gl_status staleness_measured(staleness_histogram *out, const char *path, const char *run,
                             gl_error *err) {
  static const char *const metrics[] = {"step_diff", "staleness"};
  series_table *w;
  const series *s = NULL;
  double wrong = 0;
  *out = (staleness_histogram){0};
  gl_status status = read_series(&w, path, NULL, err);
  if (status != GL_OK) return status;
  status = series_choose(&s, w, metrics, 2, run, path, err);
  int64_t largest = s ? largest_drawn_staleness(s, &wrong) : 0;
  if (status == GL_OK && s->n == 0)
    status = gl_fail(err, GL_EINPUT, "%s: run %s has no staleness", path, s->run);
  if (status == GL_OK && largest < 0)
    status = gl_fail(err, GL_EINPUT, "%s: staleness %g of run %s is not a number of updates", path,
                     wrong, s->run);
  if (status == GL_OK) {
    *out = (staleness_histogram){strdup(s->run), calloc((size_t)largest + 1, sizeof *out->count),
                                 (size_t)largest + 1};
    if (!out->name || !out->count) status = gl_fail_memory(err, "a histogram");
  }
  for (size_t i = 0; status == GL_OK && i < s->n; i++) out->count[llround(s->value[i])]++;
  series_table_free(w);
  return status;
}

void staleness_histogram_fini(staleness_histogram *h) {
  free(h->name), free(h->count);
  *h = (staleness_histogram){0};
}

/* Writes a block of fractions and extends the panel's range to include them. */
static void write_staleness_fractions(figure_page *p, size_t panel, const char *line,
                                      const uint64_t *count, size_t n) {
  double all = total(count, n);
  for (size_t i = 0; i < n && all > 0; i++) {
    double share = (double)count[i] / all;
    page_line(p, panel, line);
    fprintf(p->data.stream, "\t%zu", i);
    page_number(p, share);
    fprintf(p->data.stream, "\t%llu\n", (unsigned long long)count[i]);
    p->panels[panel].low = 0;
    p->panels[panel].high = fmax(p->panels[panel].high, share);
    if (count[i]) page_x(p, (double)i + 0.5);
  }
  page_block_end(p);
}

static gl_status write_histograms(figure_page *p, const staleness_histogram *h, size_t n,
                                  const staleness_histogram *measured, gl_error *err) {
  char shown[200];
  const char *const lines[] = {"simulated", shown};
  snprintf(shown, sizeof shown, "measured%s%s", measured && *measured->name ? ": " : "",
           measured ? measured->name : "");
  gl_status status = page_open(p, n, "panel\tsource\tstaleness\tshare\tcount", err);
  if (status == GL_OK) status = page_set_lines(p, lines, measured ? 2 : 1, err);
  if (status != GL_OK) return status;
  p->share = n;
  p->lines[0].sample = SAMPLE_BOX;
  if (measured) p->lines[1].sample = SAMPLE_LINE;
  snprintf(p->x_axis, sizeof p->x_axis, "staleness [versions]");
  page_x(p, -0.5);
  for (size_t i = 0; i < n; i++) {
    figure_panel *to = &p->panels[i];
    double distance = NAN;
    if (measured)
      distance = ks_distance((ks_sample){.count = h[i].count, .n = h[i].n},
                             (ks_sample){.count = measured->count, .n = measured->n});
    snprintf(to->title, sizeof to->title, "%s", h[i].name);
    if (isfinite(distance)) snprintf(to->note, sizeof to->note, "KS %.3f", distance);
    snprintf(to->axis, sizeof to->axis, "fraction of batches");
    to->kept = 1;
    write_staleness_fractions(p, i, lines[0], h[i].count, h[i].n);
    if (measured) write_staleness_fractions(p, i, lines[1], measured->count, measured->n);
    to->high *= 1.15; /* space for the note */
  }
  return GL_OK;
}

/* --- of a study --- */

/* Sums the staleness histograms of a group's runs. Returns 0 if memory runs out. */
static int group_staleness(const results *r, size_t group, staleness_histogram *h) {
  *h = (staleness_histogram){.name = strdup(r->groups[group].title)};
  for (size_t i = 0; i < r->n_runs; i++)
    if (r->runs[i].group == group && r->runs[i].n_staleness > h->n) h->n = r->runs[i].n_staleness;
  h->count = calloc(h->n + 1, sizeof *h->count);
  for (size_t i = 0; i < r->n_runs && h->count; i++)
    for (size_t k = 0; r->runs[i].group == group && k < r->runs[i].n_staleness; k++)
      h->count[k] += r->runs[i].staleness[k];
  return h->name && h->count;
}

/* Lists the groups that have a batch. Returns how many. */
static size_t counted_groups(const results *r, size_t *groups) {
  size_t n = 0;
  for (size_t g = 0; g < r->n_groups; g++)
    for (size_t i = 0; i < r->n_runs; i++)
      if (r->runs[i].group == g && total(r->runs[i].staleness, r->runs[i].n_staleness) > 0) {
        groups[n++] = g;
        break;
      }
  return n;
}

gl_status figure_staleness(const void *data, figure_page *p, gl_error *err) {
  const figure_data *d = data;
  const results *r = d->s->from;
  size_t columns[MOST_PANELS], n = 0, *counted = calloc(r->n_groups + 1, sizeof *counted);
  staleness_histogram h[MOST_PANELS] = {{0}};
  gl_status status = counted ? GL_OK : gl_fail_memory(err, "a histogram");
  if (counted) {
    n = page_pick(counted_groups(r, counted), page_columns(p, MOST_PANELS), columns);
    for (size_t i = 0; i < n; i++) columns[i] = counted[columns[i]];
  }
  free(counted);
  for (size_t i = 0; i < n && status == GL_OK; i++)
    if (!group_staleness(r, columns[i], &h[i])) status = gl_fail_memory(err, "a histogram");
  if (status == GL_OK) status = write_histograms(p, h, n, d->measured, err);
  if (status == GL_OK) status = leave_out_settings(p, r, columns, n, err);
  for (size_t i = 0; i < n; i++) staleness_histogram_fini(&h[i]);
  return status;
}

/* --- of schedules without a study --- */

typedef struct schedules {
  const staleness_histogram *panels, *measured;
  size_t n;
} schedules;

static gl_status write_schedules(const void *data, figure_page *p, gl_error *err) {
  const schedules *d = data;
  return write_histograms(p, d->panels, d->n, d->measured, err);
}

gl_status figure_of_staleness(const staleness_histogram *panels, size_t n,
                              const staleness_histogram *measured, const figure_request *q,
                              gl_error *err) {
  const figure line = {"staleness", "staleness distribution", "bars", NEEDS_STALENESS,
                       write_schedules};
  double batches = 0;
  for (size_t i = 0; i < n; i++) batches += total(panels[i].count, panels[i].n);
  return figures_draw_one(&line, batches > 0 ? NULL : "no batch was trained",
                          "no batch was trained: there is no staleness",
                          &(schedules){panels, measured, n}, q, err);
}

/* --- by_staleness --- */
/* Figure `by_staleness` (the paper's Fig. 5): divergence, weight variances and estimation error
 * against the staleness of the trained batches, in updates, over the updates of all settings, with
 * the number of updates per point. Each run gives one value per bin; a point is the interquartile
 * mean over runs. */

enum { BINS = 12, QUANTITIES = 4 };

double staleness_of(const step_record *s) {
  const double updates = s->metric[METRIC_STALENESS_UPDATES];
  return isfinite(updates) ? updates : s->metric[METRIC_STALENESS];
}

static double by_staleness_largest_staleness(const results *r) {
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

/* The value of a run in a bin (median for logarithms, otherwise mean) and the number of updates. */
static double run_value(const results_run *run, metric m, bin b, double *scratch, size_t *n) {
  *n = 0;
  for (size_t i = 0; i < run->n_steps; i++) {
    const double x = staleness_of(&run->steps[i]);
    if (x >= b.from && x < b.to) scratch[(*n)++] = run->steps[i].metric[m];
  }
  if (!is_logarithm(m)) return sample_mean(scratch, *n);
  return sample_quantile(scratch, sample_sort(scratch, *n), 0.5);
}

/* The page, and scratch for the values of a point. */
typedef struct staleness_page {
  figure_page *p;
  const results *r;
  double *values, *steps; /* [n_runs], [updates of the longest run] */
  double most;            /* largest staleness */
} staleness_page;

/* Writes the point of an algorithm in bin i: the IQM over its runs, or for m == METRIC_COUNT the
 * number of updates. */
static gl_status write_bin(const staleness_page *s, size_t panel, size_t a, metric m, size_t i,
                           gl_error *err) {
  const results *r = s->r;
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
  page_line(s->p, panel, r->algorithms[a]);
  page_number(s->p, x);
  page_interval(s->p, panel, v.value, v.low, v.high);
  fprintf(s->p->data.stream, "\t%zu\n", updates);
  page_x(s->p, x);
  return status;
}

static gl_status write_bin_panels(const staleness_page *s, const metric *of, size_t n,
                                  gl_error *err) {
  gl_status status = GL_OK;
  for (size_t panel = 0; panel < n; panel++) {
    figure_panel *to = &s->p->panels[panel];
    if (of[panel] == METRIC_COUNT)
      snprintf(to->axis, sizeof to->axis, "updates in the bin");
    else
      axis_of(of[panel], to->axis);
    to->logarithmic = of[panel] == METRIC_COUNT || is_logarithm(of[panel]);
    for (size_t a = 0; a < s->r->n_algorithms && status == GL_OK; a++, page_block_end(s->p))
      for (size_t i = 0; i < BINS && status == GL_OK; i++)
        status = write_bin(s, panel, a, of[panel], i, err);
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
    if (has_values(r, &(curve){.m = wanted[i]})) of[n++] = wanted[i];
  of[n++] = METRIC_COUNT;
  gl_status status = page_open(p, n, "panel\talgorithm\tstaleness\tiqm\tlow\thigh\tupdates", err);
  if (status != GL_OK) return status;
  size_t longest = 1;
  for (size_t i = 0; i < r->n_runs; i++)
    if (r->runs[i].n_steps > longest) longest = r->runs[i].n_steps;
  const staleness_page s = {p, r, ARENA_ARRAY(&p->memory, double, r->n_runs),
                            ARENA_ARRAY(&p->memory, double, longest),
                            by_staleness_largest_staleness(r)};
  p->wide = page_columns(p, 3);
  p->all_marks = 1;
  snprintf(p->x_axis, sizeof p->x_axis, "staleness [updates]");
  status = arena_check(&p->memory, "a figure", err);
  if (status == GL_OK) status = write_bin_panels(&s, of, n, err);
  return status == GL_OK ? page_set_lines(p, r->algorithms, r->n_algorithms, err) : status;
}

/* --- heat --- */
/* Figure `heat`: best and last score of every algorithm at every delay, as colours. */

enum { ENDS = 2 };

/* Edges of the cells: delays at x = 0, 1, ...; algorithms from top to bottom at y = -1, -2, ... */
typedef struct heat {
  double *x, *y, *value;
} heat;

static heat heat_edges(arena *m, size_t n_x, size_t n_y) {
  const heat h = {ARENA_ARRAY(m, double, n_x + 1), ARENA_ARRAY(m, double, n_y + 1),
                  ARENA_GRID(m, double, n_x, n_y)};
  for (size_t i = 0; !m->failed && i <= n_x; i++) h.x[i] = (double)i - 0.5;
  for (size_t i = 0; !m->failed && i <= n_y; i++) h.y[i] = (double)i - (double)n_y - 0.5;
  return h;
}

static void fill_heat(heat *h, const summary *s, const x_grid *grid, size_t slice, size_t end,
                      double *low, double *high) {
  const size_t n = s->from->n_algorithms;
  for (size_t a = 0; a < n; a++)
    for (size_t i = 0; i < grid->n_x; i++) {
      const size_t group = grid_group(grid, s->from, slice, i);
      const cell_summary *c = group < s->from->n_groups ? cell_of(s, group, a) : NULL;
      const double v = !c ? NAN : end == 0 ? c->best.value : c->last.value;
      h->value[(n - 1 - a) * grid->n_x + i] = v;
      if (isfinite(v)) *low = fmin(*low, v), *high = fmax(*high, v);
    }
}

static gl_status write_staleness_maps(figure_page *p, const summary *s, const x_grid *grid, heat *h,
                                      gl_error *err) {
  static const char *const names[ENDS] = {"best", "last"};
  const figure_map m = {grid->n_x, s->from->n_algorithms, h->x, h->y, h->value};
  double low = INFINITY, high = -INFINITY;
  gl_status status = GL_OK;
  for (size_t panel = 0; panel < p->n_panels; panel++) {
    figure_panel *to = &p->panels[panel];
    const char *heading = grid->headings[panel / ENDS];
    snprintf(to->title, sizeof to->title, *heading ? "%s, %.200s" : "%s%.0s", names[panel % ENDS],
             heading);
    snprintf(to->axis, sizeof to->axis, "%.150s", grid->name);
    fill_heat(h, s, grid, panel / ENDS, panel % ENDS, &low, &high);
    page_map(p, panel, &m);
    to->low = h->x[0], to->high = h->x[grid->n_x]; /* rows have names, so this is the x axis */
  }
  for (size_t panel = 0; panel < p->n_panels; panel++) page_contour(p, panel, &m, NAN);
  for (size_t i = 0; i < grid->n_x && status == GL_OK; i++) {
    char text[NUMBER_TEXT_SIZE];
    status = page_mark(p, PAGE_MARK, (double)i, number_text(grid->x[i], text), err);
  }
  page_bar(p, "evaluation score", low <= high ? low : 0, low <= high ? high : 1, 0);
  return status;
}

gl_status figure_heat(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  const results *r = s->from;
  x_grid grid;
  gl_status status = grid_init(&grid, r, X_DELAY, err);
  if (status != GL_OK) return status;
  const size_t slices = grid.n_slices < 2 ? grid.n_slices : 2;
  status = page_open(p, ENDS * slices, "panel\tcell\tx from\tto\ty from\tto\tiqm", err);
  p->wide = p->share = ENDS;
  p->named_rows = p->tight = 1;
  heat h = heat_edges(&grid.memory, grid.n_x, r->n_algorithms);
  if (status == GL_OK) status = arena_check(&grid.memory, "a map", err);
  if (status == GL_OK) status = write_staleness_maps(p, s, &grid, &h, err);
  if (status == GL_OK) status = page_set_lines(p, r->algorithms, r->n_algorithms, err);
  size_t shown[2] = {0, 1};
  if (status == GL_OK) status = grid_leave_out(p, &grid, r, shown, slices, err);
  grid_fini(&grid);
  return status;
}
