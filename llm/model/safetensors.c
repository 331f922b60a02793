/* Safetensors files: parsing and checking the header, reading numbers in chunks, writing. */
#include "llm/model/safetensors.h"

#include "core/base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors files are little endian, and so must the machine be"
#endif

struct safetensors {
  char *path;
  int file;          /* -1: only a header was given */
  size_t data_start; /* byte offset of the tensor data in the file */
  size_t data_bytes;
  tensor_entry *entry; /* sorted by name */
  size_t n, room;
};

/* Types of the format, with the size of an element in bits. */
static const struct {
  const char *name;
  size_t bits;
  tensor_type type;
} types[] = {
    {"F64", 64, TENSOR_F64},      {"F32", 32, TENSOR_F32},     {"F16", 16, TENSOR_F16},
    {"BF16", 16, TENSOR_BF16},    {"BOOL", 8, TENSOR_OTHER},   {"U8", 8, TENSOR_OTHER},
    {"I8", 8, TENSOR_OTHER},      {"I16", 16, TENSOR_OTHER},   {"U16", 16, TENSOR_OTHER},
    {"I32", 32, TENSOR_OTHER},    {"U32", 32, TENSOR_OTHER},   {"I64", 64, TENSOR_OTHER},
    {"U64", 64, TENSOR_OTHER},    {"C64", 64, TENSOR_OTHER},   {"F8_E4M3", 8, TENSOR_OTHER},
    {"F8_E5M2", 8, TENSOR_OTHER}, {"F8_E8M0", 8, TENSOR_OTHER}};
enum { N_TYPES = sizeof types / sizeof *types };

size_t tensor_type_bytes(tensor_type type) {
  static const size_t bytes[] = {
      [TENSOR_F64] = 8, [TENSOR_F32] = 4, [TENSOR_F16] = 2, [TENSOR_BF16] = 2, [TENSOR_OTHER] = 0};
  return bytes[type];
}

/* --- header --- */

static tensor_entry *append_entry(safetensors *s, json_reader *r) {
  if (s->n == s->room) {
    size_t room = s->room == 0 ? 64 : 2 * s->room;
    tensor_entry *more = realloc(s->entry, room * sizeof *more);
    if (more == NULL) {
      r->status = gl_fail_memory(r->err, "a header of tensors");
      return NULL;
    }
    s->entry = more;
    s->room = room;
  }
  tensor_entry *t = &s->entry[s->n];
  *t = (tensor_entry){.name = strdup(r->word)};
  if (t->name == NULL) {
    r->status = gl_fail_memory(r->err, "a tensor's name");
    return NULL;
  }
  ++s->n;
  return t;
}

static size_t read_type(json_reader *r, tensor_entry *t) {
  json_string(r);
  if (r->status != GL_OK) return 0;
  for (size_t i = 0; i < N_TYPES; ++i)
    if (strcmp(r->word, types[i].name) == 0) {
      t->type = types[i].type;
      memcpy(t->type_name, types[i].name, strlen(types[i].name) + 1);
      return types[i].bits;
    }
  json_fail(r, "tensor %.100s has the unknown dtype \"%.40s\"", t->name, r->word);
  return 0;
}

static void read_shape(json_reader *r, tensor_entry *t) {
  json_enter(r, '[');
  t->elements = 1;
  while (json_element(r)) {
    size_t n = json_unsigned(r);
    if (t->rank == SAFETENSORS_MAX_RANK)
      json_fail(r, "tensor %.100s has more than %d dimensions", t->name, (int)SAFETENSORS_MAX_RANK);
    else if (r->status == GL_OK) {
      t->shape[t->rank++] = n;
      if (__builtin_mul_overflow(t->elements, n, &t->elements))
        json_fail(r, "tensor %.100s has a shape no memory holds", t->name);
    }
  }
}

static void read_offsets(json_reader *r, tensor_entry *t) {
  json_enter(r, '[');
  if (json_element(r)) t->begin = json_unsigned(r);
  if (!json_element(r)) json_fail(r, "data_offsets must be two numbers");
  t->end = json_unsigned(r);
  if (json_element(r)) json_fail(r, "data_offsets must be two numbers");
}

static void check_extent(json_reader *r, const tensor_entry *t, size_t bits, size_t data_bytes) {
  size_t total;
  if (r->status != GL_OK) return;
  if (t->begin > t->end || t->end > data_bytes)
    json_fail(r, "tensor %.100s has data_offsets [%zu, %zu] outside the %zu bytes of data", t->name,
              t->begin, t->end, data_bytes);
  else if (__builtin_mul_overflow(t->elements, bits, &total) || total / 8 != t->end - t->begin)
    json_fail(r, "tensor %.100s: its shape of %s needs %zu bytes, its data_offsets give it %zu",
              t->name, t->type_name, t->elements * (bits / 8), t->end - t->begin);
}

