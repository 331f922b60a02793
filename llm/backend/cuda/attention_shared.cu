/* Attention over sequences with shared prefixes (backend.h). All positions of some sequences, a
 * chunk, are copied into a packed batch without sharing, and the kernels of attention.cu run on it.
 * So the products, norms and the output layer, which are most of the work, see a shared row once,
 * and attention costs what it costs without sharing. A chunk has no more rows than the batch.
 *
 * In the backward, dO of a copy is 0, so only a sequence's own queries contribute. The gradients of
 * a key or value are the sum over its copies in the order of the sequences, in float. */
#include "llm/backend/cuda/vector16.cuh"

#include <assert.h>

static const unsigned THREADS = 128;

/* Sequences [first, first + n) of the batch, which have `rows` positions. */
struct chunk {
  packed_rows packed;
  shared_rows shared;
  size_t first, n, rows;
};

/* The last i < n with start[i] <= row; start ascends. */
static __device__ size_t part_with(const int32_t *start, size_t n, size_t row) {
  size_t low = 0, high = n;
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    (static_cast<size_t>(start[middle]) <= row ? low : high) = middle;
  }
  return low;
}

/* The sequence that stores `position` of sequence s: s or an ancestor. */
static __device__ size_t owner_of(const shared_rows &t, size_t s, size_t position) {
  while (position < static_cast<size_t>(t.before[s])) s = static_cast<size_t>(t.parent[s]);
  return s;
}

/* start [n + 1] of the chunk's own packed rows. */
__global__ void chunk_starts(int32_t *start, chunk c) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i <= c.n) start[i] = c.shared.full[c.first + i] - c.shared.full[c.first];
}

enum copy_kind { COPY_ALL, COPY_OWN, COPY_BACK };

/* Row blockIdx.x of the chunk: `width` numbers of its row of `full`, from the batch's row of
 * `batch` (COPY_ALL; COPY_OWN: zeros for rows that another sequence stores), or the reverse
 * (COPY_BACK: own rows only). `step`: distance of rows in both. */
template <typename U, copy_kind KIND>
__global__ void copy_rows(U *full, U *batch, size_t step, size_t width, chunk c) {
  __shared__ size_t stored;
  __shared__ bool own;
  const size_t row = blockIdx.x;
  if (threadIdx.x == 0) {
    const int32_t *start = c.shared.full + c.first;
    const size_t at = row + static_cast<size_t>(start[0]), s = c.first + part_with(start, c.n, at);
    const size_t position = at - static_cast<size_t>(c.shared.full[s]);
    const size_t owner = owner_of(c.shared, s, position);
    own = owner == s;
    stored = static_cast<size_t>(c.packed.start[owner]) + position -
             static_cast<size_t>(c.shared.before[owner]);
  }
  __syncthreads();
  if (KIND == COPY_BACK && !own) return;
  for (size_t i = threadIdx.x; i < width; i += blockDim.x) {
    if (KIND == COPY_BACK)
      batch[stored * step + i] = full[row * step + i];
    else
      full[row * step + i] = KIND == COPY_ALL || own ? batch[stored * step + i] : U();
  }
}

/* Row blockIdx.x of the batch: `width` numbers of to = the sum of those of its copies in `full`, in
 * the order of sequences. `step`: distance of rows in both. sum [rows, width] has the sum of
 * earlier chunks, and receives that of a tree that does not end in this chunk. */
template <typename T>
__global__ void add_copies(T *to, const T *full, float *sum, size_t step, size_t width, chunk c) {
  __shared__ size_t first, end, owner, position;
  __shared__ bool ends;
  __shared__ int32_t place[THREADS]; /* rows of `full`; -1: the sequence has no copy */
  const size_t row = blockIdx.x;
  if (threadIdx.x == 0) {
    owner = part_with(c.packed.start, c.packed.sequences, row);
    const size_t t = part_with(c.shared.tree, c.shared.trees, owner);
    const size_t tree_end = static_cast<size_t>(c.shared.tree[t + 1]), past = c.first + c.n;
    position = row - static_cast<size_t>(c.packed.start[owner]) +
               static_cast<size_t>(c.shared.before[owner]);
    first = owner > c.first ? owner : c.first;
    end = tree_end < past ? tree_end : past;
    ends = tree_end <= past;
  }
  __syncthreads();
  for (size_t at = first; at < end; at += THREADS) {
    const size_t s = at + threadIdx.x, n = end - at < THREADS ? end - at : THREADS;
    if (s < end) {
      const bool has = position < static_cast<size_t>(c.shared.full[s + 1] - c.shared.full[s]) &&
                       owner_of(c.shared, s, position) == owner;
      place[threadIdx.x] =
          has ? c.shared.full[s] - c.shared.full[c.first] + static_cast<int32_t>(position) : -1;
    }
    __syncthreads();
    for (size_t i = threadIdx.x; i < width; i += blockDim.x) {
      float x = at == owner ? 0.0f : sum[row * width + i];
      for (size_t k = 0; k < n; ++k)
        if (place[k] >= 0) x += to_float(full[static_cast<size_t>(place[k]) * step + i]);
      if (ends && at + n == end)
        to[row * step + i] = number<T>(x);
      else
        sum[row * width + i] = x;
    }
    __syncthreads();
  }
}

