/* The figures of the laboratory. Each is a function lab_figure_NAME() and a line of LAB_FIGURES.
 * Most are rows of panels over measurements; lab_write_panels() writes them from a table of axes.
 */
#include "experiments/lab/figures/figures.h"

#include "analysis/figures/without_study.h"
#include "analysis/plot/draw.h"
#include "analysis/plot/page.h"
#include "experiments/base/memory.h"
#include "toy/lab/theorems.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- panels over measurements --- */

/* One row of the figure: a panel for each group size. */
typedef struct lab_panel {
  const char *axis;
  double (*x)(const lab_recipe *r, size_t pair, const lab_result *m);
  double (*y)(const lab_numbers *n);
  int logarithmic;
  double most; /* upper end of the axis; 0: chosen from the data */
} lab_panel;

/* Sets the recipe's algorithms as the lines of the page. */
static gl_status lab_page_algorithms(figure_page *p, const lab_recipe *r, gl_error *err) {
  const char **names = MUST_ARRAY(const char *, r->n_algorithms, "the names of a figure");
  for (size_t i = 0; i < r->n_algorithms; ++i) names[i] = r->algorithms[i].name;
  gl_status status = page_set_lines(p, names, r->n_algorithms, err);
  free(names);
  return status;
}

/* "8", or "∞" for the population limit. */
static void lab_size_text(size_t size, char text[24]) {
  if (size == 0)
    snprintf(text, 24, "∞");
  else
    snprintf(text, 24, "%zu", size);
}

/* Adds a remark for each algorithm without any measurement, with the reason. */
static gl_status lab_leave_out_algorithms(figure_page *p, const lab_table *t, gl_error *err) {
  const lab_recipe *r = t->recipe;
  gl_status status = GL_OK;
  for (size_t a = 0; a < r->n_algorithms && status == GL_OK; ++a) {
    const char *why = "";
    size_t n = 0;
    for (size_t i = a; i < t->n; i += r->n_algorithms) {
      n += t->results[i].applicable != 0;
      if (!t->results[i].applicable) why = t->results[i].why;
    }
    if (n == 0) status = page_leave_out(p, err, "%s (%s)", r->algorithms[a].name, why);
  }
  return status;
}

/* Adds a remark with the group sizes not shown, which are those not in picked[n]. */
static gl_status lab_leave_out_sizes(figure_page *p, const lab_recipe *r, const size_t *picked,
                                     size_t n, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0, k = 0; i < r->n_sizes && status == GL_OK; ++i) {
    char text[24];
    lab_size_text(r->group_size[i], text);
    if (k < n && picked[k] == i)
      ++k;
    else
      status = page_leave_out(p, err, "G = %s", text);
  }
  return status;
}

static void write_measured(figure_page *p, size_t panel, const lab_table *t, const lab_panel *of,
                           size_t size, size_t a) {
  const lab_recipe *r = t->recipe;
  for (size_t k = 0; k < r->n_pairs; ++k) {
    const lab_result *m = &t->results[(k * r->n_sizes + size) * r->n_algorithms + a];
    const double x = of->x(r, k, m), y = m->applicable ? of->y(&m->numbers) : NAN;
    page_point(p, panel, r->algorithms[a].name, x, y, NAN, NAN);
  }
  page_block_end(p);
}

/* Opens the page and writes n rows of panels, one column for each of at most most_sizes group
 * sizes, spread evenly. Remarks name the sizes left out and the algorithms without a measurement.
 */
static gl_status lab_write_panels(figure_page *p, const lab_table *t, const lab_panel *of, size_t n,
                                  size_t most_sizes, gl_error *err) {
  const lab_recipe *r = t->recipe;
  size_t *picked = MUST_ARRAY(size_t, r->n_sizes, "the sizes of a figure");
  const size_t sizes = page_pick(r->n_sizes, page_columns(p, most_sizes), picked);
  gl_status status = page_open(p, n * sizes, "panel\talgorithm\tx\ty\t\t", err);
  p->decades = 14;
  p->wide = p->share = sizes;
  for (size_t panel = 0; panel < n * sizes && status == GL_OK; ++panel) {
    const lab_panel *what = &of[panel / sizes];
    figure_panel *to = &p->panels[panel];
    char size[24];
    lab_size_text(r->group_size[picked[panel % sizes]], size);
    if (panel < sizes && r->n_sizes > 1) snprintf(to->title, sizeof to->title, "G = %s", size);
    snprintf(to->axis, sizeof to->axis, "%s", what->axis);
    to->logarithmic = what->logarithmic;
    for (size_t a = 0; a < r->n_algorithms; ++a)
      write_measured(p, panel, t, what, picked[panel % sizes], a);
    /* A diverging line would flatten all others, so it is cut off at the top of the panel. */
    if (what->most > 0 && to->high > what->most) to->high = what->most;
  }
  if (status == GL_OK) status = lab_page_algorithms(p, r, err);
  if (status == GL_OK) status = lab_leave_out_algorithms(p, t, err);
  if (status == GL_OK) status = lab_leave_out_sizes(p, r, picked, sizes, err);
  free(picked);
  return status;
}

