/* One learner step: batches together, then minibatches x epochs optimiser updates.
 *
 * A step scores every token of its batches, asks core/policy for the coefficients c = d(-loss)/d
 * logp, and hands dlogp = -c to the model's backward, in micro-batches of bounded packed tokens. A
 * response whose coefficients are all 0 has no gradient and is left out of the backward. Where one
 * micro-batch holds a whole set, its forward is kept and serves the backward too.
 *
 * Responses of a group begin with the same prompt, and those of a policy that knows the answer go
 * on alike, too. What they have in common is run once (packed_tokens.h): a token that several of
 * them have at the same place has one log-probability, whose gradient is weighted by the sum of
 * their coefficients.
 *
 * Metrics describe the whole of the batches under the parameters the step starts from; grad_norm
 * is the mean over the step's optimiser updates, before clipping. The proximal policy is the
 * learner's at the start of the step. */
#include "llm/learner/learner.h"

#include "core/rl/weight_noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- micro-batches --- */

/* Which responses a pass takes: all, or those with a coefficient other than 0. A watched pass takes
 * all, and the same rows, and tells what distributions give to the tokens that samplers kept. */
typedef enum pass { PASS_ALL, PASS_WATCHED, PASS_WITH_GRADIENT } pass;

/* A place in a walk over a part of a set's responses in order. */
typedef struct walk {
  size_t response, end, group;
} walk;

static size_t length_of(const rollout_set *s, size_t i) {
  return s->token_start[i + 1] - s->token_start[i];
}

static int has_gradient(const rollout_set *s, size_t i) {
  for (size_t k = s->token_start[i]; k < s->token_start[i + 1]; ++k)
    if (s->coefficient[k] != 0) return 1;
  return 0;
}

static int takes(const rollout_set *s, pass which, size_t i) {
  return which != PASS_WITH_GRADIENT || has_gradient(s, i);
}

/* Packs the next micro-batch: responses until `most` tokens are full, at least one. The pack stays
 * empty at the end of the walk. rows[i] (NULL: not wanted) is how many rows response i added. */
static gl_status pack_next(replica *r, size_t most, const rollout_set *s, pass which, walk *at,
                           size_t *rows, gl_error *err) {
  const int watches = which == PASS_WATCHED && s->shape.words > 0;
  size_t prompt = SIZE_MAX; /* the group whose prompt is being packed */
  token_pack_clear(&r->pack, model_shares(r->model));
  if (s->replays) token_pack_keep(&r->pack, &s->shape);
  if (watches) token_pack_watch(&r->pack, &s->shape);
  for (; at->response < at->end; ++at->response) {
    const size_t i = at->response, before = r->pack.n_tokens;
    int added;
    if (rows != NULL) rows[i] = 0;
    while (s->group_start[at->group + 1] <= i) ++at->group;
    const size_t g = at->group, from = s->prompt_start[g];
    if (!takes(s, which, i)) continue;
    if (g != prompt) token_pack_prompt(&r->pack, s->prompt + from, s->prompt_start[g + 1] - from);
    prompt = g;
    const size_t k = s->token_start[i];
    const uint32_t *kept = s->replays || watches ? s->kept + k * s->shape.words : NULL;
    gl_status status =
        token_pack_add_kept(&r->pack, s->token + k, kept, length_of(s, i), most, &added, err);
    if (status != GL_OK) return status;
    if (!added) break;
    if (rows != NULL) rows[i] = r->pack.n_tokens - before;
  }
  return token_pack_finish(&r->pack, err);
}

/* --- shares --- */

/* A pass over a set, every replica over its share of the responses. */
typedef struct set_pass {
  llm_learner *l;
  const rollout_set *s;
  pass which;
  score_policy policy;    /* that scores */
  double temperature;     /* of a score */
  double *logp, *entropy; /* [n_tokens] of a score; entropy NULL: not wanted */
  int keep;               /* a score's forward serves the backward; a backward has it */
  double lr;              /* of the step behind a backward */
} set_pass;

static size_t rows_of(const void *context, size_t i) {
  return ((const set_pass *)context)->s->rows[i];
}

/* Divides the rows that the pass runs among the replicas; *all of them, were they one micro-batch.
 */
