/* The loop of updates: the cosine of consecutive gradients, and the noise of weights. */
#include "core/rl/update.h"

#include "tests/support/suite.h"
#include "tests/support/toy_fixture.h"

#include <math.h>
#include <string.h>

/* --- consecutive gradients --- */

SUITE("core: consecutive gradients");

enum { SIZE = 7 };

static void put(gradient_trail *t, const double *g) {
  memcpy(t->now, g, SIZE * sizeof *g);
  gradient_trail_next(t);
}

/* The cosine of b after a. */
static double between(const double *a, const double *b) {
  gradient_trail t;
  ASSERT_OK(gradient_trail_init(&t, SIZE, &err));
  put(&t, a);
  gradient_trail_begin(&t);
  put(&t, b);
  const double c = gradient_trail_mean(&t);
  gradient_trail_fini(&t);
  return c;
}

TEST(angles_are_those_of_the_vectors) {
  const double a[SIZE] = {3, 0, 0, 4, 0, 0, 0}, across[SIZE] = {-4, 0, 0, 3, 0, 0, 0},
               back[SIZE] = {-6, 0, 0, -8, 0, 0, 0}, half[SIZE] = {7, 0, 0, 1, 0, 0, 0};
  ASSERT_CLOSE(between(a, a), 1, 1e-15);
  ASSERT_CLOSE(between(a, across), 0, 1e-15);
  ASSERT_CLOSE(between(a, back), -1, 1e-15);
  ASSERT_CLOSE(between(a, half), sqrt(0.5), 1e-15); /* 25 / (5 sqrt 50) */
  const double last[SIZE] = {0, 0, 0, 0, 0, 0, 2};  /* the number behind the last four */
  ASSERT_CLOSE(between(last, last), 1, 1e-15);
}

TEST(sizes_do_not_matter) {
  static const double sizes[] = {1e-320, 1e-300, 1e-170, 1e160, 1e300};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
    for (size_t j = 0; j < sizeof sizes / sizeof *sizes; ++j) {
      const double a[SIZE] = {sizes[i], sizes[i]}, b[SIZE] = {sizes[j], 0};
      ASSERT_CLOSE(between(a, b), sqrt(0.5), 1e-12);
    }
}

TEST(what_is_zero_or_not_finite_has_no_cosine) {
  const double a[SIZE] = {1, 2}, zero[SIZE] = {0}, nan[SIZE] = {1, NAN}, inf[SIZE] = {INFINITY, 1};
  CU_ASSERT(isnan(between(a, zero)) && isnan(between(zero, a)));
  CU_ASSERT(isnan(between(a, nan)) && isnan(between(nan, a)));
  CU_ASSERT(isnan(between(a, inf)) && isnan(between(inf, a)));
}

TEST(a_step_has_the_mean_over_its_updates_and_the_first_of_all_has_none) {
  const double x[SIZE] = {1}, y[SIZE] = {0, 1}, both[SIZE] = {1, 1};
  gradient_trail t;
  ASSERT_OK(gradient_trail_init(&t, SIZE, &err));
  gradient_trail_begin(&t);
  put(&t, x);
  CU_ASSERT(isnan(gradient_trail_mean(&t)));
  gradient_trail_begin(&t);
  put(&t, y);    /* 0 to the step before */
  put(&t, both); /* 45 degrees */
  ASSERT_CLOSE(gradient_trail_mean(&t), sqrt(0.5) / 2, 1e-15);
  gradient_trail_fini(&t);
}

/* --- noise of weights --- */

SUITE("core: noise of weights");

/* 200,000 factors. Of log-normal factors with variance V the fourth central moment is V^2 (w^4 + 2
 * w^3 + 3 w^2 - 3), w = 1 + V; both statistics lie within 4.9 standard errors in all but one of a
 * million cases. */
