/* Models for tests: those of tests/golden/qwen3 and tests/golden/decoders, and small random ones.
 */
#ifndef GEPOLAB_TESTS_SUPPORT_LLM_MODEL_H
#define GEPOLAB_TESTS_SUPPORT_LLM_MODEL_H

#include "llm/model/model.h"
#include "llm/model/safetensors.h"

#define QWEN3 "tests/golden/qwen3/"
#define DECODERS "tests/golden/decoders/"

/* A model over a CPU backend of its own, until the end of the test. */
typedef struct small_model {
  backend *b;
  model *m;
} small_model;

/* Releases one that a test made itself when the test ends. */
void small_model_at_end(const small_model *s);
/* The model in a folder, with its values. */
void small_model_load(small_model *s, const char *folder, number_type type, int recompute);
/* Two layers, 11 tokens, random values of some size (seed). */
void small_model_make(small_model *s, number_type type, int recompute, uint64_t seed);
/* The same of another type, with random biases; a Llama has scaled rotary embeddings. */
void small_model_make_as(small_model *s, model_type as, number_type type, int recompute,
                         uint64_t seed);
/* Sets biases, which begin as zeros, to random values. */
void small_model_draw_biases(model *m);

/* What transformers computed: see tests/golden/qwen3.py. */
typedef struct golden_pass {
  safetensors *file;
  packed_tokens rows;
  size_t *start, *target_after;
  int32_t *token, *target;
  double *coefficient, *logp, *entropy;
  double *logits; /* [n_tokens, vocabulary] */
  size_t vocabulary;
  double temperature;
} golden_pass;
void golden_pass_load(golden_pass *g, const char *path);
void golden_pass_free(golden_pass *g);
/* A tensor's numbers, malloc'd; fails the test where there is none. */
double *golden_tensor(const safetensors *file, const char *name, size_t *n);

/* Random packed sequences; targets are the next tokens at every place but the last. */
typedef struct random_rows {
  packed_tokens rows;
  size_t start[9], target_after[128];
  int32_t token[128], target[128];
  double coefficient[128];
} random_rows;
/* lengths[n], n <= 8, 128 tokens at most. */
void random_rows_init(random_rows *r, const size_t *lengths, size_t n, size_t vocabulary,
                      uint64_t seed);

/* Fails the test with the error's text. */
void must(gl_status status, const gl_error *err);
/* Largest |a - b| over [n], and the largest |b|. */
double largest_difference(const double *a, const double *b, size_t n);
double largest(const double *a, size_t n);

#endif
