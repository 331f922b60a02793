/* The learner: waiting batches, choosing the next ones to train, updates. */
#include "core/base/array.h"
#include "core/random/rng.h"
#include "sim/clock.h"

#include <stdlib.h>
#include <string.h>

gl_status learner_init(sim_clock *c, gl_error *err) {
  learner_side *l = &c->learner;
  schedule *out = c->out;
  const size_t take = c->spec->tokens > 0 ? 1 : c->spec->take;
  l->newest_trained = -1;
  c->grader.first = BUFFER_NONE;
  l->step = (delay_source){rng_stream_at(c->seed, RNG_STEP, 0), 0, 0};
  l->pause = (delay_source){rng_stream_at(c->seed, RNG_STEP, 1), 0, 0};
  l->to_training = (delay_source){rng_stream_at(c->seed, RNG_STEP, 2), 0, 0};
  l->to_generation = (delay_source){rng_stream_at(c->seed, RNG_STEP, 3), 0, 0};
  eq_init(&l->by_version);
  if (c->updates > SIZE_MAX / take / sizeof *out->batches - 1)
    return gl_fail_memory(err, "the schedule");
  out->updates = calloc(c->updates + 1, sizeof *out->updates);
  const bool fits = out->updates != NULL &&
                    ARRAY_RESERVE(out->batches, l->batch_capacity, c->updates * take + 1) &&
                    ARRAY_RESERVE(l->chosen, l->chosen_capacity, take);
  return fits ? GL_OK : gl_fail_memory(err, "the schedule");
}

void learner_fini(sim_clock *c) {
  eq_fini(&c->learner.by_version);
  free(c->learner.chosen);
}

/* --- choice of the next batch --- */

/* A unit starts (+1) or ends (-1) waiting. */
static void count_waiting(sim_clock *c, uint32_t slot, int sign) {
  const pooled_batch *p = &c->buffer.pool[slot];
  if (c->spec->tokens > 0) c->learner.waiting_tokens += sign * p->facts.tokens;
  if (c->spec->n_sources > 0) c->learner.waiting_of[p->source] += (size_t)sign;
  ledger_wait(c, slot, sign);
}

static void choice_take_out(sim_clock *c, uint32_t slot) {
  buffer_remove(&c->buffer, slot);
  count_waiting(c, slot, -1);
}

static void choice_drop(sim_clock *c, uint32_t slot, unit_fate fate) {
  const schedule_batch *b = &c->buffer.pool[slot].facts;
  c->stats.waited_s += c->now - b->arrived_s;
  clock_trace(c, (schedule_span){SPAN_QUEUED, fate == FATE_LOST ? SPAN_LOST : SPAN_DROPPED,
                                 b->sampler, b->arrived_s, c->now, b->number, -1});
  choice_take_out(c, slot);
  ledger_discard(c, slot, fate);
}

/* HeteroRL (paper/methods.md §10.4): among the `lookback` newest batches, the first with the newest
 * version if that is newer than all trained ones; otherwise the oldest batch within the window of
 * the newest trained version. */
static uint32_t heterorl_next(const sim_clock *c, int64_t newest_trained) {
  const buffer *b = &c->buffer;
  uint32_t newest = BUFFER_NONE, oldest = BUFFER_NONE;
  int64_t window = c->spec->window;
  int64_t least = newest_trained > window ? newest_trained - window : 0;
  size_t seen = 0;
  for (uint32_t i = b->newest; i != BUFFER_NONE && seen < c->spec->lookback;
       i = b->pool[i].older, ++seen) {
    int64_t v = buffer_version(b, i);
    if (newest == BUFFER_NONE || v >= buffer_version(b, newest)) newest = i;
    if (v >= least) oldest = i;
  }
  if (newest == BUFFER_NONE || c->learner.version - buffer_version(b, newest) > window)
    return BUFFER_NONE;
  return buffer_version(b, newest) > newest_trained ? newest : oldest;
}

/* Permanently drops the oldest batches with versions below the window. They would never be chosen,
 * but would count among the `lookback` newest. */
static void heterorl_trim(sim_clock *c) {
  buffer *b = &c->buffer;
  while (b->oldest != BUFFER_NONE &&
         buffer_version(b, b->oldest) < c->learner.newest_trained - c->spec->window)
    choice_drop(c, b->oldest, FATE_STALE);
}

