/* Multisets of responses: counting, and enumeration with their probabilities. Alias tables. */
#include "toy/lab/multiset.h"

#include "core/base/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t lab_multiset_count(size_t n_outcomes, size_t group_size) {
  if (n_outcomes == 0) return group_size == 0;
  size_t k = n_outcomes - 1 < group_size ? n_outcomes - 1 : group_size;
  size_t top = n_outcomes + group_size - 1 - k;
  size_t count = 1;
  for (size_t i = 1; i <= k; ++i) {
    if (__builtin_mul_overflow(count, top + i, &count)) return SIZE_MAX;
    count /= i; /* exact: the product of i consecutive integers is divisible by i! */
  }
  return count;
}

gl_status lab_block_init(lab_block *b, size_t n_outcomes, size_t group_size, gl_error *err) {
  *b = (lab_block){.n_outcomes = n_outcomes, .group_size = group_size};
  b->count = ARENA_GRID(&b->memory, double, n_outcomes, LAB_BLOCK);
  b->weight = ARENA_ARRAY(&b->memory, double, LAB_BLOCK);
  return arena_check(&b->memory, "a block of groups", err);
}

void lab_block_fini(lab_block *b) {
  arena_fini(&b->memory);
}

gl_status lab_multisets_init(lab_multisets *m, const double *q, size_t n_outcomes,
                             size_t group_size, gl_error *err) {
  *m = (lab_multisets){.n_outcomes = n_outcomes, .group_size = group_size};
  m->count = ARENA_ARRAY(&m->memory, size_t, n_outcomes);
  m->log_q = ARENA_ARRAY(&m->memory, double, n_outcomes);
  m->log_factorial = ARENA_ARRAY(&m->memory, double, group_size + 1);
  gl_status status = arena_check(&m->memory, "the multisets of a group", err);
  if (status != GL_OK) return status;
  for (size_t y = 0; y < n_outcomes; ++y) m->log_q[y] = log(q[y]);
  for (size_t g = 2; g <= group_size; ++g)
    m->log_factorial[g] = m->log_factorial[g - 1] + log((double)g);
  m->count[0] = group_size;
  return GL_OK;
}

void lab_multisets_fini(lab_multisets *m) {
  arena_fini(&m->memory);
}

static double multiset_probability(const lab_multisets *m) {
  double log_probability = m->log_factorial[m->group_size];
  for (size_t y = 0; y < m->n_outcomes; ++y)
    if (m->count[y] != 0)
      log_probability += (double)m->count[y] * m->log_q[y] - m->log_factorial[m->count[y]];
  return exp(log_probability);
}

/* Next composition of G into K parts, from (G,0,..,0) to (0,..,0,G): the rightmost nonzero part
 * except the last gives one to its right neighbour, which also receives the old value of the last
 * part. */
static void multiset_advance(lab_multisets *m) {
  size_t last = m->n_outcomes - 1, y = last;
  while (y > 0 && m->count[y - 1] == 0) --y;
  if (y == 0) {
    m->done = 1;
    return;
  }
  size_t tail = m->count[last];
  m->count[last] = 0;
  --m->count[y - 1];
  m->count[y] = tail + 1;
}

int lab_multisets_next(lab_multisets *m, lab_block *b) {
  size_t n = 0;
  for (; n < LAB_BLOCK && !m->done; ++n) {
    for (size_t y = 0; y < m->n_outcomes; ++y) b->count[y * LAB_BLOCK + n] = (double)m->count[y];
    b->weight[n] = multiset_probability(m);
    multiset_advance(m);
  }
  b->n = n;
  for (; n < LAB_BLOCK; ++n) {
    /* Unused columns repeat a real group so that computations on them stay defined. */
    for (size_t y = 0; y < m->n_outcomes; ++y)
      b->count[y * LAB_BLOCK + n] = y == 0 ? (double)m->group_size : 0;
    b->weight[n] = 0;
  }
  return b->n != 0;
}

gl_status lab_alias_init(lab_alias *a, const double *q, size_t n, gl_error *err) {
  *a = (lab_alias){.n = n};
  arena scratch = {0};
  a->accept = ARENA_ARRAY(&a->memory, uint32_t, n);
  a->other = ARENA_ARRAY(&a->memory, uint32_t, n);
  double *left = ARENA_ARRAY(&scratch, double, n);
  size_t *stack = ARENA_ARRAY(&scratch, size_t, n);
  gl_status status = arena_check(&a->memory, "an alias table", err);
  if (status == GL_OK) status = arena_check(&scratch, "an alias table", err);
  if (status != GL_OK) {
    arena_fini(&scratch);
    return status;
  }
  size_t small = 0, large = n; /* two stacks in one array, growing towards each other */
  for (size_t y = 0; y < n; ++y) {
    left[y] = q[y] * (double)n;
    a->accept[y] = UINT32_MAX;
    a->other[y] = (uint32_t)y;
    stack[left[y] < 1 ? small++ : --large] = y;
  }
  while (small > 0 && large < n) {
    size_t poor = stack[--small], rich = stack[large++];
    a->accept[poor] = (uint32_t)(left[poor] * 0x1p32);
    a->other[poor] = (uint32_t)rich;
    left[rich] -= 1 - left[poor];
    stack[left[rich] < 1 ? small++ : --large] = rich;
  }
  arena_fini(&scratch);
  return GL_OK;
}

