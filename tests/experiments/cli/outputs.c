/* An output is never written over what a command reads, nor over a study. */
#include "core/base/file.h"
#include "tests/support/cli_study.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("cli: outputs");

static const char one_run[] = "name: one\n"
                              "steps: 2\n"
                              "world: {kind: bandit, contexts: 4, arms: 3}\n"
                              "algorithm: grpo\n";

/* A study with one run, and its recipe. */
static void outputs_make(cli_study *s) {
  cli_study_make(s, "one.yaml", one_run);
  CU_ASSERT_TRUE_FATAL(CLI_GIVES(0, "run", s->recipe, "-o", s->db, "-q"));
}

/* A file that must stay as it is. */
typedef struct kept {
  const char *path;
  char *text;
} kept;

static kept keep(const char *path) {
  return (kept){path, cli_read(path)};
}

static void check_kept(kept *k) {
  char *now = cli_read(k->path);
  CU_ASSERT_STRING_EQUAL(now, k->text);
}

TEST(an_output_onto_the_input_is_refused) {
  cli_study s;
  outputs_make(&s);
  kept study = keep(s.db), recipe = keep(s.recipe);
  static const char says[] = "are one file, which would be overwritten; name another file";
  REFUSED(2, says, "export", s.db, "-o", s.db);
  REFUSED(2, says, "report", s.db, "-o", s.db);
  REFUSED(2, says, "plan", s.recipe, "-o", s.recipe);
  REFUSED(2, says, "run", s.recipe, "-o", s.recipe);
  REFUSED(2, says, "run", s.recipe, "--save", s.recipe);
  REFUSED(2, says, "sweep", s.recipe, "-o", s.recipe);
  REFUSED(2, says, "bias", s.recipe, "-o", s.recipe);
  REFUSED(2, says, "llm", "profile", s.recipe, "-o", s.recipe);
  REFUSED(2, says, "llm", "rl", s.recipe, "--study", s.recipe);
  REFUSED(2, says, "results", "define", s.recipe, "-o", s.recipe);
  check_kept(&study), check_kept(&recipe);
}

TEST(an_output_onto_a_study_is_refused) {
  cli_study s;
  outputs_make(&s);
  kept study = keep(s.db);
  static const char says[] = "which is a study; name another file";
  REFUSED(2, says, "run", s.recipe, "--save", s.db);
  REFUSED(2, says, "plan", "one_node", "-o", s.db);
  REFUSED(2, says, "results", "define", "/dev/null", "-o", s.db);
  REFUSED(2, says, "bench", "gpu", "--device", "cpu", "-o", s.db);
  check_kept(&study);
}

TEST(links_are_followed) {
  cli_study s;
  char soft[128], hard[128];
  outputs_make(&s);
  cli_path(soft, s.folder, "soft.csv");
  cli_path(hard, s.folder, "hard.csv");
  CU_ASSERT_EQUAL_FATAL(symlink(s.db, soft), 0);
  CU_ASSERT_EQUAL_FATAL(link(s.db, hard), 0);
  kept study = keep(s.db);
  REFUSED(2, "are one file", "export", s.db, "-o", soft);
  REFUSED(2, "are one file", "export", s.db, "-o", hard);
  REFUSED(2, "are one file", "export", soft, "-o", hard);
  check_kept(&study);
}

TEST(two_outputs_into_one_new_file_are_refused) {
  cli_study s;
  char again[192];
  cli_study_make(&s, "one.yaml", one_run);
  snprintf(again, sizeof again, "%s/./study.db", s.folder);
  cli_path(s.db, s.folder, "study.db");
  REFUSED(2, "are one file", "run", s.recipe, "-o", s.db, "--save", again);
  CU_ASSERT_NOT_EQUAL(access(s.db, F_OK), 0);
}

TEST(a_file_writer_does_not_replace_a_study) {
  cli_study s;
  file_writer w;
  gl_error err = {.status = GL_OK};
  outputs_make(&s);
  CU_ASSERT_EQUAL(file_begin(&w, s.db, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is a study, which would be lost; name another file"));
}

TEST(a_device_is_no_file_that_could_be_lost) {
  cli_study s;
  outputs_make(&s);
  CU_ASSERT(CLI_GIVES(0, "export", s.db, "-o", "/dev/stdout"));
  CU_ASSERT(!file_same("/dev/null", "/dev/null"));
}

/* A pipe that nobody reads or writes keeps who opens it waiting for ever. */
TEST(a_pipe_keeps_no_command_waiting) {
  cli_study s;
  char pipe[128], empirical[256];
  outputs_make(&s);
  CU_ASSERT_EQUAL_FATAL(mkfifo(cli_path(pipe, s.folder, "pipe"), 0666), 0);
  snprintf(empirical, sizeof empirical,
           "cluster={samplers: 1, delay: {distribution: empirical, file: %s}}", pipe);
  alarm(60);
  REFUSED(1, "nobody reads this pipe", "run", s.recipe, "--save", pipe, "-q");
  REFUSED(1, "nobody reads this pipe", "export", s.db, "-o", pipe);
  REFUSED(2, "is no regular file", "run", s.recipe, "-q", empirical);
  alarm(0);
}

static void put_file(char path[128], const char *folder, const char *name, const char *text) {
  cli_write(cli_path(path, folder, name), text, strlen(text));
}

/* What a recipe includes and what its fields name are inputs of the command, too. */
TEST(files_that_only_the_recipe_names_are_kept) {
  char folder[64], base[128], recipe[128], times[128];
  cli_scratch_make(folder);
  put_file(base, folder, "base.yaml", one_run);
  put_file(recipe, folder, "recipe.yaml",
           "include: base.yaml\ncluster: {samplers: 1, delay: {distribution: empirical, file: "
           "times.txt}}\n");
  put_file(times, folder, "times.txt", "1\n2\n3\n");
  kept one = keep(base), other = keep(times);
  static const char says[] = "are one file, which would be overwritten; name another file";
  REFUSED(2, says, "run", recipe, "-q", "--save", base);
  REFUSED(2, says, "run", recipe, "-q", "--save", times);
  REFUSED(2, says, "run", recipe, "-q", "-o", times);
  REFUSED(2, says, "sweep", recipe, "-q", "-o", base);
  REFUSED(2, says, "llm", "profile", recipe, "-q", "-o", times);
  check_kept(&one), check_kept(&other);
}

/* Figures have names of their own; of the folder that they go into only their files are written. */
TEST(a_figure_is_not_written_onto_what_it_is_drawn_from) {
  cli_study s;
  char tsv[128], txt[128], recipe[128];
  outputs_make(&s);
  put_file(tsv, s.folder, "staleness.tsv", "step\tstaleness\n1\t2\n2\t3\n");
  put_file(txt, s.folder, "staleness.txt", "1\n2\n3\n");
  put_file(recipe, s.folder, "recipe.yaml",
           "steps: 20\nworld: {kind: bandit, contexts: 4, arms: 3}\nalgorithm: grpo\n"
           "cluster: {samplers: 1, delay: {distribution: empirical, file: staleness.txt}}\n");
  kept one = keep(tsv), other = keep(txt);
  CU_ASSERT(CLI_GIVES(2, "plot", s.db, "-m", tsv, "-o", s.folder));
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", "steps=20", "--measured", tsv, "-f", s.folder));
  CU_ASSERT(CLI_GIVES(2, "sim", recipe, "-f", s.folder));
  check_kept(&one), check_kept(&other);
}
