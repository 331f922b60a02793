/* Compares declared arms of a study, paired by seed. */
#include "analysis/contrasts.h"

#include "analysis/outcome.h"
#include "analysis/paired_tests.h"
#include "analysis/statistics.h"
#include "analysis/summary.h"
#include "core/base/arena.h"
#include "core/base/records.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char *const contrast_measure_names[CONTRAST_MEASURES] = {
    [CONTRAST_COLLAPSE] = "fall",
    [CONTRAST_LAST] = "last",
    [CONTRAST_LATE_COLLAPSE] = "late_fall",
    [CONTRAST_LAST_LEVEL] = "last_level",
    [CONTRAST_BEST_TO_LAST] = "best_to_last",
    [CONTRAST_BELOW_START] = "below_start"};

static const char *const contrast_origin_names[CONTRAST_ORIGINS] = {"unknown", "before the runs",
                                                                    "after the runs"};

static const double LEVEL = 0.05, POWER = 0.8;
enum { BISECTIONS = 60 };

/* --- power --- */

/* Power analysis: the fraction d of pairs that must differ, all in one direction, for the test to
 * reject with the required probability. */
static double detectable(size_t pairs, size_t contrasts) {
  size_t enough = 1;
  while (enough <= pairs && mcnemar_exact(enough, 0) * (double)contrasts > LEVEL) enough++;
  if (enough > pairs) return NAN;
  double low = 0, high = 1;
  for (int i = 0; i < BISECTIONS; i++) {
    const double d = (low + high) / 2;
    *(gsl_cdf_binomial_Q((unsigned)enough - 1, d, (unsigned)pairs) < POWER ? &low : &high) = d;
  }
  return high;
}

/* --- arms --- */

bool contrast_knows(const results *r, const char *path) {
  return strcmp(path, "algorithm") == 0 || results_axis(r, path) < r->axes.n;
}

static gl_status check_path(const results *r, const contrast *c, const char *path, gl_error *err) {
  if (contrast_knows(r, path)) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "the contrast '%s' names %s, in which the runs of %s do not differ; they differ "
                 "in %s",
                 c->name, path, r->study, *r->axis_label != '\0' ? r->axis_label : "the algorithm");
}

static bool has_value(const results *r, const results_run *run, const contrast_field *f) {
  if (strcmp(f->path, "algorithm") == 0)
    return strcmp(r->algorithms[run->algorithm], f->value) == 0;
  const axis_value v = r->groups[run->group].value[results_axis(r, f->path)];
  char *end = NULL;
  const double number = strtod(f->value, &end);
  if (*f->value != '\0' && *end == '\0' && isfinite(v.number)) return v.number == number;
  return v.text != NULL && strcmp(v.text, f->value) == 0;
}

bool contrast_arm_has(const results *r, const results_run *run, const contrast_arm *a) {
  for (size_t i = 0; i < a->n; i++)
    if (!has_value(r, run, &a->field[i])) return false;
  return true;
}

static bool is_same_value_text(const char *a, const char *b) {
  double x, y;
  return strcmp(a, b) == 0 || (csv_number(a, &x) && csv_number(b, &y) && x == y);
}

/* Fields may come in any order. */
static bool is_same_arm(const contrast_arm *a, const contrast_arm *b) {
  if (a->n != b->n) return false;
  for (size_t i = 0; i < a->n; i++) {
    size_t k = 0;
    while (k < b->n && (strcmp(a->field[i].path, b->field[k].path) != 0 ||
                        !is_same_value_text(a->field[i].value, b->field[k].value)))
      k++;
    if (k == b->n) return false;
  }
  return true;
}

bool contrast_is_same(const contrast *a, const contrast *b) {
  return a->measure == b->measure && is_same_arm(&a->of, &b->of) &&
         is_same_arm(&a->against, &b->against);
}

static bool is_in_arm(const results *r, const results_run *run, const contrast_arm *a) {
  return run->status != RUN_FAILED && contrast_arm_has(r, run, a);
}

