/* What tests can ask of the emulated device (cuda_runtime.h). */
#ifndef GEPOLAB_TESTS_EMULATE_CONTROL_H
#define GEPOLAB_TESTS_EMULATE_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes the emulated device has in all; SIZE_MAX: no limit. The pool gives back what it keeps. */
void emulate_memory_limit(size_t bytes);
/* Most bytes of the device in use at once since the last call, and pinned blocks of the host that
 * are not yet released. */
size_t emulate_memory_peak(void);
size_t emulate_host_blocks(void);
/* Allocations not yet released. */
size_t emulate_allocations(void);
/* Threads that ran since the program began. */
uint64_t emulate_threads_run(void);
/* Runs a small kernel that has a race unless it is to be clean (race_kernels.cu). */
enum race_case { RACE_SHARED, RACE_WARP, RACE_COPY, RACE_BLOCKS, RACE_LAST, RACE_ATOMIC };
void emulate_race_case(enum race_case which, int clean);

#ifdef __cplusplus
}
#endif
#endif
