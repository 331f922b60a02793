/* Draws of the CUDA backend: odd numbers of rows, the ends of the vocabulary, many draws against
 * the CPU's, logits that are no distribution. */
#include "core/random/rng.h"
#include "llm/backend/backend.h"
#include "llm/backend/open/open.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("llm: cuda sampling");

/* Rows of logits and what is drawn from them; host memory. */
typedef struct draws {
  size_t rows, n;
  float *z, *logq, *truncated;
  int32_t *token;
} draws;

static draws draws_new(size_t rows, size_t n) {
  draws d = {rows,
             n,
             calloc(rows * n, sizeof *d.z),
             calloc(rows, sizeof *d.logq),
             calloc(rows, sizeof *d.truncated),
             calloc(rows, sizeof *d.token)};
  CU_ASSERT_FATAL(d.z != NULL && d.logq != NULL && d.truncated != NULL && d.token != NULL);
  return d;
}

static void draws_free(draws *d) {
  free(d->z);
  free(d->logq);
  free(d->truncated);
  free(d->token);
}

static void fill(draws *d, double scale) {
  for (size_t i = 0; i < d->rows * d->n; ++i) {
    const rng_words w = rng_block(rng_stream_at(5, RNG_TEST, 31), i);
    d->z[i] = (float)(scale * (2 * rng_u01(w.v[0]) - 1));
  }
}

static void take(backend *b, draws *d, const sampling_spec *spec, int greedy) {
  const backend_ops *ops = b->ops;
  uint64_t *index = calloc(d->rows, sizeof *index);
  CU_ASSERT_PTR_NOT_NULL_FATAL(index);
  for (size_t r = 0; r < d->rows; ++r) index[r] = rng_token_index(r, 2);
  const size_t row = d->rows * sizeof(float);
  void *z = ops->allocate(b, d->n * row), *at = ops->allocate(b, d->rows * sizeof *index);
  void *token = ops->allocate(b, row), *logq = ops->allocate(b, row),
       *truncated = ops->allocate(b, row);
  ops->upload(b, z, d->z, d->n * row);
  ops->upload(b, at, index, d->rows * sizeof *index);
  ops->sample(b, token, logq, truncated, z, at, d->rows, d->n, spec,
              rng_stream_at(7, RNG_ROLLOUT, 1), greedy);
  ops->download(b, d->token, token, row);
  ops->download(b, d->logq, logq, row);
  ops->download(b, d->truncated, truncated, row);
  ASSERT_OK(ops->status(b, &err));
  void *all[] = {z, at, token, logq, truncated};
  for (size_t i = 0; i < 5; ++i) ops->release(b, all[i]);
  free(index);
}

static backend *device(void) {
  backend *b = NULL;
  gl_error err = {.status = GL_OK};
  return backend_new(&b, BACKEND_CUDA, NUMBER_F32, 0, &err) == GL_OK ? b : NULL;
}

static const sampling_spec plain = {.temperature = 1, .top_k = 0, .top_p = 1};

/* Weights are sums in float on one side and in double on the other: a draw that falls within some
 * 1e-6 of the border between two tokens may go either way. Of 600 draws that is expected of less
 * than one in a thousand seeds; two are let pass. */
TEST(draws_are_the_cpus) {
  static const sampling_spec specs[] = {{.temperature = 1, .top_k = 0, .top_p = 1},
                                        {.temperature = 0.3, .top_k = 0, .top_p = 1},
                                        {.temperature = 1, .top_k = 40, .top_p = 1},
                                        {.temperature = 1.3, .top_k = 0, .top_p = 0.9}};
  static const size_t sizes[] = {2, 4096, 4097, 10000};
  backend *cuda = device(), *cpu = NULL;
  if (cuda == NULL) SKIP("no CUDA device");
  CU_ASSERT_EQUAL_FATAL(backend_new(&cpu, BACKEND_CPU, NUMBER_F32, 1, &(gl_error){0}), GL_OK);
  for (size_t i = 0; i < 4; ++i)
    for (size_t k = 0; k < 4; ++k) {
      draws a = draws_new(sizes[k] > 100 ? 25 : 150, sizes[k]), b = draws_new(a.rows, a.n);
      size_t others = 0;
      fill(&a, 6);
      memcpy(b.z, a.z, a.rows * a.n * sizeof *a.z);
      take(cuda, &a, &specs[i], 0);
      take(cpu, &b, &specs[i], 0);
      for (size_t r = 0; r < a.rows; ++r) {
        others += a.token[r] != b.token[r];
        if (a.token[r] != b.token[r]) continue;
        ASSERT_CLOSE((double)a.logq[r], (double)b.logq[r], 2e-6);
        ASSERT_CLOSE((double)a.truncated[r], (double)b.truncated[r], 2e-6);
      }
      CU_ASSERT(others <= 2);
      draws_free(&a);
      draws_free(&b);
    }
  backend_free(cpu);
  backend_free(cuda);
}

