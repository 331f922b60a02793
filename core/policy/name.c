/* The name under which an algorithm is shown: its base and what was changed, as in
 * `gepo(clip=none)`, unless the recipe gives a name. */
#include "core/policy/algorithm.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static int fields_equal(const policy_algorithm *a, const policy_algorithm *b, size_t i) {
  char one[POLICY_FIELD_TEXT_SIZE], other[POLICY_FIELD_TEXT_SIZE];
  return strcmp(policy_algorithm_field(a, i, one), policy_algorithm_field(b, i, other)) == 0;
}

static int all_fields_equal(const policy_algorithm *a, const policy_algorithm *b) {
  for (size_t i = 0; i < policy_fields_count(); i++)
    if (!fields_equal(a, b, i)) return 0;
  return 1;
}

static int is_left_out(const char *field, const char *const *left_out, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(field, left_out[i]) == 0) return 1;
  return 0;
}

gl_status policy_algorithm_set_name(policy_algorithm *algorithm, const char *const *left_out,
                                    size_t n_left_out, gl_error *err) {
  const policy_algorithm *base = policy_algorithms_find(algorithm->base);
  assert(base != NULL);
  if (algorithm->has_own_name) return GL_OK;
  char *name = algorithm->name;
  const size_t size = sizeof algorithm->name;
  size_t at = (size_t)snprintf(name, size, "%s", base->name), changed = 0;
  for (size_t i = 0; i < policy_fields_count() && at < size; i++) {
    const char *field = policy_fields_at(i)->name;
    char value[POLICY_FIELD_TEXT_SIZE];
    if (fields_equal(algorithm, base, i) || is_left_out(field, left_out, n_left_out)) continue;
    at += (size_t)snprintf(name + at, size - at, "%s%s=%s", changed++ == 0 ? "(" : ", ", field,
                           policy_algorithm_field(algorithm, i, value));
  }
  if (changed > 0 && at < size) at += (size_t)snprintf(name + at, size - at, ")");
  if (at < size) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "%s with these changes has a name of more than %zu characters; give it a `name`",
                 base->name, size - 1);
}

gl_status policy_algorithm_check_name(const policy_algorithm *algorithm, gl_error *err) {
  const policy_algorithm *published = policy_algorithms_find(algorithm->name);
  if (published == NULL || all_fields_equal(algorithm, published)) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "'%s' is the name of a published algorithm, whose fields are others; leave `name` "
                 "out, and what was changed is shown with the base, or choose another",
                 algorithm->name);
}
