/* The CPU backend in float64 with AVX2 and FMA; the Makefile adds their flags for this file. */
#if defined(__x86_64__)
#define REAL double
#define IS_DOUBLE 1
#define CPU_OPS cpu_ops_f64_avx2
#include "llm/backend/cpu/body.h"
#else
typedef int no_avx2_here; /* C requires a declaration in every file */
#endif
