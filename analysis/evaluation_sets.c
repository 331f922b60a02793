/* Best and last scores by evaluation set. */
#include "analysis/evaluation_sets.h"

#include "core/base/array.h"
#include "core/config/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- names of the sets --- */

gl_status sets_names(const char ***names, size_t *n, const results *r, gl_error *err) {
  *n = 0;
  *names = NULL;
  for (size_t i = 0; i < r->n_runs; i++) {
    const results_run *run = &r->runs[i];
    for (size_t k = 0; k < run->n_set_evals; k++) {
      const char *name = run->set_evals[k].set;
      if (text_list_find(*names, *n, name) < *n) continue;
      const char **added = ARRAY_ADD(*names, *n);
      if (!added) {
        free(*names);
        *names = NULL, *n = 0;
        return gl_fail_memory(err, "evaluation sets");
      }
      *added = name;
    }
  }
  return GL_OK;
}

bool sets_have_halves(const results *r) {
  for (size_t i = 0; i < r->n_runs; i++)
    for (size_t k = 0; k < r->runs[i].n_set_evals; k++)
      if (r->runs[i].set_evals[k].half != 0) return true;
  return false;
}

/* --- series --- */

/* Returns the next record of that set and half from *at on, and advances *at; NULL if none is left.
 */
static const set_eval_record *next_of(const results_run *run, const char *set, int half,
                                      size_t *at) {
  while (*at < run->n_set_evals) {
    const set_eval_record *e = &run->set_evals[(*at)++];
    if (e->half == half && strcmp(e->set, set) == 0) return e;
  }
  return NULL;
}

series_ends sets_score_ends(const results_run *run, bool lower_is_better) {
  series_ends e = series_ends_unknown;
  for (size_t i = 0; i < run->n_evals; i++)
    series_ends_add(&e, run->evals[i].eval_score, lower_is_better);
  if (results_run_is_not_finite(run)) series_ends_without_last(&e);
  return e;
}

/* First, best, last and gap of the scores on one half of the problems (half 1 or 2) or on all (half
 * 0); no last and no gap if the run ended non-finite. */
static series_ends ends_of_half(const results_run *run, const char *set, int half,
                                bool lower_is_better) {
  series_ends e = series_ends_unknown;
  size_t at = 0;
  for (const set_eval_record *r; (r = next_of(run, set, half, &at)) != NULL;)
    series_ends_add(&e, r->score, lower_is_better);
  if (results_run_is_not_finite(run)) series_ends_without_last(&e);
  return e;
}

series_ends sets_ends(const results_run *run, const char *set, bool lower_is_better) {
  return ends_of_half(run, set, 0, lower_is_better);
}

series_ends sets_mean_ends(const results_run *run, const char *const *sets, size_t n,
                           bool lower_is_better) {
  series_ends sum = {0};
  const double count = (double)n;
  for (size_t i = 0; i < n; i++) {
    const series_ends e = sets_ends(run, sets[i], lower_is_better);
    sum.first += e.first, sum.best += e.best, sum.last += e.last;
    sum.best_to_last += e.best_to_last;
  }
  return (series_ends){.first = sum.first / count,
                       .best = sum.best / count,
                       .last = sum.last / count,
                       .best_to_last = sum.best_to_last / count};
}

/* Returns the run's evaluations with the mean over these sets as their score, on all problems (half
 * 0) or one half; NaN if a set is missing. NULL if memory runs out. */
static eval_record *mean_evals(arena *to, const results_run *run, const char *const *sets, size_t n,
                               int half) {
  eval_record *out = ARENA_ARRAY(to, eval_record, run->n_evals);
  for (size_t i = 0; out && i < run->n_evals; i++) out[i] = run->evals[i], out[i].eval_score = 0;
  for (size_t s = 0; out && s < n; s++) {
    size_t at = 0;
    const set_eval_record *e = next_of(run, sets[s], half, &at);
    for (size_t i = 0; i < run->n_evals; i++) {
      while (e && e->step < out[i].step) e = next_of(run, sets[s], half, &at);
      out[i].eval_score += e && e->step == out[i].step ? e->score / (double)n : NAN;
    }
  }
  return out;
}

gl_status sets_ends_of_mean(series_ends *ends, const results_run *run, const char *const *sets,
                            size_t n, bool lower_is_better, gl_error *err) {
  *ends = series_ends_unknown;
  arena work = {0};
  const eval_record *mean = mean_evals(&work, run, sets, n, 0);
  gl_status status = arena_check(&work, "evaluation sets", err);
  for (size_t i = 0; status == GL_OK && i < run->n_evals; i++)
    series_ends_add(ends, mean[i].eval_score, lower_is_better);
  if (results_run_is_not_finite(run)) series_ends_without_last(ends);
  arena_fini(&work);
  return status;
}