void lab_alias_fini(lab_alias *a) {
  arena_fini(&a->memory);
}

/* --- random samples --- */
/* Samples random groups in blocks, vectorised over groups: Philox, alias table and counts. The
 * portable and the AVX2 version use integer arithmetic and give the same counts. */

/* --- portable version --- */

/* rng_block() at LANES addresses, index first + lane * step, each Philox4x32 round for all lanes.
 * The words are those of separate calls. */
enum { LANES = 16 };

INLINE void philox_lanes(rng_stream stream, uint64_t first, uint64_t step,
                         uint32_t out[4][LAB_BLOCK], size_t at) {
  uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
  uint32_t k0 = (uint32_t)stream.seed, k1 = (uint32_t)(stream.seed >> 32);
  for (size_t l = 0; l < LANES; ++l) {
    const uint64_t index = first + l * step;
    c0[l] = (uint32_t)index;
    c1[l] = (uint32_t)stream.entity;
    c2[l] = (uint32_t)(stream.entity >> 32);
    c3[l] = stream.purpose << 16 | (uint32_t)(index >> 32 & 0xffffu);
  }
  for (int round = 0; round < 10; ++round, k0 += PHILOX_W32_0, k1 += PHILOX_W32_1)
    for (size_t l = 0; l < LANES; ++l) {
      const uint64_t a = (uint64_t)PHILOX_M4x32_0 * c0[l], b = (uint64_t)PHILOX_M4x32_1 * c2[l];
      c0[l] = (uint32_t)(b >> 32) ^ c1[l] ^ k0;
      c2[l] = (uint32_t)(a >> 32) ^ c3[l] ^ k1;
      c1[l] = (uint32_t)b;
      c3[l] = (uint32_t)a;
    }
  memcpy(out[0] + at, c0, sizeof c0);
  memcpy(out[1] + at, c1, sizeof c1);
  memcpy(out[2] + at, c2, sizeof c2);
  memcpy(out[3] + at, c3, sizeof c3);
}

/* Philox words of one block for each of LAB_BLOCK groups. */
CLONES static void draw_words(rng_stream stream, uint64_t first, uint64_t step,
                              uint32_t out[4][LAB_BLOCK]) {
  for (size_t g = 0; g < LAB_BLOCK; g += LANES)
    philox_lanes(stream, first + g * step, step, out, g);
}

static void draw_plain(lab_block *b, const lab_alias *alias, rng_stream stream, uint64_t first) {
  const size_t blocks = (b->group_size + 3) / 4;
  uint32_t words[4][LAB_BLOCK];
  memset(b->count, 0, b->n_outcomes * LAB_BLOCK * sizeof *b->count);
  for (size_t i = 0; i < b->group_size; ++i) {
    if (i % 4 == 0) draw_words(stream, first * blocks + i / 4, blocks, words);
    for (size_t g = 0; g < LAB_BLOCK; ++g)
      b->count[lab_alias_draw(alias, words[i % 4][g]) * LAB_BLOCK + g] += 1;
  }
}

/* --- AVX2 version --- */
/* The AVX2 version samples PIECE groups together. Philox words and their products with the number
 * of responses are in 64-bit lanes, whose lower halves are the factors, so no round needs a mask or
 * a shuffle. Responses have 32 bits during the table lookup and one byte during counting. The
 * groups are ordered in the 64-bit lanes such that the packing instructions, which work on 128-bit
 * halves, restore the natural order. */

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define AVX2_INLINE static inline __attribute__((always_inline, target("avx2")))

enum { PIECE = 32, PAIRS = PIECE / 8, MOST_COUNTED = 255, MOST_RESPONSES = 64, IN_REGISTERS = 16 };

/* Two vectors of four groups are interleaved: a round waits for its products, and out-of-order
 * execution does not reach the next round. */
enum { HALVES = 2, ROUNDS = 10 };

/* Philox round keys, broadcast to all lanes. */
typedef struct keys {
  __m256i low[ROUNDS], high[ROUNDS];
} keys;

