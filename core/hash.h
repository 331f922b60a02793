/* Keys of cells: a 128-bit FNV-1a of canonical text, as 32 hex digits. Not cryptographic; whoever
 * looks a key up compares the text too. */
#ifndef GEPOLAB_CORE_HASH_H
#define GEPOLAB_CORE_HASH_H

#include <stddef.h>

enum { HASH_HEX_SIZE = 33 };
void hash_hex(const void *data, size_t size, char hex[HASH_HEX_SIZE]);

#endif
