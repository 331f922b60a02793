/* Writing tensors, in the layout transformers writes: {"__metadata__":{"format":"pt"}, tensors by
 * name}, padded with spaces so that the data starts at a multiple of eight. */
#include "core/base/json.h"
#include "llm/backend/float16.h"
#include "llm/model/safetensors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = {"F64", "F32", "F16", "BF16"};

static int add_tensor(cJSON *to, tensor_type type, const tensor_shape *t, size_t begin,
                      size_t end) {
  cJSON *entry = cJSON_AddObjectToObject(to, t->name);
  if (entry == NULL || json_add_string(entry, "dtype", type_names[type]) == NULL) return 0;
  cJSON *shape = cJSON_AddArrayToObject(entry, "shape");
  for (size_t i = 0; shape != NULL && i < t->rank; ++i)
    if (json_add_number(shape, NULL, (double)t->shape[i]) == NULL) return 0;
  const double offsets[] = {(double)begin, (double)end};
  return shape != NULL && json_add_numbers(entry, "data_offsets", offsets, 2) != NULL;
}

/* The header's text, malloc'd; NULL if memory is short. */
static char *header_of(tensor_type type, const tensor_shape *tensors, size_t n, size_t *elements) {
  cJSON *json = cJSON_CreateObject();
  cJSON *metadata = json != NULL ? cJSON_AddObjectToObject(json, "__metadata__") : NULL;
  int good = metadata != NULL && json_add_string(metadata, "format", "pt") != NULL;
  const size_t bytes = tensor_type_bytes(type);
  *elements = 0;
  for (size_t i = 0; i < n && good; ++i) {
    size_t count = 1;
    for (size_t d = 0; d < tensors[i].rank; ++d) count *= tensors[i].shape[d];
    good = add_tensor(json, type, &tensors[i], *elements * bytes, (*elements + count) * bytes);
    *elements += count;
  }
  char *text = good ? cJSON_PrintUnformatted(json) : NULL;
  cJSON_Delete(json);
  return text;
}

static gl_status put(safetensors_writer *w, const void *bytes, size_t n, gl_error *err) {
  errno = 0;
  if (fwrite(bytes, 1, n, w->file.stream) == n) return GL_OK;
  return file_fail(w->file.path, "written", errno != 0 ? errno : EIO, err);
}

gl_status safetensors_write_begin(safetensors_writer *w, const char *path, tensor_type type,
                                  const tensor_shape *tensors, size_t n, gl_error *err) {
  *w = (safetensors_writer){.type = type};
  if (type == TENSOR_F16 || type == TENSOR_OTHER)
    return gl_fail(err, GL_EINTERNAL, "tensors are written as F64, F32 or BF16");
  char *header = header_of(type, tensors, n, &w->left);
  if (header == NULL) return gl_fail_memory(err, "a header of tensors");
  gl_status status = file_begin(&w->file, path, err);
  if (status == GL_OK) {
    const size_t length = strlen(header);
    const uint64_t size = (length + 7) / 8 * 8;
    status = put(w, &size, sizeof size, err);
    if (status == GL_OK) status = put(w, header, length, err);
    if (status == GL_OK) status = put(w, "       ", size - length, err);
    if (status != GL_OK) file_abandon(&w->file);
  }
  free(header);
  return status;
}

enum { PIECE = 4096 };

/* One piece, given as doubles or as floats. */
static gl_status put_piece(safetensors_writer *w, const double *wide, const float *narrow, size_t n,
                           gl_error *err) {
  uint64_t raw[PIECE];
  unsigned char *at = (unsigned char *)raw;
  const size_t bytes = tensor_type_bytes(w->type);
  for (size_t i = 0; i < n; ++i, at += bytes) {
    if (w->type == TENSOR_F64) {
      double value = wide != NULL ? wide[i] : (double)narrow[i];
      memcpy(at, &value, bytes);
    } else if (w->type == TENSOR_F32) {
      float value = wide != NULL ? (float)wide[i] : narrow[i];
      memcpy(at, &value, bytes);
    } else {
      uint16_t value = wide != NULL ? bf16_of_double(wide[i]) : bf16_of_float(narrow[i]);
      memcpy(at, &value, bytes);
    }
  }
  return put(w, raw, n * bytes, err);
}

static gl_status put_all(safetensors_writer *w, const double *wide, const float *narrow, size_t n,
                         gl_error *err) {
  gl_status status = GL_OK;
  if (n > w->left)
    return gl_fail(err, GL_EINTERNAL, "%.300s: more numbers than its tensors have", w->file.path);
  for (size_t i = 0; i < n && status == GL_OK; i += PIECE)
    status = put_piece(w, wide != NULL ? wide + i : NULL, narrow != NULL ? narrow + i : NULL,
                       n - i < PIECE ? n - i : PIECE, err);
  w->left -= n;
  return status;
}

gl_status safetensors_write_f64(safetensors_writer *w, const double *value, size_t n,
                                gl_error *err) {
  return put_all(w, value, NULL, n, err);
}

gl_status safetensors_write_f32(safetensors_writer *w, const float *value, size_t n,
                                gl_error *err) {
  return put_all(w, NULL, value, n, err);
}

gl_status safetensors_write_commit(safetensors_writer *w, gl_error *err) {
  if (w->left == 0) return file_commit(&w->file, err);
  gl_status status = gl_fail(err, GL_EINTERNAL, "%.300s: %zu numbers of its tensors are missing",
                             w->file.path, w->left);
  file_abandon(&w->file);
  return status;
}

void safetensors_write_abandon(safetensors_writer *w) {
  file_abandon(&w->file);
}
