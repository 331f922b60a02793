/* Matrix products and how they are divided into tasks. Part of the template body.h, compiled once
 * for every number type and instruction set.
 *
 * There are four ways. Products with weights that were packed before read the panels (panels.h),
 * whether they have one row or thousands. Of other products those asked for row by row go through
 * dot.h. Training's products pack one factor once (for gradients of weights the layer's
 * input), and all tasks read it. OpenBLAS computes what is too small or too large for
 * packing, and all of training's products where its instructions are wider (cpu.blas); each task
 * then calls it, with one thread, for a part of the result that depends on the shape alone. */

/* DOT and FORWARD: c = a [rows, n] b [columns, n]^T, row by row or not. INPUT (gradient of the
 * input): c = a [rows, n] b [n, columns]. WEIGHT (gradient of the weight):
 * c = a [n, rows]^T b [n, columns]. */
typedef enum product_form { DOT, FORWARD, INPUT, WEIGHT } product_form;

typedef struct product_job {
  product_form form;
  const REAL *a, *b;
  REAL *c;                 /* [rows, columns] */
  size_t rows, columns, n; /* n: terms of each sum */
  size_t high, wide;       /* rows and columns of a task's part of c */
  int add;
  panels right; /* b packed; its data NULL: OpenBLAS reads b itself */
  cpu *owner;
} product_job;

#if IS_DOUBLE
#define BLAS_PRODUCT cblas_dgemm
#else
#define BLAS_PRODUCT cblas_sgemm
#endif

/* c [i .. i + rows, j .. j + columns] by OpenBLAS. */
static void blas_part(const product_job *job, size_t i, size_t j, size_t rows, size_t columns) {
  const int transposed_a = job->form == WEIGHT, transposed_b = job->form == FORWARD;
  const size_t n = job->n;
  BLAS_PRODUCT(CblasRowMajor, transposed_a ? CblasTrans : CblasNoTrans,
               transposed_b ? CblasTrans : CblasNoTrans, (int)rows, (int)columns, (int)n, 1,
               job->a + (transposed_a ? i : i * n), (int)(transposed_a ? job->rows : n),
               job->b + (transposed_b ? j * n : j), (int)(transposed_b ? n : job->columns),
               job->add ? 1 : 0, job->c + i * job->columns + j, (int)job->columns);
}

/* The same from the packed factor; j is a multiple of PANEL. scratch: LEFT numbers. */
static void panels_part(const product_job *job, size_t i, size_t j, size_t rows, size_t columns,
                        REAL *scratch) {
  const int transposed_a = job->form == WEIGHT;
  gemm_panels(job->a + (transposed_a ? i : i * job->n), transposed_a ? 1 : job->n,
              transposed_a ? job->rows : 1, &job->right, j, job->c + i * job->columns + j,
              job->columns, rows, columns, job->n, job->add, scratch);
}

static void product_task(void *context, size_t task, size_t worker) {
  const product_job *job = context;
  const size_t across = divide_up(job->columns, job->wide), n = job->n;
  const size_t i = task / across * job->high, j = task % across * job->wide;
  const size_t rows = smaller(job->high, job->rows - i);
  const size_t columns = smaller(job->wide, job->columns - j);
  REAL *c = job->c + i * job->columns + j;
  if (job->form == DOT)
    gemm_dot(job->a + i * n, n, job->b + j * n, n, c, job->columns, rows, columns, n, job->add);
  else if (job->right.data == NULL)
    blas_part(job, i, j, rows, columns);
  else
    panels_part(job, i, j, rows, columns, job->owner->worker[worker]);
}

/* HIGH is rows of a task, WIDE columns. These sizes were chosen by measurement. */
enum {
  DOT_HIGH = 48,
  BLAS_HIGH = 192, /* least of a part at which OpenBLAS is still at its speed, and */
  BLAS_WIDE = 128,
  PACKED_HIGH = 2 * LEFT_HIGH,
  PACKED_LEAST = 96,              /* least rows of c for which packing b pays */
  PACKED_MOST = 1 << 24,          /* most numbers of a packed factor */
  PACK_WIDE = 4 * PANEL,          /* columns of a task that packs */
  PREPACKED_WIDE = 4 * PANEL,     /* least columns of a task where the weights were packed before */
  WEIGHT_LEAST = 32,              /* PACKED_LEAST of the gradient of a weight */
  WEIGHT_TERMS = 2 * PANEL_BLOCK, /* terms of a weight's gradient that are packed at a time */
  WEIGHT_WIDE = 16 * PANEL        /* least columns for which copying the left factor pays */
};

