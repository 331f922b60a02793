/* Searches from the front: lists are of algorithms, settings and benchmarks. */
#include "analysis/text_list.h"

#include <string.h>

size_t text_list_find(const char *const *list, size_t n, const char *text) {
  size_t i = 0;
  while (i < n && strcmp(list[i], text) != 0) i++;
  return i;
}

size_t text_list_add(const char **list, size_t *n, const char *text) {
  const size_t i = text_list_find(list, *n, text);
  if (i == *n) list[(*n)++] = text;
  return i;
}
