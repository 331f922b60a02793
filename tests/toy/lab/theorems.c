/* The exact facts of paper/methods.md §8 about weights: closed forms, quadrature, enumeration. */
#include "toy/lab/theorems.h"
#include "tests/support/suite.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_integration.h>
#include <math.h>
#include <string.h>

SUITE("lab: the theorems in exact numbers");

/* p^a q^b of two unit normals d apart, with a = p_power and b = q_power. */
typedef struct moment {
  double d;
  int p_power, q_power;
} moment;

static double integrand(double x, void *parameters) {
  const moment *m = parameters;
  const double log_2pi = 1.8378770664093454836;
  double log_p = -0.5 * ((x - m->d) * (x - m->d) + log_2pi), log_q = -0.5 * (x * x + log_2pi);
  return exp(m->p_power * log_p + m->q_power * log_q);
}

/* The integral of p^a q^b by adaptive Gauss-Kronrod quadrature. The integrand is a Gaussian; 12
 * standard deviations on both sides of its centre contain it to double precision. */
static double integrate(double d, int p_power, int q_power) {
  gsl_integration_workspace *space = gsl_integration_workspace_alloc(1000);
  moment m = {d, p_power, q_power};
  gsl_function f = {.function = integrand, .params = &m};
  double total = p_power + q_power, centre = d * p_power / total, width = 12 / sqrt(total);
  double value = NAN, error;
  int code = gsl_integration_qag(&f, centre - width, centre + width, 0, 1e-13, 1000,
                                 GSL_INTEG_GAUSS61, space, &value, &error);
  gsl_integration_workspace_free(space);
  return code == GSL_SUCCESS || code == GSL_EROUND ? value : NAN;
}

TEST(unit_normals_have_the_closed_forms_by_quadrature) {
  for (int i = 0; i <= 12; ++i) {
    const double d = 0.25 * i, qp = integrate(d, 1, 1), qq = integrate(d, 0, 2);
    const double constant[LAB_CONSTANTS] = {qq, integrate(d, 0, 3) / qq};
    const double variance = integrate(d, 2, 1) - qp * qp;
    lab_weights_stats closed;
    lab_theory_gaussian(d, &closed);
    ASSERT_CLOSE(integrate(d, 2, -1) - 1, closed.variance_pq, 1e-12);
    for (int k = 0; k < LAB_CONSTANTS; ++k)
      ASSERT_CLOSE(variance / (constant[k] * constant[k]), closed.variance[k], 1e-12);
  }
}

TEST(unit_normals_cross_where_the_reference_says) {
  lab_weights_stats on_policy;
  double d2, kl;
  lab_theory_gaussian(0, &on_policy);
  ASSERT_CLOSE(on_policy.variance_pq, 0, 0);
  ASSERT_CLOSE(on_policy.variance[LAB_EXPECTED], 2 / sqrt(3) - 1, 1e-14);
  ASSERT_CLOSE(on_policy.variance[LAB_COMPUTED], 0.75 * (2 / sqrt(3) - 1), 1e-14);
  ASSERT_OK(lab_theory_gaussian_crossing(LAB_EXPECTED, &d2, &kl, &err));
  ASSERT_CLOSE(d2, 0.158236, 5e-7);
  ASSERT_CLOSE(kl, 0.079118, 5e-7);
  ASSERT_OK(lab_theory_gaussian_crossing(LAB_COMPUTED, &d2, &kl, &err));
  ASSERT_CLOSE(d2, 0.118332, 5e-7);
  ASSERT_CLOSE(kl, 0.059166, 5e-7);
}

TEST(bernoulli_closed_forms_agree_with_sums) {
  for (int i = 1; i < 20; ++i)
    for (int j = 1; j < 20; ++j) {
      const double a = i / 20.0, b = j / 20.0, p[] = {a, 1 - a}, q[] = {b, 1 - b};
      lab_weights_stats closed, sums;
      lab_theory_bernoulli(a, b, &closed);
      lab_theory_discrete(p, q, 2, &sums);
      ASSERT_CLOSE(closed.kl, sums.kl, 1e-12);
      ASSERT_CLOSE(closed.variance_pq, sums.variance_pq, 1e-12);
      for (int k = 0; k < LAB_CONSTANTS; ++k)
        ASSERT_CLOSE(closed.variance[k], sums.variance[k], 1e-12);
    }
}

TEST(products_of_tokens_agree_with_their_enumeration) {
  const double p[] = {0.5, 0.3, 0.2}, q[] = {0.2, 0.2, 0.6};
  double whole_p[27], whole_q[27];
  for (int y = 0; y < 27; ++y) {
    whole_p[y] = p[y % 3] * p[y / 3 % 3] * p[y / 9];
    whole_q[y] = q[y % 3] * q[y / 3 % 3] * q[y / 9];
  }
  lab_weights_stats product, sums;
  lab_theory_product(p, q, 3, 3, &product);
  lab_theory_discrete(whole_p, whole_q, 27, &sums);
  ASSERT_CLOSE(product.kl, sums.kl, 1e-12);
  ASSERT_CLOSE(product.variance_pq, sums.variance_pq, 1e-12);
  for (int k = 0; k < LAB_CONSTANTS; ++k)
    ASSERT_CLOSE(product.variance[k], sums.variance[k], 1e-12);
}

