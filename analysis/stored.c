/* Numbers of JSON documents as tables of keys. */
#include "analysis/stored.h"

#include "core/base/csv.h"
#include "core/base/json.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- from a document to keys --- */

enum { MOST_KEY = 512 };

typedef struct flattening {
  stored_entry *entry; /* [n] */
  size_t n, room;
  gl_error *err;
  gl_status status;
} flattening;

static void add_entry(flattening *f, const char *key, const char *value) {
  if (f->status != GL_OK) return;
  if (f->n == f->room) {
    const size_t room = f->room ? 2 * f->room : 64;
    stored_entry *more = realloc(f->entry, room * sizeof *more);
    if (more) f->entry = more, f->room = room;
  }
  if (f->n < f->room) f->entry[f->n++] = (stored_entry){strdup(key), strdup(value)};
  if (f->n == 0 || !f->entry[f->n - 1].key || !f->entry[f->n - 1].value)
    f->status = gl_fail_memory(f->err, "stored results");
}

static void append(char key[MOST_KEY], const char *text) {
  const size_t n = strlen(key);
  snprintf(key + n, MOST_KEY - n, "%s", text);
}

/* The text of a scalar as it stands in keys and values; NULL for what is none. */
static const char *scalar(const cJSON *item, char digits[NUMBER_TEXT_SIZE]) {
  if (cJSON_IsString(item) || cJSON_IsRaw(item)) return item->valuestring;
  if (cJSON_IsNumber(item)) return number_text(item->valuedouble, digits);
  if (cJSON_IsBool(item)) return cJSON_IsTrue(item) ? "true" : "false";
  return NULL;
}

