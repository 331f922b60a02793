/* Speed measurements: what else the machine did (meter_), repetitions and numbers (bench_), and
 * other programs beside ours (peer_). */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_BENCH_H
#define GEPOLAB_EXPERIMENTS_BENCH_BENCH_H

#include "core/base/error.h"

#include <stddef.h>
#include <sys/types.h>

/* --- processor time of the machine, of others and of ourselves --- */

/* The load from other work while something was measured.
 *
 * Two programs can be compared when each had the machine for itself. Between two readings this says
 * which share of all cores' time went to other processes, and which the hypervisor gave to other
 * machines ("steal"): the system's processor time (/proc/stat) less that of this process and its
 * children. The system counts in ticks of some 10 ms, so that measurements of less than a second
 * are separated from others' work only roughly. Linux alone; elsewhere the shares are not known,
 * which is not quiet. Prefix: meter_. */

/* The share of all cores' time above which nothing is compared. */
#define METER_MOST 0.10

/* Seconds since the machine or the process began; NaN where they cannot be read. */
typedef struct meter_reading {
  double wall_s;
  double busy_s;  /* of all cores, every process and the kernel */
  double steal_s; /* of all cores, given to other machines */
  double own_s;   /* of this process and its children */
  double cores;
} meter_reading;

/* Shares of all cores' time; NaN: not known. */
typedef struct meter_load {
  double others, steal;
} meter_load;

/* busy_s, steal_s and cores from the text of /proc/stat, whose counts are ticks of which
 * ticks_per_s make a second. GL_EINPUT where it has no line "cpu" with eight counts and no core. */
gl_status meter_read_machine(meter_reading *out, const char *text, double ticks_per_s,
                             gl_error *err);
/* Processor seconds of a process and of the children it has waited for, from the text of its
 * /proc/PID/stat; NaN where that is something else. */
double meter_read_process(const char *text, double ticks_per_s);

/* A reading now. child: one that runs and was not waited for yet, which counts as own; 0: none. */
meter_reading meter_now(pid_t child);

/* Adds what happened between two readings to a sum that began as {0}. */
void meter_add(meter_reading *sum, const meter_reading *before, const meter_reading *after);
/* The shares of such a sum, or of what happened between two readings: never below 0, which ticks
 * would allow. */
meter_load meter_load_of(const meter_reading *sum);
meter_load meter_between(const meter_reading *before, const meter_reading *after);
/* 1 if others and steal together took at most METER_MOST; 0 also where they are not known. */
int meter_is_quiet(meter_load load);
/* The heavier of the two; one that is not known is heavier than any other. */
meter_load meter_heavier(meter_load a, meter_load b);

/* --- programs that are measured beside ours --- */

/* Other programs that are measured beside ours: a script that stays and answers requests, and a
 * program that runs to its end. Prefix: peer_. */

enum { PEER_TEXT = 160, PEER_MOST_RATES = 16 };

/* A process in a group of its own that reads requests, a line each, from its standard input and
 * answers each with a line of JSON on its standard output: {"rates": [...], "note": "..."}, work
 * per second of one repetition each, or {"missing": "why there is none"}. It dies with this
 * process. It runs only while it is asked and is stopped (SIGSTOP) before, between and after, so
 * that it takes no time from what is measured meanwhile; its start is part of the first request.
 * Its standard error is appended to the file $GEPOLAB_PEER_LOG, or lost. */
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

/* --- measuring, and the arithmetic of what was measured --- */

/* The benchmarks behind `gepolab bench`: what they measure, and beside which programs.
 *
 * Every rate is the median of BENCH_REPETITIONS repetitions after one that warms up, with the
 * smallest and largest, and with what else the machine did meanwhile (experiments/bench/meter.h).
 * Another program's rate is measured right after ours. Their ratio is kept back where the machine
 * was busy during either, for waiting costs programs differently, unless the caller takes it
 * nonetheless. experiments/cli/cmd_bench.c prints the table. Prefix: bench_. */

