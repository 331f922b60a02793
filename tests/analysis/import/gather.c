/* Several files at once: names, labels, seeds, directions, printed numbers; as tables and as
 * results. */
#include "analysis/import/gather.h"

#include "analysis/import/report.h"
#include "tests/support/json.h"
#include "tests/support/suite.h"
#include "tests/support/tables.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("analysis: several files");

#define SAMPLE(name) "tests/golden/exports/" name
#define LIST(...)                                                                                  \
  (const char *const[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)

static const char other[] = "build/import_gather_test.csv";

static void write_other(const char *text) {
  FILE *f = fopen(other, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  fputs(text, f);
  fclose(f);
}

/* The files of a request: sets files and n_files. */
static gather_request request(const char *const *files, size_t n) {
  return (gather_request){.files = files, .n_files = n};
}

static gathered gathered_of(const gather_request *q) {
  gathered g;
  gl_error err = {0};
  if (gather(&g, q, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(err.status, GL_OK);
  return g;
}

static void refused(const gather_request *q, const char *says) {
  gathered g;
  results *r = NULL;
  gl_error err = {0};
  gl_status status = gather(&g, q, &err);
  if (status == GL_OK) status = gathered_results(&r, NULL, &g, &err);
  CU_ASSERT_EQUAL(status, GL_EINPUT);
  if (!strstr(err.text, says)) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, says));
  results_free(r);
  gathered_fini(&g);
}

static char *told(const gather_request *q, const published *printed, table_format form,
                  cJSON **json) {
  gl_error err = {0};
  table *t = table_document();
  if (report_analysis(t, q, printed, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL(err.status, GL_OK);
  char *text = written_table(t, form);
  if (json != NULL) *json = read_table(t);
  table_free(t);
  return text;
}

TEST(series_of_one_run_come_from_several_files) {
  gather_request q = request(LIST(SAMPLE("panel_eval.csv"), SAMPLE("panel_kl.csv")));
  gathered g = gathered_of(&q);
  results *r = NULL;
  char *left_out = NULL;
  ASSERT_OK(gathered_results(&r, &left_out, &g, &err));
  CU_ASSERT_PTR_NULL(left_out);
  CU_ASSERT(r->n_runs == 2 && r->n_groups == 1 && r->n_algorithms == 2);
  CU_ASSERT_STRING_EQUAL(r->algorithms[0], "GEPO_diff32");
  const results_run *run = &r->runs[0];
  CU_ASSERT(run->n_evals == 4 && run->evals[2].step == 128 && run->evals[2].eval_score == 0.7);
  CU_ASSERT(run->n_steps == 3 && run->steps[1].metric[METRIC_CPPO_KL] == 0.004);
  CU_ASSERT_EQUAL(run->steps[2].metric[METRIC_STALENESS], 2);
  CU_ASSERT(run->n_staleness == 3 && run->staleness[0] == 1 && run->staleness[2] == 1);
  results_free(r);
  gathered_fini(&g);
}

/* A score that ends in NaN or in an infinite value has no last value; NaN in between is a gap. */
TEST(a_run_whose_score_ends_not_finite_is_diverged) {
  write_other("step,a,b,c\n0,0.1,0.1,0.1\n10,0.9,nan,0.5\n20,nan,0.6,inf\n");
  gather_request q = request(LIST(other));
  q.metric = "eval_score";
  gathered g = gathered_of(&q);
  results *r = NULL;
  ASSERT_OK(gathered_results(&r, NULL, &g, &err));
  CU_ASSERT_EQUAL_FATAL(r->n_runs, 3);
  CU_ASSERT(results_run_is_not_finite(&r->runs[0]) && !results_run_is_not_finite(&r->runs[1]));
  CU_ASSERT(results_run_is_not_finite(&r->runs[2]));
  CU_ASSERT(r->runs[1].n_evals == 3 && isnan(r->runs[1].evals[1].eval_score));
  for (size_t i = 0; i < g.n_series; i++) {
    bool at_end;
    gathered_nan(&g.series[i], &at_end);
    CU_ASSERT_EQUAL(at_end, i != 1);
  }
  results_free(r);
  gathered_fini(&g);
}

TEST(labels_are_settings_and_fields_of_recipes_are_axes) {
  gather_request q = request(LIST(SAMPLE("panel_eval.csv"), SAMPLE("wide.csv")));
  const char *const labels[] = {"panel_eval.csv=MATH, 500", SAMPLE("wide.csv") "=AIME24"};
  const char *const renames[] = {"(.*)_diff32=$1", "^gepo$=GEPO", "^grpo$=GRPO"};
  q.labels = labels, q.n_labels = 2, q.renames = renames, q.n_renames = 3;
  gathered g = gathered_of(&q);
  results *r = NULL;
  ASSERT_OK(gathered_results(&r, NULL, &g, &err));
  CU_ASSERT(r->n_groups == 2 && r->n_algorithms == 2 && r->n_runs == 4);
  CU_ASSERT_STRING_EQUAL(r->groups[0].heading, "MATH, 500");
  CU_ASSERT_STRING_EQUAL(r->groups[1].heading, "AIME24");
  CU_ASSERT_STRING_EQUAL(r->algorithms[1], "GRPO");
  results_free(r);
  gathered_fini(&g);
  const char *const fields[] = {"panel_eval.csv=cluster.max_delay=600",
                                "wide.csv=cluster.max_delay=0"};
  q.labels = fields;
  g = gathered_of(&q);
  ASSERT_OK(gathered_results(&r, NULL, &g, &err));
  CU_ASSERT(r->axes.n == 1 && strcmp(r->axes.axis[0].path, "cluster.max_delay") == 0);
  CU_ASSERT_EQUAL(r->groups[0].delay, 0); /* numbers ascend, in whatever order files are given */
  CU_ASSERT_EQUAL(r->groups[1].delay, 600);
  CU_ASSERT_STRING_EQUAL(r->groups[0].heading, "max delay 0 s");
  results_free(r);
  gathered_fini(&g);
}

TEST(columns_named_as_fields_of_recipes_are_axes) {
  gather_request q = request(LIST(SAMPLE("tidy.csv")));
  gathered g = gathered_of(&q);
  results *r = NULL;
  ASSERT_OK(gathered_results(&r, NULL, &g, &err));
  CU_ASSERT(r->n_groups == 2 && r->n_algorithms == 2 && r->groups[1].delay == 600);
  const results_cell *cell = results_cell_at(r, 1, 0);
  CU_ASSERT(cell->n == 1 && r->runs[cell->first].evals[1].time_s == 900);
  results_free(r);
  gathered_fini(&g);
}

TEST(the_runs_of_a_group_are_seeds) {
  gather_request q = request(LIST(SAMPLE("runs.jsonl")));
  q.group_by = "^(.*)_seed[0-9]+$";
  gathered g = gathered_of(&q);
  results *r = NULL;
  ASSERT_OK(gathered_results(&r, NULL, &g, &err));
  CU_ASSERT(r->n_algorithms == 2 && results_cell_at(r, 0, 0)->n == 2);
  CU_ASSERT_STRING_EQUAL(r->algorithms[0], "GRPO");
  results_free(r);
  gathered_fini(&g);
  char *text = told(&q, NULL, TABLE_AS_TEXT, NULL);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "0.6 [0.5, 0.7]"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "interquartile means over seeds"));
  free(text);
  q.group_by = "_seed[0-9]+";
  refused(&q, "has no group in parentheses");
  const char *const merged[] = {"GRPO.*=grpo"};
  q.group_by = "^(.*)_sed[0-9]+$";
  refused(&q, "--group-by '^(.*)_sed[0-9]+$' matches none of the runs: GRPO_seed1, GRPO_seed2");
  q.group_by = NULL, q.renames = merged, q.n_renames = 1;
  refused(&q, "'GRPO_seed1' and 'GRPO_seed2' are both called 'grpo' and have accuracy");
}

TEST(an_expression_that_reads_no_metric_is_refused) {
  gather_request q = request(LIST(SAMPLE("runs.jsonl")));
  const char *const read_as[] = {"^accuracy$=score", "^train/kl$=kl_k3"};
  q.read_as = read_as, q.n_read_as = 2;
  refused(&q, "--read-as '^train/kl$=kl_k3' matches none of the metrics: score");
  q.n_read_as = 1;
  gathered g = gathered_of(&q);
  CU_ASSERT_STRING_EQUAL(g.series[0].metric, "score");
  gathered_fini(&g);
}

TEST(tags_stay_where_names_would_collide_and_only_there) {
  write_other("step,[a]GRPO - eval/m,[b]GRPO - eval/m,[a]GEPO - eval/m\n1,2,3,4\n");
  gather_request q = request(LIST(other));
  gathered g = gathered_of(&q);
  CU_ASSERT_STRING_EQUAL(g.series[0].name, "[a]GRPO");
  CU_ASSERT_STRING_EQUAL(g.series[1].name, "[b]GRPO");
  CU_ASSERT_STRING_EQUAL(g.series[2].name, "GEPO");
  gathered_fini(&g);
  const char *const renames[] = {"\\[b\\]GRPO=second"};
  q.renames = renames, q.n_renames = 1;
  g = gathered_of(&q);
  CU_ASSERT_STRING_EQUAL(g.series[0].name, "GRPO");
  CU_ASSERT_STRING_EQUAL(g.series[1].name, "second");
  gathered_fini(&g);
  unlink(other);
}

/* As TRL, verl and others log them; they had no direction, or rather "higher?". */
TEST(divergences_by_foreign_names_are_no_scores) {
  static const char *const names[] = {"actor/kl_loss",  "approx_kl", "policy/approxkl_avg",
                                      "train/kl_div",   "mean_kl",   "kl_divergence",
                                      "train/approx_kl"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const quantity q = quantity_of(names[i]);
    CU_ASSERT(q.known == METRIC_KL_REF || q.known == METRIC_KL_K3);
    CU_ASSERT(!q.is_guessed && !q.is_score && q.better != METRIC_HIGHER_IS_BETTER);
  }
}

TEST(best_follows_the_metric_and_common_ends_are_cut) {
  gather_request q = request(LIST(SAMPLE("panel_kl.csv"), SAMPLE("panel_eval.csv")));
  cJSON *json = NULL;
  free(told(&q, NULL, TABLE_AS_TEXT, &json));
  const cJSON *runs = member_at(json, "runs"), *kl = cJSON_GetArrayItem(runs, 0);
  CU_ASSERT_STRING_EQUAL(text_at(kl, "better"), "lower");
  CU_ASSERT_EQUAL(number_at(kl, "best"), 0.001);
  CU_ASSERT_EQUAL(number_at(kl, "best_to_last"), 0.001);
  cJSON_Delete(json);
  q = request(LIST(SAMPLE("panel_eval.csv")));
  q.at_common = 1;
  gathered g = gathered_of(&q);
  CU_ASSERT(g.series[0].n == 3 && g.series[0].n_all == 4 && g.series[1].n == 3);
  gathered_fini(&g);
  char *text = told(&q, NULL, TABLE_AS_MARKDOWN, NULL);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "last step that all of their metric have"));
  free(text);
  write_other("run,step,frobnication\na,1,3\na,2,1\na,3,2\n");
  q = request(LIST(other));
  text = told(&q, NULL, TABLE_AS_TEXT, NULL);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "higher?  3     3   1     2   3    1"));
  free(text);
  q.lower_is_better = 1;
  text = told(&q, NULL, TABLE_AS_TEXT, NULL);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "lower  3     1   2     2   3    1"));
  free(text);
  q.metric = "frobnication";
  g = gathered_of(&q);
  results *r = NULL;
  ASSERT_OK(gathered_results(&r, NULL, &g, &err));
  CU_ASSERT(r->lower_is_better && r->runs[0].n_evals == 3);
  results_free(r);
  gathered_fini(&g);
  unlink(other);
}

