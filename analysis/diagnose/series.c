/* Logs with a number for each step: finds the meaning of each series, the parts of a step, and how
 * divergence grows with staleness. */
#include "analysis/diagnose/internal.h"
#include "core/base/array.h"
#include "core/base/staleness_counters.h"

#include <math.h>
#include <string.h>

/* Logged at steps with a transfer alone, whose seconds are in the next step (async_grpo_trainer.py:
 * perf/step_s ends before the transfer). */
#define TRL_SYNC "perf/weight_sync_s"
/* Counts from the beginning of the run. */
#define VERL_DROPPED "fully_async/count/dropped_stale_samples"

/* Names of series by trainer, at their source:
 *   TRL 1.16.0 trl/experimental/async_grpo/async_grpo_trainer.py, trl/trainer/grpo_trainer.py
 *   prime-rl 0.8.0 src/prime_rl/trainer/rl/train.py, src/prime_rl/orchestrator/orchestrator.py
 *   verl 0.10.0.dev (1dda039) verl/trainer/ppo/v1/trainer_base.py,
 * verl/trainer/ppo/metric_utils.py, verl/trainer/ppo/rollout_corr_helper.py NeMo-RL 0.6.0
 * nemo_rl/algorithms/grpo.py; SkyRL 0.3 skyrl/train/fully_async_trainer.py; miles 0.1.0
 * miles/utils/train_metric_utils.py:28, miles/ray/rollout/metrics.py:142 A name matches a whole
 * series name, or its end after a slash. The first match in this table is used for roles other than
 * staleness. */
