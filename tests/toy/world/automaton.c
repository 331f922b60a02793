/* Worlds whose reward is a finite automaton's: dynamic programmes against lists of responses,
 * finite differences and an independent enumeration, training against the listed twin, refusals. */
#include "tests/support/files.h"
#include "tests/support/toy_fixture.h"
#include "toy/world/measure.h"

SUITE("toy: automata");

static const char *const small_worlds[] = {
    "kind: automaton, vocabulary: 3, horizon: 5, prompts: 2",
    "kind: automaton, vocabulary: 3, horizon: 4, end_token: true, prompts: 3, automaton: count, "
    "letter: 2, modulus: 3",
    "kind: automaton, vocabulary: 4, horizon: 4, end_token: true, automaton: contains, "
    "word: [1, 1, 2]",
    "kind: automaton, vocabulary: 3, horizon: 6, prompts: 2, automaton: balanced, depth: 2",
    "kind: automaton, vocabulary: 3, horizon: 4, prompts: 2, automaton: table, table: {start: 1, "
    "next: [[1], [2, 0, 1], [2, 0]], rewards: [[0, 0.5, 1], [1, -1, 0.25]]}",
    "kind: automaton, vocabulary: 2, horizon: 1, automaton: parity, letter: 0",
};
enum { N_SMALL = sizeof small_worlds / sizeof *small_worlds };

static const char *const dists[] = {"", "sampling: {temperature: 0.7, top_k: 2}\n",
                                    "sampling: {top_p: 0.8, weights: truncated}\n"};
enum { N_DISTS = sizeof dists / sizeof *dists };

/* A small world, counted or listed. */
static world_fixture open_world(const char *about, const char *dist, int listed) {
  char text[600];
  snprintf(text, sizeof text, "%sworld: {%s, listed: %s}\n", dist, about,
           listed ? "true" : "false");
  return world_open(text, 3);
}

static double divergence(const world_fixture *f, const double *p, const double *q, size_t x,
                         double *backward) {
  double forward = NAN;
  gl_error err = {0};
  CU_ASSERT(f->e.ops->divergence(f->e.self, p, q, x, &forward, backward, &err) == GL_OK);
  return forward;
}

/* What top-k and top-p leave of logq[n_edges]. */
typedef struct kept_part {
  double mass; /* probability that the untruncated policy gives the kept tokens, averaged over
                  sampled tokens */
  double mean_reward; /* expected reward under the truncated distribution */
} kept_part;

static kept_part kept_part_of(const toy_world *w, size_t x, const double *logq) {
  const response_tree *g = &w->tree;
  const double *dist[AUTOMATON_MAX_HORIZON];
  double *drawn = fixture_doubles(g->n_edges), *scratch = fixture_doubles(toy_scratch(w));
  double *visit = fixture_doubles(g->horizon * g->n_nodes), mass = 0, length = 0;
  sampling_rank *rank = calloc(g->vocabulary, sizeof *rank);
  toy_truncate(w, &w->sampling, logq, g->n_nodes, drawn, rank);
  for (size_t t = 0; t < g->horizon; ++t) dist[t] = drawn;
  toy_chain_visits(g, dist, visit, scratch);
  for (size_t i = 0; i < g->horizon * g->n_nodes; ++i) {
    const size_t n = i % g->n_nodes;
    length += visit[i];
    for (size_t e = n * g->vocabulary; e < (n + 1) * g->vocabulary; ++e)
      if (drawn[e] > -INFINITY) mass += visit[i] * exp(logq[e]);
  }
  free(rank);
  const toy_automaton *a = w->automata + x;
  return (kept_part){mass / length,
                     toy_chain_sum(&(toy_chain){g, a}, dist, 1, a->reward, NULL, scratch)};
}

/* --- against the list of responses --- */

