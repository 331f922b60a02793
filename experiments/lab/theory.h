/* What `gepolab lab theory` computes, as a document of tables. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_THEORY_H
#define GEPOLAB_EXPERIMENTS_LAB_THEORY_H

#include "core/base/progress.h"
#include "core/base/table.h"
#include "core/config/config.h"
#include "experiments/lab/recipe.h"
#include "toy/lab/theory.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct theory_spec {
  uint64_t seed;
  double *outcomes; /* n of Theorem 1's table, 2 or more */
  size_t n_outcomes;
  double *vocabularies, *lengths; /* products V^T */
  size_t n_vocabularies, n_lengths;
  size_t pairs;           /* random pairs of each family */
  size_t starts;          /* of the search for violations */
  size_t search_outcomes; /* outcomes it searches over: 2 .. this */
} theory_spec;

gl_status theory_read(theory_spec *s, const cfg_doc *doc, gl_error *err);
void theory_fini(theory_spec *s);
/* The document, also after an error: theorem1 {constants, crossings, families, products}, theorem2
 * (a list of searches), theorem3 (variances per family). */
gl_status theory_run(table **out, const theory_spec *s, gl_error *err);

/* --- pairs of distributions --- */

/* What the paper's Theorems 1 and 3 say of many pairs of distributions: how often each holds, the
 * largest constant that was needed, and how often the two order the estimators differently
 * (paper/methods.md §8.2 and §8.4). */

/* Of w = p/q and p/D, and of A w with A = r - E_p r. */
enum { PAIRS_VARIANCES = 2 * (1 + LAB_CONSTANTS) };
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
/* Counts the pair p, q on n outcomes with rewards r[n]. */
void pairs_tally_add(pairs_tally *t, const double *p, const double *q, const double *r, size_t n);

/* --- theorems on pairs from training --- */

/* Theorems 1 and 3 on pairs of distributions from training: the learner and the policy that its
 * batch was drawn from, along the paths of several algorithms at several stalenesses. */

/* {"outcomes", "theorem", "smallest": {expected, computed}, "training": [{algorithm, staleness, lr,
 * pairs, pairs_far, infinite, kl_median, kl_max, medians of variances, and for each denominator
 * {share_theorem1_holds, largest_constant, share_w_varies_more, highest_kl_w_varies_more,
 * share_aw_varies_more, share_w_and_aw_disagree; the last two with A = r - E_q r ("_group"); the
 * first and third share among the pairs_far, whose KL is 0.01 or more ("_far")}}], "together": the
 * same of all algorithms at each staleness}. A pair is of one prompt, at every recorded update
 * whose batch has the full staleness. GL_EINPUT where the recipe has no `training` with
 * `stalenesses`, prompts with different numbers of responses, or nothing is recorded late enough.
 */
gl_status theory_training_run(table **out, const lab_recipe *r, size_t threads, progress_mode shows,
                              gl_error *err);

#endif
