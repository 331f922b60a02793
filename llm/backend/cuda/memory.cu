/* Memory of the CUDA backend: allocations from the device's pool, scratch memory, pinned host
 * memory (for parameters moved to the host, model_values_put_aside(), and as a buffer for copies),
 * and copies.
 *
 * The pool keeps freed memory, so that the next allocation needs no system call; this memory counts
 * as free. An allocation that fails is retried after waiting for the device and trimming the pool;
 * only a second failure is an error. On a device without pools (some virtual ones) every allocation
 * is made directly. */
#include "llm/backend/cuda/cuda.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ADVICE[] =
    "lower world.micro_batch or world.slots, set world.recompute, or take a smaller model";

/* Total and free bytes of the device, including unused memory in the pool. Zeros after an error. */
static void measure_memory(cuda_backend *b, size_t *total, size_t *available) {
  uint64_t reserved = 0, used = 0;
  *total = *available = 0;
  if (CUDA_CALL(b, cudaMemGetInfo(available, total)) || b->pool == NULL) return;
  if (CUDA_CALL(b, cudaMemPoolGetAttribute(b->pool, cudaMemPoolAttrReservedMemCurrent, &reserved)))
    return;
  if (CUDA_CALL(b, cudaMemPoolGetAttribute(b->pool, cudaMemPoolAttrUsedMemCurrent, &used))) return;
  if (reserved > used) *available += reserved - used;
}

/* Stores the error of an allocation of `bytes`, with the free memory and a remedy. */
static void fail_device_memory(cuda_backend *b, size_t bytes) {
  size_t available = 0, total = 0;
  if (cuda_stopped(b)) return;
  measure_memory(b, &total, &available);
  if (cuda_stopped(b)) return;
  gl_fail(&b->failed, GL_ENOMEM,
          "out of GPU memory: %s wants %.1f MiB, %.1f of %.1f MiB are free; %s", b->operation,
          (double)bytes / 1048576, (double)available / 1048576, (double)total / 1048576, ADVICE);
}

static void op_memory(backend *base, size_t *total, size_t *available) {
  cuda_operation op(base, "memory");
  *total = *available = 0;
  if (!cuda_stopped(op.b)) measure_memory(op.b, total, available);
}

/* --- allocations --- */

void cuda_free_retired(cuda_backend *b) {
  if (b->n_retired == 0 || b->graphs > 0 || b->recording) return;
  CUDA_CALL(b, cudaStreamSynchronize(b->stream));
  while (b->n_retired > 0) CUDA_CALL(b, cudaFree(b->retired[--b->n_retired]));
}

/* Returns unused memory to the device. While the stream is recorded it cannot be waited for, so
 * only the pool is trimmed. */
static void reclaim(cuda_backend *b) {
  cudaGetLastError();
  if (!b->recording) CUDA_CALL(b, cudaStreamSynchronize(b->stream));
  cuda_free_retired(b);
  if (!cuda_stopped(b) && b->pool != NULL) CUDA_CALL(b, cudaMemPoolTrimTo(b->pool, 0));
}

/* Allocates from the pool, or directly if there is none. */
static cudaError_t take_memory(cuda_backend *b, void **memory, size_t size) {
  return b->pool != NULL ? cudaMallocAsync(memory, size, b->stream) : cudaMalloc(memory, size);
}

static void *op_allocate(backend *base, size_t bytes) {
  cuda_operation op(base, "allocate", bytes);
  cuda_backend *b = op.b;
  if (cuda_stopped(b)) return NULL;
  void *memory = NULL;
  const size_t size = bytes == 0 ? 1 : bytes;
  if (take_memory(b, &memory, size) != cudaSuccess) {
    reclaim(b);
    if (cuda_stopped(b)) return NULL;
    if (take_memory(b, &memory, size) != cudaSuccess) {
      cudaGetLastError();
      fail_device_memory(b, bytes);
      return NULL;
    }
  }
  CUDA_CALL(b, cudaMemsetAsync(memory, 0, size, b->stream));
  return memory;
}

