/* Tensor cores and asynchronous copies of the emulated device, lane by lane as the PTX manual
 * describes them: what llm/backend/cuda/mma.cuh calls under GEPOLAB_EMULATE. */
#include "cuda_runtime.h"

#include "counts.h"
#include "race.h"

#include <stdio.h>
#include <stdlib.h>

/* One of two bfloat16 in a register, as a float. */
static float float_of(uint32_t pair, unsigned half) {
  return __uint_as_float((half == 0 ? pair << 16 : pair & 0xffff0000u));
}

void emulate_mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  const uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const unsigned char *all = emulate_exchange(0xffffffffu, "mma", mine, sizeof mine);
  const unsigned lane = emulate_lane_number(), g = lane / 4, t = lane % 4;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = g + 8 * (i / 2), column = 2 * t + i % 2;
    float sum = c[i];
    for (unsigned k = 0; k < 16; ++k) {
      uint32_t from_a[6], from_b[6];
      memcpy(from_a, all + 64 * (row % 8 * 4 + k % 8 / 2), sizeof from_a);
      memcpy(from_b, all + 64 * (column * 4 + k % 8 / 2), sizeof from_b);
      sum += float_of(from_a[row / 8 + 2 * (k / 8)], k % 2) * float_of(from_b[4 + k / 8], k % 2);
    }
    c[i] = sum;
  }
}

void emulate_load_matrices(uint32_t (&r)[4], const void *row, bool transposed) {
  if (((uintptr_t)row & 15) != 0) {
    fprintf(stderr, "ldmatrix from an address that is no multiple of sixteen\n");
    abort();
  }
  race_read(row, 16);
  count_access(row, 16, false, true, __builtin_return_address(0));
  const unsigned char *all =
      emulate_exchange(0xffffffffu, transposed ? "ldmatrix.trans" : "ldmatrix", &row, sizeof row);
  const unsigned lane = emulate_lane_number(), g = lane / 4, t = lane % 4;
  for (unsigned i = 0; i < 4; ++i) {
    uint16_t pair[2];
    for (unsigned j = 0; j < 2; ++j) {
      const unsigned in_row = transposed ? 2 * t + j : g, in_column = transposed ? g : 2 * t + j;
      pair[j] = emulate_lane<const uint16_t *>(all, i * 8 + in_row)[in_column];
    }
    r[i] = (uint32_t)pair[1] << 16 | pair[0];
  }
}

/* --- asynchronous copies: made only when they are waited for, so that a missing wait shows --- */

namespace {
enum { most = 512 };
struct pending_copy {
  void *to;
  const void *from;
  bool there;
  unsigned group;
};
/* The copies that a thread has started: those before `first` are done. */
struct copies {
  pending_copy *copy;
  unsigned first, n, group;
};
copies of_thread[1024];
} // namespace

void emulate_copies_forget(unsigned thread) {
  of_thread[thread].first = of_thread[thread].n = of_thread[thread].group = 0;
}

void emulate_copy_async(void *to, const void *from, bool there) {
  copies *c = &of_thread[emulate_thread_number()];
  if (((uintptr_t)to & 15) != 0 || (there && ((uintptr_t)from & 15) != 0)) {
    fprintf(stderr, "cp.async of an address that is no multiple of sixteen\n");
    abort();
  }
  if (c->copy == nullptr) c->copy = (pending_copy *)malloc(most * sizeof *c->copy);
  if (c->n == most && c->first > 0) {
    c->n -= c->first;
    memmove(c->copy, c->copy + c->first, c->n * sizeof *c->copy);
    c->first = 0;
  }
  if (c->copy == nullptr || c->n == most) {
    fprintf(stderr, "more copies under way than the emulation has room for\n");
    abort();
  }
  c->copy[c->n++] = {to, from, there, c->group};
  race_write(to, 16); /* it may be written from now on, */
  count_access(to, 16, true, true, __builtin_return_address(0));
  if (there) count_access(from, 16, false, false, __builtin_return_address(0));
}

void emulate_copy_commit() {
  ++of_thread[emulate_thread_number()].group;
}

void emulate_copy_wait(unsigned latest) {
  copies *c = &of_thread[emulate_thread_number()];
  for (; c->first < c->n && c->copy[c->first].group + latest < c->group; ++c->first) {
    const pending_copy &p = c->copy[c->first];
    race_write(p.to, 16); /* and up to now */
    if (p.there) race_read(p.from, 16);
    if (p.there)
      memcpy(p.to, p.from, 16);
    else
      memset(p.to, 0, 16);
  }
  if (c->first == c->n) c->first = c->n = 0;
}
