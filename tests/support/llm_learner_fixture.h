/* Transformer learners from recipe text, for the tests of the llm room. */
#ifndef GEPOLAB_TESTS_SUPPORT_LLM_LEARNER_FIXTURE_H
#define GEPOLAB_TESTS_SUPPORT_LLM_LEARNER_FIXTURE_H

#include "core/random/rng.h"
#include "llm/learner/learner.h"
#include "llm/learner/llm_learner.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

typedef struct llm_fixture {
  cfg_doc *doc;
  policy_algorithm algorithm;
  learner learner;
  llm_learner *llm;               /* its inside */
  size_t n_groups, group_size, n; /* n: parameters */
} llm_fixture;

/* What a test chooses beside the recipe. */
typedef struct llm_choice {
  uint64_t seed;
  size_t threads;
  const char *cache;
  const learner_preparation *preparation;
} llm_choice;

static inline gl_status llm_try(llm_fixture *f, const char *text, llm_choice choice, int check_only,
                                gl_error *err) {
  *f = (llm_fixture){0};
  gl_status status = cfg_load_text(&f->doc, text, strlen(text), "r.yaml", err);
  if (status != GL_OK) return status;
  const cfg_node *root = cfg_root(f->doc);
  cfg_reader r;
  cfg_begin(&r, cfg_find(root, "train"), "train", err);
  f->n_groups = cfg_count(&r, "groups", 4, 0, 100000);
  f->group_size = cfg_count(&r, "group_size", 4, 0, 100000);
  learner_setup setup = {
      .seed = choice.seed,
      .algorithm = &f->algorithm,
      .world = cfg_find(root, "world"),
      .optimizer = cfg_find(root, "optimizer"),
      .sampling = cfg_find(root, "sampling"),
      .group_size = f->group_size,
      .n_groups = f->n_groups,
      .minibatches = cfg_count(&r, "minibatches", 1, 0, 1000),
      .epochs = cfg_count(&r, "epochs", 1, 0, 1000),
      .weight_noise = cfg_double(&r, "weight_noise", 0, 0, 1e6),
      .updates = cfg_count(&r, "updates", 0, 0, 1000),
      .threads = choice.threads,
      .cache = choice.cache,
      .code = "test",
      .preparation = choice.preparation,
  };
  training_reward_read(&setup.rewards, &r);
  status = policy_algorithm_parse(&f->algorithm, cfg_find(root, "algorithm"), err);
  if (status == GL_OK)
    status = check_only ? llm_check(&setup, err) : llm_learner_new(&f->learner, &setup, err);
  f->llm = f->learner.self;
  if (f->llm != NULL) f->n = model_parameters(f->llm->model);
  return status;
}

static inline void llm_close(llm_fixture *f) {
  learner_fini(&f->learner);
  cfg_free(f->doc);
}

static inline void llm_end(void *f) {
  llm_close(f);
}

static inline void llm_close_at_end(const llm_fixture *f) {
  test_at_end(llm_end, test_copy(f, sizeof *f));
}

/* Until the end of the test. */
static inline llm_fixture llm_open_with(const char *text, llm_choice choice) {
  llm_fixture f;
  ASSERT_OK(llm_try(&f, text, choice, 0, &err));
  CU_ASSERT_PTR_NOT_NULL_FATAL(f.llm);
  llm_close_at_end(&f);
  return f;
}

static inline llm_fixture llm_open(const char *text, uint64_t seed) {
  return llm_open_with(text, (llm_choice){.seed = seed, .threads = 1});
}

/* Numbers until the end of the test. */
static inline double *llm_doubles(size_t n) {
  double *values = calloc(n, sizeof *values);
  CU_ASSERT_PTR_NOT_NULL_FATAL(values);
  test_at_end(free, values);
  return values;
}

/* The parameters, until the end of the test. */
static inline double *llm_theta(const llm_fixture *f) {
  double *theta = llm_doubles(f->n);
  ASSERT_OK(model_get(f->llm->model, theta, &err));
  return theta;
}

static inline void llm_set(llm_fixture *f, const double *theta) {
  ASSERT_OK(model_set(f->llm->model, theta, &err));
}

