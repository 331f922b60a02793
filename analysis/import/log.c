/* Builds series from JSON logs. */
#include "analysis/import/log.h"

#include "core/base/array.h"
#include "core/base/records.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- names of runs --- */

/* Length of a file name without ".gz" or ".zst" and without its extension. */
static size_t stem_length(const char *name, size_t n) {
  static const char *const packed[] = {".gz", ".zst"};
  for (size_t i = 0; i < 2; i++) {
    const size_t m = strlen(packed[i]);
    if (n > m && strncmp(name + n - m, packed[i], m) == 0) n -= m;
  }
  for (size_t i = n; i > 1; i--)
    if (name[i - 1] == '.') return i - 1;
  return n;
}

/* Whether a folder's name does not identify a run, such as that of a checkpoint. */
static bool names_no_run(const char *name, size_t n) {
  static const char *const words[] = {"dashboard", "metrics", "checkpoint-", ".", ".."};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    const size_t m = strlen(words[i]);
    const bool is_prefix = words[i][m - 1] == '-';
    if ((is_prefix ? n > m : n == m) && strncmp(name, words[i], m) == 0) return true;
  }
  return n == 0;
}

/* The name of the run: of "runs/a/metrics.jsonl.gz" "a" if the writer calls every file
 * "metrics.jsonl" (`fixed`), else "metrics". */
static const char *log_run_name(arena *m, const char *path, bool fixed) {
  size_t end = strlen(path), begin = end;
  while (begin > 0 && path[begin - 1] != '/') begin--;
  size_t n = stem_length(path + begin, end - begin), at = begin;
  for (size_t stop = begin; fixed && stop > 1;) {
    end = stop - 1, begin = end;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    if (!names_no_run(path + begin, end - begin)) {
      at = begin, n = end - begin;
      break;
    }
    stop = begin;
  }
  if (n > IMPORT_MOST_NAME) n = IMPORT_MOST_NAME;
  char *name = ARENA_ARRAY(m, char, n + 1);
  if (name) memcpy(name, path + at, n);
  return name;
}

/* --- values --- */

void log_begin(log_builder *b, const import_file *f, gl_error *err) {
  *b = (log_builder){.file = f, .err = err, .table = series_table_new()};
  if (!b->table) {
    b->status = gl_fail_memory(err, "series");
    return;
  }
  b->table->axis = "step";
  b->run = log_run_name(&b->table->memory, f->name, f->has_fixed_name);
  b->status = arena_check(&b->table->memory, "series", err);
}

static bool has_log_metric(const void *table, uint64_t i, const void *key) {
  return strcmp(((const series_table *)table)->series[i].metric, key) == 0;
}

/* Returns the index of the metric's series, which is added if there is none. */
static size_t find_metric(log_builder *b, const char *metric) {
  const uint64_t hash = hash_64_text(HASH_64_START, metric);
  const uint64_t *known = hash_table_find(&b->known, hash, has_log_metric, b->table, metric);
  if (known) return (size_t)*known;
  const size_t i = b->table->n_series;
  if (strlen(metric) > IMPORT_MOST_NAME)
    b->status = gl_fail(b->err, GL_EINPUT, "%s: the name of a metric is longer than 1000 bytes",
                        b->file->name);
  else if (i == IMPORT_MOST_SERIES)
    b->status = gl_fail(b->err, GL_EINPUT, "%s: there are more than %d metrics", b->file->name,
                        (int)IMPORT_MOST_SERIES);
  else
    b->status = series_add(b->table, &(series){.run = b->run, .metric = metric}, b->err);
  if (b->status == GL_OK &&
      (!hash_table_add(&b->known, hash, i) || !ARRAY_ADD(b->values, b->n_values)))
    b->status = gl_fail_memory(b->err, "series");
  return i;
}

