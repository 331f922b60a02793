/* The cases of llm_backend_cases.h: for each operation a function that calls it on inputs of a
 * given shape and keeps what it wrote, and the table of these functions with their shapes. */
#include "tests/support/llm_backend_cases.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { SHAPE = 6, MAX_SHAPES = 16 };

/* --- rows --- */

/* shape: rows, width, vocabulary */
static void embed_case(case_run *r, const size_t *s) {
  const int32_t *token = case_draw_integers(r, s[0], s[2]);
  void *out = case_zeros(r, s[0] * s[1]);
  OP(r, embed)(r->b, out, case_draw(r, s[2] * s[1], 1), token, s[0], s[1]);
  case_keep(r, "out", out, s[0] * s[1]);
  void *dtable = case_draw_master(r, s[2] * s[1], 1);
  OP(r, embed_backward)(r->b, dtable, case_draw(r, s[0] * s[1], 1), token, s[0], s[1]);
  case_keep_master(r, "dtable", dtable, s[2] * s[1]);
}

/* shape: rows, width, rows of the table. The indices of scatter_add ascend, some of them equal. */
static void gather_case(case_run *r, const size_t *s) {
  int32_t *index = calloc(s[0] + 1, sizeof *index);
  for (size_t i = 0; i < s[0]; ++i) index[i] = (int32_t)((i * 7 + 3) % s[2]);
  const int32_t *at = case_integers(r, index, s[0]);
  for (size_t i = 0; i < s[0]; ++i) index[i] = (int32_t)(i * s[2] / s[0] * 2 / 3);
  const int32_t *ascending = case_integers(r, index, s[0]);
  free(index);
  void *out = case_zeros(r, s[0] * s[1]), *table = case_draw(r, s[2] * s[1], 1);
  OP(r, gather)(r->b, out, table, at, s[0], s[1]);
  case_keep(r, "out", out, s[0] * s[1]);
  OP(r, scatter_add)(r->b, table, case_draw(r, s[0] * s[1], 1), ascending, s[0], s[1]);
  case_keep(r, "sum", table, s[2] * s[1]);
}

/* shape: rows, width, form (0: alone, 1: sum elsewhere, 2: sum in place) */
static void norm_case(case_run *r, const size_t *s) {
  const size_t n = s[0] * s[1];
  void *in = case_draw(r, n, 2), *add = s[2] > 0 ? case_draw(r, n, 1) : NULL;
  void *sum = s[2] == 1 ? case_zeros(r, n) : s[2] == 2 ? in : NULL;
  void *out = case_zeros(r, n), *rstd = case_zeros_master(r, s[0]), *weight = case_draw(r, s[1], 1);
  OP(r, norm)(r->b, out, rstd, sum, in, add, weight, s[0], s[1], 1e-6);
  case_keep(r, "out", out, n);
  case_keep_master(r, "rstd", rstd, s[0]);
  if (sum != NULL) case_keep(r, "sum", sum, n);
  void *din = case_draw(r, n, 1), *dweight = case_draw_master(r, s[1], 1);
  OP(r, norm_backward)
  (r->b, din, dweight, case_draw(r, n, 1), sum != NULL ? sum : in, rstd, weight, s[0], s[1]);
  case_keep(r, "din", din, n);
  case_keep_master(r, "dweight", dweight, s[1]);
}

/* shape: rows, width */
static void bias_case(case_run *r, const size_t *s) {
  const size_t n = s[0] * s[1];
  void *out = case_draw(r, n, 1), *dbias = case_draw_master(r, s[1], 1);
  OP(r, bias)(r->b, out, case_draw(r, s[1], 1), s[0], s[1]);
  case_keep(r, "out", out, n);
  OP(r, bias_backward)(r->b, dbias, case_draw(r, n, 1), s[0], s[1]);
  case_keep_master(r, "dbias", dbias, s[1]);
}

/* shape: rows, q, kv, dim, 1 without norms. Nothing but zeros and numbers drawn is kept then of
 * what norms write. */
