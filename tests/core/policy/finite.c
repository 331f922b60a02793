/* The first result that its array cannot hold is named by its place in batch or group. */
#include "core/policy/policy.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

SUITE("policy: results that are no numbers");

enum { RESPONSES = 4, TOKENS = 6 };

static const size_t groups[] = {0, 2, 4}, starts[] = {0, 1, 3, 5, 6};
static const double logp[TOKENS] = {-1, -2, -3, -1, -1, -1},
                    logq[TOKENS] = {-1, -1, -103, -1, -1, -1};

typedef struct results {
  double advantage[RESPONSES], weight[TOKENS], coefficient[TOKENS];
  policy_output out;
} results;

static void make(results *r) {
  *r = (results){.advantage = {0}};
  r->out = (policy_output){
      .loss = 1, .advantage = r->advantage, .weight = r->weight, .coefficient = r->coefficient};
}

static gl_status check(const results *r, const policy_precisions *keeping, gl_error *err) {
  const policy_input in = {.n_groups = 2,
                           .n_responses = RESPONSES,
                           .n_tokens = TOKENS,
                           .group_start = groups,
                           .token_start = starts,
                           .logp = logp,
                           .logq = logq};
  gl_error_clear(err);
  return policy_check_finite(&in, &r->out, keeping, err);
}

static void check_named(results *r, const policy_precisions *keeping, const char *says) {
  gl_error err = {0};
  const int ok = check(r, keeping, &err) == GL_ENUMERIC && strstr(err.text, says) != NULL;
  if (!ok) fprintf(stderr, "wanted '%s', got '%s'\n", says, err.text);
  CU_ASSERT(ok);
  make(r);
}

TEST(finite_results_pass_and_arrays_that_are_not_there_are_not_looked_at) {
  const policy_precisions keeping = {.by_group = 0};
  results r;
  make(&r);
  r.weight[0] = r.coefficient[5] = -1.7e308;
  ASSERT_OK(check(&r, &keeping, &err));
  r.weight[0] = NAN;
  r.out.weight = NULL;
  ASSERT_OK(check(&r, &keeping, &err));
}

TEST(the_first_result_that_is_no_number_is_named) {
  const policy_precisions batch = {.by_group = 0}, group = {.by_group = 1};
  results r;
  make(&r);
  r.coefficient[2] = INFINITY, r.weight[4] = NAN;
  check_named(&r, &batch,
              "the coefficient of response 1, token 1 is inf: double precision ends at a "
              "log-ratio of 709, and logp - logq is 100 at this token and 99 over");
  r.coefficient[4] = -INFINITY;
  check_named(&r, &group, "the coefficient of group 1, response 0, token 1 is -inf");
  r.weight[5] = NAN;
  check_named(&r, &batch, "the weight of response 3, token 0 is nan");
  r.advantage[3] = NAN, r.coefficient[5] = NAN;
  check_named(&r, &group,
              "the advantage of group 1, response 1 is nan: the rewards of its group are "
              "too far apart for double precision");
  r.out.loss = -INFINITY;
  check_named(&r, &batch, "the loss is -inf although every coefficient is finite");
}

TEST(single_precision_holds_less) {
  const policy_precisions weights = {.weight = POLICY_SINGLE},
                          rest = {.coefficient = POLICY_SINGLE, .advantage = POLICY_SINGLE};
  results r;
  make(&r);
  r.weight[1] = 3.4e38, r.coefficient[0] = 1e39;
  ASSERT_OK(check(&r, &weights, &err));
  r.weight[1] = 1e39;
  check_named(&r, &weights,
              "the weight of response 1, token 0 is 1e+39: single precision ends at "
              "3.4e38, a log-ratio of 88,");
  r.weight[1] = 1e39, r.coefficient[0] = -1e39;
  check_named(&r, &rest, "the coefficient of response 0, token 0 is -1e+39");
  r.advantage[2] = 1e40;
  check_named(&r, &rest,
              "the advantage of response 2 is 1e+40: the rewards of its group are too far "
              "apart for single precision");
}
