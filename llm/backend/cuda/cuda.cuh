/* What the files of the CUDA backend share: the backend, its errors, scratch memory, launches.
 *
 * backend_cuda.cu           the backend: errors, graphs
 * backend_cuda_memory.cu    memory of the device, pinned memory, copies
 * backend_cuda_rows.cu      norms, gated unit, gathers
 * backend_cuda_heads.cu     norm and rotation of attention heads
 * backend_cuda_embed.cu     gradient of the embedding, in a fixed order
 * backend_cuda_product.cu   products of the model
 * backend_cuda_product_rows.cu products that are the same row by row
 * backend_cuda_blas.cu      cuBLASLt, behind one function (tests put CBLAS in its place)
 * backend_cuda_attention.cu attention forward and backward
 * backend_cuda_output.cu    log-probabilities over the vocabulary, in chunks
 * backend_cuda_decode.cu    cache and attention of generation
 * backend_cuda_sample.cu    draws; with top-k and top-p: backend_cuda_sample_truncated.cu
 * backend_cuda_optimise.cu  optimisers, casts and sums
 *
 * Every file is also compiled by g++ for tests, over tests/emulate/cuda_runtime.h, which is why
 * kernels are launched through LAUNCH alone. Nothing here uses atomic additions of floats: sums
 * have a fixed order, and two runs give the same bits. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_CUDA_CUH
#define GEPOLAB_LLM_BACKEND_CUDA_CUDA_CUH

extern "C" {
#include "llm/backend/backend.h"
}

#include <cuda_runtime.h>
#include <stdint.h>

struct cuda_blas;

/* Pinned host memory that uploads and downloads pass through. */
struct cuda_staging {
  char *memory;
  cudaEvent_t used; /* recorded after the copy that reads it */
  bool pending;
};
static const size_t STAGING_BYTES = static_cast<size_t>(4) << 20;
enum { STAGINGS = 2 };

/* Counters of blocks that have done their part of a result which the last of them finishes. */
enum { PRODUCT_ARRIVALS = 256, ATTENTION_ARRIVALS = 1 << 16 };

struct cuda_aside; /* pinned memory that is handed out */

struct cuda_backend {
  backend base; /* first: a backend * of ours is a cuda_backend * */
  backend_ops ops;
  int device; /* its number */
  cudaStream_t stream;
  cudaMemPool_t pool; /* the device's own */
  int multiprocessors;
  size_t shared_bytes; /* most a block can ask for */
  cuda_blas *blas;
  gl_error failed; /* status GL_OK: nothing has failed */
  /* The operation under way, for messages. */
  const char *operation;
  size_t shape[3];
  /* Scratch memory of the operation under way. Recorded graphs hold on to the block they were
   * recorded with, so blocks that are too small are retired and released with the last graph. */
  void *scratch;
  size_t scratch_bytes;
  void **retired;
  size_t n_retired;
  size_t graphs;
  bool recording;
  unsigned *arrived; /* [PRODUCT_ARRIVALS], then [ATTENTION_ARRIVALS]: zero between kernels */
  cuda_staging staging[STAGINGS];
  unsigned next_staging;
  cuda_aside *aside; /* [n_aside] */
  size_t n_aside;
};

static inline cuda_backend *cuda_of(backend *b) {
  return reinterpret_cast<cuda_backend *>(b);
}

/* Names an operation and its shape, for messages and for NVTX, while it lives. */
struct cuda_operation {
  cuda_backend *b;
  cuda_operation(backend *base, const char *name, size_t n0 = 0, size_t n1 = 0, size_t n2 = 0);
  ~cuda_operation();
  cuda_operation(const cuda_operation &) = delete;
  cuda_operation &operator=(const cuda_operation &) = delete;
};

/* Keeps the first failure: `call` failed as `reason` says, inside the operation under way. */
void cuda_fail(cuda_backend *b, gl_status status, const char *call, const char *reason);
/* 1 and a kept failure if e is one. */
int cuda_failed(cuda_backend *b, cudaError_t e, const char *call);
#define CUDA_CALL(b, call) cuda_failed(b, call, #call)
static inline bool cuda_stopped(const cuda_backend *b) {
  return b->failed.status != GL_OK;
}

/* `bytes` of scratch memory for the operation under way, undefined contents, aligned to 256 bytes;
 * NULL after a failure. One call an operation. */
void *cuda_scratch(cuda_backend *b, size_t bytes);
/* Takes n numbers of T from the front of scratch memory, keeping the alignment. */
template <typename T> static inline T *carve(char **at, size_t n) {
  T *out = reinterpret_cast<T *>(*at);
  *at += (n * sizeof(T) + 255) / 256 * 256;
  return out;
}
static inline size_t carved(size_t n, size_t size) {
  return (n * size + 255) / 256 * 256;
}

