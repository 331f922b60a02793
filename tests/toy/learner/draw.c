/* Drawing: tokens follow the distribution they claim, at addresses that nothing else can move. */
#include "tests/support/toy_fixture.h"

#include <gsl/gsl_cdf.h>

SUITE("toy: drawing");

/* A statistical test here fails by chance once in a million; the seeds are fixed besides. */
static const double error_rate = 1e-6;

/* The number of a response from its tokens, or k if they are none. */
static size_t response_number(const response_tree *t, const int32_t *token, size_t n) {
  int32_t at = 0;
  for (size_t i = 0; i < n && at >= 0; ++i)
    at = t->next[(size_t)at * t->vocabulary + (size_t)token[i]];
  return at < 0 ? (size_t)~at : t->n_responses;
}

/* Chi-square of counts against probabilities, what is expected less than five times in one cell;
 * what is impossible must not have occurred. A distribution of one response leaves nothing else to
 * test. */
static void check_counts(const double *count, const double *p, size_t k, double n) {
  double chi = 0, cells = 0, rare = 0, rare_p = 0;
  for (size_t y = 0; y < k; ++y) {
    if (p[y] == 0) CU_ASSERT(count[y] == 0);
    if (n * p[y] < 5) {
      rare += count[y];
      rare_p += p[y];
      continue;
    }
    chi += (count[y] - n * p[y]) * (count[y] - n * p[y]) / (n * p[y]);
    ++cells;
  }
  if (n * rare_p >= 5) {
    chi += (rare - n * rare_p) * (rare - n * rare_p) / (n * rare_p);
    ++cells;
  }
  CU_ASSERT(cells == 1 ? chi < 1e-9 : gsl_cdf_chisq_Q(chi, cells - 1) > error_rate);
}

/* Draws of a one-prompt world with that sampling section against its exact distribution. */
static void check_draws(const char *world, const char *sampling) {
  char text[600];
  snprintf(text, sizeof text, "world: %s\nsampling: %s\ntrain: {groups: 1, group_size: 20000}",
           world, sampling);
  learner_fixture l = learner_open(text, 8);
  world_fixture f = world_open(text, 8);
  double *p = fixture_doubles(2 * f.k), *count = p + f.k;
  batch b = learner_draw(&l, 4);
  for (size_t i = 0; i < b.n_responses; ++i) {
    size_t n = b.token_start[i + 1] - b.token_start[i];
    size_t y = response_number(&f.world->tree, b.token + b.token_start[i], n);
    CU_ASSERT_FATAL(y < f.k);
    ++count[y];
  }
  world_log_responses(&f, l.toy->theta, 0, 1, p);
  for (size_t y = 0; y < f.k; ++y) p[y] = exp(p[y]);
  check_counts(count, p, f.k, (double)b.n_responses);
  batch_fini(&b);
}

TEST(draws_follow_their_dist_under_temperature_and_truncation) {
  static const char *const samplings[] = {"{temperature: 1}", "{temperature: 0.6}", "{top_k: 2}",
                                          "{top_p: 0.7, temperature: 1.5}",
                                          "{top_k: 2, top_p: 0.6}"};
  const char *bandit = "{kind: bandit, arms: 6, policy: {init: {kind: normal, scale: 1}}}";
  const char *letters = "{kind: sequence, vocabulary: 3, horizon: 3, prompts: 1, policy: {init: "
                        "{kind: normal, scale: 0.5}}}";
  const char *ending = "{kind: sequence, vocabulary: 2, horizon: 4, prompts: 1, end_token: true, "
                       "policy: {kind: loglinear, init: {kind: normal, scale: 0.3}}}";
  for (size_t i = 0; i < sizeof samplings / sizeof *samplings; ++i) {
    check_draws(bandit, samplings[i]);
    check_draws(letters, samplings[i]);
    check_draws(ending, samplings[i]);
  }
}

/* A token of a decision process is an action and the state that follows. */
TEST(trajectories_follow_policy_and_environment) {
  check_draws("{kind: chain, states: 4, horizon: 4, slip: 0.3}", "{temperature: 1}");
  check_draws("{kind: gridworld, width: 2, height: 2, horizon: 3}", "{temperature: 1}");
  check_draws("{kind: garnet, states: 3, branching: 3, horizon: 2}", "{temperature: 1}");
  check_draws("{kind: token, horizon: 3}", "{temperature: 0.6, top_k: 2}");
}

