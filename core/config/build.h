/* Making values of a recipe, and its canonical text many times over with a few values changed. */
#ifndef GEPOLAB_CORE_CONFIG_BUILD_H
#define GEPOLAB_CORE_CONFIG_BUILD_H

#include "core/config/config.h"

#include <stddef.h>

/* --- lists of maps --- */
/* A doc whose root
 * is a list, to which maps are added one by one. Messages about what is in it name the place of
 * `at`. Release with cfg_free(). */
gl_status cfg_list_new(cfg_doc **out, const cfg_node *at, gl_error *err);
/* Adds an empty map at the end. */
gl_status cfg_list_add_map(cfg_doc *list, gl_error *err);
/* Adds to the last map a key with a copy of the value, or with a number at the place of `at`. The
 * last map must not have the key. */
gl_status cfg_list_put(cfg_doc *list, const char *key, const cfg_node *value, gl_error *err);
gl_status cfg_list_put_number(cfg_doc *list, const char *key, double value, const cfg_node *at,
                              gl_error *err);

/* --- templates --- */
/* The canonical text of a recipe with holes. */
typedef struct cfg_template cfg_template;
/* A template of doc with a hole for the value at each of paths[n], which must be there and none of
 * them inside another: GL_EINTERNAL otherwise. Release with cfg_template_free(). */
gl_status cfg_template_new(cfg_template **out, const cfg_doc *doc, const char *const *paths,
                           size_t n, gl_error *err);
void cfg_template_free(cfg_template *t);
/* Bytes of the text with values[n] in the holes, the final zero not counted. */
size_t cfg_template_size(const cfg_template *t, const char *const *values);
/* Writes that text, with a final zero; values[i] is the canonical text for paths[i]. */
void cfg_template_write(const cfg_template *t, const char *const *values, char *to);

#endif
