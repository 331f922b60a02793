/* One learner step: batches together, then minibatches x epochs optimiser updates.
 *
 * Metrics describe the whole of the batches under the parameters the step starts from; grad_norm
 * is the mean over the step's optimiser updates, before clipping. The proximal policy is the
 * learner's at the start of the step.
 */
#include "toy/learner/learner.h"

#include "core/rl/weight_noise.h"
#include "toy/world/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- laying batches out --- */

static gl_status gather_batch(toy_learner *l, const batch *b, size_t g0, size_t i0, size_t k0,
                              gl_error *err) {
  token_set *s = &l->all;
  const int truncated = l->world->sampling.weights != SAMPLING_RAW;
  const toy_dists dists = toy_learner_dists(l, b, toy_learner_slots(l, b));
  const size_t record = toy_record_size(l->world, dists.parts);
  if (dists.parts == 0)
    return gl_fail(err, GL_EINPUT, "batch %llu was drawn in another world than it is trained in",
                   (unsigned long long)b->id);
  for (size_t g = 0; g < b->n_groups; ++g) {
    if (b->group_start[g] == b->group_start[g + 1])
      return gl_fail(err, GL_EINPUT, "group %zu of batch %llu has no responses", g,
                     (unsigned long long)b->id);
    const int continues = g == 0 && b->continues;
    if (continues && s->prompt[g0] != (size_t)b->prompt[g])
      return gl_fail(err, GL_EINTERNAL, "batch %llu continues a group of another prompt",
                     (unsigned long long)b->id);
    if (!continues) s->group_start[g0 + g] = i0 + b->group_start[g];
    s->prompt[g0 + g] = (size_t)b->prompt[g];
    for (size_t i = b->group_start[g]; i < b->group_start[g + 1]; ++i) {
      const size_t place = dists.own ? i : l->slot[b->prompt[g]];
      s->dist[i0 + i] = (toy_record){b->aux + place * record, dists.parts};
    }
  }
  for (size_t i = 0; i < b->n_responses; ++i) {
    size_t from = b->token_start[i], n = b->token_start[i + 1] - from;
    s->token_start[i0 + i] = k0 + from;
    s->reward[i0 + i] = b->reward[i];
    s->loss_weight[i0 + i] = b->loss_weight;
    if (!toy_walk(l->world, b->token + from, n, s->edge + k0 + from))
      return gl_fail(err, GL_EINPUT,
                     "response %zu of batch %llu is no complete response of this world", i,
                     (unsigned long long)b->id);
  }
  for (size_t k = 0; k < b->n_tokens; ++k) {
    s->sampled_logq[k0 + k] = truncated ? b->logq_trunc[k] : b->logq[k];
    s->gap[k0 + k] = (double)l->version - (double)b->version[k];
  }
  return GL_OK;
}

/* Only one denominator reads them, and they cost an exponential per edge. */
static int wants_collisions(const policy_algorithm *algorithm) {
  return policy_needs_exact_denominator(algorithm);
}

/* The distribution of a group whose responses were all drawn from one; no values where they were
 * not. */
static toy_record dist_of_group(const token_set *s, size_t g) {
  const size_t first = s->group_start[g];
  for (size_t i = first + 1; i < s->group_start[g + 1]; ++i)
    if (s->dist[i].values != s->dist[first].values) return (toy_record){0};
  return s->dist[first];
}

/* The mean over responses of sum_y q(y)^2, each under its own distribution. */
static gl_status mixed_collision(toy_learner *l, token_set *s, size_t g, int truncated,
                                 gl_error *err) {
  double sum = 0;
  gl_status status = GL_OK;
  for (size_t i = s->group_start[g]; i < s->group_start[g + 1] && status == GL_OK; ++i) {
    double one = 0;
    status = toy_record_collision(l->world, s->dist[i], truncated, &one, err);
    sum += exp(one);
  }
  s->log_collision[g] = log(sum / (double)(s->group_start[g + 1] - s->group_start[g]));
  return status;
}

