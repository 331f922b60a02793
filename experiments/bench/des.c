/* Benchmarks of the event loop: M/M/1, whose mean sojourn 1/(mu - lambda) is known, a star, and the
 * clock. */
#include "experiments/bench/des.h"

#include "core/random/rng.h"
#include "experiments/base/memory.h"
#include "experiments/bench/bench.h"
#include "experiments/recipe/recipe.h"
#include "sim/event_queue.h"
#include "sim/schedule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one queue with one server --- */

enum { ARRIVAL, DEPARTURE, N_BATCH_MEANS = 50 };

/* Arrival times of the customers in the system, oldest first: a ring buffer that doubles when full.
 */
typedef struct ring {
  double *time;
  size_t mask, head, count;
} ring;

static void ring_grow(ring *r) {
  size_t size = r->time == NULL ? 64 : 2 * (r->mask + 1);
  double *time = MUST_ARRAY(double, size, "the queue");
  for (size_t i = 0; i < r->count; ++i) time[i] = r->time[(r->head + i) & r->mask];
  free(r->time);
  *r = (ring){time, size - 1, 0, r->count};
}

static inline void ring_push(ring *r, double t) {
  if (r->time == NULL || r->count > r->mask) ring_grow(r);
  r->time[(r->head + r->count++) & r->mask] = t;
}

static inline double ring_pop(ring *r) {
  double t = r->time[r->head];
  r->head = (r->head + 1) & r->mask;
  --r->count;
  return t;
}

/* Exponential samples of mean 1, four per block. */
typedef struct queue_draws {
  rng_stream stream;
  rng_words words;
  uint64_t block;
  uint32_t used;
} queue_draws;

static inline double queue_draw(queue_draws *d) {
  if (d->used == 4) {
    d->words = rng_block(d->stream, d->block++);
    d->used = 0;
  }
  return -log(rng_u01(d->words.v[d->used++]));
}

typedef struct station {
  event_queue events;
  ring waiting; /* includes the customer in service */
  queue_draws draws;
  delay_source general;
  const delay_dist *service;
  double mean_arrival, mean_service;
  uint64_t served, per_batch;
  double sum, batch_sum, batch_total, batch_square; /* sums of sojourns and of batch means */
  double area, since;
} station;

