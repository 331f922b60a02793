/* Sections `summary` and `scores`: what was run, the outcomes, warnings for the reader, and scores.
 */
#include "analysis/analyze.h"
#include "analysis/evaluation_sets.h"
#include "analysis/outcome.h"
#include "experiments/base/memory.h"
#include "experiments/report/study_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void tile(html *h, const char *class, size_t n, const char *what) {
  html_markup(h, "<div class=\"tile");
  if (n > 0) html_markup(h, class);
  html_markup(h, "\"><dt>");
  html_text(h, what);
  html_markup(h, "</dt><dd>");
  html_textf(h, "%zu", n);
  html_markup(h, "</dd></div>\n");
}

static void write_tiles(html *h, const report_study *t) {
  html_markup(h, "<dl class=\"tiles\">\n");
  if (t->r != NULL) {
    tile(h, "", t->r->n_algorithms, t->r->n_algorithms == 1 ? "algorithm" : "algorithms");
    tile(h, "", t->r->n_groups, t->r->n_groups == 1 ? "setting" : "settings");
    tile(h, "", t->n_seeds, t->n_seeds == 1 ? "seed" : "seeds");
  }
  tile(h, " good", t->done + t->diverged, "runs ended");
  tile(h, " mind", t->diverged, "diverged");
  tile(h, " mind", t->collapsed, "collapsed");
  tile(h, " bad", t->failed, "failed");
  tile(h, " bad", t->missing, "missing");
  html_markup(h, "</dl>\n");
}

static void say_missing(html *h, const report_study *t) {
  char runs[40];
  if (t->missing == 0) return;
  html_markup(h, "<li class=\"bad\">");
  html_textf(h,
             "The grid is not finished: %s of %zu are missing, and means are taken over the seeds "
             "that are there. ",
             html_count(runs, sizeof runs, t->missing, "run", "runs"),
             t->done + t->diverged + t->failed + t->missing);
  html_markup(h, "<a href=\"#");
  html_textf(h, "%s-problems", t->id);
  html_markup(h, "\">Which ones</a></li>\n");
}

static void say_counts(html *h, const report_study *t) {
  if (t->failed > 0) {
    html_markup(h, "<li class=\"bad\">");
    html_textf(h, "%zu failed; they have no part in any mean.", t->failed);
    html_markup(h, "</li>\n");
  }
  if (t->collapsed > 0) {
    html_markup(h, "<li>");
    html_textf(
        h,
        "%zu collapsed, as gepolab analyze --table outcomes judges them; they count with what "
        "they had reached.",
        t->collapsed);
    html_markup(h, "</li>\n");
  }
  const size_t least = outcome_rule_default().in_a_row + 1,
               few = t->r != NULL ? runs_with_fewer(t->r, least) : 0;
  if (few > 0) {
    html_markup(h, "<li>");
    html_textf(h, "%zu with fewer than %zu evaluations, in which no fall can be found.", few,
               least);
    html_markup(h, "</li>\n");
  }
  if (t->not_finite > 0) {
    html_markup(h, "<li class=\"bad\">");
    html_textf(h, "%zu not finite at their end; they are in no mean of last scores and gaps.",
               t->not_finite);
    html_markup(h, "</li>\n");
  }
  if (t->superseded > 0) {
    html_markup(h, "<li>");
    html_textf(h, "%zu left out: with another choice, as of a learning rate, they were made again.",
               t->superseded);
    html_markup(h, "</li>\n");
  }
  if (t->r != NULL && t->r->n_repeats > 0) {
    html_markup(h, "<li>");
    html_textf(h, "%zu left out, for they mean the same as others of the same seed.",
               t->r->n_repeats);
    html_markup(h, "</li>\n");
  }
}

static void say_seeds(html *h, const report_study *t) {
  enum { FEW = 5 };
  if (t->n_seeds == 0 || t->n_seeds >= FEW) return;
  html_markup(h, "<li>");
  if (t->n_seeds == 1)
    html_text(h, "There is one seed: nothing says how much another would change.");
  else
    html_textf(h, "There are %zu seeds, too few for intervals.", t->n_seeds);
  html_markup(h, "</li>\n");
}

