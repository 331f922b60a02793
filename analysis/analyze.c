#include "analysis/analyze.h"

#include "analysis/statistics.h"
#include "analysis/summary.h"
#include "analysis/wandb.h"
#include "core/json.h"

#include <math.h>
#include <string.h>

static void interval_cell(table *t, interval v) {
  if (isnan(v.low))
    table_number(t, v.value);
  else
    table_cell(t, "%.4f [%.4f, %.4f]", v.value, v.low, v.high);
}

static void json_interval(cJSON *to, const char *key, interval v) {
  cJSON *o = cJSON_AddObjectToObject(to, key);
  json_add_number(o, "iqm", v.value);
  json_add_number(o, "low", v.low);
  json_add_number(o, "high", v.high);
}

/* --- a study ------------------------------------------------------------------------------------
 */

static const char *const cell_heads[] = {"algorithm", "swept",     "runs",     "diverged",
                                         "failed",    "lr",        "best",     "last",
                                         "gap",       "staleness", "samples/s"};

static gl_status cells_table(const summary *s, table_format format, FILE *to, gl_error *err) {
  table *t = table_new(cell_heads, sizeof cell_heads / sizeof *cell_heads);
  if (!t) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < s->n_cells; i++) {
    const cell_summary *c = &s->cells[i];
    table_cell(t, "%s", s->from->algorithms[c->cell->algorithm]);
    table_cell(t, "%s", s->from->groups[c->cell->group].label);
    table_cell(t, "%zu", c->cell->n);
    table_cell(t, "%zu", c->diverged);
    table_cell(t, "%zu", c->failed);
    if (c->lr_low < c->lr_high)
      table_cell(t, "%.4g–%.4g", c->lr_low, c->lr_high);
    else
      table_number(t, c->lr_low);
    interval_cell(t, c->best);
    interval_cell(t, c->last);
    interval_cell(t, c->best_to_last);
    table_number(t, c->metric[CELL_STALENESS].value);
    table_number(t, c->samples_per_s);
  }
  gl_status status = table_write(t, format, to, err);
  table_free(t);
  return status;
}

static gl_status relations_table(const summary *s, table_format format, FILE *to, gl_error *err) {
  const char *heads[] = {"Spearman", "cells", "rho [95 %, Bonett-Wright]", "rho [95 %, bootstrap]"};
  table *t = table_new(heads, 4);
  if (!t) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < RELATION_COUNT; i++) {
    const relation *r = &s->relations[i];
    table_cell(t, "%s, %s", r->x, r->y);
    table_cell(t, "%zu", r->spearman.n);
    interval_cell(t, r->spearman.fisher);
    interval_cell(t, r->spearman.bootstrap);
  }
  gl_status status = table_write(t, format, to, err);
  table_free(t);
  return status;
}

static void json_cell(cJSON *cells, const summary *s, const cell_summary *c) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddItemToArray(cells, o);
  json_add_string(o, "algorithm", s->from->algorithms[c->cell->algorithm]);
  cJSON_AddItemToObject(o, "axes", cJSON_Parse(s->from->groups[c->cell->group].axes));
  json_add_number(o, "done", (double)c->done);
  json_add_number(o, "diverged", (double)c->diverged);
  json_add_number(o, "failed", (double)c->failed);
  json_add_number(o, "lr", c->lr_low == c->lr_high ? c->lr_low : NAN);
  json_interval(o, "best", c->best);
  json_interval(o, "last", c->last);
  json_interval(o, "best_to_last", c->best_to_last);
  for (cell_metric m = 0; m < CELL_METRIC_COUNT; m++)
    json_interval(o, metric_about(summary_metric(m))->name, c->metric[m]);
  json_add_number(o, "samples_per_s", c->samples_per_s);
  json_add_number(o, "learner_utilisation", c->learner_utilisation);
  json_add_number(o, "sampler_utilisation", c->sampler_utilisation);
}