bool contrast_has_run(const results *r, const contrast_field *f) {
  size_t k = 0;
  while (k < r->n_runs && !has_value(r, &r->runs[k], f)) k++;
  return k < r->n_runs;
}

/* Rejects a value that no run has; it is most likely misspelt. */
static gl_status check_values(const results *r, const contrast *c, const contrast_arm *a,
                              gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < a->n && status == GL_OK; i++) {
    status = check_path(r, c, a->field[i].path, err);
    if (status == GL_OK && !contrast_has_run(r, &a->field[i]))
      status = gl_fail(err, GL_EINPUT, "the contrast '%s': no run of %s has %s = %s", c->name,
                       r->study, a->field[i].path, a->field[i].value);
  }
  return status;
}

/* An arm must be a single cell, so that it has at most one run per seed. */
static gl_status check_arm(const results *r, const contrast *c, const contrast_arm *a,
                           gl_error *err) {
  gl_status status = check_values(r, c, a, err);
  const results_run *first = NULL;
  for (size_t i = 0; i < r->n_runs && status == GL_OK; i++) {
    const results_run *run = &r->runs[i];
    if (!is_in_arm(r, run, a)) continue;
    if (first == NULL) first = run;
    if (run->algorithm != first->algorithm)
      return gl_fail(err, GL_EINPUT,
                     "the contrast '%s' has an arm with several algorithms, %s and %s; state one",
                     c->name, r->algorithms[first->algorithm], r->algorithms[run->algorithm]);
    if (run->group != first->group)
      return gl_fail(err, GL_EINPUT,
                     "the contrast '%s' has an arm with several settings, (%s) and (%s); state "
                     "more fields",
                     c->name, r->groups[first->group].heading, r->groups[run->group].heading);
  }
  if (status == GL_OK && first == NULL)
    return gl_fail(err, GL_EINPUT, "the contrast '%s' has an arm without a run", c->name);
  return status;
}

static const results_run *arm_run_of_seed(const results *r, const contrast_arm *a, uint64_t seed) {
  for (size_t i = 0; i < r->n_runs; i++)
    if (r->runs[i].seed == seed && is_in_arm(r, &r->runs[i], a)) return &r->runs[i];
  return NULL;
}

/* --- comparing --- */

/* Whether the measure of a run is yes or no; other measures are scores or fractions. */
static bool is_collapse(contrast_measure m) {
  return m == CONTRAST_COLLAPSE || m == CONTRAST_LATE_COLLAPSE;
}

/* Whether a measure is in units of the score, so that it makes sense where lower is better. */
static bool is_score(contrast_measure m) {
  return m == CONTRAST_LAST || m == CONTRAST_LAST_LEVEL;
}

/* The measure of one run; 1 and 0 for yes and no. NaN: the run has no score at its end. */
static double measure_of(const results_run *run, contrast_measure m) {
  const outcome_rule rule = outcome_rule_default();
  const run_outcome o = outcome_of_run(run, &rule);
  switch (m) {
  case CONTRAST_COLLAPSE:
    return run_outcome_is_collapse(&o);
  case CONTRAST_LATE_COLLAPSE:
    return run_outcome_class(&o) == RUN_CLASS_LATE_COLLAPSE;
  case CONTRAST_LAST:
    return o.last;
  case CONTRAST_LAST_LEVEL:
    return run_level_of(run).last;
  case CONTRAST_BEST_TO_LAST:
    return run_level_of(run).best_to_last;
  case CONTRAST_BELOW_START:
    return run_level_of(run).below_start;
  case CONTRAST_MEASURES:
    break;
  }
  return NAN;
}

typedef struct pairing {
  double *of, *against; /* [n] the measure in the two arms, by pair */
  size_t n, unpaired, without_value;
  arena memory;
} pairing;

/* Pairs the runs of the two arms that have the same seed. Counts the runs without a partner, and
 * the pairs that are left out because a run has no value. */
