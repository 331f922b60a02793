/* Timelines by hand: rows, lanes, marks, and what is cut away. */
#include "analysis/figures/without_study.h"
#include "tests/support/figure_files.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("analysis: timelines");

static const char folder[] = "build/timeline_test";

static const char *const rows[] = {"learner", "queue", "empty"};
/* Two batches wait at once; the third takes the lane that is free again and is dropped. */
static const timeline_bar bars[] = {
    {0, TIMELINE_TRAINING, TIMELINE_TRAINING, 10, 40}, {1, TIMELINE_QUEUED, TIMELINE_DROPPED, 6, 9},
    {1, TIMELINE_QUEUED, TIMELINE_QUEUED, 2, 8},       {1, TIMELINE_QUEUED, TIMELINE_QUEUED, -5, 6},
    {2, TIMELINE_DOWN, TIMELINE_DOWN, 20, 30}, /* after what is shown */
};

TEST(bars_lie_in_their_rows_and_lanes_and_are_cut_at_the_ends) {
  const timeline t = {rows, 3, bars, sizeof bars / sizeof *bars, 0, 20, "7 of 8 samplers"};
  const figure_request q = {.folder = folder, .script = figure_script};
  gl_error err = {0};
  const gl_status status = figure_of_timeline(&t, &q, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  char *data = figure_file(folder, "timeline.tsv"), *gp = figure_file(folder, "timeline.gp");
  /* Half a row of 0.72 for each of two lanes, of which 0.88 is filled. */
  CU_ASSERT_STRING_EQUAL(data,
                         "# panel\trow\tkind\tfrom or at\tto\tbottom\ttop\n"
                         "0\tqueue\tbatch in the queue\t0\t6\t-1.9568\t-1.6400000000000001\n"
                         "0\tqueue\tbatch in the queue\t2\t8\t-2.3167999999999997\t-2\n"
                         "0\tqueue\tbatch in the queue\t6\t9\t-1.9568\t-1.6400000000000001\n\n\n"
                         "0\tlearner\ttraining\t10\t20\t-1.3599999999999999\t-0.64\n\n\n"
                         "0\tqueue\tbatch dropped\t9\t-1.82\n\n\n");
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'simulated seconds'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'not shown: 7 of 8 samplers'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "kinds = 3"));
  CU_ASSERT_PTR_NULL(strstr(gp, "'empty'"));
  CU_ASSERT_PTR_NULL(strstr(gp, "'down'"));
  free(data), free(gp);
}

TEST(an_hour_is_an_hour_and_nothing_is_refused) {
  const timeline_bar one = {0, TIMELINE_EVALUATION, TIMELINE_EVALUATION, 3600, 7200};
  timeline t = {rows, 1, &one, 1, 0, 36000, ""};
  const figure_request q = {.folder = folder, .script = figure_script, .gnuplot = "true"};
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(figure_of_timeline(&t, &q, &err), GL_OK);
  char *data = figure_file(folder, "timeline.tsv"), *gp = figure_file(folder, "timeline.gp");
  CU_ASSERT_PTR_NOT_NULL(strstr(data, "\tevaluation, grading or call\t1\t2\t"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'simulated hours'"));
  free(data), free(gp);
  t.to_s = 3600;
  CU_ASSERT_EQUAL(figure_of_timeline(&t, &q, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "nothing takes time"));
}
