/* The steps of the optimisers and the sum of squares of a gradient. A task is a chunk of numbers;
 * kernels_rows.h has the arithmetic of a number, shared with CUDA. Part of template.c, compiled
 * once per number type and instruction set. */

enum { OPTIMISER_CHUNK = 16384 };

typedef struct optimiser_job {
  REAL *param, *copy, *m, *v;
  const REAL *grad;
  double *part; /* [tasks] sums of squares */
  size_t n;
  const adamw_step *adamw;
  const sgd_step *sgd;
} optimiser_job;

static void adamw_task(void *context, size_t task, size_t worker) {
  const optimiser_job *job = context;
  const adamw_step *s = job->adamw;
  const size_t from = task * OPTIMISER_CHUNK, n = smaller(OPTIMISER_CHUNK, job->n - from);
  REAL *restrict param = job->param + from, *restrict m = job->m + from,
                 *restrict v = job->v + from;
  const REAL *restrict grad = job->grad + from;
  const REAL beta1 = (REAL)s->beta1, beta2 = (REAL)s->beta2, coupled = (REAL)s->coupled;
  const REAL keep = (REAL)(1 - s->lr * s->decoupled), scale = (REAL)s->scale, eps = (REAL)s->eps;
  const REAL rate = (REAL)(s->lr / s->correct1), root = (REAL)(1 / sqrt(s->correct2));
  (void)worker;
  SIMD
  for (size_t i = 0; i < n; ++i)
    param[i] = row_adamw_number(param[i], grad[i], &m[i], &v[i], beta1, beta2, keep, coupled, scale,
                                rate, root, eps);
  if (job->copy != job->param) memcpy(job->copy + from, param, n * sizeof *param);
}

static void cpu_adamw(backend *b, void *param, void *copy, const void *grad, void *m, void *v,
                      size_t n, const adamw_step *step) {
  cpu *c = (cpu *)b;
  optimiser_job job = {
      .param = param, .copy = copy, .grad = grad, .m = m, .v = v, .n = n, .adamw = step};
  if (!cpu_failed(c)) pool_run(c->pool, adamw_task, &job, divide_up(n, OPTIMISER_CHUNK));
}

static void sgd_task(void *context, size_t task, size_t worker) {
  const optimiser_job *job = context;
  const sgd_step *s = job->sgd;
  const size_t from = task * OPTIMISER_CHUNK, to = smaller(job->n, from + OPTIMISER_CHUNK);
  const REAL lr = (REAL)s->lr, momentum = (REAL)s->momentum, coupled = (REAL)s->coupled;
  const REAL scale = (REAL)s->scale;
  (void)worker;
  for (size_t i = from; i < to; ++i)
    job->param[i] = row_sgd_number(job->param[i], job->grad[i], job->m != NULL ? &job->m[i] : NULL,
                                   lr, momentum, coupled, scale);
  if (job->copy != job->param)
    memcpy(job->copy + from, job->param + from, (to - from) * sizeof *job->param);
}

static void cpu_sgd(backend *b, void *param, void *copy, const void *grad, void *m, size_t n,
                    const sgd_step *step) {
  cpu *c = (cpu *)b;
  optimiser_job job = {.param = param, .copy = copy, .grad = grad, .m = m, .n = n, .sgd = step};
  if (!cpu_failed(c)) pool_run(c->pool, sgd_task, &job, divide_up(n, OPTIMISER_CHUNK));
}

static void squares_task(void *context, size_t task, size_t worker) {
  const optimiser_job *job = context;
  const size_t from = task * OPTIMISER_CHUNK, n = smaller(OPTIMISER_CHUNK, job->n - from);
  const REAL *restrict x = job->grad + from;
  double sum = 0;
  (void)worker;
  SIMD_SUM(sum)
  for (size_t i = 0; i < n; ++i) sum += (double)x[i] * (double)x[i];
  job->part[task] = sum;
}

static double cpu_sum_squares(backend *b, const void *x, size_t n) {
  cpu *c = (cpu *)b;
  const size_t parts = divide_up(n, OPTIMISER_CHUNK);
  if (!cpu_reserve(c, 0, parts * sizeof(double))) return 0;
  optimiser_job job = {.grad = x, .n = n, .part = c->shared};
  pool_run(c->pool, squares_task, &job, parts);
  double sum = 0;
  for (size_t i = 0; i < parts; ++i) sum += job.part[i];
  return sum;
}
