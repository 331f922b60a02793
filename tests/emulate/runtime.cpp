/* The CUDA runtime behind cuda_runtime.h: memory, streams, events, recorded graphs, two devices.
 * What is asked of a stream is done at once, but for copies into pinned memory of the host: they
 * arrive when they are waited for. */
#include "cuda_runtime.h"

#include "counts.h"
#include "race.h"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <vector>

/* --- graphs: the calls that were recorded, in their order --- */

struct recorded_call {
  emulate_launch launch; /* name NULL: a copy */
  emulate_call call;
};
struct emulate_graph {
  std::vector<recorded_call> calls;
  cudaStream_t stream;
  const char *broken; /* the rule of recording that was broken; NULL: none */
};

/* What the thread records. Only its stream may be used meanwhile; calls that wait, free memory or
 * allocate in the order of the stream end the recording with an error, like most of them on a
 * device (in relaxed mode a device records allocations and lets memory be freed; graphs that do so
 * are not wanted here). */
static thread_local emulate_graph *recording;
static uint64_t allocated_recording;

static cudaError_t break_recording(const char *rule) {
  if (recording->broken == nullptr) recording->broken = rule;
  return cudaErrorStreamCaptureUnsupported;
}

static void add(const emulate_launch &launch, emulate_call call) {
  call.closure = call.copy(call.closure);
  recording->calls.push_back({launch, call});
}

bool emulate_record(const emulate_launch &l, const emulate_call &call) {
  if (recording == nullptr) return false;
  add(l, call);
  return true;
}

/* --- devices --- */

enum { devices = 2 };
static thread_local int current;

struct emulate_stream {
  uint64_t order;
  int device;
  int busy; /* sums over devices that wait for other devices (nccl/nccl.cpp); atomic */
};

/* The lock of memory, streams and kernels. */
static std::recursive_mutex everything;
typedef std::lock_guard<std::recursive_mutex> alone;

void emulate_enter() {
  everything.lock();
}
void emulate_leave() {
  everything.unlock();
}

/* Whether the stream is of another device. It must be the one that is recorded, if one is. There
 * is no legacy default stream: nothing would order it with the others. */
static bool is_elsewhere(cudaStream_t s) {
  if (s == nullptr) {
    fprintf(stderr, "the legacy default stream is used\n");
    abort();
  }
  if (__atomic_load_n(&s->busy, __ATOMIC_ACQUIRE) != 0) {
    fprintf(stderr, "a stream is used before it was waited for after a sum over devices\n");
    abort();
  }
  if (recording != nullptr && s != recording->stream)
    break_recording("another stream is used while one is recorded");
  return s->device != current;
}

cudaError_t cudaGetDeviceCount(int *n) {
  *n = devices;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= devices) return cudaErrorInvalidValue;
  current = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
  *device = current;
  return cudaSuccess;
}

/* --- memory --- */

/* Bytes of the device. The pool reserves memory of the device; what is released into it stays
 * reserved until the pool is trimmed. plain: from cudaMalloc; pooled: in use, of what is reserved.
 */
static struct {
  size_t limit, plain, reserved, pooled, peak, blocks, host_blocks;
} memory = {SIZE_MAX, 0, 0, 0, 0, 0, 0};

struct emulate_pool {
  int only;
};
static emulate_pool the_pool;
static bool has_pools = true;

/* What stands before each allocation, which has the alignment that CUDA gives. */
struct allocation {
  void *raw;
  size_t bytes;
  bool pooled;
};
enum { header = 256 };
static std::map<const char *, size_t> blocks; /* address and bytes */

/* The block that p is in, or NULL. */
static const char *block_of(const std::map<const char *, size_t> &all, const void *p) {
  auto after = all.upper_bound((const char *)p);
  if (after == all.begin()) return nullptr;
  --after;
  return (const char *)p < after->first + after->second ? after->first : nullptr;
}
const void *emulate_allocation(const void *p) {
  return block_of(blocks, p);
}

/* Bytes that the device has, and those that neither an allocation nor the pool holds. */
static size_t all_of_it() {
  return memory.limit == SIZE_MAX ? (size_t)64 << 30 : memory.limit;
}
static size_t unreserved() {
  const size_t held = memory.plain + memory.reserved, all = all_of_it();
  return all > held ? all - held : 0;
}