TEST(prompts_are_drawn_uniformly) {
  learner_fixture l =
      learner_open("world: {kind: bandit, contexts: 7}\ntrain: {groups: 20000, group_size: 1}\n"
                   "algorithm: topr",
                   2);
  double count[7] = {0}, p[7];
  batch b = learner_draw(&l, 1);
  for (size_t g = 0; g < b.n_groups; ++g) ++count[b.prompt[g]];
  for (size_t x = 0; x < 7; ++x) p[x] = 1 / 7.0;
  check_counts(count, p, 7, 20000);
  batch_fini(&b);
}

/* Mean and spread of the rewards of one arm. The bounds are 4.9 standard errors: once in a million
 * each. */
static void check_noise(const batch *b, int32_t arm, double mean, double sd) {
  double n = 0, sum = 0, squares = 0;
  for (size_t k = 0; k < b->n_responses; ++k) {
    if (b->token[k] != arm) continue;
    n += 1;
    sum += b->reward[k];
    squares += (b->reward[k] - mean) * (b->reward[k] - mean);
  }
  CU_ASSERT(fabs(sum / n - mean) < 4.9 * sd / sqrt(n));
  CU_ASSERT(fabs(sqrt(squares / n) / sd - 1) < 4.9 / sqrt(2 * n));
}

/* By arm, for noise must not follow the draw of the token. */
TEST(noise_has_the_mean_and_spread_it_was_given) {
  static const char *const noises[] = {"bernoulli", "2"};
  const double sd[] = {0.458257569495584, 2};
  for (size_t i = 0; i < 2; ++i) {
    char text[200];
    snprintf(text, sizeof text,
             "world: {kind: bandit, rewards: [0.3, 0.3], noise: %s}\n"
             "train: {groups: 1, group_size: 20000}",
             noises[i]);
    learner_fixture l = learner_open(text, 2);
    batch b = learner_draw(&l, 1);
    check_noise(&b, 0, 0.3, sd[i]);
    check_noise(&b, 1, 0.3, sd[i]);
    ASSERT_CLOSE(learner_score(&l), 0.3, 1e-15); /* exact quantities use the mean */
    batch_fini(&b);
  }
}

/* --- addresses --- */

static const char *const ending_world =
    "world: {kind: sequence, vocabulary: 3, horizon: 5, prompts: 4, end_token: true, task: target, "
    "reward: graded, policy: {kind: loglinear, init: {kind: normal, scale: 1}}}\n"
    "sampling: {top_k: 3, temperature: 0.8}\n"
    "train: {groups: 6, group_size: 5}\n"
    "optimizer: {kind: sgd, lr: 2}\nalgorithm: reinforce";

static void check_equal(const batch *a, const batch *b) {
  CU_ASSERT_FATAL(batch_is_consistent(a) && batch_is_consistent(b));
  CU_ASSERT_FATAL(a->id == b->id && a->n_groups == b->n_groups && a->n_dist == b->n_dist);
  CU_ASSERT_FATAL(a->n_responses == b->n_responses && a->n_tokens == b->n_tokens);
  size_t tokens = a->n_tokens;
  CU_ASSERT(memcmp(a->prompt, b->prompt, a->n_groups * sizeof *a->prompt) == 0);
  CU_ASSERT(memcmp(a->reward, b->reward, a->n_responses * sizeof *a->reward) == 0);
  CU_ASSERT(memcmp(a->token_start, b->token_start, a->n_responses * sizeof *a->token_start) == 0);
  CU_ASSERT(memcmp(a->token, b->token, tokens * sizeof *a->token) == 0);
  CU_ASSERT(memcmp(a->version, b->version, tokens * sizeof *a->version) == 0);
  CU_ASSERT(memcmp(a->logq, b->logq, tokens * sizeof *a->logq) == 0);
  CU_ASSERT(memcmp(a->logq_trunc, b->logq_trunc, tokens * sizeof *a->logq_trunc) == 0);
  CU_ASSERT(memcmp(a->dist, b->dist, a->n_dist * sizeof *a->dist) == 0);
}

TEST(a_batch_does_not_depend_on_what_was_drawn_before) {
  learner_fixture one = learner_open(ending_world, 3), two = learner_open(ending_world, 3);
  batch a = learner_draw(&one, 7), other = learner_draw(&two, 8);
  learner_score(&two);
  batch b = learner_draw(&two, 7);
  check_equal(&a, &b);
  batch_fini(&a);
  batch_fini(&b);
  b = learner_draw(&one, 8);
  check_equal(&other, &b);
  batch_fini(&b);
  batch_fini(&other);
}

