/* Profiles, optimality gaps and probabilities of improvement: against rliable's formulas in NumPy
 * (tests/golden/profiles.py). */
#include "analysis/profiles.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

SUITE("analysis: profiles");

static void add_score(results *r, const char *algorithm, int task, int seed, double score) {
  char swept[40];
  snprintf(swept, sizeof swept, "{\"optimizer.lr\":%d}", task);
  /* an earlier score, and an evaluation that was not finite after the last */
  const eval_record evals[] = {{0, NAN, 0.5}, {8, NAN, score}, {16, NAN, NAN}};
  const run_record run = {.algorithm = algorithm,
                          .swept = swept,
                          .seed = (uint64_t)seed,
                          .lr = NAN,
                          .status = RUN_DONE,
                          .evals = evals,
                          .n_evals = 3};
  CU_ASSERT_EQUAL_FATAL(results_add(r, &run, NULL), GL_OK);
}

static size_t index_of(const profiles *p, const char *algorithm) {
  size_t i = 0;
  while (i < p->n && strcmp(p->algorithms[i], algorithm) != 0) i++;
  CU_ASSERT_FATAL(i < p->n);
  return i;
}

static bool is_inside(interval v, double value) {
  return fabs(v.value - value) < 1e-12 && v.low <= value + 1e-12 && v.high >= value - 1e-12;
}

TEST(values_are_those_of_rliable) {
  FILE *from = fopen("tests/golden/profiles.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  results *r = results_new("golden");
  profiles p = {.n = 0};
  char word[16], x[8], y[8];
  size_t n = 0, wrong = 0;
  int task, seed;
  double value, best;
  while (fscanf(from, "%15s", word) == 1) {
    if (strcmp(word, "score") == 0) {
      CU_ASSERT_EQUAL_FATAL(fscanf(from, "%7s %d %d %lf", x, &task, &seed, &value), 4);
      add_score(r, x, task, seed, value);
      continue;
    }
    if (p.n == 0) {
      CU_ASSERT_EQUAL_FATAL(results_arrange(r, NULL), GL_OK);
      CU_ASSERT_EQUAL_FATAL(profiles_of(&p, r, 0.8, NULL), GL_OK);
    }
    n++;
    if (strcmp(word, "gap") == 0) {
      CU_ASSERT_EQUAL_FATAL(fscanf(from, "%7s %lf %lf", x, &best, &value), 3);
      wrong += !is_inside(p.of[index_of(&p, x)].gap, value) || best != p.goal;
    } else if (strcmp(word, "above") == 0) {
      CU_ASSERT_EQUAL_FATAL(fscanf(from, "%7s %d %lf", x, &task, &value), 3);
      wrong += !is_inside(p.of[index_of(&p, x)].above[task], value);
    } else {
      CU_ASSERT_EQUAL_FATAL(fscanf(from, "%7s %7s %lf", x, y, &value), 3);
      wrong += !is_inside(p.improvement[index_of(&p, x) * p.n + index_of(&p, y)], value);
    }
  }
  fclose(from);
  CU_ASSERT(n == 3 * 12 + 9 && wrong == 0);
  CU_ASSERT(p.of[0].runs == 18 && p.of[1].runs == 15 && p.of[1].settings == 3);
  profiles_fini(&p);
  results_free(r);
}

/* Seeds 3 and 4 end not finite, whatever they reached before, and seed 5 failed. */
TEST(runs_without_a_last_score_are_left_out_and_counted) {
  results *r = results_new("gone");
  profiles p;
  for (int seed = 1; seed <= 5; seed++) add_score(r, "a", 1, seed, seed < 3 ? 0.5 : 0.9);
  r->runs[2].status = r->runs[3].status = RUN_DIVERGED;
  r->runs[4].status = RUN_FAILED;
  CU_ASSERT_EQUAL_FATAL(results_arrange(r, NULL), GL_OK);
  CU_ASSERT_EQUAL_FATAL(profiles_of(&p, r, 1, NULL), GL_OK);
  CU_ASSERT(p.of[0].runs == 2 && p.of[0].without_score == 2 && p.of[0].gap.value == 0.5);
  CU_ASSERT(isnan(p.of[0].gap.low) && isnan(p.of[0].above[0].high)); /* too few for an interval */
  profiles_fini(&p);
  results_free(r);
}

TEST(runs_without_scores_are_refused) {
  results *r = results_new("empty");
  profiles p;
  gl_error err = {0};
  const run_record run = {.algorithm = "a", .swept = "{}", .lr = NAN, .status = RUN_DONE};
  CU_ASSERT_EQUAL_FATAL(results_add(r, &run, NULL), GL_OK);
  CU_ASSERT_EQUAL_FATAL(results_arrange(r, NULL), GL_OK);
  CU_ASSERT_EQUAL(profiles_of(&p, r, 1, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no run has a score"));
  profiles_fini(&p);
  results_free(r);
}
