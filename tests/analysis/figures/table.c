/* The figures of a study made by hand: their data, what they leave out, and what is refused. */
#include "analysis/figures/figures.h"
#include "tests/support/files.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("analysis: figures");

static const char folder[] = "build/figures_test/deep";

/* --- a study by hand --- */

/* Ten algorithms, the given settings, three seeds, two updates. Evaluations 1/8, then peak = 1/2 +
 * seed / 4, then 1/8 less; KL is one nat times the setting's number; the first update is on
 * policy, with a log variance of minus infinity, the second's is 2 ln 10. The last algorithm's last
 * run diverges to NaN at once. */
static void add_run(results *r, size_t algorithm, size_t setting, const char *axes, uint64_t seed) {
  static const char *const names[] = {"grpo", "dr_grpo", "gspo", "gepo",  "is",
                                      "tis",  "topr",    "dapo", "cispo", "it's \"{odd}\t\n_\\^@"};
  int gone = algorithm == 9 && seed == 2;
  double peak = gone ? NAN : 0.5 + (double)seed / 4.0;
  eval_record evals[] = {{0, 0, 0.125}, {1, 1, peak}, {2, 2, peak - 0.125}};
  step_record steps[2];
  for (int i = 0; i < 2; i++) {
    steps[i] = (step_record){.step = i + 1};
    metrics_clear(steps[i].metric);
    steps[i].metric[METRIC_KL_EXACT] = gone ? NAN : (double)setting;
    steps[i].metric[METRIC_STALENESS] = 2 + i;
    steps[i].metric[METRIC_GRAD_NORM] = 0.25;
    steps[i].metric[METRIC_REWARD_MEAN] = gone ? NAN : 0.5;
    steps[i].metric[METRIC_LOG_IW_VARIANCE] = i == 0 ? -INFINITY : 2 * log(10);
    steps[i].metric[METRIC_LOG_IW_VARIANCE_PQ] = gone ? INFINITY : 2 * log(10);
  }
  const uint64_t staleness[] = {1, 2, 1};
  run_record run = {.algorithm = names[algorithm],
                    .swept = axes,
                    .seed = seed,
                    .lr = 0.1,
                    .status = gone ? RUN_DIVERGED : RUN_DONE,
                    .clock = {.samples_per_s = 8 - (double)setting,
                              .learner_utilisation = 0.5,
                              .sampler_utilisation = 1},
                    .steps = steps,
                    .n_steps = 2,
                    .evals = evals,
                    .n_evals = 3,
                    .staleness = staleness,
                    .n_staleness = 3};
  ASSERT_OK(results_add(r, &run, &err));
}

static results *made_results(const char *const *axes, size_t n) {
  results *r = results_new("made");
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (size_t setting = 0; setting < n; setting++)
    for (size_t algorithm = 0; algorithm < 10; algorithm++)
      for (uint64_t seed = 0; seed < 3; seed++) add_run(r, algorithm, setting, axes[setting], seed);
  ASSERT_OK(results_arrange(r, &err));
  return r;
}

static const char *const delays[] = {"{\"cluster.max_delay\":\"none\"}",
                                     "{\"cluster.max_delay\":600}"};

/* --- files --- */

static char *figure_path(const char *name, const char *suffix) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s.%s", folder, name, suffix);
  return path;
}

static char *figure_text(const char *name, const char *suffix) {
  return files_text(figure_path(name, suffix));
}

static int starts_with(const char *name, const char *suffix, const char *signature) {
  char *text = figure_text(name, suffix);
  int same = memcmp(text, signature, strlen(signature)) == 0;
  free(text);
  return same;
}

/* A whole SVG whose texts are 7.2 points high where 96 of its units are an inch. */
static int is_readable_svg(const char *name) {
  char *text = figure_text(name, "svg");
  int good = strncmp(text, "<?xml", 5) == 0 && strstr(text, "viewBox=\"0 0 ") != NULL &&
             strstr(text, "font-size=\"9.60\"") != NULL && strstr(text, "</svg>\n") != NULL;
  free(text);
  return good;
}

