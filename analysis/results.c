/* Runs in memory, sorted into cells and groups; order and titles of the settings. */
#include "analysis/results.h"

#include "core/base/array.h"
#include "core/base/hash.h"
#include "core/config/config.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- lists of distinct texts --- */

size_t text_list_find(const char *const *list, size_t n, const char *text) {
  size_t i = 0;
  while (i < n && strcmp(list[i], text) != 0) i++;
  return i;
}

size_t text_list_add(const char **list, size_t *n, const char *text) {
  const size_t i = text_list_find(list, *n, text);
  if (i == *n) list[(*n)++] = text;
  return i;
}

/* --- adding runs --- */

results *results_new(const char *study) {
  arena memory = {0};
  results *r = ARENA_ARRAY(&memory, results, 1);
  char *name = arena_text(&memory, study);
  if (memory.failed) {
    arena_fini(&memory);
    return NULL;
  }
  *r = (results){.study = name, .axis_label = "", .memory = memory};
  return r;
}

void results_free(results *r) {
  if (!r) return;
  free(r->runs);
  axes_fini(&r->axes);
  arena_free_owner(&r->memory);
}

gl_status results_add(results *r, const run_record *run, gl_error *err) {
  assert(r->cells == NULL && run->algorithm != NULL);
  arena *m = &r->memory;
  results_run *to = ARRAY_ADD(r->runs, r->n_runs);
  if (!to) return gl_fail_memory(err, "runs");
  *to = (results_run){
      .seed = run->seed,
      .lr = run->lr,
      .status = run->status,
      .reason = arena_text(m, run->reason ? run->reason : ""),
      .clock = run->clock,
      .steps = arena_copy(m, run->steps, run->n_steps, sizeof *run->steps),
      .n_steps = run->n_steps,
      .evals = arena_copy(m, run->evals, run->n_evals, sizeof *run->evals),
      .n_evals = run->n_evals,
      .set_evals = arena_copy(m, run->set_evals, run->n_set_evals, sizeof *run->set_evals),
      .n_set_evals = run->n_set_evals,
      .staleness = arena_copy(m, run->staleness, run->n_staleness, sizeof *run->staleness),
      .n_staleness = run->n_staleness,
      .shown = arena_text(m, run->algorithm),
      .recipe = arena_text(m, run->recipe),
      .swept = arena_text(m, run->swept),
      .chosen = arena_text(m, run->chosen),
      .in_effect = arena_text(m, run->in_effect),
      .key = arena_text(m, run->key),
      .meaning = run->meaning};
  return arena_check(m, "a run's records", err);
}

static bool is_same_value(axis_value a, axis_value b) {
  return a.text == b.text || (a.text && b.text && strcmp(a.text, b.text) == 0);
}

size_t results_axis(const results *r, const char *path) {
  return axes_index(&r->axes, path);
}

/* --- the order of the settings --- */
/* If a study has several sweeps, each is a grid. Grids are ordered by the fields that no sweep
 * names. */

/* Returns -1, 0 or 1. Order: missing values, then numbers ascending, then words. */
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

/* Within a grid, runs are in the order of their sweep. If a sweep was extended by values, that
 * order is lost, so the levels of each swept axis are sorted. */

/* A swept axis of a grid. */
typedef struct swept_axis {
  size_t axis;
  size_t *of; /* [n] distinct values, each represented by the first group that has it */
  size_t n;
  size_t first_change; /* first group that differs from group 0; the later, the slower the axis
                          varies */
  size_t stride;       /* distance between consecutive values, in groups */
} swept_axis;

static axis_value level_value(const results_group *grid, const swept_axis *l, size_t i) {
  return grid[l->of[i]].value[l->axis];
}

static size_t level_of(const results_group *grid, const swept_axis *l, axis_value v) {
  size_t i = 0;
  while (i < l->n && !is_same_value(level_value(grid, l, i), v)) i++;
  return i;
}

/* Sorts numbers ascending. An axis with other values keeps its order of appearance. */
static void sort_levels(const results_group *grid, swept_axis *l) {
  for (size_t i = 0; i < l->n; i++)
    if (!level_value(grid, l, i).text || isnan(level_value(grid, l, i).number)) return;
  for (size_t i = 1; i < l->n; i++) {
    const size_t moved = l->of[i];
    const double number = grid[moved].value[l->axis].number;
    size_t at = i;
    for (; at > 0 && level_value(grid, l, at - 1).number > number; at--) l->of[at] = l->of[at - 1];
    l->of[at] = moved;
  }
}

