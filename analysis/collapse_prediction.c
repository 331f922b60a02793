/* Measures how well a metric predicts collapses. */
#include "analysis/collapse_prediction.h"

#include "analysis/auc.h"
#include "core/base/array.h"
#include "core/random/rng.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- warnings from a run's own beginning --- */

enum { MOST_BEGIN = 64 };

drift_rule drift_rule_default(void) {
  return (drift_rule){.begin = 20, .window = 8, .factor = 2};
}

double drift_reference(const double *value, size_t n, const drift_rule *rule) {
  double first[MOST_BEGIN];
  size_t kept = 0;
  assert(rule->begin >= 1 && rule->begin <= MOST_BEGIN && rule->window <= rule->begin);
  for (size_t i = 0; i < n && i < rule->begin; ++i)
    if (!isnan(value[i])) first[kept++] = value[i];
  if (kept < rule->begin) return NAN;
  const size_t sorted = sample_sort(first, kept);
  const double median = sample_quantile(first, sorted, 0.5);
  return median > 0 ? median : NAN;
}

static double mean_until(const double *value, size_t end, size_t window) {
  double sum = 0;
  for (size_t i = end + 1 - window; i <= end; ++i) sum += value[i];
  return sum / (double)window;
}

size_t drift_alarm(const double *value, size_t n, bool low_side, const drift_rule *rule) {
  const double reference = drift_reference(value, n, rule);
  for (size_t i = rule->begin; i < n; ++i) {
    const double mean = mean_until(value, i, rule->window);
    if (low_side ? mean < reference / rule->factor : mean > reference * rule->factor) return i;
  }
  return n;
}

/* --- warnings over the runs of a study --- */

announce_rule announce_rule_default(void) {
  return (announce_rule){.window = 8,
                         .false_alarms = 0.1,
                         .lead = {1, 25, 50, 100},
                         .outcome = outcome_rule_default()};
}

enum { HIGH_SIDE, LOW_SIDE, SIDES };

/* A run with at least one moving average. top: by side, the largest moving average and the largest
 * of its negative. */
typedef struct scored {
  const announce_series *of;
  double top[SIDES];
  size_t seed; /* index of its seed in starts */
  int alarm;   /* 1: the run was judged and raised an alarm */
  int judged;
  double lead; /* updates from the alarm to the onset; set for predicted collapses */
} scored;

typedef struct watch {
  const announce_rule *rule;
  scored *run;
  size_t n;
  uint64_t *seeds; /* [n_starts] distinct seeds, ascending */
  size_t n_seeds;
  arena memory; /* memory of the arrays and scratch */
} watch;

/* --- moving average --- */

/* The mean of the last `window` values up to k, without NaN. NaN if there are fewer values up to k,
 * or all are NaN. */
static double moving_average(const announce_series *r, size_t window, size_t k) {
  double sum = 0, n = 0;
  if (k + 1 < window) return NAN;
  for (size_t i = k + 1 - window; i <= k; i++) {
    if (isnan(r->value[i])) continue;
    sum += r->value[i];
    n += 1;
  }
  return n > 0 ? sum / n : NAN;
}

/* Number of updates that may be used: those before the onset. */
static size_t length_of(const announce_series *r) {
  size_t n = 0;
  while (n < r->n && (!r->collapsed || r->step[n] < r->onset)) n++;
  return n;
}

static bool is_beyond_threshold(double value, int side, double threshold) {
  return (side == HIGH_SIDE ? value : -value) > threshold;
}

/* Moving average at the last update up to `step`; NaN if there is none. */
static double moving_average_at(const announce_series *r, size_t window, int64_t step) {
  size_t n = 0;
  while (n < r->n && r->step[n] <= step) n++;
  return n > 0 ? moving_average(r, window, n - 1) : NAN;
}

/* Fills the scores of a run. Returns true if the run has a value. */
static bool score_run(scored *s, const announce_series *r, size_t window) {
  int has = 0;
  const size_t n = length_of(r);
  *s = (scored){.of = r, .top = {-INFINITY, -INFINITY}};
  for (size_t k = 0; k < n; k++) {
    const double x = moving_average(r, window, k);
    if (isnan(x)) continue;
    s->top[HIGH_SIDE] = fmax(s->top[HIGH_SIDE], x);
    s->top[LOW_SIDE] = fmax(s->top[LOW_SIDE], -x);
    has = 1;
  }
  return has;
}

/* Returns the first update at which the moving average exceeds the threshold; -1 if there is none.
 */
static int64_t alarm_of(const announce_series *r, size_t window, int side, double threshold) {
  const size_t n = length_of(r);
  for (size_t k = 0; k < n; k++)
    if (is_beyond_threshold(moving_average(r, window, k), side, threshold)) return r->step[k];
  return -1;
}

