/* What tests of recipes share. */
#ifndef GEPOLAB_TESTS_SUPPORT_RECIPES_H
#define GEPOLAB_TESTS_SUPPORT_RECIPES_H

#include "core/config/config.h"

#include <stddef.h>

/* Loads the text as r.yaml, applies an override (NULL: none), and resolves. *doc is the caller's to
 * free in any case. */
gl_status recipe_resolved(cfg_doc **doc, const char *text, const char *override, gl_error *err);
/* Asserts that the recipe's canonical text is then the wanted one. */
void check_resolved(const char *text, const char *override, const char *wanted);
/* The number under the key `path`, dots and all, of the i-th map of a list; NaN: there is none. */
double listed_number(const cfg_node *list, size_t i, const char *path);

#endif
