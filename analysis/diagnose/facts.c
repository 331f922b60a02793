/* The facts of a whole token-level log: staleness, lengths, floor and slope of the divergence. */
#include "analysis/diagnose/internal.h"

#include <math.h>
#include <string.h>

/* Entities of bootstraps: a statistic each. */
enum {
  ENTITY_TOKENS = 100,
  ENTITY_PARTS,
  ENTITY_FACTOR,
  ENTITY_STALENESS,
  ENTITY_TREND = ENTITY_STALENESS + STALENESS_KINDS,
  ENTITY_DROPPED,
  ENTITY_LENGTHS,
  ENTITY_LAG /* + lag */
};

gl_status facts_mean(const double *value, size_t n, size_t stride, uint64_t entity, interval *out,
                     gl_error *err) {
  arena work = {0};
  double *sums = ARENA_GRID(&work, double, n, 2);
  gl_status status = arena_check(&work, "means over updates", err);
  size_t kept = 0;
  for (size_t u = 0; u < n && status == GL_OK; ++u) {
    if (isnan(value[u * stride])) continue;
    sums[2 * kept] = value[u * stride];
    sums[2 * kept++ + 1] = 1;
  }
  if (status == GL_OK)
    status = block_bootstrap(&(block_sums){sums, kept, 2, block_ratio, 1, entity}, out, err);
  arena_fini(&work);
  return status;
}

/* --- staleness --- */

static void block_dropped(const double *total, double *out) {
  out[0] = total[0] + total[1] > 0 ? total[1] / (total[0] + total[1]) : NAN;
}

/* Kept and dropped responses and their tokens to the mean lengths, their ratio, and the relative
 * change of the mean length by dropping. */
static void block_lengths(const double *total, double *out) {
  const double kept = total[2] / total[0], dropped = total[3] / total[1];
  const double all = (total[2] + total[3]) / (total[0] + total[1]);
  out[0] = kept;
  out[1] = total[1] > 0 ? dropped : NAN;
  out[2] = out[1] / kept;
  out[3] = kept / all - 1;
}

static gl_status dropping_of(diagnosis *d, double *sums, gl_error *err) {
  staleness_facts *to = &d->staleness;
  interval of[4];
  size_t n = 0;
  bool any = false;
  for (size_t u = 0; u < d->n_updates; ++u) {
    const update_facts *f = &d->update[u];
    if (isnan(f->dropped)) continue;
    sums[4 * n] = f->responses, sums[4 * n + 1] = f->dropped;
    sums[4 * n + 2] = f->tokens, sums[4 * n++ + 3] = f->dropped_tokens;
    any = any || f->dropped > 0;
  }
  if (n == 0 || (!any && trainer_of(d)->dropped == NULL)) return GL_OK; /* not known */
  gl_status status = block_bootstrap(&(block_sums){sums, n, 4, block_dropped, 1, ENTITY_DROPPED},
                                     &to->dropped_fraction, err);
  if (status == GL_OK)
    status = block_bootstrap(&(block_sums){sums, n, 4, block_lengths, 4, ENTITY_LENGTHS}, of, err);
  if (status != GL_OK) return status;
  to->kept_length = of[0], to->dropped_length = of[1];
  to->length_ratio = of[2], to->shift = of[3];
  return GL_OK;
}

/* The x of an update for trends, in hundreds of updates. */
static double hundreds(const diagnosis *d, size_t u) {
  return (isnan(d->update[u].step) ? (double)u : d->update[u].step) / 100;
}

static gl_status staleness_trend(diagnosis *d, double *sums, gl_error *err) {
  interval line[2];
  size_t n = 0;
  for (size_t u = 0; u < d->n_updates; ++u) {
    const double y = d->update[u].staleness[STALENESS_OLDEST];
    if (isnan(y)) continue;
    double *row = sums + LINE_SUMS * n++;
    memset(row, 0, LINE_SUMS * sizeof *row);
    line_add(row, hundreds(d, u), y, 1);
  }
  const gl_status status =
      block_bootstrap(&(block_sums){sums, n, LINE_SUMS, block_line, 2, ENTITY_TREND}, line, err);
  if (status == GL_OK) d->staleness.trend = line[1];
  return status;
}

static gl_status lengths_by_lag(diagnosis *d, double *sums, gl_error *err) {
  interval line[2];
  for (size_t u = 0; u < d->n_updates; ++u)
    memcpy(sums + LINE_SUMS * u, d->update[u].length_line, sizeof d->update[u].length_line);
  const gl_status status = block_bootstrap(
      &(block_sums){sums, d->n_updates, LINE_SUMS, block_line, 2, ENTITY_LENGTHS}, line, err);
  if (status == GL_OK) d->staleness.length_by_lag = line[1];
  return status;
}

