/* Shared by the readers of all formats: fields of a line, and errors with file and line. */
#include "experiments/tokens/formats.h"

#include "core/base/hash.h"
#include "core/config/config.h"
#include "experiments/base/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

gl_status token_refuse(const token_line *line, const char *at, gl_error *err, const char *format,
                       ...) {
  char text[768];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return gl_fail(err, GL_EINPUT, "%s:%zu:%zu: %s", line->file, line->number,
                 scan_column(line->text, at), text);
}

bool token_is_key(scan_piece key, const char *name) {
  return key.size == strlen(name) && memcmp(key.text, name, key.size) == 0;
}

/* Whether a list of names, separated by ", ", has the name. */
static bool lists_name(const char *list, const char *name) {
  const size_t n = strlen(name);
  for (; *list != '\0'; list += strspn(list, ", ")) {
    const size_t length = strcspn(list, ",");
    if (length == n && memcmp(list, name, n) == 0) return true;
    list += length;
  }
  return false;
}

static void note_unread(token_builder *b, scan_piece key) {
  char name[64];
  const size_t most = sizeof name - 1, at = strlen(b->unread);
  memcpy(name, key.text, key.size < most ? key.size : most);
  name[key.size < most ? key.size : most] = '\0';
  const size_t n = strlen(name);
  if (n > 0 && at + n + 3 < sizeof b->unread && !lists_name(b->unread, name))
    snprintf(b->unread + at, sizeof b->unread - at, "%s%s", at > 0 ? ", " : "", name);
}

static gl_status refuse_missing(const token_format *format, const token_line *line,
                                const char *missing, const scan_piece *other, size_t n,
                                gl_error *err) {
  char names[8][48], hint[CFG_HINT_SIZE];
  const char *known[8];
  for (size_t i = 0; i < n; ++i) {
    snprintf(names[i], sizeof names[i], "%.*s", other[i].size < 47 ? (int)other[i].size : 47,
             other[i].text);
    known[i] = names[i];
  }
  return token_refuse(line, line->text, err, "field %s is missing, which %s writes%s", missing,
                      format->writer, cfg_hint(missing, known, n, hint));
}

gl_status token_find_fields(token_builder *b, const token_format *format, const token_line *line,
                            const token_field *field, scan_piece *piece, size_t n, gl_error *err) {
  scan s;
  scan_piece key, value, other[8];
  size_t n_others = 0;
  memset(piece, 0, n * sizeof *piece);
  scan_begin(&s, line->text, line->size);
  scan_enter(&s);
  while (scan_member(&s, &key, &value)) {
    size_t i = 0;
    while (i < n && !token_is_key(key, field[i].name)) ++i;
    if (i == n) {
      note_unread(b, key);
      if (n_others < sizeof other / sizeof *other) other[n_others++] = key;
    } else if (piece[i].text != NULL) {
      return token_refuse(line, key.text - 1, err, "field %s is given twice", field[i].name);
    } else {
      piece[i] = value;
    }
  }
  if (s.why != NULL) return token_refuse(line, s.at, err, "damaged JSON: %s", s.why);
  for (size_t i = 0; i < n; ++i)
    if (field[i].needed && piece[i].text == NULL)
      return refuse_missing(format, line, field[i].name, other, n_others, err);
  return GL_OK;
}

/* --- lists of tokens --- */

gl_status token_read_finite(const token_line *line, const char *name, scan_piece v, double *out,
                            gl_error *err) {
  if (scan_number(v, out) == NULL && isfinite(*out)) return GL_OK;
  return token_refuse(line, v.text, err, "%s must be a finite number", name);
}

void token_count(token_builder *b, token_tokens *t) {
  t->n = 0;
  for (size_t i = 0; i < t->n_list; ++i) t->n += b->mask[i];
}

