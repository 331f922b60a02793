/* Moments estimated from two samples of random vectors: estimates g of a gradient, and references h
 * whose expectation is the true gradient. Both are stored as sums over a fixed number of blocks, so
 * memory does not grow with the samples.
 *
 * Let g_1 .. g_n be independent with expectation m, and h_1 .. h_k with expectation t. Products of
 * different vectors are unbiased: <m, m> is estimated by the mean of <g_i, g_j> over i != j, <t, t>
 * by that of <h_i, h_j>, <m, t> by that of <g_i, h_j>. From these follow (names as in the
 * laboratory, paper/methods.md §7.12)
 *
 *   bias^2 = <m, m> - 2 <m, t> + <t, t>          (unbiased; may be negative)
 *   variance = E<g, g> - <m, m>, mse = bias^2 + variance          (unbiased)
 *   cosine = <m, t> / sqrt(<m, m> <t, t>), scaled_bias = sqrt(1 - cosine^2)
 *   scaled_mse = 1 - <m, t>^2 / (<t, t> E<g, g>), snr = <m, m> / variance
 *
 * Standard errors are jackknife estimates that leave out one block of g, or one of h, at a time. On
 * average the jackknife does not understate the error (Efron and Stein 1981). If the bias is zero,
 * its estimate is a degenerate U-statistic and the jackknife overstates. Prefix: gradient_. */
#ifndef GEPOLAB_EXPERIMENTS_LLM_GRADIENT_MOMENTS_H
#define GEPOLAB_EXPERIMENTS_LLM_GRADIENT_MOMENTS_H

#include <stddef.h>

enum { GRADIENT_BLOCKS = 16 };

/* A sample with the same number of vectors in every block. */
typedef struct gradient_sample {
  size_t n, per_block;            /* length of a vector; vectors per block */
  float *sum;                     /* [GRADIENT_BLOCKS * n] */
  double square[GRADIENT_BLOCKS]; /* sum of <g, g> */
} gradient_sample;

/* Makes an empty sample. */
void gradient_sample_init(gradient_sample *s, size_t n, size_t per_block);
void gradient_sample_fini(gradient_sample *s);
/* Empties the sample. */
void gradient_sample_clear(gradient_sample *s);
/* Adds a vector g[n] to a block. Each block must receive per_block of them. */
void gradient_sample_add(gradient_sample *s, size_t block, const double *g);

/* An estimate, its standard error and its interval. NaN if unknown. */
typedef struct gradient_estimate {
  double value, error, low, high;
} gradient_estimate;

typedef enum gradient_number {
  GRADIENT_BIAS,
  GRADIENT_COSINE,
  GRADIENT_SCALED_BIAS,
  GRADIENT_VARIANCE,
  GRADIENT_MSE,
  GRADIENT_SCALED_MSE,
  GRADIENT_SNR,
  GRADIENT_LENGTH, /* length of the true gradient */
  GRADIENT_NUMBERS
} gradient_number;
extern const char *const gradient_number_names[GRADIENT_NUMBERS];

/* Computes all numbers of the estimates g against the references h. Intervals have that confidence
 * (such as 0.95) and use Student's t with GRADIENT_BLOCKS - 1 degrees of freedom. bias and length
 * are square roots: 0 if the estimated square is negative; their intervals are those of the
 * squares. A divisor must be three standard errors above zero; otherwise the sample is too small
 * and the result is NaN. A cosine above 1 by chance is set to 1. */
void gradient_moments(gradient_estimate out[GRADIENT_NUMBERS], const gradient_sample *g,
                      const gradient_sample *h, double confidence);

#endif
