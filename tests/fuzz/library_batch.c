/* libFuzzer target: what a program may hand to gepolab_policy(). Bytes become a batch in the
 * caller's memory: packed, padded or masked, of either type, with strides of both signs, and shapes
 * that are right or wrong. Every array has just the elements that its strides reach, so that the
 * sanitizer sees a read or write beside it. What is refused has a reason; what is taken has finite
 * coefficients, and zeros where a padded response has no token. */
#include "library/gepolab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_RESPONSES = 8, MOST_COLUMNS = 6, MOST_STRIDE = 3 };

typedef struct bytes {
  const uint8_t *at;
  size_t left;
} bytes;

static unsigned take(bytes *b) {
  if (b->left == 0) return 40; /* an ordinary number or count */
  --b->left;
  return *b->at++;
}

/* Mostly ordinary numbers, sometimes ones that no array should hold. */
static double number(bytes *b, double scale) {
  static const double odd[] = {NAN, INFINITY, -INFINITY, 1e308, -1e308, 1e-300, 5e-4, 700, -745};
  const unsigned k = take(b);
  return k < sizeof odd / sizeof *odd ? odd[k] : -(double)(k - 9) / 64 * scale;
}

/* Mostly a number that is meant, sometimes one that overflows whatever is computed from it. */
static int64_t count(bytes *b, int64_t meant) {
  static const int64_t odd[] = {INT64_MIN, INT64_MAX, -1, 0, INT64_MIN + 1, (int64_t)1 << 40};
  const unsigned k = take(b);
  return k < sizeof odd / sizeof *odd ? odd[k] : k < 32 ? meant + (int64_t)(k % 5) - 2 : meant;
}

/* An array with the elements low .. high (of `element` 0), and nothing beside them. */
typedef struct array {
  void *memory, *zero;
  gepolab_type type;
} array;

static array make_array(bytes *b, int64_t low, int64_t high, double scale) {
  const gepolab_type type = take(b) % 2 ? GEPOLAB_FLOAT32 : GEPOLAB_FLOAT64;
  const size_t n = (size_t)(high - low + 1), width = type == GEPOLAB_FLOAT32 ? 4 : 8;
  array a = {malloc(n * width), NULL, type};
  if (a.memory == NULL) abort();
  for (size_t i = 0; i < n; ++i) {
    const double value = scale != 0 ? number(b, scale) : 0;
    if (type == GEPOLAB_FLOAT32)
      ((float *)a.memory)[i] = (float)value;
    else
      ((double *)a.memory)[i] = value;
  }
  a.zero = (char *)a.memory - low * (int64_t)width;
  return a;
}

static int64_t stride_of(bytes *b) {
  return (int64_t)(take(b) % (2 * MOST_STRIDE + 1)) - MOST_STRIDE;
}

enum { N_ARRAYS = 11 };

/* One batch with all that it points to. */
typedef struct made {
  gepolab_batch batch;
  gepolab_result result;
  int64_t responses, columns, tokens; /* what the arrays have room for */
  int64_t group_start[MOST_RESPONSES + 2], token_start[MOST_RESPONSES + 2],
      length[MOST_RESPONSES + 1];
  uint8_t mask[MOST_RESPONSES * MOST_COLUMNS];
  void *memory[N_ARRAYS];
  size_t n_memory;
  double *metric;
} made;

static array keep(made *m, array a) {
  m->memory[m->n_memory++] = a.memory;
  return a;
}

/* Elements that (responses, columns) or packed tokens reach with these strides. */
static array token_array(made *m, bytes *b, int64_t response_stride, int64_t token_stride,
                         double scale) {
  const int64_t rows = m->batch.token_start != NULL ? 0 : m->responses - 1,
                last = m->batch.token_start != NULL ? m->tokens - 1 : m->columns - 1;
  const int64_t r = rows * response_stride, t = last * token_stride;
  const int64_t low = (r < 0 ? r : 0) + (t < 0 ? t : 0), high = (r > 0 ? r : 0) + (t > 0 ? t : 0);
  return keep(m, make_array(b, low, high, scale));
}

static gepolab_tokens tokens(made *m, bytes *b, double scale) {
  const int64_t response = stride_of(b), token = stride_of(b);
  const array a = token_array(m, b, response, token, scale);
  return (gepolab_tokens){a.zero, a.type, response, token};
}

static gepolab_numbers numbers(made *m, bytes *b, int64_t n, double scale) {
  const int64_t stride = stride_of(b), last = (n - 1) * stride;
  const array a = keep(m, make_array(b, last < 0 ? last : 0, last > 0 ? last : 0, scale));
  return (gepolab_numbers){a.zero, a.type, stride};
}

/* Elements that are written lie apart from each other. */
static gepolab_tokens_out tokens_out(made *m, bytes *b) {
  const int64_t token = take(b) % 2 ? 1 : -1, response = MOST_COLUMNS * token;
  const array a = token_array(m, b, response, token, 0);
  return (gepolab_tokens_out){a.zero, a.type, response, token};
}

/* Starts of packed tokens; 0 where they would be taken and reach beyond the arrays. */
static int pack(made *m, bytes *b) {
  int rises = 1;
  m->tokens = MOST_RESPONSES * MOST_COLUMNS;
  int64_t at = take(b) % 3;
  for (int64_t i = 0; i <= m->responses; ++i) {
    m->token_start[i] = count(b, at);
    at += take(b) % MOST_COLUMNS + (take(b) < 250);
    rises &= m->token_start[i] >= 0 && (i == 0 || m->token_start[i] >= m->token_start[i - 1]);
  }
  m->batch.token_start = m->token_start;
  return !rises || m->token_start[m->responses] <= m->tokens;
}

