/* The fields of recipes: each has a dotted path, type and bounds, unit, default, role in
 * comparisons of runs, and a line of documentation.
 *
 * A module that reads a section of recipes has the table of its fields (its fields.c) and reads
 * them with field_count(), field_real(), … below, which take defaults, bounds and words from the
 * table. The program lists all tables in field_tables.
 *
 * A default may depend on another field: such a field has one entry per case, or a default in each
 * entry of a table of presets. Computed defaults are not in the table. */
#ifndef GEPOLAB_CORE_CONFIG_FIELDS_H
#define GEPOLAB_CORE_CONFIG_FIELDS_H

#include "core/config/config.h"

#include <stdbool.h>

/* The version of recipes' meaning: incremented whenever a default or the effect of a stated value
 * changes, so that the same recipe gives different results. Part of every cell's key, so that a
 * resumed sweep never reuses a run with another meaning. */
enum {
  RECIPE_MEANING = 2
}; /* 2: evaluations have their own distribution, independent of `sampling` */

/* The meaning of a difference between two runs in a field. */
typedef enum field_role {
  ROLE_AXIS,      /* different conditions: the runs are in different cells */
  ROLE_CHOSEN,    /* chosen for the cell beforehand, as by `tune`: does not split figures */
  ROLE_ALGORITHM, /* part of the algorithm: the runs have different algorithms */
  ROLE_SEED,      /* a replicate of the same cell: the only difference that is averaged over */
  ROLE_PROVENANCE /* describes the run, affects no result */
} field_role;

typedef enum field_kind {
  VALUE_NUMBER,
  VALUE_CHOICE, /* one of a few words */
  VALUE_FLAG,   /* true or false */
  VALUE_TEXT,
  VALUE_DIST,   /* a number, `none`, or a probability distribution with its parameters */
  VALUE_LIST,   /* list of numbers, words or maps; compared as a whole */
  VALUE_SECTION /* a map with fields of its own */
} field_kind;

typedef enum field_number {
  NUMBER_FREE,     /* checked by the code that reads it */
  NUMBER_REAL,     /* from lo to hi */
  NUMBER_POSITIVE, /* above 0 */
  NUMBER_INTEGER,  /* int64_t from lo to hi; hi infinite: no limit */
  NUMBER_COUNT     /* size_t from lo to hi; hi infinite: no limit */
} field_number;

/* True if the field at `path` has the value `is`, stated or by default; is NULL: true if the recipe
 * does not state the field. */
typedef struct field_condition {
  const char *path, *is;
} field_condition;

/* Named sets of defaults, of which a recipe selects one: the presets of a cluster. */
typedef struct field_presets {
  const char *path; /* path of the field that selects a set: "cluster.preset" */
  /* Returns the i-th set, a struct whose members are defaults (field.member), and its name; NULL
   * past the last. */
  const void *(*at)(size_t i, const char **name);
} field_presets;

enum { FIELD_MAX_CONDITIONS = 4, FIELD_MOST_CHOICES = 64 };

typedef struct field {
  const char *path;  /* dotted: "cluster.max_delay" */
  const char *label; /* words, unique in the table except for cases of one path: "max delay" */
  field_kind kind;
  field_number number;        /* type of the number, or of the items of a list */
  double lo, hi;              /* inclusive bounds */
  const char *const *choices; /* the words of a choice, NULL after the last; or */
  const char *(*choice_at)(
      size_t i);        /* a function that returns the i-th word, NULL past the last */
  const char *unit;     /* "s", "tokens", "bytes/s", …; "" for pure numbers and words */
  const char *fallback; /* the default as text ("0.05", "none", "false"); NULL: none, or computed */
  const char *
      about; /* one or two sentences for the reference of recipes; NULL: as in the previous entry */
  const char
      *rule; /* a computed default in words, "heads / 2", in the path's first entry; NULL: none */
  field_role role;       /* unless overridden by a sweep or `tune` */
  const char *shorthand; /* the section whose short form sets this field: `task: addition` for
                            `task: {kind: addition}`; NULL: none */
  bool no_limit;         /* number: `none` and `inf` are accepted, and mean no limit */
  bool is_file;          /* text: a file name, possibly relative to the recipe's folder */
  const char *items[2];  /* list: sections whose fields are also those of the items; NULL: none */
  const field_presets
      *presets;  /* the default is a member of the selected preset; NULL: no presets */
  size_t member; /* offset of this member: a size_t, int64_t, int (choices) or double */
  /* Whether the entry applies, and with it its default: all of `when` must hold and `unless` must
   * not; path NULL: no condition. `unless` with `is` NULL: applies only if the recipe states that
   * field. The code that reads a section, not the table, refuses fields that do not apply. */
  field_condition when[FIELD_MAX_CONDITIONS];
  field_condition unless;
} field;

/* Sets of a section's fields that users define by name in a file, as changes of a published set
 * (core/config/user_defined.h). */
