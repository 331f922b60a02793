/* What a page says that it does not show, and that nothing is left behind by a failure. */
#include "analysis/plot/page.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char folder[] = "build/page_test";

static const char *script(const char *path) {
  return strcmp(path, "plots/none.gp") == 0 ? NULL : "# script\n";
}

static char *text_of(const char *path) {
  FILE *f = fopen(path, "r");
  char *text = calloc(1, 1 << 16);
  if (f == NULL || text == NULL) {
    free(text);
    return NULL;
  }
  text[fread(text, 1, (1 << 16) - 1, f)] = 0;
  fclose(f);
  return text;
}

static int exists(const char *path) {
  return access(path, F_OK) == 0;
}

static void a_long_note_is_cut_into_lines_and_says_how_much_did_not_fit(void) {
  const figure_request q = {.folder = folder, .script = script};
  gl_error err = {0};
  figure_page p;
  CU_ASSERT_EQUAL_FATAL(folder_make(folder, &err), GL_OK);
  page_init(&p, &q, "note", "some");
  CU_ASSERT_EQUAL_FATAL(page_open(&p, 0, "x", &err), GL_OK);
  for (int i = 0; i < 40; i++) CU_ASSERT_EQUAL(page_leave_out(&p, &err, "setting %d", i), GL_OK);
  CU_ASSERT_EQUAL(page_close(&p, GL_OK, &err), GL_OK);
  char *gp = text_of("build/page_test/note.gp");
  CU_ASSERT_PTR_NOT_NULL_FATAL(gp);
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "left_out_lines = 4\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "left_out[1] = 'not shown: setting 0; setting 1; "));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "... (40 in all)'"));
  free(gp);
}

static void variables_reach_the_script_with_their_marks_taken_literally(void) {
  const figure_request q = {.folder = folder, .script = script};
  const char *const names[] = {"gepo(clip=none)", "a_b'c"};
  const double numbers[] = {1, 2.5};
  gl_error err = {0};
  figure_page p;
  page_init(&p, &q, "it's", "some");
  CU_ASSERT_EQUAL_FATAL(page_open(&p, 0, "x\ty", &err), GL_OK);
  page_set(&p, "n", 2);
  page_set_texts(&p, "names", names, 2);
  page_set_numbers(&p, "numbers", numbers, 2);
  CU_ASSERT_EQUAL(page_close(&p, GL_OK, &err), GL_OK);
  char *gp = text_of("build/page_test/it's.gp"), *tsv = text_of("build/page_test/it's.tsv");
  CU_ASSERT_PTR_NOT_NULL_FATAL(gp);
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "name = 'it''s'\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "n = 2\narray names[2]\nnames[1] = 'gepo(clip=none)'\n"
                                    "names[2] = 'a\\_b''c'\narray numbers[2]\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "left_out_lines = 0\n"));
  CU_ASSERT_STRING_EQUAL(tsv, "# x\ty\n");
  free(gp);
  free(tsv);
}

static void a_failure_leaves_no_file(void) {
  const figure_request q = {.folder = folder, .script = script};
  gl_error err = {0};
  figure_page p;
  unlink("build/page_test/broken.tsv");
  page_init(&p, &q, "broken", "some");
  CU_ASSERT_EQUAL(page_close(&p, GL_EINPUT, &err), GL_EINPUT);
  page_init(&p, &q, "broken", "some");
  CU_ASSERT_EQUAL_FATAL(page_open(&p, 1, "x", &err), GL_OK);
  CU_ASSERT_EQUAL(page_close(&p, GL_EINPUT, &err), GL_EINPUT);
  CU_ASSERT(!exists("build/page_test/broken.tsv") && !exists("build/page_test/broken.gp"));
  page_init(&p, &q, "broken", "none");
  CU_ASSERT_EQUAL_FATAL(page_open(&p, 0, "x", &err), GL_OK);
  CU_ASSERT_EQUAL(page_close(&p, GL_OK, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "plots/none.gp is missing"));
  CU_ASSERT(!exists("build/page_test/broken.tsv"));
}

SUITE(plot_page, "analysis: pages of figures",
      TEST(a_long_note_is_cut_into_lines_and_says_how_much_did_not_fit),
      TEST(variables_reach_the_script_with_their_marks_taken_literally),
      TEST(a_failure_leaves_no_file));
