/* Exports: whole files or the old ones, readers that stop, names that mean something elsewhere. */
#include "analysis/export.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("cli: export");

/* A name for every reader to stumble on: a terminal, a shell, gnuplot, LaTeX, Markdown, CSV. */
static const char evil[] =
    "100%d a\"b'\n\033[31m\t`touch ran`|$(touch ran)\\{/Symbol a}_^<b>,\xc2\x9b\x7f";
/* What a person is shown of it. */
static const char evil_shown[] =
    "100%d a\"b'\\n\\x1b[31m\\t`touch ran`|$(touch ran)\\{/Symbol a}_^<b>,\\u009b\\x7f";

/* Two algorithms, two delays, two seeds, n_steps steps each. */
static void make_study(const char *path, const char *study, size_t n_steps) {
  static const char *const delays[] = {"{\"cluster.max_delay\":0}", "{\"cluster.max_delay\":600}"};
  step_record *steps = calloc(n_steps, sizeof *steps);
  store *s = NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(steps);
  ASSERT_OK(store_open(&s, path, STORE_WRITE, &err));
  for (int i = 0; i < 8; ++i) {
    eval_record evals[] = {{0, 0, 0.25}, {(int64_t)n_steps, 9, 0.5 + i / 100.0}};
    const uint64_t staleness[] = {1, 2};
    char key[40], recipe[64];
    for (size_t k = 0; k < n_steps; ++k) {
      steps[k] = (step_record){.step = (int64_t)k + 1};
      metrics_clear(steps[k].metric);
      steps[k].metric[METRIC_KL_EXACT] = i + 0.125;
      steps[k].metric[METRIC_LOG_IW_VARIANCE_PQ] = i / 7.0;
    }
    snprintf(key, sizeof key, "%02x%030d", (unsigned)(unsigned char)study[0], i);
    snprintf(recipe, sizeof recipe, "{\"name\":\"run %d\",\"seed\":%d}", i, i % 2);
    run_record run = {.key = key,
                      .ordinal = i,
                      .study = study,
                      .algorithm = i / 4 == 0 ? "grpo" : evil,
                      .swept = delays[i / 2 % 2],
                      .recipe = recipe,
                      .code_version = "0",
                      .machine = "",
                      .seed = (uint64_t)(i % 2),
                      .lr = 0.125,
                      .status = i == 7 ? RUN_DIVERGED : RUN_DONE,
                      .reason = i == 7 ? evil : "",
                      .clock = {.samples_per_s = 8},
                      .steps = steps,
                      .n_steps = n_steps,
                      .evals = evals,
                      .n_evals = 2,
                      .staleness = staleness,
                      .n_staleness = 2};
    ASSERT_OK(store_put_run(s, &run, &err));
  }
  store_close(s);
  free(steps);
}

/* --- whole or not at all --- */

static int holds(const char *path, const char *wanted) {
  char *text = cli_read(path);
  int same = strcmp(text, wanted) == 0;
  return same;
}

/* Runs it with a limit on the size of files; beyond it a write fails, as on a full disk. */
static cli_result limited(size_t bytes, const char *const *arguments) {
  struct rlimit before, small;
  CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = bytes;
  void (*handler)(int) = signal(SIGXFSZ, SIG_DFL);
  CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &small), 0);
  cli_result r = cli_run(NULL, arguments);
  CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  return r;
}

