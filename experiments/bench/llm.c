/* Speed of the transformer on the CPU: training and generation, beside PyTorch on the same shapes
 * and threads, and beside the machine's rate of matrix products. */
#include "experiments/bench/bench.h"
#include "experiments/bench/workload.h"
#include "llm/backend/open/open.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_SHAPES = 4, RATE_SIDE = 1024 };
/* One repetition; longer where a single call is. */
#define LEAST_S 0.3

typedef struct bench_shape {
  const char *name;
  model_config model;
  size_t sequences, length, prompt;
} bench_shape;

static bench_shape time_llm_shape_of(const char *name, size_t hidden, size_t layers, size_t heads,
                                     size_t kv_heads, size_t dim, size_t vocabulary,
                                     size_t sequences, size_t length) {
  const model_config c = {.vocabulary = vocabulary,
                          .hidden = hidden,
                          .intermediate = 3 * hidden,
                          .layers = layers,
                          .heads = heads,
                          .kv_heads = kv_heads,
                          .head_dim = dim,
                          .max_positions = length,
                          .rms_eps = 1e-6,
                          .rope_theta = 10000,
                          .initializer_range = 0.02,
                          .tied = 1,
                          .begin = -1,
                          .end = -1,
                          .pad = -1};
  return (bench_shape){name, c, sequences, length, 8};
}

/* The last one has half as many sequences, so that a repetition takes seconds. */
static void all_shapes(bench_shape shapes[N_SHAPES]) {
  shapes[0] = time_llm_shape_of("64x2", 64, 2, 4, 2, 16, 32, 64, 24);
  shapes[1] = time_llm_shape_of("128x4", 128, 4, 4, 2, 32, 64, 64, 32);
  shapes[2] = time_llm_shape_of("256x6", 256, 6, 8, 4, 32, 600, 64, 64);
  shapes[3] = time_llm_shape_of("512x8", 512, 8, 8, 4, 64, 600, 32, 64);
}

/* Multiplications and additions of matrix products per trained token: two in the forward and four
 * in the backward for every weight. */
static double flops_per_token(const model_config *c) {
  const size_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
  const size_t layer = c->hidden * (q + 2 * kv) + q * c->hidden + 3 * c->hidden * c->intermediate;
  return 6 * (double)(c->layers * layer + c->vocabulary * c->hidden);
}

/* --- the machine's rate of products --- */

/* A large product cut in two dimensions, by the backend's own threads. */
typedef struct rate_job {
  backend *b;
  void *a, *x, *c;
} rate_job;

static gl_status multiply_once(void *self, gl_error *err) {
  const rate_job *j = self;
  j->b->ops->product(j->b, j->c, j->a, j->x, RATE_SIDE, RATE_SIDE, RATE_SIDE, 0);
  return j->b->ops->status(j->b, err);
}

/* *rate is in GFLOP a second. */
static gl_status measure_product(bench *r, backend *b, bench_rate *rate, gl_error *err) {
  const size_t bytes = RATE_SIDE * RATE_SIDE * sizeof(float);
  const double work = 2e-9 * RATE_SIDE * RATE_SIDE * RATE_SIDE;
  rate_job j = {b, b->ops->allocate(b, bytes), b->ops->allocate(b, bytes),
                b->ops->allocate(b, bytes)};
  bench_number *number = NULL;
  gl_status status = b->ops->status(b, err);
  if (status == GL_OK) b->ops->zero(b, j.a, bytes);
  if (status == GL_OK) b->ops->zero(b, j.x, bytes);
  if (status == GL_OK)
    status = bench_measure(r, &number, "llm_product_gflops",
                           "GFLOP a second, product of side 1024, float32", work, LEAST_S,
                           multiply_once, &j, err);
  if (status == GL_OK) *rate = number->rate;
  b->ops->release(b, j.a);
  b->ops->release(b, j.x);
  b->ops->release(b, j.c);
  return status;
}

/* --- one shape, beside PyTorch --- */