static gl_status staleness_of(diagnosis *d, double *sums, gl_error *err) {
  staleness_facts *to = &d->staleness;
  gl_status status = GL_OK;
  to->most = NAN;
  for (size_t u = 0; u < d->n_updates; ++u)
    to->most = fmax(to->most, d->update[u].staleness[STALENESS_MOST]);
  for (int k = 0; k < STALENESS_KINDS && status == GL_OK; ++k)
    status =
        facts_mean(&d->update[0].staleness[k], d->n_updates, sizeof *d->update / sizeof(double),
                   ENTITY_STALENESS + (uint64_t)k, &to->mean[k], err);
  if (status == GL_OK) status = staleness_trend(d, sums, err);
  if (status == GL_OK) status = lengths_by_lag(d, sums, err);
  return status == GL_OK ? dropping_of(d, sums, err) : status;
}

/* --- divergence --- */

static void copy_sums(double *to, const token_sums *from) {
  to[0] = from->n, to[1] = from->l, to[2] = from->l2, to[3] = from->k3;
  to[4] = from->difference, to[5] = from->far, to[6] = from->factor;
}

static gl_status means_of(const double *sums, size_t n, uint64_t entity, lag_facts *out,
                          gl_error *err) {
  interval of[TOKEN_MEANS];
  const gl_status status = block_bootstrap(
      &(block_sums){sums, n, TOKEN_SUMS, block_tokens, TOKEN_MEANS, entity}, of, err);
  if (status != GL_OK) return status;
  out->k1 = of[0], out->k3 = of[1], out->spread = of[2];
  out->difference = of[3], out->far = of[4], out->factor = of[5];
  out->tokens = 0;
  for (size_t u = 0; u < n; ++u) out->tokens += sums[u * TOKEN_SUMS];
  return GL_OK;
}

/* One lag: updates without a token of it are left out. */
static gl_status lag_of(diagnosis *d, size_t lag, double *sums, lag_facts *out, gl_error *err) {
  size_t n = 0;
  for (size_t c = 0; c < d->n_cells; ++c)
    if (d->cell[c].lag == lag) copy_sums(sums + TOKEN_SUMS * n++, &d->cell[c].sums);
  out->lag = lag;
  return means_of(sums, n, ENTITY_LAG + lag, out, err);
}

static gl_status lags_of(diagnosis *d, double *sums, gl_error *err) {
  divergence_facts *to = &d->divergence;
  bool has[DIAGNOSE_MOST_LAG + 1] = {false};
  gl_status status = GL_OK;
  for (size_t c = 0; c < d->n_cells; ++c) has[d->cell[c].lag] = true;
  for (size_t lag = 0; lag <= DIAGNOSE_MOST_LAG && status == GL_OK; ++lag)
    if (has[lag]) status = lag_of(d, lag, sums, &to->lag[to->n_lags++], err);
  return status;
}

/* The sums of a line of the updates, and n and y of tokens with lag 0. */
static void line_rows(const diagnosis *d, bool of_factor, double *sums) {
  enum { K = LINE_SUMS + 2 };
  memset(sums, 0, d->n_updates * K * sizeof *sums);
  for (size_t u = 0; u < d->n_updates; ++u)
    memcpy(sums + K * u, of_factor ? d->update[u].factor_line : d->update[u].lag_line,
           LINE_SUMS * sizeof *sums);
  for (size_t c = 0; c < d->n_cells; ++c) {
    const lag_cell *cell = &d->cell[c];
    if (cell->lag != 0) continue;
    sums[K * cell->update + LINE_SUMS] = cell->sums.n;
    sums[K * cell->update + LINE_SUMS + 1] = of_factor ? cell->sums.factor : cell->sums.k3;
  }
}

