/* An algorithm as data: the fields of MATH.md section 2 and ALGORITHMS.md, the table of published
 * rows, and how a recipe names one. */
#ifndef GEPOLAB_CORE_POLICY_ROW_H
#define GEPOLAB_CORE_POLICY_ROW_H

#include "core/config.h"
#include "core/error.h"

#include <stddef.h>

typedef struct policy_row {
  char name[64]; /* shown name: row name, or `name:` of a changed row, else its base */
  char base[32]; /* the published row it started from */
  /* the fields themselves are defined here by the owner of core/policy */
} policy_row;

/* The published rows, in documentation order. */
size_t policy_rows_count(void);
const policy_row *policy_rows_at(size_t i);
const policy_row *policy_rows_find(const char *name); /* NULL if unknown */

/* Reads `algorithm:` of a recipe: a row's name, or a map {base: gepo, clip: none, ...}. A wrong
 * name or field gets file:line:column and the nearest valid one (GL_EINPUT). */
gl_status policy_row_parse(policy_row *row, const cfg_node *node, gl_error *err);

#endif
