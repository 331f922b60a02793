/* Users' definitions of presets and algorithms: reads their files, and replaces their names in
 * recipes by their fields. */
#include "core/config/user_defined.h"

#include "core/base/array.h"
#include "core/config/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct own_entry {
  const own_kind *kind;
  const char *name;    /* owned by a doc of the set, as is the section */
  const cfg_node *map; /* the section: {base: PUBLISHED, FIELD: value, ...} */
} own_entry;

struct cfg_own {
  const cfg_own *outer; /* searched after this one; NULL: none */
  cfg_doc **docs;       /* [n_docs] */
  own_entry *entry;     /* [n] */
  size_t n_docs, n;
};

gl_status cfg_own_new(cfg_own **out, gl_error *err) {
  *out = calloc(1, sizeof **out);
  return *out != NULL ? GL_OK : gl_fail_memory(err, "your own definitions");
}

static void own_fini(cfg_own *own) {
  for (size_t i = 0; i < own->n_docs; ++i) cfg_free(own->docs[i]);
  free(own->docs);
  free(own->entry);
}

void cfg_own_free(cfg_own *own) {
  if (own == NULL) return;
  own_fini(own);
  free(own);
}

/* Passes ownership of doc to own, also if it fails. Does nothing if doc is NULL. */
static gl_status own_keep(cfg_own *own, cfg_doc *doc, gl_error *err) {
  if (doc == NULL) return GL_OK;
  cfg_doc **slot = ARRAY_ADD(own->docs, own->n_docs);
  if (slot != NULL)
    *slot = doc;
  else
    cfg_free(doc);
  return slot != NULL ? GL_OK : gl_fail_memory(err, "your own definitions");
}

static const own_entry *own_entry_of(const cfg_own *own, const own_kind *kind, const char *name) {
  for (; own != NULL; own = own->outer)
    for (size_t i = 0; i < own->n; ++i)
      if (own->entry[i].kind == kind && strcmp(own->entry[i].name, name) == 0)
        return &own->entry[i];
  return NULL;
}

static bool own_is_key(const own_entry *e, const char *key) {
  return strcmp(e->kind->key, key) == 0;
}

size_t cfg_own_count(const cfg_own *own, const char *key) {
  size_t n = 0;
  for (size_t i = 0; i < own->n; ++i) n += own_is_key(&own->entry[i], key);
  return n;
}

const cfg_node *cfg_own_at(const cfg_own *own, const char *key, size_t i, const char **name) {
  for (const own_entry *e = own->entry; e < own->entry + own->n; ++e) {
    if (!own_is_key(e, key) || i-- > 0) continue;
    *name = e->name;
    return e->map;
  }
  return NULL;
}

/* --- definitions --- */

static const char *const words[] = {"all", "none", "null", "true", "false", "yes", "no", "inf"};

/* Whether the name means something else in recipes. */
static bool is_other_word(const char *name) {
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
    if (strcmp(words[i], name) == 0) return true;
  return false;
}

static gl_status own_check_name(const own_kind *kind, const char *name, const cfg_node *node,
                                gl_error *err) {
  enum { LONGEST = 48 };
  int is_word = isalpha((unsigned char)name[0]) && strlen(name) <= LONGEST;
  for (const char *c = name; *c != '\0'; ++c)
    is_word = is_word && (isalnum((unsigned char)*c) || *c == '_' || *c == '-');
  if (!is_word)
    return cfg_fail(node, err,
                    "'%.60s' cannot be the name of your own %s; a name is a letter and then up to "
                    "%d letters, digits, '_' or '-'",
                    name, kind->noun, LONGEST - 1);
  const char *published = kind->published(name);
  if (published != NULL)
    return cfg_fail(node, err,
                    "'%s' is a published %s, which a file cannot define again; choose another name",
                    published, kind->noun);
  if (is_other_word(name))
    return cfg_fail(node, err, "'%s' means something else in recipes; choose another name", name);
  return GL_OK;
}

/* Checks the i-th definition in `all` except its fields: its name, and that it has one valid base.
 */
