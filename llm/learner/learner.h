/* The learner's state, shared by the files of this folder that draw, update, warm up and write
 * checkpoints. Other rooms include llm_learner.h. */
#ifndef GEPOLAB_LLM_LEARNER_LEARNER_H
#define GEPOLAB_LLM_LEARNER_LEARNER_H

#include "core/rl/update.h"
#include "llm/backend/collective.h"
#include "llm/learner/llm_learner.h"
#include "llm/learner/packed_tokens.h"
#include "llm/learner/run_spec.h"
#include "llm/model/generate.h"

/* --- threads of replicas (replica.c) --- */
/* A data-parallel learner has a thread for each of its replicas, numbered by rank. Rank 0 is the
 * caller's own thread, so that a learner of one replica never leaves it. Everything that a replica
 * owns on its device is made, used and released on its rank's thread: CUDA keeps a current device
 * for each thread. */

typedef struct rank_threads rank_threads;

/* A rank's part of some work. err is this rank's own. */
typedef gl_status (*rank_task)(void *context, size_t rank, gl_error *err);

/* n from 1 on. GL_ENOMEM, GL_EIO where a thread cannot be started. */
gl_status rank_threads_new(rank_threads **out, size_t n, gl_error *err);
/* Ends the threads; no task may be running. NULL is fine. */
void rank_threads_free(rank_threads *r);
size_t rank_threads_count(const rank_threads *r);

/* Names the collective that tasks sum with (borrowed; NULL: none). When a rank fails it is aborted,
 * so that ranks that wait in a sum return with an error. */
void rank_threads_set_sums(rank_threads *r, collective *sums);

/* Runs the task on every rank at the same time and returns when all have ended. Of several failures
 * the first is returned, naming the device where there are several. */
gl_status rank_threads_run(rank_threads *r, rank_task task, void *context, gl_error *err);
/* Runs the task on one rank alone. */
gl_status rank_threads_run_at(rank_threads *r, size_t rank, rank_task task, void *context,
                              gl_error *err);

/* --- state --- */

/* Responses that a forward or backward goes over, of an update's table or of a batch under way: the
 * one at place j is response[j]. Borrowed. */
typedef struct response_list {
  size_t n;
  const size_t *response; /* [n] */
  const size_t *start;    /* of a response's tokens */
  const size_t *length;   /* their number; NULL: up to the next response's */
  const size_t *first;    /* of a response: the tokens before it are not written; NULL: all are */
  const size_t *group_of; /* of a response: its prompt's place in `prompts` */
  const problem_set *prompts; /* of the groups */
  const int32_t *token;
  kept_shape shape;     /* of the sets of kept tokens; no words: there are none */
  const uint32_t *kept; /* by tokens */
  bool replays;         /* distributions are renormalised over these sets */
} response_list;

/* Parameters of a version that samplers still draw from: in the device's memory as long as enough
 * of it stays free for a step, else put aside (model_values_put_aside). */
typedef struct held_version {
  int64_t version;
  model_values *values;
} held_version;

/* What a learner has on one of its devices (data parallelism). All replicas start with the same
 * parameters and take the same steps down the sum of their gradients, so that their parameters stay
 * the same, bit for bit. */
typedef struct replica {
  backend *backend;
  model *model;
  model_optimizer *optimizer; /* of the warm-up, while that runs */
  model_values *reference;    /* NULL: none is needed */
  model_values *initial;      /* before the first update, where samplers mix that in; else NULL */
  held_version *held;         /* [n_held]; the same versions in the same order on all */
  size_t n_held, cap_held;
  size_t step_bytes; /* memory that a step takes beside what stays allocated, as planned */
  token_pack pack;
  double *
      scratch; /* [cap_scratch] dlogp of a micro-batch, and log-probabilities that are not needed */
  size_t cap_scratch;
} replica;

typedef struct llm_learner {
  run_spec spec;
  update_loop update; /* its trail follows model_gradient_sample() */
  training_reward rewards;
  int keeps_cache;           /* keys and values, between draws of a response */
  replica *replica;          /* [spec.devices] */
  rank_threads *threads;     /* one for each replica */
  collective *sums;          /* NULL: one replica needs none */
  size_t *share;             /* [spec.devices + 1] first item of work of each replica */
  double *norm;              /* [spec.devices] gradient norm that each computed */
  backend *backend;          /* the first replica's */
  model *model;              /* the same */
  problem_set held_out;      /* the evaluation's problems */
  problem_set *set_problems; /* [spec.sets.n] those of its sets */
  const llm_watch *watch;    /* of the warm-up, while it runs; NULL: none */
  /* what an update has beside its table */
  problem_set prompts;   /* of the table's groups */
  kept_shape kept_shape; /* of the sets that its batches have */
  uint32_t *kept;        /* by tokens; of cap_kept words */
  double *part[3];       /* [cap_part] by tokens, where there are sets: of kept_parts(), mass and
                            entropies */
  double kept_mass_q;    /* mean over tokens of the sampler's probability of what it kept */
  size_t *rows;          /* [cap_rows] that the last pass counted for each of its responses */
  size_t cap_kept, cap_part, cap_rows;
  int forward_kept; /* that of the last score serves a backward over the same responses */
} llm_learner;

