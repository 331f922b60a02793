/* Delay distributions from a recipe: the keys that all distributions share, and what the table of
 * distributions reads. */
#include "sim/delay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double longest = 1e15; /* seconds; a longer duration is a mistake */

static gl_status read_interval(cfg_reader *r, delay_dist *dist, delay_kind kind, double max_delay) {
  const cfg_node *node = cfg_child(r, "interval");
  double *ends = NULL, c = cfg_double(r, "confidence", 0.95, 0, 1);
  size_t n = cfg_doubles(r, "interval", &ends, 0, INFINITY);
  if (r->status == GL_OK && n != 2)
    r->status = cfg_fail(node, r->err, "interval needs two numbers, [lower, upper]");
  if (r->status == GL_OK) {
    double u = isnan(max_delay) ? ends[1] : max_delay;
    double least = fmin(u, ends[1]); /* what max_delay replaces must be right all the same */
    gl_error why = {0};
    if (!(least > ends[0]))
      r->status = cfg_fail(node, r->err,
                           "the interval's upper end (or max_delay) is %g; it must be greater than "
                           "the lower end %g, or max_delay 0 for no delay",
                           least, ends[0]);
    else if (delay_from_interval(dist, kind, ends[0], u, c, &why) != GL_OK)
      r->status = cfg_fail(node, r->err, "%s", why.text);
    dist->clamp_lo = ends[0]; /* kept only where clamp says true */
    dist->clamp_hi = u;
  }
  free(ends);
  return r->status;
}

/* clamp: false (default), true (to the interval) or [lower, upper]. */
static void read_clamp(cfg_reader *r, delay_dist *dist, int has_interval) {
  const cfg_node *node = cfg_child(r, "clamp");
  if (node != NULL && cfg_kind_of(node) == CFG_LIST) {
    double *ends = NULL;
    size_t n = cfg_doubles(r, "clamp", &ends, 0, INFINITY);
    if (r->status == GL_OK && (n != 2 || ends[1] < ends[0]))
      r->status = cfg_fail(node, r->err, "clamp needs true, false or [lower, upper]");
    if (r->status == GL_OK) dist->clamp_lo = ends[0], dist->clamp_hi = ends[1];
    free(ends);
    return;
  }
  int clamp = cfg_bool(r, "clamp", 0);
  if (clamp && !has_interval && r->status == GL_OK)
    r->status = cfg_fail(node, r->err, "clamp: true needs an interval; give [lower, upper]");
  if (!clamp) dist->clamp_lo = 0, dist->clamp_hi = INFINITY;
}

/* The distribution by its name; one that only has a value is constant. */
static delay_kind read_kind(cfg_reader *r) {
  const char *names[DELAY_KINDS];
  for (int k = 0; k < DELAY_KINDS; ++k) names[k] = delay_dist_about((delay_kind)k)->name;
  const int usual = cfg_has(r, "value") ? DELAY_CONSTANT : DELAY_LOGNORMAL;
  return (delay_kind)cfg_choice(r, "law", usual, names, DELAY_KINDS);
}

/* The distribution's own parameters; max_delay is a constant's value. */
static void read_own(cfg_reader *r, delay_dist *dist, const cfg_node *node, double max_delay) {
  const delay_dist_entry *e = delay_dist_about(dist->kind);
  if (e->read != NULL) e->read(r, dist, node);
  if (dist->kind == DELAY_CONSTANT && !isnan(max_delay)) dist->constant.value = max_delay;
}

static gl_status parse_map(delay_dist *dist, const cfg_node *node, const char *section,
                           double max_delay, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, section, err);
  delay_kind kind = read_kind(&r);
  dist->kind = kind;
  int has_interval = cfg_has(&r, "interval");
  if (has_interval)
    read_interval(&r, dist, kind, max_delay);
  else
    read_own(&r, dist, node, max_delay);
  if (r.status == GL_OK && !has_interval && !isnan(max_delay) && kind != DELAY_CONSTANT)
    r.status = cfg_fail(node, err,
                        "max_delay sets the upper end of an interval; give this law as interval: "
                        "[lower, upper]");
  dist->offset = cfg_double(&r, "offset", 0, 0, longest);
  read_clamp(&r, dist, has_interval);
  return cfg_end(&r);
}

static gl_status parse_scalar(delay_dist *dist, const cfg_node *node, double max_delay,
                              gl_error *err) {
  double value = 0;
  if (cfg_is_null(node) || strcmp(cfg_text(node), "none") == 0) {
    if (isnan(max_delay)) return GL_OK;
    return cfg_fail(node, err, "max_delay needs a law with an interval here, not none");
  }
  if (!cfg_number(node, &value) || !(value >= 0) || value > longest) {
    const char *unit = cfg_unit(node);
    return cfg_fail(node, err,
                    "'%s' is not a law: a number%s%s from 0 to 1e15, none, or "
                    "{law: lognormal, interval: [60, 1800]}",
                    cfg_text(node), unit[0] != '\0' ? " in " : "", unit);
  }
  dist->kind = DELAY_CONSTANT;
  dist->constant.value = isnan(max_delay) ? value : max_delay;
  return GL_OK;
}

gl_status delay_parse(delay_dist **out, const cfg_node *node, const char *section, double max_delay,
                      gl_error *err) {
  *out = NULL;
  if (node == NULL) return gl_fail(err, GL_EINTERNAL, "delay_parse: no node for %s", section);
  delay_dist *dist = calloc(1, sizeof *dist);
  if (dist == NULL) return gl_fail_memory(err, "a delay law");
  dist->clamp_hi = INFINITY;
  gl_status status = GL_OK;
  double end =
      max_delay == 0 ? NAN : max_delay; /* no delay at all: the distribution is only checked */
  if (cfg_kind_of(node) == CFG_MAP)
    status = parse_map(dist, node, section, end, err);
  else if (cfg_kind_of(node) == CFG_SCALAR)
    status = parse_scalar(dist, node, end, err);
  else
    status = cfg_fail(node, err, "a law is a number, none or a map, not a list");
  if (status != GL_OK || max_delay == 0) {
    delay_free(dist);
    if (status != GL_OK) return status;
    dist = delay_constant(0);
    if (dist == NULL) return gl_fail_memory(err, "a delay law");
  }
  *out = dist;
  return GL_OK;
}
