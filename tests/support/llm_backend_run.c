/* Arrays of the backend cases: drawn, rounded, uploaded, downloaded. */
#include "tests/support/llm_backend_cases.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

void case_begin(case_run *r, backend *b, number_type type, number_type master) {
  *r = (case_run){.b = b, .type = type, .master = master};
}

void case_release(case_run *r) {
  for (size_t i = 0; i < r->n_memory; ++i) OP(r, release)(r->b, r->memory[i]);
  r->n_memory = 0;
}

void case_end(case_run *r) {
  case_release(r);
  for (size_t i = 0; i < r->n_outputs; ++i) free(r->output[i].value);
  r->n_outputs = 0;
}

static void *room(case_run *r, size_t bytes) {
  if (r->n_memory == CASE_MAX_MEMORY) abort();
  return r->memory[r->n_memory++] = OP(r, allocate)(r->b, bytes);
}

static uint16_t to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static float from_bf16(uint16_t x) {
  const uint32_t bits = (uint32_t)x << 16;
  float y;
  memcpy(&y, &bits, sizeof y);
  return y;
}

static double rounded(double x, number_type type) {
  if (type == NUMBER_F64) return x;
  return type == NUMBER_F32 ? (double)(float)x : (double)from_bf16(to_bf16((float)x));
}

static size_t size_of(number_type type) {
  return type == NUMBER_F64 ? 8 : type == NUMBER_F32 ? 4 : 2;
}

static void encode(void *to, const double *from, size_t n, number_type type) {
  for (size_t i = 0; i < n; ++i) {
    if (type == NUMBER_F64) ((double *)to)[i] = from[i];
    if (type == NUMBER_F32) ((float *)to)[i] = (float)from[i];
    if (type == NUMBER_BF16) ((uint16_t *)to)[i] = to_bf16((float)from[i]);
  }
}

static void decode(double *to, const void *from, size_t n, number_type type) {
  for (size_t i = 0; i < n; ++i) {
    if (type == NUMBER_F64) to[i] = ((const double *)from)[i];
    if (type == NUMBER_F32) to[i] = (double)((const float *)from)[i];
    if (type == NUMBER_BF16) to[i] = (double)from_bf16(((const uint16_t *)from)[i]);
  }
}

/* value rounded to `rounding`, in memory as `type`. */
static void *place(case_run *r, const double *value, size_t n, number_type rounding,
                   number_type type) {
  double *numbers = calloc(n + 1, sizeof *numbers);
  void *host = calloc(n + 1, 8);
  void *memory = room(r, n * size_of(type));
  if (numbers == NULL || host == NULL) abort();
  for (size_t i = 0; i < n; ++i) numbers[i] = rounded(value[i], rounding);
  encode(host, numbers, n, type);
  OP(r, upload)(r->b, memory, host, n * size_of(type));
  free(host);
  free(numbers);
  return memory;
}

void *case_put(case_run *r, const double *value, size_t n) {
  return place(r, value, n, r->type, r->b->type);
}

void *case_put_master(case_run *r, const double *value, size_t n) {
  return place(r, value, n, r->master, r->b->master);
}

static double *draw(case_run *r, size_t n, double scale) {
  double *value = calloc(n + 1, sizeof *value);
  if (value == NULL) abort();
  const rng_stream stream = rng_stream_at(7, RNG_TEST, r->drawn++);
  for (size_t i = 0; i < n; ++i) {
    const rng_words w = rng_block(stream, i);
    value[i] = scale * (2 * rng_u01_53(w.v[0], w.v[1]) - 1);
  }
  return value;
}

void *case_draw(case_run *r, size_t n, double scale) {
  double *value = draw(r, n, scale);
  void *memory = case_put(r, value, n);
  free(value);
  return memory;
}

void *case_draw_master(case_run *r, size_t n, double scale) {
  double *value = draw(r, n, scale);
  void *memory = case_put_master(r, value, n);
  free(value);
  return memory;
}

void *case_zeros(case_run *r, size_t n) {
  return room(r, n * r->b->element);
}

void *case_zeros_master(case_run *r, size_t n) {
  return room(r, n * r->b->master_element);
}

int32_t *case_integers(case_run *r, const int32_t *value, size_t n) {
  int32_t *memory = room(r, n * sizeof *value);
  OP(r, upload)(r->b, memory, value, n * sizeof *value);
  return memory;
}

int32_t *case_draw_integers(case_run *r, size_t n, size_t below) {
  int32_t *value = calloc(n + 1, sizeof *value);
  if (value == NULL) abort();
  const rng_stream stream = rng_stream_at(7, RNG_TEST, r->drawn++);
  for (size_t i = 0; i < n; ++i) value[i] = (int32_t)(rng_block(stream, i).v[0] % below);
  int32_t *memory = case_integers(r, value, n);
  free(value);
  return memory;
}

static case_output *keep(case_run *r, const char *name, size_t n) {
  if (r->n_outputs == CASE_MAX_OUTPUTS) abort();
  case_output *o = &r->output[r->n_outputs++];
  snprintf(o->name, sizeof o->name, "%s", name);
  o->n = n;
  o->value = calloc(n + 1, sizeof *o->value);
  if (o->value == NULL) abort();
  return o;
}

static void keep_as(case_run *r, const char *name, const void *memory, size_t n, number_type type) {
  case_output *o = keep(r, name, n);
  void *host = calloc(n + 1, 8);
  if (host == NULL) abort();
  OP(r, download)(r->b, host, memory, n * size_of(type));
  decode(o->value, host, n, type);
  free(host);
}

void case_keep(case_run *r, const char *name, const void *memory, size_t n) {
  keep_as(r, name, memory, n, r->b->type);
}

void case_keep_master(case_run *r, const char *name, const void *memory, size_t n) {
  keep_as(r, name, memory, n, r->b->master);
}

void case_keep_integers(case_run *r, const char *name, const void *memory, size_t n) {
  case_output *o = keep(r, name, n);
  int32_t *host = calloc(n + 1, sizeof *host);
  if (host == NULL) abort();
  OP(r, download)(r->b, host, memory, n * sizeof *host);
  for (size_t i = 0; i < n; ++i) o->value[i] = (double)host[i];
  free(host);
}
