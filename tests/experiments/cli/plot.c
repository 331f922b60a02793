/* From a recipe to pictures with the program alone. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("cli: figures");

TEST(a_swept_recipe_becomes_figures_and_tables) {
  char folder[64], db[128], figures[128];
  cli_scratch_make(folder);
  cli_path(db, folder, "study.db");
  cli_path(figures, folder, "figures");
  CU_ASSERT(
      CLI_GIVES(0, "sweep", "quickstart", "-q", "-o", db, "steps=20", "cluster={preset: heterorl}",
                "sweep={algorithm: [grpo, gepo], cluster.max_delay: [0, 600], seed: [1, 2]}"));
  cli_result r = CLI("plot", db, "-o", figures);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "divergence.pdf"));
  CU_ASSERT_PTR_NOT_NULL(
      strstr(r.out, "no window: there are several settings, and cluster.window is not swept"));
  CU_ASSERT(cli_has(figures, "eval_score.png") && cli_has(figures, "eval_score.svg") &&
            cli_has(figures, "training.tsv"));
  CU_ASSERT(cli_has(figures, "best_last.gp") && !cli_has(figures, "window.tsv"));
  CU_ASSERT(CLI_GIVES(2, "plot", db, "-o", figures, "--figure", "windows"));
  CU_ASSERT(CLI_GIVES(2, "plot", db, "-o", figures, "--points", "1"));
  r = CLI("plot", db, "-o", figures, "--figure", "heat", "--figure", "training", "--points", "raw");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "heat.pdf"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "training.pdf"));
  CU_ASSERT_PTR_NULL(strstr(r.out, "gap.pdf"));
  CU_ASSERT(CLI_GIVES(1, "plot", db, "-o", figures, "--gnuplot", "no-such-gnuplot"));
  CU_ASSERT(CLI_GIVES(1, "plot", db, "-o", "/proc/self/figures"));
  r = CLI("plot", db, "-o", figures, "--gnuplot", "false");
  CU_ASSERT(r.code == 1 && strstr(r.err, "exit status 1") != NULL);
  REFUSED(2, "no algorithm 'foo'; there are grpo, gepo", "plot", db, "-o", figures, "--highlight",
          "foo");
  r = CLI("analyze", db);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "Runs: 8, of which 0 collapsed"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "max delay [s]  leader  next"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "kl_exact, iw_variance_pq"));
}

TEST(a_schedule_is_drawn_without_a_study) {
  char folder[64], figures[128];
  cli_scratch_make(folder);
  cli_path(figures, folder, "figures");
  CU_ASSERT(CLI_GIVES(0, "sim", "heterorl_trace", "--figures", figures));
  CU_ASSERT(cli_has(figures, "staleness.pdf"));
  CU_ASSERT(CLI_GIVES(2, "sim", "heterorl_trace", "--measured", "x.csv"));
}

/* The run is short: its learner waits, trains and, at the end, has two batches in its queue. */
TEST(a_clock_is_drawn_as_a_timeline_between_two_times) {
  static const char one[] = "cluster={preset: fifo, samplers: 3, generation: 40, learner: "
                            "{step: 30}, up: {bandwidth: 1000}, rollout_bytes: 5000}";
  char folder[64], figures[128];
  cli_scratch_make(folder);
  cli_path(figures, folder, "figures");
  CU_ASSERT(CLI_GIVES(0, "sim", "quickstart", one, "steps=6", "--timeline", "-f", figures));
  CU_ASSERT(cli_has(figures, "timeline.pdf") && cli_has(figures, "timeline.svg"));
  CU_ASSERT(cli_has(figures, "staleness.png"));
  char path[128];
  char *data = cli_read(cli_path(path, figures, "timeline.tsv"));
  CU_ASSERT_PTR_NOT_NULL(strstr(data, "\n0\tsampler 3\tgeneration\t0\t40\t-"));
  CU_ASSERT_PTR_NOT_NULL(strstr(data, "\n0\tbatches of 3\tbatch under way\t40\t45\t-"));
  CU_ASSERT_PTR_NOT_NULL(strstr(data, "\n0\tlearner\twaiting\t0\t45\t-"));
  CU_ASSERT_PTR_NOT_NULL(strstr(data, "\n0\tlearner\ttraining\t45\t75\t-"));
  CU_ASSERT(
      CLI_GIVES(0, "sim", "quickstart", one, "steps=6", "-t", "-f", figures, "--between", "50,60"));
  data = cli_read(path);
  CU_ASSERT_PTR_NOT_NULL(strstr(data, "\n0\tlearner\ttraining\t50\t60\t-"));
  CU_ASSERT_PTR_NULL(strstr(data, "waiting"));
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", "--between", "0,60"));
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", "-t", "-f", figures, "--between", "60"));
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", "-t", "-f", figures, "--between", "60,60"));
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", "-t", "-f", figures, "--between", "1e9,2e9"));
}

