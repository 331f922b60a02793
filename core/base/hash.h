/* FNV-1a, not cryptographic. In 128 bits, as 32 hex digits, it makes the keys of cells from
 * canonical text; whoever looks a key up compares the text too. In 64 bits it is the checksum of
 * binary files: every change of a single byte changes it. */
#ifndef GEPOLAB_CORE_BASE_HASH_H
#define GEPOLAB_CORE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { HASH_HEX_SIZE = 33 };
void hash_hex(const void *data, size_t size, char hex[HASH_HEX_SIZE]);

/* Goes on from HASH_64_START, or from the hash of what came before. */
#define HASH_64_START UINT64_C(0xcbf29ce484222325)
uint64_t hash_64(uint64_t hash, const void *data, size_t size);

#endif
