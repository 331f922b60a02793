/* Exact moments of estimators against brute force, closed forms and Monte Carlo. */
#include "tests/support/suite.h"
#include "toy/lab/estimator_moments.h"
#include "toy/lab/kernel.h"
#include "toy/world/toy_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- worlds --- */

SUITE("lab: exact moments of estimators");

typedef struct fixture {
  cfg_doc *doc;
  toy_world *world;
  enumerable view;
  double *learner, *sampler;
} fixture;

static int fixture_init(fixture *f, const char *world, const char *sampling) {
  gl_error err = {.status = GL_OK};
  char text[1024];
  snprintf(text, sizeof text, "world: %s\nsampling: %s\n", world, sampling);
  *f = (fixture){0};
  if (cfg_load_text(&f->doc, text, strlen(text), "test", &err) == GL_OK &&
      toy_world_new(&f->world, cfg_find(cfg_root(f->doc), "world"),
                    cfg_find(cfg_root(f->doc), "sampling"), 1, &err) == GL_OK) {
    f->view = toy_world_enumerable(f->world);
    f->learner = calloc(f->view.n_parameters, sizeof *f->learner);
    f->sampler = calloc(f->view.n_parameters, sizeof *f->sampler);
    return 1;
  }
  fprintf(stderr, "%s\n", err.text);
  CU_FAIL("fixture");
  return 0;
}

static void fixture_fini(fixture *f) {
  toy_world_free(f->world);
  cfg_free(f->doc);
  free(f->learner);
  free(f->sampler);
}

static double uniform(uint64_t test, uint64_t index) {
  return rng_u01(rng_block(rng_stream_at(7, RNG_TEST, test), index).v[0]);
}

/* Learner and sampler with logits up to `spread`, the sampler within `apart` of the learner. */
static void random_policies(fixture *f, uint64_t test, double spread, double apart) {
  for (size_t i = 0; i < f->view.n_parameters; ++i) {
    f->learner[i] = spread * (2 * uniform(test, 2 * i) - 1);
    f->sampler[i] = f->learner[i] + apart * (2 * uniform(test, 2 * i + 1) - 1);
  }
}

static policy_algorithm row_of(const char *yaml) {
  policy_algorithm algorithm;
  memset(&algorithm, 0, sizeof algorithm);
  gl_error err = {.status = GL_OK};
  cfg_doc *doc = NULL;
  char text[512];
  snprintf(text, sizeof text, "algorithm: %s\n", yaml);
  if (cfg_load_text(&doc, text, strlen(text), "test", &err) != GL_OK ||
      policy_algorithm_parse(&algorithm, cfg_find(cfg_root(doc), "algorithm"), &err) != GL_OK) {
    fprintf(stderr, "%s\n", err.text);
    CU_FAIL("algorithm");
  }
  cfg_free(doc);
  return algorithm;
}

static lab_spec spec_of(const fixture *f, size_t group_size) {
  return (lab_spec){.world = &f->view,
                    .theta_learner = f->learner,
                    .theta_sampler = f->sampler,
                    .group_size = group_size,
                    .budget = 1000000,
                    .seed = 3,
                    .threads = 2};
}

static int measure(lab_result *out, const policy_algorithm *algorithm, const lab_spec *spec) {
  gl_error err = {.status = GL_OK};
  int ok = lab_measure(out, &algorithm, 1, spec, &err) == GL_OK;
  if (!ok) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT(ok);
  return ok;
}

/* --- the recipe --- */

static int four_arms(fixture *f) {
  static const double p[] = {0.55, 0.25, 0.15, 0.05}, q[] = {0.10, 0.20, 0.30, 0.40};
  if (!fixture_init(f, "{kind: bandit, rewards: [1, 0, 0.5, 0.2]}", "{}")) return 0;
  ASSERT_OK(toy_world_set_probs(f->world, 0, p, 4, f->learner, &err));
  ASSERT_OK(toy_world_set_probs(f->world, 0, q, 4, f->sampler, &err));
  return 1;
}

