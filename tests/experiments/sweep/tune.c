/* Tuning: which setting is chosen from given scores, which runs successive halving makes, and
 * sweeps that tune any fields. */
#include "experiments/sweep/tune.h"

#include "tests/support/cli_study.h"
#include "tests/support/suite.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* --- from scores to choices --- */

SUITE("sweep: tuning");

typedef struct bench {
  cfg_doc *doc;
  tune_plan plan;
  sweep_cells cells;
  double *score;
  unsigned char *in;
} bench;

static void bench_open(bench *b, const char *tune) {
  char text[700];
  sweep_grid grid;
  gl_error err = {0};
  snprintf(text, sizeof text,
           "name: tuned\nsteps: 90\nworld: {kind: bandit}\ntrain: {groups: 2, group_size: 4}\n"
           "sweep: {algorithm: [grpo, {base: gspo, eps_low: 0.3}], seed: [1, 2]}\ntune: %s\n",
           tune);
  gl_status status = cfg_load_text(&b->doc, text, strlen(text), "tune.yaml", &err);
  if (status == GL_OK) status = cfg_resolve(b->doc, &err);
  if (status == GL_OK) status = sweep_grid_read(&grid, b->doc, &err);
  if (status == GL_OK) status = tune_plan_read(&b->plan, b->doc, &grid, 90, &err);
  if (status == GL_OK)
    status = sweep_expand(&b->cells, b->doc, &b->plan.grid, &(sweep_expansion){.check = 1}, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  b->score = calloc(b->cells.n_cells, sizeof *b->score);
  b->in = calloc(b->cells.n_cells, 1);
  CU_ASSERT_FATAL(b->score != NULL && b->in != NULL);
}

static void bench_close(bench *b) {
  sweep_cells_fini(&b->cells);
  tune_plan_fini(&b->plan);
  cfg_free(b->doc);
  free(b->score);
  free(b->in);
}

/* A number of a cell's recipe. */
static double stated(const sweep_cell *cell, const char *path) {
  cfg_doc *doc = NULL;
  double x = NAN;
  ASSERT_OK(sweep_cell_recipe(&doc, cell, &err));
  const cfg_node *node = cfg_find(cfg_root(doc), path);
  if (node == NULL || !cfg_number(node, &x)) x = NAN;
  cfg_free(doc);
  return x;
}

static double chosen(const bench *b, const sweep_choice *c, const char *path) {
  double x = NAN;
  for (size_t i = 0; i < b->plan.fields.n; ++i)
    if (strcmp(b->plan.fields.path[i], path) == 0) cfg_number(c->value[i], &x);
  return x;
}

/* The score falls with the distance from a rate of 0.1 and from two epochs, for gspo from a rate of
 * 1 and one epoch; which of the two seeds it is makes no difference to who is best. */
TEST(the_best_setting_of_each_algorithm_is_chosen) {
  bench b = {0};
  bench_open(&b, "{lr: [0.001, 0.01, 0.1, 1], fields: {train.epochs: [1, 2, 4], "
                 "algorithm.eps_low: [0.1, 0.2]}, seeds: [101, 102]}");
  CU_ASSERT_EQUAL(b.plan.settings, 24);
  CU_ASSERT_EQUAL_FATAL(b.cells.n_cells, 2 * 2 * 24);
  CU_ASSERT_EQUAL(tune_runs(&b.plan, b.cells.n_cells), 96);
  for (size_t i = 0; i < b.cells.n_cells; ++i) {
    const sweep_cell *c = &b.cells.cells[i];
    const int first = strcmp(c->algorithm, "grpo") == 0;
    const double lr = stated(c, "optimizer.lr"), epochs = stated(c, "train.epochs");
    CU_ASSERT(first || strcmp(c->algorithm, "gspo") == 0); /* what is chosen is no part of a name */
    b.score[i] = 1 - 0.1 * fabs(log10(lr) - (first ? -1 : 0)) -
                 0.1 * fabs(epochs - (first ? 2 : 1)) + 0.01 * (double)c->seed -
                 0.02 * fabs(stated(c, "algorithm.eps_low") - 0.2);
  }
  sweep_choice *choices;
  size_t n;
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(tune_choose(&choices, &n, &b.plan, &b.cells, b.score, &err), GL_OK);
  CU_ASSERT_EQUAL_FATAL(n, 2);
  CU_ASSERT_STRING_EQUAL(choices[0].algorithm, "grpo");
  CU_ASSERT(chosen(&b, &choices[0], "optimizer.lr") == 0.1 && choices[0].lr == 0.1);
  CU_ASSERT_EQUAL(chosen(&b, &choices[0], "train.epochs"), 2);
  CU_ASSERT_EQUAL(chosen(&b, &choices[0], "algorithm.eps_low"), 0.2);
  CU_ASSERT_EQUAL(choices[0].edges, 1u << 2);
  CU_ASSERT_EQUAL(chosen(&b, &choices[1], "optimizer.lr"), 1);
  CU_ASSERT_EQUAL(chosen(&b, &choices[1], "train.epochs"), 1);
  CU_ASSERT_EQUAL(choices[1].edges, 7u);
  free(choices);
  /* Of equal scores the smaller number wins, in whatever order they are listed. */
  for (size_t i = 0; i < b.cells.n_cells; ++i) b.score[i] = 0.5;
  CU_ASSERT_EQUAL_FATAL(tune_choose(&choices, &n, &b.plan, &b.cells, b.score, &err), GL_OK);
  CU_ASSERT(choices[0].lr == 0.001 && chosen(&b, &choices[0], "train.epochs") == 1);
  free(choices);
  for (size_t i = 0; i < b.cells.n_cells; ++i) b.score[i] = NAN;
  CU_ASSERT_EQUAL(tune_choose(&choices, &n, &b.plan, &b.cells, b.score, &err), GL_ENUMERIC);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "grpo"));
  bench_close(&b);
}

