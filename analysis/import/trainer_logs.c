/* Logs of trainers with one object a line or in a list: verl, prime-rl, Hugging Face and TRL,
 * AReaL, MiMo. */
#include "analysis/import/log.h"
#include "core/base/array.h"
#include "core/base/records.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- verl --- */

/* The file logger of verl (`trainer.logger` with `file`): one line {"step": 1, "data": {…}} for
 * each step. verl 0.9.1, verl/utils/tracking.py, class FileLogger. It writes with orjson, which
 * replaces NaN and infinities by null. */

static const char *const verl_keys[] = {"step", "data"};

static gl_status recognise_verl(bool *is, const import_file *f, gl_error *err) {
  (void)err;
  const log_keys k = log_keys_of(f, verl_keys, 2);
  *is = k.is_object && k.found == 3 && k.n_others == 0;
  return GL_OK;
}

static void read_verl_data(log_builder *b, json_reader *r, double step) {
  json_enter(r, '{');
  while (b->status == GL_OK && json_member(r)) {
    char metric[IMPORT_MOST_NAME + 2];
    if (r->word_size >= sizeof metric) {
      json_fail(r, "the name of a metric is longer than 1000 bytes");
      return;
    }
    memcpy(metric, r->word, r->word_size + 1);
    log_json(b, r, metric, step);
  }
}

static gl_status read_verl_line(void *context, json_reader *r, size_t line) {
  log_builder *b = context;
  bool has_step = false, has_data = false;
  double step = 0;
  (void)line;
  json_enter(r, '{');
  while (b->status == GL_OK && json_member(r)) {
    if (strcmp(r->word, "step") == 0) {
      step = log_step(r);
      has_step = true;
    } else if (strcmp(r->word, "data") == 0 && has_step) {
      read_verl_data(b, r, step);
      has_data = true;
    } else {
      json_fail(r,
                "the file logger of verl 0.9 writes \"step\" and then \"data\", and here is "
                "'%.60s'; a newer verl may have renamed it: --log-format json_lines reads the "
                "file as plain JSON Lines",
                r->word);
    }
  }
  if (!has_data) json_fail(r, "this line has no \"step\" with \"data\"; the log is damaged");
  return b->status;
}

static gl_status read_verl(series_table **out, const import_file *f, gl_error *err) {
  log_builder b;
  log_begin(&b, f, err);
  b.null_is_nan = true;
  return log_read(&b, read_verl_line, &b, out);
}

const import_format format_verl = {.about = "verl's file logger (trainer.logger: file)",
                                   .recognise = recognise_verl,
                                   .series = read_verl};

/* --- prime-rl --- */

/* The FileMonitor of prime-rl (on by default: metrics.jsonl in the folder of the run): lines
 * {"step": 1, "time": 1789492030.1, "metric": 0.5, …}, several for each step, to which trainer and
 * orchestrator both append. prime-rl 0.8.0, src/prime_rl/monitors/file.py. Values that are not
 * finite are left out by the writer. The series time_s is the time since the first line. */

/* A time of the epoch; other programs' logs may have a column "time" of seconds since the start. */
static const double EARLIEST_TIME = 1e9;

typedef struct prime_rl_reader {
  log_builder b;
  double first_time;
} prime_rl_reader;

static const char *const prime_rl_keys[] = {"step", "time"};

static gl_status recognise_prime_rl(bool *is, const import_file *f, gl_error *err) {
  (void)err;
  const log_keys k = log_keys_of(f, prime_rl_keys, 2);
  *is = k.is_object && k.found == 3 && k.n_others > 0 && strcmp(k.first[0], "step") == 0 &&
        strcmp(k.first[1], "time") == 0 && k.second >= EARLIEST_TIME;
  return GL_OK;
}

static void read_prime_rl_time(prime_rl_reader *p, json_reader *r, double step) {
  const double time = json_real(r);
  if (r->status != GL_OK) return;
  if (!(time >= EARLIEST_TIME)) {
    json_fail(r, "\"time\" is no time of the epoch, which prime-rl 0.8 writes");
    return;
  }
  if (isnan(p->first_time)) p->first_time = time;
  log_time(&p->b, step, time - p->first_time);
}