TEST(benchmarks_stand_side_by_side_with_their_average) {
  write_other("step,GEPO,GRPO,GSPO\n0,0.2,0.1,0.1\n64,0.4,0.3,0.2\n128,0.3,0.3,0.1\n");
  gather_request q = request(LIST(SAMPLE("panel_eval.csv"), other));
  const char *const labels[] = {"panel_eval.csv=MATH", "import_gather_test.csv=AIME24"};
  const char *const renames[] = {"(.*)_diff32=$1"};
  q.labels = labels, q.n_labels = 2, q.renames = renames, q.n_renames = 1;
  cJSON *json = NULL;
  char *text = told(&q, NULL, TABLE_AS_TEXT, &json);
  CU_ASSERT_PTR_NOT_NULL(
      strstr(text, "run   MATH best  MATH last  AIME24 best  AIME24 last  average best"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "GEPO        0.7       0.65          0.4          0.3"));
  const cJSON *rows = member_at(json, "benchmarks.rows");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(rows), 3);
  ASSERT_CLOSE(number_at(cJSON_GetArrayItem(rows, 0), "average_best"), 0.55, 1e-12);
  CU_ASSERT(cJSON_IsNull(member_at(cJSON_GetArrayItem(rows, 2), "average_best")));
  cJSON_Delete(json);
  free(text);
  unlink(other);
}

