/* Attention over packed sequences, forward and backward. Part of template.c, compiled once
 * per number type and instruction set.
 *
 * A task is one key/value head of one sequence, with the query heads that read it. It packs the
 * sequence's keys and values once (product.h). Then it multiplies QUERIES query rows at a time with
 * all keys up to the block's last row, so only the scores of one block are stored. A row's sums
 * (scores, softmax, weighted values) have an order that depends only on the row's position. So
 * packing does not change a row's bits, and attention over a cache (below) gives the same bits.
 *
 * If sequences share prefixes (backend.h) a task first collects the keys and values of all
 * positions of its sequence, and computes queries only for the sequence's own rows. In the backward
 * one task processes the sequences of a tree in order, so that their contributions to the gradients
 * of shared keys and values are added in that order. */

enum { QUERIES = 4 * PANEL_ROWS }; /* query rows whose scores are stored at a time */

/* The arrays of attention (results: to, lse_to) or of attention_backward (results: dqk, dqkv).
 * shared.trees is 0 if no prefixes are shared. */

typedef struct attention_job {
  const REAL *qk, *qkv, *out, *dout, *lse;
  REAL *to, *lse_to, *dqk, *dqkv;
  packed_rows rows;
  shared_rows shared;
  head_shape shape;
  REAL scale;
  cpu *owner;
} attention_job;

/* A head's columns of a matrix: the number at column c of row r is at[r * step + c]. */
typedef struct head_rows {
  REAL *at;
  size_t step;
} head_rows;

/* One key/value head of one sequence. Positions [before, n) are the sequence's own, stored in rows
 * from `first` on. */
typedef struct attention_part {
  size_t first, before, n;
  size_t kv, head, end;        /* the key/value head, and its query heads [head, end) */
  size_t q, qk, qkv, dim;      /* numbers in a row of out, of qk, of qkv; in a head */
  const REAL *key, *value;     /* at position 0 */
  size_t key_step, value_step; /* distance between positions */
  REAL *scratch;               /* unused rest of the worker's scratch memory */
} attention_part;

/* Takes n numbers from the front of *scratch. */
static REAL *take_scratch(REAL **scratch, size_t n) {
  REAL *at = *scratch;
  *scratch += n;
  return at;
}

/* Size of n positions of one head, stored contiguously and rounded up for alignment. */
static size_t collected_numbers(size_t n, size_t dim) {
  return round_up_to(n * dim, PANEL);
}

/* A run of a sequence's positions in adjacent rows. */
typedef struct position_run {
  size_t sequence; /* the sequence that owns the rows */
  size_t first, n; /* positions [first, first + n) */
  size_t row;      /* row of position `first` */
} position_run;

static size_t rows_before(const attention_job *job, size_t s) {
  return job->shared.trees > 0 ? (size_t)job->shared.before[s] : 0;
}

static size_t own_rows(const attention_job *job, size_t s) {
  return (size_t)(job->rows.start[s + 1] - job->rows.start[s]);
}

/* The last run of rows among positions [0, end) of sequence s, where end > 0. */
static position_run last_run(const attention_job *job, size_t s, size_t end) {
  size_t before = rows_before(job, s);
  while (before >= end) {
    s = (size_t)job->shared.parent[s];
    before = rows_before(job, s);
  }
  return (position_run){s, before, end - before, (size_t)job->rows.start[s]};
}

/* Copies a head's numbers at positions [0, n) of sequence s to contiguous memory. */
static void collect_rows(const attention_job *job, size_t s, size_t n, REAL *to, const REAL *matrix,
                         size_t step, size_t dim) {
  while (n > 0) {
    const position_run run = last_run(job, s, n);
    for (size_t i = 0; i < run.n; ++i)
      memcpy(to + (run.first + i) * dim, matrix + (run.row + i) * step, dim * sizeof *to);
    s = run.sequence;
    n = run.first;
  }
}

/* The reverse of collect_rows: adds the numbers of positions [0, n), contiguous at `from`, to their
 * rows of the matrix. */
static void add_back(const attention_job *job, size_t s, size_t n, REAL *matrix, size_t step,
                     const REAL *from, size_t dim) {
  while (n > 0) {
    const position_run run = last_run(job, s, n);
    for (size_t i = 0; i < run.n; ++i)
      for (size_t k = 0; k < dim; ++k)
        matrix[(run.row + i) * step + k] += from[(run.first + i) * dim + k];
    s = run.sequence;
    n = run.first;
  }
}