/* --- launches --- */

/* copy_rows, 16 bytes at a time where all rows begin at multiples of them. */
template <typename T, copy_kind KIND>
static void copy(cuda_backend *b, T *full, const T *batch, size_t step, size_t width,
                 const chunk *c) {
  const unsigned rows = static_cast<unsigned>(c->rows);
  T *of_batch = const_cast<T *>(batch);
  if (aligned16(step * sizeof(T), full, batch) && width * sizeof(T) % sizeof(uint4) == 0)
    LAUNCH(b, (copy_rows<uint4, KIND>), rows, THREADS, 0, reinterpret_cast<uint4 *>(full),
           reinterpret_cast<uint4 *>(of_batch), step * sizeof(T) / sizeof(uint4),
           width * sizeof(T) / sizeof(uint4), *c);
  else
    LAUNCH(b, (copy_rows<T, KIND>), rows, THREADS, 0, full, of_batch, step, width, *c);
}

/* The chunk that begins at sequence `first`: as many sequences as have no more positions than the
 * batch has rows, which one always has. */
static chunk chunk_from(packed_rows rows, shared_rows shared, size_t first) {
  chunk c = {rows, shared, first, 0, 0};
  const int32_t *full = shared.full_host;
  while (first + c.n < rows.sequences &&
         static_cast<size_t>(full[first + c.n + 1] - full[first]) <= rows.rows)
    ++c.n;
  c.rows = static_cast<size_t>(full[first + c.n] - full[first]);
  return c;
}

/* Scratch memory for `rows` rows and `sequences` sequences: the rows of a chunk (backward: also
 * their gradients, and what the kernels of attention.cu read), sums over copies, starts. */
struct shared_scratch {
  char *qk, *qkv, *out, *dqk, *dqkv;
  float *lse, *row_dot, *batch_row_dot, *keys, *values;
  int32_t *start;
};
static size_t shared_bytes(size_t rows, size_t sequences, head_shape s, size_t element) {
  return 2 * carved(rows * cuda_qk_width(s), element) +
         2 * carved(rows * cuda_qkv_width(s), element) + carved(rows * s.q * s.dim, element) +
         3 * carved(rows * s.q, sizeof(float)) + 2 * carved(rows * s.kv * s.dim, sizeof(float)) +
         carved(sequences + 1, sizeof(int32_t));
}

size_t cuda_attention_scratch(size_t rows, head_shape s, size_t element) {
  return shared_bytes(rows, rows, s, element);
}

/* False after an error. */
static bool take_shared_scratch(shared_scratch *out, cuda_backend *b, packed_rows rows,
                                head_shape s, size_t element) {
  char *at =
      static_cast<char *>(cuda_scratch(b, shared_bytes(rows.rows, rows.sequences, s, element)));
  if (at == NULL) return false;
  out->qk = carve<char>(&at, rows.rows * cuda_qk_width(s) * element);
  out->dqk = carve<char>(&at, rows.rows * cuda_qk_width(s) * element);
  out->qkv = carve<char>(&at, rows.rows * cuda_qkv_width(s) * element);
  out->dqkv = carve<char>(&at, rows.rows * cuda_qkv_width(s) * element);
  out->out = carve<char>(&at, rows.rows * s.q * s.dim * element);
  out->lse = carve<float>(&at, rows.rows * s.q);
  out->row_dot = carve<float>(&at, rows.rows * s.q);
  out->batch_row_dot = carve<float>(&at, rows.rows * s.q);
  out->keys = carve<float>(&at, rows.rows * s.kv * s.dim);
  out->values = carve<float>(&at, rows.rows * s.kv * s.dim);
  out->start = carve<int32_t>(&at, rows.sequences + 1);
  return true;
}