/* Finds the distinct values of the axis with index `which`. of: [n] receives them as groups. */
static swept_axis find_levels(const results_group *grid, size_t n, size_t which, size_t *of) {
  swept_axis l = {.axis = which, .of = of};
  for (size_t g = 0; g < n; g++)
    if (level_of(grid, &l, grid[g].value[which]) == l.n) l.of[l.n++] = g;
  l.first_change = l.n > 1 ? l.of[1] : 0;
  sort_levels(grid, &l);
  return l;
}

/* Sorts the axes, slowest first, as in the sweep. */
static void nest(swept_axis *l, size_t n_axes) {
  for (size_t i = 1; i < n_axes; i++) {
    const swept_axis moved = l[i];
    size_t at = i;
    for (; at > 0 && l[at - 1].first_change < moved.first_change; at--) l[at] = l[at - 1];
    l[at] = moved;
  }
  for (size_t i = n_axes, stride = 1; i-- > 0; stride *= l[i].n) l[i].stride = stride;
}

/* Puts each group at the position that its values have in the grid. sorted: [n] scratch. */
static void place_groups(results_group *grid, size_t n, const swept_axis *l, size_t n_axes,
                         results_group *sorted) {
  for (size_t g = 0; g < n; g++) {
    size_t at = 0;
    for (size_t i = 0; i < n_axes; i++)
      at += l[i].stride * level_of(grid, &l[i], grid[g].value[l[i].axis]);
    sorted[at] = grid[g];
  }
  memcpy(grid, sorted, n * sizeof *sorted);
}

/* Sorts the groups of a complete grid by the swept axes, slowest first. Groups of a design, or of
 * an unfinished sweep, keep the order in which they were added. */
static gl_status order_grid(const results *r, results_group *grid, size_t n, gl_error *err) {
  arena work = {0};
  swept_axis *l = ARENA_ARRAY(&work, swept_axis, r->axes.n);
  results_group *sorted = ARENA_ARRAY(&work, results_group, n);
  size_t n_axes = 0, all = 1;
  for (size_t a = 0; a < r->axes.n && all <= n; a++) {
    if (!r->axes.axis[a].swept) continue;
    size_t *of = ARENA_ARRAY(&work, size_t, n);
    if (work.failed) break;
    l[n_axes] = find_levels(grid, n, a, of);
    all *= l[n_axes++].n; /* no overflow: at most n * n */
  }
  gl_status status = arena_check(&work, "the order of settings", err);
  if (status == GL_OK && all == n) {
    nest(l, n_axes);
    place_groups(grid, n, l, n_axes, sorted);
  }
  arena_fini(&work);
  return status;
}

/* Orders groups of different grids by the fields that no sweep names. Within a grid, the order is
 * that of the sweep's axes: numbers ascending, words in the order in which they were added. */
static gl_status order_groups(results *r, gl_error *err) {
  gl_status status = GL_OK;
  sort_grids(r);
  for (size_t from = 0, to; from < r->n_groups && status == GL_OK; from = to) {
    to = from + 1;
    while (to < r->n_groups && compare_grids(r, &r->groups[from], &r->groups[to]) == 0) to++;
    status = order_grid(r, r->groups + from, to - from, err);
  }
  return status;
}

/* --- the names of the settings --- */

/* "list, text", or text if the list is empty. Allocated in m; NULL if m has failed. */
static const char *listed_text(arena *m, const char *list, const char *text) {
  char *longer = list && text ? ARENA_ARRAY(m, char, strlen(list) + strlen(text) + 3) : NULL;
  if (longer) sprintf(longer, "%s%s%s", list, *list ? ", " : "", text);
  return longer;
}

const char *results_value_text(axis_value v) {
  return v.text ? v.text : "not given";
}

/* Appends "max delay 600 s" to the list; for the axis `label` the value alone. */
static const char *listed_value(arena *m, const char *list, const axis *a, axis_value v) {
  const char *text = results_value_text(v);
  if (strcmp(a->path, RESULTS_LABEL) == 0) return listed_text(m, list, v.text ? v.text : "others");
  const char *unit = isfinite(v.number) ? a->unit : "";
  char *words = ARENA_ARRAY(m, char, strlen(a->label) + strlen(text) + strlen(unit) + 3);
  if (words) sprintf(words, "%s %s%s%s", a->label, text, *unit ? " " : "", unit);
  return listed_text(m, list, words);
}

/* Returns true if two groups have different values on an axis. */
static bool differ(const results *r, size_t g, size_t h, size_t a) {
  return !is_same_value(r->groups[g].value[a], r->groups[h].value[a]);
}