enum {
  BENCH_MOST_NUMBERS = 96,
  BENCH_MOST_PEERS = 2,
  BENCH_MOST_ROWS = 4,
  BENCH_REPETITIONS = 5,
  BENCH_NAME = 48
};

/* Most by which the processor time for the same work may differ where two rates are compared. */
#define BENCH_SAME_SPEED 0.15

/* Work per second. */
typedef struct bench_rate {
  double median, low, high;
  size_t n; /* repetitions; 0: not measured */
  meter_load load;
  double own_s;   /* processor seconds of ours for one unit of work; NaN: not known */
  double least_s; /* the least of them among all repetitions, likewise */
} bench_rate;

typedef struct bench_peer {
  const char *name; /* a word, key of the JSON answer; borrowed */
  bench_rate rate;
  double aim;                               /* at least so many times as fast as it; NaN: none */
  char missing[PEER_TEXT], note[PEER_TEXT]; /* why it was not measured; what was */
} bench_peer;

typedef enum bench_kind {
  BENCH_RATE, /* measured: rate */
  BENCH_FACT  /* counted or computed: value */
} bench_kind;

typedef struct bench_number {
  char key[BENCH_NAME];    /* a word, key of the JSON answer */
  char missing[PEER_TEXT]; /* why it was not measured, where that is known */
  const char *what;        /* unit and a few words; borrowed */
  bench_kind kind;
  bench_rate rate;
  double value; /* of a fact */
  double aim;   /* for the value or the median; NaN: none */
  bench_peer peer[BENCH_MOST_PEERS];
  size_t n_peers;
} bench_number;

typedef struct bench {
  /* Options. */
  const char *python;  /* NULL: no program is measured beside ours */
  const char *cimba;   /* Cimba's own benchmark of an M/M/1 queue, an executable; NULL: none */
  const char *shape;   /* the only one that bench_llm measures; NULL: all */
  int takes_busy;      /* ratios are given on a busy machine, too */
  int quick;           /* a repetition is one call, however short: to see that it works */
  size_t customers;    /* of bench_des */
  double end;          /* seconds_now() after which nothing is begun */
  double least_peer_s; /* seconds that a peer has even after that, and where ours was not measured;
                          0: neither */
  size_t repetitions;  /* at most BENCH_REPETITIONS; 0: as many */
  void (*tell)(const bench_number *number, const bench_peer *peer); /* called after every rate, peer
                                                                       NULL: ours; NULL: silent */
  /* Results. */
  bench_number numbers[BENCH_MOST_NUMBERS];
  size_t n;
  meter_load load; /* the heaviest of all measurements */
} bench;

/* --- measuring --- */

typedef gl_status (*bench_task)(void *self, gl_error *err);

/* A task whose rate is measured. */
typedef struct bench_row {
  const char *key, *what;
  double amount; /* work of one call */
  bench_task task;
  void *self;
} bench_row;

/* Repeats the task until `least` seconds have passed, at least once, BENCH_REPETITIONS times after
 * one call that warms up (b->quick: once after it), and appends the rate, amount per second, as
 * *out, which stays valid. After b->end nothing is run, and the rate is not measured. A status
 * other than GL_OK is the task's, or GL_EINTERNAL for more than BENCH_MOST_NUMBERS numbers. */
gl_status bench_measure(bench *b, bench_number **out, bench_row row, double least, gl_error *err);
/* Measures rows[n] (n at most BENCH_MOST_ROWS) as bench_measure does, one repetition of each after
 * the other, so that all of them meet a machine whose speed changes from minute to minute (which
 * the share of others does not show) at its fast and slow times alike. */
gl_status bench_measure_in_turns(bench *b, bench_number *out[], const bench_row *rows, size_t n,
                                 double least, gl_error *err);
/* Appends how many times as fast as one many workers were, at the same work, by the medians of two
 * rates. NaN, and so no number, where the machine was busy (and b does not take that), or where the
 * processor time for one unit of work differs by more than BENCH_SAME_SPEED between the two: a
 * processor that was itself slower during one of them says nothing about workers. */
