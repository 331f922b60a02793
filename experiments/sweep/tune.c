/* Plans tuning runs, scores them, and chooses fields for each algorithm. */
#include "experiments/sweep/tune.h"

#include "analysis/statistics.h"
#include "core/config/fields.h"
#include "experiments/base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- reading the section --- */

static const char example[] = "tune: {lr: [0.01, 0.1], seeds: [101, 102]}";

static gl_status numbers_only(const cfg_node *list, const char *what, gl_error *err) {
  for (size_t i = 0; i < cfg_size(list); ++i) {
    double value = 0;
    if (!cfg_number(cfg_at(list, i), &value) || !(value >= 0))
      return cfg_fail(cfg_at(list, i), err, "%s must hold numbers that are not negative", what);
  }
  return GL_OK;
}

/* Checks that the list has at least one value and no duplicates. */
static gl_status check_list(const cfg_node *list, const char *what, gl_error *err) {
  if (cfg_kind_of(list) != CFG_LIST || cfg_size(list) == 0)
    return cfg_fail(list, err,
                    "%s must be a list of at least one value, as in [1, 2], or a range, as in "
                    "{from: 1, to: 3, n: 3}",
                    what);
  gl_status status = GL_OK;
  for (size_t i = 1; i < cfg_size(list) && status == GL_OK; ++i) {
    char *one = must_have(cfg_canonical(cfg_at(list, i)), "the values of tune");
    for (size_t k = 0; k < i && status == GL_OK; ++k) {
      char *other = must_have(cfg_canonical(cfg_at(list, k)), "the values of tune");
      if (strcmp(one, other) == 0)
        status = cfg_fail(cfg_at(list, i), err, "%s lists %.60s twice", what, one);
      free(other);
    }
    free(one);
  }
  return status;
}

static gl_status must_differ(const cfg_node *node, double used, gl_error *err) {
  double value = 0;
  if (!cfg_number(node, &value) || value != used) return GL_OK;
  return cfg_fail(node, err,
                  "seed %.0f is used by the sweep too; fields must be chosen on seeds other than "
                  "those they are judged on",
                  value);
}

/* Checks that no tuning seed is also a seed of the sweep, because results on the seeds of the
 * choice would be biased upwards. */
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

/* Returns 1 if `tune` may choose the path: settings of a run, and fields of an algorithm, but not
 * keys such as seed that define which runs there are. */
static int may_be_chosen(const char *path) {
  static const char *const others[] = {"seed",  "name", "description", "sweep",
                                       "steps", "tune", "checkpoint"};
  for (size_t i = 0; i < sizeof others / sizeof *others; ++i)
    if (cfg_path_is_inside(path, others[i])) return 0;
  return strcmp(path, "algorithm") != 0 && strcmp(path, "algorithm.base") != 0 &&
         strcmp(path, "algorithm.name") != 0;
}

/* Returns 1 if the axis, or a field of a design, is the tuned field or inside it. A section around
 * the tuned field (an algorithm around its clip) is set first and is allowed. */
static int sets(const sweep_axis *swept, const char *path) {
  const cfg_node *first = cfg_at(swept->values, 0);
  if (strcmp(swept->path, "algorithm") != 0 && cfg_path_is_inside(swept->path, path)) return 1;
  if (cfg_design_named(swept->path) == NULL) return 0;
  for (size_t i = 0; i < cfg_size(first); ++i)
    if (cfg_path_is_inside(cfg_key_at(first, i), path)) return 1;
  return 0;
}

