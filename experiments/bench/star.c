/* Many samplers around one learner on the bare list of events: one event for each sampler. */
#include "experiments/bench/star.h"

#include "core/random/rng.h"
#include "sim/future_events.h"

#include <math.h>
#include <stdlib.h>

/* The leg that an event ends; the event's data is the version the sampler works with. */
enum { GENERATION, UP, DOWN, LEGS };

typedef struct star_sampler {
  rng_words words; /* of the block last drawn */
  uint64_t drawn;
} star_sampler;

typedef struct star {
  future_events events;
  star_sampler *samplers;
  double mean_s[LEGS];
  uint64_t seed, version, batches, staleness;
  uint32_t batches_per_update, until_update;
} star;

static inline double leg_time(star *s, uint32_t i, uint32_t leg) {
  star_sampler *p = &s->samplers[i];
  uint64_t k = p->drawn++;
  if (k % 4 == 0) p->words = rng_block(rng_stream_at(s->seed, RNG_GENERATION, i), k / 4);
  return -s->mean_s[leg] * log(rng_u01(p->words.v[k % 4]));
}

static inline void batch_arrives(star *s, uint64_t version) {
  ++s->batches;
  s->staleness += s->version - version;
  if (--s->until_update > 0) return;
  s->until_update = s->batches_per_update;
  ++s->version;
}

static inline int star_handle(star *s, sim_event e) {
  uint32_t next = e.kind + 1 == LEGS ? 0 : e.kind + 1;
  if (e.kind == UP) {
    batch_arrives(s, e.data);
    e.data = s->version; /* weights are sent back at once */
  }
  return fel_push(&s->events, e.time + leg_time(s, e.node, next), 0, next, e.node, e.data);
}

/* As sim/clock.c does. */
static void star_look_ahead(const star *s) {
  const event_queue *near = &s->events.near;
  for (size_t i = 0; i < near->size; ++i) {
    const star_sampler *p = &s->samplers[near->heap[i].node];
    __builtin_prefetch(&p->words, 1);
    __builtin_prefetch(&p->drawn, 1); /* which may be in another cache line */
  }
}

static int star_start(star *s, uint32_t samplers) {
  s->samplers = calloc(samplers, sizeof *s->samplers);
  int ok = s->samplers != NULL;
  for (uint32_t i = 0; i < samplers && ok; ++i)
    ok = fel_push(&s->events, leg_time(s, i, GENERATION), 0, GENERATION, i, 0);
  return ok;
}

gl_status star_run(star_result *out, const star_spec *spec, uint64_t seed, uint64_t events,
                   gl_error *err) {
  *out = (star_result){0};
  if (spec->samplers == 0 || spec->batches_per_update == 0 || events == 0 ||
      !(spec->generation_s > 0 && spec->up_s > 0 && spec->down_s > 0))
    return gl_fail(err, GL_EINPUT, "a star needs samplers, events and positive mean times");
  star s = {.mean_s = {spec->generation_s, spec->up_s, spec->down_s},
            .seed = seed,
            .batches_per_update = spec->batches_per_update,
            .until_update = spec->batches_per_update};
  fel_init(&s.events);
  int ok = star_start(&s, spec->samplers);
  uint64_t refills = 0;
  for (uint64_t done = 0; done < events && ok; ++done) {
    sim_event e;
    ok = fel_pop(&s.events, &e);
    if (!ok) break;
    out->simulated_s = e.time;
    if (s.events.refills != refills) star_look_ahead(&s);
    refills = s.events.refills;
    ok = star_handle(&s, e);
  }
  out->events = events;
  out->batches = s.batches;
  out->updates = s.version;
  out->mean_staleness = s.batches > 0 ? (double)s.staleness / (double)s.batches : 0;
  out->bytes_per_sampler = sizeof(star_sampler);
  out->bytes_per_event = sizeof(sim_event);
  out->event_bytes = fel_bytes(&s.events);
  fel_fini(&s.events);
  free(s.samplers);
  return ok ? GL_OK : gl_fail_memory(err, "the star");
}
