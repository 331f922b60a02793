/* Announcements over the runs of studies: which metrics are asked, and how the answer is told. */
#include "analysis/announce.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is asked: what is said elsewhere to announce a collapse, and, to compare it with, what one
 * would look at anyhow: reward, response length and the divergence. */
static const metric asked[] = {METRIC_ESS,
                               METRIC_GRAD_NORM,
                               METRIC_GRAD_COSINE,
                               METRIC_M2_LOG_RATIO,
                               METRIC_KEPT_MASS,
                               METRIC_KEPT_MASS_Q,
                               METRIC_GM_RATIO_SPREAD,
                               METRIC_GM_P_SPREAD,
                               METRIC_CLIPPED_POSITIVE,
                               METRIC_CLIPPED_NEGATIVE,
                               METRIC_GATED_POSITIVE,
                               METRIC_GATED_NEGATIVE,
                               METRIC_ENTROPY,
                               METRIC_ENTROPY_KEPT,
                               METRIC_ENTROPY_TAIL,
                               METRIC_LOG_IW_VARIANCE_PQ,
                               METRIC_LOG_IW_VARIANCE_GEPO,
                               METRIC_CLIP_FRACTION,
                               METRIC_KL_K3_SEQ,
                               METRIC_REWARD_MEAN,
                               METRIC_RESPONSE_LENGTH};
enum { ASKED = sizeof asked / sizeof asked[0] };

/* --- runs --- */

typedef struct gathered {
  const results_run **run; /* [n] as in series */
  announce_series *series;
  int64_t **step;
  double **value; /* the metric at hand */
  size_t n;
} gathered;

static void gathered_fini(gathered *g) {
  for (size_t i = 0; i < g->n; i++) {
    if (g->step != NULL) free(g->step[i]);
    if (g->value != NULL) free(g->value[i]);
  }
  free(g->run), free(g->series), free(g->step), free(g->value);
}

static gl_status add_run(announcements *a, gathered *g, const results_run *run, size_t cell,
                         gl_error *err) {
  const run_outcome o = outcome_of_run(run, &a->rule.outcome);
  const int fell = run_outcome_is_fall(&o);
  if (run->status == RUN_FAILED || (!fell && o.kind != OUTCOME_SURVIVED)) {
    a->left_out++;
    return GL_OK;
  }
  if (fell)
    a->fallen++;
  else
    a->survived++;
  const size_t i = g->n++;
  g->run[i] = run;
  g->step[i] = calloc(run->n_steps + 1, sizeof **g->step);
  g->value[i] = calloc(run->n_steps + 1, sizeof **g->value);
  if (g->step[i] == NULL || g->value[i] == NULL) return gl_fail_memory(err, "announcements");
  for (size_t k = 0; k < run->n_steps; k++) g->step[i][k] = run->steps[k].step;
  g->series[i] = (announce_series){.start = run->seed,
                                   .fell = fell,
                                   .onset = o.onset,
                                   .step = g->step[i],
                                   .value = g->value[i],
                                   .n = run->n_steps,
                                   .cell = cell};
  return GL_OK;
}

/* Every study must have runs that differ in the field, for it would be told of otherwise as if it
 * had been chosen from; one that has the value is enough. */
static gl_status check_field(const results *const *from, size_t n_from, const contrast_field *f,
                             gl_error *err) {
  int found = 0;
  for (size_t s = 0; s < n_from; s++) {
    const results *r = from[s];
    if (!contrast_knows(r, f->path))
      return gl_fail(err, GL_EINPUT, "the runs of %s do not differ in %s; they differ in %s",
                     r->study, f->path, *r->axis_label != '\0' ? r->axis_label : "the algorithm");
    found = found || contrast_has_run(r, f);
  }
  if (found) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "no run has %s = %s; `gepolab study info` lists algorithms and settings", f->path,
                 f->value);
}