static void check_twins(const char *about, const char *dist) {
  world_fixture c = open_world(about, dist, 0), l = open_world(about, dist, 1);
  CU_ASSERT_FATAL(c.n == l.n && c.e.n_prompts == l.e.n_prompts);
  CU_ASSERT(toy_world_is_counted(c.world) && !toy_world_is_counted(l.world));
  double *theta = fixture_doubles(4 * c.n), *other = theta + c.n, *grad = theta + 2 * c.n,
         *listed = theta + 3 * c.n;
  double *logp = fixture_doubles(3 * l.k), *logq = logp + l.k, *coefficient = NULL;
  coefficient = fixture_doubles(l.k * l.e.max_length);
  fixture_normals(theta, c.n, 0.8, 1);
  fixture_normals(other, c.n, 0.8, 2);
  gl_error err = {0};
  for (size_t x = 0; x < c.e.n_prompts; ++x) {
    double value = NAN, kl = 0, kl_qp = 0, backward = NAN;
    memset(grad, 0, 2 * c.n * sizeof *grad);
    CU_ASSERT(c.e.ops->value(c.e.self, theta, x, 0.5, &value, grad, &err) == GL_OK);
    const double want = world_return(&l, theta, x);
    ASSERT_CLOSE(value, want, 1e-12);
    world_log_responses(&l, theta, x, 0, logp);
    world_log_responses(&l, other, x, 0, logq);
    for (size_t y = 0; y < l.k; ++y) {
      kl += exp(logp[y]) * (logp[y] - logq[y]);
      kl_qp += exp(logq[y]) * (logq[y] - logp[y]);
      for (size_t t = 0; t < l.e.max_length; ++t)
        coefficient[y * l.e.max_length + t] =
            t < l.e.ops->length(l.e.self, x, y)
                ? 0.5 * exp(logp[y]) * (l.world->reward[x * l.k + y] - want)
                : 0;
    }
    ASSERT_CLOSE(divergence(&c, theta, other, x, &backward), kl, 1e-12);
    ASSERT_CLOSE(backward, kl_qp, 1e-12);
    CU_ASSERT(l.e.ops->accumulate_score(l.e.self, theta, x, coefficient, listed, &err) == GL_OK);
    for (size_t i = 0; i < c.n; ++i) ASSERT_CLOSE(grad[i], listed[i], 1e-12);
  }
}

TEST(sums_over_states_are_sums_over_the_list_of_responses) {
  for (size_t i = 0; i < N_SMALL; ++i)
    for (size_t k = 0; k < N_DISTS; ++k) check_twins(small_worlds[i], dists[k]);
}

/* E_p[A], entropy, divergences, the exact denominator and what truncation keeps. */
static void check_facts(const char *about, const char *dist) {
  world_fixture c = open_world(about, dist, 0), l = open_world(about, dist, 1);
  const response_tree *g = &c.world->tree, *t = &l.world->tree;
  double *theta = fixture_doubles(2 * c.n), *other = theta + c.n;
  double *cp = fixture_doubles(3 * g->n_edges + 1), *clogp = cp + g->n_edges,
         *record = clogp + g->n_edges;
  double *lp = fixture_doubles(3 * t->n_edges), *llogp = lp + t->n_edges, *lq = llogp + t->n_edges;
  double *scratch = fixture_doubles(toy_scratch(c.world) + toy_scratch(l.world));
  double *ratio = fixture_doubles(l.k);
  fixture_normals(theta, c.n, 0.8, 3);
  fixture_normals(other, c.n, 0.8, 4);
  gl_error err = {0};
  for (size_t x = 0; x < c.e.n_prompts; ++x) {
    toy_probs(c.world, theta, x, clogp, cp);
    toy_probs(l.world, theta, x, llogp, lp);
    record[0] = 0;
    toy_log_probs(c.world, other, x, record + 1);
    toy_log_probs(l.world, other, x, lq);
    toy_facts a =
        toy_measure(c.world, x, cp, clogp, (toy_behaviour){record, 1}, record + 1, scratch);
    toy_facts b = toy_measure(l.world, x, lp, llogp, (toy_behaviour){lq, 1}, lq, scratch);
    ASSERT_CLOSE(a.entropy, b.entropy, 1e-12);
    ASSERT_CLOSE(a.kl, b.kl, 1e-12);
    ASSERT_CLOSE(a.kl_qp, b.kl_qp, 1e-12);
    ASSERT_CLOSE(a.kl_ref, b.kl_ref, 1e-12);
    ASSERT_CLOSE(a.mean_reward, b.mean_reward, 1e-12);
    ASSERT_CLOSE(toy_greedy_reward(c.world, x, cp), toy_greedy_reward(l.world, x, lp), 0);
    for (int truncated = 0; truncated < 2; ++truncated) {
      double u = NAN, v = NAN;
      CU_ASSERT(toy_behaviour_collision(c.world, (toy_behaviour){record, 1}, truncated, &u, &err) ==
                GL_OK);
      CU_ASSERT(toy_behaviour_collision(l.world, (toy_behaviour){lq, 1}, truncated, &v, &err) ==
                GL_OK);
      ASSERT_CLOSE(u, v, 1e-12);
    }
    /* The listed distribution that is drawn from, and the share of the policy that it keeps at each
     * token.
     */
    const kept_part kept = kept_part_of(c.world, x, record + 1);
    double reward = 0;
    world_log_responses(&l, other, x, 1, ratio);
    for (size_t y = 0; y < l.k; ++y) reward += exp(ratio[y]) * l.world->reward[x * l.k + y];
    ASSERT_CLOSE(kept.mean_reward, reward, 1e-12);
    CU_ASSERT(kept.mass > 0 && kept.mass <= 1 + 1e-12);
    if (dist[0] == '\0') ASSERT_CLOSE(kept.mass, 1, 1e-12);
  }
}

