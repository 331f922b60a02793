/* What the parts of the GPU benchmark share: drawn values, batches, timing, lines of JSON. */
#include "core/random/normal.h"
#include "experiments/base/seconds.h"
#include "experiments/bench/gpu.h"
#include "llm/backend/float16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* --- values -------------------------------------------------------------------------------------
 */

enum { TILE = 1 << 22 }; /* even */

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Normal numbers times scale as bfloat16 has them, malloc'd. */
static double *tile_new(size_t n, double scale) {
  double *tile = malloc((n + 1) * sizeof *tile);
  if (tile == NULL) return NULL;
  const rng_stream stream = rng_stream_at(1, RNG_INIT, 0);
  for (size_t i = 0; i < n; i += 2) rng_normal_pair(rng_block(stream, i / 2), scale, tile + i);
  for (size_t i = 0; i < n; ++i) tile[i] = (double)float_of_bf16(bf16_of_float((float)tile[i]));
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

gl_status gpu_model_new(model **out, const model_config *c, backend *b, int recompute,
                        gl_error *err) {
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

gl_status gpu_fill(backend *b, void *to, size_t n, gl_error *err) {
  const size_t piece = smaller(n, TILE);
  double *tile = tile_new(piece, 1);
  float *numbers = malloc(piece * sizeof *numbers);
  void *in = b->ops->allocate(b, piece * sizeof *numbers);
  gl_status status = tile != NULL && numbers != NULL && in != NULL
                         ? GL_OK
                         : gl_fail_memory(err, "the benchmark's numbers");
  for (size_t i = 0; status == GL_OK && i < piece; ++i) numbers[i] = (float)tile[i];
  if (status == GL_OK) b->ops->upload(b, in, numbers, piece * sizeof *numbers);
  for (size_t i = 0; status == GL_OK && i < n; i += piece)
    b->ops->cast(b, (char *)to + i * b->element, in, smaller(piece, n - i));
  if (status == GL_OK) status = b->ops->status(b, err);
  b->ops->release(b, in);
  free(numbers);
  free(tile);
  return status;
}

int32_t gpu_token(const model_config *c, size_t i) {
  return (int32_t)(rng_block(rng_stream_at(1, RNG_DATA, 0), i).v[0] % c->vocabulary);
}

/* --- batches ------------------------------------------------------------------------------------
 */

gl_status gpu_batch_init(gpu_batch *b, const model_config *c, size_t sequences, size_t length,
                         size_t micro, gl_error *err) {
  const size_t n = sequences * length, of_micro = micro * length;
  *b = (gpu_batch){.sequences = sequences,
                   .length = length,
                   .micro = micro,
                   .start = calloc(micro + 1, sizeof *b->start),
                   .after = calloc(of_micro, sizeof *b->after),
                   .token = calloc(n, sizeof *b->token),
                   .target = calloc(n, sizeof *b->target),
                   .slope = calloc(n, sizeof *b->slope),
                   .logp = calloc(n, sizeof *b->logp)};
  if (b->start == NULL || b->after == NULL || b->token == NULL || b->target == NULL ||
      b->slope == NULL || b->logp == NULL)
    return gl_fail_memory(err, "the benchmark's batch");
  for (size_t i = 0; i <= micro; ++i) b->start[i] = i * length;
  for (size_t i = 0; i < of_micro; ++i) b->after[i] = i;
  for (size_t i = 0; i < n; ++i) {
    b->token[i] = gpu_token(c, i);
    b->target[i] = gpu_token(c, i + 1);
    b->slope[i] = (i % 2 == 0 ? 1 : -1) / (double)n;
  }
  return GL_OK;
}

void gpu_batch_fini(gpu_batch *b) {
  free(b->start);
  free(b->after);
  free(b->token);
  free(b->target);
  free(b->slope);
  free(b->logp);
}

gl_status gpu_batch_run(gpu_batch *b, model *m, int learn, gl_error *err) {
  gl_status status = learn ? model_zero_gradient(m, err) : GL_OK;
  for (size_t s = 0; s < b->sequences && status == GL_OK; s += b->micro) {
    const size_t sequences = smaller(b->micro, b->sequences - s), n = sequences * b->length;
    const size_t first = s * b->length;
    const packed_tokens rows = {n,        sequences,        n, b->start, b->token + first,
                                b->after, b->target + first};
    status = model_forward(m, &rows, 1, learn, b->logp + first, NULL, err);
    if (learn && status == GL_OK) status = model_backward(m, b->slope + first, err);
  }
  return status;
}

/* --- time ---------------------------------------------------------------------------------------
 */

/* Seconds after which no repetition begins. */
#define LONG_ENOUGH 12.0

gl_status gpu_samples_take(const gpu_run *r, gpu_samples *out,
                           gl_status (*work)(void *self, gl_error *err), void *self,
                           size_t repetitions, gl_error *err) {
  gl_status status = work(self, err);
  out->n = 0;
  backend_watch_clear(r->watch);
  for (double sum = 0;
       status == GL_OK && sum < LONG_ENOUGH && out->n < smaller(repetitions, GPU_MOST_SAMPLES);) {
    const double begun = seconds_now();
    status = work(self, err);
    sum += out->seconds[out->n++] = seconds_now() - begun;
  }
  return status;
}

/* --- lines --------------------------------------------------------------------------------------
 */

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static cJSON *line_new(const gpu_run *r, const char *what) {
  char key[48];
  cJSON *line = cJSON_CreateObject();
  snprintf(key, sizeof key, "%s.%s", r->shape != NULL ? r->shape->name : "limit", what);
  json_add_string(line, "key", key);
  json_add_string(line, "what", what);
  return line;
}

static void write_line(const gpu_run *r, cJSON *line) {
  char *text = cJSON_PrintUnformatted(line);
  if (text != NULL) fprintf(r->to, "%s\n", text);
  fflush(r->to);
  free(text);
  cJSON_Delete(line);
}

void gpu_say(const gpu_run *r, gpu_row row) {
  double x[GPU_MOST_SAMPLES] = {row.value};
  size_t n = 1;
  for (size_t i = 0; row.samples != NULL && i < row.samples->n; n = ++i)
    x[i] = row.amount > 0 ? row.amount / row.samples->seconds[i] : row.samples->seconds[i];
  qsort(x, n, sizeof *x, compare);
  cJSON *line = line_new(r, row.what);
  if (row.unit != NULL) json_add_string(line, "unit", row.unit);
  if (row.missing == NULL && row.unit != NULL) {
    json_add_number(line, "value", n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2);
    json_add_number(line, "low", x[0]);
    json_add_number(line, "high", x[n - 1]);
    json_add_number(line, "n", (double)n);
  }
  const struct {
    const char *key;
    double value;
  } more[] = {{"flops", row.flops},
              {"bytes", row.bytes},
              {"at_most", row.at_most},
              {"at_least", row.at_least}};
  for (size_t i = 0; i < sizeof more / sizeof *more; ++i)
    if (more[i].value > 0) json_add_number(line, more[i].key, more[i].value);
  if (row.note != NULL) json_add_string(line, "note", row.note);
  if (row.missing != NULL) json_add_string(line, "missing", row.missing);
  if (row.no_device) json_add_string(line, "device", "none");
  write_line(r, line);
}

void gpu_say_operations(const gpu_run *r, const char *what) {
  backend_work work[BACKEND_OPERATIONS];
  const size_t n = r->times ? backend_watch_read(r->watch, work) : 0;
  double all = 0;
  for (size_t i = 0; i < n; ++i) all += work[i].seconds;
  for (size_t i = 0; i < n; ++i) {
    const double s = work[i].seconds;
    cJSON *line = line_new(r, what);
    json_add_string(line, "operation", work[i].operation);
    json_add_number(line, "calls", (double)work[i].calls);
    json_add_number(line, "ms", 1e3 * s);
    json_add_number(line, "tflops", work[i].flops > 0 && s > 0 ? 1e-12 * work[i].flops / s : NAN);
    json_add_number(line, "gbs", work[i].bytes > 0 && s > 0 ? 1e-9 * work[i].bytes / s : NAN);
    json_add_number(line, "share", all > 0 ? s / all : NAN);
    write_line(r, line);
  }
}
