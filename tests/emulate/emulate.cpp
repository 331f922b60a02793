/* The fibers behind cuda_runtime.h: how the threads of a block run on one host thread. For tests
 * only. */
#include "cuda_runtime.h"

#include "counts.h"
#include "race.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

/* --- fibers --- */

/* A context is a fiber that does not run: its stack pointer, with the registers that the calling
 * convention keeps lying on its stack. */
#if defined(__x86_64__)
extern "C" void emulate_switch(void **from, void *to);
asm(".text\n.globl emulate_switch\n.type emulate_switch, @function\nemulate_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
    ".size emulate_switch, .-emulate_switch\n");
typedef void *context;

/* The stack of a fiber that will enter `main`, aligned as at a call. */
static context context_new(char *stack, size_t bytes, void (*main)()) {
  void **top = (void **)(stack + bytes);
  *--top = nullptr; /* main's caller: none */
  *--top = (void *)main;
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  return top;
}
static void context_switch(context *from, context *to) {
  emulate_switch(from, *to);
}
#else
#include <ucontext.h>
typedef ucontext_t context;
static context context_new(char *stack, size_t bytes, void (*main)()) {
  context c;
  getcontext(&c);
  c.uc_stack.ss_sp = stack;
  c.uc_stack.ss_size = bytes;
  c.uc_link = nullptr;
  makecontext(&c, main, 0);
  return c;
}
static void context_switch(context *from, context *to) {
  swapcontext(from, to);
}
#endif

enum { most_threads = 1024, most_warps = most_threads / 32, stack_bytes = 128 << 10 };

struct fiber {
  context at;
  emulate_place place;
  char *stack;
  void *fake_stack; /* AddressSanitizer's */
  unsigned number;
  bool ended;
  bool at_barrier;
  bool at_exchange;
  bool waited; /* for the kernels before */
};

/* A warp's exchanges. There are two sets of values, for even and odd rounds: a lane that is ahead
 * writes the next round's set while others still read this one's, and cannot get further ahead than
 * that. */
struct warp {
  unsigned char values[2][32 * 64];
  unsigned arrived, wanted, round;
  const char *kind;
};

static struct {
  fiber fibers[most_threads], *scheduled[most_threads]; /* by number; in the order they run */
  warp warps[most_warps];
  fiber *running;
  context scheduler;
  void *scheduler_fake_stack;
  const void *scheduler_stack;
  size_t scheduler_stack_bytes;
  unsigned threads, at_barrier, ended;
  const emulate_call *call;
  const char *name;
  unsigned char *shared;
  size_t shared_bytes;
  uint64_t order, threads_run;
  size_t most_blocks; /* of a kernel that run; 0: all */
  bool early;
} device;

__thread emulate_place *emulate_here;

[[noreturn]] static void die(const char *what) {
  fprintf(stderr, "emulated kernel %s: %s\n", device.name, what);
  abort();
}

/* Leaves the running fiber, which has ended if `for_good`, for the scheduler; and enters a fiber.
 */
static void to_scheduler(bool for_good) {
  fiber *f = device.running;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(for_good ? nullptr : &f->fake_stack, device.scheduler_stack,
                                 device.scheduler_stack_bytes);
#else
  (void)for_good;
#endif
  context_switch(&f->at, &device.scheduler);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(f->fake_stack, nullptr, nullptr);
#endif
}

static void to_fiber(fiber *f) {
  device.running = f;
  emulate_here = &f->place;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&device.scheduler_fake_stack, f->stack, stack_bytes);
#endif
  context_switch(&device.scheduler, &f->at);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(device.scheduler_fake_stack, nullptr, nullptr);
#endif
}

/* What a fiber runs: the kernel, as one of its threads. */
static void fiber_main() {
  fiber *f = device.running;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &device.scheduler_stack, &device.scheduler_stack_bytes);
#endif
  device.call->run(device.call->closure);
  if (device.early && !f->waited)
    die("a thread of a kernel that may start early ends without waiting for the kernels before");
  f->ended = true;
  ++device.ended;
  to_scheduler(true);
  abort();
}

void emulate_wait_for_kernels() {
  device.running->waited = true;
}
bool emulate_waits_still() {
  return device.early && !device.running->waited;
}
bool emulate_is_own(const void *p) {
  return p >= (const void *)&device && p < (const void *)(&device + 1);
}

void __syncthreads() {
  device.running->at_barrier = true;
  ++device.at_barrier;
  to_scheduler(false);
}

const unsigned char *emulate_exchange(unsigned mask, const char *kind, const void *value,
                                      size_t size) {
  fiber *f = device.running;
  warp *w = &device.warps[f->number / 32];
  const unsigned lane = f->number % 32;
  if (size > 64) die("an exchange of more than 64 bytes");
  if (!(mask >> lane & 1u)) die("a lane outside of its own mask");
  if (w->arrived == 0) {
    w->wanted = mask;
    w->kind = kind;
  } else if (w->wanted != mask || strcmp(w->kind, kind) != 0) {
    fprintf(stderr, "%s (%08x) against %s (%08x)\n", kind, mask, w->kind, w->wanted);
    die("lanes of a warp disagree on an exchange");
  }
  const unsigned round = w->round;
  memcpy(w->values[round] + 64 * lane, value, size);
  w->arrived |= 1u << lane;
  if (w->arrived == w->wanted) {
    w->arrived = 0;
    w->round ^= 1u;
    if (strcmp(kind, "syncwarp") == 0) race_warp_barrier(mask);
    for (unsigned l = 0; l < 32; ++l)
      if (mask >> l & 1u) device.fibers[f->number - lane + l].at_exchange = false;
  } else {
    f->at_exchange = true;
    to_scheduler(false);
  }
  return w->values[round];
}

