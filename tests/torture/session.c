/* The temporary folder of everything: recipes, inputs, and what each writer leaves undisturbed. */
#define _GNU_SOURCE
#include "tests/torture/writers.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define TINY                                                                                       \
  "seed: 1\nsteps: 12\neval_every: 4\n"                                                            \
  "world: {kind: sequence, vocabulary: 3, horizon: 3, prompts: 2, task: sum_mod, policy: {kind: "  \
  "loglinear}}\n"                                                                                  \
  "optimizer: {kind: adam, lr: 0.05}\ntrain: {groups: 2, group_size: 4}\n"                         \
  "cluster: {preset: heterorl, max_delay: 600}\n"
#define SWEEP "sweep:\n  algorithm: [grpo, gepo]\n  cluster.max_delay: [0, 600]\n  seed: [1, 2]\n"
#define TUNE "tune:\n  lr: [0.03, 0.3]\n  seeds: [101, 102]\n"

/* A log of six updates of two responses each, whose batch is too small. */
#define STEP                                                                                       \
  "{\"rewards\": [1, 0], \"logp\": [[-1.0, -0.5], [-2.0]], \"logq\": [[-1.2, -0.4], [-1.8]]}\n"
#define SIX(text) text text text text text text

/* Ten steps of a trainer, for `gepolab calibrate`. */
#define TEN(d)                                                                                     \
  d "0,50,30\n" d "1,51,31\n" d "2,52,32\n" d "3,53,33\n" d "4,54,34\n" d "5,55,35\n" d            \
    "6,56,36\n" d "7,57,37\n" d "8,58,38\n" d "9,59,39\n"

static const struct {
  const char *name, *text;
} recipes[] = {
    {"one.yaml", "name: tiny\n" TINY},
    {"grid.yaml", "name: tiny\n" TINY SWEEP},
    {"tuned.yaml", "name: tiny\n" TINY SWEEP TUNE},
    {"beside.yaml", "name: tiny\n" TINY SWEEP TUNE "checkpoint: {every: 3}\n"},
    {"bias.yaml", "name: arms\nworld: {kind: bandit, rewards: [1, 0, 0.5, 0.2]}\n"
                  "learner_probs: [0.55, 0.25, 0.15, 0.05]\n"
                  "dial: {kind: direction, kl: {from: 0.01, to: 1, points: 5, scale: log}}\n"
                  "group_size: [2, 4]\nalgorithms: [is, snis, {base: gepo, clip: none}]\n"},
    {"run.jsonl",
     "{\"rewards\": [1, 0], \"logp\": [[-1.0, -0.5], [-2.0]], \"logq\": [[-1.2, -0.4], [-1.8]], "
     "\"version_gap\": [[0, 0], [0]]}\n"
     "{\"rewards\": [0, 1], \"logp\": [[-1.0, -0.5], [-2.0]], \"logq\": [[-1.5, -0.4], [-1.4]], "
     "\"version_gap\": [[3, 3], [3]]}\n"},
    {"six.jsonl", SIX(STEP)},
    {"steps.csv", "step,timing_s/step,timing_s/gen\n" TEN("0") TEN("1") TEN("2") TEN("3")},
    {"llm.yaml",
     "name: tinyllm\nseed: 1\nsteps: 6\neval_every: 3\n"
     "world:\n  kind: llm\n  backend: cpu\n  model: {layers: 1, hidden: 16, heads: 2, context: "
     "16}\n"
     "  task: {kind: parity, length: 6}\n  warmup: {steps: 12, batch: 8, lr: 1.0e-2}\n"
     "  evaluation: {kind: sampled, prompts: 4, samples: 1}\n"
     "optimizer: {kind: adam, lr: 5.0e-4}\ntrain: {groups: 2, group_size: 4}\nalgorithm: grpo\n"},
};

/* A trial that prepares: its failure is that of the session. */
static void begin_trial(trial *t, const session *s, const char *name) {
  *t = (trial){.session = s, .family = "preparing"};
  snprintf(t->folder, sizeof t->folder, "%.400s/%.60s", s->root, name);
  snprintf(t->work, sizeof t->work, "%.500s/work", t->folder);
  mkdir(t->folder, 0777);
  mkdir(t->work, 0777);
}

static void must_run(trial *t, job j) {
  char text[TORTURE_TEXT];
  outcome o = job_run(t, &j);
  j.program = "gepolab";
  outcome_decent(t, &o, j.words[0]);
  if (o.code != 0) trial_fail(t, "%s ends with %d: %.300s", job_text(&j, text, 500), o.code, o.err);
  outcome_fini(&o);
}

/* damaged.db: full.db with two runs that are not as they were written. */
static void make_damaged(const session *s, trial *t) {
  char from[TORTURE_PATH], to[TORTURE_PATH];
  size_t size = 0;
  sqlite3 *db = NULL;
  char *bytes = file_read(join(from, s->root, "inputs/full.db"), &size);
  if (bytes == NULL || file_write(join(to, s->root, "inputs/damaged.db"), bytes, size) != 0 ||
      sqlite3_open(to, &db) != SQLITE_OK ||
      sqlite3_exec(db, "UPDATE evals SET eval_score = 0.25 WHERE run IN (2, 5)", NULL, NULL,
                   NULL) != SQLITE_OK)
    trial_fail(t, "damaged.db cannot be made");
  sqlite3_close(db);
  free(bytes);
}

