/* Log-probabilities and entropies of the output layer, and their backward, for some rows and
 * columns of the logits at a time (columns are tokens of the vocabulary). One product writes a
 * chunk of logits into scratch memory, one kernel reads it once, and the next chunk overwrites it.
 * In the forward that kernel adds the chunk to each row's running softmax statistics. In the
 * backward it writes the logits' gradients, which two more products use. If the caller has memory
 * for all logits, the forward stores the chunks one behind the other, and the backward reads them
 * instead of computing the product again.
 *
 * Size of a chunk. The backward's products have columns x k results (the weight's gradient) and
 * rows x k (the input's). A chunk must have thousands of rows and columns so that these results are
 * enough tiles for all multiprocessors. A chunk of 2^23 logits would stay in the second-level
 * cache, but has only 64 such tiles of 128 x 256 at k = 1024, for 132 multiprocessors. So a chunk
 * has 2^27 logits, 8192 rows of 16,384, and is in device memory, whose traffic is then 8 bytes per
 * logit in the forward, and 14 in the backward in bfloat16 (10 if the logits were stored). The
 * environment variable GEPOLAB_CUDA_OUTPUT_CHUNK sets another number of logits, for devices with
 * little memory, measurements and tests. Last bits of results depend on it. */
#include "llm/backend/cuda/vector16.cuh"

#include <assert.h>
#include <stdlib.h>

static const size_t CHUNK_NUMBERS = static_cast<size_t>(1) << 27, LEAST_COLUMNS = 128;
enum { THREADS = 256 };

void cuda_output_start(cuda_backend *b) {
  const char *text = getenv("GEPOLAB_CUDA_OUTPUT_CHUNK");
  b->output_numbers = CHUNK_NUMBERS;
  if (text == NULL) return;
  char *end;
  const unsigned long long n = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != 0 || n < LEAST_COLUMNS || n > CHUNK_NUMBERS << 8)
    gl_fail(&b->failed, GL_EINPUT,
            "GEPOLAB_CUDA_OUTPUT_CHUNK is \"%.40s\"; give how many logits the output layer holds "
            "at a time, from %zu to %zu, or unset it for %zu",
            text, LEAST_COLUMNS, CHUNK_NUMBERS << 8, CHUNK_NUMBERS);
  else
    b->output_numbers = static_cast<size_t>(n);
}

/* The size of a chunk; the last rows and columns may form smaller ones. */
struct output_chunk {
  size_t rows, columns;
};

/* Twice as many columns as rows, if there are that many rows: the input's gradient is read and
 * written once per chunk of columns, the weight's once per chunk of rows. With fewer rows, numbers
 * of rows with equal padding have equal columns. */
static output_chunk chunk_of(const cuda_backend *b, size_t rows, size_t vocabulary) {
  output_chunk c;
  c.rows = 1;
  while (2 * (2 * c.rows) * (2 * c.rows) <= b->output_numbers) c.rows *= 2;
  if (c.rows > b->output_numbers / LEAST_COLUMNS) c.rows = b->output_numbers / LEAST_COLUMNS;
  if (c.rows > rows) c.rows = rows;
  const size_t padded = cuda_padded_rows(c.rows == 0 ? 1 : c.rows);
  c.columns = b->output_numbers / padded / LEAST_COLUMNS * LEAST_COLUMNS;
  if (c.columns > vocabulary) c.columns = vocabulary;
  return c;
}

/* Scratch bytes of forward or backward, whichever is larger. */
size_t cuda_output_scratch(const cuda_backend *b, size_t rows, size_t vocabulary, size_t k) {
  const output_chunk most = chunk_of(b, rows, vocabulary);
  const size_t numbers = most.rows * most.columns, half = b->base.type == NUMBER_BF16;
  const size_t forward = carved(numbers, sizeof(float)) +
                         2 * carved(most.rows, sizeof(softmax_stats)) +
                         2 * carved(most.rows, sizeof(float));
  const size_t backward = carved(numbers, sizeof(float)) + carved(half * numbers, sizeof(bf16)) +
                          carved(half * most.rows * k, sizeof(float));
  return backward > forward ? backward : forward;
}

/* The next chunk of n logits: of the stored ones, from *stored on, or `scratch` if none are stored.
 * Both begin at a multiple of 256 bytes, so that a product has the same plan and the same bits. */
