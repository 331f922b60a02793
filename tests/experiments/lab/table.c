/* gepolab bias where responses are not listed: what is exact there, that what is sampled covers the
 * enumerated values of the listed twin, and what is refused. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("cli: bias without a list");

#define WORLD                                                                                      \
  "world: {kind: automaton, vocabulary: 3, horizon: 3, end_token: true, prompts: 2, listed: %s, "  \
  "policy: {init: {kind: normal, scale: 0.7}}}\n"
#define REST                                                                                       \
  "sampling: {top_k: 3, weights: truncated}\ndial: {kind: direction, kl: [0, 0.3]}\nbudget: "      \
  "100000\nsamples: 20000\ngroup_size: [2]\nalgorithms: [is, grpo, {base: gepo, denominator: "     \
  "exact}]\n"

static cJSON *rows_of(const char *listed) {
  char recipe[1024];
  snprintf(recipe, sizeof recipe, WORLD REST, listed);
  cli_result r = cli_bias(recipe, "--json");
  if (r.code != 0) fprintf(stderr, "%s", r.err);
  cJSON *json = json_parsed(r.out);
  CU_ASSERT_PTR_NOT_NULL_FATAL(json);
  return json;
}

static const cJSON *item(const cJSON *row, const char *key) {
  const cJSON *found = member_at(row, key);
  CU_ASSERT_PTR_NOT_NULL_FATAL(found);
  return found;
}

static void check_row(const cJSON *drawn, const cJSON *exact) {
  CU_ASSERT_STRING_EQUAL(item(drawn, "method")->valuestring, "monte_carlo");
  CU_ASSERT_STRING_EQUAL(item(exact, "method")->valuestring, "exact");
  ASSERT_CLOSE(item(drawn, "return")->valuedouble, item(exact, "return")->valuedouble, 1e-12);
  ASSERT_CLOSE(item(drawn, "kl_exact")->valuedouble, item(exact, "kl_exact")->valuedouble, 1e-12);
  ASSERT_CLOSE(item(drawn, "kl_exact_qp")->valuedouble, item(exact, "kl_exact_qp")->valuedouble,
               1e-12);
  const cJSON *error = item(drawn, "standard_errors");
  const cJSON *a = item(drawn, "expected_gradient"), *b = item(exact, "expected_gradient"),
              *s = item(error, "expected_gradient");
  const int n = cJSON_GetArraySize(a);
  CU_ASSERT_FATAL(n > 20 && n == cJSON_GetArraySize(b));
  for (int i = 0; i < n; ++i) {
    ASSERT_CLOSE(cJSON_GetArrayItem(item(drawn, "true_gradient"), i)->valuedouble,
                 cJSON_GetArrayItem(item(exact, "true_gradient"), i)->valuedouble, 1e-12);
    const double d = cJSON_GetArrayItem(a, i)->valuedouble - cJSON_GetArrayItem(b, i)->valuedouble;
    CU_ASSERT(fabs(d) <= 6 * cJSON_GetArrayItem(s, i)->valuedouble + 1e-12);
  }
  static const char *const numbers[] = {"cosine",      "variance",    "mse", "iw_mean",
                                        "iw_variance", "aw_variance", "ess"};
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; ++k) {
    const double d = item(drawn, numbers[k])->valuedouble - item(exact, numbers[k])->valuedouble;
    const double se = item(error, numbers[k])->valuedouble;
    if (!(fabs(d) <= 6 * se + 1e-12)) fprintf(stderr, "%s: %g, %g\n", numbers[k], d, se);
    CU_ASSERT(fabs(d) <= 6 * se + 1e-12);
  }
}

TEST(sampled_steps_cover_the_enumerated_ones_and_sums_are_exact) {
  cJSON *drawn = rows_of("false"), *exact = rows_of("true");
  const int n = cJSON_GetArraySize(drawn);
  CU_ASSERT(n == 6 && cJSON_GetArraySize(exact) == n);
  for (int i = 0; i < n; ++i) check_row(cJSON_GetArrayItem(drawn, i), cJSON_GetArrayItem(exact, i));
}

TEST(what_needs_a_list_is_refused_and_named) {
  static const struct {
    const char *more, *says;
  } wrong[] = {
      {"training: {lr: [0.1]}\n", "training needs a list of responses"},
      {"dial: {kl: [0.1]}\ncovariance: true\n", "covariance needs a list of responses"},
      {"dial: {kl: [0.1]}\nsamples: 0\n", "`samples` must be 32 or more"},
      {"dial: {kind: mixture, kl: [0.1]}\n", "dial: mixture is for"},
      {"learner_probs: [0.5, 0.5]\ndial: {kl: [0.1]}\n", "a log-linear policy cannot hold"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    char recipe[1024];
    snprintf(recipe, sizeof recipe, WORLD "algorithms: [is]\n%s", "false", wrong[i].more);
    cli_result r = cli_bias(recipe, "--json");
    CU_ASSERT(r.code != 0);
    if (strstr(r.err, wrong[i].says) == NULL) fprintf(stderr, "%s", r.err);
    CU_ASSERT(strstr(r.err, wrong[i].says) != NULL);
  }
}

TEST(the_population_limit_is_not_applicable_there) {
  char recipe[1024];
  snprintf(recipe, sizeof recipe,
           WORLD "dial: {kl: [0.1]}\nalgorithms: [is]\npopulation: true\ngroup_size: []\n",
           "false");
  cli_result r = cli_bias(recipe, "--json");
  CU_ASSERT(r.code == 0 && strstr(r.out, "population limit") != NULL);
  if (r.code != 0) fprintf(stderr, "%s", r.err);
}
