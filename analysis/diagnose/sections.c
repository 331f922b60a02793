/* Writes the sections of a diagnosis as documents of tables and lines (core/base/table.h). */
#include "analysis/diagnose/internal.h"
#include "analysis/import/metric_names.h"
#include "core/base/staleness_counters.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *id, *heading;
} sections[DIAGNOSE_SECTIONS] = {
    [DIAGNOSE_READ] = {"read", "1. What was read"},
    [DIAGNOSE_STALENESS] = {"staleness", "2. Staleness"},
    [DIAGNOSE_DIVERGENCE] = {"divergence", "3. Divergence of sampler and learner"},
    [DIAGNOSE_WEIGHTS] = {"weights", "4. Importance weights and clips"},
    [DIAGNOSE_SPEED] = {"speed", "5. What limits the speed"},
    [DIAGNOSE_WARNINGS] = {"warnings", "6. Warnings"},
    [DIAGNOSE_CHANGES_SECTION] = {"changes", "7. What to change"},
};

const char *diagnose_section_id(diagnose_section s) {
  return sections[s].id;
}

const char *diagnose_section_heading(diagnose_section s) {
  return sections[s].heading;
}

size_t diagnosis_lead(const diagnosis *d, char *text, size_t size) {
  size_t n = 0;
  if (d->n_findings == 0 && d->n_series == 0 && d->n_updates < DIAGNOSE_FEWEST)
    return (size_t)snprintf(text, size, "Fewer than %d updates: too few for findings.",
                            DIAGNOSE_FEWEST);
  if (d->n_findings == 0)
    return (size_t)snprintf(text, size, "No cause is beyond its limit in what this log has.");
  for (size_t i = 0; i < d->n_findings && i < DIAGNOSE_CHANGES && n < size; ++i) {
    const diagnose_finding *f = &d->finding[i];
    n += (size_t)snprintf(text + n, size - n, "%s%s: %s (%.3g [%.3g, %.3g], limit %g)",
                          i > 0 ? "; " : "", cause_about(f->cause)->name,
                          cause_about(f->cause)->title, f->measured.value, f->measured.low,
                          f->measured.high, f->limit);
  }
  if (n < size) n += (size_t)snprintf(text + n, size - n, ".");
  return n;
}

/* --- rows of numbers --- */

/* Begins a table of numbers with the columns quantity, value with interval, unit, and the field of
 * the log that the number comes from. */
static table *numbers_begin(table *to, const char *name) {
  static const table_column columns[] = {{"quantity", TABLE_TEXT, .head = "quantity"},
                                         {"value", TABLE_INTERVAL, .head = "value [95 %]"},
                                         {"unit", TABLE_TEXT, .head = "unit"},
                                         ORIGIN_COLUMNS};
  table *t = table_rows(table_field(to, name), columns, sizeof columns / sizeof *columns);
  table_gap(t);
  return t;
}

static void number_row(table *t, const char *what, interval v, const char *unit, origin from) {
  table_row(t);
  table_text(t, what);
  interval_cell(t, v);
  if (isnan(v.low) && v.value == floor(v.value) && fabs(v.value) < 1e15)
    table_shown(t, "%.0f", v.value);
  table_text(t, unit);
  origin_cells(t, &from);
}

/* Writes the row if the number is known. Returns the number of rows written. */
static size_t known_row(table *t, const char *what, interval v, const char *unit, origin from) {
  if (isnan(v.value)) return 0;
  number_row(t, what, v, unit, from);
  return 1;
}

static interval alone(double value) {
  return (interval){value, NAN, NAN};
}

/* Shows a table without rows only in formats for programs. */
static void hide_if_empty(table *t, size_t n_rows, size_t n_columns) {
  for (size_t c = 0; c < n_columns && n_rows == 0; ++c) table_hide_head(t, c);
}

/* Writes a line that says which option makes the trainer log the quantity. */
static void unknown_line(table *to, const char *what, const char *how) {
  table_line(to, "Not in this log: %s. %s%s.", what, how != NULL ? "To have it: " : "",
             how != NULL ? how : "This trainer has no setting for it");
}

/* Adds a note on the source of the rows, for a table that has no column `from`. */
static void rows_line(table *to, const diagnosis *d, const char *name) {
  const origin from = origin_of_tokens(d, ""); /* its field is not written */
  table_text(table_field(to, name), from.lines);
  if (from.ref > 0) table_line(to, "The rows of the last table are from [%zu].", from.ref);
}

