/* Every command that reads studies, on those of older formats in tests/golden/. */
#include "core/base/json_tree.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OLDEST = 1, NEWEST = 2 };

typedef struct ground {
  char folder[64], study[128];
} ground;

/* A copy that cannot be written. */
static void ground_make(ground *g, int format) {
  char line[512];
  cli_scratch_make(g->folder);
  cli_path(g->study, g->folder, "study.db");
  snprintf(line, sizeof line, "cp tests/golden/study_format%d.db %s && chmod 400 %s", format,
           g->study, g->study);
  CU_ASSERT_EQUAL_FATAL(system(line), 0);
}

static int is_untouched(const ground *g, int format) {
  char line[512];
  snprintf(line, sizeof line, "cmp -s tests/golden/study_format%d.db %s", format, g->study);
  return system(line) == 0;
}

/* Both files hold the same sweep, so that both versions' runs are analysed to the same table. */
static void both_are_analysed_and_drawn_alike(void) {
  char *table[NEWEST + 1] = {NULL}, *figure[NEWEST + 1] = {NULL};
  for (int format = OLDEST; format <= NEWEST; ++format) {
    ground g;
    char figures[128], path[160];
    ground_make(&g, format);
    cli_result r = CLI("analyze", g.study);
    CU_ASSERT_EQUAL(r.code, 0);
    table[format] = strdup(r.out);
    cli_result_fini(&r);
    CU_ASSERT(CLI_GIVES(0, "plot", g.study, "-o", cli_path(figures, g.folder, "figures")));
    snprintf(path, sizeof path, "%s/best_last.tsv", figures);
    figure[format] = cli_read(path);
    CU_ASSERT(is_untouched(&g, format));
    cli_scratch_remove(g.folder);
  }
  CU_ASSERT_PTR_NOT_NULL(strstr(table[OLDEST], "gepo "));
  CU_ASSERT(strlen(figure[OLDEST]) > 20);
  CU_ASSERT_STRING_EQUAL(table[OLDEST], table[NEWEST]);
  CU_ASSERT_STRING_EQUAL(figure[OLDEST], figure[NEWEST]);
  for (int format = OLDEST; format <= NEWEST; ++format) free(table[format]), free(figure[format]);
}

static void info_and_check_say_what_nothing_vouches_for(void) {
  for (int format = OLDEST; format <= NEWEST; ++format) {
    ground g;
    ground_make(&g, format);
    cli_result words = CLI("info", g.study), json = CLI("info", g.study, "--json"),
               check = CLI("check", g.study);
    CU_ASSERT(words.code == 0 && json.code == 0 && check.code == 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(words.out, "does not say which commit, command and machine"));
    CU_ASSERT_PTR_NOT_NULL(strstr(words.out, "nothing more is known of how they came about"));
    CU_ASSERT_PTR_NOT_NULL(strstr(check.out, "nothing vouches"));
    cJSON *d = json_tree_of(json.out);
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(d, "format");
    CU_ASSERT(n != NULL && n->valueint == format);
    cJSON_Delete(d);
    cli_result_fini(&words), cli_result_fini(&json), cli_result_fini(&check);
    CU_ASSERT(is_untouched(&g, format));
    cli_scratch_remove(g.folder);
  }
}

/* Keys of format 2 are those of today, so that a sweep goes on where it was. */
static void a_sweep_of_format_2_is_gone_on_with(void) {
  ground g;
  ground_make(&g, 2);
  cli_result before = CLI("export", g.study, "-t", "steps");
  CU_ASSERT_EQUAL(chmod(g.study, 0600), 0);
  cli_result r = CLI("sweep", "tests/golden/study_formats.yaml", "-o", g.study, "-q");
  cli_result after = CLI("export", g.study, "-t", "steps"), how = CLI("status", g.study);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "0 done, 0 diverged, 0 failed, 8 already finished"));
  CU_ASSERT_STRING_EQUAL(before.out, after.out);
  CU_ASSERT_PTR_NOT_NULL(strstr(how.out, "8 of 8 cells, 0 missing"));
  CU_ASSERT(CLI_GIVES(0, "check", g.study));
  cli_result_fini(&before), cli_result_fini(&r), cli_result_fini(&after), cli_result_fini(&how);
  cli_scratch_remove(g.folder);
}

static void older_studies_are_merged_by_the_command(void) {
  for (int format = OLDEST; format <= NEWEST; ++format) {
    ground g;
    char joined[128];
    ground_make(&g, format);
    CU_ASSERT(CLI_GIVES(0, "merge", cli_path(joined, g.folder, "joined.db"), g.study));
    cli_result one = CLI("export", g.study, "-t", "evals"),
               two = CLI("export", joined, "-t", "evals");
    CU_ASSERT(one.out_size > 100);
    CU_ASSERT_STRING_EQUAL(one.out, two.out);
    cli_result_fini(&one), cli_result_fini(&two);
    CU_ASSERT(is_untouched(&g, format));
    cli_scratch_remove(g.folder);
  }
}

SUITE(cli_older_formats, "cli: studies of older formats", TEST(both_are_analysed_and_drawn_alike),
      TEST(info_and_check_say_what_nothing_vouches_for), TEST(a_sweep_of_format_2_is_gone_on_with),
      TEST(older_studies_are_merged_by_the_command));