static gl_status gather(announcements *a, gathered *g, const results *const *from, size_t n_from,
                        const contrast_arm *of, gl_error *err) {
  gl_status status = GL_OK;
  size_t n = 1, cells = 0;
  for (size_t i = 0; i < of->n && status == GL_OK; i++)
    status = check_field(from, n_from, &of->field[i], err);
  if (status != GL_OK) return status;
  for (size_t s = 0; s < n_from; s++) n += from[s]->n_runs;
  g->run = calloc(n, sizeof *g->run);
  g->series = calloc(n, sizeof *g->series);
  g->step = calloc(n, sizeof *g->step);
  g->value = calloc(n, sizeof *g->value);
  if (!g->run || !g->series || !g->step || !g->value) return gl_fail_memory(err, "announcements");
  for (size_t s = 0; s < n_from; s++) {
    const results *r = from[s];
    for (size_t i = 0; i < r->n_runs && status == GL_OK; i++) {
      const results_run *run = &r->runs[i];
      if (contrast_arm_has(r, run, of))
        status = add_run(a, g, run, cells + run->group * r->n_algorithms + run->algorithm, err);
    }
    cells += r->n_groups * r->n_algorithms;
  }
  if (status == GL_OK && (a->fallen == 0 || a->survived == 0))
    status = gl_fail(err, GL_EINPUT,
                     "announcements need runs that fell and runs that survived: %zu fell, %zu "
                     "survived, %zu never learned or failed",
                     a->fallen, a->survived, a->left_out);
  return status;
}

static size_t count_starts(const gathered *g) {
  size_t n = 0;
  for (size_t i = 0; i < g->n; i++) {
    size_t k = 0;
    while (g->series[k].start != g->series[i].start) k++;
    n += k == i;
  }
  return n;
}

/* --- metrics --- */

static void take_values(gathered *g, metric m) {
  for (size_t i = 0; i < g->n; i++)
    for (size_t k = 0; k < g->run[i]->n_steps; k++) g->value[i][k] = g->run[i]->steps[k].metric[m];
}

/* How far from chance it tells falls from survivors just before; 0 where they cannot be compared.
 */
static double told_apart(const announcement *a) {
  const double area = a->matched[0].auc.value;
  return isnan(area) ? 0 : fabs(area - 0.5);
}

static int by_area(const void *a, const void *b) {
  const announcement *x = a, *y = b;
  const double d = told_apart(x) - told_apart(y);
  if (d != 0) return d < 0 ? 1 : -1;
  if (x->auc.value != y->auc.value) return x->auc.value < y->auc.value ? 1 : -1;
  return (x->m > y->m) - (x->m < y->m);
}

gl_status announcements_init(announcements *a, const results *const *from, size_t n_from,
                             const contrast_arm *of, const announce_rule *rule, gl_error *err) {
  gathered g = {0};
  *a = (announcements){.rule = *rule};
  a->of = calloc(ASKED, sizeof *a->of);
  gl_status status =
      a->of != NULL ? gather(a, &g, from, n_from, of, err) : gl_fail_memory(err, "announcements");
  if (status == GL_OK) a->starts = count_starts(&g);
  for (size_t k = 0; k < ASKED && status == GL_OK; k++) {
    announcement *one = &a->of[a->n++];
    one->m = asked[k];
    take_values(&g, one->m);
    status = announcement_of(one, g.series, g.n, rule, err);
    if (status == GL_OK && isnan(one->auc.value)) announcement_fini(&a->of[--a->n]);
  }
  gathered_fini(&g);
  if (status == GL_OK) qsort(a->of, a->n, sizeof *a->of, by_area);
  return status;
}

void announcements_fini(announcements *a) {
  for (size_t i = 0; i < a->n; i++) announcement_fini(&a->of[i]);
  free(a->of);
  *a = (announcements){0};
}

/* --- tables --- */

static const table_column announcement_columns[] = {
    {"metric", TABLE_TEXT, .head = "metric"},
    {"side", TABLE_TEXT, .head = "side"},
    {"fallen", TABLE_WHOLE, .head = "fallen, survived"},
    TABLE_KEY("survived", TABLE_WHOLE),
    {"auc", TABLE_INTERVAL, .head = "AUC", .format = "%.2f"},
    TABLE_KEY("judged_fallen", TABLE_WHOLE),
    TABLE_KEY("announced", TABLE_WHOLE),
    {"announced_share", TABLE_INTERVAL, .head = "announced", .format = "%.2f"},
    TABLE_KEY("judged_survived", TABLE_WHOLE),
    TABLE_KEY("alarms", TABLE_WHOLE),
    {"false_alarm_rate", TABLE_INTERVAL, .head = "false alarms", .format = "%.2f"},
    {"lead_updates", TABLE_INTERVAL, .head = "updates before the fall", .format = "%.0f"},
    TABLE_KEY("matched", TABLE_TABLE),
    TABLE_KEY("roc", TABLE_TABLE)};