AVX2_INLINE void keys_of(rng_stream stream, keys *k) {
  uint32_t k0 = (uint32_t)stream.seed, k1 = (uint32_t)(stream.seed >> 32);
  for (int round = 0; round < ROUNDS; ++round, k0 += PHILOX_W32_0, k1 += PHILOX_W32_1) {
    k->low[round] = _mm256_set1_epi64x((int64_t)k0);
    k->high[round] = _mm256_set1_epi64x((int64_t)k1);
  }
}

/* rng_block() at the four addresses of each index[]. c[w] receives word w of the groups in the
 * lower halves of the lanes. */
AVX2_INLINE void philox8(rng_stream stream, const keys *k, const __m256i index[HALVES],
                         __m256i c[4][HALVES]) {
  const __m256i m0 = _mm256_set1_epi64x(PHILOX_M4x32_0), m1 = _mm256_set1_epi64x(PHILOX_M4x32_1);
  for (int h = 0; h < HALVES; ++h) {
    const __m256i high =
        _mm256_and_si256(_mm256_srli_epi64(index[h], 32), _mm256_set1_epi64x(0xffff));
    c[0][h] = index[h];
    c[1][h] = _mm256_set1_epi64x((int64_t)(uint32_t)stream.entity);
    c[2][h] = _mm256_set1_epi64x((int64_t)(stream.entity >> 32));
    c[3][h] = _mm256_or_si256(_mm256_set1_epi64x((int64_t)(stream.purpose << 16)), high);
  }
  for (int round = 0; round < ROUNDS; ++round)
    for (int h = 0; h < HALVES; ++h) {
      const __m256i a = _mm256_mul_epu32(c[0][h], m0), b = _mm256_mul_epu32(c[2][h], m1);
      const __m256i left = _mm256_xor_si256(c[1][h], k->low[round]);
      const __m256i right = _mm256_xor_si256(c[3][h], k->high[round]);
      c[0][h] = _mm256_xor_si256(_mm256_srli_epi64(b, 32), left);
      c[2][h] = _mm256_xor_si256(_mm256_srli_epi64(a, 32), right);
      c[1][h] = b;
      c[3][h] = a;
    }
}

/* An alias table prepared for lookups; kept in registers if it is small enough. */
typedef struct table8 {
  const lab_alias *alias;
  int in_registers;
  __m256i n, accept[2], other[2];
} table8;

AVX2_INLINE table8 table_of(const lab_alias *alias) {
  uint32_t accept[IN_REGISTERS] = {0}, other[IN_REGISTERS] = {0};
  table8 t = {.alias = alias,
              .in_registers = alias->n <= IN_REGISTERS,
              .n = _mm256_set1_epi64x((int64_t)alias->n)};
  if (t.in_registers) {
    memcpy(accept, alias->accept, alias->n * sizeof *accept);
    memcpy(other, alias->other, alias->n * sizeof *other);
  }
  for (int half = 0; half < 2; ++half) {
    t.accept[half] = _mm256_loadu_si256((const __m256i *)(const void *)(accept + 8 * half));
    t.other[half] = _mm256_loadu_si256((const __m256i *)(const void *)(other + 8 * half));
  }
  return t;
}

/* table[column] for eight columns below 16. The sign bit of `upper` is set if the column is 8 or
 * more. */
AVX2_INLINE __m256i look_up(const __m256i table[2], __m256i column, __m256i upper) {
  const __m256 low = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(table[0], column));
  const __m256 high = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(table[1], column));
  return _mm256_castps_si256(_mm256_blendv_ps(low, high, _mm256_castsi256_ps(upper)));
}

/* lab_alias_draw() for eight words, four in each argument. */
AVX2_INLINE __m256i draw8(const table8 *t, __m256i words, __m256i more) {
  const __m256 a = _mm256_castsi256_ps(_mm256_mul_epu32(words, t->n));
  const __m256 b = _mm256_castsi256_ps(_mm256_mul_epu32(more, t->n));
  const __m256i column = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
  const __m256i fraction = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
  __m256i accept, other;
  if (t->in_registers) {
    const __m256i upper = _mm256_slli_epi32(column, 28);
    accept = look_up(t->accept, column, upper);
    other = look_up(t->other, column, upper);
  } else {
    accept = _mm256_i32gather_epi32((const int *)(const void *)t->alias->accept, column, 4);
    other = _mm256_i32gather_epi32((const int *)(const void *)t->alias->other, column, 4);
  }
  /* unsigned fraction >= accept, because AVX2 has no unsigned comparison */
  const __m256i leave = _mm256_cmpeq_epi32(_mm256_max_epu32(fraction, accept), fraction);
  return _mm256_blendv_epi8(column, other, leave);
}

