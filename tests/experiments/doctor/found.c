/* gepolab doctor: what is found is what is there, what is missing has a remedy, and the exit code
 * is that of what is needed. */
#include "core/base/json.h"
#include "experiments/doctor/doctor.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

SUITE("cli: doctor");

/* A folder with programs of our own, which stands alone on the PATH. */
typedef struct ground {
  char folder[64], *path_before;
} ground;

static void ground_make(ground *g) {
  cli_scratch_make(g->folder);
  g->path_before = strdup(getenv("PATH"));
  setenv("PATH", g->folder, 1);
}

static void ground_remove(ground *g) {
  setenv("PATH", g->path_before, 1);
  free(g->path_before);
}

static void put_program(const ground *g, const char *name, const char *text) {
  char path[128];
  cli_write(cli_path(path, g->folder, name), text, strlen(text));
  chmod(path, 0700);
}

static found_thing look(const char *name) {
  found_thing t;
  for (size_t i = 0; detect_one(&t, i); ++i)
    if (strcmp(t.name, name) == 0) return t;
  CU_FAIL_FATAL("no such thing");
  return t;
}

TEST(every_thing_says_what_it_is_for_and_how_to_get_it) {
  found_thing t;
  size_t n = 0, needed = 0;
  ground g;
  ground_make(&g); /* nothing is on the PATH: the look is quick */
  for (; detect_one(&t, n); ++n) {
    CU_ASSERT(t.name[0] != '\0' && t.use[0] != '\0' && t.remedy[0] != '\0');
    CU_ASSERT(t.present || t.detail[0] != '\0');
    needed += (size_t)t.needed;
  }
  CU_ASSERT(n >= 10);
  CU_ASSERT_EQUAL(needed, 1);
  ground_remove(&g);
}

TEST(gnuplot_is_found_with_its_version_only_if_it_can_draw) {
  ground g;
  ground_make(&g);
  found_thing t = look("gnuplot");
  CU_ASSERT(!t.present && t.needed);
  CU_ASSERT_STRING_EQUAL(t.detail, "gnuplot is not installed");
  put_program(&g, "gnuplot", "#!/bin/sh\necho gnuplot 5.4 patchlevel 4\n");
  t = look("gnuplot");
  CU_ASSERT(t.present);
  CU_ASSERT_STRING_EQUAL(t.detail, "gnuplot 5.4 patchlevel 4");
  put_program(&g, "gnuplot", "#!/bin/sh\necho gnuplot 5.4\n[ \"$1\" = --version ]\n");
  t = look("gnuplot");
  CU_ASSERT(!t.present);
  CU_ASSERT_STRING_EQUAL(t.detail, "gnuplot 5.4 without the terminals pdfcairo, pngcairo and svg");
  ground_remove(&g);
}

TEST(a_font_that_another_stands_in_for_is_missing) {
  ground g;
  ground_make(&g);
  put_program(&g, "fc-match", "#!/bin/sh\nprintf 'DejaVu Sans'\n");
  CU_ASSERT(look("font DejaVu Sans").present);
  put_program(&g, "fc-match", "#!/bin/sh\nprintf 'Noto Sans'\n");
  found_thing t = look("font DejaVu Sans");
  CU_ASSERT(!t.present);
  CU_ASSERT_STRING_EQUAL(t.detail, "Noto Sans would be used in its place");
  ground_remove(&g);
}

TEST(the_python_that_is_named_is_asked) {
  ground g;
  char path[128];
  ground_make(&g);
  put_program(&g, "snake", "#!/bin/sh\necho 9.9\n");
  setenv("GEPOLAB_PYTHON", cli_path(path, g.folder, "snake"), 1);
  found_thing package = look("Python package"), torch = look("PyTorch");
  CU_ASSERT(package.present && torch.present);
  CU_ASSERT_STRING_EQUAL(torch.detail, "9.9");
  setenv("GEPOLAB_PYTHON", "no-such-python", 1);
  package = look("Python package");
  CU_ASSERT(!package.present);
  CU_ASSERT_STRING_EQUAL(package.detail, "no-such-python is not installed");
  unsetenv("GEPOLAB_PYTHON");
  ground_remove(&g);
}

TEST(the_cache_folder_is_one_that_can_be_made) {
  ground g;
  char path[128];
  ground_make(&g);
  setenv("GEPOLAB_CACHE", cli_path(path, g.folder, "a/b/c"), 1);
  found_thing t = look("cache folder");
  CU_ASSERT(t.present);
  CU_ASSERT_STRING_EQUAL(t.detail, path);
  setenv("GEPOLAB_CACHE", "/proc/self/nothing", 1);
  t = look("cache folder");
  CU_ASSERT(!t.present);
  setenv("GEPOLAB_CACHE", "", 1);
  CU_ASSERT(!look("cache folder").present);
  unsetenv("GEPOLAB_CACHE");
  ground_remove(&g);
}

TEST(the_exit_code_is_that_of_what_is_needed) {
  ground g;
  ground_make(&g);
  cli_result r = CLI("doctor", "--no-test", "--json");
  cJSON *d = json_parsed(r.out);
  CU_ASSERT_EQUAL(r.code, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "is missing"));
  CU_ASSERT(cJSON_IsFalse(member_at(d, "well")));
  CU_ASSERT_PTR_NULL(member_at(d, "self_test"));
  put_program(&g, "gnuplot", "#!/bin/sh\necho gnuplot 5.4\n");
  r = CLI("doctor", "--no-test", "--json");
  d = json_parsed(r.out);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT(is_true_at(d, "well"));
  const cJSON *first = cJSON_GetArrayItem(member_at(d, "things"), 0);
  CU_ASSERT_STRING_EQUAL(text_at(first, "detail"), "gnuplot 5.4");
  r = CLI("doctor", "--no-test");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "found    gnuplot           gnuplot 5.4\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "missing  pdflatex          pdflatex is not installed\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "get it: install texlive"));
  ground_remove(&g);
}
