/* Shared parts of the library: error conversion, objects made from recipe text, algorithms and
 * statistics. The size of a structure that a caller of an older version has is checked
 * where the structure is read (the batch: policy.c). */
#include "analysis/statistics.h"
#include "core/config/user_defined.h"
#include "core/policy/algorithm.h"
#include "core/policy/trainer_settings.h"
#include "core/rl/fields.h"
#include "library/internal.h"
#include "sim/cluster.h"
#include "toy/lab/estimator_moments.h"

#include <gen/version.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gepolab_status public_status(gl_status status) {
  switch (status) {
  case GL_OK:
    return GEPOLAB_OK;
  case GL_EINPUT:
    return GEPOLAB_EINPUT;
  case GL_EIO:
    return GEPOLAB_EIO;
  case GL_ENOMEM:
    return GEPOLAB_ENOMEM;
  case GL_ENUMERIC:
    return GEPOLAB_ENUMERIC;
  case GL_EINTERRUPTED:
    return GEPOLAB_EINTERRUPTED;
  case GL_EINTERNAL:
    return GEPOLAB_EINTERNAL;
  }
  return GEPOLAB_EINTERNAL;
}

gepolab_status library_failed(gepolab_error *to, const gl_error *from) {
  const gepolab_status status = public_status(from->status);
  if (to != NULL) {
    to->status = status;
    snprintf(to->text, sizeof to->text, "%s", from->text);
  }
  return status;
}

gepolab_status library_fail(gepolab_error *to, gl_status status, const char *format, ...) {
  gl_error own = {.status = status};
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(own.text, sizeof own.text, format, arguments);
  va_end(arguments);
  return library_failed(to, &own);
}

const char *gepolab_version(void) {
  return GEPOLAB_VERSION;
}

int gepolab_interface(void) {
  return GEPOLAB_INTERFACE;
}

/* --- algorithms --- */

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
    policy_algorithm_field(&algorithm->own, i, text);
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

/* --- statistics --- */

/* Limits sample sizes only to avoid overflow. */
static const int64_t MOST_VALUES = (int64_t)1 << 40;

static gepolab_status check_size(int64_t n, gepolab_error *err) {
  if (n >= 0 && n <= MOST_VALUES) return GEPOLAB_OK;
  return library_fail(err, GL_EINPUT, "a sample of %lld values", (long long)n);
}

gepolab_status gepolab_iqm(const double *value, int64_t n, uint64_t seed, gepolab_interval *out,
                           gepolab_error *err) {
  gl_error own = {0};
  interval made;
  const gepolab_status right = check_size(n, err);
  if (right != GEPOLAB_OK) return right;
  const size_t size = (size_t)n;
  if (iqm_bootstrap(value, &size, 1, rng_stream_at(seed, RNG_BOOTSTRAP, 0), &made, &own) != GL_OK)
    return library_failed(err, &own);
  *out = (gepolab_interval){made.value, made.low, made.high};
  return GEPOLAB_OK;
}

gepolab_status gepolab_spearman(const double *x, const double *y, int64_t n, gepolab_interval *out,
                                gepolab_error *err) {
  gl_error own = {0};
  correlation made;
  const gepolab_status right = check_size(n, err);
  if (right != GEPOLAB_OK) return right;
  if (spearman(x, y, (size_t)n, rng_stream_at(1, RNG_BOOTSTRAP, 0), &made, &own) != GL_OK)
    return library_failed(err, &own);
  *out = (gepolab_interval){made.fisher.value, made.fisher.low, made.fisher.high};
  return GEPOLAB_OK;
}

gepolab_status gepolab_survival(const double *time, const uint8_t *observed, int64_t n,
                                gepolab_curve *out, gepolab_error *err) {
  gl_error own = {0};
  size_t steps = 0;
  const gepolab_status right = check_size(n, err);
  if (right != GEPOLAB_OK) return right;
  if (out->size != sizeof *out)
    return library_fail(err, GL_EINPUT,
                        "curve.size is not sizeof(gepolab_curve): begin with "
                        "GEPOLAB_INIT");
  survival_step *curve = malloc(((size_t)n + 1) * sizeof *curve);
  if (curve == NULL) return library_fail(err, GL_ENOMEM, "out of memory for a survival curve");
  const gl_status status = survival_curve(time, observed, (size_t)n, curve, &steps, &own);
  for (size_t k = 0; k < steps && status == GL_OK; ++k) {
    out->at[k] = curve[k].time;
    out->survival[k] = curve[k].survival;
    out->error[k] = curve[k].error;
  }
  out->n = (int64_t)steps;
  free(curve);
  return status == GL_OK ? GEPOLAB_OK : library_failed(err, &own);
}

/* --- objects made from recipe text --- */

/* The tables of recipe fields that the clock needs, and of other top-level fields. Weak: in a
 * program that also contains the command, the command's list is used. */
__attribute__((weak)) const field_table *const field_tables[FIELD_MOST_TABLES] = {
    &policy_own,    &sim_own,   &study_fields, &policy_fields,
    &design_fields, &rl_fields, &sim_fields,   &lab_fields};

static gl_status load(cfg_doc **doc, const cfg_node **from, const library_kind *kind,
                      const library_source *source, gl_error *err) {
  gl_status status = GL_OK;
  cfg_own *own = NULL;
  if (source->text == NULL && source->file == NULL)
    return gl_fail(err, GL_EINPUT, "the text of %s is NULL", source->name);
  if (source->file != NULL)
    status = cfg_load_file(doc, source->file, err);
  else if (kind->path == NULL)
    status = cfg_load_text(doc, source->text, strlen(source->text), source->name, err);
  else
    status = cfg_load_value(doc, kind->path, source->text, strlen(source->text), source->name, err);
  if (status == GL_OK && kind->path == NULL) status = cfg_include(*doc, NULL, err);
  if (status == GL_OK) status = cfg_resolve(*doc, err);
  if (status == GL_OK) status = cfg_own_new(&own, err);
  if (status == GL_OK && source->own != NULL)
    status = cfg_own_add_file(own, source->own, source->own_key, err);
  if (status == GL_OK) status = cfg_own_expand(own, *doc, err);
  cfg_own_free(own);
  if (status != GL_OK) return status;
  *from = kind->path != NULL ? cfg_find(cfg_root(*doc), kind->path) : cfg_root(*doc);
  return GL_OK;
}

gepolab_status library_new(void **out, const library_kind *kind, const library_source *source,
                           const void *more, gepolab_error *err) {
  gl_error own = {0};
  cfg_doc *doc = NULL;
  const cfg_node *from = NULL;
  *out = NULL;
  void *made = calloc(1, kind->size);
  gl_status status = made == NULL ? gl_fail_memory(&own, kind->what) : GL_OK;
  if (status == GL_OK) status = load(&doc, &from, kind, source, &own);
  if (status == GL_OK) status = kind->fill(made, from, more, &own);
  cfg_free(doc);
  if (status == GL_OK) {
    *out = made;
    return GEPOLAB_OK;
  }
  if (made != NULL) kind->release(made);
  return library_failed(err, &own);
}
