/* Algorithms for a caller in C: made from recipe text, their fields and settings, and the list of
 * those built in. */
#include "core/policy/algorithm.h"
#include "core/policy/trainer_settings.h"
#include "library/internal.h"

#include <stdlib.h>
#include <string.h>

static gl_status algorithm_fill(void *self, const cfg_node *from, const void *more, gl_error *err) {
  gepolab_algorithm *made = self;
  (void)more;
  gl_status status = policy_algorithm_parse_alone(&made->own, from, err);
  return status == GL_OK ? policy_algorithm_check(&made->own, err) : status;
}

gepolab_status gepolab_algorithm_new(gepolab_algorithm **out, const char *text,
                                     gepolab_error *err) {
  return gepolab_algorithm_own(out, text, NULL, err);
}

gepolab_status gepolab_algorithm_own(gepolab_algorithm **out, const char *text, const char *file,
                                     gepolab_error *err) {
  static const library_kind kind = {"the algorithm", sizeof(gepolab_algorithm), "algorithm",
                                    algorithm_fill, free};
  const library_source source = {
      .name = "algorithm", .text = text, .own = file, .own_key = "algorithms"};
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

gepolab_status gepolab_algorithm_field(const gepolab_algorithm *algorithm, const char *name,
                                       char *text, gepolab_error *err) {
  const char *names[POLICY_MOST_FIELDS];
  const size_t n = policy_fields_count();
  char near[CFG_HINT_SIZE];
  for (size_t i = 0; i < n; ++i) {
    names[i] = policy_fields_at(i)->name;
    if (strcmp(names[i], name) != 0) continue;
    const locale_t caller = library_use_c_locale();
    policy_algorithm_field(&algorithm->own, i, text);
    uselocale(caller);
    return GEPOLAB_OK;
  }
  return library_fail(err, GL_EINPUT, "no algorithm has a field '%s'%s", name,
                      cfg_hint(name, names, n, near));
}

size_t gepolab_algorithms_count(void) {
  return policy_algorithms_count();
}

gepolab_status gepolab_algorithms_at(size_t i, gepolab_algorithm_info *out, gepolab_error *err) {
  if (i >= policy_algorithms_count())
    return library_fail(err, GL_EINPUT, "there are %zu algorithms, none of number %zu",
                        policy_algorithms_count(), i);
  const policy_algorithm_info *info = policy_algorithms_info(i);
  const char *name = policy_algorithms_at(i)->name;
  *out = (gepolab_algorithm_info){.name = name,
                                  .source = info->source,
                                  .trl = policy_setting_text(name, TRAINER_TRL),
                                  .verl = policy_setting_text(name, TRAINER_VERL),
                                  .areal = policy_setting_text(name, TRAINER_AREAL),
                                  .notes = info->notes};
  return GEPOLAB_OK;
}

size_t gepolab_settings_count(void) {
  return policy_settings_count();
}

gepolab_status gepolab_settings_at(size_t i, gepolab_setting *out, gepolab_error *err) {
  if (i >= policy_settings_count())
    return library_fail(err, GL_EINPUT, "there are %zu settings, none of number %zu",
                        policy_settings_count(), i);
  const policy_setting *s = policy_settings_at(i);
  const policy_trainer_info *trainer = policy_trainer_about(s->trainer);
  *out = (gepolab_setting){.algorithm = s->algorithm,
                           .trainer = trainer->name,
                           .version = trainer->version,
                           .setting = s->setting,
                           .differs = s->differs,
                           .place = s->place,
                           .basis = s->basis == SETTING_RUN ? "run" : "read, not run"};
  return GEPOLAB_OK;
}
