/* The benchmark of a GPU: its parts, how they are run, and a comparison of the device's results
 * with the CPU's. */
#include "experiments/bench/gpu.h"

#include "core/base/hash.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/program.h"
#include "llm/backend/open/open.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The state of a running part; its numbers are stored in g. */
typedef struct gpu_run {
  gpu_bench *g;
  const gpu_shape *shape; /* NULL: for the part that runs once for all shapes */
  backend *device;        /* bfloat16 on a GPU, float32 on the CPU; profiled (backend_profile) */
  backend_profile *profile;
  int times; /* 1: print the times of operations */
} gpu_run;

/* Writes "SHAPE.what" into key and returns it. */
static const char *gpu_key(const gpu_run *r, const char *what, char key[BENCH_NAME]) {
  snprintf(key, BENCH_NAME, "%s.%s", r->shape != NULL ? r->shape->name : "limit", what);
  return key;
}

/* --- parity: whether a device computes what the CPU does --- */

/* Compares log-probabilities, gradients and sampled tokens of the device with those of the CPU.
 * bfloat16 on a GPU is compared with float32 on the CPU; float32 on the CPU, to test the code, with
 * float64. Both sides have the same parameters, which bfloat16 represents exactly, so only the
 * arithmetic differs. */

enum { SEQUENCES = 2, MOST_LENGTH = 512, ROWS = 8, MOST_PROMPT = 64, DRAWS = 16 };

static const struct {
  const char *what, *text;
  double bound;
} held[GPU_PARITY_VALUES] = {
    [GPU_LOGP] = {"parity.logp", "nats between log-probabilities, maximum, at most 0.05", 0.05},
    [GPU_LOGP_RMS] = {"parity.logp_rms", "the same, root mean square, at most 0.012", 0.012},
    [GPU_COSINE] = {"parity.gradient", "cosine of the gradients, at least 0.999", 0.999},
    [GPU_NORM] = {"parity.norm", "|ratio of their norms - 1|, at most 0.02", 0.02},
    [GPU_GREEDY] = {"parity.greedy", "nats between most probable tokens, at most 0.04", 0.04},
    [GPU_DRAWN] = {"parity.draws", "probability between draw and token, at most 0.001", 0.001}};

typedef struct parity {
  const gpu_run *r;
  workload_size size;
  size_t prompt;
  double *logp;                                      /* the device's, [SEQUENCES * length] */
  float *gradient;                                   /* the device's */
  int32_t greedy[DRAWS * ROWS], drawn[DRAWS * ROWS]; /* the device's */
  /* Results of the comparison: */
  double value[GPU_PARITY_VALUES], least_cosine;
  char least_tensor[96];
  size_t same_greedy, same_drawn;
} parity;

/* --- log-probabilities and gradients --- */

static void compare_gradients(parity *p, const model *m, const double *reference) {
  double xx = 0, xy = 0, yy = 0;
  const model_tensor *t;
  p->least_cosine = INFINITY;
  for (size_t k = 0; (t = model_tensor_at(m, k)) != NULL; ++k) {
    double own = 0, both = 0, other = 0;
    for (size_t i = t->offset; i < t->offset + t->rows * t->columns; ++i) {
      const double x = (double)p->gradient[i], y = reference[i];
      own += x * x;
      both += x * y;
      other += y * y;
    }
    xx += own;
    xy += both;
    yy += other;
    const double cosine = both / sqrt(own * other);
    if (cosine >= p->least_cosine) continue;
    p->least_cosine = cosine;
    snprintf(p->least_tensor, sizeof p->least_tensor, "%s", t->name);
  }
  p->value[GPU_COSINE] = xy / sqrt(xx * yy);
  p->value[GPU_NORM] = fabs(sqrt(xx / yy) - 1);
}

/* Stores the device's results, and compares the reference's with them. */
static gl_status parity_learn(parity *p, workload *w, int reference, gl_error *err) {
  const size_t n = model_parameters(w->m), targets = p->size.sequences * p->size.length;
  double *gradient = MUST_ARRAY(double, n, "a gradient");
  gl_status status = workload_learn(w, err);
  if (status == GL_OK) status = model_gradient_get(w->m, gradient, err);
  double squares = 0;
  for (size_t i = 0; i < targets && status == GL_OK && reference; ++i) {
    const double gap = fabs(w->logp[i] - p->logp[i]);
    if (gap > p->value[GPU_LOGP] || isnan(gap)) p->value[GPU_LOGP] = gap;
    squares += gap * gap;
  }
  if (reference) p->value[GPU_LOGP_RMS] = sqrt(squares / (double)targets);
  if (status == GL_OK && reference) {
    compare_gradients(p, w->m, gradient);
  } else if (status == GL_OK) {
    memcpy(p->logp, w->logp, targets * sizeof *p->logp);
    for (size_t i = 0; i < n; ++i) p->gradient[i] = (float)gradient[i];
  }
  free(gradient);
  return status;
}

/* --- draws --- */

/* Distance of the uniform number of block `index` from the token's interval of softmax(z
 * [vocabulary]). */
static double draw_gap(const double *z, size_t vocabulary, size_t token, rng_stream stream,
                       uint64_t index) {
  const rng_words w = rng_block(stream, index);
  double top = z[0], total = 0, before = 0;
  for (size_t v = 1; v < vocabulary; ++v) top = fmax(top, z[v]);
  for (size_t v = 0; v < vocabulary; ++v) {
    if (v == token) before = total;
    total += exp(z[v] - top);
  }
  const double u = rng_u01_53(w.v[0], w.v[1]), width = exp(z[token] - top) / total;
  return fmax(0, fmax(before / total - u, u - before / total - width));
}