static void number_seeds(watch *b) {
  for (size_t i = 0; i < b->n; i++) b->seeds[i] = b->run[i].of->seed;
  qsort(b->seeds, b->n, sizeof *b->seeds, order_unsigned);
  for (size_t i = 0; i < b->n; i++)
    if (i == 0 || b->seeds[i] != b->seeds[i - 1]) b->seeds[b->n_seeds++] = b->seeds[i];
  for (size_t i = 0; i < b->n; i++) {
    size_t k = 0;
    while (b->seeds[k] != b->run[i].of->seed) k++;
    b->run[i].seed = k;
  }
}

/* --- the ROC curve --- */

/* Contribution of a pair (collapsed run, surviving run) to the area under the ROC curve. */
static double order_of(const scored *collapsed, const scored *survived, int side) {
  const double f = collapsed->top[side], s = survived->top[side];
  return f > s ? 1 : (f == s ? 0.5 : 0);
}

/* Area under the ROC curve without the runs of the seed with index left_out (n_seeds: of all runs).
 * NaN if there are no collapsed or no surviving runs. */
static double area_without(const watch *b, int side, size_t left_out) {
  double sum = 0, pairs = 0;
  for (size_t i = 0; i < b->n; i++) {
    const scored *f = &b->run[i];
    if (!f->of->collapsed || f->seed == left_out) continue;
    for (size_t j = 0; j < b->n; j++) {
      const scored *s = &b->run[j];
      if (s->of->collapsed || s->seed == left_out) continue;
      sum += order_of(f, s, side);
      pairs += 1;
    }
  }
  return pairs > 0 ? sum / pairs : NAN;
}

static int better_side(const watch *b, size_t left_out) {
  return area_without(b, LOW_SIDE, left_out) > area_without(b, HIGH_SIDE, left_out) ? LOW_SIDE
                                                                                    : HIGH_SIDE;
}

static int descending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* Writes the largest moving averages of the collapsed or surviving runs, without those of the seed
 * left_out, to top[], descending. Returns how many. */
static size_t scores_of(const watch *b, int collapsed, int side, size_t left_out, double *top) {
  size_t n = 0;
  for (size_t i = 0; i < b->n; i++)
    if (b->run[i].of->collapsed == collapsed && b->run[i].seed != left_out)
      top[n++] = b->run[i].top[side];
  qsort(top, n, sizeof *top, descending);
  return n;
}

/* Computes the ROC curve over all runs. Thresholds are the runs' largest moving averages,
 * descending. */
static void find_roc(announcement *out, watch *b) {
  double *collapsed = ARENA_ARRAY(&b->memory, double, b->n);
  double *survived = ARENA_ARRAY(&b->memory, double, b->n);
  if (collapsed == NULL || survived == NULL) return;
  const size_t f = scores_of(b, 1, out->low_side, b->n_seeds, collapsed);
  const size_t s = scores_of(b, 0, out->low_side, b->n_seeds, survived);
  size_t i = 0, j = 0, n = 1; /* the first point is (0, 0) */
  while (i < f || j < s) {
    const double at = j == s || (i < f && collapsed[i] > survived[j]) ? collapsed[i] : survived[j];
    while (i < f && collapsed[i] == at) i++;
    while (j < s && survived[j] == at) j++;
    out->roc_announced[n] = f > 0 ? (double)i / (double)f : 0;
    out->roc_alarms[n++] = s > 0 ? (double)j / (double)s : 0;
  }
  out->n_roc = n;
}

/* --- leave-one-out over seeds --- */

/* The smallest threshold that at most the allowed fraction of survived[n] (descending) exceed. */
static double threshold_of(const double *survived, size_t n, double allowed) {
  size_t alarms = (size_t)floor(allowed * (double)n + 1e-9);
  return survived[alarms < n ? alarms : n - 1];
}

static void judge(scored *s, const announce_rule *rule, int side, double threshold) {
  const int64_t at = alarm_of(s->of, rule->window, side, threshold);
  s->judged = 1;
  s->alarm = at >= 0;
  s->lead = s->of->collapsed && at >= 0 ? (double)(s->of->onset - at) : NAN;
}

/* Judges the runs of each seed, provided the other seeds have both collapsed and surviving runs. */
static void judge_seeds(watch *b) {
  double *top = ARENA_ARRAY(&b->memory, double, b->n);
  for (size_t k = 0; k < b->n_seeds && top != NULL; k++) {
    const int side = better_side(b, k);
    if (scores_of(b, 1, side, k, top) == 0) continue;
    const size_t n = scores_of(b, 0, side, k, top);
    if (n == 0) continue;
    const double threshold = threshold_of(top, n, b->rule->false_alarms);
    for (size_t i = 0; i < b->n; i++)
      if (b->run[i].seed == k) judge(&b->run[i], b->rule, side, threshold);
  }
}

