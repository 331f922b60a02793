/* policy_evaluate() on a batch of the size a transformer learner would have, beside PyTorch. */
#include "core/policy/policy.h"
#include "core/random/rng.h"
#include "experiments/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { GROUPS = 8, GROUP_SIZE = 8, TOKENS = 512, RESPONSES = GROUPS * GROUP_SIZE, THREADS = 1 };

typedef struct synthetic {
  size_t group_start[GROUPS + 1], token_start[RESPONSES + 1];
  double reward[RESPONSES];
  double *logp, *logq, *coefficient; /* [RESPONSES * TOKENS] */
  const policy_algorithm *algorithm;
  int skip_metrics;
  policy_workspace *workspace;
} synthetic;

static int synthetic_init(synthetic *s) {
  size_t n = (size_t)RESPONSES * TOKENS;
  s->logp = calloc(3 * n, sizeof *s->logp);
  s->workspace = policy_workspace_new();
  if (s->logp == NULL || s->workspace == NULL) return 0;
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

static gl_status time_policy_evaluate(void *self, gl_error *err) {
  synthetic *s = self;
  const policy_input in = {.n_groups = GROUPS,
                           .n_responses = RESPONSES,
                           .n_tokens = (size_t)RESPONSES * TOKENS,
                           .group_start = s->group_start,
                           .token_start = s->token_start,
                           .reward = s->reward,
                           .logp = s->logp,
                           .logq = s->logq,
                           .max_length = TOKENS};
  policy_output out = {.coefficient = s->coefficient, .skip_metrics = s->skip_metrics};
  return policy_evaluate(s->algorithm, &in, &out, s->workspace, err);
}

/* M2PO takes tokens in the order of their second moments, which is not PyTorch's kind of work. */
typedef struct policy_row {
  const char *name;
  int has_peer;
  double aim;
} policy_row;

static gl_status time_policy_measure(bench *b, bench_number **number, const char *name,
                                     const char *what, const char *text, synthetic *s,
                                     gl_error *err) {
  char key[BENCH_NAME];
  snprintf(key, sizeof key, "%s_%s_per_s", name, what);
  return bench_measure(b, number, key, text, (double)RESPONSES * TOKENS, 0.2, time_policy_evaluate,
                       s, err);
}

/* All that a training step asks for; then without the metrics, which PyTorch does not make. */
static gl_status measure_row(bench *b, const policy_row *row, synthetic *s, peer_process *torch,
                             gl_error *err) {
  char request[64];
  bench_number *number = NULL;
  s->algorithm = policy_algorithms_find(row->name);
  s->skip_metrics = 0;
  gl_status status = time_policy_measure(
      b, &number, row->name, "tokens",
      "policy_evaluate, tokens a second, 64 responses of 512, with metrics", s, err);
  if (status != GL_OK) return status;
  number->aim = row->aim;
  if (!row->has_peer) return GL_OK;
  s->skip_metrics = 1;
  status = time_policy_measure(b, &number, row->name, "loss_tokens",
                               "the same, loss and coefficients alone", s, err);
  if (status != GL_OK) return status;
  snprintf(request, sizeof request, "%s eager", row->name);
  bench_ask(b, number, torch, "pytorch_eager", request, NAN);
  snprintf(request, sizeof request, "%s compiled", row->name);
  bench_ask(b, number, torch, "pytorch_compiled", request, NAN);
  return GL_OK;
}

gl_status bench_policy(bench *b, gl_error *err) {
  static const policy_row rows[] = {
      {"is", 1, NAN}, {"grpo", 1, 60e6}, {"gspo", 1, NAN}, {"gepo", 1, NAN}, {"m2po", 0, 60e6}};
  synthetic s = {.logp = NULL};
  peer_process torch = {.pid = 0};
  gl_status status = GL_OK;
  if (!synthetic_init(&s)) status = gl_fail_memory(err, "a batch");
  bench_start_python(b, &torch, "experiments/bench/policy.py", THREADS);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0] && status == GL_OK; ++i)
    status = measure_row(b, &rows[i], &s, &torch, err);
  peer_end(&torch);
  policy_workspace_free(s.workspace);
  free(s.logp);
  return status;
}
