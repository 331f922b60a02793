/* GPUs that change between generation and training: by hand, the mean time of a cycle, and the
 * books. */
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>

SUITE("sim: colocated");

/* Generation 10 s, switch 3 s, update 5 s, switch 2 s. */
TEST(generation_and_training_take_turns) {
  schedule s =
      sim_must_build("{preset: sync, samplers: 2, generation: 10, colocated: {to_training: "
                     "3, to_generation: 2}, learner: {step: 5}}",
                     1, 5);
  for (size_t k = 0; k < 5; ++k) CU_ASSERT_EQUAL(s.updates[k].start_s, 13 + 20 * (double)k);
  CU_ASSERT_EQUAL(s.gpus.switches, 10); /* the last begins when the clock ends */
  CU_ASSERT_EQUAL(s.gpus.seconds, 23);
  ASSERT_CLOSE(s.clock.sampler_utilisation, 50. / 98, 1e-12);
}

/* Evaluations hold the GPUs, too. */
TEST(evaluations_stop_generation) {
  schedule s =
      sim_must_build("{preset: sync, samplers: 2, generation: 10, colocated: {to_training: "
                     "3, to_generation: 2}, learner: {step: 5, eval_every: 2, eval_pause: "
                     "100}}",
                     1, 5);
  for (size_t k = 0; k < 5; ++k)
    CU_ASSERT_EQUAL(s.updates[k].start_s, 13 + 20 * (double)k + 100 * floor((double)k / 2));
}

/* Responses take 10 and 25 s. The slow one has 10 s behind it when the first update begins, 20 s at
 * the second and 25 s at 45 s, each time under newer weights. */
TEST(what_is_not_finished_goes_on_after_the_update) {
  schedule s = sim_must_build(
      "{preset: verl_v1_colocate, unit: response, samples_per_batch: 1, samplers: [{speed: 1}, "
      "{speed: 0.4}], concurrency: 1, lengths: 10, tokens_per_s: 1, colocated: {to_training: 3, "
      "to_generation: 2}, learner: {batches: 1, step: 5}}",
      1, 3);
  static const double starts[] = {13, 33, 48}, from[] = {0, 0.4, 0.8};
  for (size_t k = 0; k < 3; ++k) ASSERT_CLOSE(s.updates[k].start_s, starts[k], 1e-12);
  const schedule_batch *slow = &s.batches[2];
  CU_ASSERT_EQUAL(slow->sampler, 1);
  ASSERT_CLOSE(slow->generated_s, 45, 1e-12);
  CU_ASSERT_EQUAL_FATAL(slow->n_segments, 3);
  for (size_t k = 0; k < 3; ++k) {
    CU_ASSERT_EQUAL(s.segments[slow->first_segment + k].version, (int64_t)k);
    ASSERT_CLOSE(s.segments[slow->first_segment + k].from, from[k], 1e-12);
  }
}

#define ELASTIC                                                                                    \
  "{preset: fifo, unit: response, partial: continue, samples_per_batch: 1, samplers: [{count: "    \
  "1}, "                                                                                           \
  "{count: 1, colocated: true}], concurrency: 1, lengths: 10, tokens_per_s: 1, colocated: "        \
  "{to_training: 3, to_generation: 2, switch: idle}, learner: {step: 8, "

/* One sampler has its own GPUs and ends a response every 10 s. The other is on the learner's: it
 * generates from 0 to 10, from 23 to 30 and from 43 to 46 s, and its second response takes both. */
TEST(elastic_gpus_generate_while_the_learner_waits) {
  schedule s = sim_must_build(ELASTIC "batches: 2}}", 1, 3);
  static const double starts[] = {13, 33, 49};
  for (size_t k = 0; k < 3; ++k) ASSERT_CLOSE(s.updates[k].start_s, starts[k], 1e-12);
  ASSERT_CLOSE(s.batches[5].generated_s, 46, 1e-12);
  CU_ASSERT_EQUAL(s.batches[5].sampler, 1);
}

