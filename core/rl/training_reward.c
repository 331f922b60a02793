/* Unsolvable prompts and flipped rewards, at addresses of their own. */
#include "core/rl/training_reward.h"

#include "core/config/fields.h"
#include "core/random/rng.h"

gl_status training_reward_read(training_reward *out, cfg_reader *r) {
  cfg_reader noise;
  out->unsolvable = field_real(r, "unsolvable");
  cfg_begin(&noise, cfg_child(r, "reward_noise"), "train.reward_noise", r->err);
  if (r->status != GL_OK) return r->status;
  out->flip = field_real(&noise, "flip");
  if (cfg_end(&noise) != GL_OK) r->status = noise.status;
  return r->status;
}

static double uniform(uint64_t seed, rng_purpose purpose, uint64_t entity, uint64_t index) {
  const rng_words w = rng_block(rng_stream_at(seed, purpose, entity), index);
  return rng_u01_53(w.v[0], w.v[1]);
}

double training_reward_of(const training_reward *t, uint64_t seed, uint64_t id, size_t i,
                          uint64_t prompt, double reward) {
  if (t->unsolvable > 0 && uniform(seed, RNG_UNSOLVABLE, prompt, 0) < t->unsolvable) return 0;
  if (t->flip > 0 && uniform(seed, RNG_FLIP, id, i) < t->flip) return 1 - reward;
  return reward;
}
