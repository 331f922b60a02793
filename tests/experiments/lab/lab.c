/* gepolab bias and gepolab theory as a user runs them: keys, reference numbers, edge cases, wrong
 * recipes, and the rows of a study. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("cli: bias and theory");

#define ARMS "world: {kind: bandit, rewards: [1, 0, 0.5]}\n"
#define FOUR "algorithms: [is, snis, grpo, gepo]\ngroup_size: [4]\n"
#define PROBS "learner_probs: [0.5, 0.3, 0.2]\nsampler_probs: [0.2, 0.3, 0.5]\n"

/* --- running it --- */

static cJSON *parsed(cli_result r) {
  if (r.code != 0) fprintf(stderr, "%s", r.err);
  CU_ASSERT_EQUAL(r.code, 0);
  cJSON *json = json_parsed(r.out);
  CU_ASSERT_PTR_NOT_NULL_FATAL(json);
  return json;
}

/* The rows that `gepolab bias` prints for a recipe given as text. */
static cJSON *rows_of(const char *recipe) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "lab.yaml");
  cli_write(path, recipe, strlen(recipe));
  cJSON *rows = parsed(CLI("bias", path, "--json"));
  return rows;
}

/* The table of a recipe has no `nan` in it. */
static int table_is_clean(const char *recipe) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "lab.yaml");
  cli_write(path, recipe, strlen(recipe));
  cli_result r = CLI("bias", path);
  const int clean = r.code == 0 && strstr(r.out, "nan") == NULL && strstr(r.out, "NaN") == NULL;
  if (!clean) fprintf(stderr, "%s%s", r.out, r.err);
  return clean;
}

/* --- keys and reference numbers --- */

TEST(four_arms_give_the_keys_and_the_reference_numbers) {
  static const char *const keys[] = {
      "algorithm",     "group_size", "kl_exact",    "method",      "groups",   "expected_gradient",
      "true_gradient", "bias",       "cosine",      "scaled_bias", "variance", "mse",
      "snr",           "iw_mean",    "iw_variance", "aw_variance", "ess"};
  cJSON *rows = parsed(CLI("bias", "four_arms", "--json"));
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(rows), 3);
  for (int i = 0; i < 3; ++i)
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; ++k)
      CU_ASSERT(cJSON_HasObjectItem(cJSON_GetArrayItem(rows, i), keys[k]));
  const cJSON *is = cJSON_GetArrayItem(rows, 0), *gepo = cJSON_GetArrayItem(rows, 2);
  CU_ASSERT_STRING_EQUAL(text_at(is, "algorithm"), "is");
  CU_ASSERT_STRING_EQUAL(text_at(gepo, "algorithm"), "gepo(clip=none)");
  CU_ASSERT_STRING_EQUAL(text_at(gepo, "method"), "exact");
  CU_ASSERT_EQUAL(number_at(gepo, "groups"), 35);
  CU_ASSERT(!cJSON_HasObjectItem(is, "standard_errors"));
  ASSERT_CLOSE(number_at(is, "kl_exact"), 0.7854531843917029, 1e-12);
  ASSERT_CLOSE(number_at(is, "bias"), 0, 1e-14);
  ASSERT_CLOSE(number_at(is, "variance"), 0.10410, 5e-6);
  ASSERT_CLOSE(number_at(gepo, "bias"), 0.17658, 5e-6);
  ASSERT_CLOSE(number_at(gepo, "cosine"), 0.97793, 5e-6);
  ASSERT_CLOSE(number_at(gepo, "variance"), 0.01259, 5e-6);
}

TEST(beyond_the_budget_numbers_are_sampled_and_say_so) {
  cJSON *rows = rows_of(ARMS PROBS FOUR "budget: 2\nsamples: 4096\n");
  cJSON *exact = rows_of(ARMS PROBS FOUR);
  for (int i = 0; i < 4; ++i) {
    const cJSON *row = cJSON_GetArrayItem(rows, i), *known = cJSON_GetArrayItem(exact, i);
    const cJSON *errors = member_at(row, "standard_errors");
    CU_ASSERT_STRING_EQUAL(text_at(row, "method"), "monte_carlo");
    CU_ASSERT_EQUAL(number_at(row, "groups"), 4096);
    CU_ASSERT(number_at(errors, "variance") > 0);
    /* 4 rows at 5 standard errors of 32 parts: wrong once in 10,000 seeds; the seed is fixed. */
    CU_ASSERT(fabs(number_at(row, "variance") - number_at(known, "variance")) <
              5 * number_at(errors, "variance"));
  }
}

/* --- edge cases --- */

