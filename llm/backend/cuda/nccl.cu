/* All-reduce over CUDA devices by NCCL. Compiled if the compiler finds nccl.h. The library is
 * opened when a learner has several devices; nothing is linked.
 *
 * Before each sum the ranks wait for each other on the host, each after its own device has finished
 * all work without an error. So an error of a rank is known before any device waits for another one
 * inside NCCL. During a sum each rank checks for errors of its communicator and for an abort, and
 * then aborts its communicator on its own thread, because NCCL does not allow another thread to do
 * it safely. NCCL sums in the order of its rings or trees, which is the same in every run on one
 * machine. */
#include "llm/backend/cuda/cuda.cuh"
#include "llm/backend/cuda/open_cuda.h"

extern "C" {
#include "llm/backend/collective.h"
}

#if defined(__has_include)
#if __has_include(<nccl.h>) /* the emulated device has its own, in tests/emulate/nccl */
#define HAS_NCCL
#endif
#endif

#ifndef HAS_NCCL

extern "C" gl_status collective_nccl_new(collective **out, backend *const *, size_t, gl_error *) {
  *out = NULL;
  return GL_OK;
}

#else

#include <dlfcn.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The library functions used, looked up by name. */
#define NCCL_FUNCTIONS(F)                                                                          \
  F(ncclAllReduce)                                                                                 \
  F(ncclCommAbort)                                                                                 \
  F(ncclCommDestroy)                                                                               \
  F(ncclCommGetAsyncError)                                                                         \
  F(ncclCommInitAll)                                                                               \
  F(ncclGetErrorString)                                                                            \
  F(ncclGetLastError)

struct nccl_collective {
  collective base; /* first member, so a collective * can be cast to nccl_collective * */
#define NCCL_MEMBER(f) decltype(&::f) f;
  NCCL_FUNCTIONS(NCCL_MEMBER)
  ncclComm_t *comm; /* [n]; NULL after it was aborted */
};

/* Numbers per call of ncclAllReduce; a large array needs several calls. */
static const size_t BUCKET = static_cast<size_t>(64) << 20;

static nccl_collective *nccl_of(collective *c) {
  return reinterpret_cast<nccl_collective *>(c);
}

/* --- one sum --- */

/* Returns an error that names the failed call and the rank, and aborts the rank's communicator. */
static gl_status nccl_fail(nccl_collective *c, size_t rank, const char *call, const char *why,
                           gl_error *err) {
  const gl_status status =
      gl_fail(err, GL_EIO, "NCCL: %s failed on rank %zu of %zu: %s", call, rank, c->base.n, why);
  if (c->comm[rank] != NULL) c->ncclCommAbort(c->comm[rank]);
  c->comm[rank] = NULL;
  return status;
}

/* Enqueues, on the rank's stream, the sum over ranks of memory, n floats, in place. */
static gl_status nccl_launch(nccl_collective *c, size_t rank, void *memory, size_t n,
                             gl_error *err) {
  const cuda_backend *b = cuda_of(c->base.member[rank]);
  float *x = static_cast<float *>(memory);
  for (size_t at = 0; at < n; at += BUCKET) {
    const size_t k = n - at < BUCKET ? n - at : BUCKET;
    const ncclResult_t done =
        c->ncclAllReduce(x + at, x + at, k, ncclFloat32, ncclSum, c->comm[rank], b->stream);
    if (done != ncclSuccess)
      return nccl_fail(c, rank, "ncclAllReduce", c->ncclGetErrorString(done), err);
  }
  return GL_OK;
}

