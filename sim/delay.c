#include "sim/delay.h"

#include "core/base/csv.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_roots.h>
#include <gsl/gsl_sf_gamma.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const delay_names[DELAY_KINDS] = {
    "none",    "constant", "uniform", "exponential", "lognormal",
    "weibull", "gamma",    "pareto",  "empirical",   "gilbert_elliott"};

/* --- drawing -----------------------------------------------------------------------------------
 */

static double empirical_quantile(const delay_law *law, double p) {
  double at = p * (double)(law->n_sample - 1);
  size_t i = (size_t)at;
  if (i + 1 >= law->n_sample) return law->sample[law->n_sample - 1];
  return law->sample[i] + (at - (double)i) * (law->sample[i + 1] - law->sample[i]);
}

/* ln of a first guess at the p-quantile of the gamma law of scale 1: Wilson and Hilferty's (the
 * cube root is nearly normal), or the law's behaviour at 0 where that is not positive. */
static double gamma_guess(double p, double shape) {
  double root = 1 - 1 / (9 * shape) + gsl_cdf_ugaussian_Pinv(p) / (3 * sqrt(shape));
  return root > 0.1 ? log(shape) + 3 * log(root) : (log(p) + gsl_sf_lngamma(shape + 1)) / shape;
}

/* ln of the value of the gamma law of scale 1 with mass p below (or above) it: Newton's steps on
 * the logarithm of that tail, which is nearly linear in ln x, kept inside a bracket. GSL's own
 * inverse gives up for some shapes and tells through its error handler, which ends the process
 * unless the program has turned it off; its distribution functions never fail. */
static double gamma_log_quantile(double p, double shape, int upper_tail) {
  double lo = -700, hi = log(shape + 40 * sqrt(shape) + 600);
  double y = fmin(fmax(gamma_guess(upper_tail ? 1 - p : p, shape), lo), hi);
  for (int i = 0; i < 100; ++i) {
    double x = exp(y),
           tail = upper_tail ? gsl_cdf_gamma_Q(x, shape, 1) : gsl_cdf_gamma_P(x, shape, 1);
    *((upper_tail ? tail > p : tail < p) ? &lo : &hi) = y;
    double slope = x * gsl_ran_gamma_pdf(x, shape, 1) / tail;
    double step = log(tail / p) / (upper_tail ? slope : -slope);
    if (fabs(step) < 1e-12) return y + step;
    y = y + step > lo && y + step < hi ? y + step : (lo + hi) / 2;
  }
  return y;
}

static double gamma_quantile(double p, double shape, int upper_tail) {
  return exp(gamma_log_quantile(p, shape, upper_tail));
}

static double raw_quantile(const delay_law *law, double p) {
  switch (law->kind) {
  case DELAY_CONSTANT:
    return law->a;
  case DELAY_UNIFORM:
    return law->a + p * (law->b - law->a);
  case DELAY_EXPONENTIAL:
    return law->b - law->a * log1p(-p);
  case DELAY_LOGNORMAL:
    return exp(law->a + law->b * gsl_cdf_ugaussian_Pinv(p));
  case DELAY_WEIBULL:
    return law->b * pow(-log1p(-p), 1 / law->a);
  case DELAY_GAMMA:
    return law->b * (p < 0.5 ? gamma_quantile(p, law->a, 0) : gamma_quantile(1 - p, law->a, 1));
  case DELAY_PARETO:
    return law->b * pow(1 - p, -1 / law->a);
  case DELAY_EMPIRICAL:
    return empirical_quantile(law, p);
  case DELAY_NONE:
  case DELAY_GILBERT_ELLIOTT:
  case DELAY_KINDS:
    break;
  }
  return 0;
}

double delay_quantile(const delay_law *law, double p) {
  double x = raw_quantile(law, p) - law->offset;
  return fmax(0, fmin(fmax(x, law->clamp_lo), law->clamp_hi));
}

double delay_draw(const delay_law *law, delay_source *source) {
  if (law->kind == DELAY_NONE) return 0;
  rng_words w = rng_block(source->stream, source->index++);
  double p = rng_u01_53(w.v[0], w.v[1]);
  if (law->kind != DELAY_GILBERT_ELLIOTT) return delay_quantile(law, p);
  double change = rng_u01_53(w.v[2], w.v[3]);
  if (change < (source->bad ? law->b : law->a)) source->bad = !source->bad;
  double x = delay_quantile(source->bad ? law->bad : law->good, p) - law->offset;
  return fmax(0, fmin(fmax(x, law->clamp_lo), law->clamp_hi));
}

int delay_is_zero(const delay_law *law) {
  return law->kind == DELAY_NONE || (law->kind == DELAY_CONSTANT && law->a == 0);
}

/* --- from an interval --------------------------------------------------------------------------
 */

