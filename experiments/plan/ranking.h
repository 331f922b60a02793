/* Ranking and selection: finds the best of many systems that can only be simulated, subject to
 * limits on simulated quantities. This module is pure statistics: the caller runs the simulations.
 *
 * Two parts, each with half of the error rate (paper/methods.md §10.14), run together:
 *
 *   1. Feasibility, for each system and limit: the procedure of Batur and Kim (2010). A system
 *      whose mean keeps a limit with `slack` to spare is found feasible, and one that misses it by
 *      as much is found infeasible; systems in between may be found either.
 *   2. Comparison: a system may be selected if it is feasible and shown to be at most the
 *      indifference zone below every other system that was not found infeasible. This uses an
 *      upper bound on the mean difference that holds simultaneously for all numbers of replicates.
 *      In whatever order systems are simulated, only the bounds for differences from the best
 *      system must hold. Systems should be simulated with common random numbers, because the
 *      variances are those of differences. Among the systems that may be selected, the one with
 *      the best second quantity is chosen.
 *
 * Guarantee: with probability 1 - error_rate, no system that keeps all limits with `slack` to
 * spare is better than the selected one by more than the zone, even with ties, and the selected
 * one misses no limit by `slack`. This holds for normal observations that are independent between
 * replicates. Prefix: ranking_. */
#ifndef GEPOLAB_EXPERIMENTS_PLAN_RANKING_H
#define GEPOLAB_EXPERIMENTS_PLAN_RANKING_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { RANKING_MOST_LIMITS = 4 };

/* The results of one replicate of a system. Larger is better: negate quantities that should be
 * small. */
typedef struct ranking_observation {
  double value;                      /* the best system has the largest mean of this */
  double second;                     /* selects among systems that are as good as the best */
  double slack[RANKING_MOST_LIMITS]; /* [n_limits] margin to each limit; negative: missed */
} ranking_observation;

typedef struct ranking_request {
  size_t systems, n_limits;
  size_t first, most; /* replicates of every system in the first stage (at least 3), and maximum */
  double error_rate;
  double zone_fraction, zone; /* indifference zone: this fraction of the selected system's |mean|,
                                 or `zone` if it is 0 */
  double slack[RANKING_MOST_LIMITS];
  /* Simulates replicate `replicate` of each system which[n] and writes out[n]. The replicates of a
   * system are requested in order from 0. An error ends the selection. */
  gl_status (*observe)(void *self, const size_t *which, size_t n, size_t replicate,
                       ranking_observation *out, gl_error *err);
  void *self;
} ranking_request;

typedef enum ranking_verdict {
  RANKING_INFEASIBLE, /* misses a limit */
  RANKING_UNDECIDED,  /* feasibility not shown; only selected if replicates run out and no system is
                         known to be feasible */
  RANKING_FEASIBLE,   /* keeps the limits, but not shown to be as good as the best */
  RANKING_AS_GOOD     /* keeps the limits, and no other is better by more than the zone */
} ranking_verdict;

typedef struct ranking_system {
  ranking_observation *seen; /* [n] results of its replicates; owned */
  size_t n;
  ranking_verdict verdict;
  bool feasible;
  double mean, mean_second; /* means over its n replicates */
} ranking_system;

typedef struct ranking {
  ranking_system *system; /* [n] */
  size_t n;
  double zone;    /* indifference zone of the selected system, in units of the value */
  double reached; /* the error rate holds for this zone: `zone`, or the larger one that the
                     replicates allow; INFINITY if the system is not known to be feasible */
  size_t best;    /* the feasible system with the largest mean; SIZE_MAX: none is feasible */
  size_t chosen;  /* among systems as good as the best, the one with the best second quantity */
  size_t as_good; /* number of systems shown to be as good, including the selected one */
  bool separated; /* false: `most` replicates were not enough for this zone */
} ranking;

/* Selects a system. Call ranking_fini() even after an error. Errors: GL_EINPUT for fewer than 3
 * replicates or no systems; otherwise those of observe(). */
gl_status ranking_best(ranking *out, const ranking_request *q, gl_error *err);
void ranking_fini(ranking *s);

/* Mean of n values and the half-width of its two-sided confidence interval (Student's t); NaN for
 * fewer than two values. */
void ranking_interval(const double *value, size_t n, double confidence, double *mean, double *half);

#endif
