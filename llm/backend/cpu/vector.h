/* Vectors of numbers in registers. `vector` has 32 bytes with AVX2 and AVX-512, else 16; the order
 * in which a sum's terms are added depends on its size. `wide_vector` holds tiles of products
 * (product.h) and has 64 bytes with AVX-512, else the same. There each element is a separate sum,
 * whose bits do not depend on the vector's size. Part of template.c, compiled once per
 * number type and instruction set. */

#ifdef __AVX2__
#include <immintrin.h>
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#ifdef FORM_NEON
#include <arm_neon.h>
#endif

#define LOOP_INLINE static inline __attribute__((always_inline))

typedef REAL vector __attribute__((vector_size(VECTOR_BYTES)));

enum { VECTOR = VECTOR_BYTES / sizeof(REAL) }; /* numbers of a vector */

/* Loads the VECTOR numbers at p, and stores them; p need not be aligned. */
LOOP_INLINE vector vector_at(const REAL *p) {
  vector v;
  memcpy(&v, p, sizeof v);
  return v;
}

LOOP_INLINE void vector_put(REAL *p, vector v) {
  memcpy(p, &v, sizeof v);
}

/* The first n < VECTOR numbers at p, then zeros. */
LOOP_INLINE vector vector_some(const REAL *p, size_t n) {
  REAL some[VECTOR] = {0};
  for (size_t i = 0; i < n; ++i) some[i] = p[i];
  return vector_at(some);
}

/* vector_add_product is sum + a b per element, rounded once if the machine has fused
 * multiply-addition. vector_of has x in every element. The fused form is written explicitly,
 * because the compiler may fuse in one loop and not in another. Then a row's bits would depend on
 * the loop that computes it, and so on the number of rows. */
#if defined(__AVX2__) && defined(__FMA__)
#if IS_DOUBLE
LOOP_INLINE vector vector_add_product(vector sum, vector a, vector b) {
  return (vector)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)sum);
}
LOOP_INLINE vector vector_of(REAL x) {
  return (vector)_mm256_set1_pd(x);
}
#else
LOOP_INLINE vector vector_add_product(vector sum, vector a, vector b) {
  return (vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
}
LOOP_INLINE vector vector_of(REAL x) {
  return (vector)_mm256_set1_ps(x);
}
#endif
#elif defined(FORM_NEON)
#if IS_DOUBLE
LOOP_INLINE vector vector_add_product(vector sum, vector a, vector b) {
  return (vector)vfmaq_f64((float64x2_t)sum, (float64x2_t)a, (float64x2_t)b);
}
LOOP_INLINE vector vector_of(REAL x) {
  return (vector)vdupq_n_f64(x);
}
#else
LOOP_INLINE vector vector_add_product(vector sum, vector a, vector b) {
  return (vector)vfmaq_f32((float32x4_t)sum, (float32x4_t)a, (float32x4_t)b);
}
LOOP_INLINE vector vector_of(REAL x) {
  return (vector)vdupq_n_f32(x);
}
#endif
#else
LOOP_INLINE vector vector_add_product(vector sum, vector a, vector b) {
#if defined(FP_FAST_FMA) && defined(FP_FAST_FMAF)
  for (size_t i = 0; i < VECTOR; ++i)
    sum[i] = IS_DOUBLE ? (REAL)fma((double)a[i], (double)b[i], (double)sum[i])
                       : (REAL)fmaf((float)a[i], (float)b[i], (float)sum[i]);
  return sum;
#else
  return sum + a * b;
#endif
}
LOOP_INLINE vector vector_of(REAL x) {
  vector v = {0};
  for (size_t i = 0; i < VECTOR; ++i) v[i] = x;
  return v;
}
#endif

/* The operations above for wide_vector: number of elements, load, store, sum + a b, and x in every
 * element. */
#ifdef __AVX512F__
typedef REAL wide_vector __attribute__((vector_size(64)));
enum { WIDE = 64 / sizeof(REAL) };
LOOP_INLINE wide_vector wide_at(const REAL *p) {
  wide_vector v;
  memcpy(&v, p, sizeof v);
  return v;
}
LOOP_INLINE void wide_put(REAL *p, wide_vector v) {
  memcpy(p, &v, sizeof v);
}
#if IS_DOUBLE
LOOP_INLINE wide_vector wide_add_product(wide_vector sum, wide_vector a, wide_vector b) {
  return (wide_vector)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)sum);
}
LOOP_INLINE wide_vector wide_of(REAL x) {
  return (wide_vector)_mm512_set1_pd(x);
}
#else
LOOP_INLINE wide_vector wide_add_product(wide_vector sum, wide_vector a, wide_vector b) {
  return (wide_vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
}
LOOP_INLINE wide_vector wide_of(REAL x) {
  return (wide_vector)_mm512_set1_ps(x);
}
#endif
#else
typedef vector wide_vector;
enum { WIDE = VECTOR };
#define wide_at vector_at
#define wide_put vector_put
#define wide_add_product vector_add_product
#define wide_of vector_of
#endif

/* four[i] = the sum of v[i]'s elements, added in pairs. Every dot product ends here, so that all
 * have the same order of additions. */
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

/* Transposes a square of VECTOR rows: to[j * to_row + i] = from[i * from_row + j]. */
#if defined(__AVX2__) && !IS_DOUBLE
LOOP_INLINE void vector_transpose(REAL *to, size_t to_row, const REAL *from, size_t from_row) {
  __m256 r[8], pair[8], four[8];
#pragma GCC unroll 8
  for (size_t i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_row);
#pragma GCC unroll 4
  for (size_t i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
#pragma GCC unroll 2
  for (size_t i = 0; i < 8; i += 4) {
    four[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
    four[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee);
    four[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
    four[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_row, _mm256_permute2f128_ps(four[i], four[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_row, _mm256_permute2f128_ps(four[i], four[i + 4], 0x31));
  }
}
#else
LOOP_INLINE void vector_transpose(REAL *to, size_t to_row, const REAL *from, size_t from_row) {
  for (size_t i = 0; i < VECTOR; ++i)
    for (size_t j = 0; j < VECTOR; ++j) to[j * to_row + i] = from[i * from_row + j];
}
#endif

/* --- dot products --- */

/* Row-wise products of few rows (PRODUCT_ROW_BY_ROW): c = a b^T by dot products in registers.
 *
 * Nothing is packed, because with few rows each weight is read only once. The order of a sum
 * depends only on its length, so a row's bits do not depend on the rows computed with it. */

enum { DOT_BLOCK = 2048 / sizeof(REAL) }; /* terms summed before c is written */

/* Writes the first `used` of four dot products to c (add: adds them). */
LOOP_INLINE void dot_put(const vector sum[4], REAL *c, size_t used, int add) {
  REAL four[4];
  vector_sums(sum, four);
#pragma GCC unroll 4
  for (size_t j = 0; j < used; ++j) c[j] = add ? c[j] + four[j] : four[j];
}

/* c [rows, columns] (+)= a [rows, n] b [columns, n]^T for 1 to 3 rows and 1 to 4 columns, which are
 * constants when inlined. `ahead`: prefetches the next four rows of b, because with few rows of a
 * most time is spent reading b. */
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

/* dot_tile() for any number of rows; 1 to 4 columns. */
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

/* c [rows, columns] (+)= a [rows, n] b [columns, n]^T; the rows of a, b and c are a_row, b_row and
 * c_row numbers apart. */
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
