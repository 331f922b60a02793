/* The parts of the GPU benchmark that measure speed: limits, training, decoding, output layer, a
 * step of reinforcement learning. */
#include "core/random/rng.h"
#include "experiments/base/seconds.h"
#include "experiments/bench/gpu.h"
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
  size_t side, bytes; /* of the matrices; of a copy */
  char *x, *y, *z;
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

gl_status gpu_limits(gpu_run *r, gl_error *err) {
  backend *b = r->b;
  const int whole = b->kind == BACKEND_CUDA && !r->quick;
  const size_t side = whole ? 8192 : 256, n = side * side, bytes = (size_t)(whole ? 2048 : 8) << 20;
  const size_t room = bytes > n * b->element ? bytes : n * b->element;
  limit_job j = {b,
                 side,
                 bytes,
                 b->ops->allocate(b, room),
                 b->ops->allocate(b, room),
                 b->ops->allocate(b, room)};
  gpu_samples s = {.n = 0};
  gpu_say(r, (gpu_row){.what = "device", .note = b->device});
  gl_status status = b->ops->status(b, err);
  if (status == GL_OK) status = gpu_fill(b, j.x, n, err);
  if (status == GL_OK) status = gpu_fill(b, j.y, n, err);
  if (status == GL_OK) status = gpu_samples_take(r, &s, multiply, &j, r->quick ? 3 : 10, err);
  const double rate = CALLS * 2e-12 * (double)n * (double)side;
  if (status == GL_OK)
    gpu_say(r, (gpu_row){.what = "product", .unit = "TFLOP/s", .samples = &s, .amount = rate});
  if (status == GL_OK) status = gpu_samples_take(r, &s, move, &j, r->quick ? 3 : 10, err);
  const double moved = CALLS * 2e-9 * (double)bytes;
  if (status == GL_OK)
    gpu_say(r, (gpu_row){.what = "copy", .unit = "GB/s", .samples = &s, .amount = moved});
  b->ops->release(b, j.x);
  b->ops->release(b, j.y);
  b->ops->release(b, j.z);
  return status;
}

/* --- training -----------------------------------------------------------------------------------
 */

typedef struct train_job {
  model *m;
  model_optimizer *optimizer;
  gpu_batch batch;
} train_job;

static gl_status train_once(void *self, gl_error *err) {
  train_job *j = self;
  double norm;
  gl_status status = gpu_batch_run(&j->batch, j->m, 1, err);
  if (status == GL_OK) status = model_optimizer_step(j->optimizer, 1e-6, &norm, err);
  return status == GL_OK ? model_backend(j->m)->ops->status(model_backend(j->m), err) : status;
}

static gl_status train_init(train_job *j, gpu_run *r, size_t sequences, size_t length, size_t micro,
                            int recompute, gl_error *err) {
  const optimizer_spec spec = {.kind = OPTIMIZER_ADAMW,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .weight_decay = 0.01,
                               .clip_grad_norm = 1};
  gl_status status = gpu_batch_init(&j->batch, &r->shape->model, sequences, length, micro, err);
  if (status == GL_OK) status = gpu_model_new(&j->m, &r->shape->model, r->b, recompute, err);
  if (status == GL_OK) status = model_optimizer_new(&j->optimizer, j->m, &spec, err);
  return status;
}

static void train_fini(train_job *j) {
  model_optimizer_free(j->optimizer);
  model_free(j->m);
  gpu_batch_fini(&j->batch);
}

gl_status gpu_train(gpu_run *r, gl_error *err) {
  const gpu_shape *s = r->shape;
  train_job j = {.m = NULL};
  gpu_samples times;
  gl_status status = train_init(&j, r, s->sequences, s->length, s->sequences, 0, err);
  if (status == GL_OK) status = gpu_samples_take(r, &times, train_once, &j, s->repetitions, err);
  if (status == GL_OK) {
    gpu_say(r, (gpu_row){.what = "train",
                         .unit = "tokens/s",
                         .samples = &times,
                         .amount = (double)(s->sequences * s->length),
                         .flops = gpu_train_flops(&s->model, s->length)});
    gpu_say_operations(r, "train");
  }
  train_fini(&j);
  return status;
}

