/* The table of a study's figures, and tests whether a study has the required data. */
#include "analysis/figures/figures.h"

#include "analysis/figures/list.h"
#include "analysis/outcome.h"
#include "analysis/plot/draw.h"
#include "core/config/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIGURE_LINE(name, shows, needs, shape) {#name, shows, shape, needs, figure_##name},
static const figure figures[] = {FIGURES(FIGURE_LINE)};
enum { FIGURE_COUNT = sizeof figures / sizeof *figures };

const figure *figures_at(size_t i) {
  return i < FIGURE_COUNT ? &figures[i] : NULL;
}

/* Returns true if has_line() holds for one of the metrics. */
static bool has_metric(const results *r, const metric *metrics, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (has_line(r, &(curve){.m = metrics[i]})) return true;
  return false;
}

static bool has_training(const results *r) {
  static const metric any[] = {METRIC_LOG_IW_VARIANCE, METRIC_LOG_IW_VARIANCE_GEPO,
                               METRIC_GRAD_NORM, METRIC_REWARD_MEAN};
  return has_metric(r, any, 4);
}

static bool has_window(const summary *s) {
  const metric any[] = {METRIC_STALENESS, s->kl};
  return has_metric(s->from, any, 2);
}

static bool has_evaluation(const results *r) {
  static const metric score = METRIC_COUNT;
  return has_metric(r, &score, 1);
}

static bool has_divergence(const summary *s) {
  static const cell_metric any[] = {CELL_KL, CELL_ESTIMATION_ERROR, CELL_LOG_IW_VARIANCE_PQ,
                                    CELL_LOG_IW_VARIANCE_GEPO};
  for (size_t c = 0; c < s->n_cells; c++)
    for (size_t i = 0; i < sizeof any / sizeof *any; i++)
      if (isfinite(s->cells[c].metric[any[i]].value)) return true;
  return false;
}

static bool has_clock(const summary *s) {
  for (size_t g = 0; g < s->from->n_groups; g++) {
    group_clock c;
    summary_group_clock(s, g, &c);
    if (isfinite(c.samples_per_s)) return true;
  }
  return false;
}

static bool has_staleness(const results *r) {
  for (size_t i = 0; i < r->n_runs; i++)
    for (size_t k = 0; k < r->runs[i].n_staleness; k++)
      if (r->runs[i].staleness[k] > 0) return true;
  return false;
}

/* Returns true if all updates with a known staleness have the same staleness, so that nothing can
 * be plotted against it. */
static bool has_one_age(const results *r) {
  double first = NAN;
  for (size_t i = 0; i < r->n_runs; i++)
    for (size_t k = 0; k < r->runs[i].n_steps; k++) {
      const double age = staleness_of(&r->runs[i].steps[k]);
      if (!isfinite(age)) continue;
      if (isfinite(first) && age != first) return false;
      first = age;
    }
  return isfinite(first);
}

/* Returns -1 if memory runs out; the figure itself then reports that error. */
static int is_swept(const results *r, x_kind kind) {
  x_grid grid;
  if (grid_init(&grid, r, kind, NULL) != GL_OK) return -1;
  int several = grid.n_x > 1;
  grid_fini(&grid);
  return several;
}

/* Returns true if two groups differ in the learning rate. */
static bool has_rates(const results *r) {
  const size_t rate = results_axis(r, STABILITY_RATE);
  for (size_t g = 1; g < r->n_groups && rate < r->axes.n; g++)
    if (r->groups[g].value[rate].number > 0 && r->groups[0].value[rate].number > 0 &&
        r->groups[g].value[rate].number != r->groups[0].value[rate].number)
      return true;
  return false;
}

/* With fewer runs per algorithm and setting, the fraction that collapses cannot be estimated. */
enum { FEWEST_RUNS = 3 };

static const char *lacks_fates(const results *r) {
  if (!has_evaluation(r)) return "there is no evaluation";
  if (r->lower_is_better) return "collapse is defined for scores that are better when higher";
  for (size_t i = 0; i < r->n_groups * r->n_algorithms; i++)
    if (r->cells[i].n >= FEWEST_RUNS) return NULL;
  return "no algorithm has three runs at one setting";
}

static void count_fates(const results *r, size_t *collapsed, size_t *survived) {
  const outcome_rule rule = outcome_rule_default();
  *collapsed = *survived = 0;
  for (size_t i = 0; i < r->n_runs; i++) {
    const run_outcome o = outcome_of_run(&r->runs[i], &rule);
    if (r->runs[i].status == RUN_FAILED) continue;
    *collapsed += (size_t)(run_outcome_is_collapse(&o) != 0);
    *survived += (size_t)(o.kind == OUTCOME_SURVIVED);
  }
}

static const char *lacks_collapses(const results *r, unsigned needs) {
  size_t collapsed, survived;
  if ((needs & (NEEDS_COLLAPSES | NEEDS_A_COLLAPSE)) == 0) return NULL;
  count_fates(r, &collapsed, &survived);
  if (collapsed == 0) return "no run collapsed";
  return (needs & NEEDS_COLLAPSES) && survived == 0 ? "no run survived beside those that collapsed"
                                                    : NULL;
}

static bool has_other_settings(const results *r) {
  const size_t rate = results_axis(r, STABILITY_RATE);
  for (size_t g = 1; g < r->n_groups; g++)
    for (size_t a = 0; a < r->axes.n; a++) {
      const char *one = r->groups[0].value[a].text, *other = r->groups[g].value[a].text;
      if (a != rate && one != other && (!one || !other || strcmp(one, other) != 0)) return true;
    }
  return false;
}