/* log sum_y q(y)^2 of each group, under the distribution that the weights see. */
static gl_status collisions(toy_learner *l, token_set *s, gl_error *err) {
  const int truncated = l->world->sampling.weights != SAMPLING_RAW;
  gl_status status = GL_OK;
  for (size_t g = 0; g < s->n_groups && status == GL_OK; ++g) {
    const toy_record dist = dist_of_group(s, g);
    size_t same = 0;
    if (dist.values == NULL) {
      status = mixed_collision(l, s, g, truncated, err);
      continue;
    }
    while (dist_of_group(s, same).values != dist.values)
      ++same; /* groups of a batch share their prompt's table */
    if (same < g)
      s->log_collision[g] = s->log_collision[same];
    else
      status = toy_record_collision(l->world, dist, truncated, s->log_collision + g, err);
  }
  return status;
}

static gl_status gather(toy_learner *l, batch *const *batches, size_t n, gl_error *err) {
  const size_t groups = batches_groups((const batch *const *)batches, n);
  size_t responses = 0, tokens = 0;
  for (size_t j = 0; j < n; ++j) {
    if (!batch_is_consistent(batches[j]))
      return gl_fail(err, GL_EINPUT, "batch %llu is not consistent",
                     (unsigned long long)batches[j]->id);
    responses += batches[j]->n_responses;
    tokens += batches[j]->n_tokens;
  }
  if (groups < l->minibatches)
    return gl_fail(err, GL_EINPUT, "%zu groups cannot be split into %zu minibatches", groups,
                   l->minibatches);
  gl_status status = token_set_resize(&l->all, groups, responses, tokens, err);
  size_t g = 0, i = 0, k = 0;
  for (size_t j = 0; j < n && status == GL_OK; ++j) {
    g -= (size_t)batches[j]->continues;
    status = gather_batch(l, batches[j], g, i, k, err);
    g += batches[j]->n_groups;
    i += batches[j]->n_responses;
    k += batches[j]->n_tokens;
  }
  if (status != GL_OK) return status;
  l->all.group_start[g] = i;
  l->all.token_start[i] = k;
  return wants_collisions(&l->algorithm) ? collisions(l, &l->all, err) : GL_OK;
}

/* part = the chosen groups of all, in the order given. */
static gl_status select_groups(token_set *part, const token_set *all, const size_t *group, size_t n,
                               gl_error *err) {
  size_t responses = 0, tokens = 0;
  for (size_t j = 0; j < n; ++j) {
    size_t first = all->group_start[group[j]], last = all->group_start[group[j] + 1];
    responses += last - first;
    tokens += all->token_start[last] - all->token_start[first];
  }
  gl_status status = token_set_resize(part, n, responses, tokens, err);
  if (status != GL_OK) return status;
  size_t i = 0, k = 0;
  for (size_t j = 0; j < n; ++j) {
    size_t first = all->group_start[group[j]], last = all->group_start[group[j] + 1];
    size_t from = all->token_start[first], count = all->token_start[last] - from;
    part->group_start[j] = i;
    part->prompt[j] = all->prompt[group[j]];
    part->log_collision[j] = all->log_collision[group[j]];
    memcpy(part->reward + i, all->reward + first, (last - first) * sizeof *part->reward);
    memcpy(part->loss_weight + i, all->loss_weight + first,
           (last - first) * sizeof *part->loss_weight);
    memcpy(part->dist + i, all->dist + first, (last - first) * sizeof *part->dist);
    for (size_t r = first; r < last; ++r) part->token_start[i++] = all->token_start[r] - from + k;
    memcpy(part->edge + k, all->edge + from, count * sizeof *part->edge);
    memcpy(part->sampled_logq + k, all->sampled_logq + from, count * sizeof *part->sampled_logq);
    memcpy(part->gap + k, all->gap + from, count * sizeof *part->gap);
    memcpy(part->logprox + k, all->logprox + from, count * sizeof *part->logprox);
    memcpy(part->logref + k, all->logref + from, count * sizeof *part->logref);
    k += count;
  }
  part->group_start[n] = i;
  part->token_start[i] = k;
  return GL_OK;
}

/* --- one loss and its gradient --- */

/* Whether the learner's distribution is renormalised over what the sampler kept. */
static int replays(const toy_learner *l) {
  return l->world->sampling.weights == SAMPLING_REPLAY &&
         sampling_truncates(&l->world->sampling, l->world->tree.vocabulary);
}

/* A policy at a node, logp[v], renormalised over the tokens that the sampler of distribution q kept
 * at that position: log-probabilities into l->token[v], and its probabilities behind them, which
 * are returned. */
