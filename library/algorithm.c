/* Algorithms by name or by a map of fields, and the table of published rows. */
#include "library/internal.h"

#include <stdlib.h>
#include <string.h>

gepolab_status gepolab_algorithm_new(gepolab_algorithm **out, const char *text,
                                     gepolab_error *err) {
  gl_error own = {0};
  cfg_doc *doc = NULL;
  const cfg_node *value = NULL;
  *out = NULL;
  gepolab_algorithm *made = calloc(1, sizeof *made);
  gl_status status = GL_OK;
  if (made == NULL) status = gl_fail_memory(&own, "the algorithm");
  if (status == GL_OK) status = library_value(&doc, &value, "algorithm", text, &own);
  if (status == GL_OK) status = policy_algorithm_parse(&made->own, value, &own);
  if (status == GL_OK) status = policy_algorithm_check(&made->own, &own);
  cfg_free(doc);
  if (status != GL_OK) {
    free(made);
    return library_failed(err, &own);
  }
  *out = made;
  return GEPOLAB_OK;
}

void gepolab_algorithm_free(gepolab_algorithm *algorithm) {
  free(algorithm);
}

const char *gepolab_algorithm_name(const gepolab_algorithm *algorithm) {
  return algorithm->own.name;
}

_Static_assert(GEPOLAB_FIELD_SIZE == POLICY_FIELD_TEXT_SIZE, "callers have room for every value");

gepolab_status gepolab_algorithm_field(const gepolab_algorithm *algorithm, const char *field,
                                       char *text, gepolab_error *err) {
  const char *names[128];
  const size_t n = policy_fields_count();
  char near[CFG_HINT_SIZE];
  for (size_t i = 0; i < n && i < sizeof names / sizeof *names; ++i) {
    names[i] = policy_fields_at(i)->name;
    if (strcmp(names[i], field) != 0) continue;
    policy_algorithm_field(&algorithm->own, i, text);
    return GEPOLAB_OK;
  }
  return library_fail(err, GL_EINPUT, "no algorithm has a field '%s'%s", field,
                      cfg_hint(field, names, n, near));
}

size_t gepolab_algorithms_count(void) {
  return policy_algorithms_count();
}

gepolab_status gepolab_algorithms_at(size_t i, gepolab_algorithm_info *out, gepolab_error *err) {
  if (i >= policy_algorithms_count())
    return library_fail(err, GL_EINPUT, "there are %zu algorithms, none of number %zu",
                        policy_algorithms_count(), i);
  const policy_algorithm_info *info = policy_algorithms_info(i);
  *out = (gepolab_algorithm_info){.name = policy_algorithms_at(i)->name,
                                  .source = info->source,
                                  .trl = info->trl,
                                  .verl = info->verl,
                                  .areal = info->areal,
                                  .notes = info->notes};
  return GEPOLAB_OK;
}
