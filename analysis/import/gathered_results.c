/* Builds results from gathered series and studies. */
#include "analysis/import/gather.h"

#include "core/base/array.h"
#include "core/base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STALENESS = 1 << 20 };

/* --- the series of one run --- */

typedef struct item {
  const gathered_series *of;
  size_t place; /* position in the order of the files */
} item;

static int compare_runs(const gathered_series *x, const gathered_series *y) {
  int order = strcmp(x->label_path, y->label_path);
  if (order == 0) order = strcmp(x->label, y->label);
  if (order == 0) order = strcmp(x->name, y->name);
  if (order == 0) order = strcmp(x->settings, y->settings);
  if (order == 0) order = strcmp(x->chosen, y->chosen);
  if (order == 0) order = (x->seed > y->seed) - (x->seed < y->seed);
  return order;
}

static int compare_items(const void *a, const void *b) {
  const item *x = a, *y = b;
  const int order = compare_runs(x->of, y->of);
  return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* The items [first, first + n) belong to one run. */
typedef struct run_items {
  size_t first, n;
  size_t place; /* position of its first series */
} run_items;

static int compare_places(const void *a, const void *b) {
  const run_items *x = a, *y = b;
  return (x->place > y->place) - (x->place < y->place);
}

/* --- a run's records --- */

static bool is_time(const gathered_series *s) {
  return strcmp(s->metric, "time_s") == 0;
}

static bool is_wait(const gathered_series *s) {
  return strcmp(s->metric, "wait_s") == 0;
}

static bool is_kept_series(const gathered_series *s) {
  return s->what.known < METRIC_COUNT || s->what.is_score;
}

static gl_status check_integer_steps(const gathered_series *s, gl_error *err) {
  for (size_t i = 0; i < s->n + s->n_nan; i++) {
    const double step = i < s->n ? s->step[i] : s->nan_step[i - s->n];
    if (step != floor(step) || fabs(step) > 9e15)
      return gl_fail(err, GL_EINPUT,
                     "%s: step %g of the run '%s' is not a whole number of updates, which figures "
                     "count; name the column that is: --x COLUMN",
                     s->file, step, s->run);
  }
  return GL_OK;
}

/* Returns the value at a step, NaN if there is none. *at is the start of the search and is
 * advanced, for ascending steps. */
static double value_at_step(const gathered_series *s, int64_t step, size_t *at) {
  while (*at < s->n && (int64_t)s->step[*at] < step) ++*at;
  return *at < s->n && (int64_t)s->step[*at] == step ? s->value[*at] : NAN;
}

/* Returns the distinct steps of all series accepted by `takes`, ascending, *n_out of them, with
 * those at which a score is NaN; NULL if m has failed. */
static int64_t *union_of_steps(arena *m, const item *items, size_t n,
                               bool (*takes)(const gathered_series *s), size_t *n_out) {
  size_t room = 0, used = 0;
  for (size_t i = 0; i < n; i++)
    room += takes(items[i].of) ? items[i].of->n + items[i].of->n_nan : 0;
  int64_t *step = ARENA_ARRAY(m, int64_t, room);
  *n_out = 0;
  if (!step) return NULL;
  for (size_t i = 0; i < n; i++)
    if (takes(items[i].of)) {
      const gathered_series *s = items[i].of;
      for (size_t k = 0; k < s->n; k++) step[used++] = (int64_t)s->step[k];
      for (size_t k = 0; k < s->n_nan; k++)
        if (s->what.is_score && s->nan_step[k] <= s->end) step[used++] = (int64_t)s->nan_step[k];
    }
  qsort(step, used, sizeof *step, order_signed);
  for (size_t i = 0; i < used; i++)
    if (*n_out == 0 || step[*n_out - 1] != step[i]) step[(*n_out)++] = step[i];
  return step;
}

static bool is_of_updates(const gathered_series *s) {
  return s->what.known < METRIC_COUNT && !s->what.is_score;
}

static bool is_score_series(const gathered_series *s) {
  return s->what.is_score;
}

/* The metric that is the natural logarithm of m; METRIC_COUNT if there is none. */
static metric logarithm_of(metric m) {
  char name[64];
  snprintf(name, sizeof name, "log_%s", metric_about(m)->name);
  return metric_find(name);
}

static void fill_metric(step_record *steps, size_t n, const gathered_series *s) {
  const metric m = s->what.known, log_m = logarithm_of(m);
  for (size_t i = 0, at = 0; i < n; i++) {
    const double value = value_at_step(s, steps[i].step, &at);
    if (isnan(value)) continue;
    steps[i].metric[m] = value;
    if (log_m < METRIC_COUNT && isnan(steps[i].metric[log_m]))
      steps[i].metric[log_m] = value > 0 ? log(value) : -INFINITY;
  }
}

static void fill_times(run_record *run, step_record *steps, eval_record *evals, const item *items,
                       size_t n) {
  for (size_t k = 0; k < n; k++) {
    const gathered_series *s = items[k].of;
    size_t at = 0;
    for (size_t i = 0; i < run->n_steps && is_time(s); i++)
      steps[i].time_s = value_at_step(s, steps[i].step, &at);
    at = 0;
    for (size_t i = 0; i < run->n_steps && is_wait(s); i++)
      steps[i].wait_s = value_at_step(s, steps[i].step, &at);
    at = 0;
    for (size_t i = 0; i < run->n_evals && is_time(s); i++)
      evals[i].time_s = value_at_step(s, evals[i].step, &at);
  }
}

static gl_status refuse_same_metric(const item *items, size_t n, gl_error *err) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < i; k++) {
      const gathered_series *a = items[k].of, *b = items[i].of;
      if (is_of_updates(a) && is_of_updates(b) && a->what.known == b->what.known)
        return gl_fail(err, GL_EINPUT,
                       "%s: '%s' and '%s' of the run '%s' are both read as %s; say what one of "
                       "them is, for example --read-as '^%s$=other'",
                       b->file, a->metric, b->metric, b->run, metric_about(a->what.known)->name,
                       b->metric);
    }
  return GL_OK;
}