typedef struct own_kind {
  const char *key;     /* top-level key of the definitions: "presets" */
  const char *aside;   /* the key that cfg_include() moves them to: "presets\n" */
  const char *section; /* the section whose fields they set: "cluster" */
  const char *base;    /* the field of the section that names the published set: "preset" */
  const char *noun;    /* for messages: "preset" */
  const char *example; /* for messages: "my_cluster: {base: areal, samplers: 8}" */
  bool is_word; /* the section may be one word, the name of a set; it is stored in field `name` */
  const char *(*published)(const char *name); /* the name as it is spelt; NULL: not published */
  /* Checks that a definition's section is usable. Errors: GL_EINPUT with its position. */
  gl_status (*check)(const cfg_node *section, gl_error *err);
} own_kind;

typedef struct field_table {
  const field *entries;
  size_t n;
  const own_kind *own; /* what users may define; NULL: nothing */
} field_table;

/* --- writing a table --- */
/* FIELD(path, label, kind, unit, default, documentation, further members). kind is REAL(lo, hi),
 * POSITIVE, INTEGER(lo, hi), COUNT(lo, hi) or NUMBER; CHOICE("word", …) or CHOICE_AT(function);
 * FLAG, TEXT, DIST, SECTION, LIST, NUMBERS(lo, hi) or COUNT_OR_LIST(lo, hi). INFINITY as hi means
 * no limit. Entries with the same path must be adjacent in a table, those with conditions first. */