static const char *figure_lacks(const void *data, unsigned needs) {
  const summary *s = ((const figure_data *)data)->s;
  const results *r = s->from;
  if ((needs & NEEDS_DELAYS) && !is_swept(r, X_DELAY))
    return "no delay is swept over several numbers";
  if ((needs & NEEDS_LOSSES) && !is_swept(r, X_LOSS)) return "no packet loss is swept";
  if ((needs & NEEDS_WINDOWS) && r->n_groups > 1 && !is_swept(r, X_WINDOW))
    return "there are several settings, and cluster.window is not swept";
  if ((needs & NEEDS_SAMPLERS) && !is_swept(r, X_SAMPLERS))
    return "the number of samplers is not swept";
  if ((needs & NEEDS_SETTINGS) && !sweeps_something(r))
    return "nothing but algorithm and seed varies";
  if ((needs & NEEDS_OUTCOMES) && lacks_fates(r)) return lacks_fates(r);
  if ((needs & NEEDS_RATES) && !has_rates(r))
    return "optimizer.lr is not swept over several numbers";
  if ((needs & NEEDS_OTHER_SETTINGS) && !has_other_settings(r))
    return "there is one setting besides optimizer.lr; gepolab analyze --table outcomes tells "
           "its rates";
  if (lacks_collapses(r, needs) != NULL) return lacks_collapses(r, needs);
  if ((needs & NEEDS_EVALUATION) && !has_evaluation(r)) return "there is no evaluation";
  if ((needs & NEEDS_TRAINING) && !has_training(r))
    return "there are no importance weights, gradient norms or rewards at several updates";
  if ((needs & NEEDS_DIVERGENCE) && !has_divergence(s))
    return "there is no KL, importance weight or estimation error";
  if ((needs & NEEDS_AGES) && has_one_age(r)) return "all batches have one staleness";
  if ((needs & NEEDS_WINDOW) && !has_window(s))
    return "there is neither staleness nor KL at several updates";
  if ((needs & NEEDS_STALENESS) && !has_staleness(r)) return "there is no staleness histogram";
  if ((needs & NEEDS_CLOCK) && !has_clock(s)) return "there is no clock";
  return NULL;
}

/* The fields of an algorithm except its name, as "base=…;clip=…;"; NULL without memory. */
static char *fields_of(const cfg_node *algorithm) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  for (size_t i = 0; to != NULL && i < cfg_size(algorithm); i++) {
    char *value = cfg_canonical(cfg_at(algorithm, i));
    if (strcmp(cfg_key_at(algorithm, i), "name") != 0)
      fprintf(to, "%s=%s;", cfg_key_at(algorithm, i), value ? value : "");
    free(value);
  }
  if (to != NULL) fclose(to);
  return text;
}

/* The published algorithm that the run's algorithm varies (`base` in its recipe), and its other
 * fields. name is NULL if there is no base or memory runs out. */
static look_variant variant_of(const results *r, const results_run *run, arena *a) {
  look_variant v = {NULL, NULL, NULL};
  cfg_doc *doc = NULL;
  if (run->recipe == NULL || /* a run of another program */
      cfg_load_text(&doc, run->recipe, strlen(run->recipe), "recipe", NULL) != GL_OK)
    return v;
  const cfg_node *algorithm = cfg_find(cfg_root(doc), "algorithm"),
                 *base = algorithm ? cfg_find(algorithm, "base") : NULL;
  if (base != NULL && cfg_kind_of(base) == CFG_SCALAR) {
    char *fields = fields_of(algorithm);
    v.base = arena_text(a, cfg_text(base));
    v.fields = arena_text(a, fields);
    free(fields);
    if (v.base != NULL && v.fields != NULL) v.name = r->algorithms[run->algorithm];
  }
  cfg_free(doc);
  return v;
}

/* Lists the algorithms that are variants, by the first run of each. Writes to
 * variants[n_algorithms] and returns their number. */
static size_t list_variants(const results *r, look_variant *variants, arena *a) {
  size_t n = 0;
  for (size_t k = 0; k < r->n_algorithms && variants != NULL; k++)
    for (size_t i = 0; i < r->n_runs; i++) {
      if (r->runs[i].algorithm != k) continue;
      const look_variant v = variant_of(r, &r->runs[i], a);
      if (v.name != NULL) variants[n++] = v;
      break;
    }
  return n;
}

gl_status figures_draw(const results *r, const staleness_histogram *measured,
                       const figure_request *q, gl_error *err) {
  static const figure_table drawn = {figures, FIGURE_COUNT, figure_lacks,
                                     "there is no data for any figure", NULL};
  summary s;
  gl_status status =
      figures_check_highlight(q, (const char *const *)r->algorithms, r->n_algorithms, err);
  if (status == GL_OK) status = summary_init(&s, r, err);
  if (status != GL_OK) return status;
  arena a = {0};
  look_variant *variants = ARENA_ARRAY(&a, look_variant, r->n_algorithms);
  figure_request own = *q;
  own.variants = variants;
  own.n_variants = list_variants(r, variants, &a);
  status = arena_check(&a, "the looks of algorithms", err);
  if (status == GL_OK) status = figures_draw_table(&drawn, &(figure_data){&s, measured}, &own, err);
  arena_fini(&a);
  summary_fini(&s);
  return status;
}
