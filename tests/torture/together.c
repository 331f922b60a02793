/* Two commands at once on the same files: each is done, or refuses or waits and says so; what one
 * that ended well has written is there, and both can be called again. */
#define _GNU_SOURCE
#include "tests/torture/families.h"
#include "tests/torture/writers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct pair {
  const char *name;
  const char *first, *second; /* writers of writers.c */
} pair;

static const pair pairs[] = {
    {"sweep and sweep", "sweep, tuned, -j 2", "sweep, tuned, -j 1"},
    {"sweep and sweep with checkpoints", "sweep, checkpoints, -j 3", "sweep, checkpoints, -j 3"},
    {"sweep and sweep with checkpoints beside", "sweep, checkpoints beside, -j 2",
     "sweep, checkpoints beside, -j 2"},
    {"sweep and run", "sweep, tuned, -j 2", "run -o"},
    {"sweep and merge", "sweep, tuned, -j 2", "merge"},
    {"sweep and bias", "sweep, tuned, -j 2", "bias -o"},
    {"merge and merge", "merge", "merge"},
    {"run and run", "run --checkpoint", "run --checkpoint"},
    {"save and save", "run --save", "run --save"},
    {"export and export", "export -o", "export -o"},
    {"plot and plot", "plot, one figure", "plot, one figure"},
    {"bias and bias", "bias -o", "bias -o"},
    {"sft and sft", "llm sft", "llm sft"},
    {"rl and rl", "llm rl", "llm rl"},
};
enum { N_PAIRS = sizeof pairs / sizeof *pairs };

static void judge(trial *t, const outcome *o, const char *name) {
  outcome_decent(t, o, name);
  if (o->code == 0) return;
  if (strstr(o->err, "another") == NULL && strstr(o->err, "being written") == NULL)
    trial_fail(t, "%s: exit %d, and does not say that another is at work: %.300s", name, o->code,
               o->err);
}

/* Called again one after the other, each ends well. */
static void call_again(trial *t, size_t w) {
  char cache[TORTURE_PATH];
  job j = writer_job(&writers[w]);
  job_own_cache(t, &j, cache);
  writer_make_room(t, w);
  outcome o = job_run(t, &j);
  outcome_decent(t, &o, writers[w].name);
  if (o.code != 0) trial_fail(t, "%s afterwards: exit %d: %.300s", writers[w].name, o.code, o.err);
  outcome_fini(&o);
}

/* The study with what both write must be that of one after the other, whichever was first. */
static void compare_studies(trial *t, size_t a, size_t b) {
  const char *study = writers[a].study;
  char path[TORTURE_PATH], elsewhere[TORTURE_PATH];
  exports together = study_exports(t, study);
  join(path, t->work, study);
  join(elsewhere, t->work, "together.db");
  if (rename(path, elsewhere) != 0) trial_fail(t, "there is no %s", study);
  call_again(t, a);
  call_again(t, b);
  exports apart = study_exports(t, study);
  if (trial_good(t)) exports_equal(t, &apart, &together, "two at once");
  exports_fini(&together);
  exports_fini(&apart);
}

void family_together(trial *t) {
  const size_t c = draw_case(t, &pairs[0].name, sizeof *pairs, N_PAIRS);
  if (c == SIZE_MAX) return;
  const size_t a = writer_named(pairs[c].first), b = writer_named(pairs[c].second);
  char cache[TORTURE_PATH];
  job first = writer_job(&writers[a]), second = writer_job(&writers[b]);
  job_own_cache(t, &first, cache);
  second.environment[0] = cache;
  pid_t one = job_start(t, &first, "first", -1);
  sleep_s(1.1 * reference_of(t, a)->seconds * draw_unit(t));
  pid_t two = job_start(t, &second, "second", -1);
  outcome x = job_wait(t, one, "first", 60), y = job_wait(t, two, "second", 60);
  judge(t, &x, writers[a].name);
  judge(t, &y, writers[b].name);
  if (x.code != 0 && y.code != 0)
    trial_fail(t, "%s: neither is done: %.300s%.300s", pairs[c].name, x.err, y.err);
  const int both = x.code == 0 && y.code == 0;
  outcome_fini(&x);
  outcome_fini(&y);
  if (!trial_good(t)) return;
  if (!both) call_again(t, a), call_again(t, b);
  if (!trial_good(t)) return;
  if (a == b || writers[a].study == NULL)
    writer_left_all(t, a);
  else
    compare_studies(t, a, b);
}
