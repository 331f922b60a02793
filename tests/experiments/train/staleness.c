/* The ages of trained data that a run records: in versions, and in optimiser updates. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* A metric of the run's last update; NaN where it has none. */
static double last(const char *train, const char *preset, const char *metric) {
  cli_result r = CLI("run", "quickstart", "steps=4", "eval_every=4", train, preset, "--json", "-q");
  CU_ASSERT_EQUAL(r.code, 0);
  cJSON *json = cJSON_Parse(r.out);
  const cJSON *value = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "last_update"), metric);
  double number = cJSON_IsNumber(value) ? value->valuedouble : NAN;
  cJSON_Delete(json);
  cli_result_fini(&r);
  return number;
}

/* All responses have five tokens and groups are alike, so the updates of a step, 0 to 7 updates
 * after its start, train equally many tokens: 3.5. Under one_step_off the fourth update trains the
 * version before, 8 updates ago. */
static void minibatches_and_epochs_make_data_staler(void) {
#define TRAIN "train={groups: 8, group_size: 4, minibatches: 4, epochs: 2}"
  ASSERT_CLOSE(last(TRAIN, "cluster={preset: sync}", "staleness"), 0, 0);
  ASSERT_CLOSE(last(TRAIN, "cluster={preset: sync}", "staleness_updates"), 3.5, 1e-12);
  ASSERT_CLOSE(last(TRAIN, "cluster={preset: one_step_off}", "staleness"), 1, 0);
  ASSERT_CLOSE(last(TRAIN, "cluster={preset: one_step_off}", "staleness_updates"), 11.5, 1e-12);
#undef TRAIN
}

static void with_one_update_a_step_both_ages_are_the_same(void) {
  const char *train = "train={groups: 4, group_size: 4}", *heterorl = "cluster={preset: heterorl}";
  const double versions = last(train, heterorl, "staleness");
  CU_ASSERT(versions >= 0);
  ASSERT_CLOSE(last(train, heterorl, "staleness_updates"), versions, 0);
}

/* Groups that stream: an update's age is the mean over its groups, which have their own versions
 * (all responses of this world have the same number of tokens). */
static void an_update_of_groups_is_as_stale_as_they_are_on_average(void) {
  const char *train = "train={groups: 8, group_size: 4}",
             *streams = "cluster={preset: fifo, samplers: 3, unit: group, concurrency: 6, "
                        "tokens_per_s: 5, lengths: "
                        "{law: exponential, mean: 300}}";
  cli_result r = CLI("sim", "quickstart", "steps=4", train, streams, "--schedule", "csv");
  double sum = 0, n = 0, low = INFINITY, high = 0;
  char *rest = NULL;
  for (char *line = strtok_r(r.out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    int step, sampler, version, staleness;
    if (sscanf(line, "%d,%d,%d,%d", &step, &sampler, &version, &staleness) != 4 || step != 4)
      continue;
    sum += staleness;
    low = fmin(low, staleness);
    high = fmax(high, staleness);
    ++n;
  }
  cli_result_fini(&r);
  CU_ASSERT_EQUAL(n, 8);
  CU_ASSERT(low < high);
  ASSERT_CLOSE(last(train, streams, "staleness"), sum / n, 1e-12);
  ASSERT_CLOSE(last(train, streams, "staleness_max"), high, 0);
}

SUITE(train_staleness, "cli: staleness", TEST(minibatches_and_epochs_make_data_staler),
      TEST(with_one_update_a_step_both_ages_are_the_same),
      TEST(an_update_of_groups_is_as_stale_as_they_are_on_average));
