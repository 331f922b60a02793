/* gepolab bias with `truncation`: expected steps and drifts against an independent enumeration
 * (tests/golden/truncation.py), its propositions, output and refusals. */
#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("cli: truncation in the laboratory");

#define P "[.20, .06, .10, .02, .18, .14, .12, .08, .10]"
#define Q "[.11, .12, .08, .10, .09, .20, .04, .06, .20]"
#define WORLD                                                                                      \
  "world: {kind: sequence, vocabulary: 3, horizon: 2, prompts: 1, task: sum_mod}\n"                \
  "learner_probs: " P "\nalgorithms: [reinforce, is]\ngroup_size: 2\n"

static cJSON *rows_of(const char *recipe) {
  cli_result r = cli_bias(recipe, "--json");
  if (r.code != 0) fprintf(stderr, "%s", r.err);
  cJSON *json = json_parsed(r.out);
  CU_ASSERT_PTR_NOT_NULL_FATAL(json);
  return json;
}

TEST(expected_steps_and_drifts_are_those_of_an_independent_enumeration) {
  static const char *const sampler[] = {P, Q}, *const weights[] = {"raw", "truncated"};
  static const char *const dist[] = {"top_p: 0.6", "top_k: 2"};
  FILE *golden = fopen("tests/golden/truncation.txt", "r");
  CU_ASSERT_FATAL(golden != NULL);
  for (size_t s = 0; s < 2; ++s)
    for (size_t l = 0; l < 2; ++l)
      for (size_t w = 0; w < 2; ++w) {
        char recipe[1024];
        snprintf(recipe, sizeof recipe, WORLD "sampler_probs: %s\nsampling: {%s, weights: %s}\n",
                 sampler[s], dist[l], weights[w]);
        cJSON *steps = rows_of(recipe);
        snprintf(recipe, sizeof recipe,
                 WORLD "sampler_probs: %s\ntruncation: {%s, weights: [%s]}\n", sampler[s], dist[l],
                 weights[w]);
        cJSON *drifts = rows_of(recipe);
        for (int a = 0; a < 2; ++a) {
          const cJSON *row = cJSON_GetArrayItem(drifts, a);
          const cJSON *step = member_at(cJSON_GetArrayItem(steps, a), "expected_gradient");
          CU_ASSERT_FATAL(cJSON_GetArraySize(step) == 12);
          for (int i = 0; i < 12; ++i)
            ASSERT_CLOSE(cJSON_GetArrayItem(step, i)->valuedouble, files_number(golden), 1e-12);
          ASSERT_CLOSE(number_at(row, "kept_mass"), files_number(golden), 1e-12);
          ASSERT_CLOSE(number_at(row, "drift_good"), files_number(golden), 1e-12);
          ASSERT_CLOSE(number_at(row, "drift_bad"), files_number(golden), 1e-12);
          ASSERT_CLOSE(number_at(row, "cosine_kept"), files_number(golden), 1e-12);
          ASSERT_CLOSE(number_at(row, "cosine"), number_at(cJSON_GetArrayItem(steps, a), "cosine"),
                       0);
        }
      }
  fclose(golden);
}

/* Without truncation nothing is kept or not, and the gradient on the kept tokens is the gradient.
 */
TEST(without_truncation_there_is_no_drift) {
  cJSON *rows =
      rows_of(WORLD "sampler_probs: " Q "\ntruncation: {top_p: [1, 0.5], weights: [raw]}\n");
  CU_ASSERT(cJSON_GetArraySize(rows) == 4);
  for (int a = 0; a < 2; ++a) {
    const cJSON *row = cJSON_GetArrayItem(rows, a);
    ASSERT_CLOSE(number_at(row, "kept_mass"), 1, 1e-15);
    CU_ASSERT(isnan(number_at(row, "drift_good")) && isnan(number_at(row, "drift_bad")));
    ASSERT_CLOSE(number_at(row, "cosine"), number_at(row, "cosine_kept"), 1e-12);
  }
  CU_ASSERT(isfinite(number_at(cJSON_GetArrayItem(rows, 2), "drift_good")));
}

TEST(the_study_that_comes_along_is_a_table_and_a_figure) {
  cli_result r = CLI("bias", "truncation", "truncation.top_p=[0.6,1]", "algorithms=[is,gepo,gspo]",
                     "group_size=2");
  CU_ASSERT(r.code == 0 && strstr(r.out, "top_p=0.6") != NULL && strstr(r.out, "nan") == NULL);
  if (r.code != 0) fprintf(stderr, "%s", r.err);
  char folder[64], path[128];
  cli_scratch_make(folder);
  r = CLI("bias", "truncation", "truncation.top_p=[0.6,0.8,1]", "algorithms=[is,gepo,gspo]",
          "group_size=2", "--figures", folder);
  CU_ASSERT(r.code == 0);
  if (r.code != 0) fprintf(stderr, "%s", r.err);
  cli_path(path, folder, "truncation_truncation.tsv");
  FILE *data = fopen(path, "r");
  CU_ASSERT_PTR_NOT_NULL(data);
  if (data != NULL) fclose(data);
}

TEST(wrong_studies_are_refused_with_their_place) {
  static const struct {
    const char *more, *says;
  } wrong[] = {
      {"truncation: {weights: [raw]}\n", "needs `top_p` or `top_k`"},
      {"truncation: {top_p: [0.5]}\n", "truncation needs `weights`"},
      {"truncation: {top_p: [0.5], weights: [row]}\n", "did you mean 'raw'?"},
      {"truncation: {top_p: [1.5], weights: [raw]}\n", "top_p"},
      {"truncation: {top_k: [1.5], weights: [raw]}\n", "top_k must be whole numbers"},
      {"truncation: {top_p: [0.5], weights: [raw]}\npopulation: true\n", "one group size"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    char recipe[1024];
    snprintf(recipe, sizeof recipe, WORLD "sampler_probs: " Q "\n%s", wrong[i].more);
    cli_result r = cli_bias(recipe, "--json");
    CU_ASSERT(r.code != 0);
    if (strstr(r.err, wrong[i].says) == NULL) fprintf(stderr, "%s", r.err);
    CU_ASSERT(strstr(r.err, wrong[i].says) != NULL);
  }
}