static gl_status own_check_form(const cfg_own *own, const own_kind *kind, const cfg_node *all,
                                size_t i, gl_error *err) {
  const char *name = cfg_key_at(all, i);
  const cfg_node *node = cfg_at(all, i);
  gl_status status = own_check_name(kind, name, node, err);
  if (status != GL_OK) return status;
  if (cfg_kind_of(node) != CFG_MAP)
    return cfg_fail(node, err, "'%s' must be a map of fields, as in %s", name, kind->example);
  if (kind->is_word && cfg_find(node, "name") != NULL)
    return cfg_fail(cfg_find(node, "name"), err,
                    "the name of your own %s is its key, '%s'; leave `name` out", kind->noun, name);
  const cfg_node *base = cfg_find(node, "base"), *other = cfg_find(node, kind->base);
  if (base == NULL || cfg_kind_of(base) != CFG_SCALAR)
    return cfg_fail(node, err, "'%s' has no 'base', the %s whose fields it changes; write %s", name,
                    kind->noun, kind->example);
  if (other != NULL && other != base)
    return cfg_fail(other, err, "in the definition of '%s' the %s is called `base`; leave `%s` out",
                    name, kind->noun, kind->base);
  for (size_t k = i; k < cfg_size(all) && own_entry_of(own, kind, cfg_text(base)) == NULL; ++k)
    if (strcmp(cfg_key_at(all, k), cfg_text(base)) == 0)
      return cfg_fail(base, err,
                      "the base of '%s' is '%s', which is not defined before it; a base is a "
                      "published %s, or one that stands above",
                      name, cfg_text(base), kind->noun);
  return GL_OK;
}

static void own_remove_base(cfg_node *map) {
  cfg_entry *e = cfg_entry_of(map, "base", 4);
  if (e == NULL) return;
  memmove(e, e + 1, (size_t)(map->entry + map->n - e - 1) * sizeof *e);
  --map->n;
}

/* Sets section.key of made. */
static gl_status own_set(cfg_doc *made, const own_kind *kind, const char *key,
                         const cfg_node *value, gl_error *err) {
  char path[2 * CFG_MAX_KEY];
  snprintf(path, sizeof path, "%s.%s", kind->section, key);
  return cfg_set(made, path, value, err);
}

/* Makes {SECTION: {base: PUBLISHED, ...}} of the parent's fields (NULL: none) and those of node. */
static gl_status own_make(cfg_doc **made, const own_kind *kind, const own_entry *parent,
                          const cfg_node *node, gl_error *err) {
  const cfg_node *base =
      parent != NULL ? cfg_find(parent->map, kind->base) : cfg_find(node, "base");
  gl_status status;
  if (parent != NULL) {
    status = cfg_overlay(made, kind->section, parent->map, "", node, err);
  } else {
    status = cfg_load_text(made, "{}", 2, kind->key, err);
    if (status == GL_OK) status = cfg_set(*made, kind->section, node, err);
  }
  if (status != GL_OK) return status;
  own_remove_base(cfg_entry_of((*made)->root, kind->section, strlen(kind->section))->value);
  return own_set(*made, kind, kind->base, base, err);
}

/* Refuses a second definition of a name, unless both are equal. */
static gl_status own_compare(const own_entry *a, const own_entry *b, gl_error *err) {
  char *one = cfg_canonical(a->map), *other = cfg_canonical(b->map);
  const int known = one != NULL && other != NULL, equal = known && strcmp(one, other) == 0;
  const char *file = cfg_source_path(b->map);
  free(one);
  free(other);
  if (!known) return gl_fail_memory(err, "your own definitions");
  if (equal) return GL_OK;
  return cfg_fail(a->map, err,
                  "'%s' is defined here and, differently, in %.400s; choose another name in one of "
                  "them",
                  a->name, file != NULL ? file : "another file of yours");
}

/* Adds the i-th definition of a map. */
static gl_status own_define(cfg_own *own, const own_kind *kind, const cfg_node *all, size_t i,
                            gl_error *err) {
  own_entry made = {.kind = kind, .name = cfg_key_at(all, i)};
  const cfg_node *node = cfg_at(all, i);
  cfg_doc *doc = NULL;
  gl_status status = own_check_form(own, kind, all, i, err);
  if (status != GL_OK) return status;
  const own_entry *parent = own_entry_of(own, kind, cfg_text(cfg_find(node, "base")));
  status = own_make(&doc, kind, parent, node, err);
  if (status == GL_OK)
    status = own_keep(own, doc, err);
  else
    cfg_free(doc);
  if (status != GL_OK) return status;
  made.map = cfg_find(cfg_root(doc), kind->section);
  status = kind->check(made.map, err);
  if (status != GL_OK) return status;
  const own_entry *same = own_entry_of(own, kind, made.name);
  if (same != NULL) return own_compare(&made, same, err);
  own_entry *added = ARRAY_ADD(own->entry, own->n);
  if (added == NULL) return gl_fail_memory(err, "your own definitions");
  *added = made;
  return GL_OK;
}