TEST(four_arms_give_the_reference_numbers) {
  fixture f;
  lab_result is, gepo;
  if (!four_arms(&f)) return;
  const policy_algorithm algorithm = row_of("is");
  const policy_algorithm changed =
      row_of("{base: gepo, log_prob: sum, clip: none, baseline: group_mean}");
  lab_spec spec = spec_of(&f, 4);
  if (measure(&is, &algorithm, &spec) && measure(&gepo, &changed, &spec)) {
    ASSERT_CLOSE(is.numbers.bias, 0, 1e-14);
    ASSERT_CLOSE(is.numbers.variance, 0.10410, 5e-6);
    ASSERT_CLOSE(gepo.numbers.bias, 0.17658, 5e-6);
    ASSERT_CLOSE(gepo.numbers.cosine, 0.97793, 5e-6);
    ASSERT_CLOSE(gepo.numbers.variance, 0.01259, 5e-6);
    CU_ASSERT(is.method == LAB_EXACT && is.groups == 35);
  }
  lab_result_fini(&is);
  lab_result_fini(&gepo);
  fixture_fini(&f);
}

TEST(four_arms_agree_with_an_independent_enumeration) {
  static const char *const rows[] = {"is", "snis", "{base: gepo, log_prob: sum, clip: none}",
                                     "{base: gepo, log_prob: sum, clip: none, denominator: mean}",
                                     "{base: gepo, log_prob: sum, clip: none, denominator: exact}"};
  fixture f;
  FILE *golden = fopen("tests/golden/lab_four_arms.txt", "r");
  CU_ASSERT_FATAL(golden != NULL);
  if (four_arms(&f)) {
    const lab_spec spec = spec_of(&f, 4);
    for (size_t i = 0; i < 5; ++i) {
      const policy_algorithm algorithm = row_of(rows[i]);
      double bias, cosine, variance;
      lab_result r;
      CU_ASSERT_FATAL(fscanf(golden, "%lf %lf %lf", &bias, &cosine, &variance) == 3);
      if (!measure(&r, &algorithm, &spec)) continue;
      ASSERT_CLOSE(r.numbers.bias, bias, 1e-13);
      ASSERT_CLOSE(r.numbers.cosine, cosine, 1e-13);
      ASSERT_CLOSE(r.numbers.variance, variance, 1e-13);
      lab_result_fini(&r);
    }
    fixture_fini(&f);
  }
  fclose(golden);
}

/* --- every algorithm against all K^G tuples --- */
/* Moments by all tuples, through core/policy alone: a group is one policy_evaluate(). */
static int brute_force(lab_summary *s, const policy_algorithm *algorithm, const lab_tables *t,
                       size_t size) {
  gl_error err = {.status = GL_OK};
  lab_group g;
  lab_sums sums;
  size_t tuples = 1, at[8] = {0};
  for (size_t i = 0; i < size; ++i) tuples *= t->n;
  int ok = lab_group_init(&g, size, t->width, t->n_parameters, &err) == GL_OK &&
           lab_sums_init(&sums, t->n_parameters, 1, &err) == GL_OK;
  for (size_t k = 0; k < tuples && ok; ++k) {
    double weight = 1, square = 0;
    for (size_t i = 0, rest = k; i < size; ++i, rest /= t->n) {
      at[i] = rest % t->n;
      g.response[i] = at[i];
      weight *= t->draw[at[i]];
    }
    ok = lab_group_evaluate(&g, t, algorithm, &err) == GL_OK;
    for (size_t i = 0; i < t->n_parameters; ++i) {
      sums.mean[i] += weight * g.gradient[i];
      square += g.gradient[i] * g.gradient[i];
      for (size_t j = 0; j < t->n_parameters; ++j)
        sums.outer[i * t->n_parameters + j] += weight * g.gradient[i] * g.gradient[j];
    }
    sums.square += weight * square;
    for (size_t i = 0; i < size; ++i) {
      double w = lab_group_weight(&g, i), aw = w * g.advantage[i];
      sums.w += weight * w / (double)size;
      sums.w2 += weight * w * w / (double)size;
      sums.aw += weight * aw / (double)size;
      sums.aw2 += weight * aw * aw / (double)size;
    }
    sums.total += weight;
  }
  ok = ok && lab_summary_init(s, t->n_parameters, 1, &err) == GL_OK;
  if (ok) lab_summary_from_sums(s, &sums);
  lab_sums_fini(&sums);
  lab_group_fini(&g);
  return ok;
}