/* Whether the waiting units fill this number of updates. */
static bool fills(const sim_clock *c, double updates) {
  const cluster_spec *spec = c->spec;
  for (size_t s = 0; spec->quotas && s < spec->n_sources; ++s)
    if ((double)c->learner.waiting_of[s] < updates * (double)spec->sources[s].quota) return false;
  return c->spec->tokens > 0 ? c->learner.waiting_tokens >= updates * c->spec->tokens
                             : (double)c->buffer.waiting >= updates * (double)c->spec->take;
}

static bool is_enough(const sim_clock *c) {
  return fills(c, 1);
}

/* Whether the units chosen so far, with this many tokens, fill an update. */
static bool is_full(const sim_clock *c, double tokens) {
  return c->spec->tokens > 0 ? tokens >= c->spec->tokens : c->learner.n_chosen >= c->spec->take;
}

/* Chooses batches one by one by HeteroRL's rule; each choice may raise newest_trained. If they do
 * not fill an update, puts all of them back and returns false. */
static bool choose_heterorl(sim_clock *c) {
  int64_t before = c->learner.newest_trained;
  double tokens = 0;
  while (!is_full(c, tokens)) {
    uint32_t slot = heterorl_next(c, c->learner.newest_trained);
    if (slot == BUFFER_NONE) break;
    choice_take_out(c, slot);
    tokens += c->buffer.pool[slot].facts.tokens;
    c->learner.chosen[c->learner.n_chosen++] = slot;
    if (buffer_version(&c->buffer, slot) > c->learner.newest_trained)
      c->learner.newest_trained = buffer_version(&c->buffer, slot);
  }
  if (is_full(c, tokens)) {
    heterorl_trim(c);
    return true;
  }
  while (c->learner.n_chosen > 0) {
    const uint32_t slot = c->learner.chosen[--c->learner.n_chosen];
    buffer_insert(&c->buffer, slot);
    count_waiting(c, slot, 1);
  }
  c->learner.newest_trained = before;
  return false;
}

/* Rules that train the oldest version, or the first begun, first, or drop units that are too stale,
 * need the oldest waiting version: a heap orders waiting batches by version and then by arrival. A
 * batch that leaves the list otherwise leaves its entry in the heap, which is skipped when it
 * reaches the top.
 */
static bool needs_versions(const sim_clock *c) {
  return c->spec->queue == QUEUE_OLDEST_VERSION || cluster_keeps_order(c->spec) ||
         c->spec->evict == EVICT_STALEST ||
         (c->spec->queue != QUEUE_HETERORL && c->spec->window < INT64_MAX);
}

static bool choice_add(sim_clock *c, uint32_t slot) {
  count_waiting(c, slot, 1);
  if (c->spec->tokens > 0 &&
      !ARRAY_RESERVE(c->learner.chosen, c->learner.chosen_capacity, c->buffer.waiting))
    return false;
  if (!needs_versions(c)) return true;
  const pooled_batch *p = &c->buffer.pool[slot];
  const double key = c->spec->queue == QUEUE_IN_ORDER ? (double)(p->facts.number / c->spec->take)
                                                      : (double)buffer_version(&c->buffer, slot);
  return eq_push(&c->learner.by_version, key, 0, 0, slot, p->arrival);
}

/* The first arrival of the oldest waiting version; BUFFER_NONE if nothing waits. */
static uint32_t oldest_version(sim_clock *c) {
  while (!eq_is_empty(&c->learner.by_version)) {
    const sim_event *e = eq_top(&c->learner.by_version);
    if (c->buffer.pool[e->node].arrival == e->data) return e->node;
    eq_pop(&c->learner.by_version);
  }
  return BUFFER_NONE;
}

static void drop_stale(sim_clock *c) {
  for (uint32_t i = oldest_version(c);
       i != BUFFER_NONE && c->learner.version - buffer_version(&c->buffer, i) > c->spec->window;
       i = oldest_version(c))
    choice_drop(c, i, FATE_STALE);
}

static void choice_evict(sim_clock *c) {
  switch (c->spec->evict) {
  case EVICT_OLDEST:
    choice_drop(c, c->buffer.oldest, FATE_EVICTED);
    return;
  case EVICT_STALEST:
    choice_drop(c, oldest_version(c), FATE_EVICTED);
    return;
  case EVICT_NEWEST:
    choice_drop(c, c->buffer.newest, FATE_EVICTED);
    return;
  }
}

