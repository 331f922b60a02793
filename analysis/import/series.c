/* Series in memory; selection of a series from a table. */
#include "analysis/import/read.h"

#include "core/base/array.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

series_table *series_table_new(void) {
  arena memory = {0};
  series_table *table = ARENA_ARRAY(&memory, series_table, 1);
  if (table) *table = (series_table){.axis = "", .memory = memory};
  return table;
}

void series_table_free(series_table *table) {
  if (!table) return;
  for (size_t i = 0; i < table->n_series; i++)
    free(table->series[i].step), free(table->series[i].value), free(table->series[i].line),
        free(table->series[i].nan_step);
  free(table->series);
  free(table->notes);
  arena_free_owner(&table->memory);
}

gl_status series_note(series_table *table, gl_error *err, const char *format, ...) {
  char text[1500];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  const char **note = ARRAY_ADD(table->notes, table->n_notes);
  if (!note) return gl_fail_memory(err, "notes");
  *note = arena_text(&table->memory, text);
  return arena_check(&table->memory, "notes", err);
}

gl_status series_note_cut(series_table *table, const char *file, gl_error *err) {
  return series_note(
      table, err, "%s: the last line is cut off and was left out; is the run still going?", file);
}

gl_status series_add(series_table *table, const series *like, gl_error *err) {
  arena *m = &table->memory;
  series *s = ARRAY_ADD(table->series, table->n_series);
  if (!s) return gl_fail_memory(err, "series");
  *s = (series){.tag = arena_text(m, like->tag ? like->tag : ""),
                .run = arena_text(m, like->run ? like->run : ""),
                .metric = arena_text(m, like->metric ? like->metric : ""),
                .label = arena_text(m, like->label ? like->label : ""),
                .settings = arena_text(m, like->settings ? like->settings : ""),
                .chosen = arena_text(m, like->chosen ? like->chosen : ""),
                .has_seed = like->has_seed,
                .seed = like->seed};
  return arena_check(m, "series", err);
}

gl_status series_append(series *s, double step, double value, size_t line, gl_error *err) {
  if (isnan(value)) {
    double *to = ARRAY_ADD(s->nan_step, s->n_nan);
    if (!to) return gl_fail_memory(err, "series");
    *to = step;
    return GL_OK;
  }
  size_t n = s->n, n_lines = s->n;
  double *to_step = ARRAY_ADD(s->step, n);
  size_t *to_line = to_step ? ARRAY_ADD(s->line, n_lines) : NULL;
  double *to_value = to_line ? ARRAY_ADD(s->value, s->n) : NULL;
  if (!to_value) return gl_fail_memory(err, "series");
  *to_line = line;
  *to_step = step;
  *to_value = value;
  return GL_OK;
}

bool series_has_component(const char *metric, const char *component) {
  const size_t n = strlen(component);
  for (const char *p = metric; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
    if (strncmp(p, component, n) == 0 && (p[n] == 0 || p[n] == '/')) return true;
  return false;
}

/* Formats "[tag]RUN", or "RUN" without a tag; adds the metric if `whole`. */
enum { FULL_NAME = 3 * IMPORT_MOST_NAME };
static void series_name(const series *s, int whole, char text[FULL_NAME]) {
  snprintf(text, FULL_NAME, "%s%s%s%s%s%s", *s->tag ? "[" : "", s->tag, *s->tag ? "]" : "", s->run,
           whole ? " - " : "", whole ? s->metric : "");
}

static bool has_series_name(const series *s, const char *name) {
  char tagged[FULL_NAME], whole[FULL_NAME];
  if (!name) return true;
  series_name(s, 0, tagged);
  series_name(s, 1, whole);
  return strcmp(name, s->run) == 0 || strcmp(name, tagged) == 0 || strcmp(name, whole) == 0;
}

/* Lists the names of the series with that component, truncated to size. */
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
      if (!has_series_name(&table->series[i], run)) continue;
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
