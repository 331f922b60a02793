/* Warnings of a collapse. */
#include "analysis/diagnose/internal.h"

gl_status warnings_section(table *to, const diagnosis *d, gl_error *err) {
  (void)d, (void)err;
  table_line(to, "Not computed yet.");
  return GL_OK;
}
