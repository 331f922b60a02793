/* policy_evaluate() and its streaming form, which reads tokens response by response: order of the
 * parts, output arrays, and checks for non-finite results. */
#include "core/policy/policy.h"

#include "core/base/array.h"
#include "core/base/simd.h"
#include "core/policy/internal.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Checks that the input has the entropies and the log-probabilities of the proximal policy that the
 * algorithm needs. */
static gl_status proximal_fits(const policy_algorithm *algorithm, const policy_input *in,
                               gl_error *err) {
  if (policy_needs_entropy(algorithm) && in->entropy == NULL)
    return gl_fail(err, GL_EINPUT,
                   "%s needs the entropy of the learner's policy at every token (entropy); give "
                   "it or set %s",
                   algorithm->top_entropy < 1 ? "top_entropy" : "entropy_ratio_high",
                   algorithm->top_entropy < 1 ? "top_entropy to 1"
                                              : "entropy_ratio_low: 0 and entropy_ratio_high: inf");
  if (policy_has_entropy_ratio(algorithm) && in->logprox != NULL && in->entropy_prox == NULL)
    return gl_fail(err, GL_EINPUT,
                   "entropy_ratio_high needs the entropy of the proximal policy at every token "
                   "(entropy_prox) beside its log-probabilities (logprox)");
  if (algorithm->proximal_decay > 0 && in->logprox == NULL)
    return gl_fail(err, GL_EINPUT,
                   "proximal_decay %g needs the log-probabilities of the averaged policy "
                   "(logprox); give them or set proximal_decay to 0",
                   algorithm->proximal_decay);
  return GL_OK;
}

static gl_status input_fits(const policy_algorithm *algorithm, const policy_input *in,
                            gl_error *err) {
  if (policy_needs_reference(algorithm) && in->logref == NULL)
    return gl_fail(err, GL_EINPUT,
                   "%s %g needs a reference policy's log-probabilities (logref); give them or set "
                   "it to 0",
                   algorithm->ref_kl_coef > 0 ? "ref_kl_coef" : "reward_kl_coef",
                   algorithm->ref_kl_coef > 0 ? algorithm->ref_kl_coef : algorithm->reward_kl_coef);
  if (policy_needs_version_gap(algorithm) && in->version_gap == NULL)
    return gl_fail(err, GL_EINPUT,
                   "%s needs the staleness of every token (version_gap); give it or set %s",
                   algorithm->mixture_anneal ? "mixture_anneal: true" : "old_policy: interpolated",
                   algorithm->mixture_anneal ? "mixture_anneal: false" : "old_policy: proximal");
  if (algorithm->reward_kl_coef > 0 && in->advantage != NULL)
    return gl_fail(err, GL_EINPUT,
                   "reward_kl_coef %g changes rewards and takes no advantages; give rewards alone "
                   "or set it to 0",
                   algorithm->reward_kl_coef);
  if (algorithm->objective != OBJECTIVE_POLICY_GRADIENT && in->advantage != NULL)
    return gl_fail(err, GL_EINPUT,
                   "objective: %s compares right and wrong answers and takes no advantages; give "
                   "rewards alone",
                   algorithm->objective == OBJECTIVE_DISCO ? "disco" : "real");
  return proximal_fits(algorithm, in, err);
}

/* Whether the algorithm sorts tokens. */
static bool ranks_tokens(const policy_algorithm *algorithm) {
  return algorithm->clip == CLIP_SECOND_MOMENT || algorithm->top_entropy < 1 ||
         (algorithm->kl_coef > 0 && algorithm->kl_share < 1);
}

/* A-3PO (2512.06547) as AReaL has it: log-probabilities between sampler and learner, by the token's
 * staleness; the version before the learner's stands for the proximal policy. */
static void interpolate(policy_state *s) {
  const policy_input *in = s->in;
  for (size_t t = 0; t < in->n_tokens; ++t) {
    const double gap = in->version_gap[t], share = gap > 1 ? (gap - 1) / gap : 0;
    s->log_between[t] = in->logq[t] + policy_times(share, in->logp[t] - in->logq[t]);
  }
  s->logold = s->log_between;
}

