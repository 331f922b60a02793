/* Closed forms against simulated schedules, and clusters that no form holds for.
 *
 * Random cases have fixed seeds and compare by batch means over 20 blocks: a right form is beyond
 * five standard errors with probability 8e-5 (Student, 19 degrees of freedom) in a quantity. */
#include "sim/closed_forms.h"
#include "tests/support/files.h"

#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("sim: theory");

typedef struct compared {
  theory said;
  theory_measured seen;
  schedule s;
} compared;

static compared compare(const char *text, size_t updates) {
  compared c = {.said = {0}};
  cluster_spec *spec = NULL;
  gl_error err = {0};
  gl_status status = sim_build(&c.s, &spec, text, 11, updates, &err);
  if (status == GL_OK) status = sim_theory_of(&c.said, spec, &err);
  if (status == GL_OK) status = sim_theory_measure(&c.seen, &c.s, spec, &err);
  if (status != GL_OK) fprintf(stderr, "%s gave: %s\n", text, err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  return c;
}

static void compared_fini(compared *c) {
  sim_theory_fini(&c->said);
}

/* Every quantity, to rounding; and every share of staleness. period: divides a block's updates. */
static void must_equal(const char *text, const char *form, size_t updates) {
  compared c = compare(text, updates);
  CU_ASSERT_STRING_EQUAL(c.said.form, form);
  for (size_t q = 0; q < THEORY_QUANTITIES; ++q) {
    ASSERT_CLOSE(c.seen.mean[q], c.said.value[q].low, 1e-9);
    CU_ASSERT_EQUAL(c.said.value[q].low, c.said.value[q].high);
  }
  CU_ASSERT_PTR_NOT_NULL_FATAL(c.said.staleness);
  double batches = 0;
  double *with = calloc(c.said.n_staleness, sizeof *with);
  CU_ASSERT_PTR_NOT_NULL_FATAL(with);
  for (size_t i = c.seen.first_update; i < c.s.n_updates; ++i)
    for (size_t k = 0; k < c.s.updates[i].n_batches; ++k, ++batches) {
      const schedule_update *u = &c.s.updates[i];
      const int64_t tau = schedule_staleness(&c.s, u, &c.s.batches[u->first_batch + k]);
      CU_ASSERT_FATAL((size_t)tau < c.said.n_staleness);
      ++with[tau];
    }
  for (size_t i = 0; i < c.said.n_staleness; ++i)
    ASSERT_CLOSE(with[i] / batches, c.said.staleness[i], 1e-9);
  free(with);
  compared_fini(&c);
}

/* Every quantity, within five standard errors (of what rounds alike: 1e-9). */
static void must_agree(const char *text, const char *form, size_t updates) {
  compared c = compare(text, updates);
  CU_ASSERT_STRING_EQUAL(c.said.form, form);
  for (size_t q = 0; q < THEORY_QUANTITIES; ++q) {
    const double far = 5 * c.seen.error[q] + 1e-9;
    const int ok =
        c.seen.mean[q] >= c.said.value[q].low - far && c.seen.mean[q] <= c.said.value[q].high + far;
    CU_ASSERT(ok);
    if (!ok)
      fprintf(stderr, "%s: %s %g to %g, simulated %g +- %g\n", text,
              sim_theory_quantity_name((theory_quantity)q), c.said.value[q].low,
              c.said.value[q].high, c.seen.mean[q], c.seen.error[q]);
  }
  compared_fini(&c);
}

/* Quarters are exact in binary, so equal times are equal. 240 updates give blocks of 9 or 10: the
 * periods below divide 12, of which 20 blocks of 12 are taken. */
TEST(constant_times_have_this_staleness_and_this_pace) {
  static const int star[][2] = {{1, 1}, {3, 1}, {6, 2}, {4, 4}, {2, 6}, {1, 3}};
  char text[300];
  for (size_t i = 0; i < sizeof star / sizeof *star; ++i)
    for (int g = 4; g <= 24; g += 5)
      for (int d = 0; d <= 30; d += 6)
        for (int step = 0; step * star[i][0] <= g * star[i][1]; step += 3) {
          snprintf(text, sizeof text,
                   "{preset: fifo, samplers: %d, generation: %g, delay: %g, data_delay: %g, "
                   "learner: {step: %g, batches: %d}}",
                   star[i][0], g / 4.0, d / 4.0, (d % 5) / 4.0, step / 4.0, star[i][1]);
          must_equal(text, "constant times", 300);
        }
}

TEST(transfers_jitter_speeds_and_lengths_are_part_of_constant_times) {
  must_equal("{preset: lifo, generation: 6, jitter: 0.5, samplers: [{count: 2, speed: "
             "0.25}], weights_bytes: 1e3, rollout_bytes: 2e3, up: {bandwidth: 1e3}, down: "
             "{bandwidth: 1e3}, learner: {step: 4}}",
             "constant times", 300);
  must_equal(
      "{preset: fifo, samplers: 1, generation: 0, lengths: 40, tokens_per_s: 8, concurrency: "
      "24, samples_per_batch: 64, delay: 31, learner: {step: 3}}",
      "constant times", 300);
}

/* s <= g and s > g; gates that close in bursts, at once, and because the learner is slow. */
TEST(constant_times_behind_a_gate_are_as_old_as_it_lets_them) {
  char text[300];
  for (int ahead = 1; ahead <= 4; ++ahead)
    for (int step = 2; step <= 14; step += 4)
      for (int d = 0; d <= 40; d += 20) {
        snprintf(text, sizeof text,
                 "{preset: one_step_off, ahead: %d, samplers: 3, generation: 8, data_delay: 2, "
                 "delay: %d, learner: {step: %d, batches: 3}}",
                 ahead, d, step);
        const int open = step <= 8 && step + d + 2 <= 8 * ahead;
        must_equal(text, open ? "constant times" : "constant times, gated", 1500);
      }
}

TEST(synchronous_updates_wait_for_the_longest_of_their_batches) {
  must_equal("{preset: sync, samplers: [{count: 2}, {speed: 2}], generation: 80, data_delay: 3, "
             "delay: 5, learner: {step: 30}}",
             "synchronous", 200);
  must_agree("{preset: sync, samplers: 8, generation: {distribution: lognormal, mu: 3, sigma: 1}, "
             "data_delay: 3, delay: {distribution: uniform, min: 1, max: 9}, shared_delays: true, "
             "learner: "
             "{step: {distribution: gamma, shape: 2, scale: 5}}}",
             "synchronous", 20000);
  must_agree(
      "{preset: sync, samplers: [{count: 3}, {count: 2, speed: 0.5}], generation: {distribution: "
      "uniform, min: 10, max: 30}, learner: {step: 3}}",
      "synchronous", 10000);
  must_agree("{preset: sync, samplers: 6, generation: 20, data_delay: {distribution: exponential, "
             "mean: 7}, "
             "learner: {step: 3, batches: 4}}",
             "synchronous", 10000);
  must_agree(
      "{preset: sync, samplers: 4, generation: 20, jitter: {distribution: weibull, shape: 3}, "
      "learner: {step: 3}}",
      "synchronous", 10000);
}

TEST(synchronous_updates_wait_for_the_longest_of_all_lengths) {
  must_agree(
      "{preset: areal, ahead: 0, samplers: 3, lengths: {distribution: lognormal, mu: 6, sigma: 1}, "
      "max_tokens: 4096, samples_per_batch: 16, learner: {step: 3, batches: 2}}",
      "synchronous", 5000);
  must_agree("{preset: sync, lengths: {distribution: lognormal, mu: 6, sigma: 1}, generation: "
             "{distribution: "
             "exponential, mean: 9}, jitter: {distribution: uniform, min: 0.5, max: 1.5}, "
             "batching: padded, "
             "concurrency: 7, samples_per_batch: 16, learner: {step: 3, batches: 2}}",
             "synchronous", 5000);
}

TEST(poisson_batches_meet_a_queue_at_the_learner) {
  must_agree("{preset: fifo, samplers: 3, generation: {distribution: exponential, mean: 40}, "
             "data_delay: 20, "
             "delay: 30, learner: {step: {distribution: exponential, mean: 8}}}",
             "Poisson batches", 40000);
  must_agree(
      "{preset: fifo, samplers: [{count: 2}, {count: 1, speed: 2}], generation: {distribution: "
      "exponential, mean: 40}, delay: 15, learner: {step: {distribution: gamma, shape: 2, scale: "
      "3}}}",
      "Poisson batches", 40000);
  must_agree("{preset: fifo, samplers: 2, generation: {distribution: exponential, mean: 40}, "
             "jitter: 0.5, delay: "
             "30, learner: {step: 0}}",
             "Poisson batches", 20000);
}

/* A block counts what was generated in it, though some of it is trained after it or never. */
TEST(samplers_that_never_wait_are_busy_all_the_time) {
  static const char *const text = "{preset: fifo, samplers: 3, generation: {distribution: "
                                  "exponential, mean: 100}, learner: {step: 20}}";
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    schedule s;
    cluster_spec *spec;
    theory_measured m;
    ASSERT_OK(sim_build(&s, &spec, text, seed, 2000, &err));
    ASSERT_OK(sim_theory_measure(&m, &s, spec, &err));
    ASSERT_CLOSE(m.mean[THEORY_SAMPLER_UTILISATION], 1, 1e-12);
  }
}

