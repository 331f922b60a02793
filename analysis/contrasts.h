/* Contrasts: two arms of a study that are compared start by start, declared before the runs.
 *
 * A pair is a run of each arm with the same seed. Falls are compared by McNemar's exact test (the
 * two-sided binomial test of the pairs in which one of the two fell; McNemar 1947, Psychometrika
 * 12:153) with Newcombe's interval of the difference of shares (1998, Statistics in Medicine
 * 17:2635, method 10); last scores by Wilcoxon's exact signed-rank test (1945, Biometrics Bulletin
 * 1:80; pairs without a difference are left out, ties have their mean rank) with the interquartile
 * mean of the differences. The p of all contrasts are adjusted together (Holm 1979, Scandinavian
 * Journal of Statistics 6:65), which holds the chance of any false one at the level.
 */
#ifndef GEPOLAB_ANALYSIS_CONTRASTS_H
#define GEPOLAB_ANALYSIS_CONTRASTS_H

#include "analysis/outcome.h"
#include "analysis/results.h"
#include "analysis/statistics.h"
#include "core/base/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum contrast_measure { CONTRAST_FALL, CONTRAST_LAST, CONTRAST_MEASURES } contrast_measure;
/* "fall", "last". */
extern const char *const contrast_measure_names[CONTRAST_MEASURES];

/* "algorithm" and a shown name, or the path of a field in which the study's runs differ and its
 * value as the recipe has it. */
typedef struct contrast_field {
  const char *path, *value;
} contrast_field;

enum { CONTRAST_FIELDS = 16 };
typedef struct contrast_arm {
  contrast_field field[CONTRAST_FIELDS];
  size_t n;
} contrast_arm;

/* 1 if the run has all fields of the arm. Every path must be one that contrast_knows(). */
bool contrast_arm_has(const results *r, const results_run *run, const contrast_arm *a);
/* 1 if the path is "algorithm" or a field in which the study's runs differ. */
bool contrast_knows(const results *r, const char *path);
/* 1 if a run of the study has that field; the path as above. */
bool contrast_has_run(const results *r, const contrast_field *f);

/* Strings are borrowed. */
typedef struct contrast {
  const char *name;
  contrast_measure measure;
  contrast_arm of, against;
} contrast;

typedef struct contrast_result {
  size_t pairs, unpaired;       /* seeds with a run of one arm only */
  double of, against;           /* shares that fell, or interquartile means of the last scores */
  interval difference;          /* of - against, 95 % */
  size_t only_of, only_against; /* pairs in which one fell; of last scores: was higher */
  double p, holm;               /* two-sided; adjusted over all contrasts */
  double detectable; /* of falls: share of pairs that must differ, all in one direction, for
                        the first step of Holm's procedure to reject at 5 % with probability
                        0.8; NaN where no number of pairs here can, and of last scores */
} contrast_result;

/* Compares the arms of contrasts[n]; out[n]. Failed runs are left out. GL_EINPUT for an arm that
 * names a field in which the runs do not differ, a value that no run has, or runs of several cells;
 * for arms that are the same or have no seed in common; and for scores that are better when lower
 * in a contrast of falls. */
gl_status contrasts_find(const results *from, const contrast *contrasts, size_t n,
                         contrast_result *out, gl_error *err);

/* Reports the comparisons into a document. */
void contrasts_report(table *to, const results *from, const contrast *contrasts,
                      const contrast_result *found, size_t n);

/* Exposed for their tests. Two-sided p of McNemar's exact test: 1 where no pair differs. */
double mcnemar_exact(size_t only_of, size_t only_against);
/* Newcombe's interval of a difference of shares in pairs, of which in `both` both fell. */
interval paired_shares(size_t both, size_t only_of, size_t only_against, size_t neither);
/* Two-sided p of the signed-rank test of n differences, of which those that are 0 or NaN are left
 * out; 1 where none is left. At most 1,000. */
gl_status signed_rank_exact(const double *difference, size_t n, double *p, gl_error *err);
/* Holm's adjustment of p[n]. */
gl_status holm_adjust(const double *p, size_t n, double *adjusted, gl_error *err);

#endif