/* Adds the definitions that cfg_include() has set aside at root. */
static gl_status own_define_all(cfg_own *own, const cfg_node *root, gl_error *err) {
  const own_kind *kind;
  gl_status status = GL_OK;
  for (size_t k = 0; (kind = fields_own_at(k)) != NULL; ++k) {
    const cfg_entry *all = cfg_entry_of(root, kind->aside, strlen(kind->aside));
    for (size_t i = 0; all != NULL && i < cfg_size(all->value) && status == GL_OK; ++i)
      status = own_define(own, kind, all->value, i, err);
  }
  return status;
}

/* A file of definitions has nothing else. */
static gl_status own_check_file(const cfg_node *root, const char *path, const char *key,
                                gl_error *err) {
  const own_kind *kind = NULL;
  for (size_t i = 0; i < cfg_size(root); ++i)
    if (fields_own_aside(cfg_key_at(root, i)) == NULL)
      return cfg_fail(cfg_at(root, i), err,
                      "a file of your own definitions has the keys `algorithms`, `presets` and "
                      "`include`, with a map of names below the first two, and '%.60s' is none of "
                      "them; a recipe can `include` this file instead",
                      cfg_key_at(root, i));
  for (size_t k = 0; (kind = fields_own_at(k)) != NULL && strcmp(kind->key, key) != 0; ++k)
    continue;
  if (kind == NULL) return gl_fail(err, GL_EINTERNAL, "nothing can be defined below '%s'", key);
  const cfg_entry *all = cfg_entry_of(root, kind->aside, strlen(kind->aside));
  if (all != NULL && cfg_size(all->value) > 0) return GL_OK;
  return gl_fail(err, GL_EINPUT, "%.400s:1:1: defines no %s; write %s: {%s}", path, kind->noun, key,
                 kind->example);
}

gl_status cfg_own_add_file(cfg_own *own, const char *path, const char *key, gl_error *err) {
  gl_error why = {0}; /* the caller's error may be set only once */
  cfg_doc *doc = NULL;
  gl_status status = cfg_load_file(&doc, path, &why);
  if (status == GL_OK) status = cfg_include(doc, NULL, &why);
  if (status == GL_OK) status = cfg_resolve(doc, &why);
  if (status == GL_OK) status = cfg_settle_files(doc, &why);
  if (status == GL_OK) status = own_check_file(cfg_root(doc), path, key, &why);
  if (status == GL_OK) status = own_define_all(own, cfg_root(doc), &why);
  if (status != GL_OK) {
    cfg_free(doc);
    return gl_fail(err, status, "%s", why.text);
  }
  return own_keep(own, doc, err);
}

/* --- replacing names in a recipe --- */

typedef struct own_names {
  const cfg_own *own;
  const own_kind *kind;
  cfg_doc *doc;
  gl_error *err;
} own_names;

static const own_entry *own_named(const own_names *n, const cfg_node *scalar) {
  if (scalar == NULL || cfg_kind_of(scalar) != CFG_SCALAR) return NULL;
  return own_entry_of(n->own, n->kind, cfg_text(scalar));
}

/* The own name nearest to a mistyped one; NULL if none is near. */
static const char *own_nearest(const own_names *n, const char *word) {
  for (size_t most = 1; most <= (strlen(word) + 2) / 3; ++most)
    for (const cfg_own *own = n->own; own != NULL; own = own->outer)
      for (size_t i = 0; i < own->n; ++i)
        if (own->entry[i].kind == n->kind &&
            cfg_nearest_within(most, word, &own->entry[i].name, 1) != NULL)
          return own->entry[i].name;
  return NULL;
}

/* Refuses a name that is neither published nor defined if it is near one that is defined. All
 * others are left to the reader of the section. */
static gl_status own_check_spelling(const own_names *n, const cfg_node *scalar) {
  if (scalar == NULL || cfg_kind_of(scalar) != CFG_SCALAR) return GL_OK;
  const char *word = cfg_text(scalar);
  if (is_other_word(word) || n->kind->published(word) != NULL) return GL_OK;
  const char *near = own_nearest(n, word);
  return near == NULL ? GL_OK
                      : cfg_fail(scalar, n->err,
                                 "'%.60s' is neither a published %s nor one of your own (did you "
                                 "mean '%s'?)",
                                 word, n->kind->noun, near);
}

