/* Runs in memory, sorted into cells and groups. */
#include "analysis/results.h"

#include "core/base/hash.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- words ---------------------------------------------------------------------------------------
 */

/* Appends ", text" (or text alone at the start) to a string on the heap; 0 if memory is short. */
static int append_listed(char **list, const char *text) {
  size_t n = strlen(*list), extra = strlen(text) + 3;
  char *longer = realloc(*list, n + extra);
  if (!longer) return 0;
  *list = longer;
  if (n > 0) strcpy(longer + n, ", "), n += 2;
  strcpy(longer + n, text);
  return 1;
}

/* "max delay 600 s"; of the label its text alone */
static int append_worded(char **heading, const axis *a, axis_value v) {
  const char *text = v.text ? v.text : "not given";
  if (strcmp(a->path, RESULTS_LABEL) == 0) return append_listed(heading, v.text ? text : "others");
  const char *unit = isfinite(v.number) ? a->unit : "";
  size_t n = strlen(a->label) + strlen(text) + strlen(unit) + 3;
  char *words = malloc(n);
  if (!words) return 0;
  snprintf(words, n, "%s %s%s%s", a->label, text, *unit ? " " : "", unit);
  int ok = append_listed(heading, words);
  free(words);
  return ok;
}

/* Whether two groups have different values in an axis. */
static int differ(const results *r, size_t g, size_t h, size_t a) {
  const char *one = r->groups[g].value[a].text, *other = r->groups[h].value[a].text;
  return one != other && (!one || !other || strcmp(one, other) != 0);
}

static int varies(const results *r, size_t a) {
  for (size_t g = 1; g < r->n_groups; g++)
    if (differ(r, 0, g, a)) return 1;
  return 0;
}

char *results_heading(const results *r, size_t group, size_t without) {
  char *heading = strdup("");
  int ok = heading != NULL;
  for (size_t a = 0; a < r->axes.n && ok; a++)
    if (a != without && (r->n_groups == 1 || varies(r, a)))
      ok = append_worded(&heading, &r->axes.axis[a], r->groups[group].value[a]);
  if (ok) return heading;
  free(heading);
  return NULL;
}

/* --- titles --------------------------------------------------------------------------------------
 */

/* What titles are made of: axes that vary, and those among them that are named. */
typedef struct naming {
  const results *from;
  int *varying, *named; /* [axes.n] */
  size_t *values;       /* [axes.n] how many different ones each axis has */
  struct group_mark {
    uint64_t named, varying; /* hashes of a group's values */
  } * mark;                  /* [n_groups] scratch */
} naming;

static uint64_t hash_of(const naming *m, size_t g, const int *among) {
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
    m->mark[g] = (struct group_mark){hash_of(m, g, m->named), hash_of(m, g, m->varying)};
  qsort(m->mark, n, sizeof *m->mark, compare_marks);
}

/* Whether the named axes tell all groups apart that the varying ones tell apart. */
static int told_apart(naming *m) {
  mark_groups(m);
  for (size_t g = 1; g < m->from->n_groups; g++)
    if (m->mark[g].named == m->mark[g - 1].named && m->mark[g].varying != m->mark[g - 1].varying)
      return 0;
  return 1;
}

/* How many values an axis has; leaves it the only one that is named. */
static size_t values_of(naming *m, size_t a) {
  memset(m->named, 0, m->from->axes.n * sizeof *m->named);
  m->named[a] = 1;
  mark_groups(m);
  size_t n = m->from->n_groups > 0;
  for (size_t g = 1; g < m->from->n_groups; g++) n += m->mark[g].named != m->mark[g - 1].named;
  return n;
}

/* Takes away the names that are not needed, those of axes with few values first. */
static void shorten(naming *m) {
  const size_t n = m->from->axes.n;
  size_t most = 0;
  for (size_t a = 0; a < n; a++) most = m->values[a] > most ? m->values[a] : most;
  for (size_t values = 2; values <= most; values++)
    for (size_t a = n; a-- > 0;) {
      if (!m->named[a] || m->values[a] != values) continue;
      if (strcmp(m->from->axes.axis[a].path, RESULTS_LABEL) == 0) continue;
      m->named[a] = 0;
      if (!told_apart(m)) m->named[a] = 1;
    }
}

