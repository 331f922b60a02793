/* The outcomes of a study's runs, from stored results. */
#include "analysis/stability.h"

#include "analysis/text_list.h"
#include "core/base/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys are at most as long as stored results have them. */
enum { KEY_SIZE = 512 };

/* A cell of the file: its keys begin with `prefix`, "cells[gepo,weight delay 3 s,4]". */
typedef struct stored_cell {
  char prefix[KEY_SIZE];
  double place; /* in the study's order */
} stored_cell;

static const char *text_of(const stability *s, const stored_cell *c, const char *member) {
  char key[2 * KEY_SIZE];
  snprintf(key, sizeof key, "%s.%s", c->prefix, member);
  return stored_value(&s->kept, key);
}

static double number_of(const stability *s, const stored_cell *c, const char *member,
                        double otherwise) {
  const char *text = text_of(s, c, member);
  double number;
  return text != NULL && csv_number(text, &number) ? number : otherwise;
}

static size_t count_of(const stability *s, const stored_cell *c, const char *member) {
  const double number = number_of(s, c, member, 0);
  return number >= 0 && number < 1e15 ? (size_t)number : 0;
}

/* An interval whose missing ends are open. */
static interval interval_of(const stability *s, const stored_cell *c, const char *member,
                            double open) {
  char key[KEY_SIZE];
  interval v;
  snprintf(key, sizeof key, "%.400s.value", member);
  v.value = number_of(s, c, key, NAN);
  snprintf(key, sizeof key, "%.400s.low", member);
  v.low = number_of(s, c, key, NAN);
  snprintf(key, sizeof key, "%.400s.high", member);
  v.high = number_of(s, c, key, open);
  return v;
}

/* --- which cells there are --- */

static int by_place(const void *a, const void *b) {
  const double x = ((const stored_cell *)a)->place, y = ((const stored_cell *)b)->place;
  return (x > y) - (x < y);
}

/* The length of the prefix of a key "cells[…].algorithm"; 0 of all other keys. */
static size_t prefix_of(const char *key) {
  static const char start[] = "cells[", end[] = "].algorithm";
  const size_t n = strlen(key), tail = sizeof end - 1;
  if (strncmp(key, start, sizeof start - 1) != 0 || n < sizeof start - 1 + tail) return 0;
  return strcmp(key + n - tail, end) == 0 && n - tail + 1 < KEY_SIZE ? n - tail + 1 : 0;
}

static gl_status find_cells(const stability *s, stored_cell **out, size_t *n, gl_error *err) {
  *n = 0;
  *out = calloc(s->kept.n + 1, sizeof **out);
  if (*out == NULL) return gl_fail_memory(err, "stored outcomes");
  for (size_t i = 0; i < s->kept.n; i++) {
    const size_t length = prefix_of(s->kept.entry[i].key);
    if (length == 0) continue;
    stored_cell *c = &(*out)[*n];
    memcpy(c->prefix, s->kept.entry[i].key, length);
    c->place = number_of(s, c, "place", (double)*n);
    if (text_of(s, c, "setting") != NULL && text_of(s, c, "watched") != NULL) ++*n;
  }
  if (*n > 0) {
    qsort(*out, *n, sizeof **out, by_place);
    return GL_OK;
  }
  return gl_fail(
      err, GL_EINPUT,
      "%s is no result of which a figure is drawn: those are of `gepolab analyze --table outcomes "
      "STUDY.db --json`, kept with `gepolab results keep`; a study's evaluations and "
      "means are drawn from tables (gepolab study export)",
      s->kept.name);
}

/* --- cells --- */

/* The member of a list's item, as keys have it. Returns key. */
static const char *item_key(char key[KEY_SIZE], const char *list, size_t i, const char *member) {
  snprintf(key, KEY_SIZE, "%.32s[%zu].%.32s", list, i, member);
  return key;
}

/* How many items a list of the cell has, each with that member: curve[0].update and so on. */
static size_t items_of(const stability *s, const stored_cell *c, const char *list,
                       const char *member) {
  char key[KEY_SIZE];
  size_t n = 0;
  while (text_of(s, c, item_key(key, list, n, member)) != NULL) n++;
  return n;
}

static gl_status read_curve(const stability *s, const stored_cell *from, stability_cell *to,
                            gl_error *err) {
  const size_t n = items_of(s, from, "curve", "update");
  char key[KEY_SIZE];
  to->curve = calloc(n + 1, sizeof *to->curve);
  if (to->curve == NULL) return gl_fail_memory(err, "stored outcomes");
  for (size_t i = 0; i < n; i++)
    to->curve[i] =
        (survival_step){.time = number_of(s, from, item_key(key, "curve", i, "update"), NAN),
                        .survival = number_of(s, from, item_key(key, "curve", i, "share"), NAN),
                        .error = number_of(s, from, item_key(key, "curve", i, "error"), NAN)};
  to->n_steps = n;
  return GL_OK;
}

