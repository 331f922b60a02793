/* Hashes, the hash table and streaming checksums. */
#include "core/base/hash.h"

#include "core/base/file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- hashes: FNV-1a in 64 bits, and in 128 bits as hex digits --- */

uint64_t hash_64(uint64_t hash, const void *data, size_t size) {
  const unsigned char *byte = data;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
  return hash;
}

uint64_t hash_64_text(uint64_t hash, const char *text) {
  return hash_64(hash, text, strlen(text) + 1);
}

/* FNV-1a with the 128-bit prime 2^88 + 2^8 + 0x3b, on two 64-bit halves. */
void hash_hex(const void *data, size_t size, char hex[HASH_HEX_SIZE]) {
  const unsigned char *byte = data;
  uint64_t high = UINT64_C(0x6c62272e07bb0142), low = UINT64_C(0x62b821756295c58d);
  for (size_t i = 0; i < size; ++i) {
    low ^= byte[i];
    /* (high, low) * (2^88 + 0x13b) mod 2^128, the low product by 32-bit limbs */
    uint64_t a = (low & 0xffffffffu) * 0x13b, b = (low >> 32) * 0x13b;
    uint64_t middle = (a >> 32) + (b & 0xffffffffu);
    uint64_t carry = (b >> 32) + (middle >> 32);
    high = high * 0x13b + carry + (low << 24);
    low = (middle << 32) | (a & 0xffffffffu);
  }
  snprintf(hex, HASH_HEX_SIZE, "%016llx%016llx", (unsigned long long)high, (unsigned long long)low);
}

/* --- the hash table --- */

static void hash_table_place(hash_table *t, hash_entry e) {
  size_t i = (size_t)e.hash & t->mask;
  while (t->entry[i].value != HASH_EMPTY) i = (i + 1) & t->mask;
  t->entry[i] = e;
}

bool hash_table_reserve(hash_table *t, size_t n) {
  const size_t before = t->entry != NULL ? t->mask + 1 : 0;
  size_t slots = before > 0 ? before : 16;
  if (n > SIZE_MAX / 4 / sizeof *t->entry) return false;
  while (slots / 2 < n) slots *= 2;
  if (slots == before) return true;
  hash_table larger = {malloc(slots * sizeof *t->entry), slots - 1, t->n};
  if (larger.entry == NULL) return false;
  for (size_t i = 0; i < slots; ++i) larger.entry[i] = (hash_entry){0, HASH_EMPTY};
  for (size_t i = 0; i < before; ++i)
    if (t->entry[i].value != HASH_EMPTY) hash_table_place(&larger, t->entry[i]);
  free(t->entry);
  *t = larger;
  return true;
}

bool hash_table_add(hash_table *t, uint64_t hash, uint64_t value) {
  if (!hash_table_reserve(t, t->n + 1)) return false;
  hash_table_place(t, (hash_entry){hash, value});
  ++t->n;
  return true;
}

void hash_table_fini(hash_table *t) {
  free(t->entry);
  *t = (hash_table){0};
}

/* --- checksums: XXH3 --- */

#define XXH_INLINE_ALL /* also makes the type of the state complete */
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

gl_status checksum_put(FILE *to, const void *bytes, size_t n, checksum *c, gl_error *err) {
  if (c != NULL) checksum_add(c, bytes, n);
  return checkpoint_put(to, bytes, n, err);
}

gl_status checksum_get(FILE *from, void *bytes, size_t n, checksum *c, gl_error *err) {
  const gl_status status = checkpoint_get(from, bytes, n, err);
  if (status == GL_OK && c != NULL) checksum_add(c, bytes, n);
  return status;
}

uint64_t checksum_seeded(uint64_t seed, const void *data, size_t size) {
  return XXH3_64bits_withSeed(data, size, seed);
}
