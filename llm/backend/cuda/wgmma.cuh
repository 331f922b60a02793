/* Products of a warpgroup on the tensor cores of compute capability 9.0, and barriers that count
 * copies into shared memory: one PTX instruction each (PTX ISA 9.0: wgmma, mbarrier, setmaxnreg).
 * They exist in code for sm_90a alone.
 *
 * A warpgroup is four adjacent warps, the first with a number divisible by 4. It multiplies A [64,
 * 16] by B [16, N] and adds to C [64, N]. Its w-th warp holds rows [16 w, 16 w + 16) of C, and of A
 * if A is in registers, in the layout of mma.cuh. B, and A otherwise, are in shared memory.
 *
 * A matrix in shared memory is stored in panels of 64 columns. A row of a panel has 128 bytes, in
 * eight vectors of 16 bytes. Vector v of row r is at position v ^ (r & 7), so that a column's
 * vectors of eight adjacent rows are in different banks. A panel starts at a multiple of 1024
 * bytes. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_WGMMA_CUH
#define GEPOLAB_LLM_BACKEND_CUDA_WGMMA_CUH

#include "llm/backend/cuda/mma.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && !defined(GEPOLAB_EMULATE)
#define HAS_WGMMA 1
#endif

/* --- matrices in shared memory --- */

/* The descriptor of a matrix, by which a product finds it in shared memory. `place` is the address
 * of its first panel, or of the first row to be read. Bits 0-13: place; 16-29: distance of panels;
 * 32-45: distance of groups of eight rows; all in units of 16 bytes; bits 62-63 the permutation of
 * the vectors (1: as described above). The distance of panels is used only where a matrix is read
 * by columns. */
static __host__ __device__ __forceinline__ uint64_t matrix_descriptor(uint32_t place,
                                                                      unsigned panel_bytes) {
  return static_cast<uint64_t>(1) << 62 | static_cast<uint64_t>(1024 >> 4) << 32 |
         static_cast<uint64_t>(panel_bytes >> 4) << 16 | place;
}

#ifndef GEPOLAB_EMULATE

static const unsigned WARPGROUP = 128; /* threads */

/* The descriptor of panels at an address, and of rows of one panel. (Their masks are equivalent,
 * but each gives other machine code in the other's callers.) */
static __device__ __forceinline__ uint64_t panels_at(uint32_t address, unsigned panel_bytes) {
  return matrix_descriptor((address & 0x3ffff) >> 4, panel_bytes);
}
static __device__ __forceinline__ uint64_t rows_at(const bf16 *rows) {
  return matrix_descriptor(shared_address(rows) >> 4 & 0x3fff, 16);
}
/* The descriptor of a matrix of the same kind, `bytes` bytes further on. */
static __device__ __forceinline__ uint64_t panels_after(uint64_t matrix, unsigned bytes) {
  return matrix + (bytes >> 4);
}

/* A warpgroup starts copies of rows [first, first + ROWS) of a matrix with row distance ld; zeros
 * from row `end` on. */
template <int ROWS, int DIM>
static __device__ __forceinline__ void copy_panels(bf16 *to, const bf16 *from, size_t ld,
                                                   unsigned first, unsigned end) {
  const unsigned vectors = DIM / 8, at_once = WARPGROUP / vectors;
  const unsigned vector = threadIdx.x % vectors, row = threadIdx.x % WARPGROUP / vectors;
  to += vector / 8 * (ROWS * 64) + row * 64 + ((vector % 8) ^ (row % 8)) * 8;
  const bf16 *const zero = from;
  from += static_cast<size_t>(first + row) * ld + vector * 8;
#pragma unroll 4
  for (unsigned i = 0; i < ROWS; i += at_once) {
    const bool there = first + row + i < end;
    copy_async(to + i * 64, there ? from + i * ld : zero, there);
  }
}

/* Starts a copy of a number from device memory to shared memory; if `there` is false, writes
 * zero. */
static __device__ __forceinline__ void copy_number_async(float *to, const float *from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(there ? 4 : 0)
               : "memory");
}

/* --- barriers --- */

