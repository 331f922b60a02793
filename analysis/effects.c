/* Least-squares fits with two-level factors. */
#include "analysis/effects.h"

#include "core/base/display_text.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_linalg.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* With fewer residual degrees of freedom, interactions are not in the model. */
enum { FEWEST_RESIDUAL = 4 };

static const char *effect_response_name(effect_response r) {
  static const char *const names[RESPONSE_COUNT] = {
      [RESPONSE_GAP] = "gap", [RESPONSE_LAST] = "last", [RESPONSE_LIFETIME] = "lifetime"};
  return names[r];
}

/* --- factors --- */

static const char *level_text(const results *r, size_t group, size_t which) {
  const char *text = r->groups[group].value[which].text;
  return text != NULL ? text : "";
}

/* Finds the two values of an axis, the lower number first, otherwise in the order of the grid.
 * Returns their number: 1 (possible if whole sections are swept), 2, or 3 for more than two. */
static size_t axis_levels(const results *r, size_t which, size_t group[2]) {
  size_t n = 0;
  for (size_t g = 0; g < r->n_groups; g++) {
    size_t i = 0;
    while (i < n && strcmp(level_text(r, group[i], which), level_text(r, g, which)) != 0) i++;
    if (i < n) continue;
    if (n == 2) return 3;
    group[n++] = g;
  }
  if (n == 2 && r->groups[group[0]].value[which].number > r->groups[group[1]].value[which].number) {
    const size_t first = group[0];
    group[0] = group[1];
    group[1] = first;
  }
  return n;
}

/* "a, b", allocated in m; NULL if m has failed. */
static const char *comma_joined(arena *m, const char *a, const char *b) {
  char *both = a != NULL ? ARENA_ARRAY(m, char, strlen(a) + strlen(b) + 3) : NULL;
  if (both != NULL) sprintf(both, "%s, %s", a, b);
  return both;
}

/* Returns 1 if two fields always change together, -1 if the low value of one goes with the high
 * value of the other, else 0. */
static int same_factor(const effect_factor *f, const int *level, size_t n) {
  int same = 1, opposite = 1;
  for (size_t g = 0; g < n; g++) {
    same &= f->level[g] == level[g];
    opposite &= f->level[g] == -level[g];
  }
  return same ? 1 : opposite ? -1 : 0;
}

/* Makes the axis a factor, or part of an existing factor with which it always changes. */
static void add_factor_axis(effect_table *t, size_t which, const size_t group[2]) {
  const results *r = t->study;
  arena *m = &t->memory;
  const char *label = r->axes.axis[which].label;
  const char *low = results_value_text(r->groups[group[0]].value[which]);
  const char *high = results_value_text(r->groups[group[1]].value[which]);
  int *level = ARENA_ARRAY(m, int, r->n_groups);
  for (size_t g = 0; level != NULL && g < r->n_groups; g++)
    level[g] = strcmp(level_text(r, g, which), level_text(r, group[1], which)) == 0 ? 1 : -1;
  for (size_t i = 0; level != NULL && i < t->n_factors; i++) {
    effect_factor *f = &t->factor[i];
    const int same = same_factor(f, level, r->n_groups);
    if (same == 0) continue;
    f->name = comma_joined(m, f->name, label);
    f->low = comma_joined(m, f->low, same > 0 ? low : high);
    f->high = comma_joined(m, f->high, same > 0 ? high : low);
    return;
  }
  t->factor[t->n_factors++] =
      (effect_factor){arena_text(m, label), arena_text(m, low), arena_text(m, high), level};
}

static gl_status find_factors(effect_table *t, gl_error *err) {
  const results *r = t->study;
  t->factor = ARENA_ARRAY(&t->memory, effect_factor, r->axes.n);
  for (size_t i = 0; i < r->axes.n && !t->memory.failed; i++) {
    size_t group[2];
    const size_t n = axis_levels(r, i, group);
    if (n == 1) continue;
    if (n != 2)
      return gl_fail(err, GL_EINPUT,
                     "%s: %s has more than two values; effects are those of fields at two levels "
                     "(sweep.factorial)",
                     r->study, r->axes.axis[i].label);
    add_factor_axis(t, i, group);
  }
  gl_status status = arena_check(&t->memory, "the factors", err);
  if (status == GL_OK && t->n_factors < 2)
    return gl_fail(err, GL_EINPUT,
                   "%s varies %zu factor%s; effects need two or more (sweep.factorial)", r->study,
                   t->n_factors, plural_ending(t->n_factors));
  return status;
}

