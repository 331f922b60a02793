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
/* Whether devices have memory pools from now on: 1, or 0. */
void emulate_pools(int there);
/* Bytes of static shared memory that every kernel says to have, and how often the driver was asked
 * to allow a kernel more dynamic shared memory. */
void emulate_static_shared(size_t bytes);
uint64_t emulate_shared_asked(void);
/* cuBLASLt on the emulated device has so many algorithms, the fastest in its own view first. */
enum { EMULATE_BLAS_ALGORITHMS = 8 };
/* What it refuses from now on: algorithms that may split k and add the parts in float, that may not
 * split k, that may do anything else; or the product itself, though an algorithm was found, always
 * or if it was found for other sizes. */
enum {
  EMULATE_BLAS_SPLIT = 1,
  EMULATE_BLAS_WHOLE = 2,
  EMULATE_BLAS_OTHER = 4,
  EMULATE_BLAS_ALL = 7,
  EMULATE_BLAS_RUN = 8,
  EMULATE_BLAS_OTHER_SIZES = 16
};
void emulate_blas_refuse(unsigned what);
/* How many products an algorithm was called for, and how often algorithms were asked for, since the
 * program began; and what time one of its products takes, by the device's clock. */
uint64_t emulate_blas_ran(unsigned algorithm);
uint64_t emulate_blas_asked(void);
void emulate_blas_takes(unsigned algorithm, double milliseconds);
/* Moves the device's clock, which events record. */
void emulate_time_passes(double milliseconds);
/* Device threads that have run since the program began. */
uint64_t emulate_threads_run(void);
/* Allocations of the device that were made while a graph was recorded. */
uint64_t emulate_allocated_recording(void);
/* From now on a kernel runs so many of its blocks, at least two and equally far from one another,
 * products of cuBLASLt and copies of more than a megabyte are not made, and allocations begin with
 * zeros: for the shapes of models that would take too long. Results are worthless. 0: all of
 * everything. */
void emulate_shapes_only(size_t blocks);

/* What launches of a kernel have done since emulate_counts(1). Numbers from memory are zero but in
 * `make racecheck`; where only some blocks ran, they are multiplied up to all. Lanes of a warp that
 * execute an instruction for the same time count as one access. */
typedef struct emulate_count {
  const char *kernel;
  uint64_t launches, blocks;
  double read, written;          /* bytes of device memory, equal ones of an access once */
  double sectors, least_sectors; /* of 32 bytes, touched and at least needed */
  double passes, least_passes;   /* over the banks of shared memory */
  const void *worst[2];          /* code with most of what is beyond the least: device, shared */
} emulate_count;
/* Begins (1) or ends (0) to count. While it counts, a kernel that may start early is refused if
 * before it waits it writes device memory or reads an allocation that its graph writes. */
void emulate_counts(int on);
/* The counts, by the order of their first launches. */
size_t emulate_counted(const emulate_count **out);
/* Launches a small kernel that breaks a rule, or keeps it if `clean` (race_kernels.cu). */
enum rule_case {
  RULE_WAITS,      /* a thread that may start early waits */
  RULE_READS_LATE, /* it reads what the kernel before writes after it has waited */
  RULE_WRITES_LATE,
  RULE_SECTORS, /* a warp reads adjacent numbers */
  RULE_BANKS,   /* from different banks */
  RULE_STREAM   /* of a stream of its own */
};
void emulate_rule_case(enum rule_case which, int clean);
/* Registers of the lanes of a warp before and after (fragment_kernels.cu): c += a b; a tile of 64 x
 * 64 numbers, of which the part at a row and a column (with 32 columns for matrices) is loaded in
 * each of the forms that kernels use, and where its vectors are, in bytes. */
typedef struct emulate_fragments {
  uint32_t a[32][4], b[32][2];
  float c[32][4];
  uint16_t tile[64][64];
  unsigned row, column, offset[64][8];
  uint32_t matrices[32][4], transposed[32][4], as_a[32][4], as_columns[32][4], as_rows[32][4];
} emulate_fragments;
void emulate_run_fragments(emulate_fragments *f);
/* The descriptor of a matrix in shared memory for products of a warpgroup
 * (llm/backend/cuda/wgmma.cuh). */
uint64_t emulate_descriptor(uint32_t address, unsigned panel_bytes);
/* Runs a small kernel with a race of that kind, or the same kernel without it if `clean`
 * (race_kernels.cu). */
enum race_case { RACE_SHARED, RACE_WARP, RACE_COPY, RACE_BLOCKS, RACE_LAST, RACE_ATOMIC };
void emulate_race_case(enum race_case which, int clean);

#ifdef __cplusplus
}
#endif
#endif
