/* Whether this is a build with AddressSanitizer or ThreadSanitizer, which take address space and
 * threads of their own. */
#ifndef GEPOLAB_TESTS_SUPPORT_SANITIZED_H
#define GEPOLAB_TESTS_SUPPORT_SANITIZED_H

#if defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#endif
