/* Modifies a tree: command-line overrides, settings of a sweep, removal, lists of maps. */
#include "core/base/utf8.h"
#include "core/config/fields.h"
#include "core/config/internal.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Traversal of a dotted path. Positions of segments are used in messages; without text (cfg_set)
 * the path has the position of the value. */
typedef struct walk {
  cfg_doc *doc;
  cfg_position at; /* position of the path's first character; the column advances along the path */
  int advancing;
  gl_error *err;
} walk;

static cfg_position segment_place(const walk *w, const char *path, const char *segment) {
  cfg_position at = w->at;
  if (w->advancing) at.column += (size_t)(segment - path);
  return at;
}

/* Finds the slot of list element `segment`; *slot is NULL, with an error, if there is none. */
static gl_status list_slot(const walk *w, cfg_node *list, const char *segment, size_t length,
                           const cfg_position *at, cfg_node ***slot) {
  size_t index = 0;
  int is_number = length > 0 && length <= 9;
  for (size_t i = 0; is_number && i < length; ++i) {
    is_number = segment[i] >= '0' && segment[i] <= '9';
    index = index * 10 + (size_t)(segment[i] - '0');
  }
  if (list->n == 0)
    return cfg_fail_at(at, w->err, "'%.*s' would be an element of an empty list", (int)length,
                       segment);
  if (!is_number || index >= list->n)
    return cfg_fail_at(at, w->err,
                       "'%.*s' is no element of a list of %zu; use a number from 0 to %zu",
                       (int)length, segment, list->n, list->n - 1);
  *slot = &list->entry[index].value;
  return GL_OK;
}

/* Finds the slot of a key in a map; a missing key is added with value null. */
static gl_status map_slot(const walk *w, cfg_node *map, const char *segment, size_t length,
                          const cfg_position *at, cfg_node ***slot) {
  if (length == 0) return cfg_fail_at(at, w->err, "a key is missing; write a.b.c=VALUE");
  if (length > CFG_MAX_KEY)
    return cfg_fail_at(at, w->err, "the key is longer than the %d bytes a key may have",
                       CFG_MAX_KEY);
  cfg_entry *entry = cfg_entry_of(map, segment, length);
  if (entry == NULL) {
    const char *key = cfg_strdup(w->doc, segment, length);
    if (key == NULL) return gl_fail_memory(w->err, "a recipe");
    cfg_node *value = cfg_node_new(w->doc, CFG_SCALAR, *at, w->err);
    if (value == NULL) return w->err->status;
    value->plain = 1;
    gl_status status = cfg_append(w->doc, map, key, *at, value, w->err);
    if (status != GL_OK) return status;
    entry = &map->entry[map->n - 1];
  }
  entry->key_at = *at;
  *slot = &entry->value;
  return GL_OK;
}

/* The part of a path after `key.`; NULL if the path does not begin with it. */
static const char *behind(const char *path, const char *key) {
  const size_t n = strlen(key);
  return strncmp(path, key, n) == 0 && path[n] == '.' ? path + n + 1 : NULL;
}

/* Whether the rest of a path is one key: an axis of a sweep, `sweep.cluster.max_delay`, or a field
 * of one of its designs, `sweep.random.fields.optimizer.lr`,
 * `sweep.factorial.factors.A.optimizer.lr` or `sweep.one_at_a_time.optimizer.lr`, or a tuned field,
 * `tune.fields.optimizer.lr`. */
static int is_one_key(const char *path, const char *segment) {
  static const char sweep[] = "sweep.", tuned[] = "tune.fields.";
  if (strncmp(path, tuned, sizeof tuned - 1) == 0) return segment == path + sizeof tuned - 1;
  if (strncmp(path, sweep, sizeof sweep - 1) != 0) return 0;
  const char *key = path + sizeof sweep - 1;
  const cfg_design *design = cfg_design_of(key, strcspn(key, "."));
  if (design == NULL) return segment == key;
  key = behind(key, design->key);
  if (key != NULL && design->within != NULL) key = behind(key, design->within);
  if (key != NULL && design->by_name) key = (key = strchr(key, '.')) != NULL ? key + 1 : NULL;
  return segment == key;
}

gl_status cfg_lengthen(cfg_doc *doc, const cfg_node *recipe, cfg_node **slot, const char *path,
                       gl_error *err) {
  cfg_node *word = *slot;
  if (word->kind != CFG_SCALAR || cfg_is_null(word)) return GL_OK;
  const field *f = fields_short_form(path, cfg_stated, recipe);
  if (f == NULL) return GL_OK;
  const char *dot = strrchr(f->path, '.');
  cfg_node *section = cfg_node_new(doc, CFG_MAP, word->at, err);
  if (section == NULL) return err->status;
  gl_status status = cfg_append(doc, section, dot != NULL ? dot + 1 : f->path, word->at, word, err);
  if (status == GL_OK) *slot = section;
  return status;
}

