/* Power of comparisons of an AUC with chance: against enumeration and simulation. Simulations have
 * fixed seeds; their tolerances are four standard errors and more. */
#include "analysis/auc.h"
#include "core/random/rng.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

SUITE("analysis: power");

/* P(|U - mean| >= |u - mean|) by going through all choices of `events` among all ranks. */
static double p_by_enumeration(unsigned events, unsigned all, double u) {
  const double mean = events * (all - events) / 2.0;
  size_t n = 0, beyond = 0;
  for (unsigned long set = (1ul << events) - 1; set < 1ul << all;) {
    unsigned long found = 0, seen = 0;
    for (unsigned i = 0; i < all; i++) {
      if (set >> i & 1) found += i - seen, seen++; /* the others below this event */
    }
    n++;
    beyond += fabs((double)found - mean) >= fabs(u - mean) - 1e-9;
    const unsigned long low = set & -set, up = set + low; /* the next set of that size */
    set = up | (((set ^ up) / low) >> 2);
  }
  return (double)beyond / (double)n;
}

TEST(the_test_is_the_exact_permutation_test) {
  CU_ASSERT_DOUBLE_EQUAL(auc_p_value(1, 2, 3), 0.2, 1e-12);
  CU_ASSERT_DOUBLE_EQUAL(auc_p_value(0.5, 4, 5), 1, 1e-12);
  for (int k = 0; k <= 10; k++) {
    CU_ASSERT_DOUBLE_EQUAL(auc_p_value(4 * k / 45.0, 5, 9), p_by_enumeration(5, 14, 4 * k), 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(auc_p_value(5 * k / 51.0, 3, 17), p_by_enumeration(3, 20, 5 * k), 1e-12);
  }
  /* five declines in 24 windows; as it is printed, rounded, and exactly */
  CU_ASSERT_DOUBLE_EQUAL(auc_p_value(0.221, 5, 19), p_by_enumeration(5, 24, 21), 1e-12);
  CU_ASSERT_DOUBLE_EQUAL(auc_p_value(21 / 95.0, 5, 19), p_by_enumeration(5, 24, 21), 1e-12);
  /* the normal limit is near the exact test where they meet */
  CU_ASSERT_DOUBLE_EQUAL(auc_p_value(0.6, 50, 80), auc_p_value(0.6, 50, 81), 0.003);
  CU_ASSERT(isnan(auc_p_value(0.5, 0, 5)) && isnan(auc_p_value(1.5, 5, 5)));
}

/* AUC of samples of exponential variables, the events' mean being a times the others'. */
static double drawn_auc(rng_stream stream, uint64_t replicate, size_t events, size_t others,
                        double a) {
  double x[64], u = 0;
  for (size_t i = 0; i < events + others; i++) {
    const rng_words w = rng_block(stream, replicate * 64 + i);
    x[i] = -log(1 - rng_u01_53(w.v[0], w.v[1])) * (i < events ? a : 1);
  }
  for (size_t i = 0; i < events; i++)
    for (size_t k = events; k < events + others; k++) u += x[i] > x[k];
  return u / (double)(events * others);
}

/* The smallest distance of an AUC from 0.5 that the test rejects at 5 %. */
static double rejected_from(size_t events, size_t others) {
  size_t below = 0, above = events * others / 2;
  while (above - below > 1) {
    const size_t middle = (below + above) / 2;
    const double distance = (double)middle / (double)(events * others);
    if (auc_p_value(0.5 + distance, events, others) > 0.05)
      below = middle;
    else
      above = middle;
  }
  return ((double)above - 0.25) / (double)(events * others);
}

/* Two strata of one event and four others: each event is the highest with probability 1/5. */
TEST(the_test_of_strata_is_exact_and_one_stratum_is_that_of_the_area) {
  const auc_pairs both[] = {{4, 1, 4}, {4, 1, 4}}, one = {8, 2, 5}, empty = {0, 0, 5};
  CU_ASSERT_DOUBLE_EQUAL(auc_p_of_strata(both, 2), 2.0 / 25, 1e-12);
  CU_ASSERT_DOUBLE_EQUAL(auc_p_of_strata(&one, 1), auc_p_value(0.8, 2, 5), 1e-12);
  CU_ASSERT(isnan(auc_p_of_strata(&empty, 1)));
  auc_pairs many[101]; /* 4,000 pairs are exact, one stratum more is the normal limit */
  for (size_t i = 0; i < 101; i++) many[i] = (auc_pairs){22, 4, 10};
  CU_ASSERT_DOUBLE_EQUAL(auc_p_of_strata(many, 100), auc_p_of_strata(many, 101), 0.01);
}

TEST(error_and_power_are_those_of_simulations) {
  static const struct {
    double auc;
    size_t events, others;
  } cases[] = {{0.7, 5, 19}, {0.7, 20, 40}, {0.85, 12, 12}, {0.3, 20, 20}, {0.5, 15, 30}};
  enum { REPLICATES = 8000 };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const size_t e = cases[c].events, n = cases[c].others;
    const double a = cases[c].auc / (1 - cases[c].auc); /* P(X > Y) = a / (1 + a) */
    const rng_stream stream = rng_stream_at(7, RNG_BOOTSTRAP, c);
    const double limit = rejected_from(e, n);
    double sum = 0, squares = 0, rejected = 0;
    for (uint64_t r = 0; r < REPLICATES; r++) {
      const double auc = drawn_auc(stream, r, e, n, a);
      sum += auc, squares += auc * auc;
      rejected += fabs(auc - 0.5) >= limit;
    }
    const double mean = sum / REPLICATES, error = sqrt(squares / REPLICATES - mean * mean);
    CU_ASSERT_DOUBLE_EQUAL(mean, cases[c].auc, 0.007);
    CU_ASSERT_DOUBLE_EQUAL(auc_error(cases[c].auc, e, n), error, 0.04 * error);
    CU_ASSERT_DOUBLE_EQUAL(auc_power(cases[c].auc, e, n, 0.05), rejected / REPLICATES, 0.03);
  }
}

