/* The CPU backend in float32 with NEON, which every 64-bit ARM processor has. */
#if defined(__aarch64__)
#define REAL float
#define IS_DOUBLE 0
#define FORM_NEON
#define CPU_OPS cpu_ops_f32_neon
#include "llm/backend/cpu/body.h"
#else
typedef int no_neon_here; /* C requires a declaration in every file */
#endif
