/* The checksum of large binary files: XXH3 of 64 bits, which runs as fast as memory is read. For
 * keys and small files there is core/base/hash.h. Prefix: checksum_. */
#ifndef GEPOLAB_CORE_BASE_CHECKSUM_H
#define GEPOLAB_CORE_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

enum { CHECKSUM_STATE = 576, CHECKSUM_ALIGN = 64 };
/* May be copied and forgotten as it is. */
typedef struct checksum {
  _Alignas(CHECKSUM_ALIGN) unsigned char state[CHECKSUM_STATE];
} checksum;

void checksum_begin(checksum *c);
/* Pieces of any sizes: only their bytes in a row count. */
void checksum_add(checksum *c, const void *data, size_t size);
/* Of all bytes so far; more may follow. */
uint64_t checksum_of(const checksum *c);

/* The checksum of one piece, another one for every seed. */
uint64_t checksum_seeded(uint64_t seed, const void *data, size_t size);

#endif
