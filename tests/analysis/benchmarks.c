/* The table of benchmarks: intervals over seeds, averages seed by seed, gaps in it. */
#include "analysis/benchmarks.h"

#include "tests/support/suite.h"
#include "tests/support/tables.h"

#include <stdlib.h>
#include <string.h>

static char *text_of(const benchmarks *b, table_form form) {
  table *t = table_document();
  benchmarks_report(t, b, "run", "Best and last");
  char *text = written_table(t, form);
  table_free(t);
  return text;
}

static void averages_are_made_seed_by_seed(void) {
  static const benchmark_score score[] = {
      {"gepo", "MATH", 1, 0.8, 0.7, 0.1},
      {"gepo", "MATH", 2, 0.6, 0.5, 0.1},
      {"gepo", "AIME", 2, 0.2, 0.1, 0.1},
      {"gepo", "AIME", 1, 0.4, 0.1, 0.3},
      {"gepo", "MATH", 3, 0.9, 0.9, 0.0}}; /* seed 3 has one benchmark only */
  benchmarks b;
  CU_ASSERT_EQUAL_FATAL(benchmarks_init(&b, score, 5, NULL), GL_OK);
  CU_ASSERT(b.n_rows == 1 && b.n_benchmarks == 2);
  ASSERT_CLOSE(b.average_best[0].value, (0.6 + 0.4) / 2, 1e-15);
  ASSERT_CLOSE(b.average_last[0].value, (0.4 + 0.3) / 2, 1e-15);
  ASSERT_CLOSE(b.average_gap[0].value, (0.2 + 0.1) / 2, 1e-15);
  CU_ASSERT(b.average_best[0].low > 0.4 - 1e-12 && b.average_best[0].high < 0.6 + 1e-12);
  CU_ASSERT(b.best[0].low < b.best[0].value && b.best[0].value < b.best[0].high);
  char *text = text_of(&b, TABLE_AS_TEXT);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "bootstrap intervals"));
  free(text);
  benchmarks_fini(&b);
}

static void without_a_common_seed_values_are_averaged_and_gaps_are_told(void) {
  static const benchmark_score score[] = {
      {"a", "x", 1, 0.5, 0.4, 0.1}, {"a", "y", 2, 0.3, 0.2, 0.1}, {"b_c", "x", 1, 0.7, 0.7, 0}};
  benchmarks b;
  CU_ASSERT_EQUAL_FATAL(benchmarks_init(&b, score, 3, NULL), GL_OK);
  ASSERT_CLOSE(b.average_best[0].value, 0.4, 1e-15);
  CU_ASSERT(isnan(b.average_best[0].low) && isnan(b.average_best[1].value));
  char *text = text_of(&b, TABLE_AS_TEXT), *latex = text_of(&b, TABLE_AS_LATEX);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "averages of runs that have all of them"));
  CU_ASSERT_PTR_NULL(strstr(text, "bootstrap"));
  CU_ASSERT_PTR_NOT_NULL(strstr(latex, "run & x best & x last & y best & y last & average best"));
  CU_ASSERT_PTR_NOT_NULL(strstr(latex, "b\\_c & 0.7 & 0.7 & – & – & – & – \\\\"));
  free(text), free(latex);
  table *t = table_document();
  benchmarks_report(t, &b, "run", "Best and last");
  cJSON *json = read_table(t);
  table_free(t);
  const cJSON *row =
      cJSON_GetArrayItem(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "benchmarks"), "rows"), 1);
  CU_ASSERT_STRING_EQUAL(cJSON_GetObjectItem(row, "run")->valuestring, "b_c");
  CU_ASSERT(cJSON_IsNull(cJSON_GetObjectItem(row, "average_gap")));
  cJSON_Delete(json);
  benchmarks_fini(&b);
}

SUITE(analysis_benchmarks, "analysis: benchmarks", TEST(averages_are_made_seed_by_seed),
      TEST(without_a_common_seed_values_are_averaged_and_gaps_are_told));
