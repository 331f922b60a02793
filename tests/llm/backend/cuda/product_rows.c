/* Products of CUDA that are asked for row by row: a row has the same bits whatever rows are
 * computed with it and wherever it stands; sums are close to those in double; odd shapes and
 * addresses. */
#include "llm/backend/backend.h"
#include "llm/backend/open/open.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: cuda product rows");

/* 0 where there is no device. */
static int device(backend **b, number_type type) {
  gl_error err = {.status = GL_OK};
  if (backend_new(b, BACKEND_CUDA, type, 0, &err) == GL_OK) return 1;
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no CUDA device"));
  return 0;
}

static void end(backend *b) {
  ASSERT_OK(b->ops->status(b, &err));
  backend_free(b);
}

/* --- numbers of a type --- */

static void encode(unsigned char *to, const float *from, size_t n, number_type type) {
  for (size_t i = 0; i < n; ++i) {
    uint32_t bits;
    memcpy(&bits, &from[i], sizeof bits);
    const uint16_t half = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    if (type == NUMBER_BF16)
      memcpy(to + 2 * i, &half, sizeof half);
    else
      memcpy(to + 4 * i, &bits, sizeof bits);
  }
}

static double decoded(const unsigned char *from, size_t i, number_type type) {
  uint32_t bits = 0;
  uint16_t half;
  float x;
  if (type == NUMBER_BF16) {
    memcpy(&half, from + 2 * i, sizeof half);
    bits = (uint32_t)half << 16;
  } else {
    memcpy(&bits, from + 4 * i, sizeof bits);
  }
  memcpy(&x, &bits, sizeof x);
  return (double)x;
}

/* n numbers of (-1, 1) as `type`, malloc'd. */
static unsigned char *drawn(size_t n, uint64_t entity, number_type type) {
  float *value = malloc((n + 1) * sizeof *value);
  unsigned char *out = malloc(4 * n + 4);
  CU_ASSERT_FATAL(value != NULL && out != NULL);
  const rng_stream stream = rng_stream_at(11, RNG_TEST, entity);
  for (size_t i = 0; i < n; ++i) value[i] = (float)(2 * rng_u01(rng_block(stream, i).v[0]) - 1);
  encode(out, value, n, type);
  free(value);
  return out;
}

/* --- one product --- */

typedef struct product_case {
  size_t rows, m, k;
  int adds, logits;
  size_t shift_in, shift_out; /* numbers by which the matrices are moved off their alignment */
} product_case;

typedef struct product_data {
  product_case c;
  number_type type, out;
  size_t element, out_element;
  unsigned char *in, *weight, *old; /* [rows, k], [m, k], [rows, m] */
  void *device_weight;
  backend *b;
} product_data;

static product_data data_new(backend *b, product_case c) {
  product_data d = {c,
                    b->type,
                    c.logits ? b->master : b->type,
                    b->element,
                    c.logits ? b->master_element : b->element,
                    drawn(c.rows * c.k, 1, b->type),
                    drawn(c.m * c.k, 2, b->type),
                    NULL,
                    NULL,
                    b};
  d.old = drawn(c.rows * c.m, 3, d.out);
  d.device_weight = b->ops->allocate(b, c.m * c.k * d.element);
  b->ops->upload(b, d.device_weight, d.weight, c.m * c.k * d.element);
  return d;
}

static void data_free(product_data *d) {
  d->b->ops->release(d->b, d->device_weight);
  free(d->in);
  free(d->weight);
  free(d->old);
}

enum { GUARD = 64 }; /* bytes on both sides of a result that must stay as they are */

