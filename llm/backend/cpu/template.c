/* The operations of the CPU backend for one number type and one instruction set. The Makefile
 * compiles this file for float32 and float64, each with the basic instruction set and with AVX2,
 * AVX-512 or NEON, with these definitions:
 *
 *   IS_DOUBLE   0 or 1
 *   CPU_OPS     the name of the table of operations, which this file defines
 *   FORM_NEON   for NEON's intrinsics; those of AVX2 and AVX-512 follow from the compiler's flags
 *
 * The files included below (llm/backend/cpu/NAME.h) are parts of this one: they use the definitions
 * above them, and no other file includes them. All functions are static, so the copies do not
 * conflict. */
#include "core/random/rng.h"
#include "core/rl/sampling_distribution.h"
#include "llm/backend/cpu/cpu.h"

#include <assert.h>
#include <cblas.h>

#if IS_DOUBLE
#define REAL double
#else
#define REAL float
#endif
#define MASTER REAL
#define ROW(x) row_##x
#define GET(p) (*(p))
#define PUT(p, x) (*(p) = (x))
#if IS_DOUBLE
#define ROW_EXP(x) kernel_exp_f64(x)
#define ROW_LOG(x) log(x)
#else
#define ROW_EXP(x) kernel_exp_f32(x)
#define ROW_LOG(x) logf(x)
#endif

#include "llm/backend/kernels_rows.h"

static inline size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

static inline size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

/* n / by, rounded up. */
static inline size_t divide_up(size_t n, size_t by) {
  return n / by + (n % by != 0);
}

/* The least multiple of unit that is at least n. */
static inline size_t round_up_to(size_t n, size_t unit) {
  return divide_up(n, unit) * unit;
}

/* Number of rows of a task, if one row costs about `cost` operations on numbers. A task should take
 * much longer than the microsecond needed to schedule it. */
static inline size_t rows_per_task(size_t cost) {
  return larger(1, 16384 / larger(1, cost));
}

/* Numbers in a row of attention's output (or of its queries), of qk and of qkv (backend.h). */
static inline size_t q_width(head_shape s) {
  return s.q * s.dim;
}

static inline size_t qk_width(head_shape s) {
  return (s.q + s.kv) * s.dim;
}

static inline size_t qkv_width(head_shape s) {
  return (s.q + 2 * s.kv) * s.dim;
}

#include "llm/backend/cpu/vector.h"

#include "llm/backend/cpu/product.h"

#include "llm/backend/cpu/rows.h"

#include "llm/backend/cpu/heads.h"

#include "llm/backend/cpu/optimizer.h"

#include "llm/backend/cpu/attention.h"

#include "llm/backend/cpu/output.h"

#include "llm/backend/cpu/sample.h"

/* Every operation is the function cpu_NAME: in one of the parts above, or in cpu.c if it does not
 * depend on the number type. The CPU has none of the optional operations. */
const backend_ops CPU_OPS = {
#define OPERATION(result, name, arguments) .name = cpu_##name,
#define OPTIONAL_OPERATION(result, name, arguments)
#define HOST_OPERATION(result, name, arguments) .name = cpu_##name,
#include "llm/backend/operations.h"
};
