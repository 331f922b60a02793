/* Recipes: YAML read into a tree with the file, line and column of every value, dotted overrides
 * from the command line, and a reader with which each room reads its own section.
 *
 * A message about a recipe always has the form `file:line:column: what is wrong; what is allowed
 * (did you mean 'nearest'?)`. An override's place is `command line:1:column` with the assignment
 * quoted.
 *
 * A reader records the keys it was asked for, so cfg_end() can reject every other key and name the
 * nearest known one.
 */
#ifndef GEPOLAB_CORE_CONFIG_CONFIG_H
#define GEPOLAB_CORE_CONFIG_CONFIG_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct cfg_doc cfg_doc;   /* owns a tree */
typedef struct cfg_node cfg_node; /* part of a tree, borrowed from its doc */

typedef enum cfg_kind { CFG_SCALAR, CFG_LIST, CFG_MAP } cfg_kind;

/* Limits: files up to 8 MiB, depth 64, keys of 128 bytes, 1,000,000 nodes after alias expansion;
 * anything beyond, and cyclic aliases, duplicate keys, several documents and non-YAML are
 * GL_EINPUT. Merge keys (<<: *name, <<: [*one, *other]) are those of YAML 1.1: a map's own keys win
 * over merged ones, and of a list the earlier map over the later; every entry keeps its place. */
gl_status cfg_load_file(cfg_doc **out, const char *path, gl_error *err);
gl_status cfg_load_text(cfg_doc **out, const char *text, size_t size, const char *name,
                        gl_error *err);
gl_status cfg_copy(cfg_doc **out, const cfg_doc *doc, gl_error *err);
void cfg_free(cfg_doc *doc);
const cfg_node *cfg_root(const cfg_doc *doc); /* a map */
/* As cfg_load_text, for a text with the content of the file at path (NULL: of none): files that it
 * names are looked for beside that one. */
gl_status cfg_load_text_of(cfg_doc **out, const char *text, size_t size, const char *name,
                           const char *path, gl_error *err);

/* A recipe of one field: the value at the dotted path, which is written in text as in any recipe.
 * Messages name it and count its lines and columns: `name:line:column: ...`. GL_EINPUT for an empty
 * text and for all that cfg_load_text() refuses. */
gl_status cfg_load_value(cfg_doc **out, const char *path, const char *text, size_t size,
                         const char *name, gl_error *err);

/* The recipes inside the program, which an include may name. */
typedef struct cfg_library {
  /* 1 with the text of the recipe of that name and its name in messages; 0 if there is none. */
  int (*find)(void *self, const char *name, const char **text, size_t *size, const char **shown);
  void *self;
} cfg_library;

/* Replaces the top-level key `include` by the recipes it names: `include: base.yaml`, or a list of
 * such. Maps are merged key by key; the including recipe wins over what it includes, and a later
 * entry of the list over an earlier one. An axis of a sweep, a distribution and a list are each one
 * value. Where one side is a section's short form (`algorithm: gepo`) and the other its fields,
 * they are joined.
 *
 * A word without '/' and '.' that the library (NULL: none) knows is one of its recipes; everything
 * else is a file, relative to the folder of the recipe that names it. A recipe without a file
 * includes from the library only. Files that an included recipe names remain relative to its own
 * folder. Limits: 8 levels, 64 recipes, 8 MiB of them together. Cycles, anything but regular files,
 * and all that cfg_load_text() refuses are GL_EINPUT with the places of the includes that led
 * there. */
gl_status cfg_include(cfg_doc *doc, const cfg_library *library, gl_error *err);

/* A recipe of one section, `name`: a copy of `section`, with `over` merged into the map at the
 * dotted path below it. Merging is that of cfg_include(). Places are those of the originals. The
 * caller frees *out. */
gl_status cfg_overlay(cfg_doc **out, const char *name, const cfg_node *section, const char *path,
                      const cfg_node *over, gl_error *err);

/* Replaces the names of existing files, as cfg_locate() finds them, by absolute paths, so that a
 * copy of the recipe in another folder names the same files. Other names are left. */
gl_status cfg_settle_files(cfg_doc *doc, gl_error *err);

/* Converts what people write to what the program reads, so that equal recipes become equal text:
 *
 *   numbers with a unit, 10m, 1.5GiB, 100Mbit/s (core/config/units.h), become numbers of the unit
 *   that the field has in the table of fields: 600, 1610612736, 12500000
 *   ranges of a sweep's axis and of `tune`, {from: 1, to: 100, n: 3, scale: log}, become lists:
 *   [1, 10, 100]
 *
 * Comes after includes and overrides. GL_EINPUT for a unit of another dimension, an unknown unit,
 * and an invalid range. */
