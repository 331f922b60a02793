/* Designs of sweeps: factorial, one at a time, and random search. */
#include "experiments/recipe/designs.h"
#include "tests/support/recipes.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("cli: factorial designs");

/* Factorial designs: levels, aliases and blocks of textbook designs, and what is refused. */

static gl_status expand(cfg_doc **doc, const char *design, gl_error *err) {
  char text[2048];
  snprintf(text, sizeof text, "sweep:\n  algorithm: [grpo]\n  factorial: %s\n", design);
  const gl_status status = recipe_resolved(doc, text, NULL, err);
  return status == GL_OK ? factorial_expand(*doc, err) : status;
}

static const char screen[] =
    "{factors: {A: {a: [-1, 1]}, B: {b: [-1, 1]}, C: {c: [-1, 1]}, D: {d: [-1, 1]}, "
    "E: {e: [-1, 1]}, F: {f: [-1, 1]}, G: {g: [-1, 1]}, H: {h: [-1, 1]}}, "
    "generators: {G: ABCD, H: ABEF}, blocks: {words: [ACE, BDF], seeds: [11, 12, 13, 14]}}";
static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

/* 64 combinations of eight factors: every pair of main effects and two-factor interactions is
 * orthogonal (resolution V), and no main effect or interaction of two is a block's contrast. */
TEST(the_screening_design_has_resolution_five) {
  enum { ROWS = 64, FACTORS = 8, EFFECTS = FACTORS + FACTORS * (FACTORS - 1) / 2 };
  static double effect[EFFECTS + 3][ROWS];
  cfg_doc *doc = NULL;
  ASSERT_OK(expand(&doc, screen, &err));
  const cfg_node *list = cfg_find(cfg_find(cfg_root(doc), "sweep"), "factorial");
  CU_ASSERT_EQUAL_FATAL(cfg_size(list), ROWS);
  for (size_t i = 0; i < ROWS; ++i) {
    double x[FACTORS];
    size_t n = 0;
    for (size_t k = 0; k < FACTORS; ++k) effect[n++][i] = x[k] = listed_number(list, i, names[k]);
    for (size_t k = 0; k < FACTORS; ++k)
      for (size_t m = 0; m < k; ++m) effect[n++][i] = x[k] * x[m];
    const double block = listed_number(list, i, "seed") - 11;
    CU_ASSERT(block >= 0 && block <= 3);
    effect[n][i] = block == 1 || block == 3 ? 1 : -1;
    effect[n + 1][i] = block >= 2 ? 1 : -1;
    effect[n + 2][i] = effect[n][i] * effect[n + 1][i];
    CU_ASSERT_EQUAL(x[6], x[0] * x[1] * x[2] * x[3]);
    CU_ASSERT_EQUAL(x[7], x[0] * x[1] * x[4] * x[5]);
    CU_ASSERT_EQUAL(effect[n][i], x[0] * x[2] * x[4]);
    CU_ASSERT_EQUAL(effect[n + 1][i], x[1] * x[3] * x[5]);
  }
  for (size_t a = 0; a < EFFECTS + 3; ++a)
    for (size_t b = 0; b <= a; ++b) {
      double sum = 0;
      for (size_t i = 0; i < ROWS; ++i) sum += effect[a][i] * effect[b][i];
      CU_ASSERT_EQUAL(sum, a == b ? ROWS : 0);
    }
  cfg_free(doc);
}

/* The first factor changes fastest; a factor sets several fields at once. */
TEST(all_combinations_of_two_factors_come_in_standard_order) {
  cfg_doc *doc = NULL;
  ASSERT_OK(expand(&doc, "{factors: {A: {a: [1, 2], aa: [10, 20]}, B: {b: [3, 4]}}}", &err));
  const cfg_node *list = cfg_find(cfg_find(cfg_root(doc), "sweep"), "factorial");
  static const double expected[4][3] = {{1, 10, 3}, {2, 20, 3}, {1, 10, 4}, {2, 20, 4}};
  CU_ASSERT_EQUAL_FATAL(cfg_size(list), 4);
  for (size_t i = 0; i < 4; ++i) {
    CU_ASSERT_EQUAL(listed_number(list, i, "a"), expected[i][0]);
    CU_ASSERT_EQUAL(listed_number(list, i, "aa"), expected[i][1]);
    CU_ASSERT_EQUAL(listed_number(list, i, "b"), expected[i][2]);
    CU_ASSERT(isnan(listed_number(list, i, "seed")));
  }
  cfg_free(doc);
}

