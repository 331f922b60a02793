/* Matrix products cut into tasks. Part of backend_cpu_body.h.
 *
 * Row by row they are this room's own (backend_cpu_gemm.h), because no library promises that a
 * row's bits do not depend on its neighbours. Training's are OpenBLAS's, which is faster; each task
 * calls it with one thread on a part of the result that depends on the shape alone. */

typedef enum product_form { DOT, FORWARD, INPUT, WEIGHT } product_form;

typedef struct product_job {
  product_form form;
  const REAL *a, *b;
  REAL *c;
  size_t rows, columns, n; /* c [rows, columns], sums of n */
  size_t high, wide;       /* of a task */
  int add;
} product_job;

#if IS_DOUBLE
#define BLAS_PRODUCT cblas_dgemm
#else
#define BLAS_PRODUCT cblas_sgemm
#endif

/* DOT, FORWARD: c = a[rows, n] b[columns, n]^T. INPUT: a[rows, n] b[n, columns].
 * WEIGHT: a[n, rows]^T b[n, columns]. */
static void product_task(void *context, size_t task, size_t worker) {
  const product_job *job = context;
  const size_t across = pieces(job->columns, job->wide), n = job->n;
  const size_t i = task / across * job->high, j = task % across * job->wide;
  const size_t rows = smaller(job->high, job->rows - i);
  const size_t columns = smaller(job->wide, job->columns - j);
  const int turned = job->form == WEIGHT, along = job->form == FORWARD;
  const REAL *a = job->a + (turned ? i : i * n), *b = job->b + (along ? j * n : j);
  REAL *c = job->c + i * job->columns + j;
  (void)worker;
  if (job->form == DOT)
    gemm_dot(a, n, job->b + j * n, n, c, job->columns, rows, columns, n, job->add);
  else
    BLAS_PRODUCT(CblasRowMajor, turned ? CblasTrans : CblasNoTrans,
                 along ? CblasTrans : CblasNoTrans, (int)rows, (int)columns, (int)n, 1, a,
                 (int)(turned ? job->rows : n), b, (int)(along ? n : job->columns),
                 job->add ? 1 : 0, c, (int)job->columns);
}

enum { DOT_HIGH = 48, BLAS_HIGH = 192, BLAS_WIDE = 128 };

/* How many tasks so many multiplications are worth: enough for some threads, each long against the
 * microsecond that a task costs. */
static size_t tasks_worth(double multiplications) {
  const double small = multiplications / (1 << 19), large = multiplications / (1 << 25);
  return (size_t)fmax(1, fmax(fmin(small, 16), large));
}

static double multiplications(const product_job *job) {
  return (double)job->rows * (double)job->columns * (double)job->n;
}

/* Halves the longer side of the parts until there are enough tasks, or parts would be too small for
 * OpenBLAS to be at its speed. */
static void cut_blas(product_job *job) {
  const size_t wanted = tasks_worth(multiplications(job));
  job->high = job->rows;
  job->wide = job->columns;
  while (pieces(job->rows, job->high) * pieces(job->columns, job->wide) < wanted) {
    if (job->high >= job->wide && job->high >= 2 * BLAS_HIGH)
      job->high = round_up(pieces(job->high, 2), 24);
    else if (job->wide >= 2 * BLAS_WIDE)
      job->wide = round_up(pieces(job->wide, 2), 32);
    else
      return;
  }
}

/* Few rows read much memory for few multiplications: then columns are what is cut. */
static void cut_dot(product_job *job) {
  job->high = smaller(DOT_HIGH, job->rows);
  const size_t down = pieces(job->rows, job->high), tasks = tasks_worth(multiplications(job));
  job->wide = round_up(pieces(job->columns, larger(1, pieces(4 * tasks, down))), 8);
}

static void run_product(cpu *c, product_job *job) {
  if (cpu_failed(c) || job->rows == 0 || job->columns == 0) return;
  if (job->form == DOT)
    cut_dot(job);
  else
    cut_blas(job);
  pool_run(c->pool, product_task, job,
           pieces(job->rows, job->high) * pieces(job->columns, job->wide));
}

static void product(backend *b, void *out, const void *in, const void *weight, size_t rows,
                    size_t m, size_t k, int flags) {
  product_job job = {.form = flags & PRODUCT_ROW_BY_ROW ? DOT : FORWARD,
                     .a = in,
                     .b = weight,
                     .c = out,
                     .rows = rows,
                     .columns = m,
                     .n = k,
                     .add = flags & PRODUCT_ADD};
  run_product((cpu *)b, &job);
}

static void product_backward_input(backend *b, void *din, const void *dout, const void *weight,
                                   size_t rows, size_t m, size_t k, int flags) {
  product_job job = {.form = INPUT,
                     .a = dout,
                     .b = weight,
                     .c = din,
                     .rows = rows,
                     .columns = k,
                     .n = m,
                     .add = flags & PRODUCT_ADD};
  run_product((cpu *)b, &job);
}

static void product_backward_weight(backend *b, void *dweight, const void *dout, const void *in,
                                    size_t rows, size_t m, size_t k) {
  product_job job = {.form = WEIGHT,
                     .a = dout,
                     .b = in,
                     .c = dweight,
                     .rows = m,
                     .columns = k,
                     .n = rows,
                     .add = 1};
  run_product((cpu *)b, &job);
}
