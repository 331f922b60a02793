/* Samples tokens from logits with the distribution of core/rl/sampling_distribution.h.
 *
 * A row is divided into slices of the vocabulary, one block each, so that few rows with a large
 * vocabulary occupy the whole device. All sums are of integers (below), so a sample depends neither
 * on the order of blocks nor on the division of the vocabulary. */
#include "llm/backend/cuda/device.cuh"

#define R123_USE_SSE 0 /* as in core/random/rng.h */
#define R123_USE_X86INTRIN_H 0
#include <Random123/philox.h>
#include <gsl/gsl_rng.h>

extern "C" {
#include "core/random/rng.h"
}

#include <assert.h>
#include <float.h>
#include <math.h>

/* --- weights --- */

/* A token's weight is e^((z - greatest) / temperature), computed in float and rounded to an integer
 * multiple of 2^-44. Sums of integers are exact. So they do not depend on the order, and any number
 * of blocks may compute them with atomic additions. The rounding changes a weight by about 2^-22 of
 * its value, as much as the rounding of the logits does. A weight below 2^-45 of the greatest
 * token's is zero. */

typedef unsigned long long weight_t;

static const float WEIGHT_UNIT = 0x1p44f;

/* The arguments of `sample` that are the same for all rows. */
struct sample_spec {
  double temperature, top_p;
  size_t top_k; /* 0: off */
  float factor; /* log2(e) / temperature */
  rng_stream stream;
  int greedy;
};

/* Converts the distribution's parameters for a vocabulary of this size; the caller sets stream and
 * greedy. */
static inline sample_spec sample_spec_of(const sampling_spec *given, size_t vocabulary) {
  sample_spec spec = {};
  spec.temperature = given->temperature;
  spec.top_p = given->top_p;
  spec.top_k = given->top_k < vocabulary ? given->top_k : 0;
  spec.factor = static_cast<float>(fmin(M_LOG2E / given->temperature, FLT_MAX));
  return spec;
}

/* The results, [rows] each. */
struct sample_to {
  int32_t *token;
  float *logq, *logq_truncated;
};

/* One row: its n logits, the greatest of them, and sample_spec.factor. */
struct sample_row {
  const float *z;
  size_t n;
  float greatest, factor;
};

/* The weight of logit z of row x in units of 2^-44; 0 for NaN. */
static __device__ __forceinline__ weight_t logit_weight(const sample_row &x, float z) {
  const float w = exp2f((z - x.greatest) * x.factor);
  return w >= 0 ? static_cast<weight_t>(w * WEIGHT_UNIT + 0.5f) : 0;
}

/* A float's key: an integer with the same order as floats; below, the float of a key. Both zeros
 * have the same key; NaN has key 0, below all others. */
static __device__ __forceinline__ uint32_t logit_key(float z) {
  if (!(z >= -INFINITY)) return 0;
  const uint32_t u = __float_as_uint(z + 0.0f);
  return u >> 31 ? ~u : u | 0x80000000u;
}
static __device__ __forceinline__ float float_of(uint32_t key) {
  return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
}

/* A token's rank in its row: the key of its logit in the upper half, 2^32 - 1 - its number in the
 * lower half, so that among equal logits the first token has the greatest rank. */
static __device__ __forceinline__ weight_t rank_of(float z, size_t token) {
  return static_cast<weight_t>(logit_key(z)) << 32 | (0xffffffffu - static_cast<uint32_t>(token));
}
static __device__ __forceinline__ size_t ranked_token(weight_t rank) {
  return 0xffffffffu - static_cast<uint32_t>(rank);
}

/* z[e] = logit first + e * BLOCK of the row from[n], NaN from the n-th on. All loads are issued
 * before the first use, so that EACH of them are in flight together. */
template <unsigned BLOCK, unsigned EACH>
static __device__ __forceinline__ void load_logits(float (&z)[EACH], const float *from, size_t n,
                                                   size_t first) {
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) {
    const size_t i = first + e * BLOCK;
    z[e] = from[i < n ? i : n - 1];
  }
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e)
    if (first + e * BLOCK >= n) z[e] = NAN;
}

/* The greatest rank in slice blockIdx.y of the row of logits z[n]; slices have BLOCK * EACH tokens.
 * The whole block must call this function, and best_of_row(), too. */