static int has(const char *name, const char *line) {
  char *text = figure_text(name, "tsv");
  int found = strstr(text, line) != NULL;
  if (!found) fprintf(stderr, "%s lacks: %s\n%.800s\n", name, line, text);
  free(text);
  return found;
}

static int says(const char *name, const char *words) {
  char *text = figure_text(name, "gp");
  int found = strstr(text, words) != NULL;
  if (!found) fprintf(stderr, "%s.gp lacks: %s\n%.1500s\n", name, words, text);
  free(text);
  return found;
}

static void remove_figures(void) {
  static const char *const suffixes[] = {"tsv", "gp", "pdf", "png", "svg"};
  for (size_t i = 0; figures_at(i); i++)
    for (size_t k = 0; k < 5; k++) unlink(figure_path(figures_at(i)->name, suffixes[k]));
}

/* --- a request --- */

/* Scripts as files of the repository; read at most once each. */
static const char *script(const char *path) {
  static char room[8][16384];
  static char names[8][64];
  size_t i = 0;
  while (names[i][0] && strcmp(names[i], path) != 0) i++;
  if (!names[i][0]) {
    FILE *f = fopen(path, "r");
    if (!f) return NULL;
    room[i][fread(room[i], 1, sizeof room[i] - 1, f)] = 0;
    fclose(f);
    snprintf(names[i], sizeof names[i], "%s", path);
  }
  return room[i];
}

typedef struct news {
  char drawn[512], left_out[512], not_shown[1024];
} news;

static void noted(void *context, const char *file, const char *left_out) {
  char *to = ((news *)context)->not_shown;
  snprintf(to + strlen(to), 1024 - strlen(to), "%s: %s\n", file, left_out);
}

static void report(void *context, const char *file, const char *why) {
  char *to = why ? ((news *)context)->left_out : ((news *)context)->drawn;
  strcat(to, file);
  strcat(to, " ");
}

static gl_status draw(const char *const *axes, size_t n, const char *only, const char *gnuplot,
                      news *heard, gl_error *err) {
  results *r = made_results(axes, n);
  figure_request q = {.folder = folder,
                      .only = only,
                      .gnuplot = gnuplot,
                      .script = script,
                      .report = report,
                      .noted = noted,
                      .context = heard};
  *heard = (news){0};
  remove_figures();
  gl_status status = figures_draw(r, NULL, &q, err);
  results_free(r);
  return status;
}

TEST(every_figure_a_delay_sweep_has_data_for_is_drawn_with_its_data) {
  gl_error err = {0};
  news heard;
  CU_ASSERT_EQUAL(draw(delays, 2, NULL, NULL, &heard, &err), GL_OK);
  if (*err.text) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_STRING_EQUAL(heard.drawn, "eval_score gap training divergence by_staleness relations "
                                      "sensitivity heat staleness throughput_delay "
                                      "survival dumbbells best_last ");
  /* All that varies by more than a factor is the setting: there is no correlation. One run of each
   * cell never comes to the score of time_to_score, so that no mean is known. */
  CU_ASSERT_STRING_EQUAL(heard.left_out,
                         "correlations window throughput_loss throughput_samplers time_to_score "
                         "frontier announcements ");
  char *names = strdup(heard.drawn);
  CU_ASSERT_PTR_NOT_NULL_FATAL(names);
  for (char *rest = names, *name; (name = strtok_r(rest, " ", &rest)) != NULL;) {
    CU_ASSERT(starts_with(name, "pdf", "%PDF"));
    CU_ASSERT(starts_with(name, "png", "\x89PNG"));
    CU_ASSERT(is_readable_svg(name));
    CU_ASSERT(starts_with(name, "gp", "# gnuplot"));
    char *data = figure_text(name, "tsv");
    CU_ASSERT(*data == '#' && !strstr(data, "nan") && !strstr(data, "inf"));
    free(data);
  }
  free(names);
}

