/* Delay distributions: one block of functions and one table entry for each (formulas:
 * paper/methods.md §9.1). Below, code common to all distributions: samples, quantiles, distribution
 * functions, text, and reading from a recipe. */
#include "sim/delay.h"

#include "core/base/records.h"
#include "core/base/root.h"
#include "core/config/fields.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_gamma.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The probability of each tail of an interval with coverage c. */
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
  dist->constant.value = cfg_double(r, "value", 0, 0, DELAY_LONGEST);
}

static double quantile_constant(const delay_dist *dist, double p) {
  (void)p;
  return dist->constant.value;
}

/* --- uniform --- */

static void read_uniform(cfg_reader *r, delay_dist *dist, const cfg_node *node) {
  const double min = cfg_double(r, "min", 0, 0, DELAY_LONGEST);
  const double max = cfg_double(r, "max", fmax(1, min), 0, DELAY_LONGEST);
  dist->uniform.min = min;
  dist->uniform.max = max;
  if (r->status == GL_OK && max < min)
    r->status = cfg_fail(node, r->err, "max is %g; it must not be below min %g", max, min);
}

static double quantile_uniform(const delay_dist *dist, double p) {
  return dist->uniform.min + p * (dist->uniform.max - dist->uniform.min);
}

static double cdf_uniform(const delay_dist *dist, double x) {
  return fmin(fmax((x - dist->uniform.min) / (dist->uniform.max - dist->uniform.min), 0), 1);
}

static double survival_uniform(const delay_dist *dist, double x) {
  if (x < dist->uniform.min) return 1;
  if (x >= dist->uniform.max) return 0;
  return (dist->uniform.max - x) / (dist->uniform.max - dist->uniform.min);
}

static gl_status uniform_from_interval(delay_dist *dist, double l, double u, double c,
                                       gl_error *err) {
  dist->uniform.min = l - tail_of(c) * (u - l) / c;
  dist->uniform.max = u + tail_of(c) * (u - l) / c;
  if (dist->uniform.min >= 0) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "a uniform distribution holding this interval would begin at %g, below 0",
                 dist->uniform.min);
}

/* --- exponential --- */

static void read_exponential(cfg_reader *r, delay_dist *dist, const cfg_node *node) {
  (void)node;
  dist->exponential.mean = cfg_positive(r, "mean", 1);
  dist->exponential.shift = cfg_double(r, "shift", 0, 0, DELAY_LONGEST);
}

static double quantile_exponential(const delay_dist *dist, double p) {
  return dist->exponential.shift - dist->exponential.mean * log1p(-p);
}

static double cdf_exponential(const delay_dist *dist, double x) {
  return gsl_cdf_exponential_P(fmax(0, x - dist->exponential.shift), dist->exponential.mean);
}

static double survival_exponential(const delay_dist *dist, double x) {
  return gsl_cdf_exponential_Q(fmax(0, x - dist->exponential.shift), dist->exponential.mean);
}