/* Keeps a cudaMalloc'd block until the last graph is freed. Returns false after an error. */
static bool retire(cuda_backend *b, void *memory) {
  void **more = static_cast<void **>(realloc(b->retired, (b->n_retired + 1) * sizeof *b->retired));
  if (more == NULL) {
    cuda_fail(b, GL_ENOMEM, "realloc", "host memory is short");
    return false;
  }
  b->retired = more;
  b->retired[b->n_retired++] = memory;
  return true;
}

/* Frees memory that was not allocated from a pool. Kernels may still use it, so this waits for the
 * stream. While the stream is recorded it cannot be waited for, so the memory is freed later
 * (retire). */
static void give(cuda_backend *b, void *memory) {
  if (b->recording) {
    retire(b, memory);
    return;
  }
  CUDA_CALL(b, cudaStreamSynchronize(b->stream));
  CUDA_CALL(b, cudaFree(memory));
}

static void op_release(backend *base, void *memory) {
  cuda_operation op(base, "release");
  if (memory == NULL) return;
  if (op.b->pool != NULL)
    CUDA_CALL(op.b, cudaFreeAsync(memory, op.b->stream));
  else
    give(op.b, memory);
}

/* Frees the scratch block, or retires it if graphs may use it. Returns false after an error. */
static bool leave_scratch(cuda_backend *b) {
  void *old = b->scratch;
  if (old == NULL) return true;
  if (b->graphs + b->recording > 0) {
    if (!retire(b, old)) return false;
  } else {
    CUDA_CALL(b, cudaStreamSynchronize(b->stream));
    CUDA_CALL(b, cudaFree(old));
  }
  b->scratch = NULL;
  b->scratch_bytes = 0;
  return !cuda_stopped(b);
}

void *cuda_scratch(cuda_backend *b, size_t bytes) {
  if (cuda_stopped(b)) return NULL;
  if (bytes <= b->scratch_bytes) return b->scratch;
  if (!leave_scratch(b)) return NULL;
  /* cudaMalloc instead of cudaMallocAsync: a recording in relaxed mode allows it. */
  const size_t size = bytes + bytes / 8;
  if (cudaMalloc(&b->scratch, size) != cudaSuccess) {
    b->scratch = NULL;
    reclaim(b);
    if (cuda_stopped(b)) return NULL;
    if (cudaMalloc(&b->scratch, size) != cudaSuccess) {
      cudaGetLastError();
      b->scratch = NULL;
      fail_device_memory(b, size);
      return NULL;
    }
  }
  b->scratch_bytes = size;
  return b->scratch;
}

/* --- pinned host memory for put-aside values --- */
/* Pinning memory is slow, and all versions of a model have the same size. So a freed block is kept
 * and reused. Copies to and from it run in stream order, so the copies of its next user come after
 * those of the previous one. */

/* An entry in the list of blocks; memory NULL: unused. */
struct cuda_aside {
  void *memory;
  size_t bytes;
  bool used;
};

/* A kept block of exactly that size, or NULL. Kept blocks of other sizes are freed. */
static cuda_aside *find_aside(cuda_backend *b, size_t bytes) {
  cuda_aside *found = NULL;
  for (size_t i = 0; i < b->n_aside; ++i) {
    cuda_aside *a = &b->aside[i];
    if (!a->used && a->bytes == bytes) found = a;
    if (a->used || a->bytes == bytes || a->memory == NULL) continue;
    CUDA_CALL(b, cudaStreamSynchronize(b->stream));
    CUDA_CALL(b, cudaFreeHost(a->memory));
    a->memory = NULL;
    a->bytes = 0;
  }
  return found;
}

/* An unused entry of the list, which grows if there is none; NULL after an error. */
static cuda_aside *place_aside(cuda_backend *b) {
  for (size_t i = 0; i < b->n_aside; ++i)
    if (b->aside[i].memory == NULL) return &b->aside[i];
  cuda_aside *more =
      static_cast<cuda_aside *>(realloc(b->aside, (b->n_aside + 1) * sizeof *b->aside));
  if (more == NULL) {
    cuda_fail(b, GL_ENOMEM, "realloc", "host memory is short");
    return NULL;
  }
  b->aside = more;
  more[b->n_aside] = cuda_aside();
  return &more[b->n_aside++];
}