TEST(an_export_is_the_old_file_until_the_new_one_is_whole) {
  char folder[64], db[128], csv[128], link[128];
  cli_scratch_make(folder);
  make_study(cli_path(db, folder, "s.db"), "s", 400);
  cli_write(cli_path(csv, folder, "steps.csv"), "old\n", 4);
  chmod(csv, 0640);
  const char *const arguments[] = {"export", db, "-t", "steps", "-o", csv, NULL};
  cli_result r = limited(20000, arguments);
  CU_ASSERT_EQUAL(r.code, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "File too large"));
  CU_ASSERT(holds(csv, "old\n"));
  CU_ASSERT(CLI_GIVES(2, "export", db, "-t", "stps", "-o", csv));
  CU_ASSERT(CLI_GIVES(1, "export", db, "-o", "/proc/self/no/such.csv"));
  CU_ASSERT(CLI_GIVES(1, "export", db, "-o", folder));
  CU_ASSERT(holds(csv, "old\n"));
  /* A link stays one, and permissions stay. */
  CU_ASSERT_EQUAL_FATAL(symlink("steps.csv", cli_path(link, folder, "link.csv")), 0);
  CU_ASSERT(CLI_GIVES(0, "export", db, "-t", "steps", "-o", link));
  struct stat is;
  CU_ASSERT(lstat(link, &is) == 0 && S_ISLNK(is.st_mode));
  CU_ASSERT(stat(csv, &is) == 0 && (is.st_mode & 0777) == 0640);
  r = CLI("export", db, "-t", "steps");
  CU_ASSERT(r.code == 0 && r.out_size > 100000 && holds(csv, r.out));
}

TEST(a_folder_of_tables_is_the_old_one_until_the_new_one_is_whole) {
  char folder[64], db[128], data[128], steps[160], cells[160];
  cli_scratch_make(folder);
  make_study(cli_path(db, folder, "s.db"), "s", 400);
  CU_ASSERT(CLI_GIVES(0, "export", db, "--all", "-o", cli_path(data, folder, "data")));
  const size_t files = cli_files_in(data);
  CU_ASSERT_EQUAL(files, 16); /* fifteen tables and what describes them */
  snprintf(steps, sizeof steps, "%s/steps.csv", data);
  snprintf(cells, sizeof cells, "%s/cells.csv", data);
  cli_write(steps, "old\n", 4);
  cli_write(cells, "old\n", 4);
  const char *const arguments[] = {"export", db, "--all", "-o", data, NULL};
  cli_result r = limited(20000, arguments);
  CU_ASSERT_EQUAL(r.code, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "File too large"));
  CU_ASSERT(holds(steps, "old\n") && holds(cells, "old\n"));
  CU_ASSERT_EQUAL(cli_files_in(data), files);
  CU_ASSERT(CLI_GIVES(0, "export", db, "--all", "-o", data));
  r = CLI("export", db, "-t", "cells");
  CU_ASSERT(r.code == 0 && holds(cells, r.out));
}

TEST(what_makes_no_sense_is_refused) {
  char folder[64], db[128], data[128];
  cli_scratch_make(folder);
  make_study(cli_path(db, folder, "s.db"), "s", 2);
  cli_path(data, folder, "data");
  CU_ASSERT(CLI_GIVES(2, "export"));
  CU_ASSERT(CLI_GIVES(2, "export", db, "--all"));
  CU_ASSERT(CLI_GIVES(2, "export", db, "--all", "-t", "runs", "-o", data));
  CU_ASSERT(CLI_GIVES(2, "export", "--list", "-o", data));
  CU_ASSERT(CLI_GIVES(2, "export", "--list", "--all"));
  CU_ASSERT(CLI_GIVES(2, "export", db, "-f", "markdown"));
  CU_ASSERT_EQUAL(cli_files_in(folder), 1);
}

/* What is listed of a table is its header. */
TEST(the_list_names_every_column) {
  char folder[64], db[128];
  cli_scratch_make(folder);
  make_study(cli_path(db, folder, "s.db"), "s", 2);
  for (size_t i = 0; study_export_at(i) != NULL; ++i) {
    const char *name = study_export_at(i)->name;
    cli_result list = CLI("export", "--list", "-t", name), r = CLI("export", db, "-t", name);
    char *rest = NULL;
    CU_ASSERT(list.code == 0 && r.code == 0);
    r.out[strcspn(r.out, "\n")] = '\0';
    for (char *c = strtok_r(r.out, ",", &rest); c != NULL; c = strtok_r(NULL, ",", &rest)) {
      char line[128];
      snprintf(line, sizeof line, "\n  %s ", c);
      CU_ASSERT(strcmp(c, "cluster.max_delay") == 0 || strstr(list.out, line) != NULL);
    }
  }
}

