/* Makes and prints a command's JSON answer. */
#include "experiments/base/print_json.h"

#include "core/base/json.h"
#include "experiments/base/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- making documents --- */

static cJSON *there(cJSON *made) {
  return must_have(made, "the JSON answer");
}

cJSON *json_new(void) {
  return there(cJSON_CreateObject());
}

void json_attach(cJSON *to, const char *key, cJSON *tree) {
  const cJSON_bool placed = key != NULL ? cJSON_AddItemToObject(to, key, there(tree))
                                        : cJSON_AddItemToArray(to, there(tree));
  if (!placed) must_succeed(false, "the JSON answer");
}

cJSON *json_object(cJSON *to, const char *key) {
  cJSON *object = json_new();
  json_attach(to, key, object);
  return object;
}

cJSON *json_list(cJSON *to, const char *key) {
  cJSON *list = cJSON_CreateArray();
  json_attach(to, key, list);
  return list;
}

void json_raw(cJSON *to, const char *key, const char *text) {
  json_attach(to, key, cJSON_CreateRaw(text));
}

void json_numbers(cJSON *to, const char *key, const double *values, size_t n) {
  (void)there(json_add_numbers(to, key, values, n));
}

void json_number(cJSON *to, const char *key, double value) {
  (void)there(json_add_number(to, key, value));
}

void json_put(cJSON *to, const char *format, ...) {
  va_list list;
  va_start(list, format);
  char name[JSON_KEY_SIZE];
  for (char kind; (kind = json_next_member(&format, name)) != '\0';) {
    const char *key = name[0] != '\0' ? name : NULL, *text;
    switch (kind) {
    case 's':
      text = va_arg(list, const char *);
      if (text != NULL)
        (void)there(json_add_string(to, key, text));
      else
        json_attach(to, key, cJSON_CreateNull());
      break;
    case 'z':
      json_number(to, key, (double)va_arg(list, size_t));
      break;
    case 'l': {
      char whole[24];
      snprintf(whole, sizeof whole, "%llu", va_arg(list, unsigned long long));
      json_raw(to, key, whole);
      break;
    }
    case 'd':
      json_number(to, key, va_arg(list, int));
      break;
    case 'g':
      json_number(to, key, va_arg(list, double));
      break;
    case 'i':
      json_attach(to, key, cJSON_CreateBool(va_arg(list, int)));
      break;
    default:
      assert(0);
    }
  }
  va_end(list);
}

/* --- printing them --- */

gl_status report_json(cJSON *document, gl_error *err) {
  char *text = document != NULL ? cJSON_Print(document) : NULL;
  cJSON_Delete(document);
  if (text == NULL) return gl_fail_memory(err, "the JSON answer");
  json_write(text, stdout);
  putchar('\n');
  free(text);
  return GL_OK;
}

gl_status report_table(table *t, table_format form, bool is_json, gl_error *err) {
  gl_status status = table_write(t, is_json ? TABLE_AS_JSON : form, stdout, err);
  table_free(t);
  return status;
}

/* --- JSON as YAML --- */

/* --- words and numbers --- */

static int is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Returns 1 if YAML reads the word as a string without quotes: not as a number, boolean or null. */
static int is_plain(const char *word) {
  static const char *const taken[] = {"true", "false", "yes", "no",  "on",  "off",
                                      "null", "y",     "n",   "inf", "nan", "none"};
  if (!is_letter(word[0])) return 0;
  for (const char *c = word; *c; ++c)
    if (!is_letter(*c) && (*c < '0' || *c > '9') && strchr("-./", *c) == NULL) return 0;
  for (size_t i = 0; i < sizeof taken / sizeof *taken; ++i)
    if (strcasecmp(word, taken[i]) == 0) return strcmp(word, "none") == 0;
  return 1;
}

/* Writes a word, in double quotes if needed; YAML accepts JSON's escapes in them. */
static void write_word(const char *word, FILE *to) {
  if (is_plain(word)) {
    fputs(word, to);
    return;
  }
  fputc('"', to);
  for (const unsigned char *c = (const unsigned char *)word; *c; ++c)
    if (*c == '"' || *c == '\\')
      fprintf(to, "\\%c", *c);
    else if (*c < ' ' || *c == 0x7f)
      fprintf(to, "\\x%02x", *c);
    else
      fputc(*c, to);
  fputc('"', to);
}

static void write_scalar(const cJSON *item, FILE *to) {
  char number[NUMBER_TEXT_SIZE];
  if (cJSON_IsString(item))
    write_word(item->valuestring, to);
  else if (cJSON_IsRaw(item)) /* number in its shortest form */
    fputs(item->valuestring, to);
  else if (cJSON_IsNumber(item))
    fputs(number_text(item->valuedouble, number), to);
  else
    fputs(cJSON_IsTrue(item) ? "true" : cJSON_IsFalse(item) ? "false" : "null", to);
}

/* --- flow style: one line --- */

static void write_flow(const cJSON *item, FILE *to) {
  const int map = cJSON_IsObject(item);
  if (!map && !cJSON_IsArray(item)) {
    write_scalar(item, to);
    return;
  }
  fputc(map ? '{' : '[', to);
  for (const cJSON *i = item->child; i != NULL; i = i->next) {
    if (i != item->child) fputs(", ", to);
    if (map) write_word(i->string, to), fputs(": ", to);
    write_flow(i, to);
  }
  fputc(map ? '}' : ']', to);
}

/* Returns 1 if the item fits on one line. */
static int is_short(const cJSON *item) {
  enum { ROOM = 70 };
  char *text = NULL;
  size_t size = 0;
  if (item->child == NULL) return 1;
  FILE *to = open_memstream(&text, &size);
  if (to == NULL) return 0;
  write_flow(item, to);
  const int whole = fclose(to) == 0;
  free(text);
  return whole && size <= ROOM;
}

/* --- block style: several lines --- */

static void write_block(const cJSON *item, int depth, FILE *to);

static void indent(int depth, FILE *to) {
  for (int i = 0; i < depth; ++i) fputs("  ", to);
}

static void write_member(const cJSON *i, int depth, FILE *to) {
  indent(depth, to);
  write_word(i->string, to);
  fputc(':', to);
  if (is_short(i)) {
    fputc(' ', to), write_flow(i, to), fputc('\n', to);
    return;
  }
  fputc('\n', to);
  write_block(i, depth + 1, to);
}

/* List items that do not fit on a line begin on their own line, which YAML allows. */
static void write_item(const cJSON *i, int depth, FILE *to) {
  indent(depth, to);
  fputc('-', to);
  if (is_short(i)) {
    fputc(' ', to), write_flow(i, to), fputc('\n', to);
    return;
  }
  fputc('\n', to);
  write_block(i, depth + 1, to);
}

static void write_block(const cJSON *item, int depth, FILE *to) {
  for (const cJSON *i = item->child; i != NULL; i = i->next)
    if (cJSON_IsObject(item))
      write_member(i, depth, to);
    else
      write_item(i, depth, to);
}

void yaml_write(const cJSON *map, const char *const *first, size_t n, FILE *to) {
  for (size_t k = 0; k < n; ++k) {
    const cJSON *i = cJSON_GetObjectItemCaseSensitive(map, first[k]);
    if (i != NULL) write_member(i, 0, to);
  }
  for (const cJSON *i = map->child; i != NULL; i = i->next) {
    size_t k = 0;
    while (k < n && strcmp(first[k], i->string) != 0) ++k;
    if (k == n) write_member(i, 0, to);
  }
}
