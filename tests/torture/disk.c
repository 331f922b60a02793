/* Disks that are full, limits of file sizes, and single calls that fail: the message names the file
 * and the reason, what was there is kept, a command that says it is done is done, and with room
 * again the same command ends well. */
#define _GNU_SOURCE
#include "tests/torture/families.h"
#include "tests/torture/writers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

/* Whether the message has the name of one of the writer's outputs. */
static int names_an_output(trial *t, size_t w, const char *message) {
  const snapshot *files = &reference_of(t, w)->files;
  static const char *const words[] = {"study.db",        "saved.db", "damaged.db", "data",
                                      "going",           "cache",    "figures",    "model",
                                      "standard output", "TMPDIR", /* where a report's figures are
                                                                      drawn */
                                      "writing table"}; /* a temporary file without a name */
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
    if (strstr(message, words[i]) != NULL) return 1;
  for (size_t i = 0; i < files->n; ++i) {
    char stem[TORTURE_PATH];
    const char *name = strrchr(files->files[i].name, '/');
    snprintf(stem, sizeof stem, "%s", name != NULL ? name + 1 : files->files[i].name);
    if (strstr(message, stem) != NULL) return 1;
  }
  return 0;
}

static void judge(trial *t, size_t w, const outcome *o, const snapshot *old, const char *how) {
  outcome_decent(t, o, how);
  if (o->code == 0) {
    if (trial_good(t)) writer_left_all(t, w);
    return;
  }
  if (o->signal != 0) trial_fail(t, "%s: ended by signal %d: %.300s", how, o->signal, o->err);
  if (!names_an_output(t, w, o->err))
    trial_fail(t, "%s: the message names no file: %.400s", how, o->err);
  if (trial_good(t)) writer_left_sound(t, w, old);
}

static size_t size_of(const snapshot *s) {
  size_t size = 0;
  for (size_t i = 0; i < s->n; ++i) size += s->files[i].size;
  return size;
}

/* A small file system in the place of the working directory. */
static void fill_disk(trial *t, size_t w) {
  char options[64], how[128];
  const size_t need = size_of(&reference_of(t, w)->files) / 1024 + 48;
  const size_t kib = 4 + draw_below(t, need);
  snprintf(options, sizeof options, "size=%zuk", kib);
  if (!t->session->can_mount) {
    trial_skip(t, "no file system may be mounted here");
    return;
  }
  if (mount("tmpfs", t->work, "tmpfs", 0, "size=64m") != 0) {
    trial_skip(t, "mounting failed");
    return;
  }
  t->mounted = 1;
  writer_put_input(t, w);
  snapshot old = {0};
  if (draw_below(t, 2) == 0) old = writer_prepare(t, w);
  snprintf(how, sizeof how, "%s on a disk of %zu KiB", writers[w].name, kib);
  if (trial_good(t) && mount("tmpfs", t->work, "tmpfs", MS_REMOUNT, options) == 0) {
    char cache[TORTURE_PATH];
    job j = writer_job(&writers[w]);
    job_own_cache(t, &j, cache);
    outcome o = job_run(t, &j);
    mount("tmpfs", t->work, "tmpfs", MS_REMOUNT, "size=64m");
    judge(t, w, &o, &old, how);
    outcome_fini(&o);
  }
  if (trial_good(t)) writer_goes_on(t, w);
  snapshot_fini(&old);
}

static void limit_files(trial *t, size_t w) {
  char how[128], cache[TORTURE_PATH];
  const size_t largest = size_of(&reference_of(t, w)->files);
  job j = writer_job(&writers[w]);
  job_own_cache(t, &j, cache);
  j.limits[0].what = RLIMIT_FSIZE;
  j.limits[0].value = draw_below(t, largest + 4096);
  j.n_limits = 1;
  snprintf(how, sizeof how, "%s with files of at most %zu bytes", writers[w].name,
           (size_t)j.limits[0].value);
  snapshot old = {0};
  if (draw_below(t, 2) == 0) old = writer_prepare(t, w);
  outcome o = {0};
  if (trial_good(t)) {
    o = job_run(t, &j);
    /* Its own words may not fit either. */
    if (o.err_size >= j.limits[0].value && o.code != 0)
      writer_left_sound(t, w, &old);
    else
      judge(t, w, &o, &old, how);
  }
  outcome_fini(&o);
  if (trial_good(t)) writer_goes_on(t, w);
  snapshot_fini(&old);
}