static float *chunk_memory(char **stored, float *scratch, size_t n) {
  return *stored != NULL ? carve<float>(stored, n) : scratch;
}

static size_t op_logits_bytes(const backend *base, size_t rows, size_t vocabulary) {
  if (rows == 0 || vocabulary == 0) return 0;
  if (rows > SIZE_MAX / 512 / vocabulary) return SIZE_MAX;
  const output_chunk most =
      chunk_of(reinterpret_cast<const cuda_backend *>(base), rows, vocabulary);
  const size_t chunks =
      ((rows + most.rows - 1) / most.rows) * ((vocabulary + most.columns - 1) / most.columns);
  return rows * vocabulary * sizeof(float) + chunks * 256;
}

/* z [rows, columns] = in [rows, k] weight [columns, k]^T, in float; weight points to the chunk. */
template <typename T>
static void chunk_logits(cuda_backend *b, float *z, const T *in, const T *weight, size_t rows,
                         size_t columns, size_t k) {
  const cuda_product p = {type_of<T>::value, NUMBER_F32, in,    weight, z,    rows,
                          columns,           k,          false, true,   false};
  cuda_blas_product(b, &p);
}

/* --- forward --- */

/* A thread's statistics of the logits so far, as in softmax_stats; top: the greatest. */
struct running {
  float top;
  double sum, weighted;
};

/* Rescales the sums to a greater maximum `top`. */
static __device__ __forceinline__ void refer_to(running *r, float top, float factor) {
  if (r->top != -INFINITY) {
    const float d = factor * (r->top - top);
    const double shrink = static_cast<double>(expf(d));
    r->weighted = shrink * (r->weighted + static_cast<double>(d) * r->sum);
    r->sum *= shrink;
  }
  r->top = top;
}

/* Adds x [N], of which only the first `left` exist, to r. The sum over x is computed in float and
 * added to r in double, because a vocabulary has up to about 150,000 tokens. */
template <unsigned N>
static __device__ __forceinline__ void add_logits(running *r, const float (&x)[N], size_t left,
                                                  float factor) {
  float top = x[0], sum = 0, weighted = 0;
#pragma unroll
  for (unsigned e = 1; e < N; ++e)
    if (e < left && x[e] > top) top = x[e];
  if (top > r->top) refer_to(r, top, factor);
#pragma unroll
  for (unsigned e = 0; e < N; ++e)
    if (e < left) {
      const float d = factor * (x[e] - r->top), p = expf(d);
      sum += p;
      weighted += d * p;
    }
  r->sum += static_cast<double>(sum);
  r->weighted += static_cast<double>(weighted);
}

/* Adds row blockIdx.x of the chunk z [rows, columns], which begins at column `first` of the
 * vocabulary, to stats [rows]; stores the target's logit if it is in the chunk. WIDE: every row
 * begins at a multiple of 16 bytes and consists of whole vectors. Memory traffic: a row of z is
 * read once. */
template <typename T, bool WIDE>
__global__ void fold_chunk(softmax_stats *stats, T *target_logit, const T *z, const int32_t *target,
                           size_t first, size_t columns, float factor) {
  const unsigned N = 2 * vector16<T>::N;
  const size_t r = blockIdx.x;
  const T *const row = z + r * columns;
  running mine = {-INFINITY, 0, 0};
  for (size_t i = threadIdx.x * N; i < columns; i += blockDim.x * N) {
    float x[N];
    if (WIDE && columns - i >= N) {
      load_floats<WIDE>(x, row + i, N);
      add_logits(&mine, x, N, factor);
    } else {
      load_floats<false>(x, row + i, columns - i);
      add_logits(&mine, x, columns - i, factor);
    }
  }
  const float top = block_max(mine.top);
  refer_to(&mine, top, factor);
  const softmax_stats some = {static_cast<double>(top), block_sum(mine.sum),
                              block_sum(mine.weighted)};
  if (threadIdx.x != 0) return;
  stats[r] = first == 0 ? some : softmax_stats_join(stats[r], some, static_cast<double>(factor));
  const size_t at = static_cast<size_t>(target[r]);
  if (at >= first && at < first + columns) target_logit[r] = row[at - first];
}

/* The three results of each row from its statistics; one thread per row. logp and lse are of
 * `dist`, the statistics over the kept tokens (or over all), entropy is of `all`, those over the
 * whole vocabulary. */
