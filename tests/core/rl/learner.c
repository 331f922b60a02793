/* What learners share: minibatches, the age of what their updates train, rewards of training, and
 * dynamic sampling. */
#include "core/rl/group_filter.h"

#include "tests/support/suite.h"
#include "tests/support/toy_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("core: learners");

/* Groups of one response each, of so many tokens, all of one version. */
static batch groups_of(const size_t *lengths, size_t n, int64_t version) {
  batch b;
  CU_ASSERT_EQUAL_FATAL(batch_init(&b, 1, n, 1, lengths, NULL), GL_OK);
  for (size_t k = 0; k < b.n_tokens; ++k) b.version[k] = version;
  return b;
}

static double age(const learner_passes *p, batch *const *batches, size_t n, int64_t version) {
  double value[METRIC_COUNT];
  metrics_clear(value);
  ASSERT_OK(learner_staleness(p, batches, n, version, value, &err));
  const double updates = (double)(p->minibatches * p->epochs);
  ASSERT_CLOSE(value[METRIC_STALENESS_UPDATES],
               updates * value[METRIC_STALENESS] + value[METRIC_STALENESS_WITHIN], 1e-12);
  return value[METRIC_STALENESS_UPDATES];
}

/* Every token is trained twice, once by one of the updates 0 .. 3 and once by one of 4 .. 7, and
 * groups are alike: (0 + ... + 7) / 8 = 3.5. A version is 4 x 2 updates: 2 versions are 16 more. */
TEST(four_minibatches_and_two_epochs_are_eight_updates) {
  const size_t lengths[8] = {5, 5, 5, 5, 5, 5, 5, 5};
  const learner_passes passes = {.minibatches = 4, .epochs = 2, .seed = 3};
  batch fresh = groups_of(lengths, 8, 6), old = groups_of(lengths, 8, 4);
  ASSERT_CLOSE(age(&passes, &(batch *){&fresh}, 1, 6), 3.5, 1e-15);
  ASSERT_CLOSE(age(&passes, &(batch *){&old}, 1, 6), 19.5, 1e-15);
  ASSERT_CLOSE(age(&passes, (batch *[]){&fresh, &old}, 2, 6), 11.5, 1e-15);
  batch_fini(&fresh);
  batch_fini(&old);
}

/* One update of a step trains all tokens at once: their mean age is the mean version gap. */
TEST(one_update_a_step_has_the_staleness_of_versions) {
  const size_t lengths[2] = {1, 3};
  const learner_passes passes = {.minibatches = 1, .epochs = 1, .seed = 3};
  batch a = groups_of(lengths, 2, 2), b = groups_of(lengths, 1, 5);
  ASSERT_CLOSE(age(&passes, (batch *[]){&a, &b}, 2, 7), (4 * 5 + 1 * 2) / 5.0, 1e-15);
  batch_fini(&a);
  batch_fini(&b);
}

/* Each of two epochs trains all tokens at once: ages 0 and 1, and 2 updates a version. */
TEST(epochs_without_minibatches_are_updates_too) {
  const size_t lengths[2] = {1, 3};
  const learner_passes passes = {.minibatches = 1, .epochs = 2, .seed = 3};
  batch b = groups_of(lengths, 2, 4);
  ASSERT_CLOSE(age(&passes, &(batch *){&b}, 1, 4), 0.5, 1e-15);
  ASSERT_CLOSE(age(&passes, &(batch *){&b}, 1, 7), 6.5, 1e-15);
  batch_fini(&b);
}

/* Three groups in two minibatches: the first takes one, the second two. By hand from the order that
 * the step's shuffle has. */
TEST(longer_groups_weigh_by_their_tokens) {
  const size_t lengths[3] = {1, 2, 4};
  const learner_passes passes = {.minibatches = 2, .epochs = 1, .seed = 11};
  size_t order[3];
  learner_shuffle(order, 3, 11, 9, 0);
  batch b = groups_of(lengths, 3, 9);
  const double later = (double)(lengths[order[1]] + lengths[order[2]]);
  CU_ASSERT_EQUAL(learner_minibatch(1, 2, 3), 1);
  CU_ASSERT_EQUAL(learner_minibatch(2, 2, 3), 3);
  ASSERT_CLOSE(age(&passes, &(batch *){&b}, 1, 9), later / 7, 1e-15);
  batch_fini(&b);
}