template <unsigned BLOCK, unsigned EACH>
static __device__ __forceinline__ weight_t best_of_slice(const float *z, size_t n) {
  const size_t first = blockIdx.y * static_cast<size_t>(BLOCK * EACH) + threadIdx.x;
  weight_t best = 0;
  float own[EACH];
  load_logits<BLOCK>(own, z, n, first);
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) {
    const size_t i = first + e * BLOCK;
    const weight_t rank = i < n ? rank_of(own[e], i) : 0;
    best = rank > best ? rank : best;
  }
  return block_max(best);
}

/* The greatest of the ranks best[n] of a row's slices. */
template <unsigned BLOCK>
static __device__ __forceinline__ weight_t best_of_row(const weight_t *best, size_t n) {
  weight_t most = 0;
  for (size_t s = threadIdx.x; s < n; s += BLOCK) most = best[s] > most ? best[s] : most;
  return block_max(most);
}

/* Describes row r, whose greatest rank is `best`. */
static __device__ __forceinline__ sample_row sample_row_at(const float *logits, size_t r,
                                                           size_t vocabulary, weight_t best,
                                                           float factor) {
  return {logits + r * vocabulary, vocabulary, float_of(static_cast<uint32_t>(best >> 32)), factor};
}

/* The sum of x over the lower lanes of the warp (exclusive prefix sum); *all is the total. */
template <typename T> static __device__ __forceinline__ T warp_sum_before(T x, T *all) {
  const T own = x;
  for (unsigned by = 1; by < 32; by *= 2) {
    const T other = __shfl_up_sync(WARP, x, by);
    if (threadIdx.x % 32 >= by) x += other;
  }
  *all = __shfl_sync(WARP, x, 31);
  return x - own;
}

/* The sum of x over the lower threads of a block of BLOCK. The whole block calls it, any number of
 * times. */
template <unsigned BLOCK> static __device__ __forceinline__ weight_t block_sum_before(weight_t x) {
  __shared__ weight_t of_warp[BLOCK / 32];
  weight_t all, before = warp_sum_before(x, &all);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = all;
  __syncthreads();
  for (unsigned w = 0; w < threadIdx.x / 32; ++w) before += of_warp[w];
  return before;
}

/* The position of a sample in the cumulative sum of weights: u * total, less than total, with u
 * from block `index` of the stream. */
static __device__ __forceinline__ weight_t drawn_weight(const sample_spec &spec, uint64_t index,
                                                        weight_t total) {
  const rng_words w = rng_block(spec.stream, index);
  const weight_t at =
      static_cast<weight_t>(rng_u01_53(w.v[0], w.v[1]) * static_cast<double>(total));
  return at < total ? at : total - 1;
}

/* Writes row r's token and its log-probabilities before and after truncation. total: the sum of all
 * weights; kept: the sum of the kept tokens' weights. */
static __device__ __forceinline__ void put_sample(const sample_to &to, size_t r,
                                                  const sample_row &x, const sample_spec &spec,
                                                  size_t token, weight_t total, weight_t kept) {
  const double unit = static_cast<double>(WEIGHT_UNIT);
  const double d =
      (static_cast<double>(x.z[token]) - static_cast<double>(x.greatest)) / spec.temperature;
  to.token[r] = static_cast<int32_t>(token);
  to.logq[r] = static_cast<float>(d - log(static_cast<double>(total) / unit));
  to.logq_truncated[r] = static_cast<float>(d - log(static_cast<double>(kept) / unit));
}

/* Writes row r's token if the sample's position `wanted` is in one of the EACH tokens from `first`
 * on, which belong to this thread of a block of BLOCK. weight: the weights of these tokens; before:
 * the sum of the weights in all slices before this one. The whole block calls it. */
template <unsigned BLOCK, unsigned EACH>
static __device__ __forceinline__ void
put_draw_among(const sample_to &to, size_t r, const sample_row &x, const sample_spec &spec,
               size_t first, const weight_t (&weight)[EACH], weight_t before, weight_t wanted,
               weight_t total, weight_t kept) {
  weight_t mine = 0;
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) mine += weight[e];
  before += block_sum_before<BLOCK>(mine);
  if (wanted < before || wanted >= before + mine) return;
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) {
    if (wanted >= before && wanted < before + weight[e])
      put_sample(to, r, x, spec, first + e, total, kept);
    before += weight[e];
  }
}

