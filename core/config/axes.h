/* The fields that distinguish the runs of a study, found by comparing their recipes.
 *
 * Every field in which runs of one study differ, and every field that a sweep named, has a role
 * (core/config/fields.h). Fields with role axis, together with the algorithm, define the cells;
 * runs of one cell differ in their seed and are averaged. Nothing is averaged by mistake: a tuned
 * field that differs within a cell becomes an axis, and so does a field of provenance if it is the
 * only difference between two runs with one seed. */
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
  char *label;      /* words, unique among axes: "max delay" */
  const char *unit; /* "s"; "" if none; static */
  field_role role;  /* its role in the tables of fields; every field listed here is an axis */
  field_kind kind;
  int swept; /* 1: named by a sweep; 0: found by comparing recipes */
} axis;

/* The value of a field in a run. */
typedef struct axis_value {
  const char *text; /* "600", "none", "{\"distribution\":…}"; NULL: the recipe does not set the
                       field and it has no fixed default */
  double number; /* value of a number or of a constant distribution; 0 for `none`; otherwise NaN */
} axis_value;

/* One run; strings are borrowed during the call. */
typedef struct axes_run {
  const char *study;
  const char *algorithm; /* the shown name */
  const char *recipe;    /* canonical JSON; NULL: only `swept` is known */
  const char *swept;     /* JSON object of the swept fields: {"cluster.max_delay":600} */
  const char *chosen;    /* JSON object of the tuned fields; NULL: none */
  const char *in_effect; /* values in effect, from cfg_record_end(); NULL: use the defaults in the
                            tables of fields */
  int64_t meaning;       /* RECIPE_MEANING of the program that made the run */
  uint64_t seed;
} axes_run;

typedef struct axis_table {
  axis *axis; /* [n], sorted by path */
  size_t n;
  axis_value *value;      /* [n_runs][n] value of every axis in every run */
  const char **algorithm; /* [n_runs] shown names; if one name stands for different algorithms of a
                             study, followed by their differences: "gepo (clip none)" */
  size_t *same; /* [n_runs] index of the first run with the same cell, seed and meaning (or the run
                   itself) */
  arena memory; /* of the whole table */
} axis_table;

/* Compares the runs of each study. Call axes_fini() even after an error. Errors: GL_ENOMEM, GL_EIO
 * if a recipe is not valid JSON of the store. */
gl_status axes_find(axis_table *out, const axes_run *runs, size_t n_runs, gl_error *err);
void axes_fini(axis_table *a);

/* The index of the axis with that path, or a->n. */
size_t axes_index(const axis_table *a, const char *path);

/* Adds the value to a JSON object under the axis's path: a number, a truth value, a distribution or
 * list, a text, or null if the run has no value. Returns the item, or NULL if out of memory. */
cJSON *axis_json(cJSON *to, const axis *a, axis_value v);

#endif