/* ln of the ratio of the upper to the lower quantile at shape exp(x), less the ratio wanted. */
typedef struct gamma_problem {
  double alpha, log_ratio;
} gamma_problem;

static double gamma_gap(double x, void *problem) {
  const gamma_problem *g = problem;
  double k = exp(x);
  return gamma_log_quantile(g->alpha, k, 1) - gamma_log_quantile(g->alpha, k, 0) - g->log_ratio;
}

/* The ratio falls from infinity to 1 as the shape grows, so one root lies between the bounds. */
static gl_status gamma_shape(double *shape, double alpha, double log_ratio, gl_error *err) {
  gamma_problem problem = {alpha, log_ratio};
  gsl_function f = {gamma_gap, &problem};
  double lo = log(0.1), hi = log(1e4);
  if (!(gamma_gap(lo, &problem) > 0) || !(gamma_gap(hi, &problem) < 0))
    return gl_fail(err, GL_EINPUT, "no gamma law of shape 0.1 to 1e4 holds this interval");
  gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
  if (solver == NULL) return gl_fail_memory(err, "a root solver");
  int status = gsl_root_fsolver_set(solver, &f, lo, hi);
  for (int i = 0; i < 200 && status == GSL_SUCCESS; ++i) {
    status = gsl_root_fsolver_iterate(solver);
    if (status == GSL_SUCCESS &&
        gsl_root_test_interval(gsl_root_fsolver_x_lower(solver), gsl_root_fsolver_x_upper(solver),
                               1e-14, 1e-14) == GSL_SUCCESS)
      break;
  }
  *shape = exp(gsl_root_fsolver_root(solver));
  gsl_root_fsolver_free(solver);
  if (status != GSL_SUCCESS)
    return gl_fail(err, GL_ENUMERIC, "root finding for the gamma law's shape failed: %s",
                   gsl_strerror(status));
  return GL_OK;
}

gl_status delay_from_interval(delay_law *law, delay_kind kind, double l, double u, double c,
                              gl_error *err) {
  *law = (delay_law){.kind = kind, .clamp_lo = 0, .clamp_hi = INFINITY};
  double alpha = (1 - c) / 2, odds = log1p(-alpha) - log(alpha);
  if (!(l >= 0 && u > l && isfinite(u) && c > 0 && c < 1))
    return gl_fail(err, GL_EINPUT, "an interval needs 0 <= lower < upper and 0 < confidence < 1");
  if (l == 0 && kind != DELAY_UNIFORM && kind != DELAY_EXPONENTIAL)
    return gl_fail(err, GL_EINPUT, "the interval's lower end must be positive for this law");
  switch (kind) {
  case DELAY_UNIFORM:
    law->a = l - alpha * (u - l) / c;
    law->b = u + alpha * (u - l) / c;
    if (law->a < 0)
      return gl_fail(err, GL_EINPUT,
                     "a uniform law holding this interval would begin at %g, below 0", law->a);
    return GL_OK;
  case DELAY_EXPONENTIAL:
    law->a = l == 0 ? -u / log1p(-c) : (u - l) / odds;
    law->b = l == 0 ? 0 : l + law->a * log1p(-alpha);
    if (law->b < 0)
      return gl_fail(err, GL_EINPUT,
                     "an exponential law holding this interval would begin at %g, below 0", law->b);
    return GL_OK;
  case DELAY_LOGNORMAL:
    law->a = (log(l) + log(u)) / 2;
    law->b = (log(u) - log(l)) / (2 * gsl_cdf_ugaussian_Qinv(alpha));
    return GL_OK;
  case DELAY_WEIBULL:
    law->a = (log(-log(alpha)) - log(-log1p(-alpha))) / (log(u) - log(l));
    law->b = l / pow(-log1p(-alpha), 1 / law->a);
    return GL_OK;
  case DELAY_GAMMA: {
    gl_status status = gamma_shape(&law->a, alpha, log(u) - log(l), err);
    if (status == GL_OK) law->b = l / gamma_quantile(alpha, law->a, 0);
    return status;
  }
  case DELAY_PARETO:
    law->a = odds / (log(u) - log(l));
    law->b = l * pow(1 - alpha, 1 / law->a);
    return GL_OK;
  case DELAY_NONE:
  case DELAY_CONSTANT:
  case DELAY_EMPIRICAL:
  case DELAY_GILBERT_ELLIOTT:
  case DELAY_KINDS:
    break;
  }
  return gl_fail(err, GL_EINPUT, "a law of kind %s has no interval", delay_names[kind]);
}

/* --- from a recipe -----------------------------------------------------------------------------
 */

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

