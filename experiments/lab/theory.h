/* Computes the results of `gepolab lab theory` as a document of tables. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_THEORY_H
#define GEPOLAB_EXPERIMENTS_LAB_THEORY_H

#include "core/base/progress.h"
#include "core/base/table.h"
#include "core/config/config.h"
#include "experiments/lab/recipe.h"
#include "toy/lab/theorems.h"

#include <stddef.h>
#include <stdint.h>

typedef struct theory_spec {
  uint64_t seed;
  double *outcomes; /* values of n in Theorem 1's table, each 2 or more */
  size_t n_outcomes;
  double *vocabularies, *lengths; /* vocabularies V and lengths T of the products V^T */
  size_t n_vocabularies, n_lengths;
  size_t pairs;           /* number of random pairs per family */
  size_t starts;          /* random starts of the search for violations */
  size_t search_outcomes; /* the search uses 2 .. this many outcomes */
} theory_spec;

/* Reads a theory recipe. Release with theory_fini(), also after an error. Errors: GL_EINPUT with
 * position. */
gl_status theory_read(theory_spec *s, const cfg_doc *doc, gl_error *err);
void theory_fini(theory_spec *s);
/* Computes the document. The caller frees *out with table_free(), also after an error. Contents:
 * theorem1 {constants, crossings, families, products}, theorem2 (a list of searches), theorem3
 * (variances per family). */
gl_status theory_run(table **out, const theory_spec *s, gl_error *err);

/* --- pairs of distributions --- */

/* Theorems 1 and 3 on many pairs of distributions: how often each holds, the largest constant
 * needed, and how often the variances of w and of A w order the two estimators differently
 * (paper/methods.md §8.2 and §8.4). */

/* Variances of w = p/q and p/D, and of A w with A = r - E_p r. */
enum { PAIRS_VARIANCES = 2 * (1 + LAB_CONSTANTS) };
typedef struct pairs_tally {
  size_t pairs, infinite; /* infinite: pairs excluded because p/q has no finite variance */
  double kl;              /* sum of KL(p||q) */
  double *variance[PAIRS_VARIANCES], *kl_of; /* [pairs], owned */
  size_t room;
  double holds[LAB_CONSTANTS]; /* number of pairs with Var[p/q] - Var[p/D] >= e^KL - (n^2 + 1) */
  double green[LAB_CONSTANTS]; /* number of pairs with Var[p/D] > Var[p/q] */
  double highest_green[LAB_CONSTANTS]; /* largest KL among these; 0 if there are none */
  double constant[LAB_CONSTANTS];      /* largest constant that a pair needs; -inf without pairs */
  double wider[LAB_CONSTANTS];         /* number of pairs with Var[A p/D] > Var[A p/q] */
  double disagree[LAB_CONSTANTS];      /* number of pairs where w and A w disagree about the smaller
                                          variance */
  /* The same two counts with A = r - E_q r, the baseline that a group's mean estimates. */
  double wider_q[LAB_CONSTANTS], disagree_q[LAB_CONSTANTS];
} pairs_tally;

void pairs_tally_init(pairs_tally *t);
void pairs_tally_fini(pairs_tally *t);
/* Adds the pair p, q on n outcomes with rewards r[n] to the tally. */
void pairs_tally_add(pairs_tally *t, const double *p, const double *q, const double *r, size_t n);

/* --- theorems on pairs from training --- */

/* Theorems 1 and 3 on pairs of distributions from training: the learner and the policy that its
 * batch was sampled from, along the training paths of several algorithms and stalenesses. */

/* Trains and returns the document
 *
 * {"outcomes", "theorem", "smallest": {expected, computed}, "training": [{algorithm, staleness, lr,
 * pairs, pairs_far, infinite, kl_median, kl_max, medians of variances, and for each denominator
 * {share_theorem1_holds, largest_constant, share_w_varies_more, highest_kl_w_varies_more,
 * share_aw_varies_more, share_w_and_aw_disagree}}], "together": the same over all algorithms at
 * each staleness}.
 *
 * The last two shares exist also with A = r - E_q r ("_group"). The first and third share exist
 * also among pairs_far, the pairs with a KL of 0.01 or more ("_far"). A pair is one prompt at one
 * recorded update whose batch has the full staleness. The caller frees *out with table_free(); it
 * is NULL after an error. Errors: GL_EINPUT (no `training` with `stalenesses`, prompts with
 * different numbers of responses, or no update recorded late enough).
 */
gl_status theory_training_run(table **out, const lab_recipe *r, size_t threads, progress_mode shows,
                              gl_error *err);

#endif