TEST(long_products_neither_underflow_nor_vanish) {
  const double p[] = {0.5, 0.3, 0.2}, q[] = {0.4, 0.35, 0.25};
  lab_weights_stats s;
  lab_theory_product(p, q, 3, 600, &s);
  CU_ASSERT(isfinite(s.variance[LAB_EXPECTED]) && s.variance[LAB_EXPECTED] > 1);
}

/* No pair needs more than the closed form, and its own extreme pair needs exactly that. */
TEST(theorem_1_has_the_smallest_constant_claimed) {
  static const size_t sizes[] = {2, 3, 5, 12, 40};
  double p[40], q[40];
  for (size_t i = 0; i < 5; ++i) {
    const size_t n = sizes[i];
    lab_weights_stats s;
    double x;
    for (int k = 0; k < LAB_CONSTANTS; ++k) {
      const double most = lab_theory_smallest_constant((double)n, (lab_constant)k, &x);
      CU_ASSERT(most < (double)(n * n + 1));
      for (size_t y = 0; y < n; ++y) {
        p[y] = y == 0;
        q[y] = y == 0 ? x : (1 - x) / (double)(n - 1);
      }
      lab_theory_discrete(p, q, n, &s);
      ASSERT_CLOSE(s.constant[k], most, 1e-9);
      for (uint64_t pair = 0; pair < 4000; ++pair) {
        const double alpha = pair % 2 ? 1 : 0.1, apart = pair % 4 < 2 ? -1 : 1.5;
        ASSERT_OK(lab_theory_random_pair(&(lab_random_pair){n, alpha, apart, 5, pair}, p, q, &err));
        lab_theory_discrete(p, q, n, &s);
        if (!(s.constant[k] <= most * (1 + 1e-12))) CU_FAIL("a larger constant is needed");
      }
    }
  }
}

TEST(theorem_2_holds_under_its_assumption) {
  lab_worst w;
  for (size_t n = 2; n <= 5; ++n) {
    ASSERT_OK(lab_theory_search(LAB_ADVANTAGE_P, n, 20, 1, &w, &err));
    CU_ASSERT(w.ratio < 1 && w.violations == 0);
    CU_ASSERT(w.value.max_advantage <= 1);
  }
}

TEST(theorem_2_fails_with_the_samplers_mean_as_baseline) {
  lab_worst w;
  lab_theorem2 again;
  ASSERT_OK(lab_theory_search(LAB_ADVANTAGE_Q, 3, 20, 1, &w, &err));
  CU_ASSERT(w.ratio > 1.3 && w.violations > 0 && w.value.max_advantage <= 1);
  lab_theory_theorem2(w.p, w.q, w.advantage, 3, &again);
  ASSERT_CLOSE(again.left / again.right, w.ratio, 1e-12);
}

/* A counterexample by hand: p on two outcomes that q hardly draws, rewards 0 and 1. */
TEST(a_counterexample_of_theorem_2_by_hand) {
  const double e = 1e-6, p[] = {0, 0.5, 0.5}, q[] = {1 - 2 * e, e, e}, r[] = {0, 1, 1};
  double a[3];
  lab_theorem2 t;
  lab_theory_advantage(LAB_ADVANTAGE_Q, p, q, r, 3, a);
  lab_theory_theorem2(p, q, a, 3, &t);
  CU_ASSERT(t.left > 0.99 && t.right < 0.708 && t.max_advantage <= 1);
}

TEST(advantage_variances_are_those_of_enumeration) {
  const double p[] = {0.5, 0.3, 0.2}, q[] = {0.2, 0.2, 0.6}, a[] = {1, -0.5, 0.25};
  double pq, group[LAB_CONSTANTS], mean = 0, square = 0;
  lab_theory_advantage_variance(p, q, a, 3, &pq, group);
  for (int y = 0; y < 3; ++y) {
    mean += q[y] * a[y] * p[y] / q[y];
    square += q[y] * pow(a[y] * p[y] / q[y], 2);
  }
  ASSERT_CLOSE(pq, square - mean * mean, 1e-13);
  mean = square = 0;
  for (int y = 0; y < 3; ++y) {
    mean += q[y] * a[y] * p[y] / 0.44;
    square += q[y] * pow(a[y] * p[y] / 0.44, 2);
  }
  ASSERT_CLOSE(group[LAB_EXPECTED], square - mean * mean, 1e-13);
}