/* Allocates, from the pool or plainly; and releases. */
static cudaError_t take(void **p, size_t bytes, bool pooled) {
  const alone lock(everything);
  *p = nullptr;
  if (bytes > all_of_it()) return cudaErrorMemoryAllocation;
  const size_t whole = memory.pooled + bytes;
  const size_t more = !pooled ? bytes : whole > memory.reserved ? whole - memory.reserved : 0;
  if (more > unreserved()) return cudaErrorMemoryAllocation;
  const bool zeros = emulate_has_shapes_only(); /* pages of which are never touched cost nothing */
  void *raw = zeros ? calloc(1, bytes + 2 * header) : nullptr;
  if (!zeros && posix_memalign(&raw, header, bytes + header) != 0) raw = nullptr;
  if (raw == nullptr) return cudaErrorMemoryAllocation;
  *p = (void *)(((uintptr_t)raw + 2 * header - 1) / header * header);
  ((allocation *)*p)[-1] = {raw, bytes, pooled};
  if (!zeros) memset(*p, 0xff, bytes);
  (pooled ? memory.pooled : memory.plain) += bytes;
  if (pooled) memory.reserved += more;
  if (memory.plain + memory.pooled > memory.peak) memory.peak = memory.plain + memory.pooled;
  ++memory.blocks;
  allocated_recording += recording != nullptr;
  blocks[(const char *)*p] = bytes;
  return cudaSuccess;
}

static cudaError_t give(void *p, bool pooled) {
  if (p == nullptr) return cudaSuccess;
  const alone lock(everything);
  const allocation a = ((allocation *)p)[-1];
  if (a.pooled != pooled) return cudaErrorInvalidValue;
  if (recording != nullptr) return break_recording("memory is freed while a graph is recorded");
  (pooled ? memory.pooled : memory.plain) -= a.bytes;
  race_forget(p, a.bytes);
  --memory.blocks;
  blocks.erase((const char *)p);
  free(a.raw);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t bytes) {
  return take(p, bytes, false);
}
cudaError_t cudaFree(void *p) {
  return give(p, false);
}
cudaError_t cudaMallocAsync(void **p, size_t bytes, cudaStream_t s) {
  if (!has_pools) return cudaErrorNotSupported;
  if (recording != nullptr)
    return break_recording("memory is allocated in the order of a stream that is recorded");
  return is_elsewhere(s) ? cudaErrorInvalidResourceHandle : take(p, bytes, true);
}
cudaError_t cudaFreeAsync(void *p, cudaStream_t s) {
  return is_elsewhere(s) ? cudaErrorInvalidResourceHandle : give(p, true);
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int) {
  *value = has_pools;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
  if (!has_pools) return cudaErrorNotSupported;
  *pool = &the_pool;
  return device == current ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *) {
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr what, void *value) {
  const alone lock(everything);
  *(uint64_t *)value = what == cudaMemPoolAttrReservedMemCurrent ? memory.reserved : memory.pooled;
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t keep) {
  const alone lock(everything);
  const size_t least = memory.pooled > keep ? memory.pooled : keep;
  if (memory.reserved > least) memory.reserved = least;
  return cudaSuccess;
}
/* --- pinned memory of the host, and copies into it that are still under way --- */

struct late_copy {
  char *to;
  std::vector<char> bytes;
  cudaStream_t stream;
  uint64_t number;
};
static std::vector<late_copy> late;
static std::map<const char *, size_t> pinned; /* address and bytes */
static uint64_t copies;

static bool is_pinned(const void *p) {
  return block_of(pinned, p) != nullptr;
}

/* The stream's copies up to this number arrive. */
static void arrive(cudaStream_t s, uint64_t last) {
  const alone lock(everything);
  std::vector<late_copy> others;
  for (late_copy &c : late)
    if (c.stream == s && c.number <= last)
      memcpy(c.to, c.bytes.data(), c.bytes.size());
    else
      others.push_back(c);
  late.swap(others);
}

cudaError_t cudaMallocHost(void **p, size_t bytes) {
  const alone lock(everything);
  *p = malloc(bytes);
  if (*p == nullptr) return cudaErrorMemoryAllocation;
  memset(*p, 0xff, bytes);
  pinned[(const char *)*p] = bytes;
  ++memory.host_blocks;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void *p) {
  const alone lock(everything);
  for (const late_copy &c : late)
    if (p != nullptr && c.to >= (char *)p && c.to < (char *)p + pinned[(const char *)p]) {
      fprintf(stderr, "pinned memory is freed while a copy to it is under way\n");
      abort();
    }
  memory.host_blocks -= p != nullptr;
  pinned.erase((const char *)p);
  free(p);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
  const alone lock(everything);
  *total = all_of_it();
  *available = unreserved();
  return cudaSuccess;
}

