/* What the two implementations of attention share: attention.cu, in floats, for any head, and
 * attention_mma.cu, on tensor cores. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_ATTENTION_CUH
#define GEPOLAB_LLM_BACKEND_CUDA_ATTENTION_CUH

#include "llm/backend/cuda/device.cuh"

#include <math.h>

/* The arguments of attention (which writes out and lse_to) or attention_backward (which writes dqk
 * and dqkv); operations.h has the shapes. */
struct attention_call {
  bool backward;
  void *out;
  float *lse_to;
  const void *qk, *qkv;
  void *dqk, *dqkv;
  const void *dout;
  const float *lse;
  float *row_dot; /* [rows, q]: row sum of dO*O, in scratch memory */
  packed_rows rows;
  head_shape shape;
  float scale;
};

/* Launches attention on tensor cores and returns true; returns false, having done nothing, where
 * there is no such kernel for the head's size or the addresses (attention_mma.cu). */
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
