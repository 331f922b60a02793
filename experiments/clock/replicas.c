/* Replicas of a clock: what differs from seed to seed. */
#include "experiments/clock/replicas.h"

#include "core/base/thread_pool.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>

/* All seeds have the numbers of the first, which is the one to say how many. */
static gl_status run_replica(void *context, size_t i, gl_error *err) {
  replicas *q = context;
  schedule s = {0};
  const gl_status status = schedule_build(&s, q->cluster, q->r->seed + i, q->r->steps, err);
  if (status != GL_OK) return status;
  const size_t n = schedule_numbers(&s, &q->number[i * SCHEDULE_MOST_NUMBERS]);
  if (i == 0) q->n_numbers = n;
  schedule_fini(&s);
  return GL_OK;
}

gl_status replicas_run(replicas *q, const recipe *r, const cluster_spec *cluster, size_t n,
                       size_t threads, gl_error *err) {
  *q = (replicas){.r = r, .cluster = cluster, .n = n};
  if (n < 2)
    return gl_fail(err, GL_EINPUT,
                   "--replicas needs at least 2 seeds, to say how much they differ");
  q->number = calloc(n, SCHEDULE_MOST_NUMBERS * sizeof *q->number);
  if (q->number == NULL) return gl_fail_memory(err, "replicas");
  return pool_try(n, threads, run_replica, q, err);
}

replicas_spread replicas_spread_of(const replicas *q, size_t number) {
  const schedule_number *first = &q->number[number];
  replicas_spread s = {first->name, first->unit, 0, 0, 0, NAN, NAN, INFINITY, -INFINITY};
  double squares = 0;
  for (size_t i = 0; i < q->n; ++i) {
    const double x = first[i * SCHEDULE_MOST_NUMBERS].value;
    if (isnan(x)) continue;
    const double from = x - s.mean;
    s.mean += from / ++s.n;
    squares += from * (x - s.mean);
    s.least = fmin(s.least, x);
    s.most = fmax(s.most, x);
  }
  if (s.n == 0) s.mean = s.least = s.most = NAN;
  s.sd = s.n > 1 ? sqrt(squares / (s.n - 1)) : NAN;
  const double half = s.n > 1 ? gsl_cdf_tdist_Pinv(0.975, s.n - 1) * s.sd / sqrt(s.n) : NAN;
  s.low = s.mean - half;
  s.high = s.mean + half;
  return s;
}

void replicas_fini(replicas *q) {
  free(q->number);
  q->number = NULL;
}
