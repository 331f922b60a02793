/* Inside the llm room: the learner's state, shared by drawing, updating, warming up and
 * checkpoints.
 */
#ifndef GEPOLAB_LLM_LEARNER_H
#define GEPOLAB_LLM_LEARNER_H

#include "core/learner.h"
#include "core/policy.h"
#include "llm/generate.h"
#include "llm/learner_rows.h"
#include "llm/llm.h"
#include "llm/world_spec.h"

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

typedef struct llm_learner {
  llm_spec spec;
  policy_row row;
  uint64_t seed, updates;
  size_t minibatches, epochs;
  int64_t version;
  backend *backend;
  model *model;
  optimizer_spec optimizer_spec;
  model_optimizer *optimizer;
  model_values *reference; /* NULL: none is needed */
  held_version *held;      /* [n_held] */
  size_t n_held, cap_held;
  size_t step_bytes;    /* backend memory that steps take beside what stays allocated, as planned */
  problem_set held_out; /* the evaluation's problems */
  const llm_watch *watch; /* of the warm-up, while it runs; NULL: none */
  policy_workspace *workspace;
  rollout_set all, part;
  row_pack pack;
  double *scratch; /* [cap_scratch] log-probabilities nobody reads, and dlogp of a micro-batch */
  size_t cap_scratch;
  size_t *order; /* [cap_order] groups in minibatch order */
  size_t cap_order;
} llm_learner;

/* Ensures scratch holds n doubles; contents are lost. */
gl_status llm_learner_scratch(llm_learner *l, size_t n, gl_error *err);
/* Responses to the problems of a set, `each` to a problem, numbered as they are listed. */
gl_status llm_learner_generate(llm_learner *l, const problem_set *problems, size_t each,
                               rng_stream stream, int greedy, size_t up_to, generate_result *result,
                               gl_error *err);
/* Mean score on the first held-out problems: of greedy responses where samples is 0, else over so
 * many drawn at (seed, RNG_EVAL, entity). NaN where the parameters have stopped being numbers. */
gl_status llm_learner_score(llm_learner *l, size_t samples, uint64_t entity, double *score,
                            gl_error *err);

/* Forgets all held versions. */
void llm_learner_release_all(llm_learner *l);
/* Holds the model's parameters as they are now under a version's number. */
gl_status llm_learner_add_held(llm_learner *l, int64_t version, gl_error *err);

void rollout_set_fini(rollout_set *s);
/* Makes room; old contents are lost. */
gl_status rollout_set_resize(rollout_set *s, size_t groups, size_t responses, size_t tokens,
                             size_t prompt_tokens, gl_error *err);
/* to = groups order[0..n) of from: what an update reads, logprox and logref included. */
gl_status rollout_set_select(rollout_set *to, const rollout_set *from, const size_t *order,
                             size_t n, gl_error *err);

/* Trains the fresh model on the task's training split as spec.warmup says; with a cache
 * folder (NULL: none) the result is kept there or taken from there; setup->preparation watches it
 * and keeps it for this run. */
gl_status llm_learner_warm_up(llm_learner *l, const learner_setup *setup, gl_error *err);

/* The functions of the table in core/learner.h, each in a file of its own. */
gl_status llm_learner_draw(void *self, const draw_request *request, batch *b, gl_error *err);
gl_status llm_learner_update(void *self, batch *const *batches, size_t n,
                             double metrics[METRIC_COUNT], gl_error *err);
gl_status llm_learner_hold(void *self, gl_error *err);
void llm_learner_release(void *self, int64_t version);
gl_status llm_learner_save(void *self, FILE *to, gl_error *err);
gl_status llm_learner_load(void *self, FILE *from, gl_error *err);

#endif