static const double *replay(toy_learner *l, toy_record q, size_t edge, size_t position,
                            const double *logp) {
  const size_t v = l->world->tree.vocabulary;
  double *drawn = l->token + 2 * v;
  sampling_truncate(&l->world->sampling, toy_record_node(l->world, q, edge, position), v, drawn,
                    l->rank);
  toy_replay_node(logp, drawn, v, l->token, l->token + v);
  return l->token + v;
}

/* The log-probabilities of the set's tokens under a policy over edges, as the weights see them;
 * group g's tokens only. */
static void see(toy_learner *l, const token_set *s, size_t g, const double *logp, double *out) {
  const size_t v = l->world->tree.vocabulary;
  for (size_t i = s->group_start[g]; i < s->group_start[g + 1]; ++i)
    for (size_t k = s->token_start[i]; k < s->token_start[i + 1]; ++k) {
      const size_t edge = s->edge[k], first = edge / v * v;
      out[k] = logp[edge];
      if (!replays(l)) continue;
      replay(l, s->dist[i], edge, k - s->token_start[i], logp + first);
      out[k] = l->token[edge - first];
    }
}

/* logp of every token under the parameters as they are; 0 if one is not a number. */
static int score_tokens(toy_learner *l, token_set *s) {
  int defined = 1;
  for (size_t g = 0; g < s->n_groups; ++g) {
    const double *logp = toy_learner_at(l, s->prompt[g])->logp;
    size_t end = s->token_start[s->group_start[g + 1]];
    see(l, s, g, logp, s->logp);
    for (size_t k = s->token_start[s->group_start[g]]; k < end; ++k)
      if (isnan(s->logp[k])) defined = 0;
  }
  return defined;
}

static void score_reference(toy_learner *l, token_set *s) {
  for (size_t g = 0; g < s->n_groups; ++g)
    see(l, s, g, l->logref + s->prompt[g] * l->world->tree.n_edges, s->logref);
}

static int wants_entropies(const toy_learner *l) {
  return l->algorithm.top_entropy < 1;
}

static void score_entropies(toy_learner *l, token_set *s) {
  const size_t v = l->world->tree.vocabulary;
  for (size_t g = 0; g < s->n_groups; ++g) {
    const prompt_cache *c = toy_learner_at(l, s->prompt[g]);
    const size_t end = s->token_start[s->group_start[g + 1]];
    for (size_t k = s->token_start[s->group_start[g]]; k < end; ++k) {
      const size_t node = s->edge[k] / v;
      s->entropy[k] = 0;
      for (size_t e = node * v; e < (node + 1) * v; ++e)
        if (c->p[e] != 0) s->entropy[k] -= c->p[e] * c->logp[e];
    }
  }
}

/* Coefficients, baselines and scales of a set whose logp is set. */
static gl_status evaluate_loss(toy_learner *l, token_set *s, policy_output *out, gl_error *err) {
  if (wants_entropies(l)) score_entropies(l, s);
  policy_input in = {
      .n_groups = s->n_groups,
      .n_responses = s->n_responses,
      .n_tokens = s->n_tokens,
      .group_start = s->group_start,
      .token_start = s->token_start,
      .reward = s->reward,
      .logp = s->logp,
      .logq = s->sampled_logq,
      .logprox = s->logprox,
      .logref = s->logref,
      .entropy = wants_entropies(l) ? s->entropy : NULL,
      .version_gap = s->gap,
      .log_denominator = wants_collisions(&l->algorithm) ? s->log_collision : NULL,
      .max_length = l->world->tree.horizon,
  };
  *out = (policy_output){.coefficient = s->coefficient,
                         .baseline = s->baseline,
                         .scale = s->scale,
                         .mean_aw = s->mean_aw};
  return policy_evaluate(&l->algorithm, &in, out, l->workspace, err);
}

