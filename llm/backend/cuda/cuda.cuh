/* Shared by the files of the CUDA backend: the backend, errors, scratch memory, products, the table
 * of operations, launches.
 *
 *   cuda.cu              making and freeing a backend, recorded graphs, time marks
 *   operation.cu         errors of operations, shared memory of kernels
 *   memory.cu            device memory, pinned host memory, scratch memory, copies
 *   rows.cu              copies of rows, norms, the gated unit; sums over rows with equal index
 *   heads.cu             norm and rotary embedding of attention heads
 *   product_rows.cu      the product operations, and row-wise products
 *   blas.cu              all other products, by cuBLASLt; blas_plans.c stores its plans and choices
 *   attention.cu         attention forward and backward; attention_shared.cu for shared prefixes,
 * attention_mma.cu for tensor cores, attention_wgmma.cu for those of compute capability 9.0
 *   output.cu            log-probabilities over the vocabulary, in chunks
 *   decode.cu            key/value cache and attention of generation
 *   sample.cu            sampling of tokens; the tokens that top-k and top-p keep; distorted logits
 *   optimizer.cu         steps of the optimisers, casts, sum of squares
 *   nccl.cu              all-reduce over several devices
 *
 * Kernels share device.cuh, vector16.cuh, heads.cuh, mma.cuh and wgmma.cuh; llm/backend/open
 * includes open_cuda.h.
 *
 * A backend has one stream: its kernels run in the order of their launches. status, download and
 * sum_squares wait for all earlier kernels; other operations wait only for what their comment
 * names, when memory must be freed, or while cuBLASLt's algorithms are measured. For tests g++ also
 * compiles every .cu file, with tests/emulate/cuda_runtime.h; therefore kernels are launched only
 * with LAUNCH. Floats are never added atomically: sums have a fixed order, and two runs give the
 * same bits. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_CUDA_CUH
#define GEPOLAB_LLM_BACKEND_CUDA_CUDA_CUH

extern "C" {
#include "llm/backend/backend.h"
}

#include <cuda_runtime.h>
#include <stdint.h>

struct cuda_blas;

/* A buffer of pinned host memory for uploads and downloads. */
struct cuda_staging {
  char *memory;     /* STAGING_BYTES, owned */
  cudaEvent_t used; /* recorded after the last copy from or to the buffer */
  bool pending;     /* true: that copy may be unfinished */
};
static const size_t STAGING_BYTES = static_cast<size_t>(4) << 20;
enum { STAGINGS = 2 };

/* Numbers of counters for blocks that compute a result together: each block increments one when its
 * part is written, and the last block combines all parts (is_last_of in device.cuh). */
enum { PRODUCT_ARRIVALS = 256, ATTENTION_ARRIVALS = 1 << 16 };

struct cuda_aside; /* a block of pinned memory for allocate_aside (memory.cu) */

/* A kernel that was launched with dynamic shared memory, and the bytes of it that the driver
 * allows. */
struct cuda_kernel {
  const void *function;
  size_t allowed;
};

struct cuda_backend {
  backend base; /* first member, so a backend * can be cast to cuda_backend * */
  backend_ops ops;
  int device; /* CUDA's device number */
  cudaStream_t stream;
  cudaMemPool_t pool; /* the device's default pool, borrowed; NULL: it has none */
  int multiprocessors;
  bool wgmma;               /* compute capability 9.0: products of warpgroups (wgmma.cuh) */
  size_t shared_bytes;      /* maximum shared memory of a block */
  cuda_kernel kernels[256]; /* hash table by function; function NULL: unused entry */
  cuda_blas *blas;          /* owned */
  gl_error failed;          /* the first error; status GL_OK: none so far */
  /* The operation that runs now or ran last, for messages. */
  const char *operation;
  size_t shape[3];
  /* Scratch memory: one block for all operations, which grows. A recorded graph uses the block with
   * which it was recorded; old blocks are kept in `retired` until the last graph is freed. */
  void *scratch;
  size_t scratch_bytes;
  void **retired; /* [n_retired] */
  size_t n_retired;
  size_t graphs;         /* recorded graphs not yet freed */
  bool recording;        /* between graph_begin and graph_end */
  size_t output_numbers; /* number of logits that the output layer stores at a time */
  bool clusters;         /* blocks can be launched in clusters (LAUNCH_CLUSTER) */
  bool early; /* recorded kernels may start before the previous one has finished (starts_early) */
  unsigned *arrived; /* counters [PRODUCT_ARRIVALS + ATTENTION_ARRIVALS], zero between kernels */
  cuda_staging staging[STAGINGS];
  unsigned next_staging;
  cuda_aside *aside; /* [n_aside], owned */
  size_t n_aside;
};