/* For a row whose logits are not a distribution (no greatest number): the last token, with
 * log-probabilities NaN, so that the caller notices. */
static __device__ __forceinline__ void put_nan_draw(const sample_to &to, size_t r, size_t n) {
  to.token[r] = static_cast<int32_t>(n - 1);
  to.logq[r] = to.logq_truncated[r] = NAN;
}

enum { THREADS = 256, EACH = 16, SLICE = THREADS * EACH };

/* --- whole distributions --- */

/* The first kernel finds each slice's greatest logit, the second sums each slice's weights. In the
 * third a block per row finds the slice and the token at which the cumulative sum exceeds the
 * sample's position. Logits are read twice, the second time mostly from the second-level cache.
 * Memory bandwidth limits the speed: 4 bytes per row and token of the vocabulary. */

/* Results of the kernels for the n slices of every row, in scratch memory: arrays [rows, n] of each
 * slice's greatest rank and sum of weights. */
struct sample_slices {
  weight_t *best;
  weight_t *sum;
  size_t n;
};

/* Block (x, y): slice y of row x. */
__global__ void __launch_bounds__(THREADS)
    find_best(sample_slices slices, const float *logits, size_t vocabulary) {
  const size_t r = blockIdx.x;
  const weight_t best = best_of_slice<THREADS, EACH>(logits + r * vocabulary, vocabulary);
  if (threadIdx.x == 0) slices.best[r * slices.n + blockIdx.y] = best;
}

/* Block (x, y): the sum of the weights of slice y of row x. */
__global__ void __launch_bounds__(THREADS)
    sum_weights(sample_slices slices, const float *logits, size_t vocabulary, float factor) {
  const size_t r = blockIdx.x, first = blockIdx.y * static_cast<size_t>(SLICE) + threadIdx.x;
  const sample_row x = sample_row_at(
      logits, r, vocabulary, best_of_row<THREADS>(slices.best + r * slices.n, slices.n), factor);
  weight_t sum = 0;
  float z[EACH];
  load_logits<THREADS>(z, x.z, vocabulary, first);
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e)
    if (first + e * THREADS < vocabulary) sum += logit_weight(x, z[e]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) slices.sum[r * slices.n + blockIdx.y] = sum;
}

/* Samples the token of row blockIdx.x. Each thread has EACH adjacent tokens of the slice that
 * contains the sample's position. */