TEST(the_data_are_the_interquartile_means_that_hand_calculation_gives) {
  news heard;
  ASSERT_OK(draw(delays, 2, NULL, "true", &heard, &err));
  /* Three seeds: nothing leaves at the ends, so the mean of 0.5, 0.75, 1; of two runs that are
   * alike the interval is a point. A point's x is the middle of its updates. */
  CU_ASSERT(has("eval_score", "\n0\tgrpo\t0\t0.125\t0.125\t0.125\n0\tgrpo\t1\t0.75\t0.5\t1\n"));
  CU_ASSERT(has("eval_score", "\n1\t\"it's \"\"{odd}\\t\\n_\\^@\"\t1\t0.625\t0.5\t0.75\n"));
  CU_ASSERT(has("training", "\n0\tgrpo\t1\t0\t0\t0\n0\tgrpo\t2\t100"));
  CU_ASSERT(has("training", "\n2\tgrpo\t1\t0.25\t0.25\t0.25\n"));
  CU_ASSERT(has("divergence", "\n0\tgrpo\t0\t0\t0\t0\n0\tgrpo\t600\t1\t1\t1\n"));
  CU_ASSERT(has("throughput_delay", "\n0\t\t0\t8\t\t\n0\t\t600\t7\t\t\n"));
  CU_ASSERT(says("staleness", "x_high[1] = 2.68")); /* the last bar, of 2, ends before 2.5 */
  CU_ASSERT(has("staleness", "\n0\tsimulated\t0\t0.25\t30\n0\tsimulated\t1\t0.5\t60\n"));
  CU_ASSERT(has("best_last", "\n0\tdr_grpo\t2\t0.75\t0.5\t1\n"));
  CU_ASSERT(has("best_last", "\n2\tgrpo\t1\t0.625\t0.375\t0.875\n"));
  /* Best 0.75 at update 1, last 0.625 at update 2. */
  CU_ASSERT(has("gap", "\n0\tgrpo\t1\t0.75\t2\t0.625\n"));
  CU_ASSERT(has("dumbbells", "\n0\tgrpo\t1\t0.75\t0.5\t1\t0.625\t0.375\t0.875\n"));
  /* Staleness is 2 in all updates; of three runs at KL 0 and three at 1 the mean of the middle
   * four.
   */
  CU_ASSERT(has("by_staleness", "\n0\tgrpo\t2\t0.5\t") && has("by_staleness", "\t6\n"));
  CU_ASSERT(has("sensitivity", "\n0\tgrpo\t600\t0.75\t0.5\t1\n"));
  CU_ASSERT(has("heat", "\n0\tcell\t-0.5\t0.5\t-1.5\t-0.5\t0.75\n"));
}

/* One algorithm, two seeds, a thousand updates: KL 0.125, and 0.875 at update 500. */
static results *spiked_results(void) {
  enum { UPDATES = 1000, SPIKE = 500 };
  results *r = results_new("spiked");
  step_record *steps = calloc(UPDATES, sizeof *steps);
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  CU_ASSERT_PTR_NOT_NULL_FATAL(steps);
  for (int i = 0; i < UPDATES; i++) {
    steps[i].step = i + 1;
    metrics_clear(steps[i].metric);
    steps[i].metric[METRIC_STALENESS] = 2 + i % 2;
    steps[i].metric[METRIC_KL_EXACT] = i + 1 == SPIKE ? 0.875 : 0.125;
  }
  for (uint64_t seed = 0; seed < 2; seed++)
    ASSERT_OK(results_add(r,
                          &(run_record){.algorithm = "grpo",
                                        .swept = "{}",
                                        .seed = seed,
                                        .lr = 0.1,
                                        .status = RUN_DONE,
                                        .steps = steps,
                                        .n_steps = UPDATES},
                          &err));
  free(steps);
  ASSERT_OK(results_arrange(r, &err));
  return r;
}

/* Of the 60 runs, those of the second setting have a positive KL and a variance, but for one that
 * is not finite; none has an estimation error. */