/* Two batches that hold a response each of one group, and one of another group: the ages are those
 * of the same groups in one batch. */
TEST(parts_of_a_group_count_as_the_group) {
  const learner_passes passes = {2, 3, 5};
  const size_t length[3] = {2, 3, 1};
  batch whole[2], part[3], *together[2] = {&whole[0], &whole[1]}, *apart[3];
  double expected[METRIC_COUNT], found[METRIC_COUNT];
  ASSERT_OK(batch_init(&whole[0], 1, 1, 2, length, &err));
  ASSERT_OK(batch_init(&whole[1], 2, 1, 1, length + 2, &err));
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_OK(batch_init(&part[i], 1 + i / 2, 1, 1, length + i, &err));
    apart[i] = &part[i];
  }
  part[1].continues = 1;
  for (int64_t version = 4; version < 8; ++version) {
    ASSERT_OK(learner_staleness(&passes, together, 2, version, expected, &err));
    ASSERT_OK(learner_staleness(&passes, apart, 3, version, found, &err));
    CU_ASSERT_EQUAL(found[METRIC_STALENESS], expected[METRIC_STALENESS]);
    CU_ASSERT_EQUAL(found[METRIC_STALENESS_UPDATES], expected[METRIC_STALENESS_UPDATES]);
  }
  for (size_t i = 0; i < 3; ++i) batch_fini(&part[i]);
  for (size_t i = 0; i < 2; ++i) batch_fini(&whole[i]);
}

/* --- rewards of training --- */

SUITE("core: rewards of training");

TEST(shares_are_those_that_were_asked_for) {
  const training_reward t = {.unsolvable = 0.3, .flip = 0.1};
  double prompts = 0, flips = 0, rewards = 0;
  for (uint64_t x = 0; x < 20000; ++x) {
    const int unsolvable = training_reward_of(&t, 7, 0, 0, x, 1) == 0 &&
                           training_reward_of(&t, 7, 1, 5, x, 1) == 0 &&
                           training_reward_of(&t, 7, 2, 9, x, 1) == 0;
    prompts += unsolvable;
    /* an unsolvable prompt is never rewarded: a reward of 0 is not flipped either */
    for (size_t i = 0; i < 4 && unsolvable; ++i)
      CU_ASSERT_EQUAL(training_reward_of(&t, 7, 3, i, x, 0), 0);
    if (unsolvable) continue;
    rewards += 1;
    const double seen = training_reward_of(&t, 7, x, 0, x, 0.25);
    CU_ASSERT(seen == 0.25 || seen == 0.75);
    flips += seen == 0.75;
  }
  CU_ASSERT(fabs(prompts / 20000 - (0.3 + 0.7 * 0.001)) < 4.9 * sqrt(0.21 / 20000));
  CU_ASSERT(fabs(flips / rewards - 0.1) < 4.9 * sqrt(0.09 / rewards));
}

TEST(nothing_asked_for_changes_nothing) {
  const training_reward t = {0};
  for (uint64_t x = 0; x < 100; ++x)
    CU_ASSERT_EQUAL(training_reward_of(&t, 7, x, 3, x, -2.5), -2.5);
}

/* A world whose every reward is 1: what training sees is 0 where something is wrong, and scores are
 * still 1. */
TEST(evaluations_score_prompts_as_they_are) {
  static const char *const trains[] = {"unsolvable: 1", "reward_noise: {flip: 1}"};
  for (size_t k = 0; k < 2; ++k) {
    char text[200];
    double metrics[METRIC_COUNT];
    snprintf(text, sizeof text, "world: {kind: bandit, rewards: [1, 1]}\ntrain: {%s}", trains[k]);
    learner_fixture l = learner_open(text, 2);
    batch b = learner_draw(&l, 1);
    learner_update(&l, &b, metrics);
    CU_ASSERT_EQUAL(metrics[METRIC_REWARD_MEAN], 0);
    ASSERT_CLOSE(learner_score(&l), 1, 1e-15);
    batch_fini(&b);
  }
}