/* --- intervals --- */

/* Counts over the runs of one seed. */
typedef struct seed_sums {
  double judged_collapsed, announced, judged_survived, alarms;
} seed_sums;

typedef struct resampling {
  const watch *b;
  int side;
  double *concordant, *pairs; /* [COMPARISONS][n_starts][n_starts] collapsed run of one seed,
                                 surviving run of the other */
  seed_sums *sums;            /* [n_starts] */
  double *lead;               /* [n_leads] ascending */
  size_t *lead_seed, n_leads;
  double *times; /* [n_starts] how often a seed was resampled */
} resampling;

enum { OF_SHARE, OF_ALARMS, OF_LEAD, OF_AREAS };
/* Areas under ROC curves: one over whole runs, and one at each lead. */
enum { OF_RUNS, OF_LEADS, COMPARISONS = OF_LEADS + ANNOUNCE_LEADS };
enum { QUANTITIES = OF_AREAS + COMPARISONS };

static double ratio(double a, double b) {
  return b > 0 ? a / b : NAN;
}

/* Weighted median of the leads; the weight is how often the seed was resampled. */
static double median_lead(const resampling *r) {
  double n = 0, below = 0, lower = NAN;
  for (size_t i = 0; i < r->n_leads; i++) n += r->times[r->lead_seed[i]];
  for (size_t i = 0; i < r->n_leads; i++) {
    below += r->times[r->lead_seed[i]];
    if (isnan(lower) && below > 0 && below >= n / 2) lower = r->lead[i];
    if (below > n / 2) return (lower + r->lead[i]) / 2;
  }
  return NAN;
}

/* Weighted area of a comparison; the weights are how often each run's seed was resampled. */
static double area_resampled(const resampling *r, size_t comparison) {
  const size_t n = r->b->n_seeds, first = comparison * n * n;
  double concordant = 0, pairs = 0;
  for (size_t i = 0; i < n; i++) {
    if (r->times[i] == 0) continue;
    for (size_t j = 0; j < n; j++) {
      const double times = r->times[i] * r->times[j];
      concordant += times * r->concordant[first + i * n + j];
      pairs += times * r->pairs[first + i * n + j];
    }
  }
  return ratio(concordant, pairs);
}

/* Computes all quantities of one bootstrap sample, in which seed i occurs times[i] times. */
static void evaluate_sample(const resampling *r, double value[QUANTITIES]) {
  const size_t n = r->b->n_seeds;
  seed_sums all = {0};
  for (size_t c = 0; c < COMPARISONS; c++) value[OF_AREAS + c] = area_resampled(r, c);
  for (size_t i = 0; i < n; i++) {
    if (r->times[i] == 0) continue;
    all.judged_collapsed += r->times[i] * r->sums[i].judged_collapsed;
    all.announced += r->times[i] * r->sums[i].announced;
    all.judged_survived += r->times[i] * r->sums[i].judged_survived;
    all.alarms += r->times[i] * r->sums[i].alarms;
  }
  value[OF_SHARE] = ratio(all.announced, all.judged_collapsed);
  value[OF_ALARMS] = ratio(all.alarms, all.judged_survived);
  value[OF_LEAD] = median_lead(r);
}

typedef struct lead_of_seed {
  double lead;
  size_t seed;
} lead_of_seed;

static int by_lead(const void *a, const void *b) {
  const double x = ((const lead_of_seed *)a)->lead, y = ((const lead_of_seed *)b)->lead;
  return (x > y) - (x < y);
}

/* Collects the leads of predicted collapses with their seeds, ascending. all: [n] scratch. */
static void collect_leads(resampling *r, lead_of_seed *all) {
  const watch *b = r->b;
  for (size_t i = 0; i < b->n; i++)
    if (b->run[i].alarm && b->run[i].of->collapsed)
      all[r->n_leads++] = (lead_of_seed){b->run[i].lead, b->run[i].seed};
  qsort(all, r->n_leads, sizeof *all, by_lead);
  for (size_t i = 0; i < r->n_leads; i++) {
    r->lead[i] = all[i].lead;
    r->lead_seed[i] = all[i].seed;
  }
}

static void count_pair(resampling *r, size_t comparison, const scored *collapsed,
                       const scored *survived, double order) {
  const size_t n = r->b->n_seeds, at = (comparison * n + collapsed->seed) * n + survived->seed;
  r->concordant[at] += order;
  r->pairs[at] += 1;
}

/* Sums the counts over the runs of each seed, and the pairs of runs over each pair of seeds, so
 * that a bootstrap sample needs these sums only. */