static double lab_x_kl(const lab_recipe *r, size_t pair, const lab_result *m) {
  (void)r, (void)pair;
  return m->kl;
}
static double lab_x_staleness(const lab_recipe *r, size_t pair, const lab_result *m) {
  (void)m;
  return r->pairs[pair].staleness;
}
/* At least 1e-5, so that estimators that are unbiased up to rounding appear at the left edge. */
static double lab_x_squared_bias(const lab_recipe *r, size_t pair, const lab_result *m) {
  (void)r, (void)pair;
  return m->applicable ? fmax(m->numbers.bias * m->numbers.bias, 1e-5) : NAN;
}
static double lab_bias(const lab_numbers *n) {
  return n->bias;
}
static double lab_scaled_bias(const lab_numbers *n) {
  return n->scaled_bias;
}
static double lab_cosine(const lab_numbers *n) {
  return n->cosine;
}
static double lab_variance(const lab_numbers *n) {
  return n->variance;
}
static double lab_mse(const lab_numbers *n) {
  return n->mse;
}
static double lab_scaled_mse(const lab_numbers *n) {
  return n->scaled_mse;
}

/* --- curves: bias, scaled bias, variance and MSE against KL, at four group sizes at most --- */

static gl_status lab_figure_curves(const void *data, figure_page *p, gl_error *err) {
  static const lab_panel rows[] = {{"bias ‖E[g] − ∇J‖", lab_x_kl, lab_bias, 0, 1},
                                   {"scaled bias", lab_x_kl, lab_scaled_bias, 0, 0},
                                   {"variance tr Cov", lab_x_kl, lab_variance, 1, 0},
                                   {"mean squared error", lab_x_kl, lab_mse, 1, 0}};
  p->x_logarithmic = 1;
  gl_status status = lab_write_panels(p, ((const lab_figure_data *)data)->table, rows,
                                      sizeof rows / sizeof *rows, 4, err);
  snprintf(p->x_axis, sizeof p->x_axis, "KL(p‖q) [nats]");
  return status;
}

/* --- plane: variance against squared bias, at four group sizes at most --- */
/* The dotted diagonal marks equal squared bias and variance. Unbiased estimators are at the left
 * edge. */

static gl_status lab_figure_plane(const void *data, figure_page *p, gl_error *err) {
  static const lab_panel row = {"variance tr Cov", lab_x_squared_bias, lab_variance, 1, 0};
  p->x_logarithmic = 1;
  gl_status status = lab_write_panels(p, ((const lab_figure_data *)data)->table, &row, 1, 4, err);
  if (status != GL_OK) return status;
  p->share = p->n_panels;
  page_set_text(p, "reference", "x");
  snprintf(p->x_axis, sizeof p->x_axis, "squared bias");
  return GL_OK;
}

/* --- staleness: cosine, variance and MSE against staleness at the first group size --- */

static gl_status lab_figure_staleness(const void *data, figure_page *p, gl_error *err) {
  static const lab_panel rows[] = {{"cosine of E[g] and ∇J", lab_x_staleness, lab_cosine, 0, 0},
                                   {"variance tr Cov", lab_x_staleness, lab_variance, 1, 0},
                                   {"scaled MSE", lab_x_staleness, lab_scaled_mse, 0, 0}};
  gl_status status = lab_write_panels(p, ((const lab_figure_data *)data)->table, rows,
                                      sizeof rows / sizeof *rows, 1, err);
  p->wide = page_columns(p, 3), p->share = 0;
  snprintf(p->x_axis, sizeof p->x_axis, "staleness [updates]");
  return status;
}

