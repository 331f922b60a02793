/* What tests can ask of the emulated device and set (cuda_runtime.h). */
#ifndef GEPOLAB_TESTS_EMULATE_CONTROL_H
#define GEPOLAB_TESTS_EMULATE_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the bytes that the emulated device has; SIZE_MAX: no limit. First its pool gives back what
 * it keeps. */
void emulate_memory_limit(size_t bytes);
/* Most bytes of the device that were in use at once since the last call; and how many pinned blocks
 * of the host are allocated now. */
size_t emulate_memory_peak(void);
size_t emulate_host_blocks(void);
/* How many allocations of the device have not been released. */
size_t emulate_allocations(void);
/* Device threads that have run since the program began. */
uint64_t emulate_threads_run(void);
/* Runs a small kernel with a race of that kind, or the same kernel without it if `clean`
 * (race_kernels.cu). */
enum race_case { RACE_SHARED, RACE_WARP, RACE_COPY, RACE_BLOCKS, RACE_LAST, RACE_ATOMIC };
void emulate_race_case(enum race_case which, int clean);

#ifdef __cplusplus
}
#endif
#endif
