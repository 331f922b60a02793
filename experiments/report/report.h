/* A report: one HTML page about the studies of a file, with nothing outside it.
 *
 * What it says is the study's alone: no time of writing, no path, so that the same study gives the
 * same bytes (with the same gepolab and gnuplot). The page needs no script and fetches nothing.
 */
#ifndef GEPOLAB_EXPERIMENTS_REPORT_REPORT_H
#define GEPOLAB_EXPERIMENTS_REPORT_REPORT_H

#include "core/base/error.h"
#include "core/store/store.h"

#include <stdio.h>

typedef struct report_request {
  const char *(*text_of)(const char *path); /* of an embedded file: plots/…, the style sheet */
  const char *gnuplot;                      /* the program; NULL: "gnuplot" */
  const char *only;                         /* one study's name; NULL: all of the file */
  int no_figures;                           /* tables only; gnuplot is not needed */
} report_request;

/* Writes the page. GL_EINPUT if the file holds no study, or none of that name; GL_EIO if it cannot
 * be read, if the figures cannot be drawn, or if writing fails. After a failure what was written is
 * not a page. */
gl_status report_write(FILE *to, store *from, const report_request *q, gl_error *err);

#endif
