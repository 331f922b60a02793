/* Schedules against the closed form of paper/methods.md §10.9, the rules of the presets and the
 * measured trace. */
#include "sim/schedule.h"
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("sim: schedules");

static int64_t staleness_at(const schedule *s, size_t update) {
  const schedule_update *u = &s->updates[update];
  return schedule_staleness(s, u, &s->batches[u->first_batch]);
}

/* Quarters are exact in binary, so equal times are equal. */
TEST(one_sampler_is_ceil_of_step_plus_delay_over_generation_stale) {
  char text[200];
  for (int g = 1; g <= 8; ++g)
    for (int step = 0; step <= g; ++step)
      for (int d = 0; d <= 21; ++d) {
        snprintf(text, sizeof text,
                 "{preset: fifo, samplers: 1, generation: %g, delay: %g, learner: {step: %g}}",
                 g / 4.0, d / 4.0, step / 4.0);
        schedule s = sim_must_build(text, 1, 60);
        for (size_t u = 40; u < s.n_updates; ++u)
          CU_ASSERT_EQUAL(staleness_at(&s, u), (step + d + g - 1) / g);
      }
}

TEST(sync_is_never_stale_and_one_step_off_is_one_stale) {
  const char *rest = "samplers: 3, delay: {distribution: lognormal, interval: [5, 50]}, "
                     "data_delay: {distribution: "
                     "exponential, mean: 4}, jitter: {distribution: uniform, min: 0.5, max: 1.5}}";
  char text[300];
  snprintf(text, sizeof text, "{preset: sync, %s", rest);
  schedule s = sim_must_build(text, 1, 200);
  CU_ASSERT_EQUAL(s.clock.staleness_max, 0);
  CU_ASSERT_EQUAL(s.n_batches, 600);
  snprintf(text, sizeof text, "{preset: one_step_off, samplers: 1, generation: 20}");
  s = sim_must_build(text, 1, 200);
  CU_ASSERT_EQUAL(s.clock.staleness_max, 1);
  CU_ASSERT_EQUAL(staleness_at(&s, 0), 0);
  for (size_t u = 2; u < 200; ++u) CU_ASSERT_EQUAL(staleness_at(&s, u), 1);
}

TEST(areal_bounds_staleness_by_ahead_and_splits_batches_at_new_weights) {
  schedule s = sim_must_build(
      "{preset: areal, samplers: 1, ahead: 3, generation: {distribution: lognormal, mu: "
      "4, sigma: 1}, learner: {step: 60}, delay: 7}",
      4, 400);
  CU_ASSERT(s.clock.staleness_max <= 3);
  size_t split = 0;
  for (size_t i = 0; i < s.n_batches; ++i) {
    const schedule_batch *b = &s.batches[i];
    const schedule_segment *g = &s.segments[b->first_segment];
    split += b->n_segments > 1;
    CU_ASSERT(g[0].from == 0 && g[b->n_segments - 1].to == 1);
    for (uint32_t k = 1; k < b->n_segments; ++k) {
      CU_ASSERT(g[k].from == g[k - 1].to && g[k].from < g[k].to);
      CU_ASSERT(g[k].version > g[k - 1].version);
    }
  }
  CU_ASSERT(split > 20);
}

TEST(heterorl_never_trains_beyond_twice_its_window) {
  for (int window = 0; window <= 8; window += 2) {
    char text[100];
    snprintf(text, sizeof text, "{preset: heterorl, window: %d, learner: {step: 20}}", window);
    schedule s = sim_must_build(text, 2, 400);
    CU_ASSERT(s.clock.staleness_max <= 2 * window);
  }
}

TEST(a_pause_precedes_every_64th_update_and_idling_excludes_it) {
  schedule s = sim_must_build("{preset: heterorl}", 1, 200);
  for (size_t u = 0; u < s.n_updates; ++u) {
    CU_ASSERT_EQUAL(s.updates[u].pause_s, u > 0 && u % 64 == 0 ? 600 : 0);
    CU_ASSERT(s.updates[u].wait_s >= 0);
    double before = u == 0 ? 0 : s.updates[u - 1].end_s;
    ASSERT_CLOSE(s.updates[u].start_s - before, s.updates[u].wait_s + s.updates[u].pause_s, 1e-12);
  }
}