TEST(factors_have_mean_one_and_the_variance_asked_for) {
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

TEST(a_factor_belongs_to_its_step_its_update_and_its_response) {
  const double f = weight_noise_factor(1, 1, 2, 3, 4);
  CU_ASSERT_EQUAL(weight_noise_factor(1, 1, 2, 3, 4), f);
  CU_ASSERT_NOT_EQUAL(weight_noise_factor(1, 2, 2, 3, 4), f);
  CU_ASSERT_NOT_EQUAL(weight_noise_factor(1, 1, 3, 3, 4), f);
  CU_ASSERT_NOT_EQUAL(weight_noise_factor(1, 1, 2, 4, 4), f);
  CU_ASSERT_NOT_EQUAL(weight_noise_factor(1, 1, 2, 3, 5), f);
  CU_ASSERT_EQUAL(weight_noise_factor(0, 1, 2, 3, 4), 1);
  const rng_words w = rng_block(rng_stream_at(1, RNG_WEIGHT_NOISE, 2), UINT64_C(3) << 32 | 4);
  const double width = sqrt(log1p(1));
  CU_ASSERT_EQUAL(f, exp(width * rng_normal(w) - width * width / 2));
}

TEST(all_coefficients_of_a_response_have_its_factor) {
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
TEST(a_learners_step_is_that_of_its_factor) {
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
  }
  CU_ASSERT(moved[0] > 0);
  ASSERT_CLOSE(moved[1] / moved[0], weight_noise_factor(0.5, 2, 0, 0, 0), 1e-12);
}

/* --- random drops --- */

SUITE("core: random drops");

/* 2,000 updates of two groups: rewards 1, 0, 0 and 1, 1, 1. Only the wrong ones of the first can be
 * dropped; of 4,000 a fraction within 5 standard errors of 0.3, but for one case in a million. */
TEST(wrong_responses_are_dropped_with_their_probability) {
  enum { N = 2000 };
  size_t group_start[] = {0, 3, 6}, token_start[] = {0, 1, 3, 4, 5, 6, 7};
  double reward[] = {1, 0, 0, 1, 1, 1}, coefficient[7];
  const update_table t = {.n_groups = 2,
                          .n_responses = 6,
                          .n_tokens = 7,
                          .group_start = group_start,
                          .token_start = token_start,
                          .reward = reward,
                          .coefficient = coefficient};
  size_t dropped = 0;
  for (size_t step = 0; step < N; ++step) {
    for (size_t k = 0; k < 7; ++k) coefficient[k] = (double)k + 1;
    random_drops_apply(&(random_drops){.negative = 0.3}, 7, step, step % 3, &t);
    for (size_t k = 0; k < 7; ++k)
      if (k < 1 || k > 3) CU_ASSERT_EQUAL(coefficient[k], (double)k + 1);
    CU_ASSERT((coefficient[1] == 0) == (coefficient[2] == 0));
    dropped += (size_t)(coefficient[1] == 0) + (size_t)(coefficient[3] == 0);
  }
  CU_ASSERT(fabs((double)dropped / (2 * N) - 0.3) < 5 * sqrt(0.3 * 0.7 / (2 * N)));
  coefficient[0] = 1;
  random_drops_apply(&(random_drops){.positive = 1}, 7, 0, 0, &t);
  CU_ASSERT_EQUAL(coefficient[0], 0);
  for (size_t k = 0; k < 7; ++k) coefficient[k] = 1;
  for (size_t i = 3; i < 6; ++i) reward[i] = 0.1; /* whose mean is not 0.1 in floating point */
  random_drops_apply(&(random_drops){.negative = 1, .positive = 1}, 7, 0, 0, &t);
  for (size_t k = 0; k < 7; ++k) CU_ASSERT_EQUAL(coefficient[k], k < 4 ? 0 : 1);
  random_drops_apply(&(random_drops){.equal = 1}, 7, 0, 0, &t);
  for (size_t k = 0; k < 7; ++k) CU_ASSERT_EQUAL(coefficient[k], 0);
}

/* Stored studies have drops at these addresses. */
TEST(a_drop_uses_the_block_of_its_step_update_and_response) {
  enum { N = 50 };
  size_t group_start[] = {0, N + 1}, token_start[N + 2];
  double reward[N + 1] = {0}, coefficient[N + 1];
  const update_table t = {.n_groups = 1,
                          .n_responses = N + 1,
                          .n_tokens = N + 1,
                          .group_start = group_start,
                          .token_start = token_start,
                          .reward = reward,
                          .coefficient = coefficient};
  for (size_t i = 0; i < N + 2; ++i) token_start[i] = i;
  for (size_t i = 0; i < N + 1; ++i) coefficient[i] = 1;
  reward[N] = 1;
  random_drops_apply(&(random_drops){.negative = 0.4}, 7, 11, UPDATE_MOST_RANDOM - 1, &t);
  for (size_t i = 0; i < N; ++i) {
    const uint64_t index = (uint64_t)(UPDATE_MOST_RANDOM - 1) << 32 | i;
    const rng_words w = rng_block(rng_stream_at(7, RNG_WEIGHT_NOISE, 11), index);
    CU_ASSERT_EQUAL(coefficient[i] == 0, rng_u01_53(w.v[0], w.v[1]) < 0.4);
  }
}

/* A learner whose wrong responses are all dropped takes the step of one that has no wrong ones. */
TEST(a_learner_without_wrong_responses_has_the_gradient_of_the_right_ones) {
  double norm[2];
  for (size_t k = 0; k < 2; ++k) {
    char text[300];
    snprintf(text, sizeof text,
             "world: {kind: bandit, rewards: [1, 0]}\noptimizer: {kind: sgd, lr: 0.1, "
             "clip_grad_norm: 0}\nalgorithm: {base: reinforce, baseline: %s}\n"
             "train: {groups: 1, group_size: 8%s}",
             k == 0 ? "none" : "constant, baseline_value: 0.5", k == 0 ? "" : ", drop_negative: 1");
    double metrics[METRIC_COUNT];
    learner_fixture l = learner_open(text, 2);
    batch b = learner_draw(&l, 1);
    learner_update(&l, &b, metrics);
    norm[k] = metrics[METRIC_GRAD_NORM];
    batch_fini(&b);
  }
  CU_ASSERT(norm[0] > 0);
  ASSERT_CLOSE(norm[1], norm[0] / 2, 1e-12); /* advantages of 1 and of 0.5 */
}

/* --- right responses --- */

SUITE("core: right responses");

/* Four groups of three responses of two tokens: two different right ones, the same right one twice,
 * a right one beside equal wrong ones, and none; then one reward that is neither 0 nor 1. */
TEST(different_right_responses_are_counted) {
  static const double reward[12] = {1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0};
  static const int32_t token[24] = {0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1,
                                    0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 0};
  static const char text[] = "world: {kind: sequence, vocabulary: 2, horizon: 2, prompts: 4}\n"
                             "algorithm: grpo\ntrain: {groups: 4, group_size: 3}";
  for (int graded = 0; graded < 2; ++graded) {
    double metrics[METRIC_COUNT];
    learner_fixture l = learner_open(text, 1);
    batch b = learner_draw(&l, 0);
    CU_ASSERT_EQUAL_FATAL(b.n_tokens, 24);
    memcpy(b.reward, reward, sizeof reward);
    memcpy(b.token, token, sizeof token);
    if (graded) b.reward[11] = 0.5;
    metrics_clear(metrics);
    learner_update(&l, &b, metrics);
    if (graded)
      CU_ASSERT(isnan(metrics[METRIC_PASS_AT_G]) && isnan(metrics[METRIC_DISTINCT_RIGHT]))
    else {
      CU_ASSERT_EQUAL(metrics[METRIC_PASS_AT_G], 0.75);
      CU_ASSERT_EQUAL(metrics[METRIC_DISTINCT_RIGHT], 1);
    }
    batch_fini(&b);
  }
}
