/* What the sampler keeps, seen by the learner, against sums over the arms of a bandit. */
#include "tests/support/toy_fixture.h"

SUITE("toy: kept tokens");

enum { ARMS = 6, KEPT = 2 };

static const char *const recipe =
    "world: {kind: bandit, arms: 6, policy: {init: {kind: normal, scale: 1}}}\n"
    "sampling: {top_k: 2}\noptimizer: {kind: sgd, lr: 0.5}\nalgorithm: is\n"
    "train: {groups: 2, group_size: 4, updates: 9}";

static void copy_dist(learner_fixture *l, double p[ARMS]) {
  memcpy(p, toy_learner_at(l->toy, 0)->p, ARMS * sizeof *p);
}

/* Whether arm a is among the KEPT most probable ones under q. */
static int is_kept(const double q[ARMS], size_t a) {
  size_t above = 0;
  for (size_t b = 0; b < ARMS; ++b) above += q[b] > q[a];
  return above < KEPT;
}

static double entropy_of(const double p[ARMS], const double q[ARMS], int kept, double mass) {
  double h = 0;
  for (size_t a = 0; a < ARMS; ++a)
    if (is_kept(q, a) == kept) h -= p[a] / mass * log(p[a] / mass);
  return h;
}

static void check(const double p[ARMS], const double q[ARMS], const double metrics[METRIC_COUNT]) {
  double mass = 0, mass_q = 0;
  for (size_t a = 0; a < ARMS; ++a)
    if (is_kept(q, a)) mass += p[a], mass_q += q[a];
  ASSERT_CLOSE(metrics[METRIC_KEPT_MASS], mass, 1e-14);
  ASSERT_CLOSE(metrics[METRIC_KEPT_MASS_Q], mass_q, 1e-14);
  ASSERT_CLOSE(metrics[METRIC_ENTROPY_KEPT], entropy_of(p, q, 1, mass), 1e-13);
  ASSERT_CLOSE(metrics[METRIC_ENTROPY_TAIL], entropy_of(p, q, 0, 1 - mass), 1e-13);
}

/* The batch is drawn before two updates on others, so that learner and sampler differ. */
TEST(mass_and_entropies_are_those_of_the_learner_on_the_samplers_set) {
  learner_fixture l = learner_open(recipe, 5);
  double q[ARMS], p[ARMS], metrics[METRIC_COUNT];
  copy_dist(&l, q);
  batch old = learner_draw(&l, 1);
  for (uint64_t u = 2; u < 4; ++u) {
    batch b = learner_draw(&l, u);
    copy_dist(&l, p);
    learner_update(&l, &b, metrics);
    check(p, p, metrics);
    batch_fini(&b);
  }
  copy_dist(&l, p);
  learner_update(&l, &old, metrics);
  CU_ASSERT(fabs(metrics[METRIC_KEPT_MASS] - metrics[METRIC_KEPT_MASS_Q]) > 1e-3);
  check(p, q, metrics);
  batch_fini(&old);
}

TEST(without_truncation_nothing_is_kept_or_left) {
  learner_fixture l = learner_open("world: {kind: bandit, arms: 6}\nalgorithm: is\n"
                                   "train: {groups: 2, group_size: 4, updates: 9}",
                                   5);
  double metrics[METRIC_COUNT];
  batch b = learner_draw(&l, 1);
  learner_update(&l, &b, metrics);
  CU_ASSERT(isnan(metrics[METRIC_KEPT_MASS]) && isnan(metrics[METRIC_KEPT_MASS_Q]) &&
            isnan(metrics[METRIC_ENTROPY_KEPT]) && isnan(metrics[METRIC_ENTROPY_TAIL]));
  batch_fini(&b);
}

/* Of the gradient's cosine: plain SGD moves along it, so that the moves of two updates have the
 * angle of the gradients. */
TEST(the_cosine_is_that_of_the_moves_of_plain_ascent) {
  learner_fixture l = learner_open(recipe, 6);
  double before[ARMS], moves[2][ARMS], metrics[METRIC_COUNT];
  for (uint64_t u = 0; u < 2; ++u) {
    batch b = learner_draw(&l, u);
    memcpy(before, l.toy->theta, sizeof before);
    learner_update(&l, &b, metrics);
    if (u == 0) CU_ASSERT(isnan(metrics[METRIC_GRAD_COSINE]));
    for (size_t a = 0; a < ARMS; ++a) moves[u][a] = l.toy->theta[a] - before[a];
    batch_fini(&b);
  }
  double xx = 0, yy = 0, xy = 0;
  for (size_t a = 0; a < ARMS; ++a) {
    xx += moves[0][a] * moves[0][a];
    yy += moves[1][a] * moves[1][a];
    xy += moves[0][a] * moves[1][a];
  }
  CU_ASSERT_FATAL(xx > 0 && yy > 0);
  ASSERT_CLOSE(metrics[METRIC_GRAD_COSINE], xy / sqrt(xx * yy), 1e-12);
}
