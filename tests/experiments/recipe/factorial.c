/* Factorial designs: levels, aliases and blocks of textbook designs, and what is refused. */
#include "experiments/recipe/designs.h"

#include "tests/support/recipes.h"
#include "tests/support/suite.h"

#include <string.h>

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
static void the_screening_design_has_resolution_five(void) {
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
static void all_combinations_of_two_factors_come_in_standard_order(void) {
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

static void what_is_no_design_is_refused_by_name(void) {
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

SUITE(recipe_factorial, "cli: factorial designs", TEST(the_screening_design_has_resolution_five),
      TEST(all_combinations_of_two_factors_come_in_standard_order),
      TEST(what_is_no_design_is_refused_by_name));
