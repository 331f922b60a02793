/* Matrix products and their division into tasks. Part of template.c, compiled once per
 * number type and instruction set.
 *
 * There are four methods. Products with packed weights (product_packed) multiply with panels,
 * described below, for one row or thousands. Other row-wise products are dot products (vector.h).
 * Training's products pack one factor once (for gradients of weights, the layer's input), and all
 * tasks read it. OpenBLAS computes products too small or too large for packing, and all of
 * training's products if its instruction set is better (cpu.blas). Then each task calls it, with
 * one thread, for a part of the result that depends only on the shape. */

/* --- panels --- */

/* Products with many rows: the right factor is packed into panels, and tiles of the result are
 * summed in registers. Each number of the result is a sum over its terms in ascending order,
 * PANEL_BLOCK terms at a time. So it does not depend on the rows and columns computed with it, and
 * zero terms change nothing.
 *
 * The method is that of K. Goto and R. van de Geijn, Anatomy of high-performance matrix
 * multiplication, ACM Trans. Math. Software 34 (2008). */

enum {
  PANEL_ROWS = 6,              /* rows of a tile of the result, in registers */
  PANEL = 2 * WIDE,            /* columns of a tile and of a panel */
  PANEL_BLOCK = 256,           /* terms summed before the result is written */
  LEFT_HIGH = 21 * PANEL_ROWS, /* rows of the left factor kept in the second-level cache */
  ACROSS_AHEAD = 8,            /* terms prefetched by copy_across */
  /* Distance between tiles of the copied left factor: a tile plus 64 bytes, so that tiles that are
     written side by side do not evict each other from the cache. */
  LEFT_TILE = PANEL_ROWS * PANEL_BLOCK + 64 / sizeof(REAL),
  LEFT = LEFT_HIGH / PANEL_ROWS * LEFT_TILE /* numbers of scratch memory for the left factor */
};

/* A packed right factor [n, columns]. Its rows are divided into blocks of PANEL_BLOCK. A block is
 * stored as one panel after the other, each [rows of the block, PANEL] in row-major order. The last
 * panel is padded with zeros. */
typedef struct panels {
  REAL *data; /* panels_numbers(n, columns) numbers; borrowed scratch memory */
  size_t n, columns;
} panels;

static inline size_t panels_numbers(size_t n, size_t columns) {
  return n * round_up_to(columns, PANEL);
}

/* Address of column j (a multiple of PANEL) of the block that begins at row p. */
static inline REAL *panel_at(const panels *b, size_t p, size_t j) {
  return b->data + p * round_up_to(b->columns, PANEL) + j * smaller(PANEL_BLOCK, b->n - p);
}

/* Writes one panel [m, PANEL] from the first `columns` columns of b(p, j) = b[p * b_row + j *
 * b_column]. If b_row or b_column is 1, copying is faster. */
static void pack_panel(REAL *restrict to, const REAL *restrict b, size_t b_row, size_t b_column,
                       size_t m, size_t columns) {
  size_t p = 0;
  if (columns == PANEL && b_column == 1)
    for (; p < m; ++p) memcpy(to + p * PANEL, b + p * b_row, PANEL * sizeof *to);
  if (columns == PANEL && b_row == 1)
    for (; p + VECTOR <= m; p += VECTOR) {
      for (size_t j = 0; j < PANEL; j += VECTOR)
        vector_transpose(to + p * PANEL + j, PANEL, b + p + j * b_column, b_column);
    }
  for (; p < m; ++p)
    for (size_t j = 0; j < PANEL; ++j)
      to[p * PANEL + j] = j < columns ? b[p * b_row + j * b_column] : 0;
}

/* Packs columns [from, until) of the block of b that begins at row p. `from` is a multiple of
 * PANEL, p one of PANEL_BLOCK. */
