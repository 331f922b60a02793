/* The propositions of paper/methods.md §7.13 on frozen data: closed forms against the laboratory's
 * enumeration of groups. */
#include "tests/support/toy_fixture.h"
#include "toy/lab/estimator_moments.h"
#include "toy/lab/kl_dial.h"

SUITE("lab: frozen data");

enum { MOST = 16 };

static policy_algorithm algorithm_of(const char *text) {
  char whole[400];
  policy_algorithm algorithm;
  snprintf(whole, sizeof whole, "algorithm: %s\n", text);
  cfg_doc *doc = fixture_recipe(whole);
  ASSERT_OK(policy_algorithm_parse(&algorithm, cfg_find(cfg_root(doc), "algorithm"), &err));
  cfg_free(doc);
  return algorithm;
}

/* E[g] over groups of `size` that q draws, into to[n]. */
static void expected(const world_fixture *f, const policy_algorithm *a, const double *p,
                     const double *q, size_t size, double *to) {
  lab_result r = {0};
  const lab_spec spec = {.world = &f->e,
                         .theta_learner = p,
                         .theta_sampler = q,
                         .group_size = size,
                         .budget = 100000,
                         .threads = 1};
  ASSERT_OK(lab_measure(&r, &a, 1, &spec, &err));
  CU_ASSERT_FATAL(r.applicable && r.method == LAB_EXACT);
  memcpy(to, r.expected, f->n * sizeof *to);
  lab_result_fini(&r);
}

/* Ascends along E[g] with q fixed. */
static void flow(const world_fixture *f, const policy_algorithm *a, const double *q, double rate,
                 size_t steps, double *p) {
  double g[MOST];
  for (size_t i = 0; i < steps; ++i) {
    expected(f, a, p, q, 2, g);
    for (size_t k = 0; k < f->n; ++k) p[k] += rate * g[k];
  }
}

static void probabilities(const world_fixture *f, const double *theta, double *p) {
  world_log_responses(f, theta, 0, 0, p);
  for (size_t y = 0; y < f->k; ++y) p[y] = exp(p[y]);
}

static const char log_linear[] =
    "world: {kind: bandit, rewards: [1, 0, 0, 1, 0, 0], policy: {kind: loglinear, features: "
    "random, dimension: 3}}";
static const char two_bits[] =
    "world: {kind: bandit, rewards: [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1], policy: "
    "{kind: loglinear, features: [[1, 1], [1, 1], [1, 1], [1, 0], [0, 1], [0, 1], [0, 1], [0, 1], "
    "[0, 1], [0, 1], [0, 1], [0, 1], [0, 1], [0, 0], [0, 0], [0, 0]]}}";

/* --- proposition 4 --- */

TEST(without_weights_the_step_is_the_gradient_at_the_sampler) {
  const policy_algorithm mean = algorithm_of("{base: reinforce, baseline: group_mean}"),
                         others = algorithm_of("{base: reinforce}");
  for (uint64_t seed = 0; seed < 10; ++seed) {
    world_fixture f = world_open(log_linear, seed);
    double q[3], p[3], value, gradient[3], g[3];
    fixture_normals(q, f.n, 1, 2 * seed);
    fixture_normals(p, f.n, 3, 2 * seed + 1);
    ASSERT_OK(lab_value(&f.e, q, &value, gradient, &err));
    for (size_t size = 2; size <= 4; ++size) {
      expected(&f, &mean, p, q, size, g);
      for (size_t k = 0; k < f.n; ++k)
        ASSERT_CLOSE(g[k], ((double)size - 1) / (double)size * gradient[k], 1e-13);
      expected(&f, &others, p, q, size, g);
      for (size_t k = 0; k < f.n; ++k) ASSERT_CLOSE(g[k], gradient[k], 1e-13);
    }
  }
}

