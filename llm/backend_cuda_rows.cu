/* Operations on rows: the arithmetic is kernels_rows.h, shared with the CPU; here are its launches,
 * a block or a warp a row.
 *
 * Gradients of norm weights are sums over rows. Blocks add their rows' into shared memory in the
 * rows' order, write that down, and a second kernel adds the blocks' parts in their order; how many
 * blocks there are depends on the number of rows alone. */
#include "llm/backend_cuda_kernels.cuh"

enum { PARTS = 512, HEAD_WARPS = 4 };

/* Threads of a block that works on a row of `width`. */
static unsigned row_threads(size_t width) {
  return width >= 1024 ? 256 : width >= 256 ? 128 : 32;
}

static unsigned parts_of(size_t rows) {
  return rows < PARTS ? static_cast<unsigned>(rows) : static_cast<unsigned>(PARTS);
}

/* to[width] += the sum of part[parts][width], in their order. */
__global__ void add_parts(float *to, const float *part, unsigned parts, size_t ld, size_t width) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i >= width) return;
  float sum = 0;
  for (unsigned p = 0; p < parts; ++p) sum += part[p * ld + i];
  to[i] += sum;
}

static void launch_add_parts(cuda_backend *b, void *to, const float *part, unsigned parts,
                             size_t ld, size_t width) {
  LAUNCH(b, add_parts, blocks_of(width, 128), 128, 0, static_cast<float *>(to), part, parts, ld,
         width);
}

/* --- copies of rows --- */

template <typename T>
__global__ void gather_rows(T *out, const T *in, const int32_t *index, size_t width) {
  const size_t r = blockIdx.x;
  const T *from = in + static_cast<size_t>(index[r]) * width;
  for (size_t i = threadIdx.x; i < width; i += blockDim.x) out[r * width + i] = from[i];
}

/* Sixteen bytes at a time where every row begins at a multiple of sixteen. */
template <typename T>
static void op_gather(backend *base, void *out, const void *in, const int32_t *index, size_t n,
                      size_t width) {
  cuda_operation op(base, "gather", n, width);
  const uintptr_t bits =
      reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(in) | width * sizeof(T);
  const unsigned rows = static_cast<unsigned>(n);
  if (bits % sizeof(uint4) == 0)
    LAUNCH(op.b, gather_rows<uint4>, rows, 128, 0, static_cast<uint4 *>(out),
           static_cast<const uint4 *>(in), index, width * sizeof(T) / sizeof(uint4));
  else
    LAUNCH(op.b, gather_rows<T>, rows, 128, 0, static_cast<T *>(out), static_cast<const T *>(in),
           index, width);
}

template <typename T> __global__ void cast_numbers(T *out, const float *in, size_t n) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = number<T>(in[i]);
}

template <typename T> static void op_cast(backend *base, void *out, const void *in, size_t n) {
  cuda_operation op(base, "cast", n);
  if (out != in)
    LAUNCH(op.b, cast_numbers<T>, blocks_of(n, 256), 256, 0, static_cast<T *>(out),
           static_cast<const float *>(in), n);
}

/* --- norm --- */

template <typename T>
__global__ void norm_rows(T *out, float *rstd, T *sum, const T *in, const T *add, const T *weight,
                          size_t width, float eps) {
  const size_t at = blockIdx.x * width;
  const float r =
      rows_of<T>::norm(this_block(), out + at, add == nullptr ? nullptr : sum + at, in + at,
                       add == nullptr ? nullptr : add + at, weight, width, eps);
  if (threadIdx.x == 0) rstd[blockIdx.x] = r;
}

template <typename T>
static void op_norm(backend *base, void *out, void *rstd, void *sum, const void *in,
                    const void *add, const void *weight, size_t rows, size_t width, double eps) {
  cuda_operation op(base, "norm", rows, width);
  LAUNCH(op.b, norm_rows<T>, static_cast<unsigned>(rows), row_threads(width), 0,
         static_cast<T *>(out), static_cast<float *>(rstd), static_cast<T *>(sum),
         static_cast<const T *>(in), static_cast<const T *>(add), static_cast<const T *>(weight),
         width, static_cast<float>(eps));
}

template <typename T>
__global__ void norm_backward_rows(T *din, float *part, const T *dout, const T *in,
                                   const float *rstd, const T *weight, size_t rows, size_t width) {
  SHARED_MEMORY(float, dweight);
  for (size_t i = threadIdx.x; i < width; i += blockDim.x) dweight[i] = 0;
  for (size_t r = blockIdx.x; r < rows; r += gridDim.x)
    rows_of<T>::norm_backward(this_block(), din + r * width, dweight, dout + r * width,
                              in + r * width, rstd[r], weight, width);
  for (size_t i = threadIdx.x; i < width; i += blockDim.x)
    part[blockIdx.x * width + i] = dweight[i];
}

