/* The list of future events against one heap of all of them. */
#include "sim/event_queue.h"

#include "core/random/rng.h"
#include "tests/support/suite.h"

#include <math.h>

SUITE("sim: future events");

/* How long after the present an event comes. */
typedef double (*dist)(double u, double v);

static double exponential(double u, double v) {
  (void)v;
  return -log(u);
}
/* From 1e-12 to 1e12. */
static double heavy(double u, double v) {
  return pow(10, 24 * u - 12) * v;
}
static double constant(double u, double v) {
  (void)u, (void)v;
  return 7;
}
/* Moments that many events share, the present one among them. */
static double few(double u, double v) {
  (void)v;
  return floor(3 * u);
}
/* Two crowds, far apart. */
static double apart(double u, double v) {
  return u < 0.5 ? v * 1e-6 : 1e9 + v;
}
static const dist dists[] = {exponential, heavy, constant, few, apart};
enum { DISTS = sizeof dists / sizeof *dists };

typedef struct both {
  event_queue heap;
  future_events list;
  double now;
  uint32_t pushed;
} both;

static void push(both *b, dist after) {
  const rng_words w = rng_block(rng_stream_at(2, RNG_TEST, 0), b->pushed);
  const double time = b->now + after(rng_u01(w.v[0]), rng_u01(w.v[1]));
  const uint32_t rank = w.v[2] % 3, kind = w.v[3];
  CU_ASSERT_FATAL(eq_push(&b->heap, time, rank, kind, b->pushed, w.v[3]));
  CU_ASSERT_FATAL(fel_push(&b->list, time, rank, kind, b->pushed, w.v[3]));
  ++b->pushed;
}

/* 1: both gave the same event, which sets the present. */
static int pop(both *b) {
  const sim_event e = eq_pop(&b->heap);
  sim_event f = {0};
  CU_ASSERT_FATAL(fel_pop(&b->list, &f));
  b->now = e.time;
  return e.time == f.time && e.order == f.order && e.kind == f.kind && e.node == f.node &&
         e.data == f.data;
}

/* Grows to n, is used n times at that size, and shrinks to nothing. */
static size_t differences(both *b, dist after, uint32_t n) {
  size_t wrong = 0;
  for (uint32_t i = 0; i < n; ++i) push(b, after);
  for (uint32_t i = 0; i < n; ++i) {
    wrong += !pop(b);
    push(b, after);
  }
  CU_ASSERT_EQUAL(fel_size(&b->list), n);
  while (!eq_is_empty(&b->heap)) wrong += !pop(b);
  CU_ASSERT_EQUAL(fel_size(&b->list), 0);
  return wrong;
}

TEST(events_leave_as_from_one_heap) {
  const uint32_t sizes[] = {1, FEL_SPILL - 1, FEL_SPILL, 3 * FEL_SPILL, 60000};
  for (size_t k = 0; k < DISTS; ++k) {
    both b = {.now = 0};
    eq_init(&b.heap);
    fel_init(&b.list);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
      const size_t wrong = differences(&b, dists[k], sizes[i]);
      if (wrong > 0) fprintf(stderr, "law %zu, %u events: %zu differ\n", k, sizes[i], wrong);
      CU_ASSERT_EQUAL(wrong, 0);
    }
    eq_fini(&b.heap);
    fel_fini(&b.list);
  }
}

/* A simulation adds nothing before the present, but the list does not depend on it. */
TEST(events_may_come_before_those_that_have_left) {
  both b = {.now = 0};
  size_t wrong = 0;
  eq_init(&b.heap);
  fel_init(&b.list);
  for (uint32_t i = 0; i < 20000; ++i) push(&b, exponential);
  for (uint32_t i = 0; i < 5000; ++i) wrong += !pop(&b);
  b.now = 0;
  for (uint32_t i = 0; i < 20000; ++i) push(&b, exponential);
  while (!eq_is_empty(&b.heap)) {
    wrong += !pop(&b);
    if (b.heap.size % 1000 == 0 && b.pushed < 60000)
      for (b.now /= 2; b.pushed % 500 != 499;) push(&b, exponential);
  }
  CU_ASSERT_EQUAL(wrong, 0);
  CU_ASSERT_EQUAL(fel_size(&b.list), 0);
  eq_fini(&b.heap);
  fel_fini(&b.list);
}

/* What the list is for: however many events there are, few are in the heap, also where all are at
 * one moment and are told apart by their numbers alone. */
TEST(few_events_are_near_and_memory_is_used_again) {
  enum { N = 100000 };
  for (size_t k = 0; k < DISTS; ++k) {
    both b = {.now = 0};
    size_t most = 0, bytes = 0;
    fel_init(&b.list);
    eq_init(&b.heap);
    for (int again = 0; again < 2; ++again) {
      for (uint32_t i = 0; i < N; ++i) push(&b, dists[k]);
      for (uint32_t i = 0; i < N; ++i) {
        pop(&b);
        push(&b, dists[k]);
        if (b.list.near.size > most) most = b.list.near.size;
      }
      if (again == 0) bytes = fel_bytes(&b.list);
      while (!eq_is_empty(&b.heap)) pop(&b);
    }
    CU_ASSERT(most <= FEL_SPILL);
    CU_ASSERT(b.list.refills > N / FEL_SPILL);
    CU_ASSERT(bytes < 3 * (N * sizeof(sim_event)));
    CU_ASSERT(fel_bytes(&b.list) < bytes + bytes / 2);
    eq_fini(&b.heap);
    fel_fini(&b.list);
    CU_ASSERT_EQUAL(fel_bytes(&b.list), 0);
  }
}

/* Of few events nothing is ever moved: the list is its heap. */
TEST(few_events_are_one_heap) {
  both b = {.now = 0};
  eq_init(&b.heap);
  fel_init(&b.list);
  for (uint32_t i = 0; i < FEL_SPILL - 1; ++i) push(&b, heavy);
  for (uint32_t i = 0; i < 5 * FEL_SPILL; ++i) {
    CU_ASSERT(pop(&b));
    push(&b, heavy);
  }
  CU_ASSERT_PTR_NULL(b.list.levels);
  CU_ASSERT_EQUAL(b.list.far, 0);
  eq_fini(&b.heap);
  fel_fini(&b.list);
}