/* Another version's exports would look like damage. */
static void compare_sanitized(const session *s, trial *t) {
  session other = *s;
  if (s->asan[0] == '\0') return;
  snprintf(other.gepolab, sizeof other.gepolab, "%s", s->asan);
  t->session = &other;
  exports e = study_exports(t, "../full.db");
  exports_equal(t, &s->references->full, &e,
                "the sanitized program is another version, build it again");
  exports_fini(&e);
  t->session = s;
}

/* inputs/: three shards, full.db, a study with something in every table, and the checkpoints of a
 * run. */
static void make_inputs(session *s, trial *t) {
  begin_trial(t, s, "inputs");
  const char *const shard[] = {"0/3", "1/3", "2/3"};
  for (size_t i = 0; i < 3; ++i)
    must_run(t, JOB("sweep", "../../tuned.yaml", "-o", "../study.db", "-q", "--shard", shard[i]));
  must_run(t, JOB("merge", "../full.db", "../study.db.shard0", "../study.db.shard1",
                  "../study.db.shard2"));
  must_run(t, JOB("bias", "../../bias.yaml", "-o", "../full.db", "-j", "1"));
  must_run(t, JOB("merge", "../merged.db", "../full.db"));
  must_run(t, JOB("run", "../../llm.yaml", "--checkpoint", "../run", "--checkpoint-every", "1",
                  "checkpoint.keep=9", "-q", "-t", "1"));
  make_damaged(s, t);
  s->references->full = study_exports(t, "../full.db");
  s->references->merged = study_exports(t, "../merged.db");
  if (trial_good(t)) compare_sanitized(s, t);
}

static void make_reference(const session *s, trial *t, size_t which) {
  char name[64], cache[TORTURE_PATH];
  reference *r = &s->references->of[which];
  r->made = 1;
  for (int pass = 0; pass < 1 + s->can_trace && trial_good(t); ++pass) {
    snprintf(name, sizeof name, "reference-%zu-%d", which, pass);
    begin_trial(t, s, name);
    writer_put_input(t, which);
    job j = writer_job(&writers[which]);
    job_own_cache(t, &j, cache);
    if (pass == 1) j.trace = (trace_plan){.action = TRACE_COUNT};
    outcome o = job_run(t, &j);
    outcome_decent(t, &o, writers[which].name);
    if (o.code != 0) trial_fail(t, "%s ends with %d: %.300s", writers[which].name, o.code, o.err);
    if (pass == 0) {
      r->seconds = o.seconds;
      r->files = snapshot_take(t->work);
      if (writers[which].study != NULL) r->study = study_exports(t, writers[which].study);
    } else {
      r->calls = o.trace.calls, r->forks = o.trace.forks;
      writer_left_all(t, which);
    }
    outcome_fini(&o);
  }
  if (s->verbose)
    fprintf(stderr, "  %-32s %.3f s, %ld calls, %ld processes, %zu files\n", writers[which].name,
            r->seconds, r->calls, r->forks, r->files.n);
}

const reference *reference_of(trial *t, size_t which) {
  const session *s = t->session;
  if (!s->references->of[which].made) {
    trial preparing = {0};
    make_reference(s, &preparing, which);
    if (!trial_good(&preparing)) trial_fail(t, "undisturbed already: %.900s", preparing.what);
  }
  return &s->references->of[which];
}

static int may_mount(const session *s) {
  char path[TORTURE_PATH];
  mkdir(join(path, s->root, "mounted"), 0777);
  if (mount("tmpfs", path, "tmpfs", 0, "size=64k") != 0) return 0;
  umount2(path, MNT_DETACH);
  return 1;
}

/* Whether gepolab has the command. */
static int has_command(session *s, trial *t, char *name) {
  begin_trial(t, s, "help");
  job j = JOB(name, "--help");
  outcome o = job_run(t, &j);
  const int found = o.code == 0;
  outcome_fini(&o);
  return found;
}

/* Where syncing costs nothing, if there is a place with room: trials sync all the time. */
static const char *roomy_folder(void) {
  struct statvfs s;
  const char *tmp = getenv("TMPDIR");
  if (tmp != NULL && tmp[0] != '\0') return tmp;
  if (statvfs("/dev/shm", &s) != 0 || access("/dev/shm", W_OK) != 0) return "/tmp";
  return (double)s.f_bavail * (double)s.f_frsize > 1e9 ? "/dev/shm" : "/tmp";
}

int session_begin(session *s, char why[TORTURE_TEXT]) {
  char path[TORTURE_PATH];
  trial t = {0};
  snprintf(s->root, sizeof s->root, "%.300s/gepolab-torture-XXXXXX", roomy_folder());
  s->references = calloc(1, sizeof *s->references);
  s->references->of = calloc(writers_count(), sizeof *s->references->of);
  if (mkdtemp(s->root) == NULL || chmod(s->root, 0755) != 0) {
    snprintf(why, TORTURE_TEXT, "no temporary folder %s", s->root);
    return -1;
  }
  for (size_t i = 0; i < sizeof recipes / sizeof *recipes; ++i)
    file_write(join(path, s->root, recipes[i].name), recipes[i].text, strlen(recipes[i].text));
  s->can_trace = trace_possible();
  s->can_mount = may_mount(s);
  s->references->has_check = has_command(s, &t, "check");
  make_inputs(s, &t);
  if (trial_good(&t)) return 0;
  snprintf(why, TORTURE_TEXT, "%s", t.what);
  return -1;
}

void session_end(session *s, int keep) {
  for (size_t i = 0; i < writers_count(); ++i) {
    snapshot_fini(&s->references->of[i].files);
    exports_fini(&s->references->of[i].study);
  }
  exports_fini(&s->references->full);
  exports_fini(&s->references->merged);
  free(s->references->of);
  free(s->references);
  if (!keep) folder_remove(s->root);
}
