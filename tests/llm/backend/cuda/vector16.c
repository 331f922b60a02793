/* Rows that begin at multiples of 16 bytes are moved 16 bytes at a time, others number by number:
 * both give the same bits. And copies in bfloat16 are rounded as llm/backend/kernels.h says, at
 * their addresses. */
#include "core/random/rng.h"
#include "llm/backend/kernels.h"
#include "llm/backend/open/open.h"
#include "tests/support/llm_backend_cases.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: cuda vector16");

static backend *device(number_type type) {
  backend *b = NULL;
  gl_error err = {.status = GL_OK};
  if (backend_new(&b, BACKEND_CUDA, type, 0, &err) != GL_OK)
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no CUDA device"));
  return b;
}

/* Makes arrays that begin `numbers` numbers, or 16 bytes, into their memory. */
typedef struct shifted {
  backend *b;
  size_t numbers; /* into the memory; 0: sixteen bytes */
  char *memory[16];
  size_t n_memory;
  uint64_t drawn;
} shifted;

static void *place(shifted *s, size_t n, size_t size) {
  char *memory = s->b->ops->allocate(s->b, n * size + 16);
  s->memory[s->n_memory++] = memory;
  return memory + (s->numbers > 0 ? s->numbers * size : 16);
}

/* An array of numbers of (-1, 1) that bfloat16 has, `size` bytes each. */
static void *draw(shifted *s, size_t n, size_t size) {
  const rng_stream stream = rng_stream_at(3, RNG_TEST, s->drawn++);
  char *host = malloc(n * size);
  for (size_t i = 0; i < n; ++i) {
    const float x = (float)(2 * rng_u01(rng_block(stream, i).v[0]) - 1);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t half = (uint16_t)(bits >> 16);
    bits &= 0xffff0000u;
    memcpy(host + i * size, size == 2 ? (const void *)&half : (const void *)&bits, size);
  }
  void *out = place(s, n, size);
  s->b->ops->upload(s->b, out, host, n * size);
  free(host);
  return out;
}

typedef struct bytes {
  unsigned char *at;
  size_t n, room;
} bytes;

static void keep(shifted *s, bytes *to, const void *from, size_t n) {
  CU_ASSERT_FATAL(to->n + n <= to->room);
  s->b->ops->download(s->b, to->at + to->n, from, n);
  to->n += n;
}

static void run_norm(shifted *s, size_t width, bytes *out) {
  enum { ROWS = 3 };
  const backend_ops *o = s->b->ops;
  const size_t t = s->b->element, n = ROWS * width;
  void *in = draw(s, n, t), *add = draw(s, n, t), *weight = draw(s, width, t);
  void *dout = draw(s, n, t), *din = draw(s, n, t), *dweight = draw(s, width, 4);
  void *y = place(s, n, t), *sum = place(s, n, t), *rstd = place(s, ROWS, 4);
  o->norm(s->b, y, rstd, sum, in, add, weight, ROWS, width, 1e-6);
  o->norm_backward(s->b, din, dweight, dout, sum, rstd, weight, ROWS, width);
  keep(s, out, y, n * t);
  keep(s, out, sum, n * t);
  keep(s, out, din, n * t);
  keep(s, out, dweight, width * 4);
  keep(s, out, rstd, ROWS * sizeof(float));
}

static void run_heads(shifted *s, size_t dim, bytes *out) {
  enum { ROWS = 5 };
  static const int32_t places[ROWS] = {0, 1, 2, 0, 1};
  const backend_ops *o = s->b->ops;
  const head_shape shape = {3, 2, dim};
  const size_t t = s->b->element, n = ROWS * 7 * dim, k = ROWS * 5 * dim;
  void *qkv = draw(s, n, t), *dqk = draw(s, k, t), *dqkv = draw(s, n, t);
  void *q = draw(s, dim, t), *w = draw(s, dim, t), *dq = draw(s, dim, 4), *dk = draw(s, dim, 4);
  void *qk = place(s, k, t), *rstd = place(s, ROWS * 5, 4);
  void *cosine = place(s, 3 * dim / 2, 4), *sine = place(s, 3 * dim / 2, 4);
  int32_t *position = o->allocate(s->b, sizeof places);
  o->upload(s->b, position, places, sizeof places);
  o->rotary_table(s->b, cosine, sine, 3, dim, 100, (rotary_scaling){0});
  o->heads(s->b, qk, rstd, qkv, q, w, cosine, sine, position, ROWS, shape, 1e-6);
  o->heads_backward(s->b, dqkv, dq, dk, dqk, qkv, rstd, q, w, cosine, sine, position, ROWS, shape);
  o->release(s->b, position);
  keep(s, out, qk, k * t);
  keep(s, out, dqkv, n * t);
  keep(s, out, dq, dim * 4);
  keep(s, out, dk, dim * 4);
  keep(s, out, rstd, ROWS * 5 * sizeof(float));
}

