/* gepolab analyze: tables of outcomes, effects, announcements and contrasts of small studies that
 * were really run. */
#include "core/base/json.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

SUITE("cli: outcomes");

/* gepolab outcomes, effects and announcements on small studies that were really run. */

/* A bandit that any rate solves but a tiny one, which never learns. */
static const char recipe[] =
    "name: fates\nsteps: 40\neval_every: 5\nworld: {kind: bandit, rewards: [1, 0, 0, 0]}\n"
    "train: {groups: 4, group_size: 8}\n"
    "sweep: {algorithm: [grpo], optimizer.lr: [1.0e-9, 0.5], seed: [1, 2, 3]}\n";

TEST(runs_are_judged_and_doses_listed) {
  char folder[64], at[128], study[128];
  cli_scratch_make(folder);
  cli_write(cli_path(at, folder, "fates.yaml"), recipe, sizeof recipe - 1);
  cli_path(study, folder, "study.db");
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study));
  cli_result text = CLI("outcomes", study), json = CLI("outcomes", study, "--json");
  CU_ASSERT_EQUAL(text.code, 0);
  cli_result features = CLI("features", study, "--ends", "5", "--until", "30");
  CU_ASSERT_EQUAL(features.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(features.out, "slow spread"));
  CU_ASSERT_PTR_NOT_NULL(strstr(features.out, "grad_norm"));
  CU_ASSERT_PTR_NOT_NULL(strstr(features.out, "never learned"));
  cli_result levels = CLI("outcomes", study, "--levels");
  CU_ASSERT_PTR_NOT_NULL(strstr(levels.out, "Runs with fewer than 10\nevaluations: 6."));
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "never learned"));
  cJSON *d = json.code == 0 ? json_parsed(json.out) : NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(d);
  const cJSON *cells = member_at(d, "cells");
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(cells), 1);
  const cJSON *cell = cJSON_GetArrayItem(cells, 0);
  const cJSON *outcomes = member_at(cell, "outcomes");
  CU_ASSERT_EQUAL(number_at(cell, "runs"), 6);
  CU_ASSERT_EQUAL(number_at(outcomes, "never learned"), 3);
  CU_ASSERT_EQUAL(number_at(outcomes, "survived"), 3);
  const cJSON *rates = member_at(cell, "doses");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(rates), 2);
  CU_ASSERT_EQUAL(number_at(cJSON_GetArrayItem(rates, 0), "dose"), 1e-9);
  CU_ASSERT_EQUAL(number_at(cJSON_GetArrayItem(rates, 1), "runs"), 3);
}

/* Two factors in a design with a start for each block. */
static const char design[] =
    "name: screen\nsteps: 20\neval_every: 5\nworld: {kind: bandit, rewards: [1, 0, 0, 0]}\n"
    "train: {groups: 2, group_size: 8}\n"
    "sweep: {algorithm: [grpo, gepo], factorial: {factors: {A: {train.group_size: [4, 8]}, "
    "B: {optimizer.lr: [0.1, 0.5]}, C: {sampling.temperature: [1, 0.6]}}}, seed: [1, 2]}\n";

TEST(effects_of_a_design_are_told) {
  char folder[64], at[128], study[128];
  cli_scratch_make(folder);
  cli_write(cli_path(at, folder, "screen.yaml"), design, sizeof design - 1);
  cli_path(study, folder, "study.db");
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study));
  cli_result json = CLI("effects", study, "--json"), text = CLI("effects", study, "--most", "2");
  cJSON *d = json.code == 0 ? json_parsed(json.out) : NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(d);
  const cJSON *fits = member_at(d, "fits");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(fits), 9);
  const cJSON *first = cJSON_GetArrayItem(fits, 0);
  CU_ASSERT_EQUAL(number_at(first, "runs"), 16);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(first, "effects")), 6);
  CU_ASSERT_EQUAL(text.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "gepo less grpo"));
}

/* A large rate turns the policy to some arm for good with its first updates, as noisy rewards say;
 * a small one learns. */
static const char falling[] =
    "name: falls\nsteps: 60\neval_every: 4\n"
    "world: {kind: bandit, rewards: [1, 0, 0, 0], noise: 2}\n"
    "optimizer: {kind: sgd}\ntrain: {groups: 2, group_size: 4}\n"
    "sweep: {algorithm: [dr_grpo], optimizer.lr: [0.2, 20], seed: [1, 2, 3, 4, 5, 6, 7, 8]}\n";

