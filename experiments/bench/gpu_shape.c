/* The shapes of the GPU benchmark and the arithmetic of their limits. */
#include "experiments/bench/gpu.h"

#include <string.h>

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
  model_config c = qwen3(64, 192, 2);
  c.vocabulary = 600;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 16;
  c.max_positions = 256;
  return (gpu_shape){.name = "tiny",
                     .model = c,
                     .train_sequences = quick ? 2 : 8,
                     .train_length = quick ? 16 : 64,
                     .prompt = 8,
                     .draws = quick ? 8 : 64,
                     .batch = {1, 2, quick ? 4 : 16},
                     .n_batches = 3,
                     .logp_rows = quick ? 16 : 256,
                     .step_groups = 2,
                     .step_group_size = quick ? 2 : 4,
                     .step_tokens = quick ? 16 : 64,
                     .repetitions = quick ? 2 : 5};
}

static gpu_shape large(const char *name, model_config c, int quick) {
  return (gpu_shape){.name = name,
                     .model = c,
                     .train_sequences = 8,
                     .train_length = quick ? 512 : 2048,
                     .prompt = 128,
                     .draws = quick ? 64 : 256,
                     .batch = {1, 64, 256},
                     .n_batches = 3,
                     .logp_rows = quick ? 2048 : 8192,
                     .step_groups = 8,
                     .step_group_size = 8,
                     .step_tokens = quick ? 256 : 4096,
                     .repetitions = quick ? 2 : 5};
}

const gpu_shape *gpu_shape_named(gpu_shape *out, const char *name, int quick) {
  if (strcmp(name, "tiny") == 0)
    *out = tiny(quick);
  else if (strcmp(name, "0.6b") == 0)
    *out = large("0.6b", qwen3(1024, 3072, 28), quick);
  else if (strcmp(name, "1.7b") == 0)
    *out = large("1.7b", qwen3(2048, 6144, 28), quick);
  else
    return NULL;
  return out;
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

double gpu_position_bytes(const model_config *c, size_t element) {
  return 2.0 * (double)(c->layers * c->kv_heads * c->head_dim) * (double)element;
}

double gpu_decode_bytes(const model_config *c, size_t element, double positions) {
  return gpu_product_weights(c) * (double)element + positions * gpu_position_bytes(c, element);
}
