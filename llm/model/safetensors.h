/* Files of named tensors (safetensors): 8 bytes with the header's size (little endian), a JSON
 * header, the numbers (format: huggingface.co/docs/safetensors). The reader checks every size
 * against the file before using it. Tensors must cover the data exactly, without holes or overlaps,
 * as in the reference implementation. Prefix: safetensors_. */
#ifndef GEPOLAB_LLM_MODEL_SAFETENSORS_H
#define GEPOLAB_LLM_MODEL_SAFETENSORS_H

#include "core/base/error.h"
#include "core/base/file.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SAFETENSORS_MAX_HEADER = 100000000, SAFETENSORS_MAX_RANK = 8 };

typedef enum tensor_type {
  TENSOR_F64,
  TENSOR_F32,
  TENSOR_F16,
  TENSOR_BF16,
  TENSOR_OTHER
} tensor_type;

typedef struct tensor_entry {
  char *name;
  char type_name[8]; /* the name in the file, such as "F32" */
  tensor_type type;
  size_t rank, shape[SAFETENSORS_MAX_RANK], elements;
  size_t begin, end; /* bytes from the start of the data */
} tensor_entry;

typedef struct safetensors safetensors;

/* Opens the file and checks its header. Errors: GL_EINPUT (the message names the file, the tensor
 * and the reason), GL_EIO (the file cannot be read), GL_ENOMEM. */
gl_status safetensors_open(safetensors **out, const char *path, gl_error *err);
/* safetensors_open() of a header's text and the number of data bytes that follow it; nothing can be
 * read. name is used in messages. */
gl_status safetensors_parse(safetensors **out, const char *header, size_t size, size_t data_bytes,
                            const char *name, gl_error *err);
void safetensors_free(safetensors *s);
const char *safetensors_path(const safetensors *s);
/* The number of tensors. Exposed for its test. */
size_t safetensors_count(const safetensors *s);
/* Tensor i in ascending order of name; NULL if there are fewer. Borrowed. */
const tensor_entry *safetensors_at(const safetensors *s, size_t i);
/* The tensor of that name; NULL if there is none. */
const tensor_entry *safetensors_find(const safetensors *s, const char *name);
/* Reads elements [first, first + n) of a tensor of known floating type as doubles. Errors: GL_EIO
 * (the file cannot be read), GL_EINTERNAL (elements outside of the tensor, or a type that is not
 * known). */
gl_status safetensors_read_f64(const safetensors *s, const tensor_entry *t, size_t first, size_t n,
                               double *out, gl_error *err);

/* Writing: declare all tensors (names in ascending order, as transformers writes them), then pass
 * their numbers in that order in pieces of any size. Types: TENSOR_F64, TENSOR_F32, TENSOR_BF16
 * (rounded to nearest, ties to even). The file appears at path when it is complete. */
typedef struct tensor_shape {
  const char *name; /* borrowed during safetensors_write_begin */
  size_t rank, shape[2];
} tensor_shape;

typedef struct safetensors_writer {
  file_writer file;
  tensor_type type;
  size_t left; /* elements not written yet */
} safetensors_writer;

gl_status safetensors_write_begin(safetensors_writer *w, const char *path, tensor_type type,
                                  const tensor_shape *tensors, size_t n, gl_error *err);
gl_status safetensors_write_f64(safetensors_writer *w, const double *value, size_t n,
                                gl_error *err);
/* Finishes the file and releases *w. Errors: GL_EINTERNAL (elements are missing; nothing is
 * written). */
gl_status safetensors_write_commit(safetensors_writer *w, gl_error *err);
void safetensors_write_abandon(safetensors_writer *w);

/* Size of an element in bytes; 0 for TENSOR_OTHER. */
size_t tensor_type_bytes(tensor_type type);

/* --- 16-bit numbers --- */

/* Conversion of 16-bit floating-point numbers to and from float: IEEE 754 binary16 (f16), and
 * bfloat16 (bf16), which is the upper half of a float. A 16-bit number is passed as the uint16_t of
 * its bits. Functions are named result_of_argument, without prefix. */

static inline float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float float_of_bf16(uint16_t half) {
  return float_of_bits((uint32_t)half << 16);
}

/* The nearest bfloat16, ties to even; NaN stays NaN. */
static inline uint16_t bf16_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* The nearest bfloat16, rounded once. Going through float would round twice: if the float is
 * exactly between two bfloat16 numbers but the double is not, the float's last bit is moved towards
 * the double first. */
static inline uint16_t bf16_of_double(double value) {
  float near = (float)value;
  uint32_t bits;
  memcpy(&bits, &near, sizeof bits);
  if ((bits & 0xffffu) == 0x8000u && (double)near != value)
    bits += fabs((double)near) < fabs(value) ? 1u : UINT32_MAX;
  return bf16_of_float(float_of_bits(bits));
}

static inline float float_of_f16(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = half >> 10 & 31u,
           fraction = half & 1023u;
  if (exponent == 31) return float_of_bits(sign | 0x7f800000u | fraction << 13);
  if (exponent > 0) return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
  float small = (float)fraction * 0x1p-24f; /* subnormal */
  return sign != 0 ? -small : small;
}

#endif