static void compare_row(const fixture *f, const policy_algorithm *algorithm, size_t size,
                        lab_weights by) {
  gl_error err = {.status = GL_OK};
  lab_spec spec = spec_of(f, size);
  spec.covariance = 1;
  spec.weights = by;
  lab_tables t;
  lab_result r;
  lab_summary s = {0};
  const size_t p = f->view.n_parameters;
  if (!measure(&r, algorithm, &spec)) return;
  CU_ASSERT_FATAL(lab_tables_init(&t, &f->view, 0, f->learner, f->sampler, by, &err) == GL_OK);
  if (r.applicable && brute_force(&s, algorithm, &t, size)) {
    for (size_t i = 0; i < p; ++i) ASSERT_CLOSE(r.expected[i], s.mean[i], 1e-12);
    for (size_t i = 0; i < p * p; ++i) ASSERT_CLOSE(r.covariance[i], s.covariance[i], 1e-12);
    ASSERT_CLOSE(r.numbers.variance, s.trace, 1e-12);
    ASSERT_CLOSE(r.numbers.iw_mean, s.w, 1e-12);
    ASSERT_CLOSE(r.numbers.iw_variance, s.w2 - s.w * s.w, 1e-11);
    ASSERT_CLOSE(r.numbers.aw_variance, s.aw2 - s.aw * s.aw, 1e-11);
    lab_summary_fini(&s);
  }
  lab_tables_fini(&t);
  lab_result_fini(&r);
}

TEST(every_row_agrees_with_all_tuples_of_a_bandit) {
  static const char *const worlds[] = {"{kind: bandit, rewards: [1, 0, 1]}",
                                       "{kind: bandit, rewards: [1, 0, 0, 1]}",
                                       "{kind: bandit, rewards: [1, 0.3, 0.3, 0]}"};
  for (size_t k = 0; k < 3; ++k) {
    fixture f;
    if (!fixture_init(&f, worlds[k], "{}")) return;
    for (size_t size = 1; size <= 4; ++size)
      for (size_t i = 0; i < policy_algorithms_count(); ++i) {
        const policy_algorithm *algorithm = policy_algorithms_at(i);
        random_policies(&f, 100 * k + 10 * size + i, 1.5, 1);
        if (algorithm->objective != OBJECTIVE_POLICY_GRADIENT && k == 2) continue;
        compare_row(&f, algorithm, size, LAB_WEIGHTS_RAW);
      }
    fixture_fini(&f);
  }
}