/* --- learning: return, cosine and variance against the responses sampled --- */

static double learning_quantity(const lab_point *m, size_t panel) {
  return panel == 0 ? m->value : panel == 1 ? m->cosine : m->variance;
}

/* The return has an interval of one standard error on either side. */
static void write_learning_point(figure_page *p, size_t panel, const char *name,
                                 const lab_point *m) {
  const double y = learning_quantity(m, panel), error = panel == 0 ? m->value_error : NAN;
  page_point(p, panel, name, m->samples, y, y - error, y + error);
}

static gl_status lab_figure_learning(const void *data, figure_page *p, gl_error *err) {
  static const char *const axes[] = {"exact return", "cosine of E[g] and ∇J", "variance tr Cov"};
  const lab_curves *c = ((const lab_figure_data *)data)->curves;
  gl_status status =
      page_open(p, 3, "panel\talgorithm\tresponses\tmean\tlow (one standard error)\thigh", err);
  if (status != GL_OK) return status;
  p->wide = page_columns(p, 3);
  snprintf(p->x_axis, sizeof p->x_axis, "responses drawn");
  for (size_t panel = 0; panel < 3; ++panel) {
    snprintf(p->panels[panel].axis, sizeof p->panels[panel].axis, "%s", axes[panel]);
    p->panels[panel].logarithmic = panel == 2;
    for (size_t a = 0; a < c->recipe->n_algorithms; ++a, page_block_end(p))
      for (size_t i = 0; i < c->n_points; ++i)
        write_learning_point(p, panel, c->recipe->algorithms[a].name,
                             &c->points[a * c->n_points + i]);
  }
  return lab_page_algorithms(p, c->recipe, err);
}

/* --- truncation: direction of the expected step, and its change of the kept mass, against top-p --- */

enum { TRUNCATION_ROWS = 3 };

static double truncation_quantity(const lab_truncated *row, size_t quantity) {
  return quantity == 0 ? row->cosine : quantity == 1 ? row->drift_good : row->drift_bad;
}

static void write_truncated(figure_page *p, size_t panel, const lab_truncation *t, size_t weights,
                            size_t quantity, size_t a) {
  const lab_dists *dists = &t->recipe.dists;
  for (size_t k = 0; k < dists->n_top_p; ++k) {
    const lab_truncated *row = &t->rows[(weights * t->n_dists + k) * t->recipe.n_algorithms + a];
    page_point(p, panel, row->algorithm, row->top_p,
               row->applicable ? truncation_quantity(row, quantity) : NAN, NAN, NAN);
  }
  page_block_end(p);
}

static gl_status lab_figure_truncation(const void *data, figure_page *p, gl_error *err) {
  static const char *const axes[TRUNCATION_ROWS] = {"cosine of E[g] and ∇J", "drift, good contexts",
                                                    "drift, bad contexts"};
  const lab_truncation *t = ((const lab_figure_data *)data)->truncation;
  const size_t columns = t->recipe.dists.n_weights;
  gl_status status = page_open(p, TRUNCATION_ROWS * columns, "panel\talgorithm\ttop_p\ty\t\t", err);
  if (status != GL_OK) return status;
  p->wide = p->share = columns;
  snprintf(p->x_axis, sizeof p->x_axis, "top-p");
  for (size_t panel = 0; panel < TRUNCATION_ROWS * columns; ++panel) {
    const size_t quantity = panel / columns, weights = panel % columns;
    figure_panel *to = &p->panels[panel];
    if (quantity == 0)
      snprintf(to->title, sizeof to->title, "weights: %s", t->recipe.dists.weights[weights]);
    snprintf(to->axis, sizeof to->axis, "%s", axes[quantity]);
    for (size_t a = 0; a < t->recipe.n_algorithms; ++a)
      write_truncated(p, panel, t, weights, quantity, a);
  }
  return lab_page_algorithms(p, &t->recipe, err);
}

/* --- theorem1_constant: the smallest constant with which Theorem 1 holds --- */

/* The constant of Theorem 1 on each line of the figure: the theorem's n^2 + 1, the smallest valid
 * ones for both denominators, and 0.325 n^1.5. */
static double constant_of(size_t line, double n) {
  if (line == 0) return n * n + 1;
  if (line == 3) return 0.325 * pow(n, 1.5);
  return lab_theory_smallest_constant(n, line == 1 ? LAB_EXPECTED : LAB_COMPUTED, NULL);
}

