/* Summarises cells as numbers with intervals, and computes relations between their quantities. */
#include "analysis/summary.h"

#include "analysis/evaluation_sets.h"
#include "analysis/outcome.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

metric summary_metric(const summary *s, cell_metric m) {
  const metric of[CELL_METRIC_COUNT] = {[CELL_STALENESS] = METRIC_STALENESS,
                                        [CELL_KL] = s->kl,
                                        [CELL_LOG_IW_VARIANCE_PQ] = METRIC_LOG_IW_VARIANCE_PQ,
                                        [CELL_LOG_IW_VARIANCE_GEPO] = METRIC_LOG_IW_VARIANCE_GEPO,
                                        [CELL_ESTIMATION_ERROR] = METRIC_ESTIMATION_ERROR};
  return of[m];
}

static bool is_log_variance(metric m) {
  return m == METRIC_LOG_IW_MEAN || m == METRIC_LOG_IW_MAX || m == METRIC_LOG_IW_VARIANCE ||
         m == METRIC_LOG_IW_VARIANCE_PQ || m == METRIC_LOG_IW_VARIANCE_GEPO;
}

double summary_run_metric(const results_run *run, metric m, int64_t step_from, int64_t step_to,
                          double *scratch) {
  size_t n = 0;
  for (size_t i = 0; i < run->n_steps; i++)
    if (run->steps[i].step > step_from && run->steps[i].step <= step_to)
      scratch[n++] = run->steps[i].metric[m];
  if (!is_log_variance(m)) return sample_mean(scratch, n);
  return sample_quantile(scratch, sample_sort(scratch, n), 0.5);
}

/* Layout of scratch: one number per run of a cell, for each quantity in turn. */
enum { VALUE_BEST = CELL_METRIC_COUNT, VALUE_LAST, VALUE_GAP, VALUE_COUNT };

static series_ends run_values(const summary *s, const results_run *run, double *scratch,
                              double value[VALUE_COUNT]) {
  const series_ends ends = sets_score_ends(run, s->from->lower_is_better);
  value[VALUE_BEST] = ends.best;
  value[VALUE_LAST] = ends.last;
  value[VALUE_GAP] = ends.best_to_last;
  for (cell_metric m = 0; m < CELL_METRIC_COUNT; m++)
    value[m] = summary_run_metric(run, summary_metric(s, m), INT64_MIN, INT64_MAX, scratch);
  return ends;
}

static void count_status(cell_summary *c, const results_run *run, bool is_judged) {
  const outcome_rule rule = outcome_rule_default();
  const run_outcome o = outcome_of_run(run, &rule);
  if (is_judged && run->status != RUN_FAILED) c->collapsed += run_outcome_is_collapse(&o);
  c->done += run->status == RUN_DONE;
  c->diverged += run->status == RUN_DIVERGED;
  c->failed += run->status == RUN_FAILED;
  c->lr_low = fmin(c->lr_low, run->lr);
  c->lr_high = fmax(c->lr_high, run->lr);
}

