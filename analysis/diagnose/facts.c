/* The facts of a whole token-level log: staleness, lengths, floor and slope of the
 * divergence; the block bootstrap of means over updates; and the table of what each trainer logs.
 */
#include "analysis/diagnose/internal.h"
#include "analysis/import/metric_names.h"
#include "core/random/rng.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Entities of the random streams (rng_stream_at) of the bootstraps, one for each statistic. */
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

/* Input: numbers of kept and dropped responses, and of kept and dropped tokens. Output: mean
 * lengths of kept and of dropped responses, the ratio dropped / kept, and the relative change of
 * the mean length by dropping. */
static void block_lengths(const double *total, double *out) {
  const double kept = total[2] / total[0], dropped = total[3] / total[1];
  const double all = (total[2] + total[3]) / (total[0] + total[1]);
  out[0] = kept;
  out[1] = total[1] > 0 ? dropped : NAN;
  out[2] = out[1] / kept;
  out[3] = kept / all - 1;
}

/* Computes the fraction of dropped responses and the lengths of kept and dropped ones. */
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

/* The x coordinate of an update in regressions: its step (or index) in hundreds. */
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

/* Means over the tokens of one lag. Updates without such tokens are left out. */
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

/* For each update the input of block_parts(): the LINE_SUMS sums of the regression on the lag, then
 * number and sum of y (k3 or exp(|l|)) of the tokens with lag 0. */
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

static block_statistic block_parts;

gl_status divide_by_lag(const double *rows, size_t n, uint64_t entity, interval part[LINE_PARTS],
                        gl_error *err) {
  enum { K = LINE_SUMS + 2 };
  size_t fresh = 0;
  gl_status status =
      block_bootstrap(&(block_sums){rows, n, K, block_parts, LINE_PARTS, entity}, part, err);
  for (size_t u = 0; u < n; ++u) fresh += rows[K * u + LINE_SUMS] > 0;
  for (int k = 0; k < LINE_PARTS && fresh > 0 && fresh < DIAGNOSE_FEWEST; ++k)
    if (k != PART_SLOPE) part[k].low = part[k].high = NAN;
  return status;
}

/* Divides the divergence into a floor at lag 0 and a part that grows with the lag; needs tokens
 * with known lags. */
static gl_status parts_from_lags(diagnosis *d, double *sums, gl_error *err) {
  divergence_facts *to = &d->divergence;
  interval factor[LINE_PARTS];
  line_rows(d, false, sums);
  gl_status status = divide_by_lag(sums, d->n_updates, ENTITY_PARTS, to->part, err);
  line_rows(d, true, sums);
  if (status == GL_OK) status = divide_by_lag(sums, d->n_updates, ENTITY_FACTOR, factor, err);
  if (status != GL_OK) return status;
  to->floor_factor = factor[PART_FLOOR];
  const bool has_0 = to->lag[0].lag == 0;
  to->how = has_0                               ? to->n_lags == 1 ? FLOOR_FRESH : FLOOR_LAG_0
            : isnan(to->part[PART_FLOOR].value) ? FLOOR_UNKNOWN
                                                : FLOOR_LINE;
  to->why = to->how != FLOOR_UNKNOWN ? NULL : "all tokens have the same lag, which is not 0";
  return GL_OK;
}

/* x clamped to [0, most]; NaN remains NaN. */
static double clamped(double x, double most) {
  return x < 0 ? 0 : x > most ? most : x;
}

/* For logs without lags: takes the first update of a run as on-policy, because its data have the
 * learner's version. */
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

/* --- the block bootstrap --- */

/* The block bootstrap, and the statistics that it is used for. */

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

