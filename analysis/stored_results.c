/* Flattens JSON documents to tables of keys and numbers. */
#include "analysis/stored_results.h"

#include "core/base/array.h"
#include "core/base/json.h"
#include "core/base/records.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- from a document to keys --- */

enum { MOST_KEY = 512 };

typedef struct flattening {
  stored into; /* entries so far */
  gl_error *err;
  gl_status status;
} flattening;

/* A copy of the first n bytes of a text. */
static char *text_part(arena *m, const char *text, size_t n) {
  char *copy = ARENA_ARRAY(m, char, n + 1);
  if (copy != NULL) memcpy(copy, text, n);
  return copy;
}

/* Adds a key and a value of the given sizes in bytes. */
static void add_entry(flattening *f, const char *key, size_t key_size, const char *value,
                      size_t value_size) {
  if (f->status != GL_OK) return;
  stored_entry *to = ARRAY_ADD(f->into.entry, f->into.n);
  arena *m = &f->into.memory;
  if (to != NULL)
    *to = (stored_entry){text_part(m, key, key_size), text_part(m, value, value_size)};
  f->status = to != NULL ? arena_check(m, "stored results", f->err)
                         : gl_fail_memory(f->err, "stored results");
}

static void append_key(char key[MOST_KEY], const char *text) {
  const size_t n = strlen(key);
  snprintf(key + n, MOST_KEY - n, "%s", text);
}

/* The text of a scalar in keys and values; NULL for other items. */
static const char *scalar(const cJSON *item, char digits[NUMBER_TEXT_SIZE]) {
  if (cJSON_IsString(item) || cJSON_IsRaw(item)) return item->valuestring;
  if (cJSON_IsNumber(item)) return number_text(item->valuedouble, digits);
  if (cJSON_IsBool(item)) return cJSON_IsTrue(item) ? "true" : "false";
  return NULL;
}

/* Whether a member with this name, if it is a number, identifies an element of an array. (Texts and
 * axes always do.) */