/* Waits for the rank's stream, checking for errors and an abort every 20 microseconds. */
static gl_status wait(nccl_collective *c, size_t rank, gl_error *err) {
  const cuda_backend *b = cuda_of(c->base.member[rank]);
  const struct timespec pause = {0, 20000};
  for (;;) {
    const cudaError_t there = cudaStreamQuery(b->stream);
    if (there == cudaSuccess) return GL_OK;
    if (there != cudaErrorNotReady)
      return nccl_fail(c, rank, "cudaStreamQuery", cudaGetErrorString(there), err);
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = c->ncclCommGetAsyncError(c->comm[rank], &state);
    if (asked != ncclSuccess || (state != ncclSuccess && state != ncclInProgress))
      return nccl_fail(c, rank, "ncclAllReduce",
                       c->ncclGetErrorString(asked != ncclSuccess ? asked : state), err);
    if (collective_is_aborted(&c->base))
      return nccl_fail(c, rank, "ncclAllReduce", "another device failed", err);
    nanosleep(&pause, NULL);
  }
}

static gl_status nccl_sum(collective *base, size_t rank, void *memory, size_t n, gl_error *err) {
  nccl_collective *c = nccl_of(base);
  backend *b = base->member[rank];
  gl_status status = b->ops->status(b, err);
  if (status == GL_OK && c->comm[rank] == NULL)
    status = gl_fail(err, GL_EIO,
                     "NCCL: an earlier sum over devices failed; start again from the "
                     "last checkpoint");
  if (status == GL_OK) status = collective_meet(base, err);
  if (status == GL_OK) status = nccl_launch(c, rank, memory, n, err);
  return status == GL_OK ? wait(c, rank, err) : status;
}

/* --- start and end --- */

static void nccl_free(collective *base) {
  nccl_collective *c = nccl_of(base);
  for (size_t rank = 0; c->comm != NULL && rank < base->n; ++rank)
    if (c->comm[rank] != NULL) c->ncclCommDestroy(c->comm[rank]);
  free(c->comm);
  collective_fini(base); /* the library stays open: its threads may still be ending */
  free(c);
}

static const collective_ops nccl_ops = {"NCCL", nccl_sum, nccl_free};

/* Looks up all NCCL_FUNCTIONS in the library. Returns 0 if it lacks one. */
static int find_nccl_functions(nccl_collective *c, void *library) {
#define NCCL_FIND(f)                                                                               \
  c->f = reinterpret_cast<decltype(&::f)>(dlsym(library, #f));                                     \
  if (c->f == NULL) return 0;
  NCCL_FUNCTIONS(NCCL_FIND)
  return 1;
}

/* Makes the communicators of all ranks from this thread, and restores the thread's current device.
 */
static gl_status nccl_connect(nccl_collective *c, gl_error *err) {
  const size_t n = c->base.n;
  c->comm = static_cast<ncclComm_t *>(calloc(n, sizeof *c->comm));
  int *device = static_cast<int *>(calloc(n, sizeof *device)), before = 0;
  if (c->comm == NULL || device == NULL) {
    free(device);
    return gl_fail_memory(err, "NCCL");
  }
  for (size_t rank = 0; rank < n; ++rank) device[rank] = cuda_of(c->base.member[rank])->device;
  cudaGetDevice(&before);
  const ncclResult_t made = c->ncclCommInitAll(c->comm, static_cast<int>(n), device);
  cudaSetDevice(before);
  free(device);
  if (made == ncclSuccess) return GL_OK;
  return gl_fail(err, GL_EIO, "NCCL: ncclCommInitAll failed for %zu devices: %s (%s)", n,
                 c->ncclGetErrorString(made), c->ncclGetLastError(NULL));
}

extern "C" gl_status collective_nccl_new(collective **out, backend *const *member, size_t n,
                                         gl_error *err) {
  *out = NULL;
  void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) library = dlopen(GEPOLAB_CUDA_LIB "/libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return GL_OK;
  nccl_collective *c = static_cast<nccl_collective *>(calloc(1, sizeof *c));
  if (c == NULL) return gl_fail_memory(err, "NCCL");
  gl_status status = collective_init(&c->base, &nccl_ops, member, n, err);
  const int known = status == GL_OK && find_nccl_functions(c, library);
  if (known) status = nccl_connect(c, err);
  if (known && status == GL_OK)
    *out = &c->base;
  else
    nccl_free(&c->base);
  return status;
}

#endif
