/* What top-k and top-p keep and leave, seen by the learner: at every drawn token, the learner's
 * probability of the tokens that its sampler's distribution kept there, and the entropies of the
 * learner's distribution over them and over the others. */
#include "toy/learner/learner.h"

#include <math.h>

typedef struct kept_sums {
  double mass, mass_q, entropy, tail; /* sums over tokens */
  double tokens, with_tail;
} kept_sums;

/* Adds the node of one token: the policy's p and logp, the sampler's distribution q there, and that
 * distribution truncated, drawn; [v] each. With m the kept mass, H(p | kept) = ln m - (sum over
 * kept of p ln p) / m. */
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
  /* a kept set that the learner has left has no distribution of its own */
  if (mass[1] > 0) sum->entropy += fmax(0, log(mass[1]) - plogp[1] / mass[1]);
  if (mass[0] > 0) {
    sum->tail += fmax(0, log(mass[0]) - plogp[0] / mass[0]);
    sum->with_tail += 1;
  }
}

static void add_group(toy_learner *l, const token_set *s, size_t g, kept_sums *sum) {
  const size_t v = l->world->tree.vocabulary;
  const prompt_cache *c = toy_learner_at(l, s->prompt[g]);
  for (size_t i = s->group_start[g]; i < s->group_start[g + 1]; ++i)
    for (size_t k = s->token_start[i]; k < s->token_start[i + 1]; ++k) {
      const size_t first = s->edge[k] / v * v;
      const double *q = toy_record_node(l->world, s->dist[i], s->edge[k], k - s->token_start[i]);
      sampling_truncate(&l->world->sampling, q, v, l->token, l->rank);
      add_node(sum, c->p + first, c->logp + first, q, l->token, v);
    }
}

void toy_learner_kept(toy_learner *l, const token_set *s, double metrics[METRIC_COUNT]) {
  kept_sums sum = {0};
  if (!sampling_truncates(&l->world->sampling, l->world->tree.vocabulary)) return;
  for (size_t g = 0; g < s->n_groups; ++g) add_group(l, s, g, &sum);
  metrics[METRIC_KEPT_MASS] = sum.mass / sum.tokens;
  metrics[METRIC_KEPT_MASS_Q] = sum.mass_q / sum.tokens;
  metrics[METRIC_ENTROPY_KEPT] = sum.entropy / sum.tokens;
  if (sum.with_tail > 0) metrics[METRIC_ENTROPY_TAIL] = sum.tail / sum.with_tail;
}
