/* One learner step, the same for every learner: its batches as one table of tokens, minibatches x
 * epochs optimiser updates, weights of the loss, metrics. What differs between learners is a small
 * table of callbacks: how tokens are scored, and how coefficients become a gradient and a step.
 *
 * A minibatch is a view of the table: a list of groups and their responses. A step scores every
 * token of its batches, asks core/policy for the coefficients c = d(-loss)/d logp, and has the
 * learner take an optimiser update along them.
 *
 * Metrics describe the whole of the batches under the parameters the step starts from; grad_norm
 * is the mean over the step's optimiser updates, before clipping. The proximal policy is the
 * learner's at the start of the step. */
#ifndef GEPOLAB_CORE_RL_UPDATE_H
#define GEPOLAB_CORE_RL_UPDATE_H

#include "core/policy/policy.h"
#include "core/rl/batch.h"
#include "core/rl/learner.h"
#include "core/rl/optimizer.h"
#include "core/rl/sampling.h"

#include <stdbool.h>

/* --- the table of a step's tokens --- */

/* Columns over groups, responses and tokens: group g has the responses group_start[g] ..
 * group_start[g + 1] - 1, response i the tokens token_start[i] .. token_start[i + 1] - 1. Zeroed
 * before first use; capacities only grow. */
typedef struct update_table {
  size_t n_groups, n_responses, n_tokens;
  size_t cap_groups, cap_responses, cap_tokens;
  size_t *group_start, *token_start;
  size_t *prompt;          /* [n_groups] the world's number of the prompt */
  double *log_denominator; /* [n_groups] log sum_y q(y)^2, where the algorithm needs it */
  double *baseline, *scale, *mean_aw; /* [n_groups] as policy_output has them */
  size_t *group_of;                   /* [n_responses] */
  double *reward;                     /* [n_responses] */
  double *loss_weight;                /* [n_responses] that of its batch */
  int32_t *token;                     /* [n_tokens] */
  double *logq;                       /* [n_tokens] behaviour log-probabilities, raw or truncated as
                                         `sampling.weights` says */
  double *gap;                        /* [n_tokens] learner version minus token version */
  double *logp;                       /* [n_tokens] under the current policy */
  double *logprox;                    /* [n_tokens] under the policy of the step's start */
  double *logref;  /* [n_tokens] under the reference policy, where there is one */
  double *entropy; /* [n_tokens] of the current policy where the token stands, where it is wanted */
  double *coefficient; /* [n_tokens] d(-loss)/d logp */
} update_table;

void update_table_fini(update_table *t);
/* Makes room; old contents are lost. */
gl_status update_table_resize(update_table *t, size_t groups, size_t responses, size_t tokens,
                              gl_error *err);
/* Lays n consistent batches out one behind the other for a learner of that version. GL_EINTERNAL
 * where a batch continues a group of another prompt. */
gl_status update_table_gather(update_table *t, batch *const *batches, size_t n,
                              sampling_weights weights, int64_t version, gl_error *err);

/* Some groups of a table, in the order of an update. */
typedef struct token_view {
  size_t n_groups, n_responses, n_tokens;
  const size_t *group;    /* [n_groups] */
  const size_t *response; /* [n_responses] theirs, in that order */
} token_view;

/* --- the cosine of consecutive gradients --- */
/* Between the gradients of consecutive optimiser updates, which announces that steps begin to undo
 * each other (GAC, 2603.01501): the gradient of the last update is kept, whole or as many of its
 * numbers as its owner chooses, the same ones at every update. Part of a checkpoint, for the first
 * update after one is compared, too. */

typedef struct gradient_trail {
  size_t n;
  double *last;     /* [n] of the last update; without meaning while `has` is 0 */
  double *now;      /* [n] where the owner puts the present one */
  uint64_t has;     /* 1: there was an update before */
  double sum;       /* of the cosines since gradient_trail_begin() */
  uint64_t cosines; /* how many they are */
} gradient_trail;

