/* The CPU backend in float64 with AVX-512; the Makefile adds its flags for this file. */
#if defined(__x86_64__)
#define REAL double
#define IS_DOUBLE 1
#define CPU_OPS cpu_ops_f64_avx512
#include "llm/backend/cpu/body.h"
#else
typedef int no_avx512_here; /* C requires a declaration in every file */
#endif