/* By hand: three samplers in a chain of relays of 10 bytes a second have a batch at 40 s; the
 * learner trains it until 70 s and sends two shards of 100 bytes; each is handed on as soon as it
 * is there. */
TEST(hops_between_relays_are_drawn) {
  static const char chain[] = "cluster={preset: sync, samplers: 3, generation: 40, weights_bytes: "
                              "200, learner: {step: 30}, "
                              "network: {egress: {bandwidth: 10}, relay: {kind: tree, fanout: 1, "
                              "shards: 2, bandwidth: 10}}}";
  static const char *const bars[] = {
      "egress\tweights under way\t70\t80",        "egress\tweights under way\t80\t90",
      "weights to 1\tweights under way\t70\t90",  "1 sends on\tweights under way\t80\t90",
      "1 sends on\tweights under way\t90\t100",   "weights to 2\twaiting\t70\t80",
      "weights to 2\tweights under way\t80\t100", "2 sends on\tweights under way\t90\t100",
      "2 sends on\tweights under way\t100\t110",  "weights to 3\twaiting\t70\t90",
      "weights to 3\tweights under way\t90\t110"};
  char folder[64], figures[128], path[128];
  cli_scratch_make(folder);
  cli_path(figures, folder, "figures");
  CU_ASSERT(CLI_GIVES(0, "sim", "quickstart", chain, "steps=3", "-t", "-f", figures, "--between",
                      "0,120"));
  char *data = cli_read(cli_path(path, figures, "timeline.tsv"));
  for (size_t i = 0; i < sizeof bars / sizeof *bars; ++i) {
    char line[80];
    snprintf(line, sizeof line, "\n0\t%s\t", bars[i]);
    CU_ASSERT_PTR_NOT_NULL(strstr(data, line));
  }
  CU_ASSERT_PTR_NULL(strstr(data, "3 sends on"));
}

/* Of the distributions that a sweep names, the constant one is told and the uniform one is 1 / 8
 * high. */
TEST(the_dists_of_all_cells_are_drawn_as_densities) {
  static const char sweep[] =
      "sweep={algorithm: [grpo, gepo], cluster.delay: [none, {distribution: uniform, "
      "min: 2, max: 10}, {distribution: lognormal, interval: [2, 10], clamp: true}]}";
  char folder[64], figures[128], path[128];
  cli_scratch_make(folder);
  cli_path(figures, folder, "figures");
  cli_result r =
      CLI("sim", "quickstart", "cluster={preset: heterorl}", sweep, "steps=6", "-d", "-f", figures);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "weight delay none; generation (always"));
  CU_ASSERT(cli_has(figures, "densities.pdf") && cli_has(figures, "densities.svg"));
  char *data = cli_read(cli_path(path, figures, "densities.tsv"));
  CU_ASSERT_PTR_NOT_NULL(strstr(data, "\n0\tuniform 2 to 10\t2.000000"));
  CU_ASSERT_PTR_NOT_NULL(strstr(data, "\n0\tlognormal("));
  for (const char *at = data; (at = strstr(at, "\n0\tuniform 2 to 10\t")) != NULL; ++at) {
    const double density = strtod(strchr(at + sizeof "\n0\tuniform 2 to 10", '\t'), NULL);
    CU_ASSERT(density == 0 || (density > 0.1249 && density < 0.1251));
  }
  data = cli_read(cli_path(path, figures, "densities.gp"));
  CU_ASSERT_PTR_NOT_NULL(strstr(data, "2.5 % are 2 s, 2.5 % are 10 s"));
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", "-d", "-f", figures, "cluster={preset: fifo}"));
}
