/* The Kolmogorov-Smirnov distance of two samples (paper/methods.md, section 13.4). */
#ifndef GEPOLAB_CORE_BASE_KS_H
#define GEPOLAB_CORE_BASE_KS_H

#include <stddef.h>
#include <stdint.h>

/* A sample of real numbers, as values or as a histogram; both arrays are borrowed. */
typedef struct ks_sample {
  const double *value;   /* [n], ascending and without NaN; NULL: the i-th value is i */
  const uint64_t *count; /* [n] how often each value occurs; NULL: once each */
  size_t n;
} ks_sample;

/* sup |F - G| over the empirical distribution functions, in [0, 1]; NaN if a sample is empty. */
double ks_distance(ks_sample f, ks_sample g);

#endif
