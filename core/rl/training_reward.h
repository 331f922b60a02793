/* What training sees of rewards: some prompts are never rewarded, some rewards are flipped. Scores
 * of evaluations stay what they are (paper/methods.md §12.5). */
#ifndef GEPOLAB_CORE_RL_TRAINING_REWARD_H
#define GEPOLAB_CORE_RL_TRAINING_REWARD_H

#include "core/config/config.h"

#include <stddef.h>
#include <stdint.h>

typedef struct training_reward {
  double unsolvable; /* share of prompts whose responses all have reward 0 */
  double flip;       /* share of the other rewards r that become 1 - r; they must be in [0, 1] */
} training_reward;

/* Reads the keys `unsolvable` and `reward_noise: {flip}` of the section that r is at. */
gl_status training_reward_read(training_reward *out, cfg_reader *r);

/* The reward that training sees of response i of batch `id` to a prompt that the world knows as
 * `prompt`: a number that is the same whenever the prompt is. The same prompts are unsolvable in
 * the whole run; whether a reward is flipped is drawn for each response. */
double training_reward_of(const training_reward *t, uint64_t seed, uint64_t id, size_t i,
                          uint64_t prompt, double reward);

#endif
