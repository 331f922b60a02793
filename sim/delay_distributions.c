/* The delay distributions: one block and one line of the table for each. The formulas are those of
 * paper/methods.md §9.1. With them all that is done with a distribution of any kind: draws,
 * quantiles, distributions from intervals. Reading one from a recipe is in delay_read.c. */
#include "sim/delay_distributions.h"

#include "core/base/csv.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_roots.h>
#include <gsl/gsl_sf_gamma.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double longest = 1e15; /* seconds; a longer duration is a mistake */

/* The mass of either tail of an interval, and its logarithmic odds. */
static double tail_of(double c) {
  return (1 - c) / 2;
}

static double log_odds_of(double c) {
  return log1p(-tail_of(c)) - log(tail_of(c));
}

/* --- none, constant --- */

static double quantile_none(const delay_dist *dist, double p) {
  (void)dist;
  (void)p;
  return 0;
}

static void read_constant(cfg_reader *r, delay_dist *dist, const cfg_node *node) {
  (void)node;
  dist->constant.value = cfg_double(r, "value", 0, 0, longest);
}

static double quantile_constant(const delay_dist *dist, double p) {
  (void)p;
  return dist->constant.value;
}

/* --- uniform --- */

static void read_uniform(cfg_reader *r, delay_dist *dist, const cfg_node *node) {
  const double min = cfg_double(r, "min", 0, 0, longest);
  const double max = cfg_double(r, "max", fmax(1, min), 0, longest);
  dist->uniform.min = min;
  dist->uniform.max = max;
  if (r->status == GL_OK && max < min)
    r->status = cfg_fail(node, r->err, "max is %g; it must not be below min %g", max, min);
}

static double quantile_uniform(const delay_dist *dist, double p) {
  return dist->uniform.min + p * (dist->uniform.max - dist->uniform.min);
}

static gl_status uniform_from_interval(delay_dist *dist, double l, double u, double c,
                                       gl_error *err) {
  dist->uniform.min = l - tail_of(c) * (u - l) / c;
  dist->uniform.max = u + tail_of(c) * (u - l) / c;
  if (dist->uniform.min >= 0) return GL_OK;
  return gl_fail(err, GL_EINPUT, "a uniform law holding this interval would begin at %g, below 0",
                 dist->uniform.min);
}

/* --- exponential --- */

static void read_exponential(cfg_reader *r, delay_dist *dist, const cfg_node *node) {
  (void)node;
  dist->exponential.mean = cfg_positive(r, "mean", 1);
  dist->exponential.shift = cfg_double(r, "shift", 0, 0, longest);
}

static double quantile_exponential(const delay_dist *dist, double p) {
  return dist->exponential.shift - dist->exponential.mean * log1p(-p);
}

/* l = 0: it begins at 0, and c of its mass is below u. */
static gl_status exponential_from_interval(delay_dist *dist, double l, double u, double c,
                                           gl_error *err) {
  const double mean = l == 0 ? -u / log1p(-c) : (u - l) / log_odds_of(c);
  dist->exponential.mean = mean;
  dist->exponential.shift = l == 0 ? 0 : l + mean * log1p(-tail_of(c));
  if (dist->exponential.shift >= 0) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "an exponential law holding this interval would begin at %g, below 0",
                 dist->exponential.shift);
}

/* --- lognormal --- */

static void read_lognormal(cfg_reader *r, delay_dist *dist, const cfg_node *node) {
  (void)node;
  dist->lognormal.mu = cfg_double(r, "mu", 0, -100, 100);
  dist->lognormal.sigma = cfg_double(r, "sigma", 1, 0, 20);
}

static double quantile_lognormal(const delay_dist *dist, double p) {
  return exp(dist->lognormal.mu + dist->lognormal.sigma * gsl_cdf_ugaussian_Pinv(p));
}

static gl_status lognormal_from_interval(delay_dist *dist, double l, double u, double c,
                                         gl_error *err) {
  (void)err;
  dist->lognormal.mu = (log(l) + log(u)) / 2;
  dist->lognormal.sigma = (log(u) - log(l)) / (2 * gsl_cdf_ugaussian_Qinv(tail_of(c)));
  return GL_OK;
}

/* --- weibull --- */

/* Bounds of a shape: where gamma quantiles are safe. */
static double read_shape(cfg_reader *r) {
  return cfg_double(r, "shape", 1, 0.1, 1e4);
}

