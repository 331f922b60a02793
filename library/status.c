/* Errors of gepolab's own as the caller of the library sees them, and values given as text. */
#include "library/internal.h"

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

gl_status library_value(cfg_doc **doc, const cfg_node **value, const char *key, const char *text,
                        gl_error *err) {
  *doc = NULL;
  *value = NULL;
  if (text == NULL) return gl_fail(err, GL_EINPUT, "the text of %s is NULL", key);
  const size_t size = strlen(key) + strlen(text) + sizeof "=";
  char *assignment = malloc(size);
  if (assignment == NULL) return gl_fail_memory(err, key);
  snprintf(assignment, size, "%s=%s", key, text);
  gl_status status = cfg_load_text(doc, "{}", 2, "text", err);
  if (status == GL_OK) status = cfg_override(*doc, assignment, err);
  if (status == GL_OK) status = cfg_resolve(*doc, err);
  if (status == GL_OK) *value = cfg_find(cfg_root(*doc), key);
  free(assignment);
  return status;
}

const char *gepolab_version(void) {
  return GEPOLAB_VERSION;
}

int gepolab_interface(void) {
  return GEPOLAB_INTERFACE;
}
