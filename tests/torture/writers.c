/* The table of commands that write, and what they leave. A new command that writes is a line of
 * this table and a row of ARCHITECTURE.md's. */
#include "tests/torture/writers.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TUNED "../../tuned.yaml"
#define GRID "../../grid.yaml"
#define ONE "../../one.yaml"
#define BESIDE "../../beside.yaml"
#define BIAS "../../bias.yaml"
#define LLM "../../llm.yaml"
#define INPUTS "../../inputs/"

const writer writers[] = {
    {.name = "sweep, tuned, -j 2",
     .promises = "sweep -o",
     .words = {"sweep", TUNED, "-o", "study.db", "-j", "2", "-q"},
     .study = "study.db",
     .sweeps = 1},
    {.name = "sweep, tuned, -j 1",
     .promises = "sweep -o",
     .words = {"sweep", TUNED, "-o", "study.db", "-j", "1", "-q"},
     .study = "study.db",
     .sweeps = 1},
    {.name = "sweep, grid, -j 3",
     .promises = "sweep -o",
     .words = {"sweep", GRID, "-o", "study.db", "-j", "3", "-q"},
     .study = "study.db",
     .sweeps = 1},
    {.name = "sweep, checkpoints, -j 3",
     .promises = "sweep -o; sweep --checkpoint",
     .words = {"sweep", TUNED, "-o", "study.db", "-j", "3", "-q", "--checkpoint", "going",
               "--checkpoint-every", "3"},
     .study = "study.db",
     .sweeps = 1},
    {.name = "sweep, checkpoints beside, -j 2",
     .promises = "sweep -o; sweep --checkpoint",
     .words = {"sweep", BESIDE, "-o", "study.db", "-j", "2", "-q"},
     .study = "study.db",
     .sweeps = 1},
    {.name = "sweep, shard 1 of 3",
     .promises = "sweep -o",
     .words = {"sweep", TUNED, "-o", "study.db", "-j", "2", "-q", "--shard", "1/3"},
     .study = "study.db.shard1",
     .sweeps = 1},
    {.name = "run -o",
     .promises = "run -o",
     .words = {"run", ONE, "-o", "study.db", "-q", "-t", "1"},
     .study = "study.db"},
    {.name = "run --save",
     .promises = "run --save",
     .words = {"run", ONE, "--save", "final.state", "-q", "-t", "1"},
     .before = {"run", ONE, "--save", "final.state", "-q", "-t", "1", "seed=9"}},
    {.name = "run --checkpoint",
     .promises = "run -o; run --save; run --checkpoint",
     .words = {"run", ONE, "-o", "study.db", "--save", "final.state", "-q", "-t", "1",
               "--checkpoint", "going", "--checkpoint-every", "2"},
     .study = "study.db",
     .may_leave = "going/"},
    {.name = "merge",
     .promises = "study merge INTO.db",
     .words = {"merge", "study.db", INPUTS "study.db.shard0", INPUTS "study.db.shard1",
               INPUTS "study.db.shard2"},
     .study = "study.db"},
    {.name = "export -o",
     .promises = "study export -o",
     .words = {"export", INPUTS "full.db", "-t", "steps", "-f", "csv", "-o", "steps.csv"},
     .before = {"export", INPUTS "full.db", "-t", "runs", "-f", "jsonl", "-o", "steps.csv"}},
    {.name = "report -o",
     .promises = "report -o",
     .words = {"report", INPUTS "full.db", "-o", "report.html"},
     .before = {"report", INPUTS "study.db.shard0", "-o", "report.html", "--no-figures"}},
    {.name = "results -o",
     .promises = "results -o",
     .words = {"results", "define", "/dev/null", "-o", "numbers.tex"}},
    {.name = "plan -o",
     .promises = "plan -o",
     .words = {"plan", "one_node", "-o", "planned.yaml", "-q", "-j", "1", "train.groups=2",
               "plan.learner.choices=1", "plan.search.window=[1, 2]", "plan.selection.updates=8",
               "plan.selection.replicates=3", "plan.selection.most=3"},
     .before = {"plan", "one_node", "-o", "planned.yaml", "-q", "-j", "1", "train.groups=2",
                "seed=9", "plan.learner.choices=2", "plan.search.window=1",
                "plan.selection.updates=8", "plan.selection.replicates=3",
                "plan.selection.most=3"}},
    {.name = "export --all",
     .promises = "study export -o",
     .words = {"export", INPUTS "full.db", "--all", "-o", "data"},
     .before = {"export", INPUTS "study.db.shard0", "--all", "-o", "data"}},
    {.name = "check --repair",
     .promises = "study check --repair",
     .words = {"check", "study.db", "--repair"},
     .input = "damaged.db",
     .study = "study.db"},
    {.name = "check --salvage",
     .promises = "study check --salvage",
     .words = {"check", INPUTS "damaged.db", "--salvage", "saved.db"},
     .study = "saved.db",
     .once = "saved.db"},
    {.name = "plot, one figure",
     .promises = "plot -o",
     .words = {"plot", INPUTS "full.db", "-o", "figures", "-f", "staleness"},
     .before = {"plot", INPUTS "study.db.shard0", "-o", "figures", "-f", "staleness"}},
    {.name = "plot, all figures",
     .promises = "plot -o",
     .words = {"plot", INPUTS "full.db", "-o", "figures"}},
    {.name = "bias -o",
     .promises = "lab bias -o",
     .words = {"bias", BIAS, "-o", "study.db", "-j", "1"},
     .study = "study.db"},
    {.name = "bias --figures",
     .promises = "lab bias -f",
     .words = {"bias", BIAS, "-f", "figures", "--figure", "curves", "-j", "1"}},
    {.name = "theory --figures",
     .promises = "lab theory -f",
     .words = {"theory", "outcomes=[2,3]", "starts=2", "pairs=20", "-f", "figures", "--figure",
               "theorem1_constant"}},
    {.name = "sim --figures", .promises = "sim -f", .words = {"sim", ONE, "-f", "figures"}},
    {.name = "published --figures",
     .promises = "list published -f",
     .words = {"published", "published_areal", "steps=4", "-f", "figures"}},
    {.name = "plan --figures",
     .promises = "plan -f",
     .words = {"plan", "one_node", "-f", "figures", "-q", "-j", "1", "train.groups=2",
               "plan.learner.choices=1", "plan.search.window=[1, 2]", "plan.selection.updates=8",
               "plan.selection.replicates=3", "plan.selection.most=3"}},
    {.name = "selection --figures",
     .promises = "lab selection -f",
     .words = {"selection", "what_arrives", "steps=40", "-f", "figures"}},
    {.name = "whatif --figures",
     .promises = "whatif -f",
     .words = {"whatif", "../../run.jsonl", "-f", "figures", "-a", "gepo", "-a", "grpo"}},
    {.name = "calibrate -o",
     .promises = "calibrate -o",
     .words = {"calibrate", "../../steps.csv", "quickstart", "cluster={preset: sync, samplers: 1}",
               "--seeds", "1", "-o", "fitted.yaml"},
     .before = {"calibrate", "../../steps.csv", "quickstart", "cluster={preset: sync, samplers: 1}",
                "--seeds", "1", "--first", "0.6", "-o", "fitted.yaml"}},
    {.name = "diagnose -o",
     .promises = "diagnose -o; diagnose -r",
     .words = {"diagnose", "../../six.jsonl", "-o", "page.html", "-r", "effect.yaml"}},
    {.name = "llm sft",
     .promises = "llm sft -o",
     .words = {"llm", "sft", LLM, "-o", "model", "-q", "--threads", "1"},
     .once = "model"},
    {.name = "llm rl",
     .promises = "llm rl -o; llm rl --study; llm rl --checkpoint; GEPOLAB_CACHE",
     .words = {"llm", "rl", LLM, "-o", "model", "--study", "study.db", "--checkpoint", "going",
               "--checkpoint-every", "1", "-q", "--threads", "1"},
     .study = "study.db",
     .may_leave = "going/",
     .once = "model"},
    {.name = "llm bias --figures",
     .promises = "llm bias -f",
     .words = {"llm", "bias", INPUTS "run", "-a", "is", "-a", "gepo", "-b", "16", "-k", "0,1", "-f",
               "figures", "-q", "--threads", "1"}},
    {.name = "llm bias -o",
     .promises = "llm bias -o",
     .words = {"llm", "bias", INPUTS "run", "-a", "is", "-b", "16", "-k", "0,1", "-o", "study.db",
               "-q", "--threads", "1"},
     .study = "study.db"},
    {.name = "llm profile -o",
     .promises = "llm profile -o",
     .words = {"llm", "profile", LLM, "-o", "times.yaml", "-n", "2", "-q", "--threads", "1"},
     .before = {"llm", "profile", LLM, "-o", "times.yaml", "-n", "3", "-q", "--threads", "1"},
     .measures = 1},
    {.name = "bench gpu -o",
     .promises = "bench gpu -o",
     .words = {"bench", "gpu", "--device", "cpu", "--shape", "tiny", "--quick", "--only", "logp",
               "-o", "bench.json"},
     .before = {"bench", "gpu", "--device", "cpu", "--shape", "tiny", "--quick", "--only", "logp",
                "-o", "bench.json"},
     .measures = 1},
    {.name = NULL}};

