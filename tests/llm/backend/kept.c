/* Distributions renormalised over the tokens that a sampler kept, and logits that are distorted, on
 * the CPU: against plain loops, and gradients against central differences. */
#include "core/random/rng.h"
#include "llm/backend/cpu/cpu.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: kept tokens");

static backend *cpu_of(number_type type, size_t threads) {
  backend *b = NULL;
  ASSERT_OK(backend_cpu_new(&b, type, threads, &err));
  return b;
}

static double uniform(uint64_t entity, size_t i) {
  const rng_words w = rng_block(rng_stream_at(23, RNG_TEST, entity), i);
  return 2 * rng_u01_53(w.v[0], w.v[1]) - 1;
}

static double *uniforms(size_t n, uint64_t entity, double scale) {
  double *x = calloc(n + 1, sizeof *x);
  CU_ASSERT_PTR_NOT_NULL_FATAL(x);
  for (size_t i = 0; i < n; ++i) x[i] = scale * uniform(entity, i);
  return x;
}

/* An output layer with the sets of its rows. */
typedef struct layer {
  size_t rows, k, vocabulary;
  double temperature;
  double *in, *weight, *dist; /* distribution [rows, vocabulary]: finite where a token is kept */
  int32_t *target;
  kept_sets kept;
} layer;

/* Sets of about one in `sparse` tokens with the target among them; of the last row, the target
 * alone; listed: as lists. */
static layer layer_new(size_t rows, size_t vocabulary, size_t k, size_t sparse, int listed) {
  layer l = {.rows = rows,
             .k = k,
             .vocabulary = vocabulary,
             .temperature = 0.7,
             .in = uniforms(rows * k, 1, 1),
             .weight = uniforms(vocabulary * k, 2, 1)};
  l.kept.shape = (kept_shape){vocabulary, listed ? vocabulary + 1 : (vocabulary + 31) / 32, listed};
  l.dist = calloc(rows * vocabulary, sizeof *l.dist);
  l.target = calloc(rows, sizeof *l.target);
  l.kept.set = calloc(rows * l.kept.shape.words, sizeof *l.kept.set);
  for (size_t r = 0; r < rows; ++r) {
    const size_t target = (r * 7919 + 3) % vocabulary;
    l.target[r] = (int32_t)target;
    for (size_t a = 0; a < vocabulary; ++a) {
      const int kept = r + 1 < rows && uniform(3, r * vocabulary + a) < 2.0 / (double)sparse - 1;
      l.dist[r * vocabulary + a] = kept || a == target ? -1 : -INFINITY;
    }
    kept_put(&l.kept.shape, l.dist + r * vocabulary, l.kept.set + r * l.kept.shape.words);
  }
  return l;
}

static void layer_free(layer *l) {
  free(l->in);
  free(l->weight);
  free(l->dist);
  free(l->target);
  free(l->kept.set);
}

static double logit(const layer *l, size_t r, size_t a) {
  double z = 0;
  for (size_t i = 0; i < l->k; ++i) z += l->in[r * l->k + i] * l->weight[a * l->k + i];
  return z / l->temperature;
}

/* log of the sum of e^z over the kept tokens of row r, or over all. */
static double sum_of(const layer *l, size_t r, int all) {
  double sum = 0;
  for (size_t a = 0; a < l->vocabulary; ++a)
    if (all || !isinf(l->dist[r * l->vocabulary + a])) sum += exp(logit(l, r, a));
  return log(sum);
}

static void check_forward(backend *b, const layer *l, double *logp, double *lse) {
  double *entropy = calloc(l->rows, sizeof *entropy);
  b->ops->output(b, logp, entropy, lse, NULL, l->in, l->weight, l->target, l->kept, l->rows,
                 l->vocabulary, l->k, l->temperature);
  ASSERT_OK(b->ops->status(b, &err));
  for (size_t r = 0; r < l->rows; ++r) {
    const double over = sum_of(l, r, 0), all = sum_of(l, r, 1);
    double sum = 0;
    for (size_t a = 0; a < l->vocabulary; ++a) {
      const double x = logit(l, r, a) - all;
      sum -= exp(x) * x;
    }
    ASSERT_CLOSE(logp[r], logit(l, r, (size_t)l->target[r]) - over, 1e-12);
    ASSERT_CLOSE(lse[r], over, 1e-12);
    ASSERT_CLOSE(entropy[r], sum, 1e-11);
  }
  ASSERT_CLOSE(logp[l->rows - 1], 0, 1e-14); /* the target alone is kept */
  free(entropy);
}