/* All zero is an empty one, which gradient_trail_fini() takes. GL_ENOMEM. */
gl_status gradient_trail_init(gradient_trail *t, size_t n, gl_error *err);
void gradient_trail_fini(gradient_trail *t);
/* A step of several updates begins. */
void gradient_trail_begin(gradient_trail *t);
/* `now` holds the gradient of an update: compares it with the one before and keeps it. Where one of
 * the two is zero or not finite there is no cosine. */
void gradient_trail_next(gradient_trail *t);
/* The mean cosine of the step's updates with the ones before them; NaN where there is none. */
double gradient_trail_mean(const gradient_trail *t);

/* --- noise of weights --- */
/* Importance weights that vary more than they would: each response's part of the gradient is
 * multiplied by a random factor with mean 1, which adds variance and no bias (paper/methods.md
 * §12.7). It is how a study asks what the variance of weights does by itself. */

/* The factor of response i in optimiser update `update` of learner step `step`: log-normal, mean 1,
 * the given variance (0: always 1). The same numbers give the same factor. At most 2^32 responses
 * and updates of a step. */
double weight_noise_factor(double variance, uint64_t seed, uint64_t step, size_t update, size_t i);
/* Multiplies the coefficients of n responses by their factors; response i has the coefficients
 * token_start[i] .. token_start[i + 1] - 1. */
void weight_noise_apply(double variance, uint64_t seed, uint64_t step, size_t update,
                        const size_t *token_start, size_t n, double *coefficient);

/* --- the step --- */

/* Which score of a step's tokens is wanted. */
typedef enum update_score {
  UPDATE_WHOLE, /* all tokens, before the first update: with entropies and logref, and with what
                   the learner's own metrics need */
  UPDATE_PART   /* a minibatch, before its own update: with entropies where the algorithm needs
                   them */
} update_score;

typedef struct update_ops {
  /* logp of the view's tokens into the table, under the parameters as they are; *defined is false
   * where the policy is not defined any more, which ends the step as a result without a loss. */
  gl_status (*score)(void *self, const token_view *view, update_score which, bool *defined,
                     gl_error *err);
  /* The metrics that only this learner knows, once the whole table is scored and its coefficients
   * are there. */
  void (*measure)(void *self, double metrics[METRIC_COUNT]);
  /* One optimiser update along the coefficients of the view, whose tokens were scored under the
   * parameters as they are. *norm: of the gradient, before clipping; the gradient, or the numbers
   * that are followed of it, goes into the trail's `now`. */
  gl_status (*step)(void *self, const token_view *view, double lr, double *norm, gl_error *err);
} update_ops;

/* What every learner has for its steps. */
typedef struct update_loop {
  policy_algorithm algorithm;
  optimizer_spec optimizer;
  uint64_t seed, updates; /* updates: learner steps of the run */
  size_t minibatches, epochs;
  double weight_noise; /* variance */
  size_t longest;      /* tokens of the longest response that the world allows */
  bool has_reference;  /* logref is scored */
  int64_t version;     /* of the parameters: steps made so far */
  policy_workspace *workspace;
  gradient_trail trail;
  update_table table; /* of the step */
  update_table part;  /* a minibatch's columns as core/policy reads them */
  size_t *order;      /* [cap_order] groups in minibatch order */
  size_t *responses;  /* [cap_responses] of a view */
  size_t cap_order, cap_responses;
} update_loop;

/* Fills in what the setup says. GL_ENOMEM. */
gl_status update_loop_init(update_loop *u, const learner_setup *setup, gl_error *err);
void update_loop_fini(update_loop *u);

bool update_wants_entropies(const update_loop *u);
/* All groups of the table, in order. Valid until the next view or table. GL_ENOMEM. */
gl_status update_view_all(update_loop *u, token_view *view, gl_error *err);
/* The coefficients and metrics of the algorithm's loss on the whole table, whose logp is set and
 * becomes its logprox. */
gl_status update_evaluate(update_loop *u, const policy_algorithm *algorithm, double *metrics,
                          gl_error *err);
/* One learner step on what the table holds. Increments the version. */
gl_status update_run(update_loop *u, const update_ops *ops, void *self,
                     double metrics[METRIC_COUNT], gl_error *err);

#endif