__global__ void finish_rows(float *logp, float *entropy, float *lse, const softmax_stats *all,
                            const softmax_stats *dist, const float *target_logit, size_t rows,
                            float factor) {
  const size_t r = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (r >= rows) return;
  const double f = static_cast<double>(factor);
  logp[r] =
      static_cast<float>(softmax_stats_logp(dist[r], static_cast<double>(target_logit[r]), f));
  entropy[r] = static_cast<float>(softmax_stats_entropy(all[r]));
  lse[r] = static_cast<float>(softmax_stats_lse(dist[r], f));
}

/* Far below every logit, but finite, so that differences are defined. */
static const float NOT_KEPT = -1e30f;

/* True if the set contains token a. listed: the set is a list, not a bit set (kept_shape). none:
 * the set is empty, which means that it contains all tokens. */
static __device__ __forceinline__ bool holds_logits(const uint32_t *set, bool listed, bool none,
                                                    uint32_t a) {
  if (none) return true;
  if (!listed) return (set[a / 32] >> a % 32 & 1u) != 0;
  uint32_t low = 1, high = 1 + set[0];
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (set[middle] < a)
      low = middle + 1;
    else
      high = middle;
  }
  return low <= set[0] && set[low] == a;
}

/* Replaces logits of tokens outside their row's set by NOT_KEPT, in a chunk z [rows, columns]; one
 * block per row. Memory traffic: a row of z is read and written. */
__global__ void leave_kept(float *z, const uint32_t *sets, size_t words, bool listed, size_t first,
                           size_t columns) {
  const size_t r = blockIdx.x;
  const uint32_t *set = sets + r * words;
  float *row = z + r * columns;
  int some = listed ? set[0] != 0 : 0;
  for (size_t w = threadIdx.x; !listed && w < words; w += blockDim.x) some |= set[w] != 0;
  const bool none = block_max(some) == 0;
  for (size_t i = threadIdx.x; i < columns; i += blockDim.x)
    if (!holds_logits(set, listed, none, static_cast<uint32_t>(first + i))) row[i] = NOT_KEPT;
}

/* The sets of rows from r on; set NULL stays NULL. */
static kept_sets sets_from(const kept_sets &kept, size_t r) {
  kept_sets from = kept;
  if (kept.set != NULL) from.set += r * kept.shape.words;
  return from;
}

static void keep_chunk(cuda_backend *b, float *z, const kept_sets &kept, size_t rows, size_t first,
                       size_t columns) {
  LAUNCH(b, leave_kept, static_cast<unsigned>(rows), THREADS, 0, z, kept.set, kept.shape.words,
         kept.shape.listed != 0, first, columns);
}

template <typename T>
static void op_output(backend *base, void *logp, void *entropy, void *lse, void *logits,
                      const void *in, const void *weight, const int32_t *target, kept_sets kept,
                      size_t rows, size_t vocabulary, size_t k, double temperature) {
  cuda_operation op(base, "output", rows, vocabulary, k);
  assert(temperature > 0);
  const output_chunk most = chunk_of(op.b, rows, vocabulary);
  char *at =
      static_cast<char *>(cuda_scratch(op.b, cuda_output_scratch(op.b, rows, vocabulary, k)));
  if (at == NULL) return;
  float *scratch = carve<float>(&at, most.rows * most.columns);
  softmax_stats *stats = carve<softmax_stats>(&at, most.rows);
  float *target_logit = carve<float>(&at, most.rows);
  softmax_stats *few = carve<softmax_stats>(&at, most.rows); /* over the kept tokens only */
  float *not_needed = carve<float>(&at, most.rows);
  char *stored = static_cast<char *>(logits);
  const bool keeps = kept.set != NULL;
  const float factor = static_cast<float>(1 / temperature);
  for (size_t r = 0; r < rows; r += most.rows) {
    const size_t n = rows - r < most.rows ? rows - r : most.rows;
    for (size_t v = 0; v < vocabulary; v += most.columns) {
      const size_t columns = vocabulary - v < most.columns ? vocabulary - v : most.columns;
      float *z = chunk_memory(&stored, scratch, n * columns);
      chunk_logits(op.b, z, static_cast<const T *>(in) + r * k,
                   static_cast<const T *>(weight) + v * k, n, columns, k);
      LAUNCH_VECTOR16(op.b, aligned16(columns * sizeof(float), z), fold_chunk, float,
                      static_cast<unsigned>(n), THREADS, 0, stats, target_logit, z, target + r, v,
                      columns, factor);
      if (!keeps) continue;
      keep_chunk(op.b, z, sets_from(kept, r), n, v, columns);
      LAUNCH_VECTOR16(op.b, aligned16(columns * sizeof(float), z), fold_chunk, float,
                      static_cast<unsigned>(n), THREADS, 0, few, not_needed, z, target + r, v,
                      columns, factor);
    }
    LAUNCH(op.b, finish_rows, blocks_of(n, 128), 128, 0, static_cast<float *>(logp) + r,
           static_cast<float *>(entropy) + r, static_cast<float *>(lse) + r, stats,
           keeps ? few : stats, target_logit, n, factor);
  }
}

