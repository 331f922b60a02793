/* One step of the toy learner (core/rl/update.h): maps batches to edges of the world's tree,
 * computes exact log-probabilities and gradients, runs the optimiser (optimizer.c), and computes
 * the exact metrics of a toy world. */
#include "core/base/array.h"
#include "toy/learner/learner.h"
#include "toy/world/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- laying out batches --- */

/* Fills the toy learner's additional columns (see core/rl's update table) for one batch. */
static gl_status lay_batch_out(toy_learner *l, const batch *b, size_t i0, size_t k0,
                               gl_error *err) {
  const toy_dists dists = toy_learner_dists(l, b, toy_learner_slots(l, b));
  const size_t size = toy_behaviour_size(l->world, dists.parts);
  if (dists.parts == 0)
    return gl_fail(err, GL_EINPUT, "batch %llu was drawn in another world than it is trained in",
                   (unsigned long long)b->id);
  for (size_t g = 0; g < b->n_groups; ++g) {
    if (b->group_start[g] == b->group_start[g + 1])
      return gl_fail(err, GL_EINPUT, "group %zu of batch %llu has no responses", g,
                     (unsigned long long)b->id);
    for (size_t i = b->group_start[g]; i < b->group_start[g + 1]; ++i) {
      const size_t place = dists.own ? i : l->slot[b->prompt[g]];
      l->dist[i0 + i] = (toy_behaviour){b->dist + place * size, dists.parts};
    }
  }
  for (size_t i = 0; i < b->n_responses; ++i) {
    const size_t from = b->token_start[i], n = b->token_start[i + 1] - from;
    if (!toy_walk(l->world, b->token + from, n, l->edge + k0 + from))
      return gl_fail(err, GL_EINPUT,
                     "response %zu of batch %llu is no complete response of this world", i,
                     (unsigned long long)b->id);
  }
  return GL_OK;
}

/* The shared behaviour distribution of a group; values is NULL if its responses have different
 * ones. */
static toy_behaviour dist_of_group(const toy_learner *l, size_t g) {
  const size_t first = l->update.table.group_start[g], end = l->update.table.group_start[g + 1];
  for (size_t i = first + 1; i < end; ++i)
    if (l->dist[i].values != l->dist[first].values) return (toy_behaviour){0};
  return l->dist[first];
}

/* Mean over responses of sum_y q(y)^2, each under its own distribution. */
static gl_status mixed_collision(toy_learner *l, size_t g, int truncated, gl_error *err) {
  const update_table *t = &l->update.table;
  double sum = 0;
  gl_status status = GL_OK;
  for (size_t i = t->group_start[g]; i < t->group_start[g + 1] && status == GL_OK; ++i) {
    double one = 0;
    status = toy_behaviour_collision(l->world, l->dist[i], truncated, &one, err);
    sum += exp(one);
  }
  t->log_denominator[g] = log(sum / (double)(t->group_start[g + 1] - t->group_start[g]));
  return status;
}

/* log sum_y q(y)^2 of each group, under the distribution that the importance weights use. */
static gl_status collisions(toy_learner *l, gl_error *err) {
  const update_table *t = &l->update.table;
  const int truncated = l->world->sampling.weights != SAMPLING_RAW;
  gl_status status = GL_OK;
  for (size_t g = 0; g < t->n_groups && status == GL_OK; ++g) {
    const toy_behaviour dist = dist_of_group(l, g);
    size_t same = 0;
    if (dist.values == NULL) {
      status = mixed_collision(l, g, truncated, err);
      continue;
    }
    while (dist_of_group(l, same).values != dist.values)
      ++same; /* groups of a batch share their prompt's table */
    if (same < g)
      t->log_denominator[g] = t->log_denominator[same];
    else
      status = toy_behaviour_collision(l->world, dist, truncated, t->log_denominator + g, err);
  }
  return status;
}

static gl_status reserve_toy_columns(toy_learner *l, size_t responses, size_t tokens,
                                     gl_error *err) {
  return ARRAY_FIT(l->dist, l->cap_dist, responses) && ARRAY_FIT(l->edge, l->cap_edge, tokens)
             ? GL_OK
             : gl_fail_memory(err, "the batches of an update");
}

