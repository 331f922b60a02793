/* Tables of staleness counters: a column pair for every setting of a sweep, and one for no sweep.
 */
#include "experiments/clock/counter_tables.h"

#include "sim/trainer_counters.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("cli: definitions of staleness");

#define ON_POLICY "cluster={preset: sync, learner: {step: 1}}"

static cJSON *compared(const char *const *overrides, size_t n) {
  cfg_doc *doc = NULL;
  recipe r;
  definitions_comparison c;
  ASSERT_OK(recipe_load(&doc, "quickstart", overrides, n, &err));
  ASSERT_OK(recipe_read(&r, doc, &err));
  ASSERT_OK(definitions_compare(&c, &r, doc, &err));
  cJSON *json = table_to_json(c.table);
  table_free(c.table);
  definitions_comparison_fini(&c);
  cfg_free(doc);
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(json), STALENESS_DEFINITIONS);
  return json;
}

static double reading(const cJSON *json, int row, const char *column) {
  const cJSON *value = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(json, row), column);
  CU_ASSERT_PTR_NOT_NULL_FATAL(value);
  return cJSON_IsRaw(value) ? strtod(value->valuestring, NULL)
                            : value->valuedouble; /* exact text */
}

TEST(every_setting_of_a_sweep_has_its_columns) {
  static const char *const overrides[] = {
      "steps=10", ON_POLICY,
      "sweep={train.minibatches: [1, 3], cluster.learner.queue: [fifo, lifo], seed: [1, 2]}"};
  cJSON *json = compared(overrides, 3);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetArrayItem(json, 0)), 2 + 2 * 4);
  CU_ASSERT_EQUAL(reading(json, 0, "queue=fifo, minibatches=1: mean"), 0);
  CU_ASSERT_EQUAL(reading(json, 1, "queue=fifo, minibatches=1: mean"), 0);
  CU_ASSERT_EQUAL(reading(json, 1, "queue=lifo, minibatches=3: mean"), 1);
  CU_ASSERT_EQUAL(reading(json, 1, "queue=lifo, minibatches=3: max"), 2);
  cJSON_Delete(json);
}

TEST(without_a_sweep_there_is_one_pair) {
  static const char *const overrides[] = {"steps=10", "sweep=null", ON_POLICY};
  cJSON *json = compared(overrides, 3);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetArrayItem(json, 0)), 4);
  CU_ASSERT_EQUAL(reading(json, 0, "mean"), 0);
  CU_ASSERT_EQUAL(reading(json, 0, "max"), 0);
  cJSON_Delete(json);
}

TEST(a_coupled_cluster_without_lengths_is_refused) {
  static const char *const overrides[] = {"sweep=null", "cluster={preset: sync, coupled: true}"};
  cfg_doc *doc = NULL;
  recipe r;
  definitions_comparison c;
  gl_error why = {0};
  ASSERT_OK(recipe_load(&doc, "quickstart", overrides, 2, &err));
  ASSERT_OK(recipe_read(&r, doc, &err));
  CU_ASSERT_EQUAL(definitions_compare(&c, &r, doc, &why), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "distribution of `lengths`"));
  CU_ASSERT_PTR_NULL(c.table);
  definitions_comparison_fini(&c);
  cfg_free(doc);
}