static void fail_aside(cuda_backend *b, size_t bytes, size_t available) {
  gl_fail(&b->failed, GL_ENOMEM,
          "out of host memory: parameters that do not fit on the GPU any more want %.1f MiB of "
          "pinned memory, and %.1f MiB are available; samplers that are less far behind (fewer of "
          "them, shorter delays) hold fewer versions",
          (double)bytes / 1048576, (double)available / 1048576);
}

static void *op_allocate_aside(backend *base, size_t bytes) {
  cuda_operation op(base, "allocate_aside", bytes);
  cuda_backend *b = op.b;
  if (cuda_stopped(b)) return NULL;
  const size_t size = bytes == 0 ? 1 : bytes;
  cuda_aside *a = find_aside(b, size);
  if (a == NULL && !cuda_stopped(b)) {
    size_t total, available;
    a = place_aside(b);
    if (a == NULL) return NULL;
    /* Linux may kill a process that pins more memory than is free, so free memory is checked first.
     */
    backend_host_memory(&total, &available);
    if (size > available || cudaMallocHost(&a->memory, size) != cudaSuccess) {
      cudaGetLastError();
      a->memory = NULL;
      fail_aside(b, size, available);
    } else
      a->bytes = size;
  }
  if (cuda_stopped(b)) return NULL;
  a->used = true;
  return a->memory;
}

static void op_release_aside(backend *base, void *memory) {
  cuda_operation op(base, "release_aside");
  for (size_t i = 0; memory != NULL && i < op.b->n_aside; ++i)
    if (op.b->aside[i].memory == memory) op.b->aside[i].used = false;
}

/* --- copies --- */

/* True if p is in a put-aside block, which is host memory. */
static bool is_aside(const cuda_backend *b, const void *p) {
  const char *at = static_cast<const char *>(p);
  for (size_t i = 0; i < b->n_aside; ++i) {
    const char *memory = static_cast<const char *>(b->aside[i].memory);
    if (memory != NULL && at >= memory && at < memory + b->aside[i].bytes) return true;
  }
  return false;
}

/* Copies put-aside values to other host memory. The host makes the copy, which stream order does
 * not delay. So it first waits for the stream, which may still have to fill `from`. */
static void copy_aside(cuda_backend *b, void *to, const void *from, size_t bytes) {
  if (cuda_stopped(b) || CUDA_CALL(b, cudaStreamSynchronize(b->stream))) return;
  memcpy(to, from, bytes);
}

/* The next pinned buffer, after waiting for the copy that last used it; NULL after an error. */
static cuda_staging *staging_next(cuda_backend *b) {
  cuda_staging *s = &b->staging[b->next_staging++ % STAGINGS];
  if (s->pending && CUDA_CALL(b, cudaEventSynchronize(s->used))) return NULL;
  s->pending = false;
  return s;
}

static void op_upload(backend *base, void *to, const void *host, size_t bytes) {
  cuda_operation op(base, "upload", bytes);
  if (op.b->recording) cuda_fail(op.b, GL_EINTERNAL, "upload", "a graph is being recorded");
  for (size_t done = 0; done < bytes && !cuda_stopped(op.b);) {
    const size_t n = bytes - done < STAGING_BYTES ? bytes - done : STAGING_BYTES;
    cuda_staging *s = staging_next(op.b);
    if (s == NULL) return;
    memcpy(s->memory, static_cast<const char *>(host) + done, n);
    CUDA_CALL(op.b, cudaMemcpyAsync(static_cast<char *>(to) + done, s->memory, n,
                                    cudaMemcpyHostToDevice, op.b->stream));
    CUDA_CALL(op.b, cudaEventRecord(s->used, op.b->stream));
    s->pending = true;
    done += n;
  }
}

