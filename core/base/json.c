/* Writes and reads JSON. */
#include "core/base/json.h"

#include "core/base/array.h"
#include "core/base/utf8.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

char *number_text(double value, char text[NUMBER_TEXT_SIZE]) {
  if (isnan(value)) {
    snprintf(text, NUMBER_TEXT_SIZE, "nan");
    return text;
  }
  /* %g drops trailing zeros, so 15 digits already give every shorter form of a normal number, and
   * 17 always read back exactly; a subnormal number has fewer significant digits */
  for (int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG; digits <= DBL_DECIMAL_DIG; ++digits) {
    snprintf(text, NUMBER_TEXT_SIZE, "%.*g", digits, value);
    if (isinf(value) || strtod(text, NULL) == value) break;
  }
  return text;
}

/* Adds item under key (or to an array) and returns it; on failure deletes it and returns NULL. */
static cJSON *attach(cJSON *to, const char *key, cJSON *item) {
  if (item == NULL) return NULL;
  if (key != NULL ? cJSON_AddItemToObject(to, key, item) : cJSON_AddItemToArray(to, item))
    return item;
  cJSON_Delete(item);
  return NULL;
}

static cJSON *number_item(double value) {
  char text[NUMBER_TEXT_SIZE];
  return isfinite(value) ? cJSON_CreateRaw(number_text(value, text)) : cJSON_CreateNull();
}

cJSON *json_add_number(cJSON *to, const char *key, double value) {
  return attach(to, key, number_item(value));
}

cJSON *json_add_numbers(cJSON *to, const char *key, const double *values, size_t n) {
  cJSON *array = cJSON_CreateArray();
  for (size_t i = 0; array != NULL && i < n; ++i)
    if (json_add_number(array, NULL, values[i]) == NULL) {
      cJSON_Delete(array);
      array = NULL;
    }
  return attach(to, key, array);
}

cJSON *json_add_string(cJSON *to, const char *key, const char *value) {
  return attach(to, key, cJSON_CreateString(value));
}

cJSON *json_append_object(cJSON *array) {
  cJSON *o = cJSON_CreateObject();
  if (o && cJSON_AddItemToArray(array, o)) return o;
  cJSON_Delete(o);
  return NULL;
}

char json_next_member(const char **format, char key[JSON_KEY_SIZE]) {
  const char *at = *format + strspn(*format, ", ");
  const size_t length = strcspn(at, " %");
  assert(length < JSON_KEY_SIZE);
  snprintf(key, JSON_KEY_SIZE, "%.*s", (int)length, at);
  at += length + strspn(at + length, " %");
  *format = at + strcspn(at, ",");
  return *at;
}

void json_write(const char *printed, FILE *to) {
  for (size_t left = strlen(printed); left > 0;) {
    const size_t good = utf8_valid_prefix(printed, left);
    fwrite(printed, 1, good, to);
    if (good < left) fprintf(to, "\\\\x%02x", (unsigned char)printed[good]);
    printed += good + (good < left);
    left -= good + (good < left);
  }
}

/* --- reading --- */
/* The strict JSON reader: containers, strings, numbers, words. */

void json_begin(json_reader *r, const char *text, size_t size, const char *name, gl_error *err) {
  *r = (json_reader){
      .text = text, .size = size, .name = name, .first_line = 1, .err = err, .status = GL_OK};
}

/* Line and column (from 1) of a byte of the text; columns count characters. */
static void json_position_of(const json_reader *r, size_t byte, size_t *line, size_t *column) {
  *line = r->first_line;
  *column = 1;
  for (size_t i = 0; i < byte && i < r->size; ++i) {
    if (r->text[i] == '\n') {
      ++*line;
      *column = 1;
    } else
      *column += ((unsigned char)r->text[i] & 0xc0) != 0x80;
  }
}

static void fail_list(json_reader *r, size_t byte, const char *format, va_list list) {
  char text[900];
  size_t line, column;
  if (r->status != GL_OK) return;
  vsnprintf(text, sizeof text, format, list);
  json_position_of(r, byte, &line, &column);
  r->status = gl_fail(r->err, GL_EINPUT, "%.300s:%zu:%zu: %s", r->name, line, column, text);
}

void json_fail_at(json_reader *r, size_t byte, const char *format, ...) {
  va_list list;
  va_start(list, format);
  fail_list(r, byte, format, list);
  va_end(list);
}

void json_fail(json_reader *r, const char *format, ...) {
  va_list list;
  va_start(list, format);
  fail_list(r, r->at, format, list);
  va_end(list);
}

static char next_byte(json_reader *r) {
  while (r->at < r->size && memchr(" \t\r\n", r->text[r->at], 4) != NULL) ++r->at;
  return r->at < r->size ? r->text[r->at] : '\0';
}

