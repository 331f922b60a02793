/* What a learner survives: being saved and continued, damaged files, foreign batches, and its own
 * divergence. */
#include "tests/support/toy_fixture.h"

#include <errno.h>

SUITE("toy: checkpoints, damage, divergence");

/* A checkpoint in memory. */
typedef struct saved {
  char *bytes;
  size_t size;
} saved;

static saved save(learner_fixture *l) {
  saved s = {0};
  gl_error err = {0};
  FILE *to = open_memstream(&s.bytes, &s.size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  CU_ASSERT(l->learner.ops->save(l->toy, to, &err) == GL_OK);
  CU_ASSERT_FATAL(fclose(to) == 0 && s.size > 0);
  return s;
}

static gl_status load(learner_fixture *l, char *bytes, size_t size, gl_error *err) {
  FILE *from = size > 0 ? fmemopen(bytes, size, "rb") : fopen("/dev/null", "rb");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  gl_status status = l->learner.ops->load(l->toy, from, err);
  fclose(from);
  return status;
}

/* --- continuation --- */

static void train(learner_fixture *l, uint64_t from, uint64_t to, double metrics[METRIC_COUNT]) {
  for (uint64_t u = from; u < to; ++u) {
    batch b = learner_draw(l, u);
    learner_update(l, &b, metrics);
    batch_fini(&b);
  }
}

static void check_continuation(const char *optimizer, const char *algorithm) {
  char text[500];
  snprintf(text, sizeof text,
           "world: {kind: sequence, prompts: 3, horizon: 3, policy: {kind: loglinear, init: {kind: "
           "normal}}}\noptimizer: %s\nalgorithm: %s\n"
           "train: {groups: 4, group_size: 4, minibatches: 2, epochs: 2, updates: 9}",
           optimizer, algorithm);
  learner_fixture whole = learner_open(text, 5), first = learner_open(text, 5),
                  second = learner_open(text, 5);
  double a[METRIC_COUNT], b[METRIC_COUNT];
  gl_error err = {0};
  train(&whole, 0, 8, a);
  train(&first, 0, 5, b);
  saved s = save(&first);
  learner_score(&second); /* whatever it has worked out for its first parameters is void now */
  CU_ASSERT(load(&second, s.bytes, s.size, &err) == GL_OK);
  CU_ASSERT(second.toy->update.version == 5);
  train(&second, 5, 8, b);
  size_t n = whole.toy->world->features.n_parameters;
  CU_ASSERT(memcmp(whole.toy->theta, second.toy->theta, n * sizeof(double)) == 0);
  CU_ASSERT(memcmp(a, b, sizeof a) == 0);
  saved end = save(&second), end_whole = save(&whole);
  CU_ASSERT(end.size == end_whole.size && memcmp(end.bytes, end_whole.bytes, end.size) == 0);
  free(s.bytes);
  free(end.bytes);
  free(end_whole.bytes);
}

TEST(a_run_continues_from_its_checkpoint_bit_by_bit) {
  check_continuation("{kind: sgd, lr: 0.3, decay: linear, warmup: 3}", "gepo");
  check_continuation("{kind: sgd, lr: 0.3, momentum: 0.9, decay: cosine}", "ppo_ewma");
  check_continuation("{kind: adam, lr: 0.1, clip_grad_norm: 0.1}", "gepo");
  check_continuation("{kind: adamw, weight_decay: 0.1}", "erc");
}

/* --- held versions --- */

static const char *const lengths_vary =
    "world: {kind: sequence, vocabulary: 3, horizon: 4, prompts: 2, end_token: true}\n"
    "optimizer: {kind: adam, lr: 0.3}\ntrain: {groups: 4, group_size: 4, updates: 9}";

static saved draw_of_version(learner_fixture *l, int64_t version, uint64_t id) {
  saved s = {0};
  batch b = {0};
  gl_error err = {0};
  draw_request r = {id, version, l->n_groups, l->group_size, 0, 1, 0, NULL, NULL, 0};
  CU_ASSERT_FATAL(l->learner.ops->draw(l->toy, &r, &b, &err) == GL_OK);
  FILE *to = open_memstream(&s.bytes, &s.size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  CU_ASSERT(batch_write(&b, to, &err) == GL_OK);
  fclose(to);
  batch_fini(&b);
  return s;
}

static int same_bytes(saved a, saved b) {
  int same = a.size == b.size && memcmp(a.bytes, b.bytes, a.size) == 0;
  free(a.bytes);
  free(b.bytes);
  return same;
}

static int refuses_version(learner_fixture *l, int64_t version) {
  batch b = {0};
  gl_error err = {0};
  draw_request r = {7, version, l->n_groups, l->group_size, 0, 1, 0, NULL, NULL, 0};
  gl_status status = l->learner.ops->draw(l->toy, &r, &b, &err);
  batch_fini(&b);
  return status == GL_EINTERNAL && strstr(err.text, "neither current nor held") != NULL;
}

TEST(a_held_version_draws_what_it_drew_while_it_was_current) {
  learner_fixture l = learner_open(lengths_vary, 5);
  double metrics[METRIC_COUNT];
  gl_error err = {0};
  saved at[4];
  for (int64_t v = 0; v < 4; ++v) {
    at[v] = draw_of_version(&l, v, 7);
    if (v != 2) CU_ASSERT(l.learner.ops->hold(l.toy, &err) == GL_OK);
    train(&l, 100 + (uint64_t)v, 101 + (uint64_t)v, metrics);
  }
  double score = learner_score(&l);
  for (int64_t v = 3; v >= 0; --v) {
    int right = v == 2 ? refuses_version(&l, v) : same_bytes(draw_of_version(&l, v, 7), at[v]);
    CU_ASSERT(right);
    CU_ASSERT(learner_score(&l) == score); /* what was cached of other versions does no harm */
  }
  free(at[2].bytes);
  l.learner.ops->release(l.toy, 2); /* was never held */
  l.learner.ops->release(l.toy, 0);
  CU_ASSERT(refuses_version(&l, 0) && l.toy->n_held == 2);
  CU_ASSERT(same_bytes(draw_of_version(&l, 3, 8), draw_of_version(&l, 3, 8)));
}

TEST(held_versions_travel_in_the_checkpoint) {
  learner_fixture l = learner_open(lengths_vary, 5), other = learner_open(lengths_vary, 5);
  double metrics[METRIC_COUNT];
  gl_error err = {0};
  for (uint64_t v = 0; v < 3; ++v) {
    CU_ASSERT(l.learner.ops->hold(l.toy, &err) == GL_OK);
    train(&l, v, v + 1, metrics);
  }
  l.learner.ops->release(l.toy, 0);
  CU_ASSERT(other.learner.ops->hold(other.toy, &err) == GL_OK); /* loading forgets it */
  saved s = save(&l);
  CU_ASSERT(load(&other, s.bytes, s.size, &err) == GL_OK);
  CU_ASSERT(refuses_version(&other, 0));
  for (int64_t v = 1; v < 4; ++v)
    CU_ASSERT(same_bytes(draw_of_version(&l, v, 9), draw_of_version(&other, v, 9)));
  CU_ASSERT(same_bytes(save(&l), save(&other)));
  free(s.bytes);
}

/* --- damage --- */

static const char *const small =
    "world: {kind: bandit, arms: 3, policy: {init: {kind: normal}}}\ntrain: {groups: 2, "
    "group_size: 2}";

/* Neither loads the bytes nor is changed by them. */
static void refuse(learner_fixture *l, char *bytes, size_t size) {
  double theta[3];
  gl_error err = {0};
  memcpy(theta, l->toy->theta, sizeof theta);
  int64_t version = l->toy->update.version;
  int ok = load(l, bytes, size, &err) == GL_EINPUT && err.text[0] != '\0' &&
           memcmp(theta, l->toy->theta, sizeof theta) == 0 && version == l->toy->update.version;
  CU_ASSERT(ok);
}

TEST(a_checkpoint_with_any_bit_flipped_or_cut_short_is_refused) {
  learner_fixture l = learner_open(small, 5), other = learner_open(small, 5);
  double metrics[METRIC_COUNT];
  gl_error err = {0};
  train(&l, 0, 2, metrics);
  CU_ASSERT(l.learner.ops->hold(l.toy, &err) == GL_OK);
  train(&l, 2, 3, metrics);
  saved s = save(&l);
  for (size_t i = 0; i < s.size; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      s.bytes[i] = (char)(s.bytes[i] ^ 1 << bit);
      refuse(&other, s.bytes, s.size);
      s.bytes[i] = (char)(s.bytes[i] ^ 1 << bit);
    }
    refuse(&other, s.bytes, i);
  }
  CU_ASSERT(load(&other, s.bytes, s.size, &err) == GL_OK && other.toy->update.version == 3);
  free(s.bytes);
}

TEST(a_checkpoint_of_another_run_is_refused_by_name) {
  static const struct {
    const char *text;
    uint64_t seed;
    const char *says;
  } table[] = {
      {"world: {kind: bandit, arms: 4}", 5, "another world"},
      {"world: {kind: bandit, arms: 3, rewards: [1, 2, 3]}", 5, "another world"},
      {"world: {kind: bandit, arms: 3}\nsampling: {temperature: 2}", 5, "another world"},
      {"world: {kind: bandit, arms: 3}", 6, "seed"},
      {"world: {kind: bandit, arms: 3}\noptimizer: {kind: sgd}", 5, "another optimizer"},
      {"world: {kind: bandit, arms: 3}\noptimizer: {kind: adamw}", 5, "another optimizer"},
  };
  learner_fixture l = learner_open(small, 5);
  saved s = save(&l);
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    learner_fixture other = learner_open(table[i].text, table[i].seed);
    gl_error err = {0};
    CU_ASSERT(load(&other, s.bytes, s.size, &err) == GL_EINPUT);
    CU_ASSERT(strstr(err.text, table[i].says) != NULL);
  }
  free(s.bytes);
}

