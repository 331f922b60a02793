/* Killed at a random moment, at a random system call that changes the disk, or in a worker: every
 * file is the old or the new one, studies open, and the same command goes on to the results of one
 * that nothing disturbed. */
#define _GNU_SOURCE
#include "tests/torture/families.h"
#include "tests/torture/writers.h"

#include <signal.h>
#include <string.h>

static void plan_signal(trial *t, job *j, size_t w) {
  static const int signals[] = {SIGKILL, SIGKILL, SIGTERM, SIGINT, SIGHUP};
  const double usual = reference_of(t, w)->seconds;
  j->signal = signals[draw_below(t, 5)];
  j->aim = j->signal == SIGKILL    ? (aim)draw_below(t, 3)
           : draw_below(t, 2) == 0 ? AIM_PARENT
                                   : AIM_ALL;
  j->after_s = 1.2 * usual * draw_unit(t);
}

static void plan_call(trial *t, job *j, size_t w) {
  static const trace_action actions[] = {TRACE_KILL_ALL, TRACE_KILL_ONE, TRACE_HALF_KILL};
  const long calls = reference_of(t, w)->calls;
  j->trace.action = actions[draw_below(t, 3)];
  j->trace.nth = 1 + (long)draw_below(t, (size_t)(calls > 0 ? calls : 1));
}

/* What may come of a command that was struck: ended by the signal, interrupted, or with a worker
 * lost. A strike that found nothing is none. */
static void judge(trial *t, const outcome *o, const job *j, size_t w) {
  const char *name = writers[w].name;
  outcome_decent(t, o, name);
  if (writers[w].once != NULL && o->code == 2 && strstr(o->err, "already") != NULL) return;
  if (o->code != 0 && !o->struck)
    trial_fail(t, "%s: exit %d of itself: %.300s", name, o->code, o->err);
  if (o->code == 0 || !o->struck) return;
  if (o->signal == SIGKILL || o->signal == SIGTERM || o->signal == SIGINT || o->signal == SIGHUP)
    return;
  const int own_signal = j->signal != 0 && j->signal != SIGKILL;
  if (own_signal && (o->code == 130 || strstr(o->err, "stopped by") != NULL)) return;
  const int lost_child = j->aim == AIM_CHILD || j->trace.action == TRACE_KILL_ONE;
  if ((lost_child || j->aim == AIM_ALL) && o->code == 1) return;
  trial_fail(t, "%s: exit %d after signal %d: %.300s", name, o->code, j->signal, o->err);
}

void family_kills(trial *t) {
  const size_t w = writer_draw(t);
  if (w == SIZE_MAX) return;
  snapshot old = {0};
  if (draw_below(t, 2) == 0) old = writer_prepare(t, w);
  size_t rounds = 1;
  while (rounds < 6 && draw_below(t, 3) == 0) ++rounds;
  for (size_t i = 0; i < rounds && trial_good(t); ++i) {
    char cache[TORTURE_PATH];
    job j = writer_job(&writers[w]);
    job_own_cache(t, &j, cache);
    if (t->session->can_trace && draw_below(t, 2) == 0)
      plan_call(t, &j, w);
    else
      plan_signal(t, &j, w);
    outcome o = job_run(t, &j);
    judge(t, &o, &j, w);
    const int done = o.code == 0;
    outcome_fini(&o);
    if (!trial_good(t)) break;
    if (done)
      writer_left_all(t, w);
    else
      writer_left_sound(t, w, &old);
  }
  if (trial_good(t)) writer_goes_on(t, w);
  snapshot_fini(&old);
}
