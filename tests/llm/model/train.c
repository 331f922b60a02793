/* The optimiser's steps against torch.optim, and checkpoints inside a run. */
#include "llm/model/model.h"
#include "tests/support/files.h"
#include "tests/support/llm_model.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: model training");

/* --- against torch --- */
/* Torch's gradients are given; a model's come from rows. So the fixture's numbers are put where a
 * gradient would be: through an embedding matrix whose gradient is set by hand. */

enum { PLACES = 24, STEPS = 20 };

/* Steps of the optimiser on the first 24 numbers of a model with these gradients. `places` must
 * have room for [STEPS, PLACES] parameters after each step. */
static void run_steps(const optimizer_spec *spec, const double *start, const double *gradients,
                      double *places) {
  gl_error err = {0};
  small_model s;
  double norm;
  small_model_make(&s, NUMBER_F64, 0, 1);
  const size_t n = model_parameters(s.m);
  double *theta = calloc(2 * n, sizeof *theta), *gradient = theta + n;
  model_optimizer *o;
  must(model_optimizer_new(&o, s.m, spec, &err), &err);
  must(model_get(s.m, theta, &err), &err);
  memcpy(theta, start, PLACES * sizeof *theta);
  must(model_set(s.m, theta, &err), &err);
  for (size_t t = 0; t < STEPS; ++t) {
    memcpy(gradient, gradients + t * PLACES, PLACES * sizeof *gradient);
    must(model_gradient_set(s.m, gradient, &err), &err);
    must(model_optimizer_step(o, spec->lr, &norm, &err), &err);
    double square = 0;
    for (size_t i = 0; i < PLACES; ++i) square += gradient[i] * gradient[i];
    ASSERT_CLOSE(norm, sqrt(square), 1e-12);
    must(model_get(s.m, theta, &err), &err);
    memcpy(places + t * PLACES, theta, PLACES * sizeof *theta);
  }
  free(theta);
  model_optimizer_free(o);
}

TEST(steps_are_those_of_torch) {
  const struct {
    const char *name;
    optimizer_spec spec;
  } cases[] = {
      {"adamw", {OPTIMIZER_ADAMW, 0.01, 0, 0.8, 0.97, 1e-6, 0.1, 0, 0, LR_CONSTANT, ESS_NONE}},
      {"adam", {OPTIMIZER_ADAM, 0.01, 0, 0.8, 0.97, 1e-6, 0.1, 0, 0, LR_CONSTANT, ESS_NONE}},
      {"sgd", {OPTIMIZER_SGD, 0.05, 0.7, 0, 0, 0, 0.1, 0, 0, LR_CONSTANT, ESS_NONE}},
      {"plain", {OPTIMIZER_SGD, 0.05, 0, 0, 0, 0, 0, 0, 0, LR_CONSTANT, ESS_NONE}},
  };
  safetensors *file;
  size_t n;
  ASSERT_OK(safetensors_open(&file, QWEN3 "optimizer.safetensors", &err));
  double *start = golden_tensor(file, "start", &n);
  double *gradients = golden_tensor(file, "gradients", &n);
  CU_ASSERT_EQUAL_FATAL(n, (size_t)STEPS * PLACES);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    double places[STEPS * PLACES];
    double *right = golden_tensor(file, cases[c].name, &n);
    run_steps(&cases[c].spec, start, gradients, places);
    CU_ASSERT(largest_difference(places, right, n) <= 1e-13 * largest(right, n));
    free(right);
  }
  free(start);
  free(gradients);
  safetensors_free(file);
}

/* Plain descent shows the factor: theta falls by lr * gradient * limit / norm. */
TEST(a_long_gradient_is_shortened) {
  small_model s;
  double norm;
  small_model_make(&s, NUMBER_F64, 0, 1);
  const size_t n = model_parameters(s.m);
  double *before = calloc(3 * n, sizeof *before), *after = before + n, *gradient = after + n;
  const optimizer_spec spec = {.kind = OPTIMIZER_SGD, .lr = 1, .clip_grad_norm = 2};
  model_optimizer *o;
  ASSERT_OK(model_optimizer_new(&o, s.m, &spec, &err));
  ASSERT_OK(model_get(s.m, before, &err));
  gradient[0] = 3;
  gradient[n - 1] = -4; /* a norm weight: clipped together with the matrices */
  ASSERT_OK(model_gradient_set(s.m, gradient, &err));
  ASSERT_OK(model_optimizer_step(o, 0.5, &norm, &err));
  ASSERT_OK(model_get(s.m, after, &err));
  ASSERT_CLOSE(norm, 5, 1e-14);
  ASSERT_CLOSE(after[0], before[0] - 0.5 * 3 * 2 / 5, 1e-14);
  ASSERT_CLOSE(after[n - 1], before[n - 1] + 0.5 * 4 * 2 / 5, 1e-14);
  CU_ASSERT_EQUAL(after[1], before[1]);
  free(before);
  model_optimizer_free(o);
}

