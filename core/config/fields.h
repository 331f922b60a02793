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

#include <stddef.h>

/* The meaning of recipes: raised by one whenever a default, or what a stated value does, changes,
 * so that the same text gives other results. Part of every cell's key: a sweep that is continued
 * never takes a run of another meaning for its own. */
enum { RECIPE_MEANING = 2 }; /* 2: evaluations have a law of their own, not that of `sampling` */

/* What it means that two runs differ in a field. */
typedef enum field_role {
  ROLE_AXIS,      /* other conditions: the runs belong to different cells */
  ROLE_CHOSEN,    /* chosen for the cell before it was run, as by `tune`: does not split figures */
  ROLE_ALGORITHM, /* part of the algorithm: the runs have different algorithms */
  ROLE_SEED,      /* another draw of the same cell: the only thing that is averaged over */
  ROLE_PROVENANCE /* says something about the run and changes no result */
} field_role;
/* "axis", "chosen", "algorithm", "seed" or "provenance". */
const char *field_role_name(field_role role);

typedef enum field_kind {
  VALUE_NUMBER,
  VALUE_CHOICE, /* one of a few words */
  VALUE_FLAG,   /* true or false */
  VALUE_TEXT,
  VALUE_LAW,    /* a number, `none`, or a probability law with its parameters */
  VALUE_LIST,   /* of numbers, words or maps; compared as a whole */
  VALUE_SECTION /* a map with fields of its own */
} field_kind;
/* "number", "choice", "flag", "text", "law", "list" or "section". */
const char *field_kind_name(field_kind kind);

/* Holds where the field at `path` has the value `is`, its default included; is NULL: where the
 * recipe does not state the field. */
typedef struct field_condition {
  const char *path, *is;
} field_condition;

enum { FIELD_MAX_CONDITIONS = 3 };

typedef struct field {
  const char *path;  /* dotted: "cluster.max_delay" */
  const char *label; /* in words, unique in the table but for cases of one path: "max delay" */
  field_kind kind;
  const char *unit;      /* "s", "tokens", "bytes/s", …; "" for pure numbers and words */
  const char *fallback;  /* the default as text ("0.05", "none", "false"); NULL: none or computed */
  const char *about;     /* a sentence or two for the reference of recipes; NULL: as the entry
                            before it */
  const char *rule;      /* the default in words, where the fallbacks of the path's entries do not
                            say it all: "heads / 2"; of the path's first entry. NULL: none needed */
  field_role role;       /* unless a sweep or `tune` says otherwise */
  const char *shorthand; /* the section whose short form states this field: `task: addition` for
                            `task: {kind: addition}`; NULL: none */
  int is_file;           /* of a text: it names a file, which may be beside the recipe's */
  field_condition when[FIELD_MAX_CONDITIONS]; /* where this entry holds; path NULL: no condition */
} field;

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
