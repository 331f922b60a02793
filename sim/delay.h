/* Distributions of random durations: network delays, generation times, response lengths, times to
 * failure.
 *
 * A distribution is given by its parameters, or by an interval [l, u] that contains the probability
 * `confidence` with equal tails. paper/methods.md §9.1 has the distributions, parameters, quantile
 * functions and solutions for intervals; sim/delay.c has one block of functions and one table entry
 * for each.
 *
 * `offset` is subtracted from the sample, `clamp` limits the result, and negative results become 0.
 * Where the least sample of a constant or uniform distribution is negative, `clamp` is required.
 * A sample is the quantile function applied to one addressed uniform number. The same address with
 * another distribution gives the same quantile, so that runs of a sweep over a distribution's
 * parameters are paired.
 *
 * Prefix: delay_. Distributions are immutable. Durations are in simulated seconds, lengths in
 * tokens. */
#ifndef GEPOLAB_SIM_DELAY_H
#define GEPOLAB_SIM_DELAY_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "core/random/rng.h"

#include <stdbool.h>

/* Longer durations are refused. Seconds. */
#define DELAY_LONGEST 1e15

/* Each has an entry in the table of sim/delay.c. Messages list them in this order. */
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

typedef struct delay_dist delay_dist;
struct delay_dist {
  delay_kind kind;
  union { /* the parameters of its kind */
    double
        parameter[2]; /* those of constant … pareto, in the order of the table's parameter names */
    struct {
      double value;
    } constant;
    struct {
      double min, max;
    } uniform;
    struct {
      double mean, shift; /* mean: of the part above shift */
    } exponential;
    struct {
      double mu, sigma; /* mean and standard deviation of the logarithm */
    } lognormal;
    struct {
      double shape, scale;
    } weibull, gamma, pareto;
    struct {
      double *value; /* [n] measured durations in ascending order, owned */
      size_t n;
    } empirical;
    struct {
      double to_bad, to_good; /* probability of changing the state before a sample */
      delay_dist *good, *bad; /* distribution in each state, owned */
    } gilbert_elliott;
  };
  double offset, clamp_lo, clamp_hi;
};

/* A sequence of samples and the position in it. A sample depends on stream and index alone; with
 * Gilbert-Elliott also on `bad`, the state after the samples before it. */
typedef struct delay_source {
  rng_stream stream;
  uint64_t index; /* of the next sample; below 2^48 */
  int bad;        /* Gilbert-Elliott: 1 if the last sample was in the bad state */
} delay_source;

/* Reads a distribution: a number (constant), the word none, or a map {distribution, its parameters
 * or interval and confidence, offset, clamp}. `max_delay` replaces the interval's upper end (or a
 * constant's value) unless it is NaN; 0 means no delay. Errors: GL_ENOMEM, GL_EINPUT with position
 * (impossible interval, unreadable file, negative duration), GL_EINTERNAL (node NULL). */
gl_status delay_parse(delay_dist **out, const cfg_node *node, const char *section, double max_delay,
                      gl_error *err);
/* Reads the distribution under a key of r's section. If the key is missing, reads the node `outer`;
 * if that is NULL, uses the field's default, a constant. Errors are stored in the reader; *out is
 * then NULL, or unchanged if the reader had failed before. The caller frees *out. */
void delay_read(cfg_reader *r, const char *key, const cfg_node *outer, delay_dist **out);
/* The same with another default and with max_delay as in delay_parse(). */
void delay_read_field(cfg_reader *r, const char *key, const cfg_node *outer, double fallback,
                      double max_delay, delay_dist **out);
/* Fits a distribution to an interval; u > l >= 0, 0 < c < 1. Does not set the clamp. Errors:
 * GL_EINPUT with the reason if no such distribution exists. */
gl_status delay_from_interval(delay_dist *dist, delay_kind kind, double l, double u, double c,
                              gl_error *err);