/* Rows of one kind each, of [n] logits. */
typedef enum row_kind { TIED, EQUAL, SPARSE, FLAT, PEAKED, ZEROS, ROW_KINDS } row_kind;

static float logit_of(row_kind kind, size_t i, double u) {
  switch (kind) {
  case TIED:
    return (float)(floor(8 * u) - 4); /* eight values, an eighth of the tokens each */
  case EQUAL:
    return 2.5f;
  case SPARSE:
    return i % 97 == 5 ? (float)(4 * u) : -INFINITY;
  case FLAT:
    return (float)(0.001 * u);
  case PEAKED:
    return (float)(60 * u * u * u - 20);
  case ZEROS:
    return i % 3 == 0 ? 0.0f : -0.0f; /* equal, too */
  case ROW_KINDS:
    break;
  }
  return 0;
}

static void fill_kinds(draws *d) {
  for (size_t r = 0; r < d->rows; ++r)
    for (size_t i = 0; i < d->n; ++i) {
      const rng_words w = rng_block(rng_stream_at(6, RNG_TEST, 32), r * d->n + i);
      d->z[r * d->n + i] = logit_of((row_kind)(r % ROW_KINDS), i, rng_u01(w.v[0]));
    }
}

/* The CPU's tokens and log-probabilities where distributions are cut within ties, over whole rows
 * and next to nothing. A row's draw falls within 1e-6 of a border between tokens in fewer than one
 * of a thousand draws, of which there are some 500; one is let pass. Where top-p is cut by the
 * rounding of sums, a token more or less may be kept: its weight is at most that of the rounding.
 */
static void compare_truncated(backend *cuda, backend *cpu, size_t rows, size_t n,
                              const sampling_spec *spec, size_t *others) {
  draws a = draws_new(rows, n), b = draws_new(rows, n);
  fill_kinds(&a);
  memcpy(b.z, a.z, rows * n * sizeof *a.z);
  take(cuda, &a, spec, 0);
  take(cpu, &b, spec, 0);
  for (size_t r = 0; r < rows; ++r) {
    CU_ASSERT(a.token[r] >= 0 && (size_t)a.token[r] < n);
    *others += a.token[r] != b.token[r];
    if (a.token[r] != b.token[r]) continue;
    ASSERT_CLOSE((double)a.logq[r], (double)b.logq[r], 4e-6);
    ASSERT_CLOSE((double)a.truncated[r], (double)b.truncated[r], 1e-5);
  }
  /* the same again, and in other company: a row depends on its place in the stream alone */
  draws again = draws_new(rows, n), one = draws_new(1, n);
  memcpy(again.z, a.z, rows * n * sizeof *a.z);
  memcpy(one.z, a.z, n * sizeof *a.z);
  take(cuda, &again, spec, 0);
  take(cuda, &one, spec, 0);
  CU_ASSERT(memcmp(again.token, a.token, rows * sizeof *a.token) == 0);
  CU_ASSERT(memcmp(again.truncated, a.truncated, rows * sizeof *a.truncated) == 0);
  CU_ASSERT_EQUAL(one.token[0], a.token[0]);
  CU_ASSERT(memcmp(&one.truncated[0], &a.truncated[0], sizeof *a.truncated) == 0);
  draws *all[] = {&a, &b, &again, &one};
  for (size_t i = 0; i < 4; ++i) draws_free(all[i]);
}

TEST(truncated_draws_are_the_cpus_on_rows_of_every_kind) {
  static const size_t sizes[] = {1, 33, 4096, 4097, 9001};
  static const double shares[] = {1, 1e-9, 0.3, 0.999, 1 - 1e-12};
  backend *cuda = device(), *cpu = NULL;
  size_t others = 0;
  if (cuda == NULL) SKIP("no CUDA device");
  CU_ASSERT_EQUAL_FATAL(backend_new(&cpu, BACKEND_CPU, NUMBER_F32, 1, &(gl_error){0}), GL_OK);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const size_t n = sizes[i], counts[] = {0, 1, 2, n / 2, n - 1, n};
    for (size_t k = 0; k < 6; ++k)
      for (size_t p = k % 2; p < 5; p += 2) {
        const sampling_spec spec = {.temperature = 0.9, .top_k = counts[k], .top_p = shares[p]};
        compare_truncated(cuda, cpu, n == 1 ? 1 : ROW_KINDS, n, &spec, &others);
      }
  }
  CU_ASSERT(others <= 1);
  backend_free(cpu);
  backend_free(cuda);
}

