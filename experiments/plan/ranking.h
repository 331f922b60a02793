/* Ranking and selection: the best of many systems that are known by simulation alone, subject to
 * limits that are, too. Only statistics: the caller runs the simulations.
 *
 * Two parts, each with half of the error rate (paper/methods.md §10.14), run together:
 *
 *   1. Feasibility, system by system and limit by limit: the procedure of Batur and Kim (2010). A
 *      system whose mean keeps a limit with `slack` to spare is found feasible and one that misses
 *      it by as much is not; those between may be found either.
 *   2. Comparison: a system may be selected once it is feasible and, of every other that is not
 *      found infeasible, shown to be at most the indifference zone below it: by an upper bound of
 *      the mean difference that holds for all numbers of replicates at once. Whatever is simulated
 *      in which order, only the bounds for differences from the best system must hold. Systems may
 *      be, and should be, simulated with common random numbers, for the variances are those of
 *      differences. Of the systems that may be selected the one with the best second quantity is.
 *
 * Guarantee: with probability 1 - error_rate, no system that keeps all limits with `slack`
 * to spare is better than the selected one by more than the zone, ties or not, and the selected one
 * misses no limit by `slack`. It holds for normal observations that are independent from replicate
 * to replicate. Prefix: ranking_. */
#ifndef GEPOLAB_EXPERIMENTS_PLAN_RANKING_H
#define GEPOLAB_EXPERIMENTS_PLAN_RANKING_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { RANKING_MOST_LIMITS = 4 };

/* What one replicate of a system gives. All are better when larger: negate where less is. */
typedef struct ranking_observation {
  double value;                      /* that the best has the largest mean of */
  double second;                     /* that decides among those that are as good */
  double slack[RANKING_MOST_LIMITS]; /* [n_limits] distance kept from each limit; below 0: broken */
} ranking_observation;

typedef struct ranking_request {
  size_t systems, n_limits;
  size_t first, most; /* replicates of every system in the first stage, at least 3; and at most */
  double error_rate;
  double zone_fraction, zone; /* indifference zone: this fraction of the selected system's |mean|,
                              or `zone` where it is 0 */
  double slack[RANKING_MOST_LIMITS];
  /* Makes replicate `replicate` of each of the systems which[n], out[n]. The replicates of a system
   * are asked for in order, from 0. An error ends the selection. */
  gl_status (*observe)(void *self, const size_t *which, size_t n, size_t replicate,
                       ranking_observation *out, gl_error *err);
  void *self;
} ranking_request;

typedef enum ranking_fate {
  RANKING_INFEASIBLE, /* misses a limit */
  RANKING_UNDECIDED,  /* neither was shown; not selected, unless replicates ran out and nothing is
                         known to be feasible */
  RANKING_FEASIBLE,   /* keeps the limits, and is not shown to be as good as any */
  RANKING_AS_GOOD     /* keeps the limits, and no other is better by more than the zone */
} ranking_fate;

typedef struct ranking_system {
  ranking_observation *seen; /* [n] owned */
  size_t n;
  ranking_fate fate;
  bool feasible;
  double mean, mean_second; /* over its n replicates */
} ranking_system;

typedef struct ranking {
  ranking_system *system; /* [n] */
  size_t n;
  double zone;       /* indifference zone of the selected system, in units of the value */
  double reached;    /* the error rate holds for this zone: `zone`, or what
                        replicates sufficed for; INFINITY where it is not known to be feasible */
  size_t best;       /* feasible, of the largest mean; SIZE_MAX: no system is feasible */
  size_t chosen;     /* of those as good, that with the best second quantity */
  size_t as_good;    /* systems shown to be as good, the selected one included */
  bool separated;    /* false: `most` replicates did not suffice for the zone */
  size_t replicates; /* of all systems together */
} ranking;

/* GL_EINPUT for less than 3 replicates or no system. Release with ranking_fini() in any case. */
gl_status ranking_best(ranking *out, const ranking_request *q, gl_error *err);
void ranking_fini(ranking *s);

/* Mean of n values and half the width of its two-sided interval of so much confidence, by Student's
 * t; NaN for less than two. */
void ranking_interval(const double *value, size_t n, double confidence, double *mean, double *half);

#endif
