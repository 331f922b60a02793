/* Inside the llm room: the learner's state, shared by drawing, updating, warming up and
 * checkpoints.
 */
#ifndef GEPOLAB_LLM_LEARNER_LEARNER_H
#define GEPOLAB_LLM_LEARNER_LEARNER_H

#include "core/policy/policy.h"
#include "core/rl/learner.h"
#include "llm/learner/llm_learner.h"
#include "llm/learner/packed_tokens.h"
#include "llm/learner/rank_threads.h"
#include "llm/learner/run_spec.h"
#include "llm/model/generate.h"

/* Some groups laid out as policy_evaluate() wants them. Capacities only grow. */
typedef struct rollout_set {
  size_t n_groups, n_responses, n_tokens, n_prompt_tokens;
  size_t cap_groups, cap_responses, cap_tokens, cap_prompt_tokens;
  size_t *group_start, *token_start;
  size_t *prompt_start; /* [n_groups + 1] */
  int32_t *prompt;      /* [n_prompt_tokens] */
  double *reward;       /* [n_responses] */
  int32_t *token;       /* [n_tokens] */
  double *sampled_logq; /* [n_tokens] what the weights see: raw or truncated */
  double *gap, *logp, *logprox, *logref, *entropy, *coefficient; /* [n_tokens] */
} rollout_set;

/* Parameters of a version that samplers still draw from: on the device as long as room is left
 * there for a step, else put aside. */
typedef struct held_version {
  int64_t version;
  model_values *values;
} held_version;

/* What a learner has on one of its devices. All replicas start with the same parameters and take
 * the same steps, by the sum of their gradients: so their parameters stay the same, bit for bit. */
typedef struct replica {
  backend *backend;
  model *model;
  model_optimizer *optimizer; /* of the warm-up, while that runs */
  model_values *reference;    /* NULL: none is needed */
  held_version *held;         /* [n_held]; the same versions in the same order on all */
  size_t n_held, cap_held;
  size_t step_bytes; /* memory that steps take beside what stays allocated, as planned */
  token_pack pack;
  double *scratch; /* [cap_scratch] log-probabilities nobody reads, and dlogp of a micro-batch */
  size_t cap_scratch;
} replica;

typedef struct llm_learner {
  run_spec spec;
  policy_algorithm algorithm;
  uint64_t seed, updates;
  size_t minibatches, epochs;
  int64_t version;
  optimizer_spec optimizer_spec;
  replica *replica;       /* [spec.devices] */
  rank_threads *threads;  /* one for each replica */
  collective *sums;       /* NULL: one replica needs none */
  size_t *share;          /* [spec.devices + 1] where each replica's part of the work starts */
  double *norm;           /* [spec.devices] gradient norms that they saw */
  backend *backend;       /* the first replica's */
  model *model;           /* the same */
  problem_set held_out;   /* the evaluation's problems */
  const llm_watch *watch; /* of the warm-up, while it runs; NULL: none */
  policy_workspace *workspace;
  rollout_set all, part;
  size_t *order; /* [cap_order] groups in minibatch order */
  size_t cap_order;
} llm_learner;

/* --- replicas (learner_replica.c) --- */

/* Backends, one for each device; and the end of everything that replicas have. */
gl_status llm_learner_open(llm_learner *l, size_t threads, gl_error *err);
void llm_learner_close(llm_learner *l);
/* Models, whose parameters are all zero, and sums over them, once it is known that they fit. */
gl_status llm_learner_models(llm_learner *l, gl_error *err);
/* A new optimiser on every replica, in the place of those there are; NULL: none. */
gl_status llm_learner_optimizer(llm_learner *l, const optimizer_spec *spec, gl_error *err);
/* model_read() into every replica, from where the file stands. */
gl_status llm_learner_read(llm_learner *l, FILE *from, gl_error *err);
/* Ensures scratch holds n doubles; contents are lost. */
gl_status replica_scratch(replica *r, size_t n, gl_error *err);
/* Inside a task, on every rank: sums the gradients of all replicas and takes one step down the
 * sum. *norm is its norm before clipping. */
gl_status llm_learner_step(llm_learner *l, size_t rank, double lr, double *norm, gl_error *err);
/* After it: the norm, which all replicas must have seen alike. */
gl_status llm_learner_norm(const llm_learner *l, double *norm, gl_error *err);
/* Divides items 0 .. n - 1, of which each is so much work, into contiguous parts of about the same
 * work: share[rank] .. share[rank + 1] - 1 are the rank's. */
typedef size_t (*item_work)(const void *context, size_t item);
void llm_learner_divide(llm_learner *l, item_work work, const void *context, size_t n);

/* --- generation ---------------------------------------------------------------------------------
 */

/* Responses to the problems of a set, `each` to a problem, numbered as they are listed; drawn as
 * `law` says, or greedy (law NULL). Every replica draws a part of them. */
gl_status llm_learner_generate(llm_learner *l, const problem_set *problems, size_t each,
                               rng_stream stream, const sampling_spec *law, size_t up_to,
                               generate_result *result, gl_error *err);
/* Mean score on the first held-out problems, as the section's `evaluation` says: of greedy
 * responses, or of those drawn at (seed, RNG_EVAL, entity). NaN where the parameters have stopped
 * being numbers. */
gl_status llm_learner_score(llm_learner *l, uint64_t entity, double *score, gl_error *err);

/* Forgets all held versions of a replica. */
void replica_release_all(replica *r);
/* Holds the model's parameters as they are now under a version's number. */
gl_status replica_add_held(replica *r, int64_t version, gl_error *err);

void rollout_set_fini(rollout_set *s);
/* Makes room; old contents are lost. */
gl_status rollout_set_resize(rollout_set *s, size_t groups, size_t responses, size_t tokens,
                             size_t prompt_tokens, gl_error *err);
/* to = groups order[0..n) of from: what an update reads, logprox and logref included. */
gl_status rollout_set_select(rollout_set *to, const rollout_set *from, const size_t *order,
                             size_t n, gl_error *err);
/* Lays n batches out in the learner's whole set. GL_EINPUT for a batch that another world drew. */
gl_status llm_learner_gather(llm_learner *l, batch *const *batches, size_t n, gl_error *err);

/* Trains the fresh model on the task's training split as spec.warmup says; with a cache
 * folder (NULL: none) the result is kept there or taken from there; setup->preparation watches it
 * and keeps it for this run. */
gl_status llm_learner_warm_up(llm_learner *l, const learner_setup *setup, gl_error *err);

/* The functions of the table in core/rl/learner.h, each in a file of its own. */
gl_status llm_learner_draw(void *self, const draw_request *request, batch *b, gl_error *err);
gl_status llm_learner_update(void *self, batch *const *batches, size_t n,
                             double metrics[METRIC_COUNT], gl_error *err);
gl_status llm_learner_hold(void *self, gl_error *err);
void llm_learner_release(void *self, int64_t version);
gl_status llm_learner_save(void *self, FILE *to, gl_error *err);
gl_status llm_learner_load(void *self, FILE *from, gl_error *err);

#endif
