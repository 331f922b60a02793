/* The shapes of the GPU benchmark and the arithmetic of their limits. */
#include "experiments/base/args.h"
#include "experiments/bench/gpu.h"

#include <stdlib.h>
#include <string.h>

const char *const gpu_shape_names[] = {"0.6b", "1.7b", "tiny", NULL};

static model_config qwen3(size_t hidden, size_t intermediate, size_t layers) {
  return (model_config){.vocabulary = 151936,
                        .hidden = hidden,
                        .intermediate = intermediate,
                        .layers = layers,
                        .heads = 16,
                        .kv_heads = 8,
                        .head_dim = 128,
                        .max_positions = 8192,
                        .rms_eps = 1e-6,
                        .rope_theta = 1e6,
                        .initializer_range = 0.02,
                        .tied = 1,
                        .begin = -1,
                        .end = -1,
                        .pad = -1};
}

/* A shape that takes every code path of the large ones, within seconds on a CPU. */
static gpu_shape tiny(int quick) {
  gpu_shape s = {.name = "tiny",
                 .model = qwen3(64, 192, 2),
                 .sequences = quick ? 2 : 8,
                 .length = quick ? 16 : 64,
                 .prompt = 8,
                 .draws = quick ? 8 : 64,
                 .batch = {1, 2, quick ? 4 : 16},
                 .rows = quick ? 16 : 256,
                 .responses = quick ? 4 : 8,
                 .tokens = quick ? 16 : 64,
                 .repetitions = quick ? 2 : 5};
  s.model.vocabulary = 600;
  s.model.heads = 4;
  s.model.kv_heads = 2;
  s.model.head_dim = 16;
  s.model.max_positions = 256;
  return s;
}

gpu_shape gpu_shape_named(const char *name, int quick) {
  if (strcmp(name, "tiny") == 0) return tiny(quick);
  const int small = strcmp(name, "0.6b") == 0;
  return (gpu_shape){.name = small ? "0.6b" : "1.7b",
                     .model = small ? qwen3(1024, 3072, 28) : qwen3(2048, 6144, 28),
                     .sequences = 8,
                     .length = quick ? 512 : 2048,
                     .prompt = 128,
                     .draws = quick ? 64 : 256,
                     .batch = {1, 64, 256},
                     .rows = quick ? 2048 : 8192,
                     .responses = 64,
                     .tokens = quick ? 256 : 4096,
                     .repetitions = quick ? 2 : 5};
}

gl_status gpu_shape_set(gpu_shape *s, const char *assignment, gl_error *err) {
  static const char *const names[] = {"sequences", "length", "prompt",    "draws",       "batch",
                                      "rows",      "tokens", "responses", "repetitions", "layers"};
  size_t *const sizes[] = {&s->sequences,   &s->length,      &s->prompt, &s->draws,
                           &s->batch[0],    &s->rows,        &s->tokens, &s->responses,
                           &s->repetitions, &s->model.layers};
  char name[24], *end;
  size_t i;
  snprintf(name, sizeof name, "%.*s", (int)strcspn(assignment, "="), assignment);
  gl_status status = args_choose(&i, "a size", name, names, sizeof names / sizeof *names, err);
  if (status != GL_OK) return status;
  const char *text = strchr(assignment, '=') + 1;
  const unsigned long value = strtoul(text, &end, 10);
  if (text[0] < '1' || text[0] > '9' || *end != '\0' || value > 65536)
    return gl_fail(err, GL_EINPUT, "%s: a whole number from 1 to 65536", assignment);
  *sizes[i] = value;
  if (sizes[i] == s->batch) s->batch[1] = 0;
  return model_config_check(&s->model, err);
}

double gpu_product_weights(const model_config *c) {
  const double q = (double)(c->heads * c->head_dim), kv = (double)(c->kv_heads * c->head_dim);
  const double h = (double)c->hidden;
  const double layer = h * (2 * q + 2 * kv) + 3 * h * (double)c->intermediate;
  return (double)c->layers * layer + h * (double)c->vocabulary;
}

double gpu_train_flops(const model_config *c, size_t length) {
  const double earlier = ((double)length + 1) / 2;
  return 6 * gpu_product_weights(c) + 12 * (double)(c->layers * c->heads * c->head_dim) * earlier;
}

double gpu_decode_bytes(const model_config *c, size_t element, double positions) {
  const double position = 2 * (double)(c->layers * c->kv_heads * c->head_dim);
  return (gpu_product_weights(c) + positions * position) * (double)element;
}
