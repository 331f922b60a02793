/* Memory of the command's own folders (experiments/). Where none is left, the program ends with a
 * message and exit code 1: all outputs are written whole or in transactions, so nothing is lost. A
 * worker of a sweep that ends so is a failed run of one cell. Not for rooms that libgepolab
 * contains, which return GL_ENOMEM.
 *
 * No function returns NULL. Free with free(). Prefix: must_. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_MEMORY_H
#define GEPOLAB_EXPERIMENTS_BASE_MEMORY_H

#include <stddef.h>

/* n items of `size` bytes, zeroed; n may be 0. */
void *must_array(size_t n, size_t size);
#define MUST_ARRAY(type, n) ((type *)must_array((n), sizeof(type)))
/* A copy of n items. */
void *must_copy(const void *items, size_t n, size_t size);
/* A copy of a text; of NULL: NULL. */
char *must_text(const char *text);
/* A text made printf-style. */
char *must_textf(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* `pointer`, which another function allocated; the program ends if it is NULL. */
void *must_have(void *pointer);
/* ARRAY_ADD and ARRAY_RESERVE of core/base/array.h: the pointer to the new last item, which is
 * zeroed; room for at least `wanted` items. */
#define MUST_ADD(items, n) ((__typeof__(items))must_have(ARRAY_ADD(items, n)))
#define MUST_RESERVE(items, room, wanted) must_hold(ARRAY_RESERVE(items, room, wanted))
/* The program ends if `held` is false (0). */
void must_hold(int held);

#endif