void log_value(log_builder *b, const char *metric, double step, double value) {
  if (b->status != GL_OK) return;
  const size_t i = find_metric(b, metric);
  if (b->status != GL_OK) return;
  log_values *v = &b->values[i];
  if (v->n > 0 && step < v->step[v->n - 1]) v->restarts++;
  /* a value that is logged again at the same step, as at the end of an epoch, replaces nothing */
  if (v->n > 0 && step == v->step[v->n - 1] && value == v->value[v->n - 1]) return;
  while (v->n > 0 && step <= v->step[v->n - 1]) v->n--, b->n_replaced++;
  if (!ARRAY_RESERVE(v->step, v->step_room, v->n + 1) ||
      !ARRAY_RESERVE(v->value, v->value_room, v->n + 1) ||
      !ARRAY_RESERVE(v->line, v->line_room, v->n + 1)) {
    b->status = gl_fail_memory(b->err, "series");
    return;
  }
  v->step[v->n] = step;
  v->line[v->n] = b->line;
  v->value[v->n++] = value;
}

void log_time(log_builder *b, double step, double seconds) {
  const size_t n = b->n_replaced;
  log_value(b, "time_s", step, seconds);
  b->n_replaced = n;
}

static void log_members(log_builder *b, json_reader *r, const char *metric, double step) {
  json_enter(r, '{');
  while (b->status == GL_OK && json_member(r)) {
    char path[IMPORT_MOST_NAME + 2];
    const int n = snprintf(path, sizeof path, "%s/%s", metric, r->word);
    if (n < 0 || (size_t)n >= sizeof path)
      json_fail(r, "a key, with those around it, is longer than 1000 bytes");
    else
      log_json(b, r, path, step);
  }
}

/* Sets b->line to the line of the reader's position. Counts from the position of the last call. */
static void count_lines(log_builder *b, const json_reader *r) {
  const bool goes_on = b->counted_text == r->text && b->counted <= r->at;
  if (!goes_on) b->line = r->first_line, b->counted = 0, b->counted_text = r->text;
  for (const char *p = r->text + b->counted, *end = r->text + r->at;
       p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL; ++p)
    ++b->line;
  b->counted = r->at;
}

void log_json(log_builder *b, json_reader *r, const char *metric, double step) {
  count_lines(b, r);
  switch (json_peek(r)) {
  case '{':
    log_members(b, r, metric, step);
    return;
  case 't':
  case 'f':
    log_value(b, metric, step, json_truth(r));
    return;
  case 'n':
    json_null(r);
    if (b->null_is_nan)
      log_value(b, metric, step, NAN);
    else
      b->n_null++;
    return;
  case '[':
  case '"':
    json_skip(r);
    b->n_text++;
    return;
  default: {
    const double value = json_real(r);
    if (r->status == GL_OK) log_value(b, metric, step, value);
  }
  }
}

double log_step(json_reader *r) {
  const size_t at = r->at;
  const double step = json_real(r);
  if (r->status == GL_OK && !isfinite(step)) json_fail_at(r, at, "a step is a finite number");
  return step;
}

/* --- the end --- */

static gl_status fill_series(log_builder *b) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < b->n_values; i++) {
    const log_values *v = &b->values[i];
    for (size_t k = 0; k < v->n && status == GL_OK; k++)
      status = series_append(&b->table->series[i], v->step[k], v->value[k], v->line[k], b->err);
    /* a log of two writers has the times of both at their own steps, so time_s may go back without
     * a restart */
    const bool is_time = strcmp(b->table->series[i].metric, "time_s") == 0;
    if (!is_time && v->restarts > b->table->n_restarts) b->table->n_restarts = v->restarts;
  }
  return status;
}

