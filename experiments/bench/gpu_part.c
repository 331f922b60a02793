/* What the parts of the GPU benchmark share: drawn values, timing, lines of JSON. */
#include "core/base/json.h"
#include "core/random/normal.h"
#include "experiments/base/seconds.h"
#include "experiments/bench/gpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

const char *const gpu_part_names[GPU_N_PARTS] = {"limits", "logp", "decode", "train", "step"};

/* --- values -------------------------------------------------------------------------------------
 */

enum { TILE = 1 << 22 }; /* even */

/* Normal numbers times scale, malloc'd. */
static double *tile_new(size_t n, double scale) {
  double *tile = malloc((n + 1) * sizeof *tile);
  if (tile == NULL) return NULL;
  const rng_stream stream = rng_stream_at(1, RNG_INIT, 0);
  for (size_t i = 0; i < n; i += 2) rng_normal_pair(rng_block(stream, i / 2), scale, tile + i);
  return tile;
}

/* Room for n numbers in pages of two MiB, where there are such: gigabytes of small ones take
 * seconds to come into being. */
static double *numbers_new(size_t n) {
  const size_t page = (size_t)2 << 20;
  void *memory = NULL;
  if (n > SIZE_MAX / sizeof(double) || posix_memalign(&memory, page, n * sizeof(double)) != 0)
    return NULL;
  madvise(memory, n * sizeof(double), MADV_HUGEPAGE);
  return memory;
}

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

gl_status gpu_model_new(model **out, const model_config *c, backend *b, int recompute,
                        gl_error *err) {
  *out = NULL;
  gl_status status = model_new(out, c, b, recompute, err);
  if (status != GL_OK) return status;
  const size_t n = model_parameters(*out), tile_size = smaller(n, TILE);
  double *tile = tile_new(tile_size, c->initializer_range), *values = numbers_new(n);
  if (tile != NULL && values != NULL) {
    for (size_t i = 0; i < n; i += tile_size)
      memcpy(values + i, tile, smaller(tile_size, n - i) * sizeof *values);
    const model_tensor *t;
    for (size_t k = 0; (t = model_tensor_at(*out, k)) != NULL; ++k)
      for (size_t i = 0; t->rows == 1 && i < t->columns; ++i) values[t->offset + i] = 1;
    status = model_set(*out, values, err);
  } else {
    status = gl_fail_memory(err, "the benchmark's model");
  }
  free(tile);
  free(values);
  if (status == GL_OK) return GL_OK;
  model_free(*out);
  *out = NULL;
  return status;
}

void *gpu_normals(backend *b, size_t n, double scale, gl_error *err) {
  const size_t piece = smaller(n, TILE);
  double *tile = tile_new(piece, scale);
  float *numbers = malloc((piece + 1) * sizeof *numbers);
  void *out = NULL, *in = NULL;
  if (tile == NULL || numbers == NULL) {
    gl_fail_memory(err, "the benchmark's numbers");
  } else {
    for (size_t i = 0; i < piece; ++i) numbers[i] = (float)tile[i];
    in = b->ops->allocate(b, piece * sizeof *numbers);
    out = b->ops->allocate(b, n * b->element);
    b->ops->upload(b, in, numbers, piece * sizeof *numbers);
    for (size_t i = 0; i < n && out != NULL; i += piece)
      b->ops->cast(b, (char *)out + i * b->element, in, smaller(piece, n - i));
    b->ops->release(b, in);
    if (b->ops->status(b, err) != GL_OK) {
      b->ops->release(b, out);
      out = NULL;
    }
  }
  free(tile);
  free(numbers);
  return out;
}

int32_t gpu_token(const model_config *c, size_t i) {
  return (int32_t)(rng_block(rng_stream_at(1, RNG_DATA, 0), i).v[0] % c->vocabulary);
}

/* --- time ---------------------------------------------------------------------------------------
 */

gl_status gpu_time(gpu_samples *out, gl_status (*run)(void *self, gl_error *err), void *self,
                   size_t repetitions, gl_error *err) {
  gl_status status = run(self, err);
  out->n = 0;
  while (status == GL_OK && out->n < repetitions && out->n < GPU_MOST_SAMPLES) {
    const double begun = seconds_now();
    status = run(self, err);
    out->seconds[out->n++] = seconds_now() - begun;
  }
  return status;
}

/* --- lines --------------------------------------------------------------------------------------
 */

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void write_line(FILE *to, cJSON *line) {
  char *text = cJSON_PrintUnformatted(line);
  if (text != NULL) fprintf(to, "%s\n", text);
  fflush(to);
  free(text);
  cJSON_Delete(line);
}

static cJSON *line_new(const char *shape, const char *what) {
  char key[48];
  cJSON *line = cJSON_CreateObject();
  snprintf(key, sizeof key, "%s.%s", shape, what);
  json_add_string(line, "key", key);
  return line;
}

void gpu_say(FILE *to, const char *shape, const char *what, const gpu_samples *samples,
             double amount) {
  double x[GPU_MOST_SAMPLES];
  const size_t n = samples->n;
  if (n == 0) return;
  for (size_t i = 0; i < n; ++i)
    x[i] = amount > 0 ? amount / samples->seconds[i] : samples->seconds[i];
  qsort(x, n, sizeof *x, compare);
  cJSON *line = line_new(shape, what);
  json_add_number(line, "value", n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2);
  json_add_number(line, "low", x[0]);
  json_add_number(line, "high", x[n - 1]);
  json_add_number(line, "n", (double)n);
  write_line(to, line);
}

void gpu_say_missing(FILE *to, const char *shape, const char *what, const char *why) {
  cJSON *line = line_new(shape, what);
  json_add_string(line, "missing", why);
  write_line(to, line);
}

void gpu_say_number(FILE *to, const char *shape, const char *what, double value) {
  cJSON *line = line_new(shape, what);
  json_add_number(line, "value", value);
  json_add_number(line, "n", 1);
  write_line(to, line);
}

void gpu_say_text(FILE *to, const char *shape, const char *what, const char *text) {
  cJSON *line = line_new(shape, what);
  json_add_string(line, "note", text);
  write_line(to, line);
}
