/* Series in memory, and choosing one of a table. */
#include "analysis/import/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void series_fini(series *s) {
  free(s->tag), free(s->run), free(s->metric), free(s->label), free(s->settings), free(s->chosen);
  free(s->step), free(s->value);
  *s = (series){0};
}

void series_table_free(series_table *table) {
  if (!table) return;
  for (size_t i = 0; i < table->n_series; i++) series_fini(&table->series[i]);
  free(table->series), free(table->axis), free(table);
}

int series_append(series *s, double step, double value) {
  if ((s->n & (s->n - 1)) == 0) { /* grows at powers of two */
    const size_t room = s->n == 0 ? 1 : 2 * s->n;
    if (room > (size_t)-1 / sizeof *s->step) return 0;
    double *steps = realloc(s->step, room * sizeof *steps);
    if (steps) s->step = steps;
    double *values = steps ? realloc(s->value, room * sizeof *values) : NULL;
    if (!values) return 0;
    s->value = values;
  }
  s->step[s->n] = step;
  s->value[s->n++] = value;
  return 1;
}

int series_has_component(const char *metric, const char *component) {
  const size_t n = strlen(component);
  for (const char *p = metric; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
    if (strncmp(p, component, n) == 0 && (p[n] == 0 || p[n] == '/')) return 1;
  return 0;
}

/* "[tag]RUN", without brackets where there is no tag; with the metric where `whole`. */
enum { FULL_NAME = 3 * IMPORT_MOST_NAME };
static void series_name(const series *s, int whole, char text[FULL_NAME]) {
  snprintf(text, FULL_NAME, "%s%s%s%s%s%s", *s->tag ? "[" : "", s->tag, *s->tag ? "]" : "", s->run,
           whole ? " - " : "", whole ? s->metric : "");
}

static int is_named(const series *s, const char *name) {
  char tagged[FULL_NAME], whole[FULL_NAME];
  if (!name) return 1;
  series_name(s, 0, tagged);
  series_name(s, 1, whole);
  return strcmp(name, s->run) == 0 || strcmp(name, tagged) == 0 || strcmp(name, whole) == 0;
}

/* The names of the series with that component, cut where the room ends. */
static void list_series(const series_table *t, const char *component, char *list, size_t size) {
  size_t n = 0;
  *list = 0;
  for (size_t i = 0; i < t->n_series && n < size; i++) {
    char name[FULL_NAME];
    if (!series_has_component(t->series[i].metric, component)) continue;
    series_name(&t->series[i], 1, name);
    n += (size_t)snprintf(list + n, size - n, "%s'%s'", n ? ", " : "", name);
  }
  if (n >= size && size > 3) strcpy(list + size - 4, "...");
}

gl_status series_choose(const series **out, const series_table *table,
                        const char *const *components, size_t n, const char *run, const char *file,
                        gl_error *err) {
  size_t matches = 0, metrics = 0;
  const char *component = NULL;
  *out = NULL;
  for (size_t k = 0; k < n && metrics == 0; k++) {
    component = components[k];
    for (size_t i = 0; i < table->n_series; i++) {
      if (!series_has_component(table->series[i].metric, component)) continue;
      metrics++;
      if (!is_named(&table->series[i], run)) continue;
      *out = &table->series[i];
      matches++;
    }
  }
  if (matches == 1) return GL_OK;
  *out = NULL;
  if (metrics == 0) {
    char list[256];
    size_t at = 0;
    for (size_t k = 0; k < n && at < sizeof list; k++)
      at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", k ? " or " : "", components[k]);
    return gl_fail(err, GL_EINPUT, "%s: no run has a metric %s; export that panel", file, list);
  }
  char list[400];
  list_series(table, component, list, sizeof list);
  if (matches == 0)
    return gl_fail(err, GL_EINPUT, "%s: no run '%s' has %s; there are: %s", file, run, component,
                   list);
  return gl_fail(err, GL_EINPUT,
                 "%s: %zu series of %s%s%s%s, and which one is meant is not said; "
                 "name its run, one of: %s",
                 file, matches, component, run ? " match '" : " are in the file", run ? run : "",
                 run ? "'" : "", list);
}