static int same_value(axis_value a, axis_value b) {
  return a.text == b.text || (a.text != NULL && b.text != NULL && strcmp(a.text, b.text) == 0);
}

/* Returns 1 if an earlier group has the same value on the axis. */
static int is_repeated(const results *r, size_t a, size_t group) {
  for (size_t g = 0; g < group; ++g)
    if (same_value(r->groups[g].value[a], r->groups[group].value[a])) return 1;
  return 0;
}

static void axis_row(html *h, const results *r, size_t a) {
  const axis *x = &r->axes.axis[a];
  size_t n = 0;
  for (size_t g = 0; g < r->n_groups; ++g) n += !is_repeated(r, a, g);
  html_row_begin(h), html_row_head(h, x->label), html_cell(h, x->path), html_cell_count(h, n);
  html_markup(h, "<td class=\"words\">");
  for (size_t g = 0, n_named = 0; g < r->n_groups; ++g) {
    const char *text = r->groups[g].value[a].text;
    if (is_repeated(r, a, g)) continue;
    html_textf(h, "%s%s", n_named++ > 0 ? ", " : "", text != NULL ? text : "not given");
  }
  if (*x->unit) html_textf(h, " %s", x->unit);
  html_markup(h, "</td>"), html_row_end(h);
}

/* Writes every axis with its values in the order of the grid. */
static void write_axes(html *h, const report_study *t) {
  static const char *const heads[] = {"swept", "field", "#values", "which"};
  char *seeds = study_seeds_text(t->seeds, t->n_seeds);
  html_table_begin(h, "What was swept", heads, 4);
  html_row_begin(h), html_row_head(h, "algorithm"), html_cell(h, "algorithm");
  html_cell_count(h, t->r->n_algorithms), html_markup(h, "<td class=\"words\">");
  for (size_t i = 0; i < t->r->n_algorithms; ++i)
    html_textf(h, "%s%s", i > 0 ? ", " : "", t->r->algorithms[i]);
  html_markup(h, "</td>"), html_row_end(h);
  for (size_t a = 0; a < t->r->axes.n; ++a) axis_row(h, t->r, a);
  html_row_begin(h), html_row_head(h, "seed"), html_cell(h, "seed");
  html_cell_count(h, t->n_seeds), html_cell(h, seeds), html_row_end(h);
  html_table_end(h);
  free(seeds);
}

/* Writes the best algorithm of each setting and those not distinguishable from it. */
static void write_highest(html *h, const report_study *t) {
  static const char *const heads[] = {"setting",    "highest last score",
                                      "#score",     "#ahead of the next",
                                      "#P(better)", "not distinguishable from it"};
  if (t->r->n_algorithms < 2) return;
  html_markup(h,
              "<p>Ahead of the next: difference of last scores, paired by seed. Not "
              "distinguishable: fewer than five pairs, or the difference's interval begins below "
              "1&#160;% of the highest score. P(better): probability that a seed of the highest is "
              "better than the same seed of the next.</p>\n");
  html_table_begin(h, "Who ends highest", heads, 6);
  for (size_t g = 0; g < t->r->n_groups; ++g) {
    const verdict *v = &t->v.of[g];
    const cell_summary *best = v->leader;
    const verdict_pair none = {.difference = {NAN, NAN, NAN}, .improvement = NAN},
                       *next = v->n_pairs > 0 ? &v->pair[0] : &none;
    size_t n_named = 0;
    if (best == NULL) continue;
    html_row_begin(h), html_row_head(h, study_setting(t, g));
    html_cell(h, t->r->algorithms[best->cell->algorithm]);
    html_cell_interval(h, best->last.value, best->last.low, best->last.high, 1);
    html_cell_interval(h, next->difference.value, next->difference.low, next->difference.high, 0);
    html_cell_number(h, next->improvement);
    html_markup(h, "<td class=\"words\">");
    for (size_t i = 0; i < v->n_pairs; ++i)
      if (!v->pair[i].is_distinguishable)
        html_textf(h, "%s%s", n_named++ > 0 ? ", " : "", t->r->algorithms[v->pair[i].algorithm]);
    if (n_named == 0) html_markup(h, "–");
    html_markup(h, "</td>"), html_row_end(h);
  }
  html_table_end(h);
}