TEST(a_world_too_large_for_memory_is_refused_with_an_estimate) {
  fixture f;
  if (!fixture_init(&f, "{kind: bandit, contexts: 8000, rewards: [1, 0, 0.5, 0.2]}", "{}")) return;
  const policy_algorithm *rows[] = {policy_algorithms_find("is"), policy_algorithms_find("snis"),
                                    policy_algorithms_find("gepo")};
  lab_spec spec = spec_of(&f, 4);
  spec.covariance = 1;
  lab_result r[3];
  gl_error err = {.status = GL_OK};
  CU_ASSERT_EQUAL(lab_measure(r, rows, 3, &spec, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(
      err.text, "would take 16.4 GB for 8000 prompts of 32000 parameters and 3 algorithms with"));
  fixture_fini(&f);
}

/* Of a world whose prompts have parameters of their own, the tables of a prompt keep those alone.
 */
TEST(tables_keep_only_the_parameters_of_their_prompt) {
  fixture f;
  if (!fixture_init(&f, "{kind: bandit, contexts: 5, rewards: [1, 0, 0.5]}", "{}")) return;
  random_policies(&f, 77, 1, 0.5);
  for (size_t x = 0; x < 5; ++x) {
    lab_tables wide, t;
    CU_ASSERT_FATAL(
        lab_tables_init(&wide, &f.view, x, f.learner, f.sampler, LAB_WEIGHTS_RAW, NULL) == GL_OK);
    CU_ASSERT_FATAL(lab_tables_init(&t, &f.view, x, f.learner, f.sampler, LAB_WEIGHTS_RAW, NULL) ==
                    GL_OK);
    CU_ASSERT_EQUAL(lab_tables_narrow(&t, NULL), GL_OK);
    CU_ASSERT_EQUAL(wide.n_parameters, 15);
    CU_ASSERT_EQUAL_FATAL(t.n_parameters, 3);
    for (size_t i = 0; i < 3; ++i) {
      const size_t at = t.parameter[i];
      CU_ASSERT_EQUAL(at, 3 * x + i);
      CU_ASSERT_EQUAL(t.gradient[i], wide.gradient[at]);
      for (size_t y = 0; y < 3; ++y) CU_ASSERT_EQUAL(t.score[y * 3 + i], wide.score[y * 15 + at]);
    }
    lab_tables_fini(&t);
    lab_tables_fini(&wide);
  }
  fixture_fini(&f);
}

/* Prompts with the same policies give the estimate of one of them, a fifth in each prompt's
 * parameters; the covariance has the spread between the prompts besides. */
TEST(prompts_with_parameters_of_their_own_are_joined) {
  enum { X = 5, K = 3 };
  fixture one, five;
  if (!fixture_init(&one, "{kind: bandit, rewards: [1, 0, 0.5]}", "{}")) return;
  if (!fixture_init(&five, "{kind: bandit, contexts: 5, rewards: [1, 0, 0.5]}", "{}")) return;
  random_policies(&one, 78, 1, 0.5);
  for (size_t i = 0; i < X * K; ++i) {
    five.learner[i] = one.learner[i % K];
    five.sampler[i] = one.sampler[i % K];
  }
  const policy_algorithm *rows[] = {policy_algorithms_find("is"), policy_algorithms_find("gspo")};
  lab_result a[2], b[2];
  lab_spec of_one = spec_of(&one, 3), of_five = spec_of(&five, 3);
  of_one.covariance = of_five.covariance = 1;
  CU_ASSERT_FATAL(lab_measure(a, rows, 2, &of_one, NULL) == GL_OK);
  CU_ASSERT_FATAL(lab_measure(b, rows, 2, &of_five, NULL) == GL_OK);
  for (size_t r = 0; r < 2; ++r)
    for (size_t i = 0; i < X * K; ++i) {
      ASSERT_CLOSE(b[r].expected[i], a[r].expected[i % K] / X, 1e-14);
      ASSERT_CLOSE(b[r].truth[i], a[r].truth[i % K] / X, 1e-14);
      for (size_t j = 0; j < X * K; ++j) {
        const double mean2 = a[r].expected[i % K] * a[r].expected[j % K];
        const double second = i / K == j / K ? (a[r].covariance[i % K * K + j % K] + mean2) / X : 0;
        ASSERT_CLOSE(b[r].covariance[i * X * K + j], second - mean2 / (X * X), 1e-14);
      }
    }
  for (size_t r = 0; r < 2; ++r) lab_result_fini(&a[r]), lab_result_fini(&b[r]);
  fixture_fini(&one);
  fixture_fini(&five);
}

/* Groups whose ratio is 1 + eps or 1 - eps but for rounding: one rule decides in both. */
TEST(ratios_at_a_bound_are_clipped_in_neither) {
  static const double p[] = {.2, .5, .3}, q[] = {.6, .1, .3};
  static const char *const rows[] = {
      "gepo",
      "gepo_released",
      "{base: gepo, denominator: mean}",
      "{base: gepo, eps_low: 0.5, eps_high: 0.5}",
      "{base: gepo, denominator: expected_p}",
      "{base: snis, clip: ppo, ratio_gradient: true}",
      "{base: is, clip: ppo, eps_low: 0.6666666666666667, eps_high: 4}",
      "grpo"};
  fixture f;
  if (!fixture_init(&f, "{kind: bandit, rewards: [1, 0, 1]}", "{}")) return;
  for (size_t i = 0; i < 3; ++i) f.learner[i] = log(p[i]), f.sampler[i] = log(q[i]);
  for (size_t size = 2; size <= 6; ++size)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
      const policy_algorithm algorithm = row_of(rows[i]);
      compare_row(&f, &algorithm, size, LAB_WEIGHTS_RAW);
    }
  fixture_fini(&f);
}

