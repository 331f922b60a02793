/* Keys and values of running sequences, and attention of one query row over its slot of the cache.
 * Part of the template body.h, compiled once for every number type and instruction set.
 *
 * Layout of a slot's keys: head after head, each [capacity / PANEL, dim, PANEL], so that the scores
 * of PANEL neighbouring positions are computed side by side; the last panel has only the positions
 * that are left of the capacity. Of its values: head after head, each [capacity, dim]. */

/* The arrays of attention_cached (operations.h); `to` is its result, k and v the cache. */
typedef struct cache_job {
  const REAL *qk, *k, *v;
  REAL *to;
  const int32_t *slot, *position;
  size_t capacity;
  head_shape shape;
  REAL scale;
  cpu *owner;
} cache_job;

/* How many positions the panel that begins at position `first` has. */
static inline size_t cache_panel(size_t capacity, size_t first) {
  return smaller(PANEL, capacity - first);
}

/* The arrays of cache_store (operations.h); no two rows have the same slot and position. */
typedef struct store_job {
  const REAL *qk, *qkv;
  REAL *k, *v;
  const int32_t *slot, *position;
  size_t rows, capacity, chunk; /* chunk: rows of a task */
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

/* Copies whole panels of keys: what this leaves beyond `length` is stored again before it is read.
 */
static void cpu_cache_copy(backend *b, void *cache_k, void *cache_v, size_t from, size_t to,
                           size_t length, size_t capacity, head_shape shape) {
  const size_t width = shape.kv * shape.dim, slot = capacity * width;
  const size_t keys = smaller(capacity, round_up(length, PANEL)) * shape.dim;
  for (size_t h = 0; h < shape.kv; ++h) {
    const size_t head = h * capacity * shape.dim;
    cpu_copy(b, (REAL *)cache_k + to * slot + head, (const REAL *)cache_k + from * slot + head,
             keys * sizeof(REAL));
    cpu_copy(b, (REAL *)cache_v + to * slot + head, (const REAL *)cache_v + from * slot + head,
             length * shape.dim * sizeof(REAL));
  }
}

/* --- products of the few query heads that share a key/value head --- */

/* narrow_tile (panels.h) for any number of rows, and 1 or 2 groups. */
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

/* The same for fewer than PANEL columns of b, which are copied and filled up with zeros. scratch:
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
static void cached_scores(REAL *score, size_t width, const REAL *query, const REAL *key,
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
  const size_t n = (size_t)job->position[r] + 1, width = round_up(n, PANEL);
  if (job->slot[r] < 0) {
    memset(job->to + r * q_width(s) + kv * group * s.dim, 0, group * s.dim * sizeof(REAL));
    return;
  }
  const size_t at = (size_t)job->slot[r] * job->capacity * heads;
  REAL *scratch = job->owner->worker[worker], *score = scratch + PANEL_BLOCK * PANEL;
  cached_scores(score, width, job->qk + r * qk_width(s) + kv * group * s.dim,
                job->k + at + kv * job->capacity * s.dim, group, n, job->capacity, s.dim, scratch);
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
      PANEL_BLOCK * PANEL + shape.q / shape.kv * round_up(larger(1, capacity), PANEL);
  if (cpu_reserve(c, numbers * sizeof(REAL), 0))
    pool_run(c->pool, cached_task, &job, rows * shape.kv);
}
