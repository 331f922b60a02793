/* Macros for vectorised loops, sums in lanes, and exponentials of arrays. */
#ifndef GEPOLAB_CORE_BASE_SIMD_H
#define GEPOLAB_CORE_BASE_SIMD_H

#include <stddef.h>
#include <stdint.h>

/* Compiles a function for wider vectors, with the same operations in the same order, and selects
 * the version at run time. Sanitized builds have no resolver functions, because these would run
 * before the sanitizer runtime is ready. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PLAIN_BUILD
#endif
#endif
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) &&                 \
    !defined(__SANITIZE_THREAD__) && !defined(PLAIN_BUILD)
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif
#define INLINE static inline __attribute__((always_inline))

/* Four numbers, and the result of comparing them: all bits of a lane are set if true. Inlined
 * functions take them by address, because passing by value would require AVX in their callers. */
typedef double lane4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t mask4 __attribute__((vector_size(32), aligned(8), may_alias));

INLINE double lane4_total(const lane4 *v) {
  return ((*v)[0] + (*v)[1]) + ((*v)[2] + (*v)[3]);
}

/* Loads up to four numbers of value[n], and 0 in the remaining lanes. */
INLINE void lane4_some(const double *value, size_t n, lane4 *out) {
  *out = (lane4){0};
  for (size_t l = 0; l < 4 && l < n; ++l) (*out)[l] = value[l];
}

/* The sum of value[n]: number k is added in lane k mod 4, and the lanes are added last. */
INLINE double lane4_sum(const double *value, size_t n) {
  lane4 sum = {0}, rest;
  size_t k = 0;
  for (; k + 4 <= n; k += 4) sum += *(const lane4 *)(value + k);
  lane4_some(value + k, n - k, &rest);
  sum += rest;
  return lane4_total(&sum);
}

/* Computes out[k] = e^x[k] for k < n; out is x or does not overlap it. The error is at most 1.1
 * units in the last place; exact for 0; infinities, 0 and NaN as in exp(). Each result depends
 * neither on its index nor on the machine. */
void vector_exp(const double *x, size_t n, double *out);

#endif