TEST(announcements_are_told_of_runs_that_fall) {
  char folder[64], at[128], study[128];
  cli_scratch_make(folder);
  cli_write(cli_path(at, folder, "falls.yaml"), falling, sizeof falling - 1);
  cli_path(study, folder, "study.db");
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study));
  cli_result json = CLI("announcements", study, "--json", "--window", "2"),
             text = CLI("announcements", study, study, "--false-alarms", "20"),
             latex = CLI("announcements", study, "--format", "latex");
  cJSON *d = json.code == 0 ? json_parsed(json.out) : NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(d);
  CU_ASSERT(number_at(d, "fallen") > 0 && number_at(d, "survived") > 0);
  CU_ASSERT_EQUAL(number_at(d, "fallen") + number_at(d, "survived") + number_at(d, "left_out"), 16);
  const cJSON *metrics = member_at(d, "metrics"), *one;
  int cosine = 0;
  cJSON_ArrayForEach(one, metrics) {
    const cJSON *auc = member_at(one, "auc");
    /* a longer watch of those that survive can take both sides below one half */
    CU_ASSERT(number_at(auc, "value") > 0 && number_at(auc, "value") <= 1);
    const char *name = text_at(one, "metric");
    cosine += strcmp(name, "grad_cosine") == 0;
  }
  CU_ASSERT_EQUAL(cosine, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "falls, falls: which metrics announce falls."));
  CU_ASSERT_PTR_NOT_NULL(strstr(latex.out, "\\begin{tabular}"));
  CU_ASSERT(CLI_GIVES(2, "announcements", study, "--false-alarms", "100"));
  CU_ASSERT(CLI_GIVES(2, "announcements", study, "--algorithm", "gepo"));
  CU_ASSERT(CLI_GIVES(2, "announcements", study, "--of", "optimizer.lr"));
  CU_ASSERT(CLI_GIVES(2, "announcements", study, "--of", "world.kind=mdp"));
  cli_result chosen = CLI("announcements", study, "-a", "dr_grpo", "-o", "optimizer.lr=20");
  CU_ASSERT(chosen.code == 0 || strstr(chosen.err, "fell") != NULL);
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "The same setting, the same update"));
}

TEST(what_is_no_study_is_refused) {
  CU_ASSERT(CLI_GIVES(1, "outcomes", "build/no/such.db"));
  CU_ASSERT(CLI_GIVES(2, "outcomes"));
  CU_ASSERT(CLI_GIVES(1, "features", "build/no/such.db"));
  CU_ASSERT(CLI_GIVES(2, "features"));
  CU_ASSERT(CLI_GIVES(1, "announcements", "build/no/such.db"));
  CU_ASSERT(CLI_GIVES(2, "outcomes", "README.md", "--format", "word"));
}

/* A factor may set a whole section, in which some fields are the same at both levels. */
TEST(a_factor_may_be_a_section) {
  static const char sections[] =
      "name: sections\nsteps: 20\neval_every: 5\nworld: {kind: bandit, rewards: [1, 0, 0, 0]}\n"
      "sweep: {algorithm: [grpo, gepo], seed: [1, 2, 3], factorial: {factors: {A: "
      "{train.group_size: [4, 8]}, B: {cluster: [{preset: sync, generation: 1}, {preset: fifo, "
      "samplers: 1, generation: 1, delay: 3}]}}}}\n";
  char folder[64], at[128], study[128];
  cli_scratch_make(folder);
  cli_write(cli_path(at, folder, "sections.yaml"), sections, sizeof sections - 1);
  cli_path(study, folder, "study.db");
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study));
  cli_result text = CLI("effects", study);
  CU_ASSERT_EQUAL(text.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "group size"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "preset"));
  CU_ASSERT_PTR_NULL(strstr(text.out, "generation"));
}

SUITE("cli: contrasts");

/* gepolab contrasts: declared in a recipe, checked before the sweep, told afterwards. */

/* A bandit that any rate solves but a tiny one, which never learns. */
#define STUDY                                                                                      \
  "name: rates\nsteps: 40\neval_every: 5\nworld: {kind: bandit, rewards: [1, 0, 0, 0]}\n"          \
  "train: {groups: 4, group_size: 8}\n"                                                            \
  "sweep: {algorithm: [grpo], optimizer.lr: [1.0e-9, 0.5], seed: [1, 2, 3, 4, 5, 6]}\n"
static const char declared[] =
    STUDY "contrasts:\n  - {name: rate, measure: last, of: {algorithm: grpo, optimizer.lr: 0.5},"
          " against: {algorithm: grpo, optimizer.lr: 1.0e-9}}\n";

