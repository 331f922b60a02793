/* Draws of tokens from logits by the distribution of core/rl/sampling.h, where nothing is
 * truncated.
 *
 * A row is divided into slices of the vocabulary, a block each, so that a few rows with a large
 * vocabulary keep the whole device busy. One kernel finds each slice's greatest logit, one sums
 * each slice's weights, and in the third a block for each row finds the slice and the token at
 * which the cumulative sum passes the draw. Logits are read twice, the second time mostly from the
 * second-level cache: the limit is 4 bytes for each token of the vocabulary and row. */
#include "llm/backend/cuda/sample.cuh"

#include <assert.h>

enum { THREADS = 256, EACH = 16, SLICE = THREADS * EACH };

/* What the kernels know of the n slices of every row, [rows, n] each; in scratch memory. */
struct sample_slices {
  weight_t *best; /* the greatest rank */
  weight_t *sum;
  size_t n;
};

/* Block (x, y): slice y of row x. */
__global__ void __launch_bounds__(THREADS)
    find_best(sample_slices slices, const float *logits, size_t vocabulary) {
  wait_for_kernels_before();
  const size_t r = blockIdx.x;
  const weight_t best = best_of_slice<THREADS, EACH>(logits + r * vocabulary, vocabulary);
  if (threadIdx.x == 0) slices.best[r * slices.n + blockIdx.y] = best;
}

/* Block (x, y): the sum of the weights of slice y of row x. */
__global__ void __launch_bounds__(THREADS)
    sum_weights(sample_slices slices, const float *logits, size_t vocabulary, float factor) {
  wait_for_kernels_before();
  const size_t r = blockIdx.x, first = blockIdx.y * static_cast<size_t>(SLICE) + threadIdx.x;
  const sample_row x = row_at(logits, r, vocabulary,
                              best_of_row<THREADS>(slices.best + r * slices.n, slices.n), factor);
  weight_t sum = 0;
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) {
    const size_t i = first + e * THREADS;
    if (i < vocabulary) sum += weight_of(x, x.z[i]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) slices.sum[r * slices.n + blockIdx.y] = sum;
}

/* The draw of row blockIdx.x: a thread has EACH neighbouring tokens of the slice it falls into. */
__global__ void __launch_bounds__(THREADS)
    draw_tokens(sample_to to, sample_slices slices, const float *logits, const uint64_t *index,
                size_t vocabulary, sample_spec spec) {
  wait_for_kernels_before();
  const size_t r = blockIdx.x;
  const weight_t best = best_of_row<THREADS>(slices.best + r * slices.n, slices.n),
                 *sums = slices.sum + r * slices.n;
  const sample_row x = row_at(logits, r, vocabulary, best, spec.factor);
  weight_t total = 0;
  for (size_t s = threadIdx.x; s < slices.n; s += THREADS) total += sums[s];
  total = block_sum(total);
  if (total == 0 || spec.greedy) {
    if (threadIdx.x == 0 && total == 0) put_nan_draw(to, r, vocabulary);
    if (threadIdx.x == 0 && total != 0) put_draw(to, r, x, spec, ranked_token(best), total, total);
    return;
  }
  const weight_t wanted = drawn_weight(spec, index[r], total);
  weight_t before = 0;
  size_t slice = 0;
  while (slice + 1 < slices.n && before + sums[slice] <= wanted) before += sums[slice++];
  const size_t first = slice * SLICE + threadIdx.x * static_cast<size_t>(EACH);
  weight_t weight[EACH];
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) {
    weight[e] = first + e < vocabulary ? weight_of(x, x.z[first + e]) : 0;
  }
  put_draw_among<THREADS, EACH>(to, r, x, spec, first, weight, before, wanted, total, total);
}

size_t cuda_sample_scratch(size_t rows, size_t vocabulary) {
  return 2 * carved(rows * ((vocabulary + SLICE - 1) / SLICE), sizeof(weight_t));
}

static void sample_untruncated(cuda_backend *b, sample_to to, const float *logits,
                               const uint64_t *index, size_t rows, size_t vocabulary,
                               sample_spec spec) {
  sample_slices slices = {};
  slices.n = (vocabulary + SLICE - 1) / SLICE;
  const size_t parts = rows * slices.n;
  char *at = static_cast<char *>(cuda_scratch(b, cuda_sample_scratch(rows, vocabulary)));
  if (at == NULL) return;
  slices.best = carve<weight_t>(&at, parts);
  slices.sum = carve<weight_t>(&at, parts);
  const dim3 grid(static_cast<unsigned>(rows), static_cast<unsigned>(slices.n));
  LAUNCH_EARLY(b, find_best, grid, THREADS, 0, slices, logits, vocabulary);
  LAUNCH_EARLY(b, sum_weights, grid, THREADS, 0, slices, logits, vocabulary, spec.factor);
  LAUNCH_EARLY(b, draw_tokens, static_cast<unsigned>(rows), THREADS, 0, to, slices, logits, index,
               vocabulary, spec);
}

static void op_sample(backend *base, int32_t *token, void *logq, void *logq_truncated,
                      const void *logits, const uint64_t *index, size_t rows, size_t vocabulary,
                      const sampling_spec *given, rng_stream stream, int greedy) {
  cuda_operation op(base, "sample", rows, vocabulary);
  assert(vocabulary > 0 || rows == 0);
  sample_spec spec = sample_spec_of(given, vocabulary);
  spec.stream = stream;
  spec.greedy = greedy;
  const sample_to to = {token, static_cast<float *>(logq), static_cast<float *>(logq_truncated)};
  const float *z = static_cast<const float *>(logits);
  if (spec.top_k != 0 || spec.top_p < 1)
    sample_truncated(op.b, to, z, index, rows, vocabulary, spec);
  else
    sample_untruncated(op.b, to, z, index, rows, vocabulary, spec);
}

CUDA_OPERATION(sample)
