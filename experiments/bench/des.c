/* The event queue at work: M/M/1, whose mean sojourn 1/(mu - lambda) is known, and a star. */
#include "experiments/base/seconds.h"
#include "experiments/bench/bench.h"
#include "experiments/bench/queueing.h"
#include "experiments/bench/star.h"
#include "experiments/recipe/recipe.h"
#include "sim/schedule.h"

#include <math.h>

enum { SEED = 1, STAR_SAMPLERS = 10000, STAR_EVENTS = 20000000 };

static gl_status bench_mm1(bench_result *r, size_t customers, gl_error *err) {
  queueing_result q;
  double begun = seconds_now();
  gl_status status = queueing_run(&q, 0.9, 1, NULL, SEED, customers, err);
  double took = seconds_now() - begun;
  if (status != GL_OK) return status;
  bench_add(r, "customers", (double)q.customers, NAN, "M/M/1 customers served, lambda 0.9, mu 1");
  bench_add(r, "customers_per_s", (double)q.customers / took, 15e6, "M/M/1 customers per second");
  bench_add(r, "events_per_s", (double)q.events / took, NAN, "M/M/1 events per second");
  bench_add(r, "mean_sojourn", q.mean_sojourn, 10, "mean sojourn (exact: 1/(mu - lambda))");
  bench_add(r, "mean_sojourn_error", q.standard_error, NAN, "its standard error");
  return GL_OK;
}

static gl_status bench_star(bench_result *r, gl_error *err) {
  const star_spec spec = {STAR_SAMPLERS, 256, 1, 0.1, 0.1};
  star_result s;
  double begun = seconds_now();
  gl_status status = star_run(&s, &spec, SEED, STAR_EVENTS, err);
  double took = seconds_now() - begun;
  if (status != GL_OK) return status;
  bench_add(r, "star_samplers", spec.samplers, NAN, "samplers of the star");
  bench_add(r, "star_events_per_s", (double)s.events / took, 10e6, "star events per second");
  bench_add(r, "star_bytes_per_sampler", (double)s.bytes_per_sampler, 200,
            "bytes a sampler besides its event (aim: below)");
  bench_add(r, "event_bytes", (double)s.bytes_per_event, NAN, "bytes an event");
  return GL_OK;
}

/* The whole clock, with links, gates and batches, on the recipe ten_thousand_samplers. */
static gl_status bench_cluster(bench_result *r, gl_error *err) {
  cfg_doc *doc = NULL;
  cluster_spec *cluster = NULL;
  recipe read;
  schedule s = {0};
  gl_status status = recipe_load(&doc, "ten_thousand_samplers", NULL, 0, err);
  if (status == GL_OK) status = recipe_read(&read, doc, err);
  if (status == GL_OK)
    status = cluster_parse(&cluster, read.cluster, read.groups * read.group_size, err);
  double begun = seconds_now();
  if (status == GL_OK) status = schedule_build(&s, cluster, read.seed, read.steps, err);
  double took = seconds_now() - begun;
  if (status == GL_OK) {
    bench_add(r, "cluster_batches_per_s", s.clock.batches_generated / took, NAN,
              "batches generated per second by ten_thousand_samplers");
    bench_add(r, "cluster_bytes_per_sampler", (double)s.sampler_bytes, 200,
              "bytes a sampler besides events and batches (aim: below)");
    bench_add(r, "cluster_batch_bytes", (double)s.batch_bytes, NAN,
              "bytes of all batches in work, on the way or waiting, at the peak");
  }
  schedule_fini(&s);
  cluster_free(cluster);
  cfg_free(doc);
  return status;
}

gl_status bench_des(bench_result *r, size_t customers, gl_error *err) {
  gl_status status = bench_mm1(r, customers, err);
  if (status == GL_OK) status = bench_star(r, err);
  return status == GL_OK ? bench_cluster(r, err) : status;
}
