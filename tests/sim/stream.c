/* Units that stream: against a second simulation (tests/golden/units.py), closed forms, and batches
 * where these must agree; and books that must balance. */
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

SUITE("sim: units");

enum { GROUP = 8, BATCH = 64 }; /* of sim_must_build() */

/* --- a second simulation --- */

static int same_update(const schedule *s, const schedule_update *u, FILE *golden) {
  double start;
  size_t units;
  int64_t versions, order, own_versions = 0, own_order = 0;
  CU_ASSERT_FATAL(
      fscanf(golden, "%lf %zu %" SCNd64 " %" SCNd64, &start, &units, &versions, &order) == 4);
  for (size_t k = 0; k < u->n_batches; ++k) {
    const schedule_batch *b = &s->batches[u->first_batch + k];
    own_versions += s->segments[b->first_segment].version;
    own_order +=
        (int64_t)(k + 1) * (100000 * ((int64_t)b->sampler + 1) + (int64_t)(b->id & UINT32_MAX));
  }
  return u->start_s == start && u->n_batches == units && own_versions == versions &&
         own_order == order;
}

TEST(schedules_are_those_of_a_second_simulation) {
  FILE *golden = fopen("tests/golden/units.txt", "r");
  char text[1000];
  size_t updates, dropped, cases = 0, with_drops = 0;
  CU_ASSERT_PTR_NOT_NULL_FATAL(golden);
  while (fscanf(golden, " %999[^\n]", text) == 1) {
    CU_ASSERT_FATAL(fscanf(golden, "%zu %zu", &updates, &dropped) == 2);
    schedule s = sim_must_build(text, 11, updates);
    CU_ASSERT_EQUAL_FATAL(s.n_updates, updates);
    size_t same = 0;
    for (size_t i = 0; i < updates; ++i) same += (size_t)same_update(&s, &s.updates[i], golden);
    CU_ASSERT_EQUAL(same, updates);
    CU_ASSERT_EQUAL(s.clock.batches_dropped, (double)dropped);
    if (same != updates) fprintf(stderr, "%zu of %zu updates agree: %s\n", same, updates, text);
    with_drops += dropped > 0;
    ++cases;
  }
  CU_ASSERT(cases >= 26 && with_drops >= 6);
  fclose(golden);
}

/* --- closed forms --- */

/* Where all lengths are equal and all of a sampler's responses fit its slots, its groups end
 * together, as a batch does. */
TEST(constant_lengths_give_what_batches_give) {
  static const char *const rules[] = {"preset: sync, samplers: 3",
                                      "preset: one_step_off, samplers: [{count: 2}, {speed: 2}]",
                                      "preset: areal, in_flight: false, samplers: 2, ahead: 3",
                                      "preset: fifo, window: 2, learner: {step: 9, batches: 2}"};
  for (size_t i = 0; i < 4; ++i) {
    char text[400], streaming[400];
    const char *rest = "lengths: 300, tokens_per_s: 7, delay: 4, data_delay: 2, concurrency: 64";
    const int areal = i == 2; /* in_flight is about batches */
    snprintf(text, sizeof text, "{%s, %s}", rules[i], rest);
    snprintf(streaming, sizeof streaming, "{%s, %s, unit: %s%s}",
             areal ? "preset: areal, samplers: 2, ahead: 3" : rules[i], rest,
             i % 2 ? "response" : "group", areal ? ", partial: wait" : "");
    schedule whole = sim_must_build(text, 1, 40), parts = sim_must_build(streaming, 1, 40);
    CU_ASSERT_EQUAL_FATAL(whole.n_updates, parts.n_updates);
    for (size_t u = 0; u < whole.n_updates; ++u) {
      CU_ASSERT_EQUAL(whole.updates[u].start_s, parts.updates[u].start_s);
      CU_ASSERT_EQUAL(whole.updates[u].end_s, parts.updates[u].end_s);
    }
    CU_ASSERT_EQUAL(whole.clock.samples_per_s, parts.clock.samples_per_s);
    CU_ASSERT_EQUAL(whole.clock.sampler_utilisation, parts.clock.sampler_utilisation);
    ASSERT_CLOSE(whole.clock.staleness_mean, parts.clock.staleness_mean, 1e-12);
    CU_ASSERT_EQUAL(whole.clock.staleness_max, parts.clock.staleness_max);
  }
}

/* Slots that are never free: rounding does not put more than all of them in use. */
TEST(full_slots_are_all_in_use) {
  schedule s = sim_must_build("{preset: verl_async, samplers: 1, concurrency: 3, lengths: 7, "
                              "max_tokens: 9, tokens_per_s: 0.3, ahead: 99, learner: {step: 0.1, "
                              "batches: 1}}",
                              1, 30);
  CU_ASSERT(s.slot_utilisation <= 1);
  ASSERT_CLOSE(s.slot_utilisation, 1, 1e-12);
}

