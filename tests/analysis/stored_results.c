/* Stored results: keys of documents, files, formats, and numbers in documents. */
#include "analysis/stored_results.h"

#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("analysis: stored results");

static const char folder[] = "build", path[] = "build/stored_test.tsv";
static const stored_head head = {"delay_sweep", "abc", "a processor", "gepolab x\ny", "2026-11-22"};
static const char document[] =
    "{\"n\": 3, \"ok\": true, \"cells\": [{\"algorithm\": \"gepo\", \"axes\": "
    "{\"cluster.max_delay\": "
    "1800}, \"last\": {\"iqm\": 0.74, \"low\": null}, \"list\": [1, 2]}, {\"algorithm\": \"gepo\", "
    "\"axes\": {\"cluster.max_delay\": 0}, \"last\": {\"iqm\": 0.5}}], \"points\": "
    "[{\"algorithm\": "
    "\"is\", \"x\": 1}, {\"algorithm\": \"is\", \"why\": \"so\", \"x\": 2}], \"bare\": [{\"x\": "
    "1}, {\"x\": 2}], \"at\": [{\"algorithm\": \"is\", \"update\": 4, \"staleness\": 1}, "
    "{\"algorithm\": \"is\", \"update\": 8, \"staleness\": 1, \"curve\": [{\"update\": 64}]}]}";

static void write_stored(void) {
  cJSON *json = cJSON_Parse(document);
  FILE *to = fopen(path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  ASSERT_OK(stored_write(to, &head, json, NULL, NULL, &err));
  fclose(to);
  cJSON_Delete(json);
}

TEST(elements_are_known_by_what_tells_them_apart) {
  stored s;
  write_stored();
  ASSERT_OK(stored_read(&s, path, &err));
  CU_ASSERT_STRING_EQUAL(s.name, "stored_test");
  const char *const want[][2] = {{"n", "3"},
                                 {"ok", "true"},
                                 {"cells[gepo,1800].last.iqm", "0.74"},
                                 {"cells[gepo,0].last.iqm", "0.5"},
                                 {"points[is].x", "1"},
                                 {"points[is#1].x", "2"},
                                 {"bare[1].x", "2"},
                                 {"at[is,4,1].update", "4"},
                                 {"at[is,8,1].update", "8"},
                                 {"at[is,8,1].curve[0].update", "64"}};
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    const char *value = stored_value(&s, want[i][0]);
    CU_ASSERT_PTR_NOT_NULL_FATAL(value);
    CU_ASSERT_STRING_EQUAL(value, want[i][1]);
  }
  CU_ASSERT_PTR_NULL(stored_value(&s, "cells[gepo,1800].last.low"));
  CU_ASSERT_PTR_NULL(stored_value(&s, "cells[grpo,0].last.iqm"));
  stored_fini(&s);
  unlink(path);
}

static int only_points(void *self, const char *key) {
  (void)self;
  return strncmp(key, "points", 6) == 0;
}

TEST(a_head_says_how_numbers_came_about_on_lines_of_its_own) {
  char *text = NULL;
  size_t size = 0;
  gl_error err = {0};
  cJSON *json = cJSON_Parse(document);
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_EQUAL(stored_write(to, &head, json, only_points, NULL, &err), GL_OK);
  fclose(to);
  CU_ASSERT_STRING_EQUAL(text,
                         "# recipe: delay_sweep\n# commit: abc\n# processor: a processor\n"
                         "# command: gepolab x y\n# date: 2026-11-22\n"
                         "points[is#1].algorithm\tis\npoints[is#1].why\tso\npoints[is#1].x\t2\n"
                         "points[is].algorithm\tis\npoints[is].x\t1\n");
  free(text);
  cJSON_Delete(json);
  json = cJSON_Parse("{\"a\": [1, 2]}");
  to = open_memstream(&text, &size);
  CU_ASSERT_EQUAL(stored_write(to, &head, json, NULL, NULL, &err), GL_EINPUT);
  fclose(to);
  free(text);
  cJSON_Delete(json);
}