/* A constant distribution on the heap; NULL if out of memory. */
delay_dist *delay_constant(double value);
void delay_free(delay_dist *dist);

/* The p-quantile, 0 < p < 1, after offset and clamp: the least x with cdf(x) >= p. In closed form,
 * except for a Gilbert-Elliott distribution, where it is found from delay_cdf() to a relative error
 * of 1e-13. */
double delay_quantile(const delay_dist *dist, double p);
/* The cumulative distribution function, P(X <= x); with `below`, P(X < x). For a Gilbert-Elliott
 * distribution the stationary one: its states have probabilities to_good and to_bad over their sum
 * (only the good state if both are 0). */
double delay_cdf(const delay_dist *dist, double x, bool below);
/* The survival function, P(X > x), accurate in heavy tails where 1 - delay_cdf() is not. Not for
 * Gilbert-Elliott, whose samples are dependent. */
double delay_survival(const delay_dist *dist, double x);
/* Point masses: ends of the clamp, 0, or a constant. Writes them in ascending order to value[],
 * with their probabilities in mass[]; returns their number. Repeated values of an empirical
 * distribution are not included. */
enum { DELAY_MOST_POINT_MASSES = 8 };
size_t delay_point_masses(const delay_dist *dist, double value[DELAY_MOST_POINT_MASSES],
                          double mass[DELAY_MOST_POINT_MASSES]);
/* Describes the distribution, as in "lognormal(mu 5.82, sigma 0.868) in 60 to 1800"; "" for NULL.
 */
enum { DELAY_TEXT_SIZE = 240 };
void delay_text(const delay_dist *dist, char text[DELAY_TEXT_SIZE]);
/* The next sample of a source. */
double delay_draw(const delay_dist *dist, delay_source *source);
/* Whether all samples are 0. */
bool delay_is_zero(const delay_dist *dist);

/* --- table of distributions --- */

/* A parameter of a distribution in a recipe, for messages and documentation. */
typedef struct delay_parameter {
  const char *name;
  const char *unit;     /* "s" stands for the unit of the sample; "" for pure numbers and words */
  const char *fallback; /* the default, "" if required */
} delay_parameter;

enum { DELAY_MOST_PARAMETERS = 4 };

typedef struct delay_dist_entry {
  const char *name;
  const char *about;                                    /* one line */
  delay_parameter parameter[DELAY_MOST_PARAMETERS + 1]; /* ends with name NULL */
  /* Reads the distribution's own parameters; errors are stored in the reader. NULL: no parameters.
   */
  void (*read)(cfg_reader *r, delay_dist *dist, const cfg_node *node);
  /* Functions before offset and clamp: the p-quantile (NULL: samples are dependent, see `draw`),
   * and closed forms of P(X <= x) and P(X > x), neither computed as 1 minus the other (NULL: not
   * needed). */
  double (*quantile)(const delay_dist *dist, double p);
  double (*cdf)(const delay_dist *dist, double x);
  double (*survival)(const delay_dist *dist, double x);
  /* Samples from one block of random numbers, before offset and clamp; may change the source's
   * state. NULL: the quantile at the block's first number. */
  double (*draw)(const delay_dist *dist, delay_source *source, rng_words words);
  /* Parameters from an interval, see delay_from_interval(), whose arguments have been checked: l >
   * 0, or l = 0 if from_zero is set. NULL: the distribution cannot be given by an interval. */
  gl_status (*from_interval)(delay_dist *dist, double l, double u, double c, gl_error *err);
  bool from_zero;
  /* Frees memory owned by the parameters. NULL: none. */
  void (*fini)(delay_dist *dist);
} delay_dist_entry;

/* The table entry of a kind below DELAY_KINDS. */
const delay_dist_entry *delay_dist_about(delay_kind kind);

/* --- delay_fit.c: distributions from measured values --- */