/* The output layer within a training step, by the times of its two operations. */
gl_status gpu_logp(gpu_run *r, gl_error *err) {
  const gpu_shape *s = r->shape;
  const double flops = 2 * (double)s->model.vocabulary * (double)s->model.hidden;
  backend_work work[BACKEND_OPERATIONS];
  double both = 0, forward = 0, rows = 0;
  train_job j = {.m = NULL};
  gpu_samples times;
  gl_status status = train_init(&j, r, s->sequences, s->length, s->sequences, 0, err);
  if (status == GL_OK) status = gpu_samples_take(r, &times, train_once, &j, s->repetitions, err);
  for (size_t n = status == GL_OK ? backend_watch_read(r->watch, work) : 0; n-- > 0;) {
    if (strncmp(work[n].operation, "output", 6) != 0) continue;
    both += work[n].seconds;
    if (work[n].operation[6] == '\0') forward = work[n].seconds;
    rows = (double)(s->sequences * s->length * times.n);
  }
  train_fini(&j);
  if (status != GL_OK) return status;
  gpu_say(r,
          (gpu_row){.what = "logp", .unit = "tokens/s", .value = rows / forward, .flops = flops});
  gpu_say(r, (gpu_row){.what = "logp_backward",
                       .unit = "tokens/s",
                       .value = rows / both,
                       .flops = 3 * flops});
  gpu_say_operations(r, "logp");
  return GL_OK;
}

/* --- decoding -----------------------------------------------------------------------------------
 */

/* `responses` of up to `most` tokens; `shared` of them answer one prompt. */
typedef struct draw_job {
  model *m;
  size_t prompt, responses, shared, most, up_to;
  size_t *start, *of, *number;
  int32_t *token;
  generate_result result;
} draw_job;

static gl_status draw_init(draw_job *j, const model_config *c, gl_error *err) {
  const size_t prompts = j->responses / j->shared;
  j->start = calloc(prompts + 1, sizeof *j->start);
  j->of = calloc(j->responses, sizeof *j->of);
  j->number = calloc(j->responses, sizeof *j->number);
  j->token = calloc(prompts * j->prompt, sizeof *j->token);
  gl_status status = generate_result_init(&j->result, j->responses, j->most, err);
  if (status != GL_OK) return status;
  if (j->start == NULL || j->of == NULL || j->number == NULL || j->token == NULL)
    return gl_fail_memory(err, "the benchmark's prompts");
  for (size_t i = 0; i <= prompts; ++i) j->start[i] = i * j->prompt;
  for (size_t i = 0; i < prompts * j->prompt; ++i) j->token[i] = gpu_token(c, i);
  for (size_t i = 0; i < j->responses; ++i) {
    j->of[i] = i / j->shared;
    j->number[i] = i;
  }
  return GL_OK;
}

static void draw_fini(draw_job *j) {
  generate_result_fini(&j->result);
  free(j->start);
  free(j->of);
  free(j->number);
  free(j->token);
}

/* No token ends a response: all have their full length. */
static gl_status draw_once(draw_job *j, size_t responses, size_t slots, gl_error *err) {
  const generate_request request = {.n_prompts = responses / j->shared,
                                    .prompt_start = j->start,
                                    .prompt = j->token,
                                    .n_responses = responses,
                                    .prompt_of = j->of,
                                    .number = j->number,
                                    .stream = rng_stream_at(1, RNG_ROLLOUT, 0),
                                    .sampling = {.temperature = 1, .top_p = 1},
                                    .max_tokens = j->most,
                                    .up_to = j->up_to,
                                    .slots = slots};
  memset(j->result.length, 0, responses * sizeof *j->result.length);
  memset(j->result.finished, 0, responses * sizeof *j->result.finished);
  return generate(j->m, &request, &j->result, err);
}

static gl_status decode_once(void *self, gl_error *err) {
  draw_job *j = self;
  return draw_once(j, j->responses, j->responses, err);
}

/* One batch size: everything, prompts included; and the steps alone, as the difference to a run
 * that ends after the first token. */