gl_status token_read_mask(token_builder *b, token_tokens *t, const token_line *line, scan_piece v,
                          gl_error *err) {
  const size_t most = v.size / 2 + 1; /* largest number of elements in v.size bytes */
  MUST_RESERVE(b->mask, b->mask_room, most, "a loss mask");
  const char *wrong = scan_mask(v, b->mask, most, &t->n_list);
  if (wrong != NULL)
    return token_refuse(line, wrong, err, "%s must be a list of 0 and 1, or false and true",
                        t->mask_name);
  token_sample *sample = &b->response[b->n - 1].sample;
  const unsigned char *first = t->n_list > 0 ? memchr(b->mask, 1, t->n_list) : NULL;
  token_count(b, t);
  size_t length = t->n_list;
  if (t->length >= 0 && t->length < (double)length) length = (size_t)t->length;
  sample->n_prompt = first != NULL ? (size_t)(first - b->mask) : length;
  if (sample->n_prompt + t->n <= length) sample->n_masked = length - sample->n_prompt - t->n;
  return GL_OK;
}

gl_status token_read_prompt(token_builder *b, const token_tokens *t, const token_line *line,
                            const char *name, scan_piece v, gl_error *err) {
  token_response *r = &b->response[b->n - 1];
  scan_piece prompt;
  if (!scan_head(v, r->sample.n_prompt, &prompt))
    return token_refuse(line, v.text, err,
                        "%s must be a list of at least %zu numbers, the tokens before the first "
                        "trained one of %s",
                        name, r->sample.n_prompt, t->mask_name);
  r->key = checksum_seeded(r->sample.n_prompt, prompt.text, prompt.size);
  return GL_OK;
}

/* Reads the numbers of the trained tokens; they need not be finite. */
static gl_status read_list(token_builder *b, const token_tokens *t, const token_line *line,
                           const char *name, scan_piece v, double *out, gl_error *err) {
  size_t n = 0;
  const char *wrong = scan_masked(v, b->mask, t->n_list, out, &n);
  if (wrong != NULL) return token_refuse(line, wrong, err, "%s must be a list of numbers", name);
  if (n == t->n_list) return GL_OK;
  return token_refuse(line, v.text, err, "%s has %s than the %zu elements of %s", name,
                      n < t->n_list ? "fewer" : "more", t->n_list, t->mask_name);
}

/* Position in the list of the k-th trained token. */
static size_t list_position_of(const token_builder *b, size_t k) {
  size_t i = 0;
  for (size_t seen = 0; seen + b->mask[i] <= k; ++i) seen += b->mask[i];
  return i;
}

gl_status token_read_numbers(token_builder *b, const token_tokens *t, const token_line *line,
                             const char *name, scan_piece v, double *out, gl_error *err) {
  gl_status status = read_list(b, t, line, name, v, out, err);
  for (size_t k = 0; k < t->n && status == GL_OK; ++k)
    if (!isfinite(out[k]))
      status = token_refuse(line, v.text, err, "%s[%zu] of a trained token is not finite", name,
                            list_position_of(b, k));
  return status;
}

gl_status token_read_logs(token_builder *b, const token_tokens *t, const token_line *line,
                          const char *name, scan_piece v, token_column c, gl_error *err) {
  double *out = token_builder_column(b, c);
  gl_status status = read_list(b, t, line, name, v, out, err);
  for (size_t k = 0; k < t->n && status == GL_OK; ++k) {
    if (out[k] >= GROUP_FILE_LEAST_LOG && out[k] <= 0) continue;
    if (out[k] > 0 && out[k] <= POLICY_MOST_LOG)
      out[k] = 0;
    else
      status = token_refuse(line, v.text, err,
                            "%s[%zu] of a trained token is %g, which is no log-probability (at "
                            "most 0, at least %g)",
                            name, list_position_of(b, k), out[k], GROUP_FILE_LEAST_LOG);
  }
  return status;
}

double *token_workspace(token_builder *b, size_t n) {
  MUST_RESERVE(b->space, b->space_room, n + 1, "a line of the log");
  return b->space;
}

gl_status token_read_advantages(token_builder *b, const token_tokens *t, const token_line *line,
                                scan_piece v, gl_error *err) {
  token_response *r = &b->response[b->n - 1];
  double sum = 0;
  if (scan_constant(v, &r->advantage) && isfinite(r->advantage)) return GL_OK;
  double *value = token_workspace(b, t->n);
  gl_status status = token_read_numbers(b, t, line, "advantages", v, value, err);
  for (size_t k = 0; k < t->n && status == GL_OK; ++k) {
    sum += value[k];
    b->advantages_vary = b->advantages_vary || value[k] != value[0];
  }
  r->advantage = b->advantages_vary ? sum / (double)t->n : value[0];
  return status;
}
