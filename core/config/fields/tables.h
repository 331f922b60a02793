/* The parts of the table of fields (core/config/fields.h), one file for each part of a recipe. To
 * add a field, write its entry in the part that it belongs to. Within a part, entries of one path
 * stand together, those with conditions first. */
#ifndef GEPOLAB_CORE_CONFIG_FIELDS_TABLES_H
#define GEPOLAB_CORE_CONFIG_FIELDS_TABLES_H

#include "core/config/fields/field.h"

#include <stddef.h>

/* path, label, kind, unit, default, documentation, and what else there is to say. */
#define ENTRY(p, l, k, u, d, a, ...)                                                               \
  { .path = p, .label = l, .kind = VALUE_##k, .unit = u, .fallback = d, .about = a, __VA_ARGS__ }

typedef struct field_table {
  const field *entries;
  size_t n;
} field_table;

extern const field_table fields_of_study, fields_of_learner, fields_of_cluster, fields_of_toy_world,
    fields_of_llm_world, fields_of_laboratory;

#endif