/* Another seed, or another id, is another draw. */
TEST(seeds_and_batches_have_draws_of_their_own) {
  learner_fixture one = learner_open(ending_world, 3), two = learner_open(ending_world, 4);
  batch a = learner_draw(&one, 7), b = learner_draw(&two, 7), c = learner_draw(&one, 8);
  const batch *others[] = {&b, &c};
  for (size_t i = 0; i < 2; ++i) {
    size_t n = a.n_tokens < others[i]->n_tokens ? a.n_tokens : others[i]->n_tokens;
    CU_ASSERT(memcmp(a.token, others[i]->token, n * sizeof *a.token) != 0);
  }
  batch_fini(&a);
  batch_fini(&b);
  batch_fini(&c);
}

TEST(a_batch_drawn_in_parts_is_the_batch_drawn_whole) {
  static const double cuts[][4] = {{0, 0.5, 1, 1}, {0, 1.0 / 3, 0.4, 1}, {0, 0.01, 0.99, 1}};
  learner_fixture l = learner_open(ending_world, 3);
  batch whole = learner_draw(&l, 9);
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; ++i) {
    batch b = {0};
    for (size_t k = 0; k < 3; ++k)
      if (cuts[i][k] < cuts[i][k + 1]) learner_draw_part(&l, 9, cuts[i][k], cuts[i][k + 1], &b);
    check_equal(&whole, &b);
    batch_fini(&b);
  }
  batch_fini(&whole);
}

/* --- what a batch records --- */

/* logq and logq_trunc of every token against the view's tables for its prompt. */
static void check_recorded(const world_fixture *f, const double *theta, const batch *b) {
  const size_t width = f->e.max_length;
  double *raw = fixture_doubles(2 * f->k * width), *cut = raw + f->k * width;
  gl_error err = {0};
  for (size_t g = 0; g < b->n_groups; ++g) {
    size_t x = (size_t)b->prompt[g];
    CU_ASSERT(f->e.ops->log_probs(f->e.self, theta, x, raw, &err) == GL_OK);
    CU_ASSERT(f->e.ops->log_probs_truncated(f->e.self, theta, x, cut, &err) == GL_OK);
    for (size_t i = b->group_start[g]; i < b->group_start[g + 1]; ++i) {
      size_t start = b->token_start[i], n = b->token_start[i + 1] - start;
      size_t y = response_number(&f->world->tree, b->token + start, n);
      CU_ASSERT_FATAL(y < f->k && n == f->e.ops->length(f->e.self, x, y));
      CU_ASSERT(b->reward[i] == f->world->reward[x * f->k + y]);
      for (size_t t = 0; t < n; ++t) {
        CU_ASSERT(b->logq[start + t] == raw[y * width + t]);
        CU_ASSERT(b->logq_trunc[start + t] == cut[y * width + t]);
        CU_ASSERT(b->version[start + t] == 0);
      }
    }
  }
}

TEST(a_batch_records_both_log_probabilities_of_its_tokens) {
  learner_fixture l = learner_open(ending_world, 3);
  world_fixture f = world_open(ending_world, 3);
  batch b = learner_draw(&l, 2);
  check_recorded(&f, l.toy->theta, &b);
  batch_fini(&b);
}

/* Position of an edge's token in its response. */
static size_t depth_of(const response_tree *t, size_t edge) {
  size_t d = 0;
  while (edge / t->vocabulary >= t->level[d + 1]) ++d;
  return d;
}

/* The distribution that a batch claims for prompt x: version 0 before position `cut`, version 1
 * after. */
static void check_mixed_dist(const response_tree *t, const double *dist, const double *old_dist,
                             const double *new_dist, size_t cut) {
  for (size_t e = 0; e < t->n_edges; ++e)
    CU_ASSERT(dist[e] == (depth_of(t, e) < cut ? old_dist : new_dist)[e]);
  double sum = 0;
  for (size_t y = 0; y < t->n_responses; ++y) {
    double logp = 0;
    for (size_t i = 0; i < (size_t)t->length[y]; ++i) logp += dist[t->path[y * t->horizon + i]];
    sum += exp(logp);
  }
  ASSERT_CLOSE(sum, 1, 1e-13);
}

