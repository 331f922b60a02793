/* The CUDA backend: its state, recorded graphs, marks of time, making and freeing it. */
#include "llm/backend/cuda/cuda.cuh"
#include "llm/backend/cuda/open_cuda.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- state --- */

/* Kernels run after they were launched, so a kernel's error may appear only here, where the stream
 * is waited for. Then the message names the last operation, not the failed one. */
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

/* --- scratch memory --- */

/* Bytes for code that the driver loads when a kernel first runs, and for recorded graphs: an
 * estimate, not a measurement. The emulated device needs none. */
#ifdef GEPOLAB_EMULATE
static const size_t ALLOWANCE = 0;
#else
static const size_t ALLOWANCE = static_cast<size_t>(256) << 20;
#endif

static size_t larger_scratch(size_t a, size_t b) {
  return a > b ? a : b;
}

/* All operations share one block of scratch memory, which cuda_scratch allocates an eighth larger
 * than needed. So this is the maximum over operations, plus an eighth. 512 is the maximum number of
 * partial sums of cuda_parts(). */
static size_t op_scratch(const backend *base, const run_shape *s) {
  const cuda_backend *b = reinterpret_cast<const cuda_backend *>(base);
  size_t most = cuda_embed_scratch(s->rows);
  most = larger_scratch(
      most, s->rows > 0 ? 512 * larger_scratch(s->hidden, 2 * s->heads.dim) * sizeof(float) : 0);
  most = larger_scratch(most, cuda_attention_scratch(s->rows, s->heads, base->element));
  most = larger_scratch(most, cuda_output_scratch(b, s->rows, s->vocabulary, s->hidden));
  most = larger_scratch(most, cuda_cached_scratch(s->slots, s->capacity, s->heads));
  most = larger_scratch(most, cuda_product_rows_scratch(s, base->type));
  most = larger_scratch(most, cuda_sample_scratch(s->slots, s->vocabulary));
  most = larger_scratch(most, cuda_sample_truncated_scratch(s->slots, s->vocabulary));
  return most + most / 8 + ALLOWANCE;
}

/* --- graphs --- */

struct backend_graph {
  cudaGraphExec_t executable;
};

static void op_graph_begin(backend *base) {
  cuda_operation op(base, "graph_begin");
  assert(!op.b->recording);
  if (cuda_stopped(op.b)) return;
  if (CUDA_CALL(op.b, cudaStreamBeginCapture(op.b->stream, cudaStreamCaptureModeRelaxed))) return;
  op.b->recording = true;
}

/* Ends the recording in any case; returns NULL after an error. */
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
  cuda_free_retired(op.b);
  free(g);
}

/* --- the backend --- */

static void op_free(backend *base) {
  cuda_backend *b = cuda_of(base);
  if (b->stream != NULL) cudaStreamSynchronize(b->stream);
  cuda_memory_end(b);
  if (b->arrived != NULL) cudaFree(b->arrived);
  cuda_blas_free(b);
  if (b->stream != NULL) cudaStreamDestroy(b->stream);
  free(b);
}

CUDA_OPERATION(scratch)
CUDA_OPERATION(status)
CUDA_OPERATION(graph_begin)
CUDA_OPERATION(graph_end)
CUDA_OPERATION(graph_run)
CUDA_OPERATION(graph_free)
CUDA_OPERATION(free)

static void fill_operations(cuda_backend *b, number_type type) {
  backend_ops *ops = &b->ops;
#define OPERATION(result, name, arguments) ops->name = cuda_op_##name(type);
#define OPTIONAL_OPERATION OPERATION
#define HOST_OPERATION(result, name, arguments)
#include "llm/backend/operations.h"
  b->base.ops = ops;
  b->base.kind = BACKEND_CUDA;
  b->base.copies_shared = 1;
  b->base.type = type;
  b->base.master = NUMBER_F32;
  b->base.element = type == NUMBER_BF16 ? 2 : 4;
  b->base.master_element = 4;
}

/* Allocates the zeroed counters b->arrived. */
static void start_counters(cuda_backend *b) {
  const size_t bytes = (PRODUCT_ARRIVALS + ATTENTION_ARRIVALS) * sizeof *b->arrived;
  void *memory = NULL;
  if (CUDA_CALL(b, cudaMalloc(&memory, bytes))) return;
  b->arrived = static_cast<unsigned *>(memory);
  CUDA_CALL(b, cudaMemsetAsync(memory, 0, bytes, b->stream));
}