static const struct {
  const char *name;
  series_role role;
  const char *definition;
} names[] = {
    {"perf/step_s", SERIES_STEP_TIME, NULL},
    {"time/step", SERIES_STEP_TIME, NULL},
    {"timing_s/step", SERIES_STEP_TIME, NULL},
    {"timing/train/total_step_time", SERIES_STEP_TIME, NULL},
    {"timing/step", SERIES_STEP_TIME, NULL},
    {"step_time", SERIES_STEP_TIME, NULL}, /* TRL; perf/step_time: miles and slime */
    {"perf/rollout_wait_s", SERIES_WAIT, NULL},
    {"perf/train_wait_time", SERIES_WAIT, NULL},
    {"time/wait_for_batch", SERIES_WAIT, NULL},
    {"timing/train/exposed_generation", SERIES_WAIT, NULL},
    {"timing/wait_for_generation_buffer", SERIES_WAIT, NULL},
    {"timing_s/wait_for_enough_samples", SERIES_WAIT, NULL},
    {"timing_s/gen", SERIES_GENERATE, NULL},
    {"timing/train/generation", SERIES_GENERATE, NULL},
    {"timing/generate", SERIES_GENERATE, NULL},
    {"timing_s/outer_gen", SERIES_GENERATE, NULL},
    {"perf/rollout_time", SERIES_GENERATE, NULL},
    {"perf/fwd_bwd_s", SERIES_TRAIN, NULL},
    {"perf/train_time", SERIES_TRAIN, NULL},
    {"time/forward_backward", SERIES_TRAIN, NULL},
    {"timing_s/update_actor", SERIES_TRAIN, NULL},
    {"timing/train/policy_training", SERIES_TRAIN, NULL},
    {"timing/train_critic_and_policy", SERIES_TRAIN, NULL},
    {"timing/policy_train", SERIES_TRAIN, NULL},
    {"timing_s/trainer_ops", SERIES_TRAIN, NULL},
    {"timing_s/old_log_prob", SERIES_TRAIN_PART, NULL},
    {"timing_s/ref", SERIES_TRAIN_PART, NULL},
    {"timing_s/values", SERIES_TRAIN_PART, NULL},
    {"timing_s/adv", SERIES_TRAIN_PART, NULL},
    {"timing_s/update_critic", SERIES_TRAIN_PART, NULL},
    {"timing/train/policy_and_reference_logprobs", SERIES_TRAIN_PART, NULL},
    {"timing/train/logprob_inference_prep", SERIES_TRAIN_PART, NULL},
    {"timing/train/training_prep", SERIES_TRAIN_PART, NULL},
    {"timing_s/testing", SERIES_ASIDE, NULL},
    {"timing_s/save_checkpoint", SERIES_ASIDE, NULL},
    {"timing/train/checkpointing", SERIES_ASIDE, NULL},
    {TRL_SYNC, SERIES_SYNC, NULL},
    {"time/broadcast_weights", SERIES_SYNC, NULL},
    {"perf/update_weights_time", SERIES_SYNC, NULL},
    {"timing_s/update_weights", SERIES_SYNC, NULL},
    {"timing_s/param_sync", SERIES_SYNC, NULL},
    {"timing/train/weight_sync", SERIES_SYNC, NULL},
    {"timing/sync_weights", SERIES_SYNC, NULL},
    {"timing_s/reward", SERIES_ENVIRONMENT, NULL},
    {"timing/train/reward_calculation", SERIES_ENVIRONMENT, NULL},
    {"sample/staleness_mean", SERIES_STALENESS, COUNTER_TRL(COUNTER_NAME)},
    {"off_policy/mean", SERIES_STALENESS, COUNTER_PRIME_RL(COUNTER_NAME)},
    {"off_policy/in_flight/mean", SERIES_STALENESS, COUNTER_PRIME_RL_FLIGHT(COUNTER_NAME)},
    {"off_policy/in_queue/mean", SERIES_STALENESS, COUNTER_PRIME_RL_QUEUE(COUNTER_NAME)},
    {"off_policy/trajectory_staleness/mean", SERIES_STALENESS,
     COUNTER_VERL_STALENESS(COUNTER_NAME)},
    {"off_policy/trajectory_staleness_worst/mean", SERIES_STALENESS,
     COUNTER_VERL_WORST(COUNTER_NAME)},
    {"off_policy/trajectory_spans/mean", SERIES_STALENESS, COUNTER_VERL_SPANS(COUNTER_NAME)},
    {"async/staleness_mean", SERIES_STALENESS, COUNTER_SKYRL(COUNTER_NAME)},
    {"stats/lag_mean", SERIES_STALENESS, COUNTER_PIPELINERL(COUNTER_NAME)},
    {"policy_staleness", SERIES_STALENESS, COUNTER_MEGATRON(COUNTER_NAME)},
    {"kv_cache_staleness", SERIES_STALENESS, COUNTER_MEGATRON_CACHE(COUNTER_NAME)},
    {"partial/avg_staleness", SERIES_STALENESS, COUNTER_MIMO(COUNTER_NAME)},
    {"staleness", SERIES_STALENESS, COUNTER_GEPOLAB(COUNTER_NAME)},
    {"sample/staleness_max", SERIES_STALENESS_MOST, NULL},
    {"off_policy/max", SERIES_STALENESS_MOST, NULL},
    {"off_policy/trajectory_staleness_worst/max", SERIES_STALENESS_MOST, NULL},
    {"async/staleness_max", SERIES_STALENESS_MOST, NULL},
    {"staleness_max", SERIES_STALENESS_MOST, NULL},
    {"sample/dropped_stale_total", SERIES_DROPPED, NULL},
    {"off_policy/dropped", SERIES_DROPPED, NULL},
    {"off_policy/evicted_samples", SERIES_DROPPED, NULL},
    {VERL_DROPPED, SERIES_DROPPED, NULL},
    {"async/num_groups_dropped", SERIES_DROPPED, NULL},
    {"async/keep_rate", SERIES_KEEP_RATE, NULL},
    {"mismatch_kl/all/mean", SERIES_KL, NULL},
    {"rollout_corr/k3_kl", SERIES_KL, NULL},
    {"gen_kl_error", SERIES_KL, NULL}, /* NeMo-RL: exp(l) - l - 1 */
    {"kl_k3", SERIES_KL, NULL},
    {"train/train_rollout_kl", SERIES_KL, NULL},
    {"training/rollout_probs_diff_mean", SERIES_DIFFERENCE, NULL},
    {"sampling/sampling_logp_difference/mean", SERIES_LOG_DIFFERENCE, NULL},
    {"rollout_corr/rollout_is_eff_sample_size", SERIES_ESS, NULL},
    {"ess", SERIES_ESS, NULL},
};
enum { N_NAMES = sizeof names / sizeof *names };

