/* Products with a packed right factor, in registers. Part of backend_cpu_body.h.
 *
 * Each number of the result is a sum in the order of its terms, PANEL_BLOCK of them at a time, so
 * that it does not depend on rows and columns beside it, and terms that are zero change nothing.
 *
 * Packing goes back to K. Goto and R. van de Geijn, Anatomy of high-performance matrix
 * multiplication, ACM Trans. Math. Software 34 (2008). */

enum {
  PANEL_ROWS = 6,                 /* register tile */
  PANEL = 2 * VECTOR,             /* its columns */
  PANEL_BLOCK = 256,              /* terms of a sum in one go */
  PANEL_GROUP = 16 * PANEL,       /* columns that stay in the cache next to the processor's first */
  LEFT = PANEL_ROWS * PANEL_BLOCK /* numbers of scratch for the left factor */
};

/* A right factor [n, columns]: for every PANEL_BLOCK of its rows, panel after panel of PANEL
 * columns, each row by row; the last panel is filled with zeros. */
typedef struct panels {
  REAL *data; /* panels_numbers(n, columns) */
  size_t n, columns;
} panels;

static inline size_t panels_numbers(size_t n, size_t columns) {
  return n * round_up(columns, PANEL);
}

/* Where column j (a multiple of PANEL) of the block that begins at row p lies. */
static inline REAL *panel_at(const panels *b, size_t p, size_t j) {
  return b->data + p * round_up(b->columns, PANEL) + j * smaller(PANEL_BLOCK, b->n - p);
}

/* One panel of m rows from b(p, j) = b[p * b_row + j * b_column]. */
static void pack_panel(REAL *restrict to, const REAL *restrict b, size_t b_row, size_t b_column,
                       size_t m, size_t columns) {
  size_t p = 0;
  if (columns == PANEL && b_column == 1)
    for (; p < m; ++p) memcpy(to + p * PANEL, b + p * b_row, PANEL * sizeof *to);
  if (columns == PANEL && b_row == 1)
    for (; p + VECTOR <= m; p += VECTOR) {
      vector_turn(to + p * PANEL, PANEL, b + p, b_column);
      vector_turn(to + p * PANEL + VECTOR, PANEL, b + p + VECTOR * b_column, b_column);
    }
  for (; p < m; ++p)
    for (size_t j = 0; j < PANEL; ++j)
      to[p * PANEL + j] = j < columns ? b[p * b_row + j * b_column] : 0;
}

/* Columns [from, until) of b into their panels; `from` is a multiple of PANEL. */
static void pack_columns(const panels *to, const REAL *b, size_t b_row, size_t b_column,
                         size_t from, size_t until) {
  for (size_t p = 0; p < to->n; p += PANEL_BLOCK)
    for (size_t j = from; j < until; j += PANEL)
      pack_panel(panel_at(to, p, j), b + p * b_row + j * b_column, b_row, b_column,
                 smaller(PANEL_BLOCK, to->n - p), smaller(PANEL, until - j));
}

/* The tile of n terms: a(i, p) = a[i * a_row + p * a_column], b[p][PANEL]. */
LOOP_INLINE void panel_tile(const REAL *restrict a, const size_t a_row, const size_t a_column,
                            const REAL *restrict b, size_t n, vector sum[PANEL_ROWS][2]) {
#pragma GCC unroll 6
  for (size_t i = 0; i < PANEL_ROWS; ++i) sum[i][0] = sum[i][1] = (vector){0};
#pragma GCC unroll 2
  for (size_t p = 0; p < n; ++p) {
    const vector left = vector_at(b + p * PANEL), right = vector_at(b + p * PANEL + VECTOR);
#pragma GCC unroll 6
    for (size_t i = 0; i < PANEL_ROWS; ++i) {
      const vector x = vector_of(a[i * a_row + p * a_column]);
      sum[i][0] = vector_add_product(sum[i][0], x, left);
      sum[i][1] = vector_add_product(sum[i][1], x, right);
    }
  }
}

