/* gepolab published: cases that can be worked out by hand, and recipes that cannot be compared. */
#include "experiments/clock/published.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

SUITE("cli: published");

/* A response takes 10 s. In turns an update follows it; a step behind, the longer of both counts,
 * and with two updates a batch the times of two are compared. */
static const char by_hand[] =
    "name: by_hand\nsteps: 40\nworld: {kind: bandit}\ntrain: {groups: 4, group_size: 2}\nsweep:\n"
    "  cluster:\n"
    "  - {preset: sync, lengths: 100, tokens_per_s: 10, learner: {step: 5}, compare: {seconds: 30, "
    "name: in turns, source: 'a table, row 1'}}\n"
    "  - {preset: one_step_off, lengths: 100, tokens_per_s: 10, learner: {step: 5}, compare: "
    "{seconds: 10, name: a step behind}}\n"
    "  - {preset: roll_flash, samplers: 1, concurrency: 8, lengths: 100, tokens_per_s: 10, "
    "learner: {step: 20}, compare: {seconds: 60, updates: 2, name: its learner, fitted: true}}\n";

TEST(seconds_and_speedups_are_those_worked_out_by_hand) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_write(cli_path(path, folder, "by_hand.yaml"), by_hand, strlen(by_hand));
  cli_result r = CLI("published", path, "--json");
  cJSON *json = json_parsed(r.out);
  const cJSON *cases = member_at(json, "cases");
  CU_ASSERT_EQUAL(r.code, 0);
  ASSERT_CLOSE(number_at(cases, "in turns.simulated_s"), 15, 1e-12);
  ASSERT_CLOSE(number_at(cases, "a step behind.simulated_s"), 10, 1e-12);
  ASSERT_CLOSE(number_at(cases, "a step behind.simulated_speedup"), 1.5, 1e-12);
  ASSERT_CLOSE(number_at(cases, "a step behind.published_speedup"), 3, 1e-12);
  ASSERT_CLOSE(number_at(cases, "a step behind.off_by"), -0.5, 1e-12);
  ASSERT_CLOSE(number_at(cases, "its learner.simulated_s"), 40, 1e-12);
  ASSERT_CLOSE(number_at(cases, "its learner.simulated_speedup"), 15. / 40, 1e-12);
  CU_ASSERT_EQUAL(number_at(json, "asynchronous"), 2);
  CU_ASSERT_EQUAL(number_at(json, "never_fitted.cases"), 1);
  ASSERT_CLOSE(number_at(json, "never_fitted.median_error"), 0.5, 1e-12);
  CU_ASSERT_EQUAL(number_at(json, "within_20_percent"), 0);
  r = CLI("published", path, "--format", "markdown");
  CU_ASSERT_PTR_NOT_NULL(
      strstr(r.out, "| in turns | `sync` | 30.0 s | 15.0 s | | | | a table, row 1 |"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "| 10.0 s | 10.0 s | 3.00 | 1.50 | -50 % |"));
  r = CLI("published", path, "--format", "latex");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "a step behind & \\texttt{one\\_step\\_off} & 3.00 & 1.50"));
  r = CLI("sim", path, "cluster={preset: sync, generation: 10, compare: {seconds: 7, updates: 3}}");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "120 s for 3 updates, measured 7 s"));
}

TEST(what_cannot_be_compared_is_refused_at_its_place) {
  static const struct {
    const char *clusters, *says;
  } cases[] = {
      {"[{preset: fifo, compare: {seconds: 3}}]", "not fifo"},
      {"[{preset: sync}]", "has no published time"},
      {"[{preset: sync, compare: {seconds: 3}}, {preset: fifo, compare: {seconds: 2}}]",
       "two cases called 'measured'"},
      {"[{preset: sync, compare: {updates: 3, histogram: [1]}}]", "give seconds too"},
      {"[{preset: sync, compare: {name: here}}]", "or the seconds of updates"},
      {"[{preset: sync, compare: {seconds: -3}}]", "seconds"},
      {"7", "lists clusters"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char folder[64], path[128], text[400];
    cli_scratch_make(folder);
    const int n = snprintf(text, sizeof text, "name: wrong\nsteps: 4\nsweep:\n  cluster: %s\n",
                           cases[i].clusters);
    cli_write(cli_path(path, folder, "wrong.yaml"), text, (size_t)n);
    cli_result r = CLI("published", path);
    CU_ASSERT_EQUAL(r.code, 2);
    if (strstr(r.err, cases[i].says) == NULL) fprintf(stderr, "%s", r.err);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.err, cases[i].says));
    CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "wrong.yaml:"));
  }
  cli_result r = CLI("published", "published_areall");
  CU_ASSERT_EQUAL(r.code, 2);
}

