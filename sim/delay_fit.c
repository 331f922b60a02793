/* Maximum likelihood for delay distributions, from sufficient statistics where possible; the
 * goodness-of-fit test; the choice. */
#include "sim/delay.h"

#include <assert.h>
#include <float.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_multimin.h>
#include <gsl/gsl_sf_gamma.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double longest = 1e15; /* equal to DELAY_LONGEST of sim/delay.h */
static const double shape_least = 0.1, shape_most = 1e4;

/* Values in ascending order: n_below at the lower limit, the inner ones, n_above at the upper
 * limit; and sums over the inner values. */
typedef struct sample {
  const double *all; /* [n] the values, ascending */
  size_t n, n_below, n_above;
  double low, high;
  double sum, sum_log, sum_log2;
} sample;

static const double *inner_of(const sample *s) {
  return s->all + s->n_below;
}

static size_t n_inner(const sample *s) {
  return s->n - s->n_below - s->n_above;
}

static sample sample_of(const double *sorted, size_t n, const fit_limits *limits) {
  sample s = {.all = sorted, .n = n, .low = limits->low, .high = limits->high};
  while (s.low > 0 && s.n_below < n && sorted[s.n_below] <= s.low) ++s.n_below;
  while (s.n_above < n - s.n_below && sorted[n - 1 - s.n_above] >= s.high) ++s.n_above;
  for (size_t i = 0; i < n_inner(&s); ++i) {
    const double x = inner_of(&s)[i], l = log(x);
    s.sum += x;
    s.sum_log += l;
    s.sum_log2 += l * l;
  }
  return s;
}

/* Starting points of searches: means and deviations, with censored values replaced by the limits.
 */
static double mean_of(const sample *s) {
  const double at_high = s->n_above > 0 ? (double)s->n_above * s->high : 0;
  return (s->sum + (double)s->n_below * s->low + at_high) / (double)s->n;
}

static double mean_log_of(const sample *s) {
  const double low = s->n_below > 0 ? (double)s->n_below * log(s->low) : 0;
  const double high = s->n_above > 0 ? (double)s->n_above * log(s->high) : 0;
  return (s->sum_log + low + high) / (double)s->n;
}

static double deviation_log_of(const sample *s) {
  const double mean = mean_log_of(s), m = (double)n_inner(s);
  double sum = s->sum_log2 - 2 * mean * s->sum_log + m * mean * mean;
  if (s->n_below > 0) sum += (double)s->n_below * pow(log(s->low) - mean, 2);
  if (s->n_above > 0) sum += (double)s->n_above * pow(log(s->high) - mean, 2);
  return sqrt(fmax(sum / (double)s->n, 0));
}

static bool has_censored(const sample *s) {
  return s->n_below + s->n_above > 0;
}

/* --- the distributions --- */
/* Families with a density that is smooth in the parameters are fitted by a search over x[], in
 * which the log-likelihood is nearly quadratic. Families whose support begins at the least value
 * have a closed form. */

typedef struct family {
  const char *name;
  delay_kind kind;
  size_t n; /* number of parameters */
  size_t
      ends; /* number of parameters that are an end of the support (the least or largest value) */
  const char *names[2];
  void (*start)(const sample *s, double x[2]); /* starting point of the search; NULL: closed form */
  void (*set)(delay_dist *dist, const double x[2]);               /* sets the parameters from x */
  double (*log_density)(const delay_dist *dist, const sample *s); /* summed over the inner values */
  const char *(*solve)(delay_dist *dist,
                       const sample *s); /* the closed form; returns NULL, or why there is none */
} family;

static void start_exponential(const sample *s, double x[2]) {
  x[0] = log(mean_of(s));
  x[1] = 0;
}

static void set_exponential(delay_dist *dist, const double x[2]) {
  dist->exponential.mean = exp(x[0]);
}

static double density_exponential(const delay_dist *dist, const sample *s) {
  const double m = dist->exponential.mean;
  return -(double)n_inner(s) * log(m) - s->sum / m;
}

/* Closed forms: the least value is the lower end of the support. Values at the upper limit enter
 * with their survival function; values at the lower one would hide the end. */
