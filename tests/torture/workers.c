/* One worker of a sweep killed, each in its turn: the sweep names it and ends with an error, no
 * cell of the grid is run with rates that a missing tuning run might have changed, and the same
 * command goes on to the results of a sweep that lost none. */
#define _GNU_SOURCE
#include "tests/torture/families.h"
#include "tests/torture/writers.h"

#include <string.h>

enum { TUNING_RUNS = 16 };

const char *tracing_missing(const session *s) {
  return s->can_trace ? NULL : "processes cannot be traced here";
}

/* Records of the exported table, its line of names not counted. */
static size_t count_runs(trial *t, const char *path) {
  job j = JOB("export", path, "--table", "runs");
  outcome o = job_run(t, &j);
  size_t lines = 0;
  for (const char *c = o.out; *c != '\0'; ++c) lines += *c == '\n';
  outcome_fini(&o);
  return lines > 0 ? lines - 1 : 0;
}

void family_workers(trial *t) {
  static const char *const names[] = {"sweep, tuned, -j 1", "sweep, tuned, -j 2",
                                      "sweep, checkpoints, -j 3", "sweep, grid, -j 3"};
  const size_t c = draw_case(t, names, sizeof *names, 4);
  if (c == SIZE_MAX) return;
  const size_t w = writer_named(names[c]);
  job j = writer_job(&writers[w]);
  const long forks = reference_of(t, w)->forks;
  const long tuning = forks > 8 ? TUNING_RUNS : 0;
  j.trace.action = TRACE_KILL_FORK;
  j.trace.nth = 1 + (long)(t->number % (uint64_t)(forks > 0 ? forks : 1));
  j.trace.own_calls = (long)draw_below(t, 3);
  outcome o = job_run(t, &j);
  outcome_decent(t, &o, names[c]);
  if (o.struck && o.code == 0)
    trial_fail(t, "%s: worker %ld was killed and the sweep ended well", names[c], j.trace.nth);
  if (o.struck && o.code != 0 && strstr(o.err, "signal") == NULL && strstr(o.err, "illed") == NULL)
    trial_fail(t, "%s: worker %ld was killed, and the message does not say so: %.300s", names[c],
               j.trace.nth, o.err);
  if (o.struck && j.trace.nth <= tuning) {
    const size_t cells = count_runs(t, "study.db");
    if (cells > 0)
      trial_fail(t, "%s: tuning run %ld was killed and %zu cells of the grid are in the study",
                 names[c], j.trace.nth, cells);
  }
  outcome_fini(&o);
  if (trial_good(t)) writer_goes_on(t, w);
}