/* Fits delay distributions to measured durations or lengths: maximum likelihood for each family, a
 * goodness-of-fit test, and a choice for simulation.
 *
 * Values may be censored: a value at `low` means at most `low`, and a value at `high` at least
 * `high` (a fetch that hit a time limit, a response cut at the maximum length). Their likelihood is
 * the CDF or the survival function there. All other values have the density of the distribution.
 * For values rounded to multiples of `resolution`, the test allows for rounding; the likelihood
 * ignores it, because the density changes little over one step of a clock suitable for measuring.
 *
 * The test is Kolmogorov and Smirnov's with a parametric bootstrap, because the parameters are
 * estimated from the same values: the distance D is compared with those of FIT_REPLICATES samples
 * of the fitted distribution, cut by the same limits and fitted again. p = (1 + number of
 * replicates with distance >= D) / (number of replicates + 1), so a true distribution is rejected
 * (p <= FIT_ERROR_RATE) in FIT_ERROR_RATE of all cases. Replicates that cannot be fitted are left
 * out; a distribution for which these are more than half is not taken. The test uses at most
 * FIT_MOST_TESTED of the values, sampled without replacement, and a fit to those.
 *
 * Among the distributions that are not rejected, the one with the least AIC is chosen; if all are
 * rejected, the empirical distribution. A parameter that is an end of the support (estimated by the
 * least or largest value) counts twice in AIC: if it is superfluous, twice its gain in
 * log-likelihood exceeds 4 in 14 % of all samples (2 Exp(1)), and that of a regular parameter
 * exceeds 2 in 16 %.
 *
 * Prefix: fit_. No function has state. Values are seconds or tokens. */

enum { FIT_LEAST_VALUES = 20, FIT_REPLICATES = 199, FIT_MOST_TESTED = 1000 };
#define FIT_ERROR_RATE 0.05

/* The families that are tried, in the order of the rows of a fit. */
typedef enum fit_family {
  FIT_EXPONENTIAL,
  FIT_SHIFTED_EXPONENTIAL,
  FIT_LOGNORMAL,
  FIT_WEIBULL,
  FIT_GAMMA,
  FIT_PARETO,
  FIT_UNIFORM,
  FIT_FAMILIES
} fit_family;

typedef struct fit_limits {
  double low, high; /* 0 and INFINITY: none */
  bool censored; /* limits are those of the measurement, and the distribution continues beyond them;
                    false: limits are those of the cluster, and the distribution is clamped to them
                  */
} fit_limits;

typedef struct fit_row {
  const char *why_not; /* reason why there is no such distribution; NULL: there is one */
  delay_dist dist;     /* owns nothing */
  size_t n_parameters;
  const char *name[2];        /* names of the parameters, as in a recipe */
  double value[2], error[2];  /* error: the standard error, from the bootstrap */
  double log_likelihood, aic; /* over all values */
  double distance, p;         /* D and p of the test, for the tested values */
} fit_row;

typedef struct delay_fit {
  size_t n, n_below, n_above; /* number of values, and of those at the lower and upper limit */
  size_t n_tested;
  double least, median, most;
  double resolution; /* 0: no rounding was detected */
  fit_limits limits;
  bool is_constant; /* all values are equal, so there is nothing to choose */
  fit_row row[FIT_FAMILIES];
  size_t chosen; /* FIT_FAMILIES: the empirical distribution, or the constant one */
} delay_fit;

/* Fits value[n], which is sorted in place. what ("delay") names the values in messages. Errors:
 * GL_ENOMEM, or GL_EINPUT with the fix: values that are negative or not finite, fewer than
 * FIT_LEAST_VALUES of them that differ from the limits, zeros without a lower limit, or many values
 * equal to the largest one without an upper limit. limits.high NAN states that there is no upper
 * limit. */
gl_status fit_values(delay_fit *out, double *value, size_t n, fit_limits limits, uint64_t seed,
                     const char *what, gl_error *err);
/* The name of a family: "shifted exponential". */
const char *fit_family_name(fit_family family);

#endif
