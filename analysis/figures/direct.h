/* Figures of data that the caller gives, without a study. */
#ifndef GEPOLAB_ANALYSIS_FIGURES_DIRECT_H
#define GEPOLAB_ANALYSIS_FIGURES_DIRECT_H

#include "analysis/plot/page.h"

#include <stdint.h>

/* The figure `densities`: of distributions of durations and lengths, a panel for each quantity. */

/* A distribution in a panel. */
typedef struct density {
  size_t panel, line;
  const double *x, *y; /* [n] ascending x; NULL where n is 0 */
  size_t n;
} density;

/* Borrowed. */
typedef struct densities {
  const char *const *panels; /* [n_panels] the quantities with their units */
  const int *logarithmic;    /* [n_panels] 1: x is, and y is then per unit of ln x */
  size_t n_panels;
  const char *const *lines; /* [n_lines] distributions in words */
  size_t n_lines;
  const density *of; /* [n] */
  size_t n;
  const char *const *left_out; /* [n_left_out] quantities that never vary, with their values */
  size_t n_left_out;
  const char *const *remarks; /* [n_remarks] what a density cannot show: values that have a share */
  size_t n_remarks;
} densities;

/* Draws it (errors: figures_draw_table, analysis/plot/draw.h). GL_EINPUT where there is no panel.
 */
gl_status figure_of_densities(const densities *d, const figure_request *q, gl_error *err);

/* The figure `pareto`: what can be had of one quantity at how much of another, as points with
 * intervals both ways: the candidates, the Pareto front among them, and the one that is
 * recommended. */

typedef enum pareto_kind {
  PARETO_CANDIDATE,
  PARETO_FRONT,
  PARETO_CHOSEN,
  PARETO_KINDS
} pareto_kind;

typedef struct pareto_point {
  pareto_kind kind;
  double x, x_low, x_high, y, y_low, y_high; /* ends of intervals; NaN: none are shown */
} pareto_point;

/* Borrowed. Points of the front in the order of the line through them. */
typedef struct pareto {
  const char *x_axis, *y_axis; /* with their units */
  const pareto_point *points;  /* [n] */
  size_t n;
  double limit; /* of x, a vertical line; INFINITY: none */
} pareto;

/* Draws it (errors: figures_draw_table, analysis/plot/draw.h). GL_EINPUT where there is no point.
 */
gl_status figure_of_pareto(const pareto *d, const figure_request *q, gl_error *err);

/* The figure `selection`: which of the groups that were drawn are trained, by their longest
 * response, and how far the gradient of what arrives is from that of what was drawn, a line for
 * each policy for stale data. */

/* Borrowed. */
typedef struct selection_policy {
  const char *name;
  const double *trained; /* [max_length + 1] share of groups by their longest response, from 0 to 1;
                            NaN: none was drawn */
  double cosine, norm_ratio; /* of the gradient of what arrives to that of what was drawn; NaN where
                                one is 0 */
} selection_policy;

/* Borrowed. */
typedef struct selection_policies {
  const selection_policy *of;  /* [n] no two names alike, none of them "all drawn" */
  size_t n, max_length;        /* in tokens */
  const char *const *left_out; /* [n_left_out] what is not shown, and why */
  size_t n_left_out;
} selection_policies;

/* Draws it (errors: figures_draw_table, analysis/plot/draw.h). GL_EINPUT where there is no policy.
 */
gl_status figure_of_selection(const selection_policies *d, const figure_request *q, gl_error *err);

/* The figure `speedups`: what systems were published to gain over training in turns, and what the
 * clock says, a line for each case. */

/* Borrowed. */
typedef struct speedups {
  const char *const *names;            /* [n] no two alike */
  const double *published, *simulated; /* [n] times as fast as in turns */
  size_t n;
} speedups;

/* Draws it (errors: figures_draw_table, analysis/plot/draw.h). GL_EINPUT where there is no case. */
gl_status figure_of_speedups(const speedups *s, const figure_request *q, gl_error *err);

/* The figure `timeline`: what takes time in a cluster, as bars in rows over simulated time (a Gantt
 * chart), with marks where a batch is dropped or a message lost.
 */

typedef enum timeline_kind {
  TIMELINE_GENERATION,
  TIMELINE_INTERRUPTION, /* a sampler takes weights over in the middle of responses */
  TIMELINE_WAITING, /* a sampler for weights, the learner for batches, a message for its turn */
  TIMELINE_BATCHES, /* on their way */
  TIMELINE_WEIGHTS, /* on their way */
  TIMELINE_QUEUED,  /* batches that wait at the learner */
  TIMELINE_TRAINING,
  TIMELINE_EVALUATION,
  TIMELINE_DOWN,
  TIMELINE_BARS, /* the kinds of bars; the others are marks at the ends of bars */
  TIMELINE_DROPPED = TIMELINE_BARS,
  TIMELINE_LOST,
  TIMELINE_KINDS
} timeline_kind;

typedef struct timeline_bar {
  size_t row;
  timeline_kind kind;  /* of a bar */
  timeline_kind ends;  /* TIMELINE_DROPPED or TIMELINE_LOST: a mark at its end; else the kind */
  double from_s, to_s; /* simulated seconds; what lies outside the timeline is cut */
} timeline_bar;

/* Borrowed. Bars of a row may overlap: they lie in lanes beside each other. */
typedef struct timeline {
  const char *const *rows; /* [n_rows] names from above */
  size_t n_rows;
  const timeline_bar *bars; /* [n_bars], in any order */
  size_t n_bars;
  double from_s, to_s;
  const char *left_out; /* said at the figure's foot; "": nothing */
} timeline;

/* Draws it (errors: figures_draw_table, analysis/plot/draw.h). Rows without a bar are not shown.
 * GL_EINPUT where no bar lies between from_s and to_s. */
gl_status figure_of_timeline(const timeline *t, const figure_request *q, gl_error *err);

#endif
