/* One learner step: batches together, then minibatches x epochs optimiser updates.
 *
 * A step scores every token of its batches, asks core/policy for the coefficients c = d(-loss)/d
 * logp, and hands dlogp = -c to the model's backward, in micro-batches of bounded packed tokens. A
 * response whose coefficients are all 0 has no gradient and is left out of the backward. Where one
 * micro-batch holds a whole set, its forward is kept and serves the backward too.
 *
 * Responses of a group that are the same, as those of a policy that knows the answer often are, run
 * through the model once: the others have the log-probabilities of the first, and the first takes
 * their coefficients, of which the gradient is a linear function, on top of its own.
 *
 * Metrics describe the whole of the batches under the parameters the step starts from; grad_norm
 * is the mean over the step's optimiser updates, before clipping. The proximal policy is the
 * learner's at the start of the step. */
#include "llm/learner/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- micro-batches ------------------------------------------------------------------------------
 */

/* Which responses a pass takes, besides those that repeat an earlier one of their group: all, or
 * those with a coefficient other than 0. */
typedef enum pass { PASS_ALL, PASS_WITH_GRADIENT } pass;

/* A place in a walk over a part of a set's responses in order. */
typedef struct walk {
  size_t response, end, group;
} walk;

/* Whether the response is the same as an earlier one of its group. */
static int is_repeated(const rollout_set *s, size_t i) {
  return s->same_as[i] != i;
}

static size_t length_of(const rollout_set *s, size_t i) {
  return s->token_start[i + 1] - s->token_start[i];
}

static int has_gradient(const rollout_set *s, size_t i) {
  for (size_t k = s->token_start[i]; k < s->token_start[i + 1]; ++k)
    if (s->coefficient[k] != 0) return 1;
  return 0;
}

/* Whether a pass runs the response through the model. */
static int takes(const rollout_set *s, pass which, size_t i) {
  return !is_repeated(s, i) && (which == PASS_ALL || has_gradient(s, i));
}

static size_t tokens_of(const rollout_set *s, size_t i, size_t g) {
  return s->prompt_start[g + 1] - s->prompt_start[g] + length_of(s, i) - 1;
}

/* Packs the next micro-batch: responses until `most` tokens are full, at least one. Writes -c of
 * every target into dlogp unless that is NULL. The pack stays empty at the end of the walk. */
