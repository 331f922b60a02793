/* Builds a tree of cJSON items with the strict JSON reader. */
#include "core/base/json_tree.h"

#include "core/base/json_read.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct builder {
  json_reader r;
  size_t n, most_values; /* values so far; 0: no limit */
} builder;

static void fail_memory(builder *b) {
  if (b->r.status == GL_OK) b->r.status = gl_fail_memory(b->r.err, "a JSON tree");
}

/* NULL after a complaint. */
static cJSON *kept(builder *b, cJSON *item) {
  if (b->r.status == GL_OK && item != NULL) return item;
  if (item == NULL) fail_memory(b);
  cJSON_Delete(item);
  return NULL;
}

static cJSON *read_value(builder *b);

/* An object keeps a copy of its keys. Recursion ends at JSON_MAX_DEPTH, where the reader fails. */
static cJSON *read_object(builder *b) {
  cJSON *object = kept(b, cJSON_CreateObject());
  json_enter(&b->r, '{');
  while (json_member(&b->r)) {
    char *key = strdup(b->r.word);
    cJSON *value = read_value(b);
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
    cJSON *value = read_value(b);
    if (value != NULL && !cJSON_AddItemToArray(array, value)) {
      cJSON_Delete(value);
      fail_memory(b);
    }
  }
  return kept(b, array);
}

static cJSON *read_value(builder *b) {
  if (b->most_values != 0 && ++b->n > b->most_values)
    json_fail(&b->r, "more than %zu values, which no such file has", b->most_values);
  switch (json_peek(&b->r)) {
  case '{':
    return read_object(b);
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
    json_fail(&b->r, "expected a value");
    return NULL;
  default: { /* a digit or a minus, as json_peek() says */
    const double number = json_real(&b->r);
    return b->r.status == GL_OK ? kept(b, cJSON_CreateNumber(number)) : NULL;
  }
  }
}

gl_status json_tree_read(cJSON **out, const char *text, size_t size, size_t most_values,
                         const char *name, gl_error *err) {
  assert(out != NULL && (text != NULL || size == 0) && name != NULL);
  builder b = {.most_values = most_values};
  json_begin(&b.r, text, size, name, err);
  *out = read_value(&b);
  const gl_status status = json_end(&b.r);
  if (status == GL_OK) return GL_OK;
  cJSON_Delete(*out);
  *out = NULL;
  return status;
}

cJSON *json_tree_of(const char *text) {
  gl_error why = {0};
  cJSON *tree = NULL;
  if (text != NULL) (void)json_tree_read(&tree, text, strlen(text), 0, "JSON", &why);
  return tree;
}
