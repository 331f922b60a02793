/* The CPU backend: every operation of its number types, instruction sets and thread counts
 * compared, gradients of large weights, choice of a backend, and memory that runs out. */
#include "llm/backend/cpu/cpu.h"
#include "llm/backend/open/open.h"
#include "tests/support/llm_backend_cases.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("llm: backend");

static backend *made(number_type type, size_t threads, cpu_form variant) {
  backend *b = NULL;
  ASSERT_OK(backend_cpu_new_form(&b, type, threads, variant, &err));
  return b;
}

/* The results of all cases, with inputs rounded to a type; computed once and kept to the end. */
static const case_results *results_of(number_type type, size_t threads, cpu_form variant,
                                      number_type inputs) {
  static struct {
    number_type type, inputs;
    size_t threads;
    cpu_form variant;
    case_results *results;
  } all[24];
  size_t i = 0;
  while (all[i].results != NULL && (all[i].type != type || all[i].threads != threads ||
                                    all[i].variant != variant || all[i].inputs != inputs))
    ++i;
  CU_ASSERT_FATAL(i + 1 < sizeof all / sizeof *all);
  if (all[i].results != NULL) return all[i].results;
  backend *b = made(type, threads, variant);
  all[i].type = type;
  all[i].inputs = inputs;
  all[i].threads = threads;
  all[i].variant = variant;
  all[i].results = case_results_new(b, inputs, inputs);
  backend_free(b);
  return all[i].results;
}

static void compare(number_type type, size_t threads, cpu_form variant, number_type reference,
                    size_t reference_threads, cpu_form reference_variant, double tolerance) {
  const int both_f64 = type == NUMBER_F64 && reference == NUMBER_F64;
  const number_type inputs = both_f64 ? NUMBER_F64 : NUMBER_F32;
  CU_ASSERT_EQUAL(
      compare_results(results_of(type, threads, variant, inputs),
                      results_of(reference, reference_threads, reference_variant, inputs),
                      tolerance),
      0);
}

/* Sums have up to 1100 terms in float32; tolerances are relative to the largest number of a result.
 */
TEST(float_is_close_to_double) {
  compare(NUMBER_F32, 2, cpu_form_best(), NUMBER_F64, 1, cpu_form_best(), 3e-6);
  compare(NUMBER_F32, 1, CPU_PLAIN, NUMBER_F64, 1, cpu_form_best(), 3e-6);
}

TEST(instruction_sets_agree) {
  compare(NUMBER_F64, 1, cpu_form_best(), NUMBER_F64, 1, CPU_PLAIN, 1e-14);
  compare(NUMBER_F32, 1, cpu_form_best(), NUMBER_F32, 1, CPU_PLAIN, 3e-6);
}

static void check_weight_gradient(number_type type, size_t threads, cpu_form form);

/* A form that this processor runs has the bits of another one, or is close to it. */
static void compare_forms(cpu_form a, cpu_form b, double f32, double f64) {
  compare(NUMBER_F32, 2, a, NUMBER_F32, 1, b, f32);
  compare(NUMBER_F64, 1, a, NUMBER_F64, 1, b, f64);
  for (size_t t = 1; t <= 3; t += 2) check_weight_gradient(NUMBER_F32, t, a);
}

TEST(avx512_has_the_bits_of_avx2) {
  if (cpu_form_lacks(CPU_AVX512) != NULL) SKIP("not run: processor lacks AVX-512");
  compare_forms(CPU_AVX512, CPU_AVX2, 0, 0);
}

TEST(avx2_is_close_to_plain) {
  if (cpu_form_lacks(CPU_AVX2) != NULL) SKIP("not run: processor lacks AVX2");
  compare_forms(CPU_AVX2, CPU_PLAIN, 3e-6, 1e-14);
}

TEST(neon_is_close_to_plain) {
  if (cpu_form_lacks(CPU_NEON) != NULL) SKIP("not run: processor is no 64-bit ARM");
  compare_forms(CPU_NEON, CPU_PLAIN, 3e-6, 1e-14);
}

