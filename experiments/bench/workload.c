/* The transformer workloads that benchmarks measure. */
#include "experiments/bench/workload.h"

#include "core/base/thread_pool.h"
#include "experiments/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* The AdamW settings of all benchmarks and their peers. */
static const optimizer_spec workload_optimizer = {.kind = OPTIMIZER_ADAMW,
                                                  .beta1 = 0.9,
                                                  .beta2 = 0.999,
                                                  .eps = 1e-8,
                                                  .weight_decay = 0.01,
                                                  .clip_grad_norm = 1};

/* --- making one --- */

enum { DRAWN_AT_ONCE = 1 << 20 };

typedef struct drawn_parameters {
  double *value;
  size_t n;
} drawn_parameters;

/* Fills one block of the parameters with random numbers. */
static void draw_some(void *context, size_t task, size_t worker) {
  const drawn_parameters *p = context;
  const size_t first = task * DRAWN_AT_ONCE;
  const size_t end = p->n - first < DRAWN_AT_ONCE ? p->n : first + DRAWN_AT_ONCE;
  const rng_stream stream = rng_stream_at(1, RNG_INIT, 0);
  (void)worker;
  for (size_t i = first; i < end; i += sizeof(rng_words)) {
    const rng_words words = rng_block(stream, i / sizeof words);
    int8_t byte[sizeof words];
    memcpy(byte, &words, sizeof words);
    for (size_t k = 0; k < sizeof words && i + k < end; ++k) p->value[i + k] = byte[k] * 0x1p-12;
  }
}

/* Small integers times 2^-12, with a standard deviation of 0.018. Normal numbers would take half a
 * minute for two billion parameters. */
static gl_status draw_parameters(double *value, const model *m, gl_error *err) {
  const size_t n = model_parameters(m);
  drawn_parameters p = {value, n};
  const model_tensor *t;
  pool *workers = NULL;
  gl_status status = pool_new(&workers, 0, err);
  if (status == GL_OK) pool_run(workers, draw_some, &p, (n + DRAWN_AT_ONCE - 1) / DRAWN_AT_ONCE);
  pool_free(workers);
  for (size_t k = 0; status == GL_OK && (t = model_tensor_at(m, k)) != NULL; ++k)
    for (size_t i = 0; t->rows == 1 && i < t->columns; ++i) value[t->offset + i] = 1;
  return status;
}

static gl_status workload_set_parameters(model *m, workload_parameters *p, gl_error *err) {
  workload_parameters own = {NULL, 0};
  gl_status status = GL_OK;
  if (p == NULL) {
    own.value = MUST_ARRAY(double, model_parameters(m), "the benchmark's parameters");
    p = &own;
  }
  if (!p->drawn) status = draw_parameters(p->value, m, err);
  if (status == GL_OK) p->drawn = 1;
  if (status == GL_OK) status = model_set(m, p->value, err);
  free(own.value);
  return status;
}

static gl_status workload_allocate(workload *w, gl_error *err) {
  const size_t sequences = w->size.sequences, n = sequences * w->size.length;
  w->start = MUST_ARRAY(size_t, sequences + 1, "a benchmark");
  w->prompt_start = MUST_ARRAY(size_t, sequences + 1, "a benchmark");
  w->number = MUST_ARRAY(size_t, sequences, "a benchmark");
  w->own_start = MUST_ARRAY(size_t, sequences + 1, "a benchmark");
  w->parent = MUST_ARRAY(size_t, sequences, "a benchmark");
  w->before = MUST_ARRAY(size_t, sequences, "a benchmark");
  w->row = MUST_ARRAY(size_t, n, "a benchmark");
  w->token = MUST_ARRAY(int32_t, n, "a benchmark");
  w->target = MUST_ARRAY(int32_t, n, "a benchmark");
  w->slope = MUST_ARRAY(double, n, "a benchmark");
  w->logp = MUST_ARRAY(double, n, "a benchmark");
  return generate_result_init(&w->result, sequences, w->up_to > 0 ? w->up_to : 1, err);
}

static void workload_fill(workload *w, size_t vocabulary) {
  const size_t n = w->size.sequences * w->size.length;
  for (size_t i = 0; i <= w->size.sequences; ++i) {
    w->start[i] = i * w->size.length;
    w->prompt_start[i] = i * w->size.prompt;
    w->own_start[i] = i > 0 ? w->start[i] - (i - 1) * w->size.shared : 0;
    if (i == w->size.sequences) break;
    w->number[i] = i;
    w->before[i] = i > 0 ? w->size.shared : 0;
  }
  for (size_t i = 0; i < n; ++i) {
    w->row[i] = i;
    w->token[i] = (int32_t)(rng_block(rng_stream_at(1, RNG_DATA, 0), i).v[0] % vocabulary);
    w->slope[i] = (i % 2 == 0 ? 1 : -1) / (double)n;
  }
  for (size_t i = 0; i < n; ++i) w->target[i] = w->token[(i + 1) % n];
}

