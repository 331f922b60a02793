/* The figure `timeline`: what takes time in a cluster, as bars in rows over simulated time (a Gantt
 * chart), with marks where a batch is dropped or a message lost.
 */
#ifndef GEPOLAB_ANALYSIS_FIGURES_TIMELINE_H
#define GEPOLAB_ANALYSIS_FIGURES_TIMELINE_H

#include "analysis/plot/figure.h"

#include <stdint.h>

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
