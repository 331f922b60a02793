/* What the parts of libgepolab share: the public structures in terms of gepolab's own. */
#ifndef GEPOLAB_LIBRARY_INTERNAL_H
#define GEPOLAB_LIBRARY_INTERNAL_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "core/policy/algorithm.h"
#include "library/gepolab.h"

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

#endif
