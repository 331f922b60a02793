/* cuBLASLt on the emulated device: the calls that llm/backend/cuda/blas.cu makes, with the products
 * done by CBLAS. It has EMULATE_BLAS_ALGORITHMS algorithms; number i sums k in i + 1 parts, one
 * after the other, so that the last bits of a result say which of them ran. Like the library, it
 * refuses matrices that do not fit one another, and addresses that are aligned less than was said
 * when its algorithm was asked for. Tests make it refuse what they want (emulate_control.h). */
#include "counts.h"
#include "cublasLt.h"
#include "llm/backend/cuda/device.cuh"

#include <cblas.h>
#include <stdlib.h>

struct emulate_blas_handle {
  int device;
};
struct emulate_blas_product {
  cublasComputeType_t sums;
  cublasOperation_t transposed[2];
};
struct emulate_blas_matrix {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t leading;
};
struct emulate_blas_preference {
  uint64_t workspace;
  uint32_t reductions, alignment[3]; /* of a, of b, the less of c's and d's */
};

static struct {
  unsigned refused;
  uint64_t asked, ran[EMULATE_BLAS_ALGORITHMS];
  double milliseconds[EMULATE_BLAS_ALGORITHMS];
} control;

void emulate_blas_refuse(unsigned what) {
  control.refused = what;
}
uint64_t emulate_blas_ran(unsigned algorithm) {
  return control.ran[algorithm];
}
uint64_t emulate_blas_asked(void) {
  return control.asked;
}
void emulate_blas_takes(unsigned algorithm, double milliseconds) {
  control.milliseconds[algorithm] = milliseconds;
}

/* --- descriptions --- */

size_t cublasLtGetVersion() {
  return 10000;
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  *handle = new emulate_blas_handle();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
const char *cublasLtGetStatusString(cublasStatus_t s) {
  return s == CUBLAS_STATUS_SUCCESS         ? "success"
         : s == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported"
                                            : "an invalid value";
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *what, cublasComputeType_t sums,
                                        cudaDataType_t scale) {
  if (scale != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
  *what = new emulate_blas_product{sums, {CUBLAS_OP_N, CUBLAS_OP_N}};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t what) {
  delete what;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t what,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size) {
  if (size != sizeof(cublasOperation_t)) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(&what->transposed[attribute == CUBLASLT_MATMUL_DESC_TRANSB], value, size);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *matrix, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t leading) {
  if (leading < (int64_t)rows) return CUBLAS_STATUS_INVALID_VALUE;
  *matrix = new emulate_blas_matrix{type, rows, columns, leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matrix) {
  delete matrix;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t matrix,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t size) {
  if (attribute != CUBLASLT_MATRIX_LAYOUT_COLS || size != sizeof matrix->columns)
    return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(&matrix->columns, value, size);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  *preference = new emulate_blas_preference{0, 7, {256, 256, 256}};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size) {
  uint32_t number = 0;
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    if (size != sizeof preference->workspace) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&preference->workspace, value, size);
    return CUBLAS_STATUS_SUCCESS;
  }
  if (size != sizeof number) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(&number, value, size);
  uint32_t *const at = preference->alignment;
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) preference->reductions = number;
  if (attribute == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) at[0] = number;
  if (attribute == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES) at[1] = number;
  if (attribute == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES) at[2] = number;
  if (attribute == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES && number < at[2]) at[2] = number;
  return CUBLAS_STATUS_SUCCESS;
}

/* --- algorithms --- */

/* What a test may refuse: an algorithm with these reductions allowed. */
static unsigned refusal(uint32_t reductions) {
  return reductions == CUBLASLT_REDUCTION_SCHEME_NONE           ? EMULATE_BLAS_WHOLE
         : reductions == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE ? EMULATE_BLAS_SPLIT
                                                                : EMULATE_BLAS_OTHER;
}

