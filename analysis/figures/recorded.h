/* The figures of a recorded run: what algorithms would have done with its batches (`gepolab whatif
 * --figures`).
 */
#ifndef GEPOLAB_ANALYSIS_FIGURES_RECORDED_H
#define GEPOLAB_ANALYSIS_FIGURES_RECORDED_H

#include "analysis/plot/page.h"

#include <stddef.h>

/* Of an update, whatever the algorithm. NaN: the batch does not tell it. */
typedef enum recorded_value {
  RECORDED_STALENESS,
  RECORDED_KL_TOKEN,        /* KL(q||p) by k3: a token's mean, nats */
  RECORDED_KL_RESPONSE,     /* summed over a response */
  RECORDED_LOG_VARIANCE_PQ, /* ln of the variance of P/Q within groups */
  RECORDED_VALUES
} recorded_value;

/* Of an algorithm's evaluation of an update. NaN: it is refused, or undefined. */
typedef enum recorded_of_row {
  RECORDED_LOG_VARIANCE, /* ln of the variance of its own weights within groups */
  RECORDED_ESS,
  RECORDED_CLIPPED,
  RECORDED_IDLE, /* share of tokens whose coefficient is 0 */
  RECORDED_OF_ROW
} recorded_of_row;

/* Borrowed. Update i is the i-th run of RECORDED_VALUES + n_rows * RECORDED_OF_ROW numbers. */
typedef struct recorded {
  const double *value; /* [n] such runs */
  size_t n;
  const char *const *rows; /* [n_rows] names of algorithms */
  size_t n_rows;
} recorded;

/* Numbers of one update. */
size_t recorded_width(size_t n_rows);

/* Draws whatif_staleness, whatif_variance and whatif_algorithms (errors: figures_draw_table,
 * analysis/plot/draw.h, and figures_check_highlight for a name that is no row's). */
gl_status figures_of_recorded(const recorded *r, const figure_request *q, gl_error *err);

#endif
