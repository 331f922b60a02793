/* The tree of a recipe: memory, nodes, source positions, and scalars as numbers. */
#include "core/config/internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- access to a tree --- */

const cfg_node *cfg_root(const cfg_doc *doc) {
  return doc->root;
}

cfg_kind cfg_kind_of(const cfg_node *node) {
  return node->kind;
}

size_t cfg_size(const cfg_node *node) {
  return node->n;
}

const cfg_node *cfg_at(const cfg_node *node, size_t i) {
  return i < node->n ? node->entry[i].value : NULL;
}

const char *cfg_key_at(const cfg_node *map, size_t i) {
  return map->kind == CFG_MAP && i < map->n ? map->entry[i].key : NULL;
}

const char *cfg_text(const cfg_node *scalar) {
  return scalar->kind == CFG_SCALAR ? scalar->text : "";
}

cfg_entry *cfg_entry_of(const cfg_node *map, const char *key, size_t length) {
  if (map->kind != CFG_MAP) return NULL;
  for (size_t i = 0; i < map->n; ++i)
    if (strncmp(map->entry[i].key, key, length) == 0 && map->entry[i].key[length] == '\0')
      return &map->entry[i];
  return NULL;
}

/* The value of a key of a map, or of an element of a list by its number; NULL if there is none. */
static const cfg_node *step_into(const cfg_node *node, const char *segment, size_t length) {
  if (node->kind == CFG_MAP) {
    const cfg_entry *e = cfg_entry_of(node, segment, length);
    return e == NULL ? NULL : e->value;
  }
  if (node->kind != CFG_LIST || length == 0 || length > 9) return NULL;
  size_t index = 0;
  for (size_t i = 0; i < length; ++i) {
    if (segment[i] < '0' || segment[i] > '9') return NULL;
    index = index * 10 + (size_t)(segment[i] - '0');
  }
  return cfg_at(node, index);
}

int cfg_path_is_inside(const char *path, const char *section) {
  const size_t n = strlen(section);
  return strncmp(path, section, n) == 0 && (path[n] == '.' || path[n] == '\0');
}

const cfg_node *cfg_find(const cfg_node *node, const char *path) {
  while (node != NULL) {
    const cfg_node *whole = step_into(node, path, strlen(path)); /* a key may contain dots */
    if (whole != NULL) return whole;
    size_t length = strcspn(path, ".");
    if (path[length] == '\0') return NULL;
    node = step_into(node, path, length);
    path += length + 1;
  }
  return NULL;
}

const char *cfg_stated(const void *recipe, const char *path, int *stated) {
  const cfg_node *node = cfg_find(recipe, path);
  *stated = node != NULL && node->kind == CFG_SCALAR && !cfg_is_null(node);
  return *stated ? node->text : NULL;
}

const cfg_node *cfg_overridden(const cfg_node *node) {
  if (node->at.source != NULL && node->at.source->quote != NULL) return node;
  for (size_t i = 0; i < node->n; ++i) {
    const cfg_node *found = cfg_overridden(node->entry[i].value);
    if (found != NULL) return found;
  }
  return NULL;
}

const char *cfg_unit(const cfg_node *node) {
  return node->unit != NULL ? node->unit : "";
}

const char *cfg_source_path(const cfg_node *node) {
  const cfg_source *source = node->at.source;
  return source != NULL ? source->path : NULL;
}

char *cfg_locate(const cfg_node *node, const char *path) {
  const char *recipe = cfg_source_path(node), *slash = recipe == NULL ? NULL : strrchr(recipe, '/');
  if (slash == NULL || *path == '/') return strdup(path);
  size_t folder = (size_t)(slash - recipe) + 1, size = strlen(path) + 1;
  char *beside = malloc(folder + size);
  if (beside == NULL) return NULL;
  memcpy(beside, recipe, folder);
  memcpy(beside + folder, path, size);
  if (access(beside, F_OK) == 0) return beside;
  free(beside);
  return strdup(path);
}

