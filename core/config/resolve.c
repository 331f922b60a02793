/* Finds the field of every value, converts numbers with units, and expands ranges. */
#include "core/config/internal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- fields of values --- */

static int is_part(const char *word, const char *const *words, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (strcmp(word, words[i]) == 0) return 1;
  return 0;
}

/* The field at path, or the one whose value contains it: cluster.delay for cluster.delay.mean.
 * *part: the last word of the path in the second case, otherwise NULL. */
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

/* Whether a part of a field's value, with that key in the map `around`, has the field's unit:
 * parameters of distributions, ends of ranges. */
static int part_has_unit(const char *part, const cfg_node *around) {
  static const char *const parts[] = {"value", "min",  "max",      "mean",   "sd",
                                      "shift", "good", "bad",      "offset", "clamp",
                                      "from",  "to",   "interval", "choice"};
  if (strcmp(part, "scale") != 0) return is_part(part, parts, sizeof parts / sizeof *parts);
  /* the scale of an empirical distribution is a factor without unit */
  const cfg_entry *dist = cfg_entry_of(around, "distribution", strlen("distribution"));
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

/* Visits the value of one key of a map, whose path is v->path[length] plus the key. */
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

/* Visits a map whose keys are paths of fields. */
static gl_status visit_paths(visit *v, cfg_node *map) {
  gl_status status = GL_OK;
  if (map->kind != CFG_MAP) return GL_OK;
  for (size_t i = 0; i < map->n && status == GL_OK; ++i)
    status = visit_entry(v, map, &map->entry[i], 0);
  return status;
}

/* Visits the fields that a design sets: its value is a map of their paths, or named maps of them
 * (by_name), possibly below the key `within`. */
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

/* Visits the keys of `sweep`: axes, which are paths, and designs. */
static gl_status visit_sweep(visit *v, cfg_node *sweep) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < sweep->n && status == GL_OK; ++i) {
    const cfg_entry *e = &sweep->entry[i];
    const cfg_design *design = cfg_design_named(e->key);
    status = design != NULL ? visit_design(v, design, e->value) : visit_entry(v, sweep, e, 0);
  }
  return status;
}

/* Visits a map whose keys are complete paths; restores v->path afterwards. */
static gl_status visit_apart(visit *v, cfg_node *map, gl_status (*below)(visit *, cfg_node *)) {
  char before[FIELD_PATH_SIZE];
  snprintf(before, sizeof before, "%s", v->path);
  const gl_status status = below(v, map);
  snprintf(v->path, sizeof v->path, "%s", before);
  return status;
}

/* Calls see() for a node with its field, then visits the nodes below it. around: the map that
 * contains the node. */
static gl_status visit_node(visit *v, cfg_node *node, const cfg_node *around) {
  const char *part;
  cfg_visited at = {.path = v->path, .field = field_around(v->path, &part), .unit = ""};
  if (at.field != NULL && (part == NULL || part_has_unit(part, around))) at.unit = at.field->unit;
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

/* Visits each definition as if it stood in the recipe's section of that kind. */
static gl_status visit_definitions(visit *v, cfg_node *all, const own_kind *kind) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < all->n && status == GL_OK; ++i) {
    snprintf(v->path, sizeof v->path, "%s", kind->section);
    status = visit_node(v, all->entry[i].value, all);
  }
  v->path[0] = '\0';
  return status;
}

