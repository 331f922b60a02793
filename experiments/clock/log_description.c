/* Derives the description of a cluster from a trainer's logs, and reports for each field whether it
 * was read from a log, given by the user, or assumed. */
#include "experiments/clock/log_description.h"

#include "core/base/array.h"
#include "experiments/base/memory.h"
#include "experiments/recipe/recipe.h"
#include "sim/delay.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If the trainer waits for less than this fraction of its time, the samplers' speed cannot be
 * estimated. */
static const double WAITS = 0.05;
/* sigma of the lognormal lengths if the log has no longest length: that of the presets. */
static const double PRESET_SIGMA = 0.8;
enum { CHECK_SEEDS = 8 };

typedef struct describing {
  const calibrate_log *log; /* with a number for each step; n 0: there is none */
  const fit_log *responses; /* with a line for each response; no values: there is none */
  calibrate_log fitted;     /* the series of the log that are fitted; borrowed */
  cfg_doc *doc;
  table *said, *rows;
  double *learner; /* [n] seconds of a step that the learner works; owned */
  double *sync;    /* [n] seconds of sending weights; NaN where a step sent none */
  double publish;  /* mean number of steps from one transfer of weights to the next */
  double gpus, learner_gpus, sampler_gpus, groups, group_size;
  size_t samplers, concurrency;              /* of the logged run */
  double mean_length, most_length, quantile; /* median length of the longest response / mean length
                                                = exp(sigma quantile - sigma^2/2) */
  double window;                             /* of the logged run; NaN: not known */
  double tokens_per_s;                       /* NaN: given by the user, not read from the log */
} describing;

/* --- lines --- */

__attribute__((format(printf, 5, 6))) static void
say(describing *d, const char *kind, const char *path, const char *value, const char *format, ...) {
  char why[400];
  va_list list;
  va_start(list, format);
  vsnprintf(why, sizeof why, format, list);
  va_end(list);
  table_row(d->rows);
  table_text(d->rows, kind), table_text(d->rows, path), table_text(d->rows, value);
  table_text(d->rows, why);
  table_line(d->said, "%-8s %s: %s", kind, path, value);
  if (why[0] != '\0') table_line(d->said, "         %s", why);
}

static const cfg_node *find(const describing *d, const char *path) {
  const cfg_node *at = cfg_find(cfg_root(d->doc), path);
  return at != NULL && !cfg_is_null(at) ? at : NULL;
}

/* Returns whether the user gave this field; if so, reports it as given. */
static bool is_given(describing *d, const char *path) {
  const cfg_node *at = find(d, path);
  if (at == NULL) return false;
  char *value = must_have(cfg_canonical(at), "a field");
  say(d, "given", path, value, "%s", "");
  free(value);
  return true;
}

static gl_status set_field(cfg_doc *doc, const char *path, const char *value, gl_error *err) {
  char *text = must_textf("a field", "%s=%s", path, value);
  const gl_status status = cfg_override(doc, text, err);
  free(text);
  return status;
}

/* --- values of series --- */

static bool log_has(const describing *d, calibrate_series k) {
  return d->log->name[k] != NULL;
}

static double log_at(const describing *d, calibrate_series k, size_t i) {
  return log_has(d, k) ? d->log->value[k][i] : 0;
}

static double mean_of_values(const double *value, size_t n) {
  double sum = 0;
  size_t m = 0;
  for (size_t i = 0; i < n; ++i)
    if (isfinite(value[i])) sum += value[i], ++m;
  return m > 0 ? sum / (double)m : NAN;
}

static double log_mean(const describing *d, calibrate_series k) {
  return log_has(d, k) ? mean_of_values(d->log->value[k], d->log->n) : NAN;
}

static double median_of_values(const double *value, size_t n_values) {
  double *sorted = MUST_ARRAY(double, n_values + 1, "the series of a log");
  size_t n = 0;
  for (size_t i = 0; i < n_values; ++i)
    if (isfinite(value[i])) sorted[n++] = value[i];
  qsort(sorted, n, sizeof *sorted, order_real);
  const double median = n > 0 ? (sorted[(n - 1) / 2] + sorted[n / 2]) / 2 : NAN;
  free(sorted);
  return median;
}

static double log_median(const describing *d, calibrate_series k) {
  return median_of_values(d->log->value[k], d->log->n);
}

/* Mean over responses; NaN: not in the logs. */
static double response_mean(const describing *d, fit_field f) {
  return mean_of_values(d->responses->field[f].value, d->responses->field[f].n);
}

static bool has_response(const describing *d, fit_field f) {
  return d->responses->field[f].n > 0;
}

static double log_most(const describing *d, calibrate_series k) {
  double most = NAN;
  for (size_t i = 0; i < d->log->n; ++i) most = fmax(most, d->log->value[k][i]);
  return most;
}

