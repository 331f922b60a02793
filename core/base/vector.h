/* For loops that a compiler should vectorise, sums in lanes, and exponentials of many numbers. */
#ifndef GEPOLAB_CORE_BASE_VECTOR_H
#define GEPOLAB_CORE_BASE_VECTOR_H

#include <stddef.h>
#include <stdint.h>

/* Wider vectors where the machine has them, the same operations in the same order everywhere. A
 * sanitized build has no resolver functions: they would run before its runtime is up. */
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

/* Four numbers, and what comparing them gives: all bits of a lane are set where it holds. Functions
 * that are inlined take them by address: by value they would need AVX in their callers. */
typedef double lane4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t mask4 __attribute__((vector_size(32), aligned(8), may_alias));

INLINE double lane4_total(const lane4 *v) {
  return ((*v)[0] + (*v)[1]) + ((*v)[2] + (*v)[3]);
}

/* Up to four numbers of value[n], and 0 in the lanes beyond. */
INLINE void lane4_some(const double *value, size_t n, lane4 *out) {
  *out = (lane4){0};
  for (size_t l = 0; l < 4 && l < n; ++l) (*out)[l] = value[l];
}

/* The sum of value[n]: number k belongs to lane k mod 4, and the lanes are added last. */
INLINE double lane4_sum(const double *value, size_t n) {
  lane4 sum = {0}, rest;
  size_t k = 0;
  for (; k + 4 <= n; k += 4) sum += *(const lane4 *)(value + k);
  lane4_some(value + k, n - k, &rest);
  sum += rest;
  return lane4_total(&sum);
}

/* out[k] = e^x[k] for all n, which is the same array or another one that does not overlap. Within
 * 1.1 units in the last place; 1 for 0; infinity, 0 and not-a-number as exp() has them. A number's
 * bits depend neither on its place nor on the machine. */
void vector_exp(const double *x, size_t n, double *out);

#endif
