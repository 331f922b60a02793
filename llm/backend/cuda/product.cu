/* The product operations: which matrices they multiply, and by whom. Products that must be the same
 * row by row go to product_rows.cu, all others to cuBLASLt (blas.cu), and those for which that has
 * no algorithm to the plain product here. */
#include "llm/backend/cuda/device.cuh"

/* --- the plain product --- */

/* Any shape, any alignment, either factor transposed. A block makes a square of SIDE * SIDE
 * results, a thread one of them, from squares of both factors that it keeps in shared memory as
 * floats. It is the way out and not the fast way: each number of a factor is read from memory once
 * for SIDE results. */

enum { SIDE = 16 };

/* How a factor is stored: the number at (i, k) is at i * by_i + k * by_k. */
struct plain_factor {
  const void *at;
  size_t by_i, by_k;
};

/* square[i][k] = the SIDE * SIDE numbers of f from (first, k) on; 0 beyond n rows and `terms`.
 * Neighbouring threads read neighbouring addresses. */
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

/* c [m, n] (+)= the products of a's rows with b's rows. Blocks are numbered along n first. */
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

void cuda_plain_product(cuda_backend *b, const cuda_product *p) {
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

/* --- operations --- */

template <typename T>
static void op_product(backend *base, void *out, const void *in, const void *weight, size_t rows,
                       size_t m, size_t k, int flags) {
  cuda_operation op(base, "product", rows, m, k);
  const number_type type = type_of<T>::value;
  const bool adds = (flags & PRODUCT_ADD) != 0;
  const cuda_product p = {type, type, in, weight, out, rows, m, k, false, true, adds};
  if (flags & PRODUCT_ROW_BY_ROW)
    cuda_product_row_by_row(op.b, &p);
  else
    cuda_blas_product(op.b, &p);
}

template <typename T>
static void op_logits(backend *base, void *logits, const void *in, const void *weight, size_t rows,
                      size_t vocabulary, size_t k) {
  cuda_operation op(base, "logits", rows, vocabulary, k);
  const cuda_product p = {type_of<T>::value, NUMBER_F32, in,    weight, logits, rows,
                          vocabulary,        k,          false, true,   false};
  cuda_product_row_by_row(op.b, &p);
}

template <typename T>
static void op_product_backward_input(backend *base, void *din, const void *dout,
                                      const void *weight, size_t rows, size_t m, size_t k,
                                      int flags) {
  cuda_operation op(base, "product_backward_input", rows, m, k);
  const number_type type = type_of<T>::value;
  const bool adds = (flags & PRODUCT_ADD) != 0;
  const cuda_product p = {type, type, dout, weight, din, rows, k, m, false, false, adds};
  cuda_blas_product(op.b, &p);
}

template <typename T>
static void op_product_backward_weight(backend *base, void *dweight, const void *dout,
                                       const void *in, size_t rows, size_t m, size_t k) {
  cuda_operation op(base, "product_backward_weight", rows, m, k);
  const cuda_product p = {
      type_of<T>::value, NUMBER_F32, dout, in, dweight, m, k, rows, true, false, true};
  cuda_blas_product(op.b, &p);
}

CUDA_TYPED_OPERATION(product)
CUDA_TYPED_OPERATION(product_backward_input)
CUDA_TYPED_OPERATION(product_backward_weight)
CUDA_TYPED_OPERATION(logits)