static cJSON *study_json(const summary *s) {
  cJSON *root = cJSON_CreateObject();
  json_add_string(root, "study", s->from->study);
  cJSON *cells = cJSON_AddArrayToObject(root, "cells");
  for (size_t i = 0; i < s->n_cells; i++) json_cell(cells, s, &s->cells[i]);
  cJSON *relations = cJSON_AddArrayToObject(root, "correlations");
  for (size_t i = 0; i < RELATION_COUNT; i++) {
    const relation *r = &s->relations[i];
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToArray(relations, o);
    json_add_string(o, "x", r->x);
    json_add_string(o, "y", r->y);
    json_add_number(o, "cells", (double)r->spearman.n);
    json_add_number(o, "spearman", r->spearman.fisher.value);
    json_add_number(o, "low", r->spearman.fisher.low);
    json_add_number(o, "high", r->spearman.fisher.high);
    json_add_number(o, "bootstrap_low", r->spearman.bootstrap.low);
    json_add_number(o, "bootstrap_high", r->spearman.bootstrap.high);
  }
  return root;
}

gl_status analyze_study(store *s, table_format format, FILE *text, cJSON **json, gl_error *err) {
  results *r = NULL;
  summary sum;
  gl_status status = results_load(&r, s, err);
  if (status != GL_OK) return status;
  status = summary_init(&sum, r, err);
  if (status == GL_OK) {
    if (text) status = cells_table(&sum, format, text, err);
    if (text) fputc('\n', text);
    if (text && status == GL_OK) status = relations_table(&sum, format, text, err);
    if (json && status == GL_OK) *json = study_json(&sum);
    summary_fini(&sum);
  }
  results_free(r);
  return status;
}

/* --- W&B ----------------------------------------------------------------------------------------
 */

static gl_status wandb_text(const wandb_table *w, table_format format, FILE *to, gl_error *err) {
  const char *heads[] = {"run", "metric", "n", "best", "last", "gap", "mean"};
  table *t = table_new(heads, 7);
  if (!t) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < w->n_series; i++) {
    const wandb_series *s = &w->series[i];
    series_ends e = series_ends_of(s->value, s->n);
    table_cell(t, "%s", s->run);
    table_cell(t, "%s", s->metric);
    table_cell(t, "%zu", s->n);
    table_number(t, e.best);
    table_number(t, e.last);
    table_number(t, e.best_to_last);
    table_number(t, sample_mean(s->value, s->n));
  }
  gl_status status = table_write(t, format, to, err);
  table_free(t);
  return status;
}

static cJSON *wandb_json(const wandb_table *w, const char *path) {
  cJSON *root = cJSON_CreateObject();
  json_add_string(root, "file", path);
  cJSON *runs = cJSON_AddArrayToObject(root, "runs");
  for (size_t i = 0; i < w->n_series; i++) {
    const wandb_series *s = &w->series[i];
    series_ends e = series_ends_of(s->value, s->n);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToArray(runs, o);
    json_add_string(o, "run", s->run);
    json_add_string(o, "tag", s->tag);
    json_add_string(o, "metric", s->metric);
    json_add_number(o, "n", (double)s->n);
    json_add_number(o, "first", e.first);
    json_add_number(o, "best", e.best);
    json_add_number(o, "last", e.last);
    json_add_number(o, "best_to_last", e.best_to_last);
    json_add_number(o, "mean", sample_mean(s->value, s->n));
  }
  return root;
}

gl_status analyze_wandb(const char *path, table_format format, FILE *text, cJSON **json,
                        gl_error *err) {
  wandb_table *w;
  gl_status status = wandb_read(&w, path, err);
  if (status != GL_OK) return status;
  if (text) status = wandb_text(w, format, text, err);
  if (json && status == GL_OK) *json = wandb_json(w, path);
  wandb_free(w);
  return status;
}

gl_status analyze_file(const char *path, table_format format, FILE *text, cJSON **json,
                       gl_error *err) {
  char head[16] = {0};
  FILE *f = fopen(path, "rb");
  if (!f) return gl_fail(err, GL_EIO, "%s: cannot be opened; check its name and permissions", path);
  size_t n = fread(head, 1, sizeof head, f);
  fclose(f);
  if (n < sizeof head || memcmp(head, "SQLite format 3", sizeof head) != 0)
    return analyze_wandb(path, format, text, json, err);
  store *s = NULL;
  gl_status status = store_open(&s, path, STORE_READ, err);
  if (status == GL_OK) status = analyze_study(s, format, text, json, err);
  store_close(s);
  return status;
}