static uint32_t next_in_queue(sim_clock *c) {
  return c->spec->queue == QUEUE_FIFO   ? c->buffer.oldest
         : c->spec->queue == QUEUE_LIFO ? c->buffer.newest
                                        : oldest_version(c);
}

/* Chooses the quota of each source, in the order of the queue. */
static void choose_quotas(sim_clock *c) {
  const buffer *b = &c->buffer;
  const bool newest_first = c->spec->queue == QUEUE_LIFO;
  size_t taken[MOST_SOURCES] = {0};
  uint32_t next;
  for (uint32_t slot = newest_first ? b->newest : b->oldest; !is_full(c, 0); slot = next) {
    const pooled_batch *p = &b->pool[slot];
    next = newest_first ? p->older : p->newer;
    if (taken[p->source] == c->spec->sources[p->source].quota) continue;
    ++taken[p->source];
    choice_take_out(c, slot);
    c->learner.chosen[c->learner.n_chosen++] = slot;
  }
}

/* Chooses the units of the next update; returns false if the learner must wait. */
static bool choice_next(sim_clock *c) {
  const cluster_spec *spec = c->spec;
  buffer *b = &c->buffer;
  c->learner.n_chosen = 0;
  if (spec->queue == QUEUE_HETERORL) return choose_heterorl(c);
  if (!is_enough(c)) return false;
  if (spec->stale == STALE_DISCARD && spec->window < c->learner.version) drop_stale(c);
  if (!is_enough(c) || (spec->stale == STALE_WAIT && ledger_must_wait(c)) ||
      (cluster_keeps_order(spec) && !ledger_next_is_ready(c)))
    return false;
  if (spec->quotas) choose_quotas(c);
  double tokens = 0;
  while (!is_full(c, tokens)) {
    const uint32_t slot = next_in_queue(c);
    choice_take_out(c, slot);
    tokens += b->pool[slot].facts.tokens;
    c->learner.chosen[c->learner.n_chosen++] = slot;
  }
  return true;
}

/* --- updates --- */

gl_status learner_wake(sim_clock *c, gl_error *err) {
  if (c->learner.busy || c->learner.wake_pending) return GL_OK;
  c->learner.wake_pending = true;
  return clock_post(c, c->now, LEARNER_STARTS, 0, 0, err);
}

/* Whether the unit is rejected at random, which models a filter of groups with equal rewards. */
static bool is_rejected(const sim_clock *c, uint32_t slot) {
  const pooled_batch *p = &c->buffer.pool[slot];
  const double reject =
      c->spec->n_sources > 0 ? c->spec->sources[p->source].reject : c->spec->reject;
  if (reject <= 0) return false;
  const rng_words w =
      rng_block(rng_stream_at(c->seed, RNG_FAILURE, RNG_FAILURE_REJECTIONS + p->facts.number), 0);
  return rng_u01_53(w.v[0], w.v[1]) < reject;
}

/* surplus: abort. Whether the unit was begun for an earlier update. */
static bool is_surplus(const sim_clock *c, uint32_t slot) {
  const schedule *out = c->out;
  return c->spec->aborts_surplus && out->n_updates > 0 &&
         c->buffer.pool[slot].facts.start_s < out->updates[out->n_updates - 1].start_s;
}

/* A graded unit joins the queue, unless it is rejected or surplus. */
static gl_status receive_graded(sim_clock *c, uint32_t slot, gl_error *err) {
  buffer *b = &c->buffer;
  if (is_rejected(c, slot)) {
    ledger_discard(c, slot, FATE_REJECTED);
    return GL_OK;
  }
  if (is_surplus(c, slot)) {
    ledger_discard(c, slot, FATE_ABORTED);
    return GL_OK;
  }
  b->pool[slot].facts.arrived_s = c->now;
  buffer_insert(b, slot);
  if (!choice_add(c, slot)) return gl_fail_memory(err, "waiting batches");
  if (c->spec->capacity != 0 && b->waiting > c->spec->capacity) choice_evict(c);
  return learner_wake(c, err);
}

/* --- the grader --- */