/* --- what no log says --- */

static double gpus_of_sites(const cfg_node *sites) {
  double sum = 0, gpus;
  for (size_t i = 0; cfg_kind_of(sites) == CFG_LIST && i < cfg_size(sites); ++i) {
    const cfg_node *at = cfg_find(cfg_at(sites, i), "gpus");
    if (at != NULL && cfg_number(at, &gpus)) sum += gpus;
  }
  return sum;
}

/* Sets a count that token-level logs have: range is its smallest and largest value. Returns false
 * if it is not the same in all batches. */
static bool read_batch_count(describing *d, const char *path, const size_t range[2],
                             gl_error *err) {
  char text[32];
  if (d->responses->batches.n == 0 || range[0] != range[1]) return false;
  snprintf(text, sizeof text, "%zu", range[0]);
  say(d, "read", path, text, "in all %zu batches", d->responses->batches.n);
  return set_field(d->doc, path, text, err) == GL_OK;
}

static gl_status require_given(describing *d, gl_error *err) {
  const fit_batches *batches = &d->responses->batches;
  const struct {
    const char *path, *example, *meaning;
    double *value;
    const size_t *range; /* of token-level logs */
    bool in_log;
  } needed[] = {
      {"plan.sites", "'[{name: here, gpus: 64}]'", "the GPUs there are", &d->gpus, NULL, false},
      {"plan.learner.gpus", "16", "GPUs that trained", &d->learner_gpus, NULL, false},
      {"plan.sampler.gpus", "4", "GPUs of an engine", &d->sampler_gpus, NULL, false},
      {"train.groups", "64", "prompts of an update", &d->groups, batches->groups, false},
      {"train.group_size", "8", "responses of a prompt", &d->group_size, batches->group_size,
       false},
      {"cluster.learner.step", "20", "seconds of an update", NULL, NULL, d->log->n > 0},
      {"plan.sampler.decoding", "'[{concurrency: 64, tokens_per_s: 40}]'", "speed of an engine",
       NULL, NULL, d->log->n > 0 || has_response(d, FIT_FIELD_RESPONSE)},
  };
  enum { NEEDED = sizeof needed / sizeof *needed };
  char missing[900] = "";
  size_t n = 0;
  for (size_t i = 0; i < NEEDED; ++i) {
    const size_t *range = needed[i].range;
    const bool is_read = range != NULL && find(d, needed[i].path) == NULL &&
                         read_batch_count(d, needed[i].path, range, err);
    const cfg_node *at = find(d, needed[i].path);
    if (needed[i].in_log) continue;
    if (at == NULL) {
      n += (size_t)snprintf(missing + n, sizeof missing - n, " %s=%s (%s", needed[i].path,
                            needed[i].example, needed[i].meaning);
      if (range != NULL && batches->n > 0)
        n += (size_t)snprintf(missing + n, sizeof missing - n, ", %zu to %zu in the log", range[0],
                              range[1]);
      n += (size_t)snprintf(missing + n, sizeof missing - n, ")");
      continue;
    }
    if (needed[i].value == NULL) continue;
    if (i == 0) *needed[i].value = gpus_of_sites(at);
    if (i == 0 && !(d->gpus >= 1))
      return cfg_fail(at, err, "plan.sites lists places with their GPUs, at least 1 each, as in %s",
                      needed[i].example);
    if (i > 0 && (!cfg_number(at, needed[i].value) || !(*needed[i].value >= 1)))
      return cfg_fail(at, err, "%s must be a number of at least 1: %s", needed[i].path,
                      needed[i].meaning);
    if (!is_read) (void)is_given(d, needed[i].path);
  }
  if (n > 0)
    return gl_fail(err, GL_EINPUT, "a log does not say everything; add what is missing:%s",
                   missing);
  return GL_OK;
}

/* Determines the number of engines of the logged run, and the number of responses that each decodes
 * at once. */
static gl_status count_engines(describing *d, size_t samplers, gl_error *err) {
  char value[32];
  const double left = floor((d->gpus - d->learner_gpus) / d->sampler_gpus);
  if (samplers == 0 && !(left >= 1))
    return gl_fail(
        err, GL_EINPUT,
        "plan.learner.gpus leaves no engine of plan.sampler.gpus; if learner and engines "
        "shared the GPUs, say how many engines generated: --samplers N");
  d->samplers = samplers > 0 ? samplers : (size_t)left;
  d->concurrency = (size_t)ceil(d->groups * d->group_size / (double)d->samplers);
  snprintf(value, sizeof value, "%zu", d->samplers);
  if (samplers > 0)
    say(d, "given", "engines of the logged run", value, "%s", "");
  else
    say(d, "assumed", "engines of the logged run", value,
        "all GPUs but the learner's generated; else --samplers N");
  return GL_OK;
}

/* --- the learner and the weights --- */

