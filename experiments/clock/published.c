/* Simulates published systems and compares update times with the published ones. */
#include "experiments/clock/published.h"

#include "core/base/records.h"
#include "core/base/thread_pool.h"
#include "core/config/config.h"
#include "experiments/base/memory.h"
#include "experiments/recipe/recipe.h"
#include "sim/cluster.h"
#include "sim/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Simulates one cluster of the sweep's list, which replaces the recipe's cluster. */
static gl_status published_simulate(published_case *out, const recipe *r, const cfg_node *node,
                                    gl_error *err) {
  cluster_spec *cluster = NULL;
  schedule s = {0};
  gl_status status = cluster_parse(&cluster, node, r->groups, r->group_size, err);
  const cluster_measurements *m = status == GL_OK ? cluster_measured(cluster) : NULL;
  if (status == GL_OK && isnan(m->seconds))
    status = cfg_fail(node, err,
                      "this cluster has no published time; give it compare: {seconds: …, updates: "
                      "…, name: …, source: …}");
  if (status == GL_OK) status = schedule_build(&s, cluster, r->seed, r->steps, err);
  if (status == GL_OK) {
    const cfg_node *preset = cfg_find(node, "preset");
    out->name = must_copy(m->name, "a published case");
    out->source = must_copy(m->source, "a published case");
    out->preset = must_copy(preset != NULL ? cfg_text(preset) : "sync", "a published case");
    out->published_s = m->seconds;
    out->fitted = m->fitted;
    out->simulated_s = schedule_seconds(&s, m->seconds_of);
  }
  schedule_fini(&s);
  cluster_free(cluster);
  return status;
}

static gl_status published_check_name(const published_cases *cases, size_t at, const cfg_node *node,
                                      gl_error *err) {
  const char *name = cases->of[at].name;
  for (size_t i = 0; i < at; ++i)
    if (strcmp(cases->of[i].name, name) == 0)
      return cfg_fail(node, err, "there are two cases called '%s'; give each its compare.name",
                      name);
  return GL_OK;
}

/* The clusters of one list, simulated side by side: a case takes about a second, and none depends
 * on another. */
typedef struct published_work {
  published_case *of; /* [n], in the order of the list */
  const recipe *r;
  const cfg_node *list;
} published_work;

static gl_status published_one(void *context, size_t i, gl_error *err) {
  const published_work *w = context;
  return published_simulate(&w->of[i], w->r, cfg_at(w->list, i), err);
}

static gl_status add_clusters(published_cases *cases, const recipe *r, const cfg_node *list,
                              gl_error *err) {
  const size_t first = cases->n, n = cfg_size(list);
  for (size_t i = 0; i < n; ++i)
    *MUST_ADD(cases->of, cases->n, "published cases") = (published_case){0};
  published_work work = {cases->of + first, r, list};
  gl_status status = pool_try(n, pool_usable_cores(), published_one, &work, err);
  double published = 0, simulated = 0; /* update times of the last case with the preset
                                              sync, the baseline of the speed-ups after it */
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    const cfg_node *node = cfg_at(list, i);
    published_case *c = &cases->of[first + i];
    status = published_check_name(cases, first + i, node, err);
    if (status != GL_OK) return status;
    c->in_turns = strcmp(c->preset, "sync") == 0;
    if (i == 0 && !c->in_turns)
      return cfg_fail(node, err,
                      "the first cluster is what others are compared with and has the preset "
                      "sync, not %s",
                      c->preset);
    if (c->in_turns) {
      published = c->published_s;
      simulated = c->simulated_s;
    }
    c->published_speedup = published / c->published_s;
    c->simulated_speedup = simulated / c->simulated_s;
  }
  return status;
}

gl_status published_cases_add(published_cases *cases, const char *source,
                              const char *const *overrides, size_t n_overrides, gl_error *err) {
  cfg_doc *doc = NULL;
  recipe r;
  gl_status status = recipe_load(&doc, source, overrides, n_overrides, err);
  if (status == GL_OK) status = recipe_read(&r, doc, err);
  if (status == GL_OK) {
    const cfg_node *list = r.sweep != NULL ? cfg_find(r.sweep, "cluster") : NULL;
    if (list == NULL || cfg_kind_of(list) != CFG_LIST || cfg_size(list) == 0)
      status = cfg_fail(r.sweep != NULL ? r.sweep : cfg_root(doc), err,
                        "a recipe of published cases lists clusters: sweep: {cluster: [{preset: "
                        "sync, compare: {seconds: …}}, …]}");
    else
      status = add_clusters(cases, &r, list, err);
  }
  cfg_free(doc);
  return status;
}

