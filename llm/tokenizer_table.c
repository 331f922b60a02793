#include "llm/tokenizer_internal.h"

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

gl_status token_table_init(token_table *t, size_t n, uint64_t seed, gl_error *err) {
  size_t slots = 16;
  while (slots / 2 < n && slots < SIZE_MAX / 4 / sizeof *t->slot) slots *= 2;
  *t = (token_table){.mask = slots - 1, .seed = seed};
  if (slots / 2 >= n) t->slot = calloc(slots, sizeof *t->slot);
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
  struct token_slot *s = slot_of(t, key, size);
  if (s->key != NULL) return 0;
  *s = (struct token_slot){key, (uint32_t)size, token};
  return 1;
}

int32_t token_table_find(const token_table *t, const char *key, size_t size) {
  const struct token_slot *s = slot_of(t, key, size);
  return s->key != NULL ? s->token : -1;
}
