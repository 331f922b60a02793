/* Densities by hand: which curve stands in which panel, and what the figure says of the rest. */
#include "analysis/figures/without_study.h"
#include "tests/support/figure_files.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("analysis: densities");

static const char folder[] = "build/densities_test";

TEST(a_dist_is_a_line_of_its_panel_and_the_others_keep_their_places) {
  static const char *const panels[] = {"weight delay [s]", "jitter"};
  static const char *const lines[] = {"lognormal", "uniform 0 to 1"};
  static const char *const left_out[] = {"step time (always 27 s)"};
  static const char *const remarks[] = {"lognormal: 2 % are 60 s"};
  static const int logarithmic[] = {1, 0};
  static const double x[] = {1, 10, 100}, y[] = {0.25, 0.5, 0.125}, ends[] = {0, 1}, one[] = {1, 1};
  const density of[] = {{0, 0, x, y, 3}, {1, 1, ends, one, 2}};
  densities d = {panels, logarithmic, 2, lines, 2, of, 2, left_out, 1, remarks, 1};
  const figure_request q = {.folder = folder, .script = figure_script};
  gl_error err = {0};
  const gl_status status = figure_of_densities(&d, &q, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  char *data = figure_file(folder, "densities.tsv"), *gp = figure_file(folder, "densities.gp");
  CU_ASSERT_STRING_EQUAL(data, "# panel\tlaw\tx\tdensity\n"
                               "0\tlognormal\t1\t0.25\t\t\n0\tlognormal\t10\t0.5\t\t\n"
                               "0\tlognormal\t100\t0.125\t\t\n\n\n-\t\t\n\n\n-\t\t\n\n\n"
                               "1\tuniform 0 to 1\t0\t1\t\t\n1\tuniform 0 to 1\t1\t1\t\t\n\n\n");
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'weight delay [s]'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'density of ln x'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'not shown: step time (always 27 s)'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'lognormal: 2 % are 60 s'"));
  free(data), free(gp);
  d.n_panels = 0;
  CU_ASSERT_EQUAL(figure_of_densities(&d, &q, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no distribution of the cluster varies"));
}