/* direction = d(-loss)/dtheta from the set's coefficients. */
static void backward(toy_learner *l, const token_set *s) {
  const size_t v = l->world->tree.vocabulary;
  memset(l->direction, 0, l->world->features.n_parameters * sizeof *l->direction);
  for (size_t g = 0; g < s->n_groups; ++g) {
    const prompt_cache *c = toy_learner_at(l, s->prompt[g]);
    for (size_t i = s->group_start[g]; i < s->group_start[g + 1]; ++i)
      for (size_t k = s->token_start[i]; k < s->token_start[i + 1]; ++k) {
        const size_t edge = s->edge[k], first = edge / v * v;
        if (s->coefficient[k] == 0) continue;
        const double *p = replays(l)
                              ? replay(l, s->dist[i], edge, k - s->token_start[i], c->logp + first)
                              : c->p + first;
        toy_add_score(l->world, s->prompt[g], edge, s->coefficient[k], p, l->token, l->direction);
      }
  }
}

/* Optimiser update number `update` of the step. */
static double ascend(toy_learner *l, const token_set *s, size_t update, double lr) {
  weight_noise_apply(l->weight_noise, l->seed, (uint64_t)l->version, update, s->token_start,
                     s->n_responses, s->coefficient);
  batch_weigh(s->loss_weight, s->token_start, s->n_responses, s->coefficient);
  backward(l, s);
  memcpy(l->trail.now, l->direction, l->trail.n * sizeof *l->trail.now);
  gradient_trail_next(&l->trail);
  double norm = toy_optimizer_step(&l->optimizer, lr, l->theta, l->direction);
  ++l->stamp;
  return norm;
}

/* --- metrics --- */

static toy_facts facts_of(toy_learner *l, size_t x, toy_record dist) {
  const prompt_cache *c = toy_learner_at(l, x);
  return toy_measure(l->world, x, c->p, c->logp, dist, l->logref + x * l->world->tree.n_edges,
                     l->edges, l->scratch);
}

/* Of a group whose responses were drawn from different distributions: means over these. */
static toy_facts mixed_facts(toy_learner *l, const token_set *s, size_t g) {
  const double n = (double)(s->group_start[g + 1] - s->group_start[g]);
  toy_facts mean = {0};
  for (size_t i = s->group_start[g]; i < s->group_start[g + 1]; ++i) {
    const toy_facts f = facts_of(l, s->prompt[g], s->dist[i]);
    mean.entropy = f.entropy;
    mean.mean_reward = f.mean_reward;
    mean.kl_ref = f.kl_ref;
    mean.kl += f.kl / n;
    mean.kl_qp += f.kl_qp / n;
  }
  return mean;
}

/* Means over the groups; each different pair of prompt and sampler distribution is worked out once.
 */
static void exact_metrics(toy_learner *l, const token_set *s, double *metrics) {
  toy_facts sum = {0}, f = {0};
  double error = 0;
  size_t with_error = 0;
  for (size_t g = 0; g < s->n_groups; ++g) {
    const toy_record dist = dist_of_group(s, g);
    size_t repeats = 0, earlier = 0;
    while (earlier < g && (dist.values == NULL || dist_of_group(s, earlier).values != dist.values))
      ++earlier;
    if (earlier == g) {
      f = dist.values != NULL ? facts_of(l, s->prompt[g], dist) : mixed_facts(l, s, g);
      for (size_t h = g; h < s->n_groups; ++h) {
        if (h > g && (dist.values == NULL || dist_of_group(s, h).values != dist.values)) continue;
        ++repeats;
        double expected = (f.mean_reward - s->baseline[h]) / s->scale[h];
        if (!isfinite(expected))
          continue; /* the algorithm has no advantage affine in the reward here */
        error += fabs(s->mean_aw[h] - expected);
        ++with_error;
      }
      sum.entropy += (double)repeats * f.entropy;
      sum.kl += (double)repeats * f.kl;
      sum.kl_qp += (double)repeats * f.kl_qp;
      sum.kl_ref += (double)repeats * f.kl_ref;
    }
  }
  const double n = (double)s->n_groups;
  metrics[METRIC_ENTROPY] = sum.entropy / n;
  metrics[METRIC_KL_EXACT] = sum.kl / n;
  metrics[METRIC_KL_EXACT_QP] = sum.kl_qp / n;
  metrics[METRIC_KL_REF] = sum.kl_ref / n;
  if (with_error > 0) metrics[METRIC_ESTIMATION_ERROR] = error / (double)with_error;
  metrics[METRIC_EXACT_RETURN] = toy_learner_return(l);
}