TEST(a_column_of_steps_that_no_file_has_is_refused) {
  gather_request q = request(LIST(SAMPLE("panel_eval.csv")));
  q.shape.step = "nosuch";
  refused(
      &q,
      "--x nosuch: no column with the steps is headed 'nosuch'; they are in 'train/global_step'");
}

TEST(printed_numbers_that_are_no_maximum_are_shown_as_such) {
  gather_request q = request(LIST(SAMPLE("panel_eval.csv")));
  const char *const labels[] = {"panel_eval.csv=MATH"}, *const renames[] = {"(.*)_diff32=$1"};
  q.labels = labels, q.n_labels = 1, q.renames = renames, q.n_renames = 1;
  published p;
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(published_read(&p, SAMPLE("published.tsv"), &err), GL_OK);
  CU_ASSERT_EQUAL(p.n, 4);
  char *text = told(&q, &p, TABLE_AS_MARKDOWN, NULL);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "| GEPO |"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "the maximum |"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "not the maximum: the value at 128 |"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "nothing is printed |"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "not in these files: 1."));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "Not in these files: run "));
  free(text);
  published_fini(&p);
  write_other("run,best,last\na,high,1\n");
  CU_ASSERT_EQUAL(published_read(&p, other, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, ":2:3: 'high' is not a printed number"));
  published_fini(&p);
  unlink(other);
}

