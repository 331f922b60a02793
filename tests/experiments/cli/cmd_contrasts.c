/* gepolab contrasts: declared in a recipe, checked before the sweep, told afterwards. */
#include "core/base/json.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A bandit that any rate solves but a tiny one, which never learns. */
#define STUDY                                                                                      \
  "name: rates\nsteps: 40\neval_every: 5\nworld: {kind: bandit, rewards: [1, 0, 0, 0]}\n"          \
  "train: {groups: 4, group_size: 8}\n"                                                            \
  "sweep: {algorithm: [grpo], optimizer.lr: [1.0e-9, 0.5], seed: [1, 2, 3, 4, 5, 6]}\n"
static const char declared[] =
    STUDY "contrasts:\n  - {name: rate, measure: last, of: {algorithm: grpo, optimizer.lr: 0.5},"
          " against: {algorithm: grpo, optimizer.lr: 1.0e-9}}\n";

static void declared_contrasts_are_told(void) {
  char folder[64], at[128], study[128];
  cli_scratch_make(folder);
  cli_write(cli_path(at, folder, "rates.yaml"), declared, sizeof declared - 1);
  cli_path(study, folder, "study.db");
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study));
  cli_result text = CLI("contrasts", study, at), json = CLI("contrasts", study, at, "--json");
  CU_ASSERT_EQUAL(text.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "rate"));
  cJSON *d = json.code == 0 ? json_tree_of(json.out) : NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(d);
  const cJSON *list = member_at(d, "contrasts");
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(list), 1);
  const cJSON *one = cJSON_GetArrayItem(list, 0);
  CU_ASSERT_EQUAL(number_at(one, "pairs"), 6);
  CU_ASSERT_EQUAL(number_at(one, "p"), 0.03125);
  cJSON_Delete(d);
  cli_result_fini(&text);
  cli_result_fini(&json);
  cli_scratch_remove(folder);
}

static void wrong_contrasts_stop_a_sweep_before_it_begins(void) {
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
    cli_result_fini(&r);
    CU_ASSERT_NOT_EQUAL(access(study, F_OK), 0);
  }
  cli_scratch_remove(folder);
}

static void a_recipe_without_contrasts_is_refused(void) {
  char folder[64], at[128], study[128];
  cli_scratch_make(folder);
  cli_write(cli_path(at, folder, "rates.yaml"), STUDY, sizeof STUDY - 1);
  cli_path(study, folder, "study.db");
  CU_ASSERT(CLI_GIVES(0, "sweep", at, "-o", study));
  cli_result r = CLI("contrasts", study, at);
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "declares no contrasts"));
  cli_result_fini(&r);
  cli_scratch_remove(folder);
}

SUITE(cli_contrasts, "cli: contrasts", TEST(declared_contrasts_are_told),
      TEST(wrong_contrasts_stop_a_sweep_before_it_begins),
      TEST(a_recipe_without_contrasts_is_refused));
