/* The CUDA backend itself: memory, copies between host and device, errors, recorded graphs. */
#include "llm/backend_cuda.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef GEPOLAB_EMULATE
#include <nvtx3/nvToolsExt.h>
#endif

/* --- errors --- */

cuda_operation::cuda_operation(backend *base, const char *name, size_t n0, size_t n1, size_t n2)
    : b(cuda_of(base)) {
  if (!cuda_stopped(b)) {
    b->operation = name;
    b->shape[0] = n0;
    b->shape[1] = n1;
    b->shape[2] = n2;
  }
#ifndef GEPOLAB_EMULATE
  nvtxRangePushA(name);
#endif
}

cuda_operation::~cuda_operation() {
#ifndef GEPOLAB_EMULATE
  nvtxRangePop();
#endif
}

void cuda_fail(cuda_backend *b, gl_status status, const char *call, const char *reason) {
  if (cuda_stopped(b)) return;
  gl_fail(&b->failed, status, "CUDA: %s failed in %s [%zu, %zu, %zu]: %s", call,
          b->operation != NULL ? b->operation : "the start", b->shape[0], b->shape[1], b->shape[2],
          reason);
}

static const char ADVICE[] =
    "lower world.micro_batch or world.slots, set world.recompute, or take a smaller model";

static void fail_memory(cuda_backend *b, size_t bytes) {
  size_t available = 0, total = 0;
  cudaGetLastError();
  cudaMemGetInfo(&available, &total);
  if (cuda_stopped(b)) return;
  gl_fail(&b->failed, GL_ENOMEM,
          "out of GPU memory: %s wants %.1f MiB, %.1f of %.1f MiB are free; %s", b->operation,
          (double)bytes / 1048576, (double)available / 1048576, (double)total / 1048576, ADVICE);
}

int cuda_failed(cuda_backend *b, cudaError_t e, const char *call) {
  if (e == cudaSuccess) return 0;
  cudaGetLastError();
  cuda_fail(b, e == cudaErrorMemoryAllocation ? GL_ENOMEM : GL_EIO, call, cudaGetErrorString(e));
  return 1;
}

/* Kernels run later than they are launched: what they did wrong shows here, after others. */
static gl_status op_status(backend *base, gl_error *err) {
  cuda_backend *b = cuda_of(base);
  if (!cuda_stopped(b)) {
    const cudaError_t e = cudaStreamSynchronize(b->stream);
    if (e != cudaSuccess)
      gl_fail(&b->failed, GL_EIO,
              "CUDA: a kernel failed at or before %s [%zu, %zu, %zu]: %s; CUDA_LAUNCH_BLOCKING=1 "
              "in the environment names it",
              b->operation != NULL ? b->operation : "the start", b->shape[0], b->shape[1],
              b->shape[2], cudaGetErrorString(e));
  }
  return cuda_stopped(b) ? gl_fail(err, b->failed.status, "%s", b->failed.text) : GL_OK;
}

/* --- memory --- */

static void *op_allocate(backend *base, size_t bytes) {
  cuda_operation op(base, "allocate", bytes);
  if (cuda_stopped(op.b)) return NULL;
  void *memory = NULL;
  const size_t size = bytes == 0 ? 1 : bytes;
  if (cudaMallocAsync(&memory, size, op.b->stream) != cudaSuccess) {
    fail_memory(op.b, bytes);
    return NULL;
  }
  CUDA_CALL(op.b, cudaMemsetAsync(memory, 0, size, op.b->stream));
  return memory;
}

static void op_release(backend *base, void *memory) {
  cuda_operation op(base, "release");
  if (memory != NULL) CUDA_CALL(op.b, cudaFreeAsync(memory, op.b->stream));
}

void *cuda_scratch(cuda_backend *b, size_t bytes) {
  if (cuda_stopped(b)) return NULL;
  if (bytes <= b->scratch_bytes) return b->scratch;
  if (b->scratch != NULL && b->graphs + b->recording > 0) {
    void **more =
        static_cast<void **>(realloc(b->retired, (b->n_retired + 1) * sizeof *b->retired));
    if (more == NULL) {
      cuda_fail(b, GL_ENOMEM, "realloc", "host memory is short");
      return NULL;
    }
    b->retired = more;
    b->retired[b->n_retired++] = b->scratch;
  } else if (b->scratch != NULL) {
    CUDA_CALL(b, cudaStreamSynchronize(b->stream));
    CUDA_CALL(b, cudaFree(b->scratch));
  }
  b->scratch = NULL;
  b->scratch_bytes = 0;
  /* cudaMalloc, not cudaMallocAsync: a recording in relaxed mode allows it. */
  const size_t size = bytes + bytes / 8;
  if (cudaMalloc(&b->scratch, size) != cudaSuccess) {
    b->scratch = NULL;
    fail_memory(b, size);
    return NULL;
  }
  b->scratch_bytes = size;
  return b->scratch;
}