static const char takes_no_values_below[] = "values at the lower limit hide its least value";

static const char *solve_shifted(delay_dist *dist, const sample *s) {
  if (s->n_below > 0) return takes_no_values_below;
  dist->exponential.shift = s->all[0];
  dist->exponential.mean = (mean_of(s) - s->all[0]) * ((double)s->n / (double)n_inner(s));
  return NULL;
}

static double density_shifted(const delay_dist *dist, const sample *s) {
  const double m = dist->exponential.mean, n = (double)n_inner(s);
  return -n * log(m) - (s->sum - n * dist->exponential.shift) / m;
}

static void start_lognormal(const sample *s, double x[2]) {
  x[0] = mean_log_of(s);
  x[1] = log(deviation_log_of(s));
}

static void set_lognormal(delay_dist *dist, const double x[2]) {
  dist->lognormal.mu = x[0];
  dist->lognormal.sigma = exp(x[1]);
}

static double density_lognormal(const delay_dist *dist, const sample *s) {
  const double mu = dist->lognormal.mu, sigma = dist->lognormal.sigma, n = (double)n_inner(s);
  const double squares = s->sum_log2 - 2 * mu * s->sum_log + n * mu * mu;
  return -n * log(sigma * sqrt(2 * M_PI)) - s->sum_log - squares / (2 * sigma * sigma);
}

/* The logarithm of a Weibull variable has standard deviation pi / (sqrt(6) shape) and mean ln scale
 * - gamma / shape, gamma being Euler's constant. */
static void start_weibull(const sample *s, double x[2]) {
  const double shape = M_PI / (sqrt(6) * deviation_log_of(s));
  x[0] = log(fmin(fmax(shape, 1.01 * shape_least), 0.99 * shape_most));
  x[1] = mean_log_of(s) + 0.57721566490153286 / exp(x[0]);
}

static void set_weibull(delay_dist *dist, const double x[2]) {
  dist->weibull.shape = exp(x[0]);
  dist->weibull.scale = exp(x[1]);
}

static double density_weibull(const delay_dist *dist, const sample *s) {
  const double k = dist->weibull.shape, log_scale = log(dist->weibull.scale);
  double powers = 0;
  for (size_t i = 0; i < n_inner(s); ++i) powers += pow(inner_of(s)[i] / dist->weibull.scale, k);
  return (double)n_inner(s) * (log(k) - k * log_scale) + (k - 1) * s->sum_log - powers;
}

/* Minka's approximation of the shape from ln(mean) - mean(ln). x[1] is the log of the mean, which
 * is nearly independent of the shape. */
static void start_gamma(const sample *s, double x[2]) {
  const double gap = fmax(log(mean_of(s)) - mean_log_of(s), 1e-12);
  const double shape = (3 - gap + sqrt((gap - 3) * (gap - 3) + 24 * gap)) / (12 * gap);
  x[0] = log(fmin(fmax(shape, 1.01 * shape_least), 0.99 * shape_most));
  x[1] = log(mean_of(s));
}

static void set_gamma(delay_dist *dist, const double x[2]) {
  dist->gamma.shape = exp(x[0]);
  dist->gamma.scale = exp(x[1] - x[0]);
}

static double density_gamma(const delay_dist *dist, const sample *s) {
  const double k = dist->gamma.shape, scale = dist->gamma.scale;
  return (k - 1) * s->sum_log - s->sum / scale -
         (double)n_inner(s) * (gsl_sf_lngamma(k) + k * log(scale));
}

static const char *solve_pareto(delay_dist *dist, const sample *s) {
  if (s->n_below > 0) return takes_no_values_below;
  const double at_high = s->n_above > 0 ? (double)s->n_above * log(s->high) : 0;
  dist->pareto.scale = s->all[0];
  dist->pareto.shape = (double)n_inner(s) / (s->sum_log + at_high - (double)s->n * log(s->all[0]));
  if (dist->pareto.shape >= shape_least && dist->pareto.shape <= shape_most) return NULL;
  return "its shape would be outside of 0.1 to 10000";
}