/* Makes stream, memory and counters. After an error, which is stored, some are missing. */
static void start_cuda(cuda_backend *b) {
  cudaDeviceProp device;
  if (CUDA_CALL(b, cudaSetDevice(b->device)) ||
      CUDA_CALL(b, cudaGetDeviceProperties(&device, b->device)))
    return;
  snprintf(b->base.device, sizeof b->base.device, "%.90s, %d multiprocessors, %.0f GiB",
           device.name, device.multiProcessorCount, (double)device.totalGlobalMem / 1073741824.0);
  b->multiprocessors = device.multiProcessorCount;
  b->wgmma = device.major == 9 && device.minor == 0;
  b->shared_bytes = device.sharedMemPerBlockOptin;
#ifndef GEPOLAB_EMULATE
  b->clusters = device.major >= 9;
#endif
  const char *early = getenv("GEPOLAB_CUDA_PDL");
  b->early = device.major >= 9 && (early == NULL || strcmp(early, "0") != 0);
  if (device.major < 8) {
    cuda_fail(b, GL_EIO, "the start", "gepolab needs compute capability 8.0 or newer");
    return;
  }
  if (CUDA_CALL(b, cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking))) return;
  cuda_memory_start(b);
  if (!cuda_stopped(b)) start_counters(b);
  if (!cuda_stopped(b)) cuda_output_start(b);
}

/* Sets *n to the number of devices; 0 if CUDA cannot report it, as without a driver. */
static cudaError_t count_devices(size_t *n) {
  int found = 0;
  const cudaError_t e = cudaGetDeviceCount(&found);
  cudaGetLastError();
  *n = e == cudaSuccess && found > 0 ? static_cast<size_t>(found) : 0;
  return e;
}

extern "C" size_t backend_cuda_devices(void) {
  size_t n;
  count_devices(&n);
  return n;
}

static gl_status check_device_place(backend_place place, gl_error *err) {
  size_t devices;
  const cudaError_t found = count_devices(&devices);
  if (devices == 0)
    return gl_fail(err, GL_EIO, "no CUDA device (%s)",
                   found == cudaSuccess ? "the driver lists none" : cudaGetErrorString(found));
  if (devices < place.devices || devices <= place.device)
    return gl_fail(err, GL_EIO,
                   "%zu CUDA devices were asked for and this machine shows %zu; lower "
                   "world.devices, or let CUDA_VISIBLE_DEVICES show more",
                   place.devices, devices);
  return GL_OK;
}

extern "C" gl_status backend_cuda_new(backend **out, number_type type, backend_place place,
                                      gl_error *err) {
  *out = NULL;
  if (type != NUMBER_F32 && type != NUMBER_BF16)
    return gl_fail(err, GL_EINPUT, "the CUDA backend computes in float32 or bfloat16");
  gl_status status = check_device_place(place, err);
  if (status != GL_OK) return status;
  cuda_backend *b = static_cast<cuda_backend *>(calloc(1, sizeof *b));
  if (b == NULL) return gl_fail_memory(err, "the CUDA backend");
  b->device = static_cast<int>(place.device);
  start_cuda(b);
  status = cuda_stopped(b) ? gl_fail(err, b->failed.status, "%s", b->failed.text)
                           : cuda_blas_new(b, err);
  if (status != GL_OK) {
    op_free(&b->base);
    return status;
  }
  fill_operations(b, type);
  *out = &b->base;
  return GL_OK;
}

/* --- marks --- */
/* A time mark is a CUDA event with timing. */

static cudaEvent_t event_of(backend_mark *m) {
  return reinterpret_cast<cudaEvent_t>(m);
}

static backend_mark *op_mark_new(backend *base) {
  cuda_operation op(base, "mark_new");
  cudaEvent_t e = NULL;
  if (cuda_stopped(op.b) || CUDA_CALL(op.b, cudaEventCreateWithFlags(&e, cudaEventDefault)))
    return NULL;
  return reinterpret_cast<backend_mark *>(e);
}

/* Without cuda_operation, so that messages still name the preceding operation. */
static void op_mark_set(backend *base, backend_mark *m) {
  cuda_backend *b = cuda_of(base);
  if (!cuda_stopped(b)) CUDA_CALL(b, cudaEventRecord(event_of(m), b->stream));
}

static double op_mark_seconds(backend *base, backend_mark *from, backend_mark *to) {
  cuda_backend *b = cuda_of(base);
  float milliseconds = 0;
  if (cuda_stopped(b) || CUDA_CALL(b, cudaEventSynchronize(event_of(to))) ||
      CUDA_CALL(b, cudaEventElapsedTime(&milliseconds, event_of(from), event_of(to))))
    return 0;
  return 1e-3 * static_cast<double>(milliseconds);
}

static void op_mark_free(backend *, backend_mark *m) {
  if (m != NULL) cudaEventDestroy(event_of(m));
}

CUDA_OPERATION(mark_new)
CUDA_OPERATION(mark_set)
CUDA_OPERATION(mark_seconds)
CUDA_OPERATION(mark_free)