TEST(a_device_is_written_to_and_not_replaced) {
  char folder[64], db[128];
  struct stat is;
  cli_scratch_make(folder);
  make_study(cli_path(db, folder, "s.db"), "s", 2);
  cli_result plain = CLI("export", db), through = CLI("export", db, "-o", "/dev/stdout");
  CU_ASSERT(through.code == 0 && plain.out_size > 0);
  CU_ASSERT_STRING_EQUAL(through.out, plain.out);
  CU_ASSERT(CLI_GIVES(0, "export", db, "-o", "/dev/null"));
  CU_ASSERT(stat("/dev/null", &is) == 0 && S_ISCHR(is.st_mode));
}

/* --- readers that stop --- */

/* What the program says and how it ends when its output goes to `head -n 1`, or to nobody. */
static void stopped(const char *folder, const char *arguments, int is_ignored, int *code,
                    char **said) {
  char line[1024], path[128];
  const char *program = getenv("GEPOLAB");
  snprintf(line, sizeof line, "%s { %s%s %s 2> %s/err; echo $? > %s/code; } | %s",
           is_ignored ? "trap '' PIPE;" : "", is_ignored == 2 ? "sleep 0.2; " : "",
           program != NULL ? program : "build/gepolab", arguments, folder, folder,
           is_ignored == 2 ? "true" : "head -n 1 > /dev/null");
  CU_ASSERT(system(line) != -1);
  char *text = cli_read(cli_path(path, folder, "code"));
  *code = atoi(text);
  *said = cli_read(cli_path(path, folder, "err"));
}

TEST(a_reader_that_stops_ends_the_command_without_a_word) {
  char folder[64], db[128], arguments[4][160];
  cli_scratch_make(folder);
  make_study(cli_path(db, folder, "s.db"), "s", 3000);
  snprintf(arguments[0], 160, "export %s -t steps", db);
  snprintf(arguments[1], 160, "export %s -t steps -f jsonl", db);
  snprintf(arguments[2], 160, "analyze %s", db);
  snprintf(arguments[3], 160, "algorithms");
  for (int i = 0; i < 4; ++i)
    for (int ignored = 0; ignored <= 2; ++ignored) {
      int code = -1;
      char *said = NULL;
      if (i >= 2 && ignored != 2) continue; /* the pipe has room for all of it: no trouble */
      stopped(folder, arguments[i], ignored, &code, &said);
      if (code != 128 + SIGPIPE) fprintf(stderr, "%s: %d %s\n", arguments[i], code, said);
      CU_ASSERT_EQUAL(code, 128 + SIGPIPE);
      CU_ASSERT_STRING_EQUAL(said, "");
    }
}

/* Other trouble with the output is told. */
TEST(a_full_disk_below_the_output_is_told) {
  char folder[64], line[512];
  const char *program = getenv("GEPOLAB");
  if (access("/dev/full", W_OK) != 0) SKIP("no /dev/full");
  cli_scratch_make(folder);
  snprintf(line, sizeof line, "%s algorithms > /dev/full 2> %s/err",
           program != NULL ? program : "build/gepolab", folder);
  int how = system(line);
  CU_ASSERT_EQUAL(how >> 8, 1);
  char path[128], *said = cli_read(cli_path(path, folder, "err"));
  CU_ASSERT_PTR_NOT_NULL(strstr(said, "cannot write to standard output: No space left on device"));
}

/* --- names that mean something elsewhere --- */

/* No control character but line breaks, no C1 control in UTF-8, no byte that is not UTF-8. */
static int is_calm(const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; ++c)
    if ((*c < ' ' && *c != '\n') || *c == 0x7f || (*c == 0xc2 && c[1] < 0xa0)) return 0;
  return 1;
}

