/* Levels of runs by arm, with their pass@G, different right responses and entropy at the end. */
#include "analysis/levels.h"

#include "analysis/outcome.h"
#include "analysis/statistics.h"
#include "analysis/summary.h"
#include "core/base/arena.h"

#include <math.h>

/* The quantities of a run. */
enum { OF_LEVEL = 3 };
static const metric ends[] = {METRIC_PASS_AT_G, METRIC_DISTINCT_RIGHT, METRIC_ENTROPY};
enum { QUANTITIES = OF_LEVEL + sizeof ends / sizeof *ends };

static const table_column level_columns[] = {
    {"algorithm", TABLE_TEXT, .head = "algorithm"},
    {"setting", TABLE_TEXT, .head = "setting"},
    {"runs", TABLE_WHOLE, .head = "runs"},
    {"last_level", TABLE_INTERVAL, .head = "last", .place = 3},
    {"best_to_last", TABLE_INTERVAL, .head = "best − last", .place = 3},
    {"below_start", TABLE_INTERVAL, .head = "below start", .place = 3},
    {"pass_at_g", TABLE_INTERVAL, .head = "pass@G", .place = 3},
    {"distinct_right", TABLE_INTERVAL, .head = "different right", .place = 3},
    {"entropy", TABLE_INTERVAL, .head = "entropy", .place = 3}};

static void quantities_of(const results_run *run, double *scratch, double value[QUANTITIES]) {
  const run_level level = run_level_of(run->evals, run->n_evals);
  const int64_t end = run->n_steps > 0 ? run->steps[run->n_steps - 1].step : 0;
  value[0] = level.last;
  value[1] = level.best_to_last;
  value[2] = level.below_start;
  for (size_t i = 0; OF_LEVEL + i < QUANTITIES; i++)
    value[OF_LEVEL + i] = summary_run_metric(run, ends[i], end - end / 10, end, scratch);
}

/* One row; values: [QUANTITIES][runs of the cell]. */
static gl_status put_levels(table *t, const results *r, size_t cell, double *values,
                            double *scratch, gl_error *err) {
  const results_cell *c = &r->cells[cell];
  size_t n = 0;
  gl_status status = GL_OK;
  for (size_t i = 0; i < c->n; i++) {
    double value[QUANTITIES];
    if (r->runs[c->first + i].status == RUN_FAILED) continue;
    quantities_of(&r->runs[c->first + i], scratch, value);
    for (size_t q = 0; q < QUANTITIES; q++) values[q * c->n + n] = value[q];
    n++;
  }
  table_row(t);
  table_text(t, r->algorithms[c->algorithm]);
  table_text(t, r->groups[c->group].heading);
  table_count(t, n);
  for (size_t q = 0; q < QUANTITIES && status == GL_OK; q++) {
    interval v = {NAN, NAN, NAN};
    size_t known = sample_sort(values + q * c->n, n);
    const rng_stream stream =
        rng_stream_at(1, RNG_BOOTSTRAP, UINT64_C(15) << 60 | (uint64_t)(cell * QUANTITIES + q));
    if (known > 0) status = iqm_bootstrap(values + q * c->n, &known, 1, stream, &v, err);
    interval_cell(t, v);
  }
  return status;
}

gl_status levels_report(table *to, const results *r, gl_error *err) {
  arena work = {0};
  size_t updates = 0;
  for (size_t i = 0; i < r->n_runs; i++)
    if (r->runs[i].n_steps > updates) updates = r->runs[i].n_steps;
  double *values = ARENA_GRID(&work, double, QUANTITIES, r->n_runs);
  double *scratch = ARENA_ARRAY(&work, double, updates + 1);
  gl_status status = arena_check(&work, "the levels", err);
  if (status == GL_OK) {
    table *t = table_rows(table_field(to, "levels"), level_columns,
                          sizeof level_columns / sizeof *level_columns);
    table_title(t,
                "%s: levels, interquartile means over seeds with 95 %% bootstrap intervals (of "
                "fewer than five runs the range). last: mean of the last %d evaluations; best − "
                "last: highest mean of %d in a row less that; below start: fraction of evaluations "
                "below the first; pass@G, different right responses of a group and entropy of a "
                "token [nats]: means over the last tenth of the updates.",
                r->study, (int)OUTCOME_LEVEL, (int)OUTCOME_LEVEL);
    table_gap(t);
    for (size_t k = 0; k < r->n_groups * r->n_algorithms && status == GL_OK; k++)
      if (r->cells[k].n > 0) status = put_levels(t, r, k, values, scratch, err);
  }
  arena_fini(&work);
  return status;
}
