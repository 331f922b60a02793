/* Decision processes: dynamic programming against enumeration and central differences. */
#include "toy/world/mdp.h"
#include "core/random/rng.h"
#include "tests/support/suite.h"
#include "toy/lab/estimator_moments.h"
#include "toy/lab/kl_dial.h"
#include "toy/world/toy_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("lab: decision processes");

static const char *const worlds[] = {
    "world: {kind: chain, states: 4, horizon: 5}",
    "world: {kind: chain, states: 3, horizon: 4, policy: {kind: loglinear, dimension: 3}}",
    "world: {kind: gridworld, width: 2, height: 3, horizon: 3}",
    "world: {kind: garnet, states: 4, actions: 3, branching: 2, horizon: 3}",
    ("world: {kind: garnet, states: 4, actions: 2, horizon: 4, policy: {kind: loglinear, "
     "dimension: 5}}"),
    "world: {kind: token, vocabulary: 3, horizon: 4}"};
enum { WORLDS = sizeof worlds / sizeof worlds[0] };

static mdp *world_of(const char *text) {
  gl_error err = {.status = GL_OK};
  cfg_doc *doc = NULL;
  mdp *m = NULL;
  if (cfg_load_text(&doc, text, strlen(text), "test", &err) != GL_OK ||
      mdp_new(&m, cfg_find(cfg_root(doc), "world"), 4, &err) != GL_OK) {
    fprintf(stderr, "%s\n", err.text);
    CU_FAIL("world");
  }
  cfg_free(doc);
  return m;
}

static double *random_theta(const mdp *m, uint64_t entity) {
  double *theta = calloc(m->n_parameters, sizeof *theta);
  for (size_t i = 0; i < m->n_parameters; ++i)
    theta[i] = 3 * rng_u01(rng_block(rng_stream_at(2, RNG_TEST, entity), i).v[0]) - 1.5;
  return theta;
}

/* --- dynamic programming ---
 *
 * Backward, with V_H = 0:
 *
 *   Q_t(s,a) = r(s,a) + sum_s' P(s'|s,a) V_{t+1}(s'),   V_t(s) = sum_a pi(a|s) Q_t(s,a)
 *
 * Forward, with d_t the distribution of states at time t:
 *
 *   dJ/dz(s,a) = sum_t d_t(s) pi(a|s) (Q_t(s,a) - V_t(s))          (policy gradient theorem) */

static double *numbers(size_t n) {
  double *values = calloc(n, sizeof *values);
  CU_ASSERT_PTR_NOT_NULL_FATAL(values);
  test_at_end(free, values);
  return values;
}

/* pi(a|s) [states * actions] */
static const double *policy_of(const mdp *m, const double *theta) {
  double *policy = numbers(m->states * m->actions);
  for (size_t s = 0; s < m->states; ++s) {
    double *row = policy + s * m->actions, sum = 0;
    for (size_t a = 0; a < m->actions; ++a) {
      const size_t pair = s * m->actions + a;
      double z = m->n_features == 0 ? theta[pair] : 0;
      for (size_t k = 0; k < m->n_features; ++k)
        z += theta[k] * m->feature[pair * m->n_features + k];
      sum += row[a] = exp(z);
    }
    for (size_t a = 0; a < m->actions; ++a) row[a] /= sum;
  }
  return policy;
}

static double state_value(const mdp *m, const double *policy, const double *q, size_t s) {
  double v = 0;
  for (size_t a = s * m->actions; a < (s + 1) * m->actions && !m->terminal[s]; ++a)
    v += policy[a] * q[a];
  return v;
}

/* Q [horizon * states * actions] */
static const double *action_values(const mdp *m, const double *policy) {
  const size_t pairs = m->states * m->actions;
  double *q = numbers(m->horizon * pairs);
  for (size_t t = m->horizon; t-- > 0;)
    for (size_t i = 0; i < pairs; ++i) {
      q[t * pairs + i] = m->reward[i];
      for (size_t to = 0; to < m->states && t + 1 < m->horizon; ++to)
        q[t * pairs + i] +=
            m->transition[i * m->states + to] * state_value(m, policy, q + (t + 1) * pairs, to);
    }
  return q;
}

/* d [horizon * states], without terminal states */
static const double *visits(const mdp *m, const double *policy) {
  double *d = numbers((m->horizon + 1) * m->states);
  memcpy(d, m->start, m->states * sizeof *d);
  for (size_t t = 0; t < m->horizon; ++t)
    for (size_t s = 0; s < m->states; ++s) {
      if (m->terminal[s]) d[t * m->states + s] = 0;
      for (size_t i = s * m->actions; i < (s + 1) * m->actions; ++i)
        for (size_t to = 0; to < m->states; ++to)
          d[(t + 1) * m->states + to] +=
              d[t * m->states + s] * policy[i] * m->transition[i * m->states + to];
    }
  return d;
}