gl_status json_end(json_reader *r) {
  if (r->status == GL_OK && (next_byte(r) != '\0' || r->at < r->size))
    json_fail(r, "there is more after the end of the JSON value; the file is damaged");
  free(r->word);
  r->word = NULL;
  return r->status;
}

/* For messages: what failed at this byte may have lacked the rest of the text. */
static const char *cut_short(const json_reader *r, size_t byte) {
  return byte >= r->size ? "; the text is cut short" : "";
}

/* Consumes c, or fails with a message that `what` was expected. */
static int json_take(json_reader *r, char c, const char *what) {
  if (r->status != GL_OK) return 0;
  if (next_byte(r) != c || r->at >= r->size) {
    json_fail(r, "expected %s%s", what, cut_short(r, r->at));
    return 0;
  }
  ++r->at;
  return 1;
}

/* Length of a NaN or an infinity at the current position; 0 if there is none or python_numbers is
 * not set. */
static size_t python_number_size(const json_reader *r) {
  static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
  for (size_t i = 0; r->python_numbers && i < sizeof words / sizeof *words; ++i) {
    const size_t n = strlen(words[i]);
    if (r->size - r->at >= n && memcmp(r->text + r->at, words[i], n) == 0) return n;
  }
  return 0;
}

char json_peek(json_reader *r) {
  if (r->status != GL_OK) return '\0';
  char c = next_byte(r);
  if (c != '\0' && python_number_size(r) > 0) return '0';
  return c != '\0' && strchr("{[\"tfn-0123456789", c) != NULL ? c : '\0';
}

/* --- containers --- */

void json_enter(json_reader *r, char open) {
  assert(open == '{' || open == '[');
  if (r->status == GL_OK && r->depth == JSON_MAX_DEPTH) {
    json_fail(r, "nested deeper than %d levels", (int)JSON_MAX_DEPTH);
    return;
  }
  if (!json_take(r, open, open == '{' ? "an object" : "an array")) return;
  ++r->depth;
  r->first = 1;
}

/* Whether the open container has another element; at its end leaves the container. */
static int json_goes_on(json_reader *r, char close) {
  if (r->status != GL_OK) return 0;
  if (next_byte(r) == close && r->at < r->size) {
    ++r->at;
    --r->depth;
    r->first = 0;
    return 0;
  }
  if (!r->first && !json_take(r, ',', close == '}' ? "',' or '}'" : "',' or ']'")) return 0;
  r->first = 0;
  return 1;
}

int json_element(json_reader *r) {
  return json_goes_on(r, ']');
}

int json_member(json_reader *r) {
  if (!json_goes_on(r, '}')) return 0;
  json_string(r);
  return json_take(r, ':', "':'");
}

/* --- strings --- */

static bool json_reserve(json_reader *r, size_t more) {
  if (ARRAY_RESERVE(r->word, r->word_room, r->word_size + more + 1)) return true;
  if (r->status == GL_OK) r->status = gl_fail_memory(r->err, "a JSON string");
  return false;
}

static void put_code_point(json_reader *r, int32_t c) {
  utf8proc_uint8_t bytes[4];
  utf8proc_ssize_t n = utf8proc_encode_char(c, bytes);
  if (n <= 0 || c == 0)
    json_fail(r, "an escape that is no character");
  else if (json_reserve(r, (size_t)n)) {
    memcpy(r->word + r->word_size, bytes, (size_t)n);
    r->word_size += (size_t)n;
  }
}

/* Four hexadecimal digits, or -1. */
static int32_t hex_unit(json_reader *r) {
  int32_t value = 0;
  for (int i = 0; i < 4; ++i, ++r->at) {
    char c = r->at < r->size ? r->text[r->at] : '\0';
    const char *digits = "0123456789abcdefABCDEF", *digit = c == '\0' ? NULL : strchr(digits, c);
    if (digit == NULL) {
      json_fail(r, "\\u wants four hexadecimal digits");
      return -1;
    }
    ptrdiff_t d = digit - digits;
    value = value * 16 + (int32_t)(d < 16 ? d : d - 6);
  }
  return value;
}

static void read_unicode_escape(json_reader *r) {
  int32_t c = hex_unit(r);
  if (c >= 0xd800 && c < 0xdc00 && r->at + 1 < r->size && r->text[r->at] == '\\' &&
      r->text[r->at + 1] == 'u') {
    r->at += 2;
    int32_t low = hex_unit(r);
    c = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) : -1;
  } else if (c >= 0xd800 && c < 0xe000)
    c = -1;
  if (c < 0)
    json_fail(r, "half of a surrogate pair");
  else
    put_code_point(r, c);
}