static gl_status pair_runs(pairing *p, const results *r, const contrast *c, gl_error *err) {
  p->of = ARENA_ARRAY(&p->memory, double, r->n_runs);
  p->against = ARENA_ARRAY(&p->memory, double, r->n_runs);
  gl_status status = arena_check(&p->memory, "the pairs", err);
  if (status != GL_OK) return status;
  for (size_t i = 0; i < r->n_runs; i++) {
    const results_run *run = &r->runs[i];
    const int in_of = is_in_arm(r, run, &c->of), in_against = is_in_arm(r, run, &c->against);
    if (in_of && in_against)
      return gl_fail(err, GL_EINPUT, "the contrast '%s' has the same runs in both arms", c->name);
    if (in_against) p->unpaired += arm_run_of_seed(r, &c->of, run->seed) == NULL;
    if (!in_of) continue;
    const results_run *other = arm_run_of_seed(r, &c->against, run->seed);
    if (other == NULL) {
      p->unpaired++;
      continue;
    }
    const double of = measure_of(run, c->measure), against = measure_of(other, c->measure);
    if (isnan(of) || isnan(against)) {
      p->without_value++;
      continue;
    }
    p->of[p->n] = of;
    p->against[p->n++] = against;
  }
  if (p->n + p->without_value == 0)
    return gl_fail(err, GL_EINPUT, "the arms of the contrast '%s' have no seed in common", c->name);
  return GL_OK;
}

static void compare_collapses(const pairing *p, contrast_result *out) {
  size_t both = 0, neither = 0;
  for (size_t i = 0; i < p->n; i++) {
    const bool of = p->of[i] != 0, against = p->against[i] != 0;
    both += (size_t)(of && against);
    neither += (size_t)(!of && !against);
    out->only_of += (size_t)(of && !against);
    out->only_against += (size_t)(!of && against);
  }
  out->of = (double)(both + out->only_of) / (double)p->n;
  out->against = (double)(both + out->only_against) / (double)p->n;
  out->difference = paired_fractions(both, out->only_of, out->only_against, neither);
  out->p = mcnemar_exact(out->only_of, out->only_against);
}

/* Compares scores or fractions by the signed-rank test and the interquartile mean of the
 * differences. */
static gl_status compare_levels(pairing *p, size_t which, contrast_result *out, gl_error *err) {
  double *difference = ARENA_ARRAY(&p->memory, double, p->n);
  if (difference == NULL) return gl_fail_memory(err, "the pairs");
  for (size_t i = 0; i < p->n; i++) {
    difference[i] = p->of[i] - p->against[i];
    out->only_of += difference[i] > 0;
    out->only_against += difference[i] < 0;
  }
  gl_status status = signed_rank_exact(difference, p->n, &out->p, err);
  const rng_stream stream = rng_stream_at(1, RNG_BOOTSTRAP, UINT64_C(12) << 60 | which);
  if (status == GL_OK) status = iqm_bootstrap(difference, &p->n, 1, stream, &out->difference, err);
  out->of = sample_iqm(p->of, sample_sort(p->of, p->n));
  out->against = sample_iqm(p->against, sample_sort(p->against, p->n));
  return status;
}

static const contrast_result nothing_compared = {
    .of = NAN, .against = NAN, .difference = {NAN, NAN, NAN}, .p = 1, .detectable = NAN};

static gl_status compare_arms(const results *r, const contrast *c, size_t which,
                              contrast_result *out, gl_error *err) {
  pairing p = {0};
  gl_status status = check_arm(r, c, &c->of, err);
  if (status == GL_OK) status = check_arm(r, c, &c->against, err);
  if (status == GL_OK) status = pair_runs(&p, r, c, err);
  *out = nothing_compared;
  out->pairs = p.n;
  out->unpaired = p.unpaired;
  out->without_value = p.without_value;
  if (status == GL_OK && is_collapse(c->measure))
    compare_collapses(&p, out);
  else if (status == GL_OK && p.n > 0)
    status = compare_levels(&p, which, out, err);
  arena_fini(&p.memory);
  return status;
}

