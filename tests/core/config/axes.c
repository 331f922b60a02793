/* Recipes compared field by field: what becomes an axis, what does not, and what is a repeat. */
#include "core/config/axes.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

SUITE("core: axes");

/* A run of the study "s" of one seed. */
static axes_run run_of(const char *recipe, uint64_t seed) {
  return (axes_run){
      .study = "s", .algorithm = "grpo", .recipe = recipe, .meaning = RECIPE_MEANING, .seed = seed};
}

static void find(axis_table *t, const axes_run *runs, size_t n) {
  gl_error err = {0};
  gl_status status = axes_find(t, runs, n, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
}

/* The paths of the axes of two runs of different seeds, each followed by a space. */
static const char *axes_of(const char *one, const char *other) {
  static char paths[512];
  const axes_run runs[] = {run_of(one, 1), run_of(other, 2)};
  axis_table t;
  find(&t, runs, 2);
  paths[0] = '\0';
  for (size_t a = 0; a < t.n; ++a) {
    strcat(paths, t.axis[a].path);
    strcat(paths, " ");
  }
  axes_fini(&t);
  return paths;
}

TEST(a_field_that_is_left_out_has_its_default) {
  CU_ASSERT_STRING_EQUAL(axes_of("{}", "{\"steps\":200}"), "");
  CU_ASSERT_STRING_EQUAL(axes_of("{}", "{\"steps\":20}"), "steps ");
  CU_ASSERT_STRING_EQUAL(axes_of("{\"world\":{\"kind\":\"sequence\"}}",
                                 "{\"world\":{\"kind\":\"sequence\",\"vocabulary\":4}}"),
                         "");
  CU_ASSERT_STRING_EQUAL(axes_of("{\"world\":{\"kind\":\"sequence\"}}",
                                 "{\"world\":{\"kind\":\"sequence\",\"vocabulary\":3}}"),
                         "world.vocabulary ");
  CU_ASSERT_STRING_EQUAL(axes_of("{\"optimizer\":null}", "{\"optimizer\":{\"kind\":\"adam\"}}"),
                         "");
  CU_ASSERT_STRING_EQUAL(axes_of("{\"train\":{\"groups\":8}}", "{\"train\":{\"groups\":8.0}}"), "");
}

TEST(none_is_no_limit_where_the_field_says_so) {
#define AREAL "{\"cluster\":{\"preset\":\"areal\""
  CU_ASSERT_STRING_EQUAL(axes_of(AREAL ",\"ahead\":0}}", AREAL ",\"ahead\":\"none\"}}"),
                         "cluster.ahead ");
  CU_ASSERT_STRING_EQUAL(axes_of(AREAL "}}", AREAL ",\"up\":{\"bandwidth\":\"none\"}}}"), "");
}

/* The same field has another default under another preset or in another world, or a computed one.
 */
TEST(defaults_that_depend_on_other_fields_are_those_of_the_case) {
#define HETERORL "{\"cluster\":{\"preset\":\"heterorl\""
  CU_ASSERT_STRING_EQUAL(axes_of(HETERORL "}}", HETERORL ",\"max_delay\":1800}}"), "");
  CU_ASSERT_STRING_EQUAL(axes_of(HETERORL "}}", HETERORL ",\"max_delay\":600}}"),
                         "cluster.max_delay ");
  CU_ASSERT_STRING_EQUAL(
      axes_of(HETERORL ",\"delay\":9}}", HETERORL ",\"delay\":9,\"max_delay\":1800}}"),
      "cluster.max_delay ");
  CU_ASSERT_STRING_EQUAL(axes_of(HETERORL "}}", HETERORL ",\"shared_delays\":true}}"), "");
  CU_ASSERT_STRING_EQUAL(axes_of("{}", "{\"cluster\":{\"shared_delays\":true}}"),
                         "cluster.shared_delays ");
  CU_ASSERT_STRING_EQUAL(axes_of("{}", "{\"cluster\":{\"preset\":\"sync\"}}"), "");
  CU_ASSERT_STRING_EQUAL(axes_of(HETERORL "}}", HETERORL ",\"window\":32}}"), "cluster.window ");
  CU_ASSERT_STRING_EQUAL(axes_of("{\"world\":{\"kind\":\"llm\"}}",
                                 "{\"optimizer\":{\"lr\":0.00001},\"world\":{\"kind\":\"llm\"}}"),
                         "");
  CU_ASSERT_STRING_EQUAL(
      axes_of("{\"world\":{\"kind\":\"bandit\"}}",
              "{\"optimizer\":{\"lr\":0.00001},\"world\":{\"kind\":\"bandit\"}}"),
      "optimizer.lr ");
}

TEST(short_forms_state_the_field_they_stand_for) {
  CU_ASSERT_STRING_EQUAL(axes_of("{\"algorithm\":\"gepo\"}", "{\"algorithm\":{\"base\":\"gepo\"}}"),
                         "");
  CU_ASSERT_STRING_EQUAL(
      axes_of("{\"world\":{\"evaluation\":\"greedy\",\"kind\":\"bandit\"}}",
              "{\"world\":{\"evaluation\":{\"kind\":\"greedy\"},\"kind\":\"bandit\"}}"),
      "");
  CU_ASSERT_STRING_EQUAL(
      axes_of("{\"world\":{\"kind\":\"llm\",\"task\":\"sorting\"}}",
              "{\"world\":{\"kind\":\"llm\",\"task\":{\"kind\":\"sorting\",\"length\":5}}}"),
      "");
}

TEST(fields_that_are_not_known_always_tell_runs_apart) {
  CU_ASSERT_STRING_EQUAL(axes_of("{}", "{\"news\":{\"x\":1}}"), "news.x ");
  CU_ASSERT_STRING_EQUAL(axes_of("{\"news\":[1,2]}", "{\"news\":[1,3]}"), "news ");
}

/* Absent, number and word are told apart; distributions are compared whole. */
TEST(values_are_numbers_words_or_absent) {
  const axes_run runs[] = {
      run_of("{\"cluster\":{\"delay\":\"none\"}}", 1),
      run_of("{\"cluster\":{\"delay\":60,\"window\":4}}", 1),
      run_of("{\"cluster\":{\"delay\":{\"distribution\":\"constant\",\"value\":9}}}", 1),
      run_of("{\"cluster\":{\"delay\":{\"distribution\":\"gamma\",\"shape\":2}}}", 1)};
  axis_table t;
  find(&t, runs, 4);
  CU_ASSERT_EQUAL_FATAL(t.n, 2);
  size_t delay = axes_index(&t, "cluster.delay"), window = axes_index(&t, "cluster.window");
  CU_ASSERT(delay == 0 && window == 1 && axes_index(&t, "cluster") == 2);
  CU_ASSERT_STRING_EQUAL(t.axis[delay].unit, "s");
  CU_ASSERT_EQUAL(t.axis[delay].kind, VALUE_DIST);
  CU_ASSERT_STRING_EQUAL(t.axis[window].label, "window");
  CU_ASSERT(t.value[0].number == 0 && t.value[2].number == 60 && t.value[4].number == 9);
  CU_ASSERT(isnan(t.value[6].number));
  CU_ASSERT_STRING_EQUAL(t.value[6].text, "{\"distribution\":\"gamma\",\"shape\":2}");
  CU_ASSERT(t.value[1].text == NULL && isnan(t.value[1].number) && t.value[3].number == 4);
  axes_fini(&t);
}

/* Rates by tune differ between cells and are no axis, until one cell has two of them. */
TEST(what_was_chosen_splits_nothing_unless_a_cell_has_two_choices) {
  axes_run runs[] = {run_of("{\"algorithm\":\"grpo\",\"optimizer\":{\"lr\":0.1}}", 1),
                     run_of("{\"algorithm\":\"gepo\",\"optimizer\":{\"lr\":0.2}}", 1),
                     run_of("{\"algorithm\":\"gepo\",\"optimizer\":{\"lr\":0.3}}", 2)};
  axis_table t;
  runs[0].chosen = "{\"optimizer.lr\":0.1}";
  runs[1].chosen = "{\"optimizer.lr\":0.2}";
  runs[2].chosen = "{\"optimizer.lr\":0.3}";
  runs[1].algorithm = runs[2].algorithm = "gepo";
  find(&t, runs, 2);
  CU_ASSERT_EQUAL(t.n, 0);
  axes_fini(&t);
  find(&t, runs, 3);
  CU_ASSERT_EQUAL_FATAL(t.n, 1);
  CU_ASSERT_STRING_EQUAL(t.axis[0].path, "optimizer.lr");
  CU_ASSERT_EQUAL(t.axis[0].role, ROLE_CHOSEN);
  axes_fini(&t);
  runs[0].chosen = runs[1].chosen = NULL;
  find(&t, runs, 2); /* stated by hand: other conditions */
  CU_ASSERT_EQUAL(t.n, 1);
  axes_fini(&t);
}

/* Where a measured trace lies changes no result: two seeds stay one cell, one seed twice does not.
 */
TEST(provenance_splits_only_runs_of_one_seed) {
#define COLUMN(name) "{\"cluster\":{\"compare\":{\"column\":\"" name "\"}}}"
  axes_run runs[] = {run_of(COLUMN("a"), 1), run_of(COLUMN("b"), 2)};
  axis_table t;
  find(&t, runs, 2);
  CU_ASSERT_EQUAL(t.n, 0);
  axes_fini(&t);
  runs[1].seed = 1;
  find(&t, runs, 2);
  CU_ASSERT_EQUAL(t.n, 1);
  CU_ASSERT(t.same[0] == 0 && t.same[1] == 1);
  axes_fini(&t);
}

TEST(a_recipe_that_means_the_same_is_a_repeat) {
  const axes_run runs[] = {run_of("{}", 1), run_of("{\"steps\":200}", 1), run_of("{}", 2)};
  axis_table t;
  find(&t, runs, 3);
  CU_ASSERT(t.n == 0 && t.same[0] == 0 && t.same[1] == 0 && t.same[2] == 2);
  axes_fini(&t);
}

/* Two meanings of recipes, as of a program whose defaults changed, are two cells. */
TEST(runs_of_two_meanings_are_never_one_cell) {
  axes_run runs[] = {run_of("{}", 1), run_of("{}", 2)};
  axis_table t;
  runs[1].meaning = RECIPE_MEANING + 1;
  find(&t, runs, 2);
  CU_ASSERT_EQUAL(t.n, 1);
  axes_fini(&t);
}

TEST(algorithms_of_one_name_are_told_apart) {
  axes_run runs[] = {run_of("{\"algorithm\":\"gepo\"}", 1),
                     run_of("{\"algorithm\":{\"base\":\"gepo\",\"clip\":\"none\"}}", 1),
                     run_of("{\"algorithm\":\"is\"}", 1)};
  axis_table t;
  runs[0].algorithm = runs[1].algorithm = "gepo";
  runs[2].algorithm = "is";
  find(&t, runs, 3);
  CU_ASSERT_EQUAL(t.n, 0);
  CU_ASSERT(strcmp(t.algorithm[0], t.algorithm[1]) != 0);
  CU_ASSERT_STRING_EQUAL(t.algorithm[1], "gepo (clip none)");
  CU_ASSERT_STRING_EQUAL(t.algorithm[2], "is");
  axes_fini(&t);
  runs[0].swept = "{\"algorithm.clip\":\"range\"}"; /* an axis of its own: not part of the name */
  runs[1].swept = "{\"algorithm.clip\":\"none\"}";
  find(&t, runs, 2);
  CU_ASSERT_EQUAL(t.n, 1);
  CU_ASSERT_STRING_EQUAL(t.algorithm[1], "gepo");
  axes_fini(&t);
}

TEST(studies_are_compared_each_by_itself) {
  axes_run runs[] = {run_of("{\"steps\":20}", 1), run_of("{}", 1)};
  axis_table t;
  runs[1].study = "other";
  find(&t, runs, 2);
  CU_ASSERT_EQUAL(t.n, 0);
  axes_fini(&t);
}

TEST(axes_have_names_of_their_own) {
  const axes_run runs[] = {run_of("{\"cluster\":{\"data_delay\":0,\"down\":{\"loss\":0},\"max_"
                                  "delay\":0,\"up\":{\"loss\":0}},"
                                  "\"a\":{\"x\":1},\"b\":{\"x\":1}}",
                                  1),
                           run_of("{\"cluster\":{\"data_delay\":9,\"down\":{\"loss\":1},\"max_"
                                  "delay\":9,\"up\":{\"loss\":1}},"
                                  "\"a\":{\"x\":2},\"b\":{\"x\":2}}",
                                  1)};
  axis_table t;
  find(&t, runs, 2);
  CU_ASSERT_EQUAL_FATAL(t.n, 6);
  for (size_t i = 0; i < t.n; ++i)
    for (size_t k = 0; k < i; ++k) CU_ASSERT(strcmp(t.axis[i].label, t.axis[k].label) != 0);
  axes_fini(&t);
}

TEST(damaged_recipes_are_refused) {
  const axes_run runs[] = {run_of("{}", 1), run_of("{\"steps\":", 2)};
  axis_table t;
  gl_error err = {0};
  CU_ASSERT_EQUAL(axes_find(&t, runs, 2, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not a JSON object"));
  axes_fini(&t);
}
