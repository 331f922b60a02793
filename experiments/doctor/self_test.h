/* Ten seconds of the program's own work: whether its parts give what is known exactly, and how fast
 * they are here. Prefix: self_test_. */
#ifndef GEPOLAB_EXPERIMENTS_DOCTOR_SELF_TEST_H
#define GEPOLAB_EXPERIMENTS_DOCTOR_SELF_TEST_H

#include "experiments/bench/bench.h"

#include <stddef.h>

enum { SELF_TEST_TEXT = 240, SELF_TEST_MOST = 4, SELF_TEST_SECONDS = 10 };

/* One comparison with what is known. */
typedef struct self_check {
  const char *name; /* static */
  int passed;
  char detail[SELF_TEST_TEXT]; /* what was compared, or the error */
} self_check;

typedef struct self_test {
  self_check checks[SELF_TEST_MOST];
  size_t n_checks;
  bench speeds; /* one repetition each; nothing begins after SELF_TEST_SECONDS */
  double seconds;
} self_test;

/* Runs it. Failures are results (passed 0), not errors. */
void self_test_run(self_test *t);
int self_test_passed(const self_test *t);

#endif
