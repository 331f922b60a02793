/* Algorithms by name or by a map of fields, and the table of published rows. */
#include "library/internal.h"

#include <stdlib.h>
#include <string.h>

static gl_status fill(void *self, const cfg_node *from, const void *more, gl_error *err) {
  gepolab_algorithm *made = self;
  (void)more;
  gl_status status = policy_algorithm_parse(&made->own, from, err);
  return status == GL_OK ? policy_algorithm_check(&made->own, err) : status;
}

gepolab_status gepolab_algorithm_new(gepolab_algorithm **out, const char *text,
                                     gepolab_error *err) {
  static const library_kind kind = {"the algorithm", sizeof(gepolab_algorithm), "algorithm", fill,
                                    free};
  const library_source source = {.name = "algorithm", .text = text};
  void *made;
  const gepolab_status status = library_new(&made, &kind, &source, NULL, err);
  *out = made;
  return status;
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