static void pack_block(const panels *to, const REAL *b, size_t b_row, size_t b_column, size_t p,
                       size_t from, size_t until) {
  for (size_t j = from; j < until; j += PANEL)
    pack_panel(panel_at(to, p, j), b + p * b_row + j * b_column, b_row, b_column,
               smaller(PANEL_BLOCK, to->n - p), smaller(PANEL, until - j));
}

/* pack_block() for all blocks. */
static void pack_columns(const panels *to, const REAL *b, size_t b_row, size_t b_column,
                         size_t from, size_t until) {
  for (size_t p = 0; p < to->n; p += PANEL_BLOCK)
    pack_block(to, b, b_row, b_column, p, from, until);
}

/* sum[PANEL_ROWS][PANEL] = a b over n terms: a(i, p) = a[i * a_row + p * a_column], b [n, PANEL].
 */
LOOP_INLINE void panel_tile(const REAL *restrict a, const size_t a_row, const size_t a_column,
                            const REAL *restrict b, size_t n, wide_vector sum[PANEL_ROWS][2]) {
#pragma GCC unroll 6
  for (size_t i = 0; i < PANEL_ROWS; ++i) sum[i][0] = sum[i][1] = (wide_vector){0};
#pragma GCC unroll 2
  for (size_t p = 0; p < n; ++p) {
    const wide_vector left = wide_at(b + p * PANEL), right = wide_at(b + p * PANEL + WIDE);
#pragma GCC unroll 6
    for (size_t i = 0; i < PANEL_ROWS; ++i) {
      const wide_vector x = wide_of(a[i * a_row + p * a_column]);
      sum[i][0] = wide_add_product(sum[i][0], x, left);
      sum[i][1] = wide_add_product(sum[i][1], x, right);
    }
  }
}

/* Storage of a tile's left factor. */
typedef enum left_form {
  LEFT_PACKED,     /* copied: [PANEL_ROWS, PANEL_BLOCK] */
  LEFT_TRANSPOSED, /* copied: [terms, PANEL_ROWS] */
  LEFT_ROWS,       /* in place: the terms of a row are adjacent, rows `step` numbers apart */
  LEFT_ACROSS      /* in place: the rows of a term are adjacent, terms `step` numbers apart */
} left_form;

/* c [rows, columns], at most a tile, (+)= a times panel b over n terms. Rows of c are c_row apart.
 */
static void panel_tile_to(const REAL *restrict a, left_form form, size_t step,
                          const REAL *restrict b, REAL *restrict c, size_t c_row, size_t rows,
                          size_t columns, size_t n, int add) {
  wide_vector sum[PANEL_ROWS][2];
  for (size_t i = 0; i < rows; ++i) __builtin_prefetch(c + i * c_row, 1);
  if (form == LEFT_PACKED)
    panel_tile(a, PANEL_BLOCK, 1, b, n, sum);
  else if (form == LEFT_TRANSPOSED)
    panel_tile(a, 1, PANEL_ROWS, b, n, sum);
  else if (form == LEFT_ROWS)
    panel_tile(a, step, 1, b, n, sum);
  else
    panel_tile(a, 1, step, b, n, sum);
  if (rows == PANEL_ROWS && columns == PANEL) {
#pragma GCC unroll 6
    for (size_t i = 0; i < PANEL_ROWS; ++i) {
      REAL *to = c + i * c_row;
      wide_put(to, add ? wide_at(to) + sum[i][0] : sum[i][0]);
      wide_put(to + WIDE, add ? wide_at(to + WIDE) + sum[i][1] : sum[i][1]);
    }
    return;
  }
  REAL tile[PANEL_ROWS][PANEL];
#pragma GCC unroll 6
  for (size_t i = 0; i < PANEL_ROWS; ++i) {
    wide_put(tile[i], sum[i][0]);
    wide_put(tile[i] + WIDE, sum[i][1]);
  }
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      c[i * c_row + j] = add ? c[i * c_row + j] + tile[i][j] : tile[i][j];
}