static void read_escape(json_reader *r) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  char c = ++r->at < r->size ? r->text[r->at] : '\0';
  const char *found = c == '\0' ? NULL : strchr(from, c);
  ++r->at;
  if (c == 'u')
    read_unicode_escape(r);
  else if (found == NULL)
    json_fail(r, "an escape JSON does not have");
  else if (json_reserve(r, 1))
    r->word[r->word_size++] = to[found - from];
}

static void read_character(json_reader *r) {
  const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)r->text + r->at;
  utf8proc_int32_t c;
  utf8proc_ssize_t n = utf8proc_iterate(at, (utf8proc_ssize_t)(r->size - r->at), &c);
  if (*at < 0x20)
    json_fail(r, "a control character inside a string");
  else if (n <= 0)
    json_fail(r, "a string that is not UTF-8");
  else if (json_reserve(r, (size_t)n)) {
    memcpy(r->word + r->word_size, at, (size_t)n);
    r->word_size += (size_t)n;
    r->at += (size_t)n;
  }
}

void json_string(json_reader *r) {
  if (!json_take(r, '"', "a string")) return;
  r->word_size = 0;
  while (r->status == GL_OK && r->at < r->size && r->text[r->at] != '"') {
    if (r->text[r->at] == '\\')
      read_escape(r);
    else
      read_character(r);
  }
  if (r->status == GL_OK && json_reserve(r, 0)) {
    r->word[r->word_size] = '\0';
    json_take(r, '"', "the end of a string");
  }
}

/* --- other scalars --- */

static size_t digits_at(const json_reader *r, size_t at) {
  size_t n = 0;
  while (at + n < r->size && r->text[at + n] >= '0' && r->text[at + n] <= '9') ++n;
  return n;
}

static int byte_is(const json_reader *r, size_t at, const char *any) {
  return at < r->size && r->text[at] != '\0' && strchr(any, r->text[at]) != NULL;
}

/* Length of the number at the current position, 0 after a failure. */
static size_t number_size(json_reader *r) {
  if (r->status != GL_OK) return 0;
  next_byte(r);
  if (python_number_size(r) > 0) return python_number_size(r);
  size_t at = r->at + (byte_is(r, r->at, "-") ? 1u : 0u), whole = digits_at(r, at);
  int good = whole > 0 && (whole == 1 || r->text[at] != '0');
  at += whole;
  if (good && byte_is(r, at, ".")) {
    size_t n = digits_at(r, at + 1);
    good = n > 0;
    at += 1 + n;
  }
  if (good && byte_is(r, at, "eE")) {
    at += byte_is(r, at + 1, "+-") ? 2 : 1;
    size_t n = digits_at(r, at);
    good = n > 0;
    at += n;
  }
  if (good) return at - r->at;
  json_fail(r, "expected a number%s", cut_short(r, at));
  return 0;
}

size_t json_unsigned(json_reader *r) {
  size_t n = number_size(r), value = 0;
  for (size_t i = 0; i < n; ++i) {
    char c = r->text[r->at + i];
    if (c < '0' || c > '9') {
      json_fail(r, "expected a whole number, not negative");
      return 0;
    }
    size_t digit = (size_t)(c - '0');
    if (value > (SIZE_MAX - digit) / 10) {
      json_fail(r, "a number too large for this machine");
      return 0;
    }
    value = value * 10 + digit;
  }
  r->at += n;
  return value;
}

double json_real(json_reader *r) {
  char text[64];
  size_t n = number_size(r);
  if (n >= sizeof text) {
    json_fail(r, "a number of %zu characters", n);
    return 0;
  }
  if (n == 0) return 0;
  memcpy(text, r->text + r->at, n);
  text[n] = '\0';
  double value = strtod(text, NULL);
  if (!isfinite(value) && python_number_size(r) == 0) {
    json_fail(r, "a number too large for double precision");
    return 0;
  }
  r->at += n;
  return value;
}

static int take_word(json_reader *r, const char *word) {
  size_t n = strlen(word);
  if (r->status != GL_OK) return 0;
  next_byte(r);
  if (r->size - r->at < n || memcmp(r->text + r->at, word, n) != 0) return 0;
  r->at += n;
  return 1;
}

int json_truth(json_reader *r) {
  if (take_word(r, "true")) return 1;
  if (!take_word(r, "false")) json_fail(r, "expected true or false");
  return 0;
}

void json_null(json_reader *r) {
  if (!take_word(r, "null")) json_fail(r, "expected null");
}

void json_skip(json_reader *r) {
  switch (json_peek(r)) {
  case '{':
    json_enter(r, '{');
    while (json_member(r)) json_skip(r);
    return;
  case '[':
    json_enter(r, '[');
    while (json_element(r)) json_skip(r);
    return;
  case '"':
    json_string(r);
    return;
  case 't':
  case 'f':
    (void)json_truth(r);
    return;
  case 'n':
    json_null(r);
    return;
  case '\0':
    json_fail(r, "expected a value%s", cut_short(r, r->at));
    return;
  default:
    r->at += number_size(r);
  }
}