/* The next pinned buffer, once the copy that last used it has been made. */
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

/* One buffer is copied out of while the device fills the other. */
static void op_download(backend *base, void *host, const void *from, size_t bytes) {
  cuda_operation op(base, "download", bytes);
  if (op.b->recording) cuda_fail(op.b, GL_EINTERNAL, "download", "a graph is being recorded");
  cuda_staging *full = NULL;
  size_t full_at = 0, full_bytes = 0;
  for (size_t asked = 0; (asked < bytes || full != NULL) && !cuda_stopped(op.b);) {
    cuda_staging *next = NULL;
    const size_t n = bytes - asked < STAGING_BYTES ? bytes - asked : STAGING_BYTES;
    if (n > 0) {
      next = staging_next(op.b);
      if (next == NULL) return;
      CUDA_CALL(op.b, cudaMemcpyAsync(next->memory, static_cast<const char *>(from) + asked, n,
                                      cudaMemcpyDeviceToHost, op.b->stream));
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
  CUDA_CALL(op.b, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, op.b->stream));
}

static void op_zero(backend *base, void *memory, size_t bytes) {
  cuda_operation op(base, "zero", bytes);
  if (cuda_stopped(op.b) || bytes == 0) return;
  CUDA_CALL(op.b, cudaMemsetAsync(memory, 0, bytes, op.b->stream));
}

static void op_memory(backend *base, size_t *total, size_t *available) {
  cuda_operation op(base, "memory");
  *total = *available = 0;
  if (!cuda_stopped(op.b)) CUDA_CALL(op.b, cudaMemGetInfo(available, total));
}

/* --- graphs --- */

struct backend_graph {
  cudaGraphExec_t executable;
};

static void op_graph_begin(backend *base) {
  cuda_operation op(base, "graph_begin");
  if (cuda_stopped(op.b)) return;
  if (CUDA_CALL(op.b, cudaStreamBeginCapture(op.b->stream, cudaStreamCaptureModeRelaxed))) return;
  op.b->recording = true;
}

/* NULL after a failure; the recording is ended in any case. */
static backend_graph *op_graph_end(backend *base) {
  cuda_operation op(base, "graph_end");
  cuda_backend *b = op.b;
  if (!b->recording) return NULL;
  b->recording = false;
  cudaGraph_t recorded = NULL;
  if (CUDA_CALL(b, cudaStreamEndCapture(b->stream, &recorded)) || recorded == NULL) return NULL;
  backend_graph *g = static_cast<backend_graph *>(calloc(1, sizeof *g));
  if (g == NULL) cuda_fail(b, GL_ENOMEM, "calloc", "host memory is short");
  if (!cuda_stopped(b)) CUDA_CALL(b, cudaGraphInstantiate(&g->executable, recorded, 0));
  cudaGraphDestroy(recorded);
  if (cuda_stopped(b)) {
    free(g);
    return NULL;
  }
  ++b->graphs;
  return g;
}

static void op_graph_run(backend *base, backend_graph *g) {
  cuda_operation op(base, "graph_run");
  if (!cuda_stopped(op.b)) CUDA_CALL(op.b, cudaGraphLaunch(g->executable, op.b->stream));
}

static void op_graph_free(backend *base, backend_graph *g) {
  if (g == NULL) return;
  cuda_operation op(base, "graph_free");
  CUDA_CALL(op.b, cudaStreamSynchronize(op.b->stream));
  CUDA_CALL(op.b, cudaGraphExecDestroy(g->executable));
  --op.b->graphs;
  free(g);
}

/* --- the backend --- */

static void op_free(backend *base) {
  cuda_backend *b = cuda_of(base);
  if (b->stream != NULL) cudaStreamSynchronize(b->stream);
  for (int i = 0; i < STAGINGS; ++i) {
    if (b->staging[i].memory != NULL) cudaFreeHost(b->staging[i].memory);
    if (b->staging[i].used != NULL) cudaEventDestroy(b->staging[i].used);
  }
  for (size_t i = 0; i < b->n_retired; ++i) cudaFree(b->retired[i]);
  free(b->retired);
  if (b->scratch != NULL) cudaFree(b->scratch);
  cuda_blas_free(b);
  if (b->stream != NULL) cudaStreamDestroy(b->stream);
  free(b);
}

static void fill_table(cuda_backend *b, number_type type) {
  backend_ops *ops = &b->ops;
  ops->allocate = op_allocate;
  ops->release = op_release;
  ops->upload = op_upload;
  ops->download = op_download;
  ops->copy = op_copy;
  ops->zero = op_zero;
  ops->status = op_status;
  ops->graph_begin = op_graph_begin;
  ops->graph_end = op_graph_end;
  ops->graph_run = op_graph_run;
  ops->graph_free = op_graph_free;
  ops->memory = op_memory;
  ops->free = op_free;
  cuda_rows_ops(ops, type);
  cuda_embed_ops(ops, type);
  cuda_product_ops(ops, type);
  cuda_attention_ops(ops, type);
  cuda_output_ops(ops, type);
  cuda_decode_ops(ops, type);
  cuda_sample_ops(ops, type);
  cuda_optimise_ops(ops, type);
  b->base.ops = ops;
  b->base.kind = BACKEND_CUDA;
  b->base.type = type;
  b->base.master = NUMBER_F32;
  b->base.element = type == NUMBER_BF16 ? 2 : 4;
  b->base.master_element = 4;
}

/* Memory that was released stays with this process: the next allocation takes no system call. */
static void keep_released_memory(cuda_backend *b) {
#ifndef GEPOLAB_EMULATE
  cudaMemPool_t pool;
  uint64_t all = UINT64_MAX;
  if (CUDA_CALL(b, cudaDeviceGetDefaultMemPool(&pool, 0))) return;
  CUDA_CALL(b, cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
#else
  (void)b;
#endif
}

static void start(cuda_backend *b) {
  cudaDeviceProp device;
  if (CUDA_CALL(b, cudaSetDevice(0)) || CUDA_CALL(b, cudaGetDeviceProperties(&device, 0))) return;
  snprintf(b->base.device, sizeof b->base.device, "%.90s, %d multiprocessors, %.0f GiB",
           device.name, device.multiProcessorCount, (double)device.totalGlobalMem / 1073741824.0);
  b->multiprocessors = device.multiProcessorCount;
  b->shared_bytes = device.sharedMemPerBlockOptin;
  if (device.major < 8) {
    cuda_fail(b, GL_EIO, "the start", "gepolab needs compute capability 8.0 or newer");
    return;
  }
  if (CUDA_CALL(b, cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking))) return;
  keep_released_memory(b);
  for (int i = 0; i < STAGINGS; ++i) {
    void *memory = NULL;
    if (CUDA_CALL(b, cudaMallocHost(&memory, STAGING_BYTES))) return;
    b->staging[i].memory = static_cast<char *>(memory);
    if (CUDA_CALL(b, cudaEventCreateWithFlags(&b->staging[i].used, cudaEventDisableTiming))) return;
  }
}

extern "C" gl_status backend_cuda_new(backend **out, number_type type, gl_error *err) {
  *out = NULL;
  if (type != NUMBER_F32 && type != NUMBER_BF16)
    return gl_fail(err, GL_EINPUT, "the CUDA backend computes in float32 or bfloat16");
  int devices = 0;
  const cudaError_t found = cudaGetDeviceCount(&devices);
  cudaGetLastError();
  if (found != cudaSuccess || devices == 0)
    return gl_fail(err, GL_EIO, "no CUDA device (%s)",
                   found == cudaSuccess ? "the driver lists none" : cudaGetErrorString(found));
  cuda_backend *b = static_cast<cuda_backend *>(calloc(1, sizeof *b));
  if (b == NULL) return gl_fail_memory(err, "the CUDA backend");
  start(b);
  gl_status status = cuda_stopped(b) ? gl_fail(err, b->failed.status, "%s", b->failed.text)
                                     : cuda_blas_new(b, err);
  if (status != GL_OK) {
    op_free(&b->base);
    return status;
  }
  fill_table(b, type);
  *out = &b->base;
  return GL_OK;
}
