/* The clock, delay distributions and statistics through the library are those of the rooms behind
 * it. */
#include "analysis/statistics.h"
#include "library/gepolab.h"
#include "sim/delay.h"
#include "tests/support/files.h"
#include "tests/support/suite.h"

#include <gen/version.h>
#include <stdlib.h>
#include <string.h>

SUITE("library: simulation and statistics");

/* One sampler whose batches take one second, a learner that takes one second: the delay of d
 * seconds is d updates. */
static const char recipe[] =
    "steps: 20\ntrain: {groups: 2, group_size: 4}\n"
    "cluster: {preset: fifo, samplers: 1, generation: 1, delay: 3, learner: {step: 1}}\n"
    "algorithm: {base: gepo}\n";

TEST(a_fixed_delay_is_a_fixed_staleness) {
  gepolab_simulation *s = NULL;
  gepolab_trained batch[64];
  gepolab_error err = {.status = GEPOLAB_OK};
  CU_ASSERT_EQUAL_FATAL(gepolab_simulate(&s, recipe, 1, &err), GEPOLAB_OK);
  CU_ASSERT_EQUAL(gepolab_simulation_batches(s), 20);
  CU_ASSERT_EQUAL_FATAL(gepolab_simulation_read(s, 0, 64, batch), 20);
  for (int k = 0; k < 20; ++k) {
    CU_ASSERT_EQUAL(batch[k].step, k + 1);
    CU_ASSERT_EQUAL(batch[k].version, k);
    CU_ASSERT(batch[k].drawn_at <= batch[k].version && batch[k].drawn_at >= 0);
    CU_ASSERT(batch[k].arrived_s <= batch[k].trained_s);
    CU_ASSERT(batch[k].start_s < batch[k].generated_s);
  }
  CU_ASSERT_EQUAL(batch[19].version - batch[19].drawn_at, 4);
  CU_ASSERT_EQUAL(gepolab_simulation_read(s, 18, 64, batch), 2);
  CU_ASSERT_EQUAL(batch[0].step, 19);
  CU_ASSERT_EQUAL(gepolab_simulation_read(s, 20, 1, batch), 0);
  CU_ASSERT_EQUAL(gepolab_simulation_read(s, -1, 1, batch), 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(gepolab_simulation_json(s), "\"learner_utilisation\""));
  gepolab_simulation_free(s);
}

TEST(wrong_recipes_are_refused) {
  static const struct {
    const char *text, *says;
  } wrong[] = {{"cluster: {preset: nosuch}", "nosuch"},
               {"steps: 0", "steps is '0'"},
               {"train: {groups: 1.5}", "train.groups is '1.5'"},
               {"- a list", "recipe:"},
               {"steps: [", "recipe:"},
               {"cluster: {coupled: true}", "lengths"},
               {NULL, "NULL"}};
  for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; ++k) {
    gepolab_simulation *s = NULL;
    gepolab_error err = {.status = GEPOLAB_OK};
    CU_ASSERT_NOT_EQUAL(gepolab_simulate(&s, wrong[k].text, 1, &err), GEPOLAB_OK);
    CU_ASSERT_PTR_NULL(s);
    if (strstr(err.text, wrong[k].says) == NULL) fprintf(stderr, "found '%s'\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wrong[k].says));
  }
}

/* A file of presets means its fields; files of delays are looked for beside it. */
TEST(own_presets_are_their_fields) {
  static const char path[] = "build/tests/library_presets.yaml",
                    text[] = "steps: 20\ncluster: {preset: mine, delay: 3}\n",
                    stated[] = "steps: 20\ncluster: {preset: fifo, samplers: 1, generation: 1, "
                               "delay: 3, learner: {step: 1, eval_pause: 0}}\n";
  gepolab_simulation *a = NULL, *b = NULL;
  gepolab_error err;
  files_put("build/tests/library_delays.csv", "3\n3\n");
  files_put(path, "presets:\n  mine: {base: fifo, samplers: 1, generation: 1, learner: {step: 1, "
                  "eval_pause: 0}, delay: {distribution: empirical, file: library_delays.csv}}\n");
  CU_ASSERT_EQUAL_FATAL(gepolab_simulate_own(&a, text, NULL, path, 1, &err), GEPOLAB_OK);
  CU_ASSERT_EQUAL_FATAL(gepolab_simulate(&b, stated, 1, &err), GEPOLAB_OK);
  CU_ASSERT_STRING_EQUAL(gepolab_simulation_json(a), gepolab_simulation_json(b));
  gepolab_simulation_free(a);
  files_put("build/tests/library_recipe.yaml", "steps: 20\ncluster: {preset: mine}\n");
  CU_ASSERT_EQUAL_FATAL(
      gepolab_simulate_own(&a, NULL, "build/tests/library_recipe.yaml", path, 1, &err), GEPOLAB_OK);
  gepolab_trained one[20], other[20];
  CU_ASSERT_EQUAL(gepolab_simulation_read(a, 0, 20, one), 20);
  CU_ASSERT_EQUAL(gepolab_simulation_read(b, 0, 20, other), 20);
  CU_ASSERT_EQUAL(memcmp(one, other, sizeof one), 0);
  gepolab_simulation_free(a);
  gepolab_simulation_free(b);
  CU_ASSERT_EQUAL(gepolab_simulate(&a, text, 1, &err), GEPOLAB_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--presets FILE"));
  files_put(path, "presets: {mine: {base: fifo, sampler: 1}}");
  CU_ASSERT_EQUAL(gepolab_simulate_own(&a, text, NULL, path, 1, &err), GEPOLAB_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "library_presets.yaml:1:30: unknown key 'sampler'"));
}

