/* Gradients without steps: those of updates, of the distribution that is asked for. */
#include "tests/support/llm_learner_fixture.h"

SUITE("llm: gradients without steps");

#define WORLD                                                                                      \
  "world: {kind: llm, backend: cpu, dtype: float64, model: {layers: 2, hidden: 16, heads: 4, "     \
  "kv_heads: 2, intermediate: 24, context: 24}, task: {kind: sorting, length: 3, values: 3, "      \
  "reward: graded}, max_tokens: 6}\n"                                                              \
  "optimizer: {kind: sgd, lr: 1}\ntrain: {groups: 8, group_size: 12}\n"

static policy_algorithm algorithm_of(const llm_fixture *f, const char *key) {
  policy_algorithm a;
  gl_error err = {0};
  CU_ASSERT_FATAL(policy_algorithm_parse(&a, cfg_find(cfg_root(f->doc), key), &err) == GL_OK);
  return a;
}

static double *moved(const llm_fixture *f, double scale) {
  double *theta = llm_theta(f);
  for (size_t i = 0; i < f->n; ++i)
    theta[i] += scale * rng_normal(rng_block(rng_stream_at(5, RNG_TEST, 1), i));
  return theta;
}

/* A step of plain descent at rate 1 moves by the gradient, on a batch that older parameters drew.
 */
TEST(a_gradient_is_the_step_of_an_update) {
  static const char *const algorithms[] = {"grpo", "{base: gepo, clip: none}",
                                           "{base: gspo, kl_coef: 0.1}"};
  for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; ++i) {
    char text[900];
    snprintf(text, sizeof text, WORLD "algorithm: %s\n", algorithms[i]);
    llm_fixture f = llm_open(text, 3);
    gl_error err = {0};
    double metrics[METRIC_COUNT], of_update[METRIC_COUNT], largest = 0;
    double *gradient = llm_doubles(f.n), *now = moved(&f, 0.1);
    batch b = llm_draw(&f, 7);
    const policy_algorithm a = algorithm_of(&f, "algorithm");
    CU_ASSERT_EQUAL(llm_learner_size(&f.learner), f.n);
    CU_ASSERT(llm_learner_stand_at(&f.learner, now, 4, &err) == GL_OK);
    CU_ASSERT(llm_learner_gradient(&f.learner, LLM_SAMPLERS_DIST, &b, &a, gradient, metrics,
                                   &err) == GL_OK);
    double *same = llm_theta(&f);
    for (size_t k = 0; k < f.n; ++k) CU_ASSERT_EQUAL_FATAL(same[k], now[k]);
    llm_update(&f, &b, of_update);
    double *after = llm_theta(&f);
    for (size_t k = 0; k < f.n; ++k) {
      ASSERT_CLOSE(after[k] - now[k], gradient[k], 1e-9);
      largest = fmax(largest, fabs(gradient[k]));
    }
    CU_ASSERT(largest > 1e-3);
    CU_ASSERT_EQUAL(metrics[METRIC_KL_K3_SEQ], of_update[METRIC_KL_K3_SEQ]);
    CU_ASSERT_EQUAL(metrics[METRIC_REWARD_MEAN], of_update[METRIC_REWARD_MEAN]);
    CU_ASSERT_EQUAL(f.llm->update.version, 5);
    batch_fini(&b);
  }
}

/* The learner's own distribution is that of a recipe without truncation and distortion. */
TEST(the_own_dist_is_that_of_a_recipe_without_samplers) {
  const draw_request r = {9, 0, 8, 12, 0, 1, 0, NULL, NULL, 0};
  llm_fixture cut = llm_open(WORLD "sampling: {temperature: 0.8, top_k: 3, weights: replay, "
                                   "behaviour: {noise: 0.3}}\n",
                             3);
  llm_fixture whole = llm_open(WORLD "sampling: {temperature: 0.8}\n", 3);
  batch own = {0}, plain = {0}, sampled = {0};
  double *a = llm_doubles(cut.n), *b = llm_doubles(cut.n), metrics[METRIC_COUNT];
  const policy_algorithm *truth = policy_algorithms_find("reinforce");
  gl_error err = {0};
  CU_ASSERT(llm_learner_draw_by(&cut.learner, LLM_OWN_DIST, &r, &own, &err) == GL_OK);
  CU_ASSERT(llm_learner_draw_by(&cut.learner, LLM_SAMPLERS_DIST, &r, &sampled, &err) == GL_OK);
  CU_ASSERT(whole.learner.ops->draw(whole.llm, &r, &plain, &err) == GL_OK);
  CU_ASSERT(llm_same_batch(&own, &plain) && own.kept_words == 0);
  CU_ASSERT(!llm_same_batch(&own, &sampled) && sampled.kept_words > 0);
  CU_ASSERT(llm_learner_gradient(&cut.learner, LLM_OWN_DIST, &own, truth, a, metrics, &err) ==
            GL_OK);
  CU_ASSERT(llm_learner_gradient(&whole.learner, LLM_SAMPLERS_DIST, &plain, truth, b, metrics,
                                 &err) == GL_OK);
  CU_ASSERT_EQUAL(memcmp(a, b, cut.n * sizeof *a), 0);
  batch_fini(&own);
  batch_fini(&plain);
  batch_fini(&sampled);
}