/* A request to experiments/bench/llm.py. */
static void time_llm_ask(bench *r, bench_number *number, peer_process *torch, const bench_shape *s,
                         const char *what, const char *name, double aim) {
  const model_config *c = &s->model;
  char request[256];
  snprintf(request, sizeof request, "%s %zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu", what, c->hidden,
           c->layers, c->heads, c->kv_heads, c->head_dim, c->intermediate, c->vocabulary,
           s->sequences, s->length, s->prompt);
  bench_ask(r, number, torch, name, request, aim);
}

static gl_status time_llm_measure(bench *r, bench_number **number, const bench_shape *s,
                                  workload *w, const char *what, const char *text, size_t tokens,
                                  bench_task task, gl_error *err) {
  char key[BENCH_NAME];
  snprintf(key, sizeof key, "llm_%s_%s", s->name, what);
  return bench_measure(r, number, key, text, (double)tokens, LEAST_S, task, w, err);
}

/* What training reaches of the rate of products alone. */
static gl_status share_of_products(bench *r, const bench_shape *s, const bench_rate *trained,
                                   const bench_rate *product, gl_error *err) {
  char key[BENCH_NAME];
  snprintf(key, sizeof key, "llm_%s_train_of_product_rate", s->name);
  return bench_derived(
      r, key, trained->median * flops_per_token(&s->model) / (1e9 * product->median), trained->load,
      product->load, NAN, "share of the rate of products that training reaches", err);
}

static gl_status measure_shape(bench *r, const bench_shape *s, backend *b, peer_process *torch,
                               const bench_rate *product, gl_error *err) {
  workload w;
  bench_number *number = NULL;
  const workload_size size = {s->sequences, s->length, s->prompt, .trains = 1};
  gl_status status = workload_init(&w, &s->model, size, b, err);
  if (status == GL_OK)
    status = time_llm_measure(r, &number, s, &w, "train_tokens_per_s", "tokens a second, training",
                              s->sequences * s->length, workload_train, err);
  if (status == GL_OK) {
    time_llm_ask(r, number, torch, s, "train eager", "pytorch_eager", 1.3);
    time_llm_ask(r, number, torch, s, "train compiled", "pytorch_compiled", 1.3);
    status = share_of_products(r, s, &number->rate, product, err);
  }
  if (status == GL_OK)
    status =
        time_llm_measure(r, &number, s, &w, "generate_tokens_per_s", "tokens a second, generation",
                         s->sequences * (s->length - s->prompt), workload_generate, err);
  if (status == GL_OK) {
    time_llm_ask(r, number, torch, s, "generate transformers", "transformers_generate", 2);
    time_llm_ask(r, number, torch, s, "generate loop", "pytorch_loop", 1.3);
  }
  workload_fini(&w);
  return status;
}

/* --- all --- */

gl_status bench_llm_has(const char *shape, gl_error *err) {
  bench_shape shapes[N_SHAPES];
  all_shapes(shapes);
  for (size_t i = 0; i < N_SHAPES; ++i)
    if (strcmp(shapes[i].name, shape) == 0) return GL_OK;
  return gl_fail(err, GL_EINPUT, "no shape '%s'; there are %s, %s, %s and %s", shape,
                 shapes[0].name, shapes[1].name, shapes[2].name, shapes[3].name);
}

gl_status bench_llm(bench *r, gl_error *err) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const size_t threads = cores > 0 ? (size_t)cores : 1;
  bench_shape shapes[N_SHAPES];
  bench_rate product = {.median = NAN};
  backend *b = NULL;
  peer_process torch;
  gl_status status = backend_new(&b, BACKEND_CPU, NUMBER_F32, threads, err);
  if (status != GL_OK) return status;
  all_shapes(shapes);
  bench_start_python(r, &torch, "experiments/bench/llm.py", threads);
  status = measure_product(r, b, &product, err);
  for (size_t i = 0; i < N_SHAPES && status == GL_OK; ++i)
    if (r->shape == NULL || strcmp(r->shape, shapes[i].name) == 0)
      status = measure_shape(r, &shapes[i], b, &torch, &product, err);
  peer_end(&torch);
  backend_free(b);
  return status;
}