const char *const study_tables[STUDY_TABLES] = {"runs",    "steps", "evals",     "staleness",
                                                "clock",   "tuned", "tuning",    "bias",
                                                "summary", "cells", "set_evals", "fates"};

size_t writers_count(void) {
  return sizeof writers / sizeof *writers - 1;
}

size_t writer_named(const char *name) {
  for (size_t i = 0; i < writers_count(); ++i)
    if (strcmp(writers[i].name, name) == 0) return i;
  abort();
}

job words_job(const char *const *words) {
  job j = {0};
  for (size_t i = 0; words[i] != NULL; ++i) j.words[i] = words[i];
  return j;
}

void writer_put_input(trial *t, size_t which) {
  char from[TORTURE_PATH], to[TORTURE_PATH], name[64];
  size_t size = 0;
  if (writers[which].input == NULL) return;
  snprintf(name, sizeof name, "inputs/%s", writers[which].input);
  char *bytes = file_read(join(from, t->session->root, name), &size);
  if (bytes == NULL || file_write(join(to, t->work, "study.db"), bytes, size) != 0)
    trial_fail(t, "%s cannot be copied", name);
  free(bytes);
}

size_t writer_draw(trial *t) {
  const size_t w = draw_case(t, &writers[0].name, sizeof *writers, writers_count());
  if (w != SIZE_MAX) writer_put_input(t, w);
  return w;
}