TEST(what_has_no_gradient_is_refused) {
  llm_fixture f = llm_open(WORLD "exact: {base: gepo, denominator: exact}\n"
                                 "reference: {base: grpo, ref_kl_coef: 0.1}\n",
                           3);
  gl_error err = {0};
  double *gradient = llm_doubles(f.n), metrics[METRIC_COUNT];
  batch b = llm_draw(&f, 7);
  static const char *const keys[] = {"exact", "reference"};
  for (size_t i = 0; i < 2; ++i) {
    const policy_algorithm a = algorithm_of(&f, keys[i]);
    gl_error_clear(&err);
    CU_ASSERT(llm_learner_gradient(&f.learner, LLM_SAMPLERS_DIST, &b, &a, gradient, metrics,
                                   &err) == GL_EINPUT);
  }
  double *theta = llm_theta(&f);
  theta[0] = NAN;
  const policy_algorithm *grpo = policy_algorithms_find("grpo");
  for (size_t i = 0; i < f.n; ++i) theta[i] = NAN;
  gl_error_clear(&err);
  CU_ASSERT(llm_learner_stand_at(&f.learner, theta, 1, &err) == GL_OK);
  CU_ASSERT(llm_learner_gradient(&f.learner, LLM_SAMPLERS_DIST, &b, grpo, gradient, metrics,
                                 &err) == GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not finite"));
  batch_fini(&b);
}

/* --- the cosine of consecutive gradients --- */

static double cosine_of(const double *a, const double *b, size_t n) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < n; ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return ab / sqrt(aa * bb);
}

/* a - b, in a. */
static double *less(double *a, const double *b, size_t n) {
  for (size_t i = 0; i < n; ++i) a[i] -= b[i];
  return a;
}

/* The gradient of a batch's loss at the parameters of now, as a dump. */
static double *dump(llm_fixture *f, batch *b) {
  double *gradient = llm_doubles(f->n), metrics[METRIC_COUNT];
  gl_error err = {0};
  CU_ASSERT(llm_learner_gradient(&f->learner, LLM_SAMPLERS_DIST, b, &f->llm->update.algorithm,
                                 gradient, metrics, &err) == GL_OK);
  return gradient;
}

/* Three updates with an optimiser whose steps are not the gradients: dumps of these at each
 * update's parameters have the cosine that the next update tells; the first tells none. */
TEST(the_cosine_is_that_of_two_dumped_gradients) {
  static const char *const worlds[] = {
      "algorithm: grpo\noptimizer: {kind: adamw, lr: 0.01, clip_grad_norm: 0.05}\n",
      "algorithm: {base: gepo, clip: none}\noptimizer: {kind: sgd, lr: 0.5, momentum: 0.9}\n"
      "sampling: {top_p: 0.8, weights: replay}\n"};
  static const char base[] =
      "world: {kind: llm, backend: cpu, dtype: float64, model: {layers: 2, hidden: 16, heads: 4, "
      "kv_heads: 2, intermediate: 24, context: 24}, task: {kind: sorting, length: 3, values: 3, "
      "reward: graded}, max_tokens: 6}\ntrain: {groups: 8, group_size: 12}\n";
  for (size_t w = 0; w < 2; ++w) {
    char text[900];
    snprintf(text, sizeof text, "%s%s", base, worlds[w]);
    llm_fixture f = llm_open(text, 3);
    double *last = NULL, *theta = moved(&f, 0.1);
    llm_set(&f, theta);
    for (uint64_t u = 0; u < 3; ++u) {
      double metrics[METRIC_COUNT];
      batch b = llm_draw(&f, 7 + u);
      double *now = dump(&f, &b);
      llm_update(&f, &b, metrics);
      if (u == 0) CU_ASSERT(isnan(metrics[METRIC_GRAD_COSINE]));
      if (u > 0) {
        const double right = cosine_of(last, now, f.n);
        ASSERT_CLOSE(metrics[METRIC_GRAD_COSINE], right, 1e-9);
        CU_ASSERT(fabs(right) > 1e-4 && fabs(right) < 0.9999);
      }
      last = now;
      batch_fini(&b);
    }
  }
}

/* With two epochs a step has two updates: the mean of the first one's cosine with the last of the
 * step before and of the cosine of the two. At rate 1 plain descent moves by the gradients, so that
 * the second is what is left of the step's way. */
TEST(a_steps_cosine_is_the_mean_over_its_updates) {
  llm_fixture f = llm_open("world: {kind: llm, backend: cpu, dtype: float64, model: {layers: 2, "
                           "hidden: 16, heads: 4, kv_heads: 2, intermediate: 24, context: 24}, "
                           "task: {kind: sorting, length: 3, values: 3, reward: graded}, "
                           "max_tokens: 6}\noptimizer: {kind: sgd, lr: 1}\n"
                           "train: {groups: 8, group_size: 12, epochs: 2}\n"
                           "algorithm: {base: gepo, clip: none}\n",
                           3);
  double *theta = moved(&f, 0.1), *before = NULL;
  llm_set(&f, theta);
  for (uint64_t u = 0; u < 2; ++u) {
    double metrics[METRIC_COUNT];
    batch b = llm_draw(&f, 7 + u);
    double *start = llm_theta(&f), *first = dump(&f, &b);
    llm_update(&f, &b, metrics);
    double *second = less(less(llm_theta(&f), start, f.n), first, f.n);
    double right = cosine_of(first, second, f.n);
    if (u > 0) right = (right + cosine_of(before, first, f.n)) / 2;
    ASSERT_CLOSE(metrics[METRIC_GRAD_COSINE], right, 1e-7);
    before = second;
    batch_fini(&b);
  }
}
