/* Worlds and policies of the toy room: probabilities, scores, returns, features and tasks, each
 * against an independent form. */
#include "tests/support/toy_fixture.h"

SUITE("toy: worlds and policies");

/* Every policy class, with and without end token, temperature and truncation. */
static const char *const worlds[] = {
    "world: {kind: bandit}",
    "world: {kind: bandit, arms: 5, contexts: 3, policy: {kind: loglinear, features: random, "
    "dimension: 4}}\nsampling: {temperature: 0.6}",
    "world: {kind: bandit, rewards: [1, 2, 3], policy: {kind: loglinear, features: [[1, 0], [0, "
    "1], "
    "[2, -1]]}}",
    "world: {kind: sequence, vocabulary: 3, horizon: 3, prompts: 2}\nsampling: {temperature: 1.7}",
    "world: {kind: sequence, vocabulary: 2, horizon: 4, prompts: 3, end_token: true, task: parity}",
    "world: {kind: sequence, vocabulary: 3, horizon: 3, prompts: 3, policy: {kind: loglinear}}\n"
    "sampling: {top_k: 2}",
    "world: {kind: sequence, vocabulary: 3, horizon: 3, prompts: 2, end_token: true, task: sorted, "
    "reward: graded, policy: {kind: loglinear, hash: 5}}\nsampling: {top_p: 0.8, temperature: 0.5}",
    "world: {kind: sequence, vocabulary: 4, horizon: 2, prompts: 5, task: needle, policy: {kind: "
    "loglinear, features: [bias, remainder, second_last*sum, prompt*position*last]}}",
    "world: {kind: sequence, vocabulary: 2, horizon: 3, task: target, policy: {kind: loglinear, "
    "features: random}}\nsampling: {top_k: 3, top_p: 0.9}",
};
enum { N_WORLDS = sizeof worlds / sizeof *worlds };

static void for_every_world(void (*check)(world_fixture *f, double *theta)) {
  for (size_t i = 0; i < N_WORLDS; ++i) {
    world_fixture f = world_open(worlds[i], 5);
    double *theta = fixture_doubles(f.n);
    fixture_normals(theta, f.n, 1, i);
    check(&f, theta);
  }
}

/* --- probabilities and scores --- */

static void check_sums(world_fixture *f, double *theta) {
  double *logp = fixture_doubles(f->k);
  for (size_t x = 0; x < f->e.n_prompts; ++x)
    for (int truncated = 0; truncated < 2; ++truncated) {
      double sum = 0;
      world_log_responses(f, theta, x, truncated, logp);
      for (size_t y = 0; y < f->k; ++y) sum += exp(logp[y]);
      ASSERT_CLOSE(sum, 1, 1e-12);
    }
}

TEST(probabilities_of_responses_sum_to_one) {
  for_every_world(check_sums);
}

/* Central differences of f(theta) = sum of coefficient * token log-probabilities. */
static double weighted(const world_fixture *f, const double *theta, size_t x,
                       const double *coefficient) {
  const size_t m = f->k * f->e.max_length;
  double *token = fixture_doubles(m), sum = 0;
  gl_error err = {0};
  CU_ASSERT_FATAL(f->e.ops->log_probs(f->e.self, theta, x, token, &err) == GL_OK);
  for (size_t i = 0; i < m; ++i) sum += coefficient[i] * token[i];
  return sum;
}

static double difference(const world_fixture *f, double *theta, size_t j, size_t x,
                         const double *coefficient) {
  const double h = 1e-5, kept = theta[j];
  theta[j] = kept + h;
  double up = weighted(f, theta, x, coefficient);
  theta[j] = kept - h;
  double down = weighted(f, theta, x, coefficient);
  theta[j] = kept;
  return (up - down) / (2 * h);
}

static void check_accumulated_score(world_fixture *f, double *theta) {
  const size_t x = f->e.n_prompts - 1, m = f->k * f->e.max_length;
  double *coefficient = fixture_doubles(m), *grad = fixture_doubles(f->n);
  gl_error err = {0};
  fixture_normals(coefficient, m, 1, 100);
  for (size_t j = 0; j < f->n; ++j) grad[j] = (double)j; /* it must add, not overwrite */
  CU_ASSERT(f->e.ops->accumulate_score(f->e.self, theta, x, coefficient, grad, &err) == GL_OK);
  for (size_t j = 0; j < f->n; ++j)
    ASSERT_CLOSE(grad[j] - (double)j, difference(f, theta, j, x, coefficient), 1e-7);
}

