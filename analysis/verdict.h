/* The verdict of a study: which algorithm leads at each setting, and which of the others are
 * distinguishable from it. Prefixes: verdict_, verdicts_.
 *
 * The leader has the best interquartile mean of last scores. Every other algorithm is compared with
 * it seed by seed: the difference of last scores (interquartile mean with its 95 % bootstrap
 * interval) and the probability of improvement, P(leader better) + P(equal)/2 over the pairs
 * (paper/methods.md §13.4). It is distinguishable if the whole interval lies beyond a margin of
 * 1 % of the leader's score, and there are at least five pairs. The leader is chosen on the runs
 * that are compared, and nothing is adjusted for that or for the number of comparisons: contrasts
 * that a recipe declares are adjusted (analysis/contrasts.h). Runs that failed or are not finite at
 * their end are in no pair. */
#ifndef GEPOLAB_ANALYSIS_VERDICT_H
#define GEPOLAB_ANALYSIS_VERDICT_H

#include "analysis/summary.h"

#include <stdbool.h>

/* An algorithm against the leader of a setting. */
typedef struct verdict_pair {
  size_t algorithm, pairs;
  size_t without_value; /* pairs left out because a run has no last score */
  interval difference;  /* leader - algorithm (algorithm - leader if lower scores are better); low
                           and high are the range if there are fewer than five pairs */
  double improvement;   /* NaN without pairs */
  bool is_distinguishable;
} verdict_pair;

typedef struct verdict {
  const cell_summary *leader; /* NULL: no algorithm has a last score */
  verdict_pair *pair;         /* [n_pairs] the others with a last score, the best first */
  size_t n_pairs;
} verdict;

typedef struct verdicts {
  const summary *from; /* borrowed */
  verdict *of;         /* [n_groups] */
  arena memory;
} verdicts;

/* Release with verdicts_fini(), also after an error. Errors: GL_ENOMEM. */
gl_status verdicts_init(verdicts *v, const summary *from, gl_error *err);
void verdicts_fini(verdicts *v);

/* Whether the algorithm of the cell is the leader of its setting, or not distinguishable from it.
 */
bool verdict_reaches(const verdicts *v, const cell_summary *c);

/* Writes to a document, if there are several algorithms: "verdict": [{setting, leader, algorithm,
 * pairs, without_value, difference, probability_of_improvement, distinguishable}], a line for each
 * other algorithm of each setting. The printed text has a line for each setting, with the best of
 * the others, and a matrix of last scores. */
void verdicts_report(table *to, const verdicts *v);

#endif