static gl_status tune_check_field(const tune_plan *p, size_t i, const cfg_node *lr,
                                  const sweep_grid *sweep, gl_error *err) {
  const char *path = p->fields.path[i];
  char what[96] = "tune.lr";
  if (p->fields.values[i] != lr) snprintf(what, sizeof what, "tune.fields.%.64s", path);
  gl_status status = check_list(p->fields.values[i], what, err);
  if (status == GL_OK && !may_be_chosen(path))
    status = cfg_fail(p->fields.values[i], err,
                      "tune cannot choose '%s'; it chooses settings of runs, such as optimizer.lr, "
                      "train.epochs or algorithm.eps_low",
                      path);
  for (size_t k = 0; k < i && status == GL_OK; ++k)
    if (cfg_paths_overlap(path, p->fields.path[k]))
      status = cfg_fail(p->fields.values[i], err,
                        "tune chooses %s and %s, which is the same field or one inside the other; "
                        "keep one",
                        p->fields.path[k], path);
  for (size_t a = 0; a < sweep->n_axes && status == GL_OK; ++a)
    if (sets(&sweep->axes[a], path))
      status = cfg_fail(
          sweep->axes[a].values, err,
          "%s is an axis of the sweep and chosen by tune; keep one of them (tune=null leaves the "
          "tuning out)",
          path);
  return status;
}

static gl_status check_fields(const tune_plan *p, const cfg_node *tune, const cfg_node *lr,
                              const cfg_node *fields, const sweep_grid *sweep, gl_error *err) {
  if (fields != NULL && (cfg_kind_of(fields) != CFG_MAP || cfg_size(fields) == 0))
    return cfg_fail(fields, err,
                    "tune.fields maps dotted paths to lists of values, as in {optimizer.lr: [0.01, "
                    "0.1], train.epochs: [1, 2]}");
  if (p->fields.n == 0) return cfg_fail(tune, err, "'tune' needs lr or fields, as in %s", example);
  if (fields != NULL && cfg_size(fields) + (lr != NULL) > TUNED_FIELDS_MOST)
    return cfg_fail(fields, err, "tune chooses at most %d fields", TUNED_FIELDS_MOST);
  gl_status status = GL_OK;
  for (size_t i = 0; i < p->fields.n && status == GL_OK; ++i)
    status = tune_check_field(p, i, lr, sweep, err);
  return status == GL_OK && lr != NULL ? numbers_only(lr, "tune.lr", err) : status;
}

/* --- rungs --- */

static gl_status tune_make_steps(tune_plan *p, size_t steps, gl_error *err) {
  char *text = NULL;
  size_t size = 0, divisor = 1;
  FILE *to = must_have(open_memstream(&text, &size), "the rungs of tune");
  for (size_t k = 1; k < p->rungs; ++k) divisor *= p->eta;
  fputs("steps: [", to);
  for (size_t k = 0; k < p->rungs; ++k, divisor /= p->eta)
    fprintf(to, "%s%zu", k == 0 ? "" : ", ", (steps + divisor - 1) / divisor);
  fputs("]\n", to);
  must_succeed(fclose(to) == 0, "the rungs of tune");
  gl_status status = cfg_load_text(&p->steps, text, size, "tune.halving", err);
  free(text);
  return status;
}

static gl_status read_halving(tune_plan *p, const cfg_node *node, const sweep_grid *sweep,
                              size_t steps, gl_error *err) {
  cfg_reader r;
  p->rungs = 1;
  if (node == NULL) return GL_OK;
  cfg_begin(&r, node, "tune.halving", err);
  p->eta = field_count(&r, "eta");
  p->rungs = field_count(&r, "rungs");
  if (cfg_end(&r) != GL_OK) return GL_EINPUT;
  for (size_t a = 0; a < sweep->n_axes; ++a)
    if (sets(&sweep->axes[a], "steps"))
      return cfg_fail(node, err,
                      "tune.halving shortens runs to a part of `steps`, which the sweep sets; keep "
                      "one of them");
  size_t shortest = steps;
  for (size_t k = 1; k < p->rungs; ++k) shortest /= p->eta;
  if (shortest == 0)
    return cfg_fail(node, err,
                    "tune.halving: %zu rungs of a factor of %zu need %zu^%zu updates or more, and "
                    "the recipe has %zu; take fewer rungs",
                    p->rungs, p->eta, p->eta, p->rungs - 1, steps);
  return tune_make_steps(p, steps, err);
}

/* --- the grid of tuning runs --- */

