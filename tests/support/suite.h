/* How a test file offers its suite. Every file below tests/ that has tests defines one SUITE, named
 * "room: topic"; the shared main (tests/support/main.c) runs every suite linked in, found through a
 * linker section, so adding a file needs no list. Test names read as sentences of what holds. */
#ifndef GEPOLAB_TESTS_SUPPORT_SUITE_H
#define GEPOLAB_TESTS_SUPPORT_SUITE_H

#include "core/base/error.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>

typedef struct test_suite {
  const char *name;
  const CU_TestInfo *tests; /* ends with CU_TEST_INFO_NULL */
} test_suite;

#define SUITE(ident, text, ...)                                                                    \
  static const CU_TestInfo ident##_tests[] = {__VA_ARGS__, CU_TEST_INFO_NULL};                     \
  static const test_suite ident##_suite = {text, ident##_tests};                                   \
  __attribute__((used, section("gl_suites"))) static const test_suite *const ident##_entry =       \
      &ident##_suite

#define TEST(function)                                                                             \
  { #function, function }

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