/* Seconds of step i in which the learner works: the step less waiting (or generation, if the two
 * alternate), transfer of weights and rewards; at least the time that the log calls training. */
static double learner_seconds(const describing *d, size_t i) {
  const bool waits = log_has(d, CALIBRATE_WAIT);
  const double idle = log_at(d, waits ? CALIBRATE_WAIT : CALIBRATE_GENERATION, i);
  const double left = d->log->value[CALIBRATE_STEP][i] - idle - log_at(d, CALIBRATE_SYNC, i) -
                      log_at(d, CALIBRATE_ENVIRONMENT, i);
  const bool is_known = !isnan(left) && (waits || log_has(d, CALIBRATE_GENERATION));
  const double rest = is_known ? fmax(left, 0) : NAN;
  return log_has(d, CALIBRATE_TRAINER) ? fmax(d->log->value[CALIBRATE_TRAINER][i], rest) : rest;
}

/* Makes a recipe of the logged run from the description: without the section `plan`, and with the
 * samplers, window and publication interval of the log. */
static gl_status logged_recipe(cfg_doc **out, const describing *d, gl_error *err) {
  char text[64];
  gl_status status = cfg_copy(out, d->doc, err);
  if (status != GL_OK) return status;
  cfg_remove(*out, "plan");
  snprintf(text, sizeof text, "cluster.samplers=%zu", d->samplers);
  status = cfg_override(*out, text, err);
  for (int k = 0; k < 2 && status == GL_OK && !isnan(d->window); ++k) {
    snprintf(text, sizeof text, "cluster.%s=%.0f", k == 0 ? "ahead" : "window", d->window);
    status = cfg_override(*out, text, err);
  }
  snprintf(text, sizeof text, "cluster.learner.publish_every=%.0f", d->publish);
  if (status == GL_OK) status = cfg_override(*out, text, err);
  if (status == GL_OK && !isnan(d->tokens_per_s)) {
    snprintf(text, sizeof text, "cluster.concurrency=%zu", d->concurrency);
    status = cfg_override(*out, text, err);
    snprintf(text, sizeof text, "cluster.tokens_per_s=%.6g", d->tokens_per_s);
    if (status == GL_OK) status = cfg_override(*out, text, err);
  }
  return status;
}

/* The log as calibrate_fit() reads it: without the fields that the user gave, and without
 * generation times, because clusters whose samplers stream groups have no field for them. */
static void select_fitted(describing *d) {
  d->fitted = *d->log;
  d->fitted.value[CALIBRATE_TRAINER] = d->learner;
  if (log_has(d, CALIBRATE_SYNC)) d->fitted.value[CALIBRATE_SYNC] = d->sync;
  d->fitted.name[CALIBRATE_GENERATION] = NULL;
  d->fitted.name[CALIBRATE_TRAINER] =
      find(d, "cluster.learner.step") == NULL ? d->log->name[CALIBRATE_STEP] : NULL;
  if (find(d, "cluster.delay") != NULL) d->fitted.name[CALIBRATE_SYNC] = NULL;
}

/* Steps with zero seconds of weight transfer sent no weights, unless all steps have zero
 * seconds. */
static void read_sync(describing *d) {
  size_t sent = 0;
  if (!log_has(d, CALIBRATE_SYNC)) return;
  for (size_t i = 0; i < d->log->n; ++i) sent += d->log->value[CALIBRATE_SYNC][i] > 0;
  for (size_t i = 0; i < d->log->n; ++i) {
    const double seconds = d->log->value[CALIBRATE_SYNC][i];
    d->sync[i] = sent > 0 && !(seconds > 0) ? NAN : seconds;
  }
  if (sent > 0) d->publish = round((double)d->log->n / (double)sent);
}

static void say_learner(describing *d, const char *text, double mean) {
  const char *const *name = d->log->name;
  const char *idle = log_has(d, CALIBRATE_WAIT) ? name[CALIBRATE_WAIT] : name[CALIBRATE_GENERATION];
  char less[300] = "";
  if (idle != NULL)
    snprintf(less, sizeof less, "%s less %s%s%s%s%s; ", name[CALIBRATE_STEP], idle,
             log_has(d, CALIBRATE_SYNC) ? ", " : "",
             log_has(d, CALIBRATE_SYNC) ? name[CALIBRATE_SYNC] : "",
             log_has(d, CALIBRATE_ENVIRONMENT) ? ", " : "",
             log_has(d, CALIBRATE_ENVIRONMENT) ? name[CALIBRATE_ENVIRONMENT] : "");
  if (log_has(d, CALIBRATE_TRAINER))
    say(d, "read", "cluster.learner.step", text, "mean %.4g s; %s%s alone has %.4g s", mean, less,
        name[CALIBRATE_TRAINER], log_mean(d, CALIBRATE_TRAINER));
  else
    say(d, "read", "cluster.learner.step", text, "mean %.4g s; %s%zu steps", mean, less, d->log->n);
}