/* J from the start distribution, and its gradient[n_parameters] unless that is NULL. */
static double value_of(const mdp *m, const double *theta, double *gradient) {
  const size_t pairs = m->states * m->actions;
  const double *policy = policy_of(m, theta), *q = action_values(m, policy), *d = visits(m, policy);
  double value = 0;
  for (size_t s = 0; s < m->states; ++s) value += m->start[s] * state_value(m, policy, q, s);
  for (size_t k = 0; k < m->n_parameters && gradient != NULL; ++k) gradient[k] = 0;
  for (size_t i = 0; i < m->horizon * pairs && gradient != NULL; ++i) {
    const size_t t = i / pairs, pair = i % pairs, s = pair / m->actions;
    const double dz =
        d[t * m->states + s] * policy[pair] * (q[i] - state_value(m, policy, q + t * pairs, s));
    if (m->n_features == 0) gradient[pair] += dz;
    for (size_t k = 0; k < m->n_features; ++k)
      gradient[k] += dz * m->feature[pair * m->n_features + k];
  }
  return value;
}

/* KL divergence of trajectories: sum_t sum_s d_t(s) KL(pi_p(.|s) || pi_q(.|s)). */
static double divergence_of(const mdp *m, const double *theta_p, const double *theta_q) {
  const size_t pairs = m->states * m->actions;
  const double *p = policy_of(m, theta_p), *q = policy_of(m, theta_q), *d = visits(m, p);
  double kl = 0;
  for (size_t i = 0; i < m->horizon * pairs; ++i)
    kl += d[i / m->actions] * p[i % pairs] * log(p[i % pairs] / q[i % pairs]);
  return kl;
}

TEST(transitions_are_distributions) {
  for (size_t w = 0; w < WORLDS; ++w) {
    mdp *m = world_of(worlds[w]);
    for (size_t s = 0; s < m->states; ++s)
      for (size_t a = 0; a < m->actions && !m->terminal[s]; ++a) {
        double sum = 0;
        for (size_t to = 0; to < m->states; ++to)
          sum += m->transition[(s * m->actions + a) * m->states + to];
        ASSERT_CLOSE(sum, 1, 1e-14);
      }
    mdp_free(m);
  }
}

TEST(gradients_agree_with_central_differences) {
  for (size_t w = 0; w < WORLDS; ++w) {
    mdp *m = world_of(worlds[w]);
    double *theta = random_theta(m, w), *gradient = calloc(m->n_parameters, sizeof *gradient);
    const double h = 1e-5;
    (void)value_of(m, theta, gradient);
    for (size_t i = 0; i < m->n_parameters; ++i) {
      const double at = theta[i];
      theta[i] = at + h;
      const double up = value_of(m, theta, NULL);
      theta[i] = at - h;
      const double down = value_of(m, theta, NULL);
      theta[i] = at;
      ASSERT_CLOSE(gradient[i], (up - down) / (2 * h), 1e-9);
    }
    free(theta);
    free(gradient);
    mdp_free(m);
  }
}

/* Value, gradient and divergence by enumeration are those of dynamic programming. */
static void compare_with_dynamic_programming(const enumerable *e, mdp *m, const double *p,
                                             const double *q) {
  double *dp = calloc(m->n_parameters, sizeof *dp), *all = calloc(m->n_parameters, sizeof *all);
  double value_all, kl_all;
  ASSERT_OK(lab_value(e, p, &value_all, all, &err));
  ASSERT_OK(lab_divergence(e, p, q, &kl_all, NULL, &err));
  ASSERT_CLOSE(value_of(m, p, dp), value_all, 1e-12);
  ASSERT_CLOSE(divergence_of(m, p, q), kl_all, 1e-12);
  for (size_t i = 0; i < m->n_parameters; ++i) ASSERT_CLOSE(dp[i], all[i], 1e-12);
  free(dp), free(all);
}

TEST(dynamic_programming_agrees_with_enumeration) {
  for (size_t w = 0; w < WORLDS; ++w) {
    mdp *m = world_of(worlds[w]);
    mdp_trajectories *t = NULL;
    ASSERT_OK(mdp_trajectories_new(&t, m, &err));
    const enumerable e = mdp_trajectories_enumerable(t);
    double *p = random_theta(m, w), *q = random_theta(m, 50 + w);
    compare_with_dynamic_programming(&e, m, p, q);
    free(p), free(q);
    mdp_trajectories_free(t);
    mdp_free(m);
  }
}