static gl_status lab_figure_theorem1_constant(const void *data, figure_page *p, gl_error *err) {
  static const char *const lines[] = {"Theorem 1: n² + 1", "smallest valid, D = E_q q",
                                      "smallest valid, D as computed", "0.325 n^(3/2)"};
  (void)data;
  gl_status status = page_open(p, 1, "panel\tline\toutcomes\tconstant\t\t", err);
  if (status != GL_OK) return status;
  p->x_logarithmic = 1, p->tall = 6, p->decades = 20;
  snprintf(p->x_axis, sizeof p->x_axis, "outcomes n (Vᵀ for responses of T tokens)");
  p->panels[0].logarithmic = 1;
  snprintf(p->panels[0].axis, sizeof p->panels[0].axis, "c in Var[p/q] − Var[p/D] ≥ exp(KL) − c");
  for (size_t line = 0; line < 4; ++line, page_block_end(p))
    for (double n = 2; n < 2e9; n = fmax(n + 1, floor(n * 1.5))) {
      page_point(p, 0, lines[line], n, constant_of(line, n), NAN, NAN);
    }
  return page_set_lines(p, lines, 4, err);
}

/* --- map: MSE over that of the first algorithm, over KL and group size --- */
/* Blue where the algorithm's error is lower than the first algorithm's, orange where it is higher,
 * with a line at equality. */

enum { MOST_MAPS = 8, QUANTITIES = 2 };

/* The algorithms that get maps: those named by --highlight, or otherwise the first ones. */
typedef struct choice {
  size_t at[MOST_MAPS], n;
} choice;

static choice choose_lab_figures(const lab_recipe *r, const char *highlight) {
  choice c = {.n = 0};
  for (size_t a = 1; a < r->n_algorithms && c.n < MOST_MAPS; ++a)
    if (figure_is_named(highlight, r->algorithms[a].name)) c.at[c.n++] = a;
  for (size_t a = 1; a < r->n_algorithms && c.n < MOST_MAPS && !highlight; ++a) c.at[c.n++] = a;
  return c;
}

static int is_chosen(const choice *c, size_t algorithm) {
  for (size_t i = 0; i < c->n; ++i)
    if (c->at[i] == algorithm) return 1;
  return 0;
}

/* Edges of the cells and the ratios of one map. */
typedef struct ratios {
  double *x_edge, *y_edge; /* [n_sizes + 1], [n_pairs + 1] */
  double *value;           /* [n_pairs * n_sizes] error / error of the first algorithm */
} ratios;

static void ratios_fini(ratios *r) {
  free(r->x_edge);
  free(r->y_edge);
  free(r->value);
}

static void ratios_init(ratios *out, const lab_table *t) {
  const lab_recipe *r = t->recipe;
  double *kl = MUST_ARRAY(double, r->n_pairs, "a map");
  *out = (ratios){MUST_ARRAY(double, r->n_sizes + 1, "a map"),
                  MUST_ARRAY(double, r->n_pairs + 1, "a map"),
                  MUST_ARRAY(double, r->n_pairs * r->n_sizes, "a map")};
  for (size_t i = 0; i <= r->n_sizes; ++i) out->x_edge[i] = (double)i + 0.5;
  for (size_t k = 0; k < r->n_pairs; ++k) kl[k] = t->results[k * r->n_sizes * r->n_algorithms].kl;
  map_edges(kl, r->n_pairs, 1, out->y_edge);
  free(kl);
}

/* The map of algorithm a. quantity 0: MSE, 1: scaled MSE. */
static figure_map map_of(ratios *of, const lab_table *t, size_t a, size_t quantity) {
  const lab_recipe *r = t->recipe;
  for (size_t k = 0; k < r->n_pairs; ++k)
    for (size_t s = 0; s < r->n_sizes; ++s) {
      const lab_result *m = t->results + (k * r->n_sizes + s) * r->n_algorithms;
      const double over = quantity == 0 ? m[a].numbers.mse : m[a].numbers.scaled_mse;
      const double under = quantity == 0 ? m->numbers.mse : m->numbers.scaled_mse;
      of->value[k * r->n_sizes + s] = m[a].applicable && m->applicable ? over / under : NAN;
    }
  return (figure_map){r->n_sizes, r->n_pairs, of->x_edge, of->y_edge, of->value};
}