/* "prev_logprobs and generation_logprobs" */
static const char *log_fields(const trainer_info *t, char text[128]) {
  snprintf(text, 128, "%s, %s", t->logp != NULL ? t->logp : "log p",
           t->logq != NULL ? t->logq : "log q");
  return text;
}

/* --- 1 --- */

/* The number of steps at which a series of seconds is below 0; *first: the first of them. */
static size_t steps_below_0(const gathered_series *s, double *first) {
  size_t n = 0;
  if (!series_is_seconds(s->metric)) return 0;
  for (size_t i = 0; i < s->n; ++i)
    if (s->value[i] < 0 && n++ == 0) *first = s->step[i];
  return n;
}

static void put_not_usable(table *to, const char *name, const char *what, size_t steps,
                           double first) {
  if (steps > 0)
    table_line(to, "%s is %s at %zu step%s, first at step %.10g; the means leave them out.", name,
               what, steps, steps == 1 ? "" : "s", first);
}

/* Names the series with values that are no numbers, such as a loss after a run has diverged, and
 * those of seconds below 0. */
static void put_not_numbers(table *to, const diagnosis *d) {
  enum { NAMED = 5 };
  size_t n = 0;
  for (size_t i = 0; d->gathered != NULL && i < d->gathered->n_series; ++i) {
    const gathered_series *s = &d->gathered->series[i];
    double first = 0;
    const size_t below = steps_below_0(s, &first);
    if (s->n_nan + below == 0 || ++n > NAMED) continue;
    put_not_usable(to, s->metric, "not a number", s->n_nan, s->n_nan > 0 ? s->nan_step[0] : 0);
    put_not_usable(to, s->metric, "below 0 and no duration", below, first);
  }
  if (n > NAMED) table_line(to, "So are %zu more series.", n - NAMED);
}

static void section_read(table *to, const diagnosis *d) {
  const trainer_info *trainer = trainer_of(d);
  char all_lines[2048] = "";
  const origin log = origin_of_tokens(d, "token-level log");
  const origin metrics = origin_of_all_series(d, "metrics log", all_lines, sizeof all_lines);
  const size_t last = d->n_updates > 0 ? d->n_updates - 1 : 0;
  char place[DIAGNOSE_POSITION_SIZE];
  double groups = 0, responses = 0, tokens = 0;
  for (size_t u = 0; u < d->n_updates; ++u) {
    groups += d->update[u].groups;
    responses += d->update[u].responses;
    tokens += d->update[u].tokens;
  }
  table_text(table_field(to, "trainer"), trainer->name);
  table_line(to, "Trainer: read as %s.", trainer->title);
  table *t = numbers_begin(to, "counts");
  if (d->n_updates > 0) {
    number_row(t, "updates", alone((double)d->n_updates), "", log);
    number_row(t, "groups", alone(groups), "", log);
    number_row(t, "responses", alone(responses), "", log);
    number_row(t, "trained tokens", alone(tokens), "", log);
    position_of_update(place, d, 0);
    known_row(t, "first step", alone(d->update[0].step), "", (origin){"step", place, 0});
    position_of_update(place, d, last);
    known_row(t, "last step", alone(d->update[last].step), "", (origin){"step", place, 0});
    position_of_update(place, d, d->restart_at);
    number_row(t, "restarts (steps that go back)", alone((double)d->restarts), "",
               d->restarts > 0 ? (origin){"step", place, 0} : origin_of_tokens(d, "step"));
  }
  if (d->n_all_series > 0) {
    number_row(t, "series", alone((double)d->n_all_series), "", metrics);
    number_row(t, "series used here", alone((double)d->n_series), "", metrics);
  }
  if (d->not_finite > 0)
    number_row(t, "tokens left out: log-probability not finite", alone(d->not_finite), "tokens",
               log);
  sources_table(to, d);
  put_not_numbers(to, d);
  if (d->restarts > 0)
    table_line(to,
               "Steps go back %zu time%s: restarts, or several runs. Staleness begins at 0 after "
               "a restart, so means over both parts are too low.",
               d->restarts, d->restarts == 1 ? "" : "s");
  if (d->n_updates > 0 && d->n_updates < DIAGNOSE_FEWEST)
    table_line(to, "Fewer than %d updates: no intervals, and no findings.", DIAGNOSE_FEWEST);
  if (d->n_updates == 0) unknown_line(to, "token-level data", trainer->log_tokens);
}

/* --- 2 --- */

