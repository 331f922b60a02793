/* A diagnosis: its memory, the rules that find causes, the warnings about the log, and the recipe
 * that simulates a change. */
#include "analysis/collapse_prediction.h"
#include "analysis/diagnose/internal.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gl_status diagnosis_new(diagnosis **out, const diagnose_request *request, gl_error *err) {
  diagnosis *d = calloc(1, sizeof *d);
  *out = d;
  if (d == NULL) return gl_fail_memory(err, "a diagnosis");
  d->request = *request;
  const gl_status status = methods_init(d, err);
  if (status == GL_OK) return GL_OK;
  diagnosis_free(d);
  *out = NULL;
  return status;
}

void diagnosis_free(diagnosis *d) {
  if (d == NULL) return;
  methods_fini(d);
  free(d->update);
  free(d->place);
  free(d->source);
  free(d->cell);
  free(d->scratch);
  free(d->series);
  arena_fini(&d->memory);
  free(d);
}

void diagnosis_set_trainer(diagnosis *d, const char *trainer) {
  d->request.trainer = trainer;
}

/* --- causes --- */

/* Rules: which causes a log shows, and how far its values exceed the limits. */

/* Limits and their sources. */
#define LIMIT_FACTOR 0.05  /* NeMo-RL: docs/guides/dtensor-tp-accuracy.md:31 (0.6.0) */
#define LIMIT_FLOOR 0.01   /* ten times the 1e-3 nat of NeMo-RL's docs/guides/grpo.md:648 */
#define LIMIT_KL 0.015     /* OpenAI Spinning Up, ppo.py: updates stop at 1.5 target_kl = 0.015 */
#define LIMIT_RESPONSES 16 /* the mean of 16 values with variance 1 has a standard error of 1/4 */
#define LIMIT_SHIFT 0.05
#define LIMIT_WAIT 0.3
#define LIMIT_SERIAL 0.5
#define LIMIT_SYNC 0.2

static const cause_info causes[CAUSE_COUNT] = {
    [CAUSE_MISMATCH] =
        {.name = "engine_mismatch",
         .title = "sampler and learner compute different probabilities with the same weights",
         .measured = "divergence at lag 0: mean exp(|log p - log q|) - 1, or k3 in nats where only "
                     "series are known",
         .limit_about = "NeMo-RL calls a mean factor above 1.05 a framework problem "
                        "(docs/guides/dtensor-tp-accuracy.md); it finds k3 of 0.001 nats usual "
                        "(docs/guides/grpo.md), and ten times that is the limit for series",
         .advice = "correct for it with truncated importance weights, then find its origin: "
                   "precision, kernels, routing of experts, sampling settings, tokenization",
         .instead = "a smaller staleness bound cannot help: the divergence is there at lag 0"},
    [CAUSE_AGE] =
        {.name = "age",
         .title = "the divergence comes from old weights",
         .measured = "divergence k3 beyond that at lag 0, nats per token",
         .limit_about = "PPO stops its epochs at a divergence of 0.015 nats between the policy of "
                        "the data and the learner (Spinning Up, 1.5 target_kl)",
         .advice = "lower the bound of the staleness, or the learning rate by the same factor",
         .instead = "correcting the engines cannot help: the divergence grows with the lag"},
    [CAUSE_RATE] = {.name = "rate_too_high",
                    .title = "one update moves the policy too far",
                    .measured = "growth of k3 per version of lag, nats per token",
                    .limit_about =
                        "PPO stops its epochs at 0.015 nats (Spinning Up, 1.5 target_kl)",
                    .advice = "lower the learning rate; k3 of one update goes with its square",
                    .instead = "a smaller staleness bound helps little: one version is too far"},
    [CAUSE_SMALL_BATCH] =
        {.name = "small_batch",
         .title = "too few responses of an update carry a signal",
         .measured = "responses per update in groups whose rewards differ",
         .limit_about = "the mean of 16 advantages of variance 1 has a standard error of 1/4",
         .advice = "train on more prompts in an update, or leave out prompts whose groups have "
                   "equal rewards",
         .instead = NULL},
    [CAUSE_DISCARD] =
        {.name = "discard_bias",
         .title = "long responses are dropped more often than short ones",
         .measured = "fraction by which dropping shortens the mean response",
         .limit_about = "5 % of the length is the smallest change that is reported",
         .advice = "wait for old responses or down-weight them instead of dropping them; or start "
                   "fewer at once",
         .instead = "a smaller staleness bound drops more"},
    [CAUSE_GENERATION] = {.name = "generation_bound",
                          .title = "the trainer waits for responses or generates them",
                          .measured = "fraction of a step that the trainer waits or generates",
                          .limit_about = "0.3 of a step where generation runs beside training, 0.5 "
                                         "where they alternate: below, removing it would speed the "
                                         "run up by less than 1.4 (2) times",
                          .advice = "more samplers, or generation beside training",
                          .instead = NULL,
                          .is_speed = true},
    [CAUSE_SYNC] = {.name = "sync_bound",
                    .title = "weight synchronisation takes the time",
                    .measured = "fraction of a step for weight synchronisation",
                    .limit_about =
                        "0.2 of a step: below, removing it would speed the run up by less "
                        "than 1.25 times",
                    .advice = "send weights less often, or faster",
                    .instead = "less often means staler data",
                    .is_speed = true},
    [CAUSE_ENVIRONMENT] = {.name = "environment_bound",
                           .title = "environments, tools or rewards take the time",
                           .measured = "fraction of a step for environments and rewards",
                           .limit_about =
                               "0.3 of a step: below, removing it would speed the run up "
                               "by less than 1.4 times",
                           .advice =
                               "more workers for environments and rewards, or run them beside "
                               "generation",
                           .instead = NULL,
                           .is_speed = true},
};

