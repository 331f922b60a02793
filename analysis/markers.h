/* Numbers of stored results (stored.h) in documents.
 *
 * In Markdown a number stands between markers, which do not show:
 *
 *   <!--= delay_sweep cells[gepo,1800].last.iqm .3f -->0.740<!--/-->
 *
 * and is written there by gepolab; in LaTeX it is
 * \result{delay_sweep}{cells[gepo,1800].last.iqm}{.3f}, for which a file of definitions is written.
 */
#ifndef GEPOLAB_ANALYSIS_MARKERS_H
#define GEPOLAB_ANALYSIS_MARKERS_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdio.h>

/* Where the results are. */
typedef struct marker_source {
  const char *folder;
  const char *const *missing; /* [n_missing] names of results that need not be there: their numbers
                                 stay as they are, in LaTeX they are dashes */
  size_t n_missing;
} marker_source;

/* The text of a Markdown file with its numbers as the stored results have them, on the heap;
 * *n_markers of them. name stands for the file in errors: GL_EINPUT with its line for a marker that
 * is not one, results or a key that are not there, and a format that is none. */
gl_status markers_fill(char **out, const char *text, const char *name, const marker_source *from,
                       size_t *n_markers, gl_error *err);

/* Writes a definition for each \result of a LaTeX file's text. Errors as above; trouble with the
 * stream stays there. */
gl_status markers_define(FILE *to, const char *text, const char *name, const marker_source *from,
                         gl_error *err);

#endif
