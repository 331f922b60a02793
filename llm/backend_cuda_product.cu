/* Products of the model with its weights: the library's, or where rows must not depend on one
 * another those of backend_cuda_product_rows.cu. */
#include "llm/backend_cuda_device.cuh"

template <typename T>
static void op_product(backend *base, void *out, const void *in, const void *weight, size_t rows,
                       size_t m, size_t k, int flags) {
  cuda_operation op(base, "product", rows, m, k);
  cuda_product p = {};
  p.in = p.out = type_of<T>::value;
  p.a = in;
  p.b = weight;
  p.c = out;
  p.m = rows;
  p.n = m;
  p.k = k;
  p.lda = p.ldb = k;
  p.ldc = m;
  p.b_transposed = true;
  p.alpha = 1;
  p.beta = flags & PRODUCT_ADD ? 1.0f : 0.0f;
  if (flags & PRODUCT_ROW_BY_ROW)
    cuda_product_row_by_row(op.b, &p);
  else
    cuda_blas_product(op.b, &p);
}

template <typename T>
static void op_logits(backend *base, void *logits, const void *in, const void *weight, size_t rows,
                      size_t vocabulary, size_t k) {
  cuda_operation op(base, "logits", rows, vocabulary, k);
  cuda_product p = {};
  p.in = type_of<T>::value;
  p.out = NUMBER_F32;
  p.a = in;
  p.b = weight;
  p.c = logits;
  p.m = rows;
  p.n = vocabulary;
  p.k = k;
  p.lda = p.ldb = k;
  p.ldc = vocabulary;
  p.b_transposed = true;
  p.alpha = 1;
  cuda_product_row_by_row(op.b, &p);
}

template <typename T>
static void op_product_backward_input(backend *base, void *din, const void *dout,
                                      const void *weight, size_t rows, size_t m, size_t k,
                                      int flags) {
  cuda_operation op(base, "product_backward_input", rows, m, k);
  cuda_product p = {};
  p.in = p.out = type_of<T>::value;
  p.a = dout;
  p.b = weight;
  p.c = din;
  p.m = rows;
  p.n = k;
  p.k = m;
  p.lda = m;
  p.ldb = p.ldc = k;
  p.alpha = 1;
  p.beta = flags & PRODUCT_ADD ? 1.0f : 0.0f;
  cuda_blas_product(op.b, &p);
}

template <typename T>
static void op_product_backward_weight(backend *base, void *dweight, const void *dout,
                                       const void *in, size_t rows, size_t m, size_t k) {
  cuda_operation op(base, "product_backward_weight", rows, m, k);
  cuda_product p = {};
  p.in = type_of<T>::value;
  p.out = NUMBER_F32;
  p.a = dout;
  p.b = in;
  p.c = dweight;
  p.m = m;
  p.n = k;
  p.k = rows;
  p.lda = m;
  p.ldb = p.ldc = k;
  p.a_transposed = true;
  p.alpha = p.beta = 1;
  cuda_blas_product(op.b, &p);
}

template <typename T> static void fill(backend_ops *ops) {
  ops->product = op_product<T>;
  ops->product_backward_input = op_product_backward_input<T>;
  ops->product_backward_weight = op_product_backward_weight<T>;
  ops->logits = op_logits<T>;
}

void cuda_product_ops(backend_ops *ops, number_type type) {
  if (type == NUMBER_BF16)
    fill<bf16>(ops);
  else
    fill<float>(ops);
}
