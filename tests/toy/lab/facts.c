/* The facts of paper/methods.md §7.9 about estimators, and Monte Carlo against enumeration. */
#include "tests/support/sanitized.h"
#include "tests/support/suite.h"
#include "toy/lab/estimator_moments.h"
#include "toy/lab/kernel.h"
#include "toy/lab/kl_dial.h"
#include "toy/lab/multiset.h"
#include "toy/world/toy_world.h"

#include <stdlib.h>
#include <string.h>

SUITE("lab: properties of estimators");

/* A bandit with logits and rewards drawn at the test's address. */
typedef struct arms {
  cfg_doc *doc;
  toy_world *world;
  enumerable view;
  double learner[16], sampler[16];
} arms;

static double u01(uint64_t test, uint64_t i) {
  return rng_u01(rng_block(rng_stream_at(11, RNG_TEST, test), i).v[0]);
}

static void arms_init(arms *a, size_t n, int binary, double apart, uint64_t test) {
  char text[1024] = "{kind: bandit, rewards: [";
  gl_error err = {.status = GL_OK};
  for (size_t y = 0; y < n; ++y) {
    double r = u01(test, 100 + y);
    size_t at = strlen(text);
    snprintf(text + at, sizeof text - at, "%s%g", y > 0 ? ", " : "",
             binary ? (y == 0   ? 1
                       : y == 1 ? 0
                                : r > 0.5)
                    : r);
  }
  strcat(text, "]}");
  *a = (arms){0};
  char whole[1100];
  snprintf(whole, sizeof whole, "world: %s\n", text);
  CU_ASSERT_FATAL(cfg_load_text(&a->doc, whole, strlen(whole), "test", &err) == GL_OK);
  CU_ASSERT_FATAL(toy_world_new(&a->world, cfg_find(cfg_root(a->doc), "world"), NULL, 1, &err) ==
                  GL_OK);
  a->view = toy_world_enumerable(a->world);
  for (size_t y = 0; y < n; ++y) {
    a->learner[y] = 2 * u01(test, y) - 1;
    a->sampler[y] = a->learner[y] + apart * (2 * u01(test, 50 + y) - 1);
  }
}

static void arms_fini(arms *a) {
  toy_world_free(a->world);
  cfg_free(a->doc);
}

