/* Row-wise operations: copies of rows, norms, biases, the gated unit. A task is some rows.
 * kernels_rows.h has the arithmetic of a row, shared with CUDA. Part of template.c, compiled once
 * per number type and instruction set. */

/* The arguments of the tasks of any row-wise operation. Each operation defines what out, a, ... are
 * where it fills in the job; unused members are zero. */
typedef struct row_job {
  void *out, *out2, *out3;
  const void *a, *b, *c, *d;
  const void *cosine, *sine;
  const int32_t *index;
  size_t rows, width, chunk; /* chunk: rows (or columns) per task */
  head_shape shape;
  double eps;
  cpu *owner;
} row_job;

/* Runs task over the job's rows, job->chunk at a time. */
static void run_rows(row_job *job, pool_task task) {
  if (job->rows > 0) pool_run(job->owner->pool, task, job, divide_up(job->rows, job->chunk));
}

/* One past the task's last row. */
static inline size_t last_row(const row_job *job, size_t task) {
  return smaller(job->rows, (task + 1) * job->chunk);
}

static void cpu_cast(backend *b, void *out, const void *in, size_t n) {
  cpu_copy(b, out, in, n * sizeof(REAL));
}

/* type and master are the same on the CPU, so nothing is rounded. */
static void cpu_cast_stochastic(backend *b, void *out, const void *in, size_t n,
                                const copy_rounding *r) {
  (void)r;
  cpu_cast(b, out, in, n);
}

/* --- copies of rows --- */

static void gather_task(void *context, size_t task, size_t worker) {
  const row_job *job = context;
  (void)worker;
  for (size_t r = task * job->chunk; r < last_row(job, task); ++r)
    memcpy((REAL *)job->out + r * job->width,
           (const REAL *)job->a + (size_t)job->index[r] * job->width, job->width * sizeof(REAL));
}

static void cpu_gather(backend *b, void *out, const void *in, const int32_t *index, size_t n,
                       size_t width) {
  cpu *c = (cpu *)b;
  row_job job = {.out = out, .a = in, .index = index, .rows = n, .width = width, .owner = c};
  job.chunk = rows_per_task(width);
  if (!cpu_failed(c)) run_rows(&job, gather_task);
}

static void cpu_embed(backend *b, void *out, const void *table, const int32_t *token, size_t rows,
                      size_t width) {
  cpu_gather(b, out, table, token, rows, width);
}

/* Adds a range of columns of all rows, in the order of rows. No two tasks write the same number. */
static void scatter_task(void *context, size_t task, size_t worker) {
  const row_job *job = context;
  (void)worker;
  const size_t from = task * job->chunk, to = smaller(job->width, from + job->chunk);
  for (size_t r = 0; r < job->rows; ++r) {
    REAL *restrict sum = (REAL *)job->out + (size_t)job->index[r] * job->width;
    const REAL *restrict row = (const REAL *)job->a + r * job->width;
    SIMD
    for (size_t i = from; i < to; ++i) sum[i] += row[i];
  }
}

static void cpu_scatter_add(backend *b, void *in, const void *out, const int32_t *index, size_t n,
                            size_t width) {
  cpu *c = (cpu *)b;
  row_job job = {.out = in, .a = out, .index = index, .rows = n, .width = width, .owner = c};
  job.chunk = 64;
  if (!cpu_failed(c) && width > 0) pool_run(c->pool, scatter_task, &job, divide_up(width, 64));
}

static void cpu_embed_backward(backend *b, void *dtable, const void *dout, const int32_t *token,
                               size_t rows, size_t width) {
  cpu_scatter_add(b, dtable, dout, token, rows, width);
}

/* --- norm --- */

static void norm_task(void *context, size_t task, size_t worker) {
  const row_job *job = context;
  const size_t w = job->width;
  const kernel_group g = {0};
  (void)worker;
  for (size_t r = task * job->chunk; r < last_row(job, task); ++r)
    ((REAL *)job->out2)[r] =
        row_norm(g, (REAL *)job->out + r * w, job->b == NULL ? NULL : (REAL *)job->out3 + r * w,
                 (const REAL *)job->a + r * w, job->b == NULL ? NULL : (const REAL *)job->b + r * w,
                 job->c, w, (REAL)job->eps);
}

static void cpu_norm(backend *b, void *out, void *rstd, void *sum, const void *in, const void *add,
                     const void *weight, size_t rows, size_t width, double eps) {
  cpu *c = (cpu *)b;
  row_job job = {.out = out,
                 .out2 = rstd,
                 .out3 = sum,
                 .a = in,
                 .b = add,
                 .c = weight,
                 .rows = rows,
                 .width = width,
                 .chunk = rows_per_task(2 * width),
                 .eps = eps,
                 .owner = c};
  if (!cpu_failed(c)) run_rows(&job, norm_task);
}

/* Rows per task when tasks sum a weight's gradient into separate memory: at most 32 tasks, whose
 * sums add_task_parts adds. */
static size_t gathering_rows(size_t rows, size_t cost) {
  return larger(rows_per_task(cost), divide_up(rows, 32));
}

