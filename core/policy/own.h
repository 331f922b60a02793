/* Algorithms that a user defines in a file, by the fields that differ from a published algorithm:
 *
 *   algorithms:
 *     my_gepo: {base: gepo, clip: none}
 *     bold: {base: grpo, eps_high: 0.4}
 *
 * Their names are replaced by their fields before a recipe is read, so that every result keeps the
 * fields and means the same without the file. */
#ifndef GEPOLAB_CORE_POLICY_OWN_H
#define GEPOLAB_CORE_POLICY_OWN_H

#include "core/config/config.h"
#include "core/policy/algorithm.h"

#include <stddef.h>

typedef struct policy_own policy_own;

/* Reads the file at path (NULL: defines none). Free with policy_own_free(). Errors: GL_EINPUT, with
 * file:line:column, for keys other than `algorithms` and `include`, for a name that a published
 * algorithm has or that is no word of letters, digits, '_' and '-', for a base that is not
 * published, and for all errors of policy_algorithm_parse(); GL_EIO if the file cannot be read. */
gl_status policy_own_read(policy_own **out, const char *path, gl_error *err);
void policy_own_free(policy_own *own);

size_t policy_own_count(const policy_own *own);
const policy_algorithm *policy_own_at(const policy_own *own, size_t i);
/* NULL if there is none of that name. */
const policy_algorithm *policy_own_find(const policy_own *own, const char *name);

/* Replaces the names of own algorithms in a recipe (fields `algorithm` and `algorithms`, and what
 * a sweep lists for them) by {base: PUBLISHED, name: OWN, FIELD: value, ...}, and removes the
 * recipe's own definitions, which cfg_include() has collected. Fields stated beside `base: OWN`
 * override its fields; the algorithm then has the name of its base and its changes. Errors:
 * GL_EINPUT as policy_own_read(), if the recipe and the file define one name differently, and for
 * an own name as a value of the axis algorithm.base. */
gl_status policy_own_expand(const policy_own *own, cfg_doc *doc, gl_error *err);

#endif
