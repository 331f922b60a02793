/* Fits distributions to a log's first part, predicts the rest with the clock, and tests which
 * distribution differs in the rest. */
#include "experiments/clock/calibrate.h"

#include "analysis/diagnose/diagnose.h"
#include "core/base/array.h"
#include "core/base/json.h"
#include "core/base/ks.h"
#include "experiments/base/memory.h"
#include "experiments/recipe/recipe.h"
#include "sim/schedule.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fields that are fitted, in causal order: if several distributions are wrong, the first one is
 * named as the cause. */
static const struct {
  const char *path;
  calibrate_series from;
} fields[CALIBRATE_FIELDS] = {{"cluster.generation", CALIBRATE_GENERATION},
                              {"cluster.delay", CALIBRATE_SYNC},
                              {"cluster.learner.step", CALIBRATE_TRAINER}};

static const char *const quantity_names[CALIBRATE_QUANTITIES][2] = {
    {"seconds of a step", "s"}, {"throughput", "responses/s"}, {"staleness", "updates"}};

/* If the relative error of a mean is larger than this and no distribution is rejected, the clock is
 * named as the cause. */
static const double LARGE_ERROR = 0.1;
/* Error rate of all tests together. */
static const double TEST_ERROR = 0.01;

const char *calibrate_field_path(size_t i) {
  assert(i < CALIBRATE_FIELDS);
  return fields[i].path;
}

/* --- the log --- */

/* Returns the values of series s at the steps of another series, NaN at steps that s does not have.
 * The caller frees them. */
static double *values_at(const gathered_series *s, const gathered_series *steps) {
  double *out = MUST_ARRAY(double, steps->n, "the series of a log");
  for (size_t i = 0, at = 0; i < steps->n; ++i) {
    while (at < s->n && s->step[at] < steps->step[i]) ++at;
    out[i] = at < s->n && s->step[at] == steps->step[i] ? s->value[at] : NAN;
  }
  return out;
}

/* Returns the series of the mean length of responses, or with `most` of the longest length.
 * Trainers name both alike except for the word mean or max. */
static const gathered_series *length_series(const gathered *from, bool most) {
  char name[256];
  for (size_t i = 0; i < from->n_series; ++i) {
    const gathered_series *mean = &from->series[i];
    const char *word = mean->what.known == METRIC_RESPONSE_LENGTH && mean->n > 0
                           ? strstr(mean->metric, "mean")
                           : NULL;
    if (word == NULL) continue;
    if (!most) return mean;
    snprintf(name, sizeof name, "%.*smax%s", (int)(word - mean->metric), mean->metric, word + 4);
    for (size_t k = 0; k < from->n_series; ++k)
      if (from->series[k].n > 0 && strcmp(from->series[k].metric, name) == 0)
        return &from->series[k];
  }
  return NULL;
}

static void add_log_series(calibrate_log *to, calibrate_series k, const gathered_series *s,
                           const gathered_series *steps) {
  if (s == NULL) return;
  to->name[k] = s->metric;
  to->value[k] = values_at(s, steps);
}

static gl_status set_series(calibrate_log *to, const diagnosis *d, gl_error *err) {
  static const struct {
    calibrate_series to;
    diagnose_series_kind kind;
  } roles[] = {{CALIBRATE_STEP, DIAGNOSE_STEP_SECONDS},
               {CALIBRATE_GENERATION, DIAGNOSE_GENERATION_SECONDS},
               {CALIBRATE_SYNC, DIAGNOSE_SYNC_SECONDS},
               {CALIBRATE_TRAINER, DIAGNOSE_TRAINER_SECONDS},
               {CALIBRATE_WAIT, DIAGNOSE_WAIT_SECONDS},
               {CALIBRATE_ENVIRONMENT, DIAGNOSE_ENVIRONMENT_SECONDS},
               {CALIBRATE_STALENESS, DIAGNOSE_STALENESS_MEAN},
               {CALIBRATE_STALENESS_MOST, DIAGNOSE_STALENESS_MOST}};
  const gathered_series *steps = diagnosis_series(d, DIAGNOSE_STEP_SECONDS);
  if (steps == NULL)
    return gl_fail(err, GL_EINPUT,
                   "the logs have no series of the seconds of a step, such as timing_s/step, "
                   "time/step or perf/step_s (gepolab diagnose says what to log)");
  to->n = steps->n;
  to->step = steps->step;
  for (size_t i = 0; i < sizeof roles / sizeof *roles; ++i)
    add_log_series(to, roles[i].to, diagnosis_series(d, roles[i].kind), steps);
  add_log_series(to, CALIBRATE_LENGTH, length_series(&to->from, false), steps);
  add_log_series(to, CALIBRATE_LENGTH_MOST, length_series(&to->from, true), steps);
  return GL_OK;
}

