/* Runs every command that reads studies over one that was damaged or made by hand. */
#include "tests/torture/hostile.h"
#include "tests/torture/writers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_S = 20 };

void hostile_copy(trial *t) {
  char from[TORTURE_PATH], to[TORTURE_PATH];
  size_t size = 0;
  char *bytes = file_read(join(from, t->session->root, "inputs/full.db"), &size);
  if (bytes == NULL || file_write(join(to, t->work, "study.db"), bytes, size) != 0)
    trial_fail(t, "the study cannot be copied");
  free(bytes);
}

/* Every other trial with the sanitized program, where there is one. */
static const char *program(const trial *t) {
  return t->session->asan[0] != '\0' && t->number % 2 == 0 ? t->session->asan : t->session->gepolab;
}

static outcome run(trial *t, job j, const char *how) {
  char what[TORTURE_TEXT], text[512];
  j.program = program(t);
  j.patience_s = PATIENCE_S;
  outcome o = job_run(t, &j);
  j.program = "gepolab";
  snprintf(what, sizeof what, "%.400s: %.500s", how, job_text(&j, text, sizeof text));
  outcome_decent(t, &o, what);
  if (o.signal != 0) trial_fail(t, "%s: ended by signal %d", what, o.signal);
  return o;
}

static void export_all(trial *t, const char *study, const exports *wanted, const char *how,
                       tolerance may_differ) {
  for (size_t i = 0; i < STUDY_TABLES && trial_good(t); ++i) {
    outcome o = run(t, JOB("export", study, "--table", study_tables[i]), how);
    const char *table = wanted->text[i];
    const int changed = o.code == 0 && strcmp(o.out, table) != 0 && strncmp(table, "exit ", 5) != 0;
    const int said = may_differ == IF_SAID && strstr(o.err, "gepolab study status") != NULL;
    if (changed && !said && may_differ != IF_WHOLE) {
      size_t k = 0, line = 0;
      while (o.out[k] != '\0' && o.out[k] == table[k])
        if (table[k++] == '\n') line = k;
      trial_fail(
          t, "%.300s: export --table %s of %s differs, without a word: wanted '%.*s', found '%.*s'",
          how, study_tables[i], study, (int)strcspn(table + line, "\n") % 160, table + line,
          (int)strcspn(o.out + line, "\n") % 160, o.out + line);
    }
    outcome_fini(&o);
  }
}

static void only_ends(trial *t, job j, const char *how) {
  if (!trial_good(t)) return;
  outcome o = run(t, j, how);
  outcome_fini(&o);
}

static int file_is_empty(const trial *t, const char *name) {
  char path[TORTURE_PATH];
  size_t size = 1;
  free(file_read(join(path, t->work, name), &size));
  return size == 0;
}

/* The study as it was before the commands, beside work/, for whoever looks into a failure. */
static void keep_given(trial *t) {
  char from[TORTURE_PATH], to[TORTURE_PATH];
  size_t size = 0;
  char *bytes = file_read(join(from, t->work, "study.db"), &size);
  if (bytes == NULL || file_write(join(to, t->folder, "given.db"), bytes, size) != 0)
    trial_fail(t, "the study cannot be kept");
  free(bytes);
}

void hostile_read(trial *t, const char *how, tolerance may_differ) {
  static const char *const figures[] = {"eval_score", "training",         "divergence",
                                        "staleness",  "throughput_delay", "best_last"};
  const struct writer_references *r = t->session->references;
  const size_t w = writer_named("sweep, tuned, -j 2");
  keep_given(t);
  export_all(t, "study.db", &r->full, how, may_differ);
  only_ends(
      t, JOB("export", "study.db", "-t", study_tables[draw_below(t, STUDY_TABLES)], "-f", "jsonl"),
      how);
  only_ends(t, JOB("analyze", "study.db"), how);
  only_ends(t, JOB("analyze", "study.db", "--json"), how);
  only_ends(t, JOB("plot", "study.db", "-o", "figures", "-f", figures[draw_below(t, 6)]), how);
  static const char *const others[] = {"check", "info", "status", "report"};
  for (size_t i = 0; i < sizeof others / sizeof *others; ++i)
    only_ends(t, JOB(others[i], "study.db"), how); /* unknown ones are refused */
  if (!trial_good(t)) return;
  outcome o = run(t, JOB("merge", "merged.db", "study.db"), how);
  if (o.code == 0 && trial_good(t)) export_all(t, "merged.db", &r->merged, how, may_differ);
  outcome_fini(&o);
  if (!trial_good(t)) return;
  /* An empty file is a study that has not begun: the measurements of `bias` are not made again. */
  const int begins = file_is_empty(t, "study.db");
  o = run(t, writer_job(&writers[w]), how);
  if (o.code == 0 && trial_good(t))
    export_all(t, "study.db", begins ? &reference_of(t, w)->study : &r->full, how, may_differ);
  outcome_fini(&o);
}