/* Draws positions [from, to) of batch id at a version. */
static inline void llm_draw_part(llm_fixture *f, uint64_t id, int64_t version, double from,
                                 double to, batch *b) {
  gl_error err = {0};
  draw_request r = {id, version, f->n_groups, f->group_size, from, to, 0, NULL, NULL, 0};
  if (f->learner.ops->draw(f->llm, &r, b, &err) != GL_OK) {
    fprintf(stderr, "%s\n", err.text);
    CU_FAIL_FATAL("a draw failed");
  }
}

static inline batch llm_draw(llm_fixture *f, uint64_t id) {
  batch b = {0};
  llm_draw_part(f, id, f->llm->update.version, 0, 1, &b);
  return b;
}

static inline void llm_update(llm_fixture *f, batch *b, double metrics[METRIC_COUNT]) {
  gl_error err = {0};
  if (f->learner.ops->update(f->llm, &b, 1, metrics, &err) != GL_OK) {
    fprintf(stderr, "%s\n", err.text);
    CU_FAIL_FATAL("an update failed");
  }
}

/* llm_update(); where `shares` is 0, on a backend that cannot run shared beginnings. */
static inline void llm_update_shared(llm_fixture *f, batch *b, int shares,
                                     double metrics[METRIC_COUNT]) {
  const backend_ops *all = f->llm->backend->ops;
  backend_ops some = *all;
  some.attention_shared = NULL;
  some.attention_shared_backward = NULL;
  if (!shares) f->llm->backend->ops = &some;
  llm_update(f, b, metrics);
  f->llm->backend->ops = all;
}

static inline double llm_score(llm_fixture *f) {
  double score = NAN;
  ASSERT_OK(f->learner.ops->evaluate(f->llm, &score, &err));
  return score;
}

/* Draws and trains batches from, from + 1, … to - 1. */
static inline void llm_train(llm_fixture *f, uint64_t from, uint64_t to,
                             double metrics[METRIC_COUNT]) {
  for (uint64_t u = from; u < to; ++u) {
    batch b = llm_draw(f, u);
    llm_update(f, &b, metrics);
    batch_fini(&b);
  }
}

/* 1 if two batches are the same, bit for bit. */
static inline int llm_same_batch(const batch *a, const batch *b) {
  return a->n_responses == b->n_responses && a->n_tokens == b->n_tokens &&
         memcmp(a->token_start, b->token_start, (a->n_responses + 1) * sizeof(size_t)) == 0 &&
         memcmp(a->reward, b->reward, a->n_responses * sizeof(double)) == 0 &&
         memcmp(a->token, b->token, a->n_tokens * sizeof(int32_t)) == 0 &&
         memcmp(a->logq, b->logq, a->n_tokens * sizeof(double)) == 0 &&
         memcmp(a->logq_trunc, b->logq_trunc, a->n_tokens * sizeof(double)) == 0;
}

/* Moves the parameters of the version that the learner has by scale times independent normals. */
static inline void llm_jitter(llm_fixture *f, double scale, uint64_t entity) {
  double *theta = llm_theta(f);
  for (size_t i = 0; i < f->n; ++i)
    theta[i] += scale * rng_normal(rng_block(rng_stream_at(5, RNG_TEST, entity), i));
  gl_error err = {0};
  CU_ASSERT_FATAL(llm_learner_stand_at(&f->learner, theta, f->llm->update.version, &err) == GL_OK);
}

/* The loss of a batch at theta + h direction. */
static inline double llm_loss_at(llm_fixture *f, const double *theta, const double *direction,
                                 double h, batch *b) {
  double metrics[METRIC_COUNT];
  double *moved = llm_doubles(f->n);
  for (size_t i = 0; i < f->n; ++i) moved[i] = theta[i] + h * direction[i];
  llm_set(f, moved);
  llm_update(f, b, metrics);
  return metrics[METRIC_LOSS];
}

/* |a - b| / |b| */
static inline double llm_distance(const double *a, const double *b, size_t n) {
  double apart = 0, length = 0;
  for (size_t i = 0; i < n; ++i) {
    apart += (a[i] - b[i]) * (a[i] - b[i]);
    length += b[i] * b[i];
  }
  return sqrt(apart / length);
}

/* Whether both draw the same batch next. */
static inline int llm_draw_alike(llm_fixture *f, llm_fixture *g, uint64_t id, int64_t version) {
  batch a = {0}, b = {0};
  llm_draw_part(f, id, version, 0, 1, &a);
  llm_draw_part(g, id, version, 0, 1, &b);
  const int same = llm_same_batch(&a, &b);
  batch_fini(&a);
  batch_fini(&b);
  return same;
}

#endif