/* Sizes below and above a block of columns and a span of the vocabulary. */
static const size_t sizes[][4] = {{5, 23, 6, 3}, {50, 700, 5, 9}, {3, 9000, 4, 40}};

TEST(log_probabilities_are_those_over_the_kept_tokens) {
  backend *b = cpu_of(NUMBER_F64, 2);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    double logp[2][64], lse[2][64];
    for (int listed = 0; listed < 2; ++listed) {
      layer l = layer_new(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], listed);
      check_forward(b, &l, logp[listed], lse[listed]);
      layer_free(&l);
    }
    CU_ASSERT_EQUAL(memcmp(logp[0], logp[1], sizes[i][0] * sizeof(double)), 0);
    CU_ASSERT_EQUAL(memcmp(lse[0], lse[1], sizes[i][0] * sizeof(double)), 0);
  }
  backend_free(b);
}

/* No sets: every token is kept. */
static const kept_sets no_sets = {.set = NULL};

/* With every token kept, or with an empty set, it is the output layer's distribution, bit for bit.
 */
TEST(sets_that_leave_nothing_out_change_no_bit) {
  backend *b = cpu_of(NUMBER_F64, 1);
  for (int empty = 0; empty < 2; ++empty) {
    layer l = layer_new(4, 600, 5, 1, 0);
    double whole[3][4], kept[3][4];
    memset(l.kept.set, empty ? 0 : 0xff, 4 * l.kept.shape.words * sizeof *l.kept.set);
    b->ops->output(b, whole[0], whole[1], whole[2], NULL, l.in, l.weight, l.target, no_sets, 4, 600,
                   5, 0.7);
    b->ops->output(b, kept[0], kept[1], kept[2], NULL, l.in, l.weight, l.target, l.kept, 4, 600, 5,
                   0.7);
    CU_ASSERT_EQUAL(memcmp(whole, kept, sizeof whole), 0);
    layer_free(&l);
  }
  backend_free(b);
}

/* The weighted sum of log-probabilities by which the layer's inputs have the gradient. */
static double weighted(backend *b, const layer *l, const double *coefficient) {
  double logp[64], entropy[64], lse[64], sum = 0;
  b->ops->output(b, logp, entropy, lse, NULL, l->in, l->weight, l->target, l->kept, l->rows,
                 l->vocabulary, l->k, l->temperature);
  for (size_t r = 0; r < l->rows; ++r) sum += coefficient[r] * logp[r];
  return sum;
}

static double slope(backend *b, const layer *l, double *x, const double *coefficient) {
  const double h = 1e-6, here = *x;
  *x = here + h;
  const double above = weighted(b, l, coefficient);
  *x = here - h;
  const double below = weighted(b, l, coefficient);
  *x = here;
  return (above - below) / (2 * h);
}

TEST(the_backward_is_the_derivative) {
  backend *b = cpu_of(NUMBER_F64, 1);
  for (int listed = 0; listed < 2; ++listed) {
    layer l = layer_new(6, 23, 4, 3, listed);
    double logp[6], entropy[6], lse[6], din[24], dweight[92] = {0};
    double *coefficient = uniforms(6, 9, 1);
    b->ops->output(b, logp, entropy, lse, NULL, l.in, l.weight, l.target, l.kept, 6, 23, 4, 0.7);
    b->ops->output_backward(b, din, dweight, coefficient, lse, NULL, l.in, l.weight, l.target,
                            l.kept, 6, 23, 4, 0.7);
    for (size_t i = 0; i < 24; ++i) ASSERT_CLOSE(din[i], slope(b, &l, l.in + i, coefficient), 1e-8);
    for (size_t i = 0; i < 92; ++i)
      ASSERT_CLOSE(dweight[i], slope(b, &l, l.weight + i, coefficient), 1e-8);
    free(coefficient);
    layer_free(&l);
  }
  backend_free(b);
}

