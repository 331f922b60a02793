/* The benchmarks behind `gepolab bench`. Each adds named numbers to a list, which
 * experiments/cli/cmd_bench.c prints as a table or as JSON. Run them on an idle machine. */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_BENCH_H
#define GEPOLAB_EXPERIMENTS_BENCH_BENCH_H

#include "core/base/error.h"

#include <stddef.h>

enum { BENCH_MAX_NUMBERS = 64 };

typedef struct bench_number {
  char key[48]; /* snake_case, a key of the JSON answer */
  double value;
  double aim;       /* the goal, or the exact value where theory gives one; NaN: none */
  const char *what; /* unit and a few words; borrowed, must outlive the list */
} bench_number;

typedef struct bench_result {
  bench_number numbers[BENCH_MAX_NUMBERS];
  size_t n;
} bench_result;

/* Appends a number; the key is cut at 47 characters. Further numbers than BENCH_MAX_NUMBERS are
 * dropped. */
void bench_add(bench_result *r, const char *key, double value, double aim, const char *what);

/* The event queue of sim/: an M/M/1 queue (arrival rate 0.9, service rate 1, `customers` customers)
 * in events per second, and 10,000 samplers around one learner. */
gl_status bench_des(bench_result *r, size_t customers, gl_error *err);
/* policy_evaluate() on a large batch, in tokens per second, for several algorithms. */
gl_status bench_policy(bench_result *r, gl_error *err);
/* The exact laboratory: enumeration of groups, and Monte Carlo next to the same estimator in NumPy
 * where python3 finds NumPy. Groups per second. */
gl_status bench_lab(bench_result *r, gl_error *err);
/* Training and generation of small transformers on all cores, in tokens per second, next to PyTorch
 * where python3 finds it. */
gl_status bench_llm(bench_result *r, gl_error *err);
/* Cells per second of delay_sweep with one worker and with two. */
gl_status bench_sweep(bench_result *r, gl_error *err);

#endif