static void heads_case(case_run *r, const size_t *s) {
  const head_shape h = {s[1], s[2], s[3]};
  const size_t qkv = (h.q + 2 * h.kv) * h.dim, qk = (h.q + h.kv) * h.dim, positions = 50;
  void *cosine = case_zeros_master(r, positions * h.dim / 2);
  void *sine = case_zeros_master(r, positions * h.dim / 2);
  OP(r, rotary_table)(r->b, cosine, sine, positions, h.dim, 10000, (rotary_scaling){0});
  case_keep_master(r, "cosine", cosine, positions * h.dim / 2);
  case_keep_master(r, "sine", sine, positions * h.dim / 2);
  const int32_t *position = case_draw_integers(r, s[0], positions);
  void *in = case_draw(r, s[0] * qkv, 2), *q_weight = case_draw(r, h.dim, 1);
  void *k_weight = case_draw(r, h.dim, 1), *out = case_zeros(r, s[0] * qk);
  if (s[4]) q_weight = k_weight = NULL;
  void *rstd = case_zeros_master(r, s[0] * (h.q + h.kv));
  OP(r, heads)(r->b, out, rstd, in, q_weight, k_weight, cosine, sine, position, s[0], h, 1e-6);
  case_keep(r, "qk", out, s[0] * qk);
  case_keep_master(r, "rstd", rstd, s[0] * (h.q + h.kv));
  void *dqkv = case_draw(r, s[0] * qkv, 1), *dqk = case_draw(r, s[0] * qk, 1);
  void *dq = case_draw_master(r, h.dim, 1), *dk = case_draw_master(r, h.dim, 1);
  OP(r, heads_backward)
  (r->b, dqkv, dq, dk, dqk, in, rstd, q_weight, k_weight, cosine, sine, position, s[0], h);
  case_keep(r, "dqkv", dqkv, s[0] * qkv); /* its values were drawn and stay */
  case_keep_master(r, "dq_weight", dq, h.dim);
  case_keep_master(r, "dk_weight", dk, h.dim);
}

/* shape: rows, width, largest gate */
static void swiglu_case(case_run *r, const size_t *s) {
  const size_t n = s[0] * s[1];
  void *in = case_draw(r, 2 * n, (double)s[2]), *out = case_zeros(r, n);
  OP(r, swiglu)(r->b, out, in, s[0], s[1]);
  case_keep(r, "out", out, n);
  void *din = case_draw(r, 2 * n, 1);
  OP(r, swiglu_backward)(r->b, din, case_draw(r, n, 1), in, s[0], s[1]);
  case_keep(r, "dgate_up", din, 2 * n);
}

/* --- products; shape: rows, m, k, flags --- */

static void product_case(case_run *r, const size_t *s) {
  const double scale = 1 / sqrt((double)(s[2] + 1));
  void *in = case_draw(r, s[0] * s[2], 1), *weight = case_draw(r, s[1] * s[2], scale);
  void *out = case_draw(r, s[0] * s[1], 1), *din = case_draw(r, s[0] * s[2], 1);
  OP(r, product)(r->b, out, in, weight, s[0], s[1], s[2], (int)s[3]);
  case_keep(r, "out", out, s[0] * s[1]);
  void *dout = case_draw(r, s[0] * s[1], 1), *dweight = case_draw_master(r, s[1] * s[2], 1);
  OP(r, product_backward_input)(r->b, din, dout, weight, s[0], s[1], s[2], (int)s[3] & PRODUCT_ADD);
  case_keep(r, "din", din, s[0] * s[2]);
  OP(r, product_backward_weight)(r->b, dweight, dout, in, s[0], s[1], s[2]);
  case_keep_master(r, "dweight", dweight, s[1] * s[2]);
}

/* shape: rows, vocabulary, k */
static void logits_case(case_run *r, const size_t *s) {
  void *out = case_zeros_master(r, s[0] * s[1]);
  OP(r, logits)
  (r->b, out, case_draw(r, s[0] * s[2], 1), case_draw(r, s[1] * s[2], 1), s[0], s[1], s[2]);
  case_keep_master(r, "logits", out, s[0] * s[1]);
}

/* --- attention --- */

/* Packings of sequences by number. */
static packed_rows packing(case_run *r, size_t number) {
  static const int32_t length[][7] = {
      {1}, {5}, {33}, {1, 1, 1}, {7, 1, 12, 30}, {64, 17, 16, 31}, {150, 3}, {300}, {0, 4, 0, 2}};
  int32_t start[8] = {0};
  packed_rows p = {.rows = 0};
  size_t last = number == 8 ? 4 : 7;
  while (number != 8 && last > 0 && length[number][last - 1] == 0) --last;
  for (size_t i = 0; i < last; ++i) {
    start[i + 1] = start[i] + length[number][i];
    if ((size_t)length[number][i] > p.longest) p.longest = (size_t)length[number][i];
  }
  p.sequences = last;
  p.rows = (size_t)start[last];
  p.start = case_integers(r, start, last + 1);
  return p;
}

/* shape: packing, q, kv, dim */
static void attention_case(case_run *r, const size_t *s) {
  const head_shape h = {s[1], s[2], s[3]};
  const packed_rows p = packing(r, s[0]);
  const size_t qkv_n = p.rows * (h.q + 2 * h.kv) * h.dim, qk_n = p.rows * (h.q + h.kv) * h.dim;
  const size_t n = p.rows * h.q * h.dim;
  void *qk = case_draw(r, qk_n, 3), *qkv = case_draw(r, qkv_n, 1), *out = case_zeros(r, n);
  void *lse = case_zeros_master(r, p.rows * h.q);
  OP(r, attention)(r->b, out, lse, qk, qkv, p, h);
  case_keep(r, "out", out, n);
  case_keep_master(r, "lse", lse, p.rows * h.q);
  void *dqk = case_draw(r, qk_n, 1), *dqkv = case_draw(r, qkv_n, 1);
  OP(r, attention_backward)(r->b, dqk, dqkv, case_draw(r, n, 1), out, lse, qk, qkv, p, h);
  case_keep(r, "dqk", dqk, qk_n);
  case_keep(r, "dqkv", dqkv, qkv_n); /* its queries and keys were drawn and stay */
}

