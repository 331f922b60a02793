/* Numbers of stored results (stored.h) in documents.
 *
 * A Markdown document has a template beside it, README.md.in, where a number is
 *
 *   {{delay_sweep cells[gepo,1800].last.iqm .3f}}
 *
 * In LaTeX it is \result{delay_sweep}{cells[gepo,1800].last.iqm}{.3f}, for which a file of
 * definitions is written.
 */
#ifndef GEPOLAB_ANALYSIS_MARKERS_H
#define GEPOLAB_ANALYSIS_MARKERS_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdio.h>

/* Where the results are. */
typedef struct marker_source {
  const char *folder;
  const char *const *missing; /* [n_missing] names of results that need not exist: their numbers
                                 become dashes */
  size_t n_missing;
} marker_source;

/* The text of a template with its numbers filled in, on the heap; *n_numbers of them. name stands
 * for the file in errors: GL_EINPUT with its line for a malformed marker, results or a key that do
 * not exist, and an unknown format. */
gl_status markers_fill(char **out, const char *text, const char *name, const marker_source *from,
                       size_t *n_numbers, gl_error *err);

/* Writes a definition for each \result of a LaTeX file's text. Errors as above; trouble with the
 * stream stays there. */
gl_status markers_define(FILE *to, const char *text, const char *name, const marker_source *from,
                         gl_error *err);

#endif