static void compare_draws(parity *p, const double *z, size_t vocabulary, size_t step,
                          const int32_t *greedy, const int32_t *drawn, rng_stream stream) {
  for (size_t i = 0; i < ROWS; ++i) {
    const size_t at = step * ROWS + i;
    const double *row = z + i * vocabulary;
    const double gap = row[greedy[i]] - row[p->greedy[at]];
    p->same_greedy += greedy[i] == p->greedy[at];
    p->same_drawn += drawn[i] == p->drawn[at];
    p->value[GPU_GREEDY] = fmax(p->value[GPU_GREEDY], gap);
    p->value[GPU_DRAWN] = fmax(p->value[GPU_DRAWN], draw_gap(row, vocabulary, (size_t)p->drawn[at],
                                                             stream, rng_token_index(i, step)));
  }
}

/* At every position takes the most probable token, and samples one by inversion. The sequence
 * continues with the device's sampled token, on the reference, too. */
static gl_status parity_draw(parity *p, workload *w, int reference, gl_error *err) {
  const size_t vocabulary = p->r->shape->model.vocabulary;
  const sampling_spec spec = {.temperature = 1, .top_p = 1};
  const rng_stream stream = rng_stream_at(1, RNG_ROLLOUT, 0);
  size_t start[ROWS + 1], slot[ROWS];
  int32_t greedy[ROWS], drawn[ROWS], slots[ROWS], position[ROWS];
  uint64_t index[ROWS];
  double logq[ROWS], truncated[ROWS];
  model_cache *cache = NULL;
  for (size_t i = 0; i <= ROWS; ++i) start[i] = i * p->prompt;
  for (size_t i = 0; i < ROWS; ++i) slots[i] = (int32_t)(slot[i] = i);
  const packed_tokens prompts = {ROWS * p->prompt, ROWS, 0, start, w->token, NULL, NULL};
  double *z = MUST_ARRAY(double, ROWS *vocabulary, "logits");
  gl_status status = model_cache_new(&cache, w->m, ROWS, p->prompt + DRAWS, err);
  if (status == GL_OK) status = model_prefill(cache, &prompts, slot, err);
  for (size_t t = 0; t < DRAWS && status == GL_OK; ++t) {
    for (size_t i = 0; i < ROWS; ++i) {
      index[i] = rng_token_index(i, t);
      position[i] = (int32_t)(p->prompt + t);
    }
    for (int g = 1; g >= 0 && status == GL_OK; --g)
      status = model_sample(cache, &(model_draw_rows){ROWS, NULL, index, NULL},
                            &(model_draws){spec, stream, g, {0}},
                            &(model_drawn){g ? greedy : drawn, logq, truncated, NULL}, err);
    if (status == GL_OK && reference) {
      status = model_logits_get(cache, ROWS, z, err);
      if (status == GL_OK) compare_draws(p, z, vocabulary, t, greedy, drawn, stream);
    } else {
      memcpy(p->greedy + t * ROWS, greedy, sizeof greedy);
      memcpy(p->drawn + t * ROWS, drawn, sizeof drawn);
    }
    if (status == GL_OK)
      status = model_decode(cache, p->drawn + t * ROWS, slots, position, ROWS, err);
  }
  model_cache_free(cache);
  free(z);
  return status;
}

/* --- the part --- */

static gl_status one_side(parity *p, backend *b, int reference, gl_error *err) {
  workload w;
  gl_status status = workload_init(&w, &p->r->shape->model, p->size, &p->r->g->parameters, b, err);
  if (status == GL_OK) status = parity_draw(p, &w, reference, err);
  if (status == GL_OK) status = parity_learn(p, &w, reference, err);
  workload_fini(&w);
  return status;
}

gl_status gpu_parity_check(const double value[GPU_PARITY_VALUES], gl_error *err) {
  for (size_t i = 0; i < GPU_PARITY_VALUES; ++i) {
    const int kept = i == GPU_COSINE ? value[i] >= held[i].bound : value[i] <= held[i].bound;
    if (!kept) return gl_fail(err, GL_EIO, "%s is %.6g: %s", held[i].what, value[i], held[i].text);
  }
  return GL_OK;
}

/* Appends the values of the comparison to the numbers, and checks them against their bounds. */
static gl_status say(const parity *p, gl_error *err) {
  bench *b = &p->r->g->b;
  char key[BENCH_NAME];
  gl_status status = GL_OK;
  for (size_t i = 0; i < GPU_PARITY_VALUES && status == GL_OK; ++i)
    status = bench_fact(b, gpu_key(p->r, held[i].what, key), p->value[i], NAN, held[i].text, err);
  if (status == GL_OK)
    status = bench_fact(b, gpu_key(p->r, "parity.same_greedy", key), (double)p->same_greedy, NAN,
                        "of 128 tokens drawn greedily are the same", err);
  if (status == GL_OK)
    status = bench_fact(b, gpu_key(p->r, "parity.same_drawn", key), (double)p->same_drawn, NAN,
                        "of 128 tokens drawn by inversion are the same", err);
  if (status == GL_OK) status = gpu_parity_check(p->value, err);
  if (status != GL_OK)
    fprintf(stderr, "least cosine of a tensor: %.6f, %s\n", p->least_cosine, p->least_tensor);
  return status;
}

