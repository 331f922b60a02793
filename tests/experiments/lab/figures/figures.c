/* The laboratory's figures through the program: what is drawn, what is left out, what is refused.
 */
#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/suite.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("cli: figures of the laboratory");

static int script_says(const char *folder, const char *name, const char *words) {
  char path[128], *text = files_text(cli_path(path, folder, name));
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  int found = strstr(text, words) != NULL;
  free(text);
  return found;
}

TEST(a_recipe_of_the_laboratory_becomes_figures) {
  char folder[64], figures[128];
  cli_scratch_make(folder);
  cli_path(figures, folder, "deep/figures");
  cli_result r = CLI("bias", "bias_groups", "--figures", figures, "group_size=[2,3,4,5,6]",
                     "dial={kl: [0.1, 0.5]}", "algorithms=[is, gepo]");
  if (r.code != 0) fprintf(stderr, "%s\n", r.err);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "bias_groups_curves.pdf"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "no learning: "));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "bias_groups_curves does not show G = "));
  CU_ASSERT(cli_has(figures, "bias_groups_map.png") && cli_has(figures, "bias_groups_plane.tsv"));
  CU_ASSERT(script_says(figures, "bias_groups_plane.gp", "= 'not shown: G = "));
  CU_ASSERT(!script_says(figures, "bias_groups_map.gp", "not shown"));
}

TEST(paths_training_and_theorems_have_figures_of_their_own) {
  char folder[64];
  cli_scratch_make(folder);
  cli_result r = CLI("bias", "bias_staleness", "--figures", folder, "group_size=[2,4]",
                     "dial.updates=[0,40,80]", "dial.steps=80");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "bias_staleness_staleness does not show G = 4"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "no curves: "));
  CU_ASSERT(cli_has(folder, "bias_staleness_staleness.png"));
  CU_ASSERT(CLI_GIVES(0, "bias", "sample_efficiency", "--figures", folder, "training.updates=15",
                      "training.seeds=1", "training.tuning_seeds=1", "training.lr=[1]"));
  CU_ASSERT(cli_has(folder, "sample_efficiency_learning.png"));
  r = CLI("theory", "--figures", folder);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT(strstr(r.out, "weight_variance.pdf") && !strstr(r.out, "no curves"));
  CU_ASSERT(cli_has(folder, "weight_variance.png"));
}

/* The k-th median of an algorithm in the first panel of a figure's data. */
static double drawn_median(const char *folder, const char *name, const char *algorithm, int k) {
  char path[128], start[64], *text = files_text(cli_path(path, folder, name));
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  snprintf(start, sizeof start, "\n0\t%s\t", algorithm);
  const char *at = text;
  for (int i = 0; i <= k && at != NULL; ++i) at = strstr(at + 1, start);
  CU_ASSERT_PTR_NOT_NULL_FATAL(at);
  double median = NAN;
  CU_ASSERT_EQUAL(sscanf(at + strlen(start), "%*s %lf", &median), 1);
  free(text);
  return median;
}

/* The measurements of one world over directions: what is drawn is what --json prints. */
TEST(directions_are_drawn_as_they_are_printed) {
  char folder[64];
  cli_scratch_make(folder);
  cli_result r = CLI("bias", "bias_directions", "dial.directions=20", "group_size=[2,3]",
                     "dial.kl=[0.1,1]", "--json");
  CU_ASSERT_EQUAL_FATAL(r.code, 0);
  cJSON *printed = json_parsed(r.out);
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(printed), 24);
  CU_ASSERT(CLI_GIVES(0, "bias", "bias_directions", "dial.directions=20", "group_size=[2,3]",
                      "dial.kl=[0.1,1]", "--figures", folder));
  CU_ASSERT(cli_has(folder, "bias_directions_directions.png"));
  for (int k = 0; k < 2; ++k) {
    const cJSON *row = cJSON_GetArrayItem(printed, 8 + k); /* the third algorithm, G = 2 */
    const cJSON *bias = cJSON_GetObjectItem(row, "relative_bias");
    CU_ASSERT_STRING_EQUAL(cJSON_GetObjectItem(row, "algorithm")->valuestring, "gepo unclipped");
    const double median = cJSON_GetObjectItem(bias, "median")->valuedouble;
    CU_ASSERT(median > 0);
    CU_ASSERT_DOUBLE_EQUAL(
        drawn_median(folder, "bias_directions_directions.tsv", "gepo unclipped", k), median, 1e-15);
  }
}

/* The results behind the documents: what is drawn is what is stored. */
TEST(stored_directions_are_drawn_with_a_column_for_each_world) {
  static const char first[] = "paper/results/bias_directions.tsv",
                    second[] = "paper/results/bias_directions_hard.tsv";
  char folder[64], *stored = files_text(first);
  CU_ASSERT_PTR_NOT_NULL_FATAL(stored);
  cli_scratch_make(folder);
  CU_ASSERT(CLI_GIVES(0, "plot", first, second, "-l", "bias_directions.tsv=graded rewards", "-o",
                      folder));
  CU_ASSERT(script_says(folder, "directions.gp", "'graded rewards'"));
  CU_ASSERT(script_says(folder, "directions.gp", "bias\\_directions\\_hard"));
  static const char key[] = "[gepo unclipped,8].relative_bias.median\t"; /* KL of 0.001 */
  const char *at = strstr(stored, key);
  CU_ASSERT_PTR_NOT_NULL_FATAL(at);
  CU_ASSERT_DOUBLE_EQUAL(drawn_median(folder, "directions.tsv", "gepo unclipped", 0),
                         strtod(at + strlen(key), NULL), 0);
  free(stored);
  REFUSED(2, "of these options only --label applies", "plot", first, "--lower-is-better", "-o",
          folder);
  REFUSED(2, "as the others are", "plot", first, "paper/results/frontier.tsv", "-o", folder);
  REFUSED(2, "begins with none of the files given", "plot", first, "-l", "other.tsv=x", "-o",
          folder);
}

TEST(unknown_and_impossible_figures_are_refused) {
  char folder[64];
  cli_scratch_make(folder);
  cli_result r = CLI("bias", "four_arms", "--figures", folder, "--figure", "curve");
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "did you mean 'curves'?"));
  REFUSED(2, "figure curves does not apply: it needs a dial", "theory", "--figures", folder,
          "--figure", "curves");
  CU_ASSERT(CLI_GIVES(2, "bias", "four_arms", "--figure", "curves"));
  CU_ASSERT(CLI_GIVES(0, "theory", "--figures", folder, "--figure", "theorem1_constant"));
  CU_ASSERT(cli_has(folder, "theorem1_constant.pdf") && !cli_has(folder, "weight_variance.tsv"));
}
