/* Events at work: M/M/1, whose mean sojourn 1/(mu - lambda) is known, a star, and the clock. */
#include "experiments/bench/bench.h"
#include "experiments/bench/queueing.h"
#include "experiments/bench/star.h"
#include "experiments/recipe/recipe.h"
#include "sim/schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
  SEED = 1,
  SAMPLERS = 10000,
  MILLION = 1000000,
  STAR_EVENTS_A_CUSTOMER = 1,
  CIMBA_CUSTOMERS = 1000000
};

/* M/M/1 --- */

typedef struct queue_work {
  size_t customers;
  queueing_result found;
} queue_work;

static gl_status serve(void *self, gl_error *err) {
  queue_work *w = self;
  return queueing_run(&w->found, 0.9, 1, NULL, SEED, w->customers, err);
}

/* Cimba's benchmark prints the mean sojourn of its million customers, about 10 as ours. */
static int is_sojourn(const char *text) {
  double found;
  return sscanf(text, "Average system time %lf", &found) == 1 && found > 7 && found < 13;
}

static gl_status bench_mm1(bench *b, gl_error *err) {
  queue_work w = {.customers = b->customers};
  bench_number *number = NULL;
  gl_status status =
      bench_measure(b, &number, "mm1_customers_per_s", "M/M/1 customers a second, lambda 0.9, mu 1",
                    (double)w.customers, 0.3, serve, &w, err);
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

/* An update takes as large a share of the samplers' batches in both. */
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

/* Runs it once, to know how many batches and events it makes, which rates are counted in. */
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

/* Of everything that grows with the cluster. */
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
  gl_status status = bench_measure(b, &batches, "cluster_batches_per_s",
                                   "batches a second, the clock of ten_thousand_samplers",
                                   small->batches, 0.3, des_run_clock, small, err);
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

/* The whole clock, with links, gates and batches. Fewer updates where a look is enough. */
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