/* Counters that can be computed from the versions of tokens (core/base/staleness_counters.h). */
static const struct {
  const char *name, *meaning;
  staleness_kind kind;
} counters[] = {
    {COUNTER_GEPOLAB(COUNTER_NAME), "oldest version of a response", STALENESS_OLDEST},
    {COUNTER_TRL(COUNTER_NAME), "version of the first token", STALENESS_START},
    {COUNTER_VERL_STALENESS(COUNTER_NAME), "newest version of a response", STALENESS_NEWEST},
    {COUNTER_VERL_WORST(COUNTER_NAME), "oldest version of a response", STALENESS_OLDEST},
    {COUNTER_AREAL_THETA(COUNTER_NAME), "mean over tokens", STALENESS_TOKENS},
    {COUNTER_MILES(COUNTER_NAME), "oldest version", STALENESS_OLDEST},
    {COUNTER_MEGATRON(COUNTER_NAME), "version of the first token", STALENESS_START},
    {COUNTER_MIMO(COUNTER_NAME), "mean over tokens", STALENESS_TOKENS},
};

/* The mean over updates; NaN if memory is short. */
static interval series_mean_of(const role_series *s, uint64_t entity) {
  interval mean;
  return facts_mean(s->from->value, s->from->n, 1, entity, &mean, NULL) == GL_OK ? mean
                                                                                 : alone(NAN);
}

/* Writes the row of a staleness series: its mean, and its largest value with the position in the
 * log. */
static void series_mean(table *t, const diagnosis *d, const role_series *s, const char *meaning) {
  char place[DIAGNOSE_POSITION_SIZE] = "";
  double most = NAN;
  for (size_t i = 0; i < s->from->n; ++i) {
    if (!(isnan(most) || s->from->value[i] > most)) continue;
    most = s->from->value[i];
    position_of_value(place, d, s->from, i);
  }
  const origin from = origin_of_series(d, s->from, s->from->metric);
  table_row(t);
  table_text(t, s->definition != NULL ? s->definition : s->from->metric);
  interval_cell(t, series_mean_of(s, 300));
  table_real(t, most);
  table_text(t, place);
  table_text(t, meaning);
  origin_cells(t, &from);
}

static table *counters_begin(table *to) {
  static const table_column columns[] = {{"definition", TABLE_TEXT, .head = "counter"},
                                         {"mean", TABLE_INTERVAL, .head = "mean [95 %]"},
                                         {"most", TABLE_REAL, .head = "largest update"},
                                         {"most_lines", TABLE_TEXT, .head = "at"},
                                         {"meaning", TABLE_TEXT, .head = "meaning"},
                                         ORIGIN_COLUMNS};
  table *t = table_rows(table_field(to, "definitions"), columns, sizeof columns / sizeof *columns);
  table_gap(t);
  return t;
}

/* The update with the largest staleness; n_updates: none is known. */
static size_t most_staleness(const diagnosis *d, staleness_kind kind) {
  size_t at = d->n_updates;
  for (size_t u = 0; u < d->n_updates; ++u) {
    const double value = d->update[u].staleness[kind];
    if (!isnan(value) && (at == d->n_updates || value > d->update[at].staleness[kind])) at = u;
  }
  return at;
}

static void put_counter(table *t, const diagnosis *d, size_t i, const origin *from) {
  const staleness_kind kind = counters[i].kind;
  const size_t at = most_staleness(d, kind);
  char place[DIAGNOSE_POSITION_SIZE] = "";
  if (at < d->n_updates) position_of_update(place, d, at);
  table_row(t);
  table_text(t, counters[i].name);
  interval_cell(t, d->staleness.mean[kind]);
  table_real(t, at < d->n_updates ? d->update[at].staleness[kind] : NAN);
  table_text(t, place);
  table_text(t, counters[i].meaning);
  origin_cells(t, from);
}

/* Writes the mean staleness by each counter: as the trainer logs it, and as computed from the
 * versions of tokens. */