TEST(every_row_agrees_with_all_tuples_of_sequences) {
  fixture f;
  if (!fixture_init(&f,
                    "{kind: sequence, vocabulary: 1, horizon: 3, end_token: true, prompts: 1, "
                    "task: parity}",
                    "{}"))
    return;
  for (size_t i = 0; i < policy_algorithms_count(); ++i) {
    random_policies(&f, 1000 + i, 1, 0.7);
    compare_row(&f, policy_algorithms_at(i), 3, LAB_WEIGHTS_RAW);
  }
  fixture_fini(&f);
}

/* --- truncated sampling --- */

/* `is` with the leave-one-out baseline in a group of two, written out: draws from the sampler's
 * distribution at the temperature, of which the top_k are kept; weights by that distribution before
 * or after the cut. */
static void two_of_a_truncated_dist(const double *p, const double *dist, const double *seen,
                                    const double *reward, double temperature, double *expected) {
  for (size_t k = 0; k < 4; ++k) expected[k] = 0;
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 4; ++j)
      for (size_t k = 0; k < 4 && dist[i] > 0 && dist[j] > 0; ++k)
        expected[k] += dist[i] * dist[j] * (reward[i] - reward[j]) * p[i] / seen[i] *
                       ((i == k) - p[k]) / temperature;
}

static void softmax(const double *logit, double temperature, double *p) {
  double sum = 0;
  for (size_t k = 0; k < 4; ++k) sum += p[k] = exp(logit[k] / temperature);
  for (size_t k = 0; k < 4; ++k) p[k] /= sum;
}

TEST(truncated_sampling_agrees_with_a_sum_over_pairs) {
  static const double reward[] = {1, 0, 0.5, 0.2}, logit_q[] = {2, 1, 0.4, -1},
                      logit_p[] = {0.3, 1.2, -0.5, 0.1};
  static const double temperatures[] = {1, 0.7};
  for (int cut = 0; cut < 2; ++cut) /* top_k: 2, and top_p: 0.9 which keeps three */
    for (int warm = 0; warm < 2; ++warm)
      for (int by = 0; by < 2; ++by) {
        fixture f;
        lab_result r;
        char sampling[128];
        double p[4], q[4], dist[4], expected[4], kept = 0;
        const double temperature = temperatures[warm];
        snprintf(sampling, sizeof sampling, "{temperature: %g, %s}", temperature,
                 cut == 0 ? "top_k: 2" : "top_p: 0.9");
        if (!fixture_init(&f, "{kind: bandit, rewards: [1, 0, 0.5, 0.2]}", sampling)) return;
        memcpy(f.learner, logit_p, sizeof logit_p);
        memcpy(f.sampler, logit_q, sizeof logit_q);
        softmax(logit_p, temperature, p);
        softmax(logit_q, temperature, q);
        for (size_t k = 0; k < 4; ++k) { /* tokens are in falling order under the sampler */
          dist[k] = cut == 0 ? (k < 2 ? q[k] : 0) : (kept < 0.9 ? q[k] : 0);
          kept += dist[k];
        }
        for (size_t k = 0; k < 4; ++k) dist[k] /= kept;
        two_of_a_truncated_dist(p, dist, by == 0 ? q : dist, reward, temperature, expected);
        lab_spec spec = spec_of(&f, 2);
        spec.weights = by == 0 ? LAB_WEIGHTS_RAW : LAB_WEIGHTS_TRUNCATED;
        const policy_algorithm algorithm = row_of("is");
        if (measure(&r, &algorithm, &spec))
          for (size_t k = 0; k < 4; ++k) ASSERT_CLOSE(r.expected[k], expected[k], 1e-13);
        lab_result_fini(&r);
        fixture_fini(&f);
      }
}

TEST(every_row_agrees_with_all_tuples_of_a_truncated_dist) {
  fixture f;
  if (!fixture_init(&f,
                    "{kind: sequence, vocabulary: 3, horizon: 2, prompts: 1, task: sum_mod, "
                    "modulus: 3, reward: exact}",
                    "{temperature: 0.8, top_k: 2}"))
    return;
  for (int by = LAB_WEIGHTS_RAW; by <= LAB_WEIGHTS_TRUNCATED; ++by)
    for (size_t i = 0; i < policy_algorithms_count(); ++i) {
      random_policies(&f, 2000 + i, 1, 0.7);
      compare_row(&f, policy_algorithms_at(i), 3, (lab_weights)by);
    }
  fixture_fini(&f);
}
