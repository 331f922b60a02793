/* Hashes, and a hash table.
 *
 * FNV-1a, not cryptographic. The 128-bit form, as 32 hex digits, makes the keys of cells from
 * canonical text; lookups also compare the text. The 64-bit form is the checksum of small binary
 * files: it detects every change of a single byte. */
#ifndef GEPOLAB_CORE_BASE_HASH_H
#define GEPOLAB_CORE_BASE_HASH_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { HASH_HEX_SIZE = 33 };
void hash_hex(const void *data, size_t size, char hex[HASH_HEX_SIZE]);

/* Continues from HASH_64_START, or from the hash of the preceding bytes. */
#define HASH_64_START UINT64_C(0xcbf29ce484222325)
uint64_t hash_64(uint64_t hash, const void *data, size_t size);
/* Hashes a text including its final NUL, so that consecutive texts stay separate. */
uint64_t hash_64_text(uint64_t hash, const char *text);

/* A bijection of 64 bits whose low bits depend on all input bits. For numeric keys: equal hashes
 * mean equal keys. */
static inline uint64_t hash_mix(uint64_t key) {
  key = (key ^ key >> 32) * UINT64_C(0x9e3779b97f4a7c15);
  key = (key ^ key >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
  return key ^ key >> 32;
}

/* --- checksums of large binary files --- */
/* XXH3 with 64 bits, as fast as memory can be read. */

enum { CHECKSUM_STATE = 576, CHECKSUM_ALIGN = 64 };
/* Needs no release, and may be copied. */
typedef struct checksum {
  _Alignas(CHECKSUM_ALIGN) unsigned char state[CHECKSUM_STATE];
} checksum;

void checksum_begin(checksum *c);
/* Adds data; splitting it into pieces does not change the checksum. */
void checksum_add(checksum *c, const void *data, size_t size);
/* The checksum of all bytes so far; more may follow. */
uint64_t checksum_of(const checksum *c);

/* Like checkpoint_put() and checkpoint_get() of core/base/file.h, and add the bytes to checksum c.
 * c is NULL when the stored checksum itself is written or read. */
gl_status checksum_put(FILE *to, const void *bytes, size_t n, checksum *c, gl_error *err);
gl_status checksum_get(FILE *from, void *bytes, size_t n, checksum *c, gl_error *err);

/* The checksum of one piece of data; depends on the seed. */
uint64_t checksum_seeded(uint64_t seed, const void *data, size_t size);

/* --- the table --- */
/* A map from hashes to values with open addressing. A value is a number, usually the index of an
 * item in the owner's array, which also holds the key. If different keys may have the same hash,
 * `same` compares the wanted key with the key of a value.
 *
 *   static bool is_named(const void *names, uint64_t i, const void *key) {
 *     return strcmp(((const char *const *)names)[i], key) == 0;
 *   }
 *   uint64_t *i = hash_table_find(&t, hash_64_text(HASH_64_START, key), is_named, names, key);
 *   if (i == NULL && !hash_table_add(&t, hash, n)) return gl_fail_memory(err, "names");
 *
 * Initialise with {0}; entries cannot be removed. */

typedef struct hash_entry {
  uint64_t hash, value; /* value HASH_EMPTY: no entry */
} hash_entry;
#define HASH_EMPTY UINT64_MAX

typedef struct hash_table {
  hash_entry *entry; /* [mask + 1], at most half of them used; NULL if empty */
  size_t mask, n;
} hash_table;

/* Whether the value's key is `key`; `owner` is the argument of hash_table_find(). */
typedef bool hash_same(const void *owner, uint64_t value, const void *key);

/* Returns the address of the key's value, valid until the next addition, or NULL. If `same` is NULL
 * the hash alone is the key. Inline, so that `same` can be inlined too. */
static inline uint64_t *hash_table_find(const hash_table *t, uint64_t hash, hash_same *same,
                                        const void *owner, const void *key) {
  if (t->entry == NULL) return NULL;
  for (size_t i = (size_t)hash & t->mask;; i = (i + 1) & t->mask) {
    hash_entry *e = &t->entry[i];
    if (e->value == HASH_EMPTY) return NULL;
    if (e->hash == hash && (same == NULL || same(owner, e->value, key))) return &e->value;
  }
}

/* Adds a key that is not in the table, with a value below HASH_EMPTY. Returns false, with the table
 * unchanged, if out of memory. */
bool hash_table_add(hash_table *t, uint64_t hash, uint64_t value);
/* Reserves room for n keys, so that additions up to n keys cannot fail. */
bool hash_table_reserve(hash_table *t, size_t n);
void hash_table_fini(hash_table *t);

#endif
