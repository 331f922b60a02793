/* Whether a device computes what the CPU does: log-probabilities, gradients, tokens drawn. On a GPU
 * bfloat16 is held against float32 on the CPU; on the CPU, to try it, float32 against float64. Both
 * have the same parameters, which bfloat16 has exactly, so that they differ by arithmetic alone. */
#include "experiments/bench/gpu.h"
#include "llm/backend/open/open.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = 2, MOST_LENGTH = 512, ROWS = 8, MOST_PROMPT = 64, DRAWS = 16 };

/* Bounds: of log-probabilities in nats, of the gradients' cosine and norms, of how far a token
 * drawn may be from the other's: greedily, in nats below the most probable; by inversion, in
 * probability between the uniform and the token's interval. */
static const double LOGP_BOUND = 2e-2, COSINE_BOUND = 0.999, NORM_BOUND = 2e-2, GREEDY_BOUND = 4e-2,
                    DRAW_BOUND = 1e-3;

typedef struct parity {
  gpu_run *r;
  size_t prompt;
  gpu_batch batch;
  double *logp;                                      /* of the device, [SEQUENCES * length] */
  float *gradient;                                   /* of the device */
  int32_t greedy[DRAWS * ROWS], drawn[DRAWS * ROWS]; /* of the device */
  /* What came of the comparison. */
  double logp_gap, cosine, norm_ratio, least_cosine, greedy_gap, draw_gap;
  char least_tensor[96];
  size_t same_greedy, same_drawn;
} parity;

/* --- log-probabilities and gradients ------------------------------------------------------------
 */

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
  p->cosine = xy / sqrt(xx * yy);
  p->norm_ratio = sqrt(xx / yy);
}

/* The device's results are kept, and the reference's compared with them. */
static gl_status learn(parity *p, model *m, int reference, gl_error *err) {
  const size_t n = model_parameters(m), targets = p->batch.sequences * p->batch.length;
  gl_status status = gpu_batch_run(&p->batch, m, 1, err);
  if (status != GL_OK) return status;
  double *gradient = malloc(n * sizeof *gradient);
  if (gradient == NULL) return gl_fail_memory(err, "a gradient");
  status = model_gradient_get(m, gradient, err);
  if (status == GL_OK && reference) {
    for (size_t i = 0; i < targets; ++i) {
      const double gap = fabs(p->batch.logp[i] - p->logp[i]);
      p->logp_gap = gap > p->logp_gap || isnan(gap) ? gap : p->logp_gap;
    }
    compare_gradients(p, m, gradient);
  } else if (status == GL_OK) {
    memcpy(p->logp, p->batch.logp, targets * sizeof *p->logp);
    for (size_t i = 0; i < n; ++i) p->gradient[i] = (float)gradient[i];
  }
  free(gradient);
  return status;
}

/* --- draws --------------------------------------------------------------------------------------
 */

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
    p->greedy_gap = fmax(p->greedy_gap, gap);
    p->draw_gap = fmax(p->draw_gap, draw_gap(row, vocabulary, (size_t)p->drawn[at], stream,
                                             rng_token_index(i, step)));
  }
}

/* Draws a token greedily and one by inversion at every position, and goes on with the second as the
 * device drew it, on the reference too. */