static gl_status divide(const set_pass *p, size_t *all, gl_error *err) {
  replica *r = &p->l->replica[0];
  walk at = {.end = p->s->n_responses};
  gl_status status = pack_next(r, SIZE_MAX, p->s, p->which, &at, p->s->rows, err);
  *all = r->pack.n_tokens;
  if (status == GL_OK) llm_learner_divide(p->l, rows_of, p, p->s->n_responses);
  return status;
}

static walk share_of(const set_pass *p, size_t rank) {
  return (walk){.response = p->l->share[rank], .end = p->l->share[rank + 1]};
}

/* *fit = 1 if every share is one micro-batch. */
static gl_status shares_fit(const set_pass *p, int *fit, gl_error *err) {
  const llm_learner *l = p->l;
  gl_status status = GL_OK;
  *fit = 1;
  for (size_t rank = 0; rank < l->spec.devices && status == GL_OK; ++rank) {
    walk at = share_of(p, rank);
    status = pack_next(&l->replica[0], l->spec.micro_batch, p->s, p->which, &at, NULL, err);
    *fit &= at.response == at.end;
  }
  return status;
}

/* --- scoring --- */

/* Copies what a forward of the pack found to the tokens of the responses packed from `first` on. */
static void put_scores(const token_pack *p, const rollout_set *s, size_t first, const double *found,
                       double *to) {
  for (size_t k = 0; k < p->n_asked; ++k) to[s->token_start[first] + k] = found[p->target_of[k]];
}

/* What the distributions of the pack that has just run give to the sets, to the tokens' places in
 * s->part.
 */
static gl_status score_parts(const rollout_set *s, replica *r, size_t first, gl_error *err) {
  const token_pack *p = &r->pack;
  const size_t n = p->n_watched;
  if (n == 0) return GL_OK;
  gl_status status = replica_scratch(r, 3 * n, err);
  if (status == GL_OK)
    status = token_pack_parts(p, r->model, r->scratch, r->scratch + n, r->scratch + 2 * n, err);
  for (size_t of = 0; of < 3 && status == GL_OK; ++of)
    for (size_t k = 0; k < p->n_asked; ++k)
      s->part[of][s->token_start[first] + k] = r->scratch[of * n + p->watched_of[k]];
  return status;
}

static gl_status score_walk(const set_pass *p, replica *r, walk at, gl_error *err) {
  const run_spec *spec = &p->l->spec;
  for (;;) {
    const size_t first = at.response;
    gl_status status = pack_next(r, spec->micro_batch, p->s, p->which, &at, NULL, err);
    const size_t n = r->pack.n_targets;
    if (status != GL_OK || n == 0) return status;
    status = replica_scratch(r, 2 * n, err);
    if (status != GL_OK) return status;
    double *logp = r->scratch, *entropy = p->entropy != NULL ? r->scratch + n : NULL;
    status = token_pack_forward(&r->pack, r->model, p->temperature, p->keep, logp, entropy, err);
    if (status != GL_OK) return status;
    put_scores(&r->pack, p->s, first, logp, p->logp);
    if (entropy != NULL) put_scores(&r->pack, p->s, first, entropy, p->entropy);
    if (p->which == PASS_WATCHED) status = score_parts(p->s, r, first, err);
    if (status != GL_OK) return status;
  }
}

static gl_status score_share(void *context, size_t rank, gl_error *err) {
  const set_pass *p = context;
  replica *r = &p->l->replica[rank];
  if (p->policy == SCORE_REFERENCE) model_use(r->model, r->reference);
  if (p->policy == SCORE_INITIAL) model_use(r->model, r->initial);
  gl_status status = score_walk(p, r, share_of(p, rank), err);
  if (p->policy != SCORE_IN_USE) model_use(r->model, NULL);
  return status;
}

/* logp[n_tokens] and entropy[n_tokens] (NULL: not wanted) of every token of a set. *kept (NULL: no)
 * tells whether the whole forward was kept for a backward. watches: fills s->part, where the set
 * has sets of kept tokens. */
static gl_status score(llm_learner *l, const rollout_set *s, double *logp, double *entropy,
                       int watches, int *kept, gl_error *err) {
  set_pass p = {.l = l,
                .s = s,
                .which = watches ? PASS_WATCHED : PASS_ALL,
                .temperature = l->spec.sampling.temperature,
                .logp = logp,
                .entropy = entropy};
  size_t all;
  gl_status status = divide(&p, &all, err);
  if (status == GL_OK && kept != NULL) {
    status = shares_fit(&p, &p.keep, err);
    *kept = p.keep;
  }
  return status == GL_OK ? rank_threads_run(l->threads, score_share, &p, err) : status;
}

