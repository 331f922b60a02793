/* Moments of delay distributions by numeric integration of their survival functions. */
#include "sim/delay_moments.h"

#include <assert.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_integration.h>
#include <math.h>

static const double wanted = 1e-9; /* relative error of an integral */
static const double negligible =
    1e-13; /* integration ends when a further piece adds less than this fraction */
static const double no_mass = 1e-15; /* light tails are cut off at this probability */
enum { MOST_PIECES = 1100, MOST_TERMS = 2000000 };

/* --- one distribution --- */

bool moment_is_constant(const delay_dist *dist, double *value) {
  if (dist->kind == DELAY_GILBERT_ELLIOTT) return 0;
  *value = delay_quantile(dist, 0.5);
  return delay_quantile(dist, no_mass) == *value && delay_quantile(dist, 1 - no_mass) == *value;
}

/* A Pareto distribution has the moment if its shape exceeds the power; the margin of 5 % leaves out
 * integrals that converge too slowly. */
bool moment_is_finite(const delay_dist *dist, int power) {
  if (isfinite(dist->clamp_hi)) return 1;
  if (dist->kind == DELAY_PARETO) return dist->pareto.shape >= 1.05 * power;
  return dist->kind != DELAY_GILBERT_ELLIOTT;
}

/* --- integrals --- */

typedef struct integrand {
  const moment_draws *draws;
  size_t n;
  int power;
} integrand;

/* P(max > t), multiplied by 2t for the second moment. */
static double moment_tail(double t, void *self) {
  const integrand *f = self;
  double log_below = 0;
  for (size_t i = 0; i < f->n; ++i) {
    const moment_draws *d = &f->draws[i];
    const double above = delay_survival(d->dist, (t - d->shift) / d->factor);
    if (above >= 1) return f->power == 2 ? 2 * t : 1;
    log_below += (double)d->count * log1p(-above);
  }
  return -expm1(log_below) * (f->power == 2 ? 2 * t : 1);
}

/* The integrand may jump or bend at the ends of clamps and where distributions begin. Returns the
 * next such point after `from`, at most `to`. */
static double next_bend(const integrand *f, double from, double to) {
  for (size_t i = 0; i < f->n; ++i) {
    const moment_draws *d = &f->draws[i];
    const double begins = delay_quantile(d->dist, no_mass);
    const double place[] = {fmax(0, d->dist->clamp_lo), d->dist->clamp_hi, begins,
                            delay_quantile(d->dist, 1 - no_mass)};
    for (size_t k = 0; k < sizeof place / sizeof *place; ++k) {
      const double at = d->shift + d->factor * place[k];
      if (at > from && at < to) to = at;
    }
  }
  return to;
}

/* The scale of the first piece: the largest median. */
static double moment_middle(const integrand *f) {
  double at = 0;
  for (size_t i = 0; i < f->n; ++i)
    at = fmax(at, f->draws[i].shift + f->draws[i].factor * delay_quantile(f->draws[i].dist, 0.5));
  return at;
}

static gl_status moment_integrate(double *out, integrand *f, gsl_integration_cquad_workspace *space,
                                  gl_error *err) {
  const gsl_function g = {moment_tail, f};
  double sum = 0, from = 0, end = moment_middle(f) > 0 ? moment_middle(f) / 4 : 1e-3;
  for (int piece = 0; piece < MOST_PIECES; ++piece) {
    const double to = next_bend(f, from, end);
    double part = 0, error = 0;
    size_t evaluations = 0;
    const int code = gsl_integration_cquad(&g, from, to, wanted * 1e-3 * sum, wanted / 10, space,
                                           &part, &error, &evaluations);
    if ((code != GSL_SUCCESS && error > wanted * (sum + part)) || !isfinite(part)) break;
    sum += part;
    from = to;
    if (to == end) end *= 2;
    if (moment_tail(to, f) == 0 ||
        (to > moment_middle(f) && moment_tail(to, f) * to < negligible * sum)) {
      *out = sum;
      return GL_OK;
    }
  }
  return gl_fail(err, GL_ENUMERIC,
                 "the mean of a distribution does not come within %g of its value", wanted);
}

static gl_status moment_integral(double *out, integrand f, gl_error *err) {
  gsl_error_handler_t *handler = gsl_set_error_handler_off();
  gsl_integration_cquad_workspace *space = gsl_integration_cquad_workspace_alloc(2000);
  gl_status status =
      space != NULL ? moment_integrate(out, &f, space, err) : gl_fail_memory(err, "an integral");
  gsl_integration_cquad_workspace_free(space);
  gsl_set_error_handler(handler);
  return status;
}

gl_status moment_of(double *out, const delay_dist *dist, int power, gl_error *err) {
  double value;
  assert(power == 1 || power == 2);
  if (moment_is_constant(dist, &value)) {
    *out = power == 1 ? value : value * value;
    return GL_OK;
  }
  const moment_draws one = {dist, 1, 0, 1};
  return moment_integral(out, (integrand){&one, 1, power}, err);
}

gl_status moment_of_largest(double *out, const moment_draws *draws, size_t n, gl_error *err) {
  return moment_integral(out, (integrand){draws, n, 1}, err);
}

gl_status moment_of_longest(double *out, const response_spec *spec, double count, gl_error *err) {
  const double most = floor(spec->max_tokens);
  double sum = 1; /* every response has at least one token */
  for (double k = 1; k < most; ++k) {
    /* A length exceeds k if the sample, rounded half away from zero, does: if it is at least k +
     * 1/2. */
    const double above = delay_survival(spec->lengths, nextafter(k + 0.5, 0));
    const double term = above >= 1 ? 1 : -expm1(count * log1p(-above));
    sum += term;
    if (term * k < negligible * sum) break;
    if (k > MOST_TERMS)
      return gl_fail(err, GL_ENUMERIC,
                     "the mean of the longest response needs more than %d terms; lower max_tokens",
                     MOST_TERMS);
  }
  *out = sum;
  return GL_OK;
}