__global__ void __launch_bounds__(THREADS)
    draw_tokens(sample_to to, sample_slices slices, const float *logits, const uint64_t *index,
                size_t vocabulary, sample_spec spec) {
  const size_t r = blockIdx.x;
  const weight_t best = best_of_row<THREADS>(slices.best + r * slices.n, slices.n),
                 *sums = slices.sum + r * slices.n;
  const sample_row x = sample_row_at(logits, r, vocabulary, best, spec.factor);
  weight_t total = 0;
  for (size_t s = threadIdx.x; s < slices.n; s += THREADS) total += sums[s];
  total = block_sum(total);
  if (total == 0 || spec.greedy) {
    if (threadIdx.x == 0 && total == 0) put_nan_draw(to, r, vocabulary);
    if (threadIdx.x == 0 && total != 0)
      put_sample(to, r, x, spec, ranked_token(best), total, total);
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
    weight[e] = first + e < vocabulary ? logit_weight(x, x.z[first + e]) : 0;
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
  LAUNCH(b, find_best, grid, THREADS, 0, slices, logits, vocabulary);
  LAUNCH(b, sum_weights, grid, THREADS, 0, slices, logits, vocabulary, spec.factor);
  LAUNCH(b, draw_tokens, static_cast<unsigned>(rows), THREADS, 0, to, slices, logits, index,
         vocabulary, spec);
}

/* --- top-k and top-p --- */

/* Truncation finds the least logit that is kept. Every block counts the logits of its slice into
 * bins by their distance from the greatest one, and adds its counts and weights to the row's. In
 * the bin where the count (top-k) or the weight (top-p) from the top reaches the wanted value,
 * logits are separated by their keys, eight bits at a time (radix select): a kernel counts a digit,
 * and the blocks of the next kernel each find in the row's counts the digit at which the sum
 * reaches the wanted value. The last kernels sum the kept weights of each slice, and find the token
 * as for whole distributions. */

enum { BINS = 1024, DIGITS = 256, STEPS = 4 };

/* The number of tokens in each bin or digit, and the sum of their weights. */
struct place_sums {
  unsigned *count;
  weight_t *weight;
};

/* The state of a search. Candidates are the tokens of its bin whose keys begin with the digits of
 * `key` found so far and are at least `least`. The search adds tokens in descending order of their
 * logits, until their number (top-k) or weight (top-p) reaches `wanted`. */
struct search_state {
  weight_t wanted, count, weight; /* of all tokens above the candidates */
  uint32_t key, least;
  unsigned bin;
};

/* The kept tokens: those with a key above `least`, and the first `ties` of those with key `least`.
 */
struct kept_tokens {
  weight_t ties;
  uint32_t least;
};

/* There are two searches, for the top k tokens and for top-p among those. Each has STEPS + 1 steps:
 * the first chooses a bin, the others a digit of the key. */
enum { TOP_K, TOP_P, SEARCHES };

/* Results of the kernels for the rows; in scratch memory. */
struct truncation {
  weight_t *best;      /* [rows, n]: greatest rank of each slice */
  place_sums bins;     /* [rows, BINS] */
  place_sums digits;   /* [rows, SEARCHES, STEPS, DIGITS] */
  search_state *state; /* [rows, SEARCHES, STEPS]: after each step but the last */
  kept_tokens *kept;   /* [rows] */
  weight_t *above;     /* [rows, n]: sum of a slice's weights with keys above the least kept key */
  weight_t *ties;      /* [rows, n]: number of a slice's tokens with the least kept key */
  size_t n;            /* number of slices */
};

static __device__ __forceinline__ weight_t lesser(weight_t a, weight_t b) {
  return a < b ? a : b;
}

static __device__ __forceinline__ place_sums at_place(place_sums s, size_t i) {
  return {s.count + i, s.weight + i};
}

/* The digits that step `step` (from 1 on) of a search has counted in row r. */
static __device__ __forceinline__ place_sums digits_of(const truncation &t, size_t r, int search,
                                                       int step) {
  const size_t i = (r * SEARCHES + static_cast<size_t>(search)) * STEPS + static_cast<size_t>(step);
  return at_place(t.digits, (i - 1) * DIGITS);
}

static __device__ __forceinline__ search_state *search_state_of(const truncation &t, size_t r,
                                                                int search, int step) {
  return t.state + (r * SEARCHES + static_cast<size_t>(search)) * STEPS + step;
}

/* Describes row r, and sets *token to the first token with the greatest logit. The whole block
 * calls it. */
static __device__ sample_row sample_row_of(const truncation &t, const float *logits, size_t r,
                                           size_t vocabulary, float factor, size_t *token) {
  const weight_t best = best_of_row<THREADS>(t.best + r * t.n, t.n);
  *token = ranked_token(best);
  return sample_row_at(logits, r, vocabulary, best, factor);
}

/* Number of this thread's e-th token; there is no such token if it is not less than the
 * vocabulary's size. */
static __device__ __forceinline__ size_t token_of(unsigned e) {
  return blockIdx.y * static_cast<size_t>(SLICE) + e * THREADS + threadIdx.x;
}

/* --- counting --- */

/* Block (x, y): finds the greatest rank in slice y of row x, and sets the row's sums to zero. */
__global__ void __launch_bounds__(THREADS)
    begin_rows(truncation t, const float *logits, size_t vocabulary) {
  const size_t r = blockIdx.x;
  const place_sums bins = at_place(t.bins, r * BINS), digits = digits_of(t, r, 0, 1);
  const size_t first = blockIdx.y * static_cast<size_t>(THREADS) + threadIdx.x;
  for (size_t i = first; i < BINS; i += gridDim.y * THREADS) bins.count[i] = 0, bins.weight[i] = 0;
  for (size_t i = first; i < SEARCHES * STEPS * DIGITS; i += gridDim.y * THREADS)
    digits.count[i] = 0, digits.weight[i] = 0;
  const weight_t best = best_of_slice<THREADS, EACH>(logits + r * vocabulary, vocabulary);
  if (threadIdx.x == 0) t.best[r * t.n + blockIdx.y] = best;
}

/* The bin of logit z: 16 bins per unit of distance from the greatest logit; all that are further
 * away share the last bin. */
static __device__ __forceinline__ unsigned bin_of(const sample_row &x, float z) {
  const float far = (x.greatest - z) * 16;
  return far < BINS - 1 ? static_cast<unsigned>(far) : BINS - 1;
}

/* A block's own sums, in shared memory. */
template <unsigned N> struct block_sums {
  weight_t weight[N];
  unsigned count[N];
};

template <unsigned N> static __device__ __forceinline__ void clear(block_sums<N> *s) {
  for (unsigned i = threadIdx.x; i < N; i += THREADS) s->count[i] = 0, s->weight[i] = 0;
  __syncthreads();
}

template <unsigned N>
static __device__ __forceinline__ void count_token(block_sums<N> *s, unsigned at, weight_t weight) {
  atomicAdd(&s->count[at], 1u);
  if (weight > 0) atomicAdd(&s->weight[at], weight);
}

template <unsigned N>
static __device__ __forceinline__ void add_sums_to_row(place_sums to, const block_sums<N> *s) {
  __syncthreads();
  for (unsigned i = threadIdx.x; i < N; i += THREADS) {
    if (s->count[i] > 0) atomicAdd(&to.count[i], s->count[i]);
    if (s->weight[i] > 0) atomicAdd(&to.weight[i], s->weight[i]);
  }
}

/* Block (x, y) counts slice y of row x into the row's bins. NaN logits are not counted. */
__global__ void __launch_bounds__(THREADS)
    count_bins(truncation t, const float *logits, size_t vocabulary, sample_spec spec) {
  __shared__ block_sums<BINS> own;
  size_t best;
  const size_t r = blockIdx.x;
  const sample_row x = sample_row_of(t, logits, r, vocabulary, spec.factor, &best);
  float z[EACH];
  load_logits<THREADS>(z, x.z, vocabulary, token_of(0));
  clear(&own);
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e)
    if (logit_key(z[e]) != 0) count_token(&own, bin_of(x, z[e]), logit_weight(x, z[e]));
  add_sums_to_row(at_place(t.bins, r * BINS), &own);
}

