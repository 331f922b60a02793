/* The canonical text of a tree, and templates for many texts that differ in a few values. */
#include "core/base/array.h"
#include "core/base/json.h"
#include "core/config/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- canonical text --- */

/* A node whose position in the text is requested; both 0 if it is not in the text. */
typedef struct mark {
  const cfg_node *node;
  size_t begin, end;
} mark;

typedef struct text_buffer {
  char *data;
  size_t size, capacity;
  bool failed;
  mark *marks; /* [n_marks] */
  size_t n_marks;
} text_buffer;

static void put_bytes(text_buffer *b, const char *text, size_t length) {
  if (b->failed) return;
  if (!ARRAY_RESERVE(b->data, b->capacity, b->size + length + 1)) {
    b->failed = true;
    return;
  }
  memcpy(b->data + b->size, text, length);
  b->size += length;
  b->data[b->size] = '\0';
}

static void put_text(text_buffer *b, const char *text) {
  put_bytes(b, text, strlen(text));
}

/* The first character of UTF-8 text and its length in bytes; 0x10000 for characters beyond 16 bits
 * and for invalid bytes, which are never escaped. */
static unsigned first_character(const char *text, size_t *length) {
  const unsigned char *t = (const unsigned char *)text;
  *length = 1;
  if (t[0] < 0x80) return t[0];
  if ((t[0] & 0xe0) == 0xc0 && (t[1] & 0xc0) == 0x80) {
    *length = 2;
    return (t[0] & 0x1fu) << 6 | (t[1] & 0x3fu);
  }
  if ((t[0] & 0xf0) == 0xe0 && (t[1] & 0xc0) == 0x80 && (t[2] & 0xc0) == 0x80) {
    *length = 3;
    return (t[0] & 0xfu) << 12 | (t[1] & 0x3fu) << 6 | (t[2] & 0x3fu);
  }
  return 0x10000;
}

/* Characters that YAML refuses unescaped or reads as line breaks, because canonical text must also
 * be valid YAML. */
static int needs_escape(unsigned c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
         c == 0xfffe || c == 0xffff;
}

static void put_quoted(text_buffer *b, const char *text) {
  put_bytes(b, "\"", 1);
  for (size_t length; *text != '\0'; text += length) {
    char escape[8];
    unsigned c = first_character(text, &length);
    if (needs_escape(c)) {
      snprintf(escape, sizeof escape, "\\u%04x", c);
      put_text(b, escape);
    } else {
      if (c == '"' || c == '\\') put_bytes(b, "\\", 1);
      put_bytes(b, text, length);
    }
  }
  put_bytes(b, "\"", 1);
}

static void put_scalar(text_buffer *b, const cfg_node *node) {
  char text[NUMBER_TEXT_SIZE];
  cfg_value v = cfg_value_of(node);
  if (v.kind == CFG_INTEGER) {
    snprintf(text, sizeof text, "%s%llu", v.negative && v.magnitude != 0 ? "-" : "",
             (unsigned long long)v.magnitude);
    put_text(b, text);
  } else if (v.kind == CFG_REAL && isinf(v.real))
    put_text(b, v.negative ? "-1e999" : "1e999");
  else if (v.kind == CFG_REAL)
    put_text(b, number_text(v.real, text));
  else if (cfg_is_null(node))
    put_text(b, "null");
  else if (cfg_boolean_of(node) >= 0)
    put_text(b, cfg_boolean_of(node) ? "true" : "false");
  else
    put_quoted(b, node->text);
}

static int by_map_key(const void *a, const void *b) {
  const cfg_entry *const *x = a, *const *y = b;
  return strcmp((*x)->key, (*y)->key);
}

static void put_node(text_buffer *b, const cfg_node *node);

static void put_marked(text_buffer *b, const cfg_node *node) {
  const size_t begin = b->size;
  put_node(b, node);
  for (size_t i = 0; i < b->n_marks; ++i)
    if (b->marks[i].node == node) b->marks[i].begin = begin, b->marks[i].end = b->size;
}

