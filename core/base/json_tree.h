/* A JSON text as a tree of cJSON items, built by the strict reader (core/base/json_read.h) and not
 * by cJSON's own parser, which takes texts that are not JSON, cuts strings at a NUL, and does not
 * say where it stopped. */
#ifndef GEPOLAB_CORE_BASE_JSON_TREE_H
#define GEPOLAB_CORE_BASE_JSON_TREE_H

#include "core/base/error.h"

#include <cjson/cJSON.h>
#include <stddef.h>

/* Reads the whole of text[size], which needs no NUL at its end. name stands for it in messages.
 * Members keep their order, and a key that is there twice stays there twice. GL_EINPUT with name,
 * line and column, also for more than most_values values (an item takes some 64 bytes; 0: no limit)
 * and for more than JSON_MAX_DEPTH levels. The caller releases *out with cJSON_Delete(); on failure
 * it is NULL. */
gl_status json_tree_read(cJSON **out, const char *text, size_t size, size_t most_values,
                         const char *name, gl_error *err);

/* The tree of a text that this program wrote, ended by a NUL; NULL where it is no JSON, NULL, or
 * memory is short. Where it matters which, or the text may come from elsewhere, json_tree_read()
 * tells. The caller releases it with cJSON_Delete(). */
cJSON *json_tree_of(const char *text);

#endif
