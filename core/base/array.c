/* Arrays that grow by doubling. */
#include "core/base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_BYTES = 64 }; /* size of the first reservation */

/* Reallocates *items, a pointer to any type, to `room` items. */
static bool array_resize(void *items, size_t room, size_t size) {
  void *old, *longer;
  memcpy(&old, items, sizeof old);
  if (room > PTRDIFF_MAX / size || (longer = realloc(old, room * size)) == NULL) return false;
  memcpy(items, &longer, sizeof longer);
  return true;
}

void *array_add(void *items, size_t *n, size_t size) {
  const bool full = (*n & (*n - 1)) == 0; /* n is 0 or a power of two */
  if (full && (*n > SIZE_MAX / 2 || !array_resize(items, *n > 0 ? 2 * *n : 1, size))) return NULL;
  char *first;
  memcpy(&first, items, sizeof first);
  return memset(first + (*n)++ * size, 0, size);
}

bool array_fit(void *items, size_t *room, size_t wanted, size_t size) {
  if (wanted <= *room) return true;
  if (!array_resize(items, wanted, size)) return false;
  *room = wanted;
  return true;
}

bool array_reserve(void *items, size_t *room, size_t wanted, size_t size) {
  const size_t least = LEAST_BYTES / size + 1, twice = *room <= SIZE_MAX / 2 ? 2 * *room : wanted;
  if (wanted <= *room) return true;
  if (wanted < least) wanted = least;
  return array_fit(items, room, wanted > twice ? wanted : twice, size);
}

int order_real(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int order_signed(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

int order_unsigned(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}
