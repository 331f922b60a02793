/* gepolab lab bias over several random directions: against the rows of single measurements. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

SUITE("lab: directions");

#define RECIPE                                                                                     \
  "seed: 3\nworld: {kind: bandit, rewards: [1, 0, 0.5, 0.2]}\nlearner_probs: [0.4, 0.3, 0.2, "     \
  "0.1]\ngroup_size: [2, 3]\nalgorithms: [is, {base: gepo, clip: none}]\n"

static cJSON *rows_along(const char *dial) {
  char recipe[1024];
  snprintf(recipe, sizeof recipe, RECIPE "dial: {kind: direction, kl: [0.1, 0.4]%s}\n", dial);
  cli_result r = cli_bias(recipe, "--json");
  if (r.code != 0) fprintf(stderr, "%s", r.err);
  cJSON *json = json_parsed(r.out);
  CU_ASSERT_PTR_NOT_NULL_FATAL(json);
  return json;
}

static double number(const cJSON *row, const char *key, const char *level) {
  const cJSON *found = member_at(row, key);
  if (level != NULL) found = member_at(found, level);
  CU_ASSERT_PTR_NOT_NULL_FATAL(found);
  return found->valuedouble;
}

/* Of two directions the first is that of a recipe without `directions`, so the median gives the
 * second; the quantiles and fractions then follow. */
TEST(quantiles_are_those_of_single_directions) {
  cJSON *one = rows_along(""), *two = rows_along(", directions: 2");
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(one), 8);
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(two), 8);
  for (int i = 0; i < 8; ++i) {
    const cJSON *a = cJSON_GetArrayItem(one, i), *both = cJSON_GetArrayItem(two, i);
    CU_ASSERT_EQUAL(number(both, "directions", NULL), 2);
    CU_ASSERT_EQUAL(number(both, "group_size", NULL), number(a, "group_size", NULL));
    ASSERT_CLOSE(number(both, "kl_exact", NULL), number(a, "kl_exact", NULL), 1e-9);
    const double first = number(a, "cosine", NULL), median = number(both, "cosine", "median");
    const double second = 2 * median - first, low = fmin(first, second), high = fmax(first, second);
    ASSERT_CLOSE(number(both, "cosine", "low"), low + 0.1 * (high - low), 1e-9);
    ASSERT_CLOSE(number(both, "cosine", "high"), low + 0.9 * (high - low), 1e-9);
    CU_ASSERT_EQUAL(number(both, "downhill", NULL), ((first < 0) + (second < 0)) / 2.0);
    if (i < 4) { /* importance sampling is the reference and unbiased */
      ASSERT_CLOSE(median, 1, 1e-9);
      ASSERT_CLOSE(number(both, "relative_bias", "high"), 0, 1e-9);
      CU_ASSERT_EQUAL(number(both, "mse_ratio", "high"), 1);
      CU_ASSERT_EQUAL(number(both, "mse_lower", NULL), 0);
      continue;
    }
    CU_ASSERT(first != second);
    const double ratio =
        number(a, "mse", NULL) / number(cJSON_GetArrayItem(one, i - 4), "mse", NULL);
    const double other = 2 * number(both, "mse_ratio", "median") - ratio;
    ASSERT_CLOSE(number(both, "mse_ratio", "low"), fmin(ratio, other) + 0.1 * fabs(ratio - other),
                 1e-9);
    CU_ASSERT_EQUAL(number(both, "mse_lower", NULL), ((ratio < 1) + (other < 1)) / 2.0);
  }
}

TEST(other_dials_have_no_directions) {
  cli_result r = cli_bias(RECIPE "dial: {kind: hotter, kl: [0.1], directions: 2}\n", "--json");
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "dial.directions counts random directions"));
}