/* --- least squares --- */

gl_status least_squares(const regression *of, size_t *rank, gl_error *err) {
  const size_t n = of->n, k = of->k;
  const double *x = of->x, *y = of->y;
  double *b = of->b, *variance = of->variance;
  gsl_matrix *q = gsl_matrix_calloc(n, k), *v = gsl_matrix_calloc(k, k);
  gsl_vector *s = gsl_vector_calloc(k), *work = gsl_vector_calloc(k);
  *rank = 0;
  gl_status status =
      q != NULL && v != NULL && s != NULL && work != NULL ? GL_OK : gl_fail_memory(err, "a fit");
  if (status == GL_OK) {
    memcpy(q->data, x, n * k * sizeof *x);
    gsl_linalg_SV_decomp(q, v, s, work);
    for (size_t i = 0; i < k; i++) *rank += gsl_vector_get(s, i) > 1e-10 * gsl_vector_get(s, 0);
  }
  if (status == GL_OK && *rank == k) {
    double residual = 0;
    for (size_t i = 0; i < k; i++) b[i] = variance[i] = 0;
    for (size_t m = 0; m < k; m++) {
      double z = 0;
      for (size_t i = 0; i < n; i++) z += gsl_matrix_get(q, i, m) * y[i];
      z /= gsl_vector_get(s, m);
      for (size_t i = 0; i < k; i++) {
        const double w = gsl_matrix_get(v, i, m);
        b[i] += w * z;
        variance[i] += (w / gsl_vector_get(s, m)) * (w / gsl_vector_get(s, m));
      }
    }
    for (size_t i = 0; i < n; i++) {
      double fit = 0;
      for (size_t m = 0; m < k; m++) fit += x[i * k + m] * b[m];
      residual += (y[i] - fit) * (y[i] - fit);
    }
    for (size_t i = 0; i < k; i++) variance[i] *= residual / (double)(n - k);
  }
  gsl_matrix_free(q), gsl_matrix_free(v), gsl_vector_free(s), gsl_vector_free(work);
  return status;
}

/* --- the model --- */

/* One observation of a fit: the responses of a run, with its group and seed. */
typedef struct sample {
  double y[RESPONSE_COUNT];
  size_t group;
  uint64_t seed;
} sample;

typedef struct model {
  sample *sample; /* [n] */
  size_t n;
  uint64_t *seed; /* [n_seeds] distinct seeds */
  size_t n_seeds;
  double *x, *y, *b, *variance; /* [n][columns], [n], [columns], [columns] */
  arena memory;
} model;

static gl_status model_init(model *m, const effect_table *t, gl_error *err) {
  const size_t n = t->study->n_runs;
  const size_t k = n + t->n_factors * (t->n_factors + 1) / 2 + 1; /* maximum of columns */
  *m = (model){0};
  m->sample = ARENA_ARRAY(&m->memory, sample, n);
  m->seed = ARENA_ARRAY(&m->memory, uint64_t, n);
  m->x = ARENA_GRID(&m->memory, double, n, k);
  m->y = ARENA_ARRAY(&m->memory, double, n);
  m->b = ARENA_ARRAY(&m->memory, double, k);
  m->variance = ARENA_ARRAY(&m->memory, double, k);
  return arena_check(&m->memory, "a fit", err);
}

static void run_responses(const results_run *run, const outcome_rule *rule,
                          double y[RESPONSE_COUNT]) {
  const run_outcome o = outcome_of_run(run, rule);
  y[RESPONSE_GAP] = o.best - o.last;
  y[RESPONSE_LAST] = o.last;
  y[RESPONSE_LIFETIME] = (double)(run_outcome_is_collapse(&o) ? o.onset : o.end);
}

static const results_run *run_like(const results *r, const results_run *run, size_t algorithm) {
  for (size_t i = 0; i < r->n_runs; i++)
    if (r->runs[i].algorithm == algorithm && r->runs[i].group == run->group &&
        r->runs[i].seed == run->seed)
      return &r->runs[i];
  return NULL;
}

static bool is_usable(const results_run *run) {
  return run != NULL && run->status != RUN_FAILED && run->n_evals > 0;
}

/* Collects the responses of the fit's algorithm, minus those of the subtracted algorithm in the run
 * that is otherwise equal. */