static bool is_identity(const char *name) {
  static const char *const names[] = {"outcomes",  "group_size", "length", "vocabulary",
                                      "staleness", "seed",       "k",      "tokens"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

/* Returns true if a number identifies an element. `update` identifies a measurement, which has a
 * text; in a curve it is a coordinate, and points are identified by index. */
static bool is_distinguishing(const cJSON *element, const cJSON *number) {
  if (strcmp(number->string, "update") != 0) return is_identity(number->string);
  for (const cJSON *m = element->child; m; m = m->next)
    if (cJSON_IsString(m)) return true;
  return false;
}

/* Whether a text member with this name describes an element but does not identify it. */
static bool is_remark(const char *name) {
  static const char *const remarks[] = {"why", "written", "leader", "outcome"};
  for (size_t i = 0; i < sizeof remarks / sizeof *remarks; i++)
    if (strcmp(name, remarks[i]) == 0) return true;
  return false;
}

static void append_identity(char key[MOST_KEY], const char *text, int *first) {
  if (!*first) append_key(key, ",");
  *first = 0;
  append_key(key, text);
}

/* Name of an element, such as "gepo,1800"; its index if nothing identifies it. */
static void name_element(const cJSON *element, size_t place, char key[MOST_KEY]) {
  char digits[NUMBER_TEXT_SIZE], number[24];
  int first = 1;
  for (const cJSON *m = cJSON_IsObject(element) ? element->child : NULL; m; m = m->next) {
    const char *text = scalar(m, digits);
    if (cJSON_IsString(m) ? !is_remark(m->string) : text && is_distinguishing(element, m))
      append_identity(key, text, &first);
    if (!cJSON_IsObject(m) || strcmp(m->string, "axes") != 0) continue;
    for (const cJSON *a = m->child; a; a = a->next)
      if (scalar(a, digits)) append_identity(key, scalar(a, digits), &first);
  }
  snprintf(number, sizeof number, "%zu", place);
  if (first) append_key(key, number);
}

static void flatten(flattening *f, const cJSON *item, char key[MOST_KEY]);

/* Writes elements as "[gepo,1800]", and a second one with that name as "[gepo,1800#1]". Fills
 * names[n], the names of the elements. */
static void flatten_elements(flattening *f, const cJSON *array, char key[MOST_KEY]) {
  const size_t n = strlen(key);
  arena work = {0};
  char **names = ARENA_ARRAY(&work, char *, (size_t)cJSON_GetArraySize(array));
  size_t place = 0;
  for (const cJSON *m = array->child; m && f->status == GL_OK; m = m->next, key[n] = '\0') {
    char name[MOST_KEY] = "", number[24] = "";
    size_t same = 0;
    name_element(m, place, name);
    char *copy = arena_text(&work, name);
    f->status = arena_check(&work, "stored results", f->err);
    if (f->status != GL_OK) break;
    for (size_t i = 0; i < place; i++) same += strcmp(names[i], name) == 0;
    names[place++] = copy;
    if (same > 0) snprintf(number, sizeof number, "#%zu", same);
    append_key(key, "[");
    append_key(key, name);
    append_key(key, number);
    append_key(key, "]");
    if (cJSON_IsObject(m)) flatten(f, m, key);
  }
  arena_fini(&work);
}

/* Adds the entries of an item and, recursively, of its members. key: path of the item; extended in
 * place and restored. */
static void flatten(flattening *f, const cJSON *item, char key[MOST_KEY]) {
  char digits[NUMBER_TEXT_SIZE];
  const size_t n = strlen(key);
  if (f->status == GL_OK && n >= MOST_KEY - 1)
    f->status = gl_fail(f->err, GL_EINPUT, "the key '%.80s…' is longer than %d bytes", key,
                        (int)MOST_KEY - 1);
  if (f->status != GL_OK) return;
  const char *text = scalar(item, digits);
  if (text != NULL) {
    add_entry(f, key, n, text, strlen(text));
  } else if (cJSON_IsObject(item)) {
    for (const cJSON *m = item->child; m; m = m->next, key[n] = '\0') {
      if (n) append_key(key, ".");
      append_key(key, m->string);
      flatten(f, m, key);
    }
  } else if (cJSON_IsArray(item)) {
    flatten_elements(f, item, key);
  }
}

static int compare_entries(const void *a, const void *b) {
  return strcmp(((const stored_entry *)a)->key, ((const stored_entry *)b)->key);
}

static void sort_entries(stored *s) {
  if (s->n > 0) qsort(s->entry, s->n, sizeof *s->entry, compare_entries);
}

/* Writes the text on one line; control characters are replaced. */
static void write_one_line(FILE *to, const char *text) {
  for (; *text; text++) fputc(iscntrl((unsigned char)*text) ? ' ' : *text, to);
}

static gl_status write_entries(FILE *to, const stored *s, int (*keeps)(void *self, const char *key),
                               void *self, gl_error *err) {
  size_t kept = 0;
  for (size_t i = 0; i < s->n; i++) {
    if (keeps && !keeps(self, s->entry[i].key)) continue;
    if (i > 0 && strcmp(s->entry[i - 1].key, s->entry[i].key) == 0)
      return gl_fail(err, GL_EINPUT, "two numbers of the document have the key %s",
                     s->entry[i].key);
    write_one_line(to, s->entry[i].key);
    fputc('\t', to);
    write_one_line(to, s->entry[i].value);
    fputc('\n', to);
    kept++;
  }
  return kept ? GL_OK : gl_fail(err, GL_EINPUT, "the document has no number that is kept");
}

gl_status stored_write(FILE *to, const stored_head *head, const cJSON *document,
                       int (*keeps)(void *self, const char *key), void *self, gl_error *err) {
  const struct {
    const char *name, *text;
  } lines[] = {{"recipe", head->recipe},
               {"commit", head->commit},
               {"processor", head->processor},
               {"command", head->command},
               {"date", head->date}};
  char key[MOST_KEY] = "";
  flattening f = {.err = err, .status = GL_OK};
  flatten(&f, document, key);
  gl_status status = f.status;
  sort_entries(&f.into);
  for (size_t i = 0; status == GL_OK && i < sizeof lines / sizeof *lines; i++) {
    fprintf(to, "# %s: ", lines[i].name);
    write_one_line(to, lines[i].text);
    fputc('\n', to);
  }
  if (status == GL_OK) status = write_entries(to, &f.into, keeps, self, err);
  stored_fini(&f.into);
  return status;
}

/* --- reading --- */

void stored_fini(stored *s) {
  free(s->entry);
  arena_fini(&s->memory);
  *s = (stored){0};
}

/* The file's name without folder and extension. */
static char *stem_of_path(arena *m, const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const char *dot = strrchr(name, '.');
  char *stem = arena_text(m, name);
  if (stem && dot) stem[dot - name] = '\0';
  return stem;
}

static gl_status read_stored_line(flattening *f, const char *from, const char *to, const char *path,
                                  size_t line) {
  const char *tab = memchr(from, '\t', (size_t)(to - from));
  if (from == to || *from == '#') return GL_OK;
  if (!tab || tab == from)
    return gl_fail(f->err, GL_EINPUT,
                   "%s:%zu: a line of stored results is KEY<tab>VALUE; write the "
                   "file again with `gepolab results keep`",
                   path, line);
  add_entry(f, from, (size_t)(tab - from), tab + 1, (size_t)(to - tab - 1));
  return f->status;
}

gl_status stored_read(stored *out, const char *path, gl_error *err) {
  char *text = NULL;
  size_t size = 0, line = 1;
  flattening f = {.err = err, .status = GL_OK};
  f.into.name = stem_of_path(&f.into.memory, path);
  gl_status status = arena_check(&f.into.memory, "stored results", err);
  if (status == GL_OK) status = csv_load(&text, &size, path, err);
  for (const char *p = text; status == GL_OK && p < text + size; line++) {
    const char *newline = memchr(p, '\n', (size_t)(text + size - p));
    const char *stop = newline ? newline : text + size;
    status = read_stored_line(&f, p, stop, path, line);
    p = newline ? newline + 1 : text + size;
  }
  free(text);
  sort_entries(&f.into);
  *out = f.into;
  return status;
}

/* Returns true if the line has two cells. */
static bool has_two_cells(const char *line) {
  const char *tab = strchr(line, '\t');
  return tab != NULL && tab > line && strchr(tab + 1, '\t') == NULL;
}

gl_status stored_recognise(const char *path, int *is, gl_error *err) {
  static const char start[] = "# recipe: ";
  char head[sizeof start - 1], *line = NULL;
  size_t size = 0;
  struct stat about;
  *is = 0;
  if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) return GL_OK; /* a pipe is read once */
  FILE *from = fopen(path, "r");
  if (from == NULL)
    return gl_fail(err, GL_EIO, "%s: cannot be opened (%s); check its name and permissions", path,
                   strerror(errno));
  if (fread(head, 1, sizeof head, from) == sizeof head && memcmp(head, start, sizeof head) == 0) {
    ssize_t n = getline(&line, &size, from);
    while (n > 0 && (n = getline(&line, &size, from)) > 0 && line[0] == '#') continue;
    *is = n > 0 && has_two_cells(line);
  }
  free(line);
  fclose(from);
  return GL_OK;
}

const char *stored_value(const stored *s, const char *key) {
  const stored_entry wanted = {(char *)(size_t)key, NULL};
  const stored_entry *found =
      s->n ? bsearch(&wanted, s->entry, s->n, sizeof *s->entry, compare_entries) : NULL;
  return found ? found->value : NULL;
}

/* --- formats --- */

/* Format "24n": how many of 24 a fraction is. A fraction of another number is refused. */
static gl_status stored_of_format(const char *value, const char *format, char **out,
                                  gl_error *err) {
  double fraction = NAN;
  char *end, text[32];
  const unsigned long of = strtoul(format, &end, 10);
  if (strcmp(end, "n") != 0 || of == 0 || of > 1000000)
    return gl_fail(err, GL_EINPUT, "'%.40s' is no format of a count; write 24n", format);
  if (!csv_number(value, &fraction) || !(fraction >= 0 && fraction <= 1) ||
      fabs(fraction * (double)of - round(fraction * (double)of)) > 1e-6)
    return gl_fail(err, GL_EINPUT,
                   "the value '%.40s' is no fraction of %lu, as the format '%s' asks for", value,
                   of, format);
  snprintf(text, sizeof text, "%.0f", round(fraction * (double)of));
  *out = strdup(text);
  return *out ? GL_OK : gl_fail_memory(err, "a number");
}

gl_status stored_format(const char *value, const char *format, char **out, gl_error *err) {
  double number = NAN;
  char text[400] = "";
  *out = NULL;
  if (strcmp(format, "s") == 0) {
    *out = strdup(value);
    return *out ? GL_OK : gl_fail_memory(err, "a number");
  }
  if (isdigit((unsigned char)format[0])) return stored_of_format(value, format, out, err);
  if (format[0] != '.' || !isdigit((unsigned char)format[1]) || !format[2] || format[3] ||
      !strchr("fgp", format[2]))
    return gl_fail(err, GL_EINPUT,
                   "'%.40s' is no format of a number; write .3f, .4g, .0p (per cent), 24n (a "
                   "fraction of 24 as a count) or s",
                   format);
  if (!csv_number(value, &number))
    return gl_fail(err, GL_EINPUT, "the value '%.40s' is no number, as the format '%s' asks for",
                   value, format);
  const int digits = format[1] - '0';
  if (format[2] == 'g')
    snprintf(text, sizeof text, "%.*g", digits, number);
  else
    snprintf(text, sizeof text, "%.*f", digits, format[2] == 'p' ? 100 * number : number);
  *out = strdup(text);
  return *out ? GL_OK : gl_fail_memory(err, "a number");
}

/* --- citations in documents --- */

enum { MOST_WORD = 256, MOST_RESULTS = 256 };

/* A document being processed, and the results that it has cited so far. */
typedef struct document {
  const char *text, *name;
  const marker_source *from;
  stored results[MOST_RESULTS];
  size_t n_results;
  gl_error *err;
} document;

static size_t document_line(const document *d, const char *at) {
  size_t line = 1;
  for (const char *p = d->text; p < at; p++) line += *p == '\n';
  return line;
}

static void document_fini(document *d) {
  for (size_t i = 0; i < d->n_results; i++) stored_fini(&d->results[i]);
}

static bool may_be_missing(const document *d, const char *name) {
  for (size_t i = 0; i < d->from->n_missing; i++)
    if (strcmp(d->from->missing[i], name) == 0) return true;
  return false;
}

/* *out is NULL if the results have no file and their name is in the request's missing[]. */
static gl_status find_results(document *d, const char *at, const char *name, const stored **out) {
  char path[2 * MOST_WORD];
  for (size_t i = 0; i < d->n_results; i++)
    if (strcmp(d->results[i].name, name) == 0) {
      *out = &d->results[i];
      return GL_OK;
    }
  if (d->n_results == MOST_RESULTS || strchr(name, '/'))
    return gl_fail(d->err, GL_EINPUT, "%s:%zu: '%s' is no name of stored results", d->name,
                   document_line(d, at), name);
  if (snprintf(path, sizeof path, "%s/%s.tsv", d->from->folder, name) >= (int)sizeof path)
    return gl_fail(d->err, GL_EINPUT, "the folder's name '%s' is too long", d->from->folder);
  *out = NULL;
  if (may_be_missing(d, name) && access(path, F_OK) != 0) return GL_OK;
  gl_status status = stored_read(&d->results[d->n_results++], path, d->err);
  *out = &d->results[d->n_results - 1];
  return status;
}

/* Formats a number as the document requests, allocated; NULL if find_results() finds none. */
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
                   document_line(d, at), name, key, d->from->folder, name);
  gl_error why = {0};
  status = stored_format(value, format, out, &why);
  return status == GL_OK
             ? GL_OK
             : gl_fail(d->err, status, "%s:%zu: %s", d->name, document_line(d, at), why.text);
}

