/* Operations described as row by row: each row has the same bits whatever rows are computed with
 * it; and attention of a sequence has the same bits alone, packed with others, where others share
 * its beginning, and over a cache. */
#include "llm/backend/cpu/cpu.h"
#include "tests/support/llm_backend_cases.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("llm: backend rows");

/* Numbers [rows, width] of a float backend, each drawn by its position, so that a part of the rows
 * can be made alone. */
typedef struct table {
  float *value;
  size_t rows, width;
} table;

static table table_new(size_t rows, size_t width, uint64_t entity) {
  table t = {calloc(rows * width + 1, sizeof(float)), rows, width};
  CU_ASSERT_PTR_NOT_NULL_FATAL(t.value);
  for (size_t i = 0; i < rows * width; ++i) {
    const rng_words w = rng_block(rng_stream_at(5, RNG_TEST, entity), i);
    t.value[i] = (float)(2 * rng_u01(w.v[0]) - 1);
  }
  return t;
}

/* Rows [from, from + n) in the backend's memory; released by case_end. */
static void *part(case_run *r, const table *t, size_t from, size_t n) {
  void *memory = case_zeros(r, n * t->width);
  r->b->ops->upload(r->b, memory, t->value + from * t->width, n * t->width * sizeof(float));
  return memory;
}

/* An operation, run on rows [from, from + n) of its inputs; `out` gets o->out numbers for each row.
 */
typedef struct row_operation {
  const char *name;
  void (*run)(case_run *r, const struct row_operation *o, const table *in, const table *weight,
              size_t from, size_t n, void *out);
  size_t in, weights, weight_width, out; /* widths; rows of weight */
} row_operation;

static void product_rows(case_run *r, const row_operation *o, const table *in, const table *weight,
                         size_t from, size_t n, void *out) {
  r->b->ops->product(r->b, out, part(r, in, from, n), part(r, weight, 0, weight->rows), n, o->out,
                     o->in, PRODUCT_ROW_BY_ROW);
}

/* `weight` packed, in backend memory that is large enough for it and no larger. */
static void *packed_weight(case_run *r, const void *weight, size_t outputs, size_t inputs) {
  void *packed = case_zeros(r, r->b->ops->packed_numbers(r->b, outputs, inputs));
  r->b->ops->pack(r->b, packed, weight, outputs, inputs);
  return packed;
}

static void packed_rows_of(case_run *r, const row_operation *o, const table *in,
                           const table *weight, size_t from, size_t n, void *out) {
  void *w = part(r, weight, 0, weight->rows);
  r->b->ops->product_packed(r->b, out, part(r, in, from, n), w, packed_weight(r, w, o->out, o->in),
                            n, o->out, o->in, PRODUCT_ROW_BY_ROW);
}

static void logits_rows(case_run *r, const row_operation *o, const table *in, const table *weight,
                        size_t from, size_t n, void *out) {
  r->b->ops->logits(r->b, out, part(r, in, from, n), part(r, weight, 0, weight->rows), n, o->out,
                    o->in);
}

static void norm_rows(case_run *r, const row_operation *o, const table *in, const table *weight,
                      size_t from, size_t n, void *out) {
  r->b->ops->norm(r->b, out, case_zeros_master(r, n), NULL, part(r, in, from, n), NULL,
                  part(r, weight, 0, 1), n, o->in, 1e-6);
}

static void swiglu_rows(case_run *r, const row_operation *o, const table *in, const table *weight,
                        size_t from, size_t n, void *out) {
  (void)weight;
  r->b->ops->swiglu(r->b, out, part(r, in, from, n), n, o->out);
}

static void heads_rows(case_run *r, const row_operation *o, const table *in, const table *weight,
                       size_t from, size_t n, void *out) {
  const head_shape h = {2, 1, o->out / 3};
  int32_t position[512];
  void *cosine = case_zeros_master(r, 512 * h.dim / 2), *sine = case_zeros_master(r, 256 * h.dim);
  r->b->ops->rotary_table(r->b, cosine, sine, 512, h.dim, 10000, (rotary_scaling){0});
  for (size_t i = 0; i < n; ++i) position[i] = (int32_t)((from + i) * 13 % 512);
  r->b->ops->heads(r->b, out, case_zeros_master(r, 3 * n), part(r, in, from, n),
                   part(r, weight, 0, 1), part(r, weight, 1, 1), cosine, sine,
                   case_integers(r, position, n), n, h, 1e-6);
}

