/* Figures of run outcomes (collapse, survival). */
#include "analysis/figures/without_study.h"
#include "analysis/outcome.h"

#include "analysis/collapse_prediction.h"
#include "analysis/figures/list.h"
#include "analysis/plot/draw.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- survival --- */
/* Figure `survival`: fraction of runs that have not collapsed against updates (Kaplan-Meier), a
 * panel per setting. */

enum { MOST_PANELS = 6 };

/* 95 % interval by the log(-log) transformation, which stays within [0, 1] (Kalbfleisch and
 * Prentice); none if no run or every run has collapsed. */
static interval band_of(const survival_step *at) {
  interval v = {at->survival, NAN, NAN};
  if (at->survival <= 0 || at->survival >= 1 || at->error <= 0) return v;
  const double width = 1.959963984540054 * at->error / (at->survival * -log(at->survival));
  v.low = pow(at->survival, exp(width));
  v.high = pow(at->survival, exp(-width));
  return v;
}

/* Step function: a point before and after every collapse time. */
static void write_line(figure_page *p, size_t panel, const stability *s, const stability_cell *c) {
  const char *line = s->algorithms[c->algorithm];
  interval v = {1, NAN, NAN};
  if (c->runs > 0) page_point(p, panel, line, 0, v.value, v.low, v.high);
  for (size_t i = 0; i < c->n_steps; i++) {
    page_point(p, panel, line, c->curve[i].time, v.value, v.low, v.high);
    v = band_of(&c->curve[i]);
    page_point(p, panel, line, c->curve[i].time, v.value, v.low, v.high);
  }
  if (c->runs > 0) page_point(p, panel, line, c->watched, v.value, v.low, v.high);
  page_block_end(p);
}