TEST(the_bounds_of_one_sampler_of_any_dist_hold) {
  must_agree(
      "{preset: fifo, samplers: 1, generation: {distribution: lognormal, mu: 3, sigma: 1}, "
      "data_delay: 5, delay: 40, learner: {step: {distribution: gamma, shape: 0.5, scale: 50}}}",
      "G/G/1 bounds", 40000);
  must_agree("{preset: fifo, samplers: 1, generation: 10, learner: {step: {distribution: weibull, "
             "shape: 0.6, "
             "scale: 5}}}",
             "G/G/1 bounds", 40000);
  must_agree("{preset: fifo, samplers: 1, generation: {distribution: uniform, min: 5, max: 15}, "
             "jitter: {distribution: "
             "uniform, min: 0.5, max: 1.5}, lengths: 80, tokens_per_s: 10, learner: {step: 12}}",
             "G/G/1 bounds", 20000);
}

TEST(an_exponential_sampler_behind_a_gate_is_a_closed_tandem) {
  must_agree("{preset: one_step_off, generation: {distribution: exponential, mean: 20}, learner: "
             "{step: {distribution: "
             "exponential, mean: 12}}}",
             "closed exponential", 20000);
  must_agree("{preset: one_step_off, ahead: 4, generation: {distribution: exponential, mean: 12}, "
             "learner: "
             "{step: {distribution: exponential, mean: 20}}}",
             "closed exponential", 20000);
}

