/* Finds races between the threads of a kernel, as compute-sanitizer's racecheck does for shared
 * memory, and in global memory between blocks, too.
 *
 * Kernels are compiled with -fsanitize=thread, which puts a call before every load and store; the
 * functions that it calls are here. For every two bytes of memory the last write and two reads by
 * different threads are kept, with their time. Time is counted in intervals: each block and each
 * barrier of a block begins a new one. Two accesses, at least one of them a write, are a race
 *
 *   within a block   if they are of different threads in one interval, unless both threads are of
 * one warp and met at __syncwarp in between; between blocks   of one kernel, in global memory,
 * unless the earlier block fenced and then updated a number atomically that the later block
 * updated, too, before its access.
 *
 * Atomic updates themselves are no races. Only two readers are kept, so a write that races with a
 * third reader alone is missed in that order of threads; kernels run in several orders. */
#ifdef GEPOLAB_EMULATE_RACES
#include "cuda_runtime.h"

#include "counts.h"
#include "race.h"

#include <stdio.h>
#include <stdlib.h>
#include <unordered_map>
#include <vector>

extern "C" char __data_start,
    _end; /* the program's variables: static shared memory is among them */

namespace {

struct access {
  uint32_t interval; /* 0: there was none */
  uint16_t thread, warp_time;
};
/* The accesses to two bytes. */
struct cell {
  access write, read[2];
};
enum { page_bits = 12, cells = 1 << (page_bits - 1) }; /* a cell for every two bytes */
struct page {
  cell at[cells];
};

struct {
  const char *kernel;
  uint32_t interval, kernel_start, block_start;
  uint16_t warp_time[32]; /* how often each warp has met at __syncwarp in this interval */
  uintptr_t shared, shared_end;
} now;
/* The intervals [first, last] of a block, which come before what is done after an atomic update. */
struct span {
  uint32_t first, last;
};
std::unordered_map<uintptr_t, std::vector<span>>
    released;               /* by the number updated, this kernel's */
std::vector<span> acquired; /* by this block */
bool fenced;                /* a thread of this block has */

std::unordered_map<uintptr_t, page *> pages;
struct recent_page {
  uintptr_t number; /* 0: none */
  page *p;
} recent[1024];

/* The page of cells of that number; NULL, or made, where there is none. */
page *page_of(uintptr_t number, bool make) {
  recent_page *r = &recent[number % (sizeof recent / sizeof *recent)];
  if (r->number == number) return r->p;
  auto found = pages.find(number);
  page *p = found == pages.end() ? nullptr : found->second;
  if (p == nullptr && make) {
    p = (page *)calloc(1, sizeof *p);
    if (p == nullptr) abort();
    pages[number] = p;
  }
  if (p != nullptr) *r = {number, p};
  return p;
}

bool is_shared(uintptr_t at) {
  return (at >= now.shared && at < now.shared_end) ||
         (at >= (uintptr_t)&__data_start && at < (uintptr_t)&_end);
}

/* Whether neither of the two comes before the other: the access `then`, and what the running thread
 * does now. */
bool unordered(const access &then, unsigned thread, bool shared) {
  if (then.interval < now.kernel_start) return false;
  if (then.interval < now.block_start) {
    for (const span &s : acquired)
      if (then.interval >= s.first && then.interval <= s.last) return false;
    return !shared;
  }
  if (then.interval < now.interval || then.thread == thread) return false;
  return then.thread / 32 != thread / 32 || then.warp_time == now.warp_time[thread / 32];
}

[[noreturn]] void report(uintptr_t at, const access &then, unsigned thread, bool write, bool wrote,
                         const void *from) {
  fprintf(stderr,
          "race in kernel %s: thread %u %s %s memory that thread %u of %s block %s, with no "
          "barrier between (code at %p, address %#zx)\n",
          now.kernel, thread, write ? "writes" : "reads", is_shared(at) ? "shared" : "global",
          (unsigned)then.thread, then.interval < now.block_start ? "another" : "this",
          wrote ? "writes" : "reads", from, (size_t)at);
  abort();
}

/* Checks one access of the running thread to one cell, and keeps it. */
void look(uintptr_t at, cell *c, bool write, unsigned thread, const void *from) {
  const bool shared = is_shared(at);
  const access mine = {now.interval, (uint16_t)thread, now.warp_time[thread / 32]};
  if (unordered(c->write, thread, shared)) report(at, c->write, thread, write, true, from);
  if (write) {
    for (const access &r : c->read)
      if (unordered(r, thread, shared)) report(at, r, thread, write, false, from);
    c->write = mine;
  } else {
    if (c->read[0].thread != mine.thread || c->read[0].interval < now.block_start)
      c->read[1] = c->read[0];
    c->read[0] = mine;
  }
}

/* The running thread reads or writes `bytes` bytes at p; `from` is where in the code. */
void touch(const void *p, size_t bytes, bool write, const void *from) {
  if (emulate_here == nullptr || now.kernel == nullptr) return;
  const uintptr_t begin = (uintptr_t)p;
  if (emulate_on_stack(p)) return;
  const unsigned thread = emulate_thread_number();
  for (uintptr_t at = begin & ~(uintptr_t)1; at < begin + bytes; at += 2)
    look(at, &page_of(at >> page_bits, true)->at[(at >> 1) & (cells - 1)], write, thread, from);
}

} // namespace

