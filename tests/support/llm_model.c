/* Opens the golden Qwen3 models and makes small random ones. */
#include "tests/support/llm_model.h"
#include "llm/backend/open/open.h"

#include "tests/support/files.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

void must(gl_status status, const gl_error *err) {
  if (status != GL_OK) fprintf(stderr, "%s\n", err->text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
}

static void free_backend(void *b) {
  backend_free(b);
}

static void free_model(void *m) {
  model_free(m);
}

void small_model_at_end(const small_model *s) {
  test_at_end(free_backend, s->b);
  test_at_end(free_model, s->m);
}

static void make(small_model *s, const model_config *c, number_type type, int recompute) {
  ASSERT_OK(backend_new(&s->b, BACKEND_CPU, type, 2, &err));
  ASSERT_OK(model_new(&s->m, c, s->b, recompute, &err));
  small_model_at_end(s);
}

void small_model_load(small_model *s, const char *folder, number_type type, int recompute) {
  char path[FILES_PATH];
  model_config c;
  ASSERT_OK(model_config_load(&c, files_path(folder, "config.json", path), &err));
  make(s, &c, type, recompute);
  ASSERT_OK(model_load(s->m, folder, &err));
}

void small_model_draw_biases(model *m) {
  const size_t n = model_parameters(m);
  double *theta = calloc(n, sizeof *theta);
  const model_tensor *t;
  ASSERT_OK(model_get(m, theta, &err));
  for (size_t i = 0; (t = model_tensor_at(m, i)) != NULL; ++i)
    for (size_t j = t->offset; strstr(t->name, ".bias") && j < t->offset + t->columns; ++j)
      theta[j] = 2 * rng_u01(rng_block(rng_stream_at(3, RNG_TEST, 78), j).v[0]) - 1;
  ASSERT_OK(model_set(m, theta, &err));
  free(theta);
}

void small_model_make(small_model *s, number_type type, int recompute, uint64_t seed) {
  small_model_make_as(s, MODEL_QWEN3, type, recompute, seed);
}

void small_model_make_as(small_model *s, model_type as, number_type type, int recompute,
                         uint64_t seed) {
  const model_config c = {.type = as,
                          .scaling = {as == MODEL_LLAMA ? 8 : 0, 1, 4, 60},
                          .vocabulary = 11,
                          .hidden = 12,
                          .intermediate = 20,
                          .layers = 2,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_dim = 6,
                          .rms_eps = 1e-6,
                          .max_positions = 40,
                          .rope_theta = 100,
                          .tied = 1,
                          .initializer_range = 0.4,
                          .begin = -1,
                          .end = -1,
                          .pad = -1};
  make(s, &c, type, recompute);
  ASSERT_OK(model_initialise(s->m, seed, &err));
  small_model_draw_biases(s->m);
}

double *golden_tensor(const safetensors *file, const char *name, size_t *n) {
  const tensor_entry *t = safetensors_find(file, name);
  if (t == NULL) fprintf(stderr, "no %s\n", name);
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  double *value = calloc(t->elements + 1, sizeof *value);
  ASSERT_OK(safetensors_read_f64(file, t, 0, t->elements, value, &err));
  *n = t->elements;
  return value;
}

static size_t *sizes_of(const safetensors *file, const char *name, size_t *n) {
  double *value = golden_tensor(file, name, n);
  size_t *size = calloc(*n + 1, sizeof *size);
  for (size_t i = 0; i < *n; ++i) size[i] = (size_t)value[i];
  free(value);
  return size;
}

static int32_t *tokens_of(const safetensors *file, const char *name, size_t *n) {
  double *value = golden_tensor(file, name, n);
  int32_t *token = calloc(*n + 1, sizeof *token);
  for (size_t i = 0; i < *n; ++i) token[i] = (int32_t)value[i];
  free(value);
  return token;
}

void golden_pass_load(golden_pass *g, const char *path) {
  size_t n_starts, n;
  *g = (golden_pass){0};
  ASSERT_OK(safetensors_open(&g->file, path, &err));
  g->start = sizes_of(g->file, "starts", &n_starts);
  g->target_after = sizes_of(g->file, "target_row", &g->rows.n_targets);
  g->token = tokens_of(g->file, "tokens", &g->rows.n_tokens);
  g->target = tokens_of(g->file, "target", &n);
  g->coefficient = golden_tensor(g->file, "coefficient", &n);
  g->logp = golden_tensor(g->file, "logp", &n);
  g->entropy = golden_tensor(g->file, "entropy", &n);
  g->logits = golden_tensor(g->file, "logits", &n);
  g->vocabulary = n / g->rows.n_tokens;
  double *temperature = golden_tensor(g->file, "temperature", &n);
  g->temperature = temperature[0];
  free(temperature);
  g->rows.n_sequences = n_starts - 1;
  g->rows.start = g->start;
  g->rows.token = g->token;
  g->rows.target_after = g->target_after;
  g->rows.target = g->target;
}

void golden_pass_free(golden_pass *g) {
  safetensors_free(g->file);
  free(g->start);
  free(g->target_after);
  free(g->token);
  free(g->target);
  free(g->coefficient);
  free(g->logp);
  free(g->entropy);
  free(g->logits);
}

void random_rows_init(random_rows *r, const size_t *lengths, size_t n, size_t vocabulary,
                      uint64_t seed) {
  const rng_stream stream = rng_stream_at(seed, RNG_TEST, 77);
  *r = (random_rows){0};
  for (size_t s = 0; s < n; ++s)
    for (size_t i = 0; i < lengths[s]; ++i) {
      const size_t at = r->rows.n_tokens++;
      const rng_words w = rng_block(stream, at);
      r->token[at] = (int32_t)(rng_u01(w.v[0]) * (double)vocabulary);
      if (i > 0) r->target[r->rows.n_targets - 1] = r->token[at];
      if (i + 1 < lengths[s]) {
        r->coefficient[r->rows.n_targets] = 2 * rng_u01(w.v[1]) - 1;
        r->target_after[r->rows.n_targets++] = at;
      }
      r->start[s + 1] = r->rows.n_tokens;
    }
  r->rows.n_sequences = n;
  r->rows.start = r->start;
  r->rows.token = r->token;
  r->rows.target_after = r->target_after;
  r->rows.target = r->target;
}

double largest_difference(const double *a, const double *b, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; ++i) {
    double d = fabs(a[i] - b[i]);
    if (!(d <= most)) most = d; /* also not-a-number */
  }
  return most;
}

double largest(const double *a, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; ++i) most = fmax(most, fabs(a[i]));
  return most;
}
