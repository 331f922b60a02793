/* A distribution times a factor draws the distribution's numbers times the factor. */
#include "experiments/plan/plan.h"

#include "sim/delay.h"
#include "tests/support/core.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("experiments: scaled distributions");

static delay_dist *parse(const char *text) {
  char line[1024];
  cfg_doc *doc = NULL;
  delay_dist *dist = NULL;
  gl_error err = {0};
  snprintf(line, sizeof line, "distribution: %s", text);
  gl_status status = cfg_load_text(&doc, line, strlen(line), "distribution", &err);
  if (status == GL_OK)
    status = delay_parse(&dist, cfg_find(cfg_root(doc), "distribution"), "distribution", NAN, &err);
  if (status != GL_OK) fprintf(stderr, "%s: %s\n", text, err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  cfg_free(doc);
  return dist;
}

static void check(const char *text) {
  static const double factor = 2.5;
  char line[1024], *scaled = NULL;
  cfg_doc *doc = NULL;
  snprintf(line, sizeof line, "distribution: %s", text);
  ASSERT_OK(cfg_load_text(&doc, line, strlen(line), "distribution", &err));
  ASSERT_OK(plan_dist_times(&scaled, cfg_find(cfg_root(doc), "distribution"), factor, &err));
  delay_dist *before = parse(text), *after = parse(scaled);
  delay_source a = {.stream = rng_stream_at(7, RNG_TEST, 0)}, b = a;
  for (int i = 0; i < 200; ++i)
    ASSERT_CLOSE(delay_draw(after, &b), factor * delay_draw(before, &a), 1e-9);
  delay_free(before);
  delay_free(after);
  free(scaled);
  cfg_free(doc);
}

TEST(every_kind_of_dist_is_multiplied) {
  check("12");
  check("none");
  check("{value: 3}");
  check("{distribution: uniform, min: 1, max: 3}");
  check("{distribution: exponential, mean: 4, shift: 1}");
  check("{distribution: lognormal, mu: 2, sigma: 0.5, offset: 1, clamp: [2, 9]}");
  check("{distribution: lognormal, interval: [60, 1800], confidence: 0.99, clamp: true}");
  check("{distribution: weibull, shape: 0.7, scale: 10}");
  check("{distribution: weibull}");
  check("{distribution: gamma, shape: 3, scale: 2}");
  check("{distribution: pareto, shape: 2.5, scale: 3}");
  check("{distribution: gilbert_elliott, good: 1, bad: {distribution: exponential, mean: 5}, "
        "to_bad: 0.3}");
}

TEST(an_empirical_dist_reads_its_file_from_everywhere) {
  scratch s;
  char csv[SCRATCH_PATH_SIZE], text[400];
  scratch_make(&s);
  scratch_write(scratch_path(&s, "x.csv", csv), "a,b\n1,10\n2,20\n4,40\n");
  snprintf(text, sizeof text, "{distribution: empirical, file: \"%s\", column: b, scale: 0.5}",
           csv);
  check(text);
  scratch_remove(&s);
}
