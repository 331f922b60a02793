/* What the two forms of attention share. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_ATTENTION_CUH
#define GEPOLAB_LLM_BACKEND_CUDA_ATTENTION_CUH

#include "llm/backend/cuda/device.cuh"

#include <math.h>

/* Arguments of forward (out, lse_to, qk, qkv) or backward (the rest). */
struct attention_call {
  bool backward;
  void *out;
  float *lse_to;
  const void *qk, *qkv;
  void *dqk, *dqkv;
  const void *dout;
  const float *lse;
  float *row_dot; /* [rows, q]: dout . out */
  packed_rows rows;
  head_shape shape;
  float scale;
};

/* Starts the tensor-core form and returns true, where there is one for this call. */
bool attention_tensor(cuda_backend *b, const attention_call *a);

static __host__ __device__ inline size_t qk_width(head_shape s) {
  return (s.q + s.kv) * s.dim;
}
static __host__ __device__ inline size_t qkv_width(head_shape s) {
  return (s.q + 2 * s.kv) * s.dim;
}
static inline float attention_scale(head_shape s) {
  return static_cast<float>(1 / sqrt(static_cast<double>(s.dim)));
}

#endif