/* logp, entropy, lse of each row */
static void output_rows(case_run *r, const row_operation *o, const table *in, const table *weight,
                        size_t from, size_t n, void *out) {
  int32_t target[512];
  float *value[3], *all = calloc(3 * n + 1, sizeof *all), *to = calloc(3 * n + 1, sizeof *to);
  for (size_t i = 0; i < n; ++i) target[i] = (int32_t)((from + i) * 17 % o->weights);
  for (size_t k = 0; k < 3; ++k) value[k] = case_zeros_master(r, n);
  r->b->ops->output(r->b, value[0], value[1], value[2], NULL, part(r, in, from, n),
                    part(r, weight, 0, weight->rows), case_integers(r, target, n),
                    (kept_sets){.set = NULL}, n, o->weights, o->in, 0.7);
  for (size_t k = 0; k < 3; ++k) {
    r->b->ops->download(r->b, all, value[k], n * sizeof *all);
    for (size_t i = 0; i < n; ++i) to[3 * i + k] = all[i];
  }
  r->b->ops->upload(r->b, out, to, 3 * n * sizeof *to);
  free(all);
  free(to);
}

static void run_into(backend *b, const row_operation *o, const table *in, const table *weight,
                     size_t from, size_t n, float *to) {
  case_run r;
  case_begin(&r, b, NUMBER_F32, NUMBER_F32);
  void *out = case_zeros(&r, n * o->out);
  o->run(&r, o, in, weight, from, n, out);
  b->ops->download(b, to, out, n * o->out * sizeof *to);
  case_end(&r);
}

/* All rows at once against the same rows a few at a time. */
static void check_operation(backend *b, const row_operation *o) {
  static const size_t sizes[] = {1, 2, 3, 5, 7, 64, 100};
  const size_t rows = 203;
  table in = table_new(rows, o->in, 1), weight = table_new(o->weights, o->weight_width, 2);
  float *all = calloc(rows * o->out, sizeof *all), *parts = calloc(rows * o->out, sizeof *parts);
  run_into(b, o, &in, &weight, 0, rows, all);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    for (size_t from = 0; from < rows; from += sizes[s]) {
      const size_t n = from + sizes[s] <= rows ? sizes[s] : rows - from;
      run_into(b, o, &in, &weight, from, n, parts + from * o->out);
    }
    const int same = memcmp(all, parts, rows * o->out * sizeof *all) == 0;
    if (!same)
      fprintf(stderr, "%s (%zu -> %zu) in parts of %zu rows differs\n", o->name, o->in, o->out,
              sizes[s]);
    CU_ASSERT(same);
  }
  free(all);
  free(parts);
  free(in.value);
  free(weight.value);
}

static void on_both_variants(void (*check)(backend *b)) {
  for (int generic = 0; generic < 2; ++generic) {
    backend *b = NULL;
    ASSERT_OK(backend_cpu_new_form(&b, NUMBER_F32, 2, generic ? CPU_PLAIN : cpu_form_best(), &err));
    check(b);
    ASSERT_OK(b->ops->status(b, &err));
    backend_free(b);
  }
}