/* While the host copies out of one buffer, the device fills the other. */
static void op_download(backend *base, void *host, const void *from, size_t bytes) {
  cuda_operation op(base, "download", bytes);
  if (op.b->recording) cuda_fail(op.b, GL_EINTERNAL, "download", "a graph is being recorded");
  if (is_aside(op.b, from)) {
    copy_aside(op.b, host, from, bytes);
    return;
  }
  cuda_staging *full = NULL;
  size_t full_at = 0, full_bytes = 0;
  for (size_t asked = 0; (asked < bytes || full != NULL) && !cuda_stopped(op.b);) {
    cuda_staging *next = NULL;
    const size_t n = bytes - asked < STAGING_BYTES ? bytes - asked : STAGING_BYTES;
    if (n > 0) {
      next = staging_next(op.b);
      if (next == NULL) return;
      CUDA_CALL(op.b, cudaMemcpyAsync(next->memory, static_cast<const char *>(from) + asked, n,
                                      cudaMemcpyDefault, op.b->stream));
      CUDA_CALL(op.b, cudaEventRecord(next->used, op.b->stream));
      next->pending = true;
    }
    if (full != NULL) {
      if (CUDA_CALL(op.b, cudaEventSynchronize(full->used))) return;
      memcpy(static_cast<char *>(host) + full_at, full->memory, full_bytes);
    }
    full = next;
    full_at = asked;
    full_bytes = n;
    asked += n;
  }
}

static void op_copy(backend *base, void *to, const void *from, size_t bytes) {
  cuda_operation op(base, "copy", bytes);
  if (cuda_stopped(op.b) || bytes == 0) return;
  if (is_aside(op.b, from) && is_aside(op.b, to)) {
    if (op.b->recording) cuda_fail(op.b, GL_EINTERNAL, "copy", "a graph is being recorded");
    copy_aside(op.b, to, from, bytes);
    return;
  }
  CUDA_CALL(op.b, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, op.b->stream));
}

static void op_zero(backend *base, void *memory, size_t bytes) {
  cuda_operation op(base, "zero", bytes);
  if (cuda_stopped(op.b) || bytes == 0) return;
  CUDA_CALL(op.b, cudaMemsetAsync(memory, 0, bytes, op.b->stream));
}

/* --- start and end --- */

/* The device's pool, configured to keep all freed memory; NULL if the device has none. */
static void start_pool(cuda_backend *b) {
  uint64_t all = UINT64_MAX;
  int there = 0;
  if (CUDA_CALL(b, cudaDeviceGetAttribute(&there, cudaDevAttrMemoryPoolsSupported, b->device)) ||
      !there)
    return;
  if (CUDA_CALL(b, cudaDeviceGetDefaultMemPool(&b->pool, b->device))) return;
  CUDA_CALL(b, cudaMemPoolSetAttribute(b->pool, cudaMemPoolAttrReleaseThreshold, &all));
}

void cuda_memory_start(cuda_backend *b) {
  start_pool(b);
  for (int i = 0; i < STAGINGS && !cuda_stopped(b); ++i) {
    void *memory = NULL;
    if (CUDA_CALL(b, cudaMallocHost(&memory, STAGING_BYTES))) return;
    b->staging[i].memory = static_cast<char *>(memory);
    CUDA_CALL(b, cudaEventCreateWithFlags(&b->staging[i].used, cudaEventDisableTiming));
  }
}

void cuda_memory_end(cuda_backend *b) {
  for (int i = 0; i < STAGINGS; ++i) {
    if (b->staging[i].memory != NULL) cudaFreeHost(b->staging[i].memory);
    if (b->staging[i].used != NULL) cudaEventDestroy(b->staging[i].used);
  }
  for (size_t i = 0; i < b->n_aside; ++i)
    if (b->aside[i].memory != NULL) cudaFreeHost(b->aside[i].memory);
  free(b->aside);
  for (size_t i = 0; i < b->n_retired; ++i) cudaFree(b->retired[i]);
  free(b->retired);
  if (b->scratch != NULL) cudaFree(b->scratch);
}

CUDA_OPERATION(allocate)
CUDA_OPERATION(release)
CUDA_OPERATION(allocate_aside)
CUDA_OPERATION(release_aside)
CUDA_OPERATION(upload)
CUDA_OPERATION(download)
CUDA_OPERATION(copy)
CUDA_OPERATION(zero)
CUDA_OPERATION(memory)
