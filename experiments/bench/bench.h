/* Speed measurements: the machine's other load (meter_), repetitions and numbers (bench_), and
 * other programs for comparison (peer_). */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_BENCH_H
#define GEPOLAB_EXPERIMENTS_BENCH_BENCH_H

#include "core/base/error.h"

#include <stddef.h>
#include <sys/types.h>

/* --- processor time of the machine, of others and of ourselves --- */

/* The load from other work during a measurement.
 *
 * Two programs can be compared only if each had the machine for itself. Between two readings this
 * module computes the fraction of all cores' time used by other processes, and the fraction that
 * the hypervisor gave to other virtual machines ("steal"): the system's processor time (/proc/stat)
 * minus that of this process and its children. The system counts in ticks of about 10 ms, so
 * measurements below a second are separated only roughly from other work. Linux only; elsewhere the
 * fractions are unknown, which counts as busy. Prefix: meter_. */

/* Maximum fraction of all cores' time used by others for which rates are compared. */
#define METER_MOST 0.10

/* Seconds since the start of the machine or the process; NaN if they cannot be read. */
typedef struct meter_reading {
  double wall_s;
  double busy_s;  /* all cores; every process and the kernel */
  double steal_s; /* all cores; time given to other virtual machines */
  double own_s;   /* this process and its children */
  double cores;
} meter_reading;

/* Fractions of all cores' time; NaN: unknown. */
typedef struct meter_load {
  double others, steal;
} meter_load;

/* Reads busy_s, steal_s and cores from the text of /proc/stat, whose counts are ticks; ticks_per_s
 * ticks are a second. Errors: GL_EINPUT (no line "cpu" with eight counts, or no core). */
gl_status meter_read_machine(meter_reading *out, const char *text, double ticks_per_s,
                             gl_error *err);
/* Processor seconds of a process and of the children it has waited for, from the text of its
 * /proc/PID/stat; NaN if the text is something else. */
double meter_read_process(const char *text, double ticks_per_s);

/* Takes a reading now. child: a running process, not yet waited for, that counts as own; 0: none.
 */
meter_reading meter_now(pid_t child);

/* Adds the difference of two readings to a sum, initially {0}. */
void meter_add(meter_reading *sum, const meter_reading *before, const meter_reading *after);
/* The fractions of such a sum, or between two readings: from 0 to 1, which the coarse ticks alone
 * do not ensure. */
meter_load meter_load_of(const meter_reading *sum);
meter_load meter_between(const meter_reading *before, const meter_reading *after);
/* 1 if others and steal together used at most METER_MOST; 0 also if they are unknown. */
int meter_is_quiet(meter_load load);
/* The larger of the two loads; an unknown one is larger than any other. */
meter_load meter_heavier(meter_load a, meter_load b);

/* --- peers: other programs that are measured for comparison --- */

/* Other programs for comparison (peers): a script that keeps running and answers requests, and a
 * program that runs to its end. Prefix: peer_. */

enum { PEER_TEXT = 160, PEER_MOST_RATES = 16 };

/* A process, in a separate process group, that reads requests from its standard input, one per
 * line. It answers each with a line of JSON on its standard output: {"rates": [...], "note":
 * "..."}, with the work per second of each repetition, or {"missing": "reason"}. It ends with this
 * process. It runs only during requests and is otherwise stopped (SIGSTOP), so that it takes no
 * time from other measurements; its start is part of the first request. Its standard error is
 * appended to the file $GEPOLAB_PEER_LOG, or discarded. */
typedef struct peer_process {
  pid_t pid;           /* 0: no process */
  int line;            /* a bidirectional socket */
  char why[PEER_TEXT]; /* why there is no process, or "" */
} peer_process;

typedef struct peer_answer {
  double rates[PEER_MOST_RATES];
  size_t n;                /* number of rates; 0: nothing was measured */
  char missing[PEER_TEXT]; /* the reason for n 0, else "" */
  char note[PEER_TEXT];
} peer_answer;

/* Prepares a process that will run words[0] (found on the PATH) with arguments up to a NULL. If
 * that fails, or the script cannot be read (NULL: not checked), p has no process and p->why has the
 * reason. */
void peer_start(peer_process *p, const char *const *words, const char *script);
/* Sends a request, without newline, and waits at most that many seconds for the answer. A peer that
 * is late, dies or answers incorrectly is ended, and every later request gets the reason. */
void peer_ask(peer_process *p, const char *request, double seconds, peer_answer *answer);
/* Ends the process and its children. */
void peer_end(peer_process *p);