static double density_pareto(const delay_dist *dist, const sample *s) {
  const double k = dist->pareto.shape, n = (double)n_inner(s);
  return n * (log(k) + k * log(dist->pareto.scale)) - (k + 1) * s->sum_log;
}

static const char *solve_uniform(delay_dist *dist, const sample *s) {
  if (s->n_below > 0) return takes_no_values_below;
  const double low = s->all[0];
  dist->uniform.min = low;
  dist->uniform.max =
      s->n_above > 0 ? low + (s->high - low) * (double)s->n / (double)n_inner(s) : s->all[s->n - 1];
  return NULL;
}

static double density_uniform(const delay_dist *dist, const sample *s) {
  return -(double)n_inner(s) * log(dist->uniform.max - dist->uniform.min);
}

static const family families[FIT_FAMILIES] = {
    [FIT_EXPONENTIAL] = {.name = "exponential",
                         .kind = DELAY_EXPONENTIAL,
                         .n = 1,
                         .ends = 0,
                         .names = {"mean", NULL},
                         .start = start_exponential,
                         .set = set_exponential,
                         .log_density = density_exponential},
    [FIT_SHIFTED_EXPONENTIAL] = {.name = "shifted exponential",
                                 .kind = DELAY_EXPONENTIAL,
                                 .n = 2,
                                 .ends = 1,
                                 .names = {"mean", "shift"},
                                 .log_density = density_shifted,
                                 .solve = solve_shifted},
    [FIT_LOGNORMAL] = {.name = "lognormal",
                       .kind = DELAY_LOGNORMAL,
                       .n = 2,
                       .ends = 0,
                       .names = {"mu", "sigma"},
                       .start = start_lognormal,
                       .set = set_lognormal,
                       .log_density = density_lognormal},
    [FIT_WEIBULL] = {.name = "weibull",
                     .kind = DELAY_WEIBULL,
                     .n = 2,
                     .ends = 0,
                     .names = {"shape", "scale"},
                     .start = start_weibull,
                     .set = set_weibull,
                     .log_density = density_weibull},
    [FIT_GAMMA] = {.name = "gamma",
                   .kind = DELAY_GAMMA,
                   .n = 2,
                   .ends = 0,
                   .names = {"shape", "scale"},
                   .start = start_gamma,
                   .set = set_gamma,
                   .log_density = density_gamma},
    [FIT_PARETO] = {.name = "pareto",
                    .kind = DELAY_PARETO,
                    .n = 2,
                    .ends = 1,
                    .names = {"shape", "scale"},
                    .log_density = density_pareto,
                    .solve = solve_pareto},
    [FIT_UNIFORM] = {.name = "uniform",
                     .kind = DELAY_UNIFORM,
                     .n = 2,
                     .ends = 2,
                     .names = {"min", "max"},
                     .log_density = density_uniform,
                     .solve = solve_uniform},
};

const char *fit_family_name(fit_family f) {
  assert(f < FIT_FAMILIES);
  return families[f].name;
}

/* The parameters, in the order of their names. */
static void parameters_of(const family *f, const delay_dist *dist, double value[2]) {
  value[0] = dist->parameter[0];
  value[1] = f->n == 2 ? dist->parameter[1] : 0;
}

static double cdf_of(const delay_dist *dist, double x) {
  return delay_dist_about(dist->kind)->cdf(dist, x);
}

static double survival_of(const delay_dist *dist, double x) {
  return delay_dist_about(dist->kind)->survival(dist, x);
}

/* --- likelihood --- */

static double log_likelihood(const family *f, const delay_dist *dist, const sample *s) {
  double sum = f->log_density(dist, s);
  if (s->n_below > 0) sum += (double)s->n_below * log(fmax(cdf_of(dist, s->low), DBL_MIN));
  if (s->n_above > 0) sum += (double)s->n_above * log(fmax(survival_of(dist, s->high), DBL_MIN));
  return sum;
}

typedef struct problem {
  const family *f;
  const sample *s;
} problem;

