/* Steps of generation: each decodes a token of every row and draws the one that follows.
 *
 * A device is not kept waiting for the host. All of a step is one record (a CUDA graph): it takes
 * its tokens from where the step before drew them, counts positions and draws on by itself, and the
 * host starts the next step before it has read what this one drew. Only where rows come, go or move
 * does the host send anything. Where operations are over when they return (the CPU), a step is a
 * decode and a draw. */
#include "llm/model/cache_internal.h"

#include <stdlib.h>
#include <string.h>

size_t step_rows_bytes(size_t most) {
  return most * (sizeof(uint64_t) + 3 * sizeof(int32_t));
}

step_rows step_rows_cut(void *block, size_t most) {
  step_rows w = {.index = block};
  w.source = (int32_t *)(void *)(w.index + most);
  w.slot = w.source + most;
  w.position = w.slot + most;
  return w;
}

gl_status model_steps_init(model_cache *k, gl_error *err) {
  model_steps *s = &k->steps;
  backend *b = k->m->b;
  s->ahead = b->ops->graph_begin != NULL;
  if (s->ahead == 0) {
    s->token = calloc(k->most, sizeof *s->token);
    s->logq = calloc(k->most, 2 * sizeof *s->logq);
    if (s->token == NULL || s->logq == NULL) return gl_fail_memory(err, "a cache");
    s->logq_truncated = s->logq + k->most;
    return GL_OK;
  }
  void *block = calloc(1, step_rows_bytes(k->most));
  if (block == NULL) return gl_fail_memory(err, "a cache");
  s->host = step_rows_cut(block, k->most);
  for (size_t i = 0; i < MODEL_STEPS; ++i)
    s->fetch[i] = b->ops->fetch_new(b, model_drawn_bytes(k, k->most));
  return b->ops->status(b, err);
}

void model_steps_fini(model_cache *k) {
  model_steps *s = &k->steps;
  backend *b = k->m->b;
  for (size_t i = 0; i < MODEL_GRAPHS; ++i)
    if (s->recorded[i].graph != NULL) b->ops->graph_free(b, s->recorded[i].graph);
  for (size_t i = 0; i < MODEL_STEPS; ++i)
    if (s->fetch[i] != NULL) b->ops->fetch_free(b, s->fetch[i]);
  free(s->host.index);
  free(s->token);
  free(s->logq);
}

size_t model_steps_ahead(const model_cache *k) {
  return k->steps.ahead;
}

/* --- a step beside the host --- */

static void run_step(model_cache *k, size_t rows) {
  const model *m = k->m;
  const step_rows *w = &k->steps.device;
  const model_draws *d = &k->steps.draws;
  backend *b = m->b;
  b->ops->embed_next(b, k->rows.in, model_weight(m, m->embed), w->source, w->position, w->index,
                     w->slot, k->drawn, rows, m->c.hidden);
  model_cache_run(k, w->slot, w->position, rows);
  b->ops->sample(b, k->drawn, k->logq, (char *)k->logq + rows * b->master_element, k->logits,
                 w->index, rows, m->c.vocabulary, &d->sampling, d->stream, d->greedy);
}

static int same_draws(const model_draws *a, const model_draws *b) {
  return a->sampling.temperature == b->sampling.temperature &&
         a->sampling.top_k == b->sampling.top_k && a->sampling.top_p == b->sampling.top_p &&
         a->sampling.weights == b->sampling.weights && a->stream.seed == b->stream.seed &&
         a->stream.entity == b->stream.entity && a->stream.purpose == b->stream.purpose &&
         a->greedy == b->greedy;
}

/* Forgets the records where the draws' distribution or stream is another one. */
static void use_draws(model_cache *k, const model_draws *draws) {
  model_steps *s = &k->steps;
  if (same_draws(&s->draws, draws)) return;
  for (size_t i = 0; i < MODEL_GRAPHS; ++i) {
    if (s->recorded[i].graph != NULL) k->m->b->ops->graph_free(k->m->b, s->recorded[i].graph);
    s->recorded[i] = (recorded_step){0};
  }
  s->draws = *draws;
}

/* The first step of a size runs plainly, the second is recorded and run, later ones run the record.
 */
static void replay_step(model_cache *k, size_t rows) {
  const backend_ops *ops = k->m->b->ops;
  backend *b = k->m->b;
  size_t i = 0;
  while (((size_t)1 << i) < rows) ++i;
  recorded_step *r = &k->steps.recorded[i];
  if (r->graph != NULL && r->values != k->m->use) {
    ops->graph_free(b, r->graph);
    r->graph = NULL;
  }
  if (r->graph == NULL && r->warm) {
    ops->graph_begin(b);
    run_step(k, rows);
    r->graph = ops->graph_end(b);
    r->values = k->m->use;
  }
  if (r->graph != NULL)
    ops->graph_run(b, r->graph);
  else
    run_step(k, rows);
  r->warm = 1;
}

/* Tells the device the rows of the next step, fillers up to `all`, unless it has come to the same
 * by itself. Positions and numbers of draws are those before: a step begins by counting on. */
