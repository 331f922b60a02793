/* The table of GEMM plans (llm/backend/cuda/blas_plans.h): found plans are the right ones, each is
 * dropped once, and the oldest of a set goes first. */
#include "llm/backend/cuda/blas_plans.h"
#include "tests/support/suite.h"

#include <stdint.h>
#include <string.h>

SUITE("llm: cuda plans");

typedef struct key {
  uint64_t m, n;
} key;

/* A plan that knows its key; how often each was made and dropped. */
typedef struct plan {
  uint64_t of;
} plan;

enum { KEYS = 3000 };
typedef struct counts {
  unsigned made[KEYS], dropped[KEYS];
} counts;

static void drop(void *owner, void *p) {
  ++((counts *)owner)->dropped[((plan *)p)->of];
}

/* The plan of key i as a user of the table gets it: found, or made and added. */
static const plan *plan_of(gemm_plans *t, counts *c, uint64_t i) {
  const key k = {i * 8, i % 7};
  plan *p = gemm_plans_find(t, &k);
  if (p != NULL) return p;
  ++c->made[i];
  return gemm_plans_add(t, &k, &(plan){i});
}

static gemm_plans *table(size_t sets, counts *c) {
  gemm_plans *t;
  memset(c, 0, sizeof *c);
  ASSERT_OK(gemm_plans_new(&t, sets, sizeof(key), sizeof(plan), drop, c, &err));
  return t;
}

TEST(a_plan_is_made_once_while_there_is_room) {
  static counts c;
  gemm_plans *t = table(512, &c);
  for (int round = 0; round < 3; ++round)
    for (uint64_t i = 0; i < 300; ++i) CU_ASSERT_EQUAL(plan_of(t, &c, i)->of, i);
  for (size_t i = 0; i < 300; ++i) CU_ASSERT(c.made[i] == 1 && c.dropped[i] == 0);
  CU_ASSERT_EQUAL(gemm_plans_size(t), 300);
  gemm_plans_free(t);
  for (size_t i = 0; i < KEYS; ++i) CU_ASSERT_EQUAL(c.dropped[i], i < 300);
}

/* Many more keys than there is room for, some of them asked for again and again. */
TEST(a_full_table_gives_the_right_plans_and_drops_the_others_once) {
  static counts c;
  gemm_plans *t = table(16, &c);
  for (uint64_t i = 0; i < 4 * KEYS; ++i) {
    const uint64_t k = i % 3 == 0 ? i % 5 : i * 131 % KEYS;
    CU_ASSERT_EQUAL(plan_of(t, &c, k)->of, k);
    CU_ASSERT(gemm_plans_size(t) <= 16 * GEMM_PLANS_WAYS);
  }
  CU_ASSERT_EQUAL(gemm_plans_size(t), 16 * GEMM_PLANS_WAYS);
  size_t alive = 0;
  for (size_t i = 0; i < KEYS; ++i) {
    CU_ASSERT(c.made[i] >= c.dropped[i] && c.made[i] <= c.dropped[i] + 1);
    alive += c.made[i] - c.dropped[i];
  }
  CU_ASSERT_EQUAL(alive, 16 * GEMM_PLANS_WAYS);
  gemm_plans_free(t);
  for (size_t i = 0; i < KEYS; ++i) CU_ASSERT_EQUAL(c.made[i], c.dropped[i]);
}

/* In a table of one set the plan added first goes first, however lately it was used. */
TEST(the_oldest_of_a_set_is_thrown_out) {
  static counts c;
  gemm_plans *t = table(1, &c);
  for (uint64_t i = 0; i < GEMM_PLANS_WAYS; ++i) plan_of(t, &c, i);
  plan_of(t, &c, 0);
  plan_of(t, &c, 100);
  CU_ASSERT_EQUAL(c.dropped[0], 1);
  plan_of(t, &c, 101);
  CU_ASSERT_EQUAL(c.dropped[1], 1);
  plan_of(t, &c, 0);
  CU_ASSERT_EQUAL(c.made[0], 2);
  CU_ASSERT_EQUAL(c.dropped[2], 1);
  CU_ASSERT_EQUAL(gemm_plans_size(t), GEMM_PLANS_WAYS);
  gemm_plans_free(t);
}

TEST(a_table_that_fits_no_memory_is_refused) {
  gemm_plans *t;
  gl_error err = {.status = GL_OK};
  CU_ASSERT_EQUAL(gemm_plans_new(&t, SIZE_MAX / 4, 8, 8, drop, NULL, &err), GL_ENOMEM);
  CU_ASSERT_PTR_NULL(t);
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(gemm_plans_new(&t, SIZE_MAX / 64, 64, 8, drop, NULL, &err), GL_ENOMEM);
  CU_ASSERT_PTR_NULL(t);
}
