/* The CPU backend in float64, with the basic instruction set of the architecture. */
#define REAL double
#define IS_DOUBLE 1
#define CPU_OPS cpu_ops_f64
#include "llm/backend/cpu/body.h"