/* Sets arrays that the algorithm does not use to NULL. */
static void choose_arrays(policy_state *s) {
  const policy_input *in = s->in;
  if (s->algorithm->tis_level == LEVEL_NONE) s->factor = NULL;
  if (s->algorithm->mis_level == MASK_LEVEL_NONE && s->algorithm->mis2_level == MASK_LEVEL_NONE)
    s->mask_token = NULL;
  if (!policy_clip_masks_tokens(s->algorithm->clip)) s->mask_clip = NULL;
  if (isinf(s->algorithm->off_policy_mask)) s->mask_off_policy = NULL;
  if (!policy_needs_entropy(s->algorithm)) s->mask_entropy = NULL;
  if (s->algorithm->ratio != RATIO_TOKEN_MIXTURE) s->x_slope = NULL;
  if (!policy_has_gate(s->algorithm)) s->mask_gate = NULL;
  s->bounds = policy_bounds_of(s->algorithm);
  s->ratio = policy_ratio_about(s->algorithm->ratio);
  s->sequence_level = s->ratio->unit == RATIO_OF_RESPONSE;
  s->logold = in->logq;
  if (s->algorithm->old_policy == OLD_PROXIMAL)
    s->logold = in->logprox != NULL ? in->logprox : in->logp;
  if (s->algorithm->old_policy == OLD_INTERPOLATED)
    interpolate(s);
  else
    s->log_between = NULL;
  s->reward = in->reward;
  if (s->algorithm->reward_kl_coef == 0) s->own_reward = NULL;
}

static void repeat_weight(policy_state *s, size_t i) {
  const double w = exp(s->seq_x[i]);
  for (size_t t = s->in->token_start[i]; t < s->in->token_start[i + 1]; ++t) s->out->weight[t] = w;
}

/* Copies the results per response and per group to the output arrays. */
static void copy_out(policy_state *s) {
  policy_output *out = s->out;
  const policy_input *in = s->in;
  size_t doubles = sizeof(double);
  if (out->advantage != NULL) memcpy(out->advantage, s->advantage, in->n_responses * doubles);
  if (out->baseline != NULL) memcpy(out->baseline, s->baseline, in->n_groups * doubles);
  for (size_t g = 0; out->baseline != NULL && s->own_reward != NULL && g < in->n_groups; ++g)
    out->baseline[g] = NAN; /* A does not depend on the reward alone */
  if (out->scale != NULL) {
    memcpy(out->scale, s->scale, in->n_groups * doubles);
    for (size_t g = 0; g < in->n_groups; ++g)
      if (s->scale[g] <= policy_scale_guard(s->algorithm)) out->scale[g] = NAN;
  }
  if (out->weight != NULL && s->sequence_level) policy_each(s, in->n_responses, repeat_weight);
}

/* Checks the algorithm and the input except for per-token arrays, then grows ws and lays out *s in
 * it with arrays for `tokens` tokens. */
static gl_status policy_begin(policy_state *s, policy_workspace *ws, size_t tokens, gl_error *err) {
  gl_status status = policy_algorithm_check(s->algorithm, err);
  if (status == GL_OK) status = input_fits(s->algorithm, s->in, err);
  if (status == GL_OK) status = policy_reserve(s, ws, tokens, ranks_tokens(s->algorithm), err);
  if (status == GL_OK) choose_arrays(s);
  return status;
}

gl_status policy_evaluate(const policy_algorithm *algorithm, const policy_input *in,
                          policy_output *out, policy_workspace *ws, gl_error *err) {
  policy_state s = {.algorithm = algorithm, .in = in, .out = out};
  gl_status status = policy_begin(&s, ws, in->n_tokens, err);
  if (status == GL_OK) status = policy_advantages(&s, err);
  if (status != GL_OK) return status;
  if (s.factor != NULL || s.mask_token != NULL || s.mask_off_policy != NULL ||
      s.mask_entropy != NULL)
    policy_factors(&s);
  policy_aggregation(&s);
  if (algorithm->objective != OBJECTIVE_POLICY_GRADIENT) {
    status = policy_scores(&s, err);
  } else {
    if (s.mask_gate != NULL) policy_gate_responses(&s);
    status = policy_ratios(&s, err);
    if (status == GL_OK) policy_objective_terms(&s);
  }
  if (status != GL_OK) return status;
  out->loss = -s.objective + policy_kl_terms(&s);
  copy_out(&s);
  if (!out->skip_metrics) policy_diagnostics(&s);
  return GL_OK;
}

/* --- streaming evaluation, response by response --- */

/* Arrays of one response's tokens, per thread, small enough to stay in cache. */
enum { NOW, BEFORE, LOG_RATIO, RATIO, COEFFICIENT, ARRAYS };

typedef struct streaming {
  policy_state *state;
  const policy_stream *stream;
  double *scratch; /* [threads][ARRAYS][longest] */
  _Atomic int refused;
} streaming;

/* Whether the clip is a window that is known before any token is read. */
static int clips_by_window(const policy_algorithm *a) {
  const policy_state unread = {.algorithm = a};
  policy_window window;
  return policy_window_of(&unread, 1, &window) && !policy_clip_masks_tokens(a->clip);
}

