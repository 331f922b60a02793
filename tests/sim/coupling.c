/* A clock with a learner at its side: the learner is told what to do in time and asked for no
 * version that it need not keep. */
#include "core/random/rng.h"
#include "sim/clock.h"
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("sim: coupled clock");

enum { UPDATES = 120, RESPONSES = 10, MOST_BATCHES = 4096 };

/* A learner that does nothing but watch that the rules of schedule_hooks are kept. */
typedef struct watcher {
  int64_t version;
  int held[UPDATES + 1];
  size_t n_held, most_held, n_holds;
  unsigned char waits[MOST_BATCHES]; /* 1: begun, 2: discarded, 3: trained */
  uint64_t begun, discarded, trained;
  int faults;
  int64_t stop_at;                             /* update that ends the clock; 0: none */
  uint64_t fail_at;                            /* batch at which drawing fails; 0: none */
  double (*length)(uint64_t, size_t, int64_t); /* of response k of a batch of a version */
  double tokens[MOST_BATCHES], bytes_per_token;
  uint32_t *drawn; /* of rounds of two responses; NULL: none is told of */
  size_t rounds;
} watcher;

static gl_status draw(void *self, const schedule_batch *b, int64_t version, double *lengths,
                      gl_error *err) {
  watcher *w = self;
  if (w->fail_at != 0 && b->number == w->fail_at) return gl_fail(err, GL_EIO, "no more");
  w->faults += b->number != w->begun || b->number >= MOST_BATCHES;
  w->faults += version != w->version && (version < 0 || version > w->version || !w->held[version]);
  w->waits[w->begun++ % MOST_BATCHES] = 1;
  double sum = 0;
  for (size_t k = 0; k < RESPONSES; ++k) sum += lengths[k] = w->length(b->id, k, version);
  w->tokens[b->number % MOST_BATCHES] = sum;
  return GL_OK;
}

static void rounds(void *self, const schedule_batch *b, schedule_rounds *out) {
  const watcher *w = self;
  (void)b;
  *out = (schedule_rounds){.n = w->rounds, .responses = 2, .lengths = w->drawn};
}

static void discard(void *self, const schedule_batch *b, unit_fate fate) {
  watcher *w = self;
  w->faults += fate == FATE_TRAINED || fate == FATE_PENDING;
  w->faults += w->waits[b->number % MOST_BATCHES] != 1;
  w->waits[b->number % MOST_BATCHES] = 2;
  ++w->discarded;
}

static gl_status update(void *self, const schedule_update *u, const schedule_batch *batches,
                        bool *stop, gl_error *err) {
  watcher *w = self;
  (void)err;
  w->faults += u->version != w->version;
  for (size_t i = 0; i < u->n_batches; ++i) {
    w->faults += w->waits[batches[i].number % MOST_BATCHES] != 1;
    w->faults += batches[i].tokens != w->tokens[batches[i].number % MOST_BATCHES];
    w->faults += batches[i].bytes != w->bytes_per_token * batches[i].tokens;
    w->waits[batches[i].number % MOST_BATCHES] = 3;
    ++w->trained;
  }
  ++w->version;
  *stop = w->version == w->stop_at;
  return GL_OK;
}

static gl_status hold(void *self, int64_t version, gl_error *err) {
  watcher *w = self;
  (void)err;
  w->faults += version != w->version || w->held[version];
  w->held[version] = 1;
  ++w->n_holds;
  if (++w->n_held > w->most_held) w->most_held = w->n_held;
  return GL_OK;
}

static void release(void *self, int64_t version) {
  watcher *w = self;
  w->faults += !w->held[version];
  w->held[version] = 0;
  --w->n_held;
}

static double five(uint64_t id, size_t k, int64_t version) {
  (void)id, (void)k, (void)version;
  return 5;
}

/* Lengths that fall as the policy learns, and differ. */
static double falling(uint64_t id, size_t k, int64_t version) {
  rng_words w = rng_block(rng_stream_at(1, RNG_TEST, id), k);
  return 1 + floor(rng_u01(w.v[0]) * (200 - (double)version));
}

static gl_status run_coupled(schedule *s, watcher *w, const char *text, gl_error *err) {
  const schedule_hooks hooks = {
      w, draw, discard, update, hold, release, w->drawn != NULL ? rounds : NULL, NULL};
  cfg_doc *doc = NULL;
  cluster_spec *spec = NULL;
  *s = (schedule){0};
  CU_ASSERT_FATAL(cfg_load_text(&doc, text, strlen(text), "cluster.yaml", err) == GL_OK);
  gl_status status = cluster_parse(&spec, cfg_root(doc), 1, RESPONSES, err);
  if (status == GL_OK) status = schedule_build_coupled(s, spec, 3, UPDATES, &hooks, err);
  cluster_free(spec);
  cfg_free(doc);
  return status;
}

