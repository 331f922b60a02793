/* Sections of results: `scores`, `sets`, `relations` and `clock`. */
#include "analysis/analyze.h"
#include "analysis/sets.h"
#include "experiments/report/study_internal.h"

#include <math.h>
#include <stdlib.h>

static void write_score_row(html *h, const report_study *t, const cell_summary *c) {
  char rate[64];
  html_row_begin(h);
  html_row_head(h, t->r->algorithms[c->cell->algorithm]);
  if (c->lr_low < c->lr_high)
    snprintf(rate, sizeof rate, "%.3g–%.3g", c->lr_low, c->lr_high);
  else
    snprintf(rate, sizeof rate, isnan(c->lr_low) ? "–" : "%.3g", c->lr_low);
  html_markup(h, "<td class=\"n\">"), html_text(h, rate), html_markup(h, "</td>");
  html_markup(h, "<td class=\"n\">");
  html_textf(h, "%zu", c->done + c->diverged);
  if (c->collapsed > 0) html_textf(h, " (%zu collapsed)", c->collapsed);
  if (c->not_finite > 0) html_textf(h, " (%zu not finite)", c->not_finite);
  if (c->failed > 0) html_textf(h, " (%zu failed)", c->failed);
  html_markup(h, "</td>");
  html_cell_interval(h, c->best.value, c->best.low, c->best.high, 0);
  html_cell_interval(h, c->last.value, c->last.low, c->last.high, verdict_reaches(&t->v, c));
  html_cell_interval(h, c->best_to_last.value, c->best_to_last.low, c->best_to_last.high, 0);
  html_row_end(h);
}

static void write_missing_row(html *h, const report_study *t, size_t algorithm) {
  html_row_begin(h);
  html_row_head(h, t->r->algorithms[algorithm]);
  html_markup(h, "<td class=\"missing\" colspan=\"5\">no run of this cell</td>");
  html_row_end(h);
}

static const cell_summary *cell_at(const summary *s, size_t group, size_t algorithm) {
  for (size_t i = 0; i < s->n_cells; ++i)
    if (s->cells[i].cell->group == group && s->cells[i].cell->algorithm == algorithm)
      return &s->cells[i];
  return NULL;
}

/* Writes the heading row of a setting; its algorithms follow. */
static void write_setting_head(html *h, const report_study *t, size_t group) {
  html_markup(h, "</tbody>\n<tbody>\n<tr><th scope=\"rowgroup\" colspan=\"6\" class=\"group\">");
  html_text(h, study_setting(t, group));
  html_markup(h, "</th></tr>\n");
}

gl_status section_scores(html *h, const report_study *t, gl_error *err) {
  static const char *const heads[] = {"algorithm", "#learning rate", "#runs",
                                      "#best",     "#last",          "#best − last"};
  (void)err;
  html_markup(
      h, "<p>Bold: the highest last score of a setting, and those that are not distinguishable "
         "from it seed by seed, as the summary says.</p>\n");
  html_table_begin(h, "Evaluation scores by setting and algorithm", heads, 6);
  for (size_t g = 0; g < t->r->n_groups; ++g) {
    write_setting_head(h, t, g);
    for (size_t a = 0; a < t->r->n_algorithms; ++a) {
      const cell_summary *c = cell_at(&t->s, g, a);
      if (c != NULL)
        write_score_row(h, t, c);
      else
        write_missing_row(h, t, a);
    }
  }
  html_table_end(h);
  return GL_OK;
}

/* Section `sets`: best and last score for each evaluation set. */

int has_sets(const report_study *t) {
  return t->r != NULL && t->r->n_runs > 0 && t->r->runs[0].n_set_evals > 0;
}

static gl_status write_set_row(html *h, const report_study *t, const results_cell *cell, size_t set,
                               const char *name, gl_error *err) {
  interval ends[3];
  size_t runs;
  const gl_status status = analyze_set_cell(ends, &runs, t->r, cell, set, err);
  if (status != GL_OK) return status;
  html_row_begin(h);
  html_row_head(h, t->r->algorithms[cell->algorithm]);
  html_cell(h, name);
  html_cell_count(h, runs);
  for (size_t k = 0; k < 3; ++k) html_cell_interval(h, ends[k].value, ends[k].low, ends[k].high, 0);
  html_row_end(h);
  return GL_OK;
}

static gl_status write_set_scores(html *h, const report_study *t, size_t group,
                                  const char *const *names, size_t n, gl_error *err) {
  gl_status status = GL_OK;
  write_setting_head(h, t, group);
  for (size_t set = 0; set < n; ++set)
    for (size_t a = 0; a < t->r->n_algorithms && status == GL_OK; ++a) {
      const results_cell *cell = results_cell_at(t->r, group, a);
      if (cell->n > 0) status = write_set_row(h, t, cell, set, names[set], err);
    }
  return status;
}

