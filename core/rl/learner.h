/* The learner interface, a table of functions implemented by toy/ and llm/. The training loop in
 * experiments/ connects a learner with a schedule through this header only. */
#ifndef GEPOLAB_CORE_RL_LEARNER_H
#define GEPOLAB_CORE_RL_LEARNER_H

#include "core/base/error.h"
#include "core/base/metrics.h"
#include "core/config/config.h"
#include "core/policy/algorithm.h"
#include "core/rl/batch.h"
#include "core/rl/evaluation.h"

#include <stdint.h>
#include <stdio.h>

/* Corruption of training rewards: some prompts are never rewarded, some rewards are flipped.
 * Evaluation scores are not affected (paper/methods.md §12.5). */
typedef struct training_reward {
  double unsolvable; /* fraction of prompts whose responses all get reward 0 */
  double flip; /* fraction of the other rewards r replaced by 1 - r; rewards must be in [0, 1] */
} training_reward;

/* Reads the keys `unsolvable` and `reward_noise: {flip}` of the section at r. */
gl_status training_reward_read(training_reward *out, cfg_reader *r);

/* Returns the training reward of response i of batch `id`. `prompt` is the world's number of the
 * prompt, which must be the same each time the prompt occurs. The same prompts are unsolvable
 * throughout a run; flips are sampled for each response. */
double training_reward_of(const training_reward *t, uint64_t seed, uint64_t id, size_t i,
                          uint64_t prompt, double reward);

/* Token positions [from, to) of one response. */
typedef struct draw_span {
  size_t from, to;
} draw_span;

/* A request to sample tokens with the parameters of a version, either the learner's current one or
 * one it holds. If the weights change while a batch is generated, the batch is sampled in several
 * requests on the same `batch`. The first has from = 0 and creates it. Each request samples the
 * token positions [from, to) of every response, as fractions of the longest allowed response. An
 * ordinary batch needs one request: [0, 1). */
typedef struct draw_request {
  uint64_t batch_id; /* selects random numbers: same id and parameters, same tokens */
  int64_t version;
  size_t n_groups, group_size;
  double from, to;
  size_t first_group; /* index of the first group within a larger batch of this id; random numbers
                         are those of the larger batch. Usually 0 */
  /* If the weights change at a different token in every response: the positions to sample in each,
   * [n_groups * group_size]; nothing if span.from == span.to. Existing tokens from span.from on are
   * sampled again; tokens before it must exist unless the response has ended. The fractions then
   * only say whether the batch is created (from = 0) and whether it is complete (to = 1). NULL: all
   * responses use the fractions. */
  const draw_span *span;
  /* NULL, or [n_groups * group_size]: receives the number of tokens of each response so far. */
  size_t *length;
  /* Index of the first response within larger groups of this id; random numbers are those of the
   * larger groups. Usually 0. */
  size_t first_response;
} draw_request;

/* Sets the positions to sample in each response. The fractions are then only flags: from is 0 if
 * the request creates the batch and 0.5 otherwise, to is 1 if it completes the batch and 0.75
 * otherwise.
 */
static inline void draw_request_set_spans(draw_request *r, const draw_span *span, bool creates,
                                          bool completes) {
  r->span = span;
  r->from = creates ? 0 : 0.5;
  r->to = completes ? 1 : 0.75;
}

/* Checks a request and the batch it continues. An incomplete batch has room for `longest` tokens in
 * every response. Errors: GL_EINTERNAL (invalid request), GL_EINPUT (too large). */
gl_status draw_request_check(const draw_request *r, const batch *b, size_t longest, gl_error *err);
/* The number of token positions before this fraction of `longest`: where the weights change in a
 * batch sampled from several versions. */
size_t draw_boundary(double fraction, size_t longest);

/* The index of the request's response i among all responses of its id; it selects the random
 * numbers. */
size_t draw_number(const draw_request *r, size_t i);

/* Shuffles the groups 0 .. n - 1 of a step's batches (Fisher-Yates) into order[n], with random
 * numbers selected by the learner's version and the epoch. */
void learner_shuffle(size_t *order, size_t n, uint64_t seed, int64_t version, size_t epoch);

/* Minibatch m consists of the groups at positions learner_minibatch(m) .. learner_minibatch(m + 1)
 * - 1 of the shuffled order of `groups` groups. */
size_t learner_minibatch(size_t m, size_t minibatches, size_t groups);

/* How one learner step splits its batches into minibatches and repeats them. */
typedef struct learner_passes {
  size_t minibatches, epochs;
  uint64_t seed; /* for the shuffles */
} learner_passes;
/* Sets the four staleness metrics of a step on n batches that starts at `version`: mean and
 * maximum of `version` minus the version that sampled a token, the mean staleness in optimiser
 * updates, and that part of it which arises within the step (paper/methods.md §5.1). One version is
 * minibatches x epochs updates, and the data of the step's k-th update is k - 1 updates staler than
 * at its start. Means are over tokens, that of updates also over epochs. Errors: GL_ENOMEM. */
gl_status learner_staleness(const learner_passes *passes, batch *const *batches, size_t n,
                            int64_t version, double value[METRIC_COUNT], gl_error *err);

