/* One table of the fields of a recipe: for each its dotted path, what kind of value it takes, its
 * unit, its default, its role when runs are compared, and a line of documentation.
 *
 * What tells runs apart is found by comparing their recipes field by field (core/config/axes.h);
 * this table says what a field that differs means, and what value a field has that a recipe leaves
 * out. A default may depend on another field: such a field has one entry per case. A field whose
 * default is computed (from a preset's rule, from another field's value) has none here, and a
 * recipe that leaves it out counts as different from one that states any value.
 */
#ifndef GEPOLAB_CORE_CONFIG_FIELDS_H
#define GEPOLAB_CORE_CONFIG_FIELDS_H

#include "core/config/fields/field.h"

#include <stddef.h>

/* The meaning of recipes: raised by one whenever a default, or what a stated value does, changes,
 * so that the same text gives other results. Part of every cell's key: a sweep that is continued
 * never takes a run of another meaning for its own. */
enum {
  RECIPE_MEANING = 2
}; /* 2: evaluations have a distribution of their own, not that of `sampling` */

/* "axis", "chosen", "algorithm", "seed" or "provenance". */
const char *field_role_name(field_role role);
/* "number", "choice", "flag", "text", "distribution", "list" or "section". */
const char *field_kind_name(field_kind kind);

/* The i-th entry of the table, or NULL past its end. Entries of one path are neighbours. */
const field *fields_at(size_t i);

/* Tells the value of another field of the same recipe, as text: *stated is 1 where the recipe
 * states it, else 0 and the answer is NULL. */
typedef const char *(*field_value)(const void *recipe, const char *path, int *stated);

/* The entry of that path whose conditions hold in the recipe; NULL if there is none. */
const field *fields_find(const char *path, field_value value, const void *recipe);
/* The field that a scalar in the place of the section `path` states, or NULL. */
const field *fields_short_form(const char *path, field_value value, const void *recipe);
/* 1 if the table has fields below the path (`world`, `world.policy`). */
int fields_is_section(const char *path);
/* The first entry of that path whatever its conditions, or NULL. */
const field *fields_named(const char *path);

#endif
