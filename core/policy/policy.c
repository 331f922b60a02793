/* policy_evaluate(): the order of its parts, their memory, and what is written for the caller. */
#include "core/policy/internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_ARRAYS = 9, RESPONSE_ARRAYS = 13, GROUP_ARRAYS = 3 };

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

/* --- many responses at once --- */

/* Tokens from which on waking threads pays. */
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

gl_status policy_grow(void **array, size_t *size, size_t n, size_t bytes, gl_error *err) {
  if (n <= *size) return GL_OK;
  void *space = realloc(*array, n * bytes);
  if (space == NULL) return gl_fail_memory(err, "the policy workspace");
  *array = space;
  *size = n;
  return GL_OK;
}

static gl_status reserve(policy_workspace *ws, const policy_input *in, size_t tokens, int ranks,
                         gl_error *err) {
  size_t limit = SIZE_MAX / sizeof(policy_tally) / 32;
  if (in->n_tokens > limit || in->n_responses > limit || in->n_groups > limit)
    return gl_fail_memory(err, "the policy workspace");
  size_t need =
      TOKEN_ARRAYS * tokens + RESPONSE_ARRAYS * in->n_responses + GROUP_ARRAYS * in->n_groups;
  void *space = ws->space, *rank = ws->rank, *tally = ws->tally, *group_tally = ws->group_tally;
  gl_status status = policy_grow(&space, &ws->space_size, need, sizeof *ws->space, err);
  if (status == GL_OK && ranks)
    status = policy_grow(&rank, &ws->rank_size, in->n_tokens, sizeof *ws->rank, err);
  if (status == GL_OK)
    status = policy_grow(&tally, &ws->tally_size, in->n_responses, sizeof *ws->tally, err);
  if (status == GL_OK)
    status = policy_grow(&group_tally, &ws->group_tally_size, in->n_groups, sizeof *ws->group_tally,
                         err);
  ws->space = space;
  ws->rank = rank;
  ws->tally = tally;
  ws->group_tally = group_tally;
  return status;
}

static double *take(double **at, size_t n) {
  double *mine = *at;
  *at += n;
  return mine;
}

int policy_chooses_tokens(policy_clip clip) {
  return clip == CLIP_SECOND_MOMENT || clip == CLIP_BINARY_TV || clip == CLIP_BINARY_KL;
}

/* Whether tokens are put in line. */
static int ranks_tokens(const policy_algorithm *algorithm) {
  return algorithm->clip == CLIP_SECOND_MOMENT || algorithm->top_entropy < 1 ||
         (algorithm->kl_coef > 0 && algorithm->kl_share < 1);
}

static void lay_out(policy_state *s, policy_workspace *ws, size_t tokens) {
  const policy_input *in = s->in;
  double *at = ws->space;
  double **token[TOKEN_ARRAYS] = {&s->log_ratio,   &s->x,       &s->weight,
                                  &s->coefficient, &s->factor,  &s->keep,
                                  &s->m2_keep,     &s->x_slope, &s->uncertain};
  double **response[RESPONSE_ARRAYS] = {
      &s->advantage,    &s->z,         &s->kept,     &s->seq_x, &s->seq_p,  &s->seq_q, &s->seq_g,
      &s->seq_jacobian, &s->seq_share, &s->seq_open, &s->seq_c, &s->passes, &s->stays};
  double **group[GROUP_ARRAYS] = {&s->baseline, &s->scale, &s->active};
  for (size_t k = 0; k < TOKEN_ARRAYS; k++) *token[k] = take(&at, tokens);
  for (size_t k = 0; k < RESPONSE_ARRAYS; k++) *response[k] = take(&at, in->n_responses);
  for (size_t k = 0; k < GROUP_ARRAYS; k++) *group[k] = take(&at, in->n_groups);
  s->rank = ws->rank;
  s->tally = ws->tally;
  s->group_tally = ws->group_tally;
  s->pool = ws->pool;
  /* where the caller wants them they are made in place */
  if (s->out->coefficient != NULL) s->coefficient = s->out->coefficient;
  if (s->out->weight != NULL) s->weight = s->out->weight;
  if (s->algorithm->tis_level == LEVEL_NONE) s->factor = NULL;
  if (s->algorithm->mis_level == MASK_LEVEL_NONE && s->algorithm->mis2_level == MASK_LEVEL_NONE)
    s->keep = NULL;
  if (!policy_chooses_tokens(s->algorithm->clip)) s->m2_keep = NULL;
  if (isinf(s->algorithm->off_policy_mask)) s->stays = NULL;
  if (s->algorithm->top_entropy >= 1) s->uncertain = NULL;
  if (s->algorithm->ratio != RATIO_TOKEN_MIXTURE) s->x_slope = NULL;
  if (!policy_has_gate(s->algorithm)) s->passes = NULL;
  s->bounds = policy_bounds_of(s->algorithm);
  s->ratio = policy_ratio_about(s->algorithm->ratio);
  s->sequence_level = s->ratio->unit == RATIO_OF_RESPONSE;
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
  if (policy_needs_version_gap(algorithm) && in->version_gap == NULL)
    return gl_fail(err, GL_EINPUT,
                   "mixture_anneal: true needs the staleness of every token (version_gap); give it "
                   "or set mixture_anneal: false");
  if (algorithm->top_entropy < 1 && in->entropy == NULL)
    return gl_fail(err, GL_EINPUT,
                   "top_entropy %g needs the entropy of the learner's policy at every token "
                   "(entropy); give it or set top_entropy to 1",
                   algorithm->top_entropy);
  if (algorithm->objective == OBJECTIVE_DISCO && in->advantage != NULL)
    return gl_fail(
        err, GL_EINPUT,
        "objective: disco compares right and wrong answers and takes no advantages; give "
        "rewards alone");
  return GL_OK;
}

