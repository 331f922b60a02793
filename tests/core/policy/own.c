/* A file of algorithms means what its fields mean: a recipe that names one has the same text as a
 * recipe that states the fields, and what cannot be understood is refused with its place. */
#include "core/config/user_defined.h"
#include "core/policy/algorithm.h"
#include "tests/support/files.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("policy: own algorithms");

static const char path[] = "build/tests/own_algorithms.yaml";

/* The canonical text of a recipe after its own names have been replaced; NULL after an error. */
static char *expanded(const char *recipe, const cfg_own *own, gl_error *err) {
  cfg_doc *doc = NULL;
  char *text = NULL;
  gl_status status = cfg_load_text(&doc, recipe, strlen(recipe), "recipe", err);
  if (status == GL_OK) status = cfg_include(doc, NULL, err);
  if (status == GL_OK) status = cfg_own_expand(own, doc, err);
  if (status == GL_OK) text = cfg_canonical(cfg_root(doc));
  cfg_free(doc);
  return text;
}

static cfg_own *open_file(const char *text) {
  cfg_own *own = NULL;
  files_put(path, text);
  ASSERT_OK(cfg_own_new(&own, &err));
  ASSERT_OK(cfg_own_add_file(own, path, "algorithms", &err));
  return own;
}

static const char rows[] = "algorithms:\n"
                           "  mine: {base: gepo, clip: none}\n"
                           "  bold: {base: GRPO, eps_high: 0.4, gate: {negative_below: 0.8}}\n"
                           "  next: {base: mine, cap: 3}\n";

TEST(names_become_their_fields_wherever_a_recipe_has_algorithms) {
  static const char *const pairs[][2] = {
      {"algorithm: mine", "algorithm: {base: gepo, clip: none, name: mine}"},
      {"algorithm: {base: mine}", "algorithm: {base: gepo, clip: none, name: mine}"},
      {"algorithm: {base: mine, clip: cap, cap: 2}", "algorithm: {base: gepo, clip: cap, cap: 2}"},
      {"algorithm: {base: mine, name: other}", "algorithm: {base: gepo, clip: none, name: other}"},
      {"algorithm: {base: bold, gate: {positive_above: 2}}",
       "algorithm: {base: GRPO, eps_high: 0.4, gate: {negative_below: 0.8, positive_above: 2}}"},
      {"algorithms: [is, mine]", "algorithms: [is, {base: gepo, clip: none, name: mine}]"},
      {"algorithm: gepo", "algorithm: gepo"},
      {"sweep: {algorithm: [gepo, mine, {base: mine, cap: 3}], seed: [1]}",
       "sweep: {algorithm: [gepo, {base: gepo, clip: none, name: mine}, {base: gepo, clip: none, "
       "cap: 3}], seed: [1]}"},
      {"sweep: {settings: [{algorithm: mine, seed: 2}]}",
       "sweep: {settings: [{algorithm: {base: gepo, clip: none, name: mine}, seed: 2}]}"},
      {"algorithms: {here: {base: is, log_cap: 1}}\nalgorithm: here",
       "algorithm: {base: is, log_cap: 1, name: here}"}};
  cfg_own *own = open_file(rows), *none = NULL;
  ASSERT_OK(cfg_own_new(&none, &err));
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    gl_error err = {0};
    char *a = expanded(pairs[i][0], own, &err), *b = expanded(pairs[i][1], none, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_STRING_EQUAL(a, b);
    free(a), free(b);
  }
  cfg_own_free(own);
  cfg_own_free(none);
}

TEST(rows_are_listed_with_their_own_names_and_fields) {
  cfg_own *own = open_file(rows);
  policy_algorithm a;
  CU_ASSERT_EQUAL_FATAL(cfg_own_count(own, "algorithms"), 3);
  CU_ASSERT_EQUAL(cfg_own_count(own, "presets"), 0);
  ASSERT_OK(policy_algorithms_own(&a, own, 0, &err));
  CU_ASSERT_STRING_EQUAL(a.name, "mine");
  CU_ASSERT_STRING_EQUAL(a.base, "gepo");
  CU_ASSERT_EQUAL(a.clip, CLIP_NONE);
  ASSERT_OK(policy_algorithms_own(&a, own, 1, &err));
  CU_ASSERT_STRING_EQUAL(a.name, "bold");
  CU_ASSERT_EQUAL(a.eps_high, 0.4);
  ASSERT_OK(policy_algorithms_own(&a, own, 2, &err));
  CU_ASSERT_STRING_EQUAL(a.name, "next");
  CU_ASSERT_STRING_EQUAL(a.base, "gepo");
  CU_ASSERT_EQUAL(a.clip, CLIP_NONE);
  CU_ASSERT_EQUAL(a.cap, 3);
  cfg_own_free(own);
}

