/* Reads measured delays, times and lengths from tables, whose columns are selected by their
 * headings, and lengths, groups and staleness from token-level logs. */
#include "experiments/clock/fit_log.h"

#include "analysis/import/read.h"
#include "core/base/records.h"
#include "core/config/config.h"
#include "core/config/units.h"
#include "experiments/base/memory.h"
#include "experiments/tokens/token_log.h"
#include "sim/delay.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name, *about;
  bool is_time, is_of_recipe;
} fields[FIT_FIELDS] = {
    [FIT_FIELD_DELAY] = {"delay", "delay of the weights, s", true, true},
    [FIT_FIELD_DATA_DELAY] = {"data_delay", "delay of the data, s", true, true},
    [FIT_FIELD_GENERATION] = {"generation", "time of a batch, s", true, true},
    [FIT_FIELD_LENGTHS] = {"lengths", "lengths of responses, tokens", false, true},
    [FIT_FIELD_REQUEST] = {"request", "one response from its submission to its end, s", true,
                           false},
    [FIT_FIELD_RESPONSE] = {"response", "generation of one response, s", true, false},
    [FIT_FIELD_REWARD] = {"reward", "reward of one response, s", true, false},
    [FIT_FIELD_TOOLS] = {"tools", "tools of one response, s", true, false},
};

const char *fit_field_name(fit_field f) {
  assert(f < FIT_FIELDS);
  return fields[f].name;
}

const char *fit_field_about(fit_field f) {
  assert(f < FIT_FIELDS);
  return fields[f].about;
}

bool fit_field_is_of_recipe(fit_field f) {
  assert(f < FIT_FIELDS);
  return fields[f].is_of_recipe;
}

bool fit_field_is_time(fit_field f) {
  assert(f < FIT_FIELDS);
  return fields[f].is_time;
}

gl_status fit_field_of(fit_field *out, const char **value, const char *option, const char *text,
                       gl_error *err) {
  const char *names[FIT_FIELDS], *equals = strchr(text, '=');
  const size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
  char word[64], hint[CFG_HINT_SIZE];
  for (int f = 0; f < FIT_FIELDS; ++f) {
    names[f] = fields[f].name;
    if (equals == NULL || strlen(names[f]) != length || memcmp(names[f], text, length) != 0)
      continue;
    *out = (fit_field)f;
    *value = equals + 1;
    return GL_OK;
  }
  snprintf(word, sizeof word, "%.*s", (int)(length < 60 ? length : 60), text);
  if (equals == NULL)
    return gl_fail(err, GL_EINPUT, "%s %s: write FIELD=VALUE, as in %s delay=…", option, word,
                   option);
  return gl_fail(err, GL_EINPUT,
                 "%s: '%s' is no field that is fitted%s; they are delay, data_delay, generation, "
                 "lengths, request, response, reward and tools",
                 option, word, cfg_hint(word, names, FIT_FIELDS, hint));
}

static gl_status read_unit(fit_log *out, const char *name, gl_error *err) {
  const unit *u = units_find(name, "s");
  if (u == NULL || u->factor == 0)
    return gl_fail(err, GL_EINPUT, "--unit %s is no unit of time; write s, ms, us, min or h", name);
  out->factor = (double)u->factor * pow(10, u->power);
  return GL_OK;
}

/* Returns the unit of time at the end of a heading, ms for "fetch_ms" and "fetch [ms]"; NULL for
 * seconds or no unit. */
static const unit *unit_of_heading(const char *heading) {
  size_t end = strlen(heading);
  while (end > 0 && strchr(")] ", heading[end - 1]) != NULL) --end;
  size_t begin = end;
  while (begin > 0 && strchr("_([ .-", heading[begin - 1]) == NULL) --begin;
  char word[16];
  if (begin == 0 || begin == end || end - begin >= sizeof word) return NULL;
  snprintf(word, sizeof word, "%.*s", (int)(end - begin), heading + begin);
  const unit *u = units_find(word, "s");
  return u != NULL && !(u->factor == 1 && u->power == 0) ? u : NULL;
}

/* Rejects a heading that names a unit of time if the user states none, because its values would be
 * read as seconds. */
static gl_status check_unit_stated(const char *heading, gl_error *err) {
  const unit *u = unit_of_heading(heading);
  if (u == NULL) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "is column '%.80s' in %s? Say which unit the times have: --unit %s, or --unit s",
                 heading, u->about, u->factor != 0 ? u->name : "min");
}

