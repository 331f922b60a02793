/* Measurements of gradients at a run's checkpoints: the figure `gradients`, and records beside
 * those of the exact laboratory. */
#include "experiments/llm/bias_results.h"

#include "analysis/plot/draw.h"
#include "analysis/plot/page.h"
#include "core/store/store.h"
#include "experiments/base/provenance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the figure: a row of panels for each number, a column for each checkpoint --- */

static const struct {
  gradient_number of;
  const char *axis;
  int logarithmic;
} rows[] = {{GRADIENT_COSINE, "cosine of E[g] and ∇J", 0},
            {GRADIENT_VARIANCE, "variance tr Cov", 1},
            {GRADIENT_SCALED_MSE, "scaled MSE", 0}};
enum { ROWS = sizeof rows / sizeof *rows };

static const llm_bias_result *result_of(const llm_bias_table *t, size_t u, size_t k, size_t a) {
  return &t->results[(u * t->n_staleness + k) * t->n_algorithms + a];
}

/* The ages in ascending order, as they are drawn. */
static void sort_ages(const llm_bias_table *t, size_t *order) {
  for (size_t k = 0; k < t->n_staleness; ++k) {
    size_t at = k;
    for (; at > 0 && t->staleness[order[at - 1]] > t->staleness[k]; --at) order[at] = order[at - 1];
    order[at] = k;
  }
}

static void write_line(figure_page *p, size_t panel, const llm_bias_table *t, const size_t *order,
                       gradient_number of, size_t u, size_t a) {
  for (size_t i = 0; i < t->n_staleness; ++i) {
    const llm_bias_result *r = result_of(t, u, order[i], a);
    const double x = (double)t->staleness[order[i]];
    if (!r->applicable || isnan(r->number[of].value)) continue;
    const gradient_estimate *e = &r->number[of];
    page_point(p, panel, t->algorithms[a].name, x, e->value, e->low, e->high);
  }
  page_block_end(p);
}

/* What one checkpoint cannot show is said of the algorithms that none can. */
static gl_status leave_out(figure_page *p, const llm_bias_table *t, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t a = 0; a < t->n_algorithms && status == GL_OK; ++a) {
    const llm_bias_result *r = result_of(t, 0, 0, a);
    if (!r->applicable) status = page_leave_out(p, err, "%s (%s)", t->algorithms[a].name, r->why);
  }
  return status;
}

static gl_status name_lines(figure_page *p, const llm_bias_table *t, gl_error *err) {
  const char **names = calloc(t->n_algorithms + 1, sizeof *names);
  if (names == NULL) return gl_fail_memory(err, "the names of a figure");
  for (size_t a = 0; a < t->n_algorithms; ++a) names[a] = t->algorithms[a].name;
  gl_status status = page_set_lines(p, names, t->n_algorithms, err);
  free(names);
  return status;
}

static gl_status write_figure(const void *data, figure_page *p, gl_error *err) {
  const llm_bias_table *t = data;
  size_t *order = calloc(t->n_staleness, sizeof *order), *picked = calloc(t->n_at, sizeof *picked);
  if (order == NULL || picked == NULL) {
    free(order);
    free(picked);
    return gl_fail_memory(err, "the places of a figure");
  }
  const size_t columns = page_pick(t->n_at, page_columns(p, t->n_at), picked);
  sort_ages(t, order);
  gl_status status = page_open(p, ROWS * columns, "panel\talgorithm\tx\ty\tlow\thigh", err);
  p->wide = p->share = columns;
  for (size_t panel = 0; panel < ROWS * columns && status == GL_OK; ++panel) {
    const size_t row = panel / columns, u = picked[panel % columns];
    figure_panel *to = &p->panels[panel];
    if (row == 0)
      snprintf(to->title, sizeof to->title, "after %llu updates", (unsigned long long)t->at[u]);
    snprintf(to->axis, sizeof to->axis, "%s", rows[row].axis);
    to->logarithmic = rows[row].logarithmic;
    for (size_t a = 0; a < t->n_algorithms; ++a) write_line(p, panel, t, order, rows[row].of, u, a);
  }
  p->all_marks = 1;
  snprintf(p->x_axis, sizeof p->x_axis, "staleness [updates]");
  if (status == GL_OK) status = name_lines(p, t, err);
  if (status == GL_OK) status = leave_out(p, t, err);
  for (size_t u = 0, k = 0; u < t->n_at && status == GL_OK; ++u)
    if (k < columns && picked[k] == u)
      ++k;
    else
      status = page_leave_out(p, err, "%llu updates", (unsigned long long)t->at[u]);
  free(order);
  free(picked);
  return status;
}

