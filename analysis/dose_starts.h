/* The learning rate at which a given fraction of runs collapses, with an interval over starts.
 *
 * Runs of one start at several rates are not independent, so an interval over runs is too narrow.
 * The value is that of the logistic fit (dose_fit_of) to all runs, moved to the nearer of the two
 * rates run between which the fraction is passed if it lies outside them. Its interval is the
 * delete-one jackknife over starts (Efron and Stein 1981, Annals of Statistics 9:586) with
 * Student's quantile, and holds at least the two rates run between which the collapsed fraction
 * passes the given one. Nothing is extrapolated: a value outside the rates run is unknown, and an
 * end there is open. */
#ifndef GEPOLAB_ANALYSIS_DOSE_STARTS_H
#define GEPOLAB_ANALYSIS_DOSE_STARTS_H

#include "analysis/statistics.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dose_run {
  double x; /* logarithm of the learning rate */
  uint64_t start;
  bool fell;
} dose_run;

/* Writes x with its 95 % interval; ends are minus or plus infinity where they are open. The value
 * is NaN without a fit, if collapses do not rise with x, and outside the x run: below them low is
 * minus infinity and high is finite where the starts agree on it, above them the other way round.
 * With fewer than two starts both ends are open. Errors: those of dose_fit_of. */
gl_status dose_at_starts(const dose_run *run, size_t n, double share, interval *out, gl_error *err);

#endif