/* Whether the parameters are valid in a recipe. */
static bool is_allowed(const family *f, const delay_dist *dist) {
  double v[2];
  parameters_of(f, dist, v);
  if (dist->kind == DELAY_LOGNORMAL) return fabs(v[0]) <= 100 && v[1] > 0 && v[1] <= 20;
  if (dist->kind == DELAY_WEIBULL || dist->kind == DELAY_GAMMA)
    return v[0] >= shape_least && v[0] <= shape_most && v[1] > 0 && v[1] <= longest;
  return dist->kind != DELAY_EXPONENTIAL || (v[0] > 0 && v[0] <= longest);
}

/* Whether the search ended at a bound of the shape: the optimum is beyond it. */
static bool is_at_bound(const delay_dist *dist) {
  if (dist->kind != DELAY_WEIBULL && dist->kind != DELAY_GAMMA) return 0;
  const double shape = dist->kind == DELAY_WEIBULL ? dist->weibull.shape : dist->gamma.shape;
  return shape < 1.001 * shape_least || shape > 0.98 * shape_most;
}

/* GSL's simplex only accepts finite numbers. */
static double minus_log_likelihood(const gsl_vector *at, void *of) {
  static const double impossible = 1e300;
  const problem *p = of;
  const double x[2] = {gsl_vector_get(at, 0), at->size > 1 ? gsl_vector_get(at, 1) : 0};
  delay_dist dist = {.kind = p->f->kind, .clamp_hi = INFINITY};
  p->f->set(&dist, x);
  if (!is_allowed(p->f, &dist)) return impossible;
  const double value = -log_likelihood(p->f, &dist, p->s);
  return isfinite(value) ? value : impossible;
}

/* Nelder-Mead simplex until its size is 1e-5 in the logarithms of the parameters (in mu of a
 * lognormal distribution). This is below the standard error of a shape for up to 10^10 values. */
static gl_status fit_search(delay_dist *dist, const family *f, const sample *s, gl_error *err) {
  problem p = {f, s};
  gsl_multimin_function target = {minus_log_likelihood, f->n, &p};
  gsl_vector *x = gsl_vector_alloc(f->n), *step = gsl_vector_alloc(f->n);
  gsl_multimin_fminimizer *m =
      gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, f->n);
  gl_status status = x && step && m ? GL_OK : gl_fail_memory(err, "a fit");
  if (status == GL_OK) {
    double at[2];
    f->start(s, at);
    for (size_t k = 0; k < f->n; ++k) gsl_vector_set(x, k, at[k]);
    gsl_vector_set_all(step, 0.05);
    bool going = gsl_multimin_fminimizer_set(m, &target, x, step) == GSL_SUCCESS;
    for (int i = 0; i < 400 && going; ++i)
      going = gsl_multimin_fminimizer_iterate(m) == GSL_SUCCESS &&
              gsl_multimin_fminimizer_size(m) > 1e-5;
    const gsl_vector *best = gsl_multimin_fminimizer_x(m);
    const double found[2] = {gsl_vector_get(best, 0), f->n > 1 ? gsl_vector_get(best, 1) : 0};
    f->set(dist, found);
  }
  gsl_multimin_fminimizer_free(m);
  gsl_vector_free(step);
  gsl_vector_free(x);
  return status;
}

/* Finds the distribution with maximum likelihood; sets *why_not if a recipe cannot express it. */
static gl_status fit_maximise(delay_dist *dist, const char **why_not, const family *f,
                              const sample *s, gl_error *err) {
  *dist = (delay_dist){.kind = f->kind, .clamp_hi = INFINITY};
  *why_not = NULL;
  if (f->solve != NULL) {
    *why_not = f->solve(dist, s);
    return GL_OK;
  }
  gl_status status = fit_search(dist, f, s, err);
  if (status == GL_OK && (!is_allowed(f, dist) || is_at_bound(dist)))
    *why_not = "its parameters would be outside of what recipes take";
  return status;
}

/* --- the test of fit --- */

/* sup |F_n - F| between the limits. A value rounded to a resolution r represents all values up to
 * r/2 away, so only these edges are compared. */