/* --- searching --- */

/* The first index of sum [n] (n: a multiple of 32) at which the cumulative sum reaches `wanted`, or
 * the last index if none does. Called by one whole warp; all lanes get the result. */
template <typename T>
static __device__ unsigned first_reaching(const T *sum, unsigned n, weight_t wanted) {
  const unsigned lane = threadIdx.x % 32, each = n / 32;
  weight_t mine = 0, all;
  for (unsigned i = 0; i < each; ++i) mine += sum[lane * each + i];
  weight_t before = warp_sum_before(mine, &all);
  const unsigned reached = __ballot_sync(WARP, before + mine >= wanted);
  const int owner = reached == 0 ? 31 : __popc((reached & (~reached + 1)) - 1);
  unsigned at = lane * each;
  for (unsigned i = 0; i + 1 < each && before + sum[at] < wanted; ++i) before += sum[at++];
  return __shfl_sync(WARP, at, owner);
}

/* The bin or digit, among n, at which search s reaches the wanted value. The sums of all bins or
 * digits before it, which hold greater logits, are added to s. The whole block calls it. */
static __device__ unsigned choose_place(search_state *s, place_sums sums, unsigned n, int search) {
  __shared__ unsigned found;
  if (threadIdx.x < 32) {
    const unsigned at = search == TOP_K ? first_reaching(sums.count, n, s->wanted - s->count)
                                        : first_reaching(sums.weight, n, s->wanted - s->weight);
    if (threadIdx.x == 0) found = at;
  }
  __syncthreads();
  const unsigned at = found;
  weight_t count = 0, weight = 0;
  for (unsigned i = threadIdx.x; i < at; i += THREADS) {
    count += sums.count[i];
    weight += sums.weight[i];
  }
  s->count += block_sum(count);
  s->weight += block_sum(weight);
  return at;
}

/* The state of a search of row r after `step`, which chooses a digit, from the state after the
 * previous step and the row's sums. The whole block calls it. */
