/* Recipes: YAML parsed into a tree with the file, line and column of every value, dotted overrides
 * from the command line, and a reader with which each module reads its own section.
 *
 * Messages about a recipe have the form `file:line:column: what is wrong; what is allowed (did you
 * mean 'nearest'?)`. An override has the position `command line:1:column` and the assignment is
 * quoted.
 *
 * A reader records the keys it was asked for, so that cfg_end() can reject every other key and
 * suggest the nearest valid one. */
#ifndef GEPOLAB_CORE_CONFIG_CONFIG_H
#define GEPOLAB_CORE_CONFIG_CONFIG_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cfg_doc cfg_doc;   /* owns a tree */
typedef struct cfg_node cfg_node; /* a node of a tree, owned by its doc */

typedef enum cfg_kind { CFG_SCALAR, CFG_LIST, CFG_MAP } cfg_kind;

/* Limits: files up to 8 MiB, depth 64, keys of 128 bytes, 1,000,000 nodes after alias expansion.
 * Beyond them, and for cyclic aliases, duplicate keys, several documents and invalid YAML, the
 * error is GL_EINPUT. Merge keys (<<: *name, <<: [*one, *other]) follow YAML 1.1: a map's own keys
 * override merged ones, and earlier maps in a list override later ones. Every entry keeps its
 * source position. */
gl_status cfg_load_file(cfg_doc **out, const char *path, gl_error *err);
gl_status cfg_load_text(cfg_doc **out, const char *text, size_t size, const char *name,
                        gl_error *err);
gl_status cfg_copy(cfg_doc **out, const cfg_doc *doc, gl_error *err);
void cfg_free(cfg_doc *doc);
const cfg_node *cfg_root(const cfg_doc *doc); /* a map */
/* Like cfg_load_text() for the content of the file at path (NULL: none): files that it names are
 * looked up beside that file. */
gl_status cfg_load_text_of(cfg_doc **out, const char *text, size_t size, const char *name,
                           const char *path, gl_error *err);

/* Loads a recipe with a single field: the value at the dotted path, written in `text` as in a
 * recipe. Messages give positions in this text: `name:line:column: ...`. Errors: GL_EINPUT for an
 * empty text and in all cases of cfg_load_text(). */
gl_status cfg_load_value(cfg_doc **out, const char *path, const char *text, size_t size,
                         const char *name, gl_error *err);

/* Recipes built into the program, which an include may name. */
typedef struct cfg_library {
  /* Returns 1 with the text of the recipe of that name and its name for messages; 0 if there is
   * none. */
  int (*find)(void *self, const char *name, const char **text, size_t *size, const char **shown);
  void *self;
} cfg_library;

/* Replaces the top-level key `include` by the recipes it names: `include: base.yaml`, or a list.
 * Maps are merged key by key; the including recipe overrides the included ones, and later entries
 * of the list override earlier ones. An axis of a sweep, a distribution and a list each count as
 * one value. If one side has a section's short form (`algorithm: gepo`) and the other its fields,
 * both are combined.
 *
 * A word without '/' and '.' that the library (NULL: none) contains is one of its recipes; anything
 * else is a file, relative to the folder of the recipe that names it. A recipe that is not a file
 * can only include from the library. File names in an included recipe remain relative to its
 * folder. Limits: 8 levels, 64 recipes, 8 MiB in total. Errors: GL_EINPUT for cycles, non-regular
 * files and all errors of cfg_load_text(), with the positions of the includes. */
gl_status cfg_include(cfg_doc *doc, const cfg_library *library, gl_error *err);

/* Top-level maps `algorithms` and `presets` define algorithms and presets by name. (A map
 * `algorithms` with a key `base`, or a value that is no map, selects algorithms instead.)
 * cfg_include() moves the definitions of all files, merged, to a key that no file can have
 * (own_kind.aside in core/config/fields.h; core/config/user_defined.h replaces the names). */

/* Makes a recipe with one section, `name`: a copy of `section`, with `over` merged into the map at
 * the dotted path below it, as in cfg_include(). Source positions are preserved. The caller frees
 * *out. */
gl_status cfg_overlay(cfg_doc **out, const char *name, const cfg_node *section, const char *path,
                      const cfg_node *over, gl_error *err);

/* Replaces the names of existing files, as found by cfg_locate(), by absolute paths, so that a copy
 * of the recipe in another folder refers to the same files. Other names are unchanged. */
gl_status cfg_settle_files(cfg_doc *doc, gl_error *err);

/* Calls see for every file that the recipe was read from, includes among them, and for every file
 * that one of its fields names, as found by cfg_locate(). Returns the first status that is not
 * GL_OK; `see` sets *err then. */
gl_status cfg_files(const cfg_doc *doc,
                    gl_status (*see)(void *self, const char *path, gl_error *err), void *self,
                    gl_error *err);

/* Normalises notation, so that equal recipes have equal text:
 *
 *   numbers with a unit, 10m, 1.5GiB, 100Mbit/s (core/config/units.h), become numbers in the unit
 *     of the field: 600, 1610612736, 12500000
 *   ranges in a sweep's axes and in `tune`, {from: 1, to: 100, n: 3, scale: log}, become lists:
 *     [1, 10, 100]
 *
 * Must be called after includes and overrides. Errors: GL_EINPUT for a unit of another dimension,
 * an unknown unit, or an invalid range. */