/* Rows [from, from + n) of the product into `to`. */
static void run(const product_data *d, size_t from, size_t n, unsigned char *to) {
  const product_case *c = &d->c;
  backend *b = d->b;
  const size_t in_bytes = n * c->k * d->element, out_bytes = n * c->m * d->out_element;
  const size_t before = GUARD + c->shift_out * d->out_element;
  unsigned char *host = malloc(before + out_bytes + GUARD);
  char *in = b->ops->allocate(b, in_bytes + c->shift_in * d->element);
  char *out = b->ops->allocate(b, before + out_bytes + GUARD);
  CU_ASSERT_FATAL(host != NULL && in != NULL && out != NULL);
  memset(host, 0x5a, before + out_bytes + GUARD);
  memcpy(host + before, d->old + from * c->m * d->out_element, out_bytes);
  b->ops->upload(b, out, host, before + out_bytes + GUARD);
  char *const x = in + c->shift_in * d->element, *const y = out + before;
  b->ops->upload(b, x, d->in + from * c->k * d->element, in_bytes);
  if (c->logits)
    b->ops->logits(b, y, x, d->device_weight, n, c->m, c->k);
  else
    b->ops->product(b, y, x, d->device_weight, n, c->m, c->k,
                    PRODUCT_ROW_BY_ROW | (c->adds ? PRODUCT_ADD : 0));
  b->ops->download(b, host, out, before + out_bytes + GUARD);
  memcpy(to, host + before, out_bytes);
  for (size_t i = 0; i < before; ++i) CU_ASSERT_EQUAL(host[i], 0x5a);
  for (size_t i = 0; i < GUARD; ++i) CU_ASSERT_EQUAL(host[before + out_bytes + i], 0x5a);
  b->ops->release(b, in);
  b->ops->release(b, out);
  free(host);
}

static unsigned char *all_rows(const product_data *d) {
  unsigned char *all = malloc(d->c.rows * d->c.m * d->out_element + 1);
  CU_ASSERT_PTR_NOT_NULL_FATAL(all);
  run(d, 0, d->c.rows, all);
  return all;
}

/* --- near the sums in double --- */

/* A sum of k products may be off by (k + 8) 2^-23 of the sum of their magnitudes (not 2^-24,
 * because a tensor core truncates what it adds), and a rounded result by half a unit in its last
 * place. */
static void check_values(const product_data *d, const unsigned char *got) {
  const product_case *c = &d->c;
  const double last = d->out == NUMBER_BF16 ? 0x1p-8 : 0x1p-23;
  size_t wrong = 0;
  for (size_t r = 0; r < c->rows; ++r)
    for (size_t i = 0; i < c->m; ++i) {
      double sum = c->adds ? decoded(d->old, r * c->m + i, d->out) : 0, size = fabs(sum);
      for (size_t k = 0; k < c->k; ++k) {
        const double p =
            decoded(d->in, r * c->k + k, d->type) * decoded(d->weight, i * c->k + k, d->type);
        sum += p;
        size += fabs(p);
      }
      const double off = fabs(decoded(got, r * c->m + i, d->out) - sum);
      if (!(off <= (double)(c->k + 8) * 0x1p-23 * size + last * fabs(sum))) ++wrong;
    }
  if (wrong > 0)
    fprintf(stderr, "[%zu, %zu, %zu]: %zu results are wrong\n", c->rows, c->m, c->k, wrong);
  CU_ASSERT_EQUAL(wrong, 0);
}

static const number_type TYPES[] = {NUMBER_F32, NUMBER_BF16};

TEST(products_are_those_of_double_precision) {
  static const product_case cases[] = {
      {1, 1, 1, 0, 0, 0, 0},      {2, 7, 5, 1, 0, 0, 0},      {5, 8, 16, 1, 0, 0, 0},
      {9, 65, 72, 0, 0, 0, 0},    {17, 24, 40, 1, 0, 0, 0},   {33, 130, 8, 0, 0, 0, 0},
      {70, 129, 100, 1, 0, 0, 0}, {140, 40, 136, 1, 0, 0, 0}, {3, 66, 1032, 1, 0, 0, 0},
      {40, 20, 520, 0, 0, 0, 0},  {130, 9, 1032, 1, 0, 0, 0}, {2, 20, 2304, 0, 0, 0, 0},
      {2, 40, 24, 0, 0, 1, 0},    {2, 40, 24, 1, 0, 0, 1},    {6, 31, 48, 0, 1, 0, 0},
      {3, 5003, 16, 0, 1, 0, 0},  {40, 16, 515, 0, 1, 1, 1}};
  for (size_t t = 0; t < 2; ++t) {
    backend *b;
    if (!device(&b, TYPES[t])) SKIP("no CUDA device");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
      product_data d = data_new(b, cases[i]);
      unsigned char *all = all_rows(&d);
      check_values(&d, all);
      free(all);
      data_free(&d);
    }
    end(b);
  }
}

