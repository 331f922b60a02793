/* The lines of PyTorch of every row and of changed fields: a loss that returns, and takes what the
 * row needs. That gradients agree is tested where there is PyTorch: python/tests/test_policy.py. */
#include "experiments/policy/torch_lines.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static void every_row_is_a_loss_that_takes_what_it_needs(void) {
  for (size_t i = 0; i < policy_algorithms_count(); i++) {
    const policy_algorithm *a = policy_algorithms_at(i);
    char *text = torch_lines(a), *head = strstr(text, "def loss("), *end = NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(head);
    CU_ASSERT_PTR_NOT_NULL_FATAL(end = strchr(head, ':'));
    CU_ASSERT(strstr(end, "    return -") != NULL || strstr(end, "    return total") != NULL);
    CU_ASSERT_PTR_NULL(strstr(text, "without"));
    *end = '\0';
    CU_ASSERT((strstr(head, "logref") != NULL) == policy_needs_reference(a));
    CU_ASSERT((strstr(head, "gap") != NULL) == policy_needs_version_gap(a));
    CU_ASSERT((strstr(head, "entropy,") != NULL) == policy_needs_entropy(a));
    CU_ASSERT(a->old_policy != OLD_PROXIMAL || strstr(head, "logprox") != NULL);
    free(text);
  }
}

/* Unbounded limits are not written as numbers, and no number is undefined. */
static void bounds_that_do_nothing_are_not_written(void) {
  for (size_t i = 0; i < policy_algorithms_count(); i++) {
    char *text = torch_lines(policy_algorithms_at(i));
    CU_ASSERT_PTR_NULL(strstr(text, "nan"));
    for (const char *at = strstr(text, "inf"); at != NULL; at = strstr(at + 1, "inf"))
      CU_ASSERT(at - text > 6 && strncmp(at - 6, "torch.inf", 9) == 0);
    free(text);
  }
}

SUITE(torch_lines, "policy: lines of PyTorch", TEST(every_row_is_a_loss_that_takes_what_it_needs),
      TEST(bounds_that_do_nothing_are_not_written));
