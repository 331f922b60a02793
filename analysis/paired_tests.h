/* Statistical tests of paired runs, and the adjustment of their p-values.
 *
 * Collapses: McNemar's exact test (the two-sided binomial test on pairs in which one of the two
 * collapsed; McNemar 1947, Psychometrika 12:153), with Newcombe's interval of the difference of
 * proportions (1998, Statistics in Medicine 17:2635, method 10). Scores: Wilcoxon's exact
 * signed-rank test (1945, Biometrics Bulletin 1:80; zero differences are dropped, ties have their
 * mean rank). Adjustment: Holm 1979, Scandinavian Journal of Statistics 6:65. */
#ifndef GEPOLAB_ANALYSIS_PAIRED_TESTS_H
#define GEPOLAB_ANALYSIS_PAIRED_TESTS_H

#include "analysis/statistics.h"
#include "core/base/error.h"

#include <stddef.h>

/* Two-sided p of McNemar's exact test; 1 if no pair differs. */
double mcnemar_exact(size_t only_of, size_t only_against);
/* Newcombe's interval of a difference of paired proportions. `both` is the number of pairs in which
 * both runs collapsed. */
interval paired_fractions(size_t both, size_t only_of, size_t only_against, size_t neither);
/* Two-sided p of the signed-rank test of n differences, at most 1,000 that are neither 0 nor NaN,
 * which are dropped; p is 1 if none remains. Errors: GL_ENOMEM, GL_EINPUT (more). */
gl_status signed_rank_exact(const double *difference, size_t n, double *p, gl_error *err);
/* Holm's adjustment of p[n] into adjusted[n], in the order of p. Errors: GL_ENOMEM. */
gl_status holm_adjust(const double *p, size_t n, double *adjusted, gl_error *err);

#endif