static step_record *make_steps(arena *m, const item *items, size_t n, size_t *n_steps) {
  const int64_t *step = union_of_steps(m, items, n, is_of_updates, n_steps);
  step_record *steps = ARENA_ARRAY(m, step_record, *n_steps);
  if (!steps) return NULL;
  for (size_t i = 0; i < *n_steps; i++) {
    steps[i] = (step_record){.step = step[i], .time_s = NAN, .wait_s = NAN};
    metrics_clear(steps[i].metric);
  }
  for (size_t k = 0; k < n; k++)
    if (is_of_updates(items[k].of)) fill_metric(steps, *n_steps, items[k].of);
  return steps;
}

static eval_record *make_evals(arena *m, const item *items, size_t n, size_t *n_evals) {
  const int64_t *step = union_of_steps(m, items, n, is_score_series, n_evals);
  eval_record *evals = ARENA_ARRAY(m, eval_record, *n_evals);
  for (size_t k = 0; evals && k < n; k++)
    for (size_t i = 0, at = 0; is_score_series(items[k].of) && i < *n_evals; i++)
      evals[i] = (eval_record){step[i], NAN, value_at_step(items[k].of, step[i], &at)};
  return evals;
}

/* Counts each staleness value; NULL if one is not an integer. */
static uint64_t *make_histogram(arena *m, const step_record *steps, size_t n_steps, size_t *n) {
  double largest = -1;
  *n = 0;
  for (size_t i = 0; i < n_steps; i++) {
    const double v = steps[i].metric[METRIC_STALENESS];
    if (isnan(v)) continue;
    if (!(v >= 0 && v < MOST_STALENESS) || v != floor(v)) return NULL;
    largest = fmax(largest, v);
  }
  if (largest < 0) return NULL;
  uint64_t *count = ARENA_ARRAY(m, uint64_t, (size_t)largest + 1);
  *n = count ? (size_t)largest + 1 : 0;
  for (size_t i = 0; count && i < n_steps; i++) {
    const double v = steps[i].metric[METRIC_STALENESS];
    if (!isnan(v)) count[(size_t)v]++;
  }
  return count;
}

/* --- runs --- */

#define NOT_MEASURED(name, unit, meaning) NAN,
static const clock_record no_clock = {CLOCK_RECORD(NOT_MEASURED)};

/* Adds a label to the fields of a run; a number if the field is numeric. */
static int add_label(cJSON *to, const char *path, const char *label) {
  char *end = NULL;
  const double number = strtod(label, &end);
  if (!*label) return 1;
  if (strcmp(path, RESULTS_LABEL) != 0 && *end == '\0' && isfinite(number))
    return json_add_number(to, path, number) != NULL;
  return json_add_string(to, path, label) != NULL;
}

