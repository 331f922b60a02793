/* Best and last by evaluation set, of averages, by halves, and one set as the score. */
#include "analysis/evaluation_sets.h"
#include "tests/support/json.h"
#include "tests/support/suite.h"
#include "tests/support/tables.h"

#include <stdlib.h>
#include <string.h>

SUITE("analysis: evaluation sets");

enum { EVALS = 4 };

/* Scores of two sets at updates 0, 10, 20, 30, and of the halves of the second. */
static const double easy[EVALS] = {0.2, 0.9, 0.6, 0.5}, hard[EVALS] = {0.1, 0.2, 0.7, 0.3},
                    first_half[EVALS] = {0.1, 0.3, 0.6, 0.2},
                    second_half[EVALS] = {0.1, 0.1, 0.8, 0.4};

static results *study(int with_sets) {
  set_eval_record sets[4 * EVALS];
  eval_record evals[EVALS];
  size_t n = 0;
  for (int64_t i = 0; i < EVALS; i++) {
    const int64_t step = 10 * i;
    evals[i] = (eval_record){step, 1, easy[i]};
    sets[n++] = (set_eval_record){step, 1, easy[i], 0, 0, "easy"};
    sets[n++] = (set_eval_record){step, 1, hard[i], 1, 0, "hard"};
    sets[n++] = (set_eval_record){step, 1, first_half[i], 1, 1, "hard"};
    sets[n++] = (set_eval_record){step, 1, second_half[i], 1, 2, "hard"};
  }
  results *r = results_new("s");
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  const run_record run = {.algorithm = "gepo",
                          .seed = 1,
                          .evals = evals,
                          .n_evals = EVALS,
                          .set_evals = sets,
                          .n_set_evals = with_sets ? n : 0};
  CU_ASSERT_EQUAL_FATAL(results_add(r, &run, NULL), GL_OK);
  CU_ASSERT_EQUAL_FATAL(results_arrange(r, NULL), GL_OK);
  return r;
}

TEST(two_bests_of_several_sets_differ) {
  static const char *const both[] = {"easy", "hard"};
  results *r = study(1);
  const series_ends e = sets_ends(&r->runs[0], "easy", 0), h = sets_ends(&r->runs[0], "hard", 0);
  CU_ASSERT(e.best == 0.9 && e.last == 0.5 && h.best == 0.7 && h.last == 0.3);
  ASSERT_CLOSE(h.best_to_last, 0.4, 1e-15);
  const series_ends mean = sets_mean_ends(&r->runs[0], both, 2, 0);
  ASSERT_CLOSE(mean.best, 0.8, 1e-15); /* at updates 10 and 20 */
  ASSERT_CLOSE(mean.last, 0.4, 1e-15);
  series_ends of_mean;
  CU_ASSERT_EQUAL(sets_ends_of_mean(&of_mean, &r->runs[0], both, 2, 0, NULL), GL_OK);
  ASSERT_CLOSE(of_mean.best, 0.65, 1e-15); /* at update 20 */
  ASSERT_CLOSE(of_mean.last, 0.4, 1e-15);
  CU_ASSERT(isnan(sets_ends(&r->runs[0], "none", 0).best));
  CU_ASSERT_EQUAL(sets_ends(&r->runs[0], "hard", 1).best, 0.1);
  results_free(r);
}

/* On the first half update 20 is best, and scores 0.8 on the second; on the second update 20 is,
 * and scores 0.6 on the first. */
TEST(what_chooses_the_best_does_not_score_it) {
  results *r = study(1);
  CU_ASSERT(sets_have_halves(r));
  const series_ends e = sets_halved_ends(&r->runs[0], "hard", 0);
  ASSERT_CLOSE(e.best, 0.7, 1e-15);
  ASSERT_CLOSE(e.last, 0.3, 1e-15);
  ASSERT_CLOSE(e.best_to_last, 0.4, 1e-15);
  CU_ASSERT(isnan(sets_halved_ends(&r->runs[0], "easy", 0).best));
  results_free(r);
}

/* Where scores are noise alone, the best is above the mean, and the best by halves is not. 400 runs
 * of 20 evaluations, uniform in [0, 1] on each half: the mean of the latter over the runs has a
 * standard error of 0.0102, and four of them are asked for, of which one in 16,000 seeds is short.
 */
TEST(a_best_by_halves_is_not_too_high) {
  enum { RUNS = 400, N = 20 };
  double plain = 0, halved = 0;
  for (uint64_t k = 0; k < RUNS; k++) {
    set_eval_record e[3 * N];
    for (size_t i = 0; i < N; i++) {
      const rng_words w = rng_block(rng_stream_at(7, RNG_TEST, k), i);
      const double a = rng_u01(w.v[0]), b = rng_u01(w.v[1]);
      e[3 * i] = (set_eval_record){(int64_t)i, 0, (a + b) / 2, 0, 0, "s"};
      e[3 * i + 1] = (set_eval_record){(int64_t)i, 0, a, 0, 1, "s"};
      e[3 * i + 2] = (set_eval_record){(int64_t)i, 0, b, 0, 2, "s"};
    }
    const results_run run = {.set_evals = e, .n_set_evals = 3 * N};
    plain += sets_ends(&run, "s", 0).best / RUNS;
    halved += sets_halved_ends(&run, "s", 0).best / RUNS;
  }
  CU_ASSERT(plain > 0.8);
  CU_ASSERT(fabs(halved - 0.5) < 4 * 0.0102);
}