template <typename T>
static void op_norm_backward(backend *base, void *din, void *dweight, const void *dout,
                             const void *in, const void *rstd, const void *weight, size_t rows,
                             size_t width) {
  cuda_operation op(base, "norm_backward", rows, width);
  const unsigned parts = parts_of(rows);
  float *part = static_cast<float *>(cuda_scratch(op.b, parts * width * sizeof *part));
  LAUNCH(op.b, norm_backward_rows<T>, parts, row_threads(width), width * sizeof(float),
         static_cast<T *>(din), part, static_cast<const T *>(dout), static_cast<const T *>(in),
         static_cast<const float *>(rstd), static_cast<const T *>(weight), rows, width);
  if (rows > 0) launch_add_parts(op.b, dweight, part, parts, width, width);
}

/* --- attention heads: a warp each --- */

__global__ void rotary_angles(float *cosine, float *sine, size_t n, size_t half, double theta) {
  const size_t at = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (at >= n) return;
  const size_t p = at / half, i = at % half;
  const double angle =
      static_cast<double>(p) * pow(theta, -static_cast<double>(i) / static_cast<double>(half));
  cosine[at] = static_cast<float>(cos(angle));
  sine[at] = static_cast<float>(sin(angle));
}

static void op_rotary_table(backend *base, void *cosine, void *sine, size_t positions, size_t dim,
                            double theta) {
  cuda_operation op(base, "rotary_table", positions, dim);
  const size_t n = positions * (dim / 2);
  LAUNCH(op.b, rotary_angles, blocks_of(n, 128), 128, 0, static_cast<float *>(cosine),
         static_cast<float *>(sine), n, dim / 2, theta);
}

/* What a warp needs to find its row and head. */
struct head_rows {
  const float *cosine, *sine;
  const int32_t *position;
  size_t n; /* rows * (q + kv) */
  head_shape shape;
};

template <typename T>
__global__ void head_rows_forward(T *qk, float *rstd, const T *qkv, const T *q_weight,
                                  const T *k_weight, head_rows at, float eps) {
  const size_t i = blockIdx.x * static_cast<size_t>(HEAD_WARPS) + threadIdx.x / 32;
  if (i >= at.n) return;
  const head_shape s = at.shape;
  const size_t heads = s.q + s.kv, r = i / heads, h = i % heads, half = s.dim / 2;
  const size_t angle = static_cast<size_t>(at.position[r]) * half;
  const float out = rows_of<T>::head(
      this_warp(), qk + i * s.dim, qkv + (r * (heads + s.kv) + h) * s.dim,
      h < s.q ? q_weight : k_weight, at.cosine + angle, at.sine + angle, s.dim, eps);
  if (threadIdx.x % 32 == 0) rstd[i] = out;
}

template <typename T>
static void op_heads(backend *base, void *qk, void *rstd, const void *qkv, const void *q_weight,
                     const void *k_weight, const void *cosine, const void *sine,
                     const int32_t *position, size_t rows, head_shape shape, double eps) {
  cuda_operation op(base, "heads", rows, shape.q + shape.kv, shape.dim);
  const head_rows at = {static_cast<const float *>(cosine), static_cast<const float *>(sine),
                        position, rows * (shape.q + shape.kv), shape};
  LAUNCH(op.b, head_rows_forward<T>, blocks_of(at.n, HEAD_WARPS), HEAD_WARPS * 32, 0,
         static_cast<T *>(qk), static_cast<float *>(rstd), static_cast<const T *>(qkv),
         static_cast<const T *>(q_weight), static_cast<const T *>(k_weight), at,
         static_cast<float>(eps));
}