static void check_operations(backend *b) {
  static const row_operation operations[] = {{"product", product_rows, 1, 3, 1, 3},
                                             {"product", product_rows, 7, 5, 7, 5},
                                             {"product", product_rows, 64, 96, 64, 96},
                                             {"product", product_rows, 129, 31, 129, 31},
                                             {"product", product_rows, 700, 50, 700, 50},
                                             {"product", product_rows, 1100, 7, 1100, 7},
                                             {"packed", packed_rows_of, 1, 3, 1, 3},
                                             {"packed", packed_rows_of, 7, 5, 7, 5},
                                             {"packed", packed_rows_of, 64, 96, 64, 96},
                                             {"packed", packed_rows_of, 129, 131, 129, 131},
                                             {"packed", packed_rows_of, 1024, 70, 1024, 70},
                                             {"packed", packed_rows_of, 1100, 7, 1100, 7},
                                             {"logits", logits_rows, 48, 20, 48, 20},
                                             {"logits", logits_rows, 64, 601, 64, 601},
                                             {"norm", norm_rows, 1, 1, 1, 1},
                                             {"norm", norm_rows, 67, 1, 67, 67},
                                             {"norm", norm_rows, 130, 1, 130, 130},
                                             {"swiglu", swiglu_rows, 66, 1, 1, 33},
                                             {"swiglu", swiglu_rows, 200, 1, 1, 100},
                                             {"heads", heads_rows, 4 * 10, 2, 10, 3 * 10},
                                             {"heads", heads_rows, 4 * 32, 2, 32, 3 * 32},
                                             {"output", output_rows, 33, 20, 33, 3},
                                             {"output", output_rows, 16, 1100, 16, 3},
                                             {"output", output_rows, 8, 9000, 8, 3}};
  for (size_t i = 0; i < sizeof operations / sizeof *operations; ++i)
    check_operation(b, &operations[i]);
}

TEST(a_row_is_the_same_in_any_company) {
  on_both_variants(check_operations);
}

/* --- products with packed weights against sums in double precision --- */

/* out[r, j] = start + the sum of in[r, p] weight[j, p], with its error's bound. */
static void check_packed(backend *b, size_t rows, size_t outputs, size_t inputs, int flags,
                         float *to) {
  table in = table_new(rows, inputs, 31), weight = table_new(outputs, inputs, 32);
  table out = table_new(rows, outputs, 33);
  case_run r;
  case_begin(&r, b, NUMBER_F32, NUMBER_F32);
  void *w = part(&r, &weight, 0, outputs), *sums = part(&r, &out, 0, rows);
  b->ops->product_packed(b, sums, part(&r, &in, 0, rows), w, packed_weight(&r, w, outputs, inputs),
                         rows, outputs, inputs, flags);
  b->ops->download(b, to, sums, rows * outputs * sizeof *to);
  case_end(&r);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < outputs; ++j) {
      double sum = flags & PRODUCT_ADD ? (double)out.value[i * outputs + j] : 0, size = fabs(sum);
      for (size_t p = 0; p < inputs; ++p) {
        const double term = (double)in.value[i * inputs + p] * (double)weight.value[j * inputs + p];
        sum += term;
        size += fabs(term);
      }
      ASSERT_CLOSE((double)to[i * outputs + j], sum, 1e-6 * (1 + size));
    }
  free(in.value);
  free(weight.value);
  free(out.value);
}

TEST(a_packed_product_is_right_with_any_threads) {
  static const size_t shapes[][3] = {{1, 1, 1},     {1, 70, 33},     {2, 97, 300},
                                     {3, 33, 513},  {4, 16, 256},    {11, 65, 257},
                                     {64, 130, 96}, {127, 48, 1024}, {300, 50, 20}};
  static const int flags[] = {0, PRODUCT_ADD, PRODUCT_ROW_BY_ROW, PRODUCT_ROW_BY_ROW | PRODUCT_ADD};
  for (size_t i = 0; i < 4 * sizeof shapes / sizeof *shapes; ++i) {
    const size_t *s = shapes[i / 4], bytes = s[0] * s[1] * sizeof(float);
    float *one = calloc(1, bytes), *more = calloc(1, bytes);
    for (size_t k = 0; k < 6; ++k) {
      backend *b = NULL;
      const cpu_form variant = k < 3 ? cpu_form_best() : CPU_PLAIN;
      ASSERT_OK(backend_cpu_new_form(&b, NUMBER_F32, k % 3 + 1, variant, &err));
      check_packed(b, s[0], s[1], s[2], flags[i % 4], k % 3 == 0 ? one : more);
      if (k % 3 > 0) CU_ASSERT(memcmp(one, more, bytes) == 0);
      backend_free(b);
    }
    free(one);
    free(more);
  }
}

