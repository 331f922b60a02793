/* Plain scalars as numbers, and the canonical text of a tree. */
#include "core/base/json.h"
#include "core/config/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- numbers --- */

static int is_infinity(const char *text) {
  static const char *const spellings[] = {"inf", "Inf", ".inf", ".Inf", ".INF"};
  if (*text == '+' || *text == '-') ++text;
  for (size_t i = 0; i < sizeof spellings / sizeof *spellings; ++i)
    if (strcmp(text, spellings[i]) == 0) return 1;
  return strcmp(text, "1e999") == 0; /* as cfg_canonical() writes it */
}

/* Skips digits with single underscores between them, copying the digits; NULL if there are none. */
static const char *take_digits(const char *text, const char *digits, char **to) {
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

/* Checks the grammar and copies the number without underscores. 0 if it is not one, 1 an integer in
 * base 10, 2 in base 16, 3 with a fraction or an exponent. */
static int number_form(const char *text, char *clean) {
  static const char decimal[] = "0123456789";
  if (*text == '+' || *text == '-') *clean++ = *text++;
  int form = 1;
  if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    *clean++ = *text++;
    *clean++ = *text++;
    text = take_digits(text, "0123456789abcdefABCDEF", &clean);
    form = 2;
  } else {
    const char *after = take_digits(text, decimal, &clean);
    int digits = after != NULL;
    if (digits) text = after;
    if (*text == '.') {
      *clean++ = *text++;
      form = 3;
      after = take_digits(text, decimal, &clean);
      if (after != NULL) text = after, digits = 1;
    }
    if (!digits) return 0;
    if (*text == 'e' || *text == 'E') {
      *clean++ = *text++;
      form = 3;
      if (*text == '+' || *text == '-') *clean++ = *text++;
      text = take_digits(text, decimal, &clean);
    }
  }
  *clean = '\0';
  return text != NULL && *text == '\0' ? form : 0;
}

/* Digits of base 10 or 16 into *magnitude; 0 if beyond 64 bits. */
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

/* --- canonical text --- */

typedef struct text_buffer {
  char *data;
  size_t size, capacity;
  int failed;
  cfg_mark *marks; /* [n_marks] nodes whose place in the text is asked for */
  size_t n_marks;
} text_buffer;

static void put(text_buffer *b, const char *text, size_t length) {
  if (b->failed) return;
  if (b->capacity - b->size <= length) {
    size_t capacity = 2 * (b->capacity + length) + 64;
    char *data = realloc(b->data, capacity);
    if (data == NULL) {
      b->failed = 1;
      return;
    }
    b->data = data;
    b->capacity = capacity;
  }
  memcpy(b->data + b->size, text, length);
  b->size += length;
  b->data[b->size] = '\0';
}

static void put_text(text_buffer *b, const char *text) {
  put(b, text, strlen(text));
}

/* The first character of UTF-8 text and how many bytes it has. One beyond 16 bits, or a byte that
 * is no UTF-8, is told only as such: neither is ever escaped. */
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

/* What YAML does not take as it is, or takes for a line break: so the text is a recipe, too. */
static int needs_escape(unsigned c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
         c == 0xfffe || c == 0xffff;
}

static void put_quoted(text_buffer *b, const char *text) {
  put(b, "\"", 1);
  for (size_t length; *text != '\0'; text += length) {
    char escape[8];
    unsigned c = first_character(text, &length);
    if (needs_escape(c)) {
      snprintf(escape, sizeof escape, "\\u%04x", c);
      put_text(b, escape);
    } else {
      if (c == '"' || c == '\\') put(b, "\\", 1);
      put(b, text, length);
    }
  }
  put(b, "\"", 1);
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

static int by_key(const void *a, const void *b) {
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
    b->failed = 1;
    return;
  }
  for (size_t i = 0; i < node->n; ++i) order[i] = &node->entry[i];
  if (node->kind == CFG_MAP) qsort(order, node->n, sizeof *order, by_key);
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

char *cfg_canonical_marked(const cfg_node *node, cfg_mark *marks, size_t n) {
  text_buffer b = {.marks = marks, .n_marks = n};
  put_node(&b, node);
  if (!b.failed) return b.data;
  free(b.data);
  return NULL;
}

char *cfg_canonical(const cfg_node *node) {
  return cfg_canonical_marked(node, NULL, 0);
}