static gl_status read_columns(fit_log *out, const args_list *columns, bool has_unit,
                              gl_error *err) {
  for (size_t i = 0; i < columns->n; ++i) {
    fit_field f;
    const char *heading;
    gl_status status = fit_field_of(&f, &heading, "--column", columns->item[i], err);
    if (status == GL_OK && fields[f].is_time && !has_unit) status = check_unit_stated(heading, err);
    if (status != GL_OK) return status;
    if (out->field[f].heading != NULL)
      return gl_fail(err, GL_EINPUT, "--column %s is given twice", fields[f].name);
    out->field[f].heading = heading;
  }
  return GL_OK;
}

static gl_status fit_log_add_column(fit_measured *to, const sheet *s, size_t column, double factor,
                                    gl_error *err) {
  for (size_t row = 0; row < s->n_rows; ++row) {
    const char *cell = sheet_text(s, row, column);
    double value = 0;
    if (cell == NULL) continue;
    if (!csv_number(cell, &value) || !(value >= 0 && value <= DELAY_LONGEST))
      return sheet_fail(s, row, column, err,
                        "'%.40s' in column %.80s is no measured value; it must be a number from 0 "
                        "to 1e15, or an empty cell where nothing was measured",
                        cell, s->heading[column]);
    *MUST_ADD(to->value, to->n, "measured values") = value * factor;
  }
  return GL_OK;
}

enum { SEEN_SIZE = 400 };
typedef struct fit_log_adding {
  fit_log *to;
  bool by_name;         /* columns whose headings are field names */
  char seen[SEEN_SIZE]; /* "; there are a, b": headings of the last table, for messages */
} fit_log_adding;

/* Adds the requested columns of one table. */
static gl_status fit_log_add_rows(void *context, const sheet *s, gl_error *err) {
  fit_log_adding *adding = context;
  fit_log *out = adding->to;
  gl_status status = GL_OK;
  for (size_t c = 0, used = 0; c < s->n_columns && used < SEEN_SIZE; ++c)
    used += (size_t)snprintf(adding->seen + used, SEEN_SIZE - used, "%s%.80s",
                             c > 0 ? ", " : "; there are ", s->heading[c]);
  for (int f = 0; f < FIT_FIELDS && status == GL_OK; ++f) {
    const char *heading = adding->by_name ? fields[f].name : out->field[f].heading;
    const double factor = fields[f].is_time ? out->factor : 1;
    for (size_t c = 0; heading != NULL && c < s->n_columns && status == GL_OK; ++c) {
      if (strcmp(s->heading[c], heading) != 0) continue;
      /* the table's heading is freed with the table, but the field's name is static */
      if (adding->by_name) out->field[f].heading = fields[f].name;
      status = fit_log_add_column(&out->field[f], s, c, factor, err);
      break;
    }
  }
  return status;
}

/* --- token-level logs --- */

gl_status fit_log_has_tokens(bool *has, const char *path, const char *format, gl_error *err) {
  bool of_tokens = format == NULL, of_others = format == NULL; /* prime_rl names both kinds */
  const char *name;
  for (size_t i = 0; i < token_formats_count() && format != NULL; ++i)
    of_tokens = of_tokens || strcmp(token_format_name(i), format) == 0;
  for (size_t i = 0; format != NULL && import_format_about(i, &name) != NULL; ++i)
    of_others = of_others || strcmp(name, format) == 0;
  *has = of_tokens;
  return of_tokens && of_others ? token_log_recognises(has, path, err) : GL_OK;
}

static void widen_range(size_t range[2], size_t value) {
  range[0] = range[0] == 0 || value < range[0] ? value : range[0];
  range[1] = value > range[1] ? value : range[1];
}

static void fit_log_add_batch(fit_log *out, const token_batch *b) {
  const policy_input *in = &b->input;
  fit_batches *to = &out->batches;
  fit_measured *lengths = &out->field[FIT_FIELD_LENGTHS];
  double longest = 0, sum = 0, known = 0;
  to->n_untrained += b->n_untrained;
  if (in->n_responses == 0) return;
  lengths->heading = fields[FIT_FIELD_LENGTHS].name;
  for (size_t i = 0; i < in->n_responses; ++i) {
    const double tokens = (double)(in->token_start[i + 1] - in->token_start[i]);
    *MUST_ADD(lengths->value, lengths->n, "measured values") = tokens;
    longest = fmax(longest, tokens);
  }
  *MUST_ADD(to->longest, to->n, "measured values") = longest;
  widen_range(to->groups, in->n_groups);
  for (size_t g = 0; g < in->n_groups; ++g)
    widen_range(to->group_size, in->group_start[g + 1] - in->group_start[g]);
  for (size_t t = 0; in->version_gap != NULL && t < in->n_tokens; ++t) {
    if (isnan(in->version_gap[t])) continue;
    sum += in->version_gap[t], ++known;
    to->staleness_most = fmax(to->staleness_most, in->version_gap[t]);
  }
  if (known == 0) return;
  const double before = to->n_versions > 0 ? to->staleness * to->n_versions : 0;
  to->n_versions += known;
  to->staleness = (before + sum) / to->n_versions;
}