/* Memory at start and end of a backend, and scratch blocks that no graph needs any more. */
void cuda_memory_start(cuda_backend *b);
void cuda_memory_end(cuda_backend *b);
void cuda_free_retired(cuda_backend *b);

/* Sums over rows for the gradients of norm weights: into how many parts they are cut, and
 * to[width] += the sum of part[parts][ld], in their order. */
static inline unsigned cuda_parts(size_t rows) {
  return rows < 512 ? static_cast<unsigned>(rows) : 512u;
}
void cuda_add_parts(cuda_backend *b, void *to, const float *part, unsigned parts, size_t ld,
                    size_t width);

/* Scratch bytes of the operations that need much, for plans. */
size_t cuda_output_scratch(size_t rows, size_t vocabulary, size_t k, number_type type);
size_t cuda_cached_scratch(size_t rows, size_t capacity, head_shape shape);
size_t cuda_embed_scratch(size_t rows);
size_t cuda_product_rows_scratch(const run_shape *s, number_type type);
size_t cuda_sample_scratch(size_t rows, size_t vocabulary);

/* --- products (backend_cuda_blas.cu) --- */

/* Row-major c[m, n] = (c +) a b, where a is [m, k] (transposed: stored [k, m]) and b [k, n]
 * (transposed: stored [n, k]); rows are stored one after the other. Sums in float. */
struct cuda_product {
  number_type in, out;
  const void *a, *b;
  void *c;
  size_t m, n, k;
  bool a_transposed, b_transposed, adds;
};
void cuda_blas_product(cuda_backend *b, const cuda_product *p);
gl_status cuda_blas_new(cuda_backend *b, gl_error *err);
void cuda_blas_free(cuda_backend *b);

/* The same of c[m, n] = a[m, k] b[n, k]^T (+ c), packed, whose row of c has the same bits whatever
 * m and wherever the row is (backend_cuda_product_rows.cu). float32 is computed as float32. */
void cuda_product_row_by_row(cuda_backend *b, const cuda_product *p);

/* --- the table of operations --- */

/* cuda_op_NAME(type) is the backend_ops.NAME of a backend whose type that is. Every operation is
 * declared here and defined, by one of the two lines below, in the file that has its op_NAME. */
#define OPERATION(result, name, arguments) decltype(backend_ops::name) cuda_op_##name(number_type);
#define OPTIONAL_OPERATION OPERATION
#include "llm/backend/operations.h"

/* op_NAME, which is the same for every number type. */
#define CUDA_OPERATION(name)                                                                       \
  decltype(backend_ops::name) cuda_op_##name(number_type) {                                        \
    return op_##name;                                                                              \
  }
/* op_NAME<float> or op_NAME<bf16>; backend_cuda_new refuses other types. */
#define CUDA_TYPED_OPERATION(name)                                                                 \
  decltype(backend_ops::name) cuda_op_##name(number_type type) {                                   \
    return type == NUMBER_BF16 ? op_##name<bf16> : op_##name<float>;                               \
  }

/* --- launches --- */

/* Runs a kernel unless something has failed before or its grid is empty. */
#define LAUNCH(b, kernel, grid, block, shared, ...)                                                \
  cuda_launch(b, #kernel, kernel, grid, block, shared, __VA_ARGS__)

template <typename T> struct same_type { typedef T type; };

template <typename... P>
static inline void cuda_launch(cuda_backend *b, const char *name, void (*kernel)(P...), dim3 grid,
                               dim3 block, size_t shared, typename same_type<P>::type... given) {
  if (cuda_stopped(b) || grid.x == 0 || grid.y == 0 || grid.z == 0) return;
#ifdef GEPOLAB_EMULATE
  emulate_kernel(name, grid, block, shared, b->stream, [=]() { kernel(given...); });
#else
  const void *function = reinterpret_cast<const void *>(kernel);
  if (shared > 48 << 10 &&
      cuda_failed(b,
                  cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(shared)),
                  name))
    return;
  void *arguments[] = {const_cast<void *>(static_cast<const void *>(&given))...};
  cuda_failed(b, cudaLaunchKernel(function, grid, block, arguments, shared, b->stream), name);
#endif
}

/* How many blocks of `size` cover n. */
static inline unsigned blocks_of(size_t n, size_t size) {
  return static_cast<unsigned>((n + size - 1) / size);
}

#endif
