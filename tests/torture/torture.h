/* Torture of the real program: a family is one way of treating it badly, a trial one such treatment
 * with numbers drawn from (seed, family, trial), so that each can be repeated alone. See main.c for
 * the options and ARCHITECTURE.md, "What each command promises about interruption", for what is
 * tested. */
#ifndef GEPOLAB_TESTS_TORTURE_TORTURE_H
#define GEPOLAB_TESTS_TORTURE_TORTURE_H

#include <stddef.h>
#include <stdint.h>

enum { TORTURE_PATH = 512, TORTURE_TEXT = 1024 };

typedef struct session {
  char gepolab[TORTURE_PATH]; /* absolute */
  char asan[TORTURE_PATH];    /* the same program with sanitizers, absolute; "": none */
  char clock[TORTURE_PATH];   /* the library that makes the clock jump, absolute; "": none */
  char root[TORTURE_PATH];    /* the temporary folder of everything, absolute */
  const char *only;           /* "family" or "family: case" whose trials are wanted; NULL: all */
  uint64_t seed;
  int can_trace, can_mount; /* whether this machine lets us */
  int verbose;
  int brief;                            /* trials that take long are left out */
  struct writer_references *references; /* writers.h */
} session;

typedef struct trial {
  const session *session;
  const char *family;
  uint64_t number;
  uint64_t state;            /* of its random numbers */
  char folder[TORTURE_PATH]; /* of this trial: work/, and out, err and commands beside it */
  char work[TORTURE_PATH];   /* the commands' working directory */
  char chosen[128];          /* the case that was picked */
  char what[TORTURE_TEXT];   /* the first failure */
  char skipped[128];         /* why this trial could not be made */
  int mounted;               /* work/ is a file system of its own */
} trial;

typedef struct family {
  const char *name, *about;
  double weight; /* its share of the time, relative to the others' */
  /* Why no trial can be made on this machine; NULL: they can. */
  const char *(*missing)(const session *s);
  void (*run)(trial *t);
} family;

/* All families, ended by one without a name. */
extern const family families[];

/* --- trials (trial.c) --- */

/* Draws of this trial: 64 bits; a number below n > 0; in [0, 1). */
uint64_t draw(trial *t);
size_t draw_below(trial *t, size_t n);
double draw_unit(trial *t);
/* The place of one of the n names that session->only allows, kept in t->chosen; SIZE_MAX if it
 * allows none. name(i) is at (const char *)((const char *)first + i * stride). */
size_t draw_case(trial *t, const void *first, size_t stride, size_t n);
/* Notes the first failure. */
void trial_fail(trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void trial_skip(trial *t, const char *why);
static inline int trial_good(const trial *t) {
  return t->what[0] == '\0' && t->skipped[0] == '\0';
}
/* One trial: makes its folder, runs it, removes the folder if all went well. */
void trial_run(trial *t, const session *s, const family *f, uint64_t number);

/* --- sessions (session.c) --- */

/* Makes the temporary folder with the recipes and the undisturbed results. 0, or -1 with `why`. */
int session_begin(session *s, char why[TORTURE_TEXT]);
void session_end(session *s, int keep);

/* Compares ARCHITECTURE.md's table, `gepolab --help` and the writers of writers.c. The number of
 * disagreements, each printed (contract.c). */
int contract_check(const session *s, const char *architecture);

#endif
