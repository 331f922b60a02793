/* Algorithms that a user defines: reading their file, and replacing their names in recipes. */
#include "core/policy/own.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct own_entry {
  const char *name;     /* owned by its doc */
  const cfg_node *node; /* {base: PUBLISHED, FIELD: value, ...}; owned by its doc */
  policy_algorithm algorithm;
} own_entry;

struct policy_own {
  cfg_doc *doc;
  own_entry *entry;
  size_t n;
};

/* --- definitions --- */

static gl_status own_check_name(const char *name, const cfg_node *node, gl_error *err) {
  enum { LONGEST = 48 };
  int is_word = isalpha((unsigned char)name[0]) && strlen(name) <= LONGEST;
  for (const char *c = name; *c != '\0'; ++c)
    is_word = is_word && (isalnum((unsigned char)*c) || *c == '_' || *c == '-');
  if (!is_word)
    return cfg_fail(node, err,
                    "'%.60s' cannot be the name of an algorithm; a name is a letter and then up to "
                    "%d letters, digits, '_' or '-'",
                    name, LONGEST - 1);
  const policy_algorithm *published = policy_algorithms_find(name);
  if (published != NULL)
    return cfg_fail(node, err,
                    "'%s' is a published algorithm, which a file cannot define again; choose "
                    "another name",
                    published->name);
  static const char *const words[] = {"all", "none", "null", "true", "false", "yes", "no", "inf"};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
    if (strcmp(words[i], name) == 0)
      return cfg_fail(node, err, "'%s' means something else in recipes; choose another name", name);
  return GL_OK;
}

/* Parses a definition; its name is its key. */
static gl_status own_read_entry(own_entry *e, const char *name, const cfg_node *node,
                                gl_error *err) {
  *e = (own_entry){.name = name, .node = node};
  gl_status status = own_check_name(name, node, err);
  if (status != GL_OK) return status;
  if (cfg_kind_of(node) != CFG_MAP)
    return cfg_fail(node, err, "'%s' must be a map of fields, as in %s: {base: grpo, clip: none}",
                    name, name);
  if (cfg_find(node, "name") != NULL)
    return cfg_fail(cfg_find(node, "name"), err,
                    "the name of an algorithm of your own is its key, '%s'; leave `name` out",
                    name);
  status = policy_algorithm_parse_alone(&e->algorithm, node, err);
  if (status != GL_OK) return status;
  snprintf(e->algorithm.name, sizeof e->algorithm.name, "%s", name);
  e->algorithm.has_own_name = 1;
  return GL_OK;
}

/* Reads all definitions of a map into own; map NULL: none. */
static gl_status own_read_all(policy_own *own, const cfg_node *map, gl_error *err) {
  const size_t n = map != NULL ? cfg_size(map) : 0;
  own->entry = calloc(n + 1, sizeof *own->entry);
  if (own->entry == NULL) return gl_fail_memory(err, "your own algorithms");
  gl_status status = GL_OK;
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    status = own_read_entry(&own->entry[i], cfg_key_at(map, i), cfg_at(map, i), err);
    own->n = i + 1;
  }
  return status;
}

static gl_status own_read_file(policy_own *own, const char *path, gl_error *err) {
  gl_status status = cfg_load_file(&own->doc, path, err);
  if (status == GL_OK) status = cfg_include(own->doc, NULL, err);
  if (status != GL_OK) return status;
  const cfg_node *root = cfg_root(own->doc), *map = cfg_find(root, CFG_DEFINITIONS);
  for (size_t i = 0; i < cfg_size(root); ++i)
    if (strcmp(cfg_key_at(root, i), CFG_DEFINITIONS) != 0)
      return cfg_fail(cfg_at(root, i), err,
                      "a file of algorithms has the keys `algorithms` and `include`, and "
                      "'%.60s' is neither; a recipe can `include` this file instead",
                      cfg_key_at(root, i));
  if (map == NULL || cfg_size(map) == 0)
    return gl_fail(err, GL_EINPUT,
                   "%s:1:1: defines no algorithm; write algorithms: {my_grpo: {base: grpo, clip: "
                   "none}}",
                   path);
  return own_read_all(own, map, err);
}

gl_status policy_own_read(policy_own **out, const char *path, gl_error *err) {
  policy_own *own = *out = calloc(1, sizeof *own);
  if (own == NULL) return gl_fail_memory(err, "your own algorithms");
  const gl_status status = path != NULL ? own_read_file(own, path, err) : GL_OK;
  if (status == GL_OK) return GL_OK;
  policy_own_free(own);
  *out = NULL;
  return status;
}

void policy_own_free(policy_own *own) {
  if (own == NULL) return;
  free(own->entry);
  cfg_free(own->doc);
  free(own);
}

size_t policy_own_count(const policy_own *own) {
  return own->n;
}

const policy_algorithm *policy_own_at(const policy_own *own, size_t i) {
  return &own->entry[i].algorithm;
}

static const own_entry *own_entry_of(const policy_own *own, const char *name) {
  for (size_t i = 0; i < own->n; ++i)
    if (strcmp(own->entry[i].name, name) == 0) return &own->entry[i];
  return NULL;
}

const policy_algorithm *policy_own_find(const policy_own *own, const char *name) {
  const own_entry *e = own_entry_of(own, name);
  return e != NULL ? &e->algorithm : NULL;
}

/* --- replacing names in a recipe --- */

typedef struct own_names {
  const policy_own *file, *recipe;
  cfg_doc *doc;
  gl_error *err;
} own_names;