static bool series_ends_with(const char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0 && (n == m || text[n - m - 1] == '/');
}

bool series_is_seconds(const char *name) {
  for (size_t k = 0; k < N_NAMES; ++k)
    if (series_ends_with(name, names[k].name)) return names[k].role < SERIES_STALENESS;
  return false;
}

/* verl's fully asynchronous trainer before V1 logs the time that it waits for samples as "gen"
 * (fully_async_trainer.py; detach_utils.py:358 divides it by the step to an idle_ratio). V1: see
 * find_waiting_of_verl(). */
static bool logs_wait_as_gen(const gathered *from) {
  for (size_t i = 0; i < from->n_series; ++i)
    if (strncmp(from->series[i].metric, "fully_async/", 12) == 0) return true;
  return false;
}

static gl_status refuse_second_run(const diagnosis *d, const gathered_series *s, gl_error *err) {
  for (size_t j = 0; j < d->n_series; ++j) {
    const gathered_series *other = d->series[j].from;
    if (strcmp(other->metric, s->metric) == 0 && other != s)
      return gl_fail(err, GL_EINPUT,
                     "%s and %s: two runs, '%s' and '%s', have the series %s; give diagnose the "
                     "logs of one run",
                     other->file, s->file, other->run, s->run, s->metric);
  }
  return GL_OK;
}

static bool has_positive(const gathered_series *s) {
  for (size_t i = 0; i < s->n; ++i)
    if (s->value[i] > 0) return true;
  return false;
}

/* verl's timing_s/gen is the time of generation if the trainer is synchronous. If it is
 * asynchronous, it is the time that the trainer waits for the replay buffer
 * (verl/trainer/ppo/v1/trainer_base.py:541,
 * verl/experimental/fully_async_policy/detach_utils.py:358). Stale trajectories show that it is
 * asynchronous. */
static void find_waiting_of_verl(diagnosis *d) {
  bool is_asynchronous = false;
  for (size_t i = 0; i < d->n_series; ++i)
    if (series_ends_with(d->series[i].from->metric, "off_policy/trajectory_staleness_worst/mean"))
      is_asynchronous = is_asynchronous || has_positive(d->series[i].from);
  for (size_t i = 0; i < d->n_series && is_asynchronous; ++i)
    if (series_ends_with(d->series[i].from->metric, "timing_s/gen"))
      d->series[i].role = SERIES_WAIT;
}

/* --- series made from others, at the steps of the step times --- */

/* The value at a step; NaN if there is none. Steps ascend, and so do the calls with one *at. */
static double series_value_at(const gathered_series *s, double step, size_t *at) {
  while (*at < s->n && s->step[*at] < step) ++*at;
  return *at < s->n && s->step[*at] == step ? s->value[*at] : NAN;
}

/* to [n] += the values of s at these steps; `missing` where it has none, NaN where it is below 0.
 */
static void add_values_at(double *to, const gathered_series *s, const double *step, size_t n,
                          double missing) {
  for (size_t i = 0, at = 0; i < n; ++i) {
    const double value = series_value_at(s, step[i], &at);
    to[i] += isnan(value) ? missing : value < 0 ? NAN : value;
  }
}

/* Replaces the first series of a role by one that has a value at each of these steps: its own, or
 * `missing` where it has none. SERIES_TRAIN also gets the values of all SERIES_TRAIN_PART. Nothing
 * happens if the log has no such series. */