gl_status cfg_resolve(cfg_doc *doc, gl_error *err);

/* For documents whose fields are not those of a recipe: the unit of a value, or of the values of a
 * list or of a distribution, at a dotted path. Items of a list have the path of the list. */
typedef struct cfg_quantity {
  const char *path, *unit; /* of core/config/units.h; both live as long as the doc */
} cfg_quantity;

/* Converts numbers with a unit, 10m, 1.5GiB, to the quantities' units, as cfg_resolve() does for
 * the fields of recipes. GL_EINPUT for a unit of another dimension, and an unknown unit. */
gl_status cfg_resolve_quantities(cfg_doc *doc, const cfg_quantity *table, size_t n, gl_error *err);

/* `a.b.c=VALUE`, VALUE any YAML flow value. Missing maps are added. Below `sweep` (and
 * in any map that already has it) the rest of the path is one key: sweep.cluster.max_delay=[0,60]
 * sets the key "cluster.max_delay" of sweep. List elements are reached by number: a.0.b. A field
 * below a section's short form, as algorithm.clip below `algorithm: gepo`, makes it {base: gepo,
 * clip: …}. */
gl_status cfg_override(cfg_doc *doc, const char *assignment, gl_error *err);
/* Sets the dotted path to a deep copy of value, which may belong to another doc. */
gl_status cfg_set(cfg_doc *doc, const char *path, const cfg_node *value, gl_error *err);
/* Writes a scalar of doc in other words, which must stay where they are. */
void cfg_respell(cfg_doc *doc, const cfg_node *scalar, const char *text);
/* Removes a top-level key if present. */
void cfg_remove(cfg_doc *doc, const char *key);

/* The tree as JSON with sorted keys and numbers in shortest round-trip form: equal recipes give
 * equal text whatever their layout. malloc'd, the caller frees; NULL if memory is short. */
char *cfg_canonical(const cfg_node *node);

/* The canonical text of a recipe with holes. */
typedef struct cfg_template cfg_template;
/* A template of doc with a hole for the value at each of paths[n]. The paths must exist, and none
 * may be inside another: GL_EINTERNAL otherwise. Release with cfg_template_free(). */
gl_status cfg_template_new(cfg_template **out, const cfg_doc *doc, const char *const *paths,
                           size_t n, gl_error *err);
void cfg_template_free(cfg_template *t);
/* Bytes of the text with values[n] in the holes, the final zero not counted. */
size_t cfg_template_size(const cfg_template *t, const char *const *values);
/* Writes that text, with a final zero; values[i] is the canonical text for paths[i]. */
void cfg_template_write(const cfg_template *t, const char *const *values, char *to);

/* --- looking at a tree --- */

cfg_kind cfg_kind_of(const cfg_node *node);
size_t cfg_size(const cfg_node *node);                            /* list or map */
const cfg_node *cfg_at(const cfg_node *node, size_t i);           /* i-th value */
const char *cfg_key_at(const cfg_node *map, size_t i);            /* i-th key */
const cfg_node *cfg_find(const cfg_node *node, const char *path); /* dotted; NULL if absent */
/* Whether a dotted path is that of the section or of something in it. */
int cfg_path_is_inside(const char *path, const char *section);
const char *cfg_text(const cfg_node *scalar); /* text as written; "" otherwise */
int cfg_is_null(const cfg_node *node);        /* plain null, ~ or empty */
/* The file of the node, as it was named; NULL for a node of a text or an override. */
const char *cfg_source_path(const cfg_node *node);
/* The unit of the field that node is a value of, as cfg_resolve() found it; "" for none. */
const char *cfg_unit(const cfg_node *node);
/* The first value at or below node that came from an override; NULL: none. */
const cfg_node *cfg_overridden(const cfg_node *node);
/* The value that a recipe with root `recipe` states at path, for fields_find(). */
const char *cfg_stated(const void *recipe, const char *path, int *stated);
/* The path of a file that node names: beside the node's own file if it exists there, else as given.
 * malloc'd, the caller frees; NULL if memory is short. */
char *cfg_locate(const cfg_node *node, const char *path);
/* A scalar as a number: accepts 1e-3, inf, 0x10, 1_000. Returns 1 if it is one. */
int cfg_number(const cfg_node *node, double *value);

