/* Tokens that are read and written response by response give the bits of a whole evaluation, for
 * every algorithm that can do so, on any number of threads; what is refused is told. */
#include "core/policy/policy.h"
#include "core/random/rng.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("policy: responses one by one");

enum { GROUPS = 6, SIZE = 4, RESPONSES = GROUPS * SIZE, LONGEST = 900, MOST = RESPONSES * LONGEST };

typedef struct batch {
  size_t group_start[GROUPS + 1], token_start[RESPONSES + 1];
  double reward[RESPONSES], log_denominator[GROUPS];
  float logp[MOST], logq[MOST]; /* the caller's own, in single precision */
  double wide_p[MOST], wide_q[MOST];
  size_t refuses; /* the response that read() refuses; RESPONSES: none */
  double given[MOST];
} batch;

/* Uneven lengths, one group of equal rewards, log-ratios wide enough for every clip to act. */
static void fill(batch *b) {
  const rng_stream stream = rng_stream_at(13, RNG_TEST, 2);
  b->refuses = RESPONSES;
  for (size_t g = 0; g <= GROUPS; ++g) b->group_start[g] = g * SIZE;
  for (size_t g = 0; g < GROUPS; ++g) b->log_denominator[g] = -0.4 * (double)(g + 1);
  for (size_t i = 0; i < RESPONSES; ++i) {
    b->reward[i] = i / SIZE == 2 ? 1 : (double)(i % 3 == 0);
    b->token_start[i + 1] = b->token_start[i] + 1 + (397 + 37 * i) % LONGEST;
  }
  for (size_t t = 0; t < b->token_start[RESPONSES]; ++t) {
    const rng_words words = rng_block(stream, t);
    b->logq[t] = (float)log(rng_u01(words.v[0]));
    b->logp[t] = fminf(0, b->logq[t] + 0.9f * (float)(rng_u01(words.v[1]) - 0.5));
    b->wide_p[t] = (double)b->logp[t];
    b->wide_q[t] = (double)b->logq[t];
  }
}

static size_t length_of(const batch *b, size_t i) {
  return b->token_start[i + 1] - b->token_start[i];
}

/* Every second response is told where it lies, the others are copied. */
static const double *read_row(void *self, size_t i, policy_which which, double *space) {
  const batch *b = self;
  const size_t lo = b->token_start[i], n = length_of(b, i);
  const float *from = (which == POLICY_NOW ? b->logp : b->logq) + lo;
  if (i == b->refuses) return NULL;
  if (i % 2 == 0) return (which == POLICY_NOW ? b->wide_p : b->wide_q) + lo;
  for (size_t t = 0; t < n; ++t) space[t] = (double)from[t];
  return space;
}

static int write_row(void *self, size_t i, const double *coefficient) {
  batch *b = self;
  memcpy(b->given + b->token_start[i], coefficient, length_of(b, i) * sizeof *coefficient);
  return 1;
}

static int fill_row(void *self, size_t i, double coefficient) {
  batch *b = self;
  for (size_t t = b->token_start[i]; t < b->token_start[i + 1]; ++t) b->given[t] = coefficient;
  return 1;
}

static int refuse_row(void *self, size_t i, const double *coefficient) {
  return write_row(self, i, coefficient) && i != 5;
}

static int refuse_to_fill(void *self, size_t i, double coefficient) {
  return fill_row(self, i, coefficient) && i != 5;
}

static policy_input input_of(const batch *b) {
  return (policy_input){.n_groups = GROUPS,
                        .n_responses = RESPONSES,
                        .n_tokens = b->token_start[RESPONSES],
                        .group_start = b->group_start,
                        .token_start = b->token_start,
                        .reward = b->reward,
                        .log_denominator = b->log_denominator,
                        .max_length = LONGEST};
}

/* What a whole evaluation says; its ratio is to the sampler's policy. */
typedef struct answer {
  double coefficient[MOST], advantage[RESPONSES], baseline[GROUPS], loss;
} answer;

static void evaluate_whole(const policy_algorithm *algorithm, const batch *b, policy_workspace *ws,
                           answer *a) {
  policy_input in = input_of(b);
  policy_output out = {.skip_metrics = 1,
                       .coefficient = a->coefficient,
                       .advantage = a->advantage,
                       .baseline = a->baseline};
  memset(a, 0, sizeof *a);
  in.logp = b->wide_p;
  in.logq = in.logprox = b->wide_q;
  CU_ASSERT_EQUAL(policy_evaluate(algorithm, &in, &out, ws, NULL), GL_OK);
  a->loss = out.loss;
}

