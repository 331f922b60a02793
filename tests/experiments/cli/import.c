/* Tables and figures of other programs' exports, with the program alone. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("cli: exports");

#define SAMPLE(name) "tests/golden/exports/" name

TEST(exports_of_several_kinds_become_one_figure) {
  char folder[64], figures[128];
  cli_scratch_make(folder);
  cli_path(figures, folder, "figures");
  cli_result r =
      CLI("plot", SAMPLE("panel_eval.csv"), SAMPLE("wide.csv"), SAMPLE("runs.jsonl"), "-o", figures,
          "-f", "eval_score", "-l", "panel_eval.csv=MATH", "-l", "wide.csv=AIME24", "-l",
          "runs.jsonl=AMC", "-g", "^(.*?)_(?:seed|diff)[0-9]+$", "-r", "(?i)^(ge|gr)po$=$1PO");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT(cli_has(figures, "eval_score.pdf") && cli_has(figures, "eval_score.tsv"));
}

/* gnuplot code, LaTeX, escape sequences of terminals and commands of shells are shown, not obeyed.
 */
TEST(hostile_names_are_only_ever_text) {
  char folder[64], figures[128];
  cli_scratch_make(folder);
  cli_path(figures, folder, "figures");
  CU_ASSERT(CLI_GIVES(0, "plot", SAMPLE("hostile.csv"), "-o", figures));
  CU_ASSERT(cli_has(figures, "eval_score.svg"));
  CU_ASSERT(access("pwned", F_OK) != 0 && !cli_has(figures, "pwned"));
  const char *const formats[] = {"text", "markdown", "latex"};
  for (size_t i = 0; i < 3; i++) {
    cli_result r = CLI("analyze", SAMPLE("hostile.csv"), "-f", formats[i]);
    CU_ASSERT_EQUAL(r.code, 0);
    CU_ASSERT_PTR_NULL(strchr(r.out, '\x1b'));
    CU_ASSERT_PTR_NOT_NULL(strstr(r.out, i == 2 ? "two\\textbackslash{}nlines" : "lines"));
    if (i == 2) CU_ASSERT_PTR_NULL(strstr(r.out, "\\input{"));
    if (i == 1) CU_ASSERT_PTR_NULL(strstr(r.out, "<script>"));
  }
  CU_ASSERT(CLI_GIVES(0, "analyze", SAMPLE("hostile.csv"), "--json"));
}

TEST(exports_of_gepolab_are_read_again) {
  char folder[64], db[128], evals[128], figures[128];
  cli_scratch_make(folder);
  cli_path(db, folder, "study.db");
  cli_path(evals, folder, "evals.csv");
  cli_path(figures, folder, "figures");
  CU_ASSERT(
      CLI_GIVES(0, "sweep", "quickstart", "-q", "-o", db, "steps=20", "cluster={preset: heterorl}",
                "sweep={algorithm: [grpo, gepo], cluster.max_delay: [0, 600], seed: [1, 2]}"));
  CU_ASSERT(CLI_GIVES(0, "export", db, "-t", "evals", "-o", evals));
  CU_ASSERT(CLI_GIVES(0, "plot", evals, "-o", figures, "-f", "best_last"));
  CU_ASSERT(cli_has(figures, "best_last.pdf"));
  char label[160];
  snprintf(label, sizeof label, "%s=again", evals);
  CU_ASSERT(CLI_GIVES(0, "analyze", db, evals, "-l", label));
  CU_ASSERT(CLI_GIVES(0, "plot", db, evals, "-l", label, "-o", figures, "-f", "eval_score"));
  CU_ASSERT(CLI_GIVES(2, "plot", db, evals, "-o", figures));
  CU_ASSERT(CLI_GIVES(2, "analyze", db, "--metric", "kl_exact"));
}

/* One run: staleness and KL give the window figure; without staleness nothing is drawn against it,
 * and what has no values is no empty picture. */
TEST(exports_of_one_setting_have_a_window_and_no_empty_figures) {
  static const char kl[] = "step,[paper]GEPO_diff32 - train/cppo_kl,[paper]GEPO_diff32 - "
                           "train/step_diff\n1,0.5,0\n2,0.25,1\n3,0.125,2\n",
                    variance[] = "step,GEPO - train/sts_var/ratio_pEqQ\n1,0.5\n2,0.25\n";
  char folder[64], figures[128], one[128], two[128];
  cli_scratch_make(folder);
  cli_path(figures, folder, "figures");
  cli_write(cli_path(one, folder, "kl.csv"), kl, sizeof kl - 1);
  cli_write(cli_path(two, folder, "variance.csv"), variance, sizeof variance - 1);
  CU_ASSERT(CLI_GIVES(0, "plot", one, "-o", figures));
  CU_ASSERT(cli_has(figures, "window.pdf") && cli_has(figures, "by_staleness.pdf"));
  CU_ASSERT(!cli_has(figures, "relations.pdf") && !cli_has(figures, "relations.tsv"));
  cli_result r = CLI("plot", two, "-o", figures, "--gnuplot", "true");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "no by_staleness: none of the quantities"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "no window: there is neither staleness nor KL"));
  CU_ASSERT(CLI_GIVES(2, "plot", two, "-o", figures, "-f", "by_staleness"));
}