static double harmonic(size_t n) {
  double h = 0;
  for (size_t k = 1; k <= n; ++k) h += 1 / (double)k;
  return h;
}

/* The largest of n exponential lengths of mean m has the mean m (1 + 1/2 + … + 1/n) and the
 * variance m^2 (1 + 1/4 + …), below 1.65 m^2. A group takes the largest of its own 8 lengths, and a
 * synchronous update that of all 64. The seed is fixed; four standard errors. */
TEST(a_group_takes_the_longest_of_its_responses) {
  enum { UPDATES = 1500 };
  schedule s =
      sim_must_build("{preset: sync, samplers: 1, unit: group, tokens_per_s: 1, "
                     "lengths: {distribution: exponential, mean: 3000}, learner: {step: 5}}",
                     3, UPDATES);
  double sum = 0, longest = 0;
  for (size_t i = 0; i < s.n_batches; ++i) {
    sum += s.batches[i].generated_s - s.batches[i].start_s;
    longest += s.batches[i].longest;
  }
  const double n = (double)s.n_batches, deviation = 3000 * sqrt(1.65);
  CU_ASSERT_EQUAL(s.n_batches, UPDATES * BATCH / GROUP);
  ASSERT_CLOSE(sum / n, longest / n, 1e-9);
  CU_ASSERT(fabs(sum / n - 3000 * harmonic(GROUP)) < 4 * deviation / sqrt(n));
  CU_ASSERT(fabs(s.clock.simulated_s / UPDATES - 5 - 3000 * harmonic(BATCH)) <
            4 * deviation / sqrt(UPDATES));
}

/* Slots that are never idle decode concurrency x tokens_per_s tokens a second, and responses leave
 * at that over their mean length. Four standard errors of the mean of as many exponential lengths.
 */
TEST(full_slots_make_as_many_responses_as_they_have_tokens) {
  schedule s =
      sim_must_build("{preset: fifo, samplers: 3, unit: response, partial: continue, "
                     "concurrency: 20, tokens_per_s: 5, lengths: {distribution: exponential, mean: "
                     "800}, learner: {step: 0.001}}",
                     5, 400);
  ASSERT_CLOSE(s.slot_utilisation, 1, 1e-9);
  CU_ASSERT_EQUAL(s.clock.sampler_utilisation, 1);
  CU_ASSERT_EQUAL(s.clock.batches_trained, 400 * BATCH);
  const double rate = 3 * 20 * 5.0 / 800;
  CU_ASSERT(fabs(s.clock.samples_per_s / rate - 1) < 4 / sqrt(400 * BATCH));
}

/* --- books --- */

static const char trouble[] =
    "lengths: {distribution: lognormal, mu: 5, sigma: 1}, prompt_lengths: {distribution: "
    "lognormal, mu: 0, sigma: "
    "0.5}, "
    "tokens_per_s: 5, concurrency: 12, mtbf: {distribution: exponential, mean: 900}, mttr: 60, "
    "up: {loss: 0.3, max_retries: 1}, rollout_bytes: 640, bytes_per_token: 0.5, "
    "delay: {distribution: exponential, mean: 40}, down: {loss: 0.4, max_retries: 0, bandwidth: "
    "1e5}, "
    "weights_bytes: 1500, jitter: {distribution: uniform, min: 0.5, max: 2}";

static const char *const rules[] = {"preset: sync, samplers: 4",
                                    "preset: areal",
                                    ("preset: areal, interrupt: 3, prefill_tokens_per_s: 300, "
                                     "prompt_tokens: 20"),
                                    "preset: areal, partial: wait, window: 1",
                                    "preset: one_step_off, samplers: 3, partial: drop",
                                    "preset: fifo, window: 3",
                                    "preset: lifo, window: 5, partial: continue",
                                    "preset: fifo, window: 3, partial: drop",
                                    "preset: heterorl, window: 4"};
enum { RULES = sizeof rules / sizeof *rules };

