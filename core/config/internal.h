/* Private interfaces between the files of core/config: the tree, its memory, and source positions.
 */
#ifndef GEPOLAB_CORE_CONFIG_INTERNAL_H
#define GEPOLAB_CORE_CONFIG_INTERNAL_H

#include "core/base/arena.h"
#include "core/config/config.h"
#include "core/config/fields.h"

enum {
  CFG_MAX_BYTES = 8 << 20,
  CFG_MAX_DEPTH = 64,
  CFG_MAX_NODES = 1000000,
  CFG_MAX_ANCHORS = 256,
  CFG_MAX_INCLUDE_DEPTH = 8,
  CFG_MAX_INCLUDES = 64,  /* includes per recipe, counting repeated ones */
  FIELD_PATH_SIZE = 1024, /* maximum size of a dotted path */
  CFG_MAX_KEY = 128 /* libyaml limits keys to 1024 characters, which may each be escaped to six */
};

typedef struct cfg_source {
  const char *name;              /* file name as the user gave it, or "command line" */
  const char *quote;             /* text of an override; NULL for a file */
  const char *path;              /* path of its file; NULL: none */
  const struct cfg_source *next; /* the doc's next source; NULL: none */
} cfg_source;

typedef struct cfg_position {
  const cfg_source *source;
  size_t line, column; /* from 1; columns count characters */
} cfg_position;

typedef struct cfg_entry {
  const char *key; /* NULL in lists */
  cfg_position key_at;
  cfg_node *value;
} cfg_entry;

struct cfg_node {
  cfg_kind kind;
  int plain; /* a scalar without quotes, which may be a number, a boolean or null */
  cfg_position at;
  const char *text; /* scalars */
  const char *unit; /* unit of its field, set by cfg_resolve(); static; NULL: unknown */
  cfg_entry *entry; /* [n] of lists and maps */
  size_t n, capacity;
};

/* All memory of a tree belongs to its doc and is freed with it. */
struct cfg_doc {
  arena memory;
  cfg_node *root;
  const cfg_source *sources; /* all that were made; newest first */
  size_t n_nodes;            /* number ever allocated, limited by CFG_MAX_NODES */
};

cfg_doc *cfg_doc_new(void);
void *cfg_alloc(cfg_doc *doc, size_t size); /* zeroed; NULL if out of memory */
const char *cfg_strdup(cfg_doc *doc, const char *text, size_t length);
const cfg_source *cfg_source_new(cfg_doc *doc, const char *name, const char *quote,
                                 const char *path);

/* Allocates a node, counted against the limit; NULL, with *err set, if the limit or memory is
 * exhausted. */
cfg_node *cfg_node_new(cfg_doc *doc, cfg_kind kind, cfg_position at, gl_error *err);
/* Appends to a list (key NULL) or a map; the key is not copied. */
gl_status cfg_append(cfg_doc *doc, cfg_node *to, const char *key, cfg_position key_at,
                     cfg_node *value, gl_error *err);
/* Deep copy into doc of a node of any doc, including positions. NULL, with *err set, on failure. */
cfg_node *cfg_node_copy(cfg_doc *doc, const cfg_node *node, gl_error *err);
cfg_entry *cfg_entry_of(const cfg_node *map, const char *key, size_t length);

/* The kind of text to parse. */
typedef enum cfg_form {
  CFG_RECIPE,   /* a whole recipe */
  CFG_ASSIGNED, /* after the '=' of an override: no block lists and maps; an empty text is null */
  CFG_VALUE     /* one value in any style */
} cfg_form;

/* A text to parse. */
typedef struct cfg_input {
  const char *text;
  size_t size;
  cfg_form form;
  size_t first_column; /* columns before the text on its first line */
} cfg_input;

/* Parses one YAML value of any kind. */
gl_status cfg_parse(cfg_doc *doc, const cfg_source *source, const cfg_input *in, cfg_node **out,
                    gl_error *err);

/* The same, after checking the size of the text; name and path are those of its source. */
gl_status cfg_parse_named(cfg_doc *doc, const cfg_input *in, const char *name, const char *path,
                          cfg_node **out, gl_error *err);

/* Like cfg_load_text_of() into an existing doc: *root is a map of doc. */
gl_status cfg_load_into(cfg_doc *doc, const char *text, size_t size, const char *name,
                        const char *path, cfg_node **root, gl_error *err);

/* If *slot, the value at path, is the short form of a section (`algorithm: gepo`), replaces it by
 * the section, {base: gepo}. recipe: the values used in conditions of fields. */
gl_status cfg_lengthen(cfg_doc *doc, const cfg_node *recipe, cfg_node **slot, const char *path,
                       gl_error *err);

/* A node of a recipe, and the field to whose value it belongs. */
typedef struct cfg_visited {
  const char
      *path; /* path from the root of a recipe; for an axis of a sweep the path of the field */
  const field
      *field; /* the first entry of the path, whatever its conditions; NULL: not in the tables */
  const char *unit; /* unit of the value; "" if none */
  int is_file;      /* a text that names a file */
} cfg_visited;
/* Calls `see` for every node below root with its field, in the order of the recipe. Returns the
 * first status that is not GL_OK; `see` sets *err then. */
gl_status cfg_visit(cfg_node *root, gl_status (*see)(void *self, cfg_node *, const cfg_visited *),
                    void *self, gl_error *err);

/* Converts a plain scalar with a unit, such as 10m, to a number in the field's unit, 600. Text that
 * does not begin with a number is unchanged. path is used in messages. Errors: GL_EINPUT for an
 * unknown unit, a unit of another dimension, or a number beyond a double. */
gl_status cfg_convert(cfg_doc *doc, cfg_node *scalar, const char *unit, const char *path,
                      gl_error *err);
/* Returns 1 if the text is a number followed by any letters. */
int cfg_is_quantity(const char *text);
/* Like fields_of_item(); among several entries the first without a condition on the field kind_of,
 * or with the condition `kind`. kind_of NULL: the first. */
const field *fields_of_kind(const char *path, const char *kind_of, const char *kind);
/* Makes a node for a number, owned by doc; NULL if out of memory. */
cfg_node *cfg_number_node(cfg_doc *doc, cfg_position at, double value, gl_error *err);

/* Returns GL_EINPUT with `file:line:column: ` before the message. */
gl_status cfg_fail_at(const cfg_position *at, gl_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A plain scalar as a number. CFG_NOT_NUMBER for other text, CFG_TOO_LARGE beyond a double. An
 * integer that fits 64 bits plus a sign is exact in `magnitude`. */
typedef enum cfg_number_kind {
  CFG_NOT_NUMBER,
  CFG_TOO_LARGE,
  CFG_REAL,
  CFG_INTEGER
} cfg_number_kind;
typedef struct cfg_value {
  cfg_number_kind kind;
  double real; /* CFG_REAL and CFG_INTEGER */
  int negative;
  uint64_t magnitude; /* CFG_INTEGER */
} cfg_value;
cfg_value cfg_value_of(const cfg_node *scalar);
/* 1 true, 0 false, -1 neither. */
int cfg_boolean_of(const cfg_node *scalar);
/* "a list", "text", "a number" ... for messages. */
const char *cfg_describe(const cfg_node *node);

/* The nearest of names[n] at most `most` edits away, or NULL. A name that begins with the word, or
 * the word with it, counts as one edit away. */
const char *cfg_nearest_within(size_t most, const char *word, const char *const *names, size_t n);

#endif