TEST(accumulated_scores_agree_with_central_differences) {
  for_every_world(check_accumulated_score);
}

static void check_sequence_scores(world_fixture *f, double *theta) {
  const size_t x = 0, width = f->e.max_length;
  double *score = fixture_doubles(f->k * f->n), *coefficient = fixture_doubles(f->k * width);
  gl_error err = {0};
  CU_ASSERT(f->e.ops->sequence_scores(f->e.self, theta, x, score, &err) == GL_OK);
  for (size_t y = 0; y < f->k; ++y) {
    for (size_t t = 0; t < width; ++t) coefficient[y * width + t] = 1;
    for (size_t j = 0; j < f->n; j += 1 + f->n / 16)
      ASSERT_CLOSE(score[y * f->n + j], difference(f, theta, j, x, coefficient), 1e-7);
    for (size_t t = 0; t < width; ++t) coefficient[y * width + t] = 0;
  }
}

TEST(sequence_scores_agree_with_central_differences) {
  for_every_world(check_sequence_scores);
}

/* --- returns --- */

TEST(the_expected_return_is_the_sum_over_responses) {
  for (size_t i = 0; i < N_WORLDS; ++i) {
    world_fixture f = world_open(worlds[i], 5);
    learner_fixture l = learner_open(worlds[i], 5);
    double sum = 0;
    fixture_normals(l.toy->theta, f.n, 1, i);
    ++l.toy->stamp;
    for (size_t x = 0; x < f.e.n_prompts; ++x) sum += world_return(&f, l.toy->theta, x);
    ASSERT_CLOSE(toy_learner_return(l.toy), sum / (double)f.e.n_prompts, 1e-13);
  }
}

/* 400 groups of 100 draws; the mean lies beyond 4.9 standard errors once in a million. */
TEST(the_expected_return_is_the_mean_reward_of_draws) {
  learner_fixture l = learner_open(
      "world: {kind: sequence, vocabulary: 3, horizon: 4, end_token: true, task: target, reward: "
      "graded, policy: {init: {kind: normal, scale: 1}}}\ntrain: {groups: 400, group_size: 100}",
      3);
  batch b = learner_draw(&l, 1);
  double sum = 0, squares = 0, n = (double)b.n_groups;
  /* responses of a group share a prompt: only its groups are independent */
  for (size_t g = 0; g < b.n_groups; ++g) {
    double mean = 0;
    for (size_t i = b.group_start[g]; i < b.group_start[g + 1]; ++i) mean += b.reward[i] / 100;
    sum += mean;
    squares += mean * mean;
  }
  double error = sqrt((squares - sum * sum / n) / (n - 1) / n);
  CU_ASSERT(error > 0 && error < 0.05);
  CU_ASSERT(fabs(sum / n - learner_score(&l)) < 4.9 * error);
  batch_fini(&b);
}

/* The policy that copies the remainder at the last position solves sum_mod; greedily, exactly. */
TEST(greedy_evaluation_takes_the_most_probable_token) {
  learner_fixture l = learner_open(
      "world: {kind: sequence, vocabulary: 4, horizon: 3, prompts: 4, evaluation: greedy, policy: "
      "{kind: loglinear, features: [remainder]}}",
      1);
  ASSERT_CLOSE(learner_score(&l), 0.25, 1e-15); /* uniform: always token 0, right for prompt 0 */
  for (size_t r = 0; r < 4; ++r) l.toy->theta[r * 4 + r] = 0.1;
  ++l.toy->stamp;
  ASSERT_CLOSE(learner_score(&l), 1, 1e-15);
}

/* The distribution is worked out anew from the parameters: logits over the temperature, then the
 * most probable tokens, then the shortest run of them with enough mass. Tabular, so that theta is
 * the logits. */
