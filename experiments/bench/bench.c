/* The list of numbers that a benchmark measured. */
#include "experiments/bench/bench.h"

#include <stdio.h>

void bench_add(bench_result *r, const char *key, double value, double aim, const char *what) {
  if (r->n == BENCH_MAX_NUMBERS) return;
  bench_number *number = &r->numbers[r->n++];
  *number = (bench_number){.value = value, .aim = aim, .what = what};
  snprintf(number->key, sizeof number->key, "%s", key);
}
