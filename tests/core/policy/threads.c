/* Evaluations on several threads: every algorithm gives the bits that it gives on one. */
#include "core/base/thread_pool.h"
#include "core/policy/policy.h"
#include "core/random/rng.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("policy: threads");

enum { GROUPS = 6, SIZE = 4, RESPONSES = GROUPS * SIZE, LONGEST = 900, MOST = RESPONSES * LONGEST };

typedef struct batch {
  size_t group_start[GROUPS + 1], token_start[RESPONSES + 1];
  double reward[RESPONSES], log_denominator[GROUPS];
  double logp[MOST], logq[MOST], logprox[MOST], logref[MOST], version_gap[MOST], entropy[MOST],
      entropy_prox[MOST];
} batch;

typedef struct answer {
  double advantage[RESPONSES], weight[MOST], coefficient[MOST];
  double baseline[GROUPS], scale[GROUPS], mean_aw[GROUPS];
  double loss, metric[METRIC_COUNT];
} answer;

/* Some 16,000 tokens of uneven lengths, one group of equal rewards, log-ratios wide enough for
 * every clip to act and for M2PO to leave tokens out. */
static void fill(batch *b) {
  const rng_stream stream = rng_stream_at(11, RNG_TEST, 2);
  for (size_t g = 0; g <= GROUPS; ++g) b->group_start[g] = g * SIZE;
  for (size_t g = 0; g < GROUPS; ++g) b->log_denominator[g] = -0.4 * (double)(g + 1);
  for (size_t i = 0; i < RESPONSES; ++i) {
    b->reward[i] = i / SIZE == 2 ? 1 : (double)(i % 3 == 0);
    b->token_start[i + 1] = b->token_start[i] + 400 + 37 * i % 500;
  }
  for (size_t t = 0; t < b->token_start[RESPONSES]; ++t) {
    const rng_words words = rng_block(stream, t), more = rng_block(stream, MOST + t);
    b->logq[t] = log(rng_u01(words.v[0]));
    b->logp[t] = fmin(0, b->logq[t] + 0.9 * (rng_u01(words.v[1]) - 0.5));
    b->logprox[t] = fmin(0, b->logq[t] + 0.9 * (rng_u01(words.v[2]) - 0.5));
    b->logref[t] = fmin(0, b->logq[t] + 0.9 * (rng_u01(words.v[3]) - 0.5));
    b->version_gap[t] = (double)(more.v[0] % 5);
    b->entropy[t] = 3 * rng_u01(more.v[1]);
    b->entropy_prox[t] = b->entropy[t] * (0.9 + 0.2 * rng_u01(more.v[2]));
  }
}

static void evaluate(const policy_algorithm *algorithm, const batch *b, policy_workspace *ws,
                     answer *a) {
  const policy_input in = {.n_groups = GROUPS,
                           .n_responses = RESPONSES,
                           .n_tokens = b->token_start[RESPONSES],
                           .group_start = b->group_start,
                           .token_start = b->token_start,
                           .reward = b->reward,
                           .logp = b->logp,
                           .logq = b->logq,
                           .logprox = b->logprox,
                           .logref = b->logref,
                           .version_gap = b->version_gap,
                           .entropy = b->entropy,
                           .entropy_prox = b->entropy_prox,
                           .log_denominator = b->log_denominator,
                           .max_length = LONGEST};
  gl_error err = {0};
  memset(a, 0, sizeof *a);
  policy_output out = {.advantage = a->advantage,
                       .weight = a->weight,
                       .coefficient = a->coefficient,
                       .baseline = a->baseline,
                       .scale = a->scale,
                       .mean_aw = a->mean_aw};
  CU_ASSERT_EQUAL(policy_evaluate(algorithm, &in, &out, ws, &err), GL_OK);
  a->loss = out.loss;
  memcpy(a->metric, out.metric, sizeof a->metric);
}

TEST(every_algorithm_has_the_same_bits_on_any_number_of_threads) {
  static const size_t threads[] = {1, 2, 3, 7};
  batch *b = calloc(1, sizeof *b);
  answer *alone = calloc(1, sizeof *alone), *together = calloc(1, sizeof *together);
  policy_workspace *ws = policy_workspace_new();
  CU_ASSERT_FATAL(b != NULL && alone != NULL && together != NULL && ws != NULL);
  fill(b);
  for (size_t i = 0; i < policy_algorithms_count(); ++i) {
    const policy_algorithm *algorithm = policy_algorithms_at(i);
    evaluate(algorithm, b, ws, alone);
    for (size_t k = 0; k < sizeof threads / sizeof *threads; ++k) {
      pool *p = NULL;
      CU_ASSERT_EQUAL_FATAL(pool_new(&p, threads[k], NULL), GL_OK);
      policy_workspace_share(ws, p);
      evaluate(algorithm, b, ws, together);
      CU_ASSERT(memcmp(alone, together, sizeof *alone) == 0);
      policy_workspace_share(ws, NULL);
      pool_free(p);
    }
  }
  policy_workspace_free(ws);
  free(together);
  free(alone);
  free(b);
}
