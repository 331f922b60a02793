/* Times counted in classes of 1.1 % each, for quantiles of any number of times in little memory.
 * Prefix: tally_. Seconds. */
#ifndef GEPOLAB_SIM_TALLY_H
#define GEPOLAB_SIM_TALLY_H

#include <stddef.h>
#include <stdint.h>

enum { TALLY_PER_OCTAVE = 64, TALLY_OCTAVES = 96, TALLY_LOWEST = -40 };

typedef struct tally {
  uint64_t n;
  double sum, least, most;
  uint64_t count[TALLY_PER_OCTAVE * TALLY_OCTAVES]; /* by log2, from 2^TALLY_LOWEST */
} tally;

/* Adds a time that is not negative. */
void tally_add(tally *t, double seconds);
/* The smallest time that a share p in (0, 1] of them does not exceed, within 0.6 %, and exact where
 * all are equal; NaN without any. */
double tally_quantile(const tally *t, double p);

#endif
