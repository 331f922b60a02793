/* What a study's settings are called. */
#include "analysis/results_internal.h"

#include "core/base/hash.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- words --- */

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

const char *results_value_text(axis_value v) {
  return v.text ? v.text : "not given";
}

/* "max delay 600 s"; of the label its text alone */
static int append_worded(char **heading, const axis *a, axis_value v) {
  const char *text = results_value_text(v);
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
  return !results_same_value(r->groups[g].value[a], r->groups[h].value[a]);
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

/* --- titles --- */

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

/* --- groups --- */

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

gl_status results_name_groups(results *r, gl_error *err) {
  gl_status status = set_axis_label(r) ? GL_OK : gl_fail_memory(err, "the names of axes");
  for (size_t g = 0; g < r->n_groups && status == GL_OK; g++) status = name_group(r, g, err);
  if (status != GL_OK) return status;
  char **titles = results_titles(r, r->axes.n);
  if (!titles) return gl_fail_memory(err, "the settings of a cell");
  for (size_t g = 0; g < r->n_groups; g++) r->groups[g].title = titles[g];
  free(titles);
  return GL_OK;
}