const cause_info *cause_about(diagnose_cause c) {
  return &causes[c];
}

const char *diagnose_cause_name(diagnose_cause c) {
  return causes[c].name;
}

/* --- rules --- */

static interval less(interval v, double x) {
  return (interval){v.value - x, v.low - x, v.high - x};
}

/* Adds a finding if the whole interval is beyond the limit. */
static void report_above(diagnosis *d, diagnose_cause c, interval v, double limit) {
  if (!(v.low > limit)) return;
  d->finding[d->n_findings++] =
      (diagnose_finding){.cause = c, .severity = v.value / limit, .measured = v, .limit = limit};
}

static void report_below(diagnosis *d, diagnose_cause c, interval v, double limit) {
  if (!(v.high < limit)) return;
  d->finding[d->n_findings++] = (diagnose_finding){
      .cause = c, .severity = limit / fmax(v.value, 1), .measured = v, .limit = limit};
}

static void rules_of_divergence(diagnosis *d) {
  const divergence_facts *f = &d->divergence;
  const interval slope = f->part[PART_SLOPE];
  if (f->how == FLOOR_UNKNOWN) return;
  if (f->is_of_updates)
    report_above(d, CAUSE_MISMATCH, f->part[PART_FLOOR], LIMIT_FLOOR);
  else
    report_above(d, CAUSE_MISMATCH, less(f->floor_factor, 1), LIMIT_FACTOR);
  if (slope.low > LIMIT_KL) /* a single version exceeds the limit, so the learning rate is the cause
                               and not staleness */
    report_above(d, CAUSE_RATE, slope, LIMIT_KL);
  else if (slope.low > 0 || f->how == FLOOR_FIRST)
    report_above(d, CAUSE_AGE, f->part[PART_AGE], LIMIT_KL);
}

static void rules_of_speed(diagnosis *d) {
  const speed_facts *f = &d->speed;
  if (!f->is_known) return;
  if (f->is_serial)
    report_above(d, CAUSE_GENERATION, f->generation_fraction, LIMIT_SERIAL);
  else
    report_above(d, CAUSE_GENERATION, f->wait_fraction, LIMIT_WAIT);
  report_above(d, CAUSE_SYNC, f->sync_fraction, LIMIT_SYNC);
  report_above(d, CAUSE_ENVIRONMENT, f->environment_fraction, LIMIT_WAIT);
}

/* Sorts findings: those that affect the result before those that only cost time, then by severity.
 */
static int worse_first(const void *a, const void *b) {
  const diagnose_finding *x = a, *y = b;
  const int speed_x = causes[x->cause].is_speed, speed_y = causes[y->cause].is_speed;
  if (speed_x != speed_y) return speed_x - speed_y;
  return (y->severity > x->severity) - (y->severity < x->severity);
}