TEST(events_needed_are_the_fewest_that_reach_the_power) {
  const double ratios[] = {1, 3.8};
  for (size_t i = 0; i < 2; i++) {
    const size_t e = auc_events_needed(0.7, ratios[i], 0.05, 0.8);
    const size_t n = (size_t)ceil(ratios[i] * (double)e),
                 fewer = (size_t)ceil(ratios[i] * (double)(e - 1));
    CU_ASSERT(e > 5 && auc_power(0.7, e, n, 0.05) >= 0.8);
    CU_ASSERT(auc_power(0.7, e - 1, fewer, 0.05) < 0.8);
  }
  CU_ASSERT(auc_events_needed(0.9, 1, 0.05, 0.8) < auc_events_needed(0.7, 1, 0.05, 0.8));
  CU_ASSERT_EQUAL(auc_events_needed(0.5, 1, 0.05, 0.8), 0);
  CU_ASSERT_EQUAL(auc_power(0.7, 1, 3, 0.05), 0); /* no outcome of so few has p <= 0.05 */
}

TEST(the_interval_is_inside_and_covers) {
  enum { REPLICATES = 4000 };
  const rng_stream stream = rng_stream_at(8, RNG_BOOTSTRAP, 0);
  size_t covered = 0;
  for (uint64_t r = 0; r < REPLICATES; r++) {
    const interval v = auc_interval(drawn_auc(stream, r, 15, 40, 0.7 / 0.3), 15, 40);
    covered += v.low < 0.7 && v.high > 0.7;
    CU_ASSERT(isnan(v.low) || (v.low > 0 && v.low < v.value && v.high < 1));
  }
  CU_ASSERT((double)covered / REPLICATES > 0.93 && (double)covered / REPLICATES < 0.98);
  CU_ASSERT(isnan(auc_interval(1, 5, 5).low));
}