static int same_schedule(const schedule *a, const schedule *b) {
  return a->n_updates == b->n_updates && a->n_batches == b->n_batches &&
         a->n_segments == b->n_segments && a->n_staleness == b->n_staleness &&
         memcmp(a->updates, b->updates, a->n_updates * sizeof *a->updates) == 0 &&
         memcmp(a->batches, b->batches, a->n_batches * sizeof *a->batches) == 0 &&
         memcmp(a->segments, b->segments, a->n_segments * sizeof *a->segments) == 0 &&
         memcmp(a->staleness, b->staleness, a->n_staleness * sizeof *a->staleness) == 0 &&
         memcmp(&a->clock, &b->clock, sizeof a->clock) == 0 && a->begun == b->begun &&
         a->pending == b->pending && a->waited_s == b->waited_s &&
         a->waiting_integral_s == b->waiting_integral_s;
}

#define TROUBLE                                                                                    \
  "mtbf: {distribution: exponential, mean: 4000}, mttr: 60, rollout_bytes: 0, bytes_per_token: "   \
  "4, "                                                                                            \
  "delay: {distribution: exponential, mean: 40}, weights_bytes: 1500, jitter: {distribution: "     \
  "uniform, min: 0.5, "                                                                            \
  "max: "                                                                                          \
  "2}, up: {loss: 0.3, max_retries: 1, bandwidth: 1e4}, down: {loss: 0.4, max_retries: 0, "        \
  "bandwidth: 1e5}, tokens_per_s: 1, concurrency: 4"

static const struct {
  const char *rules;
  size_t most_held; /* versions at once */
} clusters[] = {
    {"preset: sync", 0}, /* the gate is shut to what it leaves */
    {"preset: sync, samplers: 3, learner: {batches: 5}", 0},
    {"preset: one_step_off, samplers: 3", 1},
    {"preset: areal, in_flight: false", 4},
    {"preset: fifo, learner: {step: 60, capacity: 6}", 12},
    {"preset: lifo, samplers: [{count: 4}, {count: 2, speed: 0.2}]", 16},
    {"preset: heterorl, window: 8, max_delay: 600", 12},
    {"preset: heterorl, " TROUBLE, 12},
    {"preset: fifo, samplers: 6, " TROUBLE, 40},
    {"preset: areal, in_flight: false, window: 1, " TROUBLE, 4},
    {"preset: areal, in_flight: false, samplers: [{count: 5, batching: padded, concurrency: 3}], "
     "learner: {publish_every: 3, batches: 2}",
     4},
};
enum { CLUSTERS = sizeof clusters / sizeof *clusters };

/* Batches of about 100 s where the rules leave the speed open. */
static const char *speed(const char *rules, int real) {
  if (strstr(rules, "tokens_per_s") != NULL) return "shared_delays: false";
  return real ? "tokens_per_s: 1" : "tokens_per_s: 0.05";
}

TEST(known_lengths_give_the_schedule_of_their_dist) {
  for (size_t i = 0; i < CLUSTERS; ++i) {
    char text[1000];
    watcher w = {.length = five};
    gl_error err = {0};
    schedule s;
    snprintf(text, sizeof text, "{%s, %s, lengths: 5, coupled: true}", clusters[i].rules,
             speed(clusters[i].rules, 0));
    if (strstr(clusters[i].rules, "bytes_per_token") != NULL) w.bytes_per_token = 4;
    CU_ASSERT(run_coupled(&s, &w, text, &err) == GL_OK);
    if (err.text[0] != '\0') fprintf(stderr, "%s: %s\n", text, err.text);
    snprintf(text, sizeof text, "{%s, %s, lengths: 5, samples_per_batch: %d}", clusters[i].rules,
             speed(clusters[i].rules, 0), RESPONSES);
    schedule dist = sim_must_build(text, 3, UPDATES);
    CU_ASSERT(same_schedule(&s, &dist));
    schedule_fini(&s);
  }
}

TEST(versions_are_held_while_they_can_be_drawn_from_and_no_longer) {
  for (size_t i = 0; i < CLUSTERS; ++i) {
    char text[1000];
    watcher w = {.length = falling};
    schedule s;
    snprintf(text, sizeof text, "{%s, %s, coupled: true}", clusters[i].rules,
             speed(clusters[i].rules, 1));
    if (strstr(clusters[i].rules, "bytes_per_token") != NULL) w.bytes_per_token = 4;
    ASSERT_OK(run_coupled(&s, &w, text, &err));
    CU_ASSERT_EQUAL(w.faults, 0);
    CU_ASSERT_EQUAL(w.n_held, 0);
    CU_ASSERT_EQUAL(w.version, UPDATES);
    CU_ASSERT(w.most_held <= clusters[i].most_held);
    CU_ASSERT((w.n_holds > 0) == (clusters[i].most_held > 0));
    if (w.most_held > clusters[i].most_held)
      fprintf(stderr, "%s: held %zu\n", clusters[i].rules, w.most_held);
    CU_ASSERT_EQUAL(w.begun, s.begun);
    CU_ASSERT_EQUAL(w.trained, s.n_batches);
    CU_ASSERT_EQUAL((double)w.discarded, s.clock.batches_dropped + s.clock.batches_lost);
    CU_ASSERT_EQUAL(s.begun, w.trained + w.discarded + s.pending);
    schedule_fini(&s);
  }
}

