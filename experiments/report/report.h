/* A report: one self-contained HTML page about the studies of a file.
 *
 * The page depends on the study only: it contains no date of writing and no path, so the same study
 * gives the same bytes (with the same gepolab and gnuplot). It loads nothing and is whole
 * without its script, which sorts tables and enlarges figures.
 */
#ifndef GEPOLAB_EXPERIMENTS_REPORT_REPORT_H
#define GEPOLAB_EXPERIMENTS_REPORT_REPORT_H

#include "core/base/error.h"
#include "core/store/store.h"

#include <stdio.h>

/* The chart library, embedded when the program is built with one (Makefile, CHART_JS). Without it
 * the page's figures are pictures only. */
#define REPORT_CHART "chart.min.js"

typedef struct report_request {
  const char *(*text_of)(const char *path); /* text of an embedded file: plots/…, the style sheet */
  const char *gnuplot;                      /* the gnuplot program; NULL: "gnuplot" */
  const char *only;                         /* name of one study; NULL: all studies of the file */
  int no_figures;                           /* 1: tables only; gnuplot is not needed */
} report_request;

/* Writes the page. Errors: GL_EINPUT (no study in the file, or none of that name), GL_EIO (reading,
 * drawing figures or writing failed). After an error the output is incomplete. */
gl_status report_write(FILE *to, store *from, const report_request *q, gl_error *err);

#endif