/* --- the same bits --- */

/* Rows from `from` on, in parts of n, against the same rows of `all`. */
static void check_parts(const product_data *d, const unsigned char *all, size_t from, size_t n) {
  const size_t bytes = d->c.m * d->out_element;
  unsigned char *part = malloc(n * bytes + 1);
  CU_ASSERT_PTR_NOT_NULL_FATAL(part);
  run(d, from, n, part);
  const int same = memcmp(part, all + from * bytes, n * bytes) == 0;
  if (!same)
    fprintf(stderr, "[%zu, %zu]: %zu rows from row %zu on differ\n", d->c.m, d->c.k, n, from);
  CU_ASSERT(same);
  free(part);
}

static const size_t COUNTS[] = {1, 2, 7, 8, 16, 17, 32, 33, 64, 65, 100, 128};
enum { N_COUNTS = sizeof COUNTS / sizeof *COUNTS, ROWS = 141 };

TEST(a_row_has_the_same_bits_in_any_company) {
  static const product_case cases[] = {{ROWS, 24, 64, 0, 0, 0, 0},
                                       {ROWS, 17, 72, 1, 0, 0, 0},
                                       {ROWS, 20, 1032, 0, 0, 0, 0},
                                       {ROWS, 12, 514, 1, 0, 0, 0},
                                       {ROWS, 130, 24, 0, 1, 0, 0}};
  for (size_t t = 0; t < 2; ++t) {
    backend *b;
    if (!device(&b, TYPES[t])) SKIP("no CUDA device");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
      product_data d = data_new(b, cases[i]);
      unsigned char *all = all_rows(&d);
      for (size_t n = 0; n < N_COUNTS; ++n) {
        check_parts(&d, all, (ROWS - COUNTS[n]) / 3, COUNTS[n]);
        check_parts(&d, all, ROWS - COUNTS[n], COUNTS[n]);
      }
      free(all);
      data_free(&d);
    }
    end(b);
  }
}

TEST(a_row_has_the_same_bits_at_every_place) {
  for (size_t t = 0; t < 2; ++t) {
    backend *b;
    if (!device(&b, TYPES[t])) SKIP("no CUDA device");
    product_data d = data_new(b, (product_case){ROWS, 9, 48, 0, 0, 0, 0});
    unsigned char *all = all_rows(&d);
    for (size_t from = 0; from < ROWS; ++from) check_parts(&d, all, from, 1);
    for (size_t from = 0; from + 17 <= ROWS; from += 3) check_parts(&d, all, from, 17);
    free(all);
    data_free(&d);
    end(b);
  }
}

/* The address of the result does not change its bits. */
TEST(a_result_off_its_alignment_has_the_same_bits) {
  for (size_t t = 0; t < 2; ++t) {
    backend *b;
    if (!device(&b, TYPES[t])) SKIP("no CUDA device");
    product_data d = data_new(b, (product_case){20, 72, 520, 1, 0, 0, 0});
    unsigned char *straight = all_rows(&d);
    d.c.shift_out = 3;
    check_parts(&d, straight, 0, 20);
    check_parts(&d, straight, 11, 5);
    free(straight);
    data_free(&d);
    end(b);
  }
}

/* --- recorded --- */

