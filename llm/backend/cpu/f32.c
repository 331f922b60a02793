/* The CPU backend in float32, with the basic instruction set of the architecture. */
#define REAL float
#define IS_DOUBLE 0
#define CPU_OPS cpu_ops_f32
#include "llm/backend/cpu/body.h"