/* The table of declared predictions is printed with the cases that come with the program. */
static void check_declared(const cJSON *json) {
  const cJSON *item = NULL;
  size_t n = 0, unseen = 0, unfitted = 0;
  cJSON_ArrayForEach(item, member_at(json, "cases")) {
    const cJSON *fitted = cJSON_GetObjectItem(item, "fitted"); /* cases in turns have none */
    unfitted += fitted != NULL && !cJSON_IsTrue(fitted);
  }
  cJSON_ArrayForEach(item, member_at(json, "predictions")) {
    const double measured = number_at(item, "measured"), predicted = number_at(item, "predicted");
    ASSERT_CLOSE(number_at(item, "off_by"), predicted / measured - 1, 1e-9);
    CU_ASSERT(number_at(item, "least") <= predicted && predicted <= number_at(item, "largest"));
    CU_ASSERT(text_at(item, "source")[0] != '\0');
    unseen += !cJSON_IsTrue(member_at(item, "seen"));
    ++n;
  }
  CU_ASSERT(n >= 27);
  CU_ASSERT_EQUAL(number_at(json, "never_fitted.unseen"), (double)unseen);
  CU_ASSERT(unseen < n && unfitted > 0); /* those seen before are in neither median */
  CU_ASSERT_EQUAL(number_at(json, "never_fitted.cases"), (double)(unfitted + unseen));
}

/* The cases in turns are given by their parts, so that the clock has nothing to say about them. */
TEST(cases_in_turns_take_what_was_published) {
  cJSON *json = CLI_JSON("published", "steps=40", "--json"), *item = NULL;
  size_t in_turns = 0, others = 0;
  cJSON_ArrayForEach(item, member_at(json, "cases")) {
    const double published = number_at(item, "published_s");
    const double simulated = number_at(item, "simulated_s");
    const char *preset = text_at(item, "preset");
    CU_ASSERT(text_at(item, "source")[0] != '\0');
    CU_ASSERT(simulated > 0);
    if (strcmp(preset, "sync") != 0) {
      ++others;
      continue;
    }
    ++in_turns;
    ASSERT_CLOSE(simulated / published, 1, 1e-3);
  }
  CU_ASSERT(in_turns >= 11 && others >= 20);
  check_declared(json);
}

TEST(wrong_tables_of_predictions_are_refused) {
  static const char *const wrong[] = {"case\tquantity\n", "what\n",
                                      "case\tquantity\tunit\tpredicted\tleast\tlargest\tmeasured\ts"
                                      "een\tsource\na\tb\ts\t1\t1\t1\tx\tno"
                                      "\tc\n",
                                      "case\tquantity\tunit\tpredicted\tleast\tlargest\tmeasured\ts"
                                      "een\tsource\na\tb\ts\t1\t1\t1\t1\tmaybe"
                                      "\tc\n",
                                      "case\tquantity\tunit\tpredicted\tleast\tlargest\tmeasured\ts"
                                      "een\tsource\na\tb\ts\t1\t1\t1\t1\tno"
                                      "\tc\td\n"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    declared_predictions p;
    gl_error err = {0};
    CU_ASSERT_EQUAL(predictions_read(&p, wrong[i], "wrong.tsv", &err), GL_EINPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "wrong.tsv:"));
    predictions_fini(&p);
  }
}

TEST(the_figure_has_a_pair_for_every_asynchronous_case) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_write(cli_path(path, folder, "by_hand.yaml"), by_hand, strlen(by_hand));
  cli_result r = CLI("published", path, "-f", folder);
  CU_ASSERT_EQUAL(r.code, 0);
  FILE *f = fopen(cli_path(path, folder, "speedups.tsv"), "r");
  char text[1000] = "";
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  CU_ASSERT(fread(text, 1, sizeof text - 1, f) > 0);
  fclose(f);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "0\ta step behind\t1\t3\t\t\t1.5\t\t\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "0\tits learner\t2\t0.5\t\t\t0.375\t\t\n"));
  CU_ASSERT_PTR_NULL(strstr(text, "in turns"));
}
