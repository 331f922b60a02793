/* M2PO's choice among many tokens, which is made without sorting them, next to its definition; and
 * the loop that most token ratios take next to the one that every algorithm can take. */
#include "core/policy/policy.h"
#include "core/random/rng.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("policy: many tokens");

enum { RESPONSES = 16, TOKENS = 4000, LENGTH = TOKENS / RESPONSES };

typedef struct batch {
  size_t groups[2], tokens[RESPONSES + 1];
  double reward[RESPONSES], logp[TOKENS], logq[TOKENS];
  double coefficient[TOKENS], weight[TOKENS];
  policy_output out;
} batch;

static double uniform(uint64_t k) {
  return rng_u01(rng_block(rng_stream_at(5, RNG_TEST, 11), k).v[0]);
}

/* Log-ratios uniform on (-size, size), or multiples of size / 4 with many equal ones. */
static void fill(batch *b, double size, int equal) {
  *b = (batch){.groups = {0, RESPONSES}};
  for (size_t i = 0; i <= RESPONSES; i++) b->tokens[i] = i * LENGTH;
  for (size_t i = 0; i < RESPONSES; i++) b->reward[i] = i % 3 == 0;
  for (size_t t = 0; t < TOKENS; t++) {
    double x = 2 * uniform(t) - 1;
    if (equal) x = floor(4 * x) / 4;
    b->logp[t] = size * x;
  }
}

static void evaluate(const policy_algorithm *algorithm, batch *b) {
  policy_workspace *ws = policy_workspace_new();
  const policy_input in = {.n_groups = 1,
                           .n_responses = RESPONSES,
                           .n_tokens = TOKENS,
                           .group_start = b->groups,
                           .token_start = b->tokens,
                           .reward = b->reward,
                           .logp = b->logp,
                           .logq = b->logq,
                           .max_length = LENGTH};
  b->out.coefficient = b->coefficient;
  b->out.weight = b->weight;
  ASSERT_OK(policy_evaluate(algorithm, &in, &b->out, ws, &err));
  policy_workspace_free(ws);
}

typedef struct ranked {
  double square;
  size_t token;
} ranked;

static int ascending(const void *left, const void *right) {
  const ranked *a = left, *b = right;
  if (a->square != b->square) return a->square < b->square ? -1 : 1;
  return a->token < b->token ? -1 : 1;
}

/* The tokens in ascending order of their squares. */
static void rank_all(const batch *b, ranked rank[TOKENS]) {
  for (size_t t = 0; t < TOKENS; t++) rank[t] = (ranked){b->logp[t] * b->logp[t], t};
  qsort(rank, TOKENS, sizeof *rank, ascending);
}

/* Tokens are left out from the largest on while the mean of the others' squares is above tau. */
static void check_removal(const policy_algorithm *algorithm, batch *b) {
  static ranked rank[TOKENS];
  double sum = 0;
  size_t kept = 0;
  rank_all(b, rank);
  while (kept < TOKENS && (sum + rank[kept].square) / (double)(kept + 1) <= algorithm->m2_tau)
    sum += rank[kept++].square;
  evaluate(algorithm, b);
  for (size_t k = 0; k < TOKENS; k++) CU_ASSERT((b->coefficient[rank[k].token] != 0) == (k < kept));
  ASSERT_CLOSE(b->out.metric[METRIC_CLIP_FRACTION], (double)(TOKENS - kept) / TOKENS, 1e-12);
}

TEST(the_tokens_left_out_are_those_of_the_definition) {
  static batch b;
  const double sizes[] = {0.05, 0.5, 1, 3};
  for (size_t k = 0; k < 4; k++)
    for (int equal = 0; equal < 2; equal++)
      for (double tau = 0.001; tau < 4; tau *= 3) {
        policy_algorithm algorithm = *policy_algorithms_find("m2po");
        algorithm.m2_set = M2_ALL;
        algorithm.m2_tau = tau;
        fill(&b, sizes[k], equal);
        check_removal(&algorithm, &b);
      }
}

