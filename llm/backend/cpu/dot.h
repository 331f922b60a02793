/* Products of rows with rows, in registers. Part of backend_cpu_body.h.
 *
 * Nothing is packed, so this is for few rows against weights that are read once. Every number of
 * the result is computed in an order that depends on the length of its sum alone: a row's result is
 * the same whatever rows stand beside it. */

enum { DOT_BLOCK = 2048 / sizeof(REAL) }; /* numbers of a sum in one go */

/* The first `used` of four results. */
LOOP_INLINE void dot_put(const vector sum[4], REAL *c, size_t used, int add) {
  REAL four[4];
  vector_sums(sum, four);
#pragma GCC unroll 4
  for (size_t j = 0; j < used; ++j) c[j] = add ? c[j] + four[j] : four[j];
}

/* rows (1 to 3) of a against columns (1 to 4) of b, both known when this is compiled. Rows of b
 * that follow are fetched ahead, because with few rows of a memory is what takes the time. */
LOOP_INLINE void dot_tile(const REAL *a, size_t a_row, const REAL *b, size_t b_row, REAL *c,
                          size_t c_row, size_t n, int add, const size_t rows, const size_t columns,
                          const int ahead) {
  vector sum[3][4];
#pragma GCC unroll 3
  for (size_t i = 0; i < 3; ++i)
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) sum[i][j] = (vector){0};
  size_t p = 0;
  for (; p + VECTOR <= n; p += VECTOR) {
    vector right[4];
#pragma GCC unroll 4
    for (size_t j = 0; j < columns; ++j) {
      right[j] = vector_at(b + j * b_row + p);
      if (ahead) __builtin_prefetch(b + (j + 4) * b_row + p);
    }
#pragma GCC unroll 3
    for (size_t i = 0; i < rows; ++i) {
      const vector left = vector_at(a + i * a_row + p);
#pragma GCC unroll 4
      for (size_t j = 0; j < columns; ++j)
        sum[i][j] = vector_add_product(sum[i][j], left, right[j]);
    }
  }
  if (p < n)
    for (size_t i = 0; i < rows; ++i) {
      const vector left = vector_some(a + i * a_row + p, n - p);
      for (size_t j = 0; j < columns; ++j)
        sum[i][j] = vector_add_product(sum[i][j], left, vector_some(b + j * b_row + p, n - p));
    }
#pragma GCC unroll 3
  for (size_t i = 0; i < rows; ++i) dot_put(sum[i], c + i * c_row, columns, add);
}

/* All rows against `columns` rows of b. */
LOOP_INLINE void dot_columns(const REAL *a, size_t a_row, const REAL *b, size_t b_row, REAL *c,
                             size_t c_row, size_t rows, size_t n, int add, const size_t columns) {
  size_t i = 3;
  if (rows == 1) dot_tile(a, a_row, b, b_row, c, c_row, n, add, 1, columns, 1);
  if (rows == 2) dot_tile(a, a_row, b, b_row, c, c_row, n, add, 2, columns, 1);
  if (rows >= 3) dot_tile(a, a_row, b, b_row, c, c_row, n, add, 3, columns, 1);
  for (; i + 3 <= rows; i += 3)
    dot_tile(a + i * a_row, a_row, b, b_row, c + i * c_row, c_row, n, add, 3, columns, 0);
  for (; i < rows; ++i)
    dot_tile(a + i * a_row, a_row, b, b_row, c + i * c_row, c_row, n, add, 1, columns, 0);
}

/* c[i, j] (+)= sum over p of a[i, p] b[j, p], rows a_row, b_row, c_row apart. */
static void gemm_dot(const REAL *a, size_t a_row, const REAL *b, size_t b_row, REAL *c,
                     size_t c_row, size_t rows, size_t columns, size_t n, int add) {
  for (size_t p = 0; p < n || p == 0; p += DOT_BLOCK) {
    const size_t m = smaller(DOT_BLOCK, n - p);
    const int more = add || p > 0;
    size_t j = 0;
    for (; j + 4 <= columns; j += 4)
      dot_columns(a + p, a_row, b + j * b_row + p, b_row, c + j, c_row, rows, m, more, 4);
    for (; j < columns; ++j)
      dot_columns(a + p, a_row, b + j * b_row + p, b_row, c + j, c_row, rows, m, more, 1);
  }
}
