/* Inspects the machine, and runs a short test of the program: compares results with exactly known
 * ones, then measures speeds. */
#ifndef GEPOLAB_EXPERIMENTS_DOCTOR_DOCTOR_H
#define GEPOLAB_EXPERIMENTS_DOCTOR_DOCTOR_H

#include "experiments/bench/bench.h"

#include <stddef.h>

/* --- programs, libraries and devices --- */

/* Programs, files and devices that gepolab can use on this machine: whether each exists, its
 * purpose, and how to get it. */

enum { FOUND_TEXT = 200 };

typedef struct found_thing {
  const char *name, *use, *remedy; /* static; remedy: how to get it if it is missing */
  int needed; /* 1: README's commands fail without it; 0: only a feature is missing */
  int present;
  char detail[FOUND_TEXT]; /* its version, or why it is missing */
} found_thing;

/* Checks the i-th item; returns 0 if there are fewer. Starts other programs for their versions,
 * each for a few seconds at most. It uses this process's PATH, $GEPOLAB_PYTHON, $GEPOLAB_CACHE and
 * CUDA devices, and so finds what a command would find. */
int detect_one(found_thing *out, size_t i);

/* --- the self-test --- */

/* A ten-second self-test: checks parts of the program against exactly known results, and measures
 * their speed on this machine. Prefix: self_test_. */

enum { SELF_TEST_TEXT = 240, SELF_TEST_MOST = 4, SELF_TEST_SECONDS = 10 };

/* One comparison with a known result. */
typedef struct self_check {
  const char *name; /* static */
  int passed;
  char detail[SELF_TEST_TEXT]; /* what was compared, or the error */
} self_check;

typedef struct self_test {
  self_check checks[SELF_TEST_MOST];
  size_t n_checks;
  bench speeds; /* one repetition each; none begins after SELF_TEST_SECONDS */
  double seconds;
} self_test;

/* Runs the test. Failures are results (passed 0), not errors. */
void self_test_run(self_test *t);
int self_test_passed(const self_test *t);

#endif