/* With restarts a grading is traced when it ends, otherwise when it begins. */
static void trace_grading(const sim_clock *c, uint32_t slot, span_end end, double to_s) {
  const schedule_batch *b = &c->buffer.pool[slot].facts;
  clock_trace(c, (schedule_span){SPAN_GRADING, end, b->sampler, b->arrived_s, to_s, b->number, -1});
}

static gl_status begin_grading(sim_clock *c, uint32_t slot, gl_error *err) {
  grader_state *g = &c->grader;
  const schedule_batch *b = &c->buffer.pool[slot].facts;
  delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, RNG_FAILURE_GRADING + b->number), 0, 0};
  const double time = delay_draw(c->spec->grader->time, &draw), most = c->spec->grader->timeout;
  const double seconds = time < most ? time : most;
  ++g->busy;
  ++g->begun;
  g->waited_s += c->now - b->arrived_s;
  g->busy_s += seconds;
  c->buffer.pool[slot].facts.arrived_s = c->now; /* from now on: when its grading began */
  if (c->spec->restarts == NULL)
    trace_grading(c, slot, time > most ? SPAN_DROPPED : SPAN_DONE, c->now + seconds);
  return clock_post(c, c->now + seconds, GRADING_ENDS, 0, slot | (uint64_t)(time > most) << 32,
                    err);
}

gl_status learner_receive(sim_clock *c, uint32_t slot, gl_error *err) {
  grader_state *g = &c->grader;
  pooled_batch *pool = c->buffer.pool;
  if (c->spec->grader == NULL) return receive_graded(c, slot, err);
  pool[slot].facts.arrived_s = c->now; /* until it is graded */
  if (g->busy < c->spec->grader->places) return begin_grading(c, slot, err);
  pool[slot].newer = BUFFER_NONE;
  *(g->first == BUFFER_NONE ? &g->first : &pool[g->last].newer) = slot;
  g->last = slot;
  return GL_OK;
}

gl_status learner_graded(sim_clock *c, uint64_t which, gl_error *err) {
  grader_state *g = &c->grader;
  const uint32_t slot = (uint32_t)which, next = g->first;
  gl_status status = GL_OK;
  --g->busy;
  if (c->spec->restarts != NULL)
    trace_grading(c, slot, which >> 32 == 0 ? SPAN_DONE : SPAN_DROPPED, c->now);
  if (next != BUFFER_NONE) {
    g->first = c->buffer.pool[next].newer;
    status = begin_grading(c, next, err);
  }
  if (status != GL_OK || which >> 32 == 0)
    return status != GL_OK ? status : receive_graded(c, slot, err);
  ++g->timed_out;
  ledger_discard(c, slot, FATE_REJECTED);
  return GL_OK;
}

static void set_published(sim_clock *c) {
  version_release(c, c->learner.published);
  c->learner.published = c->learner.version;
  version_add_ref(c, c->learner.published);
}

/* Sends the published version to all samplers if weights are pushed; if they are pulled, only
 * restarts the samplers that wait at the gate. */
static gl_status learner_publish(sim_clock *c, gl_error *err) {
  const bool pull = c->spec->sync == SYNC_PULL;
  gl_status status = GL_OK;
  if (c->net.nodes != NULL) return relay_publish(c, err);
  if (pull && c->n_gated == 0) return status; /* avoids a useless pass over a million samplers */
  for (size_t i = 0; i < c->spec->n_samplers && status == GL_OK; ++i) {
    sampler *s = &c->samplers[i];
    if (pull && s->state == SAMPLER_GATED)
      status = clock_post(c, c->now, SAMPLER_STARTS, (uint32_t)i, 0, err);
    if (!pull) status = sampler_push(c, (uint32_t)i, err);
  }
  return status;
}