/* --- Markdown --- */

static const char opening[] = "{{", closing[] = "}}";

/* Splits a marker into its three words. A key may contain blanks; name and format may not. */
static bool split_marker(const char *from, const char *to, char words[3][MOST_WORD]) {
  while (from < to && *from == ' ') from++;
  while (to > from && to[-1] == ' ') to--;
  const char *first = memchr(from, ' ', (size_t)(to - from)), *last = to;
  while (last > from && last[-1] != ' ') last--;
  if (!first || last <= first + 1) return false;
  const char *const begin[] = {from, first + 1, last}, *const end[] = {first, last - 1, to};
  for (size_t i = 0; i < 3; i++) {
    const size_t n = (size_t)(end[i] - begin[i]);
    if (n == 0 || n >= MOST_WORD) return false;
    memcpy(words[i], begin[i], n);
    words[i][n] = '\0';
  }
  return true;
}

static gl_status fill_one(document *d, const char *marker, FILE *to, const char **next) {
  char words[3][MOST_WORD], *number = NULL;
  const char *begin = marker + sizeof opening - 1, *end = strstr(begin, closing);
  const char *another = strstr(begin, opening);
  if (!end || (another && another < end) || !split_marker(begin, end, words))
    return gl_fail(d->err, GL_EINPUT,
                   "%s:%zu: a number is {{RESULTS KEY FORMAT}}, and this marker is not", d->name,
                   document_line(d, marker));
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
  document d = {.text = text, .name = name, .from = from, .err = err};
  FILE *to = open_memstream(out, &size);
  gl_status status = to ? GL_OK : gl_fail_memory(err, "a document");
  const char *at = text;
  for (const char *m; status == GL_OK && (m = strstr(at, opening)) != NULL; ++*n_numbers) {
    fwrite(at, 1, (size_t)(m - at), to);
    status = fill_one(&d, m, to, &at);
  }
  if (to) fputs(at, to);
  if (to && fclose(to) != 0 && status == GL_OK) status = gl_fail_memory(err, "a document");
  document_fini(&d);
  if (status != GL_OK) free(*out), *out = NULL;
  return status;
}

/* --- LaTeX --- */

/* Parses the three arguments of \result. Returns NULL if it is not a use of the command. */
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
  document d = {.text = text, .name = name, .from = from, .err = err};
  for (const char *m = text; status == GL_OK && (m = strstr(m, use)) != NULL; m++) {
    char words[3][MOST_WORD], *number = NULL;
    if (!split_use(m + sizeof use - 2, words)) {
      status = gl_fail(err, GL_EINPUT,
                       "%s:%zu: a number is \\result{RESULTS}{KEY}{FORMAT} on one line, and this "
                       "one is not",
                       name, document_line(&d, m));
      break;
    }
    status = cited(&d, m, words[0], words[1], words[2], &number);
    if (status == GL_OK)
      fprintf(to, "\\expandafter\\def\\csname gl@%s@%s@%s\\endcsname{%s}\n", words[0], words[1],
              words[2], number ? number : "--");
    free(number);
  }
  document_fini(&d);
  return status;
}
