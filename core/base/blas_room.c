/* Asks the system for the memory that OpenBLAS will want, before OpenBLAS does. */
#include "core/base/blas_room.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* OpenBLAS has these, other BLAS libraries do not: a weak symbol is NULL there. */
extern void openblas_set_num_threads(int n) __attribute__((weak));
extern void *blas_memory_alloc(int position) __attribute__((weak));
extern void blas_memory_free(void *buffer) __attribute__((weak));

enum { BUFFER_MIB = 128 }; /* of a buffer on x86-64, the largest of all its targets, … */
enum { SPARE_MIB = 1 };    /* … and its alignment */

static int has_room(void) {
  const size_t bytes = (size_t)(BUFFER_MIB + SPARE_MIB) << 20;
  void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return 0;
  munmap(room, bytes);
  return 1;
}

static gl_status blas_room_refuse(size_t threads, size_t missing, gl_error *err) {
  struct rlimit limit;
  unsigned long long mib = 0;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    mib = (unsigned long long)limit.rlim_cur >> 20;
  const size_t need = missing * (size_t)(BUFFER_MIB + SPARE_MIB);
  if (mib > 0)
    return gl_fail(err, GL_ENOMEM,
                   "matrix products need %zu MiB more of address space (%d MiB for each of %zu "
                   "threads), beyond the limit of %llu MiB (ulimit -v); raise it or use fewer "
                   "threads (--threads)",
                   need, BUFFER_MIB + SPARE_MIB, threads, mib);
  return gl_fail(err, GL_ENOMEM,
                 "matrix products need %zu MiB more of memory (%d MiB for each of %zu threads), "
                 "which the system refuses; see ulimit -d and vm.overcommit_memory, or use fewer "
                 "threads (--threads)",
                 need, BUFFER_MIB + SPARE_MIB, threads);
}

gl_status blas_reserve(size_t threads, gl_error *err) {
  if (openblas_set_num_threads != NULL) openblas_set_num_threads(1);
  if (blas_memory_alloc == NULL || blas_memory_free == NULL) return GL_OK;
  void **buffer = calloc(threads, sizeof *buffer);
  if (buffer == NULL) return gl_fail_memory(err, "the buffers of matrix products");
  size_t n = 0;
  while (n < threads && has_room()) buffer[n++] = blas_memory_alloc(0);
  for (size_t i = 0; i < n; ++i) blas_memory_free(buffer[i]);
  free(buffer);
  return n == threads ? GL_OK : blas_room_refuse(threads, threads - n, err);
}