/* --- trees --- */
/* Builds a tree of cJSON items with the strict JSON reader. */

typedef struct builder {
  json_reader r;
  size_t n, most_values; /* values so far; 0: no limit */
  bool own;              /* this program wrote the text: 1e999 is its infinity */
} builder;

static void fail_memory(builder *b) {
  if (b->r.status == GL_OK) b->r.status = gl_fail_memory(b->r.err, "a JSON tree");
}

/* Returns the item, or deletes it and returns NULL after a failure. */
static cJSON *kept(builder *b, cJSON *item) {
  if (b->r.status == GL_OK && item != NULL) return item;
  if (item == NULL) fail_memory(b);
  cJSON_Delete(item);
  return NULL;
}

static cJSON *json_read_value(builder *b);

/* Reads a number. In the canonical recipes of studies, infinity is written as 1e999. */
static double json_read_number(builder *b) {
  static const char *const infinity[] = {"1e999", "-1e999"};
  const size_t n = b->own ? number_size(&b->r) : 0;
  for (size_t i = 0; i < 2 && n > 0; ++i)
    if (n == strlen(infinity[i]) && memcmp(b->r.text + b->r.at, infinity[i], n) == 0) {
      b->r.at += n;
      return i == 0 ? INFINITY : -INFINITY;
    }
  return json_real(&b->r);
}

/* Reads an object. Each key is copied, because reading its value overwrites r.word. Recursion ends
 * at JSON_MAX_DEPTH, where the reader fails. */
static cJSON *json_read_object(builder *b) {
  cJSON *object = kept(b, cJSON_CreateObject());
  json_enter(&b->r, '{');
  while (json_member(&b->r)) {
    char *key = strdup(b->r.word);
    cJSON *value = json_read_value(b);
    if (key == NULL || (value != NULL && !cJSON_AddItemToObject(object, key, value))) {
      cJSON_Delete(value);
      fail_memory(b);
    }
    free(key);
  }
  return kept(b, object);
}

static cJSON *read_array(builder *b) {
  cJSON *array = kept(b, cJSON_CreateArray());
  json_enter(&b->r, '[');
  while (json_element(&b->r)) {
    cJSON *value = json_read_value(b);
    if (value != NULL && !cJSON_AddItemToArray(array, value)) {
      cJSON_Delete(value);
      fail_memory(b);
    }
  }
  return kept(b, array);
}

static cJSON *json_read_value(builder *b) {
  if (b->most_values != 0 && ++b->n > b->most_values)
    json_fail(&b->r, "more than %zu values, which no such file has", b->most_values);
  switch (json_peek(&b->r)) {
  case '{':
    return json_read_object(b);
  case '[':
    return read_array(b);
  case '"':
    json_string(&b->r);
    return b->r.status == GL_OK ? kept(b, cJSON_CreateString(b->r.word)) : NULL;
  case 't':
  case 'f': {
    const int truth = json_truth(&b->r);
    return b->r.status == GL_OK ? kept(b, cJSON_CreateBool(truth)) : NULL;
  }
  case 'n':
    json_null(&b->r);
    return b->r.status == GL_OK ? kept(b, cJSON_CreateNull()) : NULL;
  case '\0':
    json_fail(&b->r, "expected a value%s", cut_short(&b->r, b->r.at));
    return NULL;
  default: { /* json_peek() guarantees a digit or a minus */
    const double number = json_read_number(b);
    return b->r.status == GL_OK ? kept(b, cJSON_CreateNumber(number)) : NULL;
  }
  }
}

static gl_status json_build_tree(cJSON **out, builder *b) {
  *out = json_read_value(b);
  const gl_status status = json_end(&b->r);
  if (status == GL_OK) return GL_OK;
  cJSON_Delete(*out);
  *out = NULL;
  return status;
}

gl_status json_tree_read(cJSON **out, const char *text, size_t size, size_t most_values,
                         const char *name, gl_error *err) {
  assert(out != NULL && (text != NULL || size == 0) && name != NULL);
  builder b = {.most_values = most_values};
  json_begin(&b.r, text, size, name, err);
  return json_build_tree(out, &b);
}

cJSON *json_tree_of(const char *text) {
  gl_error why = {0};
  cJSON *tree = NULL;
  builder b = {.own = true};
  if (text == NULL) return NULL;
  json_begin(&b.r, text, strlen(text), "JSON", &why);
  (void)json_build_tree(&tree, &b);
  return tree;
}