/* Compares the device with the CPU. */
static gl_status gpu_parity(gpu_run *r, gl_error *err) {
  const gpu_shape *s = r->shape;
  const size_t length = s->length < MOST_LENGTH ? s->length : MOST_LENGTH;
  const size_t own = SEQUENCES * length / ROWS; /* prompts are taken from the same tokens */
  const number_type type = r->device->kind == BACKEND_CPU ? NUMBER_F64 : NUMBER_F32;
  backend *cpu = NULL;
  if (own == 0) return gl_fail(err, GL_EINPUT, "parity needs sequences of 4 tokens");
  parity p = {.r = r,
              .size = {.sequences = SEQUENCES, .length = length},
              .prompt = own < MOST_PROMPT ? own : MOST_PROMPT,
              .logp = MUST_ARRAY(double, SEQUENCES *length, "log-probabilities"),
              .gradient = MUST_ARRAY(float, model_config_parameters(&s->model), "a gradient")};
  gl_status status = one_side(&p, r->device, 0, err);
  if (status == GL_OK) status = backend_new(&cpu, BACKEND_CPU, type, 0, err);
  if (status == GL_OK) status = one_side(&p, cpu, 1, err);
  if (status == GL_OK) status = say(&p, err);
  backend_free(cpu);
  free(p.gradient);
  free(p.logp);
  return status;
}

/* --- the parts, and how they are run --- */

#define SCRIPT "experiments/bench/gpu.py"
/* Seconds that a peer gets at least for its first answer, and for each later one. */
#define LEAST_PEER_S 120.0
#define LATER_PEER_S 1.0
enum { MICRO_TOKENS = 16384, WARM_TOKENS = 32, REPEATED_STEPS = 3 };

/* Goals: fractions of limits, and speed relative to the peer. */
#define TRAIN_SHARE 0.5
#define STEPS_SHARE 0.6
#define TRAIN_AIM 1.2
#define DECODE_AIM 5.0

/* --- shapes --- */

const char *const gpu_shape_names[] = {"0.6b", "1.7b", "tiny", NULL};

/* The two smallest Qwen3 models, and one that runs the same code within seconds on a CPU. */
#define QWEN3(wide, deep, words, queries, keys, dim)                                               \
  {                                                                                                \
    .vocabulary = words, .hidden = wide, .intermediate = 3 * wide, .layers = deep,                 \
    .heads = queries, .kv_heads = keys, .head_dim = dim, .max_positions = 8192, .rms_eps = 1e-6,   \
    .rope_theta = 1e6, .initializer_range = 0.02, .tied = 1, .begin = -1, .end = -1, .pad = -1     \
  }
static const gpu_shape shapes[] = {
    {"0.6b", QWEN3(1024, 28, 151936, 16, 8, 128), 8, 2048, 128, 256, {64, 256, 1}, 64, 4096, 5},
    {"1.7b", QWEN3(2048, 28, 151936, 16, 8, 128), 8, 2048, 128, 256, {64, 256, 1}, 64, 4096, 5},
    {"tiny", QWEN3(64, 2, 600, 4, 2, 16), 2, 64, 8, 32, {2, 4, 1}, 4, 64, 5}};

gpu_shape gpu_shape_named(const char *name, int quick) {
  size_t i = 0;
  while (strcmp(shapes[i].name, name) != 0) ++i;
  gpu_shape s = shapes[i];
  s.length /= quick ? 4 : 1;
  s.draws /= quick ? 4 : 1;
  s.tokens /= quick ? 4 : 1;
  return s;
}

gl_status gpu_shape_set(gpu_shape *s, const char *assignment, gl_error *err) {
  static const char *const names[] = {"sequences", "length", "prompt",      "draws", "batch",
                                      "responses", "tokens", "repetitions", "layers"};
  size_t *const sizes[] = {&s->sequences, &s->length, &s->prompt,      &s->draws,       s->batch,
                           &s->responses, &s->tokens, &s->repetitions, &s->model.layers};
  char name[24], *end;
  size_t i = 0;
  snprintf(name, sizeof name, "%.*s", (int)strcspn(assignment, "="), assignment);
  gl_status status = args_choose(&i, "a size", name, names, sizeof names / sizeof *names, err);
  if (status != GL_OK) return status;
  const char *text = strchr(assignment, '=') + 1;
  const unsigned long value = strtoul(text, &end, 10);
  const unsigned long most = sizes[i] == &s->repetitions ? BENCH_REPETITIONS : 65536;
  if (text[0] < '1' || text[0] > '9' || *end != '\0' || value > most)
    return gl_fail(err, GL_EINPUT, "%s: a whole number from 1 to %lu", assignment, most);
  *sizes[i] = value;
  if (sizes[i] == s->batch) s->batch[1] = 0;
  return model_config_check(&s->model, err);
}

/* --- limits, and the speeds that they allow --- */

/* Number of weights of all products. */
static double product_weights(const model_config *c) {
  const double q = (double)(c->heads * c->head_dim), kv = (double)(c->kv_heads * c->head_dim);
  const double h = (double)c->hidden;
  const double layer = h * (2 * q + 2 * kv) + 3 * h * (double)c->intermediate;
  return (double)c->layers * layer + h * (double)c->vocabulary;
}

/* Floating-point operations for training on one token. Six for every weight of a product (two
 * forward, four backward; the output layer counts, looking up an embedding does not). Twelve for
 * every number of a query's head dimension and every earlier position (scores and sums of values,
 * each 2 forward and 4 backward); a token has (length + 1) / 2 of these positions on average.
 * Recomputation in the backward is not counted. */
static double train_flops(const model_config *c, size_t length) {
  const double earlier = ((double)length + 1) / 2;
  return 6 * product_weights(c) + 12 * (double)(c->layers * c->heads * c->head_dim) * earlier;
}

/* Bytes that decoding one token must read: its fraction of all weights, and the keys and values of
 * `positions` positions. */
static double decode_bytes(const gpu_run *r, size_t batch, double positions) {
  const model_config *c = &r->shape->model;
  const double position = 2 * (double)(c->layers * c->kv_heads * c->head_dim);
  return (product_weights(c) / (double)batch + positions * position) * (double)r->device->element;
}

