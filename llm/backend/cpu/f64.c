/* The CPU backend in float64 with the instructions that every machine of this kind has. */
#define REAL double
#define IS_DOUBLE 1
#define CPU_OPS cpu_ops_f64
#include "llm/backend/cpu/body.h"