static bool axis_varies(const results *r, size_t a) {
  for (size_t g = 1; g < r->n_groups; g++)
    if (differ(r, 0, g, a)) return true;
  return false;
}

/* Lists the group's values, "max delay 600 s, loss down 0.1", for the axes that vary in the study.
 */
static const char *heading_of(results *r, size_t group) {
  const char *heading = "";
  for (size_t a = 0; a < r->axes.n; a++)
    if (r->n_groups == 1 || axis_varies(r, a))
      heading = listed_value(&r->memory, heading, &r->axes.axis[a], r->groups[group].value[a]);
  return heading;
}

/* The axes that vary, and those among them that appear in titles. */
typedef struct naming {
  const results *from;
  int *varying, *named; /* [axes.n] */
  size_t *values;       /* [axes.n] number of distinct values */
  struct group_mark {
    uint64_t named, varying; /* hashes of a group's values */
  } * mark;                  /* [n_groups] scratch */
} naming;

static uint64_t hash_values(const naming *m, size_t g, const int *among) {
  uint64_t h = HASH_64_START;
  for (size_t a = 0; a < m->from->axes.n; a++) {
    const char *text = among[a] ? m->from->groups[g].value[a].text : NULL;
    h = text ? hash_64(h, text, strlen(text) + 1) : hash_64(h, "\1", 1);
  }
  return h;
}

static int compare_marks(const void *one, const void *other) {
  const struct group_mark *a = one, *b = other;
  if (a->named != b->named) return a->named < b->named ? -1 : 1;
  return (a->varying > b->varying) - (a->varying < b->varying);
}

static void mark_groups(naming *m) {
  const size_t n = m->from->n_groups;
  for (size_t g = 0; g < n; g++)
    m->mark[g] = (struct group_mark){hash_values(m, g, m->named), hash_values(m, g, m->varying)};
  qsort(m->mark, n, sizeof *m->mark, compare_marks);
}

/* Returns true if the named axes distinguish all groups that the varying axes distinguish. */
static bool distinguishes_groups(naming *m) {
  mark_groups(m);
  for (size_t g = 1; g < m->from->n_groups; g++)
    if (m->mark[g].named == m->mark[g - 1].named && m->mark[g].varying != m->mark[g - 1].varying)
      return false;
  return true;
}

/* Counts the distinct values of axis a. Side effect: m->named and m->mark are set for titles with
 * this axis alone. */
static size_t count_distinct_values(naming *m, size_t a) {
  memset(m->named, 0, m->from->axes.n * sizeof *m->named);
  m->named[a] = 1;
  mark_groups(m);
  size_t n = m->from->n_groups > 0;
  for (size_t g = 1; g < m->from->n_groups; g++) n += m->mark[g].named != m->mark[g - 1].named;
  return n;
}

/* Removes axes from the titles that are not needed, axes with few values first. */
static void shorten(naming *m) {
  const size_t n = m->from->axes.n;
  size_t most = 0;
  for (size_t a = 0; a < n; a++) most = m->values[a] > most ? m->values[a] : most;
  for (size_t values = 2; values <= most; values++)
    for (size_t a = n; a-- > 0;) {
      if (!m->named[a] || m->values[a] != values) continue;
      if (strcmp(m->from->axes.axis[a].path, RESULTS_LABEL) == 0) continue;
      m->named[a] = 0;
      if (!distinguishes_groups(m)) m->named[a] = 1;
    }
}

static size_t differences(const naming *m, size_t g, size_t h) {
  size_t n = 0;
  for (size_t a = 0; a < m->from->axes.n; a++) n += m->varying[a] && differ(m->from, g, h, a);
  return n;
}

/* Returns the group from which every other differs in one axis, if more than two axes vary; else
 * n_groups. */
static size_t base_group(const naming *m) {
  const size_t n = m->from->n_groups;
  size_t axes = 0;
  for (size_t a = 0; a < m->from->axes.n; a++) axes += m->varying[a] != 0;
  for (size_t base = 0; base < n && axes > 2; base++) {
    size_t g = 0;
    while (g < n && differences(m, base, g) <= 1) g++;
    if (g == n) return base;
  }
  return n;
}

/* Title from the named values. If the group lacks one of them, the other varying values replace it.
 */
static const char *title_of_values(arena *to, const naming *m, size_t g) {
  const axis_table *t = &m->from->axes;
  const axis_value *value = m->from->groups[g].value;
  int lacks = 0, given = 0;
  for (size_t a = 0; a < t->n; a++) lacks |= m->named[a] && !value[a].text;
  for (size_t a = 0; a < t->n; a++) given |= m->varying[a] && !m->named[a] && value[a].text;
  const int instead = lacks && given;
  const char *title = "";
  for (size_t a = 0; a < t->n; a++)
    if (m->named[a] ? !instead || value[a].text : instead && m->varying[a] && value[a].text)
      title = listed_value(to, title, &t->axis[a], value[a]);
  return title;
}