/* First column of the head's keys in qk; below, of its values in qkv. */
static size_t key_column(head_shape s, size_t kv) {
  return (s.q + kv) * s.dim;
}

static size_t value_column(head_shape s, size_t kv) {
  return (s.q + s.kv + kv) * s.dim;
}

static attention_part attention_part_of(const attention_job *job, size_t sequence, size_t kv,
                                        size_t worker) {
  const head_shape s = job->shape;
  const size_t group = s.q / s.kv, before = rows_before(job, sequence);
  attention_part p = {.first = (size_t)job->rows.start[sequence],
                      .before = before,
                      .n = before + own_rows(job, sequence),
                      .kv = kv,
                      .head = kv * group,
                      .end = (kv + 1) * group,
                      .q = q_width(s),
                      .qk = qk_width(s),
                      .qkv = qkv_width(s),
                      .dim = s.dim,
                      .scratch = job->owner->worker[worker]};
  const REAL *keys = job->qk + key_column(s, kv), *values = job->qkv + value_column(s, kv);
  p.key = keys + p.first * p.qk;
  p.value = values + p.first * p.qkv;
  p.key_step = p.qk;
  p.value_step = p.qkv;
  if (before == 0) return p;
  REAL *key = take_scratch(&p.scratch, collected_numbers(p.n, s.dim)),
       *value = take_scratch(&p.scratch, collected_numbers(p.n, s.dim));
  collect_rows(job, sequence, p.n, key, keys, p.qk, s.dim);
  collect_rows(job, sequence, p.n, value, values, p.qkv, s.dim);
  p.key = key;
  p.value = value;
  p.key_step = p.value_step = s.dim;
  return p;
}

/* Packs b(p, j) = b[p * b_row + j * b_column], a right factor [n, columns], into scratch memory. */
static panels packed(REAL **scratch, const REAL *b, size_t b_row, size_t b_column, size_t n,
                     size_t columns) {
  const panels p = {
      .data = take_scratch(scratch, panels_numbers(n, columns)), .n = n, .columns = columns};
  pack_columns(&p, b, b_row, b_column, 0, columns);
  return p;
}

static REAL attention_scale(head_shape s) {
  return (REAL)(1 / sqrt((double)s.dim));
}

/* Softmax of one query's scores in place: the first n of score [width], width a multiple of VECTOR,
 * become weights, the others zeros. Returns the log-sum-exp of the scaled scores. Never inlined, so
 * that packed and cached attention run the same machine code and round alike. */
__attribute__((noinline)) static REAL softmax_row(REAL *score, size_t n, size_t width, REAL scale) {
  const kernel_group g = {0};
  const size_t whole = round_up_to(n, VECTOR);
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
  const attention_part p =
      attention_part_of(job, task / job->shape.kv, task % job->shape.kv, worker);
  REAL *rest = p.scratch, *left = take_scratch(&rest, LEFT);
  const panels keys = packed(&rest, p.key, 1, p.key_step, p.dim, p.n);
  const panels values = packed(&rest, p.value, p.value_step, 1, p.n, p.dim);
  for (size_t h = p.head; h < p.end; ++h)
    for (size_t i = p.before; i < p.n; i += QUERIES) {
      const size_t rows = smaller(QUERIES, p.n - i), width = round_up_to(i + rows, PANEL);
      const size_t at = p.first + i - p.before;
      gemm_panels(job->qk + at * p.qk + h * p.dim, p.qk, 1, &keys, 0, rest, width, rows, width,
                  p.dim, 0, left);
      for (size_t r = 0; r < rows; ++r)
        job->lse_to[(at + r) * job->shape.q + h] =
            softmax_row(rest + r * width, i + r + 1, width, job->scale);
      gemm_panels(rest, width, 1, &values, 0, job->to + at * p.q + h * p.dim, p.q, rows, p.dim,
                  i + rows, 0, left);
    }
}

/* Scratch memory of a task for sequences of up to `longest` positions, in numbers: LEFT; `packings`
 * packed heads of all positions; `blocks` arrays of QUERIES rows of scores and of a head; and, if
 * prefixes are shared, `collected` heads of all positions. */
