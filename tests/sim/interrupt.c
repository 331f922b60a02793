/* Weights that interrupt decoding: against closed forms for constant times, and what a trace is
 * told; a second simulation is compared with in tests/sim/stream.c. */
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>

SUITE("sim: interruptions");

enum { GROUP = 8, BATCH = 64, UPDATES = 40 }; /* the first two of sim_must_build() */

/* --- closed forms --- */

/* One sampler decodes all 64 responses of an update side by side, 300 tokens at 10 a second, and
 * the learner waits for them. While it trains for 7 s the next 64 have begun; its weights come 2 s
 * later, when each has 90 tokens. So a round takes 30 s and what the weights cost. */
TEST(constant_times_give_the_closed_form) {
  static const struct {
    const char *text;
    double seconds, tokens; /* of an interruption */
  } cases[] = {
      {"interrupt: 0", 0, 0},
      {"interrupt: 4", 4, 0},
      {"kv_cache: keep, interrupt: 2.5, prefill_tokens_per_s: 640", 2.5, 0},
      {"prefill_tokens_per_s: 640", 64 * 90 / 640.0, 64 * 90},
      {"prefill_tokens_per_s: 640, prompt_tokens: 30", 64 * 120 / 640.0, 64 * 120},
      {"prefill_tokens_per_s: 640, prompt_tokens: 30, interrupt: 1", 1 + 64 * 120 / 640.0,
       64 * 120},
  };
  for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; ++i) {
    char text[400];
    snprintf(text, sizeof text,
             "{preset: fifo, samplers: 1, unit: %s, partial: continue, lengths: 300, tokens_per_s: "
             "10, concurrency: 64, delay: 2, %s, learner: {step: 7}}",
             i % 2 ? "group" : "response", cases[i / 2].text);
    schedule s = sim_must_build(text, 1, UPDATES);
    const double pause = cases[i / 2].seconds, cost = pause > 0 ? UPDATES - 1 : 0;
    for (size_t u = 1; u < s.n_updates; ++u)
      ASSERT_CLOSE(s.updates[u].start_s, 30 + (double)u * (30 + pause), 1e-9);
    for (size_t k = s.updates[3].first_batch; k < s.n_batches; ++k) {
      const schedule_batch *b = &s.batches[k];
      const size_t responses = i % 2 ? GROUP : 1;
      CU_ASSERT_EQUAL_FATAL(b->n_segments, 2 * responses);
      for (size_t g = 0; g < b->n_segments; ++g) {
        const schedule_segment *segment = &s.segments[b->first_segment + g];
        const int first = segment->from == 0;
        ASSERT_CLOSE(first ? segment->to : segment->from, 9 / 30.0, 1e-9);
      }
    }
    CU_ASSERT_EQUAL(s.interrupts, pause > 0);
    CU_ASSERT_EQUAL((double)s.n_interrupts, cost);
    ASSERT_CLOSE(s.interrupted_s, cost * pause, 1e-6);
    ASSERT_CLOSE(s.recomputed_tokens, cost * cases[i / 2].tokens, 1e-6);
    ASSERT_CLOSE(s.clock.sampler_utilisation, 1 - s.interrupted_s / s.clock.simulated_s, 1e-9);
    ASSERT_CLOSE(s.slot_utilisation, s.clock.sampler_utilisation, 1e-9);
  }
}

/* A batch is interrupted as a whole. */
TEST(a_batch_stands_still_too) {
  schedule s = sim_must_build("{preset: fifo, samplers: 1, in_flight: true, generation: 30, delay: "
                              "2, interrupt: 4, learner: {step: 7}}",
                              1, UPDATES);
  for (size_t u = 1; u < s.n_updates; ++u) {
    const schedule_batch *b = &s.batches[u];
    ASSERT_CLOSE(s.updates[u].start_s, 30 + (double)u * 34, 1e-9);
    CU_ASSERT_EQUAL_FATAL(b->n_segments, 2);
    ASSERT_CLOSE(s.segments[b->first_segment].to, 9 / 30.0, 1e-9);
  }
  ASSERT_CLOSE(s.interrupted_s, 4 * (UPDATES - 1), 1e-9);
}

/* Weights come every 5 s and each takes 7 s to take over: those that come meanwhile wait, the
 * newest is taken over next, and a sampler that is faster in its prefill stands still for less. */
