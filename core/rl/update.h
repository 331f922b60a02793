/* One learner step, shared by all learners: batches in one table of tokens, minibatches x epochs
 * optimiser updates, loss weights, metrics. A learner supplies callbacks that score tokens and that
 * turn coefficients into a gradient and an optimiser step.
 *
 * A step scores every token of its batches, lets core/policy compute the coefficients c =
 * d(-loss)/d logp, and lets the learner make an optimiser update with them. A minibatch is a view
 * of the table: a list of groups and their responses.
 *
 * Metrics describe all batches under the parameters at the start of the step; grad_norm is the mean
 * over the step's optimiser updates, before clipping. The proximal policy is the learner's policy
 * at the start of the step; with proximal_decay it is an averaged policy that the learner
 * stores and scores. */
#ifndef GEPOLAB_CORE_RL_UPDATE_H
#define GEPOLAB_CORE_RL_UPDATE_H

#include "core/policy/policy.h"
#include "core/rl/batch.h"
#include "core/rl/learner.h"
#include "core/rl/optimizer_settings.h"
#include "core/rl/sampling_distribution.h"

#include <stdbool.h>

/* --- table of a step's tokens --- */

/* Columns over groups, responses and tokens: group g has responses group_start[g] .. group_start[g
 * + 1] - 1, response i has tokens token_start[i] .. token_start[i + 1] - 1. Must be zeroed before
 * first use; capacities only grow. */
typedef struct update_table {
  size_t n_groups, n_responses, n_tokens;
  /* Replayed responses (core/rl/replay.h), each in a group of its own. They follow those counted
   * above in the columns of batches and in `coefficient`; nothing else of them is set. */
  size_t n_replayed;
  double replay; /* their coefficient in the objective */
  size_t cap_groups, cap_responses, cap_tokens;
  size_t *group_start, *token_start;
  size_t *prompt;                     /* [n_groups] the world's index of the prompt */
  double *log_denominator;            /* [n_groups] log sum_y q(y)^2, if the algorithm needs it */
  double *baseline, *scale, *mean_aw; /* [n_groups] as in policy_output */
  size_t *group_of;                   /* [n_responses] index of the response's group */
  double *reward;                     /* [n_responses] */
  double *loss_weight;                /* [n_responses] the weight of the response's batch */
  int32_t *token;                     /* [n_tokens] */
  double *logq;      /* [n_tokens] behaviour log-probabilities, raw or truncated according to
                        `sampling.weights` */
  double *staleness; /* [n_tokens] learner version - token version */
  double *logp;      /* [n_tokens] under the current policy */
  double *logprox;   /* [n_tokens] under the policy at the start of the step, or under the averaged
                        one if the algorithm has a proximal_decay */
  double *logref;    /* [n_tokens] under the reference policy, if there is one */
  double *entropy;   /* [n_tokens] entropy of the current policy at the token, if needed */
  double *entropy_prox; /* [n_tokens] entropy of the policy of logprox at the token */
  double *coefficient;  /* [n_tokens] d(-loss)/d logp */
} update_table;

/* Concatenates n consistent batches for a learner at `version`; only the last one may be replayed.
 * Errors: GL_ENOMEM, GL_EINTERNAL if a batch continues a group with another prompt. */
gl_status update_table_gather(update_table *t, batch *const *batches, size_t n,
                              sampling_weights weights, int64_t version, gl_error *err);

/* Some groups of a table, in the order in which an update uses them. */
typedef struct token_view {
  size_t n_groups, n_responses, n_tokens;
  const size_t *group;    /* [n_groups] indices of groups in the table */
  const size_t *response; /* [n_responses] responses of these groups, in that order */
} token_view;

/* --- cosine between consecutive gradients --- */
/* The cosine between gradients of consecutive optimiser updates, which GAC (2603.01501) uses as an
 * indicator of instability. The last gradient is stored, complete or as a fixed subset of its
 * entries chosen by the owner. It is part of a checkpoint, so that the first update after loading
 * is compared too. */

typedef struct gradient_trail {
  size_t n;
  double *last;      /* [n] gradient of the last update; undefined while has_last is 0 */
  double *now;       /* [n] the owner writes the current gradient here */
  uint64_t has_last; /* 1: there was a previous update */
  double sum;        /* sum of the cosines since gradient_trail_begin() */
  uint64_t cosines;  /* number of these cosines */
} gradient_trail;

/* An all-zero struct is empty and may be passed to gradient_trail_fini(). Errors: GL_ENOMEM. */
gl_status gradient_trail_init(gradient_trail *t, size_t n, gl_error *err);
void gradient_trail_fini(gradient_trail *t);
/* Starts a step of one or several updates. */
void gradient_trail_begin(gradient_trail *t);
/* Compares the gradient in `now` with the previous one and stores it. There is no cosine if either
 * is zero or not finite. */