static gl_status complete_series(diagnosis *d, series_role role, double missing,
                                 const gathered_series *steps, gl_error *err) {
  role_series *to = (role_series *)series_of(d, role);
  if (to == NULL) return GL_OK;
  const size_t n = steps->n;
  gathered_series *made = ARENA_ARRAY(&d->memory, gathered_series, 1);
  double *value = ARENA_ARRAY(&d->memory, double, n + 1);
  char name[256];
  size_t more = 0;
  gl_status status = arena_check(&d->memory, "the series of a log", err);
  if (status != GL_OK) return status;
  add_values_at(value, to->from, steps->step, n, missing);
  for (size_t i = 0; i < d->n_series && role == SERIES_TRAIN; ++i)
    if (d->series[i].role == SERIES_TRAIN_PART) {
      add_values_at(value, d->series[i].from, steps->step, n, 0);
      ++more;
    }
  *made = *to->from;
  made->line = strcmp(made->file, steps->file) == 0 ? steps->line : NULL;
  made->step = steps->step;
  made->value = value;
  made->n = n;
  snprintf(name, sizeof name, "%s and %zu more", made->metric, more);
  if (more > 0) made->metric = arena_text(&d->memory, name);
  to->from = made;
  return arena_check(&d->memory, "the series of a log", err);
}

/* Moves the values of a completed series to the next step. */
static void move_to_next(double *value, size_t n) {
  for (size_t i = n; i-- > 1;) value[i] = value[i - 1];
  if (n > 0) value[0] = 0;
}

/* Takes evaluations and checkpoints out of the step, where the step is long enough to contain them
 * beside its other parts: some trainers count them in, others do not. */
static gl_status take_aside_out(diagnosis *d, gl_error *err) {
  static const series_role inside[] = {SERIES_WAIT, SERIES_GENERATE, SERIES_TRAIN, SERIES_SYNC,
                                       SERIES_ENVIRONMENT};
  if (series_of(d, SERIES_ASIDE) == NULL) return GL_OK;
  const gathered_series *steps = series_of(d, SERIES_STEP_TIME)->from;
  double *aside = ARENA_ARRAY(&d->memory, double, steps->n + 1);
  double *parts = ARENA_ARRAY(&d->memory, double, steps->n + 1);
  gl_status status = arena_check(&d->memory, "the series of a log", err);
  if (status == GL_OK) status = complete_series(d, SERIES_STEP_TIME, NAN, steps, err);
  if (status != GL_OK) return status;
  for (size_t i = 0; i < d->n_series; ++i)
    if (d->series[i].role == SERIES_ASIDE)
      add_values_at(aside, d->series[i].from, steps->step, steps->n, 0);
  for (size_t k = 0; k < sizeof inside / sizeof *inside; ++k)
    if (series_of(d, inside[k]) != NULL)
      add_values_at(parts, series_of(d, inside[k])->from, steps->step, steps->n, 0);
  double *value = series_of(d, SERIES_STEP_TIME)->from->value;
  for (size_t i = 0; i < steps->n; ++i)
    if (value[i] >= aside[i] + parts[i]) value[i] -= aside[i];
  return GL_OK;
}

/* Seconds of the learner are a sum, transfers and rewards are 0 where a step has none, and the step
 * has neither evaluations nor checkpoints. A dropped response counts at the step that dropped it.
 */
static gl_status complete_times(diagnosis *d, gl_error *err) {
  const role_series *time = series_of(d, SERIES_STEP_TIME);
  if (time == NULL) return GL_OK;
  const gathered_series *steps = time->from;
  const role_series *sync = series_of(d, SERIES_SYNC), *dropped = series_of(d, SERIES_DROPPED);
  const bool is_next = sync != NULL && series_ends_with(sync->from->metric, TRL_SYNC);
  const bool is_total = dropped != NULL && series_ends_with(dropped->from->metric, VERL_DROPPED);
  gl_status status = complete_series(d, SERIES_TRAIN, NAN, steps, err);
  if (status == GL_OK) status = complete_series(d, SERIES_SYNC, 0, steps, err);
  if (status == GL_OK && is_next) move_to_next(sync->from->value, steps->n);
  if (status == GL_OK) status = complete_series(d, SERIES_ENVIRONMENT, 0, steps, err);
  if (status == GL_OK) status = complete_series(d, SERIES_DROPPED, is_total ? NAN : 0, steps, err);
  for (size_t i = steps->n; status == GL_OK && is_total && i-- > 1;)
    dropped->from->value[i] -= dropped->from->value[i - 1];
  return status == GL_OK ? take_aside_out(d, err) : status;
}

