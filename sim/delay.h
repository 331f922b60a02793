/* Distributions of random durations: network delays, generation times, response lengths, times to
 * failure.
 *
 * A distribution is given by its own parameters or by an interval [l, u] that holds `confidence` of
 * its mass with equal tails. Distributions, parameters, quantile functions and the solutions for an
 * interval are those of paper/methods.md §9.1; sim/delay.c has one block and one line of a
 * table for each.
 *
 * `offset` is subtracted from the draw and the clamp limits the result; negative results become 0.
 * A draw is the distribution's quantile function at one addressed uniform number: the same address
 * under another distribution is the same quantile, so that the runs of a sweep over a
 * distribution's parameters are paired.
 *
 * Prefix: delay_. Distributions do not change once they are made. Durations are in simulated
 * seconds, lengths in tokens.
 */
#ifndef GEPOLAB_SIM_DELAY_H
#define GEPOLAB_SIM_DELAY_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "core/random/rng.h"

#include <stdbool.h>

/* Longer durations are refused. Seconds. */
#define DELAY_LONGEST 1e15

/* One for each line of the table in sim/delay.c, in the order in which messages list them. */
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
  union {                /* the parameters of its kind */
    double parameter[2]; /* of constant … pareto, in the order of the table's names */
    struct {
      double value;
    } constant;
    struct {
      double min, max;
    } uniform;
    struct {
      double mean, shift; /* mean of the part above shift */
    } exponential;
    struct {
      double mu, sigma; /* of the logarithm */
    } lognormal;
    struct {
      double shape, scale;
    } weibull, gamma, pareto;
    struct {
      double *value; /* [n] measured durations in ascending order, owned */
      size_t n;
    } empirical;
    struct {
      double to_bad, to_good; /* chance to change the state before a draw */
      delay_dist *good, *bad; /* of one state each, owned */
    } gilbert_elliott;
  };
  double offset, clamp_lo, clamp_hi;
};

/* Where a sequence of draws stands: a pure function of (stream, number of draws so far). */
typedef struct delay_source {
  rng_stream stream;
  uint64_t index;
  int bad; /* Gilbert-Elliott: 1 if the last draw was in the bad state */
} delay_source;

/* Reads a distribution: a number (constant), the word none, or a map {law, its parameters
 * or interval and confidence, offset, clamp}. `max_delay` replaces the interval's upper end (or the
 * constant's value) where it is not NaN, and 0 gives none. node NULL: GL_EINTERNAL. Errors stand at
 * the node: impossible intervals, files that cannot be read, negative durations. */
gl_status delay_parse(delay_dist **out, const cfg_node *node, const char *section, double max_delay,
                      gl_error *err);
/* Reads the distribution under a key of r's section; where it is left out, that of the node
 * `outer`; where that is NULL, the field's default, a constant. Errors stay in the reader. */
void delay_read(cfg_reader *r, const char *key, const cfg_node *outer, delay_dist **out);
/* The same with another default and the max_delay of delay_parse(). */
void delay_read_field(cfg_reader *r, const char *key, const cfg_node *outer, double fallback,
                      double max_delay, delay_dist **out);
/* A distribution from an interval; u > l >= 0, 0 < c < 1. GL_EINPUT with the reason where no such
 * distribution exists. Does not clamp. */
gl_status delay_from_interval(delay_dist *dist, delay_kind kind, double l, double u, double c,
                              gl_error *err);
/* A distribution of constant value on the heap; NULL if memory is short. */
delay_dist *delay_constant(double value);
void delay_free(delay_dist *dist);

/* The p-quantile, 0 < p < 1, after offset and clamp: the least x with cdf(x) >= p. In closed form;
 * of a Gilbert-Elliott distribution found from delay_cdf(), to 1e-13 of its value. */
double delay_quantile(const delay_dist *dist, double p);
/* The cumulative distribution function, P(draw <= x); with `below`, P(draw < x). Of a
 * Gilbert-Elliott distribution in the long run: its states have the probabilities to_good and
 * to_bad over their sum (good alone where both are 0). */
double delay_cdf(const delay_dist *dist, double x, bool below);
/* The survival function, P(draw > x), accurate in heavy tails where 1 - delay_cdf() is not. Not for
 * Gilbert-Elliott, whose draws depend on each other. */
double delay_survival(const delay_dist *dist, double x);
/* Values with a probability of their own: an end of the clamp, 0 or a constant. Ascending into
 * value[], with their probabilities in mass[]; returns how many. Repeated values of an empirical
 * distribution are not among them. */
enum { DELAY_MOST_POINT_MASSES = 8 };
size_t delay_point_masses(const delay_dist *dist, double value[DELAY_MOST_POINT_MASSES],
                          double mass[DELAY_MOST_POINT_MASSES]);
/* The distribution in words, "lognormal(mu 5.82, sigma 0.868) in 60 to 1800"; empty for NULL. */
enum { DELAY_TEXT_SIZE = 240 };
void delay_text(const delay_dist *dist, char text[DELAY_TEXT_SIZE]);
/* The next draw of a source. */
double delay_draw(const delay_dist *dist, delay_source *source);
/* Whether every draw is 0. */
bool delay_is_zero(const delay_dist *dist);

/* --- the table of distributions: all that the program knows of one by its kind --- */