static lab_result measured(const arms *a, const policy_algorithm *algorithm, size_t size,
                           size_t budget, size_t samples) {
  gl_error err = {.status = GL_OK};
  lab_result r = {0};
  const lab_spec spec = {.world = &a->view,
                         .theta_learner = a->learner,
                         .theta_sampler = a->sampler,
                         .group_size = size,
                         .budget = budget,
                         .samples = samples,
                         .seed = 1,
                         .entity = size,
                         .threads = 2};
  if (lab_measure(&r, &algorithm, 1, &spec, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT(err.status == GL_OK);
  return r;
}

TEST(importance_sampling_is_unbiased_with_leave_one_out) {
  for (uint64_t test = 0; test < 20; ++test)
    for (size_t size = 2; size <= 5; ++size) {
      arms a;
      arms_init(&a, 5, 0, 1.5, test);
      lab_result r = measured(&a, policy_algorithms_find("is"), size, 100000, 0);
      for (size_t i = 0; i < 5; ++i) ASSERT_CLOSE(r.expected[i], r.truth[i], 1e-13);
      lab_result_fini(&r);
      arms_fini(&a);
    }
}

TEST(a_group_mean_baseline_shrinks_importance_sampling) {
  policy_algorithm algorithm = *policy_algorithms_find("is");
  algorithm.baseline = BASELINE_GROUP_MEAN;
  for (uint64_t test = 0; test < 20; ++test)
    for (size_t size = 1; size <= 5; ++size) {
      arms a;
      arms_init(&a, 5, 0, 1.5, test);
      lab_result r = measured(&a, &algorithm, size, 100000, 0);
      const double factor = ((double)size - 1) / (double)size;
      for (size_t i = 0; i < 5; ++i) ASSERT_CLOSE(r.expected[i], factor * r.truth[i], 1e-13);
      lab_result_fini(&r);
      arms_fini(&a);
    }
}

/* On-policy in the population limit <g, J'> = [sum p^3 A^2 - (sum p^2 A)^2] / D >= 0, exactly. */
TEST(gepo_never_points_downhill_on_policy_in_the_limit) {
  policy_algorithm algorithm = *policy_algorithms_find("gepo");
  algorithm.clip = CLIP_NONE;
  algorithm.log_prob = LOG_PROB_SUM;
  for (uint64_t test = 0; test < 200; ++test) {
    arms a;
    arms_init(&a, 6, test % 2 == 0, 0, test);
    for (size_t y = 0; y < 6; ++y) a.sampler[y] = a.learner[y] *= 3;
    lab_result r = measured(&a, &algorithm, 0, 1, 0);
    double p[6], sum = 0, value = 0, reward[6], cube = 0, square = 0, dot = 0, qq = 0, qqq = 0;
    a.view.ops->rewards(a.view.self, 0, reward);
    for (size_t y = 0; y < 6; ++y) sum += p[y] = exp(a.learner[y]);
    for (size_t y = 0; y < 6; ++y) value += (p[y] /= sum) * reward[y];
    for (size_t y = 0; y < 6; ++y) {
      const double advantage = reward[y] - value;
      cube += p[y] * p[y] * p[y] * advantage * advantage;
      square += p[y] * p[y] * advantage;
      qq += p[y] * p[y];
      qqq += p[y] * p[y] * p[y];
      dot += r.expected[y] * r.truth[y];
    }
    CU_ASSERT(r.method == LAB_POPULATION && r.applicable);
    /* g_y = p_y (p_y A_y - sum p^2 A) / D: its product with J'_y = p_y A_y. */
    ASSERT_CLOSE(dot * qqq / qq, cube - square * square, 1e-13);
    CU_ASSERT(dot >= 0);
    lab_result_fini(&r);
    arms_fini(&a);
  }
}

TEST(expected_direction_can_point_downhill_off_policy) {
  policy_algorithm algorithm = *policy_algorithms_find("gepo");
  algorithm.clip = CLIP_NONE;
  algorithm.log_prob = LOG_PROB_SUM;
  int found = 0;
  for (uint64_t test = 0; test < 400 && !found; ++test) {
    arms a;
    arms_init(&a, 4, 0, 4, test);
    lab_result r = measured(&a, &algorithm, 0, 1, 0);
    found = r.numbers.cosine < -0.01;
    lab_result_fini(&r);
    arms_fini(&a);
  }
  CU_ASSERT(found);
}

TEST(large_groups_approach_the_population_limit) {
  policy_algorithm algorithm = *policy_algorithms_find("gepo");
  algorithm.clip = CLIP_NONE;
  algorithm.log_prob = LOG_PROB_SUM;
  arms a;
  arms_init(&a, 3, 0, 1, 5);
  lab_result limit = measured(&a, &algorithm, 0, 1, 0);
  double before = INFINITY;
  for (size_t size = 16; size <= 256; size *= 4) {
    lab_result r = measured(&a, &algorithm, size, 100000, 0);
    double distance = 0;
    for (size_t i = 0; i < 3; ++i) distance += fabs(r.expected[i] - limit.expected[i]);
    CU_ASSERT(distance < 0.3 * before); /* an error of order 1/G */
    before = distance;
    lab_result_fini(&r);
  }
  lab_result_fini(&limit);
  arms_fini(&a);
}

/* Monte Carlo --- */

/* Largest |<g, v>| over all groups, for a bound that needs no normal approximation. */
typedef struct range {
  double low, high;
} range;

static range range_along(const arms *a, const policy_algorithm *algorithm, size_t size,
                         const double *v) {
  gl_error err = {.status = GL_OK};
  range out = {INFINITY, -INFINITY};
  lab_tables t;
  lab_block b;
  lab_multisets m;
  lab_group g;
  CU_ASSERT_FATAL(lab_tables_init(&t, &a->view, 0, a->learner, a->sampler, LAB_WEIGHTS_RAW, &err) ==
                  GL_OK);
  CU_ASSERT_FATAL(lab_block_init(&b, t.n, size, &err) == GL_OK &&
                  lab_multisets_init(&m, t.draw, t.n, size, &err) == GL_OK &&
                  lab_group_init(&g, size, t.width, t.n_parameters, &err) == GL_OK);
  while (lab_multisets_next(&m, &b))
    for (size_t c = 0; c < b.n; ++c) {
      size_t i = 0;
      double along = 0;
      for (size_t y = 0; y < t.n; ++y)
        for (double k = b.count[y * LAB_BLOCK + c]; k > 0.5; k -= 1) g.response[i++] = y;
      CU_ASSERT(lab_group_evaluate(&g, &t, algorithm, &err) == GL_OK);
      for (size_t j = 0; j < t.n_parameters; ++j) along += g.gradient[j] * v[j];
      out.low = fmin(out.low, along);
      out.high = fmax(out.high, along);
    }
  lab_group_fini(&g);
  lab_multisets_fini(&m);
  lab_block_fini(&b);
  lab_tables_fini(&t);
  return out;
}

/* Bernstein's inequality: P(|mean - mu| >= e) <= 2 exp(-N e^2 / (2 s^2 + 2 B e / 3)), with the
 * exact variance s^2 and range B, holds for every distribution. Error 1 in 1,000 over all rows
 * times 200 cases by Bonferroni. */
TEST(monte_carlo_agrees_with_enumeration_for_every_row) {
  enum { CASES = SANITIZED ? 20 : 200, SAMPLES = 4096 };
  const double tests = (double)(policy_algorithms_count() * CASES),
               log_term = log(2 * tests / 1e-3);
  for (size_t k = 0; k < policy_algorithms_count(); ++k)
    for (uint64_t test = 0; test < CASES; ++test) {
      const policy_algorithm *algorithm = policy_algorithms_at(k);
      const size_t size = 2 + test % 3, n = 3;
      double v[3], mean = 0, exact_mean = 0, variance = 0;
      arms a;
      arms_init(&a, n, 1, 1.2, 1000 * k + test);
      lab_result exact = measured(&a, algorithm, size, 1000, 0);
      lab_result wide = {0};
      const lab_spec spec = {.world = &a.view,
                             .theta_learner = a.learner,
                             .theta_sampler = a.sampler,
                             .group_size = size,
                             .budget = 1000,
                             .threads = 1,
                             .covariance = 1};
      ASSERT_OK(lab_measure(&wide, &algorithm, 1, &spec, &err));
      lab_result drawn = measured(&a, algorithm, size, 1, SAMPLES);
      CU_ASSERT(exact.applicable == drawn.applicable);
      if (exact.applicable) {
        CU_ASSERT(exact.method == LAB_EXACT && drawn.method == LAB_MONTE_CARLO);
        for (size_t i = 0; i < n; ++i) v[i] = 2 * u01(77, 1000 * k + 10 * test + i) - 1;
        for (size_t i = 0; i < n; ++i) {
          mean += v[i] * drawn.expected[i];
          exact_mean += v[i] * exact.expected[i];
          for (size_t j = 0; j < n; ++j) variance += v[i] * v[j] * wide.covariance[i * n + j];
        }
        const range r = range_along(&a, algorithm, size, v);
        const double b = (r.high - r.low) * log_term / (3 * SAMPLES);
        const double bound = b + sqrt(b * b + 2 * fmax(variance, 0) * log_term / SAMPLES) + 1e-12;
        if (!(fabs(mean - exact_mean) <= bound)) {
          fprintf(stderr, "%s case %llu: %g against %g, bound %g\n", algorithm->name,
                  (unsigned long long)test, mean, exact_mean, bound);
          CU_FAIL("Monte Carlo and enumeration differ");
        }
      }
      lab_result_fini(&exact);
      lab_result_fini(&wide);
      lab_result_fini(&drawn);
      arms_fini(&a);
    }
}

TEST(a_draw_is_where_its_address_says) {
  enum { OUTCOMES = 5, SIZE = 6, FIRST = 1000, GROUPS = 77 };
  static const double q[OUTCOMES] = {0.4, 0.3, 0.2, 0.07, 0.03};
  const rng_stream stream = rng_stream_at(UINT64_C(0x123456789abcdef), RNG_MONTECARLO, 1ull << 40);
  lab_block b;
  lab_alias alias;
  ASSERT_OK(lab_block_init(&b, OUTCOMES, SIZE, &err));
  ASSERT_OK(lab_alias_init(&alias, q, OUTCOMES, &err));
  lab_block_draw(&b, &alias, stream, FIRST, GROUPS, GROUPS);
  for (size_t g = 0; g < GROUPS; ++g) {
    double count[OUTCOMES] = {0};
    for (size_t i = 0; i < SIZE; ++i) {
      const rng_words words = rng_block(stream, (FIRST + g) * 2 + i / 4);
      count[lab_alias_draw(&alias, words.v[i % 4])] += 1;
    }
    for (size_t y = 0; y < OUTCOMES; ++y) CU_ASSERT_EQUAL(b.count[y * LAB_BLOCK + g], count[y]);
  }
  lab_alias_fini(&alias);
  lab_block_fini(&b);
}

TEST(results_do_not_depend_on_threads) {
  arms a;
  arms_init(&a, 6, 0, 1, 3);
  const policy_algorithm *algorithm = policy_algorithms_find("gepo");
  lab_result r[2];
  for (size_t i = 0; i < 2; ++i) {
    const lab_spec spec = {.world = &a.view,
                           .theta_learner = a.learner,
                           .theta_sampler = a.sampler,
                           .group_size = 8,
                           .budget = 1,
                           .samples = 5000,
                           .threads = 1 + 3 * i};
    ASSERT_OK(lab_measure(&r[i], &algorithm, 1, &spec, &err));
  }
  CU_ASSERT(memcmp(r[0].expected, r[1].expected, 6 * sizeof(double)) == 0);
  CU_ASSERT(memcmp(&r[0].numbers, &r[1].numbers, sizeof r[0].numbers) == 0);
  CU_ASSERT(memcmp(&r[0].error, &r[1].error, sizeof r[0].error) == 0);
  CU_ASSERT(r[0].error.bias > 0);
  for (size_t i = 0; i < 2; ++i) lab_result_fini(&r[i]);
  arms_fini(&a);
}

TEST(a_budget_too_small_without_samples_is_refused) {
  arms a;
  arms_init(&a, 6, 0, 1, 3);
  gl_error err = {.status = GL_OK};
  lab_result r;
  const policy_algorithm *algorithm = policy_algorithms_find("is");
  const lab_spec spec = {.world = &a.view,
                         .theta_learner = a.learner,
                         .theta_sampler = a.sampler,
                         .group_size = 8,
                         .budget = 10,
                         .threads = 1};
  CU_ASSERT(lab_measure(&r, &algorithm, 1, &spec, &err) == GL_EINPUT);
  CU_ASSERT(strstr(err.text, "budget") != NULL);
  arms_fini(&a);
}

/* --- the dial --- */

TEST(the_dial_reaches_the_kl_it_is_set_to) {
  arms a;
  arms_init(&a, 6, 0, 1, 9);
  double direction[6], theta[6], scale, kl;
  for (int ray = LAB_RAY_HOTTER; ray <= LAB_RAY_RANDOM; ++ray)
    for (double wanted = 1e-4; wanted < 0.05; wanted *= 3) {
      const lab_half_line along = {a.learner, direction, lab_dial_most((lab_ray)ray)};
      gl_error err = {.status = GL_OK};
      lab_dial_direction(&a.view, a.learner, (lab_ray)ray, 1, 2, direction);
      CU_ASSERT_FATAL(lab_dial_ray(&a.view, &along, wanted, theta, &scale, &err) == GL_OK);
      CU_ASSERT(lab_divergence(&a.view, a.learner, theta, &kl, NULL, &err) == GL_OK);
      ASSERT_CLOSE(kl / wanted, 1, 1e-9);
    }
  gl_error err = {.status = GL_OK};
  lab_dial_direction(&a.view, a.learner, LAB_RAY_HOTTER, 1, 2, direction);
  CU_ASSERT(lab_dial_ray(&a.view, &(lab_half_line){a.learner, direction, 1}, 50, theta, &scale,
                         &err) == GL_EINPUT);
  CU_ASSERT(strstr(err.text, "out of reach") != NULL);
  arms_fini(&a);
}

TEST(a_mixture_reaches_its_kl_and_grows_with_it) {
  static const double p[] = {0.6, 0.25, 0.1, 0.05}, other[] = {0.25, 0.25, 0.25, 0.25};
  double q[4], share, before = 0;
  gl_error err = {.status = GL_OK};
  CU_ASSERT_FATAL(lab_dial_mixture(p, other, 4, 0, q, &share, &err) == GL_OK);
  CU_ASSERT_EQUAL(share, 0);
  for (size_t k = 0; k < 4; ++k) CU_ASSERT_EQUAL(q[k], p[k]);
  for (double wanted = 1e-6; wanted < 0.3; wanted *= 4) {
    double kl = 0, mass = 0;
    CU_ASSERT_FATAL(lab_dial_mixture(p, other, 4, wanted, q, &share, &err) == GL_OK);
    for (size_t k = 0; k < 4; ++k) {
      kl += p[k] * log(p[k] / q[k]);
      mass += q[k];
      ASSERT_CLOSE(q[k], (1 - share) * p[k] + share * other[k], 1e-15);
    }
    CU_ASSERT(fabs(kl - wanted) < 1e-9 * wanted + 1e-15);
    ASSERT_CLOSE(mass, 1, 1e-15);
    CU_ASSERT(share > before && share <= 1);
    before = share;
  }
  CU_ASSERT(lab_dial_mixture(p, other, 4, 2, q, &share, &err) == GL_EINPUT);
}