job writer_job(const writer *w) {
  return words_job(w->words);
}

void job_own_cache(trial *t, job *j, char text[TORTURE_PATH]) {
  snprintf(text, TORTURE_PATH, "GEPOLAB_CACHE=%.480s/cache", t->work);
  j->environment[0] = text;
}

/* --- studies --- */

exports study_exports(trial *t, const char *path) {
  exports e = {0};
  for (size_t i = 0; i < STUDY_TABLES; ++i) {
    job j = JOB("export", path, "--table", study_tables[i]);
    outcome o = job_run(t, &j);
    outcome_decent(t, &o, "export");
    if (o.code == 0) {
      e.text[i] = o.out;
      o.out = NULL;
    } else if ((e.text[i] = malloc(o.err_size + 32)) != NULL) {
      sprintf(e.text[i], "exit %d: %s", o.code, o.err);
    }
    outcome_fini(&o);
  }
  return e;
}

void exports_fini(exports *e) {
  for (size_t i = 0; i < STUDY_TABLES; ++i) free(e->text[i]);
  *e = (exports){0};
}

/* The first line in which they differ, cut. */
static void tell_difference(trial *t, const char *what, const char *table, const char *wanted,
                            const char *found) {
  size_t i = 0, line = 0, number = 1;
  while (wanted[i] != '\0' && wanted[i] == found[i])
    if (wanted[i++] == '\n') line = i, ++number;
  trial_fail(t, "%s: the table %s differs in line %zu: wanted '%.*s', found '%.*s'", what, table,
             number, (int)strcspn(wanted + line, "\n") % 200, wanted + line,
             (int)strcspn(found + line, "\n") % 200, found + line);
}

int exports_equal(trial *t, const exports *wanted, const exports *found, const char *what) {
  for (size_t i = 0; i < STUDY_TABLES; ++i) {
    const char *a = wanted->text[i], *b = found->text[i];
    const int refused = strncmp(a, "exit ", 5) == 0 && strncmp(b, "exit ", 5) == 0;
    if (strcmp(a, b) == 0 || refused) continue;
    tell_difference(t, what, study_tables[i], a, b);
    return 0;
  }
  return 1;
}

