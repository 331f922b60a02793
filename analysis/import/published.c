/* Reads the numbers that a paper prints. */
#include "analysis/import/published.h"

#include "core/base/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void published_fini(published *p) {
  for (size_t i = 0; i < p->n; i++) {
    free(p->row[i].run), free(p->row[i].benchmark);
    free(p->row[i].best.text), free(p->row[i].last.text);
  }
  free(p->row);
  *p = (published){0};
}

static size_t column_named(const sheet *s, const char *name) {
  size_t i = 0;
  while (i < s->n_columns && strcasecmp(s->heading[i], name) != 0) i++;
  return i;
}

/* Half a unit of the last digit of "75.2" is 0.05. */
static double half_unit(const char *text) {
  const char *point = strchr(text, '.');
  const size_t digits = point ? strspn(point + 1, "0123456789") : 0;
  return 0.5 * pow(10, -(double)digits);
}

static gl_status read_number(published_number *to, const sheet *s, size_t row, size_t column,
                             gl_error *err) {
  const char *text = sheet_text(s, row, column);
  *to = (published_number){.value = NAN};
  if (!text || strcmp(text, "-") == 0 || strcmp(text, "–") == 0) return GL_OK;
  size_t n = strlen(text);
  char *own = strdup(text), *number = strdup(text);
  gl_status status = own && number ? GL_OK : gl_fail_memory(err, "printed numbers");
  if (status == GL_OK && n > 1 && number[n - 1] == '%') {
    number[n - 1] = '\0';
    to->is_percent = 1;
  }
  if (status == GL_OK && (!csv_number(number, &to->value) || !isfinite(to->value)))
    status = sheet_fail(s, row, column, err,
                        "'%.40s' is not a printed number; write it as 0.752 or 75.2, or leave the "
                        "cell empty",
                        text);
  if (status == GL_OK) to->half = half_unit(number);
  free(number);
  if (status == GL_OK)
    to->text = own;
  else
    free(own);
  return status;
}

static gl_status read_rows(published *p, const sheet *s, gl_error *err) {
  const size_t run = column_named(s, "run"), benchmark = column_named(s, "benchmark"),
               best = column_named(s, "best"), last = column_named(s, "last");
  if (run == s->n_columns || best == s->n_columns || last == s->n_columns)
    return gl_fail(err, GL_EINPUT,
                   "%s:1:1: printed numbers need the columns run, best and last, and benchmark "
                   "where there are several",
                   s->name);
  p->row = calloc(s->n_rows + 1, sizeof *p->row);
  if (!p->row) return gl_fail_memory(err, "printed numbers");
  gl_status status = GL_OK;
  for (size_t i = 0; i < s->n_rows && status == GL_OK; i++) {
    const char *name = sheet_text(s, i, run);
    const char *set = benchmark < s->n_columns ? sheet_text(s, i, benchmark) : NULL;
    published_row *to = &p->row[p->n++];
    if (!name) return sheet_fail(s, i, run, err, "the line names no run");
    to->run = strdup(name);
    to->benchmark = strdup(set ? set : "");
    if (!to->run || !to->benchmark) return gl_fail_memory(err, "printed numbers");
    status = read_number(&to->best, s, i, best, err);
    if (status == GL_OK) status = read_number(&to->last, s, i, last, err);
  }
  return status;
}

static sheet_syntax syntax_of(const char *text, size_t size) {
  if (size > 0 && text[0] == '{') return SHEET_JSON_LINES;
  const char *newline = size ? memchr(text, '\n', size) : NULL;
  const size_t first = newline ? (size_t)(newline - text) : size;
  return first && memchr(text, '\t', first) ? SHEET_TABS : SHEET_COMMAS;
}

gl_status published_read(published *out, const char *path, gl_error *err) {
  char *text = NULL;
  size_t size = 0;
  sheet s = {0};
  *out = (published){0};
  gl_status status = csv_load(&text, &size, path, err);
  if (status == GL_OK) status = sheet_read(&s, text, size, syntax_of(text, size), path, err);
  if (status == GL_OK) status = read_rows(out, &s, err);
  sheet_fini(&s);
  free(text);
  return status;
}

int published_agrees(const published_number *printed, double value, double largest) {
  const int scales = printed->is_percent ? largest <= 1 : largest <= 1 && printed->value > 1;
  const double scale = scales ? 100 : 1;
  return fabs(value * scale - printed->value) <= printed->half * (1 + 1e-9);
}