/* Trees of sequences with shared prefixes by number. In the first tree of 0 each sequence shares a
 * prefix of the one before it; in its last tree a sequence shares a part of the prefix that its
 * parent shares. Those of 1 and 2 have a prompt and some responses, and more positions than rows,
 * so that a backend which copies the positions does so in parts. */
enum { TREE_SEQUENCES = 300 };
typedef struct tree_packing {
  size_t sequences, trees;
  int32_t own[TREE_SEQUENCES], parent[TREE_SEQUENCES], before[TREE_SEQUENCES], tree[4];
} tree_packing;
static const tree_packing tree_packings[] = {
    {7, 3, {3, 1, 2, 2, 2, 2, 1}, {0, 0, 1, 3, 4, 4, 5}, {0, 2, 3, 0, 0, 2, 1}, {0, 3, 4, 7}},
    {5, 2, {110, 33, 50, 9, 1}, {0, 0, 0, 0, 3}, {0, 70, 70, 0, 8}, {0, 3, 5}},
    {8,
     1,
     {40, 3, 3, 3, 3, 3, 3, 3},
     {0, 0, 0, 0, 0, 0, 0, 0},
     {0, 37, 37, 37, 37, 37, 37, 37},
     {0, 8}},
};

/* A prompt of 2 and 300 responses of 3. */
static void many_responses(tree_packing *t) {
  *t = (tree_packing){300, 1, {5}, {0}, {0}, {0, 300}};
  for (size_t i = 1; i < t->sequences; ++i) {
    t->own[i] = 3;
    t->before[i] = 2;
  }
}

/* shape: tree_packing (3: many_responses), q, kv, dim */
static void attention_shared_case(case_run *r, const size_t *s) {
  tree_packing packing, *t = &packing;
  const head_shape h = {s[1], s[2], s[3]};
  int32_t start[TREE_SEQUENCES + 1] = {0}, full[TREE_SEQUENCES + 1] = {0};
  if (s[0] < 3)
    packing = tree_packings[s[0]];
  else
    many_responses(&packing);
  packed_rows p = {.sequences = t->sequences};
  for (size_t i = 0; i < t->sequences; ++i) {
    const int32_t n = t->own[i] + t->before[i];
    start[i + 1] = start[i] + t->own[i];
    full[i + 1] = full[i] + n;
    if ((size_t)n > p.longest) p.longest = (size_t)n;
  }
  p.rows = (size_t)start[t->sequences];
  p.start = case_integers(r, start, t->sequences + 1);
  const shared_rows shared = {t->trees,
                              case_integers(r, t->tree, t->trees + 1),
                              case_integers(r, t->parent, t->sequences),
                              case_integers(r, t->before, t->sequences),
                              case_integers(r, full, t->sequences + 1),
                              full};
  const size_t qkv_n = p.rows * (h.q + 2 * h.kv) * h.dim, qk_n = p.rows * (h.q + h.kv) * h.dim;
  const size_t n = p.rows * h.q * h.dim;
  void *qk = case_draw(r, qk_n, 3), *qkv = case_draw(r, qkv_n, 1), *out = case_zeros(r, n);
  void *lse = case_zeros_master(r, p.rows * h.q);
  OP(r, attention_shared)(r->b, out, lse, qk, qkv, p, shared, h);
  case_keep(r, "out", out, n);
  case_keep_master(r, "lse", lse, p.rows * h.q);
  void *dqk = case_draw(r, qk_n, 1), *dqkv = case_draw(r, qkv_n, 1);
  OP(r, attention_shared_backward)
  (r->b, dqk, dqkv, case_draw(r, n, 1), out, lse, qk, qkv, p, shared, h);
  case_keep(r, "dqk", dqk, qk_n);
  case_keep(r, "dqkv", dqkv, qkv_n); /* its queries and keys were drawn and stay */
}

/* shape: rows, q, kv, dim, capacity, position of the first row, from which each row after it stands
 * 80 earlier (0: positions are drawn). Slots are filled by cache_store, position by position; then
 * the first is copied to a free one and read there, and a row of no slot takes part. */
