/* One reinforcement-learning step of the GPU benchmark: responses are generated, scored and learned
 * from, as the learner does it (llm/learner/update.c), without its recipe, because a recipe's
 * vocabulary is its tokenizer's. Responses have no stop token: all have the full length, the most a
 * step of so many responses can cost. */
#include "core/policy/policy.h"
#include "core/random/rng.h"
#include "experiments/base/seconds.h"
#include "experiments/bench/gpu.h"
#include "llm/learner/packed_tokens.h"
#include "llm/model/generate.h"

#include <stdlib.h>
#include <string.h>

enum { MICRO_BATCH = 16384, WARM_TOKENS = 32, MOST_STEPS = 3 };
#define LONG_STEP_SECONDS 15.0

/* A backend's operations, with a look at its memory after every allocation and before every
 * release: whatever was in use at most, was in use at one of these moments or at the end of a
 * phase, for what an operation takes for itself it keeps. */
typedef struct watched_ops {
  backend_ops ops; /* first: the backend's ops points here */
  const backend_ops *real;
  size_t least_free; /* bytes */
} watched_ops;

typedef struct phases {
  gpu_samples generate, score, update, total;
} phases;

typedef struct step_job {
  const gpu_shape *shape;
  backend *b;
  model *m;
  model_optimizer *optimizer;
  policy_workspace *workspace;
  size_t responses, slots, micro_batch;
  int recompute;
  size_t *prompt_start, *prompt_of, *number, *group_start, *token_start;
  int32_t *prompt, *token;
  double *reward, *logq, *logp, *coefficient, *slope;
  generate_result result;
  token_pack pack;
  watched_ops watched;
  double planned; /* bytes */
} step_job;

/* --- memory -------------------------------------------------------------------------------------
 */

static watched_ops *watched_of(const backend *b) {
  return (watched_ops *)(uintptr_t)b->ops;
}

static void look_at_memory(backend *b) {
  watched_ops *w = watched_of(b);
  size_t total, available;
  w->real->memory(b, &total, &available);
  if (available < w->least_free) w->least_free = available;
}

static void *watched_allocate(backend *b, size_t bytes) {
  void *memory = watched_of(b)->real->allocate(b, bytes);
  look_at_memory(b);
  return memory;
}

static void watched_release(backend *b, void *memory) {
  look_at_memory(b);
  watched_of(b)->real->release(b, memory);
}

static void watch(watched_ops *w, backend *b) {
  *w = (watched_ops){.ops = *b->ops, .real = b->ops, .least_free = SIZE_MAX};
  w->ops.allocate = watched_allocate;
  w->ops.release = watched_release;
  b->ops = &w->ops;
}

/* --- plan ---------------------------------------------------------------------------------------
 */

/* Whether everything fits with what j says; a part of what is free is left over, for allocations
 * leave gaps. */
static gl_status fits(step_job *j, size_t available, int *fit, gl_error *err) {
  memory_plan need;
  gl_status status =
      model_memory(&need, &j->shape->model, j->b, j->recompute, j->micro_batch, j->micro_batch,
                   j->slots, j->shape->prompt + j->shape->step_tokens, 0, err);
  j->planned = (double)need.total;
  *fit = status == GL_OK && need.total <= available - available / 32;
  return status;
}

/* All responses side by side and micro-batches of as many whole sequences as fit; where not even
 * one does, its layers are computed again in the backward; then fewer side by side. */
static gl_status plan_step(step_job *j, gl_error *err) {
  const size_t whole = j->shape->prompt + j->shape->step_tokens;
  size_t total, available;
  j->b->ops->memory(j->b, &total, &available);
  for (j->slots = j->responses; j->slots > 0; j->slots /= 2)
    for (j->recompute = 0; j->recompute <= 1; ++j->recompute) {
      size_t sequences = MICRO_BATCH / whole < j->responses ? MICRO_BATCH / whole : j->responses;
      for (sequences += sequences == 0; sequences > 0; --sequences) {
        int fit;
        j->micro_batch = sequences * whole;
        gl_status status = fits(j, available, &fit, err);
        if (status != GL_OK || fit) return status;
      }
    }
  return gl_fail(err, GL_ENOMEM, "a step does not fit: %.1f of %.1f GiB are free",
                 (double)available * 0x1p-30, (double)total * 0x1p-30);
}

/* --- phases -------------------------------------------------------------------------------------
 */

