/* How a test file offers its tests: SUITE("room: topic") heads the TEST()s that follow it. The
 * shared main (tests/support/main.c) runs every suite linked in, found through linker sections, so
 * adding a file or a test needs no list. Test names read as sentences of what holds. */
#ifndef GEPOLAB_TESTS_SUPPORT_SUITE_H
#define GEPOLAB_TESTS_SUPPORT_SUITE_H

#include "core/base/error.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>

/* A place in the tests: a suite's heading, or (with run) a test. */
typedef struct test_entry {
  const char *file;
  int line;
  const char *name;
  void (*run)(void);
} test_entry;

#define TEST_ENTRY(ident, ...)                                                                     \
  static const test_entry ident = {__FILE__, __LINE__, __VA_ARGS__};                               \
  __attribute__((used, section("gl_tests"))) static const test_entry *const ident##_at = &ident
#define SUITE_AT(line, title) TEST_ENTRY(suite_##line, title, NULL)
#define SUITE_ON(line, title) SUITE_AT(line, title)
#define SUITE(title) SUITE_ON(__LINE__, title)

#define TEST(name)                                                                                 \
  static void name(void);                                                                          \
  TEST_ENTRY(name##_test, #name, name);                                                            \
  static void name(void)

/* |a - b| <= tol * max(1, |a|, |b|), with both values in the message on failure. */
#define ASSERT_CLOSE(a, b, tol)                                                                    \
  do {                                                                                             \
    double a_ = (a), b_ = (b), t_ = (tol);                                                         \
    int ok_ = fabs(a_ - b_) <= t_ * fmax(1.0, fmax(fabs(a_), fabs(b_)));                           \
    if (!ok_)                                                                                      \
      fprintf(stderr, "%s:%d: %s = %.17g, %s = %.17g\n", __FILE__, __LINE__, #a, a_, #b, b_);      \
    CU_ASSERT(ok_);                                                                                \
  } while (0)

/* The call must return GL_OK, or its message is printed and the test ends. It may use `&err`, which
 * is declared here. */
#define ASSERT_OK(call)                                                                            \
  do {                                                                                             \
    gl_error err = {.status = GL_OK};                                                              \
    const gl_status status_ = (call);                                                              \
    if (status_ != GL_OK) fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, err.text);            \
    CU_ASSERT_EQUAL_FATAL(status_, GL_OK);                                                         \
  } while (0)

/* Calls release(what) when the running test has ended, also where an assertion ended it; the last
 * first. */
void test_at_end(void (*release)(void *), void *what);
/* Calls them now, for a test of what remains in use after a release. */
void test_release_now(void);
/* A copy of the bytes, which the end of the test frees after what was registered later. */
void *test_copy(const void *bytes, size_t size);

/* Notes why the running test cannot run here; the harness counts and names such tests at the end.
 */
void test_skipped(const char *why);

/* Ends a test that cannot run here; the test passes. why: a string constant. */
#define SKIP(why)                                                                                  \
  do {                                                                                             \
    test_skipped(why);                                                                             \
    return;                                                                                        \
  } while (0)

#endif