static double return_of_dist(const learner_fixture *f, double temperature, size_t top_k,
                             double top_p) {
  const toy_world *w = f->toy->world;
  const response_tree *t = &w->tree;
  const size_t v = t->vocabulary;
  double total = 0, *dist = fixture_doubles(t->n_edges);
  for (size_t x = 0; x < w->n_prompts; ++x) {
    for (size_t n = 0; n < t->n_nodes; ++n) {
      const double *z = f->toy->theta + x * t->n_edges + n * v;
      double all = 0, among = 0, kept = 0;
      for (size_t a = 0; a < v; ++a) all += exp(z[a] / temperature);
      for (size_t a = 0; a < v; ++a) { /* `above` counts tokens before a in order of probability */
        size_t above = 0;
        for (size_t b = 0; b < v; ++b) above += z[b] > z[a];
        dist[n * v + a] = top_k == 0 || above < top_k ? exp(z[a] / temperature) / all : 0;
        among += dist[n * v + a];
      }
      for (size_t a = 0; a < v; ++a) {
        double before = 0;
        for (size_t b = 0; b < v; ++b)
          if (z[b] > z[a]) before += fabs(dist[n * v + b]);
        if (before >= top_p * among)
          dist[n * v + a] = -dist[n * v + a]; /* marked: it still counts */
      }
      for (size_t a = 0; a < v; ++a) kept += fmax(dist[n * v + a], 0);
      for (size_t a = 0; a < v; ++a) dist[n * v + a] = fmax(dist[n * v + a], 0) / kept;
    }
    for (size_t y = 0; y < t->n_responses; ++y) {
      double p = 1;
      for (size_t i = 0; i < (size_t)t->length[y]; ++i) p *= dist[t->path[y * t->horizon + i]];
      total += p * w->reward[x * t->n_responses + y];
    }
  }
  return total / (double)w->n_prompts;
}

/* The score is that of the evaluation's own distribution, whatever is drawn from in training. */
TEST(an_evaluation_has_a_dist_of_its_own) {
  static const struct {
    const char *evaluation, *sampling;
    double temperature;
    size_t top_k;
    double top_p;
  } cases[] = {{"exact", "{temperature: 1}", 1, 0, 1},
               {"exact", "{temperature: 0.5}", 1, 0, 1},
               {"{}", "{temperature: 2, top_k: 2}", 1, 0, 1},
               {"{temperature: 0.5}", "{temperature: 0.5}", 0.5, 0, 1},
               {"{kind: exact, temperature: 0.7}", "{}", 0.7, 0, 1},
               {"{top_k: 2}", "{}", 1, 2, 1},
               {"{top_p: 0.6}", "{temperature: 0.5}", 1, 0, 0.6},
               {"{temperature: 1.5, top_k: 3, top_p: 0.7}", "{top_k: 1}", 1.5, 3, 0.7}};
  double seen[sizeof cases / sizeof *cases];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[400];
    snprintf(
        text, sizeof text,
        "world: {kind: sequence, vocabulary: 4, horizon: 3, prompts: 3, end_token: true, task: "
        "target, reward: graded, evaluation: %s, policy: {init: {kind: normal, scale: 1}}}\n"
        "sampling: %s",
        cases[i].evaluation, cases[i].sampling);
    learner_fixture l = learner_open(text, 5);
    seen[i] = learner_score(&l);
    ASSERT_CLOSE(seen[i], return_of_dist(&l, cases[i].temperature, cases[i].top_k, cases[i].top_p),
                 1e-14);
  }
  CU_ASSERT(seen[0] == seen[1] && fabs(seen[0] - seen[3]) > 1e-3);
  CU_ASSERT(fabs(seen[0] - seen[5]) > 1e-3 && fabs(seen[0] - seen[6]) > 1e-3);
}

/* Keeping one token is the greedy response; its score has no distribution that could change it. */
TEST(one_token_kept_is_greedy_evaluation) {
  double score[2];
  static const char *const how[] = {"{top_k: 1}", "{kind: greedy}"};
  for (size_t i = 0; i < 2; ++i) {
    char text[300];
    snprintf(text, sizeof text,
             "world: {kind: sequence, horizon: 3, task: target, reward: graded, evaluation: %s, "
             "policy: {init: {kind: normal, scale: 1}}}",
             how[i]);
    learner_fixture l = learner_open(text, 7);
    score[i] = learner_score(&l);
  }
  ASSERT_CLOSE(score[0], score[1], 1e-15);
  CU_ASSERT(score[0] > 0);
}

/* --- parameters --- */