static __device__ search_state after_digit(const truncation &t, size_t r, int search, int step) {
  search_state s = *search_state_of(t, r, search, step - 1);
  const unsigned digit = choose_place(&s, digits_of(t, r, search, step), DIGITS, search);
  s.key |= (DIGITS - 1 - digit) << (32 - 8 * step);
  return s;
}

/* The state of a search of row r after its first step, which chooses a bin. Top-k wants top_k
 * tokens, or all if there are fewer; tokens tied with the last of these are kept, too. Top-p keeps
 * the fraction top_p of the weight of the tokens that top-k has kept, or of all weight if top-k is
 * off. */
static __device__ search_state after_bin(const truncation &t, size_t r, int search,
                                         const sample_spec &spec) {
  const place_sums bins = at_place(t.bins, r * BINS);
  search_state s = {};
  weight_t count = 0, mass = 0;
  for (unsigned i = threadIdx.x; i < BINS; i += THREADS) {
    count += bins.count[i];
    mass += bins.weight[i];
  }
  count = block_sum(count);
  mass = block_sum(mass);
  if (search == TOP_K) {
    s.wanted = lesser(spec.top_k, count);
  } else {
    if (spec.top_k != 0) {
      const search_state k = after_digit(t, r, TOP_K, STEPS);
      s.least = k.key;
      mass = k.weight + digits_of(t, r, TOP_K, STEPS).weight[DIGITS - 1 - k.key % DIGITS];
    }
    const double share = ceil(spec.top_p * static_cast<double>(mass));
    s.wanted = lesser(share < 1 ? 1 : static_cast<weight_t>(share), mass);
  }
  s.bin = choose_place(&s, bins, BINS, search);
  return s;
}

static __device__ search_state search_after_step(const truncation &t, size_t r, int search,
                                                 int step, const sample_spec &spec) {
  return step == 0 ? after_bin(t, r, search, spec) : after_digit(t, r, search, step);
}

/* Block (x, y) counts, in slice y of row x, the digit of step `step` of a search, over the
 * candidates left by the earlier steps. Before that every block computes the result of the previous
 * step. */
__global__ void __launch_bounds__(THREADS)
    count_digits(truncation t, const float *logits, size_t vocabulary, sample_spec spec, int search,
                 int step) {
  __shared__ block_sums<DIGITS> own;
  size_t best;
  const size_t r = blockIdx.x;
  const unsigned shift = 32u - 8u * static_cast<unsigned>(step);
  const sample_row x = sample_row_of(t, logits, r, vocabulary, spec.factor, &best);
  const search_state s = search_after_step(t, r, search, step - 1, spec);
  if (blockIdx.y == 0 && threadIdx.x == 0) *search_state_of(t, r, search, step - 1) = s;
  float z[EACH];
  load_logits<THREADS>(z, x.z, vocabulary, token_of(0));
  clear(&own);
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) {
    const uint32_t key = logit_key(z[e]);
    if (key == 0 || key < s.least || bin_of(x, z[e]) != s.bin) continue;
    if (step > 1 && key >> (shift + 8) != s.key >> (shift + 8)) continue;
    count_token(&own, DIGITS - 1 - (key >> shift) % DIGITS, logit_weight(x, z[e]));
  }
  add_sums_to_row(digits_of(t, r, search, step), &own);
}

/* --- drawing --- */

/* The kept tokens of row r, after the last step of the last search. With top-p only as many tokens
 * with the least kept key are kept as are needed to reach the wanted weight. The whole block calls
 * it. */
static __device__ kept_tokens kept_of(const truncation &t, size_t r, const sample_row &x,
                                      const sample_spec &spec) {
  const search_state s = after_digit(t, r, spec.top_p < 1 ? TOP_P : TOP_K, STEPS);
  if (spec.top_p >= 1) return {~static_cast<weight_t>(0), s.key};
  const weight_t each = logit_weight(x, float_of(s.key));
  return {each == 0 ? 1 : (s.wanted - s.weight + each - 1) / each, s.key};
}

