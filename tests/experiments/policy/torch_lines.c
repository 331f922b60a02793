/* The lines of PyTorch of every row: a loss that returns, and, for the rows that such lines cannot
 * follow, a line that says which field they leave out. That gradients agree is tested where there
 * is PyTorch: python/tests/test_policy.py. */
#include "experiments/policy/torch_lines.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct left_out {
  const char *algorithm, *field;
} left_out;

static const left_out without[] = {{"gepo_plus", "kappa"},      {"eqp", "denominator"},
                                   {"vtrace", "ratio"},         {"bnpo", "scale"},
                                   {"mois", "ratio"},           {"m2po", "clip"},
                                   {"magistral", "drop_equal"}, {"disco", "objective"},
                                   {"disco_b", "objective"},    {"disco_l_ratio", "objective"},
                                   {"grpo_passk", "baseline"},  {"kl_cov", "kl_share"},
                                   {"bapo", "balance"},         {"a3po", "old_policy"},
                                   {"fipo", "tis_level"},       {"tba", "reward_kl_of"}};

static const char *left_out_of(const char *name) {
  for (size_t i = 0; i < sizeof without / sizeof *without; i++)
    if (strcmp(without[i].algorithm, name) == 0) return without[i].field;
  return NULL;
}

static void every_row_is_a_loss_or_says_what_it_leaves_out(void) {
  size_t incomplete = 0;
  for (size_t i = 0; i < policy_algorithms_count(); i++) {
    const policy_algorithm *a = policy_algorithms_at(i);
    const char *field = left_out_of(a->name);
    char *text = torch_lines(a), said[64];
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "def loss("));
    CU_ASSERT(strstr(text, "    return -") != NULL || strstr(text, "    raise ") != NULL);
    CU_ASSERT((strstr(text, "# without") != NULL) == (field != NULL));
    snprintf(said, sizeof said, "# without %s: ", field != NULL ? field : "");
    CU_ASSERT(field == NULL || strstr(text, said) != NULL);
    incomplete += field != NULL;
    free(text);
  }
  CU_ASSERT_EQUAL(incomplete, sizeof without / sizeof *without);
}

/* Unbounded limits are not written as numbers. */
static void bounds_that_do_nothing_are_not_written(void) {
  for (size_t i = 0; i < policy_algorithms_count(); i++) {
    char *text = torch_lines(policy_algorithms_at(i));
    CU_ASSERT_PTR_NULL(strstr(text, "inf"));
    CU_ASSERT_PTR_NULL(strstr(text, "nan"));
    free(text);
  }
}

SUITE(torch_lines, "policy: lines of PyTorch", TEST(every_row_is_a_loss_or_says_what_it_leaves_out),
      TEST(bounds_that_do_nothing_are_not_written));