gl_status calibrate_log_read(calibrate_log *out, const char *const *files, size_t n_files,
                             const char *format, gl_error *err) {
  const gather_request request = {.files = files,
                                  .n_files = n_files,
                                  .shape = {.columns = COLUMNS_ARE_METRICS, .format = format}};
  *out = (calibrate_log){.n = 0};
  gl_status status = gather(&out->from, &request, err);
  if (status == GL_OK)
    status = diagnosis_new(&out->roles, &(diagnose_request){.trainer = NULL}, err);
  if (status == GL_OK) status = diagnosis_add_series(out->roles, &out->from, err);
  if (status == GL_OK) status = set_series(out, out->roles, err);
  return status;
}

void calibrate_log_fini(calibrate_log *log) {
  for (size_t k = 0; k < CALIBRATE_SERIES; ++k) free(log->value[k]);
  diagnosis_free(log->roles);
  gathered_fini(&log->from);
  *log = (calibrate_log){.n = 0};
}

/* --- values --- */

/* The finite values of steps from .. to - 1, on the heap. */
static double *values_between(const double *value, size_t from, size_t to, double factor,
                              size_t *n) {
  double *out = MUST_ARRAY(double, to - from + 1, "a part of the log");
  *n = 0;
  for (size_t i = from; i < to; ++i)
    if (isfinite(value[i])) out[(*n)++] = value[i] * factor;
  return out;
}

static double calibrate_mean(const double *value, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += value[i];
  return n > 0 ? sum / (double)n : NAN;
}

/* p-value: the probability that two samples of one distribution have a larger distance.
 * Kolmogorov's limit with the correction of Stephens (1970) for small samples. */
static double kolmogorov_p(double distance, double n, double m) {
  const double root = sqrt(n * m / (n + m)), x = (root + 0.12 + 0.11 / root) * distance;
  double sum = 0;
  if (x < 0.2) return 1;
  for (int k = 1; k <= 100; ++k)
    sum += (k % 2 == 1 ? 2 : -2) * exp(-2 * (double)k * (double)k * x * x);
  return fmin(fmax(sum, 0), 1);
}

/* --- fitting --- */

void calibrate_dist(char *text, size_t size, const delay_fit *of) {
  size_t best = FIT_FAMILIES;
  char number[NUMBER_TEXT_SIZE];
  if (of->is_constant) {
    snprintf(text, size, "%s", number_text(of->median, number));
    return;
  }
  for (size_t k = 0; k < FIT_FAMILIES; ++k)
    if (of->row[k].why_not == NULL && (best == FIT_FAMILIES || of->row[k].aic < of->row[best].aic))
      best = k;
  if (of->chosen < FIT_FAMILIES) best = of->chosen;
  assert(best < FIT_FAMILIES);
  const fit_row *r = &of->row[best];
  int n = snprintf(text, size, "{distribution: %s", delay_dist_about(r->dist.kind)->name);
  for (size_t p = 0; p < r->n_parameters && n > 0 && (size_t)n < size; ++p)
    n += snprintf(text + n, size - (size_t)n, ", %s: %.6g", r->name[p], r->value[p]);
  if (n > 0 && (size_t)n < size) snprintf(text + n, size - (size_t)n, "}");
}

