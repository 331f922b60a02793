/* Restarts of the whole job: what is under way is lost or frozen, the learner goes back to its last
 * checkpoint, and after the time down everything starts from there. */
#include "sim/clock.h"

#include "core/random/rng.h"

#include <math.h>
#include <stdlib.h>

/* Minimum time to a restart, so that simulated time always advances. */
static const double shortest_run_s = 1e-9;
/* Restarts without a newer version after which the clock gives up. */
static const uint64_t most_without_progress = 100000;

/* A random number of the restarts. Restart n uses index 3 n for the interval before it, 3 n + 1 for
 * the down time and 3 n + 2 for the recovery. */
static double draw_at(const sim_clock *c, const delay_dist *dist, uint64_t index) {
  delay_source source = {rng_stream_at(c->seed, RNG_FAILURE, RNG_FAILURE_RESTARTS), index, 0};
  return delay_draw(dist, &source);
}

static gl_status plan_next(sim_clock *c, gl_error *err) {
  const restart_spec *spec = c->spec->restarts;
  if (delay_is_zero(spec->every)) return GL_OK;
  const double up = fmax(draw_at(c, spec->every, 3 * c->restarts.n), shortest_run_s);
  return clock_post(c, c->now + up, RESTART_BEGINS, 0, 1, err);
}

gl_status restart_plan(sim_clock *c, gl_error *err) {
  const restart_spec *spec = c->spec->restarts;
  gl_status status = GL_OK;
  if (spec == NULL) return GL_OK;
  for (size_t i = 0; i < spec->n_at && status == GL_OK; ++i)
    status = clock_post(c, spec->at[i], RESTART_BEGINS, 0, 0, err);
  return status == GL_OK ? plan_next(c, err) : status;
}

/* --- events in the queue when a restart begins --- */

/* Removes what an event carries: a unit in transfer is lost, weights are no longer referred to. */
static void drop_event(sim_clock *c, const sim_event *e) {
  if (e->kind == BATCH_ARRIVES || e->kind == BATCH_LOST)
    ledger_discard(c, (uint32_t)e->data, FATE_LOST);
  else if (e->kind == WEIGHTS_ARRIVE || (e->kind == WEIGHTS_LOADED && e->data != UINT64_MAX))
    version_release(c, (int64_t)e->data);
  else
    learner_lose(c, e);
}

/* Returns whether an event survives the restart. If responses are kept, it happens `later` seconds
 * later. The next sampled restart is removed and sampled again; restarts at fixed times stay. */
static bool keep_event(sim_clock *c, sim_event *e, double later) {
  if (e->kind == RESTART_BEGINS) return e->data == 0;
  if (c->spec->restarts->keeps == RESTART_KEEPS_RESPONSES) {
    e->time += later;
    if (e->kind == GRADING_ENDS) c->buffer.pool[(uint32_t)e->data].facts.arrived_s += later;
    return e->kind != UPDATE_ENDS && e->kind != LEARNER_STARTS;
  }
  if (e->kind == CRASH || e->kind == RETURN) return true;
  drop_event(c, e);
  return false;
}

/* Rebuilds the event list with the events that survive the restart. */
static gl_status filter_events(sim_clock *c, double later, gl_error *err) {
  const size_t n = fel_size(&c->events);
  sim_event *all = calloc(n + 1, sizeof *all);
  bool fits = all != NULL;
  size_t kept = 0;
  for (size_t i = 0; i < n && fits; ++i) {
    fits = fel_pop(&c->events, &all[kept]) != 0;
    kept += fits && keep_event(c, &all[kept], later);
  }
  for (size_t i = 0; i < kept && fits; ++i) fits = fel_insert(&c->events, all[i]) != 0;
  free(all);
  return fits ? GL_OK : gl_fail_memory(err, "events");
}

/* --- samplers --- */

/* A sampler's work is lost; one that has crashed stays down. */
static void stop_sampler(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  if (s->state == SAMPLER_DOWN) return;
  const bool generates = s->state == SAMPLER_GENERATING;
  if (generates) s->busy_s += c->now - s->begun_s;
  sampler_enter(c, i, SAMPLER_READY, generates ? SPAN_LOST : SPAN_DONE);
  if (c->stream.engines != NULL)
    stream_crash(c, i);
  else if (generates)
    ledger_discard(c, s->slot, FATE_LOST);
  interrupt_crash(c, i, generates);
  version_release(c, s->version);
  s->version = -1;
  s->up.free_at = s->down.free_at = 0;
  s->resend = 0;
}