TEST(what_is_no_design_is_refused_by_name) {
  static const struct {
    const char *design, *says;
  } wrong[] = {
      {"{factors: {A: {a: [1, 2]}}}", "two factors or more"},
      {"{factors: {A: {a: [1, 2]}, bb: {b: [1, 2]}}}", "one capital letter"},
      {"{factors: {A: {a: [1, 2]}, B: {b: [1, 2, 3]}}}", "low and its high value"},
      {"{factors: {A: {a: [1, 2]}, B: {a: [1, 2]}}}", "one inside the other"},
      {"{factors: {A: {a: [1, 2]}, B: {b.c: [1, 2], b: [{c: 1}, {c: 2}]}}}",
       "factor B sets b.c and b, one inside the other"},
      {"{factors: {A: {a: [1, 2]}, B: {a.b: [1, 2]}}}", "factors A and B set a and a.b"},
      {"{factors: {A: {a: [1, 2]}, B: {algorithm: [1, 2]}}}", "factor B sets 'algorithm'"},
      {"{factors: {A: {a: [1, 2]}, B: {seed: [1, 2]}}}", "an axis of its own"},
      {"{factors: {A: {a: [1, 2]}, B: {b: [1, 2]}}, generators: {C: AB}}", "no such factor"},
      {"{factors: {A: {a: [1, 2]}, B: {b: [1, 2]}, C: {c: [1, 2]}}, generators: {C: AD}}",
       "no base factor"},
      {"{factors: {A: {a: [1, 2]}, B: {b: [1, 2]}, C: {c: [1, 2]}}, generators: {C: A}}",
       "two or more base factors"},
      {"{factors: {A: {a: [1, 2]}, B: {b: [1, 2]}, C: {c: [1, 2]}}, generators: {C: AA}}",
       "names A twice"},
      {"{factors: {A: {a: [1, 2]}, B: {b: [1, 2]}, C: {c: [1, 2]}, D: {d: [1, 2]}}, generators: "
       "{C: AB, D: BA}}",
       "makes C and D one factor"},
      {"{factors: {A: {a: [1, 2]}, B: {b: [1, 2]}}, blocks: {words: [AB], seeds: [1, 2, 3]}}",
       "1 words make 2 blocks"},
      {"{factors: {A: {a: [1, 2]}, B: {b: [1, 2]}}, blocks: {words: AB, seeds: [1, 2]}}",
       "words and seeds"},
      {"{factors: {A: {a: [1, 2]}, B: {b: [1, 2]}}, block: {}}", "unknown key 'block'"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    cfg_doc *doc = NULL;
    gl_error err = {0};
    CU_ASSERT_EQUAL(expand(&doc, wrong[i].design, &err), GL_EINPUT);
    CU_ASSERT(strstr(err.text, wrong[i].says) != NULL && strstr(err.text, "r.yaml:3") != NULL);
    if (strstr(err.text, wrong[i].says) == NULL)
      fprintf(stderr, "%s\n  says: %s\n", wrong[i].design, err.text);
    cfg_free(doc);
  }
}

/* --- one at a time --- */

SUITE("cli: one-at-a-time designs");

/* One-at-a-time designs: their settings, their overrides, and what is refused. */

static gl_status expand_settings(cfg_doc **doc, const char *sweep, const char *override,
                                 gl_error *err) {
  char text[1024];
  snprintf(text, sizeof text, "tune: {lr: [1, 2], seeds: [9]}\nsweep:\n  algorithm: [grpo]\n%s\n",
           sweep);
  const gl_status status = recipe_resolved(doc, text, override, err);
  return status == GL_OK ? one_at_a_time_expand(*doc, err) : status;
}

/* The base comes first; a time has its unit taken off as anywhere else. */
TEST(every_setting_differs_from_the_base_in_one_field) {
  static const char *const paths[] = {"algorithm.kl_coef", "cluster.max_delay",
                                      "sampling.temperature"};
  static const double expected[][3] = {{8, 0, 1},   {4, 0, 1},    {16, 0, 1},
                                       {8, 600, 1}, {8, 0, 0.25}, {8, 0, 0.5}};
  cfg_doc *doc = NULL;
  ASSERT_OK(expand_settings(&doc,
                            "  one_at_a_time: {algorithm.kl_coef: [8, 4, 16], "
                            "cluster.max_delay: [0, 10m], sampling.temperature: [2, 3]}",
                            "sweep.one_at_a_time.sampling.temperature=[1, 0.25, 0.5]", &err));
  const cfg_node *list = cfg_find(cfg_find(cfg_root(doc), "sweep"), "one_at_a_time");
  CU_ASSERT_EQUAL_FATAL(cfg_size(list), sizeof expected / sizeof expected[0]);
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; ++i) {
    CU_ASSERT_EQUAL(cfg_size(cfg_at(list, i)), 3);
    for (size_t k = 0; k < 3; ++k)
      CU_ASSERT_EQUAL(listed_number(list, i, paths[k]), expected[i][k]);
  }
  cfg_free(doc);
}

