/* Hash tables of a tokenizer: bytes to token, and pairs of neighbouring tokens to their merge. */
#include "llm/text/tokenizer_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t h) {
  h *= UINT64_C(0x9e3779b97f4a7c15);
  return h ^ h >> 29;
}

/* Eight bytes at a time; the size tells a short last word from one with zeros. */
static uint64_t hash_bytes(uint64_t seed, const char *key, size_t size) {
  uint64_t h = mix(seed ^ size), word;
  for (; size >= sizeof word; key += sizeof word, size -= sizeof word) {
    memcpy(&word, key, sizeof word);
    h = mix(h ^ word);
  }
  word = 0;
  if (size > 0) memcpy(&word, key, size);
  return mix(mix(h ^ word));
}

/* A power of two at least twice n, or 0 where that is beyond counting. */
static size_t slots_for(size_t n) {
  size_t slots = 16;
  if (n > SIZE_MAX / 8) return 0;
  while (slots / 2 < n) slots *= 2;
  return slots;
}

gl_status token_table_init(token_table *t, size_t n, uint64_t seed, gl_error *err) {
  const size_t slots = slots_for(n);
  *t = (token_table){.mask = slots - 1, .seed = seed};
  if (slots > 0) t->slot = calloc(slots, sizeof *t->slot);
  return t->slot != NULL ? GL_OK : gl_fail_memory(err, "a table of tokens");
}

void token_table_fini(token_table *t) {
  free(t->slot);
  *t = (token_table){0};
}

/* The slot that holds the key, or the empty one where it belongs. */
static struct token_slot *slot_of(const token_table *t, const char *key, size_t size) {
  size_t i = hash_bytes(t->seed, key, size) & t->mask;
  for (;; i = (i + 1) & t->mask) {
    struct token_slot *s = &t->slot[i];
    if (s->key == NULL || (s->size == size && memcmp(s->key, key, size) == 0)) return s;
  }
}

int token_table_add(token_table *t, const char *key, size_t size, int32_t token) {
  assert(t->slot != NULL && key != NULL && token >= 0 && size <= UINT32_MAX);
  struct token_slot *s = slot_of(t, key, size);
  if (s->key != NULL) return 0;
  *s = (struct token_slot){key, (uint32_t)size, token};
  return 1;
}

int32_t token_table_find(const token_table *t, const char *key, size_t size) {
  const struct token_slot *s = slot_of(t, key, size);
  return s->key != NULL ? s->token : -1;
}

/* --- pairs --- */

gl_status pair_table_init(pair_table *t, size_t n, uint64_t seed, gl_error *err) {
  const size_t slots = slots_for(n);
  *t = (pair_table){.mask = slots - 1, .seed = seed};
  if (slots > 0) t->slot = calloc(slots, sizeof *t->slot);
  return t->slot != NULL ? GL_OK : gl_fail_memory(err, "a table of merges");
}

void pair_table_fini(pair_table *t) {
  free(t->slot);
  *t = (pair_table){0};
}

static struct pair_slot *slot_of_pair(const pair_table *t, uint64_t pair) {
  size_t i = mix(mix(pair ^ t->seed)) & t->mask;
  while (t->slot[i].pair != 0 && t->slot[i].pair != pair) i = (i + 1) & t->mask;
  return &t->slot[i];
}

static uint64_t pair_of(int32_t left, int32_t right) {
  return ((uint64_t)left << 32 | (uint64_t)right) + 1;
}

void pair_table_set(pair_table *t, int32_t left, int32_t right, uint32_t rank, int32_t token) {
  assert(t->slot != NULL && left >= 0 && right >= 0 && token >= 0);
  const uint64_t pair = pair_of(left, right);
  *slot_of_pair(t, pair) = (struct pair_slot){pair, rank, token};
}

const struct pair_slot *pair_table_find(const pair_table *t, int32_t left, int32_t right) {
  const struct pair_slot *s = slot_of_pair(t, pair_of(left, right));
  return s->pair != 0 ? s : NULL;
}
