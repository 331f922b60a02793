/* The reader and writer of tensor files, against files torch wrote and against hostile ones. */
#include "llm/model/safetensors.h"
#include "tests/support/files.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: safetensors");

#define FIXTURE "tests/golden/qwen3/"

/* --- 16-bit forms --- */

TEST(every_half_has_the_value_the_standard_gives_it) {
  size_t wrong = 0;
  for (uint32_t h = 0; h < 65536; ++h) {
    int exponent = (int)(h >> 10 & 31), fraction = (int)(h & 1023);
    double sign = h & 0x8000 ? -1 : 1, got = (double)float_of_f16((uint16_t)h);
    if (exponent == 31 && fraction != 0)
      wrong += isnan(got) ? 0 : 1;
    else if (exponent == 31)
      wrong += got != sign * (double)INFINITY;
    else if (exponent == 0)
      wrong += got != sign * ldexp(fraction, -24);
    else
      wrong += got != sign * ldexp(1024 + fraction, exponent - 25);
  }
  CU_ASSERT_EQUAL(wrong, 0);
}

/* Every bfloat16 value, and the doubles just around the middle to its neighbour. */
TEST(bfloat16_rounds_to_nearest_even) {
  size_t wrong = 0;
  for (uint32_t h = 0; h < 0x7f7f; ++h) {
    double low = (double)float_of_bf16((uint16_t)h),
           high = (double)float_of_bf16((uint16_t)(h + 1));
    double middle = low / 2 + high / 2;
    uint16_t even = (uint16_t)(h % 2 == 0 ? h : h + 1);
    wrong += bf16_of_double(low) != h || bf16_of_double(-low) != (h | 0x8000);
    wrong += bf16_of_double(middle) != even || bf16_of_float((float)middle) != even;
    wrong += bf16_of_double(nextafter(middle, high)) != h + 1;
    wrong += bf16_of_double(nextafter(middle, low)) != h;
  }
  CU_ASSERT_EQUAL(wrong, 0);
  CU_ASSERT(isnan(float_of_bf16(bf16_of_float(nanf("")))));
  CU_ASSERT(isinf(float_of_bf16(bf16_of_double(1e300))));
}

/* --- files that torch wrote --- */

static safetensors *opened(const char *path) {
  safetensors *s = NULL;
  ASSERT_OK(safetensors_open(&s, path, &err));
  CU_ASSERT_PTR_NOT_NULL(s);
  return s;
}

/* The file with all its tensors written again in another type. */
static void write_again(const safetensors *s, const char *path, tensor_type type) {
  size_t n = safetensors_count(s);
  tensor_shape *shapes = calloc(n, sizeof *shapes);
  for (size_t i = 0; i < n; ++i) {
    const tensor_entry *t = safetensors_at(s, i);
    shapes[i] = (tensor_shape){t->name, t->rank, {t->shape[0], t->rank > 1 ? t->shape[1] : 0}};
  }
  safetensors_writer w;
  ASSERT_OK(safetensors_write_begin(&w, path, type, shapes, n, &err));
  for (size_t i = 0; i < n; ++i) {
    const tensor_entry *t = safetensors_at(s, i);
    double *value = calloc(t->elements, sizeof *value);
    size_t half = t->elements / 2; /* in two pieces */
    ASSERT_OK(safetensors_read_f64(s, t, 0, t->elements, value, &err));
    ASSERT_OK(safetensors_write_f64(&w, value, half, &err));
    ASSERT_OK(safetensors_write_f64(&w, value + half, t->elements - half, &err));
    free(value);
  }
  ASSERT_OK(safetensors_write_commit(&w, &err));
  free(shapes);
}

TEST(files_written_here_equal_those_of_torch_byte_for_byte) {
  char folder[FILES_PATH], path[FILES_PATH];
  files_make(folder);
  safetensors *s = opened(FIXTURE "tied/model.safetensors");
  CU_ASSERT_PTR_NOT_NULL_FATAL(s);
  write_again(s, files_path(folder, "f32", path), TENSOR_F32);
  CU_ASSERT(files_equal(path, FIXTURE "tied/model.safetensors"));
  write_again(s, files_path(folder, "bf16", path), TENSOR_BF16);
  CU_ASSERT(files_equal(path, FIXTURE "tied_bf16/model.safetensors"));
  write_again(s, files_path(folder, "f64", path), TENSOR_F64);
  safetensors_free(s);
  s = opened(path);
  write_again(s, files_path(folder, "again", path), TENSOR_F32);
  CU_ASSERT(files_equal(path, FIXTURE "tied/model.safetensors"));
  safetensors_free(s);
  files_remove(folder);
}