static size_t differences(const naming *m, size_t g, size_t h) {
  size_t n = 0;
  for (size_t a = 0; a < m->from->axes.n; a++) n += m->varying[a] && differ(m->from, g, h, a);
  return n;
}

/* The group from which all others differ in one axis, where more than two axes vary; n_groups:
 * none. */
static size_t base_of(const naming *m) {
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

/* The named values; where one of them is not given, what else varies stands in its place. */
static int append_named(char **title, const naming *m, size_t g) {
  const axis_table *t = &m->from->axes;
  const axis_value *value = m->from->groups[g].value;
  int lacks = 0, given = 0;
  for (size_t a = 0; a < t->n; a++) lacks |= m->named[a] && !value[a].text;
  for (size_t a = 0; a < t->n; a++) given |= m->varying[a] && !m->named[a] && value[a].text;
  int ok = 1;
  for (size_t a = 0; a < t->n && ok; a++) {
    const int instead = lacks && given;
    if (m->named[a] ? !instead || value[a].text : instead && m->varying[a] && value[a].text)
      ok = append_worded(title, &t->axis[a], value[a]);
  }
  return ok;
}

/* Where there is a base, a title says what is different from it. */
static int append_change(char **title, const naming *m, size_t base, size_t g) {
  int ok = 1;
  for (size_t a = 0; a < m->from->axes.n && ok; a++)
    if (m->varying[a] && differ(m->from, base, g, a))
      ok = append_worded(title, &m->from->axes.axis[a], m->from->groups[g].value[a]);
  return ok && (**title || append_listed(title, "base setting"));
}

static int write_titles(const naming *m, char **titles) {
  const size_t n = m->from->n_groups, base = base_of(m);
  int ok = 1;
  for (size_t g = 0; g < n && ok; g++) {
    ok = (titles[g] = strdup("")) != NULL;
    if (ok) ok = base < n ? append_change(&titles[g], m, base, g) : append_named(&titles[g], m, g);
  }
  return ok;
}

char **results_titles(const results *r, size_t without) {
  const size_t n = r->axes.n;
  char **titles = calloc(r->n_groups + 1, sizeof *titles);
  naming m = {.from = r,
              .varying = calloc(n + 1, sizeof *m.varying),
              .named = calloc(n + 1, sizeof *m.named),
              .values = calloc(n + 1, sizeof *m.values),
              .mark = calloc(r->n_groups + 1, sizeof *m.mark)};
  int ok = titles && m.varying && m.named && m.values && m.mark;
  for (size_t a = 0; a < n && ok; a++) m.values[a] = values_of(&m, a);
  for (size_t a = 0; a < n && ok; a++)
    m.varying[a] = m.named[a] = a != without && (r->n_groups == 1 || m.values[a] > 1);
  if (ok) shorten(&m);
  ok = ok && write_titles(&m, titles);
  free(m.varying), free(m.named), free(m.values), free(m.mark);
  if (ok) return titles;
  results_titles_free(titles, r->n_groups);
  return NULL;
}

void results_titles_free(char **titles, size_t n) {
  for (size_t i = 0; titles && i < n; i++) free(titles[i]);
  free(titles);
}

static int set_axis_label(results *r) {
  int ok = 1;
  for (size_t i = 0; i < r->axes.n && ok; i++) {
    const axis *a = &r->axes.axis[i];
    size_t n = strlen(a->label) + strlen(a->unit) + 4;
    char *head = malloc(n);
    if (!head) return 0;
    snprintf(head, n, *a->unit ? "%s [%s]" : "%s%s", a->label, a->unit);
    ok = append_listed(&r->axis_label, head);
    free(head);
  }
  return ok;
}

/* --- adding runs --------------------------------------------------------------------------------
 */

results *results_new(const char *study) {
  results *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->study = strdup(study);
  r->axis_label = strdup("");
  if (!r->study || !r->axis_label) {
    results_free(r);
    return NULL;
  }
  return r;
}

static void run_fini(results_run *run) {
  free(run->steps), free(run->evals), free(run->set_evals), free(run->staleness);
  free(run->reason), free(run->shown), free(run->recipe), free(run->swept), free(run->chosen);
  free(run->key), free(run->best_until);
}

static void free_group(results_group *g) {
  free(g->label), free(g->heading), free(g->title);
}

void results_free(results *r) {
  if (!r) return;
  for (size_t i = 0; i < r->n_algorithms; i++) free(r->algorithms[i]);
  for (size_t i = 0; i < r->n_groups; i++) free_group(&r->groups[i]);
  for (size_t i = 0; i < r->n_runs; i++) run_fini(&r->runs[i]);
  for (size_t i = 0; i < r->n_repeats; i++) run_fini(&r->repeats[i]);
  free(r->algorithms), free(r->groups), free(r->runs), free(r->repeats), free(r->cells);
  axes_fini(&r->axes);
  free(r->study), free(r->axis_label), free(r);
}

/* Room for one more item of `size` bytes; arrays grow when their length reaches a power of two. */
static void *grow(void *items, size_t n, size_t size) {
  if (n & (n - 1)) return items;
  size_t room = n == 0 ? 1 : 2 * n;
  return room > (size_t)-1 / size ? NULL : realloc(items, room * size);
}

/* malloc'd copy of n items; NULL for none, and *ok cleared if memory is short. */
static void *copy_items(const void *items, size_t n, size_t size, int *ok) {
  if (n == 0) return NULL;
  void *copy = calloc(n, size);
  if (copy)
    memcpy(copy, items, n * size);
  else
    *ok = 0;
  return copy;
}

static char *copy_text(const char *text, int *ok) {
  return text ? copy_items(text, strlen(text) + 1, 1, ok) : NULL;
}

gl_status results_add(results *r, const run_record *run, gl_error *err) {
  assert(r->cells == NULL && run->algorithm != NULL);
  results_run *more = grow(r->runs, r->n_runs, sizeof *more);
  if (!more) return gl_fail_memory(err, "runs");
  r->runs = more;
  int ok = 1;
  more[r->n_runs++] = (results_run){
      .seed = run->seed,
      .lr = run->lr,
      .status = run->status,
      .reason = copy_text(run->reason ? run->reason : "", &ok),
      .clock = run->clock,
      .steps = copy_items(run->steps, run->n_steps, sizeof *run->steps, &ok),
      .n_steps = run->n_steps,
      .evals = copy_items(run->evals, run->n_evals, sizeof *run->evals, &ok),
      .n_evals = run->n_evals,
      .set_evals = copy_items(run->set_evals, run->n_set_evals, sizeof *run->set_evals, &ok),
      .n_set_evals = run->n_set_evals,
      .staleness = copy_items(run->staleness, run->n_staleness, sizeof *run->staleness, &ok),
      .n_staleness = run->n_staleness,
      .shown = copy_text(run->algorithm, &ok),
      .recipe = copy_text(run->recipe, &ok),
      .swept = copy_text(run->swept, &ok),
      .chosen = copy_text(run->chosen, &ok),
      .key = copy_text(run->key, &ok),
      .meaning = run->meaning};
  return ok ? GL_OK : gl_fail_memory(err, "a run's records");
}

/* --- arranging ----------------------------------------------------------------------------------
 */

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
                       .meaning = run->meaning,
                       .seed = run->seed};
  }
  gl_status status = axes_find(&r->axes, of, r->n_runs, err);
  free(of);
  return status;
}

