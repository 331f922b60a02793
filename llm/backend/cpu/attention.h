/* Attention of packed sequences, forward and backward. Part of the template body.h, compiled once
 * for every number type and instruction set.
 *
 * A task is one key/value head of one sequence, with the query heads that read it. It packs the
 * sequence's keys and values once (panels.h); then QUERIES query rows at a time are multiplied with
 * all keys up to the block's last row, so only the scores of one block are ever held. The scores,
 * softmax and weighted sum of values of a row are summed in an order that depends on the row's
 * position alone: packing does not change a row's bits, and attention over a cache (cache.h) gives
 * the same bits. */

enum { QUERIES = 4 * PANEL_ROWS }; /* query rows whose scores are held at a time */

/* The arrays of attention (to and lse_to are its results) or of attention_backward (dqk and dqkv).
 */

typedef struct attention_job {
  const REAL *qk, *qkv, *out, *dout, *lse;
  REAL *to, *lse_to, *dqk, *dqkv;
  packed_rows rows;
  head_shape shape;
  REAL scale;
  cpu *owner;
} attention_job;

/* What a task works on. */
typedef struct attention_part {
  size_t first, n;         /* the sequence's first row, and how many it has */
  size_t kv, head, end;    /* the key/value head, and its query heads [head, end) */
  size_t q, qk, qkv, dim;  /* numbers in a row of out, of qk, of qkv, in a head */
  const REAL *key, *value; /* the head's, in the sequence's first row of qk and of qkv */
  REAL *scratch;           /* the worker's */
} attention_part;

static attention_part attention_part_of(const attention_job *job, size_t task, size_t worker) {
  const head_shape s = job->shape;
  const size_t kv = task % s.kv, group = s.q / s.kv;
  const int32_t *start = job->rows.start + task / s.kv;
  attention_part p = {.first = (size_t)start[0],
                      .n = (size_t)(start[1] - start[0]),
                      .kv = kv,
                      .head = kv * group,
                      .end = (kv + 1) * group,
                      .q = q_width(s),
                      .qk = qk_width(s),
                      .qkv = qkv_width(s),
                      .dim = s.dim,
                      .scratch = job->owner->worker[worker]};
  p.key = job->qk + p.first * p.qk + (s.q + kv) * s.dim;
  p.value = job->qkv + p.first * p.qkv + (s.q + s.kv + kv) * s.dim;
  return p;
}

/* Takes n numbers from the front of *scratch. */
static REAL *take(REAL **scratch, size_t n) {
  REAL *at = *scratch;
  *scratch += n;
  return at;
}

/* Packs b(p, j) = b[p * b_row + j * b_column], a right factor [n, columns], into scratch memory. */
static panels packed(REAL **scratch, const REAL *b, size_t b_row, size_t b_column, size_t n,
                     size_t columns) {
  const panels p = {.data = take(scratch, panels_numbers(n, columns)), .n = n, .columns = columns};
  pack_columns(&p, b, b_row, b_column, 0, columns);
  return p;
}

static REAL attention_scale(head_shape s) {
  return (REAL)(1 / sqrt((double)s.dim));
}

/* Softmax of one query's scores in place: the first n of score [width], width a multiple of VECTOR,
 * become weights and the rest zeros. Returns log-sum-exp of the scaled scores. Never inlined, so
 * that packed and cached attention run the same machine code and round alike. */
__attribute__((noinline)) static REAL softmax_row(REAL *score, size_t n, size_t width, REAL scale) {
  const kernel_group g = {0};
  const size_t whole = round_up(n, VECTOR);
  REAL greatest;
  for (size_t j = n; j < whole; ++j) score[j] = (REAL)-INFINITY;
  const REAL sum = row_exponentials(g, score, whole, scale, &greatest), share = 1 / sum;
  SIMD
  for (size_t j = 0; j < whole; ++j) score[j] *= share;
  memset(score + whole, 0, (width - whole) * sizeof *score);
  return scale * greatest + ROW_LOG(sum);
}