static gl_status draw(step_job *j, size_t tokens, gl_error *err) {
  const gpu_shape *s = j->shape;
  const generate_request request = {.n_prompts = s->step_groups,
                                    .prompt_start = j->prompt_start,
                                    .prompt = j->prompt,
                                    .n_responses = j->responses,
                                    .prompt_of = j->prompt_of,
                                    .number = j->number,
                                    .stream = rng_stream_at(1, RNG_ROLLOUT, 0),
                                    .sampling = {1, 0, 1, SAMPLING_RAW},
                                    .max_tokens = s->step_tokens,
                                    .up_to = tokens,
                                    .slots = j->slots};
  memset(j->result.length, 0, j->responses * sizeof *j->result.length);
  memset(j->result.finished, 0, j->responses * sizeof *j->result.finished);
  gl_status status = generate(j->m, &request, &j->result, err);
  for (size_t i = 0; i < j->responses; ++i) {
    j->token_start[i] = i * tokens;
    memcpy(j->token + i * tokens, j->result.token + i * s->step_tokens, tokens * sizeof *j->token);
    memcpy(j->logq + i * tokens, j->result.logq + i * s->step_tokens, tokens * sizeof *j->logq);
  }
  j->token_start[j->responses] = j->responses * tokens;
  return status;
}