static void sum_by_seed(resampling *r) {
  const watch *b = r->b;
  for (size_t i = 0; i < b->n; i++) {
    const scored *f = &b->run[i];
    seed_sums *sums = &r->sums[f->seed];
    if (f->of->collapsed) {
      sums->judged_collapsed += f->judged;
      sums->announced += f->alarm;
    } else {
      sums->judged_survived += f->judged;
      sums->alarms += f->alarm;
    }
    for (size_t j = 0; f->of->collapsed && j < b->n; j++) {
      const scored *s = &b->run[j];
      if (s->of->collapsed) continue;
      count_pair(r, OF_RUNS, f, s, order_of(f, s, r->side));
    }
  }
}

/* Compares a collapsed run with the surviving runs of its cell, rule->lead[lead] updates before its
 * onset. Returns the number of survivors with a value there. */
static size_t compare_then(resampling *r, const scored *f, size_t lead) {
  const announce_rule *rule = r->b->rule;
  const int64_t step = f->of->onset - rule->lead[lead];
  const double own = moving_average_at(f->of, rule->window, step);
  size_t n = 0;
  for (size_t j = 0; j < r->b->n && !isnan(own); j++) {
    const scored *s = &r->b->run[j];
    if (s->of->collapsed || s->of->cell != f->of->cell) continue;
    const double other = moving_average_at(s->of, rule->window, step);
    if (isnan(other)) continue;
    count_pair(r, OF_LEADS + lead, f, s, own > other ? 1 : (own == other ? 0.5 : 0));
    n++;
  }
  return n;
}

static void match_collapses(announcement *out, resampling *r) {
  for (size_t k = 0; k < ANNOUNCE_LEADS; k++)
    for (size_t i = 0; i < r->b->n; i++) {
      const size_t pairs = r->b->run[i].of->collapsed ? compare_then(r, &r->b->run[i], k) : 0;
      out->matched[k].pairs += pairs;
      out->matched[k].collapsed += pairs > 0;
    }
}

static void sample_seeds(resampling *r, uint64_t replicate) {
  const size_t n = r->b->n_seeds;
  const rng_stream stream = rng_stream_at(1, RNG_BOOTSTRAP, UINT64_C(13) << 60);
  memset(r->times, 0, n * sizeof *r->times);
  for (size_t i = 0; i < n; i++) {
    const rng_words w = rng_block(stream, replicate * n + i);
    r->times[(size_t)(rng_u01_53(w.v[0], w.v[1]) * (double)n)] += 1;
  }
}

static interval percentiles_95(double value, double *replicates) {
  const size_t n = sample_sort(replicates, BOOTSTRAP_REPLICATES);
  return (interval){value, sample_quantile(replicates, n, 0.025),
                    sample_quantile(replicates, n, 0.975)};
}

/* Computes the estimates, with every seed once, and their bootstrap intervals over seeds. */
static void find_intervals(announcement *out, resampling *r, double *replicate) {
  const size_t n = r->b->n_seeds;
  interval *of[QUANTITIES] = {[OF_SHARE] = &out->announced_fraction,
                              [OF_ALARMS] = &out->false_alarms,
                              [OF_LEAD] = &out->lead,
                              [OF_AREAS + OF_RUNS] = &out->auc};
  double value[QUANTITIES], drawn[QUANTITIES];
  for (size_t k = 0; k < ANNOUNCE_LEADS; k++) of[OF_AREAS + OF_LEADS + k] = &out->matched[k].auc;
  for (size_t i = 0; i < n; i++) r->times[i] = 1;
  evaluate_sample(r, value);
  for (uint64_t k = 0; n > 1 && k < BOOTSTRAP_REPLICATES; k++) {
    sample_seeds(r, k);
    evaluate_sample(r, drawn);
    for (size_t q = 0; q < QUANTITIES; q++) replicate[q * BOOTSTRAP_REPLICATES + k] = drawn[q];
  }
  for (size_t q = 0; q < QUANTITIES; q++)
    *of[q] = n > 1 ? percentiles_95(value[q], replicate + q * BOOTSTRAP_REPLICATES)
                   : (interval){value[q], NAN, NAN};
}