static void put_counters(table *to, const diagnosis *d, const trainer_info *trainer) {
  const bool has_lags = d->divergence.n_lags > 0 || !isnan(d->staleness.mean[0].value);
  table *t = counters_begin(to);
  for (size_t i = 0; i < d->n_series; ++i)
    if (d->series[i].role == SERIES_STALENESS)
      series_mean(t, d, &d->series[i], "as the trainer logs it");
  const origin from =
      origin_of_tokens(d, trainer->versions != NULL ? trainer->versions : "versions");
  for (size_t i = 0; i < sizeof counters / sizeof *counters && has_lags; ++i)
    put_counter(t, d, i, &from);
  for (size_t i = 0; i < d->n_series; ++i) {
    const foreign_metric *f = foreign_find(d->series[i].from->metric);
    if (d->series[i].role == SERIES_STALENESS && f != NULL)
      table_line(to, "%s: %s (%s, %s).", f->name, f->definition, f->system, f->source);
  }
  hide_if_empty(t, has_lags || series_of(d, SERIES_STALENESS) != NULL, 7);
  if (!has_lags && series_of(d, SERIES_STALENESS) == NULL)
    unknown_line(to, "the lag of the data: the learner's version less that which generated them",
                 trainer->log_versions);
  else
    table_line(to, "The learner's version less that of the data. One run has a different number "
                   "for each counter; "
                   "`gepolab sim RECIPE --definitions` compares them.");
}

static void put_distribution(table *to, const diagnosis *d) {
  static const table_column columns[] = {{"lag", TABLE_INTEGER, .head = "lag"},
                                         {"tokens", TABLE_REAL, .head = "tokens"},
                                         {"fraction", TABLE_REAL, .head = "fraction of tokens"}};
  const divergence_facts *f = &d->divergence;
  double all = 0;
  if (f->n_lags == 0) return;
  for (size_t i = 0; i < f->n_lags; ++i) all += f->lag[i].tokens;
  table *t = table_rows(table_field(to, "distribution"), columns, 3);
  table_gap(t);
  for (size_t i = 0; i < f->n_lags; ++i) {
    table_row(t);
    table_count(t, f->lag[i].lag);
    if (f->lag[i].lag == DIAGNOSE_MOST_LAG) table_shown(t, "%d or more", DIAGNOSE_MOST_LAG);
    table_real(t, f->lag[i].tokens);
    table_real(t, f->lag[i].tokens / all);
  }
  if (f->unknown_lag > 0)
    table_line(to, "%.0f tokens have no version and are in no row.", f->unknown_lag);
  rows_line(to, d, "distribution_lines");
}

static void put_dropping(table *to, const diagnosis *d, const trainer_info *trainer) {
  const staleness_facts *f = &d->staleness;
  const origin from =
      origin_of_tokens(d, trainer->dropped != NULL ? trainer->dropped : "dropped responses");
  const role_series *dropped = series_of(d, SERIES_DROPPED), *rate = series_of(d, SERIES_KEEP_RATE);
  const char *versions_field = trainer->versions != NULL ? trainer->versions : "versions";
  const origin versions = origin_of_tokens(d, versions_field);
  const size_t most = most_staleness(d, STALENESS_MOST);
  char place[DIAGNOSE_POSITION_SIZE] = "";
  if (most < d->n_updates) position_of_update(place, d, most);
  table *t = numbers_begin(to, "trend_and_dropping");
  size_t n = known_row(t, "trend of the oldest version's lag", f->trend, "versions per 100 updates",
                       versions);
  n += known_row(t, "largest lag of a token", alone(f->most), "versions",
                 (origin){versions_field, place, 0});
  n += known_row(t, "length of a response per version of its lag", f->length_by_lag, "tokens",
                 versions);
  n += known_row(t, "fraction of responses dropped", f->dropped_fraction, "", from);
  n += known_row(t, "mean length of trained responses", f->kept_length, "tokens", from);
  n += known_row(t, "mean length of dropped responses", f->dropped_length, "tokens", from);
  n += known_row(t, "dropped / trained length", f->length_ratio, "", from);
  n += known_row(t, "change of the mean length by dropping", f->shift, "fraction", from);
  if (dropped != NULL)
    n += known_row(t, "dropped in a step", series_mean_of(dropped, 301), "as the trainer counts",
                   origin_of_series(d, dropped->from, dropped->from->metric));
  if (rate != NULL)
    n += known_row(t, "fraction kept", series_mean_of(rate, 302), "",
                   origin_of_series(d, rate->from, rate->from->metric));
  hide_if_empty(t, n, 5);
  if (isnan(f->dropped_fraction.value) && dropped == NULL && rate == NULL)
    unknown_line(to, "which responses were dropped, and how long they were", NULL);
  else if (isnan(f->dropped_length.value) && f->dropped_fraction.value != 0)
    unknown_line(to, "how long the dropped responses were", NULL);
}

static void section_staleness(table *to, const diagnosis *d) {
  const trainer_info *trainer = trainer_of(d);
  put_counters(to, d, trainer);
  put_distribution(to, d);
  put_dropping(to, d, trainer);
}

/* --- 3 --- */

