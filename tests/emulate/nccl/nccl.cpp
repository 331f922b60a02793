/* A library in the place of libnccl.so.2 on the emulated device: all-reduce of floats between the
 * threads of one process. A call returns at once, and its stream is busy until all ranks have made
 * the same call; then the ranks' numbers are added in their order. Ranks that call with different
 * sizes, and a communicator that is destroyed while its stream is busy, are mistakes that abort: on
 * a device they would hang. */
#include "nccl.h"

#include <deque>
#include <mutex>
#include <set>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

/* The emulated device's: `change` operations that nobody has finished are added to the stream. */
extern "C" void emulate_stream_busy(struct emulate_stream *s, int change);

namespace {
struct call {
  const float *from;
  float *to;
  size_t n;
  struct emulate_stream *stream;
};
struct group;
std::mutex lock; /* of everything below */
size_t sums, communicators;
struct {
  emulate_nccl_failure what;
  int rank;
} fails;
} // namespace

struct ncclComm {
  group *all;
  int rank;
  ncclResult_t error;
  std::deque<call> calls; /* that wait for other ranks */
};

namespace {
struct group {
  std::vector<ncclComm *> member;
  size_t left; /* members not yet destroyed or aborted */
};

[[noreturn]] void die(const char *what) {
  fprintf(stderr, "NCCL on the emulated device: %s\n", what);
  abort();
}

/* Makes the sums that all ranks of the group have called for. */
void add_up(group *g) {
  for (;;) {
    for (const ncclComm *c : g->member)
      if (c == nullptr || c->error != ncclSuccess || c->calls.empty()) return;
    const size_t n = g->member[0]->calls.front().n;
    for (const ncclComm *c : g->member)
      if (c->calls.front().n != n) die("ranks sum arrays of different sizes");
    for (size_t i = 0; i < n; ++i) {
      float sum = 0;
      for (const ncclComm *c : g->member) sum += c->calls.front().from[i];
      for (const ncclComm *c : g->member) c->calls.front().to[i] = sum;
    }
    for (ncclComm *c : g->member) {
      emulate_stream_busy(c->calls.front().stream, -1);
      c->calls.pop_front();
    }
    ++sums;
  }
}

void leave(ncclComm *c) {
  group *g = c->all;
  for (const call &k : c->calls) emulate_stream_busy(k.stream, -1);
  g->member[(size_t)c->rank] = nullptr;
  delete c;
  --communicators;
  if (--g->left == 0) delete g;
}
} // namespace

ncclResult_t ncclCommInitAll(ncclComm_t *comm, int n, const int *device) {
  const std::lock_guard<std::mutex> alone(lock);
  if (n < 1 || comm == nullptr) return ncclInvalidArgument;
  if (std::set<int>(device, device + n).size() != (size_t)n) return ncclInvalidUsage;
  if (fails.what == NCCL_FAILS_INIT) return ncclInternalError;
  group *g = new group{{}, (size_t)n};
  for (int rank = 0; rank < n; ++rank) {
    comm[rank] = new ncclComm{g, rank, ncclSuccess, {}};
    g->member.push_back(comm[rank]);
  }
  communicators += (size_t)n;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::lock_guard<std::mutex> alone(lock);
  if (!comm->calls.empty()) die("a communicator is destroyed while its stream is busy");
  leave(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard<std::mutex> alone(lock);
  leave(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  const std::lock_guard<std::mutex> alone(lock);
  *error = comm->error;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess         ? "no error"
         : result == ncclInternalError ? "internal error"
         : result == ncclRemoteError   ? "remote process exited or there was a network error"
                                       : "invalid usage";
}
const char *ncclGetLastError(ncclComm_t) {
  return "";
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, struct emulate_stream *stream) {
  const std::lock_guard<std::mutex> alone(lock);
  if (type != ncclFloat32 || operation != ncclSum) return ncclInvalidArgument;
  const bool mine = fails.rank == comm->rank;
  if (mine && fails.what == NCCL_FAILS_CALL) return ncclInternalError;
  if (mine && fails.what == NCCL_FAILS_LATER) comm->error = ncclRemoteError;
  comm->calls.push_back({(const float *)from, (float *)to, n, stream});
  emulate_stream_busy(stream, 1);
  add_up(comm->all);
  return ncclSuccess;
}

void emulate_nccl_fail(enum emulate_nccl_failure what, int rank) {
  const std::lock_guard<std::mutex> alone(lock);
  fails = {what, rank};
}
size_t emulate_nccl_sums(void) {
  return sums;
}
size_t emulate_nccl_communicators(void) {
  return communicators;
}