/* The score on the other half at the evaluation where this half is best (the first, if several are
 * equal). */
static double scored_elsewhere(const results_run *run, const char *set, int half,
                               bool lower_is_better) {
  const int other = 3 - half;
  double best = NAN, score = NAN;
  size_t at = 0, at_other = 0;
  for (const set_eval_record *e; (e = next_of(run, set, half, &at)) != NULL;) {
    if (isnan(e->score) ||
        (!isnan(best) && (lower_is_better ? e->score >= best : e->score <= best)))
      continue;
    const set_eval_record *o;
    while ((o = next_of(run, set, other, &at_other)) != NULL && o->step < e->step) continue;
    if (!o) return NAN;
    if (o->step > e->step) return NAN;
    best = e->score;
    score = o->score;
  }
  return score;
}

series_ends sets_halved_ends(const results_run *run, const char *set, bool lower_is_better) {
  const series_ends a = ends_of_half(run, set, 1, lower_is_better),
                    b = ends_of_half(run, set, 2, lower_is_better);
  series_ends e = {.first = (a.first + b.first) / 2, .last = (a.last + b.last) / 2};
  e.best = (scored_elsewhere(run, set, 1, lower_is_better) +
            scored_elsewhere(run, set, 2, lower_is_better)) /
           2;
  e.best_to_last = lower_is_better ? e.last - e.best : e.best - e.last;
  return e;
}

/* --- using a set as the score --- */

static gl_status refuse_name(const results *r, const char *set, const char *const *names, size_t n,
                             gl_error *err) {
  char list[400] = "", hint[CFG_HINT_SIZE];
  size_t used = 0;
  if (n == 0)
    return gl_fail(err, GL_EINPUT,
                   "the study %s has no evaluation sets; a recipe names them in "
                   "world.evaluation.sets",
                   r->study);
  for (size_t i = 0; i < n && used < sizeof list; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s, ", names[i]);
  return gl_fail(err, GL_EINPUT, "the study %s has no evaluation set '%s'%s; it has %s%s", r->study,
                 set, cfg_hint(set, names, n, hint), list, SETS_MEAN);
}

/* For each evaluation: selects the best one so far on one half (the first, if several are equal),
 * takes its score on the other half, and averages both directions. */
static void follow_bests(double *best_until, const eval_record *const half[2], size_t n) {
  double best[2] = {NAN, NAN}, elsewhere[2] = {NAN, NAN};
  for (size_t i = 0; i < n; i++) {
    for (int h = 0; h < 2; h++) {
      const double score = half[h][i].eval_score;
      if (isnan(score) || score <= best[h]) continue;
      best[h] = score;
      elsewhere[h] = half[1 - h][i].eval_score;
    }
    best_until[i] = (elsewhere[0] + elsewhere[1]) / 2;
  }
}

static bool has_halves_of(const results_run *run, const char *set) {
  for (size_t k = 0; k < run->n_set_evals; k++)
    if (run->set_evals[k].half != 0 && strcmp(run->set_evals[k].set, set) == 0) return true;
  return false;
}

/* Best score up to each evaluation, selected on one half of the problems and scored on the other;
 * NULL if one of the sets has no halves. Allocated in m, which the caller checks. */
static double *bests_by_halves(arena *m, const results_run *run, const char *const *sets,
                               size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!has_halves_of(run, sets[i])) return NULL;
  const eval_record *half[2] = {mean_evals(m, run, sets, n, 1), mean_evals(m, run, sets, n, 2)};
  double *best_until = ARENA_ARRAY(m, double, run->n_evals);
  if (!m->failed) follow_bests(best_until, half, run->n_evals);
  return best_until;
}

gl_status sets_use_halves(results *r, gl_error *err) {
  for (size_t i = 0; i < r->n_runs; i++) {
    results_run *run = &r->runs[i];
    if (run->n_set_evals > 0) /* the first set's score is the run's score */
      run->best_until =
          bests_by_halves(&r->memory, run, (const char *[]){run->set_evals[0].set}, 1);
  }
  return arena_check(&r->memory, "evaluation sets", err);
}