/* For l = 0, the interval starts at 0 and has probability c below u. */
static gl_status exponential_from_interval(delay_dist *dist, double l, double u, double c,
                                           gl_error *err) {
  const double mean = l == 0 ? -u / log1p(-c) : (u - l) / log_odds_of(c);
  dist->exponential.mean = mean;
  dist->exponential.shift = l == 0 ? 0 : l + mean * log1p(-tail_of(c));
  if (dist->exponential.shift >= 0) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "an exponential distribution holding this interval would begin at %g, below 0",
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

static double cdf_lognormal(const delay_dist *dist, double x) {
  return x <= 0 ? 0 : gsl_cdf_lognormal_P(x, dist->lognormal.mu, dist->lognormal.sigma);
}

static double survival_lognormal(const delay_dist *dist, double x) {
  if (x <= 0) return 1;
  if (dist->lognormal.sigma == 0) return x < exp(dist->lognormal.mu);
  return gsl_cdf_lognormal_Q(x, dist->lognormal.mu, dist->lognormal.sigma);
}

static gl_status lognormal_from_interval(delay_dist *dist, double l, double u, double c,
                                         gl_error *err) {
  (void)err;
  dist->lognormal.mu = (log(l) + log(u)) / 2;
  dist->lognormal.sigma = (log(u) - log(l)) / (2 * gsl_cdf_ugaussian_Qinv(tail_of(c)));
  return GL_OK;
}

/* --- weibull --- */

/* Shapes within these bounds have reliable gamma quantiles. */
static double delay_read_shape(cfg_reader *r) {
  return cfg_double(r, "shape", 1, 0.1, 1e4);
}

static void read_weibull(cfg_reader *r, delay_dist *dist, const cfg_node *node) {
  (void)node;
  dist->weibull.shape = delay_read_shape(r);
  dist->weibull.scale = cfg_positive(r, "scale", 1);
}

static double quantile_weibull(const delay_dist *dist, double p) {
  return dist->weibull.scale * pow(-log1p(-p), 1 / dist->weibull.shape);
}

static double cdf_weibull(const delay_dist *dist, double x) {
  return x <= 0 ? 0 : gsl_cdf_weibull_P(x, dist->weibull.scale, dist->weibull.shape);
}

static double survival_weibull(const delay_dist *dist, double x) {
  return x <= 0 ? 1 : gsl_cdf_weibull_Q(x, dist->weibull.scale, dist->weibull.shape);
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
  dist->gamma.shape = delay_read_shape(r);
  dist->gamma.scale = cfg_positive(r, "scale", 1);
}

/* Log of a first guess for the p-quantile of the gamma distribution with scale 1: Wilson and
 * Hilferty's approximation (the cube root is nearly normal), or the behaviour near 0 if that is not
 * positive. */
static double gamma_guess(double p, double shape) {
  double root = 1 - 1 / (9 * shape) + gsl_cdf_ugaussian_Pinv(p) / (3 * sqrt(shape));
  return root > 0.1 ? log(shape) + 3 * log(root) : (log(p) + gsl_sf_lngamma(shape + 1)) / shape;
}

/* Log of the quantile with lower (or upper) tail probability p of the gamma distribution with
 * scale 1. Uses Newton steps on the logarithm of that tail, which is nearly linear in ln x, within
 * a bracket. GSL's inverse fails for some shapes and calls its error handler, which ends the
 * process unless it was turned off; GSL's distribution functions never fail. */
static double gamma_log_quantile(double p, double shape, int upper_tail) {
  /* Recipes, fits and intervals have shapes from 0.1 to 1e4 (delay_read_shape()). At 0.1, P(X <=
   * e^-700) is 4e-31, and less at larger shapes; samples have p >= 2^-53. A smaller p, as only
   * delay_quantile() can have, gives e^-700. */
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

static double cdf_gamma(const delay_dist *dist, double x) {
  return x <= 0 ? 0 : gsl_cdf_gamma_P(x, dist->gamma.shape, dist->gamma.scale);
}

static double survival_gamma(const delay_dist *dist, double x) {
  return x <= 0 ? 1 : gsl_cdf_gamma_Q(x, dist->gamma.shape, dist->gamma.scale);
}

/* Log of the ratio of upper to lower quantile at shape exp(x), minus the target. */
typedef struct gamma_problem {
  double alpha, log_ratio;
} gamma_problem;

static double gamma_gap(double x, void *problem) {
  const gamma_problem *g = problem;
  double k = exp(x);
  return gamma_log_quantile(g->alpha, k, 1) - gamma_log_quantile(g->alpha, k, 0) - g->log_ratio;
}

/* The ratio decreases from infinity to 1 as the shape grows, so there is one root between the
 * bounds. */
static gl_status gamma_shape(double *shape, double alpha, double log_ratio, gl_error *err) {
  gamma_problem problem = {alpha, log_ratio};
  gsl_function f = {gamma_gap, &problem};
  double lo = log(0.1), hi = log(1e4);
  if (!(gamma_gap(lo, &problem) > 0) || !(gamma_gap(hi, &problem) < 0))
    return gl_fail(err, GL_EINPUT, "no gamma distribution of shape 0.1 to 1e4 holds this interval");
  const gl_status status = root_find(&f, lo, hi, 1e-14, 1e-14, shape, err);
  *shape = exp(*shape);
  return status;
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
  dist->pareto.shape = delay_read_shape(r);
  dist->pareto.scale = cfg_positive(r, "scale", 1);
}

static double quantile_pareto(const delay_dist *dist, double p) {
  return dist->pareto.scale * pow(1 - p, -1 / dist->pareto.shape);
}

static double cdf_pareto(const delay_dist *dist, double x) {
  return x <= dist->pareto.scale ? 0 : gsl_cdf_pareto_P(x, dist->pareto.shape, dist->pareto.scale);
}

static double survival_pareto(const delay_dist *dist, double x) {
  return x <= dist->pareto.scale ? 1 : gsl_cdf_pareto_Q(x, dist->pareto.shape, dist->pareto.scale);
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

/* Linear interpolation between the measured values. */
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
  if (r->status == GL_OK) r->status = delay_parse(&good, good_at, "good", NAN, r->err);
  if (r->status == GL_OK) r->status = delay_parse(&bad, bad_at, "bad", NAN, r->err);
  dist->gilbert_elliott.good = good;
  dist->gilbert_elliott.bad = bad;
  if (r->status == GL_OK &&
      (good->kind == DELAY_GILBERT_ELLIOTT || bad->kind == DELAY_GILBERT_ELLIOTT))
    r->status = cfg_fail(node, r->err, "good and bad must be distributions of a single state");
}

/* Changes the state by the block's second number and samples from the state's distribution with the
 * first. */
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

static const delay_dist_entry table[DELAY_KINDS] = {
    [DELAY_NONE] = {.name = "none", .about = "always 0", .quantile = quantile_none},
    [DELAY_CONSTANT] = {.name = "constant",
                        .about = "always the same",
                        .parameter = {{"value", "s", ""}},
                        .read = read_constant,
                        .quantile = quantile_constant},
    [DELAY_UNIFORM] = {.name = "uniform",
                       .about = "between two bounds",
                       .parameter = {{"min", "s", "0"}, {"max", "s", "1, or min if that is more"}},
                       .read = read_uniform,
                       .quantile = quantile_uniform,
                       .cdf = cdf_uniform,
                       .survival = survival_uniform,
                       .from_interval = uniform_from_interval,
                       .from_zero = true},
    [DELAY_EXPONENTIAL] = {.name = "exponential",
                           .about = "a shift, and beyond it a mean",
                           .parameter = {{"mean", "s", ""}, {"shift", "s", "0"}},
                           .read = read_exponential,
                           .quantile = quantile_exponential,
                           .cdf = cdf_exponential,
                           .survival = survival_exponential,
                           .from_interval = exponential_from_interval,
                           .from_zero = true},
    [DELAY_LOGNORMAL] = {.name = "lognormal",
                         .about = "its logarithm is normal",
                         .parameter = {{"mu", "ln s", "0"}, {"sigma", "ln s", "1"}},
                         .read = read_lognormal,
                         .quantile = quantile_lognormal,
                         .cdf = cdf_lognormal,
                         .survival = survival_lognormal,
                         .from_interval = lognormal_from_interval},
    [DELAY_WEIBULL] = {.name = "weibull",
                       .about = "heavier tail than exponential below shape 1, lighter above",
                       .parameter = SHAPE_AND_SCALE,
                       .read = read_weibull,
                       .quantile = quantile_weibull,
                       .cdf = cdf_weibull,
                       .survival = survival_weibull,
                       .from_interval = weibull_from_interval},
    [DELAY_GAMMA] = {.name = "gamma",
                     .about = "sum of `shape` exponential durations of mean `scale`",
                     .parameter = SHAPE_AND_SCALE,
                     .read = read_gamma,
                     .quantile = quantile_gamma,
                     .cdf = cdf_gamma,
                     .survival = survival_gamma,
                     .from_interval = gamma_from_interval},
    [DELAY_PARETO] = {.name = "pareto",
                      .about = "above `scale`, with a power-law tail of exponent `shape`",
                      .parameter = SHAPE_AND_SCALE,
                      .read = read_pareto,
                      .quantile = quantile_pareto,
                      .cdf = cdf_pareto,
                      .survival = survival_pareto,
                      .from_interval = pareto_from_interval},
    [DELAY_EMPIRICAL] = {.name = "empirical",
                         .about = "linear quantiles of durations measured in a CSV file",
                         .parameter = {{"file", "", ""},
                                       {"column", "", "the first"},
                                       {"scale", "", "1"}},
                         .read = read_empirical,
                         .quantile = quantile_empirical,
                         .fini = fini_empirical},
    [DELAY_GILBERT_ELLIOTT] =
        {.name = "gilbert_elliott",
         .about = "two distributions, and the probability to change between them per draw",
         .parameter =
             {{"good", "", ""}, {"bad", "", ""}, {"to_bad", "", "0.01"}, {"to_good", "", "0.1"}},
         .read = read_gilbert_elliott,
         .draw = draw_gilbert_elliott,
         .fini = fini_gilbert_elliott},
};

const delay_dist_entry *delay_dist_about(delay_kind kind) {
  assert(kind < DELAY_KINDS && table[kind].name != NULL);
  return &table[kind];
}

/* --- common to all distributions --- */

enum { HALVINGS = 80 };

static double limited(const delay_dist *dist, double x) {
  return fmax(0, fmin(fmax(x - dist->offset, dist->clamp_lo), dist->clamp_hi));
}

/* P(X <= y), or P(X < y), before offset and clamp: the largest p whose quantile satisfies it. Uses
 * the quantile instead of the closed form, so that it also works for degenerate parameters (uniform
 * with equal ends) and empirical distributions. */
static double cdf_from_quantile(const delay_dist *dist, double y, bool below) {
  double low = 0, high = 1;
  assert(table[dist->kind].quantile != NULL);
  for (int i = 0; i < HALVINGS; ++i) {
    const double p = (low + high) / 2;
    if (!(p > low && p < high)) break; /* adjacent floating-point numbers */
    const double x = table[dist->kind].quantile(dist, p);
    *((below ? x < y : x <= y) ? &low : &high) = p;
  }
  return (low + high) / 2;
}

/* The stationary probability of the bad state. */
static double bad_probability(const delay_dist *dist) {
  const double to_bad = dist->gilbert_elliott.to_bad, to_good = dist->gilbert_elliott.to_good;
  return to_bad > 0 ? to_bad / (to_bad + to_good) : 0;
}

double delay_cdf(const delay_dist *dist, double x, bool below) {
  const double least = fmax(0, dist->clamp_lo), most = fmax(dist->clamp_hi, least);
  const double y = x + dist->offset;
  if (below ? x <= least : x < least) return 0;
  if (below ? x > most : x >= most) return 1;
  if (dist->kind == DELAY_NONE) return below ? y > 0 : y >= 0;
  if (dist->kind == DELAY_CONSTANT)
    return below ? y > dist->constant.value : y >= dist->constant.value;
  if (dist->kind != DELAY_GILBERT_ELLIOTT) return cdf_from_quantile(dist, y, below);
  const double bad = bad_probability(dist);
  return (1 - bad) * delay_cdf(dist->gilbert_elliott.good, y, below) +
         bad * delay_cdf(dist->gilbert_elliott.bad, y, below);
}

double delay_survival(const delay_dist *dist, double x) {
  assert(dist->kind != DELAY_GILBERT_ELLIOTT);
  const double least = fmax(0, dist->clamp_lo), most = fmax(dist->clamp_hi, least);
  const double y = x + dist->offset;
  if (x < least) return 1;
  if (x >= most) return 0;
  if (table[dist->kind].survival != NULL) return table[dist->kind].survival(dist, y);
  if (dist->kind == DELAY_NONE) return y < 0;
  if (dist->kind == DELAY_CONSTANT) return y < dist->constant.value;
  return 1 - cdf_from_quantile(dist, y, false);
}

double delay_quantile(const delay_dist *dist, double p) {
  if (table[dist->kind].quantile != NULL) return limited(dist, table[dist->kind].quantile(dist, p));
  if (delay_cdf(dist, 0, false) >= p) return 0;
  double low = -60, high = log(DELAY_LONGEST); /* bounds of the logarithm of the quantile */
  for (int i = 0; i < HALVINGS; ++i) {
    const double at = (low + high) / 2;
    *(delay_cdf(dist, exp(at), false) >= p ? &high : &low) = at;
  }
  return exp(high);
}

double delay_draw(const delay_dist *dist, delay_source *source) {
  if (dist->kind == DELAY_NONE) return 0;
  const delay_dist_entry *e = &table[dist->kind];
  rng_words w = rng_block(source->stream, source->index++);
  return limited(dist, e->draw != NULL ? e->draw(dist, source, w)
                                       : e->quantile(dist, rng_u01_53(w.v[0], w.v[1])));
}

bool delay_is_zero(const delay_dist *dist) {
  return dist->kind == DELAY_NONE ||
         (dist->kind == DELAY_CONSTANT && limited(dist, dist->constant.value) <= 0);
}

gl_status delay_from_interval(delay_dist *dist, delay_kind kind, double l, double u, double c,
                              gl_error *err) {
  const delay_dist_entry *e = delay_dist_about(kind);
  memset(dist, 0, sizeof *dist); /* the whole union, which may contain pointers */
  dist->kind = kind;
  dist->clamp_hi = INFINITY;
  if (!(l >= 0 && u > l && isfinite(u) && c > 0 && c < 1))
    return gl_fail(err, GL_EINPUT, "an interval needs 0 <= lower < upper and 0 < confidence < 1");
  if (l == 0 && !e->from_zero)
    return gl_fail(err, GL_EINPUT,
                   "the interval's lower end must be positive for this distribution");
  if (e->from_interval == NULL)
    return gl_fail(err, GL_EINPUT, "a distribution of kind %s has no interval", e->name);
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

/* --- point masses --- */

static size_t add_point_mass(const delay_dist *dist, double at, size_t n, double *value,
                             double *mass) {
  const double own = delay_cdf(dist, at, false) - delay_cdf(dist, at, true);
  size_t place = 0;
  while (place < n && value[place] < at) ++place;
  if (!isfinite(at) || !(own > 1e-9) || n == DELAY_MOST_POINT_MASSES ||
      (place < n && value[place] == at))
    return n;
  memmove(value + place + 1, value + place, (n - place) * sizeof *value);
  memmove(mass + place + 1, mass + place, (n - place) * sizeof *mass);
  value[place] = at;
  mass[place] = own;
  return n + 1;
}

size_t delay_point_masses(const delay_dist *dist, double value[DELAY_MOST_POINT_MASSES],
                          double mass[DELAY_MOST_POINT_MASSES]) {
  const double least = fmax(0, dist->clamp_lo);
  size_t n = add_point_mass(dist, least, 0, value, mass);
  n = add_point_mass(dist, fmax(dist->clamp_hi, least), n, value, mass);
  if (dist->kind == DELAY_CONSTANT)
    n = add_point_mass(dist, dist->constant.value - dist->offset, n, value, mass);
  if (dist->kind != DELAY_GILBERT_ELLIOTT) return n;
  const delay_dist *const inner[] = {dist->gilbert_elliott.good, dist->gilbert_elliott.bad};
  for (int i = 0; i < 2; ++i) {
    double at[DELAY_MOST_POINT_MASSES], inner_mass[DELAY_MOST_POINT_MASSES];
    const size_t found = delay_point_masses(inner[i], at, inner_mass);
    for (size_t k = 0; k < found; ++k)
      n = add_point_mass(dist, at[k] - dist->offset, n, value, mass);
  }
  return n;
}

/* --- text --- */

static void delay_own_text(const delay_dist *dist, char text[DELAY_TEXT_SIZE]) {
  const delay_dist_entry *e = &table[dist->kind];
  const double first = dist->parameter[0], second = dist->parameter[1];
  char good[DELAY_TEXT_SIZE], bad[DELAY_TEXT_SIZE];
  if (dist->kind == DELAY_NONE) {
    snprintf(text, DELAY_TEXT_SIZE, "%s", e->name);
  } else if (dist->kind == DELAY_CONSTANT) {
    snprintf(text, DELAY_TEXT_SIZE, "%s %.4g", e->name, dist->constant.value);
  } else if (dist->kind == DELAY_UNIFORM) {
    snprintf(text, DELAY_TEXT_SIZE, "%s %.4g to %.4g", e->name, first, second);
  } else if (dist->kind == DELAY_EXPONENTIAL && !(second > 0)) {
    snprintf(text, DELAY_TEXT_SIZE, "%s(mean %.4g)", e->name, first);
  } else if (dist->kind == DELAY_EXPONENTIAL) {
    snprintf(text, DELAY_TEXT_SIZE, "%s(mean %.4g, shift %.4g)", e->name, first, second);
  } else if (dist->kind == DELAY_LOGNORMAL) {
    snprintf(text, DELAY_TEXT_SIZE, "%s(mu %.3g, sigma %.3g)", e->name, first, second);
  } else if (dist->kind == DELAY_EMPIRICAL) {
    snprintf(text, DELAY_TEXT_SIZE, "%s (%zu values)", e->name, dist->empirical.n);
  } else if (dist->kind == DELAY_GILBERT_ELLIOTT) {
    delay_text(dist->gilbert_elliott.good, good);
    delay_text(dist->gilbert_elliott.bad, bad);
    snprintf(text, DELAY_TEXT_SIZE, "%.3g %% %.80s, else %.80s", 100 * bad_probability(dist), bad,
             good);
  } else {
    snprintf(text, DELAY_TEXT_SIZE, "%s(shape %.3g, scale %.4g)", e->name, first, second);
  }
}

void delay_text(const delay_dist *dist, char text[DELAY_TEXT_SIZE]) {
  text[0] = 0;
  if (dist == NULL) return;
  delay_own_text(dist, text);
  size_t n = strlen(text);
  if (dist->offset != 0)
    n += (size_t)snprintf(text + n, DELAY_TEXT_SIZE - n, " less %.4g", dist->offset);
  if (n >= DELAY_TEXT_SIZE) return;
  if (isfinite(dist->clamp_hi))
    snprintf(text + n, DELAY_TEXT_SIZE - n, " in %.4g to %.4g", dist->clamp_lo, dist->clamp_hi);
  else if (dist->clamp_lo > 0)
    snprintf(text + n, DELAY_TEXT_SIZE - n, " from %.4g", dist->clamp_lo);
}

/* --- reading a recipe --- */

static gl_status delay_read_interval(cfg_reader *r, delay_dist *dist, delay_kind kind,
                                     double max_delay) {
  const cfg_node *node = cfg_child(r, "interval");
  for (const delay_parameter *p = table[kind].parameter; p->name != NULL; ++p)
    if (cfg_has(r, p->name))
      return r->status = cfg_fail(node, r->err,
                                  "interval and %s both say what the distribution is; give either "
                                  "interval: [lower, upper] or the parameters",
                                  p->name);
  double *ends = NULL, c = cfg_double(r, "confidence", 0.95, 0, 1);
  size_t n = cfg_doubles(r, "interval", &ends, 0, INFINITY);
  if (r->status == GL_OK && n != 2)
    r->status = cfg_fail(node, r->err, "interval needs two numbers, [lower, upper]");
  if (r->status == GL_OK) {
    double u = isnan(max_delay) ? ends[1] : max_delay;
    double least = fmin(u, ends[1]); /* the value that max_delay replaces must still be valid */
    gl_error why = {0};
    if (!(least > ends[0]))
      r->status = cfg_fail(node, r->err,
                           "the interval's upper end (or max_delay) is %g; it must be greater than "
                           "the lower end %g, or max_delay 0 for no delay",
                           least, ends[0]);
    else if (delay_from_interval(dist, kind, ends[0], u, c, &why) != GL_OK)
      r->status = cfg_fail(node, r->err, "%s", why.text);
    dist->clamp_lo = ends[0]; /* discarded unless `clamp` is true */
    dist->clamp_hi = u;
  }
  free(ends);
  return r->status;
}

/* Reads clamp: false (default), true (clamp to the interval) or [lower, upper]. */
static void delay_read_clamp(cfg_reader *r, delay_dist *dist, int has_interval) {
  const cfg_node *node = cfg_child(r, "clamp");
  if (node != NULL && cfg_kind_of(node) == CFG_LIST) {
    double *ends = NULL;
    size_t n = cfg_doubles(r, "clamp", &ends, 0, INFINITY);
    if (r->status == GL_OK && n != 2)
      r->status = cfg_fail(node, r->err, "clamp needs true, false or [lower, upper]");
    else if (r->status == GL_OK && ends[1] < ends[0])
      r->status =
          cfg_fail(node, r->err, "clamp is [lower, upper], and %g is above %g", ends[0], ends[1]);
    if (r->status == GL_OK) dist->clamp_lo = ends[0], dist->clamp_hi = ends[1];
    free(ends);
    return;
  }
  int clamp = cfg_bool(r, "clamp", 0);
  if (clamp && !has_interval && r->status == GL_OK)
    r->status = cfg_fail(node, r->err, "clamp: true needs an interval; give [lower, upper]");
  if (!clamp) dist->clamp_lo = 0, dist->clamp_hi = INFINITY;
}

/* The distribution by its name; a map with only a value is constant. */
static delay_kind delay_read_kind(cfg_reader *r) {
  const char *names[DELAY_KINDS];
  for (int k = 0; k < DELAY_KINDS; ++k) names[k] = delay_dist_about((delay_kind)k)->name;
  const int usual = cfg_has(r, "value") ? DELAY_CONSTANT : DELAY_LOGNORMAL;
  return (delay_kind)cfg_choice(r, "distribution", usual, names, DELAY_KINDS);
}

/* Reads the parameters of the distribution's kind; those without a default are required. */
static void delay_read_parameters(cfg_reader *r, delay_dist *dist, const cfg_node *node) {
  const delay_dist_entry *e = delay_dist_about(dist->kind);
  for (const delay_parameter *p = e->parameter; p->name != NULL; ++p)
    if (r->status == GL_OK && *p->fallback == '\0' && !cfg_has(r, p->name))
      r->status = cfg_fail(node, r->err, "a distribution of kind %s needs %s%s", e->name, p->name,
                           e->from_interval != NULL ? ", or interval: [lower, upper]" : "");
  if (r->status == GL_OK && e->read != NULL) e->read(r, dist, node);
}

/* Reads `offset`. Negative samples become 0; where the least sample is known to be negative, that
 * must be asked for with `clamp`. */
static void delay_read_offset(cfg_reader *r, delay_dist *dist) {
  dist->offset = cfg_double(r, "offset", 0, 0, DELAY_LONGEST);
  if (r->status != GL_OK || cfg_has(r, "clamp") || dist->offset == 0) return;
  const bool is_bounded =
      dist->kind == DELAY_NONE || dist->kind == DELAY_CONSTANT || dist->kind == DELAY_UNIFORM;
  const double least = is_bounded ? table[dist->kind].quantile(dist, 0) - dist->offset : 0;
  if (least < 0)
    r->status = cfg_fail(cfg_child(r, "offset"), r->err,
                         "offset is subtracted from each draw, and the least would be %g; lower "
                         "it, or give clamp: [lower, upper]",
                         least);
}

/* Refuses what max_delay would replace as a whole: it sets the upper end of an interval. A constant
 * that is max_delay is left as it is. */
static gl_status check_max_delay(const delay_dist *dist, const cfg_node *node, double max_delay,
                                 gl_error *err) {
  if (isnan(max_delay) || (dist->kind == DELAY_CONSTANT && dist->constant.value == max_delay))
    return GL_OK;
  if (dist->kind == DELAY_CONSTANT)
    return cfg_fail(node, err,
                    "max_delay (%g) would replace this delay of %g: leave it out, as with "
                    "cluster.max_delay=null on the command line",
                    max_delay, dist->constant.value);
  return cfg_fail(
      node, err,
      "max_delay sets the upper end of an interval; give this distribution as interval: "
      "[lower, upper], or leave max_delay out, as with cluster.max_delay=null on the "
      "command line");
}

/* max_delay (NaN: not given) replaces the interval's upper end; beside other forms it is refused.
 */
static gl_status delay_parse_map(delay_dist *dist, const cfg_node *node, const char *section,
                                 double max_delay, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, section, err);
  delay_kind kind = delay_read_kind(&r);
  dist->kind = kind;
  int has_interval = cfg_has(&r, "interval");
  if (has_interval)
    delay_read_interval(&r, dist, kind, max_delay);
  else
    delay_read_parameters(&r, dist, node);
  delay_read_offset(&r, dist);
  delay_read_clamp(&r, dist, has_interval);
  const gl_status status = cfg_end(&r);
  return status != GL_OK || has_interval ? status : check_max_delay(dist, node, max_delay, err);
}

static gl_status delay_parse_scalar(delay_dist *dist, const cfg_node *node, double max_delay,
                                    gl_error *err) {
  double value = 0;
  if (cfg_is_null(node) || strcmp(cfg_text(node), "none") == 0) {
    if (isnan(max_delay)) return GL_OK;
    return cfg_fail(node, err, "max_delay needs a distribution with an interval here, not none");
  }
  if (!cfg_number(node, &value) || !(value >= 0) || value > DELAY_LONGEST) {
    const char *unit = cfg_unit(node);
    return cfg_fail(node, err,
                    "'%s' is no distribution: a number%s%s from 0 to 1e15, none, or "
                    "{distribution: lognormal, interval: [60, 1800]}",
                    cfg_text(node), unit[0] != '\0' ? " in " : "", unit);
  }
  dist->kind = DELAY_CONSTANT;
  dist->constant.value = value;
  return check_max_delay(dist, node, max_delay, err);
}

gl_status delay_parse(delay_dist **out, const cfg_node *node, const char *section, double max_delay,
                      gl_error *err) {
  *out = NULL;
  if (node == NULL) return gl_fail(err, GL_EINTERNAL, "delay_parse: no node for %s", section);
  delay_dist *dist = calloc(1, sizeof *dist);
  if (dist == NULL) return gl_fail_memory(err, "a delay distribution");
  dist->clamp_hi = INFINITY;
  gl_status status = GL_OK;
  /* max_delay 0 is no delay: the distribution is checked as it stands, and replaced below. */
  double end = max_delay == 0 ? NAN : max_delay;
  if (cfg_kind_of(node) == CFG_MAP)
    status = delay_parse_map(dist, node, section, end, err);
  else if (cfg_kind_of(node) == CFG_SCALAR)
    status = delay_parse_scalar(dist, node, end, err);
  else
    status = cfg_fail(
        node, err,
        "a distribution is a number, none or a map, not a list; as in {distribution: uniform, "
        "interval: [60, 1800]}");
  if (status != GL_OK || max_delay == 0) {
    delay_free(dist);
    if (status != GL_OK) return status;
    dist = delay_constant(0);
    if (dist == NULL) return gl_fail_memory(err, "a delay distribution");
  }
  *out = dist;
  return GL_OK;
}

void delay_read_field(cfg_reader *r, const char *key, const cfg_node *outer, double fallback,
                      double max_delay, delay_dist **out) {
  const cfg_node *node = cfg_child(r, key);
  if (node == NULL) node = outer;
  if (r->status != GL_OK) return;
  if (node != NULL)
    r->status = delay_parse(out, node, key, max_delay, r->err);
  else if ((*out = delay_constant(field_noted(r, key, fallback))) == NULL)
    r->status = gl_fail_memory(r->err, "a distribution");
}

void delay_read(cfg_reader *r, const char *key, const cfg_node *outer, delay_dist **out) {
  delay_read_field(r, key, outer, field_default(r, key), NAN, out);
}
