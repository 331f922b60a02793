/* The place of a cell in its study, and what its key is the hash of. */
#include "core/store/plan.h"

#include "core/base/hash.h"
#include "core/base/json_tree.h"
#include "core/config/config.h"

#include <stdlib.h>
#include <string.h>

char *store_identity(const char *recipe, int64_t meaning) {
  const size_t size = strlen(recipe) + 48;
  char *identity = malloc(size);
  if (identity != NULL) snprintf(identity, size, "meaning %lld: %s", (long long)meaning, recipe);
  return identity;
}

static gl_status hash_identity(char place[STORE_PLACE_SIZE], const char *recipe, int64_t meaning,
                               gl_error *err) {
  char *identity = recipe != NULL ? store_identity(recipe, meaning) : NULL;
  if (identity == NULL) return gl_fail_memory(err, "the place of a run");
  hash_hex(identity, strlen(identity), place);
  free(identity);
  return GL_OK;
}

/* The recipe with the fields that were chosen left open. */
static gl_status open_fields(char **text, const char *recipe, const cJSON *fields, gl_error *err) {
  cfg_doc *doc = NULL;
  const cJSON *one;
  gl_status status = cfg_load_text(&doc, recipe, strlen(recipe), "the recipe of a run", err);
  cJSON_ArrayForEach(one, fields) {
    char assignment[512];
    const int n = snprintf(assignment, sizeof assignment, "%s=null", one->string);
    if (status == GL_OK && (n < 0 || (size_t)n >= sizeof assignment))
      status = gl_fail(err, GL_EIO, "the name of a chosen field is too long");
    if (status == GL_OK) status = cfg_override(doc, assignment, err);
  }
  *text = status == GL_OK ? cfg_canonical(cfg_root(doc)) : NULL;
  cfg_free(doc);
  return status;
}

gl_status store_place(char place[STORE_PLACE_SIZE], const char *recipe, const char *chosen,
                      int64_t meaning, gl_error *err) {
  cJSON *fields = NULL;
  char *text = NULL;
  if (chosen == NULL) return hash_identity(place, recipe, meaning, err);
  gl_status status =
      json_tree_read(&fields, chosen, strlen(chosen), 0, "what was chosen for a run", err);
  if (status == GL_OK && !cJSON_IsObject(fields))
    status = gl_fail(err, GL_EIO, "what was chosen for a run is no JSON object");
  if (status == GL_OK) status = open_fields(&text, recipe, fields, err);
  if (status == GL_OK) status = hash_identity(place, text, meaning, err);
  free(text);
  cJSON_Delete(fields);
  return status;
}
