/* Ranking and selection: the best of many systems that are known by simulation alone, subject to
 * limits that are, too. Only statistics: what a system is, the caller knows.
 *
 * Three parts, each with a third of the error rate (paper/methods.md §10.14). The first two go side
 * by side, as in the procedure AK+ of Andradottir and Kim (2010): what a feasible system beats
 * needs no more replicates to know whether it is feasible.
 *
 *   1. Feasibility, system by system and limit by limit: the procedure of Batur and Kim (2010). A
 *      system whose mean keeps a limit with `slack` to spare is found feasible and one that misses
 *      it by as much is not; those between may be found either.
 *   2. Comparison of the feasible ones: the fully sequential procedure of Kim and Nelson (2001).
 * The system it selects has a mean within half the indifference zone of the best feasible one's.
 *      Systems may be, and should be, simulated with common random numbers, for its variances are
 *      those of differences.
 *   3. Of the systems whose mean is shown to be within the other half of the zone of the selected
 *      one's, by paired t intervals with Bonferroni's correction, the one with the best second
 *      quantity is taken.
 *
 * The guarantee holds for normal observations that are independent from replicate to replicate.
 * Prefix: ranking_. */
#ifndef GEPOLAB_EXPERIMENTS_PLAN_RANKING_H
#define GEPOLAB_EXPERIMENTS_PLAN_RANKING_H

#include "core/base/error.h"

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
  double zone_share, zone; /* indifference zone: zone_share of the largest |mean| of the first
                              stage, or `zone` where that is 0 */
  double slack[RANKING_MOST_LIMITS];
  /* Makes replicate `replicate` of each of the systems which[n], out[n]. The replicates of a system
   * are asked for in order, from 0. An error ends the selection. */
  gl_status (*observe)(void *self, const size_t *which, size_t n, size_t replicate,
                       ranking_observation *out, gl_error *err);
  void *self;
} ranking_request;

typedef enum ranking_fate {
  RANKING_INFEASIBLE, /* misses a limit */
  RANKING_UNDECIDED,  /* neither was shown after `most` replicates: taken for feasible if its means
                         keep the limits */
  RANKING_BEATEN,     /* its mean was shown to be less than another's */
  RANKING_LEFT        /* still compared when the procedure ended */
} ranking_fate;

typedef struct ranking_system {
  ranking_observation *seen; /* [n] owned */
  size_t n, room;
  ranking_fate fate;
  int feasible;
  double mean, mean_second; /* over its n replicates */
} ranking_system;

typedef struct ranking {
  ranking_system *system; /* [n] */
  size_t n;
  double zone;       /* the whole indifference zone, as it was used */
  size_t best;       /* by the procedure of Kim and Nelson; SIZE_MAX: no system is feasible */
  size_t chosen;     /* after the third step */
  size_t as_good;    /* systems shown to be as good as the best, itself included */
  int separated;     /* 0: `most` replicates did not suffice, and the error rate is not kept */
  size_t replicates; /* of all systems together */
} ranking;

/* GL_EINPUT for less than 3 replicates or no system. Release with ranking_fini() in any case. */
gl_status ranking_best(ranking *out, const ranking_request *q, gl_error *err);
void ranking_fini(ranking *s);

/* Mean of n values and half the width of its two-sided interval of so much confidence, by Student's
 * t; NaN for less than two. */
void ranking_interval(const double *value, size_t n, double confidence, double *mean, double *half);

#endif