gl_status bench_speed_up(bench *b, const char *key, const bench_number *one,
                         const bench_number *many, double aim, const char *what, gl_error *err);
/* Appends how many times as long one unit of one number's work took as one of another's, by the
 * least processor times: what others on the machine make longer, they make no shorter. NaN as above
 * where the machine was busy. */
gl_status bench_cost_ratio(bench *b, const char *key, const bench_number *of,
                           const bench_number *than, double aim, const char *what, gl_error *err);
/* Appends a number that was not timed. */
gl_status bench_fact(bench *b, const char *key, double value, double aim, const char *what,
                     gl_error *err);
/* The number of this name as *out, which is appended, not measured, where there is none. */
gl_status bench_named(bench *b, bench_number **out, const char *key, const char *what,
                      gl_error *err);
/* Puts a rate beside a number that was computed and not measured. */
void bench_beside(bench_number *number, const char *name, double rate, double aim,
                  const char *note);
/* Asks a peer for the rates that stand beside a number, and appends them to it. p NULL, or without
 * a process: the reason alone. At most BENCH_MOST_PEERS for a number. */
void bench_ask(bench *b, bench_number *number, peer_process *p, const char *name,
               const char *request, double aim);
/* The same from a program that is run to its end BENCH_REPETITIONS times; check reads what it
 * printed and returns 0 where that is not what the program should find. */
void bench_run_program(bench *b, bench_number *number, const char *path, const char *name,
                       double amount, double aim, int (*check)(const char *text));
/* Starts `python script threads`; what cannot be started says why. */
void bench_start_python(const bench *b, peer_process *p, const char *script, size_t threads);

/* --- the arithmetic --- */

/* Median, smallest and largest of rates[n], which it sorts; an even number has the mean of the two
 * in the middle. n 0: NaNs. */
bench_rate bench_rate_of(double *rates, size_t n, meter_load load);
/* How many times as fast as the peer we are. NaN where either was not measured, or (takes_busy 0)
 * the machine was busy during one of them: *kept_back is then 1, else 0. */
double bench_ratio(const bench_number *number, const bench_peer *peer, int takes_busy,
                   int *kept_back);
/* Appends a value computed from measurements of which `load` was the heaviest, or NaN where the
 * machine was busy then and b does not take that. */
gl_status bench_derived(bench *b, const char *key, double value, meter_load load, double aim,
                        const char *what, gl_error *err);
/* How many ratios are kept back. */
size_t bench_kept_back(const bench *b);

/* --- parts --- */

/* The events of sim/: an M/M/1 queue (arrival rate 0.9, service rate 1) in customers per second
 * beside Cimba's; 10,000 and a million samplers around one learner, with events and nothing else
 * and with the clock of recipes, and what an event and a sampler of a million cost against one of
 * ten thousand. */
gl_status bench_des(bench *b, gl_error *err);
/* policy_evaluate() on 64 responses of 512 tokens, in tokens per second, beside the same losses and
 * their gradients in PyTorch. One core. */
gl_status bench_policy(bench *b, gl_error *err);
/* The exact laboratory: enumeration of groups, and Monte Carlo beside the same estimator in NumPy.
 * Groups per second. One core. */
gl_status bench_lab(bench *b, gl_error *err);
/* Training and generation of small transformers on all cores, in tokens per second, beside PyTorch
 * (eager, compiled, a loop with a cache) and transformers. */
gl_status bench_llm(bench *b, gl_error *err);
/* Cells per second of delay_sweep with one worker and with two, and cells per hour of
 * llm_delay_sweep with two. */
gl_status bench_sweep(bench *b, gl_error *err);

/* "64x2": whether bench_llm has such a shape; else GL_EINPUT naming those it has. */
gl_status bench_llm_has(const char *shape, gl_error *err);

#endif
