/* Estimates moments of gradients from sums over blocks, with jackknife errors. */
#include "experiments/llm/gradient_moments.h"

#include "experiments/base/memory.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = GRADIENT_BLOCKS };
/* A squared length serves as divisor only if it exceeds zero by this many standard errors. */
static const double clear = 3;

const char *const gradient_number_names[GRADIENT_NUMBERS] = {
    "bias", "cosine", "scaled_bias", "variance", "mse", "scaled_mse", "snr", "gradient_length"};

/* --- samples --- */

void gradient_sample_init(gradient_sample *s, size_t n, size_t per_block) {
  *s = (gradient_sample){.n = n, .per_block = per_block};
  s->sum = must_alloc(n, BLOCKS * sizeof *s->sum, "the sums of gradients");
}

void gradient_sample_fini(gradient_sample *s) {
  free(s->sum);
  *s = (gradient_sample){0};
}

void gradient_sample_clear(gradient_sample *s) {
  memset(s->sum, 0, s->n * BLOCKS * sizeof *s->sum);
  memset(s->square, 0, sizeof s->square);
}

void gradient_sample_add(gradient_sample *s, size_t block, const double *g) {
  assert(block < BLOCKS);
  float *sum = s->sum + block * s->n;
  double square = 0;
  for (size_t i = 0; i < s->n; ++i) {
    sum[i] += (float)g[i];
    square += g[i] * g[i];
  }
  s->square[block] += square;
}

/* --- products --- */

/* Inner products of the blocks' sums: g with g, g with h, h with h. */
typedef struct products {
  double gg[BLOCKS][BLOCKS], gh[BLOCKS][BLOCKS], hh[BLOCKS][BLOCKS];
} products;

static double dot_float(const float *a, const float *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += (double)a[i] * (double)b[i];
  return sum;
}

static void multiply(products *p, const gradient_sample *g, const gradient_sample *h) {
  const size_t n = g->n;
  for (size_t k = 0; k < BLOCKS; ++k)
    for (size_t l = 0; l < BLOCKS; ++l) {
      p->gh[k][l] = dot_float(g->sum + k * n, h->sum + l * n, n);
      if (l < k) continue;
      p->gg[k][l] = p->gg[l][k] = dot_float(g->sum + k * n, g->sum + l * n, n);
      p->hh[k][l] = p->hh[l][k] = dot_float(h->sum + k * n, h->sum + l * n, n);
    }
}

/* The sum over pairs of blocks, without row `row` and column `column`. */
static double sum_without(double (*of)[BLOCKS], size_t row, size_t column) {
  double sum = 0;
  for (size_t k = 0; k < BLOCKS; ++k)
    for (size_t l = 0; l < BLOCKS; ++l)
      if (k != row && l != column) sum += of[k][l];
  return sum;
}

static double squares_without(const gradient_sample *s, size_t block) {
  double sum = 0;
  for (size_t k = 0; k < BLOCKS; ++k)
    if (k != block) sum += s->square[k];
  return sum;
}

static double blocks_without(size_t block) {
  return block < BLOCKS ? BLOCKS - 1 : BLOCKS;
}

/* --- numbers --- */

/* Quantities estimated with a jackknife error. They are squares, not roots: squares are unbiased,
 * and small ones are closer to a normal distribution. */
typedef enum part {
  BIAS_SQUARED,
  COSINE,
  VARIANCE,
  MSE,
  SCALED_MSE,
  SNR,
  LENGTH_SQUARED, /* <t, t>, with the notation of gradient_moments.h */
  MEAN_SQUARED,   /* <m, m> */
  PARTS
} part;

/* The quantities from all blocks except block without_g of g and block without_h of h; BLOCKS: none
 * is left out. */
static void parts_without(double out[PARTS], products *p, const gradient_sample *g,
                          const gradient_sample *h, size_t without_g, size_t without_h) {
  const double n = (double)g->per_block * blocks_without(without_g);
  const double k = (double)h->per_block * blocks_without(without_h);
  const double gg = squares_without(g, without_g), hh = squares_without(h, without_h);
  const double mean2 = (sum_without(p->gg, without_g, without_g) - gg) / (n * (n - 1));
  const double truth2 = (sum_without(p->hh, without_h, without_h) - hh) / (k * (k - 1));
  const double cross = sum_without(p->gh, without_g, without_h) / (n * k), power = gg / n;
  out[BIAS_SQUARED] = mean2 - 2 * cross + truth2;
  out[VARIANCE] = power - mean2;
  out[MSE] = power - 2 * cross + truth2;
  out[COSINE] = cross / sqrt(mean2 * truth2);
  out[SCALED_MSE] = 1 - cross * cross / (truth2 * power);
  out[SNR] = mean2 / (power - mean2);
  out[LENGTH_SQUARED] = truth2;
  out[MEAN_SQUARED] = mean2;
}