/* to [width] += the rows of part [tasks, width], in order. */
static void add_task_parts(REAL *restrict to, const REAL *part, size_t tasks, size_t width) {
  for (size_t t = 0; t < tasks; ++t) {
    const REAL *restrict from = part + t * width;
    SIMD
    for (size_t i = 0; i < width; ++i) to[i] += from[i];
  }
}

static void norm_backward_task(void *context, size_t task, size_t worker) {
  const row_job *job = context;
  const size_t w = job->width;
  const kernel_group g = {0};
  REAL *part = (REAL *)job->owner->shared + task * w;
  (void)worker;
  memset(part, 0, w * sizeof *part);
  for (size_t r = task * job->chunk; r < last_row(job, task); ++r)
    row_norm_backward(g, (REAL *)job->out + r * w, part, (const REAL *)job->a + r * w,
                      (const REAL *)job->b + r * w, ((const REAL *)job->d)[r], job->c, w);
}

static void cpu_norm_backward(backend *b, void *din, void *dweight, const void *dout,
                              const void *in, const void *rstd, const void *weight, size_t rows,
                              size_t width) {
  cpu *c = (cpu *)b;
  row_job job = {.out = din,
                 .a = dout,
                 .b = in,
                 .c = weight,
                 .d = rstd,
                 .rows = rows,
                 .width = width,
                 .chunk = gathering_rows(rows, 3 * width),
                 .owner = c};
  const size_t tasks = divide_up(rows, job.chunk);
  if (!cpu_reserve(c, 0, tasks * width * sizeof(REAL))) return;
  run_rows(&job, norm_backward_task);
  add_task_parts(dweight, c->shared, tasks, width);
}

/* --- bias --- */

static void bias_task(void *context, size_t task, size_t worker) {
  const row_job *job = context;
  const REAL *restrict bias = job->a;
  (void)worker;
  for (size_t r = task * job->chunk; r < last_row(job, task); ++r) {
    REAL *restrict out = (REAL *)job->out + r * job->width;
    SIMD
    for (size_t i = 0; i < job->width; ++i) out[i] += bias[i];
  }
}

static void cpu_bias(backend *b, void *out, const void *bias, size_t rows, size_t width) {
  cpu *c = (cpu *)b;
  row_job job = {.out = out, .a = bias, .rows = rows, .width = width, .owner = c};
  job.chunk = rows_per_task(width);
  if (!cpu_failed(c)) run_rows(&job, bias_task);
}

static void bias_backward_task(void *context, size_t task, size_t worker) {
  const row_job *job = context;
  const size_t from = task * job->chunk, to = smaller(job->width, from + job->chunk);
  REAL *restrict sum = job->out;
  (void)worker;
  for (size_t r = 0; r < job->rows; ++r) {
    const REAL *restrict row = (const REAL *)job->a + r * job->width;
    SIMD
    for (size_t i = from; i < to; ++i) sum[i] += row[i];
  }
}

static void cpu_bias_backward(backend *b, void *dbias, const void *dout, size_t rows,
                              size_t width) {
  cpu *c = (cpu *)b;
  row_job job = {.out = dbias, .a = dout, .rows = rows, .width = width, .chunk = 64, .owner = c};
  if (!cpu_failed(c)) pool_run(c->pool, bias_backward_task, &job, divide_up(width, 64));
}

/* --- gated unit --- */

static void swiglu_task(void *context, size_t task, size_t worker) {
  const row_job *job = context;
  const size_t w = job->width;
  const kernel_group g = {0};
  (void)worker;
  for (size_t r = task * job->chunk; r < last_row(job, task); ++r) {
    const REAL *gate = (const REAL *)job->a + r * 2 * w;
    row_swiglu(g, (REAL *)job->out + r * w, gate, gate + w, w);
  }
}

static void cpu_swiglu(backend *b, void *out, const void *gate_up, size_t rows, size_t width) {
  cpu *c = (cpu *)b;
  row_job job = {.out = out, .a = gate_up, .rows = rows, .width = width, .owner = c};
  job.chunk = rows_per_task(4 * width);
  if (!cpu_failed(c)) run_rows(&job, swiglu_task);
}

static void swiglu_backward_task(void *context, size_t task, size_t worker) {
  const row_job *job = context;
  const size_t w = job->width;
  const kernel_group g = {0};
  (void)worker;
  for (size_t r = task * job->chunk; r < last_row(job, task); ++r) {
    const REAL *gate = (const REAL *)job->a + r * 2 * w;
    REAL *dgate = (REAL *)job->out + r * 2 * w;
    row_swiglu_backward(g, dgate, dgate + w, (const REAL *)job->b + r * w, gate, gate + w, w);
  }
}

static void cpu_swiglu_backward(backend *b, void *dgate_up, const void *dout, const void *gate_up,
                                size_t rows, size_t width) {
  cpu *c = (cpu *)b;
  row_job job = {
      .out = dgate_up, .a = gate_up, .b = dout, .rows = rows, .width = width, .owner = c};
  job.chunk = rows_per_task(6 * width);
  if (!cpu_failed(c)) run_rows(&job, swiglu_backward_task);
}