void gradient_trail_next(gradient_trail *t);
/* The mean cosine between the step's updates and their predecessors; NaN if there is none. */
double gradient_trail_mean(const gradient_trail *t);

/* --- weight noise --- */
/* Weight noise: multiplies each response's part of the gradient by a random factor with mean 1,
 * which adds variance but no bias (paper/methods.md §12.7). It isolates the effect of the variance
 * of importance weights. */

/* Most optimiser updates of a learner step with weight noise or random drops: `update` is below
 * this, and the index of a response below 2^32. */
enum { UPDATE_MOST_RANDOM = 1 << 16 };

/* The factor of response i in optimiser update `update` of learner step `step`: log-normal with
 * mean 1 and the given variance (0: always 1). The same arguments give the same factor. */
double weight_noise_factor(double variance, uint64_t seed, uint64_t step, size_t update, size_t i);
/* Multiplies the coefficients of n responses by their factors; response i has the coefficients
 * token_start[i] .. token_start[i + 1] - 1. */
void weight_noise_apply(double variance, uint64_t seed, uint64_t step, size_t update,
                        const size_t *token_start, size_t n, double *coefficient);

/* --- random drops --- */
/* A placebo for masks and clips, which drop responses by their likelihood: sets the coefficients of
 * responses to zero at random. Uses the random words of weight noise, so a step may not have both.
 */
void random_drops_apply(const random_drops *d, uint64_t seed, uint64_t step, size_t update,
                        const update_table *t);
/* 1 if any probability is above 0. */
int random_drops_any(const random_drops *d);

/* --- the step --- */

/* Which tokens a call of `score` covers. */
typedef enum update_score {
  UPDATE_WHOLE, /* all tokens, before the first update, with entropies, logref and the inputs of the
                   learner's own metrics */
  UPDATE_PART   /* a minibatch, before its own update, with entropies if the algorithm needs them */
} update_score;

typedef struct update_ops {
  /* Writes logp of the view's tokens, under the current parameters, to the table, and with
   * proximal_decay logprox and entropy_prox under the averaged ones. Sets *defined to
   * false if the policy is no longer defined (non-finite); this ends the step with a result without
   * a loss. */
  gl_status (*score)(void *self, const token_view *view, update_score which, bool *defined,
                     gl_error *err);
  /* Writes the metrics that only this learner can compute; called when the whole table has been
   * scored and has coefficients. */
  void (*measure)(void *self, double metrics[METRIC_COUNT]);
  /* Makes one optimiser update with the coefficients of the view, whose tokens were scored under
   * the current parameters, and of update_view_replayed(). Sets *norm to the gradient norm before
   * clipping and writes the gradient, or the tracked subset of it, to the trail's `now`. */
  gl_status (*step)(void *self, const token_view *view, double lr, double *norm, gl_error *err);
} update_ops;

/* State of the step that every learner has. */
typedef struct update_loop {
  policy_algorithm algorithm;
  optimizer_spec optimizer;
  uint64_t seed, updates; /* updates: number of learner steps of the run */
  size_t minibatches, epochs;
  double weight_noise; /* variance of the weight noise */
  random_drops drops;
  size_t longest;     /* maximum number of tokens of a response in this world */
  bool has_reference; /* whether logref is scored */
  int64_t version;    /* version of the parameters: steps made so far */
  policy_workspace *workspace;
  gradient_trail trail;
  update_table table; /* all tokens of the step */
  update_table part;  /* the columns of a minibatch that core/policy reads */
  size_t *order;      /* [cap_order] groups in minibatch order */
  size_t *responses;  /* [cap_responses] responses of a view */
  size_t cap_order, cap_responses;
} update_loop;

/* Initialises the loop from the setup. Errors: GL_ENOMEM. */
gl_status update_loop_init(update_loop *u, const learner_setup *setup, gl_error *err);
void update_loop_fini(update_loop *u);

bool update_wants_entropies(const update_loop *u);
/* Makes a view of all groups of the table, in order. Valid until the next view or table. Errors:
 * GL_ENOMEM. */
gl_status update_view_all(update_loop *u, token_view *view, gl_error *err);
/* A view of the table's replayed responses, without their groups, whose coefficients are set.
 * Valid as long as update_view_all()'s. */
token_view update_view_replayed(const update_loop *u);
/* Computes coefficients and metrics of the algorithm's loss on the whole table. logp must be set;
 * it is copied to logprox, unless the algorithm has a proximal_decay. */
gl_status update_evaluate(update_loop *u, const policy_algorithm *algorithm, double *metrics,
                          gl_error *err);
/* Makes one learner step on the contents of the table. Increments the version. */
gl_status update_run(update_loop *u, const update_ops *ops, void *self,
                     double metrics[METRIC_COUNT], gl_error *err);

#endif
