/* Statistics for a caller in C: interquartile mean, correlation and survival curve. */
#include "analysis/statistics.h"
#include "library/internal.h"

#include <stdlib.h>

/* Limits sample sizes only to avoid overflow. */
static const int64_t MOST_VALUES = (int64_t)1 << 40;

static gepolab_status check_size(int64_t n, gepolab_error *err) {
  if (n >= 0 && n <= MOST_VALUES) return GEPOLAB_OK;
  return library_fail(err, GL_EINPUT, "a sample of %lld values", (long long)n);
}

gepolab_status gepolab_iqm(const double *value, int64_t n, uint64_t seed, gepolab_interval *out,
                           gepolab_error *err) {
  gl_error own = {0};
  interval made;
  const gepolab_status right = check_size(n, err);
  if (right != GEPOLAB_OK) return right;
  const size_t size = (size_t)n;
  if (iqm_bootstrap(value, &size, 1, rng_stream_at(seed, RNG_BOOTSTRAP, 0), &made, &own) != GL_OK)
    return library_failed(err, &own);
  *out = (gepolab_interval){made.value, made.low, made.high};
  return GEPOLAB_OK;
}

gepolab_status gepolab_spearman(const double *x, const double *y, int64_t n, gepolab_interval *out,
                                gepolab_error *err) {
  gl_error own = {0};
  correlation made;
  const gepolab_status right = check_size(n, err);
  if (right != GEPOLAB_OK) return right;
  if (spearman(x, y, (size_t)n, rng_stream_at(1, RNG_BOOTSTRAP, 0), &made, &own) != GL_OK)
    return library_failed(err, &own);
  *out = (gepolab_interval){made.fisher.value, made.fisher.low, made.fisher.high};
  return GEPOLAB_OK;
}

gepolab_status gepolab_survival(const double *time, const uint8_t *observed, int64_t n,
                                gepolab_curve *out, gepolab_error *err) {
  gl_error own = {0};
  size_t steps = 0;
  const gepolab_status right = check_size(n, err);
  if (right != GEPOLAB_OK) return right;
  if (out->size != sizeof *out)
    return library_fail(err, GL_EINPUT,
                        "curve.size is not sizeof(gepolab_curve): begin with "
                        "GEPOLAB_INIT");
  survival_step *curve = malloc(((size_t)n + 1) * sizeof *curve);
  if (curve == NULL) return library_fail(err, GL_ENOMEM, "out of memory for a survival curve");
  const gl_status status = survival_curve(time, observed, (size_t)n, curve, &steps, &own);
  for (size_t k = 0; k < steps && status == GL_OK; ++k) {
    out->at[k] = curve[k].time;
    out->survival[k] = curve[k].survival;
    out->error[k] = curve[k].error;
  }
  out->n = (int64_t)steps;
  free(curve);
  return status == GL_OK ? GEPOLAB_OK : library_failed(err, &own);
}