static void attention_task(void *context, size_t task, size_t worker) {
  const attention_job *job = context;
  attention_part p = attention_part_of(job, task, worker);
  REAL *rest = p.scratch, *left = take(&rest, LEFT);
  const panels keys = packed(&rest, p.key, 1, p.qk, p.dim, p.n);
  const panels values = packed(&rest, p.value, p.qkv, 1, p.n, p.dim);
  for (size_t h = p.head; h < p.end; ++h)
    for (size_t i = 0; i < p.n; i += QUERIES) {
      const size_t rows = smaller(QUERIES, p.n - i), width = round_up(i + rows, PANEL);
      gemm_panels(job->qk + (p.first + i) * p.qk + h * p.dim, p.qk, 1, &keys, 0, rest, width, rows,
                  width, p.dim, 0, left);
      for (size_t r = 0; r < rows; ++r)
        job->lse_to[(p.first + i + r) * job->shape.q + h] =
            softmax_row(rest + r * width, i + r + 1, width, job->scale);
      gemm_panels(rest, width, 1, &values, 0, job->to + (p.first + i) * p.q + h * p.dim, p.q, rows,
                  p.dim, i + rows, 0, left);
    }
}

/* Numbers of scratch memory of a task for sequences of up to `longest` rows: LEFT, `packings`
 * packed heads of all rows, and `blocks` arrays of QUERIES rows of scores with QUERIES rows of a
 * head. */
static size_t attention_scratch(size_t longest, size_t dim, size_t packings, size_t blocks) {
  const size_t all = larger(panels_numbers(dim, longest), panels_numbers(longest, dim));
  return LEFT + packings * all +
         blocks * QUERIES * (round_up(longest, PANEL) + round_up(dim, PANEL));
}

static void cpu_attention(backend *b, void *out, void *lse, const void *qk, const void *qkv,
                          packed_rows rows, head_shape shape) {
  cpu *c = (cpu *)b;
  assert(head_shape_is_valid(shape));
  attention_job job = {.to = out,
                       .lse_to = lse,
                       .qk = qk,
                       .qkv = qkv,
                       .rows = rows,
                       .shape = shape,
                       .scale = attention_scale(shape),
                       .owner = c};
  const size_t numbers = attention_scratch(rows.longest, shape.dim, 2, 1);
  if (cpu_reserve(c, numbers * sizeof(REAL), 0))
    pool_run(c->pool, attention_task, &job, rows.sequences * shape.kv);
}

/* --- backward: with p the softmax and dp = dO V^T, ds = p (dp - row sum of dO*O) scale --- */

/* Of one query, in place: score [width] becomes p and dp [width] becomes ds, for the first n keys;
 * the rest become zeros. row_dot is the row sum of dO*O. */
static void softmax_row_backward(REAL *restrict score, REAL *restrict dp, size_t n, size_t width,
                                 REAL scale, REAL lse, REAL row_dot) {
  const size_t whole = round_up(n, VECTOR);
  SIMD
  for (size_t j = 0; j < whole; ++j) {
    const REAL p = ROW_EXP(scale * score[j] - lse);
    score[j] = p;
    dp[j] = p * (dp[j] - row_dot) * scale;
  }
  memset(score + n, 0, (width - n) * sizeof *score);
  memset(dp + n, 0, (width - n) * sizeof *dp);
}