/* Calls cfg_lengthen() on the section named by the first `length` characters of path. */
static gl_status lengthen_prefix(const walk *w, cfg_node **slot, const char *path, size_t length) {
  char section[CFG_MAX_KEY + 1];
  if (length == 0 || length >= sizeof section) return GL_OK;
  memcpy(section, path, length);
  section[length] = '\0';
  return cfg_lengthen(w->doc, w->doc->root, slot, section, w->err);
}

/* Finds the slot at path below the root, adding missing maps. */
static gl_status find_slot(const walk *w, const char *path, cfg_node ***slot) {
  *slot = &w->doc->root;
  const char *segment = path;
  char whole[FIELD_HINT_SIZE];
  for (size_t depth = 1;; ++depth) {
    cfg_node *node = **slot;
    cfg_position at = segment_place(w, path, segment);
    if (depth >= CFG_MAX_DEPTH)
      return cfg_fail_at(&at, w->err, "the path is longer than the %d levels a recipe may have",
                         CFG_MAX_DEPTH);
    if (cfg_is_null(node)) { /* `cluster:` without content is an empty map */
      node = cfg_node_new(w->doc, CFG_MAP, at, w->err);
      if (node == NULL) return w->err->status;
      **slot = node;
    }
    if (node->kind == CFG_SCALAR && segment != path) {
      gl_status status = lengthen_prefix(w, *slot, path, (size_t)(segment - path) - 1);
      if (status != GL_OK) return status;
      node = **slot;
    }
    if (node->kind == CFG_SCALAR)
      return cfg_fail_at(
          &at, w->err, "'%.*s' is %s ('%.40s') and has nothing below it%s%s",
          segment == path ? 0 : (int)(segment - path - 1), path, cfg_describe(node), node->text,
          *fields_whole_section(path, whole) != '\0' ? "; the field is of another kind of section: "
                                                     : "",
          whole);
    size_t length = strcspn(segment, "."), rest = strlen(segment);
    int in_sweep = is_one_key(path, segment);
    if (node->kind == CFG_MAP && (in_sweep || cfg_entry_of(node, segment, rest) != NULL))
      length = rest;
    gl_status status = node->kind == CFG_LIST ? list_slot(w, node, segment, length, &at, slot)
                                              : map_slot(w, node, segment, length, &at, slot);
    if (status != GL_OK || segment[length] == '\0') return status;
    segment += length + 1;
  }
}

/* Sets the path below the root to the value, which belongs to the doc; adds missing maps. */
static gl_status put_at(const walk *w, const char *path, cfg_node *value) {
  cfg_node **slot;
  gl_status status = find_slot(w, path, &slot);
  if (status == GL_OK) *slot = value;
  return status;
}

static gl_status override(cfg_doc *doc, const char *assignment, gl_error *err) {
  const cfg_source *source = cfg_source_new(doc, "command line", assignment, NULL);
  if (source == NULL) return gl_fail_memory(err, "an override");
  cfg_position start = {source, 1, 1};
  const char *equals = strchr(assignment, '=');
  if (equals == NULL) return cfg_fail_at(&start, err, "no '='; write an override as a.b.c=VALUE");
  size_t length = (size_t)(equals - assignment);
  if (utf8_valid_prefix(assignment, length) < length)
    return cfg_fail_at(&start, err, "the path is not UTF-8; write an override as a.b.c=VALUE");
  const char *path = cfg_strdup(doc, assignment, length);
  if (path == NULL) return gl_fail_memory(err, "an override");
  if (equals[1] == '\0') {
    char own[FIELD_HINT_SIZE];
    const bool is_axis = cfg_path_is_inside(path, "sweep") && strcmp(path, "sweep") != 0;
    return cfg_fail_at(&start, err,
                       is_axis ? "no value; write sweep.%s=[VALUE, ...]"
                               : "no value; write %s=VALUE (null: the default)",
                       fields_suggested(path + (is_axis ? strlen("sweep.") : 0), own));
  }
  cfg_node *value;
  const cfg_input after = {equals + 1, strlen(equals + 1), CFG_ASSIGNED, length + 1};
  gl_status status = cfg_parse(doc, source, &after, &value, err);
  if (status != GL_OK) return status;
  return put_at(&(walk){doc, start, 1, err}, path, value);
}

gl_status cfg_override(cfg_doc *doc, const char *assignment, gl_error *err) {
  gl_error local = {0};
  if (override(doc, assignment, &local) == GL_OK) return GL_OK;
  return gl_fail(err, local.status, "%s", local.text);
}