/* No score of a run that diverged is better than that of a run which did not, where rewards are
 * negative, too. */
TEST(a_run_that_diverged_scores_no_more_than_its_worst_evaluation) {
  eval_record evals[] = {{.step = 0, .eval_score = -1.5},
                         {.step = 4, .eval_score = -3},
                         {.step = 8, .eval_score = -1}};
  run_result run = {.status = RUN_DIVERGED, .n_steps = 9, .evals = evals, .n_evals = 3};
  CU_ASSERT_EQUAL(tune_score(&run, 10), -3);
  CU_ASSERT_EQUAL(tune_score(&run, 9), -1);
  for (size_t i = 0; i < 3; ++i) evals[i].eval_score = -evals[i].eval_score;
  CU_ASSERT_EQUAL(tune_score(&run, 10), 0);
  run.status = RUN_FAILED;
  CU_ASSERT(isnan(tune_score(&run, 10)));
}

/* Nine rates in rungs of 10, 30 and 90 updates: 9, 3 and 1 of them. The best of the short runs, 9,
 * is not the best of those of 30 updates, 8, and 7 has never been among the best. */
TEST(halving_makes_longer_runs_of_fewer_settings) {
  bench b = {0};
  bench_open(&b, "{lr: [3, 1, 2, 9, 4, 8, 5, 6, 7], seeds: [101, 102], "
                 "halving: {eta: 3, rungs: 3}}");
  CU_ASSERT_EQUAL_FATAL(b.cells.n_cells, 2 * 2 * 3 * 9);
  CU_ASSERT_EQUAL(tune_runs(&b.plan, b.cells.n_cells), 2 * 2 * (9 + 3 + 1));
  static const size_t steps[] = {10, 30, 90};
  static const size_t left[] = {9, 3, 1};
  size_t stand_for[3] = {0};
  for (size_t i = 0; i < 3 * b.cells.n_cells; ++i)
    stand_for[i % 3] +=
        tune_stands_for(&b.plan, i % 3, i / 3) && b.cells.cells[i / 3].steps == steps[i % 3];
  for (size_t rung = 0; rung < 3; ++rung) CU_ASSERT_EQUAL(stand_for[rung], 4 * left[rung]);
  for (size_t i = 0; i < b.cells.n_cells; ++i) b.score[i] = -INFINITY;
  for (size_t rung = 0; rung < 3; ++rung) {
    size_t n = 0;
    ASSERT_OK(tune_rung(b.in, &b.plan, &b.cells, b.score, rung, &err));
    for (size_t i = 0; i < b.cells.n_cells; ++i) {
      const double lr = b.cells.cells[i].lr;
      if (!b.in[i]) continue;
      ++n;
      CU_ASSERT_EQUAL(b.cells.cells[i].steps, steps[rung]);
      CU_ASSERT(rung < 1 || lr >= 7);
      CU_ASSERT(rung < 2 || lr == 8);
      b.score[i] = rung == 0 ? lr : rung == 1 ? -fabs(lr - 8) : 0.25;
    }
    CU_ASSERT_EQUAL(n, 4 * left[rung]);
  }
  sweep_choice *choices;
  size_t n;
  ASSERT_OK(tune_choose(&choices, &n, &b.plan, &b.cells, b.score, &err));
  CU_ASSERT(n == 2 && choices[0].lr == 8 && choices[1].lr == 8 && choices[0].score == 0.25);
  free(choices);
  bench_close(&b);
}