/* An export has no simulated clock: the figure's text file says so, and not the figure. */
TEST(quantities_that_an_export_cannot_have_are_not_in_the_figure) {
  char folder[64], figures[128], path[160];
  cli_scratch_make(folder);
  cli_path(figures, folder, "figures");
  CU_ASSERT(CLI_GIVES(0, "plot", "tests/golden/exports/wide.csv", "-o", figures, "--figure",
                      "time_to_score", "--gnuplot", "true"));
  char *notes = cli_read(cli_path(path, figures, "time_to_score.txt"));
  char *script = cli_read(cli_path(path, figures, "time_to_score.gp"));
  CU_ASSERT_STRING_EQUAL(notes, "not in the data: simulated hours (no values)\n");
  CU_ASSERT_PTR_NULL(strstr(script, "simulated hours (no values)"));
}

/* With --no-notes the text below a figure is in NAME.txt and not in the picture. */
TEST(notes_of_a_figure_can_be_left_to_a_file) {
  char kl[256] = "step,gepo - train/kl\n", folder[64], log[128], path[160], line[32];
  for (int step = 0; step < 9; ++step) {
    snprintf(line, sizeof line, "%d,0.%d\n", step, step + 1);
    strcat(kl, line);
  }
  cli_scratch_make(folder);
  cli_write(cli_path(log, folder, "log.csv"), kl, strlen(kl));
  for (int without = 0; without < 2; ++without) {
    CU_ASSERT(CLI_GIVES(0, "plot", log, "-o", folder, "-f", "window", "--read-as", "kl$=kl_k3",
                        "--gnuplot", "true", "--points", "3", without ? "--no-notes" : NULL));
    char *script = cli_read(cli_path(path, folder, "window.gp"));
    CU_ASSERT_EQUAL(strstr(script, "Each point averages up to 3 updates") == NULL, without);
    CU_ASSERT_EQUAL(cli_has(folder, "window.txt"), without);
  }
  char *notes = cli_read(cli_path(path, folder, "window.txt"));
  CU_ASSERT_PTR_NOT_NULL(strstr(notes, "Each point averages up to 3 updates"));
}

/* What is logged before the first update, and every 64 updates, stands where it was logged. */
TEST(a_sparse_log_stands_at_its_steps) {
  static const char kl[] = "step,gepo - train/kl\n0,0.5\n64,0.25\n192,0.125\n";
  char folder[64], figures[128], log[128], path[160], text[4096] = "";
  cli_scratch_make(folder);
  cli_path(figures, folder, "figures");
  cli_write(cli_path(log, folder, "log.csv"), kl, sizeof kl - 1);
  CU_ASSERT(CLI_GIVES(0, "plot", log, "-o", figures, "-f", "window", "--read-as", "kl$=kl_k3",
                      "--gnuplot", "true", "--points", "2"));
  FILE *f = fopen(cli_path(path, figures, "window.tsv"), "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  CU_ASSERT(fread(text, 1, sizeof text - 1, f) > 0);
  fclose(f);
  CU_ASSERT_PTR_NULL(strstr(text, "averages"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\tgepo\t0\t0.5\t"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\tgepo\t64\t0.25\t"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\tgepo\t192\t0.125\t"));
}

TEST(wrong_words_are_refused) {
  CU_ASSERT(CLI_GIVES(2, "analyze", SAMPLE("wide.csv"), "--at", "end"));
  CU_ASSERT(CLI_GIVES(2, "analyze", SAMPLE("wide.csv"), "--columns", "rows"));
  CU_ASSERT(CLI_GIVES(2, "plot", SAMPLE("wide.csv"), SAMPLE("wide.csv")));
  CU_ASSERT(CLI_GIVES(1, "plot", "no/such/file.csv"));
  CU_ASSERT(CLI_GIVES(0, "analyze", SAMPLE("wide.csv"), "--published", SAMPLE("published.tsv")));
  CU_ASSERT(CLI_GIVES(2, "analyze", SAMPLE("wide.csv"), "--published", SAMPLE("wide.csv")));
}

static const char *paper_data(void) {
  const char *folder = getenv("GEPOLAB_PAPER_DATA");
  return folder ? folder : "../shared/paper-data";
}

TEST(the_papers_exports_give_tables_and_figures_by_one_command_each) {
  char folder[64], figures[128], path[5][160];
  static const char *const names[] = {"eval_math500_maxdelay64", "eval_train_maxdelay64",
                                      "iw_variance_online", "kl_maxdiff32", "staleness_maxdiff32"};
  for (size_t i = 0; i < 5; i++) {
    snprintf(path[i], sizeof path[i], "%s/%s.csv", paper_data(), names[i]);
    if (access(path[i], R_OK) != 0) SKIP("the paper's data are not here");
  }
  cli_scratch_make(folder);
  cli_path(figures, folder, "figures");
  const char *const strip = "(.*)_(?:diff32|online)=$1";
  cli_result r = CLI("analyze", path[0], path[1], "-l", "eval_math500_maxdelay64.csv=MATH500", "-l",
                     "eval_train_maxdelay64.csv=second", "-r", strip, "--at", "common");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(
      strstr(r.out, "GSPO           0.7822        0.5556       0.7037       0.6975"));
  CU_ASSERT(CLI_GIVES(0, "plot", path[0], path[1], "-r", strip, "-f", "eval_score", "-o", figures));
  CU_ASSERT(CLI_GIVES(0, "plot", path[2], "-r", strip, "-f", "training", "-o", figures));
  CU_ASSERT(CLI_GIVES(0, "plot", path[3], path[4], path[1], "-r", strip, "-o", figures));
  CU_ASSERT(cli_has(figures, "staleness.pdf") && cli_has(figures, "training.pdf"));
  CU_ASSERT(cli_has(figures, "by_staleness.pdf") && cli_has(figures, "window.pdf"));
}