static void place_rows(model_cache *k, const model_step_rows *rows, size_t all) {
  model_steps *s = &k->steps;
  step_rows *w = &s->host;
  int same = s->same;
  for (size_t r = 0; r < all; ++r) {
    const int here = r < rows->n;
    const uint64_t index = here ? rows->index[r] - 1 : 0;
    const int32_t source = here ? rows->token[r] : 0, slot = here ? rows->slot[r] : -1;
    const int32_t position = here ? rows->position[r] - 1 : 0;
    same = same && w->index[r] == index && w->source[r] == source && w->slot[r] == slot &&
           w->position[r] == position;
    w->index[r] = index;
    w->source[r] = source;
    w->slot[r] = slot;
    w->position[r] = position;
  }
  if (!same) k->m->b->ops->upload(k->m->b, s->device.index, w->index, step_rows_bytes(k->most));
  for (size_t r = 0; r < rows->n; ++r) {
    ++w->index[r];
    ++w->position[r];
    w->source[r] = -1 - (int32_t)r;
  }
  s->same = 1;
}

static void start_beside(model_cache *k, const model_step_rows *rows, const model_draws *draws) {
  model_steps *s = &k->steps;
  backend *b = k->m->b;
  const size_t all = model_cache_rows(b, rows->n), i = s->started % MODEL_STEPS;
  use_draws(k, draws);
  place_rows(k, rows, all);
  replay_step(k, all);
  b->ops->fetch_start(b, s->fetch[i], k->drawn, model_drawn_bytes(k, all));
  s->all[i] = all;
  s->fed = 1;
}

/* --- a step at once --- */

static gl_status run_at_once(model_cache *k, const model_step_rows *rows, const model_draws *draws,
                             gl_error *err) {
  model_steps *s = &k->steps;
  int32_t *token = calloc(rows->n + 1, sizeof *token);
  if (token == NULL) return gl_fail_memory(err, "a step");
  for (size_t r = 0; r < rows->n; ++r)
    token[r] = rows->token[r] >= 0 ? rows->token[r] : s->token[-1 - rows->token[r]];
  gl_status status = model_decode(k, token, rows->slot, rows->position, rows->n, err);
  if (status == GL_OK)
    status = model_sample(k, NULL, rows->index, rows->n, &draws->sampling, draws->stream,
                          draws->greedy, s->token, s->logq, s->logq_truncated, err);
  free(token);
  return status;
}

/* --- both --- */

static gl_status check(const model_cache *k, const model_step_rows *rows, gl_error *err) {
  const model_steps *s = &k->steps;
  if (rows->n == 0 || rows->n > k->slots)
    return gl_fail(err, GL_EINTERNAL, "a step of %zu rows for %zu slots", rows->n, k->slots);
  if (s->started - s->taken > s->ahead)
    return gl_fail(err, GL_EINTERNAL, "a step while %zu are under way", s->started - s->taken);
  const size_t before =
      s->started == 0 || (s->ahead > 0 && !s->fed) ? 0 : s->rows[(s->started - 1) % MODEL_STEPS];
  gl_status status = GL_OK;
  for (size_t r = 0; r < rows->n && status == GL_OK; ++r) {
    const int32_t token = rows->token[r];
    if (token < 0 && (size_t)(-1 - (int64_t)token) >= before)
      return gl_fail(err, GL_EINTERNAL, "row %zu wants what row %ld of the step before drew", r,
                     -1 - (long)token);
    status = model_cache_check(k, token < 0 ? 0 : token, rows->slot[r], rows->position[r], err);
  }
  return status;
}

gl_status model_step(model_cache *k, const model_step_rows *rows, const model_draws *draws,
                     gl_error *err) {
  model_steps *s = &k->steps;
  gl_status status = check(k, rows, err);
  if (status != GL_OK) return status;
  if (s->ahead > 0)
    start_beside(k, rows, draws);
  else
    status = run_at_once(k, rows, draws, err);
  if (status != GL_OK) return status;
  k->filled = rows->n;
  s->rows[s->started++ % MODEL_STEPS] = rows->n;
  return GL_OK;
}

gl_status model_step_take(model_cache *k, int32_t *token, double *logq, double *logq_truncated,
                          gl_error *err) {
  model_steps *s = &k->steps;
  if (s->taken == s->started) return gl_fail(err, GL_EINTERNAL, "no step is under way");
  const size_t i = s->taken++ % MODEL_STEPS, rows = s->rows[i];
  if (s->ahead == 0) {
    memcpy(token, s->token, rows * sizeof *token);
    memcpy(logq, s->logq, rows * sizeof *logq);
    memcpy(logq_truncated, s->logq_truncated, rows * sizeof *logq);
    return GL_OK;
  }
  backend *b = k->m->b;
  const void *drawn = b->ops->fetch_wait(b, s->fetch[i]);
  if (drawn == NULL) {
    const gl_status status = b->ops->status(b, err);
    return status != GL_OK ? status : gl_fail(err, GL_EINTERNAL, "a step's draws did not come");
  }
  model_drawn_get(k, drawn, rows, s->all[i], token, logq, logq_truncated);
  return GL_OK;
}