TEST(weights_that_come_meanwhile_are_taken_over_next) {
  schedule s = sim_must_build("{preset: fifo, samplers: [{count: 3}, {count: 1, "
                              "prefill_tokens_per_s: 500}], unit: response, partial: continue, "
                              "lengths: 400, tokens_per_s: 10, concurrency: 32, interrupt: 7, "
                              "delay: 1, learner: {step: 5}}",
                              1, 200);
  CU_ASSERT(s.n_interrupts > 100 && s.recomputed_tokens > 0);
  CU_ASSERT(s.interrupted_s < 4 * s.clock.simulated_s);
  CU_ASSERT(s.interrupted_s > 0.5 * s.clock.simulated_s);
  for (size_t i = 0; i < s.n_segments; ++i) CU_ASSERT(s.segments[i].to > s.segments[i].from);
}

/* What takes no time changes nothing. */
TEST(no_time_is_what_it_was) {
  const char *rest =
      "unit: group, lengths: {distribution: lognormal, mu: 5, sigma: 1}, tokens_per_s: 9, "
      "concurrency: 20, delay: 5, learner: {step: 20}";
  for (size_t i = 0; i < 2; ++i) {
    char plain[400], keeps[400];
    snprintf(plain, sizeof plain, "{preset: areal, %s}", rest);
    snprintf(keeps, sizeof keeps, "{preset: areal, %s, %s}", rest,
             i ? "kv_cache: keep" : "interrupt: 0, prompt_tokens: 90");
    schedule a = sim_must_build(plain, 3, 100), b = sim_must_build(keeps, 3, 100);
    CU_ASSERT_EQUAL_FATAL(a.n_batches, b.n_batches);
    for (size_t k = 0; k < a.n_batches; ++k) {
      CU_ASSERT_EQUAL(a.batches[k].generated_s, b.batches[k].generated_s);
      CU_ASSERT_EQUAL(a.batches[k].n_segments, b.batches[k].n_segments);
    }
    CU_ASSERT(!a.interrupts && !b.interrupts);
  }
}

/* --- traces --- */

typedef struct heard {
  double seconds;
  size_t n, lost;
} heard;

static void hear(void *self, const schedule_span *s) {
  heard *h = self;
  if (s->kind != SPAN_INTERRUPT) return;
  h->seconds += s->to_s - s->from_s;
  ++h->n;
  h->lost += s->end == SPAN_LOST;
}

/* Spans add up to the time that samplers stood still, those that a crash cuts short too. */
TEST(a_trace_is_told_of_every_interruption) {
  cluster_spec *spec = NULL;
  schedule s, again;
  heard h = {0};
  const schedule_trace trace = {&h, hear};
  ASSERT_OK(sim_build(
      &s, &spec,
      "{preset: areal, unit: group, lengths: {distribution: lognormal, mu: 5, sigma: 1}, "
      "tokens_per_s: 5, concurrency: 12, mtbf: {distribution: exponential, mean: 400}, mttr: 60, "
      "interrupt: 9, prefill_tokens_per_s: 300, learner: {step: 20}}",
      5, 150, &err));
  ASSERT_OK(schedule_build_traced(&again, spec, 5, 150, &trace, &err));
  CU_ASSERT(h.n > 100 && h.lost > 0);
  CU_ASSERT_EQUAL((uint64_t)h.n, s.n_interrupts);
  ASSERT_CLOSE(h.seconds, s.interrupted_s, 1e-6);
  schedule_fini(&again);
}

/* --- what does not go together --- */

TEST(what_nothing_interrupts_is_refused) {
  sim_must_refuse("{interrupt: 3}");
  sim_must_refuse("{preset: fifo, unit: group, lengths: 5, partial: wait, interrupt: 3}");
  sim_must_refuse("{preset: fifo, unit: group, lengths: 5, partial: drop, kv_cache: keep}");
  sim_must_refuse("{preset: heterorl, unit: group, lengths: 5, kv_cache: keep}");
  sim_must_refuse("{preset: areal, unit: group, lengths: 5, kv_cache: kept}");
  sim_must_refuse("{preset: areal, unit: group, lengths: 5, interrupt: -1}");
  sim_must_refuse("{preset: areal, lengths: 5, prefill_tokens_per_s: 9}");
  sim_must_refuse("{preset: fifo, unit: group, lengths: 5, samplers: [{prefill_tokens_per_s: 9}]}");
}