gl_status cfg_resolve(cfg_doc *doc, gl_error *err);

/* Units for documents whose fields are not those of a recipe: the unit of a value, or of the values
 * of a list or distribution, at a dotted path. Items of a list have the path of the list. */
typedef struct cfg_quantity {
  const char *path, *unit; /* unit from core/config/units.h; both must live as long as the doc */
} cfg_quantity;

/* Converts numbers with a unit (10m, 1.5GiB) to the units in the table, as cfg_resolve() does for
 * recipes. Errors: GL_EINPUT for a unit of another dimension or an unknown unit. */
gl_status cfg_resolve_quantities(cfg_doc *doc, const cfg_quantity *table, size_t n, gl_error *err);

/* Applies an override `a.b.c=VALUE`, where VALUE is any YAML flow value. Missing maps are added.
 * Below `sweep` (and in any map that already has such a key) the rest of the path is one key:
 * sweep.cluster.max_delay=[0,60] sets the key "cluster.max_delay" of sweep. List elements are
 * addressed by number: a.0.b. A field below a section's short form, such as algorithm.clip below
 * `algorithm: gepo`, expands it to {base: gepo, clip: …}. */
gl_status cfg_override(cfg_doc *doc, const char *assignment, gl_error *err);
/* Sets the dotted path to a deep copy of value, which may belong to another doc. */
gl_status cfg_set(cfg_doc *doc, const char *path, const cfg_node *value, gl_error *err);
/* Replaces the text of a scalar of doc. The text is borrowed and must outlive doc. */
void cfg_respell(cfg_doc *doc, const cfg_node *scalar, const char *text);
/* Replaces a node of doc by a deep copy of value, which may belong to another doc. */
gl_status cfg_replace(cfg_doc *doc, const cfg_node *node, const cfg_node *value, gl_error *err);
/* Removes a top-level key if present. */
void cfg_remove(cfg_doc *doc, const char *key);

/* The tree as JSON with sorted keys and numbers in shortest round-trip form: equal recipes give
 * equal text whatever their layout. malloc'd, the caller frees; NULL if out of memory. */
char *cfg_canonical(const cfg_node *node);

/* The canonical text of a recipe with holes. */
typedef struct cfg_template cfg_template;
/* Makes a template of doc with a hole for the value at each of paths[n]. Free
 * with cfg_template_free(). Errors: GL_ENOMEM, GL_EINTERNAL if a path does not exist or is inside
 * another. */
gl_status cfg_template_new(cfg_template **out, const cfg_doc *doc, const char *const *paths,
                           size_t n, gl_error *err);
void cfg_template_free(cfg_template *t);
/* Length of the text with values[n] in the holes, without the final NUL. */
size_t cfg_template_size(const cfg_template *t, const char *const *values);
/* Writes that text with a final NUL; values[i] is the canonical text for paths[i]. */
void cfg_template_write(const cfg_template *t, const char *const *values, char *to);

/* --- access to a tree --- */

cfg_kind cfg_kind_of(const cfg_node *node);
size_t cfg_size(const cfg_node *node);                  /* number of entries of a list or map */
const cfg_node *cfg_at(const cfg_node *node, size_t i); /* i-th value */
const char *cfg_key_at(const cfg_node *map, size_t i);  /* i-th key */
const cfg_node *cfg_find(const cfg_node *node, const char *path); /* dotted; NULL if absent */
/* Whether a dotted path is the section's path or inside the section. */
int cfg_path_is_inside(const char *path, const char *section);
const char *cfg_text(const cfg_node *scalar); /* text as written; "" if not a scalar */
int cfg_is_null(const cfg_node *node);        /* plain null, ~ or empty */
/* The file of the node, as it was named; NULL for nodes from a text or an override. */
const char *cfg_source_path(const cfg_node *node);
/* The unit of the field that the node is a value of, as found by cfg_resolve(); "" if none. */
const char *cfg_unit(const cfg_node *node);
/* The first node at or below `node` that came from an override; NULL: none. */
const cfg_node *cfg_overridden(const cfg_node *node);
/* The value that a recipe with root `recipe` sets at path; a field_value for fields_default(). */
const char *cfg_stated(const void *recipe, const char *path, int *stated);
/* The path of a file named by the node: beside the node's own file if it exists there, otherwise
 * unchanged. malloc'd, the caller frees; NULL if out of memory. */
char *cfg_locate(const cfg_node *node, const char *path);
/* Parses a scalar as a number, including 1e-3, inf, 0x10, 1_000. Returns 1 if it is one. */
int cfg_number(const cfg_node *node, double *value);