/* --- scalars --- */

int cfg_is_null(const cfg_node *node) {
  return node->kind == CFG_SCALAR && node->plain &&
         (node->text[0] == '\0' || strcmp(node->text, "~") == 0 ||
          strcmp(node->text, "null") == 0 || strcmp(node->text, "Null") == 0 ||
          strcmp(node->text, "NULL") == 0);
}

int cfg_boolean_of(const cfg_node *scalar) {
  if (scalar->kind != CFG_SCALAR || !scalar->plain) return -1;
  const char *t = scalar->text;
  if (strcmp(t, "true") == 0 || strcmp(t, "True") == 0 || strcmp(t, "TRUE") == 0) return 1;
  if (strcmp(t, "false") == 0 || strcmp(t, "False") == 0 || strcmp(t, "FALSE") == 0) return 0;
  return -1;
}

static int is_infinity(const char *text) {
  static const char *const spellings[] = {"inf", "Inf", ".inf", ".Inf", ".INF"};
  if (*text == '+' || *text == '-') ++text;
  for (size_t i = 0; i < sizeof spellings / sizeof *spellings; ++i)
    if (strcmp(text, spellings[i]) == 0) return 1;
  return strcmp(text, "1e999") == 0; /* written by cfg_canonical() for infinity */
}

/* Skips digits with single underscores between them, copying the digits; NULL if there are none. */
static const char *copy_digits(const char *text, const char *digits, char **to) {
  if (*text == '\0' || strchr(digits, *text) == NULL) return NULL;
  while (*text != '\0') {
    if (strchr(digits, *text) != NULL)
      *(*to)++ = *text++;
    else if (*text == '_' && text[1] != '\0' && strchr(digits, text[1]) != NULL)
      ++text;
    else
      break;
  }
  return text;
}

/* Checks the syntax and copies the number without underscores. Returns 0 if it is not a number, 1
 * for a decimal integer, 2 for hexadecimal, 3 with a fraction or an exponent. */
static int number_form(const char *text, char *clean) {
  static const char decimal[] = "0123456789";
  if (*text == '+' || *text == '-') *clean++ = *text++;
  int form = 1;
  if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    *clean++ = *text++;
    *clean++ = *text++;
    text = copy_digits(text, "0123456789abcdefABCDEF", &clean);
    form = 2;
  } else {
    const char *after = copy_digits(text, decimal, &clean);
    int digits = after != NULL;
    if (digits) text = after;
    if (*text == '.') {
      *clean++ = *text++;
      form = 3;
      after = copy_digits(text, decimal, &clean);
      if (after != NULL) text = after, digits = 1;
    }
    if (!digits) return 0;
    if (*text == 'e' || *text == 'E') {
      *clean++ = *text++;
      form = 3;
      if (*text == '+' || *text == '-') *clean++ = *text++;
      text = copy_digits(text, decimal, &clean);
    }
  }
  *clean = '\0';
  return text != NULL && *text == '\0' ? form : 0;
}

/* Parses digits of base 10 or 16 into *magnitude; returns 0 if beyond 64 bits. */
static int exact_integer(const char *digits, unsigned base, uint64_t *magnitude) {
  *magnitude = 0;
  for (; *digits != '\0'; ++digits) {
    unsigned digit =
        *digits <= '9' ? (unsigned)(*digits - '0') : ((unsigned)*digits | 32) - 'a' + 10;
    if (*magnitude > (UINT64_MAX - digit) / base) return 0;
    *magnitude = *magnitude * base + digit;
  }
  return 1;
}