static gl_status parts_from_lags(diagnosis *d, double *sums, gl_error *err) {
  divergence_facts *to = &d->divergence;
  interval factor[LINE_PARTS];
  line_rows(d, false, sums);
  gl_status status = block_bootstrap(
      &(block_sums){sums, d->n_updates, LINE_SUMS + 2, block_parts, LINE_PARTS, ENTITY_PARTS},
      to->part, err);
  line_rows(d, true, sums);
  if (status == GL_OK)
    status = block_bootstrap(
        &(block_sums){sums, d->n_updates, LINE_SUMS + 2, block_parts, LINE_PARTS, ENTITY_FACTOR},
        factor, err);
  if (status != GL_OK) return status;
  to->floor_factor = factor[PART_FLOOR];
  const bool has_0 = to->lag[0].lag == 0;
  to->how = has_0                               ? to->n_lags == 1 ? FLOOR_FRESH : FLOOR_LAG_0
            : isnan(to->part[PART_FLOOR].value) ? FLOOR_UNKNOWN
                                                : FLOOR_LINE;
  to->why = to->how != FLOOR_UNKNOWN ? NULL : "all tokens have the same lag, which is not 0";
  return GL_OK;
}

/* x clamped [0, most]; NaN remains NaN. */
static double clamped(double x, double most) {
  return x < 0 ? 0 : x > most ? most : x;
}

/* Without lags: the data of a run's first update are of the learner's own version. */
static void parts_from_first(diagnosis *d) {
  divergence_facts *to = &d->divergence;
  const update_facts *first = &d->update[0];
  const double floor = first->all.k3 / first->all.n, error = first->k3_error;
  const interval all = to->all.k3;
  to->why = "the log has no versions and does not begin with the run's first update";
  if (!(first->step <= 1) || !(first->all.n > 0) || d->n_updates < 2) return;
  to->how = FLOOR_FIRST;
  to->why = NULL;
  const interval f = {floor, clamped(floor - 1.96 * error, INFINITY), floor + 1.96 * error};
  const interval m = {clamped(floor / all.value, 1), clamped(f.low / all.high, 1),
                      clamped(f.high / all.low, 1)};
  to->part[PART_FLOOR] = f;
  const double factor = first->all.factor / first->all.n;
  to->floor_factor =
      (interval){factor, factor - 1.96 * first->factor_error, factor + 1.96 * first->factor_error};
  to->part[PART_AGE] =
      (interval){clamped(all.value - f.value, INFINITY), clamped(all.low - f.high, INFINITY),
                 clamped(all.high - f.low, INFINITY)};
  to->part[PART_MISMATCH_FRACTION] = m;
  to->part[PART_AGE_FRACTION] = (interval){1 - m.value, 1 - m.high, 1 - m.low};
}

static gl_status divergence_of(diagnosis *d, double *sums, gl_error *err) {
  divergence_facts *to = &d->divergence;
  for (size_t u = 0; u < d->n_updates; ++u) {
    copy_sums(sums + TOKEN_SUMS * u, &d->update[u].all);
    to->unknown_lag += d->update[u].all.n - d->update[u].lag_line[0];
  }
  to->not_finite = d->not_finite;
  gl_status status = means_of(sums, d->n_updates, ENTITY_TOKENS, &to->all, err);
  if (status == GL_OK) status = lags_of(d, sums, err);
  if (status != GL_OK || to->all.tokens == 0) return status;
  if (to->n_lags > 0) return parts_from_lags(d, sums, err);
  parts_from_first(d);
  return GL_OK;
}

gl_status facts_of_tokens(diagnosis *d, gl_error *err) {
  const interval unknown = {NAN, NAN, NAN};
  arena work = {0};
  double *sums = ARENA_GRID(&work, double, d->n_updates, BLOCK_MOST);
  d->divergence =
      (divergence_facts){.all = {0, 0, unknown, unknown, unknown, unknown, unknown, unknown},
                         .lag = ARENA_ARRAY(&d->memory, lag_facts, DIAGNOSE_MOST_LAG + 1),
                         .floor_factor = unknown};
  d->staleness = (staleness_facts){.trend = unknown,
                                   .most = NAN,
                                   .dropped_fraction = unknown,
                                   .kept_length = unknown,
                                   .dropped_length = unknown,
                                   .length_ratio = unknown,
                                   .shift = unknown,
                                   .length_by_lag = unknown};
  for (int k = 0; k < LINE_PARTS; ++k) d->divergence.part[k] = unknown;
  for (int k = 0; k < STALENESS_KINDS; ++k) d->staleness.mean[k] = unknown;
  gl_status status = arena_check(&work, "the facts of a log", err);
  if (status == GL_OK) status = arena_check(&d->memory, "the facts of a log", err);
  if (status == GL_OK && d->n_updates > 0) status = staleness_of(d, sums, err);
  if (status == GL_OK && d->n_updates > 0) status = divergence_of(d, sums, err);
  arena_fini(&work);
  return status;
}
