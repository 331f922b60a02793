/* Matrix products of one thread, in registers. Part of backend_cpu_body.h.
 *
 * Every number of the result is computed in an order that depends on the length of its sum alone,
 * not on how many rows or columns there are: so a row's result is the same whatever rows stand
 * beside it. */

#ifdef __AVX2__
#include <immintrin.h>
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#define LOOP_INLINE static inline __attribute__((always_inline))

typedef REAL vector __attribute__((vector_size(VECTOR_BYTES)));

enum {
  VECTOR = VECTOR_BYTES / sizeof(REAL),
  DOT_BLOCK = 2048 / sizeof(REAL), /* numbers of a sum in one go */
  OUTER_ROWS = 6,                  /* register tile of an outer product */
  OUTER_COLUMNS = 2 * VECTOR,
  OUTER_BLOCK = 256,                                       /* numbers of a sum in one go */
  OUTER_PANEL = 1024 / sizeof(REAL),                       /* columns packed at a time */
  OUTER_SCRATCH = OUTER_BLOCK * (OUTER_PANEL + OUTER_ROWS) /* numbers */
};

LOOP_INLINE vector vector_at(const REAL *p) {
  vector v;
  memcpy(&v, p, sizeof v);
  return v;
}

LOOP_INLINE void vector_put(REAL *p, vector v) {
  memcpy(p, &v, sizeof v);
}

/* The first n numbers at p, then zeros. */
LOOP_INLINE vector vector_some(const REAL *p, size_t n) {
  REAL some[VECTOR] = {0};
  for (size_t i = 0; i < n; ++i) some[i] = p[i];
  return vector_at(some);
}

/* The sums over the numbers of four vectors, as four[4], added in pairs: every dot product ends
 * here, so the order is the same for all. */