static gl_status read_doses(const stability *s, const stored_cell *from, stability_cell *to,
                            gl_error *err) {
  const size_t n = items_of(s, from, "doses", "dose");
  char key[KEY_SIZE];
  to->dose = calloc(n + 1, sizeof *to->dose);
  to->last = calloc(n + 1, sizeof *to->last);
  if (to->dose == NULL || to->last == NULL) return gl_fail_memory(err, "stored outcomes");
  for (size_t i = 0; i < n; i++) {
    to->dose[i].x = log(number_of(s, from, item_key(key, "doses", i, "dose"), NAN));
    to->dose[i].runs = count_of(s, from, item_key(key, "doses", i, "runs"));
    to->dose[i].falls = count_of(s, from, item_key(key, "doses", i, "falls"));
    to->last[i] = interval_of(s, from, item_key(key, "doses", i, "last"), NAN);
  }
  to->n_doses = to->best_dose = n;
  const double best = log(number_of(s, from, "best_dose", NAN));
  for (size_t i = 0; i < n; i++)
    if (to->dose[i].x == best) to->best_dose = i;
  return GL_OK;
}

static gl_status read_cell(const stability *s, const stored_cell *from, stability_cell *to,
                           gl_error *err) {
  to->runs = count_of(s, from, "runs");
  to->failed = count_of(s, from, "failed");
  to->lost_start = count_of(s, from, "lost_start");
  for (outcome o = 0; o < OUTCOME_COUNT; o++) {
    char key[64];
    snprintf(key, sizeof key, "outcomes.%s", outcome_name(o));
    to->count[o] = count_of(s, from, key);
  }
  to->falls = to->lost_start + to->count[OUTCOME_EARLY_FALL] + to->count[OUTCOME_LATE_FALL] +
              to->count[OUTCOME_NOT_FINITE];
  to->fallen = interval_of(s, from, "fallen", NAN);
  to->watched = number_of(s, from, "watched", 0);
  to->median_onset = number_of(s, from, "median_onset", INFINITY);
  to->fit = (dose_fit){.a = NAN, .b = NAN, .log_likelihood = NAN};
  to->fit.runs = to->runs, to->fit.falls = to->falls;
  to->fit.why = text_of(s, from, "why");
  to->falls_at[0] = interval_of(s, from, "falls_10", INFINITY);
  to->falls_at[1] = interval_of(s, from, "falls_50", INFINITY);
  gl_status status = read_curve(s, from, to, err);
  return status == GL_OK ? read_doses(s, from, to, err) : status;
}

/* Algorithms and settings in the order of the cells; 0 if memory is short. */
static int name_texts(stability *s, const stored_cell *cell, size_t n) {
  const char **settings = calloc(n + 1, sizeof *settings);
  s->algorithms = calloc(n + 1, sizeof *s->algorithms);
  s->settings = calloc(n + 1, sizeof *s->settings);
  s->staleness = calloc(n + 1, sizeof *s->staleness);
  int ok = settings != NULL && s->algorithms != NULL && s->settings != NULL && s->staleness != NULL;
  for (size_t i = 0; i < n && ok; i++) {
    const size_t known = s->n_settings;
    text_list_add(s->algorithms, &s->n_algorithms, text_of(s, &cell[i], "algorithm"));
    text_list_add(settings, &s->n_settings, text_of(s, &cell[i], "setting"));
    if (s->n_settings == known) continue;
    s->settings[known] = strdup(settings[known]);
    ok = s->settings[known] != NULL;
  }
  free(settings);
  return ok;
}

/* The cells at their places; where the grid has a hole there are no runs. */
static gl_status place_cells(stability *s, const stored_cell *cell, size_t n, gl_error *err) {
  if (!name_texts(s, cell, n)) return gl_fail_memory(err, "stored outcomes");
  const size_t all = s->n_settings * s->n_algorithms;
  s->cells = calloc(all + 1, sizeof *s->cells);
  if (s->cells == NULL) return gl_fail_memory(err, "stored outcomes");
  for (size_t i = 0; i < all; i++)
    s->cells[i] = (stability_cell){
        .setting = i / s->n_algorithms, .algorithm = i % s->n_algorithms, .median_onset = INFINITY};
  gl_status status = GL_OK;
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    const size_t k = text_list_find((const char *const *)s->settings, s->n_settings,
                                    text_of(s, &cell[i], "setting"));
    const size_t a =
        text_list_find(s->algorithms, s->n_algorithms, text_of(s, &cell[i], "algorithm"));
    stability_cell *to = &s->cells[k * s->n_algorithms + a];
    s->staleness[k] = number_of(s, &cell[i], "staleness", NAN);
    if (to->curve != NULL)
      status = gl_fail(err, GL_EINPUT, "%s has %s twice", s->kept.name, cell[i].prefix);
    else
      status = read_cell(s, &cell[i], to, err);
  }
  return status;
}

static int any_doses(const stability *s) {
  for (size_t i = 0; i < s->n_settings * s->n_algorithms; i++)
    if (s->cells[i].n_doses > 0) return 1;
  return 0;
}

gl_status stability_of_stored(stability *s, stored *kept, gl_error *err) {
  stored_cell *cell = NULL;
  size_t n = 0;
  *s = (stability){.kept = *kept, .rule = outcome_rule_default()};
  *kept = (stored){0};
  s->study = stored_value(&s->kept, "study");
  if (s->study == NULL) s->study = s->kept.name;
  gl_status status = find_cells(s, &cell, &n, err);
  if (status == GL_OK) status = place_cells(s, cell, n, err);
  free(cell);
  s->has_doses = status == GL_OK && any_doses(s);
  return status;
}