static gl_status describe_learner(describing *d, gl_error *err) {
  const bool has_step = find(d, "cluster.learner.step") != NULL;
  size_t known = 0;
  for (size_t i = 0; i < d->log->n; ++i) {
    d->learner[i] = learner_seconds(d, i);
    known += isfinite(d->learner[i]) != 0;
  }
  if (!has_step && known < FIT_LEAST_VALUES)
    return gl_fail(err, GL_EINPUT,
                   "the log has %zu steps with the seconds of the learner (of training, or of a "
                   "step and of waiting or generation); %d are needed, or cluster.learner.step=…",
                   known, (int)FIT_LEAST_VALUES);
  read_sync(d);
  select_fitted(d);
  const char *const *name = d->fitted.name;
  const calibrate_request q = {.log = &d->fitted, .first = 1, .seeds = 1};
  calibration c = {.n_first = 0};
  cfg_doc *logged = NULL;
  const bool fits = name[CALIBRATE_TRAINER] != NULL || name[CALIBRATE_SYNC] != NULL;
  gl_status status = logged_recipe(&logged, d, err);
  if (status == GL_OK && fits) status = calibrate_fit(&c, logged, &q, err);
  for (size_t i = 0; i < CALIBRATE_FIELDS && status == GL_OK; ++i) {
    const calibrate_field *f = &c.field[i];
    if (f->series == NULL) continue;
    status = set_field(d->doc, calibrate_field_path(i), f->text, err);
    if (f->series == name[CALIBRATE_SYNC])
      say(d, "read", calibrate_field_path(i), f->text,
          "%s; mean %.4g s of %zu steps that sent weights", f->series, f->mean_first, f->n_first);
    else
      say_learner(d, f->text, f->mean_first);
  }
  if (has_step) (void)is_given(d, "cluster.learner.step");
  if (name[CALIBRATE_SYNC] == NULL && !is_given(d, "cluster.delay"))
    say(d, "assumed", "cluster.delay", "0", "the log has no seconds of sending weights");
  cfg_free(logged);
  return status;
}

/* --- lengths and the speed of samplers --- */

/* sigma of lognormal lengths for which the median of the longest of all R responses of a step is
 * `ratio` times the mean length. That median is the 0.5^(1/R) quantile of lengths. */
static double sigma_of(double ratio, double quantile) {
  const double g = log(ratio), root = quantile * quantile - 2 * g;
  return g <= 0 ? 0 : root > 0 ? quantile - sqrt(root) : NAN;
}

/* Fits the lengths of token-level logs. Without a given limit, the longest response is one if many
 * are as long. */
static gl_status fit_lengths(describing *d, gl_error *err) {
  const fit_measured *lengths = &d->responses->field[FIT_FIELD_LENGTHS];
  const cfg_node *given = find(d, "cluster.max_tokens");
  fit_limits limits = {0, INFINITY, false};
  delay_fit of;
  char text[160], most[40], why[200] = "";
  if (given != NULL && !cfg_number(given, &limits.high)) limits.high = INFINITY;
  gl_status status =
      fit_values(&of, lengths->value, lengths->n, limits, 1, "lengths", given != NULL ? err : NULL);
  if (status == GL_EINPUT && given == NULL) {
    for (size_t i = 0; i < lengths->n; ++i) of.most = fmax(of.most, lengths->value[i]);
    limits.high = of.most;
    status = fit_values(&of, lengths->value, lengths->n, limits, 1, "lengths", err);
  }
  if (status != GL_OK) return status;
  d->mean_length = response_mean(d, FIT_FIELD_LENGTHS);
  d->most_length = median_of_values(d->responses->batches.longest, d->responses->batches.n);
  calibrate_dist(text, sizeof text, &of);
  if (d->responses->batches.n_untrained > 0)
    snprintf(why, sizeof why, "; %zu responses without trained tokens are not in the log",
             d->responses->batches.n_untrained);
  say(d, "read", "cluster.lengths", text, "fitted to %zu responses of mean %.5g%s%s", lengths->n,
      d->mean_length,
      of.is_constant || of.chosen < FIT_FAMILIES
          ? ""
          : "; the nearest distribution: the test rejects all",
      why);
  status = set_field(d->doc, "cluster.lengths", text, err);
  if (status != GL_OK || is_given(d, "cluster.max_tokens")) return status;
  snprintf(most, sizeof most, "%.0f", of.most);
  if (of.n_above > 0)
    say(d, "read", "cluster.max_tokens", most, "cut off there: %zu responses", of.n_above);
  else
    say(d, "read", "cluster.max_tokens", most, "no response of the log is longer");
  return set_field(d->doc, "cluster.max_tokens", most, err);
}