static const own_entry *own_named(const own_names *n, const cfg_node *scalar) {
  if (cfg_kind_of(scalar) != CFG_SCALAR) return NULL;
  const own_entry *e = own_entry_of(n->recipe, cfg_text(scalar));
  return e != NULL ? e : own_entry_of(n->file, cfg_text(scalar));
}

/* Replaces a name, or a map with a base and fields. */
static gl_status own_put(const own_names *n, const cfg_node *node, const own_entry *e) {
  const int changes = cfg_kind_of(node) == CFG_MAP && cfg_size(node) > 1;
  cfg_doc *made = NULL;
  gl_status status;
  if (changes) {
    status = cfg_overlay(&made, "algorithm", e->node, "", node, n->err);
  } else {
    status = cfg_load_text(&made, "{}", 2, "algorithms", n->err);
    if (status == GL_OK) status = cfg_set(made, "algorithm", e->node, n->err);
    if (status == GL_OK) {
      const cfg_node *name = cfg_kind_of(node) == CFG_MAP ? cfg_find(node, "base") : node;
      status = cfg_set(made, "algorithm.name", name, n->err);
    }
  }
  if (status == GL_OK) status = cfg_set(made, "algorithm.base", cfg_find(e->node, "base"), n->err);
  if (status == GL_OK)
    status = cfg_replace(n->doc, node, cfg_find(cfg_root(made), "algorithm"), n->err);
  cfg_free(made);
  return status;
}

/* Replaces the names in a value of the field `algorithm`, or in a list of such values. */
static gl_status own_replace(const own_names *n, const cfg_node *node) {
  gl_status status = GL_OK;
  const own_entry *e = NULL;
  if (node == NULL) return GL_OK;
  switch (cfg_kind_of(node)) {
  case CFG_LIST:
    for (size_t i = 0; i < cfg_size(node) && status == GL_OK; ++i)
      status = own_replace(n, cfg_at(node, i));
    return status;
  case CFG_MAP:
    e = cfg_find(node, "base") != NULL ? own_named(n, cfg_find(node, "base")) : NULL;
    return e != NULL ? own_put(n, node, e) : GL_OK;
  case CFG_SCALAR:
    e = own_named(n, node);
    return e != NULL ? own_put(n, node, e) : GL_OK;
  }
  return GL_OK;
}

/* An axis of bases changes the fields that the recipe states, which an own name cannot. */
static gl_status own_refuse_bases(const own_names *n, const cfg_node *node) {
  const own_entry *e = cfg_kind_of(node) == CFG_SCALAR ? own_named(n, node) : NULL;
  if (e != NULL)
    return cfg_fail(node, n->err,
                    "'%s' is an algorithm of your own and no base for an axis; write "
                    "sweep.algorithm: [%s, ...]",
                    e->name, e->name);
  gl_status status = GL_OK;
  for (size_t i = 0; cfg_kind_of(node) != CFG_SCALAR && i < cfg_size(node) && status == GL_OK; ++i)
    status = own_refuse_bases(n, cfg_at(node, i));
  return status;
}

/* Looks for algorithms in a sweep, whose axes and designs have paths of fields as keys. */
static gl_status own_replace_axes(const own_names *n, const cfg_node *node) {
  gl_status status = GL_OK;
  if (cfg_kind_of(node) == CFG_SCALAR) return GL_OK;
  for (size_t i = 0; i < cfg_size(node) && status == GL_OK; ++i) {
    const char *key = cfg_kind_of(node) == CFG_MAP ? cfg_key_at(node, i) : "";
    if (strcmp(key, "algorithm") == 0)
      status = own_replace(n, cfg_at(node, i));
    else if (strcmp(key, "algorithm.base") == 0)
      status = own_refuse_bases(n, cfg_at(node, i));
    else
      status = own_replace_axes(n, cfg_at(node, i));
  }
  return status;
}

/* One name has one meaning. */
static gl_status own_compare(const own_names *n) {
  for (size_t i = 0; i < n->recipe->n; ++i) {
    const own_entry *mine = &n->recipe->entry[i], *other = own_entry_of(n->file, mine->name);
    if (other == NULL) continue;
    char *a = cfg_canonical(mine->node), *b = cfg_canonical(other->node);
    const int known = a != NULL && b != NULL, equal = known && strcmp(a, b) == 0;
    free(a);
    free(b);
    if (!known) return gl_fail_memory(n->err, "your own algorithms");
    if (!equal)
      return cfg_fail(mine->node, n->err,
                      "'%s' is defined here and, differently, in the file of your own algorithms; "
                      "choose another name in one of them",
                      mine->name);
  }
  return GL_OK;
}

static gl_status own_expand(const own_names *n) {
  const cfg_node *root = cfg_root(n->doc), *sweep = cfg_find(root, "sweep");
  gl_status status = own_compare(n);
  if (status == GL_OK) status = own_replace(n, cfg_find(root, "algorithm"));
  if (status == GL_OK) status = own_replace(n, cfg_find(root, "algorithms"));
  if (status == GL_OK && sweep != NULL) status = own_replace_axes(n, sweep);
  return status;
}

gl_status policy_own_expand(const policy_own *own, cfg_doc *doc, gl_error *err) {
  policy_own recipe = {0};
  gl_error why = {0}; /* messages quote positions of the recipe, which is changed */
  const own_names names = {.file = own, .recipe = &recipe, .doc = doc, .err = &why};
  gl_status status = own_read_all(&recipe, cfg_find(cfg_root(doc), CFG_DEFINITIONS), &why);
  if (status == GL_OK && own->n + recipe.n > 0) status = own_expand(&names);
  free(recipe.entry);
  cfg_remove(doc, CFG_DEFINITIONS);
  return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
}
