/* The figure over random directions: from stored results by hand, and from those that the documents
 * cite. */
#include "analysis/figures/without_study.h"

#include "tests/support/figure_files.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("analysis: figures of directions");

static const char folder[] = "build/directions_test";
static const char *const members[] = {"relative_bias", "mse_ratio", "scaled_mse_ratio"};

/* A row of stored results: quantity i has the median base + i, low and high beside it. The
 * reference's errors are 1. */
static void put_row(FILE *to, const char *name, const char *mark, double size, double kl,
                    double base, int is_reference) {
  char key[64];
  snprintf(key, sizeof key, "[%s,%g%s]", name, size, mark);
  fprintf(to, "%s.algorithm\t%s\n%s.directions\t10\n%s.group_size\t%g\n%s.kl_exact\t%g\n", key,
          name, key, key, size, key, kl);
  for (int i = 0; i < 3; i++) {
    const double mid = is_reference ? (i > 0) : base + i, off = is_reference ? 0 : 0.125;
    fprintf(to, "%s.%s.median\t%g\n%s.%s.low\t%g\n%s.%s.high\t%g\n", key, members[i], mid, key,
            members[i], mid - off, key, members[i], mid + off);
  }
}

/* A file with two KL of two estimators; keys are read in any order. */
static void put_world(const char *path, double base, const char *more) {
  FILE *to = fopen(path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  fputs("# recipe: by_hand\n# commit: 0\n# processor: none\n# command: none\n# date: 2026\n", to);
  for (double size = 2; size <= 8; size *= 4) {
    put_row(to, "gepo", "", size, 2, base, 0);
    put_row(to, "gepo", "#1", size, 0.5, base + 0.25, 0);
    put_row(to, "is", "", size, 2, 0, 1);
    put_row(to, "is", "#1", size, 0.5, 0, 1);
  }
  fputs(more, to);
  fclose(to);
}

static gl_status add_world(directions *d, const char *path, const char *title, gl_error *err) {
  stored kept;
  gl_status status = stored_read(&kept, path, err);
  if (status == GL_OK) {
    CU_ASSERT(directions_are_stored(&kept));
    status = directions_add_stored(d, &kept, title, err);
  }
  stored_fini(&kept);
  return status;
}

/* Each world has a column, at the larger group size, and KL ascends. */
TEST(worlds_have_columns_and_stored_numbers) {
  directions d = {.n = 0};
  const figure_request q = {.folder = folder, .script = figure_script, .gnuplot = "true"};
  put_world("build/directions_a.tsv", 0.5, "");
  put_world("build/directions_b.tsv", 0.625, "");
  ASSERT_OK(add_world(&d, "build/directions_a.tsv", "one", &err));
  ASSERT_OK(add_world(&d, "build/directions_b.tsv", "two", &err));
  ASSERT_OK(figure_of_directions(&d, &q, &err));
  directions_fini(&d);
  char *data = figure_file(folder, "directions.tsv"), *gp = figure_file(folder, "directions.gp");
  static const char start[] = "# panel\talgorithm\tkl\tmedian\tlow_10\thigh_90\n"
                              "0\tgepo\t0.5\t0.75\t0.625\t0.875\n"
                              "0\tgepo\t2\t0.5\t0.375\t0.625\n\n\n"
                              "0\tis\t0.5\t0\t0\t0\n"
                              "0\tis\t2\t0\t0\t0\n\n\n"
                              "1\tgepo\t0.5\t0.875\t0.75\t1\n"
                              "1\tgepo\t2\t0.625\t0.5\t0.75\n\n\n";
  CU_ASSERT_NSTRING_EQUAL(data, start, sizeof start - 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(data, "\n5\tgepo\t0.5\t2.875\t2.75\t3\n"));
  CU_ASSERT_PTR_NULL(strstr(data, "\n6\t"));
  CU_ASSERT(strstr(gp, "'one'") && strstr(gp, "'two'") && strstr(gp, "'MSE / is'"));
  CU_ASSERT(strstr(gp, "not shown: G = 2") && strstr(gp, "Medians over 10 random directions"));
  free(data), free(gp);
}

/* Of one world each group size has a column. */
TEST(a_world_by_itself_shows_its_group_sizes) {
  directions d = {.n = 0};
  const figure_request q = {.folder = folder, .script = figure_script, .gnuplot = "true"};
  put_world("build/directions_a.tsv", 0.5, "");
  ASSERT_OK(add_world(&d, "build/directions_a.tsv", "one", &err));
  ASSERT_OK(figure_of_directions(&d, &q, &err));
  directions_fini(&d);
  char *gp = figure_file(folder, "directions.gp");
  CU_ASSERT(strstr(gp, "'G = 2'") && strstr(gp, "'G = 8'") && !strstr(gp, "not shown"));
  free(gp);
}

static void refused_world(const char *more, const char *says) {
  directions d = {.n = 0};
  gl_error err = {0};
  put_world("build/directions_a.tsv", 0.5, more);
  CU_ASSERT_EQUAL(add_world(&d, "build/directions_a.tsv", "one", &err), GL_EINPUT);
  if (strstr(err.text, says) == NULL) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, says));
  directions_fini(&d);
}

TEST(rows_that_lack_a_member_are_refused) {
  refused_world("[snis,2].relative_bias.median\t1\n", "there is no [snis,2].algorithm");
  refused_world("[snis,2].relative_bias.median\t1\n[snis,2].algorithm\tsnis\n"
                "[snis,2].group_size\tmany\n",
                "[snis,2].group_size is no number: many");
}

/* Of the two worlds the second has its errors over another algorithm's. */
TEST(worlds_with_another_reference_are_refused) {
  directions d = {.n = 0};
  gl_error err = {0};
  put_world("build/directions_a.tsv", 0.5, "");
  FILE *to = fopen("build/directions_b.tsv", "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  fputs("# recipe: by_hand\n", to);
  put_row(to, "gepo", "", 2, 1, 0, 1);
  put_row(to, "is", "", 2, 1, 0.5, 0);
  fclose(to);
  CU_ASSERT_EQUAL(add_world(&d, "build/directions_a.tsv", "one", &err), GL_OK);
  CU_ASSERT_EQUAL(add_world(&d, "build/directions_b.tsv", "two", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "are not over those of is"));
  directions_fini(&d);
}
