/* Figure `sensitivity` (the paper's Fig. 8): best and last score against each swept field, one row
 * of panels per field. Numbers have a numeric axis; distributions and names are categories. A point
 * pools the runs of all other settings, each a stratum of its interval. In a one-at-a-time design
 * it only has the runs with the base's other fields. */
#include "analysis/figures/list.h"
#include "core/base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static double end_of(const results *r, const results_run *run, size_t which, double *scratch) {
  for (size_t i = 0; i < run->n_evals; i++) scratch[i] = run->evals[i].eval_score;
  const series_ends e = series_ends_of(scratch, run->n_evals, r->lower_is_better);
  return which == 0 ? e.best : e.last;
}

/* The page, and scratch for the values of a point. */
typedef struct sensitivity_page {
  figure_page *p;
  const results *r;
  double *values, *evals; /* [n_runs], [evaluations of the longest run] */
  size_t *strata;         /* [n_groups] */
  size_t base;            /* the result of base_setting() */
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
    for (size_t k = 0; k < c->n; k++)
      if (r->runs[c->first + k].status != RUN_FAILED)
        s->values[n++] = end_of(r, &r->runs[c->first + k], panel % ENDS, s->evals);
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
  const char *dist = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(value, "law"));
  if (dist)
    snprintf(text, 64, "%.60s", dist);
  else
    snprintf(text, 64, "%.63s", v->text ? v->text : "default");
  cJSON_Delete(value);
}

static gl_status write_axis(const sensitivity_page *s, size_t row, const values *v, gl_error *err) {
  const results *r = s->r;
  figure_page *p = s->p;
  static const char *const names[ENDS] = {"best", "last"};
  const axis *swept = &r->axes.axis[v->which];
  gl_status status = GL_OK;
  for (size_t end = 0; end < ENDS && status == GL_OK; end++) {
    const size_t panel = row * ENDS + end;
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

/* Writes a row of panels for each of the axes v[n]. */
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
  return status == GL_OK ? page_set_lines(p, s->r->algorithms, s->r->n_algorithms, err) : status;
}

gl_status figure_sensitivity(const void *data, figure_page *p, gl_error *err) {
  const results *r = ((const figure_data *)data)->s->from;
  arena *m = &p->memory;
  size_t n = 0, longest = 0;
  for (size_t i = 0; i < r->n_runs; i++)
    if (r->runs[i].n_evals > longest) longest = r->runs[i].n_evals;
  values *v = ARENA_ARRAY(m, values, r->axes.n);
  const sensitivity_page s = {.p = p,
                              .r = r,
                              .values = ARENA_ARRAY(m, double, r->n_runs),
                              .evals = ARENA_ARRAY(m, double, longest),
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