static void run_rows(shifted *s, size_t width, bytes *out) {
  enum { ROWS = 4 };
  static const int32_t rows[2][ROWS] = {{2, 0, 2, 2}, {0, 2, 2, 2}}; /* the second ascends */
  const backend_ops *o = s->b->ops;
  const size_t t = s->b->element, n = ROWS * width;
  void *gate_up = draw(s, 2 * n, t), *dout = draw(s, n, t), *active = place(s, n, t);
  void *dgate_up = place(s, 2 * n, t), *table = draw(s, 3 * width, 4),
       *into = draw(s, 3 * width, t);
  void *taken = place(s, n, t);
  int32_t *index = o->allocate(s->b, sizeof rows);
  o->upload(s->b, index, rows, sizeof rows);
  void *bias = draw(s, width, t), *dbias = draw(s, width, 4), *biased = draw(s, n, t);
  o->bias(s->b, biased, bias, ROWS, width);
  o->bias_backward(s->b, dbias, dout, ROWS, width);
  o->swiglu(s->b, active, gate_up, ROWS, width);
  o->swiglu_backward(s->b, dgate_up, dout, gate_up, ROWS, width);
  o->embed_backward(s->b, table, dout, index, ROWS, width);
  o->scatter_add(s->b, into, dout, index + ROWS, ROWS, width);
  o->gather(s->b, taken, into, index, ROWS, width);
  o->release(s->b, index);
  keep(s, out, biased, n * t);
  keep(s, out, dbias, width * 4);
  keep(s, out, active, n * t);
  keep(s, out, dgate_up, 2 * n * t);
  keep(s, out, table, 3 * width * 4);
  keep(s, out, into, 3 * width * t);
  keep(s, out, taken, n * t);
}

static void run_steps(shifted *s, size_t n, bytes *out) {
  const backend_ops *o = s->b->ops;
  const size_t t = s->b->element;
  const copy_rounding rounding = {rng_stream_at(3, RNG_ROUNDING, 1), 8};
  const adamw_step adamw = {.lr = 0.01,
                            .beta1 = 0.9,
                            .beta2 = 0.99,
                            .eps = 1e-8,
                            .decoupled = 0.1,
                            .correct1 = 0.1,
                            .correct2 = 0.01,
                            .scale = 0.5,
                            .rounding = &rounding};
  const sgd_step sgd = {.lr = 0.1, .momentum = 0.9, .scale = 1};
  float *param = draw(s, n, 4), *grad = draw(s, n, 4), *m = draw(s, n, 4), *v = place(s, n, 4);
  void *copy = t == 4 ? param : place(s, n, t), *cast = t == 4 ? param : place(s, n, t);
  o->adamw(s->b, param, copy, grad, m, v, n, &adamw);
  keep(s, out, copy, n * t);
  o->sgd(s->b, param, copy, grad, m, n, &sgd);
  o->cast(s->b, cast, param, n);
  keep(s, out, param, n * 4);
  keep(s, out, copy, n * t);
  keep(s, out, cast, n * t);
  keep(s, out, m, n * 4);
  keep(s, out, v, n * 4);
  const double squares = o->sum_squares(s->b, param, n);
  memcpy(out->at + out->n, &squares, sizeof squares);
  out->n += sizeof squares;
}

