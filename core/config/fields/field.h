/* One field of a recipe: what an entry of the table of fields says (core/config/fields.h). */
#ifndef GEPOLAB_CORE_CONFIG_FIELDS_FIELD_H
#define GEPOLAB_CORE_CONFIG_FIELDS_FIELD_H

/* What it means that two runs differ in a field. */
typedef enum field_role {
  ROLE_AXIS,      /* other conditions: the runs belong to different cells */
  ROLE_CHOSEN,    /* chosen for the cell before it was run, as by `tune`: does not split figures */
  ROLE_ALGORITHM, /* part of the algorithm: the runs have different algorithms */
  ROLE_SEED,      /* another draw of the same cell: the only thing that is averaged over */
  ROLE_PROVENANCE /* says something about the run and changes no result */
} field_role;

typedef enum field_kind {
  VALUE_NUMBER,
  VALUE_CHOICE, /* one of a few words */
  VALUE_FLAG,   /* true or false */
  VALUE_TEXT,
  VALUE_DIST,   /* a number, `none`, or a probability distribution with its parameters */
  VALUE_LIST,   /* of numbers, words or maps; compared as a whole */
  VALUE_SECTION /* a map with fields of its own */
} field_kind;

/* Holds where the field at `path` has the value `is`, its default included; is NULL: where the
 * recipe does not state the field. */
typedef struct field_condition {
  const char *path, *is;
} field_condition;

enum { FIELD_MAX_CONDITIONS = 4 };

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
  field_condition unless;                     /* where it does not; path NULL: nowhere */
} field;

#endif
