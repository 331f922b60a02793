/* The bounds of `bench gpu --only parity`: bfloat16 as a device rounds it stays within them, and
 * mistakes that a kernel could have do not. Nothing here runs on a device: the operations of a
 * float32 CPU backend are replaced by ones that round what they store to bfloat16, and that make
 * the mistakes. Only log-probabilities are compared, that is GPU_LOGP and GPU_LOGP_RMS.
 *
 * The model has 28 layers, as the smallest Qwen3, of a sixteenth of its width; its weights are four
 * times as large, so that all activations but those of the embedding have the same size.
 * GEPOLAB_PARITY_SHAPE=0.6b takes that model itself instead (12 GB of memory, some minutes) and
 * prints the numbers. */
#include "experiments/bench/gpu.h"
#include "llm/backend/open/open.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("bench: bounds of parity");

enum { BLOCK = 64, TILE = 16 };

typedef enum mistake {
  NO_MISTAKE,
  KEYS_DROPPED,      /* no query sees the second block of 64 keys */
  OWN_KEY_DROPPED,   /* no query sees its own key */
  SCALE_LEFT_OUT,    /* scores are not divided by sqrt(dim) */
  TILE_TRANSPOSED,   /* tiles of 16 x 16 values are read transposed */
  HEADS_EXCHANGED,   /* the first two query heads */
  POSITION_OF_KEYS,  /* one more than that of queries */
  COLUMNS_STALE,     /* the last 8 results of every product's row are those of the row before */
  KEYS_DROPPED_ONCE, /* no query of the first layer sees the second block */
  SUMS_IN_BFLOAT16,  /* of products, after every 16 terms: found at 0.6B's width alone */
  NORM_EPS_LEFT_OUT, /* division by the root of the mean square alone: not found */
  MISTAKES
} mistake;

/* What the replaced operations do; the tests of a process run one after the other. */
static struct {
  const backend_ops *own;
  int rounds;
  mistake mistake;
  size_t calls; /* of attention, since the forward began */
} simulated;

static float to_bfloat16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static void store(void *numbers, size_t n) {
  float *x = numbers;
  for (size_t i = 0; i < n && simulated.rounds; ++i) x[i] = to_bfloat16(x[i]);
}

static int makes(mistake m) {
  return simulated.mistake == m;
}

/* --- the replaced operations --- */

static void rounded_norm(backend *b, void *out, void *rstd, void *sum, const void *in,
                         const void *add, const void *weight, size_t rows, size_t width,
                         double eps) {
  simulated.own->norm(b, out, rstd, sum, in, add, weight, rows, width,
                      makes(NORM_EPS_LEFT_OUT) ? 0 : eps);
  if (add != NULL) store(sum, rows * width);
  store(out, rows * width);
}

static void rounded_swiglu(backend *b, void *out, const void *gate_up, size_t rows, size_t width) {
  simulated.own->swiglu(b, out, gate_up, rows, width);
  store(out, rows * width);
}

static void sums_in_bfloat16(float *out, const float *in, const float *weight, size_t rows,
                             size_t m, size_t k) {
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < m; ++c) {
      float sum = 0;
      for (size_t i = 0; i < k; i += TILE) {
        float part = 0;
        for (size_t j = i; j < k && j < i + TILE; ++j) part += in[r * k + j] * weight[c * k + j];
        sum = to_bfloat16(sum + part);
      }
      out[r * m + c] = sum;
    }
}

static void rounded_product(backend *b, void *to, const void *in, const void *weight,
                            const void *packed, size_t rows, size_t m, size_t k, int flags) {
  float *out = to;
  if (makes(SUMS_IN_BFLOAT16) && flags == 0)
    sums_in_bfloat16(out, in, weight, rows, m, k);
  else
    simulated.own->product_packed(b, out, in, weight, packed, rows, m, k, flags);
  store(out, rows * m);
  for (size_t r = rows; r-- > 1 && makes(COLUMNS_STALE);)
    memcpy(out + (r + 1) * m - 8, out + r * m - 8, 8 * sizeof *out);
}