TEST(numbers_are_the_same_from_the_middle) {
  gl_error err = {0};
  safetensors *s = opened(FIXTURE "tied_f16/model.safetensors");
  CU_ASSERT_PTR_NOT_NULL_FATAL(s);
  const tensor_entry *t = safetensors_find(s, "model.layers.1.mlp.up_proj.weight");
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  CU_ASSERT(t->type == TENSOR_F16 && t->rank == 2 && t->shape[0] == 48 && t->shape[1] == 32);
  double wide[48 * 32];
  double middle[100];
  CU_ASSERT_EQUAL(safetensors_read_f64(s, t, 0, t->elements, wide, &err), GL_OK);
  CU_ASSERT_EQUAL(safetensors_read_f64(s, t, 900, 100, middle, &err), GL_OK);
  for (size_t i = 0; i < 100; ++i) CU_ASSERT(middle[i] == wide[900 + i]);
  CU_ASSERT_EQUAL(safetensors_read_f64(s, t, 1500, 100, wide, &err), GL_EINTERNAL);
  CU_ASSERT_PTR_NULL(safetensors_find(s, "model.layers.1.mlp.up_proj.weigh"));
  safetensors_free(s);
}

TEST(an_unfinished_file_never_appears) {
  char folder[FILES_PATH], path[FILES_PATH];
  gl_error err = {0};
  safetensors_writer w;
  const tensor_shape shape = {"a", 1, {3, 0}};
  const double value[4] = {1, 2, 3, 4};
  files_make(folder);
  files_path(folder, "x.safetensors", path);
  CU_ASSERT_EQUAL(safetensors_write_begin(&w, path, TENSOR_F32, &shape, 1, &err), GL_OK);
  CU_ASSERT_EQUAL(safetensors_write_f64(&w, value, 2, &err), GL_OK);
  CU_ASSERT_EQUAL(safetensors_write_commit(&w, &err), GL_EINTERNAL);
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(safetensors_write_begin(&w, path, TENSOR_F32, &shape, 1, &err), GL_OK);
  CU_ASSERT_EQUAL(safetensors_write_f64(&w, value, 4, &err), GL_EINTERNAL);
  safetensors_write_abandon(&w);
  CU_ASSERT_EQUAL(files_count(folder), 0);
  files_remove(folder);
}

/* --- headers that are wrong --- */