TEST(forms_are_read_by_name) {
  cpu_form form = CPU_PLAIN;
  gl_error err = {.status = GL_OK};
  CU_ASSERT_EQUAL(cpu_form_read(&form, NULL, &err), GL_OK);
  CU_ASSERT_EQUAL(form, cpu_form_best());
  CU_ASSERT_EQUAL(cpu_form_read(&form, "", &err), GL_OK);
  CU_ASSERT_EQUAL(form, cpu_form_best());
  for (int i = 0; i < CPU_FORMS; ++i) {
    const char *lacks = cpu_form_lacks((cpu_form)i);
    err = (gl_error){.status = GL_OK};
    const gl_status status = cpu_form_read(&form, cpu_form_name((cpu_form)i), &err);
    CU_ASSERT_EQUAL(status, lacks == NULL ? GL_OK : GL_EINPUT);
    if (lacks == NULL) CU_ASSERT_EQUAL(form, (cpu_form)i);
    if (lacks != NULL) CU_ASSERT_PTR_NOT_NULL(strstr(err.text, lacks));
  }
  err = (gl_error){.status = GL_OK};
  CU_ASSERT_EQUAL(cpu_form_read(&form, "avx", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "avx512"));
  backend *b = made(NUMBER_F32, 1, CPU_PLAIN);
  CU_ASSERT_STRING_EQUAL(b->form, "plain");
  backend_free(b);
}

TEST(threads_do_not_change_a_bit) {
  compare(NUMBER_F32, 2, cpu_form_best(), NUMBER_F32, 1, cpu_form_best(), 0);
  compare(NUMBER_F32, 3, cpu_form_best(), NUMBER_F32, 1, cpu_form_best(), 0);
  compare(NUMBER_F64, 3, cpu_form_best(), NUMBER_F64, 1, cpu_form_best(), 0);
  compare(NUMBER_F32, 3, CPU_PLAIN, NUMBER_F32, 1, CPU_PLAIN, 0);
}

/* Numbers are whole, so that every order of the sums gives the same result; each side is larger
 * than a task, a panel and a block of terms. */
enum { OUTPUTS = 133, INPUTS = 300, GRADIENT_ROWS = 1100 };

static int small_number(size_t i, size_t j) {
  return (int)((7 * i + 13 * j + i * j) % 5) - 2;
}

static void put_number(backend *b, void *at, size_t i, int x) {
  if (b->type == NUMBER_F64)
    ((double *)at)[i] = x;
  else
    ((float *)at)[i] = (float)x;
}

static size_t wrong_sums(const backend *b, const void *slope) {
  size_t wrong = 0;
  for (size_t i = 0; i < OUTPUTS; ++i)
    for (size_t j = 0; j < INPUTS; ++j) {
      const size_t at = i * INPUTS + j;
      int sum = 1;
      for (size_t r = 0; r < GRADIENT_ROWS; ++r)
        sum += small_number(r, i) * small_number(r, 1000 + j);
      const double x =
          b->type == NUMBER_F64 ? ((const double *)slope)[at] : (double)((const float *)slope)[at];
      wrong += x != sum;
    }
  return wrong;
}

static void check_weight_gradient(number_type type, size_t threads, cpu_form variant) {
  backend *b = made(type, threads, variant);
  void *dout = b->ops->allocate(b, GRADIENT_ROWS * OUTPUTS * b->element);
  void *in = b->ops->allocate(b, GRADIENT_ROWS * INPUTS * b->element);
  void *slope = b->ops->allocate(b, OUTPUTS * INPUTS * b->element);
  for (size_t r = 0; r < GRADIENT_ROWS; ++r) {
    for (size_t i = 0; i < OUTPUTS; ++i) put_number(b, dout, r * OUTPUTS + i, small_number(r, i));
    for (size_t j = 0; j < INPUTS; ++j)
      put_number(b, in, r * INPUTS + j, small_number(r, 1000 + j));
  }
  for (size_t i = 0; i < OUTPUTS * INPUTS; ++i) put_number(b, slope, i, 1);
  b->ops->product_backward_weight(b, slope, dout, in, GRADIENT_ROWS, OUTPUTS, INPUTS);
  CU_ASSERT_EQUAL(wrong_sums(b, slope), 0);
  b->ops->release(b, dout);
  b->ops->release(b, in);
  b->ops->release(b, slope);
  backend_free(b);
}

