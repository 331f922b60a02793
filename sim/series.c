#include "sim/series.h"

#include <errno.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cuts the next field off *line in place, without its quotes; NULL at the end of the line. */
static char *next_field(char **line) {
  char *at = *line;
  if (at == NULL) return NULL;
  int quoted = *at == '"';
  char *begin = at + quoted, *end = strpbrk(begin, quoted ? "\"\r\n" : ",\r\n");
  if (end == NULL) end = begin + strlen(begin);
  char *comma = quoted && *end == '"' ? end + 1 : end;
  *line = *comma == ',' ? comma + 1 : NULL;
  *end = '\0';
  return begin;
}

static char *field_at(char *line, size_t column) {
  char *field = next_field(&line);
  for (size_t i = 0; i < column && field != NULL; ++i) field = next_field(&line);
  return field;
}

static int append(double **values, size_t *n, double x) {
  if ((*n & (*n - 1)) == 0) { /* grows at powers of two */
    size_t capacity = *n == 0 ? 1 : 2 * *n;
    if (capacity > SIZE_MAX / sizeof **values) return 0;
    double *grown = realloc(*values, capacity * sizeof **values);
    if (grown == NULL) return 0;
    *values = grown;
  }
  (*values)[(*n)++] = x;
  return 1;
}

/* The number of the named column in a heading line, which is cut up; -1 if it is not there. */
static long find_column(char *line, const char *name) {
  long i = 0;
  for (char *field = next_field(&line); field != NULL; field = next_field(&line), ++i)
    if (strcmp(field, name) == 0) return i;
  return -1;
}

static gl_status read_rows(double **out, size_t *n, FILE *from, const char *path,
                           const char *column, gl_error *err) {
  char *line = NULL;
  size_t size = 0, number = 0, at = 0;
  gl_status status = GL_OK;
  while (status == GL_OK && getline(&line, &size, from) >= 0) {
    ++number;
    if (number == 1 && column != NULL) {
      long found = find_column(line, column);
      if (found < 0) status = gl_fail(err, GL_EINPUT, "%s:1: no column named '%s'", path, column);
      at = (size_t)found;
      continue;
    }
    char *field = field_at(line, at), *end = field;
    double x = field == NULL || *field == '\0' ? NAN : strtod(field, &end);
    if (field == NULL || *field == '\0') continue;
    if (*end != '\0' || !isfinite(x)) {
      if (number == 1) continue; /* a heading */
      status = gl_fail(err, GL_EINPUT, "%s:%zu: '%s' is not a number", path, number, field);
    } else if (!append(out, n, x)) {
      status = gl_fail_memory(err, "a column of numbers");
    }
  }
  free(line);
  return status;
}

gl_status series_read(double **out, size_t *n, const char *path, const char *column,
                      gl_error *err) {
  *out = NULL;
  *n = 0;
  FILE *from = fopen(path, "r");
  if (from == NULL) return gl_fail(err, GL_EINPUT, "cannot read %s: %s", path, strerror(errno));
  gl_status status = read_rows(out, n, from, path, column, err);
  if (status == GL_OK && ferror(from))
    status = gl_fail(err, GL_EIO, "reading %s failed: %s", path, strerror(errno));
  fclose(from);
  if (status == GL_OK && *n == 0) status = gl_fail(err, GL_EINPUT, "%s holds no numbers", path);
  if (status != GL_OK) {
    free(*out);
    *out = NULL;
    *n = 0;
  }
  return status;
}

void series_sort(double *values, size_t n) {
  gsl_sort(values, 1, n);
}

double series_ks(const double *a, size_t n_a, const double *b, size_t n_b) {
  size_t i = 0, j = 0;
  double largest = 0;
  while (i < n_a && j < n_b) {
    double x = fmin(a[i], b[j]);
    while (i < n_a && a[i] <= x) ++i;
    while (j < n_b && b[j] <= x) ++j;
    largest = fmax(largest, fabs((double)i / (double)n_a - (double)j / (double)n_b));
  }
  return largest;
}