static const char *lacks(const void *data, unsigned needs) {
  (void)needs;
  return ((const llm_bias_table *)data)->n_staleness < 2 ? "it needs two values of --staleness"
                                                         : NULL;
}

gl_status llm_bias_draw(const llm_bias_table *t, const figure_request *q, gl_error *err) {
  static const figure figures[] = {
      {"gradients", "cosine, variance and scaled MSE against staleness, a column per checkpoint",
       "curves", 0, write_figure}};
  static const figure_table table = {
      figures, 1, lacks, "there are no data for the figure: it needs two values of --staleness"};
  figure_request named = *q;
  named.prefix = t->name;
  return figures_draw_table(&table, t, &named, err);
}

/* --- records of a study --- */

/* Exact divergences of a real policy are not known; what does not apply is NaN. */
static bias_record record_of(const llm_bias_table *t, const llm_bias_result *r, size_t algorithm,
                             uint64_t staleness, size_t group_size, double drawn) {
  bias_record to = {.algorithm = t->algorithms[algorithm].name,
                    .method = r->applicable ? "monte_carlo" : "not_applicable",
                    .group_size = (double)group_size,
                    .kl_exact = NAN,
                    .kl_exact_qp = NAN,
                    .staleness = (double)staleness,
                    .groups = r->applicable ? drawn : 0,
                    .iw_mean = r->applicable ? r->iw_mean : NAN,
                    .iw_variance = r->applicable ? r->iw_variance : NAN,
                    .aw_variance = r->applicable ? r->aw_variance : NAN,
                    .ess = r->applicable ? r->ess : NAN};
  double *const number[] = {&to.bias, &to.cosine,     &to.scaled_bias, &to.variance,
                            &to.mse,  &to.scaled_mse, &to.snr};
  static const gradient_number of[] = {GRADIENT_BIAS,     GRADIENT_COSINE, GRADIENT_SCALED_BIAS,
                                       GRADIENT_VARIANCE, GRADIENT_MSE,    GRADIENT_SCALED_MSE,
                                       GRADIENT_SNR};
  for (size_t i = 0; i < sizeof of / sizeof *of; ++i)
    *number[i] = r->applicable ? r->number[of[i]].value : NAN;
  return to;
}

/* Those of checkpoint u. */
static gl_status put_checkpoint(store *s, const llm_bias_table *t, size_t u, bias_record *records,
                                size_t group_size, double drawn, const bias_making *making,
                                gl_error *err) {
  const size_t each = t->n_staleness * t->n_algorithms, size = strlen(t->name) + 48;
  char *study = malloc(size);
  if (study == NULL) return gl_fail_memory(err, "the name of a study");
  snprintf(study, size, "%s after %llu updates", t->name, (unsigned long long)t->at[u]);
  for (size_t i = 0; i < each; ++i)
    records[i] = record_of(t, &t->results[u * each + i], i % t->n_algorithms,
                           t->staleness[i / t->n_algorithms], group_size, drawn);
  gl_status status = store_put_bias(s, study, records, each, making, err);
  free(study);
  return status;
}

gl_status llm_bias_store(const llm_bias_table *t, const char *path, size_t group_size, double drawn,
                         double wall_s, gl_error *err) {
  bias_record *records = calloc(t->n_staleness * t->n_algorithms, sizeof *records);
  provenance how;
  char finished[PROVENANCE_DATE_SIZE];
  store *s = NULL;
  if (records == NULL) return gl_fail_memory(err, "the records of a study");
  gl_status status = provenance_init(&how, err);
  const bias_making making = {&how.record, provenance_now(finished), wall_s / (double)t->n_at};
  if (status == GL_OK) status = store_open(&s, path, STORE_WRITE, err);
  for (size_t u = 0; u < t->n_at && status == GL_OK; ++u)
    status = put_checkpoint(s, t, u, records, group_size, drawn, &making, err);
  store_close(s);
  provenance_fini(&how);
  free(records);
  return status;
}
