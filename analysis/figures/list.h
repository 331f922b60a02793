/* The figures of a study, one line each. Figure NAME is written by figure_NAME() in one of the
 * files of this folder; table.c builds the table from these lines. Private to this folder. */
#ifndef GEPOLAB_ANALYSIS_FIGURES_LIST_H
#define GEPOLAB_ANALYSIS_FIGURES_LIST_H

#include "analysis/figures/data.h"
#include "analysis/plot/page.h"

/* Data that a figure requires; table.c reports which of them a study lacks. */
enum {
  NEEDS_EVALUATION = 1 << 0,
  NEEDS_TRAINING = 1 << 1,   /* importance weights, gradient norms or rewards */
  NEEDS_DIVERGENCE = 1 << 2, /* KL, importance weights P/Q or an estimation error */
  NEEDS_WINDOW = 1 << 3,     /* staleness or KL */
  NEEDS_STALENESS = 1 << 4,  /* a staleness histogram */
  NEEDS_CLOCK = 1 << 5,
  NEEDS_DELAYS = 1 << 6, /* several values of a delay; the next three: of a packet loss, a window,
                            the number of samplers */
  NEEDS_LOSSES = 1 << 7,
  NEEDS_WINDOWS = 1 << 8,
  NEEDS_SAMPLERS = 1 << 9,
  NEEDS_SETTINGS = 1 << 10,  /* a field that varies, other than algorithm and seed */
  NEEDS_RATES = 1 << 11,     /* two settings of optimizer.lr */
  NEEDS_OUTCOMES = 1 << 12,  /* scores for which higher is better, and repeated runs */
  NEEDS_COLLAPSES = 1 << 13, /* runs that collapsed, and runs that did not */
  NEEDS_A_COLLAPSE = 1 << 14,
  NEEDS_OTHER_SETTINGS = 1 << 15, /* groups that differ in a field other than optimizer.lr */
  NEEDS_AGES = 1 << 16            /* batches of different staleness */
};

/* F(name, description, required data, script in plots/) */
#define FIGURES(F)                                                                                 \
  F(eval_score, "evaluation score against updates, a panel per setting (paper Fig. 1)",            \
    NEEDS_EVALUATION, "curves")                                                                    \
  F(gap, "best and last at the smallest and largest delay, by updates and hours (paper Fig. 1)",   \
    NEEDS_EVALUATION, "gap")                                                                       \
  F(training, "IW variance, gradient norm and reward against updates (paper Fig. 4)",              \
    NEEDS_TRAINING, "curves")                                                                      \
  F(divergence, "KL, estimation error and IW variance against delay (paper Fig. 5)",               \
    NEEDS_DELAYS | NEEDS_DIVERGENCE, "curves")                                                     \
  F(by_staleness, "KL, errors and IW variance against staleness in updates (paper Fig. 5)",        \
    NEEDS_DIVERGENCE | NEEDS_AGES, "curves")                                                       \
  F(relations, "KL, IW variance and estimation error over runs, with fits (paper Fig. 7)",         \
    NEEDS_DIVERGENCE, "scatter")                                                                   \
  F(correlations, "Pearson's and Spearman's correlations of each algorithm (paper Fig. 7)",        \
    NEEDS_DIVERGENCE, "rows")                                                                      \
  F(sensitivity, "best and last against every swept field (paper Fig. 8)",                         \
    NEEDS_EVALUATION | NEEDS_SETTINGS, "curves")                                                   \
  F(heat, "best and last as colours, algorithm by delay", NEEDS_EVALUATION | NEEDS_DELAYS, "map")  \
  F(window, "staleness, KL and score against updates, a column per window (paper Fig. 6)",         \
    NEEDS_WINDOWS | NEEDS_WINDOW, "curves")                                                        \
  F(staleness, "staleness distribution, simulated against measured", NEEDS_STALENESS, "bars")      \
  F(throughput_delay, "throughput and utilisation against delay", NEEDS_DELAYS | NEEDS_CLOCK,      \
    "curves")                                                                                      \
  F(throughput_loss, "throughput and utilisation against packet loss", NEEDS_LOSSES | NEEDS_CLOCK, \
    "curves")                                                                                      \
  F(throughput_samplers, "throughput and utilisation against the number of samplers",              \
    NEEDS_SAMPLERS | NEEDS_CLOCK, "curves")                                                        \
  F(time_to_score, "simulated hours and updates until a score is reached", NEEDS_EVALUATION,       \
    "rows")                                                                                        \
  F(survival, "fraction of runs that have not collapsed, against updates",                         \
    NEEDS_OUTCOMES | NEEDS_A_COLLAPSE, "curves")                                                   \
  F(frontier, "learning rate at which 10 and 50 % of the runs collapse, against staleness",        \
    NEEDS_OUTCOMES | NEEDS_RATES | NEEDS_A_COLLAPSE | NEEDS_OTHER_SETTINGS, "curves")              \
  F(announcements, "ROC curves: which metrics say beforehand that a run collapses",                \
    NEEDS_OUTCOMES | NEEDS_COLLAPSES, "curves")                                                    \
  F(dumbbells, "from best to last, a panel per setting", NEEDS_EVALUATION, "rows")                 \
  F(best_last, "best, last and their gap per algorithm, a column per setting", NEEDS_EVALUATION,   \
    "rows")

/* Writes the figure from a figure_data. */
#define FIGURE_DECLARED(name, shows, needs, shape)                                                 \
  gl_status figure_##name(const void *data, figure_page *p, gl_error *err);
FIGURES(FIGURE_DECLARED)

#endif