/* Numbers that tell the elements of an array apart, beside their texts and axes. */
static int is_identity(const char *name) {
  static const char *const names[] = {"outcomes",  "group_size", "length", "vocabulary",
                                      "staleness", "seed",       "k",      "tokens"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return 1;
  return 0;
}

/* Whether a number tells an element apart. `update` is that of a measurement, which has a text; in
 * a curve it is a coordinate, and points are known by their places. */
static int tells_apart(const cJSON *element, const cJSON *number) {
  if (strcmp(number->string, "update") != 0) return is_identity(number->string);
  for (const cJSON *m = element->child; m; m = m->next)
    if (cJSON_IsString(m)) return 1;
  return 0;
}

/* Texts that say something of an element and are no part of what it is. */
static int is_remark(const char *name) {
  return strcmp(name, "why") == 0;
}

static void append_identity(char key[MOST_KEY], const char *text, int *first) {
  if (!*first) append(key, ",");
  *first = 0;
  append(key, text);
}

/* "gepo,1800" of an element; its place where nothing tells it apart. */
static void name_element(const cJSON *element, size_t place, char key[MOST_KEY]) {
  char digits[NUMBER_TEXT_SIZE], number[24];
  int first = 1;
  for (const cJSON *m = cJSON_IsObject(element) ? element->child : NULL; m; m = m->next) {
    const char *text = scalar(m, digits);
    if (cJSON_IsString(m) ? !is_remark(m->string) : text && tells_apart(element, m))
      append_identity(key, text, &first);
    if (!cJSON_IsObject(m) || strcmp(m->string, "axes") != 0) continue;
    for (const cJSON *a = m->child; a; a = a->next)
      if (scalar(a, digits)) append_identity(key, scalar(a, digits), &first);
  }
  snprintf(number, sizeof number, "%zu", place);
  if (first) append(key, number);
}

static void flatten(flattening *f, const cJSON *item, char key[MOST_KEY]);

/* Elements as "[gepo,1800]"; a second one of that name as "[gepo,1800#1]". names[n] are those of
 * the elements, filled here. */
static void flatten_elements(flattening *f, const cJSON *array, char key[MOST_KEY], char **names) {
  const size_t n = strlen(key);
  size_t place = 0;
  for (const cJSON *m = array->child; m && f->status == GL_OK; m = m->next, key[n] = '\0') {
    char name[MOST_KEY] = "", number[24] = "";
    size_t same = 0;
    name_element(m, place, name);
    for (size_t i = 0; i < place; i++) same += strcmp(names[i], name) == 0;
    names[place++] = strdup(name);
    if (!names[place - 1]) f->status = gl_fail_memory(f->err, "stored results");
    if (same > 0) snprintf(number, sizeof number, "#%zu", same);
    append(key, "[");
    append(key, name);
    append(key, number);
    append(key, "]");
    if (cJSON_IsObject(m)) flatten(f, m, key);
  }
  for (size_t i = 0; i < place; i++) free(names[i]);
}

static void flatten(flattening *f, const cJSON *item, char key[MOST_KEY]) {
  char digits[NUMBER_TEXT_SIZE];
  const size_t n = strlen(key);
  if (f->status == GL_OK && n >= MOST_KEY - 1)
    f->status = gl_fail(f->err, GL_EINPUT, "the key '%.80s…' is longer than %d bytes", key,
                        (int)MOST_KEY - 1);
  if (f->status != GL_OK) return;
  if (scalar(item, digits)) {
    add_entry(f, key, scalar(item, digits));
  } else if (cJSON_IsObject(item)) {
    for (const cJSON *m = item->child; m; m = m->next, key[n] = '\0') {
      if (n) append(key, ".");
      append(key, m->string);
      flatten(f, m, key);
    }
  } else if (cJSON_IsArray(item)) {
    char **names = calloc((size_t)cJSON_GetArraySize(item) + 1, sizeof *names);
    if (names)
      flatten_elements(f, item, key, names);
    else
      f->status = gl_fail_memory(f->err, "stored results");
    free(names);
  }
}

static int compare_entries(const void *a, const void *b) {
  return strcmp(((const stored_entry *)a)->key, ((const stored_entry *)b)->key);
}

static void free_entries(stored_entry *entry, size_t n) {
  for (size_t i = 0; i < n; i++) free(entry[i].key), free(entry[i].value);
  free(entry);
}

/* One line, whatever the text holds. */
static void write_text(FILE *to, const char *text) {
  for (; *text; text++) fputc(iscntrl((unsigned char)*text) ? ' ' : *text, to);
}

static gl_status write_entries(FILE *to, flattening *f, int (*keeps)(void *self, const char *key),
                               void *self) {
  size_t kept = 0;
  for (size_t i = 0; i < f->n; i++) {
    if (keeps && !keeps(self, f->entry[i].key)) continue;
    if (i > 0 && strcmp(f->entry[i - 1].key, f->entry[i].key) == 0)
      return gl_fail(f->err, GL_EINPUT, "two numbers of the document have the key %s",
                     f->entry[i].key);
    write_text(to, f->entry[i].key);
    fputc('\t', to);
    write_text(to, f->entry[i].value);
    fputc('\n', to);
    kept++;
  }
  return kept ? GL_OK : gl_fail(f->err, GL_EINPUT, "the document has no number that is kept");
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
  if (status == GL_OK && f.n > 0) qsort(f.entry, f.n, sizeof *f.entry, compare_entries);
  for (size_t i = 0; status == GL_OK && i < sizeof lines / sizeof *lines; i++) {
    fprintf(to, "# %s: ", lines[i].name);
    write_text(to, lines[i].text);
    fputc('\n', to);
  }
  if (status == GL_OK) status = write_entries(to, &f, keeps, self);
  free_entries(f.entry, f.n);
  return status;
}

/* --- reading --- */

void stored_fini(stored *s) {
  free_entries(s->entry, s->n);
  free(s->name);
  *s = (stored){0};
}

static char *stem_of(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const char *dot = strrchr(name, '.');
  return strndup(name, dot ? (size_t)(dot - name) : strlen(name));
}

static gl_status read_line(flattening *f, const char *from, const char *to, const char *path,
                           size_t line) {
  const char *tab = memchr(from, '\t', (size_t)(to - from));
  if (from == to || *from == '#') return GL_OK;
  if (!tab || tab == from)
    return gl_fail(f->err, GL_EINPUT,
                   "%s:%zu: a line of stored results is KEY<tab>VALUE; write the "
                   "file again with `gepolab results keep`",
                   path, line);
  char *key = strndup(from, (size_t)(tab - from));
  char *value = strndup(tab + 1, (size_t)(to - tab - 1));
  if (key && value)
    add_entry(f, key, value);
  else
    f->status = gl_fail_memory(f->err, "stored results");
  free(key), free(value);
  return f->status;
}

gl_status stored_read(stored *out, const char *path, gl_error *err) {
  char *text = NULL;
  size_t size = 0, line = 1;
  *out = (stored){.name = stem_of(path)};
  if (!out->name) return gl_fail_memory(err, "stored results");
  flattening f = {.err = err, .status = GL_OK};
  gl_status status = csv_load(&text, &size, path, err);
  for (const char *p = text; status == GL_OK && p < text + size; line++) {
    const char *newline = memchr(p, '\n', (size_t)(text + size - p));
    const char *stop = newline ? newline : text + size;
    status = read_line(&f, p, stop, path, line);
    p = newline ? newline + 1 : text + size;
  }
  free(text);
  if (f.n > 0) qsort(f.entry, f.n, sizeof *f.entry, compare_entries);
  out->entry = f.entry, out->n = f.n;
  return status;
}

/* Whether a line has two cells. */
static int has_two_cells(const char *line) {
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

gl_status stored_format(const char *value, const char *format, char **out, gl_error *err) {
  double number = NAN;
  char text[400] = "";
  *out = NULL;
  if (strcmp(format, "s") == 0) {
    *out = strdup(value);
    return *out ? GL_OK : gl_fail_memory(err, "a number");
  }
  if (format[0] != '.' || !isdigit((unsigned char)format[1]) || !format[2] || format[3] ||
      !strchr("fgp", format[2]))
    return gl_fail(err, GL_EINPUT,
                   "'%.40s' is no format of a number; write .3f, .4g, .0p (per cent) or s", format);
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