static double fit_distance(const delay_dist *dist, const sample *s, double resolution) {
  const double n = (double)s->n, *x = s->all;
  double most = s->n_below > 0 ? fabs((double)s->n_below / n - cdf_of(dist, s->low)) : 0;
  for (size_t i = s->n_below; i < s->n - s->n_above; ++i) {
    const bool last = i + 1 == s->n || x[i + 1] > x[i];
    if (resolution > 0 && !last) continue;
    const double edge = fmin(x[i] + resolution / 2, s->high);
    const double below = cdf_of(dist, edge);
    most = fmax(most, fabs((double)(i + 1) / n - below));
    if (!(resolution > 0)) most = fmax(most, fabs(below - (double)i / n));
  }
  if (s->n_above > 0) most = fmax(most, fabs((double)s->n_above / n - survival_of(dist, s->high)));
  return most;
}

/* Rounds like the measurement; values that would become 0 become half a step. */
static double as_measured(double x, double resolution, const fit_limits *limits) {
  if (resolution > 0) x = fmax(resolution * round(x / resolution), resolution / 2);
  return fmin(fmax(x, limits->low), limits->high);
}

/* A parametric bootstrap: samples of n values from a fitted distribution, each fitted again. */
typedef struct bootstrap {
  const family *f;
  const fit_row *row; /* the fit; row->distance is compared with those of the samples */
  const delay_fit *about;
  double *draw; /* [n] workspace */
  size_t n;
  double squares[2];        /* summed squared deviations of the parameters from the fit */
  size_t n_fitted, farther; /* samples that could be fitted; of these, at least as far away */
} bootstrap;

/* Samples from the fitted distribution once and fits the sample again. */
static gl_status fit_replicate(bootstrap *to, rng_stream stream, gl_error *err) {
  delay_source source = {.stream = stream};
  const fit_row *row = to->row;
  const delay_fit *about = to->about;
  delay_dist free_dist = row->dist, again;
  const char *why_not = NULL;
  free_dist.clamp_lo = 0;
  free_dist.clamp_hi = INFINITY;
  for (size_t i = 0; i < to->n; ++i)
    to->draw[i] = as_measured(delay_draw(&free_dist, &source), about->resolution, &about->limits);
  gsl_sort(to->draw, 1, to->n);
  const sample s = sample_of(to->draw, to->n, &about->limits);
  if (n_inner(&s) < 2 || !(inner_of(&s)[n_inner(&s) - 1] > inner_of(&s)[0])) return GL_OK;
  gl_status status = fit_maximise(&again, &why_not, to->f, &s, err);
  if (status != GL_OK || why_not != NULL) return status;
  double v[2];
  parameters_of(to->f, &again, v);
  for (int k = 0; k < 2; ++k) to->squares[k] += (v[k] - row->value[k]) * (v[k] - row->value[k]);
  ++to->n_fitted;
  to->farther += fit_distance(&again, &s, about->resolution) >= row->distance;
  return GL_OK;
}

/* Computes D, p and standard errors from the tested values; standard errors are scaled to all
 * about->n values. */
static gl_status test_row(fit_row *row, const family *f, const sample *tested,
                          const delay_fit *about, rng_stream stream, gl_error *err) {
  fit_row own = *row; /* fitted only to the tested values */
  gl_status status = fit_maximise(&own.dist, &own.why_not, f, tested, err);
  if (status != GL_OK) return status;
  row->why_not = own.why_not;
  if (own.why_not != NULL) return GL_OK;
  parameters_of(f, &own.dist, own.value);
  row->distance = own.distance = fit_distance(&own.dist, tested, about->resolution);
  double *draw = malloc(tested->n * sizeof *draw);
  if (draw == NULL) return gl_fail_memory(err, "a bootstrap");
  bootstrap to = {.f = f, .row = &own, .about = about, .draw = draw, .n = tested->n};
  for (uint64_t b = 0; b < FIT_REPLICATES && status == GL_OK; ++b) {
    stream.entity = stream.entity >> 32 << 32 | b;
    status = fit_replicate(&to, stream, err);
  }
  free(draw);
  if (to.n_fitted * 2 < FIT_REPLICATES)
    row->why_not = "most samples of it cannot be fitted again, so it has no test";
  row->p = (double)(1 + to.farther) / (double)(1 + to.n_fitted);
  const double ratio = sqrt((double)tested->n / (double)about->n), n = (double)to.n_fitted;
  for (int k = 0; k < 2; ++k) row->error[k] = ratio * sqrt(to.squares[k] / fmax(n, 1));
  return status;
}