static size_t attention_scratch(size_t longest, size_t dim, size_t packings, size_t blocks,
                                size_t collected) {
  const size_t all = larger(panels_numbers(dim, longest), panels_numbers(longest, dim));
  return LEFT + packings * all + collected * collected_numbers(longest, dim) +
         blocks * QUERIES * (round_up_to(longest, PANEL) + round_up_to(dim, PANEL));
}

static void cpu_attention_shared(backend *b, void *out, void *lse, const void *qk, const void *qkv,
                                 packed_rows rows, shared_rows shared, head_shape shape) {
  cpu *c = (cpu *)b;
  assert(head_shape_is_valid(shape));
  attention_job job = {.to = out,
                       .lse_to = lse,
                       .qk = qk,
                       .qkv = qkv,
                       .rows = rows,
                       .shared = shared,
                       .shape = shape,
                       .scale = attention_scale(shape),
                       .owner = c};
  const size_t numbers = attention_scratch(rows.longest, shape.dim, 2, 1, shared.trees > 0 ? 2 : 0);
  if (cpu_reserve(c, numbers * sizeof(REAL), 0))
    pool_run(c->pool, attention_task, &job, rows.sequences * shape.kv);
}

static void cpu_attention(backend *b, void *out, void *lse, const void *qk, const void *qkv,
                          packed_rows rows, head_shape shape) {
  cpu_attention_shared(b, out, lse, qk, qkv, rows, (shared_rows){0}, shape);
}

/* --- backward: with p the softmax and dp = dO V^T, ds = p (dp - row sum of dO*O) scale --- */

/* For one query, in place: score [width] becomes p and dp [width] becomes ds for the first n keys;
 * the others become zeros. row_dot is the row sum of dO*O. */
static void softmax_row_backward(REAL *restrict score, REAL *restrict dp, size_t n, size_t width,
                                 REAL scale, REAL lse, REAL row_dot) {
  const size_t whole = round_up_to(n, VECTOR);
  SIMD
  for (size_t j = 0; j < whole; ++j) {
    const REAL p = ROW_EXP(scale * score[j] - lse);
    score[j] = p;
    dp[j] = p * (dp[j] - row_dot) * scale;
  }
  memset(score + n, 0, (width - n) * sizeof *score);
  memset(dp + n, 0, (width - n) * sizeof *dp);
}

