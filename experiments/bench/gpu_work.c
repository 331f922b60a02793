/* The parts of the GPU benchmark that are one kind of work repeated: limits, output layer,
 * decoding, training. */
#include "core/random/rng.h"
#include "experiments/bench/gpu.h"
#include "llm/backend/open/open.h"
#include "llm/model/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- limits -------------------------------------------------------------------------------------
 */

/* Products and copies follow each other CALLS times between two looks at the clock, so that waiting
 * for the device weighs nothing. */
enum { CALLS = 8 };

typedef struct limit_job {
  backend *b;
  size_t side, bytes;
  void *x, *y, *z;
} limit_job;

static gl_status multiply(void *self, gl_error *err) {
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

static void release_job(limit_job *j) {
  j->b->ops->release(j->b, j->x);
  j->b->ops->release(j->b, j->y);
  j->b->ops->release(j->b, j->z);
  j->x = j->y = j->z = NULL;
}

gl_status gpu_limits(backend *b, int quick, FILE *to, gl_error *err) {
  const int device = b->kind == BACKEND_CUDA;
  const size_t side = !device ? 256 : quick ? 4096 : 8192, n = side * side;
  const size_t bytes = (size_t)(!device ? 8 : quick ? 256 : 2048) << 20;
  limit_job j = {.b = b, .side = side, .bytes = bytes};
  gpu_samples s = {.n = 0};
  gpu_say_text(to, "limit", "device", b->device);
  j.x = gpu_normals(b, n, 1, err);
  j.y = j.x != NULL ? gpu_normals(b, n, 1, err) : NULL;
  j.z = b->ops->allocate(b, n * b->element);
  gl_status status = b->ops->status(b, err);
  if (status == GL_OK && j.y == NULL) status = gl_fail_memory(err, "the benchmark's matrices");
  if (status == GL_OK) status = gpu_time(&s, multiply, &j, quick ? 3 : 10, err);
  release_job(&j);
  if (status != GL_OK) return status;
  gpu_say(to, "limit", "product", &s, CALLS * 2e-12 * (double)n * (double)side);
  j.x = b->ops->allocate(b, bytes);
  j.y = b->ops->allocate(b, bytes);
  status = b->ops->status(b, err);
  if (status == GL_OK) status = gpu_time(&s, move, &j, quick ? 3 : 10, err);
  release_job(&j);
  if (status == GL_OK) gpu_say(to, "limit", "copy", &s, CALLS * 2e-9 * (double)bytes);
  return status;
}

/* --- log-probabilities over the vocabulary ------------------------------------------------------
 */

typedef struct logp_job {
  const gpu_shape *shape;
  backend *b;
  void *in, *din, *weight, *dweight, *logp, *entropy, *lse, *slope;
  int32_t *target; /* backend memory */
} logp_job;

static void forward_output(const logp_job *j) {
  const gpu_shape *s = j->shape;
  j->b->ops->output(j->b, j->logp, j->entropy, j->lse, j->in, j->weight, j->target, s->logp_rows,
                    s->model.vocabulary, s->model.hidden, 1);
}

static gl_status only_forward(void *self, gl_error *err) {
  const logp_job *j = self;
  forward_output(j);
  return j->b->ops->status(j->b, err);
}

static gl_status both_ways(void *self, gl_error *err) {
  const logp_job *j = self;
  const gpu_shape *s = j->shape;
  forward_output(j);
  j->b->ops->output_backward(j->b, j->din, j->dweight, j->slope, j->lse, j->in, j->weight,
                             j->target, s->logp_rows, s->model.vocabulary, s->model.hidden, 1);
  return j->b->ops->status(j->b, err);
}

static gl_status take_logp(logp_job *j, gl_error *err) {
  const model_config *c = &j->shape->model;
  const size_t rows = j->shape->logp_rows, master = j->b->master_element;
  void *(*const allocate)(backend *, size_t) = j->b->ops->allocate;
  int32_t *target = malloc(rows * sizeof *target);
  float *slope = malloc(rows * sizeof *slope);
  if (target == NULL || slope == NULL) {
    free(target);
    free(slope);
    return gl_fail_memory(err, "the benchmark's targets");
  }
  for (size_t r = 0; r < rows; ++r) {
    target[r] = gpu_token(c, r);
    slope[r] = -1 / (float)rows;
  }
  j->in = gpu_normals(j->b, rows * c->hidden, 1, err);
  j->weight = gpu_normals(j->b, c->vocabulary * c->hidden, c->initializer_range, err);
  j->din = allocate(j->b, rows * c->hidden * j->b->element);
  j->dweight = allocate(j->b, c->vocabulary * c->hidden * master);
  j->logp = allocate(j->b, rows * master);
  j->entropy = allocate(j->b, rows * master);
  j->lse = allocate(j->b, rows * master);
  j->slope = allocate(j->b, rows * sizeof *slope);
  j->target = allocate(j->b, rows * sizeof *target);
  j->b->ops->upload(j->b, j->target, target, rows * sizeof *target);
  j->b->ops->upload(j->b, j->slope, slope, rows * sizeof *slope);
  free(target);
  free(slope);
  return j->b->ops->status(j->b, err);
}

gl_status gpu_logp(const gpu_shape *s, backend *b, FILE *to, gl_error *err) {
  logp_job j = {.shape = s, .b = b};
  gpu_samples times;
  gl_status status = take_logp(&j, err);
  if (status == GL_OK) status = gpu_time(&times, only_forward, &j, s->repetitions, err);
  if (status == GL_OK) gpu_say(to, s->name, "logp", &times, (double)s->logp_rows);
  if (status == GL_OK) status = gpu_time(&times, both_ways, &j, s->repetitions, err);
  if (status == GL_OK) gpu_say(to, s->name, "logp_backward", &times, (double)s->logp_rows);
  void *const all[] = {j.in,      j.din, j.weight, j.dweight, j.logp,
                       j.entropy, j.lse, j.slope,  j.target};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) b->ops->release(b, all[i]);
  return status;
}

