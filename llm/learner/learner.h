/* The learner's state, shared by the files of this folder that sample, update, warm up and write
 * checkpoints. Other folders include llm_learner.h. */
#ifndef GEPOLAB_LLM_LEARNER_LEARNER_H
#define GEPOLAB_LLM_LEARNER_LEARNER_H

#include "core/rl/update.h"
#include "llm/backend/collective.h"
#include "llm/learner/llm_learner.h"
#include "llm/learner/packed_tokens.h"
#include "llm/learner/run_spec.h"
#include "llm/model/generate.h"

/* --- threads of replicas (data_parallel.c) --- */
/* A data-parallel learner has a thread for each of its replicas, numbered by rank. Rank 0 is the
 * caller's own thread, so a learner of one replica starts no thread. Everything that a replica owns
 * on its device is made, used and released on its rank's thread, because CUDA has one current
 * device per thread. */

typedef struct rank_threads rank_threads;

/* A rank's part of some work. Each rank has its own err. */
typedef gl_status (*rank_task)(void *context, size_t rank, gl_error *err);

/* n >= 1. Errors: GL_ENOMEM, GL_EIO (a thread cannot be started). */
gl_status rank_threads_new(rank_threads **out, size_t n, gl_error *err);
/* Ends the threads; no task may be running. NULL is allowed. */
void rank_threads_free(rank_threads *r);
/* The number of ranks. Exposed for its test. */
size_t rank_threads_count(const rank_threads *r);

/* Sets the collective with which tasks sum (borrowed; NULL: none). When a rank fails the collective
 * is aborted, so that ranks waiting in a sum return with an error. */
void rank_threads_set_sums(rank_threads *r, collective *sums);

/* Runs the task on every rank at the same time and returns when all have ended. Returns the first
 * error; its message names the device if there are several. */
gl_status rank_threads_run(rank_threads *r, rank_task task, void *context, gl_error *err);
/* Runs the task on one rank alone. */
gl_status rank_threads_run_at(rank_threads *r, size_t rank, rank_task task, void *context,
                              gl_error *err);

/* --- state --- */

/* Responses that a forward or backward processes, from an update's table or an incomplete batch:
 * response[j], j = 0 .. n - 1. The other arrays are indexed by response. Borrowed. */
typedef struct response_list {
  size_t n;
  const size_t *response; /* [n] indices of the responses */
  const size_t *start;    /* first token of each response */
  const size_t *length;   /* number of its tokens; NULL: up to the next response's first */
  const size_t *first;    /* tokens of a response before this one are not written; NULL: all are */
  const size_t *group_of; /* index of the response's prompt in `prompts` */
  const problem_set *prompts; /* the prompts of the groups */
  const int32_t *token;
  kept_shape shape;     /* shape of the sets of kept tokens; no words: no sets */
  const uint32_t *kept; /* kept sets, one per token */
  bool replays;         /* true: distributions are renormalised over these sets */
} response_list;

/* Parameters of a version that samplers still use. They stay in device memory as long as enough
 * remains free for a step, else in host memory (model_values_put_aside). */
typedef struct held_version {
  int64_t version;
  model_values *values;
} held_version;

/* The learner's state on one of its devices (data parallelism). All replicas start with the same
 * parameters and make the same steps down the sum of their gradients. So their parameters stay
 * equal, bit for bit. */
typedef struct replica {
  backend *backend;
  model *model;
  model_optimizer *optimizer; /* that of RL; during a warm-up, that of the warm-up */
  model_values *reference;    /* the reference policy; NULL: not needed */
  model_values
      *initial;       /* parameters before the first update, if samplers mix them in; else NULL */
  held_version *held; /* [n_held] versions, the same in the same order on all replicas */
  size_t n_held, cap_held;
  model_stores stores; /* what its model's forward before a backward stores */
  size_t step_bytes;   /* planned memory of a step, beyond what stays allocated */
  token_pack pack;
  double
      *scratch; /* [cap_scratch] dlogp of a micro-batch, and log-probabilities that are discarded */
  size_t cap_scratch;
} replica;

typedef struct llm_learner {
  run_spec spec;
  update_loop update; /* compares gradients by model_gradient_sample() */
  training_reward rewards;
  int keeps_cache;           /* 1: keys and values are kept between calls that extend a response */
  replica *replica;          /* [spec.devices] */
  rank_threads *threads;     /* one thread per replica */
  collective *sums;          /* sums gradients over replicas; NULL with one replica */
  size_t *share;             /* [spec.devices + 1] first item of work of each replica */
  double *norm;              /* [spec.devices] gradient norm that each replica computed */
  backend *backend;          /* that of the first replica */
  model *model;              /* that of the first replica */
  problem_set held_out;      /* the problems of the evaluation */
  problem_set *set_problems; /* [spec.sets.n] the problems of its sets */
  const llm_watch *watch;    /* set while the warm-up runs; NULL: none */
  /* Data of an update beside its table: */
  problem_set prompts;   /* the prompts of the table's groups */
  kept_shape kept_shape; /* shape of the kept sets in the table's batches */
  uint32_t *kept;        /* kept sets, one per token; capacity cap_kept words */
  double *part[3];       /* [cap_part], one per token, if there are sets: mass and entropies of
                            kept_parts() */
  double kept_mass_q;    /* mean over tokens of the sampler's probability of its kept set */
  size_t *rows;          /* [cap_rows] packed rows of each response in the last pass */
  size_t cap_kept, cap_part, cap_rows;
  int forward_kept; /* 1: the last score's activations are stored for a backward over the same
                       responses */
} llm_learner;