/* GL_EINPUT with the node's file:line:column in front. */
gl_status cfg_fail(const cfg_node *node, gl_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The entry of names[n] nearest to word by edit distance, or NULL if none is near. */
const char *cfg_nearest(const char *word, const char *const *names, size_t n);
/* The end of a message about a wrong word: " (did you mean 'nearest'?)", or "" if none is near.
 * Returns text. */
enum { CFG_HINT_SIZE = 128 };
const char *cfg_hint(const char *word, const char *const *names, size_t n,
                     char text[CFG_HINT_SIZE]);

/* --- lists of maps --- */
/* A doc whose root is a list, to which maps are added one by one. Messages about its values name
 * the place of `at`. Release with cfg_free(). */
gl_status cfg_list_new(cfg_doc **out, const cfg_node *at, gl_error *err);
/* Adds an empty map at the end. */
gl_status cfg_list_add_map(cfg_doc *list, gl_error *err);
/* Adds to the last map a key with a copy of the value, or with a number at the place of `at`. The
 * last map must not have the key. */
gl_status cfg_list_put(cfg_doc *list, const char *key, const cfg_node *value, gl_error *err);
gl_status cfg_list_put_number(cfg_doc *list, const char *key, double value, const cfg_node *at,
                              gl_error *err);

/* --- reading a section --- */
/* cfg_reader r;
 *   cfg_begin(&r, node, "cluster", err);                 // node may be NULL: all defaults
 *   spec.window = cfg_count(&r, "window", 32, 0, SIZE_MAX);
 *   spec.distribution    = cfg_choice(&r, "distribution", DIST_NONE, dist_names, n_dists);
 *   if (cfg_end(&r) != GL_OK) return err->status;        // first error wins, all keys checked
 *
 * After a failure every further call returns its default and does nothing. */
enum { CFG_READER_MAX_KEYS = 96 };
typedef struct cfg_reader {
  const cfg_node *map;
  const char *section; /* for messages: "cluster.delay" */
  const char *path;    /* of the section in the tables of fields; "" for the top of a recipe */
  const char *kind_of, *kind; /* cfg_of() */
  const void *defaults;       /* cfg_defaults() */
  int origin;                 /* of the default that is being read (core/config/record.h) */
  gl_error *err;
  gl_status status;
  const char *asked[CFG_READER_MAX_KEYS];
  size_t n_asked;
} cfg_reader;

void cfg_begin(cfg_reader *r, const cfg_node *map_or_null, const char *section, gl_error *err);
/* As cfg_begin(), of a section whose path in the tables of fields (core/config/fields.h) differs
 * from its name in messages. */
void cfg_begin_at(cfg_reader *r, const cfg_node *map_or_null, const char *path, const char *section,
                  gl_error *err);
/* Selects among the entries of one path in the tables of fields: from here on those whose condition
 * about the field at `path` has the value `kind` apply, as in cfg_of(&r, "world.kind", "llm"). */
void cfg_of(cfg_reader *r, const char *path, const char *kind);
/* Fields with presets have the defaults of this set. */
void cfg_defaults(cfg_reader *r, const void *set);
gl_status cfg_end(cfg_reader *r);

/* Each takes the key's value or the default; bounds are inclusive unless noted. */
double cfg_double(cfg_reader *r, const char *key, double fallback, double lo, double hi);
/* As cfg_double but with an open lower bound: value > lo. */
double cfg_positive(cfg_reader *r, const char *key, double fallback);
int64_t cfg_int(cfg_reader *r, const char *key, int64_t fallback, int64_t lo, int64_t hi);
size_t cfg_count(cfg_reader *r, const char *key, size_t fallback, size_t lo, size_t hi);
int cfg_bool(cfg_reader *r, const char *key, int fallback);
/* Borrowed from the doc; fallback may be NULL. */
const char *cfg_string(cfg_reader *r, const char *key, const char *fallback);
/* Index into names. */
int cfg_choice(cfg_reader *r, const char *key, int fallback, const char *const *names, int n);
/* A list of numbers (a lone number is a list of one): returns how many, with the values in *out,
 * which the caller frees; NULL and 0 if the key is absent. */
size_t cfg_doubles(cfg_reader *r, const char *key, double **out, double lo, double hi);
/* The raw node, NULL if absent: for sub-sections and unions. */
const cfg_node *cfg_child(cfg_reader *r, const char *key);
int cfg_has(const cfg_reader *r, const char *key);

/* --- recording --- */
/* The value of every field in effect, and its origin. */

/* From here on every field that this thread reads is recorded, once: the first value counts. Items
 * of lists are recorded with their list. */
void cfg_record_begin(void);
/* Ends the recording and returns it as malloc'd JSON: for each origin that occurs an object of
 * paths and values,
 *
 *   {"stated":{"train.groups":8},"null":{"optimizer.lr":0.05},"default":{…},"preset":{…},…}
 *
 * "null": the recipe states null, so the default applies; "preset": the value of a preset of
 * defaults; "computed": it follows from other fields. NULL if memory is short. */
char *cfg_record_end(void);

#endif