/* c [rows, groups * PANEL] (+)= a [rows, n] b [n, groups * PANEL], summed in the order of
 * panel_tile, hence with the same bits. 1 to 5 rows and 1 to 4 groups of PANEL columns, which are
 * constants when inlined. Rows of a, b and c are a_row, b_row and c_row numbers apart, the groups
 * of b `next` apart. */
LOOP_INLINE void narrow_tile(const REAL *a, size_t a_row, const REAL *b, size_t b_row, size_t next,
                             REAL *c, size_t c_row, size_t n, int add, const size_t rows,
                             const size_t groups) {
  wide_vector sum[5][8];
#pragma GCC unroll 5
  for (size_t i = 0; i < rows; ++i)
#pragma GCC unroll 8
    for (size_t j = 0; j < 2 * groups; ++j) sum[i][j] = (wide_vector){0};
  for (size_t p = 0; p < n; ++p) {
    wide_vector right[8];
#pragma GCC unroll 8
    for (size_t j = 0; j < 2 * groups; ++j)
      right[j] = wide_at(b + p * b_row + j / 2 * next + j % 2 * WIDE);
#pragma GCC unroll 5
    for (size_t i = 0; i < rows; ++i) {
      const wide_vector x = wide_of(a[i * a_row + p]);
#pragma GCC unroll 8
      for (size_t j = 0; j < 2 * groups; ++j) sum[i][j] = wide_add_product(sum[i][j], x, right[j]);
    }
  }
#pragma GCC unroll 5
  for (size_t i = 0; i < rows; ++i)
#pragma GCC unroll 8
    for (size_t j = 0; j < 2 * groups; ++j) {
      REAL *to = c + i * c_row + j * WIDE;
      wide_put(to, add ? wide_at(to) + sum[i][j] : sum[i][j]);
    }
}

/* c [rows, columns], fewer rows than a tile and at most PANEL columns, (+)= a times panel b over n
 * terms. The terms of a row of a are adjacent. */
