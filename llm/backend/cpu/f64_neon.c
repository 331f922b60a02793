/* The CPU backend in float64 with NEON, which every 64-bit ARM processor has. */
#if defined(__aarch64__)
#define REAL double
#define IS_DOUBLE 1
#define FORM_NEON
#define CPU_OPS cpu_ops_f64_neon
#include "llm/backend/cpu/body.h"
#else
typedef int no_neon_here; /* C requires a declaration in every file */
#endif