static void cached_case(case_run *r, const size_t *s) {
  const head_shape h = {s[1], s[2], s[3]};
  const size_t rows = s[0], capacity = s[4], slots = rows + 2, width = h.kv * h.dim,
               n = h.q * h.dim;
  const size_t stored = rows * capacity, half = (capacity + 1) / 2;
  int32_t *number = calloc(2 * stored + 2, sizeof *number);
  for (size_t i = 0; i < stored; ++i) {
    number[i] = (int32_t)(slots - 1 - i / capacity);
    number[stored + i] = (int32_t)(i % capacity);
  }
  const int32_t *at = case_integers(r, number, 2 * stored);
  for (size_t i = 0; i < rows; ++i) number[i] = (int32_t)(slots - 1 - i);
  const int32_t *slot = case_integers(r, number, rows);
  for (size_t i = 0; i < rows; ++i) number[rows + i] = (int32_t)s[5] - (int32_t)(80 * i);
  const int32_t *given = case_integers(r, number + rows, rows);
  number[0] = 0;
  number[1] = (int32_t)half - 1;
  const int32_t *copied = case_integers(r, number, 2);
  free(number);
  const int32_t *position = s[5] > 0 ? given : case_draw_integers(r, rows, capacity);
  void *k = case_zeros(r, slots * capacity * width), *v = case_zeros(r, slots * capacity * width);
  void *qk = case_draw(r, stored * (h.q + h.kv) * h.dim, 2), *out = case_zeros(r, rows * n);
  void *qkv = case_draw(r, stored * (h.q + 2 * h.kv) * h.dim, 1), *again = case_zeros(r, n);
  OP(r, cache_store)(r->b, k, v, qk, qkv, at, at + stored, stored, capacity, h);
  OP(r, attention_cached)(r->b, out, qk, k, v, slot, position, rows, capacity, h);
  case_keep(r, "out", out, rows * n);
  if (rows == 0) return;
  OP(r, cache_copy)(r->b, k, v, slots - 1, 0, half, capacity, h);
  OP(r, attention_cached)(r->b, again, qk, k, v, copied, copied + 1, 1, capacity, h);
  case_keep(r, "copied", again, n);
  const int32_t *none = case_integers(r, (const int32_t[]){-1, 0}, 2);
  void *filler = case_draw(r, n, 1);
  OP(r, cache_store)(r->b, k, v, qk, qkv, none, none + 1, 1, capacity, h);
  OP(r, attention_cached)(r->b, filler, qk, k, v, none, none + 1, 1, capacity, h);
  case_keep(r, "filler", filler, n);
}

/* shape: rows, vocabulary, top_k, top_p in tenths, greedy */
static void sample_case(case_run *r, const size_t *s) {
  const sampling_spec spec = {
      .temperature = 0.8, .top_k = s[2], .top_p = (double)s[3] / 10, .weights = SAMPLING_RAW};
  uint64_t *index = calloc(s[0] + 1, sizeof *index);
  for (size_t i = 0; i < s[0]; ++i) index[i] = rng_token_index(i, 5);
  uint64_t *at = (uint64_t *)(void *)case_integers(r, (const int32_t *)(void *)index, 2 * s[0]);
  free(index);
  void *z = case_draw_master(r, s[0] * s[1], 4);
  void *token = case_integers(r, (const int32_t[64]){0}, s[0]);
  void *logq = case_zeros_master(r, s[0]), *truncated = case_zeros_master(r, s[0]);
  OP(r, sample)
  (r->b, token, logq, truncated, z, at, s[0], s[1], &spec, rng_stream_at(3, RNG_TEST, 9),
   (int)s[4]);
  case_keep_integers(r, "token", token, s[0]);
  case_keep_master(r, "logq", logq, s[0]);
  case_keep_master(r, "logq_truncated", truncated, s[0]);
}

/* Sets of every third token and the target, as bits or as lists; in the backend's memory. */
static kept_sets case_sets(case_run *r, size_t rows, size_t vocabulary, int listed,
                           const int32_t *target) {
  const kept_shape shape = {vocabulary, listed ? vocabulary + 1 : (vocabulary + 31) / 32, listed};
  uint32_t *set = calloc(rows * shape.words + 1, sizeof *set);
  double *dist = calloc(vocabulary, sizeof *dist);
  int32_t *wanted = calloc(rows + 1, sizeof *wanted);
  r->b->ops->download(r->b, wanted, target, rows * sizeof *wanted);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t a = 0; a < vocabulary; ++a)
      dist[a] = (a + i) % 3 == 0 || a == (size_t)wanted[i] ? -1 : -INFINITY;
    kept_put(&shape, dist, set + i * shape.words);
  }
  const kept_sets kept = {
      shape, (uint32_t *)(void *)case_integers(r, (int32_t *)(void *)set, rows * shape.words)};
  free(set);
  free(dist);
  free(wanted);
  return kept;
}

/* --- output; shape: rows, vocabulary, k, temperature in tenths, sets: 0 none, 1 bits, 2 lists; 1:
 * with stored logits, if the backend has them --- */

