/* Runs every suite linked in, or those whose name contains argv[1]. CUnit's summary is the last
 * thing printed. */
#include "tests/support/suite.h"

#include <CUnit/Basic.h>
#include <gsl/gsl_errno.h>
#include <stdlib.h>
#include <string.h>

extern const test_suite *const __start_gl_suites[];
extern const test_suite *const __stop_gl_suites[];

int main(int argc, char **argv) {
  gsl_set_error_handler_off(); /* as the command does */
  /* What the commands keep between runs is not put beside the caller's own. */
  if (setenv("GEPOLAB_CACHE", "", 1) != 0) return EXIT_FAILURE;
  if (CU_initialize_registry() != CUE_SUCCESS) return EXIT_FAILURE;
  for (const test_suite *const *s = __start_gl_suites; s != __stop_gl_suites; ++s) {
    if (argc > 1 && strstr((*s)->name, argv[1]) == NULL) continue;
    CU_pSuite suite = CU_add_suite((*s)->name, NULL, NULL);
    for (const CU_TestInfo *t = (*s)->tests; t->pName != NULL; ++t)
      if (suite == NULL || CU_add_test(suite, t->pName, t->pTestFunc) == NULL) return EXIT_FAILURE;
  }
  CU_basic_set_mode(CU_BRM_VERBOSE);
  CU_basic_run_tests();
  int failed = CU_get_number_of_failures() != 0 || CU_get_number_of_tests_run() == 0;
  CU_cleanup_registry();
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
