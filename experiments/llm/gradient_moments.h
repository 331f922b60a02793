/* Moments estimated from two samples of random vectors: estimates g of a gradient, and
 * references h whose expectation is the true gradient. Both are kept as sums over a fixed number of
 * blocks, so that memory does not grow with the samples.
 *
 * With independent g_1 .. g_n of expectation m and h_1 .. h_k of expectation t, the products of
 * different vectors are unbiased: <m, m> is the mean of <g_i, g_j> over i != j, <t, t> that of
 * <h_i, h_j>, <m, t> that of <g_i, h_j>. Of those come (names as in the laboratory,
 * paper/methods.md §7.12)
 *
 *   bias^2 = <m, m> - 2 <m, t> + <t, t>          (unbiased; may be negative)
 *   variance = E<g, g> - <m, m>, mse = bias^2 + variance          (unbiased)
 *   cosine = <m, t> / sqrt(<m, m> <t, t>), scaled_bias = sqrt(1 - cosine^2)
 *   scaled_mse = 1 - <m, t>^2 / (<t, t> E<g, g>), snr = <m, m> / variance
 *
 * Standard errors are jackknife estimates that leave out one block of g, or one of h, at a time.
 * The jackknife does not understate on average (Efron and Stein 1981); where the bias is zero, so
 * that its estimate is a degenerate U-statistic, it overstates. Prefix: gradient_. */
#ifndef GEPOLAB_EXPERIMENTS_LLM_GRADIENT_MOMENTS_H
#define GEPOLAB_EXPERIMENTS_LLM_GRADIENT_MOMENTS_H

#include <stddef.h>

enum { GRADIENT_BLOCKS = 16 };

/* A sample: the same number of vectors in every block. */
typedef struct gradient_sample {
  size_t n, per_block;            /* numbers of a vector; vectors of a block */
  float *sum;                     /* [GRADIENT_BLOCKS * n] */
  double square[GRADIENT_BLOCKS]; /* sum of <g, g> */
} gradient_sample;

/* An empty sample. */
void gradient_sample_init(gradient_sample *s, size_t n, size_t per_block);
void gradient_sample_fini(gradient_sample *s);
/* Forgets what was added. */
void gradient_sample_clear(gradient_sample *s);
/* Adds a vector g[n] to a block; per_block of them are to be added to each. */
void gradient_sample_add(gradient_sample *s, size_t block, const double *g);

/* An estimate, its standard error and its interval. An unknown one is NaN. */
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
  GRADIENT_LENGTH, /* of the true gradient */
  GRADIENT_NUMBERS
} gradient_number;
extern const char *const gradient_number_names[GRADIENT_NUMBERS];

/* The numbers of estimates g against references h, with intervals of that confidence (0.95) from
 * Student's t with GRADIENT_BLOCKS - 1 degrees of freedom. bias and length are square roots: of an
 * estimate below zero they are 0, and their intervals are those of the squares. What a number
 * divides by must be three standard errors above zero, else the sample is too small for it and it
 * is NaN; a cosine beyond 1 by chance is 1. */
void gradient_moments(gradient_estimate out[GRADIENT_NUMBERS], const gradient_sample *g,
                      const gradient_sample *h, double confidence);

#endif