/* A task packs PACK_WIDE columns of a block of b. */
static void pack_task(void *context, size_t task, size_t worker) {
  const product_job *job = context;
  const size_t across = divide_up(job->columns, PACK_WIDE), p = task / across * PANEL_BLOCK;
  const size_t from = task % across * PACK_WIDE, until = smaller(job->columns, from + PACK_WIDE);
  const int transposed = job->form == FORWARD;
  (void)worker;
  pack_block(&job->right, job->b, transposed ? 1 : job->columns, transposed ? job->n : 1, p, from,
             until);
}

/* Packs all of b. */
static void pack_all(cpu *c, product_job *job) {
  pool_run(c->pool, pack_task, job,
           divide_up(job->columns, PACK_WIDE) * divide_up(job->n, PANEL_BLOCK));
}

/* Into how many tasks to divide so many multiplications: enough for some threads, but each task
 * long against the microsecond that handing it out takes. */
static size_t tasks_worth(double multiplications) {
  const double small = multiplications / (1 << 19), large = multiplications / (1 << 25);
  return (size_t)fmax(1, fmax(fmin(small, 16), large));
}

static double multiplications(const product_job *job) {
  return (double)job->rows * (double)job->columns * (double)job->n;
}

/* Halves the parts, rows first, until there are enough tasks or smaller parts would be too small
 * for OpenBLAS. */
static void cut_blas(product_job *job) {
  const size_t wanted = tasks_worth(multiplications(job));
  job->high = job->rows;
  job->wide = job->columns;
  while (divide_up(job->rows, job->high) * divide_up(job->columns, job->wide) < wanted) {
    if (job->high >= 2 * BLAS_HIGH)
      job->high = round_up(divide_up(job->high, 2), 24);
    else if (job->wide >= 2 * BLAS_WIDE)
      job->wide = round_up(divide_up(job->wide, 2), 32);
    else
      return;
  }
}

/* With few rows the time goes into reading b: so mostly the columns are divided, into more tasks
 * than the multiplications alone would be worth. */
static void cut_dot(product_job *job) {
  job->high = smaller(DOT_HIGH, job->rows);
  const size_t down = divide_up(job->rows, job->high), tasks = tasks_worth(multiplications(job));
  job->wide = round_up(divide_up(job->columns, larger(1, divide_up(4 * tasks, down))), 8);
}

/* Whether the product packs b. */
static int packs(const cpu *c, const product_job *job) {
  const size_t least = job->form == WEIGHT ? WEIGHT_LEAST : PACKED_LEAST;
  const size_t n = job->form == WEIGHT ? smaller(job->n, WEIGHT_TERMS) : job->n;
  return !c->blas && job->form != DOT && job->rows >= least &&
         panels_numbers(n, job->columns) <= PACKED_MOST;
}

/* Divides the rows of c, into parts of a whole block of the left factor where they are about as
 * high (a few rows beyond a block would read all panels again); for the gradient of a weight, which
 * has few rows, into a multiple of four parts where they are not too low, and the columns too. */
static void cut_packed(product_job *job) {
  job->wide = job->columns;
  if (job->form == WEIGHT) {
    const size_t parts = round_up(divide_up(job->rows, LEFT_HIGH), 4), most = job->rows / 24;
    job->high = round_up(divide_up(job->rows, larger(1, smaller(parts, most))), PANEL_ROWS);
    const size_t down = divide_up(job->rows, job->high), tasks = tasks_worth(multiplications(job));
    job->wide =
        larger(WEIGHT_WIDE, round_up(divide_up(job->columns, divide_up(tasks, down)), PANEL));
  } else {
    const size_t high = round_up(divide_up(job->rows, 16), PANEL_ROWS);
    job->high = high < LEFT_HIGH ? high : smaller(PACKED_HIGH, high / LEFT_HIGH * LEFT_HIGH);
  }
}

