/* Which tokens top-k and top-p keep of a row, written beside a draw, and the logits of samplers
 * that compute otherwise than the learner.
 *
 * What is kept follows from sums of whole numbers (sample.cuh), which are the same however they are
 * made. So the sets are found here anew, by a block for each row, whatever way `sample` takes: the
 * least key that is kept is built bit by bit, each bit by a sum over the row, 32 passes for top-k
 * and 32 for top-p, read from the second-level cache. One warp then writes the set in the order of
 * the tokens, for of equal logits at the least key top-p keeps the first ones. */
#include "llm/backend/cuda/sample.cuh"

extern "C" {
#include "core/random/rng.h"
}

#include <assert.h>

enum { THREADS = 512 };

/* The weights of tokens with a key of at least `least`, or their number. The whole block calls it.
 */
static __device__ weight_t sum_from(const sample_row &x, uint32_t least, bool counted) {
  weight_t sum = 0;
  for (size_t i = threadIdx.x; i < x.n; i += blockDim.x) {
    const uint32_t key = logit_key(x.z[i]);
    if (key != 0 && key >= least)
      sum += counted ? static_cast<weight_t>(1) : logit_weight(x, x.z[i]);
  }
  return block_sum(sum);
}

/* The greatest key from which on the sum reaches `wanted`, at least `least`. */
static __device__ uint32_t key_reaching(const sample_row &x, uint32_t least, weight_t wanted,
                                        bool counted) {
  uint32_t key = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const uint32_t higher = key | 1u << bit;
    if (sum_from(x, higher, counted) >= wanted) key = higher;
  }
  return key > least ? key : least;
}

/* The tokens that are kept: those with a key above `least`, and the first `ties` of those that have
 * it. */
struct kept_range {
  uint32_t least;
  weight_t ties;
};

/* Top-k, then top-p of what it leaves, as sample.cu finds them. The whole block calls it.
 */
static __device__ kept_range find_kept(const sample_row &x, const sample_spec &spec) {
  kept_range kept = {1, ~static_cast<weight_t>(0)};
  if (spec.top_k != 0) kept.least = key_reaching(x, 1, spec.top_k, true);
  if (spec.top_p >= 1) return kept;
  const weight_t mass = sum_from(x, kept.least, false);
  const double share = ceil(spec.top_p * static_cast<double>(mass));
  const weight_t wanted = share < 1 ? 1 : static_cast<weight_t>(share);
  const uint32_t key = key_reaching(x, kept.least, wanted, false);
  const weight_t above = sum_from(x, key + 1, false), each = logit_weight(x, float_of(key));
  kept.least = key;
  kept.ties = each == 0 ? 1 : (wanted - above + each - 1) / each;
  return kept;
}

/* Writes the set; its words are zero before. For one warp. */
static __device__ void write_set(uint32_t *set, size_t words, bool listed, const sample_row &x,
                                 kept_range kept) {
  const unsigned lane = threadIdx.x % 32, below = (1u << lane) - 1;
  weight_t ties = 0;
  size_t count = 0;
  for (size_t j = 0; j < x.n; j += 32) {
    const size_t own = j + lane;
    const uint32_t key = own < x.n && x.z[own] > -INFINITY ? logit_key(x.z[own]) : 0;
    const unsigned tied = __ballot_sync(WARP, key == kept.least);
    const weight_t rank = ties + static_cast<weight_t>(__popc(tied & below));
    const bool in = key > kept.least || (key == kept.least && rank < kept.ties);
    const unsigned all = __ballot_sync(WARP, in);
    const size_t place = 1 + count + static_cast<size_t>(__popc(all & below));
    if (!listed && lane == 0) set[j / 32] = all;
    if (listed && in && place < words) set[place] = static_cast<uint32_t>(own);
    count += static_cast<size_t>(__popc(all));
    ties += static_cast<weight_t>(__popc(tied));
  }
  if (listed && lane == 0) set[0] = count < words ? static_cast<uint32_t>(count) : KEPT_OVERFLOW;
}

/* The set of row blockIdx.x; empty where its logits are no distribution. */
__global__ void __launch_bounds__(THREADS)
    keep_rows(uint32_t *sets, size_t words, bool listed, const float *logits, size_t vocabulary,
              sample_spec spec) {
  const size_t r = blockIdx.x;
  uint32_t *set = sets + r * words;
  sample_row x = {logits + r * vocabulary, vocabulary, 0, spec.factor};
  uint32_t best = 0;
  for (size_t i = threadIdx.x; i < x.n; i += blockDim.x) {
    const uint32_t key = logit_key(x.z[i]);
    best = key > best ? key : best;
  }
  x.greatest = float_of(block_max(best));
  for (size_t w = threadIdx.x; w < words; w += blockDim.x) set[w] = 0;
  __syncthreads();
  if (sum_from(x, 1, false) == 0) return;
  const kept_range kept = find_kept(x, spec);
  if (threadIdx.x < 32) write_set(set, words, listed, x, kept);
}

static void op_sample_kept(backend *base, int32_t *token, void *logq, void *logq_truncated,
                           kept_sets kept, const void *logits, const uint64_t *index, size_t rows,
                           const sampling_spec *given, rng_stream stream) {
  const size_t vocabulary = kept.shape.vocabulary;
  base->ops->sample(base, token, logq, logq_truncated, logits, index, rows, vocabulary, given,
                    stream, 0);
  cuda_operation op(base, "sample_kept", rows, vocabulary);
  assert(vocabulary > 0 || rows == 0);
  const sample_spec spec = sample_spec_of(given, vocabulary);
  LAUNCH(op.b, keep_rows, static_cast<unsigned>(rows), THREADS, 0, kept.set, kept.shape.words,
         kept.shape.listed != 0, static_cast<const float *>(logits), vocabulary, spec);
}

/* --- distorted logits --- */

/* Pair p of tokens of row blockIdx.x: their noise is one block of random numbers. */
__global__ void distort_rows(float *logits, const uint64_t *context, size_t vocabulary,
                             double noise, bool rounds, uint64_t seed) {
  const size_t p = blockIdx.y * static_cast<size_t>(blockDim.x) + threadIdx.x, r = blockIdx.x;
  double pair[2] = {0, 0};
  if (2 * p >= vocabulary) return;
  if (noise > 0)
    rng_normal_pair(rng_block(rng_stream_at(seed, RNG_BEHAVIOUR, context[r]), p), noise, pair);
  for (size_t a = 2 * p; a < 2 * p + 2 && a < vocabulary; ++a) {
    float *z = logits + r * vocabulary + a;
    const float moved = static_cast<float>(static_cast<double>(*z) + pair[a - 2 * p]);
    *z = rounds && isfinite(moved) ? to_float(to_bf16(moved)) : moved;
  }
}

static void op_distort(backend *base, void *logits, const uint64_t *context, size_t rows,
                       size_t vocabulary, const sampling_behaviour *behaviour, uint64_t seed) {
  cuda_operation op(base, "distort", rows, vocabulary);
  const dim3 grid(static_cast<unsigned>(rows), blocks_of((vocabulary + 1) / 2, 128));
  LAUNCH(op.b, distort_rows, grid, 128, 0, static_cast<float *>(logits), context, vocabulary,
         behaviour->noise, behaviour->rounds_to_bfloat16 != 0, seed);
}

CUDA_OPERATION(sample_kept)
CUDA_OPERATION(distort)