/* Returns GL_EINPUT with the node's file:line:column before the message. */
gl_status cfg_fail(const cfg_node *node, gl_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The entry of names[n] nearest to word by edit distance, or NULL if none is near. */
const char *cfg_nearest(const char *word, const char *const *names, size_t n);
/* A suffix for messages about an invalid word: " (did you mean 'nearest'?)", or "" if none is near.
 * Returns text. */
enum { CFG_HINT_SIZE = 128 };
const char *cfg_hint(const char *word, const char *const *names, size_t n,
                     char text[CFG_HINT_SIZE]);
/* Whether the text looks like a range in another notation: 1..5, 1-5. */
bool cfg_is_like_range(const char *text);
/* The names for a message: "a, b, c", cut where text[size] ends. Returns text. */
const char *cfg_listed(const char *const *names, size_t n, char *text, size_t size);

/* --- lists of maps --- */
/* Makes a doc whose root is a list, to which maps are added one by one. Messages about its values
 * give the position of `at`. Free with cfg_free(). */
gl_status cfg_list_new(cfg_doc **out, const cfg_node *at, gl_error *err);
/* Adds an empty map at the end. */
gl_status cfg_list_add_map(cfg_doc *list, gl_error *err);
/* Adds to the last map a key with a copy of the value, or with a number that gets the position of
 * `at`. The last map must not have the key. */
gl_status cfg_list_put(cfg_doc *list, const char *key, const cfg_node *value, gl_error *err);
gl_status cfg_list_put_number(cfg_doc *list, const char *key, double value, const cfg_node *at,
                              gl_error *err);

/* --- reading a section --- */
/* Usage:
 *
 *   cfg_reader r;
 *   cfg_begin(&r, node, "cluster", err);                 // node may be NULL: all defaults
 *   spec.window = cfg_count(&r, "window", 32, 0, SIZE_MAX);
 *   spec.distribution    = cfg_choice(&r, "distribution", DIST_NONE, dist_names, n_dists);
 *   if (cfg_end(&r) != GL_OK) return err->status;        // first error; checks all keys
 *
 * After a failure every further call returns its default and does nothing. */
enum { CFG_READER_MAX_KEYS = 128 };
typedef struct cfg_reader {
  const cfg_node *map;
  const char *section; /* for messages: "cluster.delay" */
  const char *path;    /* path of the section in the tables of fields; "" for the top level */
  const char *kind_of, *kind; /* set by cfg_of() */
  const void *defaults;       /* set by cfg_defaults() */
  int origin;                 /* origin of the default being read, for cfg_record_end() */
  gl_error *err;
  gl_status status;
  const char *asked[CFG_READER_MAX_KEYS];
  size_t n_asked;
} cfg_reader;

void cfg_begin(cfg_reader *r, const cfg_node *map_or_null, const char *section, gl_error *err);
/* Like cfg_begin() for a section whose path in the tables of fields (core/config/fields.h) differs
 * from its name in messages. */
void cfg_begin_at(cfg_reader *r, const cfg_node *map_or_null, const char *path, const char *section,
                  gl_error *err);
/* Selects among table entries with the same path: from now on, entries apply whose condition on the
 * field at `path` has the value `kind`, as in cfg_of(&r, "world.kind", "llm"). */
void cfg_of(cfg_reader *r, const char *path, const char *kind);
/* Sets the preset from which fields with presets take their defaults. */
void cfg_defaults(cfg_reader *r, const void *set);
gl_status cfg_end(cfg_reader *r);

/* Each returns the key's value or the default; bounds are inclusive unless noted. */
double cfg_double(cfg_reader *r, const char *key, double fallback, double lo, double hi);
/* Like cfg_double() for a finite value above 0. */
double cfg_positive(cfg_reader *r, const char *key, double fallback);
int64_t cfg_int(cfg_reader *r, const char *key, int64_t fallback, int64_t lo, int64_t hi);
size_t cfg_count(cfg_reader *r, const char *key, size_t fallback, size_t lo, size_t hi);
int cfg_bool(cfg_reader *r, const char *key, int fallback);
/* Owned by the doc; fallback may be NULL. */
const char *cfg_string(cfg_reader *r, const char *key, const char *fallback);
/* Returns an index into names. */
int cfg_choice(cfg_reader *r, const char *key, int fallback, const char *const *names, int n);
/* A list of numbers (a single number is a list of one). Returns their number and the values in
 * *out, which the caller frees; NULL and 0 if the key is missing. */
size_t cfg_doubles(cfg_reader *r, const char *key, double **out, double lo, double hi);
/* The node itself, NULL if missing: for sub-sections and fields of several types. */
const cfg_node *cfg_child(cfg_reader *r, const char *key);
int cfg_has(const cfg_reader *r, const char *key);

/* --- recording --- */
/* Recording the value of every field in effect, and its origin. */

/* Starts recording every field that this thread reads; if a field is read twice the first value
 * counts. Items of lists are recorded with their list. */
void cfg_record_begin(void);
/* Ends the recording and returns it as malloc'd JSON: an object of paths and values for each
 * origin that occurs,
 *
 *   {"stated":{"train.groups":8},"null":{"optimizer.lr":0.05},"default":{…},"preset":{…},…}
 *
 * "null": the recipe has null, so the default applies; "preset": a default of the selected preset;
 * "computed": computed from other fields. NULL if out of memory. */
char *cfg_record_end(void);

#endif