static gl_status algorithm_index(results *r, const char *name, size_t *index, gl_error *err) {
  for (*index = 0; *index < r->n_algorithms; ++*index)
    if (strcmp(r->algorithms[*index], name) == 0) return GL_OK;
  char **more = grow(r->algorithms, r->n_algorithms, sizeof *more);
  if (!more) return gl_fail_memory(err, "algorithm names");
  r->algorithms = more;
  if (!(more[r->n_algorithms] = strdup(name))) return gl_fail_memory(err, "algorithm names");
  r->n_algorithms++;
  return GL_OK;
}

static int same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

static gl_status group_index(results *r, const axis_value *value, size_t *index, gl_error *err) {
  for (*index = 0; *index < r->n_groups; ++*index) {
    size_t a = 0;
    while (a < r->axes.n && same_text(r->groups[*index].value[a].text, value[a].text)) a++;
    if (a == r->axes.n) return GL_OK;
  }
  results_group *more = grow(r->groups, r->n_groups, sizeof *more);
  if (!more) return gl_fail_memory(err, "groups of cells");
  r->groups = more;
  more[r->n_groups++] = (results_group){.value = value};
  return GL_OK;
}

/* The value in the first of these axes that the study has. */
static double number_at(const results *r, const axis_value *value, const char *path,
                        const char *otherwise) {
  size_t a = results_axis(r, path);
  if (a == r->axes.n) a = results_axis(r, otherwise);
  return a < r->axes.n ? value[a].number : NAN;
}