static void fill_model(model *m, const effect_table *t, const effect_fit *fit,
                       const outcome_rule *rule) {
  const results *r = t->study;
  m->n = m->n_seeds = 0;
  for (size_t i = 0; i < r->n_runs; i++) {
    const results_run *run = &r->runs[i];
    double less[RESPONSE_COUNT] = {0};
    if (run->algorithm != fit->algorithm || !is_usable(run)) continue;
    if (fit->subtracted != SIZE_MAX) {
      const results_run *other = run_like(r, run, fit->subtracted);
      if (!is_usable(other)) continue;
      run_responses(other, rule, less);
    }
    sample *s = &m->sample[m->n++];
    run_responses(run, rule, s->y);
    for (size_t k = 0; k < RESPONSE_COUNT; k++) s->y[k] -= less[k];
    s->group = run->group;
    s->seed = run->seed;
    size_t k = 0;
    while (k < m->n_seeds && m->seed[k] != run->seed) k++;
    if (k == m->n_seeds) m->seed[m->n_seeds++] = run->seed;
  }
}

/* Fills the columns: intercept, seeds except the first as deviations from their mean, factors,
 * pairs of factors. Returns their number. */
static size_t fill_columns(model *m, const effect_table *t, int pairs) {
  const size_t k = m->n_seeds + t->n_factors + (pairs ? t->n_factors * (t->n_factors - 1) / 2 : 0);
  for (size_t i = 0; i < m->n; i++) {
    double *x = m->x + i * k;
    const sample *s = &m->sample[i];
    size_t at = 0;
    x[at++] = 1;
    for (size_t b = 1; b < m->n_seeds; b++)
      x[at++] = (double)(s->seed == m->seed[b]) - (double)(s->seed == m->seed[0]);
    for (size_t f = 0; f < t->n_factors; f++) x[at++] = t->factor[f].level[s->group];
    for (size_t f = 1; pairs && f < t->n_factors; f++)
      for (size_t g = 0; g < f; g++)
        x[at++] = t->factor[f].level[s->group] * t->factor[g].level[s->group];
  }
  return k;
}

static int by_p(const void *a, const void *b) {
  const double x = (*(const effect *const *)a)->p, y = (*(const effect *const *)b)->p;
  return (x > y) - (x < y);
}

/* Benjamini-Hochberg step-up procedure. sorted: [n] scratch. */
static void find_false_discovery_rates(effect *e, size_t n, effect **sorted) {
  double q = 1;
  for (size_t i = 0; i < n; i++) sorted[i] = &e[i];
  qsort(sorted, n, sizeof *sorted, by_p);
  for (size_t i = n; i-- > 0;) {
    q = fmin(q, sorted[i]->p * (double)n / (double)(i + 1));
    sorted[i]->q = q;
  }
}

/* Converts a coefficient to an effect (twice it) with Student's interval. Without residual degrees
 * of freedom the interval is the point. */
static interval effect_size(double b, double variance, double freedom, double *p) {
  const double error = sqrt(variance), t = gsl_cdf_tdist_Pinv(0.975, freedom);
  *p = error > 0 ? 2 * gsl_cdf_tdist_Q(fabs(b) / error, freedom) : b == 0 ? 1 : 0;
  return (interval){2 * b, 2 * (b - t * error), 2 * (b + t * error)};
}

/* Fits one response. If the runs do not identify the effects, sets to->reason and leaves
 * to->effects NULL. */
static gl_status fit_response(effect_table *t, model *m, effect_response response, effect_fit *to,
                              gl_error *err) {
  const size_t k = fill_columns(m, t, t->has_interactions);
  size_t rank = 0;
  to->runs = m->n;
  if (m->n <= k) to->reason = "fewer runs than effects";
  for (size_t i = 0; i < m->n; i++) {
    m->y[i] = m->sample[i].y[response];
    if (!isfinite(m->y[i])) to->reason = "a run has no last score";
  }
  if (to->reason != NULL) return GL_OK;
  gl_status status =
      least_squares(&(regression){m->n, k, m->x, m->y, m->b, m->variance}, &rank, err);
  if (status != GL_OK) return status;
  if (rank < k) {
    to->reason = "the runs do not distinguish the factors";
    return GL_OK;
  }
  to->residual = m->n - k;
  to->effects = ARENA_ARRAY(&t->memory, effect, t->n_effects);
  effect **sorted = ARENA_ARRAY(&m->memory, effect *, t->n_effects);
  if (to->effects == NULL || sorted == NULL) return gl_fail_memory(err, "the effects");
  double p;
  const interval twice = effect_size(m->b[0], m->variance[0], (double)to->residual, &p);
  to->mean = (interval){twice.value / 2, twice.low / 2, twice.high / 2};
  size_t n = 0;
  for (size_t f = 0; f < t->n_factors; f++) to->effects[n++] = (effect){.a = f, .b = SIZE_MAX};
  for (size_t f = 1; t->has_interactions && f < t->n_factors; f++)
    for (size_t g = 0; g < f; g++) to->effects[n++] = (effect){.a = g, .b = f};
  for (size_t i = 0; i < n; i++)
    to->effects[i].size = effect_size(m->b[m->n_seeds + i], m->variance[m->n_seeds + i],
                                      (double)to->residual, &to->effects[i].p);
  find_false_discovery_rates(to->effects, n, sorted);
  return GL_OK;
}

