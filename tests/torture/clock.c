/* A clock that jumps for- and backwards by years: results are the same. */
#include "tests/torture/families.h"
#include "tests/torture/writers.h"

#include <stdio.h>

const char *clock_missing(const session *s) {
  return s->clock[0] != '\0' ? NULL : "no library that makes the clock jump (--clock)";
}

void family_clock(trial *t) {
  const size_t w = writer_draw(t);
  if (w == SIZE_MAX) return;
  char cache[TORTURE_PATH], preload[TORTURE_PATH + 16], seed[64];
  job j = writer_job(&writers[w]);
  job_own_cache(t, &j, cache);
  snprintf(preload, sizeof preload, "LD_PRELOAD=%s", t->session->clock);
  snprintf(seed, sizeof seed, "TORTURE_CLOCK=%llu", (unsigned long long)draw(t));
  j.environment[1] = preload;
  j.environment[2] = seed;
  for (int i = 0; i < 2 - (writers[w].once != NULL) && trial_good(t);
       ++i) { /* made, and found made */
    outcome o = job_run(t, &j);
    outcome_decent(t, &o, writers[w].name);
    if (o.code != 0) trial_fail(t, "%s: exit %d: %.300s", writers[w].name, o.code, o.err);
    outcome_fini(&o);
    if (trial_good(t)) writer_left_all(t, w);
  }
}