/* A measured rate, the operations and bytes that one of its units (such as a token) needs at least,
 * and the goal as a fraction of the rate that the device's limits allow; NaN: no goal. */
typedef struct row {
  const char *what, *text;
  double amount; /* units per call; units per second if computed */
  double flops, bytes, aim;
} row;

/* Adds the limit as a peer of a number, if limits were measured. */
static void beside_limit(const gpu_run *r, bench_number *number, const row *x) {
  const double seconds =
      (x->flops > 0 ? x->flops / r->g->product : 0) + (x->bytes > 0 ? x->bytes / r->g->copy : 0);
  if (isfinite(seconds) && seconds > 0)
    bench_beside(number, "limit", 1 / seconds, x->aim, "what the device's measured limits allow");
}

/* Appends a number that was computed from times, as one repetition. */
static gl_status say_rate(const gpu_run *r, row x, gl_error *err) {
  char key[BENCH_NAME];
  bench_number *number = NULL;
  gl_status status = bench_named(&r->g->b, &number, gpu_key(r, x.what, key), x.text, err);
  if (status != GL_OK) return status;
  if (isfinite(x.amount) && x.amount > 0)
    number->rate = bench_rate_of(&x.amount, 1, (meter_load){0});
  else
    snprintf(number->missing, PEER_TEXT, "too short to be measured");
  beside_limit(r, number, &x);
  return GL_OK;
}

/* Prints time and rates of each operation of the device since the first task on stderr, if
 * requested. */
static void print_operations(const gpu_run *r, const char *what) {
  backend_work work[BACKEND_OPERATIONS];
  char key[BENCH_NAME];
  const size_t n = r->times ? backend_profile_read(r->profile, work) : 0;
  double all = 0;
  for (size_t i = 0; i < n; ++i) all += work[i].seconds;
  if (n > 0)
    fprintf(stderr, "\n%-24s %8s %10s %8s %8s %6s\n", gpu_key(r, what, key), "calls", "ms",
            "TFLOP/s", "GB/s", "share");
  for (size_t i = 0; i < n; ++i)
    fprintf(stderr, "  %-22s %8zu %10.3f %8.3g %8.4g %6.3f\n", work[i].operation, work[i].calls,
            1e3 * work[i].seconds, 1e-12 * work[i].flops / work[i].seconds,
            1e-9 * work[i].bytes / work[i].seconds, work[i].seconds / all);
  backend_profile_clear(r->profile);
}

/* Measures a task of w and prints its operations; *rate is the median. */
static gl_status gpu_measure(gpu_run *r, double *rate, row x, bench_task task, workload *w,
                             gl_error *err) {
  char key[BENCH_NAME];
  bench_number *number = NULL;
  w->profile = r->profile;
  w->done = 0;
  gl_status status = bench_measure(
      &r->g->b, &number, (bench_row){gpu_key(r, x.what, key), x.text, x.amount, task, w}, 0, err);
  if (status != GL_OK) return status;
  beside_limit(r, number, &x);
  print_operations(r, x.what);
  *rate = number->rate.median;
  return GL_OK;
}

/* --- the part `limits` --- */

/* Products and copies are repeated CALLS times between two clock readings, so that waiting for the
 * device is negligible. */
enum { CALLS = 8 };

typedef struct limit_job {
  backend *b;
  size_t side, bytes; /* side of the matrices; bytes of a copy */
  void *x, *y, *z;
} limit_job;

static gl_status gpu_multiply(void *self, gl_error *err) {
  const limit_job *j = self;
  for (int i = 0; i < CALLS; ++i)
    j->b->ops->product(j->b, j->z, j->x, j->y, j->side, j->side, j->side, 0);
  return j->b->ops->status(j->b, err);
}

static gl_status move(void *self, gl_error *err) {
  const limit_job *j = self;
  for (int i = 0; i < CALLS; ++i) j->b->ops->copy(j->b, j->y, j->x, j->bytes);
  return j->b->ops->status(j->b, err);
}

/* Fills x and y with random numbers: a device's clock frequency depends on the work of its
 * multipliers, which zeros do not require. */
static gl_status fill_matrices(const limit_job *j, gl_error *err) {
  const size_t n = j->side * j->side;
  float *numbers = MUST_ARRAY(float, n, "the benchmark's matrices");
  for (size_t i = 0; i < n; ++i)
    numbers[i] = (float)rng_u01(rng_block(rng_stream_at(1, RNG_INIT, 0), i).v[0]) - 0.5f;
  j->b->ops->upload(j->b, j->z, numbers, n * sizeof *numbers);
  j->b->ops->cast(j->b, j->x, j->z, n);
  j->b->ops->cast(j->b, j->y, j->z, n);
  free(numbers);
  return j->b->ops->status(j->b, err);
}

/* Measures the device's limits: operations per second of a large matrix product, and bytes per
 * second of a copy. */
static gl_status limits(gpu_run *r, gl_error *err) {
  backend *b = r->device;
  bench *x = &r->g->b;
  const int whole = b->kind == BACKEND_CUDA && !x->quick;
  const size_t side = whole ? 8192 : 256, bytes = (size_t)(whole ? 2048 : 8) << 20;
  limit_job j = {b,
                 side,
                 bytes,
                 b->ops->allocate(b, bytes),
                 b->ops->allocate(b, bytes),
                 b->ops->allocate(b, bytes)};
  bench_number *product = NULL, *copy = NULL;
  gl_status status = b->ops->status(b, err);
  if (status == GL_OK) status = fill_matrices(&j, err);
  if (status == GL_OK)
    status = bench_measure(x, &product,
                           (bench_row){"limit.product", "operations a second of a product",
                                       CALLS * 2 * pow((double)side, 3), gpu_multiply, &j},
                           0, err);
  if (status == GL_OK)
    status = bench_measure(x, &copy,
                           (bench_row){"limit.copy", "bytes a second, read and written",
                                       CALLS * 2 * (double)bytes, move, &j},
                           0, err);
  if (status == GL_OK && product->rate.n > 0) r->g->product = product->rate.median;
  if (status == GL_OK && copy->rate.n > 0) r->g->copy = copy->rate.median;
  b->ops->release(b, j.x);
  b->ops->release(b, j.y);
  b->ops->release(b, j.z);
  return status;
}

