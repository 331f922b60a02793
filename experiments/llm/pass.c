/* pass@k with its standard error and interval. */
#include "experiments/llm/pass.h"

#include "analysis/statistics.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static const double z = 1.959963984540054; /* normal quantile at 97.5 % */

double llm_pass_problem(size_t n, size_t c, size_t k) {
  assert(c <= n && k >= 1 && k <= n);
  if (n - c < k) return 1;
  double none = 1; /* the product over i of 1 - k / i is C(n - c, k) / C(n, k) */
  for (size_t i = n - c + 1; i <= n; ++i) none *= 1 - (double)k / (double)i;
  return 1 - none;
}

void llm_pass_wilson(double p, size_t n, double *low, double *high) {
  double m = (double)n, centre = p + z * z / (2 * m);
  double half = z * sqrt(p * (1 - p) / m + z * z / (4 * m * m));
  *low = fmax(0, (centre - half) / (1 + z * z / m));
  *high = fmin(1, (centre + half) / (1 + z * z / m));
}

static gl_status bootstrap(llm_pass *out, const double *value, size_t n, rng_stream stream,
                           gl_error *err) {
  double *mean = calloc(BOOTSTRAP_REPLICATES, sizeof *mean);
  if (mean == NULL) return gl_fail_memory(err, "a bootstrap");
  for (size_t r = 0; r < BOOTSTRAP_REPLICATES; ++r) {
    for (size_t i = 0; i < n; ++i) {
      rng_words w = rng_block(stream, r * n + i);
      mean[r] += value[(size_t)(rng_u01_53(w.v[0], w.v[1]) * (double)n)] / (double)n;
    }
  }
  sample_sort(mean, BOOTSTRAP_REPLICATES);
  out->low = sample_quantile(mean, BOOTSTRAP_REPLICATES, 0.025);
  out->high = sample_quantile(mean, BOOTSTRAP_REPLICATES, 0.975);
  out->interval = "bootstrap";
  free(mean);
  return GL_OK;
}

gl_status llm_pass_at(llm_pass *out, const size_t *correct, size_t n_problems, size_t n, size_t k,
                      rng_stream stream, gl_error *err) {
  double *value = calloc(n_problems, sizeof *value);
  if (value == NULL) return gl_fail_memory(err, "an evaluation");
  *out = (llm_pass){.k = k, .standard_error = NAN, .interval = "wilson"};
  double squares = 0;
  int between = 0;
  for (size_t i = 0; i < n_problems; ++i) {
    value[i] = llm_pass_problem(n, correct[i], k);
    out->value += value[i] / (double)n_problems;
    between |= value[i] > 0 && value[i] < 1;
  }
  for (size_t i = 0; i < n_problems; ++i) squares += pow(value[i] - out->value, 2);
  if (n_problems > 1)
    out->standard_error = sqrt(squares / (double)(n_problems - 1) / (double)n_problems);
  llm_pass_wilson(out->value, n_problems, &out->low, &out->high);
  gl_status status = between ? bootstrap(out, value, n_problems, stream, err) : GL_OK;
  free(value);
  return status;
}