/* What one run writes, on arrays that begin `numbers` numbers, or 16 bytes (0), into memory. */
static bytes output(number_type type, void (*run)(shifted *, size_t, bytes *), size_t width,
                    size_t numbers) {
  shifted s = {.b = device(type), .numbers = numbers};
  gl_error err = {.status = GL_OK};
  bytes out = {.room = (size_t)1 << 20};
  if (s.b == NULL) return out;
  out.at = malloc(out.room);
  run(&s, width, &out);
  CU_ASSERT_EQUAL(s.b->ops->status(s.b, &err), GL_OK);
  while (s.n_memory > 0) s.b->ops->release(s.b, s.memory[--s.n_memory]);
  backend_free(s.b);
  return out;
}

static void compare_shifts(void (*run)(shifted *, size_t, bytes *), const size_t width[3]) {
  for (int half = 0; half < 2; ++half)
    for (size_t i = 0; i < 3; ++i) {
      const number_type type = half ? NUMBER_BF16 : NUMBER_F32;
      bytes whole = output(type, run, width[i], 0), odd = output(type, run, width[i], 1);
      if (whole.at == NULL) SKIP("no CUDA device");
      CU_ASSERT(whole.n > 0 && whole.n == odd.n && memcmp(whole.at, odd.at, odd.n) == 0);
      free(whole.at);
      free(odd.at);
    }
}

/* The three widths: whole vectors of both types, more vectors than a block has threads, and no
 * whole vectors. */
TEST(norms_do_not_depend_on_where_rows_begin) {
  compare_shifts(run_norm, (const size_t[3]){64, 2064, 37});
}
TEST(heads_do_not_depend_on_where_rows_begin) {
  compare_shifts(run_heads, (const size_t[3]){16, 128, 10});
}
TEST(gates_and_tables_do_not_depend_on_where_rows_begin) {
  compare_shifts(run_rows, (const size_t[3]){32, 2056, 21});
}
TEST(optimisers_do_not_depend_on_where_arrays_begin) {
  compare_shifts(run_steps, (const size_t[3]){1024, 1030, 3});
}

/* --- stochastic rounding --- */

/* Copies made by a step and by a cast, whose first number lies inside a block of random words. */
TEST(copies_are_rounded_at_their_addresses) {
  enum { N = 1003, FIRST = 6 };
  shifted s = {.b = device(NUMBER_BF16)};
  if (s.b == NULL) SKIP("no CUDA device");
  const copy_rounding rounding = {rng_stream_at(9, RNG_ROUNDING, 12), FIRST};
  const sgd_step step = {.lr = 0.123, .scale = 1, .rounding = &rounding};
  float *param = draw(&s, N, 4), *grad = draw(&s, N, 4);
  uint16_t *copy = place(&s, N, 2), *again = place(&s, N, 2), *near = place(&s, N, 2);
  float value[N];
  uint16_t got[3][N];
  s.b->ops->sgd(s.b, param, copy, grad, NULL, N, &step);
  s.b->ops->cast_stochastic(s.b, again, param, N, &rounding);
  s.b->ops->cast(s.b, near, param, N);
  s.b->ops->download(s.b, value, param, sizeof value);
  s.b->ops->download(s.b, got[0], copy, sizeof got[0]);
  s.b->ops->download(s.b, got[1], again, sizeof got[1]);
  s.b->ops->download(s.b, got[2], near, sizeof got[2]);
  size_t wrong = 0, other = 0;
  for (uint64_t i = 0; i < N; ++i) {
    const uint64_t k = FIRST + i;
    wrong += got[0][i] != kernel_round_bf16(value[i], rng_block(rounding.stream, k / 4).v[k % 4]);
    other += got[0][i] != got[2][i];
  }
  CU_ASSERT_EQUAL(wrong, 0);
  CU_ASSERT(other > N / 8);
  CU_ASSERT_EQUAL(memcmp(got[0], got[1], sizeof got[0]), 0);
  ASSERT_OK(s.b->ops->status(s.b, &err));
  while (s.n_memory > 0) s.b->ops->release(s.b, s.memory[--s.n_memory]);
  backend_free(s.b);
}