/* One sampler that decodes all its responses at once: a batch takes as long as its longest. */
TEST(lengths_drive_the_clock) {
  watcher w = {.length = falling};
  gl_error err = {0};
  schedule s;
  CU_ASSERT_FATAL(
      run_coupled(&s, &w, "{coupled: true, tokens_per_s: 2, learner: {step: 30}}", &err) == GL_OK);
  double now = 0;
  for (size_t u = 0; u < s.n_updates; ++u) {
    double longest = 0;
    for (size_t k = 0; k < RESPONSES; ++k)
      longest = fmax(longest, falling(s.batches[u].id, k, (int64_t)u));
    CU_ASSERT_EQUAL(s.batches[u].start_s, now);
    ASSERT_CLOSE(s.updates[u].start_s, now + longest / 2, 1e-12);
    now = s.updates[u].end_s;
  }
  schedule_fini(&s);
}

/* Rounds of 6 and 10, 40 and 2, 8 and 8 tokens on two slots of 2 tokens a second take 5, 20 and 4
 * s, and 3 s each besides, whatever is sent. */
TEST(rounds_follow_one_another) {
  uint32_t lengths[] = {6, 10, 40, 2, 8, 8};
  watcher w = {.length = five, .drawn = lengths, .rounds = 3, .bytes_per_token = 4};
  schedule s;
  ASSERT_OK(run_coupled(&s, &w,
                        "{coupled: true, tokens_per_s: 2, concurrency: 2, generation: 3, "
                        "bytes_per_token: 4, learner: {step: 30}}",
                        &err));
  CU_ASSERT_EQUAL(w.faults, 0);
  for (size_t u = 0; u < s.n_updates; ++u)
    ASSERT_CLOSE(s.batches[u].generated_s - s.batches[u].start_s, 5 + 20 + 4 + 9, 1e-12);
  CU_ASSERT_EQUAL(s.rounds, 3 * s.begun);
  CU_ASSERT_EQUAL(s.drawn_responses, 6 * s.begun);
  schedule_fini(&s);
  w = (watcher){.length = five};
  ASSERT_OK(run_coupled(&s, &w, "{coupled: true, tokens_per_s: 2}", &err));
  CU_ASSERT(s.rounds == s.begun && s.drawn_responses == RESPONSES * s.begun);
  schedule_fini(&s);
}

TEST(a_hook_can_end_the_clock_or_fail) {
  watcher w = {.length = falling, .stop_at = 40};
  gl_error err = {0};
  schedule s;
  const char *text = "{preset: heterorl, max_delay: 300, coupled: true}";
  CU_ASSERT_FATAL(run_coupled(&s, &w, text, &err) == GL_OK);
  CU_ASSERT(s.n_updates == 40 && s.n_batches == 40 && w.faults == 0 && w.n_held == 0);
  CU_ASSERT_EQUAL(s.clock.simulated_s, s.updates[39].end_s);
  CU_ASSERT_EQUAL(s.begun, w.trained + w.discarded + s.pending);
  uint64_t counted = 0;
  for (size_t i = 0; i < s.n_staleness; ++i) counted += s.staleness[i];
  CU_ASSERT_EQUAL(counted, 40);
  schedule_fini(&s);
  w = (watcher){.length = falling, .fail_at = 50};
  CU_ASSERT(run_coupled(&s, &w, text, &err) == GL_EIO);
  CU_ASSERT_STRING_EQUAL(err.text, "no more");
  CU_ASSERT(s.updates == NULL && w.n_held == 0 && w.faults == 0);
}

TEST(costs_of_known_lengths_follow_the_batching) {
  const double lengths[] = {4, 1, 2, 7, 3};
  response_spec spec = {.tokens_per_s = 2, .concurrency = 2, .max_tokens = 3};
  event_queue slots;
  response_cost cost;
  eq_init(&slots);
  CU_ASSERT(response_known(&cost, &spec, &slots, lengths, 5));
  CU_ASSERT(cost.tokens == 17 && cost.seconds == 5); /* slots: 4 3 | 1 2 7 */
  spec.batching = BATCHING_PADDED;
  CU_ASSERT(response_known(&cost, &spec, &slots, lengths, 5));
  CU_ASSERT(cost.tokens == 17 && cost.seconds == 7); /* waves: 4 7 3 */
  eq_fini(&slots);
}

TEST(what_cannot_be_coupled_is_refused) {
  sim_must_refuse("{coupled: true, in_flight: true}");
  sim_must_refuse("{coupled: true, preset: areal}");
  sim_must_refuse("{coupled: maybe}");
  sim_must_refuse("{coupled: true, samples_per_batch: 3}");
}