AVX2_INLINE __m256i addresses(uint64_t first, uint64_t step, size_t k) {
  const uint64_t at = first + 2 * k * step;
  return _mm256_set_epi64x((int64_t)(at + 17 * step), (int64_t)(at + 16 * step),
                           (int64_t)(at + step), (int64_t)at);
}

/* Samples responses 4 k .. 4 k + 3 of PIECE groups, one byte each; `first` is the address of block
 * k of the first group. */
AVX2_INLINE void draw_four(const table8 *t, rng_stream stream, const keys *k, uint64_t first,
                           uint64_t step, __m256i drawn[4]) {
  __m256i response[4][PAIRS];
  for (size_t p = 0; p < PAIRS; ++p) {
    const __m256i index[HALVES] = {addresses(first, step, 2 * p),
                                   addresses(first, step, 2 * p + 1)};
    __m256i word[4][HALVES];
    philox8(stream, k, index, word);
    for (int w = 0; w < 4; ++w) response[w][p] = draw8(t, word[w][0], word[w][1]);
  }
  for (int w = 0; w < 4; ++w)
    drawn[w] = _mm256_packus_epi16(_mm256_packus_epi32(response[w][0], response[w][1]),
                                   _mm256_packus_epi32(response[w][2], response[w][3]));
}

/* Counts how often y occurs in each of PIECE groups. */
AVX2_INLINE void count_one(const __m256i *drawn, size_t group_size, size_t y, double *count) {
  const __m256i wanted = _mm256_set1_epi8((char)y);
  uint8_t bytes[PIECE];
  __m256i sum = _mm256_setzero_si256();
  for (size_t i = 0; i < group_size; ++i)
    sum = _mm256_sub_epi8(sum, _mm256_cmpeq_epi8(drawn[i], wanted));
  _mm256_storeu_si256((__m256i *)(void *)bytes, sum);
  for (size_t g = 0; g < PIECE; g += 4) {
    int four;
    memcpy(&four, bytes + g, sizeof four);
    const __m128i whole = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(four));
    _mm256_storeu_pd(count + g, _mm256_cvtepi32_pd(whole));
  }
}

AVX2 static void draw_avx2(lab_block *b, const lab_alias *alias, rng_stream stream,
                           uint64_t first) {
  const size_t blocks = (b->group_size + 3) / 4;
  const table8 t = table_of(alias);
  keys k;
  keys_of(stream, &k);
  __m256i drawn[MOST_COUNTED + 1];
  for (size_t g = 0; g < LAB_BLOCK; g += PIECE) {
    for (size_t i = 0; i < blocks; ++i)
      draw_four(&t, stream, &k, (first + g) * blocks + i, blocks, drawn + 4 * i);
    for (size_t y = 0; y < b->n_outcomes; ++y)
      count_one(drawn, b->group_size, y, b->count + y * LAB_BLOCK + g);
  }
}

static int avx2_fits(const lab_block *b) {
  return b->group_size <= MOST_COUNTED && b->n_outcomes <= MOST_RESPONSES &&
         __builtin_cpu_supports("avx2");
}
#else
static int avx2_fits(const lab_block *b) {
  (void)b;
  return 0;
}

static void draw_avx2(lab_block *b, const lab_alias *alias, rng_stream stream, uint64_t first) {
  draw_plain(b, alias, stream, first);
}
#endif

/* --- choice of version --- */

int lab_block_draw_as(lab_block *b, const lab_alias *alias, rng_stream stream, uint64_t first,
                      size_t n, double total, lab_draw_form form) {
  switch (form) {
  case LAB_DRAW_PLAIN:
    draw_plain(b, alias, stream, first);
    break;
  case LAB_DRAW_AVX2:
    if (!avx2_fits(b)) return 0;
    draw_avx2(b, alias, stream, first);
    break;
  }
  b->n = n;
  const double weight = 1 / total;
  for (size_t g = 0; g < n; ++g) b->weight[g] = weight;
  for (size_t g = n; g < LAB_BLOCK; ++g) b->weight[g] = 0;
  /* Unused columns repeat a real group so that computations on them stay defined. */
  for (size_t y = 0; y < b->n_outcomes && n < LAB_BLOCK; ++y)
    for (size_t g = n; g < LAB_BLOCK; ++g)
      b->count[y * LAB_BLOCK + g] = y == 0 ? (double)b->group_size : 0;
  return 1;
}

void lab_block_draw(lab_block *b, const lab_alias *alias, rng_stream stream, uint64_t first,
                    size_t n, double total) {
  if (!lab_block_draw_as(b, alias, stream, first, n, total, LAB_DRAW_AVX2))
    lab_block_draw_as(b, alias, stream, first, n, total, LAB_DRAW_PLAIN);
}
