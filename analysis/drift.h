/* A warning that any run can be given: a metric has doubled, or halved, against the beginning of
 * its own run. Unlike the thresholds of announce.h it needs no other runs, so that it applies to a
 * log of another program; how often it is false is counted on studies. */
#ifndef GEPOLAB_ANALYSIS_DRIFT_H
#define GEPOLAB_ANALYSIS_DRIFT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct drift_rule {
  size_t begin;  /* updates of the beginning, whose median is the reference */
  size_t window; /* updates of the moving average that is compared with it, at most begin */
  double factor; /* alarm at factor times the reference, or at 1/factor of it */
} drift_rule;
/* Returns 20 updates, 8 updates and 2. */
drift_rule drift_rule_default(void);

/* The reference: the median of the first values; NaN if there are fewer than `begin` values that
 * are not NaN, or if it is not positive (then a factor means nothing). */
double drift_reference(const double *value, size_t n, const drift_rule *rule);
/* The index of the first update after the beginning at which the mean of the last `window` values
 * is beyond the factor, above (falls: below) the reference; n if there is none. Windows with a NaN
 * raise no alarm. */
size_t drift_alarm(const double *value, size_t n, bool falls, const drift_rule *rule);

#endif
