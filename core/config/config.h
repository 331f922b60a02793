/* Recipes: YAML read into a tree that remembers where everything stood, dotted overrides from the
 * command line, and a reader through which each room takes its own section.
 *
 * A message about a recipe always has the form `file:line:column: what is wrong; what is allowed
 * (did you mean 'nearest'?)`. An override's place is `command line:1:column` with the assignment
 * quoted.
 *
 * A reader remembers the keys it was asked for, so cfg_end() can reject a key nobody asked for and
 * name the nearest one that exists: the code that reads a section is its schema.
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
/* As cfg_load_text, of a text that stands for the file at path (NULL: for none): files that it
 * names are looked for beside that one. */
gl_status cfg_load_text_of(cfg_doc **out, const char *text, size_t size, const char *name,
                           const char *path, gl_error *err);

/* A recipe of one field: the value at the dotted path, which is written in text as in any recipe.
 * Messages name it and count its lines and columns: `name:line:column: ...`. GL_EINPUT for an empty
 * text and for all that cfg_load_text() refuses. */
gl_status cfg_load_value(cfg_doc **out, const char *path, const char *text, size_t size,
                         const char *name, gl_error *err);

/* What an include may name that is no file: the recipes inside the program. */
typedef struct cfg_library {
  /* 1 and the text of the recipe of that name, with what messages call it; 0 if there is none. */
  int (*find)(void *self, const char *name, const char **text, size_t *size, const char **shown);
  void *self;
} cfg_library;

/* Replaces the top-level key `include` by what it names: `include: base.yaml`, or a list of such.
 * Maps are merged key by key; the including recipe wins over what it includes, and a later entry of
 * the list over an earlier one. An axis of a sweep, a distribution and a list are each one value.
 * Where one side is a section's short form (`algorithm: gepo`) and the other its fields, they are
 * joined.
 *
 * A word without '/' and '.' that the library (NULL: none) knows is one of its recipes; everything
 * else is a file, from the folder of the recipe that names it. What is no file includes from the
 * library only. Files that an included recipe names beside itself stay those files. Limits: 8
 * levels, 64 recipes, 8 MiB of them together; cycles, what is no regular file, and all that
 * cfg_load_text() refuses are GL_EINPUT with the places of the includes that led there. */
gl_status cfg_include(cfg_doc *doc, const cfg_library *library, gl_error *err);

/* Makes what is written for people what the program reads, so that equal recipes become equal text:
 *
 *   numbers with a unit, 10m, 1.5GiB, 100Mbit/s (core/config/units.h), become numbers of the unit
 *   that the field has in the table of fields: 600, 1610612736, 12500000
 *   ranges of a sweep's axis and of `tune`, {from: 1, to: 100, n: 3, scale: log}, become lists:
 *   [1, 10, 100]
 *
 * Comes behind include and overrides. GL_EINPUT for a unit of another dimension, an unknown one,
 * and a range that is none. */
gl_status cfg_resolve(cfg_doc *doc, gl_error *err);

/* `a.b.c=VALUE`, VALUE any YAML flow value. Missing maps are made on the way. Below `sweep` (and
 * in any map that already has it) the rest of the path is one key: sweep.cluster.max_delay=[0,60]
 * sets the key "cluster.max_delay" of sweep. List elements are reached by number: a.0.b. A field
 * below a section's short form, as algorithm.clip below `algorithm: gepo`, makes it {base: gepo,
 * clip: …}. */
gl_status cfg_override(cfg_doc *doc, const char *assignment, gl_error *err);
/* Sets the dotted path to a deep copy of value, which may belong to another doc. */
gl_status cfg_set(cfg_doc *doc, const char *path, const cfg_node *value, gl_error *err);
/* Removes a top-level key if present. */
void cfg_remove(cfg_doc *doc, const char *key);

/* The tree as JSON with sorted keys and numbers in shortest round-trip form: equal recipes give
 * equal text whatever their layout. malloc'd, the caller frees; NULL if memory is short. */
char *cfg_canonical(const cfg_node *node);

cfg_kind cfg_kind_of(const cfg_node *node);
size_t cfg_size(const cfg_node *node);                            /* list or map */
const cfg_node *cfg_at(const cfg_node *node, size_t i);           /* i-th value */
const char *cfg_key_at(const cfg_node *map, size_t i);            /* i-th key */
const cfg_node *cfg_find(const cfg_node *node, const char *path); /* dotted; NULL if absent */
/* Whether a dotted path is that of the section or of something in it. */
int cfg_path_is_inside(const char *path, const char *section);
const char *cfg_text(const cfg_node *scalar); /* text as written; "" otherwise */
int cfg_is_null(const cfg_node *node);        /* plain null, ~ or empty */
/* The file the node was read from or stands for, as it was named; NULL where it came from a text or
 * an override. */
const char *cfg_source_path(const cfg_node *node);
/* The unit of the field that node is a value of, as cfg_resolve() found it; "" for none. */
const char *cfg_unit(const cfg_node *node);
/* The first value of node, itself or below it, that an override gave; NULL: none. */
const cfg_node *cfg_overridden(const cfg_node *node);
/* Tells what the recipe whose root `recipe` is states at path, for fields_find(). */
const char *cfg_stated(const void *recipe, const char *path, int *stated);
/* Where a file that node names is: beside the node's own file if it is there, else path as it is.
 * malloc'd, the caller frees; NULL if memory is short. */
char *cfg_locate(const cfg_node *node, const char *path);
/* Scalar as a number: accepts 1e-3, inf, 0x10, 1_000 ; 1 if it is one. */
int cfg_number(const cfg_node *node, double *value);

/* GL_EINPUT with the node's file:line:column in front. */
gl_status cfg_fail(const cfg_node *node, gl_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The entry of names[n] nearest to word by edit distance, or NULL if none is near. */
const char *cfg_nearest(const char *word, const char *const *names, size_t n);
/* The end of a complaint about word: " (did you mean 'nearest'?)", or "" where none is near.
 * Returns text. */
enum { CFG_HINT_SIZE = 128 };
const char *cfg_hint(const char *word, const char *const *names, size_t n,
                     char text[CFG_HINT_SIZE]);

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
/* As cfg_begin(), of a section whose path in the tables of fields (core/config/fields.h) is not
 * what messages call it. */
void cfg_begin_at(cfg_reader *r, const cfg_node *map_or_null, const char *path, const char *section,
                  gl_error *err);
/* Of entries of one path in the tables of fields, those hold from here on whose condition about the
 * field at `path` is this kind: cfg_of(&r, "world.kind", "llm"). */
void cfg_of(cfg_reader *r, const char *path, const char *kind);
/* Fields whose default is one of a set of presets have that of this set. */
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

#endif
