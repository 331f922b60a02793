/* Running a command in a trial, with limits, and disturbed: by a signal at some moment, or at the
 * n-th system call that changes something on the disk. */
#ifndef GEPOLAB_TESTS_TORTURE_PROCESS_H
#define GEPOLAB_TESTS_TORTURE_PROCESS_H

#include "tests/torture/torture.h"

#include <sys/resource.h>
#include <sys/types.h>

enum { JOB_WORDS = 40, JOB_LIMITS = 4, JOB_ENVIRONMENT = 6 };

typedef enum aim { AIM_PARENT, AIM_CHILD, AIM_ALL } aim;

typedef enum trace_action {
  TRACE_OFF,
  TRACE_COUNT,     /* only counts */
  TRACE_KILL_ALL,  /* SIGKILL for all processes of the command before the nth call */
  TRACE_KILL_ONE,  /* only for the one that makes it */
  TRACE_HALF_KILL, /* half of what the nth call writes is written, then SIGKILL for all */
  TRACE_FAIL_ONCE, /* the nth call fails with `error` */
  TRACE_FAIL_FROM, /* and all later ones that need room do */
  TRACE_KILL_FORK  /* the nth process that is started is killed, after so many calls of its own */
} trace_action;

typedef struct trace_plan {
  trace_action action;
  long nth;
  int error;
  long own_calls;
} trace_plan;

typedef struct trace_count {
  long calls, forks;
  int struck;     /* the planned one was reached */
  char where[96]; /* the call it was, with its file */
} trace_count;

typedef struct job {
  const char *program; /* NULL: gepolab */
  const char *words[JOB_WORDS];
  const char *environment[JOB_ENVIRONMENT]; /* NAME=VALUE, ended by NULL */
  double patience_s;                        /* a command that takes longer hangs; 0: 60 */
  struct {
    int what;
    rlim_t value;
  } limits[JOB_LIMITS];
  size_t n_limits;
  uid_t uid;  /* 0: as we are */
  int signal; /* 0: none */
  aim aim;
  double after_s; /* after so many seconds */
  trace_plan trace;
} job;

typedef struct outcome {
  int code;   /* exit code, or 128 + signal */
  int signal; /* it ended by, or 0 */
  int hung;   /* it was ended by us */
  int left;   /* some of its processes were still there seconds after it ended */
  int struck; /* the signal found a process */
  double seconds;
  trace_count trace;
  char *out, *err;
  size_t out_size, err_size;
} outcome;

/* Runs it to its end in t->work. Release with outcome_fini(). */
outcome job_run(trial *t, const job *j);
/* Starts it and returns; .out goes to the file `out` of the trial's folder, or into the pipe. */
pid_t job_start(trial *t, const job *j, const char *name, int pipe_end);
/* Waits for what job_start() began. */
outcome job_wait(trial *t, pid_t pid, const char *name, double patience_s);
void outcome_fini(outcome *o);
/* The words as they would be typed. */
const char *job_text(const job *j, char *text, size_t size);
void sleep_s(double seconds);
double now_s(void);

/* What any ending must be: no crash by itself, no hang, nothing left running, no report of a
 * sanitizer, and words on stderr where the code is not 0. `what` names the command. */
int outcome_decent(trial *t, const outcome *o, const char *what);
/* A failure with this text in its message; NULL: any. */
int outcome_says(const outcome *o, const char *text);

/* --- tracing (trace.c) --- */

int trace_possible(void);
/* In the child, before exec: asks to be traced. */
void trace_me(void);
/* Until all processes of the group have ended or the time is over; the first one's wait status. */
int trace_follow(pid_t first, const trace_plan *p, trace_count *count, double until, int *hung);

#endif
