/* Products by cuBLASLt (llm/backend/cuda/blas.cu) on the emulated device, where the library can be
 * told to have no algorithm: every way of storing the factors, odd shapes and addresses, and what
 * is done where the library refuses. */
#include "emulate_control.h"
#include "llm/backend/open/open.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("llm: emulated cuda products");

static backend *device(number_type type) {
  backend *b;
  ASSERT_OK(backend_new(&b, BACKEND_CUDA, type, 0, &err));
  return b;
}

static void end(backend *b) {
  ASSERT_OK(b->ops->status(b, &err));
  backend_free(b);
}

/* An array in the device's memory that begins `shift` numbers into its allocation. */
typedef struct array {
  char *memory, *at;
  double *value; /* [n] what it holds */
  size_t n, size;
} array;

/* n multiples of 1 / 8 in [-1, 1], which every type has exactly; sums of products of them, too. */
static array draw(backend *b, size_t n, size_t size, size_t shift, unsigned seed) {
  array a = {.n = n, .size = size, .value = calloc(n + 1, sizeof *a.value)};
  char *host = calloc(n + 1, size);
  for (size_t i = 0; i < n; ++i) {
    const unsigned hash = (unsigned)i * 2654435761u + seed * 40503u;
    const float x = (float)((int)(hash >> 9 & 15) - 8) / 8;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t half = (uint16_t)(bits >> 16);
    memcpy(host + i * size, size == 2 ? (const void *)&half : (const void *)&bits, size);
    a.value[i] = (double)x;
  }
  a.memory = b->ops->allocate(b, (n + shift) * size);
  a.at = a.memory + shift * size;
  b->ops->upload(b, a.at, host, n * size);
  free(host);
  return a;
}

/* What a's memory holds now, as doubles, malloc'd. */
static double *read_back(backend *b, const array *a) {
  char *host = calloc(a->n + 1, a->size);
  double *out = calloc(a->n + 1, sizeof *out);
  b->ops->download(b, host, a->at, a->n * a->size);
  for (size_t i = 0; i < a->n; ++i) {
    uint32_t bits = 0;
    uint16_t half;
    float x;
    if (a->size == 2) {
      memcpy(&half, host + 2 * i, sizeof half);
      bits = (uint32_t)half << 16;
    } else
      memcpy(&bits, host + 4 * i, sizeof bits);
    memcpy(&x, &bits, sizeof x);
    out[i] = (double)x;
  }
  free(host);
  return out;
}

static void fini(backend *b, array *a) {
  b->ops->release(b, a->memory);
  free(a->value);
}

/* Asserts that c holds, up to rounding to its type, what it held before (`adds`) plus the sum over
 * k of a(i, k) b(j, k), where numbers are at i * by_i + k * by_k. */
static void check(backend *dev, const array *c, const array *a, const size_t by_a[2],
                  const array *b, const size_t by_b[2], const size_t mnk[3], int adds) {
  double *got = read_back(dev, c);
  size_t wrong = 0;
  for (size_t i = 0; i < mnk[0]; ++i)
    for (size_t j = 0; j < mnk[1]; ++j) {
      double sum = adds ? c->value[i * mnk[1] + j] : 0;
      for (size_t k = 0; k < mnk[2]; ++k)
        sum += a->value[i * by_a[0] + k * by_a[1]] * b->value[j * by_b[0] + k * by_b[1]];
      wrong += fabs(got[i * mnk[1] + j] - sum) > (c->size == 2 ? fabs(sum) / 256 : 0);
    }
  CU_ASSERT_EQUAL(wrong, 0);
  free(got);
}