TEST(what_a_file_cannot_define_is_refused_with_its_place) {
  static const char *const wrong[][2] = {
      {"algorithms: {GEPO: {base: grpo}}", ":1:20: 'gepo' is a published algorithm"},
      {"algorithms: {a b: {base: grpo}}", ":1:19: 'a b' cannot be the name"},
      {"algorithms: {all: {base: grpo}}", "'all' means something else"},
      {"algorithms: {x: {base: z}, y: {base: grpo}}", "no algorithm 'z'"},
      {"algorithms: {x: {base: y}, y: {base: grpo}}",
       ":1:24: the base of 'x' is 'y', which is not "},
      {"algorithms: {x: {base: x}}", ":1:24: the base of 'x' is 'x', which is not defined before"},
      {"algorithms: {x: {base: grpo}, x: {base: gepo}}", "'x'"},
      {"algorithms: {x: grpo}", "'x' must be a map of fields"},
      {"algorithms: {x: {clip: none}}", "'x' has no 'base', the algorithm"},
      {"algorithms: {x: {base: grpo, name: z}}", "is its key, 'x'"},
      {"algorithms: {x: {base: grpo, clip: gamma}}", "clip: gamma has no ratio gradient"},
      {"algorithms: {x: {base: grpo, klip: none}}", "did you mean 'clip'"},
      {"algorithms: {x: {base: grpo}}\nsteps: 3",
       ":2:8: a file of your own definitions has the keys"},
      {"algorithms: {}", "defines no algorithm"},
      {"steps: 3", "'steps' is none of them"},
      {"algorithms: [grpo]", "'algorithms' is none of them"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    cfg_own *own = NULL;
    gl_error err = {0};
    files_put(path, wrong[i][0]);
    CU_ASSERT_EQUAL_FATAL(cfg_own_new(&own, &err), GL_OK);
    CU_ASSERT_EQUAL(cfg_own_add_file(own, path, "algorithms", &err), GL_EINPUT);
    cfg_own_free(own);
    if (strstr(err.text, wrong[i][1]) == NULL) fprintf(stderr, "%s: %s\n", wrong[i][0], err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wrong[i][1]));
  }
  gl_error err = {0};
  cfg_own *own = NULL;
  CU_ASSERT_EQUAL_FATAL(cfg_own_new(&own, &err), GL_OK);
  CU_ASSERT_EQUAL(cfg_own_add_file(own, "build/tests/no/such/file.yaml", "algorithms", &err),
                  GL_EINPUT);
  cfg_own_free(own);
}

TEST(two_meanings_of_one_name_and_own_names_as_axes_of_bases_are_refused) {
  static const char *const wrong[][2] = {
      {"algorithms: {mine: {base: grpo}}\nalgorithm: mine", "is defined here and, differently"},
      {"sweep: {algorithm.base: [gepo, mine]}", "no base for an axis"}};
  cfg_own *own = open_file(rows);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    gl_error err = {0};
    CU_ASSERT_PTR_NULL(expanded(wrong[i][0], own, &err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wrong[i][1]));
  }
  gl_error err = {0};
  char *same = expanded("algorithms: {mine: {clip: none, base: gepo}}\nalgorithm: mine", own, &err);
  CU_ASSERT_PTR_NOT_NULL(same);
  free(same);
  cfg_own_free(own);
}

TEST(an_included_file_defines_what_the_recipe_then_selects) {
  static const char including[] = "build/tests/own_including.yaml";
  files_put(path, rows);
  FILE *f = fopen(including, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  fputs("include: own_algorithms.yaml\nalgorithms: [mine, gepo]\n", f);
  fclose(f);
  cfg_doc *doc = NULL;
  cfg_own *none = NULL;
  ASSERT_OK(cfg_own_new(&none, &err));
  ASSERT_OK(cfg_load_file(&doc, including, &err));
  ASSERT_OK(cfg_include(doc, NULL, &err));
  ASSERT_OK(cfg_own_expand(none, doc, &err));
  char *text = cfg_canonical(cfg_root(doc));
  CU_ASSERT_STRING_EQUAL(
      text, "{\"algorithms\":[{\"base\":\"gepo\",\"clip\":\"none\",\"name\":\"mine\"},\"gepo\"]}");
  free(text);
  cfg_free(doc);
  cfg_own_free(none);
}