/* Fills the update's table and the toy learner's additional columns from n batches. */
static gl_status lay_out(toy_learner *l, batch *const *batches, size_t n, gl_error *err) {
  const size_t groups = batches_groups((const batch *const *)batches, n);
  update_loop *u = &l->update;
  for (size_t j = 0; j < n; ++j)
    if (!batch_is_consistent(batches[j]))
      return gl_fail(err, GL_EINPUT, "batch %llu is not consistent",
                     (unsigned long long)batches[j]->id);
  if (groups < u->minibatches)
    return gl_fail(err, GL_EINPUT, "%zu groups cannot be split into %zu minibatches", groups,
                   u->minibatches);
  gl_status status =
      update_table_gather(&u->table, batches, n, l->world->sampling.weights, u->version, err);
  if (status == GL_OK)
    status = reserve_toy_columns(l, u->table.n_responses, u->table.n_tokens, err);
  size_t i = 0, k = 0;
  for (size_t j = 0; j < n && status == GL_OK; ++j) {
    status = lay_batch_out(l, batches[j], i, k, err);
    i += batches[j]->n_responses;
    k += batches[j]->n_tokens;
  }
  if (status != GL_OK || !policy_needs_exact_denominator(&u->algorithm)) return status;
  return collisions(l, err);
}

/* --- scores --- */

/* Returns 1 if the learner's distribution is renormalised over the tokens that the sampler kept
 * (sampling replay). */
static int replays(const toy_learner *l) {
  return l->world->sampling.weights == SAMPLING_REPLAY &&
         sampling_truncates(&l->world->sampling, l->world->tree.vocabulary);
}

/* Renormalises a policy at a node, logp[v], over the tokens kept by the truncated distribution q at
 * that position. Writes log-probabilities to l->token[v] and returns the probabilities, which are
 * stored behind them. */
static const double *replay(toy_learner *l, toy_behaviour q, size_t edge, size_t position,
                            const double *logp) {
  const size_t v = l->world->tree.vocabulary;
  double *drawn = l->token + 2 * v;
  sampling_truncate(&l->world->sampling, toy_behaviour_node(l->world, q, edge, position), v, drawn,
                    l->rank);
  toy_replay_node(logp, drawn, v, l->token, l->token + v);
  return l->token + v;
}

/* Log-probabilities of response i's tokens under a policy over edges, as the importance weights use
 * them. */
static void score_response(toy_learner *l, size_t i, const double *logp, double *out) {
  const update_table *t = &l->update.table;
  const size_t v = l->world->tree.vocabulary;
  for (size_t k = t->token_start[i]; k < t->token_start[i + 1]; ++k) {
    const size_t edge = l->edge[k], first = edge / v * v;
    out[k] = logp[edge];
    if (!replays(l)) continue;
    replay(l, l->dist[i], edge, k - t->token_start[i], logp + first);
    out[k] = l->token[edge - first];
  }
}

/* Entropies of a policy over edges at the nodes of response i's tokens. */
static void score_entropies(const toy_learner *l, size_t i, const double *p, const double *logp,
                            double *entropy) {
  const update_table *t = &l->update.table;
  const size_t v = l->world->tree.vocabulary;
  for (size_t k = t->token_start[i]; k < t->token_start[i + 1]; ++k) {
    const size_t node = l->edge[k] / v;
    entropy[k] = 0;
    for (size_t e = node * v; e < (node + 1) * v; ++e)
      if (p[e] != 0) entropy[k] -= p[e] * logp[e];
  }
}

/* Scores response i, of prompt x, under the moving average of the parameters. */
static void score_average(toy_learner *l, size_t i, size_t x) {
  double *logp = l->evaluated, *p = l->evaluated + l->world->tree.n_edges;
  toy_probs(l->world, l->average, x, logp, p);
  score_response(l, i, logp, l->update.table.logprox);
  score_entropies(l, i, p, logp, l->update.table.entropy_prox);
}

/* Adds the parameters after a step to their average, with weights that decay by proximal_decay at
 * every update (ppo-ewma 625dac7, EwmaModel); the initial parameters have the first weight. */
static void average_parameters(toy_learner *l) {
  const double decay = l->update.algorithm.proximal_decay;
  const double n = (double)l->optimizer.steps;
  const double total = decay < 1 ? (1 - pow(decay, n + 1)) / (1 - decay) : n + 1;
  for (size_t j = 0; j < l->world->features.n_parameters; ++j)
    l->average[j] += (l->theta[j] - l->average[j]) / total;
}