/* Returns a run's settings with its label, as JSON of a sweep's fields; NULL if memory runs out. */
static char *swept_of(const gathered_series *s) {
  cJSON *o = *s->settings ? json_tree_of(s->settings) : cJSON_CreateObject();
  char *text = o && add_label(o, s->label_path, s->label) ? cJSON_PrintUnformatted(o) : NULL;
  cJSON_Delete(o);
  return text;
}

static double rate_of(const char *chosen) {
  cJSON *o = *chosen ? json_tree_of(chosen) : NULL;
  const cJSON *rate = o ? cJSON_GetObjectItemCaseSensitive(o, "optimizer.lr") : NULL;
  const double value = cJSON_IsNumber(rate) ? rate->valuedouble : NAN;
  cJSON_Delete(o);
  return value;
}

/* Adds the run that these series belong to, unless all are left out. Of its recipe only the tuned
 * fields are known (`chosen`: the learning rate). */
static gl_status add_joined_run(results *to, const item *items, size_t n, gl_error *err) {
  const gathered_series *s = items[0].of;
  arena work = {0};
  char *swept = swept_of(s);
  run_record run = {.algorithm = s->name,
                    .swept = swept,
                    .recipe = *s->chosen ? s->chosen : NULL,
                    .chosen = *s->chosen ? s->chosen : NULL,
                    .seed = s->seed,
                    .lr = rate_of(s->chosen),
                    .status = RUN_DONE,
                    .clock = no_clock};
  gl_status status = swept ? GL_OK : gl_fail_memory(err, "the settings of a run");
  for (size_t i = 0; i < n && status == GL_OK; i++)
    if (is_kept_series(items[i].of)) status = check_integer_steps(items[i].of, err);
  if (status == GL_OK) status = refuse_same_metric(items, n, err);
  if (status == GL_OK) {
    step_record *steps = make_steps(&work, items, n, &run.n_steps);
    eval_record *evals = make_evals(&work, items, n, &run.n_evals);
    status = arena_check(&work, "the records of a run", err);
    if (status == GL_OK) {
      fill_times(&run, steps, evals, items, n);
      run.steps = steps;
      run.evals = evals;
      if (run.n_evals > 0 && !isfinite(evals[run.n_evals - 1].eval_score))
        run.status = RUN_DIVERGED;
      run.staleness = make_histogram(&work, steps, run.n_steps, &run.n_staleness);
      status = arena_check(&work, "a histogram", err);
    }
  }
  if (status == GL_OK && run.n_steps + run.n_evals > 0) status = results_add(to, &run, err);
  free(swept);
  arena_fini(&work);
  return status;
}

/* Runs are in the order of the files. */
static gl_status add_joined_runs(results *to, const gathered *g, gl_error *err) {
  arena work = {0};
  item *items = ARENA_ARRAY(&work, item, g->n_series);
  run_items *runs = ARENA_ARRAY(&work, run_items, g->n_series);
  size_t n = 0;
  gl_status status = arena_check(&work, "runs", err);
  for (size_t i = 0; status == GL_OK && i < g->n_series; i++) items[i] = (item){&g->series[i], i};
  if (status == GL_OK) qsort(items, g->n_series, sizeof *items, compare_items);
  for (size_t i = 0; status == GL_OK && i < g->n_series; i++) {
    if (i == 0 || compare_runs(items[i - 1].of, items[i].of) != 0)
      runs[n++] = (run_items){i, 0, items[i].place};
    runs[n - 1].n++;
  }
  if (n > 0) qsort(runs, n, sizeof *runs, compare_places);
  for (size_t i = 0; i < n && status == GL_OK; i++)
    status = add_joined_run(to, items + runs[i].first, runs[i].n, err);
  arena_fini(&work);
  return status;
}

/* --- runs of studies --- */

static char *swept_in_study(const gathered_study *s, const results_run *run) {
  const results *r = s->from;
  cJSON *o = cJSON_CreateObject();
  int ok = o != NULL;
  for (size_t a = 0; a < r->axes.n && ok; a++)
    ok = axis_json(o, &r->axes.axis[a], r->groups[run->group].value[a]) != NULL;
  if (ok && *s->label) cJSON_DeleteItemFromObjectCaseSensitive(o, s->label_path);
  char *text = ok && add_label(o, s->label_path, s->label) ? cJSON_PrintUnformatted(o) : NULL;
  cJSON_Delete(o);
  return text;
}

