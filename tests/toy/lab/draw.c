/* Random groups: every form of drawing gives the draws at their addresses, and these follow the
 * distribution.
 */
#include "tests/support/suite.h"
#include "toy/lab/multiset.h"

#include <gsl/gsl_cdf.h>
#include <stdlib.h>
#include <string.h>

SUITE("lab: random groups");

/* A distribution on n outcomes of uneven weights that sum to one; outcome 1 is never drawn where n
 * > 2. */
static void dist(double *q, size_t n) {
  double sum = 0;
  for (size_t y = 0; y < n; ++y) {
    q[y] = n > 2 && y == 1 ? 0 : (double)(1 + y * y % 7);
    sum += q[y];
  }
  for (size_t y = 0; y < n; ++y) q[y] /= sum;
}

typedef struct setting {
  size_t outcomes, size, n;
  uint64_t first;
} setting;

/* Counts of group g one draw at a time, from its address. */
static void count_by_hand(const setting *s, const lab_alias *alias, rng_stream stream, size_t g,
                          double *count) {
  const uint64_t blocks = (s->size + 3) / 4;
  memset(count, 0, s->outcomes * sizeof *count);
  for (size_t i = 0; i < s->size; ++i) {
    const rng_words words = rng_block(stream, (s->first + g) * blocks + i / 4);
    count[lab_alias_draw(alias, words.v[i % 4])] += 1;
  }
}

static void check_form(const setting *s, lab_draw_form form) {
  const rng_stream stream = rng_stream_at(0x123456789abcdef0u, RNG_MONTECARLO, 0xfedcba9876543u);
  double *q = calloc(s->outcomes, sizeof *q), *count = calloc(s->outcomes, sizeof *count);
  lab_alias alias;
  lab_block b;
  CU_ASSERT_FATAL(q != NULL && count != NULL);
  dist(q, s->outcomes);
  ASSERT_OK(lab_alias_init(&alias, q, s->outcomes, &err));
  ASSERT_OK(lab_block_init(&b, s->outcomes, s->size, &err));
  CU_ASSERT_EQUAL(lab_block_draw_as(&b, &alias, stream, s->first, s->n, 5, form), 1);
  CU_ASSERT_EQUAL(b.n, s->n);
  for (size_t g = 0; g < LAB_BLOCK; ++g) {
    count_by_hand(s, &alias, stream, g, count);
    CU_ASSERT_EQUAL(b.weight[g], g < s->n ? 1 / 5.0 : 0);
    for (size_t y = 0; y < s->outcomes; ++y) {
      const double unused = y == 0 ? (double)s->size : 0;
      CU_ASSERT_EQUAL(b.count[y * LAB_BLOCK + g], g < s->n ? count[y] : unused);
    }
  }
  lab_block_fini(&b);
  lab_alias_fini(&alias);
  free(count);
  free(q);
}

/* Tables that fit one register, two, and none; groups up to the most that a byte counts; addresses
 * beyond 32 bits; blocks that are not full. */
static const setting settings[] = {{1, 1, 128, 0},        {2, 3, 127, 5},
                                   {7, 4, 128, 1u << 20}, {8, 8, 128, 0},
                                   {9, 5, 33, 77},        {10, 8, 128, 0x7ffffff0},
                                   {16, 64, 1, 3},        {17, 8, 128, 9},
                                   {64, 255, 31, 2},      {33, 2, 128, 0x3ffffff0ff}};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

TEST(the_plain_form_draws_at_the_addresses) {
  for (size_t k = 0; k < SETTINGS; ++k) check_form(&settings[k], LAB_DRAW_PLAIN);
}

static int has_avx2(void) {
  double q = 1;
  lab_alias alias;
  lab_block b;
  ASSERT_OK(lab_alias_init(&alias, &q, 1, &err));
  ASSERT_OK(lab_block_init(&b, 1, 1, &err));
  const rng_stream stream = rng_stream_at(1, RNG_TEST, 1);
  const int has = lab_block_draw_as(&b, &alias, stream, 0, 1, 1, LAB_DRAW_AVX2);
  lab_block_fini(&b);
  lab_alias_fini(&alias);
  return has;
}

