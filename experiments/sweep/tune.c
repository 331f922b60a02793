/* The grid of tuning runs, their scores, and the rate chosen for each algorithm. */
#include "experiments/sweep/tune.h"

#include "analysis/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the grid of tuning runs --------------------------------------------------------------------
 */

static gl_status numbers_only(const cfg_node *list, const char *what, gl_error *err) {
  for (size_t i = 0; i < cfg_size(list); ++i) {
    double value = 0;
    if (!cfg_number(cfg_at(list, i), &value) || !(value >= 0))
      return cfg_fail(cfg_at(list, i), err, "%s must hold numbers that are not negative", what);
    for (size_t k = 0; k < i; ++k) {
      double other = 0;
      if (cfg_number(cfg_at(list, k), &other) && other == value)
        return cfg_fail(cfg_at(list, i), err, "%s lists %g twice", what, value);
    }
  }
  return GL_OK;
}

static gl_status list_of_numbers(const cfg_node **out, cfg_reader *r, const cfg_node *tune,
                                 const char *key, const char *what, gl_error *err) {
  *out = cfg_child(r, key);
  if (r->status != GL_OK) return r->status;
  if (*out == NULL)
    return cfg_fail(tune, err, "'tune' needs %s, as in tune: {lr: [0.01, 0.1], seeds: [101, 102]}",
                    key);
  if (cfg_kind_of(*out) != CFG_LIST || cfg_size(*out) == 0)
    return cfg_fail(*out, err, "%s must be a list of at least one number", what);
  return numbers_only(*out, what, err);
}

static gl_status must_differ(const cfg_node *node, double used, gl_error *err) {
  double value = 0;
  if (!cfg_number(node, &value) || value != used) return GL_OK;
  return cfg_fail(node, err,
                  "seed %.0f is used by the sweep too; rates must be chosen on seeds other than "
                  "those they are judged on",
                  value);
}

static gl_status separate_seeds(const cfg_node *seeds, const cfg_doc *doc, const sweep_grid *sweep,
                                gl_error *err) {
  const cfg_node *used = NULL;
  for (size_t i = 0; i < sweep->n_axes; ++i)
    if (strcmp(sweep->axes[i].path, "seed") == 0) used = sweep->axes[i].values;
  const cfg_node *base = cfg_find(cfg_root(doc), "seed");
  gl_status status = GL_OK;
  for (size_t i = 0; i < cfg_size(seeds) && status == GL_OK; ++i) {
    double seed = 1;
    if (used == NULL) {
      if (base == NULL || cfg_number(base, &seed))
        status = must_differ(cfg_at(seeds, i), seed, err);
      continue;
    }
    for (size_t k = 0; k < cfg_size(used) && status == GL_OK; ++k)
      if (cfg_number(cfg_at(used, k), &seed)) status = must_differ(cfg_at(seeds, i), seed, err);
  }
  return status;
}

/* Replaces the values of the axis of that path, or adds it at the end. */
static gl_status set_axis(sweep_grid *grid, const char *path, const cfg_node *values,
                          gl_error *err) {
  for (size_t i = 0; i < grid->n_axes; ++i)
    if (strcmp(grid->axes[i].path, path) == 0) {
      grid->axes[i].values = values;
      return GL_OK;
    }
  if (grid->n_axes == SWEEP_MAX_AXES)
    return cfg_fail(values, err, "sweep and tune together have more than %d axes", SWEEP_MAX_AXES);
  grid->axes[grid->n_axes++] = (sweep_axis){path, values};
  return GL_OK;
}