/* A row whose logits nobody kept gets no gradient there, whatever is beside it. */
TEST(a_token_that_no_row_kept_has_no_gradient) {
  backend *b = cpu_of(NUMBER_F32, 1);
  layer l = layer_new(3, 40, 4, 4, 0);
  float in[12], weight[160], logp[3], entropy[3], lse[3], din[12], dweight[160] = {0};
  const float coefficient[3] = {1, -2, 0.5f};
  for (size_t i = 0; i < 12; ++i) in[i] = (float)l.in[i];
  for (size_t i = 0; i < 160; ++i) weight[i] = (float)l.weight[i];
  b->ops->output(b, logp, entropy, lse, NULL, in, weight, l.target, l.kept, 3, 40, 4, 1e-3);
  b->ops->output_backward(b, din, dweight, coefficient, lse, NULL, in, weight, l.target, l.kept, 3,
                          40, 4, 1e-3);
  size_t left_out = 0;
  for (size_t a = 0; a < 40; ++a) {
    int kept = 0;
    for (size_t r = 0; r < 3; ++r) kept |= !isinf(l.dist[r * 40 + a]);
    for (size_t i = 0; i < 4 && !kept; ++i) CU_ASSERT_EQUAL(dweight[a * 4 + i], 0);
    left_out += !kept;
  }
  CU_ASSERT(left_out > 5);
  layer_free(&l);
  backend_free(b);
}

/* --- the two parts of a distribution --- */

/* Probability of a part of row r's distribution, kept or not, and the entropy of the distribution
 * over it. */
static double part_of(const layer *l, size_t r, int kept, double *entropy) {
  const double all = sum_of(l, r, 1);
  double mass = 0, sum = 0;
  for (size_t a = 0; a < l->vocabulary; ++a) {
    const int is_kept = !isinf(l->dist[r * l->vocabulary + a]);
    if (is_kept != kept) continue;
    const double x = logit(l, r, a) - all;
    mass += exp(x);
    sum += exp(x) * x;
  }
  *entropy = log(mass) - sum / mass;
  return mass;
}

static void check_parts(const layer *l, size_t r, double mass, double kept, double tail,
                        double tolerance) {
  double entropy;
  ASSERT_CLOSE(mass, part_of(l, r, 1, &entropy), tolerance);
  ASSERT_CLOSE(kept, entropy, 10 * tolerance);
  (void)part_of(l, r, 0, &entropy);
  ASSERT_CLOSE(tail, entropy, 10 * tolerance);
}

static float *singles(const double *x, size_t n) {
  float *y = calloc(n + 1, sizeof *y);
  CU_ASSERT_PTR_NOT_NULL_FATAL(y);
  for (size_t i = 0; i < n; ++i) y[i] = (float)x[i];
  return y;
}

/* Against plain sums over the vocabulary, in both types, as bits and as lists. */
TEST(the_parts_of_a_dist_are_sums_over_their_tokens) {
  backend *wide = cpu_of(NUMBER_F64, 2), *narrow = cpu_of(NUMBER_F32, 1);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
    for (int listed = 0; listed < 2; ++listed) {
      const layer l = layer_new(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], listed);
      double x[3][64];
      float y[3][64];
      float *in = singles(l.in, l.rows * l.k), *weight = singles(l.weight, l.vocabulary * l.k);
      wide->ops->kept_parts(wide, x[0], x[1], x[2], l.in, l.weight, l.kept, l.rows, l.k, 0.7);
      narrow->ops->kept_parts(narrow, y[0], y[1], y[2], in, weight, l.kept, l.rows, l.k, 0.7);
      for (size_t r = 0; r < l.rows; ++r) {
        check_parts(&l, r, x[0][r], x[1][r], x[2][r], 1e-13);
        check_parts(&l, r, (double)y[0][r], (double)y[1][r], (double)y[2][r], 1e-6);
      }
      ASSERT_CLOSE(x[1][l.rows - 1], 0, 1e-14); /* the target alone is kept */
      layer copy = l;
      layer_free(&copy);
      free(in);
      free(weight);
    }
  backend_free(wide);
  backend_free(narrow);
}

/* With every token kept, or with an empty set, the kept distribution is the whole one and nothing
 * is left.
 */
TEST(a_set_that_leaves_nothing_out_has_no_tail) {
  backend *b = cpu_of(NUMBER_F64, 1);
  for (int empty = 0; empty < 2; ++empty) {
    layer l = layer_new(4, 600, 5, 1, 0);
    double whole[3][4], parts[3][4];
    memset(l.kept.set, empty ? 0 : 0xff, 4 * l.kept.shape.words * sizeof *l.kept.set);
    b->ops->output(b, whole[0], whole[1], whole[2], NULL, l.in, l.weight, l.target, no_sets, 4, 600,
                   5, 0.7);
    b->ops->kept_parts(b, parts[0], parts[1], parts[2], l.in, l.weight, l.kept, 4, 5, 0.7);
    CU_ASSERT_EQUAL(memcmp(whole[1], parts[1], sizeof whole[1]), 0);
    for (size_t r = 0; r < 4; ++r) CU_ASSERT(parts[0][r] == 1 && isnan(parts[2][r]));
    layer_free(&l);
  }
  backend_free(b);
}