static gl_status read_prime_rl_line(void *context, json_reader *r, size_t line) {
  prime_rl_reader *p = context;
  bool has_step = false;
  double step = 0;
  (void)line;
  json_enter(r, '{');
  while (p->b.status == GL_OK && json_member(r)) {
    char metric[IMPORT_MOST_NAME + 2];
    if (r->word_size >= sizeof metric) {
      json_fail(r, "the name of a metric is longer than 1000 bytes");
    } else if (strcmp(r->word, "step") == 0) {
      step = log_step(r);
      has_step = true;
    } else if (!has_step) {
      json_fail(r,
                "the FileMonitor of prime-rl 0.8 writes \"step\" first, and here is '%.60s'; a "
                "newer prime-rl may have renamed it: --log-format json_lines reads the file as "
                "plain JSON Lines",
                r->word);
    } else if (strcmp(r->word, "time") == 0) {
      read_prime_rl_time(p, r, step);
    } else {
      memcpy(metric, r->word, r->word_size + 1);
      log_json(&p->b, r, metric, step);
    }
  }
  if (!has_step) json_fail(r, "this line has no \"step\"; the log is damaged");
  return p->b.status;
}

static gl_status read_prime_rl(series_table **out, const import_file *f, gl_error *err) {
  prime_rl_reader p = {.first_time = NAN};
  log_begin(&p.b, f, err);
  return log_read(&p.b, read_prime_rl_line, &p, out);
}

const import_format format_prime_rl = {.about = "prime-rl's FileMonitor (metrics.jsonl)",
                                       .fixed_name = "metrics.jsonl",
                                       .recognise = recognise_prime_rl,
                                       .series = read_prime_rl};

/* --- Hugging Face, TRL --- */

/* The state of a Hugging Face trainer, so also of TRL: trainer_state.json with "log_history":
 * [{"step": 1, "reward": 0.5, …}, …]. transformers 5.24, trainer_callback.py, save_to_json();
 * TRL 1.16. Python's json.dumps writes NaN and Infinity; TRL writes null where no sample had a
 * value.
 *
 * "eval_reward" becomes "eval/reward", but what an evaluation logs beside scores ("eval_runtime",
 * "eval_clip_ratio/low_mean", …) keeps its name, because names that begin with "eval/" are scores.
 * AsyncGRPOTrainer's "kl" is not that of GRPOTrainer (the KL
 * divergence to the reference) but k3 to the policy that generated the sample, so it becomes
 * "kl_k3"; its logs have a metric "ratio" beside it. */

static const char *const trainer_state_keys[] = {"log_history"};

static gl_status recognise_trainer_state(bool *is, const import_file *f, gl_error *err) {
  (void)err;
  const log_keys k = log_keys_of(f, trainer_state_keys, 1);
  *is = k.is_object && k.found == 1;
  return GL_OK;
}

/* A record has its step among its metrics, in alphabetical order: it is read twice. */
typedef struct trainer_record {
  bool has_step, is_async;
  double step;
} trainer_record;

static trainer_record scan_record(json_reader *r) {
  trainer_record t = {.has_step = false};
  json_enter(r, '{');
  while (json_member(r)) {
    t.is_async |= strcmp(r->word, "ratio") == 0;
    if (strcmp(r->word, "step") != 0) {
      json_skip(r);
      continue;
    }
    t.step = log_step(r);
    t.has_step = true;
  }
  return t;
}

/* Whether a key that evaluations log after "eval_" is not a score: transformers 5.24
 * speed_metrics() of trainer_utils.py, TRL 1.16 trl/trainer/grpo_trainer.py. An entry is a whole
 * key, or ends with a slash. */
