#include "analysis/results.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_tree.h"

/* --- the swept values of a group ----------------------------------------------------------------
 */

static const char *last_component(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot ? dot + 1 : path;
}

/* What an axis value means as a number: "none", null and false are 0; of a law its upper end. */
static double axis_number(const cJSON *value) {
  if (cJSON_IsNumber(value)) return value->valuedouble;
  if (cJSON_IsNull(value) || cJSON_IsFalse(value)) return 0.0;
  if (cJSON_IsString(value) && strcmp(value->valuestring, "none") == 0) return 0.0;
  if (cJSON_IsObject(value)) {
    const char *ends[] = {"max", "upper", "value", "mean"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
      const cJSON *end = cJSON_GetObjectItemCaseSensitive(value, ends[i]);
      if (cJSON_IsNumber(end)) return end->valuedouble;
    }
    const cJSON *law = cJSON_GetObjectItemCaseSensitive(value, "law");
    if (cJSON_IsString(law) && strcmp(law->valuestring, "none") == 0) return 0.0;
  }
  return NAN;
}

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

static int append_number(char **list, double value) {
  char text[NUMBER_TEXT_SIZE];
  return append_listed(list, number_text(value, text));
}

static int append_value(char **label, const cJSON *value) {
  if (cJSON_IsString(value)) return append_listed(label, value->valuestring);
  if (cJSON_IsNumber(value)) return append_number(label, value->valuedouble);
  char *text = cJSON_PrintUnformatted(value);
  int ok = text && append_listed(label, text);
  cJSON_free(text);
  return ok;
}

/* "max delay 600 s": the axis's last component in words, and its value. */
static int append_worded(char **heading, const char *key, const cJSON *value) {
  double number = axis_number(value);
  char *text = strdup("");
  int ok = text && (isfinite(number) ? append_number(&text, number) : append_value(&text, value));
  size_t n = ok ? strlen(key) + strlen(text) + sizeof "  s" : 0;
  char *words = ok ? malloc(n) : NULL;
  if (words) {
    snprintf(words, n, "%s %s%s", key, text, strstr(key, "delay") ? " s" : "");
    for (char *c = words; *c && c < words + strlen(key); c++)
      if (*c == '_') *c = ' ';
    ok = append_listed(heading, words);
  }
  free(text);
  ok = ok && words;
  free(words);
  return ok;
}

char *results_heading(const char *axes, const char *without) {
  cJSON *object = json_tree_of(axes);
  char *heading = object ? strdup("") : NULL;
  int ok = heading != NULL;
  for (const cJSON *a = object ? object->child : NULL; a && ok; a = a->next) {
    const char *key = last_component(a->string);
    if (!without || !strstr(key, without)) ok = append_worded(&heading, key, a);
  }
  cJSON_Delete(object);
  if (ok) return heading;
  free(heading);
  return NULL;
}