/* --- draws --- */

TEST(a_draw_tells_what_its_dist_kept) {
  enum { ROWS = 200, MOST = 1500 };
  static const sampling_spec dists[] = {{.temperature = 0.9, .top_k = 5, .top_p = 1},
                                        {.temperature = 1.1, .top_k = 6, .top_p = 0.6}};
  static float z[ROWS * MOST], logq[2][ROWS], cut[2][ROWS];
  static double logp[MOST], dist[MOST];
  static sampling_rank rank[MOST];
  static const size_t vocabularies[] = {50, MOST};
  backend *b = cpu_of(NUMBER_F32, 2);
  for (size_t i = 0; i < 2; ++i)
    for (size_t v = 0; v < 2; ++v) {
      const size_t n = vocabularies[v];
      kept_sets kept;
      int32_t token[2][ROWS];
      uint64_t index[ROWS];
      ASSERT_OK(kept_shape_of(&kept.shape, &dists[i], n, NULL, &err));
      kept.set = calloc(ROWS * kept.shape.words, sizeof *kept.set);
      for (size_t k = 0; k < ROWS * n; ++k) z[k] = (float)(6 * uniform(31, k));
      for (size_t r = 0; r < ROWS; ++r) index[r] = rng_token_index(r, 2);
      const rng_stream stream = rng_stream_at(9, RNG_ROLLOUT, 4);
      b->ops->sample(b, token[0], logq[0], cut[0], z, index, ROWS, n, &dists[i], stream, 0);
      b->ops->sample_kept(b, token[1], logq[1], cut[1], kept, z, index, ROWS, &dists[i], stream);
      CU_ASSERT_EQUAL(memcmp(token[0], token[1], sizeof token[0]), 0);
      CU_ASSERT_EQUAL(memcmp(logq[0], logq[1], sizeof logq[0]), 0);
      CU_ASSERT_EQUAL(memcmp(cut[0], cut[1], sizeof cut[0]), 0);
      size_t wrong = 0;
      for (size_t r = 0; r < ROWS; ++r) {
        const uint32_t *set = kept.set + r * kept.shape.words;
        for (size_t a = 0; a < n; ++a) logp[a] = (double)z[r * n + a] / dists[i].temperature;
        sampling_truncate(&dists[i], logp, n, dist, rank);
        for (size_t a = 0; a < n; ++a) wrong += kept_has(&kept.shape, set, a) != !isinf(dist[a]);
        wrong += !kept_has(&kept.shape, set, (size_t)token[1][r]);
      }
      CU_ASSERT_EQUAL(wrong, 0);
      free(kept.set);
    }
  backend_free(b);
}

TEST(distorted_logits_are_the_addressed_ones) {
  enum { ROWS = 3, N = 41 };
  static const sampling_behaviour behaviours[] = {
      {.noise = 0.3}, {.rounds_to_bfloat16 = 1}, {.noise = 2, .rounds_to_bfloat16 = 1}};
  const uint64_t context[ROWS] = {5, UINT64_C(1) << 63, 5};
  backend *b = cpu_of(NUMBER_F64, 1);
  for (size_t i = 0; i < 3; ++i) {
    double *z = uniforms(ROWS * N, 4, 3), *was = uniforms(ROWS * N, 4, 3);
    size_t moved = 0;
    b->ops->distort(b, z, context, ROWS, N, &behaviours[i], 77);
    for (size_t r = 0; r < ROWS; ++r)
      for (size_t a = 0; a < N; ++a) {
        const rng_stream stream = rng_stream_at(77, RNG_BEHAVIOUR, context[r]);
        double pair[2] = {0, 0};
        if (behaviours[i].noise > 0)
          rng_normal_pair(rng_block(stream, a / 2), behaviours[i].noise, pair);
        double right = was[r * N + a] + pair[a % 2];
        if (behaviours[i].rounds_to_bfloat16) right = sampling_to_bfloat16(right);
        CU_ASSERT_EQUAL(z[r * N + a], right);
        moved += z[r * N + a] != was[r * N + a];
      }
    CU_ASSERT(moved > ROWS * N - 3);
    free(z);
    free(was);
  }
  backend_free(b);
}
