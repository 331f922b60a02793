/* The block bootstrap, and the statistics that it is used for. */
#include "analysis/diagnose/internal.h"
#include "core/random/rng.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void block_ratio(const double *total, double *out) {
  out[0] = total[1] > 0 ? total[0] / total[1] : NAN;
}

void block_deviation(const double *total, double *out) {
  const double mean = total[1] / total[0];
  out[0] = total[0] > 0 ? sqrt(fmax(total[2] / total[0] - mean * mean, 0)) : NAN;
}

void block_line(const double *total, double *out) {
  const double n = total[0], spread = n * total[2] - total[1] * total[1];
  out[0] = out[1] = NAN;
  if (!(n > 0) || !(spread > 1e-9 * n * total[2])) return; /* x does not vary */
  out[1] = (n * total[4] - total[1] * total[3]) / spread;
  if (fabs(out[1]) * sqrt(spread) < 1e-12 * fabs(total[3])) out[1] = 0; /* rounding */
  out[0] = (total[3] - out[1] * total[1]) / n;
}

void block_parts(const double *total, double *out) {
  double line[2];
  block_line(total, line);
  const double mean = total[3] / total[0];
  const double fresh = total[5] > 0 ? total[6] / total[5] : line[0];
  const double floor = isnan(fresh) ? NAN : fmin(fmax(fresh, 0), mean);
  out[PART_FLOOR] = floor;
  out[PART_SLOPE] = line[1];
  out[PART_AGE] = mean - floor;
  out[PART_MISMATCH_FRACTION] = mean > 0 ? floor / mean : NAN;
  out[PART_AGE_FRACTION] = mean > 0 ? 1 - floor / mean : NAN;
}

void block_tokens(const double *total, double *out) {
  const double n = total[0], mean = total[1] / n;
  for (size_t j = 0; j < TOKEN_MEANS; ++j) out[j] = NAN;
  if (!(n > 0)) return;
  out[0] = -mean;
  out[1] = total[3] / n;
  out[2] = sqrt(fmax(total[2] / n - mean * mean, 0));
  for (size_t j = 3; j < TOKEN_MEANS; ++j) out[j] = total[j + 1] / n;
}

static void add_rows(double *total, const double *rows, size_t n, size_t k) {
  for (size_t i = 0; i < n; ++i)
    for (size_t c = 0; c < k; ++c) total[c] += rows[i * k + c];
}

/* Adds `length` consecutive rows from `from`, beginning again at the first row after the last. */
static void add_block(double *total, const double *sums, size_t n, size_t k, size_t from,
                      size_t length) {
  const size_t first = length < n - from ? length : n - from;
  add_rows(total, sums + from * k, first, k);
  add_rows(total, sums, length - first, k);
}

/* Totals of one replicate: blocks until there are n rows; the last block is shortened. */
static void block_resample(double *total, const block_sums *of, size_t length, rng_stream stream,
                           uint64_t index) {
  const size_t n = of->n;
  for (size_t at = 0; at < n; at += length, ++index) {
    const uint64_t word = rng_block(stream, index / 4).v[index % 4];
    add_block(total, of->sums, n, of->k, (size_t)(word * (uint64_t)n >> 32),
              length < n - at ? length : n - at);
  }
}

gl_status block_bootstrap(const block_sums *of, interval *out, gl_error *err) {
  double total[BLOCK_MOST] = {0}, value[BLOCK_MOST];
  const size_t n = of->n, m = of->m;
  assert(of->k <= BLOCK_MOST && m <= BLOCK_MOST);
  add_rows(total, of->sums, n, of->k);
  of->statistic(total, value);
  for (size_t j = 0; j < m; ++j) out[j] = (interval){value[j], NAN, NAN};
  if (n < DIAGNOSE_FEWEST) return GL_OK;
  const size_t length = (size_t)ceil(cbrt((double)n)), blocks = (n + length - 1) / length;
  const rng_stream stream = rng_stream_at(BOOTSTRAP_SEED, RNG_BOOTSTRAP, of->entity);
  arena work = {0};
  double *replicate = ARENA_GRID(&work, double, m, BOOTSTRAP_REPLICATES);
  gl_status status = arena_check(&work, "a bootstrap", err);
  for (size_t r = 0; r < BOOTSTRAP_REPLICATES && status == GL_OK; ++r) {
    memset(total, 0, sizeof total);
    block_resample(total, of, length, stream, (uint64_t)r * blocks);
    of->statistic(total, value);
    for (size_t j = 0; j < m; ++j) replicate[j * BOOTSTRAP_REPLICATES + r] = value[j];
  }
  for (size_t j = 0; j < m && status == GL_OK; ++j) {
    double *values = replicate + j * BOOTSTRAP_REPLICATES;
    const size_t kept = sample_sort(values, BOOTSTRAP_REPLICATES);
    if (kept < BOOTSTRAP_REPLICATES / 2) continue; /* mostly undefined: no interval */
    out[j].low = sample_quantile(values, kept, 0.025);
    out[j].high = sample_quantile(values, kept, 0.975);
  }
  arena_fini(&work);
  return status;
}
