/* Figures of data supplied by the caller, without a study. */
#ifndef GEPOLAB_ANALYSIS_FIGURES_WITHOUT_STUDY_H
#define GEPOLAB_ANALYSIS_FIGURES_WITHOUT_STUDY_H

#include "analysis/plot/page.h"
#include "analysis/stored_results.h"
#include "core/base/arena.h"

#include <stdint.h>

/* Figure `densities`: distributions of durations and lengths, a panel for each quantity. */

/* One density curve. */
typedef struct density {
  size_t panel, line;
  const double *x, *y; /* [n] x ascending; NULL if n is 0 */
  size_t n;
} density;

/* Data of the figure; borrowed. */
typedef struct densities {
  const char *const *panels; /* [n_panels] quantities with units */
  const int *logarithmic;    /* [n_panels] 1: logarithmic x axis; y is then the density of ln x */
  size_t n_panels;
  const char *const *lines; /* [n_lines] labels of the distributions */
  size_t n_lines;
  const density *of; /* [n] */
  size_t n;
  const char *const *left_out; /* [n_left_out] quantities that are constant, with their values */
  size_t n_left_out;
  const char *const *remarks; /* [n_remarks] point masses, which a density cannot show */
  size_t n_remarks;
} densities;

/* Draws the figure. Errors: GL_EINPUT (no panel), and those of figures_draw_table()
 * (analysis/plot/draw.h). */
gl_status figure_of_densities(const densities *d, const figure_request *q, gl_error *err);

/* Figure `pareto`: trade-off of two quantities as points with intervals in both directions:
 * candidates, the Pareto front, and the recommended point. */

typedef enum pareto_kind {
  PARETO_CANDIDATE,
  PARETO_FRONT,
  PARETO_CHOSEN,
  PARETO_KINDS
} pareto_kind;

typedef struct pareto_point {
  pareto_kind kind;
  double x, x_low, x_high, y, y_low, y_high; /* ends of intervals; NaN: no interval */
} pareto_point;

/* Data of the figure; borrowed. Points of the front are connected in this order. */
typedef struct pareto {
  const char *x_axis, *y_axis; /* labels with units */
  const pareto_point *points;  /* [n] */
  size_t n;
  double limit; /* vertical line at this x; INFINITY: none */
} pareto;

/* Draws the figure. Errors: GL_EINPUT (no point), and those of figures_draw_table()
 * (analysis/plot/draw.h). */
gl_status figure_of_pareto(const pareto *d, const figure_request *q, gl_error *err);

/* Figure `selection`: the fraction of sampled groups that are trained, by the length of their
 * longest response, and how the gradient of the trained groups differs from that of all sampled
 * groups. One line for each policy for stale data. */

/* One policy for stale data; borrowed. */
typedef struct selection_policy {
  const char *name;
  const double *trained;     /* [max_length + 1] fraction of groups trained, by the length of their
                                longest response; NaN: no such group */
  double cosine, norm_ratio; /* gradient of the trained groups relative to that of the sampled
                                groups; NaN if one is 0 */
} selection_policy;

/* Data of the figure; borrowed. */
typedef struct selection_policies {
  const selection_policy *of;  /* [n] names are distinct and none is "all sampled" */
  size_t n, max_length;        /* max_length: in tokens */
  const char *const *left_out; /* [n_left_out] what is not shown, with reasons */
  size_t n_left_out;
} selection_policies;

/* Draws the figure. Errors: GL_EINPUT (no policy), and those of figures_draw_table()
 * (analysis/plot/draw.h). */
gl_status figure_of_selection(const selection_policies *d, const figure_request *q, gl_error *err);

/* Figure `speedups`: published speedups of asynchronous systems over synchronous training and the
 * speedups that the clock simulates, a line for each case. */

/* Data of the figure; borrowed. */
typedef struct speedups {
  const char *const *names;            /* [n] distinct */
  const double *published, *simulated; /* [n] speedup over synchronous training */
  size_t n;
} speedups;

/* Draws the figure. Errors: GL_EINPUT (no case), and those of figures_draw_table()
 * (analysis/plot/draw.h). */
gl_status figure_of_speedups(const speedups *s, const figure_request *q, gl_error *err);

/* Figure `directions`: bias and error of estimators against KL, over many random directions from
 * the learner to the sampler (`gepolab lab bias` with dial.directions). Lines are medians, bands
 * lie between the 10 and 90 % quantiles over directions. A single world has a column of panels for
 * each group size; of several worlds each has one column, at the largest group size. In
 * directions.c. */