static inline cuda_backend *cuda_of(backend *b) {
  return reinterpret_cast<cuda_backend *>(b);
}

/* Sets the running operation and up to three of its sizes, for messages and NVTX, during its
 * lifetime. */
struct cuda_operation {
  cuda_backend *b;
  cuda_operation(backend *base, const char *name, size_t n0 = 0, size_t n1 = 0, size_t n2 = 0);
  ~cuda_operation();
  cuda_operation(const cuda_operation &) = delete;
  cuda_operation &operator=(const cuda_operation &) = delete;
};

/* Stores the error of `call` with its reason, unless an earlier one is stored. */
void cuda_fail(cuda_backend *b, gl_status status, const char *call, const char *reason);
/* If e is an error, stores it and returns 1, else returns 0. */
int cuda_failed(cuda_backend *b, cudaError_t e, const char *call);
#define CUDA_CALL(b, call) cuda_failed(b, call, #call)
static inline bool cuda_stopped(const cuda_backend *b) {
  return b->failed.status != GL_OK;
}

/* `bytes` of scratch memory for the running operation, contents undefined, aligned to 256 bytes;
 * NULL after an error. An operation calls it once: a second call may move the memory. */
void *cuda_scratch(cuda_backend *b, size_t bytes);
/* Takes n numbers of T from the front of scratch memory at *at, keeping alignment to 256 bytes.
 * `carved` is the number of bytes this takes. */
template <typename T> static inline T *carve(char **at, size_t n) {
  T *out = reinterpret_cast<T *>(*at);
  *at += (n * sizeof(T) + 255) / 256 * 256;
  return out;
}
static inline size_t carved(size_t n, size_t size) {
  return (n * size + 255) / 256 * 256;
}

/* Sets b->pool and allocates the pinned buffers; frees these, scratch memory, and the blocks of
 * allocate_aside. */
void cuda_memory_start(cuda_backend *b);
void cuda_memory_end(cuda_backend *b);
/* Sets b->output_numbers. If GEPOLAB_CUDA_OUTPUT_CHUNK is set and not a number in its range,
 * GL_EINPUT is stored in b. */
void cuda_output_start(cuda_backend *b);
/* Frees retired scratch memory if there are no graphs. */
void cuda_free_retired(cuda_backend *b);

/* Gradients of norm weights are sums over rows, computed in two steps. A grid of cuda_parts(rows)
 * blocks is launched; each block sums some of the rows into one part, a row of `part`.
 * cuda_add_parts adds all rows of part [parts, ld] to `to` [width], in a fixed order. */
static inline unsigned cuda_parts(size_t rows) {
  return rows < 512 ? static_cast<unsigned>(rows) : 512u;
}
void cuda_add_parts(cuda_backend *b, void *to, const float *part, unsigned parts, size_t ld,
                    size_t width);

/* Maximum scratch bytes of the operations that need much, for backend_ops.scratch. */
size_t cuda_output_scratch(const cuda_backend *b, size_t rows, size_t vocabulary, size_t k);
size_t cuda_attention_scratch(size_t rows, head_shape shape, size_t element);
size_t cuda_cached_scratch(size_t rows, size_t capacity, head_shape shape);
size_t cuda_embed_scratch(size_t rows);
size_t cuda_product_rows_scratch(const run_shape *s, number_type type);
size_t cuda_sample_scratch(size_t rows, size_t vocabulary);
size_t cuda_sample_truncated_scratch(size_t rows, size_t vocabulary);

/* --- products --- */

/* c [m, n] = a [m, k] b [k, n], or += if `adds`. a_transposed: a is stored as [k, m]; b_transposed:
 * b is stored as [n, k]. All are row-major without gaps; sums are in float. */
struct cuda_product {
  number_type in, out; /* of a and b, of c */
  const void *a, *b;
  void *c;
  size_t m, n, k;
  bool a_transposed, b_transposed, adds;
};
/* Rows as the choice of an algorithm sees them: multiples of 128 above 128. The number of packed
 * rows differs from update to update, and each size has to be asked for, and perhaps timed. */
static inline size_t cuda_padded_rows(size_t rows) {
  return rows <= 128 ? rows : (rows + 127) / 128 * 128;
}

/* Computes p by cuBLASLt, or by a plain kernel if cuBLASLt has no algorithm. The plain kernel sums
 * in float, in ascending order of k, and never rounds float32 to TF32. */
void cuda_blas_product(cuda_backend *b, const cuda_product *p);
/* Makes b->blas; free it with cuda_blas_free, also after an error. */
gl_status cuda_blas_new(cuda_backend *b, gl_error *err);
void cuda_blas_free(cuda_backend *b);

/* --- the table of operations --- */

/* cuda_op_NAME(type) returns backend_ops.NAME for a backend of that type. Every operation is
 * declared here, and defined by one of the two macros below in the file that has its op_NAME. */