cfg_value cfg_value_of(const cfg_node *scalar) {
  enum { LONGEST = 400 }; /* enough for any double written out */
  cfg_value v = {.kind = CFG_NOT_NUMBER};
  if (scalar->kind != CFG_SCALAR || !scalar->plain) return v;
  const char *text = scalar->text;
  v.negative = *text == '-';
  if (is_infinity(text)) {
    v.kind = CFG_REAL;
    v.real = v.negative ? -INFINITY : INFINITY;
    return v;
  }
  char clean[LONGEST + 1];
  int form = strlen(text) > LONGEST ? 0 : number_form(text, clean);
  if (form == 0) return v;
  const char *digits = clean + (*clean == '-' || *clean == '+');
  v.real = strtod(clean, NULL);
  v.kind = isinf(v.real) ? CFG_TOO_LARGE : CFG_REAL;
  if (form != 3 &&
      exact_integer(form == 2 ? digits + 2 : digits, form == 2 ? 16 : 10, &v.magnitude))
    v.kind = CFG_INTEGER;
  else if (v.kind == CFG_REAL && fabs(v.real) < 0x1p64 && floor(v.real) == v.real) {
    v.kind = CFG_INTEGER;
    v.magnitude = (uint64_t)fabs(v.real);
  }
  return v;
}

const char *cfg_describe(const cfg_node *node) {
  if (node->kind == CFG_LIST) return "a list";
  if (node->kind == CFG_MAP) return "a map";
  if (cfg_is_null(node)) return "nothing";
  if (cfg_boolean_of(node) >= 0) return "a boolean";
  if (cfg_value_of(node).kind >= CFG_REAL) return "a number";
  return "text";
}

int cfg_number(const cfg_node *node, double *value) {
  cfg_value v = cfg_value_of(node);
  if (v.kind < CFG_REAL) return 0;
  *value = v.real;
  return 1;
}

/* --- messages --- */

static gl_status fail_at(const cfg_position *at, gl_error *err, const char *format, va_list args) {
  char text[sizeof err->text];
  vsnprintf(text, sizeof text, format, args);
  if (at == NULL || at->source == NULL) return gl_fail(err, GL_EINPUT, "%s", text);
  if (at->source->quote != NULL)
    return gl_fail(err, GL_EINPUT, "%s:%zu:%zu: in '%.200s': %s", at->source->name, at->line,
                   at->column, at->source->quote, text);
  return gl_fail(err, GL_EINPUT, "%.400s:%zu:%zu: %s", at->source->name, at->line, at->column,
                 text);
}

gl_status cfg_fail_at(const cfg_position *at, gl_error *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  gl_status status = fail_at(at, err, format, args);
  va_end(args);
  return status;
}

gl_status cfg_fail(const cfg_node *node, gl_error *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  gl_status status = fail_at(node == NULL ? NULL : &node->at, err, format, args);
  va_end(args);
  return status;
}

/* --- memory --- */

cfg_doc *cfg_doc_new(void) {
  return calloc(1, sizeof(cfg_doc));
}

void cfg_free(cfg_doc *doc) {
  if (doc != NULL) arena_fini(&doc->memory);
  free(doc);
}

void *cfg_alloc(cfg_doc *doc, size_t size) {
  return arena_array(&doc->memory, size, 1);
}

const char *cfg_strdup(cfg_doc *doc, const char *text, size_t length) {
  char *copy = cfg_alloc(doc, length + 1);
  if (copy != NULL) memcpy(copy, text, length);
  return copy;
}

const cfg_source *cfg_source_new(cfg_doc *doc, const char *name, const char *quote,
                                 const char *path) {
  cfg_source *source = cfg_alloc(doc, sizeof *source);
  if (source == NULL) return NULL;
  source->name = cfg_strdup(doc, name, strlen(name));
  if (quote != NULL) source->quote = cfg_strdup(doc, quote, strlen(quote));
  if (path != NULL) source->path = cfg_strdup(doc, path, strlen(path));
  source->next = doc->sources;
  doc->sources = source;
  return source->name == NULL || (quote != NULL && source->quote == NULL) ||
                 (path != NULL && source->path == NULL)
             ? NULL
             : source;
}

