/* A file of algorithms and presets is read by every command that takes them, and what was computed
 * with it means the same without it. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("cli: own algorithms");

static const char rows[] = "algorithms:\n  mine: {base: gepo, clip: none}\n";
static const char group[] = "{\"rewards\": [1, 0], \"logp\": [[-1.0, -0.5], [-2.0]], "
                            "\"logq\": [[-1.2, -0.4], [-1.8]]}";
/* The fields that the name stands for, as the command line states them. */
static const char fields[] = "{base: gepo, clip: none, name: mine}";

typedef struct files {
  char folder[64], rows[128], group[128], log[128], study[128], other[128];
} files;

static void files_init(files *f) {
  cli_scratch_make(f->folder);
  cli_write(cli_path(f->rows, f->folder, "rows.yaml"), rows, sizeof rows - 1);
  cli_write(cli_path(f->group, f->folder, "group.json"), group, sizeof group - 1);
  cli_write(cli_path(f->log, f->folder, "log.jsonl"), group, sizeof group - 1);
  cli_path(f->study, f->folder, "study.db");
  cli_path(f->other, f->folder, "other.db");
}

/* Both command lines print the same. */
static void check_same(const char *const *a, const char *const *b) {
  cli_result one = cli_run(NULL, a), other = cli_run(NULL, b);
  CU_ASSERT_EQUAL(one.code, 0);
  CU_ASSERT_EQUAL(other.code, 0);
  CU_ASSERT_STRING_EQUAL(one.out, other.out);
  if (one.code != 0) fprintf(stderr, "%s", one.err);
}
#define SAME(a, b)                                                                                 \
  check_same((const char *const[]){UNPACK a, NULL}, (const char *const[]){UNPACK b, NULL})
#define UNPACK(...) __VA_ARGS__

TEST(commands_take_the_name_for_the_fields) {
  files f;
  files_init(&f);
  SAME(("policy", "--algorithms", f.rows, "-a", "mine", f.group),
       ("policy", "-a", fields, f.group));
  SAME(("whatif", "--algorithms", f.rows, "-a", "mine", f.log), ("whatif", "-a", fields, f.log));
  SAME(("lab", "bias", "four_arms", "--algorithms", f.rows, "algorithms=[mine, is]"),
       ("lab", "bias", "four_arms", "algorithms=[{base: gepo, clip: none, name: mine}, is]"));
  cli_result r = CLI("whatif", "--algorithms", f.rows, f.log);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "\nmine "));
  r = CLI("list", "algorithms", "mine", "--algorithms", f.rows);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "rows.yaml"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "clip: none"));
  REFUSED(2, "no algorithm 'mine'", "policy", "-a", "mine", f.group);
  REFUSED(2, "there is no algorithm 'min'", "list", "algorithms", "min");
}

/* Exports hold no times, so that equal runs export equal bytes, the hash of the recipe included. */
TEST(a_study_keeps_the_fields) {
  files f;
  files_init(&f);
  CU_ASSERT(CLI_GIVES(0, "run", "quickstart", "-q", "steps=3", "--algorithms", f.rows,
                      "algorithm=mine", "-o", f.study));
  CU_ASSERT(CLI_GIVES(0, "run", "quickstart", "-q", "steps=3",
                      "algorithm={base: gepo, clip: none, name: mine}", "-o", f.other));
  SAME(("study", "export", f.study), ("study", "export", f.other));
  cli_result r = CLI("study", "export", f.study);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "mine"));
}

/* --- presets of clusters --- */

static const char both[] = "algorithms:\n  mine: {base: gepo, clip: none}\n"
                           "presets:\n  my_site: {base: areal, samplers: 2, delay: 20s}\n";
#define SITE "{preset: areal, samplers: 2, delay: 20}"

TEST(presets_are_taken_for_their_fields) {
  files f;
  files_init(&f);
  cli_write(f.rows, both, sizeof both - 1);
  SAME(("sim", "delay_sweep", "--presets", f.rows, "sweep=null", "cluster={preset: my_site}"),
       ("sim", "delay_sweep", "sweep=null", "cluster=" SITE));
  SAME(("sim", "delay_sweep", "--presets", f.rows, "sweep=null",
        "cluster={preset: my_site, samplers: 3}"),
       ("sim", "delay_sweep", "sweep=null", "cluster={preset: areal, samplers: 3, delay: 20}"));
  cli_result r = CLI("list", "presets", "my_site", "--presets", f.rows);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "my_site: your own, a change of areal"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "samplers: 2, delay: 20\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "rows.yaml"));
  r = CLI("list", "presets", "--since", "2026-01", "--presets", f.rows);
  CU_ASSERT_PTR_NULL(strstr(r.out, "my_site"));
  r = CLI("list", "presets", "--help");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "--presets PRESETS.yaml"));
  REFUSED(2, "of your own is defined in a file: --presets FILE", "sim", "delay_sweep",
          "cluster={preset: my_site}");
  REFUSED(2, "did you mean 'my_site'?", "sim", "delay_sweep", "--presets", f.rows,
          "cluster={preset: my_siet}");
  REFUSED(2, "did you mean 'areal'?", "sim", "delay_sweep", "--presets", f.rows,
          "cluster={preset: areall}");
  REFUSED(2, "did you mean 'mine'?", "run", "quickstart", "--algorithms", f.rows, "algorithm=mien");
  REFUSED(2, "policy has no option --presets", "policy", "--presets", f.rows, f.group);
}

/* Also by the environment, and by a recipe that includes the file. */
TEST(a_study_keeps_a_preset_s_fields_and_goes_on_without_the_file) {
  files f;
  char recipe[128];
  files_init(&f);
  cli_write(f.rows, both, sizeof both - 1);
  const char text[] = "include: [quickstart, rows.yaml]\nname: both\nsteps: 3\n";
  cli_write(cli_path(recipe, f.folder, "both.yaml"), text, sizeof text - 1);
  CU_ASSERT(CLI_GIVES(0, "sweep", recipe, "-q", "algorithm=mine", "sweep.seed=[1]",
                      "sweep.cluster=[{preset: my_site}, {preset: sync}]", "-o", f.study));
  setenv("GEPOLAB_PRESETS", f.rows, 1);
  CU_ASSERT(CLI_GIVES(0, "sweep", "quickstart", "-q", "name=both", "steps=3", "algorithm=mine",
                      "sweep.seed=[1]", "sweep.cluster=[{preset: my_site}, {preset: sync}]", "-o",
                      f.other));
  unsetenv("GEPOLAB_PRESETS");
  SAME(("study", "export", f.study), ("study", "export", f.other));
  CU_ASSERT_EQUAL(remove(f.rows), 0);
  cli_result r = CLI("sweep", "quickstart", "-q", "name=both", "steps=3",
                     "algorithm={base: gepo, clip: none, name: mine}", "sweep.seed=[1]",
                     "sweep.cluster=[" SITE ", {preset: sync}]", "-o", f.study);
  CU_ASSERT_EQUAL(r.code, 0);
  r = CLI("study", "status", f.study);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "2 of 2 cells, 0 missing"));
  SAME(("study", "export", f.study), ("study", "export", f.other));
  r = CLI("study", "export", f.study);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "areal"));
  CU_ASSERT_PTR_NULL(strstr(r.out, "my_site"));
}