/* Adds the jackknife variances from leaving out each block of g (of h if of_h) to variance[PARTS].
 */
static void add_jackknife(double variance[PARTS], products *p, const gradient_sample *g,
                          const gradient_sample *h, int of_h) {
  double left[BLOCKS][PARTS];
  for (size_t b = 0; b < BLOCKS; ++b)
    parts_without(left[b], p, g, h, of_h ? BLOCKS : b, of_h ? b : BLOCKS);
  for (size_t i = 0; i < PARTS; ++i) {
    double mean = 0, sum = 0;
    for (size_t b = 0; b < BLOCKS; ++b) mean += left[b][i] / BLOCKS;
    for (size_t b = 0; b < BLOCKS; ++b) sum += (left[b][i] - mean) * (left[b][i] - mean);
    variance[i] += (BLOCKS - 1.0) / BLOCKS * sum;
  }
}

static const gradient_estimate unknown = {NAN, NAN, NAN, NAN};

static gradient_estimate clamp_estimate(double value, double error, double reach, double low,
                                        double high) {
  if (!isfinite(value) || !isfinite(error)) return unknown;
  return (gradient_estimate){fmin(fmax(value, low), high), error,
                             fmin(fmax(value - reach * error, low), high),
                             fmin(fmax(value + reach * error, low), high)};
}

/* Converts the estimate of a square to that of its root, with the error of the linearised root. */
static gradient_estimate root(double square, double error, double reach) {
  gradient_estimate e = clamp_estimate(square, error, reach, 0, INFINITY);
  if (isnan(e.value)) return e;
  e.value = sqrt(e.value);
  e.low = sqrt(e.low);
  e.high = sqrt(e.high);
  e.error = e.value > 0 ? error / (2 * e.value) : NAN;
  return e;
}

/* sqrt(1 - cosine^2) decreases with |cosine|, so its interval is the cosine's with the ends
 * exchanged. */
static gradient_estimate scaled_bias(const gradient_estimate *cosine) {
  if (isnan(cosine->value)) return unknown;
  const double c = cosine->value, value = sqrt(1 - c * c);
  const double most = fmax(fabs(cosine->low), fabs(cosine->high));
  const double least =
      cosine->low * cosine->high <= 0 ? 0 : fmin(fabs(cosine->low), fabs(cosine->high));
  return (gradient_estimate){value, value > 0 ? fabs(c) * cosine->error / value : NAN,
                             sqrt(1 - most * most), sqrt(1 - least * least)};
}

void gradient_moments(gradient_estimate out[GRADIENT_NUMBERS], const gradient_sample *g,
                      const gradient_sample *h, double confidence) {
  double value[PARTS], error[PARTS] = {0};
  products *p = MUST_ARRAY(products, 1, "the products of gradients");
  assert(g->n == h->n);
  multiply(p, g, h);
  parts_without(value, p, g, h, BLOCKS, BLOCKS);
  add_jackknife(error, p, g, h, 0);
  add_jackknife(error, p, g, h, 1);
  for (size_t i = 0; i < PARTS; ++i) error[i] = sqrt(error[i]);
  free(p);
  const double t = gsl_cdf_tdist_Pinv((1 + confidence) / 2, BLOCKS - 1);
  const int has_truth = value[LENGTH_SQUARED] > clear * error[LENGTH_SQUARED];
  const int has_both = has_truth && value[MEAN_SQUARED] > clear * error[MEAN_SQUARED];
  out[GRADIENT_BIAS] = root(value[BIAS_SQUARED], error[BIAS_SQUARED], t);
  out[GRADIENT_COSINE] =
      has_both ? clamp_estimate(value[COSINE], error[COSINE], t, -1, 1) : unknown;
  out[GRADIENT_SCALED_BIAS] = scaled_bias(&out[GRADIENT_COSINE]);
  out[GRADIENT_VARIANCE] = clamp_estimate(value[VARIANCE], error[VARIANCE], t, 0, INFINITY);
  out[GRADIENT_MSE] = clamp_estimate(value[MSE], error[MSE], t, 0, INFINITY);
  out[GRADIENT_SCALED_MSE] =
      has_truth ? clamp_estimate(value[SCALED_MSE], error[SCALED_MSE], t, 0, 1) : unknown;
  out[GRADIENT_SNR] = clamp_estimate(value[SNR], error[SNR], t, 0, INFINITY);
  out[GRADIENT_LENGTH] = root(value[LENGTH_SQUARED], error[LENGTH_SQUARED], t);
}
