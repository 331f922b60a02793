/* Attention. Part of backend_cpu_body.h.
 *
 * A task is a sequence and a key/value head with the query heads that read it; queries go in blocks
 * of rows against all keys up to the block's last, scores of one block being held at a time.
 * Each row's scores, softmax and mean of values are computed in an order that depends on its
 * position alone, so packing does not change a row, and one row against a cache gives the same. */

typedef struct attention_job {
  const REAL *qk, *qkv, *out, *dout, *lse;
  REAL *to, *lse_to, *dqk, *dqkv;
  const REAL *cache_k, *cache_v;
  const int32_t *slot, *position;
  size_t capacity;
  packed_rows rows;
  head_shape shape;
  size_t block; /* queries at a time */
  REAL scale;
  cpu *owner;
} attention_job;

/* Multiples of both register tiles' rows. */
static size_t query_block(size_t longest) {
  return longest <= 128 ? 24 : 72;
}

static REAL attention_scale(head_shape s) {
  return (REAL)(1 / sqrt((double)s.dim));
}

/* Scores of one query, n of them, to the softmax's weights, zero up to `width`; returns lse. */
static REAL weigh(REAL *score, size_t n, size_t width, REAL scale) {
  const kernel_group g = {0};
  REAL greatest;
  const REAL sum = row_exponentials(g, score, n, scale, &greatest);
  const REAL share = 1 / sum;
  SIMD
  for (size_t j = 0; j < n; ++j) score[j] *= share;
  memset(score + n, 0, (width - n) * sizeof *score);
  return scale * greatest + (REAL)log((double)sum);
}

static void attention_task(void *context, size_t task, size_t worker) {
  const attention_job *job = context;
  const head_shape s = job->shape;
  const size_t sequence = task / s.kv, kv = task % s.kv, group = s.q / s.kv;
  const size_t first = (size_t)job->rows.start[sequence];
  const size_t n = (size_t)job->rows.start[sequence + 1] - first;
  REAL *const scratch = job->owner->worker[worker], *const score = scratch + OUTER_SCRATCH;
  const REAL *key = job->qk + first * qk_width(s) + (s.q + kv) * s.dim;
  const REAL *value = job->qkv + first * qkv_width(s) + (s.q + s.kv + kv) * s.dim;
  for (size_t h = kv * group; h < (kv + 1) * group; ++h)
    for (size_t i = 0; i < n; i += job->block) {
      const size_t rows = smaller(job->block, n - i), keys = i + rows;
      gemm_dot(job->qk + (first + i) * qk_width(s) + h * s.dim, qk_width(s), key, qk_width(s),
               score, keys, rows, keys, s.dim, 0);
      for (size_t r = 0; r < rows; ++r)
        job->lse_to[(first + i + r) * s.q + h] =
            weigh(score + r * keys, i + r + 1, keys, job->scale);
      gemm_outer(score, keys, 1, value, qkv_width(s),
                 job->to + (first + i) * q_width(s) + h * s.dim, q_width(s), rows, s.dim, keys, 0,
                 scratch);
    }
}

static void attention(backend *b, void *out, void *lse, const void *qk, const void *qkv,
                      packed_rows rows, head_shape shape) {
  cpu *c = (cpu *)b;
  attention_job job = {.to = out,
                       .lse_to = lse,
                       .qk = qk,
                       .qkv = qkv,
                       .rows = rows,
                       .shape = shape,
                       .block = query_block(rows.longest),
                       .scale = attention_scale(shape),
                       .owner = c};
  const size_t numbers = OUTER_SCRATCH + job.block * rows.longest;
  if (cpu_reserve(c, numbers * sizeof(REAL), 0))
    pool_run(c->pool, attention_task, &job, rows.sequences * shape.kv);
}

/* --- backward: with p the softmax, dp = dout value^T, ds = p (dp - dout . out) scale --- */

/* Scores and dp of one query to p and ds. */
static void weigh_backward(REAL *restrict score, REAL *restrict dp, size_t n, size_t width,
                           REAL scale, REAL lse, REAL along) {
  SIMD
  for (size_t j = 0; j < n; ++j) {
    const REAL p = ROW_EXP(scale * score[j] - lse);
    score[j] = p;
    dp[j] = p * (dp[j] - along) * scale;
  }
  memset(score + n, 0, (width - n) * sizeof *score);
  memset(dp + n, 0, (width - n) * sizeof *dp);
}