TEST(the_bounds_of_one_sampler_behind_a_gate_hold) {
  must_agree(
      "{preset: areal, samplers: 1, ahead: 2, generation: {distribution: lognormal, mu: 3, sigma: "
      "1}, "
      "delay: 9, data_delay: 2, learner: {batches: 3, step: {distribution: gamma, shape: 2, scale: "
      "20}}}",
      "gated bounds", 5000);
  must_agree("{preset: one_step_off, lengths: {distribution: lognormal, mu: 6, sigma: 1}, "
             "max_tokens: 4096, "
             "learner: {step: {distribution: uniform, min: 10, max: 90}}}",
             "gated bounds", 5000);
}

static theory say(const char *text) {
  schedule s;
  cluster_spec *spec = NULL;
  theory said;
  ASSERT_OK(sim_build(&s, &spec, text, 1, 1, &err));
  ASSERT_OK(sim_theory_of(&said, spec, &err));
  return said;
}

/* M/M/1 at a load of 2/3: a batch finds k at the learner with probability (1 - 2/3) (2/3)^k. */
TEST(without_delays_staleness_is_geometric) {
  theory said = say("{preset: fifo, samplers: 1, generation: {distribution: exponential, mean: "
                    "30}, learner: {step: {distribution: exponential, mean: 20}}}");
  for (size_t k = 0; k < 9; ++k)
    ASSERT_CLOSE(said.staleness[k + 1], pow(2 / 3.0, (double)k) / 3, 1e-12);
  sim_theory_fini(&said);
}

/* A cluster, the quantity that comes first in the golden file, and how many shares follow; the
 * golden chains are cut off, which costs them 1e-7. */