TEST(two_bits_rise_to_a_half_and_fall_to_nothing) {
  const policy_algorithm plain = algorithm_of("{base: reinforce}");
  world_fixture f = world_open(two_bits, 1);
  const double q[2] = {0, 0};
  double p[2] = {0, 0}, g[2], value, gradient[2];
  for (int i = 0; i <= 40; ++i) {
    p[0] = i * 0.5, p[1] = -p[0];
    const double s = 1 / (1 + exp(log(3) - p[0]));
    expected(&f, &plain, p, q, 2, g);
    ASSERT_CLOSE(g[0], 3.0 / 32, 1e-14);
    ASSERT_CLOSE(g[1], -3.0 / 32, 1e-14);
    ASSERT_OK(lab_value(&f.e, p, &value, gradient, &err));
    ASSERT_CLOSE(value, 2 * s * (1 - s), 1e-13);
    ASSERT_CLOSE(gradient[0], s * (1 - s) * (1 - 2 * s), 1e-13);
  }
  CU_ASSERT(value < 1e-7);
}

/* x(t+1) = x(t) - a x(t-S) shrinks below the bound on a and grows above it. */
TEST(a_delayed_ascent_is_stable_below_its_bound) {
  static const size_t delays[] = {0, 1, 4, 16, 64};
  for (size_t d = 0; d < 5; ++d)
    for (int above = 0; above < 2; ++above) {
      const size_t late = delays[d], steps = 200000;
      const double pi = acos(-1),
                   a = (above ? 1.02 : 0.98) * 2 * sin(pi / (2 * (2.0 * (double)late + 1)));
      double x[65], largest = 0;
      for (size_t i = 0; i <= late; ++i) x[i] = 1;
      for (size_t t = late; t < steps && largest < 1e6; ++t) {
        const double next = x[t % (late + 1)] - a * x[(t + 1) % (late + 1)];
        x[(t + 1) % (late + 1)] = next;
        if (t > steps - 1000 || above) largest = fmax(largest, fabs(next));
      }
      CU_ASSERT(above ? largest >= 1e6 : largest < 1e-3);
    }
}

/* --- proposition 5 --- */

TEST(right_responses_alone_never_score_below_their_sampler) {
  const policy_algorithm right = algorithm_of("{base: reinforce, baseline: none}"),
                         plain = algorithm_of("{base: reinforce}");
  size_t line_ends_wrong = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    world_fixture f = world_open(log_linear, seed);
    double q[3], p[3], start[MOST], now[MOST], g[3], far[3];
    fixture_normals(q, f.n, 1, 100 + seed);
    memcpy(p, q, sizeof q);
    probabilities(&f, q, start);
    const double v = world_return(&f, q, 0);
    for (int i = 0; i < 60; ++i) {
      flow(&f, &right, q, 1, 1, p);
      probabilities(&f, p, now);
      double kl = 0;
      for (size_t y = 0; y < f.k; ++y)
        if (y == 0 || y == 3) kl += start[y] / v * log(start[y] / v / now[y]);
      CU_ASSERT(kl <= -log(v) + 1e-12);
      CU_ASSERT(now[0] + now[3] >= v - 1e-12);
    }
    expected(&f, &plain, q, q, 2, g);
    for (size_t k = 0; k < f.n; ++k) far[k] = q[k] + 1e5 * g[k];
    line_ends_wrong += world_return(&f, far, 0) < 1e-6;
  }
  CU_ASSERT(line_ends_wrong >= 3 && line_ends_wrong < 30); /* both happen */
}

/* --- proposition 6 --- */

static const char four_arms[] = "world: {kind: bandit, rewards: [1, 1, 1, 0]}";
static const double four_q[4] = {0.5, 0.2, -0.6, 0.4};

/* (w - lambda)+ / mass, which sums to 1. */
static void water_filled(const double *w, double mass, double *p) {
  double low = -2, high = 2;
  for (int i = 0; i < 200; ++i) {
    const double lambda = (low + high) / 2;
    double sum = 0;
    for (size_t y = 0; y < 4; ++y) sum += p[y] = fmax(0, w[y] - lambda) / mass;
    if (sum > 1)
      low = lambda;
    else
      high = lambda;
  }
}

