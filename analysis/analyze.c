/* Tables and JSON of a study. */
#include "analysis/analyze.h"

#include "analysis/statistics.h"
#include "analysis/summary.h"
#include "core/base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Scores and correlations: three decimals say what a few seeds can. */
static void interval_cell(table *t, interval v) {
  if (isnan(v.low))
    table_number(t, v.value);
  else if (fmax(fabs(v.low), fabs(v.high)) < 100)
    table_cell(t, "%.3f [%.3f, %.3f]", v.value, v.low, v.high);
  else
    table_cell(t, "%.4g [%.4g, %.4g]", v.value, v.low, v.high);
}

/* The correlation with one of its intervals, or why there is none. */
static void correlation_cell(table *t, const correlation *c, interval v) {
  if (c->why)
    table_cell(t, "– (%s)", c->why);
  else
    interval_cell(t, v);
}

static gl_status finish_table(table *t, table_format format, FILE *to, gl_error *err) {
  gl_status status = table_write(t, format, to, err);
  table_free(t);
  if (status == GL_OK) fputc('\n', to);
  return status;
}

/* --- a study as text ----------------------------------------------------------------------------
 */

/* The head of the column that says the setting; "setting" where nothing is swept. */
static const char *setting_head(const results *r) {
  return *r->axis_label ? r->axis_label : "setting";
}

static void lr_cell(table *t, const cell_summary *c) {
  if (c->lr_low < c->lr_high)
    table_cell(t, "%.3g–%.3g", c->lr_low, c->lr_high);
  else
    table_number(t, c->lr_low);
}

static gl_status ends_table(const summary *s, table_format format, FILE *to, gl_error *err) {
  const char *heads[] = {
      "algorithm", setting_head(s->from), "lr", "runs", "diverged", "best", "last", "gap"};
  size_t done = 0, diverged = 0, failed = 0;
  char repeats[80] = "";
  if (s->from->n_repeats > 0)
    snprintf(repeats, sizeof repeats, "; left out, being others' repeats: %zu", s->from->n_repeats);
  table *t = table_new(heads, sizeof heads / sizeof *heads);
  if (!t) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < s->n_cells; i++) {
    const cell_summary *c = &s->cells[i];
    done += c->done, diverged += c->diverged, failed += c->failed;
    table_cell(t, "%s", s->from->algorithms[c->cell->algorithm]);
    table_cell(t, "%s", s->from->groups[c->cell->group].label);
    lr_cell(t, c);
    table_cell(t, "%zu", c->done + c->diverged);
    table_cell(t, "%zu", c->diverged);
    interval_cell(t, c->best);
    interval_cell(t, c->last);
    interval_cell(t, c->best_to_last);
  }
  table_caption(t,
                "%s: evaluation score, interquartile mean over seeds [95 %% bootstrap interval]. "
                "Runs: %zu done, %zu diverged, %zu failed%s.",
                s->from->study, done, diverged, failed, repeats);
  return finish_table(t, format, to, err);
}

static gl_status clock_table(const summary *s, table_format format, FILE *to, gl_error *err) {
  const char *heads[] = {setting_head(s->from), "staleness", "samples/s", "learner", "samplers"};
  table *t = table_new(heads, sizeof heads / sizeof *heads);
  if (!t) return gl_fail_memory(err, "a table");
  for (size_t g = 0; g < s->from->n_groups; g++) {
    group_clock mean;
    summary_group_clock(s, g, &mean);
    table_cell(t, "%s", *s->from->groups[g].label ? s->from->groups[g].label : "–");
    table_number(t, mean.staleness);
    table_number(t, mean.samples_per_s);
    table_number(t, mean.learner_utilisation);
    table_number(t, mean.sampler_utilisation);
  }
  table_caption(t, "Clock: mean staleness in updates, throughput, and share of time at work.");
  return finish_table(t, format, to, err);
}

static gl_status cells_relations_table(const summary *s, table_format format, FILE *to,
                                       gl_error *err) {
  const char *heads[] = {"quantities", "cells", "rho [Bonett-Wright]", "rho [bootstrap]"};
  table *t = table_new(heads, sizeof heads / sizeof *heads);
  if (!t) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < RELATION_COUNT; i++) {
    const relation *r = &s->relations[i];
    table_cell(t, "%s, %s", r->x, r->y);
    table_cell(t, "%zu", r->spearman.n);
    correlation_cell(t, &r->spearman, r->spearman.fisher);
    interval_cell(t, r->spearman.bootstrap);
  }
  table_caption(t, "Spearman correlation over all cells, with two 95 %% intervals.");
  return finish_table(t, format, to, err);
}

static gl_status runs_relations_table(const summary *s, table_format format, FILE *to,
                                      gl_error *err) {
  char delay[64], variance[64];
  snprintf(delay, sizeof delay, "delay, %s", metric_about(s->kl)->name);
  snprintf(variance, sizeof variance, "%s, iw_variance_pq", metric_about(s->kl)->name);
  const char *heads[] = {"algorithm", "runs", delay, variance};
  table *t = table_new(heads, sizeof heads / sizeof *heads);
  if (!t) return gl_fail_memory(err, "a table");
  for (size_t a = 0; a < s->from->n_algorithms; a++) {
    const relation *r = s->within + a * RELATION_COUNT;
    table_cell(t, "%s", s->from->algorithms[a]);
    table_cell(t, "%zu", r[1].spearman.n);
    correlation_cell(t, &r[0].spearman, r[0].spearman.bootstrap);
    correlation_cell(t, &r[1].spearman, r[1].spearman.bootstrap);
  }
  table_caption(t, "The same within one algorithm, over its runs [95 %% bootstrap interval].");
  return finish_table(t, format, to, err);
}

