/* The distribution that samplers really draw from: the policy of their version, distorted as
 * `sampling.behaviour` says and mixed with another policy as `behaviour_mixture` says
 * (paper/methods.md §1.3). A mixture of responses is drawn token by token from its conditional
 * probabilities, which a tree of responses makes a table over edges like any other policy. */
#include "core/random/normal.h"
#include "toy/learner/learner.h"

#include <math.h>
#include <string.h>

int toy_behaves(const toy_learner *l) {
  const sampling_spec *spec = &l->world->sampling;
  return sampling_distorts(spec) || spec->behaviour.with != OTHER_NONE;
}

/* The noise of edge e of prompt x in batch `id`. */
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

/* log(a) of the sum of e^x and e^y. */
static double log_add(double x, double y) {
  const double top = x > y ? x : y;
  return isinf(top) ? top : top + log(exp(x - top) + exp(y - top));
}

/* distribution [n_edges] = conditional log-probabilities of (1 - share) distribution + share other,
 * as distributions of whole responses; reach[n_nodes] and other_reach[n_nodes] are scratch. Nodes
 * come before their children.
 */
static void mix(const response_tree *t, double share, double *dist, const double *other,
                double *reach, double *other_reach) {
  reach[0] = log1p(-share);
  other_reach[0] = log(share);
  for (size_t e = 0; e < t->n_edges; ++e) {
    const size_t node = e / t->vocabulary;
    const double mine = reach[node] + dist[e], theirs = other_reach[node] + other[e];
    if (t->next[e] >= 0) {
      reach[t->next[e]] = mine;
      other_reach[t->next[e]] = theirs;
    }
    dist[e] = log_add(mine, theirs) - log_add(reach[node], other_reach[node]);
  }
}

gl_status toy_behaviour_dist(toy_learner *l, uint64_t id, size_t x, size_t from, size_t to,
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
    return gl_fail(err, GL_EINPUT,
                   "sampling.behaviour_mixture mixes whole responses, and this batch is drawn from "
                   "several versions; take the cluster's in-flight updates away");
  mix(t, b->share, dist, l->initial + x * t->n_edges, l->evaluated, l->edges);
  return GL_OK;
}