static void read_tensor(json_reader *r, tensor_entry *t, size_t data_bytes) {
  enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };
  static const char *const keys[] = {"dtype", "shape", "data_offsets"};
  unsigned seen = 0;
  size_t bits = 0;
  json_enter(r, '{');
  while (json_member(r)) {
    unsigned i = 0;
    while (i < 3 && strcmp(r->word, keys[i]) != 0) ++i;
    if (i == 3 || seen & 1u << i) {
      json_fail(r, "tensor %.100s: \"%.40s\" %s", t->name, r->word,
                i == 3 ? "is not a key of the format" : "is given twice");
      return;
    }
    seen |= 1u << i;
    if (1u << i == DTYPE)
      bits = read_type(r, t);
    else if (1u << i == SHAPE)
      read_shape(r, t);
    else
      read_offsets(r, t);
  }
  if (r->status == GL_OK && seen != (DTYPE | SHAPE | OFFSETS))
    json_fail(r, "tensor %.100s needs dtype, shape and data_offsets", t->name);
  check_extent(r, t, bits, data_bytes);
}

static void read_metadata(json_reader *r) {
  json_enter(r, '{');
  while (json_member(r)) json_string(r);
}

static int entry_by_name(const void *a, const void *b) {
  return strcmp(((const tensor_entry *)a)->name, ((const tensor_entry *)b)->name);
}

static int entry_by_place(const void *a, const void *b) {
  const tensor_entry *s = *(const tensor_entry *const *)a, *t = *(const tensor_entry *const *)b;
  if (s->begin != t->begin) return s->begin < t->begin ? -1 : 1;
  return s->end < t->end ? -1 : s->end > t->end;
}

/* Checks that the tensors cover the data exactly, without holes or overlaps. */
static gl_status check_tiles(const safetensors *s, gl_error *err) {
  const tensor_entry **order = calloc(s->n + 1, sizeof *order);
  size_t at = 0;
  gl_status status = GL_OK;
  if (order == NULL) return gl_fail_memory(err, "a header of tensors");
  for (size_t i = 0; i < s->n; ++i) order[i] = &s->entry[i];
  qsort(order, s->n, sizeof *order, entry_by_place);
  for (size_t i = 0; i < s->n && status == GL_OK; at = order[i++]->end)
    if (order[i]->begin != at)
      status =
          gl_fail(err, GL_EINPUT,
                  "%.300s: tensor %.100s begins at byte %zu of the data, the one before it ends "
                  "at %zu: tensors must neither overlap nor leave holes; the file is damaged",
                  s->path, order[i]->name, order[i]->begin, at);
  free(order);
  if (status == GL_OK && at != s->data_bytes)
    status =
        gl_fail(err, GL_EINPUT,
                "%.300s: tensors end at byte %zu of the data, which has %zu; the file is damaged "
                "or was not copied whole",
                s->path, at, s->data_bytes);
  return status;
}

static gl_status check_names(safetensors *s, gl_error *err) {
  if (s->n > 1) qsort(s->entry, s->n, sizeof *s->entry, entry_by_name);
  for (size_t i = 1; i < s->n; ++i)
    if (strcmp(s->entry[i - 1].name, s->entry[i].name) == 0)
      return gl_fail(err, GL_EINPUT, "%.300s: tensor %.100s is there twice; the file is damaged",
                     s->path, s->entry[i].name);
  return check_tiles(s, err);
}

static gl_status parse_header(safetensors *s, const char *header, size_t size, gl_error *err) {
  json_reader r;
  int metadata = 0;
  json_begin(&r, header, size, s->path, err);
  if (size == 0 || header[0] != '{')
    json_fail(&r, "the header does not begin with '{'; is this a safetensors file?");
  json_enter(&r, '{');
  while (json_member(&r)) {
    if (strcmp(r.word, "__metadata__") == 0) {
      if (metadata++) json_fail(&r, "__metadata__ is given twice");
      read_metadata(&r);
    } else {
      tensor_entry *t = append_entry(s, &r);
      if (t != NULL) read_tensor(&r, t, s->data_bytes);
    }
  }
  gl_status status = json_end(&r);
  return status == GL_OK ? check_names(s, err) : status;
}

static safetensors *fresh(const char *path) {
  safetensors *s = calloc(1, sizeof *s);
  if (s == NULL) return NULL;
  s->file = -1;
  s->path = strdup(path);
  if (s->path == NULL) {
    free(s);
    return NULL;
  }
  return s;
}