/* --- training and the output layer --- */

static workload_size training_of(const gpu_shape *s) {
  return (workload_size){.sequences = s->sequences, .length = s->length, .trains = 1};
}

/* The memory that a workload of some sequences at a time needs, and whether it fits. A part of the
 * free memory stays unused, because allocations leave gaps. */
static gl_status gpu_fits(const gpu_run *r, const workload_size *size, memory_use use,
                          memory_plan *need, int *does, gl_error *err) {
  size_t total, available;
  r->device->ops->memory(r->device, &total, &available);
  use.training_tokens = use.training_targets = size->micro * size->length;
  gl_status status = model_memory(need, &r->shape->model, r->device, &use, err);
  *does = status == GL_OK && need->total <= available - available / 32;
  return status;
}

/* As measured here, and with the logits of the forward computed again, if they were stored. */
static gl_status gpu_train(gpu_run *r, gl_error *err) {
  const gpu_shape *s = r->shape;
  const double tokens = (double)(s->sequences * s->length);
  const row rows[] = {
      {"train.again", "tokens a second, training, logits computed twice", tokens, 0, 0, NAN},
      {"train", "tokens a second, training", tokens, train_flops(&s->model, s->length), 0,
       TRAIN_SHARE}};
  workload_size size = training_of(s);
  memory_plan need;
  int stores = 0;
  double rate;
  size.micro = size.sequences;
  gl_status status = GL_OK;
  if (r->device->ops->logits_bytes != NULL)
    status = gpu_fits(r, &size, (memory_use){.stores = MODEL_STORES_LOGITS}, &need, &stores, err);
  for (int i = !stores; i < 2 && status == GL_OK; ++i) {
    workload w;
    size.stores = stores && i == 1 ? MODEL_STORES_LOGITS : MODEL_STORES_ACTIVATIONS;
    status = workload_init(&w, &s->model, size, &r->g->parameters, r->device, err);
    if (status == GL_OK) status = gpu_measure(r, &rate, rows[i], workload_train, &w, err);
    workload_fini(&w);
  }
  return status;
}

/* A training step whose sequences have their first half, a prompt, in common: packed with each
 * sequence, and packed once. */
static gl_status gpu_shared(gpu_run *r, gl_error *err) {
  const gpu_shape *s = r->shape;
  const double tokens = (double)(s->sequences * s->length);
  const row rows[] = {
      {"shared.each", "tokens a second, training, the prompt with each", tokens, 0, 0, NAN},
      {"shared.once", "tokens a second, training, the prompt once", tokens, 0, 0, NAN}};
  workload_size size = training_of(s);
  double rate;
  workload w;
  gl_status status = workload_init(&w, &s->model, size, &r->g->parameters, r->device, err);
  if (status == GL_OK) status = gpu_measure(r, &rate, rows[0], workload_train, &w, err);
  size.shared = s->length / 2;
  if (status == GL_OK) status = workload_resize(&w, size, err);
  if (status == GL_OK) status = gpu_measure(r, &rate, rows[1], workload_train, &w, err);
  workload_fini(&w);
  return status;
}

/* --- the same bits again --- */

/* Hash of the parameters after REPEATED_STEPS steps from the benchmark's. */
static gl_status train_once(gpu_run *r, uint64_t *hash, gl_error *err) {
  const gpu_shape *s = r->shape;
  const size_t n = model_config_parameters(&s->model);
  double *value = MUST_ARRAY(double, n, "trained parameters");
  workload w;
  gl_status status =
      workload_init(&w, &s->model, training_of(s), &r->g->parameters, r->device, err);
  for (size_t i = 0; i < REPEATED_STEPS && status == GL_OK; ++i) status = workload_train(&w, err);
  if (status == GL_OK) status = model_get(w.m, value, err);
  if (status == GL_OK) *hash = hash_64(HASH_64_START, value, n * sizeof *value);
  workload_fini(&w);
  free(value);
  return status;
}

/* Trains twice; an error if the parameters differ in a bit. The number told serves to compare
 * processes. */
static gl_status gpu_repeats(gpu_run *r, gl_error *err) {
  uint64_t hash[2] = {0, 0};
  char key[BENCH_NAME];
  gl_status status = GL_OK;
  for (size_t i = 0; i < 2 && status == GL_OK; ++i) status = train_once(r, &hash[i], err);
  if (status == GL_OK && hash[0] != hash[1])
    return gl_fail(err, GL_EIO, "training the same again gives other parameters");
  return status == GL_OK
             ? bench_fact(&r->g->b, gpu_key(r, "repeats", key), (double)(hash[0] >> 11), NAN,
                          "hash of the parameters after three steps, the same twice", err)
             : status;
}

