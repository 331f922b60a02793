/* Races on the emulated device. Where GEPOLAB_EMULATE_RACES is defined (make racecheck), kernels
 * are compiled with -fsanitize=thread and race.cpp watches their loads and stores; elsewhere the
 * functions below do nothing. */
#ifndef GEPOLAB_TESTS_EMULATE_RACE_H
#define GEPOLAB_TESTS_EMULATE_RACE_H

#include <stddef.h>

#ifdef GEPOLAB_EMULATE_RACES
/* The emulation tells race.cpp: that a kernel begins (name NULL: ends); that one of its blocks
 * begins, whose shared memory is these bytes; that the block's threads have met at a barrier; that
 * the lanes of a warp have. */
void race_kernel(const char *name);
void race_block(const void *shared, size_t bytes);
void race_barrier();
void race_warp_barrier(unsigned mask);
/* That the running thread reads or writes memory by other means than its own loads and stores. */
void race_read(const void *p, size_t bytes);
void race_write(const void *p, size_t bytes);
/* That the running thread fences, or updates global memory atomically. What a block did before it
 * fenced and then updated a number comes before what another block does after a later update of
 * that number. */
void race_fence();
void race_atomic(const void *p);
/* That memory was released: accesses to it are forgotten. */
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
