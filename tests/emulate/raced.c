/* Tests of the race detector (race.cpp): kernels with a race are reported, the same kernels without
 * it are not. */
#include "emulate_control.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("llm: emulated races");

#ifdef GEPOLAB_EMULATE_RACES
/* Whether a case is reported, which aborts the process that runs it: a child. */
static int is_told(enum race_case which, int clean) {
  int state = 0;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stderr) == NULL) _exit(2);
    emulate_race_case(which, clean);
    _exit(0);
  }
  CU_ASSERT_FATAL(child > 0 && waitpid(child, &state, 0) == child);
  CU_ASSERT(WIFSIGNALED(state) || WEXITSTATUS(state) == 0);
  return WIFSIGNALED(state) && WTERMSIG(state) == SIGABRT;
}
#endif

TEST(races_are_told) {
#ifdef GEPOLAB_EMULATE_RACES
  static const enum race_case cases[] = {RACE_SHARED, RACE_WARP, RACE_COPY, RACE_BLOCKS, RACE_LAST};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    CU_ASSERT(is_told(cases[i], 0));
    CU_ASSERT(!is_told(cases[i], 1));
  }
  CU_ASSERT(!is_told(RACE_ATOMIC, 1));
#else
  SKIP("make racecheck looks for races");
#endif
}
