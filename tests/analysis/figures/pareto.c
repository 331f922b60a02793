/* A Pareto front by hand: its data, kind by kind, the limit, and what is drawn of it. */
#include "analysis/figures/without_study.h"

#include "tests/support/cli.h"
#include "tests/support/figure_files.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("analysis: Pareto fronts");

static const char folder[] = "build/pareto_test";

static const pareto_point points[] = {
    {PARETO_CANDIDATE, 1, NAN, NAN, 100, NAN, NAN},
    {PARETO_CHOSEN, 3, 2.5, 3.5, 250, 240, 260},
    {PARETO_FRONT, 2, 1.5, 2.5, 200, 190, 210},
    {PARETO_FRONT, 3, 2.5, 3.5, 250, 240, 260},
};

TEST(points_stand_by_kind_with_their_intervals) {
  const pareto d = {"staleness", "responses per hour", points, 4, 3.25};
  const figure_request q = {.folder = folder, .script = figure_script};
  gl_error err = {0};
  const gl_status status = figure_of_pareto(&d, &q, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  char *data = cli_read("build/pareto_test/pareto.tsv");
  char *gp = cli_read("build/pareto_test/pareto.gp");
  CU_ASSERT_STRING_EQUAL(data, "# panel\tkind\tx\tx_low\tx_high\ty\ty_low\ty_high\n"
                               "0\tcandidate\t1\t\t\t100\t\t\n\n\n"
                               "0\tPareto front\t2\t1.5\t2.5\t200\t190\t210\n"
                               "0\tPareto front\t3\t2.5\t3.5\t250\t240\t260\n\n\n"
                               "0\trecommended\t3\t2.5\t3.5\t250\t240\t260\n\n\n");
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "limit = 3.25"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "'recommended'"));
}

TEST(without_a_limit_there_is_no_line_and_without_points_no_figure) {
  pareto d = {"staleness", "responses per hour", points, 1, INFINITY};
  const figure_request q = {.folder = folder, .script = figure_script, .gnuplot = "true"};
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(figure_of_pareto(&d, &q, &err), GL_OK);
  char *gp = cli_read("build/pareto_test/pareto.gp");
  CU_ASSERT_PTR_NULL(strstr(gp, "limit = 3.25"));
  CU_ASSERT_PTR_NULL(strstr(gp, "dashed: the limit"));
  d.n = 0;
  CU_ASSERT_EQUAL(figure_of_pareto(&d, &q, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no candidate to draw"));
}
