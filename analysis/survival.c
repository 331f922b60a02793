/* The Kaplan-Meier estimate of survival. */
#include "analysis/statistics.h"

#include <math.h>
#include <stdlib.h>

typedef struct watched {
  double time;
  int fell;
} watched;

static int by_time(const void *a, const void *b) {
  const watched *x = a, *y = b;
  return (x->time > y->time) - (x->time < y->time);
}

static gl_status check_times(const double *time, size_t n, gl_error *err) {
  for (size_t i = 0; i < n; ++i)
    if (!(time[i] >= 0))
      return gl_fail(err, GL_EINPUT, "the time of run %zu is %g: times are not negative", i,
                     time[i]);
  return GL_OK;
}

/* Product over the times of falls of (1 - falls / at risk). */
static size_t steps_of(const watched *run, size_t n, survival_step *curve) {
  double survival = 1, greenwood = 0;
  size_t steps = 0;
  for (size_t i = 0; i < n;) {
    size_t end = i, falls = 0;
    while (end < n && run[end].time == run[i].time) falls += (size_t)run[end++].fell;
    if (falls > 0) {
      const double at_risk = (double)(n - i), left = at_risk - (double)falls;
      survival *= left / at_risk;
      if (left > 0) greenwood += (double)falls / (at_risk * left);
      curve[steps++] = (survival_step){.time = run[i].time,
                                       .survival = survival,
                                       .error = survival * sqrt(greenwood),
                                       .at_risk = n - i,
                                       .falls = falls};
    }
    i = end;
  }
  return steps;
}

gl_status survival_curve(const double *time, const uint8_t *observed, size_t n,
                         survival_step *curve, size_t *steps, gl_error *err) {
  *steps = 0;
  gl_status status = check_times(time, n, err);
  if (status != GL_OK || n == 0) return status;
  if (n > SIZE_MAX / sizeof(watched)) return gl_fail_memory(err, "the survival curve");
  watched *run = malloc(n * sizeof *run);
  if (run == NULL) return gl_fail_memory(err, "the survival curve");
  for (size_t i = 0; i < n; ++i) run[i] = (watched){time[i], observed[i] != 0};
  qsort(run, n, sizeof *run, by_time);
  *steps = steps_of(run, n, curve);
  free(run);
  return GL_OK;
}