/* Fills the group's label and named axes from its JSON, and axis_label if it is still empty. */
static gl_status read_axes(results_group *g, char **axis_label, gl_error *err) {
  cJSON *axes = json_tree_of(g->axes);
  if (!cJSON_IsObject(axes)) {
    cJSON_Delete(axes);
    return gl_fail(err, GL_EIO, "the store's axes '%s' are not a JSON object; is the file damaged?",
                   g->axes);
  }
  g->delay = g->loss = g->window = NAN;
  int ok = 1, name_axes = **axis_label == 0;
  for (const cJSON *a = axes->child; a && ok; a = a->next) {
    const char *key = last_component(a->string);
    if (strstr(key, "delay")) g->delay = axis_number(a);
    if (strstr(key, "loss")) g->loss = axis_number(a);
    if (strcmp(key, "window") == 0) g->window = axis_number(a);
    ok = append_value(&g->label, a) && (!name_axes || append_listed(axis_label, key));
  }
  cJSON_Delete(axes);
  g->heading = ok ? results_heading(g->axes, NULL) : NULL;
  return g->heading ? GL_OK : gl_fail_memory(err, "axes of a cell");
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

void results_free(results *r) {
  if (!r) return;
  for (size_t i = 0; i < r->n_algorithms; i++) free(r->algorithms[i]);
  for (size_t i = 0; i < r->n_groups; i++)
    free(r->groups[i].axes), free(r->groups[i].label), free(r->groups[i].heading);
  for (size_t i = 0; i < r->n_runs; i++)
    free(r->runs[i].steps), free(r->runs[i].evals), free(r->runs[i].staleness);
  free(r->algorithms), free(r->groups), free(r->runs), free(r->cells);
  free(r->study), free(r->axis_label), free(r);
}

/* Room for one more item of `size` bytes; arrays grow when their length reaches a power of two. */
static void *grow(void *items, size_t n, size_t size) {
  if (n & (n - 1)) return items;
  size_t room = n == 0 ? 1 : 2 * n;
  return room > (size_t)-1 / size ? NULL : realloc(items, room * size);
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

static gl_status group_index(results *r, const char *axes, size_t *index, gl_error *err) {
  for (*index = 0; *index < r->n_groups; ++*index)
    if (strcmp(r->groups[*index].axes, axes) == 0) return GL_OK;
  results_group *more = grow(r->groups, r->n_groups, sizeof *more);
  if (!more) return gl_fail_memory(err, "groups of cells");
  r->groups = more;
  results_group *g = &more[r->n_groups++];
  *g = (results_group){.axes = strdup(axes), .label = strdup("")};
  return g->axes && g->label ? read_axes(g, &r->axis_label, err)
                             : gl_fail_memory(err, "groups of cells");
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

gl_status results_add(results *r, const run_record *run, gl_error *err) {
  size_t algorithm, group;
  gl_status status = algorithm_index(r, run->algorithm, &algorithm, err);
  if (status == GL_OK) status = group_index(r, run->axes, &group, err);
  if (status != GL_OK) return status;
  results_run *more = grow(r->runs, r->n_runs, sizeof *more);
  if (!more) return gl_fail_memory(err, "runs");
  r->runs = more;
  int ok = 1;
  more[r->n_runs++] = (results_run){
      .algorithm = algorithm,
      .group = group,
      .seed = run->seed,
      .lr = run->lr,
      .status = run->status,
      .clock = run->clock,
      .steps = copy_items(run->steps, run->n_steps, sizeof *run->steps, &ok),
      .n_steps = run->n_steps,
      .evals = copy_items(run->evals, run->n_evals, sizeof *run->evals, &ok),
      .n_evals = run->n_evals,
      .staleness = copy_items(run->staleness, run->n_staleness, sizeof *run->staleness, &ok),
      .n_staleness = run->n_staleness};
  return ok ? GL_OK : gl_fail_memory(err, "a run's rows");
}

/* Counting sort of the runs by cell, stable, so that seeds keep their order. */
gl_status results_arrange(results *r, gl_error *err) {
  size_t n = r->n_groups * r->n_algorithms;
  results_run *sorted = calloc(r->n_runs ? r->n_runs : 1, sizeof *sorted);
  r->cells = calloc(n ? n : 1, sizeof *r->cells);
  if (!sorted || !r->cells) {
    free(sorted);
    return gl_fail_memory(err, "cells");
  }
  size_t at = 0;
  for (size_t c = 0; c < n; c++) {
    results_cell *cell = &r->cells[c];
    *cell = (results_cell){c % r->n_algorithms, c / r->n_algorithms, at, 0};
    for (size_t i = 0; i < r->n_runs; i++)
      if (r->runs[i].algorithm == cell->algorithm && r->runs[i].group == cell->group)
        sorted[at++] = r->runs[i];
    cell->n = at - cell->first;
  }
  free(r->runs);
  r->runs = sorted;
  return GL_OK;
}

const results_cell *results_cell_at(const results *r, size_t group, size_t algorithm) {
  return &r->cells[group * r->n_algorithms + algorithm];
}