/* Packs b, then computes c; both in tasks. The terms of a weight's gradient are the rows of a whole
 * batch: they are taken WEIGHT_TERMS at a time, so that what was packed is still in a cache when it
 * is read. That is a multiple of PANEL_BLOCK, so the sums are those of all terms at once. */
static void run_packed(cpu *c, product_job *job) {
  const size_t n = job->n, at_once = job->form == WEIGHT ? smaller(n, WEIGHT_TERMS) : n;
  const size_t numbers = panels_numbers(at_once, job->columns);
  if (!cpu_reserve_packed(c, numbers * sizeof(REAL)) || !cpu_reserve(c, LEFT * sizeof(REAL), 0))
    return;
  cut_packed(job);
  for (size_t p = 0; p < n; p += at_once) {
    job->n = smaller(at_once, n - p);
    job->right = (panels){.data = c->packed, .n = job->n, .columns = job->columns};
    pack_all(c, job);
    pool_run(c->pool, product_task, job,
             divide_up(job->rows, job->high) * divide_up(job->columns, job->wide));
    job->a += job->n * job->rows;
    job->b += job->n * job->columns;
    job->add = 1;
  }
}

static void run_product(cpu *c, product_job *job) {
  job->owner = c;
  if (cpu_failed(c) || job->rows == 0 || job->columns == 0) return;
  if (packs(c, job)) {
    run_packed(c, job);
    return;
  }
  if (job->form == DOT)
    cut_dot(job);
  else if (cpu_reserve_blas(c))
    cut_blas(job);
  else
    return;
  pool_run(c->pool, product_task, job,
           divide_up(job->rows, job->high) * divide_up(job->columns, job->wide));
}

static void cpu_product(backend *b, void *out, const void *in, const void *weight, size_t rows,
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

static void cpu_product_backward_input(backend *b, void *din, const void *dout, const void *weight,
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

static void cpu_product_backward_weight(backend *b, void *dweight, const void *dout, const void *in,
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

/* --- weights packed before --- */

static size_t cpu_packed_numbers(const backend *b, size_t m, size_t k) {
  size_t numbers;
  (void)b;
  if (m > SIZE_MAX - PANEL || __builtin_mul_overflow(round_up(m, PANEL), k, &numbers))
    return SIZE_MAX;
  return numbers;
}

static void cpu_pack(backend *b, void *packed, const void *weight, size_t m, size_t k) {
  cpu *c = (cpu *)b;
  product_job job = {.form = FORWARD,
                     .b = weight,
                     .columns = m,
                     .n = k,
                     .right = {.data = packed, .n = k, .columns = m},
                     .owner = c};
  if (!cpu_failed(c)) pack_all(c, &job);
}

/* Divides the columns where all rows fit one block of the left factor, else the rows. */
static void cut_prepacked(product_job *job) {
  if (job->rows > LEFT_HIGH) {
    cut_packed(job);
    return;
  }
  job->high = job->rows;
  job->wide = larger(PREPACKED_WIDE,
                     round_up(divide_up(job->columns, tasks_worth(multiplications(job))), PANEL));
}

static void cpu_product_packed(backend *b, void *out, const void *in, const void *weight,
                               const void *packed, size_t rows, size_t m, size_t k, int flags) {
  cpu *c = (cpu *)b;
  if (c->blas && !(flags & PRODUCT_ROW_BY_ROW)) {
    cpu_product(b, out, in, weight, rows, m, k, flags);
    return;
  }
  product_job job = {.form = FORWARD,
                     .a = in,
                     .c = out,
                     .rows = rows,
                     .columns = m,
                     .n = k,
                     .add = flags & PRODUCT_ADD,
                     .right = {.data = (REAL *)packed, .n = k, .columns = m},
                     .owner = c};
  if (rows == 0 || m == 0 || !cpu_reserve(c, LEFT * sizeof(REAL), 0)) return;
  cut_prepacked(&job);
  pool_run(c->pool, product_task, &job, divide_up(rows, job.high) * divide_up(m, job.wide));
}