TEST(exact_quantities_are_those_of_the_listed_world) {
  for (size_t i = 0; i < N_SMALL; ++i)
    for (size_t k = 0; k < N_DISTS; ++k) check_facts(small_worlds[i], dists[k]);
}

/* --- the gradient where no list exists --- */

TEST(the_gradient_is_the_finite_difference_of_the_return) {
  world_fixture f = world_open(
      "world: {kind: automaton, vocabulary: 40, horizon: 48, end_token: true, prompts: 2, "
      "automaton: balanced, depth: 3}\nsampling: {temperature: 0.8}\n",
      1);
  double *theta = fixture_doubles(2 * f.n), *grad = theta + f.n, value = NAN, size = 0;
  gl_error err = {0};
  fixture_normals(theta, f.n, 0.5, 5);
  for (size_t a = 0; a < 41; ++a) theta[a * 41] += 2.5; /* opening is likely, so that it matters */
  for (size_t x = 0; x < 2; ++x)
    CU_ASSERT(f.e.ops->value(f.e.self, theta, x, 1, &value, grad, &err) == GL_OK);
  for (size_t i = 0; i < f.n; i += 37) {
    const double h = 1e-4, at = theta[i];
    double around[4], sum = 0;
    for (int k = 0; k < 4; ++k) {
      static const double step[4] = {-2, -1, 1, 2}, weight[4] = {1, -8, 8, -1};
      theta[i] = at + h * step[k];
      around[k] = 0;
      for (size_t x = 0; x < 2; ++x) {
        CU_ASSERT(f.e.ops->value(f.e.self, theta, x, 1, &value, NULL, &err) == GL_OK);
        around[k] += value;
      }
      sum += weight[k] * around[k];
    }
    theta[i] = at;
    CU_ASSERT(fabs(sum / (12 * h) - grad[i]) < 1e-10);
    size += fabs(grad[i]);
  }
  CU_ASSERT(size > 1e-4);
}

/* --- an independent enumeration: tests/golden/automaton.py --- */

static const char *const golden_worlds[] = {
    "sampling: {top_k: 2}\nworld: {kind: automaton, vocabulary: 3, horizon: 5, prompts: 2}\n",
    "sampling: {temperature: 0.7, top_p: 0.8}\nworld: {kind: automaton, vocabulary: 3, horizon: 4, "
    "end_token: true, prompts: 3, automaton: count, letter: 2, modulus: 3}\n",
    "sampling: {top_k: 3, top_p: 0.9}\nworld: {kind: automaton, vocabulary: 4, horizon: 4, "
    "end_token: true, automaton: contains, word: [1, 1, 2]}\n",
    "sampling: {temperature: 1.3, top_p: 0.6}\nworld: {kind: automaton, vocabulary: 3, horizon: 6, "
    "prompts: 2, automaton: balanced, depth: 2}\n",
};

