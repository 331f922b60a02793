/* Files of numbers of every kind: what is read of them, and what is refused. */
#include "analysis/import/read.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("analysis: files of numbers");

static const char folder[] = "tests/golden/exports/";

static series_table *read_sample(const char *name) {
  char path[128];
  series_table *t = NULL;
  snprintf(path, sizeof path, "%s%s", folder, name);
  ASSERT_OK(read_series(&t, path, NULL, &err));
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  return t;
}

static const series *find(const series_table *t, const char *run, const char *metric,
                          uint64_t seed) {
  for (size_t i = 0; i < t->n_series; i++)
    if (strcmp(t->series[i].run, run) == 0 && strcmp(t->series[i].metric, metric) == 0 &&
        t->series[i].seed == seed)
      return &t->series[i];
  static const series none = {0};
  return &none;
}

TEST(panels_of_wandb_are_known_by_their_headings) {
  series_table *t = read_sample("panel_eval.csv");
  CU_ASSERT_EQUAL(t->n_series, 2);
  CU_ASSERT_STRING_EQUAL(t->axis, "train/global_step");
  const series *s = find(t, "GEPO_diff32", "eval/math/mean", 0);
  CU_ASSERT_STRING_EQUAL(s->tag, "paper");
  CU_ASSERT(s->n == 4 && s->step[1] == 64 && s->value[1] == 0.55);
  CU_ASSERT_EQUAL(find(t, "GRPO_diff32", "eval/math/mean", 0)->n, 3);
  series_table_free(t);
}

TEST(wide_tables_have_a_run_in_each_column) {
  const char *const files[] = {"wide.csv", "wide.tsv"}, *const runs[] = {
                                                            "gepo",
                                                            "gepo(clip=none,log_prob=mean)"};
  for (size_t i = 0; i < 2; i++) {
    series_table *t = read_sample(files[i]);
    CU_ASSERT_EQUAL(t->n_series, 2);
    const series *s = find(t, runs[i], "", 0);
    CU_ASSERT(s->n == 3 - i && s->step[1] == 64 && s->value[1] == 0.3);
    /* NaN is no value. */
    CU_ASSERT_EQUAL(find(t, "grpo", "", 0)->n, 3 - 2 * i);
    series_table_free(t);
  }
}

TEST(long_and_tidy_tables_name_runs_seeds_and_settings) {
  series_table *t = read_sample("long.csv");
  CU_ASSERT_EQUAL(t->n_series, 4);
  const series *s = find(t, "gepo", "eval/accuracy", 2);
  CU_ASSERT(s->n == 2 && s->has_seed && s->value[0] == 0.3);
  CU_ASSERT_EQUAL(find(t, "gepo", "kl_exact", 1)->value[1], 0.25);
  series_table_free(t);
  t = read_sample("tidy.csv");
  CU_ASSERT_EQUAL(t->n_series, 8);
  s = find(t, "gepo", "eval_score", 1);
  CU_ASSERT_STRING_EQUAL(s->settings, "{\"cluster.max_delay\":0}");
  CU_ASSERT(s->n == 2 && s->value[1] == 0.6);
  series_table_free(t);
}

/* A study that sweeps a field of the algorithm exports it as a column of words. */
TEST(fields_of_the_algorithm_are_settings) {
  static const char text[] =
      "algorithm\tseed\talgorithm.scale\talgorithm.kl_coef\tstep\teval_score\n"
      "grpo\t1\tnone\t0\t0\t0.25\ngrpo\t1\tnone\t0\t5\t0.5\n";
  series_table *t = NULL;
  ASSERT_OK(read_series_text(&t, text, sizeof text - 1, "x", NULL, &err));
  CU_ASSERT_EQUAL_FATAL(t->n_series, 1);
  CU_ASSERT_STRING_EQUAL(t->series[0].settings,
                         "{\"algorithm.scale\":\"none\",\"algorithm.kl_coef\":0}");
  series_table_free(t);
}

/* What a trainer logs, only some of which has a name that gepolab knows; and a panel without rows.
 */
TEST(members_of_json_lines_are_metrics_and_empty_panels_are_refused) {
  static const char log[] = "{\"step\": 1, \"reward\": 0.1, \"reward_std\": 0.2, \"epoch\": 0}\n"
                            "{\"step\": 2, \"reward\": 0.3, \"reward_std\": 0.1, \"epoch\": 1}\n";
  static const char panel[] = "\"Step\",\"a - loss\",\"a - loss__MIN\",\"a - loss__MAX\"\n";
  series_table *t = NULL;
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(read_series_text(&t, log, sizeof log - 1, "x", NULL, &err), GL_OK);
  CU_ASSERT(t->n_series >= 2);
  series_table_free(t);
  t = NULL;
  CU_ASSERT_EQUAL(read_series_text(&t, panel, sizeof panel - 1, "x", NULL, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "there are no records in it"));
  series_table_free(t);
}