/* The sum of a [n] times b [n]: the row sum of dO*O. */
static REAL inner(const REAL *restrict a, const REAL *restrict b, size_t n) {
  REAL sum = 0;
  SIMD_SUM(sum)
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/* A task's packed factors, LEFT numbers of scratch memory, and the scratch memory that is left. */
typedef struct attention_packings {
  panels key, key_transposed, value_transposed;
  REAL *left, *rest;
} attention_packings;

/* The share of query rows [i, i + rows) of head h: their gradients, and what they add to the
 * gradients of the keys and values before them. */
static void attention_backward_block(const attention_job *job, const attention_part *p,
                                     const attention_packings *w, size_t h, size_t i, size_t rows) {
  const size_t width = round_up(i + rows, PANEL), at = p->first + i, dim = p->dim;
  REAL *rest = w->rest, *score = take(&rest, rows * width), *ds = take(&rest, rows * width);
  const REAL *query = job->qk + at * p->qk + h * dim, *dout = job->dout + at * p->q + h * dim;
  const REAL *out = job->out + at * p->q + h * dim;
  gemm_panels(query, p->qk, 1, &w->key_transposed, 0, score, width, rows, width, dim, 0, w->left);
  gemm_panels(dout, p->q, 1, &w->value_transposed, 0, ds, width, rows, width, dim, 0, w->left);
  for (size_t r = 0; r < rows; ++r)
    softmax_row_backward(score + r * width, ds + r * width, i + r + 1, width, job->scale,
                         job->lse[(at + r) * job->shape.q + h],
                         inner(dout + r * p->q, out + r * p->q, dim));
  gemm_panels(ds, width, 1, &w->key, 0, job->dqk + at * p->qk + h * dim, p->qk, rows, dim, i + rows,
              0, w->left);
  const panels queries = packed(&rest, query, p->qk, 1, rows, dim);
  gemm_panels(ds, 1, width, &queries, 0, job->dqk + p->first * p->qk + (job->shape.q + p->kv) * dim,
              p->qk, i + rows, dim, rows, 1, w->left);
  pack_columns(&queries, dout, p->q, 1, 0, dim);
  gemm_panels(score, 1, width, &queries, 0,
              job->dqkv + p->first * p->qkv + (job->shape.q + job->shape.kv + p->kv) * dim, p->qkv,
              i + rows, dim, rows, 1, w->left);
}

static void attention_backward_task(void *context, size_t task, size_t worker) {
  const attention_job *job = context;
  const head_shape s = job->shape;
  const attention_part p = attention_part_of(job, task, worker);
  attention_packings w = {.rest = p.scratch};
  w.left = take(&w.rest, LEFT);
  w.key = packed(&w.rest, p.key, p.qk, 1, p.n, p.dim);
  w.key_transposed = packed(&w.rest, p.key, 1, p.qk, p.dim, p.n);
  w.value_transposed = packed(&w.rest, p.value, 1, p.qkv, p.dim, p.n);
  for (size_t r = p.first; r < p.first + p.n; ++r) {
    memset(job->dqk + r * p.qk + (s.q + p.kv) * s.dim, 0, s.dim * sizeof(REAL));
    memset(job->dqkv + r * p.qkv + (s.q + s.kv + p.kv) * s.dim, 0, s.dim * sizeof(REAL));
  }
  for (size_t h = p.head; h < p.end; ++h)
    for (size_t i = 0; i < p.n; i += QUERIES)
      attention_backward_block(job, &p, &w, h, i, smaller(QUERIES, p.n - i));
}

static void cpu_attention_backward(backend *b, void *dqk, void *dqkv, const void *dout,
                                   const void *out, const void *lse, const void *qk,
                                   const void *qkv, packed_rows rows, head_shape shape) {
  cpu *c = (cpu *)b;
  assert(head_shape_is_valid(shape));
  attention_job job = {.dqk = dqk,
                       .dqkv = dqkv,
                       .dout = dout,
                       .out = out,
                       .lse = lse,
                       .qk = qk,
                       .qkv = qkv,
                       .rows = rows,
                       .shape = shape,
                       .scale = attention_scale(shape),
                       .owner = c};
  const size_t numbers = attention_scratch(rows.longest, shape.dim, 3, 3);
  if (cpu_reserve(c, numbers * sizeof(REAL), 0))
    pool_run(c->pool, attention_backward_task, &job, rows.sequences * shape.kv);
}