TEST(a_checkpoint_that_cannot_be_written_is_reported) {
  learner_fixture l = learner_open(small, 5);
  FILE *full = fopen("/dev/full", "wb");
  gl_error err = {0};
  if (full == NULL) {
    SKIP("no /dev/full");
  }
  setvbuf(full, NULL, _IONBF, 0);
  CU_ASSERT(l.learner.ops->save(l.toy, full, &err) == GL_EIO);
  CU_ASSERT(strstr(err.text, strerror(ENOSPC)) != NULL);
  fclose(full);
}

/* --- foreign batches --- */

static void refuse_batch(learner_fixture *l, batch *b, const char *says) {
  double metrics[METRIC_COUNT];
  gl_error err = {0};
  gl_status status = l->learner.ops->update(l->toy, &b, 1, metrics, &err);
  int ok = status == GL_EINPUT && strstr(err.text, says) != NULL && l->toy->update.version == 0;
  if (!ok) fprintf(stderr, "wanted '%s', got %d '%s'\n", says, status, err.text);
  CU_ASSERT(ok);
}

TEST(batches_that_do_not_fit_the_world_are_refused) {
  const char *text = "world: {kind: sequence, vocabulary: 2, horizon: 3, prompts: 2, end_token: "
                     "true}\ntrain: {groups: 3, group_size: 3, minibatches: 2}";
  learner_fixture l = learner_open(text, 1), foreign = learner_open(small, 1);
  batch b = learner_draw(&foreign, 1);
  refuse_batch(&l, &b, "another world");
  batch_fini(&b);
  b = learner_draw(&l, 1);
  const int64_t prompt = b.prompt[0];
  b.prompt[0] = -1;
  refuse_batch(&l, &b, "another world");
  b.prompt[0] = 2;
  refuse_batch(&l, &b, "another world");
  b.prompt[0] = prompt;
  const int32_t token = b.token[0];
  b.token[0] = 3;
  refuse_batch(&l, &b, "no complete response");
  b.token[0] = -1;
  refuse_batch(&l, &b, "no complete response");
  b.token[0] = token;
  const size_t start = b.token_start[1];
  b.token_start[1] = b.token_start[2] + 1;
  refuse_batch(&l, &b, "not consistent");
  b.token_start[1] = start;
  const size_t group = b.group_start[1];
  b.group_start[1] = 0;
  refuse_batch(&l, &b, "no responses");
  b.group_start[1] = group;
  double metrics[METRIC_COUNT];
  learner_update(&l, &b, metrics); /* whole again, it trains */
  batch_fini(&b);
  l = learner_open(text, 1);
  l.n_groups = 1;
  b = learner_draw(&l, 1);
  refuse_batch(&l, &b, "minibatches");
  batch_fini(&b);
}

