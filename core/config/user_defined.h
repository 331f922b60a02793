/* Algorithms and presets that a user defines in a file, as changes of published ones:
 *
 *   algorithms:
 *     my_gepo: {base: gepo, clip: none}
 *   presets:
 *     my_cluster: {base: areal, samplers: 8, delay: 2s}
 *     far_away: {base: my_cluster, delay: 30s}
 *
 * The tables of fields list what can be defined (own_kind, core/config/fields.h). Names are
 * replaced by their fields before a recipe is read, so that stored results contain the fields and
 * do not need the file. */
#ifndef GEPOLAB_CORE_CONFIG_USER_DEFINED_H
#define GEPOLAB_CORE_CONFIG_USER_DEFINED_H

#include "core/config/config.h"

#include <stddef.h>

typedef struct cfg_own cfg_own;

/* Makes an empty set of definitions. Free with cfg_own_free(). */
gl_status cfg_own_new(cfg_own **out, gl_error *err);
void cfg_own_free(cfg_own *own);

/* Adds the definitions of all kinds in the file at path, which must have some of the kind `key`
 * ("algorithms"). Names of data files are looked up beside the file and become absolute. Errors:
 * GL_EINPUT, with file:line:column, for other keys than those of the kinds and `include`; for a
 * name that is published, that is no word of letters, digits, '_' and '-', or that is defined
 * differently already; for a base that is neither published nor defined before; and for fields that
 * the kind's check() refuses. GL_EIO if the file cannot be read. */
gl_status cfg_own_add_file(cfg_own *own, const char *path, const char *key, gl_error *err);

/* Definitions of the kind `key`. The i-th is a section like a recipe's, {base: gepo, clip: none},
 * whose base is published; owned by own. */
size_t cfg_own_count(const cfg_own *own, const char *key);
const cfg_node *cfg_own_at(const cfg_own *own, const char *key, size_t i, const char **name);

/* Replaces names of own definitions in a recipe's sections (and in what a sweep or `algorithms`
 * lists for them) by the fields, and removes the recipe's own definitions, which cfg_include() has
 * set aside. Fields stated beside the name override its fields. An algorithm keeps its name in the
 * field `name`, unless fields are stated beside it. Errors: GL_EINPUT as cfg_own_add_file(), and
 * for an own name as a value of an axis of bases alone. */
gl_status cfg_own_expand(const cfg_own *own, cfg_doc *doc, gl_error *err);

#endif