static void output_case(case_run *r, const size_t *s) {
  const double temperature = (double)s[3] / 10;
  void *in = case_draw(r, s[0] * s[2], 1), *weight = case_draw(r, s[1] * s[2], 0.5);
  const int32_t *target = case_draw_integers(r, s[0], s[1]);
  kept_sets kept = {.set = NULL};
  if (s[4] != 0) kept = case_sets(r, s[0], s[1], s[4] == 2, target);
  void *logp = case_zeros_master(r, s[0]), *entropy = case_zeros_master(r, s[0]);
  void *lse = case_zeros_master(r, s[0]), *logits = NULL;
  if (s[5] != 0 && r->b->ops->logits_bytes != NULL) {
    const size_t bytes = r->b->ops->logits_bytes(r->b, s[0], s[1]);
    logits = case_zeros_master(r, (bytes + r->b->master_element - 1) / r->b->master_element);
  }
  OP(r, output)
  (r->b, logp, entropy, lse, logits, in, weight, target, kept, s[0], s[1], s[2], temperature);
  case_keep_master(r, "logp", logp, s[0]);
  case_keep_master(r, "entropy", entropy, s[0]);
  case_keep_master(r, "lse", lse, s[0]);
  void *din = case_draw(r, s[0] * s[2], 1), *dweight = case_draw_master(r, s[1] * s[2], 1);
  OP(r, output_backward)
  (r->b, din, dweight, case_draw_master(r, s[0], 1), lse, logits, in, weight, target, kept, s[0],
   s[1], s[2], temperature);
  case_keep(r, "din", din, s[0] * s[2]);
  case_keep_master(r, "dweight", dweight, s[1] * s[2]);
}

/* shape: rows, vocabulary, k, temperature in tenths, listed */
static void kept_parts_case(case_run *r, const size_t *s) {
  void *in = case_draw(r, s[0] * s[2], 1), *weight = case_draw(r, s[1] * s[2], 0.5);
  const kept_sets kept = case_sets(r, s[0], s[1], (int)s[4], case_draw_integers(r, s[0], s[1]));
  void *mass = case_zeros_master(r, s[0]), *entropy_kept = case_zeros_master(r, s[0]);
  void *entropy_tail = case_zeros_master(r, s[0]);
  OP(r, kept_parts)
  (r->b, mass, entropy_kept, entropy_tail, in, weight, kept, s[0], s[2], (double)s[3] / 10);
  case_keep_master(r, "mass", mass, s[0]);
  case_keep_master(r, "entropy_kept", entropy_kept, s[0]);
  case_keep_master(r, "entropy_tail", entropy_tail, s[0]);
}

/* Keeps for each row and token whether the row's set holds it. */
static void case_keep_sets(case_run *r, kept_sets kept, size_t rows) {
  const size_t words = kept.shape.words, n = kept.shape.vocabulary;
  uint32_t *set = calloc(rows * words + 1, sizeof *set);
  int32_t *held = calloc(rows * n + 1, sizeof *held);
  r->b->ops->download(r->b, set, kept.set, rows * words * sizeof *set);
  for (size_t i = 0; i < rows * n; ++i) held[i] = kept_has(&kept.shape, set + i / n * words, i % n);
  case_keep_integers(r, "held", case_integers(r, held, rows * n), rows * n);
  free(set);
  free(held);
}

/* shape: rows, vocabulary, top_k, top_p in tenths, listed */
static void sample_kept_case(case_run *r, const size_t *s) {
  const sampling_spec spec = {.temperature = 0.8, .top_k = s[2], .top_p = (double)s[3] / 10};
  const kept_shape shape = {s[1], s[4] ? s[1] + 1 : (s[1] + 31) / 32, (int)s[4]};
  uint64_t *index = calloc(s[0] + 1, sizeof *index);
  for (size_t i = 0; i < s[0]; ++i) index[i] = rng_token_index(i, 5);
  uint64_t *at = (uint64_t *)(void *)case_integers(r, (const int32_t *)(void *)index, 2 * s[0]);
  free(index);
  int32_t *none = calloc(s[0] * shape.words + 64, sizeof *none);
  const kept_sets kept = {shape, (uint32_t *)(void *)case_integers(r, none, s[0] * shape.words)};
  void *z = case_draw_master(r, s[0] * s[1], 4), *token = case_integers(r, none, s[0]);
  free(none);
  void *logq = case_zeros_master(r, s[0]), *truncated = case_zeros_master(r, s[0]);
  OP(r, sample_kept)
  (r->b, token, logq, truncated, kept, z, at, s[0], &spec, rng_stream_at(3, RNG_TEST, 9));
  case_keep_integers(r, "token", token, s[0]);
  case_keep_master(r, "logq", logq, s[0]);
  case_keep_master(r, "logq_truncated", truncated, s[0]);
  case_keep_sets(r, kept, s[0]);
}