cfg_node *cfg_node_new(cfg_doc *doc, cfg_kind kind, cfg_position at, gl_error *err) {
  if (doc->n_nodes >= CFG_MAX_NODES) {
    cfg_fail_at(&at, err,
                "the recipe grows beyond %d values once its aliases are expanded; "
                "use fewer or smaller aliases",
                CFG_MAX_NODES);
    return NULL;
  }
  cfg_node *node = cfg_alloc(doc, sizeof *node);
  if (node == NULL) {
    gl_fail_memory(err, "a recipe");
    return NULL;
  }
  ++doc->n_nodes;
  *node = (cfg_node){.kind = kind, .at = at, .text = ""};
  return node;
}

gl_status cfg_append(cfg_doc *doc, cfg_node *to, const char *key, cfg_position key_at,
                     cfg_node *value, gl_error *err) {
  if (to->n == to->capacity) {
    size_t capacity =
        to->capacity == 0 ? 4 : 2 * to->capacity; /* cannot overflow: bounded by CFG_MAX_NODES */
    cfg_entry *entry = cfg_alloc(doc, capacity * sizeof *entry);
    if (entry == NULL) return gl_fail_memory(err, "a recipe");
    if (to->n != 0) memcpy(entry, to->entry, to->n * sizeof *entry);
    to->entry = entry;
    to->capacity = capacity;
  }
  to->entry[to->n++] = (cfg_entry){key, key_at, value};
  return GL_OK;
}

/* --- copies --- */

typedef struct copier {
  cfg_doc *doc;
  const cfg_source *from, *to; /* last source copied; neighbouring nodes share sources */
  gl_error *err;
} copier;

static int copy_place(copier *c, cfg_position *at) {
  if (at->source == NULL) return 1;
  if (at->source != c->from) {
    c->to = cfg_source_new(c->doc, at->source->name, at->source->quote, at->source->path);
    if (c->to == NULL) return gl_fail_memory(c->err, "a recipe"), 0;
    c->from = at->source;
  }
  at->source = c->to;
  return 1;
}

static cfg_node *copy_node(copier *c, const cfg_node *node) {
  cfg_node *copy = cfg_node_new(c->doc, node->kind, node->at, c->err);
  if (copy == NULL || !copy_place(c, &copy->at)) return NULL;
  copy->plain = node->plain;
  copy->unit = node->unit;
  copy->text = cfg_strdup(c->doc, node->text, strlen(node->text));
  if (copy->text == NULL) return gl_fail_memory(c->err, "a recipe"), NULL;
  for (size_t i = 0; i < node->n; ++i) {
    cfg_entry e = node->entry[i];
    if (e.key != NULL && (e.key = cfg_strdup(c->doc, e.key, strlen(e.key))) == NULL)
      return gl_fail_memory(c->err, "a recipe"), NULL;
    if (!copy_place(c, &e.key_at)) return NULL;
    cfg_node *value = copy_node(c, e.value);
    if (value == NULL || cfg_append(c->doc, copy, e.key, e.key_at, value, c->err) != GL_OK)
      return NULL;
  }
  return copy;
}

cfg_node *cfg_node_copy(cfg_doc *doc, const cfg_node *node, gl_error *err) {
  copier c = {.doc = doc, .err = err};
  return copy_node(&c, node);
}

gl_status cfg_copy(cfg_doc **out, const cfg_doc *doc, gl_error *err) {
  *out = NULL;
  cfg_doc *copy = cfg_doc_new();
  if (copy == NULL) return gl_fail_memory(err, "a recipe");
  gl_error local = {0};
  copy->root = cfg_node_copy(copy, doc->root, &local);
  if (copy->root == NULL) {
    cfg_free(copy);
    return gl_fail(err, local.status, "%s", local.text);
  }
  *out = copy;
  return GL_OK;
}