static void check_mixed_tokens(const response_tree *t, const batch *b, const double *dist, size_t i,
                               size_t cut) {
  int32_t at = 0;
  for (size_t k = b->token_start[i]; k < b->token_start[i + 1]; ++k) {
    size_t edge = (size_t)at * t->vocabulary + (size_t)b->token[k];
    CU_ASSERT(b->logq[k] == dist[edge]);
    CU_ASSERT(b->version[k] == (k - b->token_start[i] < cut ? 0 : 1));
    at = t->next[edge];
  }
  CU_ASSERT(at < 0);
}

/* Weights change after three of five positions: fractions 0.5 and up begin at position 3. */
TEST(weights_that_change_in_flight_are_recorded_per_token) {
  learner_fixture l = learner_open(ending_world, 3);
  const response_tree *t = &l.toy->world->tree;
  const size_t edges = t->n_edges, prompts = l.toy->world->n_prompts, cut = 3;
  double *old_dist = fixture_doubles(2 * prompts * edges), *new_dist = old_dist + prompts * edges;
  double metrics[METRIC_COUNT];
  batch b = {0}, trained = learner_draw(&l, 1);
  for (size_t x = 0; x < prompts; ++x)
    toy_log_probs(l.toy->world, l.toy->theta, x, old_dist + x * edges);
  learner_draw_part(&l, 2, 0, 0.5, &b);
  learner_update(&l, &trained, metrics);
  for (size_t x = 0; x < prompts; ++x)
    toy_log_probs(l.toy->world, l.toy->theta, x, new_dist + x * edges);
  CU_ASSERT(memcmp(old_dist, new_dist, prompts * edges * sizeof *old_dist) != 0);
  learner_draw_part(&l, 2, 0.5, 1, &b);
  CU_ASSERT_FATAL(toy_learner_slots(l.toy, &b) * edges == b.n_dist);
  for (size_t g = 0; g < b.n_groups; ++g) {
    size_t x = (size_t)b.prompt[g];
    const double *dist = b.dist + l.toy->slot[x] * edges;
    check_mixed_dist(t, dist, old_dist + x * edges, new_dist + x * edges, cut);
    for (size_t i = b.group_start[g]; i < b.group_start[g + 1]; ++i)
      check_mixed_tokens(t, &b, dist, i, cut);
  }
  batch_fini(&trained);
  batch_fini(&b);
}

/* Weights change at a position of its own in every response: as if all responses had changed theirs
 * there, which draws by fractions do, and each with a record of its own. */
static void responses_change_their_weights_each_by_itself(const char *world) {
  learner_fixture l = learner_open(world, 3);
  const size_t horizon = l.toy->world->tree.horizon, n = l.n_groups * l.group_size;
  double metrics[METRIC_COUNT];
  batch mixed = {0}, *at = calloc(horizon + 1, sizeof *at), trained = learner_draw(&l, 1);
  draw_span *span = calloc(n, sizeof *span);
  size_t *length = calloc(n, sizeof *length);
  CU_ASSERT_FATAL(at != NULL && span != NULL && length != NULL);
  for (size_t p = 1; p < horizon; ++p)
    learner_draw_part(&l, 2, 0, ((double)p - 0.5) / (double)horizon, &at[p]);
  gl_error err = {0};
  for (size_t i = 0; i < n; ++i) span[i] = (draw_span){0, horizon}; /* drawn ahead */
  draw_request r = {2, 0, l.n_groups, l.group_size, 0, 0.75, 0, span, length, 0};
  CU_ASSERT_FATAL(l.learner.ops->draw(l.toy, &r, &mixed, &err) == GL_OK);
  learner_update(&l, &trained, metrics);
  for (size_t p = 1; p < horizon; ++p)
    learner_draw_part(&l, 2, ((double)p - 0.5) / (double)horizon, 1, &at[p]);
  for (size_t i = 0; i < n; ++i) span[i] = (draw_span){1 + i % (horizon - 1), horizon};
  r.version = 1;
  r.from = 0.5;
  CU_ASSERT_FATAL(l.learner.ops->draw(l.toy, &r, &mixed, &err) == GL_OK);
  memset(span, 0, n * sizeof *span);
  r.to = 1;
  CU_ASSERT_FATAL(l.learner.ops->draw(l.toy, &r, &mixed, &err) == GL_OK);
  const toy_dists dists = toy_learner_dists(l.toy, &mixed, 0);
  CU_ASSERT_FATAL(dists.own && dists.parts > 0);
  for (size_t i = 0; i < n; ++i) {
    const batch *b = &at[1 + i % (horizon - 1)];
    const size_t k = mixed.token_start[i], j = b->token_start[i];
    const size_t tokens = mixed.token_start[i + 1] - k;
    CU_ASSERT_EQUAL_FATAL(b->token_start[i + 1] - j, tokens);
    CU_ASSERT(memcmp(mixed.token + k, b->token + j, tokens * sizeof *b->token) == 0);
    CU_ASSERT(memcmp(mixed.version + k, b->version + j, tokens * sizeof *b->version) == 0);
    CU_ASSERT(memcmp(mixed.logq + k, b->logq + j, tokens * sizeof *b->logq) == 0);
    CU_ASSERT_EQUAL(mixed.reward[i], b->reward[i]);
    size_t edge[64];
    const toy_behaviour own = {mixed.dist + i * toy_behaviour_size(l.toy->world, dists.parts),
                               dists.parts};
    CU_ASSERT_FATAL(tokens <= 64 && toy_walk(l.toy->world, mixed.token + k, tokens, edge));
    for (size_t t = 0; t < tokens; ++t)
      CU_ASSERT_EQUAL(toy_behaviour_node(l.toy->world, own, edge[t], t)[mixed.token[k + t]],
                      mixed.logq[k + t]);
  }
  learner_update(&l, &mixed, metrics);
  CU_ASSERT(isfinite(metrics[METRIC_LOSS]) && metrics[METRIC_KL_EXACT] > 0);
  for (size_t p = 0; p < horizon; ++p) batch_fini(&at[p]);
  batch_fini(&mixed);
  batch_fini(&trained);
  free(at);
  free(span);
  free(length);
}