gl_status cfg_set(cfg_doc *doc, const char *path, const cfg_node *value, gl_error *err) {
  gl_error local = {0};
  cfg_node *copy = cfg_node_copy(doc, value, &local);
  if (copy != NULL && put_at(&(walk){doc, copy->at, 0, &local}, path, copy) == GL_OK) return GL_OK;
  return gl_fail(err, local.status, "%s", local.text);
}

gl_status cfg_load_value(cfg_doc **out, const char *path, const char *text, size_t size,
                         const char *name, gl_error *err) {
  cfg_doc *doc = NULL;
  cfg_node *value = NULL;
  *out = NULL;
  gl_status status = cfg_load_text(&doc, "{}", 2, name, err);
  if (status == GL_OK)
    status = cfg_parse_named(doc, &(cfg_input){text, size, CFG_VALUE, 0}, name, NULL, &value, err);
  if (status == GL_OK) status = cfg_set(doc, path, value, err);
  if (status == GL_OK)
    *out = doc;
  else
    cfg_free(doc);
  return status;
}

void cfg_respell(cfg_doc *doc, const cfg_node *scalar, const char *text) {
  (void)doc; /* owns the node, so that it may be changed */
  ((cfg_node *)(uintptr_t)scalar)->text = text;
}

gl_status cfg_replace(cfg_doc *doc, const cfg_node *node, const cfg_node *value, gl_error *err) {
  gl_error local = {0};
  const cfg_node *copy = cfg_node_copy(doc, value, &local);
  if (copy == NULL) return gl_fail(err, local.status, "%s", local.text);
  *(cfg_node *)(uintptr_t)node = *copy; /* doc owns the node, so that it may be changed */
  return GL_OK;
}

void cfg_remove(cfg_doc *doc, const char *key) {
  cfg_node *root = doc->root;
  cfg_entry *entry = cfg_entry_of(root, key, strlen(key));
  if (entry == NULL) return;
  size_t i = (size_t)(entry - root->entry);
  memmove(entry, entry + 1, (root->n - i - 1) * sizeof *entry);
  --root->n;
}

/* --- lists of maps --- */

gl_status cfg_list_new(cfg_doc **out, const cfg_node *at, gl_error *err) {
  gl_error why = {0};
  *out = NULL;
  cfg_doc *doc = cfg_doc_new();
  if (doc == NULL) return gl_fail_memory(err, "a list of values");
  cfg_node *like =
      cfg_node_copy(doc, at, &why); /* copied because the position must outlive at's doc */
  if (like != NULL) doc->root = cfg_node_new(doc, CFG_LIST, like->at, &why);
  if (doc->root == NULL) {
    cfg_free(doc);
    return gl_fail(err, why.status, "%s", why.text);
  }
  *out = doc;
  return GL_OK;
}

gl_status cfg_list_add_map(cfg_doc *list, gl_error *err) {
  cfg_node *map = cfg_node_new(list, CFG_MAP, list->root->at, err);
  if (map == NULL) return GL_EINPUT;
  return cfg_append(list, list->root, NULL, (cfg_position){0}, map, err);
}

/* Adds the value, which belongs to the list's doc, to the last map. */
static gl_status put_in_last_map(cfg_doc *list, const char *key, cfg_node *value, gl_error *err) {
  assert(list->root->kind == CFG_LIST && list->root->n > 0);
  cfg_node *map = list->root->entry[list->root->n - 1].value;
  assert(cfg_entry_of(map, key, strlen(key)) == NULL);
  const char *own = cfg_strdup(list, key, strlen(key));
  if (own == NULL) return gl_fail_memory(err, "a list of values");
  return cfg_append(list, map, own, value->at, value, err);
}

gl_status cfg_list_put(cfg_doc *list, const char *key, const cfg_node *value, gl_error *err) {
  cfg_node *copy = cfg_node_copy(list, value, err);
  return copy != NULL ? put_in_last_map(list, key, copy, err) : GL_EINPUT;
}

gl_status cfg_list_put_number(cfg_doc *list, const char *key, double value, const cfg_node *at,
                              gl_error *err) {
  const cfg_source *own = list->root->at.source, *source = at->at.source;
  const int same = own != NULL && source != NULL && strcmp(own->name, source->name) == 0;
  cfg_position place = same ? at->at : list->root->at;
  place.source = own; /* the source of `at` may be freed before the list */
  cfg_node *number = cfg_number_node(list, place, value, err);
  if (number == NULL) return GL_EINPUT;
  number->unit = at->unit;
  return put_in_last_map(list, key, number, err);
}
