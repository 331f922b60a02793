/* The operations of the CPU backend for one number type and instruction set. Whoever includes this
 * defines REAL, IS_DOUBLE (0 or 1) and CPU_OPS, the name of the table. */
#include "core/rl/sampling.h"
#include "llm/backend/cpu/cpu.h"

#include <cblas.h>

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

static inline size_t divide_up(size_t n, size_t piece) {
  return n / piece + (n % piece != 0);
}

static inline size_t round_up(size_t n, size_t unit) {
  return divide_up(n, unit) * unit;
}

/* Rows of a task whose rows cost about `cost` element operations. */
static inline size_t rows_per_task(size_t cost) {
  return larger(1, 16384 / larger(1, cost));
}

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

#include "llm/backend/cpu/dot.h"

#include "llm/backend/cpu/panels.h"

#include "llm/backend/cpu/rows.h"

#include "llm/backend/cpu/product.h"

#include "llm/backend/cpu/attention.h"

#include "llm/backend/cpu/cache.h"

#include "llm/backend/cpu/output.h"

#include "llm/backend/cpu/generation.h"

#include "llm/backend/cpu/optimizer.h"

/* Every operation is the function cpu_NAME: of this file's parts, or of cpu.c where the number type
 * does not matter. Of the optional ones the CPU has none. */
const backend_ops CPU_OPS = {
#define OPERATION(result, name, arguments) .name = cpu_##name,
#define OPTIONAL_OPERATION(result, name, arguments)
#include "llm/backend/operations.h"
};
