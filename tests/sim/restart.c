/* Restarts of the whole job: by hand, against the closed form of exponential times to a restart and
 * a second simulation (tests/golden/restart.py), and what every schedule with restarts must
 * satisfy. */
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

SUITE("sim: restarts");

/* A batch takes 10 s and an update 5 s, in turns. The second update ends at 30 s, the job is down
 * for 7 s and loads for 3 s, and the third batch takes 10 s again. */
TEST(the_next_update_comes_after_down_time_and_recovery) {
  schedule s = sim_must_build("{preset: sync, generation: 10, learner: {step: 5}, restarts: "
                              "{before: [3], down: 7, recovery: 3}}",
                              1, 4);
  const double ends[] = {15, 30, 55, 70};
  for (size_t i = 0; i < 4; ++i) CU_ASSERT_EQUAL(s.updates[i].end_s, ends[i]);
  CU_ASSERT_EQUAL(s.updates[2].wait_s, 10);
  CU_ASSERT_EQUAL(s.restarts.n, 1);
  CU_ASSERT_EQUAL(s.restarts.stopped_s, 10);
  CU_ASSERT_EQUAL(s.restarts.again, 0);
}

/* The restart at 38 s comes in the third generation, that at 70 s 2 s before the end of the third
 * update, and that at 71 s while the job is down. */
TEST(an_update_that_is_interrupted_is_made_again) {
  schedule s = sim_must_build("{preset: sync, generation: 10, learner: {step: 5}, restarts: {at: "
                              "[38, 63, 64], down: 10}}",
                              1, 3);
  CU_ASSERT_EQUAL(s.updates[1].end_s, 30);
  CU_ASSERT_EQUAL(s.updates[2].start_s, 83); /* 38 + 10 + 10 = 58, until 63; 63 + 10 + 10 */
  CU_ASSERT_EQUAL(s.restarts.n, 2);
  CU_ASSERT_EQUAL(s.clock.batches_lost, 2);
  CU_ASSERT_EQUAL(s.clock.batches_trained, 3);
  ASSERT_CLOSE(s.clock.learner_utilisation, 20.0 / 88, 1e-12); /* 5 s of the lost one too */
}

/* Checkpoints after every third update: a restart in the fifth goes back to the third. */
TEST(updates_after_the_last_checkpoint_are_made_again) {
  schedule s = sim_must_build("{preset: sync, generation: 10, learner: {step: 5}, restarts: {at: "
                              "[62], down: 8, checkpoint_every: 3}}",
                              1, 5);
  CU_ASSERT_EQUAL(s.updates[2].end_s, 45);
  CU_ASSERT_EQUAL(s.updates[3].end_s, 85);
  CU_ASSERT_EQUAL(s.updates[4].end_s, 100);
  CU_ASSERT_EQUAL(s.restarts.again, 1);
  CU_ASSERT_EQUAL(s.n_batches, 5);
  CU_ASSERT_EQUAL(s.clock.batches_lost, 2);
  for (size_t i = 0; i < 5; ++i) CU_ASSERT_EQUAL(s.updates[i].version, (int64_t)i);
}

/* A learner that is behind: with every batch lost, staleness begins at 0 and grows again; a queue
 * that survives is trained with the staleness it had. */
