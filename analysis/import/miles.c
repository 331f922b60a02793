/* The metrics of miles' dashboard, metrics.jsonl: {"ts", "step_key", "step", "metrics": {…}} a
 * line. "rollout/step" counts rollouts, "train/step" optimiser steps. If a log has both, the series
 * time_s has the times of the rollouts only; times are since the first line. */
#include "analysis/import/log.h"
#include "core/base/array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- which stream a file is --- */

/* The files (streams) that miles writes to DIR/dashboard with --dump-details DIR. miles 0.1.0 at
 * 31f1ca9, miles/dashboard/store.py. */
typedef enum miles_stream {
  MILES_METRICS,
  MILES_TRAJECTORIES,
  MILES_PHASES,
  MILES_DATA_BUFFER,
  MILES_STREAMS
} miles_stream;

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

/* Returns the stream whose keys are exactly those of the first line; MILES_STREAMS: there is none.
 */
static miles_stream miles_stream_of(const import_file *f) {
  for (int s = 0; s < MILES_STREAMS; s++) {
    const size_t n = n_stream_keys((miles_stream)s);
    const log_keys k = log_keys_of(f, stream_keys[s], n);
    if (k.is_object && k.n_others == 0 && k.found == (UINT32_C(1) << n) - 1) return (miles_stream)s;
  }
  return MILES_STREAMS;
}

/* Index of the key in r->word among those of the stream; fails at another one. */
static size_t miles_key(json_reader *r, miles_stream s) {
  const size_t n = n_stream_keys(s);
  for (size_t i = 0; i < n; i++)
    if (strcmp(stream_keys[s][i], r->word) == 0) return i;
  json_fail(r, "miles 0.1 does not write '%.60s' here; a newer version may have renamed a field",
            r->word);
  return n;
}

