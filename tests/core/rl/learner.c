/* What learners share: minibatches, and the age of what their updates train. */
#include "core/rl/learner.h"

#include "tests/support/suite.h"

#include <stdlib.h>

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
  return value[METRIC_STALENESS_UPDATES];
}

/* Every token is trained twice, once by one of the updates 0 .. 3 and once by one of 4 .. 7, and
 * groups are alike: (0 + ... + 7) / 8 = 3.5. A version is 4 x 2 updates: 2 versions are 16 more. */
static void four_minibatches_and_two_epochs_are_eight_updates(void) {
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
static void one_update_a_step_has_the_staleness_of_versions(void) {
  const size_t lengths[2] = {1, 3};
  const learner_passes passes = {.minibatches = 1, .epochs = 1, .seed = 3};
  batch a = groups_of(lengths, 2, 2), b = groups_of(lengths, 1, 5);
  ASSERT_CLOSE(age(&passes, (batch *[]){&a, &b}, 2, 7), (4 * 5 + 1 * 2) / 5.0, 1e-15);
  batch_fini(&a);
  batch_fini(&b);
}

/* Each of two epochs trains all tokens at once: ages 0 and 1, and 2 updates a version. */
static void epochs_without_minibatches_are_updates_too(void) {
  const size_t lengths[2] = {1, 3};
  const learner_passes passes = {.minibatches = 1, .epochs = 2, .seed = 3};
  batch b = groups_of(lengths, 2, 4);
  ASSERT_CLOSE(age(&passes, &(batch *){&b}, 1, 4), 0.5, 1e-15);
  ASSERT_CLOSE(age(&passes, &(batch *){&b}, 1, 7), 6.5, 1e-15);
  batch_fini(&b);
}

/* Three groups in two minibatches: the first takes one, the second two. By hand from the order that
 * the step's shuffle has. */
static void longer_groups_weigh_by_their_tokens(void) {
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
static void parts_of_a_group_count_as_the_group(void) {
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

SUITE(core_learner, "core: learners", TEST(four_minibatches_and_two_epochs_are_eight_updates),
      TEST(one_update_a_step_has_the_staleness_of_versions),
      TEST(epochs_without_minibatches_are_updates_too), TEST(longer_groups_weigh_by_their_tokens),
      TEST(parts_of_a_group_count_as_the_group));