static inline double service_time(station *s) {
  return s->service == NULL ? s->mean_service * queue_draw(&s->draws)
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

/* Handles an event and replaces it by its successor, so that at most two events are in the heap.
 * Returns 0 if out of memory. */
static inline int queueing_handle(station *s, sim_event e) {
  s->area += (double)s->waiting.count * (e.time - s->since);
  s->since = e.time;
  if (e.kind == ARRIVAL) {
    eq_replace(&s->events, e.time + s->mean_arrival * queue_draw(&s->draws), 0, ARRIVAL, 0, 0);
    ring_push(&s->waiting, e.time);
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
  s.draws = (queue_draws){.stream = rng_stream_at(seed, RNG_GENERATION, 0), .used = 4};
  s.general.stream = rng_stream_at(seed, RNG_GENERATION, 1);
  s.per_batch = customers < N_BATCH_MEANS ? 1 : customers / N_BATCH_MEANS;
  int ok = eq_push(&s.events, s.mean_arrival * queue_draw(&s.draws), 0, ARRIVAL, 0, 0);
  while (ok && s.served < customers) ok = queueing_handle(&s, *eq_top(&s.events));
  if (ok) queueing_report(out, &s);
  eq_fini(&s.events);
  free(s.waiting.time);
  return ok ? GL_OK : gl_fail_memory(err, "the queue");
}

/* --- a star of samplers --- */

/* The leg that an event ends. The event's data is the version with which the sampler works. */
enum { GENERATION, UP, DOWN, LEGS };

typedef struct star_sampler {
  rng_words words; /* the random block sampled last */
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
    e.data = s->version; /* weights are sent back immediately */
  }
  return fel_push(&s->events, e.time + leg_time(s, e.node, next), 0, next, e.node, e.data);
}

/* Prefetches like sim/clock.c. */
static void star_look_ahead(const star *s) {
  const event_queue *near = &s->events.near;
  for (size_t i = 0; i < near->size; ++i) {
    const star_sampler *p = &s->samplers[near->heap[i].node];
    __builtin_prefetch(&p->words, 1);
    __builtin_prefetch(&p->drawn, 1); /* may be in another cache line */
  }
}

static int star_start(star *s, uint32_t samplers) {
  s->samplers = MUST_ARRAY(star_sampler, samplers, "the star");
  int ok = 1;
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

/* --- the part of the benchmark --- */

enum {
  SEED = 1,
  SAMPLERS = 10000,
  MILLION = 1000000,
  STAR_EVENTS_A_CUSTOMER = 1,
  CIMBA_CUSTOMERS = 1000000
};

/* --- M/M/1 --- */

typedef struct queue_work {
  size_t customers;
  queueing_result found;
} queue_work;

static gl_status serve(void *self, gl_error *err) {
  queue_work *w = self;
  return queueing_run(&w->found, 0.9, 1, NULL, SEED, w->customers, err);
}

/* Cimba's benchmark prints the mean sojourn of its million customers, about 10 as in ours. */
static int is_sojourn(const char *text) {
  double found;
  return sscanf(text, "Average system time %lf", &found) == 1 && found > 7 && found < 13;
}

static gl_status bench_mm1(bench *b, gl_error *err) {
  queue_work w = {.customers = b->customers};
  bench_number *number = NULL;
  gl_status status =
      bench_measure(b, &number,
                    (bench_row){"mm1_customers_per_s", "M/M/1 customers a second, lambda 0.9, mu 1",
                                (double)w.customers, serve, &w},
                    0.3, err);
  if (status != GL_OK || number->rate.n == 0) return status;
  number->aim = 15e6;
  if (b->cimba != NULL)
    bench_run_program(b, number, b->cimba, "cimba", CIMBA_CUSTOMERS, 1, is_sojourn);
  status = bench_fact(b, "mm1_events_per_s",
                      number->rate.median * (double)w.found.events / (double)w.found.customers, NAN,
                      "its events a second", err);
  if (status == GL_OK)
    status = bench_fact(b, "mm1_mean_sojourn", w.found.mean_sojourn, NAN,
                        "mean sojourn; exactly 1/(mu - lambda) = 10", err);
  return status == GL_OK ? bench_fact(b, "mm1_mean_sojourn_error", w.found.standard_error, NAN,
                                      "its standard error", err)
                         : status;
}

/* --- a star of samplers --- */

typedef struct star_work {
  star_spec spec;
  uint64_t events;
  star_result found;
} star_work;

static gl_status run_star(void *self, gl_error *err) {
  star_work *w = self;
  return star_run(&w->found, &w->spec, SEED, w->events, err);
}

/* In both sizes an update takes the same fraction of the samplers' batches. */
static gl_status bench_star(bench *b, gl_error *err) {
  const uint64_t events = STAR_EVENTS_A_CUSTOMER * b->customers;
  star_work small = {.spec = {SAMPLERS, 256, 1, 0.1, 0.1}, .events = events};
  star_work large = {.spec = {MILLION, 25600, 1, 0.1, 0.1}, .events = events};
  const bench_row rows[] = {{"star_events_per_s", "events a second, a star of 10,000 samplers",
                             (double)events, run_star, &small},
                            {"star_events_per_s_million",
                             "events a second, a star of 1,000,000 samplers", (double)events,
                             run_star, &large}};
  bench_number *number[2] = {NULL};
  gl_status status = bench_measure_in_turns(b, number, rows, 2, 0.3, err);
  if (status != GL_OK || number[0]->rate.n == 0) return status;
  number[0]->aim = 10e6;
  status = bench_cost_ratio(b, "star_time_ratio", number[1], number[0], 2,
                            "processor time an event, 1,000,000 against 10,000 (aim: below)", err);
  if (status == GL_OK)
    status = bench_fact(b, "star_bytes_per_sampler", (double)small.found.bytes_per_sampler, 200,
                        "bytes a sampler besides its event (aim: below)", err);
  if (status == GL_OK)
    status = bench_fact(b, "event_bytes", (double)small.found.bytes_per_event, NAN,
                        "bytes an event", err);
  return status == GL_OK
             ? bench_fact(b, "event_bytes_million", (double)large.found.event_bytes / MILLION, NAN,
                          "bytes of the list for each of 1,000,000 events", err)
             : status;
}

/* --- the clock of recipes --- */

typedef struct clock_work {
  recipe read;
  cfg_doc *doc;
  cluster_spec *cluster;
  double samplers, batches, events;
  size_t sampler_bytes, batch_bytes, event_bytes;
} clock_work;

static gl_status des_run_clock(void *self, gl_error *err) {
  clock_work *w = self;
  schedule s = {0};
  gl_status status = schedule_build(&s, w->cluster, w->read.seed, w->read.steps, err);
  w->batches = s.clock.batches_generated;
  w->events = (double)s.events;
  w->sampler_bytes = s.sampler_bytes;
  w->batch_bytes = s.batch_bytes;
  w->event_bytes = s.event_bytes;
  schedule_fini(&s);
  return status;
}

/* Opens the clock and runs it once to count its batches and events, in which the rates are
 * expressed. */
static gl_status open_clock(clock_work *w, const char *const *changes, size_t n, gl_error *err) {
  gl_status status = recipe_load(&w->doc, "ten_thousand_samplers", changes, n, err);
  if (status == GL_OK) status = recipe_read(&w->read, w->doc, err);
  if (status == GL_OK)
    status = cluster_parse(&w->cluster, w->read.cluster, w->read.groups, w->read.group_size, err);
  if (status == GL_OK) status = des_run_clock(w, err);
  if (status == GL_OK) w->samplers = (double)cluster_samplers(w->cluster);
  return status;
}

static void close_clock(clock_work *w) {
  cluster_free(w->cluster);
  cfg_free(w->doc);
}

/* Bytes per sampler of all memory that grows with the cluster. */
static double bytes_per_sampler(const clock_work *w) {
  return (double)w->sampler_bytes + (double)(w->batch_bytes + w->event_bytes) / w->samplers;
}

static gl_status clock_facts(bench *b, const clock_work *small, const clock_work *large,
                             gl_error *err) {
  const double few = bytes_per_sampler(small), many = bytes_per_sampler(large);
  gl_status status = bench_fact(b, "cluster_bytes_per_sampler", (double)small->sampler_bytes, 200,
                                "bytes a sampler besides events and batches (aim: below)", err);
  if (status == GL_OK)
    status = bench_fact(b, "cluster_batch_bytes", (double)small->batch_bytes, NAN,
                        "bytes of all batches in work, on the way or waiting, at the peak", err);
  if (status == GL_OK)
    status = bench_fact(b, "cluster_all_bytes_per_sampler", few, NAN,
                        "bytes a sampler with its events and batches, 10,000 samplers", err);
  if (status == GL_OK)
    status = bench_fact(b, "cluster_all_bytes_per_sampler_million", many, NAN,
                        "the same, 1,000,000 samplers", err);
  return status == GL_OK ? bench_fact(b, "cluster_memory_ratio", many / few, 2,
                                      "the one over the other (aim: below)", err)
                         : status;
}

static gl_status measure_clocks(bench *b, clock_work *small, clock_work *large, gl_error *err) {
  bench_number *batches = NULL, *number[2] = {NULL};
  gl_status status = bench_measure(
      b, &batches,
      (bench_row){"cluster_batches_per_s", "batches a second, the clock of ten_thousand_samplers",
                  small->batches, des_run_clock, small},
      0.3, err);
  const bench_row rows[] = {{"cluster_events_per_s", "events a second of the same clock",
                             small->events, des_run_clock, small},
                            {"cluster_events_per_s_million",
                             "events a second, 1,000,000 samplers and updates of 25,600 batches",
                             large->events, des_run_clock, large}};
  if (status == GL_OK) status = bench_measure_in_turns(b, number, rows, 2, 0.3, err);
  if (status != GL_OK || number[0]->rate.n == 0) return status;
  status = bench_cost_ratio(b, "cluster_time_ratio", number[1], number[0], 2,
                            "processor time an event, 1,000,000 against 10,000 (aim: below)", err);
  return status == GL_OK ? clock_facts(b, small, large, err) : status;
}

/* The whole clock, with links, gates and batches. With b->quick it makes fewer updates. */
static gl_status bench_cluster(bench *b, gl_error *err) {
  const char *const few[] = {"steps=20"};
  const char *const changes[] = {"cluster.samplers=1000000", "cluster.learner.batches=25600",
                                 "cluster.learner.capacity=409600",
                                 b->quick ? "steps=1" : "steps=20"};
  clock_work small = {.cluster = NULL}, large = {.cluster = NULL};
  gl_status status = open_clock(&small, few, b->quick ? 1 : 0, err);
  if (status == GL_OK) status = open_clock(&large, changes, 4, err);
  if (status == GL_OK) status = measure_clocks(b, &small, &large, err);
  close_clock(&small);
  close_clock(&large);
  return status;
}

gl_status bench_des(bench *b, gl_error *err) {
  gl_status status = bench_mm1(b, err);
  if (status == GL_OK) status = bench_star(b, err);
  return status == GL_OK ? bench_cluster(b, err) : status;
}