TEST(responses_of_a_group_change_their_weights_by_themselves) {
  responses_change_their_weights_each_by_itself(ending_world);
  responses_change_their_weights_each_by_itself(
      "world: {kind: automaton, vocabulary: 3, horizon: 12, prompts: 2, automaton: count, modulus: "
      "3, "
      "listed: false}\ntrain: {groups: 3, group_size: 5}\nalgorithm: reinforce\n");
}

TEST(draws_that_make_no_sense_are_refused) {
  learner_fixture l = learner_open(ending_world, 3),
                  other = learner_open("world: {kind: bandit}", 3);
  static const draw_request bad[] = {
      {1, 0, 6, 5, 0.5, 0.5, 0, NULL, NULL, 0},
      {1, 0, 6, 5, -0.1, 1, 0, NULL, NULL, 0},
      {1, 0, 6, 5, 0, 1.1, 0, NULL, NULL, 0},
      {1, 0, 6, 5, NAN, 1, 0, NULL, NULL, 0},
      {1, 0, 0, 5, 0, 1, 0, NULL, NULL, 0},
      {1, 0, 6, 0, 0, 1, 0, NULL, NULL, 0},
      {1, 0, (size_t)1 << 60, (size_t)1 << 20, 0, 1, 0, NULL, NULL, 0}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    batch b = {0};
    gl_error err = {0};
    CU_ASSERT(l.learner.ops->draw(l.toy, &bad[i], &b, &err) != GL_OK && err.text[0] != '\0');
    batch_fini(&b);
  }
  batch b = {0};
  learner_draw_part(&l, 1, 0, 0.5, &b);
  static const draw_request next[] = {{2, 0, 6, 5, 0.5, 1, 0, NULL, NULL, 0},
                                      {1, 0, 5, 6, 0.5, 1, 0, NULL, NULL, 0},
                                      {1, 0, 6, 4, 0.5, 1, 0, NULL, NULL, 0}};
  for (size_t i = 0; i < sizeof next / sizeof *next; ++i) {
    gl_error err = {0};
    CU_ASSERT(l.learner.ops->draw(l.toy, &next[i], &b, &err) != GL_OK && err.text[0] != '\0');
  }
  gl_error err = {0};
  CU_ASSERT(other.learner.ops->draw(other.toy,
                                    &(draw_request){1, 0, 6, 5, 0.5, 1, 0, NULL, NULL, 0}, &b,
                                    &err) != GL_OK);
  b.token[3] = 99; /* damage: the continuation must not walk off the tree */
  gl_error_clear(&err);
  CU_ASSERT(l.learner.ops->draw(l.toy, &(draw_request){1, 0, 6, 5, 0.5, 1, 0, NULL, NULL, 0}, &b,
                                &err) == GL_EINPUT);
  batch_fini(&b);
}