static REAL inner(const REAL *restrict a, const REAL *restrict b, size_t n) {
  REAL sum = 0;
  SIMD_SUM(sum)
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/* Query rows [i, i + rows) of head h of the sequence that begins at row `first`. */
static void attention_backward_block(const attention_job *job, size_t first, size_t kv, size_t h,
                                     size_t i, size_t rows, REAL *scratch) {
  const head_shape s = job->shape;
  const size_t keys = i + rows, qk = qk_width(s), qkv = qkv_width(s), q = q_width(s);
  REAL *const score = scratch + OUTER_SCRATCH, *const ds = score + rows * keys;
  const REAL *query = job->qk + (first + i) * qk + h * s.dim;
  const REAL *key = job->qk + first * qk + (s.q + kv) * s.dim;
  const REAL *value = job->qkv + first * qkv + (s.q + s.kv + kv) * s.dim;
  const REAL *dout = job->dout + (first + i) * q + h * s.dim;
  const REAL *out = job->out + (first + i) * q + h * s.dim;
  gemm_dot(query, qk, key, qk, score, keys, rows, keys, s.dim, 0);
  gemm_dot(dout, q, value, qkv, ds, keys, rows, keys, s.dim, 0);
  for (size_t r = 0; r < rows; ++r)
    weigh_backward(score + r * keys, ds + r * keys, i + r + 1, keys, job->scale,
                   job->lse[(first + i + r) * s.q + h], inner(dout + r * q, out + r * q, s.dim));
  gemm_outer(ds, keys, 1, key, qk, job->dqk + (first + i) * qk + h * s.dim, qk, rows, s.dim, keys,
             0, scratch);
  gemm_outer(ds, 1, keys, query, qk, job->dqk + first * qk + (s.q + kv) * s.dim, qk, keys, s.dim,
             rows, 1, scratch);
  gemm_outer(score, 1, keys, dout, q, job->dqkv + first * qkv + (s.q + s.kv + kv) * s.dim, qkv,
             keys, s.dim, rows, 1, scratch);
}

static void attention_backward_task(void *context, size_t task, size_t worker) {
  const attention_job *job = context;
  const head_shape s = job->shape;
  const size_t sequence = task / s.kv, kv = task % s.kv, group = s.q / s.kv;
  const size_t first = (size_t)job->rows.start[sequence];
  const size_t last = (size_t)job->rows.start[sequence + 1];
  for (size_t r = first; r < last; ++r) {
    memset(job->dqk + r * qk_width(s) + (s.q + kv) * s.dim, 0, s.dim * sizeof(REAL));
    memset(job->dqkv + r * qkv_width(s) + (s.q + s.kv + kv) * s.dim, 0, s.dim * sizeof(REAL));
  }
  for (size_t h = kv * group; h < (kv + 1) * group; ++h)
    for (size_t r = first; r < last; r += job->block)
      attention_backward_block(job, first, kv, h, r - first, smaller(job->block, last - r),
                               job->owner->worker[worker]);
}

static void attention_backward(backend *b, void *dqk, void *dqkv, const void *dout, const void *out,
                               const void *lse, const void *qk, const void *qkv, packed_rows rows,
                               head_shape shape) {
  cpu *c = (cpu *)b;
  attention_job job = {.dqk = dqk,
                       .dqkv = dqkv,
                       .dout = dout,
                       .out = out,
                       .lse = lse,
                       .qk = qk,
                       .qkv = qkv,
                       .rows = rows,
                       .shape = shape,
                       .block = query_block(rows.longest),
                       .scale = attention_scale(shape),
                       .owner = c};
  const size_t numbers = OUTER_SCRATCH + 2 * job.block * rows.longest;
  if (cpu_reserve(c, numbers * sizeof(REAL), 0))
    pool_run(c->pool, attention_backward_task, &job, rows.sequences * shape.kv);
}

/* --- against a cache --- */

static void cached_task(void *context, size_t task, size_t worker) {
  const attention_job *job = context;
  const head_shape s = job->shape;
  const size_t r = task / s.kv, kv = task % s.kv, group = s.q / s.kv;
  const size_t n = (size_t)job->position[r] + 1, width = s.kv * s.dim;
  const size_t at = (size_t)job->slot[r] * job->capacity * width + kv * s.dim;
  REAL *const scratch = job->owner->worker[worker], *const score = scratch + OUTER_SCRATCH;
  gemm_dot(job->qk + r * qk_width(s) + kv * group * s.dim, s.dim, job->cache_k + at, width, score,
           n, group, n, s.dim, 0);
  for (size_t h = 0; h < group; ++h) weigh(score + h * n, n, n, job->scale);
  gemm_outer(score, n, 1, job->cache_v + at, width, job->to + r * q_width(s) + kv * group * s.dim,
             s.dim, group, s.dim, n, 0, scratch);
}

static void attention_cached(backend *b, void *out, const void *qk, const void *cache_k,
                             const void *cache_v, const int32_t *slot, const int32_t *position,
                             size_t rows, size_t capacity, head_shape shape) {
  cpu *c = (cpu *)b;
  attention_job job = {.to = out,
                       .qk = qk,
                       .cache_k = cache_k,
                       .cache_v = cache_v,
                       .slot = slot,
                       .position = position,
                       .capacity = capacity,
                       .shape = shape,
                       .scale = attention_scale(shape),
                       .owner = c};
  const size_t numbers = OUTER_SCRATCH + shape.q / shape.kv * capacity;
  if (cpu_reserve(c, numbers * sizeof(REAL), 0))
    pool_run(c->pool, cached_task, &job, rows * shape.kv);
}