static gl_status resample(announcement *out, watch *b, gl_error *err) {
  const size_t n = b->n_seeds;
  arena *m = &b->memory;
  resampling r = {.b = b,
                  .side = out->low_side,
                  .concordant = ARENA_GRID(m, double, COMPARISONS *n, n),
                  .pairs = ARENA_GRID(m, double, COMPARISONS *n, n),
                  .sums = ARENA_ARRAY(m, seed_sums, n),
                  .lead = ARENA_ARRAY(m, double, b->n),
                  .lead_seed = ARENA_ARRAY(m, size_t, b->n),
                  .times = ARENA_ARRAY(m, double, n)};
  double *replicate = ARENA_GRID(m, double, QUANTITIES, BOOTSTRAP_REPLICATES);
  lead_of_seed *leads = ARENA_ARRAY(m, lead_of_seed, b->n);
  gl_status status = arena_check(m, "a bootstrap over starts", err);
  if (status != GL_OK) return status;
  collect_leads(&r, leads);
  sum_by_seed(&r);
  match_collapses(out, &r);
  for (size_t i = 0; i < n; i++) {
    out->judged_collapsed += (size_t)r.sums[i].judged_collapsed;
    out->announced += (size_t)r.sums[i].announced;
    out->judged_survived += (size_t)r.sums[i].judged_survived;
    out->alarms += (size_t)r.sums[i].alarms;
  }
  find_intervals(out, &r, replicate);
  return GL_OK;
}

/* --- one metric --- */

gl_status announcement_of(announcement *out, arena *to, const announce_series *runs, size_t n,
                          const announce_rule *rule, gl_error *err) {
  const interval unknown = {NAN, NAN, NAN};
  const metric m = out->m;
  *out = (announcement){.m = m,
                        .auc = unknown,
                        .announced_fraction = unknown,
                        .false_alarms = unknown,
                        .lead = unknown};
  for (size_t k = 0; k < ANNOUNCE_LEADS; k++) out->matched[k].auc = unknown;
  watch b = {.rule = rule};
  b.run = ARENA_ARRAY(&b.memory, scored, n);
  b.seeds = ARENA_ARRAY(&b.memory, uint64_t, n);
  for (size_t i = 0; i < n && !b.memory.failed; i++) {
    if (!score_run(&b.run[b.n], &runs[i], rule->window)) continue;
    if (runs[i].collapsed)
      out->collapsed++;
    else
      out->survived++;
    b.n++;
  }
  gl_status status = GL_OK;
  if (out->collapsed > 0 && out->survived > 0) {
    number_seeds(&b);
    out->low_side = better_side(&b, b.n_seeds) == LOW_SIDE;
    judge_seeds(&b);
    out->roc_alarms = ARENA_ARRAY(to, double, b.n + 1);
    out->roc_announced = ARENA_ARRAY(to, double, b.n + 1);
    status = arena_check(to, "a ROC curve", err);
    if (status == GL_OK) find_roc(out, &b);
    if (status == GL_OK) status = resample(out, &b, err);
  }
  if (status == GL_OK) status = arena_check(&b.memory, "announcements", err);
  arena_fini(&b.memory);
  return status;
}

/* --- prediction of collapse over the runs of studies --- */

/* The metrics examined: those that papers recommend as early warnings of collapse, and for
 * comparison those that are logged anyway (reward, response length, divergence). */
static const metric asked[] = {METRIC_ESS,
                               METRIC_GRAD_NORM,
                               METRIC_GRAD_COSINE,
                               METRIC_M2_LOG_RATIO,
                               METRIC_KEPT_MASS,
                               METRIC_KEPT_MASS_Q,
                               METRIC_GM_RATIO_SPREAD,
                               METRIC_GM_P_SPREAD,
                               METRIC_CLIPPED_POSITIVE,
                               METRIC_CLIPPED_NEGATIVE,
                               METRIC_GATED_POSITIVE,
                               METRIC_GATED_NEGATIVE,
                               METRIC_ENTROPY,
                               METRIC_ENTROPY_KEPT,
                               METRIC_ENTROPY_TAIL,
                               METRIC_LOG_IW_VARIANCE_PQ,
                               METRIC_LOG_IW_VARIANCE_GEPO,
                               METRIC_CLIP_FRACTION,
                               METRIC_KL_K3_SEQ,
                               METRIC_REWARD_MEAN,
                               METRIC_RESPONSE_LENGTH};
enum { ASKED = sizeof asked / sizeof asked[0] };

/* --- runs --- */

/* The runs examined, each with its series of updates. */
typedef struct asked_runs {
  const results_run **run; /* [n] in the order of series */
  announce_series *series;
  double **value; /* [n] values of each series for the current metric */
  size_t n;
  arena memory;
} asked_runs;

/* Adds a run that collapsed or survived. Failed runs and runs that never learned are only counted.
 */