/* Block (x, y): sums the kept weights of slice y of row x. */
__global__ void __launch_bounds__(THREADS)
    sum_kept(truncation t, const float *logits, size_t vocabulary, sample_spec spec) {
  size_t best;
  const size_t r = blockIdx.x;
  const sample_row x = sample_row_of(t, logits, r, vocabulary, spec.factor, &best);
  const kept_tokens kept = kept_of(t, r, x, spec);
  weight_t above = 0, ties = 0;
  float z[EACH];
  load_logits<THREADS>(z, x.z, vocabulary, token_of(0));
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) {
    const uint32_t key = logit_key(z[e]);
    if (key > kept.least) above += logit_weight(x, z[e]);
    if (key == kept.least && key != 0) ++ties;
  }
  above = block_sum(above);
  ties = block_sum(ties);
  if (threadIdx.x != 0) return;
  t.above[r * t.n + blockIdx.y] = above;
  t.ties[r * t.n + blockIdx.y] = ties;
  if (blockIdx.y == 0) t.kept[r] = kept;
}

/* Samples the token of row blockIdx.x from the kept tokens. Each thread has EACH adjacent tokens
 * of the slice that contains the sample's position. */
__global__ void __launch_bounds__(THREADS)
    draw_kept(sample_to to, truncation t, const float *logits, const uint64_t *index,
              size_t vocabulary, sample_spec spec) {
  size_t best;
  const size_t r = blockIdx.x;
  const sample_row x = sample_row_of(t, logits, r, vocabulary, spec.factor, &best);
  const kept_tokens kept = t.kept[r];
  const weight_t each = logit_weight(x, float_of(kept.least));
  const weight_t *above = t.above + r * t.n, *ties = t.ties + r * t.n;
  weight_t whole = 0, total = 0, tied = 0;
  for (unsigned i = threadIdx.x; i < BINS; i += THREADS) whole += t.bins.weight[r * BINS + i];
  whole = block_sum(whole);
  for (size_t s = threadIdx.x; s < t.n; s += THREADS) {
    total += above[s];
    tied += ties[s];
  }
  total = block_sum(total);
  tied = block_sum(tied);
  total += lesser(tied, kept.ties) * each;
  if (whole == 0 || spec.greedy) {
    if (threadIdx.x == 0 && whole == 0) put_nan_draw(to, r, vocabulary);
    if (threadIdx.x == 0 && whole != 0) put_sample(to, r, x, spec, best, whole, total);
    return;
  }
  const weight_t wanted = drawn_weight(spec, index[r], total);
  weight_t before = 0, rank = 0;
  size_t slice = 0;
  for (; slice + 1 < t.n; ++slice) {
    const weight_t here =
        above[slice] + lesser(ties[slice], kept.ties - lesser(rank, kept.ties)) * each;
    if (before + here > wanted) break;
    before += here;
    rank += ties[slice];
  }
  const size_t first = slice * SLICE + threadIdx.x * static_cast<size_t>(EACH);
  tied = 0;
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e)
    if (first + e < vocabulary && logit_key(x.z[first + e]) == kept.least) ++tied;
  rank += block_sum_before<THREADS>(tied);
  weight_t weight[EACH];
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) {
    const uint32_t key = first + e < vocabulary ? logit_key(x.z[first + e]) : 0;
    const bool in = key > kept.least || (key == kept.least && key != 0 && rank < kept.ties);
    weight[e] = in ? logit_weight(x, x.z[first + e]) : 0;
    rank += key == kept.least;
  }
  put_draw_among<THREADS, EACH>(to, r, x, spec, first, weight, before, wanted, whole, total);
}

/* --- launches --- */

static size_t slices_of(size_t vocabulary) {
  return (vocabulary + SLICE - 1) / SLICE;
}

size_t cuda_sample_truncated_scratch(size_t rows, size_t vocabulary) {
  const size_t slices = rows * slices_of(vocabulary), digits = rows * SEARCHES * STEPS * DIGITS;
  const size_t places = carved(rows * BINS, sizeof(weight_t)) + carved(digits, sizeof(weight_t)) +
                        carved(rows * BINS, sizeof(unsigned)) + carved(digits, sizeof(unsigned));
  return places + 3 * carved(slices, sizeof(weight_t)) + carved(rows, sizeof(kept_tokens)) +
         carved(rows * SEARCHES * STEPS, sizeof(search_state));
}

