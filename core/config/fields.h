/* The fields of a recipe: for each its dotted path, what value it takes within which bounds, its
 * unit, its default, its role when runs are compared, and a line of documentation.
 *
 * A room that reads a section of recipes owns the table of the section's fields (its fields.c) and
 * reads them with the functions field_count(), field_real(), … below, which take default, bounds
 * and words from the table. The program lists all tables: field_tables.
 *
 * A default may depend on another field: such a field has one entry per case, or a default in each
 * entry of a table of presets. A default that is computed has none here.
 */
#ifndef GEPOLAB_CORE_CONFIG_FIELDS_H
#define GEPOLAB_CORE_CONFIG_FIELDS_H

#include "core/config/config.h"

#include <stdbool.h>

/* The version of recipes' meaning: increased by one whenever a default or the effect of a stated
 * value changes, so that the same text gives other results. Part of every cell's key, so that a
 * resumed sweep never reuses a run of another meaning. */
enum {
  RECIPE_MEANING = 2
}; /* 2: evaluations have a distribution of their own, not that of `sampling` */

/* What a difference between two runs in a field means. */
typedef enum field_role {
  ROLE_AXIS,      /* other conditions: the runs belong to different cells */
  ROLE_CHOSEN,    /* chosen for the cell beforehand, as by `tune`: does not split figures */
  ROLE_ALGORITHM, /* part of the algorithm: the runs have different algorithms */
  ROLE_SEED,      /* another draw of the same cell: the only thing that is averaged over */
  ROLE_PROVENANCE /* describes the run and changes no result */
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

typedef enum field_number {
  NUMBER_FREE,     /* checked by its reader */
  NUMBER_REAL,     /* from lo to hi */
  NUMBER_POSITIVE, /* above 0 */
  NUMBER_WHOLE,    /* an int64_t from lo to hi; hi infinite: no limit */
  NUMBER_COUNT     /* the same as a size_t */
} field_number;

/* True where the field at `path` has the value `is`, also by default; is NULL: where the recipe
 * does not state the field. */
typedef struct field_condition {
  const char *path, *is;
} field_condition;

/* Named sets of defaults, of which a recipe selects one: the presets of a cluster. */
typedef struct field_presets {
  const char *path; /* of the field that selects one: "cluster.preset" */
  /* The i-th set, a struct whose members are defaults (field.member), and its name; NULL past the
   * last. */
  const void *(*at)(size_t i, const char **name);
} field_presets;

enum { FIELD_MAX_CONDITIONS = 4, FIELD_MOST_CHOICES = 64 };

typedef struct field {
  const char *path;  /* dotted: "cluster.max_delay" */
  const char *label; /* in words, unique in the table but for cases of one path: "max delay" */
  field_kind kind;
  field_number number;                /* which numbers; of a list: its items */
  double lo, hi;                      /* both included */
  const char *const *choices;         /* the words of a choice, NULL behind the last; or */
  const char *(*choice_at)(size_t i); /* the i-th word, NULL past the last */
  const char *unit;      /* "s", "tokens", "bytes/s", …; "" for pure numbers and words */
  const char *fallback;  /* the default as text ("0.05", "none", "false"); NULL: none or computed */
  const char *about;     /* a sentence or two for the reference of recipes; NULL: that of the entry
                            before */
  const char *rule;      /* a computed default in words, "heads / 2", of the path's first entry;
                            NULL: none needed */
  field_role role;       /* unless a sweep or `tune` says otherwise */
  const char *shorthand; /* the section whose short form states this field: `task: addition` for
                            `task: {kind: addition}`; NULL: none */
  bool is_file;         /* of a text: the name of a file, perhaps relative to the recipe's folder */
  const char *items[2]; /* of a list: sections whose fields its items have too; NULL: none */
  const field_presets *presets; /* the default is a member of the selected set; NULL: none */
  size_t member;                /* its offsetof: of a size_t, int64_t, int (choices) or double */
  field_condition when[FIELD_MAX_CONDITIONS]; /* all must hold; path NULL: no condition */
  field_condition unless;                     /* must not hold; path NULL: no condition */
} field;

typedef struct field_table {
  const field *entries;
  size_t n;
} field_table;

/* --- writing a table --- */
/* FIELD(path, label, kind, unit, default, documentation, further members); the kind is
 * REAL(lo, hi), POSITIVE, WHOLE(lo, hi), COUNT(lo, hi) or NUMBER; CHOICE("word", …) or
 * CHOICE_AT(function); FLAG, TEXT, DIST, SECTION, LIST, NUMBERS(lo, hi) or COUNT_OR_LIST(lo, hi).
 * INFINITY as hi is no limit. Entries of one path and table are neighbours, those with conditions
 * first. */
#define FIELD(p, l, k, u, d, a, ...)                                                               \
  { .path = p, .label = l, FIELD_IS_##k, .unit = u, .fallback = d, .about = a, __VA_ARGS__ }
#define FIELD_IS_BOUNDED(n, a, b)                                                                  \
  .kind = VALUE_NUMBER, .number = n, .lo = (double)(a), .hi = (double)(b)
#define FIELD_IS_REAL(a, b) FIELD_IS_BOUNDED(NUMBER_REAL, a, b)
#define FIELD_IS_POSITIVE FIELD_IS_BOUNDED(NUMBER_POSITIVE, 0, INFINITY)
#define FIELD_IS_WHOLE(a, b) FIELD_IS_BOUNDED(NUMBER_WHOLE, a, b)
#define FIELD_IS_COUNT(a, b) FIELD_IS_BOUNDED(NUMBER_COUNT, a, b)
#define FIELD_IS_NUMBER FIELD_IS_BOUNDED(NUMBER_FREE, -INFINITY, INFINITY)
#define FIELD_IS_CHOICE(...)                                                                       \
  .kind = VALUE_CHOICE, .choices = (const char *const[]) {                                         \
    __VA_ARGS__, NULL                                                                              \
  }
#define FIELD_IS_CHOICE_AT(f) .kind = VALUE_CHOICE, .choice_at = f
#define FIELD_IS_FLAG .kind = VALUE_FLAG
#define FIELD_IS_TEXT .kind = VALUE_TEXT
#define FIELD_IS_DIST .kind = VALUE_DIST
#define FIELD_IS_SECTION .kind = VALUE_SECTION
#define FIELD_IS_LIST .kind = VALUE_LIST
#define FIELD_IS_NUMBERS(a, b)                                                                     \
  .kind = VALUE_LIST, .number = NUMBER_REAL, .lo = (double)(a), .hi = (double)(b)
#define FIELD_TABLE(name, list) const field_table name = {list, sizeof list / sizeof *list}
/* A count, or a list of the counted things. */
#define FIELD_IS_COUNT_OR_LIST(a, b)                                                               \
  .kind = VALUE_LIST, .number = NUMBER_COUNT, .lo = (double)(a), .hi = (double)(b)
/* The number below 1, for bounds that are not included. */
#define FIELD_BELOW_1 0x1.fffffffffffffp-1

/* --- looking a field up --- */

/* All tables, in the order of the reference of recipes; unused places are NULL. Not core/config but
 * the program that is linked with it defines this list: the command in experiments/recipe/fields.c,
 * libgepolab in library/status.c. A field in none of these tables cannot be read. */
enum { FIELD_MOST_TABLES = 24 };
extern const field_table *const field_tables[FIELD_MOST_TABLES];

/* "axis", "chosen", "algorithm", "seed" or "provenance". */
const char *field_role_name(field_role role);
/* "number", "choice", "flag", "text", "distribution", "list" or "section". */
const char *field_kind_name(field_kind kind);

/* The i-th entry of all tables, or NULL past their end. */
const field *fields_at(size_t i);

/* The i-th word of a choice, or NULL past the last. */
const char *field_choice_at(const field *f, size_t i);

/* The field's default in the i-th set of its presets, whose name is *name; NULL past the last. */
enum { FIELD_TEXT_SIZE = 64 };
const char *field_preset_at(const field *f, size_t i, const char **name,
                            char text[FIELD_TEXT_SIZE]);

/* The value of another field of the same recipe, as text, with *stated = 1; NULL and 0 where the
 * recipe does not state it. */
typedef const char *(*field_value)(const void *recipe, const char *path, int *stated);

/* The entry of that path whose conditions hold for the recipe; NULL if there is none. */
const field *fields_find(const char *path, field_value value, const void *recipe);
/* The default that the field of that path has in the recipe, as text; NULL: none, or computed. */
const char *fields_default(const char *path, field_value value, const void *recipe,
                           char text[FIELD_TEXT_SIZE]);
/* The field that a scalar at the path of a section states (short form), or NULL. */
const field *fields_short_form(const char *path, field_value value, const void *recipe);
/* 1 if the table has fields below the path (`world`, `world.policy`). */
int fields_is_section(const char *path);
/* Whether the field at path is one value, whatever it holds: a distribution, a list. */
bool fields_is_whole(const char *path);
/* The first entry of that path whatever its conditions, or NULL. */
const field *fields_named(const char *path);
/* As fields_named(); for an item of a list also among the sections whose fields the items have. */
const field *fields_of_item(const char *path);

/* --- names of other programs --- */

/* A field under the name that another program gives it: {"rtt", "cluster.delay", "half of it"}; or
 * a value: {"cluster.preset=trl", "cluster.preset=sync", ""}. */
typedef struct field_alias {
  const char *name; /* lower case, with underscores */
  const char *path; /* one or more fields here; one that ends with a dot is followed by the name */
  const char *note; /* how the value differs; "" where it does not */
} field_alias;

/* Sets *alias to the i-th; false past the last. The command defines it in
 * experiments/recipe/aliases.c; a program that does not has no aliases. */
bool field_alias_at(size_t i, field_alias *alias);

/* The fields that somebody means who wrote `name` where no field is: that of an alias,
 * "cluster.delay (half of it)", or those elsewhere with that last word. Upper case and hyphens do
 * not matter. not_at (or NULL) is the path that was written: where it is a field, which other
 * recipes have, only aliases of top-level keys are looked for. Empty where there are none. Returns
 * text. */
enum { FIELD_HINT_SIZE = 320 };
const char *fields_elsewhere(const char *name, const char *not_at, char text[FIELD_HINT_SIZE]);
/* What is written in place of a value that a field does not have, as fields_elsewhere(). */
const char *fields_value_elsewhere(const char *path, const char *value, char text[FIELD_HINT_SIZE]);

/* --- reading a field --- */
/* Each reads a key of r's section by its entry in the table: the default if the recipe omits the
 * key, else the value, checked against its bounds. A key that no table has is GL_EINTERNAL. The
 * variants _or take a computed default. */
double field_real(cfg_reader *r, const char *key);
double field_real_or(cfg_reader *r, const char *key, double fallback);
int64_t field_whole(cfg_reader *r, const char *key);
int64_t field_whole_or(cfg_reader *r, const char *key, int64_t fallback);
size_t field_count(cfg_reader *r, const char *key);
size_t field_count_or(cfg_reader *r, const char *key, size_t fallback);
bool field_flag(cfg_reader *r, const char *key);
/* The number of the word among the field's choices. */
int field_choice(cfg_reader *r, const char *key);
int field_choice_or(cfg_reader *r, const char *key, int fallback);
const char *field_text(cfg_reader *r, const char *key);
/* A list of numbers, as cfg_doubles(). */
size_t field_numbers(cfg_reader *r, const char *key, double **out);
/* The table's default of a number or of a distribution that is a number; `none` is 0. */
double field_default(cfg_reader *r, const char *key);
/* Records (cfg_record_begin) the number of a field that its room reads without these functions;
 * returns value. */
double field_noted(cfg_reader *r, const char *key, double value);
/* The i-th word of the field at path, for messages. */
const char *field_word(const char *path, size_t i);

/* --- designs --- */
/* Keys of a recipe's `sweep` that set several fields at once, with a map or maps whose keys are
 * paths of fields. experiments/recipe expands them. */

typedef struct cfg_design {
  const char *key;    /* in `sweep` */
  const char *form;   /* how its value is written, for messages */
  const char *within; /* the key of its value whose map holds the paths; NULL: the value itself */
  int by_name;        /* each key of that map is a name, and its value a map of paths */
} cfg_design;

/* The design that a key of `sweep` names, or its first `length` bytes; NULL: it is an axis. */
const cfg_design *cfg_design_named(const char *key);
const cfg_design *cfg_design_of(const char *key, size_t length);

/* Whether one dotted path is the other or inside it, so that not both can be set. */
int cfg_paths_meet(const char *a, const char *b);

#endif