gl_status llm_learner_log_probs(llm_learner *l, const rollout_set *s, score_policy policy,
                                double temperature, double *logp, gl_error *err) {
  set_pass p = {.l = l,
                .s = s,
                .which = PASS_ALL,
                .policy = policy,
                .temperature = temperature,
                .logp = logp};
  size_t all;
  gl_status status = divide(&p, &all, err);
  return status == GL_OK ? rank_threads_run(l->threads, score_share, &p, err) : status;
}

static double mean(const double *x, size_t n) {
  double sum = 0;
  for (size_t k = 0; k < n; ++k) sum += x[k];
  return sum / (double)n;
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
  return llm_learner_log_probs(l, s, SCORE_REFERENCE, l->spec.sampling.temperature, s->logref, err);
}

static gl_status evaluate_loss(llm_learner *l, const policy_algorithm *algorithm, rollout_set *s,
                               policy_output *out, gl_error *err) {
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
      .entropy = algorithm->top_entropy < 1 ? s->entropy : NULL,
      .version_gap = s->gap,
      .max_length = l->spec.max_tokens,
  };
  *out = (policy_output){.coefficient = s->coefficient};
  return policy_evaluate(algorithm, &in, out, l->workspace, err);
}

/* --- the gradient and the step --- */

/* The gradient by the log-probabilities of the pack's targets: minus the sum of the coefficients of
 * all tokens that have it, responses `first` .. `end` - 1 in order. */
static void take_coefficients(const token_pack *p, const rollout_set *s, pass which, size_t first,
                              size_t end, double *dlogp) {
  size_t k = 0;
  memset(dlogp, 0, p->n_targets * sizeof *dlogp);
  for (size_t i = first; i < end; ++i)
    for (size_t t = s->token_start[i]; takes(s, which, i) && t < s->token_start[i + 1]; ++t)
      dlogp[p->target_of[k++]] -= s->coefficient[t];
}

/* Micro-batch by micro-batch, with the forward that each needs where it was not kept. */
static gl_status backward_walk(const set_pass *p, replica *r, walk at, gl_error *err) {
  const run_spec *spec = &p->l->spec;
  for (;;) {
    const size_t first = at.response;
    gl_status status = pack_next(r, spec->micro_batch, p->s, p->which, &at, NULL, err);
    const size_t n = r->pack.n_targets;
    if (status != GL_OK || n == 0) return status;
    status = replica_scratch(r, 2 * n, err);
    double *dlogp = r->scratch, *logp = r->scratch + n;
    if (status == GL_OK && !p->keep)
      status =
          token_pack_forward(&r->pack, r->model, spec->sampling.temperature, 1, logp, NULL, err);
    if (status != GL_OK) return status;
    take_coefficients(&r->pack, p->s, p->which, first, at.response, dlogp);
    status = model_backward(r->model, dlogp, err);
    if (status != GL_OK) return status;
  }
}

/* d loss / d theta from the share's coefficients into the replica's gradient. */
static gl_status gradient_share(void *context, size_t rank, gl_error *err) {
  const set_pass *p = context;
  replica *r = &p->l->replica[rank];
  gl_status status = model_zero_gradient(r->model, err);
  return status == GL_OK ? backward_walk(p, r, share_of(p, rank), err) : status;
}

/* That, and the step that all take together; the first replica compares their gradient with that of
 * the update before. */
static gl_status step_share(void *context, size_t rank, gl_error *err) {
  const set_pass *p = context;
  replica *r = &p->l->replica[rank];
  gl_status status = gradient_share(context, rank, err);
  if (status != GL_OK) return status;
  status = llm_learner_step(p->l, rank, p->lr, &p->l->norm[rank], err);
  if (status != GL_OK || rank > 0) return status;
  status = model_gradient_sample(r->model, p->l->trail.now, err);
  if (status == GL_OK) gradient_trail_next(&p->l->trail);
  return status;
}

/* One optimiser step. If the activations of the forward that scored the responses were kept, a
 * backward over all tokens follows, which costs about twice a forward. Else responses whose
 * coefficients are all zero are left out, and the others cost three forwards. The cheaper way is
 * taken. A kept forward was divided over the replicas as all responses, so its backward is, too. */