#define TENSOR(name, dtype, shape, offsets)                                                        \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct {
  const char *header;
  size_t data;
  const char *says; /* a part of the message; NULL: it is right */
} headers[] = {
    {"{}", 0, NULL},
    {"{\"__metadata__\":{\"a\":\"b\"}}  ", 0, NULL},
    {"{" TENSOR("a", "F32", "[]", "[0,4]") "}", 4, NULL},
    {"{" TENSOR("a", "F32", "[2,0]", "[0,0]") "," TENSOR("b", "BF16", "[3]", "[0,6]") "}", 6, NULL},
    {"{" TENSOR("\\u0061\\ud83d\\ude00", "I64", "[1]", "[0,8]") "}", 8, NULL},
    {"", 0, "does not begin with '{'"},
    {"[]", 0, "does not begin with '{'"},
    {" {}", 0, "does not begin with '{'"},
    {"{}x", 0, "more after the end"},
    {"{\"a\":1}", 0, "expected an object"},
    {"{\"a\":{}}", 0, "needs dtype, shape and data_offsets"},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") ",}", 4, "expected a string"},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]"), 4, "cut short"},
    {"{" TENSOR("a", "F31", "[1]", "[0,4]") "}", 4, "unknown dtype \"F31\""},
    {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "expected a string"},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") "," TENSOR("a", "F32", "[1]", "[4,8]") "}", 8,
     "tensor a is there twice"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "given twice"},
    {"{\"a\":{\"dtype\":\"F32\",\"size\":4,\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "is not a key of the format"},
    {"{" TENSOR("a", "F32", "[2]", "[0,4]") "}", 4, "needs 8 bytes, its data_offsets give it 4"},
    {"{" TENSOR("a", "F32", "[1]", "[4,0]") "}", 4, "outside the 4 bytes"},
    {"{" TENSOR("a", "F32", "[1]", "[4,8]") "}", 4, "outside the 4 bytes"},
    {"{" TENSOR("a", "F32", "[1]", "[4,8]") "}", 8, "neither overlap nor leave holes"},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") "}", 8, "which has 8"},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") "," TENSOR("b", "F32", "[1]", "[2,6]") "}", 6,
     "neither overlap nor leave holes"},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") "," TENSOR("b", "F32", "[1]", "[0,4]") "}", 4,
     "neither overlap nor leave holes"},
    {"{" TENSOR("a", "F32", "[-1]", "[0,4]") "}", 4, "not negative"},
    {"{" TENSOR("a", "F32", "[1.0]", "[0,4]") "}", 4, "whole number"},
    {"{" TENSOR("a", "F32", "[1]", "[-4,0]") "}", 4, "not negative"},
    {"{" TENSOR("a", "F32", "[1]", "[0]") "}", 4, "two numbers"},
    {"{" TENSOR("a", "F32", "[1]", "[0,4,4]") "}", 4, "two numbers"},
    {"{" TENSOR("a", "F32", "[9223372036854775808]", "[0,4]") "}", 4, "its shape"},
    {"{" TENSOR("a", "F32", "[4294967296,4294967296]", "[0,0]") "}", 0, "no memory holds"},
    {"{" TENSOR("a", "U8", "[2305843009213693952]", "[0,0]") "}", 0, "its shape"},
    {"{" TENSOR("a", "F32", "[18446744073709551616]", "[0,4]") "}", 4, "too large"},
    {"{" TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "more than 8 dimensions"},
    {"{" TENSOR("a", "F32", "[01]", "[0,4]") "}", 4, "expected a number"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "expected a string"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "given twice"},
    {"{\"\\ud800\":{}}", 0, "surrogate"},
    {"{\"\\u0000\":{}}", 0, "no character"},
    {"{\"a\nb\":{}}", 0, "control character"},
    {"{\"\xff\":{}}", 0, "not UTF-8"},
};

static gl_status parse(const char *header, size_t size, size_t data, gl_error *err) {
  safetensors *s = NULL;
  /* In memory of its own, so that the address sanitizer sees a read beyond it. */
  char *copy = malloc(size + (size == 0));
  if (copy == NULL) abort();
  memcpy(copy, header, size);
  gl_status status = safetensors_parse(&s, copy, size, data, "wrong.safetensors", err);
  CU_ASSERT((status == GL_OK) == (s != NULL));
  free(copy);
  safetensors_free(s);
  return status;
}

TEST(a_wrong_header_is_told_with_file_and_tensor) {
  for (size_t i = 0; i < sizeof headers / sizeof *headers; ++i) {
    gl_error err = {0};
    gl_status status = parse(headers[i].header, strlen(headers[i].header), headers[i].data, &err);
    int right = headers[i].says == NULL
                    ? status == GL_OK
                    : status == GL_EINPUT && strstr(err.text, headers[i].says) != NULL &&
                          strstr(err.text, "wrong.safetensors") == err.text;
    if (!right) fprintf(stderr, "%s: %s\n", headers[i].header, err.text);
    CU_ASSERT(right);
  }
}

TEST(deep_json_is_refused) {
  enum { DEPTH = 100000 };
  static char deep[DEPTH + 64];
  gl_error err = {0};
  int n = snprintf(deep, sizeof deep, "{\"a\":{\"dtype\":");
  memset(deep + n, '[', DEPTH);
  CU_ASSERT_EQUAL(parse(deep, (size_t)n + DEPTH, 0, &err), GL_EINPUT);
  gl_error_clear(&err);
  n = snprintf(deep, sizeof deep, "{\"a\":{\"shape\":");
  memset(deep + n, '[', DEPTH);
  CU_ASSERT_EQUAL(parse(deep, (size_t)n + DEPTH, 0, &err), GL_EINPUT);
}

