/* The norm and the rotary embedding of a head, by a group of lanes (heads.cu, decode.cu). */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_HEADS_CUH
#define GEPOLAB_LLM_BACKEND_CUDA_HEADS_CUH

#include "llm/backend/cuda/vector16.cuh"

/* Number of lanes of a group. Each lane processes one vector of the head's first half and the
 * corresponding one of its second half, because these are the pairs that rotate together. A warp
 * has 32 / lanes groups. */
template <typename T> static unsigned head_lanes(size_t dim) {
  unsigned lanes = 1;
  while (lanes < 32 && lanes * vector16<T>::N < dim / 2) lanes *= 2;
  return lanes;
}

/* The sum of x over the lanes of this thread's group. */
static __device__ __forceinline__ float lanes_sum(float x, unsigned lanes) {
  for (unsigned with = lanes / 2; with > 0; with /= 2)
    x += __shfl_xor_sync(WARP, x, static_cast<int>(with));
  return x;
}

/* a, b [N] = the vectors at i of a head's first and second half; zeros beyond the head. */
template <bool WIDE, typename T>
static __device__ __forceinline__ void load_halves(float (&a)[vector16<T>::N],
                                                   float (&b)[vector16<T>::N], const T *head,
                                                   size_t i, size_t half) {
  if (i < half) {
    load_vector16<WIDE>(a, head + i, half - i);
    load_vector16<WIDE>(b, head + half + i, half - i);
    return;
  }
#pragma unroll
  for (unsigned e = 0; e < vector16<T>::N; ++e) a[e] = b[e] = 0;
}

/* Applies norm and rotary embedding to a, b [N], a lane's parts of a head. scale is one over the
 * head's root mean square; weight (NULL: no norm), cosine and sine begin at the head's first
 * number.
 */
template <typename T, bool WIDE>
static __device__ __forceinline__ void
norm_and_rotate(float (&a)[vector16<T>::N], float (&b)[vector16<T>::N], float scale,
                const T *weight, const float *cosine, const float *sine, size_t i, size_t half) {
  float wa[vector16<T>::N], wb[vector16<T>::N], c[vector16<T>::N], t[vector16<T>::N];
  if (weight != nullptr) load_halves<WIDE>(wa, wb, weight, i, half);
  load_floats<WIDE>(c, cosine + i, half - i);
  load_floats<WIDE>(t, sine + i, half - i);
#pragma unroll
  for (unsigned e = 0; e < vector16<T>::N; ++e) {
    if (weight != nullptr) {
      a[e] = rows_of<T>::norm_number(a[e], scale, wa[e]);
      b[e] = rows_of<T>::norm_number(b[e], scale, wb[e]);
    }
    rows_of<T>::rotate_pair(&a[e], &b[e], c[e], t[e]);
  }
}

/* a, b [N] = a lane's parts of a head of qkv. Returns one over the head's root mean square. All
 * lanes of a warp take part. */
template <typename T, bool WIDE>
static __device__ __forceinline__ float load_head(float (&a)[vector16<T>::N],
                                                  float (&b)[vector16<T>::N], const T *head,
                                                  size_t i, size_t dim, unsigned lanes, float eps) {
  float squares = 0;
  load_halves<WIDE>(a, b, head, i, dim / 2);
#pragma unroll
  for (unsigned e = 0; e < vector16<T>::N; ++e) squares += fmaf(a[e], a[e], b[e] * b[e]);
  return 1 / sqrtf(lanes_sum(squares, lanes) / static_cast<float>(dim) + eps);
}

#endif
