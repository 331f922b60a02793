/* policy_evaluate() on a batch of the size a transformer learner would have. */
#include "core/policy/policy.h"
#include "core/random/rng.h"
#include "experiments/base/seconds.h"
#include "experiments/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { GROUPS = 8, GROUP_SIZE = 8, TOKENS = 512, RESPONSES = GROUPS * GROUP_SIZE };

typedef struct synthetic {
  size_t group_start[GROUPS + 1], token_start[RESPONSES + 1];
  double reward[RESPONSES];
  double *logp, *logq, *coefficient; /* [RESPONSES * TOKENS] */
} synthetic;

static int synthetic_init(synthetic *s) {
  size_t n = (size_t)RESPONSES * TOKENS;
  s->logp = calloc(3 * n, sizeof *s->logp);
  if (s->logp == NULL) return 0;
  s->logq = s->logp + n;
  s->coefficient = s->logq + n;
  for (size_t g = 0; g <= GROUPS; ++g) s->group_start[g] = g * GROUP_SIZE;
  for (size_t i = 0; i <= RESPONSES; ++i) s->token_start[i] = i * TOKENS;
  rng_stream stream = rng_stream_at(1, RNG_TEST, 7);
  for (size_t i = 0; i < RESPONSES; ++i) s->reward[i] = (double)(rng_block(stream, i).v[2] & 1u);
  for (size_t t = 0; t < n; ++t) {
    rng_words w = rng_block(stream, t);
    s->logq[t] = log(rng_u01(w.v[0]));
    s->logp[t] = fmin(0, s->logq[t] + 0.02 * (rng_u01(w.v[1]) - 0.5));
  }
  return 1;
}

static gl_status measure(bench_result *r, const policy_algorithm *algorithm, synthetic *s,
                         policy_workspace *workspace, gl_error *err) {
  const size_t n = (size_t)RESPONSES * TOKENS;
  policy_input in = {.n_groups = GROUPS,
                     .n_responses = RESPONSES,
                     .n_tokens = n,
                     .group_start = s->group_start,
                     .token_start = s->token_start,
                     .reward = s->reward,
                     .logp = s->logp,
                     .logq = s->logq,
                     .max_length = TOKENS};
  policy_output out = {.coefficient = s->coefficient};
  double begun = seconds_now(), took = 0;
  size_t times = 0;
  for (; took < 0.3; ++times) {
    gl_status status = policy_evaluate(algorithm, &in, &out, workspace, err);
    if (status != GL_OK) return status;
    took = seconds_now() - begun;
  }
  char key[48];
  snprintf(key, sizeof key, "%.24s_tokens_per_s", algorithm->name);
  bench_add(r, key, (double)(times * n) / took, NAN, "tokens per second, 64 responses of 512");
  return GL_OK;
}

gl_status bench_policy(bench_result *r, gl_error *err) {
  static const char *const rows[] = {"is", "grpo", "gspo", "gepo", "m2po"};
  synthetic s = {.logp = NULL};
  policy_workspace *workspace = policy_workspace_new();
  gl_status status = GL_OK;
  if (workspace == NULL || !synthetic_init(&s)) status = gl_fail_memory(err, "a batch");
  for (size_t i = 0; i < sizeof rows / sizeof rows[0] && status == GL_OK; ++i)
    status = measure(r, policy_algorithms_find(rows[i]), &s, workspace, err);
  policy_workspace_free(workspace);
  free(s.logp);
  return status;
}