static gl_status add_joined_study(results *to, const gathered_study *s, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < s->from->n_runs && status == GL_OK; i++) {
    const results_run *from = &s->from->runs[i];
    char *swept = swept_in_study(s, from), chosen[NUMBER_TEXT_SIZE + 24], digits[NUMBER_TEXT_SIZE];
    const int has_rate =
        isfinite(from->lr) && results_axis(s->from, "optimizer.lr") == s->from->axes.n;
    snprintf(chosen, sizeof chosen, "{\"optimizer.lr\":%s}", number_text(from->lr, digits));
    if (!swept) return gl_fail_memory(err, "the settings of a run");
    status = results_add(to,
                         &(run_record){.key = from->key,
                                       .algorithm = s->algorithms[from->algorithm],
                                       .swept = swept,
                                       .recipe = has_rate ? chosen : NULL,
                                       .chosen = has_rate ? chosen : NULL,
                                       .seed = from->seed,
                                       .lr = from->lr,
                                       .status = from->status,
                                       .reason = from->reason,
                                       .clock = from->clock,
                                       .steps = from->steps,
                                       .n_steps = from->n_steps,
                                       .evals = from->evals,
                                       .n_evals = from->n_evals,
                                       .staleness = from->staleness,
                                       .n_staleness = from->n_staleness},
                         err);
    free(swept);
  }
  return status;
}

/* If runs of two studies have the same algorithm, setting and seed, only one could be shown; this
 * is an error. */
static gl_status refuse_repeats(const results *r, const gathered *g, gl_error *err) {
  if (r->n_repeats == 0) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "%zu runs of %s and the other files have the same algorithm, setting and seed; "
                 "say which study each file is: --label FILE=NAME",
                 r->n_repeats, g->n_studies ? g->studies[0].file : g->series[0].file);
}

/* --- entry points --- */

static gl_status list_left_out(char **out, const gathered *g, gl_error *err) {
  size_t size = 0;
  int n = 0;
  *out = NULL;
  FILE *to = open_memstream(out, &size);
  if (!to) return gl_fail_memory(err, "names");
  for (size_t i = 0; i < g->n_series; i++) {
    const gathered_series *s = &g->series[i];
    size_t k = 0;
    if (is_kept_series(s) || is_time(s) || is_wait(s)) continue;
    while (k < i && strcmp(g->series[k].metric, s->metric) != 0) k++;
    if (k == i) fprintf(to, "%s%s", n++ ? ", " : "", s->metric);
  }
  if (fclose(to) != 0) return gl_fail_memory(err, "names");
  if (n == 0) free(*out), *out = NULL;
  return GL_OK;
}

static gl_status refuse_nothing(const results *r, const gathered *g, gl_error *err) {
  if (r->n_runs > 0) return GL_OK;
  const char *name = g->n_series ? g->series[0].metric : "";
  return gl_fail(err, GL_EINPUT,
                 "none of the metrics is known to gepolab or a score; if one is a score, say so: "
                 "--metric '%s'; if it is a metric that `gepolab list metrics` lists: --read-as "
                 "'%s=NAME'",
                 name, name);
}

/* The direction of scores (lower or higher is better) must be the same for all runs. */
static gl_status set_direction(results *r, const gathered *g, gl_error *err) {
  int lower = 0, higher = g->n_studies > 0;
  for (size_t i = 0; i < g->n_series; i++) {
    if (!g->series[i].what.is_score) continue;
    if (g->series[i].what.better == METRIC_LOWER_IS_BETTER)
      lower = 1;
    else
      higher = 1;
  }
  r->lower_is_better = lower;
  if (!lower || !higher) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "of some scores higher ones are better and of others lower ones; "
                 "draw them apart");
}

gl_status gathered_results(results **out, char **left_out, const gathered *g, gl_error *err) {
  *out = NULL;
  if (left_out) *left_out = NULL;
  results *r = results_new("joined");
  gl_status status = r ? GL_OK : gl_fail_memory(err, "results");
  for (size_t i = 0; i < g->n_studies && status == GL_OK; i++)
    status = add_joined_study(r, &g->studies[i], err);
  if (status == GL_OK) status = add_joined_runs(r, g, err);
  if (status == GL_OK) status = refuse_nothing(r, g, err);
  if (status == GL_OK) status = set_direction(r, g, err);
  if (status == GL_OK) status = results_arrange(r, err);
  if (status == GL_OK) status = refuse_repeats(r, g, err);
  if (status == GL_OK && left_out) status = list_left_out(left_out, g, err);
  if (status == GL_OK)
    *out = r;
  else
    results_free(r);
  return status;
}