TEST(staleness_is_that_of_an_independent_program) {
  static const struct {
    const char *cluster;
    theory_quantity quantity;
    size_t shares;
  } cases[] = {
      {"{preset: one_step_off, generation: {distribution: exponential, mean: 20}, learner: {step: "
       "{distribution: "
       "exponential, mean: 12}}}",
       THEORY_SAMPLES_PER_S, 2},
      {"{preset: one_step_off, ahead: 4, generation: {distribution: exponential, mean: 12}, "
       "learner: {step: "
       "{distribution: exponential, mean: 20}}}",
       THEORY_SAMPLES_PER_S, 5},
      {"{preset: one_step_off, ahead: 3, generation: {distribution: exponential, mean: 15}, "
       "learner: {step: "
       "{distribution: exponential, mean: 15}}}",
       THEORY_SAMPLES_PER_S, 4},
      {"{preset: fifo, samplers: 3, generation: {distribution: exponential, mean: 40}, data_delay: "
       "20, "
       "delay: "
       "30, learner: {step: {distribution: exponential, mean: 8}}}",
       THEORY_STALENESS, 12},
      {"{preset: fifo, samplers: [{count: 2}, {speed: 2}], generation: {distribution: exponential, "
       "mean: "
       "40}, "
       "delay: 15, learner: {step: {distribution: gamma, shape: 2, scale: 3}}}",
       THEORY_STALENESS, 0},
      {"{preset: fifo, samplers: 1, generation: 7, data_delay: 2, delay: 31, learner: {step: 5}}",
       THEORY_STALENESS, 0},
      {"{preset: fifo, samplers: 6, generation: 9, data_delay: 1, delay: 40, learner: {step: 3, "
       "batches: 2}}",
       THEORY_STALENESS, 0},
      {"{preset: fifo, samplers: 2, generation: 5, data_delay: 3, delay: 22, learner: {step: 14, "
       "batches: 6}}",
       THEORY_STALENESS, 0},
      {"{preset: fifo, samplers: 4, generation: 8, delay: 100, learner: {step: 7, batches: 4}}",
       THEORY_STALENESS, 0}};
  FILE *golden = fopen("tests/golden/theory_queues.txt", "r");
  double more;
  CU_ASSERT_PTR_NOT_NULL_FATAL(golden);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    theory said = say(cases[i].cluster);
    ASSERT_CLOSE(said.value[cases[i].quantity].low, files_number(golden), 1e-7);
    CU_ASSERT_FATAL(said.n_staleness >= cases[i].shares);
    for (size_t k = 0; k < cases[i].shares; ++k)
      ASSERT_CLOSE(said.staleness[k], files_number(golden), 1e-7);
    sim_theory_fini(&said);
  }
  CU_ASSERT(fscanf(golden, "%lf", &more) != 1);
  fclose(golden);
}

/* Limits at which one form becomes another. */
TEST(forms_meet_at_their_borders) {
  theory constant =
      say("{preset: fifo, samplers: 1, generation: 10, delay: 34, learner: {step: 4}}");
  theory renewal =
      say("{preset: fifo, samplers: 1, generation: {distribution: uniform, min: 9.999999, max: "
          "10.000001}, delay: 34, learner: {step: 4}}");
  theory synchronous =
      say("{preset: sync, generation: {distribution: lognormal, mu: 3, sigma: 1}}");
  theory gated =
      say("{preset: one_step_off, generation: {distribution: lognormal, mu: 3, sigma: 1}}");
  const double pace = constant.value[THEORY_SAMPLES_PER_S].low;
  const theory_value v = renewal.value[THEORY_STALENESS];
  ASSERT_CLOSE(renewal.value[THEORY_SAMPLES_PER_S].low, pace, 1e-9);
  CU_ASSERT(v.low < constant.value[THEORY_STALENESS].low);
  CU_ASSERT(v.high > constant.value[THEORY_STALENESS].low);
  ASSERT_CLOSE(gated.value[THEORY_SAMPLES_PER_S].low, synchronous.value[THEORY_SAMPLES_PER_S].low,
               1e-12);
  sim_theory_fini(&constant);
  sim_theory_fini(&renewal);
  sim_theory_fini(&synchronous);
  sim_theory_fini(&gated);
}

/* A cluster and the words of the condition that it breaks. */
typedef struct outside {
  const char *cluster, *condition;
} outside;