/* --- divergence --- */

TEST(parameters_that_are_not_finite_are_a_result) {
  static const double broken[] = {NAN, INFINITY, -INFINITY};
  for (size_t i = 0; i < 3; ++i) {
    learner_fixture l = learner_open(small, 5);
    double metrics[METRIC_COUNT];
    batch before = learner_draw(&l, 1);
    l.toy->theta[1] = broken[i];
    ++l.toy->stamp;
    batch after = learner_draw(&l, 2);
    learner_score(&l);
    learner_update(&l, &before, metrics);
    CU_ASSERT(isfinite(metrics[METRIC_REWARD_MEAN]) && isfinite(metrics[METRIC_LR]));
    CU_ASSERT(isnan(metrics[METRIC_GRAD_NORM]) && isnan(metrics[METRIC_KL_EXACT]));
    learner_update(&l, &after, metrics);
    CU_ASSERT(l.toy->update.version == 2);
    saved s = save(&l);
    learner_fixture other = learner_open(small, 5);
    gl_error err = {0};
    CU_ASSERT(load(&other, s.bytes, s.size, &err) == GL_OK);
    CU_ASSERT(!isfinite(other.toy->theta[1]));
    free(s.bytes);
    batch_fini(&before);
    batch_fini(&after);
  }
}

/* Rewards and rates that no policy survives: every row runs to the end, whatever becomes of it. */
TEST(absurd_rates_never_stop_a_run) {
  for (size_t i = 0; i < policy_algorithms_count(); ++i) {
    char text[500];
    snprintf(text, sizeof text,
             "world: {kind: sequence, vocabulary: 3, horizon: 4, prompts: 2, policy: {kind: "
             "loglinear}}\noptimizer: {kind: sgd, lr: 1e6, momentum: 0.9}\nalgorithm: {base: %s, "
             "kl_coef: 10}\ntrain: {groups: 4, group_size: 4, minibatches: 2, epochs: 2}",
             policy_algorithms_at(i)->name);
    learner_fixture l = learner_open(text, 3);
    double metrics[METRIC_COUNT];
    batch stale = learner_draw(&l, 100);
    train(&l, 0, 6, metrics);
    learner_update(&l, &stale, metrics);
    train(&l, 6, 10, metrics);
    CU_ASSERT(l.toy->update.version == 11 && isfinite(metrics[METRIC_REWARD_MEAN]));
    batch_fini(&stale);
  }
}
