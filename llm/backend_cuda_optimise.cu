/* Optimisers, with the copy in the model's type written in the same pass, and the sum of squares.
 */
#include "llm/backend_cuda_kernels.cuh"

#include <math.h>

struct adamw_numbers {
  float beta1, beta2, keep, coupled, scale, rate, root, eps;
};

template <typename T>
__global__ void adamw_step_numbers(float *param, T *copy, const float *grad, float *m, float *v,
                                   size_t n, adamw_numbers s) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  const float p = rows_of<float>::adamw_number(param[i], grad[i], &m[i], &v[i], s.beta1, s.beta2,
                                               s.keep, s.coupled, s.scale, s.rate, s.root, s.eps);
  param[i] = p;
  if (static_cast<void *>(copy) != static_cast<void *>(param)) copy[i] = number<T>(p);
}

template <typename T>
static void op_adamw(backend *base, void *param, void *copy, const void *grad, void *m, void *v,
                     size_t n, const adamw_step *s) {
  cuda_operation op(base, "adamw", n);
  const adamw_numbers numbers = {static_cast<float>(s->beta1),
                                 static_cast<float>(s->beta2),
                                 static_cast<float>(1 - s->lr * s->decoupled),
                                 static_cast<float>(s->coupled),
                                 static_cast<float>(s->scale),
                                 static_cast<float>(s->lr / s->correct1),
                                 static_cast<float>(1 / sqrt(s->correct2)),
                                 static_cast<float>(s->eps)};
  LAUNCH(op.b, adamw_step_numbers<T>, blocks_of(n, 256), 256, 0, static_cast<float *>(param),
         static_cast<T *>(copy), static_cast<const float *>(grad), static_cast<float *>(m),
         static_cast<float *>(v), n, numbers);
}

struct sgd_numbers {
  float lr, momentum, coupled, scale;
};

template <typename T>
__global__ void sgd_step_numbers(float *param, T *copy, const float *grad, float *m, size_t n,
                                 sgd_numbers s) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  float gradient = grad[i] * s.scale + s.coupled * param[i];
  if (m != nullptr) gradient = m[i] = s.momentum * m[i] + gradient;
  const float p = param[i] - s.lr * gradient;
  param[i] = p;
  if (static_cast<void *>(copy) != static_cast<void *>(param)) copy[i] = number<T>(p);
}

template <typename T>
static void op_sgd(backend *base, void *param, void *copy, const void *grad, void *m, size_t n,
                   const sgd_step *s) {
  cuda_operation op(base, "sgd", n);
  const sgd_numbers numbers = {static_cast<float>(s->lr), static_cast<float>(s->momentum),
                               static_cast<float>(s->coupled), static_cast<float>(s->scale)};
  LAUNCH(op.b, sgd_step_numbers<T>, blocks_of(n, 256), 256, 0, static_cast<float *>(param),
         static_cast<T *>(copy), static_cast<const float *>(grad), static_cast<float *>(m), n,
         numbers);
}

/* --- sum of squares: parts of fixed size, added up in their order, in double precision --- */

enum { SQUARES_BLOCKS = 1024, SQUARES_THREADS = 256 };

__global__ void squares_parts(double *part, const float *x, size_t n) {
  double sum = 0;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n;
       i += static_cast<size_t>(gridDim.x) * blockDim.x) {
    const double y = static_cast<double>(x[i]);
    sum += y * y;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

static double op_sum_squares(backend *base, const void *x, size_t n) {
  cuda_operation op(base, "sum_squares", n);
  if (n == 0) return 0;
  double host[SQUARES_BLOCKS];
  const size_t whole = blocks_of(n, SQUARES_THREADS);
  const unsigned parts =
      whole < SQUARES_BLOCKS ? static_cast<unsigned>(whole) : static_cast<unsigned>(SQUARES_BLOCKS);
  double *part = static_cast<double *>(cuda_scratch(op.b, parts * sizeof *part));
  LAUNCH(op.b, squares_parts, parts, SQUARES_THREADS, 0, part, static_cast<const float *>(x), n);
  base->ops->download(base, host, part, parts * sizeof *part);
  if (cuda_stopped(op.b)) return 0;
  double sum = 0;
  for (unsigned i = 0; i < parts; ++i) sum += host[i];
  return sum;
}

template <typename T> static void fill(backend_ops *ops) {
  ops->adamw = op_adamw<T>;
  ops->sgd = op_sgd<T>;
  ops->sum_squares = op_sum_squares;
}

void cuda_optimise_ops(backend_ops *ops, number_type type) {
  if (type == NUMBER_BF16)
    fill<bf16>(ops);
  else
    fill<float>(ops);
}
