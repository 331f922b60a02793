/* Growing arrays. The array is a plain pointer and its length, a size_t, in the owner's struct.
 * They start as NULL and 0; free() releases the array.
 *
 * If items are added one at a time, nothing else is needed: the capacity is the smallest power of
 * two that holds the length.
 *
 *   typedef struct names { name *name; size_t n; } names;
 *   name *added = ARRAY_ADD(list->name, list->n);
 *   if (added == NULL) return gl_fail_memory(err, "names");    list is unchanged
 *   *added = ...                                               it is zeroed and counted in n
 *
 * If many are added at once, or the length shrinks and grows, a third variable holds the capacity:
 *
 *   if (!ARRAY_RESERVE(text, room, n + length)) return gl_fail_memory(err, "text");
 *   memcpy(text + n, piece, length), n += length;
 *
 * For workspaces of known size use core/base/arena.h. Prefix: array_. */
#ifndef GEPOLAB_CORE_BASE_ARRAY_H
#define GEPOLAB_CORE_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* The macro arguments items, n and room are lvalues and are evaluated more than once. ARRAY_ADD
 * returns a pointer to the new last item, or NULL if out of memory. Such an array must never shrink
 * and grow again. */
#define ARRAY_ADD(items, n) array_add(&(items), &(n), sizeof *(items))
/* Makes room for at least `wanted` items; false if out of memory. New items are not zeroed. */
#define ARRAY_RESERVE(items, room, wanted)                                                         \
  ((wanted) <= (room) || array_reserve(&(items), &(room), (wanted), sizeof *(items)))

/* The same without spare room, for workspaces, which only grow to the largest requested size. */
#define ARRAY_FIT(items, room, wanted)                                                             \
  ((wanted) <= (room) || array_fit(&(items), &(room), (wanted), sizeof *(items)))

/* Used by the macros; `items` is the address of the pointer to the first item. */
void *array_add(void *items, size_t *n, size_t size);
bool array_reserve(void *items, size_t *room, size_t wanted, size_t size);
bool array_fit(void *items, size_t *room, size_t wanted, size_t size);

/* Ascending orders for qsort() and bsearch(): of double (without NaN), int64_t and
 * uint64_t. */
int order_real(const void *a, const void *b);
int order_signed(const void *a, const void *b);
int order_unsigned(const void *a, const void *b);

#endif
