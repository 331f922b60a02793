/* One warp with tensor-core operands that a test has laid out (fragments.c). */
#include "llm/backend/cuda/wgmma.cuh"

extern "C" {
#include "emulate_control.h"
}

/* c += a b, of registers in memory. */
__global__ void multiply_fragments(emulate_fragments *f) {
  const unsigned lane = threadIdx.x;
  mma(f->c[lane], f->a[lane], f->b[lane][0], f->b[lane][1]);
}

/* A tile of 64 columns in shared memory, and parts of it as operands. */
__global__ void load_fragments(emulate_fragments *f) {
  typedef tile<64> t;
  SHARED_MEMORY(bf16, shared);
  for (unsigned i = threadIdx.x; i < 64 * 8; i += 32)
    for (unsigned e = 0; e < 8; ++e)
      t::vector16(shared, i / 8, i % 8 * 8)[e].bits = f->tile[i / 8][i % 8 * 8 + e];
  for (unsigned i = threadIdx.x; i < 64 * 8; i += 32)
    f->offset[i / 8][i % 8] =
        static_cast<unsigned>(reinterpret_cast<char *>(t::vector16(shared, i / 8, i % 8 * 8)) -
                              reinterpret_cast<char *>(shared));
  __syncwarp();
  const unsigned lane = threadIdx.x;
  bf16 *const row = t::vector16(shared, f->row + lane % 8, f->column + lane / 8 * 8);
  load_matrices(f->matrices[lane], row);
  load_matrices_transposed(f->transposed[lane], row);
  t::as_a(f->as_a[lane], shared, f->row, f->column);
  t::as_columns(f->as_columns[lane], shared, f->row, f->column);
  t::as_rows(f->as_rows[lane], shared, f->row, f->column);
}

void emulate_run_fragments(emulate_fragments *f) {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  emulate_kernel("multiply_fragments", 1, 32, 0, stream, [=]() { multiply_fragments(f); });
  emulate_kernel("load_fragments", 1, 32, 64 * 128, stream, [=]() { load_fragments(f); });
  cudaStreamDestroy(stream);
}

uint64_t emulate_descriptor(uint32_t address, unsigned panel_bytes) {
  return matrix_descriptor(address >> 4, panel_bytes);
}