/* All three kinds of product of one shape, on arrays that begin `shift` numbers into memory. */
static void multiply(backend *b, size_t rows, size_t m, size_t k, size_t shift, int adds) {
  const size_t t = b->element;
  const int flags = adds ? PRODUCT_ADD : 0;
  array in = draw(b, rows * k, t, shift, 1), weight = draw(b, m * k, t, shift, 2);
  array out = draw(b, rows * m, t, shift, 3), din = draw(b, rows * k, t, shift, 4);
  array dout = draw(b, rows * m, t, shift, 5), dweight = draw(b, m * k, 4, shift, 6);
  b->ops->product(b, out.at, in.at, weight.at, rows, m, k, flags);
  check(b, &out, &in, (size_t[]){k, 1}, &weight, (size_t[]){k, 1}, (size_t[]){rows, m, k}, adds);
  b->ops->product_backward_input(b, din.at, dout.at, weight.at, rows, m, k, flags);
  check(b, &din, &dout, (size_t[]){m, 1}, &weight, (size_t[]){1, k}, (size_t[]){rows, k, m}, adds);
  b->ops->product_backward_weight(b, dweight.at, dout.at, in.at, rows, m, k);
  check(b, &dweight, &dout, (size_t[]){1, m}, &in, (size_t[]){1, k}, (size_t[]){m, k, rows}, 1);
  array *all[] = {&in, &weight, &out, &din, &dout, &dweight};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) fini(b, all[i]);
}

static uint64_t products_run(void) {
  uint64_t n = 0;
  for (unsigned i = 0; i < EMULATE_BLAS_ALGORITHMS; ++i) n += emulate_blas_ran(i);
  return n;
}

static const size_t shape[][3] = {{1, 1, 1}, {3, 7, 5}, {33, 17, 40}, {16, 64, 48}, {70, 31, 129}};

/* All shapes, in both types, aligned and at odd addresses. Returns how many products the library
 * ran, of how many there were. */
static uint64_t multiply_all(unsigned refused, uint64_t *all) {
  const uint64_t before = products_run();
  *all = 0;
  emulate_blas_refuse(refused);
  for (int half = 0; half < 2; ++half) {
    backend *b = device(half ? NUMBER_BF16 : NUMBER_F32);
    for (size_t i = 0; i < sizeof shape / sizeof *shape; ++i)
      for (size_t shift = 0; shift < 4; ++shift, *all += 3)
        multiply(b, shape[i][0], shape[i][1], shape[i][2], shift, (int)(i + shift) % 2);
    end(b);
  }
  emulate_blas_refuse(0);
  return products_run() - before;
}

/* The library refuses addresses that are aligned less than it was told. */
TEST(products_are_right_at_any_address) {
  uint64_t all;
  CU_ASSERT_EQUAL(multiply_all(0, &all), all);
}

TEST(another_reduction_is_taken_where_there_is_no_algorithm) {
  uint64_t all;
  CU_ASSERT_EQUAL(multiply_all(EMULATE_BLAS_SPLIT, &all), all);
  CU_ASSERT_EQUAL(multiply_all(EMULATE_BLAS_SPLIT | EMULATE_BLAS_WHOLE, &all), all);
}

TEST(our_own_product_is_taken_where_the_library_has_none) {
  uint64_t all;
  CU_ASSERT_EQUAL(multiply_all(EMULATE_BLAS_ALL, &all), 0);
}

/* An algorithm that was offered and is refused when it is called: asked for once, not each time. */
TEST(a_refused_algorithm_is_not_tried_again) {
  backend *b = device(NUMBER_F32);
  const uint64_t asked = emulate_blas_asked(), ran = products_run();
  emulate_blas_refuse(EMULATE_BLAS_RUN);
  multiply(b, 4, 6, 8, 0, 0);
  emulate_blas_refuse(0);
  multiply(b, 4, 6, 8, 0, 0);
  CU_ASSERT_EQUAL(emulate_blas_asked(), asked + 3);
  CU_ASSERT_EQUAL(products_run(), ran);
  end(b);
}

/* Numbers of rows with equal padding: algorithms are asked for once for each of the three products.
 */