static void put_lag(table *t, const lag_facts *f) {
  table_row(t);
  table_count(t, f->lag);
  table_real(t, f->tokens);
  interval_cell(t, f->k3), interval_cell(t, f->k1), interval_cell(t, f->spread);
  interval_cell(t, f->difference), interval_cell(t, f->far), interval_cell(t, f->factor);
}

static void put_lags(table *to, const diagnosis *d) {
  static const table_column columns[] = {
      {"lag", TABLE_INTEGER, .head = "lag"},
      {"tokens", TABLE_REAL, .head = "tokens"},
      {"k3", TABLE_INTERVAL, .head = "k3 [95 %]"},
      {"k1", TABLE_INTERVAL, .head = "k1 [95 %]"},
      {"spread", TABLE_INTERVAL, .head = "sd of l [95 %]"},
      {"difference", TABLE_INTERVAL, .head = "mean |p - q| [95 %]"},
      {"far", TABLE_INTERVAL, .head = "|p - q| > 0.2 [95 %]"},
      {"factor", TABLE_INTERVAL, .head = "mean exp(|l|) [95 %]"}};
  const divergence_facts *f = &d->divergence;
  table *t = table_rows(table_field(to, "by_lag"), columns, sizeof columns / sizeof *columns);
  table_gap(t);
  for (size_t i = 0; i < f->n_lags; ++i) put_lag(t, &f->lag[i]);
  rows_line(to, d, "by_lag_lines");
}

static const char *floor_words(const divergence_facts *f) {
  switch (f->how) {
  case FLOOR_LAG_0:
    return "Floor: tokens of lag 0. Slope: regression on the lag. Different lags have different "
           "tasks and lengths.";
  case FLOOR_LINE:
    return "Floor: intercept of the regression on the lag, because no token has lag 0.";
  case FLOOR_FRESH:
    return "Every token has lag 0: all of the divergence is mismatch of the engines.";
  case FLOOR_FIRST:
    return "The log has no lags. Floor: the first update, whose data the learner's own version "
           "generated; what is added since counts as age.";
  case FLOOR_UNKNOWN:
    break;
  }
  return "";
}

/* Writes the mean of a logged series, if the log has one. Returns the number of rows written. */
static size_t series_row(table *t, const diagnosis *d, series_role role, const char *what,
                         const char *unit) {
  const role_series *s = series_of(d, role);
  if (s == NULL) return 0;
  return known_row(t, what, series_mean_of(s, 303 + (uint64_t)role), unit,
                   origin_of_series(d, s->from, s->from->metric));
}

/* The divergence of a log without tokens, in any of the forms that trainers log. */
static void put_logged_divergence(table *to, const diagnosis *d) {
  table *t = numbers_begin(to, "parts");
  size_t n = series_row(t, d, SERIES_DIFFERENCE, "mean |p - q|", "");
  n += series_row(t, d, SERIES_LOG_DIFFERENCE, "mean |log p - log q|", "nats");
  hide_if_empty(t, n, 5);
  unknown_line(to, "log-probabilities of both engines, or their divergence in nats",
               trainer_of(d)->log_tokens);
}

static void section_divergence(table *to, const diagnosis *d) {
  const trainer_info *trainer = trainer_of(d);
  const divergence_facts *f = &d->divergence;
  const role_series *kl = series_of(d, SERIES_KL);
  char fields[128];
  const origin from = f->all.tokens > 0 || kl == NULL
                          ? origin_of_tokens(d, log_fields(trainer, fields))
                          : origin_of_series(d, kl->from, kl->from->metric);
  if (f->all.tokens == 0 && kl == NULL) {
    put_logged_divergence(to, d);
    return;
  }
  table *t = numbers_begin(to, "parts");
  number_row(t, "divergence k3, all data", f->all.k3, "nats per token", from);
  known_row(t, "divergence k1", f->all.k1, "nats per token", from);
  known_row(t, "standard deviation of l", f->all.spread, "nats", from);
  if (known_row(t, "mean |p - q|", f->all.difference, "", from) == 0)
    series_row(t, d, SERIES_DIFFERENCE, "mean |p - q|", "");
  series_row(t, d, SERIES_LOG_DIFFERENCE, "mean |log p - log q|", "nats");
  known_row(t, "fraction of tokens with |p - q| > 0.2", f->all.far, "", from);
  known_row(t, "mean exp(|l|)", f->all.factor, "", from);
  known_row(t, "floor: k3 at lag 0", f->part[PART_FLOOR], "nats per token", from);
  known_row(t, "slope: k3 per version", f->part[PART_SLOPE], "nats per token", from);
  known_row(t, "part of k3 that is mismatch of the engines", f->part[PART_MISMATCH_FRACTION],
            "fraction", from);
  known_row(t, "part of k3 that is age", f->part[PART_AGE_FRACTION], "fraction", from);
  table_line(to, "l = log p - log q (p: learner, q: sampler); k1 = -l and k3 = exp(l) - l - 1 "
                 "estimate KL(q||p).");
  if (f->how == FLOOR_UNKNOWN) {
    table_line(to, "Mismatch and age cannot be separated: %s.", f->why);
    unknown_line(to, "the lag of the data", trainer->log_versions);
  } else
    table_line(to, "%s%s", floor_words(f),
               f->is_of_updates
                   ? " Each point is an update: mean divergence against mean staleness."
                   : "");
  if (f->n_lags > 0) put_lags(to, d);
}

