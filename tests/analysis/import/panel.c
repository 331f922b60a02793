/* Exports of Weights & Biases: series, names, damaged files. */
#include "analysis/import/formats.h"
#include "analysis/statistics.h"
#include "core/base/records.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("analysis: W&B exports");

static gl_status parse_bytes(series_table **t, const char *text, size_t size, gl_error *err) {
  return format_panel.series(t, &(import_file){.name = "f.csv", .text = text, .size = size}, err);
}

static gl_status parse(series_table **t, const char *text, gl_error *err) {
  return parse_bytes(t, text, strlen(text), err);
}

TEST(several_runs_with_missing_cells_are_read) {
  const char *forms[] = {
      "x,[t]A - s/m,[t]A - s/m__MIN,[t]A - s/m__MAX,[t]A - _step,b - c - "
      "s/m\n1,0.5,,,7,\n2,,,,8,-2e3\n",
      "\xEF\xBB\xBF\"x\",\"[t]A - s/m\",\"[t]A - s/m__MIN\",\"[t]A - s/m__MAX\",\"[t]A - _step\","
      "\"b - c - s/m\"\r\n\r\n\"1\",\"0.5\",\"\",\"\",\"7\",\"NaN\"\r\n2,,,,8,\"-2e3\""};
  for (size_t i = 0; i < 2; i++) {
    series_table *t = NULL;
    gl_error err = {0};
    CU_ASSERT_EQUAL_FATAL(parse(&t, forms[i], &err), GL_OK);
    CU_ASSERT_STRING_EQUAL(t->axis, "x");
    CU_ASSERT_EQUAL_FATAL(t->n_series, 2);
    CU_ASSERT_STRING_EQUAL(t->series[0].tag, "t");
    CU_ASSERT_STRING_EQUAL(t->series[0].run, "A");
    CU_ASSERT_STRING_EQUAL(t->series[0].metric, "s/m");
    CU_ASSERT_STRING_EQUAL(t->series[1].tag, "");
    CU_ASSERT_STRING_EQUAL(t->series[1].run, "b - c");
    CU_ASSERT(t->series[0].n == 1 && t->series[0].step[0] == 1 && t->series[0].value[0] == 0.5);
    CU_ASSERT(t->series[1].n == 1 && t->series[1].step[0] == 2 && t->series[1].value[0] == -2000);
    const char *const parts[] = {"no", "m"}, *const slashed[] = {"s/"};
    const series *found;
    CU_ASSERT_EQUAL(series_choose(&found, t, parts, 2, "A", "f.csv", &err), GL_OK);
    CU_ASSERT_PTR_EQUAL(found, &t->series[0]);
    CU_ASSERT_EQUAL(series_choose(&found, t, parts, 2, NULL, "f.csv", &err), GL_EINPUT);
    CU_ASSERT_EQUAL(series_choose(&found, t, slashed, 1, NULL, "f.csv", &err), GL_EINPUT);
    CU_ASSERT_PTR_NULL(found);
    series_table_free(t);
  }
}

TEST(wrong_files_are_refused_with_place_reason_and_remedy) {
  const struct {
    const char *text, *place;
  } cases[] = {
      {"", "f.csv:1:1: the file is empty"},
      {"\n\r\n", "f.csv:1:1: the file is empty"},
      {"x\n1\n", "f.csv:1:1: no column holds a metric"},
      {"x,A - _step\n1,2\n", "f.csv:1:1: no column holds a metric"},
      {"x,score\n1,2\n", "f.csv:1:3: this column is not headed"},
      {"x,A - m\n1\n", "f.csv:2:2: the line has fewer cells"},
      {"x,A - m\n\n1,2,3\n", "f.csv:3:5: the line has more cells"},
      {"x,A - m\n2025-06-01 10:00:00,2\n",
       "f.csv:2:1: '2025-06-01 10:00:00' is not a number; choose Step as"},
      {"x,A - m\n1,two\n", "f.csv:2:3: 'two' is not a number"},
      {"x,A - m\n1,0x10\n", "f.csv:2:3: '0x10' is not a number"},
      {"x,A - m\n1,1 2\n", "f.csv:2:3: '1 2' is not a number"},
      {"x,A - m\n,2\n", "f.csv:2:1: the line has no position"},
      {"x,A - m\n1,\"2\n", "f.csv:2:3: a quote opens here"},
      {"x,A - m\n1,\"2\"3\n", "f.csv:2:6: text follows a closing quote"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    series_table *t = NULL;
    gl_error err = {0};
    CU_ASSERT_EQUAL(parse(&t, cases[i].text, &err), GL_EINPUT);
    CU_ASSERT_PTR_NULL(t);
    CU_ASSERT(strncmp(err.text, cases[i].place, strlen(cases[i].place)) == 0);
    CU_ASSERT(strstr(err.text, "; ") != NULL);
  }
}

TEST(a_line_over_ten_mebibytes_is_refused) {
  size_t n = CSV_LINE_LIMIT + 2;
  char *text = malloc(n);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  memset(text, 'x', n);
  series_table *t;
  gl_error err = {0};
  CU_ASSERT_EQUAL(parse_bytes(&t, text, n, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "f.csv:1:"));
  free(text);
  CU_ASSERT_EQUAL(read_series(&t, "no/such/file.csv", NULL, NULL), GL_EIO);
}

static const char *paper_data(void) {
  const char *folder = getenv("GEPOLAB_PAPER_DATA");
  return folder ? folder : "../shared/paper-data";
}

TEST(the_papers_exports_are_read_and_give_its_collapse_of_gspo) {
  const struct {
    const char *file;
    size_t series;
  } files[] = {{"eval_math500_maxdelay64.csv", 4},
               {"eval_train_maxdelay64.csv", 3},
               {"iw_variance_online.csv", 3},
               {"kl_maxdiff32.csv", 1},
               {"staleness_maxdiff32.csv", 1}};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", paper_data(), files[i].file);
    FILE *f = fopen(path, "r");
    if (!f) SKIP("the paper's data are not here");
    fclose(f);
    series_table *t;
    ASSERT_OK(read_series(&t, path, NULL, &err));
    CU_ASSERT_EQUAL(t->n_series, files[i].series);
    if (i == 0) {
      CU_ASSERT_STRING_EQUAL(t->series[0].run, "GSPO");
      series_ends e = series_ends_of(t->series[0].value, t->series[0].n, false);
      ASSERT_CLOSE(e.best, 0.7822420634920635, 0);
      ASSERT_CLOSE(e.last, 0.5555555555555556, 0);
    }
    if (i == 4) CU_ASSERT(t->series[0].n == 1295);
    series_table_free(t);
  }
}
