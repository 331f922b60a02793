/* Trees of responses, exact quantities on them, and optimiser steps, against independent forms. */
#include "toy/world/measure.h"
#include "core/random/rng.h"
#include "tests/support/suite.h"
#include "toy/learner/learner.h"

#include <stdlib.h>
#include <string.h>

SUITE("toy: trees, exact quantities, optimisers");

enum { MAX_EDGES = 512 };

/* A random conditional distribution on every node; entity tells distributions apart. */
static void random_dist(const response_tree *t, uint64_t entity, double *p, double *logp) {
  for (size_t n = 0; n < t->n_nodes; ++n) {
    double sum = 0;
    for (size_t e = n * t->vocabulary; e < (n + 1) * t->vocabulary; ++e)
      sum += p[e] = 0.05 + rng_u01(rng_block(rng_stream_at(7, RNG_TEST, entity), e).v[0]);
    for (size_t e = n * t->vocabulary; e < (n + 1) * t->vocabulary; ++e) {
      p[e] /= sum;
      logp[e] = log(p[e]);
    }
  }
}

static double log_response(const response_tree *t, const double *logp, size_t y) {
  double sum = 0;
  for (size_t i = 0; i < (size_t)t->length[y]; ++i) sum += logp[t->path[y * t->horizon + i]];
  return sum;
}

/* The walks over the tree against sums over the list of responses. */
static void check_against_enumeration(size_t vocabulary, size_t horizon, int has_end) {
  response_tree t;
  ASSERT_OK(response_tree_init(&t, vocabulary, horizon, has_end, &err));
  double p[MAX_EDGES], logp[MAX_EDGES], q[MAX_EDGES], logq[MAX_EDGES], reach[MAX_EDGES];
  double value[MAX_EDGES];
  CU_ASSERT_FATAL(t.n_edges <= MAX_EDGES && t.n_responses <= MAX_EDGES);
  random_dist(&t, 1, p, logp);
  random_dist(&t, 2, q, logq);
  double total = 0, mean = 0, kl = 0, entropy = 0, length = 0, collision = 0;
  for (size_t y = 0; y < t.n_responses; ++y) {
    double lp = log_response(&t, logp, y), lq = log_response(&t, logq, y), py = exp(lp);
    value[y] = sin((double)y);
    total += py;
    mean += py * value[y];
    kl += py * (lp - lq);
    entropy -= py * lp;
    length += py * (double)t.length[y];
    collision += exp(2 * lq);
  }
  ASSERT_CLOSE(total, 1, 1e-13);
  ASSERT_CLOSE(toy_exact_mean(&t, p, value, reach), mean, 1e-13);
  ASSERT_CLOSE(toy_exact_kl(&t, p, logp, logq, reach), kl, 1e-13);
  ASSERT_CLOSE(toy_exact_entropy(&t, p, logp, reach), entropy / length, 1e-13);
  ASSERT_CLOSE(toy_exact_log_collision(&t, logq, reach), log(collision), 1e-13);
  CU_ASSERT(toy_exact_kl(&t, p, logp, logp, reach) == 0);
  response_tree_fini(&t);
}

TEST(tree_walks_agree_with_sums_over_responses) {
  check_against_enumeration(5, 1, 0);
  check_against_enumeration(3, 4, 0);
  check_against_enumeration(4, 3, 1);
  check_against_enumeration(2, 5, 1);
}

TEST(responses_with_an_end_token_are_counted_and_ordered_by_length) {
  response_tree t;
  ASSERT_OK(response_tree_init(&t, 3, 3, 1, &err));
  /* Two letters: 1 + 2 responses that end early, 4 prefixes of two letters x 3 last tokens. */
  CU_ASSERT(t.n_responses == 15 && t.n_nodes == 7);
  for (size_t y = 1; y < t.n_responses; ++y) CU_ASSERT(t.length[y] >= t.length[y - 1]);
  for (size_t y = 0; y < t.n_responses; ++y) {
    int32_t at = 0;
    for (size_t i = 0; i < (size_t)t.length[y]; ++i) at = t.next[t.path[y * t.horizon + i]];
    CU_ASSERT(at == ~(int32_t)y);
  }
  response_tree_fini(&t);
}