/* Replaces the values of the axis with that path, or appends the axis. */
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

static gl_status make_grid(tune_plan *p, const sweep_grid *sweep, const cfg_node *seeds,
                           gl_error *err) {
  p->grid = *sweep;
  p->settings = 1;
  gl_status status = set_axis(&p->grid, "seed", seeds, err);
  if (status == GL_OK && p->rungs > 1)
    status = set_axis(&p->grid, "steps", cfg_find(cfg_root(p->steps), "steps"), err);
  for (size_t i = 0; i < p->fields.n && status == GL_OK; ++i) {
    status = set_axis(&p->grid, p->fields.path[i], p->fields.values[i], err);
    if (__builtin_mul_overflow(p->settings, cfg_size(p->fields.values[i]), &p->settings))
      status = cfg_fail(p->fields.values[i], err, "tune has more settings than can be counted");
  }
  return status;
}

static const cfg_node *child(cfg_reader *r, const char *key) {
  const cfg_node *node = cfg_child(r, key);
  return node != NULL && cfg_is_null(node) ? NULL : node;
}

static gl_status tune_read_plan(tune_plan *p, const cfg_doc *doc, const cfg_node *tune,
                                const sweep_grid *sweep, size_t steps, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, tune, "tune", err);
  const cfg_node *lr = child(&r, "lr"), *fields = child(&r, "fields");
  const cfg_node *seeds = child(&r, "seeds"), *halving = child(&r, "halving");
  if (cfg_end(&r) != GL_OK) return GL_EINPUT;
  p->fields = tuned_fields_of(doc);
  gl_status status = check_fields(p, tune, lr, fields, sweep, err);
  if (status == GL_OK && seeds == NULL)
    status = cfg_fail(tune, err, "'tune' needs seeds, as in %s", example);
  if (status == GL_OK) status = check_list(seeds, "tune.seeds", err);
  if (status == GL_OK) status = numbers_only(seeds, "tune.seeds", err);
  if (status == GL_OK) status = separate_seeds(seeds, doc, sweep, err);
  if (status == GL_OK) status = read_halving(p, halving, sweep, steps, err);
  return status == GL_OK ? make_grid(p, sweep, seeds, err) : status;
}

gl_status tune_plan_read(tune_plan *out, const cfg_doc *doc, const sweep_grid *sweep, size_t steps,
                         gl_error *err) {
  *out = (tune_plan){.rungs = 1};
  const cfg_node *tune = cfg_find(cfg_root(doc), "tune");
  if (tune == NULL || cfg_is_null(tune)) return GL_OK;
  gl_status status = tune_read_plan(out, doc, tune, sweep, steps, err);
  if (status != GL_OK) tune_plan_fini(out);
  return status;
}

void tune_plan_fini(tune_plan *p) {
  cfg_free(p->steps);
  *p = (tune_plan){.rungs = 1};
}

size_t tune_settings(const tune_plan *p, size_t rung) {
  size_t n = p->settings;
  for (size_t k = 0; k < rung; ++k) n = (n + p->eta - 1) / p->eta;
  return n;
}

int tune_stands_for(const tune_plan *p, size_t rung, size_t i) {
  return i / p->settings % p->rungs == rung && i % p->settings < tune_settings(p, rung);
}

size_t tune_runs(const tune_plan *p, size_t cells) {
  size_t n = 0;
  for (size_t k = 0; k < p->rungs && p->grid.n_axes > 0; ++k)
    n += cells / (p->settings * p->rungs) * tune_settings(p, k);
  return n;
}

/* --- scores --- */

double tune_score(const run_result *o, size_t steps) {
  if (o->status == RUN_FAILED) return NAN;
  if (o->n_steps < steps) {
    double least = 0;
    for (size_t i = 0; i < o->n_evals; ++i) least = fmin(least, o->evals[i].eval_score);
    return least;
  }
  return run_result_scores(o).last_quarter;
}

/* Index of the cell of a setting in a rung; `outer` is the index of the combination of the other
 * axes. */