TEST(rows_with_equal_padding_have_one_plan) {
  static const size_t rows[] = {129, 256, 200, 255};
  backend *b = device(NUMBER_BF16);
  const uint64_t asked = emulate_blas_asked(), ran = products_run();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) multiply(b, rows[i], 6, 8, 0, (int)i % 2);
  CU_ASSERT_EQUAL(emulate_blas_asked(), asked + 5); /* twice of those that add or do not */
  CU_ASSERT_EQUAL(products_run(), ran + 12);
  multiply(b, 257, 6, 8, 0, 0);
  CU_ASSERT_EQUAL(emulate_blas_asked(), asked + 8);
  end(b);
}

/* If its algorithm is refused for a number of rows, that one has a plan of its own, once. */
TEST(rows_whose_padded_plan_is_refused_have_their_own) {
  backend *b = device(NUMBER_F32);
  const uint64_t asked = emulate_blas_asked(), ran = products_run();
  emulate_blas_refuse(EMULATE_BLAS_OTHER_SIZES);
  multiply(b, 200, 6, 8, 0, 0);
  CU_ASSERT_EQUAL(emulate_blas_asked(), asked + 6);
  multiply(b, 200, 6, 8, 0, 0);
  emulate_blas_refuse(0);
  multiply(b, 200, 6, 8, 0, 0);
  CU_ASSERT_EQUAL(emulate_blas_asked(), asked + 6);
  CU_ASSERT_EQUAL(products_run(), ran + 9);
  end(b);
}

/* Also while a graph is recorded. */
TEST(our_own_product_runs_from_a_recorded_graph) {
  enum { N = 5 };
  backend *b = device(NUMBER_BF16);
  array in = draw(b, N * N, 2, 1, 1), weight = draw(b, N * N, 2, 0, 2),
        out = draw(b, N * N, 2, 1, 3);
  emulate_blas_refuse(EMULATE_BLAS_ALL);
  b->ops->graph_begin(b);
  b->ops->product(b, out.at, in.at, weight.at, N, N, N, 0);
  backend_graph *g = b->ops->graph_end(b);
  emulate_blas_refuse(0);
  CU_ASSERT_PTR_NOT_NULL_FATAL(g);
  b->ops->graph_run(b, g);
  check(b, &out, &in, (size_t[]){N, 1}, &weight, (size_t[]){N, 1}, (size_t[]){N, N, N}, 0);
  b->ops->graph_free(b, g);
  fini(b, &in);
  fini(b, &weight);
  fini(b, &out);
  end(b);
}

/* --- measured choices --- */

enum { FASTEST = 5 };

typedef struct counts {
  uint64_t of[EMULATE_BLAS_ALGORITHMS];
} counts;

static counts ran_so_far(void) {
  counts c;
  for (unsigned i = 0; i < EMULATE_BLAS_ALGORITHMS; ++i) c.of[i] = emulate_blas_ran(i);
  return c;
}

/* Which algorithm a backend with this file (NULL: none) uses, once it has its choice; -1 if more
 * than one. With `recorded` the shape's first product is recorded. */
static int algorithm_with(const char *file, int recorded) {
  enum { AGAIN = 3 };
  int which = -1;
  if (file != NULL) setenv("GEPOLAB_CUDA_PRODUCTS", file, 1);
  backend *b = device(NUMBER_F32);
  unsetenv("GEPOLAB_CUDA_PRODUCTS");
  array in = draw(b, 12, 4, 0, 1), weight = draw(b, 20, 4, 0, 2), out = draw(b, 15, 4, 0, 3);
  if (recorded) b->ops->graph_begin(b);
  b->ops->product(b, out.at, in.at, weight.at, 3, 5, 4, PRODUCT_ADD);
  if (recorded) {
    backend_graph *g = b->ops->graph_end(b);
    b->ops->graph_run(b, g);
    b->ops->graph_free(b, g);
  }
  /* The result was added to once, whatever was timed. */
  check(b, &out, &in, (size_t[]){4, 1}, &weight, (size_t[]){4, 1}, (size_t[]){3, 5, 4}, 1);
  const counts before = ran_so_far();
  for (int i = 0; i < AGAIN; ++i)
    b->ops->product(b, out.at, in.at, weight.at, 3, 5, 4, PRODUCT_ADD);
  const counts after = ran_so_far();
  for (int i = 0; i < EMULATE_BLAS_ALGORITHMS; ++i)
    if (after.of[i] == before.of[i] + AGAIN) which = i;
  fini(b, &in);
  fini(b, &weight);
  fini(b, &out);
  end(b);
  return which;
}

