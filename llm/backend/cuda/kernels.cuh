/* The kernels that CPU and CUDA share (kernels_rows.h) for float and bfloat16, as static functions
 * of rows_of<T>: rows_of<bf16>::norm and so on. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_KERNELS_CUH
#define GEPOLAB_LLM_BACKEND_CUDA_KERNELS_CUH

#include "llm/backend/cuda/device.cuh"
#include "llm/backend/kernels.h"

template <typename T> struct rows_of;

#define MASTER float
#define ROW(x) x
#define ROW_EXP kernel_exp_f32
#define GET(p) to_float(*(p))
#define PUT(p, x) (*(p) = number<REAL>(x))

template <> struct rows_of<float> {
#define REAL float
#include "llm/backend/kernels_rows.h"
#undef REAL
};

template <> struct rows_of<bf16> {
#define REAL bf16
#include "llm/backend/kernels_rows.h"
#undef REAL
};

#undef MASTER
#undef ROW
#undef ROW_EXP
#undef GET
#undef PUT

#endif