static gl_status toy_score(void *self, const token_view *view, update_score which, bool *defined,
                           gl_error *err) {
  toy_learner *l = self;
  const update_table *t = &l->update.table;
  (void)err;
  *defined = which != UPDATE_WHOLE || toy_learner_is_finite(l);
  for (size_t j = 0; j < view->n_responses && *defined; ++j) {
    const size_t i = view->response[j], x = t->prompt[t->group_of[i]];
    const prompt_cache *c = toy_learner_at(l, x);
    score_response(l, i, c->logp, t->logp);
    for (size_t k = t->token_start[i]; k < t->token_start[i + 1]; ++k)
      if (isnan(t->logp[k])) *defined = false;
    if (which == UPDATE_WHOLE)
      score_response(l, i, l->logref + x * l->world->tree.n_edges, t->logref);
    if (update_wants_entropies(&l->update)) score_entropies(l, i, c->p, c->logp, t->entropy);
    if (l->average != NULL) score_average(l, i, x);
  }
  return GL_OK;
}

/* --- the step --- */

static gl_status toy_step(void *self, const token_view *view, double lr, double *norm,
                          gl_error *err) {
  toy_learner *l = self;
  const update_table *t = &l->update.table;
  const size_t v = l->world->tree.vocabulary, n = l->world->features.n_parameters;
  (void)err;
  memset(l->direction, 0, n * sizeof *l->direction); /* d(-loss)/dtheta */
  for (size_t j = 0; j < view->n_responses; ++j) {
    const size_t i = view->response[j], x = t->prompt[t->group_of[i]];
    const prompt_cache *c = toy_learner_at(l, x);
    for (size_t k = t->token_start[i]; k < t->token_start[i + 1]; ++k) {
      const size_t edge = l->edge[k], first = edge / v * v;
      if (t->coefficient[k] == 0) continue;
      const double *p = replays(l)
                            ? replay(l, l->dist[i], edge, k - t->token_start[i], c->logp + first)
                            : c->p + first;
      toy_add_score(l->world, x, edge, t->coefficient[k], p, l->token, l->direction);
    }
  }
  memcpy(l->update.trail.now, l->direction, n * sizeof *l->direction);
  *norm = toy_optimizer_step(&l->optimizer, lr, l->theta, l->direction);
  if (l->average != NULL) average_parameters(l);
  ++l->stamp;
  return GL_OK;
}

/* --- metrics --- */

static toy_facts facts_of(toy_learner *l, size_t x, toy_behaviour dist) {
  const prompt_cache *c = toy_learner_at(l, x);
  return toy_measure(l->world, x, c->p, c->logp, dist, l->logref + x * l->world->tree.n_edges,
                     l->scratch);
}

/* For a group whose responses have different behaviour distributions: the KL divergences are means
 * over these distributions. */
static toy_facts mixed_facts(toy_learner *l, size_t g) {
  const update_table *t = &l->update.table;
  const double n = (double)(t->group_start[g + 1] - t->group_start[g]);
  toy_facts mean = {0};
  for (size_t i = t->group_start[g]; i < t->group_start[g + 1]; ++i) {
    const toy_facts f = facts_of(l, t->prompt[g], l->dist[i]);
    mean.entropy = f.entropy;
    mean.mean_reward = f.mean_reward;
    mean.kl_ref = f.kl_ref;
    mean.kl += f.kl / n;
    mean.kl_qp += f.kl_qp / n;
  }
  return mean;
}

/* Means over groups. Each distinct pair of prompt and behaviour distribution is evaluated once. */
static void exact_metrics(toy_learner *l, double *metrics) {
  const update_table *t = &l->update.table;
  toy_facts sum = {0}, f = {0};
  double error = 0;
  size_t with_error = 0;
  for (size_t g = 0; g < t->n_groups; ++g) {
    const toy_behaviour dist = dist_of_group(l, g);
    size_t repeats = 0, earlier = 0;
    while (earlier < g && (dist.values == NULL || dist_of_group(l, earlier).values != dist.values))
      ++earlier;
    if (earlier < g) continue;
    f = dist.values != NULL ? facts_of(l, t->prompt[g], dist) : mixed_facts(l, g);
    for (size_t h = g; h < t->n_groups; ++h) {
      if (h > g && (dist.values == NULL || dist_of_group(l, h).values != dist.values)) continue;
      ++repeats;
      double expected = (f.mean_reward - t->baseline[h]) / t->scale[h];
      if (!isfinite(expected))
        continue; /* the advantage is not affine in the reward under this algorithm */
      error += fabs(t->mean_aw[h] - expected);
      ++with_error;
    }
    sum.entropy += (double)repeats * f.entropy;
    sum.kl += (double)repeats * f.kl;
    sum.kl_qp += (double)repeats * f.kl_qp;
    sum.kl_ref += (double)repeats * f.kl_ref;
  }
  const double n = (double)t->n_groups;
  metrics[METRIC_ENTROPY] = sum.entropy / n;
  metrics[METRIC_KL_EXACT] = sum.kl / n;
  metrics[METRIC_KL_EXACT_QP] = sum.kl_qp / n;
  metrics[METRIC_KL_REF] = sum.kl_ref / n;
  if (with_error > 0) metrics[METRIC_ESTIMATION_ERROR] = error / (double)with_error;
  metrics[METRIC_EXACT_RETURN] = toy_learner_return(l);
}