/* The inner product of a [n] and b [n], for the row sum of dO*O. */
static REAL inner(const REAL *restrict a, const REAL *restrict b, size_t n) {
  REAL sum = 0;
  SIMD_SUM(sum)
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/* A task's packed factors, LEFT numbers of scratch memory, and the unused scratch memory. */
typedef struct attention_packings {
  panels key, key_transposed, value_transposed;
  REAL *left, *rest;
} attention_packings;

/* Processes the queries at positions [i, i + rows) of head h: computes their gradients, and adds
 * their contributions to the gradients of the keys and values up to their positions. dkey and
 * dvalue begin at position 0. */
static void attention_backward_block(const attention_job *job, const attention_part *p,
                                     const attention_packings *w, head_rows dkey, head_rows dvalue,
                                     size_t h, size_t i, size_t rows) {
  const size_t width = round_up_to(i + rows, PANEL), at = p->first + i - p->before, dim = p->dim;
  REAL *rest = w->rest, *score = take_scratch(&rest, rows * width),
       *ds = take_scratch(&rest, rows * width);
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
  gemm_panels(ds, 1, width, &queries, 0, dkey.at, dkey.step, i + rows, dim, rows, 1, w->left);
  pack_columns(&queries, dout, p->q, 1, 0, dim);
  gemm_panels(score, 1, width, &queries, 0, dvalue.at, dvalue.step, i + rows, dim, rows, 1,
              w->left);
}

/* Processes one sequence: the gradients of its queries, and their contributions to those of keys
 * and values. Initialises the gradients of the sequence's own keys and values. */
static void attention_backward_part(const attention_job *job, size_t sequence, size_t kv,
                                    size_t worker) {
  const head_shape s = job->shape;
  attention_part p = attention_part_of(job, sequence, kv, worker);
  REAL *dkeys = job->dqk + key_column(s, kv), *dvalues = job->dqkv + value_column(s, kv);
  head_rows dkey = {dkeys + p.first * p.qk, p.qk}, dvalue = {dvalues + p.first * p.qkv, p.qkv};
  for (size_t i = 0; i < p.n - p.before; ++i) {
    memset(dkey.at + i * dkey.step, 0, s.dim * sizeof(REAL));
    memset(dvalue.at + i * dvalue.step, 0, s.dim * sizeof(REAL));
  }
  if (p.before > 0) {
    dkey = (head_rows){take_scratch(&p.scratch, collected_numbers(p.n, s.dim)), s.dim};
    dvalue = (head_rows){take_scratch(&p.scratch, collected_numbers(p.n, s.dim)), s.dim};
    memset(dkey.at, 0, p.n * s.dim * sizeof(REAL));
    memset(dvalue.at, 0, p.n * s.dim * sizeof(REAL));
  }
  attention_packings w = {.rest = p.scratch};
  w.left = take_scratch(&w.rest, LEFT);
  w.key = packed(&w.rest, p.key, p.key_step, 1, p.n, p.dim);
  w.key_transposed = packed(&w.rest, p.key, 1, p.key_step, p.dim, p.n);
  w.value_transposed = packed(&w.rest, p.value, 1, p.value_step, p.dim, p.n);
  for (size_t h = p.head; h < p.end; ++h)
    for (size_t i = p.before; i < p.n; i += QUERIES)
      attention_backward_block(job, &p, &w, dkey, dvalue, h, i, smaller(QUERIES, p.n - i));
  if (p.before == 0) return;
  add_back(job, sequence, p.n, dkeys, p.qk, dkey.at, s.dim);
  add_back(job, sequence, p.n, dvalues, p.qkv, dvalue.at, s.dim);
}

static void attention_backward_task(void *context, size_t task, size_t worker) {
  const attention_job *job = context;
  const size_t kv = task % job->shape.kv, t = task / job->shape.kv;
  const int shares = job->shared.trees > 0;
  const size_t first = shares ? (size_t)job->shared.tree[t] : t;
  const size_t end = shares ? (size_t)job->shared.tree[t + 1] : t + 1;
  for (size_t sequence = first; sequence < end; ++sequence)
    attention_backward_part(job, sequence, kv, worker);
}

static void cpu_attention_shared_backward(backend *b, void *dqk, void *dqkv, const void *dout,
                                          const void *out, const void *lse, const void *qk,
                                          const void *qkv, packed_rows rows, shared_rows shared,
                                          head_shape shape) {
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
                       .shared = shared,
                       .shape = shape,
                       .scale = attention_scale(shape),
                       .owner = c};
  const size_t numbers = attention_scratch(rows.longest, shape.dim, 3, 3, shared.trees > 0 ? 4 : 0);
  if (cpu_reserve(c, numbers * sizeof(REAL), 0))
    pool_run(c->pool, attention_backward_task, &job,
             (shared.trees > 0 ? shared.trees : rows.sequences) * shape.kv);
}

static void cpu_attention_backward(backend *b, void *dqk, void *dqkv, const void *dout,
                                   const void *out, const void *lse, const void *qk,
                                   const void *qkv, packed_rows rows, head_shape shape) {
  cpu_attention_shared_backward(b, dqk, dqkv, dout, out, lse, qk, qkv, rows, (shared_rows){0},
                                shape);
}

/* --- keys and values of running sequences --- */

/* Attention of one query row over its slot of the cache.
 *
 * Layout of a slot's keys: head after head, each [capacity / PANEL, dim, PANEL], so that the scores
 * of PANEL adjacent positions are computed side by side. The last panel has only the remaining
 * positions. Layout of its values: head after head, each [capacity, dim]. */

/* The arrays of attention_cached (operations.h); `to` is the result, k and v the cache. */
typedef struct cache_job {
  const REAL *qk, *k, *v;
  REAL *to;
  const int32_t *slot, *position;
  size_t capacity;
  head_shape shape;
  REAL scale;
  cpu *owner;
} cache_job;

/* Number of positions of the panel that begins at position `first`. */
static inline size_t cache_panel(size_t capacity, size_t first) {
  return smaller(PANEL, capacity - first);
}

/* The arrays of cache_store (operations.h). No two rows have the same slot and position. */
typedef struct store_job {
  const REAL *qk, *qkv;
  REAL *k, *v;
  const int32_t *slot, *position;
  size_t rows, capacity, chunk; /* chunk: rows per task */
  head_shape shape;
} store_job;

