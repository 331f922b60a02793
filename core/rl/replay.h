/* Replay of right responses. A buffer keeps the newest responses of reward 1 that were trained;
 * each learner step draws some of them at random, and every optimiser update of the step also
 * raises their log-probability: its objective gets, beside the algorithm's, `coef` times the mean
 * of log pi(token) over their tokens, without importance weights (paper/methods.md §12.9).
 *
 * The buffer is a batch whose groups have one response each. Prefix: replay_. */
#ifndef GEPOLAB_CORE_RL_REPLAY_H
#define GEPOLAB_CORE_RL_REPLAY_H

#include "core/config/config.h"
#include "core/rl/batch.h"

typedef struct replay_spec {
  double coef;      /* coefficient in the objective; 0: no replay */
  size_t responses; /* drawn in each learner step, with replacement */
  size_t size;      /* most responses in the buffer */
} replay_spec;

/* Reads the key `replay: {coef, responses, size}` of the section at r. */
gl_status replay_read(replay_spec *out, cfg_reader *r);

/* Draws the responses of learner step `step` from the buffer. *b must be empty; it stays without
 * groups if there is no replay or nothing in the buffer, and otherwise has b->replay set. */
gl_status replay_draw(const replay_spec *spec, const batch *buffer, uint64_t seed, uint64_t step,
                      batch *b, gl_error *err);

/* Adds the responses of reward 1 of n batches, in their order. The oldest ones leave a full buffer.
 * On failure the buffer is unchanged. Errors: GL_ENOMEM. */
gl_status replay_add(const replay_spec *spec, batch *buffer, batch *const *batches, size_t n,
                     gl_error *err);

#endif
