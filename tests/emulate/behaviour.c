/* Samplers that differ from the learner, and replayed sampling masks, on the emulated device
 * against the CPU: the same draws, the same sets, the same steps. */
#include "core/rl/replay.h"
#include "tests/support/llm_learner_fixture.h"

#include <string.h>

SUITE("llm: emulated cuda samplers");

#define WORLD(place)                                                                               \
  "world: {kind: llm, backend: " place ", model: {layers: 1, hidden: 16, heads: 2, context: 24}, " \
  "task: {kind: sorting, length: 3, values: 4, reward: graded}, max_tokens: 6, evaluation: "       \
  "{prompts: 8}}\n"
#define TRAIN                                                                                      \
  "\noptimizer: {kind: sgd, lr: 0.5}\nalgorithm: {base: is, log_prob: sum}\n"                      \
  "train: {groups: 8, group_size: 12}"

/* Parameters that make distributions far from uniform, the same on both. */
static void spread(llm_fixture *f, uint64_t entity, double scale) {
  double *theta = llm_theta(f);
  for (size_t i = 0; i < f->n; ++i)
    theta[i] += scale * rng_normal(rng_block(rng_stream_at(5, RNG_TEST, entity), i));
  llm_set(f, theta);
}

/* Draws a batch with some parameters and updates with others, on both devices. Single precision
 * rounds otherwise on either, by some 1e-6 of a log-probability; the seed is one where no draw
 * falls so near to the border between two tokens. Of 96 responses some have a reward. */
static void compare(const char *sampling, int sets) {
  const char *const places[] = {WORLD("cpu"), WORLD("cuda")};
  double metrics[2][METRIC_COUNT];
  double *theta[2];
  size_t n = 0;
  batch b[2];
  for (size_t k = 0; k < 2; ++k) {
    char text[1200];
    snprintf(text, sizeof text, "%ssampling: %s" TRAIN, places[k], sampling);
    llm_fixture f = llm_open(text, 3);
    CU_ASSERT_EQUAL(f.llm->backend->kind, k == 0 ? BACKEND_CPU : BACKEND_CUDA);
    spread(&f, 0, 0.3);
    b[k] = llm_draw(&f, 7);
    spread(&f, 1, 0.05);
    llm_update(&f, &b[k], metrics[k]);
    theta[k] = llm_theta(&f);
    n = f.n;
  }
  CU_ASSERT_EQUAL_FATAL(b[0].n_tokens, b[1].n_tokens);
  CU_ASSERT_EQUAL(memcmp(b[0].token, b[1].token, b[0].n_tokens * sizeof *b[0].token), 0);
  CU_ASSERT(b[0].kept_words == b[1].kept_words && (b[0].kept_words > 0) == sets);
  if (sets)
    CU_ASSERT_EQUAL(
        memcmp(b[0].kept, b[1].kept, b[0].n_tokens * b[0].kept_words * sizeof *b[0].kept), 0);
  for (size_t i = 0; i < b[0].n_tokens; ++i) {
    ASSERT_CLOSE(b[1].logq[i], b[0].logq[i], 1e-4);
    ASSERT_CLOSE(b[1].logq_trunc[i], b[0].logq_trunc[i], 1e-4);
  }
  CU_ASSERT(metrics[0][METRIC_GRAD_NORM] > 1e-3);
  ASSERT_CLOSE(metrics[1][METRIC_GRAD_NORM], metrics[0][METRIC_GRAD_NORM], 1e-3);
  ASSERT_CLOSE(metrics[1][METRIC_LOSS], metrics[0][METRIC_LOSS], 1e-4);
  static const int parts[] = {METRIC_KEPT_MASS, METRIC_ENTROPY_KEPT, METRIC_ENTROPY_TAIL};
  for (size_t i = 0; i < 3 && sets; ++i)
    ASSERT_CLOSE(metrics[1][parts[i]], metrics[0][parts[i]], 1e-4);
  double worst = 0;
  for (size_t i = 0; i < n; ++i) worst = fmax(worst, fabs(theta[1][i] - theta[0][i]));
  CU_ASSERT(worst < 1e-3);
  for (size_t k = 0; k < 2; ++k) {
    batch_fini(&b[k]);
  }
}

