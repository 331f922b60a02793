/* Rows in vectors of 16 bytes, the widest access of a thread, which needs the fewest instructions
 * in kernels limited by memory bandwidth.
 *
 * A vector has the same numbers whether it is moved at once (WIDE) or number by number. The latter
 * is used if the size of a row, or an address, is not a multiple of 16 bytes. Which lane adds which
 * numbers, and in which order, follows only from the width, so both ways give the same bits. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_VECTOR16_CUH
#define GEPOLAB_LLM_BACKEND_CUDA_VECTOR16_CUH

#include "llm/backend/cuda/device.cuh"
#include "llm/backend/kernels.h"

/* The kernels shared by CPU and CUDA (kernels_rows.h) for float and bfloat16, as static functions
 * of rows_of<T>: rows_of<bf16>::norm and so on. */
template <typename T> struct rows_of;

#define MASTER float
#define ROW(x) x
#define ROW_EXP kernel_exp_f32
#define GET(p) to_float(*(p))
#define PUT(p, x) (*(p) = number<REAL>(x))

template <> struct rows_of<float> {
#define REAL float
#include "llm/backend/kernels_rows.h"
#undef REAL
};

template <> struct rows_of<bf16> {
#define REAL bf16
#include "llm/backend/kernels_rows.h"
#undef REAL
};

#undef MASTER
#undef ROW
#undef ROW_EXP
#undef GET
#undef PUT

/* N: numbers of T in a vector, 4 floats or 8 bfloat16. */
template <typename T> struct vector16 { static const unsigned N = 16 / sizeof(T); };

/* The numbers of a vector as floats, and back; the last argument selects their type. */
static __device__ __forceinline__ void unpack(float *x, uint4 raw, float) {
  x[0] = __uint_as_float(raw.x);
  x[1] = __uint_as_float(raw.y);
  x[2] = __uint_as_float(raw.z);
  x[3] = __uint_as_float(raw.w);
}
static __device__ __forceinline__ void unpack(float *x, uint4 raw, bf16) {
  const unsigned pairs[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    x[2 * i] = __uint_as_float(pairs[i] << 16);
    x[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
  }
}

static __device__ __forceinline__ unsigned pack_pair(float low, float high) {
  return static_cast<unsigned>(to_bf16(high).bits) << 16 | to_bf16(low).bits;
}
static __device__ __forceinline__ uint4 pack(const float *x, float) {
  return make_uint4(__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
                    __float_as_uint(x[3]));
}
static __device__ __forceinline__ uint4 pack(const float *x, bf16) {
  return make_uint4(pack_pair(x[0], x[1]), pack_pair(x[2], x[3]), pack_pair(x[4], x[5]),
                    pack_pair(x[6], x[7]));
}

/* x [N] = the vector at p. The row has only `left` more numbers from p on; x is 0 beyond them. */
template <bool WIDE, typename T>
static __device__ __forceinline__ void load_vector16(float (&x)[vector16<T>::N], const T *p,
                                                     size_t left) {
  if constexpr (WIDE) {
    unpack(x, *reinterpret_cast<const uint4 *>(p), T());
  } else {
#pragma unroll
    for (unsigned e = 0; e < vector16<T>::N; ++e) x[e] = e < left ? to_float(p[e]) : 0.0f;
  }
}

/* Stores the first `left` numbers of x [N] at p. */
template <bool WIDE, typename T>
static __device__ __forceinline__ void store_vector16(T *p, const float (&x)[vector16<T>::N],
                                                      size_t left) {
  if constexpr (WIDE) {
    *reinterpret_cast<uint4 *>(p) = pack(x, T());
  } else {
#pragma unroll
    for (unsigned e = 0; e < vector16<T>::N; ++e)
      if (e < left) p[e] = number<T>(x[e]);
  }
}

/* load_vector16() for N floats, as many as a vector of another type has numbers: one or two
 * accesses of 16 bytes. */
template <bool WIDE, unsigned N>
static __device__ __forceinline__ void load_floats(float (&x)[N], const float *p, size_t left) {
  if constexpr (WIDE) {
#pragma unroll
    for (unsigned e = 0; e < N; e += 4)
      unpack(x + e, *reinterpret_cast<const uint4 *>(p + e), 0.0f);
  } else {
#pragma unroll
    for (unsigned e = 0; e < N; ++e) x[e] = e < left ? p[e] : 0.0f;
  }
}
template <bool WIDE, unsigned N>
static __device__ __forceinline__ void store_floats(float *p, const float (&x)[N], size_t left) {
  if constexpr (WIDE) {
#pragma unroll
    for (unsigned e = 0; e < N; e += 4) *reinterpret_cast<uint4 *>(p + e) = pack(x + e, 0.0f);
  } else {
#pragma unroll
    for (unsigned e = 0; e < N; ++e)
      if (e < left) p[e] = x[e];
  }
}

/* x = the vector at i of the residual sum in + add, rounded to T because it is stored as T; if add
 * is null, the vector at i of `in`. */
template <typename T, bool WIDE>
static __device__ __forceinline__ void load_residual(float (&x)[vector16<T>::N], const T *in,
                                                     const T *add, size_t i, size_t left) {
  load_vector16<WIDE>(x, in + i, left);
  if (add == nullptr) return;
  float y[vector16<T>::N];
  load_vector16<WIDE>(y, add + i, left);
#pragma unroll
  for (unsigned e = 0; e < vector16<T>::N; ++e) x[e] = to_float(number<T>(x[e] + y[e]));
}

/* --- on the host --- */

/* True if all rows of that many bytes from these addresses begin at multiples of 16 bytes; NULL is
 * allowed. Determines WIDE. */
template <typename... P> static inline bool aligned16(size_t row_bytes, const P *...address) {
  uintptr_t bits = row_bytes;
  const uintptr_t all[] = {reinterpret_cast<uintptr_t>(address)...};
  for (const uintptr_t a : all) bits |= a;
  return bits % 16 == 0;
}

/* Number of vectors of a row; the last one may be incomplete. */
template <typename T> static inline size_t vectors16_of(size_t width) {
  return (width + vector16<T>::N - 1) / vector16<T>::N;
}

/* Threads of a block that processes a row of that many vectors: whole warps, at most 256. */
static inline unsigned vector16_threads(size_t vectors) {
  return vectors >= 256 ? 256 : vectors == 0 ? 32 : static_cast<unsigned>((vectors + 31) / 32 * 32);
}

/* LAUNCH of kernel<T, WIDE>, where `wide` selects WIDE; and LAUNCH_EARLY of it. */
#define LAUNCH_VECTOR16_BY(launch, b, wide, kernel, T, ...)                                        \
  do {                                                                                             \
    if (wide)                                                                                      \
      launch(b, (kernel<T, true>), __VA_ARGS__);                                                   \
    else                                                                                           \
      launch(b, (kernel<T, false>), __VA_ARGS__);                                                  \
  } while (0)
#define LAUNCH_VECTOR16(b, wide, kernel, T, ...)                                                   \
  LAUNCH_VECTOR16_BY(LAUNCH, b, wide, kernel, T, __VA_ARGS__)
#define LAUNCH_EARLY_VECTOR16(b, wide, kernel, T, ...)                                             \
  LAUNCH_VECTOR16_BY(LAUNCH_EARLY, b, wide, kernel, T, __VA_ARGS__)

#endif