static gl_status write_marks(figure_page *p, const lab_recipe *r, gl_error *err) {
  gl_status status = GL_OK;
  char text[24];
  for (size_t s = 0; s < r->n_sizes && status == GL_OK; ++s) {
    lab_size_text(r->group_size[s], text);
    status = page_mark(p, PAGE_MARK, (double)s + 1, text, err);
  }
  return status;
}

static gl_status write_lab_maps(figure_page *p, const lab_table *t, ratios *of, const choice *c,
                                gl_error *err) {
  const size_t n = c->n;
  static const char *const names[] = {"MSE", "scaled MSE"}, *const line = "cell";
  const lab_recipe *r = t->recipe;
  for (size_t i = 0; i < QUANTITIES * n; ++i) {
    figure_panel *to = &p->panels[i];
    snprintf(to->axis, sizeof to->axis, "KL(p‖q) [nats]");
    snprintf(to->title, sizeof to->title, "%s, %.60s / %.60s", names[i / n],
             r->algorithms[c->at[i % n]].name, r->algorithms[0].name);
    to->logarithmic = 1;
    const figure_map m = map_of(of, t, c->at[i % n], i / n);
    page_map(p, i, &m);
  }
  for (size_t i = 0; i < QUANTITIES * n; ++i) {
    const figure_map m = map_of(of, t, c->at[i % n], i / n);
    page_contour(p, i, &m, 1);
  }
  gl_status status = write_marks(p, r, err);
  return status == GL_OK ? page_set_lines(p, &line, 1, err) : status;
}

static gl_status lab_figure_map(const void *data, figure_page *p, gl_error *err) {
  const lab_table *t = ((const lab_figure_data *)data)->table;
  choice chosen = choose_lab_figures(t->recipe, p->q->highlight);
  if (chosen.n == 0) chosen = choose_lab_figures(t->recipe, NULL);
  const size_t n = chosen.n;
  ratios of = {0};
  gl_status status = page_open(p, QUANTITIES * n,
                               "panel\tcell\tG from\tto\tKL from\tto\tratio (G by its place)", err);
  if (status == GL_OK) {
    ratios_init(&of, t);
    p->wide = page_columns(p, n < 3 ? n : 3);
    p->share = p->wide, p->tight = 1, p->decades = 20;
    snprintf(p->x_axis, sizeof p->x_axis, "group size G");
    page_bar_diverging(p, "ratio; the line is 1", 30, 1);
    status = write_lab_maps(p, t, &of, &chosen, err);
  }
  ratios_fini(&of);
  for (size_t a = 1; a < t->recipe->n_algorithms && status == GL_OK; ++a)
    if (!is_chosen(&chosen, a))
      status = page_leave_out(p, err, "%s", t->recipe->algorithms[a].name);
  return status;
}

/* --- weight_variance (the paper's Fig. 2): how much more p/q varies than GEPO's weight --- */
/* Distributions: Bernoulli and unit normals. Denominators: the theorem's, and the one that the
 * algorithm computes. Inside the line, in blue, GEPO's weight varies more: the paper's green
 * region. */

enum { GRID = 60, PANELS = 4 };

/* Returns Var[p/q] minus the variance of GEPO's weight. Columns of panels are Bernoulli and normal
 * distributions, rows are the denominators. */
static double difference(size_t panel, double a, double b) {
  lab_weights_stats s;
  if (panel % 2 == 0)
    lab_theory_bernoulli(a, b, &s);
  else
    lab_theory_gaussian(a - b, &s);
  return s.variance_pq - s.variance[panel / 2 == 0 ? LAB_EXPECTED : LAB_COMPUTED];
}

typedef struct surface {
  double edge[GRID + 1], value[GRID * GRID];
} surface;

static figure_map surface_of(surface *s, size_t panel) {
  const double from = panel % 2 == 0 ? 0 : -1.2, to = panel % 2 == 0 ? 1 : 1.2;
  for (size_t i = 0; i <= GRID; ++i) s->edge[i] = from + (to - from) * (double)i / GRID;
  for (size_t y = 0; y < GRID; ++y)
    for (size_t x = 0; x < GRID; ++x)
      s->value[y * GRID + x] = difference(panel, 0.5 * (s->edge[x] + s->edge[x + 1]),
                                          0.5 * (s->edge[y] + s->edge[y + 1]));
  return (figure_map){GRID, GRID, s->edge, s->edge, s->value};
}

