/* The estimator of one group through core/policy itself: the reference of the exact laboratory, and
 * its way for algorithms and worlds that no kernel covers. */
#ifndef GEPOLAB_TOY_LAB_GROUP_H
#define GEPOLAB_TOY_LAB_GROUP_H

#include "core/policy/policy.h"
#include "toy/lab/multiset.h"
#include "toy/lab/tables.h"

/* Room for one group. */
typedef struct lab_group {
  const lab_tables *tables; /* borrowed */
  size_t size;
  size_t *response;             /* [size] which responses, set by the caller */
  size_t *token_start;          /* [size + 1] */
  double *reward;               /* [size] */
  double *logp, *logq;          /* [size * width] */
  double *advantage;            /* [size] */
  double *weight, *coefficient; /* [size * width] */
  double *gradient;             /* [n_parameters] */
  size_t *drawn;                /* [LAB_BLOCK * size] responses of a block's groups */
  policy_workspace *workspace;
} lab_group;

gl_status lab_group_init(lab_group *g, const lab_tables *t, size_t size, gl_error *err);
void lab_group_fini(lab_group *g);
/* Evaluates the algorithm on g->response[]; fills advantage, weight, coefficient and gradient. */
gl_status lab_group_evaluate(lab_group *g, const policy_algorithm *algorithm, gl_error *err);
/* Weight of response i: its tokens' mean, which is the sequence's own ratio where there is one. */
double lab_group_weight(const lab_group *g, size_t i);

/* Sums over groups, each with its weight. */
typedef struct lab_sums {
  size_t n_parameters;
  double total, square;       /* sum of weights; E |g|^2 */
  double *mean;               /* [n_parameters] E g */
  double *outer;              /* [n_parameters^2] E g g', or NULL */
  double w, w2, aw, aw2, ess; /* as lab_moments */
} lab_sums;
gl_status lab_sums_init(lab_sums *s, size_t n_parameters, int outer, gl_error *err);
void lab_sums_fini(lab_sums *s);

/* Adds every group of a block. GL_ENUMERIC where a coefficient is not finite. */
gl_status lab_sums_add_block(lab_sums *s, lab_group *g, const policy_algorithm *algorithm,
                             const lab_block *b, gl_error *err);

#endif
