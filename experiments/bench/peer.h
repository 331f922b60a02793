/* Other programs that are measured beside ours: a script that stays and answers requests, and a
 * program that runs to its end. Prefix: peer_. */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_PEER_H
#define GEPOLAB_EXPERIMENTS_BENCH_PEER_H

#include <stddef.h>
#include <sys/types.h>

enum { PEER_TEXT = 160, PEER_MOST_RATES = 16 };

/* A process in a group of its own that reads requests, a line each, from its standard input and
 * answers each with a line of JSON on its standard output: {"rates": [...], "note": "..."}, work
 * per second of one repetition each, or {"missing": "why there is none"}. It dies with this
 * process. It runs only while it is asked and stands still (SIGSTOP) before, between and after, so
 * that it takes no time from what is measured meanwhile; its start is part of the first request.
 * What it says on its standard error is added to the file $GEPOLAB_PEER_LOG, or lost. */
typedef struct peer_process {
  pid_t pid;           /* 0: there is none */
  int line;            /* a socket, both ways */
  char why[PEER_TEXT]; /* why there is none, or "" */
} peer_process;

typedef struct peer_answer {
  double rates[PEER_MOST_RATES];
  size_t n;                /* 0: nothing was measured */
  char missing[PEER_TEXT]; /* why, else "" */
  char note[PEER_TEXT];
} peer_answer;

/* Makes a process that will run words[0] (looked for on the PATH) with words up to a NULL. Where
 * that fails, and for a script that is not here to be read (NULL: not looked for), p has no process
 * and says why. */
void peer_start(peer_process *p, const char *const *words, const char *script);
/* Sends a request, without a newline, and waits at most so many seconds for the answer. A peer that
 * is late, dies or answers something else is ended, and says why to every later request. */
void peer_ask(peer_process *p, const char *request, double seconds, peer_answer *answer);
/* Ends it, with all it has started. */
void peer_end(peer_process *p);

/* Runs words[0] to its end, at most so many seconds, and keeps what it prints in text[size], cut.
 * Returns the seconds that took, or NaN after a failure, with the reason in why[PEER_TEXT]. */
double peer_run(const char *const *words, double seconds, char *text, size_t size, char *why);

#endif