TEST(gradients_of_large_weights_are_whole) {
  check_weight_gradient(NUMBER_F32, 1, cpu_form_best());
  check_weight_gradient(NUMBER_F32, 3, cpu_form_best());
  check_weight_gradient(NUMBER_F64, 2, cpu_form_best());
  check_weight_gradient(NUMBER_F32, 2, CPU_PLAIN);
  check_weight_gradient(NUMBER_F64, 1, CPU_PLAIN);
}

TEST(every_operation_is_compared) {
  backend *b = made(NUMBER_F64, 1, cpu_form_best());
  CU_ASSERT_EQUAL(operations_without_case(b), 0);
  backend_free(b);
}

TEST(a_wrong_type_is_refused) {
  backend *b = NULL;
  gl_error err = {.status = GL_OK};
  CU_ASSERT_EQUAL(backend_new(&b, BACKEND_CPU, NUMBER_BF16, 1, &err), GL_EINPUT);
  CU_ASSERT_PTR_NULL(b);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "float32"));
}

TEST(automatic_finds_a_backend) {
  backend *b = NULL;
  ASSERT_OK(backend_new(&b, BACKEND_AUTO, NUMBER_F32, 1, &err));
  CU_ASSERT_PTR_NOT_NULL(strstr(b->device, b->kind == BACKEND_CPU ? "1 thread" : ""));
  size_t total, available;
  b->ops->memory(b, &total, &available);
  CU_ASSERT(available > 0 && available <= total);
  backend_free(b);
}

/* The first failure is kept, and later operations do nothing. */
TEST(short_memory_is_told_once) {
  backend *b = made(NUMBER_F32, 1, cpu_form_best());
  gl_error err = {.status = GL_OK}, again = {.status = GL_OK};
  float *x = b->ops->allocate(b, 4 * sizeof *x);
  CU_ASSERT_PTR_NOT_NULL_FATAL(x);
  CU_ASSERT_PTR_NULL(b->ops->allocate(b, SIZE_MAX - 4096));
  CU_ASSERT_EQUAL(b->ops->status(b, &err), GL_ENOMEM);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "micro_batch"));
  CU_ASSERT_PTR_NULL(b->ops->allocate(b, 16));
  b->ops->product(b, NULL, x, x, 2, 2, 2, 0);
  b->ops->adamw(b, NULL, NULL, x, NULL, NULL, 4, &(adamw_step){0});
  CU_ASSERT_EQUAL(b->ops->status(b, &again), GL_ENOMEM);
  CU_ASSERT_STRING_EQUAL(err.text, again.text);
  b->ops->release(b, x);
  backend_free(b);
}

/* How often in_ranges visited each row, and with how many backends. */
typedef struct visits {
  _Atomic int row[100], calls;
  backend *b;
  _Atomic int whole, fail;
} visits;

static void visit(void *context, size_t first, size_t n, backend *own) {
  visits *v = context;
  ++v->calls;
  v->whole += own == v->b;
  for (size_t r = first; r < first + n; ++r) ++v->row[r];
  if (v->fail && first > 0) own->ops->allocate(own, SIZE_MAX - 4096);
}

TEST(ranges_of_rows_are_run_once_each) {
  for (size_t threads = 1; threads <= 3; ++threads)
    for (size_t n = 0; n <= 100; n += n < 30 ? 1 : 35) {
      backend *b = made(NUMBER_F32, threads, cpu_form_best());
      visits v = {.b = b};
      b->ops->in_ranges(b, n, 8, visit, &v);
      const int one = threads == 1 || n < 8 * threads;
      CU_ASSERT_EQUAL(v.calls, n == 0 ? 0 : one ? 1 : (int)threads);
      CU_ASSERT_EQUAL(v.whole, n > 0 && one);
      for (size_t r = 0; r < 100; ++r) CU_ASSERT_EQUAL(v.row[r], r < n);
      backend_free(b);
    }
}

TEST(a_range_that_fails_is_told) {
  backend *b = made(NUMBER_F32, 2, cpu_form_best());
  visits v = {.b = b, .fail = 1};
  gl_error err = {.status = GL_OK};
  b->ops->in_ranges(b, 100, 8, visit, &v);
  CU_ASSERT_EQUAL(b->ops->status(b, &err), GL_ENOMEM);
  b->ops->in_ranges(b, 100, 8, visit, &v);
  CU_ASSERT_EQUAL(v.calls, 2);
  backend_free(b);
}