gl_status cfg_visit(cfg_node *root, gl_status (*see)(void *self, cfg_node *, const cfg_visited *),
                    void *self, gl_error *err) {
  visit v = {.see = see, .self = self, .err = err};
  gl_status status = GL_OK;
  for (size_t i = 0; i < root->n && status == GL_OK; ++i) {
    const cfg_entry *e = &root->entry[i];
    const own_kind *own = fields_own_aside(e->key);
    status = own != NULL ? visit_definitions(&v, e->value, own) : visit_entry(&v, root, e, 0);
  }
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

/* --- ranges: {from: 0.001, to: 0.1, n: 3, scale: log} becomes [0.001, 0.01, 0.1] --- */

typedef enum range_scale { SCALE_LINEAR, SCALE_LOG } range_scale;

typedef struct range {
  double from, to;
  size_t n;
  range_scale scale;
  int integer;
} range;

enum { MOST_VALUES = 1000000, DIGITS = 12 };

/* Ranges of seeds are counted by whole numbers: {from: 1, to: 12} means twelve seeds. */
static int is_seeds(const char *path) {
  const char *word = strrchr(path, '.');
  word = word != NULL ? word + 1 : path;
  return strcmp(word, "seed") == 0 || strcmp(word, "seeds") == 0;
}

/* The number of whole numbers in the range; 0 if the ends are not whole or there are too many. */
static size_t whole_numbers(double from, double to) {
  if (floor(from) != from || floor(to) != to || !(to - from < MOST_VALUES)) return 0;
  return to < from ? 0 : (size_t)(to - from) + 1;
}

static gl_status read_range(range *out, const cfg_node *node, const char *path, gl_error *err) {
  static const char *const scales[] = {"linear", "log"};
  cfg_reader r;
  cfg_begin(&r, node, path, err);
  const cfg_node *from = cfg_child(&r, "from"), *to = cfg_child(&r, "to");
  out->from = cfg_double(&r, "from", NAN, -DBL_MAX, DBL_MAX);
  out->to = cfg_double(&r, "to", NAN, -DBL_MAX, DBL_MAX);
  const char *count = cfg_has(&r, "points") ? "points" : "n";
  out->n = cfg_count(&r, count, 0, 2, MOST_VALUES);
  out->scale = (range_scale)cfg_choice(&r, "scale", SCALE_LINEAR, scales, 2);
  out->integer = cfg_bool(&r, "integer", 0);
  if (cfg_end(&r) != GL_OK) return GL_EINPUT;
  if (out->n == 0 && out->scale == SCALE_LINEAR && is_seeds(path))
    out->n = whole_numbers(out->from, out->to);
  if (from == NULL || to == NULL || out->n == 0)
    return cfg_fail(
        node, err,
        "'%s' is a map without %s; a range is {from: 0.001, to: 0.1, n: 3, scale: log}, "
        "or give a list of values",
        path,
        from == NULL ? "from"
        : to == NULL ? "to"
                     : "n");
  if (!(out->from < out->to))
    return cfg_fail(to, err, "'%s' goes from %g to %g; 'to' must be above 'from'", path, out->from,
                    out->to);
  if (out->scale == SCALE_LOG && !(out->from > 0))
    return cfg_fail(from, err, "'%s' begins at %g; a range of scale log begins above 0", path,
                    out->from);
  if (out->integer && (floor(out->from) != out->from || floor(out->to) != out->to ||
                       fmax(fabs(out->from), fabs(out->to)) > 0x1p53))
    return cfg_fail(node, err,
                    "'%s' is a range of whole numbers, so from and to must be whole and at most "
                    "2^53",
                    path);
  if (!isfinite(out->to - out->from))
    return cfg_fail(node, err, "'%s' is wider than a double can hold", path);
  return GL_OK;
}

/* x rounded to DIGITS digits relative to the first digit of `size`: 0.3 for 0.30000000000000004. */
static double rounded(double x, double size) {
  char text[64];
  if (x == 0) return 0;
  const int digits = DIGITS + (int)floor(log10(fabs(x))) - (int)floor(log10(size));
  if (digits < 1) return 0;
  snprintf(text, sizeof text, "%.*e", digits > 17 ? 16 : digits - 1, x);
  return strtod(text, NULL);
}

/* The i-th value of the range; the first and the last are exactly its ends. */
static double range_value(const range *r, size_t i) {
  const double t = (double)i / (double)(r->n - 1);
  double x;
  if (i == 0) return r->from;
  if (i == r->n - 1) return r->to;
  if (r->scale == SCALE_LOG) {
    x = exp(log(r->from) + t * (log(r->to) - log(r->from)));
    x = rounded(x, x);
  } else {
    x = r->from + t * (r->to - r->from);
    x = rounded(x, fmax(fabs(r->from), fabs(r->to)));
  }
  return r->integer ? nearbyint(x) : fmin(fmax(x, r->from), r->to);
}

/* Replaces the map *slot by the list of the range's values. */
static gl_status expand_range(cfg_doc *doc, cfg_node **slot, const char *path, gl_error *err) {
  range r;
  const cfg_node *map = *slot, *from;
  gl_status status = read_range(&r, map, path, err);
  if (status != GL_OK) return status;
  from = cfg_find(map, "from");
  cfg_node *list = cfg_node_new(doc, CFG_LIST, map->at, err);
  if (list == NULL) return err->status;
  list->unit = from->unit;
  double before = NAN;
  for (size_t i = 0; i < r.n && status == GL_OK; ++i) {
    const double x = range_value(&r, i);
    if (x == before)
      return cfg_fail(map, err,
                      "'%s' has fewer than %zu different %s between %g and %g; take a smaller n",
                      path, r.n, r.integer ? "whole numbers" : "numbers", r.from, r.to);
    cfg_node *value = cfg_number_node(doc, map->at, before = x, err);
    if (value == NULL) return err->status;
    value->unit = from->unit;
    status = cfg_append(doc, list, NULL, (cfg_position){0}, value, err);
  }
  *slot = list;
  return status;
}

/* Sections whose values may be ranges: a sweep's axes, but not its designs; and the values that
 * tune tries, but not its other keys, whose readers check them. */
static const struct {
  const char *path;
  const char *only[2]; /* keys; NULL: all except designs */
} ranged[] = {
    {.path = "sweep"},
    {.path = "tune", .only = {"lr", "seeds"}},
    {.path = "tune.fields"},
};
enum { RANGED = sizeof ranged / sizeof *ranged };

static int may_be_range(size_t section, const char *key) {
  const char *const *only = ranged[section].only;
  if (only[0] == NULL) return cfg_design_named(key) == NULL;
  return strcmp(only[0], key) == 0 || strcmp(only[1], key) == 0;
}

/* Replaces the ranges in a recipe's sweep and tune by lists. */
static gl_status expand_ranges(cfg_doc *doc, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t s = 0; s < RANGED && status == GL_OK; ++s) {
    /* only ranges are replaced, by lists; maps on the way to a section stay valid */
    const cfg_node *section = cfg_find(doc->root, ranged[s].path);
    if (section == NULL || section->kind != CFG_MAP) continue;
    for (size_t i = 0; i < section->n && status == GL_OK; ++i) {
      cfg_entry *e = &section->entry[i];
      char path[CFG_MAX_KEY + 16];
      if (e->value->kind != CFG_MAP || !may_be_range(s, e->key)) continue;
      snprintf(path, sizeof path, "%s.%s", ranged[s].path, e->key);
      status = expand_range(doc, &e->value, path, err);
    }
  }
  return status;
}

