/* Writes tables into memory. */
#include "tests/support/tables.h"

#include "tests/support/suite.h"

#include <stdlib.h>

char *written_table(const table *t, table_format form) {
  char *text = NULL;
  size_t size = 0;
  gl_error err = {.status = GL_OK};
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  if (table_write(t, form, to, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL(err.status, GL_OK);
  fclose(to);
  return text;
}

bool table_says(const char *text, const char *words) {
  for (; *text != '\0'; ++text) {
    size_t n = 0;
    while (words[n] != '\0' && words[n] == (text[n] == '\n' ? ' ' : text[n])) ++n;
    if (words[n] == '\0') return true;
  }
  return false;
}

cJSON *read_table(const table *t) {
  char *text = written_table(t, TABLE_AS_JSON);
  cJSON *json = cJSON_Parse(text);
  CU_ASSERT_PTR_NOT_NULL_FATAL(json);
  free(text);
  return json;
}