/* The parts of staleness of all batches add up, for every batch and in the sums. */
static void check_parts(const schedule *s) {
  staleness_parts sum = {0};
  for (size_t i = 0; i < s->n_updates; ++i)
    for (size_t k = 0; k < s->updates[i].n_batches; ++k) {
      const schedule_update *u = &s->updates[i];
      const schedule_batch *b = &s->batches[u->first_batch + k];
      const staleness_parts p = schedule_split_staleness(s, u, b);
      const uint64_t staleness = (uint64_t)schedule_staleness(s, u, b);
      CU_ASSERT_EQUAL(p.weights + p.generation + p.transit + p.queue + p.pause, staleness);
      CU_ASSERT(p.weights <= staleness && p.generation <= staleness && p.transit <= staleness);
      CU_ASSERT(p.queue <= staleness && p.pause <= staleness);
      sum.weights += p.weights, sum.generation += p.generation, sum.transit += p.transit;
      sum.queue += p.queue, sum.pause += p.pause;
    }
  CU_ASSERT(memcmp(&sum, &s->parts, sizeof sum) == 0);
  const uint64_t all = sum.weights + sum.generation + sum.transit + sum.queue + sum.pause;
  ASSERT_CLOSE((double)all / (double)s->n_batches, s->clock.staleness_mean, 1e-12);
}

TEST(parts_of_staleness_add_up) {
  static const char *const clusters[] = {
      "{preset: sync}",
      "{preset: heterorl}",
      "{preset: heterorl, learner: {step: 40}}",
      "{preset: lifo, window: 9, learner: {eval_every: 7, eval_pause: 200}}",
      "{preset: areal}",
      "{preset: prime_rl}",
      "{preset: laminar}",
      "{preset: intellect2}",
      "{preset: fifo, mtbf: 2000, learner: {capacity: 5, step: 35}}",
      "{preset: sync, learner: {step: 0}}",
      "{preset: areal, learner: {step: 0}}",
      "{preset: fifo, learner: {step: {distribution: exponential, mean: 9, offset: 9}}}"};
  for (size_t i = 0; i < sizeof clusters / sizeof *clusters; ++i) {
    schedule s = sim_must_build(clusters[i], 3, 300);
    check_parts(&s);
  }
}

/* Constant times in steady state: a batch every 10 s, so an update and a version every 10 s,
 * 5.25 s and u after its batch was generated; weights are d + 0.5 s late. No two times coincide. */
TEST(on_constant_times_each_part_is_its_time_over_the_time_of_an_update) {
  for (int d = 0; d <= 40; d += 10)
    for (int u = 0; u <= 30; u += 10) {
      char text[200];
      snprintf(text, sizeof text,
               "{preset: fifo, samplers: 1, generation: 10, delay: %d.5, data_delay: %d.25, "
               "learner: {step: 5}}",
               d, u);
      schedule s = sim_must_build(text, 1, 200);
      for (size_t i = 100; i < s.n_updates; ++i) {
        const schedule_update *at = &s.updates[i];
        const staleness_parts p = schedule_split_staleness(&s, at, &s.batches[at->first_batch]);
        CU_ASSERT_EQUAL(p.weights, (unsigned)(d / 10));
        CU_ASSERT_EQUAL(p.generation, 1);
        CU_ASSERT_EQUAL(p.transit, (unsigned)(u / 10));
        CU_ASSERT_EQUAL(p.queue + p.pause, 0);
      }
    }
}

/* A batch every 2 s, an update of 1 s, and after every 100th a pause of 20.5 s, in which 10 batches
 * arrive. The next 10 arrive while these are trained, so 20 batches are trained one after the
 * other. While the n-th of them waits n - 1 of them are trained, less the 2 n - 22 before it came:
 * 0 + 1 + ... + 10 + 9 + ... + 1 = 100 versions. Without the pause no batch waits. */
TEST(a_pause_makes_as_much_staleness_as_its_backlog_squared) {
  for (int pauses = 0; pauses < 2; ++pauses) {
    char text[200];
    snprintf(text, sizeof text,
             "{preset: fifo, samplers: 1, generation: 2, data_delay: 0.25, learner: {step: 1, "
             "eval_every: 100, eval_pause: %g}}",
             pauses ? 20.5 : 0);
    schedule s = sim_must_build(text, 1, 300);
    CU_ASSERT_EQUAL(s.parts.pause, pauses ? 200 : 0);
    CU_ASSERT_EQUAL(s.parts.queue, 0);
    CU_ASSERT_EQUAL(s.updates[299].catch_ups, pauses ? 40 : 0);
  }
}

/* Two samplers of which the learner trains the first's batch while the second's waits: a version of
 * staleness from the queue, and none from a pause. */