void published_cases_fini(published_cases *cases) {
  for (size_t i = 0; i < cases->n; ++i) {
    free(cases->of[i].name);
    free(cases->of[i].preset);
    free(cases->of[i].source);
  }
  free(cases->of);
  *cases = (published_cases){0};
}

/* --- declared predictions --- */

enum {
  CELL_CASE,
  CELL_QUANTITY,
  CELL_UNIT,
  CELL_PREDICTED,
  CELL_LEAST,
  CELL_LARGEST,
  CELL_MEASURED,
  CELL_SEEN,
  CELL_SOURCE,
  PREDICTION_CELLS
};
static const char *const prediction_columns[PREDICTION_CELLS] = {
    "case", "quantity", "unit", "predicted", "least", "largest", "measured", "seen", "source"};

static gl_status prediction_fail(const csv_reader *r, const char *wanted, gl_error *err) {
  return gl_fail(err, GL_EINPUT, "%s:%zu:%zu: '%.40s' is not %s", r->name, r->line, r->column,
                 r->cell, wanted);
}

static gl_status read_prediction_cell(declared_prediction *to, const csv_reader *r, size_t column,
                                      gl_error *err) {
  const struct {
    char **text;
    double *number;
  } cells[PREDICTION_CELLS] = {
      [CELL_CASE] = {&to->name, NULL},         [CELL_QUANTITY] = {&to->quantity, NULL},
      [CELL_UNIT] = {&to->unit, NULL},         [CELL_PREDICTED] = {NULL, &to->predicted},
      [CELL_LEAST] = {NULL, &to->least},       [CELL_LARGEST] = {NULL, &to->largest},
      [CELL_MEASURED] = {NULL, &to->measured}, [CELL_SEEN] = {NULL, NULL},
      [CELL_SOURCE] = {&to->source, NULL},
  };
  char *end;
  if (cells[column].text != NULL) {
    *cells[column].text = must_copy(r->cell, "a prediction");
    return GL_OK;
  }
  if (column == CELL_SEEN) { /* whether whoever predicted it had seen the measured value */
    to->seen = strcmp(r->cell, "yes") == 0;
    return to->seen || strcmp(r->cell, "no") == 0 ? GL_OK : prediction_fail(r, "yes or no", err);
  }
  double *number = cells[column].number;
  *number = strtod(r->cell, &end);
  if (*r->cell == '\0' || *end != '\0' || !isfinite(*number))
    return prediction_fail(r, "a number", err);
  return GL_OK;
}

static gl_status read_prediction_line(declared_prediction *to, csv_reader *r, gl_error *err) {
  int more = 1;
  for (size_t column = 0; more; ++column) {
    gl_status status = csv_cell(r, &more);
    if (status == GL_OK && (column == PREDICTION_CELLS || (column + 1 < PREDICTION_CELLS && !more)))
      status = prediction_fail(r,
                               "one of nine cells: case, quantity, unit, predicted, least, "
                               "largest, measured, seen and source",
                               err);
    if (status == GL_OK && to == NULL && strcmp(r->cell, prediction_columns[column]) != 0)
      status = prediction_fail(r, prediction_columns[column], err);
    if (status == GL_OK && to != NULL) status = read_prediction_cell(to, r, column, err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

gl_status predictions_read(declared_predictions *out, const char *text, const char *name,
                           gl_error *err) {
  csv_reader r;
  *out = (declared_predictions){0};
  gl_status status = csv_begin_separated(&r, text, strlen(text), '\t', name, err);
  if (status != GL_OK) return status;
  for (bool head = true; status == GL_OK && csv_line(&r); head = false) {
    declared_prediction *to = head ? NULL : MUST_ADD(out->of, out->n, "predictions");
    status = read_prediction_line(to, &r, err);
  }
  csv_end(&r);
  return status;
}

void predictions_fini(declared_predictions *p) {
  for (size_t i = 0; i < p->n; ++i) {
    free(p->of[i].name);
    free(p->of[i].quantity);
    free(p->of[i].unit);
    free(p->of[i].source);
  }
  free(p->of);
  *p = (declared_predictions){0};
}