gl_status sets_choose(results *r, const char *set, gl_error *err) {
  const char **names = NULL;
  size_t n = 0;
  gl_status status = sets_names(&names, &n, r, err);
  if (status != GL_OK) return status;
  const bool named = text_list_find(names, n, set) < n;
  if (!named && (n == 0 || strcmp(set, SETS_MEAN) != 0))
    status = refuse_name(r, set, names, n, err);
  const char *const *sets = named ? &set : names;
  for (size_t i = 0; i < r->n_runs && status == GL_OK; i++) {
    results_run *run = &r->runs[i];
    run->evals = mean_evals(&r->memory, run, sets, named ? 1 : n, 0);
    if (run->evals) run->best_until = bests_by_halves(&r->memory, run, sets, named ? 1 : n);
    status = arena_check(&r->memory, "evaluation sets", err);
  }
  free(names);
  return status;
}

/* --- the table of benchmarks --- */

typedef double (*number_of)(const benchmark_score *s);
static double best_of_score(const benchmark_score *s) {
  return s->best;
}
static double last_of_score(const benchmark_score *s) {
  return s->last;
}
static double gap_of_score(const benchmark_score *s) {
  return s->gap;
}

typedef struct filling {
  const benchmark_score *score;
  size_t n;
  double *values; /* [n] scratch */
  gl_error *err;
} filling;

static gl_status iqm_over_seeds(const filling *f, size_t n, uint64_t entity, interval *out) {
  return iqm_bootstrap(f->values, &n, 1, rng_stream_at(BOOTSTRAP_SEED, RNG_BOOTSTRAP, entity), out,
                       f->err);
}

/* Computes one benchmark of one row. entity is the random stream of its bootstrap interval. */
static gl_status fill_cell(const filling *f, const char *row, const char *benchmark, number_of what,
                           uint64_t entity, interval *out) {
  size_t n = 0;
  for (size_t i = 0; i < f->n; i++)
    if (strcmp(f->score[i].row, row) == 0 && strcmp(f->score[i].benchmark, benchmark) == 0)
      f->values[n++] = what(&f->score[i]);
  *out = (interval){NAN, NAN, NAN};
  return n > 0 ? iqm_over_seeds(f, n, entity, out) : GL_OK;
}

/* Average over all benchmarks of the row's run with that seed; NaN if one is missing. */
static double average_of(const filling *f, const benchmarks *b, const char *row, uint64_t seed,
                         number_of what) {
  double sum = 0;
  for (size_t k = 0; k < b->n_benchmarks; k++) {
    size_t i = 0;
    while (i < f->n && !(f->score[i].seed == seed && strcmp(f->score[i].row, row) == 0 &&
                         strcmp(f->score[i].benchmark, b->benchmark[k]) == 0))
      i++;
    sum += i < f->n ? what(&f->score[i]) : NAN;
  }
  return sum / (double)b->n_benchmarks;
}

static gl_status fill_average(const filling *f, const benchmarks *b, size_t r, const interval *of,
                              number_of what, uint64_t entity, interval *out) {
  size_t n = 0;
  for (size_t i = 0; i < f->n; i++) {
    const benchmark_score *s = &f->score[i];
    if (strcmp(s->row, b->row[r]) != 0 || strcmp(s->benchmark, b->benchmark[0]) != 0) continue;
    const double average = average_of(f, b, s->row, s->seed, what);
    if (!isnan(average)) f->values[n++] = average;
  }
  if (n > 0) return iqm_over_seeds(f, n, entity, out);
  double sum = 0;
  for (size_t k = 0; k < b->n_benchmarks; k++) sum += of[r * b->n_benchmarks + k].value;
  *out = (interval){sum / (double)b->n_benchmarks, NAN, NAN};
  return GL_OK;
}

static gl_status fill_benchmarks(benchmarks *b, const filling *f) {
  const struct {
    interval *cells, *averages;
    number_of what;
  } quantities[] = {{b->best, b->average_best, best_of_score},
                    {b->last, b->average_last, last_of_score},
                    {b->gap, b->average_gap, gap_of_score}};
  gl_status status = GL_OK;
  uint64_t entity = 0;
  for (size_t q = 0; q < 3 && status == GL_OK; q++)
    for (size_t r = 0; r < b->n_rows && status == GL_OK; r++) {
      for (size_t k = 0; k < b->n_benchmarks && status == GL_OK; k++)
        status = fill_cell(f, b->row[r], b->benchmark[k], quantities[q].what, entity++,
                           &quantities[q].cells[r * b->n_benchmarks + k]);
      if (status == GL_OK)
        status = fill_average(f, b, r, quantities[q].cells, quantities[q].what, entity++,
                              &quantities[q].averages[r]);
    }
  return status;
}