TEST(json_lines_are_flattened_and_lists_left_out) {
  series_table *t = read_sample("history.jsonl");
  const series *s = find(t, "history", "train/grad_norm", 0);
  CU_ASSERT_EQUAL(t->n_series, 2);
  CU_ASSERT_EQUAL(t->n_left_out, 2);
  CU_ASSERT(s->n == 2 && s->step[1] == 2 && s->value[1] == 1.25);
  series_table_free(t);
  t = read_sample("runs.jsonl");
  CU_ASSERT_EQUAL(t->n_series, 3);
  CU_ASSERT_EQUAL(find(t, "GRPO_seed2", "accuracy", 0)->value[1], 0.35);
  series_table_free(t);
}

TEST(names_are_whatever_they_are) {
  series_table *t = read_sample("hostile.csv");
  CU_ASSERT_EQUAL(t->n_series, 12);
  CU_ASSERT_EQUAL(find(t, "two\nlines", "", 0)->n, 3);
  CU_ASSERT_EQUAL(find(t, "\x1b[31mred\x1b[0m", "", 0)->n, 3);
  CU_ASSERT_EQUAL(find(t, "\"; set output \"|rm -rf .", "", 0)->n, 3);
  series_table_free(t);
}

static gl_status parse(const char *text, const shape_request *q, gl_error *err) {
  series_table *t = NULL;
  gl_status status = read_series_text(&t, text, strlen(text), "f", q, err);
  CU_ASSERT((status == GL_OK) == (t != NULL));
  series_table_free(t);
  return status;
}

TEST(spaces_behind_commas_are_no_part_of_names) {
  series_table *t = NULL;
  const shape_request q = {0};
  const char text[] = "step, gepo , grpo\n0, 0.4, 0.3\n64, 0.5, \n";
  CU_ASSERT_EQUAL_FATAL(read_series_text(&t, text, sizeof text - 1, "f", &q, NULL), GL_OK);
  CU_ASSERT(find(t, "gepo", "", 0)->n == 2 && find(t, "grpo", "", 0)->n == 1);
  series_table_free(t);
}

TEST(what_is_not_clear_is_refused_with_place_and_remedy) {
  const struct {
    const char *text, *says;
  } cases[] = {
      {"", "f:1:1: the file is empty"},
      {" \n\n", "f:1:1: the file is empty"},
      {"[{\"step\": 1}]", "f:1:1: this is a JSON array; write one object on each line"},
      {"\xfd"
       "7zXZ\x00",
       "this is compressed with xz; unpack it"},
      {"PK\x03\x04", "a zip file or a spreadsheet"},
      {"<html>", "this is HTML or XML; export"},
      {"\xff\xfes", "this is UTF-16; save it as UTF-8"},
      {"step,gepo\r0,1\r", "f:1:1: the lines end with carriage returns alone; save it with"},
      {"step;gepo\n1;2\n", "separated by semicolons; write commas"},
      {"hello\n", "no table of several columns; give"},
      {"time,gepo\n1,2\n", "no column is called step"},
      {"time,gepo\n1,2\n", "--x COLUMN; the columns are: time, gepo"},
      {"step,gepo,loss\n1,2,3\n", "'gepo' is not; say what the columns are: --columns"},
      {"step,gepo,gepo\n1,2,3\n", "two columns are headed 'gepo'; name them apart"},
      {"step,gepo\n1,good\n", "f:2:3: 'good' in column 'gepo' is not a number; write"},
      {"step,gepo\n,2\n", "f: 1 of 1 lines have no step in column 'step'; name another, --x"},
      {"step,gepo\n1\n", "f:2:2: the line has fewer cells"},
      {"step,gepo\n1,2,3\n", "f:2:5: the line has more cells"},
      {"step,gepo\n1,\"2\n", "f:2:3: a quote opens here and does not close"},
      {"# a\n# b\nstep,gepo\n1,x\n", "f:4:3: 'x' in column"},
      {"step,gepo\n", "there are no records in it"},
      {"step,gepo\n1,\n", "there is no number in it beside the step"},
      {"step,_step\n1,1\n", "no column holds numbers beside the step"},
      {"run,step,metric\na,1,b\n", "there is a column 'metric' and none 'value'"},
      {"run,step,kl\n,1,2\n", "f:2:1: the line has no name in column 'run'"},
      {"run,seed,step,kl\na,x,1,2\n", "f:2:3: the seed 'x' is not a whole number"},
      {"{\"step\": 1, \"kl\": NaN,}\n", "f:1:"},
      {"{\"step\": 1, \"kl\":", "f:1:18: expected a value; the text is cut short"},
      {"# panel\tsource\n0\tmeasured\n", "the data of a figure that gepolab drew; give the"},
      {"{\"step\": 1}\n{\"step\": 2,}\n", "f:2:"},
      {"{\"step\": 1, \"a\": 1, \"a\": 2}\n", "the key 'a' stands twice on this line; write it"},
      {"{\"step\": 1, \"a\": 1}\n5\n", "f:2:1: this line is not a JSON object; write one"},
      {"{\"step\": 1, \"a\": 1} {}\n", "f:1:"},
      {"{\"step\": 1, \"gepo\": \"high\"}\n", "f:1:21: 'high' in column 'gepo' is not a number"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gl_error err = {0};
    CU_ASSERT_EQUAL(parse(cases[i].text, NULL, &err), GL_EINPUT);
    if (!strstr(err.text, cases[i].says)) fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].says));
  }
}