static gl_status start_sampler(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (s->state == SAMPLER_DOWN) return GL_OK;
  version_release(c, s->version); /* -1, unless it returned from a crash meanwhile */
  s->version = c->learner.published;
  version_add_ref(c, s->version);
  if (c->spec->sync == SYNC_PULL) s->due_s = c->now + sampler_weights_delay(c, i);
  return clock_post(c, c->now, SAMPLER_STARTS, i, 0, err);
}

/* Moves the times of everything under way by the time that the job is down. */
static void move_sampler(sim_clock *c, uint32_t i, double later) {
  sampler *s = &c->samplers[i];
  if (s->state == SAMPLER_DOWN) return;
  s->begun_s += later;
  s->ends_s += later;
  s->due_s += later;
  s->up.free_at += later;
  s->down.free_at += later;
  if (interrupt_is_on(c, i)) {
    c->interrupts.of[i].begun_s += later;
    c->interrupts.of[i].ends_s += later;
    c->interrupts.of[i].weights_until_s += later;
  }
  if (c->stream.engines == NULL) return;
  if (c->stream.loads != NULL) load_pause(c, i, later);
  for (uint32_t k = c->stream.engines[i].first; k != UINT32_MAX; k = c->stream.running[k].next) {
    c->stream.running[k].begun_s += later;
    c->stream.running[k].ends_s += later;
    turns_move(c, k, later);
  }
}

/* --- the restart --- */

static int64_t last_checkpoint(const sim_clock *c) {
  return c->learner.version - c->learner.version % c->spec->restarts->checkpoint_every;
}

static gl_status count_in_vain(sim_clock *c, gl_error *err) {
  restart_state *s = &c->restarts;
  s->without_progress = c->learner.version > s->furthest ? 0 : s->without_progress + 1;
  if (c->learner.version > s->furthest) s->furthest = c->learner.version;
  if (s->without_progress < most_without_progress) return GL_OK;
  return gl_fail(err, GL_ENUMERIC,
                 "%llu restarts in a row came before version %lld was left behind; look at %s",
                 (unsigned long long)s->without_progress, (long long)s->furthest,
                 c->n_gated == c->spec->n_samplers
                     ? "ahead and publish_every, because all samplers wait for newer weights"
                     : "cluster.restarts: every, at and checkpoint_every");
}

gl_status restart_begin(sim_clock *c, gl_error *err) {
  const restart_spec *spec = c->spec->restarts;
  restart_state *s = &c->restarts;
  if (s->is_down) return GL_OK;
  gl_status status = count_in_vain(c, err);
  if (status != GL_OK) return status;
  const double down =
      draw_at(c, spec->down, 3 * s->n + 1) + draw_at(c, spec->recovery, 3 * s->n + 2);
  const bool freezes = spec->keeps == RESTART_KEEPS_RESPONSES;
  s->is_down = true;
  s->since_s = c->now;
  ++s->n;
  if (freezes) status = learner_end_stop(c, err);
  if (status != GL_OK) return status;
  for (uint32_t i = 0; i < c->spec->n_samplers && !freezes; ++i) stop_sampler(c, i);
  if (!freezes) turns_stop(c);
  for (uint32_t i = 0; i < c->spec->n_samplers && freezes; ++i) move_sampler(c, i, down);
  learner_stop(c, last_checkpoint(c), spec->keeps, down);
  status = filter_events(c, down, err);
  if (!freezes) c->ledger.freed = 0; /* all samplers start again */
  c->ledger.wake_learner = false;
  return status == GL_OK ? clock_post(c, c->now + down, RESTART_ENDS, 0, 0, err) : status;
}

gl_status restart_end(sim_clock *c, gl_error *err) {
  restart_state *s = &c->restarts;
  gl_status status = GL_OK;
  s->is_down = false;
  s->stopped_s += c->now - s->since_s;
  clock_trace(c, (schedule_span){SPAN_RESTART, SPAN_DONE, 0, s->since_s, c->now, 0, -1});
  status = plan_next(c, err);
  if (status == GL_OK) status = learner_resume(c, err);
  if (c->spec->restarts->keeps == RESTART_KEEPS_RESPONSES) return status;
  for (uint32_t i = 0; i < c->spec->n_samplers && status == GL_OK; ++i)
    status = start_sampler(c, i, err);
  return status;
}
