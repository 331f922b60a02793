/* From what people write to what the program reads: which field every value belongs to, and its
 * units and ranges. */
#include "core/config/units.h"

#include "core/config/designs.h"
#include "core/config/internal.h"

#include <stdio.h>
#include <string.h>

/* --- the field of a value --- */

static int is_one_of(const char *word, const char *const *words, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (strcmp(word, words[i]) == 0) return 1;
  return 0;
}

/* The field at path, or the one whose value it is a part of: of cluster.delay.mean, cluster.delay.
 * *part: the last word of the path in the second case, else NULL. */
static const field *field_around(const char *path, const char **part) {
  char shorter[FIELD_PATH_SIZE];
  const char *dot = strrchr(path, '.');
  *part = NULL;
  const field *f = fields_of_item(path);
  if (f != NULL) return f;
  *part = dot != NULL ? dot + 1 : path;
  snprintf(shorter, sizeof shorter, "%s", path);
  for (char *end = strrchr(shorter, '.'); end != NULL; end = strrchr(shorter, '.')) {
    *end = '\0';
    f = fields_of_item(shorter);
    if (f != NULL) return f->kind == VALUE_SECTION ? NULL : f;
  }
  return NULL;
}

int cfg_part_has_unit(const char *part, const cfg_node *around) {
  static const char *const parts[] = {"value", "min",  "max",      "mean",   "sd",
                                      "shift", "good", "bad",      "offset", "clamp",
                                      "from",  "to",   "interval", "choice"};
  if (strcmp(part, "scale") != 0) return is_one_of(part, parts, sizeof parts / sizeof *parts);
  const cfg_entry *dist =
      cfg_entry_of(around, "law", 3); /* that of an empirical distribution is a factor */
  return dist != NULL && strcmp(cfg_text(dist->value), "empirical") != 0;
}

/* --- visiting --- */

typedef struct visit {
  gl_status (*see)(void *self, cfg_node *, const cfg_visited *);
  void *self;
  gl_error *err;
  char path[FIELD_PATH_SIZE];
} visit;

static gl_status visit_node(visit *v, cfg_node *node, const cfg_node *around);

/* The value of one key of a map, whose path is v->path[length] and the key. */
static gl_status visit_entry(visit *v, cfg_node *map, const cfg_entry *e, size_t length) {
  const int n =
      snprintf(v->path + length, FIELD_PATH_SIZE - length, "%s%s", length > 0 ? "." : "", e->key);
  if (n < 0 || (size_t)n >= FIELD_PATH_SIZE - length)
    return cfg_fail_at(&e->key_at, v->err, "the path to this key is longer than %d bytes",
                       FIELD_PATH_SIZE - 1);
  gl_status status = visit_node(v, e->value, map);
  v->path[length] = '\0';
  return status;
}

/* Keys that are paths of fields themselves. */
static gl_status visit_paths(visit *v, cfg_node *map) {
  gl_status status = GL_OK;
  if (map->kind != CFG_MAP) return GL_OK;
  for (size_t i = 0; i < map->n && status == GL_OK; ++i)
    status = visit_entry(v, map, &map->entry[i], 0);
  return status;
}

static gl_status visit_design(visit *v, const cfg_design *design, cfg_node *value) {
  gl_status status = GL_OK;
  if (design->within != NULL) {
    const size_t n = strlen(design->within);
    const cfg_entry *e = value->kind == CFG_MAP ? cfg_entry_of(value, design->within, n) : NULL;
    if (e == NULL) return GL_OK;
    value = e->value;
  }
  if (!design->by_name) return visit_paths(v, value);
  for (size_t i = 0; value->kind == CFG_MAP && i < value->n && status == GL_OK; ++i)
    status = visit_paths(v, value->entry[i].value);
  return status;
}

/* The keys of `sweep`: axes, which are paths, and designs. */
static gl_status visit_sweep(visit *v, cfg_node *sweep) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < sweep->n && status == GL_OK; ++i) {
    const cfg_entry *e = &sweep->entry[i];
    const cfg_design *design = cfg_design_named(e->key);
    status = design != NULL ? visit_design(v, design, e->value) : visit_entry(v, sweep, e, 0);
  }
  return status;
}

/* What is below a map whose keys begin paths anew; the map's own path is there again afterwards. */
static gl_status visit_apart(visit *v, cfg_node *map, gl_status (*below)(visit *, cfg_node *)) {
  char before[FIELD_PATH_SIZE];
  snprintf(before, sizeof before, "%s", v->path);
  const gl_status status = below(v, map);
  snprintf(v->path, sizeof v->path, "%s", before);
  return status;
}

static gl_status visit_node(visit *v, cfg_node *node, const cfg_node *around) {
  const char *part;
  cfg_visited at = {.path = v->path, .field = field_around(v->path, &part), .unit = ""};
  if (at.field != NULL && (part == NULL || cfg_part_has_unit(part, around)))
    at.unit = at.field->unit;
  if (at.field != NULL)
    at.is_file = part == NULL ? at.field->is_file
                              : at.field->kind == VALUE_DIST && strcmp(part, "file") == 0;
  gl_status status = v->see(v->self, node, &at);
  if (status == GL_OK && node->kind == CFG_MAP) {
    if (strcmp(v->path, "sweep") == 0) return visit_apart(v, node, visit_sweep);
    if (strcmp(v->path, "tune.fields") == 0) return visit_apart(v, node, visit_paths);
  }
  const size_t length = strlen(v->path);
  for (size_t i = 0; i < node->n && status == GL_OK; ++i)
    status = node->kind == CFG_LIST ? visit_node(v, node->entry[i].value, around)
                                    : visit_entry(v, node, &node->entry[i], length);
  return status;
}

gl_status cfg_visit(cfg_node *root, gl_status (*see)(void *self, cfg_node *, const cfg_visited *),
                    void *self, gl_error *err) {
  visit v = {.see = see, .self = self, .err = err};
  gl_status status = GL_OK;
  for (size_t i = 0; i < root->n && status == GL_OK; ++i)
    status = visit_entry(&v, root, &root->entry[i], 0);
  return status;
}

/* --- units --- */

typedef struct resolution {
  cfg_doc *doc;
  gl_error *err;
} resolution;

static gl_status resolve_units(void *self, cfg_node *node, const cfg_visited *at) {
  const resolution *r = self;
  if (at->unit[0] == '\0') return GL_OK;
  node->unit = at->unit;
  if (node->kind != CFG_SCALAR) return GL_OK;
  return cfg_convert(r->doc, node, at->unit, at->path, r->err);
}

gl_status cfg_resolve(cfg_doc *doc, gl_error *err) {
  gl_error why = {0};
  resolution r = {doc, &why};
  gl_status status = cfg_visit(doc->root, resolve_units, &r, &why);
  if (status == GL_OK) status = cfg_expand_ranges(doc, &why);
  return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
}
