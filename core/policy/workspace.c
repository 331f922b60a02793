/* The workspace of an evaluation: arrays that only grow, and the thread pool. */
#include "core/base/array.h"
#include "core/policy/internal.h"

#include <stdint.h>
#include <stdlib.h>

policy_workspace *policy_workspace_new(void) {
  return calloc(1, sizeof(policy_workspace));
}

void policy_workspace_free(policy_workspace *ws) {
  if (ws == NULL) return;
  free(ws->space);
  free(ws->scratch);
  free(ws->rank);
  free(ws->tally);
  free(ws->group_tally);
  free(ws);
}

void policy_workspace_share(policy_workspace *ws, pool *threads) {
  ws->pool = threads;
}

/* --- threads --- */

/* From this many tokens on, using threads is worth their wake-up. */
enum { FEW_TOKENS = 8192 };

typedef struct each {
  policy_state *state;
  void (*run)(policy_state *s, size_t i);
} each;

static void run_one(void *context, size_t i, size_t worker) {
  const each *e = context;
  (void)worker;
  e->run(e->state, i);
}

pool *policy_threads_for(const policy_state *s) {
  return s->in->n_tokens < FEW_TOKENS ? NULL : s->pool;
}

void policy_each(policy_state *s, size_t n, void (*run)(policy_state *s, size_t i)) {
  each e = {.state = s, .run = run};
  pool_spread(policy_threads_for(s), run_one, &e, n);
}

/* --- memory --- */

gl_status policy_reserve(policy_state *s, policy_workspace *ws, size_t tokens, bool ranks,
                         gl_error *err) {
  const policy_input *in = s->in;
  double **token[] = {&s->log_ratio,    &s->x,          &s->weight,    &s->coefficient,
                      &s->factor,       &s->mask_token, &s->mask_clip, &s->x_slope,
                      &s->mask_entropy, &s->log_between};
  double **response[] = {
      &s->advantage, &s->z,         &s->n_kept,          &s->seq_x,     &s->seq_p,
      &s->seq_q,     &s->seq_g,     &s->seq_jacobian,    &s->seq_share, &s->seq_in_limits,
      &s->seq_c,     &s->mask_gate, &s->mask_off_policy, &s->own_reward};
  double **group[] = {&s->baseline, &s->scale, &s->mask_group};
  enum {
    TOKEN_ARRAYS = sizeof token / sizeof *token,
    RESPONSE_ARRAYS = sizeof response / sizeof *response,
    GROUP_ARRAYS = sizeof group / sizeof *group
  };
  const size_t most = SIZE_MAX / sizeof(policy_tally) / 32;
  const bool countable = in->n_tokens <= most && in->n_responses <= most && in->n_groups <= most;
  const size_t numbers =
      TOKEN_ARRAYS * tokens + RESPONSE_ARRAYS * in->n_responses + GROUP_ARRAYS * in->n_groups;
  if (!countable || !ARRAY_FIT(ws->space, ws->space_size, numbers) ||
      (ranks && !ARRAY_FIT(ws->rank, ws->rank_size, in->n_tokens)) ||
      !ARRAY_FIT(ws->tally, ws->tally_size, in->n_responses) ||
      !ARRAY_FIT(ws->group_tally, ws->group_tally_size, in->n_groups))
    return gl_fail_memory(err, "the policy workspace");
  double *at = ws->space;
  for (size_t k = 0; k < TOKEN_ARRAYS; ++k, at += tokens) *token[k] = at;
  for (size_t k = 0; k < RESPONSE_ARRAYS; ++k, at += in->n_responses) *response[k] = at;
  for (size_t k = 0; k < GROUP_ARRAYS; ++k, at += in->n_groups) *group[k] = at;
  s->rank = ws->rank;
  s->tally = ws->tally;
  s->group_tally = ws->group_tally;
  s->pool = ws->pool;
  /* if the caller wants these arrays, compute them in place */
  if (s->out->coefficient != NULL) s->coefficient = s->out->coefficient;
  if (s->out->weight != NULL) s->weight = s->out->weight;
  return GL_OK;
}
