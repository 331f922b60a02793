/* gepolab sim --selection: what became of what was drawn; gepolab selection: its gradient. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("cli: selection");

static double sum(const cJSON *rows, const char *key) {
  double total = 0;
  const cJSON *row;
  cJSON_ArrayForEach(row, rows) total += number_at(row, key);
  return total;
}

/* The recipe's question: hardly any group of the fastest quarter of prompts is too stale, and most
 * of the slowest are. Where the learner waits instead, all quarters fare alike. */
TEST(stale_groups_that_are_discarded_are_those_of_slow_prompts) {
  cli_result r = CLI("sim", "slow_prompts", "--json", "--selection");
  CU_ASSERT_EQUAL(r.code, 0);
  cJSON *json = json_parsed(r.out);
  const cJSON *s = member_at(json, "selection");
  const cJSON *fates = member_at(s, "fates"), *by = member_at(s, "by_prompt");
  const cJSON *lengths = member_at(s, "by_length");
  const cJSON *drawn = cJSON_GetArrayItem(fates, 0), *trained = cJSON_GetArrayItem(fates, 1);
  CU_ASSERT_EQUAL(number_at(trained, "units"), 3200);
  CU_ASSERT_EQUAL(2 * number_at(drawn, "units"), sum(fates, "units"));
  CU_ASSERT_EQUAL(sum(by, "drawn"), number_at(drawn, "units"));
  CU_ASSERT_EQUAL(sum(lengths, "trained"), 3200);
  CU_ASSERT(number_at(trained, "mean_longest") < 0.7 * number_at(drawn, "mean_longest"));
  CU_ASSERT_EQUAL(cJSON_GetArraySize(by), 4);
  const cJSON *fast = cJSON_GetArrayItem(by, 0), *slow = cJSON_GetArrayItem(by, 3);
  CU_ASSERT(number_at(fast, "trained") / number_at(fast, "drawn") > 0.9);
  CU_ASSERT(number_at(slow, "trained") / number_at(slow, "drawn") < 0.4);
  r = CLI("sim", "slow_prompts", "cluster.ahead=4", "cluster.stale=wait",
          "cluster.learner.queue=oldest_version", "--json", "--selection");
  json = json_parsed(r.out);
  by = member_at(json, "selection.by_prompt");
  for (int k = 0; k < 4; ++k) {
    const cJSON *quarter = cJSON_GetArrayItem(by, k);
    CU_ASSERT(number_at(quarter, "trained") / number_at(quarter, "drawn") > 0.95);
  }
}

TEST(the_table_names_fates_lengths_and_prompts) {
  static const char *const words[] = {"trained", "stale",       "pending", "to 1023 tokens",
                                      "drawn",   "4 (slowest)", "groups",  "longest response",
                                      "evicted", "1 (fastest)"};
  cli_result r = CLI("sim", "slow_prompts", "--selection");
  CU_ASSERT_EQUAL(r.code, 0);
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
    CU_ASSERT_PTR_NOT_NULL(strstr(r.out, words[i]));
  CU_ASSERT(CLI_GIVES(0, "sim", "quickstart", "--selection"));
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", "--selection", "--schedule", "csv"));
}

/* Groups of the world, drawn by its learner for the clock, have their longest responses in the
 * exact shares, within five standard deviations. What comes late is thrown away and has another
 * gradient; a window that nothing exceeds throws nothing away. */
TEST(what_arrives_has_another_gradient_than_what_was_drawn) {
  cli_result r = CLI("selection", "what_arrives", "--json");
  CU_ASSERT_EQUAL_FATAL(r.code, 0);
  cJSON *json = json_parsed(r.out);
  const cJSON *rows = member_at(json, "by_longest"), *row;
  const double n = sum(rows, "groups");
  ASSERT_CLOSE(sum(rows, "share"), 1, 1e-9);
  CU_ASSERT(n > 3200);
  double arrives = 2;
  cJSON_ArrayForEach(row, rows) {
    const double share = number_at(row, "share");
    CU_ASSERT(fabs(number_at(row, "groups") / n - share) <
              5 * sqrt(share * (1 - share) / n) + 5 / n);
    CU_ASSERT(number_at(row, "arrives") <= arrives + 0.05);
    arrives = number_at(row, "arrives");
  }
  CU_ASSERT(arrives < 0.5);
  CU_ASSERT(number_at(json, "cosine") < 0.995 && number_at(json, "probability") < 0.95);
  CU_ASSERT(number_at(json, "arrived.length") < number_at(json, "drawn.length"));
  r = CLI("selection", "what_arrives", "cluster.window=100000", "--json");
  json = json_parsed(r.out);
  ASSERT_CLOSE(number_at(json, "cosine"), 1, 1e-12);
  ASSERT_CLOSE(number_at(json, "norm_ratio"), 1, 1e-12);
  ASSERT_CLOSE(number_at(json, "probability"), 1, 1e-12);
  CU_ASSERT(CLI_GIVES(0, "selection", "what_arrives", "steps=20"));
}

