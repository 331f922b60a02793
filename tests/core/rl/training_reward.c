/* What training sees of rewards. */
#include "core/rl/training_reward.h"
#include "tests/support/toy_fixture.h"

#include <math.h>

static void shares_are_those_that_were_asked_for(void) {
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

static void nothing_asked_for_changes_nothing(void) {
  const training_reward t = {0};
  for (uint64_t x = 0; x < 100; ++x)
    CU_ASSERT_EQUAL(training_reward_of(&t, 7, x, 3, x, -2.5), -2.5);
}

/* A world whose every reward is 1: what training sees is 0 where something is wrong, and scores are
 * still 1. */
static void evaluations_score_prompts_as_they_are(void) {
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
    learner_close(&l);
  }
}

static void rewards_that_cannot_be_flipped_are_refused(void) {
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

SUITE(core_training_reward, "core: rewards of training", TEST(shares_are_those_that_were_asked_for),
      TEST(nothing_asked_for_changes_nothing), TEST(evaluations_score_prompts_as_they_are),
      TEST(rewards_that_cannot_be_flipped_are_refused));
