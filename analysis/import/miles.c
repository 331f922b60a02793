/* The metrics of miles' dashboard, metrics.jsonl: {"ts", "step_key", "step", "metrics": {…}} a
 * line. "rollout/step" counts rollouts, "train/step" optimiser steps; of a log with both, time_s is
 * the time of the rollouts' lines since the first line. */
#include "analysis/import/miles.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- which stream a file is --- */

enum { MILES_MOST_KEYS = 7 };
static const char *const stream_keys[MILES_STREAMS][MILES_MOST_KEYS] = {
    [MILES_METRICS] = {"ts", "step_key", "step", "metrics"},
    [MILES_TRAJECTORIES] = {"ts", "kind", "sample_index", "group_index", "turn", "weight_version",
                            "detail"},
    [MILES_PHASES] = {"name", "t0", "t1", "node", "gpus", "rank", "role"},
    [MILES_DATA_BUFFER] = {"ts", "length"}};

static size_t n_stream_keys(miles_stream s) {
  size_t n = 0;
  while (n < MILES_MOST_KEYS && stream_keys[s][n]) n++;
  return n;
}

miles_stream miles_stream_of(const import_file *f) {
  for (int s = 0; s < MILES_STREAMS; s++) {
    const size_t n = n_stream_keys((miles_stream)s);
    const log_keys k = log_keys_of(f, stream_keys[s], n);
    if (k.is_object && k.n_others == 0 && k.found == (UINT32_C(1) << n) - 1) return (miles_stream)s;
  }
  return MILES_STREAMS;
}

size_t miles_key(json_reader *r, miles_stream s) {
  const size_t n = n_stream_keys(s);
  for (size_t i = 0; i < n; i++)
    if (strcmp(stream_keys[s][i], r->word) == 0) return i;
  json_fail(r, "miles 0.1 does not write '%.60s' here; a newer version may have renamed a field",
            r->word);
  return n;
}

void miles_check_keys(json_reader *r, miles_stream s, uint32_t found) {
  for (size_t i = 0; i < n_stream_keys(s); i++)
    if (!(found >> i & 1))
      json_fail(r,
                "this line has no \"%s\", which miles 0.1 writes; a newer version may have "
                "renamed it",
                stream_keys[s][i]);
}

/* --- metrics --- */

typedef struct miles_metrics {
  log_builder b;
  double first_ts, most[2]; /* largest step of rollouts and of optimiser steps; NaN: none */
  size_t n_without_step;
} miles_metrics;

static void read_miles_metrics(miles_metrics *m, json_reader *r, double ts, double step,
                               bool is_optimiser) {
  if (isnan(step)) {
    m->n_without_step++;
    json_skip(r);
    return;
  }
  if (isnan(m->first_ts)) m->first_ts = ts;
  m->most[is_optimiser] = fmax(m->most[is_optimiser], step);
  if (!is_optimiser || isnan(m->most[0])) log_time(&m->b, step, ts - m->first_ts);
  json_enter(r, '{');
  while (m->b.status == GL_OK && json_member(r)) {
    char metric[IMPORT_MOST_NAME + 2];
    snprintf(metric, sizeof metric, "%s", r->word);
    if (r->word_size > IMPORT_MOST_NAME)
      json_fail(r, "the name of a metric is longer than 1000 bytes");
    else
      log_json(&m->b, r, metric, step);
  }
}

static gl_status read_miles_line(void *context, json_reader *r, size_t line) {
  miles_metrics *m = context;
  uint32_t found = 0;
  double ts = NAN, step = NAN;
  bool is_optimiser = false;
  (void)line;
  json_enter(r, '{');
  while (m->b.status == GL_OK && json_member(r)) {
    const size_t i = miles_key(r, MILES_METRICS);
    if (r->status != GL_OK) break;
    found |= UINT32_C(1) << i;
    if (i == 3) {
      miles_check_keys(r, MILES_METRICS, found); /* the metrics come last */
      read_miles_metrics(m, r, ts, step, is_optimiser);
    } else if (json_peek(r) == 'n') {
      json_null(r);
    } else if (i == 1) {
      json_string(r);
      is_optimiser = r->status == GL_OK && strcmp(r->word, "train/step") == 0;
    } else {
      const double value = log_step(r);
      *(i == 0 ? &ts : &step) = value;
    }
  }
  miles_check_keys(r, MILES_METRICS, found);
  if (isnan(ts)) json_fail(r, "\"ts\" is null");
  return m->b.status;
}

static gl_status recognise_miles(bool *is, const import_file *f, gl_error *err) {
  (void)err;
  *is = miles_stream_of(f) == MILES_METRICS;
  return GL_OK;
}

static gl_status read_miles(series_table **out, const import_file *f, gl_error *err) {
  miles_metrics m = {.first_ts = NAN, .most = {NAN, NAN}};
  log_begin(&m.b, f, err);
  gl_status status = log_read(&m.b, read_miles_line, &m, out);
  if (status == GL_OK && m.n_without_step > 0)
    status = series_note(*out, err, "%s: %zu lines have no step and were left out", f->name,
                         m.n_without_step);
  if (status == GL_OK && m.most[1] > m.most[0])
    status = series_note(*out, err,
                         "%s: metrics of training count optimiser steps (up to %.0f), the others "
                         "rollouts (up to %.0f)",
                         f->name, m.most[1], m.most[0]);
  if (status != GL_OK) series_table_free(*out), *out = NULL;
  return status;
}

const import_format format_miles = {.about = "metrics of miles' dashboard (metrics.jsonl)",
                                    .fixed_name = "metrics.jsonl",
                                    .recognise = recognise_miles,
                                    .series = read_miles};