/* --- replicas (data_parallel.c) --- */

/* Opens a backend for each device; below, releases everything that replicas own. */
gl_status llm_learner_open(llm_learner *l, size_t threads, gl_error *err);
void llm_learner_close(llm_learner *l);
/* Makes a model with zero parameters on each replica, and the collective that sums over them. To be
 * called after the memory check. */
gl_status llm_learner_models(llm_learner *l, gl_error *err);
/* Replaces every replica's optimiser by a new one; NULL: by none. */
gl_status llm_learner_optimizer(llm_learner *l, const optimizer_spec *spec, gl_error *err);
/* Calls model_read() for every replica, each from the file's present position. */
gl_status llm_learner_read(llm_learner *l, FILE *from, gl_error *err);
/* Ensures scratch holds n doubles; the contents are lost. */
gl_status replica_scratch(replica *r, size_t n, gl_error *err);
/* Called on every rank, inside a task: sums the gradients of all replicas and makes one step down
 * the sum. *norm: its norm before clipping. */
gl_status llm_learner_step(llm_learner *l, size_t rank, double lr, double *norm, gl_error *err);
/* The gradient norm of the last llm_learner_step(), after all ranks stored theirs in l->norm.
 * Errors: GL_EINTERNAL (the replicas computed different norms). */
gl_status llm_learner_norm(const llm_learner *l, double *norm, gl_error *err);
/* Divides items 0 .. n - 1 into contiguous parts of about equal work, where work(context, i) is the
 * work of item i. Items share[rank] .. share[rank + 1] - 1 belong to the rank. */
typedef size_t (*item_work)(const void *context, size_t item);
void llm_learner_divide(llm_learner *l, item_work work, const void *context, size_t n);

/* --- generation (draw.c) --- */

/* A request for `each` responses to every problem, up to `up_to` tokens, with their random-stream
 * addresses. */
typedef struct drawing_request {
  const problem_set *problems;
  size_t each, up_to;
  const size_t *limit; /* [responses] limit of tokens per response; NULL: up_to for all */
  size_t first;        /* the number of the first response in its stream */
  rng_stream stream;
  rank_task use_version; /* makes every replica use the parameters of the version to sample from */
  void *use_context;
} drawing_request;

/* Generates the requested responses under a distribution (NULL: greedy). Each has room for
 * max_tokens tokens in the result. The work is divided among the replicas. */
gl_status generate_on_replicas(llm_learner *l, const drawing_request *r, const sampling_spec *dist,
                               size_t max_tokens, generate_result *result, gl_error *err);

/* --- evaluation (evaluate.c) --- */

/* Mean score on the first held-out problems, as configured in the section `evaluation`: of greedy
 * responses, or of responses sampled from the stream (seed, RNG_EVAL, entity). NaN if parameters
 * are not finite. */
gl_status llm_learner_score(llm_learner *l, uint64_t entity, double *score, gl_error *err);

/* Reads the problems of the evaluation and of its sets. Errors: GL_EINPUT, at the set's position (a
 * problem that the tokenizer cannot encode or that does not fit the context). */
gl_status llm_learner_take_problems(llm_learner *l, gl_error *err);
gl_status llm_learner_take_set_problems(llm_learner *l, gl_error *err);
void llm_learner_free_problems(llm_learner *l);
gl_status llm_learner_evaluate(void *self, double *eval_score, gl_error *err);
const evaluation_part *llm_learner_parts(const void *self, size_t *n);
gl_status llm_learner_evaluate_parts(void *self, double *score, gl_error *err);

/* Copies n batches into the update's table and the arrays beside it. Errors: GL_EINPUT (a batch
 * sampled in another world). */
gl_status llm_learner_gather(llm_learner *l, batch *const *batches, size_t n, gl_error *err);

/* The parameters that score tokens: those in use, the reference, or those before the first update.
 * After a score with one of the last two the model's own parameters are in use. */
typedef enum score_policy { SCORE_IN_USE, SCORE_REFERENCE, SCORE_INITIAL } score_policy;
/* Computes the log-probabilities of the listed tokens with the learner's forward, under the
 * policy's parameters and that temperature, and writes them to logp at the tokens' indices. If the
 * list replays kept sets, distributions are renormalised over them. Every response has at least one
 * token. */
gl_status llm_learner_log_probs(llm_learner *l, const response_list *s, score_policy policy,
                                double temperature, double *logp, gl_error *err);

/* Computes on the first replica the gradient of the algorithm's loss on the table's batches
 * (l->spec.devices is 1), as in a batch's first update. metrics receives the diagnostics of
 * core/policy and of the batch. Errors: GL_EINPUT (log-probabilities that are not finite), those of
 * policy_evaluate(). */
gl_status llm_learner_differentiate(llm_learner *l, const policy_algorithm *algorithm,
                                    double *metrics, gl_error *err);

/* Trains the new model on the task's training split as spec.warmup says. With a cache folder (NULL:
 * none) the result is stored there, or loaded from there. setup->preparation observes the warm-up
 * and stores its state for this run. */
gl_status llm_learner_warm_up(llm_learner *l, const learner_setup *setup, gl_error *err);

/* The functions of the table in core/rl/learner.h. */
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
