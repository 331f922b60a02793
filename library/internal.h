/* Private interfaces of libgepolab: errors, construction of objects from recipe text, and strided
 * arrays. */
#ifndef GEPOLAB_LIBRARY_INTERNAL_H
#define GEPOLAB_LIBRARY_INTERNAL_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "core/policy/algorithm.h"
#include "library/gepolab.h"

#include <locale.h>
#include <stddef.h>
#include <stdint.h>

struct gepolab_algorithm {
  policy_algorithm own;
};

/* Copies an internal error to the caller's (may be NULL) and returns its status. */
gepolab_status library_failed(gepolab_error *to, const gl_error *from);
/* The same for an error that originates here. status must not be GEPOLAB_OK; nothing checks this.
 */
gepolab_status library_fail(gepolab_error *to, gl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets the locale of this thread to "C" and returns the one before, for uselocale(). Numbers are
 * read and written in this locale, so that a decimal comma of the caller's changes none. */
locale_t library_use_c_locale(void);

/* A kind of object that a ..._new() function makes from a recipe or from one value of a recipe. */
typedef struct library_kind {
  const char *what; /* for messages: "the algorithm" */
  size_t size;      /* size of the object, which is zeroed first */
  const char *path; /* the recipe field that the text is a value of; NULL: a whole recipe */
  gl_status (*fill)(void *self, const cfg_node *from, const void *more, gl_error *err);
  void (*release)(void *self); /* also accepts an object that fill() left incomplete */
} library_kind;

/* The source of the recipe or value. */
typedef struct library_source {
  const char *name;    /* name of the caller's argument, "algorithm"; messages begin with it */
  const char *text;    /* may be NULL only if there is a file */
  const char *file;    /* NULL: none */
  const char *own;     /* file of the caller's own definitions; NULL: none */
  const char *own_key; /* what it must define: "algorithms" or "presets" */
} library_source;

/* Makes a new object in *out, owned by the caller; NULL after a failure. `more` is passed to
 * fill(). */
gepolab_status library_new(void **out, const library_kind *kind, const library_source *source,
                           const void *more, gepolab_error *err);

/* --- strided arrays of the caller --- */

/* A strided array: n elements, `stride` elements apart, starting at index `first`. */
typedef struct strided {
  void *data;
  gepolab_type type; /* GEPOLAB_FLOAT32 or GEPOLAB_FLOAT64 */
  int64_t first, stride;
  size_t n;
} strided;

/* Copies the array to to[n] in double precision; returns numbers_are_within(to, n, most). */
int strided_read(const strided *from, double most, double *to);
/* Copies value[n] to the array, rounded to its type. */
void strided_write(const strided *to, const double *value);
/* Sets all elements of the array to a value, rounded to their type. */
void strided_fill(const strided *to, double value);
/* Whether all numbers in value[n] are finite and at most `most`. */
int numbers_are_within(const double *value, size_t n, double most);

/* Whether all numbers in value[n] are finite, also after conversion to the type (GEPOLAB_NONE:
 * double precision). */
int numbers_fit(const double *value, size_t n, gepolab_type type);

/* Returns how many of n bytes, `stride` apart, are not 0. Sets *first to the index of the first
 * such byte and *end to one past the last; both 0 if there is none. */
size_t strided_marked(const uint8_t *mask, int64_t stride, size_t n, size_t *first, size_t *end);

#endif