/* --- the two parts of a distribution --- */

/* Combines the running statistics of a block's threads. In the first chunk of a row (begins) they
 * overwrite *stats; in later ones they are joined to it. */
static __device__ void join_block(softmax_stats *stats, running mine, bool begins, float factor) {
  const float top = block_max(mine.top);
  refer_to(&mine, top, factor);
  const softmax_stats some = {static_cast<double>(top), block_sum(mine.sum),
                              block_sum(mine.weighted)};
  if (threadIdx.x != 0) return;
  *stats = begins ? some : softmax_stats_join(*stats, some, static_cast<double>(factor));
}

/* Adds row blockIdx.x of the chunk z [rows, columns] to the statistics [rows] of the tokens in its
 * set and of the others. Memory traffic: a row of z is read once. */
__global__ void fold_parts(softmax_stats *kept, softmax_stats *rest, const float *z,
                           const uint32_t *sets, size_t words, bool listed, size_t first,
                           size_t columns, float factor) {
  const size_t r = blockIdx.x;
  const uint32_t *set = sets + r * words;
  int some = listed ? set[0] != 0 : 0;
  for (size_t w = threadIdx.x; !listed && w < words; w += blockDim.x) some |= set[w] != 0;
  const bool none = block_max(some) == 0;
  running in = {-INFINITY, 0, 0}, out = {-INFINITY, 0, 0};
  for (size_t i = threadIdx.x; i < columns; i += blockDim.x) {
    const float x[1] = {z[r * columns + i]};
    if (holds_logits(set, listed, none, static_cast<uint32_t>(first + i)))
      add_logits(&in, x, 1, factor);
    else
      add_logits(&out, x, 1, factor);
  }
  join_block(&kept[r], in, first == 0, factor);
  join_block(&rest[r], out, first == 0, factor);
}

/* The three results of each row from its statistics; one thread per row. */
__global__ void finish_parts(float *mass, float *entropy_kept, float *entropy_tail,
                             const softmax_stats *kept, const softmax_stats *rest, size_t rows,
                             float factor) {
  const size_t r = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (r >= rows) return;
  const softmax_parts p = softmax_parts_of(kept[r], rest[r], rest[r].greatest == -INFINITY,
                                           static_cast<double>(factor));
  mass[r] = static_cast<float>(p.mass);
  entropy_kept[r] = static_cast<float>(p.entropy);
  entropy_tail[r] = static_cast<float>(p.entropy_rest);
}

template <typename T>
static void op_kept_parts(backend *base, void *mass, void *entropy_kept, void *entropy_tail,
                          const void *in, const void *weight, kept_sets kept, size_t rows, size_t k,
                          double temperature) {
  const size_t vocabulary = kept.shape.vocabulary;
  cuda_operation op(base, "kept_parts", rows, vocabulary, k);
  assert(temperature > 0);
  const output_chunk most = chunk_of(op.b, rows, vocabulary);
  char *at =
      static_cast<char *>(cuda_scratch(op.b, cuda_output_scratch(op.b, rows, vocabulary, k)));
  if (at == NULL) return;
  float *z = carve<float>(&at, most.rows * most.columns);
  softmax_stats *part = carve<softmax_stats>(&at, most.rows);
  softmax_stats *rest = carve<softmax_stats>(&at, most.rows);
  const float factor = static_cast<float>(1 / temperature);
  for (size_t r = 0; r < rows; r += most.rows) {
    const size_t n = rows - r < most.rows ? rows - r : most.rows;
    const kept_sets sets = sets_from(kept, r);
    for (size_t v = 0; v < vocabulary; v += most.columns) {
      const size_t columns = vocabulary - v < most.columns ? vocabulary - v : most.columns;
      chunk_logits(op.b, z, static_cast<const T *>(in) + r * k,
                   static_cast<const T *>(weight) + v * k, n, columns, k);
      LAUNCH(op.b, fold_parts, static_cast<unsigned>(n), THREADS, 0, part, rest, z, sets.set,
             sets.shape.words, sets.shape.listed != 0, v, columns, factor);
    }
    LAUNCH(op.b, finish_parts, blocks_of(n, 128), 128, 0, static_cast<float *>(mass) + r,
           static_cast<float *>(entropy_kept) + r, static_cast<float *>(entropy_tail) + r, part,
           rest, n, factor);
  }
}

