/* Samples a batch, or a part of one.
 *
 * While a batch is incomplete, each response has room for `horizon` tokens. The request that
 * completes the batch sets rewards and cuts responses to their length. The batch stores the exact
 * behaviour distribution (toy/world/measure.h) of each of its different prompts. Positions sampled
 * by a later version have the conditional distribution of that version, so the product along a path
 * is the probability of the response under the actual behaviour policy. If each response changes
 * its version at its own position (draw_request.span), each response has its own distribution
 * (batch.own_dists). */
#include "core/random/rng.h"

#include "toy/learner/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the behaviour policy --- */
/* The behaviour policy: the policy of the sampler's version, perturbed as configured by
 * `sampling.behaviour` and mixed with another policy by `behaviour_mixture` (paper/methods.md
 * §1.3). A mixture of whole responses is sampled token by token from its conditional probabilities.
 * In a tree of responses these are a table over edges, like any policy. */

static int toy_behaves(const toy_learner *l) {
  const sampling_spec *spec = &l->world->sampling;
  return sampling_distorts(spec) || spec->behaviour.with != OTHER_NONE;
}

/* The perturbation noise of the logit of edge e at prompt x in batch `id`. */
static double noise_of(const toy_learner *l, uint64_t id, size_t x, size_t e) {
  const uint64_t at = (uint64_t)x * l->world->tree.n_edges + e;
  double pair[2];
  rng_normal_pair(rng_block(rng_stream_at(l->update.seed, RNG_BEHAVIOUR, id), at / 2),
                  l->world->sampling.behaviour.noise, pair);
  return pair[at % 2];
}

static void normalise(double *z, size_t n) {
  double top = -INFINITY, sum = 0;
  for (size_t a = 0; a < n; ++a) top = z[a] > top ? z[a] : top;
  for (size_t a = 0; a < n; ++a) sum += exp(z[a] - top);
  const double lse = top + log(sum);
  for (size_t a = 0; a < n; ++a) z[a] -= lse;
}

/* Turns the logits in edges [from, to) into log-probabilities, with the configured noise, rounding
 * and temperature error. */
static void distort(const toy_learner *l, uint64_t id, size_t x, size_t from, size_t to,
                    double *dist) {
  const sampling_behaviour *b = &l->world->sampling.behaviour;
  const double temperature = l->world->sampling.temperature * (1 + b->temperature_error);
  const size_t v = l->world->tree.vocabulary;
  for (size_t e = from; e < to; ++e) {
    double z = dist[e];
    if (b->noise > 0) z += noise_of(l, id, x, e);
    if (b->rounds_to_bfloat16) z = sampling_to_bfloat16(z);
    dist[e] = z / temperature;
  }
  for (size_t first = from; first < to; first += v) normalise(dist + first, v);
}

/* Replaces dist[n_edges] by the conditional log-probabilities of the mixture (1 - share) dist +
 * share other over whole responses. reach[n_nodes] and other_reach[n_nodes] are scratch. Parents
 * precede children. */
static void mix(const response_tree *t, double share, double *dist, const double *other,
                double *reach, double *other_reach) {
  reach[0] = log1p(-share);
  other_reach[0] = log(share);
  for (size_t e = 0; e < t->n_edges; ++e) {
    const size_t node = e / t->vocabulary;
    const double own_path = reach[node] + dist[e], other_path = other_reach[node] + other[e];
    if (t->next[e] >= 0) {
      reach[t->next[e]] = own_path;
      other_reach[t->next[e]] = other_path;
    }
    dist[e] =
        sampling_log_add(own_path, other_path) - sampling_log_add(reach[node], other_reach[node]);
  }
}

/* Writes the behaviour policy's log-probabilities at prompt x to edges [from, to) of
 * dist[n_edges]. */
static gl_status toy_behaviour_dist(toy_learner *l, uint64_t id, size_t x, size_t from, size_t to,
                                    double *dist, gl_error *err) {
  const toy_world *w = l->world;
  const response_tree *t = &w->tree;
  const sampling_behaviour *b = &w->sampling.behaviour;
  if (!sampling_distorts(&w->sampling)) {
    memcpy(dist + from, toy_learner_at(l, x)->logp + from, (to - from) * sizeof *dist);
  } else {
    toy_features_logits(&w->features, l->theta, x, l->evaluated);
    memcpy(dist + from, l->evaluated + from, (to - from) * sizeof *dist);
    distort(l, id, x, from, to, dist);
  }
  if (b->with == OTHER_NONE) return GL_OK;
  if (from > 0 || to < t->n_edges)
    return gl_fail(
        err, GL_EINPUT,
        "sampling.behaviour_mixture mixes whole responses, and this batch is sampled from "
        "several versions; take the cluster's in-flight updates away");
  mix(t, b->share, dist, l->initial + x * t->n_edges, l->evaluated, l->edges);
  return GL_OK;
}