/* Replaces a name, or a map with a name and fields, by the fields of definition e. */
static gl_status own_put(const own_names *n, const cfg_node *node, const own_entry *e) {
  const own_kind *kind = n->kind;
  const int is_map = cfg_kind_of(node) == CFG_MAP, changes = is_map && cfg_size(node) > 1;
  cfg_doc *made = NULL;
  gl_status status;
  if (changes) {
    status = cfg_overlay(&made, kind->section, e->map, "", node, n->err);
  } else {
    status = cfg_load_text(&made, "{}", 2, kind->key, n->err);
    if (status == GL_OK) status = cfg_set(made, kind->section, e->map, n->err);
    const cfg_node *name = is_map ? cfg_find(node, kind->base) : node;
    if (status == GL_OK && kind->is_word) status = own_set(made, kind, "name", name, n->err);
  }
  if (status == GL_OK)
    status = own_set(made, kind, kind->base, cfg_find(e->map, kind->base), n->err);
  if (status == GL_OK)
    status = cfg_replace(n->doc, node, cfg_find(cfg_root(made), kind->section), n->err);
  cfg_free(made);
  return status;
}

/* Replaces the names in a section, or in a list of such values. */
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
    e = own_named(n, cfg_find(node, n->kind->base));
    return e != NULL ? own_put(n, node, e) : own_check_spelling(n, cfg_find(node, n->kind->base));
  case CFG_SCALAR:
    if (!n->kind->is_word) return GL_OK;
    e = own_named(n, node);
    return e != NULL ? own_put(n, node, e) : own_check_spelling(n, node);
  }
  return GL_OK;
}

/* Refuses users' own names as values of an axis over `base`: such an axis changes a single field,
 * but an own name stands for several. */
static gl_status own_refuse_bases(const own_names *n, const cfg_node *node) {
  const own_entry *e = own_named(n, node);
  if (e != NULL)
    return cfg_fail(node, n->err,
                    "'%s' is your own %s and no base for an axis of `%s.%s`; write sweep.%s: [{%s: "
                    "%s}, ...]",
                    e->name, n->kind->noun, n->kind->section, n->kind->base, n->kind->section,
                    n->kind->base, e->name);
  gl_status status = GL_OK;
  for (size_t i = 0; cfg_kind_of(node) != CFG_SCALAR && i < cfg_size(node) && status == GL_OK; ++i)
    status = own_refuse_bases(n, cfg_at(node, i));
  return status;
}

/* Replaces users' own names in a sweep, where keys of axes and designs are paths of fields: names
 * below the key of the section itself are replaced, and names below its field `base` refused. */
static gl_status own_replace_axes(const own_names *n, const cfg_node *node) {
  gl_status status = GL_OK;
  char base[2 * CFG_MAX_KEY];
  snprintf(base, sizeof base, "%s.%s", n->kind->section, n->kind->base);
  if (cfg_kind_of(node) == CFG_SCALAR) return GL_OK;
  for (size_t i = 0; i < cfg_size(node) && status == GL_OK; ++i) {
    const char *key = cfg_kind_of(node) == CFG_MAP ? cfg_key_at(node, i) : "";
    if (strcmp(key, n->kind->section) == 0)
      status = own_replace(n, cfg_at(node, i));
    else if (strcmp(key, base) == 0)
      status = own_refuse_bases(n, cfg_at(node, i));
    else
      status = own_replace_axes(n, cfg_at(node, i));
  }
  return status;
}

static gl_status own_expand_kind(const own_names *n) {
  const cfg_node *root = cfg_root(n->doc), *sweep = cfg_find(root, "sweep");
  gl_status status = own_replace(n, cfg_find(root, n->kind->section));
  if (status == GL_OK && n->kind->is_word) status = own_replace(n, cfg_find(root, n->kind->key));
  if (status == GL_OK && sweep != NULL) status = own_replace_axes(n, sweep);
  return status;
}

gl_status cfg_own_expand(const cfg_own *own, cfg_doc *doc, gl_error *err) {
  cfg_own recipe = {.outer = own};
  gl_error why = {0}; /* messages quote positions of the recipe, which is changed */
  own_names n = {.own = &recipe, .doc = doc, .err = &why};
  gl_status status = own_define_all(&recipe, cfg_root(doc), &why);
  const bool any = own->n + recipe.n > 0;
  for (size_t k = 0; any && (n.kind = fields_own_at(k)) != NULL && status == GL_OK; ++k)
    status = own_expand_kind(&n);
  own_fini(&recipe);
  for (size_t k = 0; (n.kind = fields_own_at(k)) != NULL; ++k) cfg_remove(doc, n.kind->aside);
  return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
}
