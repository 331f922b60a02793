/* The laboratory through the library's interface against sums over all groups, made with nothing
 * but gepolab_policy(). */
#include "library/gepolab.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("library: laboratory");

enum { K = 3, G = 2 };

/* No group has a ratio on the edge of a clip, where rounding would decide. */
static const double learner[K] = {0.52, 0.31, 0.17}, sampler[K] = {0.27, 0.22, 0.51};
static const double reward[K] = {1, 0, 0.5};

/* The estimate of one group (y, z), into g[K]. */
static void estimate(const gepolab_algorithm *algorithm, gepolab_workspace *w, const size_t *y,
                     double *g) {
  double logp[G], logq[G], r[G], coefficient[G];
  static const int64_t token_start[G + 1] = {0, 1, 2};
  gepolab_batch b = GEPOLAB_INIT(gepolab_batch);
  gepolab_result result = GEPOLAB_INIT(gepolab_result);
  for (size_t i = 0; i < G; ++i) {
    logp[i] = log(learner[y[i]]);
    logq[i] = log(sampler[y[i]]);
    r[i] = reward[y[i]];
  }
  b.n_responses = b.group_size = G;
  b.n_groups = 1;
  b.token_start = token_start;
  b.reward = (gepolab_numbers){r, GEPOLAB_FLOAT64, 1};
  b.logp = (gepolab_tokens){logp, GEPOLAB_FLOAT64, 0, 1};
  b.logq = (gepolab_tokens){logq, GEPOLAB_FLOAT64, 0, 1};
  result.coefficient = (gepolab_tokens_out){coefficient, GEPOLAB_FLOAT64, 0, 1};
  CU_ASSERT_EQUAL_FATAL(gepolab_policy(algorithm, &b, &result, w, NULL), GEPOLAB_OK);
  for (size_t k = 0; k < K; ++k) {
    g[k] = 0;
    for (size_t i = 0; i < G; ++i) g[k] += coefficient[i] * ((double)(y[i] == k) - learner[k]);
  }
}

static const gepolab_groups *groups_of(int64_t group_size) {
  static gepolab_groups groups;
  groups = (gepolab_groups){.size = sizeof groups, .group_size = group_size, .budget = 1000};
  return &groups;
}

static void check_row(const char *text) {
  gepolab_algorithm *algorithm = NULL;
  gepolab_workspace *w = NULL;
  double mean[K] = {0}, square = 0, g[K], expected[K], truth[K], bias = 0, variance = 0, value = 0;
  CU_ASSERT_EQUAL_FATAL(gepolab_algorithm_new(&algorithm, text, NULL), GEPOLAB_OK);
  CU_ASSERT_EQUAL_FATAL(gepolab_workspace_new(&w, NULL), GEPOLAB_OK);
  for (size_t y = 0; y < K; ++y)
    for (size_t z = 0; z < K; ++z) {
      const size_t group[G] = {y, z};
      const double chance = sampler[y] * sampler[z];
      estimate(algorithm, w, group, g);
      for (size_t k = 0; k < K; ++k) {
        mean[k] += chance * g[k];
        square += chance * g[k] * g[k];
      }
    }
  const gepolab_table table = {.size = sizeof table,
                               .n_prompts = 1,
                               .n_responses = K,
                               .learner = learner,
                               .sampler = sampler,
                               .reward = reward};
  gepolab_moments m = GEPOLAB_INIT(gepolab_moments);
  m.expected = expected;
  m.truth = truth;
  CU_ASSERT_EQUAL_FATAL(gepolab_laboratory(algorithm, &table, groups_of(G), &m, NULL), GEPOLAB_OK);
  CU_ASSERT_EQUAL(m.applicable, 1);
  CU_ASSERT_EQUAL(m.method, 0);
  for (size_t k = 0; k < K; ++k) value += learner[k] * reward[k];
  for (size_t k = 0; k < K; ++k) {
    ASSERT_CLOSE(truth[k], learner[k] * (reward[k] - value), 1e-14);
    ASSERT_CLOSE(expected[k], mean[k], 1e-14);
    bias += (mean[k] - truth[k]) * (mean[k] - truth[k]);
    variance -= mean[k] * mean[k];
  }
  variance += square;
  ASSERT_CLOSE(m.value, value, 1e-14);
  ASSERT_CLOSE(m.bias, sqrt(bias), 1e-12);
  ASSERT_CLOSE(m.variance, variance, 1e-12);
  ASSERT_CLOSE(m.mse, bias + variance, 1e-12);
  gepolab_workspace_free(w);
  gepolab_algorithm_free(algorithm);
}

TEST(moments_are_sums_over_all_groups) {
  check_row("is");
  check_row("gepo");
  check_row("{base: gepo, clip: none}");
  check_row("grpo");
  check_row("gspo");
}

TEST(importance_sampling_without_a_baseline_has_no_bias) {
  gepolab_algorithm *algorithm = NULL;
  gepolab_moments m = GEPOLAB_INIT(gepolab_moments);
  const gepolab_table table = {.size = sizeof table,
                               .n_prompts = 1,
                               .n_responses = K,
                               .learner = learner,
                               .sampler = sampler,
                               .reward = reward};
  CU_ASSERT_EQUAL_FATAL(gepolab_algorithm_new(&algorithm, "{base: is, baseline: none}", NULL),
                        GEPOLAB_OK);
  CU_ASSERT_EQUAL_FATAL(gepolab_laboratory(algorithm, &table, groups_of(4), &m, NULL), GEPOLAB_OK);
  CU_ASSERT(m.bias < 1e-15);
  CU_ASSERT(m.variance > 0.01);
  gepolab_algorithm_free(algorithm);
}

TEST(wrong_tables_are_refused) {
  gepolab_algorithm *algorithm = NULL;
  gepolab_error err = {.status = GEPOLAB_OK};
  gepolab_moments m = GEPOLAB_INIT(gepolab_moments);
  static const double no_dist[K] = {0.5, 0.3, 0.1};
  gepolab_table table = {.size = sizeof table,
                         .n_prompts = 1,
                         .n_responses = K,
                         .learner = no_dist,
                         .sampler = sampler,
                         .reward = reward};
  CU_ASSERT_EQUAL_FATAL(gepolab_algorithm_new(&algorithm, "gepo", NULL), GEPOLAB_OK);
  CU_ASSERT_EQUAL(gepolab_laboratory(algorithm, &table, groups_of(G), &m, &err), GEPOLAB_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "learner[0] sum to 0.9"));
  table.learner = learner;
  CU_ASSERT_EQUAL(gepolab_laboratory(algorithm, &table, groups_of(-1), &m, &err), GEPOLAB_EINPUT);
  CU_ASSERT_EQUAL(gepolab_laboratory(algorithm, &table, groups_of(1), &m, &err), GEPOLAB_EINPUT);
  table.n_responses = 1;
  CU_ASSERT_EQUAL(gepolab_laboratory(algorithm, &table, groups_of(G), &m, &err), GEPOLAB_EINPUT);
  table.n_responses = K;
  const gepolab_groups unknown = {.size = 1, .group_size = G, .budget = 1000};
  CU_ASSERT_EQUAL(gepolab_laboratory(algorithm, &table, &unknown, &m, &err), GEPOLAB_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "groups.size"));
  table.size = 0;
  CU_ASSERT_EQUAL(gepolab_laboratory(algorithm, &table, groups_of(G), &m, &err), GEPOLAB_EINPUT);
  gepolab_algorithm_free(algorithm);
}
