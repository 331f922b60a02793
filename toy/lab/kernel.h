/* The fast path of the exact laboratory: evaluates the gradient estimator of many groups in blocks.
 *
 * If every response is one token, the coefficient of one copy of response y depends on its group
 * only through a few sums. An algorithm then reduces to tables over responses (paper/methods.md
 * §7.3). "Local" algorithms have no group denominator, "grouped" ones have:
 *
 *   advantage    a = (r_y - b) / s,  b and s from the group's reward sums
 *   local        c_y = [ a * (a > 0 ? up_y : down_y) + extra_y ] / G
 *   grouped      c_y = [ a * rho_y * open(a, rho_y) + extra_y ] / G,  rho_y = w_y / (u_y D + v_y),
 *                D a ratio of sums over the group (§3.6), open() = 0 where clipped, else 1
 *
 * The gradient estimate is g = sum_y count_y c_y score_y. A kernel accumulates the moments of
 * count_y c_y over blocks of groups. All reported numbers follow from these moments and the scores.
 */
#ifndef GEPOLAB_TOY_LAB_KERNEL_H
#define GEPOLAB_TOY_LAB_KERNEL_H

#include "core/policy/policy.h"
#include "toy/lab/multiset.h"
#include "toy/lab/prompt_tables.h"

typedef enum lab_baseline {
  LAB_BASELINE_CONSTANT,
  LAB_BASELINE_MEAN,
  LAB_BASELINE_LEAVE_ONE_OUT
} lab_baseline;

typedef enum lab_denominator {
  LAB_LOCAL,           /* no group denominator; uses `up` and `down` */
  LAB_MEAN_RATIO,      /* D = mean_j w_j */
  LAB_SELF_NORMALISED, /* D = sum_j z_j^2 / sum_j z_j */
  LAB_MEAN,            /* D = mean_j z_j */
  LAB_WEIGHTED         /* D = sum_j z_j w_j / sum_j z_j */
} lab_denominator;

typedef struct lab_form {
  size_t n; /* number of responses */
  lab_baseline baseline;
  double constant; /* value of a constant baseline */
  int group_std;   /* 1: s = sample standard deviation + std_eps; 0: s = 1 */
  double ddof, std_eps;
  lab_denominator denominator;
  int through_denominator;    /* LAB_WEIGHTED: the gradient passes through D */
  double clip_low, clip_high; /* grouped: clip range of rho (PPO); -inf and +inf without clip */
  const double *reward;       /* [n] borrowed */
  double *up, *down;          /* [n] local: slope for positive and for other advantages */
  double *extra;              /* [n] part that does not depend on the advantage (KL terms) */
  double *ratio;              /* [n] local: importance ratio before clipping */
  double *w, *z, *u, *v;      /* [n] grouped; all scaled by one common factor */
} lab_form;

/* Weighted sums over groups. They are additive: blocks and threads are joined in a fixed order. */
typedef struct lab_moments {
  size_t n;
  double total;   /* sum of weights */
  double *first;  /* [n] E[count_y c_y] */
  double *second; /* [n * n] E[count_y c_y count_z c_z], lower triangle */
  /* means over groups of mean_i w_i, w_i^2, a_i w_i, (a_i w_i)^2, and of ESS/G */
  double w, w2, aw, aw2, ess;
  arena memory;
} lab_moments;

gl_status lab_moments_init(lab_moments *m, size_t n, gl_error *err);
void lab_moments_fini(lab_moments *m);

/* Scratch of one thread. */
typedef struct lab_scratch {
  double *c; /* [n * LAB_BLOCK] count_y c_y */
} lab_scratch;
gl_status lab_scratch_init(lab_scratch *s, size_t n, gl_error *err);
void lab_scratch_fini(lab_scratch *s);

/* Copies the lower triangle of `second` to the upper one; kernels fill the lower triangle only. */
void lab_moments_mirror(lab_moments *m);
/* Adds a block's groups to the moments. The same input gives bit-identical results on all machines
 * with the same instruction set. */
void lab_kernel(const lab_form *f, const lab_block *b, lab_scratch *s, lab_moments *m);

/* --- forms of algorithms --- */

/* Reduces the algorithm to tables over the responses of t; borrows t's rewards. Sets *fast to 0 and
 * leaves the form empty if the algorithm cannot be factored or responses have several tokens; the
 * caller then uses policy_evaluate() on each group. `up`, `down` and `extra` are computed by
 * policy_evaluate() on groups of one response with advantages +1, -1 and 0, so no formula is
 * implemented twice. */
gl_status lab_form_init(lab_form *f, int *fast, const policy_algorithm *algorithm,
                        const lab_tables *t, policy_workspace *ws, gl_error *err);
void lab_form_fini(lab_form *f);

#endif