TEST(relations_say_of_which_runs_they_are) {
  news heard;
  ASSERT_OK(draw(delays, 2, "relations", "true", &heard, &err));
  CU_ASSERT(says("relations", "of 60 those with positive values: 29, 0 and 0"));
  CU_ASSERT(says("relations", "set clip two"));
}

/* Gradient norms of 1 and 1e-9: an axis of six decades shows the one. */
TEST(a_logarithmic_axis_says_that_it_does_not_show_all_values) {
  results *r = results_new("decades");
  step_record steps[2];
  for (int i = 0; i < 2; i++) {
    steps[i] = (step_record){.step = i + 1};
    metrics_clear(steps[i].metric);
    steps[i].metric[METRIC_GRAD_NORM] = i == 0 ? 1 : 1e-9;
  }
  const run_record run = {
      .algorithm = "grpo", .swept = "{}", .lr = 0.1, .steps = steps, .n_steps = 2};
  ASSERT_OK(results_add(r, &run, &err));
  ASSERT_OK(results_arrange(r, &err));
  figure_request q = {.folder = folder, .only = "training", .gnuplot = "true", .script = script};
  remove_figures();
  ASSERT_OK(figures_draw(r, NULL, &q, &err));
  CU_ASSERT(says("training", "Logarithmic axes show 6 decades"));
  results_free(r);
}

/* Three runs that come from 0 to 1 in an hour; the run of gepo never does. */
TEST(a_time_to_a_score_is_drawn_where_the_mean_is_finite) {
  results *r = results_new("times");
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (uint64_t seed = 0; seed < 4; seed++) {
    const eval_record evals[] = {{0, 0, 0}, {4, 3600, seed < 3 ? 1 : 0}};
    ASSERT_OK(results_add(r,
                          &(run_record){.algorithm = seed < 3 ? "grpo" : "gepo",
                                        .swept = "{}",
                                        .seed = seed,
                                        .lr = 0.1,
                                        .status = RUN_DONE,
                                        .evals = evals,
                                        .n_evals = 2},
                          &err));
  }
  ASSERT_OK(results_arrange(r, &err));
  figure_request q = {
      .folder = folder, .only = "time_to_score", .gnuplot = "true", .script = script};
  remove_figures();
  ASSERT_OK(figures_draw(r, NULL, &q, &err));
  CU_ASSERT(has("time_to_score", "\n0\tgrpo\t1\t1\t1\t1\t0\t3\n"));
  CU_ASSERT(has("time_to_score", "\n0\tgepo\t2\t\t\t\t1\t1\n"));
  results_free(r);
}

/* Curves go on as the mean of the other runs, and points of last scores are of the others. */
TEST(runs_that_are_not_finite_are_counted_below_the_figure) {
  static const char *const of[] = {"eval_score",  "training",  "gap",
                                   "sensitivity", "dumbbells", "best_last"};
  news heard;
  ASSERT_OK(draw(delays, 2, NULL, "true", &heard, &err));
  for (size_t i = 0; i < sizeof of / sizeof *of; i++)
    CU_ASSERT(says(of[i], "absent after it: 2 of 60"));
  CU_ASSERT(has("sensitivity", "\n1\t\"it's \"\"{odd}\\t\\n_\\^@\"\t600\t0.5\t0.375\t0.625\n"));
}

