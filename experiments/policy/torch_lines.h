/* An algorithm as a loss in PyTorch, written from its fields. */
#ifndef GEPOLAB_EXPERIMENTS_POLICY_TORCH_LINES_H
#define GEPOLAB_EXPERIMENTS_POLICY_TORCH_LINES_H

#include "core/policy/algorithm.h"

/* Returns the source of a function loss(logp, logq, rewards, mask, n_groups, *, ...), malloc'd. Its
 * further arguments are what the algorithm needs besides: logprox, logref, gap (staleness),
 * entropy, entropy_prox, log_denominator. Its gradient is minus the coefficients
 * (python/tests/test_policy.py runs it). */
char *torch_lines(const policy_algorithm *algorithm);

#endif