static bool is_no_score(const char *key) {
  static const char *const others[] = {"runtime",
                                       "samples_per_second",
                                       "steps_per_second",
                                       "num_tokens",
                                       "reward_std",
                                       "frac_reward_zero_std",
                                       "entropy",
                                       "kl",
                                       "step_time",
                                       "completions/",
                                       "clip_ratio/",
                                       "sampling/",
                                       "model_preparation_time"};
  const size_t n = strlen(key);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    const size_t length = strlen(others[i]);
    if (strncmp(key, others[i], length) == 0 && (others[i][length - 1] == '/' || n == length))
      return true;
  }
  return strncmp(key, "rewards/", 8) == 0 && n > 4 && strcmp(key + n - 4, "/std") == 0;
}

/* Writes the metric name of a key to `metric`. Returns false if the key is not a metric. */
static bool trainer_metric(const char *key, bool is_async, char metric[IMPORT_MOST_NAME + 2]) {
  if (strcmp(key, "step") == 0) return false;
  if (is_async && strcmp(key, "kl") == 0) key = "kl_k3";
  if (strncmp(key, "eval_", 5) == 0 && !is_no_score(key + 5))
    snprintf(metric, IMPORT_MOST_NAME + 2, "eval/%s", key + 5);
  else
    snprintf(metric, IMPORT_MOST_NAME + 2, "%s", key);
  return true;
}

static void read_trainer_record(log_builder *b, json_reader *r) {
  json_reader scan = *r;
  scan.word = NULL, scan.word_room = 0, scan.err = NULL;
  const trainer_record t = scan_record(&scan);
  const bool is_good = scan.status == GL_OK;
  free(scan.word);
  if (is_good && !t.has_step)
    json_fail(r, "a record of \"log_history\" has no \"step\", which transformers 5 writes; a "
                 "newer version may have renamed it");
  json_enter(r, '{');
  while (b->status == GL_OK && json_member(r)) {
    char metric[IMPORT_MOST_NAME + 2];
    if (r->word_size > IMPORT_MOST_NAME)
      json_fail(r, "the name of a metric is longer than 1000 bytes");
    else if (trainer_metric(r->word, t.is_async, metric))
      log_json(b, r, metric, t.step);
    else
      json_skip(r);
  }
}

static gl_status read_trainer_state(series_table **out, const import_file *f, gl_error *err) {
  log_builder b;
  json_reader r;
  bool has_history = false;
  log_begin(&b, f, err);
  json_begin(&r, f->text + f->start, f->size - f->start, f->name, err);
  r.python_numbers = 1;
  json_enter(&r, '{');
  while (b.status == GL_OK && json_member(&r)) {
    if (strcmp(r.word, "log_history") != 0) {
      json_skip(&r);
      continue;
    }
    has_history = true;
    json_enter(&r, '[');
    while (b.status == GL_OK && json_element(&r)) read_trainer_record(&b, &r);
  }
  if (!has_history)
    json_fail(&r, "there is no \"log_history\", where transformers 5 writes the metrics");
  const gl_status ended = json_end(&r);
  return log_end(&b, b.status != GL_OK ? b.status : ended, out);
}

const import_format format_trainer_state = {
    .about = "the state of a Hugging Face or TRL trainer (trainer_state.json)",
    .fixed_name = "trainer_state.json",
    .recognise = recognise_trainer_state,
    .series = read_trainer_state};

/* --- AReaL --- */

/* AReaL's traces of sessions, sessions-r{rank}.jsonl: a line for each rollout. AReaL 2.0.0,
 * areal/utils/perf_tracer.py, SessionRecord.to_dict(). Fields without a value are left out by the
 * writer. Read as rows: request is the time from submission to the end of the session, response,
 * reward and tools the times of its phases; all in seconds. */

/* Members that are read, and the names of their columns; "": the same name. */
static const struct {
  const char *key, *column;
  bool needed;
} session_fields[] = {{"task_id", "task", true},
                      {"session_id", "session", true},
                      {"rank", "rank", true},
                      {"submit_ts", "submit_ts", true},
                      {"finalized_ts", "end_ts", false},
                      {"total_s", "request", false},
                      {"generate_s", "response", false},
                      {"reward_s", "reward", false},
                      {"toolcall_s", "tools", false},
                      {"status", "status", true}};
enum { SESSION_FIELDS = sizeof session_fields / sizeof *session_fields, SESSION_STATUS = 9 };