#ifdef __AVX2__
#if IS_DOUBLE
LOOP_INLINE void vector_sums(const vector v[4], REAL four[4]) {
  const __m256d ab = _mm256_hadd_pd((__m256d)v[0], (__m256d)v[1]);
  const __m256d cd = _mm256_hadd_pd((__m256d)v[2], (__m256d)v[3]);
  _mm_storeu_pd(four, _mm_add_pd(_mm256_castpd256_pd128(ab), _mm256_extractf128_pd(ab, 1)));
  _mm_storeu_pd(four + 2, _mm_add_pd(_mm256_castpd256_pd128(cd), _mm256_extractf128_pd(cd, 1)));
}
#else
LOOP_INLINE void vector_sums(const vector v[4], REAL four[4]) {
  const __m256 ab = _mm256_hadd_ps((__m256)v[0], (__m256)v[1]);
  const __m256 cd = _mm256_hadd_ps((__m256)v[2], (__m256)v[3]), all = _mm256_hadd_ps(ab, cd);
  _mm_storeu_ps(four, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
}
#endif
#else
LOOP_INLINE void vector_sums(const vector v[4], REAL four[4]) {
  for (size_t i = 0; i < 4; ++i) {
    REAL x[VECTOR];
    memcpy(x, &v[i], sizeof x);
    for (size_t half = VECTOR / 2; half > 0; half /= 2)
      for (size_t j = 0; j < half; ++j) x[j] += x[j + half];
    four[i] = x[0];
  }
}
#endif

/* --- both factors run along the sum: c[i, j] (+)= sum over p of a[i, p] b[j, p] --- */

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
      for (size_t j = 0; j < columns; ++j) sum[i][j] += left * right[j];
    }
  }
  if (p < n)
    for (size_t i = 0; i < rows; ++i) {
      const vector left = vector_some(a + i * a_row + p, n - p);
      for (size_t j = 0; j < columns; ++j)
        sum[i][j] += left * vector_some(b + j * b_row + p, n - p);
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

/* --- the right factor runs across it: c[i, j] (+)= sum over p of a(i, p) b[p, j],
 * a(i, p) = a[i * a_row + p * a_column] --- */

/* A full tile from packed factors: a[p][OUTER_ROWS], b[p][OUTER_COLUMNS]. */
LOOP_INLINE void outer_tile(const REAL *restrict a, const REAL *restrict b, size_t n,
                            vector sum[OUTER_ROWS][2]) {
#pragma GCC unroll 6
  for (size_t i = 0; i < OUTER_ROWS; ++i) sum[i][0] = sum[i][1] = (vector){0};
  for (size_t p = 0; p < n; ++p) {
    const vector left = vector_at(b + p * OUTER_COLUMNS);
    const vector right = vector_at(b + p * OUTER_COLUMNS + VECTOR);
#pragma GCC unroll 6
    for (size_t i = 0; i < OUTER_ROWS; ++i) {
      sum[i][0] += a[p * OUTER_ROWS + i] * left;
      sum[i][1] += a[p * OUTER_ROWS + i] * right;
    }
  }
}

static void outer_tile_to(const REAL *restrict a, const REAL *restrict b, REAL *restrict c,
                          size_t c_row, size_t rows, size_t columns, size_t n, int add) {
  vector sum[OUTER_ROWS][2];
  outer_tile(a, b, n, sum);
  if (rows == OUTER_ROWS && columns == OUTER_COLUMNS) {
#pragma GCC unroll 6
    for (size_t i = 0; i < OUTER_ROWS; ++i) {
      REAL *to = c + i * c_row;
      vector_put(to, add ? vector_at(to) + sum[i][0] : sum[i][0]);
      vector_put(to + VECTOR, add ? vector_at(to + VECTOR) + sum[i][1] : sum[i][1]);
    }
    return;
  }
  REAL tile[OUTER_ROWS][OUTER_COLUMNS];
#pragma GCC unroll 6
  for (size_t i = 0; i < OUTER_ROWS; ++i) {
    vector_put(tile[i], sum[i][0]);
    vector_put(tile[i] + VECTOR, sum[i][1]);
  }
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      c[i * c_row + j] = add ? c[i * c_row + j] + tile[i][j] : tile[i][j];
}

/* b's n rows and `columns` columns as panels [n][OUTER_COLUMNS], the last filled with zeros. */
static void outer_pack_right(REAL *restrict to, const REAL *restrict b, size_t b_row, size_t n,
                             size_t columns) {
  for (size_t j = 0; j < columns; j += OUTER_COLUMNS) {
    const size_t some = smaller(OUTER_COLUMNS, columns - j);
    for (size_t p = 0; p < n; ++p, to += OUTER_COLUMNS) {
      if (some == OUTER_COLUMNS) {
        memcpy(to, b + p * b_row + j, OUTER_COLUMNS * sizeof *to);
        continue;
      }
      for (size_t s = 0; s < OUTER_COLUMNS; ++s) to[s] = s < some ? b[p * b_row + j + s] : 0;
    }
  }
}

static void outer_pack_left(REAL *restrict to, const REAL *restrict a, size_t a_row,
                            size_t a_column, size_t rows, size_t n) {
  if (rows < OUTER_ROWS) memset(to, 0, n * OUTER_ROWS * sizeof *to);
  if (a_row == 1 && rows == OUTER_ROWS) { /* along the rows, that memory is read in order */
    for (size_t p = 0; p < n; ++p)
#pragma GCC unroll 6
      for (size_t i = 0; i < OUTER_ROWS; ++i) to[p * OUTER_ROWS + i] = a[i + p * a_column];
    return;
  }
  for (size_t i = 0; i < rows; ++i)
    for (size_t p = 0; p < n; ++p) to[p * OUTER_ROWS + i] = a[i * a_row + p * a_column];
}

/* One row, nothing packed; the same order of the sum, bit for bit. */
static void outer_row(const REAL *restrict a, size_t a_column, const REAL *restrict b, size_t b_row,
                      REAL *restrict c, size_t columns, size_t n, int add) {
  size_t j = 0;
  for (; j + 2 * VECTOR <= columns; j += 2 * VECTOR) {
    vector left = {0}, right = {0};
    for (size_t p = 0; p < n; ++p) {
      left += a[p * a_column] * vector_at(b + p * b_row + j);
      right += a[p * a_column] * vector_at(b + p * b_row + j + VECTOR);
    }
    vector_put(c + j, add ? vector_at(c + j) + left : left);
    vector_put(c + j + VECTOR, add ? vector_at(c + j + VECTOR) + right : right);
  }
  /* In vectors, too: a scalar loop might round its products before it adds them. */
  for (; j < columns; j += VECTOR) {
    const size_t some = smaller(VECTOR, columns - j);
    vector sum = {0};
    for (size_t p = 0; p < n; ++p) sum += a[p * a_column] * vector_some(b + p * b_row + j, some);
    for (size_t s = 0; s < some; ++s) c[j + s] = add ? c[j + s] + sum[s] : sum[s];
  }
}

/* scratch: OUTER_SCRATCH numbers. */
static void gemm_outer(const REAL *a, size_t a_row, size_t a_column, const REAL *b, size_t b_row,
                       REAL *c, size_t c_row, size_t rows, size_t columns, size_t n, int add,
                       REAL *scratch) {
  REAL *const right = scratch, *const left = scratch + OUTER_BLOCK * OUTER_PANEL;
  for (size_t p = 0; p < n || p == 0; p += OUTER_BLOCK) {
    const size_t m = smaller(OUTER_BLOCK, n - p);
    const int more = add || p > 0;
    if (rows <= 2) {
      for (size_t i = 0; i < rows; ++i)
        outer_row(a + i * a_row + p * a_column, a_column, b + p * b_row, b_row, c + i * c_row,
                  columns, m, more);
      continue;
    }
    for (size_t j = 0; j < columns; j += OUTER_PANEL) {
      const size_t wide = smaller(OUTER_PANEL, columns - j);
      outer_pack_right(right, b + p * b_row + j, b_row, m, wide);
      for (size_t i = 0; i < rows; i += OUTER_ROWS) {
        const size_t high = smaller(OUTER_ROWS, rows - i);
        outer_pack_left(left, a + i * a_row + p * a_column, a_row, a_column, high, m);
        for (size_t s = 0; s < wide; s += OUTER_COLUMNS)
          outer_tile_to(left, right + s * m, c + i * c_row + j + s, c_row, high,
                        smaller(OUTER_COLUMNS, wide - s), m, more);
      }
    }
  }
}
