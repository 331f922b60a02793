/* What distinguishes the runs of a study, found by comparing their recipes field by field.
 *
 * Every field in which runs of one study differ, and every field that a sweep named, has a role
 * (core/config/fields.h). Fields of role axis, with the algorithm, make the cells; runs of one cell
 * differ in their seed and are averaged over. Nothing is averaged over by mistake: a chosen field
 * that differs within a cell becomes an axis, and so does a field of provenance if it is the only
 * difference between two runs of one seed.
 */
#ifndef GEPOLAB_CORE_CONFIG_AXES_H
#define GEPOLAB_CORE_CONFIG_AXES_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/config/fields.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

/* A field in which cells differ. */
typedef struct axis {
  char *path;       /* dotted: "cluster.max_delay" */
  char *label;      /* in words: "max delay"; no two axes have the same */
  const char *unit; /* "s"; "" for none; lives as long as the program */
  field_role role;  /* what it is in most recipes; all are axes here */
  field_kind kind;
  int swept; /* 1: a sweep named it; 0: found by comparing recipes */
} axis;

/* The value of a field in a run. */
typedef struct axis_value {
  const char *text; /* "600", "none", "{\"distribution\":…}"; NULL: the recipe does not state the
                       field and it has no fixed default */
  double
      number; /* of a number and of the distribution of a constant; `none` is 0; NaN for all else */
} axis_value;

/* One run; strings are borrowed for the time of the call. */
typedef struct axes_run {
  const char *study;
  const char *algorithm; /* the shown name */
  const char *recipe;    /* canonical JSON; NULL: only `swept` is known */
  const char *swept;     /* JSON object of the fields a sweep named: {"cluster.max_delay":600} */
  const char *chosen;    /* JSON object of the fields chosen beforehand; NULL: none */
  const char *in_effect; /* what core/config/record.h says of its fields; NULL: the defaults of the
                            tables of fields are taken */
  int64_t meaning;       /* RECIPE_MEANING of the program that made it */
  uint64_t seed;
} axes_run;

typedef struct axis_table {
  axis *axis; /* [n], in the order of their paths */
  size_t n;
  axis_value *value; /* [n_runs][n] */
  size_t n_runs;
  const char **algorithm; /* [n_runs] shown names; where one name stands for different algorithms
                             of a study, followed by what differs: "gepo (clip none)" */
  size_t *same;           /* [n_runs] the first run of the same cell and seed that means the same
                             (the run itself where there is none before it) */
  arena memory;           /* of all of it */
} axis_table;

/* Compares the runs of each study. Release with axes_fini() in any case. GL_EIO if a recipe is not
 * the JSON that a store keeps. */
gl_status axes_find(axis_table *out, const axes_run *runs, size_t n_runs, gl_error *err);
void axes_fini(axis_table *a);

/* The axis of that path: its index, or a->n. */
size_t axes_index(const axis_table *a, const char *path);

/* Adds the value to a JSON object under the axis's path: a number, a truth value, a distribution or
 * list, a text, or null where the run has none. The item, or NULL if memory is short. */
cJSON *axis_json(cJSON *to, const axis *a, axis_value v);

#endif
