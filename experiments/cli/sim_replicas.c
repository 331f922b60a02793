/* Replicas of a clock: what differs from seed to seed. */
#include "experiments/cli/sim_replicas.h"

#include "core/base/json.h"
#include "core/base/thread_pool.h"
#include "experiments/base/print_json.h"
#include "sim/schedule_print.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct replicas {
  const recipe *r;
  const cluster_spec *cluster;
  size_t n;
  schedule_number *number; /* [n][SCHEDULE_MOST_NUMBERS] of each seed; owned */
  size_t *count;           /* [n] owned; the same for all */
} replicas;

static gl_status run_one(void *context, size_t i, gl_error *err) {
  replicas *q = context;
  schedule s = {0};
  const gl_status status = schedule_build(&s, q->cluster, q->r->seed + i, q->r->steps, err);
  if (status != GL_OK) return status;
  q->count[i] = schedule_numbers(&s, &q->number[i * SCHEDULE_MOST_NUMBERS]);
  schedule_fini(&s);
  return GL_OK;
}

/* Of one number over the seeds in which it is one. */
typedef struct spread {
  const char *name, *unit;
  double n, mean, sd, low, high, least, most; /* NaN without any */
} spread;

static spread spread_of(const replicas *q, size_t which) {
  const schedule_number *first = &q->number[which];
  spread s = {first->name, first->unit, 0, 0, 0, NAN, NAN, INFINITY, -INFINITY};
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

static void print_table(const replicas *q) {
  printf("%zu replicas, seeds %llu to %llu: mean, 95 %% interval of the mean, standard deviation, "
         "least and most\n",
         q->n, (unsigned long long)q->r->seed, (unsigned long long)(q->r->seed + q->n - 1));
  for (size_t k = 0; k < q->count[0]; ++k) {
    const spread s = spread_of(q, k);
    if (s.n > 0)
      printf("%-20s  %-12.6g [%.6g, %.6g]  sd %.4g  %.6g to %.6g %s\n", s.name, s.mean, s.low,
             s.high, s.sd, s.least, s.most, s.unit);
  }
}

static gl_status print_json_of(const replicas *q, gl_error *err) {
  cJSON *root = cJSON_CreateObject();
  int ok = root != NULL && json_add_number(root, "replicas", (double)q->n) != NULL &&
           json_add_number(root, "first_seed", (double)q->r->seed) != NULL;
  for (size_t k = 0; k < q->count[0] && ok; ++k) {
    const spread s = spread_of(q, k);
    cJSON *to = cJSON_AddObjectToObject(root, s.name);
    ok = to != NULL && json_add_number(to, "mean", s.mean) != NULL &&
         json_add_number(to, "low", s.low) != NULL && json_add_number(to, "high", s.high) != NULL &&
         json_add_number(to, "sd", s.sd) != NULL && json_add_number(to, "min", s.least) != NULL &&
         json_add_number(to, "max", s.most) != NULL;
  }
  if (ok) return report_json(root, err);
  cJSON_Delete(root);
  return gl_fail_memory(err, "JSON");
}

gl_status sim_replicas(const recipe *r, const cluster_spec *cluster, size_t n, size_t threads,
                       int json, gl_error *err) {
  if (n < 2)
    return gl_fail(err, GL_EINPUT,
                   "--replicas needs at least 2 seeds, to say how much they differ");
  replicas q = {r, cluster, n, calloc(n, SCHEDULE_MOST_NUMBERS * sizeof *q.number),
                calloc(n, sizeof *q.count)};
  gl_status status = q.number != NULL && q.count != NULL ? GL_OK : gl_fail_memory(err, "replicas");
  if (status == GL_OK) status = pool_try(n, threads, run_one, &q, err);
  if (status == GL_OK && json)
    status = print_json_of(&q, err);
  else if (status == GL_OK)
    print_table(&q);
  free(q.number);
  free(q.count);
  return status;
}
