/* An algorithm as a loss in PyTorch, written from its fields. */
#ifndef GEPOLAB_EXPERIMENTS_POLICY_TORCH_LINES_H
#define GEPOLAB_EXPERIMENTS_POLICY_TORCH_LINES_H

#include "core/policy/algorithm.h"

/* Returns the source of a function loss(logp, logq, rewards, mask, n_groups), malloc'd. Fields that
 * the lines do not follow stand at the end as `# without FIELD: value`; if there are none, its
 * gradient is the algorithm's (python/tests/test_policy.py runs it). */
char *torch_lines(const policy_algorithm *algorithm);

#endif