TEST(norm_weights_do_not_decay) {
  small_model s;
  double norm;
  small_model_make(&s, NUMBER_F32, 0, 1);
  const size_t n = model_parameters(s.m);
  double *before = calloc(2 * n, sizeof *before), *after = before + n;
  const optimizer_spec spec = {.kind = OPTIMIZER_ADAMW,
                               .lr = 1,
                               .beta1 = 0.9,
                               .beta2 = 0.99,
                               .eps = 1e-8,
                               .weight_decay = 0.25};
  model_optimizer *o;
  ASSERT_OK(model_optimizer_new(&o, s.m, &spec, &err));
  ASSERT_OK(model_get(s.m, before, &err));
  ASSERT_OK(model_zero_gradient(s.m, &err));
  ASSERT_OK(model_optimizer_step(o, 1, &norm, &err));
  ASSERT_OK(model_get(s.m, after, &err));
  CU_ASSERT_EQUAL(norm, 0);
  size_t decayed = 0;
  for (size_t i = 0; i < n; ++i) {
    if (before[i] == 1) CU_ASSERT_EQUAL(after[i], 1);
    decayed += before[i] != 1 && fabs(after[i] - 0.75 * before[i]) <= 1e-7;
  }
  CU_ASSERT_EQUAL(decayed, n - 2 * (2 * 12 + 2 * 6) - 12);
  free(before);
  model_optimizer_free(o);
}

TEST(a_gradient_that_is_not_finite_changes_nothing) {
  small_model s;
  double norm;
  small_model_make(&s, NUMBER_F32, 0, 1);
  const size_t n = model_parameters(s.m);
  double *before = calloc(3 * n, sizeof *before), *after = before + n, *gradient = after + n;
  const optimizer_spec spec = {
      .kind = OPTIMIZER_ADAM, .lr = 1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8};
  model_optimizer *o;
  ASSERT_OK(model_optimizer_new(&o, s.m, &spec, &err));
  ASSERT_OK(model_get(s.m, before, &err));
  gradient[n / 2] = NAN;
  ASSERT_OK(model_gradient_set(s.m, gradient, &err));
  ASSERT_OK(model_optimizer_step(o, 1, &norm, &err));
  ASSERT_OK(model_get(s.m, after, &err));
  CU_ASSERT(isnan(norm));
  CU_ASSERT_EQUAL(memcmp(before, after, n * sizeof *before), 0);
  free(before);
  model_optimizer_free(o);
}

/* --- learning --- */

/* Supervised steps on a few sequences; returns the mean log-probability before the last step. */
static double train(small_model *s, model_optimizer *o, const random_rows *r, size_t steps) {
  double logp[128], weight[128], norm, mean = 0;
  const size_t n = r->rows.n_targets;
  for (size_t j = 0; j < n; ++j) weight[j] = -1 / (double)n;
  for (size_t t = 0; t < steps; ++t) {
    ASSERT_OK(model_zero_gradient(s->m, &err));
    ASSERT_OK(model_forward(s->m, &r->rows, 1, 1, logp, NULL, &err));
    ASSERT_OK(model_backward(s->m, weight, &err));
    ASSERT_OK(model_optimizer_step(o, 0.01, &norm, &err));
    mean = 0;
    for (size_t j = 0; j < n; ++j) mean += logp[j] / (double)n;
  }
  return mean;
}

static const size_t lengths[] = {9, 4, 12};
static const optimizer_spec adamw = {.kind = OPTIMIZER_ADAMW,
                                     .beta1 = 0.9,
                                     .beta2 = 0.99,
                                     .eps = 1e-8,
                                     .weight_decay = 0.01,
                                     .clip_grad_norm = 1};

TEST(a_model_learns_a_few_sequences_by_heart) {
  for (int as = 0; as < MODEL_TYPES; ++as) {
    small_model s;
    random_rows r;
    model_optimizer *o;
    small_model_make_as(&s, (model_type)as, NUMBER_F32, 0, 2);
    random_rows_init(&r, lengths, 3, 11, 5);
    ASSERT_OK(model_optimizer_new(&o, s.m, &adamw, &err));
    const double before = train(&s, o, &r, 1), after = train(&s, o, &r, 150);
    CU_ASSERT(before < -1.5);
    CU_ASSERT(after > -0.3);
    model_optimizer_free(o);
  }
}

/* --- checkpoints --- */

typedef struct trained {
  small_model s;
  random_rows r;
  model_optimizer *o;
} trained;

static void trained_init_as(trained *t, model_type as, uint64_t seed, number_type type) {
  small_model_make_as(&t->s, as, type, 0, seed);
  random_rows_init(&t->r, lengths, 3, 11, 5);
  ASSERT_OK(model_optimizer_new(&t->o, t->s.m, &adamw, &err));
}

