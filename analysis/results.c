/* Runs in memory, sorted into cells and groups. */
#include "analysis/results_internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- adding runs --- */

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
  free(run->in_effect);
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
      .in_effect = copy_text(run->in_effect, &ok),
      .key = copy_text(run->key, &ok),
      .meaning = run->meaning};
  return ok ? GL_OK : gl_fail_memory(err, "a run's records");
}

/* --- arranging --- */

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

static gl_status group_index(results *r, const axis_value *value, size_t *index, gl_error *err) {
  for (*index = 0; *index < r->n_groups; ++*index) {
    size_t a = 0;
    while (a < r->axes.n && results_same_value(r->groups[*index].value[a], value[a])) a++;
    if (a == r->axes.n) return GL_OK;
  }
  results_group *more = grow(r->groups, r->n_groups, sizeof *more);
  if (!more) return gl_fail_memory(err, "groups of cells");
  r->groups = more;
  more[r->n_groups++] = (results_group){.value = value};
  return GL_OK;
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
  if (status == GL_OK) status = results_order_groups(r, err);
  for (size_t i = 0; i < r->n_runs && status == GL_OK; i++)
    status = group_index(r, r->axes.value + place[i] * r->axes.n, &r->runs[i].group, err);
  return status == GL_OK ? results_name_groups(r, err) : status;
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
