/* Delay laws from a recipe: the keys that all laws share, and what the table of laws reads. */
#include "sim/delay_laws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double longest = 1e15; /* seconds; a longer duration is a mistake */

static gl_status read_interval(cfg_reader *r, delay_law *law, delay_kind kind, double max_delay) {
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
    else if (delay_from_interval(law, kind, ends[0], u, c, &why) != GL_OK)
      r->status = cfg_fail(node, r->err, "%s", why.text);
    law->clamp_lo = ends[0]; /* kept only where clamp says true */
    law->clamp_hi = u;
  }
  free(ends);
  return r->status;
}

/* clamp: false (default), true (to the interval) or [lower, upper]. */
static void read_clamp(cfg_reader *r, delay_law *law, int has_interval) {
  const cfg_node *node = cfg_child(r, "clamp");
  if (node != NULL && cfg_kind_of(node) == CFG_LIST) {
    double *ends = NULL;
    size_t n = cfg_doubles(r, "clamp", &ends, 0, INFINITY);
    if (r->status == GL_OK && (n != 2 || ends[1] < ends[0]))
      r->status = cfg_fail(node, r->err, "clamp needs true, false or [lower, upper]");
    if (r->status == GL_OK) law->clamp_lo = ends[0], law->clamp_hi = ends[1];
    free(ends);
    return;
  }
  int clamp = cfg_bool(r, "clamp", 0);
  if (clamp && !has_interval && r->status == GL_OK)
    r->status = cfg_fail(node, r->err, "clamp: true needs an interval; give [lower, upper]");
  if (!clamp) law->clamp_lo = 0, law->clamp_hi = INFINITY;
}

/* The law by its name; one that only has a value is constant. */
static delay_kind read_kind(cfg_reader *r) {
  const char *names[DELAY_KINDS];
  for (int k = 0; k < DELAY_KINDS; ++k) names[k] = delay_law_about((delay_kind)k)->name;
  const int usual = cfg_has(r, "value") ? DELAY_CONSTANT : DELAY_LOGNORMAL;
  return (delay_kind)cfg_choice(r, "law", usual, names, DELAY_KINDS);
}

/* The law's own parameters; max_delay is a constant's value. */
static void read_own(cfg_reader *r, delay_law *law, const cfg_node *node, double max_delay) {
  const delay_law_entry *e = delay_law_about(law->kind);
  if (e->read != NULL) e->read(r, law, node);
  if (law->kind == DELAY_CONSTANT && !isnan(max_delay)) law->constant.value = max_delay;
}

static gl_status parse_map(delay_law *law, const cfg_node *node, const char *section,
                           double max_delay, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, section, err);
  delay_kind kind = read_kind(&r);
  law->kind = kind;
  int has_interval = cfg_has(&r, "interval");
  if (has_interval)
    read_interval(&r, law, kind, max_delay);
  else
    read_own(&r, law, node, max_delay);
  if (r.status == GL_OK && !has_interval && !isnan(max_delay) && kind != DELAY_CONSTANT)
    r.status = cfg_fail(node, err,
                        "max_delay sets the upper end of an interval; give this law as interval: "
                        "[lower, upper]");
  law->offset = cfg_double(&r, "offset", 0, 0, longest);
  read_clamp(&r, law, has_interval);
  return cfg_end(&r);
}

static gl_status parse_scalar(delay_law *law, const cfg_node *node, double max_delay,
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
  law->kind = DELAY_CONSTANT;
  law->constant.value = isnan(max_delay) ? value : max_delay;
  return GL_OK;
}

gl_status delay_parse(delay_law **out, const cfg_node *node, const char *section, double max_delay,
                      gl_error *err) {
  *out = NULL;
  if (node == NULL) return gl_fail(err, GL_EINTERNAL, "delay_parse: no node for %s", section);
  delay_law *law = calloc(1, sizeof *law);
  if (law == NULL) return gl_fail_memory(err, "a delay law");
  law->clamp_hi = INFINITY;
  gl_status status = GL_OK;
  double end = max_delay == 0 ? NAN : max_delay; /* no delay at all: the law is only checked */
  if (cfg_kind_of(node) == CFG_MAP)
    status = parse_map(law, node, section, end, err);
  else if (cfg_kind_of(node) == CFG_SCALAR)
    status = parse_scalar(law, node, end, err);
  else
    status = cfg_fail(node, err, "a law is a number, none or a map, not a list");
  if (status != GL_OK || max_delay == 0) {
    delay_free(law);
    if (status != GL_OK) return status;
    law = delay_constant(0);
    if (law == NULL) return gl_fail_memory(err, "a delay law");
  }
  *out = law;
  return GL_OK;
}
