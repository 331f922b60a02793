/* Units that are cancelled in flight because they have become too stale: by hand, and the books. */
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

SUITE("sim: cancelling");

/* An update trains one response and takes 1 s. The fast sampler ends one every 10 s, the slow one
 * would need 1,000 s. Update k ends at 10 k + 1 s, and at the end of the third the slow response is
 * three versions old, with a window of two. So one is cancelled at 31, 61, 91, ... s. */
static const char form[] = "{preset: fifo, samplers: [{lengths: 10}, {lengths: 1000}], unit: "
                           "response, samples_per_batch: 1, concurrency: 1, tokens_per_s: 1, "
                           "window: 2, %slearner: {batches: 1, step: 1}}";

static schedule build(const char *more, size_t updates) {
  char text[512];
  snprintf(text, sizeof text, form, more);
  return sim_must_build(text, 1, updates);
}

TEST(what_is_too_old_gives_its_slot_back) {
  schedule s = build("cancel_stale: true, ", 31);
  CU_ASSERT_EQUAL(s.updates[30].end_s, 311);
  CU_ASSERT_EQUAL(s.aborted, 10);
  CU_ASSERT_EQUAL(s.fate[FATE_ABORTED].tokens, 10000);
  CU_ASSERT_EQUAL(s.fate[FATE_STALE].units, 0);
  CU_ASSERT_EQUAL(s.begun, 31 + 10 + 2);
}

TEST(without_it_the_slot_is_taken_until_the_end) {
  schedule s = build("", 110);
  CU_ASSERT_EQUAL(s.aborted, 0);
  CU_ASSERT_EQUAL(s.fate[FATE_STALE].units, 1);
  CU_ASSERT_EQUAL(s.begun, 110 + 1 + 2);
}

typedef struct ends {
  size_t n;
  double last_s;
} ends;

static void note_end(void *self, const schedule_span *s) {
  ends *e = self;
  if (s->kind != SPAN_GENERATION || s->end != SPAN_DROPPED) return;
  ++e->n;
  CU_ASSERT_EQUAL(s->to_s, 30 * (double)e->n + 1);
  CU_ASSERT_EQUAL(s->from_s, e->last_s);
  e->last_s = s->to_s;
}

TEST(a_trace_shows_when) {
  char text[512];
  schedule s, traced;
  cluster_spec *spec;
  ends e = {0};
  const schedule_trace trace = {&e, note_end};
  snprintf(text, sizeof text, form, "cancel_stale: true, ");
  ASSERT_OK(sim_build(&s, &spec, text, 1, 31, &err));
  ASSERT_OK(schedule_build_traced(&traced, spec, 1, 31, &trace, &err));
  CU_ASSERT_EQUAL(e.n, 10);
  schedule_fini(&traced);
}

/* Whatever the rules, no response begins its training staler than the window, everything started
 * has a fate, and cancelling leaves less that was finished in vain. */
TEST(books_balance_where_units_are_cancelled) {
  static const char *const clusters[] = {
      "preset: fifo, samplers: 3, unit: group, partial: continue, interrupt: 2, delay: 3",
      "preset: fifo, samplers: 3, unit: group, partial: wait, delay: 3",
      "preset: fifo, samplers: 3, unit: group, sync: pull, delay: 30",
      "preset: prime_rl, samplers: 3, mtbf: {distribution: exponential, mean: 500}, mttr: 50",
      "preset: lifo, samplers: 3, unit: response, partial: continue, prompt_lengths: "
      "{distribution: "
      "lognormal, mu: 0, sigma: 0.7}, restarts: {every: 400, down: 20, keeps: queue}"};
  for (size_t i = 0; i < sizeof clusters / sizeof *clusters; ++i) {
    schedule s[2];
    for (int cancels = 0; cancels < 2; ++cancels) {
      char text[768];
      snprintf(text, sizeof text,
               "{%s, window: 2, cancel_stale: %s, concurrency: 16, lengths: {distribution: "
               "lognormal, mu: "
               "5.5, sigma: 1}, tokens_per_s: 20, learner: {batches: 1, step: 4}}",
               clusters[i], cancels ? "true" : "false");
      s[cancels] = sim_must_build(text, 5, 200);
      uint64_t units = 0;
      double tokens = 0;
      for (int f = 0; f < FATES; ++f) units += s[cancels].fate[f].units;
      for (size_t k = 0; k < s[cancels].n_batches; ++k) tokens += s[cancels].batches[k].tokens;
      CU_ASSERT_EQUAL(units, s[cancels].begun);
      CU_ASSERT_EQUAL(s[cancels].fate[FATE_PENDING].units, s[cancels].pending);
      ASSERT_CLOSE(s[cancels].fate[FATE_TRAINED].tokens, tokens, 1e-6);
      ASSERT_CLOSE(s[cancels].waited_s, s[cancels].waiting_integral_s, 1e-9);
      CU_ASSERT(s[cancels].clock.staleness_max <= 2);
      CU_ASSERT(s[cancels].slot_utilisation > 0 && s[cancels].slot_utilisation <= 1);
    }
    CU_ASSERT_EQUAL(s[0].aborted, 0);
    CU_ASSERT(s[1].aborted > 0);
    CU_ASSERT(s[1].fate[FATE_STALE].units < s[0].fate[FATE_STALE].units);
  }
}

TEST(cancelling_needs_a_window_and_what_streams) {
  sim_must_refuse("{preset: fifo, unit: group, lengths: 9, cancel_stale: true}");
  sim_must_refuse("{preset: fifo, window: 2, cancel_stale: true}");
  sim_must_refuse("{preset: fifo, unit: group, lengths: 9, window: 2, stale: downweight, "
                  "cancel_stale: true}");
  sim_must_refuse("{preset: fifo, unit: group, lengths: 9, window: 2, cancel_stale: 2}");
}