TEST(a_tree_beyond_the_limit_is_refused) {
  response_tree t;
  gl_error err = {0};
  CU_ASSERT(response_tree_init(&t, 10, 12, 0, &err) == GL_EINPUT);
  CU_ASSERT(strstr(err.text, "make the vocabulary or the horizon smaller") != NULL);
  gl_error_clear(&err);
  CU_ASSERT(response_tree_init(&t, 1, 100000000, 0, &err) == GL_EINPUT);
}

TEST(kl_is_infinite_where_the_sampler_lacks_a_token_and_finite_the_other_way) {
  response_tree t;
  ASSERT_OK(response_tree_init(&t, 2, 1, 0, &err));
  double p[] = {0.5, 0.5}, lp[] = {log(0.5), log(0.5)}, q[] = {1, 0}, lq[] = {0, -INFINITY}, r[1];
  CU_ASSERT(toy_exact_kl(&t, p, lp, lq, r) == INFINITY);
  ASSERT_CLOSE(toy_exact_kl(&t, q, lq, lp, r), log(2), 1e-15);
  response_tree_fini(&t);
}

TEST(sgd_with_momentum_follows_the_hand_formula) {
  optimizer_spec spec = {.kind = OPTIMIZER_SGD, .momentum = 0.5, .weight_decay = 0.1};
  toy_optimizer o;
  ASSERT_OK(toy_optimizer_init(&o, &spec, 1, &err));
  double theta = 2, g = 3;
  CU_ASSERT(toy_optimizer_step(&o, 0.1, &theta, &g) == 3);
  ASSERT_CLOSE(theta, 2 + 0.1 * 2.8, 1e-15);
  double before = theta, velocity = 0.5 * 2.8 + (1 - 0.1 * before);
  g = 1;
  toy_optimizer_step(&o, 0.1, &theta, &g);
  ASSERT_CLOSE(theta, before + 0.1 * velocity, 1e-15);
  toy_optimizer_fini(&o);
}

/* First step of Adam moves by lr * g / (|g| + eps); AdamW shrinks the parameter besides. */
TEST(adam_and_adamw_follow_the_hand_formula) {
  for (int kind = OPTIMIZER_ADAM; kind <= OPTIMIZER_ADAMW; ++kind) {
    optimizer_spec spec = {.kind = (optimizer_kind)kind, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3};
    spec.weight_decay = kind == OPTIMIZER_ADAMW ? 0.1 : 0;
    toy_optimizer o;
    ASSERT_OK(toy_optimizer_init(&o, &spec, 1, &err));
    double theta = 2, g = -0.5, shrink = 1 - 0.2 * spec.weight_decay;
    toy_optimizer_step(&o, 0.2, &theta, &g);
    ASSERT_CLOSE(theta, 2 * shrink - 0.2 * 0.5 / (0.5 + 1e-3), 1e-14);
    double before = theta, m = 0.9 * -0.05 + 0.1 * 2, v = 0.99 * 0.0025 + 0.01 * 4;
    g = 2;
    toy_optimizer_step(&o, 0.2, &theta, &g);
    double step = 0.2 * (m / (1 - 0.81)) / (sqrt(v / (1 - 0.9801)) + 1e-3);
    ASSERT_CLOSE(theta, shrink * before + step, 1e-14);
    toy_optimizer_fini(&o);
  }
}

TEST(a_gradient_is_clipped_to_its_norm_and_the_norm_before_is_reported) {
  optimizer_spec spec = {.kind = OPTIMIZER_SGD, .clip_grad_norm = 1};
  toy_optimizer o;
  ASSERT_OK(toy_optimizer_init(&o, &spec, 2, &err));
  double theta[] = {0, 0}, g[] = {3, 4};
  ASSERT_CLOSE(toy_optimizer_step(&o, 1, theta, g), 5, 1e-15);
  ASSERT_CLOSE(theta[0], 0.6, 1e-15);
  ASSERT_CLOSE(theta[1], 0.8, 1e-15);
  g[0] = 0.3; /* within the limit: as it is */
  g[1] = 0;
  ASSERT_CLOSE(toy_optimizer_step(&o, 1, theta, g), 0.3, 1e-15);
  ASSERT_CLOSE(theta[0], 0.9, 1e-15);
  toy_optimizer_fini(&o);
}
