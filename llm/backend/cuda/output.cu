/* Log-probabilities and entropies of the output layer, and their backward, some rows and some
 * columns of the logits at a time (columns are tokens of the vocabulary): one product writes a
 * chunk of logits into scratch memory that is small enough to stay in the second-level cache, the
 * chunk is combined with each row's running softmax statistics, and the next chunk overwrites it.
 */
#include "llm/backend/cuda/kernels.cuh"

#include <assert.h>

/* Most logits of a chunk, and most rows. */
static const size_t CHUNK_NUMBERS = static_cast<size_t>(1) << 23, CHUNK_ROWS = 4096;
enum { THREADS = 256 };

/* The size of a chunk; the last ones are smaller. */
struct output_chunk {
  size_t rows, columns;
};

static output_chunk chunk_of(size_t rows, size_t vocabulary) {
  output_chunk c;
  c.rows = rows < CHUNK_ROWS ? rows : CHUNK_ROWS;
  c.columns = CHUNK_NUMBERS / (c.rows == 0 ? 1 : c.rows) / 128 * 128;
  if (c.columns > vocabulary) c.columns = vocabulary;
  return c;
}

/* Scratch bytes of the forward or the backward, whichever needs more. */
size_t cuda_output_scratch(size_t rows, size_t vocabulary, size_t k, number_type type) {
  const output_chunk most = chunk_of(rows, vocabulary);
  const size_t numbers = most.rows * most.columns, half = type == NUMBER_BF16;
  const size_t forward = carved(numbers, sizeof(float)) + carved(most.rows, sizeof(softmax_stats)) +
                         carved(most.rows, sizeof(float));
  const size_t backward = carved(numbers, sizeof(float)) + carved(half * numbers, sizeof(bf16)) +
                          carved(half * most.rows * k, sizeof(float));
  return backward > forward ? backward : forward;
}

/* z [rows, columns] = in [rows, k] weight [columns, k]^T, in float; weight begins at the chunk. */
template <typename T>
static void chunk_logits(cuda_backend *b, float *z, const T *in, const T *weight, size_t rows,
                         size_t columns, size_t k) {
  const cuda_product p = {type_of<T>::value, NUMBER_F32, in,    weight, z,    rows,
                          columns,           k,          false, true,   false};
  cuda_blas_product(b, &p);
}

/* --- forward --- */

/* Combines row blockIdx.x of the chunk z [rows, columns], which begins at column `first` of the
 * vocabulary, with stats [rows]; keeps the target's logit when the chunk has it. */
__global__ void fold_chunk(softmax_stats *stats, float *target_logit, const float *z,
                           const int32_t *target, size_t first, size_t columns, float factor) {
  const size_t r = blockIdx.x;
  const softmax_stats some = rows_of<float>::stats(this_block(), z + r * columns, columns, factor);
  if (threadIdx.x != 0) return;
  stats[r] = first == 0 ? some : softmax_stats_join(stats[r], some, static_cast<double>(factor));
  const size_t at = static_cast<size_t>(target[r]);
  if (at >= first && at < first + columns) target_logit[r] = z[r * columns + at - first];
}

/* The three results of each row from its statistics; a thread does a row. */
__global__ void finish_rows(float *logp, float *entropy, float *lse, const softmax_stats *stats,
                            const float *target_logit, size_t rows, float factor) {
  const size_t r = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (r >= rows) return;
  const double f = static_cast<double>(factor);
  logp[r] =
      static_cast<float>(softmax_stats_logp(stats[r], static_cast<double>(target_logit[r]), f));
  entropy[r] = static_cast<float>(softmax_stats_entropy(stats[r]));
  lse[r] = static_cast<float>(softmax_stats_lse(stats[r], f));
}

template <typename T>
static void op_output(backend *base, void *logp, void *entropy, void *lse, const void *in,
                      const void *weight, const int32_t *target, size_t rows, size_t vocabulary,
                      size_t k, double temperature) {
  cuda_operation op(base, "output", rows, vocabulary, k);
  assert(temperature > 0);
  const output_chunk most = chunk_of(rows, vocabulary);
  char *at = static_cast<char *>(
      cuda_scratch(op.b, cuda_output_scratch(rows, vocabulary, k, type_of<T>::value)));
  if (at == NULL) return;
  float *z = carve<float>(&at, most.rows * most.columns);
  softmax_stats *stats = carve<softmax_stats>(&at, most.rows);
  float *target_logit = carve<float>(&at, most.rows);
  const float factor = static_cast<float>(1 / temperature);
  for (size_t r = 0; r < rows; r += most.rows) {
    const size_t n = rows - r < most.rows ? rows - r : most.rows;
    for (size_t v = 0; v < vocabulary; v += most.columns) {
      const size_t columns = vocabulary - v < most.columns ? vocabulary - v : most.columns;
      chunk_logits(op.b, z, static_cast<const T *>(in) + r * k,
                   static_cast<const T *>(weight) + v * k, n, columns, k);
      LAUNCH(op.b, fold_chunk, static_cast<unsigned>(n), THREADS, 0, stats, target_logit, z,
             target + r, v, columns, factor);
    }
    LAUNCH(op.b, finish_rows, blocks_of(n, 128), 128, 0, static_cast<float *>(logp) + r,
           static_cast<float *>(entropy) + r, static_cast<float *>(lse) + r, stats, target_logit, n,
           factor);
  }
}