TEST(a_curve_of_means_shows_every_update_too_and_says_what_it_averages) {
  results *r = spiked_results();
  figure_request q = {.folder = folder, .only = "window", .script = script};
  remove_figures();
  ASSERT_OK(figures_draw(r, NULL, &q, &err));
  CU_ASSERT(has("window", "# Each point averages 25 updates of a run (median for variances); thin "
                          "lines show every update: the second half of the blocks\n"));
  CU_ASSERT(has("window", "\n1\tgrpo\t488\t0.155\t0.155\t0.155\n"));
  CU_ASSERT(has("window", "\n1\tgrpo\t500\t0.875\t\t\n1\tgrpo\t501\t0.125\t\t\n"));
  CU_ASSERT(says("window", "= 'Each point averages 25 updates of a run"));
  CU_ASSERT(says("window", "\nraw = 1\n"));
  CU_ASSERT(starts_with("window", "pdf", "%PDF"));
  q.points = 300;
  ASSERT_OK(figures_draw(r, NULL, &q, &err));
  CU_ASSERT(has("window", "# Each point averages up to 4 updates"));
  q.points = FIGURE_EVERY_UPDATE;
  ASSERT_OK(figures_draw(r, NULL, &q, &err));
  CU_ASSERT(has("window", "\n1\tgrpo\t500\t0.875\t\t\n1\tgrpo\t501\t0.125\t\t\n"));
  char *data = figure_text("window", "tsv");
  CU_ASSERT_PTR_NULL(strstr(data, "averages"));
  free(data);
  results_free(r);
}

/* ~/.gnuplot of a user must not change a figure: this one takes 0 for "no value". */
TEST(the_users_settings_of_gnuplot_change_nothing) {
  const char *home = getenv("HOME");
  char *before = home ? strdup(home) : NULL, path[300];
  news heard;
  ASSERT_OK(draw(delays, 2, "divergence", NULL, &heard, &err));
  char *plain = figure_text("divergence", "svg");
  snprintf(path, sizeof path, "%s/.gnuplot", folder);
  FILE *f = fopen(path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  fputs("set datafile missing '0'\nset title 'mine'\n", f);
  fclose(f);
  char *own = realpath(folder, NULL);
  CU_ASSERT_EQUAL(setenv("HOME", own, 1), 0);
  free(own);
  results *r = made_results(delays, 2);
  ASSERT_OK(figures_draw(
      r, NULL, &(figure_request){.folder = folder, .only = "divergence", .script = script}, &err));
  results_free(r);
  char *with = figure_text("divergence", "svg");
  CU_ASSERT_STRING_EQUAL(plain, with);
  if (before) setenv("HOME", before, 1);
  unlink(path);
  free(plain), free(with), free(before);
}

TEST(notes_can_be_in_a_file_of_their_own) {
  static const char *const axes[] = {"{\"cluster.max_delay\":0}",   "{\"cluster.max_delay\":60}",
                                     "{\"cluster.max_delay\":120}", "{\"cluster.max_delay\":240}",
                                     "{\"cluster.max_delay\":480}", "{\"cluster.max_delay\":960}"};
  news heard;
  ASSERT_OK(draw(axes, 6, "best_last", "true", &heard, &err));
  CU_ASSERT(says("best_last", "= 'not shown: max delay 60 s; max delay 480 s"));
  CU_ASSERT(access(figure_path("best_last", "txt"), F_OK) != 0);
  results *r = made_results(axes, 6);
  figure_request q = {.folder = folder,
                      .only = "best_last,training",
                      .gnuplot = "true",
                      .script = script,
                      .no_notes = true};
  ASSERT_OK(figures_draw(r, NULL, &q, &err));
  char *text = figure_text("best_last", "txt"), *gp = figure_text("best_last", "gp");
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "not shown: max delay 60 s; max delay 480 s"));
  CU_ASSERT_PTR_NULL(strstr(gp, "not shown"));
  free(text), free(gp);
  /* A figure with its notes needs no file; an older one is removed. */
  q.no_notes = false;
  ASSERT_OK(figures_draw(r, NULL, &q, &err));
  CU_ASSERT(access(figure_path("best_last", "txt"), F_OK) != 0);
  results_free(r);
}

TEST(several_figures_can_be_asked_for) {
  gl_error err = {0};
  news heard;
  CU_ASSERT_EQUAL(draw(delays, 2, "heat,gap", "true", &heard, &err), GL_OK);
  CU_ASSERT_STRING_EQUAL(heard.drawn, "gap heat ");
  CU_ASSERT_EQUAL(draw(delays, 2, "heat,gapp", "true", &heard, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "there is no figure 'gapp'"));
}

