/* Shared parts of the library: version, error conversion and objects made from recipe text. The
 * size of a structure that a caller of an older version has is checked where the structure is read
 * (the batch: policy.c). */
#include "core/config/user_defined.h"
#include "core/policy/algorithm.h"
#include "core/rl/fields.h"
#include "library/internal.h"
#include "sim/cluster.h"
#include "toy/lab/estimator_moments.h"

#include <gen/version.h>
#include <locale.h>
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

locale_t library_use_c_locale(void) {
  /* The locale "C" is never freed: the C library has one object for it. */
  return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
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
  const locale_t caller = library_use_c_locale();
  *out = NULL;
  void *made = calloc(1, kind->size);
  gl_status status = made == NULL ? gl_fail_memory(&own, kind->what) : GL_OK;
  if (status == GL_OK) status = load(&doc, &from, kind, source, &own);
  if (status == GL_OK) status = kind->fill(made, from, more, &own);
  cfg_free(doc);
  uselocale(caller);
  if (status == GL_OK) {
    *out = made;
    return GEPOLAB_OK;
  }
  if (made != NULL) kind->release(made);
  return library_failed(err, &own);
}
