/* The event queue against a sorted reference. */
#include "sim/event_queue.h"

#include "core/random/rng.h"
#include "tests/support/suite.h"

SUITE("sim: event queue");

static int by_time_then_number(const void *a, const void *b) {
  const double *x = a, *y = b;
  if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
  return x[1] < y[1] ? -1 : 1;
}

TEST(events_leave_in_order_of_time_and_equal_times_in_order_of_insertion) {
  enum { N = 5000 };
  static double reference[N][2];
  event_queue q;
  eq_init(&q);
  for (uint32_t i = 0; i < N; ++i) { /* 97 distinct times: many ties */
    reference[i][0] = rng_block(rng_stream_at(1, RNG_TEST, 0), i).v[0] % 97;
    reference[i][1] = i;
    CU_ASSERT(eq_push(&q, reference[i][0], 0, 0, i, 0));
  }
  qsort(reference, N, sizeof *reference, by_time_then_number);
  for (size_t i = 0; i < N; ++i) {
    sim_event e = eq_pop(&q);
    CU_ASSERT(e.time == reference[i][0] && e.node == (uint32_t)reference[i][1]);
  }
  CU_ASSERT(eq_is_empty(&q));
  eq_fini(&q);
}

TEST(ranks_order_the_events_of_one_moment) {
  event_queue q;
  eq_init(&q);
  eq_push(&q, 1, 2, 0, 20, 0);
  eq_push(&q, 1, 0, 0, 1, 0);
  eq_push(&q, 1, 2, 0, 21, 0);
  eq_push(&q, 0.5, 9, 0, 0, 0);
  eq_push(&q, 1, 0, 0, 2, 0);
  const uint32_t order[] = {0, 1, 2, 20, 21};
  for (size_t i = 0; i < 5; ++i) CU_ASSERT_EQUAL(eq_pop(&q).node, order[i]);
  eq_fini(&q);
}

TEST(replacing_the_top_equals_pop_and_push) {
  event_queue a, b;
  eq_init(&a);
  eq_init(&b);
  for (uint32_t i = 0; i < 300; ++i) {
    eq_push(&a, (double)(i * 7919 % 101), 0, 0, i, 0);
    eq_push(&b, (double)(i * 7919 % 101), 0, 0, i, 0);
  }
  for (uint32_t i = 0; i < 3000; ++i) {
    double later = eq_top(&a)->time + (double)(i * 31 % 57);
    CU_ASSERT_EQUAL(eq_top(&a)->node, eq_top(&b)->node);
    eq_replace(&a, later, 0, 0, i, 0);
    eq_pop(&b);
    eq_push(&b, later, 0, 0, i, 0);
  }
  eq_fini(&a);
  eq_fini(&b);
}
