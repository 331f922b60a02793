/* Loads the golden tokenizer, and changes its JSON document for tests of refusals. */
#include "tests/support/llm_tokenizer.h"
#include "tests/support/files.h"

#include <stdlib.h>
#include <string.h>

cJSON *json_load(const char *path) {
  char *text = files_text(path);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  cJSON *root = cJSON_Parse(text);
  free(text);
  CU_ASSERT_PTR_NOT_NULL_FATAL(root);
  return root;
}

void json_set(cJSON *document, const char *pointer, cJSON *value) {
  char path[128], *rest = path + 1;
  snprintf(path, sizeof path, "%s", pointer);
  cJSON *at = document;
  for (char *slash; (slash = strchr(rest, '/')) != NULL; rest = slash + 1) {
    *slash = '\0';
    at = cJSON_IsArray(at) ? cJSON_GetArrayItem(at, atoi(rest))
                           : cJSON_GetObjectItemCaseSensitive(at, rest);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
  }
  int done;
  if (cJSON_IsArray(at))
    done = cJSON_ReplaceItemInArray(at, atoi(rest), value);
  else if (cJSON_GetObjectItemCaseSensitive(at, rest) != NULL)
    done = cJSON_ReplaceItemInObjectCaseSensitive(at, rest, value);
  else
    done = cJSON_AddItemToObject(at, rest, value);
  CU_ASSERT_FATAL(done);
}

gl_status parse_document(tokenizer **out, const cJSON *document, gl_error *err) {
  char *text = cJSON_PrintUnformatted(document);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  gl_status status = tokenizer_parse(out, text, strlen(text), "t.json", err);
  cJSON_free(text);
  return status;
}

tokenizer *golden_tokenizer(void) {
  gl_error err = {0};
  tokenizer *t;
  if (tokenizer_load(&t, "tests/golden/tokenizer.json", &err) != GL_OK)
    fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  return t;
}
