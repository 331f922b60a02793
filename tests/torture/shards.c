/* Shards: each killed and gone on with, joined in any order, some twice, the joining killed too:
 * the exports are those of one sweep. A shard that is missing is named. And the same under MPI. */
#define _GNU_SOURCE
#include "tests/torture/families.h"
#include "tests/torture/writers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const cases[] = {"tuned", "grid"};

static void make_shard(trial *t, const char *recipe, const char *shard) {
  job j = JOB("sweep", recipe, "-o", "study.db", "-q", "-j", "2", "--shard", shard);
  if (draw_below(t, 2) == 0) {
    job killed = j;
    killed.signal = SIGKILL;
    killed.aim = draw_below(t, 2) == 0 ? AIM_PARENT : AIM_ALL;
    killed.after_s = 0.2 * draw_unit(t);
    outcome o = job_run(t, &killed);
    outcome_decent(t, &o, "a shard");
    outcome_fini(&o);
  }
  outcome o = job_run(t, &j);
  outcome_decent(t, &o, "a shard");
  if (o.code != 0) trial_fail(t, "shard %s: exit %d: %.300s", shard, o.code, o.err);
  outcome_fini(&o);
}

/* Joins all but `missing` (n: none), in a random order with some of them twice. */
static void join_shards(trial *t, size_t n, const char *const *file, size_t missing) {
  size_t order[8], k = 0;
  for (size_t i = 0; i < n; ++i)
    if (i != missing) order[k++] = i;
  for (size_t i = k; i > 1; --i) {
    const size_t other = draw_below(t, i), one = order[i - 1];
    order[i - 1] = order[other], order[other] = one;
  }
  job j = JOB("merge", "study.db");
  size_t words = 2;
  for (size_t i = 0; i < k; ++i)
    for (size_t twice = 1 + (draw_below(t, 4) == 0); twice > 0; --twice)
      j.words[words++] = file[order[i]];
  if (draw_below(t, 2) == 0) {
    job killed = j;
    killed.signal = SIGKILL, killed.after_s = 0.03 * draw_unit(t);
    outcome o = job_run(t, &killed);
    outcome_decent(t, &o, "merge");
    outcome_fini(&o);
    study_sound(t, "study.db", "a merge that was killed");
  }
  outcome o = job_run(t, &j);
  outcome_decent(t, &o, "merge");
  if (o.code != 0) trial_fail(t, "merge: exit %d: %.300s", o.code, o.err);
  outcome_fini(&o);
}

/* A file that is not there is named, and what is joined into stays as it was. */
static void join_missing(trial *t, const char *there, const char *missing) {
  job j = JOB("merge", "other.db", there, missing);
  char path[TORTURE_PATH];
  outcome o = job_run(t, &j);
  outcome_decent(t, &o, "merge of a missing shard");
  if (o.code == 0 || strstr(o.err, missing) == NULL)
    trial_fail(t, "merge without %s: exit %d: %.300s", missing, o.code, o.err);
  if (file_exists(join(path, t->work, "other.db")))
    trial_fail(t, "merge without %s left other.db", missing);
  outcome_fini(&o);
}

/* Exports and status name the shard that was not joined. */
static void named_as_missing(trial *t, size_t missing, size_t n) {
  char shard[64];
  snprintf(shard, sizeof shard, "%zu/%zu", missing, n);
  job all[] = {JOB("export", "study.db", "--table", "steps"),
               JOB("status", "--exit-code", "study.db")};
  for (size_t i = 0; i < 2; ++i) {
    outcome o = job_run(t, &all[i]);
    outcome_decent(t, &o, all[i].words[0]);
    if (strstr(o.err, shard) == NULL)
      trial_fail(t, "%s of a study without shard %s does not name it: %.300s", all[i].words[0],
                 shard, o.err);
    if (i == 1 && o.code == 0)
      trial_fail(t, "status says that a study without shard %s is whole", shard);
    outcome_fini(&o);
  }
}

void family_shards(trial *t) {
  const size_t c = draw_case(t, cases, sizeof *cases, 2), n = 2 + draw_below(t, 3);
  if (c == SIZE_MAX) return;
  const char *recipe = c == 0 ? "../../tuned.yaml" : "../../grid.yaml";
  const size_t w = writer_named(c == 0 ? "sweep, tuned, -j 2" : "sweep, grid, -j 3");
  char shard[8][48], name[8][48];
  const char *file[8];
  for (size_t i = 0; i < n && trial_good(t); ++i) {
    snprintf(shard[i], sizeof shard[i], "%zu/%zu", i, n);
    snprintf(name[i], sizeof name[i], "study.db.shard%zu", i);
    file[i] = name[i];
    make_shard(t, recipe, shard[i]);
  }
  if (!trial_good(t)) return;
  join_missing(t, file[0], "study.db.shard9");
  if (draw_below(t, 2) == 0) {
    const size_t missing = draw_below(t, n);
    join_shards(t, n, file, missing);
    if (trial_good(t)) named_as_missing(t, missing, n);
  }
  join_shards(t, n, file, n);
  if (trial_good(t)) study_equals(t, "study.db", &reference_of(t, w)->study, "the joined study");
  job again = JOB("sweep", recipe, "-o", "study.db", "-q"); /* finds all that it would do */
  outcome o = job_run(t, &again);
  if (strstr(o.out, "8 already finished") == NULL)
    trial_fail(t, "sweep over the joined study: exit %d: %.200s%.200s", o.code, o.out, o.err);
  outcome_fini(&o);
}

/* MPI --- */

const char *mpi_missing(const session *s) {
  char command[2 * TORTURE_PATH];
  snprintf(command, sizeof command, "command -v mpirun >/dev/null && ldd '%s' | grep -q libmpi",
           s->gepolab);
  return system(command) == 0 ? NULL : "no MPI: mpirun, and a gepolab built with mpicc";
}

void family_mpi(trial *t) {
  const size_t w = writer_named("sweep, tuned, -j 2");
  job j = JOB("-n", "3", "--oversubscribe", "--allow-run-as-root", t->session->gepolab, "sweep",
              "../../tuned.yaml", "-o", "study.db", "-q");
  j.program = "mpirun";
  for (size_t i = draw_below(t, 4); i > 0 && trial_good(t); --i) {
    job killed = j;
    killed.signal = SIGKILL, killed.aim = AIM_CHILD, killed.after_s = 2 * draw_unit(t);
    outcome o = job_run(t, &killed);
    if (o.hung) trial_fail(t, "mpirun did not end after a rank was killed");
    outcome_fini(&o);
    for (size_t k = 0; k < 3; ++k) {
      char name[32];
      snprintf(name, sizeof name, "study.db.shard%zu", k);
      study_sound(t, name, "a shard of a killed rank");
    }
  }
  outcome o = job_run(t, &j);
  if (o.code != 0) trial_fail(t, "mpirun ends with %d: %.300s", o.code, o.err);
  outcome_fini(&o);
  if (trial_good(t)) study_equals(t, "study.db", &reference_of(t, w)->study, "MPI");
}