static size_t tune_cell_at(const tune_plan *p, size_t outer, size_t rung, size_t setting) {
  return (outer * p->rungs + rung) * p->settings + setting;
}

static size_t combinations(const tune_plan *p, const sweep_cells *cells) {
  return cells->n_cells / (p->settings * p->rungs);
}

/* Index of the i-th field's value in a setting. */
static size_t tune_value_of(const tune_plan *p, size_t setting, size_t i) {
  for (size_t k = p->fields.n; k-- > i + 1;) setting /= cfg_size(p->fields.values[k]);
  return setting % cfg_size(p->fields.values[i]);
}

/* One algorithm's setting in a rung. */
typedef struct standing {
  const tune_plan *plan;
  size_t setting;
  double score; /* NaN: no run has a score */
} standing;

/* Orders settings with equal scores: the first different value decides, numbers by size and others
 * by their place in the list. */
static int compare_settings(const tune_plan *p, size_t one, size_t other) {
  for (size_t i = 0; i < p->fields.n; ++i) {
    const size_t a = tune_value_of(p, one, i), b = tune_value_of(p, other, i);
    double x, y;
    if (a == b) continue;
    if (cfg_number(cfg_at(p->fields.values[i], a), &x) &&
        cfg_number(cfg_at(p->fields.values[i], b), &y) && x != y)
      return x < y ? -1 : 1;
    return a < b ? -1 : 1;
  }
  return 0;
}

/* Sorts best first; settings without a score last. */
static int compare_standings(const void *left, const void *right) {
  const standing *a = left, *b = right;
  if (isnan(a->score) != isnan(b->score)) return isnan(a->score) ? 1 : -1;
  if (a->score != b->score && !isnan(a->score)) return a->score > b->score ? -1 : 1;
  return compare_settings(a->plan, a->setting, b->setting);
}

/* The score of a setting over all cells of the algorithm; buffer[combinations] is scratch. */
static double score_of(const tune_plan *p, const sweep_cells *cells, const double *score,
                       const char *algorithm, size_t rung, size_t setting, double *buffer) {
  size_t n = 0;
  for (size_t outer = 0; outer < combinations(p, cells); ++outer) {
    const size_t i = tune_cell_at(p, outer, rung, setting);
    if (strcmp(cells->cells[i].algorithm, algorithm) == 0 && !isnan(score[i]))
      buffer[n++] = score[i];
  }
  return sample_iqm(buffer, sample_sort(buffer, n));
}

/* State of a choice: a standing per setting, remaining settings first. */
typedef struct contest {
  const tune_plan *plan;
  const sweep_cells *cells;
  const double *score;
  standing *standing; /* [settings] */
  double *buffer;     /* [combinations] scratch: the scores of a setting */
} contest;

static void contest_init(contest *c) {
  c->standing = MUST_ARRAY(standing, c->plan->settings, "the tuning runs");
  c->buffer = MUST_ARRAY(double, combinations(c->plan, c->cells), "the tuning runs");
}

static void contest_fini(contest *c) {
  free(c->standing);
  free(c->buffer);
}

/* Ranks the settings of a rung among those left by earlier rungs. */
static gl_status rank(contest *c, const char *algorithm, size_t rung, gl_error *err) {
  const size_t n = tune_settings(c->plan, rung);
  for (size_t k = 0; k < n; ++k)
    c->standing[k].score =
        score_of(c->plan, c->cells, c->score, algorithm, rung, c->standing[k].setting, c->buffer);
  qsort(c->standing, n, sizeof *c->standing, compare_standings);
  if (!isnan(c->standing[0].score)) return GL_OK;
  return gl_fail(err, GL_ENUMERIC, "no tuning run of %s finished, so nothing can be chosen for it",
                 algorithm);
}

/* Replays the rungs before `rung`, so that the settings it tries are at the front. */
static gl_status play(contest *c, const char *algorithm, size_t rung, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t k = 0; k < c->plan->settings; ++k) c->standing[k] = (standing){c->plan, k, NAN};
  for (size_t k = 0; k < rung && status == GL_OK; ++k) status = rank(c, algorithm, k, err);
  return status;
}

