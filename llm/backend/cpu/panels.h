/* Products with many rows: the right factor is packed into panels, and tiles of the result are
 * summed in registers. Part of the template body.h, compiled once for every number type and
 * instruction set.
 *
 * Each number of the result is a sum over its terms in ascending order, PANEL_BLOCK terms at a
 * time, so it does not depend on the rows and columns computed with it, and terms that are zero
 * change nothing.
 *
 * The scheme is K. Goto and R. van de Geijn's, Anatomy of high-performance matrix multiplication,
 * ACM Trans. Math. Software 34 (2008). */

enum {
  PANEL_ROWS = 6,              /* rows of a tile of the result held in registers */
  PANEL = 2 * WIDE,            /* columns of a tile and of a panel */
  PANEL_BLOCK = 256,           /* terms that are summed before the result is written */
  LEFT_HIGH = 21 * PANEL_ROWS, /* rows of the left factor that stay in the second-level cache */
  ACROSS_AHEAD = 8,            /* terms prefetched by copy_across */
  /* Numbers from one tile that is copied across to the next: 64 bytes more than a tile has, so that
   * the tiles, which are written side by side, do not evict each other from the cache. */
  LEFT_TILE = PANEL_ROWS * PANEL_BLOCK + 64 / sizeof(REAL),
  LEFT = LEFT_HIGH / PANEL_ROWS * LEFT_TILE /* numbers of scratch memory for the left factor */
};

/* A packed right factor [n, columns]: for every PANEL_BLOCK of its rows one panel after the other,
 * each [rows of the block, PANEL] in row-major order; the last panel is filled up with zeros. */
typedef struct panels {
  REAL *data; /* panels_numbers(n, columns) of them; borrowed scratch memory */
  size_t n, columns;
} panels;

static inline size_t panels_numbers(size_t n, size_t columns) {
  return n * round_up(columns, PANEL);
}

/* Where column j (a multiple of PANEL) of the block that begins at row p lies. */
static inline REAL *panel_at(const panels *b, size_t p, size_t j) {
  return b->data + p * round_up(b->columns, PANEL) + j * smaller(PANEL_BLOCK, b->n - p);
}

/* One panel [m, PANEL] from the first `columns` columns of b(p, j) = b[p * b_row + j * b_column];
 * one of b_row and b_column may be 1, which is copied faster. */
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

/* Columns [from, until) of the block of b that begins at row p into their panels; `from` is a
 * multiple of PANEL, p one of PANEL_BLOCK. */
static void pack_block(const panels *to, const REAL *b, size_t b_row, size_t b_column, size_t p,
                       size_t from, size_t until) {
  for (size_t j = from; j < until; j += PANEL)
    pack_panel(panel_at(to, p, j), b + p * b_row + j * b_column, b_row, b_column,
               smaller(PANEL_BLOCK, to->n - p), smaller(PANEL, until - j));
}

/* The same of all blocks. */
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

/* Where a tile's left factor lies. */
typedef enum left_form {
  LEFT_PACKED,     /* copied: [PANEL_ROWS, PANEL_BLOCK] */
  LEFT_TRANSPOSED, /* copied: [terms, PANEL_ROWS] */
  LEFT_ROWS,       /* in place: the terms of a row side by side, rows `step` numbers apart */
  LEFT_ACROSS      /* in place: the rows of a term side by side, terms `step` numbers apart */
} left_form;

/* c [rows, columns], at most a tile, (+)= a times panel b over n terms; rows of c begin c_row
 * apart. */
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

/* c [rows, groups * PANEL] (+)= a [rows, n] b [n, groups * PANEL], with sums in the order of
 * panel_tile, so that they have the same bits. 1 to 5 rows and 1 to 4 groups of PANEL columns,
 * which are constants where this is inlined. Rows of a, b and c begin a_row, b_row and c_row
 * numbers apart, the groups of b `next` apart. */
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
 * terms; the terms of a row of a lie side by side. */
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
  REAL *copy; /* tile after tile; unless `copied`, only a last tile of fewer rows where column is
               * not 1
               */
  int copied; /* 1: all tiles are copied */
} left_block;

/* Where the copy of the tile lies that begins at row i. */
static inline REAL *copy_of(const left_block *l, size_t i) {
  return l->copy + (l->column == 1 ? i * PANEL_BLOCK : i / PANEL_ROWS * LEFT_TILE);
}

/* Copies the tile that begins at row i; where it is copied across, rows beyond the last become zero
 * (where its terms lie side by side, a tile of fewer rows reads no others). */
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

/* Copies all whole tiles of a factor whose rows lie side by side (row is 1), term by term, which is
 * the order in which memory holds them. */
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

/* The block of the left factor with what must be copied of it: long rows whose distance is a
 * multiple of 4096 bytes (they would evict each other from the cache) or that lie side by side, and
 * of the latter a last tile of fewer than PANEL_ROWS rows. */
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

/* The next panel, to be prefetched: n numbers side by side, `share` of them with every tile. */
typedef struct upcoming {
  const REAL *at;
  size_t n, share;
} upcoming;

/* Numbers of a panel of m terms that are prefetched with each tile of so many rows: whole lines of
 * the cache, all of them by the last tile. */
static size_t share_ahead(size_t m, size_t rows) {
  return round_up(divide_up(m * PANEL, divide_up(rows, PANEL_ROWS)), 64 / sizeof(REAL));
}

/* The panel of terms [p, p + m) at column j; nothing beyond the last column. */
static upcoming upcoming_of(const panels *b, size_t p, size_t j, size_t m, size_t columns,
                            size_t share) {
  if (j >= columns) return (upcoming){0};
  return (upcoming){panel_at(b, p, j), m * PANEL, share};
}

/* Prefetches the next share of the next panel. */
static inline void fetch_ahead(upcoming *u) {
  const size_t n = smaller(u->n, u->share);
  for (size_t p = 0; p < n; p += 64 / sizeof(REAL)) __builtin_prefetch(u->at + p);
  u->at += n;
  u->n -= n;
}

/* Rows of the next tile where so many are left. A tile of one or two rows is too few sums to keep
 * the multipliers busy, so the last seven or eight are divided in halves. */
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

/* gemm_panels for 1 to 3 rows with their terms side by side: several panels are read at once,
 * because a panel's two vectors are too few sums to keep the multipliers busy. */
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
 * a multiple of PANEL; a(i, p) = a[i * a_row + p * a_column], a_row or a_column being 1; rows of c
 * begin c_row numbers apart; `left` is LEFT numbers of scratch memory. A panel of b stays in the
 * first-level cache while it is multiplied with a block of rows of a from the second-level cache.
 */
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
