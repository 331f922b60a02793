/* Figures of a recorded run: what algorithms would have done with its batches (`gepolab whatif
 * --figures`). */
#ifndef GEPOLAB_ANALYSIS_FIGURES_RECORDED_H
#define GEPOLAB_ANALYSIS_FIGURES_RECORDED_H

#include "analysis/plot/page.h"

#include <stddef.h>

/* Quantities of an update that do not depend on the algorithm. NaN: not available in the batch. */
typedef enum recorded_value {
  RECORDED_STALENESS,
  RECORDED_KL_TOKEN,        /* KL(q||p) by k3, mean per token, nats */
  RECORDED_KL_RESPONSE,     /* KL(q||p), sum over a response, nats */
  RECORDED_LOG_VARIANCE_PQ, /* ln of the variance of P/Q within groups */
  RECORDED_VALUES
} recorded_value;

/* Quantities of an algorithm evaluated on an update. NaN: the algorithm cannot be evaluated, or the
 * quantity is undefined. */
typedef enum recorded_of_algorithm {
  RECORDED_LOG_VARIANCE, /* ln of the variance of the algorithm's own importance weights within
                            groups */
  RECORDED_ESS,
  RECORDED_CLIPPED,
  RECORDED_IDLE, /* fraction of tokens with coefficient 0 */
  RECORDED_OF_ALGORITHM
} recorded_of_algorithm;

/* A recorded run; borrowed. Update i is the i-th block of RECORDED_VALUES + n_algorithms *
 * RECORDED_OF_ALGORITHM numbers. */
typedef struct recorded {
  const double *value; /* [n] blocks */
  size_t n;
  const char *const *algorithms; /* [n_algorithms] names */
  size_t n_algorithms;
} recorded;

/* Number of values per update. */
size_t recorded_width(size_t n_algorithms);

/* Draws whatif_staleness, whatif_variance and whatif_algorithms. Errors: those of
 * figures_draw_table() (analysis/plot/draw.h), and of figures_check_highlight() for a name that is
 * not an algorithm. */
gl_status figures_of_recorded(const recorded *r, const figure_request *q, gl_error *err);

#endif