gl_status cfg_resolve(cfg_doc *doc, gl_error *err) {
  gl_error why = {0};
  resolution r = {doc, &why};
  gl_status status = cfg_visit(doc->root, resolve_units, &r, &why);
  if (status == GL_OK) status = expand_ranges(doc, &why);
  return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
}

/* --- units of other documents --- */

enum { QUANTITY_PATH_SIZE = 256 };

typedef struct search {
  cfg_doc *doc;
  const cfg_quantity *table;
  size_t n;
  gl_error *err;
  char path[QUANTITY_PATH_SIZE];
} search;

static const char *unit_at(const search *s) {
  for (size_t i = 0; i < s->n; ++i)
    if (strcmp(s->table[i].path, s->path) == 0) return s->table[i].unit;
  return NULL;
}

/* Whether something at or below the path may have a unit. */
static int leads_on(const search *s) {
  for (size_t i = 0; i < s->n; ++i)
    if (cfg_path_is_inside(s->table[i].path, s->path)) return 1;
  return 0;
}

static gl_status resolve(search *s, cfg_node *node, const char *unit, const cfg_node *around);

/* Converts the values of an entry of a map. unit: of the quantity that the map describes, or NULL;
 * the parts that are quantities themselves (mean, scale) have it, too. */
static gl_status resolve_entry(search *s, cfg_node *map, const cfg_entry *e, const char *unit) {
  const size_t length = strlen(s->path);
  const char *inner = unit != NULL && part_has_unit(e->key, map) ? unit : NULL;
  const int n = snprintf(s->path + length, QUANTITY_PATH_SIZE - length, "%s%s",
                         length > 0 ? "." : "", e->key);
  gl_status status = GL_OK;
  /* a path that does not fit is longer than any in the table */
  if (n > 0 && (size_t)n < QUANTITY_PATH_SIZE - length && (inner != NULL || leads_on(s)))
    status = resolve(s, e->value, inner != NULL ? inner : unit_at(s), map);
  s->path[length] = '\0';
  return status;
}

/* unit: that of the node; NULL: none. around: the map that contains the node. */
static gl_status resolve(search *s, cfg_node *node, const char *unit, const cfg_node *around) {
  gl_status status = GL_OK;
  if (unit != NULL) node->unit = unit;
  if (node->kind == CFG_SCALAR)
    return unit != NULL ? cfg_convert(s->doc, node, unit, s->path, s->err) : GL_OK;
  for (size_t i = 0; i < node->n && status == GL_OK; ++i)
    status = node->kind == CFG_LIST ? resolve(s, node->entry[i].value, unit, around)
                                    : resolve_entry(s, node, &node->entry[i], unit);
  return status;
}

gl_status cfg_resolve_quantities(cfg_doc *doc, const cfg_quantity *table, size_t n, gl_error *err) {
  gl_error why = {0};
  search s = {.doc = doc, .table = table, .n = n, .err = &why};
  gl_status status = resolve(&s, doc->root, NULL, NULL);
  return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
}