TEST(a_lower_baseline_keeps_the_responses_that_are_worth_it) {
  world_fixture f = world_open(four_arms, 1);
  double q[4], w[4], limit[4], p[4], theta[4];
  size_t support[3];
  static const double deltas[] = {-0.5, -0.1, -0.005};
  probabilities(&f, four_q, q);
  const double v = q[0] + q[1] + q[2];
  for (size_t d = 0; d < 3; ++d) {
    policy_algorithm a = algorithm_of("{base: reinforce, baseline: constant}");
    a.baseline_value = v + deltas[d];
    for (size_t y = 0; y < 4; ++y) w[y] = q[y] * ((y < 3) - a.baseline_value);
    water_filled(w, -deltas[d], limit);
    memcpy(theta, four_q, sizeof theta);
    flow(&f, &a, four_q, -4 / deltas[d], 1000, theta);
    probabilities(&f, theta, p);
    support[d] = 0;
    for (size_t y = 0; y < 4; ++y) {
      support[d] += limit[y] > 0;
      ASSERT_CLOSE(p[y], limit[y], 1e-3);
    }
  }
  CU_ASSERT(support[0] == 3 && support[1] == 2 && support[2] == 1);
}

TEST(a_higher_baseline_strengthens_what_the_policy_prefers) {
  world_fixture f = world_open(four_arms, 1);
  double q[4], p[4];
  policy_algorithm a = algorithm_of("{base: reinforce, baseline: constant}");
  probabilities(&f, four_q, q);
  a.baseline_value = q[0] + q[1] + q[2] + 0.6;
  for (size_t vertex = 0; vertex < 4; ++vertex) {
    double most = -1, theta[4] = {0};
    for (size_t y = 0; y < 4; ++y)
      if (y != vertex) most = fmax(most, q[y] * ((y < 3) - a.baseline_value));
    const int attracts = q[vertex] * ((vertex < 3) - a.baseline_value) > most - 0.6;
    theta[vertex] = 8;
    flow(&f, &a, four_q, 1, 400, theta);
    probabilities(&f, theta, p);
    CU_ASSERT((p[vertex] > 0.999) == attracts);
    if (vertex == 3) CU_ASSERT(attracts); /* the wrong arm */
  }
}

/* --- proposition 7 --- */

/* Two letters, two tokens, one right response: logits are those of the root and of the two
 * prefixes. */
TEST(contexts_move_by_their_own_flow) {
  const policy_algorithm plain = algorithm_of("{base: reinforce}"),
                         right = algorithm_of("{base: reinforce, baseline: none}");
  world_fixture f =
      world_open("world: {kind: sequence, vocabulary: 2, horizon: 2, prompts: 1, task: target}", 3);
  CU_ASSERT_FATAL(f.k == 4);
  double q[MOST], p[MOST], pq[4], pp[4], g[MOST], reward[4];
  policy_algorithm both[2] = {plain, right};
  fixture_normals(q, f.n, 1, 1);
  fixture_normals(p, f.n, 1, 2);
  f.e.ops->rewards(f.e.self, 0, reward);
  probabilities(&f, q, pq);
  probabilities(&f, p, pp);
  const response_tree *t = &f.world->tree;
  size_t answer = 0;
  while (reward[answer] < 1) ++answer;
  for (size_t a = 0; a < 2; ++a) {
    const double v = a == 0 ? pq[answer] : 0;
    expected(&f, &both[a], p, q, 2, g);
    for (size_t node = 0; node < t->n_nodes; ++node)
      for (size_t letter = 0; letter < 2; ++letter) {
        double edge = 0, context = 0, there = 0, takes = 0; /* F(c,a), F(c); p(c), p(c,a) */
        for (size_t y = 0; y < 4; ++y)
          for (size_t i = 0; i < 2; ++i) {
            const size_t e = (size_t)t->path[y * t->horizon + i];
            if (e / 2 != node) continue;
            context += pq[y] * (reward[y] - v), there += pp[y];
            if (e % 2 == letter) edge += pq[y] * (reward[y] - v), takes += pp[y];
          }
        ASSERT_CLOSE(g[node * 2 + letter], edge - takes / there * context, 1e-13);
      }
  }
  /* A prefix without right answers: whatever is preferred wins; right responses leave it alone. */
  size_t off = 1;
  while (off == (size_t)t->path[answer * t->horizon + 1] / 2) ++off;
  for (size_t letter = 0; letter < 2; ++letter) {
    memcpy(p, q, f.n * sizeof *p);
    p[off * 2] = p[off * 2 + 1] = 0;
    p[off * 2 + letter] = 3;
    flow(&f, &plain, q, 50, 100, p);
    CU_ASSERT(p[off * 2 + letter] - p[off * 2 + 1 - letter] > 10);
    memcpy(p, q, f.n * sizeof *p);
    flow(&f, &right, q, 50, 100, p);
    CU_ASSERT(p[off * 2] == q[off * 2] && p[off * 2 + 1] == q[off * 2 + 1]);
  }
}

