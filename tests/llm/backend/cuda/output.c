/* The output layer of the CUDA backend in chunks of any size, against the CPU in float64: rows and
 * columns left over, odd vocabularies, and logits that rise along the vocabulary, so that the
 * running statistics are referred to a greater logit again and again. */
#include "llm/backend/open/open.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: cuda output layer");

enum { ROWS = 10, K = 8, MOST = 701 };

/* What the output layer and its backward write. */
typedef struct results {
  double logp[ROWS], entropy[ROWS], lse[ROWS], din[ROWS * K], dweight[MOST * K];
} results;

static size_t size_of(number_type type) {
  return type == NUMBER_F64 ? 8 : type == NUMBER_F32 ? 4 : 2;
}

/* A new array of n numbers in b's memory. */
static void *put(backend *b, const double *value, size_t n, number_type type) {
  char *host = calloc(n + 1, 8);
  for (size_t i = 0; i < n; ++i) {
    const float x = (float)value[i];
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t half = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    const void *from = type == NUMBER_F64   ? (const void *)&value[i]
                       : type == NUMBER_F32 ? (const void *)&x
                                            : (const void *)&half;
    memcpy(host + i * size_of(type), from, size_of(type));
  }
  void *memory = b->ops->allocate(b, n * size_of(type));
  b->ops->upload(b, memory, host, n * size_of(type));
  free(host);
  return memory;
}

static void get(backend *b, double *value, void *memory, size_t n, number_type type) {
  char *host = calloc(n + 1, 8);
  b->ops->download(b, host, memory, n * size_of(type));
  for (size_t i = 0; i < n; ++i) {
    uint32_t bits = 0;
    uint16_t half = 0;
    float x;
    memcpy(&half, host + 2 * i, 2);
    bits = (uint32_t)half << 16;
    if (type == NUMBER_F32) memcpy(&bits, host + 4 * i, 4);
    memcpy(&x, &bits, sizeof x);
    value[i] = (double)x;
    if (type == NUMBER_F64) memcpy(&value[i], host + 8 * i, 8);
  }
  free(host);
  b->ops->release(b, memory);
}

/* Multiples of 1/8, or with a slope whole numbers up to 88, in the weights' first column, that make
 * logits rise by `slope` from token to token: bfloat16 has all of them. */
static void draw(double *value, size_t n, size_t width, double slope) {
  for (size_t i = 0; i < n; ++i) {
    const uint32_t hash = (uint32_t)i * 2654435761u;
    value[i] = (double)((int)(hash >> 9 & 15) - 8) / 8;
    if (slope > 0 && i % width == 0) value[i] = floor((double)(i / width) * slope);
  }
}

/* stores 1: the backward reads the logits that the forward stored. keeps 1: every third token and
 * the target are in a row's set. */
static results run(backend *b, size_t vocabulary, double slope, int stores, int keeps) {
  double in[ROWS * K], weight[MOST * K], dlogp[ROWS];
  int32_t target[ROWS];
  results r = {.lse = {0}};
  draw(in, ROWS * K, K, 0);
  draw(weight, vocabulary * K, K, slope);
  for (size_t i = 0; i < ROWS; ++i) {
    in[i * K] = 1;
    dlogp[i] = (double)i / 4 - 1;
    target[i] = (int32_t)(i * (vocabulary - 1) / (ROWS - 1));
  }
  const number_type t = b->type, m = b->master;
  double none[MOST * K] = {0};
  void *x = put(b, in, ROWS * K, t), *w = put(b, weight, vocabulary * K, t);
  void *slopes = put(b, dlogp, ROWS, m), *dw = put(b, none, vocabulary * K, m);
  void *logp = put(b, none, ROWS, m), *entropy = put(b, none, ROWS, m),
       *lse = put(b, none, ROWS, m);
  void *dx = put(b, none, ROWS * K, t);
  int32_t *at = b->ops->allocate(b, sizeof target);
  b->ops->upload(b, at, target, sizeof target);
  const size_t words = (vocabulary + 31) / 32;
  uint32_t *set = calloc(ROWS * words, sizeof *set);
  for (size_t i = 0; i < ROWS * vocabulary; ++i) {
    const size_t row = i / vocabulary, a = i % vocabulary;
    if (a % 3 == 0 || a == (size_t)target[row]) set[row * words + a / 32] |= 1u << a % 32;
  }
  kept_sets kept = {.shape = {.vocabulary = vocabulary, .words = words}};
  if (keeps) {
    kept.set = b->ops->allocate(b, ROWS * words * sizeof *set);
    b->ops->upload(b, kept.set, set, ROWS * words * sizeof *set);
  }
  free(set);
  void *logits = stores ? b->ops->allocate(b, b->ops->logits_bytes(b, ROWS, vocabulary)) : NULL;
  b->ops->output(b, logp, entropy, lse, logits, x, w, at, kept, ROWS, vocabulary, K, 0.5);
  b->ops->output_backward(b, dx, dw, slopes, lse, logits, x, w, at, kept, ROWS, vocabulary, K, 0.5);
  get(b, r.logp, logp, ROWS, m);
  get(b, r.entropy, entropy, ROWS, m);
  get(b, r.lse, lse, ROWS, m);
  get(b, r.din, dx, ROWS * K, t);
  get(b, r.dweight, dw, vocabulary * K, m);
  void *rest[] = {x, w, slopes, at, logits, kept.set};
  for (size_t i = 0; i < sizeof rest / sizeof *rest; ++i) b->ops->release(b, rest[i]);
  return r;
}