TEST(units_and_waiting_times_balance_under_every_rule) {
  for (size_t i = 0; i < 2 * RULES; ++i) {
    char text[1000];
    const char *unit = i % 2 ? "group" : "response";
    snprintf(text, sizeof text, "{%s, unit: %s, %s, learner: {step: 20%s}}", rules[i / 2], unit,
             trouble, i / 2 == 5 ? ", capacity: 80" : "");
    schedule s = sim_must_build(text, 5, 150);
    const double accounted = s.clock.batches_trained + s.clock.batches_dropped +
                             s.clock.batches_lost + (double)s.pending;
    CU_ASSERT_EQUAL((double)s.begun, accounted);
    if ((double)s.begun != accounted) fprintf(stderr, "%s: %s\n", unit, rules[i / 2]);
    CU_ASSERT(s.clock.batches_lost > 10);
    ASSERT_CLOSE(s.waited_s / s.waiting_integral_s, 1, 1e-9);
    CU_ASSERT(s.slot_utilisation > 0 && s.slot_utilisation <= 1);
    CU_ASSERT(s.slot_utilisation <= s.clock.sampler_utilisation + 1e-12);
    CU_ASSERT((s.aborted > 0) == (strstr(rules[i / 2], "drop") != NULL));
  }
}

/* A unit's segments cover each of its responses once, in versions that do not fall; all of one
 * version are one segment. */
TEST(segments_cover_every_response_once) {
  char text[1000];
  snprintf(text, sizeof text, "{preset: areal, unit: group, %s, learner: {step: 20}}", trouble);
  schedule s = sim_must_build(text, 7, 150);
  size_t mixed = 0;
  for (size_t i = 0; i < s.n_batches; ++i) {
    const schedule_batch *b = &s.batches[i];
    const schedule_segment *segment = &s.segments[b->first_segment];
    if (b->n_segments == 1) {
      CU_ASSERT(segment->response == SEGMENT_OF_ALL && segment->from == 0 && segment->to == 1);
      continue;
    }
    double reached[GROUP] = {0};
    int64_t version[GROUP] = {0};
    for (size_t k = 0; k < b->n_segments; ++k) {
      const int64_t r = segment[k].response;
      CU_ASSERT_FATAL(r >= 0 && r < GROUP);
      CU_ASSERT(segment[k].from == reached[r] && segment[k].to > reached[r]);
      CU_ASSERT(segment[k].version >= version[r] && segment[k].version >= segment[0].version);
      reached[r] = segment[k].to;
      version[r] = segment[k].version;
    }
    for (size_t r = 0; r < GROUP; ++r) CU_ASSERT_EQUAL(reached[r], 1);
    ++mixed;
  }
  CU_ASSERT(mixed > 100);
}

/* With wait and drop a unit is of one version, and that is the one its sampler had at its start. */
TEST(waiting_and_dropping_leave_units_of_one_version) {
  for (int drop = 0; drop < 2; ++drop) {
    char text[1000];
    snprintf(text, sizeof text, "{preset: fifo, unit: group, partial: %s, %s, learner: {step: 20}}",
             drop ? "drop" : "wait", trouble);
    schedule s = sim_must_build(text, 7, 150);
    for (size_t i = 0; i < s.n_batches; ++i) CU_ASSERT_EQUAL(s.batches[i].n_segments, 1);
    CU_ASSERT_EQUAL(s.n_segments, s.n_batches);
  }
}

/* Responses of one group, sent one by one, have one prompt: their lengths share its factor. */
TEST(prompts_are_slow_for_all_their_responses) {
  static const char *const units[] = {"batch", "group", "response"};
  for (size_t i = 0; i < 3; ++i) {
    char text[400];
    snprintf(text, sizeof text,
             "{preset: sync, unit: %s, lengths: 100, prompt_lengths: {distribution: uniform, min: "
             "1, max: 9}}",
             units[i]);
    schedule s = sim_must_build(text, 1, 20);
    double sum = 0;
    for (size_t k = 0; k < s.n_batches; ++k) sum += s.batches[k].tokens;
    for (size_t k = 0; i == 1 && k < s.n_batches; ++k)
      CU_ASSERT_EQUAL(s.batches[k].tokens, GROUP * s.batches[k].longest);
    for (size_t k = 0; i == 2 && k + GROUP <= s.n_batches; k += GROUP) { /* in their order */
      double low = INFINITY, high = 0;
      for (size_t b = 0; b < s.n_batches; ++b)
        if ((s.batches[b].id & UINT32_MAX) / GROUP == k / GROUP) {
          low = fmin(low, s.batches[b].tokens);
          high = fmax(high, s.batches[b].tokens);
        }
      CU_ASSERT_EQUAL(low, high);
    }
    const double responses = 20 * BATCH, mean = sum / responses;
    CU_ASSERT(fabs(mean - 500) < 4 * 800 / sqrt(12 * responses / GROUP));
  }
}

/* --- updates that are counted in tokens --- */