gl_status benchmarks_init(benchmarks *b, const benchmark_score *score, size_t n, gl_error *err) {
  *b = (benchmarks){0};
  arena *m = &b->memory;
  b->benchmark = ARENA_ARRAY(m, const char *, n);
  b->row = ARENA_ARRAY(m, const char *, n);
  for (size_t i = 0; i < n && !m->failed; i++) {
    text_list_add(b->benchmark, &b->n_benchmarks, score[i].benchmark);
    text_list_add(b->row, &b->n_rows, score[i].row);
  }
  b->best = ARENA_GRID(m, interval, b->n_rows, b->n_benchmarks);
  b->last = ARENA_GRID(m, interval, b->n_rows, b->n_benchmarks);
  b->gap = ARENA_GRID(m, interval, b->n_rows, b->n_benchmarks);
  b->average_best = ARENA_ARRAY(m, interval, b->n_rows);
  b->average_last = ARENA_ARRAY(m, interval, b->n_rows);
  b->average_gap = ARENA_ARRAY(m, interval, b->n_rows);
  const filling f = {score, n, ARENA_ARRAY(m, double, n), err};
  gl_status status = arena_check(m, "a table", err);
  return status == GL_OK ? fill_benchmarks(b, &f) : status;
}

void benchmarks_fini(benchmarks *b) {
  arena_fini(&b->memory);
  *b = (benchmarks){0};
}

/* --- benchmarks as tables --- */

static bool has_intervals(const benchmarks *b) {
  for (size_t i = 0; i < b->n_rows * b->n_benchmarks; i++)
    if (!isnan(b->best[i].low)) return true;
  return false;
}

/* Writes the table with columns "AIME24 best", "AIME24 last", …, "average best", "average last"
 * after the row heading. */
static void put_pairs(table *to, const benchmarks *b, const char *row_head, const char *what) {
  static const char *const ends[] = {"best", "last"};
  const size_t n = 2 * b->n_benchmarks;
  bool gaps = false;
  table_field(to, NULL);
  table *t = table_rows(to, &(table_column)TABLE_HEAD(row_head), 1);
  for (size_t i = 0; i < n + 2; i++) {
    const char *label = i < n ? b->benchmark[i / 2] : "average";
    table_add_column(t, (table_column){.type = TABLE_INTERVAL}, "%s%s%s", label,
                     *label != '\0' ? " " : "", ends[i % 2]);
  }
  for (size_t r = 0; r < b->n_rows; r++) {
    table_row(t);
    table_text(t, b->row[r]);
    for (size_t i = 0; i < b->n_benchmarks; i++) {
      interval_cell(t, b->best[r * b->n_benchmarks + i]);
      interval_cell(t, b->last[r * b->n_benchmarks + i]);
    }
    interval_cell(t, b->average_best[r]);
    interval_cell(t, b->average_last[r]);
    gaps |= isnan(b->average_best[r].value);
  }
  table_title(t, "%s; the average best is the mean of these bests%s%s.", what,
              has_intervals(b) ? ". Interquartile means over seeds with 95 % bootstrap intervals"
                               : "",
              gaps ? "; averages of runs that have all of them" : "");
}

static void put_benchmark_values(table *row, const interval *values, size_t n) {
  table *list = table_list(row);
  for (size_t i = 0; i < n; i++) table_real(table_field(list, ""), values[i].value);
}

static const table_column benchmark_columns[] = {
    TABLE_KEY("run", TABLE_TEXT),          TABLE_KEY("best", TABLE_TABLE),
    TABLE_KEY("last", TABLE_TABLE),        TABLE_KEY("gap", TABLE_TABLE),
    TABLE_KEY("average_best", TABLE_REAL), TABLE_KEY("average_last", TABLE_REAL),
    TABLE_KEY("average_gap", TABLE_REAL)};

void benchmarks_report(table *to, const benchmarks *b, const char *row_head, const char *what) {
  const size_t n = b->n_benchmarks;
  table *o = table_object(table_field(to, "benchmarks"));
  table *labels = table_list(table_field(o, "labels"));
  for (size_t i = 0; i < n; i++) table_text(table_field(labels, ""), b->benchmark[i]);
  table *t = table_rows(table_field(o, "rows"), benchmark_columns,
                        sizeof benchmark_columns / sizeof *benchmark_columns);
  for (size_t r = 0; r < b->n_rows; r++) {
    table_row(t);
    table_text(t, b->row[r]);
    put_benchmark_values(t, b->best + r * n, n);
    put_benchmark_values(t, b->last + r * n, n);
    put_benchmark_values(t, b->gap + r * n, n);
    table_real(t, b->average_best[r].value);
    table_real(t, b->average_last[r].value);
    table_real(t, b->average_gap[r].value);
  }
  put_pairs(to, b, row_head, what);
}
