/* From the `sweep` section of a recipe to the cells of its grid. */
#include "experiments/sweep/sweep_cells.h"

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/config/fields.h"
#include "experiments/recipe/recipe.h"

#include <stdlib.h>
#include <string.h>

static const size_t max_cells = 1000000;

/* --- the grid -----------------------------------------------------------------------------------
 */

gl_status sweep_grid_read(sweep_grid *grid, const cfg_doc *doc, gl_error *err) {
  *grid = (sweep_grid){0};
  const cfg_node *sweep = cfg_find(cfg_root(doc), "sweep");
  if (sweep == NULL || cfg_is_null(sweep))
    return cfg_fail(
        cfg_root(doc), err,
        "the recipe has no sweep; add `sweep: {seed: [1, 2, 3]}`, or use `gepolab run`");
  if (cfg_kind_of(sweep) != CFG_MAP || cfg_size(sweep) == 0)
    return cfg_fail(sweep, err,
                    "the sweep is empty; it maps dotted paths to lists of values, as in `sweep: "
                    "{seed: [1, 2, 3]}`");
  if (cfg_size(sweep) > SWEEP_MAX_AXES)
    return cfg_fail(sweep, err, "a sweep has at most %d axes", SWEEP_MAX_AXES);
  for (size_t i = 0; i < cfg_size(sweep); ++i) {
    const cfg_node *values = cfg_at(sweep, i);
    const char *path = cfg_key_at(sweep, i);
    if (cfg_kind_of(values) != CFG_LIST || cfg_size(values) == 0)
      return cfg_fail(values, err, "sweep.%s must be a list of at least one value, as in [1, 2, 3]",
                      path);
    grid->axes[grid->n_axes++] = (sweep_axis){path, values};
  }
  return GL_OK;
}

static gl_status count_cells(const sweep_grid *grid, size_t *n, gl_error *err) {
  *n = 1;
  for (size_t i = 0; i < grid->n_axes; ++i) {
    size_t values = cfg_size(grid->axes[i].values);
    if (values > max_cells / *n)
      return cfg_fail(grid->axes[i].values, err, "the sweep has more than %zu cells", max_cells);
    *n *= values;
  }
  return GL_OK;
}

/* Which value of each axis cell `ordinal` has; the last axis varies fastest. */
static void cell_position(const sweep_grid *grid, size_t ordinal, size_t at[SWEEP_MAX_AXES]) {
  for (size_t i = grid->n_axes; i-- > 0;) {
    size_t values = cfg_size(grid->axes[i].values);
    at[i] = ordinal % values;
    ordinal /= values;
  }
}

/* --- one cell -----------------------------------------------------------------------------------
 */

static int compare_axes(const void *a, const void *b) {
  return strcmp((*(const sweep_axis *const *)a)->path, (*(const sweep_axis *const *)b)->path);
}

static int has_own_column(const char *path) {
  return strcmp(path, "algorithm") == 0 || strcmp(path, "seed") == 0;
}

/* {"cluster.max_delay":600}: sorted by path. NULL if memory is short. */
static char *swept_text(const sweep_grid *grid, const size_t at[SWEEP_MAX_AXES]) {
  const sweep_axis *sorted[SWEEP_MAX_AXES];
  for (size_t i = 0; i < grid->n_axes; ++i) sorted[i] = &grid->axes[i];
  qsort(sorted, grid->n_axes, sizeof sorted[0], compare_axes);
  cJSON *json = cJSON_CreateObject();
  int ok = json != NULL;
  for (size_t i = 0; i < grid->n_axes && ok; ++i) {
    if (has_own_column(sorted[i]->path)) continue;
    char *value = cfg_canonical(cfg_at(sorted[i]->values, at[sorted[i] - grid->axes]));
    ok = value != NULL && cJSON_AddRawToObject(json, sorted[i]->path, value) != NULL;
    free(value);
  }
  char *text = ok ? cJSON_PrintUnformatted(json) : NULL;
  cJSON_Delete(json);
  return text;
}

static gl_status set_axes(cfg_doc *doc, const sweep_grid *grid, const size_t at[SWEEP_MAX_AXES],
                          gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < grid->n_axes && status == GL_OK; ++i)
    status = cfg_set(doc, grid->axes[i].path, cfg_at(grid->axes[i].values, at[i]), err);
  return status;
}

/* The cell's algorithm by its shown name, which leaves out what is an axis of its own. */
static gl_status name_algorithm(sweep_cell *cell, policy_algorithm *algorithm,
                                const sweep_grid *grid, gl_error *err) {
  static const char section[] = "algorithm.";
  const char *axes[SWEEP_MAX_AXES];
  size_t n = 0;
  for (size_t i = 0; i < grid->n_axes; ++i)
    if (strncmp(grid->axes[i].path, section, sizeof section - 1) == 0)
      axes[n++] = grid->axes[i].path + sizeof section - 1;
  gl_status status = policy_algorithm_set_name(algorithm, axes, n, err);
  snprintf(cell->algorithm, sizeof cell->algorithm, "%s", algorithm->name);
  return status;
}

