/* Firth's logistic regression against an independent computation (tests/golden/dose.py), exact
 * intervals of shares, and what cannot be told. */
#include "analysis/dose.h"
#include "tests/support/suite.h"

#include <stdio.h>

enum { MOST_DOSES = 8, SHARES = 2 };

typedef struct fixture {
  char name[32];
  dose_group group[MOST_DOSES];
  size_t n;
  double a, b, log_likelihood, share[SHARES];
  interval at[SHARES];
} fixture;

static int read_fixture(FILE *from, fixture *f) {
  if (fscanf(from, "%31s %zu", f->name, &f->n) != 2 || f->n > MOST_DOSES) return 0;
  for (size_t i = 0; i < f->n; i++)
    if (fscanf(from, "%lf %zu %zu", &f->group[i].x, &f->group[i].runs, &f->group[i].falls) != 3)
      return 0;
  if (fscanf(from, "%lf %lf %lf", &f->a, &f->b, &f->log_likelihood) != 3) return 0;
  for (size_t i = 0; i < SHARES; i++)
    if (fscanf(from, "%lf %lf %lf %lf", &f->share[i], &f->at[i].value, &f->at[i].low,
               &f->at[i].high) != 4)
      return 0;
  return 1;
}

static int near(double x, double y, double by) {
  return isinf(y) ? x == y : fabs(x - y) <= by * (1 + fabs(y));
}

static void check_fixture(const fixture *f) {
  dose_fit fit;
  CU_ASSERT_EQUAL_FATAL(dose_fit_of(f->group, f->n, &fit, NULL), GL_OK);
  CU_ASSERT_PTR_NULL(fit.why);
  CU_ASSERT(near(fit.a, f->a, 1e-6));
  CU_ASSERT(near(fit.b, f->b, 1e-6));
  CU_ASSERT(near(fit.log_likelihood, f->log_likelihood, 1e-9));
  for (size_t i = 0; i < SHARES; i++) {
    const interval v = dose_at(f->group, f->n, &fit, f->share[i], 3);
    CU_ASSERT(near(v.value, f->at[i].value, 1e-6));
    CU_ASSERT(near(v.low, f->at[i].low, 1e-5));
    CU_ASSERT(near(v.high, f->at[i].high, 1e-5));
    if (!near(v.low, f->at[i].low, 1e-5) || !near(v.high, f->at[i].high, 1e-5))
      printf("%s, share %g: [%.9g, %.9g], expected [%.9g, %.9g]\n", f->name, f->share[i], v.low,
             v.high, f->at[i].low, f->at[i].high);
  }
}

static void fits_and_profiles_agree_with_an_independent_computation(void) {
  FILE *from = fopen("tests/golden/dose.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  fixture f;
  int read = 0;
  for (; read_fixture(from, &f); read++) check_fixture(&f);
  CU_ASSERT_EQUAL(read, 5);
  fclose(from);
}

/* Of 100 runs at each of nine doses the estimate lies near the truth, and the interval holds it:
 * the counts are the expected ones, rounded. */
static void a_known_dist_comes_out(void) {
  dose_group group[9];
  for (size_t i = 0; i < 9; i++) {
    const double x = -2 + 0.5 * (double)i;
    group[i] = (dose_group){x, 100, (size_t)lround(100 / (1 + exp(-(1 + 2 * x))))};
  }
  dose_fit fit;
  CU_ASSERT_EQUAL(dose_fit_of(group, 9, &fit, NULL), GL_OK);
  CU_ASSERT(fabs(fit.a - 1) < 0.05 && fabs(fit.b - 2) < 0.05);
  const interval half = dose_at(group, 9, &fit, 0.5, 5);
  CU_ASSERT(half.low < -0.5 && half.high > -0.5 && half.high - half.low < 0.3);
}

static void what_the_runs_do_not_tell_is_said(void) {
  const dose_group none[] = {{0, 4, 0}, {1, 4, 0}}, all[] = {{0, 4, 4}, {1, 4, 4}};
  const dose_group one[] = {{0, 4, 1}, {1, 0, 0}}, falling[] = {{0, 8, 7}, {1, 8, 1}};
  dose_fit fit;
  CU_ASSERT_EQUAL(dose_fit_of(none, 2, &fit, NULL), GL_OK);
  CU_ASSERT_STRING_EQUAL(fit.why, "no run falls");
  CU_ASSERT(isnan(dose_at(none, 2, &fit, 0.5, 3).value));
  CU_ASSERT_EQUAL(dose_fit_of(all, 2, &fit, NULL), GL_OK);
  CU_ASSERT_STRING_EQUAL(fit.why, "every run falls");
  CU_ASSERT_EQUAL(dose_fit_of(one, 2, &fit, NULL), GL_OK);
  CU_ASSERT_STRING_EQUAL(fit.why, "fewer than two doses");
  CU_ASSERT_EQUAL(dose_fit_of(falling, 2, &fit, NULL), GL_OK);
  CU_ASSERT_PTR_NULL(fit.why);
  CU_ASSERT(fit.b < 0);
  const interval open = dose_at(falling, 2, &fit, 0.5, 3);
  CU_ASSERT(isnan(open.value) && isinf(open.low) && isinf(open.high));
}

static void impossible_doses_are_refused(void) {
  const dose_group infinite[] = {{-INFINITY, 4, 0}, {1, 4, 2}}, more[] = {{0, 4, 5}, {1, 4, 2}};
  dose_fit fit;
  CU_ASSERT_EQUAL(dose_fit_of(infinite, 2, &fit, NULL), GL_EINPUT);
  CU_ASSERT_EQUAL(dose_fit_of(more, 2, &fit, NULL), GL_EINPUT);
}

/* Clopper and Pearson: five of five survivors mean at most 1 - 0.025^(1/5) falls; 2 of 10 is the
 * interval of their tables. */
static void shares_have_exact_intervals(void) {
  const interval none = share_interval(0, 5), all = share_interval(5, 5);
  CU_ASSERT_EQUAL(none.low, 0);
  CU_ASSERT(fabs(none.high - (1 - pow(0.025, 0.2))) < 1e-12);
  CU_ASSERT(fabs(all.low - pow(0.025, 0.2)) < 1e-12);
  CU_ASSERT_EQUAL(all.high, 1);
  const interval some = share_interval(2, 10);
  CU_ASSERT(fabs(some.low - 0.02521) < 1e-5 && fabs(some.high - 0.55610) < 1e-5);
  CU_ASSERT(isnan(share_interval(0, 0).value));
}

SUITE(analysis_dose, "analysis: doses",
      TEST(fits_and_profiles_agree_with_an_independent_computation), TEST(a_known_dist_comes_out),
      TEST(what_the_runs_do_not_tell_is_said), TEST(impossible_doses_are_refused),
      TEST(shares_have_exact_intervals));
