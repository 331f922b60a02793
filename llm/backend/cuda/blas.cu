/* Matrix products by cuBLASLt. The library is opened when a CUDA backend is made, not when gepolab
 * starts: its file has half a gigabyte, and commands that use no GPU do not need it. It stays
 * loaded until the process ends, for the next backend.
 *
 * The library's heuristic is asked which of its algorithms is fastest for a shape and the
 * alignments of its addresses. The answer is stored as a plan in a table of limited size
 * (blas_plans.h). It follows from the shape, so a plan that was evicted is recreated identically.
 * Shapes that differ only in the number of rows, and not after padding it (cuda_padded_rows), have
 * one plan. If its algorithm is refused for one of them, that shape gets a plan of its own.
 *
 * The algorithm that the library ranks first is often not the fastest. If the environment variable
 * GEPOLAB_CUDA_PRODUCTS names a file, the first eight algorithms for a shape are timed once, and
 * the fastest is stored in that file (blas_plans.h), which every later process reads. Without a
 * file nothing is timed: a choice by timing may differ in the next process, and the last bits of
 * results with it. A resumed run has the results of an uninterrupted one only if it uses the same
 * file.
 *
 * Only algorithms with a fixed order of sums are requested: the parts of a product split over k are
 * stored in workspace memory, and never added to the result in order of completion. If the library
 * has none, other reductions are requested; if these fail, too, a kernel below computes the
 * product. float32 is computed as float32, or from factors rounded to TF32 (10 bits of mantissa) if
 * backend.tf32 is set. */
#include "llm/backend/cuda/device.cuh"

extern "C" {
#include "llm/backend/cuda/blas_plans.h"
}

#include <assert.h>
#include <cublasLt.h>
#ifndef GEPOLAB_EMULATE
#include <dlfcn.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library functions used, looked up by name. */
#define BLAS_FUNCTIONS(F)                                                                          \
  F(cublasLtCreate)                                                                                \
  F(cublasLtDestroy)                                                                               \
  F(cublasLtGetStatusString)                                                                       \
  F(cublasLtGetVersion)                                                                            \
  F(cublasLtMatmul)                                                                                \
  F(cublasLtMatmulAlgoGetHeuristic)                                                                \
  F(cublasLtMatmulDescCreate)                                                                      \
  F(cublasLtMatmulDescDestroy)                                                                     \
  F(cublasLtMatmulDescSetAttribute)                                                                \
  F(cublasLtMatmulPreferenceCreate)                                                                \
  F(cublasLtMatmulPreferenceDestroy)                                                               \
  F(cublasLtMatmulPreferenceSetAttribute)                                                          \
  F(cublasLtMatrixLayoutCreate)                                                                    \
  F(cublasLtMatrixLayoutDestroy)                                                                   \
  F(cublasLtMatrixLayoutSetAttribute)

/* The key of a plan: everything that may determine the best algorithm. Keys are compared byte by
 * byte, so a key is zeroed before it is filled in. */
struct blas_key {
  uint64_t m, n, k;
  uint32_t in, out, a_transposed, b_transposed, adds, tf32;
  uint32_t align_a, align_b, align_c;
};

/* A plan: the description of a product, owned, and the algorithm; plain: the library has none;
 * refused: the library refused it for a product of just the key's sizes. The layouts have the key's
 * sizes, or those of the last product that used the plan. */
struct blas_plan {
  cublasLtMatmulDesc_t what;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulAlgo_t algorithm;
  bool plain, refused;
};

struct cuda_blas {
#define BLAS_MEMBER(f) decltype(&::f) f;
  BLAS_FUNCTIONS(BLAS_MEMBER)
  cublasLtHandle_t handle;
  void *workspace;
  size_t workspace_bytes;
  gemm_plans *plans;        /* maps blas_key to blas_plan; owned */
  product_choices *choices; /* measured algorithms; NULL: use the library's first one */
};