/* How a batch says which tokens there are: 0 where it may not be handed over. */
static int lay_out(made *m, bytes *b) {
  gepolab_batch *batch = &m->batch;
  batch->columns = m->columns;
  switch (take(b) % 4) {
  case 0:
    return pack(m, b);
  case 1:
    for (int64_t i = 0; i < m->responses; ++i) m->length[i] = count(b, 1 + take(b) % m->columns);
    batch->length = m->length;
    return 1;
  case 2:
    for (int64_t i = 0; i < m->responses * m->columns; ++i) m->mask[i] = take(b) % 4 != 0;
    batch->mask = m->mask;
    batch->mask_response_stride = m->columns;
    batch->mask_token_stride = 1;
    return 1;
  default:
    return 1;
  }
}

static void group(made *m, bytes *b) {
  gepolab_batch *batch = &m->batch;
  const int64_t groups = m->responses % 2 == 0 ? m->responses / 2 : 1;
  batch->n_groups = groups;
  if (take(b) % 2) {
    for (int64_t g = 0; g <= groups; ++g) m->group_start[g] = count(b, g * m->responses / groups);
    batch->group_start = m->group_start;
  } else {
    batch->group_size = count(b, m->responses / groups);
  }
}

static int make_batch(made *m, bytes *b) {
  m->batch = (gepolab_batch)GEPOLAB_INIT(gepolab_batch);
  m->result = (gepolab_result)GEPOLAB_INIT(gepolab_result);
  m->responses = 2 + take(b) % (MOST_RESPONSES - 1);
  m->columns = 1 + take(b) % MOST_COLUMNS;
  m->batch.n_responses = m->responses;
  group(m, b);
  if (!lay_out(m, b)) return 0;
  m->batch.reward = numbers(m, b, m->responses, take(b) % 2 ? -1 : 0);
  m->batch.logp = tokens(m, b, 1);
  m->batch.logq = tokens(m, b, 1);
  if (take(b) % 2) m->batch.logprox = tokens(m, b, 1);
  if (take(b) % 2) m->batch.logref = tokens(m, b, 1);
  if (take(b) % 2) m->batch.version_gap = tokens(m, b, -1);
  if (take(b) % 4 == 0) m->batch.log_denominator = numbers(m, b, m->batch.n_groups, 1);
  if (take(b) % 4 == 0) m->batch.advantage = numbers(m, b, m->responses, take(b) % 2 ? -1 : 1);
  if (take(b) % 2) m->batch.entropy = tokens(m, b, -1);
  m->batch.max_length = take(b) % 8 == 0 ? count(b, MOST_COLUMNS) : 0;
  m->result.coefficient = tokens_out(m, b);
  if (take(b) % 2) m->result.weight = tokens_out(m, b);
  if (take(b) % 2) m->result.metric = m->metric;
  return 1;
}

static double written(const gepolab_tokens_out *out, int64_t i, int64_t t) {
  const int64_t at = i * out->response_stride + t * out->token_stride;
  return out->type == GEPOLAB_FLOAT32 ? (double)((const float *)out->data)[at]
                                      : ((const double *)out->data)[at];
}

/* Tokens have finite coefficients, in the type of their array, and columns that are none have 0. */
static void check_written(const made *m) {
  const gepolab_batch *b = &m->batch;
  for (int64_t i = 0; b->length != NULL && i < m->responses; ++i)
    for (int64_t t = 0; t < m->columns; ++t) {
      const double c = written(&m->result.coefficient, i, t);
      if (t < b->length[i] ? !isfinite(c) : c != 0) abort();
    }
  for (int64_t i = 0; b->mask != NULL && i < m->responses; ++i)
    for (int64_t t = 0; t < m->columns; ++t) {
      const double c = written(&m->result.coefficient, i, t);
      if (m->mask[i * m->columns + t] == 0 ? c != 0 : !isfinite(c)) abort();
    }
}

static void evaluate(made *m, size_t which) {
  gepolab_algorithm_info info;
  gepolab_algorithm *algorithm = NULL;
  gepolab_workspace *workspace = NULL;
  gepolab_error err = {0};
  if (gepolab_algorithms_at(which % gepolab_algorithms_count(), &info, &err) != GEPOLAB_OK ||
      gepolab_algorithm_new(&algorithm, info.name, &err) != GEPOLAB_OK ||
      gepolab_workspace_new(&workspace, &err) != GEPOLAB_OK)
    abort();
  const gepolab_status status = gepolab_policy(algorithm, &m->batch, &m->result, workspace, &err);
  if ((status == GEPOLAB_OK) != (err.text[0] == '\0') || status == GEPOLAB_EINTERNAL) abort();
  if (status == GEPOLAB_OK) {
    if (!isfinite(m->result.loss)) abort();
    check_written(m);
  }
  gepolab_workspace_free(workspace);
  gepolab_algorithm_free(algorithm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  bytes b = {data, size};
  made *m = calloc(1, sizeof *m);
  if (m == NULL) abort();
  m->metric = calloc(gepolab_metrics_count(), sizeof *m->metric);
  const size_t which = take(&b);
  if (make_batch(m, &b)) evaluate(m, which);
  for (size_t i = 0; i < m->n_memory; ++i) free(m->memory[i]);
  free(m->metric);
  free(m);
  return 0;
}
