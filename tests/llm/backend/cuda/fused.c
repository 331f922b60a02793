/* Operations that do several in one give the bits of these several, whatever the number of rows. */
#include "llm/backend/open/open.h"
#include "tests/support/llm_backend_cases.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("llm: cuda fused");

static const number_type types[] = {NUMBER_F32, NUMBER_BF16};

/* What is compared: `run` does it in one or in several, on the same drawn inputs. */
typedef void form(case_run *r, const size_t *shape, int in_one);

/* 0 where there is no device. */
static int compare(form *run, const size_t (*shape)[5], size_t n) {
  for (size_t k = 0; k < 2; ++k) {
    gl_error err = {0};
    backend *b;
    if (backend_new(&b, BACKEND_CUDA, types[k], 1, &err) != GL_OK) {
      CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no CUDA device"));
      return 0;
    }
    for (size_t s = 0; s < n; ++s) {
      case_run one, several;
      case_begin(&one, b, types[k], NUMBER_F32);
      case_begin(&several, b, types[k], NUMBER_F32);
      run(&one, shape[s], 1);
      run(&several, shape[s], 0);
      CU_ASSERT_EQUAL(one.n_outputs, several.n_outputs);
      for (size_t o = 0; o < one.n_outputs; ++o) {
        const case_output *x = &one.output[o], *y = &several.output[o];
        const int same = memcmp(x->value, y->value, x->n * sizeof *x->value) == 0;
        if (!same)
          fprintf(stderr, "%s of (%zu, %zu, %zu, %zu) differs\n", x->name, shape[s][0], shape[s][1],
                  shape[s][2], shape[s][3]);
        CU_ASSERT(same);
      }
      CU_ASSERT_EQUAL(b->ops->status(b, &err), GL_OK);
      case_end(&one);
      case_end(&several);
    }
    backend_free(b);
  }
  return 1;
}

/* shape: rows, q, kv, dim, 1 without norms. The second row is a filler of a recorded step. */
static void heads_form(case_run *r, const size_t *s, int in_one) {
  const head_shape h = {s[1], s[2], s[3]};
  const size_t qkv = (h.q + 2 * h.kv) * h.dim, qk = (h.q + h.kv) * h.dim, capacity = 20;
  const size_t cached = (s[0] + 1) * capacity * h.kv * h.dim;
  int32_t place[64];
  for (size_t i = 0; i < s[0]; ++i) place[i] = i == 1 ? -1 : (int32_t)(s[0] - i);
  const int32_t *slot = case_integers(r, place, s[0]);
  const int32_t *position = case_draw_integers(r, s[0], capacity);
  void *cosine = case_zeros_master(r, capacity * h.dim / 2);
  void *sine = case_zeros_master(r, capacity * h.dim / 2);
  OP(r, rotary_table)(r->b, cosine, sine, capacity, h.dim, 10000, (rotary_scaling){0});
  void *in = case_draw(r, s[0] * qkv, 2), *out = case_zeros(r, s[0] * qk);
  void *q_weight = case_draw(r, h.dim, 1), *k_weight = case_draw(r, h.dim, 1);
  if (s[4]) q_weight = k_weight = NULL;
  void *rstd = case_zeros_master(r, s[0] * (h.q + h.kv));
  void *k = case_draw(r, cached, 1), *v = case_draw(r, cached, 1);
  if (in_one) {
    r->b->ops->heads_store(r->b, out, rstd, k, v, in, q_weight, k_weight, cosine, sine, position,
                           slot, s[0], capacity, h, 1e-6);
  } else {
    OP(r, heads)(r->b, out, rstd, in, q_weight, k_weight, cosine, sine, position, s[0], h, 1e-6);
    OP(r, cache_store)(r->b, k, v, out, in, slot, position, s[0], capacity, h);
  }
  case_keep(r, "qk", out, s[0] * qk);
  case_keep_master(r, "rstd", rstd, s[0] * (h.q + h.kv));
  case_keep(r, "keys", k, cached);
  case_keep(r, "values", v, cached);
}

TEST(heads_are_stored_as_they_are_computed) {
  static const size_t shape[][5] = {{1, 1, 1, 2},     {3, 2, 1, 6},       {5, 4, 2, 16},
                                    {9, 16, 8, 128},  {7, 3, 1, 64},      {2, 4, 4, 10},
                                    {5, 4, 2, 16, 1}, {9, 16, 8, 128, 1}, {3, 2, 1, 6, 1}};
  if (!compare(heads_form, shape, sizeof shape / sizeof *shape)) SKIP("no CUDA device");
}

enum { NO_NORMS = 1, UNALIGNED_ROWS = 2, UNALIGNED_CACHE = 4 };

/* n drawn numbers; if `odd`, not at a multiple of 16 bytes. */
static void *drawn_at(case_run *r, size_t n, double scale, size_t odd) {
  return (char *)case_draw(r, n + odd, scale) + odd * r->b->element;
}

