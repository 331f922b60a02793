/* Effects of a small factorial study by hand, and least squares against NumPy
 * (tests/golden/effects.py). */
#include "analysis/effects.h"
#include "tests/support/json.h"
#include "tests/support/suite.h"
#include "tests/support/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("analysis: effects");

TEST(least_squares_are_those_of_numpy) {
  enum { MOST = 16 };
  double x[MOST * MOST], y[MOST], b[MOST], variance[MOST];
  size_t n = 0, k = 0, rank = 0;
  FILE *from = fopen("tests/golden/effects.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  CU_ASSERT_EQUAL_FATAL(fscanf(from, "%zu %zu", &n, &k), 2);
  CU_ASSERT_FATAL(n <= MOST && k <= MOST);
  for (size_t i = 0; i < n; i++) {
    for (size_t m = 0; m < k; m++) CU_ASSERT_EQUAL_FATAL(fscanf(from, "%lf", &x[i * k + m]), 1);
    CU_ASSERT_EQUAL_FATAL(fscanf(from, "%lf", &y[i]), 1);
  }
  CU_ASSERT_EQUAL(least_squares(&(regression){n, k, x, y, b, variance}, &rank, NULL), GL_OK);
  CU_ASSERT_EQUAL(rank, k);
  for (size_t m = 0; m < k; m++) {
    double value, its;
    CU_ASSERT_EQUAL_FATAL(fscanf(from, "%lf %lf", &value, &its), 2);
    CU_ASSERT(fabs(b[m] - value) < 1e-12 && fabs(variance[m] - its) < 1e-12);
  }
  fclose(from);
}

/* A run that ends at `last` after a best of 0.9. */
static void add_run(results *r, const char *algorithm, const char *swept, uint64_t seed,
                    double last) {
  gl_error err = {0};
  eval_record eval[] = {{0, 0, 0}, {100, 1, 0.9}, {200, 2, last}};
  const run_record run = {.algorithm = algorithm,
                          .swept = swept,
                          .seed = seed,
                          .status = RUN_DONE,
                          .evals = eval,
                          .n_evals = 3};
  CU_ASSERT_EQUAL_FATAL(results_add(r, &run, &err), GL_OK);
}

/* last = 0.6 + 0.1 a - 0.05 b + 0.02 ab for grpo, and 0.1 less of a's effect for gepo, two seeds
 * that are 0.08 apart; a third field changes with a, and falls where it rises. */
static results *made(void) {
  results *r = results_new("made");
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (int which = 0; which < 2; which++)
    for (int i = 0; i < 4; i++)
      for (uint64_t seed = 1; seed <= 2; seed++) {
        const double a = i % 2 ? 1 : -1, b = i / 2 ? 1 : -1;
        char swept[160];
        snprintf(swept, sizeof swept,
                 "{\"train.group_size\":%d,\"sampling.top_p\":%s,\"sampling.temperature\":%s}",
                 i % 2 ? 16 : 8, i / 2 ? "1" : "0.95", i % 2 ? "0.6" : "1");
        add_run(r, which ? "gepo" : "grpo", swept, seed,
                0.6 + (which ? 0.05 : 0.1) * a - 0.05 * b + 0.02 * a * b + 0.08 * (double)seed);
      }
  ASSERT_OK(results_arrange(r, &err));
  return r;
}

static const effect *effect_of(const effect_table *t, const effect_fit *f, const char *a,
                               const char *b) {
  for (size_t i = 0; i < t->n_effects; i++) {
    const effect *e = &f->effects[i];
    const char *with = e->b == SIZE_MAX ? "" : t->factor[e->b].name;
    const char *name = t->factor[e->a].name;
    if ((strcmp(name, a) == 0 && strcmp(with, b) == 0) ||
        (*b != '\0' && strcmp(name, b) == 0 && strcmp(with, a) == 0))
      return e;
  }
  return NULL;
}

TEST(effects_of_a_design_come_out) {
  static const char group[] = "temperature, group size", top[] = "top-p";
  const outcome_rule rule = outcome_rule_default();
  results *r = made();
  effect_table t;
  ASSERT_OK(effect_table_init(&t, r, &rule, &err));
  CU_ASSERT_EQUAL_FATAL(t.n_factors, 2);
  for (size_t i = 0; i < 2; i++)
    if (strcmp(t.factor[i].name, group) != 0 && strcmp(t.factor[i].name, top) != 0)
      printf("factor: %s\n", t.factor[i].name);
  const effect *main_a = NULL, *difference = NULL;
  const effect_fit *last = t.fit[RESPONSE_LAST];
  main_a = effect_of(&t, &last[0], group, "");
  const effect *main_b = effect_of(&t, &last[0], top, "");
  difference = effect_of(&t, &last[2], group, "");
  CU_ASSERT_FATAL(main_a != NULL && main_b != NULL && difference != NULL);
  /* The temperature comes first of the two that change together, and falls where a rises. */
  CU_ASSERT(fabs(main_a->size.value + 0.2) < 1e-12);
  CU_ASSERT(fabs(main_b->size.value + 0.1) < 1e-12);
  CU_ASSERT(fabs(difference->size.value - 0.1) < 1e-12);
  CU_ASSERT_EQUAL(last[2].subtracted, 0);
  CU_ASSERT_EQUAL(last[2].runs, 8);
  /* The gap is 0.9 less the last score. */
  CU_ASSERT(fabs(effect_of(&t, &t.fit[RESPONSE_GAP][0], group, "")->size.value - 0.2) < 1e-12);
  CU_ASSERT(fabs(effect_of(&t, &t.fit[RESPONSE_LIFETIME][0], top, "")->size.value) < 1e-9);
  for (size_t i = 0; i < t.n_effects; i++) CU_ASSERT(last[0].effects[i].q >= last[0].effects[i].p);
  effect_table_fini(&t);
  results_free(r);
}

TEST(text_and_json_have_every_effect) {
  const outcome_rule rule = outcome_rule_default();
  results *r = made();
  effect_table t;
  table *to = table_document();
  ASSERT_OK(effect_table_init(&t, r, &rule, &err));
  ASSERT_OK(effect_table_report(to, &t, 0, &err));
  char *text = written_table(to, TABLE_AS_TEXT);
  cJSON *json = read_table(to);
  table_free(to);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "gepo less grpo"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "top-p: 0.95 to 1"));
  const cJSON *fits = member_at(json, "fits");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(fits), 3 * RESPONSE_COUNT);
  const cJSON *effects = member_at(cJSON_GetArrayItem(fits, 0), "effects");
  CU_ASSERT_EQUAL((size_t)cJSON_GetArraySize(effects), t.n_effects);
  cJSON_Delete(json);
  free(text);
  effect_table_fini(&t);
  results_free(r);
}