TEST(one_at_a_time_what_is_no_design_is_refused_by_name) {
  static const struct {
    const char *sweep, *says;
  } wrong[] = {
      {"  one_at_a_time: {}", "needs fields and their values"},
      {"  one_at_a_time: [1, 2]", "needs fields and their values"},
      {"  one_at_a_time: {steps: [1]}", "its base value and one or more others"},
      {"  one_at_a_time: {steps: 7}", "its base value and one or more others"},
      {"  one_at_a_time: {seed: [1, 2]}", "an axis of its own"},
      {"  one_at_a_time: {algorithm: [grpo, gepo]}", "an axis of its own"},
      {"  one_at_a_time: {optimizer: [{lr: 1}, {lr: 2}]}", "tune chooses it"},
      {"  one_at_a_time: {steps: [1, 2]}\n  steps: [3, 4]", "sweep.steps lists its values"},
      {"  one_at_a_time: {algorithm.clip: [ppo, none]}\n  algorithm.clip: [ppo]",
       "sweep.algorithm.clip lists its values"},
      {"  one_at_a_time: {train: [{}, {}], train.groups: [1, 2]}", "one inside the other"},
      {"  one_at_a_time: {steps: [1, 2]}\n  random: {draws: 2}", "keep one"},
      {"  one_at_a_time: {steps: [1, 2]}\n  factorial: {factors: {}}", "keep one"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    cfg_doc *doc = NULL;
    gl_error err = {0};
    CU_ASSERT_EQUAL(expand_settings(&doc, wrong[i].sweep, NULL, &err), GL_EINPUT);
    CU_ASSERT(strstr(err.text, wrong[i].says) != NULL && strstr(err.text, "r.yaml:4") != NULL);
    if (strstr(err.text, wrong[i].says) == NULL)
      fprintf(stderr, "%s\n  says: %s\n", wrong[i].sweep, err.text);
    cfg_free(doc);
  }
}

SUITE("cli: random search");

/* Random search: where the draws lie, what they depend on, and what is refused. */

static gl_status draw(cfg_doc **doc, const char *text, gl_error *err) {
  const gl_status status = recipe_resolved(doc, text, NULL, err);
  return status == GL_OK ? random_search_draw(*doc, err) : status;
}

/* The draws of a search: sweep.random of the doc, which the caller frees. */
static const cfg_node *draws_of(cfg_doc **doc, const char *search) {
  char text[1024];
  gl_error err = {0};
  snprintf(text, sizeof text, "sweep:\n  random: %s\n", search);
  gl_status status = draw(doc, text, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_FATAL(status == GL_OK);
  return cfg_find(cfg_find(cfg_root(*doc), "sweep"), "random");
}

/* The largest distance between the draws' distribution and the distribution's, against the 1e-6
 * quantile of Kolmogorov's distribution, 2.69 / sqrt(n): one of these five fails by chance with
 * probability 5e-6, and the seed is fixed. */
static void check_dist(const char *dist, double (*cumulated)(double)) {
  enum { N = 4000 };
  char search[256];
  static double x[N];
  cfg_doc *doc = NULL;
  /* A second field keeps apart what the first one draws twice. */
  snprintf(search, sizeof search,
           "{draws: %d, seed: 5, fields: {optimizer.lr: %s, b: {distribution: uniform, from: 0, "
           "to: 1e6}}}",
           N, dist);
  const cfg_node *draws = draws_of(&doc, search);
  CU_ASSERT_EQUAL_FATAL(cfg_size(draws), N);
  for (size_t i = 0; i < N; ++i) x[i] = listed_number(draws, i, "optimizer.lr");
  double worst = 0;
  for (size_t i = 0; i < N; ++i) {
    size_t below = 0;
    for (size_t k = 0; k < N; ++k) below += x[k] <= x[i];
    worst = fmax(worst, fabs((double)below / N - cumulated(x[i])));
  }
  if (!(worst < 2.69 / sqrt(N))) fprintf(stderr, "%s: %g\n", dist, worst);
  CU_ASSERT(worst < 2.69 / sqrt(N));
  cfg_free(doc);
}

static double uniform(double x) {
  return (x - 2) / 3;
}
static double log_uniform(double x) {
  return (log(x) - log(1e-4)) / (log(1e-1) - log(1e-4));
}
static double integer(double x) {
  return (x + 1e6 + 1) / (2e6 + 1);
}
static double log_integer(double x) {
  return log(x + 1) / log(1e9 + 1);
}
static double normal(double x) {
  return 0.5 * erfc(-(x - 3) / (0.5 * sqrt(2)));
}

TEST(numbers_follow_their_dists) {
  check_dist("{distribution: uniform, from: 2, to: 5}", uniform);
  check_dist("{distribution: log_uniform, from: 1e-4, to: 1e-1}", log_uniform);
  check_dist("{distribution: integer, from: -1000000, to: 1000000}", integer);
  check_dist("{distribution: log_integer, from: 1, to: 1e9}", log_integer);
  check_dist("{distribution: normal, mean: 3, sd: 0.5}", normal);
}

TEST(whole_numbers_and_choices_reach_both_ends) {
  cfg_doc *doc = NULL;
  const cfg_node *draws = draws_of(&doc, "{draws: 12, fields: {a: {distribution: integer, from: "
                                         "-1, to: 2}, b: {choice: [x, [1], {y: 2}]}}}");
  int seen[4] = {0};
  CU_ASSERT_EQUAL_FATAL(cfg_size(draws), 12); /* all there are: 4 × 3 */
  for (size_t i = 0; i < 12; ++i) ++seen[(int)listed_number(draws, i, "a") + 1];
  for (int k = 0; k < 4; ++k) CU_ASSERT_EQUAL(seen[k], 3);
  cfg_free(doc);
}

/* The addresses of a draw: its number, its field and the seed of the search. */
TEST(more_draws_and_other_fields_change_no_draw) {
  static const char *const searches[] = {
      "{draws: 20, seed: 7, fields: {optimizer.lr: {distribution: uniform, from: 0, to: 1}}}",
      "{draws: 9, seed: 7, fields: {steps: {distribution: integer, from: 1, to: 900000}, "
      "optimizer.lr: "
      "{distribution: "
      "uniform, from: 0, to: 1}}}",
      "{draws: 20, seed: 8, fields: {optimizer.lr: {distribution: uniform, from: 0, to: 1}}}"};
  cfg_doc *doc[3] = {NULL};
  const cfg_node *draws[3];
  size_t other = 0;
  for (size_t k = 0; k < 3; ++k) draws[k] = draws_of(&doc[k], searches[k]);
  for (size_t i = 0; i < 9; ++i) {
    const double x = listed_number(draws[0], i, "optimizer.lr");
    CU_ASSERT_EQUAL(x, listed_number(draws[1], i, "optimizer.lr"));
    other += x != listed_number(draws[2], i, "optimizer.lr");
  }
  CU_ASSERT_EQUAL(other, 9);
  for (size_t k = 0; k < 3; ++k) cfg_free(doc[k]);
}

TEST(drawn_numbers_are_short_and_in_the_fields_unit) {
  cfg_doc *doc = NULL;
  const cfg_node *draws =
      draws_of(&doc, "{draws: 50, fields: {cluster.max_delay: {distribution: uniform, from: "
                     "1m, to: 0.5h}, optimizer.lr: {distribution: log_uniform, from: "
                     "1e-5, to: 1e-2}}}");
  for (size_t i = 0; i < 50; ++i) {
    const double delay = listed_number(draws, i, "cluster.max_delay");
    CU_ASSERT(delay >= 60 && delay <= 1800);
    CU_ASSERT(delay * 10 == floor(delay * 10)); /* a ten-thousandth of the width is 0.174 */
    CU_ASSERT(strlen(cfg_text(cfg_at(cfg_at(draws, i), 1))) <= 12);
  }
  cfg_free(doc);
}

TEST(wrong_searches_are_refused) {
  static const char *const cases[][2] = {
      {"{fields: {a: [1]}}", "needs draws and fields"},
      {"{draws: 3}", "needs draws and fields"},
      {"{draws: 3, fields: {}}", "needs draws and fields"},
      {"{draws: 3, fields: [a]}", "needs draws and fields"},
      {"{draws: 0, fields: {a: [1]}}", "from 1 to 100000"},
      {"{draws: 1e9, fields: {a: [1]}}", "from 1 to 100000"},
      {"{draws: 1, sed: 2, fields: {a: [1]}}", "did you mean 'seed'"},
      {"{draws: 1, seed: -1, fields: {a: [1]}}", "'sweep.random.seed'"},
      {"{draws: 3, fields: {a: [1, 2]}}", "there are only 2"},
      {"{draws: 1, fields: {a: []}}", "at least one"},
      {"{draws: 1, fields: {a: {choice: 3}}}", "at least one"},
      {"{draws: 1, fields: {a: {choice: [1], distribution: uniform}}}",
       "unknown key 'distribution'"},
      {"{draws: 1, fields: {a: 3}}", "must be a map"},
      {"{draws: 1, fields: {a: {from: 1, to: 2}}}", "has no distribution"},
      {"{draws: 1, fields: {a: {distribution: lognormal}}}", "one of uniform, log_uniform"},
      {"{draws: 1, fields: {a: {distribution: uniform, from: 1}}}", "needs from and to"},
      {"{draws: 1, fields: {a: {distribution: normal, mean: 1}}}", "needs mean and sd"},
      {"{draws: 1, fields: {a: {distribution: normal, mean: 1, sd: 0}}}", "above 0"},
      {"{draws: 1, fields: {a: {distribution: uniform, from: 2, to: 1}}}", "must be above"},
      {"{draws: 1, fields: {a: {distribution: uniform, from: 1, to: 1}}}", "must be above"},
      {"{draws: 1, fields: {a: {distribution: uniform, from: nan, to: 1}}}", "is text"},
      {"{draws: 1, fields: {a: {distribution: uniform, from: -1.7e308, to: 1.7e308}}}",
       "must be above"},
      {"{draws: 1, fields: {a: {distribution: log_uniform, from: 0, to: 1}}}", "begins above 0"},
      {"{draws: 1, fields: {a: {distribution: integer, from: 0.5, to: 1}}}", "must be whole"},
      {"{draws: 1, fields: {seed: [1, 2]}}", "draws no seeds"},
      {"{draws: 1, fields: {a.b: [1], a: [{b: 2}]}}", "one inside the other"},
      {"{draws: 1, fields: {a: [{b: 2}], a.b: [1]}}", "draws a and a.b, one inside the other"},
      {"{draws: 1, fields: {listed: [1]}}", "lists its values"},
      {"{draws: 1, fields: {listed.x: [1]}}", "lists its values"},
      {"{draws: 1, fields: {optimizer.lr: [1]}}",
       "sweep.random draws optimizer.lr, and tune chooses it"},
      {"{draws: 1, fields: {cluster.max_delay: {distribution: uniform, from: 1MB, to: 2h}}}",
       "is in s"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[512];
    cfg_doc *doc = NULL;
    gl_error err = {0};
    snprintf(text, sizeof text,
             "tune: {lr: [1], seeds: [2]}\nsweep:\n  listed: [1]\n  random: %s\n", cases[i][0]);
    gl_status status = draw(&doc, text, &err);
    const int ok = status == GL_EINPUT && strncmp(err.text, "r.yaml:4:", 9) == 0 &&
                   strstr(err.text, cases[i][1]) != NULL;
    if (!ok) fprintf(stderr, "%s: wanted '%s', got '%s'\n", cases[i][0], cases[i][1], err.text);
    CU_ASSERT(ok);
    cfg_free(doc);
  }
}

TEST(a_recipe_without_a_search_stays_as_it_is) {
  static const char *const texts[] = {"a: 1", "sweep: ~", "sweep: {random: ~}", "sweep: 3"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    cfg_doc *doc = NULL;
    CU_ASSERT_EQUAL(draw(&doc, texts[i], NULL), GL_OK);
    cfg_free(doc);
  }
}
