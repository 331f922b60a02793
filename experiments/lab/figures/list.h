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
  NEEDS_THEOREMS = 1 << 5
};

/* F(name, what it shows, what it needs, script in plots/) */
#define LAB_FIGURES(F)                                                                             \
  F(curves, "bias, variance and MSE against KL, a column per group size", NEEDS_DIAL,              \
    "lab_curves")                                                                                  \
  F(plane, "variance against squared bias, a panel per group size", NEEDS_DIAL, "lab_plane")       \
  F(map, "MSE over that of the first algorithm, over KL and group size",                           \
    NEEDS_DIAL | NEEDS_SIZES | NEEDS_OTHERS, "lab_map")                                            \
  F(staleness, "cosine, variance and MSE against staleness on a training path", NEEDS_PATH,        \
    "lab_staleness")                                                                               \
  F(learning, "return, cosine and variance against responses drawn", NEEDS_LEARNING,               \
    "lab_learning")                                                                                \
  F(weight_variance, "variance of p/q and p/E_q q, and the green region", NEEDS_THEOREMS,          \
    "lab_weights")                                                                                 \
  F(theorem1_constant, "the smallest constant of Theorem 1 against the number of outcomes",        \
    NEEDS_THEOREMS, "lab_constants")

/* Writes the figure of a lab_figure_data. */
#define LAB_FIGURE_DECLARED(name, shows, needs, shape)                                             \
  gl_status lab_figure_##name(const void *data, figure_page *p, gl_error *err);
LAB_FIGURES(LAB_FIGURE_DECLARED)

/* --- helpers of several figures: measured.c ------------------------------------------------------
 */

/* Gives the script `algorithms`, `sizes`, algorithm_name[] and size_name[]; says which algorithms
 * have nothing to show, and why. */
gl_status lab_page_variables(figure_page *p, const lab_table *t, gl_error *err);
/* Opens the page with the table's measurements as its data, and these variables. */
gl_status lab_page_open(figure_page *p, const lab_table *t, gl_error *err);
/* Sets gnuplot's variables `shown`, how many group sizes are drawn (at most `most`, spread evenly),
 * and shown_size[1..shown], their places in the recipe's list counted from 1. The sizes left out
 * are named at the foot of the figure. */
gl_status lab_page_sizes(figure_page *p, const lab_recipe *r, size_t most, gl_error *err);
/* `algorithms`, algorithm_name[] and longest_name, in bytes. */
gl_status lab_page_algorithms(figure_page *p, const lab_recipe *r, gl_error *err);

#endif