/* The output layer, measured by the times of its two operations within a training step. */
static gl_status logp(gpu_run *r, gl_error *err) {
  const gpu_shape *s = r->shape;
  const double flops = 2 * (double)s->model.vocabulary * (double)s->model.hidden;
  const double rows = (double)(s->sequences * s->length);
  backend_work work[BACKEND_OPERATIONS];
  double forward = 0, backward = 0;
  workload w;
  gl_status status =
      workload_init(&w, &s->model, training_of(s), &r->g->parameters, r->device, err);
  if (status == GL_OK) status = workload_train(&w, err);
  backend_profile_clear(r->profile);
  if (status == GL_OK) status = workload_train(&w, err);
  for (size_t n = status == GL_OK ? backend_profile_read(r->profile, work) : 0; n-- > 0;) {
    if (strcmp(work[n].operation, "output") == 0) forward = work[n].seconds;
    if (strcmp(work[n].operation, "output_backward") == 0) backward = work[n].seconds;
  }
  workload_fini(&w);
  const row found[] = {{"logp", "log-probabilities a second", rows / forward, flops, 0, NAN},
                       {"logp_backward", "the same with their gradient",
                        rows / (forward + backward), 3 * flops, 0, NAN}};
  for (size_t i = 0; i < 2 && status == GL_OK; ++i) status = say_rate(r, found[i], err);
  if (status == GL_OK) print_operations(r, "logp");
  return status;
}

/* --- decoding --- */

/* Measures the whole generation, prompts included; a run that ends after the first token; and the
 * steps alone, as the difference. */
static gl_status decode_batch(gpu_run *r, size_t batch, workload *w, gl_error *err) {
  const gpu_shape *s = r->shape;
  const double n = (double)batch, draws = (double)s->draws;
  const double bytes = decode_bytes(r, batch, (double)s->prompt + draws / 2);
  char whole[32], first[32], steps[32];
  double rate = NAN, first_rate = NAN;
  snprintf(whole, sizeof whole, "decode.%zu", batch);
  snprintf(first, sizeof first, "first.%zu", batch);
  snprintf(steps, sizeof steps, "steps.%zu", batch);
  gl_status status = gpu_measure(
      r, &rate, (row){whole, "tokens a second, prompts included", n * draws, .aim = NAN},
      workload_generate, w, err);
  w->up_to = 1;
  if (status == GL_OK)
    status = gpu_measure(r, &first_rate, (row){first, "first tokens a second", n, .aim = NAN},
                         workload_generate, w, err);
  if (status != GL_OK || s->draws == 1) return status;
  return say_rate(r,
                  (row){steps, "tokens a second, without prompts",
                        n * (draws - 1) / (n * draws / rate - n / first_rate), 0, bytes,
                        STEPS_SHARE},
                  err);
}

static gl_status gpu_decode(gpu_run *r, gl_error *err) {
  const gpu_shape *s = r->shape;
  gl_status status = GL_OK;
  workload w = {.m = NULL};
  for (size_t k = 0; k < GPU_MOST_BATCHES && s->batch[k] > 0 && status == GL_OK; ++k) {
    const workload_size size = {
        .sequences = s->batch[k], .length = s->prompt + s->draws, .prompt = s->prompt};
    status = k == 0 ? workload_init(&w, &s->model, size, &r->g->parameters, r->device, err)
                    : workload_resize(&w, size, err);
    if (status == GL_OK) status = decode_batch(r, s->batch[k], &w, err);
  }
  workload_fini(&w);
  return status;
}

/* --- a step of reinforcement learning --- */

/* Uses micro-batches of as many whole sequences as fit; if not even one fits, the backward
 * recomputes layers. If the logits fit, too, they are stored. */
static gl_status plan_step(workload_size *size, double *planned, const gpu_run *r, gl_error *err) {
  const model_stores stores[] = {MODEL_STORES_ACTIVATIONS, MODEL_STORES_INPUTS};
  const size_t most = MICRO_TOKENS / size->length + 1;
  memory_use use = {.slots = size->sequences, .capacity = size->length};
  memory_plan need;
  int does = 0;
  for (size_t i = 0; i < 2 && !does; ++i) {
    size->stores = use.stores = stores[i];
    size->micro = (most < size->sequences ? most : size->sequences) + 1;
    while (!does && --size->micro > 0) {
      gl_status status = gpu_fits(r, size, use, &need, &does, err);
      if (status != GL_OK) return status;
    }
  }
  *planned = (double)need.total;
  if (!does)
    return gl_fail(err, GL_ENOMEM, "a step does not fit: it needs %.1f GiB on %s",
                   *planned * 0x1p-30, r->device->device);
  if (size->stores == MODEL_STORES_INPUTS || r->device->ops->logits_bytes == NULL) return GL_OK;
  use.stores = MODEL_STORES_LOGITS;
  gl_status status = gpu_fits(r, size, use, &need, &does, err);
  if (!does) return status;
  size->stores = use.stores;
  *planned = (double)need.total;
  return GL_OK;
}

/* The first call, a warm-up, samples fewer tokens. */
static gl_status draw_responses(void *self, gl_error *err) {
  workload *w = self;
  const size_t all = w->size.length - w->size.prompt;
  w->up_to = w->done == 0 && all > WARM_TOKENS ? WARM_TOKENS : all;
  return workload_generate(w, err);
}

static gl_status measure_step(gpu_run *r, workload *w, gl_error *err) {
  const gpu_shape *s = r->shape;
  const double drawn = (double)(s->responses * s->tokens);
  const double all = (double)(s->responses * w->size.length);
  const double flops = train_flops(&s->model, w->size.length);
  const double bytes = decode_bytes(r, s->responses, (double)s->prompt + (double)s->tokens / 2);
  const struct {
    row row;
    bench_task task;
  } phases[] = {
      {{"step.generate", "tokens a second, drawn", drawn, 0, bytes, NAN}, draw_responses},
      {{"step.score", "tokens a second, prompts included", all, flops / 3, 0, NAN}, workload_score},
      {{"step.update", "tokens a second, prompts included", all, flops, 0, NAN}, workload_train}};
  char key[BENCH_NAME];
  double seconds = 0, rate;
  gl_status status = GL_OK;
  for (size_t i = 0; i < 3 && status == GL_OK; ++i) {
    status = gpu_measure(r, &rate, phases[i].row, phases[i].task, w, err);
    seconds += phases[i].row.amount / rate;
  }
  gpu_key(r, "step.seconds", key);
  return status == GL_OK ? bench_fact(&r->g->b, key, seconds, NAN, "of all three", err) : status;
}