/* Runs words[0] to its end, for at most that many seconds, and stores its output in text[size],
 * truncated. Returns the duration in seconds, or NaN after an error, with the reason in
 * why[PEER_TEXT]. */
double peer_run(const char *const *words, double seconds, char *text, size_t size, char *why);

/* --- measuring, and arithmetic of measurements --- */

/* The benchmarks of `gepolab bench`: measurements and comparisons with other programs.
 *
 * Every rate is the median of BENCH_REPETITIONS repetitions after a warm-up, with minimum and
 * maximum, and with the machine's other load (meter_). A peer's rate is measured right after ours.
 * Their ratio is withheld if the machine was busy during either measurement, because waiting slows
 * programs differently; the option takes_busy overrides this. experiments/cli/cmd_bench.c prints
 * the table. Prefix: bench_. */

enum {
  BENCH_MOST_NUMBERS = 96,
  BENCH_MOST_PEERS = 2,
  BENCH_MOST_ROWS = 4,
  BENCH_REPETITIONS = 5,
  BENCH_NAME = 48
};

/* Work per second. */
typedef struct bench_rate {
  double median, low, high;
  size_t n; /* number of repetitions; 0: not measured */
  meter_load load;
  double own_s;   /* our processor seconds per unit of work; NaN: unknown */
  double least_s; /* the minimum over all repetitions; NaN: unknown */
} bench_rate;

typedef struct bench_peer {
  const char *name; /* a word, used as key of the JSON output; borrowed */
  bench_rate rate;
  double aim; /* goal: at least this many times as fast as the peer; NaN: none */
  char missing[PEER_TEXT],
      note[PEER_TEXT]; /* missing: why it was not measured; note: what was measured */
} bench_peer;

typedef enum bench_kind {
  BENCH_RATE, /* measured; its member is rate */
  BENCH_FACT  /* counted or computed; its member is value */
} bench_kind;

typedef struct bench_number {
  char key[BENCH_NAME];    /* a word, used as key of the JSON output */
  char missing[PEER_TEXT]; /* why it was not measured, if known */
  const char *what;        /* unit and a short description; borrowed */
  bench_kind kind;
  bench_rate rate;
  double value; /* for BENCH_FACT */
  double aim;   /* goal for the value or the median; NaN: none */
  bench_peer peer[BENCH_MOST_PEERS];
  size_t n_peers;
} bench_number;

typedef struct bench {
  /* Options: */
  const char *python;  /* NULL: no comparison with Python programs */
  const char *cimba;   /* executable of Cimba's M/M/1 benchmark; NULL: none */
  const char *shape;   /* the only shape that bench_llm measures; NULL: all */
  int takes_busy;      /* 1: report ratios on a busy machine, too */
  int quick;           /* 1: a repetition is a single call, only to test that it works */
  size_t customers;    /* for bench_des */
  size_t log_mib;      /* for bench_logs: size of the log, in MiB */
  double end;          /* value of seconds_now() after which no measurement begins */
  double least_peer_s; /* seconds that a peer gets at least. If it is not 0, peers are asked even
                          after `end` and even if our own rate was not measured; 0: not then */
  size_t repetitions;  /* at most BENCH_REPETITIONS; 0: BENCH_REPETITIONS */
  /* Called after every rate that was measured; peer NULL: the rate is gepolab's. report NULL: none.
   */
  void (*report)(const bench_number *number, const bench_peer *peer);
  /* Results: */
  bench_number numbers[BENCH_MOST_NUMBERS];
  size_t n;
  meter_load load; /* the maximum over all measurements */
} bench;

/* --- measuring --- */

typedef gl_status (*bench_task)(void *self, gl_error *err);

/* A task to measure. */
typedef struct bench_row {
  const char *key, *what;
  double amount; /* units of work per call */
  bench_task task;
  void *self;
} bench_row;

/* Measures a task: one warm-up call, then BENCH_REPETITIONS repetitions (b->quick: one), each of
 * which calls the task until `least` seconds have passed. Appends the rate, amount per second, as
 * *out, which remains valid. After b->end nothing is run, and the rate is not measured. Errors:
 * those of the task; GL_EINTERNAL (more than BENCH_MOST_NUMBERS numbers). */
gl_status bench_measure(bench *b, bench_number **out, bench_row row, double least, gl_error *err);
/* Measures rows[n] (n at most BENCH_MOST_ROWS) like bench_measure, but with interleaved
 * repetitions. The speed of some machines changes from minute to minute, which the load of others
 * does not show; interleaving makes all rows experience fast and slow times alike. */