#ifdef GEPOLAB_EMULATE
static const size_t WORKSPACE_BYTES = 4096;
#else
static const size_t WORKSPACE_BYTES = static_cast<size_t>(64) << 20;
#endif
/* A model has some dozens of shapes for each number of packed rows. */
static const size_t MOST_PLANS = 4096;

/* --- start and end --- */

#ifdef GEPOLAB_EMULATE
/* For the emulated device the library is linked, so nothing is looked up. */
static gl_status find_blas_functions(cuda_blas *blas, gl_error *) {
#define BLAS_FIND(f) blas->f = &::f;
  BLAS_FUNCTIONS(BLAS_FIND)
  return GL_OK;
}
#else
/* Opens a library that stays loaded even if it is closed; NULL if it does not exist. */
static void *open_for_good(const char *name) {
  return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* Looks up the functions in libcublasLt: the one in the loader's path, else the one in the CUDA
 * Toolkit that gepolab was built with. */
static gl_status find_blas_functions(cuda_blas *blas, gl_error *err) {
  void *library = open_for_good("libcublasLt.so." GEPOLAB_CUDA_MAJOR);
  if (library == NULL)
    library = open_for_good(GEPOLAB_CUDA_LIB "/libcublasLt.so." GEPOLAB_CUDA_MAJOR);
  if (library == NULL)
    return gl_fail(err, GL_EIO,
                   "%s; install cuBLAS of CUDA " GEPOLAB_CUDA_MAJOR ", or name its "
                   "folder in LD_LIBRARY_PATH",
                   dlerror());
  const char *missing = NULL;
#define BLAS_FIND(f)                                                                               \
  blas->f = reinterpret_cast<decltype(&::f)>(dlsym(library, #f));                                  \
  if (blas->f == NULL) missing = #f;
  BLAS_FUNCTIONS(BLAS_FIND)
  dlclose(library);
  return missing == NULL ? GL_OK : gl_fail(err, GL_EIO, "libcublasLt has no %s", missing);
}
#endif

static void drop_plan(void *owner, void *plan) {
  cuda_blas *blas = static_cast<cuda_blas *>(owner);
  blas_plan *p = static_cast<blas_plan *>(plan);
  if (p->what != NULL) blas->cublasLtMatmulDescDestroy(p->what);
  if (p->a != NULL) blas->cublasLtMatrixLayoutDestroy(p->a);
  if (p->b != NULL) blas->cublasLtMatrixLayoutDestroy(p->b);
  if (p->c != NULL) blas->cublasLtMatrixLayoutDestroy(p->c);
}

/* Opens the file of measured algorithms, if the environment names one. */
static gl_status open_choices(cuda_backend *b, gl_error *err) {
  const char *path = getenv("GEPOLAB_CUDA_PRODUCTS");
  if (path == NULL || path[0] == 0) return GL_OK;
  char made_for[192];
  snprintf(made_for, sizeof made_for, "%s, cuBLASLt %zu", b->base.device,
           b->blas->cublasLtGetVersion());
  return product_choices_open(&b->blas->choices, path, made_for, err);
}

gl_status cuda_blas_new(cuda_backend *b, gl_error *err) {
  cuda_blas *blas = static_cast<cuda_blas *>(calloc(1, sizeof *blas));
  if (blas == NULL) return gl_fail_memory(err, "cuBLASLt");
  b->blas = blas;
  gl_status status = gemm_plans_new(&blas->plans, MOST_PLANS / GEMM_PLANS_WAYS, sizeof(blas_key),
                                    sizeof(blas_plan), drop_plan, blas, err);
  if (status == GL_OK) status = find_blas_functions(blas, err);
  if (status != GL_OK) return status;
  const cublasStatus_t made = blas->cublasLtCreate(&blas->handle);
  if (made != CUBLAS_STATUS_SUCCESS)
    return gl_fail(err, GL_EIO, "cublasLtCreate: %s", blas->cublasLtGetStatusString(made));
  if (cudaMalloc(&blas->workspace, WORKSPACE_BYTES) != cudaSuccess) {
    cudaGetLastError();
    return gl_fail(err, GL_ENOMEM, "the GPU has no %zu MiB free for cuBLASLt's workspace",
                   WORKSPACE_BYTES >> 20);
  }
  blas->workspace_bytes = WORKSPACE_BYTES;
  return open_choices(b, err);
}

void cuda_blas_free(cuda_backend *b) {
  cuda_blas *blas = b->blas;
  if (blas == NULL) return;
  gemm_plans_free(blas->plans);
  product_choices_free(blas->choices);
  if (blas->workspace != NULL) cudaFree(blas->workspace);
  if (blas->handle != NULL) blas->cublasLtDestroy(blas->handle);
  free(blas);
  b->blas = NULL;
}

/* --- plans --- */

/* If s is an error, stores it and returns 1, else returns 0. */
static int blas_failed(cuda_backend *b, cublasStatus_t s, const char *call) {
  if (s == CUBLAS_STATUS_SUCCESS) return 0;
  cuda_fail(b, s == CUBLAS_STATUS_ALLOC_FAILED ? GL_ENOMEM : GL_EIO, call,
            b->blas->cublasLtGetStatusString(s));
  return 1;
}
#define BLAS_CALL(b, f, ...) blas_failed(b, (b)->blas->f(__VA_ARGS__), #f)

/* The largest power of two up to 256 that divides the address. */
static uint32_t alignment(const void *p) {
  const uintptr_t low = reinterpret_cast<uintptr_t>(p) & 255;
  return low == 0 ? 256 : static_cast<uint32_t>(low & (~low + 1));
}

static cudaDataType_t data_type(uint32_t type) {
  return type == NUMBER_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* Describes the product to the library, which is column-major: a row-major c = a b is its c^T = b^T
 * a^T, so its first matrix is our b. Returns 1 after an error. */
static int describe_product(cuda_backend *b, blas_plan *p, const blas_key *k) {
  const cublasComputeType_t sums = k->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const cublasOperation_t first = k->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = k->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  return BLAS_CALL(b, cublasLtMatmulDescCreate, &p->what, sums, CUDA_R_32F) ||
         BLAS_CALL(b, cublasLtMatmulDescSetAttribute, p->what, CUBLASLT_MATMUL_DESC_TRANSA, &first,
                   sizeof first) ||
         BLAS_CALL(b, cublasLtMatmulDescSetAttribute, p->what, CUBLASLT_MATMUL_DESC_TRANSB, &second,
                   sizeof second) ||
         BLAS_CALL(b, cublasLtMatrixLayoutCreate, &p->b, data_type(k->in),
                   k->b_transposed ? k->k : k->n, k->b_transposed ? k->n : k->k,
                   static_cast<int64_t>(k->b_transposed ? k->k : k->n)) ||
         BLAS_CALL(b, cublasLtMatrixLayoutCreate, &p->a, data_type(k->in),
                   k->a_transposed ? k->m : k->k, k->a_transposed ? k->k : k->m,
                   static_cast<int64_t>(k->a_transposed ? k->m : k->k)) ||
         BLAS_CALL(b, cublasLtMatrixLayoutCreate, &p->c, data_type(k->out), k->n, k->m,
                   static_cast<int64_t>(k->n));
}

/* Sets constraints on an algorithm: workspace, order of sums, alignments. Returns 1 after an error.
 */
static int prefer(cuda_backend *b, cublasLtMatmulPreference_t preference, const blas_key *k,
                  uint32_t reductions) {
  const uint64_t workspace = b->blas->workspace_bytes;
  const struct {
    cublasLtMatmulPreferenceAttributes_t attribute;
    const void *value;
    size_t size;
  } wanted[] = {
      {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
      {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &k->align_b, sizeof k->align_b},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &k->align_a, sizeof k->align_a},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &k->align_c, sizeof k->align_c},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &k->align_c, sizeof k->align_c},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i)
    if (BLAS_CALL(b, cublasLtMatmulPreferenceSetAttribute, preference, wanted[i].attribute,
                  wanted[i].value, wanted[i].size))
      return 1;
  return 0;
}

/* Sets the plan's layouts to q's number of rows, of packed responses: of a and c, or of both
 * factors if their products are summed over rows. In the library's order they are columns. Returns
 * 1 after an error. */
static int set_layout_rows(cuda_backend *b, const blas_plan *p, const cuda_product *q) {
  const uint64_t rows = q->a_transposed ? q->k : q->m;
  return BLAS_CALL(b, cublasLtMatrixLayoutSetAttribute, p->a, CUBLASLT_MATRIX_LAYOUT_COLS, &rows,
                   sizeof rows) ||
         BLAS_CALL(b, cublasLtMatrixLayoutSetAttribute, q->a_transposed ? p->b : p->c,
                   CUBLASLT_MATRIX_LAYOUT_COLS, &rows, sizeof rows);
}

/* Asks for algorithms with these reductions, in the library's order, into results [most]. Returns
 * their number; -1 after an error. */
static int ask_heuristic(cuda_backend *b, const blas_plan *p, const blas_key *k,
                         uint32_t reductions, cublasLtMatmulHeuristicResult_t *results, int most) {
  cublasLtMatmulPreference_t preference = NULL;
  if (BLAS_CALL(b, cublasLtMatmulPreferenceCreate, &preference)) return -1;
  int found = 0;
  const bool ready = prefer(b, preference, k, reductions) == 0;
  const cublasStatus_t s =
      ready ? b->blas->cublasLtMatmulAlgoGetHeuristic(b->blas->handle, p->what, p->b, p->a, p->c,
                                                      p->c, preference, most, results, &found)
            : CUBLAS_STATUS_SUCCESS;
  b->blas->cublasLtMatmulPreferenceDestroy(preference);
  if (!ready) return -1;
  if (s == CUBLAS_STATUS_NOT_SUPPORTED) return 0;
  if (blas_failed(b, s, "cublasLtMatmulAlgoGetHeuristic")) return -1;
  int usable = 0;
  while (usable < found && results[usable].state == CUBLAS_STATUS_SUCCESS) ++usable;
  return usable;
}

/* How the parts of a product split over k may be added, in order of preference: in float; no split;
 * in the result's type. CUBLASLT_REDUCTION_SCHEME_INPLACE, adding in the result's memory, is never
 * allowed. */
static const uint32_t REDUCTIONS[] = {
    CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, CUBLASLT_REDUCTION_SCHEME_NONE,
    CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE};

/* --- measured choices --- */

/* Maximum number of algorithms timed for a shape, and timings of each. */
enum { OFFERS = 8, REPEATS = 5 };

/* Runs the product q with the plan's algorithm. */
static cublasStatus_t blas_multiply(cuda_backend *b, const blas_plan *p, const cuda_product *q) {
  const float one = 1, adds = q->adds ? 1.0f : 0.0f;
  return b->blas->cublasLtMatmul(b->blas->handle, p->what, &one, q->b, p->b, q->a, p->a, &adds,
                                 q->c, p->c, q->c, p->c, &p->algorithm, b->blas->workspace,
                                 b->blas->workspace_bytes, b->stream);
}

/* The minimum time of the product over some repetitions, in milliseconds; negative if the algorithm
 * is refused or after an error. */
static float time_product(cuda_backend *b, const blas_plan *p, const cuda_product *q,
                          cudaEvent_t from, cudaEvent_t to) {
  float least = -1;
  if (blas_multiply(b, p, q) != CUBLAS_STATUS_SUCCESS) return -1;
  for (int i = 0; i < REPEATS; ++i) {
    float took = 0;
    if (CUDA_CALL(b, cudaEventRecord(from, b->stream)) ||
        blas_multiply(b, p, q) != CUBLAS_STATUS_SUCCESS ||
        CUDA_CALL(b, cudaEventRecord(to, b->stream)) || CUDA_CALL(b, cudaEventSynchronize(to)) ||
        CUDA_CALL(b, cudaEventElapsedTime(&took, from, to)))
      return -1;
    if (least < 0 || took < least) least = took;
  }
  return least;
}

/* Times the offered algorithms on q's factors, with zeroed memory for the result. To be chosen an
 * algorithm must be 2 % faster than those before it. */
static void time_offers(cuda_backend *b, const blas_plan *p, const cuda_product *q,
                        const cublasLtMatmulHeuristicResult_t *offer, int offers, void *result,
                        product_choice *choice) {
  cudaEvent_t from = NULL, to = NULL;
  blas_plan trial = *p;
  cuda_product elsewhere = *q;
  float best = -1;
  elsewhere.c = result;
  CUDA_CALL(b, cudaEventCreate(&from));
  CUDA_CALL(b, cudaEventCreate(&to));
  for (int i = 0; i < offers && !cuda_stopped(b); ++i) {
    trial.algorithm = offer[i].algo;
    const float took = time_product(b, &trial, &elsewhere, from, to);
    if (took < 0 || (best >= 0 && took >= 0.98f * best)) continue;
    best = took;
    choice->rank = static_cast<uint64_t>(i);
    choice->nanoseconds = static_cast<uint64_t>(1e6f * took);
  }
  if (from != NULL) cudaEventDestroy(from);
  if (to != NULL) cudaEventDestroy(to);
}

/* Sets *rank to the stored choice for this shape; measures if there is none. If it cannot be
 * measured (while a graph is recorded, or without memory for another result) the first offer is
 * stored, so that the shape's algorithm never changes. Returns 1 after an error. */
static int choose_offer(cuda_backend *b, const blas_plan *p, const blas_key *k,
                        const cuda_product *q, const cublasLtMatmulHeuristicResult_t *offer,
                        int offers, uint64_t *rank) {
  product_choice made = {{k->m, k->n, k->k, k->in, k->out, k->a_transposed, k->b_transposed,
                          k->adds, k->tf32, k->align_a, k->align_b, k->align_c},
                         0,
                         0};
  const product_choice *kept = product_choices_find(b->blas->choices, made.key);
  gl_status status = GL_OK;
  *rank = kept != NULL ? kept->rank : 0;
  if (kept == NULL) {
    if (set_layout_rows(b, p, q)) return 1;
    const size_t bytes = k->m * k->n * (k->out == NUMBER_BF16 ? 2 : 4);
    void *result = NULL;
    if (!b->recording && cudaMalloc(&result, bytes) == cudaSuccess) {
      CUDA_CALL(b, cudaMemsetAsync(result, 0, bytes, b->stream));
      time_offers(b, p, q, offer, offers, result, &made);
      CUDA_CALL(b, cudaStreamSynchronize(b->stream));
      CUDA_CALL(b, cudaFree(result));
    } else
      cudaGetLastError();
    if (cuda_stopped(b)) return 1;
    status = product_choices_add(b->blas->choices, &made, rank, &b->failed);
  }
  if (status == GL_OK && *rank >= static_cast<uint64_t>(offers))
    gl_fail(&b->failed, GL_EINPUT,
            "GEPOLAB_CUDA_PRODUCTS: the file's choice for a product [%zu, %zu, %zu] is algorithm "
            "%zu of %d; remove the file to measure anew",
            q->m, q->n, q->k, static_cast<size_t>(*rank), offers);
  return cuda_stopped(b);
}

/* Sets the plan's algorithm, or `plain` if the library has none. Returns 1 after an error. */
static int choose_algorithm(cuda_backend *b, blas_plan *p, const blas_key *k,
                            const cuda_product *q) {
  cublasLtMatmulHeuristicResult_t offer[OFFERS];
  const int most = b->blas->choices != NULL ? OFFERS : 1;
  int found = 0;
  uint64_t rank = 0;
  memset(offer, 0, sizeof offer);
  for (size_t i = 0; i < sizeof REDUCTIONS / sizeof *REDUCTIONS && found == 0; ++i)
    found = ask_heuristic(b, p, k, REDUCTIONS[i], offer, most);
  if (found > 1 && choose_offer(b, p, k, q, offer, found, &rank)) return 1;
  p->plain = found == 0;
  p->algorithm = offer[rank].algo;
  return found < 0;
}

/* The plan of a shape, made if there is none; NULL after an error. The library copies what it needs
 * when it is called, so a plan may be dropped while its products still run. */
static blas_plan *plan_of(cuda_backend *b, const blas_key *key, const cuda_product *q) {
  void *found = gemm_plans_find(b->blas->plans, key);
  if (found != NULL) return static_cast<blas_plan *>(found);
  blas_plan p;
  memset(&p, 0, sizeof p);
  if (describe_product(b, &p, key) || choose_algorithm(b, &p, key, q)) {
    drop_plan(b->blas, &p);
    return NULL;
  }
  return static_cast<blas_plan *>(gemm_plans_add(b->blas->plans, key, &p));
}

/* --- the product --- */

/* The key of q, with its number of rows padded or as it is. */
static void blas_key_of(blas_key *key, const cuda_backend *b, const cuda_product *q, bool padded) {
  memset(key, 0, sizeof *key);
  key->m = padded && !q->a_transposed ? cuda_padded_rows(q->m) : q->m;
  key->n = q->n;
  key->k = padded && q->a_transposed ? cuda_padded_rows(q->k) : q->k;
  key->in = static_cast<uint32_t>(q->in);
  key->out = static_cast<uint32_t>(q->out);
  key->a_transposed = q->a_transposed;
  key->b_transposed = q->b_transposed;
  key->adds = q->adds;
  key->tf32 = b->base.tf32 && q->in == NUMBER_F32;
  key->align_a = alignment(q->a);
  key->align_b = alignment(q->b);
  key->align_c = alignment(q->c);
}

/* --- the plain product --- */

/* The fallback kernel, for any shape, any alignment, and either factor transposed. A block computes
 * SIDE * SIDE results, one per thread, from squares of both factors in shared memory as floats. It
 * is slow: each number of a factor is read from memory once per SIDE results. */

enum { SIDE = 16 };

/* Storage of a factor: the number at (i, k) is at index i * by_i + k * by_k. */
struct plain_factor {
  const void *at;
  size_t by_i, by_k;
};

/* square[i][k] = the SIDE * SIDE numbers of f from (first, from) on, as floats; 0 beyond n rows and
 * beyond `terms` terms. Adjacent threads read adjacent addresses. */
template <typename T>
static __device__ __forceinline__ void load_square(float (&square)[SIDE][SIDE + 1], plain_factor f,
                                                   size_t first, size_t n, size_t from,
                                                   size_t terms) {
  const unsigned i = f.by_k == 1 ? threadIdx.y : threadIdx.x;
  const unsigned k = f.by_k == 1 ? threadIdx.x : threadIdx.y;
  const bool there = first + i < n && from + k < terms;
  const T *at = static_cast<const T *>(f.at);
  square[i][k] = there ? to_float(at[(first + i) * f.by_i + (from + k) * f.by_k]) : 0.0f;
}

/* c [m, n] (+)= the inner products, of k terms, of the m rows of a and the n rows of b. `across` is
 * the number of blocks along n; they are numbered along n first. */
template <typename T, typename OUT>
__global__ void plain_product(OUT *c, plain_factor a, plain_factor b, size_t m, size_t n, size_t k,
                              unsigned across, bool adds) {
  __shared__ float rows[SIDE][SIDE + 1], columns[SIDE][SIDE + 1];
  const size_t row = blockIdx.x / across * static_cast<size_t>(SIDE);
  const size_t column = blockIdx.x % across * static_cast<size_t>(SIDE);
  float sum = 0;
  for (size_t from = 0; from < k; from += SIDE) {
    load_square<T>(rows, a, row, m, from, k);
    load_square<T>(columns, b, column, n, from, k);
    __syncthreads();
    for (unsigned i = 0; i < SIDE; ++i) sum += rows[threadIdx.y][i] * columns[threadIdx.x][i];
    __syncthreads();
  }
  const size_t r = row + threadIdx.y, s = column + threadIdx.x;
  if (r >= m || s >= n) return;
  OUT *const to = c + r * n + s;
  *to = number<OUT>(adds ? to_float(*to) + sum : sum);
}

template <typename T, typename OUT>
static void launch_plain(cuda_backend *b, const cuda_product *p) {
  const plain_factor rows = {p->a, p->a_transposed ? 1 : p->k, p->a_transposed ? p->m : 1};
  const plain_factor columns = {p->b, p->b_transposed ? p->k : 1, p->b_transposed ? 1 : p->n};
  const size_t across = (p->n + SIDE - 1) / SIDE, down = (p->m + SIDE - 1) / SIDE;
  if (across > 0x7fffffff / down) {
    cuda_fail(b, GL_EINPUT, "plain_product", "a product of more results than a grid can have");
    return;
  }
  LAUNCH(b, (plain_product<T, OUT>), static_cast<unsigned>(across * down), dim3(SIDE, SIDE), 0,
         static_cast<OUT *>(p->c), rows, columns, p->m, p->n, p->k, static_cast<unsigned>(across),
         p->adds);
}

static void plain_product_of(cuda_backend *b, const cuda_product *p) {
  if (cuda_stopped(b) || p->m == 0 || p->n == 0 || p->k == 0) return;
  if (p->in == NUMBER_BF16 && p->out == NUMBER_BF16)
    launch_plain<bf16, bf16>(b, p);
  else if (p->in == NUMBER_BF16)
    launch_plain<bf16, float>(b, p);
  else if (p->out == NUMBER_BF16)
    launch_plain<float, bf16>(b, p);
  else
    launch_plain<float, float>(b, p);
}

/* --- products --- */

/* Runs q with the plan of a key, q's exact or padded one. Returns false if the library has no
 * algorithm for it or refuses it when it runs. */
static bool multiply_by_plan(cuda_backend *b, const blas_key *key, const cuda_product *q) {
  blas_plan *p = plan_of(b, key, q);
  if (p == NULL) return true; /* after an error */
  const bool exact = key->m == q->m && key->k == q->k;
  if (p->plain || (exact && p->refused)) return false;
  if (set_layout_rows(b, p, q)) return true;
  const cublasStatus_t s = blas_multiply(b, p, q);
  if (s == CUBLAS_STATUS_NOT_SUPPORTED) {
    p->refused = p->refused || exact;
    return false;
  }
  blas_failed(b, s, "cublasLtMatmul");
  return true;
}

void cuda_blas_product(cuda_backend *b, const cuda_product *q) {
  if (cuda_stopped(b) || q->m == 0 || q->n == 0 || q->k == 0) return;
  assert((q->in == NUMBER_F32 || q->in == NUMBER_BF16) &&
         (q->out == NUMBER_F32 || q->out == NUMBER_BF16));
  assert(!q->a_transposed || !q->b_transposed);
  blas_key padded, exact;
  blas_key_of(&padded, b, q, true);
  blas_key_of(&exact, b, q, false);
  const bool own = gemm_plans_find(b->blas->plans, &exact) != NULL;
  if (!own && multiply_by_plan(b, &padded, q)) return;
  if (!multiply_by_plan(b, &exact, q)) plain_product_of(b, q);
}
