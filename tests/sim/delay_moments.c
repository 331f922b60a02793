/* Moments of distributions and of largest draws, against SciPy's (tests/golden/theory_moments.py).
 */
#include "sim/delay_moments.h"
#include "tests/support/files.h"

#include "tests/support/suite.h"

#include <string.h>

SUITE("sim: theory moments");

static delay_dist *dist_of(const char *text) {
  cfg_doc *doc = NULL;
  delay_dist *dist = NULL;
  ASSERT_OK(cfg_load_text(&doc, text, strlen(text), "test", &err));
  ASSERT_OK(delay_parse(&dist, cfg_root(doc), "distribution", NAN, &err));
  cfg_free(doc);
  return dist;
}

static void moments_are_scipys(FILE *golden) {
  static const struct {
    const char *dist;
    int first, last;
  } cases[] = {
      {"{distribution: lognormal, mu: 3, sigma: 1}", 1, 2},
      {"{distribution: weibull, shape: 0.7, scale: 20}", 1, 2},
      {"{distribution: gamma, shape: 2.5, scale: 8}", 1, 2},
      {"{distribution: pareto, shape: 1.5, scale: 2}", 1, 1},
      {"{distribution: pareto, shape: 2.5, scale: 2}", 2, 2},
      {"{distribution: exponential, mean: 40, shift: 5}", 1, 2},
      {"{distribution: uniform, min: 10, max: 30}", 1, 2},
      {"{distribution: lognormal, mu: 5.8, sigma: 0.87, offset: 400, clamp: [60, 1800]}", 1, 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    for (int power = cases[i].first; power <= cases[i].last; ++power) {
      delay_dist *dist = dist_of(cases[i].dist);
      double value = NAN;
      CU_ASSERT(moment_is_finite(dist, power));
      ASSERT_OK(moment_of(&value, dist, power, &err));
      ASSERT_CLOSE(value, files_number(golden), 2e-8);
      delay_free(dist);
    }
}

static void largest_draws_are_scipys(FILE *golden) {
  static const struct {
    const char *dist;
    size_t count;
  } cases[] = {{"{distribution: lognormal, mu: 3, sigma: 1}", 8},
               {"{distribution: exponential, mean: 12}", 64},
               {"{distribution: pareto, shape: 1.3, scale: 4}", 16},
               {"{distribution: gamma, shape: 2.5, scale: 8}", 1000}};
  double value = NAN;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    delay_dist *dist = dist_of(cases[i].dist);
    const moment_draws alike = {dist, 1, 0, cases[i].count};
    ASSERT_OK(moment_of_largest(&value, &alike, 1, &err));
    ASSERT_CLOSE(value, files_number(golden), 2e-8);
    delay_free(dist);
  }
  delay_dist *u = dist_of("{distribution: uniform, min: 10, max: 30}");
  delay_dist *e = dist_of("{distribution: exponential, mean: 12}");
  const moment_draws unlike[] = {{u, 1, 0, 3}, {e, 0.5, 5, 5}};
  ASSERT_OK(moment_of_largest(&value, unlike, 2, &err));
  ASSERT_CLOSE(value, files_number(golden), 2e-8);
  delay_free(u);
  delay_free(e);
}

static void longest_lengths_are_numpys(FILE *golden) {
  static const struct {
    const char *dist;
    double most, count;
  } cases[] = {{"{distribution: lognormal, mu: 6, sigma: 1}", 4096, 512},
               {"{distribution: uniform, min: 1, max: 9}", 32768, 64},
               {"{distribution: gamma, shape: 2.5, scale: 80}", 700, 16}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    response_spec spec = {.lengths = dist_of(cases[i].dist), .max_tokens = cases[i].most};
    double value = NAN;
    ASSERT_OK(moment_of_longest(&value, &spec, cases[i].count, &err));
    ASSERT_CLOSE(value, files_number(golden), 1e-10);
    delay_free(spec.lengths);
  }
}

TEST(integrals_are_those_of_an_independent_program) {
  FILE *golden = fopen("tests/golden/theory_moments.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(golden);
  moments_are_scipys(golden);
  largest_draws_are_scipys(golden);
  longest_lengths_are_numpys(golden);
  double more;
  CU_ASSERT(fscanf(golden, "%lf", &more) != 1);
  fclose(golden);
}

/* delay_cdf() finds shares from quantiles; the survival functions here are written out. */
TEST(survival_is_one_less_the_share_of_draws) {
  static const char *const dists[] = {"{distribution: lognormal, mu: 3, sigma: 1, offset: 4}",
                                      "{distribution: weibull, shape: 0.7, scale: 20}",
                                      "{distribution: gamma, shape: 2.5, scale: 8, clamp: [5, 50]}",
                                      "{distribution: pareto, shape: 1.5, scale: 12}",
                                      "{distribution: exponential, mean: 40, shift: 5}",
                                      "{distribution: uniform, min: 10, max: 30}",
                                      "{distribution: constant, value: 20}",
                                      "{distribution: none}"};
  for (size_t i = 0; i < sizeof dists / sizeof *dists; ++i) {
    delay_dist *dist = dist_of(dists[i]);
    for (double x = 0; x < 80; x += 2.5)
      ASSERT_CLOSE(delay_survival(dist, x), 1 - delay_cdf(dist, x, false), 1e-12);
    delay_free(dist);
  }
}

TEST(means_that_diverge_are_known_as_such) {
  delay_dist *heavy = dist_of("{distribution: pareto, shape: 1, scale: 2}");
  delay_dist *limited = dist_of("{distribution: pareto, shape: 1, scale: 2, clamp: [0, 100]}");
  CU_ASSERT(!moment_is_finite(heavy, 1));
  CU_ASSERT(moment_is_finite(limited, 2));
  delay_free(heavy);
  delay_free(limited);
}