/* Responses from *next on as far as they fit into a micro-batch. */
static gl_status pack_next(step_job *j, size_t *next, gl_error *err) {
  const gpu_shape *s = j->shape;
  token_pack_clear(&j->pack);
  for (; *next < j->responses; ++*next) {
    const size_t first = j->token_start[*next], n = j->token_start[*next + 1] - first;
    if (j->pack.n_sequences > 0 && j->pack.n_tokens + s->prompt + n > j->micro_batch) break;
    gl_status status = token_pack_add(&j->pack, j->prompt + j->prompt_start[j->prompt_of[*next]],
                                      s->prompt, j->token + first, n, err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

static gl_status score(step_job *j, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t next = 0, first = 0; status == GL_OK && next < j->responses;
       first = j->token_start[next]) {
    status = pack_next(j, &next, err);
    const packed_tokens rows = token_pack_view(&j->pack);
    if (status == GL_OK) status = model_forward(j->m, &rows, 1, 0, j->logp + first, NULL, err);
  }
  return status;
}

static gl_status coefficients(step_job *j, gl_error *err) {
  const policy_input in = {.n_groups = j->shape->step_groups,
                           .n_responses = j->responses,
                           .n_tokens = j->token_start[j->responses],
                           .group_start = j->group_start,
                           .token_start = j->token_start,
                           .reward = j->reward,
                           .logp = j->logp,
                           .logq = j->logq,
                           .max_length = j->shape->step_tokens};
  policy_output out = {.coefficient = j->coefficient};
  return policy_evaluate(policy_algorithms_find("gepo"), &in, &out, j->workspace, err);
}

static gl_status update(step_job *j, gl_error *err) {
  double norm;
  gl_status status = coefficients(j, err);
  if (status == GL_OK) status = model_zero_gradient(j->m, err);
  for (size_t next = 0, first = 0; status == GL_OK && next < j->responses;
       first = j->token_start[next]) {
    status = pack_next(j, &next, err);
    const packed_tokens rows = token_pack_view(&j->pack);
    for (size_t k = 0; k < rows.n_targets; ++k) j->slope[k] = -j->coefficient[first + k];
    if (status == GL_OK) status = model_forward(j->m, &rows, 1, 1, j->logp + first, NULL, err);
    if (status == GL_OK) status = model_backward(j->m, j->slope, err);
  }
  if (status == GL_OK) status = model_optimizer_step(j->optimizer, 1e-6, &norm, err);
  return status == GL_OK ? j->b->ops->status(j->b, err) : status;
}

static void add(gpu_samples *s, double seconds) {
  if (s->n < GPU_MOST_SAMPLES) s->seconds[s->n++] = seconds;
}

static gl_status one_step(step_job *j, size_t tokens, phases *p, gl_error *err) {
  const double begun = seconds_now();
  gl_status status = draw(j, tokens, err);
  const double drawn = seconds_now();
  look_at_memory(j->b);
  if (status == GL_OK) status = score(j, err);
  const double scored = seconds_now();
  look_at_memory(j->b);
  if (status == GL_OK) status = update(j, err);
  const double updated = seconds_now();
  look_at_memory(j->b);
  if (status != GL_OK) return status;
  add(&p->generate, drawn - begun);
  add(&p->score, scored - drawn);
  add(&p->update, updated - scored);
  add(&p->total, updated - begun);
  return GL_OK;
}

/* --- the step -----------------------------------------------------------------------------------
 */

static int allocate(step_job *j) {
  const gpu_shape *s = j->shape;
  const size_t n = j->responses, tokens = n * s->step_tokens;
  j->prompt_start = calloc(s->step_groups + 1, sizeof *j->prompt_start);
  j->group_start = calloc(s->step_groups + 1, sizeof *j->group_start);
  j->prompt_of = calloc(n, sizeof *j->prompt_of);
  j->number = calloc(n, sizeof *j->number);
  j->token_start = calloc(n + 1, sizeof *j->token_start);
  j->prompt = calloc(s->step_groups * s->prompt, sizeof *j->prompt);
  j->token = calloc(tokens, sizeof *j->token);
  j->reward = calloc(n, sizeof *j->reward);
  j->logq = calloc(tokens, sizeof *j->logq);
  j->logp = calloc(tokens, sizeof *j->logp);
  j->coefficient = calloc(tokens, sizeof *j->coefficient);
  j->slope = calloc(tokens, sizeof *j->slope);
  j->workspace = policy_workspace_new();
  if (j->prompt_start == NULL || j->group_start == NULL || j->prompt_of == NULL ||
      j->number == NULL || j->token_start == NULL || j->prompt == NULL || j->token == NULL ||
      j->reward == NULL || j->logq == NULL || j->logp == NULL || j->coefficient == NULL ||
      j->slope == NULL || j->workspace == NULL)
    return 0;
  for (size_t g = 0; g <= s->step_groups; ++g) {
    j->prompt_start[g] = g * s->prompt;
    j->group_start[g] = g * s->step_group_size;
  }
  for (size_t i = 0; i < n; ++i) {
    j->prompt_of[i] = i / s->step_group_size;
    j->number[i] = i;
    j->reward[i] = (double)(i % 2); /* no group of equal rewards: every response has a gradient */
  }
  for (size_t i = 0; i < s->step_groups * s->prompt; ++i) j->prompt[i] = gpu_token(&s->model, i);
  return 1;
}

static void release(step_job *j) {
  model_optimizer_free(j->optimizer);
  model_free(j->m);
  policy_workspace_free(j->workspace);
  generate_result_fini(&j->result);
  token_pack_fini(&j->pack);
  void *const all[] = {j->prompt_start, j->group_start, j->prompt_of,   j->number,
                       j->token_start,  j->prompt,      j->token,       j->reward,
                       j->logq,         j->logp,        j->coefficient, j->slope};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
}

static void say(const step_job *j, const phases *p, FILE *to) {
  const char *name = j->shape->name;
  size_t total, available;
  char plan[GPU_TEXT];
  j->b->ops->memory(j->b, &total, &available);
  gpu_say(to, name, "step.generate", &p->generate, 0);
  gpu_say(to, name, "step.score", &p->score, 0);
  gpu_say(to, name, "step.update", &p->update, 0);
  gpu_say(to, name, "step.total", &p->total, 0);
  if (j->b->kind == BACKEND_CUDA)
    gpu_say_number(to, name, "step.peak", (double)(total - j->watched.least_free) * 0x1p-30);
  else
    gpu_say_missing(to, name, "step.peak", "not measured on the CPU");
  snprintf(
      plan, sizeof plan,
      "%zu responses of %zu tokens, %zu slots, micro-batches of %zu tokens%s; %.2f GiB planned "
      "of %.1f",
      j->responses, j->shape->step_tokens, j->slots, j->micro_batch,
      j->recompute ? ", recomputed" : "", j->planned * 0x1p-30, (double)total * 0x1p-30);
  gpu_say_text(to, name, "step.plan", plan);
}

gl_status gpu_step(const gpu_shape *s, backend *b, FILE *to, gl_error *err) {
  const optimizer_spec spec = {
      .kind = OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .clip_grad_norm = 1};
  step_job j = {.shape = s, .b = b, .responses = s->step_groups * s->step_group_size};
  phases p = {.total = {.n = 0}};
  watch(&j.watched, b);
  gl_status status = generate_result_init(&j.result, j.responses, s->step_tokens, err);
  if (status == GL_OK && !allocate(&j)) status = gl_fail_memory(err, "the benchmark's step");
  if (status == GL_OK) status = plan_step(&j, err);
  if (status == GL_OK) status = gpu_model_new(&j.m, &s->model, b, j.recompute, err);
  if (status == GL_OK) status = model_optimizer_new(&j.optimizer, j.m, &spec, err);
  if (status == GL_OK)
    status = one_step(&j, s->step_tokens < WARM_TOKENS ? s->step_tokens : WARM_TOKENS, &p, err);
  p = (phases){.total = {.n = 0}};
  while (status == GL_OK && p.total.n < MOST_STEPS) {
    status = one_step(&j, s->step_tokens, &p, err);
    if (p.total.n > 0 && p.total.seconds[p.total.n - 1] > LONG_STEP_SECONDS) break;
  }
  if (status == GL_OK) say(&j, &p, to);
  release(&j);
  b->ops = j.watched.real;
  return status;
}