/* shape: rows, vocabulary, noise in tenths, rounds */
static void distort_case(case_run *r, const size_t *s) {
  const sampling_behaviour behaviour = {.noise = (double)s[2] / 10,
                                        .rounds_to_bfloat16 = (int)s[3]};
  uint64_t *context = calloc(s[0] + 1, sizeof *context);
  for (size_t i = 0; i < s[0]; ++i) context[i] = (i % 3 + 1) * UINT64_C(0x9e3779b97f4a7c15);
  uint64_t *at = (uint64_t *)(void *)case_integers(r, (const int32_t *)(void *)context, 2 * s[0]);
  free(context);
  void *z = case_draw_master(r, s[0] * s[1], 4);
  OP(r, distort)(r->b, z, at, s[0], s[1], &behaviour, 12);
  case_keep_master(r, "logits", z, s[0] * s[1]);
}

/* --- optimisers; shape: n, form --- */

static void adamw_case(case_run *r, const size_t *s) {
  const adamw_step step = {.lr = 0.01,
                           .beta1 = 0.9,
                           .beta2 = 0.95,
                           .eps = 1e-8,
                           .decoupled = s[1] == 0 ? 0.1 : 0,
                           .coupled = s[1] == 1 ? 0.1 : 0,
                           .correct1 = 0.271,
                           .correct2 = 0.142625,
                           .scale = 0.5};
  void *param = case_draw_master(r, s[0], 1), *m = case_draw_master(r, s[0], 0.1);
  void *v = case_zeros_master(r, s[0]), *copy = s[1] == 2 ? case_zeros(r, s[0]) : param;
  if (r->b->type != r->b->master && copy == param) copy = case_zeros(r, s[0]);
  for (int i = 0; i < 2; ++i)
    OP(r, adamw)(r->b, param, copy, case_draw_master(r, s[0], 1), m, v, s[0], &step);
  case_keep_master(r, "param", param, s[0]);
  case_keep(r, "copy", copy, s[0]);
  case_keep_master(r, "m", m, s[0]);
  case_keep_master(r, "v", v, s[0]);
}

static void sgd_case(case_run *r, const size_t *s) {
  const sgd_step step = {.lr = 0.01, .momentum = 0.9, .coupled = 0.1, .scale = 0.5};
  void *param = case_draw_master(r, s[0], 1);
  void *m = s[1] == 1 ? case_draw_master(r, s[0], 0.1) : NULL, *copy = case_zeros(r, s[0]);
  for (int i = 0; i < 2; ++i)
    OP(r, sgd)(r->b, param, copy, case_draw_master(r, s[0], 1), m, s[0], &step);
  case_keep_master(r, "param", param, s[0]);
  case_keep(r, "copy", copy, s[0]);
  void *master = case_draw_master(r, s[0], 1);
  OP(r, cast)(r->b, copy, master, s[0]);
  case_keep(r, "cast", copy, s[0]);
  const double squares = OP(r, sum_squares)(r->b, master, s[0]);
  case_keep_master(r, "sum_squares", case_put_master(r, &squares, 1), 1);
}

/* --- memory; shape: n. What is put aside and copied back is what it was. --- */

static void copy_case(case_run *r, const size_t *s) {
  const size_t bytes = s[0] * r->b->element;
  void *from = case_draw(r, s[0], 1), *to = case_draw(r, s[0], 1), *half = case_draw(r, s[0], 1);
  void *aside = OP(r, allocate_aside)(r->b, bytes);
  OP(r, copy)(r->b, aside, from, bytes);
  OP(r, copy)(r->b, to, aside, bytes);
  OP(r, release_aside)(r->b, aside);
  OP(r, zero)(r->b, half, s[0] / 2 * r->b->element);
  case_keep(r, "to", to, s[0]);
  case_keep(r, "half", half, s[0]);
}

/* Rounded to one of the two neighbours: within the tolerance of the type either way. */
static void cast_case(case_run *r, const size_t *s) {
  const copy_rounding rounding = {rng_stream_at(3, RNG_TEST, 10), 5};
  void *out = case_zeros(r, s[0]);
  OP(r, cast_stochastic)(r->b, out, case_draw_master(r, s[0], 1), s[0], &rounding);
  case_keep(r, "out", out, s[0]);
}

/* --- the table --- */

typedef struct backend_case {
  const char *name;
  void (*run)(case_run *r, const size_t *shape);
  double slack; /* how much wider than the tolerance it may be */
  size_t n_shapes;
  size_t shape[MAX_SHAPES][SHAPE];
} backend_case;