/* Copies a chosen batch to the schedule and frees its slot. */
static gl_status record_batch(sim_clock *c, uint32_t slot, gl_error *err) {
  schedule *out = c->out;
  pooled_batch *p = &c->buffer.pool[slot];
  if (!ARRAY_RESERVE(out->segments, c->learner.segment_capacity,
                     out->n_segments + p->facts.n_segments))
    return gl_fail_memory(err, "segments");
  schedule_batch *b = &out->batches[out->n_batches++];
  *b = p->facts;
  b->trained_s = c->now;
  if (out->n_sources > 0) {
    if (!ARRAY_RESERVE(out->source_of, c->learner.source_capacity, out->n_batches))
      return gl_fail_memory(err, "sources");
    out->source_of[out->n_batches - 1] = (uint8_t)p->source;
  }
  c->stats.waited_s += c->now - b->arrived_s;
  ledger_end(c, slot, FATE_TRAINED);
  clock_trace(
      c, (schedule_span){SPAN_QUEUED, SPAN_DONE, b->sampler, b->arrived_s, c->now, b->number, -1});
  b->first_segment = out->n_segments;
  memcpy(&out->segments[out->n_segments], p->segments, b->n_segments * sizeof *p->segments);
  out->n_segments += b->n_segments;
  buffer_release(&c->buffer, slot);
  return GL_OK;
}

/* Updates and returns whether the chosen update still trains the backlog of a pause. */
static bool catches_up(learner_side *l, size_t waiting) {
  l->catches_up = l->catches_up && waiting + l->n_chosen > l->backlog;
  return l->catches_up;
}

/* Drops the units that the update starting now does not take: waiting units, and those in progress.
 * Units in transfer are dropped when they arrive. */
static gl_status abort_surplus(sim_clock *c, gl_error *err) {
  while (c->buffer.oldest != BUFFER_NONE) choice_drop(c, c->buffer.oldest, FATE_ABORTED);
  return stream_cancel_below(c, INT64_MAX, err);
}

/* --- GPUs that samplers and learner share --- */

static gl_status stop_colocated(sim_clock *c, double seconds, gl_error *err) {
  gl_status status = GL_OK;
  if (c->spec->colocated == NULL) return GL_OK;
  for (uint32_t i = 0; i < c->spec->n_samplers && status == GL_OK; ++i)
    if (c->samplers[i].group->colocated) status = sampler_stop(c, i, seconds, err);
  return status;
}

void learner_trace_switch(const sim_clock *c, span_end end, double to_s) {
  clock_trace(c, (schedule_span){SPAN_SWITCH, end, 0, c->learner.switching_since, to_s, 0, -1});
}

/* Starts a switch of the shared GPUs; their samplers pause while it lasts. */
static gl_status switch_gpus(sim_clock *c, gpu_phase to, gl_error *err) {
  const colocated_spec *spec = c->spec->colocated;
  learner_side *l = &c->learner;
  const bool train = to == GPUS_TRAIN;
  const double seconds = delay_draw(train ? spec->to_training : spec->to_generation,
                                    train ? &l->to_training : &l->to_generation);
  l->gpus = GPUS_SWITCH;
  ++l->switches;
  l->switch_s += seconds;
  l->switching_since = c->now;
  if (c->spec->restarts == NULL) learner_trace_switch(c, SPAN_DONE, c->now + seconds);
  gl_status status = clock_post(c, c->now + seconds, GPUS_SWITCHED, 0, (uint64_t)to, err);
  return status == GL_OK ? stop_colocated(c, seconds, err) : status;
}

gl_status learner_gpus_switched(sim_clock *c, uint64_t to, gl_error *err) {
  c->learner.gpus = (gpu_phase)to;
  if (c->spec->restarts != NULL) learner_trace_switch(c, SPAN_DONE, c->now);
  return learner_wake(c, err);
}

/* The learner has nothing to train. */
static gl_status learner_waits(sim_clock *c, gl_error *err) {
  c->learner.catches_up = false;
  if (c->spec->colocated == NULL || c->learner.gpus != GPUS_TRAIN) return GL_OK;
  return switch_gpus(c, GPUS_GENERATE, err);
}

