/* Attention divides its work by how much there is: a row has the same bits whatever the division.
 * Its results agree with the CPU's where sequences end beside the ends of tiles. */
#include "llm/backend/open/open.h"
#include "tests/support/llm_backend_cases.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("llm: cuda attention");

static backend *cuda(number_type type) {
  gl_error err = {0};
  backend *b;
  if (backend_new(&b, BACKEND_CUDA, type, 1, &err) == GL_OK) return b;
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no CUDA device"));
  return NULL;
}

/* Kept outputs that are the same in the first n numbers. */
static void check_same(const case_run *a, const case_run *b, size_t output, size_t n) {
  const case_output *x = &a->output[output], *y = &b->output[output];
  CU_ASSERT(n > 0 && x->n >= n && y->n >= n);
  const int same = memcmp(x->value, y->value, n * sizeof *x->value) == 0;
  if (!same) fprintf(stderr, "%s differs\n", x->name);
  CU_ASSERT(same);
}

/* Kept outputs that differ by at most `bound` times the largest number; NaN differs. */
static void check_near(const case_run *got, const case_run *want, double bound) {
  for (size_t o = 0; o < got->n_outputs; ++o) {
    const case_output *x = &got->output[o], *y = &want->output[o];
    double most = 0;
    size_t wrong = 0;
    for (size_t j = 0; j < y->n; ++j) most = fmax(most, fabs(y->value[j]));
    for (size_t j = 0; j < y->n; ++j)
      if (!(fabs(x->value[j] - y->value[j]) <= bound * most)) ++wrong;
    if (wrong > 0) fprintf(stderr, "%s: %zu of %zu differ\n", x->name, wrong, y->n);
    CU_ASSERT(wrong == 0);
  }
}

/* --- packed sequences: tensor cores take 16 or 32 rows a warp --- */

/* `copies` sequences of `length` rows each, all alike. */
static void packed(case_run *r, size_t length, size_t copies, head_shape h) {
  const size_t rows = length * copies, qk = (h.q + h.kv) * h.dim, qkv = qk + h.kv * h.dim;
  int32_t *start = calloc(copies + 1, sizeof *start);
  for (size_t s = 0; s <= copies; ++s) start[s] = (int32_t)(s * length);
  const packed_rows p = {rows, copies, length, case_integers(r, start, copies + 1)};
  free(start);
  const size_t width[] = {qk, qkv, h.q * h.dim}, bytes = r->b->element;
  void *one[3], *all[3];
  for (size_t i = 0; i < 3; ++i) {
    one[i] = case_draw(r, length * width[i], 1);
    all[i] = case_zeros(r, rows * width[i]);
    for (size_t s = 0; s < copies; ++s) OP(r, copy)
    (r->b, (char *)all[i] + s * length * width[i] * bytes, one[i], length * width[i] * bytes);
  }
  void *out = case_zeros(r, rows * width[2]), *lse = case_zeros_master(r, rows * h.q);
  void *dqk = case_zeros(r, rows * qk), *dqkv = case_zeros(r, rows * qkv);
  OP(r, attention)(r->b, out, lse, all[0], all[1], p, h);
  OP(r, attention_backward)(r->b, dqk, dqkv, all[2], out, lse, all[0], all[1], p, h);
  case_keep(r, "out", out, rows * width[2]);
  case_keep_master(r, "lse", lse, rows * h.q);
  case_keep(r, "dqk", dqk, rows * qk);
  case_keep(r, "dqkv", dqkv, rows * qkv);
}

/* One short sequence is too little for blocks of 128 rows on any device, 140 are enough. */
TEST(a_sequence_has_the_same_bits_alone_and_among_many) {
  backend *b = cuda(NUMBER_BF16);
  if (b == NULL) SKIP("no CUDA device");
  static const struct {
    size_t length, copies;
    head_shape heads;
  } form[] = {{70, 140, {1, 1, 64}}, {65, 140, {1, 1, 128}}, {200, 5, {2, 1, 128}}};
  for (size_t i = 0; i < sizeof form / sizeof *form; ++i) {
    const head_shape h = form[i].heads;
    const size_t n = form[i].length;
    case_run alone, many;
    case_begin(&alone, b, NUMBER_BF16, NUMBER_F32);
    case_begin(&many, b, NUMBER_BF16, NUMBER_F32);
    packed(&alone, n, 1, h);
    packed(&many, n, form[i].copies, h);
    check_same(&alone, &many, 0, n * h.q * h.dim);
    check_same(&alone, &many, 1, n * h.q);
    check_same(&alone, &many, 2, n * (h.q + h.kv) * h.dim);
    check_same(&alone, &many, 3, n * (h.q + 2 * h.kv) * h.dim);
    CU_ASSERT_EQUAL(b->ops->status(b, &(gl_error){0}), GL_OK);
    case_end(&alone);
    case_end(&many);
  }
  backend_free(b);
}