TEST(truncated_draws_are_the_cpus_over_qwens_vocabulary) {
  enum { N = 151936 };
  static const sampling_spec specs[] = {{.temperature = 1, .top_k = 20, .top_p = 0.95},
                                        {.temperature = 1, .top_k = 0, .top_p = 0.9},
                                        {.temperature = 1, .top_k = N - 1, .top_p = 1}};
  backend *cuda = device(), *cpu = NULL;
  size_t others = 0;
  if (cuda == NULL) SKIP("no CUDA device");
  CU_ASSERT_EQUAL_FATAL(backend_new(&cpu, BACKEND_CPU, NUMBER_F32, 1, &(gl_error){0}), GL_OK);
  for (size_t i = 0; i < 3; ++i) compare_truncated(cuda, cpu, ROW_KINDS, N, &specs[i], &others);
  CU_ASSERT(others <= 1);
  backend_free(cpu);
  backend_free(cuda);
}

/* Two tokens far apart have all the weight, at both ends of slices. */
TEST(impossible_tokens_are_never_drawn) {
  enum { ROWS = 400, N = 8200, LOW = 4095, HIGH = 8192 };
  backend *cuda = device();
  if (cuda == NULL) SKIP("no CUDA device");
  draws d = draws_new(ROWS, N);
  for (size_t i = 0; i < (size_t)ROWS * N; ++i) d.z[i] = -INFINITY;
  for (size_t r = 0; r < ROWS; ++r) d.z[r * N + LOW] = d.z[r * N + HIGH] = 3;
  take(cuda, &d, &plain, 0);
  size_t low = 0;
  for (size_t r = 0; r < ROWS; ++r) {
    CU_ASSERT(d.token[r] == LOW || d.token[r] == HIGH);
    ASSERT_CLOSE((double)d.logq[r], -log(2), 1e-6);
    low += d.token[r] == LOW;
  }
  CU_ASSERT(low > ROWS / 2 - 60 && low < ROWS / 2 + 60); /* 6 sigma */
  draws_free(&d);
  backend_free(cuda);
}

TEST(greedy_takes_the_first_of_equals) {
  enum { N = 9000 };
  static const sampling_spec specs[] = {{.temperature = 0.5, .top_k = 0, .top_p = 1},
                                        {.temperature = 0.5, .top_k = 3, .top_p = 1}};
  backend *cuda = device();
  if (cuda == NULL) SKIP("no CUDA device");
  for (size_t i = 0; i < 2; ++i) {
    draws d = draws_new(3, N);
    d.z[5000] = d.z[4999] = d.z[8999] = 2;
    d.z[N + 8999] = 1;
    for (size_t k = 0; k < N; ++k) d.z[2 * N + k] = k % 2 == 0 ? 0.0f : -0.0f;
    take(cuda, &d, &specs[i], 1);
    CU_ASSERT_EQUAL(d.token[0], 4999);
    CU_ASSERT_EQUAL(d.token[1], 8999);
    CU_ASSERT_EQUAL(d.token[2], 0);
    draws_free(&d);
  }
  backend_free(cuda);
}

/* Logits of a model whose parameters have diverged: not-a-number, infinite, or all impossible. */
TEST(rows_without_a_dist_are_told) {
  enum { N = 5000 };
  static const sampling_spec specs[] = {{.temperature = 1, .top_k = 0, .top_p = 1},
                                        {.temperature = 1, .top_k = 3, .top_p = 0.9}};
  backend *cuda = device();
  if (cuda == NULL) SKIP("no CUDA device");
  for (size_t i = 0; i < 2; ++i) {
    draws d = draws_new(4, N);
    for (size_t k = 0; k < N; ++k) {
      d.z[k] = NAN;
      d.z[N + k] = -INFINITY;
    }
    d.z[2 * N + 7] = INFINITY;
    d.z[3 * N + 7] = NAN; /* one among numbers is only impossible */
    take(cuda, &d, &specs[i], 0);
    for (size_t r = 0; r < 3; ++r) {
      CU_ASSERT_EQUAL(d.token[r], N - 1);
      CU_ASSERT(isnan(d.logq[r]) && isnan(d.truncated[r]));
    }
    CU_ASSERT(d.token[3] != 7 && !isnan(d.logq[3]));
    draws_free(&d);
  }
  backend_free(cuda);
}
