/* A small model with a backend, for tests of generation. */
#include "tests/support/llm_generate.h"
#include "llm/backend/open/open.h"

#include "tests/support/suite.h"

#include <string.h>

/* --- a tiny model and a request --- */

tiny tiny_new(number_type type, size_t threads, size_t vocabulary, uint64_t seed) {
  tiny t = {0};
  gl_error err = {0};
  const model_config c = {.vocabulary = vocabulary,
                          .hidden = 16,
                          .intermediate = 24,
                          .layers = 2,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_dim = 4,
                          .max_positions = POSITIONS,
                          .rms_eps = 1e-6,
                          .rope_theta = 10000,
                          .initializer_range = 0.4,
                          .tied = 0,
                          .begin = -1,
                          .end = -1,
                          .pad = -1};
  int good = backend_new(&t.backend, BACKEND_CPU, type, threads, &err) == GL_OK &&
             model_new(&t.model, &c, t.backend, 0, &err) == GL_OK &&
             model_initialise(t.model, seed, &err) == GL_OK;
  if (!good) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_FATAL(good);
  return t;
}

void tiny_free(tiny *t) {
  model_free(t->model);
  backend_free(t->backend);
}

static const int32_t stop_tokens[] = {STOP};

generate_request make_request(request_data *d) {
  static const size_t lengths[PROMPTS] = {3, 1, 9, 4, 6};
  size_t n = 0;
  for (size_t p = 0; p < PROMPTS; ++p) {
    d->prompt_start[p] = n;
    for (size_t k = 0; k < lengths[p]; ++k, ++n)
      d->prompt[n] = (int32_t)((n * n + 3 * p + 1) % VOCABULARY);
  }
  d->prompt_start[PROMPTS] = n;
  for (size_t i = 0; i < RESPONSES; ++i) {
    d->prompt_of[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? 2 : i % 4 == 0 ? 1 : 4;
    d->number[i] = i;
  }
  return (generate_request){.n_prompts = PROMPTS,
                            .prompt_start = d->prompt_start,
                            .prompt = d->prompt,
                            .n_responses = RESPONSES,
                            .prompt_of = d->prompt_of,
                            .number = d->number,
                            .stream = rng_stream_at(11, RNG_ROLLOUT, 5),
                            .sampling = {.temperature = 0.8, .top_p = 1},
                            .max_tokens = MAX_TOKENS,
                            .up_to = MAX_TOKENS,
                            .stop = stop_tokens,
                            .n_stop = 1};
}

generate_result result_new(const generate_request *q) {
  generate_result r;
  CU_ASSERT_EQUAL_FATAL(generate_result_init(&r, q->n_responses, q->max_tokens, NULL), GL_OK);
  return r;
}

void must_generate(const tiny *t, const generate_request *q, generate_result *r) {
  gl_error err = {0};
  gl_status status = generate(t->model, q, r, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
}

generate_result generated(const tiny *t, const generate_request *q) {
  generate_result r = result_new(q);
  must_generate(t, q, &r);
  return r;
}

/* --- what the forward says --- */

void next_dist(const tiny *t, const int32_t *sequence, size_t n, size_t vocabulary,
               double temperature, double *logp) {
  for (size_t v = 0; v < vocabulary; ++v) {
    const size_t start[2] = {0, n}, last = n - 1;
    const int32_t target = (int32_t)v;
    const packed_tokens rows = {n, 1, 1, start, sequence, &last, &target};
    CU_ASSERT_EQUAL_FATAL(model_forward(t->model, &rows, temperature, 0, &logp[v], NULL, NULL),
                          GL_OK);
  }
}

size_t sequence_of(const generate_request *q, const generate_result *r, size_t i, size_t n,
                   int32_t *sequence) {
  size_t from = q->prompt_start[q->prompt_of[i]], prompt = q->prompt_start[q->prompt_of[i] + 1];
  memcpy(sequence, q->prompt + from, (prompt - from) * sizeof *sequence);
  memcpy(sequence + (prompt - from), r->token + i * q->max_tokens, n * sizeof *sequence);
  return prompt - from + n;
}