TEST(draws_are_those_of_the_dist) {
  gepolab_delay *dist = NULL;
  double draw[8], later[4], quantile;
  delay_source source = {.stream = rng_stream_at(5, RNG_DELAY, 0)};
  delay_dist same;
  CU_ASSERT_EQUAL_FATAL(
      gepolab_delay_new(&dist, "{distribution: lognormal, interval: [60, 1800], confidence: 0.9}",
                        NULL),
      GEPOLAB_OK);
  memset(&same, 0, sizeof same);
  same.clamp_hi = INFINITY;
  CU_ASSERT_EQUAL_FATAL(delay_from_interval(&same, DELAY_LOGNORMAL, 60, 1800, 0.9, NULL), GL_OK);
  CU_ASSERT_EQUAL(gepolab_delay_quantile(dist, 0.05, &quantile, NULL), GEPOLAB_OK);
  ASSERT_CLOSE(quantile, 60, 1e-9);
  CU_ASSERT_EQUAL(gepolab_delay_quantile(dist, 0.95, &quantile, NULL), GEPOLAB_OK);
  ASSERT_CLOSE(quantile, 1800, 1e-9);
  CU_ASSERT_EQUAL(gepolab_delay_draw(dist, 5, 0, 8, draw, NULL), GEPOLAB_OK);
  CU_ASSERT_EQUAL(gepolab_delay_draw(dist, 5, 4, 4, later, NULL), GEPOLAB_OK);
  CU_ASSERT_EQUAL(memcmp(draw + 4, later, sizeof later), 0);
  CU_ASSERT_EQUAL(gepolab_delay_quantile(dist, 1, &quantile, NULL), GEPOLAB_EINPUT);
  CU_ASSERT_EQUAL(gepolab_delay_draw(dist, 5, -1, 4, later, NULL), GEPOLAB_EINPUT);
  gepolab_error err;
  CU_ASSERT_EQUAL(gepolab_delay_draw(dist, 5, INT64_MAX, INT64_MAX, later, &err), GEPOLAB_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "from number 9223372036854775807 on"));
  for (int k = 0; k < 8; ++k) ASSERT_CLOSE(draw[k], delay_draw(&same, &source), 1e-12);
  gepolab_delay_free(dist);
  CU_ASSERT_EQUAL(gepolab_delay_new(&dist, "{distribution: normal}", NULL), GEPOLAB_EINPUT);
  CU_ASSERT_PTR_NULL(dist);
}

TEST(statistics_are_those_of_analysis) {
  static const double x[] = {1, 2, 3, 4, 5, 6, 7, 100}, y[] = {1, 3, 2, 4, 6, 5, 8, 7};
  gepolab_interval got;
  interval want;
  correlation rank;
  const size_t n = 8;
  CU_ASSERT_EQUAL(gepolab_iqm(x, 8, 3, &got, NULL), GEPOLAB_OK);
  CU_ASSERT_EQUAL(iqm_bootstrap(x, &n, 1, rng_stream_at(3, RNG_BOOTSTRAP, 0), &want, NULL), GL_OK);
  CU_ASSERT_EQUAL(got.value, want.value);
  CU_ASSERT_EQUAL(got.low, want.low);
  CU_ASSERT_EQUAL(got.high, want.high);
  CU_ASSERT_EQUAL(gepolab_spearman(x, y, 8, &got, NULL), GEPOLAB_OK);
  CU_ASSERT_EQUAL(spearman(x, y, 8, rng_stream_at(1, RNG_BOOTSTRAP, 0), &rank, NULL), GL_OK);
  CU_ASSERT_EQUAL(got.value, rank.fisher.value);
  CU_ASSERT_EQUAL(got.high, rank.fisher.high);
  CU_ASSERT_EQUAL(gepolab_iqm(x, -1, 3, &got, NULL), GEPOLAB_EINPUT);
}

TEST(a_survival_curve_is_handed_on) {
  static const double time[] = {3, 1, 2, 2};
  static const uint8_t observed[] = {0, 1, 1, 1};
  double at[4], survival[4], error[4];
  gepolab_curve curve = {sizeof curve, at, survival, error, -1};
  CU_ASSERT_EQUAL(gepolab_survival(time, observed, 4, &curve, NULL), GEPOLAB_OK);
  CU_ASSERT_EQUAL_FATAL(curve.n, 2);
  ASSERT_CLOSE(survival[0], 0.75, 1e-15);
  ASSERT_CLOSE(survival[1], 0.25, 1e-15);
  CU_ASSERT_EQUAL(at[1], 2);
  CU_ASSERT(error[1] > error[0] * 0.5);
  curve.size = 0;
  CU_ASSERT_EQUAL(gepolab_survival(time, observed, 4, &curve, NULL), GEPOLAB_EINPUT);
}

TEST(versions_are_told) {
  CU_ASSERT_STRING_EQUAL(gepolab_version(), GEPOLAB_VERSION);
  CU_ASSERT_EQUAL(gepolab_interface(), GEPOLAB_INTERFACE);
  CU_ASSERT_STRING_EQUAL(gepolab_metric_name(0), "version");
  CU_ASSERT_PTR_NULL(gepolab_metric_name(gepolab_metrics_count()));
  CU_ASSERT_PTR_NULL(gepolab_metric_meaning(gepolab_metrics_count()));
}