/* Includes interactions if the first algorithm's runs identify all pairs and leave enough degrees
 * of freedom. */
static gl_status choose_model(effect_table *t, model *m, gl_error *err) {
  size_t rank = 0;
  const size_t k = fill_columns(m, t, 1);
  if (m->n < k + FEWEST_RESIDUAL) return GL_OK;
  for (size_t i = 0; i < m->n; i++) m->y[i] = 0;
  gl_status status =
      least_squares(&(regression){m->n, k, m->x, m->y, m->b, m->variance}, &rank, err);
  t->has_interactions = rank == k;
  return status;
}

/* Fits every response for each algorithm, then for the difference of each other algorithm and the
 * first. */
static gl_status fit_all(effect_table *t, const outcome_rule *rule, gl_error *err) {
  const size_t algorithms = t->study->n_algorithms;
  model m;
  gl_status status = model_init(&m, t, err);
  t->n_fits = 2 * algorithms - 1;
  for (effect_response r = 0; r < RESPONSE_COUNT; r++)
    t->fit[r] = ARENA_ARRAY(&t->memory, effect_fit, t->n_fits);
  if (status == GL_OK) status = arena_check(&t->memory, "the effects", err);
  for (size_t i = 0; i < t->n_fits && status == GL_OK; i++) {
    const effect_fit what = {.algorithm = i < algorithms ? i : i - algorithms + 1,
                             .subtracted = i < algorithms ? SIZE_MAX : 0};
    fill_model(&m, t, &what, rule);
    if (i == 0) status = choose_model(t, &m, err);
    t->n_effects = t->n_factors + (t->has_interactions ? t->n_factors * (t->n_factors - 1) / 2 : 0);
    for (effect_response r = 0; r < RESPONSE_COUNT && status == GL_OK; r++) {
      t->fit[r][i] = what;
      status = fit_response(t, &m, r, &t->fit[r][i], err);
    }
  }
  arena_fini(&m.memory);
  return status;
}

gl_status effect_table_init(effect_table *t, const results *from, const outcome_rule *rule,
                            gl_error *err) {
  *t = (effect_table){.study = from};
  if (from->n_algorithms == 0) return gl_fail(err, GL_EINPUT, "%s has no runs", from->study);
  gl_status status = find_factors(t, err);
  return status == GL_OK ? fit_all(t, rule, err) : status;
}

void effect_table_fini(effect_table *t) {
  arena_fini(&t->memory);
  *t = (effect_table){0};
}

/* --- tables --- */

static const table_column smallest_columns[] = {
    TABLE_HEAD("algorithm"),
    TABLE_HEAD("response"),
    TABLE_HEAD("factor"),
    {.type = TABLE_INTERVAL, .head = "effect", .format = "%.3g"},
    {.type = TABLE_REAL, .head = "p", .format = "%.2g"},
    {.type = TABLE_REAL, .head = "q", .format = "%.2g"}};

static void put_fit_name(table *to, const effect_table *t, const effect_fit *f, effect_response r) {
  table_row(to);
  if (f->subtracted == SIZE_MAX)
    table_text(to, t->study->algorithms[f->algorithm]);
  else
    table_textf(to, "%s less %s", t->study->algorithms[f->algorithm],
                t->study->algorithms[f->subtracted]);
  table_text(to, effect_response_name(r));
}

