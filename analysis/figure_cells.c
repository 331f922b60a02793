/* Figures with one value per cell: divergence against delay (the paper's Fig. 5), throughput, best
 * and last. */
#include "analysis/figure_page.h"

#include "core/base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 4, MOST_SLICES = 4, MOST_MARKS = 12 };

/* --- a swept quantity as x ----------------------------------------------------------------------
 */

typedef enum x_kind { X_DELAY, X_LOSS } x_kind;
static const char *const x_path[] = {"cluster.max_delay", "cluster.down.loss"},
                         *const x_otherwise[] = {"cluster.delay", "cluster.up.loss"},
                         *const x_name[] = {"delay [s]", "packet loss"};

/* The distinct values of one swept quantity, ascending, and the settings of all the others: group g
 * stands at place[g] of slice[g], or nowhere (place n_x) if its value is not a number. */
typedef struct x_grid {
  double *x;
  size_t n_x;
  size_t *place, *slice;
  char **headings; /* of slices */
  size_t n_slices;
} x_grid;

static double group_x(const results_group *g, x_kind kind) {
  return kind == X_DELAY ? g->delay : g->loss;
}

static void grid_fini(x_grid *grid) {
  for (size_t i = 0; i < grid->n_slices; i++) free(grid->headings[i]);
  free(grid->x), free(grid->place), free(grid->slice), free(grid->headings);
}

static gl_status grid_init(x_grid *grid, const results *r, x_kind kind, gl_error *err) {
  size_t n = r->n_groups + 1, without = results_axis(r, x_path[kind]);
  if (without == r->axes.n) without = results_axis(r, x_otherwise[kind]);
  *grid =
      (x_grid){calloc(n, sizeof(double)), 0, calloc(n, sizeof(size_t)), calloc(n, sizeof(size_t)),
               calloc(n, sizeof(char *)), 0};
  int ok = grid->x && grid->place && grid->slice && grid->headings;
  for (size_t g = 0; g < r->n_groups && ok; g++)
    if (isfinite(group_x(&r->groups[g], kind))) grid->x[grid->n_x++] = group_x(&r->groups[g], kind);
  if (ok) grid->n_x = sample_sort(grid->x, grid->n_x);
  size_t distinct = 0;
  for (size_t i = 0; i < grid->n_x && ok; i++)
    if (i == 0 || grid->x[i] > grid->x[distinct - 1]) grid->x[distinct++] = grid->x[i];
  grid->n_x = distinct;
  for (size_t g = 0; g < r->n_groups && ok; g++) {
    double x = group_x(&r->groups[g], kind);
    while (grid->place[g] < grid->n_x && grid->x[grid->place[g]] != x) grid->place[g]++;
    char *heading = results_heading(r, g, without);
    if (!(ok = heading != NULL)) break;
    size_t *s = &grid->slice[g];
    while (*s < grid->n_slices && strcmp(grid->headings[*s], heading) != 0) ++*s;
    if (*s == grid->n_slices)
      grid->headings[grid->n_slices++] = heading;
    else
      free(heading);
  }
  if (ok) return GL_OK;
  grid_fini(grid);
  return gl_fail_memory(err, "a figure");
}

/* The group at that place of that slice, or n_groups. */
static size_t grid_group(const x_grid *grid, const results *r, size_t slice, size_t place) {
  for (size_t g = 0; g < r->n_groups; g++)
    if (grid->slice[g] == slice && grid->place[g] == place) return g;
  return r->n_groups;
}

/* The x axis of a page: places 0, 1, … with the values as marks, spread evenly if they are many. */
static void set_x(figure_page *p, const x_grid *grid, x_kind kind) {
  char text[NUMBER_TEXT_SIZE];
  size_t used = 0, marked[MOST_MARKS], n = page_pick(grid->n_x, MOST_MARKS, marked);
  p->x_axis = x_name[kind];
  page_x(p, 0), page_x(p, (double)(grid->n_x - 1));
  for (size_t i = 0; i < n; i++)
    used += (size_t)snprintf(p->x_marks + used, sizeof p->x_marks - used, "%s'%s' %zu",
                             i ? ", " : "", number_text(grid->x[marked[i]], text), marked[i]);
}

static void write_place(figure_page *p, size_t panel, const char *line, size_t place, double x,
                        interval v) {
  page_line(p, panel, line);
  fprintf(p->data.stream, "\t%zu", place);
  page_interval(p, panel, v);
  page_number(p, x);
  fputc('\n', p->data.stream);
}

/* --- divergence ---------------------------------------------------------------------------------
 */

typedef struct quantity {
  cell_metric m;
  const char *axis;
  double scale;
} quantity;

static const quantity quantities[] = {
    {CELL_KL, NULL, 1}, /* the divergence that the study knows */
    {CELL_ESTIMATION_ERROR, "estimation_error", 1},
    {CELL_LOG_IW_VARIANCE_PQ, "log₁₀ iw_variance_pq", M_LOG10E},
    {CELL_LOG_IW_VARIANCE_GEPO, "log₁₀ iw_variance_gepo", M_LOG10E}};