static size_t far(const double *got, const double *want, size_t n, double tolerance) {
  double most = 1e-3;
  size_t wrong = 0;
  for (size_t i = 0; i < n; ++i) most = fmax(most, fabs(want[i]));
  for (size_t i = 0; i < n; ++i)
    if (!(fabs(got[i] - want[i]) <= tolerance * most)) ++wrong;
  return wrong;
}

static void compare(const results *got, const results *want, size_t vocabulary, double tolerance) {
  CU_ASSERT_EQUAL(far(got->logp, want->logp, ROWS, 1e-4), 0);
  CU_ASSERT_EQUAL(far(got->entropy, want->entropy, ROWS, 1e-4), 0);
  CU_ASSERT_EQUAL(far(got->lse, want->lse, ROWS, 1e-4), 0);
  CU_ASSERT_EQUAL(far(got->din, want->din, ROWS * K, tolerance), 0);
  CU_ASSERT_EQUAL(far(got->dweight, want->dweight, vocabulary * K, tolerance), 0);
}

/* One chunk, and chunks of a row, of seven rows, of all rows. */
static const char *const chunk[] = {NULL, "128", "1000", "4096"};

static void set_chunk(const char *numbers) {
  if (numbers != NULL)
    setenv("GEPOLAB_CUDA_OUTPUT_CHUNK", numbers, 1);
  else
    unsetenv("GEPOLAB_CUDA_OUTPUT_CHUNK");
}

/* The inputs are exact in bfloat16, so that what differs there is the rounding of the logits'
 * gradients, half a unit in 256. */
static void check_type(number_type type, const results *want, size_t vocabulary, double slope) {
  for (size_t c = 0; c < sizeof chunk / sizeof *chunk; ++c) {
    backend *b;
    gl_error err = {.status = GL_OK};
    set_chunk(chunk[c]);
    if (backend_new(&b, BACKEND_CUDA, type, 0, &err) != GL_OK) {
      CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no CUDA device"));
      set_chunk(NULL);
      SKIP("no CUDA device");
    }
    set_chunk(NULL);
    for (int keeps = 0; keeps < 2; ++keeps) {
      const results got = run(b, vocabulary, slope, 0, keeps);
      const results stored = run(b, vocabulary, slope, 1, keeps);
      CU_ASSERT_EQUAL(b->ops->status(b, &err), GL_OK);
      CU_ASSERT_EQUAL(memcmp(&got, &stored, sizeof got), 0);
      compare(&got, &want[keeps], vocabulary, type == NUMBER_BF16 ? 1e-2 : 1e-4);
    }
    backend_free(b);
  }
}

static void check(size_t vocabulary, double slope) {
  backend *cpu;
  ASSERT_OK(backend_new(&cpu, BACKEND_CPU, NUMBER_F64, 1, &err));
  const results want[] = {run(cpu, vocabulary, slope, 0, 0), run(cpu, vocabulary, slope, 0, 1)};
  backend_free(cpu);
  check_type(NUMBER_F32, want, vocabulary, slope);
  check_type(NUMBER_BF16, want, vocabulary, slope);
}

TEST(chunks_of_any_size_agree_with_the_cpu) {
  check(640, 0);
  check(700, 0);
  check(701, 0);
}

TEST(logits_may_rise_along_the_vocabulary) {
  check(640, 0.125);
  check(701, 0.125);
}

TEST(a_chunk_that_is_no_number_is_refused) {
  static const char *const wrong[] = {"", "abc", "127", "-4096", "4096 ", "99999999999999999999"};
  if (backend_devices() == 0) SKIP("no CUDA device");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    backend *b;
    gl_error err = {.status = GL_OK};
    set_chunk(wrong[i]);
    CU_ASSERT_EQUAL(backend_new(&b, BACKEND_CUDA, NUMBER_F32, 0, &err), GL_EINPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "GEPOLAB_CUDA_OUTPUT_CHUNK"));
  }
  set_chunk(NULL);
}