TEST(degenerate_recipes_have_the_right_answer_and_no_nan) {
  static const char zeros[] =
      ARMS FOUR "learner_probs: [0.5, 0.3, 0.2]\nsampler_probs: [0.5, 0.5, 0]\n";
  static const char equal[] = "world: {kind: bandit, rewards: [1, 1, 1]}\n" PROBS FOUR;
  static const char alone[] =
      "world: {kind: bandit, rewards: [1]}\nlearner_probs: [1]\nsampler_probs: [1]\n" FOUR;
  static const char single[] =
      ARMS PROBS "algorithms: [{base: is, baseline: none}, topr]\ngroup_size: 1\n";
  static const char *const all[] = {zeros, equal, alone, single};
  for (size_t i = 0; i < 4; ++i) CU_ASSERT(table_is_clean(all[i]));
  for (size_t i = 1; i < 3; ++i) { /* nothing to learn: the estimate is 0, as the truth is */
    cJSON *rows = rows_of(all[i]);
    for (int k = 0; k < 4; ++k) {
      const cJSON *row = cJSON_GetArrayItem(rows, k);
      ASSERT_CLOSE(number_at(row, "bias"), 0, 1e-15);
      ASSERT_CLOSE(number_at(row, "variance"), 0, 1e-15);
      CU_ASSERT(cJSON_IsNull(member_at(row, "cosine")));
    }
  }
  cJSON *rows = rows_of(single);
  /* Without a baseline one response is enough for an unbiased estimate. */
  ASSERT_CLOSE(number_at(cJSON_GetArrayItem(rows, 0), "bias"), 0, 1e-15);
  CU_ASSERT(number_at(cJSON_GetArrayItem(rows, 0), "variance") > 0);
}

typedef struct wrong_recipe {
  const char *text, *place, *says; /* place: line:column, or the beginning of it */
} wrong_recipe;

TEST(wrong_laboratory_recipes_are_refused_with_their_place) {
  static const wrong_recipe wrong[] = {
      {ARMS "learner_probs: [0.5, 0.3, 0.3]\nsampler_probs: [0.2, 0.3, 0.5]\n", "2:16", "sum to"},
      {ARMS "learner_probs: [0.5, 0.7, -0.2]\nsampler_probs: [0.2, 0.3, 0.5]\n", "2:16", "-0.2"},
      {ARMS "learner_probs: [0.5, 0.5]\nsampler_probs: [0.2, 0.3, 0.5]\n", "2:16", "3 responses"},
      {ARMS PROBS "group_size: [2, 0]\n", "4:17", "whole numbers"},
      {ARMS PROBS "group_size: []\n", "4:13", "empty"},
      {ARMS PROBS "algorithms: [topr, gepo]\ngroup_size: [1, 2]\n", "5:14", "gepo: baseline"},
      {ARMS PROBS "algorithms: [{base: is, baseline: none, scale: group_std}]\ngroup_size: 1\n",
       "5:13", "scale: group_std"},
      {ARMS PROBS "algorithms: [gepo, {base: gepo, clip: none, name: gepo}]\n", "4:51",
       "published"},
      {ARMS PROBS "algorithms: [gepo, {base: grpo, name: x}, {base: is, name: x}]\n", "4:43",
       "shown as 'x'"},
      {ARMS PROBS "algorithms: [geppo]\n", "4:14", "'gepo'"},
      {ARMS PROBS "algorithms: []\n", "4:13", "empty"},
      {ARMS PROBS "algoritms: [gepo]\n", "4:", "'algorithms'"},
      {ARMS PROBS "dial: {kl: [1]}\n", "4:7", "either"},
      {ARMS PROBS FOUR "samples: 0\nbudget: 2\n", "7:9", "15 multisets"},
      {ARMS "learner_probs: [0.5, 0.3, 0.2]\n", "1:1", "sampler"},
      {ARMS "dial: {kind: mixtrue, kl: [1]}\n", "2:14", "'mixture'"},
      {ARMS "dial: {kind: direction}\n", "2:7", "kl"},
      {ARMS "dial: {kind: direction, kl: [-1]}\n", "2:30", "0 or more"},
      {ARMS "learner_probs: [0.5, 0.3, 0.2]\ndial: {kind: mixture, kl: [5]}\n", "3:27",
       "out of reach"},
      {ARMS "dial: {kind: staleness, steps: 4, updates: [5]}\n", "2:44", "up to steps"},
      {"world: {kind: gridwrold}\ndial: {kl: [1]}\n", "1:15", "gridwrold"},
      {"world: {kind: chain, stats: 3}\ndial: {kl: [1]}\n", "1:", "'states'"},
      {"dial: {kl: [1]}\n", "1:1", "no world"},
      {ARMS "training: {updates: 5}\n", "2:11", "learning rates"}};
  char folder[64], path[128], place[160];
  cli_scratch_make(folder);
  cli_path(path, folder, "wrong.yaml");
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    const wrong_recipe *w = &wrong[i];
    cli_write(path, w->text, strlen(w->text));
    snprintf(place, sizeof place, "%s:%s", path, w->place);
    cli_result r = CLI("bias", path, "--json");
    const int good = r.code == 2 && strstr(r.err, place) != NULL &&
                     strstr(r.err, w->says) != NULL && r.out_size == 0;
    if (!good) fprintf(stderr, "\n%sgave %d: %s", w->text, r.code, r.err);
    CU_ASSERT(good);
  }
}