TEST(clusters_outside_of_every_range_are_told_the_condition) {
  static const outside cases[] = {
      {"{preset: heterorl}", "all need: cluster.sync is push; cluster.learner.queue is fifo, lifo "
                             "or oldest_version; cluster.learner.eval_pause is 0"},
      {"{preset: fifo, learner: {queue: heterorl}}", "all need: cluster.learner.queue is"},
      {"{preset: sync, mtbf: {distribution: exponential, mean: 900}}",
       "all need: cluster.mtbf is 0"},
      {"{preset: sync, up: {loss: 0.1}}", "all need: cluster.up loses no packets"},
      {"{preset: fifo, learner: {publish_every: 2}}", "all need: cluster.learner.publish_every is"},
      {"{preset: fifo, learner: {capacity: 9}}", "all need: cluster.learner.capacity is 0"},
      {"{preset: sync, learner: {eval_pause: 9}}", "all need: cluster.learner.eval_pause is 0"},
      {"{preset: sync, generation: {distribution: pareto, shape: 1, scale: 9}}",
       "all need: every distribution has a finite mean"},
      {"{preset: fifo, delay: {distribution: gilbert_elliott, good: 1, bad: 9}}",
       "all need: no distribution is gilbert_elliott"},
      {"{preset: sync, lengths: {distribution: uniform, min: 1, max: 90}, concurrency: 7}",
       "all need: cluster.concurrency holds all responses of a batch"},
      {"{preset: fifo, samplers: 3, learner: {step: 60}}",
       "constant times needs: the learner keeps up"},
      {"{preset: fifo, samplers: 3, learner: {batches: 2}}",
       "constant times needs: cluster.learner.batches divides the number of samplers"},
      {"{preset: fifo, window: 2, delay: 1000}",
       "constant times needs: cluster.window is at least"},
      {"{preset: fifo, samplers: 3, generation: {distribution: weibull, shape: 2}}",
       "Poisson batches needs: cluster.generation is exponential"},
      {"{preset: fifo, samplers: 3, generation: {distribution: exponential, mean: 60}, learner: "
       "{step: 0}}",
       "Poisson batches needs: cluster.learner.step, data_delay or delay is always above 0"},
      {"{preset: fifo, samplers: 3, generation: {distribution: exponential, mean: 60}}",
       "Poisson batches needs: the learner keeps up"},
      {"{preset: fifo, samplers: 3, generation: {distribution: exponential, mean: 24}, learner: "
       "{step: "
       "{distribution: "
       "gamma, shape: 2, scale: 4}}}",
       "Poisson batches needs: the learner keeps up"},
      {"{preset: fifo, samplers: 1, generation: {distribution: gamma, shape: 3, scale: 4}, "
       "learner: {step: "
       "{distribution: gamma, shape: 2, scale: 6}}}",
       "G/G/1 bounds needs: the learner keeps up"},
      {"{preset: fifo, samplers: 1, generation: {distribution: uniform, max: 90}, delay: "
       "{distribution: uniform}}",
       "G/G/1 bounds needs: cluster.delay is constant"},
      {"{preset: fifo, samplers: 1, generation: {distribution: uniform, max: 90}, rollout_bytes: "
       "9, up: "
       "{bandwidth: 9}}",
       "G/G/1 bounds needs: cluster.rollout_bytes is 0"},
      {"{preset: fifo, samplers: 1, generation: {distribution: pareto, shape: 1.5, scale: 90}}",
       "G/G/1 bounds needs: cluster.generation and cluster.jitter have finite variances"},
      {"{preset: areal, generation: {distribution: uniform, max: 90}}",
       "gated bounds needs: cluster.samplers is 1"},
      {"{preset: one_step_off, window: 0, generation: {distribution: uniform, max: 90}}",
       "gated bounds needs: cluster.window is at least cluster.ahead"},
      {"{preset: sync, samplers: 2, delay: {distribution: uniform, min: 1, max: 2}}",
       "synchronous needs: cluster.delay is the same for all samplers"},
      {"{preset: sync, samplers: 2, generation: {distribution: uniform, min: 1, max: 2}, jitter: "
       "{distribution: "
       "uniform, min: 1, max: 2}}",
       "synchronous needs: at most one of cluster.generation, lengths, jitter"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    schedule s;
    cluster_spec *spec = NULL;
    theory said;
    gl_error err = {0};
    CU_ASSERT_EQUAL_FATAL(sim_build(&s, &spec, cases[i].cluster, 1, 1, &err), GL_OK);
    CU_ASSERT_EQUAL(sim_theory_of(&said, spec, &err), GL_EINPUT);
    CU_ASSERT_PTR_NULL(said.form);
    const int named = strstr(err.text, cases[i].condition) != NULL;
    CU_ASSERT(named);
    if (!named) fprintf(stderr, "%s gave: %s\n", cases[i].cluster, err.text);
  }
}

TEST(a_short_schedule_measures_no_long_run) {
  schedule s;
  cluster_spec *spec = NULL;
  theory_measured m;
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(sim_build(&s, &spec, "{preset: sync}", 1, 99, &err), GL_OK);
  CU_ASSERT_EQUAL(sim_theory_measure(&m, &s, spec, &err), GL_EINPUT);
}