/* --- a batch --- */

static gl_status check_request(const toy_learner *l, const draw_request *r, const batch *b,
                               gl_error *err) {
  gl_status status = draw_request_check(r, b, l->world->tree.horizon, err);
  if (status != GL_OK) return status;
  for (size_t k = 0; r->from > 0 && k < b->n_tokens; ++k)
    if (b->token[k] < 0 || (size_t)b->token[k] >= l->world->tree.vocabulary)
      return gl_fail(err, GL_EINPUT, "a batch to continue holds token %d, outside the vocabulary",
                     (int)b->token[k]);
  return GL_OK;
}

/* Allocates a batch and samples its prompts. */
static gl_status begin_batch(toy_learner *l, const draw_request *r, batch *b, gl_error *err) {
  const response_tree *t = &l->world->tree;
  size_t n = r->n_groups * r->group_size;
  size_t *lengths = calloc(n, sizeof *lengths);
  if (lengths == NULL) return gl_fail_memory(err, "a batch");
  for (size_t i = 0; i < n; ++i) lengths[i] = t->horizon;
  gl_status status = batch_init(b, r->batch_id, r->n_groups, r->group_size, lengths, err);
  free(lengths);
  if (status != GL_OK) return status;
  rng_stream stream = rng_stream_at(l->update.seed, RNG_PROMPT, r->batch_id);
  for (size_t g = 0; g < r->n_groups; ++g) {
    rng_words w = rng_block(stream, r->first_group + g);
    b->prompt[g] = (int64_t)(rng_u01_53(w.v[0], w.v[1]) * (double)l->world->n_prompts);
  }
  return GL_OK;
}

/* Writes the behaviour distribution of the current version to edges [from, to) of dist[n_edges]. */
static gl_status record_dist(toy_learner *l, uint64_t id, size_t x, size_t from, size_t to,
                             double *dist, gl_error *err) {
  if (toy_behaves(l)) return toy_behaviour_dist(l, id, x, from, to, dist, err);
  memcpy(dist + from, toy_learner_at(l, x)->logp + from, (to - from) * sizeof *dist);
  return GL_OK;
}

/* Listed worlds: writes the distribution of positions [first, last) to the batch's tables. */
static gl_status record_in_tree(toy_learner *l, batch *b, size_t first, size_t last,
                                gl_error *err) {
  const response_tree *t = &l->world->tree;
  const size_t from = t->level[first] * t->vocabulary, to = t->level[last] * t->vocabulary;
  const size_t slots = toy_learner_slots(l, b);
  gl_status status = first == 0 ? batch_reserve_dists(b, slots * t->n_edges, false, err) : GL_OK;
  if (status != GL_OK) return status;
  if (toy_behaviour_parts(l->world, slots, b->n_dist) == 0)
    return gl_fail(err, GL_EINTERNAL, "a draw that continues a batch of another world");
  for (size_t x = 0; x < l->world->n_prompts && status == GL_OK; ++x)
    if (l->slot[x] != SIZE_MAX)
      status = record_dist(l, b->id, x, from, to, b->dist + l->slot[x] * t->n_edges, err);
  return status;
}

/* Counted worlds, whose responses are too many to list: stores the distribution that tokens from
 * position `first` on are sampled from. The distribution of a prompt is one table for each version
 * that sampled a part of the batch, after the positions where these parts begin. */
static gl_status record_part(toy_learner *l, batch *b, size_t first, gl_error *err) {
  const size_t edges = l->world->tree.n_edges, slots = toy_learner_slots(l, b);
  const size_t parts = b->n_dist == 0 ? 0 : toy_behaviour_parts(l->world, slots, b->n_dist);
  const size_t old = toy_behaviour_size(l->world, parts),
               new = toy_behaviour_size(l->world, parts + 1);
  if (b->n_dist != 0 && parts == 0)
    return gl_fail(err, GL_EINTERNAL, "a draw that continues a batch of another world");
  double *tables = calloc(slots, new * sizeof *tables);
  if (tables == NULL) return gl_fail_memory(err, "the distribution that a batch was sampled from");
  gl_status status = GL_OK;
  for (size_t x = 0; x < l->world->n_prompts && status == GL_OK; ++x) {
    if (l->slot[x] == SIZE_MAX) continue;
    double *to = tables + l->slot[x] * new;
    if (parts > 0) {
      const double *had = b->dist + l->slot[x] * old;
      memcpy(to, had, parts * sizeof *to);
      memcpy(to + parts + 1, had + parts, parts * edges * sizeof *to);
    }
    to[parts] = (double)first;
    status = record_dist(l, b->id, x, 0, edges, to + parts + 1 + parts * edges, err);
  }
  free(b->dist);
  b->dist = tables;
  b->n_dist = slots * new;
  return status;
}

