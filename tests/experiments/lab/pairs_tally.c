/* Theorems 1 and 3 over pairs of distributions, against NumPy (tests/golden/pairs_tally.py). */
#include "experiments/lab/pairs_tally.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>

enum { MOST = 64 };

static void read_numbers(FILE *from, double *to, size_t n) {
  for (size_t i = 0; i < n; ++i) CU_ASSERT_EQUAL_FATAL(fscanf(from, "%lf", &to[i]), 1);
}

static void check_denominator(const pairs_tally *t, int k, const double told[8]) {
  CU_ASSERT_EQUAL(t->holds[k], told[0]);
  ASSERT_CLOSE(t->constant[k], told[1], 1e-12 * told[1]);
  CU_ASSERT_EQUAL(t->green[k], told[2]);
  ASSERT_CLOSE(t->highest_green[k], told[3], 1e-12);
  CU_ASSERT_EQUAL(t->wider[k], told[4]);
  CU_ASSERT_EQUAL(t->disagree[k], told[5]);
  CU_ASSERT_EQUAL(t->wider_q[k], told[6]);
  CU_ASSERT_EQUAL(t->disagree_q[k], told[7]);
}

static void check_set(FILE *from) {
  size_t n, pairs;
  double p[MOST], q[MOST], r[MOST], kl, told[8];
  gl_error err = {0};
  pairs_tally t;
  pairs_tally_init(&t);
  CU_ASSERT_EQUAL_FATAL(fscanf(from, "%zu %zu", &n, &pairs), 2);
  CU_ASSERT_FATAL(n <= MOST);
  for (size_t i = 0; i < pairs; ++i) {
    read_numbers(from, p, n);
    read_numbers(from, q, n);
    read_numbers(from, r, n);
    CU_ASSERT_EQUAL_FATAL(pairs_tally_add(&t, p, q, r, n, &err), GL_OK);
  }
  CU_ASSERT(t.pairs == pairs && t.infinite == 0);
  read_numbers(from, &kl, 1);
  ASSERT_CLOSE(t.kl, kl, 1e-12 * kl);
  for (int k = 0; k < LAB_CONSTANTS; ++k) {
    read_numbers(from, told, 8);
    check_denominator(&t, k, told);
  }
  pairs_tally_fini(&t);
}

static void counts_are_those_of_numpy(void) {
  int sets = 0;
  FILE *from = fopen("tests/golden/pairs_tally.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  CU_ASSERT_EQUAL_FATAL(fscanf(from, "%d", &sets), 1);
  CU_ASSERT(sets >= 4);
  for (int i = 0; i < sets; ++i) check_set(from);
  fclose(from);
}

/* p/q has no finite variance where q cannot draw what p does: no theorem speaks of such a pair. */
static void a_pair_without_a_variance_is_counted_apart(void) {
  const double p[] = {0.5, 0.5}, q[] = {1, 0}, r[] = {1, 0};
  gl_error err = {0};
  pairs_tally t;
  pairs_tally_init(&t);
  CU_ASSERT_EQUAL(pairs_tally_add(&t, p, q, r, 2, &err), GL_OK);
  CU_ASSERT(t.pairs == 0 && t.infinite == 1);
  CU_ASSERT_EQUAL(pairs_tally_add(&t, q, p, r, 2, &err), GL_OK);
  CU_ASSERT(t.pairs == 1 && t.infinite == 1 && t.variance[0][0] == 1);
  pairs_tally_fini(&t);
}

SUITE(lab_pairs_tally, "lab: pairs of laws", TEST(counts_are_those_of_numpy),
      TEST(a_pair_without_a_variance_is_counted_apart));