static gl_status describe_lengths(describing *d, gl_error *err) {
  char text[100], limit[40];
  if (is_given(d, "cluster.lengths")) return GL_OK;
  if (has_response(d, FIT_FIELD_LENGTHS)) return fit_lengths(d, err);
  if (!log_has(d, CALIBRATE_LENGTH))
    return gl_fail(
        err, GL_EINPUT,
        "the log has no mean length of responses, such as response_length/mean or "
        "completions/mean_length; add cluster.lengths='{distribution: lognormal, mu: 6.5, sigma: "
        "0.8}' and plan.sampler.decoding='[{concurrency: 64, tokens_per_s: 40}]'");
  const bool has_most = log_has(d, CALIBRATE_LENGTH_MOST);
  d->mean_length = log_mean(d, CALIBRATE_LENGTH);
  double sigma = PRESET_SIGMA;
  if (has_most) {
    d->most_length = log_median(d, CALIBRATE_LENGTH_MOST);
    sigma = sigma_of(d->most_length / d->mean_length, d->quantile);
  } else {
    d->most_length = d->mean_length * exp(sigma * d->quantile - sigma * sigma / 2);
  }
  if (!(d->mean_length > 0) || isnan(sigma))
    return gl_fail(err, GL_EINPUT,
                   "the mean length %g and the longest response, %g tokens, are those of no "
                   "lognormal distribution; add cluster.lengths=…",
                   d->mean_length, d->most_length);
  snprintf(text, sizeof text, "{distribution: lognormal, mu: %.6g, sigma: %.6g}",
           log(d->mean_length) - sigma * sigma / 2, sigma);
  gl_status status = set_field(d->doc, "cluster.lengths", text, err);
  if (!has_most) {
    say(d, "read", "cluster.lengths", text, "mean of trained responses, from %s",
        d->log->name[CALIBRATE_LENGTH]);
    say(d, "assumed", "spread of lengths", "sigma 0.8", "the log has no longest response");
    return status;
  }
  say(d, "read", "cluster.lengths", text, "%s and %s, of trained responses",
      d->log->name[CALIBRATE_LENGTH], d->log->name[CALIBRATE_LENGTH_MOST]);
  if (is_given(d, "cluster.max_tokens")) return status;
  snprintf(limit, sizeof limit, "%.0f", ceil(log_most(d, CALIBRATE_LENGTH_MOST)));
  say(d, "read", "cluster.max_tokens", limit, "no response of the log is longer");
  return status == GL_OK ? set_field(d->doc, "cluster.max_tokens", limit, err) : status;
}

/* The mean fraction of a step that the trainer waits. */
static double wait_fraction(const describing *d) {
  return log_mean(d, CALIBRATE_WAIT) / log_mean(d, CALIBRATE_STEP);
}

/* Estimates the decoding speed of a response in tokens per second. If seconds of responses are
 * logged, it is the ratio of means. If generation is logged, the longest response takes all of that
 * time. Otherwise, if the trainer waits, all engines, with `concurrency` responses each, generate
 * the tokens of an update in the time of a step. */
static gl_status speed_of_log(describing *d, const char **why, gl_error *err) {
  const double responses = d->groups * d->group_size;
  if (has_response(d, FIT_FIELD_RESPONSE)) {
    d->tokens_per_s = d->mean_length / response_mean(d, FIT_FIELD_RESPONSE);
    *why = "mean length / mean seconds of a response, with all that it waits for in its engine";
  } else if (log_has(d, CALIBRATE_GENERATION)) {
    d->tokens_per_s = d->most_length / log_median(d, CALIBRATE_GENERATION);
    *why = "an update's longest response takes the seconds of generation";
  } else if (log_has(d, CALIBRATE_WAIT) && wait_fraction(d) >= WAITS) {
    d->tokens_per_s = responses * d->mean_length /
                      ((double)d->samplers * (double)d->concurrency * log_mean(d, CALIBRATE_STEP));
    *why = "the trainer waits, so the engines make an update's tokens in a step";
  } else {
    return gl_fail(err, GL_EINPUT,
                   "the log does not say how fast the samplers are: it has no seconds of "
                   "generation, and the trainer %s; add measured speeds, "
                   "plan.sampler.decoding='[{concurrency: 64, tokens_per_s: 40}]'",
                   log_has(d, CALIBRATE_WAIT) ? "hardly waits for them" : "is not said to wait");
  }
  return GL_OK;
}

