/* Runs the files of tests in several processes. CUnit in the first process gets their results in
 * the order of the files, so its output and summary are those of one process. */
#ifndef GEPOLAB_TESTS_SUPPORT_PROCESSES_H
#define GEPOLAB_TESTS_SUPPORT_PROCESSES_H

#include "tests/support/suite.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct wanted_test {
  const test_entry *suite, *test;
  bool first;  /* of its suite */
  size_t file; /* a number from 0, the same for all tests of a file */
} wanted_test;

/* Begins n processes that share the files; each calls `end` before it exits. 0: the system refused.
 * tests[n_tests] must stay until processes_end(). */
int processes_begin(size_t n, const wanted_test *tests, size_t n_tests, void (*end)(void));
/* A test for CUnit: the next one of tests[], with the result that its process sent. */
void processes_replay(void);
/* The monotonic clock, in seconds. */
double processes_now(void);
/* How long the replayed tests took, in seconds, since the last call. */
double processes_seconds(void);
/* Waits for the processes: how many ended by a signal or with an exit status. */
size_t processes_end(void);
/* Notes in a process, for its next result, why the running test is skipped. */
void processes_skipped(const char *why);
/* Whether this process sends its results. */
bool processes_sends(void);

#endif
