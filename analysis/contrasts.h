/* Contrasts: comparisons of two arms of a study, paired by seed and declared before the runs.
 *
 * A pair is a run of each arm with the same seed. Collapses are compared by McNemar's exact test,
 * last scores by Wilcoxon's signed-rank test, with the interquartile mean of the differences
 * (analysis/paired_tests.h). The p-values of all contrasts are adjusted together (Holm), which
 * controls the family-wise error rate. */
#ifndef GEPOLAB_ANALYSIS_CONTRASTS_H
#define GEPOLAB_ANALYSIS_CONTRASTS_H

#include "analysis/outcome.h"
#include "analysis/results.h"
#include "analysis/statistics.h"
#include "core/base/table.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum contrast_measure {
  CONTRAST_COLLAPSE,      /* whether the run collapsed */
  CONTRAST_LAST,          /* the last score of the run */
  CONTRAST_LATE_COLLAPSE, /* whether it collapsed late and did not recover */
  CONTRAST_LAST_LEVEL,    /* run_level.last; the next two are its other fields */
  CONTRAST_BEST_TO_LAST,
  CONTRAST_BELOW_START,
  CONTRAST_MEASURES
} contrast_measure;
/* "fall", "last", "late_fall", "last_level", "best_to_last", "below_start". */
extern const char *const contrast_measure_names[CONTRAST_MEASURES];

/* "algorithm" and a shown name, or the path of a field in which the study's runs differ and its
 * value as written in the recipe. */
typedef struct contrast_field {
  const char *path, *value;
} contrast_field;

enum { CONTRAST_FIELDS = 16 };
typedef struct contrast_arm {
  contrast_field field[CONTRAST_FIELDS];
  size_t n;
} contrast_arm;

/* Returns true if the run has all fields of the arm. Every path must satisfy contrast_knows(). */
bool contrast_arm_has(const results *r, const results_run *run, const contrast_arm *a);
/* Returns true if the path is "algorithm" or a field in which the study's runs differ. */
bool contrast_knows(const results *r, const char *path);
/* Returns true if a run of the study has that value of the field; for paths as above. */
bool contrast_has_run(const results *r, const contrast_field *f);

/* When a contrast was written, by the recipes that the study holds. */
typedef enum contrast_origin {
  CONTRAST_ORIGIN_UNKNOWN, /* the study holds no recipe */
  CONTRAST_DECLARED,       /* the contrast is in a recipe that the study holds */
  CONTRAST_AFTERWARDS, /* in no such recipe: the contrast was written or changed after the runs */
  CONTRAST_ORIGINS
} contrast_origin;

/* One contrast; strings are borrowed. */
typedef struct contrast {
  const char *name;
  contrast_measure measure;
  contrast_origin origin;
  contrast_arm of, against;
  bool may_wait; /* in an unfinished study: a contrast without a pair of runs yet has no numbers and
                    counts in Holm's adjustment with p = 1; otherwise it is an error */
} contrast;
/* Whether two contrasts compare the same arms by the same measure; names and origins may differ. */
bool contrast_is_same(const contrast *a, const contrast *b);

typedef struct contrast_result {
  size_t pairs, unpaired; /* unpaired: seeds with a run of one arm only */
  size_t without_value; /* pairs left out because a run has no score at its end; 0 for collapses */
  double of, against;   /* fractions that collapsed, or interquartile means of the last scores */
  interval difference;  /* of - against, with its 95 % interval */
  size_t only_of, only_against; /* pairs in which only one collapsed (last scores: was higher) */
  double p, holm;               /* two-sided p; holm: adjusted over all contrasts */
  double detectable; /* collapse only: fraction of pairs that must differ, all in one direction, for
                        the first step of Holm's procedure to reject at 5 % with probability 0.8;
                        NaN if no number of pairs suffices, and for last scores */
} contrast_result;

/* Compares the arms of contrasts[n] and writes out[n]. Failed runs are omitted. A run that is not
 * finite at its end has collapsed and has no other measure; if that leaves no pair, there are no
 * numbers and p is 1. Errors: GL_ENOMEM,
 * GL_EINPUT (an arm with a field in which the runs do not differ, a value that no run has, or runs
 * of several cells; arms that are equal or have no common seed; a contrast of collapses for scores
 * where lower is better). */
gl_status contrasts_find(const results *from, const contrast *contrasts, size_t n,
                         contrast_result *out, gl_error *err);

/* Writes the comparisons to a document. */
void contrasts_report(table *to, const results *from, const contrast *contrasts,
                      const contrast_result *found, size_t n);

/* --- arms --- */

/* Arms of a study, cells of one algorithm at one setting: which of them compute the same runs, and
 * at which levels their runs end. */

/* --- equal arms --- */

/* Two cells with at least one common seed, all of whose common seeds have equal runs. */
typedef struct equal_arms {
  const results_cell *first, *second;
  size_t runs; /* common seeds */
} equal_arms;
/* Lists the pairs, *n of them, allocated in `to`; an arm is paired with the first arm that equals
 * it. Errors: GL_ENOMEM. */
gl_status equal_arms_find(equal_arms **out, size_t *n, const results *r, arena *to, gl_error *err);

/* Adds `equal_arms` to a document if there are any. Errors: GL_ENOMEM. */
gl_status equal_arms_report(table *to, const results *r, gl_error *err);

/* --- levels --- */

/* Adds `levels` to a document: for each algorithm and setting (learning rates apart) interquartile
 * means over seeds with 95 % bootstrap intervals (the range of fewer than five runs) of run_level
 * and of the means of pass_at_g, distinct_right, entropy, log_ratio_negative and log_ratio_positive
 * over the last tenth of the updates.
 * Failed runs are omitted. Errors: GL_ENOMEM. */
gl_status levels_report(table *to, const results *r, gl_error *err);

#endif