unsigned char *emulate_shared_memory() {
  return device.shared;
}

/* A hash of order and i. */
static uint64_t shuffled(uint64_t order, uint64_t i) {
  uint64_t x = order * 0x9e3779b97f4a7c15u + (i + 1) * 0xd1342543de82ef95u;
  x ^= x >> 32;
  x *= 0xda942042e4dd58b5u;
  return x ^ x >> 29;
}

/* The number that comes i-th among 0 .. n - 1 in the order of the stream: 0 ascending, 1
 * descending, else shuffled by steps of a length that shares no factor with n. */
static size_t in_order(size_t i, size_t n) {
  if (device.order == 0) return i;
  if (device.order == 1) return n - 1 - i;
  size_t step = (size_t)(shuffled(device.order, n) % n) | 1;
  for (;; step += 2) {
    size_t a = step, b = n;
    while (b != 0) {
      const size_t t = a % b;
      a = b;
      b = t;
    }
    if (a == 1) break;
  }
  return (size_t)(((unsigned __int128)i * step + shuffled(device.order, 0) % n) % n);
}

unsigned emulate_thread_number() {
  return device.running->number;
}

bool emulate_on_stack(const void *p) {
  const char *stack = device.running->stack;
  return (const char *)p >= stack && (const char *)p < stack + stack_bytes;
}

static void start_fiber(unsigned number, dim3 grid, dim3 block, dim3 index) {
  fiber *f = &device.fibers[number];
  if (f->stack == nullptr) f->stack = (char *)malloc(stack_bytes);
  if (f->stack == nullptr) die("no memory for a stack");
  f->number = number;
  emulate_copies_forget(number);
  f->ended = f->at_barrier = f->at_exchange = f->waited = false;
  f->place.thread = dim3(number % block.x, number / block.x % block.y, number / block.x / block.y);
  f->place.block = index;
  f->place.block_size = block;
  f->place.grid = grid;
  f->at = context_new(f->stack, stack_bytes, fiber_main);
}

/* Runs all threads of one block to their ends; aborts where they wait for one another for ever. */
static void run_block(dim3 grid, dim3 block, dim3 index) {
  device.threads = block.x * block.y * block.z;
  device.ended = device.at_barrier = 0;
  for (unsigned w = 0; w < (device.threads + 31) / 32; ++w)
    device.warps[w].arrived = device.warps[w].round = 0;
  if (device.shared != nullptr) memset(device.shared, 0xff, device.shared_bytes);
  race_block(device.shared, device.shared_bytes);
  for (unsigned i = 0; i < device.threads; ++i) {
    start_fiber(i, grid, block, index);
    device.scheduled[i] = &device.fibers[in_order(i, device.threads)];
  }
  device.threads_run += device.threads;
  while (device.ended < device.threads) {
    bool moved = false;
    for (unsigned i = 0; i < device.threads; ++i) {
      fiber *f = device.scheduled[i];
      if (f->ended || f->at_barrier || f->at_exchange) continue;
      to_fiber(f);
      moved = true;
    }
    if (device.at_barrier > 0 && device.at_barrier + device.ended == device.threads) {
      device.at_barrier = 0;
      race_barrier();
      for (unsigned i = 0; i < device.threads; ++i) device.fibers[i].at_barrier = false;
      moved = true;
    }
    if (!moved) die("threads wait for one another for ever");
  }
  count_block();
}

/* --- launches --- */

static void launch(const emulate_launch &l, const emulate_call &call) {
  device.name = l.name;
  device.order = l.order;
  device.early = l.early;
  const dim3 grid = l.grid, block = l.block;
  if (block.x * block.y * block.z == 0 || block.x * block.y * block.z > most_threads)
    die("a block of no or too many threads");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
    die("a grid CUDA would refuse");
  if (l.shared > 227 << 10) die("more shared memory than a block can have");
  if (emulate_record(l, call)) return;
  device.call = &call;
  device.shared_bytes = l.shared;
  race_kernel(device.most_blocks == 0 ? l.name : nullptr);
  device.shared = l.shared == 0
                      ? nullptr
                      : (unsigned char *)aligned_alloc(128, (l.shared + 127) & ~(size_t)127);
  const size_t blocks = (size_t)grid.x * grid.y * grid.z;
  const size_t most = device.most_blocks, run = most == 0 || blocks < most ? blocks : most;
  count_kernel(l.name, blocks, run);
  for (size_t i = 0; i < run; ++i) {
    const size_t b = run == blocks ? in_order(i, blocks) : i * (blocks - 1) / (run - 1);
    run_block(grid, block,
              dim3((unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y),
                   (unsigned)(b / grid.x / grid.y)));
  }
  race_kernel(nullptr);
  free(device.shared);
  device.shared = nullptr;
}

void emulate_launch_kernel(const emulate_launch &l, const emulate_call &call) {
  emulate_enter();
  launch(l, call);
  emulate_here = nullptr; /* what another thread does on the host is none of the kernel's doing */
  emulate_leave();
}

/* --- control --- */

uint64_t emulate_threads_run(void) {
  return device.threads_run;
}

void emulate_shapes_only(size_t blocks) {
  device.most_blocks = blocks == 1 ? 2 : blocks;
}
bool emulate_has_shapes_only() {
  return device.most_blocks != 0;
}