static gl_status pack_next(token_pack *p, size_t most, const rollout_set *s, pass which, walk *at,
                           double *dlogp, gl_error *err) {
  token_pack_clear(p);
  for (; at->response < at->end; ++at->response) {
    const size_t i = at->response, first = s->token_start[i], n = length_of(s, i);
    while (s->group_start[at->group + 1] <= i) ++at->group;
    const size_t g = at->group, from = s->prompt_start[g];
    if (!takes(s, which, i)) continue;
    if (p->n_sequences > 0 && p->n_tokens + tokens_of(s, i, g) > most) break;
    for (size_t t = 0; t < n && dlogp != NULL; ++t)
      dlogp[p->n_targets + t] = -s->coefficient[first + t];
    gl_status status = token_pack_add(p, s->prompt + from, s->prompt_start[g + 1] - from,
                                      s->token + first, n, err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

/* Packed tokens of responses first .. last - 1. */
static size_t count_tokens(const rollout_set *s, pass which, size_t first, size_t last) {
  size_t tokens = 0, g = 0;
  for (size_t i = first; i < last; ++i) {
    while (s->group_start[g + 1] <= i) ++g;
    if (takes(s, which, i)) tokens += tokens_of(s, i, g);
  }
  return tokens;
}

/* --- shares -------------------------------------------------------------------------------------
 */

/* A pass over a set, every replica over its share of the responses. */
typedef struct set_pass {
  llm_learner *l;
  const rollout_set *s;
  pass which;
  int reference;          /* score under the reference policy */
  double *logp, *entropy; /* [n_tokens] of a score; entropy NULL: not wanted */
  int keep;               /* a score's forward serves the backward; a backward has it */
  double lr;              /* of the step behind a backward */
} set_pass;

static size_t response_tokens(const void *context, size_t i) {
  const set_pass *p = context;
  size_t low = 0, high = p->s->n_groups;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (p->s->group_start[middle] <= i)
      low = middle;
    else
      high = middle;
  }
  return takes(p->s, p->which, i) ? tokens_of(p->s, i, low) : 0;
}

static void divide(const set_pass *p) {
  llm_learner_divide(p->l, response_tokens, p, p->s->n_responses);
}

/* 1 if every share is one micro-batch. */
static int shares_fit(const set_pass *p) {
  const llm_learner *l = p->l;
  for (size_t rank = 0; rank < l->spec.devices; ++rank)
    if (count_tokens(p->s, PASS_ALL, l->share[rank], l->share[rank + 1]) > l->spec.micro_batch)
      return 0;
  return 1;
}

static walk share_of(const set_pass *p, size_t rank) {
  return (walk){.response = p->l->share[rank], .end = p->l->share[rank + 1]};
}

/* --- scoring ------------------------------------------------------------------------------------
 */

/* Copies what a forward found, one number after the other, to the tokens of responses first ..
 * last - 1 that it took. */
static void put_scores(const rollout_set *s, size_t first, size_t last, const double *found,
                       double *to) {
  for (size_t i = first; i < last; ++i) {
    if (!takes(s, PASS_ALL, i)) continue;
    memcpy(to + s->token_start[i], found, length_of(s, i) * sizeof *to);
    found += length_of(s, i);
  }
}

static gl_status score_walk(const set_pass *p, replica *r, walk at, gl_error *err) {
  const run_spec *spec = &p->l->spec;
  for (;;) {
    const size_t first = at.response;
    gl_status status = pack_next(&r->pack, spec->micro_batch, p->s, PASS_ALL, &at, NULL, err);
    const size_t n = r->pack.n_targets;
    if (status != GL_OK || n == 0) return status;
    const packed_tokens packed = token_pack_view(&r->pack);
    status = replica_scratch(r, 2 * n, err);
    if (status != GL_OK) return status;
    double *logp = r->scratch, *entropy = p->entropy != NULL ? r->scratch + n : NULL;
    status =
        model_forward(r->model, &packed, spec->sampling.temperature, p->keep, logp, entropy, err);
    if (status != GL_OK) return status;
    put_scores(p->s, first, at.response, logp, p->logp);
    if (entropy != NULL) put_scores(p->s, first, at.response, entropy, p->entropy);
  }
}

/* Gives repeated responses the numbers of the response they repeat. */
static void repeat_scores(const rollout_set *s, double *x) {
  for (size_t i = 0; i < s->n_responses; ++i)
    if (is_repeated(s, i))
      memcpy(x + s->token_start[i], x + s->token_start[s->same_as[i]], length_of(s, i) * sizeof *x);
}

static gl_status score_share(void *context, size_t rank, gl_error *err) {
  const set_pass *p = context;
  replica *r = &p->l->replica[rank];
  if (p->reference) model_use(r->model, r->reference);
  gl_status status = score_walk(p, r, share_of(p, rank), err);
  if (p->reference) model_use(r->model, NULL);
  return status;
}

/* Runs a pass that scores. */
static gl_status run_score(set_pass *p, gl_error *err) {
  gl_status status = rank_threads_run(p->l->threads, score_share, p, err);
  if (status != GL_OK) return status;
  repeat_scores(p->s, p->logp);
  if (p->entropy != NULL) repeat_scores(p->s, p->entropy);
  return GL_OK;
}

/* logp[n_tokens] and entropy[n_tokens] (NULL: not wanted) of every token of a set. *kept (NULL: no)
 * tells whether the whole forward was kept for a backward. */
static gl_status score(llm_learner *l, const rollout_set *s, double *logp, double *entropy,
                       int *kept, gl_error *err) {
  set_pass p = {.l = l, .s = s, .which = PASS_ALL, .logp = logp, .entropy = entropy};
  divide(&p);
  if (kept != NULL) *kept = p.keep = shares_fit(&p);
  return run_score(&p, err);
}

static int all_finite(const double *x, size_t n) {
  for (size_t k = 0; k < n; ++k)
    if (!isfinite(x[k])) return 0;
  return 1;
}

/* Whether the policy is still defined: a step beyond that is a result without a loss. */
static int is_defined(const rollout_set *s) {
  return all_finite(s->logp, s->n_tokens) && all_finite(s->sampled_logq, s->n_tokens);
}

static gl_status score_reference(llm_learner *l, rollout_set *s, gl_error *err) {
  if (l->replica[0].reference == NULL) return GL_OK;
  set_pass p = {.l = l, .s = s, .which = PASS_ALL, .reference = 1, .logp = s->logref};
  divide(&p);
  return run_score(&p, err);
}

static gl_status evaluate_loss(llm_learner *l, rollout_set *s, policy_output *out, gl_error *err) {
  const policy_input in = {
      .n_groups = s->n_groups,
      .n_responses = s->n_responses,
      .n_tokens = s->n_tokens,
      .group_start = s->group_start,
      .token_start = s->token_start,
      .reward = s->reward,
      .logp = s->logp,
      .logq = s->sampled_logq,
      .logprox = s->logprox,
      .logref = l->replica[0].reference != NULL ? s->logref : NULL,
      .version_gap = s->gap,
      .max_length = l->spec.max_tokens,
  };
  *out = (policy_output){.coefficient = s->coefficient};
  return policy_evaluate(&l->algorithm, &in, out, l->workspace, err);
}

/* --- the gradient and the step ------------------------------------------------------------------
 */

/* Adds the coefficients of repeated responses to those of the response they repeat. */
static void join_coefficients(rollout_set *s) {
  for (size_t i = 0; i < s->n_responses; ++i) {
    if (!is_repeated(s, i)) continue;
    double *from = s->coefficient + s->token_start[i];
    double *to = s->coefficient + s->token_start[s->same_as[i]];
    for (size_t t = 0; t < length_of(s, i); ++t) {
      to[t] += from[t];
      from[t] = 0;
    }
  }
}

/* The kept forward's backward; its targets are the tokens of the share's responses in order. */
static gl_status backward_kept(const set_pass *p, replica *r, walk at, gl_error *err) {
  const rollout_set *s = p->s;
  const size_t most = s->token_start[at.end] - s->token_start[at.response];
  size_t n = 0;
  gl_status status = replica_scratch(r, most, err);
  if (status != GL_OK) return status;
  for (size_t i = at.response; i < at.end; ++i)
    for (size_t k = s->token_start[i]; takes(s, PASS_ALL, i) && k < s->token_start[i + 1]; ++k)
      r->scratch[n++] = -s->coefficient[k];
  return n > 0 ? model_backward(r->model, r->scratch, err) : GL_OK;
}

static gl_status backward_again(const set_pass *p, replica *r, walk at, gl_error *err) {
  const run_spec *spec = &p->l->spec;
  const size_t n = p->s->token_start[at.end] - p->s->token_start[at.response];
  gl_status status = replica_scratch(r, 2 * n, err);
  while (status == GL_OK) {
    double *dlogp = r->scratch, *logp = r->scratch + n;
    status = pack_next(&r->pack, spec->micro_batch, p->s, p->which, &at, dlogp, err);
    if (status != GL_OK || r->pack.n_targets == 0) return status;
    const packed_tokens packed = token_pack_view(&r->pack);
    status = model_forward(r->model, &packed, spec->sampling.temperature, 1, logp, NULL, err);
    if (status == GL_OK) status = model_backward(r->model, dlogp, err);
  }
  return status;
}

/* d loss / d theta from the share's coefficients into the replica's gradient, and the step that all
 * take together. */
static gl_status step_share(void *context, size_t rank, gl_error *err) {
  const set_pass *p = context;
  replica *r = &p->l->replica[rank];
  gl_status status = model_zero_gradient(r->model, err);
  if (status == GL_OK)
    status = p->keep ? backward_kept(p, r, share_of(p, rank), err)
                     : backward_again(p, r, share_of(p, rank), err);
  if (status != GL_OK) return status;
  return llm_learner_step(p->l, rank, p->lr, &p->l->norm[rank], err);
}

/* One optimiser step. If the activations of the forward that scored the responses were kept, a
 * backward over all tokens follows, which costs about twice a forward. Else responses whose
 * coefficients are all zero are left out, and the others cost three forwards. The cheaper way is
 * taken. A kept forward was divided over the replicas as all responses, so its backward is, too. */
static gl_status step(llm_learner *l, rollout_set *s, int kept, double lr, double *norm,
                      gl_error *err) {
  join_coefficients(s);
  const size_t all = count_tokens(s, PASS_ALL, 0, s->n_responses);
  const size_t some = count_tokens(s, PASS_WITH_GRADIENT, 0, s->n_responses);
  set_pass p = {.l = l, .s = s, .lr = lr};
  p.keep = kept && 3 * some > 2 * all;
  p.which = p.keep ? PASS_ALL : PASS_WITH_GRADIENT;
  divide(&p);
  gl_status status = rank_threads_run(l->threads, step_share, &p, err);
  return status == GL_OK ? llm_learner_norm(l, norm, err) : status;
}

static gl_status reserve_order(llm_learner *l, size_t n, gl_error *err) {
  if (n <= l->cap_order) return GL_OK;
  free(l->order);
  l->order = calloc(n, sizeof *l->order);
  l->cap_order = l->order != NULL ? n : 0;
  return l->order != NULL ? GL_OK : gl_fail_memory(err, "an update's minibatches");
}

/* One optimiser update on a set. scored: its coefficients are computed already; kept: and the
 * activations of its forward are still there. *defined becomes 0 if the policy's probabilities have
 * stopped being numbers. */
static gl_status one_update(llm_learner *l, rollout_set *s, int scored, int kept, double lr,
                            double *norm, int *defined, gl_error *err) {
  gl_status status = GL_OK;
  policy_output out;
  if (!scored) {
    status = score(l, s, s->logp, NULL, &kept, err);
    *defined = status == GL_OK && is_defined(s);
    if (!*defined) return status;
    status = evaluate_loss(l, s, &out, err);
  }
  return status == GL_OK ? step(l, s, kept, lr, norm, err) : status;
}

/* All optimiser updates of one step: epochs times minibatches. The coefficients in l->all were
 * computed with the parameters before the step, so they serve the first update if there is one
 * minibatch. The step ends early where the policy's probabilities stop being numbers. *norm is the
 * sum of gradient norms over *count updates. */
static gl_status optimise(llm_learner *l, int kept, double lr, double *norm, size_t *count,
                          gl_error *err) {
  const size_t n = l->all.n_groups, parts = l->minibatches;
  gl_status status = reserve_order(l, n, err);
  for (size_t epoch = 0; epoch < l->epochs && status == GL_OK; ++epoch) {
    if (parts > 1) learner_shuffle(l->order, n, l->seed, l->version, epoch);
    for (size_t m = 0; m < parts && status == GL_OK; ++m) {
      rollout_set *s = &l->all;
      double length = 0;
      int defined = 1;
      const int scored = parts == 1 && epoch == 0;
      if (parts > 1) {
        const size_t first = learner_minibatch(m, parts, n),
                     last = learner_minibatch(m + 1, parts, n);
        s = &l->part;
        status = rollout_set_select(s, &l->all, l->order + first, last - first, err);
        if (status != GL_OK) return status;
      }
      status = one_update(l, s, scored, scored && kept, lr, &length, &defined, err);
      if (status != GL_OK || !defined) return status;
      *norm += length;
      ++*count;
    }
  }
  return status;
}

/* --- metrics ------------------------------------------------------------------------------------
 */

static double mean(const double *x, size_t n) {
  double sum = 0;
  for (size_t k = 0; k < n; ++k) sum += x[k];
  return sum / (double)n;
}

/* Metrics that do not depend on the parameters after the step. */
static void plain_metrics(const rollout_set *s, double lr, double *metrics) {
  metrics[METRIC_REWARD_MEAN] = mean(s->reward, s->n_responses);
  metrics[METRIC_RESPONSE_LENGTH] = (double)s->n_tokens / (double)s->n_responses;
  metrics[METRIC_LR] = lr;
}

/* --- the step -----------------------------------------------------------------------------------
 */

static gl_status learn(llm_learner *l, double lr, double *metrics, gl_error *err) {
  rollout_set *s = &l->all;
  policy_output out;
  int kept = 0;
  gl_status status = score_reference(l, s, err);
  if (status == GL_OK)
    status = score(l, s, s->logp, s->entropy, l->minibatches == 1 ? &kept : NULL, err);
  if (status != GL_OK || !is_defined(s)) return status;
  memcpy(s->logprox, s->logp, s->n_tokens * sizeof *s->logprox);
  status = evaluate_loss(l, s, &out, err);
  if (status != GL_OK) return status;
  memcpy(metrics, out.metric, sizeof out.metric);
  metrics[METRIC_ENTROPY] = mean(s->entropy, s->n_tokens);
  double norm = 0;
  size_t count = 0;
  status = optimise(l, kept, lr, &norm, &count, err);
  metrics[METRIC_GRAD_NORM] = norm / (double)count;
  return status;
}

gl_status llm_learner_update(void *self, batch *const *batches, size_t n,
                             double metrics[METRIC_COUNT], gl_error *err) {
  llm_learner *l = self;
  metrics_clear(metrics);
  gl_status status = llm_learner_gather(l, batches, n, err);
  if (status != GL_OK) return status;
  const double lr = optimizer_lr(&l->optimizer_spec, (uint64_t)l->version, l->updates);
  status = learn(l, lr, metrics, err);
  plain_metrics(&l->all, lr, metrics);
  if (status == GL_OK) ++l->version;
  return status;
}
