/* Allocations that end the program. */
#include "experiments/base/memory.h"
#include "tests/support/suite.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("cli: memory");

TEST(arrays_are_zeroed_and_texts_are_copies) {
  double *numbers = MUST_ARRAY(double, 3, "numbers");
  CU_ASSERT(numbers[0] == 0 && numbers[2] == 0);
  free(numbers);
  char *text = must_textf("a name", "%s %d", "cell", 7), *copy = must_copy(text, "a name");
  CU_ASSERT_STRING_EQUAL(copy, "cell 7");
  CU_ASSERT(copy != text);
  free(text);
  free(copy);
  int *list = NULL;
  size_t n = 0;
  for (int i = 0; i < 100; ++i) *MUST_ADD(list, n, "a list") = i;
  CU_ASSERT(n == 100 && list[99] == 99);
  free(list);
}

/* A size that no machine has, and one whose product is not a size_t. */
TEST(without_memory_the_program_ends_with_1) {
  static const size_t items[] = {SIZE_MAX / 16, SIZE_MAX / 4};
  for (size_t i = 0; i < 2; ++i) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
      (void)!freopen("/dev/null", "w", stderr);
      void *memory = must_alloc(items[i], 8, "a test");
      _exit(memory == NULL ? 3 : 4);
    }
    int status = 0;
    CU_ASSERT(waitpid(child, &status, 0) == child);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  }
}