TEST(rewards_that_cannot_be_flipped_are_refused) {
  static const char *const worlds[] = {"rewards: [2, 0]", "rewards: [-1, 0]",
                                       "rewards: [0.5, 0], noise: 1"};
  for (size_t k = 0; k < 3; ++k) {
    char text[200];
    learner_fixture l;
    gl_error err = {0};
    snprintf(text, sizeof text, "world: {kind: bandit, %s}\ntrain: {reward_noise: {flip: 0.1}}",
             worlds[k]);
    CU_ASSERT_EQUAL(learner_try(&l, text, 2, &err), GL_EINPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "reward_noise.flip"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "r.yaml:2:"));
    cfg_free(l.doc);
  }
}

/* --- dynamic sampling --- */

SUITE("core: dynamic sampling");

/* Rewards 0 and 1 with probability 1/2 each. */
static const char coin[] = "world: {kind: bandit, rewards: [1, 0]}\n"
                           "algorithm: grpo\ntrain: {groups: 4, group_size: 4}\n";

static draw_request whole(const learner_fixture *f, uint64_t id) {
  return (draw_request){id, f->toy->update.version, f->n_groups, f->group_size, 0, 1, 0, NULL, NULL,
                        0};
}

static batch filtered(learner_fixture *f, const group_filter *filter, uint64_t id,
                      group_rounds *rounds) {
  batch b = {0};
  gl_error err = {0};
  const draw_request r = whole(f, id);
  gl_status status = group_filter_draw(filter, &f->learner, &r, &b, rounds, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  return b;
}

/* A group of G fair coins differs with probability p = 1 - 2^(1 - G). Drawn one by one, n groups
 * that differ take n / p draws in the mean, with variance n (1 - p) / p^2 each (negative binomial);
 * drawn in rounds of m, the mean number of rounds is the sum over k of the probability that k m
 * draws have fewer than n. Both means of 4,000 batches lie within 4.9 standard errors in all but
 * one of a million cases. */
TEST(the_mean_number_of_draws_is_the_closed_form) {
  enum { BATCHES = 4000, N = 4, G = 4, M = 3 };
  const double p = 1 - pow(2, 1 - G);
  double mean_rounds = 0, square = 0;
  for (size_t k = 0; k < 200; ++k) {
    double fewer = 0, term = pow(1 - p, (double)(k * M));
    for (size_t j = 0; j < N && j <= k * M; ++j) {
      fewer += term;
      term *= (double)(k * M - j) / (double)(j + 1) * p / (1 - p);
    }
    mean_rounds += fewer;
    square += (2 * (double)k + 1) * fewer; /* E[R^2] = sum of (2 k + 1) P(R > k) */
  }
  const struct {
    size_t round;
    double mean, variance;
  } cases[] = {{1, N / p, N * (1 - p) / (p * p)},
               {M, mean_rounds, square - mean_rounds * mean_rounds}};
  learner_fixture f = learner_open(coin, 7);
  for (size_t i = 0; i < 2; ++i) {
    const group_filter filter = {1, 200, cases[i].round, FILTER_FAIL};
    double sum = 0;
    for (uint64_t id = 0; id < BATCHES; ++id) {
      group_rounds rounds;
      batch b = filtered(&f, &filter, id, &rounds);
      for (size_t g = 0; g < b.n_groups; ++g) CU_ASSERT(batch_rewards_differ(&b, g));
      CU_ASSERT_EQUAL(rounds.responses, cases[i].round * G);
      sum += (double)rounds.n;
      group_rounds_fini(&rounds);
      batch_fini(&b);
    }
    const double error = sqrt(cases[i].variance / BATCHES);
    CU_ASSERT(fabs(sum / BATCHES - cases[i].mean) < 4.9 * error);
  }
}

/* The groups of an id are the same in rounds of any size: those of one large batch. */
TEST(groups_are_those_of_a_larger_batch) {
  static const char *const worlds[] = {
      coin,
      "world: {kind: sequence, vocabulary: 3, horizon: 4, prompts: 5, end_token: true}\n"
      "sampling: {top_k: 2, behaviour: {noise: 0.1}}\ntrain: {groups: 4, group_size: 4, "
      "reward_noise: {flip: 0.2}}\n",
      "world: {kind: automaton, automaton: count, vocabulary: 6}\n"
      "train: {groups: 4, group_size: 4, reward_noise: {flip: 0.3}}\n",
      "world: {kind: bandit, contexts: 3, rewards: {distribution: bernoulli}}\n"
      "train: {groups: 4, group_size: 4}\n"};
  for (size_t w = 0; w < sizeof worlds / sizeof *worlds; ++w) {
    learner_fixture f = learner_open(worlds[w], 3);
    batch all = {0};
    gl_error err = {0};
    draw_request r = whole(&f, 11);
    r.n_groups = 60;
    CU_ASSERT_EQUAL_FATAL(f.learner.ops->draw(f.toy, &r, &all, &err), GL_OK);
    for (size_t round = 1; round <= 12; round += round < 3 ? 1 : 3) {
      const group_filter filter = {1, 60 / round, round, FILTER_FILL};
      group_rounds rounds;
      batch b = filtered(&f, &filter, 11, &rounds);
      size_t taken = 0;
      for (size_t g = 0; g < rounds.n * round && taken < 4; ++g) {
        const size_t i = all.group_start[g], k = all.token_start[i];
        const size_t tokens = all.token_start[all.group_start[g + 1]] - k;
        for (size_t j = i; j < all.group_start[g + 1]; ++j)
          CU_ASSERT_EQUAL(rounds.lengths[j], all.token_start[j + 1] - all.token_start[j]);
        if (!batch_rewards_differ(&all, g)) continue;
        const size_t to = b.token_start[b.group_start[taken]];
        CU_ASSERT_EQUAL(b.prompt[taken], all.prompt[g]);
        CU_ASSERT_EQUAL_FATAL(b.token_start[b.group_start[taken + 1]] - to, tokens);
        CU_ASSERT(memcmp(b.token + to, all.token + k, tokens * sizeof *b.token) == 0);
        CU_ASSERT(memcmp(b.logq + to, all.logq + k, tokens * sizeof *b.logq) == 0);
        CU_ASSERT(memcmp(b.logq_trunc + to, all.logq_trunc + k, tokens * sizeof *b.logq) == 0);
        CU_ASSERT(memcmp(b.reward + b.group_start[taken], all.reward + i, 4 * sizeof *b.reward) ==
                  0);
        ++taken;
      }
      CU_ASSERT_EQUAL(taken, 4);
      double metrics[METRIC_COUNT]; /* the batch can be trained: its distributions are where they
                                       belong */
      learner_update(&f, &b, metrics);
      CU_ASSERT(isfinite(metrics[METRIC_KL_EXACT]) && fabs(metrics[METRIC_KL_EXACT]) < 1);
      f.toy->update.version = 0;
      group_rounds_fini(&rounds);
      batch_fini(&b);
      f = learner_open(worlds[w], 3);
    }
    batch_fini(&all);
  }
}

/* A batch that needs no more than its first round is the one that is drawn without a filter. */
TEST(a_first_round_is_the_batch_without_a_filter) {
  learner_fixture f = learner_open(coin, 5);
  size_t equal = 0;
  for (uint64_t id = 0; id < 40; ++id) {
    const group_filter filter = {1, 50, 4, FILTER_FAIL};
    group_rounds rounds;
    batch b = filtered(&f, &filter, id, &rounds), plain = learner_draw(&f, id);
    if (rounds.n == 1) {
      CU_ASSERT(memcmp(b.token, plain.token, plain.n_tokens * sizeof *b.token) == 0);
      CU_ASSERT(b.n_dist == plain.n_dist &&
                memcmp(b.dist, plain.dist, b.n_dist * sizeof *b.dist) == 0);
      ++equal;
    }
    group_rounds_fini(&rounds);
    batch_fini(&b);
    batch_fini(&plain);
  }
  CU_ASSERT(equal > 10 && equal < 40);
}

/* Every reward is 0 where no prompt is solvable. */
TEST(an_exhausted_filter_fills_up_or_fails) {
  learner_fixture f = learner_open("world: {kind: bandit, rewards: [1, 0]}\n"
                                   "train: {groups: 4, group_size: 4, unsolvable: 1}\n",
                                   2);
  group_filter filter = {1, 3, 2, FILTER_FILL};
  group_rounds rounds;
  batch b = filtered(&f, &filter, 9, &rounds), plain = learner_draw(&f, 9);
  CU_ASSERT_EQUAL(rounds.n, 3);
  CU_ASSERT(memcmp(b.token, plain.token, plain.n_tokens * sizeof *b.token) == 0);
  group_rounds_fini(&rounds);
  batch_fini(&b);
  batch_fini(&plain);
  filter.exhausted = FILTER_FAIL;
  gl_error err = {0};
  const draw_request r = whole(&f, 9);
  CU_ASSERT_EQUAL(group_filter_draw(&filter, &f.learner, &r, &b, &rounds, &err), GL_ENUMERIC);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "only 0 of 6 groups"));
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "max_num_gen_batches"));
  CU_ASSERT(rounds.lengths == NULL && b.token == NULL);
}