/* --- attention: a sequence alone, packed with others, shared, and token by token from a cache --- */

enum { LENGTH = 139, FILLER = 45 };

typedef struct packed_case {
  table qk, qkv; /* of the sequence */
  head_shape shape;
} packed_case;

/* attention's output for the sequence's first n rows, when it stands between sequences of `before`
 * and of `after` other rows. */
static void attend_packed(backend *b, const packed_case *c, size_t n, size_t before, size_t after,
                          float *to) {
  const size_t rows = before + n + after, width = c->shape.q * c->shape.dim;
  table qk = table_new(rows, c->qk.width, 8), qkv = table_new(rows, c->qkv.width, 9);
  memcpy(qk.value + before * qk.width, c->qk.value, n * qk.width * sizeof(float));
  memcpy(qkv.value + before * qkv.width, c->qkv.value, n * qkv.width * sizeof(float));
  int32_t start[4] = {0}, sequences = 0;
  if (before > 0) start[++sequences] = (int32_t)before;
  start[sequences + 1] = start[sequences] + (int32_t)n;
  ++sequences;
  if (after > 0) start[++sequences] = (int32_t)rows;
  size_t longest = n > before ? n : before;
  if (after > longest) longest = after;
  case_run r;
  case_begin(&r, b, NUMBER_F32, NUMBER_F32);
  const packed_rows p = {rows, (size_t)sequences, longest,
                         case_integers(&r, start, (size_t)sequences + 1)};
  float *out = case_zeros(&r, rows * width);
  b->ops->attention(b, out, case_zeros_master(&r, rows * c->shape.q), part(&r, &qk, 0, rows),
                    part(&r, &qkv, 0, rows), p, c->shape);
  b->ops->download(b, to, out + before * width, n * width * sizeof *to);
  case_end(&r);
  free(qk.value);
  free(qkv.value);
}

/* attention's output for the sequence where it is shared by three: the first has its first `a`
 * rows, the second goes on with those up to b, the third with the rest; behind their part the first
 * two have 9 rows of their own. */
static void attend_shared(backend *b, const packed_case *c, size_t a, size_t between, float *to) {
  enum { OTHER = 9, ROWS = LENGTH + 2 * OTHER };
  const size_t from[] = {0, a, between, LENGTH}, width = c->shape.q * c->shape.dim;
  const int32_t tree[] = {0, 3}, parent[] = {0, 0, 1}, before[] = {0, (int32_t)a, (int32_t)between};
  table qk = table_new(ROWS, c->qk.width, 8), qkv = table_new(ROWS, c->qkv.width, 9);
  int32_t start[4] = {0};
  for (size_t s = 0; s < 3; ++s) {
    const size_t n = from[s + 1] - from[s], at = (size_t)start[s];
    memcpy(qk.value + at * qk.width, c->qk.value + from[s] * qk.width,
           n * qk.width * sizeof(float));
    memcpy(qkv.value + at * qkv.width, c->qkv.value + from[s] * qkv.width,
           n * qkv.width * sizeof(float));
    start[s + 1] = (int32_t)(at + n + (s < 2 ? OTHER : 0));
  }
  case_run r;
  case_begin(&r, b, NUMBER_F32, NUMBER_F32);
  const packed_rows p = {ROWS, 3, LENGTH + OTHER, case_integers(&r, start, 4)};
  const int32_t full[] = {0, (int32_t)a + OTHER, (int32_t)(a + between) + 2 * OTHER,
                          (int32_t)(a + between) + 2 * OTHER + LENGTH};
  const shared_rows shared = {1,
                              case_integers(&r, tree, 2),
                              case_integers(&r, parent, 3),
                              case_integers(&r, before, 3),
                              case_integers(&r, full, 4),
                              full};
  float *out = case_zeros(&r, ROWS * width);
  b->ops->attention_shared(b, out, case_zeros_master(&r, ROWS * c->shape.q), part(&r, &qk, 0, ROWS),
                           part(&r, &qkv, 0, ROWS), p, shared, c->shape);
  for (size_t s = 0; s < 3; ++s)
    b->ops->download(b, to + from[s] * width, out + (size_t)start[s] * width,
                     (from[s + 1] - from[s]) * width * sizeof *to);
  case_end(&r);
  free(qk.value);
  free(qkv.value);
}

