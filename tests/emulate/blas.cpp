/* The products of the emulated device, by CBLAS: it takes the place of llm/backend/cuda/blas.cu. */
#include "llm/backend/cuda/device.cuh"

#include <cblas.h>
#include <stdlib.h>

gl_status cuda_blas_new(cuda_backend *, gl_error *) {
  return GL_OK;
}
void cuda_blas_free(cuda_backend *) {}

/* n numbers of `type` as floats, malloc'd. */
static float *floats(const void *from, number_type type, size_t n) {
  float *out = (float *)malloc((n + 1) * sizeof *out);
  if (out == nullptr) abort();
  for (size_t i = 0; i < n; ++i)
    out[i] = type == NUMBER_BF16 ? to_float(((const bf16 *)from)[i]) : ((const float *)from)[i];
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
  const size_t results = p->m * p->n;
  float *a = floats(p->a, p->in, p->m * p->k), *b = floats(p->b, p->in, p->k * p->n);
  if (tf32 && p->in == NUMBER_F32) {
    round_to_tf32(a, p->m * p->k);
    round_to_tf32(b, p->k * p->n);
  }
  float *c = p->adds ? floats(p->c, p->out, results) : (float *)calloc(results, sizeof *c);
  cblas_sgemm(CblasRowMajor, p->a_transposed ? CblasTrans : CblasNoTrans,
              p->b_transposed ? CblasTrans : CblasNoTrans, (int)p->m, (int)p->n, (int)p->k, 1, a,
              (int)(p->a_transposed ? p->m : p->k), b, (int)(p->b_transposed ? p->k : p->n),
              p->adds, c, (int)p->n);
  for (size_t i = 0; i < results; ++i)
    if (p->out == NUMBER_BF16)
      ((bf16 *)p->c)[i] = to_bf16(c[i]);
    else
      ((float *)p->c)[i] = c[i];
  free(a);
  free(b);
  free(c);
}

/* Launched like a kernel, so that graphs record it. */
void cuda_blas_product(cuda_backend *b, const cuda_product *p) {
  if (cuda_stopped(b) || p->m == 0 || p->n == 0 || p->k == 0) return;
  const cuda_product q = *p;
  const bool tf32 = b->base.tf32 != 0;
  emulate_kernel("product", dim3(1), dim3(1), 0, b->stream, [=]() { run(&q, tf32); });
}