enum { MOST_QUANTITIES = sizeof quantities / sizeof *quantities };

static size_t kept_quantities(const summary *s, const quantity **kept) {
  size_t n = 0;
  for (size_t i = 0; i < MOST_QUANTITIES; i++)
    for (size_t c = 0; c < s->n_cells; c++)
      if (isfinite(s->cells[c].metric[quantities[i].m].value)) {
        kept[n++] = &quantities[i];
        break;
      }
  return n;
}

static const cell_summary *cell_of(const summary *s, size_t group, size_t algorithm) {
  for (size_t i = 0; i < s->n_cells; i++)
    if (s->cells[i].cell->group == group && s->cells[i].cell->algorithm == algorithm)
      return &s->cells[i];
  return NULL;
}

/* A logarithmic axis for values that are all positive and span more than two decades. */
static int spans_decades(const summary *s, const quantity *q) {
  double least = INFINITY, largest = 0;
  for (size_t c = 0; c < s->n_cells; c++) {
    double v = q->scale * s->cells[c].metric[q->m].value;
    if (!isfinite(v)) continue;
    least = fmin(least, v);
    largest = fmax(largest, v);
  }
  return least > 0 && largest > 100 * least;
}

static void write_divergence_line(figure_page *p, size_t panel, const summary *s,
                                  const x_grid *grid, size_t slice, size_t algorithm,
                                  const quantity *q) {
  for (size_t i = 0; i < grid->n_x; i++) {
    size_t group = grid_group(grid, s->from, slice, i);
    const cell_summary *c = group < s->from->n_groups ? cell_of(s, group, algorithm) : NULL;
    if (!c) continue;
    interval v = c->metric[q->m];
    v = (interval){q->scale * v.value, q->scale * v.low, q->scale * v.high};
    write_place(p, panel, s->from->algorithms[algorithm], i, grid->x[i], v);
  }
  page_block_end(p);
}

static gl_status write_divergence_page(const summary *s, const figure_request *q,
                                       const x_grid *grid, const quantity *const *kept, size_t n,
                                       gl_error *err) {
  figure_page p;
  size_t slices[MOST_SLICES], n_slices = page_pick(grid->n_slices, MOST_SLICES, slices);
  gl_status status = page_begin(&p, q, "divergence", "cells", n * n_slices,
                                "panel\talgorithm\tplace\tiqm\tlow\thigh\tdelay", err);
  if (status != GL_OK) return status;
  p.wide = n == 1 ? 1 : 2;
  p.lines = (const char *const *)s->from->algorithms;
  p.n_lines = s->from->n_algorithms;
  set_x(&p, grid, X_DELAY);
  for (size_t panel = 0; panel < p.n_panels; panel++) {
    size_t slice = slices[panel / n];
    const quantity *of = kept[panel % n];
    if (of->axis != NULL)
      snprintf(p.panels[panel].axis, sizeof p.panels[panel].axis, "%s", of->axis);
    else
      snprintf(p.panels[panel].axis, sizeof p.panels[panel].axis, "%s [nat]",
               metric_about(s->kl)->name);
    snprintf(p.panels[panel].title, sizeof p.panels[panel].title, "%s", grid->headings[slice]);
    p.panels[panel].logarithmic = spans_decades(s, of);
    for (size_t a = 0; a < p.n_lines; a++) write_divergence_line(&p, panel, s, grid, slice, a, of);
  }
  return page_end(&p, GL_OK, err);
}

gl_status write_divergence(const summary *s, const figure_request *q, const char **why,
                           gl_error *err) {
  const quantity *kept[MOST_QUANTITIES];
  size_t n = kept_quantities(s, kept);
  x_grid grid;
  gl_status status = grid_init(&grid, s->from, X_DELAY, err);
  if (status != GL_OK) return status;
  if (grid.n_x < 2)
    *why = "the study does not sweep a delay";
  else if (n == 0)
    *why = "the study has no KL, importance weights or estimation error";
  else
    status = write_divergence_page(s, q, &grid, kept, n, err);
  grid_fini(&grid);
  return status;
}

/* --- throughput ---------------------------------------------------------------------------------
 */

enum { CLOCK_COUNT = 4 };
static const char *const clock_axis[CLOCK_COUNT] = {"samples_per_s", "learner_utilisation",
                                                    "sampler_utilisation", "staleness [updates]"};

static double clock_of(const summary *s, size_t group, size_t which) {
  group_clock c;
  summary_group_clock(s, group, &c);
  const double of[CLOCK_COUNT] = {c.samples_per_s, c.learner_utilisation, c.sampler_utilisation,
                                  c.staleness};
  return of[which];
}