static gl_status gpu_step(gpu_run *r, gl_error *err) {
  const gpu_shape *s = r->shape;
  workload_size size = {
      .sequences = s->responses, .length = s->prompt + s->tokens, .prompt = s->prompt, .trains = 1};
  double planned = 0;
  workload w = {.m = NULL};
  char key[BENCH_NAME];
  gl_status status = plan_step(&size, &planned, r, err);
  if (status == GL_OK)
    status = workload_init(&w, &s->model, size, &r->g->parameters, r->device, err);
  if (status == GL_OK) status = measure_step(r, &w, err);
  const struct {
    const char *what, *text;
    double value;
  } facts[] = {
      {"step.peak", "GiB in use at most", (double)backend_profile_peak(r->profile) * 0x1p-30},
      {"step.planned", "GiB planned", planned * 0x1p-30},
      {"step.micro", "sequences of a micro-batch", (double)size.micro},
      {"step.recompute", "1: layers are computed again", size.stores == MODEL_STORES_INPUTS},
      {"step.logits", "1: logits are stored", size.stores == MODEL_STORES_LOGITS}};
  for (size_t i = 0; i < sizeof facts / sizeof *facts && status == GL_OK; ++i)
    status = bench_fact(&r->g->b, gpu_key(r, facts[i].what, key), facts[i].value, NAN,
                        facts[i].text, err);
  workload_fini(&w);
  return status;
}

/* --- the peer --- */

/* Asks the script for the peer's rate of one of our numbers; batch 0: there is no batch size. */
static gl_status gpu_ask(gpu_run *r, peer_process *p, const char *what, size_t batch, double aim,
                         gl_error *err) {
  const gpu_shape *s = r->shape;
  const model_config *c = &s->model;
  char key[BENCH_NAME], own[32], request[GPU_TEXT];
  bench_number *number = NULL;
  snprintf(own, sizeof own, batch > 0 ? "%s.%zu" : "%s", what, batch);
  snprintf(request, sizeof request, "%s %zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu", what,
           c->hidden, c->layers, c->heads, c->kv_heads, c->head_dim, c->intermediate, c->vocabulary,
           s->sequences, s->length, s->prompt, s->draws, batch, r->g->b.repetitions);
  gl_status status = bench_named(&r->g->b, &number, gpu_key(r, own, key), "tokens a second", err);
  if (status == GL_OK) bench_ask(&r->g->b, number, p, "pytorch", request, aim);
  return status;
}

/* --- running parts --- */

/* A part of the benchmark. A peer is listed right after the part with which it is compared. */
typedef struct part {
  const char *name;
  gl_status (*run)(gpu_run *r, gl_error *err); /* NULL: the peer */
  int once;                                    /* 1: runs once for all shapes; its shape is NULL */
  int limited;                                 /* 1: its numbers have limits */
  size_t repetitions;                          /* maximum; 0: the shape's */
  const char *asks;                            /* the request to the peer for this part's numbers */
  int batches;                                 /* 1: one number per batch size */
  double aim;
} part;

static const part parts[] = {
    {"limits", .run = limits, .once = 1},
    {"parity", .run = gpu_parity},
    {"train", .run = gpu_train, .limited = 1},
    {"peer-train", .asks = "train", .aim = TRAIN_AIM},
    {"shared", .run = gpu_shared},
    {"repeats", .run = gpu_repeats},
    {"decode", .run = gpu_decode, .limited = 1, .repetitions = 3},
    {"peer-decode", .asks = "decode", .aim = DECODE_AIM, .batches = 1, .repetitions = 3},
    {"logp", .run = logp, .limited = 1},
    {"step", .run = gpu_step, .limited = 1, .repetitions = 1}};
enum { N_PARTS = sizeof parts / sizeof *parts };

/* Stores the first error, and records the reason at the missing number. */
static void failed(gpu_bench *g, const part *p, const gpu_shape *s, const char *why) {
  const gpu_run r = {.shape = s};
  char key[BENCH_NAME];
  bench_number *number = NULL;
  gpu_key(&r, p->name, key);
  if (bench_named(&g->b, &number, key, "", NULL) == GL_OK && number->rate.n == 0)
    snprintf(number->missing, PEER_TEXT, "%s", why);
  if (g->failed.status == GL_OK) gl_fail(&g->failed, GL_EIO, "%s: %s", key, why);
}

static void run_own(gpu_bench *g, const gpu_options *o, const part *p, const gpu_shape *s) {
  const char *times = getenv("GEPOLAB_CUDA_TIMES");
  const int unrecorded = times != NULL && strcmp(times, "all") == 0;
  gl_error err = {.status = GL_OK};
  gpu_run r = {
      .g = g, .shape = s, .times = times != NULL && times[0] != '\0' && strcmp(times, "0") != 0};
  const profile_kind kind = unrecorded                  ? PROFILE_TIMES_UNRECORDED
                            : r.times || p->run == logp ? PROFILE_TIMES
                                                        : PROFILE_MEMORY;
  const number_type type = o->kind == BACKEND_CPU ? NUMBER_F32 : NUMBER_BF16;
  if (backend_new(&r.device, o->kind, type, 0, &g->skipped) != GL_OK) return;
  snprintf(g->device, sizeof g->device, "%s", r.device->device);
  gl_status status = backend_profile_begin(&r.profile, r.device, kind, &err);
  if (status == GL_OK) status = p->run(&r, &err);
  if (status != GL_OK) failed(g, p, s, err.text);
  backend_profile_end(r.profile);
  backend_free(r.device);
}

