/* The order of a study's settings. */
#include "analysis/results_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int results_same_value(axis_value a, axis_value b) {
  return a.text == b.text || (a.text && b.text && strcmp(a.text, b.text) == 0);
}

/* --- between grids --- */
/* Several sweeps in one study each have a grid; between them the fields decide that no sweep named.
 */

/* -1, 0 or 1: no value before numbers, these ascending, before words. */
static int compare_values(axis_value a, axis_value b) {
  int rank_a = !a.text           ? 0
               : isnan(a.number) ? 2
                                 : 1,
      rank_b = !b.text           ? 0
               : isnan(b.number) ? 2
                                 : 1;
  if (rank_a != rank_b) return rank_a < rank_b ? -1 : 1;
  if (rank_a == 1) return (a.number > b.number) - (a.number < b.number);
  return rank_a == 0 ? 0 : strcmp(a.text, b.text);
}

static int compare_grids(const results *r, const results_group *a, const results_group *b) {
  int order = 0;
  for (size_t i = 0; i < r->axes.n && order == 0; i++)
    if (!r->axes.axis[i].swept) order = compare_values(a->value[i], b->value[i]);
  return order;
}

static void sort_grids(results *r) {
  for (size_t i = 1; i < r->n_groups; i++) {
    results_group moved = r->groups[i];
    size_t at = i;
    for (; at > 0 && compare_grids(r, &r->groups[at - 1], &moved) > 0; at--)
      r->groups[at] = r->groups[at - 1];
    r->groups[at] = moved;
  }
}

/* --- within a grid --- */
/* Runs come in the order of the sweep that made them, which is no order any more once a sweep has
 * been extended by values.
 */

/* A swept axis of a grid. */
typedef struct levels {
  size_t axis;
  size_t *of; /* [n] its values, each by the first group that has it */
  size_t n;
  size_t changes; /* the first group that differs from group 0: the later, the slower it varies */
  size_t stride;  /* from one value to the next, in groups */
} levels;

static axis_value value_of(const results_group *grid, const levels *l, size_t i) {
  return grid[l->of[i]].value[l->axis];
}

static size_t level_of(const results_group *grid, const levels *l, axis_value v) {
  size_t i = 0;
  while (i < l->n && !results_same_value(value_of(grid, l, i), v)) i++;
  return i;
}

/* Numbers ascend; an axis with other values keeps the order in which they came. */
static void sort_levels(const results_group *grid, levels *l) {
  for (size_t i = 0; i < l->n; i++)
    if (!value_of(grid, l, i).text || isnan(value_of(grid, l, i).number)) return;
  for (size_t i = 1; i < l->n; i++) {
    const size_t moved = l->of[i];
    const double number = grid[moved].value[l->axis].number;
    size_t at = i;
    for (; at > 0 && value_of(grid, l, at - 1).number > number; at--) l->of[at] = l->of[at - 1];
    l->of[at] = moved;
  }
}

static int find_levels(const results_group *grid, size_t n, size_t which, levels *l) {
  *l = (levels){.axis = which, .of = calloc(n, sizeof *l->of)};
  if (!l->of) return 0;
  for (size_t g = 0; g < n; g++)
    if (level_of(grid, l, grid[g].value[which]) == l->n) l->of[l->n++] = g;
  l->changes = l->n > 1 ? l->of[1] : 0;
  sort_levels(grid, l);
  return 1;
}

/* The slowest axis first, as the sweep has it. */
static void nest(levels *l, size_t n_axes) {
  for (size_t i = 1; i < n_axes; i++) {
    const levels moved = l[i];
    size_t at = i;
    for (; at > 0 && l[at - 1].changes < moved.changes; at--) l[at] = l[at - 1];
    l[at] = moved;
  }
  for (size_t i = n_axes, stride = 1; i-- > 0; stride *= l[i].n) l[i].stride = stride;
}

static int place_groups(results_group *grid, size_t n, const levels *l, size_t n_axes) {
  results_group *sorted = calloc(n, sizeof *sorted);
  if (!sorted) return 0;
  for (size_t g = 0; g < n; g++) {
    size_t at = 0;
    for (size_t i = 0; i < n_axes; i++)
      at += l[i].stride * level_of(grid, &l[i], grid[g].value[l[i].axis]);
    sorted[at] = grid[g];
  }
  memcpy(grid, sorted, n * sizeof *sorted);
  free(sorted);
  return 1;
}

/* Puts groups in the order of their grid where they are one that is whole; those of a design, or of
 * a sweep that is not done, stay as they came. 0 if memory is short. */
static int order_grid(const results *r, results_group *grid, size_t n) {
  levels *l = calloc(r->axes.n + 1, sizeof *l);
  size_t n_axes = 0, all = 1;
  int ok = l != NULL;
  for (size_t a = 0; a < r->axes.n && ok && all <= n; a++) {
    if (!r->axes.axis[a].swept) continue;
    ok = find_levels(grid, n, a, &l[n_axes]);
    all *= ok ? l[n_axes++].n : 1; /* at most n times n */
  }
  if (ok && all == n) {
    nest(l, n_axes);
    ok = place_groups(grid, n, l, n_axes);
  }
  for (size_t i = 0; i < n_axes; i++) free(l[i].of);
  free(l);
  return ok;
}

gl_status results_order_groups(results *r, gl_error *err) {
  sort_grids(r);
  for (size_t from = 0, to; from < r->n_groups; from = to) {
    to = from + 1;
    while (to < r->n_groups && compare_grids(r, &r->groups[from], &r->groups[to]) == 0) to++;
    if (!order_grid(r, r->groups + from, to - from))
      return gl_fail_memory(err, "the order of settings");
  }
  return GL_OK;
}
