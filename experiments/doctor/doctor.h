/* What is found on a machine, and a short test of the program: parts are compared with what is
 * known exactly, then timed. */
#ifndef GEPOLAB_EXPERIMENTS_DOCTOR_DOCTOR_H
#define GEPOLAB_EXPERIMENTS_DOCTOR_DOCTOR_H

#include "experiments/bench/bench.h"

#include <stddef.h>

/* --- programs, libraries and devices --- */

/* What gepolab can use on this machine: for each thing whether it is there, what it is for, and how
 * to get it. Prefix: found_. */

enum { FOUND_TEXT = 200 };

typedef struct found_thing {
  const char *name, *use, *remedy; /* static; remedy: how to get it where it is missing */
  int needed; /* README's commands fail without it; else something is left out */
  int present;
  char detail[FOUND_TEXT]; /* its version, or why it is missing */
} found_thing;

/* Looks for the i-th thing; 0 past the last. Starts other programs for their versions, each for a
 * few seconds at most. What it finds is what a command of this process would find: the same PATH,
 * $GEPOLAB_PYTHON, $GEPOLAB_CACHE and CUDA devices. */
int found_look(found_thing *out, size_t i);

/* --- the self-test --- */

/* Ten seconds of the program's own work: whether its parts give what is known exactly, and how fast
 * they are here. Prefix: self_test_. */

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