static void sample_truncated(cuda_backend *b, sample_to to, const float *logits,
                             const uint64_t *index, size_t rows, size_t vocabulary,
                             sample_spec spec) {
  truncation t = {};
  t.n = slices_of(vocabulary);
  const size_t slices = rows * t.n, digits = rows * SEARCHES * STEPS * DIGITS;
  char *at = static_cast<char *>(cuda_scratch(b, cuda_sample_truncated_scratch(rows, vocabulary)));
  if (at == NULL) return;
  t.best = carve<weight_t>(&at, slices);
  t.above = carve<weight_t>(&at, slices);
  t.ties = carve<weight_t>(&at, slices);
  t.bins.weight = carve<weight_t>(&at, rows * BINS);
  t.digits.weight = carve<weight_t>(&at, digits);
  t.bins.count = carve<unsigned>(&at, rows * BINS);
  t.digits.count = carve<unsigned>(&at, digits);
  t.kept = carve<kept_tokens>(&at, rows);
  t.state = carve<search_state>(&at, rows * SEARCHES * STEPS);
  const dim3 grid(static_cast<unsigned>(rows), static_cast<unsigned>(t.n));
  LAUNCH(b, begin_rows, grid, THREADS, 0, t, logits, vocabulary);
  LAUNCH(b, count_bins, grid, THREADS, 0, t, logits, vocabulary, spec);
  for (int search = TOP_K; search <= TOP_P; ++search)
    for (int step = 1; step <= STEPS; ++step)
      if (search == TOP_K ? spec.top_k != 0 : spec.top_p < 1)
        LAUNCH(b, count_digits, grid, THREADS, 0, t, logits, vocabulary, spec, search, step);
  LAUNCH(b, sum_kept, grid, THREADS, 0, t, logits, vocabulary, spec);
  LAUNCH(b, draw_kept, static_cast<unsigned>(rows), THREADS, 0, to, t, logits, index, vocabulary,
         spec);
}

/* --- the operation --- */

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

/* --- sets of kept tokens --- */

/* The tokens that top-k and top-p keep of a row, written together with a sample; and the distorted
 * logits of samplers that compute differently from the learner.
 *
 * The kept set follows from sums of integers (above), which do not depend on how they are computed.
 * So one block per row computes it here again, by a simpler method than that of `sample`. The least
 * kept key is built bit by bit, each bit by a sum over the row: 32 passes for top-k and 32 for
 * top-p, read from the second-level cache. One warp then writes the set in the order of tokens,
 * because among equal logits at the least key top-p keeps the first ones. */

enum { KEPT_THREADS = 512 };

/* The sum of the weights of tokens with a key of at least `least`, or their number if counted. The
 * whole block calls it. */
static __device__ weight_t sum_from(const sample_row &x, uint32_t least, bool counted) {
  weight_t sum = 0;
  for (size_t i = threadIdx.x; i < x.n; i += blockDim.x) {
    const uint32_t key = logit_key(x.z[i]);
    if (key != 0 && key >= least)
      sum += counted ? static_cast<weight_t>(1) : logit_weight(x, x.z[i]);
  }
  return block_sum(sum);
}

/* Returns the greatest key k >= least such that the sum over all keys >= k reaches `wanted`. */
static __device__ uint32_t key_reaching(const sample_row &x, uint32_t least, weight_t wanted,
                                        bool counted) {
  uint32_t key = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const uint32_t higher = key | 1u << bit;
    if (sum_from(x, higher, counted) >= wanted) key = higher;
  }
  return key > least ? key : least;
}

/* The kept tokens: those with a key above `least`, and the first `ties` of those with key `least`.
 */
struct kept_range {
  uint32_t least;
  weight_t ties;
};

/* Applies top-k, then top-p to the remaining tokens, with the same result as kept_of(). The whole
 * block calls it. */
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

/* Writes the set, whose words must be zero before. Called by one warp. */
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

/* The set of row blockIdx.x; empty if its logits are not a distribution. */
__global__ void __launch_bounds__(KEPT_THREADS)
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
  LAUNCH(op.b, keep_rows, static_cast<unsigned>(rows), KEPT_THREADS, 0, kept.set, kept.shape.words,
         kept.shape.listed != 0, static_cast<const float *>(logits), vocabulary, spec);
}

/* --- distorted logits --- */

/* A thread distorts the logits of tokens 2 p and 2 p + 1 of row blockIdx.x. Their noise comes from
 * one block of the random stream. */
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