/* Sets optimizer.lr of the doc to what was chosen for the cell's algorithm, if anything was. */
static gl_status set_rate(cfg_doc *doc, recipe *r, sweep_cell *cell, const sweep_rate *rates,
                          size_t n_rates, gl_error *err) {
  for (size_t i = 0; i < n_rates; ++i) {
    if (strcmp(rates[i].algorithm, cell->algorithm) != 0) continue;
    char number[NUMBER_TEXT_SIZE], assignment[NUMBER_TEXT_SIZE + 16];
    char chosen[NUMBER_TEXT_SIZE + 24];
    snprintf(assignment, sizeof assignment, "optimizer.lr=%s", number_text(rates[i].lr, number));
    snprintf(chosen, sizeof chosen, "{\"optimizer.lr\":%s}", number);
    cell->chosen = strdup(chosen);
    if (cell->chosen == NULL) return gl_fail_memory(err, "a chosen rate");
    gl_status status = cfg_override(doc, assignment, err);
    return status == GL_OK ? recipe_read(r, doc, err) : status;
  }
  return GL_OK;
}

/* What makes two cells the same. NULL if memory is short. */
static char *identity_of(const char *text) {
  size_t size = text != NULL ? strlen(text) + 32 : 0;
  char *identity = text != NULL ? malloc(size) : NULL;
  if (identity != NULL) snprintf(identity, size, "meaning %d: %s", RECIPE_MEANING, text);
  return identity;
}

/* Whether `tune` chooses the rates of the grid's cells; those of the tuning runs are an axis. */
static int rate_is_open(const cfg_doc *doc, const sweep_grid *grid) {
  const cfg_node *tune = cfg_find(cfg_root(doc), "tune");
  for (size_t i = 0; i < grid->n_axes; ++i)
    if (strcmp(grid->axes[i].path, "optimizer.lr") == 0) return 0;
  return tune != NULL && !cfg_is_null(tune);
}

/* The last that is made of the cell's doc, which may lose its rate here. */
static gl_status find_place(sweep_cell *cell, cfg_doc *doc, int open_rate, gl_error *err) {
  memcpy(cell->place, cell->key, sizeof cell->place);
  if (!open_rate) return GL_OK;
  gl_status status = cfg_override(doc, "optimizer.lr=null", err);
  if (status != GL_OK) return status;
  char *text = cfg_canonical(cfg_root(doc)), *identity = identity_of(text);
  if (identity != NULL) hash_hex(identity, strlen(identity), cell->place);
  status = identity != NULL ? GL_OK : gl_fail_memory(err, "a cell of the sweep");
  free(text);
  free(identity);
  return status;
}

/* check: what every room is asked about the cell, and worlds known to be right; NULL: nothing. */
static gl_status fill_cell(sweep_cell *cell, cfg_doc *doc, const sweep_grid *grid,
                           const sweep_rate *rates, size_t n_rates, int open_rate,
                           recipe_worlds *check, gl_error *err) {
  size_t at[SWEEP_MAX_AXES];
  cell_position(grid, cell->ordinal, at);
  recipe r;
  gl_status status = set_axes(doc, grid, at, err);
  if (status == GL_OK) status = recipe_read(&r, doc, err);
  if (status == GL_OK) status = name_algorithm(cell, &r.algorithm, grid, err);
  if (status == GL_OK) status = set_rate(doc, &r, cell, rates, n_rates, err);
  if (status == GL_OK && check != NULL) status = recipe_check(&r, check, err);
  if (status != GL_OK) return status;
  cell->recipe = cfg_canonical(cfg_root(doc));
  cell->identity = identity_of(cell->recipe);
  cell->swept = swept_text(grid, at);
  const char *source = cfg_source_path(cfg_root(doc));
  cell->source = source != NULL ? strdup(source) : NULL;
  if (cell->recipe == NULL || cell->identity == NULL || cell->swept == NULL ||
      (source != NULL && cell->source == NULL))
    return gl_fail_memory(err, "a cell of the sweep");
  hash_hex(cell->identity, strlen(cell->identity), cell->key);
  cell->seed = r.seed;
  cell->steps = r.steps;
  cell->is_llm = recipe_is_llm(&r);
  cell->lr = recipe_lr(&r);
  return find_place(cell, doc, open_rate, err);
}

/* What a cell does not contain: the sweep it came from, words about the study, and what changes no
 * result. */