/* Sets the speed of samplers, unless the user gave it. */
static gl_status describe_speed(describing *d, gl_error *err) {
  static const char *const others[] = {"plan.sampler.decoding", "cluster.decoding",
                                       "cluster.tokens_per_s"};
  const char *why = NULL;
  char text[100];
  for (size_t i = 0; i < 3; ++i)
    if (is_given(d, others[i])) return GL_OK;
  if (isnan(d->mean_length))
    return gl_fail(err, GL_EINPUT,
                   "with cluster.lengths of your own the log does not say the speed of samplers; "
                   "add plan.sampler.decoding='[{concurrency: 64, tokens_per_s: 40}]'");
  gl_status status = speed_of_log(d, &why, err);
  if (status != GL_OK) return status;
  snprintf(text, sizeof text, "[{concurrency: %zu, tokens_per_s: %.6g}]", d->concurrency,
           d->tokens_per_s);
  const bool is_response = has_response(d, FIT_FIELD_RESPONSE);
  const bool is_generation = !is_response && log_has(d, CALIBRATE_GENERATION);
  say(d, "read", "plan.sampler.decoding", text, "%s (%s)", why,
      is_response ? fit_field_name(FIT_FIELD_RESPONSE)
                  : d->log->name[is_generation ? CALIBRATE_GENERATION : CALIBRATE_STEP]);
  say(d, "assumed", "concurrency", "responses of an update / engines",
      "all responses of an update are decoded at once%s",
      is_generation ? ", and as fast at full load as at its end, when few are left: the gain of "
                      "asynchrony is an upper bound; plan.sampler.decoding=… has measured speeds"
                    : "");
  return set_field(d->doc, "plan.sampler.decoding", text, err);
}

/* --- the values to try --- */

static double logged_staleness(const describing *d) {
  return log_has(d, CALIBRATE_STALENESS) ? log_mean(d, CALIBRATE_STALENESS)
                                         : d->responses->batches.staleness;
}

static gl_status describe_windows(describing *d, gl_error *err) {
  static const double usual[] = {0, 1, 2, 4, 8};
  static const char tokens[] = "version gaps of the tokens";
  char text[100] = "[0, 1, 2, 4, 8]", most[32];
  const double staleness = logged_staleness(d);
  const char *const *name = d->log->name;
  const bool in_turn = log_has(d, CALIBRATE_GENERATION) && !log_has(d, CALIBRATE_WAIT);
  const double largest = log_has(d, CALIBRATE_STALENESS_MOST)
                             ? log_most(d, CALIBRATE_STALENESS_MOST)
                             : d->responses->batches.staleness_most;
  d->window = !isnan(largest) ? ceil(largest) : in_turn && !(staleness > 0) ? 0 : NAN;
  bool is_usual = isnan(d->window);
  for (size_t i = 0; i < 5; ++i) is_usual = is_usual || d->window == usual[i];
  if (!is_usual) snprintf(text, sizeof text, "[0, 1, 2, 4, 8, %.0f]", d->window);
  snprintf(most, sizeof most, "%.0f", d->window);
  if (!isnan(largest))
    say(d, "read", "window of the logged run", most, "largest value of %s",
        name[CALIBRATE_STALENESS_MOST] != NULL ? name[CALIBRATE_STALENESS_MOST] : tokens);
  else if (!isnan(d->window))
    say(d, "assumed", "window of the logged run", "0",
        "generation and training took turns: no waiting and no staleness is logged");
  else
    say(d, "assumed", "window of the logged run", "not known", "the log has no largest staleness");
  if (!isnan(staleness)) {
    snprintf(most, sizeof most, "%.3g", staleness);
    say(d, "read", "staleness of the logged run", most, "mean of %s",
        name[CALIBRATE_STALENESS] != NULL ? name[CALIBRATE_STALENESS] : tokens);
  }
  return is_given(d, "plan.search.window") ? GL_OK
                                           : set_field(d->doc, "plan.search.window", text, err);
}

/* Sets the numbers of learner GPUs to try: eighths of the largest site, because the measured number
 * alone would leave nothing to choose. */
static gl_status describe_choices(describing *d, gl_error *err) {
  char text[200] = "[", gpus[32];
  double largest = 0, before = 0;
  const cfg_node *sites = find(d, "plan.sites");
  for (size_t i = 0; cfg_kind_of(sites) == CFG_LIST && i < cfg_size(sites); ++i) {
    const cfg_node *at = cfg_find(cfg_at(sites, i), "gpus");
    double n = 0;
    if (at != NULL && cfg_number(at, &n)) largest = fmax(largest, n);
  }
  size_t used = 1;
  for (int k = 1; k <= 8; ++k) {
    const double n = floor(largest * k / 8);
    if (n <= before || (k == 8 && cfg_size(sites) == 1)) continue; /* no sampler would be left */
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%.0f", used > 1 ? ", " : "", n);
    before = n;
  }
  snprintf(text + used, sizeof text - used, "]");
  snprintf(gpus, sizeof gpus, "%.0f GPU%s", d->learner_gpus, d->learner_gpus == 1 ? "" : "s");
  if (!is_given(d, "plan.learner.serial"))
    say(d, "assumed", "plan.learner.serial", "0",
        "a step measured on %s shortens in proportion to GPUs, and the model fits on fewer", gpus);
  if (is_given(d, "plan.learner.choices")) return GL_OK;
  say(d, "assumed", "plan.learner.choices", text, "numbers of GPUs to try");
  return set_field(d->doc, "plan.learner.choices", text, err);
}

