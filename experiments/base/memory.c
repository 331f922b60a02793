/* Allocations that end the program where no memory is left. */
#include "experiments/base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void must_hold(int held) {
  if (held) return;
  fputs("gepolab: out of memory: run fewer jobs at once (-j), or a smaller recipe\n", stderr);
  exit(EXIT_FAILURE);
}

void *must_have(void *pointer) {
  must_hold(pointer != NULL);
  return pointer;
}

void *must_array(size_t n, size_t size) {
  return must_have(calloc(n > 0 ? n : 1, size));
}

void *must_copy(const void *items, size_t n, size_t size) {
  void *copy = must_array(n, size);
  if (n > 0) memcpy(copy, items, n * size);
  return copy;
}

char *must_text(const char *text) {
  return text == NULL ? NULL : (char *)must_copy(text, strlen(text) + 1, 1);
}

char *must_textf(const char *format, ...) {
  va_list given, again;
  va_start(given, format);
  va_copy(again, given);
  const int length = vsnprintf(NULL, 0, format, given);
  va_end(given);
  must_hold(length >= 0);
  char *text = must_array((size_t)length + 1, 1);
  (void)vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  return text;
}
