#include "core/base/checksum.h"

#define XXH_INLINE_ALL /* also makes the state a complete type */
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= CHECKSUM_STATE, "room for the library's state");
_Static_assert(_Alignof(XXH3_state_t) <= CHECKSUM_ALIGN, "where the library wants it");

static XXH3_state_t *state_of(checksum *c) {
  return (XXH3_state_t *)(void *)c->state;
}

void checksum_begin(checksum *c) {
  (void)XXH3_64bits_reset(state_of(c));
}

void checksum_add(checksum *c, const void *data, size_t size) {
  if (size > 0) (void)XXH3_64bits_update(state_of(c), data, size);
}

uint64_t checksum_of(const checksum *c) {
  return XXH3_64bits_digest((const XXH3_state_t *)(const void *)c->state);
}

uint64_t checksum_seeded(uint64_t seed, const void *data, size_t size) {
  return XXH3_64bits_withSeed(data, size, seed);
}
