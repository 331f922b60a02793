/* The commands that write, as the trials run them: what makes them, what stood there before, and
 * what they leave when nothing disturbs them. */
#ifndef GEPOLAB_TESTS_TORTURE_WRITERS_H
#define GEPOLAB_TESTS_TORTURE_WRITERS_H

#include "tests/torture/files.h"
#include "tests/torture/process.h"
#include "tests/torture/torture.h"

enum { WRITER_WORDS = 20, STUDY_TABLES = 12 };

typedef struct writer {
  const char *name;
  const char *promises;             /* the outputs of ARCHITECTURE.md's table, joined by "; " */
  const char *words[WRITER_WORDS];  /* of gepolab; the working directory is root/TRIAL/work */
  const char *before[WRITER_WORDS]; /* an earlier call that leaves other files of the same names */
  const char *input;     /* of inputs/, copied to study.db before the first call; NULL: none */
  const char *study;     /* compared through its exports; NULL: none */
  const char *may_leave; /* files below this are the command's own; NULL: none */
  const char *once;      /* the file or folder that it refuses where it is there; NULL: none */
  int measures;          /* its files hold times: only their ends are looked at */
  int sweeps;            /* has worker processes that each do one run */
} writer;

/* Ended by one without a name. */
extern const writer writers[];
extern const char *const study_tables[STUDY_TABLES];

/* A study's exports; .text[i] begins with "exit N: " where the table could not be exported. */
typedef struct exports {
  char *text[STUDY_TABLES];
} exports;

typedef struct reference {
  snapshot files;
  exports study;
  double seconds;
  long calls, forks; /* 0 where nothing can be traced */
  int made;
} reference;

struct writer_references {
  reference *of;  /* [writers], each made when it is first asked for: reference_of() */
  exports full;   /* of inputs/full.db, to which damages are done */
  exports merged; /* of a new file into which it was merged */
  int has_check;
};

/* What the writer leaves undisturbed (session.c). Where it cannot even do that, the trial fails. */
const reference *reference_of(trial *t, size_t which);

size_t writers_count(void);
/* The place of the writer of that name. */
size_t writer_named(const char *name);
job writer_job(const writer *w);
/* Picks a writer that is wanted and puts its input in place; SIZE_MAX if none is wanted. */
size_t writer_draw(trial *t);
void writer_put_input(trial *t, size_t which);
job words_job(const char *const *words);
#define JOB(...) words_job((const char *const[]){__VA_ARGS__, NULL})

exports study_exports(trial *t, const char *path);
void exports_fini(exports *e);
/* Fails the trial where a table differs, with its first differing line. */
int exports_equal(trial *t, const exports *wanted, const exports *found, const char *what);
/* Exports the study in the working directory and compares. */
int study_equals(trial *t, const char *path, const exports *wanted, const char *what);
/* A study that a killed command left opens, or has nothing in it yet. */
int study_sound(trial *t, const char *path, const char *what);

/* What a disturbed writer may leave in the working directory: each file as it was before (`old`,
 * NULL: nothing was there), or as it is to be. */
int writer_left_sound(trial *t, size_t w, const snapshot *old);
/* What one that was not disturbed, or went on to its end, must leave. */
int writer_left_all(trial *t, size_t w);
/* Removes what the command refuses where it is there. */
void writer_make_room(trial *t, size_t w);
/* Makes room and runs it to its end without disturbance, then writer_left_all(). */
int writer_goes_on(trial *t, size_t w);
/* Runs `before`, if there is one; the files it left. */
snapshot writer_prepare(trial *t, size_t w);
/* Environment that keeps the command's cache inside the trial. */
void job_own_cache(trial *t, job *j, char text[TORTURE_PATH]);

#endif
