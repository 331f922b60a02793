/* Arenas: a list of blocks; small allocations share blocks. */
#include "core/base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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