gl_status safetensors_parse(safetensors **out, const char *header, size_t size, size_t data_bytes,
                            const char *name, gl_error *err) {
  safetensors *s = fresh(name);
  *out = NULL;
  if (s == NULL) return gl_fail_memory(err, name);
  s->data_bytes = data_bytes;
  gl_status status = parse_header(s, header, size, err);
  if (status == GL_OK)
    *out = s;
  else
    safetensors_free(s);
  return status;
}

/* --- files --- */

/* Reads exactly n bytes at that offset. */
static gl_status read_bytes(const safetensors *s, size_t at, void *to, size_t n, gl_error *err) {
  char *next = to;
  while (n > 0) {
    ssize_t got = pread(s->file, next, n, (off_t)at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return gl_fail(err, GL_EIO, "%.300s: cannot be read at byte %zu: %s", s->path, at,
                     got < 0 ? strerror(errno) : "it became shorter meanwhile");
    next += got;
    at += (size_t)got;
    n -= (size_t)got;
  }
  return GL_OK;
}

static gl_status read_entries(safetensors *s, size_t file_size, gl_error *err) {
  uint64_t size;
  if (file_size < sizeof size)
    return gl_fail(err, GL_EINPUT, "%.300s: %zu bytes are too few for a safetensors file", s->path,
                   file_size);
  gl_status status = read_bytes(s, 0, &size, sizeof size, err);
  if (status != GL_OK) return status;
  if (size > SAFETENSORS_MAX_HEADER || size > file_size - sizeof size)
    return gl_fail(
        err, GL_EINPUT,
        "%.300s: the header is said to have %llu bytes; at most %zu are possible: this is "
        "no safetensors file, or it was not copied whole",
        s->path, (unsigned long long)size,
        file_size - sizeof size < SAFETENSORS_MAX_HEADER ? file_size - sizeof size
                                                         : SAFETENSORS_MAX_HEADER);
  char *header = malloc(size + 1);
  if (header == NULL) return gl_fail_memory(err, "a header of tensors");
  s->data_start = sizeof size + size;
  s->data_bytes = file_size - s->data_start;
  status = read_bytes(s, sizeof size, header, size, err);
  if (status == GL_OK) status = parse_header(s, header, size, err);
  free(header);
  return status;
}

gl_status safetensors_open(safetensors **out, const char *path, gl_error *err) {
  safetensors *s = fresh(path);
  struct stat about;
  *out = NULL;
  if (s == NULL) return gl_fail_memory(err, path);
  gl_status status = GL_OK;
  s->file = open(path, O_RDONLY | O_CLOEXEC);
  if (s->file < 0 || fstat(s->file, &about) != 0)
    status = gl_fail(err, errno == ENOENT ? GL_EINPUT : GL_EIO, "%.300s: cannot be read: %s", path,
                     strerror(errno));
  else if (!S_ISREG(about.st_mode))
    status = gl_fail(err, GL_EINPUT, "%.300s: is not a file", path);
  else
    status = read_entries(s, (size_t)about.st_size, err);
  if (status == GL_OK)
    *out = s;
  else
    safetensors_free(s);
  return status;
}

void safetensors_free(safetensors *s) {
  if (s == NULL) return;
  for (size_t i = 0; i < s->n; ++i) free(s->entry[i].name);
  free(s->entry);
  if (s->file >= 0) close(s->file);
  free(s->path);
  free(s);
}

const char *safetensors_path(const safetensors *s) {
  return s->path;
}

size_t safetensors_count(const safetensors *s) {
  return s->n;
}

const tensor_entry *safetensors_at(const safetensors *s, size_t i) {
  return i < s->n ? &s->entry[i] : NULL;
}

const tensor_entry *safetensors_find(const safetensors *s, const char *name) {
  for (size_t low = 0, high = s->n; low < high;) {
    size_t middle = low + (high - low) / 2;
    int side = strcmp(name, s->entry[middle].name);
    if (side == 0) return &s->entry[middle];
    if (side < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

/* --- numbers --- */

enum { PIECE = 4096 };

/* Reads up to PIECE elements as doubles. */
static gl_status read_piece(const safetensors *s, const tensor_entry *t, size_t first, size_t n,
                            double *out, gl_error *err) {
  uint64_t raw[PIECE];
  const size_t bytes = tensor_type_bytes(t->type);
  if (bytes == 0 || first > t->elements || n > t->elements - first || s->file < 0)
    return gl_fail(err, GL_EINTERNAL, "%.300s: elements %zu to %zu of tensor %.100s asked for",
                   s->path, first, first + n, t->name);
  gl_status status = read_bytes(s, s->data_start + t->begin + first * bytes, raw, n * bytes, err);
  const unsigned char *at = (const unsigned char *)raw;
  for (size_t i = 0; i < n && status == GL_OK; ++i, at += bytes) {
    uint16_t half;
    float single;
    if (t->type == TENSOR_F64)
      memcpy(&out[i], at, sizeof *out);
    else if (t->type == TENSOR_F32) {
      memcpy(&single, at, sizeof single);
      out[i] = (double)single;
    } else {
      memcpy(&half, at, sizeof half);
      out[i] = (double)(t->type == TENSOR_F16 ? float_of_f16(half) : float_of_bf16(half));
    }
  }
  return status;
}

gl_status safetensors_read_f64(const safetensors *s, const tensor_entry *t, size_t first, size_t n,
                               double *out, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < n && status == GL_OK; i += PIECE)
    status = read_piece(s, t, first + i, n - i < PIECE ? n - i : PIECE, out + i, err);
  return status;
}

/* --- writing --- */
/* Writing, in the layout of transformers: {"__metadata__":{"format":"pt"}, tensors by name}, padded
 * with spaces so that the data starts at a multiple of eight. */

static const char *const type_names[] = {[TENSOR_F64] = "F64",
                                         [TENSOR_F32] = "F32",
                                         [TENSOR_F16] = "F16",
                                         [TENSOR_BF16] = "BF16",
                                         [TENSOR_OTHER] = NULL};

static int header_entry(cJSON *to, tensor_type type, const tensor_shape *t, size_t begin,
                        size_t end) {
  cJSON *entry = cJSON_AddObjectToObject(to, t->name);
  if (entry == NULL || json_add_string(entry, "dtype", type_names[type]) == NULL) return 0;
  cJSON *shape = cJSON_AddArrayToObject(entry, "shape");
  for (size_t i = 0; shape != NULL && i < t->rank; ++i)
    if (json_add_number(shape, NULL, (double)t->shape[i]) == NULL) return 0;
  const double offsets[] = {(double)begin, (double)end};
  return shape != NULL && json_add_numbers(entry, "data_offsets", offsets, 2) != NULL;
}

/* The header's text, malloc'd; NULL if out of memory. */
static char *header_of(tensor_type type, const tensor_shape *tensors, size_t n, size_t *elements) {
  cJSON *json = cJSON_CreateObject();
  cJSON *metadata = json != NULL ? cJSON_AddObjectToObject(json, "__metadata__") : NULL;
  int good = metadata != NULL && json_add_string(metadata, "format", "pt") != NULL;
  const size_t bytes = tensor_type_bytes(type);
  *elements = 0;
  for (size_t i = 0; i < n && good; ++i) {
    size_t count = 1;
    for (size_t d = 0; d < tensors[i].rank; ++d) count *= tensors[i].shape[d];
    good = header_entry(json, type, &tensors[i], *elements * bytes, (*elements + count) * bytes);
    *elements += count;
  }
  char *text = good ? cJSON_PrintUnformatted(json) : NULL;
  cJSON_Delete(json);
  return text;
}

static gl_status write_bytes(safetensors_writer *w, const void *bytes, size_t n, gl_error *err) {
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
    status = write_bytes(w, &size, sizeof size, err);
    if (status == GL_OK) status = write_bytes(w, header, length, err);
    if (status == GL_OK) status = write_bytes(w, "       ", size - length, err);
    if (status != GL_OK) file_abandon(&w->file);
  }
  free(header);
  return status;
}

/* Writes up to PIECE elements. */
static gl_status put_piece(safetensors_writer *w, const double *value, size_t n, gl_error *err) {
  uint64_t raw[PIECE];
  unsigned char *at = (unsigned char *)raw;
  const size_t bytes = tensor_type_bytes(w->type);
  for (size_t i = 0; i < n; ++i, at += bytes) {
    if (w->type == TENSOR_F64) {
      memcpy(at, &value[i], bytes);
    } else if (w->type == TENSOR_F32) {
      const float single = (float)value[i];
      memcpy(at, &single, bytes);
    } else {
      const uint16_t half = bf16_of_double(value[i]);
      memcpy(at, &half, bytes);
    }
  }
  return write_bytes(w, raw, n * bytes, err);
}

gl_status safetensors_write_f64(safetensors_writer *w, const double *value, size_t n,
                                gl_error *err) {
  gl_status status = GL_OK;
  if (n > w->left)
    return gl_fail(err, GL_EINTERNAL, "%.300s: more numbers than its tensors have", w->file.path);
  for (size_t i = 0; i < n && status == GL_OK; i += PIECE)
    status = put_piece(w, value + i, n - i < PIECE ? n - i : PIECE, err);
  w->left -= n;
  return status;
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
