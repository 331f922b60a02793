/* For loops that a compiler should vectorise. */
#ifndef GEPOLAB_CORE_BASE_VECTOR_H
#define GEPOLAB_CORE_BASE_VECTOR_H

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

#endif