/* --- replicas (replica.c) --- */

/* Opens a backend for each device, and releases everything that replicas have. */
gl_status llm_learner_open(llm_learner *l, size_t threads, gl_error *err);
void llm_learner_close(llm_learner *l);
/* Makes a model with zero parameters on each replica, and the collective that sums over them. To be
 * called when it is known that they fit into memory. */
gl_status llm_learner_models(llm_learner *l, gl_error *err);
/* Gives every replica a new optimiser in place of the one it has; NULL: none. */
gl_status llm_learner_optimizer(llm_learner *l, const optimizer_spec *spec, gl_error *err);
/* model_read() into every replica, each from the file's present position. */
gl_status llm_learner_read(llm_learner *l, FILE *from, gl_error *err);
/* Ensures scratch holds n doubles; contents are lost. */
gl_status replica_scratch(replica *r, size_t n, gl_error *err);
/* Called on every rank, inside a task: sums the gradients of all replicas and takes one step down
 * the sum, whose norm before clipping is *norm. */
gl_status llm_learner_step(llm_learner *l, size_t rank, double lr, double *norm, gl_error *err);
/* After such a step: its norm. GL_EINTERNAL if the replicas computed different ones. */
gl_status llm_learner_norm(const llm_learner *l, double *norm, gl_error *err);
/* Divides items 0 .. n - 1 into contiguous parts of about equal work, work(context, i) being that
 * of item i: share[rank] .. share[rank + 1] - 1 become the rank's. */
typedef size_t (*item_work)(const void *context, size_t item);
void llm_learner_divide(llm_learner *l, item_work work, const void *context, size_t n);

/* --- generation (draw.c) --- */

/* Mean score on the first held-out problems, as the section's `evaluation` says: of greedy
 * responses, or of those drawn at (seed, RNG_EVAL, entity). NaN where the parameters have stopped
 * being numbers. */
gl_status llm_learner_score(llm_learner *l, uint64_t entity, double *score, gl_error *err);

/* --- evaluation (evaluate.c) --- */

/* Reads the problems of the evaluation and of its sets; GL_EINPUT at its place for a set with a
 * problem that the tokenizer cannot write or the context not hold. */
gl_status llm_learner_take_problems(llm_learner *l, gl_error *err);
gl_status llm_learner_take_set_problems(llm_learner *l, gl_error *err);
void llm_learner_free_problems(llm_learner *l);
gl_status llm_learner_evaluate(void *self, double *eval_score, gl_error *err);
const evaluation_part *llm_learner_parts(const void *self, size_t *n);
gl_status llm_learner_evaluate_parts(void *self, double *score, gl_error *err);

/* Releases all held versions of a replica. */
void replica_release_all(replica *r);
/* Keeps a copy of the model's parameters as they are now, as that version. */
gl_status replica_add_held(replica *r, int64_t version, gl_error *err);

/* Lays n batches out in the update's table and beside it. GL_EINPUT for a batch that was drawn in
 * another world. */
gl_status llm_learner_gather(llm_learner *l, batch *const *batches, size_t n, gl_error *err);

/* The parameters that score tokens: those in use, the reference or those before the first update.
 * After a score by the last two the model's own are in use. */
typedef enum score_policy { SCORE_IN_USE, SCORE_REFERENCE, SCORE_INITIAL } score_policy;
/* Log-probabilities of the listed tokens under such parameters at a temperature, by the learner's
 * forward, to the tokens' places in logp; over the tokens that were kept where the list replays
 * them. Every response has a token at least. */
gl_status llm_learner_log_probs(llm_learner *l, const response_list *s, score_policy policy,
                                double temperature, double *logp, gl_error *err);

/* The gradient of the algorithm's loss, on the first replica, of what the table holds
 * (l->spec.devices is 1): that of a batch's first update. metrics get what core/policy and the
 * batch report. GL_EINPUT where log-probabilities are not finite, and as policy_evaluate(). */
gl_status llm_learner_differentiate(llm_learner *l, const policy_algorithm *algorithm,
                                    double *metrics, gl_error *err);

/* Trains the fresh model on the task's training split as spec.warmup says; with a cache
 * folder (NULL: none) the result is kept there or taken from there; setup->preparation watches it
 * and keeps it for this run. */
gl_status llm_learner_warm_up(llm_learner *l, const learner_setup *setup, gl_error *err);

/* The functions of the table in core/rl/learner.h, . */
gl_status llm_learner_draw(void *self, const draw_request *request, batch *b, gl_error *err);
gl_status llm_learner_join(void *self, batch *b, const batch_group *group, size_t n, gl_error *err);
gl_status llm_learner_adopt(const void *self, batch *b, gl_error *err);
size_t llm_learner_longest(const void *self);
gl_status llm_learner_keep_cache(void *self, gl_error *err);
gl_status llm_learner_update(void *self, batch *const *batches, size_t n,
                             double metrics[METRIC_COUNT], gl_error *err);
gl_status llm_learner_hold(void *self, gl_error *err);
void llm_learner_release(void *self, int64_t version);
gl_status llm_learner_save(void *self, FILE *to, gl_error *err);
gl_status llm_learner_load(void *self, FILE *from, gl_error *err);

#endif