/* --- packed sequences: tiles have 32, 64 or 128 rows --- */

enum { SEQUENCES = 7, MOST = 257 };

/* Forward and backward over sequences of these lengths. The numbers of sequences with odd number
 * are NaN if `poisoned`. */
static void ragged(case_run *r, const int32_t *length, head_shape h, int poisoned) {
  int32_t start[SEQUENCES + 1] = {0};
  for (size_t s = 0; s < SEQUENCES; ++s) start[s + 1] = start[s] + length[s];
  const size_t rows = (size_t)start[SEQUENCES], qk = (h.q + h.kv) * h.dim, qkv = qk + h.kv * h.dim;
  const packed_rows p = {rows, SEQUENCES, MOST, case_integers(r, start, SEQUENCES + 1)};
  const size_t width[] = {qk, qkv, h.q * h.dim}, bytes = r->b->element;
  void *all[3];
  for (size_t i = 0; i < 3; ++i) {
    all[i] = case_draw(r, rows * width[i], i == 0 ? 3 : 1);
    for (size_t s = 1; poisoned && s < SEQUENCES; s += 2) {
      const size_t n = (size_t)length[s] * width[i];
      double *nan = malloc(n * sizeof *nan);
      for (size_t j = 0; j < n; ++j) nan[j] = NAN;
      OP(r, copy)
      (r->b, (char *)all[i] + (size_t)start[s] * width[i] * bytes, case_put(r, nan, n), n * bytes);
      free(nan);
    }
  }
  void *out = case_zeros(r, rows * width[2]), *lse = case_zeros_master(r, rows * h.q);
  void *dqk = case_draw(r, rows * qk, 1), *dqkv = case_draw(r, rows * qkv, 1);
  OP(r, attention)(r->b, out, lse, all[0], all[1], p, h);
  OP(r, attention_backward)(r->b, dqk, dqkv, all[2], out, lse, all[0], all[1], p, h);
  case_keep(r, "out", out, rows * width[2]);
  case_keep_master(r, "lse", lse, rows * h.q);
  case_keep(r, "dqk", dqk, rows * qk);
  case_keep(r, "dqkv", dqkv, rows * qkv);
}

static const struct {
  int32_t length[SEQUENCES];
  head_shape heads;
} ends[] = {{{1, 63, 64, 65, 127, 257, 33}, {2, 1, 128}},
            {{129, 1, 191, 128, 31, 257, 32}, {2, 2, 128}},
            {{129, 63, 64, 65, 127, 257, 1}, {2, 1, 64}}};
enum { ENDS = sizeof ends / sizeof *ends };

TEST(sequences_that_end_beside_tiles_agree_with_the_cpu_within_2e_2) {
  gl_error err = {0};
  backend *b = cuda(NUMBER_BF16), *cpu;
  if (b == NULL) SKIP("no CUDA device");
  CU_ASSERT_EQUAL_FATAL(backend_new(&cpu, BACKEND_CPU, NUMBER_F64, 1, &err), GL_OK);
  for (size_t i = 0; i < ENDS; ++i) {
    case_run got, want;
    case_begin(&got, b, NUMBER_BF16, NUMBER_F32);
    case_begin(&want, cpu, NUMBER_BF16, NUMBER_F32);
    ragged(&got, ends[i].length, ends[i].heads, 0);
    ragged(&want, ends[i].length, ends[i].heads, 0);
    check_near(&got, &want, 2e-2);
    CU_ASSERT_EQUAL(b->ops->status(b, &err), GL_OK);
    case_end(&got);
    case_end(&want);
  }
  backend_free(cpu);
  backend_free(b);
}

/* Tiles reach into the rows of the next sequence, which must not count even as 0 * NaN. */
TEST(a_sequence_has_the_same_bits_among_nan) {
  backend *b = cuda(NUMBER_BF16);
  if (b == NULL) SKIP("no CUDA device");
  for (size_t i = 0; i < ENDS; i += 2) { /* each head size once */
    const head_shape h = ends[i].heads;
    const size_t width[] = {h.q * h.dim, h.q, (h.q + h.kv) * h.dim, (h.q + 2 * h.kv) * h.dim};
    case_run clean, among;
    case_begin(&clean, b, NUMBER_BF16, NUMBER_F32);
    case_begin(&among, b, NUMBER_BF16, NUMBER_F32);
    ragged(&clean, ends[i].length, h, 0);
    ragged(&among, ends[i].length, h, 1);
    size_t row = 0;
    for (size_t s = 0; s < SEQUENCES; row += (size_t)ends[i].length[s++])
      for (size_t o = 0; s % 2 == 0 && o < clean.n_outputs; ++o) {
        const double *x = clean.output[o].value + row * width[o];
        const double *y = among.output[o].value + row * width[o];
        CU_ASSERT(memcmp(x, y, (size_t)ends[i].length[s] * width[o] * sizeof *x) == 0);
      }
    case_end(&clean);
    case_end(&among);
  }
  backend_free(b);
}

