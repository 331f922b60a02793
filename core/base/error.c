/* Fills errors with a sentence, and maps statuses to exit codes. */
#include "core/base/error.h"

#include <stdarg.h>
#include <stdio.h>

gl_status gl_fail(gl_error *err, gl_status status, const char *format, ...) {
  if (err != NULL && err->status == GL_OK) {
    err->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
  }
  return status;
}

gl_status gl_fail_memory(gl_error *err, const char *what) {
  return gl_fail(err, GL_ENOMEM, "out of memory while allocating %s", what);
}

void gl_error_clear(gl_error *err) {
  *err = (gl_error){.status = GL_OK};
}

int gl_exit_code(gl_status status) {
  switch (status) {
  case GL_OK:
    return 0;
  case GL_EINPUT:
    return 2;
  case GL_EINTERRUPTED:
    return 130;
  case GL_EIO:
  case GL_ENOMEM:
  case GL_ENUMERIC:
  case GL_EINTERNAL:
    break;
  }
  return 1;
}
