/* Draws of tokens from logits by the distribution of core/rl/sampling.h.
 *
 * A row is divided into slices of the vocabulary, a block each, so that a few rows with a large
 * vocabulary keep the whole device busy. All sums are of whole numbers (sample.cuh), so a draw
 * depends neither on the order of blocks nor on how the vocabulary is divided. */
#include "llm/backend/cuda/sample.cuh"

#include <assert.h>

enum { THREADS = 256, EACH = 16, SLICE = THREADS * EACH };

/* --- whole distributions --- */

/* One kernel finds each slice's greatest logit, one sums each slice's weights, and in the third a
 * block for each row finds the slice and the token at which the cumulative sum passes the draw.
 * Logits are read twice, the second time mostly from the second-level cache: the limit is 4 bytes
 * for each token of the vocabulary and row. */

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
  const sample_row x = sample_row_at(
      logits, r, vocabulary, best_of_row<THREADS>(slices.best + r * slices.n, slices.n), factor);
  weight_t sum = 0;
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) {
    const size_t i = first + e * THREADS;
    if (i < vocabulary) sum += logit_weight(x, x.z[i]);
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
  LAUNCH_EARLY(b, find_best, grid, THREADS, 0, slices, logits, vocabulary);
  LAUNCH_EARLY(b, sum_weights, grid, THREADS, 0, slices, logits, vocabulary, spec.factor);
  LAUNCH_EARLY(b, draw_tokens, static_cast<unsigned>(rows), THREADS, 0, to, slices, logits, index,
               vocabulary, spec);
}

/* --- top-k and top-p --- */

/* Truncation looks for the least logit that is kept. Every block counts the logits of its slice
 * into bins by their distance from the greatest one, and adds its counts and weights to the row's.
 * In the bin where the count (top-k) or the weight (top-p) from the top reaches what is wanted,
 * logits are told apart by their keys, eight bits at a time (radix select): a kernel counts a
 * digit, and the blocks of the next kernel each look in the row's counts for the digit at which the
 * sum reaches what is wanted. The last kernels sum what is kept of each slice, and find the token
 * as those for whole distributions do. */

enum { BINS = 1024, DIGITS = 256, STEPS = 4 };

/* How many tokens a place has, and the sum of their weights. */
struct place_sums {
  unsigned *count;
  weight_t *weight;
};

/* Where a search stands: the tokens of its bin whose keys begin with `key` are left, as far as they
 * have at least the key `least`, and those from the greatest down are to reach `wanted`. */
struct search_state {
  weight_t wanted, count, weight; /* of all tokens above those left */
  uint32_t key, least;
  unsigned bin;
};

/* The tokens that are kept: those with a key above `least`, and the first `ties` of those that have
 * it. */
struct kept_tokens {
  weight_t ties;
  uint32_t least;
};

/* There are two searches, for the top k tokens and for top-p among what those leave; each has
 * STEPS + 1 steps, the first of which chooses a bin, the others a digit of the key. */
enum { TOP_K, TOP_P, SEARCHES };

/* What the kernels know of the rows; in scratch memory. */
struct truncation {
  weight_t *best;      /* [rows, n]: of each slice, as sample.cu has it */
  place_sums bins;     /* [rows, BINS] */
  place_sums digits;   /* [rows, SEARCHES, STEPS, DIGITS] */
  search_state *state; /* [rows, SEARCHES, STEPS]: after each step but the last */
  kept_tokens *kept;   /* [rows] */
  weight_t *above;     /* [rows, n]: of a slice, the weights of tokens above the least key */
  weight_t *ties;      /* [rows, n]: how many tokens have it */
  size_t n;            /* slices */
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

/* Row r; the whole block calls it. *token: the first of those with its greatest logit. */
static __device__ sample_row sample_row_of(const truncation &t, const float *logits, size_t r,
                                           size_t vocabulary, float factor, size_t *token) {
  const weight_t best = best_of_row<THREADS>(t.best + r * t.n, t.n);
  *token = ranked_token(best);
  return sample_row_at(logits, r, vocabulary, best, factor);
}

/* The token that a thread of this block has as its e-th; at or beyond the vocabulary: none. */
static __device__ __forceinline__ size_t token_of(unsigned e) {
  return blockIdx.y * static_cast<size_t>(SLICE) + e * THREADS + threadIdx.x;
}

/* --- counting --- */

/* Block (x, y): the best of slice y of row x; and the row's sums become zero. */
__global__ void __launch_bounds__(THREADS)
    begin_rows(truncation t, const float *logits, size_t vocabulary) {
  wait_for_kernels_before();
  const size_t r = blockIdx.x;
  const place_sums bins = at_place(t.bins, r * BINS), digits = digits_of(t, r, 0, 1);
  const size_t first = blockIdx.y * static_cast<size_t>(THREADS) + threadIdx.x;
  for (size_t i = first; i < BINS; i += gridDim.y * THREADS) bins.count[i] = 0, bins.weight[i] = 0;
  for (size_t i = first; i < SEARCHES * STEPS * DIGITS; i += gridDim.y * THREADS)
    digits.count[i] = 0, digits.weight[i] = 0;
  const weight_t best = best_of_slice<THREADS, EACH>(logits + r * vocabulary, vocabulary);
  if (threadIdx.x == 0) t.best[r * t.n + blockIdx.y] = best;
}

/* The bin of logit z: 16 bins for each unit of distance from the greatest. */
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

/* Block (x, y) counts slice y of row x into the row's bins. Logits that are no numbers count
 * nowhere. */
__global__ void __launch_bounds__(THREADS)
    count_bins(truncation t, const float *logits, size_t vocabulary, sample_spec spec) {
  __shared__ block_sums<BINS> own;
  wait_for_kernels_before();
  size_t best;
  const size_t r = blockIdx.x;
  const sample_row x = sample_row_of(t, logits, r, vocabulary, spec.factor, &best);
  clear(&own);
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) {
    const size_t i = token_of(e);
    const float z = i < vocabulary ? x.z[i] : NAN;
    if (logit_key(z) != 0) count_token(&own, bin_of(x, z), logit_weight(x, z));
  }
  add_sums_to_row(at_place(t.bins, r * BINS), &own);
}