static const results_run *any_run(const results *r, const contrast_arm *a) {
  for (size_t i = 0; i < a->n; i++)
    if (!contrast_knows(r, a->field[i].path)) return NULL;
  for (size_t i = 0; i < r->n_runs; i++)
    if (is_in_arm(r, &r->runs[i], a)) return &r->runs[i];
  return NULL;
}

/* Whether the contrast may wait and no seed has runs of both arms yet. */
static bool has_to_wait(const results *r, const contrast *c) {
  if (!c->may_wait) return false;
  if (any_run(r, &c->of) == NULL || any_run(r, &c->against) == NULL) return true;
  for (size_t i = 0; i < r->n_runs; i++)
    if (is_in_arm(r, &r->runs[i], &c->of) &&
        arm_run_of_seed(r, &c->against, r->runs[i].seed) != NULL)
      return false;
  return true;
}

gl_status contrasts_find(const results *from, const contrast *contrasts, size_t n,
                         contrast_result *out, gl_error *err) {
  arena work = {0};
  double *p = ARENA_GRID(&work, double, 2, n);
  gl_status status = arena_check(&work, "the contrasts", err);
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    if (from->lower_is_better && !is_score(contrasts[i].measure))
      status = gl_fail(err, GL_EINPUT,
                       "the contrast '%s' compares %s, which is defined for scores that are better "
                       "when higher",
                       contrasts[i].name, contrast_measure_names[contrasts[i].measure]);
    if (has_to_wait(from, &contrasts[i]))
      out[i] = nothing_compared;
    else if (status == GL_OK)
      status = compare_arms(from, &contrasts[i], i, &out[i], err);
    if (status == GL_OK) p[i] = out[i].p;
  }
  if (status == GL_OK) status = holm_adjust(p, n, p + n, err);
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    out[i].holm = p[n + i];
    if (is_collapse(contrasts[i].measure)) out[i].detectable = detectable(out[i].pairs, n);
  }
  arena_fini(&work);
  return status;
}

/* --- the table --- */

static void put_arm(table *t, const contrast_arm *a) {
  table *fields = table_object(t);
  for (size_t i = 0; i < a->n; i++)
    table_text(table_field(fields, a->field[i].path), a->field[i].value);
}

static const table_column contrast_columns[] = {
    {"name", TABLE_TEXT, .head = "contrast"},
    {"measure", TABLE_TEXT, .head = "measure"},
    {"written", TABLE_TEXT, .head = "written"},
    TABLE_KEY("arm_of", TABLE_TABLE),
    TABLE_KEY("arm_against", TABLE_TABLE),
    {"difference", TABLE_INTERVAL, .head = "difference", .order = 1},
    {"pairs", TABLE_INTEGER, .head = "pairs"},
    TABLE_KEY("unpaired", TABLE_INTEGER),
    TABLE_KEY("without_value", TABLE_INTEGER),
    {"of", TABLE_REAL, .head = "of"},
    {"against", TABLE_REAL, .head = "against"},
    {"only_of", TABLE_INTEGER, .head = "only of", .order = 1},
    {"only_against", TABLE_INTEGER, .head = "only against", .order = 1},
    {"p", TABLE_REAL, .head = "p", .format = "%.2g", .order = 1},
    {"holm", TABLE_REAL, .head = "Holm", .format = "%.2g", .order = 1},
    {"detectable", TABLE_REAL, .head = "detectable", .order = 1}};

/* Writes how many runs have fewer evaluations than a level has; "" if none. Returns text. */
static const char *says_few(char *text, size_t size, const results *r) {
  const size_t runs = runs_with_fewer(r, OUTCOME_LEVEL);
  *text = '\0';
  if (runs > 0)
    snprintf(text, size, "Runs with fewer than %d evaluations: %zu. ", (int)OUTCOME_LEVEL, runs);
  return text;
}

