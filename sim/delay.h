/* Laws of random durations: network delays, generation times, response lengths, times to failure.
 *
 * A law is given by its own parameters or by an interval [l, u] that holds `confidence` c of its
 * mass with equal tails, alpha = (1 - c) / 2 (paper/methods.md §9.1):
 *
 *   law          own parameters        from the interval
 *   none                               (always 0)
 *   constant     value
 *   uniform      min, max              width (u - l) / c, centred
 *   exponential  mean, shift           mean = (u - l) / ln((1-a)/a), shift = l + mean ln(1-a);
 *                                      l = 0: shift 0 and P[X <= u] = c
 *   lognormal    mu, sigma             mu = ln(l u) / 2, sigma = ln(u/l) / (2 z),
 *                                      z the normal quantile of 1 - a
 *   weibull      shape, scale          shape = ln(ln(a) / ln(1-a)) / ln(u/l),
 *                                      scale = l / (-ln(1-a))^(1/shape)
 *   gamma        shape, scale          shape by root finding on the quantiles' ratio
 *   pareto       shape, scale          shape = ln((1-a)/a) / ln(u/l), scale = l (1-a)^(1/shape)
 *   empirical    file, column, scale   linear quantiles of the measured values
 *   gilbert_elliott  good, bad, to_bad, to_good    two laws and the chance to change per draw
 *
 * `offset` is subtracted from the draw and `clamp` limits the result: true clamps to the interval,
 * [l, u] to those bounds. Negative results become 0. Draws are by inverse distribution function
 * from one addressed uniform: the same address under another law is the same quantile, so that
 * sweeps over a law's parameters are paired.
 *
 * Prefix: delay_. Laws are immutable once made.
 */
#ifndef GEPOLAB_SIM_DELAY_H
#define GEPOLAB_SIM_DELAY_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "core/random/rng.h"

typedef enum delay_kind {
  DELAY_NONE,
  DELAY_CONSTANT,
  DELAY_UNIFORM,
  DELAY_EXPONENTIAL,
  DELAY_LOGNORMAL,
  DELAY_WEIBULL,
  DELAY_GAMMA,
  DELAY_PARETO,
  DELAY_EMPIRICAL,
  DELAY_GILBERT_ELLIOTT,
  DELAY_KINDS
} delay_kind;

typedef struct delay_law delay_law;
struct delay_law {
  delay_kind kind;
  double a, b; /* value | min, max | mean, shift | mu, sigma | shape, scale | to_bad, to_good */
  double offset, clamp_lo, clamp_hi;
  double *sample; /* empirical: sorted, owned */
  size_t n_sample;
  delay_law *good, *bad; /* Gilbert-Elliott: owned */
};

/* Where a sequence of draws stands: a pure function of (stream, number of draws so far). */
typedef struct delay_source {
  rng_stream stream;
  uint64_t index;
  int bad; /* Gilbert-Elliott: state of the last draw */
} delay_source;

/* The names of the kinds, in order. */
extern const char *const delay_names[DELAY_KINDS];

/* Reads a law: a number (constant), the word none, or a map. `max_delay` replaces the interval's
 * upper end (or the constant's value) where it is not NaN, and 0 gives none. NULL: GL_EINTERNAL.
 * Errors stand at the node: impossible intervals, files that cannot be read, negative durations. */
gl_status delay_parse(delay_law **out, const cfg_node *node, const char *section, double max_delay,
                      gl_error *err);
/* A law from an interval; u > l >= 0, 0 < c < 1. GL_EINPUT with the reason where no such law
 * exists. Does not clamp. */
gl_status delay_from_interval(delay_law *law, delay_kind kind, double l, double u, double c,
                              gl_error *err);
/* A law of constant value on the heap; NULL if memory is short. */
delay_law *delay_constant(double value);
void delay_free(delay_law *law);

/* The p-quantile, 0 < p < 1, after offset and clamp, of any law but Gilbert-Elliott. */
double delay_quantile(const delay_law *law, double p);
/* The next draw of a source. */
double delay_draw(const delay_law *law, delay_source *source);
/* Whether every draw is 0. */
int delay_is_zero(const delay_law *law);

#endif