int study_equals(trial *t, const char *path, const exports *wanted, const char *what) {
  exports found = study_exports(t, path);
  int equal = exports_equal(t, wanted, &found, what);
  exports_fini(&found);
  return equal;
}

/* Says that nothing is missing in it. */
static void study_complete(trial *t, const char *path) {
  job j = JOB("status", "--exit-code", path);
  outcome o = job_run(t, &j);
  outcome_decent(t, &o, "status");
  if (o.code != 0)
    trial_fail(t, "status --exit-code of a finished sweep: %.300s%.300s", o.out, o.err);
  outcome_fini(&o);
}

/* What SQLite itself finds in the file. */
static void study_intact(trial *t, const char *path, const char *what) {
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  const char *verdict = NULL;
  if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
      sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &q, NULL) == SQLITE_OK &&
      sqlite3_step(q) == SQLITE_ROW)
    verdict = (const char *)sqlite3_column_text(q, 0);
  if (verdict == NULL || strcmp(verdict, "ok") != 0)
    trial_fail(t, "%s: SQLite says of the study: %.300s", what,
               verdict != NULL ? verdict : sqlite3_errmsg(db));
  sqlite3_finalize(q);
  sqlite3_close(db);
}

int study_sound(trial *t, const char *path, const char *what) {
  char full[TORTURE_PATH];
  if (!file_exists(join(full, t->work, path))) return 1;
  job j = t->session->references->has_check ? JOB("check", path)
                                            : JOB("export", path, "--table", "runs");
  outcome o = job_run(t, &j);
  outcome_decent(t, &o, what);
  if (o.code != 0 && strstr(o.err, "empty") == NULL)
    trial_fail(t, "%s: %s %s says %d: %.300s", what, j.words[0], path, o.code, o.err);
  outcome_fini(&o);
  if (trial_good(t)) study_intact(t, full, what);
  return trial_good(t);
}

/* --- what writers leave --- */

static int begins_with(const char *text, const char *start) {
  return start != NULL && strncmp(text, start, strlen(start)) == 0;
}