static void fail_calls(trial *t, size_t w) {
  static const int errors[] = {ENOSPC, ENOSPC, EIO, EDQUOT, EROFS};
  char how[192], cache[TORTURE_PATH];
  const long calls = reference_of(t, w)->calls;
  if (!t->session->can_trace) {
    trial_skip(t, "processes cannot be traced here");
    return;
  }
  job j = writer_job(&writers[w]);
  job_own_cache(t, &j, cache);
  j.trace.action = draw_below(t, 2) == 0 ? TRACE_FAIL_ONCE : TRACE_FAIL_FROM;
  j.trace.nth = 1 + (long)draw_below(t, (size_t)(calls > 0 ? calls : 1));
  j.trace.error = errors[draw_below(t, 5)];
  snapshot old = {0};
  if (draw_below(t, 2) == 0) old = writer_prepare(t, w);
  if (trial_good(t)) {
    outcome o = job_run(t, &j);
    snprintf(how, sizeof how, "%s whose call %ld, %s, fails with '%s'", writers[w].name,
             j.trace.nth, o.trace.where, strerror(j.trace.error));
    judge(t, w, &o, &old, how);
    outcome_fini(&o);
  }
  if (trial_good(t)) writer_goes_on(t, w);
  snapshot_fini(&old);
}

/* --- standard output --- */

static const struct {
  const char *name;
  const char *words[12];
} printers[] = {
    {"stdout: export", {"export", "../../inputs/full.db", "-t", "steps"}},
    {"stdout: analyze", {"analyze", "../../inputs/full.db"}},
    {"stdout: analyze json", {"analyze", "../../inputs/full.db", "--json"}},
    {"stdout: bias tsv", {"bias", "../../bias.yaml", "--format", "tsv"}},
    {"stdout: bias json", {"bias", "../../bias.yaml", "--json"}},
    {"stdout: theory", {"theory", "outcomes=[2,3]", "starts=2", "pairs=20"}},
    {"stdout: sim", {"sim", "../../one.yaml"}},
    {"stdout: sim schedule", {"sim", "../../one.yaml", "--schedule", "csv"}},
    {"stdout: run json", {"run", "../../one.yaml", "--json", "-q"}},
    {"stdout: sweep", {"sweep", "../../grid.yaml", "-o", "study.db", "-q"}},
    {"stdout: algorithms", {"algorithms"}},
    {"stdout: recipes", {"recipes", "quickstart"}},
    {"stdout: fields", {"fields"}},
    {"stdout: metrics", {"metrics"}},
    {"stdout: help", {"--help"}},
    {"stdout: llm info", {"llm", "info", "../../llm.yaml"}},
    {"stdout: llm tasks", {"llm", "tasks"}},
    {"stdout: plot list", {"plot", "--list"}},
    {"stdout: report", {"report", "../../inputs/full.db"}},
};
enum { N_PRINTERS = sizeof printers / sizeof *printers };

/* What is printed onto a full disk is lost, and the command says so. */
static void fill_output(trial *t, size_t which) {
  int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) {
    trial_skip(t, "there is no /dev/full");
    return;
  }
  job j = words_job(printers[which].words);
  pid_t pid = job_start(t, &j, "run", full);
  close(full);
  outcome o = job_wait(t, pid, "run", 60);
  outcome_decent(t, &o, printers[which].name);
  if (o.code == 0) trial_fail(t, "%s: onto /dev/full, and says it went well", printers[which].name);
  outcome_fini(&o);
}

void family_disk(trial *t) {
  const char *names[64 + N_PRINTERS];
  const size_t n = writers_count();
  for (size_t i = 0; i < n; ++i) names[i] = writers[i].name;
  for (size_t i = 0; i < N_PRINTERS; ++i) names[n + i] = printers[i].name;
  const size_t w = draw_case(t, names, sizeof *names, n + N_PRINTERS);
  if (w == SIZE_MAX) return;
  if (w >= n) {
    fill_output(t, w - n);
    return;
  }
  writer_put_input(t, w);
  switch (draw_below(t, 3)) {
  case 0:
    fill_disk(t, w);
    break;
  case 1:
    limit_files(t, w);
    break;
  case 2:
    fail_calls(t, w);
    break;
  }
}