/* Rows decoded against a cache, `at_once` rows (of other slots, too) in each step. */
static void attend_cached(backend *b, const packed_case *c, size_t at_once, float *to) {
  const size_t width = c->shape.q * c->shape.dim, capacity = LENGTH + 3;
  const size_t cache = 4 * capacity * c->shape.kv * c->shape.dim;
  for (size_t t = 0; t < LENGTH; ++t) {
    case_run r;
    case_begin(&r, b, NUMBER_F32, NUMBER_F32);
    void *k = case_draw(&r, cache, 1), *v = case_draw(&r, cache, 1);
    int32_t slot[LENGTH], position[LENGTH];
    for (size_t i = 0; i <= t; ++i) {
      slot[i] = 2;
      position[i] = (int32_t)i;
    }
    void *qk = part(&r, &c->qk, 0, t + 1), *qkv = part(&r, &c->qkv, 0, t + 1);
    b->ops->cache_store(b, k, v, qk, qkv, case_integers(&r, slot, t + 1),
                        case_integers(&r, position, t + 1), t + 1, capacity, c->shape);
    table rows = table_new(at_once, c->qk.width, 4);
    memcpy(rows.value, c->qk.value + t * c->qk.width, c->qk.width * sizeof(float));
    position[0] = (int32_t)t;
    for (size_t i = 1; i < at_once; ++i) {
      slot[i] = (int32_t)(i == 1 ? 0 : 3);
      position[i] = (int32_t)(i * 3);
    }
    float *out = case_zeros(&r, at_once * width);
    b->ops->attention_cached(b, out, part(&r, &rows, 0, at_once), k, v,
                             case_integers(&r, slot, at_once), case_integers(&r, position, at_once),
                             at_once, capacity, c->shape);
    b->ops->download(b, to + t * width, out, width * sizeof *to);
    free(rows.value);
    case_end(&r);
  }
}

static void check_attention(backend *b) {
  static const head_shape shapes[] = {{1, 1, 2}, {2, 1, 10}, {4, 2, 16}, {6, 2, 24}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
    const head_shape s = shapes[i];
    const size_t width = s.q * s.dim, bytes = LENGTH * width * sizeof(float);
    packed_case c = {.shape = s};
    c.qk = table_new(LENGTH, (s.q + s.kv) * s.dim, 20);
    c.qkv = table_new(LENGTH, (s.q + 2 * s.kv) * s.dim, 21);
    float *alone = malloc(bytes), *other = malloc(bytes);
    attend_packed(b, &c, LENGTH, 0, 0, alone);
    attend_packed(b, &c, LENGTH, FILLER, 7, other);
    CU_ASSERT(memcmp(alone, other, bytes) == 0);
    attend_packed(b, &c, LENGTH, 1, 400, other); /* other blocks of queries */
    CU_ASSERT(memcmp(alone, other, bytes) == 0);
    for (size_t n = 1; n < LENGTH; n += 23) {
      attend_packed(b, &c, n, 0, 0, other);
      CU_ASSERT(memcmp(alone, other, n * width * sizeof(float)) == 0);
    }
    for (size_t a = 1; a < LENGTH / 2; a += 12) {
      attend_shared(b, &c, a, a + 1 + a / 2, other);
      CU_ASSERT(memcmp(alone, other, bytes) == 0);
    }
    for (size_t at_once = 1; at_once <= 3; at_once += 2) {
      attend_cached(b, &c, at_once, other);
      CU_ASSERT(memcmp(alone, other, bytes) == 0);
    }
    free(alone);
    free(other);
    free(c.qk.value);
    free(c.qkv.value);
  }
}

TEST(attention_is_the_same_packed_shared_alone_and_cached) {
  on_both_variants(check_attention);
}