static void trained_init(trained *t, uint64_t seed, number_type type) {
  trained_init_as(t, MODEL_QWEN3, seed, type);
}

static void trained_free(trained *t) {
  model_optimizer_free(t->o);
}

TEST(a_run_goes_on_from_its_checkpoint_bit_for_bit) {
  const number_type types[] = {NUMBER_F32, NUMBER_F64};
  for (int i = 0; i < 2 * MODEL_TYPES; ++i) {
    trained straight, resumed;
    trained_init_as(&straight, (model_type)(i / 2), 3, types[i % 2]);
    trained_init_as(&resumed, (model_type)(i / 2), 4, types[i % 2]);
    FILE *file = tmpfile();
    fputs("before", file); /* a learner writes its own things around it */
    train(&straight.s, straight.o, &straight.r, 3);
    ASSERT_OK(model_write(straight.s.m, straight.o, file, &err));
    fputs("after", file);
    train(&straight.s, straight.o, &straight.r, 3);
    rewind(file);
    char text[8] = {0};
    CU_ASSERT_EQUAL(fread(text, 1, 6, file), 6);
    ASSERT_OK(model_read(resumed.s.m, resumed.o, file, &err));
    CU_ASSERT_EQUAL(fread(text, 1, 5, file), 5);
    CU_ASSERT_EQUAL(memcmp(text, "after", 5), 0);
    train(&resumed.s, resumed.o, &resumed.r, 3);
    const size_t n = model_parameters(straight.s.m);
    double *a = calloc(2 * n, sizeof *a), *b = a + n;
    ASSERT_OK(model_get(straight.s.m, a, &err));
    ASSERT_OK(model_get(resumed.s.m, b, &err));
    CU_ASSERT_EQUAL(memcmp(a, b, n * sizeof *a), 0);
    free(a);
    fclose(file);
    trained_free(&straight);
    trained_free(&resumed);
  }
}

/* Bytes of a checkpoint; malloc'd. */
static unsigned char *written(const trained *t, size_t *size) {
  char folder[FILES_PATH], path[FILES_PATH];
  files_make(folder);
  FILE *file = fopen(files_path(folder, "state", path), "wb");
  ASSERT_OK(model_write(t->s.m, t->o, file, &err));
  fclose(file);
  unsigned char *bytes = files_read(path, size);
  files_remove(folder);
  return bytes;
}

static gl_status read_bytes(trained *t, const unsigned char *bytes, size_t size, gl_error *err) {
  FILE *file = tmpfile();
  fwrite(bytes, 1, size, file);
  rewind(file);
  gl_error_clear(err);
  gl_status status = model_read(t->s.m, t->o, file, err);
  fclose(file);
  return status;
}

TEST(a_damaged_checkpoint_changes_nothing) {
  gl_error err = {0};
  trained from, to;
  size_t size;
  trained_init(&from, 3, NUMBER_F32);
  trained_init(&to, 4, NUMBER_F32);
  train(&from.s, from.o, &from.r, 1);
  unsigned char *bytes = written(&from, &size);
  const size_t n = model_parameters(to.s.m);
  double *before = calloc(2 * n, sizeof *before), *after = before + n;
  must(model_get(to.s.m, before, &err), &err);
  for (size_t i = 0; i < 40; ++i) {
    const size_t at = i < 20 ? i * 3 : (i - 20) * (size - 1) / 19;
    bytes[at] ^= 0x10;
    CU_ASSERT_EQUAL(read_bytes(&to, bytes, size, &err), GL_EINPUT);
    bytes[at] ^= 0x10;
    CU_ASSERT_EQUAL(read_bytes(&to, bytes, at, &err), GL_EINPUT);
  }
  must(model_get(to.s.m, after, &err), &err);
  CU_ASSERT_EQUAL(memcmp(before, after, n * sizeof *before), 0);
  CU_ASSERT_EQUAL(read_bytes(&to, bytes, size, &err), GL_OK);
  free(before);
  free(bytes);
  trained_free(&from);
  trained_free(&to);
}

TEST(another_models_checkpoint_is_refused) {
  gl_error err = {0};
  trained single, wide;
  size_t size;
  trained_init(&single, 3, NUMBER_F32);
  trained_init(&wide, 3, NUMBER_F64);
  unsigned char *bytes = written(&single, &size);
  CU_ASSERT_EQUAL(read_bytes(&wide, bytes, size, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "precision"));
  const optimizer_spec sgd = {.kind = OPTIMIZER_SGD};
  model_optimizer_free(single.o);
  must(model_optimizer_new(&single.o, single.s.m, &sgd, &(gl_error){0}), &err);
  CU_ASSERT_EQUAL(read_bytes(&single, bytes, size, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "another optimizer"));
  free(bytes);
  trained_free(&single);
  trained_free(&wide);
}
