/* gepolab bench: the parts that take seconds run and answer with every number they promise. How
 * large the speeds are is no test's business; what is known exactly beside them is checked. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <cjson/cJSON.h>

static cJSON *numbers(const char *part, const char *option, const char *value) {
  cli_result r = CLI("bench", part, "--json", option, value);
  CU_ASSERT_EQUAL(r.code, 0);
  cJSON *json = cJSON_Parse(r.out);
  cli_result_fini(&r);
  return json;
}

static double number_of(const cJSON *json, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(json, key);
  if (!cJSON_IsNumber(item)) fprintf(stderr, "no number %s\n", key);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static void all_positive(const cJSON *json, const char *const *keys, size_t n) {
  for (size_t i = 0; i < n; ++i) CU_ASSERT(number_of(json, keys[i]) > 0);
}

/* M/M/1 at load 0.9 has a mean sojourn of 1 / (1 - 0.9) = 10. Within five standard errors: fails
 * for fewer than one seed in a million, and the seed is fixed. */
static void the_event_queue_is_measured_on_a_queue_whose_sojourn_is_known(void) {
  cJSON *json = numbers("des", "-n", "200");
  static const char *const keys[] = {"customers_per_s",   "events_per_s",
                                     "star_events_per_s", "star_bytes_per_sampler",
                                     "event_bytes",       "cluster_batches_per_s"};
  all_positive(json, keys, sizeof keys / sizeof *keys);
  CU_ASSERT_EQUAL(number_of(json, "customers"), 200000);
  const double error = number_of(json, "mean_sojourn_error");
  CU_ASSERT(error > 0 && error < 1);
  CU_ASSERT(fabs(number_of(json, "mean_sojourn") - 10) < 5 * error);
  cJSON_Delete(json);
}

static void coefficients_and_the_laboratory_are_measured(void) {
  cJSON *json = numbers("policy", NULL, NULL);
  static const char *const policy[] = {"is_tokens_per_s", "grpo_tokens_per_s", "gspo_tokens_per_s",
                                       "gepo_tokens_per_s", "m2po_tokens_per_s"};
  all_positive(json, policy, sizeof policy / sizeof *policy);
  cJSON_Delete(json);
  json = numbers("lab", NULL, NULL);
  static const char *const lab[] = {"lab_exact_ms", "lab_exact_groups_per_s",
                                    "lab_exact_over_tuples", "lab_monte_carlo_groups_per_s"};
  all_positive(json, lab, sizeof lab / sizeof *lab);
  cJSON_Delete(json);
}

SUITE(bench, "cli: bench", TEST(the_event_queue_is_measured_on_a_queue_whose_sojourn_is_known),
      TEST(coefficients_and_the_laboratory_are_measured));