/* Fits a field to the first part, sets it in the recipe and tests it on the rest. */
static gl_status fit_field(calibrate_field *to, cfg_doc *doc, size_t i, const calibrate_request *q,
                           size_t n_first, double factor, gl_error *err) {
  const calibrate_log *log = q->log;
  const double *value = log->value[fields[i].from];
  char assignment[256];
  delay_fit of;
  to->series = log->name[fields[i].from];
  if (to->series == NULL) return GL_OK;
  double *first = values_between(value, 0, n_first, factor, &to->n_first);
  double *rest = values_between(value, n_first, log->n, factor, &to->n_rest);
  to->mean_first = calibrate_mean(first, to->n_first),
  to->mean_rest = calibrate_mean(rest, to->n_rest);
  gl_status status =
      fit_values(&of, first, to->n_first, (fit_limits){0, NAN, false}, 1, fields[i].path, err);
  if (status == GL_OK && to->n_rest > 0) {
    qsort(first, to->n_first, sizeof *first, order_real);
    qsort(rest, to->n_rest, sizeof *rest, order_real);
    to->distance = ks_distance((ks_sample){.value = first, .n = to->n_first},
                               (ks_sample){.value = rest, .n = to->n_rest});
    to->p = kolmogorov_p(to->distance, (double)to->n_first, (double)to->n_rest);
  }
  if (status == GL_OK) {
    calibrate_dist(to->text, sizeof to->text, &of);
    snprintf(assignment, sizeof assignment, "%s=%s", fields[i].path, to->text);
    status = cfg_override(doc, assignment, err);
  }
  free(first), free(rest);
  return status;
}

/* Computes the factor from the logged generation time of a step to the time that one sampler takes
 * for a batch. In a step all N samplers together generate the `batches` batches of an update, so
 * one sampler takes N / batches times as long for a batch. */
static gl_status generation_factor(double *out, const cfg_doc *doc, gl_error *err) {
  recipe r;
  cluster_spec *spec = NULL;
  gl_status status = recipe_read(&r, doc, err);
  if (status == GL_OK && r.cluster == NULL)
    status = gl_fail(err, GL_EINPUT,
                     "the recipe has no cluster, so it has no clock; try `gepolab list presets`");
  if (status == GL_OK) status = cluster_parse(&spec, r.cluster, r.groups, r.group_size, err);
  if (status == GL_OK) *out = (double)cluster_samplers(spec) / (double)cluster_batches(spec);
  cluster_free(spec);
  return status;
}

gl_status calibrate_fit(calibration *c, cfg_doc *doc, const calibrate_request *q, gl_error *err) {
  double factor = 1;
  size_t fitted = 0, tested = 0;
  *c = (calibration){.n_first = (size_t)(q->first * (double)q->log->n)};
  c->n_rest = q->log->n - c->n_first;
  gl_status status = generation_factor(&factor, doc, err);
  for (size_t i = 0; i < CALIBRATE_FIELDS && status == GL_OK; ++i) {
    c->field[i] = (calibrate_field){.distance = NAN, .p = NAN};
    status = fit_field(&c->field[i], doc, i, q, c->n_first,
                       fields[i].from == CALIBRATE_GENERATION ? factor : 1, err);
    fitted += c->field[i].series != NULL;
    tested += isnan(c->field[i].p) ? 0 : 1;
  }
  if (status == GL_OK && fitted == 0)
    return gl_fail(err, GL_EINPUT,
                   "the log has neither seconds of generation, nor of weight sync, nor of "
                   "training, so there is nothing to fit (gepolab diagnose says what to log)");
  c->level = TEST_ERROR / (double)(tested > 0 ? tested : 1);
  c->wrong_first = CALIBRATE_FIELDS;
  for (size_t i = CALIBRATE_FIELDS; i-- > 0;) {
    c->field[i].is_wrong = c->field[i].p < c->level;
    if (c->field[i].is_wrong) c->wrong_first = i;
  }
  return status;
}

/* --- prediction --- */

/* Predictions at each step, means over seeds; arrays have n items. */
typedef struct predicted_steps {
  double *seconds, *throughput, *staleness;
  double responses; /* mean number of responses of an update */
} predicted_steps;

/* Adds one simulated run, with that weight in the means over seeds. */
static void add_schedule(predicted_steps *to, const schedule *s, size_t n, double weight) {
  double before = 0, trained = 0;
  for (size_t i = 0; i < s->n_updates && i < n; ++i) {
    const schedule_update *u = &s->updates[i];
    double sum = 0;
    for (size_t k = 0; k < u->n_batches; ++k)
      sum += (double)schedule_staleness(s, u, &s->batches[u->first_batch + k]);
    const double seconds = u->end_s - before;
    to->seconds[i] += weight * seconds;
    to->throughput[i] += weight * (double)(u->n_batches * s->unit_responses) / seconds;
    if (u->n_batches > 0) to->staleness[i] += weight * sum / (double)u->n_batches;
    trained += (double)(u->n_batches * s->unit_responses);
    before = u->end_s;
  }
  to->responses += weight * trained / (double)s->n_updates;
}