/* Title from the values in which the group differs from the base. */
static const char *title_of_change(arena *to, const naming *m, size_t base, size_t g) {
  const char *title = "";
  if (g == base) return "base setting";
  for (size_t a = 0; a < m->from->axes.n; a++)
    if (m->varying[a] && differ(m->from, base, g, a))
      title = listed_value(to, title, &m->from->axes.axis[a], m->from->groups[g].value[a]);
  return title && *title == '\0' ? "base setting" : title;
}

const char **results_titles(arena *to, const results *r, size_t without) {
  const size_t n = r->axes.n;
  const char **titles = ARENA_ARRAY(to, const char *, r->n_groups);
  naming m = {.from = r,
              .varying = ARENA_ARRAY(to, int, n),
              .named = ARENA_ARRAY(to, int, n),
              .values = ARENA_ARRAY(to, size_t, n),
              .mark = ARENA_ARRAY(to, struct group_mark, r->n_groups)};
  if (to->failed) return NULL;
  for (size_t a = 0; a < n; a++) m.values[a] = count_distinct_values(&m, a);
  for (size_t a = 0; a < n; a++)
    m.varying[a] = m.named[a] = a != without && (r->n_groups == 1 || m.values[a] > 1);
  shorten(&m);
  const size_t base = base_group(&m);
  for (size_t g = 0; g < r->n_groups; g++)
    titles[g] = base < r->n_groups ? title_of_change(to, &m, base, g) : title_of_values(to, &m, g);
  return titles;
}

/* Such as "max delay [s], loss down". */
static const char *axis_label_of(results *r) {
  const char *label = "";
  for (size_t i = 0; i < r->axes.n; i++) {
    const axis *a = &r->axes.axis[i];
    char *head = ARENA_ARRAY(&r->memory, char, strlen(a->label) + strlen(a->unit) + 4);
    if (head) sprintf(head, *a->unit ? "%s [%s]" : "%s%s", a->label, a->unit);
    label = listed_text(&r->memory, label, head);
  }
  return label;
}

/* The group's number on the first of these axes that the study has. */
static double number_of_axis(const results *r, const results_group *g, const char *path,
                             const char *otherwise) {
  size_t a = results_axis(r, path);
  if (a == r->axes.n) a = results_axis(r, otherwise);
  return a < r->axes.n ? g->value[a].number : NAN;
}

/* Fills in the labels of the axes and the titles of all groups. */
static gl_status name_groups(results *r, gl_error *err) {
  arena *m = &r->memory;
  r->axis_label = axis_label_of(r);
  const char **titles = results_titles(m, r, r->axes.n);
  for (size_t g = 0; g < r->n_groups; g++) {
    results_group *to = &r->groups[g];
    to->label = "";
    for (size_t a = 0; a < r->axes.n; a++)
      to->label = listed_text(m, to->label, to->value[a].text ? to->value[a].text : "–");
    to->heading = heading_of(r, g);
    to->title = titles ? titles[g] : NULL;
    to->delay = number_of_axis(r, to, "cluster.max_delay", "cluster.delay");
  }
  return arena_check(m, "the settings of a cell", err);
}

/* --- arranging --- */

/* Finds the axes in which the recipes of the runs differ (core/config/axes.h). */
static gl_status compare_recipes(results *r, gl_error *err) {
  axes_run *of = calloc(r->n_runs + 1, sizeof *of);
  if (!of) return gl_fail_memory(err, "the recipes of a study");
  for (size_t i = 0; i < r->n_runs; i++) {
    const results_run *run = &r->runs[i];
    of[i] = (axes_run){.study = r->study,
                       .algorithm = run->shown,
                       .recipe = run->recipe,
                       .swept = run->swept,
                       .chosen = run->chosen,
                       .in_effect = run->in_effect,
                       .meaning = run->meaning,
                       .seed = run->seed};
  }
  gl_status status = axes_find(&r->axes, of, r->n_runs, err);
  free(of);
  return status;
}

/* Returns the group with these values, adding it if it is new. */
static size_t group_index(results *r, const axis_value *value) {
  size_t g = 0;
  for (; g < r->n_groups; g++) {
    size_t a = 0;
    while (a < r->axes.n && is_same_value(r->groups[g].value[a], value[a])) a++;
    if (a == r->axes.n) return g;
  }
  r->groups[r->n_groups++] = (results_group){.value = value};
  return g;
}