TEST(declared_contrasts_are_told) {
  char folder[64], at[128], study[128];
  cli_scratch_make(folder);
  cli_write(cli_path(at, folder, "rates.yaml"), declared, sizeof declared - 1);
  cli_path(study, folder, "study.db");
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study));
  cli_result text = CLI("contrasts", study, at), json = CLI("contrasts", study, at, "--json");
  CU_ASSERT_EQUAL(text.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "rate"));
  cJSON *d = json.code == 0 ? json_parsed(json.out) : NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(d);
  const cJSON *list = member_at(d, "contrasts");
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(list), 1);
  const cJSON *one = cJSON_GetArrayItem(list, 0);
  CU_ASSERT_EQUAL(number_at(one, "pairs"), 6);
  CU_ASSERT_EQUAL(number_at(one, "p"), 0.03125);
}

TEST(an_arm_may_name_a_field_of_its_algorithm) {
  static const char right[] =
      "name: widths\nsteps: 4\nworld: {kind: bandit, rewards: [1, 0]}\n"
      "sweep: {algorithm: [grpo], algorithm.eps_low: [0.1, 0.2], seed: [1, 2]}\n"
      "contrasts: [{measure: last_level, name: width, of: {algorithm.eps_low: 0.1}, against: "
      "{algorithm.eps_low: 0.2}}]\n";
  char folder[64], at[128], study[128], wrong[sizeof right];
  cli_scratch_make(folder);
  cli_write(cli_path(at, folder, "widths.yaml"), right, sizeof right - 1);
  cli_path(study, folder, "study.db");
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study));
  CU_ASSERT(CLI_GIVES(0, "contrasts", study, at));
  memcpy(wrong, right, sizeof right);
  memcpy(strstr(strstr(wrong, "against"), "eps_low"), "eps_lwo", 7);
  cli_write(at, wrong, sizeof wrong - 1);
  CU_ASSERT(CLI_GIVES(2, "sweep", at, "-o", study));
}

/* A study that sweeps a clip that is open above: canonical recipes write infinity as 1e999. */
TEST(infinite_values_of_an_axis_are_read_back) {
  static const char open[] = "name: open\nsteps: 4\nworld: {kind: bandit, rewards: [1, 0]}\n"
                             "sweep: {algorithm: [{base: grpo, eps_high: .inf}, grpo], "
                             "train.groups: [1, 2], seed: [1, 2]}\n";
  char folder[64], at[128], study[128];
  cli_scratch_make(folder);
  cli_write(cli_path(at, folder, "open.yaml"), open, sizeof open - 1);
  cli_path(study, folder, "study.db");
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study));
  CU_ASSERT(CLI_GIVES(0, "analyze", study));
  CU_ASSERT(CLI_GIVES(0, "outcomes", study, "--json"));
}

/* The arms changed places after the runs. */
static const char written_later[] =
    STUDY "contrasts:\n  - {name: rate, measure: last, of: {algorithm: grpo, optimizer.lr: 1.0e-9},"
          " against: {algorithm: grpo, optimizer.lr: 0.5}}\n";

TEST(a_contrast_that_was_written_after_the_runs_is_called_so) {
  char folder[64], at[128], study[128];
  cli_scratch_make(folder);
  cli_write(cli_path(at, folder, "rates.yaml"), declared, sizeof declared - 1);
  cli_path(study, folder, "study.db");
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study));
  cli_result before = CLI("contrasts", study, at);
  cli_write(at, written_later, sizeof written_later - 1);
  cli_result after = CLI("contrasts", study, at);
  CU_ASSERT_PTR_NOT_NULL(strstr(before.out, "before the runs"));
  CU_ASSERT_PTR_NULL(strstr(before.out, "after the runs"));
  CU_ASSERT_PTR_NOT_NULL(strstr(after.out, "after the runs"));
  CU_ASSERT_PTR_NOT_NULL(strstr(after.out, "exploratory"));
}

/* The number of contrasts that are called so. */
static int written(const char *study, const char *from, const char *when) {
  const cJSON *list = member_at(CLI_JSON("contrasts", study, from, "--json"), "contrasts"), *one;
  int n = 0;
  cJSON_ArrayForEach(one, list) n += strcmp(text_at(one, "written"), when) == 0;
  return n;
}

