/* Dynamic sampling of a transformer: what is kept are groups of the batch without a filter. */
#include "core/rl/group_filter.h"
#include "core/rl/learner.h"

#include "tests/support/llm_learner_fixture.h"

#include <math.h>

SUITE("llm: dynamic sampling");

#define SMALL                                                                                      \
  "world: {kind: llm, backend: cpu, model: {layers: 1, hidden: 16, heads: 2, context: 32}, "       \
  "task: {kind: addition, digits: 1, terms: 2}, max_tokens: 4}\n"                                  \
  "train: {groups: 2, group_size: 4, reward_noise: {flip: 0.15}}\n"

/* Rewards of a fresh model are 0 but for those that are flipped, so many groups are equal. */
TEST(a_transformers_groups_are_those_of_a_larger_batch) {
  static const char *const sampling[] = {
      "", "sampling: {top_k: 3, weights: replay}\n",
      "sampling: {behaviour_mixture: {with: uniform, share: 0.3}}\n",
      "sampling: {logq: learner, behaviour: {noise: 0.2}}\n"};
  for (size_t s = 0; s < sizeof sampling / sizeof *sampling; ++s) {
    char text[800];
    snprintf(text, sizeof text, SMALL "%s", sampling[s]);
    llm_fixture f = llm_open(text, 4);
    const group_filter filter = {1, 12, 2, FILTER_FAIL};
    group_rounds rounds;
    batch b = {0}, all = {0};
    gl_error err = {0};
    draw_request r = {5, f.llm->update.version, 2, 4, 0, 1, 0, NULL, NULL, 0};
    CU_ASSERT_EQUAL_FATAL(group_filter_draw(&filter, &f.learner, &r, &b, &rounds, &err), GL_OK);
    r.n_groups = rounds.n * 2;
    CU_ASSERT_EQUAL_FATAL(f.learner.ops->draw(f.llm, &r, &all, &err), GL_OK);
    size_t taken = 0;
    for (size_t g = 0; g < all.n_groups && taken < 2; ++g) {
      if (!batch_rewards_differ(&all, g)) continue;
      const size_t k = all.token_start[all.group_start[g]];
      const size_t n = all.token_start[all.group_start[g + 1]] - k;
      const size_t to = b.token_start[b.group_start[taken]], sets = b.kept_words;
      CU_ASSERT_EQUAL_FATAL(b.token_start[b.group_start[taken + 1]] - to, n);
      CU_ASSERT(memcmp(b.token + to, all.token + k, n * sizeof *b.token) == 0);
      for (size_t t = 0; t < n; ++t) ASSERT_CLOSE(b.logq[to + t], all.logq[k + t], 1e-5);
      CU_ASSERT(sets == 0 ||
                memcmp(b.kept + to * sets, all.kept + k * sets, n * sets * sizeof *b.kept) == 0);
      ++taken;
    }
    CU_ASSERT_EQUAL(taken, 2);
    double metrics[METRIC_COUNT];
    llm_update(&f, &b, metrics);
    CU_ASSERT(isfinite(metrics[METRIC_LOSS]));
    group_rounds_fini(&rounds);
    batch_fini(&b);
    batch_fini(&all);
  }
}
