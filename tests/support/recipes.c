/* Recipes from a text, and what they say. */
#include "tests/support/recipes.h"

#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

gl_status recipe_resolved(cfg_doc **doc, const char *text, const char *override, gl_error *err) {
  gl_status status = cfg_load_text(doc, text, strlen(text), "r.yaml", err);
  if (status == GL_OK && override != NULL) status = cfg_override(*doc, override, err);
  return status == GL_OK ? cfg_resolve(*doc, err) : status;
}

void check_resolved(const char *text, const char *override, const char *wanted) {
  cfg_doc *doc = NULL;
  gl_error err = {0};
  gl_status status = recipe_resolved(&doc, text, override, &err);
  if (status != GL_OK) fprintf(stderr, "%s: %s\n", text, err.text);
  CU_ASSERT_FATAL(status == GL_OK);
  char *canonical = cfg_canonical(cfg_root(doc));
  if (strcmp(canonical, wanted) != 0) fprintf(stderr, "wanted %s\n   got %s\n", wanted, canonical);
  CU_ASSERT_STRING_EQUAL(canonical, wanted);
  free(canonical);
  cfg_free(doc);
}

double listed_number(const cfg_node *list, size_t i, const char *path) {
  const cfg_node *map = cfg_at(list, i);
  double x = NAN;
  for (size_t k = 0; k < cfg_size(map); ++k)
    if (strcmp(cfg_key_at(map, k), path) == 0) cfg_number(cfg_at(map, k), &x);
  return x;
}