/* What is known whatever has become of the parameters. */
static void plain_metrics(const token_set *s, double lr, double *metrics) {
  double reward = 0;
  for (size_t i = 0; i < s->n_responses; ++i) reward += s->reward[i];
  metrics[METRIC_REWARD_MEAN] = reward / (double)s->n_responses;
  metrics[METRIC_RESPONSE_LENGTH] = (double)s->n_tokens / (double)s->n_responses;
  metrics[METRIC_LR] = lr;
}

/* --- the step --- */

static gl_status reserve_order(toy_learner *l, size_t n, gl_error *err) {
  if (n <= l->cap_order) return GL_OK;
  free(l->order);
  l->order = calloc(n, sizeof *l->order);
  l->cap_order = l->order != NULL ? n : 0;
  return l->order != NULL ? GL_OK : gl_fail_memory(err, "an update's minibatches");
}

/* What the effective sample size makes of an update's rate; adds it to *sum. */
static double rate_factor(const toy_learner *l, const token_set *s, double *sum) {
  double factor = 1;
  if (l->optimizer.spec.ess_scaling != ESS_NONE)
    factor =
        optimizer_ess_factor(&l->optimizer.spec, optimizer_ess(s->logp, s->sampled_logq,
                                                               s->token_start, s->n_responses));
  *sum += factor;
  return factor;
}

/* Every optimiser update of the step; the coefficients of `all` are those of the first parameters,
 * and serve the first update if the batch is whole. A step whose policy stops being defined ends
 * early. *norm is the sum of gradient norms over *count updates, *scaled that of the factors of
 * their rates. */
static gl_status optimise(toy_learner *l, double lr, double *norm, size_t *count, double *scaled,
                          gl_error *err) {
  const size_t n = l->all.n_groups;
  gl_status status = reserve_order(l, n, err);
  for (size_t epoch = 0; epoch < l->epochs && status == GL_OK; ++epoch) {
    if (l->minibatches > 1) learner_shuffle(l->order, n, l->seed, l->version, epoch);
    for (size_t m = 0; m < l->minibatches; ++m) {
      token_set *s = &l->all;
      policy_output out;
      if (l->minibatches > 1) {
        const size_t first = learner_minibatch(m, l->minibatches, n),
                     last = learner_minibatch(m + 1, l->minibatches, n);
        s = &l->part;
        status = select_groups(s, &l->all, l->order + first, last - first, err);
        if (status != GL_OK) return status;
      }
      if (l->minibatches > 1 || epoch > 0) {
        if (!score_tokens(l, s)) return GL_OK;
        status = evaluate_loss(l, s, &out, err);
        if (status != GL_OK) return status;
      }
      *norm += ascend(l, s, *count, lr * rate_factor(l, s, scaled));
      ++*count;
    }
  }
  return status;
}

gl_status toy_learner_update(void *self, batch *const *batches, size_t n,
                             double metrics[METRIC_COUNT], gl_error *err) {
  toy_learner *l = self;
  metrics_clear(metrics);
  gl_status status = gather(l, batches, n, err);
  if (status != GL_OK) return status;
  const double lr = optimizer_lr(&l->optimizer.spec, (uint64_t)l->version, l->updates);
  double applied = lr;
  if (toy_learner_is_finite(l) && score_tokens(l, &l->all)) {
    policy_output out;
    memcpy(l->all.logprox, l->all.logp, l->all.n_tokens * sizeof *l->all.logprox);
    score_reference(l, &l->all);
    status = evaluate_loss(l, &l->all, &out, err);
    if (status != GL_OK) return status;
    memcpy(metrics, out.metric, sizeof out.metric);
    exact_metrics(l, &l->all, metrics);
    toy_learner_kept(l, &l->all, metrics);
    gradient_trail_begin(&l->trail);
    double norm = 0, scaled = 0;
    size_t count = 0;
    status = optimise(l, lr, &norm, &count, &scaled, err);
    metrics[METRIC_GRAD_NORM] = norm / (double)count;
    metrics[METRIC_GRAD_COSINE] = gradient_trail_mean(&l->trail);
    if (l->optimizer.spec.ess_scaling != ESS_NONE && count > 0)
      applied = lr * scaled / (double)count;
  }
  plain_metrics(&l->all, applied, metrics);
  if (status == GL_OK) ++l->version;
  return status;
}
