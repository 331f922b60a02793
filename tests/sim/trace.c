/* What a trace is told of a clock, against the schedule and its counts: spans of a sampler leave no
 * gap and do not overlap, and times add up. */
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("sim: traces");

enum { MOST = 40000, SAMPLERS = 5 };

typedef struct told {
  schedule_span span[MOST];
  size_t n;
} told;

static void hear(void *self, const schedule_span *s) {
  told *t = self;
  if (t->n < MOST) t->span[t->n] = *s;
  t->n++;
}

/* With everything that can happen: slow links that lose messages, crashes, a full queue, pauses. */
static const char busy[] =
    "{preset: %s, samplers: 5, generation: {distribution: lognormal, mu: 3, sigma: 1}, "
    "mtbf: {distribution: exponential, mean: 900}, mttr: 40, delay: {distribution: uniform, min: "
    "1, max: 30}, "
    "data_delay: 2, weights_bytes: 2e6, rollout_bytes: 1e6, "
    "down: {bandwidth: 1e6, loss: 0.001}, up: {bandwidth: 2e5, loss: 0.002, max_retries: 0}, "
    "learner: {capacity: 3, step: {distribution: exponential, mean: 9}, eval_every: 16, "
    "eval_pause: 100}}";

static told *listen(const char *preset, schedule *s, schedule *silent) {
  char text[700];
  cluster_spec *spec;
  gl_error err = {0};
  told *t = calloc(1, sizeof *t);
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  snprintf(text, sizeof text, busy, preset);
  const schedule_trace trace = {t, hear};
  const gl_status status = sim_build(silent, &spec, text, 3, 300, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  CU_ASSERT_EQUAL_FATAL(schedule_build_traced(s, spec, 3, 300, &trace, &err), GL_OK);
  CU_ASSERT_EQUAL(cluster_samplers(spec), SAMPLERS);
  CU_ASSERT_FATAL(t->n < MOST);
  return t;
}

static size_t count(const told *t, span_kind kind, span_end end) {
  size_t n = 0;
  for (size_t i = 0; i < t->n; i++) n += t->span[i].kind == kind && t->span[i].end == end;
  return n;
}

static double length(const told *t, span_kind kind) {
  double sum = 0;
  for (size_t i = 0; i < t->n; i++)
    if (t->span[i].kind == kind) sum += t->span[i].to_s - t->span[i].from_s;
  return sum;
}

/* The states of a sampler follow each other from 0 to the end. */
static void states_tile(const told *t, uint32_t sampler, double end) {
  double now = 0;
  size_t states = 0;
  for (size_t i = 0; i < t->n; i++) {
    const schedule_span *s = &t->span[i];
    if (s->sampler != sampler || s->kind > SPAN_DOWN) continue;
    CU_ASSERT_EQUAL(s->from_s, now);
    now = s->to_s;
    states++;
  }
  CU_ASSERT_EQUAL(now, end);
  CU_ASSERT(states > 50);
}

static void check(const char *preset) {
  schedule s, silent;
  told *t = listen(preset, &s, &silent);
  const double end = s.clock.simulated_s;
  CU_ASSERT_EQUAL_FATAL(s.n_batches, silent.n_batches);
  CU_ASSERT_EQUAL(memcmp(s.batches, silent.batches, s.n_batches * sizeof *s.batches), 0);
  for (uint32_t i = 0; i < SAMPLERS; i++) states_tile(t, i, end);
  ASSERT_CLOSE(length(t, SPAN_GENERATION), s.clock.sampler_utilisation * end * SAMPLERS, 1e-9);
  /* The learner: trained, waited and paused is all it did until the last update's end. */
  CU_ASSERT_EQUAL(count(t, SPAN_TRAINING, SPAN_DONE), s.n_updates);
  ASSERT_CLOSE(length(t, SPAN_TRAINING), s.clock.learner_utilisation * end, 1e-9);
  ASSERT_CLOSE(length(t, SPAN_TRAINING) + length(t, SPAN_IDLE) + length(t, SPAN_EVALUATION), end,
               1e-9);
  /* Batches: each that arrived was trained, dropped or still waits, and the time that all waited is
   * the clock's. */
  ASSERT_CLOSE(length(t, SPAN_QUEUED), s.waited_s, 1e-9);
  CU_ASSERT_EQUAL((double)count(t, SPAN_QUEUED, SPAN_DROPPED), s.clock.batches_dropped);
  CU_ASSERT(count(t, SPAN_QUEUED, SPAN_DROPPED) > 0 && count(t, SPAN_UPLOAD, SPAN_LOST) > 0);
  CU_ASSERT_EQUAL((double)(count(t, SPAN_UPLOAD, SPAN_DONE) + count(t, SPAN_UPLOAD, SPAN_LOST)),
                  s.clock.batches_generated);
  CU_ASSERT(count(t, SPAN_GENERATION, SPAN_LOST) > 0 && count(t, SPAN_DOWN, SPAN_DONE) > 0);
  for (size_t i = 0; i < t->n; i++) { /* a megabyte at 200 kB/s, and two seconds */
    if (t->span[i].kind != SPAN_UPLOAD) continue;
    CU_ASSERT(t->span[i].to_s - t->span[i].from_s > 7 - 1e-9);
  }
  schedule_fini(&s);
  free(t);
}

TEST(spans_of_weights_that_are_sent_add_up_to_the_schedule) {
  check("fifo");
}

TEST(spans_of_weights_that_are_fetched_add_up_to_the_schedule) {
  check("heterorl");
}

/* One sampler, constant times: the chart can be written down. Generation 4, step 1, nothing else;
 * the sampler begins the next batch at once, the learner waits three seconds in four. */
TEST(a_chart_by_hand) {
  cluster_spec *spec;
  schedule s, silent;
  told *t = calloc(1, sizeof *t);
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  const schedule_trace trace = {t, hear};
  ASSERT_OK(sim_build(&silent, &spec,
                      "{preset: fifo, samplers: 1, generation: 4, learner: {step: 1}}", 1, 2,
                      &err));
  ASSERT_OK(schedule_build_traced(&s, spec, 1, 2, &trace, &err));
  const schedule_span by_hand[] = {
      {SPAN_GENERATION, SPAN_DONE, 0, 0, 4, 0, -1}, {SPAN_IDLE, SPAN_DONE, 0, 0, 4, 0, -1},
      {SPAN_TRAINING, SPAN_DONE, 0, 4, 5, 0, 0},    {SPAN_GENERATION, SPAN_DONE, 0, 4, 8, 1, -1},
      {SPAN_IDLE, SPAN_DONE, 0, 5, 8, 0, -1},       {SPAN_TRAINING, SPAN_DONE, 0, 8, 9, 0, 1},
      {SPAN_GENERATION, SPAN_OPEN, 0, 8, 9, 2, -1}};
  const size_t n = sizeof by_hand / sizeof *by_hand;
  CU_ASSERT_EQUAL(t->n, n);
  for (size_t i = 0; i < n && i < t->n; i++) {
    const schedule_span *a = &t->span[i], *b = &by_hand[i];
    CU_ASSERT(a->kind == b->kind && a->end == b->end && a->sampler == b->sampler);
    CU_ASSERT(a->from_s == b->from_s && a->to_s == b->to_s);
    CU_ASSERT(a->batch == b->batch && a->version == b->version);
  }
  schedule_fini(&s);
  free(t);
}
