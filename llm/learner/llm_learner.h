/* The transformer as a learner (core/rl/learner.h): the public header of llm/learner.
 *
 * world:
 *   kind: llm
 *   backend: auto | cpu | cuda        dtype: float32 | bfloat16
 *   devices: N                        replicas of the model that share its work
 *   model: {path: FOLDER} or {layers, hidden, intermediate, heads, kv_heads, head_dim, …}
 *   tokenizer: char | byte | FILE     (default: the folder's tokenizer.json, or char)
 *   task: {kind: …}
 *   max_tokens, slots, micro_batch (tokens), recompute, stochastic_rounding, tf32
 *   warmup: {steps, batch, lr, …}     supervised, before the first update
 *   evaluation: {kind: greedy | sampled, temperature, top_k, top_p, prompts, samples} */
#ifndef GEPOLAB_LLM_LEARNER_LLM_LEARNER_H
#define GEPOLAB_LLM_LEARNER_LLM_LEARNER_H

#include "core/config/config.h"
#include "core/rl/learner.h"
#include "llm/model/model.h"

#include <string.h>

/* 1 if `kind` is llm. */
static inline int llm_is_kind(const char *kind) {
  return kind != NULL && strcmp(kind, "llm") == 0;
}
/* Builds model and task from the section world, and warms up the model. On success *out owns
 * everything. */
gl_status llm_learner_new(learner *out, const learner_setup *setup, gl_error *err);
/* Observes a warm-up. after_step() receives the number of steps made, the step's loss, and the
 * held-out score: after every score_every steps and after the last step, else NaN. A result other
 * than 0 ends the warm-up normally. */
typedef struct llm_watch {
  int (*after_step)(void *self, size_t step, double loss, double score);
  void *self;
  size_t score_every; /* 0: no scores */
} llm_watch;
gl_status llm_learner_new_watched(learner *out, const learner_setup *setup, const llm_watch *watch,
                                  gl_error *err);
/* The model of a transformer learner; borrowed. */
model *llm_learner_model(const learner *l);

/* --- the initial checkpoint (run_spec.c) --- */

/* The folder of the checkpoint from which a run with that seed starts: `model.path`, relative to
 * the recipe, with {seed} replaced; malloc'd. NULL if the world starts from none. Errors:
 * GL_ENOMEM. */
gl_status llm_start_folder(char **out, const cfg_node *world, uint64_t seed, gl_error *err);
/* The checksum of a model's folder: "xxh3-" and 16 hex digits over names and bytes of config.json,
 * tokenizer.json and all .safetensors files. Errors: GL_EIO (a file cannot be read). */
enum { LLM_CHECKSUM_SIZE = 24 };
gl_status llm_start_checksum(const char *folder, char text[LLM_CHECKSUM_SIZE], gl_error *err);

/* --- gradients without steps (learner.c) --- */

/* The distribution that batches are sampled from, and whose log-probabilities importance weights
 * use: that of the recipe's samplers, or the learner's own at its temperature, without truncation
 * or distortion. */
typedef enum llm_dist { LLM_SAMPLERS_DIST, LLM_OWN_DIST } llm_dist;

/* Number of parameters of the model. */
size_t llm_learner_size(const learner *l);
/* Copies their values into theta[llm_learner_size()]. */
gl_status llm_learner_parameters(const learner *l, double *theta, gl_error *err);
/* Sets the parameters to theta, as those of that version. Optimiser and held versions do not
 * change. */
gl_status llm_learner_stand_at(learner *l, const double *theta, int64_t version, gl_error *err);
/* Samples a batch as the learner's draw() does, from that distribution. */
gl_status llm_learner_draw_by(learner *l, llm_dist dist, const draw_request *r, batch *b,
                              gl_error *err);
/* gradient[llm_learner_size()] = minus the gradient of the algorithm's loss at the present
 * parameters, on a complete batch sampled from that distribution: the direction of the batch's
 * first update, before the optimiser. metrics receives the diagnostics of core/policy and
 * reward_mean. Only the model's gradient memory changes. Errors: GL_EINPUT (log-probabilities that
 * are not finite, an algorithm that needs what a transformer does not have (core/policy/policy.h),
 * several devices). */
gl_status llm_learner_gradient(learner *l, llm_dist dist, batch *b,
                               const policy_algorithm *algorithm, double *gradient,
                               double metrics[METRIC_COUNT], gl_error *err);

/* --- checks --- */

/* Refuses every recipe that llm_learner_new() would refuse on any machine, without allocating the
 * model or warming up. Reads config.json, tokenizer and data set. */
gl_status llm_check(const learner_setup *setup, gl_error *err);
/* The part of llm_check() outside the world: optimizer, train and algorithm. */
gl_status llm_check_sections(const learner_setup *setup, gl_error *err);
/* A warning about a world that llm_check() accepts: unknown keys in its models' config.json.
 * Returns text, or NULL if there is nothing to report. The world may be of another kind or invalid;
 * the result is NULL then. */
enum { LLM_NOTE_SIZE = 1024 };
const char *llm_note(const cfg_node *world, char text[LLM_NOTE_SIZE]);
/* llm_check(), and checks for this machine: the device exists, and the model fits the free memory.
 * Opens the device; afterwards the process must not fork workers that use it, too. */
gl_status llm_check_machine(const learner_setup *setup, gl_error *err);

/* The fields of the section `world` of a transformer's world, except those of its sub-sections. */
extern const struct field_table llm_fields;

#endif
