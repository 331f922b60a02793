/* Effects of two-level factors on the outcomes of runs: main effects and two-factor interactions,
 * by least squares over the runs of a study, with seeds as blocks.
 *
 * Meant for factorial designs (sweep.factorial), and applicable to any study in which some fields
 * have two values. A main effect is the change of a response when a factor goes from its low to its
 * high value, averaged over the other factors. An interaction is half the change of one factor's
 * effect when the other goes from low to high (Box, Hunter and Hunter, Statistics for
 * Experimenters, ch. 5). Intervals are Student's t intervals from the residuals. q is the false
 * discovery rate at which an effect would be reported (Benjamini and Hochberg 1995), over the
 * effects on one response. */
#ifndef GEPOLAB_ANALYSIS_EFFECTS_H
#define GEPOLAB_ANALYSIS_EFFECTS_H

#include "analysis/outcome.h"
#include "analysis/results.h"
#include "analysis/statistics.h"
#include "core/base/arena.h"
#include "core/base/table.h"

#include <stddef.h>

/* The response variable of a fit. */
typedef enum effect_response {
  RESPONSE_GAP,      /* best - last evaluation score */
  RESPONSE_LAST,     /* last evaluation score */
  RESPONSE_LIFETIME, /* updates until the run collapsed, or until its last evaluation */
  RESPONSE_COUNT
} effect_response;

/* A factor: one field, or several that always change together. */
typedef struct effect_factor {
  const char *name;       /* "top-p", "warm-up, decay" */
  const char *low, *high; /* values as written in the recipe: "1", "0.95", "not given" */
  const int *level;       /* [number of groups] -1 or 1 */
} effect_factor;

typedef struct effect {
  size_t a, b;   /* indices of factors; b = SIZE_MAX: main effect of a */
  interval size; /* effect with its 95 % interval */
  double p, q;
} effect;

/* A fit for one algorithm, or for the difference of two over pairs of runs that are otherwise
 * equal. */
typedef struct effect_fit {
  size_t algorithm, subtracted; /* subtracted: the algorithm that is subtracted; SIZE_MAX: none */
  size_t runs, residual;        /* number of runs or pairs; residual degrees of freedom */
  interval mean;                /* mean response */
  effect *effects;              /* [n_effects]; NULL if there is no fit */
  const char *reason;           /* reason if there is no fit */
} effect_fit;

typedef struct effect_table {
  const results *study; /* borrowed */
  effect_factor *factor;
  size_t n_factors;
  bool has_interactions; /* the model has interactions of pairs of factors */
  size_t n_effects;      /* n_factors, plus the pairs of factors if the model has interactions */
  effect_fit *fit[RESPONSE_COUNT]; /* [n_fits]: each algorithm, then the differences of the others
                                      and the first */
  size_t n_fits;
  arena memory;
} effect_table;

/* Fits the study. Interactions are omitted if there are too few runs or the runs do not identify
 * them. Release with effect_table_fini(), also after an error. Errors: GL_ENOMEM, GL_EINPUT (fewer
 * than two fields with two values, or a field with more values). */
gl_status effect_table_init(effect_table *t, const results *from, const outcome_rule *rule,
                            gl_error *err);
void effect_table_fini(effect_table *t);

/* Writes a document: all effects as JSON, and as text the `most` effects of smallest p for every
 * fit (0: all). */
gl_status effect_table_report(table *to, const effect_table *t, size_t most, gl_error *err);

/* Least-squares regression of y[n] on the columns of x[n][k] (row-major), n > k. */
typedef struct regression {
  size_t n, k;
  const double *x, *y;
  double *b, *variance; /* [k] results: coefficients, and the diagonal of their covariance matrix */
} regression;

/* Fits the regression. *rank receives the rank of x; if it is below k, no results are written.
 * Errors: GL_ENOMEM. Exposed for its test. */
gl_status least_squares(const regression *of, size_t *rank, gl_error *err);

#endif