/* --- proposition 8 --- */

static double binomial(size_t n, size_t k) {
  double c = 1;
  for (size_t i = 0; i < k; ++i) c *= (double)(n - i) / (double)(i + 1);
  return c;
}

TEST(a_score_of_zero_absorbs) {
  const policy_algorithm mean = algorithm_of("{base: reinforce, baseline: group_mean}"),
                         std = algorithm_of("{base: reinforce, baseline: group_mean, scale: "
                                            "group_std, std_ddof: 0, scale_eps: 0}");
  world_fixture f = world_open("world: {kind: bandit, rewards: [1, 0]}", 1);
  for (double odds = 4; odds > -16; odds -= 2)
    for (size_t size = 2; size <= 6; ++size) {
      const double theta[2] = {odds / 2, -odds / 2}, s = 1 / (1 + exp(-odds)), n = (double)size;
      double g[2], root = 0, mixed = 0;
      for (size_t k = 1; k < size; ++k) {
        const double of_k = binomial(size, k) * pow(s, (double)k) * pow(1 - s, n - (double)k);
        root += of_k * sqrt((double)(k * (size - k)));
        mixed += of_k;
      }
      ASSERT_CLOSE(mixed, 1 - pow(s, n) - pow(1 - s, n), 1e-14);
      CU_ASSERT(mixed <= n * s);
      /* One logit moves by half the step of theta and the other by minus that: theta = z0 - z1. */
      expected(&f, &mean, theta, theta, size, g);
      ASSERT_CLOSE(g[0], (n - 1) / n * s * (1 - s), 1e-14);
      ASSERT_CLOSE(g[1], -g[0], 1e-14);
      expected(&f, &std, theta, theta, size, g);
      ASSERT_CLOSE(g[0], root / n, 1e-13);
    }
}

/* --- clips, gates and masks --- */

/* Where only right responses move the policy, the logit of a wrong response z moves by -p(z) C. */
TEST(clips_gates_and_masks_leave_right_responses_alone) {
  static const char *const rules[] = {
      "{base: gspo, scale: none, eps_low: 0.2, eps_high: 9}",
      "{base: gspo, scale: none, clip: none, off_policy_mask: 0.223}",
      ("{base: gspo, scale: none, clip: none, gate: {negative_below: 0.8, of: sampler, scope: "
       "prompt, log_prob: sum}}")};
  world_fixture f =
      world_open("world: {kind: bandit, rewards: [1, 1, 0, 0, 0], policy: {kind: tabular}}", 1);
  const policy_algorithm plain = algorithm_of("{base: reinforce}");
  const double q[5] = {0, 0.3, 0.1, -0.2, 0.4}, p[5] = {1.5, 1.7, 0, -0.6, 0.4};
  double pp[5], pq[5], g[5];
  probabilities(&f, p, pp);
  probabilities(&f, q, pq);
  for (size_t z = 2; z < 5; ++z) CU_ASSERT_FATAL(pp[z] / pq[z] < 0.8);
  for (size_t i = 0; i < 3; ++i) {
    const policy_algorithm a = algorithm_of(rules[i]);
    expected(&f, &a, p, q, 3, g);
    const double c = -g[2] / pp[2];
    CU_ASSERT(c > 0.01);
    for (size_t z = 3; z < 5; ++z) ASSERT_CLOSE(-g[z] / pp[z], c, 1e-12);
  }
  expected(&f, &plain, p, q, 3, g);
  CU_ASSERT(fabs(g[2] / pp[2] - g[3] / pp[3]) > 0.01);
}