static void add_asked_run(announcements *a, asked_runs *g, const results_run *run, size_t cell) {
  const run_outcome o = outcome_of_run(run, &a->rule.outcome);
  const int collapsed = run_outcome_is_collapse(&o);
  if (run->status == RUN_FAILED || (!collapsed && o.kind != OUTCOME_SURVIVED)) {
    a->left_out++;
    return;
  }
  if (collapsed)
    a->collapsed++;
  else
    a->survived++;
  const size_t i = g->n++;
  int64_t *step = ARENA_ARRAY(&g->memory, int64_t, run->n_steps);
  g->run[i] = run;
  g->value[i] = ARENA_ARRAY(&g->memory, double, run->n_steps);
  for (size_t k = 0; step != NULL && k < run->n_steps; k++) step[k] = run->steps[k].step;
  g->series[i] = (announce_series){.seed = run->seed,
                                   .collapsed = collapsed,
                                   .onset = o.onset,
                                   .step = step,
                                   .value = g->value[i],
                                   .n = run->n_steps,
                                   .cell = cell};
}

/* Every study must have runs that differ in the field; otherwise a study would be reported as a
 * selection although nothing was selected. The value itself may occur in one study only. */
static gl_status check_field(const results *const *from, size_t n_from, const contrast_field *f,
                             gl_error *err) {
  int found = 0;
  for (size_t s = 0; s < n_from; s++) {
    const results *r = from[s];
    if (!contrast_knows(r, f->path))
      return gl_fail(err, GL_EINPUT, "the runs of %s do not differ in %s; they differ in %s",
                     r->study, f->path, *r->axis_label != '\0' ? r->axis_label : "the algorithm");
    found = found || contrast_has_run(r, f);
  }
  if (found) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "no run has %s = %s; `gepolab study info` lists algorithms and settings", f->path,
                 f->value);
}

static gl_status find_asked_runs(announcements *a, asked_runs *g, const results *const *from,
                                 size_t n_from, const contrast_arm *of, gl_error *err) {
  gl_status status = GL_OK;
  size_t n = 0, cells = 0;
  for (size_t i = 0; i < of->n && status == GL_OK; i++)
    status = check_field(from, n_from, &of->field[i], err);
  if (status != GL_OK) return status;
  for (size_t s = 0; s < n_from; s++) n += from[s]->n_runs;
  g->run = ARENA_ARRAY(&g->memory, const results_run *, n);
  g->series = ARENA_ARRAY(&g->memory, announce_series, n);
  g->value = ARENA_ARRAY(&g->memory, double *, n);
  for (size_t s = 0; s < n_from; s++) {
    const results *r = from[s];
    for (size_t i = 0; i < r->n_runs && !g->memory.failed; i++) {
      const results_run *run = &r->runs[i];
      if (contrast_arm_has(r, run, of))
        add_asked_run(a, g, run, cells + run->group * r->n_algorithms + run->algorithm);
    }
    cells += r->n_groups * r->n_algorithms;
  }
  status = arena_check(&g->memory, "announcements", err);
  if (status == GL_OK && (a->collapsed == 0 || a->survived == 0))
    status = gl_fail(err, GL_EINPUT,
                     "announcements need collapsed and stable runs: %zu collapsed, %zu "
                     "survived, %zu never learned or failed",
                     a->collapsed, a->survived, a->left_out);
  return status;
}

static size_t count_seeds(const asked_runs *g) {
  size_t n = 0;
  for (size_t i = 0; i < g->n; i++) {
    size_t k = 0;
    while (g->series[k].seed != g->series[i].seed) k++;
    n += k == i;
  }
  return n;
}

/* --- metrics --- */

static void fill_values(asked_runs *g, metric m) {
  for (size_t i = 0; i < g->n; i++)
    for (size_t k = 0; k < g->run[i]->n_steps; k++) g->value[i][k] = g->run[i]->steps[k].metric[m];
}

/* Number of values before the onset of the collapse; all values of a surviving run. */
static size_t values_before(const announce_series *r) {
  size_t n = 0;
  while (n < r->n && (!r->collapsed || r->step[n] < r->onset)) ++n;
  return n;
}

static announce_drift count_drift(const asked_runs *g, metric m, bool low_side,
                                  const drift_rule *rule) {
  announce_drift d = {.m = m, .low_side = low_side};
  for (size_t i = 0; i < g->n; i++) {
    const announce_series *r = &g->series[i];
    const size_t n = values_before(r);
    if (isnan(drift_reference(r->value, n, rule))) continue;
    const bool alarm = drift_alarm(r->value, n, low_side, rule) < n;
    if (r->collapsed)
      ++d.collapsed, d.warned += alarm;
    else
      ++d.survived, d.alarms += alarm;
  }
  d.warned_fraction = fraction_interval(d.warned, d.collapsed);
  d.false_alarms = fraction_interval(d.alarms, d.survived);
  return d;
}

/* Distance of the matched AUC at the first lead from 1/2; 0 if it is unknown. */
static double distance_from_chance(const announcement *a) {
  const double area = a->matched[0].auc.value;
  return isnan(area) ? 0 : fabs(area - 0.5);
}