TEST(importance_sampling_is_unbiased_on_trajectories) {
  mdp *m = world_of("world: {kind: chain, states: 3, horizon: 3}");
  mdp_trajectories *t = NULL;
  ASSERT_OK(mdp_trajectories_new(&t, m, &err));
  const enumerable e = mdp_trajectories_enumerable(t);
  double *p = random_theta(m, 1), *q = random_theta(m, 2);
  const policy_algorithm *algorithm = policy_algorithms_find("is");
  const lab_spec spec = {.world = &e,
                         .theta_learner = p,
                         .theta_sampler = q,
                         .group_size = 2,
                         .budget = 100000,
                         .threads = 1};
  lab_result r;
  ASSERT_OK(lab_measure(&r, &algorithm, 1, &spec, &err));
  CU_ASSERT(r.applicable && r.method == LAB_EXACT);
  ASSERT_CLOSE(r.numbers.bias, 0, 1e-12);
  lab_result_fini(&r);
  free(p);
  free(q);
  mdp_trajectories_free(t);
  mdp_free(m);
}

TEST(a_process_with_too_many_trajectories_is_refused) {
  gl_error err = {.status = GL_OK};
  mdp *m = world_of("world: {kind: garnet, states: 8, actions: 4, branching: 4, horizon: 8}");
  mdp_trajectories *t = NULL;
  CU_ASSERT(mdp_trajectories_new(&t, m, &err) == GL_EINPUT);
  CU_ASSERT(strstr(err.text, "horizon") != NULL);
  mdp_free(m);
}

/* As a world that a run learns in: value and gradient are those of dynamic programming, divergence
 * and estimates of algorithms those of the list of trajectories. */
TEST(a_run_learns_in_the_same_process) {
  static const char *const rows[] = {"gspo", "gepo", "grpo", "snis"};
  for (size_t w = 0; w < WORLDS; ++w) {
    mdp *m = world_of(worlds[w]);
    cfg_doc *doc = NULL;
    toy_world *run = NULL;
    mdp_trajectories *t = NULL;
    ASSERT_OK(cfg_load_text(&doc, worlds[w], strlen(worlds[w]), "test", &err));
    ASSERT_OK(toy_world_new(&run, cfg_find(cfg_root(doc), "world"), NULL, 4, &err));
    ASSERT_OK(mdp_trajectories_new(&t, m, &err));
    const enumerable e = toy_world_enumerable(run), list = mdp_trajectories_enumerable(t);
    CU_ASSERT_EQUAL_FATAL(e.n_parameters, m->n_parameters);
    double *p = random_theta(m, w), *q = random_theta(m, 50 + w);
    compare_with_dynamic_programming(&e, m, p, q);
    /* Pairs of trajectories are enumerated where they are few. */
    for (size_t k = 0; list.max_responses <= 100 && k < sizeof rows / sizeof *rows; ++k) {
      const policy_algorithm *algorithm = policy_algorithms_find(rows[k]);
      lab_spec spec = {.world = &e,
                       .theta_learner = p,
                       .theta_sampler = q,
                       .group_size = 2,
                       .budget = 1 << 20,
                       .threads = 1};
      lab_result one, other;
      ASSERT_OK(lab_measure(&one, &algorithm, 1, &spec, &err));
      spec.world = &list;
      ASSERT_OK(lab_measure(&other, &algorithm, 1, &spec, &err));
      for (size_t i = 0; i < m->n_parameters; ++i)
        ASSERT_CLOSE(one.expected[i], other.expected[i], 1e-12);
      lab_result_fini(&one), lab_result_fini(&other);
    }
    free(p), free(q);
    mdp_trajectories_free(t);
    toy_world_free(run);
    cfg_free(doc);
    mdp_free(m);
  }
}

/* Temperatures and cuts would change the environment where its transitions are random. */
TEST(sampling_that_would_change_the_environment_is_refused) {
  static const struct {
    const char *world, *sampling;
    gl_status status;
  } cases[] = {{"{kind: chain, horizon: 3}", "{temperature: 1}", GL_OK},
               {"{kind: chain, horizon: 3}", "{temperature: 0.5}", GL_EINPUT},
               {"{kind: chain, horizon: 3}", "{top_k: 1}", GL_EINPUT},
               {"{kind: chain, horizon: 3, slip: 0}", "{temperature: 0.5, top_p: 0.9}", GL_OK},
               {"{kind: chain, horizon: 3, evaluation: greedy}", "{temperature: 1}", GL_EINPUT},
               {"{kind: token, horizon: 3, evaluation: greedy}", "{top_k: 2}", GL_OK},
               {"{kind: gridworld, horizon: 12}", "{temperature: 1}", GL_EINPUT}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[256];
    cfg_doc *doc = NULL;
    toy_world *w = NULL;
    snprintf(text, sizeof text, "world: %s\nsampling: %s\n", cases[i].world, cases[i].sampling);
    ASSERT_OK(cfg_load_text(&doc, text, strlen(text), "test", &err));
    const cfg_node *root = cfg_root(doc);
    CU_ASSERT_EQUAL(toy_world_new(&w, cfg_find(root, "world"), cfg_find(root, "sampling"), 1, NULL),
                    cases[i].status);
    toy_world_free(w);
    cfg_free(doc);
  }
}