/* How a tile reads its left factor. */
typedef enum left_form {
  LEFT_PACKED, /* [PANEL_ROWS][PANEL_BLOCK] */
  LEFT_ROWS,   /* rows `step` apart */
  LEFT_ACROSS  /* terms `step` apart, rows side by side */
} left_form;

/* A tile into c's first rows and columns. */
static void panel_tile_to(const REAL *restrict a, left_form form, size_t step,
                          const REAL *restrict b, REAL *restrict c, size_t c_row, size_t rows,
                          size_t columns, size_t n, int add) {
  vector sum[PANEL_ROWS][2];
  if (form == LEFT_PACKED)
    panel_tile(a, PANEL_BLOCK, 1, b, n, sum);
  else if (form == LEFT_ROWS)
    panel_tile(a, step, 1, b, n, sum);
  else
    panel_tile(a, 1, step, b, n, sum);
  if (rows == PANEL_ROWS && columns == PANEL) {
#pragma GCC unroll 6
    for (size_t i = 0; i < PANEL_ROWS; ++i) {
      REAL *to = c + i * c_row;
      vector_put(to, add ? vector_at(to) + sum[i][0] : sum[i][0]);
      vector_put(to + VECTOR, add ? vector_at(to + VECTOR) + sum[i][1] : sum[i][1]);
    }
    return;
  }
  REAL tile[PANEL_ROWS][PANEL];
#pragma GCC unroll 6
  for (size_t i = 0; i < PANEL_ROWS; ++i) {
    vector_put(tile[i], sum[i][0]);
    vector_put(tile[i] + VECTOR, sum[i][1]);
  }
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      c[i * c_row + j] = add ? c[i * c_row + j] + tile[i][j] : tile[i][j];
}

/* Up to PANEL_ROWS rows of m terms, near each other; what is missing is zero. */
static void pack_left(REAL *restrict to, const REAL *restrict a, size_t a_row, size_t a_column,
                      size_t rows, size_t m) {
  if (rows < PANEL_ROWS) memset(to, 0, LEFT * sizeof *to);
  for (size_t i = 0; i < rows; ++i) {
    if (a_column == 1)
      memcpy(to + i * PANEL_BLOCK, a + i * a_row, m * sizeof *to);
    else
      for (size_t p = 0; p < m; ++p) to[i * PANEL_BLOCK + p] = a[i * a_row + p * a_column];
  }
}

/* The first `columns` columns of c[i, j] (+)= sum over p < n of a(i, p) b[p, j], where
 * a(i, p) = a[i * a_row + p * a_column], one of the steps being 1. left: LEFT numbers of scratch.
 * Long rows are copied near each other, because rows a power of two apart would drive each other
 * out of the cache. */
static void gemm_panels(const REAL *a, size_t a_row, size_t a_column, const panels *b, REAL *c,
                        size_t c_row, size_t rows, size_t columns, size_t n, int add, REAL *left) {
  for (size_t p = 0; p < n || p == 0; p += PANEL_BLOCK) {
    const size_t m = smaller(PANEL_BLOCK, n - p);
    for (size_t group = 0; group < columns; group += PANEL_GROUP) {
      const size_t end = smaller(columns, group + PANEL_GROUP);
      for (size_t i = 0; i < rows; i += PANEL_ROWS) {
        const size_t high = smaller(PANEL_ROWS, rows - i);
        const REAL *from = a + i * a_row + p * a_column;
        left_form form = a_column != 1 ? LEFT_ACROSS : LEFT_ROWS;
        if (high < PANEL_ROWS || (a_column == 1 && m > PANEL_BLOCK / 2)) {
          pack_left(left, from, a_row, a_column, high, m);
          from = left;
          form = LEFT_PACKED;
        }
        for (size_t j = group; j < end; j += PANEL)
          panel_tile_to(from, form, a_column != 1 ? a_column : a_row, panel_at(b, p, j),
                        c + i * c_row + j, c_row, high, smaller(PANEL, end - j), m, add || p > 0);
      }
    }
  }
}
