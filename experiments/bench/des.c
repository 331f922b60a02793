/* The event queue at work: M/M/1, whose mean sojourn 1/(mu - lambda) is known, and a star. */
#include "experiments/bench/bench.h"
#include "experiments/bench/queueing.h"
#include "experiments/bench/star.h"
#include "experiments/recipe/recipe.h"
#include "sim/schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEED = 1, STAR_SAMPLERS = 10000, STAR_EVENTS_A_CUSTOMER = 1, CIMBA_CUSTOMERS = 1000000 };

/* --- M/M/1 --------------------------------------------------------------------------------------
 */

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

/* --- a star of samplers -------------------------------------------------------------------------
 */

typedef struct star_work {
  uint64_t events;
  star_result found;
} star_work;

static gl_status run_star(void *self, gl_error *err) {
  static const star_spec spec = {STAR_SAMPLERS, 256, 1, 0.1, 0.1};
  star_work *w = self;
  return star_run(&w->found, &spec, SEED, w->events, err);
}

static gl_status bench_star(bench *b, gl_error *err) {
  star_work w = {.events = STAR_EVENTS_A_CUSTOMER * b->customers};
  bench_number *number = NULL;
  gl_status status =
      bench_measure(b, &number, "star_events_per_s", "events a second, a star of 10,000 samplers",
                    (double)w.events, 0.3, run_star, &w, err);
  if (status != GL_OK || number->rate.n == 0) return status;
  number->aim = 10e6;
  status = bench_fact(b, "star_bytes_per_sampler", (double)w.found.bytes_per_sampler, 200,
                      "bytes a sampler besides its event (aim: below)", err);
  return status == GL_OK ? bench_fact(b, "event_bytes", (double)w.found.bytes_per_event, NAN,
                                      "bytes an event", err)
                         : status;
}

/* --- the clock of recipes -----------------------------------------------------------------------
 */

typedef struct clock_work {
  recipe read;
  cluster_spec *cluster;
  double batches;
  size_t sampler_bytes, batch_bytes;
} clock_work;

static gl_status run_clock(void *self, gl_error *err) {
  clock_work *w = self;
  schedule s = {0};
  gl_status status = schedule_build(&s, w->cluster, w->read.seed, w->read.steps, err);
  w->batches = s.clock.batches_generated;
  w->sampler_bytes = s.sampler_bytes;
  w->batch_bytes = s.batch_bytes;
  schedule_fini(&s);
  return status;
}

/* Once to know how many batches it makes, which the rate is counted in. */
static gl_status measure_clock(bench *b, clock_work *w, gl_error *err) {
  bench_number *number = NULL;
  gl_status status = run_clock(w, err);
  if (status == GL_OK)
    status = bench_measure(b, &number, "cluster_batches_per_s",
                           "batches a second, the clock of ten_thousand_samplers", w->batches, 0.3,
                           run_clock, w, err);
  if (status != GL_OK || number->rate.n == 0) return status;
  status = bench_fact(b, "cluster_bytes_per_sampler", (double)w->sampler_bytes, 200,
                      "bytes a sampler besides events and batches (aim: below)", err);
  return status == GL_OK
             ? bench_fact(b, "cluster_batch_bytes", (double)w->batch_bytes, NAN,
                          "bytes of all batches in work, on the way or waiting, at the peak", err)
             : status;
}

/* The whole clock, with links, gates and batches. */
static gl_status bench_cluster(bench *b, gl_error *err) {
  cfg_doc *doc = NULL;
  clock_work w = {.cluster = NULL};
  gl_status status = recipe_load(&doc, "ten_thousand_samplers", NULL, 0, err);
  if (status == GL_OK) status = recipe_read(&w.read, doc, err);
  if (status == GL_OK)
    status = cluster_parse(&w.cluster, w.read.cluster, w.read.groups, w.read.group_size, err);
  if (status == GL_OK) status = measure_clock(b, &w, err);
  cluster_free(w.cluster);
  cfg_free(doc);
  return status;
}

gl_status bench_des(bench *b, gl_error *err) {
  gl_status status = bench_mm1(b, err);
  if (status == GL_OK) status = bench_star(b, err);
  return status == GL_OK ? bench_cluster(b, err) : status;
}