/* Where the mean of all squares is tau itself, the order of the sum decides: that of the
 * definition, ascending, has the word. */
TEST(a_mean_that_is_the_bound_is_decided_in_ascending_order) {
  static batch b;
  static ranked rank[TOKENS];
  for (int below = 0; below < 2; below++) {
    double sum = 0;
    policy_algorithm algorithm = *policy_algorithms_find("m2po");
    fill(&b, 1, 0);
    rank_all(&b, rank);
    for (size_t k = 0; k < TOKENS; k++) sum += rank[k].square;
    algorithm.m2_set = M2_ALL;
    algorithm.m2_tau = sum / TOKENS;
    if (below) algorithm.m2_tau = nextafter(algorithm.m2_tau, 0);
    check_removal(&algorithm, &b);
    CU_ASSERT_EQUAL(b.out.metric[METRIC_CLIP_FRACTION] > 0, below);
  }
}

/* The last square d_k with d_1 + .. + d_k + (n - k) d_k < tau n bounds the log-ratios. */
TEST(the_bound_is_that_of_the_definition) {
  static batch b;
  static ranked rank[TOKENS];
  for (int equal = 0; equal < 2; equal++)
    for (double tau = 0.001; tau < 1; tau *= 3) {
      policy_algorithm algorithm = *policy_algorithms_find("m2po");
      double sum = 0, bound = 0, all = 0;
      algorithm.m2_set = M2_ALL;
      algorithm.m2_form = M2_THRESHOLD;
      algorithm.m2_tau = tau;
      fill(&b, 1, equal);
      rank_all(&b, rank);
      for (size_t k = 0; k < TOKENS; k++) all += rank[k].square;
      for (size_t k = 0; k < TOKENS; k++) {
        sum += rank[k].square;
        if (!(sum + (double)(TOKENS - k - 1) * rank[k].square < tau * TOKENS)) break;
        bound = sqrt(rank[k].square);
      }
      if (all / TOKENS <= tau) bound = INFINITY;
      evaluate(&algorithm, &b);
      for (size_t t = 0; t < TOKENS; t++) {
        const double a = b.reward[t / LENGTH] > 0 ? 1 : -1;
        CU_ASSERT((b.coefficient[t] != 0) == (a * b.logp[t] <= bound));
      }
    }
}

/* Sums of terms of up to `size` times a weight, formed in two orders. */
static int same_sum(const batch *b, double left, double right, double size) {
  double most = 0;
  for (size_t t = 0; t < TOKENS; t++) most += b->weight[t] * (1 + size);
  return left == right || fabs(left - right) <= 1e-13 * most;
}

/* Truncation factors that are all 1 make an algorithm take the loop of all algorithms. */
TEST(both_loops_over_tokens_give_the_same_bits) {
  static const char *const names[] = {"grpo",      "dapo",  "bnpo", "delta_l", "m2po",
                                      "magistral", "cispo", "aipo", "topr"};
  static batch plain, general;
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
    for (double size = 0.01; size < 100; size *= 10) {
      policy_algorithm algorithm = *policy_algorithms_find(names[k]);
      algorithm.ratio = RATIO_TOKEN; /* topr's is of the response */
      fill(&plain, size, 0);
      fill(&general, size, 0);
      evaluate(&algorithm, &plain);
      algorithm.tis_level = LEVEL_TOKEN;
      algorithm.tis_min = algorithm.tis_max = 1;
      evaluate(&algorithm, &general);
      CU_ASSERT(same_sum(&plain, plain.out.loss, general.out.loss, size));
      CU_ASSERT_EQUAL(plain.out.metric[METRIC_CLIP_FRACTION],
                      general.out.metric[METRIC_CLIP_FRACTION]);
      CU_ASSERT_EQUAL(memcmp(plain.coefficient, general.coefficient, sizeof plain.coefficient), 0);
      CU_ASSERT_EQUAL(memcmp(plain.weight, general.weight, sizeof plain.weight), 0);
    }
}