/* Copies the chunk's queries, keys and values, and returns the call of attention on them. */
template <typename T>
static attention_call begin_chunk(cuda_backend *b, const shared_scratch *w, const chunk *c,
                                  const void *qk, const void *qkv, head_shape s) {
  const size_t values = (s.q + s.kv) * s.dim;
  LAUNCH(b, chunk_starts, blocks_of(c->n + 1, THREADS), THREADS, 0, w->start, *c);
  copy<T, COPY_ALL>(b, reinterpret_cast<T *>(w->qk), static_cast<const T *>(qk), cuda_qk_width(s),
                    cuda_qk_width(s), c);
  copy<T, COPY_ALL>(b, reinterpret_cast<T *>(w->qkv) + values, static_cast<const T *>(qkv) + values,
                    cuda_qkv_width(s), s.kv * s.dim, c);
  attention_call a = {};
  a.qk = w->qk;
  a.qkv = w->qkv;
  a.rows = packed_rows{c->rows, c->n, c->packed.longest, w->start};
  a.shape = s;
  a.scale = cuda_attention_scale(s);
  return a;
}

template <typename T>
static void op_attention_shared(backend *base, void *out, void *lse, const void *qk,
                                const void *qkv, packed_rows rows, shared_rows shared,
                                head_shape s) {
  cuda_operation op(base, "attention_shared", rows.rows, rows.longest, s.dim);
  assert(head_shape_is_valid(s) && shared.trees > 0);
  shared_scratch w;
  if (!take_shared_scratch(&w, op.b, rows, s, sizeof(T))) return;
  for (size_t first = 0; first < rows.sequences && !cuda_stopped(op.b);) {
    const chunk c = chunk_from(rows, shared, first);
    attention_call a = begin_chunk<T>(op.b, &w, &c, qk, qkv, s);
    a.out = w.out;
    a.lse_to = w.lse;
    attention_run<T>(op.b, &a);
    copy<T, COPY_BACK>(op.b, reinterpret_cast<T *>(w.out), static_cast<T *>(out), s.q * s.dim,
                       s.q * s.dim, &c);
    copy<float, COPY_BACK>(op.b, w.lse, static_cast<float *>(lse), s.q, s.q, &c);
    first += c.n;
  }
}

template <typename T>
static void op_attention_shared_backward(backend *base, void *dqk, void *dqkv, const void *dout,
                                         const void *out, const void *lse, const void *qk,
                                         const void *qkv, packed_rows rows, shared_rows shared,
                                         head_shape s) {
  cuda_operation op(base, "attention_shared_backward", rows.rows, rows.longest, s.dim);
  assert(head_shape_is_valid(s) && shared.trees > 0);
  const size_t heads = s.q * s.dim, values = (s.q + s.kv) * s.dim;
  shared_scratch w;
  if (!take_shared_scratch(&w, op.b, rows, s, sizeof(T))) return;
  attention_row_dot<T>(op.b, w.batch_row_dot, dout, out, rows.rows * s.q, s.dim);
  for (size_t first = 0; first < rows.sequences && !cuda_stopped(op.b);) {
    const chunk c = chunk_from(rows, shared, first);
    const unsigned all = static_cast<unsigned>(rows.rows);
    attention_call a = begin_chunk<T>(op.b, &w, &c, qk, qkv, s);
    copy<T, COPY_OWN>(op.b, reinterpret_cast<T *>(w.out), static_cast<const T *>(dout), heads,
                      heads, &c);
    copy<float, COPY_ALL>(op.b, w.lse, static_cast<const float *>(lse), s.q, s.q, &c);
    copy<float, COPY_OWN>(op.b, w.row_dot, w.batch_row_dot, s.q, s.q, &c);
    a.backward = true;
    a.dout = w.out;
    a.lse = w.lse;
    a.row_dot = w.row_dot;
    a.dqk = w.dqk;
    a.dqkv = w.dqkv;
    attention_run<T>(op.b, &a);
    T *full_dqk = reinterpret_cast<T *>(w.dqk), *full_dqkv = reinterpret_cast<T *>(w.dqkv);
    copy<T, COPY_BACK>(op.b, full_dqk, static_cast<T *>(dqk), cuda_qk_width(s), heads, &c);
    LAUNCH(op.b, add_copies<T>, all, THREADS, 0, static_cast<T *>(dqk) + heads, full_dqk + heads,
           w.keys, cuda_qk_width(s), s.kv * s.dim, c);
    LAUNCH(op.b, add_copies<T>, all, THREADS, 0, static_cast<T *>(dqkv) + values,
           full_dqkv + values, w.values, cuda_qkv_width(s), s.kv * s.dim, c);
    first += c.n;
  }
}

CUDA_TYPED_OPERATION(attention_shared)
CUDA_TYPED_OPERATION(attention_shared_backward)