static double arriving(const char *decay) {
  cJSON *json = CLI_JSON("selection", "what_arrives", "--json", "cluster.stale=downweight", decay);
  const double share = number_at(json, "probability");
  return share;
}

/* What is trained with less weight counts as much less: with a factor of 1 for every version beyond
 * the window everything counts whole, with one of almost nothing as little as if it were thrown
 * away, and between them the more the larger the factor. */
TEST(what_is_downweighted_counts_as_much_less) {
  const double none = arriving("cluster.stale_decay=1e-9"),
               half = arriving("cluster.stale_decay=0.5"),
               most = arriving("cluster.stale_decay=0.9"), all = arriving("cluster.stale_decay=1");
  ASSERT_CLOSE(all, 1, 1e-12);
  CU_ASSERT(0 < none && none < half && half < most && most < all);
  CU_ASSERT(none < 0.3);
}

TEST(what_has_no_exact_selection_is_refused) {
  CU_ASSERT(CLI_GIVES(2, "selection", "quickstart"));
  CU_ASSERT(
      CLI_GIVES(2, "selection", "what_arrives", "cluster.unit=batch", "cluster.partial=null"));
  CU_ASSERT(CLI_GIVES(2, "selection", "what_arrives", "train.group_size=1"));
  CU_ASSERT(CLI_GIVES(2, "selection", "llm_quick", "cluster={unit: group, coupled: true}"));
}

/* How often a field with its tabs stands in the table. */
static int lines_of(const char *table, const char *field) {
  int n = 0;
  for (const char *at = strstr(table, field); at != NULL; at = strstr(at + 1, field)) ++n;
  return n;
}

/* Two policies can be had of the recipe's cluster; wait needs `ahead`, and the figure says that it
 * is not shown. Standard output is JSON still, with the numbers of the recipe's own policy, also
 * where that is downweight with a weight of its own. */
TEST(the_figure_shows_the_policies_that_the_cluster_can_have) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_result r = CLI("selection", "what_arrives", "steps=60", "cluster.stale=downweight",
                     "cluster.stale_decay=0.25", "--json", "-f", folder, "--width", "icml");
  CU_ASSERT_EQUAL_FATAL(r.code, 0);
  CU_ASSERT_EQUAL(cli_files_in(folder), 5); /* selection.tsv, .gp, .pdf, .png, .svg */
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "does not show wait"));
  cJSON *json = json_parsed(r.out);
  CU_ASSERT_PTR_NOT_NULL_FATAL(json);
  const double share =
      100 * number_at(cJSON_GetArrayItem(member_at(json, "by_longest"), 4), "arrives");
  char *table = cli_read(cli_path(path, folder, "selection.tsv"));
  CU_ASSERT_PTR_NOT_NULL_FATAL(table);
  CU_ASSERT_EQUAL(lines_of(table, "\tdiscard\t"), 6);
  CU_ASSERT_EQUAL(lines_of(table, "\tdownweight\t"), 6);
  CU_ASSERT_EQUAL(lines_of(table, "\twait\t"), 0);
  const char *at = strstr(table, "\tdownweight\t5\t");
  CU_ASSERT_PTR_NOT_NULL_FATAL(at);
  ASSERT_CLOSE(strtod(at + strlen("\tdownweight\t5\t"), NULL), share, 1e-3);
  r = CLI("selection", "what_arrives", "steps=60", "cluster.ahead=2",
          "cluster.learner.queue=oldest_version", "-f", folder);
  CU_ASSERT_EQUAL_FATAL(r.code, 0);
  CU_ASSERT_STRING_EQUAL(r.err, "");
  table = cli_read(path);
  CU_ASSERT_EQUAL(lines_of(table, "\twait\t"), 6);
}