static __device__ __forceinline__ void barrier_init(uint64_t *barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
}
static __device__ __forceinline__ void barrier_arrive(uint64_t *barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/* Arrives when all copies that this thread has started are complete. */
static __device__ __forceinline__ void barrier_arrive_after_copies(uint64_t *barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
/* Waits until the barrier's phase with this parity is complete: the number of arrivals given to
 * barrier_init has been reached. */
static __device__ __forceinline__ void barrier_wait(uint64_t *barrier, unsigned parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
               "@done bra complete;\n"
               "bra again;\n"
               "complete:\n"
               "}" ::"r"(shared_address(barrier)),
               "r"(parity)
               : "memory");
}
/* Makes this thread's writes to shared memory, and its completed copies, visible to products after
 * a subsequent barrier. */
static __device__ __forceinline__ void wgmma_publish() {
#ifdef HAS_WGMMA
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
/* Waits for copies, and makes them visible to the tensor cores. */
static __device__ __forceinline__ void barrier_wait_for_copies(uint64_t *barrier, unsigned parity) {
  barrier_wait(barrier, parity);
  wgmma_publish();
}

/* --- registers --- */

/* Decreases, or increases, the registers of each thread of the calling warpgroup to N
 * (setmaxnreg). */
template <int N> static __device__ __forceinline__ void fewer_registers() {
#ifdef HAS_WGMMA
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
#endif
}
template <int N> static __device__ __forceinline__ void more_registers() {
#ifdef HAS_WGMMA
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
#endif
}

/* --- products --- */
/* Products run asynchronously, in groups. */

/* Must be called between ordinary accesses to registers and the first product that uses them. */
static __device__ __forceinline__ void wgmma_begin() {
#ifdef HAS_WGMMA
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
/* Combines the products started since the last group into a group. */
static __device__ __forceinline__ void wgmma_commit() {
#ifdef HAS_WGMMA
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
/* Waits until all but the latest N groups are complete. */
template <int N> static __device__ __forceinline__ void products_wait() {
#ifdef HAS_WGMMA
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
#endif
}
/* Keeps the compiler from moving accesses to c across this call. It does not know that products run
 * asynchronously. */
template <int N> static __device__ __forceinline__ void hold(float (&c)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(c[i])::"memory");
}
template <int N> static __device__ __forceinline__ void hold(float (&c)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n) hold(c[n]);
}

#ifdef HAS_WGMMA
#define C4(m, i) m(c[i]), m(c[(i) + 1]), m(c[(i) + 2]), m(c[(i) + 3])
#define C16(m, i) C4(m, i), C4(m, (i) + 4), C4(m, (i) + 8), C4(m, (i) + 12)
#define C32(m, i) C16(m, i), C16(m, (i) + 16)
#define WRITTEN(x) "=f"(x)
#define CHANGED(x) "+f"(x)
#define R4 "%0, %1, %2, %3"
#define R8 R4 ", %4, %5, %6, %7"
#define R16 R8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define R32 R16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define R64                                                                                        \
  R32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, "    \
      "%49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WGMMA(columns, registers, rest)                                                            \
  "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32.bf16.bf16 {" registers "}, " rest ";"
#define IF(adds, instruction) "{\n.reg .pred p;\nsetp.ne.b32 p, " adds ", 0;\n" instruction "\n}"
/* BY_ROWS: A and B in shared memory, read by rows; adds C if `adds`. FIRST_BY_ROWS: never reads C.
 * NEXT_BY_ROWS: always adds C. BY_COLUMNS: A in registers, B in shared memory, read by columns;
 * adds C. */
#define BY_ROWS(columns, registers, a_, b_, adds_, ...)                                            \
  asm volatile(IF(adds_, WGMMA(columns, registers, a_ ", " b_ ", p, 1, 1, 0, 0"))                  \
               : __VA_ARGS__                                                                       \
               : "l"(a), "l"(b), "r"(adds ? 1 : 0))
#define FIRST_BY_ROWS(columns, registers, a_, b_, ...)                                             \
  asm volatile(IF("0", WGMMA(columns, registers, a_ ", " b_ ", p, 1, 1, 0, 0"))                    \
               : __VA_ARGS__                                                                       \
               : "l"(a), "l"(b))
#define NEXT_BY_ROWS(columns, registers, a_, b_, ...)                                              \
  asm volatile(WGMMA(columns, registers, a_ ", " b_ ", 1, 1, 1, 0, 0")                             \
               : __VA_ARGS__                                                                       \
               : "l"(a), "l"(b))
#define BY_COLUMNS(columns, registers, a_, b_, ...)                                                \
  asm volatile(WGMMA(columns, registers, "{" a_ "}, " b_ ", 1, 1, 1, 1")                           \
               : __VA_ARGS__                                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

/* Starts c[AT ...] = a b^T, or += if `adds`, of a [64, 16] and b [N, 16] in shared memory. */
template <int N, int AT, int ALL>
static __device__ __forceinline__ void wgmma(float (&c)[ALL], uint64_t a, uint64_t b, bool adds) {
  static_assert(N == 8 || N == 16 || N == 32 || N == 64 || N == 128, "columns");
  if constexpr (N == 8)
    BY_ROWS("8", R4, "%4", "%5", "%6", C4(CHANGED, AT));
  else if constexpr (N == 16)
    BY_ROWS("16", R8, "%8", "%9", "%10", C4(CHANGED, AT), C4(CHANGED, AT + 4));
  else if constexpr (N == 32)
    BY_ROWS("32", R16, "%16", "%17", "%18", C16(CHANGED, AT));
  else if constexpr (N == 64)
    BY_ROWS("64", R32, "%32", "%33", "%34", C32(CHANGED, AT));
  else
    BY_ROWS("128", R64, "%64", "%65", "%66", C32(CHANGED, AT), C32(CHANGED, AT + 32));
}
/* ADDS: starts c += a b^T; else c = a b^T, without reading c. */
template <int N, bool ADDS>
static __device__ __forceinline__ void wgmma(float (&c)[N / 2], uint64_t a, uint64_t b) {
  static_assert(N == 64 || N == 128, "columns");
  if constexpr (N == 64 && ADDS)
    NEXT_BY_ROWS("64", R32, "%32", "%33", C32(CHANGED, 0));
  else if constexpr (N == 64)
    FIRST_BY_ROWS("64", R32, "%32", "%33", C32(WRITTEN, 0));
  else if constexpr (ADDS)
    NEXT_BY_ROWS("128", R64, "%64", "%65", C32(CHANGED, 0), C32(CHANGED, 32));
  else
    FIRST_BY_ROWS("128", R64, "%64", "%65", C32(WRITTEN, 0), C32(WRITTEN, 32));
}
/* Starts c += a b, of a [64, 16] in registers and b [16, N] in shared memory. */
template <int N>
static __device__ __forceinline__ void wgmma_columns(float (&c)[N / 2], const uint32_t (&a)[4],
                                                     uint64_t b) {
  static_assert(N == 64 || N == 128, "columns");
  if constexpr (N == 64)
    BY_COLUMNS("64", R32, "%32, %33, %34, %35", "%36", C32(CHANGED, 0));
  else
    BY_COLUMNS("128", R64, "%64, %65, %66, %67", "%68", C32(CHANGED, 0), C32(CHANGED, 32));
}
#undef C4
#undef C16
#undef C32
#undef R4
#undef R8
#undef R16
#undef R32
#undef R64
#undef WGMMA
#undef IF
#undef WRITTEN
#undef CHANGED
#undef FIRST_BY_ROWS
#undef NEXT_BY_ROWS
#undef BY_ROWS
#undef BY_COLUMNS
#endif

/* c as an array of one dimension. */
template <int N> static __device__ __forceinline__ float (&in_a_row(float (&c)[N][4]))[N * 4] {
  return reinterpret_cast<float(&)[N * 4]>(c);
}
/* Starts c = a b^T. a: 64 rows of a matrix with A_ROWS rows, b: a matrix with N * 8 rows; both are
 * DIM numbers wide. */
template <int DIM, int A_ROWS, int N>
static __device__ __forceinline__ void product_rows([[maybe_unused]] float (&c)[N][4],
                                                    [[maybe_unused]] uint64_t a,
                                                    [[maybe_unused]] uint64_t b) {
#ifdef HAS_WGMMA
#pragma unroll
  for (unsigned k = 0; k < DIM; k += 16) {
    const uint64_t ak = panels_after(a, k / 64 * (A_ROWS * 128) + k % 64 * 2);
    const uint64_t bk = panels_after(b, k / 64 * (N * 8 * 128) + k % 64 * 2);
    k == 0 ? wgmma<N * 8, false>(in_a_row(c), ak, bk) : wgmma<N * 8, true>(in_a_row(c), ak, bk);
  }
#endif
}
/* Starts c [64, DIM] += a [64, K * 16] b [K * 16, DIM], with a in registers. */
template <int K, int N>
static __device__ __forceinline__ void product_columns([[maybe_unused]] float (&c)[N][4],
                                                       [[maybe_unused]] const uint32_t (&a)[K][4],
                                                       [[maybe_unused]] uint64_t b) {
#ifdef HAS_WGMMA
#pragma unroll
  for (unsigned k = 0; k < K; ++k)
    wgmma_columns<N * 8>(in_a_row(c), a[k], panels_after(b, k * 16 * 128));
#endif
}
/* a = c rounded to bfloat16, in the layout that product_columns expects of its first factor. */
template <int N>
static __device__ __forceinline__ void as_a(uint32_t (&a)[N / 2][4], const float (&c)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; n += 2) {
    a[n / 2][0] = pack_halves(c[n][0], c[n][1]);
    a[n / 2][1] = pack_halves(c[n][2], c[n][3]);
    a[n / 2][2] = pack_halves(c[n + 1][0], c[n + 1][1]);
    a[n / 2][3] = pack_halves(c[n + 1][2], c[n + 1][3]);
  }
}

#endif
#endif
