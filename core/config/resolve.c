/* From what people write to what the program reads: which field every value belongs to, and its
 * units and ranges. */
#include "core/config/units.h"

#include "core/config/internal.h"

#include <stdio.h>
#include <string.h>

/* --- the field of a value ------------------------------------------------------------------------
 */

enum { PATH_SIZE = 1024 };

static int is_one_of(const char *word, const char *const *words, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (strcmp(word, words[i]) == 0) return 1;
  return 0;
}

/* Items of these lists have fields of their own and those of the section around: a group of
 * samplers those of the cluster, an evaluation set those of the evaluation and of the world. */
static const field *field_named(const char *path) {
  static const struct {
    const char *item, *section;
  } lists[] = {{"cluster.samplers.", "cluster."},
               {"world.evaluation.sets.world.", "world."},
               {"world.evaluation.sets.", "world.evaluation."},
               {"world.evaluation.sets.", "world."}};
  const field *f = fields_named(path);
  for (size_t i = 0; i < sizeof lists / sizeof *lists && f == NULL; ++i) {
    const size_t n = strlen(lists[i].item);
    char whole[PATH_SIZE];
    if (strncmp(path, lists[i].item, n) != 0) continue;
    snprintf(whole, sizeof whole, "%s%s", lists[i].section, path + n);
    f = fields_named(whole);
  }
  return f;
}

/* The field at path, or the one whose value it is a part of: of cluster.delay.mean, cluster.delay.
 * *part: the last word of the path in the second case, else NULL. */
static const field *field_around(const char *path, const char **part) {
  char shorter[PATH_SIZE];
  const char *dot = strrchr(path, '.');
  *part = NULL;
  const field *f = field_named(path);
  if (f != NULL) return f;
  *part = dot != NULL ? dot + 1 : path;
  snprintf(shorter, sizeof shorter, "%s", path);
  for (char *end = strrchr(shorter, '.'); end != NULL; end = strrchr(shorter, '.')) {
    *end = '\0';
    f = field_named(shorter);
    if (f != NULL) return f->kind == VALUE_SECTION ? NULL : f;
  }
  return NULL;
}

int cfg_part_has_unit(const char *part, const cfg_node *around) {
  static const char *const parts[] = {"value", "min",  "max",      "mean",   "sd",
                                      "shift", "good", "bad",      "offset", "clamp",
                                      "from",  "to",   "interval", "choice"};
  if (strcmp(part, "scale") != 0) return is_one_of(part, parts, sizeof parts / sizeof *parts);
  const cfg_entry *law = cfg_entry_of(around, "law", 3); /* that of an empirical law is a factor */
  return law != NULL && strcmp(cfg_text(law->value), "empirical") != 0;
}

/* --- visiting ------------------------------------------------------------------------------------
 */

typedef struct visit {
  gl_status (*see)(void *self, cfg_node *, const cfg_visited *);
  void *self;
  gl_error *err;
  char path[PATH_SIZE];
} visit;

static gl_status visit_node(visit *v, cfg_node *node, const cfg_node *around);

/* The value of one key of a map, whose path is v->path[length] and the key. */
static gl_status visit_entry(visit *v, cfg_node *map, const cfg_entry *e, size_t length) {
  const int n =
      snprintf(v->path + length, PATH_SIZE - length, "%s%s", length > 0 ? "." : "", e->key);
  if (n < 0 || (size_t)n >= PATH_SIZE - length)
    return cfg_fail_at(&e->key_at, v->err, "the path to this key is longer than %d bytes",
                       PATH_SIZE - 1);
  gl_status status = visit_node(v, e->value, map);
  v->path[length] = '\0';
  return status;
}

static gl_status visit_axes(visit *v, cfg_node *map, int in_search);

/* The section of a map with that key whose keys are paths; NULL: there is none. */
static cfg_node *section_of(const cfg_node *map, const char *key) {
  if (map->kind != CFG_MAP) return NULL;
  const cfg_entry *e = cfg_entry_of(map, key, strlen(key));
  return e != NULL && e->value->kind == CFG_MAP ? e->value : NULL;
}

/* Of a factorial design each factor is a map of paths. */
static gl_status visit_factors(visit *v, const cfg_node *design) {
  const cfg_node *factors = section_of(design, "factors");
  gl_status status = GL_OK;
  for (size_t i = 0; factors != NULL && i < factors->n && status == GL_OK; ++i)
    if (factors->entry[i].value->kind == CFG_MAP)
      status = visit_axes(v, factors->entry[i].value, 1);
  return status;
}

/* Keys that are paths of fields themselves. */
static gl_status visit_axes(visit *v, cfg_node *map, int in_search) {
  char before[PATH_SIZE];
  snprintf(before, sizeof before, "%s", v->path);
  gl_status status = GL_OK;
  for (size_t i = 0; i < map->n && status == GL_OK; ++i) {
    const cfg_entry *e = &map->entry[i];
    const int is_search = !in_search && strcmp(e->key, "random") == 0;
    const int is_design = !in_search && strcmp(e->key, "factorial") == 0;
    const int is_list = !in_search && strcmp(e->key, "one_at_a_time") == 0;
    v->path[0] = '\0';
    if (is_design) {
      status = visit_factors(v, e->value);
    } else if (is_search) {
      cfg_node *fields = section_of(e->value, "fields");
      if (fields != NULL) status = visit_axes(v, fields, 1);
    } else if (is_list && e->value->kind == CFG_MAP) {
      status = visit_axes(v, e->value, 1);
    } else {
      status = visit_entry(v, map, e, 0);
    }
  }
  snprintf(v->path, sizeof v->path, "%s", before);
  return status;
}

static gl_status visit_node(visit *v, cfg_node *node, const cfg_node *around) {
  const char *part;
  cfg_visited at = {.path = v->path, .field = field_around(v->path, &part), .unit = ""};
  if (at.field != NULL && (part == NULL || cfg_part_has_unit(part, around)))
    at.unit = at.field->unit;
  if (at.field != NULL)
    at.is_file =
        part == NULL ? at.field->is_file : at.field->kind == VALUE_LAW && strcmp(part, "file") == 0;
  gl_status status = v->see(v->self, node, &at);
  if (status == GL_OK && strcmp(v->path, "sweep") == 0 && node->kind == CFG_MAP)
    return visit_axes(v, node, 0);
  if (status == GL_OK && strcmp(v->path, "tune.fields") == 0 && node->kind == CFG_MAP)
    return visit_axes(v, node, 1);
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

/* --- units ---------------------------------------------------------------------------------------
 */

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
