/* Attention heads before attention: the norm of queries and keys and their rotary embedding (RoPE).
 * A task is some rows (rows.h); kernels_rows.h has the arithmetic of a head, shared with CUDA. Part
 * of template.c, compiled once per number type and instruction set. */

static void cpu_rotary_table(backend *b, void *cosine, void *sine, size_t positions, size_t dim,
                             double theta, rotary_scaling scaling) {
  if (cpu_failed((cpu *)b)) return;
  const size_t half = dim / 2;
  for (size_t i = 0; i < half; ++i) {
    const double speed = rotary_speed(theta, scaling, i, dim);
    for (size_t p = 0; p < positions; ++p) {
      ((REAL *)cosine)[p * half + i] = (REAL)cos((double)p * speed);
      ((REAL *)sine)[p * half + i] = (REAL)sin((double)p * speed);
    }
  }
}

static void heads_task(void *context, size_t task, size_t worker) {
  const row_job *job = context;
  const head_shape s = job->shape;
  const kernel_group g = {0};
  (void)worker;
  for (size_t r = task * job->chunk; r < last_row(job, task); ++r) {
    const size_t at = (size_t)job->index[r] * (s.dim / 2);
    const REAL *in = (const REAL *)job->a + r * qkv_width(s);
    REAL *out = (REAL *)job->out + r * qk_width(s);
    REAL *rstd = (REAL *)job->out2 + r * (s.q + s.kv);
    for (size_t h = 0; h < s.q + s.kv && job->b == NULL; ++h)
      row_rotate(g, out + h * s.dim, in + h * s.dim, (const REAL *)job->cosine + at,
                 (const REAL *)job->sine + at, 1, s.dim);
    for (size_t h = 0; h < s.q + s.kv && job->b != NULL; ++h)
      rstd[h] = row_head(g, out + h * s.dim, in + h * s.dim, h < s.q ? job->b : job->c,
                         (const REAL *)job->cosine + at, (const REAL *)job->sine + at, s.dim,
                         (REAL)job->eps);
  }
}

static void cpu_heads(backend *b, void *qk, void *rstd, const void *qkv, const void *q_weight,
                      const void *k_weight, const void *cosine, const void *sine,
                      const int32_t *position, size_t rows, head_shape shape, double eps) {
  cpu *c = (cpu *)b;
  assert(shape.dim % 2 == 0);
  row_job job = {.out = qk,
                 .out2 = rstd,
                 .a = qkv,
                 .b = q_weight,
                 .c = k_weight,
                 .cosine = cosine,
                 .sine = sine,
                 .index = position,
                 .rows = rows,
                 .chunk = rows_per_task(2 * qk_width(shape)),
                 .shape = shape,
                 .eps = eps,
                 .owner = c};
  if (!cpu_failed(c)) run_rows(&job, heads_task);
}

/* heads_backward without a norm. */
static void unrotate_task(void *context, size_t task, size_t worker) {
  const row_job *job = context;
  const head_shape s = job->shape;
  const kernel_group g = {0};
  (void)worker;
  for (size_t r = task * job->chunk; r < last_row(job, task); ++r) {
    const size_t at = (size_t)job->index[r] * (s.dim / 2);
    for (size_t h = 0; h < s.q + s.kv; ++h)
      row_rotate(g, (REAL *)job->out + r * qkv_width(s) + h * s.dim,
                 (const REAL *)job->a + r * qk_width(s) + h * s.dim, (const REAL *)job->cosine + at,
                 (const REAL *)job->sine + at, -1, s.dim);
  }
}

static void heads_backward_task(void *context, size_t task, size_t worker) {
  const row_job *job = context;
  const head_shape s = job->shape;
  const kernel_group g = {0};
  const REAL *const *const weights = (const REAL *const *)job->b;
  const REAL *const rstd = job->c;
  REAL *part = (REAL *)job->owner->shared + task * 2 * s.dim;
  (void)worker;
  memset(part, 0, 2 * s.dim * sizeof *part);
  for (size_t r = task * job->chunk; r < last_row(job, task); ++r) {
    const size_t at = (size_t)job->index[r] * (s.dim / 2);
    for (size_t h = 0; h < s.q + s.kv; ++h) {
      const size_t key = h >= s.q;
      row_head_backward(g, (REAL *)job->out + r * qkv_width(s) + h * s.dim, part + key * s.dim,
                        (const REAL *)job->a + r * qk_width(s) + h * s.dim,
                        (const REAL *)job->d + r * qkv_width(s) + h * s.dim,
                        rstd[r * (s.q + s.kv) + h], weights[key], (const REAL *)job->cosine + at,
                        (const REAL *)job->sine + at, s.dim);
    }
  }
}

static void cpu_heads_backward(backend *b, void *dqkv, void *dq_weight, void *dk_weight,
                               const void *dqk, const void *qkv, const void *rstd,
                               const void *q_weight, const void *k_weight, const void *cosine,
                               const void *sine, const int32_t *position, size_t rows,
                               head_shape shape) {
  cpu *c = (cpu *)b;
  assert(shape.dim % 2 == 0);
  const REAL *const weights[2] = {q_weight, k_weight};
  row_job job = {.out = dqkv,
                 .a = dqk,
                 .b = weights,
                 .c = rstd,
                 .d = qkv,
                 .cosine = cosine,
                 .sine = sine,
                 .index = position,
                 .rows = rows,
                 .chunk = gathering_rows(rows, 4 * qk_width(shape)),
                 .shape = shape,
                 .owner = c};
  if (q_weight == NULL) {
    if (!cpu_failed(c)) run_rows(&job, unrotate_task);
    return;
  }
  const size_t tasks = divide_up(rows, job.chunk), width = 2 * shape.dim;
  if (!cpu_reserve(c, 0, tasks * width * sizeof(REAL))) return;
  run_rows(&job, heads_backward_task);
  for (size_t t = 0; t < tasks; ++t) {
    add_task_parts(dq_weight, (REAL *)c->shared + t * width, 1, shape.dim);
    add_task_parts(dk_weight, (REAL *)c->shared + t * width + shape.dim, 1, shape.dim);
  }
}
