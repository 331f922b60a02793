/* Contrasts: the tests against SciPy and counting (tests/golden/contrasts.py), and arms of a small
 * study by hand. */
#include "analysis/contrasts.h"
#include "analysis/paired_tests.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

SUITE("analysis: contrasts");

static void check_ranks(FILE *from) {
  double difference[32], p, found;
  size_t n = 0;
  CU_ASSERT_EQUAL_FATAL(fscanf(from, "%zu", &n), 1);
  CU_ASSERT_FATAL(n <= 32);
  for (size_t i = 0; i < n; i++) CU_ASSERT_EQUAL_FATAL(fscanf(from, "%lf", &difference[i]), 1);
  CU_ASSERT_EQUAL_FATAL(fscanf(from, "%lf", &p), 1);
  CU_ASSERT_EQUAL_FATAL(signed_rank_exact(difference, n, &found, NULL), GL_OK);
  CU_ASSERT(fabs(found - p) < 1e-12);
}

TEST(the_tests_agree_with_independent_computations) {
  FILE *from = fopen("tests/golden/contrasts.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  char kind[16];
  int lines = 0;
  for (; fscanf(from, "%15s", kind) == 1; lines++) {
    size_t c[4];
    double x[3];
    if (strcmp(kind, "mcnemar") == 0) {
      CU_ASSERT_EQUAL_FATAL(fscanf(from, "%zu %zu %lf", &c[0], &c[1], &x[0]), 3);
      CU_ASSERT(fabs(mcnemar_exact(c[0], c[1]) - x[0]) < 1e-12);
    } else if (strcmp(kind, "newcombe") == 0) {
      CU_ASSERT_EQUAL_FATAL(fscanf(from, "%zu %zu %zu %zu %lf %lf %lf", &c[0], &c[1], &c[2], &c[3],
                                   &x[0], &x[1], &x[2]),
                            7);
      const interval v = paired_fractions(c[0], c[1], c[2], c[3]);
      CU_ASSERT(fabs(v.value - x[0]) < 1e-12);
      CU_ASSERT(fabs(v.low - x[1]) < 1e-12);
      CU_ASSERT(fabs(v.high - x[2]) < 1e-12);
    } else {
      CU_ASSERT_STRING_EQUAL_FATAL(kind, "ranks");
      check_ranks(from);
    }
  }
  CU_ASSERT_EQUAL(lines, 21);
  fclose(from);
}

/* The example of Holm's procedure: 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1, and never falling. */
TEST(holm_holds_the_order) {
  static const double p[] = {0.04, 0.01, 0.03, 0.02}, expected[] = {0.06, 0.04, 0.06, 0.06};
  double adjusted[4];
  CU_ASSERT_EQUAL_FATAL(holm_adjust(p, 4, adjusted, NULL), GL_OK);
  for (int i = 0; i < 4; i++) CU_ASSERT(fabs(adjusted[i] - expected[i]) < 1e-12);
  static const double large[] = {0.7, 0.9};
  CU_ASSERT_EQUAL_FATAL(holm_adjust(large, 2, adjusted, NULL), GL_OK);
  CU_ASSERT_EQUAL(adjusted[0], 1);
  CU_ASSERT_EQUAL(adjusted[1], 1);
}

enum { EVALS = 8 };

static void add_run(results *r, const char *algorithm, double delay, uint64_t seed, int falls,
                    double last) {
  char swept[80];
  eval_record eval[EVALS];
  gl_error err = {0};
  for (size_t i = 0; i < EVALS; i++)
    eval[i] = (eval_record){.step = (int64_t)i * 100,
                            .eval_score = i == 0           ? 0
                                          : falls && i > 2 ? 0
                                                           : 0.8};
  if (!falls) eval[EVALS - 1].eval_score = last;
  snprintf(swept, sizeof swept, "{\"cluster.delay\":%g}", delay);
  const run_record run = {.algorithm = algorithm,
                          .swept = swept,
                          .seed = seed,
                          .status = RUN_DONE,
                          .evals = eval,
                          .n_evals = EVALS};
  CU_ASSERT_EQUAL_FATAL(results_add(r, &run, &err), GL_OK);
}

/* At delay 4 grpo falls on seeds 1 to 6 of 8 and gepo on seed 1; gspo has two seeds of its own. */
static results *made(void) {
  results *r = results_new("made");
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (uint64_t seed = 1; seed <= 8; seed++)
    for (int delay = 0; delay <= 4; delay += 4) {
      add_run(r, "grpo", delay, seed, delay == 4 && seed <= 6, 0.7);
      add_run(r, "gepo", delay, seed, delay == 4 && seed == 1, 0.7 + 0.01 * (double)seed);
    }
  add_run(r, "gspo", 4, 8, 0, 0.7);
  add_run(r, "gspo", 4, 9, 0, 0.7);
  ASSERT_OK(results_arrange(r, &err));
  return r;
}

static contrast between(const char *name, const char *of, const char *of_delay, const char *against,
                        const char *against_delay) {
  return (contrast){.name = name,
                    .of = {{{"algorithm", of}, {"cluster.delay", of_delay}}, 2},
                    .against = {{{"algorithm", against}, {"cluster.delay", against_delay}}, 2}};
}

TEST(arms_are_paired_by_seed) {
  results *r = made();
  contrast c[3] = {between("clip", "grpo", "4", "gepo", "4.0"),
                   between("last", "gepo", "0", "grpo", "0"),
                   between("few", "grpo", "4", "gspo", "4")};
  c[1].measure = CONTRAST_LAST;
  contrast_result found[3];
  ASSERT_OK(contrasts_find(r, c, 3, found, &err));
  CU_ASSERT_EQUAL(found[0].pairs, 8);
  CU_ASSERT_EQUAL(found[0].only_of, 5);
  CU_ASSERT_EQUAL(found[0].only_against, 0);
  CU_ASSERT(fabs(found[0].of - 0.75) < 1e-12 && fabs(found[0].against - 0.125) < 1e-12);
  CU_ASSERT(fabs(found[0].p - 0.0625) < 1e-12);
  CU_ASSERT_EQUAL(found[1].only_of, 8);
  CU_ASSERT(fabs(found[1].p - 2 / 256.0) < 1e-12);
  CU_ASSERT(fabs(found[1].difference.value - 0.045) < 1e-9);
  CU_ASSERT(fabs(found[1].holm - 6 / 256.0) < 1e-12);
  CU_ASSERT(fabs(found[0].holm - 0.125) < 1e-12);
  CU_ASSERT_EQUAL(found[2].pairs, 1);
  CU_ASSERT_EQUAL(found[2].unpaired, 8);
  CU_ASSERT(isnan(found[2].detectable));
  results_free(r);
}

/* Runs of eight evaluations have one level, their mean. The six runs that collapse have two scores
 * of 0.8 and six of 0, so the interquartile mean of eight runs is theirs. */
TEST(levels_and_late_falls_are_compared) {
  results *r = made();
  contrast c[4];
  static const contrast_measure measures[] = {CONTRAST_LATE_COLLAPSE, CONTRAST_LAST_LEVEL,
                                              CONTRAST_BEST_TO_LAST, CONTRAST_BELOW_START};
  static const char *const names[] = {"late_fall", "last_level", "best_to_last", "below_start"};
  contrast_result found[4];
  for (size_t i = 0; i < 4; i++) {
    c[i] = between(names[i], "grpo", "4", "gepo", "4");
    c[i].measure = measures[i];
    CU_ASSERT_STRING_EQUAL(contrast_measure_names[measures[i]], names[i]);
  }
  ASSERT_OK(contrasts_find(r, c, 4, found, &err));
  CU_ASSERT_EQUAL(found[0].only_of, 5); /* on the plateau for 200 updates, and never back */
  CU_ASSERT_EQUAL(found[0].only_against, 0);
  CU_ASSERT(fabs(found[0].of - 0.75) < 1e-12);
  CU_ASSERT(fabs(found[1].of - 2 * 0.8 / 8) < 1e-12);
  CU_ASSERT_EQUAL(found[1].only_against, 7);
  CU_ASSERT_EQUAL(found[1].only_of, 0);
  CU_ASSERT_EQUAL(found[2].of, 0);
  CU_ASSERT_EQUAL(found[3].of, 0);
  CU_ASSERT_EQUAL(found[3].p, 1);
  results_free(r);
}

/* A run that is not finite at its end has collapsed, and is in no comparison of scores, whatever it
 * reached before. Seeds 1 to 3 of grpo end so, all of is. */
TEST(pairs_with_a_run_that_is_not_finite_have_no_score) {
  results *r = results_new("made");
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (uint64_t seed = 1; seed <= 8; seed++) {
    add_run(r, "gepo", 4, seed, 0, 0.7);
    add_run(r, "grpo", 4, seed, 0, 0.8);
    if (seed <= 3) r->runs[r->n_runs - 1].status = RUN_DIVERGED;
    add_run(r, "is", 4, seed, 0, 0.8);
    r->runs[r->n_runs - 1].status = RUN_DIVERGED;
  }
  ASSERT_OK(results_arrange(r, &err));
  static const contrast_measure measures[] = {CONTRAST_COLLAPSE, CONTRAST_LAST, CONTRAST_LAST_LEVEL,
                                              CONTRAST_BEST_TO_LAST, CONTRAST_LAST};
  contrast c[5];
  for (size_t i = 0; i < 5; i++) {
    c[i] = between("made", i < 4 ? "grpo" : "is", "4", "gepo", "4");
    c[i].measure = measures[i];
    c[i].of.n = c[i].against.n = 1; /* the delay does not vary */
  }
  contrast_result found[5];
  ASSERT_OK(contrasts_find(r, c, 5, found, &err));
  CU_ASSERT(found[0].pairs == 8 && found[0].only_of == 3 && found[0].without_value == 0);
  for (size_t i = 1; i < 4; i++)
    CU_ASSERT(found[i].pairs == 5 && found[i].without_value == 3 && found[i].unpaired == 0);
  CU_ASSERT_EQUAL(found[1].only_of, 5);
  CU_ASSERT(fabs(found[1].of - 0.8) < 1e-12);
  CU_ASSERT(found[4].pairs == 0 && found[4].without_value == 8 && found[4].p == 1);
  CU_ASSERT(isnan(found[4].of) && isnan(found[4].difference.value));
  results_free(r);
}

/* With 24 pairs and two contrasts seven pairs of one direction are needed (2 / 2^7 < 0.025), and
 * the binomial distribution says at which share they come with probability 0.8. */
TEST(the_power_is_that_of_the_first_step_of_holm) {
  results *r = results_new("power");
  for (uint64_t seed = 1; seed <= 24; seed++) {
    add_run(r, "grpo", 0, seed, 0, 0.8);
    add_run(r, "grpo", 4, seed, 0, 0.8);
  }
  ASSERT_OK(results_arrange(r, &err));
  const contrast c[2] = {between("one", "grpo", "0", "grpo", "4"),
                         between("two", "grpo", "4", "grpo", "0")};
  contrast_result found[2];
  ASSERT_OK(contrasts_find(r, c, 2, found, &err));
  double fewer = 0, term = pow(1 - found[0].detectable, 24);
  for (int k = 0; k < 7; k++) {
    fewer += term;
    term *= (24 - k) / (k + 1.0) * found[0].detectable / (1 - found[0].detectable);
  }
  CU_ASSERT(fabs(fewer - 0.2) < 1e-9);
  CU_ASSERT_EQUAL(found[0].p, 1);
  results_free(r);
}

/* gspo has no run without delay, and no run has a delay of 5: an error, unless the study may be
 * unfinished. Then Holm's adjustment counts them with p = 1. */
TEST(contrasts_of_an_unfinished_study_wait) {
  results *r = made();
  contrast c[3] = {between("clip", "grpo", "4", "gepo", "4"),
                   between("hole", "gspo", "0", "grpo", "0"),
                   between("value", "grpo", "5", "gepo", "4")};
  contrast_result found[3];
  gl_error why = {0};
  CU_ASSERT_EQUAL(contrasts_find(r, c, 3, found, &why), GL_EINPUT);
  for (size_t i = 0; i < 3; i++) c[i].may_wait = true;
  ASSERT_OK(contrasts_find(r, c, 3, found, &err));
  CU_ASSERT_EQUAL(found[0].pairs, 8);
  CU_ASSERT(fabs(found[0].holm - 3 * 0.0625) < 1e-12);
  for (size_t i = 1; i < 3; i++)
    CU_ASSERT(found[i].pairs == 0 && found[i].p == 1 && isnan(found[i].difference.value));
  results_free(r);
}

static void refuses(const results *r, contrast c, const char *why) {
  contrast_result found;
  gl_error err = {0};
  CU_ASSERT_EQUAL(contrasts_find(r, &c, 1, &found, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
  if (strstr(err.text, why) == NULL) printf("said: %s\n", err.text);
}

TEST(arms_that_are_no_arms_are_refused) {
  results *r = made();
  contrast open = between("open", "grpo", "4", "gepo", "4");
  open.of.n = 1;
  refuses(r, open, "several settings");
  contrast delays = between("all", "grpo", "4", "gepo", "4");
  delays.of.field[0] = delays.of.field[1];
  refuses(r, delays, "several algorithms");
  refuses(r, between("name", "grop", "4", "gepo", "4"), "no run of made has algorithm = grop");
  refuses(r, between("value", "grpo", "5", "gepo", "4"), "cluster.delay = 5");
  contrast path = between("path", "grpo", "4", "gepo", "4");
  path.of.field[1].path = "optimizer.lr";
  refuses(r, path, "do not differ");
  refuses(r, between("same", "grpo", "4", "grpo", "4"), "same runs in both arms");
  refuses(r, between("hole", "gspo", "0", "grpo", "4"), "without a run");
  results_free(r);
}
