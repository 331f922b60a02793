/* Effects of factors at two levels on the outcomes of runs: main effects and interactions of two,
 * by least squares over the runs of a study, with starts (seeds) as blocks.
 *
 * Meant for factorial designs (sweep.factorial), and of use for any study in which some fields have
 * two values. An effect is the change of a response when a factor goes from its low to its high
 * value, averaged over the other factors; an interaction of two is half the change of one's effect
 * when the other goes from low to high (Box, Hunter and Hunter, Statistics for Experimenters, ch.
 * 5). Intervals are those of Student's t from the residuals; q is the false discovery rate at which
 * an effect would be called one (Benjamini and Hochberg 1995), over the effects of a response.
 */
#ifndef GEPOLAB_ANALYSIS_EFFECTS_H
#define GEPOLAB_ANALYSIS_EFFECTS_H

#include "analysis/outcome.h"
#include "analysis/results.h"
#include "analysis/statistics.h"
#include "core/base/arena.h"
#include "core/base/table.h"

#include <stddef.h>
#include <stdio.h>

/* The dependent variable of a fit. */
typedef enum effect_response {
  RESPONSE_GAP,      /* best - last evaluation score */
  RESPONSE_LAST,     /* last evaluation score */
  RESPONSE_LIFETIME, /* updates until the run fell, or until its last evaluation */
  RESPONSE_COUNT
} effect_response;
const char *effect_response_name(effect_response r);

/* Fields that always change together are one factor. */
typedef struct effect_factor {
  const char *name;       /* "top-p", "warm-up, decay" */
  const char *low, *high; /* values as the recipe has them: "1", "0.95", "not given" */
  const int *level;       /* [groups of the study] -1, 1 */
} effect_factor;

typedef struct effect {
  size_t a, b;   /* factors; b: SIZE_MAX: the main effect of a */
  interval size; /* 95 % */
  double p, q;
} effect;

/* One algorithm, or the difference of two over pairs of runs that are alike otherwise. */
typedef struct effect_fit {
  size_t algorithm, less; /* less: the algorithm that is subtracted; SIZE_MAX: none */
  size_t runs, residual;  /* pairs for a difference; degrees of freedom that are left */
  interval mean;          /* of the response */
  effect *effects;        /* [n_effects] of the table; NULL where there is no fit */
  const char *why;        /* why there is none */
} effect_fit;

typedef struct effect_table {
  const results *from; /* borrowed */
  effect_factor *factor;
  size_t n_factors;
  int pairs;                       /* interactions are in the model */
  size_t n_effects;                /* n_factors, and their pairs where they are in it */
  effect_fit *fit[RESPONSE_COUNT]; /* [n_fits]: each algorithm, then the others less the first */
  size_t n_fits;
  arena memory;
} effect_table;

/* GL_EINPUT where the study has fewer than two fields of two values, or a field of more values that
 * is not among them. Interactions are left out where there are too few runs for them, or runs do
 * not tell them apart. Release with effect_table_fini() in any case. */
gl_status effect_table_init(effect_table *t, const results *from, const outcome_rule *rule,
                            gl_error *err);
void effect_table_fini(effect_table *t);

/* Into a document: all effects for programs, and for people the `most` of smallest p of every fit
 * (0: all). */
gl_status effect_table_report(table *to, const effect_table *t, size_t most, gl_error *err);

/* Least squares of y[n] on the columns of x[n][k] (row-major), n > k. */
typedef struct regression {
  size_t n, k;
  const double *x, *y;
  double *b, *variance; /* [k] results: coefficients, and the diagonal of their covariance */
} regression;

/* *rank: of x; below k no results are written. GL_ENOMEM. Exposed for its test. */
gl_status least_squares(const regression *of, size_t *rank, gl_error *err);

#endif