static gl_status study_text(const summary *s, table_format format, FILE *to, gl_error *err) {
  gl_status status = ends_table(s, format, to, err);
  if (status == GL_OK) status = clock_table(s, format, to, err);
  if (status == GL_OK) status = cells_relations_table(s, format, to, err);
  if (status == GL_OK && s->from->n_algorithms > 1)
    status = runs_relations_table(s, format, to, err);
  return status;
}

/* --- a study as JSON; each adds to its object and says 0 if memory is short --------------------
 */

static int json_interval(cJSON *to, const char *key, interval v) {
  cJSON *o = cJSON_AddObjectToObject(to, key);
  return o && json_add_number(o, "iqm", v.value) && json_add_number(o, "low", v.low) &&
         json_add_number(o, "high", v.high);
}

static int json_axes(cJSON *to, const results *r, size_t group) {
  cJSON *o = cJSON_AddObjectToObject(to, "axes");
  int ok = o != NULL;
  for (size_t a = 0; a < r->axes.n && ok; a++)
    ok = axis_json(o, &r->axes.axis[a], r->groups[group].value[a]) != NULL;
  return ok;
}

static int json_cell(cJSON *cells, const summary *s, const cell_summary *c) {
  cJSON *o = json_append_object(cells);
  int ok = o && json_add_string(o, "algorithm", s->from->algorithms[c->cell->algorithm]) &&
           json_axes(o, s->from, c->cell->group) && json_add_number(o, "done", (double)c->done) &&
           json_add_number(o, "diverged", (double)c->diverged) &&
           json_add_number(o, "failed", (double)c->failed) &&
           json_add_number(o, "lr", c->lr_low == c->lr_high ? c->lr_low : NAN) &&
           json_interval(o, "best", c->best) && json_interval(o, "last", c->last) &&
           json_interval(o, "best_to_last", c->best_to_last);
  for (cell_metric m = 0; m < CELL_METRIC_COUNT && ok; m++)
    ok = json_interval(o, metric_about(summary_metric(s, m))->name, c->metric[m]);
  return ok && json_add_number(o, "samples_per_s", c->samples_per_s) &&
         json_add_number(o, "learner_utilisation", c->learner_utilisation) &&
         json_add_number(o, "sampler_utilisation", c->sampler_utilisation);
}

/* count_key names what r counts, "cells" or "runs"; algorithm may be NULL. */
static int json_relation(cJSON *relations, const char *algorithm, const char *count_key,
                         const relation *r) {
  cJSON *o = json_append_object(relations);
  const correlation *c = &r->spearman;
  return o && (!algorithm || json_add_string(o, "algorithm", algorithm)) &&
         json_add_string(o, "x", r->x) && json_add_string(o, "y", r->y) &&
         json_add_number(o, count_key, (double)c->n) &&
         (!c->why || json_add_string(o, "why", c->why)) &&
         json_add_number(o, "spearman", c->fisher.value) &&
         json_add_number(o, "low", c->fisher.low) && json_add_number(o, "high", c->fisher.high) &&
         json_add_number(o, "bootstrap_low", c->bootstrap.low) &&
         json_add_number(o, "bootstrap_high", c->bootstrap.high);
}

static int fill_study_json(cJSON *root, const summary *s) {
  int ok = json_add_string(root, "study", s->from->study) != NULL &&
           json_add_number(root, "repeats_left_out", (double)s->from->n_repeats) != NULL;
  cJSON *cells = cJSON_AddArrayToObject(root, "cells");
  cJSON *relations = cJSON_AddArrayToObject(root, "correlations");
  cJSON *within = cJSON_AddArrayToObject(root, "correlations_within");
  ok = ok && cells && relations && within;
  for (size_t i = 0; i < s->n_cells && ok; i++) ok = json_cell(cells, s, &s->cells[i]);
  for (size_t i = 0; i < RELATION_COUNT && ok; i++)
    ok = json_relation(relations, NULL, "cells", &s->relations[i]);
  for (size_t i = 0; i < s->from->n_algorithms * RELATION_COUNT && ok; i++)
    ok = json_relation(within, s->from->algorithms[i / RELATION_COUNT], "runs", &s->within[i]);
  return ok;
}

/* One study: its tables as text, and its numbers filled into root; either may be NULL. */
static gl_status analyze_one(store *from, const char *name, table_format format, FILE *text,
                             cJSON *root, gl_error *err) {
  results *r = NULL;
  summary sum;
  gl_status status = results_load(&r, from, name, err);
  if (status != GL_OK) return status;
  status = summary_init(&sum, r, err);
  if (status == GL_OK) {
    if (text) status = study_text(&sum, format, text, err);
    if (root && status == GL_OK && !fill_study_json(root, &sum))
      status = gl_fail_memory(err, "a JSON document");
    summary_fini(&sum);
  }
  results_free(r);
  return status;
}

gl_status analyze_study(store *s, table_format format, FILE *text, cJSON **json, gl_error *err) {
  char **names = NULL;
  size_t n = 0;
  gl_status status = results_studies(&names, &n, s, err);
  if (status != GL_OK) return status;
  cJSON *root = json ? cJSON_CreateObject() : NULL;
  cJSON *list = root && n > 1 ? cJSON_AddArrayToObject(root, "studies") : NULL;
  if (json && (!root || (n > 1 && !list))) status = gl_fail_memory(err, "a JSON document");
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    cJSON *one = list ? json_append_object(list) : root;
    if (json && !one) status = gl_fail_memory(err, "a JSON document");
    if (status == GL_OK) status = analyze_one(s, names[i], format, text, one, err);
  }
  free(names);
  if (!json) return status;
  if (status == GL_OK)
    *json = root;
  else
    cJSON_Delete(root);
  return status;
}