static void rounded_heads(backend *b, void *qk, void *rstd, const void *qkv, const void *q_weight,
                          const void *k_weight, const void *cosine, const void *sine,
                          const int32_t *position, size_t rows, head_shape s, double eps) {
  const size_t queries = s.q * s.dim, width = queries + s.kv * s.dim;
  float *right = qk;
  simulated.own->heads(b, qk, rstd, qkv, q_weight, k_weight, cosine, sine, position, rows, s, eps);
  if (makes(POSITION_OF_KEYS)) {
    int32_t *later = malloc(rows * sizeof *later);
    float *wrong = malloc(rows * width * sizeof *wrong);
    CU_ASSERT_FATAL(later != NULL && wrong != NULL);
    for (size_t r = 0; r < rows; ++r) later[r] = position[r] + 1;
    simulated.own->heads(b, wrong, rstd, qkv, q_weight, k_weight, cosine, sine, later, rows, s,
                         eps);
    for (size_t r = 0; r < rows; ++r)
      memcpy(right + r * width + queries, wrong + r * width + queries,
             s.kv * s.dim * sizeof *right);
    free(later);
    free(wrong);
  }
  store(qk, rows * width);
}

/* Number i of key `key` of the sequence whose values begin at v. */
static float value_of(const float *v, size_t step, size_t keys, size_t key, size_t i) {
  const size_t row = key % TILE, column = i % TILE;
  if (!makes(TILE_TRANSPOSED) || key - row + TILE > keys) return v[key * step + i];
  return v[(key - row + column) * step + i - column + row];
}

static int is_seen(size_t query, size_t key) {
  if (makes(KEYS_DROPPED) || (makes(KEYS_DROPPED_ONCE) && simulated.calls == 0))
    return query < 2 * BLOCK || key / BLOCK != 1;
  return !makes(OWN_KEY_DROPPED) || key < query || query == 0;
}

/* One query: weights rounded to bfloat16, as operands of a product are, their sum not. */
static void attend(float *out, const float *q, const float *k, size_t k_step, const float *v,
                   size_t v_step, size_t query, size_t keys, size_t dim, float *weight) {
  const float scale = makes(SCALE_LEFT_OUT) ? 1 : 1 / sqrtf((float)dim);
  float top = -INFINITY, total = 0;
  for (size_t j = 0; j <= query; ++j) {
    float dot = 0;
    for (size_t i = 0; i < dim; ++i) dot += q[i] * k[j * k_step + i];
    weight[j] = is_seen(query, j) ? dot * scale : -INFINITY;
    top = fmaxf(top, weight[j]);
  }
  memset(out, 0, dim * sizeof *out);
  for (size_t j = 0; j <= query; ++j) {
    float w = expf(weight[j] - top);
    total += w;
    store(&w, 1);
    for (size_t i = 0; i < dim; ++i) out[i] += w * value_of(v, v_step, keys, j, i);
  }
  for (size_t i = 0; i < dim; ++i) out[i] /= total;
}

static void rounded_attention(backend *b, void *to, void *lse, const void *qk, const void *qkv,
                              packed_rows rows, head_shape s) {
  const size_t d = s.dim, width = s.q * d, qk_width = width + s.kv * d, step = qk_width + s.kv * d;
  float *out = to, *weight = malloc(rows.longest * sizeof *weight);
  CU_ASSERT_PTR_NOT_NULL_FATAL(weight);
  (void)b, (void)lse;
  for (size_t n = 0; n < rows.sequences; ++n) {
    const size_t first = (size_t)rows.start[n], keys = (size_t)rows.start[n + 1] - first;
    const float *q = (const float *)qk + first * qk_width, *v = (const float *)qkv + first * step;
    for (size_t r = 0; r < keys; ++r)
      for (size_t h = 0; h < s.q; ++h) {
        const size_t group = h / (s.q / s.kv), place = makes(HEADS_EXCHANGED) && h < 2 ? 1 - h : h;
        attend(out + (first + r) * width + place * d, q + r * qk_width + h * d,
               q + width + group * d, qk_width, v + width + (s.kv + group) * d, step, r, keys, d,
               weight);
      }
  }
  free(weight);
  store(out, rows.rows * width);
  ++simulated.calls;
}