static gl_status predict(predicted_steps *to, const cfg_doc *doc, size_t n, size_t seeds,
                         gl_error *err) {
  recipe r;
  cluster_spec *spec = NULL;
  gl_status status = recipe_read(&r, doc, err);
  if (status == GL_OK) status = cluster_parse(&spec, r.cluster, r.groups, r.group_size, err);
  if (status == GL_OK && cluster_is_coupled(spec) && !cluster_has_lengths(spec))
    status =
        gl_fail(err, GL_EINPUT, "a coupled clock needs its learner; set cluster.coupled=false");
  for (size_t k = 0; k < seeds && status == GL_OK; ++k) {
    schedule s = {0};
    status = schedule_build(&s, spec, r.seed + k, n, err);
    if (status == GL_OK) add_schedule(to, &s, n, 1 / (double)seeds);
    schedule_fini(&s);
  }
  cluster_free(spec);
  return status;
}

/* --- comparison --- */

static double calibrate_correlation(const double *x, const double *y, size_t n) {
  const double a = calibrate_mean(x, n), b = calibrate_mean(y, n);
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < n; ++i) {
    xx += (x[i] - a) * (x[i] - a), yy += (y[i] - b) * (y[i] - b);
    xy += (x[i] - a) * (y[i] - b);
  }
  const double least = 1e-24 * (double)n; /* a constant has no correlation */
  return xx > least * a * a && yy > least * b * b ? xy / sqrt(xx * yy) : NAN;
}

static calibrate_prediction calibrate_compare(const double *measured, const double *predicted,
                                              size_t from, size_t to) {
  double *m = MUST_ARRAY(double, 2 * (to - from) + 1, "a part of the log"), *p = m + (to - from);
  calibrate_prediction c = {.mape = 0};
  size_t with_error = 0;
  for (size_t i = from; i < to && measured != NULL; ++i) {
    const double x = measured[i], y = predicted[i];
    if (!isfinite(x) || !isfinite(y)) continue;
    m[c.n] = x, p[c.n++] = y;
    if (x == 0) continue;
    c.mape += fabs(y - x) / fabs(x);
    ++with_error;
  }
  c.measured = calibrate_mean(m, c.n), c.predicted = calibrate_mean(p, c.n);
  c.error = c.measured != 0 ? c.predicted / c.measured - 1 : NAN;
  c.mape = with_error > 0 ? c.mape / (double)with_error : NAN;
  c.correlation = c.n > 2 ? calibrate_correlation(m, p, c.n) : NAN;
  free(m);
  return c;
}

gl_status calibrate(calibration *c, cfg_doc *doc, const calibrate_request *q, gl_error *err) {
  const calibrate_log *log = q->log;
  if (log->n < CALIBRATE_FEWEST)
    return gl_fail(err, GL_EINPUT, "the log has %zu steps with their seconds; %d are needed",
                   log->n, (int)CALIBRATE_FEWEST);
  gl_status status = calibrate_fit(c, doc, q, err);
  double *room = MUST_ARRAY(double, 4 * log->n, "a prediction"), *measured = room + 3 * log->n;
  predicted_steps p = {
      .seconds = room, .throughput = room + log->n, .staleness = room + 2 * log->n};
  if (status == GL_OK) {
    gl_error why = {0};
    status = predict(&p, doc, log->n, q->seeds, &why);
    if (status != GL_OK)
      gl_fail(err, status, "the recipe refuses a value that was fitted to the log: %s", why.text);
  }
  if (status == GL_OK) {
    const double *seconds = log->value[CALIBRATE_STEP];
    c->steps[0] = log->step[c->n_first - 1], c->steps[1] = log->step[c->n_first];
    c->steps[2] = log->step[log->n - 1];
    for (size_t i = 0; i < log->n; ++i) measured[i] = p.responses / seconds[i];
    c->quantity[0] = calibrate_compare(seconds, p.seconds, c->n_first, log->n);
    c->quantity[1] = calibrate_compare(measured, p.throughput, c->n_first, log->n);
    c->quantity[2] =
        calibrate_compare(log->value[CALIBRATE_STALENESS], p.staleness, c->n_first, log->n);
  }
  free(room);
  return status;
}

/* --- the tables --- */