static void put_node(text_buffer *b, const cfg_node *node) {
  if (node->kind == CFG_SCALAR) {
    put_scalar(b, node);
    return;
  }
  const cfg_entry **order = calloc(node->n + 1, sizeof *order);
  if (order == NULL) {
    b->failed = true;
    return;
  }
  for (size_t i = 0; i < node->n; ++i) order[i] = &node->entry[i];
  if (node->kind == CFG_MAP) qsort(order, node->n, sizeof *order, by_map_key);
  put_text(b, node->kind == CFG_MAP ? "{" : "[");
  for (size_t i = 0; i < node->n && !b->failed; ++i) {
    if (i != 0) put_text(b, ",");
    if (node->kind == CFG_MAP) {
      put_quoted(b, order[i]->key);
      put_text(b, ":");
    }
    put_marked(b, order[i]->value);
  }
  put_text(b, node->kind == CFG_MAP ? "}" : "]");
  free(order);
}

/* cfg_canonical() that sets begin and end of each of marks[n]. */
static char *canonical_marked(const cfg_node *node, mark *marks, size_t n) {
  text_buffer b = {.marks = marks, .n_marks = n};
  put_node(&b, node);
  if (!b.failed) return b.data;
  free(b.data);
  return NULL;
}

char *cfg_canonical(const cfg_node *node) {
  return canonical_marked(node, NULL, 0);
}

/* --- templates --- */

typedef struct hole {
  size_t begin, end; /* position of the value in the text */
  size_t index;      /* index of its path */
} hole;

struct cfg_template {
  char *text;
  size_t size, n;
  hole hole[]; /* [n] in the order of the text */
};

static int by_hole(const void *a, const void *b) {
  const hole *x = a, *y = b;
  return (x->begin > y->begin) - (x->begin < y->begin);
}

gl_status cfg_template_new(cfg_template **out, const cfg_doc *doc, const char *const *paths,
                           size_t n, gl_error *err) {
  cfg_template *t = calloc(1, sizeof *t + n * sizeof *t->hole);
  mark *marks = calloc(n + 1, sizeof *marks);
  *out = NULL;
  int found = t != NULL && marks != NULL;
  for (size_t i = 0; found && i < n; ++i) {
    marks[i].node = cfg_find(doc->root, paths[i]);
    if (marks[i].node != NULL) continue;
    free(t), free(marks);
    return gl_fail(err, GL_EINTERNAL, "a template of a recipe without %s", paths[i]);
  }
  if (found) t->text = canonical_marked(doc->root, marks, n);
  if (!found || t->text == NULL) {
    free(t), free(marks);
    return gl_fail_memory(err, "the text of a recipe");
  }
  t->size = strlen(t->text);
  t->n = n;
  for (size_t i = 0; i < n; ++i) t->hole[i] = (hole){marks[i].begin, marks[i].end, i};
  qsort(t->hole, n, sizeof *t->hole, by_hole);
  free(marks);
  for (size_t i = 0; i < n; ++i) {
    const size_t before = i > 0 ? t->hole[i - 1].end : 0;
    if (t->hole[i].begin < t->hole[i].end && before <= t->hole[i].begin) continue;
    cfg_template_free(t);
    return gl_fail(err, GL_EINTERNAL, "a template of a recipe has a hole inside another");
  }
  *out = t;
  return GL_OK;
}

void cfg_template_free(cfg_template *t) {
  if (t != NULL) free(t->text);
  free(t);
}

size_t cfg_template_size(const cfg_template *t, const char *const *values) {
  size_t size = t->size;
  for (size_t i = 0; i < t->n; ++i)
    size = size - (t->hole[i].end - t->hole[i].begin) + strlen(values[t->hole[i].index]);
  return size;
}

void cfg_template_write(const cfg_template *t, const char *const *values, char *to) {
  size_t at = 0;
  for (size_t i = 0; i < t->n; ++i) {
    const hole *h = &t->hole[i];
    const size_t before = h->begin - at, length = strlen(values[h->index]);
    memcpy(to, t->text + at, before);
    memcpy(to + before, values[h->index], length);
    to += before + length;
    at = h->end;
  }
  memcpy(to, t->text + at, t->size - at + 1);
}
