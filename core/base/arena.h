/* An arena: memory for many allocations with a single failure check and a single free.
 *
 *   arena a = {0};
 *   double *mean = ARENA_ARRAY(&a, double, n);        [n], zeros
 *   double *rows = ARENA_GRID(&a, double, n, width);  [n * width], zeros
 *   char *name = arena_text(&a, given);               a copy
 *   gl_status status = arena_check(&a, "a table of means", err);
 *   if (status == GL_OK) ...                          all pointers are valid
 *   arena_fini(&a);                                   frees all of them
 *
 * The error is sticky: after an allocation failed or a size overflowed, every later allocation
 * returns NULL too, so one arena_check() after the last one is enough. Do not dereference any
 * pointer before it. Memory is zeroed, and aligned for every C type.
 *
 * A struct that owns an arena is freed through it. A struct that is allocated in its own arena is
 * made and freed like this:
 *   arena a = {0};
 *   table *t = ARENA_ARRAY(&a, table, 1);
 *   ...                                  its arrays; then arena_check()
 *   t->memory = a;                       last: the arena moves into the struct
 *   ...
 *   arena_free_owner(&t->memory);        copies the arena out of *t before it frees *t with it
 *
 * Allocations of at most a few hundred bytes share blocks. Under AddressSanitizer each has a block
 * of its own, so that every out-of-bounds write is found. For arrays that grow use
 * core/base/array.h. Prefix: arena_. */
#ifndef GEPOLAB_CORE_BASE_ARENA_H
#define GEPOLAB_CORE_BASE_ARENA_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct arena {
  struct arena_block *blocks; /* linked list, newest first */
  char *next;                 /* free memory of the shared block */
  size_t left;                /* bytes left in the shared block */
  bool failed;
} arena;

/* Allocates n items of `size` bytes, zeroed; for n = 0 returns a pointer that must not be
 * dereferenced. NULL after a failure, which the arena remembers. */
void *arena_array(arena *a, size_t n, size_t size);
/* Allocates rows * columns items. */
void *arena_grid(arena *a, size_t rows, size_t columns, size_t size);
/* A copy of n items, or NULL for NULL. */
void *arena_copy(arena *a, const void *items, size_t n, size_t size);
/* A copy of a text, or NULL for NULL. */
char *arena_text(arena *a, const char *text);

#define ARENA_ARRAY(a, type, n) ((type *)arena_array((a), (n), sizeof(type)))
#define ARENA_GRID(a, type, rows, columns)                                                         \
  ((type *)arena_grid((a), (rows), (columns), sizeof(type)))

/* Returns GL_ENOMEM with a message about `what` if any allocation failed. */
gl_status arena_check(const arena *a, const char *what, gl_error *err);

/* Frees everything; the arena is empty again and usable, and the failure is cleared. */
void arena_fini(arena *a);
/* The same for an arena stored in memory of its own; *a is freed too. */
void arena_free_owner(const arena *a);

#endif