static gl_status step(llm_learner *l, rollout_set *s, int kept, double lr, double *norm,
                      gl_error *err) {
  set_pass p = {.l = l, .s = s, .lr = lr, .which = PASS_ALL};
  size_t all = 0, some = 0;
  gl_status status = divide(&p, &all, err);
  p.which = PASS_WITH_GRADIENT;
  if (status == GL_OK) status = divide(&p, &some, err);
  p.keep = kept && 3 * some > 2 * all;
  if (p.keep) p.which = PASS_ALL;
  if (p.keep && status == GL_OK) status = divide(&p, &all, err);
  if (status == GL_OK) status = rank_threads_run(l->threads, step_share, &p, err);
  return status == GL_OK ? llm_learner_norm(l, norm, err) : status;
}

gl_status llm_learner_differentiate(llm_learner *l, const policy_algorithm *algorithm,
                                    double *metrics, gl_error *err) {
  rollout_set *s = &l->all;
  set_pass p = {.l = l, .s = s, .which = PASS_WITH_GRADIENT};
  policy_output out;
  size_t some;
  gl_status status = score(l, s, s->logp, s->entropy, 0, NULL, err);
  if (status != GL_OK) return status;
  if (!is_defined(s))
    return gl_fail(err, GL_EINPUT, "log-probabilities of drawn tokens are not finite numbers");
  memcpy(s->logprox, s->logp, s->n_tokens * sizeof *s->logprox);
  status = evaluate_loss(l, algorithm, s, &out, err);
  if (status != GL_OK) return status;
  memcpy(metrics, out.metric, sizeof out.metric);
  metrics[METRIC_REWARD_MEAN] = mean(s->reward, s->n_responses);
  batch_weigh(s->loss_weight, s->token_start, s->n_responses, s->coefficient);
  status = divide(&p, &some, err);
  return status == GL_OK ? rank_threads_run(l->threads, gradient_share, &p, err) : status;
}

static gl_status reserve_order(llm_learner *l, size_t n, gl_error *err) {
  if (n <= l->cap_order) return GL_OK;
  free(l->order);
  l->order = calloc(n, sizeof *l->order);
  l->cap_order = l->order != NULL ? n : 0;
  return l->order != NULL ? GL_OK : gl_fail_memory(err, "an update's minibatches");
}

/* Optimiser update number `update` of a step, on a set. scored: its coefficients are computed
 * already; kept: and the activations of its forward are still there. *lr is scaled with the
 * effective sample size where the optimiser asks for it. *defined becomes 0 if the policy's
 * probabilities have stopped being numbers. */
static gl_status one_update(llm_learner *l, rollout_set *s, size_t update, int scored, int kept,
                            double *lr, double *norm, int *defined, gl_error *err) {
  gl_status status = GL_OK;
  policy_output out;
  if (!scored) {
    status = score(l, s, s->logp, l->algorithm.top_entropy < 1 ? s->entropy : NULL, 0, &kept, err);
    *defined = status == GL_OK && is_defined(s);
    if (!*defined) return status;
    status = evaluate_loss(l, &l->algorithm, s, &out, err);
  }
  if (status != GL_OK) return status;
  if (l->optimizer_spec.ess_scaling != ESS_NONE)
    *lr *= optimizer_ess_factor(&l->optimizer_spec, optimizer_ess(s->logp, s->sampled_logq,
                                                                  s->token_start, s->n_responses));
  weight_noise_apply(l->weight_noise, l->seed, (uint64_t)l->version, update, s->token_start,
                     s->n_responses, s->coefficient);
  batch_weigh(s->loss_weight, s->token_start, s->n_responses, s->coefficient);
  return step(l, s, kept, *lr, norm, err);
}

/* All optimiser updates of one step: epochs times minibatches. The coefficients in l->all were
 * computed with the parameters before the step, so they serve the first update if there is one
 * minibatch. The step ends early where the policy's probabilities stop being numbers. *norm is the
 * sum of gradient norms over *count updates, *rates that of their learning rates. */