typedef enum directions_quantity {
  DIRECTIONS_BIAS, /* norm of the bias / norm of the true gradient */
  DIRECTIONS_MSE,  /* mean squared error / that of the reference algorithm for the same direction */
  DIRECTIONS_SCALED_MSE, /* the same after multiplying each estimator by its best constant */
  DIRECTIONS_QUANTITIES
} directions_quantity;

typedef struct directions_point {
  size_t world, algorithm;
  double group_size; /* INFINITY: the limit of large groups */
  double kl;         /* KL(p||q) in nats */
  double count;      /* number of directions with an expected gradient that is not 0 */
  double median[DIRECTIONS_QUANTITIES], low[DIRECTIONS_QUANTITIES], high[DIRECTIONS_QUANTITIES];
} directions_point;

/* Data of the figure. Texts are borrowed, or in `memory` where directions_add_stored() copied them.
 */
typedef struct directions {
  const char **worlds; /* [n_worlds] titles of columns */
  size_t n_worlds;
  const char **algorithms; /* [n_algorithms] */
  size_t n_algorithms;
  size_t reference;        /* the algorithm whose mean squared errors are the unit */
  directions_point *point; /* [n], allocated */
  size_t n;
  arena memory;
} directions;

/* Returns true if the stored results come from `gepolab lab bias` with dial.directions. */
bool directions_are_stored(const stored *s);
/* Adds stored results as a world with that title. Errors: GL_ENOMEM, GL_EINPUT (a key is missing or
 * no number; another reference than the worlds before). */
gl_status directions_add_stored(directions *d, const stored *s, const char *title, gl_error *err);
/* Releases `point`, `memory` and the lists that directions_add_stored() made. */
void directions_fini(directions *d);
/* Draws the figure. Errors: GL_EINPUT (no point), and those of figures_draw_table()
 * (analysis/plot/draw.h). */
gl_status figure_of_directions(const directions *d, const figure_request *q, gl_error *err);

/* Figure `timeline`: a Gantt chart of a cluster over simulated time, with marks where a batch is
 * dropped or a message is lost. */

typedef enum timeline_kind {
  TIMELINE_GENERATION,
  TIMELINE_INTERRUPTION, /* a sampler switches to new weights during responses, or its GPUs train or
                            switch */
  TIMELINE_WAITING, /* a sampler waits for weights, the learner for batches, or a message for its
                       turn */
  TIMELINE_BATCHES, /* batches in transit */
  TIMELINE_WEIGHTS, /* weights in transit */
  TIMELINE_QUEUED,  /* batches queued at the learner */
  TIMELINE_TRAINING,
  TIMELINE_EVALUATION, /* evaluation, grading, or a call of an environment */
  TIMELINE_DOWN,
  TIMELINE_PREFILL, /* a sampler computes a prompt */
  TIMELINE_BARS,    /* number of bar kinds; the kinds from here on are marks at the ends of bars */
  TIMELINE_DROPPED = TIMELINE_BARS,
  TIMELINE_LOST,
  TIMELINE_KINDS
} timeline_kind;

typedef struct timeline_bar {
  size_t row;
  timeline_kind kind;  /* kind of the bar */
  timeline_kind ends;  /* mark at the end (TIMELINE_DROPPED, TIMELINE_LOST); none: equal to kind */
  double from_s, to_s; /* simulated seconds; clipped to the timeline */
} timeline_bar;

/* Data of the figure; borrowed. Overlapping bars of a row are drawn in separate lanes. */
typedef struct timeline {
  const char *const *rows; /* [n_rows] names from top to bottom */
  size_t n_rows;
  const timeline_bar *bars; /* [n_bars], in any order */
  size_t n_bars;
  double from_s, to_s;
  const char *left_out; /* remark below the figure; "": none */
} timeline;

/* Draws the figure. Rows without bars are omitted. Errors: GL_EINPUT (no bar between from_s and
 * to_s), and those of figures_draw_table() (analysis/plot/draw.h). */
gl_status figure_of_timeline(const timeline *t, const figure_request *q, gl_error *err);

/* --- outcomes (outcomes.c) --- */

struct stability; /* analysis/outcome.h */

/* Draws `survival` and `frontier` of stored outcomes. Errors: those of figures_draw_table()
 * (analysis/plot/draw.h), and of figures_check_highlight() for a name that is not an algorithm. */
gl_status figures_of_outcomes(const struct stability *s, const figure_request *q, gl_error *err);

#endif
