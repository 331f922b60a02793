/* Ranges in the place of lists: {from: 0.001, to: 0.1, n: 3, scale: log} for [0.001, 0.01, 0.1]. */
#include "core/config/designs.h"
#include "core/config/internal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum range_scale { SCALE_LINEAR, SCALE_LOG } range_scale;

typedef struct range {
  double from, to;
  size_t n;
  range_scale scale;
  int integer;
} range;

enum { MOST_VALUES = 1000000, DIGITS = 12 };

/* Seeds are counted: {from: 1, to: 12} are twelve of them. */
static int is_seeds(const char *path) {
  const char *word = strrchr(path, '.');
  word = word != NULL ? word + 1 : path;
  return strcmp(word, "seed") == 0 || strcmp(word, "seeds") == 0;
}

/* How many whole numbers there are; 0 where the ends are not whole, or they are too many. */
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

/* x with its digits up to DIGITS places below the first one of `size`: what is left of 0.3 once it
 * is computed as 0.30000000000000004. */
static double rounded(double x, double size) {
  char text[64];
  if (x == 0) return 0;
  const int digits = DIGITS + (int)floor(log10(fabs(x))) - (int)floor(log10(size));
  if (digits < 1) return 0;
  snprintf(text, sizeof text, "%.*e", digits > 17 ? 16 : digits - 1, x);
  return strtod(text, NULL);
}

/* The i-th of the range's values; the first and the last are its ends. */
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

/* Puts the list in the place of the map that *slot is. */
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
    status = cfg_append(doc, list, NULL, (cfg_place){0}, value, err);
  }
  *slot = list;
  return status;
}

/* The sections whose values may be ranges: of a sweep its axes, since its designs have parts of
 * their own; of tune what it tries, since its other keys are told wrong by who reads them. */
static const struct {
  const char *path;
  const char *only[2]; /* keys; NULL: all but designs */
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

gl_status cfg_expand_ranges(cfg_doc *doc, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t s = 0; s < RANGED && status == GL_OK; ++s) {
    /* Only lists take the places of ranges; the maps on the way to a section stay where they are.
     */
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