static void workload_release(workload *w) {
  generate_result_fini(&w->result);
  free(w->start);
  free(w->prompt_start);
  free(w->own_start);
  free(w->parent);
  free(w->before);
  free(w->row);
  free(w->number);
  free(w->token);
  free(w->target);
  free(w->slope);
  free(w->logp);
}

static gl_status workload_begin(workload *w, size_t vocabulary, gl_error *err) {
  w->up_to = w->size.length - w->size.prompt;
  w->done = 0;
  if (w->size.micro == 0) w->size.micro = w->size.sequences;
  gl_status status = workload_allocate(w, err);
  if (status == GL_OK) workload_fill(w, vocabulary);
  return status;
}

gl_status workload_init(workload *w, const model_config *c, workload_size size,
                        workload_parameters *p, backend *b, gl_error *err) {
  *w = (workload){.size = size};
  gl_status status = workload_begin(w, c->vocabulary, err);
  if (status == GL_OK) status = model_new(&w->m, c, b, size.stores, err);
  if (status == GL_OK) status = workload_set_parameters(w->m, p, err);
  if (status == GL_OK && size.trains)
    status = model_optimizer_new(&w->optimizer, w->m, &workload_optimizer, err);
  return status;
}

gl_status workload_resize(workload *w, workload_size size, gl_error *err) {
  workload_release(w);
  *w = (workload){.size = size, .m = w->m, .optimizer = w->optimizer, .profile = w->profile};
  return workload_begin(w, model_configuration(w->m)->vocabulary, err);
}

void workload_fini(workload *w) {
  model_optimizer_free(w->optimizer);
  model_free(w->m);
  workload_release(w);
}

/* --- tasks --- */

static gl_status workload_finish(workload *w, gl_status status, gl_error *err) {
  backend *b = model_backend(w->m);
  if (status == GL_OK) status = b->ops->status(b, err);
  if (w->done++ == 0 && w->profile != NULL) backend_profile_clear(w->profile);
  return status;
}

static gl_status workload_pass(workload *w, int learn, gl_error *err) {
  gl_status status = learn ? model_zero_gradient(w->m, err) : GL_OK;
  for (size_t s = 0; s < w->size.sequences && status == GL_OK; s += w->size.micro) {
    const size_t left = w->size.sequences - s;
    const size_t sequences = left < w->size.micro ? left : w->size.micro;
    const size_t at = s * w->size.length;
    const size_t n = sequences * w->size.length - (sequences - 1) * w->size.shared;
    const size_t tree[] = {0, sequences};
    const shared_tokens shared = {1, tree, w->parent, w->before};
    const int shares = w->size.shared > 0;
    const packed_tokens rows = {
        n, sequences, n, shares ? w->own_start : w->start, w->token + at, w->row, w->target + at};
    const forward_options how = {
        .shared = shares ? &shared : NULL, .temperature = 1, .keep = learn};
    status = model_forward_with(w->m, &rows, &how, w->logp + at, NULL, err);
    if (learn && status == GL_OK) status = model_backward(w->m, w->slope + at, err);
  }
  return status;
}

gl_status workload_score(void *self, gl_error *err) {
  return workload_finish(self, workload_pass(self, 0, err), err);
}

gl_status workload_learn(void *self, gl_error *err) {
  return workload_finish(self, workload_pass(self, 1, err), err);
}

gl_status workload_train(void *self, gl_error *err) {
  workload *w = self;
  double norm;
  gl_status status = workload_pass(w, 1, err);
  if (status == GL_OK) status = model_optimizer_step(w->optimizer, 1e-6, &norm, err);
  return workload_finish(w, status, err);
}

gl_status workload_generate(void *self, gl_error *err) {
  workload *w = self;
  const size_t n = w->size.sequences;
  const generate_request request = {.n_prompts = n,
                                    .prompt_start = w->prompt_start,
                                    .prompt = w->token,
                                    .n_responses = n,
                                    .prompt_of = w->number,
                                    .number = w->number,
                                    .stream = rng_stream_at(1, RNG_ROLLOUT, 0),
                                    .sampling = {.temperature = 1, .top_p = 1},
                                    .max_tokens = w->size.length - w->size.prompt,
                                    .up_to = w->up_to,
                                    .slots = n};
  memset(w->result.length, 0, n * sizeof *w->result.length);
  memset(w->result.finished, 0, n * sizeof *w->result.finished);
  return workload_finish(w, generate(w->m, &request, &w->result, err), err);
}
