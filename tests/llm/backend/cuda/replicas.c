/* A learner with replicas on two CUDA devices against the same on one device and on the CPU. */
#include "llm/backend/open/open.h"
#include "tests/support/llm_learner_fixture.h"

SUITE("llm: cuda replicas");

enum { DEVICES = 2 };

#define WORLD                                                                                      \
  "model: {layers: 1, hidden: 16, heads: 2, kv_heads: 1, intermediate: 16, context: 24}, task: "   \
  "{kind: sorting, length: 3, values: 4, reward: graded}, max_tokens: 5, evaluation: {prompts: 4}"

static const char rest[] = "optimizer: {kind: sgd, lr: 0.2, momentum: 0.5}\n"
                           "algorithm: {base: gepo, ref_kl_coef: 0.1}\n"
                           "train: {groups: 3, group_size: 2}";

static llm_fixture open_in(const char *place) {
  char text[900];
  snprintf(text, sizeof text, "world: {kind: llm, %s, " WORLD "}\n%s", place, rest);
  return llm_open_with(text, (llm_choice){.seed = 4, .threads = 1});
}

typedef struct comparison {
  const llm_fixture *f;
  const double *theta;
} comparison;

/* Compares the parameters of a replica; runs on the replica's own thread. */
static gl_status compare(void *context, size_t rank, gl_error *err) {
  const comparison *c = context;
  double *own = llm_doubles(c->f->n);
  gl_status status = model_get(c->f->llm->replica[rank].model, own, err);
  CU_ASSERT(memcmp(c->theta, own, c->f->n * sizeof *own) == 0);
  return status;
}

/* The parameters after two updates, the second of which trains on a batch drawn from a held
 * version; with that batch and the score. */
static double *learned(const char *place, batch *last, double *score) {
  llm_fixture f = open_in(place);
  gl_error err = {0};
  double metrics[METRIC_COUNT];
  batch held = {0};
  CU_ASSERT(f.learner.ops->hold(f.llm, &err) == GL_OK);
  llm_train(&f, 0, 1, metrics);
  llm_draw_part(&f, 1, 0, 0, 1, &held);
  llm_update(&f, &held, metrics);
  f.learner.ops->release(f.llm, 0);
  batch_fini(&held);
  *last = llm_draw(&f, 2);
  *score = llm_score(&f);
  double *theta = llm_theta(&f);
  comparison c = {&f, theta};
  for (size_t rank = 0; rank < f.llm->spec.devices; ++rank)
    CU_ASSERT(rank_threads_run_at(f.llm->threads, rank, compare, &c, &err) == GL_OK);
  return theta;
}

TEST(two_devices_learn_what_one_learns) {
  if (backend_devices() < DEVICES) SKIP("fewer than two CUDA devices");
  static const char *const places[] = {
      "backend: cpu, dtype: float64", "backend: cuda", "backend: cuda, devices: 2",
      "backend: cuda, devices: 2, slots: 2, micro_batch: 20", "backend: cuda, devices: 2"};
  enum { PLACES = sizeof places / sizeof *places };
  batch b[PLACES];
  double *theta[PLACES], score[PLACES];
  llm_fixture f = open_in(places[0]);
  const size_t n = f.n;
  for (size_t i = 0; i < PLACES; ++i) {
    theta[i] = learned(places[i], &b[i], &score[i]);
    CU_ASSERT(llm_distance(theta[i], theta[0], n) < 1e-5);
    CU_ASSERT(b[i].n_tokens == b[0].n_tokens &&
              memcmp(b[i].token, b[0].token, b[0].n_tokens * sizeof *b[0].token) == 0);
    CU_ASSERT(score[i] == score[0]);
  }
  CU_ASSERT(memcmp(theta[4], theta[2], n * sizeof *theta[2]) == 0);
  for (size_t i = 0; i < PLACES; ++i) batch_fini(&b[i]);
}

TEST(a_checkpoint_serves_both_devices) {
  if (backend_devices() < DEVICES) SKIP("fewer than two CUDA devices");
  llm_fixture f = open_in("backend: cuda, devices: 2"), g = open_in("backend: cuda, devices: 2");
  gl_error err = {0};
  double metrics[METRIC_COUNT];
  FILE *file = tmpfile();
  CU_ASSERT_PTR_NOT_NULL_FATAL(file);
  llm_train(&f, 0, 1, metrics);
  CU_ASSERT(f.learner.ops->hold(f.llm, &err) == GL_OK);
  CU_ASSERT(f.learner.ops->save(f.llm, file, &err) == GL_OK);
  rewind(file);
  CU_ASSERT(g.learner.ops->load(g.llm, file, &err) == GL_OK);
  llm_train(&f, 1, 2, metrics);
  llm_train(&g, 1, 2, metrics);
  double *a = llm_theta(&f), *b = llm_theta(&g);
  CU_ASSERT(memcmp(a, b, f.n * sizeof *a) == 0);
  CU_ASSERT(llm_draw_alike(&f, &g, 9, 1));
  fclose(file);
}

/* Breaks one replica for good, by an allocation that no device has room for. */
static gl_status break_one(void *context, size_t rank, gl_error *err) {
  backend *b = ((llm_fixture *)context)->llm->replica[rank].backend;
  (void)err;
  CU_ASSERT_PTR_NULL(b->ops->allocate(b, (size_t)1 << 60));
  return GL_OK;
}

TEST(a_device_that_fails_ends_the_update_of_both) {
  if (backend_devices() < DEVICES) SKIP("fewer than two CUDA devices");
  for (size_t rank = 0; rank < DEVICES; ++rank) {
    llm_fixture f = open_in("backend: cuda, devices: 2");
    batch b = llm_draw(&f, 0), *one = &b;
    double metrics[METRIC_COUNT];
    gl_error err = {0};
    char device[16];
    CU_ASSERT(rank_threads_run_at(f.llm->threads, rank, break_one, &f, &err) == GL_OK);
    CU_ASSERT(f.learner.ops->update(f.llm, &one, 1, metrics, &err) == GL_ENOMEM);
    snprintf(device, sizeof device, "device %zu: ", rank);
    CU_ASSERT(strncmp(err.text, device, strlen(device)) == 0);
    batch_fini(&b);
  }
}

TEST(more_devices_than_there_are_is_refused_with_their_number) {
  const size_t there = backend_devices();
  if (there == 0) SKIP("no CUDA device");
  backend *b = NULL;
  gl_error err = {0};
  char shows[64];
  snprintf(shows, sizeof shows, "this machine shows %zu", there);
  CU_ASSERT(backend_new_at(&b, BACKEND_AUTO, NUMBER_F32, (backend_place){0, there + 1}, 1, &err) ==
            GL_EIO);
  CU_ASSERT_PTR_NULL(b);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, shows));
}