/* Every algorithm takes so many milliseconds, but for one. */
static void set_times(double milliseconds, unsigned faster, double less) {
  for (unsigned i = 0; i < EMULATE_BLAS_ALGORITHMS; ++i)
    emulate_blas_takes(i, i == faster ? less : milliseconds);
}

static void make_file(char folder[64], char path[96]) {
  snprintf(folder, 64, "/tmp/gepolab-products-XXXXXX");
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
  snprintf(path, 96, "%s/products", folder);
}

TEST(the_fastest_algorithm_is_measured_once_and_kept) {
  char folder[64], path[96];
  make_file(folder, path);
  set_times(2, FASTEST, 1);
  CU_ASSERT_EQUAL(algorithm_with(NULL, 0), 0);
  CU_ASSERT_EQUAL(algorithm_with(path, 0), FASTEST);
  set_times(2, 1, 1); /* another day another one would win */
  CU_ASSERT_EQUAL(algorithm_with(path, 0), FASTEST);
  CU_ASSERT_EQUAL(algorithm_with(path, 1), FASTEST);
  CU_ASSERT_EQUAL(algorithm_with(NULL, 0), 0);
  unlink(path);
  set_times(2, 3, 1.99); /* a hundredth faster is not faster */
  CU_ASSERT_EQUAL(algorithm_with(path, 0), 0);
  unlink(path);
  rmdir(folder);
  set_times(0, 0, 0);
}

/* What cannot be measured keeps the library's first algorithm, so that it never changes. */
TEST(a_shape_that_is_first_seen_in_a_recording_keeps_its_algorithm) {
  char folder[64], path[96];
  make_file(folder, path);
  set_times(2, FASTEST, 1);
  CU_ASSERT_EQUAL(algorithm_with(path, 1), 0);
  CU_ASSERT_EQUAL(algorithm_with(path, 0), 0);
  unlink(path);
  rmdir(folder);
  set_times(0, 0, 0);
}

TEST(a_choice_that_the_library_does_not_offer_is_refused) {
  char folder[64], path[96];
  make_file(folder, path);
  set_times(2, 0, 1);
  CU_ASSERT_EQUAL(algorithm_with(path, 0), 0);
  set_times(0, 0, 0);
  FILE *f = fopen(path, "r+");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  char line[400];
  long second = 0;
  while (fgets(line, sizeof line, f) != NULL && strncmp(line, "gepolab", 7) == 0) second = ftell(f);
  char *space = strrchr(line, ' ');
  CU_ASSERT_PTR_NOT_NULL_FATAL(space);
  fseek(f, second + (space - line) - 1, SEEK_SET);
  fputc('9', f); /* the rank, a digit before the nanoseconds */
  fclose(f);
  setenv("GEPOLAB_CUDA_PRODUCTS", path, 1);
  backend *b = device(NUMBER_F32);
  unsetenv("GEPOLAB_CUDA_PRODUCTS");
  gl_error err = {.status = GL_OK};
  array in = draw(b, 12, 4, 0, 1), weight = draw(b, 20, 4, 0, 2), out = draw(b, 15, 4, 0, 3);
  b->ops->product(b, out.at, in.at, weight.at, 3, 5, 4, PRODUCT_ADD);
  CU_ASSERT_EQUAL(b->ops->status(b, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "GEPOLAB_CUDA_PRODUCTS"));
  fini(b, &in);
  fini(b, &weight);
  fini(b, &out);
  backend_free(b);
  unlink(path);
  rmdir(folder);
}