static gl_status recognise_areal_sessions(bool *is, const import_file *f, gl_error *err) {
  static const char *const keys[] = {"task_id", "session_id", "rank", "status", "submit_ts"};
  (void)err;
  const log_keys k = log_keys_of(f, keys, 5);
  *is = k.is_object && k.found == 31;
  return GL_OK;
}

typedef struct session_reader {
  FILE *to; /* CSV */
  size_t n;
} session_reader;

/* Reads the value of a field into `cell`. */
static void read_session_value(json_reader *r, size_t field, char cell[NUMBER_TEXT_SIZE]) {
  if (json_peek(r) == 'n') {
    json_null(r);
  } else if (field == SESSION_STATUS) {
    json_string(r);
    if (r->status == GL_OK && (r->word_size >= NUMBER_TEXT_SIZE || strpbrk(r->word, ",\"\r\n")))
      json_fail(r, "'%.40s' is no status of a session that AReaL 2.0 writes", r->word);
    if (r->status == GL_OK) snprintf(cell, NUMBER_TEXT_SIZE, "%s", r->word);
  } else {
    const double value = json_real(r);
    if (r->status == GL_OK && !(value >= 0 && value < 1e15))
      json_fail(r, "\"%s\" is negative or not finite", session_fields[field].key);
    number_text(value, cell);
  }
}

static gl_status read_session(void *context, json_reader *r, size_t line) {
  session_reader *s = context;
  char cell[SESSION_FIELDS][NUMBER_TEXT_SIZE];
  memset(cell, 0, sizeof cell);
  (void)line;
  json_enter(r, '{');
  while (json_member(r)) {
    size_t i = 0;
    while (i < SESSION_FIELDS && strcmp(session_fields[i].key, r->word) != 0) i++;
    if (i < SESSION_FIELDS)
      read_session_value(r, i, cell[i]);
    else
      json_skip(r);
  }
  for (size_t i = 0; i < SESSION_FIELDS; i++) {
    if (session_fields[i].needed && *cell[i] == '\0')
      json_fail(r,
                "this session has no \"%s\", which AReaL 2.0 writes; a newer version may have "
                "renamed it",
                session_fields[i].key);
    fprintf(s->to, "%s%s", i ? "," : "", cell[i]);
  }
  fputc('\n', s->to);
  s->n++;
  return GL_OK;
}

static gl_status rows_of_sessions(sheet *out, const import_file *f, gl_error *err) {
  char *text = NULL;
  size_t size = 0;
  bool cut = false;
  session_reader s = {.to = open_memstream(&text, &size)};
  if (!s.to) return gl_fail_memory(err, "sessions");
  for (size_t i = 0; i < SESSION_FIELDS; i++)
    fprintf(s.to, "%s%s", i ? "," : "", session_fields[i].column);
  fputc('\n', s.to);
  gl_status status = log_lines(f, read_session, &s, &cut, err);
  if (fclose(s.to) != 0 && status == GL_OK) status = gl_fail_memory(err, "sessions");
  if (status == GL_OK && s.n == 0)
    status = gl_fail(err, GL_EINPUT, "%s: there is no complete session in it", f->name);
  if (status == GL_OK) status = sheet_read(out, text, size, SHEET_COMMAS, f->name, err);
  free(text);
  return status;
}

const import_format format_areal_sessions = {.about = "AReaL's traces of sessions (sessions-r*)",
                                             .recognise = recognise_areal_sessions,
                                             .rows = rows_of_sessions};

/* --- MiMo --- */

/* Metrics as lists over the steps, as MiMo's dashboard serves them: {"steps": [1, 2, …], "series":
 * {"partial/avg_staleness": [0, 0.85, …], …}} (api/series, read 2026-09-17), or, as the archive of
 * huanghw1989/mimo-rl-telemetry keeps them, {"partial/avg_staleness": [0, …], …} with the steps in
 * axis.json beside it. "walls", the times of the epoch at which the steps ended, become time_s. */

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

/* Reads "steps" from a JSON text, that of the log itself or of axis.json, and checks it. */
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
