/* Speed of the transformer on the CPU: training and generation, next to PyTorch on the same shapes
 * and threads, and to the machine's rate of matrix products. */
#include "experiments/base/seconds.h"
#include "experiments/bench/bench.h"
#include "llm/backend/open/open.h"
#include "llm/model/generate.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_SHAPES = 3, MEASURE_AT_LEAST = 3, RATE_SIDE = 1024 };
#define MEASURE_SECONDS 2.0

typedef struct bench_shape {
  const char *name;
  model_config model;
  size_t sequences, length, prompt;
} bench_shape;

static bench_shape shape_of(const char *name, size_t hidden, size_t layers, size_t heads,
                            size_t kv_heads, size_t dim, size_t vocabulary, size_t length) {
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
  return (bench_shape){name, c, 64, length, 8};
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
                                    .sampling = {1, 0, 1, SAMPLING_RAW},
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

/* Seconds of the fastest of several runs, after one that warms up. */
static gl_status fastest(gl_status (*run)(void *, gl_error *), void *self, double *seconds,
                         gl_error *err) {
  gl_status status = run(self, err);
  const double start = seconds_now();
  *seconds = INFINITY;
  for (int i = 0;
       status == GL_OK && (i < MEASURE_AT_LEAST || seconds_now() - start < MEASURE_SECONDS); ++i) {
    const double before = seconds_now();
    status = run(self, err);
    *seconds = fmin(*seconds, seconds_now() - before);
  }
  return status;
}

/* --- peers --- */

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

/* Multiplications and additions per second of a matrix product of RATE_SIDE. */
static gl_status product_rate(backend *b, double *rate, gl_error *err) {
  const size_t bytes = RATE_SIDE * RATE_SIDE * sizeof(float);
  rate_job j = {b, b->ops->allocate(b, bytes), b->ops->allocate(b, bytes),
                b->ops->allocate(b, bytes)};
  double seconds = INFINITY;
  gl_status status = b->ops->status(b, err);
  if (status == GL_OK) status = fastest(multiply_once, &j, &seconds, err);
  *rate = 2.0 * RATE_SIDE * RATE_SIDE * RATE_SIDE / seconds;
  b->ops->release(b, j.a);
  b->ops->release(b, j.x);
  b->ops->release(b, j.c);
  return status;
}

/* Tokens per second that the PyTorch script prints for each shape: training, generation; NaN
 * without it, python3 or torch. */
static void torch_rates(const bench_shape *shapes, size_t threads, double rates[N_SHAPES][2]) {
  char command[1024];
  size_t used =
      (size_t)snprintf(command, sizeof command, "python3 experiments/bench/llm.py %zu", threads);
  for (size_t i = 0; i < N_SHAPES; ++i) {
    const bench_shape *s = &shapes[i];
    const model_config *c = &s->model;
    rates[i][0] = rates[i][1] = NAN;
    used += (size_t)snprintf(command + used, sizeof command - used,
                             " %zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu", c->hidden, c->layers,
                             c->heads, c->kv_heads, c->head_dim, c->intermediate, c->vocabulary,
                             s->sequences, s->length, s->prompt);
  }
  snprintf(command + used, sizeof command - used, " 2>/dev/null");
  if (access("experiments/bench/llm.py", R_OK) != 0) return;
  FILE *pipe = popen(command, "r");
  if (pipe == NULL) return;
  for (size_t i = 0; i < N_SHAPES; ++i)
    if (fscanf(pipe, "%lf %lf", &rates[i][0], &rates[i][1]) != 2) {
      rates[i][0] = rates[i][1] = NAN;
      break;
    }
  pclose(pipe);
}

/* --- all --- */

static void add(bench_result *r, const bench_shape *s, const char *what, double value, double aim,
                const char *text) {
  char key[48];
  snprintf(key, sizeof key, "llm_%s_%s", s->name, what);
  bench_add(r, key, value, aim, text);
}

static gl_status measure_shape(bench_result *r, const bench_shape *s, backend *b, double rate,
                               const double torch[2], gl_error *err) {
  workload w;
  double train = INFINITY, draw = INFINITY;
  gl_status status = workload_init(&w, s, b, err);
  if (status == GL_OK) status = fastest(train_once, &w, &train, err);
  if (status == GL_OK) status = fastest(generate_once, &w, &draw, err);
  if (status == GL_OK) {
    const double trained = (double)w.rows.n_tokens / train;
    const double drawn = (double)(s->sequences * (s->length - s->prompt)) / draw;
    add(r, s, "train_tokens_per_s", trained, 1.5 * torch[0], "aim: 1.5 x PyTorch, same threads");
    add(r, s, "generate_tokens_per_s", drawn, 3 * torch[1], "aim: 3 x PyTorch, same threads");
    add(r, s, "train_of_product_rate", trained * flops_per_token(&s->model) / rate, NAN,
        "share of the rate of matrix products");
  }
  workload_fini(&w);
  return status;
}

gl_status bench_llm(bench_result *r, gl_error *err) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const size_t threads = cores > 0 ? (size_t)cores : 1;
  const bench_shape shapes[N_SHAPES] = {shape_of("64x2", 64, 2, 4, 2, 16, 32, 24),
                                        shape_of("128x4", 128, 4, 4, 2, 32, 64, 32),
                                        shape_of("256x6", 256, 6, 8, 4, 32, 600, 64)};
  double torch[N_SHAPES][2], rate = NAN;
  backend *b = NULL;
  gl_status status = backend_new(&b, BACKEND_CPU, NUMBER_F32, threads, err);
  if (status != GL_OK) return status;
  torch_rates(shapes, threads, torch);
  status = product_rate(b, &rate, err);
  if (status == GL_OK)
    bench_add(r, "llm_product_gflops", 1e-9 * rate, NAN, "matrix product of side 1024, float32");
  for (size_t i = 0; i < N_SHAPES && status == GL_OK; ++i)
    status = measure_shape(r, &shapes[i], b, rate, torch[i], err);
  backend_free(b);
  return status;
}
