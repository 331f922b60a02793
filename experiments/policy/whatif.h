/* Evaluates every algorithm on the batches of a recorded run. */
#ifndef GEPOLAB_EXPERIMENTS_POLICY_WHATIF_H
#define GEPOLAB_EXPERIMENTS_POLICY_WHATIF_H

#include "analysis/plot/page.h"
#include "core/policy/policy.h"
#include "experiments/tokens/token_log.h"

#include <stdbool.h>

/* Quantities reported for an algorithm's evaluation of a batch. */
typedef enum whatif_quantity {
  WHATIF_WEIGHT_MEAN,
  WHATIF_WEIGHT_MAX,
  WHATIF_WEIGHT_VARIANCE,
  WHATIF_ESS,
  WHATIF_CLIP_FRACTION,
  WHATIF_AW_VARIANCE,
  WHATIF_COEFFICIENT_NORM, /* sqrt(sum c^2) over tokens, c = d(-loss)/d logp: norm of the gradient
                              if the tokens' scores were orthonormal */
  WHATIF_IDLE_TOKENS,      /* fraction of tokens whose coefficient is 0 */
  WHATIF_LOSS,
  WHATIF_QUANTITIES
} whatif_quantity;
const char *whatif_name(whatif_quantity q);    /* name in JSON, such as "ess" */
const char *whatif_heading(whatif_quantity q); /* column heading, at most 9 characters */

/* Statistics of the finite values, and the number of non-finite ones. */
typedef struct whatif_moments {
  size_t n, n_infinite;
  double mean, least, most; /* NaN where n is 0 */
} whatif_moments;

typedef struct whatif_row {
  policy_algorithm algorithm;
  size_t n, n_refused;
  size_t n_no_prox; /* evaluated batches for which whatif_lacks_prox() holds */
  char why[256];    /* reason for rejecting the first batch that could not be evaluated; "": none */
  whatif_moments of[WHATIF_QUANTITIES];
  whatif_moments ess_on_policy; /* over updates for which policy_is_on_policy() holds */
} whatif_row;

/* Batches of one staleness (rounded): their distance from the learner, which does not depend on the
 * algorithm. */
enum { WHATIF_MOST_STALENESS = 256 };
typedef struct whatif_age {
  size_t n;
  whatif_moments kl_token, kl_response, log_variance; /* kl_k3, kl_k3_seq, log_iw_variance_pq */
} whatif_age;

typedef struct whatif {
  whatif_row *row; /* [n_rows] */
  size_t n_rows;
  size_t n_batches, n_groups, n_responses, n_tokens;
  whatif_age age[WHATIF_MOST_STALENESS + 1]; /* the last entry: this staleness or more */
  size_t n_unknown_age;
  token_log_summary log; /* what was read */
  int keeps;    /* set to 1 after whatif_init() to keep the numbers of every update for figures */
  double *kept; /* [n_batches] updates in the layout of analysis/figures/recorded.h; NULL: none */
  size_t kept_room;
} whatif;

/* Parses an algorithm given by its name or as {base: NAME, field: value, …}, and applies n
 * overrides of its fields. */
gl_status whatif_algorithm(policy_algorithm *out, const char *text, const char *const *overrides,
                           size_t n, gl_error *err);

/* Whether the algorithm uses the proximal policy and the batch does not have its log-probabilities,
 * so that the learner's are used. */
bool whatif_lacks_prox(const policy_algorithm *algorithm, const policy_input *in);
/* What is to be said about it. */
#define WHATIF_LACKS_PROX "without logprox the proximal policy is taken to be the learner's, logp"

/* Prepares rows for algorithms in the syntax of whatif_algorithm() (n_names 0: all published
 * ones, then the user's own).
 * Release with whatif_fini(), also after an error. Errors: GL_ENOMEM, GL_EINPUT (unknown name, with
 * the nearest one). */
gl_status whatif_init(whatif *w, const char *const *names, size_t n_names, gl_error *err);
void whatif_fini(whatif *w);
/* Adds every batch of the logs, with one in memory at a time. Errors: those of token_log_open() and
 * token_log_next(); GL_EINPUT for a log without log-probabilities, and for one that only has
 * advantages that differ within a response. */
gl_status whatif_read(whatif *w, const char *const *paths, size_t n, const token_request *request,
                      gl_error *err);
/* The same for the batches of text[size], with `name` as file name in messages. */
gl_status whatif_read_text(whatif *w, const char *text, size_t size, const char *name,
                           const token_request *request, gl_error *err);

/* Draws the figures of the kept numbers (figures_of_recorded, analysis/figures/recorded.h), without
 * algorithms that evaluated no batch. */
gl_status whatif_draw(const whatif *w, const figure_request *q, gl_error *err);

#endif