/* --- 4 --- */

/* The mean over updates; NaN values are left out. */
static double method_mean(const diagnosis *d, const method_facts *method, method_value k) {
  double sum = 0;
  size_t n = 0;
  for (size_t u = 0; u < d->n_updates; ++u) {
    const double value = method->value[u * METHOD_VALUES + (size_t)k];
    if (isnan(value)) continue;
    sum += value;
    ++n;
  }
  return n > 0 ? sum / (double)n : NAN;
}

/* Fraction of the improbable wrong responses, over all updates, that the algorithm drops. */
static double dropped_of(const diagnosis *d, const method_facts *method) {
  double all = 0, dropped = 0;
  for (size_t u = 0; u < d->n_updates; ++u) {
    const double n = method->value[u * METHOD_VALUES + METHOD_IMPROBABLE];
    if (isnan(n)) continue;
    all += d->update[u].improbable;
    dropped += n;
  }
  return all > 0 ? dropped / all : NAN;
}

static table *algorithms_begin(table *to) {
  static const table_column columns[] = {
      {"algorithm", TABLE_TEXT, .head = "algorithm"},
      TABLE_KEY("ran", TABLE_FLAG),
      TABLE_KEY("updates", TABLE_INTEGER),
      TABLE_KEY("refused", TABLE_INTEGER),
      TABLE_KEY("why", TABLE_TEXT),
      {"ess", TABLE_INTERVAL, .head = "ESS [95 %]", .format = "%.3f"},
      {"weight_max", TABLE_REAL, .head = "largest weight"},
      {"weight_max_lines", TABLE_TEXT, .head = "at"},
      {"clipped_positive", TABLE_REAL, .head = "clipped A > 0", .format = "%.3f"},
      {"clipped_negative", TABLE_REAL, .head = "clipped A < 0", .format = "%.3f"},
      {"gated_positive", TABLE_REAL, .head = "gated A > 0", .format = "%.3f"},
      {"gated_negative", TABLE_REAL, .head = "gated A < 0", .format = "%.3f"},
      {"improbable_dropped", TABLE_REAL, .head = "improbable wrong dropped", .format = "%.3f"}};
  table *t = table_rows(table_field(to, "algorithms"), columns, sizeof columns / sizeof *columns);
  table_gap(t);
  return t;
}

/* The largest value; place receives the position of its update in the log. */
static double most_of(const diagnosis *d, const method_facts *method, method_value k,
                      char place[DIAGNOSE_POSITION_SIZE]) {
  double most = NAN;
  place[0] = '\0';
  for (size_t u = 0; u < d->n_updates; ++u) {
    const double value = method->value[u * METHOD_VALUES + (size_t)k];
    if (isnan(value) || value <= most) continue;
    most = value;
    position_of_update(place, d, u);
  }
  return most;
}

static gl_status put_algorithm(table *t, const diagnosis *d, const method_facts *method,
                               gl_error *err) {
  interval ess;
  char place[DIAGNOSE_POSITION_SIZE];
  const gl_status status =
      facts_mean(method->value + METHOD_ESS, d->n_updates, METHOD_VALUES, 310, &ess, err);
  if (status != GL_OK) return status;
  table_row(t);
  if (method->n == 0) table_hide_row(t);
  table_text(t, method->algorithm.name);
  if (method->ran) table_shown(t, "%s (ran)", method->algorithm.name), table_bold(t);
  table_flag(t, method->ran);
  table_count(t, method->n), table_count(t, method->n_refused);
  table_text(t, method->n_refused > 0 ? method->why : NULL);
  interval_cell(t, ess);
  table_real(t, most_of(d, method, METHOD_WEIGHT_MAX, place));
  table_text(t, place);
  table_real(t, method_mean(d, method, METHOD_CLIPPED_POSITIVE)),
      table_real(t, method_mean(d, method, METHOD_CLIPPED_NEGATIVE));
  table_real(t, method_mean(d, method, METHOD_GATED_POSITIVE)),
      table_real(t, method_mean(d, method, METHOD_GATED_NEGATIVE));
  table_real(t, dropped_of(d, method));
  return GL_OK;
}

