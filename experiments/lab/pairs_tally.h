/* What the paper's Theorems 1 and 3 say of many pairs of distributions: how often each holds, the
 * largest constant that was needed, and how often the two order the estimators differently
 * (paper/methods.md §8.2 and §8.4). */
#ifndef GEPOLAB_EXPERIMENTS_LAB_PAIRS_TALLY_H
#define GEPOLAB_EXPERIMENTS_LAB_PAIRS_TALLY_H

#include "toy/lab/theory.h"

#include <stddef.h>

/* Of w = p/q and p/D, and of A w with A = r - E_p r. */
enum { PAIRS_VARIANCES = 2 * (1 + LAB_CONSTANTS) };
/* "w_pq", "w_expected", "w_computed", "aw_pq", "aw_expected", "aw_computed". */
extern const char *const pairs_variance_names[PAIRS_VARIANCES];

typedef struct pairs_tally {
  size_t pairs, infinite; /* infinite: not among the pairs, for p/q has no finite variance */
  double kl;              /* sum of KL(p||q) */
  double *variance[PAIRS_VARIANCES], *kl_of; /* [pairs], owned */
  size_t room;
  double holds[LAB_CONSTANTS];         /* pairs with Var[p/q] - Var[p/D] >= e^KL - (n^2 + 1) */
  double green[LAB_CONSTANTS];         /* pairs with Var[p/D] > Var[p/q] */
  double highest_green[LAB_CONSTANTS]; /* largest KL among them; 0 without any */
  double constant[LAB_CONSTANTS];      /* the largest that a pair needs; -inf without pairs */
  double wider[LAB_CONSTANTS];         /* pairs with Var[A p/D] > Var[A p/q] */
  double disagree[LAB_CONSTANTS];      /* pairs in which exactly one of the two is so */
  /* The same two with A = r - E_q r, the baseline that a group's mean estimates. */
  double wider_q[LAB_CONSTANTS], disagree_q[LAB_CONSTANTS];
} pairs_tally;

/* Whether the first variance is larger by more than rounding; a tie is none. */
int pairs_varies_more(double one, double other);

void pairs_tally_init(pairs_tally *t);
void pairs_tally_fini(pairs_tally *t);
/* Counts the pair p, q on n outcomes with rewards r[n]. GL_ENOMEM. */
gl_status pairs_tally_add(pairs_tally *t, const double *p, const double *q, const double *r,
                          size_t n, gl_error *err);

#endif
