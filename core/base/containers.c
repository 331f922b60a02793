/* Containers: arenas (arena.h), growing arrays (array.h), hashes and the hash table (hash.h). */
#include "core/base/arena.h"
#include "core/base/array.h"
#include "core/base/hash.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- arenas: a list of blocks; small allocations share blocks --- */

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
enum { MOST_SHARED = 0 };
#else
enum { MOST_SHARED = 512 }; /* largest allocation that shares a block, in bytes */
#endif
enum { SHARED_BLOCK = 4000 };

/* Memory follows the header. */
typedef struct arena_block {
  _Alignas(max_align_t) struct arena_block *before;
} arena_block;

/* Uses calloc() because large blocks then come from the system already zeroed. */
static void *arena_add_block(arena *a, size_t bytes) {
  arena_block *block =
      bytes <= PTRDIFF_MAX - sizeof *block ? calloc(1, sizeof *block + bytes) : NULL;
  if (block == NULL) {
    a->failed = true;
    return NULL;
  }
  block->before = a->blocks;
  a->blocks = block;
  return block + 1;
}

void *arena_array(arena *a, size_t n, size_t size) {
  const size_t unit = _Alignof(max_align_t);
  a->failed = a->failed || (size > 0 && n > SIZE_MAX / size);
  if (a->failed) return NULL;
  const size_t bytes = n * size > 0 ? n * size : 1;
  if (bytes > MOST_SHARED) return arena_add_block(a, bytes);
  const size_t rounded = (bytes + unit - 1) / unit * unit;
  if (rounded > a->left) {
    a->next = arena_add_block(a, SHARED_BLOCK);
    a->left = a->next != NULL ? SHARED_BLOCK : 0;
    if (a->next == NULL) return NULL;
  }
  void *memory = a->next;
  a->next += rounded;
  a->left -= rounded;
  return memory;
}

void *arena_grid(arena *a, size_t rows, size_t columns, size_t size) {
  a->failed = a->failed || (columns > 0 && rows > SIZE_MAX / columns);
  return a->failed ? NULL : arena_array(a, rows * columns, size);
}

void *arena_copy(arena *a, const void *items, size_t n, size_t size) {
  void *copy = items != NULL ? arena_array(a, n, size) : NULL;
  if (copy != NULL && n > 0) memcpy(copy, items, n * size);
  return copy;
}

char *arena_text(arena *a, const char *text) {
  return arena_copy(a, text, text != NULL ? strlen(text) + 1 : 0, 1);
}

gl_status arena_check(const arena *a, const char *what, gl_error *err) {
  return a->failed ? gl_fail_memory(err, what) : GL_OK;
}

void arena_fini(arena *a) {
  arena_block *block = a->blocks;
  *a = (arena){0};
  while (block != NULL) {
    arena_block *before = block->before;
    free(block);
    block = before;
  }
}

void arena_free_owner(const arena *a) {
  arena moved = *a;
  arena_fini(&moved);
}

/* --- arrays that grow by doubling --- */

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

uint64_t checksum_seeded(uint64_t seed, const void *data, size_t size) {
  return XXH3_64bits_withSeed(data, size, seed);
}
