/* Keeps mean wall-clock times by kind of run, and what is left of each kind. */
#define _GNU_SOURCE /* tdestroy */
#include "experiments/sweep/costs.h"

#include "core/base/json_tree.h"

#include <math.h>
#include <search.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct pace {
  double seconds, updates;
  size_t runs;
} pace;

struct costs_kind {
  char *name; /* algorithm, newline, settings; the algorithm alone for what all of its runs share */
  costs *of;
  costs_kind *algorithm, *next; /* in the list of kinds; NULL in an algorithm's own */
  pace took;
  size_t left, updates; /* runs to be made, updates of each */
};

struct costs {
  void *tree; /* of all kinds by name, the algorithms' own among them */
  costs_kind *first;
  pace took;
  int64_t peak_bytes;
};

/* --- kinds --- */

static int costs_compare_names(const void *a, const void *b) {
  return strcmp(((const costs_kind *)a)->name, ((const costs_kind *)b)->name);
}

static void free_kind(void *kind) {
  free(((costs_kind *)kind)->name);
  free(kind);
}

costs *costs_new(void) {
  return calloc(1, sizeof(costs));
}

void costs_free(costs *c) {
  if (c == NULL) return;
  tdestroy(c->tree, free_kind);
  free(c);
}

/* Takes the name. *is_new: it was not there. */
static costs_kind *kind_named(costs *c, char *name, int *is_new) {
  costs_kind *k = name != NULL ? calloc(1, sizeof *k) : NULL;
  *is_new = 0;
  if (k == NULL) {
    free(name);
    return NULL;
  }
  *k = (costs_kind){.name = name, .of = c};
  costs_kind **found = tsearch(k, &c->tree, costs_compare_names);
  *is_new = found != NULL && *found == k;
  if (!*is_new) free_kind(k);
  return found != NULL ? *found : NULL;
}

/* The settings without the learning rate. In canonical JSON a quoted name before a colon is a key,
 * and the rate is a number, which ends with a comma or the brace. */
static char *kind_name(const char *algorithm, const char *swept) {
  static const char rate[] = "\"optimizer.lr\":";
  const size_t size = strlen(algorithm) + strlen(swept) + 2;
  char *name = malloc(size);
  if (name == NULL) return NULL;
  const char *at = strstr(swept, rate);
  if (at == NULL) {
    snprintf(name, size, "%s\n%s", algorithm, swept);
    return name;
  }
  const char *after = at + strlen(rate);
  after += strcspn(after, ",}");
  snprintf(name, size, "%s\n%.*s%s", algorithm, (int)(at - swept), swept,
           *after == ',' ? after + 1 : after);
  const size_t length = strlen(name); /* {"a":1,} where the rate was the last */
  if (length > 2 && strcmp(name + length - 2, ",}") == 0) memcpy(name + length - 2, "}", 2);
  return name;
}

costs_kind *costs_of(costs *c, const char *algorithm, const char *swept) {
  int is_new = 0, is_first = 0;
  costs_kind *k = kind_named(c, kind_name(algorithm, swept), &is_new);
  if (k == NULL || !is_new) return k;
  k->next = c->first;
  c->first = k;
  k->algorithm = kind_named(c, strdup(algorithm), &is_first);
  return k->algorithm != NULL ? k : NULL;
}

/* --- learning --- */

static void costs_add(pace *p, double wall_s, size_t updates) {
  p->seconds += wall_s;
  p->updates += (double)updates;
  ++p->runs;
}

void costs_learn(costs_kind *k, double wall_s, size_t updates) {
  if (!isfinite(wall_s) || wall_s < 0 || updates == 0) return;
  costs_add(&k->took, wall_s, updates);
  costs_add(&k->algorithm->took, wall_s, updates);
  costs_add(&k->of->took, wall_s, updates);
}

void costs_expect(costs_kind *k, size_t updates) {
  ++k->left;
  k->updates = updates;
}

void costs_expect_nothing(costs *c) {
  for (costs_kind *k = c->first; k != NULL; k = k->next) k->left = 0;
}

void costs_ended(costs_kind *k, double wall_s, int failed) {
  if (k->left > 0) --k->left;
  if (!failed) costs_learn(k, wall_s, k->updates);
}

/* --- expecting --- */

static double run_s(const pace *p, size_t updates) {
  return updates > 0 ? p->seconds / p->updates * (double)updates : p->seconds / (double)p->runs;
}

double costs_run_s(const costs_kind *k) {
  const pace *const known[] = {&k->took, &k->algorithm->took, &k->of->took};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i)
    if (known[i]->runs > 0) return run_s(known[i], k->updates);
  return NAN;
}

double costs_spent_s(const costs *c) {
  return c->took.seconds;
}

int64_t costs_peak_bytes(const costs *c) {
  return c->peak_bytes;
}

size_t costs_runs(const costs *c) {
  return c->took.runs;
}

double costs_left_s(const costs *c) {
  double sum = 0;
  for (const costs_kind *k = c->first; k != NULL; k = k->next)
    if (k->left > 0) sum += (double)k->left * costs_run_s(k);
  return sum;
}

double costs_wait_s(const costs *c, size_t workers) {
  double longest = 0;
  for (const costs_kind *k = c->first; k != NULL; k = k->next)
    if (k->left > 0) longest = fmax(longest, costs_run_s(k));
  const double left = costs_left_s(c);
  if (isnan(left)) return NAN;
  return fmax(left / (double)(workers > 0 ? workers : 1), longest);
}

/* --- from a study --- */

/* The updates that a run was to make: the last one that it made, or of a run that diverged what its
 * recipe says. */
static size_t planned_updates(sqlite3_stmt *q) {
  cJSON *recipe = json_tree_of((const char *)sqlite3_column_text(q, 4));
  const double steps = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(recipe, "steps"));
  cJSON_Delete(recipe);
  if (steps >= 1 && steps < 1e15) return (size_t)steps;
  const sqlite3_int64 made = sqlite3_column_int64(q, 3);
  return made > 0 ? (size_t)made : 0;
}

gl_status costs_read(costs *c, store *s, const char *study, gl_error *err) {
  static const char sql[] =
      "SELECT algorithm, swept, wall_s, (SELECT max(step) FROM steps WHERE run = r.id), CASE status"
      " WHEN 'diverged' THEN recipe END, peak_bytes FROM runs r WHERE study = ?1 AND status != "
      "'failed' AND"
      " wall_s IS NOT NULL";
  sqlite3_stmt *q = NULL;
  gl_status status = GL_OK;
  int code = sqlite3_prepare_v2(store_handle(s), sql, -1, &q, NULL);
  if (code == SQLITE_OK) code = sqlite3_bind_text(q, 1, study, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_step(q);
  for (; code == SQLITE_ROW && status == GL_OK; code = sqlite3_step(q)) {
    const char *algorithm = (const char *)sqlite3_column_text(q, 0),
               *swept = (const char *)sqlite3_column_text(q, 1);
    costs_kind *k = algorithm != NULL && swept != NULL ? costs_of(c, algorithm, swept) : NULL;
    const int64_t peak = sqlite3_column_int64(q, 5); /* NULL reads as 0 */
    if (peak > c->peak_bytes) c->peak_bytes = peak;
    if (k != NULL)
      costs_learn(k, sqlite3_column_double(q, 2), planned_updates(q));
    else
      status = gl_fail_memory(err, "the times of runs");
  }
  if (status == GL_OK && code != SQLITE_DONE)
    status = gl_fail(err, GL_EIO, "the times of finished runs cannot be read: %s",
                     sqlite3_errmsg(store_handle(s)));
  sqlite3_finalize(q);
  return status;
}
