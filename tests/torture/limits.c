/* Too little memory, too few descriptors or processes: done, or an error with a reason; never a
 * crash, and nothing lost. */
#define _GNU_SOURCE
#include "tests/torture/families.h"
#include "tests/torture/writers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOBODY = 65534 };

typedef struct shortage {
  const char *name;
  int what;
  double low, high; /* drawn evenly in their logarithm */
  uid_t uid;
} shortage;

static const shortage shortages[] = {{"memory", RLIMIT_AS, 40e6, 3e9, 0},
                                     {"memory", RLIMIT_DATA, 5e5, 3e8, 0},
                                     {"descriptors", RLIMIT_NOFILE, 3, 40, 0},
                                     {"processes", RLIMIT_NPROC, 1, 8, NOBODY}};

/* The loader itself, or the C library before main(), had no room. */
static int never_began(const outcome *o) {
  return o->code == 126 || o->code == 127 ||
         (o->code != 0 && strstr(o->err, "error while loading shared libraries") != NULL);
}

void family_limits(trial *t) {
  const size_t w = writer_draw(t);
  if (w == SIZE_MAX) return;
  const shortage *s = &shortages[draw_below(t, 4)];
  char cache[TORTURE_PATH], how[160];
  job j = writer_job(&writers[w]);
  job_own_cache(t, &j, cache);
  /* OpenBLAS starts its threads before main(), and where it cannot, hangs or sends itself SIGINT.
   */
  j.environment[1] = "OPENBLAS_NUM_THREADS=1";
  const double value = s->low * pow(s->high / s->low, draw_unit(t));
  j.limits[0].what = s->what;
  j.limits[0].value = (rlim_t)value;
  j.n_limits = 1;
  if (s->uid != 0) {
    if (geteuid() != 0 || chmod(t->work, 0777) != 0) {
      trial_skip(t, "another user needs root");
      return;
    }
    j.uid = s->uid;
  }
  snprintf(how, sizeof how, "%s with %s limited to %.0f", writers[w].name, s->name, floor(value));
  outcome o = job_run(t, &j);
  if (!never_began(&o)) {
    outcome_decent(t, &o, how);
    if (o.signal != 0) trial_fail(t, "%s: ended by signal %d: %.300s", how, o.signal, o.err);
    if (o.code != 0 && strstr(o.err, "gepolab: ") == NULL)
      trial_fail(t, "%s: exit %d without a message of ours: %.300s", how, o.code, o.err);
    if (trial_good(t) && o.code == 0) writer_left_all(t, w);
    if (trial_good(t) && o.code != 0) writer_left_sound(t, w, NULL);
  }
  outcome_fini(&o);
  if (trial_good(t)) writer_goes_on(t, w);
}

/* --- permissions --- */

const char *root_missing(const session *s) {
  (void)s;
  return geteuid() == 0 ? NULL : "another user needs root";
}

static int unchanged(trial *t, const snapshot *old) {
  snapshot now = snapshot_take(t->work);
  int same = now.n == old->n;
  for (size_t i = 0; i < now.n && same; ++i) {
    const file_copy *f = snapshot_find(old, now.files[i].name);
    same = f != NULL && f->size == now.files[i].size &&
           memcmp(f->bytes, now.files[i].bytes, f->size) == 0;
  }
  snapshot_fini(&now);
  return same;
}

/* Somebody who may not write in the folder, or not to the files in it. */
void family_permissions(trial *t) {
  const size_t w = writer_draw(t);
  if (w == SIZE_MAX) return;
  char cache[TORTURE_PATH], path[TORTURE_PATH];
  snapshot old = {0};
  const int of_files = draw_below(t, 2) == 0;
  if (of_files || draw_below(t, 2) == 0) old = writer_prepare(t, w);
  if (old.n == 0) old = snapshot_take(t->work);
  chmod(t->work, of_files ? 0777 : 0555);
  for (size_t i = 0; i < old.n; ++i) chmod(join(path, t->work, old.files[i].name), 0444);
  job j = writer_job(&writers[w]);
  job_own_cache(t, &j, cache);
  j.uid = NOBODY;
  if (trial_good(t)) {
    outcome o = job_run(t, &j);
    outcome_decent(t, &o, writers[w].name);
    if (!of_files && o.code == 0) trial_fail(t, "%s: wrote where it may not", writers[w].name);
    if (!of_files && strstr(o.err, "ermission") == NULL && strstr(o.err, "may not") == NULL &&
        strstr(o.err, "ead-only") == NULL)
      trial_fail(t, "%s: the message does not say that it may not: %.300s", writers[w].name, o.err);
    if (!of_files && !unchanged(t, &old)) trial_fail(t, "%s: changed files", writers[w].name);
    if (of_files && o.code != 0 && trial_good(t)) writer_left_sound(t, w, &old);
    outcome_fini(&o);
  }
  chmod(t->work, 0777);
  for (size_t i = 0; i < old.n; ++i) chmod(join(path, t->work, old.files[i].name), 0666);
  if (trial_good(t)) writer_goes_on(t, w);
  snapshot_fini(&old);
}
