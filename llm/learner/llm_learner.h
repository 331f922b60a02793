/* The transformer as a learner (core/rl/learner.h): what other rooms see of llm/learner.
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
 *   evaluation: {kind: greedy | sampled, temperature, top_k, top_p, prompts, samples}
 */
#ifndef GEPOLAB_LLM_LEARNER_LLM_LEARNER_H
#define GEPOLAB_LLM_LEARNER_LLM_LEARNER_H

#include "core/config/config.h"
#include "core/rl/learner.h"
#include "llm/model/model.h"

#include <string.h>

/* Whether `kind` is llm. */
static inline int llm_is_kind(const char *kind) {
  return kind != NULL && strcmp(kind, "llm") == 0;
}
/* Builds model and task, and warms the model up, as world says. On success *out owns everything. */
gl_status llm_learner_new(learner *out, const learner_setup *setup, gl_error *err);
/* Watches a warm-up: after_step() gets the number of steps done, the step's loss, and the
 * held-out score after every score_every steps and after the last, else NaN. A result other than 0
 * ends the warm-up there, as if it were done. */
typedef struct llm_watch {
  int (*after_step)(void *self, size_t step, double loss, double score);
  void *self;
  size_t score_every; /* 0: no score */
} llm_watch;
gl_status llm_learner_new_watched(learner *out, const learner_setup *setup, const llm_watch *watch,
                                  gl_error *err);
/* The model inside a learner made by these; borrowed. */
model *llm_learner_model(const learner *l);

/* --- starts (start.c) --- */

/* The folder of the checkpoint that a world's run of that seed begins from: `model.path`, as seen
 * from the recipe, with the seed in the place of {seed}; malloc'd. NULL where a world begins from
 * none. GL_ENOMEM. */
gl_status llm_start_folder(char **out, const cfg_node *world, uint64_t seed, gl_error *err);
/* The checksum of a model's folder: "xxh3-" and 16 digits of config.json, tokenizer.json and all
 * .safetensors of the folder, names and bytes. GL_EIO where one cannot be read. */
enum { LLM_CHECKSUM_SIZE = 24 };
gl_status llm_start_checksum(const char *folder, char text[LLM_CHECKSUM_SIZE], gl_error *err);

/* --- gradients without steps (learner.c) --- */

/* Which distribution batches are drawn from, and whose log-probabilities weights are made of: that
 * of the recipe's samplers, or the learner's own, with its temperature and nothing of what samplers
 * cut off or distort. */
typedef enum llm_dist { LLM_SAMPLERS_DIST, LLM_OWN_DIST } llm_dist;

/* Parameters of the model. */
size_t llm_learner_size(const learner *l);
/* Their values into theta[llm_learner_size()]. */
gl_status llm_learner_parameters(const learner *l, double *theta, gl_error *err);
/* Puts other values in their place, as those of that version. Optimiser and held versions stay. */
gl_status llm_learner_stand_at(learner *l, const double *theta, int64_t version, gl_error *err);
/* The table's draw() by such a distribution. */
gl_status llm_learner_draw_by(learner *l, llm_dist dist, const draw_request *r, batch *b,
                              gl_error *err);
/* gradient[llm_learner_size()] = minus the gradient of the algorithm's loss on a whole batch drawn
 * by that distribution, at the present parameters: the direction of the batch's first update,
 * before the optimiser. metrics receive core/policy's diagnostics and reward_mean. Nothing changes
 * but the model's gradient. GL_EINPUT for log-probabilities that are not finite, for what the
 * algorithm needs and a transformer does not have (core/policy/policy.h), and for several devices.
 */
gl_status llm_learner_gradient(learner *l, llm_dist dist, batch *b,
                               const policy_algorithm *algorithm, double *gradient,
                               double metrics[METRIC_COUNT], gl_error *err);

/* --- checks --- */

/* Everything llm_learner_new would refuse of a recipe, wherever it runs, without allocating the
 * model or warming up. Reads config.json, tokenizer and data set. */
gl_status llm_check(const learner_setup *setup, gl_error *err);
/* The part of llm_check() that does not concern the world: optimizer, train and algorithm. */
gl_status llm_check_sections(const learner_setup *setup, gl_error *err);
/* What the user should know of a world that llm_check() takes: keys of its models' config.json
 * whose meaning is not known here. Returns text, or NULL where there is nothing to say. world may
 * be of another kind or wrong; then there is nothing to say. */
enum { LLM_NOTE_SIZE = 1024 };
const char *llm_note(const cfg_node *world, char text[LLM_NOTE_SIZE]);
/* llm_check(), and what of it this machine cannot do: a device that is not there, a model that
 * needs more memory than is free. Opens the device; a process that did so must not fork workers
 * that use it too. */
gl_status llm_check_machine(const learner_setup *setup, gl_error *err);

/* The other fields of the section `world` of a transformer's world. */
extern const struct field_table llm_fields;

#endif
