/* Alarms that are clear by hand. */
#include "analysis/collapse_prediction.h"
#include "tests/support/suite.h"

#include <math.h>

SUITE("analysis: drift");

enum { N = 60 };
static const drift_rule rule = {.begin = 10, .window = 4, .factor = 2};

static void fill(double *value, double before, double after, size_t from) {
  for (size_t i = 0; i < N; ++i) value[i] = i < from ? before : after;
}

/* Means of four at a step from 1 to 4: 1.75, 2.5, …: the second update beyond the step. */
TEST(an_alarm_is_raised_when_the_mean_passes_the_factor) {
  double value[N];
  fill(value, 1, 4, 30);
  CU_ASSERT_EQUAL(drift_alarm(value, N, false, &rule), 31);
  CU_ASSERT_EQUAL(drift_alarm(value, N, true, &rule), N);
  fill(value, 1, 0, 30); /* 0.75, 0.5, 0.25 */
  CU_ASSERT_EQUAL(drift_alarm(value, N, true, &rule), 32);
  CU_ASSERT_EQUAL(drift_alarm(value, N, false, &rule), N);
  fill(value, 1, 2, 30); /* exactly the factor is not beyond it */
  CU_ASSERT_EQUAL(drift_alarm(value, N, false, &rule), N);
}

TEST(the_reference_is_the_median_of_the_beginning) {
  double value[N];
  fill(value, 1, 3, 30);
  value[3] = 1000; /* an outlier */
  ASSERT_CLOSE(drift_reference(value, N, &rule), 1, 0);
  value[0] = NAN;
  CU_ASSERT(isnan(drift_reference(value, N, &rule)));
  CU_ASSERT_EQUAL(drift_alarm(value, N, false, &rule), N);
  fill(value, -1, 4, 30);
  CU_ASSERT(isnan(drift_reference(value, N, &rule)));
  CU_ASSERT_EQUAL(drift_alarm(value, 5, false, &rule), 5);
}

TEST(windows_with_nan_raise_no_alarm) {
  double value[N];
  fill(value, 1, 4, 30);
  value[31] = NAN;
  CU_ASSERT_EQUAL(drift_alarm(value, N, false, &rule), 35);
}