TEST(what_survives_decides_the_staleness_after_a_restart) {
  static const char form[] =
      "{preset: areal, samplers: 1, in_flight: false, generation: 1, "
      "learner: {step: 10, queue: fifo}, restarts: {before: [12], keeps: %s}}";
  static const struct {
    const char *keeps;
    int64_t expected[4];
  } cases[] = {{"nothing", {0, 1, 2, 3}}, {"queue", {4, 4, 4, 4}}, {"responses", {4, 4, 4, 4}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[512];
    snprintf(text, sizeof text, form, cases[i].keeps);
    schedule s = sim_must_build(text, 1, 20);
    CU_ASSERT_EQUAL(schedule_staleness(&s, &s.updates[10], &s.batches[10]), 4);
    for (size_t k = 0; k < 4; ++k)
      CU_ASSERT_EQUAL(schedule_staleness(&s, &s.updates[11 + k], &s.batches[11 + k]),
                      cases[i].expected[k]);
  }
}

/* Where nothing is trained at the time, everything after a restart that keeps all is later by the
 * time down, and else the same. */
static void check_frozen(const char *responses, int at) {
  static const char form[] =
      "{preset: pipelinerl, samplers: 2, unit: group, concurrency: 16, lengths: {distribution: "
      "lognormal, "
      "mu: 5, sigma: 1}, %s, jitter: {distribution: uniform, min: 0.9, max: 1.1}, interrupt: "
      "2, delay: 3, data_delay: 4, up: {bandwidth: "
      "1000}, rollout_bytes: 9000, learner: {batches: 1, step: 1}%s}";
  char with[900], without[900], restart[80];
  snprintf(restart, sizeof restart, ", restarts: {at: [%d], down: 1000, keeps: responses}", at);
  snprintf(with, sizeof with, form, responses, restart);
  snprintf(without, sizeof without, form, responses, "");
  schedule a = sim_must_build(with, 3, 60), b = sim_must_build(without, 3, 60);
  CU_ASSERT_EQUAL_FATAL(a.n_batches, b.n_batches);
  CU_ASSERT_EQUAL_FATAL(a.n_segments, b.n_segments);
  CU_ASSERT(b.updates[b.n_updates - 1].end_s > at);
  for (size_t i = 0; i < a.n_updates; ++i) {
    const double end = b.updates[i].end_s;
    CU_ASSERT_FATAL(!(b.updates[i].start_s <= at && end > at));
    ASSERT_CLOSE(a.updates[i].end_s, end > at ? end + 1000 : end, 1e-9);
  }
  for (size_t i = 0; i < a.n_batches; ++i) CU_ASSERT_EQUAL(a.batches[i].id, b.batches[i].id);
  for (size_t i = 0; i < a.n_segments; ++i) {
    CU_ASSERT_EQUAL(a.segments[i].version, b.segments[i].version);
    ASSERT_CLOSE(a.segments[i].to, b.segments[i].to, 1e-7); /* rounding of loads adds up */
  }
  CU_ASSERT_EQUAL(a.environment.calls, b.environment.calls);
  ASSERT_CLOSE(a.environment.wait_s, b.environment.wait_s, 1e-9);
  ASSERT_CLOSE(a.grader.wait_s, b.grader.wait_s, 1e-9);
  CU_ASSERT_EQUAL(a.gpus.switches, b.gpus.switches);
  ASSERT_CLOSE(a.gpus.seconds, b.gpus.seconds, 1e-9);
}

TEST(what_is_frozen_goes_on_where_it_was) {
#define TURNS                                                                                      \
  ", environment: {turns: {distribution: uniform, min: 1, max: 5}, time: {distribution: uniform, " \
  "min: 1, max: 30}, "                                                                             \
  "places: 30, slot: "
#define LOAD                                                                                       \
  "decoding: {running: [1, 16], tokens_per_s: [20, 10], kv_tokens: 2500}, max_tokens: 2000, "      \
  "prefill_tokens_per_s: "                                                                         \
  "9000"
  check_frozen("tokens_per_s: 10", 64);
  check_frozen("tokens_per_s: 10" TURNS "held}", 64);
  check_frozen("tokens_per_s: 10" TURNS "freed}", 64);
  check_frozen(LOAD TURNS "held}", 64);
  check_frozen(LOAD TURNS "freed}", 64);
#define GRADER ", grader: {places: 5, time: {distribution: uniform, min: 1, max: 9}}"
#define SHARED ", colocated: {to_training: 3, to_generation: 7, switch: "
  check_frozen("tokens_per_s: 10" GRADER, 64);
  /* at 92 and 96 s the GPUs switch, to training and back */
  static const int at[] = {64, 92, 96, 108};
  for (size_t i = 0; i < sizeof at / sizeof *at; ++i)
    check_frozen("tokens_per_s: 10" GRADER SHARED "always}", at[i]);
  check_frozen("tokens_per_s: 10" GRADER TURNS "held}" SHARED "idle}", 64);
  check_frozen(LOAD GRADER SHARED "idle}", 64);
}

/* Two responses of 60 s in three turns, one place, calls of 7 s: without a restart they end after
 * 74 and 81 s (`sim: environment`). At 25 s one calls and one waits for the place. If nothing
 * survives, the place is free and all begins again at 35 s; if all does, it is 10 s later. */
TEST(places_are_free_after_a_restart_that_keeps_nothing) {
  static const char form[] =
      "{preset: sync, unit: response, samples_per_batch: 2, samplers: 1, concurrency: 2, lengths: "
      "60, tokens_per_s: 1, environment: {turns: 3, time: 7, places: 1}, restarts: {at: [25], "
      "down: 10, keeps: %s}, learner: {step: 5}}";
  for (int all = 0; all < 2; ++all) {
    char text[400];
    snprintf(text, sizeof text, form, all ? "responses" : "queue");
    schedule s = sim_must_build(text, 1, 1);
    ASSERT_CLOSE(s.batches[0].generated_s, all ? 84 : 35 + 74, 1e-12);
    ASSERT_CLOSE(s.batches[1].generated_s, all ? 91 : 35 + 81, 1e-12);
    CU_ASSERT_EQUAL(s.environment.calls, all ? 4 : 5);
    ASSERT_CLOSE(s.environment.wait_s, 7. / (all ? 4 : 5), 1e-12);
  }
}

/* Batches come at 10 s, the one place takes 4 s for each, and an update takes all three. The
 * restart at 15 s comes when one is graded, one is at the place and one waits. What is lost begins
 * again at 35 s; what is frozen is graded from 35 to 38 and from 38 to 42 s. */
TEST(what_the_grader_has_is_on_its_way) {
  static const char form[] =
      "{preset: sync, samplers: 3, generation: 10, learner: {step: 5}, grader: {places: 1, time: "
      "4}, restarts: {at: [15], down: 20, keeps: %s}}";
  static const char *const keeps[] = {"nothing", "queue", "responses"};
  static const double starts[] = {35 + 22, 35 + 18, 42}, lost[] = {3, 2, 0},
                      busy[] = {5 + 12, 5 + 8,
                                12}; /* the gate admits two beside one that is kept */
  for (int k = 0; k < 3; ++k) {
    char text[300];
    snprintf(text, sizeof text, form, keeps[k]);
    schedule s = sim_must_build(text, 1, 1);
    CU_ASSERT_EQUAL(s.updates[0].start_s, starts[k]);
    CU_ASSERT_EQUAL(s.clock.batches_lost, lost[k]);
    if (k == 2) CU_ASSERT_EQUAL(s.grader.wait_s, 4); /* 0, 4 and 8 s */
    ASSERT_CLOSE(s.grader.busy * s.clock.simulated_s, busy[k], 1e-12);
  }
}

/* Generation 10 s, switch 3 s, update 5 s, switch 2 s. The restart comes in the first switch (11
 * s), the update (15 s) or the second switch (19 s), and takes 100 s. */
TEST(shared_gpus_generate_after_a_restart_or_are_frozen) {
  static const char form[] =
      "{preset: sync, samplers: 2, generation: 10, colocated: {to_training: 3, to_generation: 2}, "
      "learner: {step: 5}, restarts: {at: [%d], down: 100, keeps: %s}}";
  static const struct {
    int at;
    const char *keeps;
    double start[2], switch_s; /* of the first two updates; seconds of switches up to the second */
  } cases[] = {
      {11, "nothing", {124, 144}, 1 + 3 + 2 + 3},       {11, "queue", {114, 134}, 1 + 3 + 2 + 3},
      {11, "responses", {113, 133}, 3 + 2 + 3},         {15, "nothing", {128, 148}, 3 + 3 + 2 + 3},
      {15, "responses", {130, 150}, 3 + 2 + 3 + 2 + 3}, {19, "nothing", {13, 132}, 3 + 1 + 3},
      {19, "responses", {13, 133}, 3 + 2 + 3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[300];
    snprintf(text, sizeof text, form, cases[i].at, cases[i].keeps);
    schedule s = sim_must_build(text, 1, 2);
    for (size_t k = 0; k < 2; ++k) CU_ASSERT_EQUAL(s.updates[k].start_s, cases[i].start[k]);
    CU_ASSERT_EQUAL(s.gpus.seconds, cases[i].switch_s);
  }
}

static size_t same_update(const schedule *s, size_t i, size_t take, FILE *golden) {
  const schedule_update *u = &s->updates[i];
  double start, end;
  CU_ASSERT_FATAL(fscanf(golden, "%lf %lf", &start, &end) == 2);
  size_t same = fabs(u->start_s - start) < 1e-9 * start && fabs(u->end_s - end) < 1e-9 * end;
  same &= u->n_batches == take;
  for (size_t k = 0; k < take; ++k) {
    const schedule_batch *b = &s->batches[u->first_batch + k];
    uint64_t sampler, ordinal;
    int64_t version;
    CU_ASSERT_FATAL(
        fscanf(golden, "%" SCNu64 " %" SCNu64 " %" SCNd64, &sampler, &ordinal, &version) == 3);
    same &=
        b->id == (sampler << 32 | ordinal) && schedule_staleness(s, u, b) == u->version - version;
  }
  return same;
}

static void check_second(const char *text, FILE *golden) {
  enum { UPDATES = 40, TAKE = 6 };
  double restarts, lost, timed_out, again, switches, wait, switch_s;
  size_t same = 0;
  CU_ASSERT_FATAL(fscanf(golden, "%lf %lf %lf %lf %lf %lf %lf", &restarts, &lost, &timed_out,
                         &again, &switches, &wait, &switch_s) == 7);
  schedule s = sim_must_build(text, 11, UPDATES);
  for (size_t i = 0; i < UPDATES; ++i) same += same_update(&s, i, TAKE, golden);
  CU_ASSERT_EQUAL(same, UPDATES);
  CU_ASSERT_EQUAL(s.restarts.n, restarts);
  CU_ASSERT_EQUAL(s.restarts.again, again);
  CU_ASSERT_EQUAL(s.clock.batches_lost, lost);
  CU_ASSERT_EQUAL(s.grader.timed_out, timed_out);
  ASSERT_CLOSE(s.grader.wait_s, wait, 1e-9);
  if (!s.gpus.is_on) return;
  CU_ASSERT_EQUAL(s.gpus.switches, switches);
  CU_ASSERT(fabs(s.gpus.seconds - switch_s) < 2.2); /* one may begin as the clock ends */
}

TEST(a_second_simulation_of_restarts_agrees) {
  FILE *golden = fopen("tests/golden/restart.txt", "r");
  size_t cases = 0;
  char text[1000];
  CU_ASSERT_PTR_NOT_NULL_FATAL(golden);
  for (; fscanf(golden, " %999[^\n]", text) == 1; ++cases) check_second(text, golden);
  CU_ASSERT_EQUAL(cases, 21);
  fclose(golden);
}

/* Generation and update take 15 s together and a checkpoint comes after every n-th update. With
 * exponential times to a restart of mean m, down time d, n updates take (m + d) (exp(15 n / m) - 1)
 * seconds on average. 20,000 updates; at four standard errors of independent checkpoints a test
 * fails falsely with probability 6e-5. */
TEST(the_time_of_an_update_has_its_closed_form) {
  static const int every[] = {1, 4};
  for (size_t i = 0; i < sizeof every / sizeof *every; ++i) {
    char text[256];
    const double m = 100, d = 30, t = 15.0 * every[i], updates = 20000;
    snprintf(text, sizeof text,
             "{preset: sync, generation: 10, learner: {step: 5}, restarts: {every: {distribution: "
             "exponential, mean: %g}, down: 20, recovery: 10, checkpoint_every: %d}}",
             m, every[i]);
    schedule s = sim_must_build(text, 7, (size_t)updates);
    const double expected = (m + d) * (exp(t / m) - 1) / every[i];
    double squares = 0;
    const size_t n = (size_t)updates / (size_t)every[i];
    for (size_t k = 0; k < n; ++k) {
      const double from = k > 0 ? s.updates[k * (size_t)every[i] - 1].end_s : 0;
      const double took = s.updates[(k + 1) * (size_t)every[i] - 1].end_s - from;
      squares += pow(took / every[i] - expected, 2);
    }
    const double error = sqrt(squares / (double)n / (double)n);
    ASSERT_CLOSE(s.clock.simulated_s / updates, expected, 4 * error / expected);
    CU_ASSERT(error < 0.02 * expected);
  }
}

static void check_books(const schedule *s) {
  unit_counts all = {0}, trained = {0};
  for (int f = 0; f < FATES; ++f) {
    all.units += s->fate[f].units;
    all.tokens += s->fate[f].tokens;
  }
  for (size_t i = 0; i < s->n_batches; ++i) {
    trained.tokens += s->batches[i].tokens;
    trained.longest += s->batches[i].longest;
  }
  uint64_t by_prompt = 0, by_length = 0;
  for (size_t k = 0; k < PROMPT_CLASSES; ++k) by_prompt += s->fate[FATE_TRAINED].by_prompt[k];
  for (size_t k = 0; k < LENGTH_CLASSES; ++k) by_length += s->fate[FATE_TRAINED].by_length[k];
  CU_ASSERT_EQUAL(all.units, s->begun);
  CU_ASSERT_EQUAL(s->fate[FATE_PENDING].units, s->pending);
  CU_ASSERT_EQUAL(s->fate[FATE_TRAINED].units, s->n_batches);
  CU_ASSERT(by_prompt == 0 || by_prompt == s->n_batches);
  CU_ASSERT(by_length == 0 || by_length == s->n_batches);
  ASSERT_CLOSE(s->fate[FATE_TRAINED].tokens, trained.tokens, 1e-6);
  ASSERT_CLOSE(s->fate[FATE_TRAINED].longest, trained.longest, 1e-6);
  ASSERT_CLOSE(s->waited_s, s->waiting_integral_s, 1e-9);
  CU_ASSERT(s->fate[FATE_PENDING].tokens > -1e-6);
  for (size_t i = 0; i < s->n_updates; ++i) {
    const schedule_update *u = &s->updates[i];
    CU_ASSERT_EQUAL(u->version, (int64_t)i);
    CU_ASSERT(i == 0 || u->start_s >= s->updates[i - 1].end_s);
    for (size_t k = 0; k < u->n_batches; ++k)
      CU_ASSERT(schedule_staleness(s, u, &s->batches[u->first_batch + k]) >= 0);
  }
}

/* Every rule of queues, transfers and weights, with what survives and without checkpoints. */
TEST(books_balance_with_restarts) {
  static const char *const clusters[] = {
      "preset: heterorl, samplers: 3, learner: {step: 20}",
      "preset: intellect2, samplers: 3, delay: 9, learner: {step: 20}",
      "preset: areal, samplers: 3, generation: {distribution: lognormal, mu: 3, sigma: 1}, delay: "
      "9, "
      "interrupt: 3, mtbf: {distribution: exponential, mean: 700}, mttr: 50, learner: {step: 20}",
      "preset: fifo, samplers: 3, ahead: 3, window: 3, stale: wait, learner: {step: 20, queue: "
      "oldest_version}",
      "preset: verl_async, samplers: 3, concurrency: 16, prompt_lengths: {distribution: lognormal, "
      "mu: 0, "
      "sigma: 0.5}, delay: 3, mtbf: {distribution: exponential, mean: 700}, mttr: 50, learner: "
      "{step: 4}",
      "preset: prime_rl, samplers: 3, concurrency: 16, interrupt: 1, prefill_tokens_per_s: 9000, "
      "kv_cache: recompute, delay: 3, learner: {step: 4, eval_every: 7, eval_pause: 90}",
      "preset: fifo, samplers: 3, unit: group, partial: drop, lengths: 200, concurrency: 16, "
      "window: "
      "2, stale: downweight, up: {loss: 0.2, max_retries: 0}, learner: {step: 4, capacity: 40}",
      "preset: prime_rl_08, samplers: 3, concurrency: 16, window: 2, mtbf: {distribution: "
      "exponential, "
      "mean: "
      "700}, mttr: 50, environment: {turns: 3, time: {distribution: exponential, mean: 5}, places: "
      "99, "
      "slot: "
      "freed}, learner: {step: 4}",
      "preset: areal, unit: group, samplers: 3, concurrency: 16, lengths: {distribution: "
      "lognormal, mu: "
      "6.5, sigma: 0.8}, decoding: {running: [1, 16], "
      "tokens_per_s: [90, 50], kv_tokens: 9000}, max_tokens: 8000, prefill_tokens_per_s: 9000, "
      "environment: {turns: "
      "3, time: {distribution: exponential, mean: 5}, places: 9}, learner: {step: 4}",
      "preset: verl_v1_colocate, samplers: 3, concurrency: 16, interrupt: 1, "
      "prefill_tokens_per_s: 9000, kv_cache: recompute, grader: {places: 9, time: {distribution: "
      "exponential, mean: 3}, timeout: 9}, environment: {turns: 3, time: 5, places: 40, slot: "
      "freed}, learner: {step: 14, eval_every: 7, eval_pause: 30}",
      "preset: areal, in_flight: true, interrupt: 2, samplers: [{count: 2}, {count: 2, colocated: "
      "true}], generation: {distribution: lognormal, mu: 3, sigma: 1}, colocated: {to_training: 5, "
      "to_generation: 4, switch: idle}, grader: {places: 2, time: 9}, learner: {step: 14}"};
  static const char *const survive[] = {"keeps: nothing", "keeps: nothing, checkpoint_every: 4",
                                        "keeps: queue", "keeps: queue, checkpoint_every: 4",
                                        "keeps: responses"};
  for (size_t i = 0; i < sizeof clusters / sizeof *clusters; ++i)
    for (size_t k = 0; k < sizeof survive / sizeof *survive; ++k) {
      char text[768];
      snprintf(text, sizeof text,
               "{%s, restarts: {every: {distribution: exponential, mean: %d}, down: {distribution: "
               "uniform, min: 5, "
               "max: 90}, recovery: 7, %s}}",
               clusters[i], strstr(clusters[i], "lengths: 200") != NULL ? 60 : 250, survive[k]);
      schedule s = sim_must_build(text, 11, 120);
      CU_ASSERT(s.restarts.n > 0);
      CU_ASSERT(strstr(survive[k], "checkpoint") == NULL || s.restarts.again > 0 ||
                s.restarts.n < 3);
      check_books(&s);
      CU_ASSERT(s.clock.sampler_utilisation > 0 && s.clock.sampler_utilisation <= 1 + 1e-9);
      CU_ASSERT(s.clock.learner_utilisation > 0 && s.clock.learner_utilisation <= 1 + 1e-9);
      CU_ASSERT(s.grader.busy >= 0 && s.grader.busy <= 9 + 1e-9);
      CU_ASSERT(s.gpus.seconds >= 0 && s.gpus.seconds <= s.clock.simulated_s);
      CU_ASSERT(s.interrupted_s >= 0);
    }
}

/* The number of trained units whose version is older than that of a unit of an earlier update. */
static size_t out_of_order(const schedule *s) {
  size_t n = 0;
  int64_t newest = 0, next = 0;
  for (size_t i = 0; i < s->n_updates; ++i, newest = next)
    for (size_t k = 0; k < s->updates[i].n_batches; ++k) {
      const schedule_batch *b = &s->batches[s->updates[i].first_batch + k];
      const int64_t version = s->segments[b->first_segment].version;
      n += version < newest;
      if (version > next) next = version;
    }
  return n;
}

/* Units that wait when a restart loses them are no longer waited for. */
TEST(rules_that_wait_for_units_hold_with_restarts) {
  static const char *const survive[] = {"nothing", "nothing, checkpoint_every: 3", "queue",
                                        "queue, checkpoint_every: 3", "responses"};
  static const char form[] =
      "{preset: fifo, samplers: 6, generation: {distribution: lognormal, mu: 2.5, sigma: 1}, %s, "
      "restarts: {every: {distribution: exponential, mean: 60}, down: 5, keeps: %s}, learner: "
      "{step: 12, batches: 4, queue: %s}}";
  for (size_t i = 0; i < sizeof survive / sizeof *survive; ++i) {
    char text[600];
    snprintf(text, sizeof text, form, "ahead: 2, window: 2, stale: wait", survive[i],
             "oldest_version");
    schedule s = sim_must_build(text, 1, 200);
    CU_ASSERT(s.restarts.n > 20);
    CU_ASSERT(s.clock.staleness_max <= 2);
    snprintf(text, sizeof text, form, "ahead: 3, window: 8", survive[i], "version_order");
    s = sim_must_build(text, 1, 200);
    CU_ASSERT(s.restarts.n > 20);
    CU_ASSERT_EQUAL(out_of_order(&s), 0);
  }
}

TEST(restarts_without_a_time_or_with_a_network_are_refused) {
  sim_must_refuse("{preset: sync, restarts: {down: 9}}");
  sim_must_refuse("{preset: sync, restarts: {before: [3, 3]}}");
  sim_must_refuse("{preset: sync, restarts: {before: [3.5]}}");
  sim_must_refuse("{preset: sync, restarts: {before: [1]}}");
  sim_must_refuse("{preset: sync, restarts: {at: [-1]}}");
  sim_must_refuse("{preset: sync, restarts: {at: [9], keeps: all}}");
  sim_must_refuse("{preset: sync, restarts: {at: [9], keeps: responses, checkpoint_every: 2}}");
  sim_must_refuse("{preset: sync, coupled: true, restarts: {at: [9], checkpoint_every: 2}}");
  sim_must_refuse("{preset: sync, weights_bytes: 1, network: {egress: {bandwidth: 9}}, restarts: "
                  "{at: [9]}}");
}

TEST(restarts_that_let_nothing_be_finished_are_an_error) {
  schedule s;
  cluster_spec *spec;
  gl_error err = {0};
  CU_ASSERT_EQUAL(sim_build(&s, &spec,
                            "{preset: sync, generation: 10, restarts: {every: 5, down: 1}}", 1, 3,
                            &err),
                  GL_ENUMERIC);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "restarts in a row"));
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "look at cluster.restarts"));
}