/* Also writes values [VALUE_COUNT][n_runs]: one number per quantity and run. */
static gl_status summarise_cell(const summary *s, cell_summary *c, size_t index, double *values,
                                double *scratch, gl_error *err) {
  const results_cell *cell = c->cell;
  size_t used = 0;
  for (size_t i = 0; i < cell->n; i++) {
    const results_run *run = &s->from->runs[cell->first + i];
    double value[VALUE_COUNT];
    count_status(c, run, !s->from->lower_is_better);
    if (run->status == RUN_FAILED) continue;
    c->not_finite += run_values(s, run, scratch, value).ends_not_finite;
    for (size_t v = 0; v < VALUE_COUNT; v++) values[v * cell->n + used] = value[v];
    c->samples_per_s += run->clock.samples_per_s;
    c->learner_utilisation += run->clock.learner_utilisation;
    c->sampler_utilisation += run->clock.sampler_utilisation;
    used++;
  }
  c->samples_per_s /= (double)used;
  c->learner_utilisation /= (double)used;
  c->sampler_utilisation /= (double)used;
  interval *to[VALUE_COUNT] = {
      [VALUE_BEST] = &c->best, [VALUE_LAST] = &c->last, [VALUE_GAP] = &c->best_to_last};
  for (cell_metric m = 0; m < CELL_METRIC_COUNT; m++) to[m] = &c->metric[m];
  for (size_t v = 0; v < VALUE_COUNT; v++) {
    rng_stream stream = rng_stream_at(BOOTSTRAP_SEED, RNG_BOOTSTRAP, index * VALUE_COUNT + v);
    gl_status status = iqm_bootstrap(values + v * cell->n, &used, 1, stream, to[v], err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

/* Related values, one per cell or run. */
typedef struct related {
  double *delay, *kl, *variance;
  size_t n;
} related;

static bool sweeps_delay(const results *from) {
  return results_axis(from, "cluster.max_delay") < from->axes.n ||
         results_axis(from, "cluster.delay") < from->axes.n;
}

/* Removes the intervals of a correlation of too few pairs, whose coverage is far below 95 %. */
static void drop_few(correlation *c) {
  if (c->n >= BOOTSTRAP_FEWEST) return;
  c->fisher.low = c->fisher.high = c->bootstrap.low = c->bootstrap.high = NAN;
}

/* Computes both correlations (delay with divergence, divergence with variance). index: number of
 * the call, which selects its random streams. */
static gl_status relate(const summary *s, relation to[RELATION_COUNT], const related *v,
                        uint64_t index, gl_error *err) {
  const char *kl = metric_about(s->kl)->name;
  uint64_t entity = UINT64_MAX - RELATION_COUNT * index;
  to[RELATION_DELAY_KL] = (relation){.x = "delay", .y = kl};
  to[RELATION_KL_VARIANCE] = (relation){.x = kl, .y = "iw_variance_pq"};
  gl_status status =
      spearman(v->delay, v->kl, v->n, rng_stream_at(BOOTSTRAP_SEED, RNG_BOOTSTRAP, entity),
               &to[RELATION_DELAY_KL].spearman, err);
  if (status != GL_OK) return status;
  if (to[RELATION_DELAY_KL].spearman.why && !sweeps_delay(s->from))
    to[RELATION_DELAY_KL].spearman.why =
        "the study sweeps neither cluster.max_delay nor cluster.delay";
  status =
      spearman(v->kl, v->variance, v->n, rng_stream_at(BOOTSTRAP_SEED, RNG_BOOTSTRAP, entity - 1),
               &to[RELATION_KL_VARIANCE].spearman, err);
  for (size_t i = 0; i < RELATION_COUNT; i++) drop_few(&to[i].spearman);
  return status;
}

static gl_status relate_cells(summary *s, related *v, gl_error *err) {
  v->n = s->n_cells;
  for (size_t i = 0; i < s->n_cells; i++) {
    v->delay[i] = s->from->groups[s->cells[i].cell->group].delay;
    v->kl[i] = s->cells[i].metric[CELL_KL].value;
    v->variance[i] = s->cells[i].metric[CELL_LOG_IW_VARIANCE_PQ].value;
  }
  return relate(s, s->relations, v, 0, err);
}

static gl_status relate_runs(summary *s, size_t algorithm, related *v, double *scratch,
                             gl_error *err) {
  v->n = 0;
  for (size_t i = 0; i < s->from->n_runs; i++) {
    const results_run *run = &s->from->runs[i];
    if (run->algorithm != algorithm || run->status == RUN_FAILED) continue;
    v->delay[v->n] = s->from->groups[run->group].delay;
    v->kl[v->n] = summary_run_metric(run, s->kl, INT64_MIN, INT64_MAX, scratch);
    v->variance[v->n++] =
        summary_run_metric(run, METRIC_LOG_IW_VARIANCE_PQ, INT64_MIN, INT64_MAX, scratch);
  }
  return relate(s, s->within + algorithm * RELATION_COUNT, v, algorithm + 1, err);
}

/* Computes the correlations over cells, and over the runs of each algorithm. values: [3 * room]
 * scratch. */
static gl_status relate_all(summary *s, double *values, size_t room, double *scratch,
                            gl_error *err) {
  related v = {values, values + room, values + 2 * room, 0};
  gl_status status = relate_cells(s, &v, err);
  for (size_t a = 0; a < s->from->n_algorithms && status == GL_OK; a++)
    status = relate_runs(s, a, &v, scratch, err);
  return status;
}

static size_t longest_run(const results *from) {
  size_t n = 1;
  for (size_t i = 0; i < from->n_runs; i++) {
    if (from->runs[i].n_steps > n) n = from->runs[i].n_steps;
    if (from->runs[i].n_evals > n) n = from->runs[i].n_evals;
  }
  return n;
}

/* Selects the divergence metric that the study has. */
static metric choose_kl(const results *from) {
  static const metric known[] = {METRIC_KL_EXACT, METRIC_KL_K3_SEQ, METRIC_KL_K3, METRIC_CPPO_KL};
  for (size_t m = 0; m < sizeof known / sizeof *known; m++)
    for (size_t i = 0; i < from->n_runs; i++)
      for (size_t k = 0; k < from->runs[i].n_steps; k++)
        if (isfinite(from->runs[i].steps[k].metric[known[m]])) return known[m];
  return METRIC_KL_EXACT;
}

gl_status summary_init(summary *s, const results *from, gl_error *err) {
  size_t n = from->n_groups * from->n_algorithms, room = n > from->n_runs ? n : from->n_runs;
  *s = (summary){.from = from, .kl = choose_kl(from)};
  s->cells = ARENA_ARRAY(&s->memory, cell_summary, n);
  s->within = ARENA_GRID(&s->memory, relation, from->n_algorithms, RELATION_COUNT);
  double *values = ARENA_GRID(&s->memory, double, room, VALUE_COUNT);
  double *scratch = ARENA_ARRAY(&s->memory, double, longest_run(from));
  gl_status status = arena_check(&s->memory, "summary", err);
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    if (from->cells[i].n == 0) continue;
    cell_summary *c = &s->cells[s->n_cells++];
    *c = (cell_summary){.cell = &from->cells[i], .lr_low = NAN, .lr_high = NAN};
    status = summarise_cell(s, c, i, values, scratch, err);
  }
  if (status == GL_OK) status = relate_all(s, values, room, scratch, err);
  if (status != GL_OK) summary_fini(s);
  return status;
}

void summary_fini(summary *s) {
  arena_fini(&s->memory);
  *s = (summary){0};
}

/* Updates a running mean of n values; NaN is ignored. */
static void add_to_mean(double *mean, size_t *n, double value) {
  if (isnan(value)) return;
  ++*n;
  *mean = *n == 1 ? value : *mean + (value - *mean) / (double)*n;
}

void summary_group_clock(const summary *s, size_t group, group_clock *out) {
  size_t n[4] = {0};
  *out = (group_clock){NAN, NAN, NAN, NAN};
  for (size_t i = 0; i < s->n_cells; i++) {
    const cell_summary *c = &s->cells[i];
    if (c->cell->group != group) continue;
    add_to_mean(&out->samples_per_s, &n[0], c->samples_per_s);
    add_to_mean(&out->learner_utilisation, &n[1], c->learner_utilisation);
    add_to_mean(&out->sampler_utilisation, &n[2], c->sampler_utilisation);
    add_to_mean(&out->staleness, &n[3], c->metric[CELL_STALENESS].value);
  }
}

const cell_summary *cell_of(const summary *s, size_t group, size_t algorithm) {
  for (size_t i = 0; i < s->n_cells; i++)
    if (s->cells[i].cell->group == group && s->cells[i].cell->algorithm == algorithm)
      return &s->cells[i];
  return NULL;
}