/* --- checks of the values --- */

/* The largest power of ten of which all values are multiples, if many values are equal. */
static double resolution_of(const double *x, size_t n) {
  size_t equal = 0;
  for (size_t i = 1; i < n; ++i) equal += !(x[i] > x[i - 1]);
  if (equal * 20 <= n) return 0;
  for (int power = 3; power >= -9; --power) {
    const double step = pow(10, power);
    size_t i = 0;
    while (i < n && fabs(x[i] / step - round(x[i] / step)) < 1e-6) ++i;
    if (i == n) return step;
  }
  return 0;
}

static gl_status fit_check_values(const double *x, size_t n, const char *what, gl_error *err) {
  for (size_t i = 0; i < n; ++i)
    if (!(x[i] >= 0 && x[i] <= longest))
      return gl_fail(err, GL_EINPUT,
                     "value %zu of %s is %g; measured durations and lengths are numbers from 0 to "
                     "1e15; take it out, or say what went wrong in the log",
                     i + 1, what, x[i]);
  return GL_OK;
}

/* Counts the values equal to the largest and to the next smaller one. */
static void top_counts(const double *x, size_t n, size_t *largest, size_t *next) {
  *largest = *next = 0;
  while (*largest < n && x[n - 1 - *largest] == x[n - 1]) ++*largest;
  const size_t rest = n - *largest;
  while (*next < rest && x[rest - 1 - *next] == x[rest - 1]) ++*next;
}

/* A continuous distribution does not accumulate values at its maximum; a limit does. */
static gl_status check_top(const double *x, size_t n, const char *what, gl_error *err) {
  size_t largest, next;
  top_counts(x, n, &largest, &next);
  if (largest < 5 || largest * 100 <= n || largest <= 2 * next) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "%zu of %zu values of %s are the largest one, %g, as where a limit cut them; say "
                 "--at-most %s=%g where it did, else --at-most %s=none",
                 largest, n, what, x[n - 1], what, x[n - 1], what);
}

static gl_status check_sample(const sample *s, const char *what, gl_error *err) {
  size_t zeros = 0;
  while (zeros < s->n && s->all[zeros] == 0) ++zeros;
  if (zeros > 0 && !(s->low > 0))
    return gl_fail(err, GL_EINPUT,
                   "%zu of %zu values of %s are 0, which continuous distributions do not have; say "
                   "--at-least %s=X, X being the shortest that the log distinguishes from 0",
                   zeros, s->n, what, what);
  if (n_inner(s) < FIT_LEAST_VALUES)
    return gl_fail(err, GL_EINPUT,
                   "%s has %zu values%s, and a fit needs %d; give more of the log, or the "
                   "distribution {distribution: "
                   "empirical, file: …}",
                   what, n_inner(s), has_censored(s) ? " inside of its limits" : "",
                   FIT_LEAST_VALUES);
  if (!(inner_of(s)[n_inner(s) - 1] > inner_of(s)[0]))
    return gl_fail(
        err, GL_EINPUT,
        "all values of %s inside of its limits are %g; no distribution has one value and limits",
        what, inner_of(s)[0]);
  return GL_OK;
}

static gl_status check_limits(const fit_limits *l, const char *what, gl_error *err) {
  if (l->low >= 0 && l->low < l->high) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "the limits of %s are %g and %g; the lower one must be 0 or more and below the "
                 "upper one",
                 what, l->low, l->high);
}

/* --- main procedure --- */

/* Samples values without replacement, in ascending order (selection sampling, Knuth's algorithm S).
 */
static void fit_thin(double *to, size_t n_to, const double *from, size_t n, rng_stream stream) {
  size_t taken = 0;
  for (size_t i = 0; i < n && taken < n_to; ++i) {
    const rng_words w = rng_block(stream, i);
    if ((double)(n - i) * rng_u01_53(w.v[0], w.v[1]) < (double)(n_to - taken))
      to[taken++] = from[i];
  }
}