static void put_pair_counts(table *t, const contrast_result *f) {
  char unpaired[40] = "", without_value[40] = "";
  if (f->unpaired > 0) snprintf(unpaired, sizeof unpaired, " (%zu without)", f->unpaired);
  if (f->without_value > 0)
    snprintf(without_value, sizeof without_value, " (%zu no value)", f->without_value);
  table_count(t, f->pairs);
  table_shown(t, "%zu%s%s", f->pairs, unpaired, without_value);
  table_count(t, f->unpaired);
  table_count(t, f->without_value);
}

void contrasts_report(table *to, const results *from, const contrast *contrasts,
                      const contrast_result *found, size_t n) {
  table_text(table_field(to, "study"), from->study);
  char few[80];
  size_t later = 0;
  for (size_t i = 0; i < n; i++) later += contrasts[i].origin == CONTRAST_AFTERWARDS;
  table *t = table_rows(table_field(to, "contrasts"), contrast_columns,
                        sizeof contrast_columns / sizeof *contrast_columns);
  table_title(t,
              "%s: contrasts, paired by seed%s. fall: fractions that collapsed, late_fall: that "
              "collapsed late and did not recover, McNemar's exact test, Newcombe's 95 %% "
              "interval; last: interquartile means of last scores, last_level: of means of the "
              "last %d evaluations (of all, if there are fewer), best_to_last: of the highest such "
              "mean less the last, "
              "below_start: of the fraction of evaluations below the first, Wilcoxon's exact "
              "signed-rank test, bootstrap (of fewer than five pairs the range). "
              "No value: a run of the pair is not finite at its end. It counts as fallen, and has "
              "no score, so that the pair is in none of the other measures. %s"
              "Holm: p adjusted over all %zu. "
              "Detectable: the fraction of pairs that differ, all in one direction, that is found "
              "with probability %.1f.",
              from->study,
              later > 0 ? "; those written after the runs are exploratory, for they may have been "
                          "chosen by what was found"
                        : "",
              (int)OUTCOME_LEVEL, says_few(few, sizeof few, from), n, POWER);
  for (size_t i = 0; i < n; i++) {
    const contrast_result *f = &found[i];
    table_row(t);
    table_text(t, contrasts[i].name);
    table_text(t, contrast_measure_names[contrasts[i].measure]);
    table_text(t, contrast_origin_names[contrasts[i].origin]);
    put_arm(t, &contrasts[i].of);
    put_arm(t, &contrasts[i].against);
    interval_cell(t, f->difference);
    put_pair_counts(t, f);
    table_real(t, f->of);
    table_real(t, f->against);
    table_count(t, f->only_of);
    table_count(t, f->only_against);
    table_real(t, f->p);
    table_real(t, f->holm);
    table_real(t, f->detectable);
  }
}

/* --- arms --- */

/* Arms of a study: which arms compute the same runs, and at which levels their runs end. */

/* --- equal arms --- */

static bool is_same_number(double a, double b) {
  return memcmp(&a, &b, sizeof a) == 0;
}

/* Whether two runs have the same evaluations and, update by update, the same batch reward and
 * gradient norm. The loss is not compared, because it is rounded differently. False for runs
 * without updates. */
static bool runs_are_equal(const results_run *a, const results_run *b) {
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
                                             {"runs", TABLE_INTEGER, .head = "runs"}};

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

/* The quantities of a run: the LEVEL_NUMBERS members of run_level, then the end_metrics. */
enum { LEVEL_NUMBERS = 3 };
static const metric end_metrics[] = {METRIC_PASS_AT_G, METRIC_DISTINCT_RIGHT, METRIC_ENTROPY,
                                     METRIC_LOG_RATIO_NEGATIVE, METRIC_LOG_RATIO_POSITIVE};
enum { QUANTITIES = LEVEL_NUMBERS + sizeof end_metrics / sizeof *end_metrics };