static gl_status write_panels(figure_page *p, const stability *s, const size_t *shown, size_t n,
                              gl_error *err) {
  gl_status status = page_open(p, n, "panel\talgorithm\tupdate\tshare\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = page_columns(p, 3) < n ? page_columns(p, 3) : n;
  p->share = n;
  for (size_t i = 0; i < n; i++) {
    figure_panel *to = &p->panels[i];
    snprintf(to->axis, sizeof to->axis, "fraction of runs that have not collapsed");
    snprintf(to->title, sizeof to->title, "%s", s->settings[shown[i]]);
    to->low = 0, to->high = 1, to->kept = 1;
    for (size_t a = 0; a < s->n_algorithms; a++)
      write_line(p, i, s, &s->cells[shown[i] * s->n_algorithms + a]);
  }
  return page_set_lines(p, s->algorithms, s->n_algorithms, err);
}

static bool any_collapsed(const stability *s, size_t setting) {
  for (size_t a = 0; a < s->n_algorithms; a++)
    if (s->cells[setting * s->n_algorithms + a].collapses > 0) return true;
  return false;
}

/* Selects settings in which a run collapsed, up to MOST_PANELS. Returns their number. */
static size_t pick_settings(const stability *s, size_t *with_collapses, size_t shown[MOST_PANELS]) {
  size_t n = 0;
  for (size_t k = 0; k < s->n_settings; k++)
    if (any_collapsed(s, k)) with_collapses[n++] = k;
  const size_t most = page_pick(n, MOST_PANELS, shown);
  for (size_t i = 0; i < most; i++) shown[i] = with_collapses[shown[i]];
  return most;
}

static gl_status leave_out_others(figure_page *p, const stability *s, const size_t *shown, size_t n,
                                  gl_error *err) {
  gl_status status = GL_OK;
  for (size_t k = 0, i = 0; k < s->n_settings && status == GL_OK; k++) {
    if (i < n && shown[i] == k)
      i++;
    else
      status = page_leave_out(p, err, "%s%s", s->settings[k],
                              any_collapsed(s, k) ? "" : " (no run collapsed)");
  }
  return status;
}

static gl_status write_survival(const void *outcomes, figure_page *p, gl_error *err) {
  const stability *s = outcomes;
  size_t shown[MOST_PANELS];
  size_t *with_collapses = ARENA_ARRAY(&p->memory, size_t, s->n_settings);
  if (with_collapses == NULL) return gl_fail_memory(err, "a figure");
  const size_t n = pick_settings(s, with_collapses, shown);
  gl_status status = write_panels(p, s, shown, n, err);
  if (status == GL_OK) status = leave_out_others(p, s, shown, n, err);
  if (status == GL_OK)
    status = page_remark(
        p, err,
        "Collapse: four evaluations in a row below half of the gain, a run that is "
        "not finite, or a lost start (gepolab analyze --table outcomes). Kaplan-Meier, 95 %% "
        "bands; runs at all learning rates of a setting together");
  return status;
}

/* --- frontier --- */
/* Figure `frontier`: the learning rate at which 10 and 50 % of the runs collapse, against
 * staleness. With few algorithms, there are two panels, one for each fraction, with a line per
 * algorithm. With many, intervals would overlap, so each algorithm has a panel with two lines. */

/* Open-ended intervals are drawn to this factor beyond the rates of the study. */
static const double BEYOND = 3;

typedef struct frontier {
  const stability *s;
  size_t *order;          /* [n_settings] settings in the order of staleness */
  double lowest, highest; /* learning rates in the study */
} frontier;

/* Sorts the settings by staleness. Those without a known staleness keep their order and come last.
 */
static void sort_settings(frontier *f) {
  for (size_t k = 0; k < f->s->n_settings; k++) {
    const double x = f->s->staleness[k];
    size_t at = k;
    for (; at > 0 && (x < f->s->staleness[f->order[at - 1]] ||
                      (!isnan(x) && isnan(f->s->staleness[f->order[at - 1]])));
         at--)
      f->order[at] = f->order[at - 1];
    f->order[at] = k;
  }
}

/* Returns true if the settings have distinct staleness values, which can then serve as names. */
static bool staleness_distinguishes(const frontier *f) {
  for (size_t k = 0; k < f->s->n_settings; k++) {
    if (isnan(f->s->staleness[f->order[k]])) return false;
    if (k > 0 && f->s->staleness[f->order[k]] == f->s->staleness[f->order[k - 1]]) return false;
  }
  return true;
}

static interval within(const frontier *f, interval v) {
  v.low = fmax(v.low, f->lowest / BEYOND);
  v.high = fmin(v.high, f->highest * BEYOND);
  return v;
}

/* The name of a setting: "staleness 64", or its fields. */
static void name_setting(const frontier *f, size_t k, const char *before, char text[200]) {
  if (staleness_distinguishes(f))
    snprintf(text, 200, "%s%.3g", before, f->s->staleness[k]);
  else
    snprintf(text, 200, "%.190s", f->s->settings[k]);
}

/* The panel and the line of a point. */
typedef struct point_place {
  size_t panel;
  const char *line;
} point_place;

/* Arrangement of the panels. by_algorithm: a panel per algorithm with the fractions as lines; 0: a
 * panel per fraction with the algorithms as lines. */
typedef struct arrangement {
  int by_algorithm;
  size_t n; /* number of panels */
  char shares[STABILITY_SHARES][24];
} arrangement;

/* With more algorithms than this, each has its own panel. */
enum { TOGETHER = 4 };

static arrangement arrange(const figure_page *p, const stability *s) {
  arrangement a = {.by_algorithm = s->n_algorithms > TOGETHER && p->q->highlight == NULL};
  a.n = a.by_algorithm ? s->n_algorithms : STABILITY_SHARES;
  for (size_t i = 0; i < STABILITY_SHARES; i++)
    snprintf(a.shares[i], sizeof a.shares[i], "%.0f %% collapse", 100 * stability_share[i]);
  return a;
}

/* The printed words for the reason why there is no fit; stored results contain the same words. */
static const char *collapse_words(const char *why) {
  if (strcmp(why, "no run falls") == 0) return "no run collapses";
  return strcmp(why, "every run falls") == 0 ? "every run collapses" : why;
}

/* Writes one point; if there is none, a gap in the line and a remark with the reason. */
static gl_status frontier_write_point(figure_page *p, point_place at, const frontier *f,
                                      const stability_cell *c, size_t share, size_t place,
                                      gl_error *err) {
  const char *algorithm = f->s->algorithms[c->algorithm];
  char setting[200];
  name_setting(f, c->setting, "staleness ", setting);
  const interval v = c->collapse_at[share];
  if (c->runs == 0) return GL_OK;
  const bool inside = c->fit.why == NULL && v.value >= f->lowest && v.value <= f->highest;
  page_line(p, at.panel, at.line);
  page_number(p, (double)place);
  if (inside) {
    const interval shown = within(f, v);
    page_interval(p, at.panel, shown.value, shown.low, shown.high);
  } else
    fputs("\tNaN\tNaN\tNaN", p->data.stream); /* an empty field does not break gnuplot's line */
  fputc('\n', p->data.stream);
  if (inside) return GL_OK;
  if (c->fit.why != NULL)
    return page_leave_out(p, err, "%s at %s (%s)", algorithm, setting, collapse_words(c->fit.why));
  return page_leave_out(p, err, "%s at %s (rate of %.0f %% not between those of the study)",
                        algorithm, setting, 100 * stability_share[share]);
}

static gl_status frontier_write_line(figure_page *p, point_place at, const frontier *f,
                                     size_t algorithm, size_t share, gl_error *err) {
  const size_t n = f->s->n_algorithms;
  gl_status status = GL_OK;
  for (size_t place = 0; place < f->s->n_settings && status == GL_OK; place++)
    status = frontier_write_point(p, at, f, &f->s->cells[f->order[place] * n + algorithm], share,
                                  place, err);
  page_block_end(p);
  return status;
}

static gl_status mark_settings(figure_page *p, const frontier *f, gl_error *err) {
  const int by_staleness = staleness_distinguishes(f);
  gl_status status = GL_OK;
  snprintf(p->x_axis, sizeof p->x_axis, by_staleness ? "staleness [updates]" : "setting");
  p->all_marks = 1;
  for (size_t place = 0; place < f->s->n_settings && status == GL_OK; place++) {
    const size_t k = f->order[place];
    char text[200];
    name_setting(f, k, "", text);
    page_x(p, (double)place);
    status = page_mark(p, PAGE_MARK, (double)place, text, err);
  }
  return status;
}

static gl_status write_fates_panel(figure_page *p, size_t panel, const frontier *f,
                                   const arrangement *a, gl_error *err) {
  figure_panel *to = &p->panels[panel];
  const size_t lines = a->by_algorithm ? STABILITY_SHARES : f->s->n_algorithms;
  gl_status status = GL_OK;
  snprintf(to->axis, sizeof to->axis, "learning rate at which runs collapse");
  snprintf(to->title, sizeof to->title, "%s",
           a->by_algorithm ? f->s->algorithms[panel] : a->shares[panel]);
  to->logarithmic = 1;
  for (size_t i = 0; i < lines && status == GL_OK; i++)
    status =
        a->by_algorithm
            ? frontier_write_line(p, (point_place){panel, a->shares[i]}, f, panel, i, err)
            : frontier_write_line(p, (point_place){panel, f->s->algorithms[i]}, f, i, panel, err);
  return status;
}

static gl_status name_lines(figure_page *p, const frontier *f, const arrangement *a,
                            gl_error *err) {
  const char *shares[STABILITY_SHARES];
  for (size_t i = 0; i < STABILITY_SHARES; i++) shares[i] = a->shares[i];
  return a->by_algorithm ? page_set_lines(p, shares, STABILITY_SHARES, err)
                         : page_set_lines(p, f->s->algorithms, f->s->n_algorithms, err);
}

static gl_status write_fates_page(figure_page *p, const frontier *f, gl_error *err) {
  const arrangement a = arrange(p, f->s);
  gl_status status = page_open(p, a.n, "panel\tline\tplace\trate\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = page_columns(p, a.by_algorithm ? 4 : a.n);
  p->share = a.n;
  status = mark_settings(p, f, err);
  for (size_t panel = 0; panel < a.n && status == GL_OK; panel++)
    status = write_fates_panel(p, panel, f, &a, err);
  if (status == GL_OK) status = name_lines(p, f, &a, err);
  if (status == GL_OK)
    status =
        page_remark(p, err,
                    "Penalised logistic regression in the logarithm of the rate, 95 %% jackknife "
                    "intervals over starts, drawn to a factor of %g beyond the rates of the study",
                    BEYOND);
  return status;
}

static void find_frontier_rates(frontier *f) {
  f->lowest = INFINITY, f->highest = 0;
  for (size_t i = 0; i < f->s->n_settings * f->s->n_algorithms; i++)
    for (size_t k = 0; k < f->s->cells[i].n_rates; k++) {
      const double rate = exp(f->s->cells[i].rate[k].x);
      f->lowest = fmin(f->lowest, rate);
      f->highest = fmax(f->highest, rate);
    }
}

static gl_status write_frontier(const void *outcomes, figure_page *p, gl_error *err) {
  const stability *s = outcomes;
  frontier f = {.s = s, .order = ARENA_ARRAY(&p->memory, size_t, s->n_settings)};
  if (f.order == NULL) return gl_fail_memory(err, "a figure");
  sort_settings(&f);
  find_frontier_rates(&f);
  return write_fates_page(p, &f, err);
}

/* --- of a study, and of stored outcomes --- */

typedef gl_status outcomes_writer(const void *outcomes, figure_page *p, gl_error *err);

/* Computes the outcomes of a study's runs, with fits if requested, and writes a page of them. */
static gl_status write_of_study(const figure_data *data, bool fits, outcomes_writer *write,
                                figure_page *p, gl_error *err) {
  const outcome_rule rule = outcome_rule_default();
  stability outcomes;
  gl_status status = stability_init(&outcomes, data->s->from, &rule, err);
  if (status == GL_OK && fits) status = stability_fit(&outcomes, err);
  if (status == GL_OK) status = write(&outcomes, p, err);
  stability_fini(&outcomes);
  return status;
}

gl_status figure_survival(const void *data, figure_page *p, gl_error *err) {
  return write_of_study(data, false, write_survival, p, err);
}

gl_status figure_frontier(const void *data, figure_page *p, gl_error *err) {
  return write_of_study(data, true, write_frontier, p, err);
}

enum {
  STORED_NEEDS_A_COLLAPSE = 1 << 0,
  STORED_NEEDS_RATES = 1 << 1,
  STORED_NEEDS_SETTINGS = 1 << 2
};

static const figure figures[] = {
    {"survival", "fraction of runs that have not collapsed, against updates", "curves",
     STORED_NEEDS_A_COLLAPSE, write_survival},
    {"frontier", "learning rate at which 10 and 50 % of the runs collapse, against staleness",
     "curves", STORED_NEEDS_A_COLLAPSE | STORED_NEEDS_RATES | STORED_NEEDS_SETTINGS,
     write_frontier},
};

static const char *fates_lack(const void *data, unsigned needs) {
  const stability *s = data;
  if ((needs & STORED_NEEDS_RATES) && !s->has_rates)
    return "optimizer.lr is not swept over several numbers";
  if ((needs & STORED_NEEDS_SETTINGS) && s->n_settings < 2)
    return "there is one setting besides optimizer.lr";
  for (size_t k = 0; k < s->n_settings; k++)
    if (any_collapsed(s, k)) return NULL;
  return (needs & STORED_NEEDS_A_COLLAPSE) ? "no run collapsed" : NULL;
}

gl_status figures_of_outcomes(const stability *s, const figure_request *q, gl_error *err) {
  static const figure_table drawn = {figures, sizeof figures / sizeof *figures, fates_lack,
                                     "the stored outcomes have no data for any figure", NULL};
  gl_status status = figures_check_highlight(q, s->algorithms, s->n_algorithms, err);
  return status == GL_OK ? figures_draw_table(&drawn, s, q, err) : status;
}

/* --- announcements --- */
/* Figure `announcements`: how well metrics predict collapse, for the best metrics. ROC curves over
 * whole runs, and the ability to distinguish runs of the same setting a given number of updates
 * before the collapse. */

enum { MOST_LINES = 6, CURVES = 0, BEFORE = 1, PANELS = 2 };

static void write_fate_curve(figure_page *p, const announcement *a) {
  for (size_t i = 0; i < a->n_roc; i++)
    page_point(p, CURVES, metric_about(a->m)->name, a->roc_alarms[i], a->roc_announced[i], NAN,
               NAN);
  page_block_end(p);
}

static void write_before(figure_page *p, const announcement *a, const announce_rule *rule) {
  for (size_t k = 0; k < ANNOUNCE_LEADS; k++) {
    const interval auc = a->matched[k].auc;
    if (!isnan(auc.value))
      page_point(p, BEFORE, metric_about(a->m)->name, (double)rule->lead[k], auc.value, auc.low,
                 auc.high);
  }
  page_block_end(p);
}

static void name_fates_panel(figure_panel *to, const char *x, const char *y) {
  snprintf(to->x_axis, sizeof to->x_axis, "%s", x);
  snprintf(to->axis, sizeof to->axis, "%s", y);
}

static gl_status announcements_write_page(figure_page *p, const announcements *a, gl_error *err) {
  const char *names[MOST_LINES];
  const size_t n = a->n < MOST_LINES ? a->n : MOST_LINES; /* 0: runs collapsed before any value */
  gl_status status = page_open(p, PANELS, "panel\tmetric\tx\tshare\tlow\thigh", err);
  if (status != GL_OK) return status;
  name_fates_panel(&p->panels[CURVES], "surviving runs with a false alarm (fraction)",
                   "collapses predicted (fraction)");
  name_fates_panel(&p->panels[BEFORE], "updates before the collapse",
                   "higher than survivors of the same setting (probability)");
  for (size_t k = 0; n > 0 && k < PANELS; k++)
    p->panels[k].low = 0, p->panels[k].high = 1, p->panels[k].kept = 1;
  p->tight = 1;
  for (size_t i = 0; i < n; i++) names[i] = metric_about(a->of[i].m)->name;
  for (size_t i = 0; i < n; i++) write_fate_curve(p, &a->of[i]);
  for (size_t i = 0; i < n; i++) write_before(p, &a->of[i], &a->rule);
  status = page_set_lines(p, names, n, err);
  for (size_t i = n; i < a->n && status == GL_OK; i++)
    status = page_leave_out(p, err, "%s", metric_about(a->of[i].m)->name);
  if (status == GL_OK)
    status =
        page_remark(p, err,
                    "%zu runs that collapsed and %zu that survived, %zu starts, means over %zu "
                    "updates. ROC curves are of runs of all settings together; beside them "
                    "runs of one algorithm and setting are compared at the same update: 0.5 "
                    "is chance (gepolab analyze --table announcements)",
                    a->collapsed, a->survived, a->seeds, a->rule.window);
  return status;
}

gl_status figure_announcements(const void *data, figure_page *p, gl_error *err) {
  const results *r = ((const figure_data *)data)->s->from;
  const announce_rule rule = announce_rule_default();
  const contrast_arm all = {.n = 0};
  announcements a;
  gl_status status = announcements_init(&a, &r, 1, &all, &rule, err);
  if (status == GL_OK) status = announcements_write_page(p, &a, err);
  announcements_fini(&a);
  return status;
}