static gl_status section_weights(table *to, const diagnosis *d, gl_error *err) {
  const trainer_info *trainer = trainer_of(d);
  const role_series *ess = series_of(d, SERIES_ESS);
  double improbable = 0;
  gl_status status = GL_OK;
  for (size_t u = 0; u < d->n_updates; ++u)
    if (!isnan(d->update[u].improbable)) improbable += d->update[u].improbable;
  if (ess != NULL) {
    number_row(numbers_begin(to, "logged"), "ESS of the method that ran", series_mean_of(ess, 311),
               "", origin_of_series(d, ess->from, ess->from->metric));
  }
  if (d->divergence.all.tokens == 0) {
    unknown_line(to,
                 "log-probabilities of tokens, from which the weights of every algorithm follow",
                 trainer->log_tokens);
    return status;
  }
  table *t = numbers_begin(to, "signal");
  number_row(t, "responses with a signal in an update", d->informative, "responses",
             origin_of_tokens(d, trainer->rewards != NULL ? trainer->rewards : "advantages"));
  number_row(t, "wrong responses that are improbable under their group", alone(improbable),
             "responses", origin_of_tokens(d, "all updates"));
  t = algorithms_begin(to);
  for (size_t i = 0; i < d->n_methods && status == GL_OK; ++i)
    status = put_algorithm(t, d, &d->method[i], err);
  rows_line(to, d, "algorithms_lines");
  table_line(to,
             "Means over updates of each algorithm's own weights on these batches; the largest "
             "weight is that of the log. ESS: (sum w)^2 / (n sum w^2) within a group. Improbable: "
             "A < 0 and a geometric mean probability below %g of the group's expectation; "
             "dropped: no token of it has a gradient.",
             DIAGNOSE_IMPROBABLE);
  for (size_t i = 0; i < d->n_methods; ++i)
    if (d->method[i].n_refused > 0)
      table_line(to, "%s: not of %zu updates: %s", d->method[i].algorithm.name,
                 d->method[i].n_refused, d->method[i].why);
  if (d->request.algorithm == NULL)
    table_line(to, "Which method ran is not in the log; --algorithm NAME marks its row.");
  return status;
}

/* --- 5 --- */

static void section_speed(table *to, const diagnosis *d) {
  const trainer_info *trainer = trainer_of(d);
  const speed_facts *f = &d->speed;
  const role_series *step = series_of(d, SERIES_STEP_TIME), *wait = series_of(d, SERIES_WAIT);
  if (step == NULL) {
    unknown_line(to, "the time of a step and of its parts", trainer->log_times);
    return;
  }
  table *t = numbers_begin(to, "seconds");
  number_row(t, "step", f->step, "s", origin_of_series(d, step->from, step->from->metric));
  if (wait != NULL)
    number_row(t, "trainer waits", f->wait, "s",
               origin_of_series(d, wait->from, wait->from->metric));
  for (int k = 0; k < SPEED_PARTS; ++k) {
    const role_series *s = series_of(d, speed_part_roles[k]);
    if (s != NULL || f->is_inferred[k])
      number_row(t, speed_part_names[k], f->part[k], "s",
                 s != NULL ? origin_of_series(d, s->from, s->from->metric)
                           : origin_of_series(d, step->from, "inferred from the others"));
    else
      unknown_line(to, speed_part_names[k], trainer->log_times);
  }
  if (!f->is_known) {
    unknown_line(to, "two parts of a step, without which nothing can be compared",
                 trainer->log_times);
    return;
  }
  number_row(t, "fraction of a step that the trainer waits", f->wait_fraction, "",
             origin_of_series(d, step->from, "waits / step"));
  known_row(t, "most that asynchrony can bring", f->overlap_limit, "times",
            origin_of_series(d, step->from, "sum of the parts / longest part"));
  known_row(t, "what overlap brings in this log", f->overlap_gain, "times",
            origin_of_series(d, step->from, "sum of the parts / step"));
  table_text(table_field(to, "binds"), speed_part_names[f->longest_part]);
  table_line(to,
             "The longest part is %s. No overlap can make a step shorter than its longest part, "
             "with these machines.",
             speed_part_names[f->longest_part]);
  table_line(to, f->is_serial
                     ? "The parts follow each other in this log."
                     : "Parts overlap in this log: they are longer together than a step, or "
                       "the trainer logs its waiting.");
}

