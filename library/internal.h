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

/* Reads `text` as the value of one key of a recipe: *doc then holds {key: text} and *value is that
 * value. Release *doc with cfg_free(), after a failure too. */
gl_status library_value(cfg_doc **doc, const cfg_node **value, const char *key, const char *text,
                        gl_error *err);

#endif
