/* Aggregates of last scores over settings and seeds, as in rliable (Agarwal et al. 2021,
 * 2108.13264): performance profiles, optimality gap, probability of improvement. `gepolab analyze
 * --table profiles` prints them. Settings (groups of a study, labels of exports) are rliable's
 * tasks, seeds its runs; the score of a run is its last evaluation. Failed runs
 * are left out, and so are runs that are not finite at their end, which have no last score.
 *
 *   profile(t)       fraction of all runs of an algorithm with a score above t
 *   optimality gap   g - mean of min(score, g) over all its runs
 *   improvement      mean over settings of P(X > Y) over pairs of runs, ties by half
 *
 * Intervals: 95 % percentiles of 2,000 bootstrap samples, drawn within each setting; none (NaN) for
 * an algorithm with fewer than BOOTSTRAP_FEWEST runs or with a single run in a setting. */
#ifndef GEPOLAB_ANALYSIS_PROFILES_H
#define GEPOLAB_ANALYSIS_PROFILES_H

#include "analysis/results.h"
#include "analysis/statistics.h"
#include "core/base/arena.h"
#include "core/base/table.h"

enum { PROFILE_POINTS = 11 };

typedef struct profile_of {
  size_t runs, settings;
  size_t without_score; /* runs left out because they have no last score */
  interval gap;
  interval above[PROFILE_POINTS]; /* fraction of scores above profiles.at[i] */
} profile_of;

typedef struct profiles {
  double goal;             /* g of the optimality gap */
  const char **algorithms; /* [n] borrowed */
  size_t n;
  double at[PROFILE_POINTS]; /* equally spaced from the lowest to the highest score */
  profile_of *of;            /* [n] */
  interval *improvement;     /* [n][n] probability that the first is better than the second; NaN
                                without a common setting */
  arena memory;
} profiles;

/* goal: a score that cannot be exceeded, such as 1. Release with profiles_fini(), also after an
 * error. Errors: GL_ENOMEM, GL_EINPUT (no run has a score; lower scores are better). */
gl_status profiles_of(profiles *out, const results *r, double goal, gl_error *err);
void profiles_fini(profiles *p);
void profiles_report(table *to, const profiles *p, const char *name);

#endif
