/* The event queue at work: M/M/1, whose mean sojourn 1/(mu - lambda) is known, and a star. */
#include "core/rng.h"
#include "experiments/bench.h"
#include "experiments/seconds.h"
#include "sim/event_queue.h"

#include <math.h>
#include <stdlib.h>

/* Exponential draws of one stream, four a block; small, because a star has one for each sampler. */
typedef struct draws {
  rng_words words;
  uint32_t block, used;
} draws;

static inline double next_exponential(draws *d, uint64_t entity, double mean) {
  if (d->used == 0) d->words = rng_block(rng_stream_at(1, RNG_TEST, entity), d->block++);
  double u = rng_u01(d->words.v[d->used]);
  d->used = (d->used + 1) % 4;
  return -mean * log(u);
}

/* --- M/M/1 --------------------------------------------------------------------------------------
 */

enum { ARRIVAL, DEPARTURE };
enum { WAITING_ROOM = 1 << 16 }; /* at lambda 0.9 a queue of 65,536 has probability 0.9^65536 */

typedef struct mm1 {
  event_queue queue;
  draws arrivals, services;
  double *arrived; /* [WAITING_ROOM] ring of arrival times, the oldest in service */
  size_t first, waiting;
  double sojourn_sum;
} mm1;

static int mm1_arrive(mm1 *m, double now) {
  if (m->waiting == WAITING_ROOM) return 0;
  m->arrived[(m->first + m->waiting++) % WAITING_ROOM] = now;
  eq_replace(&m->queue, now + next_exponential(&m->arrivals, ARRIVAL, 1 / 0.9), 0, ARRIVAL, 0, 0);
  if (m->waiting > 1) return 1;
  return eq_push(&m->queue, now + next_exponential(&m->services, DEPARTURE, 1), 0, DEPARTURE, 0, 0);
}

static void mm1_depart(mm1 *m, double now) {
  m->sojourn_sum += now - m->arrived[m->first];
  m->first = (m->first + 1) % WAITING_ROOM;
  if (--m->waiting > 0)
    eq_replace(&m->queue, now + next_exponential(&m->services, DEPARTURE, 1), 0, DEPARTURE, 0, 0);
  else
    eq_pop(&m->queue);
}

static int mm1_run(mm1 *m, size_t customers) {
  int ok = eq_push(&m->queue, next_exponential(&m->arrivals, ARRIVAL, 1 / 0.9), 0, ARRIVAL, 0, 0);
  for (size_t served = 0; served < customers && ok;) {
    const sim_event *next = eq_top(&m->queue);
    double now = next->time;
    if (next->kind == ARRIVAL) {
      ok = mm1_arrive(m, now);
    } else {
      mm1_depart(m, now);
      ++served;
    }
  }
  return ok;
}

static gl_status bench_mm1(bench_result *r, size_t customers, gl_error *err) {
  mm1 m = {.sojourn_sum = 0};
  eq_init(&m.queue);
  m.arrived = calloc(WAITING_ROOM, sizeof *m.arrived);
  double begun = seconds_now();
  int ok = m.arrived != NULL && mm1_run(&m, customers);
  double took = seconds_now() - begun;
  free(m.arrived);
  eq_fini(&m.queue);
  if (!ok) return gl_fail_memory(err, "the M/M/1 queue");
  double n = (double)customers;
  bench_add(r, "customers", n, NAN, "M/M/1 customers served, lambda 0.9, mu 1");
  bench_add(r, "customers_per_s", n / took, 15e6, "M/M/1 customers per second");
  bench_add(r, "events_per_s", 2 * n / took, NAN, "M/M/1 events per second");
  bench_add(r, "mean_sojourn", m.sojourn_sum / n, 10, "mean sojourn (exact: 1/(mu - lambda))");
  return GL_OK;
}

/* --- star ---------------------------------------------------------------------------------------
 */

enum { GENERATED, BATCH_ARRIVED, WEIGHTS_ARRIVED };
enum { STAR_SAMPLERS = 10000, STAR_EVENTS = 20000000 };

typedef struct star_sampler {
  draws draws;
  uint32_t version, batches;
} star_sampler;

/* A sampler generates, sends the batch, and is sent weights, each with a delay of its own: three
 * kinds of events, the next one replacing the last in one descent of the heap. */
static int star_run(event_queue *q, star_sampler *samplers, size_t events, uint32_t *trained) {
  int ok = 1;
  for (uint32_t i = 0; i < STAR_SAMPLERS && ok; ++i) {
    ok = eq_push(q, next_exponential(&samplers[i].draws, i, 1), 0, GENERATED, i, 0);
  }
  for (size_t done = 0; done < events && ok; ++done) {
    sim_event e = *eq_top(q);
    star_sampler *s = &samplers[e.node];
    double delay = next_exponential(&s->draws, e.node, e.kind == GENERATED ? 0.1 : 1);
    if (e.kind == GENERATED) ++s->batches;
    if (e.kind == BATCH_ARRIVED) ++*trained;
    if (e.kind == WEIGHTS_ARRIVED) s->version = *trained;
    uint32_t next = e.kind == WEIGHTS_ARRIVED ? GENERATED : e.kind + 1;
    eq_replace(q, e.time + delay, 0, next, e.node, e.data);
  }
  return ok;
}

static gl_status bench_star(bench_result *r, gl_error *err) {
  event_queue q;
  uint32_t trained = 0;
  eq_init(&q);
  star_sampler *samplers = calloc(STAR_SAMPLERS, sizeof *samplers);
  double begun = seconds_now();
  int ok = samplers != NULL && star_run(&q, samplers, STAR_EVENTS, &trained);
  double took = seconds_now() - begun;
  free(samplers);
  eq_fini(&q);
  if (!ok) return gl_fail_memory(err, "the star");
  bench_add(r, "star_samplers", STAR_SAMPLERS, NAN, "samplers of the star");
  bench_add(r, "star_events_per_s", STAR_EVENTS / took, 10e6, "star events per second");
  bench_add(r, "star_bytes_per_sampler", sizeof(star_sampler), 200,
            "bytes a sampler besides its events (aim: below)");
  bench_add(r, "event_bytes", sizeof(sim_event), NAN, "bytes an event");
  return GL_OK;
}

gl_status bench_des(bench_result *r, size_t customers, gl_error *err) {
  gl_status status = bench_mm1(r, customers, err);
  return status == GL_OK ? bench_star(r, err) : status;
}