static void repeat_weight(policy_state *s, size_t i) {
  const double w = exp(s->seq_x[i]);
  for (size_t t = s->in->token_start[i]; t < s->in->token_start[i + 1]; t++) s->out->weight[t] = w;
}

void policy_copy_out(policy_state *s) {
  policy_output *out = s->out;
  const policy_input *in = s->in;
  size_t doubles = sizeof(double);
  if (out->advantage != NULL) memcpy(out->advantage, s->advantage, in->n_responses * doubles);
  if (out->baseline != NULL) memcpy(out->baseline, s->baseline, in->n_groups * doubles);
  if (out->scale != NULL) {
    memcpy(out->scale, s->scale, in->n_groups * doubles);
    /* equal rewards: what is left is the guard against a division by zero, not a scale */
    for (size_t g = 0; g < in->n_groups && s->algorithm->scale == SCALE_GROUP_STD; ++g)
      if (s->scale[g] <= s->algorithm->scale_eps) out->scale[g] = NAN;
  }
  if (out->weight != NULL && s->sequence_level) policy_each(s, in->n_responses, repeat_weight);
}

gl_status policy_begin(policy_state *s, policy_workspace *ws, size_t tokens, gl_error *err) {
  gl_status status = policy_algorithm_check(s->algorithm, err);
  if (status == GL_OK) status = input_fits(s->algorithm, s->in, err);
  if (status == GL_OK) status = reserve(ws, s->in, tokens, ranks_tokens(s->algorithm), err);
  if (status == GL_OK) lay_out(s, ws, tokens);
  return status;
}

gl_status policy_evaluate(const policy_algorithm *algorithm, const policy_input *in,
                          policy_output *out, policy_workspace *ws, gl_error *err) {
  policy_state s = {.algorithm = algorithm, .in = in, .out = out};
  gl_status status = policy_begin(&s, ws, in->n_tokens, err);
  if (status == GL_OK) status = policy_advantages(&s, err);
  if (status != GL_OK) return status;
  if (s.factor != NULL || s.keep != NULL || s.stays != NULL || s.uncertain != NULL)
    policy_factors(&s);
  policy_aggregation(&s);
  if (algorithm->objective == OBJECTIVE_DISCO) {
    status = policy_disco(&s, err);
  } else {
    if (s.passes != NULL) policy_gate_responses(&s);
    status = policy_ratios(&s, err);
    if (status == GL_OK) policy_objective_terms(&s);
  }
  if (status != GL_OK) return status;
  out->loss = -s.objective + policy_kl_terms(&s);
  policy_copy_out(&s);
  if (!out->skip_metrics) policy_diagnostics(&s);
  return GL_OK;
}