/* Of runs whose recipes mean the same with the same seed, keeps the first finished one; otherwise
 * one sample would count twice. original: [n_runs] receives for each remaining run the index at
 * which it was added. */
static void drop_repeats(results *r, size_t *original) {
  size_t *kept = original; /* kept[i], for the first run of a duplicate set: the run that is kept */
  for (size_t i = 0; i < r->n_runs; i++) {
    size_t first = r->axes.same[i];
    if (first == i)
      kept[i] = i;
    else if (r->runs[kept[first]].status == RUN_FAILED && r->runs[i].status != RUN_FAILED)
      kept[first] = i;
  }
  for (size_t i = 0; i < r->n_runs; i++)
    if (r->axes.same[i] != i) kept[i] = kept[r->axes.same[i]];
  size_t n = 0;
  for (size_t i = 0; i < r->n_runs; i++) {
    if (kept[i] != i) {
      r->repeats[r->n_repeats++] = r->runs[i];
      continue;
    }
    original[n] = i; /* n <= i: the overwritten entry has been read */
    r->runs[n++] = r->runs[i];
  }
  r->n_runs = n;
}

static gl_status find_groups(results *r, const size_t *original, gl_error *err) {
  for (size_t i = 0; i < r->n_runs; i++) {
    r->runs[i].algorithm =
        text_list_add(r->algorithms, &r->n_algorithms, r->axes.algorithm[original[i]]);
    group_index(r, r->axes.value + original[i] * r->axes.n);
  }
  gl_status status = order_groups(r, err);
  for (size_t i = 0; i < r->n_runs && status == GL_OK; i++)
    r->runs[i].group = group_index(r, r->axes.value + original[i] * r->axes.n);
  return status == GL_OK ? name_groups(r, err) : status;
}

/* Stable counting sort of the runs by cell; seeds keep their order. */
static gl_status sort_runs(results *r, gl_error *err) {
  size_t n = r->n_groups * r->n_algorithms, at = 0;
  results_run *sorted = calloc(r->n_runs + 1, sizeof *sorted);
  r->cells = ARENA_ARRAY(&r->memory, results_cell, n);
  if (!sorted || !r->cells) {
    free(sorted);
    return gl_fail_memory(err, "cells");
  }
  for (size_t i = 0; i < r->n_runs; i++)
    r->cells[r->runs[i].group * r->n_algorithms + r->runs[i].algorithm].n++;
  for (size_t c = 0; c < n; c++) {
    results_cell *cell = &r->cells[c];
    *cell = (results_cell){c % r->n_algorithms, c / r->n_algorithms, at, cell->n};
    at += cell->n;
    cell->n = 0;
  }
  for (size_t i = 0; i < r->n_runs; i++) {
    results_cell *cell = &r->cells[r->runs[i].group * r->n_algorithms + r->runs[i].algorithm];
    sorted[cell->first + cell->n++] = r->runs[i];
  }
  free(r->runs);
  r->runs = sorted;
  return GL_OK;
}

gl_status results_arrange(results *r, gl_error *err) {
  assert(r->cells == NULL);
  size_t *original = ARENA_ARRAY(&r->memory, size_t, r->n_runs);
  r->repeats = ARENA_ARRAY(&r->memory, results_run, r->n_runs);
  r->algorithms = ARENA_ARRAY(&r->memory, const char *, r->n_runs);
  r->groups = ARENA_ARRAY(&r->memory, results_group, r->n_runs);
  gl_status status = arena_check(&r->memory, "cells", err);
  if (status == GL_OK) status = compare_recipes(r, err);
  if (status == GL_OK) drop_repeats(r, original);
  if (status == GL_OK) status = find_groups(r, original, err);
  return status == GL_OK ? sort_runs(r, err) : status;
}

bool results_run_is_not_finite(const results_run *run) {
  if (run->status != RUN_DIVERGED) return false;
  if (run->n_steps == 0 || run->n_evals == 0) return true;
  if (!isfinite(run->evals[run->n_evals - 1].eval_score)) return true;
  const step_record *last = &run->steps[run->n_steps - 1];
  return run->evals[run->n_evals - 1].step != last->step || !isfinite(last->metric[METRIC_LOSS]) ||
         !isfinite(last->metric[METRIC_GRAD_NORM]);
}

const results_cell *results_cell_at(const results *r, size_t group, size_t algorithm) {
  assert(group < r->n_groups && algorithm < r->n_algorithms);
  return &r->cells[group * r->n_algorithms + algorithm];
}