static gl_status optimise(llm_learner *l, int kept, double lr, double *norm, double *rates,
                          size_t *count, gl_error *err) {
  const size_t n = l->all.n_groups, parts = l->minibatches;
  gl_status status = reserve_order(l, n, err);
  for (size_t epoch = 0; epoch < l->epochs && status == GL_OK; ++epoch) {
    if (parts > 1) learner_shuffle(l->order, n, l->seed, l->version, epoch);
    for (size_t m = 0; m < parts && status == GL_OK; ++m) {
      rollout_set *s = &l->all;
      double length = 0, rate = lr;
      int defined = 1;
      const int scored = parts == 1 && epoch == 0;
      if (parts > 1) {
        const size_t first = learner_minibatch(m, parts, n),
                     last = learner_minibatch(m + 1, parts, n);
        s = &l->part;
        status = rollout_set_select(s, &l->all, l->order + first, last - first, err);
        if (status != GL_OK) return status;
      }
      status = one_update(l, s, *count, scored, scored && kept, &rate, &length, &defined, err);
      if (status != GL_OK || !defined) return status;
      *norm += length;
      *rates += rate;
      ++*count;
    }
  }
  return status;
}

/* --- metrics --- */

/* Metrics that do not depend on the parameters after the step. */
static void plain_metrics(const rollout_set *s, double lr, double *metrics) {
  metrics[METRIC_REWARD_MEAN] = mean(s->reward, s->n_responses);
  metrics[METRIC_RESPONSE_LENGTH] = (double)s->n_tokens / (double)s->n_responses;
  metrics[METRIC_LR] = lr;
}

/* What samplers kept, seen by themselves and, where sets are recorded, by the learner. Samplers
 * whose `logq` is the learner's record no truncated distribution with raw weights, unless sets say
 * it. */
static void kept_metrics(const llm_learner *l, const rollout_set *s, double *metrics) {
  const sampling_spec *dist = &l->spec.sampling;
  const int sets = s->shape.words > 0;
  if (!sampling_truncates(dist, l->spec.model.vocabulary)) return;
  if (sets || dist->weights != SAMPLING_RAW || dist->logq != LOGQ_LEARNER)
    metrics[METRIC_KEPT_MASS_Q] = s->kept_mass_q;
  if (!sets) return;
  double tail = 0, with_tail = 0;
  for (size_t k = 0; k < s->n_tokens; ++k) {
    if (isnan(s->part[2][k])) continue;
    tail += s->part[2][k];
    with_tail += 1;
  }
  metrics[METRIC_KEPT_MASS] = mean(s->part[0], s->n_tokens);
  metrics[METRIC_ENTROPY_KEPT] = mean(s->part[1], s->n_tokens);
  if (with_tail > 0) metrics[METRIC_ENTROPY_TAIL] = tail / with_tail;
}

/* --- the step --- */

static gl_status learn(llm_learner *l, double lr, double *applied, double *metrics, gl_error *err) {
  rollout_set *s = &l->all;
  policy_output out;
  int kept = 0;
  gl_status status = score_reference(l, s, err);
  if (status == GL_OK)
    status = score(l, s, s->logp, s->entropy, 1, l->minibatches == 1 ? &kept : NULL, err);
  if (status != GL_OK || !is_defined(s)) return status;
  memcpy(s->logprox, s->logp, s->n_tokens * sizeof *s->logprox);
  status = evaluate_loss(l, &l->algorithm, s, &out, err);
  if (status != GL_OK) return status;
  memcpy(metrics, out.metric, sizeof out.metric);
  metrics[METRIC_ENTROPY] = mean(s->entropy, s->n_tokens);
  kept_metrics(l, s, metrics);
  gradient_trail_begin(&l->trail);
  double norm = 0, rates = 0;
  size_t count = 0;
  status = optimise(l, kept, lr, &norm, &rates, &count, err);
  metrics[METRIC_GRAD_NORM] = norm / (double)count;
  metrics[METRIC_GRAD_COSINE] = gradient_trail_mean(&l->trail);
  if (l->optimizer_spec.ess_scaling != ESS_NONE && count > 0) *applied = rates / (double)count;
  return status;
}

gl_status llm_learner_update(void *self, batch *const *batches, size_t n,
                             double metrics[METRIC_COUNT], gl_error *err) {
  llm_learner *l = self;
  metrics_clear(metrics);
  gl_status status = llm_learner_gather(l, batches, n, err);
  if (status != GL_OK) return status;
  const double lr = optimizer_lr(&l->optimizer_spec, (uint64_t)l->version, l->updates);
  double applied = lr;
  status = learn(l, lr, &applied, metrics, err);
  plain_metrics(&l->all, applied, metrics);
  if (status == GL_OK) ++l->version;
  return status;
}
