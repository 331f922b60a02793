/* Random factors on the weights of responses: their distribution, and what they do in a learner. */
#include "core/rl/update.h"

#include "tests/support/toy_fixture.h"

#include <math.h>

/* 200,000 factors. Of log-normal factors with variance V the fourth central moment is V^2 (w^4 + 2
 * w^3 + 3 w^2 - 3), w = 1 + V; both statistics lie within 4.9 standard errors in all but one of a
 * million cases. */
static void factors_have_mean_one_and_the_variance_asked_for(void) {
  enum { N = 200000 };
  const double variance = 0.5, w = 1 + variance;
  const double fourth = variance * variance * (pow(w, 4) + 2 * pow(w, 3) + 3 * w * w - 3);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < N; ++i) {
    const double f = weight_noise_factor(variance, 3, i / 1000, i / 100 % 10, i % 100);
    CU_ASSERT_FATAL(f > 0);
    sum += f;
    squares += (f - 1) * (f - 1);
  }
  CU_ASSERT(fabs(sum / N - 1) < 4.9 * sqrt(variance / N));
  CU_ASSERT(fabs(squares / N - variance) < 4.9 * sqrt((fourth - variance * variance) / N));
}

static void a_factor_belongs_to_its_step_its_update_and_its_response(void) {
  const double f = weight_noise_factor(1, 1, 2, 3, 4);
  CU_ASSERT_EQUAL(weight_noise_factor(1, 1, 2, 3, 4), f);
  CU_ASSERT_NOT_EQUAL(weight_noise_factor(1, 2, 2, 3, 4), f);
  CU_ASSERT_NOT_EQUAL(weight_noise_factor(1, 1, 3, 3, 4), f);
  CU_ASSERT_NOT_EQUAL(weight_noise_factor(1, 1, 2, 4, 4), f);
  CU_ASSERT_NOT_EQUAL(weight_noise_factor(1, 1, 2, 3, 5), f);
  CU_ASSERT_EQUAL(weight_noise_factor(0, 1, 2, 3, 4), 1);
}

static void all_coefficients_of_a_response_have_its_factor(void) {
  const size_t start[] = {0, 2, 2, 5};
  double c[] = {1, -2, 3, 0, 5};
  weight_noise_apply(0.25, 9, 1, 0, start, 3, c);
  const double first = weight_noise_factor(0.25, 9, 1, 0, 0),
               last = weight_noise_factor(0.25, 9, 1, 0, 2);
  const double expected[] = {first, -2 * first, 3 * last, 0, 5 * last};
  for (size_t k = 0; k < 5; ++k) CU_ASSERT_EQUAL(c[k], expected[k]);
  weight_noise_apply(0, 9, 1, 0, start, 3, c);
  for (size_t k = 0; k < 5; ++k) CU_ASSERT_EQUAL(c[k], expected[k]);
}

/* One response alone moves the parameters of a plain gradient step by its factor times what it
 * would. */
static void a_learners_step_is_that_of_its_factor(void) {
  double moved[2];
  for (size_t k = 0; k < 2; ++k) {
    char text[300];
    snprintf(text, sizeof text,
             "world: {kind: bandit, rewards: [1, 0.5]}\noptimizer: {kind: sgd, lr: 0.1, "
             "clip_grad_norm: 0}\nalgorithm: {base: reinforce, baseline: none}\n"
             "train: {groups: 1, group_size: 1, weight_noise: %s}",
             k == 0 ? "0" : "0.5");
    double metrics[METRIC_COUNT];
    learner_fixture l = learner_open(text, 2);
    batch b = learner_draw(&l, 1);
    learner_update(&l, &b, metrics);
    moved[k] = metrics[METRIC_GRAD_NORM];
    batch_fini(&b);
    learner_close(&l);
  }
  CU_ASSERT(moved[0] > 0);
  ASSERT_CLOSE(moved[1] / moved[0], weight_noise_factor(0.5, 2, 0, 0, 0), 1e-12);
}

SUITE(rl_weight_noise, "core: noise of weights",
      TEST(factors_have_mean_one_and_the_variance_asked_for),
      TEST(a_factor_belongs_to_its_step_its_update_and_its_response),
      TEST(all_coefficients_of_a_response_have_its_factor),
      TEST(a_learners_step_is_that_of_its_factor));
