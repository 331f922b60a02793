/* FNV-1a, 64 bits: the checksum of checkpoints and the fingerprint of worlds. */
#ifndef GEPOLAB_TOY_HASH_H
#define GEPOLAB_TOY_HASH_H

#include <stddef.h>
#include <stdint.h>

#define TOY_HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t toy_hash(uint64_t hash, const void *bytes, size_t n) {
  const unsigned char *b = bytes;
  for (size_t i = 0; i < n; ++i) hash = (hash ^ b[i]) * UINT64_C(0x100000001b3);
  return hash;
}

#endif
