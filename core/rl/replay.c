/* Replay of right responses: reads `replay`, and fills and draws from the buffer. */
#include "core/rl/replay.h"

#include "core/config/fields.h"
#include "core/random/rng.h"

#include <stdlib.h>

gl_status replay_read(replay_spec *out, cfg_reader *outer) {
  cfg_reader r;
  cfg_begin(&r, cfg_child(outer, "replay"), "train.replay", outer->err);
  if (outer->status != GL_OK) return outer->status;
  out->coef = field_real(&r, "coef");
  out->responses = field_count(&r, "responses");
  out->size = field_count(&r, "size");
  gl_status status = cfg_end(&r);
  if (status != GL_OK) outer->status = status;
  return status;
}

gl_status replay_draw(const replay_spec *spec, const batch *buffer, uint64_t seed, uint64_t step,
                      batch *b, gl_error *err) {
  if (spec->coef == 0 || buffer->n_responses == 0) return GL_OK;
  batch_response *drawn = calloc(spec->responses, sizeof *drawn);
  if (drawn == NULL) return gl_fail_memory(err, "replayed responses");
  const rng_stream stream = rng_stream_at(seed, RNG_REPLAY, step);
  for (size_t i = 0; i < spec->responses; ++i) {
    const rng_words w = rng_block(stream, i);
    const double u = rng_u01_53(w.v[0], w.v[1]);
    drawn[i] = (batch_response){buffer, (size_t)(u * (double)buffer->n_responses)};
  }
  gl_status status = batch_take_responses(b, buffer->id, drawn, spec->responses, err);
  free(drawn);
  b->replay = spec->coef;
  return status;
}

/* Lists the right responses of n batches; returns their number. */
static size_t list_right(batch *const *batches, size_t n, batch_response *right) {
  size_t count = 0;
  for (size_t j = 0; j < n; ++j)
    for (size_t i = 0; i < batches[j]->n_responses; ++i)
      if (batches[j]->reward[i] == 1) right[count++] = (batch_response){batches[j], i};
  return count;
}

gl_status replay_add(const replay_spec *spec, batch *buffer, batch *const *batches, size_t n,
                     gl_error *err) {
  const size_t old = buffer->n_responses;
  size_t most = old;
  if (spec->coef == 0) return GL_OK;
  for (size_t j = 0; j < n; ++j) most += batches[j]->n_responses;
  batch_response *all = calloc(most + 1, sizeof *all);
  if (all == NULL) return gl_fail_memory(err, "replayed responses");
  for (size_t i = 0; i < old; ++i) all[i] = (batch_response){buffer, i};
  const size_t count = old + list_right(batches, n, all + old);
  const size_t leave = count > spec->size ? count - spec->size : 0;
  batch next = {0};
  gl_status status = count == old
                         ? GL_OK
                         : batch_take_responses(&next, buffer->id, all + leave, count - leave, err);
  free(all);
  if (status != GL_OK) batch_fini(&next);
  if (status != GL_OK || count == old) return status;
  batch_fini(buffer);
  *buffer = next;
  return GL_OK;
}
