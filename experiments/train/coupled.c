/* Training with a clock that is coupled to the learner: batches are drawn when a sampler begins
 * them, because the lengths of their responses take the simulated time, and updates are made when
 * the clock comes to their end.
 *
 * The clock's state is no part of a checkpoint. A checkpoint has the lengths of all batches begun
 * so far; from these the clock is run again, without any work of the learner, up to the update of
 * the checkpoint, and goes on live from there. */
#include "experiments/train/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct coupled {
  train_loop *loop;
  checkpoint *resumed;
  size_t again;     /* updates of the checkpoint that the clock has still to run again */
  size_t responses; /* of a unit */
  size_t begun, capacity;
  uint32_t *lengths;    /* [begun * responses] */
  unsigned char *waits; /* [begun] 1 from a batch's begin to its update or its loss */
  batch *batches;   /* [begun] empty where a batch does not wait, or while the clock runs again */
  batch **together; /* [most] the batches of an update */
  size_t most;
} coupled;

/* --- batches by their number --------------------------------------------------------------------
 */

static gl_status reserve(coupled *c) {
  if (c->begun < c->capacity) return GL_OK;
  size_t capacity = 2 * c->capacity + 64;
  if (capacity > SIZE_MAX / sizeof(batch) || capacity > SIZE_MAX / sizeof(uint32_t) / c->responses)
    return gl_fail_memory(c->loop->err, "the batches of a run");
  uint32_t *lengths = realloc(c->lengths, capacity * c->responses * sizeof *lengths);
  if (lengths != NULL) c->lengths = lengths;
  unsigned char *waits = realloc(c->waits, capacity);
  if (waits != NULL) c->waits = waits;
  batch *batches = realloc(c->batches, capacity * sizeof *batches);
  if (batches != NULL) c->batches = batches;
  if (lengths == NULL || waits == NULL || batches == NULL)
    return gl_fail_memory(c->loop->err, "the batches of a run");
  c->capacity = capacity;
  return GL_OK;
}

static void forget(coupled *c, uint64_t number) {
  c->waits[number] = 0;
  batch_fini(&c->batches[number]);
}

/* --- checkpoints --------------------------------------------------------------------------------
 */

static gl_status save(coupled *c) {
  checkpoint saved = {.lengths = c->lengths, .begun = c->begun, .responses = c->responses};
  for (size_t i = 0; i < c->begun; ++i) saved.n_batches += c->waits[i];
  saved.batches = calloc(saved.n_batches + 1, sizeof *saved.batches);
  if (saved.batches == NULL) return gl_fail_memory(c->loop->err, "a checkpoint");
  for (size_t i = 0, n = 0; i < c->begun; ++i)
    if (c->waits[i]) saved.batches[n++] = (checkpoint_batch){i, c->batches[i]};
  gl_status status = train_save(c->loop, &saved);
  free(saved.batches);
  return status;
}

/* The clock has come to the update of the checkpoint: the batches that wait now must be its own. */
static gl_status go_live(coupled *c) {
  checkpoint *r = c->resumed;
  size_t waiting = 0;
  int fits = c->begun == r->begun;
  for (size_t i = 0; i < c->begun; ++i) waiting += c->waits[i];
  fits = fits && waiting == r->n_batches;
  for (size_t i = 0; i < r->n_batches && fits; ++i) {
    uint64_t number = r->batches[i].number;
    fits = number < c->begun && c->waits[number] && c->batches[number].token_start == NULL &&
           r->batches[i].drawn.n_responses == c->responses;
    if (!fits) break;
    c->batches[number] = r->batches[i].drawn;
    r->batches[i].drawn = (batch){0};
  }
  return fits ? GL_OK : train_misfit(c->loop);
}

/* --- what the clock asks ------------------------------------------------------------------------
 */

static gl_status draw_live(coupled *c, const schedule_batch *b, int64_t version, uint32_t *lengths,
                           gl_error *err) {
  const recipe *r = c->loop->recipe;
  const learner *l = &c->loop->learner;
  batch *drawn = &c->batches[b->number];
  draw_request request = {.batch_id = b->id,
                          .version = version,
                          .n_groups = cluster_unit_groups(c->loop->cluster, r->groups),
                          .group_size = r->group_size,
                          .from = 0,
                          .to = 1};
  gl_status status = l->ops->draw(l->self, &request, drawn, err);
  if (status != GL_OK) return status;
  if (drawn->n_responses != c->responses)
    return gl_fail(err, GL_EINTERNAL, "a learner drew %zu responses of %zu", drawn->n_responses,
                   c->responses);
  for (size_t i = 0; i < c->responses; ++i)
    lengths[i] = (uint32_t)(drawn->token_start[i + 1] - drawn->token_start[i]);
  return GL_OK;
}