/* shape: rows, q, kv, dim, what is not there or not aligned. A warp computes 32 keys, a block 256.
 * The second row is a filler of a recorded step. */
static void attention_form(case_run *r, const size_t *s, int in_one) {
  static const int32_t positions[] = {300, 7, 0, 31, 32, 255, 256, 287, 288};
  enum { MOST = sizeof positions / sizeof *positions, CAPACITY = 320 };
  const head_shape h = {s[1], s[2], s[3]};
  const size_t rows = s[0], qkv = (h.q + 2 * h.kv) * h.dim, qk = (h.q + h.kv) * h.dim;
  const size_t cached = (rows + 1) * CAPACITY * h.kv * h.dim, n = rows * h.q * h.dim;
  const size_t odd_rows = s[4] & UNALIGNED_ROWS ? 1 : 0, odd_cache = s[4] & UNALIGNED_CACHE ? 1 : 0;
  int32_t place[MOST];
  for (size_t i = 0; i < rows; ++i) place[i] = i == 1 ? -1 : (int32_t)(rows - i);
  const int32_t *slot = case_integers(r, place, rows),
                *position = case_integers(r, positions, rows);
  void *cosine = case_zeros_master(r, CAPACITY * h.dim / 2);
  void *sine = case_zeros_master(r, CAPACITY * h.dim / 2);
  OP(r, rotary_table)(r->b, cosine, sine, CAPACITY, h.dim, 10000, (rotary_scaling){0});
  const void *in = drawn_at(r, rows * qkv, 2, odd_rows);
  const void *q_weight = drawn_at(r, h.dim, 2, odd_rows);
  const void *k_weight = drawn_at(r, h.dim, 2, odd_rows);
  if (s[4] & NO_NORMS) q_weight = k_weight = NULL;
  void *k = drawn_at(r, cached, 1, odd_cache), *v = drawn_at(r, cached, 1, odd_cache);
  void *out = case_draw(r, n, 1), *between = case_zeros(r, rows * qk);
  void *rstd = case_zeros_master(r, rows * (h.q + h.kv));
  if (in_one) {
    r->b->ops->heads_attention(r->b, out, between, rstd, k, v, in, q_weight, k_weight, cosine, sine,
                               position, slot, rows, CAPACITY, h, 1e-6);
  } else {
    r->b->ops->heads_store(r->b, between, rstd, k, v, in, q_weight, k_weight, cosine, sine,
                           position, slot, rows, CAPACITY, h, 1e-6);
    OP(r, attention_cached)(r->b, out, between, k, v, slot, position, rows, CAPACITY, h);
  }
  case_keep(r, "out", out, n);
  case_keep(r, "keys", k, cached);
  case_keep(r, "values", v, cached);
}

/* Blocks of one, two and four query heads; one block or several of a key/value head. */
TEST(attention_computes_heads_as_they_are_stored) {
  static const size_t shape[][5] = {
      {1, 1, 1, 64},
      {9, 2, 2, 64},
      {9, 2, 1, 64, NO_NORMS},
      {9, 4, 1, 64},
      {9, 8, 1, 64},
      {9, 6, 2, 64, UNALIGNED_ROWS},
      {9, 1, 1, 128, NO_NORMS},
      {9, 4, 2, 128},
      {9, 4, 1, 128, UNALIGNED_ROWS | NO_NORMS},
      {9, 8, 1, 128},
      {9, 6, 1, 128, UNALIGNED_CACHE},
      {9, 4, 2, 6},
      {9, 2, 1, 24, UNALIGNED_CACHE | NO_NORMS},
      {9, 2, 1, 256},
  };
  if (!compare(attention_form, shape, sizeof shape / sizeof *shape)) SKIP("no CUDA device");
}

/* shape: rows, width, k */
static void swiglu_form(case_run *r, const size_t *s, int in_one) {
  void *in = case_draw(r, s[0] * s[2], 1), *weight = case_draw(r, 2 * s[1] * s[2], 0.3);
  void *out = case_zeros(r, s[0] * s[1]), *both = case_zeros(r, 2 * s[0] * s[1]);
  for (int again = 0; again < 2; ++again) {
    if (in_one) {
      r->b->ops->product_swiglu(r->b, out, in, weight, s[0], s[1], s[2]);
    } else {
      OP(r, product)(r->b, both, in, weight, s[0], 2 * s[1], s[2], PRODUCT_ROW_BY_ROW);
      OP(r, swiglu)(r->b, out, both, s[0], s[1]);
    }
    case_keep(r, "out", out, s[0] * s[1]);
  }
}

TEST(a_gated_unit_after_its_product_is_the_same) {
  static const size_t shape[][5] = {{1, 1, 1},     {1, 40, 24},    {3, 33, 65},
                                    {8, 64, 600},  {9, 100, 520},  {20, 72, 64},
                                    {50, 96, 136}, {130, 200, 64}, {2, 600, 1032}};
  if (!compare(swiglu_form, shape, sizeof shape / sizeof *shape)) SKIP("no CUDA device");
}