TEST(samplers_that_never_get_newer_weights_are_named_with_restarts) {
  schedule s;
  cluster_spec *spec;
  gl_error err = {0};
  CU_ASSERT_EQUAL(sim_build(&s, &spec,
                            "{preset: areal, samplers: 2, generation: 10, ahead: 0, learner: "
                            "{step: 3, publish_every: 2}, restarts: {every: 100, down: 5, "
                            "checkpoint_every: 2}}",
                            1, 3, &err),
                  GL_ENUMERIC);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "ahead and publish_every"));
}

typedef struct span_counts {
  size_t restarts, lost_updates;
  double down_s;
} span_counts;

static void count_span(void *self, const schedule_span *s) {
  span_counts *n = self;
  n->restarts += s->kind == SPAN_RESTART;
  n->lost_updates += s->kind == SPAN_TRAINING && s->end == SPAN_LOST;
  if (s->kind == SPAN_RESTART) n->down_s += s->to_s - s->from_s;
}

TEST(a_trace_reports_them) {
  static const char text[] = "{preset: sync, generation: 10, learner: {step: 5}, restarts: {at: "
                             "[38, 63], down: 10}}";
  schedule s, traced;
  cluster_spec *spec;
  span_counts n = {0};
  const schedule_trace trace = {&n, count_span};
  ASSERT_OK(sim_build(&s, &spec, text, 1, 3, &err));
  ASSERT_OK(schedule_build_traced(&traced, spec, 1, 3, &trace, &err));
  CU_ASSERT_EQUAL(n.restarts, 2);
  CU_ASSERT_EQUAL(n.lost_updates, 1);
  CU_ASSERT_EQUAL(n.down_s, 20);
  schedule_fini(&traced);
}