/* --- responses with separate versions --- */

/* Appends a table to each response's distribution, starting at the response's first new position.
 * Earlier tables that start at or after that position become empty. For a response without new
 * tokens the added table starts past the last position. */
static gl_status add_parts(const toy_learner *l, const draw_request *r, batch *b, size_t parts,
                           gl_error *err) {
  const size_t edges = l->world->tree.n_edges, horizon = l->world->tree.horizon;
  const size_t old = toy_behaviour_size(l->world, parts),
               new = toy_behaviour_size(l->world, parts + 1);
  double *tables = calloc(b->n_responses * new + 1, sizeof *tables);
  if (tables == NULL) return gl_fail_memory(err, "the distributions that a batch was sampled from");
  for (size_t i = 0; i < b->n_responses; ++i) {
    double *to = tables + i * new;
    const double *had = b->dist + i * old;
    const int draws = r->span[i].from < r->span[i].to;
    to[parts] = (double)(draws ? r->span[i].from : horizon);
    for (size_t p = 0; p < parts; ++p) to[p] = fmin(had[p], draws ? to[parts] : had[p]);
    if (parts > 0) memcpy(to + parts + 1, had + parts, parts * edges * sizeof *to);
  }
  free(b->dist);
  b->dist = tables;
  b->n_dist = b->n_responses * new;
  b->own_dists = true;
  return GL_OK;
}

/* Allocates the tables of this request and sets *parts to the number of tables per distribution. */
static gl_status reserve_records(const toy_learner *l, const draw_request *r, batch *b,
                                 size_t *parts, gl_error *err) {
  *parts = 0;
  if (r->from > 0) {
    const toy_dists dists = toy_learner_dists(l, b, 1);
    *parts = dists.own ? dists.parts : 0;
    if (*parts == 0)
      return gl_fail(err, GL_EINTERNAL, "a draw that continues a batch of another world");
  }
  gl_status status = GL_OK;
  if (l->world->counted) {
    status = add_parts(l, r, b, *parts, err);
    ++*parts;
  } else if (*parts == 0) {
    status = batch_reserve_dists(b, b->n_responses * l->world->tree.n_edges, true, err);
    *parts = 1;
  }
  return status;
}

/* Sampling state of one response. */
typedef struct response_draw {
  size_t i, x;        /* index of the response, its prompt */
  draw_span span;     /* positions to sample in this request */
  const double *dist; /* [n_edges] log-probabilities of the behaviour policy */
} response_draw;

/* Writes this version's distribution at the positions of d->span to the distribution of response
 * d->i, which has `parts` tables, and points d->dist to it. */
static gl_status record_own_dist(toy_learner *l, batch *b, response_draw *d, size_t parts,
                                 gl_error *err) {
  const response_tree *t = &l->world->tree;
  double *stored = b->dist + d->i * toy_behaviour_size(l->world, parts);
  size_t from = 0, to = t->n_edges;
  if (l->world->counted) {
    stored += parts + (parts - 1) * t->n_edges;
  } else {
    from = t->level[d->span.from] * t->vocabulary;
    to = t->level[d->span.to] * t->vocabulary;
  }
  d->dist = stored;
  return record_dist(l, b->id, d->x, from, to, stored, err);
}

/* The most recent table of prompt x. */
static const double *recorded_dist(const toy_learner *l, const batch *b, size_t x, size_t slots) {
  const size_t size = b->n_dist / slots, edges = l->world->tree.n_edges;
  return b->dist + l->slot[x] * size + (size - edges);
}

/* Stores log q of token a, before and after truncation, as sampling.logq wants it. The three arrays
 * hold log-probabilities of the node's tokens: `sampler` of the behaviour distribution, `drawn` of
 * the same after truncation, `policy` of the unperturbed policy of the version that samples. */
