/* Draws of tokens from laws truncated by top-k or top-p, one block for each row.
 *
 * Truncation looks for the least logit that is kept. Logits are counted into 1,024 bins by their
 * distance from the greatest one; in the bin where the count (top-k) or the sum of weights (top-p)
 * from the top reaches what is wanted, logits are told apart by the bits of their keys, eight bits
 * at a time (radix select). */
#include "llm/backend/cuda/sample.cuh"

enum { THREADS = 1024, BINS = 1024, TILES = 256 };

/* The bin of logit z: 16 bins for each unit of distance from the greatest. */
static __device__ __forceinline__ unsigned bin_of(const sample_row &x, float z) {
  const float far = (x.greatest - z) * 16;
  return far < BINS - 1 ? static_cast<unsigned>(far) : BINS - 1;
}

/* The first place of bin [n] (n a multiple of 32) at which the cumulative sum reaches `wanted`, or
 * the last one if none does; *before is the sum before it. For one whole warp; all lanes get the
 * result. */
static __device__ unsigned first_reaching(const weight_t *bin, unsigned n, weight_t wanted,
                                          weight_t *before) {
  const unsigned lane = threadIdx.x % 32, each = n / 32;
  weight_t mine = 0, all;
  for (unsigned i = 0; i < each; ++i) mine += bin[lane * each + i];
  weight_t sum = warp_sum_before(mine, &all);
  const unsigned reached = __ballot_sync(WARP, sum + mine >= wanted);
  const int owner = reached == 0 ? 31 : __popc((reached & (~reached + 1)) - 1);
  unsigned at = lane * each;
  for (unsigned i = 0; i + 1 < each && sum + bin[at] < wanted; ++i) sum += bin[at++];
  *before = __shfl_sync(WARP, sum, owner);
  return __shfl_sync(WARP, at, owner);
}

/* The key at which the sum over tokens, from the greatest key down, reaches what is wanted. */
struct selection {
  uint32_t key;
  weight_t before; /* the sum over tokens with greater keys */
};

/* Selects among the tokens with key >= least; each adds 1 (counted) or its weight to the sum. The
 * whole block calls it. */
static __device__ selection select_key(const sample_row &x, uint32_t least, weight_t wanted,
                                       bool counted) {
  __shared__ weight_t bin[BINS];
  __shared__ unsigned found;
  __shared__ weight_t found_before;
  selection s = {0, 0};
  unsigned chosen = 0;
  for (int level = 0; level < 5; ++level) { /* bins, then the four bytes of the key */
    const unsigned shift = level == 0 ? 0 : 32u - 8u * static_cast<unsigned>(level);
    for (unsigned i = threadIdx.x; i < BINS; i += blockDim.x) bin[i] = 0;
    __syncthreads();
    for (size_t i = threadIdx.x; i < x.n; i += blockDim.x) {
      const uint32_t key = key_of(x.z[i]);
      if (key < least || key == 0) continue;
      const unsigned far = bin_of(x, x.z[i]);
      if (level > 0 && (far != chosen || (level > 1 && key >> (shift + 8) != s.key >> (shift + 8))))
        continue;
      const unsigned digit = level == 0 ? far : 255 - (key >> shift & 255);
      atomicAdd(&bin[digit], counted ? static_cast<weight_t>(1) : weight_of(x, x.z[i]));
    }
    __syncthreads();
    if (threadIdx.x < 32) {
      weight_t before;
      const unsigned at = first_reaching(bin, level == 0 ? BINS : 256, wanted - s.before, &before);
      if (threadIdx.x == 0) {
        found = at;
        found_before = before;
      }
    }
    __syncthreads();
    s.before += found_before;
    if (level == 0)
      chosen = found;
    else
      s.key |= (255 - found) << shift;
    __syncthreads();
  }
  return s;
}

/* The tokens that are kept: those with a key above `least`, and the first `ties` of those that have
 * it. */
struct kept_tokens {
  uint32_t least;
  weight_t ties;
};

/* Top-k, then top-p of what it leaves, as core/rl/sampling.h says. The whole block calls it. */
static __device__ kept_tokens truncate_row(const sample_row &x, const sample_spec &spec) {
  kept_tokens kept = {0, ~static_cast<weight_t>(0)};
  if (spec.top_k != 0) kept.least = select_key(x, 0, spec.top_k, true).key;
  if (spec.top_p >= 1) return kept;
  weight_t mass = 0;
  for (size_t i = threadIdx.x; i < x.n; i += blockDim.x)
    if (key_of(x.z[i]) >= kept.least) mass += weight_of(x, x.z[i]);
  mass = block_sum(mass);
  const double share = ceil(spec.top_p * static_cast<double>(mass));
  const weight_t wanted = share < 1 ? 1 : static_cast<weight_t>(share);
  const selection s = select_key(x, kept.least, wanted, false);
  const weight_t each = weight_of(x, float_of(s.key));
  kept.least = s.key;
  kept.ties = each == 0 ? 1 : (wanted - s.before + each - 1) / each;
  return kept;
}

/* For each tile of the vocabulary (a tile is `tile` neighbouring tokens): the sum of kept weights
 * above the least key, and how many tokens have the least key. In shared memory. */
struct tile_sums {
  weight_t above[TILES], ties[TILES];
};

