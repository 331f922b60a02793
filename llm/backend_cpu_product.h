/* Matrix products cut into tasks. Part of backend_cpu_body.h. */

typedef struct product_job {
  const REAL *a, *b;
  REAL *c;
  size_t a_row, a_column, b_row, c_row;
  size_t rows, columns, n;
  size_t high, wide; /* of a task */
  int add;
  cpu *owner;
} product_job;

/* The part of the result that is task's: *i, *j its corner, *rows, *columns its size. */
static void product_part(const product_job *job, size_t task, size_t *i, size_t *j, size_t *rows,
                         size_t *columns) {
  const size_t across = pieces(job->columns, job->wide);
  *i = task / across * job->high;
  *j = task % across * job->wide;
  *rows = smaller(job->high, job->rows - *i);
  *columns = smaller(job->wide, job->columns - *j);
}

static void dot_task(void *context, size_t task, size_t worker) {
  const product_job *job = context;
  size_t i, j, rows, columns;
  (void)worker;
  product_part(job, task, &i, &j, &rows, &columns);
  gemm_dot(job->a + i * job->a_row, job->a_row, job->b + j * job->b_row, job->b_row,
           job->c + i * job->c_row + j, job->c_row, rows, columns, job->n, job->add);
}

static void outer_task(void *context, size_t task, size_t worker) {
  const product_job *job = context;
  size_t i, j, rows, columns;
  product_part(job, task, &i, &j, &rows, &columns);
  gemm_outer(job->a + i * job->a_row, job->a_row, job->a_column, job->b + j, job->b_row,
             job->c + i * job->c_row + j, job->c_row, rows, columns, job->n, job->add,
             job->owner->worker[worker]);
}

static void run_product(product_job *job, pool_task task) {
  const size_t n = pieces(job->rows, job->high) * pieces(job->columns, job->wide);
  pool_run(job->owner->pool, task, job, n);
}

enum { TASK_PRODUCTS = 1 << 20, DOT_HIGH = 64, OUTER_HIGH = 192 };

/* c (+)= a b^T, everything row-major. */
static void run_dot(cpu *owner, const REAL *a, const REAL *b, REAL *c, size_t rows, size_t columns,
                    size_t n, int add) {
  product_job job = {.a = a,
                     .b = b,
                     .c = c,
                     .a_row = n,
                     .b_row = n,
                     .c_row = columns,
                     .rows = rows,
                     .columns = columns,
                     .n = n,
                     .high = DOT_HIGH,
                     .add = add,
                     .owner = owner};
  const size_t each = larger(1, smaller(rows, DOT_HIGH) * n);
  job.wide = round_up(larger(1, TASK_PRODUCTS / each), 12);
  run_product(&job, dot_task);
}

static void product(backend *b, void *out, const void *in, const void *weight, size_t rows,
                    size_t m, size_t k, int flags) {
  cpu *c = (cpu *)b;
  if (!cpu_failed(c)) run_dot(c, in, weight, out, rows, m, k, flags & PRODUCT_ADD);
}

static void run_outer(product_job *job) {
  if (!cpu_reserve(job->owner, OUTER_SCRATCH * sizeof(REAL), 0)) return;
  job->high = OUTER_HIGH;
  const size_t each = larger(1, smaller(job->rows, OUTER_HIGH) * job->n);
  job->wide = smaller(OUTER_PANEL, round_up(larger(1, 2 * TASK_PRODUCTS / each), 16));
  run_product(job, outer_task);
}

static void product_backward_input(backend *b, void *din, const void *dout, const void *weight,
                                   size_t rows, size_t m, size_t k, int flags) {
  product_job job = {.a = dout,
                     .b = weight,
                     .c = din,
                     .a_row = m,
                     .a_column = 1,
                     .b_row = k,
                     .c_row = k,
                     .rows = rows,
                     .columns = k,
                     .n = m,
                     .add = flags & PRODUCT_ADD,
                     .owner = (cpu *)b};
  run_outer(&job);
}

static void product_backward_weight(backend *b, void *dweight, const void *dout, const void *in,
                                    size_t rows, size_t m, size_t k) {
  product_job job = {.a = dout,
                     .b = in,
                     .c = dweight,
                     .a_row = 1,
                     .a_column = m,
                     .b_row = k,
                     .c_row = k,
                     .rows = m,
                     .columns = k,
                     .n = rows,
                     .add = 1,
                     .owner = (cpu *)b};
  run_outer(&job);
}