#define OPERATION(result, name, arguments) decltype(backend_ops::name) cuda_op_##name(number_type);
#define OPTIONAL_OPERATION OPERATION
#define HOST_OPERATION(result, name, arguments)
#include "llm/backend/operations.h"

/* For an op_NAME that is the same for every number type. */
#define CUDA_OPERATION(name)                                                                       \
  decltype(backend_ops::name) cuda_op_##name(number_type) {                                        \
    return op_##name;                                                                              \
  }
/* For op_NAME<float> and op_NAME<bf16>; backend_cuda_new refuses other types. */
#define CUDA_TYPED_OPERATION(name)                                                                 \
  decltype(backend_ops::name) cuda_op_##name(number_type type) {                                   \
    return type == NUMBER_BF16 ? op_##name<bf16> : op_##name<float>;                               \
  }

/* --- launches --- */

/* Launches a kernel on b's stream with `shared` bytes of dynamic shared memory and these arguments,
 * unless an error is stored or the grid is empty. */
#define LAUNCH(b, kernel, grid, block, shared, ...)                                                \
  cuda_launch(b, #kernel, kernel, {false, 1}, grid, block, shared, __VA_ARGS__)
/* Most rows for which kernels start early: on an H100 products and norms of one row took 4 to 5 %
 * less time, those of 16 rows 6 % less (hidden 1024) or 2 % more (hidden 2048), and those of 64 and
 * 256 rows 2 % less to 6 % more. */
enum { MOST_EARLY_ROWS = 16 };
static inline bool starts_early(const cuda_backend *b, size_t rows) {
  return b->early && b->recording && rows <= MOST_EARLY_ROWS;
}

/* LAUNCH of a kernel over that many rows, which begins with wait_for_kernels_before() (device.cuh).
 * If starts_early(), its blocks may start while the previous kernel still runs (programmatic
 * dependent launch). The previous kernel may itself not have waited yet, so that kernels before it
 * run, too. Before it waits, such a kernel must not read what any earlier kernel of the recording
 * writes, nor write anything that one uses. */
#define LAUNCH_EARLY(b, kernel, rows, grid, block, shared, ...)                                    \
  cuda_launch(b, #kernel, kernel, {starts_early(b, rows), 1}, grid, block, shared, __VA_ARGS__)
/* LAUNCH_EARLY in clusters of `cluster` blocks along z (mma.cuh), if b->clusters. */
#define LAUNCH_CLUSTER(b, kernel, rows, cluster, grid, block, shared, ...)                         \
  cuda_launch(b, #kernel, kernel, {starts_early(b, rows), cluster}, grid, block, shared,           \
              __VA_ARGS__)

/* early: blocks may start before the previous kernel has finished. cluster: blocks per cluster; 1:
 * no clusters. */
struct launch_form {
  bool early;
  unsigned cluster;
};

/* Prevents the compiler from deducing a kernel's parameter types from the arguments. */
template <typename T> struct same_type { typedef T type; };

/* Allows a kernel `shared` bytes of dynamic shared memory. Every kernel may have up to 48 KiB
 * together with its static shared memory. For more, the driver is asked once per kernel for the
 * device's maximum. Returns false after an error, which is stored, for example if the device has
 * less shared memory. */
bool cuda_allow_shared(cuda_backend *b, const void *function, const char *name, size_t shared);

template <typename... P>
static inline void cuda_launch(cuda_backend *b, const char *name, void (*kernel)(P...),
                               launch_form form, dim3 grid, dim3 block, size_t shared,
                               typename same_type<P>::type... given) {
  if (cuda_stopped(b) || grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const void *function = reinterpret_cast<const void *>(kernel);
  if (shared > 0 && !cuda_allow_shared(b, function, name, shared)) return;
#ifdef GEPOLAB_EMULATE
  if (cuda_failed(b, emulate_shared_refused(function, shared), name)) return;
  emulate_launched(function, grid, block, shared);
  emulate_kernel(
      name, grid, block, shared, b->stream, [=]() { kernel(given...); }, form.early);
#else
  void *arguments[] = {const_cast<void *>(static_cast<const void *>(&given))...};
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
  if (form.early) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (form.cluster > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs].val.clusterDim.x = attributes[config.numAttrs].val.clusterDim.y = 1;
    attributes[config.numAttrs++].val.clusterDim.z = form.cluster;
  }
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = b->stream;
  config.attrs = attributes;
  cuda_failed(b, cudaLaunchKernelExC(&config, function, arguments), name);
#endif
}

/* n / size, rounded up: how many blocks of `size` cover n. */
static inline unsigned blocks_of(size_t n, size_t size) {
  return static_cast<unsigned>((n + size - 1) / size);
}

#endif
