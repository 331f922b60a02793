/* Growing arrays. The array is a plain pointer with its length, a size_t, beside it in the owner's
 * struct; they begin as NULL and 0, and free() releases the array.
 *
 * Items that come one at a time need nothing else: capacity is the smallest power of two that holds
 * the length, so it follows from the length.
 *
 *   typedef struct names { name *name; size_t n; } names;
 *   name *added = ARRAY_ADD(list->name, list->n);
 *   if (added == NULL) return gl_fail_memory(err, "names");    list is as it was
 *   *added = ...                                               it was zeroed, and n counts it
 *
 * Where many come at once, or the length falls and rises, a third variable has the capacity:
 *
 *   if (!ARRAY_RESERVE(text, room, n + length)) return gl_fail_memory(err, "text");
 *   memcpy(text + n, piece, length), n += length;
 *
 * Workspaces whose sizes are known beforehand are core/base/arena.h. Prefix: array_. */
#ifndef GEPOLAB_CORE_BASE_ARRAY_H
#define GEPOLAB_CORE_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* items, n and room are lvalues, which are evaluated more than once. ARRAY_ADD: a pointer to the
 * new last item; NULL if memory is short. Such an array must never shrink and grow again. */
#define ARRAY_ADD(items, n) array_add(&(items), &(n), sizeof *(items))
/* Room for at least `wanted` items; false if memory is short. Nothing is zeroed. */
#define ARRAY_RESERVE(items, room, wanted)                                                         \
  ((wanted) <= (room) || array_reserve(&(items), &(room), (wanted), sizeof *(items)))

/* The same without room to spare: for workspaces, which keep the largest size that was asked for.
 */
#define ARRAY_FIT(items, room, wanted)                                                             \
  ((wanted) <= (room) || array_fit(&(items), &(room), (wanted), sizeof *(items)))

/* Called by the macros; `items` is the address of the pointer to the first item. */
void *array_add(void *items, size_t *n, size_t size);
bool array_reserve(void *items, size_t *room, size_t wanted, size_t size);
bool array_fit(void *items, size_t *room, size_t wanted, size_t size);

#endif