/* Fails if a line lacks a key. found: bit i for key i. */
static void miles_check_keys(json_reader *r, miles_stream s, uint32_t found) {
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

/* --- events --- */

/* The events of miles' dashboard as rows. A row of trajectories is one attempt at a sample, with
 * times in seconds: request (from start to end of the attempt), response (generation), tools (tool
 * calls); span is the number of versions by which the weights changed during the attempt. A row of
 * phases has the seconds of one interval in the column of its name. */

/* --- trajectories --- */

typedef struct miles_event {
  double ts, sample, group, turn;
  char kind[16];
  long version; /* -1: unknown */
} miles_event;

/* An attempt that has begun. */
typedef struct attempt {
  double sample, group, start, gen_start, tool_start; /* NaN: no such span is open */
  double response, tools;
  double coarse_start; /* start of generation of a single-turn attempt; its end is not logged */
  bool has_turns, has_tools;
  long first_version, last_version;
} attempt;

typedef struct trajectories {
  FILE *to;
  attempt *open;
  size_t n_open;
  hash_table of_sample;
  size_t n;
  gl_error *err;
} trajectories;

static bool is_attempt_of(const void *t, uint64_t i, const void *sample) {
  return ((const trajectories *)t)->open[i].sample == *(const double *)sample;
}

static attempt attempt_from(double sample, double group, double start, long version) {
  return (attempt){.sample = sample,
                   .group = group,
                   .start = start,
                   .gen_start = NAN,
                   .tool_start = NAN,
                   .coarse_start = NAN,
                   .first_version = version,
                   .last_version = version};
}

/* The attempt of the sample; added if there is none. NULL if memory runs out. */
static attempt *attempt_of(trajectories *t, double sample) {
  const uint64_t hash = hash_64(HASH_64_START, &sample, sizeof sample);
  const uint64_t *i = hash_table_find(&t->of_sample, hash, is_attempt_of, t, &sample);
  if (i) return &t->open[*i];
  attempt *a = ARRAY_ADD(t->open, t->n_open);
  if (!a || !hash_table_add(&t->of_sample, hash, t->n_open - 1)) return NULL;
  *a = attempt_from(sample, -1, NAN, -1);
  return a;
}

/* Writes an attempt; nothing if it began before the log. */
static void end_attempt(trajectories *t, attempt *a, double end) {
  /* The log has no end of generation for a single-turn attempt: it ends with the attempt. */
  const double response = a->has_turns ? a->response : end - a->coarse_start;
  char text[4][NUMBER_TEXT_SIZE];
  if (isnan(a->start)) return;
  fprintf(t->to, "%s,%s,%s,", number_text(a->sample, text[0]), number_text(a->group, text[1]),
          number_text(end - a->start, text[2]));
  if (!isnan(response)) fputs(number_text(response, text[3]), t->to);
  fprintf(t->to, ",%s,", a->has_tools ? number_text(a->tools, text[0]) : "");
  if (a->first_version >= 0) fprintf(t->to, "%ld", a->last_version - a->first_version);
  fputc('\n', t->to);
  a->start = NAN;
  t->n++;
}

static void add_span(double *sum, double *start, double end) {
  if (!isnan(*start) && end >= *start) *sum += end - *start;
  *start = NAN;
}

static gl_status add_event(trajectories *t, const miles_event *e, json_reader *r) {
  attempt *a = attempt_of(t, e->sample);
  if (!a) return gl_fail_memory(t->err, "attempts");
  if (e->version >= 0) {
    if (a->first_version < 0) a->first_version = e->version;
    a->last_version = e->version;
  }
  if (strcmp(e->kind, "attempt_start") == 0) {
    *a = attempt_from(e->sample, e->group, e->ts, e->version);
  } else if (strcmp(e->kind, "attempt_end") == 0) {
    if (!isnan(a->start) && e->ts < a->start)
      json_fail(r, "an attempt ends before it begins; is the log damaged?");
    else
      end_attempt(t, a, e->ts);
  } else if (strcmp(e->kind, "gen_start") == 0) {
    *(e->turn > 0 ? &a->gen_start : &a->coarse_start) = e->ts;
  } else if (strcmp(e->kind, "gen_end") == 0) {
    a->has_turns = true;
    add_span(&a->response, e->turn > 0 ? &a->gen_start : &a->coarse_start, e->ts);
  } else if (strcmp(e->kind, "tool_start") == 0) {
    a->tool_start = e->ts;
  } else if (strcmp(e->kind, "tool_end") == 0) {
    a->has_tools = true;
    add_span(&a->tools, &a->tool_start, e->ts);
  } else {
    json_fail(r,
              "'%.30s' is no kind of event that miles 0.1 writes; a newer version may have "
              "renamed it",
              e->kind);
  }
  return GL_OK;
}

static void read_event_text(json_reader *r, size_t key, miles_event *e) {
  json_string(r);
  if (r->status != GL_OK) return;
  if (key == 1) snprintf(e->kind, sizeof e->kind, "%s", r->word);
  if (key == 5 && r->word_size > 0 && r->word_size < 10 &&
      strspn(r->word, "0123456789") == r->word_size)
    e->version = strtol(r->word, NULL, 10);
}

static gl_status read_miles_event(void *context, json_reader *r, size_t line) {
  miles_event e = {.version = -1};
  uint32_t found = 0;
  (void)line;
  json_enter(r, '{');
  while (json_member(r)) {
    const size_t i = miles_key(r, MILES_TRAJECTORIES);
    if (r->status != GL_OK) break;
    found |= UINT32_C(1) << i;
    if (i == 1 || i >= 5)
      read_event_text(r, i, &e);
    else
      *(i == 0 ? &e.ts : i == 2 ? &e.sample : i == 3 ? &e.group : &e.turn) = log_step(r);
  }
  miles_check_keys(r, MILES_TRAJECTORIES, found);
  return r->status == GL_OK ? add_event(context, &e, r) : GL_OK;
}

static gl_status write_trajectories(FILE *to, const import_file *f, gl_error *err) {
  trajectories t = {.to = to, .err = err};
  bool cut = false;
  fputs("sample,group,request,response,tools,span\n", to);
  gl_status status = log_lines(f, read_miles_event, &t, &cut, err);
  if (status == GL_OK && t.n == 0)
    status = gl_fail(err, GL_EINPUT, "%s: no attempt begins and ends in it; give the whole folder",
                     f->name);
  free(t.open);
  hash_table_fini(&t.of_sample);
  return status;
}

/* --- phases and the buffer --- */

typedef struct miles_phase {
  char *name;
  double seconds;
} miles_phase;

typedef struct phases {
  miles_phase *of;
  size_t n;
  gl_error *err;
} phases;

static gl_status read_miles_phase(void *context, json_reader *r, size_t line) {
  phases *p = context;
  double t0 = NAN, t1 = NAN;
  char name[64] = "";
  uint32_t found = 0;
  (void)line;
  json_enter(r, '{');
  while (json_member(r)) {
    const size_t i = miles_key(r, MILES_PHASES);
    if (r->status != GL_OK) break;
    found |= UINT32_C(1) << i;
    if (i == 1 || i == 2) {
      *(i == 1 ? &t0 : &t1) = log_step(r);
    } else if (i == 0) {
      json_string(r);
      if (r->status == GL_OK) snprintf(name, sizeof name, "%s", r->word);
    } else {
      json_skip(r);
    }
  }
  miles_check_keys(r, MILES_PHASES, found);
  if (r->status != GL_OK || t1 == -1) return GL_OK; /* not ended: a later line has the end */
  if (!(t1 >= t0)) json_fail(r, "a phase ends before it begins; is the log damaged?");
  if (*name == '\0' || strpbrk(name, ",\"\r\n")) json_fail(r, "a phase has no name");
  if (r->status != GL_OK) return GL_OK;
  miles_phase *added = ARRAY_ADD(p->of, p->n);
  if (!added || !(added->name = strdup(name))) return gl_fail_memory(p->err, "phases");
  added->seconds = t1 - t0;
  return GL_OK;
}

/* Writes the headings, one for each name; *n receives how many there are. */
static const char **write_phase_names(FILE *to, const phases *p, size_t *n) {
  const char **names = NULL;
  *n = 0;
  for (size_t i = 0; i < p->n; i++) {
    size_t k = 0;
    while (k < *n && strcmp(names[k], p->of[i].name) != 0) k++;
    if (k < *n || *n == IMPORT_MOST_COLUMNS - 1) continue;
    const char **added = ARRAY_ADD(names, *n);
    if (!added) break;
    *added = p->of[i].name;
    fprintf(to, "%s,", *added);
  }
  fputs("phase\n", to);
  return names;
}

static gl_status write_phases(FILE *to, const import_file *f, gl_error *err) {
  phases p = {.err = err};
  size_t n = 0;
  bool cut = false;
  gl_status status = log_lines(f, read_miles_phase, &p, &cut, err);
  if (status == GL_OK && p.n == 0)
    status = gl_fail(err, GL_EINPUT, "%s: no phase has ended in it", f->name);
  const char **names = status == GL_OK ? write_phase_names(to, &p, &n) : NULL;
  for (size_t i = 0; i < p.n; i++) {
    char text[NUMBER_TEXT_SIZE];
    for (size_t k = 0; k < n; k++)
      fprintf(to, "%s,",
              strcmp(names[k], p.of[i].name) == 0 ? number_text(p.of[i].seconds, text) : "");
    fprintf(to, "%s\n", p.of[i].name);
  }
  for (size_t i = 0; i < p.n; i++) free(p.of[i].name);
  free(names);
  free(p.of);
  return status;
}

static gl_status read_miles_buffer(void *context, json_reader *r, size_t line) {
  double value[2] = {NAN, NAN};
  char text[2][NUMBER_TEXT_SIZE];
  uint32_t found = 0;
  (void)line;
  json_enter(r, '{');
  while (json_member(r)) {
    const size_t i = miles_key(r, MILES_DATA_BUFFER);
    if (r->status != GL_OK) break;
    found |= UINT32_C(1) << i;
    value[i] = log_step(r);
  }
  miles_check_keys(r, MILES_DATA_BUFFER, found);
  if (r->status == GL_OK)
    fprintf(context, "%s,%s\n", number_text(value[0], text[0]), number_text(value[1], text[1]));
  return GL_OK;
}

static gl_status write_buffer(FILE *to, const import_file *f, gl_error *err) {
  bool cut = false;
  fputs("ts,buffered\n", to);
  return log_lines(f, read_miles_buffer, to, &cut, err);
}

/* --- the format --- */

static gl_status recognise_miles_events(bool *is, const import_file *f, gl_error *err) {
  (void)err;
  const miles_stream s = miles_stream_of(f);
  *is = s != MILES_METRICS && s < MILES_STREAMS;
  return GL_OK;
}

static gl_status write_miles_events(FILE *to, const import_file *f, gl_error *err) {
  switch (miles_stream_of(f)) {
  case MILES_TRAJECTORIES:
    return write_trajectories(to, f, err);
  case MILES_PHASES:
    return write_phases(to, f, err);
  case MILES_DATA_BUFFER:
    return write_buffer(to, f, err);
  case MILES_METRICS:
  case MILES_STREAMS:
    break;
  }
  return import_refuse(f, "this is no stream of events of miles' dashboard",
                       "give trajectories, phases or data_buffer", err);
}

static gl_status rows_of_miles_events(sheet *out, const import_file *f, gl_error *err) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (!to) return gl_fail_memory(err, "events");
  gl_status status = write_miles_events(to, f, err);
  if (fclose(to) != 0 && status == GL_OK) status = gl_fail_memory(err, "events");
  if (status == GL_OK) status = sheet_read(out, text, size, SHEET_COMMAS, f->name, err);
  free(text);
  return status;
}

const import_format format_miles_events = {
    .about = "events of miles' dashboard (trajectories, phases, data_buffer)",
    .recognise = recognise_miles_events,
    .rows = rows_of_miles_events};