static gl_status decode_batch(draw_job *j, gpu_run *r, gl_error *err) {
  const gpu_shape *s = r->shape;
  const size_t repetitions = s->repetitions < 3 ? s->repetitions : 3;
  const double batch = (double)j->responses, position = (double)s->prompt + (double)s->draws / 2;
  char what[32];
  gpu_samples whole, first;
  snprintf(what, sizeof what, "decode.%zu", j->responses);
  j->up_to = s->draws;
  gl_status status = gpu_samples_take(r, &whole, decode_once, j, repetitions, err);
  if (status != GL_OK) return status;
  gpu_say(r, (gpu_row){.what = what,
                       .unit = "tokens/s",
                       .samples = &whole,
                       .amount = batch * (double)s->draws});
  gpu_say_operations(r, what);
  j->up_to = 1;
  status = gpu_samples_take(r, &first, decode_once, j, repetitions, err);
  if (status != GL_OK) return status;
  double least = first.seconds[0];
  for (size_t i = 1; i < first.n; ++i) least = fmin(least, first.seconds[i]);
  int longer = s->draws > 1;
  for (size_t i = 0; i < whole.n; ++i) longer = longer && (whole.seconds[i] -= least) > 0;
  snprintf(what, sizeof what, "steps.%zu", j->responses);
  gpu_say(r,
          (gpu_row){.what = what,
                    .unit = "tokens/s",
                    .samples = &whole,
                    .amount = batch * (double)(s->draws - 1),
                    .bytes = gpu_decode_bytes(&s->model, r->b->element, batch * position) / batch,
                    .missing = longer ? NULL : "too short to be told from its prompts"});
  return GL_OK;
}

gl_status gpu_decode(gpu_run *r, gl_error *err) {
  const gpu_shape *s = r->shape;
  model *m = NULL;
  gl_status status = gpu_model_new(&m, &s->model, r->b, 0, err);
  for (size_t k = 0; k < GPU_MOST_BATCHES && s->batch[k] > 0 && status == GL_OK; ++k) {
    draw_job j = {
        .m = m, .prompt = s->prompt, .responses = s->batch[k], .shared = 1, .most = s->draws};
    status = draw_init(&j, &s->model, err);
    if (status == GL_OK) status = decode_batch(&j, r, err);
    draw_fini(&j);
  }
  model_free(m);
  return status;
}

/* --- a step of reinforcement learning -----------------------------------------------------------
 */

/* Responses are drawn, scored and learned from, as the learner does it (llm/learner/update.c) but
 * without a recipe, whose vocabulary is its tokenizer's, and with a coefficient for every token. */
enum { MICRO_BATCH = 16384, WARM_TOKENS = 32, MOST_STEPS = 3, SHARED = 8 };

typedef struct step_plan {
  size_t slots, micro; /* micro: sequences of a micro-batch */
  int recompute;
  double bytes;
} step_plan;

/* All responses side by side and micro-batches of as many whole sequences as fit; where not even
 * one does, its layers are computed again in the backward; then fewer side by side. A part of what
 * is free is left over, for allocations leave gaps. */
static gl_status plan_step(step_plan *p, const gpu_run *r, gl_error *err) {
  const gpu_shape *s = r->shape;
  const size_t whole = s->prompt + s->tokens;
  size_t total, available;
  r->b->ops->memory(r->b, &total, &available);
  for (p->slots = s->responses; p->slots > 0; p->slots /= 2)
    for (p->recompute = 0; p->recompute <= 1; ++p->recompute) {
      p->micro = MICRO_BATCH / whole < s->responses ? MICRO_BATCH / whole : s->responses;
      for (p->micro += p->micro == 0; p->micro > 0; --p->micro) {
        memory_plan need;
        gl_status status = model_memory(&need, &s->model, r->b, p->recompute, p->micro * whole,
                                        p->micro * whole, p->slots, whole, 0, err);
        p->bytes = (double)need.total;
        if (status != GL_OK || need.total <= available - available / 32) return status;
      }
    }
  return gl_fail(err, GL_ENOMEM, "a step does not fit: %.1f of %.1f GiB are free",
                 (double)available * 0x1p-30, (double)total * 0x1p-30);
}

enum { GENERATE, SCORE, UPDATE, TOTAL, PHASES };

