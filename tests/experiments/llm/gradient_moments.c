/* Moments of gradients from sums over blocks, against the same numbers from all pairs of vectors.
 */
#include "experiments/llm/bias.h"

#include "core/random/rng.h"
#include "tests/support/suite.h"

#include <gsl/gsl_cdf.h>
#include <stdlib.h>

SUITE("llm: moments of gradients");

enum { N = 7, EACH_G = 3, EACH_H = 2, G = EACH_G * GRADIENT_BLOCKS, H = EACH_H * GRADIENT_BLOCKS };

typedef struct vectors {
  double v[G][N];
} vectors;

/* Normal vectors about a mean; values that single precision holds exactly in sums. */
static void fill(vectors *to, size_t count, double mean, double spread, uint64_t entity) {
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < N; ++k) {
      const rng_words w = rng_block(rng_stream_at(3, RNG_TEST, entity), i * N + k);
      to->v[i][k] = round(1024 * (mean + spread * rng_normal(w))) / 1024;
    }
}

static void sample(gradient_sample *s, const vectors *from, size_t each) {
  gradient_sample_init(s, N, each);
  for (size_t i = 0; i < each * GRADIENT_BLOCKS; ++i)
    gradient_sample_add(s, i % GRADIENT_BLOCKS, from->v[i]);
}

static double product(const double *a, const double *b) {
  double sum = 0;
  for (size_t k = 0; k < N; ++k) sum += a[k] * b[k];
  return sum;
}

/* The mean product over pairs of different vectors (a and b the same), or over all pairs; vectors
 * of a block that is left out do not count. */
static double mean_product(const vectors *a, size_t n, size_t out_a, const vectors *b, size_t m,
                           size_t out_b) {
  double sum = 0, pairs = 0;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < m; ++j) {
      if (i % GRADIENT_BLOCKS == out_a || j % GRADIENT_BLOCKS == out_b || (a == b && i == j))
        continue;
      sum += product(a->v[i], b->v[j]);
      ++pairs;
    }
  return sum / pairs;
}

static double power(const vectors *a, size_t out) {
  double sum = 0, count = 0;
  for (size_t i = 0; i < G; ++i)
    if (i % GRADIENT_BLOCKS != out) sum += product(a->v[i], a->v[i]), ++count;
  return sum / count;
}

static double number(gradient_number which, const vectors *g, const vectors *h, size_t out_g,
                     size_t out_h) {
  const double mm = mean_product(g, G, out_g, g, G, out_g),
               mt = mean_product(g, G, out_g, h, H, out_h),
               tt = mean_product(h, H, out_h, h, H, out_h), gg = power(g, out_g);
  switch (which) {
  case GRADIENT_BIAS:
    return mm - 2 * mt + tt; /* squared */
  case GRADIENT_COSINE:
    return mt / sqrt(mm * tt);
  case GRADIENT_SCALED_BIAS:
    return sqrt(1 - mt * mt / (mm * tt));
  case GRADIENT_VARIANCE:
    return gg - mm;
  case GRADIENT_MSE:
    return gg - 2 * mt + tt;
  case GRADIENT_SCALED_MSE:
    return 1 - mt * mt / (tt * gg);
  case GRADIENT_SNR:
    return mm / (gg - mm);
  case GRADIENT_LENGTH:
    return tt; /* squared */
  case GRADIENT_NUMBERS:
    break;
  }
  return NAN;
}

static double jackknife(gradient_number which, const vectors *g, const vectors *h) {
  double variance = 0;
  for (int of_h = 0; of_h < 2; ++of_h) {
    double left[GRADIENT_BLOCKS], mean = 0;
    for (size_t b = 0; b < GRADIENT_BLOCKS; ++b) {
      left[b] = number(which, g, h, of_h ? SIZE_MAX : b, of_h ? b : SIZE_MAX);
      mean += left[b] / GRADIENT_BLOCKS;
    }
    for (size_t b = 0; b < GRADIENT_BLOCKS; ++b)
      variance += (GRADIENT_BLOCKS - 1.0) / GRADIENT_BLOCKS * (left[b] - mean) * (left[b] - mean);
  }
  return sqrt(variance);
}

TEST(numbers_are_those_of_all_pairs) {
  static vectors g, h;
  gradient_sample of_g, of_h;
  gradient_estimate e[GRADIENT_NUMBERS];
  fill(&g, G, 1.5, 1, 0);
  fill(&h, H, 1, 1, 1);
  for (size_t i = 0; i < G; ++i) g.v[i][0] = 0; /* not only longer: turned, too */
  sample(&of_g, &g, EACH_G);
  sample(&of_h, &h, EACH_H);
  gradient_moments(e, &of_g, &of_h, 0.95);
  const double t = gsl_cdf_tdist_Pinv(0.975, GRADIENT_BLOCKS - 1);
  for (gradient_number k = 0; k < GRADIENT_NUMBERS; ++k) {
    const double value = number(k, &g, &h, SIZE_MAX, SIZE_MAX);
    const int rooted = k == GRADIENT_BIAS || k == GRADIENT_LENGTH;
    ASSERT_CLOSE(e[k].value, rooted ? sqrt(value) : value, 1e-9);
    CU_ASSERT(e[k].low < e[k].value && e[k].value < e[k].high);
    if (k == GRADIENT_SCALED_BIAS) continue; /* its interval is the cosine's */
    const double error = jackknife(k, &g, &h);
    ASSERT_CLOSE(e[k].error, rooted ? error / (2 * sqrt(value)) : error, 1e-9);
    const double high = value + t * error;
    ASSERT_CLOSE(e[k].high,
                 rooted                     ? sqrt(high)
                 : k == GRADIENT_COSINE     ? fmin(1, high)
                 : k == GRADIENT_SCALED_MSE ? fmin(1, high)
                                            : high,
                 1e-9);
  }
  ASSERT_CLOSE(e[GRADIENT_SCALED_BIAS].low, sqrt(1 - pow(e[GRADIENT_COSINE].high, 2)), 1e-9);
  ASSERT_CLOSE(e[GRADIENT_SCALED_BIAS].high, sqrt(1 - pow(e[GRADIENT_COSINE].low, 2)), 1e-9);
  gradient_sample_clear(&of_g);
  CU_ASSERT(of_g.sum[0] == 0 && of_g.square[3] == 0);
  gradient_sample_fini(&of_g);
  gradient_sample_fini(&of_h);
}

/* Gradients without a mean: whatever is divided by their length is not told, and no bias is found
 * below zero. */
TEST(what_is_lost_in_noise_is_not_told) {
  static vectors g, h;
  gradient_sample of_g, of_h;
  gradient_estimate e[GRADIENT_NUMBERS];
  size_t told = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    fill(&g, G, 0, 1, 10 + i);
    fill(&h, H, 0, 1, 40 + i);
    sample(&of_g, &g, EACH_G);
    sample(&of_h, &h, EACH_H);
    gradient_moments(e, &of_g, &of_h, 0.95);
    told += isnan(e[GRADIENT_COSINE].value) ? 0 : 1;
    CU_ASSERT(e[GRADIENT_BIAS].value >= 0 && e[GRADIENT_BIAS].low >= 0);
    CU_ASSERT(isnan(e[GRADIENT_COSINE].value) == isnan(e[GRADIENT_SCALED_BIAS].high));
    ASSERT_CLOSE(e[GRADIENT_VARIANCE].value, N, 0.35);
    gradient_sample_fini(&of_g);
    gradient_sample_fini(&of_h);
  }
  CU_ASSERT(told <= 2);
}
