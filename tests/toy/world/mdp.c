/* Decision processes: dynamic programming against enumeration and central differences. */
#include "toy/world/mdp.h"
#include "core/random/rng.h"
#include "tests/support/suite.h"
#include "toy/lab/estimator_moments.h"
#include "toy/lab/kl_dial.h"
#include "toy/world/toy_world.h"

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
    double value, up, down;
    const double h = 1e-5;
    ASSERT_OK(mdp_value(m, theta, &value, gradient, &err));
    for (size_t i = 0; i < m->n_parameters; ++i) {
      const double at = theta[i];
      theta[i] = at + h;
      ASSERT_OK(mdp_value(m, theta, &up, NULL, &err));
      theta[i] = at - h;
      ASSERT_OK(mdp_value(m, theta, &down, NULL, &err));
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
  double value_dp, value_all, kl_dp, kl_all;
  ASSERT_OK(mdp_value(m, p, &value_dp, dp, &err));
  ASSERT_OK(lab_value(e, p, &value_all, all, &err));
  ASSERT_OK(mdp_divergence(m, p, q, &kl_dp, &err));
  ASSERT_OK(lab_divergence(e, p, q, &kl_all, NULL, &err));
  ASSERT_CLOSE(value_dp, value_all, 1e-12);
  ASSERT_CLOSE(kl_dp, kl_all, 1e-12);
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