/* Writes the effects of a fit with the smallest p, at most `most` (0: all). */
static gl_status put_smallest(table *to, const effect_table *t, effect_response r,
                              const effect_fit *f, size_t most, gl_error *err) {
  if (f->reason != NULL) {
    put_fit_name(to, t, f, r);
    table_textf(to, "– (%s)", f->reason);
    return GL_OK;
  }
  arena work = {0};
  effect **sorted = ARENA_ARRAY(&work, effect *, t->n_effects);
  if (sorted == NULL) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < t->n_effects; i++) sorted[i] = &f->effects[i];
  qsort(sorted, t->n_effects, sizeof *sorted, by_p);
  for (size_t i = 0; i < t->n_effects && (most == 0 || i < most); i++) {
    const effect *e = sorted[i];
    const effect_factor *a = &t->factor[e->a];
    put_fit_name(to, t, f, r);
    if (e->b == SIZE_MAX)
      table_textf(to, "%s: %s to %s", a->name, a->low, a->high);
    else
      table_textf(to, "%s × %s", a->name, t->factor[e->b].name);
    interval_cell(to, e->size);
    table_real(to, e->p);
    table_real(to, e->q);
  }
  arena_fini(&work);
  return GL_OK;
}

static const table_column fit_columns[] = {
    TABLE_KEY("algorithm", TABLE_TEXT),   TABLE_KEY("less", TABLE_TEXT),
    TABLE_KEY("response", TABLE_TEXT),    TABLE_KEY("runs", TABLE_INTEGER),
    TABLE_KEY("residual", TABLE_INTEGER), TABLE_KEY("why", TABLE_TEXT),
    TABLE_KEY("mean", TABLE_REAL),        TABLE_KEY("effects", TABLE_TABLE)};

static const table_column effect_columns[] = {
    TABLE_KEY("factor", TABLE_TEXT),    TABLE_KEY("with", TABLE_TEXT),
    TABLE_KEY("low_value", TABLE_TEXT), TABLE_KEY("high_value", TABLE_TEXT),
    TABLE_KEY("effect", TABLE_REAL),    TABLE_KEY("low", TABLE_REAL),
    TABLE_KEY("high", TABLE_REAL),      TABLE_KEY("p", TABLE_REAL),
    TABLE_KEY("q", TABLE_REAL)};

static void put_fit(table *to, const effect_table *t, effect_response r, const effect_fit *f) {
  table_row(to);
  table_text(to, t->study->algorithms[f->algorithm]);
  table_text(to, f->subtracted != SIZE_MAX ? t->study->algorithms[f->subtracted] : NULL);
  table_text(to, effect_response_name(r));
  table_count(to, f->runs);
  table_count(to, f->residual);
  table_text(to, f->reason);
  if (f->reason != NULL) return;
  table_real(to, f->mean.value);
  table *list = table_rows(to, effect_columns, sizeof effect_columns / sizeof *effect_columns);
  for (size_t i = 0; i < t->n_effects; i++) {
    const effect *e = &f->effects[i];
    const bool is_pair = e->b != SIZE_MAX;
    table_row(list);
    table_text(list, t->factor[e->a].name);
    table_text(list, is_pair ? t->factor[e->b].name : NULL);
    table_text(list, is_pair ? NULL : t->factor[e->a].low);
    table_text(list, is_pair ? NULL : t->factor[e->a].high);
    table_real(list, e->size.value);
    table_real(list, e->size.low);
    table_real(list, e->size.high);
    table_real(list, e->p);
    table_real(list, e->q);
  }
}

gl_status effect_table_report(table *to, const effect_table *t, size_t most, gl_error *err) {
  table_text(table_field(to, "study"), t->study->study);
  table *fits =
      table_rows(table_field(to, "fits"), fit_columns, sizeof fit_columns / sizeof *fit_columns);
  table *smallest = table_rows(table_field(to, NULL), smallest_columns,
                               sizeof smallest_columns / sizeof *smallest_columns);
  table_title(smallest,
              "%s: effects of %zu factors%s, from low to high [95 %%], by least squares with "
              "seeds as blocks; p of Student's t, q the false discovery rate over the effects of "
              "a response.",
              t->study->study, t->n_factors,
              t->has_interactions ? " and their pairs" : " (too few runs for pairs)");
  gl_status status = GL_OK;
  for (size_t i = 0; i < t->n_fits && status == GL_OK; i++)
    for (effect_response r = 0; r < RESPONSE_COUNT && status == GL_OK; r++) {
      put_fit(fits, t, r, &t->fit[r][i]);
      status = put_smallest(smallest, t, r, &t->fit[r][i], most, err);
    }
  return status;
}