static gl_status draw(void *self, const schedule_batch *b, int64_t version, double *lengths,
                      gl_error *err) {
  coupled *c = self;
  gl_status status = reserve(c);
  if (status != GL_OK) return status;
  uint32_t *own = c->lengths + c->begun * c->responses;
  c->batches[c->begun] = (batch){0};
  c->waits[c->begun++] = 1;
  if (c->again == 0)
    status = draw_live(c, b, version, own, err);
  else if (b->number < c->resumed->begun)
    memcpy(own, c->resumed->lengths + b->number * c->responses, c->responses * sizeof *own);
  else
    status = train_misfit(c->loop);
  for (size_t i = 0; i < c->responses && status == GL_OK; ++i) lengths[i] = own[i];
  return status;
}

static void discard(void *self, const schedule_batch *b) {
  forget(self, b->number);
}

static gl_status train(coupled *c, const schedule_update *u, const schedule_batch *batches) {
  for (size_t i = 0; i < u->n_batches; ++i) c->together[i] = &c->batches[batches[i].number];
  gl_status status = train_update(c->loop, u, batches[0].sampler, c->together);
  for (size_t i = 0; i < u->n_batches; ++i) forget(c, batches[i].number);
  if (status == GL_OK) status = train_evaluate(c->loop, (size_t)u->step, u->end_s);
  return status;
}

static gl_status run_again(coupled *c, const schedule_update *u, const schedule_batch *batches) {
  if (c->loop->out->steps[u->step - 1].time_s != u->end_s) return train_misfit(c->loop);
  for (size_t i = 0; i < u->n_batches; ++i) forget(c, batches[i].number);
  return --c->again == 0 ? go_live(c) : GL_OK;
}

static gl_status update(void *self, const schedule_update *u, const schedule_batch *batches,
                        int *stop, gl_error *err) {
  (void)err; /* the loop's */
  coupled *c = self;
  if (c->again > 0) return run_again(c, u, batches);
  if (u->n_batches > c->most) {
    batch **more = realloc(c->together, u->n_batches * sizeof *more);
    if (more == NULL) return gl_fail_memory(c->loop->err, "the batches of an update");
    c->together = more;
    c->most = u->n_batches;
  }
  gl_status status = train(c, u, batches);
  if (status != GL_OK) return status;
  *stop = c->loop->out->status != RUN_DONE;
  int pauses = train_pauses(c->loop);
  if (pauses & TRAIN_SAVE) status = save(c);
  if (status == GL_OK && pauses & TRAIN_STOP) status = train_stopped(c->loop);
  return status;
}

/* Versions held at the time of the checkpoint are in the learner's state. */
static gl_status hold(void *self, int64_t version, gl_error *err) {
  coupled *c = self;
  const learner *l = &c->loop->learner;
  (void)version; /* the learner's own */
  return c->again > 0 ? GL_OK : l->ops->hold(l->self, err);
}

static void release(void *self, int64_t version) {
  coupled *c = self;
  const learner *l = &c->loop->learner;
  if (c->again == 0) l->ops->release(l->self, version);
}

/* --- the whole ----------------------------------------------------------------------------------
 */

static gl_status check_learner(const train_loop *l) {
  const learner_ops *ops = l->learner.ops;
  if (ops->hold != NULL && ops->release != NULL) return GL_OK;
  return cfg_fail(cfg_find(l->recipe->cluster, "coupled"), l->err,
                  "a %s learner cannot be coupled to the clock, for it keeps no older versions to "
                  "draw from; leave coupled out and give the cluster a law of `lengths`",
                  ops->kind);
}

gl_status train_coupled(train_loop *l, checkpoint *resumed) {
  gl_status status = check_learner(l);
  if (status != GL_OK) return status;
  coupled c = {.loop = l,
               .resumed = resumed,
               .again = resumed->n_steps,
               .responses =
                   cluster_unit_groups(l->cluster, l->recipe->groups) * l->recipe->group_size};
  const schedule_hooks hooks = {.self = &c,
                                .draw = draw,
                                .discard = discard,
                                .update = update,
                                .hold = hold,
                                .release = release};
  schedule s = {0};
  if (resumed->n_steps > 0 && resumed->responses != c.responses) status = train_misfit(l);
  if (status == GL_OK && l->out->n_evals == 0) status = train_evaluate(l, 0, 0);
  if (status == GL_OK && l->out->status == RUN_DONE)
    status =
        schedule_build_coupled(&s, l->cluster, l->recipe->seed, l->recipe->steps, &hooks, l->err);
  if (status == GL_OK) status = train_take_clock(l, &s);
  for (size_t i = 0; i < c.begun; ++i) batch_fini(&c.batches[i]);
  free(c.lengths);
  free(c.waits);
  free(c.batches);
  free(c.together);
  schedule_fini(&s);
  return status;
}