static void block_parts(const double *total, double *out) {
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

/* --- settings of trainers --- */

/* Fields and settings of trainers, as their sources have them. */

/* Looked up at:
 *   NeMo-RL 0.6.0 (7ea279a) nemo_rl/algorithms/grpo.py:3637-3652,
 * examples/configs/grpo_math_1B.yaml prime-rl 0.8.0 (559b447)
 * packages/prime-rl-configs/src/prime_rl/configs/{orchestrator,trainer, rl,monitors}.py,
 * src/prime_rl/trainer/rl/token_export.py verl 0.10.0.dev (1dda039)
 * verl/trainer/config/ppo_trainer.yaml:222-285,
 *     verl/trainer/config/algorithm/rollout_correction.yaml
 *   TRL 1.16.0 trl/experimental/async_grpo/async_grpo_config.py, trl/trainer/grpo_config.py:322-345
 *   AReaL 2.0.0 (cbff54d) areal/api/cli_args.py:1505, 2487-2550, 3241
 *   SkyRL (a956457) skyrl/train/config/config.py:190, 793, 945-956, 1390
 *   miles 0.1 (31f1ca9) miles/utils/arguments.py:119, 672-713, 780, 1082, 1355, 1539, 2096 */
static const trainer_info trainers[] = {
    {.name = "any",
     .title = "a trainer that is not known",
     .log_tokens = "log-probabilities of sampler and learner for every trained token",
     .log_versions = "the version of the weights that generated each token",
     .log_times = "seconds of a step, and of its waiting, generation, training and weight sync"},
    {.name = "gepolab",
     .title = "gepolab's group log",
     .logp = "logp",
     .logq = "logq",
     .versions = "version_gap",
     .rewards = "rewards",
     .log_tokens = "log_groups=\"run.jsonl\" of the Python package",
     .log_versions = "\"version_gap\", shaped as logp",
     .log_times = "\"time_s\" in every record, and the trainer's own log of times",
     .setting = {[CAUSE_MISMATCH] = "sampling.behaviour",
                 [CAUSE_AGE] = "cluster.window",
                 [CAUSE_RATE] = "optimizer.lr",
                 [CAUSE_SMALL_BATCH] = "train.groups",
                 [CAUSE_DISCARD] = "cluster.stale: wait",
                 [CAUSE_GENERATION] = "cluster.samplers",
                 [CAUSE_SYNC] = "cluster.learner.publish_every"}},
    {.name = "nemo_rl",
     .title = "NeMo-RL 0.6.0",
     .logp = "prev_logprobs",
     .logq = "generation_logprobs",
     .rewards = "rewards",
     .dropped = "sample_loss_mask",
     .log_tokens = "train_data_step*.jsonl is written by default (logger.log_dir)",
     .log_versions = "compare with a run with grpo.async_grpo.enabled: false, because "
                     "train_data_step*.jsonl has no versions",
     .log_times = "timing/train/* of the metrics logger (logger.tensorboard_enabled: true), as CSV",
     .setting = {[CAUSE_MISMATCH] = "loss_fn.use_importance_sampling_correction: true, "
                                    "loss_fn.truncated_importance_sampling_type: tis, "
                                    "loss_fn.truncated_importance_sampling_ratio: 2",
                 [CAUSE_AGE] = "grpo.async_grpo.max_trajectory_age_steps",
                 [CAUSE_RATE] = "policy.optimizer.kwargs.lr",
                 [CAUSE_SMALL_BATCH] =
                     "grpo.num_prompts_per_step and policy.train_global_batch_size",
                 [CAUSE_DISCARD] = "grpo.overlong_filtering: false, or a larger "
                                   "policy.max_total_sequence_length",
                 [CAUSE_GENERATION] = "grpo.async_grpo.enabled: true, policy.generation.colocated."
                                      "enabled: false",
                 [CAUSE_SYNC] = "policy.generation.refit_transport",
                 [CAUSE_ENVIRONMENT] = "env.*.num_workers"}},
    {.name = "prime_rl",
     .title = "prime-rl 0.8.0",
     .logp = "trainer_logprobs",
     .logq = "inference_logprobs",
     .log_tokens = "trainer.enable_token_export",
     .log_versions = "off_policy/* of the file monitor (monitors.file)",
     .log_times = "time/* of the file monitor (monitors.file)",
     .setting = {[CAUSE_MISMATCH] = "trainer.loss.dppo_mask_low and dppo_mask_high",
                 [CAUSE_AGE] = "orchestrator.max_off_policy_steps",
                 [CAUSE_RATE] = "trainer.optim.lr",
                 [CAUSE_SMALL_BATCH] = "orchestrator.batch_size",
                 [CAUSE_DISCARD] = "a larger orchestrator.max_off_policy_steps, or a smaller "
                                   "orchestrator.concurrency.max_inflight",
                 [CAUSE_GENERATION] = "deployment.num_infer_gpus",
                 [CAUSE_SYNC] = "weight_broadcast.type: nccl",
                 [CAUSE_ENVIRONMENT] = "orchestrator.concurrency.max_inflight"}},
    {.name = "verl",
     .title = "verl 0.10.0.dev, V1 trainer",
     .log_tokens = "log_groups(\"run.jsonl\") of gepolab's Python package (gepolab.verl)",
     .log_versions = "training/off_policy/* of trainer.logger: [file] (V1 trainer)",
     .log_times = "timing_s/* of trainer.logger: [file]",
     .setting = {[CAUSE_MISMATCH] = "algorithm.rollout_correction.rollout_is: token, "
                                    "rollout_is_threshold: 2.0",
                 [CAUSE_AGE] = "trainer.v1.sampler.max_off_policy_threshold, "
                               "trainer.v1.separate_async.parameter_sync_step",
                 [CAUSE_RATE] = "actor_rollout_ref.actor.optim.lr",
                 [CAUSE_SMALL_BATCH] = "data.train_batch_size and "
                                       "actor_rollout_ref.actor.ppo_mini_batch_size",
                 [CAUSE_DISCARD] = "trainer.v1.sampler.max_off_policy_strategy: wait",
                 [CAUSE_GENERATION] = "trainer.v1.trainer_mode: separate_async, "
                                      "hybrid_rollout.enable_switch: true",
                 [CAUSE_SYNC] = "trainer.v1.separate_async.parameter_sync_step",
                 [CAUSE_ENVIRONMENT] = "actor_rollout_ref.rollout.agent.num_workers"}},
    {.name = "trl",
     .title = "TRL 1.16.0",
     .log_tokens = "log_groups=\"run.jsonl\" of gepolab's Python package",
     .log_versions = "sample/staleness_* of AsyncGRPOTrainer (trainer_state.json)",
     .log_times = "perf/* of AsyncGRPOTrainer (trainer_state.json)",
     .setting = {[CAUSE_MISMATCH] = "vllm_importance_sampling_correction=True, "
                                    "vllm_importance_sampling_mode (GRPOConfig)",
                 [CAUSE_AGE] = "max_staleness (AsyncGRPOConfig)",
                 [CAUSE_RATE] = "learning_rate",
                 [CAUSE_SMALL_BATCH] = "gradient_accumulation_steps",
                 [CAUSE_DISCARD] = "max_staleness larger, or max_inflight_tasks smaller "
                                   "(AsyncGRPOConfig)",
                 [CAUSE_GENERATION] = "more vLLM servers behind vllm_server_base_url, or "
                                      "max_inflight_tasks (AsyncGRPOConfig)",
                 [CAUSE_SYNC] = "weight_sync_steps (AsyncGRPOConfig)",
                 [CAUSE_ENVIRONMENT] = "max_inflight_tasks (AsyncGRPOConfig)"}},
    {.name = "areal",
     .title = "AReaL 2.0.0",
     .log_times = "perf_tracer.enabled: true (sessions-r*.jsonl)",
     .setting = {[CAUSE_MISMATCH] = "actor.use_decoupled_loss: true with actor.rejection_sampling",
                 [CAUSE_AGE] = "rollout.max_head_offpolicyness",
                 [CAUSE_RATE] = "actor.optimizer.lr",
                 [CAUSE_SMALL_BATCH] = "train_dataset.batch_size",
                 [CAUSE_DISCARD] = "rollout.max_head_offpolicyness larger",
                 [CAUSE_GENERATION] = "rollout.max_concurrent_rollouts",
                 [CAUSE_SYNC] = "actor.weight_update_mode"}},
    {.name = "skyrl",
     .title = "SkyRL 0.3",
     .log_tokens = "trainer.dump_data_batch: true",
     .log_versions = "async/staleness_* (trainer.fully_async.enabled: true)",
     .log_times = "timing/*",
     .setting = {[CAUSE_MISMATCH] = "trainer.algorithm.off_policy_correction.tis_ratio_type: token",
                 [CAUSE_AGE] = "trainer.fully_async.max_staleness_steps",
                 [CAUSE_RATE] = "trainer.policy.optimizer_config.lr",
                 [CAUSE_SMALL_BATCH] = "trainer.train_batch_size",
                 [CAUSE_DISCARD] = "trainer.fully_async.max_staleness_steps",
                 [CAUSE_GENERATION] = "trainer.fully_async.num_parallel_generation_workers"}},
    {.name = "miles",
     .title = "miles 0.1",
     .logp = "log_probs",
     .logq = "rollout_log_probs",
     .versions = "weight_versions",
     .rewards = "rewards",
     .log_tokens = "--dump-details DIR",
     .log_versions = "--dump-details DIR (weight_versions)",
     .log_times = "perf/*_time of the dashboard's metrics.jsonl (--dump-details DIR)",
     .setting = {[CAUSE_MISMATCH] = "--use-tis --tis-clip 2",
                 [CAUSE_AGE] = "--max-weight-staleness",
                 [CAUSE_RATE] = "--lr",
                 [CAUSE_SMALL_BATCH] = "--rollout-batch-size",
                 [CAUSE_DISCARD] = "--async-unused-samples-handler retry",
                 [CAUSE_GENERATION] = "--rollout-num-gpus, --async-max-concurrent-samples",
                 [CAUSE_SYNC] = "--update-weights-interval"}},
};
enum { N_TRAINERS = sizeof trainers / sizeof *trainers };

const char *diagnose_trainer_at(size_t i) {
  return i + 1 < N_TRAINERS ? trainers[i + 1].name : NULL;
}

/* NULL is "any trainer", whose settings are described in words. */
static const trainer_info *trainer_find(const char *name) {
  for (size_t i = 0; i < N_TRAINERS; ++i)
    if (strcmp(trainers[i].name, name != NULL ? name : "any") == 0) return &trainers[i];
  return &trainers[0];
}

/* Beginnings of foreign_metric.system, and the trainer in the table above; NULL: its settings are
 * not known. */
static const struct {
  const char *system, *trainer;
} systems[] = {{"TRL ", "trl"},     {"verl ", "verl"},   {"prime-rl ", "prime_rl"},
               {"SkyRL ", "skyrl"}, {"miles ", "miles"}, {"MiMo", NULL}};
enum { N_SYSTEMS = sizeof systems / sizeof *systems };

/* The trainer whose metric names most series have (ties: the first in the table); NULL: none or not
 * known. */
static const char *trainer_of_series(const gathered *from) {
  size_t n[N_SYSTEMS] = {0}, best = 0;
  for (size_t i = 0; from != NULL && i < from->n_series; ++i) {
    const foreign_metric *f = foreign_find(from->series[i].metric);
    for (size_t k = 0; f != NULL && k < N_SYSTEMS; ++k)
      n[k] += strncmp(f->system, systems[k].system, strlen(systems[k].system)) == 0;
  }
  for (size_t k = 1; k < N_SYSTEMS; ++k)
    if (n[k] > n[best]) best = k;
  return n[best] > 0 ? systems[best].trainer : NULL;
}

const trainer_info *trainer_of(const diagnosis *d) {
  if (d->request.trainer != NULL) return trainer_find(d->request.trainer);
  return trainer_find(trainer_of_series(d->gathered));
}