/* The delay goes with one of two presets, and the other has none. */
TEST(a_value_that_no_recipe_states_is_called_not_given) {
  const outcome_rule rule = outcome_rule_default();
  results *r = results_new("made");
  effect_table t;
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (int i = 0; i < 4; i++)
    for (uint64_t seed = 1; seed <= 2; seed++) {
      char swept[160];
      snprintf(swept, sizeof swept, "{\"train.group_size\":%d,%s}", i % 2 ? 16 : 8,
               i / 2 ? "\"cluster.preset\":\"sync\""
                     : "\"cluster.preset\":\"fifo\",\"cluster.delay\":31");
      add_run(r, "grpo", swept, seed, 0.1 * i + 0.01 * (double)seed);
    }
  ASSERT_OK(results_arrange(r, &err));
  ASSERT_OK(effect_table_init(&t, r, &rule, &err));
  table *to = table_document();
  ASSERT_OK(effect_table_report(to, &t, 0, &err));
  char *text = written_table(to, TABLE_AS_TEXT);
  table_free(to);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "weight delay, preset: 31, fifo to not given, sync"));
  free(text);
  effect_table_fini(&t);
  results_free(r);
}

TEST(fields_of_three_values_are_refused_by_name) {
  static const char *const swept[] = {"{\"train.group_size\":4}", "{\"train.group_size\":8}",
                                      "{\"train.group_size\":16}"};
  const outcome_rule rule = outcome_rule_default();
  results *r = results_new("three");
  effect_table t;
  gl_error err = {0};
  for (size_t i = 0; i < 3; i++) add_run(r, "grpo", swept[i], 1, 0.5);
  CU_ASSERT_EQUAL(results_arrange(r, &err), GL_OK);
  CU_ASSERT_EQUAL(effect_table_init(&t, r, &rule, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "group size"));
  effect_table_fini(&t);
  results_free(r);
}