/* The sizes op(a) [m, k] op(b) [k, n] = d [m, n], column-major; false where they do not fit. */
static bool sizes(const emulate_blas_product *p, const emulate_blas_matrix *a,
                  const emulate_blas_matrix *b, const emulate_blas_matrix *d, uint64_t (&mnk)[3]) {
  const bool ta = p->transposed[0] == CUBLAS_OP_T, tb = p->transposed[1] == CUBLAS_OP_T;
  mnk[0] = ta ? a->columns : a->rows;
  mnk[1] = tb ? b->rows : b->columns;
  mnk[2] = ta ? a->rows : a->columns;
  return (tb ? b->columns : b->rows) == mnk[2] && d->rows == mnk[0] && d->columns == mnk[1] &&
         a->type == b->type;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t what,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t *results,
                                              int *found) {
  uint64_t mnk[3];
  *found = 0;
  ++control.asked;
  if (c != d || !sizes(what, a, b, d, mnk)) return CUBLAS_STATUS_INVALID_VALUE;
  if (preference->reductions & CUBLASLT_REDUCTION_SCHEME_INPLACE) abort(); /* no fixed order */
  if (control.refused & refusal(preference->reductions)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool split = preference->reductions != CUBLASLT_REDUCTION_SCHEME_NONE;
  for (int i = 0; i < most && i < (split ? EMULATE_BLAS_ALGORITHMS : 1); ++i, ++*found) {
    memset(&results[i], 0, sizeof results[i]);
    results[i].algo.data[0] = (uint64_t)i;
    for (int j = 0; j < 3; ++j) results[i].algo.data[1 + j] = preference->alignment[j];
    for (int j = 0; j < 3; ++j) results[i].algo.data[4 + j] = mnk[j];
  }
  return CUBLAS_STATUS_SUCCESS;
}

/* --- the product --- */

/* Everything that a product needs when it runs, which may be later, in a graph. */
struct blas_job {
  uint64_t m, n, k;
  int64_t lda, ldb, ldd;
  bool ta, tb, tf32;
  cudaDataType_t in, out;
  const void *a, *b;
  void *d;
  float beta;
  unsigned algorithm;
};

/* n numbers of `type` as floats, malloc'd. */
static float *floats(const void *from, cudaDataType_t type, size_t n) {
  float *out = (float *)malloc((n + 1) * sizeof *out);
  if (out == nullptr) abort();
  for (size_t i = 0; i < n; ++i)
    out[i] = type == CUDA_R_16BF ? to_float(((const bf16 *)from)[i]) : ((const float *)from)[i];
  return out;
}

/* To the nearest number of 10 bits of mantissa, ties to even. */
static void round_to_tf32(float *x, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const uint32_t u = __float_as_uint(x[i]);
    x[i] = __uint_as_float((u + 0xfff + (u >> 13 & 1)) & ~(uint32_t)0x1fff);
  }
}

static void run(const blas_job &j) {
  const double in = j.in == CUDA_R_16BF ? 2 : 4, out = j.out == CUDA_R_16BF ? 2 : 4;
  const double mk = (double)(j.m * j.k), kn = (double)(j.k * j.n), mn = (double)(j.m * j.n);
  count_product(in * (mk + kn) + (j.beta != 0 ? out * mn : 0), out * mn);
  if (emulate_has_shapes_only()) return;
  const size_t na = (size_t)j.lda * (j.ta ? j.m : j.k), nb = (size_t)j.ldb * (j.tb ? j.k : j.n);
  float *a = floats(j.a, j.in, na), *b = floats(j.b, j.in, nb);
  if (j.tf32) {
    round_to_tf32(a, na);
    round_to_tf32(b, nb);
  }
  const size_t results = (size_t)j.ldd * j.n;
  float *d = j.beta != 0 ? floats(j.d, j.out, results) : (float *)calloc(results + 1, sizeof *d);
  const uint64_t parts = j.algorithm + 1;
  for (uint64_t i = 0; i < parts; ++i) {
    const uint64_t from = j.k * i / parts, to = j.k * (i + 1) / parts;
    if (from == to) continue;
    cblas_sgemm(CblasColMajor, j.ta ? CblasTrans : CblasNoTrans, j.tb ? CblasTrans : CblasNoTrans,
                (int)j.m, (int)j.n, (int)(to - from), 1, a + (j.ta ? from : from * (uint64_t)j.lda),
                (int)j.lda, b + (j.tb ? from * (uint64_t)j.ldb : from), (int)j.ldb, 1, d,
                (int)j.ldd);
  }
  for (size_t i = 0; i < results; ++i)
    if (j.out == CUDA_R_16BF)
      ((bf16 *)j.d)[i] = to_bf16(d[i]);
    else
      ((float *)j.d)[i] = d[i];
  free(a);
  free(b);
  free(d);
  emulate_time_passes(control.milliseconds[j.algorithm]);
}

/* Launched like a kernel, so that graphs record it. */
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t what, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_is, const void *b,
                              cublasLtMatrixLayout_t b_is, const void *beta, const void *c,
                              cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t d_is,
                              const cublasLtMatmulAlgo_t *algorithm, void *, size_t,
                              cudaStream_t stream) {
  uint64_t mnk[3];
  const void *const address[] = {a, b, d};
  if (!sizes(what, a_is, b_is, d_is, mnk) || c != d || *(const float *)alpha != 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  const bool other_sizes = memcmp(mnk, algorithm->data + 4, sizeof mnk) != 0;
  if (control.refused & EMULATE_BLAS_RUN || (control.refused & EMULATE_BLAS_OTHER_SIZES && other_sizes))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < 3; ++i)
    if ((uintptr_t)address[i] % algorithm->data[1 + i] != 0) return CUBLAS_STATUS_INVALID_VALUE;
  const blas_job j = {mnk[0],
                      mnk[1],
                      mnk[2],
                      a_is->leading,
                      b_is->leading,
                      d_is->leading,
                      what->transposed[0] == CUBLAS_OP_T,
                      what->transposed[1] == CUBLAS_OP_T,
                      what->sums == CUBLAS_COMPUTE_32F_FAST_TF32,
                      a_is->type,
                      d_is->type,
                      a,
                      b,
                      d,
                      *(const float *)beta,
                      (unsigned)algorithm->data[0]};
  ++control.ran[j.algorithm];
  emulate_kernel("product", dim3(1), dim3(1), 0, stream, [=]() { run(j); });
  return CUBLAS_STATUS_SUCCESS;
}