static void read_weibull(cfg_reader *r, delay_dist *dist, const cfg_node *node) {
  (void)node;
  dist->weibull.shape = read_shape(r);
  dist->weibull.scale = cfg_positive(r, "scale", 1);
}

static double quantile_weibull(const delay_dist *dist, double p) {
  return dist->weibull.scale * pow(-log1p(-p), 1 / dist->weibull.shape);
}

static gl_status weibull_from_interval(delay_dist *dist, double l, double u, double c,
                                       gl_error *err) {
  (void)err;
  const double alpha = tail_of(c);
  dist->weibull.shape = (log(-log(alpha)) - log(-log1p(-alpha))) / (log(u) - log(l));
  dist->weibull.scale = l / pow(-log1p(-alpha), 1 / dist->weibull.shape);
  return GL_OK;
}

/* --- gamma --- */

static void read_gamma(cfg_reader *r, delay_dist *dist, const cfg_node *node) {
  (void)node;
  dist->gamma.shape = read_shape(r);
  dist->gamma.scale = cfg_positive(r, "scale", 1);
}

/* ln of a first guess at the p-quantile of the gamma distribution of scale 1: Wilson and Hilferty's
 * (the cube root is nearly normal), or the distribution's behaviour at 0 where that is not
 * positive. */
static double gamma_guess(double p, double shape) {
  double root = 1 - 1 / (9 * shape) + gsl_cdf_ugaussian_Pinv(p) / (3 * sqrt(shape));
  return root > 0.1 ? log(shape) + 3 * log(root) : (log(p) + gsl_sf_lngamma(shape + 1)) / shape;
}

/* ln of the value of the gamma distribution of scale 1 with mass p below (or above) it: Newton's
 * steps on the logarithm of that tail, which is nearly linear in ln x, kept inside a bracket. GSL's
 * own inverse gives up for some shapes and tells through its error handler, which ends the process
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

static double quantile_gamma(const delay_dist *dist, double p) {
  const double shape = dist->gamma.shape;
  return dist->gamma.scale *
         (p < 0.5 ? gamma_quantile(p, shape, 0) : gamma_quantile(1 - p, shape, 1));
}

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

static gl_status gamma_from_interval(delay_dist *dist, double l, double u, double c,
                                     gl_error *err) {
  const double alpha = tail_of(c);
  gl_status status = gamma_shape(&dist->gamma.shape, alpha, log(u) - log(l), err);
  if (status == GL_OK) dist->gamma.scale = l / gamma_quantile(alpha, dist->gamma.shape, 0);
  return status;
}

/* --- pareto --- */

static void read_pareto(cfg_reader *r, delay_dist *dist, const cfg_node *node) {
  (void)node;
  dist->pareto.shape = read_shape(r);
  dist->pareto.scale = cfg_positive(r, "scale", 1);
}

static double quantile_pareto(const delay_dist *dist, double p) {
  return dist->pareto.scale * pow(1 - p, -1 / dist->pareto.shape);
}

static gl_status pareto_from_interval(delay_dist *dist, double l, double u, double c,
                                      gl_error *err) {
  (void)err;
  dist->pareto.shape = log_odds_of(c) / (log(u) - log(l));
  dist->pareto.scale = l * pow(1 - tail_of(c), 1 / dist->pareto.shape);
  return GL_OK;
}

/* --- empirical --- */

static void read_empirical(cfg_reader *r, delay_dist *dist, const cfg_node *node) {
  const char *file = cfg_string(r, "file", NULL), *column = cfg_string(r, "column", NULL);
  double scale = cfg_positive(r, "scale", 1), *value = NULL;
  size_t n = 0;
  if (r->status == GL_OK && file == NULL)
    r->status = cfg_fail(node, r->err, "an empirical law needs file: a CSV of durations");
  if (r->status != GL_OK) return;
  gl_error why = {0};
  const cfg_node *at = cfg_child(r, "file");
  char *path = cfg_locate(at, file);
  if (path == NULL) {
    r->status = gl_fail_memory(r->err, "a file name");
    return;
  }
  r->status = csv_column(&value, &n, path, column, &why);
  free(path);
  dist->empirical.value = value;
  dist->empirical.n = n;
  if (r->status != GL_OK) r->status = cfg_fail(at, r->err, "%s", why.text);
  for (size_t i = 0; i < n && r->status == GL_OK; ++i) {
    value[i] *= scale;
    if (!(value[i] >= 0)) r->status = cfg_fail(node, r->err, "%s holds a negative duration", file);
  }
  if (r->status == GL_OK) gsl_sort(value, 1, n);
}

