/* Puts stored numbers into Markdown, and makes definitions of them for LaTeX. */
#include "analysis/markers.h"

#include "analysis/stored.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_WORD = 256, MOST_RESULTS = 256 };

/* A document being read, and the results that it has cited so far. */
typedef struct document {
  const char *text, *name;
  const marker_source *from;
  stored results[MOST_RESULTS];
  size_t n_results;
  gl_error *err;
} document;

static size_t line_of(const document *d, const char *at) {
  size_t line = 1;
  for (const char *p = d->text; p < at; p++) line += *p == '\n';
  return line;
}

static document *document_new(const char *text, const char *name, const marker_source *from,
                              gl_error *err) {
  document *d = calloc(1, sizeof *d);
  if (d) d->text = text, d->name = name, d->from = from, d->err = err;
  return d;
}

static void document_free(document *d) {
  for (size_t i = 0; i < d->n_results; i++) stored_fini(&d->results[i]);
  free(d);
}

static int may_be_missing(const document *d, const char *name) {
  for (size_t i = 0; i < d->from->n_missing; i++)
    if (strcmp(d->from->missing[i], name) == 0) return 1;
  return 0;
}

/* *out is NULL where the results are not there and need not be. */
static gl_status find_results(document *d, const char *at, const char *name, const stored **out) {
  char path[2 * MOST_WORD];
  for (size_t i = 0; i < d->n_results; i++)
    if (strcmp(d->results[i].name, name) == 0) {
      *out = &d->results[i];
      return GL_OK;
    }
  if (d->n_results == MOST_RESULTS || strchr(name, '/'))
    return gl_fail(d->err, GL_EINPUT, "%s:%zu: '%s' is no name of stored results", d->name,
                   line_of(d, at), name);
  if (snprintf(path, sizeof path, "%s/%s.tsv", d->from->folder, name) >= (int)sizeof path)
    return gl_fail(d->err, GL_EINPUT, "the folder's name '%s' is too long", d->from->folder);
  *out = NULL;
  if (may_be_missing(d, name) && access(path, F_OK) != 0) return GL_OK;
  gl_status status = stored_read(&d->results[d->n_results++], path, d->err);
  *out = &d->results[d->n_results - 1];
  return status;
}

/* A number as the document asks for it, on the heap; NULL where its results need not be there. */
static gl_status cited(document *d, const char *at, const char *name, const char *key,
                       const char *format, char **out) {
  const stored *from = NULL;
  *out = NULL;
  gl_status status = find_results(d, at, name, &from);
  if (status != GL_OK || !from) return status;
  const char *value = stored_value(from, key);
  if (!value)
    return gl_fail(d->err, GL_EINPUT,
                   "%s:%zu: the stored results %s have no '%s'; look for it in %s/%s.tsv", d->name,
                   line_of(d, at), name, key, d->from->folder, name);
  gl_error why = {0};
  status = stored_format(value, format, out, &why);
  return status == GL_OK ? GL_OK
                         : gl_fail(d->err, status, "%s:%zu: %s", d->name, line_of(d, at), why.text);
}

/* Markdown --- */

static const char opening[] = "{{", closing[] = "}}";

/* The three words of a marker; a key may have blanks, the name and the format none. */
static int split_marker(const char *from, const char *to, char words[3][MOST_WORD]) {
  while (from < to && *from == ' ') from++;
  while (to > from && to[-1] == ' ') to--;
  const char *first = memchr(from, ' ', (size_t)(to - from)), *last = to;
  while (last > from && last[-1] != ' ') last--;
  if (!first || last <= first + 1) return 0;
  const char *const begin[] = {from, first + 1, last}, *const end[] = {first, last - 1, to};
  for (size_t i = 0; i < 3; i++) {
    const size_t n = (size_t)(end[i] - begin[i]);
    if (n == 0 || n >= MOST_WORD) return 0;
    memcpy(words[i], begin[i], n);
    words[i][n] = '\0';
  }
  return 1;
}

static gl_status fill_one(document *d, const char *marker, FILE *to, const char **next) {
  char words[3][MOST_WORD], *number = NULL;
  const char *begin = marker + sizeof opening - 1, *end = strstr(begin, closing);
  const char *another = strstr(begin, opening);
  if (!end || (another && another < end) || !split_marker(begin, end, words))
    return gl_fail(d->err, GL_EINPUT,
                   "%s:%zu: a number is {{RESULTS KEY FORMAT}}, and this marker is not", d->name,
                   line_of(d, marker));
  gl_status status = cited(d, marker, words[0], words[1], words[2], &number);
  if (status == GL_OK) fputs(number ? number : "–", to);
  free(number);
  *next = end + sizeof closing - 1;
  return status;
}

gl_status markers_fill(char **out, const char *text, const char *name, const marker_source *from,
                       size_t *n_numbers, gl_error *err) {
  size_t size = 0;
  *out = NULL;
  *n_numbers = 0;
  document *d = document_new(text, name, from, err);
  FILE *to = d ? open_memstream(out, &size) : NULL;
  gl_status status = to ? GL_OK : gl_fail_memory(err, "a document");
  const char *at = text;
  for (const char *m; status == GL_OK && (m = strstr(at, opening)) != NULL; ++*n_numbers) {
    fwrite(at, 1, (size_t)(m - at), to);
    status = fill_one(d, m, to, &at);
  }
  if (to) fputs(at, to);
  if (to && fclose(to) != 0 && status == GL_OK) status = gl_fail_memory(err, "a document");
  if (d) document_free(d);
  if (status != GL_OK) free(*out), *out = NULL;
  return status;
}

/* LaTeX --- */

/* The three arguments behind \result; NULL in *next where it is no use of the command. */
static const char *split_use(const char *at, char words[3][MOST_WORD]) {
  for (size_t i = 0; i < 3; i++) {
    const char *end = *at == '{' ? strpbrk(at + 1, "}\n") : NULL;
    if (!end || *end != '}' || end - at - 1 >= MOST_WORD || end == at + 1) return NULL;
    memcpy(words[i], at + 1, (size_t)(end - at - 1));
    words[i][end - at - 1] = '\0';
    at = end + 1;
  }
  return at;
}

gl_status markers_define(FILE *to, const char *text, const char *name, const marker_source *from,
                         gl_error *err) {
  static const char use[] = "\\result{";
  gl_status status = GL_OK;
  document *d = document_new(text, name, from, err);
  if (!d) return gl_fail_memory(err, "a document");
  for (const char *m = text; status == GL_OK && (m = strstr(m, use)) != NULL; m++) {
    char words[3][MOST_WORD], *number = NULL;
    if (!split_use(m + sizeof use - 2, words)) {
      status = gl_fail(err, GL_EINPUT,
                       "%s:%zu: a number is \\result{RESULTS}{KEY}{FORMAT} on one line, and this "
                       "one is not",
                       name, line_of(d, m));
      break;
    }
    status = cited(d, m, words[0], words[1], words[2], &number);
    if (status == GL_OK)
      fprintf(to, "\\expandafter\\def\\csname gl@%s@%s@%s\\endcsname{%s}\n", words[0], words[1],
              words[2], number ? number : "--");
    free(number);
  }
  document_free(d);
  return status;
}