static void put_predictions(table *to, const calibration *c) {
  static const table_column columns[] = {
      {"quantity", TABLE_TEXT, .head = "quantity"},
      {"unit", TABLE_TEXT, .head = "unit"},
      {"measured", TABLE_REAL, .head = "log", .format = "%.4g"},
      {"predicted", TABLE_REAL, .head = "predicted", .format = "%.4g"},
      {"error", TABLE_REAL, .head = "error", .format = "%+.3f"},
      {"mape", TABLE_REAL, .head = "MAPE", .format = "%.3f"},
      {"correlation", TABLE_REAL, .head = "r", .format = "%.2f"}};
  table *t = table_rows(table_field(to, "predictions"), columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < CALIBRATE_QUANTITIES; ++i) {
    const calibrate_prediction *p = &c->quantity[i];
    if (p->n == 0) continue;
    table_row(t);
    table_text(t, quantity_names[i][0]), table_text(t, quantity_names[i][1]);
    table_real(t, p->measured), table_real(t, p->predicted), table_real(t, p->error);
    table_real(t, p->mape), table_real(t, p->correlation);
  }
  table_line(
      to,
      "Steps %.10g to %.10g. error: of the mean. MAPE: mean over steps of |predicted - log| / "
      "log. r: Pearson's, over steps; the prediction is a mean over seeds, so r is near 0 "
      "unless the run has a trend that the clock explains.",
      c->steps[1], c->steps[2]);
}

static void put_distributions(table *to, const calibration *c) {
  static const table_column columns[] = {
      {"field", TABLE_TEXT, .head = "field"},
      {"series", TABLE_TEXT, .head = "from"},
      {"n_first", TABLE_INTEGER, .head = "fitted to"},
      {"n_rest", TABLE_INTEGER, .head = "tested on"},
      {"ratio", TABLE_REAL, .head = "rest / first", .format = "%.3f"},
      {"distance", TABLE_REAL, .head = "D", .format = "%.3f"},
      {"p", TABLE_REAL, .head = "p", .format = "%.2g"},
      TABLE_KEY("wrong", TABLE_FLAG),
      TABLE_KEY("distribution", TABLE_TEXT)};
  table *t =
      table_rows(table_field(to, "distributions"), columns, sizeof columns / sizeof *columns);
  table_gap(t);
  for (size_t i = 0; i < CALIBRATE_FIELDS; ++i) {
    const calibrate_field *f = &c->field[i];
    if (f->series == NULL) continue;
    table_row(t);
    table_text(t, fields[i].path), table_text(t, f->series);
    table_count(t, f->n_first), table_count(t, f->n_rest);
    table_real(t, f->mean_rest / f->mean_first);
    table_real(t, f->distance), table_real(t, f->p);
    table_flag(t, f->is_wrong), table_text(t, f->text);
  }
  for (size_t i = 0; i < CALIBRATE_FIELDS; ++i)
    if (c->field[i].series != NULL)
      table_line(to, "%s: %s", fields[i].path, c->field[i].text);
    else
      table_line(to, "%s: not in the log; the recipe's own is used.", fields[i].path);
}

static void put_wrong(table *to, const calibration *c) {
  const double error = c->quantity[0].error;
  const bool found = c->wrong_first < CALIBRATE_FIELDS;
  table_text(table_field(to, "wrong_first"), found ? fields[c->wrong_first].path : NULL);
  if (found)
    table_line(to,
               "Wrong first: %s. Its values after step %.10g are %.3g times those before (D %.3f, "
               "p %.2g; level %.2g of each field, an error rate of %g together).",
               fields[c->wrong_first].path, c->steps[0],
               c->field[c->wrong_first].mean_rest / c->field[c->wrong_first].mean_first,
               c->field[c->wrong_first].distance, c->field[c->wrong_first].p, c->level, TEST_ERROR);
  else if (fabs(error) > LARGE_ERROR)
    table_line(
        to,
        "No distribution changed, and the seconds of a step are wrong by %+.0f %%: the error "
        "is in what the recipe says of the clock (samplers, window, batches, publishing).",
        100 * error);
  else
    table_line(to, "No distribution changed between the parts (error rate %g).", TEST_ERROR);
}

table *calibration_table(const calibration *c) {
  table *t = table_document();
  put_predictions(t, c);
  put_distributions(t, c);
  put_wrong(t, c);
  return t;
}