/* --- decoding -----------------------------------------------------------------------------------
 */

typedef struct decode_job {
  const gpu_shape *shape;
  model *m;
  size_t batch, draws;
  size_t *start, *number; /* [batch + 1] */
  int32_t *prompt;
  generate_result result;
} decode_job;

static gl_status decode_once(void *self, gl_error *err) {
  decode_job *j = self;
  const generate_request request = {.n_prompts = j->batch,
                                    .prompt_start = j->start,
                                    .prompt = j->prompt,
                                    .n_responses = j->batch,
                                    .prompt_of = j->number,
                                    .number = j->number,
                                    .stream = rng_stream_at(1, RNG_ROLLOUT, 0),
                                    .sampling = {1, 0, 1, SAMPLING_RAW},
                                    .max_tokens = j->shape->draws,
                                    .up_to = j->draws,
                                    .slots = j->batch};
  memset(j->result.length, 0, j->batch * sizeof *j->result.length);
  memset(j->result.finished, 0, j->batch * sizeof *j->result.finished);
  return generate(j->m, &request, &j->result, err);
}

/* One batch size: everything, prompts included; and the steps alone, as the difference to a run
 * that ends after the first token. */
static gl_status decode_batch(decode_job *j, FILE *to, gl_error *err) {
  const gpu_shape *s = j->shape;
  char what[32];
  gpu_samples whole, first;
  j->draws = s->draws;
  gl_status status = gpu_time(&whole, decode_once, j, s->repetitions, err);
  j->draws = 1;
  if (status == GL_OK) status = gpu_time(&first, decode_once, j, s->repetitions, err);
  if (status != GL_OK) return status;
  snprintf(what, sizeof what, "decode.%zu", j->batch);
  gpu_say(to, s->name, what, &whole, (double)(j->batch * s->draws));
  double least = first.seconds[0];
  for (size_t i = 1; i < first.n; ++i) least = fmin(least, first.seconds[i]);
  snprintf(what, sizeof what, "steps.%zu", j->batch);
  int longer = 1;
  for (size_t i = 0; i < whole.n; ++i) longer = longer && (whole.seconds[i] -= least) > 0;
  if (!longer)
    gpu_say_missing(to, s->name, what, "too short to be told from its prompts");
  else
    gpu_say(to, s->name, what, &whole, (double)(j->batch * (s->draws - 1)));
  return GL_OK;
}

gl_status gpu_decode(const gpu_shape *s, backend *b, FILE *to, gl_error *err) {
  const size_t most = s->batch[s->n_batches - 1];
  decode_job j = {.shape = s,
                  .start = calloc(most + 1, sizeof *j.start),
                  .number = calloc(most + 1, sizeof *j.number),
                  .prompt = calloc(most * s->prompt, sizeof *j.prompt)};
  gl_status status = generate_result_init(&j.result, most, s->draws, err);
  if (j.start == NULL || j.number == NULL || j.prompt == NULL)
    status = gl_fail_memory(err, "the benchmark's prompts");
  if (status == GL_OK) status = gpu_model_new(&j.m, &s->model, b, 0, err);
  for (size_t i = 0; i <= most && status == GL_OK; ++i) {
    j.start[i] = i * s->prompt;
    j.number[i] = i;
  }
  for (size_t i = 0; i < most * s->prompt && status == GL_OK; ++i)
    j.prompt[i] = gpu_token(&s->model, i);
  for (size_t k = 0; k < s->n_batches && status == GL_OK; ++k) {
    j.batch = s->batch[k];
    status = decode_batch(&j, to, err);
  }
  model_free(j.m);
  generate_result_fini(&j.result);
  free(j.start);
  free(j.number);
  free(j.prompt);
  return status;
}

