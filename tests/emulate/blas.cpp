/* The products of the emulated device: OpenBLAS where cuBLASLt would be. */
#include "llm/backend_cuda_device.cuh"

#include <cblas.h>
#include <stdlib.h>

gl_status cuda_blas_new(cuda_backend *, gl_error *) {
  return GL_OK;
}
void cuda_blas_free(cuda_backend *) {}

/* Stored rows of a matrix as floats, packed. */
static float *floats(const void *from, number_type type, size_t rows, size_t width, size_t ld) {
  float *out = (float *)malloc((rows * width + 1) * sizeof *out);
  if (out == nullptr) abort();
  for (size_t r = 0; r < rows; ++r)
    for (size_t i = 0; i < width; ++i)
      out[r * width + i] = type == NUMBER_BF16 ? to_float(((const bf16 *)from)[r * ld + i])
                                               : ((const float *)from)[r * ld + i];
  return out;
}

/* To the nearest number of 10 bits of mantissa, ties to even. */
static void round_to_tf32(float *x, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const uint32_t u = __float_as_uint(x[i]);
    x[i] = __uint_as_float((u + 0xfff + (u >> 13 & 1)) & ~(uint32_t)0x1fff);
  }
}

static void run(const cuda_product *p, bool tf32) {
  const size_t ar = p->a_transposed ? p->k : p->m, aw = p->a_transposed ? p->m : p->k;
  const size_t br = p->b_transposed ? p->n : p->k, bw = p->b_transposed ? p->k : p->n;
  float *a = floats(p->a, p->in, ar, aw, p->lda), *b = floats(p->b, p->in, br, bw, p->ldb);
  if (tf32 && p->in == NUMBER_F32) {
    round_to_tf32(a, ar * aw);
    round_to_tf32(b, br * bw);
  }
  float *c = p->beta == 0 ? (float *)calloc(p->m * p->n, sizeof *c)
                          : floats(p->c, p->out, p->m, p->n, p->ldc);
  cblas_sgemm(CblasRowMajor, p->a_transposed ? CblasTrans : CblasNoTrans,
              p->b_transposed ? CblasTrans : CblasNoTrans, (int)p->m, (int)p->n, (int)p->k,
              p->alpha, a, (int)aw, b, (int)bw, p->beta, c, (int)p->n);
  for (size_t r = 0; r < p->m; ++r)
    for (size_t i = 0; i < p->n; ++i)
      if (p->out == NUMBER_BF16)
        ((bf16 *)p->c)[r * p->ldc + i] = to_bf16(c[r * p->n + i]);
      else
        ((float *)p->c)[r * p->ldc + i] = c[r * p->n + i];
  free(a);
  free(b);
  free(c);
}

/* Through the launcher, so that graphs record it. */
void cuda_blas_product(cuda_backend *b, const cuda_product *p) {
  if (cuda_stopped(b) || p->m == 0 || p->n == 0 || p->k == 0) return;
  const cuda_product q = *p;
  const bool tf32 = b->base.tf32 != 0;
  emulate_kernel("product", dim3(1), dim3(1), 0, b->stream, [=]() { run(&q, tf32); });
}