/* What a writer leaves that is at work or has stopped, Python's numbers, and lines of another kind.
 */
TEST(files_of_running_trainers_are_read) {
  gl_error err = {0};
  CU_ASSERT_EQUAL(
      parse("step,kl,x\n1,2,3\n2,3,4\n3,4", &(shape_request){.columns = COLUMNS_ARE_METRICS}, &err),
      GL_OK);
  CU_ASSERT_EQUAL(
      parse("{\"step\": 1, \"kl\": 1}\n{\"step\": 2, \"kl\": NaN}\n{\"step\": 3, \"k", NULL, &err),
      GL_OK);
  CU_ASSERT_EQUAL(parse("{\"step\": 1, \"kl\": 1}\n{\"eval\": 2}\n{\"step\": 2, \"kl\": "
                        "1}\n{\"step\": 3, \"kl\": 1}\n",
                        NULL, &err),
                  GL_OK);
  CU_ASSERT_EQUAL(parse("{\"a\": 0, \"step\": 1}\n{\"a\": 1, \"kl\": 2}\n", NULL, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "in all lines are: 'a'"));
}

TEST(what_columns_are_can_be_said) {
  gl_error err = {0};
  const shape_request runs = {.columns = COLUMNS_ARE_RUNS},
                      metrics = {.columns = COLUMNS_ARE_METRICS}, along = {.step = "time"},
                      wrong = {.step = "tim"}, of_others = {.format = "verl"};
  CU_ASSERT_EQUAL(parse("step,gepo,loss\n1,2,3\n", &runs, &err), GL_OK);
  CU_ASSERT_EQUAL(parse("step,gepo,loss\n1,2,3\n", &metrics, &err), GL_OK);
  CU_ASSERT_EQUAL(parse("time,gepo\n1,2\n", &along, &err), GL_OK);
  CU_ASSERT_EQUAL(parse("# recipe: a, b\n# date\nstep\tgepo\n1\t2\n", NULL, &err), GL_OK);
  CU_ASSERT_EQUAL(parse("time,gepo\n1,2\n", &wrong, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no column is headed 'tim'; the columns are: time"));
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(parse("step,gepo\n1,2\n", &of_others, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--log-format names the format of another file"));
}

TEST(tables_that_are_too_wide_or_have_too_long_names_are_refused) {
  const size_t size = 64 * 1024;
  char *text = calloc(size, 1);
  gl_error err = {0};
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  strcpy(text, "step");
  for (size_t i = 0, n = 4; i < IMPORT_MOST_COLUMNS; i++)
    n += (size_t)snprintf(text + n, size - n, ",a%zu", i);
  strcat(text, "\n");
  CU_ASSERT_EQUAL(parse(text, NULL, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "more than 4096 columns"));
  gl_error_clear(&err);
  memset(text, 'a', IMPORT_MOST_NAME + 1);
  strcpy(text + IMPORT_MOST_NAME + 1, ",step\n1,2\n");
  CU_ASSERT_EQUAL(parse(text, NULL, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "f:1:1: the heading is longer than 1000 bytes"));
  free(text);
}