/* --- the dial and the worlds --- */

TEST(every_dial_reaches_its_kl_through_a_recipe) {
  static const char *const kinds[] = {"direction", "hotter", "colder", "mixture"};
  for (size_t i = 0; i < 4; ++i) {
    char recipe[512];
    snprintf(recipe, sizeof recipe,
             ARMS "learner_probs: [0.5, 0.3, 0.2]\nalgorithms: is\ngroup_size: 2\n"
                  "dial: {kind: %s, kl: [0, 1e-4, 0.01, 0.06]}\n",
             kinds[i]);
    cJSON *rows = rows_of(recipe);
    static const double wanted[] = {0, 1e-4, 0.01, 0.06};
    CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(rows), 4);
    for (int k = 0; k < 4; ++k) {
      const double kl = number_at(cJSON_GetArrayItem(rows, k), "kl_exact");
      CU_ASSERT(fabs(kl - wanted[k]) <= 1e-9 * wanted[k] + 1e-15);
    }
  }
}

TEST(staleness_zero_is_on_policy_and_divergence_grows_with_it) {
  cJSON *rows = rows_of(ARMS "algorithms: is\ndial: {kind: staleness, steps: 40, updates: "
                             "{from: 0, to: 40, points: 5}}\n");
  ASSERT_CLOSE(number_at(cJSON_GetArrayItem(rows, 0), "kl_exact"), 0, 1e-15);
  for (int k = 1; k < 5; ++k) {
    const cJSON *row = cJSON_GetArrayItem(rows, k);
    CU_ASSERT_EQUAL(number_at(row, "staleness"), 10 * k);
    CU_ASSERT(number_at(row, "kl_exact") > number_at(cJSON_GetArrayItem(rows, k - 1), "kl_exact"));
  }
}

/* Off-policy too: `is` weighs whole trajectories, so that its expectation is the true gradient,
 * which decision processes compute by dynamic programming. */
TEST(importance_sampling_is_unbiased_in_every_world) {
  static const char *const worlds[] = {
      "chain, states: 3, horizon: 3",
      "gridworld, width: 2, height: 2, horizon: 2",
      "garnet, horizon: 2",
      "token, vocabulary: 2, horizon: 3",
      "sequence, vocabulary: 2, horizon: 2",
      "bandit, arms: 5, contexts: 2",
      "token, vocabulary: 2, horizon: 2, policy: {kind: loglinear, dimension: 3}"};
  for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; ++i) {
    char recipe[512];
    snprintf(recipe, sizeof recipe,
             "world: {kind: %s}\ndial: {kind: direction, kl: [0, 0.1]}\ngroup_size: 2\n"
             "algorithms: [is, {base: gepo, clip: none, log_prob: sum}]\n",
             worlds[i]);
    cJSON *rows = rows_of(recipe);
    CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(rows), 4);
    for (int k = 0; k < 2; ++k) {
      ASSERT_CLOSE(number_at(cJSON_GetArrayItem(rows, k), "bias"), 0, 1e-13);
      CU_ASSERT(number_at(cJSON_GetArrayItem(rows, k), "variance") > 0);
      CU_ASSERT(number_at(cJSON_GetArrayItem(rows, 2 + k), "bias") > 1e-4);
    }
  }
}

/* --- the store and the theorems --- */

static size_t lines_with(const char *text_, const char *word) {
  size_t n = 0;
  for (const char *at = text_; (at = strstr(at, word)) != NULL; ++at) ++n;
  return n;
}

TEST(a_study_keeps_the_rows_once) {
  char folder[64], db[128];
  cli_scratch_make(folder);
  cli_path(db, folder, "study.db");
  for (int again = 0; again < 2; ++again)
    CU_ASSERT(CLI_GIVES(0, "bias", "four_arms", "-o", db, "group_size=[2,4]"));
  cli_result r = CLI("export", db, "--table", "bias", "--format", "csv");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_EQUAL(lines_with(r.out, "\n"), 7); /* a header, three rows at two sizes */
  CU_ASSERT_EQUAL(lines_with(r.out, "gepo(clip=none),"), 2);
  CU_ASSERT(strstr(r.out, "0.0125") != NULL); /* GEPO's variance at G = 4 */
}

