/* policy_evaluate(): the order of its parts, their memory, and what is written for the caller. */
#include "core/policy/internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_ARRAYS = 7, RESPONSE_ARRAYS = 10, GROUP_ARRAYS = 3 };

struct policy_workspace {
  double *space;
  size_t space_size;
  policy_rank *rank;
  size_t rank_size;
};

policy_workspace *policy_workspace_new(void) {
  return calloc(1, sizeof(policy_workspace));
}

void policy_workspace_free(policy_workspace *ws) {
  if (ws == NULL) return;
  free(ws->space);
  free(ws->rank);
  free(ws);
}

static gl_status reserve(policy_workspace *ws, const policy_input *in, int ranks, gl_error *err) {
  size_t limit = SIZE_MAX / sizeof(policy_rank) / 32;
  if (in->n_tokens > limit || in->n_responses > limit || in->n_groups > limit)
    return gl_fail_memory(err, "the policy workspace");
  size_t need =
      TOKEN_ARRAYS * in->n_tokens + RESPONSE_ARRAYS * in->n_responses + GROUP_ARRAYS * in->n_groups;
  if (need > ws->space_size) {
    double *space = realloc(ws->space, need * sizeof *space);
    if (space == NULL) return gl_fail_memory(err, "the policy workspace");
    ws->space = space;
    ws->space_size = need;
  }
  if (ranks && in->n_tokens > ws->rank_size) {
    policy_rank *rank = realloc(ws->rank, in->n_tokens * sizeof *rank);
    if (rank == NULL) return gl_fail_memory(err, "the policy workspace");
    ws->rank = rank;
    ws->rank_size = in->n_tokens;
  }
  return GL_OK;
}

static double *take(double **at, size_t n) {
  double *mine = *at;
  *at += n;
  return mine;
}

static void lay_out(policy_state *s, policy_workspace *ws) {
  const policy_input *in = s->in;
  double *at = ws->space;
  double **token[TOKEN_ARRAYS] = {&s->log_ratio, &s->x,    &s->weight, &s->coefficient,
                                  &s->factor,    &s->keep, &s->m2_keep};
  double **response[RESPONSE_ARRAYS] = {&s->advantage, &s->z,       &s->kept,  &s->seq_x,
                                        &s->seq_p,     &s->seq_q,   &s->seq_g, &s->seq_jacobian,
                                        &s->seq_share, &s->seq_open};
  double **group[GROUP_ARRAYS] = {&s->baseline, &s->scale, &s->active};
  for (size_t k = 0; k < TOKEN_ARRAYS; k++) *token[k] = take(&at, in->n_tokens);
  for (size_t k = 0; k < RESPONSE_ARRAYS; k++) *response[k] = take(&at, in->n_responses);
  for (size_t k = 0; k < GROUP_ARRAYS; k++) *group[k] = take(&at, in->n_groups);
  s->rank = ws->rank;
  if (s->algorithm->tis_level == LEVEL_NONE) s->factor = NULL;
  if (s->algorithm->mis_level == LEVEL_NONE) s->keep = NULL;
  if (s->algorithm->clip != CLIP_SECOND_MOMENT || s->algorithm->m2_form != M2_REMOVE)
    s->m2_keep = s->algorithm->clip == CLIP_SECOND_MOMENT ? s->m2_keep : NULL;
  s->bounds = policy_bounds_of(s->algorithm);
  s->logold = in->logq;
  if (s->algorithm->old_policy == OLD_PROXIMAL)
    s->logold = in->logprox != NULL ? in->logprox : in->logp;
}

static gl_status input_fits(const policy_algorithm *algorithm, const policy_input *in,
                            gl_error *err) {
  if (algorithm->ref_kl_coef > 0 && in->logref == NULL)
    return gl_fail(
        err, GL_EINPUT,
        "ref_kl_coef %g needs a reference policy's log-probabilities (logref); give them "
        "or set ref_kl_coef to 0",
        algorithm->ref_kl_coef);
  return GL_OK;
}

static void copy_out(policy_state *s) {
  policy_output *out = s->out;
  const policy_input *in = s->in;
  size_t doubles = sizeof(double);
  if (out->advantage != NULL) memcpy(out->advantage, s->advantage, in->n_responses * doubles);
  if (out->coefficient != NULL) memcpy(out->coefficient, s->coefficient, in->n_tokens * doubles);
  if (out->baseline != NULL) memcpy(out->baseline, s->baseline, in->n_groups * doubles);
  if (out->scale != NULL) {
    memcpy(out->scale, s->scale, in->n_groups * doubles);
    /* equal rewards: what is left is the guard against a division by zero, not a scale */
    for (size_t g = 0; g < in->n_groups && s->algorithm->scale == SCALE_GROUP_STD; ++g)
      if (s->scale[g] <= s->algorithm->scale_eps) out->scale[g] = NAN;
  }
  if (out->weight == NULL) return;
  if (!s->sequence_level) {
    memcpy(out->weight, s->weight, in->n_tokens * doubles);
    return;
  }
  for (size_t i = 0; i < in->n_responses; i++) {
    const double w = exp(s->seq_x[i]);
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; t++) out->weight[t] = w;
  }
}

gl_status policy_evaluate(const policy_algorithm *algorithm, const policy_input *in,
                          policy_output *out, policy_workspace *ws, gl_error *err) {
  policy_state s = {.algorithm = algorithm, .in = in, .out = out};
  gl_status status = policy_algorithm_check(algorithm, err);
  if (status == GL_OK) status = input_fits(algorithm, in, err);
  if (status == GL_OK) status = reserve(ws, in, algorithm->clip == CLIP_SECOND_MOMENT, err);
  if (status != GL_OK) return status;
  lay_out(&s, ws);
  status = policy_advantages(&s, err);
  if (status != GL_OK) return status;
  if (s.factor != NULL || s.keep != NULL) policy_factors(&s);
  policy_aggregation(&s);
  if (algorithm->objective == OBJECTIVE_DISCO) {
    status = policy_disco(&s, err);
  } else {
    status = policy_ratios(&s, err);
    if (status == GL_OK) policy_objective_terms(&s);
  }
  if (status != GL_OK) return status;
  out->loss = -s.objective + policy_kl_terms(&s);
  copy_out(&s);
  if (!out->skip_metrics) policy_diagnostics(&s);
  return GL_OK;
}