gl_status tune_grid_read(sweep_grid *grid, const cfg_doc *doc, const sweep_grid *sweep,
                         gl_error *err) {
  *grid = (sweep_grid){0};
  const cfg_node *tune = cfg_find(cfg_root(doc), "tune");
  if (tune == NULL || cfg_is_null(tune)) return GL_OK;
  cfg_reader r;
  const cfg_node *rates = NULL, *seeds = NULL;
  cfg_begin(&r, tune, "tune", err);
  gl_status status = list_of_numbers(&rates, &r, tune, "lr", "tune.lr", err);
  if (status == GL_OK) status = list_of_numbers(&seeds, &r, tune, "seeds", "tune.seeds", err);
  if (status == GL_OK) status = cfg_end(&r);
  for (size_t i = 0; i < sweep->n_axes && status == GL_OK; ++i)
    if (strcmp(sweep->axes[i].path, "optimizer.lr") == 0)
      status =
          cfg_fail(sweep->axes[i].values, err,
                   "optimizer.lr is an axis of the sweep and chosen by tune; keep one of them");
  if (status == GL_OK) status = separate_seeds(seeds, doc, sweep, err);
  *grid = *sweep;
  if (status == GL_OK) status = set_axis(grid, "seed", seeds, err);
  if (status == GL_OK) status = set_axis(grid, "optimizer.lr", rates, err);
  return status;
}

/* --- the choice ---------------------------------------------------------------------------------
 */

double tune_score(const run_result *o, size_t steps) {
  if (o->status == RUN_FAILED) return NAN;
  if (o->n_steps < steps) return 0.0;
  return run_result_scores(o).last_quarter;
}

/* Score of one algorithm at one rate over all its cells; NaN if none has one. */
static double rate_score(const sweep_cells *cells, const double *score, const char *algorithm,
                         double lr, double *buffer) {
  size_t n = 0;
  for (size_t i = 0; i < cells->n_cells; ++i)
    if (cells->cells[i].lr == lr && strcmp(cells->cells[i].algorithm, algorithm) == 0 &&
        !isnan(score[i]))
      buffer[n++] = score[i];
  return sample_iqm(buffer, sample_sort(buffer, n));
}

/* The best of the algorithm's rates; those it was tried at are the cells' own. */
static gl_status choose_one(sweep_rate *out, int *edge, const sweep_cells *cells,
                            const double *score, const char *algorithm, double *buffer,
                            gl_error *err) {
  double smallest = INFINITY, largest = -INFINITY;
  *out = (sweep_rate){.lr = NAN, .score = NAN};
  snprintf(out->algorithm, sizeof out->algorithm, "%s", algorithm);
  for (size_t i = 0; i < cells->n_cells; ++i) {
    double lr = cells->cells[i].lr;
    if (strcmp(cells->cells[i].algorithm, algorithm) != 0) continue;
    smallest = fmin(smallest, lr);
    largest = fmax(largest, lr);
    if (lr == out->lr) continue;
    double value = rate_score(cells, score, algorithm, lr, buffer);
    if (isnan(value)) continue;
    if (isnan(out->score) || value > out->score || (value == out->score && lr < out->lr)) {
      out->lr = lr;
      out->score = value;
    }
  }
  *edge = smallest < largest && (out->lr == smallest || out->lr == largest);
  if (isnan(out->score))
    return gl_fail(err, GL_ENUMERIC,
                   "no tuning run of %s finished, so no rate can be chosen for it", algorithm);
  return GL_OK;
}

gl_status tune_choose(sweep_rate **rates, int **edge, size_t *n_rates, const sweep_cells *cells,
                      const double *score, gl_error *err) {
  *n_rates = 0;
  *rates = calloc(cells->n_cells + 1, sizeof **rates);
  *edge = calloc(cells->n_cells + 1, sizeof **edge);
  double *buffer = calloc(cells->n_cells + 1, sizeof *buffer);
  gl_status status = GL_OK;
  if (*rates == NULL || *edge == NULL || buffer == NULL)
    status = gl_fail_memory(err, "the chosen rates");
  for (size_t i = 0; i < cells->n_cells && status == GL_OK; ++i) {
    const char *algorithm = cells->cells[i].algorithm;
    int known = 0;
    for (size_t k = 0; k < *n_rates; ++k) known |= strcmp((*rates)[k].algorithm, algorithm) == 0;
    if (known) continue;
    size_t k = (*n_rates)++;
    status = choose_one(&(*rates)[k], &(*edge)[k], cells, score, algorithm, buffer, err);
  }
  free(buffer);
  if (status == GL_OK) return GL_OK;
  free(*rates);
  free(*edge);
  *rates = NULL;
  *edge = NULL;
  *n_rates = 0;
  return status;
}