static const table_column matched_columns[] = {
    TABLE_KEY("before", TABLE_WHOLE), TABLE_KEY("fallen", TABLE_WHOLE),
    TABLE_KEY("pairs", TABLE_WHOLE), TABLE_KEY("auc", TABLE_INTERVAL)};

static void put_matched(table *t, const announcement *a, const announce_rule *rule) {
  table *list = table_rows(t, matched_columns, sizeof matched_columns / sizeof *matched_columns);
  for (size_t k = 0; k < ANNOUNCE_LEADS; k++) {
    table_row(list);
    table_whole(list, rule->lead[k]);
    table_count(list, a->matched[k].fallen);
    table_count(list, a->matched[k].pairs);
    interval_cell(list, a->matched[k].auc);
  }
}

static void put_announcement(table *t, const announcement *a, const announce_rule *rule) {
  table_row(t);
  table_text(t, metric_about(a->m)->name);
  table_text(t, a->falls ? "falls" : "rises");
  table_count(t, a->fallen);
  table_shown(t, "%zu, %zu", a->fallen, a->survived);
  table_count(t, a->survived);
  interval_cell(t, a->auc);
  table_count(t, a->judged_fallen);
  table_count(t, a->announced);
  interval_cell(t, a->share);
  table_count(t, a->judged_survived);
  table_count(t, a->alarms);
  interval_cell(t, a->false_alarms);
  interval_cell(t, a->lead);
  put_matched(t, a, rule);
  table *roc = table_list(t);
  for (size_t i = 0; i < a->n_roc; i++)
    table_numbers(table_field(roc, ""), (double[]){a->roc_alarms[i], a->roc_announced[i]}, 2);
}

/* Each fall against the survivors of its cell at the same update. */
static void put_matched_table(table *to, const announcements *a) {
  char head[ANNOUNCE_LEADS][40];
  table_column columns[1 + ANNOUNCE_LEADS] = {TABLE_HEAD("metric")};
  for (size_t k = 0; k < ANNOUNCE_LEADS; k++) {
    snprintf(head[k], sizeof head[k], "%lld before", (long long)a->rule.lead[k]);
    columns[1 + k] = (table_column){.type = TABLE_INTERVAL, .head = head[k], .format = "%.2f"};
  }
  table *t = table_rows(table_field(to, NULL), columns, 1 + ANNOUNCE_LEADS);
  for (size_t i = 0; i < a->n; i++) {
    table_row(t);
    table_text(t, metric_about(a->of[i].m)->name);
    for (size_t k = 0; k < ANNOUNCE_LEADS; k++) interval_cell(t, a->of[i].matched[k].auc);
  }
  table_title(t,
              "The same setting, the same update: probability that a run that falls so many "
              "updates later is higher than a survivor of its cell. 0.5 is chance; above it a "
              "rise announces, below it a fall. [95 %%, bootstrap over %zu starts].",
              a->starts);
}

void announcements_report(table *to, const announcements *a, const char *name) {
  table *rule = table_object(table_field(to, "rule"));
  table_count(table_field(rule, "window"), a->rule.window);
  table_real(table_field(rule, "false_alarms"), a->rule.false_alarms);
  table_count(table_field(to, "fallen"), a->fallen);
  table_count(table_field(to, "survived"), a->survived);
  table_count(table_field(to, "left_out"), a->left_out);
  table_count(table_field(to, "starts"), a->starts);
  table *t = table_rows(table_field(to, "metrics"), announcement_columns,
                        sizeof announcement_columns / sizeof *announcement_columns);
  for (size_t i = 0; i < a->n; i++) put_announcement(t, &a->of[i], &a->rule);
  table_title(t,
              "%s: which metrics announce falls. %zu runs fell, %zu survived, %zu never learned or "
              "failed and are left out; %zu starts. Means of %zu updates. AUC: of runs, on the "
              "side chosen on all of them. The rest leaves one start out: thresholds at which at "
              "most %.0f %% of the other starts' survivors raise an alarm; median lead of "
              "announced falls. [95 %%, bootstrap over starts].",
              name, a->fallen, a->survived, a->left_out, a->starts, a->rule.window,
              100 * a->rule.false_alarms);
  put_matched_table(to, a);
}
