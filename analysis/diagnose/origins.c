/* Finds the origin of a number in the logs: lines of files, or steps if the format has no lines. */
#include "analysis/diagnose/internal.h"
#include "core/base/array.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PLACE = 700 };

/* Shortens *n to the folders that the path has in common with `first`, up to a slash. */
static void shorten_prefix(size_t *n, const char *first, const char *path) {
  size_t same = 0;
  while (same < *n && path[same] == first[same]) ++same;
  while (same > 0 && first[same - 1] != '/') --same;
  *n = same;
}

/* Bytes of the folders that all files of the logs have in common. */
static size_t common_prefix(const diagnosis *d) {
  const char *first = d->n_updates > 0 ? d->place[0].first_file : NULL;
  if (first == NULL) first = d->n_series > 0 ? d->series[0].from->file : "";
  const char *slash = strrchr(first, '/');
  size_t n = slash != NULL ? (size_t)(slash - first) + 1 : 0;
  for (size_t u = 0; u < d->n_updates; ++u)
    if (d->place[u].n > 0) {
      shorten_prefix(&n, first, d->place[u].first_file);
      shorten_prefix(&n, first, d->place[u].last_file);
    }
  for (size_t i = 0; d->gathered != NULL && i < d->gathered->n_series; ++i)
    shorten_prefix(&n, first, d->gathered->series[i].file);
  return n;
}

/* "FILE:7", "FILE:7-90", "FIRST:1 to LAST:64", followed by "(9 lines)" where the number of lines
 * does not follow from the two ends. */
static void write_place(char *text, size_t size, const log_position *p, size_t n_prefix) {
  const char *first = p->first_file + n_prefix, *last = p->last_file + n_prefix;
  int n = snprintf(text, size, "%s:%zu", first, p->first);
  const bool is_one_file = strcmp(p->first_file, p->last_file) == 0;
  if (n > 0 && (size_t)n < size && !is_one_file)
    n += snprintf(text + n, size - (size_t)n, " to %s:%zu", last, p->last);
  else if (n > 0 && (size_t)n < size && p->last > p->first)
    n += snprintf(text + n, size - (size_t)n, "-%zu", p->last);
  if (n > 0 && (size_t)n < size && (!is_one_file || p->n != p->last - p->first + 1))
    snprintf(text + n, size - (size_t)n, " (%zu lines)", p->n);
}

/* The range from the first line of a to the last line of b. */
static log_position joined_position(const log_position *a, const log_position *b, size_t n) {
  return (log_position){a->first_file, b->last_file, a->first, b->last, n};
}

static void write_series_position(char *text, size_t size, const gathered_series *s) {
  size_t first = SIZE_MAX, last = 0, n = 0;
  for (size_t i = 0; i < s->n; ++i) {
    if (s->line[i] == 0) continue;
    first = s->line[i] < first ? s->line[i] : first;
    last = s->line[i] > last ? s->line[i] : last;
    ++n;
  }
  if (n > 0 && last > first)
    write_place(text, size, &(log_position){s->file, s->file, first, last, n}, 0);
  else if (n > 0)
    snprintf(text, size, "%s:%zu, steps %g to %g (%zu values)", s->file, first, s->step[0],
             s->step[s->n - 1], s->n);
  else
    snprintf(text, size, "%s, steps %g to %g (%zu values)", s->file, s->step[0], s->step[s->n - 1],
             s->n);
}

void position_of_update(char text[DIAGNOSE_POSITION_SIZE], const diagnosis *d, size_t u) {
  const log_position *p = &d->place[u];
  if (p->n > 0)
    write_place(text, DIAGNOSE_POSITION_SIZE, p, d->n_prefix);
  else
    snprintf(text, DIAGNOSE_POSITION_SIZE, "step %g", d->update[u].step);
}

void position_of_value(char text[DIAGNOSE_POSITION_SIZE], const diagnosis *d,
                       const gathered_series *s, size_t i) {
  const bool is_list = s->n > 1 && s->line[0] == s->line[s->n - 1]; /* all values are in one line */
  if (s->line[i] > 0 && !is_list)
    snprintf(text, DIAGNOSE_POSITION_SIZE, "%s:%zu", s->file + d->n_prefix, s->line[i]);
  else
    snprintf(text, DIAGNOSE_POSITION_SIZE, "%s, step %g", s->file + d->n_prefix, s->step[i]);
}

/* --- the list of sources --- */

static gl_status add_source(diagnosis *d, const char *text, gl_error *err) {
  for (size_t i = 0; i < d->n_sources; ++i)
    if (strcmp(d->source[i], text) == 0) return GL_OK;
  const char **to = ARRAY_ADD(d->source, d->n_sources);
  if (to == NULL) return gl_fail_memory(err, "the lines of a log");
  *to = arena_text(&d->memory, text);
  return arena_check(&d->memory, "the lines of a log", err);
}

gl_status sources_finish(diagnosis *d, gl_error *err) {
  char text[MOST_PLACE];
  gl_status status = GL_OK;
  size_t n = 0;
  for (size_t u = 0; u < d->n_updates; ++u) n += d->place[u].n;
  d->n_prefix = common_prefix(d);
  d->has_token_source = n > 0;
  if (n > 0) {
    const log_position all = joined_position(&d->place[0], &d->place[d->n_updates - 1], n);
    write_place(text, sizeof text, &all, 0);
    status = add_source(d, text, err);
  }
  for (size_t i = 0; i < d->n_series && status == GL_OK; ++i) {
    write_series_position(text, sizeof text, d->series[i].from);
    status = add_source(d, text, err);
  }
  return status;
}

origin origin_of_tokens(const diagnosis *d, const char *name) {
  if (!d->has_token_source) return (origin){.field = name};
  return (origin){.field = name, .lines = d->source[0], .ref = 1};
}

origin origin_of_series(const diagnosis *d, const gathered_series *s, const char *name) {
  char text[MOST_PLACE];
  write_series_position(text, sizeof text, s);
  for (size_t i = 0; i < d->n_sources; ++i)
    if (strcmp(d->source[i], text) == 0)
      return (origin){.field = name, .lines = d->source[i], .ref = i + 1};
  return (origin){.field = name};
}

origin origin_of_all_series(const diagnosis *d, const char *name, char *lines, size_t size) {
  size_t n = 0;
  for (size_t i = d->has_token_source; i < d->n_sources && n < size; ++i)
    n += (size_t)snprintf(lines + n, size - n, "%s%s", n > 0 ? "; " : "", d->source[i]);
  return (origin){.field = name, .lines = n > 0 ? lines : NULL, .ref = 0};
}

void origin_cells(table *t, const origin *from) {
  table_text(t, from->field);
  if (from->ref > 0)
    table_shown(t, "%s [%zu]", from->field, from->ref);
  else if (from->lines != NULL && strlen(from->lines) < 60)
    table_shown(t, "%s, %s", from->field, from->lines);
  table_text(t, from->lines);
}

void sources_table(table *to, const diagnosis *d) {
  static const table_column columns[] = {{"source", TABLE_INTEGER, .head = "source"},
                                         {"lines", TABLE_TEXT, .head = "lines"}};
  table *t = table_rows(table_field(to, "sources"), columns, 2);
  table_gap(t);
  for (size_t i = 0; i < d->n_sources; ++i) {
    table_row(t);
    table_count(t, i + 1);
    table_shown(t, "[%zu]", i + 1);
    table_text(t, d->source[i]);
  }
  for (size_t c = 0; c < 2 && d->n_sources == 0; ++c) table_hide_head(t, c);
}