static void store_row(const store_job *job, size_t r) {
  const head_shape s = job->shape;
  const size_t width = s.kv * s.dim, at = (size_t)job->slot[r] * job->capacity * width;
  const size_t place = (size_t)job->position[r], first = place / PANEL * PANEL;
  const size_t wide = cache_panel(job->capacity, first);
  const REAL *key = job->qk + r * qk_width(s) + q_width(s);
  const REAL *value = job->qkv + r * qkv_width(s) + qk_width(s);
  for (size_t h = 0; h < s.kv; ++h) {
    REAL *to = job->k + at + (h * job->capacity + first) * s.dim + place - first;
    for (size_t d = 0; d < s.dim; ++d) to[d * wide] = key[h * s.dim + d];
    memcpy(job->v + at + (h * job->capacity + place) * s.dim, value + h * s.dim,
           s.dim * sizeof(REAL));
  }
}

static void store_task(void *context, size_t task, size_t worker) {
  const store_job *job = context;
  const size_t end = smaller(job->rows, (task + 1) * job->chunk);
  (void)worker;
  for (size_t r = task * job->chunk; r < end; ++r)
    if (job->slot[r] >= 0) store_row(job, r);
}

static void cpu_cache_store(backend *b, void *cache_k, void *cache_v, const void *qk,
                            const void *qkv, const int32_t *slot, const int32_t *position,
                            size_t rows, size_t capacity, head_shape shape) {
  cpu *c = (cpu *)b;
  store_job job = {.qk = qk,
                   .qkv = qkv,
                   .k = cache_k,
                   .v = cache_v,
                   .slot = slot,
                   .position = position,
                   .rows = rows,
                   .capacity = capacity,
                   .chunk = rows_per_task(8 * shape.kv * shape.dim),
                   .shape = shape};
  if (!cpu_failed(c) && rows > 0) pool_run(c->pool, store_task, &job, divide_up(rows, job.chunk));
}

/* Copies whole panels of keys. Positions beyond `length` are overwritten before they are read. */
static void cpu_cache_copy(backend *b, void *cache_k, void *cache_v, size_t from, size_t to,
                           size_t length, size_t capacity, head_shape shape) {
  const size_t width = shape.kv * shape.dim, slot = capacity * width;
  const size_t keys = smaller(capacity, round_up_to(length, PANEL)) * shape.dim;
  for (size_t h = 0; h < shape.kv; ++h) {
    const size_t head = h * capacity * shape.dim;
    cpu_copy(b, (REAL *)cache_k + to * slot + head, (const REAL *)cache_k + from * slot + head,
             keys * sizeof(REAL));
    cpu_copy(b, (REAL *)cache_v + to * slot + head, (const REAL *)cache_v + from * slot + head,
             length * shape.dim * sizeof(REAL));
  }
}

/* --- products of the few query heads that share a key/value head --- */

/* narrow_tile (product.h) for any number of rows and 1 or 2 groups. */
LOOP_INLINE void narrow_rows(const REAL *a, size_t a_row, const REAL *b, size_t b_row, size_t next,
                             REAL *c, size_t c_row, size_t rows, size_t n, int add,
                             const size_t groups) {
  size_t i = 0;
  for (; groups == 1 && i + 4 <= rows; i += 4)
    narrow_tile(a + i * a_row, a_row, b, b_row, next, c + i * c_row, c_row, n, add, 4, groups);
  for (; i + 2 <= rows; i += 2)
    narrow_tile(a + i * a_row, a_row, b, b_row, next, c + i * c_row, c_row, n, add, 2, groups);
  if (i < rows)
    narrow_tile(a + i * a_row, a_row, b, b_row, next, c + i * c_row, c_row, n, add, 1, groups);
}

/* narrow_rows() for fewer than PANEL columns of b, which are copied and padded with zeros. scratch:
 * n * PANEL numbers. */
static void narrow_rest(const REAL *a, size_t a_row, const REAL *b, size_t b_row, REAL *c,
                        size_t c_row, size_t rows, size_t columns, size_t n, int add,
                        REAL *scratch) {
  REAL out[4 * PANEL];
  pack_panel(scratch, b, b_row, 1, n, columns);
  for (size_t i = 0; i < rows; i += 4) {
    const size_t high = smaller(4, rows - i);
    narrow_rows(a + i * a_row, a_row, scratch, PANEL, 0, out, PANEL, high, n, 0, 1);
    for (size_t r = 0; r < high; ++r)
      for (size_t j = 0; j < columns; ++j) {
        REAL *to = c + (i + r) * c_row + j;
        *to = add ? *to + out[r * PANEL + j] : out[r * PANEL + j];
      }
  }
}