gl_status learner_start(sim_clock *c, gl_error *err) {
  c->learner.wake_pending = false;
  if (c->learner.busy) return GL_OK;
  if (c->spec->colocated != NULL && c->learner.gpus != GPUS_TRAIN) {
    if (c->learner.gpus == GPUS_GENERATE && fills(c, c->spec->colocated->high))
      return switch_gpus(c, GPUS_TRAIN, err);
    return learner_waits(c, err);
  }
  if (!choice_next(c)) return learner_waits(c, err);
  schedule *out = c->out;
  if (!ARRAY_RESERVE(out->batches, c->learner.batch_capacity, out->n_batches + c->learner.n_chosen))
    return gl_fail_memory(err, "the schedule");
  double step = delay_draw(c->spec->step, &c->learner.step);
  const uint64_t catch_ups = out->n_updates > 0 ? out->updates[out->n_updates - 1].catch_ups : 0;
  out->updates[out->n_updates++] =
      (schedule_update){.step = c->learner.version + 1,
                        .version = c->learner.version,
                        .published = c->learner.published,
                        .first_batch = out->n_batches,
                        .n_batches = c->learner.n_chosen,
                        .start_s = c->now,
                        .end_s = c->now + step,
                        .wait_s = c->now - c->learner.idle_since,
                        .pause_s = c->learner.paused_s,
                        .catch_ups = catch_ups + catches_up(&c->learner, c->buffer.waiting)};
  clock_trace(c, (schedule_span){SPAN_IDLE, SPAN_DONE, 0, c->learner.idle_since, c->now, 0, -1});
  if (c->spec->restarts == NULL) /* with restarts: traced at the update's end */
    clock_trace(c, (schedule_span){SPAN_TRAINING, SPAN_DONE, 0, c->now, c->now + step, 0,
                                   c->learner.version});
  c->learner.paused_s = 0;
  c->learner.busy_s += step;
  c->learner.busy = true;
  for (size_t i = 0; i < c->learner.n_chosen; ++i) {
    gl_status status = record_batch(c, c->learner.chosen[i], err);
    if (status != GL_OK) return status;
  }
  if (c->spec->aborts_surplus) {
    gl_status status = abort_surplus(c, err);
    if (status != GL_OK) return status;
  }
  gl_status status = clock_post(c, c->now + step, UPDATE_ENDS, 0, 0, err);
  return status == GL_OK ? stop_colocated(c, step, err) : status;
}

gl_status learner_pause_ends(sim_clock *c, gl_error *err) {
  c->learner.busy = false;
  c->learner.idle_since = c->now;
  const colocated_spec *shared = c->spec->colocated;
  if (shared != NULL && !(shared->when_idle && fills(c, shared->low)))
    return switch_gpus(c, GPUS_GENERATE, err);
  return learner_wake(c, err);
}

/* Starts the backlog of a pause. If the previous backlog has not been trained yet, both are merged
 * into one. */
static void begin_backlog(learner_side *l, size_t waiting) {
  if (!l->catches_up || waiting < l->backlog) l->backlog = waiting;
  l->catches_up = true;
}

static void trace_training(const sim_clock *c, span_end end) {
  const schedule_update *u = &c->out->updates[c->out->n_updates - 1];
  if (c->spec->restarts != NULL)
    clock_trace(c, (schedule_span){SPAN_TRAINING, end, 0, u->start_s, c->now, 0, u->version});
}

/* Posts the restart that comes before the next update, if there is one. */
static gl_status restart_if_due(sim_clock *c, gl_error *err) {
  const restart_spec *spec = c->spec->restarts;
  restart_state *s = &c->restarts;
  if (spec == NULL || s->next_before == spec->n_before ||
      spec->before[s->next_before] > (double)(c->learner.version + 1))
    return GL_OK;
  ++s->next_before;
  return clock_post(c, c->now, RESTART_BEGINS, 0, 0, err);
}

/* Weights are published before an evaluation, so that samplers can catch up during it. */
gl_status learner_update_ends(sim_clock *c, gl_error *err) {
  trace_training(c, SPAN_DONE);
  ++c->learner.version;
  const bool publishes = c->learner.version % c->spec->publish_every == 0;
  if (publishes) set_published(c);
  gl_status status = coupling_update(c, err);
  if (status == GL_OK && publishes && !c->coupled.stopped) status = learner_publish(c, err);
  if (status == GL_OK && c->spec->cancels_stale)
    status = stream_cancel_below(c, c->learner.version - c->spec->window, err);
  if (status == GL_OK) status = restart_if_due(c, err);
  if (status != GL_OK) return status;
  if (c->learner.version % c->spec->eval_every == 0)
    c->learner.paused_s = delay_draw(c->spec->pause, &c->learner.pause);
  clock_trace(c, (schedule_span){SPAN_EVALUATION, SPAN_DONE, 0, c->now,
                                 c->now + c->learner.paused_s, 0, c->learner.version});
  if (c->learner.paused_s > 0) begin_backlog(&c->learner, c->buffer.waiting);
  if (c->learner.paused_s <= 0) return learner_pause_ends(c, err);
  status = clock_post(c, c->now + c->learner.paused_s, PAUSE_ENDS, 0, 0, err);
  return status == GL_OK ? stop_colocated(c, c->learner.paused_s, err) : status;
}

