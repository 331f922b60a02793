/* First and second moments of an estimator over some part of its randomness, and how parts join. */
#ifndef GEPOLAB_TOY_LAB_SUMMARY_H
#define GEPOLAB_TOY_LAB_SUMMARY_H

#include "toy/lab/group.h"
#include "toy/lab/kernel.h"
#include "toy/lab/numbers.h"

typedef struct lab_summary {
  size_t n_parameters;
  double *mean;       /* [n_parameters] */
  double trace;       /* of the covariance */
  double *covariance; /* [n_parameters^2] or NULL */
  double w, w2, aw, aw2, ess;
} lab_summary;

gl_status lab_summary_init(lab_summary *s, size_t n_parameters, int covariance, gl_error *err);
void lab_summary_fini(lab_summary *s);

void lab_summary_from_sums(lab_summary *s, const lab_sums *sums);
/* gram[n * n] = scores' products, for the trace. */
void lab_summary_from_moments(lab_summary *s, lab_moments *m, const lab_tables *t,
                              const double *gram);
/* gram[n * n] of one-token responses' scores. */
void lab_gram(const lab_tables *t, double *gram);

/* The mixture of n parts with weights that sum to 1, by the distributions of total expectation and
 * variance; skip < n leaves a part out and rescales the rest. */
void lab_summary_join(lab_summary *into, const lab_summary *const *parts, const double *weights,
                      size_t n, size_t skip);

/* The reported numbers, for the true gradient truth[]; a gradient below `rounding` counts as 0. */
void lab_summary_numbers(const lab_summary *s, const double *truth, double rounding,
                         lab_numbers *out);
/* Standard errors of the numbers by the jackknife over n >= 2 parts of equal weight,
 * (n-1)/n sum (value without part k - their mean)^2, and of expected[] = the parts' mean from their
 * spread, into expected_error[n_parameters]. GL_ENOMEM. */
gl_status lab_summary_errors(lab_numbers *error, double *expected_error,
                             const lab_summary *const *parts, size_t n, const double *expected,
                             const double *truth, double rounding, gl_error *err);

#endif