/* --- training -----------------------------------------------------------------------------------
 */

typedef struct train_job {
  model *m;
  model_optimizer *optimizer;
  packed_tokens rows;
  size_t *start, *row;
  int32_t *token, *target;
  double *slope, *logp;
} train_job;

static gl_status train_once(void *self, gl_error *err) {
  train_job *j = self;
  double norm;
  gl_status status = model_zero_gradient(j->m, err);
  if (status == GL_OK) status = model_forward(j->m, &j->rows, 1, 1, j->logp, NULL, err);
  if (status == GL_OK) status = model_backward(j->m, j->slope, err);
  if (status == GL_OK) status = model_optimizer_step(j->optimizer, 1e-6, &norm, err);
  return status == GL_OK ? model_backend(j->m)->ops->status(model_backend(j->m), err) : status;
}

static gl_status take_rows(train_job *j, const gpu_shape *s, gl_error *err) {
  const size_t n = s->train_sequences * s->train_length;
  j->start = calloc(s->train_sequences + 1, sizeof *j->start);
  j->row = calloc(n, sizeof *j->row);
  j->token = calloc(n + 1, sizeof *j->token);
  j->target = calloc(n, sizeof *j->target);
  j->slope = calloc(n, sizeof *j->slope);
  j->logp = calloc(n, sizeof *j->logp);
  if (j->start == NULL || j->row == NULL || j->token == NULL || j->target == NULL ||
      j->slope == NULL || j->logp == NULL)
    return gl_fail_memory(err, "the benchmark's batch");
  for (size_t i = 0; i <= s->train_sequences; ++i) j->start[i] = i * s->train_length;
  for (size_t i = 0; i < n; ++i) {
    j->row[i] = i;
    j->token[i] = gpu_token(&s->model, i);
    j->target[i] = gpu_token(&s->model, i + 1);
    j->slope[i] = (i % 2 == 0 ? 1 : -1) / (double)n;
  }
  j->rows = (packed_tokens){n, s->train_sequences, n, j->start, j->token, j->row, j->target};
  return GL_OK;
}

gl_status gpu_train(const gpu_shape *s, backend *b, FILE *to, gl_error *err) {
  const optimizer_spec spec = {.kind = OPTIMIZER_ADAMW,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .weight_decay = 0.01,
                               .clip_grad_norm = 1};
  train_job j = {.m = NULL};
  gpu_samples times;
  gl_status status = take_rows(&j, s, err);
  if (status == GL_OK) status = gpu_model_new(&j.m, &s->model, b, 0, err);
  if (status == GL_OK) status = model_optimizer_new(&j.optimizer, j.m, &spec, err);
  if (status == GL_OK) status = gpu_time(&times, train_once, &j, s->repetitions, err);
  if (status == GL_OK) gpu_say(to, s->name, "train", &times, (double)j.rows.n_tokens);
  model_optimizer_free(j.optimizer);
  model_free(j.m);
  free(j.start);
  free(j.row);
  free(j.token);
  free(j.target);
  free(j.slope);
  free(j.logp);
  return status;
}

/* --- one part -----------------------------------------------------------------------------------
 */

gl_status gpu_part_run(gpu_part part, const gpu_shape *shape, backend_kind kind, int quick,
                       FILE *to, gl_error *err) {
  backend *b = NULL;
  const number_type type = kind == BACKEND_CPU ? NUMBER_F32 : NUMBER_BF16;
  gl_status status = backend_new(&b, kind, type, 0, err);
  if (status != GL_OK) return status;
  switch (part) {
  case GPU_LIMITS:
    status = gpu_limits(b, quick, to, err);
    break;
  case GPU_LOGP:
    status = gpu_logp(shape, b, to, err);
    break;
  case GPU_DECODE:
    status = gpu_decode(shape, b, to, err);
    break;
  case GPU_TRAIN:
    status = gpu_train(shape, b, to, err);
    break;
  case GPU_STEP:
    status = gpu_step(shape, b, to, err);
    break;
  case GPU_N_PARTS:
    status = gl_fail(err, GL_EINTERNAL, "there is no part %d of the GPU benchmark", (int)part);
    break;
  }
  backend_free(b);
  return status;
}