struct copy_call {
  void *to;
  const void *from;
  size_t bytes;
  int value; /* -1: a copy */
};

/* What a kernel would need megabytes for is zero, and stays so, where only shapes are run. */
static void run_copy(const void *c) {
  const copy_call *m = (const copy_call *)c;
  count_copy(m->to, m->value < 0 ? m->from : nullptr);
  if (emulate_has_shapes_only() && m->bytes > (size_t)1 << 20) return;
  if (m->value >= 0)
    memset(m->to, m->value, m->bytes);
  else
    memmove(m->to, m->from, m->bytes);
}

static cudaError_t copy_or_set(const copy_call &m) {
  if (recording == nullptr) {
    run_copy(&m);
    return cudaSuccess;
  }
  emulate_call call = {run_copy, [](void *c) { delete (copy_call *)c; },
                       [](const void *c) -> void * { return new copy_call(*(const copy_call *)c); },
                       &m};
  add({}, call);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t s) {
  if (is_elsewhere(s)) return cudaErrorInvalidResourceHandle;
  const alone lock(everything);
  if (recording != nullptr) return copy_or_set({to, from, bytes, -1});
  if (is_pinned(to) && !is_pinned(from)) {
    const char *begin = (const char *)from;
    late.push_back({(char *)to, std::vector<char>(begin, begin + bytes), s, copies++});
    return cudaSuccess;
  }
  if (!is_pinned(to)) arrive(s, copies); /* what it reads was perhaps copied there before */
  return copy_or_set({to, from, bytes, -1});
}
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s) {
  return is_elsewhere(s) ? cudaErrorInvalidResourceHandle
                         : copy_or_set({p, nullptr, bytes, value & 0xff});
}

/* --- streams, events, graphs --- */

const char *cudaGetErrorString(cudaError_t e) {
  return e == cudaSuccess ? "no error" : e == cudaErrorMemoryAllocation ? "out of memory" : "error";
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) {
  memset((void *)p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "emulated device");
  p->totalGlobalMem = (size_t)64 << 30;
  p->sharedMemPerBlockOptin = 227 << 10;
  p->multiProcessorCount = 4;
  p->major = 9;
  return cudaSuccess;
}
uint64_t emulate_order_of(emulate_stream *s) {
  if (is_elsewhere(s)) {
    fprintf(stderr, "a kernel is launched on a stream of device %d by a thread of device %d\n",
            s->device, current);
    abort();
  }
  return s->order;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) {
  static uint64_t made;
  const alone lock(everything);
  *s = (emulate_stream *)malloc(sizeof **s);
  if (*s == nullptr) return cudaErrorMemoryAllocation;
  (*s)->order = made++;
  (*s)->device = current;
  (*s)->busy = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  free(s);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  if (recording != nullptr) return break_recording("a stream is waited for while it is recorded");
  while (cudaStreamQuery(s) != cudaSuccess) sched_yield();
  arrive(s, copies);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
  return __atomic_load_n(&s->busy, __ATOMIC_ACQUIRE) != 0 ? cudaErrorNotReady : cudaSuccess;
}
extern "C" void emulate_stream_busy(cudaStream_t s, int change) {
  __atomic_add_fetch(&s->busy, change, __ATOMIC_ACQ_REL);
}

/* What the stream had been asked to do when the event was recorded, and when that was. */
struct emulate_event {
  cudaStream_t stream;
  uint64_t copies;
  double set_clock, host_clock; /* in milliseconds: the one that tests move, and the host's */
  bool recorded, in_graph;      /* in_graph: by a recording, of which it is no point in time */
};
static double set_clock;

cudaError_t cudaEventCreate(cudaEvent_t *e) {
  return cudaEventCreateWithFlags(e, cudaEventDefault);
}
/* The time that tests made to pass between them; where it is none the host's, since kernels have
 * run when their launch returns. */
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
  if (!from->recorded || !to->recorded || from->in_graph || to->in_graph)
    return cudaErrorInvalidResourceHandle;
  const double set = to->set_clock - from->set_clock;
  *milliseconds = (float)(set > 0 ? set : to->host_clock - from->host_clock);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned) {
  *e = (emulate_event *)calloc(1, sizeof **e);
  return *e == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  free(e);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  if (is_elsewhere(s)) return cudaErrorInvalidResourceHandle;
  const alone lock(everything);
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  *e = {s,         copies,
        set_clock, 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec,
        true,      recording != nullptr};
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  if (recording != nullptr) return break_recording("an event is waited for during a recording");
  if (e->in_graph) return cudaErrorInvalidResourceHandle;
  arrive(e->stream, e->copies);
  return cudaSuccess;
}