static void name_lab_panel(figure_panel *to, size_t panel) {
  static const char *const dists[] = {"Bernoulli", "unit normals"};
  static const char *const under[] = {"D = E_q q", "D as computed"};
  snprintf(to->title, sizeof to->title, "%s, %s", dists[panel % 2], under[panel / 2]);
  snprintf(to->axis, sizeof to->axis, panel % 2 == 0 ? "q" : "mean b of q");
  snprintf(to->x_axis, sizeof to->x_axis, panel % 2 == 0 ? "p" : "mean a of p");
}

static gl_status write_surfaces(figure_page *p, surface *s, gl_error *err) {
  static const char *const line = "cell";
  for (size_t i = 0; i < PANELS; ++i) {
    const figure_map m = surface_of(s, i);
    name_lab_panel(&p->panels[i], i);
    page_map(p, i, &m);
    page_panel_x(p, i, m.x_edge[0]), page_panel_x(p, i, m.x_edge[GRID]);
  }
  for (size_t i = 0; i < PANELS; ++i) {
    const figure_map m = surface_of(s, i);
    page_contour(p, i, &m, 0);
  }
  return page_set_lines(p, &line, 1, err);
}

static gl_status lab_figure_weight_variance(const void *data, figure_page *p, gl_error *err) {
  double d2, kl[LAB_CONSTANTS];
  (void)data;
  gl_status status = page_open(p, PANELS, "panel\tcell\ta from\tto\tb from\tto\tdifference", err);
  for (int k = 0; k < LAB_CONSTANTS && status == GL_OK; ++k)
    status = lab_theory_gaussian_crossing((lab_constant)k, &d2, &kl[k], err);
  surface *s = NULL;
  if (status == GL_OK) {
    s = MUST_ARRAY(surface, 1, "a map");
    p->wide = page_columns(p, 2), p->tight = 1;
    page_bar_diverging(p, "Var[p/q] − Var[p/D]", 0.6, 0);
    status = write_surfaces(p, s, err);
  }
  free(s);
  if (status != GL_OK) return status;
  return page_remark(p, err,
                     "On the line both vary alike; for normals KL is %.3f there, %.3f with D as "
                     "computed",
                     kl[LAB_EXPECTED], kl[LAB_COMPUTED]);
}

/* --- the table --- */

/* Data that a figure requires; lab_figure_lacks() returns what is missing. */
enum {
  NEEDS_DIAL = 1 << 0,  /* measurements at several values of KL */
  NEEDS_PATH = 1 << 1,  /* measurements along a training path */
  NEEDS_SIZES = 1 << 2, /* several group sizes, several algorithms */
  NEEDS_OTHERS = 1 << 3,
  NEEDS_LEARNING = 1 << 4, /* learning curves */
  NEEDS_THEOREMS = 1 << 5,
  NEEDS_DISTS = 1 << 6 /* a study of truncation with several values of top_p */
};

/* F(name, description, required data, script in plots/) */
#define LAB_FIGURES(F)                                                                             \
  F(curves, "bias, variance and MSE against KL, a column per group size", NEEDS_DIAL, "curves")    \
  F(plane, "variance against squared bias, a panel per group size", NEEDS_DIAL, "curves")          \
  F(map, "MSE over that of the first algorithm, over KL and group size",                           \
    NEEDS_DIAL | NEEDS_SIZES | NEEDS_OTHERS, "map")                                                \
  F(staleness, "cosine, variance and MSE against staleness on a training path", NEEDS_PATH,        \
    "curves")                                                                                      \
  F(learning, "return, cosine and variance against responses drawn", NEEDS_LEARNING, "curves")     \
  F(truncation, "cosine and drift of kept mass against top-p, a column per kind of weights",       \
    NEEDS_DISTS, "curves")                                                                         \
  F(weight_variance, "variance of p/q and p/E_q q, and the green region", NEEDS_THEOREMS, "map")   \
  F(theorem1_constant, "the smallest constant of Theorem 1 against the number of outcomes",        \
    NEEDS_THEOREMS, "curves")

#define LAB_FIGURE_LINE(name, shows, needs, shape) {#name, shows, shape, needs, lab_figure_##name},
static const figure figures[] = {LAB_FIGURES(LAB_FIGURE_LINE)};
enum { FIGURE_COUNT = sizeof figures / sizeof *figures };

