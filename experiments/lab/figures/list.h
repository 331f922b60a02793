/* The figures of the laboratory: one line each. A figure NAME is written by lab_figure_NAME() in a
 * file of its own; the table in table.c is made of these lines. Only for the files of this room.
 */
#ifndef GEPOLAB_EXPERIMENTS_LAB_FIGURES_LIST_H
#define GEPOLAB_EXPERIMENTS_LAB_FIGURES_LIST_H

#include "analysis/plot/page.h"
#include "experiments/lab/figures/figures.h"

/* What a figure needs; table.c says why it lacks one. */
enum {
  NEEDS_DIAL = 1 << 0,  /* measurements at several values of KL */
  NEEDS_PATH = 1 << 1,  /* measurements along a training path */
  NEEDS_SIZES = 1 << 2, /* several group sizes, several algorithms */
  NEEDS_OTHERS = 1 << 3,
  NEEDS_LEARNING = 1 << 4, /* learning curves */
  NEEDS_THEOREMS = 1 << 5,
  NEEDS_DISTS = 1 << 6 /* a study of truncation with several values of top_p */
};

/* F(name, what it shows, what it needs, script in plots/) */
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

/* Writes the figure of a lab_figure_data. */
#define LAB_FIGURE_DECLARED(name, shows, needs, shape)                                             \
  gl_status lab_figure_##name(const void *data, figure_page *p, gl_error *err);
LAB_FIGURES(LAB_FIGURE_DECLARED)

/* --- helpers of several figures: measured.c --- */

/* A row of panels over measurements, one for each group size. */
typedef struct lab_panel {
  const char *axis;
  double (*x)(const lab_recipe *r, size_t pair, const lab_result *m);
  double (*y)(const lab_numbers *n);
  int logarithmic;
  double most; /* the axis ends there; 0: at the data */
} lab_panel;

double lab_x_kl(const lab_recipe *r, size_t pair, const lab_result *m);
double lab_x_staleness(const lab_recipe *r, size_t pair, const lab_result *m);
/* Its square, 1e-5 at least. */
double lab_x_squared_bias(const lab_recipe *r, size_t pair, const lab_result *m);
double lab_bias(const lab_numbers *n);
double lab_scaled_bias(const lab_numbers *n);
double lab_cosine(const lab_numbers *n);
double lab_variance(const lab_numbers *n);
double lab_mse(const lab_numbers *n);
double lab_scaled_mse(const lab_numbers *n);

/* Opens the page and writes n rows of panels, of as many group sizes as it has room for (at most
 * most_sizes, spread evenly); the others, and algorithms without a measurement, are said to be left
 * out. */
gl_status lab_write_panels(figure_page *p, const lab_table *t, const lab_panel *of, size_t n,
                           size_t most_sizes, gl_error *err);
/* The recipe's algorithms as the page's lines. */
gl_status lab_page_algorithms(figure_page *p, const lab_recipe *r, gl_error *err);
/* Says which algorithms have nothing to show, and why. */
gl_status lab_leave_out_algorithms(figure_page *p, const lab_table *t, gl_error *err);
/* The places of the group sizes that the page shows, and a word about those it does not. */
size_t lab_pick_sizes(const figure_page *p, const lab_recipe *r, size_t most, size_t *picked);
gl_status lab_leave_out_sizes(figure_page *p, const lab_recipe *r, const size_t *picked, size_t n,
                              gl_error *err);
/* "8", or "∞" for the population limit. */
void lab_size_text(size_t size, char text[24]);

#endif