static int by_area(const void *a, const void *b) {
  const announcement *x = a, *y = b;
  const double d = distance_from_chance(x) - distance_from_chance(y);
  if (d != 0) return d < 0 ? 1 : -1;
  if (x->auc.value != y->auc.value) return x->auc.value < y->auc.value ? 1 : -1;
  return (x->m > y->m) - (x->m < y->m);
}

gl_status announcements_init(announcements *a, const results *const *from, size_t n_from,
                             const contrast_arm *of, const announce_rule *rule, gl_error *err) {
  asked_runs g = {0};
  *a = (announcements){.rule = *rule};
  a->drift = drift_rule_default();
  a->of = ARENA_ARRAY(&a->memory, announcement, ASKED);
  a->drifts = ARENA_ARRAY(&a->memory, announce_drift, 2 * ASKED);
  gl_status status = arena_check(&a->memory, "announcements", err);
  if (status == GL_OK) status = find_asked_runs(a, &g, from, n_from, of, err);
  if (status == GL_OK) a->seeds = count_seeds(&g);
  for (size_t k = 0; k < ASKED && status == GL_OK; k++) {
    announcement *one = &a->of[a->n];
    one->m = asked[k];
    fill_values(&g, one->m);
    status = announcement_of(one, &a->memory, g.series, g.n, rule, err);
    for (int low_side = 0; low_side < 2 && status == GL_OK; low_side++) {
      const announce_drift d = count_drift(&g, one->m, low_side == 1, &a->drift);
      if (d.survived > 0) a->drifts[a->n_drifts++] = d;
    }
    if (!isnan(one->auc.value)) a->n++;
  }
  arena_fini(&g.memory);
  if (status == GL_OK) qsort(a->of, a->n, sizeof *a->of, by_area);
  return status;
}

void announcements_fini(announcements *a) {
  arena_fini(&a->memory);
  *a = (announcements){0};
}

/* --- tables --- */

static const table_column announcement_columns[] = {
    {"metric", TABLE_TEXT, .head = "metric"},
    {"side", TABLE_TEXT, .head = "side"},
    {"fallen", TABLE_INTEGER, .head = "fallen, survived"},
    TABLE_KEY("survived", TABLE_INTEGER),
    {"auc", TABLE_INTERVAL, .head = "AUC", .format = "%.2f"},
    TABLE_KEY("judged_fallen", TABLE_INTEGER),
    TABLE_KEY("announced", TABLE_INTEGER),
    {"announced_share", TABLE_INTERVAL, .head = "announced", .format = "%.2f"},
    TABLE_KEY("judged_survived", TABLE_INTEGER),
    TABLE_KEY("alarms", TABLE_INTEGER),
    {"false_alarm_rate", TABLE_INTERVAL, .head = "false alarms", .format = "%.2f"},
    {"lead_updates", TABLE_INTERVAL, .head = "updates before the collapse", .format = "%.0f"},
    TABLE_KEY("matched", TABLE_TABLE),
    TABLE_KEY("roc", TABLE_TABLE)};

static const table_column matched_columns[] = {
    TABLE_KEY("before", TABLE_INTEGER), TABLE_KEY("fallen", TABLE_INTEGER),
    TABLE_KEY("pairs", TABLE_INTEGER), TABLE_KEY("auc", TABLE_INTERVAL)};

static void put_matched(table *t, const announcement *a, const announce_rule *rule) {
  table *list = table_rows(t, matched_columns, sizeof matched_columns / sizeof *matched_columns);
  for (size_t k = 0; k < ANNOUNCE_LEADS; k++) {
    table_row(list);
    table_integer(list, rule->lead[k]);
    table_count(list, a->matched[k].collapsed);
    table_count(list, a->matched[k].pairs);
    interval_cell(list, a->matched[k].auc);
  }
}

static void put_announcement(table *t, const announcement *a, const announce_rule *rule) {
  table_row(t);
  table_text(t, metric_about(a->m)->name);
  table_text(t, a->low_side ? "falls" : "rises");
  table_count(t, a->collapsed);
  table_shown(t, "%zu, %zu", a->collapsed, a->survived);
  table_count(t, a->survived);
  interval_cell(t, a->auc);
  table_count(t, a->judged_collapsed);
  table_count(t, a->announced);
  interval_cell(t, a->announced_fraction);
  table_count(t, a->judged_survived);
  table_count(t, a->alarms);
  interval_cell(t, a->false_alarms);
  interval_cell(t, a->lead);
  put_matched(t, a, rule);
  table *roc = table_list(t);
  for (size_t i = 0; i < a->n_roc; i++)
    table_numbers(table_field(roc, ""), (double[]){a->roc_alarms[i], a->roc_announced[i]}, 2);
}

