/* Evaluation of tokens that are read and written response by response. The formulas are those of
 * ratio.c and objective.c; here is the order in which responses are taken, and their memory. */
#include "core/base/vector_exp.h"
#include "core/policy/internal.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

/* Arrays of a response's tokens that a thread works on, which a cache holds. */
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
  return policy_window_of(&unread, 1, &window) && !policy_chooses_tokens(a->clip);
}

/* Whether a response's tokens all have one coefficient, which its sums tell. */
static int has_one_coefficient(const policy_algorithm *a) {
  const policy_ratio_info *ratio = policy_ratio_about(a->ratio);
  return ratio->unit == RATIO_OF_RESPONSE && ratio->gradient == RATIO_GRADIENT_RESPONSE &&
         a->ratio_gradient && a->clip != CLIP_TOKEN_LOG && !policy_chooses_tokens(a->clip) &&
         a->kappa == 0;
}

/* Whether a token's coefficient follows from its own two log-probabilities. */
static int has_own_coefficients(const policy_algorithm *a) {
  return policy_has_own_ratios(a) && clips_by_window(a);
}

int policy_can_stream(const policy_algorithm *a) {
  const int plain = a->objective != OBJECTIVE_DISCO && a->tis_level == LEVEL_NONE &&
                    a->mis_level == MASK_LEVEL_NONE && a->mis2_level == MASK_LEVEL_NONE &&
                    isinf(a->off_policy_mask) && a->top_entropy >= 1 && !policy_has_gate(a) &&
                    a->kl_coef == 0 && a->ref_kl_coef == 0 && isinf(a->token_log_clamp);
  return plain && (has_one_coefficient(a) || has_own_coefficients(a));
}

/* --- one response --- */

static double *space_of(const streaming *x, size_t worker, int array) {
  return x->scratch + (worker * ARRAYS + (size_t)array) * x->stream->longest;
}

/* Both log-probabilities of response i's tokens, or 0 where one is refused. */
static int read_response(streaming *x, size_t i, size_t worker, const double **p,
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
  if (read_response(x, i, worker, &p, &q)) policy_sum_response(x->state, i, p, q, NULL);
}

static void fill_response(void *context, size_t i, size_t worker) {
  streaming *x = context;
  (void)worker;
  if (!x->stream->fill(x->stream->self, i, x->state->seq_c[i])) atomic_store(&x->refused, 1);
}

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
  if (!read_response(x, i, worker, &p, &q)) return;
  policy_log_ratios(s->algorithm, p, q, n, log_ratio);
  vector_exp(log_ratio, n, ratio);
  const int found = policy_window_of(s, s->advantage[i], &window);
  assert(found);
  (void)found;
  tokens.logp = p;
  policy_windowed_terms(s, i, &window, &tokens);
  if (!x->stream->write(x->stream->self, i, tokens.coefficient)) atomic_store(&x->refused, 1);
}

/* --- all --- */

static gl_status reserve(streaming *x, policy_workspace *ws, gl_error *err) {
  const size_t threads = ws->pool == NULL ? 1 : pool_threads(ws->pool);
  void *scratch = ws->scratch;
  if (x->stream->longest > SIZE_MAX / sizeof(double) / ARRAYS / threads)
    return gl_fail_memory(err, "the policy workspace");
  gl_status status = policy_grow(&scratch, &ws->scratch_size, threads * ARRAYS * x->stream->longest,
                                 sizeof(double), err);
  ws->scratch = x->scratch = scratch;
  return status;
}

static void each(streaming *x, pool_task run) {
  const policy_input *in = x->state->in;
  pool_spread(policy_threads_for(x->state), run, x, in->n_responses);
}

/* Sums of every response, what they make of its ratio, and the coefficient that follows. */
static gl_status by_response(streaming *x, gl_error *err) {
  each(x, sum_response);
  if (atomic_load(&x->refused)) return GL_OK;
  gl_status status = policy_response_ratios(x->state, err);
  if (status != GL_OK) return status;
  policy_sequence_terms(x->state);
  each(x, fill_response);
  return GL_OK;
}

static void by_token(streaming *x) {
  each(x, evaluate_response);
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
  if (status == GL_OK) status = reserve(&x, ws, err);
  if (status == GL_OK) status = policy_advantages(&s, err);
  if (status != GL_OK) return status;
  policy_aggregation(&s);
  if (s.sequence_level)
    status = by_response(&x, err);
  else
    by_token(&x);
  *refused = atomic_load(&x.refused);
  out->loss = -s.objective;
  policy_copy_out(&s);
  return status;
}
