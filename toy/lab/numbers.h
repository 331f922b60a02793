/* The numbers that the exact laboratory reports of an estimator. */
#ifndef GEPOLAB_TOY_LAB_NUMBERS_H
#define GEPOLAB_TOY_LAB_NUMBERS_H

/* What is reported; a field that has no value (the cosine of a zero vector) is NaN. */
typedef struct lab_numbers {
  double bias, cosine, scaled_bias; /* scaled_bias = sqrt(1 - cosine^2) */
  double variance, mse, scaled_mse; /* tr Cov; bias^2 + variance; min_c E|c g - J'|^2 / |J'|^2 */
  double snr;                       /* |E g|^2 / tr Cov */
  double iw_mean, iw_variance;      /* of the algorithm's own ratio of one response of a group */
  double aw_variance;               /* of advantage times ratio */
  double ess;                       /* E (sum w)^2 / (G sum w^2) */
} lab_numbers;
enum { LAB_NUMBERS = sizeof(lab_numbers) / sizeof(double) };
extern const char *const lab_number_names[LAB_NUMBERS];

#endif
