/* The program under a limit on its address space: it works or says what is missing, and ends. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "tests/support/cli.h"
#include "tests/support/sanitized.h"
#include "tests/support/suite.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("cli: memory limits");

/* Exit code of gepolab with the arguments under a limit of so many KiB; 137: it had to be killed.
 */
static int ends_with(const char *folder, long kib, const char *arguments) {
  const char *path = getenv("GEPOLAB");
  char line[512];
  snprintf(line, sizeof line,
           "ulimit -v %ld; timeout -s KILL 120 %s %s >%s/out 2>%s/err </dev/null; exit $?", kib,
           path != NULL ? path : "build/gepolab", arguments, folder, folder);
  const int status = system(line);
  return status >= 0 ? status >> 8 : -1;
}

static int told(const char *folder) {
  char line[160];
  snprintf(line, sizeof line, "test -s %s/err", folder);
  return system(line) == 0;
}

/* From less than the libraries need to plenty. */
TEST(under_a_memory_limit_a_command_works_or_says_why_not) {
  static const long limits[] = {40000, 70000, 85000, 100000, 130000, 200000, 300000, 1000000};
  static const char recipe[] = "steps: 5\nworld: {kind: bandit}\nsweep: {seed: [1, 2, 3]}\n";
  if (SANITIZED) SKIP("a sanitizer takes the address space");
  char folder[64], path[128], sweep[320];
  cli_scratch_make(folder);
  cli_write(cli_path(path, folder, "r.yaml"), recipe, sizeof recipe - 1);
  size_t worked = 0;
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; ++i) {
    snprintf(sweep, sizeof sweep, "sweep %s -o %s/%zu.db -j 2 -q", path, folder, i);
    const char *const commands[] = {"run quickstart -q", sweep,
                                    "run llm_quick steps=1 world.warmup=null -q"};
    for (size_t k = 0; k < 3; ++k) {
      const int code = ends_with(folder, limits[i], commands[k]);
      if (code == 137) fprintf(stderr, "%ld KiB: '%s' hangs\n", limits[i], commands[k]);
      CU_ASSERT(code != 137 && code >= 0);
      CU_ASSERT(code == 0 || told(folder));
      worked += code == 0;
    }
  }
  CU_ASSERT(worked >= 6);
}

/* Memory of the laboratory grows with the contexts and not with their square: 8,000 took 16.5 GB,
 * at which rate these would take 0.6 GB. */
TEST(many_contexts_of_the_laboratory_fit_into_little_memory) {
  if (SANITIZED) SKIP("a sanitizer takes the address space");
  char folder[64];
  cli_scratch_make(folder);
  CU_ASSERT_EQUAL(ends_with(folder, 300000, "lab bias four_arms world.contexts=1500"), 0);
}

/* A process is bound to one core only until main(): this one, which begins as gepolab does, has the
 * cores of the process that started it. */
TEST(all_cores_are_there_again) {
  cpu_set_t own, parents;
  CPU_ZERO(&own);
  CPU_ZERO(&parents);
  CU_ASSERT_EQUAL(sched_getaffinity(0, sizeof own, &own), 0);
  CU_ASSERT_EQUAL(sched_getaffinity(getppid(), sizeof parents, &parents), 0);
  CU_ASSERT(CPU_EQUAL(&own, &parents));
}