gl_status diagnosis_add_series(diagnosis *d, const gathered *from, gl_error *err) {
  const bool waits = logs_wait_as_gen(from);
  for (size_t k = 0; k < N_NAMES; ++k)
    for (size_t i = 0; i < from->n_series; ++i) {
      const gathered_series *s = &from->series[i];
      if (!series_ends_with(s->metric, names[k].name) || s->n == 0) continue;
      const gl_status status = refuse_second_run(d, s, err);
      if (status != GL_OK) return status;
      role_series *to = ARRAY_ADD(d->series, d->n_series);
      if (to == NULL) return gl_fail_memory(err, "the series of a log");
      *to = (role_series){names[k].role, s, names[k].definition};
      if (waits && strcmp(names[k].name, "timing_s/gen") == 0) to->role = SERIES_WAIT;
    }
  find_waiting_of_verl(d);
  d->n_all_series += from->n_series;
  d->gathered = from;
  return complete_times(d, err);
}

const role_series *series_of(const diagnosis *d, series_role role) {
  for (size_t i = 0; i < d->n_series; ++i)
    if (d->series[i].role == role) return &d->series[i];
  return NULL;
}

const gathered_series *diagnosis_series(const diagnosis *d, diagnose_series_kind kind) {
  static const series_role roles[] = {[DIAGNOSE_STEP_SECONDS] = SERIES_STEP_TIME,
                                      [DIAGNOSE_GENERATION_SECONDS] = SERIES_GENERATE,
                                      [DIAGNOSE_TRAINER_SECONDS] = SERIES_TRAIN,
                                      [DIAGNOSE_SYNC_SECONDS] = SERIES_SYNC,
                                      [DIAGNOSE_WAIT_SECONDS] = SERIES_WAIT,
                                      [DIAGNOSE_ENVIRONMENT_SECONDS] = SERIES_ENVIRONMENT,
                                      [DIAGNOSE_STALENESS_MEAN] = SERIES_STALENESS,
                                      [DIAGNOSE_STALENESS_MOST] = SERIES_STALENESS_MOST};
  const role_series *s = series_of(d, roles[kind]);
  return s != NULL ? s->from : NULL;
}

/* --- time --- */

const char *const speed_part_names[SPEED_PARTS] = {"generation", "trainer", "weight sync",
                                                   "environment"};
const series_role speed_part_roles[SPEED_PARTS] = {SERIES_GENERATE, SERIES_TRAIN, SERIES_SYNC,
                                                   SERIES_ENVIRONMENT};

/* Columns of a step's seconds. */
enum { TIME_STEP, TIME_WAIT, TIME_PARTS, TIME_COLUMNS = TIME_PARTS + SPEED_PARTS };

/* Members of speed_facts that are ratios of the columns' sums. */
enum {
  OVERLAP_LIMIT,
  OVERLAP_GAIN,
  WAIT_FRACTION,
  SYNC_FRACTION,
  ENVIRONMENT_FRACTION,
  GENERATION_FRACTION,
  SPEED_RATIOS
};
/* The ratios of a block of steps, from total[TIME_COLUMNS], the sums of its rows. */
static void block_ratios(const double *total, double *out) {
  const double *part = total + TIME_PARTS, step = total[TIME_STEP];
  double sum = 0, longest = 0;
  for (int k = 0; k < SPEED_PARTS; ++k) sum += part[k], longest = fmax(longest, part[k]);
  out[OVERLAP_LIMIT] = sum / longest;
  out[OVERLAP_GAIN] = sum / step;
  out[WAIT_FRACTION] = total[TIME_WAIT] / step;
  out[SYNC_FRACTION] = part[SPEED_SYNC] / step;
  out[ENVIRONMENT_FRACTION] = part[SPEED_ENVIRONMENT] / step;
  out[GENERATION_FRACTION] = part[SPEED_GENERATION] / step;
}