/* Fills in t; a warp does a tile. The whole block calls it; it ends with a barrier. */
static __device__ void sum_tiles(tile_sums *t, const sample_row &x, kept_tokens kept, size_t tile) {
  for (size_t i = threadIdx.x / 32; i * tile < x.n; i += blockDim.x / 32) {
    const size_t end = (i + 1) * tile < x.n ? (i + 1) * tile : x.n;
    weight_t above = 0, ties = 0;
    for (size_t j = i * tile + threadIdx.x % 32; j < end; j += 32) {
      const uint32_t key = key_of(x.z[j]);
      if (key > kept.least) above += weight_of(x, x.z[j]);
      if (key == kept.least) ++ties;
    }
    above = warp_sum(above);
    ties = warp_sum(ties);
    if (threadIdx.x % 32 == 0) {
      t->above[i] = above;
      t->ties[i] = ties;
    }
  }
  __syncthreads();
}

static __device__ __forceinline__ weight_t least_of(weight_t a, weight_t b) {
  return a < b ? a : b;
}

/* The first token at which the cumulative sum of kept weights passes `wanted`, `each` being the
 * weight of the least key; the last kept token if none does. For one warp; all lanes get the
 * result. */
static __device__ size_t find_token(const tile_sums *t, const sample_row &x, kept_tokens kept,
                                    size_t tile, weight_t each, weight_t wanted) {
  size_t i = 0;
  weight_t ties = 0, sum = 0;
  for (; (i + 1) * tile < x.n; ++i) {
    const weight_t allowed = least_of(t->ties[i], kept.ties - least_of(ties, kept.ties));
    const weight_t here = t->above[i] + allowed * each;
    if (sum + here > wanted) break;
    sum += here;
    ties += t->ties[i];
  }
  size_t last = i * tile;
  for (size_t j = i * tile; j < x.n && j < (i + 1) * tile; j += 32) {
    const size_t own = j + threadIdx.x % 32;
    const uint32_t key = own < x.n ? key_of(x.z[own]) : 0;
    const unsigned tied = __ballot_sync(WARP, key == kept.least && own < x.n);
    const weight_t rank =
        ties + static_cast<weight_t>(__popc(tied & ((1u << threadIdx.x % 32) - 1)));
    const bool in = own < x.n && (key > kept.least || (key == kept.least && rank < kept.ties));
    const weight_t mine = in && key != 0 ? weight_of(x, x.z[own]) : 0;
    weight_t all;
    const weight_t before = sum + warp_sum_before(mine, &all);
    const unsigned past = __ballot_sync(WARP, mine > 0 && before + mine > wanted);
    const unsigned positive = __ballot_sync(WARP, mine > 0);
    if (past != 0) return j + static_cast<size_t>(__popc((past & (~past + 1)) - 1));
    if (positive != 0)
      for (unsigned l = 0; l < 32; ++l)
        if (positive >> l & 1u) last = j + l;
    sum += all;
    ties += static_cast<weight_t>(__popc(tied));
  }
  return last;
}

/* The greatest of z [n], and in *token the lowest token that has it (n if no logit is a number).
 * The whole block calls it. */
static __device__ float find_greatest(const float *z, size_t n, size_t *token) {
  __shared__ unsigned long long first;
  float top = -INFINITY;
  for (size_t i = threadIdx.x; i < n; i += blockDim.x) top = z[i] > top ? z[i] : top;
  top = block_max(top);
  unsigned long long mine = n;
  for (size_t i = threadIdx.x; i < n && mine == n; i += blockDim.x)
    if (z[i] == top) mine = i;
  for (int with = 16; with > 0; with /= 2) {
    const unsigned long long other = __shfl_xor_sync(WARP, mine, with);
    mine = other < mine ? other : mine;
  }
  if (threadIdx.x == 0) first = n;
  __syncthreads();
  if (threadIdx.x % 32 == 0) atomicMin(&first, mine);
  __syncthreads();
  *token = first;
  return top;
}

/* The draw of row blockIdx.x; its last part is done by the first warp alone. */
__global__ void __launch_bounds__(THREADS)
    sample_rows(sample_to to, const float *logits, const uint64_t *index, size_t vocabulary,
                sample_spec spec) {
  __shared__ tile_sums tiles;
  const size_t r = blockIdx.x;
  sample_row x = {logits + r * vocabulary, vocabulary, 0, spec.factor};
  size_t best;
  x.greatest = find_greatest(x.z, x.n, &best);
  weight_t whole = 0;
  for (size_t i = threadIdx.x; i < x.n; i += blockDim.x) whole += weight_of(x, x.z[i]);
  whole = block_sum(whole);
  if (whole == 0 || best >= x.n) {
    if (threadIdx.x == 0) put_nan_draw(to, r, x.n);
    return;
  }
  const kept_tokens kept = truncate_row(x, spec);
  const size_t tile = ((x.n + TILES - 1) / TILES + 31) / 32 * 32;
  sum_tiles(&tiles, x, kept, tile);
  if (threadIdx.x >= 32) return;
  const weight_t each = kept.least == 0 ? 0 : weight_of(x, float_of(kept.least));
  weight_t total = 0, ties = 0;
  for (size_t i = 0; i * tile < x.n; ++i) {
    total += tiles.above[i];
    ties += tiles.ties[i];
  }
  total += least_of(ties, kept.ties) * each;
  size_t drawn = best;
  if (!spec.greedy)
    drawn = find_token(&tiles, x, kept, tile, each, drawn_weight(spec, index[r], total));
  if (threadIdx.x == 0) put_draw(to, r, x, spec, drawn, whole, total);
}

void sample_truncated(cuda_backend *b, sample_to to, const float *logits, const uint64_t *index,
                      size_t rows, size_t vocabulary, sample_spec spec) {
  LAUNCH(b, sample_rows, static_cast<unsigned>(rows), THREADS, 0, to, logits, index, vocabulary,
         spec);
}
