/* Arms of a study: which are one computation, and at which levels their runs end. */
#include "analysis/arms.h"

#include "analysis/outcome.h"
#include "analysis/statistics.h"
#include "analysis/summary.h"
#include "core/base/arena.h"

#include <math.h>
#include <string.h>

/* --- equal arms --- */

static bool is_same_number(double a, double b) {
  return memcmp(&a, &b, sizeof a) == 0;
}

bool runs_are_equal(const results_run *a, const results_run *b) {
  if (a->n_steps == 0 || a->n_steps != b->n_steps || a->n_evals != b->n_evals) return false;
  for (size_t i = 0; i < a->n_evals; i++)
    if (!is_same_number(a->evals[i].eval_score, b->evals[i].eval_score)) return false;
  for (size_t i = 0; i < a->n_steps; i++) {
    const double *x = a->steps[i].metric, *y = b->steps[i].metric;
    if (!is_same_number(x[METRIC_REWARD_MEAN], y[METRIC_REWARD_MEAN]) ||
        !is_same_number(x[METRIC_GRAD_NORM], y[METRIC_GRAD_NORM]))
      return false;
  }
  return true;
}

static const results_run *run_with_seed(const results *r, const results_cell *c, uint64_t seed) {
  for (size_t i = 0; i < c->n; i++)
    if (r->runs[c->first + i].seed == seed) return &r->runs[c->first + i];
  return NULL;
}

/* The number of common seeds if all their runs are equal, else 0. */
static size_t equal_seeds(const results *r, const results_cell *a, const results_cell *b) {
  size_t common = 0;
  for (size_t i = 0; i < a->n; i++) {
    const results_run *run = &r->runs[a->first + i], *other = run_with_seed(r, b, run->seed);
    if (other == NULL) continue;
    if (!runs_are_equal(run, other)) return 0;
    common++;
  }
  return common;
}

gl_status equal_arms_find(equal_arms **out, size_t *n, const results *r, arena *to, gl_error *err) {
  const size_t cells = r->n_groups * r->n_algorithms;
  *n = 0;
  *out = ARENA_ARRAY(to, equal_arms, cells);
  gl_status status = arena_check(to, "equal arms", err);
  for (size_t b = 1; b < cells && status == GL_OK; b++)
    for (size_t a = 0; a < b; a++) {
      const size_t runs = equal_seeds(r, &r->cells[a], &r->cells[b]);
      if (runs == 0) continue;
      (*out)[(*n)++] = (equal_arms){&r->cells[a], &r->cells[b], runs};
      break;
    }
  return status;
}

static const table_column equal_columns[] = {{"algorithm", TABLE_TEXT, .head = "algorithm"},
                                             {"setting", TABLE_TEXT, .head = "setting"},
                                             {"same_as", TABLE_TEXT, .head = "same as"},
                                             {"same_setting", TABLE_TEXT, .head = "setting"},
                                             {"runs", TABLE_WHOLE, .head = "runs"}};

static void put_equal_arm(table *t, const results *r, const results_cell *c) {
  table_text(t, r->algorithms[c->algorithm]);
  table_text(t, r->groups[c->group].heading);
}

gl_status equal_arms_report(table *to, const results *r, gl_error *err) {
  arena work = {0};
  equal_arms *pair = NULL;
  size_t n = 0;
  gl_status status = equal_arms_find(&pair, &n, r, &work, err);
  if (status == GL_OK && n > 0) {
    table *t = table_rows(table_field(to, "equal_arms"), equal_columns,
                          sizeof equal_columns / sizeof *equal_columns);
    table_title(
        t,
        "%s: arms that are one computation (evaluations, batch rewards and gradient norms of all "
        "common seeds agree bit for bit). Count them once.",
        r->study);
    table_gap(t);
    for (size_t i = 0; i < n; i++) {
      table_row(t);
      put_equal_arm(t, r, pair[i].second);
      put_equal_arm(t, r, pair[i].first);
      table_count(t, pair[i].runs);
    }
  }
  arena_fini(&work);
  return status;
}

/* --- levels --- */

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