/* Whether all tokens of a response share one coefficient, computed from the response's sums. */
static int has_one_coefficient(const policy_algorithm *a) {
  const policy_ratio_info *ratio = policy_ratio_about(a->ratio);
  return ratio->unit == RATIO_OF_RESPONSE && ratio->gradient == RATIO_GRADIENT_RESPONSE &&
         a->ratio_gradient && a->clip != CLIP_TOKEN_LOG && !policy_clip_masks_tokens(a->clip) &&
         a->kappa == 0;
}

/* Whether a token's coefficient depends only on its own two log-probabilities. */
static int has_own_coefficients(const policy_algorithm *a) {
  return policy_has_own_ratios(a) && clips_by_window(a);
}

int policy_can_stream(const policy_algorithm *a) {
  const int plain = a->objective == OBJECTIVE_POLICY_GRADIENT && a->tis_level == LEVEL_NONE &&
                    a->mis_level == MASK_LEVEL_NONE && a->mis2_level == MASK_LEVEL_NONE &&
                    isinf(a->off_policy_mask) && !policy_needs_entropy(a) && !policy_has_gate(a) &&
                    a->balance == 0 && a->reward_kl_coef == 0 &&
                    a->baseline != BASELINE_OFF_POLICY && a->old_policy != OLD_INTERPOLATED &&
                    a->kl_coef == 0 && a->ref_kl_coef == 0 && isinf(a->token_log_clamp);
  return plain && (has_one_coefficient(a) || has_own_coefficients(a));
}

static double *space_of(const streaming *x, size_t worker, int array) {
  return x->scratch + (worker * ARRAYS + (size_t)array) * x->stream->longest;
}

/* Reads current and old log-probabilities of response i's tokens; returns 0 if one is refused. */
static int evaluate_read_response(streaming *x, size_t i, size_t worker, const double **p,
                                  const double **q) {
  const policy_stream *from = x->stream;
  *p = from->read(from->self, i, POLICY_NOW, space_of(x, worker, NOW));
  *q = *p == NULL ? NULL : from->read(from->self, i, POLICY_BEFORE, space_of(x, worker, BEFORE));
  if (*q == NULL) atomic_store(&x->refused, 1);
  return *q != NULL;
}

static void sum_response(void *context, size_t i, size_t worker) {
  streaming *x = context;
  const double *p, *q;
  if (evaluate_read_response(x, i, worker, &p, &q)) policy_sum_response(x->state, i, p, q, NULL);
}

static void fill_response(void *context, size_t i, size_t worker) {
  streaming *x = context;
  (void)worker;
  if (!x->stream->fill(x->stream->self, i, x->state->seq_c[i])) atomic_store(&x->refused, 1);
}

/* Reads the tokens of response i, evaluates them and writes their coefficients. */
static void evaluate_response(void *context, size_t i, size_t worker) {
  streaming *x = context;
  policy_state *s = x->state;
  const size_t n = s->in->token_start[i + 1] - s->in->token_start[i];
  double *log_ratio = space_of(x, worker, LOG_RATIO), *ratio = space_of(x, worker, RATIO);
  const double *p, *q;
  policy_window window;
  policy_tokens tokens = {
      .x = log_ratio, .u = ratio, .coefficient = space_of(x, worker, COEFFICIENT)};
  s->tally[i] = (policy_tally){.units = (double)n};
  if (!evaluate_read_response(x, i, worker, &p, &q)) return;
  policy_log_ratios(s->algorithm, p, q, n, log_ratio);
  vector_exp(log_ratio, n, ratio);
  const int found = policy_window_of(s, s->advantage[i], &window);
  assert(found);
  (void)found;
  tokens.logp = p;
  policy_windowed_terms(s, i, &window, &tokens);
  if (!x->stream->write(x->stream->self, i, tokens.coefficient)) atomic_store(&x->refused, 1);
}

static gl_status stream_reserve(streaming *x, policy_workspace *ws, gl_error *err) {
  const size_t arrays = ARRAYS * (ws->pool == NULL ? 1 : pool_threads(ws->pool));
  if (x->stream->longest > SIZE_MAX / arrays ||
      !ARRAY_FIT(ws->scratch, ws->scratch_size, arrays * x->stream->longest))
    return gl_fail_memory(err, "the policy workspace");
  x->scratch = ws->scratch;
  return GL_OK;
}

static void stream_each(streaming *x, pool_task run) {
  const policy_input *in = x->state->in;
  pool_spread(policy_threads_for(x->state), run, x, in->n_responses);
}

