/* The Kaplan-Meier estimate: the published example, and its edges. */
#include "analysis/statistics.h"
#include "tests/support/suite.h"

/* Weeks of remission of 21 patients on 6-mercaptopurine (Freireich et al. 1963, Blood 21:699),
 * the example of most textbooks, with the estimate and Greenwood's standard errors as they give
 * them (Klein and Moeschberger, Survival Analysis, table 4.1). */
static void the_textbook_example_comes_out(void) {
  static const double time[] = {6,  6,  6,  6,  7,  9,  10, 10, 11, 13, 16,
                                17, 19, 20, 22, 23, 25, 32, 32, 34, 35};
  static const uint8_t fell[] = {1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0};
  static const double at[] = {6, 7, 10, 13, 16, 22, 23};
  static const double survival[] = {0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448};
  static const double error[] = {0.076, 0.087, 0.096, 0.107, 0.114, 0.128, 0.135};
  survival_step curve[21];
  size_t steps = 0;
  CU_ASSERT_EQUAL_FATAL(survival_curve(time, fell, 21, curve, &steps, NULL), GL_OK);
  CU_ASSERT_EQUAL_FATAL(steps, 7);
  for (size_t k = 0; k < steps; ++k) {
    CU_ASSERT_EQUAL(curve[k].time, at[k]);
    CU_ASSERT(fabs(curve[k].survival - survival[k]) < 6e-4);
    CU_ASSERT(fabs(curve[k].error - error[k]) < 6e-4);
  }
  CU_ASSERT_EQUAL(curve[0].at_risk, 21);
  CU_ASSERT_EQUAL(curve[0].falls, 3);
  CU_ASSERT_EQUAL(curve[6].at_risk, 6);
}

static void all_fallen_leaves_nothing_and_none_fallen_no_step(void) {
  static const double time[] = {2, 1, 2};
  static const uint8_t all[] = {1, 1, 1}, none[] = {0, 0, 0};
  survival_step curve[3];
  size_t steps = 9;
  CU_ASSERT_EQUAL(survival_curve(time, all, 3, curve, &steps, NULL), GL_OK);
  CU_ASSERT_EQUAL_FATAL(steps, 2);
  CU_ASSERT_EQUAL(curve[1].survival, 0);
  CU_ASSERT_EQUAL(curve[1].error, 0);
  CU_ASSERT_EQUAL(survival_curve(time, none, 3, curve, &steps, NULL), GL_OK);
  CU_ASSERT_EQUAL(steps, 0);
  CU_ASSERT_EQUAL(survival_curve(time, none, 0, curve, &steps, NULL), GL_OK);
  CU_ASSERT_EQUAL(steps, 0);
}

static void times_that_are_none_are_refused(void) {
  static const double time[] = {1, -1}, nothing[] = {NAN};
  static const uint8_t fell[] = {1, 1};
  survival_step curve[2];
  size_t steps;
  CU_ASSERT_EQUAL(survival_curve(time, fell, 2, curve, &steps, NULL), GL_EINPUT);
  CU_ASSERT_EQUAL(survival_curve(nothing, fell, 1, curve, &steps, NULL), GL_EINPUT);
}

SUITE(analysis_survival, "analysis: survival", TEST(the_textbook_example_comes_out),
      TEST(all_fallen_leaves_nothing_and_none_fallen_no_step),
      TEST(times_that_are_none_are_refused));