static gl_status draw(parity *p, model *m, int reference, gl_error *err) {
  const model_config *c = &p->r->shape->model;
  const sampling_spec spec = {.temperature = 1, .top_p = 1};
  const rng_stream stream = rng_stream_at(1, RNG_ROLLOUT, 0);
  size_t start[ROWS + 1], slot[ROWS];
  int32_t greedy[ROWS], drawn[ROWS], slots[ROWS], position[ROWS];
  uint64_t index[ROWS];
  double logq[ROWS], truncated[ROWS];
  model_cache *cache = NULL;
  for (size_t i = 0; i <= ROWS; ++i) start[i] = i * p->prompt;
  for (size_t i = 0; i < ROWS; ++i) slots[i] = (int32_t)(slot[i] = i);
  const packed_tokens prompts = {ROWS * p->prompt, ROWS, 0, start, p->batch.token, NULL, NULL};
  double *z = malloc(ROWS * c->vocabulary * sizeof *z);
  gl_status status = z != NULL ? GL_OK : gl_fail_memory(err, "logits");
  if (status == GL_OK) status = model_cache_new(&cache, m, ROWS, p->prompt + DRAWS, err);
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
      if (status == GL_OK) compare_draws(p, z, c->vocabulary, t, greedy, drawn, stream);
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

/* --- the part -----------------------------------------------------------------------------------
 */

static gl_status one_side(parity *p, backend *b, int reference, gl_error *err) {
  model *m = NULL;
  gl_status status = gpu_model_new(&m, &p->r->shape->model, b, 0, err);
  if (status == GL_OK) status = draw(p, m, reference, err);
  if (status == GL_OK) status = learn(p, m, reference, err);
  model_free(m);
  return status;
}

static void say(const parity *p) {
  const gpu_run *r = p->r;
  char least[128], greedy[64], drawn[64];
  snprintf(least, sizeof least, "least: %.6f of %s", p->least_cosine, p->least_tensor);
  snprintf(greedy, sizeof greedy, "%zu of %d tokens the same", p->same_greedy, DRAWS * ROWS);
  snprintf(drawn, sizeof drawn, "%zu of %d tokens the same", p->same_drawn, DRAWS * ROWS);
  const gpu_row rows[] = {
      {.what = "parity.logp", .unit = "nats", .value = p->logp_gap, .at_most = LOGP_BOUND},
      {.what = "parity.gradient",
       .unit = "cosine",
       .value = p->cosine,
       .at_least = COSINE_BOUND,
       .note = least},
      {.what = "parity.norm",
       .unit = "|r - 1|",
       .value = fabs(p->norm_ratio - 1),
       .at_most = NORM_BOUND},
      {.what = "parity.greedy",
       .unit = "nats",
       .value = p->greedy_gap,
       .at_most = GREEDY_BOUND,
       .note = greedy},
      {.what = "parity.draws",
       .unit = "prob.",
       .value = p->draw_gap,
       .at_most = DRAW_BOUND,
       .note = drawn}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) gpu_say(r, rows[i]);
}

gl_status gpu_parity(gpu_run *r, gl_error *err) {
  const gpu_shape *s = r->shape;
  const size_t length = s->length < MOST_LENGTH ? s->length : MOST_LENGTH;
  const size_t own = SEQUENCES * length / ROWS; /* prompts are cut from the same tokens */
  backend *cpu = NULL;
  parity *p = calloc(1, sizeof *p);
  if (p == NULL || own == 0) {
    free(p);
    return p == NULL ? gl_fail_memory(err, "parity")
                     : gl_fail(err, GL_EINPUT, "parity needs sequences of 4 tokens");
  }
  p->r = r;
  p->prompt = own < MOST_PROMPT ? own : MOST_PROMPT;
  p->logp = calloc(SEQUENCES * length, sizeof *p->logp);
  p->gradient = malloc(model_config_parameters(&s->model) * sizeof *p->gradient);
  gl_status status = p->logp != NULL && p->gradient != NULL ? GL_OK : gl_fail_memory(err, "parity");
  if (status == GL_OK)
    status = gpu_batch_init(&p->batch, &s->model, SEQUENCES, length, SEQUENCES, err);
  if (status == GL_OK) status = one_side(p, r->b, 0, err);
  if (status == GL_OK)
    status =
        backend_new(&cpu, BACKEND_CPU, r->kind == BACKEND_CPU ? NUMBER_F64 : NUMBER_F32, 0, err);
  if (status == GL_OK) status = one_side(p, cpu, 1, err);
  if (status == GL_OK) say(p);
  backend_free(cpu);
  gpu_batch_fini(&p->batch);
  free(p->gradient);
  free(p->logp);
  free(p);
  return status;
}