TEST(replayed_steps_are_the_cpus) {
  compare("{temperature: 0.8, top_k: 4, top_p: 0.8, weights: replay}", 1);
  compare("{top_p: 0.7, weights: replay, behaviour: {noise: 0.3}}", 1);
}

/* A device does not record sets for metrics alone. */
TEST(sets_for_metrics_alone_are_the_cpus_only) {
  static const char *const places[] = {WORLD("cpu"), WORLD("cuda")};
  for (int k = 0; k < 2; ++k) {
    char text[1200];
    double metrics[METRIC_COUNT];
    snprintf(text, sizeof text, "%ssampling: {top_p: 0.7}" TRAIN, places[k]);
    llm_fixture f = llm_open(text, 3);
    batch b = llm_draw(&f, 7);
    llm_update(&f, &b, metrics);
    CU_ASSERT_EQUAL(b.kept_words > 0, k == 0);
    CU_ASSERT_EQUAL(!isnan(metrics[METRIC_KEPT_MASS]), k == 0);
    CU_ASSERT(metrics[METRIC_KEPT_MASS_Q] > 0);
    batch_fini(&b);
  }
}

/* An update on a batch and on some of its responses, which count as right. */
TEST(replay_of_right_responses_is_the_cpus) {
  static const char *const places[] = {WORLD("cpu"), WORLD("cuda"), WORLD("cuda")};
  static const replay_spec specs[] = {{0.7, 8, 64}, {0.7, 8, 64}, {0, 8, 64}};
  double *theta[3], norm[3], apart[2] = {0};
  size_t n = 0;
  for (size_t k = 0; k < 3; ++k) {
    char text[1200];
    double metrics[METRIC_COUNT];
    batch buffer = {0}, replayed = {0};
    snprintf(text, sizeof text, "%s%s", places[k], TRAIN);
    llm_fixture f = llm_open(text, 3);
    spread(&f, 0, 0.3);
    batch drawn = llm_draw(&f, 7), *all[] = {&drawn, &replayed};
    for (size_t i = 0; i < 4; ++i) drawn.reward[i] = 1;
    ASSERT_OK(replay_add(&specs[k], &buffer, all, 1, &err));
    ASSERT_OK(replay_draw(&specs[k], &buffer, 1, 1, &replayed, &err));
    CU_ASSERT_EQUAL(replayed.n_responses, k < 2 ? 8 : 0);
    spread(&f, 1, 0.05);
    ASSERT_OK(f.learner.ops->update(f.llm, all, k < 2 ? 2 : 1, metrics, &err));
    norm[k] = metrics[METRIC_GRAD_NORM];
    theta[k] = llm_theta(&f);
    n = f.n;
    batch_fini(&drawn);
    batch_fini(&replayed);
    batch_fini(&buffer);
  }
  for (size_t k = 0; k < 2; ++k)
    for (size_t i = 0; i < n; ++i) apart[k] = fmax(apart[k], fabs(theta[1][i] - theta[2 * k][i]));
  ASSERT_CLOSE(norm[1], norm[0], 1e-3);
  CU_ASSERT(apart[0] < 1e-3 && apart[1] > 1e-2);
}

TEST(distorted_dists_are_the_cpus) {
  compare("{behaviour: {noise: 0.5, temperature_error: 0.2}}", 0);
  compare("{behaviour: {precision: bfloat16, noise: 0.5}}", 0);
  compare("{logq: learner, top_k: 5, weights: truncated, behaviour: {noise: 0.5}}", 1);
}

TEST(mixtures_are_the_cpus) {
  compare("{behaviour_mixture: {with: initial, share: 0.5}}", 0);
  compare("{behaviour_mixture: {with: uniform, share: 0.5}}", 0);
}
