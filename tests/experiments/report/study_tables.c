/* The recipe in a study's report where memory runs out: it is whole, or the section fails. The page
 * is tested by the command (suite "cli: report"). */
#include "experiments/report/study_internal.h"
#include "tests/support/suite.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

SUITE("report: tables of a study");

/* The allocations of cJSON so far, and the one that fails. */
static size_t allocations, fails;

static void *counted(size_t size) {
  return allocations++ == fails ? NULL : malloc(size);
}

/* A study of two algorithms, without the recipe that was swept. */
static report_study made(uint64_t *seed) {
  static const char *const names[] = {"grpo", "gepo"};
  static const char *const recipes[] = {"{\"algorithm\":\"grpo\",\"seed\":1}",
                                        "{\"algorithm\":\"gepo\",\"seed\":1}"};
  results *r = results_new("made");
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (size_t i = 0; i < 2; i++) {
    const run_record run = {.algorithm = names[i],
                            .swept = "{}",
                            .recipe = recipes[i],
                            .seed = 1,
                            .status = RUN_DONE,
                            .reason = ""};
    ASSERT_OK(results_add(r, &run, &err));
  }
  ASSERT_OK(results_arrange(r, &err));
  return (report_study){.r = r, .seeds = seed, .n_seeds = 1};
}

/* Writes the section; the caller frees *text. */
static gl_status write_recipe(char **text, const report_study *t) {
  size_t size = 0;
  html h = {.to = open_memstream(text, &size), .level = 2};
  CU_ASSERT_PTR_NOT_NULL_FATAL(h.to);
  const gl_status status = section_recipe(&h, t, NULL);
  fclose(h.to);
  return status;
}

TEST(a_recipe_has_every_algorithm_or_the_section_fails) {
  uint64_t seed = 1;
  const report_study t = made(&seed);
  cJSON_Hooks hooks = {.malloc_fn = counted, .free_fn = free};
  char *whole = NULL;
  gl_status status = write_recipe(&whole, &t);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  CU_ASSERT(strstr(whole, "grpo") != NULL && strstr(whole, "gepo") != NULL);
  size_t failed = 0;
  fails = 0;
  do {
    char *text = NULL;
    allocations = 0;
    cJSON_InitHooks(&hooks);
    status = write_recipe(&text, &t);
    cJSON_InitHooks(NULL);
    failed += status == GL_ENOMEM;
    CU_ASSERT(status == GL_ENOMEM || strcmp(text, whole) == 0);
    free(text);
  } while (allocations > fails++);
  CU_ASSERT_EQUAL(status, GL_OK);
  CU_ASSERT(failed > 10);
  free(whole);
  results_free(t.r);
}
