/* The CPU backend in float32 with AVX-512; the Makefile adds its flags for this file. */
#if defined(__x86_64__)
#define REAL float
#define IS_DOUBLE 0
#define CPU_OPS cpu_ops_f32_avx512
#include "llm/backend/cpu/body.h"
#else
typedef int no_avx512_here; /* C requires a declaration in every file */
#endif