static void find_causes(diagnosis *d) {
  const interval shift = d->staleness.shift;
  d->n_findings = 0;
  rules_of_divergence(d);
  report_below(d, CAUSE_SMALL_BATCH, d->informative, LIMIT_RESPONSES);
  report_above(d, CAUSE_DISCARD, (interval){-shift.value, -shift.high, -shift.low}, LIMIT_SHIFT);
  rules_of_speed(d);
  qsort(d->finding, d->n_findings, sizeof *d->finding, worse_first);
}

gl_status diagnosis_finish(diagnosis *d, gl_error *err) {
  enum { ENTITY_INFORMATIVE = 90 };
  d->informative = (interval){NAN, NAN, NAN};
  if (d->n_updates == 0 && d->n_series == 0)
    return gl_fail(
        err, GL_EINPUT,
        "nothing in the logs says anything about staleness or time; a token-level log, or "
        "series such as staleness, divergence and seconds of a step are needed "
        "(`gepolab diagnose --help`)");
  gl_status status = facts_of_tokens(d, err);
  if (status == GL_OK && d->n_updates > 0)
    status = facts_mean(&d->update[0].informative, d->n_updates, sizeof *d->update / sizeof(double),
                        ENTITY_INFORMATIVE, &d->informative, err);
  if (status == GL_OK) status = facts_of_series(d, err);
  if (status == GL_OK) status = sources_finish(d, err);
  if (status == GL_OK) find_causes(d);
  return status;
}

size_t diagnosis_findings(const diagnosis *d, const diagnose_finding **out) {
  *out = d->finding;
  return d->n_findings;
}

/* --- warnings --- */

/* Warnings: metrics that doubled or halved against the run's beginning, with the rates at which
 * that happens to runs of a stored study that survive. */

/* --- rates of a stored study: text of a file of analysis/stored_results.h --- */

/* The number of a key; NaN if the text does not have it. */
static double rates_number(const char *text, const char *key) {
  const size_t n = strlen(key);
  for (const char *at = text; at != NULL && (at = strstr(at, key)) != NULL; at += n)
    if ((at == text || at[-1] == '\n') && at[n] == '\t') return strtod(at + n + 1, NULL);
  return NAN;
}

static double rate_number(const diagnosis *d, metric m, bool low_side, const char *member) {
  char key[160];
  snprintf(key, sizeof key, "warnings[%s,%s].%s", metric_about(m)->name,
           low_side ? "falls" : "rises", member);
  return rates_number(d->request.rates, key);
}

static interval rate_interval(const diagnosis *d, metric m, bool low_side, const char *member) {
  char name[3][80];
  static const char *const ends[3] = {"value", "low", "high"};
  for (int k = 0; k < 3; ++k) snprintf(name[k], sizeof name[k], "%s.%s", member, ends[k]);
  return (interval){rate_number(d, m, low_side, name[0]), rate_number(d, m, low_side, name[1]),
                    rate_number(d, m, low_side, name[2])};
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
      value[u] = d->method[0].ran ? d->method[0].value[u * METHOD_VALUES + METHOD_ESS] : NAN;
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
      {"update", TABLE_INTEGER, .head = "at update"},
      {"lines", TABLE_TEXT, .head = "at"},
      {"false_alarm_rate", TABLE_INTERVAL, .head = "false alarms [95 %]", .format = "%.2f"},
      {"warned_share", TABLE_INTERVAL, .head = "collapses warned of [95 %]", .format = "%.2f"},
      {"from", TABLE_TEXT, .head = "from"}};
  table *t = table_rows(table_field(to, "warnings"), columns, sizeof columns / sizeof *columns);
  table_gap(t);
  return t;
}

/* Numbers of metrics with a stored rate, and of alarms. */
typedef struct warning_counts {
  size_t known, alarms;
} warning_counts;