/* Linear between the measured values. */
static double quantile_empirical(const delay_dist *dist, double p) {
  const double *value = dist->empirical.value;
  const size_t n = dist->empirical.n;
  double at = p * (double)(n - 1);
  size_t i = (size_t)at;
  if (i + 1 >= n) return value[n - 1];
  return value[i] + (at - (double)i) * (value[i + 1] - value[i]);
}

static void fini_empirical(delay_dist *dist) {
  free(dist->empirical.value);
}

/* --- gilbert_elliott --- */

static void read_gilbert_elliott(cfg_reader *r, delay_dist *dist, const cfg_node *node) {
  delay_dist *good = NULL, *bad = NULL;
  dist->gilbert_elliott.to_bad = cfg_double(r, "to_bad", 0.01, 0, 1);
  dist->gilbert_elliott.to_good = cfg_double(r, "to_good", 0.1, 0, 1);
  const cfg_node *good_at = cfg_child(r, "good"), *bad_at = cfg_child(r, "bad");
  if (r->status == GL_OK && (good_at == NULL || bad_at == NULL))
    r->status = cfg_fail(node, r->err, "a gilbert_elliott law needs a law good and a law bad");
  if (r->status == GL_OK) r->status = delay_parse(&good, good_at, "good", NAN, r->err);
  if (r->status == GL_OK) r->status = delay_parse(&bad, bad_at, "bad", NAN, r->err);
  dist->gilbert_elliott.good = good;
  dist->gilbert_elliott.bad = bad;
  if (r->status == GL_OK &&
      (good->kind == DELAY_GILBERT_ELLIOTT || bad->kind == DELAY_GILBERT_ELLIOTT))
    r->status = cfg_fail(node, r->err, "good and bad must be laws of a single state");
}

/* Changes the state by the block's second number and draws from its distribution by the first. */
static double draw_gilbert_elliott(const delay_dist *dist, delay_source *source, rng_words w) {
  const double change = rng_u01_53(w.v[2], w.v[3]);
  if (change < (source->bad ? dist->gilbert_elliott.to_good : dist->gilbert_elliott.to_bad))
    source->bad = !source->bad;
  return delay_quantile(source->bad ? dist->gilbert_elliott.bad : dist->gilbert_elliott.good,
                        rng_u01_53(w.v[0], w.v[1]));
}

static void fini_gilbert_elliott(delay_dist *dist) {
  delay_free(dist->gilbert_elliott.good);
  delay_free(dist->gilbert_elliott.bad);
}

/* --- the table --- */

#define SHAPE_AND_SCALE                                                                            \
  {                                                                                                \
    {"shape", "", "1"}, {                                                                          \
      "scale", "s", "1"                                                                            \
    }                                                                                              \
  }

