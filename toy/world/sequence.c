/* The sequence world: a vocabulary, a horizon, prompts, and a task that a whole response solves or
 * does not; and the rewards that every listed world keeps. */
#include "core/rl/sequence_task.h"
#include "toy/world/world.h"

#include <stdlib.h>

gl_status toy_reserve_rewards(toy_world *w, const cfg_node *section, gl_error *err) {
  const size_t most = (size_t)1 << 26;
  if (w->n_prompts > most / w->tree.n_responses)
    return cfg_fail(section, err,
                    "%zu prompts with %zu responses each are too many to enumerate; use fewer "
                    "prompts (contexts) or responses",
                    w->n_prompts, w->tree.n_responses);
  w->reward = calloc(w->n_prompts * w->tree.n_responses, sizeof *w->reward);
  return w->reward != NULL ? GL_OK : gl_fail_memory(err, "a toy world's rewards");
}

static gl_status sequence_parse(toy_world *w, cfg_reader *r, const cfg_node *section, uint64_t seed,
                                size_t *modulus, gl_error *err) {
  sequence_section s;
  gl_status status = sequence_section_read(&s, r);
  if (status != GL_OK) return status;
  w->n_prompts = s.n_prompts;
  *modulus = s.task.modulus;
  status = sequence_section_tree(&w->tree, &s, section, err);
  if (status == GL_OK) status = toy_reserve_rewards(w, section, err);
  if (status != GL_OK) return status;
  return sequence_task_rewards(&s.task, &w->tree, w->n_prompts, seed, w->reward, err);
}

const toy_world_kind toy_world_sequence = {
    .name = "sequence",
    .about = "short sequences of letters, and a task that a whole response solves or does not",
    .parse = sequence_parse,
};