/* --- reading --- */

static gl_status read_text(group_filter *f, const char *section, size_t groups, size_t size,
                           gl_error *err) {
  char text[300];
  cfg_doc *doc = NULL;
  cfg_reader r;
  snprintf(text, sizeof text, "filter_groups: %s\n", section);
  CU_ASSERT_EQUAL_FATAL(cfg_load_text(&doc, text, strlen(text), "filter", err), GL_OK);
  cfg_begin(&r, cfg_root(doc), "train", err);
  gl_status status = group_filter_read(f, &r, groups, size);
  cfg_free(doc);
  return status;
}

TEST(a_filter_is_read_and_refused_at_its_place) {
  static const struct {
    const char *text, *says;
    size_t size;
  } wrong[] = {
      {"{max_num_gen_batches: 3}", "enable: true or enable: false", 8},
      {"{enable: true}", "a group of one response", 1},
      {"{enable: true, gen_batch_size: 1, max_num_gen_batches: 3}", "at most 3 x 1 groups", 8},
      {"{enable: true, max_num_gen_batches: 100000, gen_batch_size: 100000}", "can address", 8},
      {"{enable: true, max_num_gen_batchs: 3}", "max_num_gen_batches", 8},
      {"{enable: true, exhausted: stop}", "fill", 8},
      {"{enable: perhaps}", "true or false", 8},
  };
  group_filter f;
  gl_error err = {0};
  CU_ASSERT_EQUAL(read_text(&f, "{enable: true}", 6, 8, &err), GL_OK);
  CU_ASSERT(f.is_on && f.most == 10 && f.groups == 6 && f.exhausted == FILTER_FILL);
  CU_ASSERT_EQUAL(group_filter_largest(&f, 6), 6);
  CU_ASSERT_EQUAL(read_text(&f, "{enable: true, gen_batch_size: 18, exhausted: fail}", 6, 8, &err),
                  GL_OK);
  CU_ASSERT(f.groups == 18 && f.exhausted == FILTER_FAIL && group_filter_largest(&f, 6) == 18);
  CU_ASSERT_EQUAL(read_text(&f, "{enable: false, gen_batch_size: 18}", 6, 1, &err), GL_OK);
  CU_ASSERT(!f.is_on && group_filter_largest(&f, 6) == 6);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    gl_error why = {0};
    CU_ASSERT_EQUAL(read_text(&f, wrong[i].text, 6, wrong[i].size, &why), GL_EINPUT);
    const int right = strstr(why.text, wrong[i].says) != NULL && strstr(why.text, "filter:1:") != 0;
    if (!right) fprintf(stderr, "%s: %s\n", wrong[i].text, why.text);
    CU_ASSERT(right);
  }
}