/* --- tokens kept by top-k and top-p --- */
/* At every sampled token: the learner's probability mass of the tokens that truncation kept, and
 * the entropies of the learner's distribution restricted to the kept tokens and to the others. */

/* mass, mass_q: kept mass under learner and sampler. entropy, tail: entropies of the learner's
 * distribution restricted to kept and to other tokens. with_tail: tokens at which the others have
 * mass. */
typedef struct kept_sums {
  double mass, mass_q, entropy, tail; /* sums over tokens */
  double tokens, with_tail;
} kept_sums;

/* Adds the node of one token. p and logp are the learner's policy, q the behaviour distribution,
 * drawn the truncated one; all [v]. With m the kept mass, H(p | kept) = ln m - (sum over kept of p
 * ln p) / m. */
static void add_node(kept_sums *sum, const double *p, const double *logp, const double *q,
                     const double *drawn, size_t v) {
  double mass[2] = {0}, plogp[2] = {0}, mass_q = 0;
  for (size_t a = 0; a < v; ++a) {
    const int kept = !isinf(drawn[a]);
    if (kept) mass_q += exp(q[a]);
    if (p[a] == 0) continue;
    mass[kept] += p[a];
    plogp[kept] += p[a] * logp[a];
  }
  sum->tokens += 1;
  sum->mass += mass[1];
  sum->mass_q += mass_q;
  /* if the kept tokens have probability 0, the conditional distribution is undefined */
  if (mass[1] > 0) sum->entropy += fmax(0, log(mass[1]) - plogp[1] / mass[1]);
  if (mass[0] > 0) {
    sum->tail += fmax(0, log(mass[0]) - plogp[0] / mass[0]);
    sum->with_tail += 1;
  }
}

/* Adds the nodes of all tokens of group g to the sums. */
static void lay_out_group(toy_learner *l, size_t g, kept_sums *sum) {
  const update_table *t = &l->update.table;
  const size_t v = l->world->tree.vocabulary;
  const prompt_cache *c = toy_learner_at(l, t->prompt[g]);
  for (size_t i = t->group_start[g]; i < t->group_start[g + 1]; ++i)
    for (size_t k = t->token_start[i]; k < t->token_start[i + 1]; ++k) {
      const size_t first = l->edge[k] / v * v;
      const double *q = toy_behaviour_node(l->world, l->dist[i], l->edge[k], k - t->token_start[i]);
      sampling_truncate(&l->world->sampling, q, v, l->token, l->rank);
      add_node(sum, c->p + first, c->logp + first, q, l->token, v);
    }
}

static void measure_kept_nodes(toy_learner *l, double metrics[METRIC_COUNT]) {
  kept_sums sum = {0};
  if (!sampling_truncates(&l->world->sampling, l->world->tree.vocabulary)) return;
  for (size_t g = 0; g < l->update.table.n_groups; ++g) lay_out_group(l, g, &sum);
  metrics[METRIC_KEPT_MASS] = sum.mass / sum.tokens;
  metrics[METRIC_KEPT_MASS_Q] = sum.mass_q / sum.tokens;
  metrics[METRIC_ENTROPY_KEPT] = sum.entropy / sum.tokens;
  if (sum.with_tail > 0) metrics[METRIC_ENTROPY_TAIL] = sum.tail / sum.with_tail;
}

static void toy_measure_step(void *self, double metrics[METRIC_COUNT]) {
  exact_metrics(self, metrics);
  measure_kept_nodes(self, metrics);
}

gl_status toy_learner_update(void *self, batch *const *batches, size_t n,
                             double metrics[METRIC_COUNT], gl_error *err) {
  static const update_ops ops = {.score = toy_score, .measure = toy_measure_step, .step = toy_step};
  toy_learner *l = self;
  metrics_clear(metrics);
  gl_status status = lay_out(l, batches, n, err);
  return status == GL_OK ? update_run(&l->update, &ops, l, metrics, err) : status;
}
