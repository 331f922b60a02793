/* Statistics against SciPy by golden numbers (tests/golden/analysis_statistics.py), and at their
 * edges. */
#include "analysis/statistics.h"
#include "analysis/collapse_rate.h"
#include "core/base/ks.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("analysis: statistics");

enum { MAX = 128, EXPECTED = 8 };

static size_t read_sample(FILE *f, const char *name, double *v) {
  char word[8];
  size_t n = 0;
  if (fscanf(f, "%7s %zu", word, &n) != 2 || strcmp(word, name) != 0 || n > MAX) return 0;
  for (size_t i = 0; i < n; i++)
    if (fscanf(f, "%la", &v[i]) != 1) return 0;
  return n;
}

static void check_case(const double *x, size_t nx, const double *y, size_t ny, const double *want) {
  correlation s;
  rng_stream stream = rng_stream_at(1, RNG_BOOTSTRAP, 1);
  size_t n = nx < ny ? nx : ny;
  CU_ASSERT_EQUAL(spearman(x, y, n, stream, &s, NULL), GL_OK);
  double a[MAX], b[MAX];
  memcpy(a, x, nx * sizeof *a);
  memcpy(b, y, ny * sizeof *b);
  nx = sample_sort(a, nx);
  ny = sample_sort(b, ny);
  const double got[EXPECTED] = {
      sample_iqm(a, nx),
      sample_quantile(a, nx, 0.1),
      sample_quantile(a, nx, 0.5),
      sample_quantile(a, nx, 0.975),
      s.fisher.value,
      s.fisher.low,
      s.fisher.high,
      ks_distance((ks_sample){.value = a, .n = nx}, (ks_sample){.value = b, .n = ny})};
  for (size_t i = 0; i < EXPECTED; i++) ASSERT_CLOSE(got[i], want[i], 1e-12);
}