static void record_token(const toy_learner *l, batch *b, size_t k, size_t a, const double *sampler,
                         const double *drawn, const double *policy) {
  const size_t v = l->world->tree.vocabulary;
  switch (l->world->sampling.logq) {
  case LOGQ_SAMPLER:
    b->logq[k] = sampler[a];
    b->logq_trunc[k] = drawn[a];
    return;
  case LOGQ_LEARNER:
    break;
  }
  double mass = 0;
  for (size_t c = 0; c < v; ++c) mass += isinf(drawn[c]) ? 0 : exp(policy[c]);
  b->logq[k] = policy[a];
  b->logq_trunc[k] = policy[a] - log(mass);
}

/* Inverse-CDF sampling: returns the token whose interval of [0, 1) contains u. If rounding leaves u
 * beyond all intervals, returns the last token of positive probability; if probabilities are NaN,
 * the last token. */
static size_t invert_cdf(const double *logp, size_t n, double u) {
  size_t last = n - 1;
  double below = 0;
  for (size_t a = 0; a < n; ++a) {
    double p = exp(logp[a]);
    if (p > 0) last = a;
    below += p;
    if (u < below) return a;
  }
  return last;
}

/* Walks through the response's existing tokens, then samples the positions of d->span. */
static void draw_response(toy_learner *l, const draw_request *r, batch *b, const response_draw *d) {
  const response_tree *t = &l->world->tree;
  const size_t v = t->vocabulary, start = b->token_start[d->i];
  const int truncates = sampling_truncates(&l->world->sampling, v);
  const rng_stream stream = rng_stream_at(l->update.seed, RNG_ROLLOUT, b->id);
  const double *policy = toy_learner_at(l, d->x)->logp;
  const size_t number = draw_number(r, d->i);
  int32_t node = 0;
  for (size_t pos = 0; pos < d->span.to && node >= 0; ++pos) {
    size_t k = start + pos, edge = (size_t)node * v;
    if (pos >= d->span.from) {
      const double *dist = d->dist + edge;
      if (truncates) {
        sampling_truncate(&l->world->sampling, dist, v, l->token, l->rank);
        dist = l->token;
      }
      rng_words w = rng_block(stream, rng_token_index(number, pos));
      size_t a = invert_cdf(dist, v, rng_u01_53(w.v[0], w.v[1]));
      b->token[k] = (int32_t)a;
      b->version[k] = r->version;
      record_token(l, b, k, a, d->dist + edge, dist, policy + edge);
    }
    node = toy_next(l->world, edge + (size_t)b->token[k], pos);
  }
}

/* Noisy reward of response i. The random number's address is the position after the last token. */
static double reward_of(const toy_learner *l, uint64_t id, size_t i, double mean) {
  const toy_world *w = l->world;
  if (w->noise == NOISE_NONE) return mean;
  rng_words words = rng_block(rng_stream_at(l->update.seed, RNG_ROLLOUT, id),
                              rng_token_index(i, w->tree.horizon));
  if (w->noise == NOISE_GAUSSIAN) return mean + w->noise_sd * rng_normal(words);
  return rng_u01_53(words.v[0], words.v[1]) < mean;
}

/* Computes the rewards and cuts each response to its length. */
static gl_status finish_batch(toy_learner *l, const draw_request *r, batch *b, gl_error *err) {
  const response_tree *t = &l->world->tree;
  size_t *lengths = calloc(b->n_responses, sizeof *lengths);
  if (lengths == NULL) return gl_fail_memory(err, "a batch");
  for (size_t i = 0; i < b->n_responses; ++i) {
    double mean = 0;
    const size_t x = (size_t)b->prompt[i / r->group_size];
    const size_t number = draw_number(r, i);
    lengths[i] = toy_finish(l->world, x, b->token + b->token_start[i], &mean);
    b->reward[i] = training_reward_of(&l->rewards, l->update.seed, b->id, number, x,
                                      reward_of(l, b->id, number, mean));
  }
  if (t->has_end) batch_cut(b, lengths);
  free(lengths);
  return GL_OK;
}

/* Samples the positions that the request gives for each response. Each response has its own
 * distribution. */
static gl_status draw_spans(toy_learner *l, const draw_request *r, batch *b, gl_error *err) {
  size_t parts = 0, drawn = 0;
  for (size_t i = 0; i < b->n_responses; ++i) drawn += r->span[i].from < r->span[i].to;
  gl_status status = drawn > 0 || r->from == 0 ? reserve_records(l, r, b, &parts, err) : GL_OK;
  for (size_t i = 0; i < b->n_responses && status == GL_OK; ++i) {
    response_draw d = {i, (size_t)b->prompt[i / r->group_size], r->span[i], NULL};
    if (d.span.from == d.span.to) continue;
    status = record_own_dist(l, b, &d, parts, err);
    if (status == GL_OK) draw_response(l, r, b, &d);
  }
  return status;
}

