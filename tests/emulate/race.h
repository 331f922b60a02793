/* Races on the emulated device: where GEPOLAB_EMULATE_RACES is defined, kernels are compiled with
 * the compiler's calls for a thread sanitizer, and race.cpp answers them (make racecheck).
 * Elsewhere these are nothing. */
#ifndef GEPOLAB_TESTS_EMULATE_RACE_H
#define GEPOLAB_TESTS_EMULATE_RACE_H

#include <stddef.h>

#ifdef GEPOLAB_EMULATE_RACES
/* A kernel begins; one of its blocks, with shared memory from shared on; that block's threads have
 * met at a barrier; a warp's lanes have. */
void race_kernel(const char *name);
void race_block(const void *shared, size_t bytes);
void race_barrier();
void race_warp_barrier(unsigned mask);
/* The running thread touches memory by other means than its own loads and stores. */
void race_read(const void *p, size_t bytes);
void race_write(const void *p, size_t bytes);
/* The running thread fences, or updates global memory atomically: what a block that has fenced did
 * before its update comes before what a block does after a later update of the same number. */
void race_fence();
void race_atomic(const void *p);
/* Memory was given back: what was done to it is forgotten. */
void race_forget(const void *p, size_t bytes);
#define RACE_UNSEEN __attribute__((no_sanitize("thread"), noinline))
#else
static inline void race_kernel(const char *) {}
static inline void race_block(const void *, size_t) {}
static inline void race_barrier() {}
static inline void race_warp_barrier(unsigned) {}
static inline void race_read(const void *, size_t) {}
static inline void race_write(const void *, size_t) {}
static inline void race_fence() {}
static inline void race_atomic(const void *) {}
static inline void race_forget(const void *, size_t) {}
#define RACE_UNSEEN
#endif

#endif