TEST(statistics_agree_with_scipy) {
  FILE *f = fopen("tests/golden/analysis_statistics.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  double x[MAX], y[MAX], want[EXPECTED];
  size_t cases = 0, nx;
  while ((nx = read_sample(f, "x", x)) > 0) {
    size_t ny = read_sample(f, "y", y);
    char word[8];
    CU_ASSERT_FATAL(ny > 0 && fscanf(f, "%7s", word) == 1);
    for (size_t i = 0; i < EXPECTED; i++) CU_ASSERT_FATAL(fscanf(f, "%la", &want[i]) == 1);
    check_case(x, nx, y, ny, want);
    cases++;
  }
  fclose(f);
  CU_ASSERT_EQUAL(cases, 6);
}

TEST(an_evaluation_series_has_first_best_last_and_gap) {
  const double v[] = {NAN, 0.4, 0.9, NAN, 0.6, NAN};
  series_ends e = series_ends_of(v, 6, false);
  ASSERT_CLOSE(e.first, 0.4, 0);
  ASSERT_CLOSE(e.best, 0.9, 0);
  ASSERT_CLOSE(e.last, 0.6, 0);
  ASSERT_CLOSE(e.best_to_last, 0.9 - 0.6, 0);
  CU_ASSERT(isnan(series_ends_of(v, 1, false).best_to_last));
  const double infinite[] = {INFINITY, INFINITY};
  const series_ends none = series_ends_of(infinite, 2, false);
  CU_ASSERT(isnan(none.best) && isnan(none.best_to_last) && none.not_finite == 2);
  const double broken[] = {0.2, INFINITY, 0.8, -INFINITY}, back[] = {0.2, INFINITY, 0.8, 0.5};
  const series_ends end = series_ends_of(broken, 4, false), on = series_ends_of(back, 4, false);
  CU_ASSERT(end.best == 0.8 && isnan(end.last) && isnan(end.best_to_last) && end.ends_not_finite);
  CU_ASSERT(on.best == 0.8 && on.last == 0.5 && on.not_finite == 1 && !on.ends_not_finite);
}

TEST(small_samples_have_the_statistics_they_can_have) {
  double v[] = {NAN, 3.0, NAN, 1.0};
  CU_ASSERT(isnan(sample_iqm(v, 0)) && isnan(sample_quantile(v, 0, 0.5)) &&
            isnan(sample_mean(v, 1)));
  CU_ASSERT_EQUAL(sample_sort(v, 4), 2);
  CU_ASSERT(v[0] == 1.0 && v[1] == 3.0);
  CU_ASSERT_EQUAL(sample_iqm(v, 2), 2.0);
  CU_ASSERT_EQUAL(sample_iqm(v, 1), 1.0);
  CU_ASSERT_EQUAL(sample_quantile(v, 2, 0.25), 1.5);
  const double infinite[] = {-INFINITY, 0.0, INFINITY, INFINITY};
  CU_ASSERT_EQUAL(sample_quantile(infinite, 4, 1.0 / 3.0), 0.0);
  CU_ASSERT_EQUAL(sample_quantile(infinite, 4, 1.0), INFINITY);
  CU_ASSERT_EQUAL(sample_quantile(infinite, 4, 5.0 / 6.0), INFINITY);
}

TEST(correlations_are_undefined_without_variation_and_rank_infinities) {
  const double x[] = {1, 2, 3, 4, 5, NAN}, constant[] = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
  const double y[] = {-INFINITY, 0, 1, 5, INFINITY, 3};
  rng_stream stream = rng_stream_at(1, RNG_BOOTSTRAP, 2);
  correlation c;
  CU_ASSERT_EQUAL(spearman(x, y, 6, stream, &c, NULL), GL_OK);
  CU_ASSERT_EQUAL(c.n, 5);
  ASSERT_CLOSE(c.fisher.value, 1.0, 1e-15);
  CU_ASSERT_PTR_NULL(c.why);
  CU_ASSERT_EQUAL(spearman(x, constant, 6, stream, &c, NULL), GL_OK);
  CU_ASSERT(isnan(c.fisher.value) && isnan(c.bootstrap.low));
  CU_ASSERT_STRING_EQUAL(c.why, "the second quantity does not vary");
}

/* Two pairs would have rho 1 whatever they are; a pair that occurs again tells nothing new. */
TEST(fewer_than_four_distinct_pairs_have_no_correlation_and_say_so) {
  const double x[] = {1, 2, 3, 1, 2, 3, 4}, y[] = {5, 7, 9, 5, 7, 9, 8};
  rng_stream stream = rng_stream_at(1, RNG_BOOTSTRAP, 2);
  correlation c;
  for (size_t n = 2; n <= 6; n++) {
    CU_ASSERT_EQUAL(spearman(x, y, n, stream, &c, NULL), GL_OK);
    CU_ASSERT(c.n == n && isnan(c.fisher.value) && isnan(c.bootstrap.value));
    CU_ASSERT_STRING_EQUAL(c.why, "fewer than 4 distinct pairs");
  }
  CU_ASSERT_EQUAL(spearman(x, y, 7, stream, &c, NULL), GL_OK);
  CU_ASSERT(c.fisher.value > 0 && c.fisher.low < c.fisher.value);
  CU_ASSERT_PTR_NULL(c.why);
  CU_ASSERT_EQUAL(spearman(x, y, 0, stream, &c, NULL), GL_OK);
  CU_ASSERT_STRING_EQUAL(c.why, "no pair of values is known");
}

TEST(the_bootstrap_interval_of_an_iqm_is_reproducible_and_stays_in_its_strata) {
  const double v[] = {0.1, 0.2, 0.3, 0.4, 0.5, 10.0, NAN, 10.0};
  const size_t size[] = {5, 3};
  interval a, b;
  CU_ASSERT_EQUAL(iqm_bootstrap(v, size, 2, rng_stream_at(3, RNG_BOOTSTRAP, 0), &a, NULL), GL_OK);
  CU_ASSERT_EQUAL(iqm_bootstrap(v, size, 2, rng_stream_at(3, RNG_BOOTSTRAP, 0), &b, NULL), GL_OK);
  CU_ASSERT(memcmp(&a, &b, sizeof a) == 0);
  /* Seven values, one leaves at each end: (0.2 + 0.3 + 0.4 + 0.5 + 10) / 5. Resampling within
   * strata always keeps both tens, so no replicate exceeds (4 * 0.5 + 10) / 5. */
  ASSERT_CLOSE(a.value, 11.4 / 5, 1e-15);
  CU_ASSERT(a.low < a.value && a.value < a.high && a.high <= 12.0 / 5 && a.low >= 10.4 / 5);
  const size_t single[] = {1, 1};
  CU_ASSERT_EQUAL(iqm_bootstrap(v, single, 2, rng_stream_at(3, RNG_BOOTSTRAP, 0), &a, NULL), GL_OK);
  CU_ASSERT(a.value == 0.5 * (0.1 + 0.2) && isnan(a.low) && isnan(a.high));
  CU_ASSERT_EQUAL(iqm_bootstrap(v, single, 0, rng_stream_at(3, RNG_BOOTSTRAP, 0), &a, NULL), GL_OK);
  CU_ASSERT(isnan(a.value));
}

/* 400 data sets of 20 uniform values, IQM's truth 1/2. A percentile interval of 20 values covers a
 * little less than 95 %; below 340 of 400 would be six standard errors under 93 %. */
TEST(the_bootstrap_interval_covers_the_truth_about_as_often_as_it_says) {
  size_t covered = 0, n = 20;
  for (uint64_t k = 0; k < 400; k++) {
    double v[20];
    for (size_t i = 0; i < n; i++) v[i] = rng_u01(rng_block(rng_stream_at(5, RNG_TEST, k), i).v[0]);
    interval a;
    CU_ASSERT_EQUAL(iqm_bootstrap(v, &n, 1, rng_stream_at(5, RNG_BOOTSTRAP, k), &a, NULL), GL_OK);
    covered += a.low <= 0.5 && 0.5 <= a.high;
  }
  CU_ASSERT(covered >= 340 && covered < 400);
}

/* Five points whose r is 0.8 by hand; Fisher's z has variance 1/2. */
TEST(pearsons_correlation_has_the_textbooks_interval) {
  const double x[] = {1, 2, 3, 4, 5}, y[] = {2, 1, 4, 3, 5}, flat[] = {1, 1, 1, 1, 1};
  correlation c;
  ASSERT_OK(pearson(x, y, 5, rng_stream_at(1, RNG_BOOTSTRAP, 1), &c, &err));
  ASSERT_CLOSE(c.fisher.value, 0.8, 1e-12);
  ASSERT_CLOSE(c.fisher.low, tanh(atanh(0.8) - 1.959963984540054 / sqrt(2)), 1e-9);
  ASSERT_CLOSE(c.fisher.high, tanh(atanh(0.8) + 1.959963984540054 / sqrt(2)), 1e-9);
  ASSERT_OK(pearson(x, flat, 5, rng_stream_at(1, RNG_BOOTSTRAP, 1), &c, &err));
  CU_ASSERT(c.why != NULL && isnan(c.fisher.value));
}

/* --- The Kaplan-Meier estimate: the published example, and its edges --- */

SUITE("analysis: survival");

/* Weeks of remission of 21 patients on 6-mercaptopurine (Freireich et al. 1963, Blood 21:699),
 * the example of most textbooks, with the estimate and Greenwood's standard errors as they give
 * them (Klein and Moeschberger, Survival Analysis, table 4.1). */
TEST(the_textbook_example_comes_out) {
  static const double time[] = {6,  6,  6,  6,  7,  9,  10, 10, 11, 13, 16,
                                17, 19, 20, 22, 23, 25, 32, 32, 34, 35};
  static const uint8_t collapsed[] = {1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1,
                                      0, 0, 0, 1, 1, 0, 0, 0, 0, 0};
  static const double at[] = {6, 7, 10, 13, 16, 22, 23};
  static const double survival[] = {0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448};
  static const double error[] = {0.076, 0.087, 0.096, 0.107, 0.114, 0.128, 0.135};
  survival_step curve[21];
  size_t steps = 0;
  CU_ASSERT_EQUAL_FATAL(survival_curve(time, collapsed, 21, curve, &steps, NULL), GL_OK);
  CU_ASSERT_EQUAL_FATAL(steps, 7);
  for (size_t k = 0; k < steps; ++k) {
    CU_ASSERT_EQUAL(curve[k].time, at[k]);
    CU_ASSERT(fabs(curve[k].survival - survival[k]) < 6e-4);
    CU_ASSERT(fabs(curve[k].error - error[k]) < 6e-4);
  }
  CU_ASSERT_EQUAL(curve[0].at_risk, 21);
  CU_ASSERT_EQUAL(curve[0].collapses, 3);
  CU_ASSERT_EQUAL(curve[6].at_risk, 6);
}

TEST(all_fallen_leaves_nothing_and_none_fallen_no_step) {
  static const double time[] = {2, 1, 2};
  static const uint8_t all[] = {1, 1, 1}, none[] = {0, 0, 0};
  survival_step curve[3];
  size_t steps = 9;
  CU_ASSERT_EQUAL(survival_curve(time, all, 3, curve, &steps, NULL), GL_OK);
  CU_ASSERT_EQUAL_FATAL(steps, 2);
  CU_ASSERT_EQUAL(curve[1].survival, 0);
  CU_ASSERT_EQUAL(curve[1].error, 0);
  CU_ASSERT_EQUAL(survival_curve(time, none, 3, curve, &steps, NULL), GL_OK);
  CU_ASSERT_EQUAL(steps, 0);
  CU_ASSERT_EQUAL(survival_curve(time, none, 0, curve, &steps, NULL), GL_OK);
  CU_ASSERT_EQUAL(steps, 0);
}

TEST(times_that_are_none_are_refused) {
  static const double time[] = {1, -1}, nothing[] = {NAN};
  static const uint8_t collapsed[] = {1, 1};
  survival_step curve[2];
  size_t steps;
  CU_ASSERT_EQUAL(survival_curve(time, collapsed, 2, curve, &steps, NULL), GL_EINPUT);
  CU_ASSERT_EQUAL(survival_curve(nothing, collapsed, 1, curve, &steps, NULL), GL_EINPUT);
}

SUITE("analysis: doses");

/* --- */

/* Firth's logistic regression against an independent computation (tests/golden/dose.py), exact
 * intervals of shares, and what cannot be told. */

enum { MOST_DOSES = 8 };

typedef struct fixture {
  char name[32];
  dose_group group[MOST_DOSES];
  size_t n;
  double a, b, log_likelihood;
} fixture;

static int read_fixture(FILE *from, fixture *f) {
  if (fscanf(from, "%31s %zu", f->name, &f->n) != 2 || f->n > MOST_DOSES) return 0;
  for (size_t i = 0; i < f->n; i++)
    if (fscanf(from, "%lf %zu %zu", &f->group[i].x, &f->group[i].runs, &f->group[i].collapses) != 3)
      return 0;
  if (fscanf(from, "%lf %lf %lf", &f->a, &f->b, &f->log_likelihood) != 3) return 0;
  return 1;
}

static int near(double x, double y, double by) {
  return fabs(x - y) <= by * (1 + fabs(y));
}

static void check_fixture(const fixture *f) {
  dose_fit fit;
  CU_ASSERT_EQUAL_FATAL(dose_fit_of(f->group, f->n, &fit, NULL), GL_OK);
  CU_ASSERT_PTR_NULL(fit.why);
  CU_ASSERT(near(fit.a, f->a, 1e-6));
  CU_ASSERT(near(fit.b, f->b, 1e-6));
  CU_ASSERT(near(fit.log_likelihood, f->log_likelihood, 1e-9));
}

TEST(fits_agree_with_an_independent_computation) {
  FILE *from = fopen("tests/golden/dose.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  fixture f;
  int read = 0;
  for (; read_fixture(from, &f); read++) check_fixture(&f);
  CU_ASSERT_EQUAL(read, 5);
  fclose(from);
}

/* Of 100 runs at each of nine doses the estimate lies near the truth: the counts are the expected
 * ones, rounded. */
TEST(a_known_dist_comes_out) {
  dose_group group[9];
  for (size_t i = 0; i < 9; i++) {
    const double x = -2 + 0.5 * (double)i;
    group[i] = (dose_group){x, 100, (size_t)lround(100 / (1 + exp(-(1 + 2 * x))))};
  }
  dose_fit fit;
  CU_ASSERT_EQUAL(dose_fit_of(group, 9, &fit, NULL), GL_OK);
  CU_ASSERT(fabs(fit.a - 1) < 0.05 && fabs(fit.b - 2) < 0.05);
}

TEST(what_the_runs_do_not_tell_is_said) {
  const dose_group none[] = {{0, 4, 0}, {1, 4, 0}}, all[] = {{0, 4, 4}, {1, 4, 4}};
  const dose_group one[] = {{0, 4, 1}, {1, 0, 0}}, falling[] = {{0, 8, 7}, {1, 8, 1}};
  dose_fit fit;
  CU_ASSERT_EQUAL(dose_fit_of(none, 2, &fit, NULL), GL_OK);
  CU_ASSERT_STRING_EQUAL(fit.why, "no run collapses");
  CU_ASSERT_EQUAL(dose_fit_of(all, 2, &fit, NULL), GL_OK);
  CU_ASSERT_STRING_EQUAL(fit.why, "every run collapses");
  CU_ASSERT_EQUAL(dose_fit_of(one, 2, &fit, NULL), GL_OK);
  CU_ASSERT_STRING_EQUAL(fit.why, "fewer than two doses");
  CU_ASSERT_EQUAL(dose_fit_of(falling, 2, &fit, NULL), GL_OK);
  CU_ASSERT_STRING_EQUAL(fit.why, "collapses do not increase with it");
  CU_ASSERT(fit.b < 0);
}

TEST(impossible_doses_are_refused) {
  const dose_group infinite[] = {{-INFINITY, 4, 0}, {1, 4, 2}}, more[] = {{0, 4, 5}, {1, 4, 2}};
  dose_fit fit;
  CU_ASSERT_EQUAL(dose_fit_of(infinite, 2, &fit, NULL), GL_EINPUT);
  CU_ASSERT_EQUAL(dose_fit_of(more, 2, &fit, NULL), GL_EINPUT);
}

/* Clopper and Pearson: five of five survivors mean at most 1 - 0.025^(1/5) falls; 2 of 10 is the
 * interval of their tables. */
TEST(shares_have_exact_intervals) {
  const interval none = fraction_interval(0, 5), all = fraction_interval(5, 5);
  CU_ASSERT_EQUAL(none.low, 0);
  CU_ASSERT(fabs(none.high - (1 - pow(0.025, 0.2))) < 1e-12);
  CU_ASSERT(fabs(all.low - pow(0.025, 0.2)) < 1e-12);
  CU_ASSERT_EQUAL(all.high, 1);
  const interval some = fraction_interval(2, 10);
  CU_ASSERT(fabs(some.low - 0.02521) < 1e-5 && fabs(some.high - 0.55610) < 1e-5);
  CU_ASSERT(isnan(fraction_interval(0, 0).value));
}