typedef struct learner_ops {
  const char *kind;
  /* Samples a batch or part of one; *b must be zeroed before the first request. The request with to
   * == 1 sets the rewards. Errors: GL_EINTERNAL if the version is neither current nor held. */
  gl_status (*draw)(void *self, const draw_request *request, batch *b, gl_error *err);
  /* Combines groups of completely sampled batches of the same id and version into one batch; *b
   * must be empty. */
  gl_status (*join)(void *self, batch *b, const batch_group *group, size_t n, gl_error *err);
  /* Assigns the optional contents of a batch that was read from a file (batch_assign_optional()).
   * Errors: GL_ENOMEM. */
  gl_status (*adopt)(const void *self, batch *b, gl_error *err);
  /* The maximum number of tokens of a response. */
  size_t (*longest)(const void *self);
  /* One learner step on n batches together: minibatches x epochs optimiser updates. Fills the
   * metrics it can compute; the training loop adds version and staleness. Increments the version by
   * one. Non-finite parameters are a result, not an error: they appear in the metrics. */
  gl_status (*update)(void *self, batch *const *batches, size_t n, double metrics[METRIC_COUNT],
                      gl_error *err);
  /* Evaluation score, in [0,1] if the world defines one. Does not affect any random number of
   * training. */
  gl_status (*evaluate)(void *self, double *eval_score, gl_error *err);
  /* Optional, both or neither: evaluation in several parts, which are sets or halves of sets
   * (core/rl/evaluation.h). parts returns their list and sets *n; the learner owns it; with *n = 0
   * there is only the score of `evaluate`. evaluate_parts writes score[n], NaN if parameters are
   * NaN. The first score is bit-identical to that of `evaluate` if the first set has only a name.
   */
  const evaluation_part *(*parts)(const void *self, size_t *n);
  gl_status (*evaluate_parts)(void *self, double *score, gl_error *err);
  /* Saves or loads parameters, optimiser state, version and held versions. A learner made from the
   * same setup that loads them continues bit for bit like the saved one. `save` does not change the
   * learner. Both use the stream from its current position and never seek, because a checkpoint
   * contains other parts. `load` rejects incompatible or damaged data (GL_EINPUT) and then leaves
   * the learner unchanged. */
  gl_status (*save)(void *self, FILE *to, gl_error *err);
  gl_status (*load)(void *self, FILE *from, gl_error *err);
  /* Optional, both or neither; required for a clock coupled to the learner (cluster.coupled), where
   * a sampler continues with an older version while the learner trains. `hold` stores a copy of the
   * current parameters, not of the optimiser state, under the learner's version, for draw() and
   * save(). It is called before the update that replaces the version, at most once per version.
   * Sampling from a held version gives the same tokens as when it was current. `release` frees a
   * held version, at any time and in any order; versions that are not held are ignored. */
  gl_status (*hold)(void *self, gl_error *err);
  void (*release)(void *self, int64_t version);
  /* Optional. After this call, when a request continues a response, its later tokens attend to the
   * keys and values of its earlier tokens, whatever version computed them. These are part of the
   * batch until it is complete. Must be called before the first request. NULL: the learner has no
   * keys and values. Errors: GL_EINPUT, with the reason, if this learner does not support it. */
  gl_status (*keep_cache)(void *self, gl_error *err);
  void (*free)(void *self);
} learner_ops;

typedef struct learner {
  const learner_ops *ops;
  void *self;
} learner;

/* For learners with a long preparation before the first update (a transformer's warm-up): callbacks
 * to watch and stop it, and a folder to store it. */
typedef struct learner_preparation {
  /* Called after each warm-up step, and with step 0 and a loss of NaN while another process runs
   * the same warm-up. A non-zero result saves the state and makes the construction return
   * GL_EINTERRUPTED. NULL: no callback. */
  int (*after_step)(void *self, uint64_t step, uint64_t steps, double loss);
  void *self;
  /* The run's own folder. Intermediate and final states of the preparation are stored there, so
   * that the same run continues bit for bit after a restart. Names of these files begin with
   * LEARNER_KEEPS. NULL: not stored. */
  const char *folder;
  uint64_t every; /* steps between intermediate files; 0: by time */
  double seconds;
} learner_preparation;
#define LEARNER_KEEPS "warmup-"

/* Probabilities that a response loses its gradient, whatever its likelihood: where its reward is
 * below the mean of its group, above it, and where all rewards of the group are equal. */
typedef struct random_drops {
  double negative, positive, equal;
} random_drops;

/* The arguments for making a learner; sections are borrowed during construction only. */
typedef struct learner_setup {
  uint64_t seed;
  const policy_algorithm *algorithm;
  const cfg_node *world;     /* never NULL */
  const cfg_node *optimizer; /* NULL: defaults */
  const cfg_node *sampling;  /* NULL: temperature 1, no truncation */
  size_t group_size, n_groups;
  size_t drawn_groups; /* the maximum number of groups sampled together; 0: n_groups */
  size_t minibatches, epochs;
  training_reward rewards; /* corruption of training rewards */
  double weight_noise;     /* variance of the weight noise of core/rl/update.h; 0: none */
  random_drops drops;      /* probabilities of the random drops there */
  uint64_t updates;        /* number of learner steps of the run, for learning-rate decay */
  /* Recipe positions of the numbers above and of the algorithm, for error messages; NULL: unknown.
   */
  const cfg_node *train, *algorithm_at;
  size_t threads; /* number of threads; 0: all cores this process may use. Never changes results */
  /* A folder for results that a later run can reuse, and the name of this build of the program,
   * which identifies them; NULL: nothing is cached. */
  const char *cache, *code;
  const learner_preparation *preparation; /* NULL: no callback and no files of this run */
} learner_setup;

/* Errors: GL_EINPUT with position if the batch cannot be split as the setup requires, or if groups
 * have one response and the algorithm compares responses. */
gl_status learner_setup_check(const learner_setup *setup, gl_error *err);

static inline void learner_fini(learner *l) {
  if (l->ops != NULL) l->ops->free(l->self);
  l->ops = NULL;
  l->self = NULL;
}

#endif