/* A parameter of a distribution as a recipe gives it, for messages and documentation. */
typedef struct delay_parameter {
  const char *name;
  const char *unit;     /* "s" stands for the unit of what is drawn; "" for pure numbers, words */
  const char *fallback; /* the default, "" where it must be given */
} delay_parameter;

enum { DELAY_MOST_PARAMETERS = 4 };

typedef struct delay_dist_entry {
  const char *name;
  const char *about;                                    /* one line */
  delay_parameter parameter[DELAY_MOST_PARAMETERS + 1]; /* ends with name NULL */
  /* Reads the distribution's own parameters; errors stay in the reader. NULL: it has none. */
  void (*read)(cfg_reader *r, delay_dist *dist, const cfg_node *node);
  /* Before offset and clamp: the p-quantile (NULL: draws are not independent, see `draw`), and the
   * closed forms of P(draw <= x) and P(draw > x), each without the rounding of 1 minus the other
   * (NULL: none is needed). */
  double (*quantile)(const delay_dist *dist, double p);
  double (*cdf)(const delay_dist *dist, double x);
  double (*survival)(const delay_dist *dist, double x);
  /* A draw, before offset and clamp, from one block of random numbers; may change the source's
   * state. NULL: the quantile at the block's first number. */
  double (*draw)(const delay_dist *dist, delay_source *source, rng_words words);
  /* Parameters from an interval, as delay_from_interval(), whose arguments have been checked: l is
   * above 0, or 0 where from_zero is set. NULL: the distribution has no interval. */
  gl_status (*from_interval)(delay_dist *dist, double l, double u, double c, gl_error *err);
  bool from_zero;
  /* Releases what the parameters own. NULL: nothing. */
  void (*fini)(delay_dist *dist);
} delay_dist_entry;

/* The line of a kind below DELAY_KINDS. */
const delay_dist_entry *delay_dist_about(delay_kind kind);

/* --- delay_fit.c: distributions from measured values --- */

/* Delay distributions from measured durations or lengths: maximum likelihood for each distribution
 * of a table, how well each fits, and which one a simulation takes.
 *
 * Values may be censored: one at `low` stands for anything up to it and one at `high` for anything
 * from it on (a fetch that ended at a time limit, a response cut at its longest), and its
 * likelihood is the CDF or the survival function there. All others have the density of the
 * distribution. Values rounded to multiples of `resolution` stand for an interval in the test of
 * fit; the likelihood neglects rounding, because the density changes little over one step of a
 * clock that is fit to measure with.
 *
 * The test is that of Kolmogorov and Smirnov with a parametric bootstrap: as the parameters come
 * from the same values, the distance D is held against those of FIT_REPLICATES samples of the
 * fitted distribution, each fitted anew. p = (1 + those no nearer) / (FIT_REPLICATES + 1), so that
 * p <= FIT_ERROR_RATE refuses a distribution that the values do come from in FIT_ERROR_RATE of all
 * cases. It takes at most FIT_MOST_TESTED of the values, drawn without replacement, and is of the
 * fit to those. Of the distributions that the test does not refuse, the one of least AIC is chosen;
 * where it refuses all of them, the empirical distribution. A parameter that is an end of the
 * support, the least or the largest value, counts twice in AIC: its gain in twice the
 * log-likelihood, where it is not needed, is above 4 in 14 % of all samples (2 Exp(1)), as that of
 * a regular one is above 2 in 16
 * %.
 *
 * Prefix: fit_. No function keeps anything. Values are seconds or tokens.
 */

enum { FIT_LEAST_VALUES = 20, FIT_REPLICATES = 199, FIT_MOST_TESTED = 1000 };
#define FIT_ERROR_RATE 0.05

/* The distributions that are tried, in the order of the rows of a fit. */
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
  bool censored; /* the limits are the measurement's, and distributions continue beyond them; else
                    they are the cluster's, and distributions are clamped to them */
} fit_limits;

typedef struct fit_row {
  const char *why_not; /* why there is no such distribution; NULL: there is one */
  delay_dist dist;     /* owns nothing */
  size_t n_parameters;
  const char *name[2];        /* of the parameters, as in a recipe */
  double value[2], error[2];  /* error: the standard error, from the bootstrap */
  double log_likelihood, aic; /* of all values */
  double distance, p;         /* of the values tested */
} fit_row;

typedef struct delay_fit {
  size_t n, n_below, n_above; /* values; those of them at the lower and at the upper limit */
  size_t n_tested;
  double least, median, most;
  double resolution; /* 0: no rounding was found */
  fit_limits limits;
  bool is_constant; /* all values are the same: there is nothing to choose */
  fit_row row[FIT_FAMILIES];
  size_t chosen; /* FIT_FAMILIES: the empirical distribution, or the constant one */
} delay_fit;

/* Fits value[n], which is put into ascending order. what ("delay") stands for the values in
 * messages. GL_EINPUT, with the remedy, for values that are negative or not finite, fewer than
 * FIT_LEAST_VALUES of them that differ from the limits, zeros without a lower limit, and many
 * values at the largest one without an upper limit, unless limits.high is NAN: there is none, then.
 * GL_ENOMEM. */
gl_status fit_values(delay_fit *out, double *value, size_t n, fit_limits limits, uint64_t seed,
                     const char *what, gl_error *err);
/* The name of a family: "shifted exponential". */
const char *fit_family_name(fit_family family);

#endif