/* Fills the row of a step; parts that are not logged follow from the others. Returns false if the
 * step lacks a value that the log has elsewhere, or has one below 0. */
static bool time_row(const diagnosis *d, double step, size_t at[SPEED_PARTS + 1], double *row) {
  const role_series *wait = series_of(d, SERIES_WAIT);
  row[TIME_WAIT] = wait != NULL ? series_value_at(wait->from, step, &at[SPEED_PARTS]) : 0;
  double rest = row[TIME_STEP] - row[TIME_WAIT];
  bool is_complete = row[TIME_WAIT] >= 0;
  for (int k = 0; k < SPEED_PARTS; ++k) {
    const role_series *s = series_of(d, speed_part_roles[k]);
    row[TIME_PARTS + k] = s != NULL ? series_value_at(s->from, step, &at[k]) : 0;
    is_complete = is_complete && row[TIME_PARTS + k] >= 0;
    if (k != SPEED_GENERATION) rest -= row[TIME_PARTS + k];
  }
  const bool is_serial_log = wait == NULL;
  if (series_of(d, SERIES_TRAIN) == NULL &&
      (!is_serial_log || series_of(d, SERIES_GENERATE) != NULL)) /* the rest of the step */
    row[TIME_PARTS + SPEED_TRAINER] =
        fmax(rest - (is_serial_log ? row[TIME_PARTS + SPEED_GENERATION] : 0), 0);
  if (series_of(d, SERIES_GENERATE) == NULL && !is_serial_log)
    row[TIME_PARTS + SPEED_GENERATION] = row[TIME_STEP]; /* a trainer that waits consumes one batch
                                         a step, so generating a batch takes a step */
  return is_complete;
}

static size_t time_rows(const diagnosis *d, double *rows) {
  const gathered_series *steps = series_of(d, SERIES_STEP_TIME)->from;
  size_t at[SPEED_PARTS + 1] = {0}, n = 0;
  for (size_t i = 0; i < steps->n; ++i) {
    double *row = rows + TIME_COLUMNS * n;
    row[TIME_STEP] = steps->value[i];
    if (isfinite(row[TIME_STEP]) && row[TIME_STEP] > 0 && time_row(d, steps->step[i], at, row)) ++n;
  }
  return n;
}

/* Whether generation is hidden behind training: it is not logged, and the trainer hardly waits, so
 * that generating a batch takes at most a step, and how much less is unknown. */
static bool is_generation_hidden(const diagnosis *d, const double *rows, size_t n) {
  double wait = 0, step = 0;
  for (size_t i = 0; i < n; ++i) {
    wait += rows[TIME_COLUMNS * i + TIME_WAIT];
    step += rows[TIME_COLUMNS * i + TIME_STEP];
  }
  return series_of(d, SERIES_GENERATE) == NULL && series_of(d, SERIES_WAIT) != NULL &&
         wait < 0.05 * step;
}

static gl_status means_of_time(speed_facts *to, const double *rows, size_t n, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t c = 0; c < TIME_COLUMNS && status == GL_OK; ++c) {
    interval *out = c == TIME_STEP   ? &to->step
                    : c == TIME_WAIT ? &to->wait
                                     : &to->part[c - TIME_PARTS];
    status = facts_mean(rows + c, n, TIME_COLUMNS, 200 + c, out, err);
  }
  return status;
}