/* --- attention --- */

/* score [rows, width] = query [rows, dim] times the keys of positions 0 .. n - 1 of a head of the
 * cache; width is n rounded up to a multiple of PANEL. */
static void cached_score_rows(REAL *score, size_t width, const REAL *query, const REAL *key,
                              size_t rows, size_t n, size_t capacity, size_t dim, REAL *scratch) {
  size_t j = 0;
  for (size_t d = 0; d < dim; d += PANEL_BLOCK) {
    const size_t m = smaller(PANEL_BLOCK, dim - d);
    const REAL *a = query + d, *b = key + d * PANEL;
    j = 0;
    for (; j + 2 * PANEL <= width && j + 2 * PANEL <= capacity; j += 2 * PANEL)
      narrow_rows(a, dim, b + j * dim, PANEL, PANEL * dim, score + j, width, rows, m, d > 0, 2);
    for (; j + PANEL <= width && j + PANEL <= capacity; j += PANEL)
      narrow_rows(a, dim, b + j * dim, PANEL, 0, score + j, width, rows, m, d > 0, 1);
    if (j < n)
      narrow_rest(a, dim, key + j * dim + d * (capacity - j), capacity - j, score + j, width, rows,
                  capacity - j, m, d > 0, scratch);
  }
}

/* to [rows, dim] = weights score [rows, width] times value [n, dim]. */
static void cached_means(REAL *to, const REAL *score, size_t width, const REAL *value, size_t rows,
                         size_t n, size_t dim, REAL *scratch) {
  for (size_t p = 0; p < n; p += PANEL_BLOCK) {
    const size_t m = smaller(PANEL_BLOCK, n - p);
    const REAL *a = score + p, *b = value + p * dim;
    size_t j = 0;
    for (; j + 2 * PANEL <= dim; j += 2 * PANEL)
      narrow_rows(a, width, b + j, dim, PANEL, to + j, dim, rows, m, p > 0, 2);
    for (; j + PANEL <= dim; j += PANEL)
      narrow_rows(a, width, b + j, dim, 0, to + j, dim, rows, m, p > 0, 1);
    if (j < dim) narrow_rest(a, width, b + j, dim, to + j, dim, rows, dim - j, m, p > 0, scratch);
  }
}

/* A task is one row and one key/value head, with the query heads that read it. */
static void cached_task(void *context, size_t task, size_t worker) {
  const cache_job *job = context;
  const head_shape s = job->shape;
  const size_t r = task / s.kv, kv = task % s.kv, group = s.q / s.kv, heads = s.kv * s.dim;
  const size_t n = (size_t)job->position[r] + 1, width = round_up_to(n, PANEL);
  if (job->slot[r] < 0) {
    memset(job->to + r * q_width(s) + kv * group * s.dim, 0, group * s.dim * sizeof(REAL));
    return;
  }
  const size_t at = (size_t)job->slot[r] * job->capacity * heads;
  REAL *scratch = job->owner->worker[worker], *score = scratch + PANEL_BLOCK * PANEL;
  cached_score_rows(score, width, job->qk + r * qk_width(s) + kv * group * s.dim,
                    job->k + at + kv * job->capacity * s.dim, group, n, job->capacity, s.dim,
                    scratch);
  for (size_t h = 0; h < group; ++h) softmax_row(score + h * width, n, width, job->scale);
  cached_means(job->to + r * q_width(s) + kv * group * s.dim, score, width,
               job->v + at + kv * job->capacity * s.dim, group, n, s.dim, scratch);
}

static void cpu_attention_cached(backend *b, void *out, const void *qk, const void *cache_k,
                                 const void *cache_v, const int32_t *slot, const int32_t *position,
                                 size_t rows, size_t capacity, head_shape shape) {
  cpu *c = (cpu *)b;
  assert(head_shape_is_valid(shape));
  cache_job job = {.to = out,
                   .qk = qk,
                   .k = cache_k,
                   .v = cache_v,
                   .slot = slot,
                   .position = position,
                   .capacity = capacity,
                   .shape = shape,
                   .scale = attention_scale(shape),
                   .owner = c};
  const size_t numbers =
      PANEL_BLOCK * PANEL + shape.q / shape.kv * round_up_to(larger(1, capacity), PANEL);
  if (cpu_reserve(c, numbers * sizeof(REAL), 0))
    pool_run(c->pool, cached_task, &job, rows * shape.kv);
}