/* --- backward: the logits are computed again, become their gradients, and enter two products ---
 */

/* Row blockIdx.x of z [rows, columns] becomes the gradient of its logits, which is also stored as T
 * in dlogits unless that is z itself. `first` is the chunk's first column. */
template <typename T>
__global__ void logit_grad_chunk(T *dlogits, float *z, const float *dlogp, const float *lse,
                                 const int32_t *target, size_t first, size_t columns,
                                 float factor) {
  const size_t r = blockIdx.x, at = static_cast<size_t>(target[r]) - first;
  rows_of<float>::logp_backward(this_block(), z + r * columns, columns, at, factor, lse[r],
                                factor * dlogp[r]);
  if (static_cast<void *>(dlogits) == static_cast<void *>(z)) return;
  for (size_t i = threadIdx.x; i < columns; i += blockDim.x)
    dlogits[r * columns + i] = number<T>(z[r * columns + i]);
}

/* sum [rows, k] (+)= dlogits weight, in float; dweight [columns, k] += dlogits^T in. */
template <typename T>
static void chunk_products(cuda_backend *b, float *sum, float *dweight, const T *dlogits,
                           const T *in, const T *weight, size_t rows, size_t columns, size_t k,
                           bool adds) {
  const number_type type = type_of<T>::value;
  const cuda_product into_rows = {type, NUMBER_F32, dlogits, weight, sum, rows,
                                  k,    columns,    false,   false,  adds};
  const cuda_product into_weight = {type, NUMBER_F32, dlogits, in,    dweight, columns,
                                    k,    rows,       true,    false, true};
  cuda_blas_product(b, &into_rows);
  cuda_blas_product(b, &into_weight);
}

template <typename T>
static void op_output_backward(backend *base, void *din, void *dweight, const void *dlogp,
                               const void *lse, const void *in, const void *weight,
                               const int32_t *target, size_t rows, size_t vocabulary, size_t k,
                               double temperature) {
  cuda_operation op(base, "output_backward", rows, vocabulary, k);
  assert(temperature > 0);
  const bool half = sizeof(T) != sizeof(float);
  const output_chunk most = chunk_of(rows, vocabulary);
  const size_t numbers = most.rows * most.columns;
  char *at = static_cast<char *>(
      cuda_scratch(op.b, cuda_output_scratch(rows, vocabulary, k, type_of<T>::value)));
  if (at == NULL) return;
  float *z = carve<float>(&at, numbers);
  T *dlogits = half ? carve<T>(&at, numbers) : reinterpret_cast<T *>(z);
  float *sum = half ? carve<float>(&at, most.rows * k) : NULL;
  const float factor = static_cast<float>(1 / temperature);
  for (size_t r = 0; r < rows; r += most.rows) {
    const size_t n = rows - r < most.rows ? rows - r : most.rows;
    const T *x = static_cast<const T *>(in) + r * k;
    T *dx = static_cast<T *>(din) + r * k;
    float *to = half ? sum : reinterpret_cast<float *>(dx);
    for (size_t v = 0; v < vocabulary; v += most.columns) {
      const size_t columns = vocabulary - v < most.columns ? vocabulary - v : most.columns;
      const T *w = static_cast<const T *>(weight) + v * k;
      chunk_logits(op.b, z, x, w, n, columns, k);
      LAUNCH(op.b, logit_grad_chunk<T>, static_cast<unsigned>(n), THREADS, 0, dlogits, z,
             static_cast<const float *>(dlogp) + r, static_cast<const float *>(lse) + r, target + r,
             v, columns, factor);
      chunk_products(op.b, to, static_cast<float *>(dweight) + v * k, dlogits, x, w, n, columns, k,
                     v > 0);
    }
    if (half) base->ops->cast(base, dx, sum, n * k);
  }
}

CUDA_TYPED_OPERATION(output)
CUDA_TYPED_OPERATION(output_backward)