/* --- shared memory of kernels --- */

enum { shared_without_asking = 48 << 10 };
static size_t static_shared;
static uint64_t shared_asked;
static std::map<const void *, size_t> shared_allowed;

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *) {
  out->sharedSizeBytes = static_shared;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute, int value) {
  const alone lock(everything);
  if (value < 0 || static_shared + (size_t)value > 227 << 10) return cudaErrorInvalidValue;
  shared_allowed[function] = (size_t)value;
  ++shared_asked;
  return cudaSuccess;
}
cudaError_t emulate_shared_refused(const void *function, size_t shared) {
  const alone lock(everything);
  const auto allowed = shared_allowed.find(function);
  const bool fits = static_shared + shared <= shared_without_asking ||
                    (allowed != shared_allowed.end() && shared <= allowed->second);
  return fits ? cudaSuccess : cudaErrorInvalidValue;
}

extern "C" const char __executable_start[]; /* the linker's */

void emulate_launched(const void *function, dim3 grid, dim3 block, size_t shared) {
  enum { sizes = 6 };
  static const char *const file = getenv("GEPOLAB_EMULATED_LAUNCHES");
  static std::map<const void *, std::array<size_t, sizes>> greatest;
  if (file == nullptr) return;
  const alone lock(everything);
  const auto allowed = shared_allowed.find(function);
  const size_t now[sizes] = {(size_t)block.x * block.y * block.z,
                             shared,
                             allowed == shared_allowed.end() ? 0 : allowed->second,
                             grid.x,
                             grid.y,
                             grid.z};
  std::array<size_t, sizes> &most = greatest[function];
  bool grows = false;
  for (int i = 0; i < sizes; ++i) {
    grows |= now[i] > most[i];
    most[i] = std::max(now[i], most[i]);
  }
  if (!grows) return;
  /* one write, so that lines of several processes do not mix */
  char line[160];
  const int length = snprintf(line, sizeof line, "%zx\t%zu\t%zu\t%zu\t%zu\t%zu\t%zu\n",
                              (size_t)((const char *)function - __executable_start), most[0],
                              most[1], most[2], most[3], most[4], most[5]);
  const int to = open(file, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (to < 0 || write(to, line, (size_t)length) != length || close(to) != 0) abort();
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) {
  if (recording != nullptr || is_elsewhere(s)) return cudaErrorInvalidValue;
  recording = new emulate_graph{{}, s, nullptr};
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g) {
  *g = recording;
  if (recording == nullptr || s != recording->stream) return cudaErrorInvalidValue;
  recording = nullptr;
  if ((*g)->broken == nullptr) return cudaSuccess;
  fprintf(stderr, "a recording is refused: %s\n", (*g)->broken);
  cudaGraphDestroy(*g);
  *g = nullptr;
  return cudaErrorStreamCaptureInvalidated;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long) {
  *out = new emulate_graph(*g);
  g->calls.clear(); /* they now belong to the executable graph */
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s) {
  if (is_elsewhere(s)) return cudaErrorInvalidResourceHandle;
  const alone lock(everything);
  count_graph(true);
  for (const recorded_call &c : g->calls)
    if (c.launch.name == nullptr)
      run_copy(c.call.closure);
    else
      emulate_launch_kernel(c.launch, c.call);
  count_graph(false);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  for (const recorded_call &c : g->calls) c.call.drop((void *)c.call.closure);
  delete g;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g) {
  return cudaGraphDestroy(g);
}

/* --- control --- */

void emulate_pools(int there) {
  has_pools = there != 0;
}
void emulate_static_shared(size_t bytes) {
  static_shared = bytes;
  shared_allowed.clear();
}
uint64_t emulate_shared_asked(void) {
  return shared_asked;
}

void emulate_time_passes(double milliseconds) {
  const alone lock(everything);
  set_clock += milliseconds;
}

void emulate_memory_limit(size_t bytes) {
  cudaMemPoolTrimTo(&the_pool, 0);
  memory.limit = bytes;
}
size_t emulate_memory_peak(void) {
  const size_t peak = memory.peak;
  memory.peak = memory.plain + memory.pooled;
  return peak;
}
size_t emulate_host_blocks(void) {
  return memory.host_blocks;
}
size_t emulate_allocations(void) {
  return memory.blocks;
}
uint64_t emulate_allocated_recording(void) {
  return allocated_recording;
}
