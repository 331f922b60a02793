/* The table of benchmarks. */
#include "analysis/benchmarks.h"

#include "analysis/text_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Seed of the bootstrap: results are those of the data, so one constant serves. */
static const uint64_t BOOTSTRAP_SEED = 1;

/* --- numbers --- */

typedef double (*number_of)(const benchmark_score *s);
static double best_of(const benchmark_score *s) {
  return s->best;
}
static double last_of(const benchmark_score *s) {
  return s->last;
}
static double gap_of(const benchmark_score *s) {
  return s->gap;
}

typedef struct filling {
  const benchmark_score *score;
  size_t n;
  double *values; /* [n] scratch */
  gl_error *err;
} filling;

static gl_status over_seeds(const filling *f, size_t n, uint64_t entity, interval *out) {
  return iqm_bootstrap(f->values, &n, 1, rng_stream_at(BOOTSTRAP_SEED, RNG_BOOTSTRAP, entity), out,
                       f->err);
}

/* One benchmark of one row. entity names the draws of its interval. */
static gl_status fill_cell(const filling *f, const char *row, const char *benchmark, number_of what,
                           uint64_t entity, interval *out) {
  size_t n = 0;
  for (size_t i = 0; i < f->n; i++)
    if (strcmp(f->score[i].row, row) == 0 && strcmp(f->score[i].benchmark, benchmark) == 0)
      f->values[n++] = what(&f->score[i]);
  *out = (interval){NAN, NAN, NAN};
  return n > 0 ? over_seeds(f, n, entity, out) : GL_OK;
}

/* The average over all benchmarks of the row's run with that seed; NaN where it lacks one. */
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
  if (n > 0) return over_seeds(f, n, entity, out);
  double sum = 0;
  for (size_t k = 0; k < b->n_benchmarks; k++) sum += of[r * b->n_benchmarks + k].value;
  *out = (interval){sum / (double)b->n_benchmarks, NAN, NAN};
  return GL_OK;
}

static gl_status fill(benchmarks *b, const filling *f) {
  const struct {
    interval *cells, *averages;
    number_of what;
  } quantities[] = {{b->best, b->average_best, best_of},
                    {b->last, b->average_last, last_of},
                    {b->gap, b->average_gap, gap_of}};
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
  *b = (benchmarks){.benchmark = calloc(n + 1, sizeof *b->benchmark),
                    .row = calloc(n + 1, sizeof *b->row)};
  if (!b->benchmark || !b->row) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < n; i++) {
    text_list_add(b->benchmark, &b->n_benchmarks, score[i].benchmark);
    text_list_add(b->row, &b->n_rows, score[i].row);
  }
  const size_t cells = b->n_rows * b->n_benchmarks + 1;
  b->best = calloc(cells, sizeof *b->best), b->last = calloc(cells, sizeof *b->last);
  b->gap = calloc(cells, sizeof *b->gap);
  b->average_best = calloc(b->n_rows + 1, sizeof *b->average_best);
  b->average_last = calloc(b->n_rows + 1, sizeof *b->average_last);
  b->average_gap = calloc(b->n_rows + 1, sizeof *b->average_gap);
  filling f = {score, n, calloc(n + 1, sizeof *f.values), err};
  gl_status status = b->best && b->last && b->gap && b->average_best && b->average_last &&
                             b->average_gap && f.values
                         ? fill(b, &f)
                         : gl_fail_memory(err, "a table");
  free(f.values);
  return status;
}

void benchmarks_fini(benchmarks *b) {
  free(b->benchmark), free(b->row), free(b->best), free(b->last), free(b->gap);
  free(b->average_best), free(b->average_last), free(b->average_gap);
  *b = (benchmarks){0};
}

/* --- tables --- */

static bool has_intervals(const benchmarks *b) {
  for (size_t i = 0; i < b->n_rows * b->n_benchmarks; i++)
    if (!isnan(b->best[i].low)) return true;
  return false;
}

/* "AIME24 best", "AIME24 last", …, "average best", "average last" behind the row's head. */
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
