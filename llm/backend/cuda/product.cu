/* The product operations: which matrices they multiply, and by whom. Products that must be the same
 * row by row go to product_rows.cu, all others to blas.cu. */
#include "llm/backend/cuda/device.cuh"

template <typename T>
static void op_product(backend *base, void *out, const void *in, const void *weight, size_t rows,
                       size_t m, size_t k, int flags) {
  cuda_operation op(base, "product", rows, m, k);
  const number_type type = type_of<T>::value;
  const bool adds = (flags & PRODUCT_ADD) != 0;
  const cuda_product p = {type, type, in, weight, out, rows, m, k, false, true, adds};
  if (flags & PRODUCT_ROW_BY_ROW)
    cuda_product_row_by_row(op.b, &p);
  else
    cuda_blas_product(op.b, &p);
}

template <typename T>
static void op_logits(backend *base, void *logits, const void *in, const void *weight, size_t rows,
                      size_t vocabulary, size_t k) {
  cuda_operation op(base, "logits", rows, vocabulary, k);
  const cuda_product p = {type_of<T>::value, NUMBER_F32, in,    weight, logits, rows,
                          vocabulary,        k,          false, true,   false};
  cuda_product_row_by_row(op.b, &p);
}

template <typename T>
static void op_product_backward_input(backend *base, void *din, const void *dout,
                                      const void *weight, size_t rows, size_t m, size_t k,
                                      int flags) {
  cuda_operation op(base, "product_backward_input", rows, m, k);
  const number_type type = type_of<T>::value;
  const bool adds = (flags & PRODUCT_ADD) != 0;
  const cuda_product p = {type, type, dout, weight, din, rows, k, m, false, false, adds};
  cuda_blas_product(op.b, &p);
}

template <typename T>
static void op_product_backward_weight(backend *base, void *dweight, const void *dout,
                                       const void *in, size_t rows, size_t m, size_t k) {
  cuda_operation op(base, "product_backward_weight", rows, m, k);
  const cuda_product p = {
      type_of<T>::value, NUMBER_F32, dout, in, dweight, m, k, rows, true, false, true};
  cuda_blas_product(op.b, &p);
}

CUDA_TYPED_OPERATION(product)
CUDA_TYPED_OPERATION(product_backward_input)
CUDA_TYPED_OPERATION(product_backward_weight)
CUDA_TYPED_OPERATION(logits)
