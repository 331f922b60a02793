/* The CPU backend in float32 with the instructions that every machine of this kind has. */
#define REAL float
#define IS_DOUBLE 0
#define CPU_OPS cpu_ops_f32
#include "llm/backend/cpu/body.h"