static gl_status describe_rules(describing *d, gl_error *err) {
  static const struct {
    const char *path, *value, *why;
  } rules[] = {
      {"cluster.partial", "continue", "responses go on under new weights"},
      {"plan.search.batches", "1", "an update keeps its number of responses"},
      {"plan.links", "none", "one network: every site's weights take cluster.delay"},
  };
  gl_status status = GL_OK;
  for (size_t i = 0; i < 3 && status == GL_OK; ++i) {
    if (is_given(d, rules[i].path)) continue;
    say(d, "assumed", rules[i].path, rules[i].value, "%s", rules[i].why);
    if (i < 2) status = set_field(d->doc, rules[i].path, rules[i].value, err);
  }
  return status;
}

/* Reports the times of a response that no field is made of. */
static void say_unused(describing *d) {
  if (has_response(d, FIT_FIELD_REWARD))
    say(d, "assumed", "cluster.grader", "none",
        "rewards take %.4g s on average in the log; cluster.grader='{places: N, time: …}' models "
        "them",
        response_mean(d, FIT_FIELD_REWARD));
  if (has_response(d, FIT_FIELD_TOOLS))
    say(d, "assumed", "cluster.environment", "none",
        "tools take %.4g s of a response on average in the log; cluster.environment='{turns: …, "
        "time: …}' models them",
        response_mean(d, FIT_FIELD_TOOLS));
}

/* --- the clock against the log --- */

/* Engines that the window stops for a time generate fewer tokens than their speed allows, so the
 * speed computed from the tokens of a step is too low. Corrects it until simulated steps of the
 * first half of the log take the logged seconds: if samplers are the bottleneck, seconds are
 * proportional to 1 / speed. */
static gl_status tune_speed(describing *d, gl_error *err) {
  enum { ROUNDS = 4 };
  calibrate_log half = d->fitted;
  half.n = d->log->n / 2;
  const calibrate_request q = {.log = &half, .first = 0.5, .seeds = CHECK_SEEDS};
  char text[100];
  const double before = d->tokens_per_s;
  gl_status status = GL_OK;
  for (int k = 0; k < ROUNDS && status == GL_OK; ++k) {
    calibration c;
    cfg_doc *logged = NULL;
    status = logged_recipe(&logged, d, err);
    if (status == GL_OK) status = calibrate(&c, logged, &q, err);
    if (status == GL_OK) d->tokens_per_s *= 1 + c.quantity[0].error;
    cfg_free(logged);
  }
  snprintf(text, sizeof text, "[{concurrency: %zu, tokens_per_s: %.6g}]", d->concurrency,
           d->tokens_per_s);
  if (status == GL_OK)
    say(d, "read", "plan.sampler.decoding", text,
        "the speed above times %.3g: so the clock's steps of the first half take the log's seconds",
        d->tokens_per_s / before);
  return status == GL_OK ? set_field(d->doc, "plan.sampler.decoding", text, err) : status;
}

static void say_check(describing *d, const calibration *c) {
  static const char *const names[CALIBRATE_QUANTITIES] = {"seconds of a step", "responses/s",
                                                          "staleness"};
  static const char *const keys[CALIBRATE_QUANTITIES] = {"step_s", "responses_per_s", "staleness"};
  table *to = table_object(table_field(d->said, "check"));
  table_put(to, "fitted_to %zu, tested_on %zu", c->n_first, c->n_rest);
  table_line(
      d->said,
      "check    fitted to the first %zu steps, the clock predicts the mean of the other %zu:",
      c->n_first, c->n_rest);
  for (size_t i = 0; i < CALIBRATE_QUANTITIES; ++i) {
    const calibrate_prediction *p = &c->quantity[i];
    if (p->n == 0) continue;
    table *of = table_object(table_field(to, keys[i]));
    table_put(of, "measured %g, predicted %g, error %g", p->measured, p->predicted, p->error);
    if (isnan(p->error))
      table_line(d->said, "         %s %.4g, log %.4g", names[i], p->predicted, p->measured);
    else
      table_line(d->said, "         %s %.4g, log %.4g (%+.1f %%)", names[i], p->predicted,
                 p->measured, 100 * p->error);
  }
  if (c->wrong_first < CALIBRATE_FIELDS)
    table_line(d->said, "         %s changed between the two parts",
               calibrate_field_path(c->wrong_first));
}