/* Adds the alarms of a metric for which the study has a rate. */
static void put_warning(table *t, const diagnosis *d, const watched_metric *w,
                        warning_counts *counts) {
  const drift_rule rule = drift_rule_default();
  char place[DIAGNOSE_POSITION_SIZE];
  bool known = false;
  for (int low_side = 0; low_side < 2; ++low_side) {
    const interval rate = rate_interval(d, w->m, low_side == 1, "false_alarm_rate");
    if (isnan(rate.value)) continue;
    known = true;
    const size_t at = drift_alarm(w->value, w->n, low_side == 1, &rule);
    const interval warned = rate_interval(d, w->m, low_side == 1, "warned_share");
    if (at == w->n || warned.value == 0) continue; /* the side warned of no collapse */
    ++counts->alarms;
    table_row(t);
    table_text(t, metric_about(w->m)->name);
    table_text(t, low_side ? "halved" : "doubled");
    table_count(t, at + 1);
    if (w->series != NULL)
      position_of_value(place, d, w->series, at);
    else
      position_of_update(place, d, at);
    table_text(t, place);
    interval_cell(t, rate);
    interval_cell(t, warned);
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

/* --- recipes --- */

/* Recipes that show the effect of a change in a toy world or on a clock. */

/* The toy world of `gepolab run quickstart`, small enough for seconds. */
#define WORLD                                                                                      \
  "steps: 200\neval_every: 10\n"                                                                   \
  "world: {kind: sequence, vocabulary: 4, horizon: 5, prompts: 4, task: sum_mod, policy: {kind: "  \
  "loglinear}}\n"                                                                                  \
  "optimizer: {kind: adam, lr: 0.05}\ntrain: {groups: 8, group_size: 8}\nalgorithm: gspo\n"
/* First lines of a recipe of a sweep: the commands that run it. */
#define SWEEP                                                                                      \
  "# Written by gepolab diagnose. Seconds to a minute:\n"                                          \
  "#   gepolab sweep FILE -o effect.db && gepolab analyze effect.db\n"
#define FRESH "{preset: sync, generation: 1, learner: {step: 1, eval_pause: 0}}"
/* Every batch is DELAY + 1 updates old. */
#define STALE                                                                                      \
  "{preset: fifo, samplers: 1, generation: 1, delay: %g, learner: {step: 1, eval_pause: 0}}"

/* The delay, in updates, that gives these recipes the measured staleness; at least 1. */
static double delay_of(const diagnosis *d) {
  const role_series *s = series_of(d, SERIES_STALENESS);
  double mean = d->staleness.mean[STALENESS_OLDEST].value, sum = 0;
  for (size_t i = 0; isnan(mean) && s != NULL && i < s->from->n; ++i) sum += s->from->value[i];
  if (isnan(mean) && s != NULL) mean = sum / (double)s->from->n;
  if (isnan(mean)) return 3; /* the staleness is unknown: simulate 4 (delay 3) */
  return mean > 2 ? fmin(floor(mean + 0.5), 256) - 1 : 1;
}

static double floor_of(const diagnosis *d) {
  const double floor = d->divergence.part[PART_FLOOR].value;
  return floor > 0 ? floor : 0.01;
}

/* Seconds for the simulated clock, at least 0.001. */
static double seconds_of(interval v) {
  return v.value > 0.001 ? v.value : 0.001;
}

/* Writes a recipe without training, for `gepolab sim`: the trainer waits for weights (is_sync) or
 * for responses. */
static int clock_recipe(const speed_facts *s, bool is_sync, char *text, size_t size) {
  if (!is_sync)
    return snprintf(text, size,
                    "# Written by gepolab diagnose.\n"
                    "# gepolab sim FILE                        # as measured\n"
                    "# gepolab sim FILE cluster.samplers=2     # twice the samplers\n"
                    "name: diagnose_generation_bound\ndescription: samplers that the trainer waits "
                    "for\nsteps: 200\n"
                    "cluster: {preset: fifo, samplers: 1, generation: %.4g, delay: %.4g, learner: "
                    "{step: %.4g, eval_pause: 0}}\n",
                    seconds_of(s->part[SPEED_GENERATION]) + seconds_of(s->part[SPEED_ENVIRONMENT]),
                    seconds_of(s->part[SPEED_SYNC]), seconds_of(s->part[SPEED_TRAINER]));
  return snprintf(text, size,
                  "# Written by gepolab diagnose.\n"
                  "# gepolab sim FILE                                    # as measured\n"
                  "# gepolab sim FILE cluster.learner.publish_every=4    # weights less often\n"
                  "name: diagnose_sync_bound\ndescription: weight synchronisation that takes the "
                  "time\nsteps: 200\n"
                  "cluster: {preset: sync, generation: %.4g, delay: %.4g, learner: {step: %.4g, "
                  "eval_pause: 0}}\n",
                  seconds_of(s->part[SPEED_GENERATION]), seconds_of(s->part[SPEED_SYNC]),
                  seconds_of(s->part[SPEED_TRAINER]));
}

/* Writes the recipe that shows a cause and its fix to text[size]; returns its length as snprintf()
 * does. */
static int diagnose_write_recipe(const diagnosis *d, diagnose_cause c, char *text, size_t size) {
  const double delay = delay_of(d);
  switch (c) {
  case CAUSE_MISMATCH: /* logit noise of standard deviation s gives a k3 of about s^2 / 2 */
    return snprintf(
        text, size,
        SWEEP
        "name: diagnose_engine_mismatch\ndescription: what a divergence at lag 0 costs\n" WORLD
        "cluster: " FRESH "\nsweep:\n"
        "  sampling.behaviour.noise: [0, %.3g, %.3g]\n  seed: [1, 2, 3, 4]\n",
        sqrt(2 * floor_of(d)), 4 * sqrt(2 * floor_of(d)));
  case CAUSE_AGE:
    return snprintf(text, size,
                    SWEEP
                    "name: diagnose_age\ndescription: what staleness costs, and half of it\n" WORLD
                    "sweep:\n  cluster:\n    - " FRESH "\n    - " STALE "\n    - " STALE
                    "\n  seed: [1, 2, 3, 4]\n",
                    floor(delay / 2), delay);
  case CAUSE_RATE:
    return snprintf(text, size,
                    SWEEP
                    "name: diagnose_rate\ndescription: a learning rate that is too high, and lower "
                    "ones\n" WORLD "cluster: " STALE
                    "\nsweep:\n  optimizer.lr: [0.2, 0.05, 0.0125]\n  seed: [1, 2, 3, 4]\n",
                    delay);
  case CAUSE_SMALL_BATCH:
    return snprintf(
        text, size,
        SWEEP "name: diagnose_small_batch\ndescription: more prompts in an update\n" WORLD
              "cluster: " FRESH "\nsweep:\n  train.groups: [1, 4, 16]\n  seed: [1, 2, 3, 4]\n");
  case CAUSE_DISCARD:
    return snprintf(
        text, size,
        SWEEP "name: diagnose_discard_bias\ndescription: what becomes of stale groups: dropped, "
              "or trained with less weight\n"
              "steps: 200\neval_every: 10\n"
              "world: {kind: sequence, vocabulary: 2, horizon: 8, prompts: 2, end_token: true, "
              "task: sum_mod}\n"
              "optimizer: {kind: adam, lr: 0.05}\ntrain: {groups: 8, group_size: 8}\n"
              "algorithm: gspo\n"
              "cluster: {preset: fifo, unit: group, partial: wait, coupled: true, window: 2, "
              "samplers: 4, concurrency: 64, tokens_per_s: 0.05, delay: 5, learner: {step: 8, "
              "eval_pause: 0}}\n"
              "sweep:\n  cluster.stale: [discard, downweight]\n  seed: [1, 2, 3, 4]\n");
  case CAUSE_GENERATION:
  case CAUSE_ENVIRONMENT:
  case CAUSE_SYNC:
    return clock_recipe(&d->speed, c == CAUSE_SYNC, text, size);
  case CAUSE_COUNT:
    break;
  }
  return -1;
}

gl_status diagnosis_recipe(const diagnosis *d, size_t at, char *text, size_t size, gl_error *err) {
  if (d->n_findings == 0)
    return gl_fail(err, GL_EINPUT,
                   "the log shows no cause, so there is no change to make a recipe of");
  if (at >= d->n_findings || at >= DIAGNOSE_CHANGES)
    return gl_fail(err, GL_EINPUT, "there is no change %zu; the page names %zu", at + 1,
                   d->n_findings < DIAGNOSE_CHANGES ? d->n_findings : (size_t)DIAGNOSE_CHANGES);
  const int n = diagnose_write_recipe(d, d->finding[at].cause, text, size);
  return n > 0 && (size_t)n < size ? GL_OK
                                   : gl_fail(err, GL_EINTERNAL, "a recipe is longer than its room");
}