/* Draws `tokens` of each response; seconds of the phases are added to times. */
static gl_status one_step(draw_job *d, train_job *t, size_t slots, size_t tokens,
                          gpu_samples times[PHASES], gl_error *err) {
  double at[PHASES] = {seconds_now()};
  gpu_batch *b = &t->batch;
  d->up_to = tokens;
  gl_status status = draw_once(d, d->responses, slots, err);
  for (size_t i = 0; i < b->sequences && status == GL_OK; ++i) {
    int32_t *row = b->token + i * b->length;
    memcpy(row, d->token + d->start[d->of[i]], d->prompt * sizeof *row);
    memcpy(row + d->prompt, d->result.token + i * d->most, tokens * sizeof *row);
    memcpy(b->target + i * b->length, row + 1, (b->length - 1) * sizeof *row);
  }
  at[SCORE] = seconds_now();
  if (status == GL_OK) status = gpu_batch_run(b, t->m, 0, err);
  at[UPDATE] = seconds_now();
  if (status == GL_OK) status = train_once(t, err);
  at[TOTAL] = seconds_now();
  for (size_t i = 0; i < PHASES; ++i)
    times[i].seconds[times[i].n++] = i < TOTAL ? at[i + 1] - at[i] : at[TOTAL] - at[GENERATE];
  return status;
}

static void say_step(const gpu_run *r, const step_plan *p, const gpu_samples times[PHASES]) {
  static const char *const names[] = {"step.generate", "step.score", "step.update", "step.total"};
  const gpu_shape *s = r->shape;
  const double responses = (double)s->responses, tokens = (double)s->tokens;
  const double whole = (double)s->prompt + tokens;
  const double update = responses * whole * gpu_train_flops(&s->model, s->prompt + s->tokens);
  const double draw = tokens * gpu_decode_bytes(&s->model, r->b->element,
                                                responses * ((double)s->prompt + tokens / 2));
  const double flops[] = {0, update / 3, update, update * 4 / 3}, bytes[] = {draw, 0, 0, draw};
  size_t total, available;
  char note[160];
  for (size_t i = 0; i < PHASES; ++i)
    gpu_say(r, (gpu_row){.what = names[i],
                         .unit = "s",
                         .samples = &times[i],
                         .flops = flops[i],
                         .bytes = bytes[i]});
  r->b->ops->memory(r->b, &total, &available);
  snprintf(note, sizeof note,
           "%zu responses of %zu tokens, %zu slots, micro-batches of %zu sequences%s; %.2f GiB "
           "planned of %.1f",
           s->responses, s->tokens, p->slots, p->micro, p->recompute ? ", recomputed" : "",
           p->bytes * 0x1p-30, (double)total * 0x1p-30);
  gpu_say(r, (gpu_row){.what = "step.peak",
                       .unit = "GiB",
                       .value = (double)backend_watch_peak(r->watch) * 0x1p-30,
                       .note = note});
  gpu_say_operations(r, "step");
}

gl_status gpu_step(gpu_run *r, gl_error *err) {
  const gpu_shape *s = r->shape;
  const size_t shared = s->responses % SHARED == 0 ? SHARED : 1;
  draw_job d = {
      .prompt = s->prompt, .responses = s->responses, .shared = shared, .most = s->tokens};
  train_job t = {.m = NULL};
  step_plan p = {.slots = 0};
  gpu_samples times[PHASES] = {{.n = 0}};
  gl_status status = plan_step(&p, r, err);
  if (status == GL_OK)
    status = train_init(&t, r, s->responses, s->prompt + s->tokens, p.micro, p.recompute, err);
  if (status == GL_OK) status = draw_init(&d, &s->model, err);
  d.m = t.m;
  if (status == GL_OK)
    status =
        one_step(&d, &t, p.slots, s->tokens < WARM_TOKENS ? s->tokens : WARM_TOKENS, times, err);
  memset(times, 0, sizeof times);
  backend_watch_clear(r->watch);
  for (double sum = 0; status == GL_OK && times[TOTAL].n < MOST_STEPS && sum < 12;
       sum += times[TOTAL].seconds[times[TOTAL].n - 1])
    status = one_step(&d, &t, p.slots, s->tokens, times, err);
  if (status == GL_OK) say_step(r, &p, times);
  draw_fini(&d);
  train_fini(&t);
  return status;
}