/* --- the comparison --- */

typedef struct gaps {
  double most, rms;
} gaps;

static gaps between(const double *x, const double *y, size_t n) {
  gaps g = {0, 0};
  for (size_t i = 0; i < n; ++i) {
    const double gap = fabs(x[i] - y[i]);
    g.most = fmax(g.most, gap);
    g.rms += gap * gap / (double)n;
  }
  g.rms = sqrt(g.rms);
  return g;
}

/* Whether bench gpu would accept these log-probabilities, all else being right. */
static int accepted(gaps g) {
  const double value[GPU_PARITY_VALUES] = {
      [GPU_LOGP] = g.most, [GPU_LOGP_RMS] = g.rms, [GPU_COSINE] = 1};
  return gpu_parity_check(value, NULL) == GL_OK;
}

/* Multiplies the matrices by `factor`. */
static void scale_weights(model *m, double factor) {
  double *value = malloc(model_parameters(m) * sizeof *value);
  CU_ASSERT_PTR_NOT_NULL_FATAL(value);
  ASSERT_OK(model_get(m, value, &err));
  const model_tensor *t;
  for (size_t k = 0; (t = model_tensor_at(m, k)) != NULL; ++k)
    for (size_t i = 0; i < t->rows * t->columns && t->rows > 1; ++i) value[t->offset + i] *= factor;
  ASSERT_OK(model_set(m, value, &err));
  free(value);
}

TEST(bfloat16_is_within_them_and_mistakes_of_kernels_are_not) {
  static const char *const names[MISTAKES] = {
      "none",     "keys",    "own key",         "scale", "tile", "heads",
      "position", "columns", "keys of a layer", "sums",  "eps"};
  const char *shape = getenv("GEPOLAB_PARITY_SHAPE");
  model_config c = gpu_shape_named(shape != NULL ? shape : "tiny", 0).model;
  workload_size size = {.sequences = 1, .length = 3 * BLOCK};
  if (shape == NULL) c.layers = 28, c.head_dim = 32, c.vocabulary = 2048;
  backend *b = NULL;
  workload w;
  ASSERT_OK(backend_new(&b, BACKEND_CPU, NUMBER_F32, 0, &err));
  ASSERT_OK(workload_init(&w, &c, size, NULL, b, &err));
  if (shape == NULL) scale_weights(w.m, 4);
  backend_ops ops = *b->ops;
  simulated.own = b->ops;
  ops.norm = rounded_norm;
  ops.swiglu = rounded_swiglu;
  ops.product_packed = rounded_product;
  ops.heads = rounded_heads;
  ops.attention = rounded_attention;
  b->ops = &ops;

  const size_t n = size.sequences * size.length;
  double *right = malloc(n * sizeof *right);
  CU_ASSERT_PTR_NOT_NULL_FATAL(right);
  simulated.rounds = 0;
  simulated.mistake = NO_MISTAKE;
  ASSERT_OK(workload_score(&w, &err));
  memcpy(right, w.logp, n * sizeof *right);
  simulated.rounds = 1;
  for (mistake m = NO_MISTAKE; m < MISTAKES; ++m) {
    simulated.mistake = m;
    simulated.calls = 0;
    ASSERT_OK(workload_score(&w, &err));
    const gaps g = between(right, w.logp, n);
    if (shape != NULL)
      fprintf(stderr, "%-16s root mean square %.5f, most %.5f\n", names[m], g.rms, g.most);
    CU_ASSERT_EQUAL(accepted(g), m == NO_MISTAKE || m == NORM_EPS_LEFT_OUT ||
                                     (m == SUMS_IN_BFLOAT16 && shape == NULL));
  }
  b->ops = simulated.own;
  free(right);
  workload_fini(&w);
  backend_free(b);
}