gl_status log_end(log_builder *b, gl_status status, series_table **out) {
  *out = NULL;
  if (status == GL_OK) status = b->status;
  if (status == GL_OK && b->table->n_series == 0)
    status =
        gl_fail(b->err, GL_EINPUT, "%s: there is no number in it beside the step", b->file->name);
  if (status == GL_OK) status = fill_series(b);
  if (status == GL_OK && b->n_replaced > 0)
    status = series_note(b->table, b->err,
                         "%s: %zu values were written again at steps that the log had reached "
                         "(%zu restarts); the later values are used",
                         b->file->name, b->n_replaced, b->table->n_restarts);
  if (b->table) b->table->n_left_out = b->n_text + b->n_null;
  for (size_t i = 0; i < b->n_values; i++)
    free(b->values[i].step), free(b->values[i].value), free(b->values[i].line);
  free(b->values);
  hash_table_fini(&b->known);
  if (status == GL_OK)
    *out = b->table;
  else
    series_table_free(b->table);
  b->table = NULL;
  return status;
}

/* --- lines --- */

static bool is_complete_line(const char *text, size_t size) {
  json_reader r;
  json_begin(&r, text, size, "", NULL);
  r.python_numbers = 1;
  json_skip(&r);
  return json_end(&r) == GL_OK;
}

static gl_status read_log_line(const import_file *f, const char *at, size_t size, size_t line,
                               log_line *read_line, void *context, gl_error *err) {
  json_reader r;
  json_begin(&r, at, size, f->name, err);
  r.first_line = line;
  r.python_numbers = 1;
  if (json_peek(&r) != '{')
    json_fail(&r, "this line is not a JSON object; %s",
              at == f->text + f->start /* no such file is taken for a log by its content */
                  ? "--log-format names the format of another file: leave it out"
                  : "the log is damaged, copy it again");
  const gl_status status = r.status == GL_OK ? read_line(context, &r, line) : GL_OK;
  const gl_status ended = json_end(&r);
  return status == GL_OK ? ended : status;
}

gl_status log_lines(const import_file *f, log_line *read_line, void *context, bool *cut,
                    gl_error *err) {
  const char *end = f->text + f->size;
  gl_status status = GL_OK;
  size_t line = 0;
  *cut = false;
  for (const char *p = f->text, *next; p < end && status == GL_OK; p = next) {
    const char *newline = memchr(p, '\n', (size_t)(end - p)), *stop = newline ? newline : end;
    next = newline ? newline + 1 : end;
    line++;
    if (line == 1 && stop - p >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0) p += 3;
    while (p < stop && memchr(" \t\r", *p, 3)) p++;
    if (p == stop) continue;
    if (stop - p > CSV_LINE_LIMIT)
      return gl_fail(err, GL_EINPUT, "%s:%zu:1: the line is longer than 10 MiB", f->name, line);
    if (!newline && !is_complete_line(p, (size_t)(stop - p))) {
      *cut = true;
      return GL_OK;
    }
    status = read_log_line(f, p, (size_t)(stop - p), line, read_line, context, err);
  }
  return status;
}

gl_status log_read(log_builder *b, log_line *read_line, void *context, series_table **out) {
  bool cut = false;
  gl_status status = b->status;
  if (status == GL_OK) status = log_lines(b->file, read_line, context, &cut, b->err);
  if (status == GL_OK && cut) status = series_note_cut(b->table, b->file->name, b->err);
  return log_end(b, status, out);
}

/* --- recognition --- */

log_keys log_keys_of(const import_file *f, const char *const *keys, size_t n) {
  log_keys k = {.is_object = false, .second = NAN};
  json_reader r;
  size_t count = 0;
  if (f->start == f->size || f->text[f->start] != '{') return k;
  json_begin(&r, f->text + f->start, f->size - f->start, "", NULL);
  r.python_numbers = 1;
  json_enter(&r, '{');
  for (; json_member(&r); count++) {
    size_t i = 0;
    if (count < 2) snprintf(k.first[count], sizeof k.first[count], "%.60s", r.word);
    while (i < n && strcmp(keys[i], r.word) != 0) i++;
    if (i < n)
      k.found |= UINT32_C(1) << i;
    else
      k.n_others++;
    const char value = json_peek(&r);
    if (count == 1 && (value == '-' || (value >= '0' && value <= '9')))
      k.second = json_real(&r);
    else
      json_skip(&r);
  }
  k.is_object = r.status == GL_OK && count > 0;
  free(r.word);
  return k;
}