void race_kernel(const char *name) {
  now.kernel = name;
  now.kernel_start = now.interval + 1;
  released.clear();
}

void race_block(const void *shared, size_t bytes) {
  race_barrier();
  now.block_start = now.interval;
  acquired.clear();
  fenced = false;
  now.shared = (uintptr_t)shared;
  now.shared_end = now.shared + bytes;
}

void race_barrier() {
  ++now.interval;
  memset(now.warp_time, 0, sizeof now.warp_time);
}

/* __syncwarp of some lanes of a warp orders nothing here; of all of them it does. */
void race_warp_barrier(unsigned mask) {
  if (mask == 0xffffffffu) ++now.warp_time[emulate_thread_number() / 32];
}

void race_fence() {
  fenced = true;
}

void race_atomic(const void *p) {
  const uintptr_t at = (uintptr_t)p;
  if (now.kernel == nullptr || is_shared(at)) return;
  std::vector<span> &before = released[at];
  acquired.insert(acquired.end(), before.begin(), before.end());
  if (fenced) before.push_back({now.block_start, now.interval});
}

void race_read(const void *p, size_t bytes) {
  touch(p, bytes, false, __builtin_return_address(0));
}
void race_write(const void *p, size_t bytes) {
  touch(p, bytes, true, __builtin_return_address(0));
}

void race_forget(const void *p, size_t bytes) {
  for (uintptr_t at = (uintptr_t)p & ~(uintptr_t)1; at < (uintptr_t)p + bytes; at += 2) {
    page *q = page_of(at >> page_bits, false);
    if (q != nullptr) memset(&q->at[(at >> 1) & (cells - 1)], 0, sizeof(cell));
  }
}

/* --- what the compiler calls --- */

/* An access by an instruction of a kernel. */
static void made(const void *p, size_t bytes, bool write, const void *from) {
  count_access(p, bytes, write, is_shared((uintptr_t)p), from);
  touch(p, bytes, write, from);
}

#define TSAN(name, bytes)                                                                          \
  extern "C" void __tsan_read##name(void *p) {                                                     \
    made(p, bytes, false, __builtin_return_address(0));                                            \
  }                                                                                                \
  extern "C" void __tsan_write##name(void *p) {                                                    \
    made(p, bytes, true, __builtin_return_address(0));                                             \
  }
TSAN(1, 1)
TSAN(2, 2)
TSAN(4, 4)
TSAN(8, 8)
TSAN(16, 16)
extern "C" void __tsan_unaligned_read2(void *p) {
  made(p, 2, false, __builtin_return_address(0));
}
extern "C" void __tsan_unaligned_read4(void *p) {
  made(p, 4, false, __builtin_return_address(0));
}
extern "C" void __tsan_unaligned_read8(void *p) {
  made(p, 8, false, __builtin_return_address(0));
}
extern "C" void __tsan_unaligned_write2(void *p) {
  made(p, 2, true, __builtin_return_address(0));
}
extern "C" void __tsan_unaligned_write4(void *p) {
  made(p, 4, true, __builtin_return_address(0));
}
extern "C" void __tsan_unaligned_write8(void *p) {
  made(p, 8, true, __builtin_return_address(0));
}
extern "C" void __tsan_read_range(void *p, size_t n) {
  made(p, n, false, __builtin_return_address(0));
}
extern "C" void __tsan_write_range(void *p, size_t n) {
  made(p, n, true, __builtin_return_address(0));
}
extern "C" void __tsan_func_entry(void *) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_init() {}
extern "C" void __tsan_vptr_update(void **, void *) {}
extern "C" void __tsan_vptr_read(void **) {}
#endif