static gl_status name_group(results *r, size_t g, gl_error *err) {
  results_group *to = &r->groups[g];
  to->label = strdup("");
  int ok = to->label != NULL;
  for (size_t a = 0; a < r->axes.n && ok; a++)
    ok = append_listed(&to->label, to->value[a].text ? to->value[a].text : "–");
  to->heading = ok ? results_heading(r, g, r->axes.n) : NULL;
  to->delay = number_at(r, to->value, "cluster.max_delay", "cluster.delay");
  return to->heading ? GL_OK : gl_fail_memory(err, "the settings of a cell");
}

static gl_status name_groups_shortly(results *r, gl_error *err) {
  char **titles = results_titles(r, r->axes.n);
  if (!titles) return gl_fail_memory(err, "the settings of a cell");
  for (size_t g = 0; g < r->n_groups; g++) r->groups[g].title = titles[g];
  free(titles);
  return GL_OK;
}

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

/* Several sweeps in one study each have a grid; between them the fields decide that no sweep named.
 */
static int comes_after(const results *r, const results_group *a, const results_group *b) {
  for (size_t i = 0; i < r->axes.n; i++) {
    int order = r->axes.axis[i].swept ? 0 : compare_values(a->value[i], b->value[i]);
    if (order != 0) return order > 0;
  }
  return 0;
}

static void sort_groups(results *r) {
  for (size_t i = 1; i < r->n_groups; i++) {
    results_group moved = r->groups[i];
    size_t at = i;
    for (; at > 0 && comes_after(r, &r->groups[at - 1], &moved); at--)
      r->groups[at] = r->groups[at - 1];
    r->groups[at] = moved;
  }
}

/* Of runs that mean the same the first finished one stays; the rest would count one draw twice. */
static gl_status drop_repeats(results *r, size_t *place, gl_error *err) {
  size_t *kept = place; /* kept[i] of the first run of a draw: which of them stays */
  r->repeats = calloc(r->n_runs + 1, sizeof *r->repeats);
  if (!r->repeats) return gl_fail_memory(err, "runs");
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
    place[n] = i; /* n <= i: what is overwritten has been read */
    r->runs[n++] = r->runs[i];
  }
  r->n_runs = n;
  return GL_OK;
}

static gl_status find_places(results *r, const size_t *place, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < r->n_runs && status == GL_OK; i++) {
    status = algorithm_index(r, r->axes.algorithm[place[i]], &r->runs[i].algorithm, err);
    if (status == GL_OK)
      status = group_index(r, r->axes.value + place[i] * r->axes.n, &r->runs[i].group, err);
  }
  sort_groups(r);
  for (size_t i = 0; i < r->n_runs && status == GL_OK; i++)
    status = group_index(r, r->axes.value + place[i] * r->axes.n, &r->runs[i].group, err);
  for (size_t g = 0; g < r->n_groups && status == GL_OK; g++) status = name_group(r, g, err);
  return status == GL_OK ? name_groups_shortly(r, err) : status;
}

/* Counting sort of the runs by cell, stable, so that seeds keep their order. */
static gl_status sort_runs(results *r, gl_error *err) {
  size_t n = r->n_groups * r->n_algorithms, at = 0;
  results_run *sorted = calloc(r->n_runs ? r->n_runs : 1, sizeof *sorted);
  r->cells = calloc(n ? n : 1, sizeof *r->cells);
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
  size_t *place = calloc(r->n_runs + 1, sizeof *place);
  if (!place) return gl_fail_memory(err, "cells");
  gl_status status = compare_recipes(r, err);
  if (status == GL_OK) status = drop_repeats(r, place, err);
  if (status == GL_OK && !set_axis_label(r)) status = gl_fail_memory(err, "the names of axes");
  if (status == GL_OK) status = find_places(r, place, err);
  if (status == GL_OK) status = sort_runs(r, err);
  free(place);
  return status;
}

const results_cell *results_cell_at(const results *r, size_t group, size_t algorithm) {
  assert(group < r->n_groups && algorithm < r->n_algorithms);
  return &r->cells[group * r->n_algorithms + algorithm];
}

size_t results_axis(const results *r, const char *path) {
  return axes_index(&r->axes, path);
}