TEST(a_contrast_that_a_later_sweep_adds_is_written_after_the_runs) {
  static const char other[] = "  - {name: level, measure: last_level, of: {algorithm: grpo, "
                              "optimizer.lr: 0.5}, against: {algorithm: grpo, optimizer.lr: "
                              "1.0e-9}}\n";
  char folder[64], at[128], both_at[128], study[128], text[sizeof declared + sizeof other];
  cli_scratch_make(folder);
  cli_write(cli_path(at, folder, "rates.yaml"), declared, sizeof declared - 1);
  const int n = snprintf(text, sizeof text, "%s%s", declared, other);
  cli_write(cli_path(both_at, folder, "both.yaml"), text, (size_t)n);
  cli_path(study, folder, "study.db");
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study, "sweep.seed=[1,2]"));
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study));
  CU_ASSERT_EQUAL(written(study, at, "before the runs"), 1);
  CU_ASSERT(CLI_GIVES(0, "sweep", both_at, "-o", study, "--replace-plan"));
  CU_ASSERT(CLI_GIVES(0, "sweep", both_at, "-o", study));
  CU_ASSERT_EQUAL(written(study, both_at, "before the runs"), 1);
  CU_ASSERT_EQUAL(written(study, both_at, "after the runs"), 1);
}

/* Half of the cells: gepo's are missing. */
TEST(contrasts_wait_for_planned_cells_alone) {
#define HALF(of)                                                                                   \
  "name: half\nsteps: 4\nworld: {kind: bandit, rewards: [1, 0]}\n"                                 \
  "sweep: {seed: [1, 2], algorithm: [grpo, gepo]}\n"                                               \
  "contrasts: [{name: c, measure: last, of: {algorithm: " of "}, against: {algorithm: grpo}}]\n"
  static const char right[] = HALF("gepo"), wrong[] = HALF("geop");
  char folder[64], at[128], wrong_at[128], study[128], half[160];
  cli_scratch_make(folder);
  cli_write(cli_path(at, folder, "half.yaml"), right, sizeof right - 1);
  cli_write(cli_path(wrong_at, folder, "wrong.yaml"), wrong, sizeof wrong - 1);
  cli_path(study, folder, "study.db");
  snprintf(half, sizeof half, "%s.shard0", study);
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study, "--shard", "0/2"));
  REFUSED(2, "--unfinished", "contrasts", half, at);
  CU_ASSERT(CLI_GIVES(0, "contrasts", half, at, "--unfinished"));
  cli_result r = CLI("contrasts", half, wrong_at);
  CU_ASSERT_PTR_NULL(strstr(r.err, "--unfinished"));
  REFUSED(2, "algorithm = geop", "contrasts", half, wrong_at, "--unfinished");
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study));
  REFUSED(2, "algorithm = geop", "contrasts", study, wrong_at, "--unfinished");
  CU_ASSERT(CLI_GIVES(0, "contrasts", study, at, "--unfinished"));
}

TEST(wrong_contrasts_stop_a_sweep_before_it_begins) {
  static const struct {
    const char *contrasts, *says;
  } wrong[] = {
      {"contrasts: {name: a}", "must be a list"},
      {"contrasts: [{of: {algorithm: grpo}, against: {algorithm: grpo}}]", "needs a name"},
      {"contrasts: [{name: a, of: {algorithm: grpo}}]", "`against` must be a map"},
      {"contrasts: [{name: a, of: {optimizer.rate: 1}, against: {algorithm: grpo}}]",
       "no field optimizer.rate"},
      {"contrasts: [{name: a, of: {algorithm: gepo}, against: {algorithm: grpo}}]",
       "which the sweep does not have"},
      {"contrasts: [{name: a, measure: best, of: {seed: 1}, against: {seed: 2}}]", "measure"},
      {"contrasts: [{name: a, off: {seed: 1}}]", "off"},
      {"contrasts: [{name: a, of: {seed: 1}, against: {seed: 2}}, {name: a, of: {seed: 1}, "
       "against: {seed: 2}}]",
       "two contrasts"},
  };
  char folder[64], at[128], study[128], text[1024];
  cli_scratch_make(folder);
  cli_path(at, folder, "wrong.yaml");
  cli_path(study, folder, "study.db");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const int n = snprintf(text, sizeof text, "%s%s\n", STUDY, wrong[i].contrasts);
    cli_write(at, text, (size_t)n);
    cli_result r = CLI("sweep", at, "-o", study);
    CU_ASSERT_EQUAL(r.code, 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.err, wrong[i].says));
    if (strstr(r.err, wrong[i].says) == NULL) printf("%s: %s\n", wrong[i].says, r.err);
    CU_ASSERT_NOT_EQUAL(access(study, F_OK), 0);
  }
}

TEST(a_recipe_without_contrasts_is_refused) {
  char folder[64], at[128], study[128];
  cli_scratch_make(folder);
  cli_write(cli_path(at, folder, "rates.yaml"), STUDY, sizeof STUDY - 1);
  cli_path(study, folder, "study.db");
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study));
  REFUSED(2, "declares no contrasts", "contrasts", study, at);
}
