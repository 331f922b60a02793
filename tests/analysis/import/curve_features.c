/* Features of curves: against NumPy and SciPy (tests/golden/features.py), and tables by hand. */
#include "analysis/import/report.h"
#include "tests/support/json.h"
#include "tests/support/suite.h"
#include "tests/support/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("analysis: features of curves");

static void check(double mine, double theirs) {
  if (isnan(theirs)) {
    CU_ASSERT(isnan(mine));
  } else {
    ASSERT_CLOSE(mine, theirs, 1e-12 * fabs(theirs) + 1e-13);
  }
}

TEST(numbers_are_those_of_numpy_and_scipy) {
  int cases = 0;
  FILE *from = fopen("tests/golden/features.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  CU_ASSERT_EQUAL_FATAL(fscanf(from, "%d", &cases), 1);
  CU_ASSERT(cases >= 4);
  for (int k = 0; k < cases; k++) {
    features_rule rule = features_rule_default();
    features_spread s;
    double onset, growth, trend, peak, jump;
    size_t n, looked;
    CU_ASSERT_EQUAL_FATAL(fscanf(from, "%lf %lf %lf %zu", &rule.ends, &rule.until, &onset, &n), 4);
    double *step = calloc(n, sizeof *step), *value = calloc(n, sizeof *value);
    CU_ASSERT_FATAL(step != NULL && value != NULL);
    for (size_t i = 0; i < n; i++)
      CU_ASSERT_EQUAL_FATAL(fscanf(from, "%lf %lf", &step[i], &value[i]), 2);
    CU_ASSERT_EQUAL_FATAL(
        fscanf(from, "%zu %lf %lf %lf %lf", &looked, &growth, &trend, &peak, &jump), 5);
    ASSERT_OK(features_of_spread(&s, step, value, n, onset, &rule, &err));
    CU_ASSERT_EQUAL(s.n, looked);
    check(s.growth, growth);
    check(s.trend, trend);
    check(s.peak, peak);
    check(s.jump, jump);
    free(step), free(value);
  }
  fclose(from);
}

/* What rises only at its end has grown and not slowly; what is 0 has no growth. */
TEST(a_late_step_is_no_slow_spread) {
  enum { N = 400 };
  static double step[N], slow[N], late[N], zero[N];
  const features_rule rule = features_rule_default();
  features_spread s;
  for (int i = 0; i < N; i++) {
    step[i] = i + 1;
    slow[i] = 1 + i;
    late[i] = i < 340 ? 10 - i / 100.0 : 80;
  }
  ASSERT_OK(features_of_spread(&s, step, slow, N, NAN, &rule, &err));
  CU_ASSERT(features_is_slow(&s, &rule) && s.trend == 1);
  ASSERT_OK(features_of_spread(&s, step, late, N, NAN, &rule, &err));
  CU_ASSERT(s.growth > 3 && !features_is_slow(&s, &rule));
  ASSERT_OK(features_of_spread(&s, step, zero, N, NAN, &rule, &err));
  CU_ASSERT(isnan(s.growth) && !features_is_slow(&s, &rule));
}

/* Numbers of documents are written as they are printed; -1: none. */
static int count(const cJSON *o, const char *name) {
  const cJSON *item = member_at(o, name);
  return cJSON_IsNumber(item) ? item->valueint : -1;
}

static char folder[] = "/tmp/gepolab-features-XXXXXX";

static void write_text(const char *name, const char *head, double (*row)(int run, int step), int n,
                       int apart) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *to = fopen(path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  fprintf(to, "step,run,%s\n", head);
  for (int run = 0; run < 2; run++)
    for (int i = 0; i < n; i++)
      fprintf(to, "%d,%s,%.6g\n", i * apart, run == 0 ? "up" : "down", row(run, i));
  fclose(to);
}

/* Up stays; down is on its plateau for 19 evaluations and then at its start. */
static double score(int run, int i) {
  return i == 0 ? 0.2 : (run == 1 && i >= 20 ? 0.2 : 0.8);
}
static double norm(int run, int i) {
  return run == 1 && i >= 660 && i < 670 ? 30 : 1 + 0.001 * i;
}

TEST(files_of_scores_and_of_metrics_are_joined_by_the_run) {
  char scores[128], norms[128];
  const char *files[] = {scores, norms};
  const gather_request q = {.files = files, .n_files = 2};
  const features_rule rule = features_rule_default();
  gathered g;
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
  write_text("scores.csv", "eval_score", score, 30, 32);
  write_text("norms.csv", "grad_norm", norm, 900, 1);
  snprintf(scores, sizeof scores, "%s/scores.csv", folder);
  snprintf(norms, sizeof norms, "%s/norms.csv", folder);
  ASSERT_OK(gather(&g, &q, &err));
  table *t = table_document();
  ASSERT_OK(features_report(t, &g, &rule, &err));
  char *text = written_table(t, TABLE_AS_TEXT);
  cJSON *json = read_table(t);
  table_free(t);
  const cJSON *of = member_at(json, "scores"), *up = cJSON_GetArrayItem(of, 0),
              *down = cJSON_GetArrayItem(of, 1);
  CU_ASSERT_EQUAL(count(up, "survived"), 1);
  CU_ASSERT_EQUAL(count(down, "late_falls"), 1);
  CU_ASSERT_EQUAL(count(up, "plateau"), 1);
  CU_ASSERT_EQUAL(count(down, "plateau"), 1);
  const cJSON *spreads = member_at(json, "spreads");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(spreads), 2);
  /* the fall of `down` begins at 640, so that its spike is a jump there; `up` has none */
  CU_ASSERT_EQUAL(count(cJSON_GetArrayItem(spreads, 0), "jumps"), 0);
  CU_ASSERT_EQUAL(count(cJSON_GetArrayItem(spreads, 1), "jumps"), 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "slow spread"));
  cJSON_Delete(json);
  free(text);
  gathered_fini(&g);
  remove(scores), remove(norms), remove(folder);
}