/* --- through the command --- */

/* A rate of 1e-9 learns nothing, and nothing can be learned where no prompt is solvable. */
static const char recipe[] =
    "name: fields\nsteps: 90\neval_every: 10\nworld: {kind: bandit, rewards: [1, 0, 0, 0]}\n"
    "train: {groups: 4, group_size: 4}\n"
    "sweep: {algorithm: [grpo, gepo], seed: [1, 2]}\n"
    "tune:\n  fields: {optimizer.lr: [1e-9, 0.05, 0.3], train.unsolvable: [1, 0]}\n"
    "  seeds: [101, 102]\n  halving: {eta: 3, rungs: 2}\n";

typedef cli_study study;

static void study_make(study *s, const char *text) {
  cli_study_make(s, "fields.yaml", text);
}

static int same_tables(const char *a, const char *b) {
  static const char *const tables[] = {"runs", "steps", "evals", "tuned", "tuning", "cells"};
  int same = 1;
  for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i) {
    cli_result x = CLI("export", a, "--table", tables[i]),
               y = CLI("export", b, "--table", tables[i]);
    const int equal = x.code == 0 && y.code == 0 && x.out_size > 50 && strcmp(x.out, y.out) == 0;
    if (!equal) fprintf(stderr, "%s differ: %s %s\n", tables[i], x.err, y.err);
    same &= equal;
  }
  return same;
}

TEST(any_fields_are_tuned_and_their_choices_are_told) {
  study s;
  study_make(&s, recipe);
  cli_result plan = CLI("sweep", s.recipe, "--dry-run");
  CU_ASSERT_PTR_NOT_NULL(strstr(plan.out, "tuning runs            32, of which 0"));
  cli_result r = CLI("sweep", s.recipe, "-o", s.db, "-q", "-j", "2");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "settings chosen by tune (32 runs"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "train.unsolvable 0"));
  CU_ASSERT_PTR_NULL(strstr(r.out, "1e-09"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "the best train.unsolvable of grpo, 0, is at the edge"));
  cli_result told = CLI("status", s.db, "--json");
  cJSON *json = json_parsed(told.out);
  const cJSON *of_study = cJSON_GetArrayItem(member_at(json, "studies"), 0);
  const cJSON *choices = member_at(of_study, "chosen"), *choice;
  CU_ASSERT_EQUAL(cJSON_GetArraySize(choices), 2);
  cJSON_ArrayForEach(choice, choices) {
    const cJSON *fields = member_at(choice, "fields");
    CU_ASSERT(number_at(fields, "optimizer.lr") > 0.01);
    CU_ASSERT_EQUAL(number_at(fields, "train.unsolvable"), 0);
  }
  CU_ASSERT_EQUAL(number_at(of_study, "tuning_planned"), 32);
  CU_ASSERT_EQUAL(number_at(of_study, "tuning_known"), 32);
  told = CLI("status", s.db);
  CU_ASSERT_PTR_NOT_NULL(strstr(told.out, "chosen      gepo: {\"optimizer.lr\":"));
  CU_ASSERT(CLI_GIVES(0, "check", s.db));
  /* Another choice takes the places of the first. */
  r = CLI("sweep", s.recipe, "-o", s.db, "-q", "--json", "tune.fields.optimizer.lr=[1e-9,0.02]");
  CU_ASSERT_EQUAL(r.code, 0);
  json = json_parsed(r.out);
  const cJSON *superseded = member_at(json, "superseded");
  CU_ASSERT(cJSON_IsNumber(superseded) && superseded->valuedouble == 4);
  const cJSON *tuned = cJSON_GetArrayItem(member_at(json, "tuned"), 0);
  const cJSON *fields = member_at(tuned, "chosen");
  CU_ASSERT_EQUAL(number_at(fields, "train.unsolvable"), 0);
  CU_ASSERT_EQUAL(number_at(fields, "optimizer.lr"), 0.02);
  CU_ASSERT(CLI_GIVES(0, "check", s.db));
}