gl_status section_summary(html *h, const report_study *t, gl_error *err) {
  (void)err;
  char *description = study_recipe_text(t, "description");
  if (description != NULL) {
    html_markup(h, "<p class=\"lead\">"), html_text(h, description), html_markup(h, "</p>\n");
    free(description);
  }
  write_tiles(h, t);
  html_markup(h, "<ul class=\"notes\">\n");
  say_missing(h, t), say_counts(h, t), say_seeds(h, t);
  html_markup(h, "<li>Scores are evaluation scores. A number with brackets is the interquartile "
                 "mean over seeds with its 95&#160;% bootstrap interval, of fewer than five "
                 "values their range.</li>\n</ul>\n");
  if (t->r == NULL) return GL_OK;
  write_axes(h, t);
  write_highest(h, t);
  return GL_OK;
}

/* --- problems --- */
/* Section `problems`: runs that diverged or failed, with their reasons, and missing runs. */

int has_problems(const report_study *t) {
  return t->diverged + t->failed + t->missing > 0;
}

static int is_like(const results_run *a, const results_run *b) {
  return a->status == b->status && a->algorithm == b->algorithm && a->group == b->group &&
         strcmp(a->reason, b->reason) == 0;
}

static void write_run_row(html *h, const report_study *t, const results_run *run,
                          const char *seeds) {
  html_row_begin(h);
  html_row_head(h, t->r->algorithms[run->algorithm]);
  html_cell(h, study_setting(t, run->group));
  html_cell(h, seeds);
  html_cell(h, run_status_name(run->status));
  html_markup(h, "<td class=\"words\">"), html_text(h, run->reason), html_markup(h, "</td>");
  html_row_end(h);
}

/* Writes the table of runs that diverged or failed. Runs of one cell with the same outcome and
 * reason share a line. */
static void write_ended(html *h, const report_study *t) {
  static const char *const heads[] = {"algorithm", "setting", "seeds", "ended", "because"};
  uint64_t *seeds = MUST_ARRAY(uint64_t, t->r->n_runs, "the seeds of a study");
  html_table_begin(h, "Runs that diverged or failed", heads, 5);
  for (size_t i = 0; i < t->r->n_runs; ++i) {
    const results_run *run = &t->r->runs[i];
    size_t n = 0, earlier = 0;
    if (run->status == RUN_DONE) continue;
    for (size_t k = 0; k < t->r->n_runs; ++k)
      if (is_like(run, &t->r->runs[k])) earlier += k < i, seeds[n++] = t->r->runs[k].seed;
    if (earlier > 0) continue;
    char *text = study_seeds_text(seeds, n);
    write_run_row(h, t, run, text);
    free(text);
  }
  html_table_end(h);
  free(seeds);
}

static void write_missing_runs(html *h, const report_study *t) {
  static const table_column columns[] = {TABLE_HEAD("algorithm"),
                                         TABLE_HEAD("setting"),
                                         {.type = TABLE_INTEGER, .head = "missing"},
                                         TABLE_HEAD("seeds")};
  table *to = table_new(columns, 4);
  if (!t->is_planned)
    html_markup(h, "<p>The file does not say which runs it is to hold: missing is what the grid of "
                   "its algorithms, settings and seeds has and the file has not.</p>\n");
  table_title(to, "Runs that are missing");
  for (size_t i = 0; i < t->n_incomplete; ++i) {
    const incomplete_cell *cell = &t->incomplete[i];
    char *text = study_seeds_text(cell->seeds, cell->n);
    table_row(to);
    table_text(to, cell->algorithm);
    table_text(to, cell->setting);
    table_count(to, cell->n);
    table_text(to, text);
    free(text);
  }
  html_table(h, to);
}

gl_status section_problems(html *h, const report_study *t, gl_error *err) {
  (void)err;
  if (t->diverged + t->failed > 0) write_ended(h, t);
  if (t->missing > 0) write_missing_runs(h, t);
  return GL_OK;
}

/* --- scores --- */

/* Sections of results: `scores`, `sets`, `relations` and `clock`. */

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

/* --- sets --- */
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

/* --- relations --- */
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
                                         {.type = TABLE_INTEGER, .head = "runs"}};
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
                                         {.type = TABLE_INTEGER, .head = "cells"}};
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

/* --- clock --- */
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
