/* Errors of gepolab's own as the caller of the library sees them, and versions. */
#include "library/internal.h"

#include <stdarg.h>
#include <stdio.h>

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