/* In a tuning run of either rung, or in the grid: it depends on the moment. */
TEST(a_killed_halving_goes_on_as_if_nothing_had_happened) {
  study s;
  study_make(&s, recipe);
  CU_ASSERT(CLI_GIVES(0, "sweep", s.recipe, "-o", s.other, "-q", "steps=900"));
  for (int i = 0; i < 6; ++i) {
    pid_t pid = CLI_START("sweep", s.recipe, "-o", s.db, "-q", "-j", "1", "steps=900");
    cli_sleep_ms(60 + 90 * i);
    kill(pid, SIGKILL);
    cli_wait(pid);
  }
  CU_ASSERT(CLI_GIVES(0, "sweep", s.recipe, "-o", s.db, "-q", "steps=900"));
  CU_ASSERT(same_tables(s.db, s.other));
}

/* lr: [...] and fields: {optimizer.lr: [...]} say the same, and make the same cells. */
TEST(a_list_of_rates_is_the_field_of_rates) {
  study s;
  study_make(&s, "name: rates\nsteps: 30\nworld: {kind: bandit}\n"
                 "train: {groups: 2, group_size: 4}\nsweep: {seed: [1, 2]}\n"
                 "tune: {lr: [0.02, 0.1], seeds: [101]}\n");
  CU_ASSERT(CLI_GIVES(0, "sweep", s.recipe, "-o", s.db, "-q"));
  CU_ASSERT(CLI_GIVES(0, "sweep", s.recipe, "-o", s.other, "-q", "tune.lr=null",
                      "tune.fields.optimizer.lr=[0.02, 0.1]"));
  CU_ASSERT(same_tables(s.db, s.other));
}

TEST(wrong_tuning_is_refused_at_its_place) {
  static const struct {
    const char *tune, *sweep, *says;
  } wrong[] = {
      {"{seeds: [101]}", "seed: [1]", "needs lr or fields"},
      {"{lr: [0.1]}", "seed: [1]", "needs seeds"},
      {"{lr: [0.1, 0.1], seeds: [101]}", "seed: [1]", "tune.lr lists 0.1 twice"},
      {"{lr: 0.1, seeds: [101]}", "seed: [1]", "tune.lr must be a list"},
      {"{fields: {train.epochs: 2}, seeds: [101]}", "seed: [1]",
       "tune.fields.train.epochs must be"},
      {"{fields: [1], seeds: [101]}", "seed: [1]", "tune.fields maps"},
      {"{fields: {train.epoch: [1, 2]}, seeds: [101]}", "seed: [1]", "did you mean 'epochs'"},
      {"{fields: {train.epochs: [1, 0]}, seeds: [101]}", "seed: [1]", "epochs"},
      {"{fields: {seed: [5]}, seeds: [101]}", "seed: [1]", "cannot choose 'seed'"},
      {"{fields: {algorithm: [grpo]}, seeds: [101]}", "seed: [1]", "cannot choose 'algorithm'"},
      {"{lr: [0.1], fields: {optimizer.lr: [1]}, seeds: [101]}", "seed: [1]", "the same field"},
      {"{fields: {train.epochs: [1, 2]}, seeds: [101]}", "seed: [1], train.epochs: [1, 3]",
       "is an axis of the sweep and chosen by tune"},
      {"{fields: {train.epochs: [1, 2]}, seeds: [101]}",
       "seed: [1], one_at_a_time: {train.epochs: [1, 3]}", "and tune chooses it"},
      {"{lr: [0.1], seeds: [1]}", "seed: [1]", "seed 1 is used by the sweep too"},
      {"{lr: [0.1], seeds: [101], halving: {eta: 1}}", "seed: [1]", "eta"},
      {"{lr: [0.1], seeds: [101], halving: {rungs: 9}}", "seed: [1]", "take fewer rungs"},
      {"{lr: [0.1], seeds: [101], halving: {}}", "seed: [1], steps: [10, 20]", "keep one of them"},
      {"{lr: [0.1], seeds: [101], halfing: {}}", "seed: [1]", "did you mean 'halving'"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    study s;
    char text[600];
    snprintf(text, sizeof text,
             "name: wrong\nsteps: 90\nworld: {kind: bandit}\nsweep: {%s}\ntune: %s\n",
             wrong[i].sweep, wrong[i].tune);
    study_make(&s, text);
    cli_result r = CLI("sweep", s.recipe, "-o", s.db, "-q");
    const int right = r.code == 2 && strstr(r.err, wrong[i].says) != NULL &&
                      strstr(r.err, "fields.yaml:") != NULL && cli_files_in(s.folder) == 1;
    if (!right) fprintf(stderr, "%s gave %d %s\n", wrong[i].tune, r.code, r.err);
    CU_ASSERT(right);
  }
}