/* Writes the table that compares each collapsed run with the survivors of its cell at the same
 * update. */
static void put_matched_table(table *to, const announcements *a) {
  char head[ANNOUNCE_LEADS][40];
  table_column columns[1 + 2 * ANNOUNCE_LEADS] = {TABLE_HEAD("metric")};
  for (size_t k = 0; k < ANNOUNCE_LEADS; k++) {
    snprintf(head[k], sizeof head[k], "%lld before", (long long)a->rule.lead[k]);
    columns[1 + 2 * k] = (table_column){.type = TABLE_INTERVAL, .head = head[k], .format = "%.2f"};
    columns[2 + 2 * k] = (table_column){.type = TABLE_INTEGER, .head = "falls"};
  }
  table *t = table_rows(table_field(to, NULL), columns, 1 + 2 * ANNOUNCE_LEADS);
  for (size_t i = 0; i < a->n; i++) {
    table_row(t);
    table_text(t, metric_about(a->of[i].m)->name);
    for (size_t k = 0; k < ANNOUNCE_LEADS; k++) {
      interval_cell(t, a->of[i].matched[k].auc);
      table_count(t, a->of[i].matched[k].collapsed);
    }
  }
  table_title(t,
              "The same setting, the same update: probability that a run that falls so many "
              "updates later is higher than a survivor of its cell. 0.5 is chance; above it a "
              "rise announces, below it a fall. [95 %%, bootstrap over %zu starts].",
              a->seeds);
}

static void put_drifts(table *to, const announcements *a) {
  static const table_column columns[] = {
      {"metric", TABLE_TEXT, .head = "metric"},
      {"side", TABLE_TEXT, .head = "side"},
      {"fallen", TABLE_INTEGER, .head = "fallen"},
      TABLE_KEY("warned", TABLE_INTEGER),
      {"warned_share", TABLE_INTERVAL, .head = "warned", .format = "%.2f"},
      {"survived", TABLE_INTEGER, .head = "survived"},
      TABLE_KEY("alarms", TABLE_INTEGER),
      {"false_alarm_rate", TABLE_INTERVAL, .head = "false alarms", .format = "%.2f"}};
  table *t = table_rows(table_field(to, "warnings"), columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < a->n_drifts; i++) {
    const announce_drift *d = &a->drifts[i];
    table_row(t);
    table_text(t, metric_about(d->m)->name);
    table_text(t, d->low_side ? "falls" : "rises");
    table_count(t, d->collapsed), table_count(t, d->warned), interval_cell(t, d->warned_fraction);
    table_count(t, d->survived), table_count(t, d->alarms), interval_cell(t, d->false_alarms);
  }
  table_title(
      t,
      "Warnings that need no other runs: the mean of %zu updates is above %g times (rises) or "
      "below 1/%g (falls) of the median of the run's first %zu updates. Runs that collapse "
      "are warned of before they do, stable ones in vain [95 %% Clopper-Pearson].",
      a->drift.window, a->drift.factor, a->drift.factor, a->drift.begin);
}

void announcements_report(table *to, const announcements *a, const char *name) {
  table *rule = table_object(table_field(to, "rule"));
  table_put(rule, "window %zu, false_alarms %g", a->rule.window, a->rule.false_alarms);
  table_put(to, "fallen %zu, survived %zu, left_out %zu, starts %zu", a->collapsed, a->survived,
            a->left_out, a->seeds);
  table *t = table_rows(table_field(to, "metrics"), announcement_columns,
                        sizeof announcement_columns / sizeof *announcement_columns);
  for (size_t i = 0; i < a->n; i++) put_announcement(t, &a->of[i], &a->rule);
  table_title(t,
              "%s: which metrics announce falls. %zu runs fell, %zu survived, %zu never learned or "
              "failed and are left out; %zu starts. Means of %zu updates. AUC: of runs, on the "
              "side chosen on all of them. The rest leaves one start out: thresholds at which at "
              "most %.0f %% of the other starts' survivors raise an alarm; median lead of "
              "announced falls. [95 %%, bootstrap over starts].",
              name, a->collapsed, a->survived, a->left_out, a->seeds, a->rule.window,
              100 * a->rule.false_alarms);
  table_line(to,
             "If all runs were independent, an AUC of 0.7 would be distinguished from 0.5 with "
             "probability %.2f (two-sided at 5 %%): `gepolab analyze --table power`.",
             auc_power(0.7, a->collapsed, a->survived, 0.05));
  table_line(to, "%s", "");
  put_matched_table(to, a);
  put_drifts(to, a);
}