TEST(waiting_without_a_pause_is_the_queue) {
  schedule s =
      sim_must_build("{preset: fifo, samplers: 2, generation: 100, learner: {step: 30}}", 1, 200);
  for (size_t i = 20; i < s.n_updates; ++i) {
    const schedule_update *u = &s.updates[i];
    CU_ASSERT_EQUAL(schedule_split_staleness(&s, u, &s.batches[u->first_batch]).queue, i % 2);
  }
  CU_ASSERT_EQUAL(s.parts.pause, 0);
}

/* At every 20 s both end a batch: the second sampler's was begun first. */
TEST(samplers_that_start_at_one_moment_start_in_the_order_of_their_numbers) {
  schedule s = sim_must_build(
      "{preset: fifo, samplers: [{generation: 10}, {generation: 20}], learner: {step: 3}}", 1, 60);
  size_t pairs = 0;
  for (size_t i = 0; i < s.n_batches; ++i)
    for (size_t k = 0; k < s.n_batches; ++k) {
      const schedule_batch *a = &s.batches[i], *b = &s.batches[k];
      if (a->sampler >= b->sampler || a->start_s != b->start_s) continue;
      CU_ASSERT(a->number < b->number);
      ++pairs;
    }
  CU_ASSERT(pairs > 15);
}

static int same(const schedule *a, const schedule *b) {
  return a->n_batches == b->n_batches &&
         memcmp(a->batches, b->batches, a->n_batches * sizeof *a->batches) == 0;
}

TEST(the_seed_alone_decides_the_schedule) {
  schedule a = sim_must_build("{preset: heterorl}", 1, 300),
           b = sim_must_build("{preset: heterorl}", 1, 300),
           c = sim_must_build("{preset: heterorl}", 2, 300);
  CU_ASSERT(same(&a, &b));
  CU_ASSERT(!same(&a, &c));
}

TEST(shared_delays_keep_equal_samplers_in_step_and_own_delays_do_not) {
  const char *form = "{preset: heterorl, samplers: 2, shared_delays: %s, learner: {batches: 2}}";
  for (int shared = 0; shared < 2; ++shared) {
    char text[120];
    snprintf(text, sizeof text, form, shared ? "true" : "false");
    schedule s = sim_must_build(text, 1, 200);
    size_t apart = 0;
    for (size_t u = 0; u < s.n_updates; ++u) {
      const schedule_batch *b = &s.batches[s.updates[u].first_batch];
      apart += s.segments[b[0].first_segment].version != s.segments[b[1].first_segment].version;
    }
    CU_ASSERT(shared ? apart < 50 : apart > 50);
  }
}

TEST(a_cluster_that_cannot_deliver_says_what_it_waits_for) {
  schedule s;
  cluster_spec *spec;
  gl_error err = {0};
  CU_ASSERT_EQUAL(
      sim_build(&s, &spec, "{preset: sync, samplers: 2, learner: {publish_every: 2}}", 1, 9, &err),
      GL_ENUMERIC);
  CU_ASSERT(strstr(err.text, "2 of 2 samplers wait for newer weights") != NULL);
  CU_ASSERT(strstr(err.text, "look at window") != NULL);
}

TEST(wrong_sections_are_refused_at_their_place) {
  const char *wrong[] = {
      "{preset: heterorl, max_delay: 60}",
      "{preset: heterorl, delay: {distribution: lognormal, interval: [100, 60]}}",
      "{preset: heterorl, max_delay: 600, delay: {distribution: lognormal, interval: [100, 60]}}",
      "{preset: heterorl, max_delay: 0, delay: {distribution: lognormal, interval: [100, 60]}}",
      "{preset: fifo, delay: {distribution: lognormal, interval: [0, 60]}}",
      "{preset: fifo, delay: {distribution: uniform, interval: [1, 1000], confidence: 0.5}}",
      "{preset: fifo, delay: {distribution: constant, interval: [1, 2]}}",
      "{preset: fifo, delay: {distribution: empirical, file: /no/such/file.csv}}",
      "{preset: fifo, delay: -1}",
      "{preset: fifo, delay: [1, 2]}",
      "{preset: fifo, generation: 0}",
      "{preset: fifo, samplers: []}",
      "{preset: fifo, samplers: [{count: 0}]}",
      "{preset: fifo, windw: 3}",
      "{preset: unheard_of}",
      "{preset: fifo, samplers: 4, learner: {batches: 4, capacity: 2}}",
      "{preset: fifo, delay: {distribution: constant, value: 5, offset: 6}}",
      "{preset: fifo, delay: {distribution: uniform, min: 1, max: 9, offset: 6}}",
      "{preset: fifo, delay: {distribution: constant}}",
      "{preset: fifo, delay: {distribution: exponential}}",
      "{preset: fifo, generation: {distribution: constant, value: 5, offset: 5}}",
      "{preset: fifo, up: {bandwidth: 1e3}}",
      "{preset: fifo, rollout_bytes: 9, samplers: [{down: {bandwidth: 1e3}}]}",
      "{preset: fifo, tokens_per_s: 50}",
      "{preset: areal, samplers: [{concurrency: 3}]}",
      "{preset: areal, surplus: carry}",
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) sim_must_refuse(wrong[i]);
}