TEST(numbers_are_written_as_formats_say) {
  const struct {
    const char *value, *format, *text;
  } cases[] = {{"0.74", ".3f", "0.740"},
               {"0.74", ".0p", "74"},
               {"1e-05", ".2g", "1e-05"},
               {"word", "s", "word"},
               {"word", ".3f", NULL},
               {"1", ".3d", NULL},
               {"1", "%n", NULL},
               {"1", ".33f", NULL},
               {"26.53776", ".3g", "26.5"},
               {"0.9375", "16n", "15"},
               {"0.5833333333333334", "24n", "14"},
               {"0", "8n", "0"},
               {"0.9375", "24n", NULL},
               {"1.5", "2n", NULL},
               {"0.5", "0n", NULL},
               {"0.5", "2m", NULL},
               {"word", "2n", NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *text = NULL;
    gl_error err = {0};
    gl_status status = stored_format(cases[i].value, cases[i].format, &text, &err);
    CU_ASSERT_EQUAL(status, cases[i].text ? GL_OK : GL_EINPUT);
    if (text) CU_ASSERT_STRING_EQUAL(text, cases[i].text);
    free(text);
  }
}

static gl_status filled(const char *text, const marker_source *from, char **out, gl_error *err) {
  size_t n;
  *err = (gl_error){0};
  return markers_fill(out, text, "doc.md", from, &n, err);
}

TEST(numbers_of_a_template_are_those_of_the_results) {
  static const char *const later[] = {"later"};
  const marker_source from = {folder, NULL, 0}, lenient = {folder, later, 1};
  char *out = NULL;
  gl_error err;
  write_stored();
  CU_ASSERT_EQUAL(filled("a {{stored_test cells[gepo,1800].last.iqm .2f}} b{{stored_test n s}}",
                         &from, &out, &err),
                  GL_OK);
  CU_ASSERT_STRING_EQUAL(out, "a 0.74 b3");
  free(out);
  const struct {
    const char *text, *says;
  } wrong[] = {{"\n{{stored_test cells[x].y .2f}}", "doc.md:2: the stored results"},
               {"{{stored_test n}}", "doc.md:1: a number is"},
               {"{{stored_test n s", "doc.md:1: a number is"},
               {"{{stored_test n s {{stored_test n s}}", "a number is"},
               {"{{stored_test n .9x}}", "doc.md:1: '.9x' is no format"},
               {"{{../stored_test n s}}", "is no name of stored results"},
               {"{{later n s}}", "later.tsv cannot be read"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    CU_ASSERT_NOT_EQUAL(filled(wrong[i].text, &from, &out, &err), GL_OK);
    CU_ASSERT_PTR_NULL(out);
    if (!strstr(err.text, wrong[i].says)) fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wrong[i].says));
  }
  CU_ASSERT_EQUAL(filled("{{later n s}}", &lenient, &out, &err), GL_OK);
  CU_ASSERT_STRING_EQUAL(out, "–");
  free(out);
  unlink(path);
}

TEST(every_number_of_a_latex_file_gets_a_definition) {
  static const char *const later[] = {"later"};
  const marker_source from = {folder, later, 1};
  char *text = NULL;
  size_t size = 0;
  gl_error err = {0};
  write_stored();
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_EQUAL(markers_define(to, "x \\result{stored_test}{n}{.1f} \\result{later}{a}{s}",
                                 "a.tex", &from, &err),
                  GL_OK);
  CU_ASSERT_EQUAL(markers_define(to, "\n\\result{stored_test}{n}\n", "a.tex", &from, &err),
                  GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "a.tex:2: a number is"));
  fclose(to);
  CU_ASSERT_STRING_EQUAL(text, "\\expandafter\\def\\csname gl@stored_test@n@.1f\\endcsname{3.0}\n"
                               "\\expandafter\\def\\csname gl@later@a@s\\endcsname{--}\n");
  free(text);
  unlink(path);
}