/* --- 7 --- */

/* The lines that a finding was measured on. */
static origin origin_of_cause(const diagnosis *d, diagnose_cause c) {
  const role_series *s = series_of(d, cause_about(c)->is_speed ? SERIES_STEP_TIME : SERIES_KL);
  const bool is_of_series = cause_about(c)->is_speed || d->divergence.is_of_updates;
  return is_of_series && s != NULL ? origin_of_series(d, s->from, "") : origin_of_tokens(d, "");
}

static void put_finding(table *t, const diagnosis *d, const diagnose_finding *f) {
  const cause_info *about = cause_about(f->cause);
  const char *setting = trainer_of(d)->setting[f->cause];
  table_row(t);
  table_text(t, about->name);
  table_text(t, about->title);
  interval_cell(t, f->measured);
  table_real(t, f->limit);
  table_text(t, setting != NULL ? setting : "no setting of this trainer is known");
  table_text(t, about->advice);
  table_text(t, about->measured);
  table_text(t, about->limit_about);
  table_text(t, about->instead);
  table_text(t, origin_of_cause(d, f->cause).lines);
}

static void section_changes(table *to, const diagnosis *d) {
  static const table_column columns[] = {{"cause", TABLE_TEXT, .head = "cause"},
                                         TABLE_KEY("title", TABLE_TEXT),
                                         {"measured", TABLE_INTERVAL, .head = "measured [95 %]"},
                                         {"limit", TABLE_REAL, .head = "limit"},
                                         {"setting", TABLE_TEXT, .head = "setting"},
                                         TABLE_KEY("advice", TABLE_TEXT),
                                         TABLE_KEY("quantity", TABLE_TEXT),
                                         TABLE_KEY("limit_about", TABLE_TEXT),
                                         TABLE_KEY("instead", TABLE_TEXT),
                                         TABLE_KEY("lines", TABLE_TEXT)};
  table *t = table_rows(table_field(to, "findings"), columns, sizeof columns / sizeof *columns);
  table_gap(t);
  hide_if_empty(t, d->n_findings, 10);
  for (size_t i = 0; i < d->n_findings && i < DIAGNOSE_CHANGES; ++i)
    put_finding(t, d, &d->finding[i]);
  for (size_t i = 0; i < d->n_findings && i < DIAGNOSE_CHANGES; ++i) {
    const cause_info *about = cause_about(d->finding[i].cause);
    table_line(to, "%zu. %s: %s. Change: %s.%s%s%s", i + 1, about->name, about->title,
               about->advice, about->instead != NULL ? " Note: " : "",
               about->instead != NULL ? about->instead : "", about->instead != NULL ? "." : "");
    const origin from = origin_of_cause(d, d->finding[i].cause);
    char ref[32] = "";
    if (from.ref > 0) snprintf(ref, sizeof ref, " [%zu]", from.ref);
    table_line(to, "   Measured: %s%s. Limit: %s.", about->measured, ref, about->limit_about);
  }
  if (d->n_findings > 0)
    table_line(to,
               "A cause is named only if its whole interval is beyond the limit. -r FILE writes "
               "a recipe that shows the effect of the first change (--change N: of another).");
  else
    table_line(to, "No cause is beyond its limit in what this log has. That covers only what "
                   "sections 2 to 5 could measure.");
}

gl_status diagnosis_section(table *to, const diagnosis *d, diagnose_section s, gl_error *err) {
  switch (s) {
  case DIAGNOSE_READ:
    section_read(to, d);
    return GL_OK;
  case DIAGNOSE_STALENESS:
    section_staleness(to, d);
    return GL_OK;
  case DIAGNOSE_DIVERGENCE:
    section_divergence(to, d);
    return GL_OK;
  case DIAGNOSE_WEIGHTS:
    return section_weights(to, d, err);
  case DIAGNOSE_SPEED:
    section_speed(to, d);
    return GL_OK;
  case DIAGNOSE_WARNINGS:
    return warnings_section(to, d, err);
  case DIAGNOSE_CHANGES_SECTION:
    section_changes(to, d);
    return GL_OK;
  case DIAGNOSE_SECTIONS:
    break;
  }
  return gl_fail(err, GL_EINTERNAL, "there is no such section");
}