/* Returns 1 if an earlier combination has the same algorithm. */
static int tune_is_known(const tune_plan *p, const sweep_cells *cells, size_t outer) {
  const char *algorithm = cells->cells[tune_cell_at(p, outer, 0, 0)].algorithm;
  for (size_t k = 0; k < outer; ++k)
    if (strcmp(cells->cells[tune_cell_at(p, k, 0, 0)].algorithm, algorithm) == 0) return 1;
  return 0;
}

gl_status tune_rung(unsigned char *in, const tune_plan *p, const sweep_cells *cells,
                    const double *score, size_t rung, gl_error *err) {
  contest c = {.plan = p, .cells = cells, .score = score};
  const size_t n = combinations(p, cells);
  memset(in, 0, cells->n_cells);
  gl_status status = GL_OK;
  contest_init(&c);
  for (size_t outer = 0; outer < n && status == GL_OK; ++outer) {
    if (tune_is_known(p, cells, outer)) continue;
    const char *algorithm = cells->cells[tune_cell_at(p, outer, 0, 0)].algorithm;
    status = play(&c, algorithm, rung, err);
    for (size_t other = outer; other < n && status == GL_OK; ++other) {
      if (strcmp(cells->cells[tune_cell_at(p, other, 0, 0)].algorithm, algorithm) != 0) continue;
      for (size_t k = 0; k < tune_settings(p, rung); ++k)
        in[tune_cell_at(p, other, rung, c.standing[k].setting)] = 1;
    }
  }
  contest_fini(&c);
  return status;
}

/* --- the choice --- */

/* Returns 1 if the value is the smallest or the largest of several different numbers. */
static int is_edge(const cfg_node *values, size_t at) {
  double own, other, smallest = INFINITY, largest = -INFINITY;
  if (!cfg_number(cfg_at(values, at), &own)) return 0;
  for (size_t i = 0; i < cfg_size(values); ++i) {
    if (!cfg_number(cfg_at(values, i), &other)) return 0;
    smallest = fmin(smallest, other);
    largest = fmax(largest, other);
  }
  return smallest < largest && (own == smallest || own == largest);
}

/* Sets the choice of one algorithm to the best setting of the last rung. */
static gl_status choose_one(sweep_choice *out, contest *c, size_t outer, gl_error *err) {
  const tune_plan *p = c->plan;
  const sweep_cell *first = &c->cells->cells[tune_cell_at(p, outer, 0, 0)];
  snprintf(out->algorithm, sizeof out->algorithm, "%s", first->algorithm);
  gl_status status = play(c, first->algorithm, p->rungs, err);
  if (status != GL_OK) return status;
  const size_t best = c->standing[0].setting;
  out->score = c->standing[0].score;
  out->lr = c->cells->cells[tune_cell_at(p, outer, p->rungs - 1, best)].lr;
  for (size_t i = 0; i < p->fields.n; ++i) {
    const size_t at = tune_value_of(p, best, i);
    out->value[i] = cfg_at(p->fields.values[i], at);
    if (is_edge(p->fields.values[i], at)) out->edges |= 1u << i;
  }
  return GL_OK;
}

gl_status tune_choose(sweep_choice **choices, size_t *n, const tune_plan *p,
                      const sweep_cells *cells, const double *score, gl_error *err) {
  contest c = {.plan = p, .cells = cells, .score = score};
  const size_t outers = combinations(p, cells);
  *n = 0;
  *choices = MUST_ARRAY(sweep_choice, outers, "what is chosen");
  gl_status status = GL_OK;
  contest_init(&c);
  for (size_t outer = 0; outer < outers && status == GL_OK; ++outer)
    if (!tune_is_known(p, cells, outer)) status = choose_one(&(*choices)[(*n)++], &c, outer, err);
  contest_fini(&c);
  if (status == GL_OK) return GL_OK;
  free(*choices);
  *choices = NULL;
  *n = 0;
  return status;
}