static int same_bytes(const file_copy *a, const file_copy *b) {
  return a != NULL && b != NULL && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/* Files whose bytes need not be those of another call: pictures with their dates, and times. */
static int only_ends_count(const writer *w, const char *name) {
  const char *dot = strrchr(name, '.');
  return w->measures || (dot != NULL && (strcmp(dot, ".pdf") == 0 || strcmp(dot, ".png") == 0 ||
                                         strcmp(dot, ".svg") == 0));
}

/* Names that stand beside a study while it is written. */
static int is_beside_study(const writer *w, const char *name) {
  if (!begins_with(name, w->study)) return 0;
  const char *rest = name + strlen(w->study);
  return strcmp(rest, "-journal") == 0 || begins_with(rest, ".checkpoints/") ||
         strcmp(rest, "-wal") == 0 || strcmp(rest, "-shm") == 0 || strcmp(rest, ".lock") == 0;
}

static int is_study(const writer *w, const char *name) {
  return w->study != NULL && strcmp(w->study, name) == 0;
}

/* A new study is there as a whole, or not. */
static void study_all_or_nothing(trial *t, size_t which) {
  char path[TORTURE_PATH];
  if (!file_exists(join(path, t->work, writers[which].study))) return;
  exports found = study_exports(t, writers[which].study);
  exports_equal(t, &reference_of(t, which)->study, &found, "a part");
  exports_fini(&found);
}

int writer_left_sound(trial *t, size_t which, const snapshot *old) {
  const writer *w = &writers[which];
  const snapshot *wanted = &reference_of(t, which)->files;
  snapshot now = snapshot_take(t->work);
  for (size_t i = 0; i < now.n && trial_good(t); ++i) {
    const file_copy *f = &now.files[i];
    const file_copy *next = snapshot_find(wanted, f->name);
    const file_copy *last = old != NULL ? snapshot_find(old, f->name) : NULL;
    if (is_study(w, f->name) || is_beside_study(w, f->name) || is_temporary(f->name)) continue;
    if (begins_with(f->name, w->may_leave) || begins_with(f->name, "going/")) continue;
    if (next == NULL && last == NULL)
      trial_fail(t, "%s: left a stray file %s", w->name, f->name);
    else if (same_bytes(f, last) || same_bytes(f, next))
      continue;
    else if (!only_ends_count(w, f->name))
      trial_fail(t, "%s: %s (%zu bytes) is neither what it was nor what it is to be", w->name,
                 f->name, f->size);
    else if (!is_whole(f))
      trial_fail(t, "%s: %s (%zu bytes) is not whole", w->name, f->name, f->size);
  }
  for (size_t i = 0; old != NULL && i < old->n && trial_good(t); ++i)
    if (snapshot_find(&now, old->files[i].name) == NULL && !is_temporary(old->files[i].name))
      trial_fail(t, "%s: %s is gone", w->name, old->files[i].name);
  snapshot_fini(&now);
  if (w->study != NULL && w->input == NULL && trial_good(t)) study_sound(t, w->study, w->name);
  if (w->once != NULL && w->study != NULL && strcmp(w->once, w->study) == 0 && trial_good(t))
    study_all_or_nothing(t, which);
  return trial_good(t);
}

int writer_left_all(trial *t, size_t which) {
  const writer *w = &writers[which];
  const reference *r = reference_of(t, which);
  snapshot now = snapshot_take(t->work);
  for (size_t i = 0; i < now.n && trial_good(t); ++i) {
    const char *name = now.files[i].name;
    if (snapshot_find(&r->files, name) != NULL) continue;
    if (is_temporary(name) && !begins_with(name, "going/")) continue;
    if (begins_with(name, w->may_leave) && !is_temporary(name)) continue;
    trial_fail(t, "%s, done: left a stray file %s", w->name, name);
  }
  for (size_t i = 0; i < r->files.n && trial_good(t); ++i) {
    const file_copy *wanted = &r->files.files[i], *f = snapshot_find(&now, wanted->name);
    if (begins_with(wanted->name, w->may_leave)) continue;
    if (f == NULL && begins_with(wanted->name, "cache/"))
      continue; /* GEPOLAB_CACHE: there or not */
    if (f == NULL)
      trial_fail(t, "%s, done: there is no %s", w->name, wanted->name);
    else if (is_study(w, f->name) || same_bytes(f, wanted))
      continue;
    else if (!only_ends_count(w, f->name))
      trial_fail(t, "%s, done: %s is not as undisturbed", w->name, f->name);
    else if (!is_whole(f))
      trial_fail(t, "%s, done: %s is not whole", w->name, f->name);
  }
  snapshot_fini(&now);
  if (w->study != NULL && trial_good(t)) study_equals(t, w->study, &r->study, w->name);
  if (w->sweeps && strchr(w->study, '.') == strrchr(w->study, '.') && trial_good(t))
    study_complete(t, w->study); /* one shard alone is not */
  return trial_good(t);
}

void writer_make_room(trial *t, size_t which) {
  char path[TORTURE_PATH];
  if (writers[which].once != NULL) folder_remove(join(path, t->work, writers[which].once));
}

int writer_goes_on(trial *t, size_t which) {
  char cache[TORTURE_PATH];
  job j = writer_job(&writers[which]);
  job_own_cache(t, &j, cache);
  writer_make_room(t, which);
  outcome o = job_run(t, &j);
  outcome_decent(t, &o, "going on");
  if (o.code != 0)
    trial_fail(t, "%s: cannot go on, exit %d: %.400s", writers[which].name, o.code, o.err);
  outcome_fini(&o);
  return trial_good(t) && writer_left_all(t, which);
}

snapshot writer_prepare(trial *t, size_t which) {
  char cache[TORTURE_PATH];
  if (writers[which].before[0] == NULL) return (snapshot){0};
  job j = words_job(writers[which].before);
  job_own_cache(t, &j, cache);
  outcome o = job_run(t, &j);
  outcome_decent(t, &o, "preparing");
  if (o.code != 0)
    trial_fail(t, "preparing %s: exit %d: %.300s", writers[which].name, o.code, o.err);
  outcome_fini(&o);
  return snapshot_take(t->work);
}