static const backend_case cases[] = {
    {"embed", embed_case, 1, 5, {{1, 8, 3}, {7, 5, 4}, {100, 64, 20}, {300, 131, 11}, {0, 8, 3}}},
    {"gather", gather_case, 1, 4, {{1, 8, 5}, {7, 5, 11}, {60, 130, 60}, {0, 8, 3}}},
    {"norm",
     norm_case,
     1,
     8,
     {{1, 1, 0},
      {3, 7, 1},
      {5, 16, 2},
      {1, 64, 0},
      {129, 96, 1},
      {300, 65, 2},
      {17, 1024, 0},
      {0, 8, 0}}},
    {"bias", bias_case, 1, 5, {{1, 1}, {3, 7}, {65, 96}, {300, 257}, {0, 8}}},
    {"heads",
     heads_case,
     1,
     10,
     {{3, 2, 1, 6, 1},
      {33, 16, 8, 128, 1},
      {257, 3, 1, 64, 1},
      {1, 1, 1, 2},
      {3, 2, 1, 6},
      {9, 4, 2, 16},
      {40, 4, 4, 10},
      {33, 16, 8, 128},
      {257, 3, 1, 64},
      {0, 2, 1, 8}}},
    {"swiglu",
     swiglu_case,
     1,
     6,
     {{1, 1, 2}, {3, 7, 4}, {65, 96, 10}, {130, 257, 3}, {4, 33, 200}, {0, 8, 1}}},
    {"product",
     product_case,
     1,
     12,
     {{1, 1, 1, 0},
      {1, 64, 64, PRODUCT_ROW_BY_ROW},
      {2, 7, 5, PRODUCT_ADD},
      {3, 130, 33, 0},
      {5, 3, 700, PRODUCT_ROW_BY_ROW | PRODUCT_ADD},
      {70, 200, 128, 0},
      {257, 96, 64, PRODUCT_ADD},
      {600, 20, 64, 0},
      {33, 300, 1100, PRODUCT_ROW_BY_ROW},
      {301, 65, 47, 0},
      {64, 1, 64, 0},
      {0, 16, 16, PRODUCT_ADD}}},
    {"logits", logits_case, 1, 3, {{1, 20, 64}, {9, 601, 65}, {0, 20, 8}}},
    {"attention",
     attention_case,
     2,
     16,
     {{0, 1, 1, 2},
      {1, 2, 1, 6},
      {2, 4, 2, 16},
      {3, 2, 2, 8},
      {4, 4, 1, 10},
      {5, 4, 2, 32},
      {6, 2, 1, 64},
      {7, 2, 2, 16},
      {8, 2, 1, 8},
      {5, 3, 3, 20},
      {4, 6, 2, 128},
      {6, 3, 1, 24},
      {7, 4, 2, 64},
      {5, 2, 1, 128},
      {6, 4, 2, 128},
      {7, 2, 1, 128}}},
    {"attention_shared",
     attention_shared_case,
     2,
     8,
     {{0, 1, 1, 2},
      {0, 4, 2, 20},
      {1, 2, 2, 16},
      {2, 4, 1, 10},
      {1, 2, 1, 64},
      {2, 4, 2, 128},
      {1, 6, 2, 128},
      {3, 2, 1, 8}}},
    {"attention_cached",
     cached_case,
     2,
     9,
     {{1, 1, 1, 2, 1},
      {3, 2, 1, 6, 9},
      {17, 4, 2, 16, 40},
      {5, 6, 2, 128, 70},
      {4, 2, 2, 24, 600},
      {2, 5, 1, 10, 33},
      {3, 3, 3, 248, 17},
      {2, 4, 2, 128, 640, 600},
      {0, 2, 1, 8, 4}}},
    {"output",
     output_case,
     4,
     9,
     {{1, 2, 1, 10, 0},
      {3, 20, 7, 7, 0, 1},
      {60, 20, 64, 10, 0},
      {130, 513, 65, 13, 0, 1},
      {50, 600, 128, 10, 0},
      {7, 20000, 24, 10, 0, 1},
      {1, 9000, 96, 25, 0},
      {4100, 2100, 8, 10, 0},
      {0, 20, 8, 10, 0}}},
    {"output over kept tokens",
     output_case,
     4,
     6,
     {{1, 2, 1, 10, 1},
      {3, 20, 7, 7, 2, 1},
      {60, 20, 64, 10, 1, 1},
      {130, 513, 65, 13, 2},
      {7, 20000, 24, 10, 2},
      {0, 20, 8, 10, 1}}},
    {"sample",
     sample_case,
     1,
     9,
     {{1, 1, 0, 10, 0},
      {40, 20, 0, 10, 0},
      {25, 9001, 0, 10, 0},
      {40, 20, 5, 10, 0},
      {40, 20, 0, 5, 0},
      {17, 600, 30, 9, 0},
      {17, 600, 0, 10, 1},
      {3, 5000, 7, 7, 1},
      {0, 20, 0, 10, 0}}},
    {"kept_parts",
     kept_parts_case,
     4,
     5,
     {{1, 5, 3, 10, 0},
      {3, 20, 7, 7, 1},
      {130, 513, 65, 13, 1},
      {7, 20000, 24, 10, 0},
      {0, 20, 8, 10, 0}}},
    {"sample_kept",
     sample_kept_case,
     1,
     6,
     {{40, 20, 5, 10, 0},
      {40, 20, 0, 5, 0},
      {17, 600, 30, 9, 1},
      {9, 33, 8, 7, 0},
      {3, 5000, 7, 7, 1},
      {0, 20, 5, 10, 0}}},
    {"distort", distort_case, 1, 4, {{1, 1, 3, 0}, {9, 601, 5, 0}, {7, 40, 0, 1}, {0, 20, 1, 1}}},
    {"copy", copy_case, 1, 3, {{1}, {1000}, {0}}},
    {"cast", cast_case, 1, 3, {{1}, {1001}, {0}}},
    {"adamw", adamw_case, 1, 4, {{1, 0}, {37, 1}, {40000, 2}, {0, 0}}},
    {"sgd", sgd_case, 1, 4, {{1, 0}, {37, 1}, {40000, 1}, {0, 0}}},
};

