/* Shared by the parts of libgepolab: the public structures in terms of gepolab's own. */
#ifndef GEPOLAB_LIBRARY_INTERNAL_H
#define GEPOLAB_LIBRARY_INTERNAL_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "core/policy/algorithm.h"
#include "library/gepolab.h"

#include <stddef.h>
#include <stdint.h>

struct gepolab_algorithm {
  policy_algorithm own;
};

/* Turns an error of gepolab's own into the caller's (NULL: nobody asks) and returns its status. */
gepolab_status library_failed(gepolab_error *to, const gl_error *from);
/* The same for an error that begins here. GEPOLAB_OK is no failure and is refused by the compiler's
 * eye alone: never pass it. */
gepolab_status library_fail(gepolab_error *to, gl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What a ..._new() function makes of a recipe, or of one value of one. */
typedef struct library_kind {
  const char *what; /* for messages: "the algorithm" */
  size_t size;      /* of the object, whose bytes are 0 at first */
  const char *path; /* the field of a recipe that its text is the value of; NULL: a whole recipe */
  gl_status (*fill)(void *self, const cfg_node *from, const void *more, gl_error *err);
  void (*release)(void *self); /* takes an object that fill() left half made, too */
} library_kind;

/* Where the recipe, or the value, is read from. */
typedef struct library_source {
  const char *name; /* the caller's argument: "algorithm"; messages begin with it */
  const char *text; /* NULL is refused, unless there is a file */
  const char *file; /* NULL: none */
} library_source;

/* A new object in *out, which the caller owns; NULL after a failure. `more` is for fill(). */
gepolab_status library_new(void **out, const library_kind *kind, const library_source *source,
                           const void *more, gepolab_error *err);

/* --- tokens of one response in a caller's array --- */

/* n elements of an array, `stride` elements apart, from number `first` on. */
typedef struct row {
  void *data;
  gepolab_type type; /* GEPOLAB_FLOAT32 or GEPOLAB_FLOAT64 */
  int64_t first, stride;
  size_t n;
} row;

/* Copies the row into to[n], in double precision; returns whether row_is_within(to, n, most). */
int row_read(const row *from, double most, double *to);
/* Copies value[n] into the row, rounded to its type. */
void row_write(const row *to, const double *value);
/* Sets the row's elements to a value, rounded to their type. */
void row_fill(const row *to, double value);
/* Whether all numbers of value[n] are finite and not above `most`. */
int row_is_within(const double *value, size_t n, double most);

/* Whether all of value[n] are finite, and stay so in an array of the type (GEPOLAB_NONE: in double
 * precision). */
int row_fits(const double *value, size_t n, gepolab_type type);

/* How many of n bytes, `stride` apart, are not 0, and where the first one and the end of the last
 * one are; 0 and 0 where there is none. */
size_t row_marked(const uint8_t *mask, int64_t stride, size_t n, size_t *first, size_t *end);

#endif
