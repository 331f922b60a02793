/* AReaL's traces of sessions, sessions-r{rank}.jsonl: a line for each rollout. AReaL 2.0.0,
 * areal/utils/perf_tracer.py, SessionRecord.to_dict(). Fields without a value are left out by the
 * writer. Read as rows: request is the time from submission to the end of the session, response,
 * reward and tools the times of its phases; all in seconds. */
#include "analysis/import/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Members that are read, and the columns they become; "": kept by that name. */
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