static void short_tile_to(const REAL *a, size_t a_row, const REAL *b, REAL *c, size_t c_row,
                          size_t rows, size_t columns, size_t n, int add) {
  REAL part[PANEL_ROWS][PANEL];
  const int whole = columns == PANEL, plus = whole && add;
  REAL *const to = whole ? c : part[0];
  const size_t to_row = whole ? c_row : PANEL;
  if (rows == 1) narrow_tile(a, a_row, b, PANEL, 0, to, to_row, n, plus, 1, 1);
  if (rows == 2) narrow_tile(a, a_row, b, PANEL, 0, to, to_row, n, plus, 2, 1);
  if (rows == 3) narrow_tile(a, a_row, b, PANEL, 0, to, to_row, n, plus, 3, 1);
  if (rows == 4) narrow_tile(a, a_row, b, PANEL, 0, to, to_row, n, plus, 4, 1);
  if (rows == 5) narrow_tile(a, a_row, b, PANEL, 0, to, to_row, n, plus, 5, 1);
  for (size_t i = 0; !whole && i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      c[i * c_row + j] = add ? c[i * c_row + j] + part[i][j] : part[i][j];
}

/* Up to LEFT_HIGH rows of the left factor, m terms of each: a(i, p) = a[i * row + p * column],
 * where row or column is 1. */
typedef struct left_block {
  const REAL *a;
  size_t row, column, rows, m;
  REAL *copy; /* copies of all tiles if `copied`; else, if column is not 1, only of an incomplete
                 last tile */
  int copied; /* 1: all tiles are copied */
} left_block;

/* Address of the copy of the tile that begins at row i. */
static inline REAL *copy_of(const left_block *l, size_t i) {
  return l->copy + (l->column == 1 ? i * PANEL_BLOCK : i / PANEL_ROWS * LEFT_TILE);
}

/* Copies the tile that begins at row i. If the rows of a term are adjacent (row is 1), missing rows
 * of an incomplete tile become zeros, because panel_tile reads all rows. If the terms of a row are
 * adjacent, short_tile_to computes incomplete tiles, and reads only existing rows. */
static void copy_tile(const left_block *l, size_t i) {
  const size_t high = smaller(PANEL_ROWS, l->rows - i);
  REAL *restrict to = copy_of(l, i);
  if (l->column == 1) {
    for (size_t r = 0; r < high; ++r)
      memcpy(to + r * PANEL_BLOCK, l->a + (i + r) * l->row, l->m * sizeof *to);
    return;
  }
  if (high < PANEL_ROWS) memset(to, 0, PANEL_ROWS * l->m * sizeof *to);
  for (size_t p = 0; p < l->m; ++p)
    for (size_t r = 0; r < high; ++r) to[p * PANEL_ROWS + r] = l->a[i + r + p * l->column];
}

/* Copies all complete tiles of a factor with adjacent rows (row is 1), term by term, in memory
 * order. */
static void copy_across(const left_block *l) {
  const size_t whole = l->rows / PANEL_ROWS;
  for (size_t p = 0; p < l->m; ++p) {
    const REAL *restrict from = l->a + p * l->column;
    REAL *restrict to = l->copy + p * PANEL_ROWS;
    for (size_t r = 0; p + ACROSS_AHEAD < l->m && r < l->rows; r += 64 / sizeof(REAL))
      __builtin_prefetch(from + ACROSS_AHEAD * l->column + r);
    for (size_t t = 0; t < whole; ++t)
      memcpy(to + t * LEFT_TILE, from + t * PANEL_ROWS, PANEL_ROWS * sizeof *to);
  }
}

/* Describes a block of the left factor. All its tiles are copied if it has more than PANEL_BLOCK /
 * 2 terms, and either its rows are a multiple of 4096 bytes apart (they would evict each other from
 * the cache) or the terms of a row are not adjacent. In the latter case an incomplete last tile is
 * always copied. */
static left_block left_of(const REAL *a, size_t row, size_t column, size_t rows, size_t m,
                          REAL *copy) {
  const int conflicts = column != 1 || row * sizeof(REAL) % 4096 == 0;
  const left_block l = {a, row, column, rows, m, copy, conflicts && m > PANEL_BLOCK / 2};
  const size_t whole = rows / PANEL_ROWS * PANEL_ROWS;
  if (l.copied && column != 1) copy_across(&l);
  if (l.copied || column != 1)
    for (size_t i = column == 1 ? 0 : whole; i < rows; i += PANEL_ROWS) copy_tile(&l, i);
  return l;
}

/* The next panel, to be prefetched: n adjacent numbers, of which `share` are prefetched with every
 * tile. */
typedef struct upcoming {
  const REAL *at;
  size_t n, share;
} upcoming;

/* Numbers to prefetch with each tile of `rows` rows, so that a panel of m terms is complete with
 * the last tile; a multiple of a cache line. */
static size_t share_ahead(size_t m, size_t rows) {
  return round_up_to(divide_up(m * PANEL, divide_up(rows, PANEL_ROWS)), 64 / sizeof(REAL));
}

/* The panel of terms [p, p + m) at column j; empty beyond the last column. */
static upcoming upcoming_of(const panels *b, size_t p, size_t j, size_t m, size_t columns,
                            size_t share) {
  if (j >= columns) return (upcoming){0};
  return (upcoming){panel_at(b, p, j), m * PANEL, share};
}

/* Prefetches the next part of the next panel. */
static inline void fetch_ahead(upcoming *u) {
  const size_t n = smaller(u->n, u->share);
  for (size_t p = 0; p < n; p += 64 / sizeof(REAL)) __builtin_prefetch(u->at + p);
  u->at += n;
  u->n -= n;
}

/* Rows of the next tile, if `rows` are left. A tile of one or two rows has too few sums to keep the
 * multipliers busy, so a rest of seven or eight rows is computed as two tiles. */
static inline size_t tile_high(const left_block *l, size_t rows) {
  if (l->column == 1 && (rows == PANEL_ROWS + 1 || rows == PANEL_ROWS + 2)) return 4;
  return smaller(PANEL_ROWS, rows);
}

/* c [l->rows, columns] (+)= all tiles of l times one panel. */
static void panel_rows(const left_block *l, const REAL *panel, upcoming next, REAL *c, size_t c_row,
                       size_t columns, int add) {
  const left_form copied = l->column == 1 ? LEFT_PACKED : LEFT_TRANSPOSED;
  const left_form plain = l->column == 1 ? LEFT_ROWS : LEFT_ACROSS;
  const size_t step = l->column == 1 ? l->row : l->column;
  for (size_t i = 0, high; i < l->rows; i += high) {
    high = tile_high(l, l->rows - i);
    fetch_ahead(&next);
    if (high < PANEL_ROWS && l->column == 1)
      short_tile_to(l->copied ? copy_of(l, i) : l->a + i * step, l->copied ? PANEL_BLOCK : step,
                    panel, c + i * c_row, c_row, high, columns, l->m, add);
    else if (l->copied || high < PANEL_ROWS)
      panel_tile_to(copy_of(l, i), copied, 0, panel, c + i * c_row, c_row, high, columns, l->m,
                    add);
    else
      panel_tile_to(l->a + i * l->row, plain, step, panel, c + i * c_row, c_row, high, columns,
                    l->m, add);
  }
}

/* gemm_panels for 1 to 3 rows with adjacent terms. It reads several panels at once, because one
 * panel's two vectors are too few sums to keep the multipliers busy. */
static void gemm_narrow(const REAL *a, size_t a_row, const panels *b, size_t from, REAL *c,
                        size_t c_row, size_t rows, size_t columns, size_t n, int add) {
  const size_t groups = rows == 1 ? 4 : rows == 2 ? 3 : 2;
  for (size_t p = 0; p < n || p == 0; p += PANEL_BLOCK) {
    const size_t m = smaller(PANEL_BLOCK, n - p), next = m * PANEL;
    const int more = add || p > 0;
    size_t j = 0;
    for (; j + groups * PANEL <= columns; j += groups * PANEL) {
      const REAL *panel = panel_at(b, p, from + j);
      if (rows == 1) narrow_tile(a + p, a_row, panel, PANEL, next, c + j, c_row, m, more, 1, 4);
      if (rows == 2) narrow_tile(a + p, a_row, panel, PANEL, next, c + j, c_row, m, more, 2, 3);
      if (rows == 3) narrow_tile(a + p, a_row, panel, PANEL, next, c + j, c_row, m, more, 3, 2);
    }
    for (; j < columns; j += PANEL)
      short_tile_to(a + p, a_row, panel_at(b, p, from + j), c + j, c_row, rows,
                    smaller(PANEL, columns - j), m, more);
  }
}

/* c [rows, columns] (+)= a [rows, n] times columns [from, from + columns) of b [n, ...]. `from` is
 * a multiple of PANEL; a(i, p) = a[i * a_row + p * a_column] with a_row or a_column 1; rows of c
 * are c_row numbers apart; `left`: LEFT numbers of scratch memory. A panel of b stays in the
 * first-level cache while it is multiplied with a block of rows of a in the second-level cache. */
static void gemm_panels(const REAL *a, size_t a_row, size_t a_column, const panels *b, size_t from,
                        REAL *c, size_t c_row, size_t rows, size_t columns, size_t n, int add,
                        REAL *left) {
  if (rows <= 3 && a_column == 1) {
    gemm_narrow(a, a_row, b, from, c, c_row, rows, columns, n, add);
    return;
  }
  for (size_t i = 0; i < rows; i += LEFT_HIGH)
    for (size_t p = 0; p < n || p == 0; p += PANEL_BLOCK) {
      const size_t m = smaller(PANEL_BLOCK, n - p);
      const left_block l = left_of(a + i * a_row + p * a_column, a_row, a_column,
                                   smaller(LEFT_HIGH, rows - i), m, left);
      const size_t share = share_ahead(m, l.rows);
      for (size_t j = 0; j < columns; j += PANEL) {
        const upcoming next = upcoming_of(b, p, from + j + PANEL, m, from + columns, share);
        panel_rows(&l, panel_at(b, p, from + j), next, c + i * c_row + j, c_row,
                   smaller(PANEL, columns - j), add || p > 0);
      }
    }
}

/* --- products --- */

/* DOT and FORWARD: c = a [rows, n] b [columns, n]^T, row-wise or not. INPUT (gradient of the
 * input): c = a [rows, n] b [n, columns]. WEIGHT (gradient of the weight): c = a [n, rows]^T b [n,
 * columns]. */
typedef enum product_form { DOT, FORWARD, INPUT, WEIGHT } product_form;

typedef struct product_job {
  product_form form;
  const REAL *a, *b;
  REAL *c;                 /* [rows, columns] */
  size_t rows, columns, n; /* n: terms of each sum */
  size_t high, wide;       /* rows and columns of c per task */
  int add;
  panels right; /* b packed; data NULL: OpenBLAS reads b itself */
  cpu *owner;
} product_job;

#if IS_DOUBLE
#define BLAS_PRODUCT cblas_dgemm
#else
#define BLAS_PRODUCT cblas_sgemm
#endif

/* c [i .. i + rows, j .. j + columns], by OpenBLAS. */
static void blas_part(const product_job *job, size_t i, size_t j, size_t rows, size_t columns) {
  const int transposed_a = job->form == WEIGHT, transposed_b = job->form == FORWARD;
  const size_t n = job->n;
  BLAS_PRODUCT(CblasRowMajor, transposed_a ? CblasTrans : CblasNoTrans,
               transposed_b ? CblasTrans : CblasNoTrans, (int)rows, (int)columns, (int)n, 1,
               job->a + (transposed_a ? i : i * n), (int)(transposed_a ? job->rows : n),
               job->b + (transposed_b ? j * n : j), (int)(transposed_b ? n : job->columns),
               job->add ? 1 : 0, job->c + i * job->columns + j, (int)job->columns);
}

/* Computes c [i .. i + rows, j .. j + columns] from the packed factor. j is a multiple of PANEL.
 * scratch: LEFT numbers. */
static void panels_part(const product_job *job, size_t i, size_t j, size_t rows, size_t columns,
                        REAL *scratch) {
  const int transposed_a = job->form == WEIGHT;
  gemm_panels(job->a + (transposed_a ? i : i * job->n), transposed_a ? 1 : job->n,
              transposed_a ? job->rows : 1, &job->right, j, job->c + i * job->columns + j,
              job->columns, rows, columns, job->n, job->add, scratch);
}

/* A task computes one part [high, wide] of c. */
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

/* HIGH: rows per task; WIDE: columns. The values were chosen by measurement. */
enum {
  DOT_HIGH = 48,
  BLAS_HIGH = 192,                /* minimum rows of a task at which OpenBLAS is fast */
  BLAS_WIDE = 128,                /* minimum columns */
  PACKED_HIGH = 2 * LEFT_HIGH,    /* maximum rows of a task that reads a packed factor */
  PACKED_LEAST = 96,              /* minimum rows of c for which packing b pays */
  PACKED_MOST = 1 << 24,          /* maximum size of a packed factor, in numbers */
  PACK_WIDE = 4 * PANEL,          /* columns of a packing task */
  PREPACKED_WIDE = 4 * PANEL,     /* minimum columns of a task with packed weights */
  WEIGHT_LEAST = 32,              /* like PACKED_LEAST, for the gradient of a weight */
  WEIGHT_TERMS = 2 * PANEL_BLOCK, /* terms of a weight's gradient packed at a time */
  WEIGHT_WIDE = 16 * PANEL        /* minimum columns for which copying the left factor pays */
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

/* Number of tasks for that many multiplications: enough for some threads, but each much longer than
 * the microsecond needed to schedule it. */
static size_t tasks_worth(double multiplications) {
  const double small = multiplications / (1 << 19), large = multiplications / (1 << 25);
  return (size_t)fmax(1, fmax(fmin(small, 16), large));
}

static double multiplications(const product_job *job) {
  return (double)job->rows * (double)job->columns * (double)job->n;
}

/* Halves the part of c that a task computes, rows first, until there are enough tasks, or the parts
 * are too small for OpenBLAS. */
static void cut_blas(product_job *job) {
  const size_t wanted = tasks_worth(multiplications(job));
  job->high = job->rows;
  job->wide = job->columns;
  while (divide_up(job->rows, job->high) * divide_up(job->columns, job->wide) < wanted) {
    if (job->high >= 2 * BLAS_HIGH)
      job->high = round_up_to(divide_up(job->high, 2), 24);
    else if (job->wide >= 2 * BLAS_WIDE)
      job->wide = round_up_to(divide_up(job->wide, 2), 32);
    else
      return;
  }
}

/* With few rows most time is spent reading b. So mainly the columns are divided, into more tasks
 * than the multiplications alone would justify. */
static void cut_dot(product_job *job) {
  job->high = smaller(DOT_HIGH, job->rows);
  const size_t down = divide_up(job->rows, job->high), tasks = tasks_worth(multiplications(job));
  job->wide = round_up_to(divide_up(job->columns, larger(1, divide_up(4 * tasks, down))), 8);
}

/* 1 if the product packs b. */
static int packs(const cpu *c, const product_job *job) {
  const size_t least = job->form == WEIGHT ? WEIGHT_LEAST : PACKED_LEAST;
  const size_t n = job->form == WEIGHT ? smaller(job->n, WEIGHT_TERMS) : job->n;
  return !c->blas && job->form != DOT && job->rows >= least &&
         panels_numbers(n, job->columns) <= PACKED_MOST;
}

/* Divides the rows of c into up to 16 parts. Parts of LEFT_HIGH rows or more are instead one or two
 * blocks of the left factor long, because a task reads all panels again for each further block,
 * even one of few rows. The gradient of a weight has few rows: they are divided into a multiple of
 * four parts if these have at least 24 rows, and the columns are divided, too. */
static void cut_packed(product_job *job) {
  job->wide = job->columns;
  if (job->form == WEIGHT) {
    const size_t parts = round_up_to(divide_up(job->rows, LEFT_HIGH), 4), most = job->rows / 24;
    job->high = round_up_to(divide_up(job->rows, larger(1, smaller(parts, most))), PANEL_ROWS);
    const size_t down = divide_up(job->rows, job->high), tasks = tasks_worth(multiplications(job));
    job->wide =
        larger(WEIGHT_WIDE, round_up_to(divide_up(job->columns, divide_up(tasks, down)), PANEL));
  } else {
    const size_t high = round_up_to(divide_up(job->rows, 16), PANEL_ROWS);
    job->high = high < LEFT_HIGH ? high : smaller(PACKED_HIGH, high / LEFT_HIGH * LEFT_HIGH);
  }
}

/* Packs b, then computes c; both in tasks. The terms of a weight's gradient are the rows of a whole
 * batch. They are processed WEIGHT_TERMS at a time, so that the packed data is still in a cache
 * when it is read. WEIGHT_TERMS is a multiple of PANEL_BLOCK, so the sums equal those over all
 * terms at once. */
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
  if (m > SIZE_MAX - PANEL || __builtin_mul_overflow(round_up_to(m, PANEL), k, &numbers))
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

/* Divides the columns if all rows fit one block of the left factor, else the rows. */
static void cut_prepacked(product_job *job) {
  if (job->rows > LEFT_HIGH) {
    cut_packed(job);
    return;
  }
  job->high = job->rows;
  job->wide =
      larger(PREPACKED_WIDE,
             round_up_to(divide_up(job->columns, tasks_worth(multiplications(job))), PANEL));
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