TEST(windows_are_compared_at_the_largest_delay_and_losses_have_a_figure) {
  static const char *const windows[] = {"{\"cluster.max_delay\":0,\"cluster.window\":64}",
                                        "{\"cluster.max_delay\":600,\"cluster.window\":64}",
                                        "{\"cluster.max_delay\":600,\"cluster.window\":4}"};
  static const char *const losses[] = {"{\"cluster.down.loss\":0.1}", "{\"cluster.down.loss\":0}"};
  news heard;
  ASSERT_OK(draw(windows, 3, "window", NULL, &heard, &err));
  CU_ASSERT_STRING_EQUAL(heard.drawn, "window ");
  /* Rows staleness, KL, score; columns window 4 (setting 2), window 64 (setting 1). */
  CU_ASSERT(has("window", "\n2\tgrpo\t1\t2\t2\t2\n"));
  CU_ASSERT(has("window", "\n3\tgrpo\t1\t1\t1\t1\n"));
  char *gp = figure_text("window", "gp");
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'max delay 600 s, window 4 updates'"));
  /* What gnuplot's enhanced text would take for marks is escaped. */
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "it'.\"'\".'s \"\\{odd\\}\\\\t\\\\n\\_\\\\\\^\\@'"));
  free(gp);
  /* One axis at a time: at the other one's base, three runs and not all six of that delay. */
  ASSERT_OK(draw(windows, 3, "sensitivity", NULL, &heard, &err));
  CU_ASSERT(has("sensitivity", "\n0\tgrpo\t600\t0.75\t0.5\t1\n"));
  CU_ASSERT(says("sensitivity", "One field at a time"));
  ASSERT_OK(draw(losses, 2, "throughput_loss", NULL, &heard, &err));
  CU_ASSERT(has("throughput_loss", "\n0\t\t0\t7\t\t\n0\t\t0.1\t8\t\t\n"));
}

/* Both axes have "delay" in their names: one is x, the other a setting like any other, and every
 * cell is drawn. */
TEST(two_axes_that_are_delays_are_two_axes) {
  static const char *const axes[] = {"{\"cluster.max_delay\":0,\"cluster.data_delay\":5}",
                                     "{\"cluster.max_delay\":0,\"cluster.data_delay\":10}",
                                     "{\"cluster.max_delay\":600,\"cluster.data_delay\":5}",
                                     "{\"cluster.max_delay\":600,\"cluster.data_delay\":10}"};
  news heard;
  ASSERT_OK(draw(axes, 4, NULL, "true", &heard, &err));
  CU_ASSERT_PTR_NULL(strstr(heard.not_shown, "delay 5 s"));
  /* KL is the setting's number; panels go through the quantities, then the data delays. */
  CU_ASSERT(has("divergence", "\n0\tgrpo\t0\t0\t0\t0\n0\tgrpo\t600\t2\t2\t2\n"));
  CU_ASSERT(has("divergence", "\n2\tgrpo\t0\t1\t1\t1\n2\tgrpo\t600\t3\t3\t3\n"));
  CU_ASSERT(says("divergence", "= 'data delay 10 s'"));
  CU_ASSERT(says("divergence", "= 'max delay [s]'"));
  CU_ASSERT(
      has("throughput_delay", "\n0\tdata delay 10 s\t0\t7\t\t\n0\tdata delay 10 s\t600\t5\t\t\n"));
  CU_ASSERT(says("best_last", "data delay 10 s"));
}

