/* Whether a device computes what the CPU does: log-probabilities, gradients, tokens drawn. On a GPU
 * bfloat16 is held against float32 on the CPU; on the CPU, to try it, float32 against float64. Both
 * have the same parameters, which bfloat16 has exactly, so that they differ by arithmetic alone. */
#include "experiments/bench/gpu.h"
#include "llm/backend/open/open.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = 2, MOST_LENGTH = 512, ROWS = 8, MOST_PROMPT = 64, DRAWS = 16 };

static const struct {
  const char *what, *text;
  double bound;
} held[GPU_HELD] = {
    [GPU_LOGP] = {"parity.logp", "nats between log-probabilities, at most 0.02", 0.02},
    [GPU_COSINE] = {"parity.gradient", "cosine of the gradients, at least 0.999", 0.999},
    [GPU_NORM] = {"parity.norm", "|ratio of their norms - 1|, at most 0.02", 0.02},
    [GPU_GREEDY] = {"parity.greedy", "nats between most probable tokens, at most 0.04", 0.04},
    [GPU_DRAWN] = {"parity.draws", "probability between draw and token, at most 0.001", 0.001}};

typedef struct parity {
  const gpu_run *r;
  workload_size size;
  size_t prompt;
  double *logp;                                      /* of the device, [SEQUENCES * length] */
  float *gradient;                                   /* of the device */
  int32_t greedy[DRAWS * ROWS], drawn[DRAWS * ROWS]; /* of the device */
  /* What came of the comparison. */
  double value[GPU_HELD], least_cosine;
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

/* The device's results are kept, and the reference's compared with them. */
static gl_status parity_learn(parity *p, workload *w, int reference, gl_error *err) {
  const size_t n = model_parameters(w->m), targets = p->size.sequences * p->size.length;
  double *gradient = malloc(n * sizeof *gradient);
  if (gradient == NULL) return gl_fail_memory(err, "a gradient");
  gl_status status = workload_learn(w, err);
  if (status == GL_OK) status = model_gradient_get(w->m, gradient, err);
  for (size_t i = 0; i < targets && status == GL_OK && reference; ++i) {
    const double gap = fabs(w->logp[i] - p->logp[i]);
    if (gap > p->value[GPU_LOGP] || isnan(gap)) p->value[GPU_LOGP] = gap;
  }
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

/* How far the uniform of block `index` is from token's interval of softmax(z [vocabulary]). */
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

/* Draws a token greedily and one by inversion at every position, and goes on with the second as the
 * device drew it, on the reference too. */
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
  double *z = malloc(ROWS * vocabulary * sizeof *z);
  gl_status status = z != NULL ? GL_OK : gl_fail_memory(err, "logits");
  if (status == GL_OK) status = model_cache_new(&cache, w->m, ROWS, p->prompt + DRAWS, err);
  if (status == GL_OK) status = model_prefill(cache, &prompts, slot, err);
  for (size_t t = 0; t < DRAWS && status == GL_OK; ++t) {
    for (size_t i = 0; i < ROWS; ++i) {
      index[i] = rng_token_index(i, t);
      position[i] = (int32_t)(p->prompt + t);
    }
    for (int g = 1; g >= 0 && status == GL_OK; --g)
      status = model_sample(cache, NULL, index, ROWS, &spec, stream, g, g ? greedy : drawn, logq,
                            truncated, err);
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
  gl_status status = workload_init(&w, &p->r->shape->model, p->size, b, err);
  if (status == GL_OK) status = parity_draw(p, &w, reference, err);
  if (status == GL_OK) status = parity_learn(p, &w, reference, err);
  workload_fini(&w);
  return status;
}

gl_status gpu_parity_check(const double value[GPU_HELD], gl_error *err) {
  for (size_t i = 0; i < GPU_HELD; ++i) {
    const int kept = i == GPU_COSINE ? value[i] >= held[i].bound : value[i] <= held[i].bound;
    if (!kept) return gl_fail(err, GL_EIO, "%s is %.6g: %s", held[i].what, value[i], held[i].text);
  }
  return GL_OK;
}

static gl_status say(const parity *p, gl_error *err) {
  bench *b = &p->r->g->b;
  char key[BENCH_NAME];
  gl_status status = GL_OK;
  for (size_t i = 0; i < GPU_HELD && status == GL_OK; ++i)
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

gl_status gpu_parity(gpu_run *r, gl_error *err) {
  const gpu_shape *s = r->shape;
  const size_t length = s->length < MOST_LENGTH ? s->length : MOST_LENGTH;
  const size_t own = SEQUENCES * length / ROWS; /* prompts are cut from the same tokens */
  const number_type type = r->device->kind == BACKEND_CPU ? NUMBER_F64 : NUMBER_F32;
  backend *cpu = NULL;
  if (own == 0) return gl_fail(err, GL_EINPUT, "parity needs sequences of 4 tokens");
  parity p = {.r = r,
              .size = {.sequences = SEQUENCES, .length = length},
              .prompt = own < MOST_PROMPT ? own : MOST_PROMPT,
              .logp = calloc(SEQUENCES * length, sizeof *p.logp),
              .gradient = malloc(model_config_parameters(&s->model) * sizeof *p.gradient)};
  gl_status status = p.logp != NULL && p.gradient != NULL ? GL_OK : gl_fail_memory(err, "parity");
  if (status == GL_OK) status = one_side(&p, r->device, 0, err);
  if (status == GL_OK) status = backend_new(&cpu, BACKEND_CPU, type, 0, err);
  if (status == GL_OK) status = one_side(&p, cpu, 1, err);
  if (status == GL_OK) status = say(&p, err);
  backend_free(cpu);
  free(p.gradient);
  free(p.logp);
  return status;
}