/* Where enough waits when an update ends the GPUs stay. */
TEST(elastic_gpus_stay_while_there_is_enough) {
  schedule s = sim_must_build(ELASTIC "batches: 1}}", 1, 4);
  for (size_t k = 0; k < 4; ++k) CU_ASSERT_EQUAL(s.updates[k].start_s, 13 + 8 * (double)k);
  CU_ASSERT_EQUAL(s.gpus.switches, 1);
}

/* One sampler has its own GPUs and ends a response every 10 s; the other is on the learner's, which
 * train once 3 responses wait and until fewer than 2 do. Two come at 10 and at 20 s, so that four
 * wait: updates of 8 s begin at 23, 31, …, 111 s. As many come as multiples of 10 s pass, so that
 * at 119 s, after twelve updates, 13 - 12 = 1 waits: the GPUs generate at 121 s. The own sampler's
 * responses at 120 and 130 s are the next two, before the other's at 131 s, and the next update
 * begins at 133 s. */
TEST(thresholds_have_hysteresis) {
  static const char form[] =
      "{preset: fifo, unit: response, partial: continue, samples_per_batch: 1, samplers: [{count: "
      "1}, {count: 1, colocated: true}], concurrency: 1, lengths: 10, tokens_per_s: 1, colocated: "
      "{to_training: 3, to_generation: 2, switch: idle, high: 3, low: %d}, learner: {batches: 1, "
      "step: 8}}";
  for (int low = 1; low <= 2; ++low) {
    char text[400];
    snprintf(text, sizeof text, form, low);
    schedule s = sim_must_build(text, 1, 13);
    for (size_t k = 0; k < 12; ++k) ASSERT_CLOSE(s.updates[k].start_s, 23 + 8 * (double)k, 1e-12);
    ASSERT_CLOSE(s.updates[12].start_s, low == 2 ? 133 : 119, 1e-12);
  }
}

/* The same with thresholds: H updates share the two switches. */
TEST(a_cycle_of_several_updates_takes_its_mean_time) {
  static const int highs[] = {1, 3, 8};
  for (size_t i = 0; i < 3; ++i) {
    enum { UPDATES = 2400 };
    const double slots = 16, take = 5, m = 50, high = highs[i];
    char text[400];
    snprintf(
        text, sizeof text,
        "{preset: verl_v1_colocate, unit: response, samples_per_batch: 1, ahead: 1000, window: "
        "100000, samplers: 2, concurrency: 8, lengths: {distribution: exponential, mean: 50000}, "
        "max_tokens: 1e9, tokens_per_s: 1000, colocated: {to_training: 4, to_generation: 3, "
        "switch: idle, high: %d}, learner: {batches: 5, step: 11}}",
        highs[i]);
    schedule s = sim_must_build(text, 7, UPDATES + 1);
    const double seconds = (s.updates[UPDATES].start_s - s.updates[0].start_s) / UPDATES;
    const double error = sqrt(take) * m / slots / sqrt(UPDATES);
    CU_ASSERT(fabs(seconds - (take * m / slots + 11 + 7 / high)) < 3.89 * error);
    CU_ASSERT(error < 0.03 * seconds);
    CU_ASSERT(fabs(s.gpus.switches - 2 * UPDATES / high) <= 2);
  }
}

/* N slots that decode exponential responses of mean m seconds end them as a Poisson process of rate
 * N / m of the time in which they decode: n of them take n m / N seconds on average, standard
 * deviation sqrt(n) m / N, and the cycle as much more as switches and update take. 3,000 cycles;
 * 3.89 standard errors: fails falsely with probability 1e-4 in each of three cases. */