static const policy_stream plain = {
    .longest = LONGEST, .read = read_row, .write = write_row, .fill = fill_row};

static int evaluate_stream(const policy_algorithm *algorithm, batch *b, policy_stream stream,
                           policy_workspace *ws, answer *a) {
  const policy_input in = input_of(b);
  policy_output out = {.skip_metrics = 1, .advantage = a->advantage, .baseline = a->baseline};
  int refused = -1;
  memset(a, 0, sizeof *a);
  memset(b->given, 0, sizeof b->given);
  stream.self = b;
  CU_ASSERT_EQUAL(policy_evaluate_stream(algorithm, &in, &stream, &out, ws, &refused, NULL), GL_OK);
  memcpy(a->coefficient, b->given, sizeof a->coefficient);
  a->loss = out.loss;
  return refused;
}

typedef struct scene {
  batch b;
  answer whole, streamed;
} scene;

TEST(responses_one_by_one_have_the_bits_of_a_whole_evaluation) {
  static const size_t threads[] = {1, 2, 5};
  scene *s = calloc(1, sizeof *s);
  policy_workspace *ws = policy_workspace_new();
  size_t streamed = 0;
  CU_ASSERT_FATAL(s != NULL && ws != NULL);
  fill(&s->b);
  for (size_t i = 0; i < policy_algorithms_count(); ++i) {
    const policy_algorithm *algorithm = policy_algorithms_at(i);
    if (!policy_can_stream(algorithm)) continue;
    ++streamed;
    evaluate_whole(algorithm, &s->b, ws, &s->whole);
    for (size_t k = 0; k < sizeof threads / sizeof *threads; ++k) {
      pool *p = NULL;
      CU_ASSERT_EQUAL_FATAL(pool_new(&p, threads[k], NULL), GL_OK);
      policy_workspace_share(ws, p);
      CU_ASSERT_EQUAL(evaluate_stream(algorithm, &s->b, plain, ws, &s->streamed), 0);
      CU_ASSERT(memcmp(&s->whole, &s->streamed, sizeof s->whole) == 0);
      policy_workspace_share(ws, NULL);
      pool_free(p);
    }
  }
  CU_ASSERT(streamed >= 10);
  policy_workspace_free(ws);
  free(s);
}

/* One of each kind, by name, so that a rule that lets none through is seen. */
TEST(algorithms_that_look_again_at_tokens_are_not_streamed) {
  static const char *const can[] = {"is", "grpo", "cispo", "gspo", "gepo"};
  static const char *const cannot[] = {"m2po", "gmpo", "sapo", "disco", "tis"};
  for (size_t k = 0; k < 5; ++k) {
    const policy_algorithm *a = policy_algorithms_find(can[k]),
                           *b = policy_algorithms_find(cannot[k]);
    CU_ASSERT_FATAL(a != NULL && b != NULL);
    CU_ASSERT(policy_can_stream(a));
    CU_ASSERT_FALSE(policy_can_stream(b));
  }
}

TEST(a_response_that_is_refused_is_told) {
  static const char *const names[] = {"grpo", "gspo"};
  scene *s = calloc(1, sizeof *s);
  policy_workspace *ws = policy_workspace_new();
  policy_stream refusing = plain;
  CU_ASSERT_FATAL(s != NULL && ws != NULL);
  fill(&s->b);
  refusing.write = refuse_row;
  refusing.fill = refuse_to_fill;
  for (size_t k = 0; k < 2; ++k) {
    const policy_algorithm *algorithm = policy_algorithms_find(names[k]);
    s->b.refuses = 3;
    CU_ASSERT_EQUAL(evaluate_stream(algorithm, &s->b, plain, ws, &s->streamed), 1);
    s->b.refuses = RESPONSES;
    CU_ASSERT_EQUAL(evaluate_stream(algorithm, &s->b, refusing, ws, &s->streamed), 1);
    CU_ASSERT_EQUAL(evaluate_stream(algorithm, &s->b, plain, ws, &s->streamed), 0);
  }
  policy_workspace_free(ws);
  free(s);
}