static int tells(const char *wanted, const char *const *arguments) {
  cli_result r = cli_run(NULL, arguments);
  int good = is_calm(r.out) && is_calm(r.err) &&
             (strstr(r.out, wanted) != NULL || strstr(r.err, wanted) != NULL);
  if (!good) fprintf(stderr, "%s: no \"%s\" in:\n%s%s\n", arguments[0], wanted, r.out, r.err);
  return good;
}
#define TELLS(wanted, ...) tells(wanted, (const char *const[]){__VA_ARGS__, NULL})

TEST(no_name_reaches_a_terminal_as_a_command) {
  char folder[64], db[128], csv[128], figures[128];
  cli_scratch_make(folder);
  make_study(cli_path(db, folder, "s.db"), evil, 3);
  CU_ASSERT(TELLS(evil_shown, "analyze", db));
  CU_ASSERT(TELLS("100\\%d a\"b'\\textbackslash{}n\\textbackslash{}x1b[31m", "analyze", db,
                  "--format", "latex"));
  CU_ASSERT(TELLS("\\`touch ran\\`\\|$(touch ran)\\\\{/Symbol a}\\_^&lt;b&gt;,", "analyze", db,
                  "--format", "markdown"));
  CU_ASSERT(TELLS("ev\\x1bil: gr\\npo, seed 1", "run", "quickstart", "-q", "steps=2",
                  "name=\"ev\\eil\"", "algorithm={base: grpo, name: \"gr\\npo\"}"));
  CU_ASSERT(TELLS("gr\\x1b[1mpo", "bias", "four_arms", "group_size=2",
                  "algorithms=[{base: grpo, name: \"gr\\e[1mpo\"}]"));
  CU_ASSERT(TELLS("ev\\x1bil: nothing is run", "sweep", "quickstart", "--dry-run",
                  "name=\"ev\\eil\"", "sweep={seed: [1]}"));
  CU_ASSERT(TELLS("no\\x1b[31m\\nsuch.db", "analyze", "no\033[31m\nsuch.db"));
  CU_ASSERT(TELLS("'geppo\\x07'", "algorithms", "geppo\a"));
  CU_ASSERT(TELLS("no option --\\x1b]0;t\\x07;", "run", "--\033]0;t\a"));
  CU_ASSERT(TELLS("'\\xff'", "\xff"));
  /* W&B columns */
  static const char export_text[] = "Step,\033[31mred - eval/score\n1,0.5\n2,0.75\n";
  cli_write(cli_path(csv, folder, "w.csv"), export_text, sizeof export_text - 1);
  CU_ASSERT(TELLS("\\x1b[31mred", "analyze", csv));
  /* figures, whose folder has a name too */
  CU_ASSERT(TELLS("fig\\x1bures/eval_score.pdf", "plot", db, "-o",
                  cli_path(figures, folder, "fig\033ures"), "--gnuplot", "true"));
}

/* Whether standard error holds nothing but notes of what figures leave out: no complaint of
 * gnuplot's or a shell's. */
static int only_notes_of_figures(const char *text) {
  static const char note[] = "gepolab: note: the figure ";
  while (*text != 0) {
    const char *end = strchr(text, '\n');
    if (end == NULL || strncmp(text, note, sizeof note - 1) != 0) {
      fprintf(stderr, "not a note of a figure: %s\n", text);
      return 0;
    }
    text = end + 1;
  }
  return 1;
}