/* A product whose splits of k are summed by blocks of their own, twice in one recorded graph: its
 * counters are zero again each time it ends. */
TEST(a_recorded_product_runs_again_and_again) {
  for (size_t t = 0; t < 2; ++t) {
    backend *b;
    if (!device(&b, TYPES[t])) SKIP("no CUDA device");
    enum { N = 3, M = 130, K = 1032 };
    product_data d = data_new(b, (product_case){3 * N, M, K, 0, 0, 0, 0});
    unsigned char *all = all_rows(&d), *got = malloc(N * M * d.out_element);
    CU_ASSERT_PTR_NOT_NULL_FATAL(got);
    run(&d, 0, N, got); /* what is recorded has run before */
    void *in = b->ops->allocate(b, N * K * d.element), *out[2];
    for (int i = 0; i < 2; ++i) out[i] = b->ops->allocate(b, N * M * d.out_element);
    b->ops->graph_begin(b);
    for (int i = 0; i < 2; ++i)
      b->ops->product(b, out[i], in, d.device_weight, N, M, K, PRODUCT_ROW_BY_ROW);
    backend_graph *g = b->ops->graph_end(b);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    for (size_t run_of = 0; run_of < 3; ++run_of) {
      b->ops->upload(b, in, d.in + run_of * N * K * d.element, N * K * d.element);
      b->ops->graph_run(b, g);
      for (int i = 0; i < 2; ++i) {
        b->ops->download(b, got, out[i], N * M * d.out_element);
        CU_ASSERT_EQUAL(memcmp(got, all + run_of * N * M * d.out_element, N * M * d.out_element),
                        0);
      }
    }
    b->ops->graph_free(b, g);
    b->ops->release(b, in);
    for (int i = 0; i < 2; ++i) b->ops->release(b, out[i]);
    free(got);
    free(all);
    data_free(&d);
    end(b);
  }
}

/* TF32 --- */

/* A product [rows, m] without flags, of the same numbers whatever the backend's setting. */
static void plain_product(const product_data *d, unsigned char *to) {
  const product_case *c = &d->c;
  backend *b = d->b;
  void *in = b->ops->allocate(b, c->rows * c->k * d->element);
  void *out = b->ops->allocate(b, c->rows * c->m * d->element);
  b->ops->upload(b, in, d->in, c->rows * c->k * d->element);
  b->ops->product(b, out, in, d->device_weight, c->rows, c->m, c->k, 0);
  b->ops->download(b, to, out, c->rows * c->m * d->element);
  b->ops->release(b, in);
  b->ops->release(b, out);
}

/* Largest difference in units of the factors' magnitude times their number. */
static double relative_difference(const unsigned char *a, const unsigned char *b, size_t n,
                                  size_t k) {
  double most = 0;
  for (size_t i = 0; i < n; ++i)
    most = fmax(most, fabs(decoded(a, i, NUMBER_F32) - decoded(b, i, NUMBER_F32)));
  return most / (double)k;
}

TEST(tf32_rounds_products_of_training_alone) {
  backend *b;
  if (!device(&b, NUMBER_F32)) SKIP("no CUDA device");
  enum { ROWS_ = 40, M = 64, K = 256, BYTES = ROWS_ * M * 4 };
  static unsigned char exact[BYTES], rounded[BYTES];
  product_data d = data_new(b, (product_case){ROWS_, M, K, 0, 0, 0, 0});
  plain_product(&d, exact);
  check_values(&d, exact);
  unsigned char *before = all_rows(&d);
  b->tf32 = 1;
  plain_product(&d, rounded);
  const double off = relative_difference(exact, rounded, ROWS_ * M, K);
  CU_ASSERT(off > 0x1p-22 && off < 0x1p-10);
  unsigned char *after = all_rows(&d);
  CU_ASSERT_EQUAL(memcmp(before, after, BYTES), 0);
  free(before);
  free(after);
  data_free(&d);
  end(b);
}
