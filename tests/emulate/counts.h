/* What kernels do to memory (counts.cpp): the emulation says that a kernel begins, which has
 * `blocks` blocks and runs `run` of them; that one of these has ended; that a thread reads or
 * writes memory with the instruction at `from`; that a copy is made (from NULL: a fill), or that a
 * product of cuBLASLt reads and writes so much; that a recorded graph begins, and ends. */
#ifndef GEPOLAB_TESTS_EMULATE_COUNTS_H
#define GEPOLAB_TESTS_EMULATE_COUNTS_H

#include <stddef.h>

void count_kernel(const char *name, size_t blocks, size_t run);
void count_block();
#ifdef GEPOLAB_EMULATE_RACES
void count_access(const void *p, size_t bytes, bool write, bool shared, const void *from);
#else
static inline void count_access(const void *, size_t, bool, bool, const void *) {}
#endif
void count_copy(const void *to, const void *from);
void count_product(double read, double written);
void count_graph(bool begins);

#endif