static gl_status write_clock_page(const summary *s, const figure_request *q, const char *name,
                                  x_kind kind, const x_grid *grid, gl_error *err) {
  figure_page p;
  gl_status status = page_begin(&p, q, name, "cells", CLOCK_COUNT,
                                kind == X_DELAY ? "panel\tsetting\tplace\tmean\t\t\tdelay"
                                                : "panel\tsetting\tplace\tmean\t\t\tloss",
                                err);
  if (status != GL_OK) return status;
  p.wide = 2;
  p.lines = (const char *const *)grid->headings;
  p.n_lines = grid->n_slices;
  set_x(&p, grid, kind);
  for (size_t panel = 0; panel < CLOCK_COUNT; panel++) {
    snprintf(p.panels[panel].axis, sizeof p.panels[panel].axis, "%s", clock_axis[panel]);
    p.panels[panel].low = 0;
    if (panel == 1 || panel == 2) p.panels[panel].high = 1; /* shares of time */
    for (size_t slice = 0; slice < grid->n_slices; slice++) {
      for (size_t i = 0; i < grid->n_x; i++) {
        size_t group = grid_group(grid, s->from, slice, i);
        if (group == s->from->n_groups) continue;
        interval v = {clock_of(s, group, panel), NAN, NAN};
        write_place(&p, panel, grid->headings[slice], i, grid->x[i], v);
      }
      page_block_end(&p);
    }
  }
  return page_end(&p, GL_OK, err);
}

static gl_status write_throughput(const summary *s, const figure_request *q, const char *name,
                                  x_kind kind, const char **why, gl_error *err) {
  x_grid grid;
  gl_status status = grid_init(&grid, s->from, kind, err);
  if (status != GL_OK) return status;
  int any = 0;
  for (size_t g = 0; g < s->from->n_groups && !any; g++) any = isfinite(clock_of(s, g, 0));
  if (grid.n_x < 2)
    *why = kind == X_DELAY ? "the study does not sweep a delay"
                           : "the study does not sweep a packet loss";
  else if (!any)
    *why = "the study has no clock";
  else
    status = write_clock_page(s, q, name, kind, &grid, err);
  grid_fini(&grid);
  return status;
}

gl_status write_throughput_delay(const summary *s, const figure_request *q, const char **why,
                                 gl_error *err) {
  return write_throughput(s, q, "throughput_delay", X_DELAY, why, err);
}

gl_status write_throughput_loss(const summary *s, const figure_request *q, const char **why,
                                gl_error *err) {
  return write_throughput(s, q, "throughput_loss", X_LOSS, why, err);
}

/* --- best and last ------------------------------------------------------------------------------
 */

enum { END_COUNT = 3 };
static const char *const end_axis[END_COUNT] = {"best", "last", "best − last"};

/* Best and last are read against each other: the first two rows of n panels get one range. */
static void share_rows(figure_page *p, size_t n) {
  double low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < 2 * n; i++)
    low = fmin(low, p->panels[i].low), high = fmax(high, p->panels[i].high);
  for (size_t i = 0; i < 2 * n; i++) p->panels[i].low = low, p->panels[i].high = high;
}

gl_status write_best_last(const summary *s, const figure_request *q, const char **why,
                          gl_error *err) {
  const results *r = s->from;
  size_t columns[MOST_COLUMNS], n = page_pick(r->n_groups, MOST_COLUMNS, columns);
  int any = 0;
  for (size_t i = 0; i < s->n_cells; i++) any |= isfinite(s->cells[i].best.value);
  if (!any) *why = "the study has no evaluation";
  if (*why) return GL_OK;
  figure_page p;
  gl_status status = page_begin(&p, q, "best_last", "best_last", END_COUNT * n,
                                "panel\talgorithm\tplace\tiqm\tlow\thigh", err);
  if (status != GL_OK) return status;
  p.wide = n;
  p.share = n;
  p.named_rows = 1;
  p.lines = (const char *const *)r->algorithms;
  p.n_lines = r->n_algorithms;
  for (size_t panel = 0; panel < p.n_panels; panel++) {
    size_t group = columns[panel % n], which = panel / n;
    snprintf(p.panels[panel].axis, sizeof p.panels[panel].axis, "%s", end_axis[which]);
    if (which == 0)
      snprintf(p.panels[panel].title, sizeof p.panels[panel].title, "%s", r->groups[group].heading);
    for (size_t a = 0; a < r->n_algorithms; a++) {
      const cell_summary *c = cell_of(s, group, a);
      if (c) {
        const interval of[END_COUNT] = {c->best, c->last, c->best_to_last};
        page_line(&p, panel, r->algorithms[a]);
        fprintf(p.data.stream, "\t%zu", a + 1);
        page_interval(&p, panel, of[which]);
        fputc('\n', p.data.stream);
      }
      page_block_end(&p);
    }
  }
  share_rows(&p, n);
  return page_end(&p, GL_OK, err);
}
