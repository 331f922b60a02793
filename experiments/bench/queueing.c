/* A single-server queue on the event loop, with the running sums that its closed forms are
 * checked against. */
#include "experiments/bench/queueing.h"

#include "sim/event_queue.h"

#include <math.h>
#include <stdlib.h>

enum { ARRIVAL, DEPARTURE, N_BATCH_MEANS = 50 };

/* Arrival times of those in the system, oldest first: a ring that doubles when full. */
typedef struct ring {
  double *time;
  size_t mask, head, count;
} ring;

static int ring_grow(ring *r) {
  size_t size = r->time == NULL ? 64 : 2 * (r->mask + 1);
  if (size > SIZE_MAX / sizeof *r->time) return 0;
  double *time = malloc(size * sizeof *time);
  if (time == NULL) return 0;
  for (size_t i = 0; i < r->count; ++i) time[i] = r->time[(r->head + i) & r->mask];
  free(r->time);
  *r = (ring){time, size - 1, 0, r->count};
  return 1;
}

static inline int ring_push(ring *r, double t) {
  if ((r->time == NULL || r->count > r->mask) && !ring_grow(r)) return 0;
  r->time[(r->head + r->count++) & r->mask] = t;
  return 1;
}

static inline double ring_pop(ring *r) {
  double t = r->time[r->head];
  r->head = (r->head + 1) & r->mask;
  --r->count;
  return t;
}

/* Exponential draws of mean 1, four to a block. */
typedef struct unit_draws {
  rng_stream stream;
  rng_words words;
  uint64_t block;
  uint32_t used;
} unit_draws;

static inline double unit_draw(unit_draws *d) {
  if (d->used == 4) {
    d->words = rng_block(d->stream, d->block++);
    d->used = 0;
  }
  return -log(rng_u01(d->words.v[d->used++]));
}

typedef struct station {
  event_queue events;
  ring waiting; /* the one in service included */
  unit_draws draws;
  delay_source general;
  const delay_dist *service;
  double mean_arrival, mean_service;
  uint64_t served, per_batch;
  double sum, batch_sum, batch_total, batch_square; /* of sojourns and of batch means */
  double area, since;
} station;

static inline double service_time(station *s) {
  return s->service == NULL ? s->mean_service * unit_draw(&s->draws)
                            : delay_draw(s->service, &s->general);
}

static inline void count_sojourn(station *s, double sojourn) {
  s->sum += sojourn;
  s->batch_sum += sojourn;
  if (++s->served % s->per_batch != 0) return;
  double mean = s->batch_sum / (double)s->per_batch;
  s->batch_total += mean;
  s->batch_square += mean * mean;
  s->batch_sum = 0;
}

/* An event replaces itself by its successor, so the heap holds at most two. 0: memory is short. */
static inline int queueing_handle(station *s, sim_event e) {
  s->area += (double)s->waiting.count * (e.time - s->since);
  s->since = e.time;
  if (e.kind == ARRIVAL) {
    eq_replace(&s->events, e.time + s->mean_arrival * unit_draw(&s->draws), 0, ARRIVAL, 0, 0);
    if (!ring_push(&s->waiting, e.time)) return 0;
    return s->waiting.count > 1 ||
           eq_push(&s->events, e.time + service_time(s), 0, DEPARTURE, 0, 0);
  }
  count_sojourn(s, e.time - ring_pop(&s->waiting));
  if (s->waiting.count > 0)
    eq_replace(&s->events, e.time + service_time(s), 0, DEPARTURE, 0, 0);
  else
    eq_pop(&s->events);
  return 1;
}

static void queueing_report(queueing_result *out, station *s) {
  double n = (double)s->served, batches = floor(n / (double)s->per_batch);
  double mean = s->batch_total / batches;
  double variance = (s->batch_square - batches * mean * mean) / (batches - 1);
  out->customers = s->served;
  out->events = 2 * s->served + s->waiting.count;
  out->simulated_s = s->since;
  out->mean_sojourn = s->sum / n;
  out->standard_error = s->served < N_BATCH_MEANS ? NAN : sqrt(fmax(variance, 0) / batches);
  out->sojourn_sum = s->sum;
  while (s->waiting.count > 0) out->sojourn_sum += s->since - ring_pop(&s->waiting);
  out->number_integral = s->area;
}

gl_status queueing_run(queueing_result *out, double lambda, double mu, const delay_dist *service,
                       uint64_t seed, uint64_t customers, gl_error *err) {
  *out = (queueing_result){0};
  if (!(lambda > 0) || (service == NULL && !(mu > 0)) || customers == 0)
    return gl_fail(err, GL_EINPUT, "a queue needs positive rates and at least one customer");
  station s = {.service = service, .mean_arrival = 1 / lambda, .mean_service = 1 / mu};
  s.draws = (unit_draws){.stream = rng_stream_at(seed, RNG_GENERATION, 0), .used = 4};
  s.general.stream = rng_stream_at(seed, RNG_GENERATION, 1);
  s.per_batch = customers < N_BATCH_MEANS ? 1 : customers / N_BATCH_MEANS;
  int ok = eq_push(&s.events, s.mean_arrival * unit_draw(&s.draws), 0, ARRIVAL, 0, 0);
  while (ok && s.served < customers) ok = queueing_handle(&s, *eq_top(&s.events));
  if (ok) queueing_report(out, &s);
  eq_fini(&s.events);
  free(s.waiting.time);
  return ok ? GL_OK : gl_fail_memory(err, "the queue");
}
