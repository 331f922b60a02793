/* Measurements of speed. Each fills a list of named numbers; cmd_bench.c prints them. */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_BENCH_H
#define GEPOLAB_EXPERIMENTS_BENCH_BENCH_H

#include "core/base/error.h"

#include <stddef.h>

enum { BENCH_MAX_NUMBERS = 64 };

typedef struct bench_number {
  char key[48]; /* snake_case, a key of the JSON answer */
  double value;
  double aim; /* what was aimed at, or a known value; NaN: none */
  const char *what;
} bench_number;

typedef struct bench_result {
  bench_number numbers[BENCH_MAX_NUMBERS];
  size_t n;
} bench_result;

void bench_add(bench_result *r, const char *key, double value, double aim, const char *what);

/* M/M/1 at lambda 0.9, mu 1 over the event queue of sim/, with `customers` customers; and a star of
 * 10,000 samplers around one learner. */
gl_status bench_des(bench_result *r, size_t customers, gl_error *err);
/* policy_evaluate() on a large batch, per row. */
gl_status bench_policy(bench_result *r, gl_error *err);
/* Enumeration of groups, and Monte Carlo next to the same estimator in NumPy where python3 has it.
 */
gl_status bench_lab(bench_result *r, gl_error *err);
/* Training and generation of the transformer on all cores, next to PyTorch where python3 has it. */
gl_status bench_llm(bench_result *r, gl_error *err);
/* Cells per second of delay_sweep with one worker and with two. */
gl_status bench_sweep(bench_result *r, gl_error *err);

#endif
