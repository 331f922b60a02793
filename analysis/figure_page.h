/* A figure in the making: its data file, its panels with their ranges, its script. Only for the
 * files analysis/figure*.c.
 *
 * A figure writes its numbers to data.stream in blocks, one per (panel, line) in that order and
 * each ended by two empty lines, so that block panel * n_lines + line is one curve of one panel.
 */
#ifndef GEPOLAB_ANALYSIS_FIGURE_PAGE_H
#define GEPOLAB_ANALYSIS_FIGURE_PAGE_H

#include "analysis/figures.h"
#include "analysis/summary.h"
#include "core/base/file.h"

#include <stdio.h>

typedef struct figure_panel {
  char title[160], axis[160], note[32]; /* note: in the panel's upper right corner */
  double low, high;
  int logarithmic; /* scale of its axis */
} figure_panel;

typedef struct figure_page {
  const figure_request *q;
  const char *name, *shape; /* shape: plots/SHAPE.gp draws it */
  file_writer data;
  figure_panel *panels;
  size_t n_panels, wide; /* wide: panels in a row */
  size_t share;          /* so many panels in turn have one range, shown once a row; 0: none */
  int named_rows;        /* every panel lists the lines from above; no legend */
  const char *const *lines;
  size_t n_lines;
  const char *x_axis;
  char x_marks[640];    /* "'0' 0, '600' 1" where x is a place in a list; else "" */
  double x_low, x_high; /* widened by page_x() */
} figure_page;

/* Opens q->folder/NAME.tsv, with the columns' names as its first line, and n_panels empty panels
 * (lines is borrowed). On failure there is nothing to release. */
gl_status page_begin(figure_page *p, const figure_request *q, const char *name, const char *shape,
                     size_t n_panels, const char *columns, gl_error *err);
/* Writes the script and puts both files in place; releases the page, also when status, which is
 * handed through, is a failure. */
gl_status page_end(figure_page *p, gl_status status, gl_error *err);
/* Has gnuplot draw the figure of that name, which page_end() wrote. */
gl_status page_draw(const figure_request *q, const char *name, gl_error *err);

/* Begins a row of data: the panel's number and the line's name, without what gnuplot would take for
 * structure (control characters and double quotes become spaces). */
void page_line(figure_page *p, size_t panel, const char *line);
/* Three cells: value, low, high; empty where not finite. Widens the panel's range, on a logarithmic
 * axis not by low, which can be anything near zero. */
void page_interval(figure_page *p, size_t panel, interval v);
void page_number(figure_page *p, double value);
void page_x(figure_page *p, double x);
void page_block_end(figure_page *p);

/* Fills picked with at most `most` numbers below n, spread evenly, first and last among them, in
 * order; returns how many. */
size_t page_pick(size_t n, size_t most, size_t *picked);

/* Folder and those it lies in. */
gl_status folder_make(const char *folder, gl_error *err);

/* Each writes one figure; `why` is set, and nothing written, where the study lacks the data. */
gl_status write_eval_score(const summary *s, const figure_request *q, const char **why,
                           gl_error *err);
gl_status write_training(const summary *s, const figure_request *q, const char **why,
                         gl_error *err);
gl_status write_window(const summary *s, const figure_request *q, const char **why, gl_error *err);
gl_status write_divergence(const summary *s, const figure_request *q, const char **why,
                           gl_error *err);
gl_status write_throughput_delay(const summary *s, const figure_request *q, const char **why,
                                 gl_error *err);
gl_status write_throughput_loss(const summary *s, const figure_request *q, const char **why,
                                gl_error *err);
gl_status write_best_last(const summary *s, const figure_request *q, const char **why,
                          gl_error *err);
gl_status write_staleness(const summary *s, const figure_request *q, const char **why,
                          gl_error *err);

#endif