static void check_golden(const char *text, FILE *golden) {
  world_fixture f = world_open(text, 1);
  const double share = 1 / (double)f.e.n_prompts;
  double *p = fixture_doubles(3 * f.n), *q = p + f.n, *grad = p + 2 * f.n;
  double *logq = fixture_doubles(f.world->tree.n_edges);
  double value = 0, kl = 0, kl_qp = 0, mass = 0, reward = 0;
  gl_error err = {0};
  for (size_t i = 0; i < f.n; ++i) {
    p[i] = sin(1 + (double)i);
    q[i] = cos(2 + (double)i);
  }
  for (size_t x = 0; x < f.e.n_prompts; ++x) {
    double here = NAN, backward = NAN;
    CU_ASSERT(f.e.ops->value(f.e.self, p, x, share, &here, grad, &err) == GL_OK);
    value += share * here;
    kl += share * divergence(&f, p, q, x, &backward);
    kl_qp += share * backward;
    toy_log_probs(f.world, q, x, logq);
    const kept_part kept = kept_part_of(f.world, x, logq);
    mass += share * kept.mass;
    reward += share * kept.mean_reward;
  }
  ASSERT_CLOSE(value, files_number(golden), 1e-12);
  ASSERT_CLOSE(kl, files_number(golden), 1e-12);
  ASSERT_CLOSE(kl_qp, files_number(golden), 1e-12);
  ASSERT_CLOSE(mass, files_number(golden), 1e-12);
  ASSERT_CLOSE(reward, files_number(golden), 1e-12);
  for (size_t i = 0; i < f.n; ++i) ASSERT_CLOSE(grad[i], files_number(golden), 1e-12);
}

TEST(an_independent_enumeration_agrees) {
  FILE *golden = fopen("tests/golden/automaton.txt", "r");
  CU_ASSERT_FATAL(golden != NULL);
  for (size_t i = 0; i < sizeof golden_worlds / sizeof *golden_worlds; ++i)
    check_golden(golden_worlds[i], golden);
  fclose(golden);
}

/* --- learning --- */

/* The same draws, metrics and parameters as the twin that lists responses, over updates of batches
 * that are drawn in two parts from two versions. */
static void check_training(const char *about, const char *dist, const char *algorithm) {
  enum { UPDATES = 6 };
  learner_fixture f[2];
  for (int k = 0; k < 2; ++k) {
    char text[800];
    snprintf(text, sizeof text,
             "world: {%s, listed: %s, policy: {init: {kind: normal, scale: 0.5}}}\n%s"
             "algorithm: %s\ntrain: {groups: 3, group_size: 4}\n",
             about, k == 1 ? "true" : "false", dist, algorithm);
    f[k] = learner_open(text, 9);
  }
  batch late[2] = {{0}};
  double metrics[2][METRIC_COUNT];
  for (uint64_t u = 0; u < UPDATES; ++u) {
    for (int k = 0; k < 2; ++k) {
      batch now = learner_draw(&f[k], 2 * u);
      learner_draw_part(&f[k], 2 * u + 1, 0, 0.5, &late[k]);
      learner_update(&f[k], &now, metrics[k]);
      learner_draw_part(&f[k], 2 * u + 1, 0.5, 1, &late[k]);
      learner_update(&f[k], &late[k], metrics[k]);
      batch_fini(&now);
    }
    CU_ASSERT_FATAL(late[0].n_tokens == late[1].n_tokens);
    CU_ASSERT(memcmp(late[0].token, late[1].token, late[0].n_tokens * sizeof *late[0].token) == 0);
    for (size_t m = 0; m < METRIC_COUNT; ++m)
      if (isfinite(metrics[1][m])) {
        ASSERT_CLOSE(metrics[0][m], metrics[1][m], 1e-9);
      } else {
        CU_ASSERT(!isfinite(metrics[0][m]));
      }
    ASSERT_CLOSE(learner_score(&f[0]), learner_score(&f[1]), 1e-12);
    for (int k = 0; k < 2; ++k) batch_fini(&late[k]);
  }
}

TEST(it_trains_as_its_listed_twin_does) {
  for (size_t i = 0; i < N_SMALL; ++i)
    for (size_t k = 0; k < N_DISTS; ++k) {
      check_training(small_worlds[i], dists[k], "is");
      check_training(small_worlds[i], dists[k],
                     "{base: gepo, denominator: exact, ref_kl_coef: 0.1}");
    }
}

TEST(a_large_world_is_learned) {
  learner_fixture f = learner_open(
      "world: {kind: automaton, vocabulary: 256, horizon: 64, automaton: count, modulus: 2, "
      "letter: 3, policy: {features: [bias]}}\nalgorithm: reinforce\noptimizer: {lr: 0.3}\n"
      "train: {groups: 4, group_size: 32}\n",
      1);
  const double before = learner_score(&f);
  double metrics[METRIC_COUNT];
  for (uint64_t u = 0; u < 30; ++u) {
    batch b = learner_draw(&f, u);
    learner_update(&f, &b, metrics);
    CU_ASSERT(isfinite(metrics[METRIC_ENTROPY]) && isfinite(metrics[METRIC_EXACT_RETURN]));
    batch_fini(&b);
  }
  CU_ASSERT(learner_score(&f) > before + 0.1);
}

