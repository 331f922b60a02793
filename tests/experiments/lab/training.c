/* Learning curves of the laboratory (`training` in a recipe of gepolab bias): on-policy importance
 * sampling is unbiased at every point, curves do not depend on threads, and every form tells the
 * same. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("cli: learning curves");

/* A short training of `is` and `gspo`, by the options up to a NULL. */
static cli_result train(const char *threads, const char *form, const char *value) {
  return CLI("bias", "sample_efficiency", "training.seeds=2", "training.tuning_seeds=1",
             "training.updates=40", "training.record_every=10", "training.staleness=0",
             "training.lr=[1,10]", "algorithms=[is, gspo]", "-j", threads, form, value);
}

TEST(on_policy_importance_sampling_is_unbiased_along_its_path_and_learns) {
  cli_result r = train("1", "--json", NULL);
  CU_ASSERT_EQUAL(r.code, 0);
  cJSON *curves = json_parsed(r.out), *point = NULL;
  double first = NAN, last = NAN;
  int points = 0, gspo = 0;
  cJSON_ArrayForEach(point, curves) {
    if (strcmp(text_at(point, "algorithm"), "is") != 0) {
      ++gspo;
      continue;
    }
    if (points++ == 0) first = number_at(point, "return");
    last = number_at(point, "return");
    ASSERT_CLOSE(number_at(point, "cosine"), 1, 1e-12);
    CU_ASSERT(number_at(point, "scaled_bias") < 1e-10);
    ASSERT_CLOSE(number_at(point, "kl_exact"), 0, 1e-12);
  }
  CU_ASSERT_EQUAL(points, 5);
  CU_ASSERT_EQUAL(gspo, 5);
  CU_ASSERT(last > first + 0.2 && last < 1);
}

TEST(curves_do_not_depend_on_threads) {
  cli_result one = train("1", "--format", "tsv"), two = train("2", "--format", "tsv");
  CU_ASSERT_EQUAL(one.code, 0);
  CU_ASSERT_STRING_EQUAL(one.out, two.out);
  CU_ASSERT_PTR_NOT_NULL(strstr(one.out, "\nis\t320\t"));
  CU_ASSERT_PTR_NOT_NULL(strstr(one.out, "\ngspo\t320\t"));
}

TEST(the_table_names_the_rate_that_was_chosen) {
  cli_result r = train("2", NULL, NULL);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "final return"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "the end")); /* `is` ascends on the whole path */
}

TEST(curves_are_not_kept_in_a_study) {
  cli_result r = CLI("bias", "sample_efficiency", "-o", "/nonexistent/x.db");
  CU_ASSERT(r.code != 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "--format tsv"));
}