/* --- cached attention: a warp computes 32 keys, a block 256 --- */

enum { CAPACITY = 600, LONG = 4 };

/* The first LONG rows read slots with many keys, the others one key each. */
static void cached(case_run *r, size_t rows, head_shape h) {
  static const int32_t last[LONG] = {599, 255, 256, 64};
  enum { KEYS = LONG * CAPACITY };
  const size_t width = h.kv * h.dim, qk_width = h.q * h.dim + width;
  int32_t *slot = calloc(2 * (KEYS + rows), sizeof *slot), *position = slot + KEYS + rows;
  for (size_t i = 0; i < KEYS; ++i) {
    slot[i] = (int32_t)(i / CAPACITY);
    position[i] = (int32_t)(i % CAPACITY);
  }
  for (size_t i = 0; i < rows; ++i) {
    slot[KEYS + i] = (int32_t)(i % LONG);
    position[KEYS + i] = i < LONG ? last[i] : 0;
  }
  const int32_t *slots = case_integers(r, slot, KEYS + rows);
  const int32_t *positions = case_integers(r, position, KEYS + rows);
  free(slot);
  void *k = case_zeros(r, KEYS * width), *v = case_zeros(r, KEYS * width);
  const void *keys = case_draw(r, KEYS * qk_width, 1);
  const void *values = case_draw(r, KEYS * (qk_width + width), 1);
  OP(r, cache_store)(r->b, k, v, keys, values, slots, positions, KEYS, CAPACITY, h);
  void *qk = case_zeros(r, rows * qk_width), *out = case_zeros(r, rows * h.q * h.dim);
  const size_t queries = LONG * qk_width;
  OP(r, copy)(r->b, qk, case_draw(r, queries, 3), queries * r->b->element);
  OP(r, attention_cached)
  (r->b, out, qk, k, v, slots + KEYS, positions + KEYS, rows, CAPACITY, h);
  case_keep(r, "out", out, rows * h.q * h.dim);
}

static const struct {
  number_type type;
  head_shape heads;
  double bound; /* difference from the CPU, relative to the largest output */
} cached_form[] = {{NUMBER_F32, {4, 2, 6}, 1e-6},    {NUMBER_BF16, {4, 4, 24}, 4e-3},
                   {NUMBER_BF16, {4, 4, 64}, 4e-3},  {NUMBER_BF16, {4, 2, 64}, 4e-3},
                   {NUMBER_BF16, {4, 1, 64}, 4e-3},  {NUMBER_BF16, {2, 2, 128}, 4e-3},
                   {NUMBER_BF16, {4, 2, 128}, 4e-3}, {NUMBER_BF16, {8, 1, 128}, 4e-3}};

TEST(a_cached_row_has_the_same_bits_alone_and_among_many) {
  for (size_t i = 0; i < sizeof cached_form / sizeof *cached_form; ++i) {
    backend *b = cuda(cached_form[i].type);
    if (b == NULL) SKIP("no CUDA device");
    const head_shape h = cached_form[i].heads;
    case_run few, many;
    case_begin(&few, b, cached_form[i].type, NUMBER_F32);
    case_begin(&many, b, cached_form[i].type, NUMBER_F32);
    cached(&few, LONG, h);
    cached(&many, 180, h);
    check_same(&few, &many, 0, LONG * h.q * h.dim);
    CU_ASSERT_EQUAL(b->ops->status(b, &(gl_error){0}), GL_OK);
    case_end(&few);
    case_end(&many);
    backend_free(b);
  }
}

TEST(cached_attention_agrees_with_the_cpu) {
  gl_error err = {0};
  backend *cpu = NULL;
  CU_ASSERT_EQUAL_FATAL(backend_new(&cpu, BACKEND_CPU, NUMBER_F64, 1, &err), GL_OK);
  for (size_t i = 0; i < sizeof cached_form / sizeof *cached_form; ++i) {
    backend *b = cuda(cached_form[i].type);
    if (b == NULL) {
      backend_free(cpu);
      SKIP("no CUDA device");
    }
    case_run got, want;
    case_begin(&got, b, cached_form[i].type, NUMBER_F32);
    case_begin(&want, cpu, cached_form[i].type, NUMBER_F32);
    cached(&got, LONG + 1, cached_form[i].heads);
    cached(&want, LONG + 1, cached_form[i].heads);
    check_near(&got, &want, cached_form[i].bound);
    case_end(&got);
    case_end(&want);
    backend_free(b);
  }
  backend_free(cpu);
}