#define SMALL_THEORY "theory", "outcomes=[2,16]", "pairs=50", "starts=6", "search_outcomes=3"

TEST(theory_finds_the_crossing_the_constant_and_the_violation) {
  cJSON *all = parsed(CLI(SMALL_THEORY, "--json"));
  const cJSON *one = member_at(all, "theorem1"), *o;
  const cJSON *constants = member_at(one, "constants");
  ASSERT_CLOSE(number_at(cJSON_GetArrayItem(constants, 0), "expected"), 2, 1e-9);
  const cJSON *crossings = member_at(one, "gaussian_crossings");
  ASSERT_CLOSE(number_at(cJSON_GetArrayItem(crossings, 0), "kl"), 0.079118, 1e-6);
  ASSERT_CLOSE(number_at(cJSON_GetArrayItem(crossings, 1), "kl"), 0.059166, 1e-6);
  double assumed = 0, sampler = 0;
  cJSON_ArrayForEach(o, member_at(all, "theorem2")) {
    if (strcmp(text_at(o, "advantage"), "r - E_p r") == 0)
      assumed = fmax(assumed, number_at(o, "worst_ratio"));
    if (strcmp(text_at(o, "advantage"), "r - E_q r") == 0)
      sampler = fmax(sampler, number_at(o, "worst_ratio"));
  }
  CU_ASSERT(assumed > 0 && assumed < 1);
  ASSERT_CLOSE(sampler, sqrt(2), 1e-3);
  cJSON_ArrayForEach(o, member_at(all, "theorem3")) {
    CU_ASSERT(number_at(o, "w_pq") > 0 && number_at(o, "aw_pq") > 0);
    CU_ASSERT(number_at(o, "aw_expected") > 0 && number_at(o, "aw_computed") > 0);
  }
  CU_ASSERT(cJSON_GetArraySize(member_at(all, "theorem3")) > 5);
}

TEST(the_theory_table_has_no_nan) {
  cli_result r = CLI(SMALL_THEORY);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT(strstr(r.out, "Theorem 3") != NULL && strstr(r.out, "nan") == NULL);
  CU_ASSERT(CLI_GIVES(2, "theory", "outcomes=[1]"));
  CU_ASSERT(CLI_GIVES(2, "theory", "outcoms=[2]"));
}

/* Four arms at 0.4, 0.3, 0.2, 0.1 under top-k 2 are drawn with 4/7 and 3/7, whose squares sum to
 * 25/49: the mean of p(y) over that sum is (0.4 * 4/7 + 0.3 * 3/7) / (25/49) = 0.7. With raw
 * weights the sum is 0.3, and the mean 25/21. */
TEST(the_exact_denominator_is_of_the_dist_that_weights_see) {
  static const struct {
    const char *weights;
    double mean;
  } cases[] = {{"sampling.weights=truncated", 0.7}, {"sampling.weights=raw", 25.0 / 21.0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    cJSON *rows =
        CLI_JSON("bias", "four_arms", "--json", "learner_probs=[0.4, 0.3, 0.2, 0.1]",
                 "sampler_probs=[0.4, 0.3, 0.2, 0.1]", "sampling.top_k=2", cases[i].weights,
                 "algorithms=[{base: gepo, clip: none, denominator: exact}]");
    const cJSON *mean = member_at(cJSON_GetArrayItem(rows, 0), "iw_mean");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mean);
    ASSERT_CLOSE(mean->valuedouble, cases[i].mean, 1e-12);
  }
}

/* Whether what a terminal sees counts to the end and is wiped away. */
static int counts_to_the_end(cli_result r, const char *count) {
  const size_t n = strlen(r.err);
  const int ok = r.code == 0 && strstr(r.err, count) != NULL && n > 4 &&
                 strcmp(r.err + n - 4, "\r\033[K") == 0;
  if (!ok) fprintf(stderr, "%d: %s\n", r.code, r.err);
  return ok;
}

TEST(progress_is_shown_on_a_terminal_and_nowhere_else) {
  CU_ASSERT(counts_to_the_end(
      CLI_ON_TERMINAL("bias", "bias_groups", "group_size=[2,3]", "dial={kl: [0.1, 0.5]}"),
      " 4/4 measurements"));
  CU_ASSERT(counts_to_the_end(CLI_ON_TERMINAL("bias", "sample_efficiency", "training.updates=4",
                                              "training.seeds=2", "training.tuning_seeds=1",
                                              "training.lr=[1,2]", "algorithms=[is,gepo]"),
                              " 8/8 training paths"));
  cli_result r = CLI("bias", "four_arms", "group_size=[2,3]");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_STRING_EQUAL(r.err, "");
}