/* Sums the tokens of every response, then computes its ratio and the shared coefficient. */
static gl_status by_response(streaming *x, gl_error *err) {
  stream_each(x, sum_response);
  if (atomic_load(&x->refused)) return GL_OK;
  gl_status status = policy_response_ratios(x->state, err);
  if (status != GL_OK) return status;
  policy_sequence_terms(x->state);
  stream_each(x, fill_response);
  return GL_OK;
}

static void by_token(streaming *x) {
  stream_each(x, evaluate_response);
  policy_join(x->state);
}

gl_status policy_evaluate_stream(const policy_algorithm *algorithm, const policy_input *in,
                                 const policy_stream *stream, policy_output *out,
                                 policy_workspace *ws, int *refused, gl_error *err) {
  policy_state s = {.algorithm = algorithm, .in = in, .out = out};
  streaming x = {.state = &s, .stream = stream};
  assert(policy_can_stream(algorithm) && out->skip_metrics && out->weight == NULL &&
         out->coefficient == NULL);
  gl_status status = policy_begin(&s, ws, 0, err);
  if (status == GL_OK) status = stream_reserve(&x, ws, err);
  if (status == GL_OK) status = policy_advantages(&s, err);
  if (status != GL_OK) return status;
  policy_aggregation(&s);
  if (s.sequence_level)
    status = by_response(&x, err);
  else
    by_token(&x);
  *refused = atomic_load(&x.refused);
  out->loss = -s.objective;
  copy_out(&s);
  return status;
}

/* --- checks for non-finite results --- */

static int fits(double value, policy_precision kept) {
  switch (kept) {
  case POLICY_DOUBLE:
    return isfinite(value);
  case POLICY_SINGLE:
    return fabs(value) <= (double)FLT_MAX;
  }
  return 0;
}

enum { PLACE_SIZE = 80 };

/* Writes "group 2, response 1", or "response 9" counted in the batch. */
static const char *evaluate_place_of(const policy_input *in, size_t group, size_t i, int by_group,
                                     char text[PLACE_SIZE]) {
  if (by_group)
    snprintf(text, PLACE_SIZE, "group %zu, response %zu", group, i - in->group_start[group]);
  else
    snprintf(text, PLACE_SIZE, "response %zu", i);
  return text;
}

static const char *limit_of(double value) {
  return isfinite(value) ? "single precision ends at 3.4e38, a log-ratio of 88"
                         : "double precision ends at a log-ratio of 709";
}

static gl_status evaluate_refuse_token(const policy_input *in, const char *name, double value,
                                       const char *place, size_t i, size_t t, gl_error *err) {
  double sum = 0;
  for (size_t k = in->token_start[i]; k < in->token_start[i + 1]; ++k)
    sum += in->logp[k] - in->logq[k];
  return gl_fail(err, GL_ENUMERIC,
                 "the %s of %s, token %zu is %g: %s, and logp - logq is %.6g at this token and "
                 "%.6g over the response; look for a wrong logp or logq in it or its group",
                 name, place, t - in->token_start[i], value, limit_of(value),
                 in->logp[t] - in->logq[t], sum);
}

static gl_status check_response(const policy_input *in, const policy_output *out,
                                const policy_precisions *keeping, size_t group, size_t i,
                                gl_error *err) {
  char place[PLACE_SIZE];
  (void)evaluate_place_of(in, group, i, keeping->by_group, place);
  if (out->advantage != NULL && !fits(out->advantage[i], keeping->advantage))
    return gl_fail(err, GL_ENUMERIC,
                   "the advantage of %s is %g: the rewards of its group are too far apart for %s "
                   "precision",
                   place, out->advantage[i], isfinite(out->advantage[i]) ? "single" : "double");
  for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t) {
    if (out->weight != NULL && !fits(out->weight[t], keeping->weight))
      return evaluate_refuse_token(in, "weight", out->weight[t], place, i, t, err);
    if (out->coefficient != NULL && !fits(out->coefficient[t], keeping->coefficient))
      return evaluate_refuse_token(in, "coefficient", out->coefficient[t], place, i, t, err);
  }
  return GL_OK;
}

gl_status policy_check_finite(const policy_input *in, const policy_output *out,
                              const policy_precisions *keeping, gl_error *err) {
  for (size_t group = 0; group < in->n_groups; ++group)
    for (size_t i = in->group_start[group]; i < in->group_start[group + 1]; ++i) {
      const gl_status status = check_response(in, out, keeping, group, i, err);
      if (status != GL_OK) return status;
    }
  if (!isfinite(out->loss))
    return gl_fail(err, GL_ENUMERIC,
                   "the loss is %g although every coefficient is finite: its terms are too large "
                   "for a sum in double precision",
                   out->loss);
  return GL_OK;
}