/* Stores the current number of tokens of each response in r->length. */
static void report_lengths(const toy_learner *l, const draw_request *r, const batch *b) {
  for (size_t i = 0; r->length != NULL && i < b->n_responses; ++i) {
    const size_t v = l->world->tree.vocabulary;
    const size_t to =
        r->span != NULL ? r->span[i].to : draw_boundary(r->to, l->world->tree.horizon);
    int32_t at = 0;
    size_t n = 0;
    for (; at >= 0 && n < to; ++n)
      at = toy_next(l->world, (size_t)at * v + (size_t)b->token[b->token_start[i] + n], n);
    r->length[i] = n;
  }
}

/* Samples the requested positions with the parameters in l->theta. */
static gl_status draw_now(toy_learner *l, const draw_request *r, batch *b, gl_error *err) {
  const size_t horizon = l->world->tree.horizon;
  gl_status status = check_request(l, r, b, err);
  if (status == GL_OK && r->from == 0) status = begin_batch(l, r, b, err);
  if (status != GL_OK) return status;
  if (r->span != NULL) {
    status = draw_spans(l, r, b, err);
    report_lengths(l, r, b);
    return status == GL_OK && r->to == 1 ? finish_batch(l, r, b, err) : status;
  }
  size_t first = draw_boundary(r->from, horizon), last = draw_boundary(r->to, horizon);
  status =
      l->world->counted ? record_part(l, b, first, err) : record_in_tree(l, b, first, last, err);
  if (status != GL_OK) return status;
  const size_t slots = toy_learner_slots(l, b);
  for (size_t i = 0; i < b->n_responses; ++i) {
    const size_t x = (size_t)b->prompt[i / r->group_size];
    draw_response(l, r, b, &(response_draw){i, x, {first, last}, recorded_dist(l, b, x, slots)});
  }
  report_lengths(l, r, b);
  return r->to == 1 ? finish_batch(l, r, b, err) : GL_OK;
}

size_t toy_learner_longest(const void *self) {
  return ((const toy_learner *)self)->world->tree.horizon;
}

/* If the request names a held version, its parameters replace the current ones during the call. */
gl_status toy_learner_draw(void *self, const draw_request *r, batch *b, gl_error *err) {
  toy_learner *l = self;
  if (r->version == l->update.version) return draw_now(l, r, b, err);
  size_t i = 0;
  while (i < l->n_held && l->held[i].version != r->version) ++i;
  if (i == l->n_held)
    return gl_fail(err, GL_EINTERNAL, "a draw from version %lld, which is neither current nor held",
                   (long long)r->version);
  double *theta = l->theta;
  const uint64_t stamp = l->stamp;
  l->theta = l->held[i].theta;
  l->stamp = l->held[i].stamp;
  gl_status status = draw_now(l, r, b, err);
  l->theta = theta;
  l->stamp = stamp;
  return status;
}

/* --- joining --- */

/* Batches with the same id and version store identical distributions of a prompt, so one copy is
 * kept. */
static gl_status join_dists(toy_learner *l, batch *b, const batch_group *group, size_t n,
                            gl_error *err) {
  size_t size = 0;
  size_t *place =
      calloc(n + 1, sizeof *place); /* position of each group's distribution in its batch */
  if (place == NULL) return gl_fail_memory(err, "a batch");
  for (size_t g = 0; g < n; ++g) {
    const batch *from = group[g].from;
    if (g == 0 || from != group[g - 1].from) size = from->n_dist / toy_learner_slots(l, from);
    place[g] = l->slot[from->prompt[group[g].group]] * size;
  }
  gl_status status = batch_reserve_dists(b, toy_learner_slots(l, b) * size, false, err);
  for (size_t g = 0; g < n && status == GL_OK; ++g)
    memcpy(b->dist + l->slot[b->prompt[g]] * size, group[g].from->dist + place[g],
           size * sizeof *b->dist);
  free(place);
  return status;
}

gl_status toy_learner_join(void *self, batch *b, const batch_group *group, size_t n,
                           gl_error *err) {
  gl_status status = batch_take_groups(b, group[0].from->id, group, n, err);
  if (status == GL_OK) status = join_dists(self, b, group, n, err);
  if (status != GL_OK) batch_fini(b);
  return status;
}

gl_status toy_learner_adopt(const void *self, batch *b, gl_error *err) {
  return batch_assign_optional(b, 0, toy_behaviour_size(((const toy_learner *)self)->world, 1),
                               err);
}
