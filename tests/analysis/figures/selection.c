/* Shares and gradients by hand: the data of both panels, and what is left out. */
#include "analysis/figures/without_study.h"

#include "tests/support/cli.h"
#include "tests/support/figure_files.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("analysis: figures of selection");

static const char folder[] = "build/selection_test";

/* No group's longest response has two tokens; the second policy's gradient is 0. */
TEST(shares_are_in_per_cent_and_gradients_are_points) {
  const double some[] = {1, 0.75, NAN, 0.25}, all[] = {1, 1, NAN, 1};
  const selection_policy policies[] = {{"discard", some, 0.875, 1.5}, {"wait", all, NAN, NAN}};
  const char *const left_out[] = {"downweight, by hand"};
  const selection_policies d = {policies, 2, 3, left_out, 1};
  const figure_request q = {.folder = folder, .script = figure_script};
  gl_error err = {0};
  const gl_status status = figure_of_selection(&d, &q, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  char *data = cli_read("build/selection_test/selection.tsv");
  char *gp = cli_read("build/selection_test/selection.gp");
  CU_ASSERT_STRING_EQUAL(data, "# panel\tpolicy\tx\tvalue\tlow\thigh\n"
                               "0\tall sampled\t1\t100\t\t\n"
                               "0\tall sampled\t2\t100\t\t\n"
                               "0\tall sampled\t3\t100\t\t\n\n\n"
                               "0\tdiscard\t1\t75\t\t\n"
                               "0\tdiscard\t3\t25\t\t\n\n\n"
                               "0\twait\t1\t100\t\t\n"
                               "0\twait\t3\t100\t\t\n\n\n"
                               "1\tall sampled\t1\t1\t\t\n\n\n"
                               "1\tdiscard\t1.5\t0.875\t\t\n\n\n"
                               "-\t\t\n\n\n");
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "'discard'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "'wait'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "downweight, by hand"));
}

TEST(without_a_policy_there_is_no_figure) {
  const selection_policies d = {.n = 0, .max_length = 3};
  const figure_request q = {.folder = folder, .script = figure_script, .gnuplot = "true"};
  gl_error err = {0};
  CU_ASSERT_EQUAL(figure_of_selection(&d, &q, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no policy for stale data to draw"));
}