TEST(every_figure_of_a_study_with_such_names_is_drawn_and_runs_nothing) {
  char folder[64], db[128], figures[128], path[192];
  cli_scratch_make(folder);
  make_study(cli_path(db, folder, "s.db"), evil, 3);
  cli_result r = CLI("plot", db, "-o", cli_path(figures, folder, "figures"));
  CU_ASSERT_EQUAL(r.code, 0);
  if (r.code != 0) fprintf(stderr, "%s\n", r.err);
  CU_ASSERT(only_notes_of_figures(r.err));
  snprintf(path, sizeof path, "%s/best_last.tsv", figures);
  char *tsv = cli_read(path);
  /* quotes doubled, the rest as it is shown */
  CU_ASSERT_PTR_NOT_NULL(
      strstr(tsv, "\t\"100%d a\"\"b'\\n\\x1b[31m\\t`touch ran`|$(touch ran)\\{"));
  snprintf(path, sizeof path, "%s/best_last.pdf", figures);
  CU_ASSERT_EQUAL(access(path, R_OK), 0);
  snprintf(path, sizeof path, "%s/ran", figures);
  CU_ASSERT(access(path, F_OK) != 0 && access("ran", F_OK) != 0);
  /* of the laboratory the recipe's name is part of the files' names */
  CU_ASSERT(
      CLI_GIVES(0, "bias", "bias_vs_kl", "name=\"../a|b'\\n`touch ran`\"", "-f", figures,
                "--figure", "curves", "group_size=2",
                "algorithms=[{base: grpo, name: \"#100%d'; system('touch ran') #\\\"\"}, gepo]"));
  snprintf(path, sizeof path, "%s/.._a|b'_`touch ran`_curves.pdf", figures);
  CU_ASSERT_EQUAL(access(path, R_OK), 0);
  snprintf(path, sizeof path, "%s/ran", figures);
  CU_ASSERT(access(path, F_OK) != 0 && access("ran", F_OK) != 0);
}

TEST(studies_that_are_no_folders_are_refused) {
  char folder[64], db[128], figures[128];
  static const char *const names[] = {"..", "."};
  for (size_t i = 0; i < 2; ++i) {
    cli_scratch_make(folder);
    make_study(cli_path(db, folder, "s.db"), "first", 3);
    make_study(db, names[i], 3);
    cli_path(figures, folder, "figures");
    CU_ASSERT(TELLS("no folder can be named after the study '", "plot", db, "-o", figures,
                    "--gnuplot", "true"));
    CU_ASSERT(cli_files_in(folder) <= 2); /* the study and the folder of figures */
  }
}

TEST(a_study_with_a_slash_in_its_name_has_one_folder) {
  char folder[64], db[128], figures[128], at[160];
  cli_scratch_make(folder);
  make_study(cli_path(db, folder, "s.db"), "first", 3);
  make_study(db, "a/../b", 3);
  cli_path(figures, folder, "figures");
  CU_ASSERT(CLI_GIVES(0, "plot", db, "-o", figures, "--gnuplot", "true"));
  snprintf(at, sizeof at, "%s/a_.._b", figures);
  CU_ASSERT_EQUAL(access(at, R_OK), 0);
}

/* Data are data: a reader of CSV, TSV or JSON gets what the study holds. */
TEST(exports_keep_every_byte_of_a_name) {
  char folder[64], db[128], quoted[2 * sizeof evil + 3] = "\"", *to = quoted + 1;
  cli_scratch_make(folder);
  make_study(cli_path(db, folder, "s.db"), "s", 3);
  for (const char *c = evil; *c != '\0'; ++c) {
    if (*c == '"') *to++ = '"';
    *to++ = *c;
  }
  *to++ = '"', *to = '\0';
  cli_result csv = CLI("export", db), tsv = CLI("export", db, "-f", "tsv"),
             json = CLI("export", db, "-f", "jsonl");
  CU_ASSERT_PTR_NOT_NULL(strstr(csv.out, quoted));
  CU_ASSERT_PTR_NOT_NULL(strstr(tsv.out, quoted));
  char *last = strrchr(json.out, '{'); /* the recipe within the last record */
  while (last > json.out && last[-1] != '\n') --last;
  cJSON *record = json_parsed(last);
  CU_ASSERT_STRING_EQUAL(text_at(record, "algorithm"), evil);
  CU_ASSERT_STRING_EQUAL(text_at(record, "reason"), evil);
}