/* --- files that are wrong --- */

static const char small[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
                            "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[8,12]}}  ";
enum { HEADER = sizeof small - 1, SMALL_FILE = 8 + HEADER + 12 };

static void make_small(unsigned char bytes[SMALL_FILE]) {
  const uint64_t size = HEADER;
  memcpy(bytes, &size, 8);
  memcpy(bytes + 8, small, HEADER);
  memset(bytes + 8 + HEADER, 0x3f, 12);
}

static gl_status open_bytes(const char *path, const unsigned char *bytes, size_t size,
                            gl_error *err) {
  safetensors *s = NULL;
  double value[4];
  files_write(path, bytes, size);
  gl_status status = safetensors_open(&s, path, err);
  CU_ASSERT((status == GL_OK) == (s != NULL));
  for (size_t i = 0; s != NULL && i < safetensors_count(s); ++i) {
    const tensor_entry *t = safetensors_at(s, i);
    if (t->type != TENSOR_OTHER && t->elements <= 4)
      CU_ASSERT_EQUAL(safetensors_read_f64(s, t, 0, t->elements, value, err), GL_OK);
  }
  safetensors_free(s);
  return status;
}

TEST(a_file_cut_short_anywhere_is_refused) {
  char folder[FILES_PATH], path[FILES_PATH];
  unsigned char bytes[SMALL_FILE + 1] = {0};
  make_small(bytes);
  files_make(folder);
  files_path(folder, "small", path);
  for (size_t n = 0; n < SMALL_FILE; ++n) {
    gl_error err = {0};
    CU_ASSERT_EQUAL(open_bytes(path, bytes, n, &err), GL_EINPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
  }
  gl_error err = {0};
  CU_ASSERT_EQUAL(open_bytes(path, bytes, SMALL_FILE, &err), GL_OK);
  CU_ASSERT_EQUAL(open_bytes(path, bytes, SMALL_FILE + 1, &err), GL_EINPUT);
  files_remove(folder);
}

/* A flipped bit may leave another valid header (a name's letter, a type of the same size), never
 * anything but an error or numbers within the file. */
TEST(any_flipped_bit_of_the_header_is_survived) {
  char folder[FILES_PATH], path[FILES_PATH];
  size_t refused = 0;
  files_make(folder);
  files_path(folder, "small", path);
  for (size_t bit = 0; bit < 8 * (8 + HEADER); ++bit) {
    unsigned char bytes[SMALL_FILE];
    gl_error err = {0};
    make_small(bytes);
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    gl_status status = open_bytes(path, bytes, SMALL_FILE, &err);
    CU_ASSERT(status == GL_OK || (status == GL_EINPUT && strlen(err.text) > 0));
    refused += status != GL_OK;
  }
  CU_ASSERT(refused > 8 * HEADER / 2);
  files_remove(folder);
}

TEST(a_huge_header_is_not_believed) {
  char folder[FILES_PATH], path[FILES_PATH];
  const uint64_t sizes[] = {
      SMALL_FILE,     SAFETENSORS_MAX_HEADER + 1u, UINT64_C(1) << 63,           UINT64_MAX,
      UINT64_MAX - 7, (uint64_t)HEADER + 13,       UINT64_C(0x7fffffffffffffff)};
  files_make(folder);
  files_path(folder, "small", path);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    unsigned char bytes[SMALL_FILE];
    gl_error err = {0};
    make_small(bytes);
    memcpy(bytes, &sizes[i], 8);
    CU_ASSERT_EQUAL(open_bytes(path, bytes, SMALL_FILE, &err), GL_EINPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "header"));
  }
  gl_error err = {0};
  safetensors *s = NULL;
  CU_ASSERT_EQUAL(safetensors_open(&s, folder, &err), GL_EINPUT);
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(safetensors_open(&s, files_path(folder, "none", path), &err), GL_EINPUT);
  files_remove(folder);
}