/* Adds what lies in the same folders as the token-level log: the times of requests; logs with a
 * number for each step are listed only. */
static gl_status add_beside(fit_log *out, const token_log *log, fit_log_adding *adding,
                            gl_error *err) {
  gl_status status = GL_OK;
  const char *path;
  for (size_t i = 0; status == GL_OK && (path = token_log_skipped(log, i)) != NULL; ++i) {
    read_kind kind = READ_IS_OTHER;
    status = read_which(&kind, path, err);
    if (status == GL_OK && kind == READ_IS_ROWS)
      status = read_rows_each(path, NULL, fit_log_add_rows, adding, err);
    if (status == GL_OK && kind == READ_IS_SERIES)
      *MUST_ADD(out->beside, out->n_beside, "logs") = must_copy(path, "a log's name");
  }
  return status;
}

static gl_status fit_log_add_tokens(const char *path, const fit_log_request *q,
                                    fit_log_adding *adding, gl_error *err) {
  const token_request request = {.format = q->format, .group_size = q->group_size};
  const token_batch *batch = NULL;
  token_log *log = NULL;
  gl_status status = token_log_open(&log, &path, 1, &request, err);
  while (status == GL_OK && (status = token_log_next(log, &batch, err)) == GL_OK && batch != NULL)
    fit_log_add_batch(adding->to, batch);
  if (status == GL_OK) adding->to->batches.n_incomplete += token_log_about(log)->n_incomplete;
  if (status == GL_OK) status = add_beside(adding->to, log, adding, err);
  token_log_close(log);
  return status;
}

/* --- all files --- */

/* Checks that some file has each requested column, or, if none was requested, at least one field's
 * column. */
static gl_status check_found(const fit_log *log, const fit_log_adding *adding, gl_error *err) {
  const bool by_name = adding->by_name;
  size_t n = 0;
  for (int f = 0; f < FIT_FIELDS; ++f) {
    n += log->field[f].n > 0;
    if (!by_name && log->field[f].heading != NULL && log->field[f].n == 0)
      return gl_fail(err, GL_EINPUT, "no file has a value in a column headed '%.80s'%s",
                     log->field[f].heading, adding->seen);
  }
  if (n > 0 || !by_name) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "no file has a value in a column headed delay, data_delay, generation, lengths, "
                 "request, response, "
                 "reward or tools; say which is what: --column delay=HEADING");
}

gl_status fit_log_read(fit_log *out, const char *const *files, size_t n_files,
                       const fit_log_request *q, gl_error *err) {
  const bool by_name = q->columns->n == 0;
  *out = (fit_log){.factor = 1, .batches = {.staleness = NAN, .staleness_most = NAN}};
  gl_status status = read_unit(out, q->time_unit != NULL ? q->time_unit : "s", err);
  if (status == GL_OK) status = read_columns(out, q->columns, q->time_unit != NULL, err);
  fit_log_adding adding = {.to = out, .by_name = by_name};
  bool has_tokens = false;
  for (size_t i = 0; i < n_files && status == GL_OK; ++i) {
    bool is_tokens = false;
    if (by_name) status = fit_log_has_tokens(&is_tokens, files[i], q->format, err);
    if (status == GL_OK && is_tokens) status = fit_log_add_tokens(files[i], q, &adding, err);
    if (status == GL_OK && !is_tokens)
      status = read_rows_each(files[i], q->format, fit_log_add_rows, &adding, err);
    has_tokens = has_tokens || is_tokens;
  }
  if (status == GL_OK) status = token_group_size_check(q->group_size, has_tokens, files[0], err);
  return status == GL_OK ? check_found(out, &adding, err) : status;
}

void fit_log_fini(fit_log *log) {
  for (int f = 0; f < FIT_FIELDS; ++f) free(log->field[f].value);
  for (size_t i = 0; i < log->n_beside; ++i) free(log->beside[i]);
  free(log->beside), free(log->batches.longest);
  *log = (fit_log){.factor = 1};
}