TEST(a_number_agrees_with_what_rounds_to_it) {
  const published_number whole = {"75.2", 75.2, 0.05, 0}, part = {"0.752", 0.752, 0.0005, 0};
  CU_ASSERT(published_agrees(&whole, 0.7524, 0.8) && !published_agrees(&whole, 0.7526, 0.8));
  CU_ASSERT(published_agrees(&whole, 75.16, 80) && !published_agrees(&whole, 0.752, 80));
  CU_ASSERT(published_agrees(&part, 0.7524, 0.8) && !published_agrees(&part, 0.7526, 0.8));
}

TEST(wrong_requests_are_refused_with_their_remedy) {
  gather_request q = request(LIST(SAMPLE("wide.csv"), SAMPLE("wide.tsv")));
  refused(&q, "wide.csv and tests/golden/exports/wide.tsv both have score of the run 'grpo'; say "
              "which benchmark or study each is of: --label wide.csv=NAME");
  const char *const labels[] = {"wid.csv=A"}, *const twice[] = {"wide.csv=A", "wide.csv=B"},
                    *const empty[] = {"wide.csv="};
  q.labels = labels, q.n_labels = 1;
  refused(&q, "begins with none of the files given; write FILE=NAME");
  q.labels = twice, q.n_labels = 2;
  refused(&q, "--label 'wide.csv=A' and --label 'wide.csv=B' name one file");
  q.labels = empty, q.n_labels = 1;
  refused(&q, "has no name behind the file");
  const char *const rules[] = {"gepo", "(gepo=x", "gepo=$1", "gepo=$", "(x*)gepo=$1"};
  const char *const says[] = {"--rename needs REGEX=NAME", "is no regular expression",
                              "asks for group 1, and the expression has 0 groups",
                              "a digit or another $ must follow", "nothing is left of the name"};
  for (size_t i = 0; i < 5; i++) {
    q = request(LIST(SAMPLE("wide.csv")));
    q.renames = &rules[i], q.n_renames = 1;
    refused(&q, says[i]);
  }
  q = request(LIST(SAMPLE("wide.csv"), SAMPLE("wide.csv")));
  refused(&q, "is given twice; give it once");
  q = request(LIST(SAMPLE("long.csv")));
  q.metric = "kl";
  refused(&q, "no file has a metric 'kl'; there are: eval/accuracy, kl_exact");
  write_other("step,gepo\n0.5,1\n");
  q = request(LIST(other));
  refused(&q, "step 0.5 of the run 'gepo' is not a whole number of updates");
  write_other("step,gepo\n1,1\n1,2\n");
  refused(&q, "the run 'gepo' has two values of score at step 1");
  write_other("step,gepo\n1,1\n2,1\n1,2\n2,2\n"); /* two runs */
  refused(&q, "the run 'gepo' has two values of score at step 1");
  /* A restart from a checkpoint of update 2. */
  gathered g;
  write_other("step,gepo\n1,1\n2,2\n3,3\n4,4\n3,5\n4,6\n5,7\n");
  ASSERT_OK(gather(&g, &q, &err));
  CU_ASSERT_EQUAL_FATAL(g.series[0].n, 5);
  CU_ASSERT(g.series[0].value[2] == 5 && g.series[0].value[4] == 7);
  CU_ASSERT_EQUAL_FATAL(g.n_notes, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(g.notes[0], "2 values were written again"));
  gathered_fini(&g);
  write_other("run,step,train/step_diff,staleness\na,1,1,2\n");
  refused(&q, "are both read as staleness; say what one of them is");
  write_other("run,step,frobnication\na,1,1\n");
  refused(&q, "none of the metrics is known to gepolab or a score");
  unlink(other);
}
