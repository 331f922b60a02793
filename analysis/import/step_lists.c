/* Metrics as lists over the steps, as MiMo's dashboard serves them: {"steps": [1, 2, …], "series":
 * {"partial/avg_staleness": [0, 0.85, …], …}} (api/series, read 2026-09-17), or, as the archive of
 * huanghw1989/mimo-rl-telemetry keeps them, {"partial/avg_staleness": [0, …], …} with the steps in
 * axis.json beside it. "walls", the times of the epoch at which the steps ended, become time_s. */
#include "analysis/import/log.h"

#include "core/base/array.h"
#include "core/base/records.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct step_axis {
  double *step, *wall; /* [n_step], [n_wall] */
  size_t n_step, n_wall;
  double start; /* NaN: unknown */
} step_axis;

static const char *const axis_keys[] = {"steps", "walls", "run_start", "series"};

/* Whether the first value of a JSON object is a list, without reading the list. */
static bool begins_with_list(const import_file *f) {
  json_reader r;
  char first = '\0';
  if (f->text[f->start] != '{') return false;
  json_begin(&r, f->text + f->start, f->size - f->start, "", NULL);
  json_enter(&r, '{');
  if (json_member(&r)) first = json_peek(&r);
  free(r.word);
  return first == '[';
}

static gl_status recognise_step_lists(bool *is, const import_file *f, gl_error *err) {
  (void)err;
  const log_keys k = log_keys_of(f, axis_keys, 4);
  const bool has_axis = (k.found & 9) == 9;
  *is = k.is_object && (has_axis || (k.found == 0 && f->has_fixed_name && begins_with_list(f)));
  return GL_OK;
}

static void read_axis_list(json_reader *r, double **list, size_t *n) {
  json_enter(r, '[');
  while (json_element(r)) {
    double *value = ARRAY_ADD(*list, *n);
    if (!value)
      r->status = gl_fail_memory(r->err, "steps");
    else
      *value = log_step(r);
  }
}

/* Reads the value of an axis' key; false: the key is another one. */
static bool read_axis_member(step_axis *a, json_reader *r) {
  if (strcmp(r->word, "steps") == 0 && a->n_step == 0)
    read_axis_list(r, &a->step, &a->n_step);
  else if (strcmp(r->word, "walls") == 0 && a->n_wall == 0)
    read_axis_list(r, &a->wall, &a->n_wall);
  else if (strcmp(r->word, "run_start") == 0)
    a->start = log_step(r);
  else
    return false;
  return true;
}

/* Reads the axis of the file itself, or of the file's text if `beside`. */
static gl_status read_axis(step_axis *a, const char *text, size_t size, const char *name,
                           gl_error *err) {
  json_reader r;
  json_begin(&r, text, size, name, err);
  r.python_numbers = 1;
  json_enter(&r, '{');
  while (json_member(&r))
    if (!read_axis_member(a, &r)) json_skip(&r);
  gl_status status = json_end(&r);
  for (size_t i = 1; i < a->n_step && status == GL_OK; i++)
    if (!(a->step[i - 1] < a->step[i]))
      status = gl_fail(err, GL_EINPUT, "%s: \"steps\" are not ascending", name);
  if (status == GL_OK && a->n_step == 0)
    status = gl_fail(err, GL_EINPUT, "%s: there are no \"steps\" in it", name);
  return status;
}

/* The axis of an archive: axis.json in the folder of the file. */
static gl_status read_axis_beside(step_axis *a, const import_file *f, gl_error *err) {
  const char *slash = strrchr(f->name, '/');
  char path[4096];
  char *text = NULL;
  size_t size = 0;
  snprintf(path, sizeof path, "%.*saxis.json", slash ? (int)(slash - f->name) + 1 : 0, f->name);
  if (csv_load(&text, &size, path, NULL) != GL_OK)
    return gl_fail(err, GL_EINPUT,
                   "%s: the lists have no \"steps\", and %.400s cannot be read; put axis.json "
                   "beside the file",
                   f->name, path);
  const gl_status status = read_axis(a, text, size, path, err);
  free(text);
  return status;
}

static void read_step_list(log_builder *b, json_reader *r, const step_axis *a,
                           const char metric[IMPORT_MOST_NAME + 2]) {
  size_t i = 0;
  if (json_peek(r) != '[') {
    json_skip(r);
    b->n_text++;
    return;
  }
  json_enter(r, '[');
  for (; b->status == GL_OK && json_element(r); i++) {
    if (i >= a->n_step) {
      json_fail(r, "'%.60s' has more values than there are steps (%zu)", metric, a->n_step);
      return;
    }
    log_json(b, r, metric, a->step[i]);
  }
  if (r->status == GL_OK && b->status == GL_OK && i < a->n_step)
    json_fail(r, "'%.60s' has %zu values for %zu steps; are they of one version?", metric, i,
              a->n_step);
}

static void read_lists(log_builder *b, json_reader *r, const step_axis *a) {
  json_enter(r, '{');
  while (b->status == GL_OK && json_member(r)) {
    char metric[IMPORT_MOST_NAME + 2];
    snprintf(metric, sizeof metric, "%s", r->word);
    if (r->word_size > IMPORT_MOST_NAME)
      json_fail(r, "the name of a metric is longer than 1000 bytes");
    else
      read_step_list(b, r, a, metric);
  }
}

static gl_status read_list_file(log_builder *b, const step_axis *a, bool has_axis) {
  const import_file *f = b->file;
  json_reader r;
  json_begin(&r, f->text + f->start, f->size - f->start, f->name, b->err);
  r.python_numbers = 1;
  if (!has_axis) {
    read_lists(b, &r, a);
    return json_end(&r);
  }
  json_enter(&r, '{');
  while (b->status == GL_OK && json_member(&r)) {
    if (strcmp(r.word, "series") == 0)
      read_lists(b, &r, a);
    else
      json_skip(&r);
  }
  return json_end(&r);
}

static gl_status read_step_lists(series_table **out, const import_file *f, gl_error *err) {
  const bool has_axis = (log_keys_of(f, axis_keys, 4).found & 8) != 0;
  step_axis a = {.start = NAN};
  log_builder b;
  log_begin(&b, f, err);
  gl_status status = b.status;
  if (status == GL_OK)
    status = has_axis ? read_axis(&a, f->text + f->start, f->size - f->start, f->name, err)
                      : read_axis_beside(&a, f, err);
  if (status == GL_OK) status = read_list_file(&b, &a, has_axis);
  for (size_t i = 0; i < a.n_wall && i < a.n_step && status == GL_OK; i++)
    log_time(&b, a.step[i], a.wall[i] - (isnan(a.start) ? a.wall[0] : a.start));
  free(a.step), free(a.wall);
  return log_end(&b, status, out);
}

const import_format format_step_lists = {.about = "lists over steps, as of MiMo's dashboard",
                                         .fixed_name = "series.json",
                                         .recognise = recognise_step_lists,
                                         .series = read_step_lists};