static gl_status cell_base(cfg_doc **out, const cfg_doc *doc, gl_error *err) {
  static const char *const not_in_cells[] = {"sweep", "tune", "description", "checkpoint"};
  gl_status status = cfg_copy(out, doc, err);
  for (size_t i = 0; i < sizeof not_in_cells / sizeof not_in_cells[0] && status == GL_OK; ++i)
    cfg_remove(*out, not_in_cells[i]);
  return status;
}

gl_status sweep_cell_recipe(cfg_doc **out, const sweep_cell *cell, gl_error *err) {
  return cfg_load_text_of(out, cell->recipe, strlen(cell->recipe), cell->key, cell->source, err);
}

/* --- all cells ----------------------------------------------------------------------------------
 */

static int compare_keys(const void *a, const void *b) {
  return strcmp((*(const sweep_cell *const *)a)->key, (*(const sweep_cell *const *)b)->key);
}

static gl_status refuse_equal_cells(const sweep_cells *s, const cfg_node *place, gl_error *err) {
  const sweep_cell **sorted = calloc(s->n_cells, sizeof *sorted);
  if (sorted == NULL) return gl_fail_memory(err, "the cells of the sweep");
  for (size_t i = 0; i < s->n_cells; ++i) sorted[i] = &s->cells[i];
  qsort(sorted, s->n_cells, sizeof *sorted, compare_keys);
  gl_status status = GL_OK;
  for (size_t i = 1; i < s->n_cells && status == GL_OK; ++i)
    if (compare_keys(&sorted[i - 1], &sorted[i]) == 0)
      status =
          cfg_fail(place, err,
                   "the sweep has the same cell twice (algorithm %s, seed %llu, %s); list "
                   "every value once",
                   sorted[i]->algorithm, (unsigned long long)sorted[i]->seed, sorted[i]->swept);
  free(sorted);
  return status;
}

static gl_status refuse_equal_names(const sweep_grid *grid, gl_error *err) {
  for (size_t a = 0; a < grid->n_axes; ++a) {
    if (strcmp(grid->axes[a].path, "algorithm") != 0) continue;
    const cfg_node *list = grid->axes[a].values;
    for (size_t i = 0; i < cfg_size(list); ++i)
      for (size_t k = 0; k < i; ++k) {
        policy_algorithm one, other;
        gl_status status = policy_algorithm_parse(&one, cfg_at(list, i), err);
        if (status == GL_OK) status = policy_algorithm_parse(&other, cfg_at(list, k), err);
        if (status != GL_OK) return status;
        if (strcmp(one.name, other.name) == 0)
          return cfg_fail(cfg_at(list, i), err,
                          "two algorithms of the sweep are shown as '%s'; give one of them a "
                          "`name:` of its own",
                          one.name);
      }
  }
  return GL_OK;
}

static gl_status interrupted(gl_error *err) {
  return gl_fail(err, GL_EINTERRUPTED,
                 "interrupted while the cells of the sweep were listed; nothing was run");
}

gl_status sweep_expand(sweep_cells *out, const cfg_doc *doc, const sweep_grid *grid,
                       const sweep_expansion *how, gl_error *err) {
  *out = (sweep_cells){0};
  cfg_doc *base = NULL;
  recipe_worlds known = {0};
  const int open_rate = rate_is_open(doc, grid);
  size_t n = 0;
  gl_status status = count_cells(grid, &n, err);
  if (status == GL_OK && how->check) status = refuse_equal_names(grid, err);
  if (status == GL_OK) status = cell_base(&base, doc, err);
  if (status == GL_OK) {
    out->cells = calloc(n, sizeof *out->cells);
    if (out->cells == NULL) status = gl_fail_memory(err, "the cells of the sweep");
  }
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    cfg_doc *one = NULL;
    out->n_cells = i + 1;
    out->cells[i].ordinal = i;
    status = how->tick != NULL && how->tick(how->self, i, n) ? interrupted(err) : GL_OK;
    if (status == GL_OK) status = cfg_copy(&one, base, err);
    if (status == GL_OK)
      status = fill_cell(&out->cells[i], one, grid, how->rates, how->n_rates, open_rate,
                         how->check ? &known : NULL, err);
    cfg_free(one);
  }
  cfg_free(base);
  recipe_worlds_fini(&known);
  if (status == GL_OK && how->check) status = refuse_equal_cells(out, grid->axes[0].values, err);
  if (status != GL_OK) sweep_cells_fini(out);
  return status;
}

void sweep_cells_fini(sweep_cells *s) {
  for (size_t i = 0; i < s->n_cells; ++i) {
    free(s->cells[i].recipe);
    free(s->cells[i].source);
    free(s->cells[i].identity);
    free(s->cells[i].swept);
    free(s->cells[i].chosen);
  }
  free(s->cells);
  *s = (sweep_cells){0};
}
