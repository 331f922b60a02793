/* The list of waiting batches: by arrival, and by the time of generation, against plain sorting. */
#include "sim/clock.h"

#include "core/random/rng.h"
#include "tests/support/suite.h"

#include <stdlib.h>

SUITE("sim: the list of waiting batches");

enum { MOST = 3000 };

/* What waits, in the order in which it should. */
typedef struct plain_list {
  uint32_t slot[MOST];
  size_t n;
} plain_list;

static void plain_insert(plain_list *p, const buffer *b, uint32_t slot, bool by_time) {
  size_t at = p->n++;
  while (by_time && at > 0 &&
         b->pool[p->slot[at - 1]].facts.generated_s > b->pool[slot].facts.generated_s) {
    p->slot[at] = p->slot[at - 1];
    --at;
  }
  p->slot[at] = slot;
}

static uint32_t plain_remove(plain_list *p, size_t at) {
  const uint32_t slot = p->slot[at];
  for (size_t i = at; i + 1 < p->n; ++i) p->slot[i] = p->slot[i + 1];
  --p->n;
  return slot;
}

static void check_order(const buffer *b, const plain_list *p) {
  size_t n = 0;
  CU_ASSERT_EQUAL_FATAL(b->waiting, p->n);
  for (uint32_t i = b->oldest; i != BUFFER_NONE; i = b->pool[i].newer, ++n)
    CU_ASSERT_EQUAL_FATAL(i, p->slot[n]);
  CU_ASSERT_EQUAL_FATAL(n, p->n);
  for (uint32_t i = b->newest; i != BUFFER_NONE; i = b->pool[i].older)
    CU_ASSERT_EQUAL_FATAL(i, p->slot[--n]);
  CU_ASSERT_EQUAL_FATAL(n, 0);
}

/* Batches come late and early, many with equal times, and leave at either end and in the middle. */
TEST(order_is_that_of_plain_insertion) {
  const rng_stream draws = rng_stream_at(4, RNG_DELAY, 0);
  for (int by_time = 0; by_time < 2; ++by_time) {
    buffer b;
    plain_list *p = calloc(1, sizeof *p);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    buffer_init(&b, by_time != 0);
    for (uint64_t k = 0; k < 12000; ++k) {
      const rng_words w = rng_block(draws, k);
      const bool grows = k / 3000 % 2 == 0 ? w.v[0] % 8 < 6 : w.v[0] % 8 < 2;
      if (p->n == 0 || (grows && p->n < MOST)) {
        const uint32_t slot = buffer_take(&b, 0);
        CU_ASSERT_FATAL(slot != BUFFER_NONE);
        b.pool[slot].facts.generated_s = (double)(k / 4) - (double)(w.v[1] % 500);
        buffer_insert(&b, slot);
        plain_insert(p, &b, slot, by_time != 0);
      } else {
        const size_t at = w.v[1] % 3 == 0 ? 0 : w.v[1] % 3 == 1 ? p->n - 1 : w.v[2] % p->n;
        const uint32_t slot = plain_remove(p, at);
        buffer_remove(&b, slot);
        buffer_release(&b, slot);
      }
      if (k % 100 == 0) check_order(&b, p);
    }
    check_order(&b, p);
    buffer_fini(&b);
    free(p);
  }
}
