/* Tables of the staleness counters of trainers, and of their readings for simulated runs. */
#include "experiments/clock/counter_tables.h"

#include "experiments/base/memory.h"
#include "experiments/sweep/grid.h"
#include "sim/trainer_counters.h"

#include <stdlib.h>
#include <string.h>

/* --- readings --- */

typedef struct definitions_run {
  char *label; /* "" for the recipe itself; owned */
  staleness_reading reading[STALENESS_DEFINITIONS];
} definitions_run;

typedef struct definitions_runs {
  definitions_run *of; /* [n] */
  size_t n;
} definitions_runs;

static gl_status read_run(definitions_run *out, const recipe *r, gl_error *err) {
  cluster_spec *cluster = NULL;
  schedule s = {0};
  gl_status status = cluster_parse(&cluster, r->cluster, r->groups, r->group_size, err);
  if (status == GL_OK && cluster_is_coupled(cluster) && !cluster_has_lengths(cluster))
    status = cfg_fail(cfg_find(r->cluster, "coupled"), err,
                      "a coupled clock has no lengths without its learner; give the cluster a "
                      "distribution of `lengths` to stand in for real responses");
  if (status == GL_OK) status = schedule_build(&s, cluster, r->seed, r->steps, err);
  if (status == GL_OK)
    status = staleness_read(out->reading, &s, cluster, r->seed, r->minibatches * r->epochs, err);
  schedule_fini(&s);
  cluster_free(cluster);
  return status;
}

/* "ahead=0, publish_every=4" from the canonical JSON of a cell's swept fields: the last words of
 * their paths, and their values. */
static char *setting_label(const char *swept) {
  char *label = must_copy(swept, "a setting");
  size_t used = 0, word = 0;
  int depth = 0;
  bool in_path = true;
  for (const char *c = swept; *c != '\0'; ++c) {
    const bool opens = *c == '{' || *c == '[', closes = *c == '}' || *c == ']';
    depth += opens;
    const bool outer = depth <= 1;
    depth -= closes;
    if (*c == '"' || (outer && (opens || closes))) continue;
    if (outer && in_path && *c == '.')
      used = word;
    else
      label[used++] = outer && *c == ':' ? '=' : *c;
    if (outer && *c == ':') in_path = false;
    if (outer && *c == ',') in_path = true, label[used++] = ' ', word = used;
  }
  label[used] = '\0';
  return label;
}

static gl_status add_definitions_cell(definitions_runs *runs, const sweep_cell *cell,
                                      gl_error *err) {
  cfg_doc *doc = NULL;
  recipe r;
  definitions_run *run = MUST_ADD(runs->of, runs->n, "runs");
  *run = (definitions_run){.label = setting_label(cell->swept)};
  gl_status status = sweep_cell_recipe(&doc, cell, err);
  if (status == GL_OK) status = recipe_read(&r, doc, err);
  if (status == GL_OK) status = read_run(run, &r, err);
  cfg_free(doc);
  return status;
}

static gl_status read_definitions_runs(definitions_runs *runs, const recipe *r, const cfg_doc *doc,
                                       gl_error *err) {
  sweep_grid grid;
  sweep_cells cells = {0};
  if (r->sweep == NULL) {
    definitions_run *run = MUST_ADD(runs->of, runs->n, "runs");
    *run = (definitions_run){.label = must_copy("", "a setting")};
    return read_run(run, r, err);
  }
  gl_status status = sweep_grid_read(&grid, doc, err);
  if (status == GL_OK) status = sweep_expand(&cells, doc, &grid, &(sweep_expansion){0}, err);
  for (size_t i = 0; i < cells.n_cells && status == GL_OK; ++i)
    if (!sweep_cell_repeats(&cells, i)) status = add_definitions_cell(runs, &cells.cells[i], err);
  sweep_cells_fini(&cells);
  return status;
}

static void make_readings(definitions_comparison *out, const definitions_runs *runs) {
  static const table_column first[] = {{"name", TABLE_TEXT, .head = "counter"},
                                       {"unit", TABLE_TEXT, .head = "unit"}};
  table *t = table_new(first, 2);
  out->names = MUST_ARRAY(char *, 2 * runs->n, "columns");
  out->n_names = 2 * runs->n;
  for (size_t i = 0; i < out->n_names; ++i) {
    const char *label = runs->of[i / 2].label, *what = i % 2 == 0 ? "mean" : "max";
    out->names[i] = must_textf("columns", "%s%s%s", label, *label != '\0' ? ": " : "", what);
    table_add_column(t, (table_column){out->names[i], TABLE_REAL, .format = "%.4g"}, "%s",
                     out->names[i]);
  }
  for (size_t d = 0; d < STALENESS_DEFINITIONS; ++d) {
    table_row(t);
    table_text(t, staleness_definition_at(d)->name);
    table_text(t, staleness_definition_at(d)->unit);
    for (size_t i = 0; i < runs->n; ++i) {
      table_real(t, runs->of[i].reading[d].mean);
      table_real(t, runs->of[i].reading[d].max);
    }
  }
  out->table = t;
}

gl_status definitions_compare(definitions_comparison *out, const recipe *r, const cfg_doc *doc,
                              gl_error *err) {
  definitions_runs runs = {NULL, 0};
  *out = (definitions_comparison){.table = NULL};
  const gl_status status = read_definitions_runs(&runs, r, doc, err);
  if (status == GL_OK) make_readings(out, &runs);
  for (size_t i = 0; i < runs.n; ++i) free(runs.of[i].label);
  free(runs.of);
  return status;
}

void definitions_comparison_fini(definitions_comparison *c) {
  for (size_t i = 0; i < c->n_names; ++i) free(c->names[i]);
  free(c->names);
}