TEST(an_update_of_tokens_takes_units_until_it_has_them) {
  static const char *const queues[] = {"fifo", "lifo", "oldest_version", "heterorl"};
  for (size_t i = 0; i < 8; ++i) {
    char text[600];
    snprintf(text, sizeof text,
             "{preset: fifo, unit: %s, lengths: {distribution: exponential, mean: 300}, window: 6, "
             "learner: "
             "{tokens: 20000, queue: %s, step: 3}}",
             i < 4 ? "group" : "batch", queues[i % 4]);
    schedule s = sim_must_build(text, 2, 100);
    size_t fewest = SIZE_MAX, most = 0;
    for (size_t u = 0; u < s.n_updates; ++u) {
      double tokens = 0, last = 0;
      const schedule_update *update = &s.updates[u];
      for (size_t k = 0; k < update->n_batches; ++k)
        tokens += last = s.batches[update->first_batch + k].tokens;
      CU_ASSERT(tokens >= 20000 && tokens - last < 20000);
      if (update->n_batches < fewest) fewest = update->n_batches;
      if (update->n_batches > most) most = update->n_batches;
    }
    CU_ASSERT(i >= 4 || fewest < most);
  }
}

/* --- with a learner at its side --- */
static gl_status draw(void *self, const schedule_batch *b, int64_t version, double *lengths,
                      gl_error *err) {
  const cluster_spec *const *spec = self;
  (void)version, (void)err;
  size_t n = GROUP * cluster_unit_groups(*spec, BATCH / GROUP);
  for (size_t k = 0; k < n; ++k) lengths[k] = 17 + (double)(b->id & 7);
  return GL_OK;
}

static void discard(void *self, const schedule_batch *b, unit_fate fate) {
  (void)self, (void)b, (void)fate;
}

static gl_status update(void *self, const schedule_update *u, const schedule_batch *batches,
                        bool *stop, gl_error *err) {
  (void)self, (void)u, (void)err;
  for (size_t k = 0; k < u->n_batches; ++k)
    CU_ASSERT_EQUAL(batches[k].tokens, GROUP * (17 + (double)(batches[k].id & 7)));
  *stop = 0;
  return GL_OK;
}

static gl_status hold(void *self, int64_t version, gl_error *err) {
  (void)self, (void)version, (void)err;
  return GL_OK;
}

static void release(void *self, int64_t version) {
  (void)self, (void)version;
}

TEST(a_coupled_clock_asks_for_the_lengths_of_every_unit) {
  schedule s, again;
  cluster_spec *spec = NULL;
  gl_error err = {0};
  for (int drop = 0; drop < 2; ++drop) {
    const schedule_hooks hooks = {&spec, draw, discard, update, hold, release, NULL, NULL};
    CU_ASSERT_FATAL(
        sim_build(&s, &spec,
                  drop ? "{preset: one_step_off, samplers: 2, unit: group, coupled: true, "
                         "partial: drop, lengths: 17, concurrency: 20}"
                       : "{preset: fifo, unit: group, coupled: true, lengths: 17}",
                  1, 30, &err) == GL_OK);
    CU_ASSERT_FATAL(schedule_build_coupled(&again, spec, 1, 30, &hooks, &err) == GL_OK);
    CU_ASSERT_EQUAL(again.n_updates, 30);
    CU_ASSERT(again.n_batches == s.n_batches && again.clock.simulated_s > s.clock.simulated_s);
    schedule_fini(&again);
  }
}

/* --- what does not go together --- */
TEST(what_does_not_stream_is_refused) {
  sim_must_refuse("{unit: token, lengths: 5}");
  sim_must_refuse("{unit: group}");
  sim_must_refuse("{unit: group, lengths: 5, generation: 9}");
  sim_must_refuse("{unit: group, lengths: 5, batching: padded}");
  sim_must_refuse("{unit: group, lengths: 5, in_flight: true}");
  sim_must_refuse("{partial: wait, lengths: 5}");
  sim_must_refuse("{unit: group, lengths: 5, preset: heterorl, partial: drop}");
  sim_must_refuse("{unit: group, lengths: 5, samples_per_batch: 12}");
  sim_must_refuse("{coupled: true, preset: areal}");
  sim_must_refuse("{unit: group, lengths: 5, learner: {capacity: 7}}");
  sim_must_refuse("{preset: fifo, learner: {tokens: 100}}");
  sim_must_refuse("{preset: fifo, lengths: 5, learner: {tokens: 100, batches: 2}}");
  sim_must_refuse("{preset: areal, lengths: 5, learner: {tokens: 100}}");
  sim_must_refuse("{preset: fifo, lengths: 5, learner: {tokens: 100, capacity: 4}}");
}