/* 1 if they differ too much; told on stderr. */
static int differs(const char *name, const size_t *s, const case_output *a, const case_output *b,
                   double tolerance) {
  double worst = 0, largest = 0;
  size_t at = 0;
  int bad = 0;
  for (size_t i = 0; i < b->n; ++i) {
    const double gap = fabs(a->value[i] - b->value[i]);
    const int differ = tolerance == 0 ? memcmp(&a->value[i], &b->value[i], sizeof gap) != 0 : 0;
    largest = fmax(largest, fabs(b->value[i]));
    if (gap > worst || !isfinite(a->value[i]) || differ) {
      worst = gap;
      at = i;
    }
    bad |= differ || !isfinite(a->value[i]);
  }
  bad |= worst > tolerance * fmax(largest, 0.1); /* what should cancel to zero does so nearly */
  if (bad)
    fprintf(stderr,
            "%s (%zu, %zu, %zu, %zu, %zu, %zu): %s[%zu] is %.9g, of the reference %.9g; largest "
            "%.3g\n",
            name, s[0], s[1], s[2], s[3], s[4], s[5], b->name, at, a->value[at], b->value[at],
            largest);
  return bad;
}

enum { N_CASES = sizeof cases / sizeof *cases };

struct case_results {
  case_run (*run)[MAX_SHAPES]; /* [N_CASES] */
  size_t failures;
};

case_results *case_results_new(backend *b, number_type type, number_type master) {
  case_results *out = calloc(1, sizeof *out);
  if (out == NULL || (out->run = calloc(N_CASES, sizeof *out->run)) == NULL) abort();
  for (size_t i = 0; i < N_CASES; ++i)
    for (size_t s = 0; s < cases[i].n_shapes; ++s) {
      case_run *r = &out->run[i][s];
      gl_error err = {.status = GL_OK};
      case_begin(r, b, type, master);
      cases[i].run(r, cases[i].shape[s]);
      if (b->ops->status(b, &err) != GL_OK) {
        fprintf(stderr, "%s: %s\n", cases[i].name, err.text);
        ++out->failures;
      }
      case_release(r);
    }
  return out;
}

void case_results_free(case_results *results) {
  for (size_t i = 0; i < N_CASES; ++i)
    for (size_t s = 0; s < cases[i].n_shapes; ++s) case_end(&results->run[i][s]);
  free(results->run);
  free(results);
}

size_t compare_results(const case_results *candidate, const case_results *reference,
                       double tolerance) {
  size_t bad = candidate->failures + reference->failures;
  for (size_t i = 0; i < N_CASES; ++i)
    for (size_t s = 0; s < cases[i].n_shapes; ++s) {
      const case_run *a = &candidate->run[i][s], *b = &reference->run[i][s];
      for (size_t o = 0; o < b->n_outputs; ++o)
        bad += (size_t)differs(cases[i].name, cases[i].shape[s], &a->output[o], &b->output[o],
                               tolerance * cases[i].slack);
    }
  return bad;
}

/* What compares nothing: suites of the backends call them on their own. */
static int needs_no_case(size_t operation) {
  return operation == CASE_OPERATION_status || operation == CASE_OPERATION_memory ||
         operation == CASE_OPERATION_free;
}

size_t operations_without_case(backend *b) {
  static const char *const names[] = {
#define OPERATION(result, name, arguments) #name,
#define OPTIONAL_OPERATION(result, name, arguments)
#define HOST_OPERATION(result, name, arguments)
#include "llm/backend/operations.h"
  };
  unsigned char called[CASE_OPERATIONS] = {0};
  size_t missing = 0;
  for (size_t i = 0; i < N_CASES; ++i) {
    case_run r;
    case_begin(&r, b, b->type, b->master);
    cases[i].run(&r, cases[i].shape[0]);
    case_end(&r); /* which calls release */
    for (size_t o = 0; o < CASE_OPERATIONS; ++o) called[o] |= r.called[o];
  }
  for (size_t o = 0; o < CASE_OPERATIONS; ++o)
    if (!called[o] && !needs_no_case(o)) {
      fprintf(stderr, "the operation %s has no case in tests/support/llm_backend_cases.c\n",
              names[o]);
      ++missing;
    }
  return missing;
}