/* part[blocks][2 * dim]: the block's share of the gradients of q's and k's weight. */
template <typename T>
__global__ void head_rows_backward(T *dqkv, float *part, const T *dqk, const T *qkv,
                                   const float *rstd, const T *q_weight, const T *k_weight,
                                   head_rows at) {
  SHARED_MEMORY(float, dweight);
  const head_shape s = at.shape;
  const size_t heads = s.q + s.kv, warp = threadIdx.x / 32;
  for (size_t i = threadIdx.x; i < HEAD_WARPS * 2 * s.dim; i += blockDim.x) dweight[i] = 0;
  __syncthreads();
  for (size_t i = blockIdx.x * static_cast<size_t>(HEAD_WARPS) + warp; i < at.n;
       i += static_cast<size_t>(gridDim.x) * HEAD_WARPS) {
    const size_t r = i / heads, h = i % heads, key = h >= s.q;
    const size_t angle = static_cast<size_t>(at.position[r]) * (s.dim / 2);
    const size_t from = (r * (heads + s.kv) + h) * s.dim;
    rows_of<T>::head_backward(this_warp(), dqkv + from, dweight + (warp * 2 + key) * s.dim,
                              dqk + i * s.dim, qkv + from, rstd[i], key ? k_weight : q_weight,
                              at.cosine + angle, at.sine + angle, s.dim);
  }
  __syncthreads();
  for (size_t i = threadIdx.x; i < 2 * s.dim; i += blockDim.x) {
    float sum = 0;
    for (size_t w = 0; w < HEAD_WARPS; ++w) sum += dweight[w * 2 * s.dim + i];
    part[blockIdx.x * 2 * s.dim + i] = sum;
  }
}

template <typename T>
static void op_heads_backward(backend *base, void *dqkv, void *dq_weight, void *dk_weight,
                              const void *dqk, const void *qkv, const void *rstd,
                              const void *q_weight, const void *k_weight, const void *cosine,
                              const void *sine, const int32_t *position, size_t rows,
                              head_shape shape) {
  cuda_operation op(base, "heads_backward", rows, shape.q + shape.kv, shape.dim);
  const head_rows at = {static_cast<const float *>(cosine), static_cast<const float *>(sine),
                        position, rows * (shape.q + shape.kv), shape};
  const unsigned parts = parts_of(blocks_of(at.n, HEAD_WARPS));
  const size_t width = 2 * shape.dim;
  float *part = static_cast<float *>(cuda_scratch(op.b, parts * width * sizeof *part));
  LAUNCH(op.b, head_rows_backward<T>, parts, HEAD_WARPS * 32, HEAD_WARPS * width * sizeof(float),
         static_cast<T *>(dqkv), part, static_cast<const T *>(dqk), static_cast<const T *>(qkv),
         static_cast<const float *>(rstd), static_cast<const T *>(q_weight),
         static_cast<const T *>(k_weight), at);
  if (rows == 0) return;
  launch_add_parts(op.b, dq_weight, part, parts, width, shape.dim);
  launch_add_parts(op.b, dk_weight, part + shape.dim, parts, width, shape.dim);
}

/* --- gated unit --- */

template <typename T> __global__ void swiglu_rows(T *out, const T *gate_up, size_t width) {
  const T *gate = gate_up + blockIdx.x * 2 * width;
  rows_of<T>::swiglu(this_block(), out + blockIdx.x * width, gate, gate + width, width);
}

template <typename T>
static void op_swiglu(backend *base, void *out, const void *gate_up, size_t rows, size_t width) {
  cuda_operation op(base, "swiglu", rows, width);
  LAUNCH(op.b, swiglu_rows<T>, static_cast<unsigned>(rows), row_threads(width), 0,
         static_cast<T *>(out), static_cast<const T *>(gate_up), width);
}

template <typename T>
__global__ void swiglu_backward_rows(T *dgate_up, const T *dout, const T *gate_up, size_t width) {
  const size_t at = blockIdx.x * 2 * width;
  rows_of<T>::swiglu_backward(this_block(), dgate_up + at, dgate_up + at + width,
                              dout + blockIdx.x * width, gate_up + at, gate_up + at + width, width);
}

template <typename T>
static void op_swiglu_backward(backend *base, void *dgate_up, const void *dout, const void *gate_up,
                               size_t rows, size_t width) {
  cuda_operation op(base, "swiglu_backward", rows, width);
  LAUNCH(op.b, swiglu_backward_rows<T>, static_cast<unsigned>(rows), row_threads(width), 0,
         static_cast<T *>(dgate_up), static_cast<const T *>(dout), static_cast<const T *>(gate_up),
         width);
}

template <typename T> static void fill(backend_ops *ops) {
  ops->cast = op_cast<T>;
  ops->gather = op_gather<T>;
  ops->embed = op_gather<T>;
  ops->norm = op_norm<T>;
  ops->norm_backward = op_norm_backward<T>;
  ops->rotary_table = op_rotary_table;
  ops->heads = op_heads<T>;
  ops->heads_backward = op_heads_backward<T>;
  ops->swiglu = op_swiglu<T>;
  ops->swiglu_backward = op_swiglu_backward<T>;
}

void cuda_rows_ops(backend_ops *ops, number_type type) {
  if (type == NUMBER_BF16)
    fill<bf16>(ops);
  else
    fill<float>(ops);
}
