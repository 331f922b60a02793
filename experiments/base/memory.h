/* Memory of the command's own folders (experiments/): an allocation that fails ends the program
 * with gl_fail_memory()'s message, which names `what`. All outputs are written whole or in
 * transactions, so nothing is lost; a worker of a sweep that ends so is one failed run. Not for
 * folders that libgepolab contains, which return GL_ENOMEM.
 *
 * No function returns NULL. Memory is freed with free(). Prefix: must_. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_MEMORY_H
#define GEPOLAB_EXPERIMENTS_BASE_MEMORY_H

#include "core/base/array.h"

#include <stdbool.h>
#include <stddef.h>

/* Allocates n zeroed items of `size` bytes; n may be 0. */
void *must_alloc(size_t n, size_t size, const char *what);
#define MUST_ARRAY(type, n, what) ((type *)must_alloc((n), sizeof(type), what))
/* Resizes the memory to n items; new bytes are not initialised. */
void *must_resize(void *memory, size_t n, size_t size, const char *what);
/* A copy of a text. */
char *must_copy(const char *text, const char *what);
/* A text made printf-style. */
char *must_textf(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ARRAY_ADD and ARRAY_RESERVE of core/base/array.h: a pointer to the new last item, which is
 * zeroed; room for at least `wanted` items. */
#define MUST_ADD(items, n, what) ((__typeof__(items))must_have(ARRAY_ADD(items, n), what))
#define MUST_RESERVE(items, room, wanted, what)                                                    \
  must_succeed(ARRAY_RESERVE(items, room, wanted), what)

/* Returns `memory`, which another function allocated; ends the program if it is NULL. */
void *must_have(void *memory, const char *what);
/* Ends the program if an allocation did not succeed. */
void must_succeed(bool allocated, const char *what);

#endif