/* --- searching --- */

/* The first of n places (a multiple of 32) at which the cumulative sum reaches `wanted`, or the
 * last one if none does. For one whole warp; all lanes get the result. */
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

/* The place, of n, at which search s reaches what is wanted; what is above it is added to s. The
 * whole block calls it. */
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

/* The state of a search of row r after a step, from what was kept after the one before and from the
 * row's sums. The whole block calls it. */
static __device__ search_state after_digit(const truncation &t, size_t r, int search, int step) {
  search_state s = *search_state_of(t, r, search, step - 1);
  const unsigned digit = choose_place(&s, digits_of(t, r, search, step), DIGITS, search);
  s.key |= (DIGITS - 1 - digit) << (32 - 8 * step);
  return s;
}

/* The first step, which chooses a bin. Top-k takes no more than there are numbers; top-p takes its
 * share of what top-k has left, all tokens where that is off. */
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

/* Block (x, y) counts, in slice y of row x, the digit that step `step` of a search looks at: of the
 * tokens that the steps before, the last of which it finishes, have left. */
__global__ void __launch_bounds__(THREADS)
    count_digits(truncation t, const float *logits, size_t vocabulary, sample_spec spec, int search,
                 int step) {
  __shared__ block_sums<DIGITS> own;
  wait_for_kernels_before();
  size_t best;
  const size_t r = blockIdx.x;
  const unsigned shift = 32u - 8u * static_cast<unsigned>(step);
  const sample_row x = sample_row_of(t, logits, r, vocabulary, spec.factor, &best);
  const search_state s = search_after_step(t, r, search, step - 1, spec);
  if (blockIdx.y == 0 && threadIdx.x == 0) *search_state_of(t, r, search, step - 1) = s;
  clear(&own);
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) {
    const size_t i = token_of(e);
    const float z = i < vocabulary ? x.z[i] : NAN;
    const uint32_t key = logit_key(z);
    if (key == 0 || key < s.least || bin_of(x, z) != s.bin) continue;
    if (step > 1 && key >> (shift + 8) != s.key >> (shift + 8)) continue;
    count_token(&own, DIGITS - 1 - (key >> shift) % DIGITS, logit_weight(x, z));
  }
  add_sums_to_row(digits_of(t, r, search, step), &own);
}

/* --- drawing --- */

/* What the searches have found. The whole block calls it. */
static __device__ kept_tokens kept_of(const truncation &t, size_t r, const sample_row &x,
                                      const sample_spec &spec) {
  const search_state s = after_digit(t, r, spec.top_p < 1 ? TOP_P : TOP_K, STEPS);
  if (spec.top_p >= 1) return {~static_cast<weight_t>(0), s.key};
  const weight_t each = logit_weight(x, float_of(s.key));
  return {each == 0 ? 1 : (s.wanted - s.weight + each - 1) / each, s.key};
}

/* Block (x, y): what is kept of slice y of row x. */
__global__ void __launch_bounds__(THREADS)
    sum_kept(truncation t, const float *logits, size_t vocabulary, sample_spec spec) {
  wait_for_kernels_before();
  size_t best;
  const size_t r = blockIdx.x;
  const sample_row x = sample_row_of(t, logits, r, vocabulary, spec.factor, &best);
  const kept_tokens kept = kept_of(t, r, x, spec);
  weight_t above = 0, ties = 0;
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) {
    const size_t i = token_of(e);
    const uint32_t key = i < vocabulary ? logit_key(x.z[i]) : 0;
    if (key > kept.least) above += logit_weight(x, x.z[i]);
    if (key == kept.least && key != 0) ++ties;
  }
  above = block_sum(above);
  ties = block_sum(ties);
  if (threadIdx.x != 0) return;
  t.above[r * t.n + blockIdx.y] = above;
  t.ties[r * t.n + blockIdx.y] = ties;
  if (blockIdx.y == 0) t.kept[r] = kept;
}

/* The draw of row blockIdx.x: a thread has EACH neighbouring tokens of the slice it falls into. */
__global__ void __launch_bounds__(THREADS)
    draw_kept(sample_to to, truncation t, const float *logits, const uint64_t *index,
              size_t vocabulary, sample_spec spec) {
  wait_for_kernels_before();
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
  LAUNCH_EARLY(b, begin_rows, grid, THREADS, 0, t, logits, vocabulary);
  LAUNCH_EARLY(b, count_bins, grid, THREADS, 0, t, logits, vocabulary, spec);
  for (int search = TOP_K; search <= TOP_P; ++search)
    for (int step = 1; step <= STEPS; ++step)
      if (search == TOP_K ? spec.top_k != 0 : spec.top_p < 1)
        LAUNCH_EARLY(b, count_digits, grid, THREADS, 0, t, logits, vocabulary, spec, search, step);
  LAUNCH_EARLY(b, sum_kept, grid, THREADS, 0, t, logits, vocabulary, spec);
  LAUNCH_EARLY(b, draw_kept, static_cast<unsigned>(rows), THREADS, 0, to, t, logits, index,
               vocabulary, spec);
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
