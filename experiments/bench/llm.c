/* Speed of the transformer on the CPU: training and generation, beside PyTorch on the same shapes
 * and threads, and beside the machine's rate of matrix products. */
#include "experiments/bench/bench.h"
#include "llm/backend/open/open.h"
#include "llm/model/generate.h"

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

static bench_shape shape_of(const char *name, size_t hidden, size_t layers, size_t heads,
                            size_t kv_heads, size_t dim, size_t vocabulary, size_t sequences,
                            size_t length) {
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
  shapes[0] = shape_of("64x2", 64, 2, 4, 2, 16, 32, 64, 24);
  shapes[1] = shape_of("128x4", 128, 4, 4, 2, 32, 64, 64, 32);
  shapes[2] = shape_of("256x6", 256, 6, 8, 4, 32, 600, 64, 64);
  shapes[3] = shape_of("512x8", 512, 8, 8, 4, 64, 600, 32, 64);
}

/* Multiplications and additions of matrix products per trained token: two in the forward and four
 * in the backward for every weight. */
static double flops_per_token(const model_config *c) {
  const size_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
  const size_t layer = c->hidden * (q + 2 * kv) + q * c->hidden + 3 * c->hidden * c->intermediate;
  return 6 * (double)(c->layers * layer + c->vocabulary * c->hidden);
}

/* --- one shape --- */

typedef struct workload {
  const bench_shape *shape;
  model *m;
  model_optimizer *optimizer;
  packed_tokens rows;
  size_t *start, *row, *number;
  int32_t *token, *target;
  double *slope, *logp;
  generate_result result;
} workload;

static gl_status train_once(void *self, gl_error *err) {
  workload *w = self;
  double norm;
  gl_status status = model_zero_gradient(w->m, err);
  if (status == GL_OK) status = model_forward(w->m, &w->rows, 1, 1, w->logp, NULL, err);
  if (status == GL_OK) status = model_backward(w->m, w->slope, err);
  if (status == GL_OK) status = model_optimizer_step(w->optimizer, 1e-4, &norm, err);
  return status;
}

static gl_status generate_once(void *self, gl_error *err) {
  workload *w = self;
  const bench_shape *s = w->shape;
  const size_t n = s->sequences, tokens = s->length - s->prompt;
  for (size_t i = 0; i <= n; ++i) w->start[i] = i * s->prompt;
  const generate_request request = {.n_prompts = n,
                                    .prompt_start = w->start,
                                    .prompt = w->token,
                                    .n_responses = n,
                                    .prompt_of = w->number,
                                    .number = w->number,
                                    .stream = rng_stream_at(1, RNG_ROLLOUT, 0),
                                    .sampling = {.temperature = 1, .top_p = 1},
                                    .max_tokens = tokens,
                                    .up_to = tokens};
  memset(w->result.length, 0, n * sizeof *w->result.length);
  memset(w->result.finished, 0, n * sizeof *w->result.finished);
  gl_status status = generate(w->m, &request, &w->result, err);
  for (size_t i = 0; i <= n; ++i) w->start[i] = i * s->length;
  return status;
}

static void workload_fini(workload *w) {
  model_optimizer_free(w->optimizer);
  model_free(w->m);
  generate_result_fini(&w->result);
  free(w->start);
  free(w->row);
  free(w->number);
  free(w->token);
  free(w->target);
  free(w->slope);
  free(w->logp);
}

static gl_status allocate(workload *w, gl_error *err) {
  const size_t sequences = w->shape->sequences, n = sequences * w->shape->length;
  w->start = calloc(sequences + 1, sizeof *w->start);
  w->number = calloc(sequences, sizeof *w->number);
  w->row = calloc(n, sizeof *w->row);
  w->token = calloc(n, sizeof *w->token);
  w->target = calloc(n, sizeof *w->target);
  w->slope = calloc(n, sizeof *w->slope);
  w->logp = calloc(n, sizeof *w->logp);
  if (w->start == NULL || w->number == NULL || w->row == NULL || w->token == NULL ||
      w->target == NULL || w->slope == NULL || w->logp == NULL)
    return gl_fail_memory(err, "a benchmark");
  w->rows = (packed_tokens){n, sequences, n, w->start, w->token, w->row, w->target};
  return generate_result_init(&w->result, sequences, w->shape->length, err);
}

static gl_status workload_init(workload *w, const bench_shape *s, backend *b, gl_error *err) {
  const optimizer_spec spec = {.kind = OPTIMIZER_ADAMW,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .weight_decay = 0.01,
                               .clip_grad_norm = 1};
  *w = (workload){.shape = s};
  gl_status status = allocate(w, err);
  if (status == GL_OK) status = model_new(&w->m, &s->model, b, 0, err);
  if (status == GL_OK) status = model_initialise(w->m, 1, err);
  if (status == GL_OK) status = model_optimizer_new(&w->optimizer, w->m, &spec, err);
  if (status != GL_OK) return status;
  for (size_t i = 0; i <= s->sequences; ++i) w->start[i] = i * s->length;
  for (size_t i = 0; i < s->sequences; ++i) w->number[i] = i;
  for (size_t i = 0; i < w->rows.n_tokens; ++i) {
    const rng_words word = rng_block(rng_stream_at(1, RNG_DATA, 0), i);
    w->row[i] = i;
    w->token[i] = (int32_t)(word.v[0] % s->model.vocabulary);
    w->target[i] = (int32_t)(word.v[1] % s->model.vocabulary);
    w->slope[i] = -1 / (double)w->rows.n_tokens;
  }
  return GL_OK;
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
static void ask(bench *r, bench_number *number, peer_process *torch, const bench_shape *s,
                const char *what, const char *name, double aim) {
  const model_config *c = &s->model;
  char request[256];
  snprintf(request, sizeof request, "%s %zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu", what, c->hidden,
           c->layers, c->heads, c->kv_heads, c->head_dim, c->intermediate, c->vocabulary,
           s->sequences, s->length, s->prompt);
  bench_ask(r, number, torch, name, request, aim);
}

static gl_status measure(bench *r, bench_number **number, workload *w, const char *what,
                         const char *text, size_t tokens, bench_task task, gl_error *err) {
  char key[BENCH_NAME];
  snprintf(key, sizeof key, "llm_%s_%s", w->shape->name, what);
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
  gl_status status = workload_init(&w, s, b, err);
  if (status == GL_OK)
    status = measure(r, &number, &w, "train_tokens_per_s", "tokens a second, training",
                     w.rows.n_tokens, train_once, err);
  if (status == GL_OK) {
    ask(r, number, torch, s, "train eager", "pytorch_eager", 1.3);
    ask(r, number, torch, s, "train compiled", "pytorch_compiled", 1.3);
    status = share_of_products(r, s, &number->rate, product, err);
  }
  if (status == GL_OK)
    status = measure(r, &number, &w, "generate_tokens_per_s", "tokens a second, generation",
                     s->sequences * (s->length - s->prompt), generate_once, err);
  if (status == GL_OK) {
    ask(r, number, torch, s, "generate transformers", "transformers_generate", 2);
    ask(r, number, torch, s, "generate loop", "pytorch_loop", 1.3);
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