static const delay_dist_entry table[] = {
    [DELAY_NONE] = {.name = "none", .about = "always 0", .quantile = quantile_none},
    [DELAY_CONSTANT] = {.name = "constant",
                        .about = "always the same",
                        .parameter = {{"value", "s", "0"}},
                        .read = read_constant,
                        .quantile = quantile_constant},
    [DELAY_UNIFORM] = {.name = "uniform",
                       .about = "between two bounds",
                       .parameter = {{"min", "s", "0"}, {"max", "s", "1, or min if that is more"}},
                       .read = read_uniform,
                       .quantile = quantile_uniform,
                       .from_interval = uniform_from_interval,
                       .from_zero = 1},
    [DELAY_EXPONENTIAL] = {.name = "exponential",
                           .about = "a shift, and beyond it a mean",
                           .parameter = {{"mean", "s", "1"}, {"shift", "s", "0"}},
                           .read = read_exponential,
                           .quantile = quantile_exponential,
                           .from_interval = exponential_from_interval,
                           .from_zero = 1},
    [DELAY_LOGNORMAL] = {.name = "lognormal",
                         .about = "its logarithm is normal",
                         .parameter = {{"mu", "ln s", "0"}, {"sigma", "ln s", "1"}},
                         .read = read_lognormal,
                         .quantile = quantile_lognormal,
                         .from_interval = lognormal_from_interval},
    [DELAY_WEIBULL] = {.name = "weibull",
                       .about = "heavier tail than exponential below shape 1, lighter above",
                       .parameter = SHAPE_AND_SCALE,
                       .read = read_weibull,
                       .quantile = quantile_weibull,
                       .from_interval = weibull_from_interval},
    [DELAY_GAMMA] = {.name = "gamma",
                     .about = "sum of `shape` exponential durations of mean `scale`",
                     .parameter = SHAPE_AND_SCALE,
                     .read = read_gamma,
                     .quantile = quantile_gamma,
                     .from_interval = gamma_from_interval},
    [DELAY_PARETO] = {.name = "pareto",
                      .about = "above `scale`, with a power-law tail of exponent `shape`",
                      .parameter = SHAPE_AND_SCALE,
                      .read = read_pareto,
                      .quantile = quantile_pareto,
                      .from_interval = pareto_from_interval},
    [DELAY_EMPIRICAL] = {.name = "empirical",
                         .about = "linear quantiles of durations measured in a CSV file",
                         .parameter = {{"file", "", ""},
                                       {"column", "", "the first"},
                                       {"scale", "", "1"}},
                         .read = read_empirical,
                         .quantile = quantile_empirical,
                         .fini = fini_empirical},
    [DELAY_GILBERT_ELLIOTT] = {.name = "gilbert_elliott",
                               .about = "two laws, and the chance to change between them per draw",
                               .parameter = {{"good", "", ""},
                                             {"bad", "", ""},
                                             {"to_bad", "", "0.01"},
                                             {"to_good", "", "0.1"}},
                               .read = read_gilbert_elliott,
                               .draw = draw_gilbert_elliott,
                               .fini = fini_gilbert_elliott},
};
_Static_assert(sizeof table / sizeof *table == DELAY_KINDS, "a line for every kind of law");

const delay_dist_entry *delay_dist_about(delay_kind kind) {
  assert(kind < DELAY_KINDS && table[kind].name != NULL);
  return &table[kind];
}

/* --- distributions of any kind --- */

static double limited(const delay_dist *dist, double x) {
  return fmax(0, fmin(fmax(x - dist->offset, dist->clamp_lo), dist->clamp_hi));
}

double delay_quantile(const delay_dist *dist, double p) {
  assert(table[dist->kind].quantile != NULL);
  return limited(dist, table[dist->kind].quantile(dist, p));
}

double delay_draw(const delay_dist *dist, delay_source *source) {
  if (dist->kind == DELAY_NONE) return 0;
  const delay_dist_entry *e = &table[dist->kind];
  rng_words w = rng_block(source->stream, source->index++);
  return limited(dist, e->draw != NULL ? e->draw(dist, source, w)
                                       : e->quantile(dist, rng_u01_53(w.v[0], w.v[1])));
}

int delay_is_zero(const delay_dist *dist) {
  return dist->kind == DELAY_NONE || (dist->kind == DELAY_CONSTANT && dist->constant.value == 0);
}

gl_status delay_from_interval(delay_dist *dist, delay_kind kind, double l, double u, double c,
                              gl_error *err) {
  const delay_dist_entry *e = delay_dist_about(kind);
  memset(dist, 0, sizeof *dist); /* the whole union, which may hold pointers */
  dist->kind = kind;
  dist->clamp_hi = INFINITY;
  if (!(l >= 0 && u > l && isfinite(u) && c > 0 && c < 1))
    return gl_fail(err, GL_EINPUT, "an interval needs 0 <= lower < upper and 0 < confidence < 1");
  if (l == 0 && !e->from_zero)
    return gl_fail(err, GL_EINPUT, "the interval's lower end must be positive for this law");
  if (e->from_interval == NULL)
    return gl_fail(err, GL_EINPUT, "a law of kind %s has no interval", e->name);
  return e->from_interval(dist, l, u, c, err);
}

delay_dist *delay_constant(double value) {
  delay_dist *dist = calloc(1, sizeof *dist);
  if (dist == NULL) return NULL;
  dist->kind = value == 0 ? DELAY_NONE : DELAY_CONSTANT;
  dist->constant.value = value;
  dist->clamp_hi = INFINITY;
  return dist;
}

void delay_free(delay_dist *dist) {
  if (dist == NULL) return;
  if (table[dist->kind].fini != NULL) table[dist->kind].fini(dist);
  free(dist);
}
