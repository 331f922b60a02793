/* Worlds and learners from recipe text, for the tests of the toy room. */
#ifndef GEPOLAB_TESTS_SUPPORT_TOY_FIXTURE_H
#define GEPOLAB_TESTS_SUPPORT_TOY_FIXTURE_H

#include "core/random/rng.h"
#include "tests/support/suite.h"
#include "toy/learner/learner.h"

#include <stdlib.h>
#include <string.h>

/* A world made from `world:` and `sampling:` of a recipe, until the end of the test. */
typedef struct world_fixture {
  cfg_doc *doc;
  toy_world *world;
  enumerable e;
  size_t k, n; /* responses of a prompt, parameters */
} world_fixture;

static inline cfg_doc *fixture_recipe(const char *text) {
  cfg_doc *doc = NULL;
  ASSERT_OK(cfg_load_text(&doc, text, strlen(text), "r.yaml", &err));
  CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
  return doc;
}

static inline void world_end(void *f) {
  toy_world_free(((world_fixture *)f)->world);
  cfg_free(((world_fixture *)f)->doc);
}

static inline world_fixture world_open(const char *text, uint64_t seed) {
  world_fixture f = {.doc = fixture_recipe(text)};
  const cfg_node *root = cfg_root(f.doc);
  ASSERT_OK(
      toy_world_new(&f.world, cfg_find(root, "world"), cfg_find(root, "sampling"), seed, &err));
  CU_ASSERT_PTR_NOT_NULL_FATAL(f.world);
  f.e = toy_world_enumerable(f.world);
  f.k = f.e.max_responses;
  f.n = f.e.n_parameters;
  test_at_end(world_end, test_copy(&f, sizeof f));
  return f;
}

/* Numbers of a fixture's function, which frees them. */
static inline double *fixture_scratch(size_t n) {
  double *values = calloc(n, sizeof *values);
  CU_ASSERT_PTR_NOT_NULL_FATAL(values);
  return values;
}

/* Numbers until the end of the test. */
static inline double *fixture_doubles(size_t n) {
  double *values = fixture_scratch(n);
  test_at_end(free, values);
  return values;
}

/* Independent normals in to[n]; entity tells vectors apart. */
static inline void fixture_normals(double *to, size_t n, double scale, uint64_t entity) {
  for (size_t i = 0; i < n; ++i)
    to[i] = scale * rng_normal(rng_block(rng_stream_at(11, RNG_TEST, entity), i));
}

/* Response log-probabilities of prompt x into logp[k], through the enumerable view: under the
 * policy or, with truncated set, under the distribution that is drawn from. */
static inline void world_log_responses(const world_fixture *f, const double *theta, size_t x,
                                       int truncated, double *logp) {
  const size_t width = f->e.max_length;
  double *token = fixture_scratch(f->k * width);
  gl_error err = {0};
  int has = f->e.ops->log_probs_truncated != NULL;
  gl_status status = truncated && has
                         ? f->e.ops->log_probs_truncated(f->e.self, theta, x, token, &err)
                         : f->e.ops->log_probs(f->e.self, theta, x, token, &err);
  CU_ASSERT_FATAL(status == GL_OK);
  for (size_t y = 0; y < f->k; ++y) {
    logp[y] = 0;
    for (size_t t = 0; t < f->e.ops->length(f->e.self, x, y); ++t) logp[y] += token[y * width + t];
  }
  free(token);
}

/* sum_y p(y) r(y) of prompt x as the sum over the list of responses. */
static inline double world_return(const world_fixture *f, const double *theta, size_t x) {
  double *logp = fixture_scratch(2 * f->k), *reward = logp + f->k, sum = 0;
  world_log_responses(f, theta, x, 0, logp);
  f->e.ops->rewards(f->e.self, x, reward);
  for (size_t y = 0; y < f->k; ++y) sum += exp(logp[y]) * reward[y];
  free(logp);
  return sum;
}

/* A learner made from the sections of a recipe; `algorithm` and `train` as in a recipe. */
typedef struct learner_fixture {
  cfg_doc *doc;
  policy_algorithm algorithm;
  learner learner;
  toy_learner *toy; /* its inside */
  size_t n_groups, group_size;
} learner_fixture;

static inline gl_status learner_try(learner_fixture *f, const char *text, uint64_t seed,
                                    gl_error *err) {
  *f = (learner_fixture){.doc = fixture_recipe(text)};
  const cfg_node *root = cfg_root(f->doc);
  cfg_reader r;
  cfg_begin(&r, cfg_find(root, "train"), "train", err);
  f->n_groups = cfg_count(&r, "groups", 8, 0, 100000);
  f->group_size = cfg_count(&r, "group_size", 8, 0, 100000);
  learner_setup setup = {
      .seed = seed,
      .algorithm = &f->algorithm,
      .world = cfg_find(root, "world"),
      .optimizer = cfg_find(root, "optimizer"),
      .sampling = cfg_find(root, "sampling"),
      .group_size = f->group_size,
      .n_groups = f->n_groups,
      .minibatches = cfg_count(&r, "minibatches", 1, 0, 1000),
      .epochs = cfg_count(&r, "epochs", 1, 0, 1000),
      .updates = cfg_count(&r, "updates", 0, 0, 1000),
  };
  training_reward_read(&setup.rewards, &r);
  setup.weight_noise = cfg_double(&r, "weight_noise", 0, 0, 1e6);
  setup.drops.negative = cfg_double(&r, "drop_negative", 0, 0, 1);
  setup.drops.positive = cfg_double(&r, "drop_positive", 0, 0, 1);
  setup.train = cfg_find(root, "train");
  gl_status status = policy_algorithm_parse(&f->algorithm, cfg_find(root, "algorithm"), err);
  if (status == GL_OK) status = toy_learner_new(&f->learner, &setup, err);
  f->toy = f->learner.self;
  return status;
}

static inline void learner_close(learner_fixture *f) {
  learner_fini(&f->learner);
  cfg_free(f->doc);
}

static inline void learner_end(void *f) {
  learner_close(f);
}

/* Until the end of the test. */
static inline learner_fixture learner_open(const char *text, uint64_t seed) {
  learner_fixture f;
  ASSERT_OK(learner_try(&f, text, seed, &err));
  CU_ASSERT_PTR_NOT_NULL_FATAL(f.toy);
  test_at_end(learner_end, test_copy(&f, sizeof f));
  return f;
}

/* Draws positions [from, to) of batch id at the learner's version. */
static inline void learner_draw_part(learner_fixture *f, uint64_t id, double from, double to,
                                     batch *b) {
  gl_error err = {0};
  draw_request r = {id, f->toy->update.version, f->n_groups, f->group_size, from, to, 0, NULL, NULL,
                    0};
  if (f->learner.ops->draw(f->toy, &r, b, &err) != GL_OK) {
    fprintf(stderr, "%s\n", err.text);
    CU_FAIL_FATAL("a draw failed");
  }
}

static inline batch learner_draw(learner_fixture *f, uint64_t id) {
  batch b = {0};
  learner_draw_part(f, id, 0, 1, &b);
  return b;
}

static inline void learner_update(learner_fixture *f, batch *b, double metrics[METRIC_COUNT]) {
  gl_error err = {0};
  if (f->learner.ops->update(f->toy, &b, 1, metrics, &err) != GL_OK) {
    fprintf(stderr, "%s\n", err.text);
    CU_FAIL_FATAL("an update failed");
  }
}

static inline double learner_score(learner_fixture *f) {
  double score = NAN;
  ASSERT_OK(f->learner.ops->evaluate(f->toy, &score, &err));
  return score;
}

#endif
