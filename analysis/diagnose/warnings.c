/* Warnings: metrics that doubled or halved against the run's beginning, with the rates at which
 * that happens to runs of a stored study that survive. */
#include "analysis/announce.h"
#include "analysis/diagnose/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- rates of a stored study: text of a file of analysis/stored.h --- */

/* The number of a key; NaN if the text does not have it. */
static double rates_number(const char *text, const char *key) {
  const size_t n = strlen(key);
  for (const char *at = text; at != NULL && (at = strstr(at, key)) != NULL; at += n)
    if ((at == text || at[-1] == '\n') && at[n] == '\t') return strtod(at + n + 1, NULL);
  return NAN;
}

static double rate_number(const diagnosis *d, metric m, bool falls, const char *member) {
  char key[160];
  snprintf(key, sizeof key, "warnings[%s,%s].%s", metric_about(m)->name, falls ? "falls" : "rises",
           member);
  return rates_number(d->request.rates, key);
}

static interval rate_interval(const diagnosis *d, metric m, bool falls, const char *member) {
  char name[3][80];
  static const char *const ends[3] = {"value", "low", "high"};
  for (int k = 0; k < 3; ++k) snprintf(name[k], sizeof name[k], "%s.%s", member, ends[k]);
  return (interval){rate_number(d, m, falls, name[0]), rate_number(d, m, falls, name[1]),
                    rate_number(d, m, falls, name[2])};
}

/* --- metrics of the log --- */

typedef struct watched_metric {
  metric m;
  const double *value; /* [n] */
  size_t n;
  const char *from;
  const gathered_series *series; /* NULL: computed from the token-level log */
} watched_metric;

/* Metrics of a token-level log, computed as core/policy does. value[n_updates]. */
static bool metric_of_tokens(const diagnosis *d, metric m, double *value) {
  for (size_t u = 0; u < d->n_updates; ++u) {
    const update_facts *f = &d->update[u];
    switch ((int)m) {
    case METRIC_KL_K3_SEQ:
      value[u] = f->all.k3 / f->responses;
      break;
    case METRIC_M2_LOG_RATIO:
      value[u] = f->all.l2 / f->all.n;
      break;
    case METRIC_REWARD_MEAN:
      value[u] = f->reward;
      break;
    case METRIC_RESPONSE_LENGTH:
      value[u] = f->tokens / f->responses;
      break;
    case METRIC_ESS:
      value[u] = d->row[0].ran ? d->row[0].value[u * ROW_VALUES + ROW_ESS] : NAN;
      break;
    default:
      return false;
    }
  }
  return d->n_updates > 0;
}

static table *warnings_begin(table *to) {
  static const table_column columns[] = {
      {"metric", TABLE_TEXT, .head = "metric"},
      {"side", TABLE_TEXT, .head = "side"},
      {"update", TABLE_WHOLE, .head = "at update"},
      {"lines", TABLE_TEXT, .head = "at"},
      {"false_alarm_rate", TABLE_INTERVAL, .head = "false alarms [95 %]", .format = "%.2f"},
      {"warned_share", TABLE_INTERVAL, .head = "collapses warned of [95 %]", .format = "%.2f"},
      {"from", TABLE_TEXT, .head = "from"}};
  table *t = table_rows(table_field(to, "warnings"), columns, sizeof columns / sizeof *columns);
  table_gap(t);
  return t;
}

/* Metrics of the log that have a rate, and alarms. */
typedef struct warning_counts {
  size_t known, alarms;
} warning_counts;

/* Adds the alarms of a metric for which the study has a rate. */
static void put_warning(table *t, const diagnosis *d, const watched_metric *w,
                        warning_counts *counts) {
  const drift_rule rule = drift_rule_default();
  char place[DIAGNOSE_PLACE];
  bool known = false;
  for (int falls = 0; falls < 2; ++falls) {
    const interval rate = rate_interval(d, w->m, falls == 1, "false_alarm_rate");
    if (isnan(rate.value)) continue;
    known = true;
    const size_t at = drift_alarm(w->value, w->n, falls == 1, &rule);
    if (at == w->n) continue;
    ++counts->alarms;
    table_row(t);
    table_text(t, metric_about(w->m)->name);
    table_text(t, falls ? "halved" : "doubled");
    table_count(t, at + 1);
    if (w->series != NULL)
      place_of_value(place, d, w->series, at);
    else
      place_of_update(place, d, at);
    table_text(t, place);
    interval_cell(t, rate);
    interval_cell(t, rate_interval(d, w->m, falls == 1, "warned_share"));
    table_text(t, w->from);
  }
  counts->known += known;
}

static void put_token_warnings(table *t, const diagnosis *d, double *value,
                               warning_counts *counts) {
  static const metric watched[] = {METRIC_KL_K3_SEQ, METRIC_M2_LOG_RATIO, METRIC_REWARD_MEAN,
                                   METRIC_RESPONSE_LENGTH, METRIC_ESS};
  for (size_t k = 0; k < sizeof watched / sizeof *watched; ++k)
    if (metric_of_tokens(d, watched[k], value))
      put_warning(t, d, &(watched_metric){watched[k], value, d->n_updates, "token-level log", NULL},
                  counts);
}

static void put_series_warnings(table *t, const diagnosis *d, warning_counts *counts) {
  for (size_t i = 0; d->gathered != NULL && i < d->gathered->n_series; ++i) {
    const gathered_series *s = &d->gathered->series[i];
    if (s->what.known < METRIC_COUNT)
      put_warning(t, d, &(watched_metric){s->what.known, s->value, s->n, s->metric, s}, counts);
  }
}

static void put_warning_words(table *to, const diagnosis *d, const warning_counts *counts) {
  const drift_rule rule = drift_rule_default();
  if (counts->known == 0) {
    table_line(to,
               "No metric of this log has a stored rate of false alarms, and there is no warning "
               "without its rate. Series that have one: gradient norm, entropy, mean reward.");
    return;
  }
  table_line(to,
             "Metrics watched: %zu; alarms: %zu. Alarm: the mean of %zu updates is above %g times "
             "or below 1/%g of the median of the first %zu.",
             counts->known, counts->alarms, rule.window, rule.factor, rule.factor, rule.begin);
  table_line(to,
             "Rates: of %.0f surviving and %.0f collapsing runs of the recipe edges (a small "
             "transformer that learns addition, fresh data). Other models and tasks may differ.",
             rates_number(d->request.rates, "survived"), rates_number(d->request.rates, "fallen"));
}

gl_status warnings_section(table *to, const diagnosis *d, gl_error *err) {
  arena work = {0};
  double *value = ARENA_ARRAY(&work, double, d->n_updates);
  warning_counts counts = {0};
  gl_status status = arena_check(&work, "the metrics of a log", err);
  if (status == GL_OK) {
    table *t = warnings_begin(to);
    put_token_warnings(t, d, value, &counts);
    put_series_warnings(t, d, &counts);
    for (size_t c = 0; c < 7 && counts.alarms == 0; ++c) table_hide_head(t, c);
    put_warning_words(to, d, &counts);
  }
  arena_fini(&work);
  return status;
}
