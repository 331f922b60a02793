/* Marks in the order of operations: a mark is an event of CUDA that keeps the time. */
#include "llm/backend/cuda/cuda.cuh"

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

/* No cuda_operation here: messages go on naming the operation before. */
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