TEST(the_avx2_form_draws_at_the_addresses) {
  if (!has_avx2()) SKIP("no AVX2 here");
  for (size_t k = 0; k < SETTINGS; ++k) check_form(&settings[k], LAB_DRAW_AVX2);
}

/* A byte counts to 255, and a byte holds a response's number. */
TEST(what_a_byte_cannot_count_is_left_to_the_plain_form) {
  const setting beyond[] = {{4, 256, 128, 0}, {65, 8, 128, 0}};
  for (size_t k = 0; k < 2; ++k) {
    double q[65];
    lab_alias alias;
    lab_block b;
    dist(q, beyond[k].outcomes);
    ASSERT_OK(lab_alias_init(&alias, q, beyond[k].outcomes, &err));
    ASSERT_OK(lab_block_init(&b, beyond[k].outcomes, beyond[k].size, &err));
    const rng_stream stream = rng_stream_at(1, RNG_TEST, 1);
    CU_ASSERT_EQUAL(lab_block_draw_as(&b, &alias, stream, 0, 128, 1, LAB_DRAW_AVX2), 0);
    lab_block_draw(&b, &alias, stream, 0, 128, 1);
    for (size_t g = 0; g < LAB_BLOCK; ++g) {
      double sum = 0;
      for (size_t y = 0; y < beyond[k].outcomes; ++y) sum += b.count[y * LAB_BLOCK + g];
      CU_ASSERT_EQUAL(sum, (double)beyond[k].size);
    }
    lab_block_fini(&b);
    lab_alias_fini(&alias);
  }
}

/* Pearson's chi-square of a million draws, and of the pairs of first and second responses that
 * groups of two are made of, at an address where it is known to be neither small nor large. */
TEST(draws_follow_the_dist) {
  enum { OUTCOMES = 10, SIZE = 2, BLOCKS = 4096 };
  double q[OUTCOMES], seen[OUTCOMES] = {0}, pair[OUTCOMES][OUTCOMES] = {{0}};
  const double groups = (double)BLOCKS * LAB_BLOCK;
  lab_alias alias;
  lab_block b;
  dist(q, OUTCOMES);
  ASSERT_OK(lab_alias_init(&alias, q, OUTCOMES, &err));
  ASSERT_OK(lab_block_init(&b, OUTCOMES, SIZE, &err));
  for (uint64_t k = 0; k < BLOCKS; ++k) {
    lab_block_draw(&b, &alias, rng_stream_at(3, RNG_TEST, 2), k * LAB_BLOCK, LAB_BLOCK, 1);
    for (size_t g = 0; g < LAB_BLOCK; ++g)
      for (size_t y = 0; y < OUTCOMES; ++y) {
        const double n = b.count[y * LAB_BLOCK + g];
        seen[y] += n;
        if (n > 1) pair[y][y] += 1;
        for (size_t z = 0; z < y; ++z) pair[y][z] += n * b.count[z * LAB_BLOCK + g];
      }
  }
  double one = 0, two = 0, cells = 0;
  for (size_t y = 0; y < OUTCOMES; ++y) {
    const double expected = SIZE * groups * q[y];
    if (q[y] > 0) one += (seen[y] - expected) * (seen[y] - expected) / expected;
    if (q[y] == 0) CU_ASSERT_EQUAL(seen[y], 0);
    for (size_t z = 0; z <= y; ++z) {
      const double share = groups * q[y] * q[z] * (z == y ? 1 : 2);
      if (share == 0) continue;
      two += (pair[y][z] - share) * (pair[y][z] - share) / share;
      cells += 1;
    }
  }
  CU_ASSERT(gsl_cdf_chisq_Q(one, OUTCOMES - 2) > 0.01);
  CU_ASSERT(gsl_cdf_chisq_P(one, OUTCOMES - 2) > 0.01);
  CU_ASSERT(gsl_cdf_chisq_Q(two, cells - 1) > 0.01);
  CU_ASSERT(gsl_cdf_chisq_P(two, cells - 1) > 0.01);
  lab_block_fini(&b);
  lab_alias_fini(&alias);
}
