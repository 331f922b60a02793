/* Allocations that end the program if memory runs out. */
#include "experiments/base/memory.h"
#include "core/base/error.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void must_succeed(bool allocated, const char *what) {
  if (allocated) return;
  gl_error err = {.status = GL_OK};
  const gl_status status = gl_fail_memory(&err, what);
  fprintf(stderr, "gepolab: %s\n", err.text);
  exit(gl_exit_code(status));
}

void *must_have(void *memory, const char *what) {
  must_succeed(memory != NULL, what);
  return memory;
}

void *must_alloc(size_t n, size_t size, const char *what) {
  return must_have(calloc(n > 0 ? n : 1, size), what);
}

void *must_resize(void *memory, size_t n, size_t size, const char *what) {
  return must_have(size > 0 && n > SIZE_MAX / size ? NULL : realloc(memory, n * size), what);
}

char *must_copy(const char *text, const char *what) {
  return must_have(strdup(text), what);
}

char *must_textf(const char *what, const char *format, ...) {
  va_list given, again;
  va_start(given, format);
  va_copy(again, given);
  const int length = vsnprintf(NULL, 0, format, given);
  va_end(given);
  must_succeed(length >= 0, what);
  char *text = must_alloc((size_t)length + 1, 1, what);
  (void)vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  return text;
}