static const char *lab_figure_lacks(const void *data, unsigned needs) {
  const lab_figure_data *d = data;
  const lab_recipe *r = d->table != NULL ? d->table->recipe : NULL;
  const int path = r != NULL && !isnan(r->pairs[0].staleness);
  if ((needs & NEEDS_DIAL) && (r == NULL || path || r->n_pairs < 2))
    return "it needs a dial with at least two values of KL";
  if ((needs & NEEDS_PATH) && !path) return "it needs pairs of policies from a training path";
  if ((needs & NEEDS_SIZES) && (r == NULL || r->n_sizes < 2)) return "it needs several group sizes";
  if ((needs & NEEDS_OTHERS) && (r == NULL || r->n_algorithms < 2))
    return "it needs several algorithms";
  if ((needs & NEEDS_LEARNING) && d->curves == NULL) return "it needs a recipe with training";
  if ((needs & NEEDS_DISTS) && (d->truncation == NULL || d->truncation->recipe.dists.n_top_p < 2))
    return "it needs a recipe with truncation at several values of top_p";
  if ((needs & NEEDS_THEOREMS) && (d->table != NULL || d->curves != NULL || d->truncation != NULL))
    return "it belongs to `gepolab lab theory`";
  return NULL;
}

/* --- many random directions --- */

static directions_point directions_point_of(const lab_table *t, size_t a, size_t s, size_t k,
                                            double *scratch) {
  static const lab_quantity of[DIRECTIONS_QUANTITIES] = {
      [DIRECTIONS_BIAS] = LAB_QUANTITY_BIAS,
      [DIRECTIONS_MSE] = LAB_QUANTITY_MSE,
      [DIRECTIONS_SCALED_MSE] = LAB_QUANTITY_SCALED_MSE,
  };
  const size_t size = t->recipe->group_size[s];
  const lab_over_directions m = lab_directions_measured(t, a, s, k, scratch);
  directions_point to = {.algorithm = a,
                         .group_size = size == 0 ? INFINITY : (double)size,
                         .kl = m.kl,
                         .count = (double)m.n};
  for (directions_quantity q = 0; q < DIRECTIONS_QUANTITIES; ++q) {
    const double *level = m.quantile[of[q]];
    to.median[q] = level[0], to.low[q] = level[1], to.high[q] = level[2];
  }
  return to;
}

static gl_status draw_directions(const lab_table *t, const figure_request *q, gl_error *err) {
  const lab_recipe *r = t->recipe;
  const size_t kls = r->n_pairs / r->directions;
  double *scratch = MUST_ARRAY(double, r->directions, "the directions");
  directions d = {.worlds = MUST_ARRAY(const char *, 1, "a figure"),
                  .n_worlds = 1,
                  .algorithms = MUST_ARRAY(const char *, r->n_algorithms, "a figure"),
                  .n_algorithms = r->n_algorithms,
                  .point =
                      MUST_ARRAY(directions_point, kls * r->n_sizes * r->n_algorithms, "a figure")};
  d.worlds[0] = r->name;
  for (size_t a = 0; a < r->n_algorithms; ++a) {
    d.algorithms[a] = r->algorithms[a].name;
    for (size_t s = 0; s < r->n_sizes; ++s)
      for (size_t k = 0; k < kls; ++k) {
        const directions_point at = directions_point_of(t, a, s, k, scratch);
        if (at.count > 0) d.point[d.n++] = at;
      }
  }
  gl_status status = figure_of_directions(&d, q, err);
  directions_fini(&d);
  free(scratch);
  return status;
}

gl_status lab_figures_draw(const lab_figure_data *data, const figure_request *q, gl_error *err) {
  static const figure_table table = {
      figures, FIGURE_COUNT, lab_figure_lacks,
      "there are no data for any figure: figures need a dial with at least two values of KL, a "
      "training path, or training",
      NULL};
  figure_request named = *q;
  if (data->table != NULL) named.prefix = data->table->recipe->name;
  if (data->table != NULL && data->table->recipe->directions > 1)
    return draw_directions(data->table, &named, err);
  if (data->truncation != NULL) named.prefix = data->truncation->recipe.name;
  if (data->curves != NULL) named.prefix = data->curves->recipe->name;
  return figures_draw_table(&table, data, &named, err);
}