TEST(a_cycle_takes_its_mean_time) {
  static const int cases[][2] = {{16, 4}, {16, 16}, {40, 100}}; /* slots, responses of an update */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    enum { UPDATES = 3000 };
    const double slots = cases[i][0], take = cases[i][1], m = 50;
    char text[400];
    snprintf(
        text, sizeof text,
        "{preset: verl_v1_colocate, unit: response, samples_per_batch: 1, ahead: 1000, window: "
        "100000, samplers: 2, concurrency: %d, lengths: {distribution: exponential, mean: 50000}, "
        "max_tokens: 1e9, tokens_per_s: 1000, colocated: {to_training: 4, to_generation: 3}, "
        "learner: {batches: %d, step: 11}}",
        cases[i][0] / 2, cases[i][1]);
    schedule s = sim_must_build(text, 7, UPDATES);
    const double cycle = (s.updates[UPDATES - 1].start_s - s.updates[0].start_s) / (UPDATES - 1);
    const double error = sqrt(take) * m / slots / sqrt(UPDATES - 1);
    CU_ASSERT(fabs(cycle - (take * m / slots + 18)) < 3.89 * error);
  }
}

TEST(books_balance_with_colocated_gpus) {
  static const char *const rules[] = {
      "preset: areal, unit: group, samplers: 3, data_delay: 9, interrupt: 2, lengths: "
      "{distribution: "
      "uniform, "
      "min: 9, max: 900}",
      "preset: verl_v1, samplers: [{count: 2}, {count: 2, colocated: true}], delay: 3",
      "preset: nemo_rl, samplers: 3, oversample: 1.4, surplus: abort",
      "preset: prime_rl_08, samplers: 3, window: 2, prefill_tokens_per_s: 900, interrupt: 1",
      "preset: streamrl, samplers: 3, partial: drop",
      "preset: areal, samplers: 3, lengths: {distribution: uniform, min: 9, max: 900}, in_flight: "
      "true",
      "preset: verl_v1_colocate, samplers: 3, environment: {turns: 3, time: 9, places: 40, slot: "
      "freed}"};
  for (size_t i = 0; i < 2 * sizeof rules / sizeof *rules; ++i) {
    char text[700];
    snprintf(text, sizeof text,
             "{%s, concurrency: 32, tokens_per_s: 20, colocated: {to_training: {distribution: "
             "exponential, "
             "mean: 5}, to_generation: 4, switch: %s}, learner: {batches: 1, step: 14, eval_every: "
             "9, eval_pause: 30}}",
             rules[i / 2], i % 2 ? "idle" : "always");
    schedule s = sim_must_build(text, 5, 100);
    uint64_t units = 0;
    for (int f = 0; f < FATES; ++f) units += s.fate[f].units;
    CU_ASSERT_EQUAL(units, s.begun);
    CU_ASSERT_EQUAL(s.fate[FATE_PENDING].units, s.pending);
    CU_ASSERT(s.clock.sampler_utilisation > 0 && s.clock.sampler_utilisation < 1);
    CU_ASSERT(s.clock.learner_utilisation > 0 && s.clock.learner_utilisation < 1);
    CU_ASSERT(s.gpus.switches > 0);
    CU_ASSERT(s.gpus.seconds + s.clock.learner_utilisation * s.clock.simulated_s <=
              s.clock.simulated_s * (1 + 1e-9));
    ASSERT_CLOSE(s.waited_s, s.waiting_integral_s, 1e-9);
  }
}

TEST(what_colocated_gpus_do_not_go_with_is_refused) {
  sim_must_refuse("{preset: laminar, colocated: {to_training: 9}}");
  sim_must_refuse("{preset: heterorl, sync: push, colocated: {to_training: 9}}");
  sim_must_refuse("{preset: areal, colocated: {to_training: 9}, mtbf: 900}");
  sim_must_refuse("{preset: areal, colocated: {to_training: 9}, stale: wait, window: 4}");
  sim_must_refuse("{preset: areal, samplers: [{count: 2, colocated: true}]}");
  sim_must_refuse("{preset: areal, colocated: {switch: sometimes}}");
  sim_must_refuse("{preset: areal, colocated: {high: 2}}");
  sim_must_refuse("{preset: areal, colocated: {switch: idle, high: 2, low: 3}}");
  sim_must_refuse("{preset: areal, ahead: 1, colocated: {switch: idle, high: 2.5}}");
}