/* --- backward: the logits, stored or computed again, become their gradients, which enter two
 * products --- */

/* dlogits [rows, columns] = the gradients of the logits z [rows, columns], as T; one block per row.
 * `first` is the chunk's first column. dlogits may be z. Memory traffic: a row of z is read, and
 * one of dlogits is written. */
template <typename T, bool WIDE>
__global__ void logit_grad_chunk(T *dlogits, const float *z, const float *dlogp, const float *lse,
                                 const int32_t *target, size_t first, size_t columns,
                                 float factor) {
  const unsigned N = vector16<T>::N;
  const size_t r = blockIdx.x, at = static_cast<size_t>(target[r]) - first;
  const float scale = factor * dlogp[r], whole = lse[r];
  for (size_t i = threadIdx.x * N; i < columns; i += blockDim.x * N) {
    float x[N];
    load_floats<WIDE>(x, z + r * columns + i, columns - i);
#pragma unroll
    for (unsigned e = 0; e < N; ++e)
      x[e] = rows_of<float>::logit_grad(x[e], i + e == at, factor, whole, scale);
    store_vector16<WIDE>(dlogits + r * columns + i, x, columns - i);
  }
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
                               const void *lse, const void *logits, const void *in,
                               const void *weight, const int32_t *target, kept_sets kept,
                               size_t rows, size_t vocabulary, size_t k, double temperature) {
  cuda_operation op(base, "output_backward", rows, vocabulary, k);
  assert(temperature > 0);
  const bool half = sizeof(T) != sizeof(float);
  const output_chunk most = chunk_of(op.b, rows, vocabulary);
  const size_t numbers = most.rows * most.columns;
  char *at =
      static_cast<char *>(cuda_scratch(op.b, cuda_output_scratch(op.b, rows, vocabulary, k)));
  if (at == NULL) return;
  float *scratch = carve<float>(&at, numbers);
  T *dlogits = half ? carve<T>(&at, numbers) : reinterpret_cast<T *>(scratch);
  float *sum = half ? carve<float>(&at, most.rows * k) : NULL;
  char *stored = static_cast<char *>(const_cast<void *>(logits));
  const float factor = static_cast<float>(1 / temperature);
  for (size_t r = 0; r < rows; r += most.rows) {
    const size_t n = rows - r < most.rows ? rows - r : most.rows;
    const T *x = static_cast<const T *>(in) + r * k;
    T *dx = static_cast<T *>(din) + r * k;
    float *to = half ? sum : reinterpret_cast<float *>(dx);
    for (size_t v = 0; v < vocabulary; v += most.columns) {
      const size_t columns = vocabulary - v < most.columns ? vocabulary - v : most.columns;
      const T *w = static_cast<const T *>(weight) + v * k;
      float *z = chunk_memory(&stored, scratch, n * columns);
      if (logits == NULL) chunk_logits(op.b, z, x, w, n, columns, k);
      if (logits == NULL && kept.set != NULL)
        keep_chunk(op.b, z, sets_from(kept, r), n, v, columns);
      LAUNCH_VECTOR16(op.b, aligned16(columns * sizeof(T), z, dlogits), logit_grad_chunk, T,
                      static_cast<unsigned>(n), THREADS, 0, dlogits, z,
                      static_cast<const float *>(dlogp) + r, static_cast<const float *>(lse) + r,
                      target + r, v, columns, factor);
      chunk_products(op.b, to, static_cast<float *>(dweight) + v * k, dlogits, x, w, n, columns, k,
                     v > 0);
    }
    if (half) base->ops->cast(base, dx, sum, n * k);
  }
}

CUDA_TYPED_OPERATION(output)
CUDA_TYPED_OPERATION(output_backward)
CUDA_OPERATION(logits_bytes)
CUDA_TYPED_OPERATION(kept_parts)