/* The recipe's cluster at its default seed; see experiments/recipes/heterorl_trace.yaml. */
TEST(the_measured_trace_is_met_and_window_4_predicts_8) {
  cfg_doc *doc = NULL;
  cluster_spec *spec = NULL;
  schedule s;
  double ks;
  ASSERT_OK(cfg_load_file(&doc, "experiments/recipes/heterorl_trace.yaml", &err));
  ASSERT_OK(cluster_parse(&spec, cfg_find(cfg_root(doc), "cluster"), 8, 8, &err));
  ASSERT_OK(schedule_build(&s, spec, 1, 1295, &err));
  ASSERT_OK(schedule_ks(&s, spec, &ks, &err));
  schedule_fini(&s);
  cluster_free(spec);
  ASSERT_OK(cfg_override(doc, "cluster.window=4", &err));
  ASSERT_OK(cluster_parse(&spec, cfg_find(cfg_root(doc), "cluster"), 8, 8, &err));
  ASSERT_OK(schedule_build(&s, spec, 1, 1295, &err));
  CU_ASSERT_EQUAL(s.clock.staleness_max, 8);
  schedule_fini(&s);
  cluster_free(spec);
  cfg_free(doc);
  ASSERT_CLOSE(ks, 0.0602, 1e-4); /* 0.060 in README.md */
}

/* The text with the path in the place of TRACE. */
static const char *with_trace(char text[256], const char *form, const char *path) {
  const char *at = strstr(form, "TRACE");
  if (at == NULL) return form;
  snprintf(text, 256, "%.*s%s%s", (int)(at - form), form, path, at + strlen("TRACE"));
  return text;
}

/* One update a time, staleness 0, against 3 of 4 measured updates that were stale. */
TEST(what_a_schedule_is_compared_with_is_a_histogram_or_a_trace) {
  const char *const same[] = {"{preset: sync, compare: {histogram: [1, 2, 0, 1], name: a}}",
                              "{preset: sync, compare: {trace: TRACE, column: a}}"};
  char path[] = "/tmp/gepolab-trace-XXXXXX", text[256];
  const int file = mkstemp(path);
  FILE *f = file >= 0 ? fdopen(file, "w") : NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  fputs("step,a,b\n1,0,9\n2,1,9\n3,1.2,9\n4,3,9\n", f);
  fclose(f);
  for (size_t i = 0; i < 2; ++i) {
    schedule s;
    cluster_spec *spec = NULL;
    double ks = NAN;
    ASSERT_OK(sim_build(&s, &spec, with_trace(text, same[i], path), 1, 8, &err));
    ASSERT_OK(schedule_ks(&s, spec, &ks, &err));
    CU_ASSERT_EQUAL(ks, 0.75);
    CU_ASSERT_STRING_EQUAL(cluster_measured(spec)->name, "a");
  }
  static const char *const wrong[] = {
      "{preset: sync, compare: {trace: TRACE}}",
      "{preset: sync, compare: {trace: TRACE, column: c}}",
      "{preset: sync, compare: {trace: /no/such.csv}}",
      "{preset: sync, compare: {trace: TRACE, column: a, histogram: [1]}}",
      "{preset: sync, compare: {column: a, histogram: [1]}}",
      "{preset: sync, compare: {name: a}}",
      "{preset: sync, compare: {histogram: []}}",
      "{preset: sync, compare: {histogram: [0, 0]}}",
      "{preset: sync, compare: {histogram: [1.5]}}",
      "{preset: sync, compare: {histogram: [-1]}}",
      "{preset: sync, compare: {histogramm: [1]}}"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i)
    sim_must_refuse(with_trace(text, wrong[i], path));
  remove(path);
}