typedef struct lost_spans {
  size_t gradings, switches; /* that were lost */
  double graded_s, switched_s;
} lost_spans;

static void count_lost(void *self, const schedule_span *s) {
  lost_spans *n = self;
  n->gradings += s->kind == SPAN_GRADING && s->end == SPAN_LOST;
  n->switches += s->kind == SPAN_SWITCH && s->end == SPAN_LOST;
  if (s->kind == SPAN_GRADING) n->graded_s += s->to_s - s->from_s;
  if (s->kind == SPAN_SWITCH) n->switched_s += s->to_s - s->from_s;
}

/* Batches come at 10 s and are graded from there to 14 and 18 s; the GPUs switch from 18 to 21 s.
 * The restart at 12 s loses a grading; from 17 s the same begins again, and the restart at 37 s
 * loses the switch from 35 to 38 s. */
TEST(a_trace_reports_what_grader_and_gpus_lose) {
  static const char text[] =
      "{preset: sync, samplers: 2, generation: 10, colocated: {to_training: 3, to_generation: 2}, "
      "grader: {places: 1, time: 4}, learner: {step: 5}, restarts: {at: [12, 37], down: 5}}";
  schedule s, traced;
  cluster_spec *spec;
  lost_spans n = {0};
  const schedule_trace trace = {&n, count_lost};
  ASSERT_OK(sim_build(&s, &spec, text, 1, 1, &err));
  ASSERT_OK(schedule_build_traced(&traced, spec, 1, 1, &trace, &err));
  CU_ASSERT_EQUAL(n.gradings, 1);
  CU_ASSERT_EQUAL(n.switches, 1);
  CU_ASSERT_EQUAL(n.graded_s, 2 + 8 + 8);
  CU_ASSERT_EQUAL(n.switched_s, 2 + 3);
  CU_ASSERT_EQUAL(s.updates[0].start_s, 42 + 10 + 8 + 3);
  schedule_fini(&traced);
}