gl_status bench_measure_in_turns(bench *b, bench_number *out[], const bench_row *rows, size_t n,
                                 double least, gl_error *err);
/* Appends the speed-up of many workers over one for the same work, by the medians of two rates. NaN
 * if the machine was busy (unless b->takes_busy), or if the processor time per unit of work differs
 * by more than 15 %: then the processor itself was slower during one of them. */
gl_status bench_speed_up(bench *b, const char *key, const bench_number *one,
                         const bench_number *many, double aim, const char *what, gl_error *err);
/* Appends the ratio of the times per unit of work of two numbers, by their minimum processor times:
 * other load can make these longer, but not shorter. NaN if the machine was busy, as above. */
gl_status bench_cost_ratio(bench *b, const char *key, const bench_number *of,
                           const bench_number *than, double aim, const char *what, gl_error *err);
/* Appends a value that is not a measured time. */
gl_status bench_fact(bench *b, const char *key, double value, double aim, const char *what,
                     gl_error *err);
/* Finds the number with this name, or appends it, not measured; *out is the number. */
gl_status bench_named(bench *b, bench_number **out, const char *key, const char *what,
                      gl_error *err);
/* Adds a computed rate as a peer of a number. */
void bench_beside(bench_number *number, const char *name, double rate, double aim,
                  const char *note);
/* Asks a peer for its rates and appends them to a number, at most BENCH_MOST_PEERS per number. If p
 * is NULL or has no process, only the reason is appended. */
void bench_ask(bench *b, bench_number *number, peer_process *p, const char *name,
               const char *request, double aim);
/* Measures a peer program by running it to its end BENCH_REPETITIONS times. check reads its output
 * and returns 0 if the result is wrong. */
void bench_run_program(bench *b, bench_number *number, const char *path, const char *name,
                       double amount, double aim, int (*check)(const char *text));
/* Prepares `python script threads`; if that fails, p->why has the reason. */
void bench_start_python(const bench *b, peer_process *p, const char *script, size_t threads);

/* --- the arithmetic --- */

/* Median, minimum and maximum of rates[n], which it sorts; for even n the median is the mean of the
 * two middle values. n 0: NaNs. */
bench_rate bench_rate_of(double *rates, size_t n, meter_load load);
/* Our speed relative to the peer's. NaN if either was not measured, or if the machine was busy
 * during one of them and takes_busy is 0; *withheld is 1 in the latter case, else 0. */
double bench_ratio(const bench_number *number, const bench_peer *peer, int takes_busy,
                   int *withheld);
/* Appends a value computed from measurements with maximum load `load`; NaN if the machine was busy
 * and b->takes_busy is 0. */
gl_status bench_derived(bench *b, const char *key, double value, meter_load load, double aim,
                        const char *what, gl_error *err);
/* Number of ratios that are withheld. */
size_t bench_withheld(const bench *b);

/* --- parts --- */

/* The simulator: an M/M/1 queue (arrival rate 0.9, service rate 1) in customers per second,
 * compared with Cimba's; 10,000 and a million samplers around one learner, with bare events and
 * with the clock of recipes; and the cost of an event and of a sampler with a million relative to
 * ten thousand. */
gl_status bench_des(bench *b, gl_error *err);
/* policy_evaluate() on 64 responses of 512 tokens, in tokens per second, compared with the same
 * losses and their gradients in PyTorch. One core. */
gl_status bench_policy(bench *b, gl_error *err);
/* The exact laboratory: enumeration of groups, and Monte Carlo compared with the same estimator in
 * NumPy. Groups per second. One core. */
gl_status bench_lab(bench *b, gl_error *err);
/* Training and generation of small transformers on all cores, in tokens per second, compared with
 * PyTorch (eager, compiled, a loop with a cache) and transformers. */
gl_status bench_llm(bench *b, gl_error *err);
/* Cells per second of delay_sweep with one worker and with two, and cells per hour of
 * llm_delay_sweep with two. */
gl_status bench_sweep(bench *b, gl_error *err);

/* A NeMo-RL log of log_mib MiB, in $TMPDIR or /tmp, read and evaluated with grpo and gepo, in bytes
 * per second, compared with orjson and NumPy. One core. */
gl_status bench_logs(bench *b, gl_error *err);

/* Checks that bench_llm has a shape such as "64x2". Errors: GL_EINPUT (the message lists the
 * shapes). */
gl_status bench_llm_has(const char *shape, gl_error *err);

#endif