static gl_status read_empirical(cfg_reader *r, delay_law *law, const cfg_node *node) {
  const char *file = cfg_string(r, "file", NULL), *column = cfg_string(r, "column", NULL);
  double scale = cfg_positive(r, "scale", 1);
  if (r->status != GL_OK) return r->status;
  if (file == NULL)
    return r->status = cfg_fail(node, r->err, "an empirical law needs file: a CSV of durations");
  gl_error why = {0};
  const cfg_node *at = cfg_child(r, "file");
  char *path = cfg_locate(at, file);
  if (path == NULL) return r->status = gl_fail_memory(r->err, "a file name");
  r->status = csv_column(&law->sample, &law->n_sample, path, column, &why);
  free(path);
  if (r->status != GL_OK) return r->status = cfg_fail(at, r->err, "%s", why.text);
  for (size_t i = 0; i < law->n_sample; ++i) {
    law->sample[i] *= scale;
    if (!(law->sample[i] >= 0))
      return r->status = cfg_fail(node, r->err, "%s holds a negative duration", file);
  }
  gsl_sort(law->sample, 1, law->n_sample);
  return GL_OK;
}

static gl_status read_two_state(cfg_reader *r, delay_law *law, const cfg_node *node) {
  law->a = cfg_double(r, "to_bad", 0.01, 0, 1);
  law->b = cfg_double(r, "to_good", 0.1, 0, 1);
  const cfg_node *good = cfg_child(r, "good"), *bad = cfg_child(r, "bad");
  if (r->status != GL_OK) return r->status;
  if (good == NULL || bad == NULL)
    return r->status =
               cfg_fail(node, r->err, "a gilbert_elliott law needs a law good and a law bad");
  r->status = delay_parse(&law->good, good, "good", NAN, r->err);
  if (r->status == GL_OK) r->status = delay_parse(&law->bad, bad, "bad", NAN, r->err);
  if (r->status == GL_OK &&
      (law->good->kind == DELAY_GILBERT_ELLIOTT || law->bad->kind == DELAY_GILBERT_ELLIOTT))
    r->status = cfg_fail(node, r->err, "good and bad must be laws of a single state");
  return r->status;
}

static void read_own(cfg_reader *r, delay_law *law, const cfg_node *node, double max_delay) {
  switch (law->kind) {
  case DELAY_CONSTANT:
    law->a = cfg_double(r, "value", 0, 0, 1e15);
    if (!isnan(max_delay)) law->a = max_delay;
    break;
  case DELAY_UNIFORM:
    law->a = cfg_double(r, "min", 0, 0, 1e15);
    law->b = cfg_double(r, "max", fmax(1, law->a), 0, 1e15);
    if (r->status == GL_OK && law->b < law->a)
      r->status = cfg_fail(node, r->err, "max is %g; it must not be below min %g", law->b, law->a);
    break;
  case DELAY_EXPONENTIAL:
    law->a = cfg_positive(r, "mean", 1);
    law->b = cfg_double(r, "shift", 0, 0, 1e15);
    break;
  case DELAY_LOGNORMAL:
    law->a = cfg_double(r, "mu", 0, -100, 100);
    law->b = cfg_double(r, "sigma", 1, 0, 20);
    break;
  case DELAY_WEIBULL:
  case DELAY_GAMMA:
  case DELAY_PARETO:
    law->a = cfg_double(r, "shape", 1, 0.1, 1e4); /* where gamma quantiles are safe */
    law->b = cfg_positive(r, "scale", 1);
    break;
  case DELAY_EMPIRICAL:
    read_empirical(r, law, node);
    break;
  case DELAY_GILBERT_ELLIOTT:
    read_two_state(r, law, node);
    break;
  case DELAY_NONE:
  case DELAY_KINDS:
    break;
  }
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

static gl_status parse_map(delay_law *law, const cfg_node *node, const char *section,
                           double max_delay, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, section, err);
  delay_kind kind = (delay_kind)cfg_choice(
      &r, "law", cfg_has(&r, "value") ? DELAY_CONSTANT : DELAY_LOGNORMAL, delay_names, DELAY_KINDS);
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
  law->offset = cfg_double(&r, "offset", 0, 0, 1e15);
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
  if (!cfg_number(node, &value) || !(value >= 0) || value > 1e15)
    return cfg_fail(node, err,
                    "'%s' is not a law: a number of seconds from 0 to 1e15, none, or "
                    "{law: lognormal, interval: [60, 1800]}",
                    cfg_text(node));
  law->kind = DELAY_CONSTANT;
  law->a = isnan(max_delay) ? value : max_delay;
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

delay_law *delay_constant(double value) {
  delay_law *law = calloc(1, sizeof *law);
  if (law == NULL) return NULL;
  law->kind = value == 0 ? DELAY_NONE : DELAY_CONSTANT;
  law->a = value;
  law->clamp_hi = INFINITY;
  return law;
}

void delay_free(delay_law *law) {
  if (law == NULL) return;
  delay_free(law->good);
  delay_free(law->bad);
  free(law->sample);
  free(law);
}