TEST(set_probs_gives_exactly_these_probabilities) {
  world_fixture f =
      world_open("world: {kind: sequence, vocabulary: 2, horizon: 3, end_token: true, prompts: 2}\n"
                 "sampling: {temperature: 0.5}",
                 1);
  double *theta = fixture_doubles(f.n), *p = fixture_doubles(2 * f.k), *logp = p + f.k, sum = 0;
  for (size_t y = 0; y < f.k; ++y) sum += p[y] = y == 2 ? 0 : (double)(1 + y * y % 7);
  for (size_t y = 0; y < f.k; ++y) p[y] /= sum;
  gl_error err = {0};
  CU_ASSERT(toy_world_set_probs(f.world, 1, p, f.k, theta, &err) == GL_OK);
  world_log_responses(&f, theta, 1, 0, logp);
  for (size_t y = 0; y < f.k; ++y) ASSERT_CLOSE(exp(logp[y]), p[y], 1e-14);
  CU_ASSERT(logp[2] == -INFINITY);
  for (size_t j = 0; j < f.n / 2; ++j) CU_ASSERT(theta[j] == 0); /* prompt 0 is untouched */
}

TEST(set_probs_refuses_what_is_no_distribution) {
  static const struct {
    double p[3];
    size_t n;
    const char *says;
  } table[] = {{{0.5, 0.5, 0.5}, 3, "sum to 1.5"},
               {{0.5, 0.7, -0.2}, 3, "probability 2 is -0.2"},
               {{0.5, NAN, 0.5}, 3, "probability 1"},
               {{0.5, 0.5, 0}, 2, "2 probabilities for a world with 3"}};
  world_fixture f = world_open("world: {kind: bandit, arms: 3}", 1);
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    double theta[3] = {7, 7, 7};
    gl_error err = {0};
    gl_status status = toy_world_set_probs(f.world, 0, table[i].p, table[i].n, theta, &err);
    CU_ASSERT(status == GL_EINPUT && strstr(err.text, table[i].says) != NULL);
    CU_ASSERT(theta[0] == 7);
  }
  f = world_open("world: {kind: bandit, arms: 3, policy: {kind: loglinear}}", 1);
  double theta[64], p[3] = {0.2, 0.3, 0.5};
  gl_error err = {0};
  CU_ASSERT(toy_world_set_probs(f.world, 0, p, 3, theta, &err) == GL_EINPUT);
  CU_ASSERT(strstr(err.text, "tabular") != NULL);
}

TEST(learners_start_from_their_init) {
  world_fixture f = world_open("world: {kind: bandit, arms: 4}", 1);
  double theta[4] = {9, 9, 9, 9}, other[4];
  toy_world_initial(f.world, 1, theta);
  for (size_t j = 0; j < 4; ++j) CU_ASSERT(theta[j] == 0);
  f = world_open("world: {kind: bandit, arms: 4, policy: {init: {kind: normal, scale: 2}}}", 1);
  toy_world_initial(f.world, 1, theta);
  toy_world_initial(f.world, 2, other);
  for (size_t j = 0; j < 4; ++j) {
    CU_ASSERT(theta[j] != other[j]);
    double z = rng_normal(rng_block(rng_stream_at(1, RNG_INIT, 0), j));
    CU_ASSERT(theta[j] == 2 * z);
  }
  f = world_open("world: {kind: bandit, arms: 2, contexts: 2, policy: {init: {kind: probs, probs: "
                 "[[0.9, 0.1], [0.25, 0.75]]}}}",
                 1);
  toy_world_initial(f.world, 1, theta);
  world_log_responses(&f, theta, 1, 0, other);
  ASSERT_CLOSE(exp(other[0]), 0.25, 1e-15);
}

TEST(worlds_depend_on_their_seed_alone) {
  const char *text = "world: {kind: bandit, arms: 6, rewards: {distribution: normal, mean: 3}}";
  world_fixture a = world_open(text, 1), b = world_open(text, 1), c = world_open(text, 2);
  for (size_t y = 0; y < 6; ++y) {
    CU_ASSERT(a.world->reward[y] == b.world->reward[y]);
    CU_ASSERT(a.world->reward[y] != c.world->reward[y]);
  }
  CU_ASSERT(toy_world_fingerprint(a.world) == toy_world_fingerprint(b.world));
  CU_ASSERT(toy_world_fingerprint(a.world) != toy_world_fingerprint(c.world));
}

/* 4,000 rewards a distribution; each bound fails less than once in a million (4.9 standard errors).
 */