gl_status section_sets(html *h, const report_study *t, gl_error *err) {
  static const char *const heads[] = {"algorithm", "set",   "#runs",
                                      "#best",     "#last", "#best − last"};
  const char **names = NULL;
  size_t n = 0;
  gl_status status = sets_names(&names, &n, t->r, err);
  html_markup(h, "<p>The first set's score is the run's. A best is the largest of a set's own "
                 "scores.</p>\n");
  html_table_begin(h, "Evaluation scores by set", heads, 6);
  for (size_t g = 0; g < t->r->n_groups && status == GL_OK; ++g)
    status = write_set_scores(h, t, g, names, n, err);
  html_table_end(h);
  free(names);
  return status;
}

/* Section `relations`: rank correlations of delay, divergence and variance of the importance
 * weights. */

int has_relations(const report_study *t) {
  if (!has_runs(t)) return 0;
  for (size_t i = 0; i < RELATION_COUNT; ++i)
    if (t->s.relations[i].spearman.why == NULL) return 1;
  return 0;
}

static const table_column correlation_column = {.type = TABLE_INTERVAL, .format = TABLE_SCORE};

static void add_correlation(table *to, const correlation *c, interval v) {
  if (c->why == NULL) {
    table_interval(to, v.value, v.low, v.high);
    return;
  }
  table_missing(to);
  table_shown(to, "– (%s)", c->why);
}

static void write_within(html *h, const report_study *t) {
  static const table_column columns[] = {TABLE_HEAD("algorithm"),
                                         {.type = TABLE_WHOLE, .head = "runs"}};
  table *to = table_new(columns, 2);
  table_title(to, "Within one algorithm, over its runs");
  for (size_t i = 0; i < RELATION_COUNT; ++i)
    table_add_column(to, correlation_column, "%s, %s", t->s.within[i].x, t->s.within[i].y);
  for (size_t a = 0; a < t->r->n_algorithms; ++a) {
    const relation *of = t->s.within + a * RELATION_COUNT;
    table_row(to);
    table_text(to, t->r->algorithms[a]);
    table_count(to, of[1].spearman.n);
    for (size_t i = 0; i < RELATION_COUNT; ++i)
      add_correlation(to, &of[i].spearman, of[i].spearman.bootstrap);
  }
  html_table(h, to);
}

gl_status section_relations(html *h, const report_study *t, gl_error *err) {
  static const table_column columns[] = {TABLE_HEAD("quantities"),
                                         {.type = TABLE_WHOLE, .head = "cells"}};
  (void)err;
  table *to = table_new(columns, 2);
  table_title(to, "Spearman's rank correlation over all cells");
  table_add_column(to, correlation_column, "rho [Bonett–Wright]");
  table_add_column(to, correlation_column, "rho [bootstrap]");
  for (size_t i = 0; i < RELATION_COUNT; ++i) {
    const relation *of = &t->s.relations[i];
    table_row(to);
    table_textf(to, "%s, %s", of->x, of->y);
    table_count(to, of->spearman.n);
    add_correlation(to, &of->spearman, of->spearman.fisher);
    add_correlation(to, &of->spearman, of->spearman.bootstrap);
  }
  html_table(h, to);
  if (t->r->n_algorithms > 1) write_within(h, t);
  return GL_OK;
}

/* Section `clock`: the schedule in each setting. */

/* Means over the runs of a setting that have a clock. */
typedef struct clock_means {
  double sum[8];
  size_t n;
} clock_means;

static void add_clock_means(clock_means *m, const clock_record *c) {
  const double value[] = {c->staleness_mean,
                          c->staleness_p50,
                          c->staleness_p95,
                          c->staleness_max,
                          c->samples_per_s,
                          100 * c->learner_utilisation,
                          100 * c->sampler_utilisation,
                          c->simulated_s};
  if (isnan(c->simulated_s)) return;
  for (size_t i = 0; i < sizeof value / sizeof *value; ++i) m->sum[i] += value[i];
  ++m->n;
}

gl_status section_clock(html *h, const report_study *t, gl_error *err) {
#define MEAN(HEAD)                                                                                 \
  { .type = TABLE_REAL, .head = HEAD }
  static const table_column columns[] = {
      TABLE_HEAD("setting"), MEAN("mean staleness"), MEAN("median"),
      MEAN("95 %"),          MEAN("largest"),        MEAN("samples/s"),
      MEAN("learner %"),     MEAN("samplers %"),     MEAN("simulated s")};
#undef MEAN
  (void)err;
  html_markup(h, "<p>Staleness counts updates between the drawing of a batch and its training; "
                 "utilisation is the fraction of simulated time at work. Means over the runs of a "
                 "setting.</p>\n");
  table *to = table_new(columns, sizeof columns / sizeof *columns);
  table_title(to, "The simulated clock");
  for (size_t g = 0; g < t->r->n_groups; ++g) {
    clock_means m = {.n = 0};
    for (size_t i = 0; i < t->r->n_runs; ++i)
      if (t->r->runs[i].group == g && t->r->runs[i].status != RUN_FAILED)
        add_clock_means(&m, &t->r->runs[i].clock);
    table_row(to);
    table_text(to, study_setting(t, g));
    for (size_t i = 0; i < 8; ++i) table_real(to, m.n > 0 ? m.sum[i] / (double)m.n : NAN);
  }
  html_table(h, to);
  return GL_OK;
}
