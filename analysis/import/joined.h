/* Gathered files as results (analysis/results.h), so that every figure and table of studies can be
 * made of them.
 *
 * Known metrics become those of updates (a variance gives its logarithm too), scores become
 * evaluations, and whole-numbered staleness a histogram. A label is an axis of its own, or the
 * recipe's field that it names. What is neither a known metric nor a score has no place in figures.
 */
#ifndef GEPOLAB_ANALYSIS_IMPORT_JOINED_H
#define GEPOLAB_ANALYSIS_IMPORT_JOINED_H

#include "analysis/import/gather.h"

/* Arranged; release with results_free(). left_out, where it is not NULL, becomes the names of
 * metrics that have no place, "a, b", on the heap, or NULL if there is none. GL_EINPUT where there
 * is nothing to draw, where a step is no whole number, and where two metrics of one run are the
 * same to gepolab. */
gl_status joined_results(results **out, char **left_out, const gathered *g, gl_error *err);

#endif