static gl_status fit_family_to(fit_row *row, fit_family k, const sample *all, const sample *tested,
                               const delay_fit *about, uint64_t seed, gl_error *err) {
  const family *f = &families[k];
  *row = (fit_row){.n_parameters = f->n, .name = {f->names[0], f->names[1]}};
  gl_status status = fit_maximise(&row->dist, &row->why_not, f, all, err);
  if (status != GL_OK || row->why_not != NULL) return status;
  parameters_of(f, &row->dist, row->value);
  row->log_likelihood = log_likelihood(f, &row->dist, all);
  /* Where values are at the upper limit, a largest value is not what estimates an end. */
  const size_t ends = all->n_above > 0 && f->ends > 1 ? 1 : f->ends;
  row->aic = 2 * (double)(f->n + ends) - 2 * row->log_likelihood;
  const uint64_t entity = (uint64_t)(k + 1) << 32;
  status = test_row(row, f, tested, about, rng_stream_at(seed, RNG_BOOTSTRAP, entity), err);
  if (!about->limits.censored) {
    row->dist.clamp_lo = about->limits.low;
    row->dist.clamp_hi = about->limits.high;
  }
  return status;
}

static size_t fit_choose(const delay_fit *of) {
  size_t best = FIT_FAMILIES;
  for (size_t k = 0; k < FIT_FAMILIES; ++k) {
    const fit_row *r = &of->row[k];
    if (r->why_not != NULL || !(r->p > FIT_ERROR_RATE)) continue;
    if (best == FIT_FAMILIES || r->aic < of->row[best].aic) best = k;
  }
  return best;
}

static gl_status fit_families(delay_fit *out, const double *sorted, uint64_t seed, gl_error *err) {
  const sample all = sample_of(sorted, out->n, &out->limits);
  double *kept = NULL;
  out->n_tested = out->n < FIT_MOST_TESTED ? out->n : FIT_MOST_TESTED;
  if (out->n_tested < out->n) {
    kept = malloc(out->n_tested * sizeof *kept);
    if (kept == NULL) return gl_fail_memory(err, "a fit");
    fit_thin(kept, out->n_tested, sorted, out->n, rng_stream_at(seed, RNG_BOOTSTRAP, 0));
  }
  const sample tested = sample_of(kept != NULL ? kept : sorted, out->n_tested, &out->limits);
  gl_status status = GL_OK;
  for (int k = 0; k < FIT_FAMILIES && status == GL_OK; ++k)
    status = fit_family_to(&out->row[k], (fit_family)k, &all, &tested, out, seed, err);
  free(kept);
  out->chosen = fit_choose(out);
  return status;
}

gl_status fit_values(delay_fit *out, double *value, size_t n, fit_limits limits, uint64_t seed,
                     const char *what, gl_error *err) {
  const bool sure = isnan(limits.high); /* the caller states that there is no upper limit */
  if (sure) limits.high = INFINITY;
  *out = (delay_fit){.n = n, .limits = limits, .chosen = FIT_FAMILIES};
  gl_status status = check_limits(&limits, what, err);
  if (status == GL_OK) status = fit_check_values(value, n, what, err);
  if (status != GL_OK) return status;
  gsl_sort(value, 1, n);
  const sample s = sample_of(value, n, &limits);
  out->n_below = s.n_below;
  out->n_above = s.n_above;
  if (n > 0) {
    out->least = value[0];
    out->median = gsl_stats_median_from_sorted_data(value, 1, n);
    out->most = value[n - 1];
  }
  if (n >= FIT_LEAST_VALUES && !has_censored(&s) && value[0] == value[n - 1]) {
    out->is_constant = true;
    return GL_OK;
  }
  status = check_sample(&s, what, err);
  if (status == GL_OK && !sure && isinf(limits.high)) status = check_top(value, n, what, err);
  if (status != GL_OK) return status;
  out->resolution = resolution_of(inner_of(&s), n_inner(&s));
  return fit_families(out, value, seed, err);
}
