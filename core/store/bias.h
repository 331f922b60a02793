/* The store's table `bias`: what `gepolab bias` measured, a record per algorithm, group size and
 * pair of policies. */
#ifndef GEPOLAB_CORE_STORE_BIAS_H
#define GEPOLAB_CORE_STORE_BIAS_H

#include "core/store/store.h"

/* NaN where a number does not apply: group_size of the population limit, cosine of a zero vector.
 */
typedef struct bias_record {
  const char *algorithm, *method;
  double group_size, kl_exact, kl_exact_qp, staleness, groups;
  double bias, cosine, scaled_bias, variance, mse, scaled_mse, snr;
  double iw_mean, iw_variance, aw_variance, ess;
} bias_record;

/* How the measurements of a study came about; it changes no export of them. */
typedef struct bias_making {
  const run_provenance *provenance; /* NULL: not known */
  const char *finished;             /* when, as of runs; NULL: not known */
  double wall_s;                    /* NaN: not known */
} bias_making;

/* Replaces the records of that study by records[n], in this order, atomically. */
gl_status store_put_bias(store *s, const char *study, const bias_record *records, size_t n,
                         const bias_making *making, gl_error *err);

#endif