TEST(random_rewards_follow_their_dist) {
  static const struct {
    const char *dist;
    double mean, sd;
  } table[] = {{"{distribution: uniform, low: -1, high: 3}", 1, 1.1547005383792515},
               {"{distribution: normal, mean: 2, sd: 0.5}", 2, 0.5},
               {"{distribution: bernoulli, p: 0.3}", 0.3, 0.458257569495584}};
  for (size_t i = 0; i < 3; ++i) {
    char text[200];
    snprintf(text, sizeof text, "world: {kind: bandit, arms: 4, contexts: 1000, rewards: %s}",
             table[i].dist);
    world_fixture f = world_open(text, 9);
    double sum = 0, squares = 0;
    for (size_t k = 0; k < 4000; ++k) sum += f.world->reward[k];
    for (size_t k = 0; k < 4000; ++k)
      squares += (f.world->reward[k] - sum / 4000) * (f.world->reward[k] - sum / 4000);
    CU_ASSERT(fabs(sum / 4000 - table[i].mean) < 4.9 * table[i].sd / sqrt(4000));
    /* the kurtosis of these distributions is at most 3: var(sd) <= sd^2 / (2 n) */
    CU_ASSERT(fabs(sqrt(squares / 3999) / table[i].sd - 1) < 4.9 / sqrt(8000));
  }
}

/* --- features --- */

/* One prompt's token log-probabilities into logp[k * max_length]. */
static void token_logps(const world_fixture *f, const double *theta, size_t x, double *logp) {
  gl_error err = {0};
  CU_ASSERT_FATAL(f->e.ops->log_probs(f->e.self, theta, x, logp, &err) == GL_OK);
}

TEST(features_without_the_prompt_are_shared_by_all_prompts) {
  world_fixture f = world_open("world: {kind: sequence, vocabulary: 2, horizon: 2, prompts: 2, "
                               "policy: {kind: loglinear, features: [position*last, sum]}}",
                               1);
  CU_ASSERT(f.n == (2 * 3 + 2) * 2);
  double *theta = fixture_doubles(f.n), a[8], b[8];
  fixture_normals(theta, f.n, 1, 1);
  token_logps(&f, theta, 0, a);
  token_logps(&f, theta, 1, b);
  CU_ASSERT(memcmp(a, b, sizeof a) == 0);
  /* log-odds of the second token after token 1: rows position*last = (1, 2) and sum = 1 */
  double odds = theta[(1 * 3 + 2) * 2 + 1] - theta[(1 * 3 + 2) * 2] + theta[(6 + 1) * 2 + 1] -
                theta[(6 + 1) * 2];
  ASSERT_CLOSE(a[3 * 2 + 1] - a[2 * 2 + 1], odds, 1e-12);
}

TEST(explicit_and_random_features_are_inner_products) {
  world_fixture f = world_open("world: {kind: bandit, rewards: [1, 2, 3], policy: {kind: "
                               "loglinear, features: [[1, 0], [0, 1], [2, -1]]}}",
                               1);
  double theta[2] = {0.7, -0.4}, logp[3];
  token_logps(&f, theta, 0, logp);
  ASSERT_CLOSE(logp[1] - logp[0], -0.4 - 0.7, 1e-14);
  ASSERT_CLOSE(logp[2] - logp[0], 1.8 - 0.7, 1e-14);
  /* Mean square length 1 for each prompt and token: the sum of 400 * 8 squares of N(0, 1/8) has
   * standard deviation sqrt(2 * 3200) / 8 = 10; 4.9 of them fail once in a million. */
  f = world_open("world: {kind: bandit, arms: 4, contexts: 100, policy: {kind: loglinear, "
                 "features: random}}",
                 1);
  double squares = 0;
  for (size_t i = 0; i < 400 * 8; ++i)
    squares += f.world->features.value[i] * f.world->features.value[i];
  CU_ASSERT(fabs(squares - 400) < 49);
}

TEST(hashed_features_share_their_buckets) {
  world_fixture f = world_open("world: {kind: sequence, vocabulary: 3, horizon: 3, prompts: 4, "
                               "policy: {kind: loglinear, hash: 6}}",
                               1);
  CU_ASSERT(f.n == 6 * 3);
  int used[6] = {0};
  const toy_features *t = &f.world->features;
  for (size_t i = 0; i < t->n_prompts * t->n_nodes * t->width; ++i) {
    CU_ASSERT_FATAL(t->index[i] >= 0 && t->index[i] < 6);
    used[t->index[i]] = 1;
  }
  for (int i = 0; i < 6; ++i) CU_ASSERT(used[i]);
}