static const table_column level_columns[] = {
    {"algorithm", TABLE_TEXT, .head = "algorithm"},
    {"setting", TABLE_TEXT, .head = "setting"},
    {"runs", TABLE_INTEGER, .head = "runs"},
    TABLE_KEY("not_finite", TABLE_INTEGER),
    {"last_level", TABLE_INTERVAL, .head = "last", .order = 3},
    {"best_to_last", TABLE_INTERVAL, .head = "best − last", .order = 3},
    {"below_start", TABLE_INTERVAL, .head = "below start", .order = 3},
    {"pass_at_g", TABLE_INTERVAL, .head = "pass@G", .order = 3},
    {"distinct_right", TABLE_INTERVAL, .head = "different right", .order = 3},
    {"entropy", TABLE_INTERVAL, .head = "entropy", .order = 3},
    {"log_ratio_negative", TABLE_INTERVAL, .head = "log-ratio, A < 0", .order = 4},
    {"log_ratio_positive", TABLE_INTERVAL, .head = "log-ratio, A > 0", .order = 4}};

static void quantities_of(const results_run *run, double *scratch, double value[QUANTITIES]) {
  const run_level level = run_level_of(run);
  const int64_t end = run->n_steps > 0 ? run->steps[run->n_steps - 1].step : 0;
  value[0] = level.last;
  value[1] = level.best_to_last;
  value[2] = level.below_start;
  for (size_t i = 0; LEVEL_NUMBERS + i < QUANTITIES; i++)
    value[LEVEL_NUMBERS + i] =
        summary_run_metric(run, end_metrics[i], end - end / 10, end, scratch);
}

/* Writes the row of a cell. values: [QUANTITIES][runs of the cell], scratch. */
static gl_status put_levels(table *t, const results *r, size_t cell, double *values,
                            double *scratch, gl_error *err) {
  const results_cell *c = &r->cells[cell];
  size_t n = 0, not_finite = 0;
  gl_status status = GL_OK;
  for (size_t i = 0; i < c->n; i++) {
    double value[QUANTITIES];
    if (r->runs[c->first + i].status == RUN_FAILED) continue;
    not_finite += results_run_is_not_finite(&r->runs[c->first + i]);
    quantities_of(&r->runs[c->first + i], scratch, value);
    for (size_t q = 0; q < QUANTITIES; q++) values[q * c->n + n] = value[q];
    n++;
  }
  table_row(t);
  table_text(t, r->algorithms[c->algorithm]);
  table_text(t, r->groups[c->group].heading);
  table_count(t, n);
  if (not_finite > 0) table_shown(t, "%zu (%zu not finite)", n, not_finite);
  table_count(t, not_finite);
  for (size_t q = 0; q < QUANTITIES && status == GL_OK; q++) {
    interval v = {NAN, NAN, NAN};
    size_t known = sample_sort(values + q * c->n, n);
    /* random stream of the interval: the first six quantities keep the numbers of earlier versions,
     * so that their intervals do not change; there are at most eight */
    const uint64_t of = q < 6 ? cell * 6 + q : UINT64_C(1) << 40 | cell << 1 | (q - 6);
    const rng_stream stream = rng_stream_at(1, RNG_BOOTSTRAP, UINT64_C(15) << 60 | of);
    if (known > 0) status = iqm_bootstrap(values + q * c->n, &known, 1, stream, &v, err);
    interval_cell(t, v);
  }
  return status;
}

gl_status levels_report(table *to, const results *r, gl_error *err) {
  arena work = {0};
  char few[80];
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
                "fewer than five runs the range). last: mean of the last %d evaluations (of all, "
                "if there are fewer); best − last: highest mean of %d in a row less that; below "
                "start: fraction of evaluations "
                "below the first; pass@G, different right responses of a group, entropy of a token "
                "and log-ratios (logp − logq of tokens) [nats]: means over the last tenth of the "
                "updates. %sRuns that are not finite at their end have no levels.",
                r->study, (int)OUTCOME_LEVEL, (int)OUTCOME_LEVEL, says_few(few, sizeof few, r));
    table_gap(t);
    for (size_t k = 0; k < r->n_groups * r->n_algorithms && status == GL_OK; k++)
      if (r->cells[k].n > 0) status = put_levels(t, r, k, values, scratch, err);
  }
  arena_fini(&work);
  return status;
}
