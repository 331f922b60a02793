/* Counts what kernels do to memory: bytes of device memory, sectors of it that a warp touches at
 * once, passes over the banks of shared memory; and sees what a kernel that may start early does
 * before it waits. Loads and stores come from the calls that -fsanitize=thread puts before them
 * (race.cpp), so there are none but in `make racecheck`; updates by atomicAdd are not counted. */
#include "counts.h"

#include "cuda_runtime.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <tuple>
#include <vector>

namespace {

/* An instruction executed by lanes of a warp at the same time, as far as can be known: by each of
 * them for the n-th time in this block. */
struct access {
  uintptr_t at[32];
  uint32_t lanes;
  unsigned bytes;
};
struct place {
  unsigned times[32];
  std::vector<access> made;
};
/* An asynchronous copy has a place that reads and one that writes. */
struct code {
  const void *at;
  bool write, shared;
  bool operator<(const code &c) const {
    return std::tie(at, write, shared) < std::tie(c.at, c.write, c.shared);
  }
};
std::map<code, place> of_warp[32];

bool counting, in_graph;
std::vector<emulate_count> counts;
std::map<std::string, size_t> number; /* of a kernel's counts */
emulate_count *now;                   /* the running kernel's; NULL: nothing is counted */
double weight;                        /* blocks for each that runs */
struct excess {
  double of[2];
};
std::map<std::pair<emulate_count *, const void *>, excess> beyond;

/* Of the graph that runs: allocations that it writes, and that a kernel reads before it waits. */
std::set<const void *> written;
std::map<const void *, const char *> read_early;

[[noreturn]] void refuse(const char *kernel, const char *what) {
  fprintf(stderr, "kernel %s may start early and %s before it waits\n", kernel, what);
  abort();
}

/* Sectors of device memory: touched, at least needed, and different bytes. */
void device_access(const access &a, double (&out)[3]) {
  std::vector<std::pair<uintptr_t, uintptr_t>> parts;
  std::set<uintptr_t> sectors;
  for (unsigned l = 0; l < 32; ++l)
    if (a.lanes >> l & 1u) {
      parts.push_back({a.at[l], a.at[l] + a.bytes});
      for (uintptr_t s = a.at[l] / 32; s <= (a.at[l] + a.bytes - 1) / 32; ++s) sectors.insert(s);
    }
  std::sort(parts.begin(), parts.end());
  uintptr_t end = 0, bytes = 0;
  for (const auto &p : parts) {
    if (p.second > end) bytes += p.second - std::max(end, p.first);
    end = std::max(end, p.second);
  }
  out[0] = (double)sectors.size();
  out[1] = (double)((bytes + 31) / 32);
  out[2] = (double)bytes;
}

/* Passes over the 32 banks of four bytes: needed, and at least. A pass serves lanes that ask for
 * 128 bytes together, so that lanes with 8 or 16 bytes are served by halves or quarters of the
 * warp; in each of these, as many passes as one bank has different words. */
void shared_access(const access &a, double (&out)[3]) {
  const unsigned together = a.bytes >= 16 ? 8 : a.bytes == 8 ? 16 : 32;
  out[0] = out[1] = out[2] = 0;
  for (unsigned first = 0; first < 32; first += together) {
    std::set<uintptr_t> words[32];
    size_t most = 0;
    for (unsigned l = first; l < first + together; ++l)
      for (uintptr_t w = a.at[l] / 4; a.lanes >> l & 1u && w <= (a.at[l] + a.bytes - 1) / 4; ++w) {
        words[w % 32].insert(w);
        most = std::max(most, words[w % 32].size());
      }
    out[0] += (double)most;
    out[1] += most > 0;
  }
}

} // namespace

void emulate_counts(int on) {
  emulate_enter();
  counting = on != 0;
  now = nullptr;
  if (counting) {
    counts.clear();
    number.clear();
    beyond.clear();
    counts.reserve(256); /* `now` and `beyond` point into it */
  }
  emulate_leave();
}

size_t emulate_counted(const emulate_count **out) {
  *out = counts.data();
  return counts.size();
}

void count_kernel(const char *name, size_t blocks, size_t run) {
  now = nullptr;
  if (!counting) return;
  const auto found = number.find(name);
  if (found == number.end()) {
    if (counts.size() == counts.capacity()) abort();
    number[name] = counts.size();
    counts.push_back(emulate_count());
    counts.back().kernel = name;
  }
  now = &counts[number[name]];
  ++now->launches;
  now->blocks += blocks;
  weight = (double)blocks / (double)run;
}

#ifdef GEPOLAB_EMULATE_RACES
void count_access(const void *p, size_t bytes, bool write, bool shared, const void *from) {
  if (now == nullptr || emulate_here == nullptr || emulate_on_stack(p) || emulate_is_own(p)) return;
  if (!shared) {
    const void *allocation = emulate_allocation(p);
    if (allocation == nullptr) return; /* a kernel's arguments */
    if (in_graph && write) written.insert(allocation);
    if (emulate_waits_still()) {
      if (write) refuse(now->kernel, "writes device memory");
      if (in_graph) read_early.insert({allocation, now->kernel});
    }
  }
  const unsigned thread = emulate_thread_number(), lane = thread % 32;
  place &here = of_warp[thread / 32][{from, write, shared}];
  const unsigned time = here.times[lane]++;
  if (time >= here.made.size()) here.made.resize(time + 1);
  access &a = here.made[time];
  a.at[lane] = (uintptr_t)p;
  a.lanes |= 1u << lane;
  a.bytes = (unsigned)bytes;
}
#endif

void count_block() {
  for (auto &warp : of_warp) {
    for (const auto &p : warp)
      for (const access &a : p.second.made) {
        double n[3];
        const bool shared = p.first.shared;
        shared ? shared_access(a, n) : device_access(a, n);
        (shared ? now->passes : now->sectors) += weight * n[0];
        (shared ? now->least_passes : now->least_sectors) += weight * n[1];
        if (!shared) (p.first.write ? now->written : now->read) += weight * n[2];
        const void *&worst = now->worst[shared];
        double &most = beyond[{now, worst}].of[shared],
               &mine = beyond[{now, p.first.at}].of[shared];
        mine += weight * (n[0] - n[1]);
        if (worst == nullptr ? mine > 0 : mine > most) worst = p.first.at;
      }
    warp.clear();
  }
}

void count_copy(const void *to, const void *from) {
  const void *allocation = emulate_allocation(to);
  (void)from;
  if (counting && in_graph && allocation != nullptr) written.insert(allocation);
}

void count_product(double read, double bytes_written) {
  if (now == nullptr) return;
  now->read += read;
  now->written += bytes_written;
}

void count_graph(bool begins) {
  in_graph = begins;
  if (!begins)
    for (const auto &r : read_early)
      if (written.count(r.first) > 0) refuse(r.second, "reads memory that its graph writes");
  written.clear();
  read_early.clear();
}
