/* NCCL's interface, as far as llm/backend/cuda/nccl.cu uses it; values as in NCCL 2. The library is
 * nccl.cpp. */
#ifndef GEPOLAB_TESTS_EMULATE_NCCL_H
#define GEPOLAB_TESTS_EMULATE_NCCL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct emulate_stream;
typedef struct ncclComm *ncclComm_t;
typedef enum {
  ncclSuccess = 0,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
} ncclResult_t;
typedef enum { ncclSum = 0 } ncclRedOp_t;
typedef enum { ncclFloat32 = 7 } ncclDataType_t;

ncclResult_t ncclCommInitAll(ncclComm_t *comm, int n, const int *device);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, struct emulate_stream *stream);

/* For tests, by dlsym. What fails from now on: making communicators, the call of this rank, or its
 * sum after the call. The sums made so far; communicators not yet destroyed or aborted. */
enum emulate_nccl_failure { NCCL_FAILS_NOT, NCCL_FAILS_INIT, NCCL_FAILS_CALL, NCCL_FAILS_LATER };
void emulate_nccl_fail(enum emulate_nccl_failure what, int rank);
size_t emulate_nccl_sums(void);
size_t emulate_nccl_communicators(void);

#ifdef __cplusplus
}
#endif
#endif