TEST(a_checkpoint_belongs_to_its_automaton) {
  learner_fixture a = learner_open("world: {kind: automaton, automaton: count, modulus: 3}\n"
                                   "algorithm: gepo\n",
                                   1);
  learner_fixture b = learner_open("world: {kind: automaton, automaton: count, modulus: 5}\n"
                                   "algorithm: gepo\n",
                                   1);
  gl_error err = {0};
  FILE *file = tmpfile();
  CU_ASSERT_FATAL(file != NULL);
  CU_ASSERT(a.learner.ops->save(a.toy, file, &err) == GL_OK);
  rewind(file);
  CU_ASSERT(b.learner.ops->load(b.toy, file, &err) == GL_EINPUT);
  rewind(file);
  CU_ASSERT(a.learner.ops->load(a.toy, file, &err) == GL_OK);
  fclose(file);
}

/* --- what is refused --- */

TEST(what_is_no_automaton_is_refused_by_name_and_place) {
  static const struct {
    const char *world, *says;
  } wrong[] = {
      {"automaton: party",
       "r.yaml:1:37: 'world.automaton' is text ('party'); it must be one of parity"},
      {"automaton: table", "needs `table: {next"},
      {"automaton: table, table: {next: [[0]]}", "either `accept`"},
      {"automaton: table, table: {next: [], accept: [0]}", "`next` must be a list of 1 to 1024"},
      {"automaton: table, table: {next: [[0, 1], [2]], accept: [0]}",
       "r.yaml:1:68: the next state must be a state, a whole number from 0 to 1"},
      {"automaton: table, table: {next: [[0, 0, 0, 0, 0]], accept: [0]}",
       "state 0 of `next` must be a list of up to 4 states"},
      {"automaton: table, table: {next: [[0]], accept: [1]}", "what is accepted must be a state"},
      {"automaton: table, table: {next: [[0]], start: -1, accept: [0]}", "start must be a state"},
      {"automaton: table, table: {next: [[0]], rewards: [1, 2]}", "a list of 1 numbers"},
      {"automaton: table, table: {next: [[0]], rewards: [.nan]}", "a finite number"},
      {"automaton: table, prompts: 3, table: {next: [[0]], accept: [[0], [0]]}",
       "accept has 2 lists for 3 prompts"},
      {"automaton: table, table: {next: [[0]], accept: [0], begin: 0}", "begin"},
      {"automaton: contains", "needs `word`"},
      {"automaton: contains, word: [4]", "a whole number from 0 to 3"},
      {"automaton: contains, prompts: 2, word: [[1], [2], [3]]", "word has 3 lists for 2 prompts"},
      {"automaton: parity, letter: 4", "letter 4 is counted, but the letters are 0 to 3"},
      {"automaton: parity, modulus: 3", "modulus means nothing to the automaton parity"},
      {"automaton: balanced, vocabulary: 1", "balanced needs a vocabulary of 2"},
      {"vocabulary: 257", "vocabulary"},
      {"horizon: 65", "horizon"},
      {"vocabulary: 256, horizon: 64, automaton: count, modulus: 1024", "dynamic programme"},
      {"vocabulary: 256, horizon: 64, listed: true", "leave `listed` out"},
      {"policy: {kind: tabular}", "log-linear in the last letter"},
      {"policy: {features: [position]}", "prompt and last letter only, not 'position'"},
      {"policy: {features: random}", "list of bias, prompt, last"},
      {"policy: {init: {kind: probs, probs: [1]}}", "zeros or normal"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    char text[400];
    snprintf(text, sizeof text, "world: {kind: automaton, %s}", wrong[i].world);
    cfg_doc *doc = fixture_recipe(text);
    toy_world *w = NULL;
    gl_error err = {0};
    CU_ASSERT(toy_world_new(&w, cfg_find(cfg_root(doc), "world"), NULL, 1, &err) == GL_EINPUT);
    CU_ASSERT_PTR_NULL(w);
    if (strstr(err.text, wrong[i].says) == NULL) fprintf(stderr, "%s: %s\n", text, err.text);
    CU_ASSERT(strstr(err.text, wrong[i].says) != NULL);
    cfg_free(doc);
  }
}