/* A truth value whose name has "delay" in it is no delay and has no unit. */
TEST(shared_delays_is_no_delay) {
  static const char *const axes[] = {"{\"cluster.shared_delays\":true}",
                                     "{\"cluster.shared_delays\":false}"};
  gl_error err = {0};
  news heard;
  CU_ASSERT_EQUAL(draw(axes, 2, "eval_score", "true", &heard, &err), GL_OK);
  CU_ASSERT(says("eval_score", "= 'shared delays true';"));
  CU_ASSERT_EQUAL(draw(axes, 2, "divergence", "true", &heard, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no delay is swept"));
}

/* Six settings have no room side by side; a distribution has no place on an axis of numbers. */
TEST(a_figure_names_the_settings_it_does_not_show) {
  static const char *const axes[] = {"{\"cluster.max_delay\":0}",   "{\"cluster.max_delay\":60}",
                                     "{\"cluster.max_delay\":120}", "{\"cluster.max_delay\":240}",
                                     "{\"cluster.max_delay\":480}", "{\"cluster.max_delay\":960}"};
  static const char *const dists[] = {
      "{\"cluster.delay\":0}", "{\"cluster.delay\":60}",
      "{\"cluster.delay\":{\"distribution\":\"uniform\",\"min\":1,\"max\":9}}"};
  news heard;
  ASSERT_OK(draw(axes, 6, "best_last", NULL, &heard, &err));
  CU_ASSERT_STRING_EQUAL(heard.not_shown, "best_last: max delay 60 s; max delay 480 s; "
                                          "best − last (0.125 everywhere)\n");
  CU_ASSERT(says("best_last", "= 'not shown: max delay 60 s; max delay 480 s"));
  CU_ASSERT(starts_with("best_last", "pdf", "%PDF"));
  ASSERT_OK(draw(axes, 6, "divergence", "true", &heard, &err));
  CU_ASSERT_PTR_NULL(strstr(heard.not_shown, "delay 5 s"));
  ASSERT_OK(draw(dists, 3, "throughput_delay", "true", &heard, &err));
  CU_ASSERT_PTR_NOT_NULL(strstr(heard.not_shown, "\"distribution\":\"uniform\""));
  CU_ASSERT(says("throughput_delay", "not shown: "));
}

/* The distribution of a setting is that of the whole value: what an inner distribution is called,
 * and where it stands in the text, does not matter. */
TEST(a_swept_dist_is_marked_by_its_own_name_and_not_by_that_of_a_dist_inside_it) {
  static const char *const dists[] = {
      "{\"cluster.delay\":{\"good\":{\"distribution\":\"constant\",\"value\":1},\"bad\":{"
      "\"distribution\":\"pareto\","
      "\"shape\":2,\"scale\":9},\"distribution\":\"gilbert_elliott\",\"to_bad\":0.1}}",
      "{\"cluster.delay\":{\"distribution\":\"uniform\",\"min\":1,\"max\":9}}"};
  news heard;
  ASSERT_OK(draw(dists, 2, "sensitivity", "true", &heard, &err));
  CU_ASSERT(says("sensitivity", "= 'gilbert\\_elliott'"));
  CU_ASSERT(says("sensitivity", "= 'uniform'"));
  char *gp = figure_text("sensitivity", "gp");
  CU_ASSERT_PTR_NULL(strstr(gp, "= 'constant'"));
  free(gp);
}

TEST(what_cannot_be_drawn_is_refused_with_a_reason) {
  gl_error err = {0};
  news heard;
  CU_ASSERT_EQUAL(draw(delays, 2, "windo", NULL, &heard, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "did you mean 'window'?"));
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(draw(delays, 2, "window", NULL, &heard, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cluster.window is not swept"));
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(draw(delays, 2, NULL, "no-such-gnuplot", &heard, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "install the package gnuplot-nox"));
  CU_ASSERT(starts_with("best_last", "tsv", "# panel") && starts_with("training", "gp", "# gnu"));
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(draw(delays, 2, NULL, "false", &heard, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "eval_score.gp"));
}

TEST(nothing_is_drawn_against_a_staleness_that_all_batches_have) {
  results *r = made_results(delays, 2);
  news heard = {0};
  figure_request q = {.folder = folder,
                      .only = "by_staleness",
                      .gnuplot = "true",
                      .script = script,
                      .report = report,
                      .noted = noted,
                      .context = &heard};
  gl_error err = {0};
  CU_ASSERT_EQUAL(figures_draw(r, NULL, &q, &err), GL_OK);
  for (size_t i = 0; i < r->n_runs; i++)
    for (size_t k = 0; k < r->runs[i].n_steps; k++)
      r->runs[i].steps[k].metric[METRIC_STALENESS] = 0;
  CU_ASSERT_EQUAL(figures_draw(r, NULL, &q, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "all batches have one staleness"));
  results_free(r);
}

TEST(a_folder_that_cannot_be_made_or_written_is_named) {
  results *r = made_results(delays, 1);
  figure_request q = {.folder = "build/figures_test_file/in", .script = script};
  gl_error err = {0};
  fclose(fopen("build/figures_test_file", "w"));
  CU_ASSERT_EQUAL(figures_draw(r, NULL, &q, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "build/figures_test_file"));
  unlink("build/figures_test_file");
  q.folder = "/proc/self";
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(figures_draw(r, NULL, &q, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/proc/self/eval_score.tsv"));
  results_free(r);
}

static const char csv[] = "build/figures_test.csv";

static void write_csv(const char *text) {
  FILE *f = fopen(csv, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  fputs(text, f);
  fclose(f);
}

TEST(schedules_meet_a_measured_run_without_a_study) {
  write_csv("step,run - train/step_diff\n1,0\n2,1\n3,1\n4,3\n");
  uint64_t count[] = {1, 2, 1};
  char heading[] = "window 4";
  const staleness_histogram h = {heading, count, 3};
  staleness_histogram measured;
  figure_request q = {.folder = folder, .script = script};
  ASSERT_OK(staleness_measured(&measured, csv, NULL, &err));
  ASSERT_OK(figure_of_staleness(&h, 1, &measured, &q, &err));
  staleness_histogram_fini(&measured);
  CU_ASSERT(has("staleness", "\n0\tsimulated\t1\t0.5\t2\n"));
  CU_ASSERT(has("staleness", "\n0\tmeasured: run\t1\t0.5\t2\n0\tmeasured: run\t2\t0\t0\n"));
  char *gp = figure_text("staleness", "gp");
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'measured: run'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'KS 0.250'"));
  free(gp);
  CU_ASSERT(starts_with("staleness", "pdf", "%PDF"));
  unlink(csv);
  remove_figures();
}

/* The first of several runs would be as good a guess as any, and a wrong one goes unseen. */
TEST(which_of_several_measured_runs_is_meant_must_be_said) {
  const struct {
    const char *text, *run, *says;
  } wrong[] = {
      {"s,r - train/step_diff\n1,-1\n", NULL, "staleness -1 of run r"},
      {"s,r - train/loss\n1,0.5\n", NULL, "step_diff or staleness"},
      {"s,[p]a - step_diff,b - step_diff\n1,2,3\n", NULL, "'[p]a - step_diff', 'b - step_diff'"},
      {"s,[p]a - step_diff,b - step_diff\n1,2,3\n", "c", "no run 'c'"},
      {"s,[p]a - step_diff,[q]a - step_diff\n1,2,3\n", "a", "'[q]a - step_diff'"},
      {"s,a - step_diff\n1,\n", NULL, "run a has no staleness"}};
  const struct {
    const char *run;
    size_t staleness;
  } right[] = {{"[p]a", 2}, {"[q]a", 3}, {"b", 4}, {"b - t/step_diff", 4}};
  staleness_histogram m;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    gl_error err = {0};
    write_csv(wrong[i].text);
    CU_ASSERT_EQUAL(staleness_measured(&m, csv, wrong[i].run, &err), GL_EINPUT);
    if (!strstr(err.text, wrong[i].says)) fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wrong[i].says));
    staleness_histogram_fini(&m);
  }
  write_csv("s,[p]a - t/step_diff,[q]a - t/step_diff,b - t/step_diff\n1,2,3,4\n");
  for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
    gl_error err = {0};
    CU_ASSERT_EQUAL(staleness_measured(&m, csv, right[i].run, &err), GL_OK);
    CU_ASSERT(m.n == right[i].staleness + 1 && m.count[right[i].staleness] == 1);
    staleness_histogram_fini(&m);
  }
  unlink(csv);
}
