/* Products of few rows, row by row (PRODUCT_ROW_BY_ROW): c = a b^T by dot products in registers.
 * Part of the template body.h, compiled once for every number type and instruction set.
 *
 * Nothing is packed, because each weight is read only once for few rows. The order in which a
 * number of the result is summed depends on the length of the sum alone, so a row has the same bits
 * whatever rows are computed with it. */

enum { DOT_BLOCK = 2048 / sizeof(REAL) }; /* terms that are summed before c is written */

/* The first `used` of four dot products into (add: added to) c. */
LOOP_INLINE void dot_put(const vector sum[4], REAL *c, size_t used, int add) {
  REAL four[4];
  vector_sums(sum, four);
#pragma GCC unroll 4
  for (size_t j = 0; j < used; ++j) c[j] = add ? c[j] + four[j] : four[j];
}

/* c [rows, columns] (+)= a [rows, n] b [columns, n]^T for 1 to 3 rows and 1 to 4 columns, which are
 * constants where this is inlined. `ahead`: prefetches the next four rows of b, because with few
 * rows of a the time is spent on reading b. */
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

/* The same for any number of rows; 1 to 4 columns. */
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

/* c [rows, columns] (+)= a [rows, n] b [columns, n]^T; the rows of a, b and c begin a_row, b_row
 * and c_row numbers apart. */
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