#define FIELD(p, l, k, u, d, a, ...)                                                               \
  { .path = p, .label = l, FIELD_IS_##k, .unit = u, .fallback = d, .about = a, __VA_ARGS__ }
#define FIELD_IS_BOUNDED(n, a, b)                                                                  \
  .kind = VALUE_NUMBER, .number = n, .lo = (double)(a), .hi = (double)(b)
#define FIELD_IS_REAL(a, b) FIELD_IS_BOUNDED(NUMBER_REAL, a, b)
#define FIELD_IS_POSITIVE FIELD_IS_BOUNDED(NUMBER_POSITIVE, 0, INFINITY)
#define FIELD_IS_INTEGER(a, b) FIELD_IS_BOUNDED(NUMBER_INTEGER, a, b)
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
#define FIELD_TABLE(name, list)                                                                    \
  const field_table name = {.entries = list, .n = sizeof list / sizeof *list}
/* A count, or a list of the counted things. */
#define FIELD_IS_COUNT_OR_LIST(a, b)                                                               \
  .kind = VALUE_LIST, .number = NUMBER_COUNT, .lo = (double)(a), .hi = (double)(b)
/* The largest number below 1, for open bounds. */
#define FIELD_BELOW_1 0x1.fffffffffffffp-1

/* --- looking up fields --- */

/* All tables, in the order of the reference of recipes; unused entries are NULL. Defined not in
 * core/config but in the program: experiments/recipe/json_schema.c for the command,
 * library/interface.c for libgepolab. A field in none of these tables cannot be read. */
enum { FIELD_MOST_TABLES = 24 };
extern const field_table *const field_tables[FIELD_MOST_TABLES];

/* "axis", "chosen", "algorithm", "seed" or "provenance". */
const char *field_role_name(field_role role);
/* "number", "choice", "flag", "text", "distribution", "list" or "section". */
const char *field_kind_name(field_kind kind);

/* The i-th entry of all tables, or NULL past their end. */
const field *fields_at(size_t i);

/* The i-th kind of own definitions in all tables, NULL past the last; and the one whose definitions
 * are set aside at a top-level key, or NULL. */
const own_kind *fields_own_at(size_t i);
const own_kind *fields_own_aside(const char *key);

/* The i-th word of a choice, or NULL past the last. */
const char *field_choice_at(const field *f, size_t i);

/* The field's default in the i-th preset, whose name is returned in *name; NULL past the last. */
enum { FIELD_TEXT_SIZE = 64 };
const char *field_preset_at(const field *f, size_t i, const char **name,
                            char text[FIELD_TEXT_SIZE]);

/* Returns the value of another field of the same recipe as text, with *stated = 1; NULL and 0 if
 * the recipe does not set it. */
typedef const char *(*field_value)(const void *recipe, const char *path, int *stated);

/* The field's default in the recipe, as text; NULL: none, or computed. */
const char *fields_default(const char *path, field_value value, const void *recipe,
                           char text[FIELD_TEXT_SIZE]);
/* The field that a scalar at the path of a section sets (short form), or NULL. */
const field *fields_short_form(const char *path, field_value value, const void *recipe);
/* Returns 1 if the tables have fields below the path (`world`, `world.policy`). */
int fields_is_section(const char *path);
/* Whether the field at path is one value even if it is a map or list: a distribution, a list. */
bool fields_is_one_value(const char *path);
/* The first entry with that path, whatever its conditions, or NULL. */
const field *fields_named(const char *path);
/* Like fields_named(); for an item of a list also searches the sections whose fields the items
 * have. */
const field *fields_of_item(const char *path);

/* --- names of other programs --- */

/* A field under the name that another program gives it: {"rtt", "cluster.delay", "half of it"}; or
 * a value: {"cluster.preset=trl", "cluster.preset=sync", ""}; "algorithm.clip=number": any number.
 */
typedef struct field_alias {
  const char *name; /* lower case, with underscores; also the last words of a dotted name */
  const char *path; /* the recipe's field or fields; the name is appended to one that ends with a
                       dot. "": no field has this meaning; the note says what gepolab has instead */
  const char *note; /* how the value differs; "" where it does not */
} field_alias;

/* Sets *alias to the i-th; false past the last. A weak symbol: the command defines it in
 * experiments/recipe/aliases.c, and a program without a definition has no aliases. */
bool field_alias_at(size_t i, field_alias *alias);

/* Writes the field that another program calls `name`, "cluster.delay (half of it)"; "" if there is
 * none. Upper case and hyphens do not matter. not_at: the path that the user wrote, or NULL. If
 * it is a field of a section, whatever its conditions, writes "": the user meant that field.
 * Returns text. */
enum { FIELD_HINT_SIZE = 320 };
const char *fields_alias(const char *name, const char *not_at, char text[FIELD_HINT_SIZE]);
/* The same; if there is no alias, writes the fields of other sections whose last word is `name`. */
const char *fields_elsewhere(const char *name, const char *not_at, char text[FIELD_HINT_SIZE]);
/* Returns the path that the user probably meant: `path` itself if it is a field or has no alias,
 * else the first path of fields_alias(), without "sweep." if it is an axis. */
const char *fields_suggested(const char *path, char text[FIELD_HINT_SIZE]);
/* Writes the section with the kind that a field is of, "'world={kind: llm, ...}'"; "" if the table
 * names none. */
const char *fields_whole_section(const char *path, char text[FIELD_HINT_SIZE]);
/* Writes the assignment that was meant by `value` for a whole section, "world.kind=llm"; or an
 * example of one, "a field of it, as in train.groups=VALUE"; "" if the section has no such field.
 */
const char *fields_in_section(const char *path, const char *value, char text[FIELD_HINT_SIZE]);
/* Returns what gepolab has instead of a field of another program without a counterpart; or NULL. */
const char *fields_absent(const char *name);
/* Returns what one command answers to an option or a field that it does not have ("sweep", "-j"),
 * or all commands to that option; NULL: there is no such answer. Its alias is named "sweep -j" or
 * "-j", and the answer is its note. */
const char *fields_answer(const char *command, const char *name);
/* Writes the correct value or field for a value that this field does not have, in the form of
 * fields_elsewhere(). */
const char *fields_value_elsewhere(const char *path, const char *value, char text[FIELD_HINT_SIZE]);

/* --- reading a field --- */
/* Each reads a key of r's section using its table entry: the default if the recipe omits the key,
 * otherwise the value, checked against its bounds. Variants _or take a computed default. Errors:
 * GL_EINTERNAL for a key that is in no table. */
double field_real(cfg_reader *r, const char *key);
double field_real_or(cfg_reader *r, const char *key, double fallback);
int64_t field_integer(cfg_reader *r, const char *key);
int64_t field_integer_or(cfg_reader *r, const char *key, int64_t fallback);
size_t field_count(cfg_reader *r, const char *key);
size_t field_count_or(cfg_reader *r, const char *key, size_t fallback);
bool field_flag(cfg_reader *r, const char *key);
/* Returns the index of the word among the field's choices. */
int field_choice(cfg_reader *r, const char *key);
int field_choice_or(cfg_reader *r, const char *key, int fallback);
const char *field_text(cfg_reader *r, const char *key);
/* A list of numbers, like cfg_doubles(). */
size_t field_numbers(cfg_reader *r, const char *key, double **out);
/* The default in the table, of a number or of a constant distribution; `none` is 0. */
double field_default(cfg_reader *r, const char *key);
/* Records (cfg_record_begin()) the value of a field that is read without these functions; returns
 * value. */
double field_noted(cfg_reader *r, const char *key, double value);
/* The i-th choice of the field at path, for messages. */
const char *field_word(const char *path, size_t i);
/* The part of a path after its last dot. */
const char *field_last_word(const char *path);

/* --- designs --- */
/* Keys of a recipe's `sweep` that set several fields at once (designs), with a map or maps whose
 * keys are paths of fields. experiments/recipe expands them. */

typedef struct cfg_design {
  const char *key;  /* in `sweep` */
  const char *form; /* syntax of its value, for messages */
  const char
      *within; /* the key in its value whose map contains the paths; NULL: the value itself */
  int by_name; /* each key of that map is a name with a map of paths */
} cfg_design;

/* The design named by a key of `sweep`, or by its first `length` bytes; NULL: the key is an axis.
 */
const cfg_design *cfg_design_named(const char *key);
const cfg_design *cfg_design_of(const char *key, size_t length);

/* Whether one dotted path equals or contains the other, so that not both can be set. */
int cfg_paths_overlap(const char *a, const char *b);

#endif