TEST(a_set_or_their_mean_becomes_the_score) {
  results *r = study(1);
  CU_ASSERT_EQUAL(sets_choose(r, "hard", NULL), GL_OK);
  CU_ASSERT(r->runs[0].n_evals == EVALS && r->runs[0].evals[2].eval_score == 0.7);
  CU_ASSERT_EQUAL(r->runs[0].evals[2].step, 20);
  CU_ASSERT_EQUAL(sets_choose(r, SETS_MEAN, NULL), GL_OK);
  ASSERT_CLOSE(r->runs[0].evals[2].eval_score, 0.65, 1e-15);
  results_free(r);
}

TEST(unknown_sets_are_refused_with_the_nearest) {
  gl_error err = {0};
  results *r = study(1);
  CU_ASSERT_EQUAL(sets_choose(r, "hrd", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "did you mean 'hard'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "easy, hard, mean"));
  results_free(r);
  r = study(0);
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(sets_choose(r, SETS_MEAN, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "has no evaluation sets"));
  CU_ASSERT(!sets_have_halves(r));
  results_free(r);
}

/* Until update 0 both ways say 0.1; at 10 the first half is best (0.3) and the second says 0.1; at
 * 20 both are best there: 0.8 and 0.6. Nothing is better at 30. */
TEST(the_best_until_an_evaluation_is_scored_on_the_other_half) {
  results *r = study(1);
  ASSERT_OK(sets_use_halves(r, &err));
  CU_ASSERT_PTR_NULL(r->runs[0].best_until); /* the first set has no halves */
  ASSERT_OK(sets_choose(r, "hard", &err));
  const double *best = r->runs[0].best_until;
  CU_ASSERT_PTR_NOT_NULL_FATAL(best);
  ASSERT_CLOSE(best[0], 0.1, 1e-15);
  ASSERT_CLOSE(best[1], 0.1, 1e-15);
  ASSERT_CLOSE(best[2], 0.7, 1e-15);
  ASSERT_CLOSE(best[3], 0.7, 1e-15);
  ASSERT_OK(sets_choose(r, "easy", &err));
  CU_ASSERT_PTR_NULL(r->runs[0].best_until);
  results_free(r);
}

/* --- The table of benchmarks: intervals over seeds, averages seed by seed, gaps in it --- */

SUITE("analysis: benchmarks");

static char *text_of(const benchmarks *b, table_format form) {
  table *t = table_document();
  benchmarks_report(t, b, "run", "Best and last");
  char *text = written_table(t, form);
  table_free(t);
  return text;
}

TEST(averages_are_made_seed_by_seed) {
  static const benchmark_score score[] = {
      {"gepo", "MATH", 1, 0.8, 0.7, 0.1},
      {"gepo", "MATH", 2, 0.6, 0.5, 0.1},
      {"gepo", "AIME", 2, 0.2, 0.1, 0.1},
      {"gepo", "AIME", 1, 0.4, 0.1, 0.3},
      {"gepo", "MATH", 3, 0.9, 0.9, 0.0}}; /* seed 3 has one benchmark only */
  benchmarks b;
  CU_ASSERT_EQUAL_FATAL(benchmarks_init(&b, score, 5, NULL), GL_OK);
  CU_ASSERT(b.n_rows == 1 && b.n_benchmarks == 2);
  ASSERT_CLOSE(b.average_best[0].value, (0.6 + 0.4) / 2, 1e-15);
  ASSERT_CLOSE(b.average_last[0].value, (0.4 + 0.3) / 2, 1e-15);
  ASSERT_CLOSE(b.average_gap[0].value, (0.2 + 0.1) / 2, 1e-15);
  CU_ASSERT(b.average_best[0].low > 0.4 - 1e-12 && b.average_best[0].high < 0.6 + 1e-12);
  CU_ASSERT(b.best[0].low < b.best[0].value && b.best[0].value < b.best[0].high);
  char *text = text_of(&b, TABLE_AS_TEXT);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "bootstrap intervals"));
  free(text);
  benchmarks_fini(&b);
}

TEST(without_a_common_seed_values_are_averaged_and_gaps_are_told) {
  static const benchmark_score score[] = {
      {"a", "x", 1, 0.5, 0.4, 0.1}, {"a", "y", 2, 0.3, 0.2, 0.1}, {"b_c", "x", 1, 0.7, 0.7, 0}};
  benchmarks b;
  CU_ASSERT_EQUAL_FATAL(benchmarks_init(&b, score, 3, NULL), GL_OK);
  ASSERT_CLOSE(b.average_best[0].value, 0.4, 1e-15);
  CU_ASSERT(isnan(b.average_best[0].low) && isnan(b.average_best[1].value));
  char *text = text_of(&b, TABLE_AS_TEXT), *latex = text_of(&b, TABLE_AS_LATEX);
  CU_ASSERT(table_says(text, "averages of runs that have all of them"));
  CU_ASSERT_PTR_NULL(strstr(text, "bootstrap"));
  CU_ASSERT_PTR_NOT_NULL(strstr(latex, "run & x best & x last & y best & y last & average best"));
  CU_ASSERT_PTR_NOT_NULL(strstr(latex, "b\\_c & 0.7 & 0.7 & – & – & – & – \\\\"));
  free(text), free(latex);
  table *t = table_document();
  benchmarks_report(t, &b, "run", "Best and last");
  cJSON *json = read_table(t);
  table_free(t);
  const cJSON *row = cJSON_GetArrayItem(member_at(json, "benchmarks.rows"), 1);
  CU_ASSERT_STRING_EQUAL(text_at(row, "run"), "b_c");
  CU_ASSERT(cJSON_IsNull(member_at(row, "average_gap")));
  cJSON_Delete(json);
  benchmarks_fini(&b);
}