/* Computes the mean durations of a step and its parts, and their fractions of the step. */
static gl_status speed_of(diagnosis *d, double *rows, gl_error *err) {
  speed_facts *to = &d->speed;
  interval of[SPEED_RATIOS];
  const size_t n = time_rows(d, rows);
  if (n == 0) return GL_OK;
  to->is_hidden = is_generation_hidden(d, rows, n);
  for (size_t i = 0; i < n && to->is_hidden; ++i)
    rows[TIME_COLUMNS * i + TIME_PARTS + SPEED_GENERATION] = 0;
  gl_status status = means_of_time(to, rows, n, err);
  if (status == GL_OK)
    status = block_bootstrap(&(block_sums){rows, n, TIME_COLUMNS, block_ratios, SPEED_RATIOS, 210},
                             of, err);
  if (status != GL_OK) return status;
  int known = 0;
  for (int k = 0; k < SPEED_PARTS; ++k) {
    const bool is_logged = series_of(d, speed_part_roles[k]) != NULL;
    to->is_inferred[k] = !is_logged && to->part[k].value > 0;
    known += to->part[k].value > 0;
    if (to->part[k].value > to->part[to->longest_part].value) to->longest_part = k;
  }
  to->is_known = known >= 2;
  if (!to->is_hidden) to->overlap_limit = of[OVERLAP_LIMIT], to->overlap_gain = of[OVERLAP_GAIN];
  to->wait_fraction = of[WAIT_FRACTION], to->sync_fraction = of[SYNC_FRACTION];
  to->environment_fraction = of[ENVIRONMENT_FRACTION];
  to->generation_fraction = of[GENERATION_FRACTION];
  to->is_serial = series_of(d, SERIES_WAIT) == NULL && to->overlap_gain.value < 1.05;
  return GL_OK;
}

/* --- divergence by staleness, an update each --- */

/* Divides the logged KL into a floor at staleness 0 and a part that grows with the staleness; one
 * point for each update. */
static gl_status divergence_of_series(diagnosis *d, double *rows, gl_error *err) {
  enum { K = LINE_SUMS + 2 };
  divergence_facts *to = &d->divergence;
  const gathered_series *kl = series_of(d, SERIES_KL)->from;
  const role_series *staleness = series_of(d, SERIES_STALENESS);
  size_t at = 0, n = 0;
  gl_status status = facts_mean(kl->value, kl->n, 1, 220, &to->all.k3, err);
  for (size_t i = 0; i < kl->n && staleness != NULL; ++i) {
    const double lag = series_value_at(staleness->from, kl->step[i], &at);
    if (isnan(lag) || !isfinite(kl->value[i])) continue;
    double *row = rows + K * n++;
    memset(row, 0, K * sizeof *row);
    line_add(row, lag, kl->value[i], 1);
    if (lag == 0) row[LINE_SUMS] = 1, row[LINE_SUMS + 1] = kl->value[i];
  }
  to->why = staleness == NULL ? "the log has no staleness" : "the staleness does not vary";
  if (status == GL_OK && n > 0) status = divide_by_lag(rows, n, 221, to->part, err);
  if (status != GL_OK || n == 0 || isnan(to->part[PART_FLOOR].value)) return status;
  double fresh = 0;
  for (size_t i = 0; i < n; ++i) fresh += rows[K * i + LINE_SUMS];
  to->how = fresh == (double)n ? FLOOR_FRESH : fresh > 0 ? FLOOR_LAG_0 : FLOOR_LINE;
  to->is_of_updates = true;
  to->why = NULL;
  return GL_OK;
}

gl_status facts_of_series(diagnosis *d, gl_error *err) {
  const interval unknown = {NAN, NAN, NAN};
  const role_series *steps = series_of(d, SERIES_STEP_TIME), *kl = series_of(d, SERIES_KL);
  const size_t n = (steps != NULL ? steps->from->n : 0) + (kl != NULL ? kl->from->n : 0);
  arena work = {0};
  double *rows = ARENA_GRID(&work, double, n, BLOCK_MOST);
  gl_status status = arena_check(&work, "the series of a log", err);
  d->speed = (speed_facts){.step = unknown,
                           .wait = unknown,
                           .part = {unknown, unknown, unknown, unknown},
                           .overlap_limit = unknown,
                           .overlap_gain = unknown,
                           .wait_fraction = unknown,
                           .sync_fraction = unknown,
                           .environment_fraction = unknown,
                           .generation_fraction = unknown};
  if (status == GL_OK && steps != NULL) status = speed_of(d, rows, err);
  if (status == GL_OK && kl != NULL && d->divergence.all.tokens == 0)
    status = divergence_of_series(d, rows, err);
  arena_fini(&work);
  return status;
}