/* --- restarts --- */

/* Takes the updates from this version on out of the schedule; their units are lost. */
static void forget_updates(sim_clock *c, int64_t version) {
  schedule *out = c->out;
  if ((size_t)version == out->n_updates) return;
  for (size_t i = (size_t)version; i < out->n_updates; ++i)
    for (size_t k = 0; k < out->updates[i].n_batches; ++k) {
      const schedule_batch *b = &out->batches[out->updates[i].first_batch + k];
      ledger_untrain(c, b, schedule_staleness(out, &out->updates[i], b));
    }
  out->n_updates = (size_t)version;
  out->n_batches = out->updates[version].first_batch;
  out->n_segments = out->batches[out->n_batches].first_segment;
}

static int64_t newest_version(const pooled_batch *p) {
  int64_t newest = p->segments[0].version;
  for (uint32_t i = 1; i < p->facts.n_segments; ++i)
    if (p->segments[i].version > newest) newest = p->segments[i].version;
  return newest;
}

static bool is_training(const sim_clock *c) {
  return c->out->n_updates > (size_t)c->learner.version;
}

gl_status learner_end_stop(sim_clock *c, gl_error *err) {
  return is_training(c) ? stop_colocated(c, c->now - c->out->updates[c->learner.version].end_s, err)
                        : GL_OK;
}

void learner_subtract_rest(sim_clock *c, const sim_event *e) {
  if (e->kind == GPUS_SWITCHED) c->learner.switch_s -= e->time - c->now;
  if (e->kind == GRADING_ENDS) c->grader.busy_s -= e->time - c->now;
}

void learner_lose(sim_clock *c, const sim_event *e) {
  learner_subtract_rest(c, e);
  if (e->kind == GPUS_SWITCHED) {
    learner_trace_switch(c, SPAN_LOST, c->now);
  } else if (e->kind == GRADING_ENDS) {
    --c->grader.busy;
    trace_grading(c, (uint32_t)e->data, SPAN_LOST, c->now);
    ledger_discard(c, (uint32_t)e->data, FATE_LOST);
  }
}

/* Units that wait for the grader are lost, or frozen for the `later` seconds that the job is down.
 */
static void stop_grader_queue(sim_clock *c, bool freezes, double later) {
  grader_state *g = &c->grader;
  for (uint32_t slot = g->first, next; slot != BUFFER_NONE; slot = next) {
    next = c->buffer.pool[slot].newer;
    if (freezes)
      c->buffer.pool[slot].facts.arrived_s += later;
    else
      ledger_discard(c, slot, FATE_LOST);
  }
  if (!freezes) g->first = BUFFER_NONE;
}

void learner_stop(sim_clock *c, int64_t version, restart_keeps keeps, double later) {
  learner_side *l = &c->learner;
  buffer *b = &c->buffer;
  const bool trains = is_training(c), freezes = keeps == RESTART_KEEPS_RESPONSES;
  if (trains) {
    trace_training(c, SPAN_LOST);
    l->busy_s -= c->out->updates[l->version].end_s - c->now;
  }
  c->restarts.again += (uint64_t)(l->version - version);
  forget_updates(c, version);
  l->version = version;
  if (l->newest_trained > version) l->newest_trained = version;
  l->wake_pending = l->catches_up = false;
  stop_grader_queue(c, freezes, later);
  if (freezes)
    l->switching_since += later;
  else
    l->gpus = GPUS_GENERATE;
  if (trains || !freezes) {
    l->busy = false;
    l->paused_s = 0;
  }
  for (uint32_t slot = b->oldest, next; slot != BUFFER_NONE; slot = next) {
    next = b->pool[slot].newer;
    if (keeps != RESTART_KEEPS_NOTHING && newest_version(&b->pool[slot]) <= version) continue;
    choice_drop(c, slot, FATE_LOST);
  }
}

gl_status learner_resume(sim_clock *c, gl_error *err) {
  set_published(c);
  if (!c->learner.busy) c->learner.idle_since = c->now;
  return learner_wake(c, err);
}
