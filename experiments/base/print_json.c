/* Makes and prints a command's JSON answer. */
#include "experiments/base/print_json.h"

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

void json_place(cJSON *to, const char *key, cJSON *tree) {
  const cJSON_bool placed = key != NULL ? cJSON_AddItemToObject(to, key, there(tree))
                                        : cJSON_AddItemToArray(to, there(tree));
  if (!placed) must_succeed(false, "the JSON answer");
}

cJSON *json_object(cJSON *to, const char *key) {
  cJSON *object = json_new();
  json_place(to, key, object);
  return object;
}

cJSON *json_list(cJSON *to, const char *key) {
  cJSON *list = cJSON_CreateArray();
  json_place(to, key, list);
  return list;
}

void json_raw(cJSON *to, const char *key, const char *text) {
  json_place(to, key, cJSON_CreateRaw(text));
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
  for (const char *at = format; *at != '\0';) {
    char name[64];
    at += strspn(at, ", ");
    const size_t length = strcspn(at, " %");
    assert(length < sizeof name);
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    const char *key = length > 0 ? name : NULL, *text;
    at += length + strspn(at + length, " %");
    switch (*at++) {
    case 's':
      text = va_arg(list, const char *);
      if (text != NULL)
        (void)there(json_add_string(to, key, text));
      else
        json_place(to, key, cJSON_CreateNull());
      break;
    case 'z':
      json_number(to, key, (double)va_arg(list, size_t));
      ++at; /* zu */
      break;
    case 'l': {
      char whole[24];
      snprintf(whole, sizeof whole, "%llu", va_arg(list, unsigned long long));
      json_raw(to, key, whole);
      at += 2; /* llu */
      break;
    }
    case 'd':
      json_number(to, key, va_arg(list, int));
      break;
    case 'g':
      json_number(to, key, va_arg(list, double));
      break;
    case 'i':
      json_place(to, key, cJSON_CreateBool(va_arg(list, int)));
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

gl_status report_table(table *t, table_form form, bool is_json, gl_error *err) {
  gl_status status = table_write(t, is_json ? TABLE_AS_JSON : form, stdout, err);
  table_free(t);
  return status;
}