/* Fits the simulated clock to the first half of the log's steps and compares its prediction with
 * the second half, or reports why not: tokens_per_s is NaN if the user gave the speed, and with
 * publish > window + 1 the clock would stall. A speed that is not of generation times is too low
 * and is tuned first, for which the first half needs CALIBRATE_FEWEST steps. */
static gl_status described_check(describing *d, gl_error *err) {
  _Static_assert(CALIBRATE_FEWEST == 40, "the text says 40");
  const char *why = d->log->n < CALIBRATE_FEWEST ? "it has fewer than 40 steps"
                    : isnan(d->tokens_per_s)     ? "the speed of samplers is given"
                    : isnan(d->window)           ? "its window is not known"
                    : d->publish > d->window + 1
                        ? "it sends weights less often than its window allows"
                    : d->fitted.name[CALIBRATE_TRAINER] == NULL ? "the learner's step is given"
                                                                : NULL;
  if (why != NULL) {
    table_line(d->said, "check    the clock is not compared with the log: %s", why);
    return GL_OK;
  }
  const calibrate_request q = {.log = &d->fitted, .first = 0.5, .seeds = CHECK_SEEDS};
  calibration c;
  cfg_doc *logged = NULL;
  gl_status status = GL_OK;
  if (!log_has(d, CALIBRATE_GENERATION) && d->log->n >= 2 * CALIBRATE_FEWEST)
    status = tune_speed(d, err);
  /* d->doc has distributions of all steps; calibrate() replaces them by those of the first half */
  if (status == GL_OK) status = logged_recipe(&logged, d, err);
  if (status == GL_OK) status = calibrate(&c, logged, &q, err);
  if (status == GL_OK) say_check(d, &c);
  cfg_free(logged);
  if (status != GL_EINPUT) return status;
  /* a part of the log has too few values, of which the whole has enough */
  table_line(d->said, "check    the clock is not compared with the log: %s", err->text);
  gl_error_clear(err);
  return GL_OK;
}

/* --- the description --- */

static void say_sources(describing *d, const char *name) {
  const fit_measured *measured = d->responses->field;
  size_t n = 0;
  for (int f = 0; f < FIT_FIELDS; ++f) n = measured[f].n > n ? measured[f].n : n;
  if (n == 0)
    table_line(d->said, "%s, %zu steps:", name, d->log->n);
  else if (d->log->n == 0)
    table_line(d->said, "%s, %zu responses:", name, n);
  else
    table_line(d->said, "%s, %zu steps and %zu responses:", name, d->log->n, n);
}

static gl_status describe_all(describing *d, size_t samplers, gl_error *err) {
  gl_status status = require_given(d, err);
  if (status == GL_OK) status = count_engines(d, samplers, err);
  if (status != GL_OK) return status;
  d->quantile = gsl_cdf_ugaussian_Pinv(pow(0.5, 1 / (d->groups * d->group_size)));
  status = describe_rules(d, err);
  if (status == GL_OK) status = describe_lengths(d, err);
  if (status == GL_OK) status = describe_windows(d, err);
  if (status == GL_OK) status = describe_speed(d, err);
  if (status == GL_OK) status = describe_choices(d, err);
  if (status == GL_OK) status = describe_learner(d, err);
  if (status == GL_OK) say_unused(d);
  return status == GL_OK ? described_check(d, err) : status;
}

gl_status log_describe(log_description *out, const log_description_request *q, gl_error *err) {
  static const table_column columns[] = {
      TABLE_KEY("kind", TABLE_TEXT), TABLE_KEY("field", TABLE_TEXT), TABLE_KEY("value", TABLE_TEXT),
      TABLE_KEY("source", TABLE_TEXT)};
  static const char start[] = "steps: 200\ncluster: {preset: fifo, unit: group}\nplan: {}\n";
  const calibrate_log *log = q->steps;
  describing d = {.log = log,
                  .responses = q->responses,
                  .mean_length = NAN,
                  .window = NAN,
                  .tokens_per_s = NAN,
                  .publish = 1};
  *out = (log_description){.staleness = NAN};
  gl_status status = recipe_load_text(&d.doc, start, q->name, q->overrides, q->n_overrides, err);
  d.said = table_document();
  d.rows = table_rows(table_field(d.said, "lines"), columns, 4);
  say_sources(&d, q->name);
  d.learner = MUST_ARRAY(double, 2 * log->n + 1, "the series of a log");
  d.sync = d.learner + log->n;
  if (status == GL_OK) status = describe_all(&d, q->samplers, err);
  free(d.learner);
  const double seconds = mean_of_values(log->value[CALIBRATE_STEP], log->n);
  out->responses_per_hour = 3600 * d.groups * d.group_size / seconds;
  out->staleness = logged_staleness(&d);
  out->doc = d.doc, out->read = d.said;
  return status;
}

void log_description_fini(log_description *d) {
  cfg_free(d->doc);
  table_free(d->read);
  *d = (log_description){.doc = NULL};
}