/* Runs a part in a separate process that ends with this one. */
static void run_apart(gpu_bench *g, const gpu_options *o, const part *p, const gpu_shape *s) {
  char why[64];
  int how = 0;
  fflush(NULL);
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent) run_own(g, o, p, s);
    _exit(0);
  }
  while (pid > 0 && waitpid(pid, &how, 0) < 0 && errno == EINTR) continue;
  if (pid > 0 && how == 0) return;
  snprintf(why, sizeof why,
           pid < 0            ? "no process"
           : WIFSIGNALED(how) ? "ended by signal %d"
                              : "ended with code %d",
           WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
  failed(g, p, s, why);
}

static gl_status run_peer(gpu_bench *g, const gpu_options *o, const part *p, const gpu_shape *s,
                          gl_error *err) {
  const char *const words[] = {o->python, "-u", SCRIPT, o->kind == BACKEND_CUDA ? "cuda" : "cpu",
                               NULL};
  gpu_run r = {.g = g, .shape = s};
  peer_process peer;
  peer_start(&peer, words, SCRIPT);
  gl_status status = p->batches ? GL_OK : gpu_ask(&r, &peer, p->asks, 0, p->aim, err);
  for (size_t k = 0; k < GPU_MOST_BATCHES && p->batches && s->batch[k] > 0; ++k)
    if (status == GL_OK) {
      status = gpu_ask(&r, &peer, p->asks, s->batch[k], p->aim, err);
      g->b.least_peer_s = LATER_PEER_S;
    }
  peer_end(&peer);
  g->b.least_peer_s = LEAST_PEER_S;
  return status;
}

/* Sets wanted[i] for the parts named in `only` (NULL: all). If one of them has limits, the part
 * that measures limits is added. */
static gl_status gpu_choose(int wanted[N_PARTS], const char *only, gl_error *err) {
  const char *names[N_PARTS];
  for (size_t i = 0; i < N_PARTS; ++i) names[i] = parts[i].name, wanted[i] = only == NULL;
  gl_status status = GL_OK;
  for (const char *at = only; at != NULL && status == GL_OK; at = strchr(at, ',')) {
    char name[32];
    size_t i = 0;
    at += *at == ',';
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
    status = args_choose(&i, "--only", name, names, N_PARTS, err);
    if (status == GL_OK) wanted[i] = 1;
    if (status == GL_OK && parts[i].limited) wanted[0] = 1;
  }
  return status;
}

/* Runs the parts of a shape; s NULL: the part that runs once for all. The shape's parameters are in
 * memory shared with the parts' processes, so that only the first part draws them. */
static gl_status run_parts(gpu_bench *g, const gpu_options *o, const int wanted[N_PARTS],
                           const gpu_shape *s, gl_error *err) {
  const size_t bytes = s != NULL ? model_config_parameters(&s->model) * sizeof(double) : 0;
  gl_status status = GL_OK;
  g->parameters = (workload_parameters){NULL, 0};
  if (s != NULL) {
    void *value = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (value == MAP_FAILED) return gl_fail_memory(err, "the benchmark's parameters");
    g->parameters.value = value;
  }
  for (size_t i = 0; i < N_PARTS && status == GL_OK && g->skipped.status == GL_OK; ++i) {
    const part *p = &parts[i];
    if (!wanted[i] || p->once != (s == NULL)) continue;
    const size_t most = p->repetitions > 0 ? p->repetitions : BENCH_REPETITIONS;
    g->b.repetitions = s != NULL && s->repetitions < most ? s->repetitions : most;
    if (p->run == NULL)
      status = run_peer(g, o, p, s, err);
    else if (seconds_now() >= g->b.end)
      failed(g, p, s, "no time left; raise --seconds or choose with --only, --shape");
    else
      (o->in_process ? run_own : run_apart)(g, o, p, s);
  }
  if (s != NULL) munmap(g->parameters.value, bytes);
  return status;
}

static void gpu_print_number(const bench_number *number, const bench_peer *peer) {
  const bench_rate *rate = peer != NULL ? &peer->rate : &number->rate;
  fprintf(stderr, "  %-24s %-8s %.6g\n", number->key, peer != NULL ? peer->name : "", rate->median);
}

gl_status gpu_bench_run(gpu_bench **out, const gpu_options *o, gl_error *err) {
  int wanted[N_PARTS];
  *out = NULL;
  gl_status status = gpu_choose(wanted, o->only, err);
  if (status != GL_OK) return status;
  gpu_bench *g = mmap(NULL, sizeof *g, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (g == MAP_FAILED) return gl_fail_memory(err, "the benchmark's numbers");
  g->b.takes_busy = 1; /* processes on the host's cores hardly slow a device */
  g->b.quick = o->quick;
  g->b.end = seconds_now() + (double)o->seconds;
  g->b.least_peer_s = LEAST_PEER_S;
  g->b.report = o->silent ? NULL : gpu_print_number;
  status = run_parts(g, o, wanted, NULL, err);
  for (size_t i = 0; i < o->n_shapes && status == GL_OK; ++i)
    status = run_parts(g, o, wanted, &o->shapes[i], err);
  if (status == GL_OK)
    *out = g;
  else
    gpu_bench_free(g);
  return status;
}

void gpu_bench_free(gpu_bench *g) {
  if (g != NULL) munmap(g, sizeof *g);
}
